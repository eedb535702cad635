/* take, skip, shard - some of the elements. One node: every `step`-th from `first` on, `count` of them at most. */
#include "data/core/iter.h"

#include <stdio.h>
#include <string.h>

typedef struct some {
    const char *name;           /* as it was asked for */
    int64_t first, step, count; /* count STK_INFINITE: all */
} some;

static void describe(const stk_dataset *ds, char *text, size_t size)
{
    const some *c = ds->config;
    if (!strcmp(c->name, "take"))
        snprintf(text, size, "%lld", (long long)c->count);
    else if (!strcmp(c->name, "skip"))
        snprintf(text, size, "%lld", (long long)c->first);
    else
        snprintf(text, size, "%lld of %lld", (long long)c->first, (long long)c->step);
}

/* ---- by number ------------------------------------------------------------------------------------- */
static stk_status get(stk_stage *stage, uint64_t epoch, int64_t index, stk_tensor **parts,
                      stk_error *err)
{
    const some *c = stage->ds->config;
    return stk_stage_get(stage->in[0], epoch, c->first + index * c->step, parts, err);
}

static stk_status rows(stk_stage *stage, uint64_t epoch, int64_t n, const int64_t *index,
                       stk_tensor *const *slots, int64_t row, stk_error *err)
{
    enum { CHUNK = 512 };
    const some *c = stage->ds->config;
    int64_t there[CHUNK];
    for (int64_t at = 0; at < n; at += CHUNK) {
        int64_t count = stk_min_i64(CHUNK, n - at);
        for (int64_t i = 0; i < count; i++) there[i] = c->first + index[at + i] * c->step;
        STK_TRY(stk_stage_rows(stage->in[0], epoch, count, there, slots, row + at, err));
    }
    return STK_OK;
}

static stk_status slice(stk_stage *stage, uint64_t epoch, int64_t first, int64_t n,
                        stk_tensor **parts, stk_error *err)
{
    const some *c = stage->ds->config;
    if (c->step != 1) return STK_OK;
    return stk_stage_slice(stage->in[0], epoch, c->first + first, n, parts, err);
}

/* ---- in order ---------------------------------------------------------------------------------------- */
enum { GIVEN, SKIP }; /* numbers of the walk: handed out; to be dropped before the next */

static stk_status open(stk_iter *it, stk_error *err)
{
    stk_follow *own = it->own;
    const some *c = it->stage->ds->config;
    own->number[SKIP] = c->first;
    return stk_follow_open(it, err);
}

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    stk_follow *own = it->own;
    const some *c = it->stage->ds->config;
    *end = c->count >= 0 && own->number[GIVEN] >= c->count;
    if (*end) return STK_OK;
    int64_t skip = own->number[SKIP];
    own->number[SKIP] = c->step - 1;
    STK_TRY(stk_iter_skip(own->in, skip, end, err));
    if (*end) return STK_OK;
    own->number[GIVEN]++;
    return stk_iter_next(own->in, parts, end, err);
}

static bool idle(const stk_dataset *ds)
{
    const some *c = ds->config;
    return c->first == 0 && c->step == 1 && c->count < 0;
}

static const stk_walk walk = {sizeof(stk_follow), open, next, stk_follow_save, stk_follow_restore,
                              stk_follow_close};

#define KIND(called)                                                                               \
    {                                                                                              \
        .name = called, .idle = idle, .describe = describe, .get = get, .rows = rows,              \
        .slice = slice, .walk = &walk, .steady = stk_always_steady, .passes = true                 \
    }
const stk_node_kind stk_node_take = KIND("take");
const stk_node_kind stk_node_skip = KIND("skip");
const stk_node_kind stk_node_shard = KIND("shard");

static stk_dataset *make(const stk_node_kind *kind, stk_dataset *in, int64_t first, int64_t step,
                         int64_t count, stk_error *err)
{
    stk_dataset *ds = stk_dataset_make(kind, 1, &in, sizeof(some), err);
    if (!ds) return NULL;
    *(some *)ds->config = (some){kind->name, first, step, count};
    int64_t n = in->cardinality;
    if (n >= 0) ds->cardinality = n > first ? (n - first - 1) / step + 1 : 0;
    if (count >= 0 && (ds->cardinality >= 0 || n == STK_INFINITE))
        ds->cardinality = n == STK_INFINITE ? count : stk_min_i64(ds->cardinality, count);
    return ds;
}

stk_dataset *stk_data_take(stk_dataset *in, int64_t count, stk_error *err)
{
    return make(&stk_node_take, in, 0, 1, count < 0 ? STK_INFINITE : count, err);
}

/* A negative count skips everything, as tf.data has it. */
stk_dataset *stk_data_skip(stk_dataset *in, int64_t count, stk_error *err)
{
    if (count < 0) return make(&stk_node_take, in, 0, 1, 0, err);
    return make(&stk_node_skip, in, count, 1, STK_INFINITE, err);
}

stk_dataset *stk_data_shard(stk_dataset *in, int64_t shards, int64_t index, stk_error *err)
{
    if (in && (shards < 1 || index < 0 || index >= shards)) {
        (void)stk_fail(err, STK_ERR_RANGE, "shard: %lld of %lld; the number must be in 0..%lld",
                       (long long)index, (long long)shards, (long long)shards - 1);
        stk_dataset_release(in);
        return NULL;
    }
    return make(&stk_node_shard, in, index, shards, STK_INFINITE, err);
}
