/* softmax.h - softmax and cross entropy over rows of float. Results do not overlap inputs. */
#ifndef STK_DEVICE_CPU_VEC_SOFTMAX_H
#define STK_DEVICE_CPU_VEC_SOFTMAX_H

#include "device/cpu/vec/vec.h"

typedef struct stk_vec_softmax {
    void (*softmax)(int64_t rows, int64_t n, const float *x, float *y);
    void (*log_softmax)(int64_t rows, int64_t n, const float *x, float *y);
    void (*softmax_grad)(int64_t rows, int64_t n, const float *y, const float *dy, float *dx);
    void (*log_softmax_grad)(int64_t rows, int64_t n, const float *y, const float *dy, float *dx);
    /* Labels as weights of the classes, or as class numbers (any outside 0..n-1: loss NaN, grad 0). */
    void (*xent)(int64_t rows, int64_t n, const float *x, const float *t, float *loss, float *grad);
    void (*xent_i32)(int64_t rows, int64_t n, const float *x, const int32_t *t, float *loss,
                     float *grad);
    void (*xent_i64)(int64_t rows, int64_t n, const float *x, const int64_t *t, float *loss,
                     float *grad);
} stk_vec_softmax;

extern const stk_vec_softmax STK_VEC(stk_vec_softmax);

#endif
