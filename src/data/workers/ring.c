/* Items in flight. An item is claimed by whoever gets to it first: a worker that found it in the queue, or the consumer
 * that needs it. Entries of claimed items stay in the queue and find nothing to do; they keep the ring alive. */
#define _GNU_SOURCE
#include "data/workers/ring.h"

#include "base/clock.h"
#include "base/float_env.h"
#include "base/trace.h"
#include "data/core/patience.h"
#include "data/workers/tune.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { IDLE, QUEUED, RUNNING, DONE };

struct stk_bell {
    pthread_mutex_t lock;
    pthread_cond_t done;
    int32_t refs;
    bool waiting; /* under lock */
};

struct stk_ring {
    stk_stage *stage;
    void *context;
    void (*work)(void *, stk_ring_item *);
    void (*clean)(stk_ring_item *);
    size_t data_size;
    stk_workers *crew; /* NULL: no workers */
    stk_bell *bell;
    int32_t refs; /* the owner, and one per entry in the queue of the crew */
    int64_t head, tail;
    int64_t early; /* taken before their turn */
    bool sleeps;   /* the last item that was looked at did; atomic */
    int64_t mean_ticks, popped;
    stk_ring_item *items[STK_RING_MOST];
};

/* ---- bells ------------------------------------------------------------------------------------------- */
stk_status stk_bell_new(stk_bell **out, stk_error *err)
{
    stk_bell *bell = *out = stk_calloc(1, sizeof *bell);
    if (!bell) return stk_fail_memory(err, "stream", sizeof *bell);
    pthread_mutex_init(&bell->lock, NULL);
    pthread_cond_init(&bell->done, NULL);
    bell->refs = 1;
    return STK_OK;
}

void stk_bell_release(stk_bell *bell)
{
    if (!bell || __atomic_sub_fetch(&bell->refs, 1, __ATOMIC_ACQ_REL) != 0) return;
    pthread_cond_destroy(&bell->done);
    pthread_mutex_destroy(&bell->lock);
    stk_free(bell);
}

void stk_ring_share(stk_ring *ring, stk_bell *bell)
{
    __atomic_add_fetch(&bell->refs, 1, __ATOMIC_RELAXED);
    stk_bell_release(ring->bell);
    ring->bell = bell;
}

/* Sleeps until `over` says so; it is asked under the lock of the bell. false: interrupted. */
static bool wait_at(stk_bell *bell, bool (*over)(const void *), const void *what, bool patient)
{
    bool go_on = true;
    pthread_mutex_lock(&bell->lock);
    bell->waiting = true;
    while (go_on && !over(what)) {
        if (patient)
            pthread_cond_wait(&bell->done, &bell->lock);
        else
            go_on = stk_patience_wait(&bell->done, &bell->lock);
    }
    bell->waiting = false;
    pthread_mutex_unlock(&bell->lock);
    return go_on;
}

static int32_t state_of(const stk_ring_item *item)
{
    return __atomic_load_n(&item->state, __ATOMIC_ACQUIRE);
}
static bool job_done(const void *item) { return state_of(item) == DONE; }
static bool job_stopped(const void *item) { return state_of(item) != RUNNING; }

/* ---- rings --------------------------------------------------------------------------------------------- */
static void drop(stk_ring *ring)
{
    if (__atomic_sub_fetch(&ring->refs, 1, __ATOMIC_ACQ_REL) != 0) return;
    for (int i = 0; i < STK_RING_MOST; i++) stk_free(ring->items[i]);
    stk_bell_release(ring->bell);
    stk_free(ring);
}

stk_status stk_ring_new(stk_stage *stage, void *context, size_t data_size,
                        void (*work)(void *, stk_ring_item *), void (*clean)(stk_ring_item *),
                        stk_ring **out, stk_error *err)
{
    *out = NULL;
    stk_workers *crew = NULL;
    if (stk_run_has_workers(stage->run)) STK_TRY(stk_run_crew(stage->run, &crew, err));
    stk_ring *ring = stk_calloc(1, sizeof *ring);
    if (!ring) return stk_fail_memory(err, "stream", sizeof *ring);
    ring->stage = stage;
    ring->context = context;
    ring->work = work;
    ring->clean = clean;
    ring->data_size = data_size;
    ring->crew = crew;
    ring->refs = 1;
    stk_status status = stk_bell_new(&ring->bell, err);
    if (status == STK_OK)
        *out = ring;
    else
        stk_free(ring);
    return status;
}

void *stk_ring_context(const stk_ring *ring) { return ring->context; }

void stk_ring_set_number(stk_ring *ring, int64_t number) { ring->head = ring->tail = number; }

int64_t stk_ring_depth(const stk_ring *ring) { return ring->tail - ring->head; }

