/* experiments.h - what an experiment of `stoker paradox` is: two programs for the same work, to be run in turns. */
#ifndef STK_WATCH_PARADOX_EXPERIMENTS_H
#define STK_WATCH_PARADOX_EXPERIMENTS_H

#include "stoker/paradox.h"

/* One of the two, ready to run on a device. */
typedef struct stk_contender {
    void *self;
    int64_t units; /* done by one step: pictures, adds */
    int64_t ahead; /* batches that its pipeline may have ready */
    /* What is said to have run has run: it waits for its device at the end. */
    stk_status (*run)(void *self, int64_t steps, stk_error *err);
    /* Numbers that came of it, on the host: both of a pair must have the same after the same work. */
    stk_status (*outcome)(void *self, stk_tensor **out, stk_error *err);
    void (*close)(void *self);
    int64_t booked; /* steps whose every call fits into a trace; 0: any number */
    bool builds;    /* makes models in its steps: what no book claims is that */
    char note[160]; /* seen while it was made; "" */
} stk_contender;
typedef stk_status stk_contender_open(stk_device *device, bool cured, stk_contender *out,
                                      stk_error *err);

typedef struct stk_experiment {
    stk_paradox_row row;
    double per; /* units in one `row.per` */
    stk_contender_open *open;
} stk_experiment;
#define STK_EXPERIMENT(id, open, name, per, units, math, written, cured, cause, cure)              \
    stk_contender_open stk_paradox_##open;
#include "watch/paradox/experiments.def"
const stk_experiment *stk_experiment_at(int32_t index); /* NULL behind the last */

/* ---- a training as a contender (training.c) -------------------------------------------------------------------- */
typedef struct stk_training {
    const char *const *layers; /* as stk_model_add takes them; NULL at the end */
    const stk_custom *custom;  /* put in behind the first `custom_at` layers; NULL: none */
    int32_t custom_at;
    stk_dataset *dataset; /* of batches, taken over; or NULL and: */
    stk_tensor *x, *y;    /* rows, taken over */
    int64_t batch;        /* rows of a step; of a dataset it is that of the dataset */
    int64_t units;        /* of a step */
    stk_callback *callback;
} stk_training;
stk_status stk_training_open(stk_device *device, const stk_training *what, stk_contender *out,
                             stk_error *err);
/* A built model of these layers, and a trainer for it on the device. */
stk_status stk_training_make(stk_device *device, const stk_training *what, stk_model **model,
                             stk_trainer **trainer, stk_error *err);
/* The first weight of the trainer's model. */
stk_status stk_training_weight(stk_trainer *t, stk_tensor **out, stk_error *err);

/* Rows of numbers in 0 .. 1 that hang together with their labels in 0 .. 9; always the same. */
stk_status stk_paradox_rows(int64_t rows, int64_t width, stk_tensor **x, stk_tensor **y,
                            stk_error *err);
extern const char *const stk_small_net[]; /* 32 numbers to 10 classes, some thousand weights */
enum { STK_SMALL_NET_WIDTH = 32 };

#endif
