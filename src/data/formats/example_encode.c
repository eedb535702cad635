/* Writing Examples: sizes first, then the bytes into one block of exactly that size.
 *
 * Names are sorted and numbers packed, which is what TensorFlow writes when asked for deterministic
 * output: equal data give equal bytes in both. */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/tensor.h"
#include "data/formats/wire.h"
#include "stoker/records.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES_LIST = 1, FLOAT_LIST = 2, INT64_LIST = 3 };

/* Elements [first, first + count) of a dense tensor, as one Feature. */
typedef struct piece {
    const stk_tensor *tensor;
    int64_t first, count;
} piece;

static int list_kind(const stk_tensor *t)
{
    char kind = stk_dtype_kind(t->dtype);
    return kind == 'S' ? BYTES_LIST : kind == 'F' ? FLOAT_LIST : INT64_LIST;
}

static size_t field_size(size_t inside) { return 1 + stk_wire_varint_size(inside) + inside; }

static uint8_t *put_field(uint8_t *to, unsigned number, size_t inside)
{
    *to++ = (uint8_t)(number << 3 | STK_WIRE_BYTES);
    return stk_wire_put(to, inside);
}

static const char *element(const piece *p, int64_t i)
{
    return (const char *)p->tensor->data + (p->first + i) * stk_dtype_size(p->tensor->dtype);
}

static size_t packed_size(const piece *p, int kind)
{
    if (kind == FLOAT_LIST) return (size_t)p->count * 4;
    size_t size = 0;
    for (int64_t i = 0; i < p->count; i++)
        size += stk_wire_varint_size((uint64_t)stk_load_i64(p->tensor->dtype, element(p, i)));
    return size;
}

static size_t list_size(const piece *p)
{
    int kind = list_kind(p->tensor);
    if (kind != BYTES_LIST) {
        size_t packed = packed_size(p, kind);
        return packed ? field_size(packed) : 0;
    }
    size_t size = 0;
    for (int64_t i = 0; i < p->count; i++)
        size += field_size((size_t)((const stk_string *)(const void *)element(p, i))->size);
    return size;
}

static uint8_t *put_numbers(uint8_t *to, const piece *p, int kind)
{
    size_t packed = packed_size(p, kind);
    if (!packed) return to;
    to = put_field(to, 1, packed);
    for (int64_t i = 0; i < p->count; i++) {
        if (kind == INT64_LIST) {
            to = stk_wire_put(to, (uint64_t)stk_load_i64(p->tensor->dtype, element(p, i)));
            continue;
        }
        float value = (float)stk_load_f64(p->tensor->dtype, element(p, i));
        uint32_t bits;
        memcpy(&bits, &value, 4);
        for (int k = 0; k < 4; k++) *to++ = (uint8_t)(bits >> (8 * k));
    }
    return to;
}

static uint8_t *put_list(uint8_t *to, const piece *p)
{
    int kind = list_kind(p->tensor);
    if (kind != BYTES_LIST) return put_numbers(to, p, kind);
    for (int64_t i = 0; i < p->count; i++) {
        const stk_string *s = (const stk_string *)(const void *)element(p, i);
        to = put_field(to, 1, (size_t)s->size);
        if (s->size) memcpy(to, s->data, (size_t)s->size);
        to += s->size;
    }
    return to;
}

static size_t feature_size(const piece *p) { return field_size(list_size(p)); }
static uint8_t *put_feature(uint8_t *to, const piece *p)
{
    return put_list(put_field(to, (unsigned)list_kind(p->tensor), list_size(p)), p);
}

/* ---- maps of features --------------------------------------------------------------------------- */

/* A sorted copy of the given tensors, dense. */
typedef struct entries {
    int32_t count;
    stk_named_tensor *item;
    stk_tensor **dense;
    bool lists; /* first index = one feature */
} entries;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const stk_named_tensor *)a)->name, ((const stk_named_tensor *)b)->name);
}

static void entries_free(entries *e)
{
    for (int32_t i = 0; e->dense && i < e->count; i++) stk_tensor_release(e->dense[i]);
    stk_free(e->dense);
    stk_free(e->item);
}

