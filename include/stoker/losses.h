/* losses.h - losses as Keras has them, added to a graph.
 *
 *     stk_error err;
 *     stk_loss loss;
 *     stk_graph *g = NULL;
 *     if (stk_loss_parse("sparse_categorical_crossentropy:from_logits=true", &loss, &err) || stk_graph_new(&g, &err))
 *         puts(err.message);
 *     stk_val logits = stk_g_input(g, "logits", STK_F32, 2, (int64_t[]){32, 10});
 *     stk_val labels = stk_g_input(g, "labels", STK_I32, 1, (int64_t[]){32});
 *     stk_g_output(g, "loss", stk_g_loss(g, &loss, labels, logits, 0, 0));
 *     stk_graph_release(g);
 *
 * A loss is written as its name or class ("mse", "MeanSquaredError"), then options after a colon, or as Keras' JSON object.
 * losses.def lists all of them. Crossentropies of what a softmax or sigmoid has made are taken from what went into it: the
 * same number, but exact where a probability would have become 0 or 1. */
#ifndef STOKER_LOSSES_H
#define STOKER_LOSSES_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum stk_loss_kind {
#define STK_LOSS(NAME, name, keras_class, aliases, defaults, doc) STK_LOSS_##NAME,
#include "losses.def"
    STK_LOSS_COUNT
} stk_loss_kind;

typedef enum stk_reduction {
    STK_REDUCTION_SUM_OVER_BATCH_SIZE, /* mean over all samples */
    STK_REDUCTION_SUM,
    STK_REDUCTION_MEAN_WITH_SAMPLE_WEIGHT, /* divided by the sum of the weights */
    STK_REDUCTION_MEAN                     /* another name of the first one */
} stk_reduction;

typedef struct stk_loss {
    stk_loss_kind kind;
    int64_t reduction; /* stk_reduction */
    bool from_logits;  /* predictions are what goes into a softmax or sigmoid */
    bool apply_class_balancing;
    double label_smoothing;
    double delta, alpha, gamma;
    int64_t ignore_class; /* samples of this class do not count; INT64_MIN: none */
} stk_loss;

STK_API stk_loss stk_loss_defaults(stk_loss_kind kind);
STK_API STK_MUST_USE stk_status stk_loss_parse(const char *text, stk_loss *out, stk_error *err);
STK_API const char *stk_loss_name(stk_loss_kind kind); /* "mean_squared_error" */

/* The loss of each sample: the last axis of y_pred is used up. */
STK_API stk_val stk_g_loss_values(stk_graph *g, const stk_loss *loss, stk_val y_true,
                                  stk_val y_pred);
/* One float32 number. weights: one per sample, or per value of stk_g_loss_values; mask: bool, false = does not count, and the
 * others count for more. 0: none. */
STK_API stk_val stk_g_loss(stk_graph *g, const stk_loss *loss, stk_val y_true, stk_val y_pred,
                           stk_val weights, stk_val mask);

/* Are the labels classes? Inside of a program a wrong number can only make the loss NaN; here it is found with its place.
 * classes: size of the last axis of the predictions. Losses without class numbers accept everything. */
STK_API STK_MUST_USE stk_status stk_loss_check_labels(const stk_loss *loss, int64_t classes,
                                                      const stk_tensor *labels, stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
