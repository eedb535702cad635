/* Shapes: checking, broadcasting, printing. No memory is touched beyond the caller's. */
#include "base/shape.h"

#include <stdio.h>
#include <string.h>

bool stk_shape_equal(const stk_shape *a, const stk_shape *b)
{
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i]) return false;
    return true;
}

stk_status stk_shape_check(const char *who, int32_t rank, const int64_t *dims, int64_t item_size,
                           stk_error *err)
{
    if (rank < 0 || rank > STK_MAX_RANK)
        return stk_fail(err, STK_ERR_SHAPE,
                        "%s: rank %d is outside 0..%d; merge some axes with a reshape", who,
                        (int)rank, STK_MAX_RANK);
    if (rank > 0 && !dims)
        return stk_fail(err, STK_ERR_ARGUMENT, "%s: shape is NULL but rank is %d", who, (int)rank);
    for (int i = 0; i < rank; i++)
        if (dims[i] < 0)
            return stk_fail(err, STK_ERR_SHAPE,
                            "%s: size %lld of axis %d is negative; sizes are 0 or more", who,
                            (long long)dims[i], i);
    /* The product is taken over the non-zero sizes: an empty array of shape [0, huge, huge] is
     * refused too, because its strides would not fit. */
    int64_t bytes = item_size > 0 ? item_size : 1;
    for (int i = 0; i < rank; i++) {
        if (dims[i] == 0 || stk_mul_i64(bytes, dims[i], &bytes)) continue;
        stk_shape shape = {.rank = rank};
        memcpy(shape.dim, dims, (size_t)rank * sizeof *dims);
        return stk_fail(err, STK_ERR_RANGE,
                        "%s: shape %s times %lld bytes per element does not fit in 63 bits; use a "
                        "smaller shape",
                        who, STK_SHAPE_TEXT(&shape), (long long)item_size);
    }
    return STK_OK;
}

void stk_shape_strides(const stk_shape *s, int64_t *stride)
{
    int64_t step = 1;
    for (int i = s->rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= s->dim[i] > 0 ? s->dim[i] : 1;
    }
}

bool stk_shape_broadcast(const stk_shape *a, const stk_shape *b, stk_shape *out)
{
    stk_shape both = {.rank = a->rank > b->rank ? a->rank : b->rank};
    for (int i = 1; i <= both.rank; i++) { /* axes are matched from the last one backwards */
        int64_t m = i <= a->rank ? a->dim[a->rank - i] : 1;
        int64_t n = i <= b->rank ? b->dim[b->rank - i] : 1;
        if (m != n && m != 1 && n != 1) return false;
        both.dim[both.rank - i] = m == 1 ? n : m;
    }
    *out = both;
    return true;
}

char *stk_shape_text(const stk_shape *s, char *text, size_t size)
{
    if (size == 0) return text;
    size_t used = 0;
    text[0] = 0;
    for (int i = -1; i <= s->rank; i++) {
        int n = i < 0          ? snprintf(text + used, size - used, "[")
                : i == s->rank ? snprintf(text + used, size - used, "]")
                               : snprintf(text + used, size - used, i ? ",%lld" : "%lld",
                                          (long long)s->dim[i]);
        if (n < 0 || (size_t)n >= size - used) break; /* truncated, terminated by snprintf */
        used += (size_t)n;
    }
    return text;
}
