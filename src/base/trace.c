/* Rings of records: one writer each, one reader for all.
 *
 * The writer never waits, so it may overwrite what the reader is copying. Every word of a record is
 * an atomic of its own: stores release and loads acquire (plain moves on x86), and the reader looks
 * at the head again after copying. If it saw a word of record i, it also sees a head of at least i,
 * and throws away what record i has overwritten. */
#include "base/trace.h"

#include "base/memory.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { WORDS = 4, NAME = 32, BUCKETS = 256, DEFAULT_RECORDS = 65536, DENSE = 8, DENSE_FROM = 64 };

typedef struct ring {
    struct ring *next;
    uint64_t *words;
    uint64_t mask;   /* records - 1 */
    uint64_t head;   /* atomic: records ever written */
    uint64_t tail;   /* the reader's: records ever read or lost */
    uint32_t exited; /* atomic: the thread is gone */
    int32_t thread;
    char name[NAME]; /* under `lock`, as is role */
    stk_trace_role role;
    bool nanoseconds; /* instead of ticks: a row */
} ring;

typedef struct word {
    struct word *next;
    char text[];
} word;

uint32_t stk_trace_on, stk_trace_rounds;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below, except atomics */
static ring *rings;
static word *interned[BUCKETS];
static int32_t threads_seen;
static int64_t records_wanted = DEFAULT_RECORDS;
static int64_t sample_period; /* atomic: one round in so many; 0: all, as long as tracing is on */
static uint64_t refused;      /* atomic: records for which there was no ring */
static uint32_t generation;  /* atomic: counts forget, so that threads drop pointers to old rings */
static stk_tick_scale scale; /* first mark when enabled, second at each drain */
static pthread_key_t exit_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#define LOCAL static __thread __attribute__((tls_model("initial-exec")))
LOCAL ring *local_ring;
LOCAL uint32_t local_generation;
LOCAL bool local_failed; /* no memory for a ring: not tried again before the next forget */
LOCAL char local_name[NAME];
LOCAL stk_trace_role local_role;
LOCAL uint64_t local_round; /* ticks of the last call of stk_trace_step; 0: none to count from */
LOCAL int64_t local_rounds;

static void mark_exited(void *value)
{
    ring *r = value;
    if (local_generation == __atomic_load_n(&generation, __ATOMIC_ACQUIRE))
        __atomic_store_n(&r->exited, 1, __ATOMIC_RELEASE);
}

static void make_key(void) { pthread_key_create(&exit_key, mark_exited); }

/* ---- writing ------------------------------------------------------------------------------- */

static ring *new_ring(void)
{
    ring *r = stk_calloc(1, sizeof *r);
    if (!r) return NULL;
    r->mask = (uint64_t)records_wanted - 1;
    /* No huge pages: most threads write little, and a page of 2 MiB takes half a millisecond to clear. */
    r->words = stk_malloc((size_t)records_wanted * WORDS * sizeof(uint64_t));
    if (r->words) return r;
    stk_free(r);
    return NULL;
}

/* Under `lock`. */
static void enlist(ring *r)
{
    r->thread = ++threads_seen;
    r->next = rings;
    rings = r;
}

/* First record of this thread, or first after a forget. */
static ring *register_thread(void)
{
    uint32_t now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
    if (local_failed && local_generation == now) return NULL;
    pthread_once(&once, make_key);
    pthread_mutex_lock(&lock);
    ring *r = new_ring();
    if (r) {
        memcpy(r->name, local_name, NAME);
        r->role = local_role;
        enlist(r);
    }
    pthread_mutex_unlock(&lock);
    local_ring = r;
    local_generation = now;
    local_failed = !r;
    if (r) pthread_setspecific(exit_key, r);
    return r;
}

static inline void write_record(ring *r, stk_trace_kind kind, const char *name, uint32_t arg,
                                uint64_t ticks, int64_t value)
{
    uint64_t head = __atomic_load_n(&r->head, __ATOMIC_RELAXED);
    uint64_t *w = r->words + (head & r->mask) * WORDS;
    __atomic_store_n(&w[0], ticks, __ATOMIC_RELEASE);
    __atomic_store_n(&w[1], (uint64_t)value, __ATOMIC_RELEASE);
    __atomic_store_n(&w[2], (uint64_t)(uintptr_t)name, __ATOMIC_RELEASE);
    __atomic_store_n(&w[3], (uint64_t)kind | (uint64_t)arg << 32, __ATOMIC_RELEASE);
    __atomic_store_n(&r->head, head + 1, __ATOMIC_RELEASE);
}

