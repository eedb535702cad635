/* conv.h - vector kernels of convolution: what one block of pixels needs.
 *
 * A pixel's output depends on several runs of consecutive input elements (one per kernel row when the taps of a
 * row touch, else one per tap). So a convolution is a matrix product whose left rows are read in place:
 *
 *     y[pixel, :] = sum over runs, k < run.n of x[pixel's address + run.x + k] * w[run.w + k, :]
 *
 * Nothing is gathered into columns first. Pixels form a block of images x rows x cols with fixed strides on both sides; a
 * tile of pixels stays in registers through all runs and may cross from one row into the next. The order of the sum is the
 * same for every pixel, wherever a tile begins. */
#ifndef STK_DEVICE_CPU_VEC_CONV_H
#define STK_DEVICE_CPU_VEC_CONV_H

#include "device/cpu/vec/vec.h"

typedef struct stk_conv_run {
    int64_t x; /* elements from the pixel's address */
    int64_t w; /* first row of weights */
    int64_t n; /* elements, and rows */
} stk_conv_run;

typedef struct stk_conv_block {
    const float *x, *w;
    float *y;                      /* weight kernels only read it */
    float *dw;                     /* weight kernels add to it */
    int64_t images, rows, cols;    /* pixels; depthwise kernels take one image */
    int64_t x_image, x_row, x_col; /* elements between neighbours */
    int64_t y_image, y_row, y_col;
    int64_t ldw;     /* elements between rows of w or dw */
    int64_t columns; /* output channels of this panel, at most 4 registers */
    const stk_conv_run *run;
    int64_t runs;
    /* deep_weight: `taps` in a row; result j meets pixels j - low ... of `width`, and taps outside are left out. 0: all are inside */
    int64_t taps, low, width;
} stk_conv_block;

typedef void stk_conv_fn(const stk_conv_block *b);

typedef struct stk_vec_conv {
    int64_t width;        /* floats per register; w is readable up to a multiple of it */
    stk_conv_fn *data[4]; /* y = ..., panels of 1, 2, 3, 4 registers */
    /* dw[run.w + k, :] += sum over pixels of x[... + run.x + k] * y[pixel, :] */
    stk_conv_fn *weight[4];
    stk_conv_fn *data_half[2], *weight_half[2]; /* 1.5 and 2.5 registers, all columns live */
    /* The same for 1, 2, 3, 4 channels of results, with lanes along the runs instead: w and dw are turned, [channel][row] with ldw
     * elements from one channel to the next. */
    stk_conv_fn *narrow_data[4], *narrow_weight[4];
    /* depthwise: y[pixel, c] = sum over runs of x[... + run.x + c] * w[run.w, c] */
    stk_conv_fn *deep_data;
    stk_conv_fn *deep_weight;
    /* to[pixel - first][...] = all runs of the pixel, for `count` pixels of one image's block; ld: between rows */
    void (*gather)(const stk_conv_block *b, int64_t first, int64_t count, float *to, int64_t ld);
    /* The same with elements of two bytes, x and strides of b too; 16 of them behind each row may be spoilt. */
    void (*gather_halves)(const stk_conv_block *b, int64_t first, int64_t count, uint16_t *to,
                          int64_t ld);
    const struct stk_vec_conv_few *few;
} stk_vec_conv;

/* Words for gradients that are nearly all zeros (device/cpu/conv_few.h). */
typedef struct stk_vec_conv_few {
    int64_t (*count)(int64_t n, const float *x);             /* elements that are not zero, */
    int64_t (*pick)(int64_t n, const float *x, int32_t *at); /* and where they are, in order */
    void (*add)(int64_t n, float *to, const float *x, float times); /* to += x * times */
    /* to[c * ld + r] = x[r * cols + c] */
    void (*turn)(int64_t rows, int64_t cols, const float *x, float *to, int64_t ld);
    /* The first two for bfloat16. */
    int64_t (*count_halves)(int64_t n, const uint16_t *x);
    int64_t (*pick_halves)(int64_t n, const uint16_t *x, int32_t *at);
} stk_vec_conv_few;

void STK_VEC(stk_conv_deep_data)(const stk_conv_block *b);
void STK_VEC(stk_conv_deep_weight)(const stk_conv_block *b);
void STK_VEC(stk_conv_gather)(const stk_conv_block *b, int64_t first, int64_t count, float *to,
                              int64_t ld);
void STK_VEC(stk_conv_gather_halves)(const stk_conv_block *b, int64_t first, int64_t count,
                                     uint16_t *to, int64_t ld);

extern const stk_vec_conv STK_VEC(stk_vec_conv);
extern const stk_vec_conv_few STK_VEC(stk_vec_conv_few);

#endif
