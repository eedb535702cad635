/* States: growing, and reading back without trust. */
#include "data/core/state.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/tensor.h"
#include "data/core/nested.h"

#include <string.h>

static uint8_t *room(stk_state *s, size_t more)
{
    size_t need, padded = (more + 7) / 8 * 8;
    if (s->no_memory || padded < more || !stk_add_size(s->size, padded, &need)) {
        s->no_memory = true;
        return NULL;
    }
    if (need > s->capacity) {
        size_t larger = need > 2 * s->capacity ? need : 2 * s->capacity;
        if (larger < 64) larger = 64;
        uint8_t *grown = stk_realloc(s->data, s->size, larger);
        if (!grown) {
            s->no_memory = true;
            return NULL;
        }
        s->data = grown;
        s->capacity = larger;
    }
    uint8_t *at = s->data + s->size;
    if (padded > more) memset(at + padded - 8, 0, 8);
    s->size = need;
    return at;
}

void stk_state_put(stk_state *s, int64_t value)
{
    uint8_t *at = room(s, sizeof value);
    if (at) memcpy(at, &value, sizeof value);
}

void stk_state_put_blob(stk_state *s, const void *data, size_t size)
{
    stk_state_put(s, (int64_t)size);
    uint8_t *at = size ? room(s, size) : NULL;
    if (at) memcpy(at, data, size);
}

enum { DATASET = -1 }; /* in place of a dtype */

static void put_tensor(stk_state *s, stk_tensor *t)
{
    if (stk_tensor_dataset(t)) {
        stk_state_put(s, DATASET);
        stk_nested_save(t, s);
        return;
    }
    stk_tensor *dense = NULL;
    if (stk_tensor_dense(t, &dense, NULL) != STK_OK) {
        s->no_memory = true;
        return;
    }
    stk_state_put(s, t->dtype);
    stk_state_put(s, t->rank);
    for (int i = 0; i < t->rank; i++) stk_state_put(s, t->shape[i]);
    if (t->dtype == STK_STRING) {
        const stk_string *items = dense->data;
        for (int64_t i = 0; i < stk_tensor_count(t); i++)
            stk_state_put_blob(s, items[i].data, (size_t)items[i].size);
    } else {
        stk_state_put_blob(s, dense->data, (size_t)stk_tensor_bytes(dense));
    }
    stk_tensor_release(dense);
}

void stk_state_put_parts(stk_state *s, int32_t n, stk_tensor *const *parts)
{
    for (int32_t i = 0; i < n; i++) put_tensor(s, parts[i]);
}

int64_t stk_state_get(stk_state *s)
{
    int64_t value = 0;
    if (s->broken || s->size - s->at < sizeof value) {
        s->broken = true;
        return 0;
    }
    memcpy(&value, s->data + s->at, sizeof value);
    s->at += sizeof value;
    return value;
}

int64_t stk_state_get_in(stk_state *s, int64_t low, int64_t high)
{
    int64_t value = stk_state_get(s);
    if (!s->broken && value >= low && value <= high) return value;
    s->broken = true;
    return low;
}

const void *stk_state_get_blob(stk_state *s, size_t *size)
{
    int64_t length = stk_state_get_in(s, 0, (int64_t)(s->size - s->at));
    size_t padded = ((size_t)length + 7) / 8 * 8;
    *size = 0;
    if (s->broken || s->size - s->at < padded) {
        s->broken = true;
        return NULL;
    }
    const void *data = s->data + s->at;
    s->at += padded;
    *size = (size_t)length;
    return data;
}

static stk_status get_strings(stk_state *s, int32_t rank, const int64_t *shape, int64_t count,
                              stk_tensor **out, stk_error *err)
{
    if (count > (int64_t)(s->size - s->at) / 8) s->broken = true;
    if (s->broken) return stk_state_status(s, err);
    stk_string *items = stk_calloc((size_t)count, sizeof *items);
    if (!items) return stk_fail_memory(err, "restoring a state", (size_t)count * sizeof *items);
    for (int64_t i = 0; i < count; i++) {
        size_t size;
        items[i].data = stk_state_get_blob(s, &size);
        items[i].size = (int64_t)size;
    }
    stk_status status = stk_state_status(s, err);
    if (status == STK_OK) status = stk_tensor_strings(rank, shape, items, out, err);
    stk_free(items);
    return status;
}

static stk_status get_tensor(stk_state *s, stk_tensor **out, stk_error *err)
{
    int64_t kind = stk_state_get_in(s, DATASET, STK_DTYPE_COUNT - 1);
    if (kind == DATASET) {
        s->broken |= s->inside;
        s->inside = true;
        stk_status status = stk_nested_restore(s, out, err);
        s->inside = false;
        return status;
    }
    stk_dtype dtype = (stk_dtype)kind;
    int32_t rank = (int32_t)stk_state_get_in(s, 0, STK_MAX_RANK);
    int64_t shape[STK_MAX_RANK] = {0}, count = 1;
    for (int i = 0; i < rank; i++) {
        shape[i] = stk_state_get_in(s, 0, INT64_MAX);
        if (!stk_mul_i64(count, shape[i], &count)) s->broken = true;
    }
    STK_TRY(stk_state_status(s, err));
    STK_TRY(stk_shape_check("restoring a state", rank, shape, stk_dtype_size(dtype), err));
    if (dtype == STK_STRING) return get_strings(s, rank, shape, count, out, err);
    size_t size;
    const void *data = stk_state_get_blob(s, &size);
    if ((int64_t)size != count * stk_dtype_size(dtype)) s->broken = true;
    STK_TRY(stk_state_status(s, err));
    return stk_tensor_from(dtype, rank, shape, data, out, err);
}

stk_status stk_state_get_parts(stk_state *s, int32_t n, stk_tensor **parts, stk_error *err)
{
    for (int32_t i = 0; i < n; i++) {
        parts[i] = NULL;
        stk_status status = get_tensor(s, &parts[i], err);
        if (status == STK_OK) continue;
        while (i-- > 0) {
            stk_tensor_release(parts[i]);
            parts[i] = NULL;
        }
        return status;
    }
    return STK_OK;
}

stk_status stk_state_status(const stk_state *s, stk_error *err)
{
    if (s->no_memory) return stk_fail_memory(err, "state of a stream", s->size);
    if (s->broken)
        return stk_fail(
            err, STK_ERR_FORMAT,
            "state of a stream: the bytes are damaged at offset %zu of %zu; restore from "
            "another checkpoint",
            s->at, s->size);
    return STK_OK;
}

stk_state stk_state_reader(const void *data, size_t size)
{
    return (stk_state){.data = (uint8_t *)(uintptr_t)data, .size = size};
}

void stk_state_release(stk_state *s)
{
    if (s->capacity) stk_free(s->data);
    *s = (stk_state){0};
}
