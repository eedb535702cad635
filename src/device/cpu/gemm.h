/* gemm.h - what the implementations of the gemm kernel id on the CPU share: how a product is cut into
 * units. */
#ifndef STK_DEVICE_CPU_GEMM_H
#define STK_DEVICE_CPU_GEMM_H

#include "base/memory.h"
#include "device/device.h"

/* A unit is one row of c, so that what works on rows can follow part by part; or a block of columns
 * where rows are too few or would have every part read a large b. */
enum { STK_GEMM_COLUMNS = 64 };

bool stk_gemm_by_columns(const stk_gemm *g);
int64_t stk_gemm_units(const void *params);
int64_t stk_gemm_grain(const void *params);
uint32_t stk_gemm_aligned(const void *params);

/* A rectangle of one matrix of the batch; false at the end. Start with *at = lo.
 *
 *     for (int64_t at = lo; stk_gemm_next(g, &at, hi, &r);) ... */
typedef struct stk_gemm_part {
    int64_t batch, row_lo, row_hi, col_lo, col_hi;
} stk_gemm_part;
bool stk_gemm_next(const stk_gemm *g, int64_t *at, int64_t hi, stk_gemm_part *out);

#endif
