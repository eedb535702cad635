/* conv_gather.c - the rows of a convolution seen as a matrix product: what each pixel of a block reads, run after run, as one
 * dense row (conv.h). */
#include "device/cpu/vec/conv.h"
#include "device/cpu/vec/lanes.h"

STK_INLINE void copy(float *to, const float *from, int64_t n)
{
    int64_t i = 0;
    for (; i + STK_VF <= n; i += STK_VF) vf_store(to + i, vf_load(from + i));
    if (i < n) {
        const vf_part part = vf_part_of(n - i);
        vf_store_part(to + i, vf_load_part(from + i, part), part);
    }
}

void STK_VEC(stk_conv_gather)(const stk_conv_block *b, int64_t first, int64_t count, float *to,
                              int64_t ld)
{
    int64_t row = first / b->cols, col = first % b->cols;
    for (; count > 0; count--, to += ld) {
        const float *x = b->x + row * b->x_row + col * b->x_col;
        float *at = to;
        for (const stk_conv_run *run = b->run, *end = run + b->runs; run < end; run++) {
            copy(at, x + run->x, run->n);
            at += run->n;
        }
        if (++col == b->cols) {
            col = 0;
            row++;
        }
    }
}

STK_INLINE void copy_halves(uint16_t *to, const uint16_t *from, int64_t n)
{
#if STK_HAS_PAIRS
    for (; n > 32; n -= 32, to += 32, from += 32) vp_copy(to, from, 32);
    vp_copy(to, from, n);
#else
    for (int64_t i = 0; i < n; i++) to[i] = from[i];
#endif
}

void STK_VEC(stk_conv_gather_halves)(const stk_conv_block *b, int64_t first, int64_t count,
                                     uint16_t *to, int64_t ld)
{
    int64_t row = first / b->cols, col = first % b->cols;
    for (; count > 0; count--, to += ld) {
        const uint16_t *x = (const uint16_t *)(const void *)b->x + row * b->x_row + col * b->x_col;
        uint16_t *at = to;
        for (const stk_conv_run *run = b->run, *end = run + b->runs; run < end; run++) {
            copy_halves(at, x + run->x, run->n);
            at += run->n;
        }
        if (++col == b->cols) {
            col = 0;
            row++;
        }
    }
}
