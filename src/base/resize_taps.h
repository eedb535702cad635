/* resize_taps.h - which input pixels an output pixel is made of, along one axis.
 *
 * Output i is the sum of weight[at[i] + t] * input[first[i] + t] over t in 0 .. at[i+1] - at[i] - 1. The
 * windows are those of TensorFlow 2 (half-pixel centres), in its float arithmetic, so that borders
 * and ties fall alike. */
#ifndef STK_BASE_RESIZE_TAPS_H
#define STK_BASE_RESIZE_TAPS_H

#include "base/status.h"

#include <stdint.h>

typedef enum stk_taps_kind {
#define STK_RESIZE(NAME, name, doc) STK_TAPS_##NAME,
#include "stoker/resize.def"
    STK_TAPS_COUNT
} stk_taps_kind;

typedef struct stk_taps {
    int64_t n;
    int32_t *first; /* [n] */
    int32_t *at;    /* [n + 1] */
    float *weight;  /* [at[n]] */
} stk_taps;

/* Taps of a resize of `in` pixels to `out`; transposed: those of its gradient, `out` pixels to `in`.
 * One block; stk_taps_free gives it back. Sizes are at least 1 and below 2^31. */
stk_status stk_taps_new(int32_t kind, int32_t antialias, int32_t transposed, int64_t in,
                        int64_t out, stk_taps **taps, stk_error *err);
void stk_taps_free(stk_taps *taps);

#endif
