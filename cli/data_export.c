/* stoker data convert FILE.tfrecord OUT.npz or OUT.csv: Examples back to arrays or to a table. */
#include "data_rows.h"

#include <stdlib.h>
#include <string.h>

typedef struct column {
    const data_feature *feature;
    stk_tensor *tensor; /* [records] or [records, values]; numbers */
    stk_string *texts;  /* strings: places in the mapped file */
} column;

typedef struct export
{
    const char *from;
    data_catalog catalog;
    column *columns;
    int64_t rows, at;
    stk_record_reader *reader;
    bool bad;
}
export;

static stk_status fail(stk_error *err, stk_status code, const char *path, const char *why)
{
    err->code = code;
    snprintf(err->message, sizeof err->message, "%s: %s", path, why);
    return code;
}

/* Every record has every feature with as many values. */
static stk_status check(const export *x, stk_error *err)
{
    char why[256];
    for (int i = 0; i < x->catalog.count; i++) {
        const data_feature *f = &x->catalog.features[i];
        if (f->records == x->rows && f->least == f->most && !f->list && !f->mixed && f->most > 0 &&
            (f->dtype != STK_STRING || f->most == 1))
            continue;
        snprintf(why, sizeof why,
                 "feature \"%.80s\" is not alike in all records (%lld of %lld have it, with %lld "
                 "to %lld "
                 "values), so it makes no column",
                 f->name, (long long)f->records, (long long)x->rows, (long long)f->least,
                 (long long)f->most);
        return fail(err, STK_ERR_SHAPE, x->from, why);
    }
    if (x->catalog.others || !x->catalog.count)
        return fail(err, STK_ERR_FORMAT, x->from, "its records are no tf.train.Examples");
    return STK_OK;
}

static void take(void *context, const stk_feature_seen *seen)
{
    export *x = context;
    data_feature *f =
        data_catalog_find(&x->catalog, seen->name.data, (size_t)seen->name.size, false);
    stk_tensor *values = NULL;
    if (!f || stk_feature_values(seen, &values, NULL) != STK_OK) {
        x->bad = true;
        return;
    }
    column *c = &x->columns[f - x->catalog.features];
    if (c->texts) {
        const stk_string *s = values->data;
        char *copy = malloc((size_t)s->size + 1);
        c->texts[x->at].data = copy; /* freed with the column */
        if (copy) memcpy(copy, s->data, (size_t)s->size);
        if (copy) c->texts[x->at].size = s->size;
        x->bad |= !copy;
    } else {
        size_t bytes = (size_t)stk_tensor_bytes(values);
        memcpy((char *)c->tensor->data + (size_t)x->at * bytes, values->data, bytes);
    }
    stk_tensor_release(values);
}

static stk_status make_columns(export *x, stk_error *err)
{
    x->columns = calloc((size_t)x->catalog.count, sizeof *x->columns);
    if (!x->columns) return fail(err, STK_ERR_MEMORY, x->from, "out of memory");
    for (int i = 0; i < x->catalog.count; i++) {
        column *c = &x->columns[i];
        c->feature = &x->catalog.features[i];
        if (c->feature->dtype == STK_STRING) {
            c->texts = calloc((size_t)x->rows, sizeof *c->texts);
            if (!c->texts) return fail(err, STK_ERR_MEMORY, x->from, "out of memory");
            continue;
        }
        int64_t shape[2] = {x->rows, c->feature->most};
        stk_status status =
            stk_tensor_new(c->feature->dtype, shape[1] == 1 ? 1 : 2, shape, &c->tensor, err);
        if (status != STK_OK) return status;
    }
    return STK_OK;
}

/* Calls visit for every record. */
static stk_status each(export *x, bool fill, stk_error *err)
{
    stk_string record;
    stk_status status = stk_records_open(x->from, NULL, &x->reader, err);
    for (bool end = false; status == STK_OK && !end;) {
        status = stk_records_next(x->reader, &record, &end, err);
        if (status != STK_OK || end) break;
        if (fill) {
            status = stk_example_visit(record.data, (size_t)record.size, true, take, x, err);
            x->at++;
        } else {
            data_catalog_add(&x->catalog, record.data, (size_t)record.size);
            x->rows++;
        }
    }
    stk_records_close(x->reader);
    x->reader = NULL;
    if (status == STK_OK && (x->bad || x->catalog.no_memory))
        return fail(err, STK_ERR_MEMORY, x->from, "out of memory");
    return status;
}

