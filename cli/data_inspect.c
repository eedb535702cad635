/* stoker data inspect, head, stats. */
#include "data.h"
#include "table.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static stk_status scan(const cli_args *args, const char *path, int64_t most, data_catalog *c,
                       stk_record_stats *stats, stk_error *err)
{
    stk_record_options o;
    stk_record_reader *r = NULL;
    if (!data_record_options(args, &o)) {
        err->code = STK_ERR_ARGUMENT;
        err->message[0] = 0;
        return STK_ERR_ARGUMENT;
    }
    o.policy = STK_BAD_SKIP;
    stk_status status = stk_records_open(path, &o, &r, err);
    if (status != STK_OK) return status;
    stk_string record;
    for (bool end = false;
         status == STK_OK && !end && (most < 0 || c->examples + c->others < most);) {
        status = stk_records_next(r, &record, &end, err);
        if (status == STK_OK && !end) data_catalog_add(c, record.data, (size_t)record.size);
    }
    *stats = stk_records_stats(r);
    stk_records_close(r);
    if (status == STK_OK && c->no_memory) {
        err->code = status = STK_ERR_MEMORY;
        snprintf(err->message, sizeof err->message, "%s: out of memory", path);
    }
    return status;
}

static const char *type_name(const data_feature *f)
{
    if (f->mixed) return "mixed";
    return f->dtype == STK_DTYPE_COUNT ? "empty" : stk_dtype_name(f->dtype);
}

static void values_text(const data_feature *f, char *text, size_t size)
{
    if (f->least == f->most)
        snprintf(text, size, "%lld%s", (long long)f->least, f->list ? " steps" : "");
    else
        snprintf(text, size, "%lld..%lld%s", (long long)f->least, (long long)f->most,
                 f->list ? " steps" : "");
}

static void print_features(const data_catalog *c, bool values)
{
    cli_table t = {.columns = values ? 9 : 5, .right = values ? 0x1fcu : 0x1cu};
    static const char *const titles[9] = {"feature", "type", "values", "records",   "bytes",
                                          "min",     "max",  "mean",   "not finite"};
    for (int i = 0; i < t.columns; i++) cli_cell(&t, "%s", titles[i]);
    for (int i = 0; i < c->count; i++) {
        const data_feature *f = &c->features[i];
        char n[64];
        values_text(f, n, sizeof n);
        cli_cell(&t, "%s", f->name);
        cli_cell(&t, "%s", type_name(f));
        cli_cell(&t, "%s", n);
        cli_cell(&t, "%lld", (long long)f->records);
        cli_cell(&t, "%lld", (long long)f->bytes);
        if (!values) continue;
        bool any = f->numbers > 0;
        cli_cell(&t, any ? "%.6g" : "-", f->low);
        cli_cell(&t, any ? "%.6g" : "-", f->high);
        cli_cell(&t, any ? "%.6g" : "-", any ? f->sum / (double)f->numbers : 0);
        cli_cell(&t, "%lld", (long long)f->odd);
    }
    cli_table_print(&t, stdout, "");
    cli_table_free(&t);
}

static void print_json(const data_catalog *c, const stk_record_stats *s)
{
    printf(
        "{\"records\": %lld, \"bytes\": %lld, \"bad\": %lld, \"examples\": %lld, \"features\": [",
        (long long)s->records, (long long)s->bytes, (long long)s->bad, (long long)c->examples);
    for (int i = 0; i < c->count; i++) {
        const data_feature *f = &c->features[i];
        printf("%s{\"name\": ", i ? ", " : "");
        cli_json_text(stdout, f->name);
        printf(", \"type\": \"%s\", \"records\": %lld, \"bytes\": %lld, \"least\": %lld, \"most\": "
               "%lld",
               type_name(f), (long long)f->records, (long long)f->bytes, (long long)f->least,
               (long long)f->most);
        if (f->numbers) {
            printf(", \"min\": ");
            cli_json_number(stdout, f->low);
            printf(", \"max\": ");
            cli_json_number(stdout, f->high);
            printf(", \"mean\": ");
            cli_json_number(stdout, f->sum / (double)f->numbers);
        }
        if (c->values) printf(", \"not_finite\": %lld", (long long)f->odd);
        printf("}");
    }
    printf("]}\n");
}

static void print_balance(const data_catalog *c)
{
    for (int i = 0; i < c->count; i++) {
        const data_feature *f = &c->features[i];
        if (f->labels < 2 || f->dtype != STK_I64) continue;
        printf("\n%s: %lld different values\n", f->name, (long long)f->labels);
        cli_table t = {.columns = 3, .right = 7};
        for (int64_t k = 0; k < f->labels; k++) {
            cli_cell(&t, "%lld", (long long)f->label[k]);
            cli_cell(&t, "%lld", (long long)f->label_count[k]);
            cli_cell(&t, "%.1f %%", 100.0 * (double)f->label_count[k] / (double)f->records);
        }
        cli_table_print(&t, stdout, "  ");
        cli_table_free(&t);
    }
}

