/* The rows of the selftest. Sizes stand at the edges of vectors (4, 8, 16 lanes), of tiles and of the blocks that kernels
 * pack; one element and one row less or more than a whole number of them. */
#include "graph/selftest/cases.h"

#include "base/memory.h"
#include "stoker/image.h"
#include "stoker/nn.h"
#include "stoker/recurrent.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- inputs -------------------------------------------------------------------------------------------------------- */

static double draw(stk_case_graph *c)
{
    c->random = c->random * 6364136223846793005u + 1442695040888963407u;
    return (double)(c->random >> 11) * 0x1p-53;
}

/* An input of numbers between lo and hi, whole ones unless the type is real. */
static stk_val input(stk_case_graph *c, stk_dtype dtype, double lo, double hi, int32_t rank,
                     const int64_t *shape)
{
    char name[16];
    int32_t i = c->inputs;
    bool whole = dtype != STK_F32 && dtype != STK_F64 && dtype != STK_F16 && dtype != STK_BF16;
    if (c->status == STK_OK) c->status = stk_tensor_new(dtype, rank, shape, &c->tensor[i], NULL);
    for (int64_t k = 0; c->status == STK_OK && k < stk_tensor_count(c->tensor[i]); k++) {
        double v = whole ? floor(lo + (hi - lo + 1) * draw(c)) : lo + (hi - lo) * draw(c);
        c->status = stk_tensor_set(c->tensor[i], k, v, NULL);
    }
    if (c->status != STK_OK) return 0;
    snprintf(name, sizeof name, "x%d", i);
    c->in[i] = stk_g_input(c->g, name, dtype, rank, shape);
    return c->in[c->inputs++];
}
#define SHAPE(...)                                                                                 \
    sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[]) { __VA_ARGS__ }
#define REAL(...)        input(c, c->real, -1, 1, SHAPE(__VA_ARGS__))
#define INDEX(most, ...) input(c, STK_I64, 0, (double)(most), SHAPE(__VA_ARGS__))

/* ---- elementwise, moves, reductions, products ------------------------------------------------------------------ */

/* n: operation, elements, operands */
static stk_val elementwise(stk_case_graph *c, const int64_t *n)
{
    stk_val in[3] = {0};
    bool whole =
        c->real != STK_F32 && c->real != STK_F64 && c->real != STK_F16 && c->real != STK_BF16;
    bool select = n[0] == STK_OP_SELECT, shift = n[0] == STK_OP_SHL || n[0] == STK_OP_SHR;
    for (int64_t i = 0; i < n[2]; i++)
        in[i] = select && i == 0 ? input(c, STK_BOOL, 0, 1, SHAPE(n[1]))
                                 : input(c, c->real,
                                         c->real == STK_BOOL || shift ? 0
                                         : whole                      ? -9
                                                                      : -3,
                                         c->real == STK_BOOL ? 1
                                         : whole             ? 9
                                                             : 3,
                                         SHAPE(n[1]));
    c->exact = whole;
    c->tolerance = c->real == STK_F32 ? 8e-6 : 0;
    return stk_g_apply(c->g, (stk_op)n[0], (int32_t)n[2], in, NULL);
}

/* n: rows, columns. Bias, scalar, strided operand and a cast in one chain. */
static stk_val broadcasts(stk_case_graph *c, const int64_t *n)
{
    stk_graph *g = c->g;
    stk_val x = REAL(n[0], n[1]), bias = REAL(n[1]), column = REAL(n[0], 1);
    stk_val y = stk_g_relu(g, stk_g_add(g, x, bias));
    y = stk_g_sub(g, stk_g_mul(g, y, column), stk_g_scalar(g, c->real, 0.25));
    return stk_g_cast(g, stk_g_cast(g, y, STK_F32), c->real);
}

/* n: three sizes, the permutation */
static stk_val transpose(stk_case_graph *c, const int64_t *n)
{
    c->exact = true;
    return stk_g_transpose(c->g, REAL(n[0], n[1], n[2]),
                           (const int32_t[]){(int32_t)n[3], (int32_t)n[4], (int32_t)n[5]});
}

