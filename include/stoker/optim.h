/* optim.h - optimizers and schedules of the learning rate, as Keras has them, added to a graph.
 *
 *     stk_error err;
 *     stk_graph *g = NULL;
 *     stk_optimizer *adam = NULL;
 *     if (stk_graph_new(&g, &err) || stk_optimizer_parse("adam:lr=1e-2,clipnorm=1", &adam, &err)) puts(err.message);
 *     stk_val w = stk_g_variable(g, "w", STK_F32, 1, (int64_t[]){3}), dw;
 *     stk_val loss = stk_g_sum_all(g, stk_g_square(g, w));
 *     stk_g_gradients(g, loss, 1, &w, &dw);
 *     const char *name = "w";
 *     stk_optimizer_apply(adam, g, &(stk_update){.n = 1, .variables = &w, .gradients = &dw, .names = &name});
 *
 *     stk_program *p = NULL;
 *     if (stk_program_new(g, NULL, &p, &err) ||
 *         stk_optimizer_init(adam, stk_program_store(p), 1, &name, &err) || stk_program_run(p, 100, &err))
 *         puts(err.message);
 *     if (stk_optimizer_set_rate(adam, stk_program_store(p), 1e-3, &err)) puts(err.message); // no new program
 *     stk_program_release(p);
 *     stk_optimizer_release(adam);
 *     stk_graph_release(g);
 *
 * An optimizer is written as text or as Keras writes it:
 *
 *     adam                                          all defaults
 *     sgd:lr=0.1,momentum=0.9,nesterov=true         options by Keras' names; lr = learning_rate
 *     adamw:lr=1e-3,schedule=cosine/1000/alpha=0.1  schedule: name / decay_steps / name=value ...
 *     sgd:schedule=piecewise/100:0.1/200:0.01/0.001 0.1 up to step 100, then 0.01 up to 200, then 0.001
 *     {"class_name": "Adam", "config": {"learning_rate": 0.001}}
 *
 * It owns no numbers. Its state lives in the store beside the weights, under stable names, so that a checkpoint of the store
 * is complete:
 *
 *     adam/iteration       int64     updates so far
 *     adam/learning_rate   float32   the rate of the next update
 *     adam/<weight>/<slot>           momentum, velocity ... as Keras names them
 *
 * The update of all weights is one pass over memory: elementwise graph that the compiler joins into one launch. */
#ifndef STOKER_OPTIM_H
#define STOKER_OPTIM_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum stk_optimizer_kind {
#define STK_OPTIMIZER(NAME, name, keras_class, defaults, doc) STK_OPTIMIZER_##NAME,
#include "optimizers.def"
    STK_OPTIMIZER_COUNT
} stk_optimizer_kind;

typedef enum stk_schedule_kind {
#define STK_SCHEDULE(NAME, name, keras_class, defaults, doc) STK_SCHEDULE_##NAME,
#include "schedules.def"
    STK_SCHEDULE_COUNT
} stk_schedule_kind;

enum { STK_SCHEDULE_PIECES = 32 };

/* The learning rate over the steps; its first value is the optimizer's learning_rate. */
typedef struct stk_schedule {
    stk_schedule_kind kind; /* CONSTANT: none */
    double decay_steps;     /* > 0; of the first cosine for cosine_restarts */
    double decay_rate;
    bool staircase, cycle;
    double end_learning_rate, power;    /* polynomial */
    double alpha;                       /* cosine: the last rate as a share of the first */
    double warmup_steps, warmup_target; /* warmup_target < 0: no warm-up */
    double t_mul, m_mul;
    int32_t pieces; /* piecewise: number of values; boundaries are one fewer */
    double boundary[STK_SCHEDULE_PIECES], value[STK_SCHEDULE_PIECES];
} stk_schedule;

typedef struct stk_optimizer_options {
    stk_optimizer_kind kind;
    char name[48]; /* in front of the names of its variables; "" = that of the kind */
    double learning_rate;
    stk_schedule schedule;
    /* of single kinds, see optimizers.def */
    double momentum, beta_1, beta_2, rho, epsilon, initial_accumulator_value;
    bool nesterov, amsgrad, centered;
    /* of all kinds; 0 = none. Of the three that clip only one may be set. */
    double weight_decay, clipnorm, global_clipnorm, clipvalue;
    bool use_ema; /* keeps the moving average of the weights */
    double ema_momentum;
    int64_t ema_overwrite_frequency; /* updates between which weights become their average */
    int64_t gradient_accumulation_steps;
    double loss_scale_factor; /* constant; gradients are divided by it */
    /* LossScaleOptimizer: the loss is scaled by a power of two that halves when a gradient is not finite (that update is
     * left out) and doubles after dynamic_growth_steps good ones. */
    bool dynamic_loss_scale;
    double initial_scale;
    int64_t dynamic_growth_steps;
} stk_optimizer_options;

