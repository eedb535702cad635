/* Convolution and pooling as graph operations: values, gradients, gradients of gradients, shapes as Keras has them, mistakes. */
#include "op_case.h"

/* ---- cases: kernels against the reference, gradients by differences ---------------------------------- */

static stk_conv_options plain(stk_padding padding)
{
    stk_conv_options o = stk_conv_options_defaults();
    o.padding = padding;
    return o;
}

static stk_val build_valid(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    return stk_g_conv(g, in[0], in[1], NULL);
}

static stk_val build_same(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    stk_conv_options o = plain(STK_PADDING_SAME);
    return stk_g_conv(g, in[0], in[1], &o);
}

static stk_val build_same_stride(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    stk_conv_options o = plain(STK_PADDING_SAME);
    for (int i = 0; i < 3; i++) o.stride[i] = 2;
    return stk_g_conv(g, in[0], in[1], &o);
}

static stk_val build_same_dilation(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    stk_conv_options o = plain(STK_PADDING_SAME);
    for (int i = 0; i < 3; i++) o.dilation[i] = 2;
    return stk_g_conv(g, in[0], in[1], &o);
}

static stk_val build_explicit(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    stk_conv_options o = plain(STK_PADDING_EXPLICIT);
    o.low[0] = 2, o.high[0] = 0, o.low[1] = 0, o.high[1] = 1;
    o.stride[0] = 3;
    return stk_g_conv(g, in[0], in[1], &o);
}

static stk_val build_causal(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    stk_conv_options o = plain(STK_PADDING_CAUSAL);
    o.dilation[0] = 2;
    return stk_g_conv(g, in[0], in[1], &o);
}

static stk_val build_groups_2(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    stk_conv_options o = plain(STK_PADDING_SAME);
    o.groups = 2;
    return stk_g_conv(g, in[0], in[1], &o);
}

static stk_val build_depthwise(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    stk_conv_options o = plain(STK_PADDING_SAME);
    return stk_g_depthwise_conv(g, in[0], in[1], &o);
}

static stk_val build_separable(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    return stk_g_separable_conv(g, in[0], in[1], in[2], NULL);
}

static stk_val build_transpose(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    stk_conv_options o = plain(STK_PADDING_SAME);
    o.stride[0] = o.stride[1] = 2;
    return stk_g_conv_transpose(g, in[0], in[1], &o);
}

static stk_val build_transpose_valid(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    stk_conv_options o = plain(STK_PADDING_VALID);
    o.stride[0] = o.stride[1] = 3;
    return stk_g_conv_transpose(g, in[0], in[1], &o);
}

static stk_pool_options window(int64_t size, int64_t stride, stk_padding padding)
{
    stk_pool_options o = stk_pool_options_defaults();
    for (int i = 0; i < 3; i++) o.window[i] = size, o.stride[i] = stride;
    o.padding = padding;
    return o;
}

/* The square makes the second derivative of a sum something else than zero. */
static stk_val build_max(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    return stk_g_square(g, stk_g_max_pool(g, in[0], NULL));
}

static stk_val build_max_same(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    stk_pool_options o = window(3, 2, STK_PADDING_SAME);
    return stk_g_square(g, stk_g_max_pool(g, in[0], &o));
}

static stk_val build_avg_same(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    stk_pool_options o = window(3, 2, STK_PADDING_SAME);
    return stk_g_square(g, stk_g_avg_pool(g, in[0], &o));
}

static stk_val build_avg_explicit(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    stk_pool_options o = window(4, 1, STK_PADDING_EXPLICIT);
    o.low[0] = 3, o.high[1] = 2;
    return stk_g_square(g, stk_g_avg_pool(g, in[0], &o));
}

static stk_val build_global(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    stk_val mean = stk_g_global_avg_pool(g, in[0], false);
    return stk_g_mul(g, mean, stk_g_global_max_pool(g, in[0], false));
}

/* The network this engine is measured with, small: convolution, bias, relu, pooling, dense. */
static stk_val build_network(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    stk_val y = stk_g_relu(g, stk_g_add(g, stk_g_conv(g, in[0], in[1], NULL), in[2]));
    y = stk_g_max_pool(g, y, NULL);
    int64_t flat = stk_g_dim(g, y, 1) * stk_g_dim(g, y, 2) * stk_g_dim(g, y, 3);
    y = stk_g_reshape(g, y, 2, (int64_t[]){-1, flat});
    return stk_g_tanh(g, stk_g_matmul(g, y, in[3]));
}

