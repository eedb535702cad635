/* memory - rows of tensors. A row is a view, a batch of neighbours too; scattered rows are gathered. */
#include "base/dtype.h"
#include "base/tensor.h"
#include "data/core/node.h"

#include <stdio.h>
#include <string.h>

typedef struct memory {
    int32_t n;
    bool rows; /* false: the tensors as one element */
    stk_tensor **tensors;
} memory;

static void drop(stk_dataset *ds)
{
    memory *c = ds->config;
    stk_parts_release(c->n, c->tensors);
    stk_free(c->tensors);
}

static void describe(const stk_dataset *ds, char *text, size_t size)
{
    int64_t bytes = 0;
    const memory *c = ds->config;
    for (int32_t i = 0; i < c->n; i++) bytes += stk_tensor_bytes(c->tensors[i]);
    snprintf(text, size, "%lld elements, %.1f MB", (long long)ds->cardinality, (double)bytes / 1e6);
}

static stk_status view(const memory *c, int64_t first, int64_t n, bool keep_axis,
                       stk_tensor **parts, stk_error *err)
{
    for (int32_t i = 0; i < c->n; i++) {
        stk_tensor *t = c->tensors[i], *v = stk_tensor_view(t);
        if (!v) {
            stk_parts_release(i, parts);
            return stk_fail_memory(err, "slices", sizeof *v);
        }
        if (keep_axis) {
            v->data = (char *)t->data + first * t->stride[0] * stk_dtype_size(t->dtype);
            v->shape[0] = n;
        } else if (c->rows) {
            stk_row_view(t, first, v);
            v->inside = false;
        }
        parts[i] = v;
    }
    return STK_OK;
}

static stk_status get(stk_stage *stage, uint64_t epoch, int64_t index, stk_tensor **parts,
                      stk_error *err)
{
    (void)epoch;
    return view(stage->ds->config, index, 1, false, parts, err);
}

static stk_status slice(stk_stage *stage, uint64_t epoch, int64_t first, int64_t n,
                        stk_tensor **parts, stk_error *err)
{
    (void)epoch;
    const memory *c = stage->ds->config;
    return c->rows ? view(c, first, n, true, parts, err) : STK_OK;
}

/* Rows of a fixed small size: one load, one store, and the misses of many rows overlap. */
#define GATHER(type)                                                                               \
    do {                                                                                           \
        type *to = (type *)out;                                                                    \
        const type *from = t->data;                                                                \
        for (int64_t i = 0; i < n; i++) to[i] = from[index[i]];                                    \
    } while (0)

static void gather(const stk_tensor *t, size_t bytes, int64_t n, const int64_t *index, char *out)
{
    switch (bytes) {
    case 1: GATHER(uint8_t); return;
    case 2: GATHER(uint16_t); return;
    case 4: GATHER(uint32_t); return;
    case 8: GATHER(uint64_t); return;
    default: break;
    }
    const char *from = t->data;
    enum { AHEAD = 8 };
    for (int64_t i = 0; i < n; i++) {
        if (i + AHEAD < n && bytes <= 256)
            __builtin_prefetch(from + (size_t)index[i + AHEAD] * bytes);
        memcpy(out + (size_t)i * bytes, from + (size_t)index[i] * bytes, bytes);
    }
}

static stk_status rows(stk_stage *stage, uint64_t epoch, int64_t n, const int64_t *index,
                       stk_tensor *const *slots, int64_t row, stk_error *err)
{
    (void)epoch;
    (void)err;
    const memory *c = stage->ds->config;
    for (int32_t i = 0; i < c->n; i++) {
        size_t bytes = (size_t)stk_field_bytes(&stage->ds->schema->fields[i]);
        gather(c->tensors[i], bytes, n, index, (char *)slots[i]->data + (size_t)row * bytes);
    }
    return STK_OK;
}

const stk_node_kind stk_node_memory = {.name = "memory",
                                       .drop = drop,
                                       .describe = describe,
                                       .get = get,
                                       .rows = rows,
                                       .slice = slice,
                                       .steady = stk_always_steady,
                                       .passes = true};

static stk_status fill(stk_dataset *ds, int32_t n, stk_tensor *const *tensors,
                       const char *const *names, const char *structure, stk_error *err)
{
    memory *c = ds->config;
    c->tensors = stk_parts_new(n);
    stk_field *fields = stk_calloc((size_t)n + 1, sizeof *fields);
    stk_status status = c->tensors && fields ? STK_OK : stk_fail_memory(err, "slices", 64);
    for (int32_t i = 0; i < n && status == STK_OK; i++) {
        stk_tensor *t = tensors[i];
        status = stk_tensor_check("slices", t, err);
        if (status != STK_OK) break;
        if (c->rows && (t->rank < 1 || t->shape[0] != tensors[0]->shape[0])) {
            status =
                stk_fail(err, STK_ERR_SHAPE,
                         "slices: tensor %d is %s, the first is %s; all need the same first size",
                         (int)i, STK_TENSOR_TEXT(t), STK_TENSOR_TEXT(tensors[0]));
            break;
        }
        int drop_axis = c->rows;
        fields[i] = (stk_field){
            .name = names ? names[i] : NULL, .dtype = t->dtype, .rank = t->rank - drop_axis};
        memcpy(fields[i].shape, t->shape + drop_axis, (size_t)fields[i].rank * sizeof(int64_t));
        status = stk_tensor_dense(t, &c->tensors[i], err);
        if (status == STK_OK) c->n = i + 1;
    }
    stk_schema *schema = NULL;
    if (status == STK_OK) status = stk_schema_new(n, fields, structure, &schema, err);
    if (status == STK_OK) stk_dataset_set_schema(ds, schema);
    stk_free(fields);
    return status;
}

static stk_dataset *make(int32_t n, stk_tensor *const *tensors, const char *const *names,
                         const char *structure, bool by_rows, stk_error *err)
{
    if (n < 1 || !tensors) {
        (void)stk_fail(err, STK_ERR_ARGUMENT, "slices: no tensors were given");
        return NULL;
    }
    stk_dataset *ds = stk_dataset_make(&stk_node_memory, 0, NULL, sizeof(memory), err);
    if (!ds) return NULL;
    ((memory *)ds->config)->rows = by_rows;
    stk_status status = fill(ds, n, tensors, names, structure, err);
    if (status == STK_OK) {
        ds->random = true;
        ds->cardinality = by_rows ? tensors[0]->shape[0] : 1;
    }
    return stk_dataset_done(ds, status);
}

stk_dataset *stk_data_slices(int32_t n, stk_tensor *const *tensors, const char *const *names,
                             const char *structure, stk_error *err)
{
    return make(n, tensors, names, structure, true, err);
}

stk_dataset *stk_data_tensors(int32_t n, stk_tensor *const *tensors, const char *const *names,
                              const char *structure, stk_error *err)
{
    return make(n, tensors, names, structure, false, err);
}
