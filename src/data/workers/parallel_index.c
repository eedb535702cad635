/* The walk by number with workers. An item makes `grain` elements in a row; the grain grows until an item takes about
 * a fifth of a millisecond, so that scalars are not handed over one by one. */
#include "base/clock.h"
#include "base/tensor.h"
#include "data/core/iter.h"
#include "data/workers/ring.h"
#include "data/workers/tune.h"

#include <string.h>

enum { MOST_GRAIN = 256, ITEM_TICKS = 500000, MOST_ITEM_BYTES = 1 << 19 };

typedef struct index_walk {
    stk_ring *ring;
    int64_t begun; /* next to be given to an item */
    int64_t grain;
    stk_ring_item *item; /* being handed out */
    int64_t at;          /* of its elements */
    bool any_order;
    stk_gaps *gaps; /* restored: not to be made again */
} index_walk;

typedef struct piece {
    int64_t first, count, made; /* made < count: element `made` failed */
    int64_t from, upto;         /* what it was given */
    stk_tensor **parts;
    int64_t room;
} piece;

static void work(void *context, stk_ring_item *item)
{
    stk_iter *it = context;
    piece *p = (piece *)item->data;
    int32_t width = it->stage->ds->schema->n;
    int64_t bytes = 0;
    item->status = STK_OK;
    for (; p->made < p->count && item->status == STK_OK; p->made++) {
        stk_tensor **parts = p->parts + p->made * width;
        item->status = stk_stage_get(it->stage, it->epoch, p->first + p->made, parts, &item->error);
        if (item->status != STK_OK) return;
        for (int32_t i = 0; i < width; i++) bytes += stk_tensor_bytes(parts[i]);
    }
    if (p->count) stk_stage_saw(it->stage, bytes / p->count);
    __atomic_add_fetch(&it->stage->count.bytes, bytes, __ATOMIC_RELAXED);
}

static void clean(stk_ring_item *item)
{
    piece *p = (piece *)item->data;
    if (p->parts) stk_parts_release(p->room, p->parts);
    stk_free(p->parts);
    p->parts = NULL;
}

static stk_status open(stk_iter *it, stk_error *err)
{
    index_walk *own = it->own;
    own->grain = 1;
    own->any_order = it->stage->ds->unordered || !it->stage->run->options.deterministic;
    return stk_ring_new(it->stage, it, sizeof(piece), work, clean, &own->ring, err);
}

/* Elements in a row that are still to be begun; 0 at the end. */
static int64_t left(stk_iter *it)
{
    index_walk *own = it->own;
    int64_t total = it->stage->ds->cardinality, room = INT64_MAX;
    if (own->gaps) own->begun = stk_gaps_skip(own->gaps, own->begun, &room);
    return total < 0 ? room : stk_min_i64(room, total - own->begun);
}

static stk_status start_job(stk_iter *it, stk_error *err)
{
    index_walk *own = it->own;
    int64_t width = it->stage->ds->schema->n;
    int64_t count = stk_min_i64(own->grain, left(it));
    stk_ring_item *item = stk_ring_begin(own->ring, err);
    if (!item) return STK_ERR_MEMORY;
    piece *p = (piece *)item->data;
    if (p->room < count * width) {
        stk_free(p->parts); /* all handles in it were handed out */
        p->room = 0;
        p->parts = stk_parts_new(count * width);
        if (!p->parts)
            return stk_fail_memory(err, "stream", (size_t)(count * width) * sizeof(void *));
        p->room = count * width;
    }
    p->first = p->from = own->begun;
    p->count = count;
    p->made = 0;
    own->begun += count;
    p->upto = own->begun;
    return stk_ring_start(own->ring, item, err);
}

static void adapt_grain(stk_iter *it, const stk_ring_item *item)
{
    index_walk *own = it->own;
    const piece *p = (const piece *)item->data;
    if (p->count < own->grain) return;
    int64_t bytes = __atomic_load_n(&it->stage->element_bytes, __ATOMIC_RELAXED);
    bool more = item->ticks < ITEM_TICKS / 2 && own->grain < MOST_GRAIN &&
                bytes * own->grain * 2 <= MOST_ITEM_BYTES;
    if (more)
        own->grain *= 2;
    else if (item->ticks > ITEM_TICKS * 4 && own->grain > 1)
        own->grain /= 2;
}

