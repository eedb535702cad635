/* Rows of tables, arrays, folders and record files, as records. */
#include "data_rows.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static stk_status fail(stk_error *err, stk_status code, const char *path, const char *why)
{
    err->code = code;
    snprintf(err->message, sizeof err->message, "%s: %s", path, why);
    return code;
}

/* ---- columns: csv and npz ------------------------------------------------------------------------ */

/* Row i of a tensor as a tensor of its own. uint8 rows of more than one element become one string of bytes, which is
 * how images are stored. */
static stk_status row_of(stk_tensor *t, int64_t i, stk_tensor **out, stk_error *err)
{
    int64_t start[STK_MAX_RANK] = {i}, size[STK_MAX_RANK];
    memcpy(size, t->shape, sizeof size);
    size[0] = 1;
    stk_tensor *view = NULL, *dense = NULL;
    stk_status status = stk_tensor_slice(t, start, size, &view, err);
    if (status == STK_OK) status = stk_tensor_dense(view, &dense, err);
    stk_tensor_release(view);
    if (status != STK_OK) return status;
    if (t->dtype != STK_U8 || t->rank == 1) {
        *out = dense;
        return STK_OK;
    }
    stk_string bytes = {dense->data, stk_tensor_bytes(dense)};
    status = stk_tensor_strings(1, (int64_t[]){1}, &bytes, out, err);
    stk_tensor_release(dense);
    return status;
}

static stk_status column_record(data_rows *r, int64_t index, char **bytes, size_t *size,
                                bool *borrowed, stk_error *err)
{
    stk_named_tensor *features = calloc((size_t)r->columns, sizeof *features);
    stk_tensor **rows = calloc((size_t)r->columns, sizeof *rows);
    stk_status status =
        features && rows ? STK_OK : fail(err, STK_ERR_MEMORY, "convert", "out of memory");
    for (int32_t i = 0; status == STK_OK && i < r->columns; i++) {
        status = row_of(r->tensors[i], index, &rows[i], err);
        features[i] = (stk_named_tensor){r->names[i], rows[i]};
    }
    if (status == STK_OK) status = stk_example_encode(r->columns, features, bytes, size, err);
    for (int32_t i = 0; rows && i < r->columns; i++) stk_tensor_release(rows[i]);
    free(features);
    free(rows);
    *borrowed = false;
    return status;
}

static stk_status keep_names(data_rows *r, int32_t n, stk_error *err)
{
    r->columns = n;
    r->tensors = calloc((size_t)n, sizeof *r->tensors);
    r->names = calloc((size_t)n, sizeof *r->names);
    return r->tensors && r->names ? STK_OK : fail(err, STK_ERR_MEMORY, "convert", "out of memory");
}

static stk_status open_csv(const char *path, data_rows *r, stk_error *err)
{
    stk_status status = stk_csv_open(path, NULL, &r->csv, err);
    if (status == STK_OK) status = keep_names(r, stk_csv_column_count(r->csv), err);
    if (status == STK_OK) status = stk_csv_read(r->csv, r->tensors, err);
    for (int32_t i = 0; status == STK_OK && i < r->columns; i++) {
        char name[32];
        const char *title = stk_csv_column_name(r->csv, i);
        snprintf(name, sizeof name, "column%d", i);
        r->names[i] = strdup(title[0] ? title : name);
        if (!r->names[i]) status = fail(err, STK_ERR_MEMORY, path, "out of memory");
    }
    if (status == STK_OK) r->count = r->tensors[0]->shape[0];
    r->record = column_record;
    return status;
}

