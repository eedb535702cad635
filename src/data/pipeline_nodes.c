/* Readers of the nodes that need no file of their own to be read. */
#include "data/pipeline.h"

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