/* n: rows, columns, step. A window, padding and a concatenation. */
static stk_val moves(stk_case_graph *c, const int64_t *n)
{
    stk_graph *g = c->g;
    stk_val x = REAL(n[0], n[1]), y = REAL(n[0], 3);
    stk_val part =
        stk_g_slice(g, x, (const int64_t[]){0, 0},
                    (const int64_t[]){n[0], (n[1] + n[2] - 1) / n[2]}, (const int64_t[]){1, n[2]});
    stk_val wide = stk_g_pad(g, part, (const int64_t[]){1, 2}, (const int64_t[]){0, 1}, 0);
    stk_val tall = stk_g_pad(g, y, (const int64_t[]){1, 0}, (const int64_t[]){0, 0}, 0);
    c->exact = true;
    return stk_g_concat(g, 2, (const stk_val[]){wide, tall}, 1);
}

static stk_val iota(stk_case_graph *c, const int64_t *n)
{
    c->exact = true;
    return stk_g_iota(c->g, c->real, SHAPE(n[0], n[1]), 1);
}

typedef stk_val reduce_fn(stk_graph *g, stk_val x, int32_t n, const int32_t *axes, bool keep);
/* n: which, outer, n, inner */
static stk_val reduce(stk_case_graph *c, const int64_t *n)
{
    static reduce_fn *const by[] = {stk_g_sum,        stk_g_reduce_prod, stk_g_reduce_max,
                                    stk_g_reduce_min, stk_g_any,         stk_g_all};
    bool logic = n[0] == 4 || n[0] == 5, real = c->real == STK_F32 || c->real == STK_F64;
    if (logic != (c->real == STK_BOOL)) return 0;
    stk_val x = input(c, c->real,
                      logic       ? 0
                      : n[0] == 1 ? (real ? 0.97 : -3)
                                  : -9,
                      logic       ? 1
                      : n[0] == 1 ? (real ? 1.03 : 3)
                                  : 9,
                      SHAPE(n[1], n[2], n[3]));
    c->exact = !real && c->real != STK_F16 && c->real != STK_BF16;
    c->tolerance = c->real == STK_F16 || c->real == STK_BF16 ? 0.05 : 0;
    return by[n[0]](c->g, x, 1, (const int32_t[]){1}, false);
}

static stk_val arg_reduce(stk_case_graph *c, const int64_t *n)
{
    stk_val x = input(c, c->real, -9, 9, SHAPE(n[1], n[2], n[3]));
    c->exact = true;
    return n[0] ? stk_g_argmin(c->g, x, 1) : stk_g_argmax(c->g, x, 1);
}

/* n: m, n, k, batch, ta, tb */
static stk_val matmul(stk_case_graph *c, const int64_t *n)
{
    stk_val a = n[4] ? REAL(n[3], n[2], n[0]) : REAL(n[3], n[0], n[2]);
    stk_val b = n[5] ? REAL(n[3], n[1], n[2]) : REAL(n[3], n[2], n[1]);
    return stk_g_matmul_t(c->g, a, b, n[4] != 0, n[5] != 0);
}

/* ---- index ------------------------------------------------------------------------------------------------------- */

/* n: rows, width, picked */
static stk_val gather(stk_case_graph *c, const int64_t *n)
{
    return stk_g_gather(c->g, REAL(n[0], n[1]), INDEX(n[0] - 1, n[2]), 0);
}
static stk_val scatter(stk_case_graph *c, const int64_t *n)
{
    stk_val base = REAL(n[0], n[1]), at = INDEX(n[0] - 1, n[2]);
    return stk_g_scatter_add(c->g, base, at, REAL(n[2], n[1]), 0);
}
static stk_val gather_nd(stk_case_graph *c, const int64_t *n)
{
    return stk_g_gather_nd(c->g, REAL(n[0], n[0], n[1]), INDEX(n[0] - 1, n[2], 2), 0);
}
static stk_val take_along(stk_case_graph *c, const int64_t *n)
{
    return stk_g_take_along(c->g, REAL(n[0], n[1]), INDEX(n[1] - 1, n[0], n[2]), 1);
}
static stk_val one_hot(stk_case_graph *c, const int64_t *n)
{
    c->exact = true;
    return stk_g_one_hot(c->g, INDEX(n[1] - 1, n[0]), n[1], -1, c->real, 1, 0);
}
static stk_val sort(stk_case_graph *c, const int64_t *n)
{
    c->exact = true;
    return n[2] ? stk_g_top_k(c->g, REAL(n[0], n[1]), n[2], 1, NULL)
                : stk_g_sort(c->g, REAL(n[0], n[1]), 1, n[3] != 0);
}

