/* Datasets as parts of elements. */
#include "data/core/nested.h"
#include "data/nodes/kinds.h"

#include "base/tensor.h"

#include <string.h>

/*     [stk_buffer | stk_tensor | stk_dataset *]     one block; the tensor lives inside */
typedef struct block {
    stk_buffer buffer;
    stk_tensor tensor;
    stk_dataset *ds;
} block;

static void drop_block(stk_buffer *self)
{
    stk_dataset_release(((block *)self)->ds);
    stk_free(self);
}

stk_dataset *stk_tensor_dataset(const stk_tensor *part)
{
    bool nested = part && part->buffer && part->buffer->release == drop_block;
    return nested ? ((block *)part->buffer)->ds : NULL;
}

/* Takes the dataset over, also when it fails. */
static stk_status wrap(stk_dataset *ds, stk_tensor **out, stk_error *err)
{
    block *b = ds ? stk_calloc(1, sizeof *b) : NULL;
    if (!b) {
        stk_dataset_release(ds);
        return ds ? stk_fail_memory(err, "window", sizeof *b) : STK_ERR_MEMORY;
    }
    b->ds = ds;
    b->buffer = (stk_buffer){.data = b, .release = drop_block, .refs = 1, .readonly = true};
    b->tensor = (stk_tensor){.data = b,
                             .dtype = ds->schema->fields[0].dtype,
                             .rank = 1,
                             .stride = {1},
                             .buffer = &b->buffer,
                             .refs = 1,
                             .inside = true};
    *out = &b->tensor;
    return STK_OK;
}

/* ---- schemas ----------------------------------------------------------------------------------------- */
stk_status stk_leaves_new(const stk_schema *schema, stk_schema ***out, stk_error *err)
{
    *out = stk_calloc((size_t)schema->n + 1, sizeof **out);
    if (!*out) return stk_fail_memory(err, "window", (size_t)schema->n * sizeof **out);
    stk_status status = STK_OK;
    for (int32_t i = 0; i < schema->n && status == STK_OK; i++) {
        stk_field field = schema->fields[i];
        field.dataset = false;
        status = stk_schema_new(1, &field, NULL, &(*out)[i], err);
    }
    if (status == STK_OK) return STK_OK;
    stk_leaves_release(schema->n, *out);
    *out = NULL;
    return status;
}

void stk_leaves_release(int32_t n, stk_schema **leaves)
{
    for (int32_t i = 0; leaves && i < n; i++) stk_schema_release(leaves[i]);
    stk_free(leaves);
}

static stk_status with_flag(const stk_schema *in, bool dataset, stk_schema **out, stk_error *err)
{
    stk_field *fields = stk_calloc((size_t)in->n + 1, sizeof *fields);
    if (!fields) return stk_fail_memory(err, "window", (size_t)in->n * sizeof *fields);
    for (int32_t i = 0; i < in->n; i++) {
        fields[i] = in->fields[i];
        fields[i].dataset = dataset;
    }
    stk_status status = stk_schema_new(in->n, fields, in->structure, out, err);
    stk_free(fields);
    return status;
}

stk_status stk_schema_nested(const stk_schema *in, stk_schema **out, stk_error *err)
{
    return with_flag(in, true, out, err);
}

/* ---- making -------------------------------------------------------------------------------------------- */
static stk_dataset *part_dataset(const stk_schema *leaf, int32_t n, int64_t count,
                                 stk_tensor *const *elements, stk_error *err)
{
    stk_element_list hold = {.width = 1};
    stk_status status = STK_OK;
    for (int64_t e = 0; e < count && status == STK_OK; e++) {
        stk_tensor *part = stk_tensor_retain(elements[e * n]);
        status = stk_element_list_add(&hold, &part, err);
        stk_tensor_release(part);
    }
    stk_dataset *ds = status == STK_OK ? stk_data_elements(&hold, leaf, err) : NULL;
    stk_element_list_release(&hold);
    if (ds && count < 0) stk_dataset_unknown(ds);
    return ds;
}

stk_status stk_nested_new(int32_t n, stk_schema *const *leaves, int64_t count,
                          stk_tensor *const *elements, stk_tensor **out, stk_error *err)
{
    for (int32_t i = 0; i < n; i++) {
        stk_dataset *ds = part_dataset(leaves[i], n, count, elements ? elements + i : NULL, err);
        stk_status status = wrap(ds, &out[i], err);
        if (status == STK_OK) continue;
        stk_parts_release(i, out);
        return status;
    }
    return STK_OK;
}

