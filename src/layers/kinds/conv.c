/* Conv1D/2D/3D, DepthwiseConv1D/2D, SeparableConv1D/2D, Conv1D/2D/3DTranspose. One struct serves them all; each class has
 * the rows that Keras gives it, for its number of axes. */
#include "layers/activation.h"
#include "layers/kinds/image.h"

#include <string.h>

typedef struct conv {
    int64_t filters;
    stk_ints kernel_size, strides, dilation_rate, output_padding;
    int32_t padding, data_format;
    int64_t groups, depth_multiplier;
    stk_activation activation;
    bool use_bias;
    const stk_object *kernel_initializer, *kernel_regularizer, *kernel_constraint;
    const stk_object *depthwise_initializer, *depthwise_regularizer, *depthwise_constraint;
    const stk_object *pointwise_initializer, *pointwise_regularizer, *pointwise_constraint;
    const stk_object *bias_initializer, *bias_regularizer, *bias_constraint;
    const stk_object *activity_regularizer;
} conv;

#define FILTERS      STK_FIELD(conv, filters, INT, NULL, .low = 1)
#define KERNEL(axes) STK_FIELD(conv, kernel_size, INTS, NULL, .count = axes, .low = 1)
#define STRIDES(axes, words)                                                                       \
    STK_FIELD(conv, strides, INTS, "1", .count = axes, .low = 1),                                  \
        STK_FIELD(conv, padding, CHOICE, "valid", .choices = words)
#define DILATION(axes) STK_FIELD(conv, dilation_rate, INTS, "1", .count = axes, .low = 1)
#define MULTIPLIER     STK_FIELD(conv, depth_multiplier, INT, "1", .low = 1)
#define ACTIVATION                                                                                 \
    STK_FIELD(conv, activation, ACTIVATION, "None"), STK_FIELD(conv, use_bias, BOOL, "True")
#define START(word, fallback) STK_FIELD(conv, word##_initializer, INITIALIZER, fallback)
#define REGULAR(word)         STK_FIELD(conv, word##_regularizer, REGULARIZER, "None")
#define CONSTRAIN(word)       STK_FIELD(conv, word##_constraint, CONSTRAINT, "None")
#define REST(word)                                                                                 \
    START(word, "glorot_uniform"), START(bias, "zeros"), REGULAR(word), REGULAR(bias),             \
        REGULAR(activity), CONSTRAIN(word), CONSTRAIN(bias)

#define CONV_ROWS(axes, words)                                                                     \
    {                                                                                              \
        FILTERS, KERNEL(axes), STRIDES(axes, words), STK_FIELD_FORMAT(conv), DILATION(axes),       \
            STK_FIELD(conv, groups, INT, "1", .low = 1), ACTIVATION, REST(kernel)                  \
    }
#define TRANSPOSE_ROWS(axes)                                                                       \
    {                                                                                              \
        FILTERS, KERNEL(axes), STRIDES(axes, "valid|same"),                                        \
            STK_FIELD(conv, output_padding, INTS, "None", .count = axes), STK_FIELD_FORMAT(conv),  \
            DILATION(axes), ACTIVATION, REST(kernel)                                               \
    }
#define DEPTHWISE_ROWS(axes)                                                                       \
    {                                                                                              \
        KERNEL(axes), STRIDES(axes, "valid|same"), MULTIPLIER, STK_FIELD_FORMAT(conv),             \
            DILATION(axes), ACTIVATION, REST(depthwise)                                            \
    }
#define SEPARABLE_ROWS(axes)                                                                       \
    {                                                                                              \
        FILTERS, KERNEL(axes), STRIDES(axes, "valid|same"), STK_FIELD_FORMAT(conv),                \
            DILATION(axes), MULTIPLIER, ACTIVATION, START(depthwise, "glorot_uniform"),            \
            START(pointwise, "glorot_uniform"), START(bias, "zeros"), REGULAR(depthwise),          \
            REGULAR(pointwise), REGULAR(bias), REGULAR(activity), CONSTRAIN(depthwise),            \
            CONSTRAIN(pointwise), CONSTRAIN(bias)                                                  \
    }

/* ---- what the calls share ------------------------------------------------------------------------------------------- */

/* x with channels last; *channels is 0 after a mistake. */
static stk_val start(stk_layer_call *c, int64_t *channels)
{
    const conv *o = c->config;
    int32_t axes = o->kernel_size.n;
    *channels = 0;
    if (!stk_c_rank(c, 0, axes + 2, axes + 2)) return 0;
    stk_val x = stk_image_last(c->g, c->x[0], o->data_format);
    *channels = stk_g_dim(c->g, x, -1);
    if (!*channels) stk_c_fail(c, STK_ERR_SHAPE, "the input has no channels");
    return x;
}

static stk_conv_options options_of(const conv *o)
{
    stk_conv_options options = stk_conv_options_defaults();
    options.padding = (stk_padding)o->padding; /* the words are in the order of the enum */
    for (int32_t i = 0; i < o->kernel_size.n; i++) {
        options.stride[i] = o->strides.v[i];
        options.dilation[i] = o->dilation_rate.v[i];
        if (o->output_padding.n > 0) options.output_padding[i] = o->output_padding.v[i];
    }
    return options;
}

