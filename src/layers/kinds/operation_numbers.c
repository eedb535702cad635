/* Operations of keras.ops that compute: reductions, norms, scans, pooling and convolution with given kernels. */
#include "layers/kinds/image.h"
#include "layers/kinds/operation.h"
#include "stoker/image.h"

#include <math.h>
#include <string.h>

static stk_val number(stk_layer_call *c, stk_val like, double value)
{
    return stk_g_scalar(c->g, stk_g_dtype(c->g, like), value);
}

static double epsilon_of(const stk_operation *o) { return isnan(o->epsilon) ? 1e-7 : o->epsilon; }

stk_val stk_o_scaled(stk_layer_call *c, stk_val x, double factor)
{
    return stk_g_mul(c->g, x, number(c, x, factor));
}

/* Half types and integers as Keras computes statistics: at least float32. */
static stk_val wide(stk_layer_call *c, stk_val x)
{
    return stk_g_dtype(c->g, x) == STK_F64 ? x : stk_g_cast(c->g, x, STK_F32);
}

/* ---- reductions ---------------------------------------------------------------------------------------------------------- */

static int32_t axes_of(const stk_ints *given, int32_t *axes)
{
    for (int32_t i = 0; i < given->n; i++) axes[i] = (int32_t)given->v[i];
    return given->n > 0 ? given->n : 0;
}

stk_val stk_o_reduce(stk_layer_call *c, const stk_operation *o, stk_o_reduction op)
{
    int32_t axes[STK_MAX_RANK], n = axes_of(&o->axis, axes);
    return op(c->g, stk_o_argument(c, 0), n, axes, o->keepdims);
}

static stk_val variance(stk_layer_call *c, stk_val x, const stk_ints *over, bool keep,
                        stk_val *mean)
{
    int32_t axes[STK_MAX_RANK], n = axes_of(over, axes);
    stk_val middle = stk_g_mean(c->g, x, n, axes, true);
    if (mean) *mean = keep ? middle : stk_g_mean(c->g, x, n, axes, false);
    return stk_g_mean(c->g, stk_g_square(c->g, stk_g_sub(c->g, x, middle)), n, axes, keep);
}

stk_val stk_o_variance(stk_layer_call *c, const stk_operation *o, bool root)
{
    stk_val v = variance(c, stk_o_argument(c, 0), &o->axis, o->keepdims, NULL);
    return root ? stk_g_sqrt(c->g, v) : v;
}

stk_val stk_o_moments(stk_layer_call *c, const stk_operation *o)
{
    stk_val mean = 0;
    c->y[1] = variance(c, stk_o_argument(c, 0), &o->axes, o->keepdims, &mean);
    c->ny = 2;
    return mean;
}

/* Over any axes: the largest is taken out before, so that nothing overflows. */
stk_val stk_o_logsumexp(stk_layer_call *c, const stk_operation *o)
{
    stk_graph *g = c->g;
    stk_val x = stk_o_argument(c, 0);
    int32_t axes[STK_MAX_RANK], n = axes_of(&o->axis, axes);
    if (n == 1) return stk_g_logsumexp(g, x, axes[0], o->keepdims);
    if (n == 0 && !o->keepdims) return stk_g_logsumexp(g, stk_o_flat(c, x), 0, false);
    stk_val most = stk_g_reduce_max(g, x, n, axes, true);
    stk_val sum = stk_g_sum(g, stk_g_exp(g, stk_g_sub(g, x, most)), n, axes, true);
    stk_val y = stk_g_add(g, stk_g_log(g, sum), most);
    return o->keepdims ? y : stk_g_mean(g, y, n, axes, false);
}

/* The largest or smallest one's place: int32, over the flattened input without an axis. */
stk_val stk_o_place_of(stk_layer_call *c, const stk_operation *o, stk_o_place op)
{
    stk_val x = stk_o_argument(c, 0);
    int32_t rank = stk_g_rank(c->g, x), axis = o->axis.n < 0 ? 0 : stk_c_axis(c, 0, o->axis.v[0]);
    if (axis < 0) return 0;
    if (o->axis.n < 0) x = stk_o_flat(c, x);
    stk_val y = stk_g_cast(c->g, op(c->g, x, axis), STK_I32);
    if (!o->keepdims) return y;
    if (o->axis.n >= 0) return stk_g_expand_dims(c->g, y, axis);
    return stk_g_reshape(c->g, y, rank, (int64_t[STK_MAX_RANK]){1, 1, 1, 1, 1, 1, 1, 1});
}