/* Behind a failed element the rest of its item is still to be made; that is done here and now. */
static stk_status hand_failure(stk_iter *it, stk_error *err)
{
    index_walk *own = it->own;
    stk_ring_item *item = own->item;
    piece *p = (piece *)item->data;
    stk_status status = item->status;
    if (err) *err = item->error;
    int64_t done = p->made + 1, width = it->stage->ds->schema->n;
    memset(p->parts, 0, (size_t)(p->made * width) * sizeof *p->parts);
    p->first += done;
    p->count -= done;
    p->made = 0;
    own->at = 0;
    item->status = STK_OK;
    if (p->count) work(it, item);
    return status;
}

static void next_job(stk_iter *it)
{
    index_walk *own = it->own;
    if (own->item) {
        adapt_grain(it, own->item);
        stk_ring_pop(own->ring, own->item);
        own->item = NULL;
        stk_tuner_tick(it->stage->run);
    }
}

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    index_walk *own = it->own;
    int64_t width = it->stage->ds->schema->n;
    if (own->item && own->at == ((piece *)own->item->data)->count) next_job(it);
    while (!own->item) {
        int64_t room = stk_tuner_in_flight(it->stage, own->grain);
        while (stk_ring_has_room(own->ring, room) && left(it) > 0) STK_TRY(start_job(it, err));
        *end = stk_ring_depth(own->ring) == 0;
        if (*end) return STK_OK;
        stk_ring_item *item =
            own->any_order ? stk_ring_any(own->ring, err) : stk_ring_oldest(own->ring, err);
        if (!item) return STK_ERR_CANCELLED;
        own->item = item;
        own->at = 0;
        if (((piece *)item->data)->count == 0) next_job(it);
    }
    piece *p = (piece *)own->item->data;
    if (own->at == p->made) return hand_failure(it, err);
    memcpy(parts, p->parts + own->at * width, (size_t)width * sizeof *parts);
    memset(p->parts + own->at * width, 0, (size_t)width * sizeof *parts);
    own->at++;
    return STK_OK;
}

/* Where item `i` of the ring stands: everything before *at was handed out, and all of it when it was taken. */
static bool job_place(stk_iter *it, int64_t i, int64_t *from, int64_t *at)
{
    index_walk *own = it->own;
    stk_ring_item *item = stk_ring_at(own->ring, i);
    if (!item) return false;
    const piece *p = (const piece *)item->data;
    *from = p->from;
    *at = item->taken ? p->upto : item == own->item ? p->first + own->at : p->from;
    return true;
}

static bool add_gap(stk_gaps *gaps, int64_t from, int64_t upto)
{
    if (from == upto) return true;
    bool joins = gaps->n && gaps->upto[gaps->n - 1] == from;
    if (!joins && gaps->n == STK_GAPS_MOST) return false;
    if (!joins) gaps->from[gaps->n++] = from;
    gaps->upto[gaps->n - 1] = upto;
    return true;
}

/* The position is the oldest element not handed out; what is beyond it and was, are gaps: of items in flight, and those
 * restored that were not reached yet. */
static stk_status save(stk_iter *it, stk_state *out, stk_error *err)
{
    index_walk *own = it->own;
    stk_gaps *gaps = stk_calloc(1, sizeof *gaps);
    int64_t from, at, position = own->begun;
    bool fit = true;
    if (!gaps) return stk_fail_memory(err, "stream", sizeof *gaps);
    for (int64_t i = 0; job_place(it, i, &from, &at); i++) {
        if (i == 0)
            position = at;
        else
            fit &= add_gap(gaps, from, at);
    }
    for (int64_t i = 0; own->gaps && i < own->gaps->n; i++)
        if (own->gaps->from[i] >= own->begun)
            fit &= add_gap(gaps, own->gaps->from[i], own->gaps->upto[i]);
    stk_gaps_save(gaps, position, out);
    stk_free(gaps);
    if (fit) return STK_OK;
    return stk_fail(err, STK_ERR_STATE,
                    "save: elements came too much out of order; read some more");
}

static stk_status restore(stk_iter *it, stk_state *in, stk_error *err)
{
    index_walk *own = it->own;
    return stk_gaps_restore(in, &own->begun, &own->gaps, err);
}

static void close(stk_iter *it)
{
    index_walk *own = it->own;
    stk_ring_close(own->ring);
    stk_free(own->gaps);
}

const stk_walk stk_parallel_index_walk = {.size = sizeof(index_walk),
                                          .open = open,
                                          .next = next,
                                          .save = save,
                                          .restore = restore,
                                          .close = close};