/* Pooling is taken before relu and bias: the same values and gradients as behind them. */
static stk_val build_max_early(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    stk_val late = stk_g_relu(g, stk_g_add(g, in[1], stk_g_relu(g, in[0])));
    stk_val even = stk_g_max_pool(g, late, NULL);
    stk_pool_options o = window(2, 2, STK_PADDING_VALID);
    stk_val odd = stk_g_max_pool(g, stk_g_mul(g, late, late), &o);
    return stk_g_add(g, stk_g_mul(g, even, even), odd);
}

#define X(...)                                                                                     \
    {                                                                                              \
        STK_F32, (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}, -1, \
            1                                                                                      \
    }

/* clang-format off */
static const op_case cases[] = {
    {.name = "conv", .build = build_valid, .nin = 2, .in = {X(2, 6, 7, 3), X(3, 3, 3, 8)}, .grad2 = 1},
    {.name = "conv first layer", .build = build_valid, .nin = 2, .in = {X(3, 16, 15, 3), X(3, 3, 3, 32)}},
    {.name = "conv odd channels", .build = build_valid, .nin = 2, .in = {X(2, 5, 6, 5), X(2, 3, 5, 7)}, .grad2 = 1},
    {.name = "conv many images", .build = build_same, .nin = 2, .in = {X(37, 8, 8, 4), X(3, 3, 4, 16)}},
    {.name = "conv wide", .build = build_same, .nin = 2, .in = {X(4, 9, 9, 32), X(3, 3, 32, 64)}, .tol = 1e-4},
    {.name = "conv same", .build = build_same, .nin = 2, .in = {X(2, 5, 4, 2), X(3, 2, 2, 3)}, .grad2 = 1},
    {.name = "conv same stride 2 odd", .build = build_same_stride, .nin = 2, .in = {X(2, 7, 5, 3), X(3, 3, 3, 4)}, .grad2 = 1},
    {.name = "conv same stride 2 even", .build = build_same_stride, .nin = 2, .in = {X(2, 8, 6, 3), X(3, 2, 3, 8)}},
    {.name = "conv stride above kernel", .build = build_same_stride, .nin = 2, .in = {X(2, 7, 6, 3), X(1, 1, 3, 4)}},
    {.name = "conv dilation", .build = build_same_dilation, .nin = 2, .in = {X(1, 7, 8, 2), X(3, 3, 2, 4)}, .grad2 = 1},
    {.name = "conv explicit", .build = build_explicit, .nin = 2, .in = {X(2, 7, 6, 2), X(4, 3, 2, 5)}},
    {.name = "conv 1x1", .build = build_valid, .nin = 2, .in = {X(3, 4, 5, 6), X(1, 1, 6, 7)}, .grad2 = 1},
    {.name = "conv whole image", .build = build_valid, .nin = 2, .in = {X(3, 4, 5, 2), X(4, 5, 2, 6)}, .grad2 = 1},
    {.name = "conv groups", .build = build_groups_2, .nin = 2, .in = {X(2, 5, 5, 6), X(3, 3, 3, 4)}, .grad2 = 1},
    {.name = "conv one pixel", .build = build_same, .nin = 2, .in = {X(1, 1, 1, 1), X(3, 3, 1, 1)}},
    {.name = "conv empty batch", .build = build_same, .nin = 2, .in = {X(0, 4, 4, 2), X(3, 3, 2, 3)}},
    {.name = "conv 1x1 empty batch", .build = build_same, .nin = 2, .in = {X(0, 4, 4, 2), X(1, 1, 2, 3)}},
    {.name = "conv 1-d", .build = build_same_stride, .nin = 2, .in = {X(2, 9, 3), X(4, 3, 5)}, .grad2 = 1},
    {.name = "conv 1-d causal", .build = build_causal, .nin = 2, .in = {X(2, 9, 3), X(3, 3, 8)}, .grad2 = 1},
    {.name = "conv 3-d", .build = build_same_stride, .nin = 2, .in = {X(2, 4, 5, 3, 2), X(3, 2, 3, 2, 4)}, .grad2 = 1},
    {.name = "depthwise", .build = build_depthwise, .nin = 2, .in = {X(2, 5, 6, 9), X(3, 3, 9, 1)}, .grad2 = 1},
    {.name = "depthwise registers", .build = build_depthwise, .nin = 2, .in = {X(3, 8, 7, 40), X(3, 3, 40, 1)}},
    {.name = "depthwise multiplier", .build = build_depthwise, .nin = 2, .in = {X(2, 5, 4, 3), X(2, 3, 3, 2)}, .grad2 = 1},
    {.name = "depthwise one channel", .build = build_depthwise, .nin = 2, .in = {X(2, 5, 4, 1), X(3, 3, 1, 4)}},
    {.name = "separable", .build = build_separable, .nin = 3, .in = {X(2, 5, 5, 3), X(3, 3, 3, 2), X(1, 1, 6, 4)}},
    {.name = "transpose same", .build = build_transpose, .nin = 2, .in = {X(2, 3, 4, 5), X(3, 3, 2, 5)}, .grad2 = 1},
    {.name = "transpose even kernel", .build = build_transpose, .nin = 2, .in = {X(1, 4, 4, 3), X(4, 2, 16, 3)}},
    {.name = "transpose valid", .build = build_transpose_valid, .nin = 2, .in = {X(2, 3, 4, 3), X(4, 2, 2, 3)}},
    {.name = "max pool", .build = build_max, .nin = 1, .in = {X(3, 6, 7, 5)}, .grad2 = 1},
    {.name = "max pool registers", .build = build_max, .nin = 1, .in = {X(4, 8, 8, 32)}},
    {.name = "max pool same", .build = build_max_same, .nin = 1, .in = {X(2, 7, 6, 4)}, .grad2 = 1},
    {.name = "max pool 1-d", .build = build_max_same, .nin = 1, .in = {X(2, 7, 4)}, .grad2 = 1},
    {.name = "max pool 3-d", .build = build_max, .nin = 1, .in = {X(2, 4, 5, 6, 3)}, .grad2 = 1},
    {.name = "max pool empty batch", .build = build_max, .nin = 1, .in = {X(0, 4, 4, 3)}},
    {.name = "max pool before relu and bias", .build = build_max_early, .nin = 2, .in = {X(2, 4, 6, 8), X(8)}},
    {.name = "avg pool same", .build = build_avg_same, .nin = 1, .in = {X(2, 7, 6, 4)}, .grad2 = 1},
    {.name = "avg pool explicit", .build = build_avg_explicit, .nin = 1, .in = {X(2, 5, 6, 3)}, .grad2 = 1},
    {.name = "avg pool 3-d", .build = build_avg_same, .nin = 1, .in = {X(2, 4, 5, 3, 9)}, .grad2 = 1},
    {.name = "global pool", .build = build_global, .nin = 1, .in = {X(2, 3, 4, 5)}, .grad2 = 1},
    {.name = "network", .build = build_network, .nin = 4, .in = {X(8, 10, 10, 3), X(3, 3, 3, 16), X(16), X(256, 10)}, .grad_tol = 1e-4},
};

