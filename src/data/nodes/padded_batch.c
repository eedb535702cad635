/* padded_batch - batches of elements whose sizes differ, padded to the largest or to given sizes. */
#include "data/core/element_list.h"
#include "data/core/iter.h"
#include "data/nodes/pad.h"

#include <stdio.h>

typedef struct padded {
    int64_t size;
    bool drop_remainder;
    stk_pads pads;
} padded;

static void drop(stk_dataset *ds) { stk_pads_release(&((padded *)ds->config)->pads); }

static void describe(const stk_dataset *ds, char *text, size_t size)
{
    const padded *c = ds->config;
    snprintf(text, size, "%lld%s", (long long)c->size, c->drop_remainder ? ", drop_remainder" : "");
}

static stk_status get(stk_stage *stage, uint64_t epoch, int64_t index, stk_tensor **parts,
                      stk_error *err)
{
    const padded *c = stage->ds->config;
    stk_stage *in = stage->in[0];
    int64_t first = index * c->size, n = c->size;
    if (in->ds->cardinality >= 0) n = stk_min_i64(n, in->ds->cardinality - first);
    stk_tensor **elements = NULL;
    STK_TRY(stk_stage_elements(in, "padded_batch", epoch, first, 1, n, &elements, err));
    stk_status status =
        stk_pad_stack(stage->run, "padded_batch", &c->pads, n, elements, parts, err);
    stk_elements_free(n * in->ds->schema->n, elements);
    return status;
}

enum { ENDED }; /* number of the walk */

/* As in batch, a failing element spoils its batch and not the border of the next. */
static stk_status collect(stk_iter *it, stk_element_list *held, int64_t *seen, stk_error *err)
{
    stk_follow *own = it->own;
    const padded *c = it->stage->ds->config;
    stk_tensor **parts = stk_parts_new(held->width);
    if (!parts) return stk_fail_memory(err, "padded_batch", 64);
    stk_status first = STK_OK;
    while (*seen < c->size && !own->number[ENDED]) {
        stk_error error;
        bool end = false;
        stk_status status = stk_iter_next(own->in, parts, &end, &error);
        own->number[ENDED] = end;
        if (end) break;
        ++*seen;
        if (status == STK_OK) status = stk_element_list_add(held, parts, &error);
        stk_parts_release(held->width, parts);
        if (status != STK_OK && first == STK_OK) {
            first = status;
            if (err) *err = error;
        }
    }
    stk_free(parts);
    return first;
}

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    const padded *c = it->stage->ds->config;
    stk_element_list held = {.width = it->stage->ds->schema->n};
    int64_t seen = 0;
    stk_status status = collect(it, &held, &seen, err);
    *end = seen == 0 || (seen < c->size && c->drop_remainder);
    if (status == STK_OK && !*end)
        status = stk_pad_stack(it->stage->run, "padded_batch", &c->pads, held.count, held.parts,
                               parts, err);
    stk_element_list_release(&held);
    return *end ? STK_OK : status;
}

static const stk_walk walk = {sizeof(stk_follow), stk_follow_open,    next,
                              stk_follow_save,    stk_follow_restore, stk_follow_close};

const stk_node_kind stk_node_padded_batch = {.name = "padded_batch",
                                             .drop = drop,
                                             .describe = describe,
                                             .get = get,
                                             .walk = &walk,
                                             .steady = stk_always_steady,
                                             .passes = true};

stk_dataset *stk_data_padded_batch(stk_dataset *in, int64_t size, bool drop_remainder,
                                   const int64_t (*shapes)[STK_MAX_RANK], const double *values,
                                   stk_error *err)
{
    if (in && (size < 1 || size > INT32_MAX)) {
        (void)stk_fail(err, STK_ERR_RANGE, "padded_batch: a size of %lld; it takes 1 or more",
                       (long long)size);
        stk_dataset_release(in);
        return NULL;
    }
    stk_dataset *ds = stk_dataset_make(&stk_node_padded_batch, 1, &in, sizeof(padded), err);
    if (!ds) return NULL;
    padded *c = ds->config;
    c->size = size;
    c->drop_remainder = drop_remainder;
    int64_t n = in->cardinality;
    if (n >= 0) ds->cardinality = drop_remainder ? n / size : stk_ceil_div(n, size);
    bool whole = drop_remainder || n == STK_INFINITE || (n >= 0 && n % size == 0);
    stk_schema *schema = NULL;
    stk_status status = stk_pads_make("padded_batch", in->schema, shapes, values, &c->pads, err);
    stk_schema given = {c->pads.n, c->pads.fields, in->schema->structure};
    if (status == STK_OK) status = stk_schema_batched(&given, whole ? size : -1, &schema, err);
    if (status == STK_OK) stk_dataset_set_schema(ds, schema);
    return stk_dataset_done(ds, status);
}
