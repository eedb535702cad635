/* choose_from_datasets, sample_from_datasets - each output comes from one of several inputs: the one that a dataset of
 * numbers names, or one drawn by weights. Draw k is keyed by (seed, epoch, k). */
#include "base/rng.h"
#include "data/core/element_list.h"
#include "data/core/iter.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct choose {
    bool sample, stop_on_empty;
    uint64_t seed;
    int32_t n;       /* datasets to choose from; with choose the numbers are input n */
    double *weights; /* sample */
} choose;

static void drop(stk_dataset *ds) { stk_free(((choose *)ds->config)->weights); }

static void describe(const stk_dataset *ds, char *text, size_t size)
{
    const choose *c = ds->config;
    size_t at = (size_t)snprintf(text, size, "%d", (int)c->n);
    for (int32_t i = 0; c->sample && i < c->n && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%.3g", i ? "," : " by ", c->weights[i]);
    if (c->stop_on_empty && at < size) snprintf(text + at, size - at, ", stop_on_empty");
}

typedef struct choosing {
    stk_iter **in; /* n, and the numbers */
    bool *empty;
    int64_t drawn;
    bool ended;
} choosing;

static stk_status open(stk_iter *it, stk_error *err)
{
    choosing *own = it->own;
    own->empty = stk_calloc((size_t)it->stage->nin, sizeof *own->empty);
    if (!own->empty) return stk_fail_memory(err, "choose", 64);
    return stk_iters_open(it, &own->in, err);
}

/* One of the inputs that are not empty, or -1. */
static int32_t draw(stk_iter *it)
{
    choosing *own = it->own;
    const choose *c = it->stage->ds->config;
    double sum = 0, u;
    for (int32_t i = 0; i < c->n; i++) sum += own->empty[i] ? 0 : c->weights[i];
    stk_rng rng = {stk_seed_mix(c->seed ^ it->stage->ds->salt, it->epoch), 0x5A3};
    stk_rng_uniform_f64(rng, own->drawn++, 1, 0, 1, &u);
    int32_t last = -1;
    for (int32_t i = 0; i < c->n; i++) {
        if (own->empty[i] || (c->weights[i] <= 0 && sum > 0)) continue;
        last = i;
        u -= sum > 0 ? c->weights[i] / sum : 1;
        if (u < 0) break;
    }
    return last;
}

static stk_status named(stk_iter *it, int32_t *which, bool *end, stk_error *err)
{
    choosing *own = it->own;
    const choose *c = it->stage->ds->config;
    stk_tensor *number = NULL;
    STK_TRY(stk_iter_next(own->in[c->n], &number, end, err));
    if (*end) return STK_OK;
    double value = stk_tensor_at(number, 0);
    stk_tensor_release(number);
    if (!(value >= 0 && value < c->n))
        return stk_fail(err, STK_ERR_RANGE,
                        "choose_from_datasets: the choice is %g, there are datasets 0..%d", value,
                        (int)c->n - 1);
    *which = (int32_t)value;
    return STK_OK;
}

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    choosing *own = it->own;
    const choose *c = it->stage->ds->config;
    while (!own->ended) {
        int32_t which = -1;
        bool over = false;
        if (c->sample)
            over = (which = draw(it)) < 0;
        else
            STK_TRY(named(it, &which, &over, err));
        if (over) break;
        if (!own->empty[which]) {
            stk_status status = stk_iter_next(own->in[which], parts, &over, err);
            if (!over) return status;
        }
        own->empty[which] = true;
        if (c->stop_on_empty) break;
        bool any = false;
        for (int32_t i = 0; i < c->n; i++) any |= !own->empty[i];
        if (!any) break;
    }
    own->ended = *end = true;
    return STK_OK;
}

static stk_status save(stk_iter *it, stk_state *out, stk_error *err)
{
    choosing *own = it->own;
    stk_state_put(out, own->drawn);
    stk_state_put(out, own->ended);
    for (int32_t i = 0; i < it->stage->nin; i++) {
        stk_state_put(out, own->empty[i]);
        STK_TRY(stk_iter_save(own->in[i], out, err));
    }
    return STK_OK;
}

static stk_status restore(stk_iter *it, stk_state *in, stk_error *err)
{
    choosing *own = it->own;
    own->drawn = stk_state_get_in(in, 0, INT64_MAX);
    own->ended = stk_state_get_in(in, 0, 1);
    for (int32_t i = 0; i < it->stage->nin; i++) {
        own->empty[i] = stk_state_get_in(in, 0, 1);
        STK_TRY(stk_iter_restore(own->in[i], in, err));
    }
    return STK_OK;
}

