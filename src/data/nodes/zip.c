/* zip - one element of each input side by side; as long as the shortest. enumerate is a zip with a range. */
#include "data/core/element_list.h"
#include "data/core/iter.h"

#include <string.h>

/* ---- by number ------------------------------------------------------------------------------------- */
static stk_status get(stk_stage *stage, uint64_t epoch, int64_t index, stk_tensor **parts,
                      stk_error *err)
{
    int32_t at = 0;
    for (int32_t i = 0; i < stage->nin; i++) {
        stk_status status = stk_stage_get(stage->in[i], epoch, index, parts + at, err);
        if (status != STK_OK) {
            stk_parts_release(at, parts);
            return status;
        }
        at += stage->in[i]->ds->schema->n;
    }
    return STK_OK;
}

static stk_status rows(stk_stage *stage, uint64_t epoch, int64_t n, const int64_t *index,
                       stk_tensor *const *slots, int64_t row, stk_error *err)
{
    for (int32_t i = 0; i < stage->nin; i++) {
        STK_TRY(stk_stage_rows(stage->in[i], epoch, n, index, slots, row, err));
        slots += stage->in[i]->ds->schema->n;
    }
    return STK_OK;
}

static stk_status slice(stk_stage *stage, uint64_t epoch, int64_t first, int64_t n,
                        stk_tensor **parts, stk_error *err)
{
    int32_t at = 0;
    for (int32_t i = 0; i < stage->nin; i++) {
        stk_status status = stk_stage_slice(stage->in[i], epoch, first, n, parts + at, err);
        if (status != STK_OK || !parts[at]) { /* all or none */
            stk_parts_release(at, parts);
            return status;
        }
        at += stage->in[i]->ds->schema->n;
    }
    return STK_OK;
}

/* ---- in order ----------------------------------------------------------------------------------------- */
typedef struct zipping {
    stk_iter **in;
    bool ended;
} zipping;

static stk_status open(stk_iter *it, stk_error *err)
{
    return stk_iters_open(it, &((zipping *)it->own)->in, err);
}

/* All inputs are read, also behind one that failed, so that they stay side by side. */
static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    zipping *own = it->own;
    stk_status first = STK_OK;
    int32_t at = 0;
    for (int32_t i = 0; i < it->stage->nin && !own->ended; i++) {
        stk_error error;
        stk_status status = stk_iter_next(own->in[i], parts + at, &own->ended, &error);
        if (status != STK_OK && first == STK_OK) {
            first = status;
            if (err) *err = error;
        }
        at += it->stage->in[i]->ds->schema->n;
    }
    *end = own->ended;
    if (*end || first != STK_OK) stk_parts_release(at, parts);
    return *end ? STK_OK : first;
}

static stk_status save(stk_iter *it, stk_state *out, stk_error *err)
{
    zipping *own = it->own;
    stk_state_put(out, own->ended);
    for (int32_t i = 0; i < it->stage->nin; i++) STK_TRY(stk_iter_save(own->in[i], out, err));
    return STK_OK;
}

static stk_status restore(stk_iter *it, stk_state *in, stk_error *err)
{
    zipping *own = it->own;
    own->ended = stk_state_get_in(in, 0, 1);
    for (int32_t i = 0; i < it->stage->nin; i++) STK_TRY(stk_iter_restore(own->in[i], in, err));
    return STK_OK;
}

static void close(stk_iter *it) { stk_iters_close(it, ((zipping *)it->own)->in); }

static const stk_walk walk = {sizeof(zipping), open, next, save, restore, close};

#define KIND(called)                                                                               \
    {                                                                                              \
        .name = called, .get = get, .rows = rows, .slice = slice, .walk = &walk,                   \
        .steady = stk_always_steady, .passes = true                                                \
    }
const stk_node_kind stk_node_zip = KIND("zip");
const stk_node_kind stk_node_enumerate = KIND("enumerate");

static int64_t shorter(int64_t a, int64_t b)
{
    if (a == STK_UNKNOWN || b == STK_UNKNOWN) return a == 0 || b == 0 ? 0 : STK_UNKNOWN;
    if (a == STK_INFINITE) return b;
    return b == STK_INFINITE ? a : stk_min_i64(a, b);
}

static stk_dataset *make(const stk_node_kind *kind, int32_t n, stk_dataset *const *inputs,
                         stk_error *err)
{
    stk_dataset *ds = stk_dataset_make(kind, n, inputs, 1, err);
    if (!ds) return NULL;
    const stk_schema **schemas = stk_calloc((size_t)n, sizeof *schemas);
    if (!schemas) return stk_dataset_done(ds, stk_fail_memory(err, "zip", 64));
    for (int32_t i = 0; i < n; i++) {
        schemas[i] = inputs[i]->schema;
        ds->random &= inputs[i]->random;
        if (i) ds->cardinality = shorter(ds->cardinality, inputs[i]->cardinality);
    }
    stk_schema *schema = NULL;
    stk_status status = stk_schema_join(n, schemas, &schema, err);
    stk_free(schemas);
    if (status == STK_OK) stk_dataset_set_schema(ds, schema);
    if (!ds->random) ds->ahead = 0;
    return stk_dataset_done(ds, status);
}

stk_dataset *stk_data_zip(int32_t n, stk_dataset *const *inputs, stk_error *err)
{
    if (n < 1 || !inputs) {
        (void)stk_fail(err, STK_ERR_ARGUMENT, "zip: it takes one input or more");
        return NULL;
    }
    return make(&stk_node_zip, n, inputs, err);
}

stk_dataset *stk_data_enumerate(stk_dataset *in, int64_t start, stk_error *err)
{
    if (!in) return NULL;
    stk_dataset *both[2] = {stk_data_range(start, start < 0 ? INT64_MAX / 2 : INT64_MAX, 1, err),
                            in};
    return make(&stk_node_enumerate, 2, both, err);
}
