/* shuffle - another order. All of a source with random access: a permutation that is computed, not stored; element i
 * of the epoch is perm(i). Otherwise a buffer: each output is drawn from it by a number keyed by (seed, epoch, count of
 * outputs), and the next element of the input takes its place.
 *
 * State of the buffer: which elements of the input are in it, and the way back to the oldest of them; they are read
 * again after a restore. */
#include "base/rng.h"
#include "data/core/element_list.h"
#include "data/workers/marks.h"
#include "data/nodes/order.h"
#include "data/core/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct shuffle {
    int64_t buffer; /* STK_SHUFFLE_ALL */
    uint64_t seed;
    bool reshuffle;
} shuffle;

static void describe(const stk_dataset *ds, char *text, size_t size)
{
    const shuffle *c = ds->config;
    if (ds->random)
        snprintf(text, size, "all %lld, exact", (long long)ds->cardinality);
    else if (c->buffer < 0)
        snprintf(text, size, "all");
    else
        snprintf(text, size, "buffer %lld", (long long)c->buffer);
    if (!c->reshuffle) strncat(text, ", same order in each epoch", size - strlen(text) - 1);
}

static uint64_t key_of(const stk_dataset *ds, uint64_t epoch)
{
    const shuffle *c = ds->config;
    return stk_seed_mix(c->seed ^ ds->salt, c->reshuffle ? epoch : 0);
}

/* ---- by number ------------------------------------------------------------------------------------- */
static stk_status get(stk_stage *stage, uint64_t epoch, int64_t index, stk_tensor **parts,
                      stk_error *err)
{
    stk_order order = stk_order_init(key_of(stage->ds, epoch), stage->ds->cardinality);
    stk_order_map(&order, 1, &index, &index);
    return stk_stage_get(stage->in[0], epoch, index, parts, err);
}

static stk_status rows(stk_stage *stage, uint64_t epoch, int64_t n, const int64_t *index,
                       stk_tensor *const *slots, int64_t row, stk_error *err)
{
    enum { CHUNK = 512 };
    int64_t there[CHUNK];
    stk_order order = stk_order_init(key_of(stage->ds, epoch), stage->ds->cardinality);
    for (int64_t at = 0; at < n; at += CHUNK) {
        int64_t count = stk_min_i64(CHUNK, n - at);
        stk_order_map(&order, count, index + at, there);
        STK_TRY(stk_stage_rows(stage->in[0], epoch, count, there, slots, row + at, err));
    }
    return STK_OK;
}

/* ---- through a buffer ----------------------------------------------------------------------------------- */
typedef struct shuffling {
    stk_iter *in;
    stk_marks marks;
    stk_element_list held;
    int64_t *numbers; /* of the elements held, in the input */
    int64_t room;     /* of numbers */
    int64_t pulled, drawn, ram;
    int64_t most; /* held so far */
    bool ended;
    stk_tensor **parts;
} shuffling;

static stk_status open(stk_iter *it, stk_error *err)
{
    shuffling *own = it->own;
    own->held.width = it->stage->ds->schema->n;
    own->parts = stk_parts_new(own->held.width);
    if (!own->parts) return stk_fail_memory(err, "shuffle", 64);
    return stk_iter_open(it->stage->in[0], it->epoch, &own->in, err);
}

static int64_t oldest(const shuffling *own)
{
    int64_t least = own->pulled;
    for (int64_t i = 0; i < own->held.count; i++)
        if (own->numbers[i] < least) least = own->numbers[i];
    return least;
}

static stk_status note(stk_iter *it, stk_error *err)
{
    shuffling *own = it->own;
    int64_t every = stk_max_i64(64, own->held.count / 16), before = own->marks.count;
    STK_TRY(stk_marks_note(&own->marks, own->in, own->pulled, every, err));
    if (own->marks.count > before) stk_marks_forget(&own->marks, oldest(own));
    return STK_OK;
}

