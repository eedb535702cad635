/* kernels_nn.h - problem structs of the neural-net kernels: softmax, norms, random numbers, scans.
 * Part of kernels.h; the rules stated there hold (no padding, unused fields zero). */
#ifndef STK_DEVICE_KERNELS_NN_H
#define STK_DEVICE_KERNELS_NN_H

#include "base/rng.h"

/* ---- softmax: rows of n elements ------------------------------------------------------------
 * softmax       in x                 out y
 * softmax_grad  in y, dy             out dx */
typedef struct stk_softmax_params {
    int64_t rows, n;
    int32_t log; /* 1: log_softmax */
    int32_t dtype;
} stk_softmax_params;

/* ---- attention: each query of a head looks at all keys -------------------------------------------------------
 * attention       in q, k, v, [mask]              out y, stats
 * attention_grad  in q, k, v, stats, dy, [mask]   out dq, dk, dv
 * q[batch,queries,heads,depth], k[batch,keys,kv_heads,depth], v[batch,keys,kv_heads,width], y[batch,queries,heads,width];
 * heads / kv_heads heads in a row share one of keys and values. stats[batch,heads,2,queries]: the largest score of a query,
 * and 1 / sum of e^(score - largest); with `keep` stats[batch,heads,2+keys,queries], where
 * e^(score - largest) follow, key by key for each STK_ATTENTION_KEPT queries in turn. Where the mask (one byte each) is 0, and with `causal` for keys behind the query, the
 * score is STK_ATTENTION_HIDDEN. Steps of the mask are in elements; 0: the same for all. */
#define STK_ATTENTION_HIDDEN (-1e9)
enum { STK_ATTENTION_KEPT = 64 };
typedef struct stk_attention_params {
    int64_t batch, heads, kv_heads, queries, keys, depth, width;
    int64_t mask_batch, mask_head, mask_key, mask_query; /* mask_query: 0 or 1 */
    double scale;
    int32_t causal, masked, keep, dtype;
} stk_attention_params;

/* ---- xent: cross entropy of softmax(logits) against labels ------------------------------------
 * in logits[rows,n], labels          out loss[rows], grad[rows,n] = d loss / d logits
 * label is the logits' dtype: labels[rows,n] are weights of the classes;
 * label is int32 or int64: labels[rows] are class numbers, and one outside 0..n-1 gives loss NaN, grad 0. */
typedef struct stk_xent_params {
    int64_t rows, n;
    int32_t dtype, label;
} stk_xent_params;

/* ---- moments and column sums: [rows, n] -> [n] -----------------------------------------------------
 * moments       in x                 out mean, variance (divided by rows)
 * column_sums   in dy, x, mean       out sum of dy, sum of dy * (x - mean)
 * dtype is that of dy and x; what has one number per column is float32 where that is bfloat16. */
typedef struct stk_moments_params {
    int64_t rows, n;
    int64_t dtype;
} stk_moments_params;

/* ---- row_norm: every row of n elements to mean 0 and variance 1 -----------------------------------
 * row_norm      in x, [gamma], [beta]               out y, [mean], rstd
 * row_norm_grad in dy, x, [gamma], [mean], rstd     out dx, dgamma, [dbeta]
 * mean and dbeta are there when center is 1; center 0 is the root-mean-square norm. */
typedef struct stk_row_norm_params {
    int64_t rows, n;
    double eps;
    int32_t center, gamma, beta, dtype;
} stk_row_norm_params;

/* ---- group_norm: x[images, rows, channels], channels in equal groups --------------------------------
 * group_norm       in x, gamma, beta                out y, mean[images,groups], rstd[images,groups]
 * group_norm_grad  in dy, x, gamma, mean, rstd      out dx, dgamma, dbeta */
typedef struct stk_group_norm_params {
    int64_t images, rows, channels, groups;
    double eps;
    int64_t dtype;
} stk_group_norm_params;

/* ---- random: element i is a function of (seed, stream, counter, i) only -------------------------------
 * random        in counter (int64)   out count elements
 * permutation   in counter (int64)   out 0..count-1 in random order, int64 */
typedef enum stk_random_kind {
    STK_RANDOM_UNIFORM,          /* [a, b) */
    STK_RANDOM_NORMAL,           /* mean a, standard deviation b */
    STK_RANDOM_TRUNCATED_NORMAL, /* the same, but never further than 2 b from a */
    STK_RANDOM_BERNOULLI,        /* 1 with probability a, else 0 */
    STK_RANDOM_INT,              /* low <= x < high */
    STK_RANDOM_KINDS
} stk_random_kind;

typedef struct stk_random_params {
    int64_t count, seed, stream;
    int64_t low, high;
    double a, b;
    int32_t kind, dtype;
} stk_random_params;

/* The stream of one launch. Device-neutral, so that every device draws the same numbers. */
static inline stk_rng stk_random_stream(const stk_random_params *p, int64_t counter)
{
    uint64_t seed = stk_mix64((uint64_t)p->seed + 0x2545f4914f6cdd1du) ^
                    (uint64_t)p->stream * 0x9e3779b97f4a7c15u;
    return (stk_rng){.seed = seed, .stream = (uint64_t)counter};
}

/* ---- scan: along n of [outer, n, inner] -----------------------------------------------------------------
 * sum, prod     in x                 out running sum or product
 * linear        in a, b              out y[i] = a[i] * y[i-1] + b[i], y[-1] = 0 */
typedef enum stk_scan_kind { STK_SCAN_SUM, STK_SCAN_PROD, STK_SCAN_LINEAR } stk_scan_kind;

typedef struct stk_scan_params {
    int64_t outer, n, inner;
    int32_t kind, exclusive, reverse, dtype;
} stk_scan_params;

#endif
