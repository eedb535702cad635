/* random - int64 numbers of 0 .. 2^63 - 1, number i keyed by (seed, epoch, i). */
#include "base/rng.h"
#include "data/core/node.h"

#include <stdio.h>

typedef struct source {
    uint64_t seed;
} source;

static void describe(const stk_dataset *ds, char *text, size_t size)
{
    snprintf(text, size, "seed %llu", (unsigned long long)((const source *)ds->config)->seed);
}

static int64_t number(const stk_stage *stage, uint64_t epoch, int64_t index)
{
    const source *c = stage->ds->config;
    uint32_t words[4];
    stk_rng_block((stk_rng){stk_seed_mix(c->seed, epoch), 0x7A11}, (uint64_t)index, words);
    return (int64_t)(((uint64_t)words[0] << 32 | words[1]) >> 1);
}

static stk_status get(stk_stage *stage, uint64_t epoch, int64_t index, stk_tensor **parts,
                      stk_error *err)
{
    int64_t value = number(stage, epoch, index);
    return stk_tensor_from(STK_I64, 0, NULL, &value, &parts[0], err);
}

static stk_status rows(stk_stage *stage, uint64_t epoch, int64_t n, const int64_t *index,
                       stk_tensor *const *slots, int64_t row, stk_error *err)
{
    (void)err;
    int64_t *to = (int64_t *)slots[0]->data + row;
    for (int64_t i = 0; i < n; i++) to[i] = number(stage, epoch, index[i]);
    return STK_OK;
}

const stk_node_kind stk_node_random = {
    .name = "random", .describe = describe, .get = get, .rows = rows};

stk_dataset *stk_data_random(uint64_t seed, int64_t count, stk_error *err)
{
    stk_dataset *ds = stk_dataset_make(&stk_node_random, 0, NULL, sizeof(source), err);
    if (!ds) return NULL;
    ((source *)ds->config)->seed = seed;
    ds->random = true;
    ds->cardinality = count < 0 ? STK_INFINITE : count;
    stk_schema *schema = NULL;
    stk_status status = stk_schema_new(1, &(stk_field){.dtype = STK_I64}, NULL, &schema, err);
    if (status == STK_OK) stk_dataset_set_schema(ds, schema);
    return stk_dataset_done(ds, status);
}
