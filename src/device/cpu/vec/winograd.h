/* winograd.h - the transforms of 3x3 convolutions by tiles of 2x2 results, after Winograd: 16 products per channel
 * where the plain way needs 36.
 *
 *     a tile     4x4 numbers of the source -> 2x2 numbers of the destination, neighbours overlap by two
 *     V = B' d B          of the source             M = V U, 16 matrix products over channels
 *     U = G w G'          of the weights            y = A' M A
 *
 * The gradient of the weights runs the same way backwards: W = A dy A' of the destination, 16 products V' W, and
 * dw = G' (sum) G. Arrays of 16 positions are [16][step]: `step` elements between positions. */
#ifndef STK_DEVICE_CPU_VEC_WINOGRAD_H
#define STK_DEVICE_CPU_VEC_WINOGRAD_H

#include "device/cpu/vec/vec.h"

typedef struct stk_vec_winograd {
    /* The 4x4 pixels at x (row, column strides in elements), those outside as zeros: bit 4 r + c of `inside`. */
    void (*source)(const float *x, int64_t row, int64_t col, uint32_t inside, int64_t channels,
                   float *to, int64_t step);
    /* The 2x2 pixels at y; bit 2 r + c of `inside`: outside nothing is written. */
    void (*result)(const float *from, int64_t step, int64_t channels, float *y, int64_t row,
                   int64_t col, uint32_t inside);
    /* W of the 2x2 pixels at dy, those outside as zeros. */
    void (*result_back)(const float *dy, int64_t row, int64_t col, uint32_t inside,
                        int64_t channels, float *to, int64_t step);
    /* U of nine rows of n weights, `tap` elements apart, tap t at w + taps[t] * tap. */
    void (*weights)(const float *w, int64_t tap, const int8_t taps[9], int64_t n, float *to,
                    int64_t step);
    void (*weights_back)(const float *from, int64_t step, int64_t n, float *dw, int64_t tap);
} stk_vec_winograd;

extern const stk_vec_winograd STK_VEC(stk_vec_winograd);

#endif
