/* nn.h - graph builders for neural nets: activations, softmax and cross entropy, norms, random numbers, scans.
 *
 *     stk_graph *g = NULL;
 *     stk_graph_new(&g, NULL);
 *     stk_val x = stk_g_input(g, "x", STK_F32, 2, (int64_t[]){32, 10});
 *     stk_val y = stk_g_input(g, "y", STK_I32, 1, (int64_t[]){32});
 *     stk_val logits = stk_g_dropout(g, stk_g_gelu(g, x, false), 0.1, NULL, NULL);
 *     stk_g_output(g, "loss", stk_g_mean_all(g, stk_g_sparse_softmax_cross_entropy(g, logits, y)));
 *     stk_graph_release(g);
 *
 * The rules of graph.h hold: builders return 0 after the first mistake, the graph keeps the message. Where a value may be
 * left out, 0 (none) leaves it out. All have gradients, and gradients of gradients, unless said otherwise. */
#ifndef STOKER_NN_H
#define STOKER_NN_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- activations (elementwise.def has relu, sigmoid, tanh, softplus, exp) ------------------------------ */
STK_API stk_val stk_g_leaky_relu(stk_graph *g, stk_val x, double slope); /* x > 0 ? x : slope x */
STK_API stk_val stk_g_elu(stk_graph *g, stk_val x, double alpha); /* x > 0 ? x : alpha (e^x - 1) */
STK_API stk_val stk_g_selu(stk_graph *g, stk_val x);              /* 1.0507 elu(x, 1.6733) */
STK_API stk_val stk_g_celu(stk_graph *g, stk_val x,
                           double alpha); /* x > 0 ? x : alpha (e^(x/alpha) - 1) */
STK_API stk_val stk_g_gelu(stk_graph *g, stk_val x, bool approximate); /* x Phi(x); or by tanh */
STK_API stk_val stk_g_silu(stk_graph *g, stk_val x);                   /* x sigmoid(x), "swish" */
STK_API stk_val stk_g_mish(stk_graph *g, stk_val x);                   /* x tanh(softplus(x)) */
STK_API stk_val stk_g_softsign(stk_graph *g, stk_val x);               /* x / (1 + |x|) */
STK_API stk_val stk_g_log_sigmoid(stk_graph *g, stk_val x);            /* -softplus(-x) */
STK_API stk_val stk_g_hard_sigmoid(stk_graph *g, stk_val x);           /* relu6(x + 3) / 6 */
STK_API stk_val stk_g_hard_silu(stk_graph *g, stk_val x);              /* x hard_sigmoid(x) */
STK_API stk_val stk_g_hard_tanh(stk_graph *g, stk_val x);              /* x kept in -1 .. 1 */
STK_API stk_val stk_g_tanh_shrink(stk_graph *g, stk_val x);            /* x - tanh(x) */
STK_API stk_val stk_g_soft_shrink(stk_graph *g, stk_val x,
                                  double threshold); /* towards 0 by threshold */
STK_API stk_val stk_g_hard_shrink(stk_graph *g, stk_val x,
                                  double threshold); /* |x| > threshold ? x : 0 */
STK_API stk_val stk_g_threshold(stk_graph *g, stk_val x, double threshold, double otherwise);
STK_API stk_val stk_g_squareplus(stk_graph *g, stk_val x, double b); /* (x + sqrt(x^2 + b)) / 2 */
STK_API stk_val stk_g_sparse_plus(stk_graph *g, stk_val x); /* 0, (x+1)^2 / 4, x; bends at -1, 1 */
STK_API stk_val stk_g_sparse_sigmoid(stk_graph *g, stk_val x); /* (x + 1) / 2 kept in 0 .. 1 */
STK_API stk_val stk_g_glu(stk_graph *g, stk_val x,
                          int32_t axis); /* half times sigmoid of the other half */
STK_API stk_val stk_g_clip(stk_graph *g, stk_val x, double low, double high);

typedef struct stk_relu_options {
    double negative_slope, max_value, threshold;
} stk_relu_options;
STK_API stk_relu_options stk_relu_options_defaults(void); /* 0, infinity, 0 */
/* max_value from there on; x above threshold; negative_slope (x - threshold) below. */
STK_API stk_val stk_g_relu_general(stk_graph *g, stk_val x, const stk_relu_options *options);

/* ---- softmax and cross entropy --------------------------------------------------------------------------- */
STK_API stk_val stk_g_softmax(stk_graph *g, stk_val x, int32_t axis);
STK_API stk_val stk_g_log_softmax(stk_graph *g, stk_val x, int32_t axis);
/* max(x - threshold, 0) with Keras' threshold: (sum of the running sums that are in the support - 1) / their number. */
STK_API stk_val stk_g_sparsemax(stk_graph *g, stk_val x, int32_t axis);
/* Loss of each row of logits (last axis = classes) against weights of the classes, which need not sum to 1.
 * smoothing: this share of each label is spread evenly over all classes. */
STK_API stk_val stk_g_softmax_cross_entropy(stk_graph *g, stk_val logits, stk_val labels,
                                            double smoothing);
/* The same with class numbers (any integer type). A number that is no class makes the row's loss NaN, so that it is
 * seen, and its gradient 0, so that the weights survive. */
STK_API stk_val stk_g_sparse_softmax_cross_entropy(stk_graph *g, stk_val logits, stk_val labels);
/* By element: -labels log(sigmoid(logits)) - (1 - labels) log(1 - sigmoid(logits)). */
STK_API stk_val stk_g_sigmoid_cross_entropy(stk_graph *g, stk_val logits, stk_val labels);

