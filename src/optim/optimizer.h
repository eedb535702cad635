/* optimizer.h - optimizers inside: what rules.c (one block per optimizer) and apply.c (what all have in common) share. */
#ifndef STK_OPTIM_OPTIMIZER_H
#define STK_OPTIM_OPTIMIZER_H

#include "base/json.h"
#include "graph/ir/ir.h"
#include "optim/options.h"
#include "stoker/optim.h"

struct stk_optimizer {
    stk_optimizer_options options;
    int32_t refs;
};

enum { STK_SLOT_NAME = 512 };

/* A state of the optimizer that is shaped like the weight. */
typedef struct stk_optimizer_slot {
    stk_val variable, value; /* value: as the rule computes with it */
} stk_optimizer_slot;

/* The update of one weight. Rules compute in float32 (float64 for float64 weights) whatever the weight is stored as. */
typedef struct stk_weight_update {
    stk_graph *g;
    const stk_optimizer_options *o;
    const char *weight; /* its name */
    stk_dtype compute;
    stk_val variable;
    stk_val w, gradient; /* of type `compute` */
    stk_val rate, t;     /* t: number of this update from 1; scalars of type `compute` */
    stk_val shared;      /* what `prepare` made; float32 scalar */
    stk_val go;          /* bool scalar: keep what is computed; 0 = always */
} stk_weight_update;

stk_optimizer_slot stk_weight_update_slot(stk_weight_update *r, const char *name);
/* The slot's new value, unless the update is left out. Returns the value. */
stk_val stk_weight_update_keep(stk_weight_update *r, stk_optimizer_slot slot, stk_val value);
/* A float32 scalar of the optimizer. */
stk_optimizer_slot stk_weight_update_scalar(stk_weight_update *r, const char *name);

typedef struct stk_update_rule {
    const char *name, *keras_class, *defaults;
    stk_val (*update)(stk_weight_update *r);  /* the new weight */
    stk_val (*prepare)(stk_weight_update *r); /* optional: once for all weights, before them */
    /* Start values that are not 0: a slot, or a scalar. */
    const char *slot, *scalar;
    double scalar_start;
} stk_update_rule;
extern const stk_update_rule stk_update_rules[STK_OPTIMIZER_COUNT];

/* "adam/dense/kernel/momentum"; weight NULL: "adam/iteration". False, with a mistake in err, when it is too long. */
bool stk_optimizer_variable(const stk_optimizer_options *o, const char *weight, const char *slot,
                            char name[STK_SLOT_NAME], stk_error *err);

/* ---- schedules (schedule.c) ------------------------------------------------------------------------------------------ */
stk_schedule stk_schedule_defaults(stk_schedule_kind kind);
stk_status stk_schedule_check(const stk_schedule *s, stk_error *err);
/* "cosine/1000/alpha=0.1" and Keras' object. Both may set the rate at the start as well. */
stk_status stk_schedule_text(const char *text, size_t size, stk_schedule *s, double *rate,
                             stk_error *err);
stk_status stk_schedule_json(const stk_json *json, stk_schedule *s, double *rate, stk_error *err);
void stk_schedule_write(const stk_schedule *s, double rate, stk_json_writer *w);
/* The rate at a step (float32 scalar). */
stk_val stk_schedule_build(const stk_schedule *s, stk_graph *g, double rate, stk_val step);
double stk_schedule_start(const stk_schedule *s, double rate);

#endif
