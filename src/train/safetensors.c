/* safetensors.c - weights as other programs read and write them. Strict: a file that is not exactly what the format says
 * is refused, and no size in it is believed before it was compared with the file's own. */
#include "train/safetensors.h"

#include "base/dtype.h"
#include "base/file.h"
#include "base/json.h"
#include "base/tensor.h"
#include "train/named.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_MOST = 100000000, PREFIX = 8 };

struct stk_safetensors {
    stk_named_list list;
};

static const struct {
    const char *name;
    stk_dtype dtype;
} dtypes[] = {{"F32", STK_F32},  {"F64", STK_F64}, {"F16", STK_F16}, {"BF16", STK_BF16},
              {"I8", STK_I8},    {"U8", STK_U8},   {"I16", STK_I16}, {"U16", STK_U16},
              {"I32", STK_I32},  {"U32", STK_U32}, {"I64", STK_I64}, {"U64", STK_U64},
              {"BOOL", STK_BOOL}};

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct entry {
    const char *name;
    stk_dtype dtype;
    stk_shape shape;
    int64_t begin, end;
} entry;

static stk_status bad(stk_error *err, const char *file, const char *tensor, const char *what)
{
    return stk_fail(err, STK_ERR_FORMAT,
                    "%s: tensor '%s': %s; the file is damaged or no safetensors", file, tensor,
                    what);
}

static bool read_dtype(const stk_json *value, stk_dtype *out)
{
    const char *text = stk_json_text(value, "");
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (!strcmp(dtypes[i].name, text)) {
            *out = dtypes[i].dtype;
            return true;
        }
    return false;
}

/* A whole number that is written as one: 3.0 and 1e2 are not sizes. */
static bool read_size(const stk_json *value, int64_t *out)
{
    if (!value || value->kind != STK_JSON_INT || value->integer < 0) return false;
    *out = value->integer;
    return true;
}

static stk_status read_entry(const char *file, const stk_json *member, uint64_t data_size,
                             entry *out, stk_error *err)
{
    const stk_json *shape = stk_json_get(member, "shape");
    const stk_json *offsets = stk_json_get(member, "data_offsets");
    *out = (entry){.name = member->name};
    if (member->kind != STK_JSON_OBJECT || !shape || shape->kind != STK_JSON_ARRAY || !offsets ||
        offsets->kind != STK_JSON_ARRAY || offsets->count != 2)
        return bad(err, file, member->name, "needs dtype, shape and two data_offsets");
    if ((size_t)member->name_size != strlen(member->name) || !member->name_size)
        return bad(err, file, member->name, "a name is empty or holds a zero byte");
    if (!read_dtype(stk_json_get(member, "dtype"), &out->dtype))
        return stk_fail(err, STK_ERR_UNSUPPORTED,
                        "%s: tensor '%s' has dtype '%s', which is none of F64 F32 F16 BF16 "
                        "I64 I32 I16 I8 U64 U32 U16 U8 BOOL; convert it before",
                        file, member->name, stk_json_text(stk_json_get(member, "dtype"), "?"));
    if (shape->count > STK_MAX_RANK)
        return stk_fail(err, STK_ERR_UNSUPPORTED,
                        "%s: tensor '%s' has %" PRId64 " axes, at most %d are "
                        "supported; reshape it before",
                        file, member->name, shape->count, STK_MAX_RANK);
    out->shape.rank = (int32_t)shape->count;
    int64_t bytes = stk_dtype_size(out->dtype);
    for (int32_t i = 0; i < out->shape.rank; i++)
        if (!read_size(stk_json_item(shape, i), &out->shape.dim[i]) ||
            !stk_mul_i64(bytes, out->shape.dim[i], &bytes))
            return bad(err, file, member->name, "its shape is not a list of sizes");
    if (!read_size(stk_json_item(offsets, 0), &out->begin) ||
        !read_size(stk_json_item(offsets, 1), &out->end) || out->begin > out->end ||
        (uint64_t)out->end > data_size)
        return bad(err, file, member->name, "its offsets are not inside the file");
    if (out->end - out->begin != bytes)
        return bad(err, file, member->name, "its offsets and its shape disagree");
    return STK_OK;
}

