/* Snapshots: writing element by element. Reading is the node in nodes/load.c. */
#include "data/formats/snapshot.h"

#include "base/crc32c.h"

#include <string.h>

static void put_schema(stk_state *s, const stk_schema *schema)
{
    stk_state_put(s, schema->n);
    stk_state_put_blob(s, schema->structure, strlen(schema->structure));
    for (int32_t i = 0; i < schema->n; i++) {
        const stk_field *f = &schema->fields[i];
        stk_state_put_blob(s, f->name ? f->name : "", f->name ? strlen(f->name) : 0);
        stk_state_put(s, f->dtype);
        stk_state_put(s, f->rank);
        for (int32_t k = 0; k < f->rank; k++) stk_state_put(s, f->shape[k]);
    }
}

static stk_status put_number(stk_snapshot_writer *w, int64_t value, stk_error *err)
{
    return stk_file_write(&w->file, &value, sizeof value, err);
}

stk_status stk_snapshot_create(const char *path, const stk_schema *schema, stk_snapshot_writer *w,
                               stk_error *err)
{
    stk_state s = {0};
    STK_TRY(stk_schema_tensors("snapshot", schema, err));
    STK_TRY(stk_file_create(path, &w->file, err));
    w->schema = stk_schema_retain(schema);
    put_schema(&s, schema);
    stk_status status = stk_state_status(&s, err);
    if (status == STK_OK) status = stk_file_write(&w->file, "STKSNAP1", 8, err);
    if (status == STK_OK) status = put_number(w, (int64_t)s.size, err);
    if (status == STK_OK) status = stk_file_write(&w->file, s.data, s.size, err);
    stk_state_release(&s);
    if (status != STK_OK) stk_snapshot_abandon(w);
    return status;
}

stk_status stk_snapshot_add(stk_snapshot_writer *w, stk_tensor *const *parts, stk_error *err)
{
    if (!STK_GROW(w->offsets, w->count, w->capacity)) return stk_fail_memory(err, "snapshot", 64);
    stk_state s = {0};
    stk_state_put_parts(&s, w->schema->n, parts);
    stk_status status = stk_state_status(&s, err);
    w->offsets[w->count] = (int64_t)w->file.offset;
    if (status == STK_OK) status = put_number(w, (int64_t)s.size, err);
    if (status == STK_OK) status = stk_file_write(&w->file, s.data, s.size, err);
    if (status == STK_OK) status = put_number(w, (int64_t)stk_crc32c(0, s.data, s.size), err);
    stk_state_release(&s);
    if (status == STK_OK) w->count++;
    return status;
}

stk_status stk_snapshot_commit(stk_snapshot_writer *w, stk_error *err)
{
    int64_t index = (int64_t)w->file.offset;
    size_t size = (size_t)w->count * sizeof *w->offsets;
    stk_status status = size ? stk_file_write(&w->file, w->offsets, size, err) : STK_OK;
    if (status == STK_OK) status = put_number(w, w->count, err);
    if (status == STK_OK) status = put_number(w, index, err);
    if (status == STK_OK) status = put_number(w, (int64_t)stk_crc32c(0, w->offsets, size), err);
    if (status == STK_OK) status = stk_file_write(&w->file, "STKSNAPE", 8, err);
    if (status == STK_OK) {
        status = stk_file_commit(&w->file, err);
        w->file = (stk_file_writer){0};
    }
    stk_snapshot_abandon(w);
    return status;
}

void stk_snapshot_abandon(stk_snapshot_writer *w)
{
    stk_file_abandon(&w->file);
    stk_schema_release(w->schema);
    stk_free(w->offsets);
    *w = (stk_snapshot_writer){0};
}

stk_status stk_dataset_save(stk_dataset *ds, const char *path, const stk_stream_options *options,
                            stk_error *err)
{
    if (!ds || !path)
        return stk_fail(err, STK_ERR_ARGUMENT, "save: the dataset or the path is NULL");
    stk_stream *s = NULL;
    stk_snapshot_writer w = {0};
    stk_tensor **parts = stk_parts_new(ds->schema->n);
    stk_status status = parts ? STK_OK : stk_fail_memory(err, "save", 64);
    if (status == STK_OK) status = stk_dataset_stream(ds, options, &s, err);
    if (status == STK_OK) status = stk_snapshot_create(path, ds->schema, &w, err);
    for (bool end = false; status == STK_OK;) {
        status = stk_stream_next(s, parts, &end, err);
        if (status != STK_OK || end) break;
        status = stk_snapshot_add(&w, parts, err);
        stk_parts_release(ds->schema->n, parts);
    }
    if (status == STK_OK)
        status = stk_snapshot_commit(&w, err);
    else
        stk_snapshot_abandon(&w);
    stk_stream_release(s);
    stk_free(parts);
    return status;
}
