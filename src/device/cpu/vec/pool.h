/* pool.h - vector kernels of pooling, one image a call, channels in the registers. `which` holds bytes, or int32
 * where stk_pool_wide() says so. Maxima are [0] of floats, [1] of bfloat16, whose gradient has no windows that share pixels:
 * sums are not for half types. */
#ifndef STK_DEVICE_CPU_VEC_POOL_H
#define STK_DEVICE_CPU_VEC_POOL_H

#include "device/cpu/vec/vec.h"

typedef struct stk_vec_pool {
    void (*max[2])(const stk_pool_params *p, const void *x, void *y, void *which);
    void (*max_grad[2])(const stk_pool_params *p, const void *which, const void *dy, void *dx);
    void (*max_pick[2])(const stk_pool_params *p, const void *which, const void *v, void *y);
    void (*avg)(const stk_pool_params *p, const float *x, float *y);
    void (*avg_grad)(const stk_pool_params *p, const float *dy, float *dx);
} stk_vec_pool;

extern const stk_vec_pool STK_VEC(stk_vec_pool);

#endif
