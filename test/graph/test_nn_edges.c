/* Neural-net ops at their edges: half types, numbers worked out by hand, bad input, no memory. */
#include "check.h"

#include "stoker/nn.h"

/* ---- small programs -------------------------------------------------------------------------------- */

/* y of a graph without inputs. */
static stk_tensor *evaluate(stk_graph *g, stk_val y)
{
    stk_error err = {0};
    stk_program *p = NULL;
    stk_tensor *t = NULL;
    stk_g_output(g, "y", y);
    if (CHECK_OK(stk_program_new(g, NULL, &p, &err))) {
        CHECK_OK(stk_program_run(p, 1, &err));
        CHECK_OK(stk_program_read(p, "y", &t, &err));
    }
    stk_program_release(p);
    stk_graph_release(g);
    return t;
}

static stk_graph *graph_new(void)
{
    stk_graph *g = NULL;
    stk_error err;
    CHECK_OK(stk_graph_new(&g, &err));
    return g;
}

static stk_val constant(stk_graph *g, stk_dtype dtype, int32_t rank, const int64_t *shape,
                        const double *v)
{
    stk_tensor *t = NULL;
    stk_error err;
    CHECK_OK(stk_tensor_new(dtype, rank, shape, &t, &err));
    for (int64_t i = 0; t && i < stk_tensor_count(t); i++)
        CHECK_OK(stk_tensor_set(t, i, v[i], &err));
    stk_val c = stk_g_const(g, t);
    stk_tensor_release(t);
    return c;
}
static stk_val row(stk_graph *g, stk_dtype dtype, int64_t n, const double *v)
{
    return constant(g, dtype, 2, (int64_t[]){1, n}, v);
}

static void check_values(stk_tensor *t, int64_t n, const double *want, double tol)
{
    REQUIRE(CHECK(t));
    CHECK_EQ_I64(stk_tensor_count(t), n);
    for (int64_t i = 0; i < n && i < stk_tensor_count(t); i++)
        CHECK_MSG(fabs(stk_tensor_at(t, i) - want[i]) <= tol ||
                      (isnan(want[i]) && isnan(stk_tensor_at(t, i))),
                  "[%" PRId64 "] is %.9g, expected %.9g", i, stk_tensor_at(t, i), want[i]);
    stk_tensor_release(t);
}

/* ---- by hand ----------------------------------------------------------------------------------------- */

TEST(softmax_by_hand)
{
    const double logs[] = {0, 0.69314718056, 1.09861228867}; /* log of 1, 2, 3 */
    stk_graph *g = graph_new();
    check_values(evaluate(g, stk_g_softmax(g, row(g, STK_F32, 3, logs), -1)), 3,
                 (double[]){1 / 6.0, 2 / 6.0, 3 / 6.0}, 1e-6);
    g = graph_new();
    check_values(evaluate(g, stk_g_log_softmax(g, row(g, STK_F64, 3, logs), 1)), 3,
                 (double[]){-log(6), log(2 / 6.0), log(0.5)}, 1e-9);
    g = graph_new(); /* an axis of one element: 1 */
    check_values(evaluate(g, stk_g_softmax(g, row(g, STK_F32, 3, logs), 0)), 3, (double[]){1, 1, 1},
                 0);
}

