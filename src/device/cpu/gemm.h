/* gemm.h - what the implementations of the gemm kernel id on the CPU share: how a product is cut into
 * units. */
#ifndef STK_DEVICE_CPU_GEMM_H
#define STK_DEVICE_CPU_GEMM_H

#include "base/memory.h"
#include "device/cpu/launch.h"

/* Units are rows of c, or columns where rows are too few or would have every part read a large b.
 * `step` of them make one unit. */
typedef struct stk_gemm_cut {
    bool columns;
    int64_t step;
} stk_gemm_cut;

bool stk_gemm_by_columns(const stk_gemm *g);
int64_t stk_gemm_count(const stk_gemm *g, stk_gemm_cut cut); /* of units */

/* The next rectangle of units *at .. hi that lies in one matrix of the batch; false at the end.
 *
 *     for (int64_t at = lo; stk_gemm_next(g, cut, &at, hi, &r);) ... */
typedef struct stk_gemm_part {
    int64_t batch, row_lo, row_hi, col_lo, col_hi;
} stk_gemm_part;
bool stk_gemm_next(const stk_gemm *g, stk_gemm_cut cut, int64_t *at, int64_t hi,
                   stk_gemm_part *out);

/* Slots of the implementations that go by single rows, so that what works on rows can follow part by
 * part; ours and the reference. */
stk_gemm_cut stk_gemm_own_cut(const stk_gemm *g);
int64_t stk_gemm_units(const void *params);
int64_t stk_gemm_grain(const void *params);
int64_t stk_gemm_least(const void *params);
uint32_t stk_gemm_aligned(const void *params);

#endif