static stk_status check_metadata(const char *file, const stk_json *value, stk_error *err)
{
    bool good = value->kind == STK_JSON_OBJECT;
    for (int64_t i = 0; good && i < value->count; i++)
        good = value->items[i].kind == STK_JSON_STRING;
    return good
               ? STK_OK
               : stk_fail(err, STK_ERR_FORMAT, "%s: __metadata__ must be an object of texts", file);
}

static int by_place(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* No holes, no overlap, nothing behind the last one. */
static stk_status check_cover(const char *file, entry *entries, int64_t n, uint64_t data_size,
                              stk_error *err)
{
    qsort(entries, (size_t)n, sizeof *entries, by_place);
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        if (entries[i].begin != at)
            return bad(err, file, entries[i].name,
                       entries[i].begin < at ? "overlaps another tensor" : "a hole lies before it");
        at = entries[i].end;
    }
    if ((uint64_t)at != data_size)
        return stk_fail(err, STK_ERR_FORMAT,
                        "%s: %" PRIu64 " bytes of data, but the tensors end at %" PRId64
                        "; the file was cut or is damaged",
                        file, data_size, at);
    return STK_OK;
}

static stk_status load_entries(const stk_bytes *bytes, uint64_t data_at, const entry *entries,
                               int64_t n, stk_named_list *list, stk_error *err)
{
    for (int64_t i = 0; i < n; i++) {
        const entry *e = &entries[i];
        stk_tensor *t = NULL;
        STK_TRY(stk_tensor_raw(e->dtype, e->shape.rank, e->shape.dim, &t, err));
        STK_TRY(stk_named_add(list, e->name, t, err));
        STK_TRY(stk_bytes_read(bytes, data_at + (uint64_t)e->begin, t->data,
                               (size_t)(e->end - e->begin), err));
    }
    return STK_OK;
}

static stk_status check_names(const char *file, const stk_json *root, stk_error *err)
{
    const char **names = stk_calloc((size_t)root->count + 1, sizeof *names);
    if (!names) return stk_fail_memory(err, file, (size_t)root->count * sizeof *names);
    for (int64_t i = 0; i < root->count; i++) names[i] = root->items[i].name;
    const char *twice = stk_named_twice(names, root->count);
    stk_free(names);
    return twice ? bad(err, file, twice, "stands there twice") : STK_OK;
}

static stk_status read_root(const stk_bytes *bytes, uint64_t data_at, const stk_json *root,
                            stk_named_list *list, stk_error *err)
{
    if (root->kind != STK_JSON_OBJECT)
        return stk_fail(err, STK_ERR_FORMAT, "%s: the header is no JSON object", bytes->name);
    STK_TRY(check_names(bytes->name, root, err));
    entry *entries = stk_calloc((size_t)root->count + 1, sizeof *entries);
    if (!entries) return stk_fail_memory(err, bytes->name, (size_t)root->count * sizeof *entries);
    stk_status status = STK_OK;
    int64_t n = 0;
    uint64_t data_size = bytes->size - data_at;
    for (int64_t i = 0; status == STK_OK && i < root->count; i++) {
        const stk_json *member = &root->items[i];
        if (!strcmp(member->name, "__metadata__"))
            status = check_metadata(bytes->name, member, err);
        else
            status = read_entry(bytes->name, member, data_size, &entries[n++], err);
    }
    if (status == STK_OK) status = check_cover(bytes->name, entries, n, data_size, err);
    if (status == STK_OK) status = load_entries(bytes, data_at, entries, n, list, err);
    stk_free(entries);
    return status;
}

