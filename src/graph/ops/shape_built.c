/* Builders made of the moves of shape.c: borders that mirror, rolls, diagonals, triangles, outer and cross
 * products. */
#include "graph/ir/op.h"

#include <string.h>

/* ---- borders ------------------------------------------------------------------------------------------ */

/* `count` elements beside the low (or high) end of an axis of n. */
static stk_val border(stk_graph *g, stk_val x, int32_t axis, int64_t n, int64_t count, bool high,
                      stk_pad_mode mode)
{
    stk_shape s = stk_type_of(g, x)->shape;
    switch (mode) {
    case STK_PAD_REFLECT:
        return stk_g_reverse(g, stk_g_slice_axis(g, x, axis, high ? n - 1 - count : 1, count),
                             axis);
    case STK_PAD_SYMMETRIC:
        return stk_g_reverse(g, stk_g_slice_axis(g, x, axis, high ? n - count : 0, count), axis);
    case STK_PAD_WRAP: return stk_g_slice_axis(g, x, axis, high ? 0 : n - count, count);
    default: break;
    }
    s.dim[axis] = count;
    return stk_g_broadcast(g, stk_g_slice_axis(g, x, axis, high ? n - 1 : 0, 1), s.rank, s.dim);
}

stk_val stk_g_pad_mode(stk_graph *g, stk_val x, const int64_t *low, const int64_t *high,
                       stk_pad_mode mode)
{
    if (!stk_graph_ok(g)) return 0;
    if (!stk_val_ok(g, x) || (unsigned)mode > STK_PAD_WRAP || !low || !high)
        return stk_g_fail(g, STK_ERR_ARGUMENT,
                          "pad_mode: needs an input, low, high and a mode of stk_pad_mode");
    for (int32_t axis = 0; axis < stk_g_rank(g, x); axis++) {
        int64_t n = stk_g_dim(g, x, axis), most = n;
        if (mode == STK_PAD_REFLECT) most = n > 0 ? n - 1 : 0;
        if (mode == STK_PAD_EDGE) most = n > 0 ? INT64_MAX / 4 : 0;
        if (low[axis] < 0 || high[axis] < 0 || low[axis] > most || high[axis] > most)
            return stk_g_fail(g, STK_ERR_RANGE,
                              "pad_mode(%s): %lld and %lld at axis %d; 0 to %lld is possible",
                              STK_TYPE_TEXT(stk_type_of(g, x)), (long long)low[axis],
                              (long long)high[axis], axis, (long long)most);
        stk_val parts[3];
        int32_t count = 0;
        if (low[axis]) parts[count++] = border(g, x, axis, n, low[axis], false, mode);
        parts[count++] = x;
        if (high[axis]) parts[count++] = border(g, x, axis, n, high[axis], true, mode);
        x = stk_g_concat(g, count, parts, axis);
        if (!x) return 0;
    }
    return x;
}

stk_val stk_g_roll(stk_graph *g, stk_val x, int64_t shift, int32_t axis)
{
    if (!stk_graph_ok(g)) return 0;
    axis = stk_g_axis(g, "roll", x, axis);
    if (axis < 0) return 0;
    int64_t n = stk_g_dim(g, x, axis), by = n ? (shift % n + n) % n : 0;
    if (!by) return x;
    stk_val parts[] = {stk_g_slice_axis(g, x, axis, n - by, by),
                       stk_g_slice_axis(g, x, axis, 0, n - by)};
    return stk_g_concat(g, 2, parts, axis);
}

/* ---- diagonals and triangles ------------------------------------------------------------------------------ */

/* n zeros after each element but the last: element i stands at i (n + 1), the diagonal of [n, n]. */
stk_val stk_g_diag(stk_graph *g, stk_val x)
{
    if (!stk_graph_ok(g)) return 0;
    int32_t rank = stk_g_rank(g, x);
    if (!stk_val_ok(g, x) || rank < 1 || rank == STK_MAX_RANK)
        return stk_g_fail(g, STK_ERR_SHAPE, "diag: needs 1 to %d axes, the last is the diagonal",
                          STK_MAX_RANK - 1);
    stk_shape s = stk_type_of(g, x)->shape;
    int64_t n = s.dim[rank - 1], ints[3 * STK_MAX_RANK] = {0};
    double zero = 0;
    ints[3 * rank - 1] = n;
    x = stk_g_apply(g, STK_OP_PAD, 1, &x,
                    &(stk_attrs){.ints = ints, .nints = 3 * rank, .reals = &zero, .nreals = 1});
    s.dim[s.rank++] = n;
    return stk_g_reshape(g, x, s.rank, s.dim);
}

