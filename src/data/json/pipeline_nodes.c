/* Readers of the nodes without functions whose options are not of one of the plain forms in pipeline.def. */
#include "data/json/pipeline.h"

#include <stdio.h>
#include <string.h>

stk_dataset *stk_read_range(stk_dataset *in, const stk_json *op, stk_pipeline *p, stk_error *err)
{
    (void)p;
    int64_t start = 0, stop = 0, step = 1, most = (int64_t)1 << 62;
    if (!stk_options_good(in, op,
                          STK_OPTIONS(STK_INT("start", &start, -most, most),
                                      STK_INT("stop", &stop, -most, most),
                                      STK_INT("step", &step, -most, most)),
                          err))
        return NULL;
    return stk_data_range(start, stop, step, err);
}

stk_dataset *stk_read_random(stk_dataset *in, const stk_json *op, stk_pipeline *p, stk_error *err)
{
    (void)p;
    int64_t seed = 0, count = STK_INFINITE;
    if (!stk_options_good(in, op,
                          STK_OPTIONS(STK_INT("seed", &seed, 0, INT64_MAX),
                                      STK_INT("count", &count, -1, INT64_MAX / 4)),
                          err))
        return NULL;
    return stk_data_random((uint64_t)seed, count, err);
}

stk_dataset *stk_read_shard(stk_dataset *in, const stk_json *op, stk_pipeline *p, stk_error *err)
{
    (void)p;
    int64_t shards = 1, index = 0;
    if (!stk_options_good(in, op,
                          STK_OPTIONS(STK_INT("shards", &shards, 1, INT64_MAX),
                                      STK_INT("index", &index, 0, INT64_MAX)),
                          err))
        return NULL;
    return stk_data_shard(in, shards, index, err);
}

stk_dataset *stk_read_window(stk_dataset *in, const stk_json *op, stk_pipeline *p, stk_error *err)
{
    (void)p;
    int64_t size = 0, shift = 0, stride = 1;
    bool drop = false, nested = false;
    if (!stk_options_good(in, op,
                          STK_OPTIONS(STK_INT("size", &size, 1, INT32_MAX),
                                      STK_INT("shift", &shift, 0, INT32_MAX),
                                      STK_INT("stride", &stride, 1, INT32_MAX),
                                      STK_BOOLEAN("drop_remainder", &drop),
                                      STK_BOOLEAN("nested", &nested)),
                          err))
        return NULL;
    return (nested ? stk_data_window_nested : stk_data_window)(in, size, shift, stride, drop, err);
}

stk_dataset *stk_read_shuffle(stk_dataset *in, const stk_json *op, stk_pipeline *p, stk_error *err)
{
    (void)p;
    int64_t buffer = STK_SHUFFLE_ALL, seed = 0;
    bool reshuffle = true;
    if (!stk_options_good(in, op,
                          STK_OPTIONS(STK_INT("buffer", &buffer, -1, INT64_MAX / 4),
                                      STK_INT("seed", &seed, 0, INT64_MAX),
                                      STK_BOOLEAN("reshuffle", &reshuffle)),
                          err))
        return NULL;
    return stk_data_shuffle(in, buffer, (uint64_t)seed, reshuffle, err);
}

/* path, or folder/path when it is relative. */
static const char *beside(const stk_pipeline *p, const char *path, char *room, size_t size)
{
    if (!path || !*path || !*p->folder || *path == '/') return path;
    snprintf(room, size, "%s/%s", p->folder, path);
    return room;
}

stk_dataset *stk_read_list_files(stk_dataset *in, const stk_json *op, stk_pipeline *p,
                                 stk_error *err)
{
    const char *pattern = NULL;
    char room[2048];
    bool shuffle = false;
    int64_t seed = 0;
    if (!stk_options_good(in, op,
                          STK_OPTIONS(STK_TEXT("pattern", &pattern),
                                      STK_BOOLEAN("shuffle", &shuffle),
                                      STK_INT("seed", &seed, 0, INT64_MAX)),
                          err))
        return NULL;
    pattern = beside(p, pattern, room, sizeof room);
    return stk_data_list_files(pattern ? 1 : 0, &pattern, shuffle, (uint64_t)seed, err);
}

stk_dataset *stk_read_cache(stk_dataset *in, const stk_json *op, stk_pipeline *p, stk_error *err)
{
    const char *path = NULL;
    char room[2048];
    if (!stk_options_good(in, op, STK_OPTIONS(STK_TEXT("path", &path)), err)) return NULL;
    return stk_data_cache(in, beside(p, path, room, sizeof room), err);
}

stk_dataset *stk_read_load(stk_dataset *in, const stk_json *op, stk_pipeline *p, stk_error *err)
{
    const char *path = NULL;
    char room[2048];
    if (!stk_options_good(in, op, STK_OPTIONS(STK_TEXT("path", &path)), err)) return NULL;
    return stk_data_load(beside(p, path, room, sizeof room), err);
}

