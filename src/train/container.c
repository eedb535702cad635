/* container.c - reads and writes the file drawn in container.h. No size is believed before it was compared with the
 * size of the file, and nothing is handed out whose checksum is wrong. */
#include "train/container.h"

#include "base/crc32c.h"
#include "base/dtype.h"
#include "base/file.h"
#include "base/tensor.h"

#include <inttypes.h>
#include <string.h>

enum { HEAD = 64, VERSION = 1, ROW = 16, PLACE = 64, NAME_MOST = 4096 };
enum { META_MOST = 1 << 30 }; /* text and table together */
static const char magic[8] = "STKCKPT\n";

/* ---- numbers in bytes --------------------------------------------------------------------------- */

static void put(uint8_t *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) to[i] = (uint8_t)(value >> 8 * i);
}

static uint64_t get(const uint8_t *from, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--) value = value << 8 | from[i];
    return value;
}

static uint64_t next_place(uint64_t at) { return (at + PLACE - 1) / PLACE * PLACE; }

/* ---- reading -------------------------------------------------------------------------------------- */

typedef struct head {
    uint64_t file, text, table;
    uint32_t tensors, crc;
} head;

static stk_status damaged(stk_error *err, const char *name, const char *what)
{
    return stk_fail(err, STK_ERR_FORMAT, "%s: %s; the checkpoint is damaged, use an older one",
                    name, what);
}

static stk_status read_head(const stk_bytes *bytes, head *out, stk_error *err)
{
    uint8_t raw[HEAD];
    if (bytes->size < HEAD)
        return stk_fail(err, STK_ERR_FORMAT,
                        "%s: %" PRIu64 " bytes are too few for a checkpoint; give a file "
                        "that was written by training",
                        bytes->name, bytes->size);
    STK_TRY(stk_bytes_read(bytes, 0, raw, HEAD, err));
    if (memcmp(raw, magic, sizeof magic) != 0)
        return stk_fail(err, STK_ERR_FORMAT,
                        "%s: is no checkpoint; give a file that was written by training",
                        bytes->name);
    uint32_t version = (uint32_t)get(raw + 8, 4);
    if (version != VERSION)
        return stk_fail(err, STK_ERR_UNSUPPORTED,
                        "%s: is a checkpoint of version %u, this program reads version "
                        "%d; use the program that wrote it",
                        bytes->name, version, VERSION);
    if (stk_crc32c(0, raw, 60) != (uint32_t)get(raw + 60, 4))
        return damaged(err, bytes->name, "the checksum of its head is wrong");
    *out = (head){.file = get(raw + 16, 8),
                  .text = get(raw + 24, 8),
                  .table = get(raw + 32, 8),
                  .tensors = (uint32_t)get(raw + 12, 4),
                  .crc = (uint32_t)get(raw + 40, 4)};
    uint64_t rest = bytes->size - HEAD;
    if (out->file != bytes->size)
        return stk_fail(err, STK_ERR_FORMAT,
                        "%s: has %" PRIu64 " bytes and should have %" PRIu64
                        "; it was cut, use an older one",
                        bytes->name, bytes->size, out->file);
    if (out->text > META_MOST || out->table > META_MOST || out->text > rest ||
        out->table > rest - out->text || get(raw + 44, 8) || get(raw + 52, 8))
        return damaged(err, bytes->name, "the sizes in its head do not fit");
    return STK_OK;
}

typedef struct row {
    uint64_t place, bytes;
    uint32_t crc;
    stk_dtype dtype;
    stk_shape shape;
    char name[NAME_MOST + 1];
} row;

/* One row at *at of the table; moves *at behind it. */
static bool read_row(const uint8_t *table, uint64_t size, uint64_t *at, row *out)
{
    if (size - *at < ROW) return false;
    const uint8_t *raw = table + *at;
    uint64_t name = get(raw + 12, 2);
    int32_t rank = raw[15];
    out->place = get(raw, 8);
    out->crc = (uint32_t)get(raw + 8, 4);
    out->dtype = (stk_dtype)raw[14];
    if (name == 0 || name > NAME_MOST || rank > STK_MAX_RANK || raw[14] >= STK_DTYPE_COUNT ||
        out->dtype == STK_STRING || size - *at < ROW + 8 * (uint64_t)rank + name)
        return false;
    int64_t bytes = stk_dtype_size(out->dtype);
    out->shape.rank = rank;
    for (int32_t i = 0; i < rank; i++) {
        uint64_t dim = get(raw + ROW + 8 * i, 8);
        if (dim > INT64_MAX || !stk_mul_i64(bytes, (int64_t)dim, &bytes)) return false;
        out->shape.dim[i] = (int64_t)dim;
    }
    memcpy(out->name, raw + ROW + 8 * rank, (size_t)name);
    out->name[name] = 0;
    out->bytes = (uint64_t)bytes;
    *at += ROW + 8 * (uint64_t)rank + name;
    return strlen(out->name) == name;
}