stk_val stk_o_cumulate(stk_layer_call *c, const stk_operation *o, stk_o_scan op)
{
    stk_val x = stk_o_argument(c, 0);
    if (o->axis.n < 0) return op(c->g, stk_o_flat(c, x), 0, false, false);
    return op(c->g, x, (int32_t)o->axis.v[0], false, false);
}

/* ---- norms ----------------------------------------------------------------------------------------------------------------- */

/* ord: None and "fro" are 2, else a number. */
static double order_of(const stk_json *ord)
{
    if (!ord || ord->kind == STK_JSON_NULL) return 2;
    if (ord->kind == STK_JSON_INT || ord->kind == STK_JSON_DOUBLE) return ord->number;
    const char *word = stk_json_text(ord, "");
    return !strcmp(word, "fro")                                ? 2
           : !strcmp(word, "inf") || !strcmp(word, "Infinity") ? INFINITY
                                                               : NAN;
}

static stk_val norm(stk_layer_call *c, stk_val x, double order, int32_t n, const int32_t *axes,
                    bool keep)
{
    stk_graph *g = c->g;
    if (order == 2) return stk_g_sqrt(g, stk_g_sum(g, stk_g_square(g, x), n, axes, keep));
    x = stk_g_abs(g, x);
    if (isinf(order))
        return order > 0 ? stk_g_reduce_max(g, x, n, axes, keep)
                         : stk_g_reduce_min(g, x, n, axes, keep);
    if (order == 1) return stk_g_sum(g, x, n, axes, keep);
    stk_val sum = stk_g_sum(g, stk_g_pow(g, x, number(c, x, order)), n, axes, keep);
    return stk_g_pow(g, sum, number(c, x, 1 / order));
}

stk_val stk_o_norm(stk_layer_call *c, const stk_operation *o)
{
    int32_t axes[STK_MAX_RANK], n = axes_of(&o->axis, axes);
    double order = order_of(o->ord);
    if (isnan(order) || order == 0 || (n > 1 && order != 2))
        return stk_c_fail(
            c, STK_ERR_UNSUPPORTED,
            "ord of this kind; None, 2 and 'fro' are possible, and for one axis any number but 0");
    return norm(c, wide(c, stk_o_argument(c, 0)), order, n, axes, o->keepdims);
}

stk_val stk_o_normalize(stk_layer_call *c, const stk_operation *o)
{
    stk_graph *g = c->g;
    stk_val x = stk_o_argument(c, 0);
    int32_t axes[STK_MAX_RANK], n = axes_of(&o->axis, axes);
    if (o->order == 2) {
        stk_val by = stk_g_rsqrt(g, stk_g_sum(g, stk_g_square(g, x), n, axes, true));
        return stk_g_mul(g, x, stk_g_min(g, by, number(c, by, 1 / epsilon_of(o))));
    }
    stk_val by = norm(c, x, (double)o->order, n, axes, true);
    return stk_g_div(g, x, stk_g_max(g, by, number(c, by, epsilon_of(o))));
}

/* A factor or summand along the normalised axes, which may have those axes only. */
static stk_val along(stk_layer_call *c, stk_val v, stk_val x, const stk_ints *axis)
{
    int64_t shape[STK_MAX_RANK];
    int32_t rank = stk_g_rank(c->g, x);
    if (stk_g_rank(c->g, v) == rank || rank == 0) return v;
    for (int32_t i = 0; i < rank; i++) shape[i] = 1;
    for (int32_t i = 0; i < axis->n; i++) {
        int32_t at = (int32_t)(axis->v[i] < 0 ? axis->v[i] + rank : axis->v[i]);
        if (at >= 0 && at < rank) shape[at] = stk_g_dim(c->g, x, at);
    }
    return stk_g_reshape(c->g, stk_g_cast(c->g, v, stk_g_dtype(c->g, x)), rank, shape);
}