bool stk_ring_has_room(const stk_ring *ring, int64_t most)
{
    int64_t depth = ring->tail - ring->head;
    return depth - ring->early < most && depth < STK_RING_MOST - 1;
}

stk_ring_item *stk_ring_begin(stk_ring *ring, stk_error *err)
{
    stk_ring_item **at = &ring->items[ring->tail % STK_RING_MOST];
    if (!*at) {
        *at = stk_calloc(1, sizeof **at + ring->data_size);
        if (!*at) {
            (void)stk_fail_memory(err, "stream", sizeof **at + ring->data_size);
            return NULL;
        }
        (*at)->ring = ring;
    }
    stk_ring_item *item = *at;
    item->status = STK_OK;
    item->taken = false;
    item->number = ring->tail;
    return item;
}

static bool claim(stk_ring_item *item)
{
    int32_t expected = QUEUED;
    return __atomic_compare_exchange_n(&item->state, &expected, RUNNING, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

/* Time on a processor; an item that never slept counts as all of it, however crowded the machine is. */
static int64_t cpu_ns(int64_t *sleeps)
{
    struct rusage u;
    getrusage(RUSAGE_THREAD, &u);
    *sleeps = u.ru_nvcsw;
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000LL +
           (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000LL;
}

/* Time this thread was ready and had no processor, 0 where the system does not say:
 *
 *     /proc/thread-self/schedstat: on a processor, ready (ns), turns */
static int64_t ready_ns(void)
{
    char text[96];
    int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    ssize_t size = file >= 0 ? read(file, text, sizeof text - 1) : 0;
    if (file >= 0) close(file);
    text[size > 0 ? size : 0] = 0;
    const char *space = strchr(text, ' ');
    return space ? strtoll(space, NULL, 10) : 0;
}

/* Every 8th item is also timed by processor time: the difference is what it slept or waited, less the time it only waited
 * for a processor. (Of items that sleep; asking costs some microseconds.) */
static void run_claimed(stk_ring_item *item)
{
    stk_ring *ring = item->ring;
    stk_counters *c = &ring->stage->count;
    bool sample = item->number % 8 == 0;
    bool sleeps = sample && __atomic_load_n(&ring->sleeps, __ATOMIC_RELAXED);
    int64_t ready = sleeps ? ready_ns() : 0;
    int64_t before = 0, after = 0, cpu = sample ? cpu_ns(&before) : 0;
    int64_t wall = sample ? stk_now_ns() : 0;
    uint64_t trace = stk_trace_start(), start = stk_ticks();
    ring->work(ring->context, item);
    item->ticks = (int64_t)(stk_ticks() - start);
    stk_trace_span(trace, ring->stage->ds->kind->name, (uint32_t)item->number);
    if (sample) {
        cpu = cpu_ns(&after) - cpu;
        wall = stk_now_ns() - wall;
        if (sleeps) wall -= stk_min_i64(ready_ns() - ready, wall - cpu);
        __atomic_store_n(&ring->sleeps, after != before && cpu < wall, __ATOMIC_RELAXED);
        __atomic_add_fetch(&c->working_cpu, after == before ? wall : cpu, __ATOMIC_RELAXED);
        __atomic_add_fetch(&c->working_sampled, wall, __ATOMIC_RELAXED);
    }
    __atomic_add_fetch(&c->working, item->ticks, __ATOMIC_RELAXED);
    pthread_mutex_lock(&ring->bell->lock);
    __atomic_store_n(&item->state, DONE, __ATOMIC_RELEASE);
    if (ring->bell->waiting) pthread_cond_signal(&ring->bell->done);
    pthread_mutex_unlock(&ring->bell->lock);
}

static __thread int on_worker __attribute__((tls_model("initial-exec")));

bool stk_ring_on_worker(void) { return on_worker != 0; }

static void entry(void *context)
{
    stk_ring_item *item = context;
    stk_ring *ring = item->ring;
    on_worker++;
    if (claim(item)) run_claimed(item);
    on_worker--;
    drop(ring);
}

bool stk_ring_is_cheap(const stk_ring *ring)
{
    enum { ENOUGH = 16, CHEAP = 12000 }; /* ticks: a few microseconds, what handing over costs */
    return ring->popped > ENOUGH && ring->mean_ticks < CHEAP;
}

stk_status stk_ring_start(stk_ring *ring, stk_ring_item *item, stk_error *err)
{
    (void)err;
    ring->tail++;
    __atomic_store_n(&ring->stage->count.depth, ring->tail - ring->head, __ATOMIC_RELAXED);
    __atomic_store_n(&item->state, QUEUED, __ATOMIC_RELEASE);
    if (!ring->crew || stk_ring_is_cheap(ring)) return STK_OK;
    __atomic_add_fetch(&ring->refs, 1, __ATOMIC_RELAXED);
    /* A full queue means more than enough to do; the consumer will come to this item itself. */
    if (!stk_workers_try_submit(ring->crew, entry, item)) drop(ring);
    return STK_OK;
}

static void run_here(stk_ring_item *item)
{
    stk_float_env was = stk_float_env_enter();
    run_claimed(item);
    stk_float_env_leave(was);
}

static void count_waiting(stk_ring *ring, uint64_t start)
{
    __atomic_add_fetch(&ring->stage->count.waiting, (int64_t)(stk_ticks() - start),
                       __ATOMIC_RELAXED);
}

stk_ring_item *stk_ring_oldest(stk_ring *ring, stk_error *err)
{
    stk_ring_item *item = ring->items[ring->head % STK_RING_MOST];
    if (job_done(item)) return item;
    uint64_t start = stk_ticks();
    bool done = true;
    if (claim(item))
        run_here(item);
    else
        done = wait_at(ring->bell, job_done, item, false);
    count_waiting(ring, start);
    if (!done) (void)stk_patience_over(err);
    return done ? item : NULL;
}

static stk_ring_item *find_done(stk_ring *ring)
{
    for (int64_t i = ring->head; i < ring->tail; i++) {
        stk_ring_item *item = ring->items[i % STK_RING_MOST];
        if (!item->taken && job_done(item)) return item;
    }
    return NULL;
}

static bool any_done(const void *ring) { return find_done((stk_ring *)(uintptr_t)ring) != NULL; }

/* What nobody has begun is run here, youngest first: the workers begin with the oldest. */
stk_ring_item *stk_ring_any(stk_ring *ring, stk_error *err)
{
    stk_ring_item *item = find_done(ring);
    if (item) return item;
    uint64_t start = stk_ticks();
    for (int64_t i = ring->tail - 1; i >= ring->head && !item; i--) {
        stk_ring_item *here = ring->items[i % STK_RING_MOST];
        if (!here->taken && claim(here)) item = here;
    }
    bool done = true;
    if (item)
        run_here(item);
    else
        done = wait_at(ring->bell, any_done, ring, false);
    count_waiting(ring, start);
    if (!done) (void)stk_patience_over(err);
    return done ? find_done(ring) : NULL;
}

bool stk_ring_is_done(const stk_ring *ring)
{
    return ring->head < ring->tail && job_done(ring->items[ring->head % STK_RING_MOST]);
}

typedef struct several {
    int64_t n;
    stk_ring *const *rings;
} several;

static bool one_done(const void *what)
{
    const several *s = what;
    for (int64_t i = 0; i < s->n; i++)
        if (stk_ring_is_done(s->rings[i])) return true;
    return false;
}

stk_status stk_rings_wait(int64_t n, stk_ring *const *rings, stk_error *err)
{
    several all = {n, rings};
    uint64_t start = stk_ticks();
    for (int64_t i = n - 1; i >= 0 && !one_done(&all); i--) {
        stk_ring *ring = rings[i];
        stk_ring_item *item =
            ring->head < ring->tail ? ring->items[ring->head % STK_RING_MOST] : NULL;
        if (item && claim(item)) run_here(item);
    }
    bool done = wait_at(rings[0]->bell, one_done, &all, false);
    count_waiting(rings[0], start);
    return done ? STK_OK : stk_patience_over(err);
}

void stk_ring_pop(stk_ring *ring, stk_ring_item *item)
{
    ring->mean_ticks += (item->ticks - ring->mean_ticks) / 8;
    ring->popped++;
    item->taken = true;
    ring->early++;
    while (ring->head < ring->tail && ring->items[ring->head % STK_RING_MOST]->taken) {
        __atomic_store_n(&ring->items[ring->head % STK_RING_MOST]->state, IDLE, __ATOMIC_RELEASE);
        ring->head++;
        ring->early--;
    }
    __atomic_store_n(&ring->stage->count.depth, ring->tail - ring->head, __ATOMIC_RELAXED);
}

stk_ring_item *stk_ring_at(stk_ring *ring, int64_t i)
{
    return ring->head + i < ring->tail ? ring->items[(ring->head + i) % STK_RING_MOST] : NULL;
}

void stk_ring_close(stk_ring *ring)
{
    if (!ring) return;
    for (int64_t i = ring->head; i < ring->tail; i++) {
        stk_ring_item *item = ring->items[i % STK_RING_MOST];
        if (!claim(item))
            (void)wait_at(ring->bell, job_stopped, item,
                          true); /* claimed: nobody will run it now */
    }
    for (int i = 0; i < STK_RING_MOST; i++)
        if (ring->items[i] && ring->clean) ring->clean(ring->items[i]);
    drop(ring);
}
