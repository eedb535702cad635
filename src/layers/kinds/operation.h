/* operation.h - what operations of keras.ops share that stand between layers: their options, their arguments, and builders
 * that are more than one call. The rows are in operations.def. */
#ifndef STK_LAYERS_KINDS_OPERATION_H
#define STK_LAYERS_KINDS_OPERATION_H

#include "layers/layer.h"

typedef struct stk_operation {
    stk_ints axis, axes, newshape, shape, repeats, shift, size, source, destination;
    stk_ints pool_size, strides, dilation_rate;
    bool keepdims, approximate, sorted, antialias, rms_scaling, is_causal;
    bool crop_to_aspect_ratio, pad_to_aspect_ratio;
    const char *dtype, *subscripts, *mode, *interpolation, *padding, *data_format;
    int64_t k, axis1, axis2, offset, decimals, num_classes, order, num;
    double alpha, negative_slope, epsilon, threshold, default_value, b, nan, posinf, neginf;
    const stk_json *x_min, *x_max, *indices_or_sections, *pad_width, *ord;
} stk_operation;

/* Argument i as a tensor of the graph: one of the inputs, or numbers that were written into the model. */
stk_val stk_o_argument(stk_layer_call *c, int32_t i);
/* The same, by place or by name; 0 when it was left out or is None. */
stk_val stk_o_optional(stk_layer_call *c, int32_t i, const char *name);
/* Arguments 0 and 1 in the type that both become, into op. */
typedef stk_val (*stk_o_pair)(stk_graph *g, stk_val a, stk_val b);
stk_val stk_o_two(stk_layer_call *c, stk_o_pair op);
int32_t stk_o_axis(stk_layer_call *c, const stk_operation *o); /* None: the last one */
stk_dtype stk_o_dtype(stk_layer_call *c, const stk_operation *o);

typedef stk_val (*stk_o_reduction)(stk_graph *g, stk_val x, int32_t n, const int32_t *axes,
                                   bool keep);
typedef stk_val (*stk_o_scan)(stk_graph *g, stk_val x, int32_t axis, bool exclusive, bool reverse);
typedef stk_val (*stk_o_place)(stk_graph *g, stk_val x, int32_t axis);
typedef stk_val (*stk_o_pooling)(stk_graph *g, stk_val x, const stk_pool_options *options);
typedef stk_val (*stk_o_convolution)(stk_graph *g, stk_val x, stk_val w,
                                     const stk_conv_options *options);

/* operation_shapes.c */
stk_val stk_o_like(stk_layer_call *c, const stk_operation *o, double value);
stk_val stk_o_reshape(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_transpose(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_swap(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_move(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_get_item(stk_layer_call *c);
stk_val stk_o_flip(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_roll(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_repeat(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_tile(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_pad(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_split(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_unstack(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_squeeze(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_take(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_take_along(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_diagonal(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_broadcast(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_slice(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_flat(stk_layer_call *c, stk_val x);

/* operation_numbers.c */
stk_val stk_o_reduce(stk_layer_call *c, const stk_operation *o, stk_o_reduction op);
stk_val stk_o_variance(stk_layer_call *c, const stk_operation *o, bool root);
stk_val stk_o_moments(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_logsumexp(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_norm(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_normalize(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_layer_norm(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_rms_norm(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_place_of(stk_layer_call *c, const stk_operation *o, stk_o_place op);
stk_val stk_o_cumulate(stk_layer_call *c, const stk_operation *o, stk_o_scan op);
stk_val stk_o_clip(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_round(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_finite(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_top_k(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_one_hot(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_pool(stk_layer_call *c, const stk_operation *o, stk_o_pooling op);
stk_val stk_o_conv(stk_layer_call *c, const stk_operation *o, stk_o_convolution op);
stk_val stk_o_resize(stk_layer_call *c, const stk_operation *o);
stk_val stk_o_scaled(stk_layer_call *c, stk_val x, double factor);
stk_val stk_o_dot(stk_layer_call *c);
stk_val stk_o_attention(stk_layer_call *c, const stk_operation *o);

#endif