stk_val stk_o_layer_norm(stk_layer_call *c, const stk_operation *o)
{
    stk_graph *g = c->g;
    stk_val given = stk_o_argument(c, 0), x = wide(c, given), mean = 0;
    stk_val gamma = stk_o_optional(c, 1, "gamma"), beta = stk_o_optional(c, 2, "beta");
    stk_val v = variance(c, x, &o->axis, true, &mean);
    stk_val by = stk_g_rsqrt(g, stk_g_add(g, v, number(c, v, epsilon_of(o))));
    stk_val y = stk_g_mul(g, o->rms_scaling ? x : stk_g_sub(g, x, mean), by);
    if (gamma) y = stk_g_mul(g, y, along(c, gamma, x, &o->axis));
    if (beta && !o->rms_scaling) y = stk_g_add(g, y, along(c, beta, x, &o->axis));
    return stk_g_cast(g, y, stk_g_dtype(g, given));
}

stk_val stk_o_rms_norm(stk_layer_call *c, const stk_operation *o)
{
    stk_graph *g = c->g;
    int32_t axes[STK_MAX_RANK], n = axes_of(&o->axis, axes);
    stk_val given = stk_o_argument(c, 0), x = wide(c, given), scale = stk_o_optional(c, 1, "scale");
    stk_val square = stk_g_mean(g, stk_g_square(g, x), n, axes, true);
    stk_val y =
        stk_g_mul(g, x, stk_g_rsqrt(g, stk_g_add(g, square, number(c, square, epsilon_of(o)))));
    if (scale) y = stk_g_mul(g, y, along(c, scale, x, &o->axis));
    return stk_g_cast(g, y, stk_g_dtype(g, given));
}

/* ---- by element ------------------------------------------------------------------------------------------------------------ */

stk_val stk_o_clip(stk_layer_call *c, const stk_operation *o)
{
    stk_val x = stk_o_argument(c, 0);
    const stk_json *ends[] = {o->x_min, o->x_max};
    for (int i = 0; i < 2; i++) {
        if (!ends[i] || ends[i]->kind == STK_JSON_NULL) continue;
        if (ends[i]->kind != STK_JSON_INT && ends[i]->kind != STK_JSON_DOUBLE)
            return stk_c_fail(c, STK_ERR_UNSUPPORTED, "clip between tensors; numbers are possible");
        stk_val end = number(c, x, ends[i]->number);
        x = i ? stk_g_min(c->g, x, end) : stk_g_max(c->g, x, end);
    }
    return x;
}

stk_val stk_o_round(stk_layer_call *c, const stk_operation *o)
{
    stk_val x = stk_o_argument(c, 0);
    if (!o->decimals) return stk_g_round(c->g, x);
    double factor = pow(10, (double)o->decimals);
    x = stk_g_round(c->g, stk_o_scaled(c, x, factor));
    return stk_g_div(c->g, x, number(c, x, factor));
}

stk_val stk_o_finite(stk_layer_call *c, const stk_operation *o)
{
    stk_graph *g = c->g;
    stk_val x = stk_o_argument(c, 0);
    stk_dtype dtype = stk_g_dtype(g, x);
    if (!stk_dtype_is_float(dtype)) return x;
    double most = dtype == STK_F64    ? 1.7976931348623157e308
                  : dtype == STK_F16  ? 65504
                  : dtype == STK_BF16 ? 3.38953139e38
                                      : 3.40282347e38;
    double high = isnan(o->posinf) ? most : o->posinf, low = isnan(o->neginf) ? -most : o->neginf;
    stk_val zero = number(c, x, 0), infinite = stk_g_isinf(g, x);
    stk_val end = stk_g_select(g, stk_g_gt(g, x, zero), number(c, x, high), number(c, x, low));
    stk_val y = stk_g_select(g, infinite, end, x);
    return stk_g_select(g, stk_g_isnan(g, x), number(c, x, o->nan), y);
}

