/* Jobs in flight. A job is claimed by whoever gets to it first: a worker that found it in the queue, or the consumer
 * that needs it. Entries of claimed jobs stay in the queue and find nothing to do; they keep the ring alive. */
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
    void (*work)(void *, stk_job *);
    void (*clean)(stk_job *);
    size_t data_size;
    stk_workers *crew; /* NULL: no workers */
    stk_bell *bell;
    int32_t refs; /* the owner, and one per entry in the queue of the crew */
    int64_t head, tail;
    int64_t early; /* taken before their turn */
    bool sleeps;   /* the last job that was looked at did; atomic */
    int64_t mean_ticks, popped;
    stk_job *jobs[STK_RING_MOST];
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

static int32_t state_of(const stk_job *job)
{
    return __atomic_load_n(&job->state, __ATOMIC_ACQUIRE);
}
static bool job_done(const void *job) { return state_of(job) == DONE; }
static bool job_stopped(const void *job) { return state_of(job) != RUNNING; }

/* ---- rings --------------------------------------------------------------------------------------------- */
static void drop(stk_ring *ring)
{
    if (__atomic_sub_fetch(&ring->refs, 1, __ATOMIC_ACQ_REL) != 0) return;
    for (int i = 0; i < STK_RING_MOST; i++) stk_free(ring->jobs[i]);
    stk_bell_release(ring->bell);
    stk_free(ring);
}

stk_status stk_ring_new(stk_stage *stage, void *context, size_t data_size,
                        void (*work)(void *, stk_job *), void (*clean)(stk_job *), stk_ring **out,
                        stk_error *err)
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

stk_job *stk_ring_begin(stk_ring *ring, stk_error *err)
{
    stk_job **at = &ring->jobs[ring->tail % STK_RING_MOST];
    if (!*at) {
        *at = stk_calloc(1, sizeof **at + ring->data_size);
        if (!*at) {
            (void)stk_fail_memory(err, "stream", sizeof **at + ring->data_size);
            return NULL;
        }
        (*at)->ring = ring;
    }
    stk_job *job = *at;
    job->status = STK_OK;
    job->taken = false;
    job->number = ring->tail;
    return job;
}

