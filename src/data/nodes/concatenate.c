/* concatenate - one dataset after the other. */
#include "data/core/element_list.h"

/* ---- by number ------------------------------------------------------------------------------------- */
static stk_status get(stk_stage *stage, uint64_t epoch, int64_t index, stk_tensor **parts,
                      stk_error *err)
{
    int64_t n = stage->in[0]->ds->cardinality;
    if (index < n) return stk_stage_get(stage->in[0], epoch, index, parts, err);
    return stk_stage_get(stage->in[1], epoch, index - n, parts, err);
}

/* Runs of indices that lie on the same side go together. */
static stk_status rows(stk_stage *stage, uint64_t epoch, int64_t count, const int64_t *index,
                       stk_tensor *const *slots, int64_t row, stk_error *err)
{
    enum { CHUNK = 512 };
    int64_t n = stage->in[0]->ds->cardinality, there[CHUNK];
    for (int64_t at = 0; at < count;) {
        bool second = index[at] >= n;
        int64_t k = 0;
        for (; k < CHUNK && at + k < count && (index[at + k] >= n) == second; k++)
            there[k] = index[at + k] - (second ? n : 0);
        STK_TRY(stk_stage_rows(stage->in[second], epoch, k, there, slots, row + at, err));
        at += k;
    }
    return STK_OK;
}

static stk_status slice(stk_stage *stage, uint64_t epoch, int64_t first, int64_t count,
                        stk_tensor **parts, stk_error *err)
{
    int64_t n = stage->in[0]->ds->cardinality;
    if (first + count <= n) return stk_stage_slice(stage->in[0], epoch, first, count, parts, err);
    if (first < n) return STK_OK;
    return stk_stage_slice(stage->in[1], epoch, first - n, count, parts, err);
}

/* ---- in order ----------------------------------------------------------------------------------------- */
typedef struct joining {
    stk_iter *in;
    int64_t which;
} joining;

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    joining *own = it->own;
    for (;;) {
        *end = own->which > 1;
        if (*end) return STK_OK;
        if (!own->in) STK_TRY(stk_iter_open(it->stage->in[own->which], it->epoch, &own->in, err));
        stk_status status = stk_iter_next(own->in, parts, end, err);
        if (status != STK_OK || !*end) return status;
        stk_iter_close(own->in);
        own->in = NULL;
        own->which++;
    }
}

static stk_status save(stk_iter *it, stk_state *out, stk_error *err)
{
    joining *own = it->own;
    stk_state_put(out, own->which);
    stk_state_put(out, own->in != NULL);
    return own->in ? stk_iter_save(own->in, out, err) : STK_OK;
}

static stk_status restore(stk_iter *it, stk_state *in, stk_error *err)
{
    joining *own = it->own;
    own->which = stk_state_get_in(in, 0, 2);
    bool open = stk_state_get_in(in, 0, own->which < 2);
    STK_TRY(stk_state_status(in, err));
    if (!open) return STK_OK;
    STK_TRY(stk_iter_open(it->stage->in[own->which], it->epoch, &own->in, err));
    return stk_iter_restore(own->in, in, err);
}

static void close(stk_iter *it) { stk_iter_close(((joining *)it->own)->in); }

static const stk_walk walk = {sizeof(joining), NULL, next, save, restore, close};

const stk_node_kind stk_node_concatenate = {.name = "concatenate",
                                            .get = get,
                                            .rows = rows,
                                            .slice = slice,
                                            .walk = &walk,
                                            .steady = stk_always_steady,
                                            .passes = true};

stk_dataset *stk_data_concatenate(stk_dataset *first, stk_dataset *second, stk_error *err)
{
    stk_dataset *both[2] = {first, second};
    stk_dataset *ds = stk_dataset_make(&stk_node_concatenate, 2, both, 1, err);
    if (!ds) return NULL;
    int64_t n = first->cardinality, m = second->cardinality;
    ds->random = first->random && second->random && n >= 0;
    if (!ds->random) ds->ahead = 0;
    if (n >= 0 && (m < 0 || __builtin_add_overflow(n, m, &ds->cardinality))) ds->cardinality = m;
    if (n == STK_UNKNOWN && m == STK_INFINITE) ds->cardinality = STK_INFINITE;
    stk_schema *schema = NULL;
    stk_status status =
        stk_schema_common("concatenate", first->schema, second->schema, &schema, err);
    if (status == STK_OK) stk_dataset_set_schema(ds, schema);
    return stk_dataset_done(ds, status);
}
