/* range - start, start + step, ... before stop, as int64 scalars. */
#include "data/core/node.h"

#include <stdio.h>

typedef struct range {
    int64_t start, stop, step;
} range;

static void describe(const stk_dataset *ds, char *text, size_t size)
{
    const range *c = ds->config;
    snprintf(text, size, "%lld..%lld step %lld", (long long)c->start, (long long)c->stop,
             (long long)c->step);
}

static stk_status get(stk_stage *stage, uint64_t epoch, int64_t index, stk_tensor **parts,
                      stk_error *err)
{
    (void)epoch;
    const range *c = stage->ds->config;
    int64_t value = c->start + index * c->step;
    return stk_tensor_from(STK_I64, 0, NULL, &value, &parts[0], err);
}

static stk_status rows(stk_stage *stage, uint64_t epoch, int64_t n, const int64_t *index,
                       stk_tensor *const *slots, int64_t row, stk_error *err)
{
    (void)epoch;
    (void)err;
    const range *c = stage->ds->config;
    int64_t *to = (int64_t *)slots[0]->data + row;
    for (int64_t i = 0; i < n; i++) to[i] = c->start + index[i] * c->step;
    return STK_OK;
}

const stk_node_kind stk_node_range = {.name = "range",
                                      .describe = describe,
                                      .get = get,
                                      .rows = rows,
                                      .steady = stk_always_steady,
                                      .passes = true};

stk_dataset *stk_data_range(int64_t start, int64_t stop, int64_t step, stk_error *err)
{
    int64_t span;
    if (step == 0 || step == INT64_MIN || __builtin_sub_overflow(stop, start, &span)) {
        (void)stk_fail(
            err, STK_ERR_RANGE,
            "range: %lld..%lld in steps of %lld cannot be counted; the step must not be 0 and "
            "the ends less than 2^63 apart",
            (long long)start, (long long)stop, (long long)step);
        return NULL;
    }
    stk_dataset *ds = stk_dataset_make(&stk_node_range, 0, NULL, sizeof(range), err);
    if (!ds) return NULL;
    *(range *)ds->config = (range){start, stop, step};
    bool empty = step > 0 ? span <= 0 : span >= 0;
    ds->cardinality = empty ? 0 : (span - (step > 0 ? 1 : -1)) / step + 1;
    ds->random = true;
    stk_schema *schema = NULL;
    stk_status status = stk_schema_new(1, &(stk_field){.dtype = STK_I64}, NULL, &schema, err);
    if (status == STK_OK) stk_dataset_set_schema(ds, schema);
    return stk_dataset_done(ds, status);
}
