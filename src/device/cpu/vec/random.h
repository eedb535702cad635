/* random.h - the hot kinds of random numbers, element by element the same as base/rng.h gives them. */
#ifndef STK_DEVICE_CPU_VEC_RANDOM_H
#define STK_DEVICE_CPU_VEC_RANDOM_H

#include "base/rng.h"
#include "device/cpu/vec/vec.h"

typedef struct stk_vec_random {
    void (*uniform)(stk_rng rng, int64_t first, int64_t n, float low, float high, float *out);
    void (*normal)(stk_rng rng, int64_t first, int64_t n, float mean, float deviation, float *out);
    void (*bernoulli)(stk_rng rng, int64_t first, int64_t n, double probability, uint8_t *out);
} stk_vec_random;

extern const stk_vec_random STK_VEC(stk_vec_random);

#endif
