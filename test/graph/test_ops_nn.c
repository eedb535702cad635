/* Softmax, cross entropy, norms, scans and activations: values on every kernel, gradients, gradients of gradients. */
#include "graph/op_case.h"

#include "stoker/nn.h"

#define BUILD(name, expression)                                                                    \
    static stk_val build_##name(stk_graph *g, const stk_val *in, stk_dtype real)                   \
    {                                                                                              \
        (void)in, (void)real;                                                                      \
        return expression;                                                                         \
    }

/* Shapes, with values from -2 to 2 unless said otherwise. */
#define MATRIX(rows, n)                                                                            \
    {                                                                                              \
        STK_F32, 2, {rows, n}, -2, 2                                                               \
    }
#define VECTOR(n)                                                                                  \
    {                                                                                              \
        STK_F32, 1, {n}, -2, 2                                                                     \
    }
#define IMAGES(b, h, w, c)                                                                         \
    {                                                                                              \
        STK_F32, 4, {b, h, w, c}, -2, 2                                                            \
    }
#define GAMMA(n)                                                                                   \
    {                                                                                              \
        STK_F32, 1, {n}, 0.5, 1.5                                                                  \
    }

/* ---- softmax --------------------------------------------------------------------------------------- */

BUILD(softmax, stk_g_softmax(g, in[0], -1))
BUILD(softmax_0, stk_g_softmax(g, in[0], 0))
BUILD(softmax_1, stk_g_softmax(g, in[0], 1))
BUILD(log_softmax, stk_g_log_softmax(g, in[0], -1))
BUILD(log_softmax_0, stk_g_log_softmax(g, in[0], 0))
BUILD(xent, stk_g_softmax_cross_entropy(g, in[0], in[1], 0))
BUILD(xent_smooth, stk_g_softmax_cross_entropy(g, in[0], in[1], 0.1))
BUILD(sparse_xent, stk_g_sparse_softmax_cross_entropy(g, in[0], in[1]))
BUILD(sigmoid_xent, stk_g_sigmoid_cross_entropy(g, in[0], in[1]))