STK_API stk_optimizer_options stk_optimizer_defaults(stk_optimizer_kind kind);

typedef struct stk_optimizer stk_optimizer; /* counted, immutable */
STK_API STK_MUST_USE stk_status stk_optimizer_new(const stk_optimizer_options *options,
                                                  stk_optimizer **out, stk_error *err);
STK_API STK_MUST_USE stk_status stk_optimizer_parse(const char *text, stk_optimizer **out,
                                                    stk_error *err);
STK_API stk_optimizer *stk_optimizer_retain(stk_optimizer *o);
STK_API void stk_optimizer_release(stk_optimizer *o);
STK_API const stk_optimizer_options *stk_optimizer_get_options(const stk_optimizer *o);
/* Keras' form; free it with stk_text_free. */
STK_API STK_MUST_USE stk_status stk_optimizer_to_json(const stk_optimizer *o, char **out,
                                                      stk_error *err);
STK_API const char *stk_optimizer_name(stk_optimizer_kind kind); /* "adam" */
STK_API const char *stk_schedule_name(stk_schedule_kind kind);   /* "cosine" */

/* ---- in a graph ---------------------------------------------------------------------------------------------------- */
/* The loss as it is to be differentiated: times the scale, when the optimizer has one. */
STK_API stk_val stk_optimizer_scale_loss(const stk_optimizer *o, stk_graph *g, stk_val loss);

typedef struct stk_update {
    int32_t n;
    const stk_val *variables, *gradients; /* a gradient of 0 (none) leaves its variable alone */
    const char *const *names;             /* of the variables in the store */
    /* Optional: what is updated where it is not the variable's own value; 0 = own. */
    const stk_val *values;
    /* Optional: what becomes of a new value before it is stored (constraints). */
    stk_val (*constrain)(void *context, stk_graph *g, int32_t index, stk_val value);
    void *context;
} stk_update;
/* Adds one update of all variables, and of the optimizer's own, to the graph. */
STK_API void stk_optimizer_apply(const stk_optimizer *o, stk_graph *g, const stk_update *update);
/* Arrays of the size of each weight that it keeps beside it: 2 for Adam, 0 for plain SGD. */
STK_API int32_t stk_optimizer_slots(const stk_optimizer *o);

/* ---- in a store ---------------------------------------------------------------------------------------------------- */
/* Start values of all the optimizer's variables; those that a program has made already are reset. The weights must be in the
 * store. To be called once before training, and not at all when a checkpoint is loaded. */
STK_API STK_MUST_USE stk_status stk_optimizer_init(const stk_optimizer *o, stk_store *store,
                                                   int32_t n, const char *const *names,
                                                   stk_error *err);
/* The rate of the next update. An optimizer with a schedule refuses to be set. */
STK_API STK_MUST_USE stk_status stk_optimizer_rate(const stk_optimizer *o, stk_store *store,
                                                   double *rate, stk_error *err);
STK_API STK_MUST_USE stk_status stk_optimizer_set_rate(const stk_optimizer *o, stk_store *store,
                                                       double rate, stk_error *err);
STK_API STK_MUST_USE stk_status stk_optimizer_iterations(const stk_optimizer *o, stk_store *store,
                                                         int64_t *iterations, stk_error *err);
/* Tells all variables of the optimizer for these weights, in the order in which Keras lists and stores them: the name in the
 * store, the weight it belongs to (-1: none) and its own last word. A visit that fails ends it. */
typedef stk_status stk_optimizer_visit(void *context, const char *name, int32_t weight,
                                       const char *slot, stk_error *err);
STK_API STK_MUST_USE stk_status stk_optimizer_variables(const stk_optimizer *o, int32_t n,
                                                        const char *const *names,
                                                        stk_optimizer_visit *visit, void *context,
                                                        stk_error *err);
/* use_ema: puts the averages into the weights, as Keras does when training ends; otherwise does nothing. */
STK_API STK_MUST_USE stk_status stk_optimizer_finish(const stk_optimizer *o, stk_store *store,
                                                     int32_t n, const char *const *names,
                                                     stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