/* ---- attention ------------------------------------------------------------------------------------------------- */
typedef struct stk_attention_options {
    double scale; /* of the scores; 0: 1 / sqrt(depth) */
    bool causal;  /* query i sees keys 0 .. i only */
    /* bool, broadcastable to [batch, heads, queries, keys]: may the query see the key? 0: all may */
    stk_val mask;
} stk_attention_options;
STK_API stk_attention_options stk_attention_options_defaults(void); /* 0, false, none */
/* softmax(scale q k^T) v for each head: query[batch, queries, heads, depth], key[batch, keys, heads, depth],
 * value[batch, keys, heads, width] -> [batch, queries, heads, width], in one operation that never has more than four million
 * scores in memory.
 * Keys and values may have fewer heads, if their number divides that of the query: each serves several in a row. A query that
 * sees no key takes the mean of all values. */
STK_API stk_val stk_g_attention(stk_graph *g, stk_val query, stk_val key, stk_val value,
                                const stk_attention_options *options);

/* ---- norms -------------------------------------------------------------------------------------------------- */
/* Mean and (biased) variance of each channel (last axis) over all other axes. */
STK_API stk_val stk_g_moments(stk_graph *g, stk_val x, stk_val *variance);
/* Training form: by the batch's own statistics, which it hands out (NULL if not wanted) for moving averages. gamma and
 * beta: one number per channel, or 0. axis: that of the channels; the last one is the fast one. */
STK_API stk_val stk_g_batch_norm(stk_graph *g, stk_val x, stk_val gamma, stk_val beta, int32_t axis,
                                 double eps, stk_val *mean, stk_val *variance);
STK_API stk_val stk_g_batch_norm_infer(stk_graph *g, stk_val x, stk_val gamma, stk_val beta,
                                       stk_val mean, stk_val variance, int32_t axis, double eps);
/* Over the last `axes` axes; gamma and beta of their shape, or 0. */
STK_API stk_val stk_g_layer_norm(stk_graph *g, stk_val x, stk_val gamma, stk_val beta, int32_t axes,
                                 double eps);
STK_API stk_val stk_g_rms_norm(stk_graph *g, stk_val x, stk_val gamma, int32_t axes, double eps);
/* x[batch, ..., channels]; groups must divide channels; groups = channels is instance norm. */
STK_API stk_val stk_g_group_norm(stk_graph *g, stk_val x, stk_val gamma, stk_val beta,
                                 int32_t groups, double eps);
/* x / |x|, with |x| at least eps; n = 0 means all axes. */
STK_API stk_val stk_g_unit_norm(stk_graph *g, stk_val x, int32_t n, const int32_t *axes,
                                double eps);

/* ---- random numbers: no gradient ------------------------------------------------------------------------------
 * Bits depend on seed, stream, counter and the index of the element, on nothing else. */
typedef struct stk_random_options {
    int64_t seed;
    int64_t stream; /* tells random ops apart; -1: the next free number of the graph */
    /* int64 scalar, other bits for each value; 0: the number of the run (stk_g_step) */
    stk_val counter;
} stk_random_options;
STK_API stk_random_options stk_random_options_defaults(void);
STK_API stk_val stk_g_random_uniform(stk_graph *g, stk_dtype dtype, int32_t rank,
                                     const int64_t *shape, double low, double high,
                                     const stk_random_options *options);
STK_API stk_val stk_g_random_normal(stk_graph *g, stk_dtype dtype, int32_t rank,
                                    const int64_t *shape, double mean, double deviation,
                                    const stk_random_options *options);
/* Drawn again until within two deviations of the mean. */
STK_API stk_val stk_g_random_truncated_normal(stk_graph *g, stk_dtype dtype, int32_t rank,
                                              const int64_t *shape, double mean, double deviation,
                                              const stk_random_options *options);
STK_API stk_val stk_g_random_bernoulli(stk_graph *g, stk_dtype dtype, int32_t rank,
                                       const int64_t *shape, double probability,
                                       const stk_random_options *options);
STK_API stk_val stk_g_random_int(stk_graph *g, stk_dtype dtype, int32_t rank, const int64_t *shape,
                                 int64_t low, int64_t high,
                                 const stk_random_options *options); /* low <= x < high */
STK_API stk_val stk_g_random_permutation(stk_graph *g, int64_t n,
                                         const stk_random_options *options); /* int64 */

/* Drops elements with probability `rate` and scales the rest by 1 / (1 - rate). noise_shape (NULL: that of x): a 1 drops
 * whole slices along that axis. The others add noise as the Keras layers of these names do. */
STK_API stk_val stk_g_dropout(stk_graph *g, stk_val x, double rate, const int64_t *noise_shape,
                              const stk_random_options *options);
STK_API stk_val stk_g_alpha_dropout(stk_graph *g, stk_val x, double rate,
                                    const int64_t *noise_shape, const stk_random_options *options);
STK_API stk_val stk_g_gaussian_dropout(stk_graph *g, stk_val x, double rate,
                                       const stk_random_options *options);
STK_API stk_val stk_g_gaussian_noise(stk_graph *g, stk_val x, double deviation,
                                     const stk_random_options *options);

/* ---- scans along an axis: exclusive leaves out the element itself, reverse runs from the end ------------------------ */
STK_API stk_val stk_g_cumsum(stk_graph *g, stk_val x, int32_t axis, bool exclusive, bool reverse);
STK_API stk_val stk_g_cumprod(stk_graph *g, stk_val x, int32_t axis, bool exclusive, bool reverse);
/* y[i] = a[i] y[i-1] + b[i], starting from 0. */
STK_API stk_val stk_g_linear_scan(stk_graph *g, stk_val a, stk_val b, int32_t axis, bool reverse);

#ifdef __cplusplus
}
#endif
#endif
