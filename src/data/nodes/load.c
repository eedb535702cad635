/* load - the elements of a snapshot (snapshot.h), by number. */
#include "base/crc32c.h"
#include "base/file.h"
#include "data/core/node.h"

#include <stdio.h>
#include <string.h>

enum { TAIL = 32, MOST_SCHEMA = 64 << 20 };

typedef struct load {
    stk_bytes file;
    char *path;
    int64_t *offsets;
    int64_t index; /* where elements end */
} load;

static void drop(stk_dataset *ds)
{
    load *c = ds->config;
    if (c->path) stk_bytes_close(&c->file);
    stk_free(c->path);
    stk_free(c->offsets);
}

static void describe(const stk_dataset *ds, char *text, size_t size)
{
    const load *c = ds->config;
    snprintf(text, size, "%lld elements of %s", (long long)ds->cardinality, c->path);
}

static stk_status bad(const load *c, int64_t offset, const char *what, stk_error *err)
{
    return stk_fail(err, STK_ERR_FORMAT, "snapshot %s at offset %lld: %s; write it again", c->path,
                    (long long)offset, what);
}

static stk_status get(stk_stage *stage, uint64_t epoch, int64_t index, stk_tensor **parts,
                      stk_error *err)
{
    (void)epoch;
    const load *c = stage->ds->config;
    int64_t at = c->offsets[index], size, crc;
    STK_TRY(stk_bytes_read(&c->file, (uint64_t)at, &size, sizeof size, err));
    if (size < 0 || size > c->index - at - 16)
        return bad(c, at, "the length of an element is wrong", err);
    uint8_t *data = stk_malloc((size_t)size);
    if (!data) return stk_fail_memory(err, "load", (size_t)size);
    stk_status status = stk_bytes_read(&c->file, (uint64_t)at + 8, data, (size_t)size, err);
    if (status == STK_OK)
        status = stk_bytes_read(&c->file, (uint64_t)(at + 8 + size), &crc, 8, err);
    if (status == STK_OK && crc != (int64_t)stk_crc32c(0, data, (size_t)size))
        status = bad(c, at, "the checksum of an element is wrong", err);
    if (status == STK_OK) {
        stk_state s = stk_state_reader(data, (size_t)size);
        status = stk_state_get_parts(&s, stage->ds->schema->n, parts, err);
    }
    stk_free(data);
    if (status == STK_OK) status = stk_schema_check(stage->ds->schema, parts, err);
    if (status != STK_OK) stk_parts_release(stage->ds->schema->n, parts);
    return status;
}

const stk_node_kind stk_node_load = {
    .name = "load", .drop = drop, .describe = describe, .get = get, .steady = stk_always_steady};

static stk_status read_field(stk_state *s, stk_field *f, char *name, size_t room)
{
    size_t size;
    const char *text = stk_state_get_blob(s, &size);
    if (size >= room)
        s->broken = true;
    else if (size)
        memcpy(name, text, size);
    name[s->broken ? 0 : size] = 0;
    f->name = name;
    f->dtype = (stk_dtype)stk_state_get_in(s, 0, STK_DTYPE_COUNT - 1);
    f->rank = (int32_t)stk_state_get_in(s, -1, STK_MAX_RANK);
    for (int32_t k = 0; k < f->rank; k++) f->shape[k] = stk_state_get_in(s, -1, INT64_MAX);
    return s->broken ? STK_ERR_FORMAT : STK_OK;
}

static stk_status parse_schema(stk_state *s, stk_schema **out, stk_error *err)
{
    enum { NAME = 128 };
    int32_t n = (int32_t)stk_state_get_in(s, 0, 65536);
    size_t size;
    const char *text = stk_state_get_blob(s, &size);
    STK_TRY(stk_state_status(s, err));
    stk_field *fields = stk_calloc((size_t)n + 1, sizeof *fields);
    char *names = stk_calloc((size_t)n + 1, NAME), *structure = stk_strndup(text, size);
    stk_status status = fields && names && structure ? STK_OK : stk_fail_memory(err, "load", 64);
    for (int32_t i = 0; i < n && status == STK_OK; i++)
        if (read_field(s, &fields[i], names + i * NAME, NAME) != STK_OK)
            status = stk_state_status(s, err);
    if (status == STK_OK) status = stk_schema_new(n, fields, structure, out, err);
    stk_free(fields);
    stk_free(names);
    stk_free(structure);
    return status;
}