static stk_status read_header(const stk_bytes *bytes, char **text, uint64_t *size, stk_error *err)
{
    uint8_t prefix[PREFIX];
    if (bytes->size < PREFIX)
        return stk_fail(err, STK_ERR_FORMAT,
                        "%s: %" PRIu64 " bytes are too few for a safetensors file", bytes->name,
                        bytes->size);
    STK_TRY(stk_bytes_read(bytes, 0, prefix, PREFIX, err));
    uint64_t n = 0;
    for (int i = PREFIX - 1; i >= 0; i--) n = n << 8 | prefix[i];
    if (n > HEADER_MOST || n > bytes->size - PREFIX)
        return stk_fail(err, STK_ERR_FORMAT,
                        "%s: says its header has %" PRIu64 " bytes, but %" PRIu64
                        " follow; it is cut or no safetensors file",
                        bytes->name, n, bytes->size - PREFIX);
    if (!(*text = stk_malloc((size_t)n + 1)))
        return stk_fail_memory(err, bytes->name, (size_t)n + 1);
    *size = n;
    STK_TRY(stk_bytes_read(bytes, PREFIX, *text, (size_t)n, err));
    (*text)[n] = 0;
    if ((*text)[0] != '{')
        return stk_fail(err, STK_ERR_FORMAT,
                        "%s: the header does not start with '{'; it is no safetensors file",
                        bytes->name);
    return STK_OK;
}

static stk_status read_all(const stk_bytes *bytes, stk_safetensors **out, stk_error *err)
{
    char *text = NULL;
    uint64_t size = 0;
    stk_json_document *document = NULL;
    stk_safetensors *file = stk_calloc(1, sizeof *file);
    stk_status status = file ? STK_OK : stk_fail_memory(err, bytes->name, sizeof *file);
    if (status == STK_OK) status = read_header(bytes, &text, &size, err);
    if (status == STK_OK) {
        status = stk_json_parse(text, (size_t)size, NULL, &document, err);
        if (status != STK_OK) stk_fail_in(err, status, "%s: header", bytes->name);
    }
    if (status == STK_OK)
        status = read_root(bytes, PREFIX + size, stk_json_root(document), &file->list, err);
    stk_json_release(document);
    stk_free(text);
    if (status == STK_OK)
        *out = file;
    else
        stk_safetensors_release(file);
    return status;
}

stk_status stk_safetensors_parse(const char *name, const void *data, size_t size,
                                 stk_safetensors **out, stk_error *err)
{
    stk_bytes bytes = stk_bytes_of(name, data, size);
    return read_all(&bytes, out, err);
}

stk_status stk_safetensors_load(const char *path, stk_safetensors **out, stk_error *err)
{
    if (!path || !out)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_safetensors_load: path and out must be given");
    stk_bytes bytes;
    STK_TRY(stk_bytes_open(path, &bytes, err));
    stk_status status = read_all(&bytes, out, err);
    stk_bytes_close(&bytes);
    return status;
}

int32_t stk_safetensors_count(const stk_safetensors *file)
{
    return file ? (int32_t)file->list.count : 0;
}

const char *stk_safetensors_name(const stk_safetensors *file, int32_t index)
{
    return file && index >= 0 && index < file->list.count ? file->list.items[index].name : NULL;
}

stk_tensor *stk_safetensors_tensor(const stk_safetensors *file, int32_t index)
{
    return file && index >= 0 && index < file->list.count ? file->list.items[index].tensor : NULL;
}

stk_tensor *stk_safetensors_find(const stk_safetensors *file, const char *name)
{
    return file && name ? stk_named_find(&file->list, name) : NULL;
}

void stk_safetensors_release(stk_safetensors *file)
{
    if (!file) return;
    stk_named_release(&file->list);
    stk_free(file);
}

/* ---- writing ----------------------------------------------------------------------------------- */

static const char *dtype_name(stk_dtype dtype)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (dtypes[i].dtype == dtype) return dtypes[i].name;
    return NULL;
}

/* Wide elements first: without holes between tensors this keeps every element aligned. */
static void order_by_width(int32_t count, stk_tensor *const *tensors, int32_t *order)
{
    int32_t n = 0;
    for (int64_t width = 8; width >= 1; width /= 2)
        for (int32_t i = 0; i < count; i++)
            if (stk_dtype_size(tensors[i]->dtype) == width) order[n++] = i;
}

