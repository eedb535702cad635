/* Readers of the nodes that need no file of their own to be read. */
#include "data/pipeline.h"

#include <stdio.h>
#include <string.h>

#define KNOWN(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Ends a reader whose checks failed. */
static stk_dataset *give_up(stk_dataset *in)
{
    stk_dataset_release(in);
    return NULL;
}

stk_dataset *stk_read_range(stk_dataset *in, const stk_json *op, const char *folder, stk_error *err)
{
    (void)folder;
    int64_t start = 0, stop = 0, step = 1, most = (int64_t)1 << 62;
    if (stk_option_input(op, in, false, err) ||
        stk_options_known(op, KNOWN("start", "stop", "step"), err) ||
        stk_option_int(op, "start", -most, most, &start, err) ||
        stk_option_int(op, "stop", -most, most, &stop, err) ||
        stk_option_int(op, "step", -most, most, &step, err))
        return give_up(in);
    return stk_data_range(start, stop, step, err);
}

stk_dataset *stk_read_batch(stk_dataset *in, const stk_json *op, const char *folder, stk_error *err)
{
    (void)folder;
    int64_t size = 0;
    bool drop = false;
    if (stk_option_input(op, in, true, err) ||
        stk_options_known(op, KNOWN("size", "drop_remainder"), err) ||
        stk_option_int(op, "size", 1, INT32_MAX, &size, err) ||
        stk_option_bool(op, "drop_remainder", &drop, err))
        return give_up(in);
    return stk_data_batch(in, size, drop, err);
}

/* Nodes with one whole number. */
static stk_dataset *read_number(stk_dataset *in, const stk_json *op, const char *name,
                                int64_t otherwise,
                                stk_dataset *(*make)(stk_dataset *, int64_t, stk_error *),
                                stk_error *err)
{
    int64_t number = otherwise;
    if (stk_option_input(op, in, true, err) || stk_options_known(op, KNOWN(name), err) ||
        stk_option_int(op, name, -1, INT64_MAX / 4, &number, err))
        return give_up(in);
    return make(in, number, err);
}

stk_dataset *stk_read_prefetch(stk_dataset *in, const stk_json *op, const char *folder,
                               stk_error *err)
{
    (void)folder;
    return read_number(in, op, "elements", STK_AUTOTUNE, stk_data_prefetch, err);
}

stk_dataset *stk_read_take(stk_dataset *in, const stk_json *op, const char *folder, stk_error *err)
{
    (void)folder;
    return read_number(in, op, "count", STK_INFINITE, stk_data_take, err);
}

stk_dataset *stk_read_skip(stk_dataset *in, const stk_json *op, const char *folder, stk_error *err)
{
    (void)folder;
    return read_number(in, op, "count", 0, stk_data_skip, err);
}

stk_dataset *stk_read_shard(stk_dataset *in, const stk_json *op, const char *folder, stk_error *err)
{
    (void)folder;
    int64_t shards = 1, index = 0;
    if (stk_option_input(op, in, true, err) ||
        stk_options_known(op, KNOWN("shards", "index"), err) ||
        stk_option_int(op, "shards", 1, INT64_MAX, &shards, err) ||
        stk_option_int(op, "index", 0, INT64_MAX, &index, err))
        return give_up(in);
    return stk_data_shard(in, shards, index, err);
}

stk_dataset *stk_read_repeat(stk_dataset *in, const stk_json *op, const char *folder,
                             stk_error *err)
{
    (void)folder;
    return read_number(in, op, "times", STK_INFINITE, stk_data_repeat, err);
}

stk_dataset *stk_read_enumerate(stk_dataset *in, const stk_json *op, const char *folder,
                                stk_error *err)
{
    (void)folder;
    return read_number(in, op, "start", 0, stk_data_enumerate, err);
}

/* Nodes without options. */
static stk_dataset *read_plain(stk_dataset *in, const stk_json *op,
                               stk_dataset *(*make)(stk_dataset *, stk_error *), stk_error *err)
{
    if (stk_option_input(op, in, true, err) ||
        stk_options_known(op, (const char *const[]){NULL}, err))
        return give_up(in);
    return make(in, err);
}

stk_dataset *stk_read_unbatch(stk_dataset *in, const stk_json *op, const char *folder,
                              stk_error *err)
{
    (void)folder;
    return read_plain(in, op, stk_data_unbatch, err);
}

stk_dataset *stk_read_unique(stk_dataset *in, const stk_json *op, const char *folder,
                             stk_error *err)
{
    (void)folder;
    return read_plain(in, op, stk_data_unique, err);
}

stk_dataset *stk_read_ignore_errors(stk_dataset *in, const stk_json *op, const char *folder,
                                    stk_error *err)
{
    (void)folder;
    return read_plain(in, op, stk_data_ignore_errors, err);
}