/* ---- convolution, pooling, images ------------------------------------------------------------------------------------ */

/* n: images, height, width, in, out, kernel, stride, dilation, groups, same */
static stk_val conv(stk_case_graph *c, const int64_t *n)
{
    stk_conv_options o = stk_conv_options_defaults();
    for (int i = 0; i < 3; i++) o.stride[i] = n[6], o.dilation[i] = n[7];
    o.groups = n[8];
    o.padding = n[9] ? STK_PADDING_SAME : STK_PADDING_VALID;
    stk_val x = REAL(n[0], n[1], n[2], n[3]), w = REAL(n[5], n[5], n[3] / n[8], n[4]);
    /* Tiles of 6 points lose some bits (vec/winograd.h). */
    c->tolerance = c->real == STK_F32 ? 2e-4 : 0;
    return stk_g_conv(c->g, x, w, &o);
}

/* n: images, height, width, channels, kernel, stride */
static stk_val depthwise(stk_case_graph *c, const int64_t *n)
{
    stk_conv_options o = stk_conv_options_defaults();
    for (int i = 0; i < 3; i++) o.stride[i] = n[5];
    o.padding = STK_PADDING_SAME;
    stk_val x = REAL(n[0], n[1], n[2], n[3]), w = REAL(n[4], n[4], n[3], 1);
    return stk_g_depthwise_conv(c->g, x, w, &o);
}

/* n: images, height, width, channels, window, stride, same, mean */
static stk_val pool(stk_case_graph *c, const int64_t *n)
{
    stk_pool_options o = stk_pool_options_defaults();
    for (int i = 0; i < 3; i++) o.window[i] = n[4], o.stride[i] = n[5];
    o.padding = n[6] ? STK_PADDING_SAME : STK_PADDING_VALID;
    stk_val x = REAL(n[0], n[1], n[2], n[3]);
    return n[7] ? stk_g_avg_pool(c->g, x, &o) : stk_g_max_pool(c->g, x, &o);
}

/* The gradient of a maximum as a function of its own: its gradient picks values where the maxima were. */
static stk_val pool_slope(stk_case_graph *c, const int64_t *n)
{
    stk_val x = REAL(n[0], n[1], n[2], n[3]), d = 0;
    stk_val y = stk_g_max_pool(c->g, x, NULL);
    stk_g_gradients(c->g, stk_g_sum_all(c->g, stk_g_mul(c->g, y, stk_g_square(c->g, y))), 1, &x,
                    &d);
    return d;
}

/* n: images, height, width, channels, new height, new width, kind, antialias */
static stk_val resize(stk_case_graph *c, const int64_t *n)
{
    return stk_g_image_resize(c->g, REAL(n[0], n[1], n[2], n[3]), n[4], n[5], (stk_resize_kind)n[6],
                              n[7] != 0);
}

/* n: images, height, width, channels, bilinear */
static stk_val project(stk_case_graph *c, const int64_t *n)
{
    stk_project_options o = stk_project_options_defaults();
    stk_val x = REAL(n[0], n[1], n[2], n[3]);
    stk_val by = input(c, STK_F32, -0.1, 0.1, SHAPE(n[0], 8));
    return stk_g_image_project(c->g, x, by, &o);
}

/* ---- rows: softmax, norms, scans --------------------------------------------------------------------------------------- */

