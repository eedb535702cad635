/* peak.h - two loops that do nothing but arithmetic, or nothing but memory: the two edges of the roofline. */
#ifndef STK_DEVICE_CPU_VEC_PEAK_H
#define STK_DEVICE_CPU_VEC_PEAK_H

#include "device/cpu/vec/vec.h"

typedef struct stk_vec_peak {
    int64_t flops_per_round; /* of fma */
    float (*fma)(int64_t rounds);
    void (*triad)(float *a, const float *b, const float *c, int64_t n); /* a = b + 0.5 c */
} stk_vec_peak;
extern const stk_vec_peak STK_VEC(stk_vec_peak);

#endif