#define SOFTMAX_CASES(rows, n)                                                                     \
    {.name = "softmax " #rows "x" #n, .build = build_softmax, .nin = 1, .in = {MATRIX(rows, n)}},  \
        {.name = "log_softmax " #rows "x" #n,                                                      \
         .build = build_log_softmax,                                                               \
         .nin = 1,                                                                                 \
         .in = {MATRIX(rows, n)}},                                                                 \
        {.name = "xent " #rows "x" #n,                                                             \
         .build = build_xent,                                                                      \
         .nin = 2,                                                                                 \
         .in = {MATRIX(rows, n), {STK_F32, 2, {rows, n}, 0, 0.3}}},                                \
    {                                                                                              \
        .name = "sparse " #rows "x" #n, .build = build_sparse_xent, .nin = 2,                      \
        .in = {MATRIX(rows, n), {STK_I32, 1, {rows}, 0, n - 1}},                                   \
    }

static const op_case softmax_cases[] = {
    SOFTMAX_CASES(10, 10),
    SOFTMAX_CASES(32, 10),
    SOFTMAX_CASES(7, 1),
    SOFTMAX_CASES(9, 2),
    SOFTMAX_CASES(5, 3),
    SOFTMAX_CASES(5, 4),
    SOFTMAX_CASES(3, 5),
    SOFTMAX_CASES(3, 7),
    SOFTMAX_CASES(3, 8),
    SOFTMAX_CASES(2, 9),
    SOFTMAX_CASES(2, 11),
    SOFTMAX_CASES(2, 12),
    SOFTMAX_CASES(3, 15),
    SOFTMAX_CASES(3, 16),
    SOFTMAX_CASES(3, 17),
    SOFTMAX_CASES(2, 31),
    SOFTMAX_CASES(2, 32),
    SOFTMAX_CASES(2, 33),
    SOFTMAX_CASES(70, 100),
    SOFTMAX_CASES(129, 10),
    {.name = "softmax long", .build = build_softmax, .nin = 1, .in = {MATRIX(3, 5000)}},
    {.name = "softmax many", .build = build_softmax, .nin = 1, .in = {MATRIX(1024, 40)}},
    {.name = "sparse many",
     .build = build_sparse_xent,
     .nin = 2,
     .in = {MATRIX(1025, 33), {STK_I64, 1, {1025}, 0, 32}}},
    {.name = "softmax steep",
     .build = build_softmax,
     .nin = 1,
     .in = {{STK_F32, 2, {6, 10}, -300, 300}},
     .no_grad = 1},
    {.name = "log_softmax steep",
     .build = build_log_softmax,
     .nin = 1,
     .in = {{STK_F32, 2, {6, 10}, -300, 300}},
     .no_grad = 1},
    {.name = "softmax vector", .build = build_softmax, .nin = 1, .in = {VECTOR(6)}},
    {.name = "softmax no rows",
     .build = build_softmax,
     .nin = 1,
     .in = {MATRIX(0, 6)},
     .no_grad = 1},
    {.name = "softmax axis 0", .build = build_softmax_0, .nin = 1, .in = {MATRIX(5, 6)}},
    {.name = "softmax axis 1",
     .build = build_softmax_1,
     .nin = 1,
     .in = {{STK_F32, 3, {2, 5, 3}, -2, 2}}},
    {.name = "log_softmax axis 0",
     .build = build_log_softmax_0,
     .nin = 1,
     .in = {{STK_F32, 3, {4, 2, 3}, -2, 2}}},
    {.name = "xent 3-d",
     .build = build_xent,
     .nin = 2,
     .in = {{STK_F32, 3, {2, 3, 5}, -2, 2}, {STK_F32, 3, {2, 3, 5}, 0, 0.4}}},
    {.name = "xent smooth",
     .build = build_xent_smooth,
     .nin = 2,
     .in = {MATRIX(4, 6), {STK_F32, 2, {4, 6}, 0, 0.4}}},
    {.name = "sparse uint8",
     .build = build_sparse_xent,
     .nin = 2,
     .in = {MATRIX(6, 10), {STK_U8, 1, {6}, 0, 9}}},
    {.name = "sparse int64",
     .build = build_sparse_xent,
     .nin = 2,
     .in = {MATRIX(6, 10), {STK_I64, 1, {6}, 0, 9}}},
    {.name = "sparse, some no class",
     .build = build_sparse_xent,
     .nin = 2,
     .in = {MATRIX(40, 5), {STK_I64, 1, {40}, -2, 6}},
     .no_grad = 1},
    {.name = "sigmoid xent",
     .build = build_sigmoid_xent,
     .nin = 2,
     .in = {MATRIX(5, 7), {STK_F32, 2, {5, 7}, 0, 1}}},
    {.name = "sigmoid xent steep",
     .build = build_sigmoid_xent,
     .nin = 2,
     .in = {{STK_F32, 2, {5, 7}, -50, 50}, {STK_F32, 2, {5, 7}, 0, 1}}},
};
OP_CASE_TEST(softmax, softmax_cases)

static const op_case softmax_twice[] = {
    {.name = "softmax twice", .build = build_softmax, .nin = 1, .in = {MATRIX(3, 5)}, .grad2 = 1},
    {.name = "softmax axis 0 twice",
     .build = build_softmax_0,
     .nin = 1,
     .in = {MATRIX(4, 2)},
     .grad2 = 1},
    {.name = "log_softmax twice",
     .build = build_log_softmax,
     .nin = 1,
     .in = {MATRIX(3, 5)},
     .grad2 = 1},
    {.name = "xent twice",
     .build = build_xent,
     .nin = 2,
     .in = {MATRIX(3, 5), {STK_F32, 2, {3, 5}, 0.1, 0.4}},
     .grad2 = 1},
    {.name = "sparse xent twice",
     .build = build_sparse_xent,
     .nin = 2,
     .in = {MATRIX(3, 5), {STK_I32, 1, {3}, 0, 4}},
     .grad2 = 1},
    {.name = "sigmoid xent twice",
     .build = build_sigmoid_xent,
     .nin = 2,
     .in = {MATRIX(3, 5), {STK_F32, 2, {3, 5}, 0, 1}},
     .grad2 = 1},
};
OP_CASE_TEST(softmax_second_order, softmax_twice)

/* ---- norms ------------------------------------------------------------------------------------------------ */

/* All outputs of one op side by side, so that every one is compared and differentiated. */
static stk_val flat(stk_graph *g, stk_val v) { return stk_g_reshape(g, v, 1, (int64_t[]){-1}); }
static stk_val side_by_side(stk_graph *g, stk_val y, int32_t n)
{
    stk_val all[4];
    for (int32_t k = 0; k < n; k++) all[k] = flat(g, y + k);
    return y ? stk_g_concat(g, n, all, 0) : 0;
}

BUILD(moments, side_by_side(g, stk_g_moments(g, in[0], NULL), 2))
BUILD(batch_norm, stk_g_batch_norm(g, in[0], in[1], in[2], -1, 1e-3, NULL, NULL))
BUILD(batch_norm_axis_1, stk_g_batch_norm(g, in[0], in[1], in[2], 1, 1e-3, NULL, NULL))
BUILD(batch_norm_plain, stk_g_batch_norm(g, in[0], 0, 0, -1, 1e-3, NULL, NULL))
BUILD(batch_norm_relu, stk_g_relu(g, build_batch_norm(g, in, real)))
BUILD(batch_norm_infer, stk_g_batch_norm_infer(g, in[0], in[1], in[2], in[3], in[4], -1, 1e-3))

static stk_val build_batch_norm_all(stk_graph *g, const stk_val *in, stk_dtype real)
{
    stk_val mean, variance,
        y = stk_g_batch_norm(g, in[0], in[1], in[2], -1, 1e-3, &mean, &variance);
    (void)real;
    return stk_g_concat(g, 3, (stk_val[]){flat(g, y), mean, variance}, 0);
}

BUILD(layer_norm, stk_g_layer_norm(g, in[0], in[1], in[2], 1, 1e-3))
BUILD(layer_norm_plain, stk_g_layer_norm(g, in[0], 0, 0, 1, 1e-3))
BUILD(layer_norm_gamma, stk_g_layer_norm(g, in[0], in[1], 0, 1, 1e-3))
BUILD(layer_norm_beta, stk_g_layer_norm(g, in[0], 0, in[1], 1, 1e-3))
BUILD(layer_norm_2, stk_g_layer_norm(g, in[0], in[1], in[2], 2, 1e-3))
BUILD(layer_norm_all, side_by_side(g, stk_g_layer_norm(g, in[0], in[1], in[2], 1, 1e-3), 3))
BUILD(rms_norm, stk_g_rms_norm(g, in[0], in[1], 1, 1e-3))
BUILD(rms_norm_plain, stk_g_rms_norm(g, in[0], 0, 2, 1e-3))
BUILD(rms_norm_all, side_by_side(g, stk_g_rms_norm(g, in[0], in[1], 1, 1e-3), 2))
BUILD(group_norm_1, stk_g_group_norm(g, in[0], in[1], in[2], 1, 1e-3))
BUILD(group_norm_2, stk_g_group_norm(g, in[0], in[1], in[2], 2, 1e-3))
BUILD(instance_norm, stk_g_group_norm(g, in[0], 0, 0, (int32_t)stk_g_dim(g, in[0], -1), 1e-3))
BUILD(group_norm_all, side_by_side(g, stk_g_group_norm(g, in[0], in[1], in[2], 2, 1e-3), 3))
BUILD(unit_norm, stk_g_unit_norm(g, in[0], 1, (int32_t[]){-1}, 1e-12))

#define NORM_CASES(rows, n)                                                                        \
    {.name = "moments " #rows "x" #n, .build = build_moments, .nin = 1, .in = {MATRIX(rows, n)}},  \
        {.name = "batch_norm " #rows "x" #n,                                                       \
         .build = build_batch_norm,                                                                \
         .nin = 3,                                                                                 \
         .in = {MATRIX(rows, n), GAMMA(n), VECTOR(n)},                                             \
         .tol = 4e-5},                                                                             \
        {.name = "layer_norm " #rows "x" #n,                                                       \
         .build = build_layer_norm,                                                                \
         .nin = 3,                                                                                 \
         .in = {MATRIX(rows, n), GAMMA(n), VECTOR(n)},                                             \
         .tol = 4e-5},                                                                             \
    {                                                                                              \
        .name = "rms_norm " #rows "x" #n, .build = build_rms_norm, .nin = 2,                       \
        .in = {MATRIX(rows, n), GAMMA(n)}, .tol = 4e-5,                                            \
    }

static const op_case norm_cases[] = {
    NORM_CASES(6, 1),
    NORM_CASES(1, 6),
    NORM_CASES(50, 3),
    NORM_CASES(5, 8),
    NORM_CASES(9, 10),
    NORM_CASES(65, 16),
    NORM_CASES(64, 17),
    NORM_CASES(33, 31),
    NORM_CASES(20, 32),
    NORM_CASES(13, 33),
    NORM_CASES(300, 40),
    NORM_CASES(7, 100),
    NORM_CASES(3, 257),
    {.name = "moments far from 0",
     .build = build_moments,
     .nin = 1,
     .in = {{STK_F32, 2, {500, 5}, 1000, 1001}},
     .tol = 1e-4},
    {.name = "batch_norm images",
     .build = build_batch_norm_relu,
     .nin = 3,
     .in = {IMAGES(9, 12, 12, 24), GAMMA(24), VECTOR(24)},
     .tol = 1e-4},
    {.name = "batch_norm large",
     .build = build_batch_norm_all,
     .nin = 3,
     .in = {IMAGES(9, 16, 16, 32), GAMMA(32), VECTOR(32)},
     .tol = 1e-4},
    {.name = "batch_norm statistics",
     .build = build_batch_norm_all,
     .nin = 3,
     .in = {MATRIX(6, 4), GAMMA(4), VECTOR(4)}},
    {.name = "batch_norm axis 1",
     .build = build_batch_norm_axis_1,
     .nin = 3,
     .in = {IMAGES(2, 3, 4, 2), GAMMA(3), VECTOR(3)}},
    {.name = "batch_norm plain", .build = build_batch_norm_plain, .nin = 1, .in = {MATRIX(6, 4)}},
    {.name = "batch_norm inference",
     .build = build_batch_norm_infer,
     .nin = 5,
     .in = {IMAGES(2, 3, 2, 4), GAMMA(4), VECTOR(4), VECTOR(4), {STK_F32, 1, {4}, 0.5, 2}}},
    {.name = "layer_norm plain", .build = build_layer_norm_plain, .nin = 1, .in = {MATRIX(5, 12)}},
    {.name = "layer_norm gamma",
     .build = build_layer_norm_gamma,
     .nin = 2,
     .in = {MATRIX(5, 12), GAMMA(12)}},
    {.name = "layer_norm beta",
     .build = build_layer_norm_beta,
     .nin = 2,
     .in = {MATRIX(5, 12), VECTOR(12)}},
    {.name = "layer_norm two axes",
     .build = build_layer_norm_2,
     .nin = 3,
     .in = {{STK_F32, 3, {4, 3, 5}, -2, 2},
            {STK_F32, 2, {3, 5}, 0.5, 1.5},
            {STK_F32, 2, {3, 5}, -1, 1}}},
    {.name = "layer_norm outputs",
     .build = build_layer_norm_all,
     .nin = 3,
     .in = {{STK_F32, 3, {2, 3, 9}, -2, 2}, GAMMA(9), VECTOR(9)}},
    {.name = "layer_norm large",
     .build = build_layer_norm,
     .nin = 3,
     .in = {MATRIX(300, 130), GAMMA(130), VECTOR(130)},
     .tol = 1e-4},
    {.name = "rms_norm two axes, plain",
     .build = build_rms_norm_plain,
     .nin = 1,
     .in = {{STK_F32, 3, {3, 2, 7}, -2, 2}}},
    {.name = "rms_norm outputs",
     .build = build_rms_norm_all,
     .nin = 2,
     .in = {MATRIX(4, 11), GAMMA(11)}},
    {.name = "group_norm 1",
     .build = build_group_norm_1,
     .nin = 3,
     .in = {IMAGES(3, 2, 3, 6), GAMMA(6), VECTOR(6)}},
    {.name = "group_norm 2",
     .build = build_group_norm_2,
     .nin = 3,
     .in = {IMAGES(3, 2, 3, 6), GAMMA(6), VECTOR(6)}},
    {.name = "group_norm rows",
     .build = build_group_norm_2,
     .nin = 3,
     .in = {MATRIX(5, 8), GAMMA(8), VECTOR(8)}},
    {.name = "group_norm outputs",
     .build = build_group_norm_all,
     .nin = 3,
     .in = {IMAGES(2, 3, 2, 4), GAMMA(4), VECTOR(4)}},
    {.name = "group_norm large",
     .build = build_group_norm_2,
     .nin = 3,
     .in = {IMAGES(9, 17, 13, 36), GAMMA(36), VECTOR(36)},
     .tol = 1e-4},
    {.name = "instance_norm", .build = build_instance_norm, .nin = 1, .in = {IMAGES(2, 3, 3, 5)}},
    {.name = "unit_norm", .build = build_unit_norm, .nin = 1, .in = {MATRIX(4, 9)}},
};
OP_CASE_TEST(norms, norm_cases)

static const op_case norm_twice[] = {
    {.name = "moments twice", .build = build_moments, .nin = 1, .in = {MATRIX(5, 3)}, .grad2 = 1},
    {.name = "batch_norm twice",
     .build = build_batch_norm_all,
     .nin = 3,
     .in = {MATRIX(5, 3), GAMMA(3), VECTOR(3)},
     .grad2 = 1},
    {.name = "layer_norm twice",
     .build = build_layer_norm_all,
     .nin = 3,
     .in = {MATRIX(3, 5), GAMMA(5), VECTOR(5)},
     .grad2 = 1},
    {.name = "layer_norm plain twice",
     .build = build_layer_norm_plain,
     .nin = 1,
     .in = {MATRIX(3, 5)},
     .grad2 = 1},
    {.name = "rms_norm twice",
     .build = build_rms_norm_all,
     .nin = 2,
     .in = {MATRIX(3, 5), GAMMA(5)},
     .grad2 = 1},
    {.name = "group_norm twice",
     .build = build_group_norm_all,
     .nin = 3,
     .in = {IMAGES(2, 2, 1, 4), GAMMA(4), VECTOR(4)},
     .grad2 = 1},
};
OP_CASE_TEST(norms_second_order, norm_twice)

/* ---- scans --------------------------------------------------------------------------------------------------- */

BUILD(cumsum, stk_g_cumsum(g, in[0], -1, false, false))
BUILD(cumsum_x, stk_g_cumsum(g, in[0], 0, true, false))
BUILD(cumsum_r, stk_g_cumsum(g, in[0], 1, false, true))
BUILD(cumsum_xr, stk_g_cumsum(g, in[0], 1, true, true))
BUILD(cumprod, stk_g_cumprod(g, in[0], -1, false, false))
BUILD(cumprod_x, stk_g_cumprod(g, in[0], 0, true, false))
BUILD(cumprod_r, stk_g_cumprod(g, in[0], 1, false, true))
BUILD(cumprod_xr, stk_g_cumprod(g, in[0], 1, true, true))
BUILD(linear, stk_g_linear_scan(g, in[0], in[1], -1, false))
BUILD(linear_r, stk_g_linear_scan(g, in[0], in[1], 0, true))

#define SCAN(text, function, grad_twice, ...)                                                      \
    {                                                                                              \
        .name = text, .build = build_##function, .nin = 1, .in = {__VA_ARGS__},                    \
        .grad2 = grad_twice                                                                        \
    }
static const op_case scan_cases[] = {
    SCAN("cumsum", cumsum, 1, MATRIX(3, 7)),
    SCAN("cumsum exclusive", cumsum_x, 1, MATRIX(4, 3)),
    SCAN("cumsum reverse", cumsum_r, 1, {STK_F32, 3, {2, 5, 3}, -1, 1}),
    SCAN("cumsum exclusive reverse", cumsum_xr, 1, MATRIX(3, 1)),
    SCAN("cumsum of one", cumsum, 0, VECTOR(1)),
    SCAN("cumsum wide", cumsum_r, 0, {STK_F32, 3, {3, 11, 70}, -1, 1}),
    SCAN("cumsum many", cumsum, 0, MATRIX(1500, 40)),
    SCAN("cumprod", cumprod, 1, MATRIX(3, 7)),
    SCAN("cumprod exclusive", cumprod_x, 1, MATRIX(4, 3)),
    SCAN("cumprod reverse", cumprod_r, 1, {STK_F32, 3, {2, 5, 3}, -1.5, 1.5}),
    SCAN("cumprod exclusive reverse", cumprod_xr, 1, MATRIX(3, 4)),
    SCAN("cumprod of zeros", cumprod, 1, {STK_F32, 2, {2, 4}, 0, 0}),
    {.name = "cumsum of none", .build = build_cumsum, .nin = 1, .in = {MATRIX(3, 0)}, .no_grad = 1},
    {.name = "cumsum int32",
     .build = build_cumsum,
     .nin = 1,
     .in = {{STK_I32, 2, {3, 9}, -9, 9}},
     .no_grad = 1},
    {.name = "cumsum int8",
     .build = build_cumsum,
     .nin = 1,
     .in = {{STK_I8, 2, {3, 9}, -90, 90}},
     .no_grad = 1},
    {.name = "cumprod int64",
     .build = build_cumprod,
     .nin = 1,
     .in = {{STK_I64, 2, {3, 9}, -9, 9}},
     .no_grad = 1},
    {.name = "linear",
     .build = build_linear,
     .nin = 2,
     .in = {MATRIX(3, 6), MATRIX(3, 6)},
     .grad2 = 1},
    {.name = "linear reverse",
     .build = build_linear_r,
     .nin = 2,
     .in = {MATRIX(5, 3), MATRIX(5, 3)},
     .grad2 = 1},
};
OP_CASE_TEST(scans, scan_cases)

/* ---- activations: away from the bends, where differences are no gradient ----------------------------------------- */

BUILD(relu6, stk_g_relu6(g, in[0]))
BUILD(leaky, stk_g_leaky_relu(g, in[0], 0.2))
BUILD(elu, stk_g_elu(g, in[0], 1.3))
BUILD(selu, stk_g_selu(g, in[0]))
BUILD(celu, stk_g_celu(g, in[0], 0.7))
BUILD(gelu, stk_g_gelu(g, in[0], false))
BUILD(gelu_tanh, stk_g_gelu(g, in[0], true))
BUILD(silu, stk_g_silu(g, in[0]))
BUILD(mish, stk_g_mish(g, in[0]))
BUILD(softsign, stk_g_softsign(g, in[0]))
BUILD(log_sigmoid, stk_g_log_sigmoid(g, in[0]))
BUILD(hard_sigmoid, stk_g_hard_sigmoid(g, in[0]))
BUILD(hard_silu, stk_g_hard_silu(g, in[0]))
BUILD(hard_tanh, stk_g_hard_tanh(g, in[0]))
BUILD(tanh_shrink, stk_g_tanh_shrink(g, in[0]))
BUILD(soft_shrink, stk_g_soft_shrink(g, in[0], 0.5))
BUILD(hard_shrink, stk_g_hard_shrink(g, in[0], 0.5))
BUILD(threshold, stk_g_threshold(g, in[0], 0.4, -3))
BUILD(squareplus, stk_g_squareplus(g, in[0], 4))
BUILD(sparse_plus, stk_g_sparse_plus(g, in[0]))
BUILD(sparse_sigmoid, stk_g_sparse_sigmoid(g, in[0]))
BUILD(glu, stk_g_glu(g, in[0], -1))
BUILD(clip, stk_g_clip(g, in[0], -0.7, 0.9))

static stk_val build_relu_general(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    return stk_g_relu_general(
        g, in[0], &(stk_relu_options){.negative_slope = 0.1, .max_value = 2.5, .threshold = 0.3});
}

#define ACTIVATION(name_)                                                                          \
    {                                                                                              \
        .name = #name_, .build = build_##name_, .nin = 1, .in = {{STK_F32, 2, {6, 12}, -5, 5}},    \
        .grad2 = 1                                                                                 \
    }
static const op_case activation_cases[] = {
    ACTIVATION(relu6),          ACTIVATION(leaky),       ACTIVATION(elu),
    ACTIVATION(selu),           ACTIVATION(celu),        ACTIVATION(gelu),
    ACTIVATION(gelu_tanh),      ACTIVATION(silu),        ACTIVATION(mish),
    ACTIVATION(softsign),       ACTIVATION(log_sigmoid), ACTIVATION(hard_sigmoid),
    ACTIVATION(hard_silu),      ACTIVATION(hard_tanh),   ACTIVATION(tanh_shrink),
    ACTIVATION(soft_shrink),    ACTIVATION(hard_shrink), ACTIVATION(threshold),
    ACTIVATION(squareplus),     ACTIVATION(sparse_plus), ACTIVATION(glu),
    ACTIVATION(sparse_sigmoid), ACTIVATION(clip),        ACTIVATION(relu_general),
};
OP_CASE_TEST(activations, activation_cases)

TEST_MAIN()