/* clang-format on */

OP_CASE_TEST(cases, cases)

/* ---- shapes ---------------------------------------------------------------------------------------------- */

static void check_shape(const stk_graph *g, stk_val v, int32_t rank, const int64_t *dims)
{
    stk_error err;
    CHECK_OK(stk_graph_status(g, &err));
    CHECK_EQ_I64(stk_g_rank(g, v), rank);
    for (int32_t i = 0; i < rank; i++) CHECK_EQ_I64(stk_g_dim(g, v, i), dims[i]);
}
#define CHECK_SHAPE(g, v, ...)                                                                     \
    check_shape((g), (v), (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),           \
                (int64_t[]){__VA_ARGS__})

static stk_val input(stk_graph *g, const char *name, int32_t rank, const int64_t *shape)
{
    return stk_g_input(g, name, STK_F32, rank, shape);
}

TEST(output_sizes_are_those_of_keras)
{
    stk_graph *g = NULL;
    stk_error err;
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val x = input(g, "x", 4, (int64_t[]){2, 7, 8, 3});
    stk_val w = input(g, "w", 4, (int64_t[]){3, 3, 3, 4}),
            t = input(g, "t", 4, (int64_t[]){3, 3, 4, 3});
    stk_conv_options o = stk_conv_options_defaults();
    CHECK_SHAPE(g, stk_g_conv(g, x, w, &o), 2, 5, 6, 4);
    o.stride[0] = o.stride[1] = 2;
    CHECK_SHAPE(g, stk_g_conv(g, x, w, &o), 2, 3, 3, 4);
    CHECK_SHAPE(g, stk_g_conv_transpose(g, x, t, &o), 2, 15, 17, 4);
    o.padding = STK_PADDING_SAME;
    CHECK_SHAPE(g, stk_g_conv(g, x, w, &o), 2, 4, 4, 4);
    CHECK_SHAPE(g, stk_g_conv_transpose(g, x, t, &o), 2, 14, 16, 4);
    o.output_padding[0] = o.output_padding[1] = 0;
    CHECK_SHAPE(g, stk_g_conv_transpose(g, x, t, &o), 2, 13, 15, 4);
    o.output_padding[0] = o.output_padding[1] = 1;
    CHECK_SHAPE(g, stk_g_conv_transpose(g, x, t, &o), 2, 14, 16, 4);
    CHECK_SHAPE(g, stk_g_global_avg_pool(g, x, true), 2, 1, 1, 3);
    CHECK_SHAPE(g, stk_g_max_pool(g, x, NULL), 2, 3, 4, 3);
    stk_graph_release(g);
}

