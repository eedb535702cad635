/* options - settings of the stream that ride on the dataset. Does nothing to elements; plans leave it out. */
#include "data/core/iter.h"
#include "data/stream/rewrite.h"

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    return stk_iter_next(((stk_follow *)it->own)->in, parts, end, err);
}

static bool idle(const stk_dataset *ds)
{
    (void)ds;
    return true;
}

static const stk_walk walk = {sizeof(stk_follow), stk_follow_open,    next,
                              stk_follow_save,    stk_follow_restore, stk_follow_close};

const stk_node_kind stk_node_options = {.name = "options",
                                        .idle = idle,
                                        .get = stk_pass_get,
                                        .rows = stk_pass_rows,
                                        .slice = stk_pass_slice,
                                        .walk = &walk,
                                        .steady = stk_always_steady,
                                        .passes = true};

stk_dataset *stk_data_options(stk_dataset *in, const stk_stream_options *options, stk_error *err)
{
    stk_dataset *ds = stk_dataset_make(&stk_node_options, 1, &in, sizeof *options, err);
    if (!ds) return NULL;
    *(stk_stream_options *)ds->config = options ? *options : stk_stream_options_defaults();
    ds->salt = in->salt;
    return ds;
}

stk_stream_options stk_stream_options_of(const stk_dataset *ds)
{
    for (; ds; ds = ds->ninputs == 1 ? ds->inputs[0] : NULL)
        if (ds->kind == &stk_node_options) return *(const stk_stream_options *)ds->config;
    return stk_stream_options_defaults();
}