/* [kernel sizes, before, last] */
static stk_val kernel_of(stk_layer_call *c, const char *name, int64_t before, int64_t last,
                         const stk_weight_wish *wish)
{
    const conv *o = c->config;
    int32_t axes = o->kernel_size.n;
    int64_t shape[5];
    memcpy(shape, o->kernel_size.v, (size_t)axes * sizeof *shape);
    shape[axes] = before;
    shape[axes + 1] = last;
    return stk_c_weight(c, name, axes + 2, shape, wish);
}

static void finish(stk_layer_call *c, stk_val y)
{
    const conv *o = c->config;
    if (!stk_graph_ok(c->g)) return;
    int64_t filters = stk_g_dim(c->g, y, -1);
    if (o->use_bias)
        y = stk_g_add(c->g, y, stk_c_weight(c, "bias", 1, &filters, STK_WISH(o, bias)));
    y = stk_c_activate(c, &o->activation, stk_image_back(c->g, y, o->data_format));
    c->y[0] = stk_c_activity(c, o->activity_regularizer, y);
}

/* ---- Conv ---------------------------------------------------------------------------------------------------------------- */

static void conv_call(stk_layer_call *c)
{
    const conv *o = c->config;
    int64_t channels;
    stk_val x = start(c, &channels);
    stk_conv_options options = options_of(o);
    if (!channels) return;
    options.groups = o->groups;
    if (channels % o->groups || o->filters % o->groups) {
        stk_c_fail(c, STK_ERR_SHAPE,
                   "groups=%lld must divide the %lld channels and the %lld filters",
                   (long long)o->groups, (long long)channels, (long long)o->filters);
        return;
    }
    stk_val w = kernel_of(c, "kernel", channels / o->groups, o->filters, STK_WISH(o, kernel));
    finish(c, stk_g_conv(c->g, x, w, &options));
}

#define CONV(id, class_, rows, call_)                                                              \
    static const stk_config_field id##_fields[] = rows;                                            \
    const stk_layer_def stk_layer_##id = {                                                         \
        .keras_class = class_, .fields = STK_FIELDS(conv, id##_fields), .call = call_};

CONV(conv1d, "Conv1D", CONV_ROWS(1, "valid|same|causal"), conv_call)
CONV(conv2d, "Conv2D", CONV_ROWS(2, "valid|same"), conv_call)
CONV(conv3d, "Conv3D", CONV_ROWS(3, "valid|same"), conv_call)

/* ---- DepthwiseConv --------------------------------------------------------------------------------------------------------- */

static void depthwise_call(stk_layer_call *c)
{
    const conv *o = c->config;
    int64_t channels;
    stk_val x = start(c, &channels);
    stk_conv_options options = options_of(o);
    if (!channels) return;
    stk_val w = kernel_of(c, "kernel", channels, o->depth_multiplier, STK_WISH(o, depthwise));
    finish(c, stk_g_depthwise_conv(c->g, x, w, &options));
}

CONV(depthwise_conv1d, "DepthwiseConv1D", DEPTHWISE_ROWS(1), depthwise_call)
CONV(depthwise_conv2d, "DepthwiseConv2D", DEPTHWISE_ROWS(2), depthwise_call)

/* ---- SeparableConv --------------------------------------------------------------------------------------------------------- */

static void separable_call(stk_layer_call *c)
{
    const conv *o = c->config;
    int64_t channels, ones[5] = {1, 1, 1, 1, 1};
    int32_t axes = o->kernel_size.n;
    stk_val x = start(c, &channels);
    stk_conv_options options = options_of(o);
    if (!channels) return;
    stk_val w =
        kernel_of(c, "depthwise_kernel", channels, o->depth_multiplier, STK_WISH(o, depthwise));
    ones[axes] = channels * o->depth_multiplier;
    ones[axes + 1] = o->filters;
    stk_val point = stk_c_weight(c, "pointwise_kernel", axes + 2, ones, STK_WISH(o, pointwise));
    finish(c, stk_g_separable_conv(c->g, x, w, point, &options));
}

CONV(separable_conv1d, "SeparableConv1D", SEPARABLE_ROWS(1), separable_call)
CONV(separable_conv2d, "SeparableConv2D", SEPARABLE_ROWS(2), separable_call)

/* ---- ConvTranspose --------------------------------------------------------------------------------------------------------- */

static void transpose_call(stk_layer_call *c)
{
    const conv *o = c->config;
    int64_t channels;
    stk_val x = start(c, &channels);
    stk_conv_options options = options_of(o);
    if (!channels) return;
    stk_val w = kernel_of(c, "kernel", o->filters, channels, STK_WISH(o, kernel));
    finish(c, stk_g_conv_transpose(c->g, x, w, &options));
}

CONV(conv1d_transpose, "Conv1DTranspose", TRANSPOSE_ROWS(1), transpose_call)
CONV(conv2d_transpose, "Conv2DTranspose", TRANSPOSE_ROWS(2), transpose_call)
CONV(conv3d_transpose, "Conv3DTranspose", TRANSPOSE_ROWS(3), transpose_call)
