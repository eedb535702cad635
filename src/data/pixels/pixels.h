/* pixels.h (internal) - an image between two steps, and the passes over it. */
#ifndef STK_DATA_PIXELS_H
#define STK_DATA_PIXELS_H

#include "base/memory.h"
#include "stoker/pixels.h"

/* Dense pixels [h, w, c] of uint8 or float. The memory is somebody else's. */
typedef struct stk_canvas {
    void *data;
    stk_dtype dtype;
    int64_t h, w, c;
} stk_canvas;

static inline int64_t stk_canvas_count(const stk_canvas *a) { return a->h * a->w * a->c; }
static inline size_t stk_canvas_bytes(const stk_canvas *a)
{
    return (size_t)stk_canvas_count(a) * (a->dtype == STK_U8 ? 1 : 4);
}

/* Scale, shift and flips that wait to be done in one pass. */
typedef struct stk_pixel_pass {
    bool affine, flip_lr, flip_ud;
    bool each;                 /* numbers differ between channels */
    float scale[4], offset[4]; /* x * scale + offset; channel 0 counts for all unless `each` */
} stk_pixel_pass;

/* in -> out; out is float when affine, else of in's type. The two do not overlap. scratch: one row of in plus 64 bytes,
 * needed when flip_lr. */
void stk_pass_run(const stk_pixel_pass *p, const stk_canvas *in, const stk_canvas *out,
                  void *scratch);

/* Colours, floats in place. Channels: any for contrast, 3 for the others. */
void stk_contrast(const stk_canvas *image, float factor);
void stk_saturation(const stk_canvas *image, float factor);
void stk_hue(const stk_canvas *image, float delta);
void stk_grayscale(const stk_canvas *in, const stk_canvas *out); /* floats */
void stk_standardise(const stk_canvas *image);

/* uint8 <-> float 0..1, as tf.image.convert_image_dtype. */
void stk_unit_from_u8(const uint8_t *in, float *out, int64_t n);
void stk_unit_to_u8(const float *in, uint8_t *out, int64_t n);

/* Moving pixels. */
void stk_window_copy(const stk_canvas *in, int64_t top, int64_t left, const stk_canvas *out);
void stk_rotate(const stk_canvas *in, int32_t turns, const stk_canvas *out); /* turns 1, 2, 3 */
void stk_pad_into(const stk_canvas *in, int64_t top, int64_t left, const stk_canvas *out);
void stk_paint(const stk_canvas *image, int64_t top, int64_t left, int64_t h, int64_t w,
               float value);

/* Resampling; in is uint8 or float, out float (nearest: in's type). scratch: stk_resample_scratch bytes. */
size_t stk_resample_scratch(const stk_canvas *in);
stk_status stk_resample(const stk_canvas *in, const stk_canvas *out, int32_t kind, bool antialias,
                        void *scratch, stk_error *err);

/* The same from bytes that come row by row, from the top; not for nearest. `out` is float and has the channels of in. */
typedef struct stk_resampler stk_resampler;
stk_status stk_resampler_new(int64_t h, int64_t w, const stk_canvas *out, int32_t kind,
                             bool antialias, stk_resampler **made, stk_error *err);
uint8_t *stk_resampler_place(stk_resampler *r, int64_t y); /* for row y; NULL: it is not needed */
void stk_resampler_put(stk_resampler *r, int64_t y);       /* row y is in its place */
void stk_resampler_free(stk_resampler *r);                 /* NULL is fine */

#endif
