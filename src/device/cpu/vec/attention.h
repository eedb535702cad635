/* attention.h - what attention does between its products, built per instruction set.
 *
 * Scores of a block of queries stand key by key, x[keys][ld]: a register holds one key's scores of several queries, so that
 * sums and maxima over keys never leave their lane. ld is a multiple of STK_ATTENTION_LANES; columns behind the last
 * query hold numbers that nobody looks at. */
#ifndef STK_DEVICE_CPU_VEC_ATTENTION_H
#define STK_DEVICE_CPU_VEC_ATTENTION_H

#include "device/cpu/vec/vec.h"

enum { STK_ATTENTION_LANES = 16 }; /* whole registers of every set */

typedef struct stk_vec_attention {
    /* x = e^(x - top) with the largest score of each query, and 1 / their sum */
    void (*soften)(int64_t keys, int64_t ld, float *x, float *top, float *rsum);
    /* The same once more, with what is known. */
    void (*soften_again)(int64_t keys, int64_t ld, float *x, const float *top);
    /* d = x (d - rsum sum over the keys of x d): the gradient of the scores, if d was made from rsum dy */
    void (*soften_grad)(int64_t keys, int64_t ld, const float *x, float *d, const float *rsum);
    /* to = from[i] by[i * step], n rows of `width` floats that are `row` apart; their copies stand together */
    void (*take_rows)(int64_t n, int64_t width, const float *from, int64_t row, const float *by,
                      int64_t step, float *to);
    /* Row i of n times by[i * step]. */
    void (*scale_rows)(int64_t n, int64_t width, float *at, int64_t row, const float *by,
                       int64_t step);
    /* Row j of x is key first + j, and becomes `value` for those of its queries, from lo on, that are before it. */
    void (*hide_later)(int64_t first, int64_t keys, int64_t lo, int64_t ld, float *x, float value);
    /* x[j][i] = value where mask[j * step + i] is 0, for n queries; one byte for all of them if `alike` */
    void (*hide)(int64_t keys, int64_t n, int64_t ld, const uint8_t *mask, int64_t step, bool alike,
                 float *x, float value);
} stk_vec_attention;

extern const stk_vec_attention STK_VEC(stk_vec_attention);

#endif