/* Adds own->parts, element `number` of the input, to the buffer. */
static stk_status put(stk_iter *it, int64_t number, stk_error *err)
{
    shuffling *own = it->own;
    int64_t bytes = stk_parts_bytes(own->held.width, own->parts) + 64;
    if (own->held.count == own->room && !STK_GROW(own->numbers, own->held.count, own->room))
        return stk_fail_memory(err, "shuffle", (size_t)own->room * 16);
    STK_TRY(stk_run_take_ram(it->stage->run, "shuffle", bytes, err));
    stk_status status = stk_element_list_add(&own->held, own->parts, err);
    if (status != STK_OK) {
        stk_run_give_ram(it->stage->run, bytes);
        return status;
    }
    own->ram += bytes;
    __atomic_add_fetch(&it->stage->count.held, bytes, __ATOMIC_RELAXED);
    own->numbers[own->held.count - 1] = number;
    return STK_OK;
}

static stk_status pull(stk_iter *it, stk_error *err)
{
    shuffling *own = it->own;
    STK_TRY(note(it, err));
    stk_status status = stk_iter_next(own->in, own->parts, &own->ended, err);
    if (own->ended) return STK_OK;
    own->pulled++;
    STK_TRY(status);
    status = put(it, own->pulled - 1, err);
    if (status != STK_OK) stk_parts_release(own->held.width, own->parts);
    return status;
}

/* Moves element `slot` out; the last one takes its place. */
static void take(stk_iter *it, int64_t slot, stk_tensor **parts)
{
    shuffling *own = it->own;
    int32_t width = own->held.width;
    stk_tensor **at = own->held.parts + slot * width;
    memcpy(parts, at, (size_t)width * sizeof *parts);
    int64_t last = --own->held.count, bytes = stk_parts_bytes(width, parts) + 64;
    memcpy(at, own->held.parts + last * width, (size_t)width * sizeof *parts);
    own->numbers[slot] = own->numbers[last];
    own->ram -= bytes;
    __atomic_sub_fetch(&it->stage->count.held, bytes, __ATOMIC_RELAXED);
    stk_run_give_ram(it->stage->run, bytes);
}

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    shuffling *own = it->own;
    const shuffle *c = it->stage->ds->config;
    while (!own->ended && (c->buffer < 0 || own->held.count < c->buffer)) STK_TRY(pull(it, err));
    *end = own->held.count == 0;
    if (*end) return STK_OK;
    if (own->held.count > own->most) {
        own->most = own->held.count;
        __atomic_store_n(&it->stage->count.capacity, stk_max_i64(own->most, c->buffer),
                         __ATOMIC_RELAXED);
    }
    int64_t slot = 0;
    stk_rng rng = {key_of(it->stage->ds, it->epoch), 0x5F1E};
    stk_rng_int64(rng, own->drawn++, 1, 0, own->held.count, &slot);
    take(it, slot, parts);
    __atomic_store_n(&it->stage->count.depth, own->held.count, __ATOMIC_RELAXED);
    return STK_OK;
}

/* Layout: way back to the oldest, pulled, drawn, ended, count, numbers in the order of the buffer. */
static stk_status save(stk_iter *it, stk_state *out, stk_error *err)
{
    shuffling *own = it->own;
    STK_TRY(stk_marks_note(&own->marks, own->in, own->pulled, 1, err));
    STK_TRY(stk_marks_save(&own->marks, oldest(own), out, err));
    stk_state_put(out, own->pulled);
    stk_state_put(out, own->drawn);
    stk_state_put(out, own->ended);
    stk_state_put_blob(out, own->numbers, (size_t)own->held.count * sizeof *own->numbers);
    return STK_OK;
}

typedef struct place {
    int64_t number, slot;
} place;

static int by_number(const void *a, const void *b)
{
    int64_t x = ((const place *)a)->number, y = ((const place *)b)->number;
    return (x > y) - (x < y);
}