stk_val stk_o_top_k(stk_layer_call *c, const stk_operation *o)
{
    stk_val places = 0, y = stk_g_top_k(c->g, stk_o_argument(c, 0), o->k, -1, &places);
    c->y[1] = stk_g_cast(c->g, places, STK_I32);
    c->ny = 2;
    return y;
}

stk_val stk_o_one_hot(stk_layer_call *c, const stk_operation *o)
{
    stk_dtype dtype = STK_F32;
    if (o->dtype && !stk_dtype_parse(o->dtype, &dtype))
        return stk_c_fail(c, STK_ERR_DTYPE, "dtype '%.40s' is not supported", o->dtype);
    stk_val x = stk_o_argument(c, 0);
    if (stk_dtype_is_float(stk_g_dtype(c->g, x))) x = stk_g_cast(c->g, x, STK_I32);
    return stk_g_one_hot(c->g, x, o->num_classes, stk_o_axis(c, o), dtype, 1, 0);
}

/* ---- products --------------------------------------------------------------------------------------------------------------- */

/* numpy's dot: the last axis of a with the last but one of b; the other axes side by side. */
stk_val stk_o_dot(stk_layer_call *c)
{
    stk_graph *g = c->g;
    stk_val a = stk_o_argument(c, 0), b = stk_o_argument(c, 1);
    int32_t na = stk_g_rank(g, a), nb = stk_g_rank(g, b);
    if (na == 0 || nb == 0) return stk_g_mul(g, a, b);
    if (nb <= 2 && na >= 1) {
        if (na > 1 || nb > 1) {
            int64_t size = stk_g_dim(g, b, 0);
            stk_val matrix = nb == 1 ? stk_g_reshape(g, b, 2, (int64_t[]){size, 1}) : b;
            stk_val left = na == 1 ? stk_g_expand_dims(g, a, 0) : a;
            stk_val y = stk_g_matmul(g, left, matrix);
            if (nb == 1) y = stk_g_squeeze(g, y, -1);
            return na == 1 ? stk_g_squeeze(g, y, 0) : y;
        }
        return stk_g_sum(g, stk_g_mul(g, a, b), 0, NULL, false);
    }
    return stk_c_fail(c, STK_ERR_UNSUPPORTED,
                      "dot with a second operand of %d axes; up to 2 are possible", nb);
}

stk_val stk_o_attention(stk_layer_call *c, const stk_operation *o)
{
    stk_graph *g = c->g;
    const int32_t by_head[] = {0, 2, 1, 3};
    stk_val q = stk_o_argument(c, 0), k = stk_o_argument(c, 1), v = stk_o_argument(c, 2);
    stk_val bias = stk_o_optional(c, 3, "bias"), mask = stk_o_optional(c, 4, "mask");
    const stk_json *scale = stk_json_get(c->arguments, "scale");
    if (stk_g_rank(g, q) != 4 || stk_g_rank(g, k) != 4 || stk_g_rank(g, v) != 4)
        return stk_c_fail(c, STK_ERR_SHAPE, "query, key and value are [batch, steps, heads, size]");
    int64_t heads = stk_g_dim(g, q, 2), fewer = stk_g_dim(g, k, 2), t = stk_g_dim(g, q, 1),
            s = stk_g_dim(g, k, 1);
    if (heads != fewer)
        return stk_c_fail(c, STK_ERR_UNSUPPORTED, "%lld heads of the query, %lld of the key",
                          (long long)heads, (long long)fewer);
    double factor = scale && scale->kind != STK_JSON_NULL ? scale->number
                                                          : 1 / sqrt((double)stk_g_dim(g, q, 3));
    q = stk_g_transpose(g, q, by_head);
    stk_val scores =
        stk_g_matmul_t(g, stk_o_scaled(c, q, factor), stk_g_transpose(g, k, by_head), false, true);
    if (bias) scores = stk_g_add(g, scores, stk_g_cast(g, bias, stk_g_dtype(g, scores)));
    if (o->is_causal) {
        stk_val row = stk_g_iota(g, STK_I32, 2, (int64_t[]){t, 1}, 0);
        stk_val early = stk_g_ge(g, row, stk_g_iota(g, STK_I32, 2, (int64_t[]){1, s}, 1));
        mask = mask ? stk_g_and(g, stk_g_cast(g, mask, STK_BOOL), early) : early;
    }
    if (mask)
        scores = stk_g_select(
            g, stk_g_cast(g, mask, STK_BOOL), scores,
            number(c, scores, stk_g_dtype(g, scores) == STK_F16 ? -4e4 : -0.7 * 3.40282347e38));
    stk_val y = stk_g_matmul(g, stk_g_softmax(g, scores, -1), stk_g_transpose(g, v, by_head));
    return stk_g_transpose(g, y, by_head);
}