/* n: rows, columns, logarithm */
static stk_val softmax(stk_case_graph *c, const int64_t *n)
{
    stk_val x = input(c, c->real, -4, 4, SHAPE(n[0], n[1]));
    return n[2] ? stk_g_log_softmax(c->g, x, 1) : stk_g_softmax(c->g, x, 1);
}
/* n: batch, queries, keys, heads, heads of keys, size, how (1 causal, 2 masked, 3 both) */
static stk_val attention(stk_case_graph *c, const int64_t *n)
{
    stk_val q = REAL(n[0], n[1], n[3], n[5]), k = REAL(n[0], n[2], n[4], n[5]);
    stk_attention_options o = {.causal = n[6] & 1};
    if (n[6] & 2) o.mask = input(c, STK_BOOL, 0, 1, SHAPE(n[0], 1, n[1], n[2]));
    c->tolerance = c->real == STK_F32 ? 2e-4 : 0;
    return stk_g_attention(c->g, q, k, REAL(n[0], n[2], n[4], n[5]), &o);
}
/* n: rows, columns, sparse */
static stk_val cross_entropy(stk_case_graph *c, const int64_t *n)
{
    stk_val x = input(c, c->real, -4, 4, SHAPE(n[0], n[1]));
    if (n[2]) return stk_g_sparse_softmax_cross_entropy(c->g, x, INDEX(n[1] - 1, n[0]));
    return stk_g_softmax_cross_entropy(c->g, x, input(c, c->real, 0, 1, SHAPE(n[0], n[1])), 0);
}
/* n: rows, columns, which */
static stk_val norm(stk_case_graph *c, const int64_t *n)
{
    stk_graph *g = c->g;
    stk_val x = n[2] == 2 ? REAL(n[0], 5, n[1]) : REAL(n[0], n[1]);
    stk_val gamma = REAL(n[1]), beta = REAL(n[1]);
    c->tolerance = c->real == STK_F32 ? 2e-4 : 0;
    switch (n[2]) {
    case 0: return stk_g_layer_norm(g, x, gamma, beta, 1, 1e-3);
    case 1: return stk_g_rms_norm(g, x, gamma, 1, 1e-3);
    case 2: return stk_g_group_norm(g, x, gamma, beta, (int32_t)n[3], 1e-3);
    default: return stk_g_batch_norm(g, x, gamma, beta, 1, 1e-3, NULL, NULL);
    }
}
/* n: outer, length, inner, which, reverse */
static stk_val scan(stk_case_graph *c, const int64_t *n)
{
    stk_val x = REAL(n[0], n[1], n[2]);
    if (n[3] == 0) return stk_g_cumsum(c->g, x, 1, false, n[4] != 0);
    if (n[3] == 1) return stk_g_cumprod(c->g, x, 1, true, n[4] != 0);
    return stk_g_linear_scan(c->g, x, REAL(n[0], n[1], n[2]), 1, n[4] != 0);
}
/* n: batch, time, in, units, kind (0 lstm, 1 gru, 2 gru with the reset gate in front), reverse */
static stk_val rnn(stk_case_graph *c, const int64_t *n)
{
    stk_rnn_options o = stk_rnn_options_defaults();
    int64_t gates = n[4] ? 3 : 4;
    o.reverse = n[5] != 0;
    o.reset_after = n[4] != 2;
    stk_val x = REAL(n[0], n[1], n[2]), w = REAL(n[2], gates * n[3]), u = REAL(n[3], gates * n[3]);
    stk_val b = n[4] == 1 ? REAL(2, gates * n[3]) : REAL(gates * n[3]);
    c->tolerance = c->real == STK_F32 ? 2e-4 : 0;
    return (n[4] ? stk_g_gru : stk_g_lstm)(c->g, x, w, u, b, &o).sequence;
}
/* n: elements, distribution */
static stk_val random_numbers(stk_case_graph *c, const int64_t *n)
{
    stk_random_options o = {.seed = 7, .stream = 1};
    c->exact = true;
    switch (n[1]) {
    case 0: return stk_g_random_uniform(c->g, c->real, SHAPE(n[0]), -1, 1, &o);
    case 1: return stk_g_random_normal(c->g, c->real, SHAPE(n[0]), 0, 1, &o);
    case 2: return stk_g_random_truncated_normal(c->g, c->real, SHAPE(n[0]), 0, 1, &o);
    case 3: return stk_g_random_bernoulli(c->g, c->real, SHAPE(n[0]), 0.3, &o);
    case 4: return stk_g_random_int(c->g, STK_I32, SHAPE(n[0]), -5, 100, &o);
    default: return stk_g_random_permutation(c->g, n[0], &o);
    }
}

/* ---- the table -------------------------------------------------------------------------------------------------------- */

