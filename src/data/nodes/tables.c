/* csv, npz - whole tables as rows: read once, by all processors, or mapped. What is left is the memory node. */
#include "base/dtype.h"
#include "base/spill.h"
#include "base/tensor.h"
#include "data/core/node.h"
#include "stoker/sources.h"

#include <stdio.h>
#include <string.h>

/* ---- csv ---------------------------------------------------------------------------------------- */

/* Rows first .. end of a column, `step` apart. */
static void stack_rows(const stk_tensor *c, int64_t first, int64_t end, float *to, int64_t step)
{
    for (int64_t r = first; r < end; r++) {
        const char *at = (const char *)c->data + r * stk_dtype_size(c->dtype);
        to[r * step] = c->dtype == STK_F32 ? *(const float *)(const void *)at
                                           : (float)stk_load_f64(c->dtype, at);
    }
}

/* Columns but `label` as one float32 [rows, columns]. */
static stk_status stack_columns(int32_t n, stk_tensor *const *columns, int32_t label,
                                const stk_csv *table, stk_tensor **out, stk_error *err)
{
    int64_t shape[2] = {columns[0]->shape[0], n - (label >= 0)};
    if (shape[1] < 1)
        return stk_fail(err, STK_ERR_SHAPE, "csv: no column is left beside the label");
    for (int32_t i = 0; i < n; i++)
        if (i != label && columns[i]->dtype == STK_STRING)
            return stk_fail(
                err, STK_ERR_DTYPE,
                "csv: column \"%s\" holds text and cannot be stacked with numbers; leave "
                "it out with \"columns\", or make it numbers",
                stk_csv_column_name(table, i));
    STK_TRY(stk_tensor_roomy(stk_csv_column_name(table, 0), STK_F32, 2, shape, out, err));
    enum { BLOCK = 4096 }; /* rows at a time: the result may be larger than memory */
    for (int64_t first = 0; first < shape[0]; first += BLOCK) {
        int64_t end = stk_min_i64(first + BLOCK, shape[0]);
        for (int32_t i = 0, k = 0; i < n; i++)
            if (i != label)
                stack_rows(columns[i], first, end, (float *)(*out)->data + k++, shape[1]);
    }
    return STK_OK;
}

/* "({a:0,b:1},2)", or "(0,1)" for stacked ones. The label is the last part. NULL: no memory. */
static char *label_structure(int32_t features, const char *const *names, bool stacked)
{
    size_t room = 32;
    for (int32_t i = 0; i < features; i++) room += strlen(names[i]) + 16;
    char *text = stk_malloc(room), *at = text;
    if (!text) return NULL;
    if (stacked) {
        snprintf(text, room, "(0,1)");
        return text;
    }
    at += snprintf(at, room, "({");
    for (int32_t i = 0; i < features; i++)
        at += snprintf(at, room - (size_t)(at - text), "%s%s:%d", i ? "," : "", names[i], i);
    snprintf(at, room - (size_t)(at - text), "},%d)", features);
    return text;
}

static stk_status find_label(const stk_csv *table, const char *label, int32_t *out, stk_error *err)
{
    *out = -1;
    if (!label) return STK_OK;
    for (int32_t i = 0; i < stk_csv_column_count(table); i++)
        if (strcmp(stk_csv_column_name(table, i), label) == 0) *out = i;
    if (*out >= 0) return STK_OK;
    return stk_fail(err, STK_ERR_ARGUMENT, "csv: there is no column \"%s\" to be the label", label);
}