static bool claim(stk_job *job)
{
    int32_t expected = QUEUED;
    return __atomic_compare_exchange_n(&job->state, &expected, RUNNING, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

/* Time on a processor; a job that never slept counts as all of it, however crowded the machine is. */
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

/* Every 8th job is also timed by processor time: the difference is what it slept or waited, less the time it only waited
 * for a processor. (Of jobs that sleep; asking costs some microseconds.) */
static void run_claimed(stk_job *job)
{
    stk_ring *ring = job->ring;
    stk_counters *c = &ring->stage->count;
    bool sample = job->number % 8 == 0;
    bool sleeps = sample && __atomic_load_n(&ring->sleeps, __ATOMIC_RELAXED);
    int64_t ready = sleeps ? ready_ns() : 0;
    int64_t before = 0, after = 0, cpu = sample ? cpu_ns(&before) : 0;
    int64_t wall = sample ? stk_now_ns() : 0;
    uint64_t trace = stk_trace_start(), start = stk_ticks();
    ring->work(ring->context, job);
    job->ticks = (int64_t)(stk_ticks() - start);
    stk_trace_span(trace, ring->stage->ds->kind->name, (uint32_t)job->number);
    if (sample) {
        cpu = cpu_ns(&after) - cpu;
        wall = stk_now_ns() - wall;
        if (sleeps) wall -= stk_min_i64(ready_ns() - ready, wall - cpu);
        __atomic_store_n(&ring->sleeps, after != before && cpu < wall, __ATOMIC_RELAXED);
        __atomic_add_fetch(&c->working_cpu, after == before ? wall : cpu, __ATOMIC_RELAXED);
        __atomic_add_fetch(&c->working_sampled, wall, __ATOMIC_RELAXED);
    }
    __atomic_add_fetch(&c->working, job->ticks, __ATOMIC_RELAXED);
    pthread_mutex_lock(&ring->bell->lock);
    __atomic_store_n(&job->state, DONE, __ATOMIC_RELEASE);
    if (ring->bell->waiting) pthread_cond_signal(&ring->bell->done);
    pthread_mutex_unlock(&ring->bell->lock);
}

static __thread int on_worker __attribute__((tls_model("initial-exec")));

bool stk_ring_on_worker(void) { return on_worker != 0; }

static void entry(void *context)
{
    stk_job *job = context;
    stk_ring *ring = job->ring;
    on_worker++;
    if (claim(job)) run_claimed(job);
    on_worker--;
    drop(ring);
}

bool stk_ring_is_cheap(const stk_ring *ring)
{
    enum { ENOUGH = 16, CHEAP = 12000 }; /* ticks: a few microseconds, what handing over costs */
    return ring->popped > ENOUGH && ring->mean_ticks < CHEAP;
}

stk_status stk_ring_start(stk_ring *ring, stk_job *job, stk_error *err)
{
    (void)err;
    ring->tail++;
    __atomic_store_n(&ring->stage->count.depth, ring->tail - ring->head, __ATOMIC_RELAXED);
    __atomic_store_n(&job->state, QUEUED, __ATOMIC_RELEASE);
    if (!ring->crew || stk_ring_is_cheap(ring)) return STK_OK;
    __atomic_add_fetch(&ring->refs, 1, __ATOMIC_RELAXED);
    /* A full queue means more than enough to do; the consumer will come to this job itself. */
    if (!stk_workers_try_submit(ring->crew, entry, job)) drop(ring);
    return STK_OK;
}

static void run_here(stk_job *job)
{
    stk_float_env was = stk_float_env_enter();
    run_claimed(job);
    stk_float_env_leave(was);
}

static void count_waiting(stk_ring *ring, uint64_t start)
{
    __atomic_add_fetch(&ring->stage->count.waiting, (int64_t)(stk_ticks() - start),
                       __ATOMIC_RELAXED);
}

stk_job *stk_ring_oldest(stk_ring *ring, stk_error *err)
{
    stk_job *job = ring->jobs[ring->head % STK_RING_MOST];
    if (job_done(job)) return job;
    uint64_t start = stk_ticks();
    bool done = true;
    if (claim(job))
        run_here(job);
    else
        done = wait_at(ring->bell, job_done, job, false);
    count_waiting(ring, start);
    if (!done) (void)stk_patience_over(err);
    return done ? job : NULL;
}

static stk_job *find_done(stk_ring *ring)
{
    for (int64_t i = ring->head; i < ring->tail; i++) {
        stk_job *job = ring->jobs[i % STK_RING_MOST];
        if (!job->taken && job_done(job)) return job;
    }
    return NULL;
}

static bool any_done(const void *ring) { return find_done((stk_ring *)(uintptr_t)ring) != NULL; }

/* What nobody has begun is run here, youngest first: the workers begin with the oldest. */
stk_job *stk_ring_any(stk_ring *ring, stk_error *err)
{
    stk_job *job = find_done(ring);
    if (job) return job;
    uint64_t start = stk_ticks();
    for (int64_t i = ring->tail - 1; i >= ring->head && !job; i--) {
        stk_job *here = ring->jobs[i % STK_RING_MOST];
        if (!here->taken && claim(here)) job = here;
    }
    bool done = true;
    if (job)
        run_here(job);
    else
        done = wait_at(ring->bell, any_done, ring, false);
    count_waiting(ring, start);
    if (!done) (void)stk_patience_over(err);
    return done ? find_done(ring) : NULL;
}

bool stk_ring_is_done(const stk_ring *ring)
{
    return ring->head < ring->tail && job_done(ring->jobs[ring->head % STK_RING_MOST]);
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
        stk_job *job = ring->head < ring->tail ? ring->jobs[ring->head % STK_RING_MOST] : NULL;
        if (job && claim(job)) run_here(job);
    }
    bool done = wait_at(rings[0]->bell, one_done, &all, false);
    count_waiting(rings[0], start);
    return done ? STK_OK : stk_patience_over(err);
}

void stk_ring_pop(stk_ring *ring, stk_job *job)
{
    ring->mean_ticks += (job->ticks - ring->mean_ticks) / 8;
    ring->popped++;
    job->taken = true;
    ring->early++;
    while (ring->head < ring->tail && ring->jobs[ring->head % STK_RING_MOST]->taken) {
        __atomic_store_n(&ring->jobs[ring->head % STK_RING_MOST]->state, IDLE, __ATOMIC_RELEASE);
        ring->head++;
        ring->early--;
    }
    __atomic_store_n(&ring->stage->count.depth, ring->tail - ring->head, __ATOMIC_RELAXED);
}

stk_job *stk_ring_at(stk_ring *ring, int64_t i)
{
    return ring->head + i < ring->tail ? ring->jobs[(ring->head + i) % STK_RING_MOST] : NULL;
}

void stk_ring_close(stk_ring *ring)
{
    if (!ring) return;
    for (int64_t i = ring->head; i < ring->tail; i++) {
        stk_job *job = ring->jobs[i % STK_RING_MOST];
        if (!claim(job))
            (void)wait_at(ring->bell, job_stopped, job, true); /* claimed: nobody will run it now */
    }
    for (int i = 0; i < STK_RING_MOST; i++)
        if (ring->jobs[i] && ring->clean) ring->clean(ring->jobs[i]);
    drop(ring);
}
