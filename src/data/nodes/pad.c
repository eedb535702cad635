/* Padding: the largest size of each axis, a batch full of the padding value, and every element in its corner. */
#include "data/nodes/pad.h"

#include "base/dtype.h"
#include "base/tensor.h"

#include <string.h>

stk_status stk_pads_make(const char *who, const stk_schema *schema,
                         const int64_t (*shapes)[STK_MAX_RANK], const double *values, stk_pads *out,
                         stk_error *err)
{
    *out = (stk_pads){.n = schema->n};
    out->fields = stk_calloc((size_t)schema->n + 1, sizeof *out->fields);
    out->values = stk_calloc((size_t)schema->n + 1, sizeof *out->values);
    if (!out->fields || !out->values) return stk_fail_memory(err, who, 64);
    for (int32_t i = 0; i < schema->n; i++) {
        stk_field *f = &out->fields[i];
        *f = schema->fields[i];
        f->name = NULL;
        if (values) out->values[i] = values[i];
        for (int32_t k = 0; shapes && k < f->rank; k++) {
            if (shapes[i][k] >= 0 && f->shape[k] > shapes[i][k])
                return stk_fail(
                    err, STK_ERR_SHAPE,
                    "%s: part %d has %lld along axis %d and is to be padded to %lld; padding "
                    "never cuts",
                    who, (int)i, (long long)f->shape[k], (int)k, (long long)shapes[i][k]);
            f->shape[k] = shapes[i][k];
        }
    }
    return STK_OK;
}

void stk_pads_release(stk_pads *pads)
{
    stk_free(pads->fields);
    stk_free(pads->values);
    *pads = (stk_pads){0};
}

/* Shape of the batch of one part, [count, largest...]. */
static stk_status batch_shape(const char *who, const stk_pads *pads, int32_t part, int64_t count,
                              stk_tensor *const *parts, int64_t *shape, stk_error *err)
{
    const stk_tensor *first = parts[part];
    const stk_field *f = &pads->fields[part];
    shape[0] = count;
    for (int i = 0; i < first->rank; i++) shape[i + 1] = f->rank < 0 ? -1 : f->shape[i];
    for (int64_t e = 0; e < count; e++) {
        const stk_tensor *t = parts[e * pads->n + part];
        if (t->rank != first->rank || t->rank == STK_MAX_RANK || t->dtype != first->dtype)
            return stk_fail(err, STK_ERR_SHAPE,
                            "%s: part %d is %s in one element and %s in another", who, (int)part,
                            STK_TENSOR_TEXT(first), STK_TENSOR_TEXT(t));
        for (int i = 0; i < t->rank; i++) {
            bool given = f->rank >= 0 && f->shape[i] >= 0;
            if (given && t->shape[i] > f->shape[i])
                return stk_fail(
                    err, STK_ERR_SHAPE,
                    "%s: part %d is %s, which is larger than the padded size %lld of axis %d; "
                    "raise it or use -1",
                    who, (int)part, STK_TENSOR_TEXT(t), (long long)f->shape[i], i);
            if (!given && t->shape[i] > shape[i + 1]) shape[i + 1] = t->shape[i];
        }
    }
    return STK_OK;
}

static stk_status pad_strings(int64_t count, int32_t n, stk_tensor *const *parts, int32_t rank,
                              const int64_t *shape, stk_tensor **out, stk_error *err)
{
    int64_t total = 1, each = 1;
    for (int i = 0; i < rank; i++) {
        if (!stk_mul_i64(total, shape[i], &total))
            return stk_fail_memory(err, "padded_batch", SIZE_MAX);
        if (i) each *= shape[i];
    }
    stk_string *items = stk_calloc((size_t)total + 1, sizeof *items);
    if (!items) return stk_fail_memory(err, "padded_batch", (size_t)total * sizeof *items);
    for (int64_t i = 0; i < total; i++) items[i].data = "";
    for (int64_t e = 0; e < count; e++) {
        const stk_tensor *t = parts[e * n];
        for (int64_t k = 0; k < stk_tensor_count(t); k++) {
            int64_t rest = k, at = 0, step = 1; /* place k of the element in the padded row */
            for (int i = t->rank - 1; i >= 0; i--) {
                at += rest % t->shape[i] * step;
                rest /= t->shape[i];
                step *= shape[i + 1];
            }
            items[e * each + at] = *(const stk_string *)stk_tensor_address(t, k);
        }
    }
    stk_status status = stk_tensor_strings(rank, shape, items, out, err);
    stk_free(items);
    return status;
}

static void fill(stk_tensor *t, double value)
{
    size_t size = (size_t)stk_dtype_size(t->dtype), n = (size_t)stk_tensor_count(t);
    char item[16] = {0};
    stk_store_f64(t->dtype, item, value);
    if (value == 0)
        memset(t->data, 0, n * size);
    else
        for (size_t i = 0; i < n; i++) memcpy((char *)t->data + i * size, item, size);
}

static stk_status pad_part(stk_run *run, const char *who, const stk_pads *pads, int32_t part,
                           int64_t count, stk_tensor *const *parts, stk_tensor **out,
                           stk_error *err)
{
    const stk_tensor *first = parts[part];
    int64_t shape[STK_MAX_RANK + 1];
    STK_TRY(batch_shape(who, pads, part, count, parts, shape, err));
    if (first->dtype == STK_STRING)
        return pad_strings(count, pads->n, parts + part, first->rank + 1, shape, out, err);
    stk_tensor *slot = NULL;
    STK_TRY(stk_slot_new(run, first->dtype, first->rank + 1, shape, &slot, err));
    bool even = true;
    for (int64_t e = 0; e < count && even; e++)
        for (int i = 0; i < first->rank; i++)
            even &= parts[e * pads->n + part]->shape[i] == shape[i + 1];
    if (!even) fill(slot, pads->values[part]);
    for (int64_t e = 0; e < count; e++) {
        const stk_tensor *t = parts[e * pads->n + part];
        stk_tensor corner;
        stk_row_view(slot, e, &corner);
        for (int i = 0; i < t->rank; i++) corner.shape[i] = t->shape[i];
        stk_status status = stk_tensor_count(t) ? stk_tensor_copy(&corner, t, err) : STK_OK;
        if (status != STK_OK) {
            stk_tensor_release(slot);
            return status;
        }
    }
    *out = slot;
    return STK_OK;
}

stk_status stk_pad_stack(stk_run *run, const char *who, const stk_pads *pads, int64_t count,
                         stk_tensor *const *parts, stk_tensor **out, stk_error *err)
{
    for (int32_t i = 0; i < pads->n; i++) {
        out[i] = NULL;
        stk_status status = pad_part(run, who, pads, i, count, parts, &out[i], err);
        if (status != STK_OK) {
            stk_parts_release(i, out);
            return status;
        }
    }
    return STK_OK;
}