static stk_status read_schema(load *c, stk_schema **out, stk_error *err)
{
    char magic[8];
    int64_t size;
    STK_TRY(stk_bytes_read(&c->file, 0, magic, 8, err));
    if (memcmp(magic, "STKSNAP1", 8) != 0) return bad(c, 0, "this is no snapshot", err);
    STK_TRY(stk_bytes_read(&c->file, 8, &size, 8, err));
    if (size < 0 || size > MOST_SCHEMA || (uint64_t)size > c->file.size)
        return bad(c, 8, "the length of the schema is wrong", err);
    uint8_t *data = stk_malloc((size_t)size);
    if (!data) return stk_fail_memory(err, "load", (size_t)size);
    stk_status status = stk_bytes_read(&c->file, 16, data, (size_t)size, err);
    if (status == STK_OK) {
        stk_state s = stk_state_reader(data, (size_t)size);
        status = parse_schema(&s, out, err);
    }
    stk_free(data);
    return status;
}

static stk_status read_index(load *c, int64_t *count, stk_error *err)
{
    int64_t tail[4];
    if (c->file.size < TAIL + 16) return bad(c, 0, "it is too short", err);
    int64_t end = (int64_t)c->file.size - TAIL;
    STK_TRY(stk_bytes_read(&c->file, (uint64_t)end, tail, TAIL, err));
    *count = tail[0];
    c->index = tail[1];
    bool good = memcmp(&tail[3], "STKSNAPE", 8) == 0 && *count >= 0 && c->index >= 16 &&
                c->index <= end && *count == (end - c->index) / 8 && (end - c->index) % 8 == 0;
    if (!good) return bad(c, end, "it was not finished", err);
    size_t size = (size_t)*count * 8;
    c->offsets = stk_malloc(size);
    if (!c->offsets) return stk_fail_memory(err, "load", size);
    if (size) STK_TRY(stk_bytes_read(&c->file, (uint64_t)c->index, c->offsets, size, err));
    if (tail[2] != (int64_t)stk_crc32c(0, c->offsets, size))
        return bad(c, c->index, "the checksum of the index is wrong", err);
    for (int64_t i = 0; i < *count; i++)
        if (c->offsets[i] < 16 || c->offsets[i] > c->index - 16)
            return bad(c, c->index + i * 8, "an offset lies outside", err);
    return STK_OK;
}

stk_dataset *stk_data_load(const char *path, stk_error *err)
{
    if (!path) {
        (void)stk_fail(err, STK_ERR_ARGUMENT, "load: the path is NULL");
        return NULL;
    }
    stk_dataset *ds = stk_dataset_make(&stk_node_load, 0, NULL, sizeof(load), err);
    if (!ds) return NULL;
    load *c = ds->config;
    char *copy = stk_strdup(path);
    stk_status status = copy ? STK_OK : stk_fail_memory(err, "load", strlen(path));
    if (status == STK_OK) status = stk_bytes_open(copy, &c->file, err);
    if (status != STK_OK) {
        stk_free(copy);
        return stk_dataset_done(ds, status);
    }
    c->path = copy;
    stk_schema *schema = NULL;
    status = read_schema(c, &schema, err);
    if (status == STK_OK) {
        stk_dataset_set_schema(ds, schema);
        status = read_index(c, &ds->cardinality, err);
        ds->random = true;
        ds->parallel = STK_AUTOTUNE;
    }
    return stk_dataset_done(ds, status);
}
