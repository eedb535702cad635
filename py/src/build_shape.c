/* Builders: shapes, slices, indices. */
#include "front.h"

#include <string.h>

#define BUILD(name) int32_t py_build_##name(py_build *b)
#define ONE(value)  return b->y[0] = (value), 1

/* A value of its own: tapes see it, and it can be on another device than x. */
BUILD(identity)
{
    int64_t dim[STK_MAX_RANK];
    int32_t rank = stk_g_rank(b->g, b->x[0]);
    for (int32_t i = 0; i < rank; i++) dim[i] = stk_g_dim(b->g, b->x[0], i);
    ONE(stk_g_reshape(b->g, b->x[0], rank, dim));
}

BUILD(reshape)
{
    int64_t n;
    const int64_t *shape = py_list(b, &n);
    ONE(stk_g_reshape(b->g, b->x[0], (int32_t)n, shape));
}

BUILD(transpose)
{
    int64_t n;
    int32_t perm[STK_MAX_RANK];
    const int64_t *list = py_list(b, &n);
    int32_t rank = stk_g_rank(b->g, b->x[0]);
    for (int64_t i = 0; i < n && i < STK_MAX_RANK; i++)
        perm[i] = (int32_t)(list[i] < 0 ? list[i] + rank : list[i]);
    ONE(stk_g_transpose(b->g, b->x[0], n < 0 ? NULL : perm));
}

BUILD(broadcast_to)
{
    int64_t n;
    const int64_t *shape = py_list(b, &n);
    ONE(stk_g_broadcast(b->g, b->x[0], (int32_t)n, shape));
}

BUILD(expand_dims) { ONE(stk_g_expand_dims(b->g, b->x[0], (int32_t)py_int(b))); }

/* All axes of size 1, or the given ones, last first. */
BUILD(squeeze)
{
    int64_t n, shape[STK_MAX_RANK];
    const int64_t *axes = py_list(b, &n);
    int32_t rank = stk_g_rank(b->g, b->x[0]), kept = 0;
    for (int32_t i = 0; i < rank; i++) {
        int64_t d = stk_g_dim(b->g, b->x[0], i);
        bool drop = n <= 0 && d == 1;
        for (int64_t k = 0; k < n; k++)
            if (axes[k] == i || axes[k] + rank == i) {
                if (d != 1) ONE(stk_g_squeeze(b->g, b->x[0], i)); /* says what is wrong */
                drop = true;
            }
        if (!drop) shape[kept++] = d;
    }
    ONE(stk_g_reshape(b->g, b->x[0], kept, shape));
}

BUILD(slice)
{
    int64_t n, m, size[STK_MAX_RANK], step[STK_MAX_RANK];
    const int64_t *begin = py_list(b, &n), *sizes = py_list(b, &m);
    for (int64_t i = 0; i < n && i < STK_MAX_RANK; i++) {
        size[i] = sizes[i] < 0 ? stk_g_dim(b->g, b->x[0], (int32_t)i) - begin[i] : sizes[i];
        step[i] = 1;
    }
    ONE(n > 0 ? stk_g_slice(b->g, b->x[0], begin, size, step) : b->x[0]);
}

BUILD(reverse)
{
    int64_t n;
    const int64_t *axes = py_list(b, &n);
    stk_val y = b->x[0];
    for (int64_t i = 0; i < n; i++) y = stk_g_reverse(b->g, y, (int32_t)axes[i]);
    ONE(y);
}

BUILD(pad_constant)
{
    int64_t n, m;
    const int64_t *low = py_list(b, &n), *high = py_list(b, &m);
    ONE(stk_g_pad(b->g, b->x[0], low, high, py_real(b)));
}
BUILD(pad_mode)
{
    int64_t n, m;
    const int64_t *low = py_list(b, &n), *high = py_list(b, &m);
    ONE(stk_g_pad_mode(b->g, b->x[0], low, high, (stk_pad_mode)py_int(b)));
}

BUILD(concat)
{
    int64_t n = py_int(b);
    ONE(stk_g_concat(b->g, (int32_t)n, b->x, (int32_t)py_int(b)));
}
BUILD(stack)
{
    int64_t n = py_int(b);
    ONE(stk_g_stack(b->g, (int32_t)n, b->x, (int32_t)py_int(b)));
}

BUILD(unstack)
{
    int64_t given = py_int(b), num = py_int(b);
    int32_t axis = (int32_t)py_int(b), rank = stk_g_rank(b->g, b->x[0]);
    if (axis < 0) axis += rank;
    int64_t n = stk_g_dim(b->g, b->x[0], axis);
    if (given && num != n) n = num;
    for (int32_t i = 0; i < n && i < PY_MOST_OUTPUTS; i++)
        b->y[i] = stk_g_squeeze(b->g, stk_g_slice_axis(b->g, b->x[0], axis, i, 1), axis);
    return (int32_t)n;
}

BUILD(split_sizes)
{
    int64_t n, at = 0;
    const int64_t *sizes = py_list(b, &n);
    int32_t axis = (int32_t)py_int(b);
    for (int64_t i = 0; i < n && i < PY_MOST_OUTPUTS; at += sizes[i++])
        b->y[i] = stk_g_slice_axis(b->g, b->x[0], axis, at, sizes[i]);
    return (int32_t)n;
}

BUILD(tile)
{
    int64_t n;
    const int64_t *times = py_list(b, &n);
    ONE(n > 0 ? stk_g_tile(b->g, b->x[0], times) : b->x[0]);
}

