/* pool.h - vector kernels of pooling, one image a call, channels in the registers. `which` holds bytes, or int32
 * where stk_pool_wide() says so. */
#ifndef STK_DEVICE_CPU_VEC_POOL_H
#define STK_DEVICE_CPU_VEC_POOL_H

#include "device/cpu/vec/vec.h"

typedef struct stk_vec_pool {
    void (*max)(const stk_pool_params *p, const float *x, float *y, void *which);
    void (*max_grad)(const stk_pool_params *p, const void *which, const float *dy, float *dx);
    void (*max_pick)(const stk_pool_params *p, const void *which, const float *v, float *y);
    void (*avg)(const stk_pool_params *p, const float *x, float *y);
    void (*avg_grad)(const stk_pool_params *p, const float *dy, float *dx);
} stk_vec_pool;

extern const stk_vec_pool STK_VEC(stk_vec_pool);

#endif
