/* Adaptive pooling: as many windows as are asked for, of the sizes that follow from it. Window i of n over an axis of d goes
 * from i d / n, rounded down, to (i + 1) d / n, rounded up. */
#include "layers/kinds/image.h"

typedef struct adaptive {
    stk_ints output_size;
    int32_t data_format;
} adaptive;

/* One axis after the other: the mean of means and the maximum of maxima are those of the box, since all windows of a row are
 * as long. */
static stk_val pool_axis(stk_layer_call *c, stk_val x, int32_t axis, int64_t n, bool max)
{
    enum { MOST = 64 };
    stk_val part[MOST];
    stk_graph *g = c->g;
    int64_t size = stk_g_dim(g, x, axis);
    if (n == size) return x;
    if (n < 1 || n > MOST || size < 1)
        return stk_c_fail(c, STK_ERR_RANGE,
                          "%lld windows over an axis of %lld; 1 to %d are possible", (long long)n,
                          (long long)size, MOST);
    for (int64_t i = 0; i < n; i++) {
        int64_t from = i * size / n, to = ((i + 1) * size + n - 1) / n;
        stk_val window = stk_g_slice_axis(g, x, axis, from, to - from);
        part[i] = max ? stk_g_reduce_max(g, window, 1, &axis, true)
                      : stk_g_mean(g, window, 1, &axis, true);
    }
    return n == 1 ? part[0] : stk_g_concat(g, (int32_t)n, part, axis);
}

static void pool(stk_layer_call *c, bool max)
{
    const adaptive *o = c->config;
    int32_t axes = o->output_size.n;
    if (!stk_c_rank(c, 0, axes + 2, axes + 2)) return;
    stk_val x = stk_image_last(c->g, c->x[0], o->data_format);
    for (int32_t i = 0; i < axes; i++) x = pool_axis(c, x, 1 + i, o->output_size.v[i], max);
    c->y[0] = stk_image_back(c->g, x, o->data_format);
}
static void max_call(stk_layer_call *c) { pool(c, true); }
static void average_call(stk_layer_call *c) { pool(c, false); }

#define ADAPTIVE(id, class_, axes, call_)                                                          \
    static const stk_config_field id##_fields[] = {                                                \
        STK_FIELD(adaptive, output_size, INTS, NULL, .count = axes, .low = 1),                     \
        STK_FIELD_FORMAT(adaptive),                                                                \
    };                                                                                             \
    const stk_layer_def stk_layer_##id = {                                                         \
        .keras_class = class_, .fields = STK_FIELDS(adaptive, id##_fields), .call = call_};

ADAPTIVE(adaptive_max1d, "AdaptiveMaxPooling1D", 1, max_call)
ADAPTIVE(adaptive_max2d, "AdaptiveMaxPooling2D", 2, max_call)
ADAPTIVE(adaptive_max3d, "AdaptiveMaxPooling3D", 3, max_call)
ADAPTIVE(adaptive_average1d, "AdaptiveAveragePooling1D", 1, average_call)
ADAPTIVE(adaptive_average2d, "AdaptiveAveragePooling2D", 2, average_call)
ADAPTIVE(adaptive_average3d, "AdaptiveAveragePooling3D", 3, average_call)
