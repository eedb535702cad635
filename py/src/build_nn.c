/* Builders: neural nets, norms, convolutions, recurrent layers, random numbers. */
#include "front.h"

#include <string.h>

#define BUILD(name) int32_t py_build_##name(py_build *b)
#define ONE(value)  return b->y[0] = (value), 1

/* ---- activations ------------------------------------------------------------------------------------ */

#define PLAIN(name)                                                                                \
    BUILD(name) { ONE(stk_g_##name(b->g, b->x[0])); }
#define WITH_REAL(name)                                                                            \
    BUILD(name) { ONE(stk_g_##name(b->g, b->x[0], py_real(b))); }
PLAIN(relu6)
PLAIN(selu)
PLAIN(mish)
PLAIN(softsign)
PLAIN(log_sigmoid)
PLAIN(hard_sigmoid)
PLAIN(hard_silu)
PLAIN(hard_tanh)
PLAIN(tanh_shrink)
PLAIN(sparse_plus)
PLAIN(sparse_sigmoid)
WITH_REAL(leaky_relu)
WITH_REAL(elu)
WITH_REAL(celu)
WITH_REAL(soft_shrink)
WITH_REAL(hard_shrink)
WITH_REAL(squareplus)
BUILD(gelu) { ONE(stk_g_gelu(b->g, b->x[0], py_int(b))); }
BUILD(silu)
{
    double beta = py_real(b);
    if (beta == 1) ONE(stk_g_silu(b->g, b->x[0]));
    stk_val scaled = stk_g_mul(b->g, b->x[0], stk_g_scalar(b->g, stk_g_dtype(b->g, b->x[0]), beta));
    ONE(stk_g_mul(b->g, b->x[0], stk_g_sigmoid(b->g, scaled)));
}
BUILD(threshold)
{
    double limit = py_real(b);
    ONE(stk_g_threshold(b->g, b->x[0], limit, py_real(b)));
}
BUILD(glu) { ONE(stk_g_glu(b->g, b->x[0], (int32_t)py_int(b))); }
BUILD(softmax) { ONE(stk_g_softmax(b->g, b->x[0], (int32_t)py_int(b))); }
BUILD(log_softmax) { ONE(stk_g_log_softmax(b->g, b->x[0], (int32_t)py_int(b))); }
BUILD(attention)
{
    stk_val query = *b->x++, key = *b->x++, value = *b->x++, mask = py_maybe(b);
    stk_attention_options o = {.mask = mask, .causal = py_int(b) != 0};
    o.scale = py_real(b);
    ONE(stk_g_attention(b->g, query, key, value, &o));
}
BUILD(softmax_cross_entropy)
{
    ONE(stk_g_softmax_cross_entropy(b->g, b->x[1], b->x[0], py_real(b)));
}
BUILD(sparse_softmax_cross_entropy)
{
    ONE(stk_g_sparse_softmax_cross_entropy(b->g, b->x[1], b->x[0]));
}
BUILD(sigmoid_cross_entropy) { ONE(stk_g_sigmoid_cross_entropy(b->g, b->x[1], b->x[0])); }

/* ---- norms ----------------------------------------------------------------------------------------------- */

BUILD(batch_norm_train)
{
    stk_val x = *b->x++, gamma = py_maybe(b), beta = py_maybe(b);
    int32_t axis = (int32_t)py_int(b);
    b->y[0] = stk_g_batch_norm(b->g, x, gamma, beta, axis, py_real(b), &b->y[1], &b->y[2]);
    return 3;
}
BUILD(batch_norm_infer)
{
    stk_val x = *b->x++, gamma = py_maybe(b), beta = py_maybe(b), mean = *b->x++,
            variance = *b->x++;
    int32_t axis = (int32_t)py_int(b);
    ONE(stk_g_batch_norm_infer(b->g, x, gamma, beta, mean, variance, axis, py_real(b)));
}
BUILD(layer_norm)
{
    stk_val x = *b->x++, gamma = py_maybe(b), beta = py_maybe(b);
    int32_t axes = (int32_t)py_int(b);
    ONE(stk_g_layer_norm(b->g, x, gamma, beta, axes, py_real(b)));
}
BUILD(rms_norm)
{
    stk_val x = *b->x++, gamma = py_maybe(b);
    int32_t axes = (int32_t)py_int(b);
    ONE(stk_g_rms_norm(b->g, x, gamma, axes, py_real(b)));
}
BUILD(group_norm)
{
    stk_val x = *b->x++, gamma = py_maybe(b), beta = py_maybe(b);
    int32_t groups = (int32_t)py_int(b);
    ONE(stk_g_group_norm(b->g, x, gamma, beta, groups, py_real(b)));
}
/* x / sqrt(max(sum of squares, epsilon)), as TensorFlow has it. */
BUILD(l2_normalize)
{
    int64_t n;
    int32_t axes[STK_MAX_RANK];
    const int64_t *list = py_list(b, &n);
    for (int64_t i = 0; i < n && i < STK_MAX_RANK; i++) axes[i] = (int32_t)list[i];
    stk_graph *g = b->g;
    stk_val sum = stk_g_sum(g, stk_g_square(g, b->x[0]), n < 0 ? 0 : (int32_t)n, axes, true);
    stk_val least = stk_g_scalar(g, stk_g_dtype(g, b->x[0]), py_real(b));
    ONE(stk_g_mul(g, b->x[0], stk_g_rsqrt(g, stk_g_max(g, sum, least))));
}

/* ---- convolution and pooling --------------------------------------------------------------------------------- */

static void take_list(py_build *b, int64_t *to) /* what is not given keeps its default */
{
    int64_t n;
    const int64_t *list = py_list(b, &n);
    for (int64_t i = 0; i < n && i < 3; i++) to[i] = list[i];
}

static stk_conv_options conv_options(py_build *b)
{
    stk_conv_options o = stk_conv_options_defaults();
    take_list(b, o.stride);
    o.padding = (stk_padding)py_int(b);
    take_list(b, o.dilation);
    return o;
}

BUILD(conv)
{
    stk_conv_options o = conv_options(b);
    o.groups = py_int(b);
    take_list(b, o.low);
    take_list(b, o.high);
    ONE(stk_g_conv(b->g, b->x[0], b->x[1], &o));
}
BUILD(conv_transpose)
{
    stk_conv_options o = conv_options(b);
    take_list(b, o.output_padding);
    ONE(stk_g_conv_transpose(b->g, b->x[0], b->x[1], &o));
}
BUILD(depthwise_conv)
{
    stk_conv_options o = conv_options(b);
    ONE(stk_g_depthwise_conv(b->g, b->x[0], b->x[1], &o));
}

static stk_pool_options pool_options(py_build *b)
{
    stk_pool_options o = stk_pool_options_defaults();
    take_list(b, o.window);
    take_list(b, o.stride);
    o.padding = (stk_padding)py_int(b);
    take_list(b, o.low);
    take_list(b, o.high);
    return o;
}
BUILD(max_pool)
{
    stk_pool_options o = pool_options(b);
    ONE(stk_g_max_pool(b->g, b->x[0], &o));
}
BUILD(avg_pool)
{
    stk_pool_options o = pool_options(b);
    ONE(stk_g_avg_pool(b->g, b->x[0], &o));
}

/* ---- recurrent: sequence, h, c ----------------------------------------------------------------------------- */

/* What both cells have: *w is the sequence and its two weights, then what may be missing; what is said of time comes last. */
static stk_rnn_options rnn_options(py_build *b, const stk_val **w, stk_val *bias, bool lstm)
{
    stk_rnn_options o = stk_rnn_options_defaults();
    *w = b->x;
    b->x += 3;
    *bias = py_maybe(b);
    o.mask = py_maybe(b);
    o.h0 = py_maybe(b);
    if (lstm) o.c0 = py_maybe(b);
    o.time_major = py_int(b);
    o.reverse = py_int(b);
    return o;
}

BUILD(lstm)
{
    const stk_val *w;
    stk_val bias;
    stk_rnn_options o = rnn_options(b, &w, &bias, true);
    stk_rnn_result r = stk_g_lstm(b->g, w[0], w[1], w[2], bias, &o);
    b->y[0] = r.sequence, b->y[1] = r.h, b->y[2] = r.c;
    return 3;
}
BUILD(gru)
{
    const stk_val *w;
    stk_val bias;
    stk_rnn_options o = rnn_options(b, &w, &bias, false);
    o.reset_after = py_int(b);
    stk_rnn_result r = stk_g_gru(b->g, w[0], w[1], w[2], bias, &o);
    b->y[0] = r.sequence, b->y[1] = r.h;
    return 2;
}

/* ---- random numbers ---------------------------------------------------------------------------------------------- */

typedef struct random_call {
    stk_random_options options;
    int64_t n;
    const int64_t *shape;
    stk_dtype dtype;
    double a, b;
} random_call;

static stk_random_options random_options(py_build *b, stk_val counter)
{
    stk_random_options o = stk_random_options_defaults();
    o.counter = counter && stk_g_dtype(b->g, counter) != STK_I64
                    ? stk_g_cast(b->g, counter, STK_I64)
                    : counter;
    o.seed = py_int(b);
    o.stream = py_int(b);
    return o;
}

static random_call random_arguments(py_build *b, int reals)
{
    random_call r = {0};
    stk_val counter = py_maybe(b);
    r.shape = py_list(b, &r.n);
    if (reals > 0) r.a = py_real(b);
    if (reals > 1) r.b = py_real(b);
    r.dtype = (stk_dtype)py_int(b);
    r.options = random_options(b, counter);
    return r;
}

BUILD(random_uniform)
{
    random_call r = random_arguments(b, 2);
    ONE(stk_g_random_uniform(b->g, r.dtype, (int32_t)r.n, r.shape, r.a, r.b, &r.options));
}
BUILD(random_normal)
{
    random_call r = random_arguments(b, 2);
    ONE(stk_g_random_normal(b->g, r.dtype, (int32_t)r.n, r.shape, r.a, r.b, &r.options));
}
BUILD(random_truncated_normal)
{
    random_call r = random_arguments(b, 2);
    ONE(stk_g_random_truncated_normal(b->g, r.dtype, (int32_t)r.n, r.shape, r.a, r.b, &r.options));
}
BUILD(random_bernoulli)
{
    random_call r = random_arguments(b, 1);
    ONE(stk_g_random_bernoulli(b->g, r.dtype, (int32_t)r.n, r.shape, r.a, &r.options));
}
BUILD(random_int)
{
    stk_val counter = py_maybe(b);
    int64_t n;
    const int64_t *shape = py_list(b, &n);
    int64_t low = py_int(b), high = py_int(b);
    stk_dtype d = (stk_dtype)py_int(b);
    stk_random_options o = random_options(b, counter);
    ONE(stk_g_random_int(b->g, d, (int32_t)n, shape, low, high, &o));
}
BUILD(random_permutation)
{
    stk_val counter = py_maybe(b);
    int64_t n = py_int(b);
    stk_random_options o = random_options(b, counter);
    ONE(stk_g_random_permutation(b->g, n, &o));
}
BUILD(dropout)
{
    stk_val x = *b->x++, counter = py_maybe(b);
    int64_t n;
    const int64_t *noise = py_list(b, &n);
    double rate = py_real(b);
    stk_random_options o = random_options(b, counter);
    ONE(stk_g_dropout(b->g, x, rate, n < 0 ? NULL : noise, &o));
}
