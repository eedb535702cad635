/* stoker data verify, repair. */
#include "data_rows.h"
#include "table.h"

/* Checksums of one file, and whether its records are Examples. */
static stk_status verify_file(const cli_args *args, const char *path, stk_record_stats *stats,
                              data_catalog *c, stk_error *err)
{
    stk_record_options o;
    stk_record_reader *r = NULL;
    if (!data_record_options(args, &o)) return STK_ERR_ARGUMENT;
    o.policy = STK_BAD_SKIP;
    stk_status status = stk_records_open(path, &o, &r, err);
    if (status != STK_OK) return status;
    stk_string record;
    for (bool end = false; status == STK_OK && !end;) {
        status = stk_records_next(r, &record, &end, err);
        if (status == STK_OK && !end) data_catalog_add(c, record.data, (size_t)record.size);
    }
    *stats = stk_records_stats(r);
    stk_records_close(r);
    return status;
}

/* Arrays and tables have no records: they are good when all of them can be read. */
static stk_status verify_array(const char *path, stk_error *err)
{
    if (data_ends(path, ".csv")) {
        data_rows rows;
        stk_status status = data_rows_open(path, &rows, err);
        data_rows_close(&rows);
        return status;
    }
    if (!data_ends(path, ".npy")) return stk_npz_verify(path, err);
    stk_tensor *array = NULL;
    stk_status status = stk_npy_map(path, &array, err);
    stk_tensor_release(array);
    return status;
}

typedef struct verdict {
    stk_status status;
    stk_error err;
    stk_record_stats stats;
    int64_t examples, others; /* records that are Examples, and that are none */
} verdict;

static verdict look_at(const cli_args *args, const char *path)
{
    verdict v = {.err = {.code = STK_OK}};
    data_catalog c = {0};
    v.status = data_is_array(path) ? verify_array(path, &v.err)
                                   : verify_file(args, path, &v.stats, &c, &v.err);
    v.examples = c.examples;
    v.others = c.others;
    data_catalog_free(&c);
    return v;
}

static void tell_json(const char *path, const verdict *v)
{
    printf("{\"file\": ");
    cli_json_text(stdout, path);
    printf(", \"records\": %lld, \"bytes\": %lld, \"bad\": %lld, \"examples\": %lld, \"error\": ",
           (long long)v->stats.records, (long long)v->stats.bytes, (long long)v->stats.bad,
           (long long)v->examples);
    cli_json_text(stdout, v->status != STK_OK ? v->err.message : v->stats.last_reason);
    printf("}");
}

static void tell(const cli_args *args, const char *path, const verdict *v)
{
    const stk_record_stats *s = &v->stats;
    if (v->status != STK_OK) {
        fprintf(stderr, "stoker data: %s\n", v->err.message);
        return;
    }
    if (!args->quiet && data_is_array(path)) {
        printf("%s: good\n", path);
    } else if (!args->quiet) {
        printf("%s: %lld records, %lld bytes, %s", path, (long long)s->records, (long long)s->bytes,
               s->bad ? "DAMAGED" : "good");
        if (v->others && v->examples) printf(", %lld no Examples", (long long)v->others);
        printf("\n");
    }
    if (s->bad)
        printf("  %lld damaged place%s, %lld bytes lost; the last: %s\n", (long long)s->bad,
               s->bad == 1 ? "" : "s", (long long)s->skipped_bytes, s->last_reason);
}

int data_verify(const cli_args *args)
{
    int code = CLI_OK;
    bool damaged = false;
    if (args->json) printf("[");
    for (int i = 1; i < args->nrest; i++) {
        verdict v = look_at(args, args->rest[i]);
        if (v.status != STK_OK && !v.err.message[0]) return CLI_USAGE;
        if (args->json && i > 1) printf(", ");
        if (args->json)
            tell_json(args->rest[i], &v);
        else
            tell(args, args->rest[i], &v);
        damaged |= v.status == STK_ERR_FORMAT || v.stats.bad;
        if (v.status != STK_OK) code = CLI_FILE;
    }
    if (args->json) printf("]\n");
    return damaged ? CLI_FORMAT : code;
}

int data_repair(const cli_args *args)
{
    stk_error err;
    stk_record_options o;
    stk_record_reader *r = NULL;
    stk_record_writer *w = NULL;
    if (!data_record_options(args, &o)) return CLI_USAGE;
    if (data_is_array(args->rest[1]))
        return cli_usage(args, "repair takes TFRecord files; %s is none", args->rest[1]);
    o.policy = STK_BAD_SKIP;
    stk_status status = stk_records_open(args->rest[1], &o, &r, &err);
    if (status == STK_OK)
        status = stk_record_writer_new(args->rest[2], &(stk_record_writer_options){.durable = true},
                                       &w, &err);
    stk_string record;
    for (bool end = false; status == STK_OK && !end;) {
        status = stk_records_next(r, &record, &end, &err);
        if (status == STK_OK && !end)
            status = stk_record_write(w, record.data, (size_t)record.size, &err);
    }
    if (status == STK_OK)
        status = stk_record_writer_commit(w, &err);
    else
        stk_record_writer_abandon(w);
    int code = CLI_OK;
    if (status != STK_OK) {
        code = cli_fail(args, &err);
    } else {
        stk_record_stats s = stk_records_stats(r);
        if (args->json)
            printf("{\"records\": %lld, \"lost_places\": %lld, \"lost_bytes\": %lld}\n",
                   (long long)s.records, (long long)s.bad, (long long)s.skipped_bytes);
        else if (!args->quiet)
            printf("%s: %lld records kept, %lld damaged place%s (%lld bytes) left out\n",
                   args->rest[2], (long long)s.records, (long long)s.bad, s.bad == 1 ? "" : "s",
                   (long long)s.skipped_bytes);
    }
    stk_records_close(r);
    return code;
}