#define F32 STK_F32, true
#define F64 STK_F64, true
static const stk_case ROWS[] = {
    {"broadcasts", broadcasts, {1, 1}, F32},
    {"broadcasts", broadcasts, {3, 17}, F32},
    {"broadcasts", broadcasts, {33, 129}, F32},
    {"broadcasts", broadcasts, {300, 400}, F32},
    {"broadcasts", broadcasts, {9, 65}, STK_F16, false},
    {"broadcasts", broadcasts, {9, 65}, STK_BF16, false},
    {"broadcasts", broadcasts, {9, 65}, F64},
    {"transpose", transpose, {5, 7, 9, 2, 0, 1}, STK_F32, false},
    {"transpose", transpose, {33, 4, 65, 0, 2, 1}, STK_F32, false},
    {"transpose", transpose, {3, 17, 31, 1, 0, 2}, STK_U8, false},
    {"transpose", transpose, {64, 8, 16, 2, 1, 0}, STK_F64, false},
    {"moves", moves, {1, 1, 1}, STK_F32, false},
    {"moves", moves, {7, 33, 2}, STK_F32, false},
    {"moves", moves, {100, 257, 3}, STK_I16, false},
    {"iota", iota, {5, 33}, STK_F32, false},
    {"iota", iota, {100, 257}, STK_I32, false},
    {"matmul", matmul, {1, 1, 1, 1, 0, 0}, F32},
    {"matmul", matmul, {2, 3, 5, 1, 0, 0}, F32},
    {"matmul", matmul, {7, 15, 9, 1, 0, 1}, F32},
    {"matmul", matmul, {8, 16, 16, 1, 1, 0}, F32},
    {"matmul", matmul, {13, 17, 33, 1, 1, 1}, F32},
    {"matmul", matmul, {10, 128, 100, 1, 0, 0}, F32},
    {"matmul", matmul, {1, 300, 64, 1, 0, 0}, F32},
    {"matmul", matmul, {65, 1, 47, 1, 0, 0}, F32},
    {"matmul", matmul, {33, 65, 260, 1, 0, 0}, F32},
    {"matmul", matmul, {129, 97, 513, 1, 0, 1}, F32},
    {"matmul", matmul, {96, 80, 1100, 1, 1, 0}, F32},
    {"matmul", matmul, {80, 97, 70, 3, 0, 1}, F32},
    {"matmul", matmul, {3, 5, 7, 9, 0, 0}, F32},
    {"matmul", matmul, {16, 31, 24, 5, 1, 0}, F32},
    {"matmul", matmul, {9, 17, 33, 1, 0, 0}, F64},
    {"matmul", matmul, {33, 31, 300, 2, 1, 1}, F64},
    {"matmul", matmul, {9, 17, 33, 1, 0, 0}, STK_F16, false},
    {"matmul", matmul, {33, 40, 65, 1, 1, 0}, STK_BF16, false},
    {"matmul", matmul, {65, 97, 513, 1, 0, 1}, STK_BF16, true},
    {"matmul", matmul, {48, 64, 1100, 1, 1, 0}, STK_BF16, false},
    {"matmul", matmul, {31, 33, 35, 3, 0, 0}, STK_BF16, true},
    {"gather", gather, {10, 1, 7}, F32},
    {"gather", gather, {50, 33, 20}, F32},
    {"scatter", scatter, {10, 1, 30}, F32},
    {"scatter", scatter, {50, 17, 99}, F32},
    {"gather_nd", gather_nd, {6, 5, 11}, F32},
    {"take_along", take_along, {7, 33, 5}, F32},
    {"one_hot", one_hot, {33, 17}, STK_F32, false},
    {"sort", sort, {3, 1, 0, 0}, STK_F32, false},
    {"sort", sort, {5, 33, 0, 1}, STK_F32, false},
    {"sort", sort, {4, 257, 9, 0}, STK_F64, false},
    {"conv", conv, {1, 1, 1, 1, 1, 1, 1, 1, 1, 0}, F32},
    {"conv", conv, {2, 5, 7, 3, 4, 3, 1, 1, 1, 1}, F32},
    {"conv", conv, {1, 9, 9, 8, 16, 3, 1, 1, 1, 0}, F32},
    {"conv", conv, {3, 8, 8, 16, 33, 3, 1, 1, 1, 1}, F32},
    {"conv", conv, {2, 11, 13, 5, 9, 3, 2, 1, 1, 1}, F32},
    {"conv", conv, {2, 10, 10, 4, 6, 3, 1, 2, 1, 1}, F32},
    {"conv", conv, {2, 8, 8, 8, 12, 3, 1, 1, 4, 1}, F32},
    {"conv", conv, {4, 7, 7, 17, 65, 1, 1, 1, 1, 0}, F32},
    {"conv", conv, {2, 14, 14, 32, 32, 3, 1, 1, 1, 1}, F32},
    {"conv", conv, {2, 12, 12, 3, 64, 7, 2, 1, 1, 1}, F32},
    {"conv", conv, {2, 5, 7, 3, 4, 3, 1, 1, 1, 1}, F64},
    {"conv", conv, {3, 8, 8, 16, 33, 3, 1, 1, 1, 1}, STK_BF16, true},
    {"conv", conv, {2, 14, 14, 32, 64, 3, 1, 1, 1, 1}, STK_BF16, true},
    {"conv", conv, {2, 11, 13, 18, 20, 3, 2, 1, 1, 1}, STK_BF16, true},
    {"conv", conv, {4, 7, 7, 34, 66, 1, 1, 1, 1, 0}, STK_BF16, true},
    {"depthwise", depthwise, {2, 7, 9, 1, 3, 1}, F32},
    {"depthwise", depthwise, {2, 9, 9, 17, 3, 1}, F32},
    {"depthwise", depthwise, {1, 12, 12, 40, 5, 2}, F32},
    {"pool", pool, {2, 5, 7, 1, 2, 2, 0, 0}, F32},
    {"pool", pool, {2, 8, 8, 16, 2, 2, 0, 0}, F32},
    {"pool", pool, {3, 9, 11, 17, 3, 2, 1, 0}, F32},
    {"pool", pool, {1, 20, 20, 9, 17, 1, 1, 0}, F32},
    {"pool", pool, {2, 8, 8, 33, 2, 2, 0, 1}, F32},
    {"pool", pool, {2, 9, 7, 8, 3, 1, 1, 1}, F32},
    {"pool_slope", pool_slope, {2, 6, 8, 9}, F32},
    {"resize", resize, {1, 7, 9, 3, 14, 20, STK_RESIZE_BILINEAR, 0}, F32},
    {"resize", resize, {2, 16, 16, 4, 7, 5, STK_RESIZE_BILINEAR, 1}, F32},
    {"resize", resize, {1, 9, 9, 1, 17, 4, STK_RESIZE_NEAREST, 0}, F32},
    {"resize", resize, {1, 12, 10, 5, 23, 21, STK_RESIZE_BICUBIC, 0}, F32},
    {"project", project, {2, 9, 11, 3, 1}, F32},
    {"project", project, {1, 16, 16, 17, 1}, F32},
    {"softmax", softmax, {3, 1, 0}, F32},
    {"softmax", softmax, {5, 3, 0}, F32},
    {"softmax", softmax, {7, 10, 0}, F32},
    {"softmax", softmax, {4, 17, 1}, F32},
    {"softmax", softmax, {33, 64, 0}, F32},
    {"softmax", softmax, {9, 257, 1}, F32},
    {"softmax", softmax, {9, 33, 1}, F64},
    {"attention", attention, {2, 1, 7, 1, 1, 5, 0}, F32},
    {"attention", attention, {17, 9, 16, 2, 1, 8, 0}, F32},
    {"attention", attention, {1, 65, 65, 2, 2, 17, 1}, F32},
    {"attention", attention, {3, 20, 33, 2, 2, 16, 2}, F32},
    {"attention", attention, {2, 7, 7, 2, 2, 4, 3}, F64},
    {"cross_entropy", cross_entropy, {5, 3, 0}, F32},
    {"cross_entropy", cross_entropy, {33, 10, 0}, F32},
    {"cross_entropy", cross_entropy, {9, 101, 0}, F32},
    {"cross_entropy", cross_entropy, {5, 2, 1}, F32},
    {"cross_entropy", cross_entropy, {70, 10, 1}, F32},
    {"cross_entropy", cross_entropy, {9, 129, 1}, F32},
    {"layer_norm", norm, {3, 5, 0}, F32},
    {"layer_norm", norm, {17, 64, 0}, F32},
    {"layer_norm", norm, {9, 131, 0}, F32},
    {"rms_norm", norm, {5, 33, 1}, F32},
    {"group_norm", norm, {3, 8, 2, 4}, F32},
    {"group_norm", norm, {5, 48, 2, 3}, F32},
    {"batch_norm", norm, {4, 3, 3}, F32},
    {"batch_norm", norm, {33, 17, 3}, F32},
    {"batch_norm", norm, {2000, 40, 3}, F32},
    {"batch_norm", norm, {33, 17, 3}, F64},
    {"cumsum", scan, {3, 17, 5, 0, 0}, F32},
    {"cumsum", scan, {2, 100, 33, 0, 1}, F32},
    {"cumprod", scan, {3, 9, 17, 1, 0}, F32},
    {"linear_scan", scan, {3, 31, 16, 2, 0}, F32},
    {"lstm", rnn, {1, 1, 1, 1, 0, 0}, F32},
    {"lstm", rnn, {3, 5, 4, 8, 0, 0}, F32},
    {"lstm", rnn, {9, 7, 5, 33, 0, 1}, F32},
    {"lstm", rnn, {3, 5, 4, 9, 0, 0}, F64},
    {"gru", rnn, {3, 5, 4, 8, 1, 0}, F32},
    {"gru", rnn, {9, 7, 5, 17, 1, 1}, F32},
    {"gru_reset_before", rnn, {5, 6, 3, 20, 2, 0}, F32},
    {"random", random_numbers, {1, 0}, STK_F32, false},
    {"random", random_numbers, {1003, 0}, STK_F32, false},
    {"random", random_numbers, {1003, 1}, STK_F32, false},
    {"random", random_numbers, {1003, 2}, STK_F32, false},
    {"random", random_numbers, {1003, 3}, STK_F32, false},
    {"random", random_numbers, {1003, 4}, STK_I32, false},
    {"random", random_numbers, {1003, 5}, STK_I64, false},
    {"random", random_numbers, {517, 1}, STK_F64, false},
};
enum { ROW_COUNT = sizeof ROWS / sizeof *ROWS };