/* ---- images --------------------------------------------------------------------------------------------------------------------- */

static bool image_format(stk_layer_call *c, const stk_operation *o, int32_t *format,
                         stk_padding *padding)
{
    *format = o->data_format && !strcmp(o->data_format, "channels_first") ? STK_CHANNELS_FIRST
                                                                          : STK_CHANNELS_LAST;
    *padding = o->padding && !strcmp(o->padding, "same") ? STK_PADDING_SAME : STK_PADDING_VALID;
    return stk_c_rank(c, 0, 3, 5);
}

static int64_t of_axis(const stk_ints *given, int32_t i, int64_t otherwise)
{
    return given->n < 1 ? otherwise : given->v[given->n == 1 ? 0 : i];
}

stk_val stk_o_pool(stk_layer_call *c, const stk_operation *o, stk_o_pooling op)
{
    stk_pool_options options = stk_pool_options_defaults();
    int32_t format, axes = stk_g_rank(c->g, c->x[0]) - 2;
    if (!image_format(c, o, &format, &options.padding)) return 0;
    for (int32_t i = 0; i < axes; i++) {
        options.window[i] = of_axis(&o->pool_size, i, 2);
        options.stride[i] = of_axis(&o->strides, i, options.window[i]);
    }
    return stk_image_back(c->g, op(c->g, stk_image_last(c->g, c->x[0], format), &options), format);
}

stk_val stk_o_conv(stk_layer_call *c, const stk_operation *o, stk_o_convolution op)
{
    stk_conv_options options = stk_conv_options_defaults();
    int32_t format, axes = stk_g_rank(c->g, c->x[0]) - 2;
    if (!image_format(c, o, &format, &options.padding)) return 0;
    for (int32_t i = 0; i < axes; i++) {
        options.stride[i] = of_axis(&o->strides, i, 1);
        options.dilation[i] = of_axis(&o->dilation_rate, i, 1);
    }
    stk_val x = stk_image_last(c->g, c->x[0], format), w = stk_o_argument(c, 1);
    int64_t channels = stk_g_dim(c->g, x, -1), each = stk_g_dim(c->g, w, axes);
    if (op == stk_g_conv && each > 0 && channels % each == 0) options.groups = channels / each;
    return stk_image_back(c->g, op(c->g, x, w, &options), format);
}

stk_val stk_o_resize(stk_layer_call *c, const stk_operation *o)
{
    stk_resize_kind kind = STK_RESIZE_BILINEAR;
    const char *name = o->interpolation ? o->interpolation : "bilinear";
    if (!stk_resize_parse(name, &kind) || o->size.n != 2)
        return stk_c_fail(c, STK_ERR_UNSUPPORTED, "interpolation '%.32s' to %d sizes", name,
                          o->size.n);
    if (o->crop_to_aspect_ratio || o->pad_to_aspect_ratio)
        return stk_c_fail(c, STK_ERR_UNSUPPORTED, "crop_to_aspect_ratio and pad_to_aspect_ratio");
    int32_t format = o->data_format && !strcmp(o->data_format, "channels_first")
                         ? STK_CHANNELS_FIRST
                         : STK_CHANNELS_LAST;
    stk_dtype dtype = stk_g_dtype(c->g, c->x[0]);
    stk_val x = stk_image_last(c->g, c->x[0], format);
    if (!stk_dtype_is_float(dtype) && dtype != STK_U8 && kind != STK_RESIZE_NEAREST)
        x = stk_g_cast(c->g, x, STK_F32);
    stk_val y = stk_g_image_resize(c->g, x, o->size.v[0], o->size.v[1], kind, o->antialias);
    return stk_image_back(c->g, y, format);
}
