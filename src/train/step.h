/* step.h - model + losses + metrics + optimizer -> the graphs of one training, evaluation or prediction step.
 *
 *     stk_step_config c = {.model = model, .optimizer = adam, .seed = 7};
 *     c.losses = (const char *const[]){"sparse_categorical_crossentropy"}, c.nlosses = 1;
 *     c.metrics = (stk_step_metric[]){{.text = "accuracy"}}, c.nmetrics = 1;
 *     stk_step_new(&c, &step, err);
 *     stk_step_init(step, store, err);                                          // weights, optimizer, metrics
 *     stk_step_function(step, STK_STEP_TRAIN, 0, &program_options, &train, err); // program_options.store = store
 *     stk_function_call(train, (stk_tensor *[]){x, y}, &program, err);           // compiled for these shapes, and fed
 *     stk_program_run(program, 1, err);                                         // once per batch; nothing is read
 *     stk_step_results(step, store, values, err);                               // when somebody asks
 *
 * A program's inputs are, in this order: x0 .. (one per input of the model), then but for PREDICT y0 .. (one per output),
 * then w0 .. (sample weights, one per output, when `weighted`). They may come in any number type: bytes are converted
 * inside of the program. PREDICT has outputs y0 ..; the others have "loss", that of the last batch.
 *
 * Sums for loss and metrics are variables of the store ("metrics/..."), so steps follow each other without host work. All
 * programs share them: reset before each epoch and before each evaluation.
 *
 * Layers that draw random numbers count by the program's step: whoever changes programs (the last, smaller batch) or resumes
 * calls stk_program_set_step with the number of batches so far. */
#ifndef STK_TRAIN_STEP_H
#define STK_TRAIN_STEP_H

#include "stoker/graph.h"
#include "stoker/layers.h"
#include "stoker/optim.h"

typedef enum stk_step_mode { STK_STEP_TRAIN, STK_STEP_EVALUATE, STK_STEP_PREDICT } stk_step_mode;

typedef struct stk_step_metric {
    const char *text; /* "accuracy", "auc:curve=pr", or Keras' JSON object */
    int32_t output;   /* of the model */
    bool weighted;    /* counts sample and class weights (Keras' weighted_metrics) */
} stk_step_metric;

typedef struct stk_step_config {
    stk_model *model;         /* built; kept (counted) */
    stk_optimizer *optimizer; /* kept (counted); NULL: no TRAIN */
    int32_t nlosses;          /* 0: only PREDICT; 1: for every output; else one per output */
    const char *const *losses;
    const double *loss_weights; /* NULL: all 1; one per loss */
    int32_t nmetrics;
    const stk_step_metric *metrics;
    int32_t nclass_weights; /* 0: none; weight of class i for models with one output */
    const double *class_weights;
    /* NULL: the model's own. "mixed_float16" also gives the optimizer a dynamic loss scale, as Keras does. */
    const char *policy;
    int64_t seed; /* of initial weights and of layers that draw random numbers */
} stk_step_config;

typedef struct stk_step stk_step; /* immutable, one owner */
STK_MUST_USE stk_status stk_step_new(const stk_step_config *config, stk_step **out, stk_error *err);
void stk_step_release(stk_step *s);
const stk_optimizer *stk_step_optimizer(const stk_step *s); /* with the loss scale; may be NULL */

/* A function whose programs are steps of this mode. The step must live longer than the function. options->store is to be
 * given, so that all functions share it. */
STK_MUST_USE stk_status stk_step_function(stk_step *s, stk_step_mode mode, bool weighted,
                                          const stk_program_options *options, stk_function **out,
                                          stk_error *err);
int32_t stk_step_input_count(const stk_step *s, stk_step_mode mode, bool weighted);
/* The graph alone, for the inputs x (already declared in g): what the function's programs are made of. */
void stk_step_build(const stk_step *s, stk_step_mode mode, bool weighted, stk_graph *g,
                    const stk_val *x);

/* Start values of everything: weights by seed, optimizer, metrics. Weights only: stk_model_init. */
STK_MUST_USE stk_status stk_step_init(const stk_step *s, stk_store *store, stk_error *err);
/* After the last epoch: moving averages become the weights (use_ema); else nothing. */
STK_MUST_USE stk_status stk_step_finish(const stk_step *s, stk_store *store, stk_error *err);

/* Are these labels of an output classes of the model? A program cannot say so, its loss becomes NaN; this names the place. Of
 * shapes that do not fit the model's, which the program refuses, nothing is said. */
STK_MUST_USE stk_status stk_step_check_labels(const stk_step *s, int32_t output,
                                              const stk_tensor *labels, stk_error *err);

/* ---- results: "loss" first, then "<output>_loss" for models with several outputs, then the metrics ------------------ */
int32_t stk_step_result_count(const stk_step *s);
const char *stk_step_result_name(const stk_step *s, int32_t i); /* "loss", "accuracy", "out2_auc" */
/* One number per result since the last reset; a metric of several numbers gives their mean. */
STK_MUST_USE stk_status stk_step_results(const stk_step *s, stk_store *store, double *values,
                                         stk_error *err);
STK_MUST_USE stk_status stk_step_reset(const stk_step *s, stk_store *store, stk_error *err);

#endif