/* Every elementwise operation with every kind of element and some lengths. */
static const struct {
    const char *name;
    stk_op op;
    int32_t operands;
} ELEMENTWISE[] = {
#define STK_EW_TYPED(NAME, name, arity, result, doc)
#define STK_EW(NAME, name, arity, result, doc) {#name, STK_OP_##NAME, arity},
#include "stoker/elementwise.def"
};
enum { EW_COUNT = sizeof ELEMENTWISE / sizeof *ELEMENTWISE };
static const stk_dtype LANES[] = {STK_F32, STK_F64, STK_I64, STK_I32, STK_U8, STK_BOOL, STK_BF16};
static const int64_t LENGTHS[] = {1, 15, 67, 1030};
enum { LANE_COUNT = 7, LENGTH_COUNT = 4, EW_CASES = EW_COUNT * LANE_COUNT * LENGTH_COUNT };

/* Every reduction with every type on some shapes; the last two kinds are argmax and argmin. */
static const stk_dtype REDUCED[] = {STK_F32, STK_F64, STK_I64, STK_I32, STK_U32,
                                    STK_U8,  STK_I8,  STK_F16, STK_BOOL};
static const int64_t REDUCED_SHAPES[][3] = {{1, 1, 1},     {3, 7, 1},  {5, 33, 1},   {2, 129, 1},
                                            {1, 40000, 1}, {4, 9, 17}, {1, 300, 65}, {7, 1, 5}};
