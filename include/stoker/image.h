/* image.h - image operations in graphs, for models and for the maps of an input pipeline.
 *
 *     stk_graph *g = NULL;
 *     if (stk_graph_new(&g, NULL) != STK_OK) return 1;
 *     stk_val photo = stk_g_input(g, "photo", STK_U8, 3, (int64_t[]){480, 640, 3});
 *     stk_val x = stk_g_image_resize(g, photo, 224, 224, STK_RESIZE_BILINEAR, true); // float32, 0..255
 *     x = stk_g_image_flip_left_right(g, x);
 *     x = stk_g_image_adjust_contrast(g, x, stk_g_scalar(g, STK_F32, 1.2));
 *     stk_g_output(g, "x", stk_g_image_standardise(g, x));
 *     stk_graph_release(g);
 *
 * Images are [height, width, channels] or a batch [images, height, width, channels]; the result has as many axes.
 * Operations that compute have gradients where that makes sense. Results are those of TensorFlow 2 (half-pixel
 * centres). Builders return 0 after a mistake, see graph.h. */
#ifndef STOKER_IMAGE_H
#define STOKER_IMAGE_H

#include "graph.h"
#include "nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- moving pixels: any element type ---------------------------------------------------------- */
STK_API stk_val stk_g_image_flip_left_right(stk_graph *g, stk_val image);
STK_API stk_val stk_g_image_flip_up_down(stk_graph *g, stk_val image);
STK_API stk_val stk_g_image_transpose(stk_graph *g, stk_val image); /* height and width swapped */
/* Quarter turns to the left; negative ones to the right. */
STK_API stk_val stk_g_image_rot90(stk_graph *g, stk_val image, int32_t turns);
STK_API stk_val stk_g_image_crop(stk_graph *g, stk_val image, int64_t top, int64_t left,
                                 int64_t height, int64_t width);
STK_API stk_val stk_g_image_central_crop(stk_graph *g, stk_val image, double fraction);
/* Zeros around the image, so that it stands at (top, left) of height x width. */
STK_API stk_val stk_g_image_pad(stk_graph *g, stk_val image, int64_t top, int64_t left,
                                int64_t height, int64_t width);
/* The middle of what is too large, zeros around what is too small. */
STK_API stk_val stk_g_image_crop_or_pad(stk_graph *g, stk_val image, int64_t height, int64_t width);

/* ---- resampling -----------------------------------------------------------------------------------
 * nearest keeps the element type; the others take floats, or uint8 and give float32. antialias widens the filter
 * when the image shrinks (nearest and area need none). */
typedef enum stk_resize_kind {
#define STK_RESIZE(NAME, name, doc) STK_RESIZE_##NAME,
#include "resize.def"
    STK_RESIZE_COUNT
} stk_resize_kind;
STK_API const char *stk_resize_name(stk_resize_kind kind);
STK_API bool stk_resize_parse(const char *name, stk_resize_kind *out);

STK_API stk_val stk_g_image_resize(stk_graph *g, stk_val image, int64_t height, int64_t width,
                                   stk_resize_kind kind, bool antialias);

typedef enum stk_image_fill {
#define STK_IMAGE_FILL(NAME, name, doc) STK_FILL_##NAME,
#include "image_fill.def"
    STK_FILL_COUNT
} stk_image_fill;
STK_API const char *stk_image_fill_name(stk_image_fill fill);
STK_API bool stk_image_fill_parse(const char *name, stk_image_fill *out);

typedef struct stk_project_options {
    bool bilinear;         /* else nearest */
    stk_image_fill fill;   /* what is outside of the image */
    double value;          /* FILL_CONSTANT */
    int64_t height, width; /* of the result; 0: as the image */
} stk_project_options;
STK_API stk_project_options stk_project_options_defaults(void); /* bilinear, constant 0 */
/* transforms: float [images, 8], or [8] / [1, 8] for all. Pixel (x, y) of the result is read at
 *     ((t0 x + t1 y + t2) / (t6 x + t7 y + 1), (t3 x + t4 y + t5) / (t6 x + t7 y + 1))
 * The image has a gradient, the transforms have none. options NULL: the defaults. */
STK_API stk_val stk_g_image_project(stk_graph *g, stk_val image, stk_val transforms,
                                    const stk_project_options *options);

/* ---- element types: integers count 0 .. their largest value as 0 .. 1 ------------------------------ */
STK_API stk_val stk_g_image_to_float(stk_graph *g, stk_val image); /* floats pass */
STK_API stk_val stk_g_image_from_float(stk_graph *g, stk_val image,
                                       stk_dtype dtype); /* saturates */

/* ---- colours: floats in 0 .. 1; integers are taken to floats and back. Amounts are float32 scalars (or as
 *      the image's dtype), or one per image, [images, 1, 1, 1] ----------------------------------------- */
STK_API stk_val stk_g_image_adjust_brightness(stk_graph *g, stk_val image, stk_val delta);
STK_API stk_val stk_g_image_adjust_contrast(stk_graph *g, stk_val image, stk_val factor);
STK_API stk_val stk_g_image_adjust_saturation(stk_graph *g, stk_val image, stk_val factor);
STK_API stk_val stk_g_image_adjust_hue(stk_graph *g, stk_val image,
                                       stk_val delta); /* of a full turn */
STK_API stk_val stk_g_image_rgb_to_grayscale(stk_graph *g, stk_val image);
STK_API stk_val stk_g_image_grayscale_to_rgb(stk_graph *g, stk_val image);
STK_API stk_val stk_g_image_rgb_to_hsv(stk_graph *g, stk_val image);
STK_API stk_val stk_g_image_hsv_to_rgb(stk_graph *g, stk_val image);
/* Mean 0, variance 1 over each image; flat images are divided by 1/sqrt(elements) instead. */
STK_API stk_val stk_g_image_standardise(stk_graph *g, stk_val image);

/* ---- at random: each image of a batch draws for itself; options as for the random numbers of nn.h (NULL: the
 *      defaults) ----------------------------------------------------------------------------------------- */
STK_API stk_val stk_g_image_random_flip_left_right(stk_graph *g, stk_val image,
                                                   const stk_random_options *options);
STK_API stk_val stk_g_image_random_flip_up_down(stk_graph *g, stk_val image,
                                                const stk_random_options *options);
STK_API stk_val stk_g_image_random_crop(stk_graph *g, stk_val image, int64_t height, int64_t width,
                                        const stk_random_options *options);
STK_API stk_val stk_g_image_random_brightness(stk_graph *g, stk_val image, double delta,
                                              const stk_random_options *options);
STK_API stk_val stk_g_image_random_contrast(stk_graph *g, stk_val image, double low, double high,
                                            const stk_random_options *options);
STK_API stk_val stk_g_image_random_saturation(stk_graph *g, stk_val image, double low, double high,
                                              const stk_random_options *options);
STK_API stk_val stk_g_image_random_hue(stk_graph *g, stk_val image, double delta,
                                       const stk_random_options *options);
typedef struct stk_random_affine_options {
    double rotation;                  /* radians, to either side */
    double zoom_low, zoom_high;       /* above 1 enlarges */
    double shift_height, shift_width; /* as parts of the size, to either side */
    stk_project_options project;
} stk_random_affine_options;
STK_API stk_random_affine_options stk_random_affine_options_defaults(void); /* none of it */
STK_API stk_val stk_g_image_random_affine(stk_graph *g, stk_val image,
                                          const stk_random_affine_options *affine,
                                          const stk_random_options *options);

#ifdef __cplusplus
}
#endif
#endif
