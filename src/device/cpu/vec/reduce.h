/* reduce.h - reductions over tiles: rows to one value each, columns to one row.
 *
 * All of them add on to accumulators that hold the identity or an earlier part, so that data may arrive in pieces.
 * Sums and products of floats accumulate in double between short float sums: as exact as pairwise summation
 * and in one pass. */
#ifndef STK_DEVICE_CPU_VEC_REDUCE_H
#define STK_DEVICE_CPU_VEC_REDUCE_H

#include "device/cpu/vec/vec.h"

/* acc[r] += x[r * stride + 0 .. n) for each row r. */
typedef void (*stk_reduce_rows)(int64_t rows, int64_t n, int64_t stride, const void *x, void *acc);
/* acc[j] += x[i * stride + j] for i < n, j < width. */
typedef void (*stk_reduce_cols)(int64_t n, int64_t width, int64_t stride, const void *x, void *acc);
/* Column-wise best element so far and its index (-1: none yet); row i counts as index base + i. A row is the
 * case width = 1, stride = 1. */
typedef void (*stk_reduce_arg)(int64_t n, int64_t base, int64_t width, int64_t stride,
                               const void *x, void *best, int64_t *index);

typedef struct stk_vec_reduce {
    /* By stk_reduce_kind and lane of x; accumulators are of stk_reduce_lane(kind, lane). */
    stk_reduce_rows rows[STK_REDUCE_COUNT][4];
    stk_reduce_cols cols[STK_REDUCE_COUNT][4];
    stk_reduce_arg arg[2][4]; /* [0] largest, [1] smallest */
} stk_vec_reduce;

extern const stk_vec_reduce STK_VEC(stk_vec_reduce);

static inline stk_lane stk_reduce_lane(stk_reduce_kind kind, stk_lane lane)
{
    bool sums = kind == STK_REDUCE_SUM || kind == STK_REDUCE_PROD;
    return sums && lane == STK_LANE_F32 ? STK_LANE_F64 : lane;
}

#endif