static stk_status make_header(int32_t count, const char *const *names, stk_tensor *const *tensors,
                              const int32_t *order, char **text, size_t *size, stk_error *err)
{
    stk_json_writer w = {.indent = 0};
    int64_t at = 0;
    stk_json_begin_object(&w);
    for (int32_t k = 0; k < count; k++) {
        const stk_tensor *t = tensors[order[k]];
        stk_json_name(&w, names[order[k]]);
        stk_json_begin_object(&w);
        stk_json_name(&w, "dtype");
        stk_json_put_text(&w, dtype_name(t->dtype));
        stk_json_name(&w, "shape");
        stk_json_begin_array(&w);
        for (int32_t i = 0; i < t->rank; i++) stk_json_put_int(&w, t->shape[i]);
        stk_json_end_array(&w);
        stk_json_name(&w, "data_offsets");
        stk_json_begin_array(&w);
        stk_json_put_int(&w, at);
        stk_json_put_int(&w, at += stk_tensor_bytes(t));
        stk_json_end_array(&w);
        stk_json_end_object(&w);
    }
    stk_json_end_object(&w);
    return stk_json_finish(&w, text, size, err);
}

static stk_status write_header(stk_file_writer *w, const char *text, size_t size, stk_error *err)
{
    static const char spaces[8] = "        ";
    size_t pad = (8 - size % 8) % 8;
    uint8_t prefix[PREFIX];
    for (int i = 0; i < PREFIX; i++) prefix[i] = (uint8_t)((uint64_t)(size + pad) >> 8 * i);
    STK_TRY(stk_file_write(w, prefix, PREFIX, err));
    STK_TRY(stk_file_write(w, text, size, err));
    return stk_file_write(w, spaces, pad, err);
}

static stk_status write_tensor(stk_file_writer *w, stk_tensor *t, stk_error *err)
{
    stk_tensor *dense = NULL;
    STK_TRY(stk_tensor_dense(t, &dense, err));
    stk_status status = stk_file_write(w, dense->data, (size_t)stk_tensor_bytes(dense), err);
    stk_tensor_release(dense);
    return status;
}

static stk_status check_tensors(const char *path, int32_t count, const char *const *names,
                                stk_tensor *const *tensors, const char **scratch, stk_error *err)
{
    for (int32_t i = 0; i < count; i++) {
        if (!names[i] || !names[i][0] || !tensors[i])
            return stk_fail(err, STK_ERR_ARGUMENT, "%s: tensor %d has no name or is NULL", path, i);
        if (!dtype_name(tensors[i]->dtype))
            return stk_fail(err, STK_ERR_DTYPE,
                            "%s: tensor '%s' holds %s, which safetensors cannot", path, names[i],
                            stk_dtype_name(tensors[i]->dtype));
        scratch[i] = names[i];
    }
    const char *twice = stk_named_twice(scratch, count);
    return twice ? stk_fail(err, STK_ERR_ARGUMENT, "%s: two tensors are called '%s'", path, twice)
                 : STK_OK;
}

stk_status stk_safetensors_save(const char *path, int32_t count, const char *const *names,
                                stk_tensor *const *tensors, stk_error *err)
{
    if (!path || count < 0 || (count && (!names || !tensors)))
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_safetensors_save: path, names and tensors must be given");
    const char **scratch = stk_calloc((size_t)count + 1, sizeof *scratch);
    int32_t *order = stk_calloc((size_t)count + 1, sizeof *order);
    char *text = NULL;
    size_t size = 0;
    stk_file_writer w = {.fd = -1};
    stk_status status = scratch && order ? STK_OK : stk_fail_memory(err, path, 0);
    if (status == STK_OK) status = check_tensors(path, count, names, tensors, scratch, err);
    if (status == STK_OK) {
        order_by_width(count, tensors, order);
        status = make_header(count, names, tensors, order, &text, &size, err);
    }
    if (status == STK_OK) status = stk_file_create(path, &w, err);
    if (status == STK_OK) status = write_header(&w, text, size, err);
    for (int32_t i = 0; status == STK_OK && i < count; i++)
        status = write_tensor(&w, tensors[order[i]], err);
    if (status == STK_OK)
        status = stk_file_commit(&w, err);
    else
        stk_file_abandon(&w);
    stk_free(text);
    stk_free(order);
    stk_free(scratch);
    return status;
}