TEST(cross_entropy_by_hand)
{
    const double logs[] = {0, 0.69314718056, 1.09861228867}, label[] = {2}, none[] = {3},
                 soft[] = {0.5, 0, 0.5};
    stk_graph *g = graph_new();
    stk_val x = row(g, STK_F32, 3, logs), d = 0;
    stk_val loss =
        stk_g_sparse_softmax_cross_entropy(g, x, constant(g, STK_I64, 1, (int64_t[]){1}, label));
    stk_g_gradients(g, loss, 1, &x, &d);
    check_values(
        evaluate(
            g, stk_g_concat(g, 2, (stk_val[]){stk_g_reshape(g, loss, 2, (int64_t[]){1, 1}), d}, 1)),
        4, (double[]){log(2), 1 / 6.0, 2 / 6.0, -0.5}, 1e-6);
    g = graph_new();
    x = row(g, STK_F32, 3, logs);
    loss = stk_g_sparse_softmax_cross_entropy(g, x, constant(g, STK_U8, 1, (int64_t[]){1}, none));
    stk_g_gradients(g, loss, 1, &x, &d); /* 3 is no class of 0..2 */
    check_values(
        evaluate(
            g, stk_g_concat(g, 2, (stk_val[]){stk_g_reshape(g, loss, 2, (int64_t[]){1, 1}), d}, 1)),
        4, (double[]){NAN, 0, 0, 0}, 0);
    g = graph_new();
    loss = stk_g_softmax_cross_entropy(g, row(g, STK_F32, 3, logs), row(g, STK_F32, 3, soft), 0.3);
    check_values(evaluate(g, loss), 1, (double[]){0.45 * log(6) + 0.1 * log(3) + 0.45 * log(2)},
                 1e-6);
}

/* The derivative of sigmoid cross entropy at 0 is sigmoid(0) - label, in spite of the |x| in its formula. */
TEST(sigmoid_cross_entropy_at_0)
{
    const double xs[] = {0, 0, 100, -100}, ts[] = {1, 0.25, 1, 1};
    stk_graph *g = graph_new();
    stk_val x = row(g, STK_F32, 4, xs), d = 0,
            y = stk_g_sigmoid_cross_entropy(g, x, row(g, STK_F32, 4, ts));
    stk_g_gradients(g, y, 1, &x, &d);
    check_values(evaluate(g, stk_g_concat(g, 2, (stk_val[]){y, d}, 1)), 8,
                 (double[]){log(2), log(2), 0, 100, -0.5, 0.25, 0, -1}, 1e-6);
}