static stk_status strings_to_tensors(export *x, stk_error *err)
{
    for (int i = 0; i < x->catalog.count; i++) {
        column *c = &x->columns[i];
        if (!c->texts) continue;
        stk_status status = stk_tensor_strings(1, &x->rows, c->texts, &c->tensor, err);
        if (status != STK_OK) return status;
    }
    return STK_OK;
}

static stk_status save_npz(const export *x, const char *to, stk_error *err)
{
    int n = x->catalog.count;
    const char **names = calloc((size_t)n, sizeof *names);
    stk_tensor **tensors = calloc((size_t)n, sizeof *tensors);
    stk_status status = names && tensors ? STK_OK : fail(err, STK_ERR_MEMORY, to, "out of memory");
    for (int i = 0; status == STK_OK && i < n; i++) {
        names[i] = x->columns[i].feature->name;
        tensors[i] = x->columns[i].tensor;
    }
    if (status == STK_OK) status = stk_npz_save(to, n, names, tensors, err);
    free(names);
    free(tensors);
    return status;
}

/* Quotes where they are needed. */
static void put_text(FILE *out, const char *text, int64_t size)
{
    bool quote = size == 0;
    for (int64_t i = 0; i < size; i++) quote |= strchr(",\"\r\n", text[i]) != NULL;
    if (quote) fputc('"', out);
    for (int64_t i = 0; i < size; i++) {
        if (text[i] == '"') fputc('"', out);
        fputc(text[i], out);
    }
    if (quote) fputc('"', out);
}

static void put_header(const export *x, FILE *out)
{
    for (int i = 0; i < x->catalog.count; i++)
        for (int64_t k = 0; k < x->columns[i].feature->most; k++) {
            char name[300];
            const data_feature *f = x->columns[i].feature;
            if (f->most == 1)
                snprintf(name, sizeof name, "%s", f->name);
            else
                snprintf(name, sizeof name, "%s_%lld", f->name, (long long)k);
            if (i || k) fputc(',', out);
            put_text(out, name, (int64_t)strlen(name));
        }
    fputc('\n', out);
}

static void put_row(const export *x, int64_t row, FILE *out)
{
    for (int i = 0; i < x->catalog.count; i++) {
        const column *c = &x->columns[i];
        for (int64_t k = 0; k < c->feature->most; k++) {
            int64_t at = row * c->feature->most + k;
            if (i || k) fputc(',', out);
            if (c->tensor->dtype == STK_STRING)
                put_text(out, c->texts[row].data, c->texts[row].size);
            else if (c->tensor->dtype == STK_I64)
                fprintf(out, "%lld", (long long)((const int64_t *)c->tensor->data)[at]);
            else
                fprintf(out, "%.9g", (double)((const float *)c->tensor->data)[at]);
        }
    }
    fputc('\n', out);
}

static void put_csv(void *context, FILE *to)
{
    const export *x = context;
    put_header(x, to);
    for (int64_t r = 0; r < x->rows; r++) put_row(x, r, to);
}

int data_export(const cli_args *args, const char *from, const char *to)
{
    stk_error err;
    export x = {.from = from};
    stk_status status = each(&x, false, &err);
    if (status == STK_OK) status = check(&x, &err);
    if (status == STK_OK) status = make_columns(&x, &err);
    if (status == STK_OK) status = each(&x, true, &err);
    if (status == STK_OK) status = strings_to_tensors(&x, &err);
    if (status == STK_OK)
        status =
            data_ends(to, ".npz") ? save_npz(&x, to, &err) : stk_file_save(to, put_csv, &x, &err);
    int code = status == STK_OK ? CLI_OK : cli_fail(args, &err);
    if (status == STK_OK && !args->quiet && !args->json)
        printf("%s: %lld rows, %d columns\n", to, (long long)x.rows, x.catalog.count);
    for (int i = 0; x.columns && i < x.catalog.count; i++) {
        for (int64_t r = 0; x.columns[i].texts && r < x.rows; r++)
            free((char *)(uintptr_t)x.columns[i].texts[r].data);
        free(x.columns[i].texts);
        stk_tensor_release(x.columns[i].tensor);
    }
    free(x.columns);
    data_catalog_free(&x.catalog);
    return code;
}