static stk_status open_arrays(const char *path, data_rows *r, stk_error *err)
{
    stk_tensor *one = NULL;
    bool single = data_ends(path, ".npy");
    stk_status status = single ? stk_npy_map(path, &one, err) : stk_npz_load(path, &r->npz, err);
    if (status == STK_OK) status = keep_names(r, single ? 1 : stk_npz_count(r->npz), err);
    for (int32_t i = 0; status == STK_OK && i < r->columns; i++) {
        stk_tensor *t = single ? one : stk_npz_tensor(r->npz, i);
        r->tensors[i] = stk_tensor_retain(t);
        r->names[i] = strdup(single ? "x" : stk_npz_name(r->npz, i));
        if (!r->names[i])
            status = fail(err, STK_ERR_MEMORY, path, "out of memory");
        else if (t->rank < 1 || t->shape[0] != r->tensors[0]->shape[0])
            status = fail(err, STK_ERR_SHAPE, path,
                          "its arrays have different first sizes; rows cannot be made of them");
    }
    if (status == STK_OK) r->count = r->columns ? r->tensors[0]->shape[0] : 0;
    stk_tensor_release(one);
    r->record = column_record;
    return status;
}

/* ---- folders ------------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static stk_status list(const char *path, char ***out, int64_t *count, stk_error *err)
{
    DIR *d = opendir(path);
    *out = NULL;
    *count = 0;
    if (!d) return fail(err, STK_ERR_IO, path, strerror(errno));
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        size_t n = strlen(path) + strlen(e->d_name) + 2;
        char *name = malloc(n), **grown = realloc(*out, (size_t)(*count + 1) * sizeof *grown);
        if (grown) *out = grown;
        if (!name || !grown) {
            free(name);
            closedir(d);
            return fail(err, STK_ERR_MEMORY, path, "out of memory");
        }
        snprintf(name, n, "%s/%s", path, e->d_name);
        (*out)[(*count)++] = name;
    }
    closedir(d);
    if (*count) qsort(*out, (size_t)*count, sizeof **out, by_text);
    return STK_OK;
}

static void free_list(char **names, int64_t count)
{
    for (int64_t i = 0; i < count; i++) free(names[i]);
    free(names);
}

static bool is_picture(const char *name)
{
    return data_ends(name, ".jpg") || data_ends(name, ".jpeg") || data_ends(name, ".png") ||
           data_ends(name, ".gif") || data_ends(name, ".bmp");
}

/* Takes over the names that are pictures. */
static stk_status add_class(data_rows *r, char **names, int64_t n, int32_t label, stk_error *err)
{
    for (int64_t i = 0; i < n; i++) {
        if (!is_picture(names[i])) continue;
        char **files = realloc(r->files, (size_t)(r->count + 1) * sizeof *files);
        if (files) r->files = files;
        int32_t *labels = realloc(r->labels, (size_t)(r->count + 1) * sizeof *labels);
        if (labels) r->labels = labels;
        if (!files || !labels) return fail(err, STK_ERR_MEMORY, "convert", "out of memory");
        r->files[r->count] = names[i];
        r->labels[r->count++] = label;
        names[i] = NULL;
    }
    return STK_OK;
}

/* The picture's file as it is, with label, class and name. */
static stk_status picture_record(data_rows *r, int64_t index, char **bytes, size_t *size,
                                 bool *borrowed, stk_error *err)
{
    const char *path = r->files[index], *slash = strrchr(path, '/');
    FILE *f = fopen(path, "rb");
    char *data = NULL;
    long length = -1;
    if (f && fseek(f, 0, SEEK_END) == 0 && (length = ftell(f)) >= 0 && fseek(f, 0, SEEK_SET) == 0)
        data = malloc((size_t)length + 1);
    bool good = data && fread(data, 1, (size_t)length, f) == (size_t)length;
    stk_status status = good ? STK_OK : fail(err, STK_ERR_IO, path, "cannot be read");
    if (f) fclose(f);
    if (status == STK_OK && stk_picture_detect(data, (size_t)length) == STK_PICTURE_UNKNOWN)
        status = fail(err, STK_ERR_FORMAT, path, "is no picture, whatever its name says");
    const char *class_name = r->classes[r->labels[index]];
    int64_t label = r->labels[index], one = 1;
    stk_string texts[3] = {{data, length},
                           {class_name, (int64_t)strlen(class_name)},
                           {slash ? slash + 1 : path, (int64_t)strlen(slash ? slash + 1 : path)}};
    stk_tensor *t[4] = {NULL};
    for (int i = 0; status == STK_OK && i < 3; i++)
        status = stk_tensor_strings(1, &one, &texts[i], &t[i], err);
    if (status == STK_OK) status = stk_tensor_from(STK_I64, 1, &one, &label, &t[3], err);
    stk_named_tensor features[4] = {
        {"image", t[0]}, {"class", t[1]}, {"filename", t[2]}, {"label", t[3]}};
    if (status == STK_OK) status = stk_example_encode(4, features, bytes, size, err);
    for (int i = 0; i < 4; i++) stk_tensor_release(t[i]);
    free(data);
    *borrowed = false;
    return status;
}