enum { KIND_COUNT = 8, TYPE_COUNT = 9, SHAPE_COUNT = 8 };
enum { REDUCE_CASES = KIND_COUNT * TYPE_COUNT * SHAPE_COUNT };

static void elementwise_case(int32_t i, stk_case *out, char *text, size_t size)
{
    int32_t op = i / (LANE_COUNT * LENGTH_COUNT);
    stk_dtype dtype = LANES[i / LENGTH_COUNT % LANE_COUNT];
    int64_t length = LENGTHS[i % LENGTH_COUNT];
    *out = (stk_case){.name = ELEMENTWISE[op].name,
                      .build = elementwise,
                      .n = {ELEMENTWISE[op].op, length, ELEMENTWISE[op].operands},
                      .real = dtype};
    snprintf(text, size, "%s of %d %s", out->name, (int)length, stk_dtype_name(dtype));
}

static void reduce_case(int32_t i, stk_case *out, char *text, size_t size)
{
    static const char *const names[] = {"sum", "prod", "max",    "min",
                                        "any", "all",  "argmax", "argmin"};
    int32_t kind = i / (TYPE_COUNT * SHAPE_COUNT);
    const int64_t *shape = REDUCED_SHAPES[i % SHAPE_COUNT];
    *out = (stk_case){.name = names[kind],
                      .build = kind < 6 ? reduce : arg_reduce,
                      .n = {kind < 6 ? kind : kind - 6, shape[0], shape[1], shape[2]},
                      .real = REDUCED[i / SHAPE_COUNT % TYPE_COUNT]};
    snprintf(text, size, "%s of %s [%d,%d,%d]", out->name, stk_dtype_name(out->real), (int)shape[0],
             (int)shape[1], (int)shape[2]);
}

