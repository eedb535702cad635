/* rows.c - batches of arrays: rows gathered into two slots in turn, by this thread or, where that pays, ahead by another. */
#include "train/batches.h"

#include "base/clock.h"
#include "base/tensor.h"
#include "base/workers.h"

#include <string.h>

/* ---- copying ---------------------------------------------------------------------------------------------- */

/* Rows lie anywhere: the processor's own reading ahead has hardly begun when one of them ends. */
static inline void fetch_row(const char *row, size_t bytes)
{
    enum { LINE = 64, MOST = 4096 };
    for (size_t at = 0; at < bytes && at < MOST; at += LINE) __builtin_prefetch(row + at);
}

static void copy_rows(void *to, const void *from, const int64_t *order, int64_t first, int64_t rows,
                      size_t bytes)
{
    enum { AHEAD = 3 };
    const char *base = (const char *)from + (size_t)first * bytes;
    char *out = to;
    if (bytes == 4) { /* labels: a call of memcpy each would cost more than the copy */
        for (int64_t i = 0; i < rows; i++) memcpy(out + 4 * i, base + 4 * order[i], 4);
        return;
    }
    for (int64_t i = 0; i < rows; i++) {
        if (i + AHEAD < rows) fetch_row(base + (size_t)order[i + AHEAD] * bytes, bytes);
        memcpy(out + (size_t)i * bytes, base + (size_t)order[i] * bytes, bytes);
    }
}

static void fill_weights(const stk_batches *b, int64_t at, int64_t rows, float *out)
{
    for (int64_t i = 0; i < rows; i++) {
        int64_t row = b->how.first + (b->order ? b->order[at + i] : at + i);
        double w = b->given ? stk_tensor_at(b->given, row) : 1;
        if (b->labels) {
            double label = stk_tensor_at(b->labels, row);
            w *= label >= 0 && label < b->how.classes ? b->how.class_weights[(int64_t)label] : 1;
        }
        out[i] = (float)w;
    }
}

static stk_batch_slot *slot_for(stk_batches *b, int64_t rows, int32_t turn)
{
    return rows < b->slot[0].part[0]->shape[0] ? &b->tail[turn] : &b->slot[turn];
}

static int64_t first_row(const stk_batches *b, int64_t number)
{
    return number % stk_ceil_div(b->total, b->how.batch) * b->how.batch;
}

static void gather_array(stk_batches *b, int32_t i, int64_t at, int64_t rows, stk_tensor *part)
{
    const stk_tensor *a = b->arrays[i];
    size_t bytes = (size_t)(stk_tensor_bytes(a) / a->shape[0]);
    if (b->order)
        copy_rows(part->data, a->data, b->order + at, b->how.first, rows, bytes);
    else
        part->data = (char *)a->data + (size_t)(b->how.first + at) * bytes;
}

/* Batch `number` into the slot of `turn`. Reads what does not change during a walk, writes the slot. */
static void gather(stk_batches *b, int64_t number, int32_t turn)
{
    int64_t at = first_row(b, number), rows = stk_min_i64(b->how.batch, b->total - at);
    stk_batch_slot *slot = slot_for(b, rows, turn);
    for (int32_t i = 0; i < b->narrays && !b->resident; i++)
        gather_array(b, i, at, rows, slot->part[i]);
    if (b->weighted) fill_weights(b, at, rows, slot->part[b->narrays]->data);
}

/* With more steps than one walk has, later walks of the epoch are shuffled anew. */
static void shuffle_rows(stk_batches *b)
{
    int64_t walk = b->at / stk_ceil_div(b->total, b->how.batch);
    if (!b->order) return;
    stk_rng rng = {stk_mix64((uint64_t)b->how.seed) ^ 0x726f7773u,
                   (uint64_t)b->epoch << 20 ^ (uint64_t)walk};
    stk_rng_permutation(rng, b->total, b->order);
}

/* ---- ahead -------------------------------------------------------------------------------------------------- */

enum {
    LOOK = 24,
    BLOCK = 8,
    BLOCKS = 8
}; /* calls before a trial; calls and number of blocks of a trial */
static const double LEAST_NS = 20000,
                    LEAST_SHARE = 0.03; /* a copy below either is not worth a thread */

static void gather_pending(void *context)
{
    stk_batches *b = context;
    gather(b, b->ahead.number, b->ahead.turn);
}