/* ---- tables and arrays ----------------------------------------------------------------------------- */

typedef struct numbers {
    double low, high, mean;
    int64_t finite, others; /* others: NaN and infinite ones */
} numbers;

static numbers tensor_numbers(const stk_tensor *t)
{
    numbers x = {.low = INFINITY, .high = -INFINITY};
    double sum = 0;
    for (int64_t i = 0; i < stk_tensor_count(t) && t->dtype != STK_STRING; i++) {
        double v = stk_tensor_at(t, i);
        bool finite = isfinite(v);
        x.finite += finite;
        x.others += !finite;
        if (!finite) continue;
        x.low = fmin(x.low, v);
        x.high = fmax(x.high, v);
        sum += v;
    }
    x.mean = x.finite ? sum / (double)x.finite : 0;
    return x;
}

static void print_tensors_json(int32_t n, stk_tensor *const *tensors, const char *const *names)
{
    printf("{\"arrays\": [");
    for (int32_t i = 0; i < n; i++) {
        const stk_tensor *t = tensors[i];
        numbers x = tensor_numbers(t);
        printf("%s{\"name\": ", i ? ", " : "");
        cli_json_text(stdout, names[i]);
        printf(", \"type\": \"%s\", \"shape\": [", stk_dtype_name(t->dtype));
        for (int32_t k = 0; k < t->rank; k++)
            printf("%s%lld", k ? ", " : "", (long long)t->shape[k]);
        printf("], \"min\": ");
        cli_json_number(stdout, x.finite ? x.low : NAN);
        printf(", \"max\": ");
        cli_json_number(stdout, x.finite ? x.high : NAN);
        printf(", \"mean\": ");
        cli_json_number(stdout, x.finite ? x.mean : NAN);
        printf(", \"not_finite\": %lld}", (long long)x.others);
    }
    printf("]}\n");
}

static void print_tensors(const cli_args *args, int32_t n, stk_tensor *const *tensors,
                          const char *const *names)
{
    char text[160];
    if (args->json) {
        print_tensors_json(n, tensors, names);
        return;
    }
    cli_table t = {.columns = 6, .right = 0x3c};
    static const char *const titles[6] = {"name", "type", "min", "max", "mean", "not finite"};
    for (int i = 0; i < 6; i++) cli_cell(&t, "%s", titles[i]);
    for (int32_t i = 0; i < n; i++) {
        cli_cell(&t, "%s", names[i]);
        cli_cell(&t, "%s", stk_tensor_describe(tensors[i], text, sizeof text));
        numbers x = tensor_numbers(tensors[i]);
        cli_cell(&t, x.finite ? "%.6g" : "-", x.low);
        cli_cell(&t, x.finite ? "%.6g" : "-", x.high);
        cli_cell(&t, x.finite ? "%.6g" : "-", x.mean);
        cli_cell(&t, "%lld", (long long)x.others);
    }
    cli_table_print(&t, stdout, "");
    cli_table_free(&t);
}

static int show_csv(const cli_args *args, const char *path)
{
    stk_error err;
    stk_csv *table = NULL;
    if (stk_csv_open(path, NULL, &table, &err) != STK_OK) return cli_fail(args, &err);
    int32_t n = stk_csv_column_count(table);
    stk_tensor **columns = calloc((size_t)n, sizeof *columns);
    const char **names = calloc((size_t)n, sizeof *names);
    int code = CLI_MEMORY;
    if (columns && names) {
        code = stk_csv_read(table, columns, &err) == STK_OK ? CLI_OK : cli_fail(args, &err);
        for (int32_t i = 0; i < n; i++) names[i] = stk_csv_column_name(table, i);
        if (code == CLI_OK) print_tensors(args, n, columns, names);
        for (int32_t i = 0; i < n; i++) stk_tensor_release(columns[i]);
    }
    free(columns);
    free(names);
    stk_csv_close(table);
    return code;
}

static int show_arrays(const cli_args *args, const char *path)
{
    stk_error err;
    stk_tensor *one = NULL;
    stk_npz *npz = NULL;
    if (data_ends(path, ".npy")) {
        if (stk_npy_map(path, &one, &err) != STK_OK) return cli_fail(args, &err);
        print_tensors(args, 1, &one, (const char *const[]){"-"});
        stk_tensor_release(one);
        return CLI_OK;
    }
    if (stk_npz_load(path, &npz, &err) != STK_OK) return cli_fail(args, &err);
    int32_t n = stk_npz_count(npz);
    stk_tensor **arrays = calloc((size_t)n + 1, sizeof *arrays);
    const char **names = calloc((size_t)n + 1, sizeof *names);
    for (int32_t i = 0; arrays && names && i < n; i++) {
        arrays[i] = stk_npz_tensor(npz, i);
        names[i] = stk_npz_name(npz, i);
    }
    if (arrays && names) print_tensors(args, n, arrays, names);
    free(arrays);
    free(names);
    stk_npz_release(npz);
    return CLI_OK;
}

