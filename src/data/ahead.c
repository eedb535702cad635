/* The walk by number with workers. A job makes `grain` elements in a row; the grain grows until a job takes about
 * a fifth of a millisecond, so that scalars are not handed over one by one. */
#include "base/clock.h"
#include "base/tensor.h"
#include "data/iter.h"
#include "data/ring.h"
#include "data/tune.h"

#include <string.h>

enum { MOST_GRAIN = 256, JOB_TICKS = 500000, MOST_JOB_BYTES = 1 << 19 };

typedef struct ahead {
    stk_ring *ring;
    int64_t position, begun; /* next to hand out; next to be given to a job */
    int64_t grain;
    stk_job *job; /* being handed out */
    int64_t at;   /* of its elements */
} ahead;

typedef struct piece {
    int64_t first, count, made; /* made < count: element `made` failed */
    stk_tensor **parts;
    int64_t room;
} piece;

static void work(void *context, stk_job *job)
{
    stk_iter *it = context;
    piece *p = (piece *)job->data;
    int32_t width = it->stage->ds->schema->n;
    int64_t bytes = 0;
    job->status = STK_OK;
    for (; p->made < p->count && job->status == STK_OK; p->made++) {
        stk_tensor **parts = p->parts + p->made * width;
        job->status = stk_stage_get(it->stage, it->epoch, p->first + p->made, parts, &job->error);
        if (job->status != STK_OK) return;
        for (int32_t i = 0; i < width; i++) bytes += stk_tensor_bytes(parts[i]);
    }
    if (p->count) __atomic_store_n(&it->stage->element_bytes, bytes / p->count, __ATOMIC_RELAXED);
    __atomic_add_fetch(&it->stage->count.bytes, bytes, __ATOMIC_RELAXED);
}

static void clean(stk_job *job)
{
    piece *p = (piece *)job->data;
    if (p->parts) stk_parts_release(p->room, p->parts);
    stk_free(p->parts);
    p->parts = NULL;
}

static stk_status open(stk_iter *it, stk_error *err)
{
    ahead *own = it->own;
    own->grain = 1;
    return stk_ring_new(it->stage, it, sizeof(piece), work, clean, &own->ring, err);
}

static stk_status start_job(stk_iter *it, stk_error *err)
{
    ahead *own = it->own;
    int64_t total = it->stage->ds->cardinality, width = it->stage->ds->schema->n;
    int64_t count = total < 0 ? own->grain : stk_min_i64(own->grain, total - own->begun);
    stk_job *job = stk_ring_begin(own->ring, err);
    if (!job) return STK_ERR_MEMORY;
    piece *p = (piece *)job->data;
    if (p->room < count * width) {
        stk_free(p->parts); /* all handles in it were handed out */
        p->room = 0;
        p->parts = stk_parts_new(count * width);
        if (!p->parts)
            return stk_fail_memory(err, "stream", (size_t)(count * width) * sizeof(void *));
        p->room = count * width;
    }
    p->first = own->begun;
    p->count = count;
    p->made = 0;
    own->begun += count;
    return stk_ring_start(own->ring, job, err);
}

static void adapt_grain(stk_iter *it, const stk_job *job)
{
    ahead *own = it->own;
    const piece *p = (const piece *)job->data;
    if (p->count < own->grain) return;
    int64_t bytes = __atomic_load_n(&it->stage->element_bytes, __ATOMIC_RELAXED);
    bool more = job->ticks < JOB_TICKS / 2 && own->grain < MOST_GRAIN &&
                bytes * own->grain * 2 <= MOST_JOB_BYTES;
    if (more)
        own->grain *= 2;
    else if (job->ticks > JOB_TICKS * 4 && own->grain > 1)
        own->grain /= 2;
}

/* Behind a failed element the rest of its job is still to be made; that is done here and now. */
static stk_status hand_failure(stk_iter *it, stk_error *err)
{
    ahead *own = it->own;
    stk_job *job = own->job;
    piece *p = (piece *)job->data;
    stk_status status = job->status;
    if (err) *err = job->error;
    int64_t done = p->made + 1, width = it->stage->ds->schema->n;
    memset(p->parts, 0, (size_t)(p->made * width) * sizeof *p->parts);
    p->first += done;
    p->count -= done;
    p->made = 0;
    own->at = 0;
    own->position++;
    job->status = STK_OK;
    if (p->count) work(it, job);
    return status;
}

static void next_job(stk_iter *it)
{
    ahead *own = it->own;
    if (own->job) {
        adapt_grain(it, own->job);
        stk_ring_pop(own->ring, own->job);
        own->job = NULL;
        stk_tuner_tick(it->stage->run);
    }
}

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    ahead *own = it->own;
    int64_t total = it->stage->ds->cardinality, width = it->stage->ds->schema->n;
    if (own->job && own->at == ((piece *)own->job->data)->count) next_job(it);
    while (!own->job) {
        int64_t room = stk_tuner_in_flight(it->stage, own->grain);
        while ((total < 0 || own->begun < total) && stk_ring_depth(own->ring) < room)
            STK_TRY(start_job(it, err));
        *end = stk_ring_depth(own->ring) == 0;
        if (*end) return STK_OK;
        stk_job *oldest = stk_ring_oldest(own->ring);
        own->job = oldest;
        own->at = 0;
        if (((piece *)oldest->data)->count == 0) next_job(it);
    }
    piece *p = (piece *)own->job->data;
    if (own->at == p->made) return hand_failure(it, err);
    memcpy(parts, p->parts + own->at * width, (size_t)width * sizeof *parts);
    memset(p->parts + own->at * width, 0, (size_t)width * sizeof *parts);
    own->at++;
    own->position++;
    return STK_OK;
}

static stk_status save(stk_iter *it, stk_state *out, stk_error *err)
{
    (void)err;
    stk_state_put(out, ((ahead *)it->own)->position);
    return STK_OK;
}

static stk_status restore(stk_iter *it, stk_state *in, stk_error *err)
{
    ahead *own = it->own;
    own->position = own->begun = stk_state_get_in(in, 0, INT64_MAX);
    return stk_state_status(in, err);
}

static void close(stk_iter *it) { stk_ring_close(((ahead *)it->own)->ring); }

const stk_walk stk_ahead_walk = {.size = sizeof(ahead),
                                 .open = open,
                                 .next = next,
                                 .save = save,
                                 .restore = restore,
                                 .close = close};
