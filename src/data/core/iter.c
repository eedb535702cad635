/* Iterators: opening the walk that suits a stage, and the walk by number that needs no other thread. */
#include "data/core/iter.h"

#include "base/clock.h"
#include "data/core/patience.h"
#include "data/core/run.h"

/* ---- gaps: handed out already ---------------------------------------------------------------- */
void stk_gaps_save(const stk_gaps *gaps, int64_t position, stk_state *out)
{
    int64_t n = 0;
    for (int64_t i = 0; gaps && i < gaps->n; i++) n += gaps->upto[i] > position;
    stk_state_put(out, position);
    stk_state_put(out, n);
    for (int64_t i = 0; gaps && i < gaps->n; i++) {
        if (gaps->upto[i] <= position) continue;
        stk_state_put(out, gaps->from[i]);
        stk_state_put(out, gaps->upto[i]);
    }
}

stk_status stk_gaps_restore(stk_state *in, int64_t *position, stk_gaps **gaps, stk_error *err)
{
    *position = stk_state_get_in(in, 0, INT64_MAX);
    int64_t n = stk_state_get_in(in, 0, STK_GAPS_MOST), last = 0;
    STK_TRY(stk_state_status(in, err));
    if (!n) return STK_OK;
    if (!*gaps) *gaps = stk_calloc(1, sizeof **gaps);
    if (!*gaps) return stk_fail_memory(err, "stream", sizeof **gaps);
    (*gaps)->n = n;
    for (int64_t i = 0; i < n; i++) {
        (*gaps)->from[i] = stk_state_get_in(in, last, INT64_MAX);
        (*gaps)->upto[i] = last = stk_state_get_in(in, (*gaps)->from[i], INT64_MAX);
    }
    return stk_state_status(in, err);
}

int64_t stk_gaps_skip(const stk_gaps *gaps, int64_t position, int64_t *room)
{
    *room = INT64_MAX;
    for (int64_t i = 0; gaps && i < gaps->n; i++) {
        if (position >= gaps->from[i] && position < gaps->upto[i]) position = gaps->upto[i];
        if (position < gaps->from[i]) {
            *room = gaps->from[i] - position;
            break;
        }
    }
    return position;
}

/* ---- by number, on the caller's thread ------------------------------------------------------- */
typedef struct numbered {
    int64_t position;
    stk_gaps *gaps;
} numbered;

static stk_status numbered_next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    numbered *own = it->own;
    int64_t count = it->stage->ds->cardinality, room;
    if (own->gaps) own->position = stk_gaps_skip(own->gaps, own->position, &room);
    *end = count >= 0 && own->position >= count;
    if (*end) return STK_OK;
    return it->stage->ds->kind->get(it->stage, it->epoch, own->position++, parts, err);
}

static stk_status numbered_save(stk_iter *it, stk_state *out, stk_error *err)
{
    (void)err;
    const numbered *own = it->own;
    stk_gaps_save(own->gaps, own->position, out);
    return STK_OK;
}

static stk_status numbered_restore(stk_iter *it, stk_state *in, stk_error *err)
{
    numbered *own = it->own;
    return stk_gaps_restore(in, &own->position, &own->gaps, err);
}

static void numbered_close(stk_iter *it) { stk_free(((numbered *)it->own)->gaps); }

static const stk_walk numbered_walk = {
    sizeof(numbered), NULL, numbered_next, numbered_save, numbered_restore, numbered_close};

/* ---- all iterators ------------------------------------------------------------------------------- */
static const stk_walk *walk_for(const stk_stage *stage)
{
    const stk_dataset *ds = stage->ds;
    if (!ds->random) return ds->kind->walk;
    bool busy = ds->parallel != 1 || ds->ahead != 0;
    return busy && stk_run_has_workers(stage->run) ? &stk_parallel_index_walk : &numbered_walk;
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
    if (!stk_patience_lasts(start)) return stk_patience_over(err);
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
    bool fatal = false;
    for (int64_t i = 0; i < n && !*end && !fatal; i++) {
        status = stk_iter_next(it, parts, end, err);
        if (status == STK_OK) stk_parts_release(width, parts);
        fatal = stk_status_is_fatal(status);
    }
    stk_free(parts);
    return fatal ? status : STK_OK;
}

/* ---- shared parts of walks ------------------------------------------------------------------------ */
stk_status stk_follow_open(stk_iter *it, stk_error *err)
{
    return stk_iter_open(it->stage->in[0], it->epoch, &((stk_follow *)it->own)->in, err);
}

stk_status stk_follow_save(stk_iter *it, stk_state *out, stk_error *err)
{
    stk_follow *own = it->own;
    for (int i = 0; i < 2; i++) stk_state_put(out, own->number[i]);
    return stk_iter_save(own->in, out, err);
}

stk_status stk_follow_restore(stk_iter *it, stk_state *in, stk_error *err)
{
    stk_follow *own = it->own;
    for (int i = 0; i < 2; i++) own->number[i] = stk_state_get_in(in, 0, INT64_MAX);
    STK_TRY(stk_state_status(in, err));
    return stk_iter_restore(own->in, in, err);
}

void stk_follow_close(stk_iter *it) { stk_iter_close(((stk_follow *)it->own)->in); }

stk_status stk_iters_open(stk_iter *it, stk_iter ***out, stk_error *err)
{
    size_t n = (size_t)it->stage->nin;
    *out = stk_calloc(n + 1, sizeof **out);
    if (!*out) return stk_fail_memory(err, it->stage->ds->kind->name, n * sizeof **out);
    for (size_t i = 0; i < n; i++)
        STK_TRY(stk_iter_open(it->stage->in[i], it->epoch, &(*out)[i], err));
    return STK_OK;
}

void stk_iters_close(stk_iter *it, stk_iter **in)
{
    for (int32_t i = 0; in && i < it->stage->nin; i++) stk_iter_close(in[i]);
    stk_free(in);
}
