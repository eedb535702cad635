/* unbatch - the rows of each element one by one. rebatch is unbatch and batch. */
#include "base/tensor.h"
#include "data/core/node.h"

#include <string.h>

typedef struct splitting {
    stk_iter *in;
    stk_tensor **batch; /* all NULL: none */
    int64_t row, rows;
} splitting;

static stk_status open(stk_iter *it, stk_error *err)
{
    splitting *own = it->own;
    own->batch = stk_parts_new(it->stage->ds->schema->n);
    if (!own->batch) return stk_fail_memory(err, "unbatch", 64);
    return stk_iter_open(it->stage->in[0], it->epoch, &own->in, err);
}

/* Rows of the batch; all parts must agree. */
static stk_status count_rows(stk_iter *it, stk_error *err)
{
    splitting *own = it->own;
    own->row = own->rows = 0;
    for (int32_t i = 0; i < it->stage->ds->schema->n; i++) {
        const stk_tensor *t = own->batch[i], *first = own->batch[0];
        if (t->rank < 1 || t->shape[0] != first->shape[0])
            return stk_fail(err, STK_ERR_SHAPE,
                            "unbatch: part %d is %s, part 0 is %s; all need the same first size",
                            (int)i, STK_TENSOR_TEXT(t), STK_TENSOR_TEXT(first));
        own->rows = t->shape[0];
    }
    return STK_OK;
}

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    splitting *own = it->own;
    int32_t n = it->stage->ds->schema->n;
    while (own->row >= own->rows) {
        stk_parts_release(n, own->batch);
        stk_status status = stk_iter_next(own->in, own->batch, end, err);
        if (status != STK_OK || *end) return status;
        status = count_rows(it, err);
        if (status == STK_OK) continue;
        stk_parts_release(n, own->batch);
        own->rows = 0;
        return status;
    }
    for (int32_t i = 0; i < n; i++) {
        parts[i] = stk_tensor_view(own->batch[i]);
        if (!parts[i]) {
            stk_parts_release(i, parts);
            return stk_fail_memory(err, "unbatch", sizeof(stk_tensor));
        }
        stk_row_view(own->batch[i], own->row, parts[i]);
        parts[i]->inside = false;
    }
    own->row++;
    return STK_OK;
}

/* The batch itself is saved: it is small, and its input has moved on. */
static stk_status save(stk_iter *it, stk_state *out, stk_error *err)
{
    splitting *own = it->own;
    bool any = own->row < own->rows;
    stk_state_put(out, any ? own->row : 0);
    stk_state_put(out, any);
    if (any) stk_state_put_parts(out, it->stage->ds->schema->n, own->batch);
    return stk_iter_save(own->in, out, err);
}

static stk_status restore(stk_iter *it, stk_state *in, stk_error *err)
{
    splitting *own = it->own;
    int64_t row = stk_state_get_in(in, 0, INT64_MAX);
    bool any = stk_state_get_in(in, 0, 1);
    STK_TRY(stk_state_status(in, err));
    if (any) {
        STK_TRY(stk_state_get_parts(in, it->stage->ds->schema->n, own->batch, err));
        STK_TRY(count_rows(it, err));
        own->row = row;
    }
    return stk_iter_restore(own->in, in, err);
}

static void close(stk_iter *it)
{
    splitting *own = it->own;
    if (own->batch) stk_parts_release(it->stage->ds->schema->n, own->batch);
    stk_free(own->batch);
    stk_iter_close(own->in);
}

static const stk_walk walk = {sizeof(splitting), open, next, save, restore, close};

const stk_node_kind stk_node_unbatch = {
    .name = "unbatch", .walk = &walk, .steady = stk_always_steady, .passes = true};

stk_dataset *stk_data_unbatch(stk_dataset *in, stk_error *err)
{
    stk_dataset *ds = stk_dataset_make(&stk_node_unbatch, 1, &in, 1, err);
    if (!ds) return NULL;
    int32_t n = in->schema->n;
    stk_field *fields = stk_calloc((size_t)n + 1, sizeof *fields);
    stk_status status = fields ? stk_schema_tensors("unbatch", in->schema, err)
                               : stk_fail_memory(err, "unbatch", 64);
    int64_t rows = n && fields ? in->schema->fields[0].shape[0] : -1;
    for (int32_t i = 0; i < n && status == STK_OK; i++) {
        stk_field *f = &fields[i];
        *f = in->schema->fields[i];
        if (f->rank == 0)
            status = stk_fail(err, STK_ERR_SHAPE, "unbatch: part %d is a scalar and has no rows",
                              (int)i);
        if (f->rank <= 0) {
            rows = -1;
            continue;
        }
        if (f->shape[0] != rows) rows = -1;
        f->rank--;
        memmove(f->shape, f->shape + 1, (size_t)f->rank * sizeof *f->shape);
    }
    stk_schema *schema = NULL;
    if (status == STK_OK) status = stk_schema_new(n, fields, in->schema->structure, &schema, err);
    stk_free(fields);
    if (status == STK_OK) stk_dataset_set_schema(ds, schema);
    ds->random = false;
    ds->ahead = 0;
    bool known = rows >= 0 && in->cardinality >= 0;
    if (!known || !stk_mul_i64(rows, in->cardinality, &ds->cardinality))
        ds->cardinality = in->cardinality == STK_INFINITE && rows > 0 ? STK_INFINITE : STK_UNKNOWN;
    return stk_dataset_done(ds, status);
}

stk_dataset *stk_data_rebatch(stk_dataset *in, int64_t size, bool drop_remainder, stk_error *err)
{
    return stk_data_batch(stk_data_unbatch(in, err), size, drop_remainder, err);
}
