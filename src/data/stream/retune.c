/* retune.c - the same elements by other means: a dataset whose maps have another number of workers, or whose plan is made by
 * other options. What the nodes compute stays as it is, so do order and random bits. */
#include "data/nodes/map.h"
#include "data/stream/rewrite.h"

static bool has_fixed_workers(const stk_dataset *ds)
{
    const stk_map_config *c = ds->config;
    return ds->kind == &stk_node_map && !c->serial && c->options.parallel >= 1;
}

int32_t stk_dataset_workers(const stk_dataset *ds)
{
    int32_t least = 0;
    if (!ds) return 0;
    if (has_fixed_workers(ds)) least = ((const stk_map_config *)ds->config)->options.parallel;
    for (int32_t i = 0; i < ds->ninputs; i++) {
        int32_t below = stk_dataset_workers(ds->inputs[i]);
        if (below && (!least || below < least)) least = below;
    }
    return least;
}

int64_t stk_dataset_batch_size(const stk_dataset *ds)
{
    for (; ds; ds = ds->ninputs == 1 ? ds->inputs[0] : NULL)
        if (ds->kind == &stk_node_batch) return ((const stk_batch_config *)ds->config)->size;
    return 0;
}

static stk_dataset *retune(stk_dataset *ds, int32_t workers, stk_error *err);

/* The node over inputs that were changed; both given up to it. */
static stk_dataset *over(stk_dataset *ds, int32_t workers, stk_dataset **in, stk_error *err)
{
    if (!has_fixed_workers(ds)) {
        stk_dataset *copy = stk_dataset_over(ds, in, err);
        for (int32_t i = 0; copy && i < copy->ninputs; i++)
            if (copy->parallel >= 1 && (copy->inputs[i]->random || ds->kind == &stk_node_batch))
                copy->parallel = workers; /* as when it was made: what is below is wished for */
        return copy;
    }
    const stk_map_config *c = ds->config;
    stk_map_options o = c->options;
    o.parallel = workers;
    stk_dataset *map = stk_map_node(in[0], c->n, c->fns, &o, c->batch, err);
    if (!map) return NULL;
    stk_dataset_set_schema(map, stk_schema_retain(ds->schema));
    map->salt = ds->salt;
    return map;
}

static stk_dataset *retune(stk_dataset *ds, int32_t workers, stk_error *err)
{
    if (!stk_dataset_workers(ds)) return stk_dataset_retain(ds);
    stk_dataset **in = stk_calloc((size_t)ds->ninputs + 1, sizeof *in);
    if (!in) {
        (void)stk_fail_memory(err, "workers", (size_t)ds->ninputs * sizeof *in);
        return NULL;
    }
    bool whole = true;
    for (int32_t i = 0; i < ds->ninputs; i++) {
        in[i] = whole ? retune(ds->inputs[i], workers, err) : NULL;
        whole = whole && in[i];
    }
    stk_dataset *out = whole ? over(ds, workers, in, err) : NULL;
    for (int32_t i = 0; !whole && i < ds->ninputs; i++) stk_dataset_release(in[i]);
    stk_free(in);
    return out;
}

stk_dataset *stk_data_workers(stk_dataset *ds, int32_t workers, stk_error *err)
{
    if (!ds) return NULL;
    if (workers < 1) {
        (void)stk_fail(err, STK_ERR_RANGE, "workers: %d; 1 or more are needed", workers);
        stk_dataset_release(ds);
        return NULL;
    }
    stk_stream_options o = stk_stream_options_of(ds);
    stk_dataset *out = retune(ds, workers, err);
    stk_dataset_release(ds);
    o.threads = workers;
    return stk_data_options(out, &o, err);
}

stk_stream_options stk_dataset_options(const stk_dataset *ds) { return stk_stream_options_of(ds); }
