/* filter, take_while - elements for which a function says yes; up to the first for which it says no. */
#include "data/core/iter.h"

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

enum { SEEN, ENDED }; /* numbers of the walk */

static stk_status ask(stk_iter *it, stk_tensor *const *parts, bool *yes, stk_error *err)
{
    stk_follow *own = it->own;
    const filter *c = it->stage->ds->config;
    stk_tensor *answer = NULL;
    STK_TRY(stk_fn_call(c->fn, it->epoch, own->number[SEEN] - 1, parts, &answer, err));
    *yes = stk_tensor_count(answer) == 1 && stk_tensor_at(answer, 0) != 0;
    stk_tensor_release(answer);
    return STK_OK;
}

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    stk_follow *own = it->own;
    const filter *c = it->stage->ds->config;
    for (;;) {
        *end = own->number[ENDED];
        if (*end) return STK_OK;
        stk_status status = stk_iter_next(own->in, parts, end, err);
        own->number[ENDED] = *end;
        if (*end) return STK_OK;
        own->number[SEEN]++;
        STK_TRY(status);
        bool yes = false;
        status = ask(it, parts, &yes, err);
        if (status == STK_OK && yes) return STK_OK;
        stk_parts_release(it->stage->ds->schema->n, parts);
        STK_TRY(status);
        own->number[ENDED] = c->stop;
    }
}

static const stk_walk walk = {sizeof(stk_follow), stk_follow_open,    next,
                              stk_follow_save,    stk_follow_restore, stk_follow_close};

static bool steady(const stk_dataset *ds)
{
    return stk_fn_is_pure(((const filter *)ds->config)->fn);
}

const stk_node_kind stk_node_filter = {
    .name = "filter", .drop = drop, .describe = describe, .walk = &walk, .steady = steady};
const stk_node_kind stk_node_take_while = {
    .name = "take_while", .drop = drop, .describe = describe, .walk = &walk, .steady = steady};

static stk_dataset *make(const stk_node_kind *kind, stk_dataset *in, const stk_map_fn *fn,
                         bool stop, stk_error *err)
{
    stk_fn *f = NULL;
    stk_dataset *ds = stk_dataset_asking(kind, in, fn, STK_BOOL, sizeof(filter), &f, err);
    if (ds) *(filter *)ds->config = (filter){f, stop};
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
