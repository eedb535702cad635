/* pixels.h - what happens to images between the disk and the batch: crops, flips, colours, sizes, numbers.
 *
 *     stk_error err;
 *     stk_pixel_step steps[3] = {{.op = STK_PIXEL_RESCALE, .scale = {1.0 / 255}},
 *                                {.op = STK_PIXEL_RANDOM_BRIGHTNESS, .a = 0.1},
 *                                {.op = STK_PIXEL_RANDOM_FLIP_LEFT_RIGHT}};
 *     stk_pixels *pixels = NULL;
 *     stk_tensor *photo = NULL, *x = NULL;
 *     stk_tensor_new(STK_U8, 3, (int64_t[]){256, 256, 3}, &photo, &err);
 *     if (stk_pixels_new(3, steps, &pixels, &err) != STK_OK) return puts(err.message);
 *     stk_pixels_run(pixels, 7, 0, photo, &x, &err);      // seed 7, image 0
 *     printf("%lld floats\n", (long long)stk_tensor_count(x));
 *     stk_tensor_release(x);
 *     stk_tensor_release(photo);
 *     stk_pixels_release(pixels);
 *
 * A list of steps is one function. Neighbours that only move, scale and shift pixels are done in one pass over
 * the image, straight into the batch. What is drawn at random hangs on (seed, number of the image, step)
 * alone. Results are those of tf.image: steps on integers count 0 .. 255 as 0 .. 1, round and
 * saturate; steps on floats do not clip. */
#ifndef STOKER_PIXELS_H
#define STOKER_PIXELS_H

#include "data.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum stk_pixel_op {
#define STK_PIXEL(NAME, name, needs, doc) STK_PIXEL_##NAME,
#include "pixel_ops.def"
    STK_PIXEL_COUNT
} stk_pixel_op;
STK_API const char *stk_pixel_op_name(stk_pixel_op op);
STK_API bool stk_pixel_op_parse(const char *name, stk_pixel_op *out);

typedef struct stk_pixel_step {
    stk_pixel_op op;
    double a, b; /* delta, factor, fraction, value; or low and high */
    int64_t top, left, height, width;
    int32_t turns;    /* ROT90 */
    int32_t method;   /* RESIZE: row of resize.def; 0 nearest, 1 bilinear, 2 bicubic, 3 area */
    bool antialias;   /* RESIZE */
    int32_t channels; /* NORMALISE, RESCALE: how many numbers below; 0 and 1: one for all */
    float scale[4];   /* x * scale + offset; NORMALISE: mean ... */
    float offset[4];  /* ... and deviation */
} stk_pixel_step;

typedef struct stk_pixels stk_pixels; /* immutable and counted: any number of threads */
STK_API STK_MUST_USE stk_status stk_pixels_new(int32_t count, const stk_pixel_step *steps,
                                               stk_pixels **out, stk_error *err);
STK_API stk_pixels *stk_pixels_retain(stk_pixels *pixels);
STK_API void stk_pixels_release(stk_pixels *pixels);

/* image: uint8 or float32 [height, width, channels] (other types are taken to float32 first). *out: NULL for a
 * new tensor, or one of the right type and shape, which is written. */
STK_API STK_MUST_USE stk_status stk_pixels_run(const stk_pixels *pixels, uint64_t seed,
                                               int64_t number, const stk_tensor *image,
                                               stk_tensor **out, stk_error *err);
/* Type and shape of the result; sizes may be -1 where they are not known. */
STK_API STK_MUST_USE stk_status stk_pixels_infer(const stk_pixels *pixels, stk_dtype dtype,
                                                 const int64_t shape[3], stk_dtype *out_dtype,
                                                 int64_t out_shape[3], stk_error *err);

/* For stk_data_map: the steps on leaf `part` of each element, the others pass. Takes one handle of
 * its own on `pixels`. */
STK_API STK_MUST_USE stk_status stk_map_pixels(stk_pixels *pixels, int32_t part, stk_map_fn *fn,
                                               stk_error *err);

/* For stk_data_map over batches (images float32, labels float32, e.g. one-hot): each image is mixed with another
 * one of its batch, and so are the labels. The share is drawn from Beta(alpha, alpha); cutmix: a window of
 * the other image in place of a sum. */
STK_API STK_MUST_USE stk_status stk_map_mixup(double alpha, bool cutmix, stk_map_fn *fn,
                                              stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