static stk_status entries_make(int32_t count, const stk_named_tensor *given, bool lists, entries *e,
                               stk_error *err)
{
    *e = (entries){.lists = lists};
    if (count < 0 || (count && !given))
        return stk_fail(err, STK_ERR_ARGUMENT, "example: %d features at NULL", count);
    e->item = stk_calloc((size_t)count, sizeof *e->item);
    e->dense = stk_calloc((size_t)count, sizeof(stk_tensor *));
    if (!e->item || !e->dense)
        return stk_fail_memory(err, "example", (size_t)count * sizeof *e->item);
    if (count) memcpy(e->item, given, (size_t)count * sizeof *given);
    for (int32_t i = 0; i < count; i++)
        if (!given[i].name || !given[i].tensor)
            return stk_fail(err, STK_ERR_ARGUMENT, "example: feature %d has no name or tensor", i);
    qsort(e->item, (size_t)count, sizeof *e->item, by_name);
    for (int32_t i = 0; i < count; i++) {
        stk_tensor *t = (stk_tensor *)(uintptr_t)e->item[i].tensor;
        if (i && strcmp(e->item[i].name, e->item[i - 1].name) == 0)
            return stk_fail(err, STK_ERR_ARGUMENT, "example: two features are named \"%s\"",
                            e->item[i].name);
        if (lists && t->rank < 1)
            return stk_fail(err, STK_ERR_SHAPE,
                            "example: feature list \"%s\" is a scalar; its first axis has to count "
                            "the steps",
                            e->item[i].name);
        STK_TRY(stk_tensor_dense(t, &e->dense[i], err));
        e->item[i].tensor = e->dense[i];
        e->count = i + 1;
    }
    return STK_OK;
}

/* Step s of the list, or everything. */
static piece piece_of(const entries *e, int32_t i, int64_t step)
{
    const stk_tensor *t = e->item[i].tensor;
    int64_t n = stk_tensor_count(t);
    if (!e->lists) return (piece){t, 0, n};
    int64_t each = t->shape[0] ? n / t->shape[0] : 0;
    return (piece){t, step * each, each};
}
static int64_t steps_of(const entries *e, int32_t i)
{
    return e->lists ? e->item[i].tensor->shape[0] : 1;
}

/* Size of the Feature or FeatureList message. */
static size_t value_size(const entries *e, int32_t i)
{
    size_t size = 0;
    for (int64_t s = 0; s < steps_of(e, i); s++) {
        piece p = piece_of(e, i, s);
        size += e->lists ? field_size(feature_size(&p)) : feature_size(&p);
    }
    return size;
}

static size_t entry_size(const entries *e, int32_t i)
{
    return field_size(strlen(e->item[i].name)) + field_size(value_size(e, i));
}

static size_t map_size(const entries *e)
{
    size_t size = 0;
    for (int32_t i = 0; i < e->count; i++) size += field_size(entry_size(e, i));
    return size;
}

static uint8_t *put_map(uint8_t *to, const entries *e)
{
    for (int32_t i = 0; i < e->count; i++) {
        size_t length = strlen(e->item[i].name);
        to = put_field(to, 1, entry_size(e, i));
        to = put_field(to, 1, length);
        memcpy(to, e->item[i].name, length);
        to = put_field(to + length, 2, value_size(e, i));
        for (int64_t s = 0; s < steps_of(e, i); s++) {
            piece p = piece_of(e, i, s);
            if (e->lists) to = put_field(to, 1, feature_size(&p));
            to = put_feature(to, &p);
        }
    }
    return to;
}

/* maps[0] is field 1, maps[1] field 2. An empty map of two is left out. */
static stk_status encode(const entries *maps, int count, char **bytes, size_t *size, stk_error *err)
{
    size_t total = 0;
    for (int i = 0; i < count; i++)
        if (count == 1 || maps[i].count) total += field_size(map_size(&maps[i]));
    uint8_t *block = stk_malloc(total + 1), *to = block;
    if (!block) return stk_fail_memory(err, "encoded example", total);
    for (int i = 0; i < count; i++) {
        if (count == 2 && !maps[i].count) continue;
        to = put_field(to, (unsigned)i + 1, map_size(&maps[i]));
        to = put_map(to, &maps[i]);
    }
    *bytes = (char *)block;
    *size = total;
    return STK_OK;
}

stk_status stk_example_encode(int32_t count, const stk_named_tensor *features, char **bytes,
                              size_t *size, stk_error *err)
{
    entries e;
    *bytes = NULL;
    stk_status status = entries_make(count, features, false, &e, err);
    if (status == STK_OK) status = encode(&e, 1, bytes, size, err);
    entries_free(&e);
    return status;
}

stk_status stk_sequence_example_encode(int32_t contexts, const stk_named_tensor *context,
                                       int32_t lists, const stk_named_tensor *feature_lists,
                                       char **bytes, size_t *size, stk_error *err)
{
    entries e[2] = {{0}};
    *bytes = NULL;
    stk_status status = entries_make(contexts, context, false, &e[0], err);
    if (status == STK_OK) status = entries_make(lists, feature_lists, true, &e[1], err);
    if (status == STK_OK) status = encode(e, 2, bytes, size, err);
    entries_free(&e[0]);
    entries_free(&e[1]);
    return status;
}

void stk_bytes_free(void *bytes) { stk_free(bytes); }
