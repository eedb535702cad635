/* kernels_conv.h - problems of the convolution and pooling kernels.
 *
 * Images are channels-last and always have three spatial axes here: 1-d is [1,1,w], 2-d is [1,h,w]. Padding
 * on the high side is implied by the output sizes. */
#ifndef STK_DEVICE_KERNELS_CONV_H
#define STK_DEVICE_KERNELS_CONV_H

#include <stdbool.h>
#include <stdint.h>

/* x[n, in.., ic] * w[kernel.., ic/groups, oc] -> y[n, out.., oc]; the two backward kernels describe the
 * same convolution and compute dx or dw of it.
 *
 *     y[i, o, c] = sum over t, k of x[i, o * stride + t * dilation - low, k] * w[t, k, c]
 */
typedef struct stk_conv {
    int64_t n, ic, oc, groups;
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], low[3];
    int64_t dtype;
} stk_conv;

/* x[n, in.., c] -> y[n, out.., c]. Elements outside the image take no part: they are no maximum and are
 * not counted in an average.
 *
 * Maxima are remembered as numbers of taps: which element of its window (row-major, the part outside the image
 * counted too) each one came from. Of equal ones the first, and a NaN is larger than everything. One byte each, or an
 * int32 where windows have more than 256 elements. */
typedef struct stk_pool_params {
    int64_t n, c;
    int64_t in[3], out[3], window[3], stride[3], low[3];
    int64_t dtype; /* of x and y */
} stk_pool_params;

static inline bool stk_pool_wide(const int64_t window[3])
{
    return window[0] > 256 || window[1] > 256 || window[2] > 256 ||
           window[0] * window[1] * window[2] > 256;
}

#endif