TEST(pooling_goes_before_relu_and_bias)
{
    stk_graph *g = NULL;
    stk_error err;
    char *text = NULL;
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val x = input(g, "x", 4, (int64_t[]){1, 4, 4, 3}), b = input(g, "b", 1, (int64_t[]){3});
    stk_val y = stk_g_max_pool(g, stk_g_relu(g, stk_g_add(g, x, b)), NULL);
    CHECK_SHAPE(g, y, 1, 2, 2, 3);
    stk_g_output(g, "y", y);
    CHECK_OK(stk_graph_dump(g, &text, &err));
    const char *pool = strstr(text, "max_pool"), *last = NULL;
    for (const char *at = text; (at = strstr(at, "relu")); at++) last = at;
    CHECK(pool && last && pool < last);
    stk_text_free(text);
    stk_graph_release(g);
}

/* What passes from convolution to pooling never exists as a whole: each thread has room for one part of it. */
TEST(values_inside_a_region_take_no_memory_of_their_own)
{
    stk_graph *g = NULL;
    stk_program *p = NULL;
    stk_program_stats stats;
    stk_error err;
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val x = input(g, "x", 4, (int64_t[]){32, 34, 34, 3}),
            w = input(g, "w", 4, (int64_t[]){3, 3, 3, 16});
    stk_g_output(g, "y", stk_g_max_pool(g, stk_g_conv(g, x, w, NULL), NULL));
    stk_program_options o = stk_program_options_defaults();
    o.deterministic = true;
    CHECK_OK(stk_program_new(g, &o, &p, &err));
    stk_program_describe(p, &stats);
    CHECK(stats.arena_bytes < 32 * 32 * 32 * 16 * 4);
    stk_program_release(p);
    stk_graph_release(g);
}

/* ---- mistakes ------------------------------------------------------------------------------------------------ */

typedef struct mistake {
    const char *name;
    stk_status code;
    const char *says;
    int32_t rank;
    int64_t x[5], w[5];
    stk_conv_options o;
} mistake;

#define SIZES   .stride = {1, 1, 1}, .output_padding = {-1, -1, -1}
#define OPTIONS SIZES, .dilation = {1, 1, 1}, .groups = 1

