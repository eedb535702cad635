/* Elements: arrays of handles, rows of batches, stacking. */
#include "base/tensor.h"
#include "data/core/run.h"

#include "base/dtype.h"

#include <string.h>

stk_tensor **stk_parts_new(int64_t n) { return stk_calloc((size_t)n + 1, sizeof(stk_tensor *)); }

void stk_parts_release(int64_t n, stk_tensor **parts)
{
    for (int64_t i = 0; parts && i < n; i++) {
        stk_tensor_release(parts[i]);
        parts[i] = NULL;
    }
}

void stk_elements_free(int64_t n, stk_tensor **parts)
{
    stk_parts_release(n, parts);
    stk_free(parts);
}

stk_status stk_slot_new(stk_run *run, stk_dtype dtype, int32_t rank, const int64_t *shape,
                        stk_tensor **out, stk_error *err)
{
    return stk_slab_take(run->slab, dtype, rank, shape, out, err);
}

stk_status stk_slots_new(stk_run *run, const stk_schema *schema, int64_t rows, stk_tensor **out,
                         stk_error *err)
{
    int lead = rows >= 0;
    for (int32_t i = 0; i < schema->n; i++) {
        const stk_field *f = &schema->fields[i];
        int64_t shape[STK_MAX_RANK + 1] = {rows};
        for (int32_t k = 0; k < f->rank; k++) shape[k + lead] = f->shape[k];
        stk_status status =
            f->rank + lead > STK_MAX_RANK
                ? stk_fail(err, STK_ERR_SHAPE, "batch: part %d has too many axes", (int)i)
                : stk_slot_new(run, f->dtype, f->rank + lead, shape, &out[i], err);
        if (status != STK_OK) {
            stk_parts_release(i, out);
            return status;
        }
    }
    return STK_OK;
}

void stk_row_view(stk_tensor *slot, int64_t row, stk_tensor *view)
{
    view->dtype = slot->dtype;
    view->rank = slot->rank - 1;
    for (int i = 1; i < slot->rank; i++) {
        view->shape[i - 1] = slot->shape[i];
        view->stride[i - 1] = slot->stride[i];
    }
    view->data = (char *)slot->data + row * slot->stride[0] * stk_dtype_size(slot->dtype);
    view->buffer = slot->buffer;
    view->refs = 1;
    view->inside = true;
}

stk_status stk_slot_put(const char *who, stk_tensor *slot, int64_t row, const stk_tensor *part,
                        stk_error *err)
{
    stk_tensor view;
    stk_row_view(slot, row, &view);
    bool same = part->dtype == view.dtype && part->rank == view.rank;
    for (int i = 0; same && i < part->rank; i++) same = part->shape[i] == view.shape[i];
    if (!same)
        return stk_fail(
            err, part->dtype == view.dtype ? STK_ERR_SHAPE : STK_ERR_DTYPE,
            "%s: element %lld of the batch is %s, the first was %s; use padded_batch, or "
            "resize them in a map",
            who, (long long)row, STK_TENSOR_TEXT(part), STK_TENSOR_TEXT(&view));
    if (stk_tensor_is_dense(part)) {
        memcpy(view.data, part->data, (size_t)stk_tensor_bytes(part));
        return STK_OK;
    }
    return stk_tensor_copy(&view, part, err);
}

/* Strings point into their tensor's own memory, so a batch of them is laid out anew. */
static stk_status stack_strings(const char *who, int32_t n, int64_t count, stk_tensor *const *parts,
                                stk_tensor **out, stk_error *err)
{
    const stk_tensor *first = parts[0];
    if (first->rank == STK_MAX_RANK)
        return stk_fail(err, STK_ERR_SHAPE, "%s: %s has too many axes", who,
                        STK_TENSOR_TEXT(first));
    int64_t each = stk_tensor_count(first), shape[STK_MAX_RANK] = {count}, total;
    for (int i = 0; i < first->rank; i++) shape[i + 1] = first->shape[i];
    if (!stk_mul_i64(each, count, &total)) total = INT64_MAX / 32;
    stk_string *items = stk_calloc((size_t)total + 1, sizeof *items);
    if (!items) return stk_fail_memory(err, who, (size_t)total * sizeof *items);
    stk_status status = STK_OK;
    for (int64_t e = 0; e < count && status == STK_OK; e++) {
        const stk_tensor *part = parts[e * n];
        bool same = part->rank == first->rank && part->dtype == STK_STRING;
        for (int i = 0; same && i < part->rank; i++) same = part->shape[i] == first->shape[i];
        if (!same)
            status =
                stk_fail(err, STK_ERR_SHAPE,
                         "%s: element %lld of the batch is %s, the first was %s; use padded_batch",
                         who, (long long)e, STK_TENSOR_TEXT(part), STK_TENSOR_TEXT(first));
        for (int64_t k = 0; k < each && status == STK_OK; k++)
            items[e * each + k] = *(const stk_string *)stk_tensor_address(part, k);
    }
    if (status == STK_OK) status = stk_tensor_strings(first->rank + 1, shape, items, out, err);
    stk_free(items);
    return status;
}

static stk_status stack_part(stk_run *run, const char *who, int32_t n, int64_t count,
                             stk_tensor *const *parts, stk_tensor **out, stk_error *err)
{
    const stk_tensor *first = parts[0];
    if (first->dtype == STK_STRING) return stack_strings(who, n, count, parts, out, err);
    if (first->rank == STK_MAX_RANK)
        return stk_fail(err, STK_ERR_SHAPE, "%s: %s has too many axes", who,
                        STK_TENSOR_TEXT(first));
    int64_t shape[STK_MAX_RANK] = {count};
    for (int i = 0; i < first->rank; i++) shape[i + 1] = first->shape[i];
    stk_tensor *slot = NULL;
    STK_TRY(stk_slot_new(run, first->dtype, first->rank + 1, shape, &slot, err));
    for (int64_t e = 0; e < count; e++) {
        stk_status status = stk_slot_put(who, slot, e, parts[e * n], err);
        if (status != STK_OK) {
            stk_tensor_release(slot);
            return status;
        }
    }
    *out = slot;
    return STK_OK;
}

stk_status stk_stack(stk_run *run, const char *who, int32_t n, int64_t count,
                     stk_tensor *const *parts, stk_tensor **out, stk_error *err)
{
    for (int32_t i = 0; i < n; i++) {
        out[i] = NULL;
        stk_status status = stack_part(run, who, n, count, parts + i, &out[i], err);
        if (status != STK_OK) {
            stk_parts_release(i, out);
            return status;
        }
    }
    return STK_OK;
}
