/* kernels_image.h - problems of the image kernels; see kernels.h for the rules. Images are [batch, height,
 * width, channels]. */
#ifndef STK_DEVICE_KERNELS_IMAGE_H
#define STK_DEVICE_KERNELS_IMAGE_H

#include "base/resize_taps.h"
#include "base/shape.h"

/* ---- resize: each output row is a weighted sum of a window of input rows, then the same along the width.
 *      args: image, out
 *
 * The gradient is the same problem with transposed weights: its image has the size of a resize's
 * result, its output the size of that resize's image. */
typedef struct stk_resize_params {
    int64_t batch, in_h, in_w, out_h, out_w, channels;
    int32_t kind, antialias, transposed; /* stk_taps_kind */
    int32_t in_dtype;                    /* nearest: any, else float32, float64, uint8 */
    int64_t out_dtype;                   /* nearest: in_dtype, else float32 or float64 */
} stk_resize_params;

/* ---- project: out[b, y, x, c] = image[b, Y, X, c] with, for the 8 numbers t of one transform,
 *          X = (t0 x + t1 y + t2) / (t6 x + t7 y + 1),  Y = (t3 x + t4 y + t5) / (t6 x + t7 y + 1)
 *      args: image, transforms, out
 * ---- project_grad: the same, transposed: every dy is added to the pixels it was read from. Here in_* are the
 *      sizes of dy, out_* those of the image. args: dy, transforms, dimage ------------------------------- */
typedef enum stk_project_fill {
#define STK_IMAGE_FILL(NAME, name, doc) STK_OUTSIDE_##NAME,
#include "stoker/image_fill.def"
    STK_OUTSIDE_COUNT
} stk_project_fill;

typedef struct stk_project_params {
    int64_t batch, in_h, in_w, out_h, out_w, channels;
    int32_t dtype,
        out_dtype; /* nearest: any and the same; bilinear: float32, float64, uint8 -> float32 */
    int32_t transform, shared; /* dtype of the transforms; 1: one for all images */
    int32_t bilinear, fill;    /* stk_project_fill */
    double value;              /* OUTSIDE_CONSTANT */
} stk_project_params;

#endif