BUILD(roll)
{
    int64_t n, m;
    const int64_t *shift = py_list(b, &n), *axis = py_list(b, &m);
    stk_val y = b->x[0];
    for (int64_t i = 0; i < n && i < m; i++) y = stk_g_roll(b->g, y, shift[i], (int32_t)axis[i]);
    ONE(y);
}

BUILD(diag) { ONE(stk_g_diag(b->g, b->x[0])); }
BUILD(diag_part) { ONE(stk_g_diag_part(b->g, b->x[0])); }
BUILD(tril) { ONE(stk_g_tril(b->g, b->x[0], py_int(b))); }
BUILD(triu) { ONE(stk_g_triu(b->g, b->x[0], py_int(b))); }
BUILD(eye)
{
    int64_t rows = py_int(b), columns = py_int(b);
    ONE(stk_g_eye(b->g, (stk_dtype)py_int(b), rows, columns));
}
BUILD(fill_value)
{
    int64_t n;
    const int64_t *shape = py_list(b, &n);
    stk_dtype d = (stk_dtype)py_int(b);
    ONE(stk_g_fill(b->g, d, (int32_t)n, shape, py_real(b)));
}
BUILD(zeros_like) { ONE(stk_g_zeros_like(b->g, b->x[0])); }
BUILD(ones_like)
{
    int64_t shape[STK_MAX_RANK];
    int32_t rank = stk_g_rank(b->g, b->x[0]);
    for (int32_t i = 0; i < rank; i++) shape[i] = stk_g_dim(b->g, b->x[0], i);
    ONE(stk_g_fill(b->g, stk_g_dtype(b->g, b->x[0]), rank, shape, 1));
}
BUILD(iota)
{
    int64_t n;
    const int64_t *shape = py_list(b, &n);
    stk_dtype d = (stk_dtype)py_int(b);
    ONE(stk_g_iota(b->g, d, (int32_t)n, shape, (int32_t)py_int(b)));
}

/* ---- indices ------------------------------------------------------------------------------------------- */

/* Indices are int32 or int64 inside; narrower ones are widened. */
static stk_val index_of(stk_graph *g, stk_val v)
{
    stk_dtype d = stk_g_dtype(g, v);
    return d == STK_I32 || d == STK_I64 ? v : stk_g_cast(g, v, STK_I64);
}

BUILD(gather)
{
    int32_t axis = (int32_t)py_int(b), batch = (int32_t)py_int(b);
    ONE(stk_g_gather_batch(b->g, b->x[0], index_of(b->g, b->x[1]), axis, batch));
}

BUILD(_take_wrapped) /* negative indices count from the end */
{
    stk_graph *g = b->g;
    int32_t axis = (int32_t)py_int(b);
    stk_val i = index_of(g, b->x[1]);
    stk_dtype d = stk_g_dtype(g, i);
    stk_val n = stk_g_scalar(g, d, (double)stk_g_dim(g, b->x[0], axis));
    i = stk_g_select(g, stk_g_lt(g, i, stk_g_scalar(g, d, 0)), stk_g_add(g, i, n), i);
    ONE(stk_g_gather(g, b->x[0], i, axis));
}

BUILD(gather_nd)
{
    ONE(stk_g_gather_nd(b->g, b->x[0], index_of(b->g, b->x[1]), (int32_t)py_int(b)));
}
BUILD(scatter_add)
{
    ONE(stk_g_scatter_add(b->g, b->x[0], index_of(b->g, b->x[1]), b->x[2], (int32_t)py_int(b)));
}
BUILD(scatter_set)
{
    ONE(stk_g_scatter_set(b->g, b->x[0], index_of(b->g, b->x[1]), b->x[2], (int32_t)py_int(b)));
}
BUILD(tensor_scatter_nd_add)
{
    ONE(stk_g_scatter_nd_add(b->g, b->x[0], index_of(b->g, b->x[1]), b->x[2]));
}
BUILD(tensor_scatter_nd_update)
{
    ONE(stk_g_scatter_nd_set(b->g, b->x[0], index_of(b->g, b->x[1]), b->x[2]));
}
BUILD(scatter_nd)
{
    int64_t n;
    const int64_t *shape = py_list(b, &n);
    stk_val zeros = stk_g_fill(b->g, stk_g_dtype(b->g, b->x[1]), (int32_t)n, shape, 0);
    ONE(stk_g_scatter_nd_add(b->g, zeros, index_of(b->g, b->x[0]), b->x[1]));
}
BUILD(unsorted_segment_sum)
{
    ONE(stk_g_segment_sum(b->g, b->x[0], index_of(b->g, b->x[1]), py_int(b)));
}
BUILD(take_along_axis)
{
    ONE(stk_g_take_along(b->g, b->x[0], index_of(b->g, b->x[1]), (int32_t)py_int(b)));
}
BUILD(one_hot_values)
{
    int64_t depth = py_int(b);
    int32_t axis = (int32_t)py_int(b);
    double on = py_real(b), off = py_real(b);
    ONE(stk_g_one_hot(b->g, index_of(b->g, b->x[0]), depth, axis, (stk_dtype)py_int(b), on, off));
}
BUILD(sort_values)
{
    int32_t axis = (int32_t)py_int(b);
    ONE(stk_g_sort(b->g, b->x[0], axis, py_int(b)));
}
BUILD(argsort_values)
{
    int32_t axis = (int32_t)py_int(b);
    ONE(stk_g_argsort(b->g, b->x[0], axis, py_int(b)));
}
BUILD(top_k_values)
{
    b->y[0] = stk_g_top_k(b->g, b->x[0], py_int(b), -1, &b->y[1]);
    return 2;
}