void stk_trace_put(stk_trace_kind kind, const char *name, uint32_t arg, uint64_t ticks,
                   int64_t value)
{
    ring *r = local_ring;
    if (!r || local_generation != __atomic_load_n(&generation, __ATOMIC_RELAXED)) {
        r = register_thread();
        if (!r) {
            __atomic_add_fetch(&refused, 1, __ATOMIC_RELAXED);
            return;
        }
    }
    write_record(r, kind, name, arg, ticks, value);
}

void stk_trace_name_thread_as(const char *name, stk_trace_role role)
{
    snprintf(local_name, NAME, "%s", name ? name : "");
    local_role = role;
    if (!local_ring || local_generation != __atomic_load_n(&generation, __ATOMIC_ACQUIRE)) return;
    pthread_mutex_lock(&lock);
    memcpy(local_ring->name, local_name, NAME);
    local_ring->role = role;
    pthread_mutex_unlock(&lock);
}

/* ---- rows without a thread ------------------------------------------------------------------- */

struct stk_trace_row {
    char name[NAME];
    stk_trace_role role;
    ring *ring; /* made by the first span, and again after a forget */
    uint32_t generation;
};

stk_trace_row *stk_trace_row_new(const char *name, stk_trace_role role)
{
    stk_trace_row *row = stk_calloc(1, sizeof *row);
    if (!row) return NULL;
    snprintf(row->name, NAME, "%s", name);
    row->role = role;
    return row;
}

void stk_trace_row_span(stk_trace_row *row, int64_t start_ns, int64_t end_ns, const char *name,
                        uint32_t arg)
{
    if (!row || !stk_trace_is_on()) return;
    uint32_t now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
    if (!row->ring || row->generation != now) {
        pthread_mutex_lock(&lock);
        row->ring = new_ring();
        row->generation = now;
        if (row->ring) {
            memcpy(row->ring->name, row->name, NAME);
            row->ring->role = row->role;
            row->ring->nanoseconds = true;
            enlist(row->ring);
        }
        pthread_mutex_unlock(&lock);
    }
    if (row->ring)
        write_record(row->ring, STK_TRACE_SPAN, name, arg, (uint64_t)start_ns, end_ns - start_ns);
    else
        __atomic_add_fetch(&refused, 1, __ATOMIC_RELAXED);
}

void stk_trace_row_free(stk_trace_row *row)
{
    if (!row) return;
    if (row->ring && row->generation == __atomic_load_n(&generation, __ATOMIC_ACQUIRE))
        __atomic_store_n(&row->ring->exited, 1, __ATOMIC_RELEASE);
    stk_free(row);
}

const char *stk_trace_intern(const char *text)
{
    uint32_t hash = 2166136261u;
    for (const char *c = text; *c; c++) hash = (hash ^ (unsigned char)*c) * 16777619u;
    pthread_mutex_lock(&lock);
    word **bucket = &interned[hash % BUCKETS], *w = *bucket;
    while (w && strcmp(w->text, text)) w = w->next;
    if (!w) {
        size_t size = strlen(text) + 1;
        w = stk_malloc(sizeof *w + size);
        if (w) {
            memcpy(w->text, text, size);
            w->next = *bucket;
            *bucket = w;
        }
    }
    pthread_mutex_unlock(&lock);
    return w ? w->text : NULL;
}

/* ---- switching ----------------------------------------------------------------------------- */

void stk_trace_enable(int64_t records)
{
    int64_t rounded = 16;
    while (rounded < (int64_t)1 << 24 && rounded < (records > 0 ? records : DEFAULT_RECORDS))
        rounded *= 2;
    pthread_mutex_lock(&lock);
    records_wanted = rounded;
    if (!scale.ticks[0]) stk_tick_scale_mark(&scale, 0);
    pthread_mutex_unlock(&lock);
    __atomic_store_n(&stk_trace_on, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&stk_trace_rounds, 1, __ATOMIC_RELEASE);
}

void stk_trace_disable(void)
{
    __atomic_store_n(&stk_trace_on, 0, __ATOMIC_RELEASE);
    if (!__atomic_load_n(&sample_period, __ATOMIC_RELAXED))
        __atomic_store_n(&stk_trace_rounds, 0, __ATOMIC_RELEASE);
}

void stk_trace_sample(int64_t period)
{
    __atomic_store_n(&sample_period, period > 0 ? period : 0, __ATOMIC_RELEASE);
    stk_trace_disable();
    local_rounds = 0;
    if (period > 0) {
        pthread_mutex_lock(&lock);
        if (!scale.ticks[0]) stk_tick_scale_mark(&scale, 0);
        pthread_mutex_unlock(&lock);
        __atomic_store_n(&stk_trace_rounds, 1, __ATOMIC_RELEASE);
    }
}

