/* Max and average pooling over windows and over everything, for 1 to 3 axes. */
#include "layers/kinds/image.h"

/* ---- windows --------------------------------------------------------------------------------------------------------- */

typedef struct pooling {
    stk_ints pool_size, strides;
    int32_t padding, data_format;
} pooling;

static stk_status strides_default(stk_layer_state *layer, stk_error *err)
{
    pooling *o = layer->config;
    (void)err;
    if (o->strides.n < 0) o->strides = o->pool_size;
    return STK_OK;
}

static void window_call(stk_layer_call *c, bool max)
{
    const pooling *o = c->config;
    int32_t axes = o->pool_size.n;
    stk_pool_options options = stk_pool_options_defaults();
    if (!stk_c_rank(c, 0, axes + 2, axes + 2)) return;
    options.padding = (stk_padding)o->padding; /* the words are in the order of the enum */
    for (int32_t i = 0; i < axes; i++) {
        options.window[i] = o->pool_size.v[i];
        options.stride[i] = o->strides.v[i];
    }
    stk_val x = stk_image_last(c->g, c->x[0], o->data_format);
    stk_val y = max ? stk_g_max_pool(c->g, x, &options) : stk_g_avg_pool(c->g, x, &options);
    c->y[0] = stk_image_back(c->g, y, o->data_format);
}
static void max_call(stk_layer_call *c) { window_call(c, true); }
static void average_call(stk_layer_call *c) { window_call(c, false); }

#define WINDOW(id, class_, axes, fallback, call_)                                                  \
    static const stk_config_field id##_fields[] = {                                                \
        STK_FIELD(pooling, pool_size, INTS, fallback, .count = axes, .low = 1),                    \
        STK_FIELD(pooling, strides, INTS, "None", .count = axes, .low = 1),                        \
        STK_FIELD(pooling, padding, CHOICE, "valid", .choices = "valid|same"),                     \
        STK_FIELD_FORMAT(pooling),                                                                 \
    };                                                                                             \
    const stk_layer_def stk_layer_##id = {.keras_class = class_,                                   \
                                          .fields = STK_FIELDS(pooling, id##_fields),              \
                                          .no_build = true,                                        \
                                          .check = strides_default,                                \
                                          .call = call_};

WINDOW(max_pooling1d, "MaxPooling1D", 1, "2", max_call)
WINDOW(max_pooling2d, "MaxPooling2D", 2, "2", max_call)
WINDOW(max_pooling3d, "MaxPooling3D", 3, "2", max_call)
WINDOW(average_pooling1d, "AveragePooling1D", 1, "2", average_call)
WINDOW(average_pooling2d, "AveragePooling2D", 2, "2", average_call)
WINDOW(average_pooling3d, "AveragePooling3D", 3, "2", average_call)

/* ---- everything ----------------------------------------------------------------------------------------------------------- */

typedef struct global {
    int32_t data_format;
    bool keepdims;
} global;

static const stk_config_field global_fields[] = {
    STK_FIELD_FORMAT(global),
    STK_FIELD(global, keepdims, BOOL, "False"),
};

static void global_call(stk_layer_call *c, int32_t axes, bool max)
{
    const global *o = c->config;
    if (!stk_c_rank(c, 0, axes + 2, axes + 2)) return;
    stk_val x = stk_image_last(c->g, c->x[0], o->data_format);
    stk_val y = max ? stk_g_global_max_pool(c->g, x, o->keepdims)
                    : stk_g_global_avg_pool(c->g, x, o->keepdims);
    c->y[0] = o->keepdims ? stk_image_back(c->g, y, o->data_format) : y;
}
static void global_max1(stk_layer_call *c) { global_call(c, 1, true); }
static void global_max2(stk_layer_call *c) { global_call(c, 2, true); }
static void global_max3(stk_layer_call *c) { global_call(c, 3, true); }
static void global_average2(stk_layer_call *c) { global_call(c, 2, false); }
static void global_average3(stk_layer_call *c) { global_call(c, 3, false); }

/* Steps that are masked out do not count; and the mask ends here. */
static void global_average1(stk_layer_call *c)
{
    const global *o = c->config;
    if (!c->mask[0]) {
        global_call(c, 1, false);
        return;
    }
    if (!stk_c_rank(c, 0, 3, 3)) return;
    stk_graph *g = c->g;
    stk_val x = stk_image_last(g, c->x[0], o->data_format);
    stk_val mask = stk_g_expand_dims(g, stk_g_cast(g, c->mask[0], STK_BOOL), 2);
    stk_val sum = stk_g_sum(g, stk_g_select(g, mask, x, stk_g_zeros_like(g, x)), 1, (int32_t[]){1},
                            o->keepdims);
    stk_val count =
        stk_g_sum(g, stk_g_cast(g, mask, stk_g_dtype(g, x)), 1, (int32_t[]){1}, o->keepdims);
    stk_val y = stk_g_div(g, sum, count);
    c->y[0] = o->keepdims ? stk_image_back(g, y, o->data_format) : y;
}

#define GLOBAL(id, class_, call_)                                                                  \
    const stk_layer_def stk_layer_##id = {.keras_class = class_,                                   \
                                          .fields = STK_FIELDS(global, global_fields),             \
                                          .no_build = true,                                        \
                                          .call = call_};

GLOBAL(global_max_pooling1d, "GlobalMaxPooling1D", global_max1)
GLOBAL(global_max_pooling2d, "GlobalMaxPooling2D", global_max2)
GLOBAL(global_max_pooling3d, "GlobalMaxPooling3D", global_max3)
GLOBAL(global_average_pooling1d, "GlobalAveragePooling1D", global_average1)
GLOBAL(global_average_pooling2d, "GlobalAveragePooling2D", global_average2)
GLOBAL(global_average_pooling3d, "GlobalAveragePooling3D", global_average3)