/* parts, names: room for n + 1. */
static stk_dataset *arrange(const stk_csv *table, const stk_csv_source *how, int32_t n,
                            stk_tensor **columns, stk_tensor **parts, const char **names,
                            stk_error *err)
{
    int32_t label, count = 0;
    stk_tensor *stacked = NULL;
    if (find_label(table, how->label, &label, err) != STK_OK) return NULL;
    if (how->stack) {
        if (stack_columns(n, columns, label, table, &stacked, err) != STK_OK) {
            stk_tensor_release(stacked);
            return NULL;
        }
        parts[count] = stacked;
        names[count++] = "features";
    }
    for (int32_t i = 0; i < n && !how->stack; i++) {
        if (i == label) continue;
        parts[count] = columns[i];
        names[count++] = stk_csv_column_name(table, i);
    }
    char *structure = NULL;
    if (label >= 0) {
        structure = label_structure(count, names, how->stack);
        parts[count] = columns[label];
        names[count++] = how->label;
    }
    stk_dataset *ds = NULL;
    if (label >= 0 && !structure) {
        (void)stk_fail_memory(err, "csv", 64);
    } else {
        stk_error inner;
        ds = stk_data_slices(count, parts, names, structure, &inner);
        /* Names that the notation of structures cannot hold: a flat tuple, label last. */
        if (!ds && inner.code == STK_ERR_MEMORY)
            (void)stk_fail(err, inner.code, "%s", inner.message);
        else if (!ds)
            ds = stk_data_slices(count, parts, names, NULL, err);
    }
    stk_free(structure);
    stk_tensor_release(stacked);
    return ds;
}

stk_dataset *stk_data_csv(const char *path, const stk_csv_options *options,
                          const stk_csv_source *how, stk_error *err)
{
    stk_csv *table = NULL;
    stk_csv_source plain = {0};
    if (!how) how = &plain;
    if (stk_csv_open(path, options, &table, err) != STK_OK) return NULL;
    int32_t n = stk_csv_column_count(table);
    stk_tensor **columns = stk_parts_new(n), **parts = stk_parts_new((int64_t)n + 1);
    const char **names = stk_calloc((size_t)n + 1, sizeof *names);
    stk_dataset *ds = NULL;
    if (!columns || !parts || !names)
        (void)stk_fail_memory(err, "csv", (size_t)n * 3 * sizeof *columns);
    else if (stk_csv_read(table, columns, err) == STK_OK)
        ds = arrange(table, how, n, columns, parts, names, err);
    if (columns) stk_parts_release(n, columns);
    stk_free(columns);
    stk_free(parts);
    stk_free(names);
    stk_csv_close(table);
    return ds;
}

/* ---- npz and npy --------------------------------------------------------------------------------- */

static stk_dataset *from_npy(const char *path, stk_error *err)
{
    stk_tensor *t = NULL;
    if (stk_npy_map(path, &t, err) != STK_OK) return NULL;
    stk_dataset *ds = stk_data_slices(1, &t, NULL, NULL, err);
    stk_tensor_release(t);
    return ds;
}

static void no_array(const stk_npz *npz, const char *path, const char *name, stk_error *err)
{
    char list[400] = "";
    for (int32_t i = 0; i < stk_npz_count(npz); i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), " %s", stk_npz_name(npz, i));
    (void)stk_fail(err, STK_ERR_FORMAT, "%s: holds no array \"%.80s\"; it has%s", path, name, list);
}

static stk_dataset *from_npz(const stk_npz *npz, const char *path, int32_t count,
                             const char *const *names, stk_error *err)
{
    enum { MOST = 256 };
    stk_tensor *parts[MOST];
    const char *titles[MOST];
    int32_t n = count ? count : stk_npz_count(npz);
    if (n < 1 || n > MOST) {
        (void)stk_fail(err, STK_ERR_FORMAT, "%s: %d arrays; 1 to %d make a dataset", path, n, MOST);
        return NULL;
    }
    for (int32_t i = 0; i < n; i++) {
        titles[i] = count ? names[i] : stk_npz_name(npz, i);
        parts[i] = count ? stk_npz_find(npz, names[i]) : stk_npz_tensor(npz, i);
        if (!parts[i]) {
            no_array(npz, path, names[i], err);
            return NULL;
        }
    }
    return stk_data_slices(n, parts, titles, NULL, err);
}

stk_dataset *stk_data_npz(const char *path, int32_t count, const char *const *names, stk_error *err)
{
    if (!path || (count > 0 && !names)) {
        (void)stk_fail(err, STK_ERR_ARGUMENT, "npz: path or names are NULL");
        return NULL;
    }
    size_t length = strlen(path);
    if (length > 4 && strcmp(path + length - 4, ".npy") == 0) return from_npy(path, err);
    stk_npz *npz = NULL;
    if (stk_npz_load(path, &npz, err) != STK_OK) return NULL;
    stk_dataset *ds = from_npz(npz, path, count, names, err);
    stk_npz_release(npz);
    return ds;
}