TEST(slopes_at_the_bends)
{
    const double at[] = {0, 6, -3, 3, -1, 1};
    const struct {
        stk_val (*build)(stk_graph *g, stk_val x);
        double slope[6];
    } cases[] = {
        {stk_g_relu6, {0, 0, 0, 1, 0, 1}},
        {stk_g_selu,
         {1.0507009873554805, 1.0507009873554805, 0.0875290, 1.0507009873554805, 0.6467686,
          1.0507009873554805}},
        {stk_g_hard_sigmoid, {1 / 6.0, 0, 0, 0, 1 / 6.0, 1 / 6.0}},
        {stk_g_hard_tanh, {1, 0, 0, 0, 1, 1}},
        {stk_g_sparse_sigmoid, {0.5, 0, 0, 0, 0, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_graph *g = graph_new();
        stk_val x = row(g, STK_F32, 6, at), d = 0;
        stk_g_gradients(g, cases[i].build(g, x), 1, &x, &d);
        check_values(evaluate(g, d), 6, cases[i].slope, 1e-5);
    }
}

/* Far outside, where the branch not taken overflows: still no NaN in the gradient. */
TEST(slopes_far_outside)
{
    const double far[] = {-1e4, 1e4};
    const struct {
        double slope[2];
        int kind;
    } cases[] = {{{0, 1}, 0}, {{0, 1}, 1}, {{0, 1}, 2}, {{0, 1}, 3}};
    for (int i = 0; i < 4; i++) {
        stk_graph *g = graph_new();
        stk_val x = row(g, STK_F32, 2, far), d = 0;
        stk_val y = i == 0   ? stk_g_elu(g, x, 1)
                    : i == 1 ? stk_g_celu(g, x, 1)
                    : i == 2 ? stk_g_gelu(g, x, false)
                             : stk_g_silu(g, x);
        stk_g_gradients(g, y, 1, &x, &d);
        check_values(evaluate(g, d), 2, cases[i].slope, 1e-6);
    }
}

TEST(norms_by_hand)
{
    const double v[] = {1, 3, 5, 7}; /* mean 4, variance 5 */
    stk_graph *g = graph_new();
    double s = 1 / sqrt(5);
    check_values(evaluate(g, stk_g_layer_norm(g, row(g, STK_F32, 4, v), 0, 0, 1, 0)), 4,
                 (double[]){-3 * s, -s, s, 3 * s}, 1e-6);
    g = graph_new();
    check_values(evaluate(g, stk_g_rms_norm(g, row(g, STK_F32, 4, v), 0, 1, 0)), 4,
                 (double[]){1 / sqrt(21), 3 / sqrt(21), 5 / sqrt(21), 7 / sqrt(21)}, 1e-6);
    g = graph_new(); /* two channels in two groups: (1, 5) and (3, 7) */
    check_values(evaluate(g, stk_g_group_norm(g, constant(g, STK_F32, 3, (int64_t[]){1, 2, 2}, v),
                                              0, 0, 2, 0)),
                 4, (double[]){-1, -1, 1, 1}, 1e-6);
    g = graph_new();
    check_values(evaluate(g, stk_g_batch_norm(g, constant(g, STK_F32, 2, (int64_t[]){2, 2}, v), 0,
                                              0, -1, 0, NULL, NULL)),
                 4, (double[]){-1, -1, 1, 1}, 1e-6);
    g = graph_new();
    const double zero[] = {0, 0};
    check_values(
        evaluate(g, stk_g_unit_norm(g, row(g, STK_F32, 2, zero), 1, (int32_t[]){1}, 1e-12)), 2,
        zero, 0);
}

TEST(scans_by_hand)
{
    const double v[] = {2, 0, 3, 4};
    const struct {
        bool exclusive, reverse;
        double sum[4], prod[4];
    } cases[] = {
        {false, false, {2, 2, 5, 9}, {2, 0, 0, 0}},
        {true, false, {0, 2, 2, 5}, {1, 2, 0, 0}},
        {false, true, {9, 7, 7, 4}, {0, 0, 12, 4}},
        {true, true, {7, 7, 4, 0}, {0, 12, 4, 1}},
    };
    for (int i = 0; i < 4; i++) {
        stk_graph *g = graph_new();
        check_values(evaluate(g, stk_g_cumsum(g, row(g, STK_F32, 4, v), 1, cases[i].exclusive,
                                              cases[i].reverse)),
                     4, cases[i].sum, 0);
        g = graph_new();
        check_values(evaluate(g, stk_g_cumprod(g, row(g, STK_I32, 4, v), 1, cases[i].exclusive,
                                               cases[i].reverse)),
                     4, cases[i].prod, 0);
    }
    stk_graph *g = graph_new(); /* 8-bit sums wrap */
    const double bytes[] = {100, 100, 100, 1};
    check_values(evaluate(g, stk_g_cumsum(g, row(g, STK_I8, 4, bytes), 1, false, false)), 4,
                 (double[]){100, -56, 44, 45}, 0);
}

/* ---- half types: computed in float32, stored as they came ----------------------------------------------------- */

TEST(half_types)
{
    static const stk_dtype halves[] = {STK_F16, STK_BF16};
    const double v[] = {1, 3, 5, 7}, third[] = {0, 0, 0};
    for (int i = 0; i < 2; i++) {
        stk_graph *g = graph_new();
        stk_tensor *t = evaluate(g, stk_g_softmax(g, row(g, halves[i], 3, third), -1));
        if (t) CHECK_EQ_I64(t->dtype, halves[i]);
        check_values(t, 3, (double[]){1 / 3.0, 1 / 3.0, 1 / 3.0}, 2e-3);
        g = graph_new();
        stk_val x = row(g, halves[i], 4, v), d = 0;
        stk_g_gradients(g, stk_g_square(g, stk_g_layer_norm(g, x, 0, 0, 1, 1e-3)), 1, &x, &d);
        t = evaluate(g, d);
        if (t) CHECK_EQ_I64(t->dtype, halves[i]);
        check_values(t, 4, (double[]){0, 0, 0, 0}, 5e-2);
        g = graph_new();
        t = evaluate(g, stk_g_cumsum(g, row(g, halves[i], 4, v), 1, false, false));
        check_values(t, 4, (double[]){1, 4, 9, 16}, 0);
    }
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

#define REFUSED(code, text, ...)                                                                   \
    do {                                                                                           \
        stk_graph *g = graph_new();                                                                \
        stk_error err = {0};                                                                       \
        stk_val x = stk_g_input(g, "x", STK_F32, 2, (int64_t[]){2, 3});                            \
        stk_val y = stk_g_input(g, "y", STK_F32, 2, (int64_t[]){3, 2});                            \
        stk_val i = stk_g_input(g, "i", STK_I32, 1, (int64_t[]){2});                               \
        stk_val s = stk_g_input(g, "s", STK_F32, 0, NULL);                                         \
        stk_val z = stk_g_input(g, "z", STK_F32, 2, (int64_t[]){0, 3});                            \
        stk_val v = stk_g_input(g, "v", STK_F32, 1, (int64_t[]){3});                               \
        (void)x, (void)y, (void)i, (void)s, (void)z, (void)v;                                      \
        CHECK((__VA_ARGS__) == 0);                                                                 \
        CHECK_FAILS(stk_graph_status(g, &err), code, text);                                        \
        stk_graph_release(g);                                                                      \
    } while (0)

TEST(bad_softmax)
{
    REFUSED(STK_ERR_RANGE, "softmax: axis 2", stk_g_softmax(g, x, 2));
    REFUSED(STK_ERR_RANGE, "log_softmax: axis -3", stk_g_log_softmax(g, x, -3));
    REFUSED(STK_ERR_RANGE, "softmax", stk_g_softmax(g, s, 0));
    REFUSED(STK_ERR_DTYPE, "softmax(int32[2])", stk_g_softmax(g, i, 0));
    REFUSED(STK_ERR_SHAPE, "softmax(float32[3,0])", stk_g_softmax(g, z, 0));
    REFUSED(STK_ERR_SHAPE, "labels must have shape [2,3]", stk_g_softmax_cross_entropy(g, x, y, 0));
    REFUSED(STK_ERR_DTYPE, "labels must have the logits' dtype",
            stk_g_softmax_cross_entropy(g, x, i, 0));
    REFUSED(STK_ERR_RANGE, "smoothing 2", stk_g_softmax_cross_entropy(g, x, x, 2));
    REFUSED(STK_ERR_RANGE, "smoothing nan", stk_g_softmax_cross_entropy(g, x, x, NAN));
    REFUSED(STK_ERR_SHAPE, "labels must have shape [3]",
            stk_g_sparse_softmax_cross_entropy(g, y, i));
    REFUSED(STK_ERR_DTYPE, "class numbers", stk_g_sparse_softmax_cross_entropy(g, x, v));
    REFUSED(STK_ERR_SHAPE, "logits need a last axis", stk_g_sparse_softmax_cross_entropy(g, s, i));
    REFUSED(STK_ERR_ARGUMENT, "softmax_xent", stk_g_softmax_cross_entropy(g, x, 77, 0));
}

TEST(bad_norms)
{
    REFUSED(STK_ERR_SHAPE, "gamma must have shape [3]", stk_g_layer_norm(g, x, y, 0, 1, 1e-3));
    REFUSED(STK_ERR_RANGE, "last 3 axes", stk_g_layer_norm(g, x, 0, 0, 3, 1e-3));
    REFUSED(STK_ERR_RANGE, "last 0 axes", stk_g_rms_norm(g, x, 0, 0, 1e-3));
    REFUSED(STK_ERR_RANGE, "eps is -1", stk_g_layer_norm(g, x, 0, 0, 1, -1));
    REFUSED(STK_ERR_DTYPE, "layer_norm(int32[2])", stk_g_layer_norm(g, i, 0, 0, 1, 1e-3));
    REFUSED(STK_ERR_SHAPE, "layer_norm(float32[0,3])", stk_g_layer_norm(g, z, 0, 0, 2, 1e-3));
    REFUSED(STK_ERR_SHAPE, "2 groups do not divide 3", stk_g_group_norm(g, x, 0, 0, 2, 1e-3));
    REFUSED(STK_ERR_SHAPE, "0 groups", stk_g_group_norm(g, x, 0, 0, 0, 1e-3));
    REFUSED(STK_ERR_SHAPE, "at least 2 axes", stk_g_group_norm(g, v, 0, 0, 1, 1e-3));
    REFUSED(STK_ERR_RANGE, "batch_norm: axis 5", stk_g_batch_norm(g, x, 0, 0, 5, 1e-3, NULL, NULL));
    REFUSED(STK_ERR_RANGE, "batch_norm: eps", stk_g_batch_norm(g, x, 0, 0, -1, NAN, NULL, NULL));
    REFUSED(STK_ERR_SHAPE, "no rows", stk_g_batch_norm(g, z, 0, 0, -1, 1e-3, NULL, NULL));
    REFUSED(STK_ERR_SHAPE, "float32[3]", stk_g_batch_norm(g, x, 0, y, -1, 1e-3, NULL, NULL));
    REFUSED(STK_ERR_SHAPE, "gamma is int32[2]; needs float32[3]",
            stk_g_batch_norm(g, x, i, 0, -1, 1e-3, NULL, NULL));
    REFUSED(STK_ERR_ARGUMENT, "training form", stk_g_batch_norm_infer(g, x, v, v, 0, v, -1, 1e-3));
    REFUSED(STK_ERR_SHAPE, "variance is float32[]",
            stk_g_batch_norm_infer(g, x, v, v, v, s, -1, 1e-3));
    REFUSED(STK_ERR_RANGE, "unit_norm: eps", stk_g_unit_norm(g, x, 0, NULL, 0));
}

TEST(bad_scans_and_activations)
{
    REFUSED(STK_ERR_RANGE, "cumsum: axis 2", stk_g_cumsum(g, x, 2, false, false));
    REFUSED(STK_ERR_SHAPE, "linear_scan(float32[2,3], float32[3,2])",
            stk_g_linear_scan(g, x, y, 0, false));
    REFUSED(STK_ERR_DTYPE, "linear_scan", stk_g_linear_scan(g, i, i, 0, false));
    REFUSED(STK_ERR_RANGE, "clip: low 2", stk_g_clip(g, x, 2, 1));
    REFUSED(STK_ERR_RANGE, "celu: alpha is 0", stk_g_celu(g, x, 0));
    REFUSED(STK_ERR_SHAPE, "split", stk_g_glu(g, x, -1));
    REFUSED(STK_ERR_RANGE, "glu: axis 4", stk_g_glu(g, x, 4));
    REFUSED(STK_ERR_RANGE, "NaN", stk_g_relu_general(g, x, &(stk_relu_options){.threshold = NAN}));
    REFUSED(STK_ERR_DTYPE, "int32", stk_g_gelu(g, i, false));
}

/* Attributes that no builder would make. */
#define RAW(op, n, values, ...) stk_g_apply(g, op, n, values, &(stk_attrs){__VA_ARGS__})
#define INTS(...)                                                                                  \
    .ints = (int64_t[]){__VA_ARGS__}, .nints = (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / 8)
#define REALS(...)                                                                                 \
    .reals = (double[]){__VA_ARGS__}, .nreals = (int32_t)(sizeof((double[]){__VA_ARGS__}) / 8)

TEST(bad_attributes)
{
    REFUSED(STK_ERR_ARGUMENT, "layer_norm", RAW(STK_OP_LAYER_NORM, 1, &x, INTS(1)));
    REFUSED(STK_ERR_ARGUMENT, "takes 2 inputs",
            RAW(STK_OP_LAYER_NORM, 1, &x, INTS(1, 1, 0), REALS(0.1)));
    REFUSED(STK_ERR_ARGUMENT, "layer_norm",
            RAW(STK_OP_LAYER_NORM, 1, &x, INTS(1, 7, -1), REALS(0.1)));
    REFUSED(STK_ERR_ARGUMENT, "no beta",
            RAW(STK_OP_RMS_NORM, 2, ((stk_val[]){x, v}), INTS(1, 0, 1), REALS(0.1)));
    REFUSED(STK_ERR_RANGE, "layer_norm",
            RAW(STK_OP_LAYER_NORM, 1, &x, INTS(INT64_MIN, 0, 0), REALS(0.1)));
    REFUSED(STK_ERR_SHAPE, "a statistic",
            RAW(STK_OP_LAYER_NORM_GRAD, 4, ((stk_val[]){x, x, v, v}), INTS(1, 0, 0), REALS(0.1)));
    REFUSED(STK_ERR_SHAPE, "dy must have",
            RAW(STK_OP_LAYER_NORM_GRAD, 4, ((stk_val[]){y, x, v, v}), INTS(1, 0, 0), REALS(0.1)));
    REFUSED(STK_ERR_ARGUMENT, "cumsum", RAW(STK_OP_CUMSUM, 1, &x, INTS(0)));
    REFUSED(STK_ERR_RANGE, "cumsum", RAW(STK_OP_CUMSUM, 1, &x, INTS(9, 0, 0)));
    REFUSED(STK_ERR_ARGUMENT, "linear_scan",
            RAW(STK_OP_LINEAR_SCAN, 2, ((stk_val[]){x, x}), INTS(0, 1, 0)));
    REFUSED(STK_ERR_SHAPE, "softmax_grad",
            stk_g_apply(g, STK_OP_SOFTMAX_GRAD, 2, (stk_val[]){x, y}, NULL));
    REFUSED(STK_ERR_SHAPE, "column_sums",
            stk_g_apply(g, STK_OP_COLUMN_SUMS, 3, (stk_val[]){x, x, i}, NULL));
    REFUSED(STK_ERR_SHAPE, "scale_shift",
            stk_g_apply(g, STK_OP_SCALE_SHIFT, 4, (stk_val[]){x, y, v, v}, NULL));
    REFUSED(STK_ERR_SHAPE, "group_norm",
            RAW(STK_OP_GROUP_NORM, 3, ((stk_val[]){x, v, v}), REALS(0.1)));
}

/* ---- no memory ------------------------------------------------------------------------------------------------------ */

static stk_status build_everything(void)
{
    stk_graph *g = NULL;
    stk_error err;
    stk_program *p = NULL;
    stk_status status = stk_graph_new(&g, &err);
    if (status != STK_OK) return status;
    stk_val x = stk_g_input(g, "x", STK_F32, 2, (int64_t[]){4, 6}), d = 0;
    stk_val t = stk_g_input(g, "t", STK_I32, 1, (int64_t[]){4});
    stk_val h = stk_g_dropout(g, stk_g_gelu(g, stk_g_layer_norm(g, x, 0, 0, 1, 1e-3), false), 0.5,
                              NULL, NULL);
    h = stk_g_batch_norm(g, stk_g_cumprod(g, h, 1, false, false), 0, 0, -1, 1e-3, NULL, NULL);
    stk_val loss = stk_g_sum_all(g, stk_g_sparse_softmax_cross_entropy(g, h, t));
    stk_g_gradients(g, loss, 1, &x, &d);
    stk_g_gradients(g, stk_g_sum_all(g, stk_g_square(g, d)), 1, &x, &d);
    stk_g_output(g, "d", d);
    stk_program_options options = stk_program_options_defaults();
    options.deterministic = true;
    status = stk_program_new(g, &options, &p, &err);
    stk_program_release(p);
    stk_graph_release(g);
    return status;
}

TEST(out_of_memory) { OOM_LOOP(build_everything()); }

TEST_MAIN()