/* ---- states: dtype, rank, sizes and name of the elements, then how many, then they ------------------------- */
void stk_nested_save(const stk_tensor *part, stk_state *out)
{
    const stk_dataset *ds = stk_tensor_dataset(part);
    const stk_field *f = &ds->schema->fields[0];
    stk_state_put(out, f->dtype);
    stk_state_put(out, f->rank);
    for (int32_t i = 0; i < f->rank; i++) stk_state_put(out, f->shape[i]);
    stk_state_put_blob(out, f->name, strlen(f->name));
    stk_element_list_save(ds->config, out);
}

stk_status stk_nested_restore(stk_state *in, stk_tensor **out, stk_error *err)
{
    char name[256] = "";
    stk_field f = {.name = name};
    f.dtype = (stk_dtype)stk_state_get_in(in, 0, STK_DTYPE_COUNT - 1);
    f.rank = (int32_t)stk_state_get_in(in, -1, STK_MAX_RANK);
    for (int32_t i = 0; i < f.rank; i++) f.shape[i] = stk_state_get_in(in, -1, INT64_MAX);
    size_t size;
    const void *bytes = stk_state_get_blob(in, &size);
    if (size >= sizeof name) in->broken = true;
    STK_TRY(stk_state_status(in, err));
    if (size) memcpy(name, bytes, size);
    stk_schema *leaf = NULL;
    stk_element_list hold = {.width = 1};
    STK_TRY(stk_schema_new(1, &f, NULL, &leaf, err));
    stk_status status = stk_element_list_restore(&hold, in, err);
    stk_dataset *ds = status == STK_OK ? stk_data_elements(&hold, leaf, err) : NULL;
    if (status == STK_OK) status = wrap(ds, out, err);
    stk_element_list_release(&hold);
    stk_schema_release(leaf);
    return status;
}

/* ---- one element as a dataset ---------------------------------------------------------------------------- */
static stk_dataset *whole_element(const stk_schema *schema, stk_tensor *const *parts,
                                  stk_error *err)
{
    stk_element_list hold = {.width = schema->n};
    stk_tensor **handles = stk_parts_new(schema->n);
    stk_status status = handles ? STK_OK : stk_fail_memory(err, "elements", 64);
    for (int32_t i = 0; status == STK_OK && parts && i < schema->n; i++)
        handles[i] = stk_tensor_retain(parts[i]);
    if (status == STK_OK && parts) status = stk_element_list_add(&hold, handles, err);
    stk_dataset *ds = status == STK_OK ? stk_data_elements(&hold, schema, err) : NULL;
    if (handles) stk_elements_free(schema->n, handles);
    stk_element_list_release(&hold);
    if (ds && !parts) stk_dataset_unknown(ds);
    return ds;
}

static stk_dataset *side_by_side(const stk_schema *schema, stk_tensor *const *parts, stk_error *err)
{
    stk_schema **leaves = NULL, *tensors = NULL;
    stk_dataset **in = stk_calloc((size_t)schema->n + 1, sizeof *in), *ds = NULL;
    stk_status status = in ? stk_leaves_new(schema, &leaves, err) : stk_fail_memory(err, "zip", 64);
    if (status == STK_OK) status = with_flag(schema, false, &tensors, err);
    for (int32_t i = 0; i < schema->n && status == STK_OK; i++) {
        stk_dataset *window = stk_tensor_dataset(parts[i]);
        in[i] = window ? stk_dataset_retain(window)
                       : stk_data_repeat(whole_element(leaves[i], &parts[i], err), -1, err);
    }
    if (status == STK_OK) {
        ds = stk_data_zip(schema->n, in, err);
        if (ds) stk_dataset_set_schema(ds, stk_schema_retain(tensors)); /* the structure it had */
    }
    stk_schema_release(tensors);
    stk_leaves_release(schema->n, leaves);
    stk_free(in);
    return ds;
}

stk_dataset *stk_element_dataset(const stk_schema *schema, stk_tensor *const *parts, stk_error *err)
{
    bool nested = false;
    for (int32_t i = 0; i < schema->n; i++) nested |= schema->fields[i].dataset;
    return nested ? side_by_side(schema, parts, err) : whole_element(schema, parts, err);
}