bool stk_trace_is_sample(void)
{
    return stk_trace_is_on() && __atomic_load_n(&sample_period, __ATOMIC_RELAXED) > 1;
}

void stk_trace_round(uint32_t steps)
{
    int64_t period = __atomic_load_n(&sample_period, __ATOMIC_RELAXED);
    uint64_t now = stk_ticks();
    if (local_round && stk_trace_is_on())
        stk_trace_put(STK_TRACE_SPAN, "step", steps, local_round, (int64_t)(now - local_round));
    local_round = now;
    if (!period) return;
    /* The first rounds are looked at more often, so that short runs have books too. */
    bool early = period >= DENSE_FROM && local_rounds < DENSE * period;
    bool record = local_rounds++ % (early ? period / DENSE : period) == 0;
    __atomic_store_n(&stk_trace_on, record, __ATOMIC_RELEASE);
    if (record)
        local_round = stk_ticks(); /* behind the bookkeeping of this call */
    else
        local_round = 0;
}

void stk_trace_step_break(void)
{
    local_round = 0;
    if (__atomic_load_n(&sample_period, __ATOMIC_RELAXED))
        __atomic_store_n(&stk_trace_on, 0, __ATOMIC_RELEASE);
}

/* ---- reading ------------------------------------------------------------------------------- */

typedef struct visitor {
    void (*visit)(void *context, const stk_trace_event *event);
    void *context;
    int64_t given, lost;
} visitor;

static void give(visitor *v, const ring *r, const uint64_t w[WORDS])
{
    stk_trace_event event = {.ns = stk_tick_scale_ns(&scale, w[0]),
                             .value = (int64_t)w[1],
                             .name = (const char *)(uintptr_t)w[2],
                             .kind = (stk_trace_kind)(uint32_t)w[3],
                             .arg = (uint32_t)(w[3] >> 32),
                             .thread = r->thread,
                             .thread_name = r->name,
                             .role = r->role};
    if (r->nanoseconds)
        event.ns = (int64_t)w[0];
    else if (event.kind == STK_TRACE_SPAN)
        event.value = stk_tick_scale_ns(&scale, w[0] + w[1]) - event.ns;
    v->visit(v->context, &event);
    v->given++;
}

/* Up to the head as it is now; later records wait for the next drain, so this ends. */
static void drain_ring(visitor *v, ring *r)
{
    uint64_t end = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);
    while (r->tail < end) {
        uint64_t w[WORDS], *from = r->words + (r->tail & r->mask) * WORDS;
        for (int i = 0; i < WORDS; i++) w[i] = __atomic_load_n(&from[i], __ATOMIC_ACQUIRE);
        /* Record `head` may be half written: its slot's old record head - size is gone as well. */
        uint64_t head = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE), size = r->mask + 1;
        uint64_t oldest = head >= size ? head - size + 1 : 0;
        if (r->tail < oldest) {
            uint64_t next = oldest < end ? oldest : end;
            v->lost += (int64_t)(next - r->tail);
            r->tail = next;
            continue;
        }
        give(v, r, w);
        r->tail++;
    }
}

static void free_ring(ring *r)
{
    stk_free(r->words);
    stk_free(r);
}

int64_t stk_trace_drain(void (*visit)(void *context, const stk_trace_event *event), void *context,
                        int64_t *lost)
{
    visitor v = {visit, context, 0, 0};
    pthread_mutex_lock(&lock);
    stk_tick_scale_mark(&scale, 1);
    for (ring **link = &rings; *link;) {
        ring *r = *link;
        bool exited = __atomic_load_n(&r->exited, __ATOMIC_ACQUIRE) != 0;
        drain_ring(&v, r);
        if (exited) { /* asked before the drain, so nothing can have come after it */
            *link = r->next;
            free_ring(r);
        } else {
            link = &r->next;
        }
    }
    pthread_mutex_unlock(&lock);
    v.lost += (int64_t)__atomic_exchange_n(&refused, 0, __ATOMIC_RELAXED);
    if (lost) *lost = v.lost;
    return v.given;
}

void stk_trace_forget(void)
{
    pthread_mutex_lock(&lock);
    __atomic_add_fetch(&generation, 1, __ATOMIC_RELEASE);
    while (rings) {
        ring *next = rings->next;
        free_ring(rings);
        rings = next;
    }
    for (int i = 0; i < BUCKETS; i++) {
        while (interned[i]) {
            word *next = interned[i]->next;
            stk_free(interned[i]);
            interned[i] = next;
        }
    }
    threads_seen = 0;
    scale = (stk_tick_scale){0};
    __atomic_store_n(&refused, 0, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
}