static stk_status read_elements(const stk_bytes *bytes, const row *r, stk_named_list *list,
                                stk_error *err)
{
    stk_tensor *t = NULL;
    STK_TRY(stk_tensor_raw(r->dtype, r->shape.rank, r->shape.dim, &t, err));
    STK_TRY(stk_named_add(list, r->name, t, err));
    STK_TRY(stk_bytes_read(bytes, r->place, t->data, (size_t)r->bytes, err));
    if (stk_crc32c(0, t->data, (size_t)r->bytes) == r->crc) return STK_OK;
    return stk_fail(err, STK_ERR_FORMAT,
                    "%s: the checksum of '%s' is wrong; the checkpoint is damaged, use an older "
                    "one",
                    bytes->name, r->name);
}

static stk_status check_gap(const stk_bytes *bytes, uint64_t from, uint64_t to, stk_error *err)
{
    uint8_t raw[PLACE] = {0}, any = 0;
    STK_TRY(stk_bytes_read(bytes, from, raw, (size_t)(to - from), err));
    for (int i = 0; i < PLACE; i++) any |= raw[i];
    return any ? damaged(err, bytes->name, "something stands between two tensors") : STK_OK;
}

static stk_status read_tensors(const stk_bytes *bytes, const head *h, const uint8_t *table, row *r,
                               stk_named_list *list, stk_error *err)
{
    uint64_t at = 0, place = HEAD + h->text + h->table;
    for (uint32_t i = 0; i < h->tensors; i++) {
        if (!read_row(table, h->table, &at, r))
            return damaged(err, bytes->name, "a row of its table is wrong");
        uint64_t gap = place;
        place = r->bytes ? next_place(place) : place;
        if (r->place != place || place > bytes->size || r->bytes > bytes->size - place)
            return damaged(err, bytes->name, "a tensor lies outside of it");
        STK_TRY(check_gap(bytes, gap, place, err));
        STK_TRY(read_elements(bytes, r, list, err));
        place += r->bytes;
    }
    if (at != h->table || place != bytes->size)
        return damaged(err, bytes->name, "it holds more than its table says");
    return STK_OK;
}

static stk_status check_twice(const char *name, const stk_named_list *list, stk_error *err)
{
    const char **names = stk_calloc((size_t)list->count + 1, sizeof *names);
    if (!names) return stk_fail_memory(err, name, (size_t)list->count * sizeof *names);
    for (int64_t i = 0; i < list->count; i++) names[i] = list->items[i].name;
    const char *twice = stk_named_twice(names, list->count);
    stk_free(names);
    return twice ? stk_fail(err, STK_ERR_FORMAT, "%s: '%s' stands there twice", name, twice)
                 : STK_OK;
}

static stk_status read_all(const stk_bytes *bytes, stk_container *out, stk_error *err)
{
    head h = {0};
    *out = (stk_container){0};
    STK_TRY(read_head(bytes, &h, err));
    uint8_t *meta = stk_malloc((size_t)(h.text + h.table) + 1);
    row *scratch = stk_malloc(sizeof *scratch);
    stk_status status =
        meta && scratch ? STK_OK : stk_fail_memory(err, bytes->name, (size_t)h.table);
    if (status == STK_OK)
        status = stk_bytes_read(bytes, HEAD, meta, (size_t)(h.text + h.table), err);
    if (status == STK_OK && stk_crc32c(0, meta, (size_t)(h.text + h.table)) != h.crc)
        status = damaged(err, bytes->name, "the checksum of its table is wrong");
    if (status == STK_OK) {
        out->text_size = (size_t)h.text;
        out->text = stk_strndup((const char *)meta, (size_t)h.text);
        if (!out->text) status = stk_fail_memory(err, bytes->name, (size_t)h.text + 1);
    }
    if (status == STK_OK) status = read_tensors(bytes, &h, meta + h.text, scratch, &out->list, err);
    if (status == STK_OK) status = check_twice(bytes->name, &out->list, err);
    stk_free(scratch);
    stk_free(meta);
    if (status != STK_OK) stk_container_release(out);
    return status;
}

stk_status stk_container_parse(const char *name, const void *data, size_t size, stk_container *out,
                               stk_error *err)
{
    stk_bytes bytes = stk_bytes_of(name, data, size);
    return read_all(&bytes, out, err);
}

stk_status stk_container_load(const char *path, stk_container *out, stk_error *err)
{
    stk_bytes bytes;
    *out = (stk_container){0};
    STK_TRY(stk_bytes_open(path, &bytes, err));
    stk_status status = read_all(&bytes, out, err);
    stk_bytes_close(&bytes);
    return status;
}

