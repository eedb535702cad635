/* stoker data verify, repair. */
#include "data.h"
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

int data_verify(const cli_args *args)
{
    int code = CLI_OK;
    int64_t bad = 0;
    if (args->json) printf("[");
    for (int i = 1; i < args->nrest; i++) {
        stk_error err = {.code = STK_OK};
        stk_record_stats s = {0};
        data_catalog c = {0};
        stk_status status = verify_file(args, args->rest[i], &s, &c, &err);
        if (status != STK_OK && !err.message[0]) return CLI_USAGE;
        if (args->json) {
            printf("%s{\"file\": ", i > 1 ? ", " : "");
            cli_json_text(stdout, args->rest[i]);
            printf(", \"records\": %lld, \"bytes\": %lld, \"bad\": %lld, \"examples\": %lld, "
                   "\"error\": ",
                   (long long)s.records, (long long)s.bytes, (long long)s.bad,
                   (long long)c.examples);
            cli_json_text(stdout, status != STK_OK ? err.message : s.last_reason);
            printf("}");
        } else if (status == STK_OK && !args->quiet) {
            printf("%s: %lld records, %lld bytes, %s", args->rest[i], (long long)s.records,
                   (long long)s.bytes, s.bad ? "DAMAGED" : "good");
            if (c.others && c.examples) printf(", %lld no Examples", (long long)c.others);
            printf("\n");
        }
        if (status != STK_OK) {
            if (!args->json) fprintf(stderr, "stoker data: %s\n", err.message);
            code = code == CLI_OK ? CLI_FILE : code;
        } else if (s.bad) {
            bad += s.bad;
            if (!args->json)
                printf("  %lld damaged places, %lld bytes lost; the last: %s\n", (long long)s.bad,
                       (long long)s.skipped_bytes, s.last_reason);
        }
        data_catalog_free(&c);
    }
    if (args->json) printf("]\n");
    return bad ? CLI_FORMAT : code;
}

int data_repair(const cli_args *args)
{
    stk_error err;
    stk_record_options o;
    stk_record_reader *r = NULL;
    stk_record_writer *w = NULL;
    if (!data_record_options(args, &o)) return CLI_USAGE;
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
            printf("%s: %lld records kept, %lld damaged places (%lld bytes) left out\n",
                   args->rest[2], (long long)s.records, (long long)s.bad,
                   (long long)s.skipped_bytes);
    }
    stk_records_close(r);
    return code;
}
