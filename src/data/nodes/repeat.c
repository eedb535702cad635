/* repeat - the input again and again, each pass an epoch of its own for shuffles and random maps. */
#include "data/core/node.h"

#include <stdio.h>

typedef struct repeat {
    int64_t times; /* STK_INFINITE */
} repeat;

static void describe(const stk_dataset *ds, char *text, size_t size)
{
    const repeat *c = ds->config;
    if (c->times < 0)
        snprintf(text, size, "for ever");
    else
        snprintf(text, size, "%lld", (long long)c->times);
}

/* ---- by number: no drain between passes ---------------------------------------------------------- */
static stk_status get(stk_stage *stage, uint64_t epoch, int64_t index, stk_tensor **parts,
                      stk_error *err)
{
    stk_stage *in = stage->in[0];
    int64_t n = in->ds->cardinality;
    if (n <= 0) return stk_stage_get(in, epoch, index, parts, err);
    return stk_stage_get(in, stk_epoch_of_pass(epoch, index / n), index % n, parts, err);
}

static stk_status rows(stk_stage *stage, uint64_t epoch, int64_t count, const int64_t *index,
                       stk_tensor *const *slots, int64_t row, stk_error *err)
{
    enum { CHUNK = 512 };
    stk_stage *in = stage->in[0];
    int64_t n = in->ds->cardinality, there[CHUNK];
    if (n <= 0) return stk_stage_rows(in, epoch, count, index, slots, row, err);
    for (int64_t at = 0; at < count;) {
        int64_t pass = index[at] / n, base = pass * n, k = 0;
        while (k < CHUNK && at + k < count && index[at + k] >= base && index[at + k] < base + n) {
            there[k] = index[at + k] - base;
            k++;
        }
        STK_TRY(stk_stage_rows(in, stk_epoch_of_pass(epoch, pass), k, there, slots, row + at, err));
        at += k;
    }
    return STK_OK;
}

static stk_status slice(stk_stage *stage, uint64_t epoch, int64_t first, int64_t count,
                        stk_tensor **parts, stk_error *err)
{
    stk_stage *in = stage->in[0];
    int64_t n = in->ds->cardinality;
    if (n <= 0) return stk_stage_slice(in, epoch, first, count, parts, err);
    if (first / n != (first + count - 1) / n) return STK_OK;
    return stk_stage_slice(in, stk_epoch_of_pass(epoch, first / n), first % n, count, parts, err);
}

/* ---- in order ----------------------------------------------------------------------------------------- */
typedef struct repeating {
    stk_iter *in;
    int64_t pass;
    bool any; /* this pass had an element */
} repeating;

static stk_status start_pass(stk_iter *it, stk_error *err)
{
    repeating *own = it->own;
    stk_iter_close(own->in);
    own->in = NULL;
    own->any = false;
    return stk_iter_open(it->stage->in[0], stk_epoch_of_pass(it->epoch, own->pass), &own->in, err);
}

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    repeating *own = it->own;
    const repeat *c = it->stage->ds->config;
    for (;;) {
        *end = c->times >= 0 && own->pass >= c->times;
        if (*end) return STK_OK;
        if (!own->in) STK_TRY(start_pass(it, err));
        stk_status status = stk_iter_next(own->in, parts, end, err);
        if (status != STK_OK || !*end) {
            own->any = true;
            return status;
        }
        if (!own->any) return STK_OK; /* an empty input stays empty, however often */
        own->pass++;
        stk_iter_close(own->in);
        own->in = NULL;
    }
}

static stk_status save(stk_iter *it, stk_state *out, stk_error *err)
{
    repeating *own = it->own;
    stk_state_put(out, own->pass);
    stk_state_put(out, own->any);
    stk_state_put(out, own->in != NULL);
    return own->in ? stk_iter_save(own->in, out, err) : STK_OK;
}

static stk_status restore(stk_iter *it, stk_state *in, stk_error *err)
{
    repeating *own = it->own;
    own->pass = stk_state_get_in(in, 0, INT64_MAX);
    bool any = stk_state_get_in(in, 0, 1), open = stk_state_get_in(in, 0, 1);
    STK_TRY(stk_state_status(in, err));
    if (!open) return STK_OK;
    STK_TRY(start_pass(it, err));
    own->any = any;
    return stk_iter_restore(own->in, in, err);
}

static void close(stk_iter *it) { stk_iter_close(((repeating *)it->own)->in); }

static bool idle(const stk_dataset *ds) { return ((const repeat *)ds->config)->times == 1; }

static const stk_walk walk = {sizeof(repeating), NULL, next, save, restore, close};

const stk_node_kind stk_node_repeat = {.name = "repeat",
                                       .idle = idle,
                                       .describe = describe,
                                       .get = get,
                                       .rows = rows,
                                       .slice = slice,
                                       .walk = &walk};

stk_dataset *stk_data_repeat(stk_dataset *in, int64_t times, stk_error *err)
{
    stk_dataset *ds = stk_dataset_make(&stk_node_repeat, 1, &in, sizeof(repeat), err);
    if (!ds) return NULL;
    if (times < 0) times = STK_INFINITE;
    ((repeat *)ds->config)->times = times;
    int64_t n = in->cardinality;
    if (times == 0)
        ds->cardinality = 0;
    else if (times == STK_INFINITE && n > 0)
        ds->cardinality = STK_INFINITE;
    else if (n >= 0 && times > 0 && !stk_mul_i64(n, times, &ds->cardinality))
        ds->cardinality = STK_INFINITE;
    return ds;
}
