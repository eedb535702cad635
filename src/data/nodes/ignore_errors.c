/* ignore_errors - passes over elements that cannot be made, and counts them. */
#include "data/core/iter.h"

#include <stdio.h>

enum { MOST_IN_A_ROW = 1000000 }; /* an input that fails for ever would keep us for ever */

enum { PASSED_OVER }; /* number of the walk */

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    stk_follow *own = it->own;
    stk_status status = STK_OK;
    for (int i = 0; i < MOST_IN_A_ROW; i++) {
        status = stk_iter_next(own->in, parts, end, err);
        if (status == STK_OK || stk_status_is_fatal(status)) return status;
        own->number[PASSED_OVER]++;
        __atomic_add_fetch(&it->stage->count.errors, 1, __ATOMIC_RELAXED);
    }
    return status;
}

static const stk_walk walk = {sizeof(stk_follow), stk_follow_open,    next,
                              stk_follow_save,    stk_follow_restore, stk_follow_close};

const stk_node_kind stk_node_ignore_errors = {
    .name = "ignore_errors", .walk = &walk, .steady = stk_always_steady, .passes = true};

stk_dataset *stk_data_ignore_errors(stk_dataset *in, stk_error *err)
{
    stk_dataset *ds = stk_dataset_make(&stk_node_ignore_errors, 1, &in, 1, err);
    if (!ds) return NULL;
    stk_dataset_in_order(ds);
    if (in->cardinality == STK_INFINITE) ds->cardinality = STK_INFINITE;
    return ds;
}
