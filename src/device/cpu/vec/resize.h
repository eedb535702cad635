/* resize.h - the two passes of a resize in float32. */
#ifndef STK_DEVICE_CPU_VEC_RESIZE_H
#define STK_DEVICE_CPU_VEC_RESIZE_H

#include "device/cpu/vec/vec.h"

enum { STK_RESIZE_SLACK = 4 }; /* floats behind `row` that down the width may be read */

typedef struct stk_vec_resize {
    /* out[i] = sum over t of weight[t] * x[t * stride + i], i < n. taps >= 1. */
    void (*rows_f32)(float *out, const float *x, int64_t stride, int64_t n, const float *weight,
                     int64_t taps);
    void (*rows_u8)(float *out, const uint8_t *x, int64_t stride, int64_t n, const float *weight,
                    int64_t taps);
    /* out[i, c] = sum over t of weight[at[i] + t] * row[first[i] + t, c]; see resize_taps.h. */
    void (*columns)(float *out, const float *row, int64_t n, int64_t channels, const int32_t *first,
                    const int32_t *at, const float *weight);
} stk_vec_resize;

#ifdef STK_ISA
extern const stk_vec_resize STK_VEC(stk_vec_resize);
#endif

#endif
