/* kernels_index.h - problems of picking, placing and ordering elements; see kernels.h for the rules.
 *
 * Indices are int32 or int64. A kernel cannot fail, so an index out of range has a meaning: a gather
 * gives zeros there and a scatter leaves that update out. Negative indices are out of range too. Who must know
 * of them says so in the task (stk_index_check in plan.h). */
#ifndef STK_DEVICE_KERNELS_INDEX_H
#define STK_DEVICE_KERNELS_INDEX_H

#include "base/shape.h"

/* ---- gather: out[batch, outer, count, inner] = x[batch, outer, index[batch, count], inner]
 *      args: x, index, out
 * ---- scatter: out[batch, outer, n, inner] = base or zeros, then for i = 0, 1, ... count-1 in this order
 *               out[.., index[batch, i], ..] += (or =) updates[batch, outer, i, inner]
 *      args: index, updates, [base], out ------------------------------------------------------------- */
typedef struct stk_gather_params {
    int64_t batch, outer, n, count, inner;
    int32_t dtype, index; /* of the elements, of the indices */
} stk_gather_params;

typedef enum stk_scatter_mode { STK_SCATTER_ADD, STK_SCATTER_SET } stk_scatter_mode;

typedef struct stk_scatter_params {
    stk_gather_params at;
    int32_t mode;
    int32_t base; /* 1: a third input holds what out starts from */
} stk_scatter_params;

/* ---- take_along: out[outer, count, inner] = x[outer, index[outer, count, inner], inner]
 *      args: x, index, out
 * ---- put_along: out[outer, n, inner] = zeros, then += updates at index, in the order of count
 *      args: index, updates, out -------------------------------------------------------------------- */
typedef struct stk_along_params {
    int64_t outer, n, count, inner;
    int32_t dtype, index;
} stk_along_params;

/* ---- ravel_index: [batch, count, depth] coordinates -> [batch, count] row-major positions in
 *      [batch, dim...]; -1 when a coordinate is out of range. args: coordinates, out (int64) ----------- */
typedef struct stk_ravel_params {
    int64_t batch, count, depth, index;
    int64_t dim[STK_MAX_RANK];
} stk_ravel_params;

/* ---- one_hot: out[outer, depth, inner] = on where depth == index[outer, inner], else off
 *      args: index, out ------------------------------------------------------------------------------- */
typedef struct stk_one_hot_params {
    int64_t outer, depth, inner;
    int64_t item; /* bytes of one element: 1, 2, 4 or 8 */
    int64_t index;
    uint8_t on[8], off[8];
} stk_one_hot_params;

/* ---- sort: the first k of each line along n of [outer, n, inner], in order; equal elements keep
 *      theirs, NaN comes last in both directions. args: x, values, indices (int64) ---------------------- */
typedef struct stk_sort_params {
    int64_t outer, n, inner, k;
    int32_t dtype, descending;
} stk_sort_params;

#endif
