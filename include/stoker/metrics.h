/* metrics.h - metrics as Keras has them: sums that a program keeps in variables, and the number they make when it is asked for.
 *
 *     stk_error err;
 *     stk_metric accuracy;
 *     stk_graph *g = NULL;
 *     stk_program *p = NULL;
 *     stk_tensor *share = NULL;
 *     if (stk_metric_parse("accuracy", &accuracy, &err) || stk_graph_new(&g, &err)) puts(err.message);
 *     stk_val y_pred = stk_g_input(g, "y_pred", STK_F32, 2, (int64_t[]){32, 10});
 *     stk_val y_true = stk_g_input(g, "y_true", STK_I32, 1, (int64_t[]){32});
 *     stk_g_metric(g, &accuracy, "accuracy", y_true, y_pred, 0, 0);      // variables accuracy/total, accuracy/count
 *     if (stk_program_new(g, NULL, &p, &err) || stk_metric_reset("accuracy", stk_program_store(p), &err))
 *         puts(err.message);
 *     // feed and run, batch by batch; then, whenever somebody wants to know:
 *     if (stk_metric_result(&accuracy, "accuracy", stk_program_store(p), &share, &err)) puts(err.message);
 *     stk_tensor_release(share);
 *     stk_program_release(p);
 *     stk_graph_release(g);
 *
 * A metric is written as its name or class, then options after a colon ("auc:curve=PR"), or as Keras' JSON object;
 * metrics.def and losses.def list the names. */
#ifndef STOKER_METRICS_H
#define STOKER_METRICS_H

#include "losses.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum stk_metric_kind {
#define STK_METRIC(NAME, name, keras_class, aliases, defaults, doc) STK_METRIC_##NAME,
#include "metrics.def"
    STK_METRIC_COUNT
} stk_metric_kind;

typedef struct stk_metric {
    stk_metric_kind kind;
    char name[64];                      /* shown in logs: as it was written, without options */
    double threshold, thresholds, beta; /* < 0: none */
    int64_t k, top_k, class_id, num_thresholds, num_classes, ignore_class; /* INT64_MIN: none */
    int64_t average;          /* 0 none, 1 micro, 2 macro, 3 weighted */
    int64_t curve;            /* 0 ROC, 1 PR */
    int64_t summation_method; /* 0 interpolation, 1 minoring, 2 majoring */
    bool from_logits, multi_label, sparse_y_true, sparse_y_pred;
    stk_loss loss; /* MEAN_LOSS */
} stk_metric;

STK_API stk_metric stk_metric_defaults(stk_metric_kind kind);
STK_API STK_MUST_USE stk_status stk_metric_parse(const char *text, stk_metric *out, stk_error *err);

/* Adds the batch to the sums. prefix: in front of the names of its variables. weights: one per sample or per prediction;
 * mask: bool, false does not count. 0: none. */
STK_API void stk_g_metric(stk_graph *g, const stk_metric *metric, const char *prefix,
                          stk_val y_true, stk_val y_pred, stk_val weights, stk_val mask);
/* A number, a vector (F1 of each class) or a matrix: float32, new for the caller. */
STK_API STK_MUST_USE stk_status stk_metric_result(const stk_metric *metric, const char *prefix,
                                                  stk_store *store, stk_tensor **out,
                                                  stk_error *err);
/* Sums back to 0. */
STK_API STK_MUST_USE stk_status stk_metric_reset(const char *prefix, stk_store *store,
                                                 stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
