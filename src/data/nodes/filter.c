/* filter, take_while - elements for which a function says yes; up to the first for which it says no. */
#include "data/node.h"

#include <stdio.h>

typedef struct filter {
    stk_fn *fn;
    bool stop; /* take_while */
} filter;

static void drop(stk_dataset *ds) { stk_fn_release(((filter *)ds->config)->fn); }

static void describe(const stk_dataset *ds, char *text, size_t size)
{
    snprintf(text, size, "%s", ((const filter *)ds->config)->fn->name);
}

typedef struct filtering {
    stk_iter *in;
    int64_t seen;
    bool ended;
} filtering;

static stk_status open(stk_iter *it, stk_error *err)
{
    return stk_iter_open(it->stage->in[0], it->epoch, &((filtering *)it->own)->in, err);
}

static stk_status ask(stk_iter *it, stk_tensor *const *parts, bool *yes, stk_error *err)
{
    filtering *own = it->own;
    const filter *c = it->stage->ds->config;
    stk_tensor *answer = NULL;
    STK_TRY(stk_fn_call(c->fn, it->epoch, own->seen - 1, parts, &answer, err));
    *yes = stk_tensor_count(answer) == 1 && stk_tensor_at(answer, 0) != 0;
    stk_tensor_release(answer);
    return STK_OK;
}

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    filtering *own = it->own;
    const filter *c = it->stage->ds->config;
    for (;;) {
        *end = own->ended;
        if (*end) return STK_OK;
        stk_status status = stk_iter_next(own->in, parts, &own->ended, err);
        *end = own->ended;
        if (*end) return STK_OK;
        own->seen++;
        STK_TRY(status);
        bool yes = false;
        status = ask(it, parts, &yes, err);
        if (status == STK_OK && yes) return STK_OK;
        stk_parts_release(it->stage->ds->schema->n, parts);
        STK_TRY(status);
        own->ended = c->stop;
    }
}

static stk_status save(stk_iter *it, stk_state *out, stk_error *err)
{
    filtering *own = it->own;
    stk_state_put(out, own->seen);
    stk_state_put(out, own->ended);
    return stk_iter_save(own->in, out, err);
}

static stk_status restore(stk_iter *it, stk_state *in, stk_error *err)
{
    filtering *own = it->own;
    own->seen = stk_state_get_in(in, 0, INT64_MAX);
    own->ended = stk_state_get_in(in, 0, 1);
    return stk_iter_restore(own->in, in, err);
}

static void close(stk_iter *it) { stk_iter_close(((filtering *)it->own)->in); }

#define FILTER(title)                                                                              \
    {                                                                                              \
        .name = title, .drop = drop, .describe = describe, .walk = {                               \
            .size = sizeof(filtering),                                                             \
            .open = open,                                                                          \
            .next = next,                                                                          \
            .save = save,                                                                          \
            .restore = restore,                                                                    \
            .close = close                                                                         \
        }                                                                                          \
    }
const stk_node_kind stk_node_filter = FILTER("filter"), stk_node_take_while = FILTER("take_while");

static stk_dataset *make(const stk_node_kind *kind, stk_dataset *in, const stk_map_fn *fn,
                         bool stop, stk_error *err)
{
    stk_fn *f = NULL;
    if (!in) {
        if (fn && fn->release) fn->release(fn->context);
        return NULL;
    }
    stk_map_fn answer = fn ? *fn : (stk_map_fn){0};
    static const stk_field yes_no = {.dtype = STK_BOOL};
    static const stk_schema one = {1, &yes_no, "0"};
    if (!answer.schema && !answer.output) answer.output = &one;
    stk_status status = stk_fn_new(kind->name, &answer, in->schema, in->salt, &f, err);
    if (status == STK_OK && f->output->n != 1)
        status = stk_fail(err, STK_ERR_ARGUMENT, "%s: %s gives %d parts; it must give one scalar",
                          kind->name, f->name, (int)f->output->n);
    if (status != STK_OK) {
        stk_fn_release(f);
        stk_dataset_release(in);
        return NULL;
    }
    stk_dataset *ds = stk_dataset_make(kind, 1, &in, sizeof(filter), err);
    if (!ds) {
        stk_fn_release(f);
        return NULL;
    }
    *(filter *)ds->config = (filter){f, stop};
    ds->random = false;
    ds->ahead = 0;
    if (in->cardinality != 0) ds->cardinality = STK_UNKNOWN;
    return ds;
}

stk_dataset *stk_data_filter(stk_dataset *in, const stk_map_fn *fn, stk_error *err)
{
    return make(&stk_node_filter, in, fn, false, err);
}

stk_dataset *stk_data_take_while(stk_dataset *in, const stk_map_fn *fn, stk_error *err)
{
    return make(&stk_node_take_while, in, fn, true, err);
}