stk_dataset *stk_read_options(stk_dataset *in, const stk_json *op, stk_pipeline *p, stk_error *err)
{
    (void)p;
    stk_stream_options o = stk_stream_options_defaults();
    int64_t threads = 0, cpus = 0;
    if (!stk_options_good(in, op,
                          STK_OPTIONS(STK_INT("threads", &threads, 0, 1024),
                                      STK_INT("cpu_budget", &cpus, 0, 1024),
                                      STK_INT("ram_budget", &o.ram_budget, 0, INT64_MAX / 4),
                                      STK_BOOLEAN("deterministic", &o.deterministic),
                                      STK_BOOLEAN("rewrite", &o.rewrite),
                                      STK_BOOLEAN("autotune", &o.autotune)),
                          err))
        return NULL;
    o.threads = (int32_t)threads;
    o.cpu_budget = (int32_t)cpus;
    return stk_data_options(in, &o, err);
}

/* ---- several inputs: "inputs" is a list of pipelines; what comes before is the first of them ----------- */
enum { MOST_INPUTS = 64 };

static int32_t give_up(int32_t n, stk_dataset **inputs)
{
    for (int32_t i = 0; i < n; i++) stk_dataset_release(inputs[i]);
    return 0;
}

static int32_t read_inputs(stk_dataset *in, const stk_json *op, stk_pipeline *p,
                           stk_dataset **inputs, stk_error *err)
{
    const stk_json *list = stk_json_get(op, "inputs");
    int32_t n = 0;
    if (in) inputs[n++] = in;
    if (!list || list->kind != STK_JSON_ARRAY || list->count + n > MOST_INPUTS ||
        list->count + n < 1) {
        (void)stk_fail(err, STK_ERR_FORMAT, "\"inputs\" must be a list of 1..%d pipelines",
                       MOST_INPUTS);
        return give_up(n, inputs);
    }
    for (int64_t i = 0; i < list->count; i++) {
        char label[32];
        snprintf(label, sizeof label, "inputs[%lld]", (long long)i);
        inputs[n] = stk_pipeline_read(&list->items[i], p, label, NULL, err);
        if (!inputs[n++]) return give_up(n - 1, inputs);
    }
    return n;
}

stk_dataset *stk_read_zip(stk_dataset *in, const stk_json *op, stk_pipeline *p, stk_error *err)
{
    stk_dataset *inputs[MOST_INPUTS];
    if (!stk_options_good(in, op, STK_OPTIONS(STK_OTHER("inputs")), err)) return NULL;
    int32_t n = read_inputs(in, op, p, inputs, err);
    return n ? stk_data_zip(n, inputs, err) : NULL;
}

stk_dataset *stk_read_concatenate(stk_dataset *in, const stk_json *op, stk_pipeline *p,
                                  stk_error *err)
{
    stk_dataset *inputs[MOST_INPUTS];
    if (!stk_options_good(in, op, STK_OPTIONS(STK_OTHER("inputs")), err)) return NULL;
    int32_t n = read_inputs(in, op, p, inputs, err);
    stk_dataset *ds = n ? inputs[0] : NULL;
    for (int32_t i = 1; i < n; i++) ds = stk_data_concatenate(ds, inputs[i], err);
    return ds;
}

stk_dataset *stk_read_sample_from_datasets(stk_dataset *in, const stk_json *op, stk_pipeline *p,
                                           stk_error *err)
{
    stk_dataset *inputs[MOST_INPUTS];
    int64_t seed = 0;
    bool stop = false;
    if (!stk_options_good(in, op,
                          STK_OPTIONS(STK_OTHER("inputs"), STK_OTHER("weights"),
                                      STK_INT("seed", &seed, 0, INT64_MAX),
                                      STK_BOOLEAN("stop_on_empty", &stop)),
                          err))
        return NULL;
    int32_t n = read_inputs(in, op, p, inputs, err), count = 0;
    double *weights = NULL;
    if (!n) return NULL;
    stk_status status = stk_option_numbers(op, "weights", &count, &weights, err);
    if (status == STK_OK && weights && count != n)
        status = stk_fail(err, STK_ERR_FORMAT, "\"weights\" must be a list of %d numbers", (int)n);
    stk_dataset *ds = NULL;
    if (status == STK_OK)
        ds = stk_data_sample_from(n, inputs, weights, (uint64_t)seed, stop, err);
    else
        (void)give_up(n, inputs);
    stk_free(weights);
    return ds;
}

stk_dataset *stk_read_choose_from_datasets(stk_dataset *in, const stk_json *op, stk_pipeline *p,
                                           stk_error *err)
{
    stk_dataset *inputs[MOST_INPUTS];
    bool stop = true;
    const stk_json *choice = stk_json_get(op, "choice");
    if (!stk_options_good(in, op,
                          STK_OPTIONS(STK_OTHER("inputs"), STK_OTHER("choice"),
                                      STK_BOOLEAN("stop_on_empty", &stop)),
                          err))
        return NULL;
    int32_t n = read_inputs(in, op, p, inputs, err);
    if (!n) return NULL;
    stk_dataset *numbers = NULL;
    if (choice)
        numbers = stk_pipeline_read(choice, p, "choice", NULL, err);
    else
        (void)stk_fail(err, STK_ERR_FORMAT, "it needs \"choice\", a pipeline of numbers 0..%d",
                       (int)n - 1);
    if (numbers) return stk_data_choose_from(n, inputs, numbers, stop, err);
    (void)give_up(n, inputs);
    return NULL;
}
