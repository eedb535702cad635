/* pool.h - vector kernels of pooling, one image a call, channels in the registers.
 *
 * "First maximum" is the first in the order of the window's elements; a NaN counts as the maximum. */
#ifndef STK_DEVICE_CPU_VEC_POOL_H
#define STK_DEVICE_CPU_VEC_POOL_H

#include "device/cpu/vec/vec.h"

typedef struct stk_vec_pool {
    void (*max)(const stk_pool_params *p, const float *x, float *y);
    void (*max_grad)(const stk_pool_params *p, const float *x, const float *dy, float *dx);
    void (*max_pick)(const stk_pool_params *p, const float *x, const float *v, float *y);
    void (*avg)(const stk_pool_params *p, const float *x, float *y);
    void (*avg_grad)(const stk_pool_params *p, const float *dy, float *dx);
} stk_vec_pool;

extern const stk_vec_pool STK_VEC(stk_vec_pool);

#endif
