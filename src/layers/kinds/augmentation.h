/* augmentation.h - what layers that change images at random have in common. Each image of a batch draws for itself, anew in each step,
 * unless Keras draws once for the whole batch. */
#ifndef STK_LAYERS_KINDS_AUGMENTATION_H
#define STK_LAYERS_KINDS_AUGMENTATION_H

#include "layers/layer.h"

/* One struct for all of them; a table shows what its class has. */
typedef struct stk_augment {
    int32_t mode; /* RandomFlip */
    stk_reals factor, height_factor, width_factor, value_range, scale, sigma;
    stk_reals x_factor, y_factor, addition_factor, threshold_factor;
    stk_reals brightness_factor, contrast_factor, saturation_factor, hue_factor;
    stk_reals erase_value; /* RandomErasing's fill_value; n = -1: noise */
    stk_ints kernel_size;
    const char *fill_mode, *interpolation, *data_format;
    double fill_value, alpha;
    int64_t seed, height, width, bins, num_ops, num_chains, chain_depth;
    bool all_ops;
    /* Made by check. */
    double low[2], high[2]; /* of factor, or of two factors */
    double bytes[2];        /* the value range when none was given */
} stk_augment;

#define STK_AUG(member, kind_, ...) STK_FIELD(stk_augment, member, kind_, __VA_ARGS__)
#define STK_AUG_LAST                STK_AUG(data_format, TEXT, "None"), STK_AUG(seed, INT, "None", .wide = true)
#define STK_AUGMENTATION(id, class_, check_, fields_)                                              \
    const stk_layer_def stk_layer_##id = {.keras_class = class_,                                   \
                                          .fields = STK_FIELDS(stk_augment, fields_),              \
                                          .keeps_dtype = true,                                     \
                                          .mask = STK_MASK_PASSES,                                 \
                                          .check = check_,                                         \
                                          .call = call_##id}

/* f means -f .. f (not below `least`), (a, b) means a .. b. False: neither. */
bool stk_augment_range(const stk_reals *v, double least, double *low, double *high);
/* Checks data_format, fill_mode, interpolation and value_range, and puts 0 .. 255 where no range was given. */
stk_status stk_augment_check(stk_layer_state *layer, stk_error *err);
/* The same, with `factor` between `least` and `most`. */
stk_status stk_augment_check_factor(stk_layer_state *layer, double least, double most,
                                    stk_error *err);

/* The image as floats in c->y[0]; true when there is nothing to do. */
bool stk_augment_at_rest(stk_layer_call *c);
/* Uniform numbers: one per image, shaped [images, 1 ...] with `rank` axes; rank 0: one for all. */
stk_val stk_augment_draw(stk_layer_call *c, int32_t rank, double low, double high, stk_dtype dtype);
/* bool [images, 1, 1, 1]: true with the probability p, where p itself is drawn from low .. high. */
stk_val stk_augment_chance(stk_layer_call *c, double low, double high);
/* x, clipped to the value range; and from one range to another. */
stk_val stk_augment_clip(stk_layer_call *c, stk_val x);
stk_val stk_augment_scale(stk_graph *g, stk_val x, const double *from, const double *to);
/* Pixels of c->y[0] read where rows of 8 numbers say (stk_g_image_project). */
void stk_augment_read(stk_layer_call *c, const stk_val *columns);
/* Another layer of this kind, with options of its own, on x. */
stk_val stk_augment_apply(stk_layer_call *c, const stk_layer_def *def, const stk_augment *options,
                          stk_val x);
/* A depthwise convolution of all channels with one small kernel [height, width], zeros around the image. */
stk_val stk_augment_convolve(stk_graph *g, stk_val x, stk_val kernel);
/* exp(-(x / sigma)^2 / 2) at `size` places around 0, 0 beyond `reach` (0: no limit), adding up to 1. */
stk_val stk_augment_bell(stk_graph *g, int64_t size, stk_val sigma, stk_val reach);
/* Logarithms of gamma(alpha) numbers; alpha is a float32 value that broadcasts to the shape. */
stk_val stk_augment_log_gamma(stk_layer_call *c, int32_t rank, const int64_t *shape, stk_val alpha);

#endif