void stk_container_release(stk_container *c)
{
    stk_free(c->text);
    stk_named_release(&c->list);
    *c = (stk_container){0};
}

/* ---- writing ---------------------------------------------------------------------------------------- */

static uint64_t row_size(const stk_named *n)
{
    return ROW + 8 * (uint64_t)n->tensor->rank + strlen(n->name);
}

static uint64_t table_size(const stk_named_list *list)
{
    uint64_t size = 0;
    for (int64_t i = 0; i < list->count; i++) size += row_size(&list->items[i]);
    return size;
}

/* Fills the table and returns where the file will end. */
static uint64_t make_table(const stk_named_list *list, uint64_t place, uint8_t *table)
{
    for (int64_t i = 0; i < list->count; i++) {
        const stk_named *n = &list->items[i];
        const stk_tensor *t = n->tensor;
        uint64_t bytes = (uint64_t)stk_tensor_bytes(t), name = strlen(n->name);
        place = bytes ? next_place(place) : place;
        put(table, place, 8);
        put(table + 8, stk_crc32c(0, t->data, (size_t)bytes), 4);
        put(table + 12, name, 2);
        table[14] = (uint8_t)t->dtype;
        table[15] = (uint8_t)t->rank;
        for (int32_t k = 0; k < t->rank; k++) put(table + ROW + 8 * k, (uint64_t)t->shape[k], 8);
        memcpy(table + ROW + 8 * t->rank, n->name, (size_t)name);
        table += row_size(n);
        place += bytes;
    }
    return place;
}

static void make_head(const stk_named_list *list, uint64_t end, uint64_t text, uint64_t table,
                      uint32_t crc, uint8_t raw[HEAD])
{
    memset(raw, 0, HEAD);
    memcpy(raw, magic, sizeof magic);
    put(raw + 8, VERSION, 4);
    put(raw + 12, (uint64_t)list->count, 4);
    put(raw + 16, end, 8);
    put(raw + 24, text, 8);
    put(raw + 32, table, 8);
    put(raw + 40, crc, 4);
    put(raw + 60, stk_crc32c(0, raw, 60), 4);
}

static stk_status write_elements(stk_file_writer *w, const stk_named_list *list, stk_error *err)
{
    static const uint8_t zeros[PLACE];
    for (int64_t i = 0; i < list->count; i++) {
        const stk_tensor *t = list->items[i].tensor;
        size_t bytes = (size_t)stk_tensor_bytes(t);
        if (!bytes) continue;
        STK_TRY(stk_file_write(w, zeros, (size_t)(next_place(w->offset) - w->offset), err));
        STK_TRY(stk_file_write(w, t->data, bytes, err));
    }
    return STK_OK;
}

static stk_status check_list(const char *path, const stk_named_list *list, stk_error *err)
{
    for (int64_t i = 0; i < list->count; i++) {
        const stk_named *n = &list->items[i];
        size_t name = strlen(n->name);
        if (name == 0 || name > NAME_MOST)
            return stk_fail(err, STK_ERR_RANGE,
                            "%s: the name of tensor %" PRId64 " has %zu bytes, 1 to %d fit", path,
                            i, name, NAME_MOST);
        if (n->tensor->dtype == STK_STRING || !stk_tensor_is_dense(n->tensor))
            return stk_fail(err, STK_ERR_ARGUMENT, "%s: '%s' must be a dense tensor of numbers",
                            path, n->name);
    }
    return check_twice(path, list, err);
}

stk_status stk_container_save(const char *path, const char *text, size_t text_size,
                              const stk_named_list *list, stk_error *err)
{
    STK_TRY(check_list(path, list, err));
    uint64_t size = table_size(list);
    if (text_size > META_MOST || size > META_MOST)
        return stk_fail(err, STK_ERR_RANGE,
                        "%s: text or table of the checkpoint is larger than %d bytes", path,
                        META_MOST);
    uint8_t *table = stk_malloc((size_t)size + 1), raw[HEAD];
    if (!table) return stk_fail_memory(err, path, (size_t)size);
    uint64_t end = make_table(list, HEAD + text_size + size, table);
    uint32_t crc = stk_crc32c(stk_crc32c(0, text, text_size), table, (size_t)size);
    make_head(list, end, text_size, size, crc, raw);
    stk_file_writer w = {.fd = -1};
    stk_status status = stk_file_create(path, &w, err);
    if (status == STK_OK) status = stk_file_write(&w, raw, HEAD, err);
    if (status == STK_OK) status = stk_file_write(&w, text, text_size, err);
    if (status == STK_OK) status = stk_file_write(&w, table, (size_t)size, err);
    if (status == STK_OK) status = write_elements(&w, list, err);
    if (status == STK_OK)
        status = stk_file_commit(&w, err);
    else
        stk_file_abandon(&w);
    stk_free(table);
    return status;
}