stk_val stk_g_diag_part(stk_graph *g, stk_val x)
{
    if (!stk_graph_ok(g)) return 0;
    int32_t rank = stk_g_rank(g, x);
    if (!stk_val_ok(g, x) || rank < 2)
        return stk_g_fail(g, STK_ERR_SHAPE,
                          "diag_part: needs at least 2 axes, the last two are the matrix");
    stk_shape s = stk_type_of(g, x)->shape;
    int64_t rows = s.dim[rank - 2], columns = s.dim[rank - 1], start[STK_MAX_RANK] = {0},
            step[STK_MAX_RANK];
    s.dim[rank - 2] = rows * columns;
    s.rank = rank - 1;
    x = stk_g_reshape(g, x, s.rank, s.dim);
    for (int32_t i = 0; i < s.rank; i++) step[i] = 1;
    step[s.rank - 1] = columns + 1;
    s.dim[s.rank - 1] = stk_min_i64(rows, columns);
    return stk_g_slice(g, x, start, s.dim, step);
}

/* True on and below (or on and above) the k-th diagonal of [rows, columns]. */
static stk_val triangle(stk_graph *g, int64_t rows, int64_t columns, int64_t k, bool lower)
{
    stk_val r = stk_g_iota(g, STK_I64, 2, (int64_t[]){rows, 1}, 0);
    stk_val c = stk_g_iota(g, STK_I64, 2, (int64_t[]){1, columns}, 1);
    stk_val limit = stk_g_add(g, r, stk_g_scalar(g, STK_I64, (double)k));
    return lower ? stk_g_le(g, c, limit) : stk_g_ge(g, c, limit);
}

static stk_val keep_triangle(stk_graph *g, const char *who, stk_val x, int64_t k, bool lower)
{
    if (!stk_graph_ok(g)) return 0;
    if (!stk_val_ok(g, x) || stk_g_rank(g, x) < 2)
        return stk_g_fail(g, STK_ERR_SHAPE,
                          "%s: needs at least 2 axes, the last two are the matrix", who);
    int64_t rows = stk_g_dim(g, x, -2), columns = stk_g_dim(g, x, -1);
    k = stk_max_i64(stk_min_i64(k, columns), -rows);
    return stk_g_select(g, triangle(g, rows, columns, k, lower), x,
                        stk_g_scalar(g, stk_g_dtype(g, x), 0));
}

stk_val stk_g_tril(stk_graph *g, stk_val x, int64_t k)
{
    return keep_triangle(g, "tril", x, k, true);
}
stk_val stk_g_triu(stk_graph *g, stk_val x, int64_t k)
{
    return keep_triangle(g, "triu", x, k, false);
}

stk_val stk_g_eye(stk_graph *g, stk_dtype dtype, int64_t rows, int64_t columns)
{
    if (!stk_graph_ok(g)) return 0;
    stk_val r = stk_g_iota(g, STK_I64, 2, (int64_t[]){rows, 1}, 0);
    stk_val c = stk_g_iota(g, STK_I64, 2, (int64_t[]){1, columns}, 1);
    return stk_g_cast(g, stk_g_eq(g, r, c), dtype);
}

/* ---- products of vectors -------------------------------------------------------------------------------------- */

stk_val stk_g_outer(stk_graph *g, stk_val a, stk_val b)
{
    if (!stk_graph_ok(g)) return 0;
    if (stk_g_rank(g, a) != 1 || stk_g_rank(g, b) != 1)
        return stk_g_fail(g, STK_ERR_SHAPE, "outer: needs two vectors; reshape them to one axis");
    return stk_g_mul(g, stk_g_expand_dims(g, a, 1), stk_g_expand_dims(g, b, 0));
}

/* With r(v) = (v1, v2, v0): a x b = r(a r(b) - r(a) b). */
stk_val stk_g_cross(stk_graph *g, stk_val a, stk_val b)
{
    if (!stk_graph_ok(g)) return 0;
    if (!stk_val_ok(g, a) || !stk_val_ok(g, b) || stk_g_dim(g, a, -1) != 3 ||
        stk_g_dim(g, b, -1) != 3)
        return stk_g_fail(g, STK_ERR_SHAPE,
                          "cross: the last axis of both operands must have size 3");
    stk_val left = stk_g_mul(g, a, stk_g_roll(g, b, -1, -1)),
            right = stk_g_mul(g, stk_g_roll(g, a, -1, -1), b);
    return stk_g_roll(g, stk_g_sub(g, left, right), -1, -1);
}
