/* Iterators: opening the walk that suits a stage, and the walk by number that needs no other thread. */
#include "data/iter.h"

#include "base/clock.h"
#include "data/run.h"

/* ---- by number, on the caller's thread ------------------------------------------------------- */
typedef struct numbered {
    int64_t position;
} numbered;

static stk_status numbered_next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    numbered *own = it->own;
    int64_t count = it->stage->ds->cardinality;
    *end = count >= 0 && own->position >= count;
    if (*end) return STK_OK;
    return it->stage->ds->kind->get(it->stage, it->epoch, own->position++, parts, err);
}

static stk_status numbered_save(stk_iter *it, stk_state *out, stk_error *err)
{
    (void)err;
    stk_state_put(out, ((numbered *)it->own)->position);
    return STK_OK;
}

static stk_status numbered_restore(stk_iter *it, stk_state *in, stk_error *err)
{
    ((numbered *)it->own)->position = stk_state_get_in(in, 0, INT64_MAX);
    return stk_state_status(in, err);
}

static const stk_walk numbered_walk = {.size = sizeof(numbered),
                                       .next = numbered_next,
                                       .save = numbered_save,
                                       .restore = numbered_restore};

/* ---- all iterators ------------------------------------------------------------------------------- */
static const stk_walk *walk_for(const stk_stage *stage)
{
    const stk_dataset *ds = stage->ds;
    if (!ds->random) return &ds->kind->walk;
    bool busy = ds->parallel != 1 || ds->ahead != 0;
    return busy && stk_run_has_workers(stage->run) ? &stk_ahead_walk : &numbered_walk;
}

stk_status stk_iter_open(stk_stage *stage, uint64_t epoch, stk_iter **out, stk_error *err)
{
    *out = NULL;
    const stk_walk *walk = walk_for(stage);
    size_t at = (sizeof(stk_iter) + 15) / 16 * 16;
    stk_iter *it = stk_calloc(1, at + walk->size);
    if (!it) return stk_fail_memory(err, stage->ds->kind->name, at + walk->size);
    *it = (stk_iter){stage, epoch, walk, (char *)it + at};
    stk_status status = walk->open ? walk->open(it, err) : STK_OK;
    if (status != STK_OK) {
        stk_iter_close(it);
        return status;
    }
    *out = it;
    return STK_OK;
}

stk_status stk_iter_next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    stk_counters *c = &it->stage->count;
    uint64_t start = stk_ticks();
    for (int32_t i = 0; i < it->stage->ds->schema->n; i++) parts[i] = NULL;
    *end = false;
    stk_status status = it->walk->next(it, parts, end, err);
    if (stk_walk_counts_itself(it->walk)) return status;
    __atomic_add_fetch(&c->inside, (int64_t)(stk_ticks() - start), __ATOMIC_RELAXED);
    if (status == STK_OK && !*end) __atomic_add_fetch(&c->elements, 1, __ATOMIC_RELAXED);
    return status;
}

stk_status stk_iter_save(stk_iter *it, stk_state *out, stk_error *err)
{
    return it->walk->save(it, out, err);
}

stk_status stk_iter_restore(stk_iter *it, stk_state *in, stk_error *err)
{
    return it->walk->restore(it, in, err);
}

void stk_iter_close(stk_iter *it)
{
    if (!it) return;
    if (it->walk->close) it->walk->close(it);
    stk_free(it);
}

stk_status stk_iter_skip(stk_iter *it, int64_t n, bool *end, stk_error *err)
{
    int32_t width = it->stage->ds->schema->n;
    stk_tensor **parts = stk_parts_new(width);
    *end = false;
    if (!parts) return stk_fail_memory(err, "skip", (size_t)width * sizeof *parts);
    stk_status status = STK_OK;
    for (int64_t i = 0; i < n && !*end && status != STK_ERR_MEMORY; i++) {
        status = stk_iter_next(it, parts, end, err);
        if (status == STK_OK) stk_parts_release(width, parts);
    }
    stk_free(parts);
    return status == STK_ERR_MEMORY ? status : STK_OK;
}