static int show(const cli_args *args, bool values)
{
    const char *path = args->rest[1];
    if (data_ends(path, ".csv")) return show_csv(args, path);
    if (data_ends(path, ".npz") || data_ends(path, ".npy")) return show_arrays(args, path);
    stk_error err;
    stk_record_stats stats;
    data_catalog c = {.values = values};
    stk_status status = scan(args, path, -1, &c, &stats, &err);
    if (status == STK_OK && !stats.records && stats.bad) {
        status = err.code = STK_ERR_FORMAT;
        snprintf(err.message, sizeof err.message,
                 "%s: is no TFRecord file, or one without a good record (%s); a .csv, .npy or .npz "
                 "file is "
                 "known by its name",
                 path, stats.last_reason);
    }
    int code = CLI_OK;
    if (status != STK_OK) {
        code = err.message[0] ? cli_fail(args, &err) : CLI_USAGE;
    } else if (args->json) {
        print_json(&c, &stats);
    } else {
        printf("%s: %lld records, %lld bytes", path, (long long)stats.records,
               (long long)stats.bytes);
        if (c.others) printf(", %lld of them no tf.train.Example", (long long)c.others);
        printf("\n");
        if (stats.bad)
            printf("%lld damaged places, the last: %s\n", (long long)stats.bad, stats.last_reason);
        if (c.count) print_features(&c, values);
        if (values) print_balance(&c);
    }
    data_catalog_free(&c);
    return code;
}

int data_inspect(const cli_args *args) { return show(args, false); }
int data_stats(const cli_args *args) { return show(args, true); }

/* ---- head ---------------------------------------------------------------------------------------- */

static void print_string(const stk_string *s)
{
    int64_t shown = s->size < 24 ? s->size : 24;
    bool text = true;
    for (int64_t i = 0; i < shown; i++) text &= isprint((unsigned char)s->data[i]) != 0;
    if (text)
        printf("\"%.*s\"%s", (int)shown, s->data, shown < s->size ? "..." : "");
    else
        printf("<%lld bytes>", (long long)s->size);
}

static void print_feature(void *context, const stk_feature_seen *seen)
{
    (void)context;
    printf("  %.*s: ", (int)seen->name.size, seen->name.data);
    stk_tensor *values = NULL;
    if (seen->list >= 0) {
        printf("%lld steps, %lld values\n", (long long)seen->list, (long long)seen->count);
        return;
    }
    if (stk_feature_values(seen, &values, NULL) == STK_OK) {
        for (int64_t i = 0; i < seen->count && i < 8; i++) {
            if (i) printf(", ");
            if (values->dtype == STK_STRING)
                print_string((const stk_string *)values->data + i);
            else if (values->dtype == STK_I64)
                printf("%lld", (long long)((const int64_t *)values->data)[i]);
            else
                printf("%.7g", stk_tensor_at(values, i));
        }
        if (seen->count > 8) printf(", ... (%lld)", (long long)seen->count);
    }
    printf("\n");
    stk_tensor_release(values);
}

int data_head(const cli_args *args)
{
    stk_error err;
    stk_record_options o;
    stk_record_reader *r = NULL;
    int64_t count = 5;
    const char *path = args->rest[1];
    if (!cli_int(args, "count", 1, 1 << 30, &count) || !data_record_options(args, &o))
        return CLI_USAGE;
    if (data_is_array(path))
        return cli_usage(
            args, "head shows records of TFRecord files; `stoker data stats %s` shows this one",
            path);
    if (stk_records_open(path, &o, &r, &err) != STK_OK) return cli_fail(args, &err);
    stk_status status = STK_OK;
    for (int64_t i = 0; i < count; i++) {
        stk_string record;
        bool end = false;
        status = stk_records_next(r, &record, &end, &err);
        if (status != STK_OK || end) break;
        printf("record %lld at byte %lld, %lld bytes\n", (long long)i,
               (long long)stk_records_offset(r), (long long)record.size);
        if (stk_example_visit(record.data, (size_t)record.size, true, print_feature, NULL, NULL) !=
            STK_OK) {
            printf("  ");
            print_string(&record);
            printf("\n");
        }
    }
    stk_records_close(r);
    return status == STK_OK ? CLI_OK : cli_fail(args, &err);
}
