/* shape.h - sizes of an n-d array without its memory; what the graph and the kernels talk about. */
#ifndef STK_BASE_SHAPE_H
#define STK_BASE_SHAPE_H

#include "base/memory.h"
#include "stoker/tensor.h"

typedef struct stk_shape {
    int32_t rank;
    int64_t dim[STK_MAX_RANK];
} stk_shape;

/* Product of the sizes. Checked when the shape was made (stk_shape_check), so it cannot overflow
 * here. */
static inline int64_t stk_shape_count(const stk_shape *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->rank; i++) n *= s->dim[i];
    return n;
}

bool stk_shape_equal(const stk_shape *a, const stk_shape *b);
/* rank 0..8, sizes >= 0, product times element size fits in int64. */
stk_status stk_shape_check(const char *who, int32_t rank, const int64_t *dims, int64_t item_size,
                           stk_error *err);
void stk_shape_strides(const stk_shape *s, int64_t *stride); /* dense row-major */
/* numpy rule; false when they do not fit. */
bool stk_shape_broadcast(const stk_shape *a, const stk_shape *b, stk_shape *out);
/* "[2,3]" */
char *stk_shape_text(const stk_shape *s, char *text, size_t size);
/* Two rotating static-free helpers for messages: STK_SHAPE_TEXT(&s) lives until the end of the full
 * expression's block. */
#define STK_SHAPE_TEXT(s) stk_shape_text((s), (char[192]){0}, 192)

#endif
