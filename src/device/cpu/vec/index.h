/* index.h - vector kernels for what follows indices. */
#ifndef STK_DEVICE_CPU_VEC_INDEX_H
#define STK_DEVICE_CPU_VEC_INDEX_H

#include "device/cpu/vec/vec.h"

enum { STK_SPARE = 16 };

typedef struct stk_vec_index {
    /* Which of n indices lie in lo .. hi - 1: their numbers, in order; how many. `at` has room for n + STK_SPARE. */
    int64_t (*between)(int64_t n, const int32_t *index, int32_t lo, int32_t hi, int32_t *at);
    void (*add)(int64_t n, float *to, const float *x); /* to += x */
} stk_vec_index;

extern const stk_vec_index STK_VEC(stk_vec_index);

#endif
