/* Datasets: making, counting, asking. */
#include "data/core/node.h"
#include "data/nodes/kinds.h"

#include "base/rng.h"

#include <string.h>

static uint64_t salt_of(const stk_node_kind *kind, int32_t n, stk_dataset *const *inputs)
{
    uint64_t salt = 0x5A17;
    for (const char *c = kind->name; *c; c++) salt = stk_seed_mix(salt, (uint64_t)*c);
    for (int32_t i = 0; i < n; i++) salt = stk_seed_mix(salt, inputs[i]->salt);
    return salt;
}

stk_dataset *stk_dataset_make(const stk_node_kind *kind, int32_t n, stk_dataset *const *inputs,
                              size_t size, stk_error *err)
{
    bool whole = true;
    for (int32_t i = 0; i < n; i++) whole = whole && inputs[i];
    size_t at = (sizeof(stk_dataset) + 15) / 16 * 16, list = ((size_t)n + 1) * sizeof *inputs;
    stk_dataset *ds = whole ? stk_calloc(1, at + (list + 15) / 16 * 16 + size) : NULL;
    if (!ds) {
        if (whole) (void)stk_fail_memory(err, kind->name, at + list + size);
        for (int32_t i = 0; i < n; i++) stk_dataset_release(inputs[i]);
        return NULL;
    }
    ds->kind = kind;
    ds->refs = 1;
    ds->ninputs = n;
    ds->inputs = (stk_dataset **)((char *)ds + at);
    ds->config = (char *)ds + at + (list + 15) / 16 * 16;
    ds->parallel = 1;
    ds->salt = salt_of(kind, n, inputs);
    if (n) memcpy(ds->inputs, inputs, (size_t)n * sizeof *inputs);
    if (n) {
        const stk_dataset *in = inputs[0];
        ds->schema = stk_schema_retain(in->schema);
        ds->cardinality = in->cardinality;
        ds->random = in->random;
        ds->ahead = in->random ? in->ahead : 0;
        ds->unordered = in->random && in->unordered;
    }
    for (int32_t i = 0; i < n; i++)
        if (inputs[i]->random && inputs[i]->parallel != 1) ds->parallel = inputs[i]->parallel;
    return ds;
}

stk_dataset *stk_dataset_done(stk_dataset *ds, stk_status status)
{
    if (status == STK_OK) return ds;
    stk_dataset_release(ds);
    return NULL;
}

void stk_dataset_set_schema(stk_dataset *ds, stk_schema *schema)
{
    stk_schema_release(ds->schema);
    ds->schema = schema;
}

stk_status stk_dataset_announce(stk_dataset *ds, const stk_schema **output, stk_error *err)
{
    const stk_schema *said = *output;
    stk_schema *schema = NULL;
    *output = NULL;
    STK_TRY(stk_schema_new(said->n, said->fields, said->structure, &schema, err));
    stk_dataset_set_schema(ds, schema);
    *output = schema;
    return STK_OK;
}

void stk_dataset_in_order(stk_dataset *ds)
{
    ds->random = false;
    ds->ahead = 0;
    if (ds->cardinality != 0) ds->cardinality = STK_UNKNOWN;
}

void stk_dataset_unknown(stk_dataset *ds)
{
    stk_dataset_in_order(ds);
    ds->cardinality = STK_UNKNOWN;
}

bool stk_always_steady(const stk_dataset *ds) { return ds != NULL; }

bool stk_dataset_is_steady(const stk_dataset *ds)
{
    bool steady = ds->kind->steady && ds->kind->steady(ds);
    for (int32_t i = 0; i < ds->ninputs && steady; i++)
        steady = stk_dataset_is_steady(ds->inputs[i]);
    return steady;
}

bool stk_dataset_repeats(const stk_dataset *ds)
{
    bool repeats = ds->kind != &stk_node_generator || ds->kind->steady(ds);
    for (int32_t i = 0; i < ds->ninputs && repeats; i++)
        repeats = stk_dataset_repeats(ds->inputs[i]);
    return repeats;
}

stk_dataset *stk_dataset_over(stk_dataset *ds, stk_dataset *const *inputs, stk_error *err)
{
    stk_dataset *copy = stk_dataset_make(ds->kind, ds->ninputs, inputs, 1, err);
    if (!copy) return NULL;
    stk_dataset_set_schema(copy, stk_schema_retain(ds->schema));
    copy->cardinality = ds->cardinality;
    copy->random = ds->random;
    copy->ahead = ds->ahead;
    copy->unordered = ds->unordered;
    copy->parallel = ds->parallel;
    copy->salt = ds->salt;
    copy->config = ds->config;
    copy->origin = stk_dataset_retain(ds);
    return copy;
}

stk_dataset *stk_dataset_retain(stk_dataset *ds)
{
    if (ds) __atomic_add_fetch(&ds->refs, 1, __ATOMIC_RELAXED);
    return ds;
}

/* Long chains are walked, not recursed into: concatenating in a loop makes deep trees. */
void stk_dataset_release(stk_dataset *ds)
{
    while (ds && __atomic_sub_fetch(&ds->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        if (ds->kind->drop && !ds->origin) ds->kind->drop(ds);
        stk_dataset_release(ds->origin);
        stk_dataset *first = ds->ninputs ? ds->inputs[0] : NULL;
        for (int32_t i = 1; i < ds->ninputs; i++) stk_dataset_release(ds->inputs[i]);
        stk_schema_release(ds->schema);
        stk_free(ds);
        ds = first;
    }
}

const stk_schema *stk_dataset_schema(const stk_dataset *ds) { return ds ? ds->schema : NULL; }
int64_t stk_dataset_cardinality(const stk_dataset *ds)
{
    return ds ? ds->cardinality : STK_UNKNOWN;
}
bool stk_dataset_random_access(const stk_dataset *ds) { return ds && ds->random; }
const char *stk_dataset_name(const stk_dataset *ds) { return ds ? ds->kind->name : "nothing"; }
int32_t stk_dataset_inputs(const stk_dataset *ds) { return ds ? ds->ninputs : 0; }
stk_dataset *stk_dataset_input(const stk_dataset *ds, int32_t index)
{
    return ds && index >= 0 && index < ds->ninputs ? ds->inputs[index] : NULL;
}

uint64_t stk_seed_mix(uint64_t seed, uint64_t with)
{
    return stk_mix64(seed * 0x9E3779B97F4A7C15u + stk_mix64(with + 0x632BE59BD9B4E019u));
}

uint64_t stk_epoch_of_pass(uint64_t epoch, int64_t pass)
{
    return pass ? stk_seed_mix(epoch, (uint64_t)pass) : epoch;
}
