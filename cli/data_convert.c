/* stoker data convert FROM TO.
 *
 * Shard k of n holds rows k*count/n .. (k+1)*count/n - 1 and appears under its name only when it is whole. Beside them
 * lies TO.converting, written first and removed last: what is being converted and how. A run that finds it with the
 * same contents takes the shards that are there as done, and removes what a killed run left half written; one that
 * finds other contents refuses to mix the two.
 *
 *     stoker convert 1
 *     from <path>
 *     rows <count> shards <n> compression <kind> */
#include "data_rows.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct convert {
    data_rows rows;
    const char *to;
    int64_t shards;
    stk_compression compression;
    char state_path[4096], state[8192];
    int64_t resumed; /* shards that were there */
} convert;

static stk_status fail(stk_error *err, stk_status code, const char *path, const char *why)
{
    err->code = code;
    snprintf(err->message, sizeof err->message, "%s: %s", path, why);
    return code;
}

static const char *const record_endings[] = {".tfrecord", ".tfrecords", ".tfrec"};
enum { RECORD_ENDINGS = 3 };

/* That part of the path, "" when it has none of them. */
static const char *record_ending(const char *path)
{
    for (int i = 0; i < RECORD_ENDINGS; i++)
        if (data_ends(path, record_endings[i]))
            return path + strlen(path) - strlen(record_endings[i]);
    return path + strlen(path);
}

static void shard_path(const convert *c, int64_t k, char *out, size_t size)
{
    const char *end = record_ending(c->to);
    if (c->shards == 1)
        snprintf(out, size, "%s", c->to);
    else
        snprintf(out, size, "%.*s-%05lld-of-%05lld%s", (int)(end - c->to), c->to, (long long)k,
                 (long long)c->shards, end);
}

/* Half-written files of a killed run: "<shard>.<numbers>.tmp" beside the shards. */
static void sweep(const convert *c)
{
    char folder[4096], path[8192];
    const char *slash = strrchr(c->to, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - c->to) : 1, slash ? c->to : ".");
    const char *base = slash ? slash + 1 : c->to;
    size_t stem = (size_t)(record_ending(base) - base);
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strncmp(e->d_name, base, stem) != 0 || !data_ends(e->d_name, ".tmp")) continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        unlink(path);
    }
    if (d) closedir(d);
}

/* Whether the state file is there, and says the same. */
static stk_status read_state(const convert *c, bool *there, stk_error *err)
{
    char text[sizeof c->state] = "";
    FILE *f = fopen(c->state_path, "r");
    *there = f != NULL;
    if (!f) return STK_OK;
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = 0;
    fclose(f);
    if (strcmp(text, c->state) == 0 || n == 0) return STK_OK;
    return fail(
        err, STK_ERR_STATE, c->state_path,
        "another conversion to this name was interrupted; finish it with its own arguments, or "
        "give --restart");
}

static stk_status begin(convert *c, const cli_args *args, stk_error *err)
{
    char path[4096];
    bool there = false;
    if (cli_given(args, "restart")) unlink(c->state_path);
    stk_status status = read_state(c, &there, err);
    if (status != STK_OK) return status;
    sweep(c);
    for (int64_t k = 0; k < c->shards; k++) {
        shard_path(c, k, path, sizeof path);
        if (!there) unlink(path); /* of an earlier, finished conversion */
    }
    return stk_text_save(c->state_path, c->state, err);
}

/* The shard is there and has as many records as it should. */
static bool is_done(const convert *c, const char *path, int64_t want)
{
    stk_record_reader *r = NULL;
    int64_t count = 0;
    if (access(path, R_OK) != 0 || stk_records_open(path, NULL, &r, NULL) != STK_OK) return false;
    if (c->compression == STK_COMPRESSION_NONE) {
        if (stk_records_count(r, &count, NULL) != STK_OK) count = -1;
    } else {
        stk_string record;
        for (bool end = false; !end; count += !end)
            if (stk_records_next(r, &record, &end, NULL) != STK_OK) break;
    }
    stk_records_close(r);
    return count == want;
}