static stk_dataset *read_sizes(stk_dataset *in, const stk_json *op,
                               stk_dataset *(*make)(stk_dataset *, int64_t, bool, stk_error *),
                               stk_error *err)
{
    int64_t size = 0;
    bool drop = false;
    if (stk_option_input(op, in, true, err) ||
        stk_options_known(op, KNOWN("size", "drop_remainder"), err) ||
        stk_option_int(op, "size", 1, INT32_MAX, &size, err) ||
        stk_option_bool(op, "drop_remainder", &drop, err))
        return give_up(in);
    return make(in, size, drop, err);
}

stk_dataset *stk_read_rebatch(stk_dataset *in, const stk_json *op, const char *folder,
                              stk_error *err)
{
    (void)folder;
    return read_sizes(in, op, stk_data_rebatch, err);
}

static stk_dataset *pad_plain(stk_dataset *in, int64_t size, bool drop, stk_error *err)
{
    return stk_data_padded_batch(in, size, drop, NULL, NULL, err);
}

stk_dataset *stk_read_padded_batch(stk_dataset *in, const stk_json *op, const char *folder,
                                   stk_error *err)
{
    (void)folder;
    return read_sizes(in, op, pad_plain, err);
}

stk_dataset *stk_read_window(stk_dataset *in, const stk_json *op, const char *folder,
                             stk_error *err)
{
    (void)folder;
    int64_t size = 0, shift = 0, stride = 1;
    bool drop = false;
    if (stk_option_input(op, in, true, err) ||
        stk_options_known(op, KNOWN("size", "shift", "stride", "drop_remainder"), err) ||
        stk_option_int(op, "size", 1, INT32_MAX, &size, err) ||
        stk_option_int(op, "shift", 0, INT32_MAX, &shift, err) ||
        stk_option_int(op, "stride", 1, INT32_MAX, &stride, err) ||
        stk_option_bool(op, "drop_remainder", &drop, err))
        return give_up(in);
    return stk_data_window(in, size, shift, stride, drop, err);
}

stk_dataset *stk_read_shuffle(stk_dataset *in, const stk_json *op, const char *folder,
                              stk_error *err)
{
    (void)folder;
    int64_t buffer = STK_SHUFFLE_ALL, seed = 0;
    bool reshuffle = true;
    if (stk_option_input(op, in, true, err) ||
        stk_options_known(op, KNOWN("buffer", "seed", "reshuffle"), err) ||
        stk_option_int(op, "buffer", -1, INT64_MAX / 4, &buffer, err) ||
        stk_option_int(op, "seed", 0, INT64_MAX, &seed, err) ||
        stk_option_bool(op, "reshuffle", &reshuffle, err))
        return give_up(in);
    return stk_data_shuffle(in, buffer, (uint64_t)seed, reshuffle, err);
}

stk_dataset *stk_read_random(stk_dataset *in, const stk_json *op, const char *folder,
                             stk_error *err)
{
    (void)folder;
    int64_t seed = 0, count = STK_INFINITE;
    if (stk_option_input(op, in, false, err) ||
        stk_options_known(op, KNOWN("seed", "count"), err) ||
        stk_option_int(op, "seed", 0, INT64_MAX, &seed, err) ||
        stk_option_int(op, "count", -1, INT64_MAX / 4, &count, err))
        return give_up(in);
    return stk_data_random((uint64_t)seed, count, err);
}

/* path, or folder/path when it is relative. */
static const char *beside(const char *folder, const char *path, char *room, size_t size)
{
    if (!*folder || *path == '/') return path;
    snprintf(room, size, "%s/%s", folder, path);
    return room;
}

stk_dataset *stk_read_list_files(stk_dataset *in, const stk_json *op, const char *folder,
                                 stk_error *err)
{
    const char *pattern = NULL;
    char room[2048];
    bool shuffle = false;
    int64_t seed = 0;
    if (stk_option_input(op, in, false, err) ||
        stk_options_known(op, KNOWN("pattern", "shuffle", "seed"), err) ||
        stk_option_text(op, "pattern", &pattern, err) ||
        stk_option_bool(op, "shuffle", &shuffle, err) ||
        stk_option_int(op, "seed", 0, INT64_MAX, &seed, err))
        return give_up(in);
    if (pattern) pattern = beside(folder, pattern, room, sizeof room);
    return stk_data_list_files(pattern ? 1 : 0, &pattern, shuffle, (uint64_t)seed, err);
}

stk_dataset *stk_read_cache(stk_dataset *in, const stk_json *op, const char *folder, stk_error *err)
{
    const char *path = NULL;
    char room[2048];
    if (stk_option_input(op, in, true, err) || stk_options_known(op, KNOWN("path"), err) ||
        stk_option_text(op, "path", &path, err))
        return give_up(in);
    return stk_data_cache(in, path && *path ? beside(folder, path, room, sizeof room) : NULL, err);
}