static void wait_pending(stk_batches *b)
{
    if (b->ahead.pending) stk_workers_wait(b->ahead.workers);
}

static void send_ahead(stk_batches *b, int64_t number)
{
    stk_rows_ahead *a = &b->ahead;
    bool same_walk = number % stk_ceil_div(b->total, b->how.batch) != 0;
    if (!a->on || !same_walk || number >= b->steps) return;
    a->number = number;
    a->turn = b->turn ^ 1;
    a->pending = true;
    stk_workers_submit(a->workers, gather_pending, b);
}

static void least(uint64_t *least, uint64_t ticks)
{
    if (*least == 0 || ticks < *least) *least = ticks;
}

/* Is a copy long enough, by itself and as a share of a step, to be worth a thread? */
static bool worth_a_trial(const stk_batches *b)
{
    const stk_rows_ahead *a = &b->ahead;
    stk_tick_scale s;
    stk_tick_scale_mark(&s, 0);
    do stk_tick_scale_mark(&s, 1);
    while (s.ns[1] - s.ns[0] < 20000);
    double per_ns = (double)(s.ticks[1] - s.ticks[0]) / (double)(s.ns[1] - s.ns[0]);
    return b->order && (double)a->copy > LEAST_NS * per_ns &&
           (double)a->copy > LEAST_SHARE * (double)a->between[0];
}

/* After LOOK calls: blocks with and without the thread take turns, then the faster way stays. */
static void try_ways(stk_batches *b, uint64_t now)
{
    stk_rows_ahead *a = &b->ahead;
    if (a->calls > LOOK + BLOCK * BLOCKS) return;
    int64_t in_block = a->calls > LOOK ? (a->calls - LOOK) % BLOCK : a->calls;
    if (a->last && in_block > 1)
        least(&a->between[a->on], now - a->last); /* the first two of a block mix both */
    a->last = now;
    if (a->calls == LOOK &&
        (!worth_a_trial(b) || stk_workers_new(1, 2, &a->workers, NULL) != STK_OK))
        a->calls = LOOK + BLOCK * BLOCKS; /* stays as it is */
    else if (a->calls >= LOOK && a->calls < LOOK + BLOCK * BLOCKS)
        a->on = (a->calls - LOOK) / BLOCK % 2 == 0;
    else if (a->calls == LOOK + BLOCK * BLOCKS)
        a->on = a->workers && a->between[1] < a->between[0];
    a->calls++;
}

void stk_rows_force(stk_batches *b, bool ahead)
{
    b->ahead.calls = LOOK + BLOCK * BLOCKS + 1;
    if (ahead && !b->ahead.workers)
        ahead = stk_workers_new(1, 2, &b->ahead.workers, NULL) == STK_OK;
    b->ahead.on = ahead;
}

/* ---- handing out ---------------------------------------------------------------------------------------------- */

void stk_rows_begin(stk_batches *b)
{
    wait_pending(b);
    b->ahead.pending = false;
    b->ahead.last = 0;
    shuffle_rows(b);
}

void stk_rows_next(stk_batches *b)
{
    stk_rows_ahead *a = &b->ahead;
    uint64_t start = stk_ticks();
    try_ways(b, start);
    wait_pending(b);
    if (b->at > 0 && first_row(b, b->at) == 0) shuffle_rows(b);
    b->turn ^= 1;
    if (!a->pending || a->number != b->at) {
        gather(b, b->at, b->turn);
        if (a->calls <= LOOK) least(&a->copy, stk_ticks() - start);
    }
    a->pending = false;
    b->rows = stk_min_i64(b->how.batch, b->total - first_row(b, b->at));
    memcpy(b->parts, slot_for(b, b->rows, b->turn)->part, (size_t)b->n * sizeof *b->parts);
    send_ahead(b, b->at + 1);
}

int64_t stk_rows_first(const stk_batches *b) { return first_row(b, b->at - 1); }

void stk_rows_copy(stk_batches *b, int32_t i)
{
    gather_array(b, i, stk_rows_first(b), b->rows, b->parts[i]);
}

void stk_rows_close(stk_batches *b)
{
    wait_pending(b);
    stk_workers_release(b->ahead.workers);
    b->ahead = (stk_rows_ahead){.workers = NULL};
}