static stk_status write_shard(convert *c, int64_t k, data_bar *bar, stk_error *err)
{
    char path[4096];
    int64_t first = c->rows.count * k / c->shards, last = c->rows.count * (k + 1) / c->shards;
    shard_path(c, k, path, sizeof path);
    if (is_done(c, path, last - first)) {
        c->resumed++;
        data_bar_show(bar, last);
        return STK_OK;
    }
    stk_record_writer *w = NULL;
    stk_record_writer_options o = {.compression = c->compression, .durable = true};
    stk_status status = stk_record_writer_new(path, &o, &w, err);
    for (int64_t i = first; status == STK_OK && i < last; i++) {
        char *bytes = NULL;
        size_t size = 0;
        bool borrowed = false;
        status = c->rows.record(&c->rows, i, &bytes, &size, &borrowed, err);
        if (status == STK_OK) status = stk_record_write(w, bytes, size, err);
        if (!borrowed) stk_bytes_free(bytes);
        data_bar_show(bar, i + 1);
    }
    if (status == STK_OK) return stk_record_writer_commit(w, err);
    stk_record_writer_abandon(w);
    return status;
}

static int finish(const cli_args *args, const convert *c)
{
    unlink(c->state_path);
    if (args->json)
        printf("{\"records\": %lld, \"shards\": %lld, \"resumed\": %lld}\n",
               (long long)c->rows.count, (long long)c->shards, (long long)c->resumed);
    else if (!args->quiet) {
        printf("%s: %lld records in %lld file%s", c->to, (long long)c->rows.count,
               (long long)c->shards, c->shards == 1 ? "" : "s");
        if (c->resumed) printf(", %lld of them from the run before", (long long)c->resumed);
        printf("\n");
        for (int32_t i = 0; i < c->rows.class_count; i++)
            printf("  class %d: %s\n", i, c->rows.classes[i]);
    }
    return CLI_OK;
}

static int to_records(const cli_args *args, const char *from, const char *to)
{
    stk_error err;
    stk_record_options o;
    convert *c = calloc(1, sizeof *c);
    if (!c) return CLI_MEMORY;
    *c = (convert){.to = to, .shards = 1};
    int code = CLI_USAGE;
    if (!cli_int(args, "shards", 1, 99999, &c->shards) || !data_record_options(args, &o)) {
        free(c);
        return code;
    }
    c->compression = o.compression == STK_COMPRESSION_AUTO ? STK_COMPRESSION_NONE : o.compression;
    stk_status status = data_rows_open(from, &c->rows, &err);
    if (status == STK_OK) {
        snprintf(c->state_path, sizeof c->state_path, "%s.converting", to);
        snprintf(c->state, sizeof c->state,
                 "stoker convert 1\nfrom %s\nrows %lld shards %lld compression %d\n", from,
                 (long long)c->rows.count, (long long)c->shards, (int)c->compression);
        status = begin(c, args, &err);
    }
    data_bar bar;
    data_bar_start(&bar, args, "convert", c->rows.count);
    for (int64_t k = 0; status == STK_OK && k < c->shards; k++)
        status = write_shard(c, k, &bar, &err);
    data_bar_end(&bar);
    code = status == STK_OK ? finish(args, c) : cli_fail(args, &err);
    data_rows_close(&c->rows);
    free(c);
    return code;
}

static const char *ending(int index, const void *context)
{
    static const char *const endings[] = {".csv", ".npz"};
    (void)context;
    return index < RECORD_ENDINGS       ? record_endings[index]
           : index < RECORD_ENDINGS + 2 ? endings[index - RECORD_ENDINGS]
                                        : NULL;
}

/* What is to be written is known by its name alone. */
static int unknown_ending(const cli_args *args, const char *to)
{
    const char *slash = strrchr(to, '/'), *dot = strrchr(slash ? slash : to, '.');
    const char *near = dot ? cli_near(dot, ending, NULL) : NULL;
    return cli_usage(
        args,
        "%s: what is written is told by the ending of the name: .tfrecord (also .tfrecords "
        "and .tfrec), .csv or .npz%s%s%s",
        to, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

int data_convert(const cli_args *args)
{
    const char *from = args->rest[1], *to = args->rest[2];
    bool out = data_ends(to, ".npz") || data_ends(to, ".csv");
    bool records = !data_is_array(from) && !data_is_folder(from);
    if (!out && !record_ending(to)[0]) return unknown_ending(args, to);
    if (cli_same_file(from, to))
        return cli_usage(args, "%s would be written over itself; give another name", from);
    if (out && !records)
        return cli_usage(
            args,
            "%s is no TFRecord file, and only those become .npz or .csv; convert it to "
            "a .tfrecord file",
            from);
    return out ? data_export(args, from, to) : to_records(args, from, to);
}