TEST(mistakes_are_named)
{
    /* clang-format off */
    static const mistake list[] = {
        {"rank", STK_ERR_SHAPE, "[batch, 1 to 3 sizes, channels]", 2, {3, 4}, {3, 4}, {OPTIONS}},
        {"channels", STK_ERR_SHAPE, "need kernels of 5 input channels, not 3", 4, {1, 4, 4, 5}, {3, 3, 3, 2}, {OPTIONS}},
        {"kernel", STK_ERR_SHAPE, "does not fit into 0 + 2 + 0 pixels", 4, {1, 2, 4, 3}, {3, 3, 3, 2}, {OPTIONS}},
        {"pixels", STK_ERR_SHAPE, "does not fit", 4, {1, 0, 4, 3}, {1, 1, 3, 2}, {OPTIONS}},
        {"groups", STK_ERR_SHAPE, "2 group(s)", 4, {1, 4, 4, 5}, {3, 3, 3, 2}, {SIZES, .dilation = {1, 1, 1}, .groups = 2}},
        {"filters", STK_ERR_SHAPE, "do not divide into 2 groups", 4, {1, 4, 4, 4}, {3, 3, 2, 3}, {SIZES, .dilation = {1, 1, 1}, .groups = 2}},
        {"no groups", STK_ERR_RANGE, "groups", 4, {1, 4, 4, 4}, {3, 3, 2, 3}, {SIZES, .dilation = {1, 1, 1}}},
        {"stride", STK_ERR_RANGE, "stride", 4, {1, 4, 4, 4}, {3, 3, 4, 3}, {.dilation = {1, 1}, .groups = 1}},
        {"causal", STK_ERR_ARGUMENT, "causal", 4, {1, 4, 4, 4}, {3, 3, 4, 3}, {OPTIONS, .padding = STK_PADDING_CAUSAL}},
        {"padding", STK_ERR_ARGUMENT, "padding 9", 4, {1, 4, 4, 4}, {3, 3, 4, 3}, {OPTIONS, .padding = (stk_padding)9}},
        {"negative", STK_ERR_RANGE, "padding at least 0", 3, {1, 4, 4}, {3, 4, 3}, {OPTIONS, .low = {-1}}},
        {"huge", STK_ERR_RANGE, "below 2^31", 3, {1, 4, 4}, {3, 4, 3}, {SIZES, .dilation = {INT64_MAX, 1, 1}, .groups = 1}},
    };
    /* clang-format on */
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const mistake *m = &list[i];
        stk_graph *g = NULL;
        stk_error err;
        CHECK_OK(stk_graph_new(&g, &err));
        stk_val y =
            stk_g_conv(g, input(g, "x", m->rank, m->x), input(g, "w", m->rank, m->w), &m->o);
        CHECK_EQ_I64(y, 0);
        if (!CHECK_FAILS(stk_graph_status(g, &err), m->code, m->says))
            printf("    mistake '%s'\n", m->name);
        CHECK_CONTAINS(err.message, "conv(float32[");
        stk_graph_release(g);
    }
}

static void pool_fails(stk_pool_options o, stk_status code, const char *says)
{
    stk_graph *g = NULL;
    stk_error err;
    CHECK_OK(stk_graph_new(&g, &err));
    CHECK_EQ_I64(stk_g_max_pool(g, input(g, "x", 4, (int64_t[]){1, 4, 4, 2}), &o), 0);
    CHECK_FAILS(stk_graph_status(g, &err), code, says);
    CHECK_CONTAINS(err.message, "max_pool(float32[1,4,4,2])");
    stk_graph_release(g);
}

TEST(mistakes_of_pooling_are_named)
{
    pool_fails(window(5, 1, STK_PADDING_VALID), STK_ERR_SHAPE, "window 5 does not fit");
    pool_fails(window(0, 1, STK_PADDING_SAME), STK_ERR_RANGE, "at least 1");
    pool_fails(window(2, -1, STK_PADDING_SAME), STK_ERR_RANGE, "at least 1");
    pool_fails(window(2, 2, STK_PADDING_CAUSAL), STK_ERR_ARGUMENT, "valid, same or explicit");
    stk_pool_options o = window(2, 2, STK_PADDING_EXPLICIT);
    o.high[1] = 2;
    pool_fails(o, STK_ERR_RANGE, "smaller than the window");
    pool_fails(window(INT64_MAX, INT64_MAX, STK_PADDING_SAME), STK_ERR_RANGE, "at least 1");
}

/* The general door takes what a tracer sends: any attributes at all. */
TEST(attributes_from_outside_are_checked)
{
    static const int64_t bad[][16] = {
        {1, 1, 1, 1, 0, 0, 0, 0, 1, 9, 9}, /* sizes that do not belong to this gradient */
        {1, 1, 1, 1, 0, 0, 0, 0, 1, -1, 4},
        {1, 1, 1, 1, 0, 0, 0, 0, 1L << 40, 4, 4},
        {0, 1, 1, 1, 0, 0, 0, 0, 1, 4, 4},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (int32_t n = 9; n <= 12; n++) {
            stk_graph *g = NULL;
            stk_error err;
            CHECK_OK(stk_graph_new(&g, &err));
            stk_val in[2] = {input(g, "dy", 4, (int64_t[]){1, 2, 2, 5}),
                             input(g, "w", 4, (int64_t[]){3, 3, 2, 5})};
            CHECK_EQ_I64(stk_g_apply(g, STK_OP_CONV_BWD_DATA, 2, in,
                                     &(stk_attrs){.ints = bad[i], .nints = n}),
                         0);
            CHECK(stk_graph_status(g, &err) != STK_OK);
            CHECK_CONTAINS(err.message, "conv_bwd_data(float32[1,2,2,5], float32[3,3,2,5])");
            stk_graph_release(g);
        }
}

TEST_MAIN()