bool stk_case_at(int32_t i, stk_case *out, char *text, size_t size)
{
    if (i < EW_CASES) {
        elementwise_case(i, out, text, size);
        return true;
    }
    i -= EW_CASES;
    if (i < REDUCE_CASES) {
        reduce_case(i, out, text, size);
        return true;
    }
    i -= REDUCE_CASES;
    if (i >= ROW_COUNT) return false;
    *out = ROWS[i];
    snprintf(text, size, "%s of %s [", out->name, stk_dtype_name(out->real));
    int last = STK_CASE_NUMBERS;
    while (last > 1 && out->n[last - 1] == 0) last--;
    for (int k = 0; k < last; k++)
        snprintf(text + strlen(text), size - strlen(text), "%s%d", k ? "," : "", (int)out->n[k]);
    snprintf(text + strlen(text), size - strlen(text), "]");
    return true;
}

/* ---- graphs ----------------------------------------------------------------------------------------------------------- */

/* Gradients of a sum of y with weights that let none of them cancel. */
static void add_gradients(stk_case_graph *c, stk_val y)
{
    int64_t shape[STK_MAX_RANK];
    stk_val d[STK_CASE_INPUTS] = {0}, wrt[STK_CASE_INPUTS];
    int32_t rank = stk_g_rank(c->g, y), n = 0, inputs = c->inputs;
    for (int32_t i = 0; i < rank; i++) shape[i] = stk_g_dim(c->g, y, i);
    stk_val weights = input(c, c->real, 0.5, 1.5, rank, shape);
    for (int32_t i = 0; i < inputs; i++)
        if (c->tensor[i]->dtype == c->real) wrt[n++] = c->in[i];
    stk_g_gradients(c->g, stk_g_sum_all(c->g, stk_g_mul(c->g, y, weights)), n, wrt, d);
    for (int32_t i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "d%d", i);
        if (d[i]) stk_g_output(c->g, name, d[i]);
    }
}

bool stk_case_open(const stk_case *row, stk_case_graph *out, stk_error *err)
{
    *out = (stk_case_graph){.real = row->real, .random = 0x2545f4914f6cdd1du};
    for (const char *s = row->name; *s; s++)
        out->random = (out->random ^ (uint64_t)*s) * 1099511628211u;
    out->status = stk_graph_new(&out->g, err);
    stk_val y = out->status == STK_OK ? row->build(out, row->n) : 0;
    if (!y || out->status != STK_OK || stk_graph_status(out->g, err) != STK_OK) {
        stk_case_close(out);
        return false;
    }
    stk_g_output(out->g, "y", y);
    if (row->gradients) add_gradients(out, y);
    return true;
}

void stk_case_close(stk_case_graph *c)
{
    for (int32_t i = 0; i < STK_CASE_INPUTS; i++) stk_tensor_release(c->tensor[i]);
    stk_graph_release(c->g);
    memset(c, 0, sizeof *c);
}