static stk_status open_folder(const char *path, data_rows *r, stk_error *err)
{
    char **names = NULL;
    int64_t n = 0;
    stk_status status = list(path, &names, &n, err);
    r->classes = calloc((size_t)n + 1, sizeof *r->classes);
    if (status == STK_OK && !r->classes) status = fail(err, STK_ERR_MEMORY, path, "out of memory");
    for (int64_t i = 0; status == STK_OK && i < n; i++) {
        char **files = NULL;
        int64_t count = 0;
        if (!data_is_folder(names[i])) continue;
        status = list(names[i], &files, &count, err);
        if (status == STK_OK) status = add_class(r, files, count, r->class_count, err);
        free_list(files, count);
        r->classes[r->class_count] = strdup(strrchr(names[i], '/') + 1);
        if (!r->classes[r->class_count]) status = fail(err, STK_ERR_MEMORY, path, "out of memory");
        r->class_count++;
    }
    free_list(names, n);
    if (status == STK_OK && r->count == 0)
        status = fail(err, STK_ERR_FORMAT, path, "has no folders with pictures");
    r->record = picture_record;
    return status;
}

/* ---- record files -------------------------------------------------------------------------------- */

static stk_status same_record(data_rows *r, int64_t index, char **bytes, size_t *size,
                              bool *borrowed, stk_error *err)
{
    stk_string record;
    stk_status status = stk_records_at(r->reader, index, &record, err);
    if (status != STK_OK) return status;
    *bytes = (char *)(uintptr_t)record.data;
    *size = (size_t)record.size;
    *borrowed = true;
    return STK_OK;
}

static stk_status open_records(const char *path, data_rows *r, stk_error *err)
{
    stk_status status = stk_records_open(path, NULL, &r->reader, err);
    if (status == STK_OK) status = stk_records_count(r->reader, &r->count, err);
    r->record = same_record;
    return status;
}

stk_status data_rows_open(const char *path, data_rows *r, stk_error *err)
{
    *r = (data_rows){0};
    if (data_is_folder(path)) return open_folder(path, r, err);
    if (data_ends(path, ".csv")) return open_csv(path, r, err);
    if (data_ends(path, ".npz") || data_ends(path, ".npy")) return open_arrays(path, r, err);
    return open_records(path, r, err);
}

void data_rows_close(data_rows *r)
{
    for (int32_t i = 0; i < r->columns; i++) {
        if (r->tensors) stk_tensor_release(r->tensors[i]);
        if (r->names) free(r->names[i]);
    }
    for (int32_t i = 0; i < r->class_count; i++) free(r->classes[i]);
    free_list(r->files, r->files ? r->count : 0);
    free(r->labels);
    free(r->classes);
    free(r->tensors);
    free(r->names);
    stk_csv_close(r->csv);
    stk_npz_release(r->npz);
    stk_records_close(r->reader);
    *r = (data_rows){0};
}