stk_dataset *stk_read_load(stk_dataset *in, const stk_json *op, const char *folder, stk_error *err)
{
    const char *path = NULL;
    char room[2048];
    if (stk_option_input(op, in, false, err) || stk_options_known(op, KNOWN("path"), err) ||
        stk_option_text(op, "path", &path, err))
        return give_up(in);
    return stk_data_load(path ? beside(folder, path, room, sizeof room) : NULL, err);
}

stk_dataset *stk_read_options(stk_dataset *in, const stk_json *op, const char *folder,
                              stk_error *err)
{
    (void)folder;
    stk_stream_options o = stk_stream_options_defaults();
    int64_t threads = 0, cpus = 0;
    if (stk_option_input(op, in, true, err) ||
        stk_options_known(
            op,
            KNOWN("threads", "deterministic", "rewrite", "autotune", "cpu_budget", "ram_budget"),
            err) ||
        stk_option_int(op, "threads", 0, 1024, &threads, err) ||
        stk_option_int(op, "cpu_budget", 0, 1024, &cpus, err) ||
        stk_option_int(op, "ram_budget", 0, INT64_MAX / 4, &o.ram_budget, err) ||
        stk_option_bool(op, "deterministic", &o.deterministic, err) ||
        stk_option_bool(op, "rewrite", &o.rewrite, err) ||
        stk_option_bool(op, "autotune", &o.autotune, err))
        return give_up(in);
    o.threads = (int32_t)threads;
    o.cpu_budget = (int32_t)cpus;
    return stk_data_options(in, &o, err);
}

/* ---- several inputs: "inputs" is a list of pipelines; what comes before is the first of them ----------- */
enum { MOST_INPUTS = 64 };

static int32_t read_inputs(stk_dataset *in, const stk_json *op, const char *folder,
                           stk_dataset **inputs, stk_error *err)
{
    static __thread int depth __attribute__((tls_model("initial-exec")));
    const stk_json *list = stk_json_get(op, "inputs");
    int32_t n = 0;
    if (in) inputs[n++] = in;
    bool good = list && list->kind == STK_JSON_ARRAY && list->count + n <= MOST_INPUTS &&
                list->count + n > 0;
    if (!good)
        (void)stk_fail(err, STK_ERR_FORMAT,
                       "pipeline: \"inputs\" must be a list of 1..%d pipelines", MOST_INPUTS);
    depth++;
    for (int64_t i = 0; good && i < list->count; i++) {
        stk_dataset *ds = stk_pipeline_read(&list->items[i], folder, depth, err);
        if (ds)
            inputs[n++] = ds;
        else
            good = false;
    }
    depth--;
    if (good) return n;
    for (int32_t i = 0; i < n; i++) stk_dataset_release(inputs[i]);
    return 0;
}

stk_dataset *stk_read_zip(stk_dataset *in, const stk_json *op, const char *folder, stk_error *err)
{
    stk_dataset *inputs[MOST_INPUTS];
    if (stk_options_known(op, KNOWN("inputs"), err)) return give_up(in);
    int32_t n = read_inputs(in, op, folder, inputs, err);
    return n ? stk_data_zip(n, inputs, err) : NULL;
}

stk_dataset *stk_read_concatenate(stk_dataset *in, const stk_json *op, const char *folder,
                                  stk_error *err)
{
    stk_dataset *inputs[MOST_INPUTS];
    if (stk_options_known(op, KNOWN("inputs"), err)) return give_up(in);
    int32_t n = read_inputs(in, op, folder, inputs, err);
    if (!n) return NULL;
    stk_dataset *ds = inputs[0];
    for (int32_t i = 1; i < n; i++) ds = stk_data_concatenate(ds, inputs[i], err);
    return ds;
}

stk_dataset *stk_read_sample_from_datasets(stk_dataset *in, const stk_json *op, const char *folder,
                                           stk_error *err)
{
    stk_dataset *inputs[MOST_INPUTS];
    double weights[MOST_INPUTS];
    int64_t seed = 0;
    bool stop = false;
    if (stk_options_known(op, KNOWN("inputs", "weights", "seed", "stop_on_empty"), err) ||
        stk_option_int(op, "seed", 0, INT64_MAX, &seed, err) ||
        stk_option_bool(op, "stop_on_empty", &stop, err))
        return give_up(in);
    int32_t n = read_inputs(in, op, folder, inputs, err);
    if (!n) return NULL;
    const stk_json *list = stk_json_get(op, "weights");
    bool good = !list || (list->kind == STK_JSON_ARRAY && list->count == n);
    for (int32_t i = 0; i < n; i++)
        weights[i] = stk_json_double(stk_json_item(list, i), list ? -1 : 1);
    if (good) return stk_data_sample_from(n, inputs, weights, (uint64_t)seed, stop, err);
    (void)stk_fail(err, STK_ERR_FORMAT, "pipeline: \"weights\" must be a list of %d numbers",
                   (int)n);
    for (int32_t i = 0; i < n; i++) stk_dataset_release(inputs[i]);
    return NULL;
}
