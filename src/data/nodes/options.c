/* options - settings of the stream that ride on the dataset. Does nothing to elements; plans leave it out. */
#include "data/rewrite.h"

static stk_status get(stk_stage *stage, uint64_t epoch, int64_t index, stk_tensor **parts,
                      stk_error *err)
{
    return stk_stage_get(stage->in[0], epoch, index, parts, err);
}

static stk_status rows(stk_stage *stage, uint64_t epoch, int64_t n, const int64_t *index,
                       stk_tensor *const *slots, int64_t row, stk_error *err)
{
    return stk_stage_rows(stage->in[0], epoch, n, index, slots, row, err);
}

static stk_status slice(stk_stage *stage, uint64_t epoch, int64_t first, int64_t n,
                        stk_tensor **parts, stk_error *err)
{
    return stk_stage_slice(stage->in[0], epoch, first, n, parts, err);
}

static stk_status open(stk_iter *it, stk_error *err)
{
    return stk_iter_open(it->stage->in[0], it->epoch, it->own, err);
}

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    return stk_iter_next(*(stk_iter **)it->own, parts, end, err);
}

static stk_status save(stk_iter *it, stk_state *out, stk_error *err)
{
    return stk_iter_save(*(stk_iter **)it->own, out, err);
}

static stk_status restore(stk_iter *it, stk_state *in, stk_error *err)
{
    return stk_iter_restore(*(stk_iter **)it->own, in, err);
}

static void close(stk_iter *it) { stk_iter_close(*(stk_iter **)it->own); }

static bool idle(const stk_dataset *ds)
{
    (void)ds;
    return true;
}

const stk_node_kind stk_node_options = {.name = "options",
                                        .idle = idle,
                                        .get = get,
                                        .rows = rows,
                                        .slice = slice,
                                        .walk = {.size = sizeof(stk_iter *),
                                                 .open = open,
                                                 .next = next,
                                                 .save = save,
                                                 .restore = restore,
                                                 .close = close}};

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
