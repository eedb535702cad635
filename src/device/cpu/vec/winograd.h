/* winograd.h - the transforms of convolutions by tiles of results, after Winograd: fewer products for some additions.
 *
 *     a tile     n x n numbers of the source -> m x m numbers of the destination, for r x r taps: n = m + r - 1
 *     V = B' d B          of the source             M = V U, n x n matrix products over channels
 *     U = G w G'          of the weights            y = A' M A
 *
 * The gradient of the weights runs the same way backwards: W = A dy A' of the destination, n x n products V' W, and
 * dw = G' (sum) G. Arrays of positions are [n x n][step]: `step` elements between positions. The two axes are
 * transformed apart, and one of them may have a single tap: then it is left as it is. */
#ifndef STK_DEVICE_CPU_VEC_WINOGRAD_H
#define STK_DEVICE_CPU_VEC_WINOGRAD_H

#include "device/cpu/vec/vec.h"

typedef struct stk_winograd_axis {
    int64_t points, outs, taps; /* n, m, r */
} stk_winograd_axis;

/* Pixels row_lo..row_hi, col_lo..col_hi of a tile lie in the picture: the others are zeros and are not written. */
typedef struct stk_winograd_inside {
    int64_t row_lo, row_hi, col_lo, col_hi;
} stk_winograd_inside;

/* One kind of tile. Strides of rows and columns are in elements. Pictures and weights are of the kind's type, positions and
 * gradients of weights are floats: what is bfloat16 is widened as it is read and rounded once, at the end. */
typedef struct stk_winograd_tile {
    stk_winograd_axis rows, cols;
    void (*source)(const void *x, int64_t row, int64_t col, stk_winograd_inside in,
                   int64_t channels, float *to, int64_t step);
    void (*result)(const float *from, int64_t step, int64_t channels, void *y, int64_t row,
                   int64_t col, stk_winograd_inside in);
    void (*result_back)(const void *dy, int64_t row, int64_t col, stk_winograd_inside in,
                        int64_t channels, float *to, int64_t step);
    /* U of rows of n weights, `tap` elements apart; `turned`: the last tap comes first. */
    void (*weights)(const void *w, int64_t tap, bool turned, int64_t n, float *to, int64_t step);
    void (*weights_back)(const float *from, int64_t step, int64_t n, float *dw, int64_t tap);
} stk_winograd_tile;

/* 2x2 results of 3x3 taps by 4 points; by 6 points 4x4 of 3x3, 2x2 of 5x5, 1x4 of 1x3, 1x2 of 1x5. */
enum { STK_WINOGRAD_KINDS = 5 };

/* Rounding, 3x3 taps and 64 channels, root mean square of the error over that of the result: 2.6e-7 by 4 points, 7.7e-7 by 6, and 4.3e-7 by
 * the plain sum, term after term. */
typedef struct stk_vec_winograd {
    const stk_winograd_tile *const *floats;
    const stk_winograd_tile *const *halves; /* bfloat16, after stk_isa_has_pairs(); else NULL */
} stk_vec_winograd;

extern const stk_vec_winograd STK_VEC(stk_vec_winograd);

#endif