/* Reads the input from `first` to where it was and keeps what was in the buffer, at its places. */
static stk_status refill(stk_iter *it, int64_t first, int64_t pulled, const place *places,
                         int64_t count, stk_error *err)
{
    shuffling *own = it->own;
    int32_t width = own->held.width;
    int64_t found = 0;
    own->pulled = first;
    while (own->pulled < pulled && !own->ended) {
        STK_TRY(note(it, err));
        stk_status status = stk_iter_next(own->in, own->parts, &own->ended, err);
        if (status == STK_ERR_MEMORY) return status;
        int64_t number = own->pulled++;
        if (status == STK_OK && found < count && places[found].number == number) {
            STK_TRY(put(it, number, err));
            found++;
        }
        stk_parts_release(width, own->parts);
    }
    if (found < count)
        return stk_fail(err, STK_ERR_STATE,
                        "shuffle: the input gives other elements than when the "
                        "state was saved; restore needs the same data");
    stk_tensor **sorted = stk_parts_new(count * width);
    if (!sorted) return stk_fail_memory(err, "shuffle", (size_t)(count * width) * 8);
    for (int64_t i = 0; i < count; i++) {
        memcpy(sorted + places[i].slot * width, own->held.parts + i * width,
               (size_t)width * sizeof *sorted);
        own->numbers[places[i].slot] = places[i].number;
    }
    if (count) memcpy(own->held.parts, sorted, (size_t)(count * width) * sizeof *sorted);
    stk_free(sorted);
    return STK_OK;
}

static stk_status restore(stk_iter *it, stk_state *in, stk_error *err)
{
    shuffling *own = it->own;
    int64_t first;
    STK_TRY(stk_marks_restore(own->in, in, &first, err));
    int64_t pulled = stk_state_get_in(in, first, INT64_MAX);
    own->drawn = stk_state_get_in(in, 0, INT64_MAX);
    bool ended = stk_state_get_in(in, 0, 1);
    size_t size;
    const uint8_t *numbers = stk_state_get_blob(in, &size);
    STK_TRY(stk_state_status(in, err));
    int64_t count = (int64_t)(size / sizeof(int64_t));
    place *places = stk_calloc((size_t)count + 1, sizeof *places);
    if (!places) return stk_fail_memory(err, "shuffle", (size_t)count * sizeof *places);
    for (int64_t i = 0; i < count; i++) {
        memcpy(&places[i].number, numbers + (size_t)i * 8, 8);
        places[i].slot = i;
    }
    qsort(places, (size_t)count, sizeof *places, by_number);
    stk_status status = refill(it, first, pulled, places, count, err);
    own->ended |= ended;
    stk_free(places);
    return status;
}

static void close(stk_iter *it)
{
    shuffling *own = it->own;
    stk_run_give_ram(it->stage->run, own->ram);
    __atomic_sub_fetch(&it->stage->count.held, own->ram, __ATOMIC_RELAXED);
    stk_element_list_release(&own->held);
    stk_free(own->numbers);
    stk_free(own->parts);
    stk_marks_release(&own->marks);
    stk_iter_close(own->in);
}

static bool idle(const stk_dataset *ds) { return ((const shuffle *)ds->config)->buffer == 1; }

static const stk_walk walk = {sizeof(shuffling), open, next, save, restore, close};

static bool steady(const stk_dataset *ds) { return !((const shuffle *)ds->config)->reshuffle; }

const stk_node_kind stk_node_shuffle = {.name = "shuffle",
                                        .idle = idle,
                                        .describe = describe,
                                        .get = get,
                                        .rows = rows,
                                        .walk = &walk,
                                        .steady = steady,
                                        .passes = true};

stk_dataset *stk_data_shuffle(stk_dataset *in, int64_t buffer, uint64_t seed, bool reshuffle,
                              stk_error *err)
{
    if (in && (buffer == 0 || buffer < STK_SHUFFLE_ALL)) {
        (void)stk_fail(err, STK_ERR_RANGE,
                       "shuffle: a buffer of %lld; it takes 1 or more, or STK_SHUFFLE_ALL",
                       (long long)buffer);
        stk_dataset_release(in);
        return NULL;
    }
    stk_dataset *ds = stk_dataset_make(&stk_node_shuffle, 1, &in, sizeof(shuffle), err);
    if (!ds) return NULL;
    *(shuffle *)ds->config = (shuffle){buffer, seed, reshuffle};
    bool all = in->cardinality >= 0 && (buffer == STK_SHUFFLE_ALL || buffer >= in->cardinality);
    ds->random = in->random && all;
    if (!ds->random) ds->ahead = 0;
    return ds;
}
