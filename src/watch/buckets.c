/* buckets.c - batches of ever new shapes, padded to few: what that would bring is worth measuring. */
#include "watch/job_train.h"

#include "base/tensor.h"

#include <string.h>

bool stk_shapes_vary(const stk_schema *schema)
{
    for (int32_t i = 0; i < schema->n; i++) {
        const stk_field *f = &schema->fields[i];
        if (f->rank < 0) return true;
        for (int32_t d = 1; d < f->rank; d++)
            if (f->shape[d] < 0) return true;
    }
    return false;
}

static int64_t power_above(int64_t n)
{
    int64_t p = 1;
    while (p < n) p *= 2;
    return p;
}

/* Rows of the last axis are copied as they are; where: the place of the row in both, in bytes. */
static void copy_rows(const stk_tensor *from, stk_tensor *to, int32_t axis, const char *source,
                      char *target, const int64_t *step_from, const int64_t *step_to)
{
    if (axis + 1 >= from->rank) {
        memcpy(target, source, (size_t)(from->shape[axis] * step_from[axis]));
        return;
    }
    for (int64_t i = 0; i < from->shape[axis]; i++)
        copy_rows(from, to, axis + 1, source + i * step_from[axis], target + i * step_to[axis],
                  step_from, step_to);
}

static void steps_of(const stk_tensor *t, int64_t *step)
{
    int64_t bytes = stk_dtype_size(t->dtype);
    for (int32_t d = t->rank - 1; d >= 0; d--) {
        step[d] = bytes;
        bytes *= t->shape[d];
    }
}

static stk_status pad(const stk_field *f, stk_tensor **part, stk_error *err)
{
    stk_tensor *from = *part, *to = NULL;
    int64_t shape[STK_MAX_RANK], step_from[STK_MAX_RANK], step_to[STK_MAX_RANK];
    bool differs = false;
    for (int32_t d = 0; d < from->rank; d++) {
        bool fixed = f->rank == from->rank && f->shape[d] >= 0;
        shape[d] = fixed ? from->shape[d] : power_above(from->shape[d]);
        differs |= shape[d] != from->shape[d];
    }
    if (!differs || from->dtype == STK_STRING) return STK_OK;
    STK_TRY(stk_tensor_new(from->dtype, from->rank, shape, &to, err));
    memset(to->data, 0, (size_t)stk_tensor_bytes(to));
    steps_of(from, step_from);
    steps_of(to, step_to);
    if (stk_tensor_count(from) > 0)
        copy_rows(from, to, 0, from->data, to->data, step_from, step_to);
    stk_tensor_release(from);
    *part = to;
    return STK_OK;
}

stk_status stk_pad_to_buckets(const stk_schema *schema, stk_tensor **parts, stk_error *err)
{
    for (int32_t i = 0; i < schema->n; i++) STK_TRY(pad(&schema->fields[i], &parts[i], err));
    return STK_OK;
}
