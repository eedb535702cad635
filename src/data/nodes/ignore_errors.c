/* ignore_errors - passes over elements that cannot be made, and counts them. Out of memory is never passed over. */
#include "data/node.h"

#include <stdio.h>

enum { MOST_IN_A_ROW = 1000000 }; /* an input that fails for ever would keep us for ever */

typedef struct passing {
    stk_iter *in;
    int64_t passed_over;
} passing;

static stk_status open(stk_iter *it, stk_error *err)
{
    return stk_iter_open(it->stage->in[0], it->epoch, &((passing *)it->own)->in, err);
}

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    passing *own = it->own;
    stk_status status = STK_OK;
    for (int i = 0; i < MOST_IN_A_ROW; i++) {
        status = stk_iter_next(own->in, parts, end, err);
        if (status == STK_OK || status == STK_ERR_MEMORY) return status;
        own->passed_over++;
        __atomic_add_fetch(&it->stage->count.errors, 1, __ATOMIC_RELAXED);
    }
    return status;
}

static stk_status save(stk_iter *it, stk_state *out, stk_error *err)
{
    passing *own = it->own;
    stk_state_put(out, own->passed_over);
    return stk_iter_save(own->in, out, err);
}

static stk_status restore(stk_iter *it, stk_state *in, stk_error *err)
{
    passing *own = it->own;
    own->passed_over = stk_state_get_in(in, 0, INT64_MAX);
    return stk_iter_restore(own->in, in, err);
}

static void close(stk_iter *it) { stk_iter_close(((passing *)it->own)->in); }

const stk_node_kind stk_node_ignore_errors = {.name = "ignore_errors",
                                              .walk = {.size = sizeof(passing),
                                                       .open = open,
                                                       .next = next,
                                                       .save = save,
                                                       .restore = restore,
                                                       .close = close}};

stk_dataset *stk_data_ignore_errors(stk_dataset *in, stk_error *err)
{
    stk_dataset *ds = stk_dataset_make(&stk_node_ignore_errors, 1, &in, 1, err);
    if (!ds) return NULL;
    ds->random = false;
    ds->ahead = 0;
    if (in->cardinality > 0) ds->cardinality = STK_UNKNOWN;
    return ds;
}