static void close(stk_iter *it)
{
    choosing *own = it->own;
    stk_iters_close(it, own->in);
    stk_free(own->empty);
}

static const stk_walk walk = {sizeof(choosing), open, next, save, restore, close};

const stk_node_kind stk_node_choose = {.name = "choose_from_datasets",
                                       .drop = drop,
                                       .describe = describe,
                                       .walk = &walk,
                                       .steady =
                                           stk_always_steady, /* the choice is an input as well */
                                       .passes = true};
const stk_node_kind stk_node_sample = {
    .name = "sample_from_datasets", .drop = drop, .describe = describe, .walk = &walk};

/* Schema and cardinality from the datasets to choose from. */
static stk_status settle(stk_dataset *ds, stk_error *err)
{
    const choose *c = ds->config;
    bool infinite = true, any = false;
    for (int32_t i = 0; i < c->n; i++) {
        infinite &= ds->inputs[i]->cardinality == STK_INFINITE;
        any |= ds->inputs[i]->cardinality == STK_INFINITE;
        if (!i) continue;
        stk_schema *common = NULL;
        STK_TRY(stk_schema_common(ds->kind->name, ds->schema, ds->inputs[i]->schema, &common, err));
        stk_dataset_set_schema(ds, common);
    }
    ds->random = false;
    ds->ahead = 0;
    bool endless = c->sample && (c->stop_on_empty ? infinite : any);
    ds->cardinality = endless ? STK_INFINITE : STK_UNKNOWN;
    return STK_OK;
}

static stk_status set_weights(choose *c, const double *weights, stk_error *err)
{
    double sum = 0;
    c->weights = stk_calloc((size_t)c->n, sizeof *c->weights);
    if (!c->weights) return stk_fail_memory(err, "sample_from_datasets", 64);
    for (int32_t i = 0; i < c->n; i++) {
        c->weights[i] = weights ? weights[i] : 1;
        sum += c->weights[i];
        if (!(c->weights[i] >= 0) || isinf(sum)) sum = -HUGE_VAL;
    }
    if (sum > 0) return STK_OK;
    return stk_fail(
        err, STK_ERR_ARGUMENT,
        "sample_from_datasets: weights must not be negative and their sum must be positive");
}

stk_dataset *stk_data_sample_from(int32_t n, stk_dataset *const *inputs, const double *weights,
                                  uint64_t seed, bool stop_on_empty, stk_error *err)
{
    if (n < 1 || !inputs) {
        (void)stk_fail(err, STK_ERR_ARGUMENT, "sample_from_datasets: it takes one dataset or more");
        return NULL;
    }
    stk_dataset *ds = stk_dataset_make(&stk_node_sample, n, inputs, sizeof(choose), err);
    if (!ds) return NULL;
    choose *c = ds->config;
    *c = (choose){.sample = true, .stop_on_empty = stop_on_empty, .seed = seed, .n = n};
    stk_status status = set_weights(c, weights, err);
    if (status == STK_OK) status = settle(ds, err);
    return stk_dataset_done(ds, status);
}

stk_dataset *stk_data_choose_from(int32_t n, stk_dataset *const *inputs, stk_dataset *choice,
                                  bool stop_on_empty, stk_error *err)
{
    stk_dataset **all = n >= 1 && inputs ? stk_calloc((size_t)n + 1, sizeof *all) : NULL;
    if (!all) {
        (void)stk_fail(
            err, n >= 1 && inputs ? STK_ERR_MEMORY : STK_ERR_ARGUMENT,
            "choose_from_datasets: it takes one dataset or more, and memory for the list");
        for (int32_t i = 0; inputs && i < n; i++) stk_dataset_release(inputs[i]);
        stk_dataset_release(choice);
        return NULL;
    }
    memcpy(all, inputs, (size_t)n * sizeof *all);
    all[n] = choice;
    stk_dataset *ds = stk_dataset_make(&stk_node_choose, n + 1, all, sizeof(choose), err);
    stk_free(all);
    if (!ds) return NULL;
    *(choose *)ds->config = (choose){.stop_on_empty = stop_on_empty, .n = n};
    stk_status status = settle(ds, err);
    if (status == STK_OK && (choice->schema->n != 1 || choice->schema->fields[0].rank > 0))
        status = stk_fail(err, STK_ERR_SHAPE, "choose_from_datasets: the choices must be scalars");
    return stk_dataset_done(ds, status);
}
