/* Fork and join over mailboxes.
 *
 * Each worker has two cache lines of its own: `mail`, written by the caller (the job and a sequence
 * number), and `reply`, written by the worker (the number of the last job done, and whether it
 * sleeps). A region is: fill the mail of the workers that take part, do the caller's share, wait
 * for their replies. No lock and no shared counter: four cache-line transfers per worker.
 *
 * A share is begun part by part, and whoever begins a part claims it first:
 *
 *     claimed   number of the job << 32 | parts of the share that nobody has begun
 *
 * That is the thread the share was given to, until another one has nothing left to do: the caller helps
 * workers, which may be asleep, slower, or put aside for another program, perhaps for milliseconds; workers
 * that did their share help the caller. A part done by a thread it was not meant for costs cache misses, so
 * nobody helps before its own share is done.
 *
 * Posting is a plain release store, so the caller does not wait for the line to arrive. A worker
 * that falls asleep at just that moment could miss it; therefore the waiting caller looks at the
 * `asleep` flag as well and wakes whoever has not replied. A missed wake-up is thus only late.
 *
 * Spinning is right while the processors are ours alone. When other programs want them, a spinning
 * thread uses its time slice up and then misses the call for milliseconds, while a sleeping one is
 * run at once. So each side watches the clock as it spins: a gap means that it was put aside, and
 * it spins far less from then on, coming back slowly.
 *
 * A worker that was put aside in the middle of a part holds everybody up until it is back, and one that is
 * woken again and again for parts that the caller then does itself costs more than it gives. Both mean that the
 * processors are taken, and the pool does without its workers for a while: eight times as long as the wait was, or
 * longer and longer while waking them is in vain. So what is lost to other programs stays a small share of the time. */
#define _GNU_SOURCE
#include "base/pool.h"

#include "base/clock.h"
#include "base/cpus.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/thread.h"
#include "base/trace.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    SPIN_LONG = 20000, /* pauses before sleep, about 0.3 ms */
    SPIN_SHORT = 50,   /* the same with more threads than processors, or strangers on them */
    SPIN_REGAIN = 256, /* patience won back by each wait */
    SPIN_LOOK = 256,   /* pauses between looks at the clock */
    SPIN_UNTIMED = 64, /* waits of the caller shorter than this are not worth a clock */
    GAP_NS = 150000,   /* a look this late means that the thread was put aside */
    VAIN = 4,          /* regions in a row without any help from the workers, */
    VAIN_NS = 300000,  /* for longer than it takes to wake a sleeping one: then they rest */
    REST_WAIT = 8,     /* rest after a long wait, in units of that wait */
    REST_LEAST_NS = 500000,
    REST_MOST_NS = 50000000,
    MAX_THREADS = 1024
};

typedef struct share { /* atomic: read before it is known whether it still holds */
    int64_t first, last;
} share;

typedef struct mail {
    stk_pool_function function;
    void *context;
    share share;
    uint32_t number;        /* atomic: of this job; futex of the worker */
    uint32_t caller_sleeps; /* atomic: the caller wants to be woken by the reply */
    uint32_t leave;         /* atomic */
} mail;

typedef struct reply {
    uint64_t claimed; /* atomic */
    uint32_t number;  /* atomic: of the last job done; futex of the caller */
    uint32_t asleep;  /* atomic */
} reply;

/* Each part starts a cache line and leaves the next one free, which is prefetched along with it. */
typedef struct worker {
    _Alignas(STK_ALIGN) mail mail;
    _Alignas(STK_ALIGN) char gap[STK_ALIGN];
    _Alignas(STK_ALIGN) reply reply;
    _Alignas(STK_ALIGN) char gap2[STK_ALIGN];
    _Alignas(STK_ALIGN) struct stk_pool *pool;
    int32_t spins;  /* the worker's own patience */
    int32_t thread; /* 1.. */
    uint32_t posted;
    pthread_t handle;
} worker;

struct stk_pool {
    int32_t threads;
    int32_t most_spins;
    int32_t home;         /* atomic: processor of the caller when it last made or woke a thread */
    int32_t spins;        /* the caller's patience; written under `busy` */
    int32_t in_vain;      /* regions in a row in which no worker began anything; under `busy` */
    int64_t vain_since;   /* when the first of them began */
    int64_t rest_ns;      /* the next rest, when that goes on */
    int64_t rest_until;   /* 0: the workers take part */
    uint32_t forks;       /* value of `forks` when the threads were made */
    cpu_set_t processors; /* that the maker of the pool may use */
    worker *workers;      /* workers[0] is thread 1 */
    int32_t started;
    _Alignas(STK_ALIGN) uint64_t claimed; /* atomic: of the caller's share */
    share own;
    /* the job of that share; stays while workers that did a part are waited for */
    uint32_t own_number;
    _Alignas(STK_ALIGN) uint32_t busy; /* atomic: a run is going on */
    stk_pool_stats stats;              /* relaxed: written under `busy`, read at any time */
};

#define LOCAL static __thread __attribute__((tls_model("initial-exec")))
LOCAL const stk_pool *inside_pool; /* the pool whose region this thread is in */
LOCAL int32_t inside_thread;

/* One writer at a time (inline_runs may miss a count when strangers collide): no locked add. */
#define BUMP(counter, by)                                                                          \
    __atomic_store_n(&(counter), __atomic_load_n(&(counter), __ATOMIC_RELAXED) + (by),             \
                     __ATOMIC_RELAXED)

/* The threads of a pool do not live on in a forked child; there it becomes a plain loop. */
static uint32_t forks;
static void count_fork(void) { __atomic_add_fetch(&forks, 1, __ATOMIC_RELAXED); }
static void watch_forks(void) { pthread_atfork(NULL, NULL, count_fork); }

static void pause_cpu(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void futex_wait(uint32_t *word, uint32_t while_it_is)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_it_is, NULL, NULL, 0);
}

static void futex_wake(uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Spins until *word is (or is no longer) `value`; false when patience ended. */
static bool spin_on(const uint32_t *word, uint32_t value, bool until_equal, int32_t *spins,
                    int32_t most)
{
    int64_t looked = 0;
    const int32_t limit = *spins;
    *spins = *spins + SPIN_REGAIN < most ? *spins + SPIN_REGAIN : most;
    for (int32_t spun = 1; spun <= limit; spun++) {
        if ((__atomic_load_n(word, __ATOMIC_ACQUIRE) == value) == until_equal) return true;
        pause_cpu();
        if (spun % SPIN_LOOK) continue;
        if (!looked) looked = stk_now_ns();
        sched_yield(); /* the one we wait for may be queued behind us on this very processor */
        int64_t now = stk_now_ns();
        if (now - looked > GAP_NS) {
            *spins = SPIN_SHORT;
            break;
        }
        looked = now;
    }
    return (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value) == until_equal;
}

/* ---- workers ------------------------------------------------------------------------------ */

static int32_t home_of(const stk_pool *pool)
{
    return __atomic_load_n(&pool->home, __ATOMIC_RELAXED);
}

/* A new thread starts on its maker's processor, and the scheduler takes its time to move it. So it goes to a processor of
 * its own first, the thread-th one after the caller's, and may be moved to any but the caller's from then on. */
static void take_a_processor(const worker *w)
{
    cpu_set_t all = w->pool->processors, one;
    if (CPU_COUNT(&all) < 2) return;
    int home = home_of(w->pool), cpu = home >= 0 ? home : 0;
    for (int32_t steps = w->thread % CPU_COUNT(&all); steps > 0; steps--) do
            cpu = (cpu + 1) % CPU_SETSIZE;
        while (!CPU_ISSET(cpu, &all));
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) return;
    if (home >= 0 && w->pool->threads <= CPU_COUNT(&all)) CPU_CLR(home, &all);
    sched_setaffinity(0, sizeof all, &all);
}

/* Who is woken may find itself on the processor of the one who woke it and now waits for it. */
static void wait_for_mail(worker *w, uint32_t last)
{
    if (spin_on(&w->mail.number, last, false, &w->spins, w->pool->most_spins)) return;
    __atomic_store_n(&w->reply.asleep, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&w->mail.number, __ATOMIC_SEQ_CST) == last)
        futex_wait(&w->mail.number, last);
    __atomic_store_n(&w->reply.asleep, 0, __ATOMIC_RELAXED);
    if (sched_getcpu() == home_of(w->pool)) take_a_processor(w);
}

/* ---- shares -------------------------------------------------------------------------------- */

static void set_share(share *s, int64_t first, int64_t last)
{
    __atomic_store_n(&s->first, first, __ATOMIC_RELAXED);
    __atomic_store_n(&s->last, last, __ATOMIC_RELAXED);
}

/* The next part of a share in the job of this number; -1 when all are begun. A share is replaced only after
 * that, so when the claim succeeds, what was read of it holds. */
static int64_t claim(uint64_t *claimed, const share *s, uint32_t number)
{
    uint64_t was = __atomic_load_n(claimed, __ATOMIC_RELAXED);
    for (;;) {
        int64_t first = __atomic_load_n(&s->first, __ATOMIC_RELAXED);
        int64_t last = __atomic_load_n(&s->last, __ATOMIC_RELAXED);
        uint32_t job = (uint32_t)(was >> 32), left = (uint32_t)was;
        if (job == number - 1) left = (uint32_t)(last - first);
        if (left == 0 || (job != number && job != number - 1)) return -1;
        if (__atomic_compare_exchange_n(claimed, &was, (uint64_t)number << 32 | (left - 1), true,
                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return last - left;
    }
}

/* Parts of a share that nobody has begun yet, on this thread; how many there were. */
static int64_t run_claimed(uint64_t *claimed, const share *s, uint32_t number, const mail *m,
                           int32_t thread)
{
    int64_t count = 0;
    for (int64_t part; (part = claim(claimed, s, number)) >= 0; count++)
        m->function(m->context, part, thread);
    return count;
}

static void *work(void *argument)
{
    worker *w = argument;
    take_a_processor(w);
    char name[16];
    snprintf(name, sizeof name, "pool %d", (int)w->thread);
    stk_trace_name_thread_as(name, STK_TRACE_COMPUTE);
    stk_float_env_enter();
    inside_pool = w->pool;
    inside_thread = w->thread;
    for (uint32_t number = 0;;) {
        wait_for_mail(w, number);
        number = __atomic_load_n(&w->mail.number, __ATOMIC_ACQUIRE);
        if (__atomic_load_n(&w->mail.leave, __ATOMIC_RELAXED)) return NULL;
        int64_t done = run_claimed(&w->reply.claimed, &w->mail.share, number, &w->mail, w->thread);
        if (done == 0) continue; /* the caller did it all and does not wait */
        if (done > 1)            /* shares of a single part are too short for help */
            run_claimed(&w->pool->claimed, &w->pool->own, w->pool->own_number, &w->mail, w->thread);
        /* Sequentially consistent, because the flag read next must not be older than the store. */
        __atomic_exchange_n(&w->reply.number, number, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&w->mail.caller_sleeps, __ATOMIC_SEQ_CST)) futex_wake(&w->reply.number);
    }
}

static void wake_worker(stk_pool *pool, worker *w)
{
    __atomic_store_n(&pool->home, sched_getcpu(), __ATOMIC_RELAXED);
    futex_wake(&w->mail.number);
}

static void post(stk_pool *pool, worker *w)
{
    __atomic_store_n(&w->mail.number, ++w->posted, __ATOMIC_RELEASE);
    if (!__atomic_load_n(&w->reply.asleep, __ATOMIC_RELAXED)) return;
    BUMP(pool->stats.wakeups, 1);
    wake_worker(pool, w);
}

/* ---- the caller's side --------------------------------------------------------------------- */

static bool replied(const worker *w)
{
    return __atomic_load_n(&w->reply.number, __ATOMIC_ACQUIRE) == w->posted;
}

static int64_t bounded_rest(int64_t ns)
{
    return ns < REST_LEAST_NS ? REST_LEAST_NS : ns > REST_MOST_NS ? REST_MOST_NS : ns;
}

/* Beyond the first microsecond: takes the time, repairs a missed wake-up, at last sleeps. How long it was. */
static int64_t wait_long(stk_pool *pool, worker *w)
{
    int64_t start = stk_now_ns();
    /* The number once more, now with the strong order that post() saves: either the worker sees it
     * before it sleeps, or we see that it sleeps. */
    __atomic_store_n(&w->mail.number, w->posted, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&w->reply.asleep, __ATOMIC_SEQ_CST)) wake_worker(pool, w);
    if (!spin_on(&w->reply.number, w->posted, true, &pool->spins, pool->most_spins)) {
        if (pool->spins / 2 > SPIN_SHORT) pool->spins /= 2; /* that was time wasted */
        __atomic_store_n(&w->mail.caller_sleeps, 1, __ATOMIC_SEQ_CST);
        for (;;) {
            uint32_t seen = __atomic_load_n(&w->reply.number, __ATOMIC_SEQ_CST);
            if (seen == w->posted) break;
            futex_wait(&w->reply.number, seen);
        }
        __atomic_store_n(&w->mail.caller_sleeps, 0, __ATOMIC_RELAXED);
    }
    int64_t waited = stk_now_ns() - start;
    BUMP(pool->stats.caller_waits, 1);
    BUMP(pool->stats.wait_ns, waited);
    return waited;
}

/* By now the worker has had as long to begin as the caller's own share took. Is all of it done now? */
static bool help(stk_pool *pool, worker *w)
{
    int64_t count = run_claimed(&w->reply.claimed, &w->mail.share, w->posted, &w->mail, 0);
    if (count) BUMP(pool->stats.helped, count);
    return count == w->mail.share.last - w->mail.share.first;
}

/* Was the worker of any use? *waited: the longest wait for one of them. */
static bool wait_for_reply(stk_pool *pool, worker *w, int64_t *waited)
{
    for (int spin = 0; spin < SPIN_UNTIMED; spin++) {
        if (replied(w)) return true;
        pause_cpu();
    }
    if (help(pool, w)) return false;
    int64_t ns = wait_long(pool, w);
    if (ns > *waited) *waited = ns;
    return true;
}

/* What a region tells about the processors: ours, or taken by others? A wait as long as the caller's own work is no
 * sign of that: the parts may be unequal. Nor are short regions that a sleeping worker is too late for. */
static void judge(stk_pool *pool, bool helped, int64_t waited, int64_t begin, int64_t end)
{
    int64_t rest = 0;
    if (helped) {
        pool->in_vain = 0;
        if (waited <= GAP_NS) pool->rest_ns = REST_LEAST_NS;
    } else if (pool->in_vain++ == 0) {
        pool->vain_since = begin;
    }
    if (waited > GAP_NS && waited > end - begin) {
        rest = bounded_rest(REST_WAIT * waited);
    } else if (pool->in_vain >= VAIN && end - pool->vain_since > VAIN_NS) {
        rest = pool->rest_ns = bounded_rest(2 * pool->rest_ns);
        pool->in_vain = 0;
    }
    if (rest) pool->rest_until = end + waited + rest;
}

/* True while the workers rest. */
static bool is_resting(stk_pool *pool)
{
    if (!pool->rest_until) return false;
    if (stk_now_ns() < pool->rest_until) return true;
    pool->rest_until = 0;
    return false;
}

static void run_inline(stk_pool_function function, void *context, int64_t parts, int32_t thread)
{
    for (int64_t part = 0; part < parts; part++) function(context, part, thread);
}

static void run_split(stk_pool *pool, int64_t active, stk_pool_function function, void *context,
                      int64_t parts)
{
    const mail own = {.function = function, .context = context};
    uint32_t number = ++pool->own_number;
    set_share(&pool->own, 0, parts / active);
    for (int64_t t = 1; t < active; t++) {
        worker *w = &pool->workers[t - 1];
        w->mail.function = function;
        w->mail.context = context;
        set_share(&w->mail.share, t * parts / active, (t + 1) * parts / active);
        post(pool, w);
    }
    const stk_pool *outer_pool = inside_pool;
    int32_t outer_thread = inside_thread;
    inside_pool = pool;
    inside_thread = 0;
    int64_t begin = stk_now_ns(), waited = 0;
    bool helped = false;
    run_claimed(&pool->claimed, &pool->own, number, &own, 0);
    int64_t end = stk_now_ns(); /* of the caller's own part */
    for (int64_t t = 1; t < active; t++)
        helped |= wait_for_reply(pool, &pool->workers[t - 1], &waited);
    judge(pool, helped, waited, begin, end);
    inside_pool = outer_pool;
    inside_thread = outer_thread;
    BUMP(pool->stats.regions, 1);
}

void stk_pool_run_on(stk_pool *pool, int32_t threads, stk_pool_function function, void *context,
                     int64_t parts)
{
    if (!pool) {
        run_inline(function, context, parts, 0);
        return;
    }
    bool nested = inside_pool == pool;
    if (threads > pool->threads) threads = pool->threads;
    bool alone = parts < 2 || parts > UINT32_MAX || threads < 2 || nested ||
                 __atomic_load_n(&forks, __ATOMIC_RELAXED) != pool->forks ||
                 __atomic_exchange_n(&pool->busy, 1, __ATOMIC_ACQUIRE);
    if (alone) {
        run_inline(function, context, parts, nested ? inside_thread : 0);
        BUMP(pool->stats.inline_runs, 1);
        return;
    }
    if (is_resting(pool)) {
        const stk_pool *outer_pool = inside_pool;
        int32_t outer_thread = inside_thread;
        inside_pool = pool;
        inside_thread = 0;
        run_inline(function, context, parts, 0);
        inside_pool = outer_pool;
        inside_thread = outer_thread;
        BUMP(pool->stats.rested, 1);
    } else {
        run_split(pool, threads < parts ? threads : parts, function, context, parts);
    }
    __atomic_store_n(&pool->busy, 0, __ATOMIC_RELEASE);
}

void stk_pool_run(stk_pool *pool, stk_pool_function function, void *context, int64_t parts)
{
    stk_pool_run_on(pool, MAX_THREADS, function, context, parts);
}

int32_t stk_pool_threads(const stk_pool *pool) { return pool ? pool->threads : 1; }

stk_pool_stats stk_pool_read_stats(const stk_pool *pool)
{
    stk_pool_stats stats = {0};
    if (!pool) return stats;
    stats.regions = __atomic_load_n(&pool->stats.regions, __ATOMIC_RELAXED);
    stats.rested = __atomic_load_n(&pool->stats.rested, __ATOMIC_RELAXED);
    stats.inline_runs = __atomic_load_n(&pool->stats.inline_runs, __ATOMIC_RELAXED);
    stats.wakeups = __atomic_load_n(&pool->stats.wakeups, __ATOMIC_RELAXED);
    stats.helped = __atomic_load_n(&pool->stats.helped, __ATOMIC_RELAXED);
    stats.caller_waits = __atomic_load_n(&pool->stats.caller_waits, __ATOMIC_RELAXED);
    stats.wait_ns = __atomic_load_n(&pool->stats.wait_ns, __ATOMIC_RELAXED);
    return stats;
}

/* ---- making and unmaking -------------------------------------------------------------------- */

static bool start_worker(worker *w)
{
    int failed = stk_thread_start(&w->handle, work, w);
    errno = failed;
    if (failed) return false;
    char name[16];
    snprintf(name, sizeof name, "stk-pool-%d", (int)w->thread);
    pthread_setname_np(w->handle, name);
    return true;
}

static stk_status start_workers(stk_pool *pool, stk_error *err)
{
    size_t count = (size_t)(pool->threads - 1);
    pool->workers = stk_calloc(count, sizeof(worker));
    if (!pool->workers) return stk_fail_memory(err, "pool_new", count * sizeof(worker));
    for (int32_t t = 1; t < pool->threads; t++) {
        worker *w = &pool->workers[t - 1];
        w->pool = pool;
        w->thread = t;
        w->spins = pool->spins;
        if (!start_worker(w))
            return stk_fail(err, STK_ERR_MEMORY,
                            "pool_new: the system refused thread %d of %d: %s; ask for fewer", t,
                            (int)pool->threads, strerror(errno));
        pool->started = t;
    }
    return STK_OK;
}

/* As many as STOKER_THREADS says, else one per processor. */
static stk_status usual_threads(int32_t processors, int32_t *out, stk_error *err)
{
    const char *wish = getenv("STOKER_THREADS");
    int64_t threads = processors;
    if (wish && *wish &&
        !(stk_parse_int64(wish, strlen(wish), &threads) && threads >= 1 && threads <= MAX_THREADS))
        return stk_fail(err, STK_ERR_RANGE,
                        "STOKER_THREADS=%s: give a number of threads from 1 to %d, or leave it "
                        "out for as many as there are processors",
                        wish, MAX_THREADS);
    *out = (int32_t)stk_min_i64(threads, MAX_THREADS);
    return STK_OK;
}

stk_status stk_pool_new(int32_t threads, stk_pool **out, stk_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!out) return stk_fail(err, STK_ERR_ARGUMENT, "pool_new: the out pointer is NULL");
    *out = NULL;
    if (threads < 0 || threads > MAX_THREADS)
        return stk_fail(err, STK_ERR_RANGE,
                        "pool_new: %d threads is outside 0..%d (0 = as many as processors)",
                        (int)threads, MAX_THREADS);
    pthread_once(&once, watch_forks);
    int32_t processors = stk_cpu_count();
    if (threads == 0) STK_TRY(usual_threads(processors, &threads, err));
    stk_pool *pool = stk_calloc(1, sizeof *pool);
    if (!pool) return stk_fail_memory(err, "pool_new", sizeof *pool);
    pool->threads = threads;
    pool->most_spins = pool->spins = threads > processors ? SPIN_SHORT : SPIN_LONG;
    pool->forks = __atomic_load_n(&forks, __ATOMIC_RELAXED);
    pool->home = sched_getcpu();
    pool->rest_ns = REST_LEAST_NS;
    if (sched_getaffinity(0, sizeof pool->processors, &pool->processors) != 0)
        CPU_ZERO(&pool->processors);
    stk_status status = threads > 1 ? start_workers(pool, err) : STK_OK;
    if (status != STK_OK) {
        stk_pool_release(pool);
        return status;
    }
    *out = pool;
    return STK_OK;
}

void stk_pool_release(stk_pool *pool)
{
    if (!pool) return;
    bool alive = __atomic_load_n(&forks, __ATOMIC_RELAXED) == pool->forks;
    for (int32_t i = 0; alive && i < pool->started; i++) {
        __atomic_store_n(&pool->workers[i].mail.leave, 1, __ATOMIC_RELAXED);
        post(pool, &pool->workers[i]);
        /* The worker may be falling asleep just now; nobody will wait for a reply, so ring. */
        futex_wake(&pool->workers[i].mail.number);
    }
    for (int32_t i = 0; alive && i < pool->started; i++)
        pthread_join(pool->workers[i].handle, NULL);
    stk_free(pool->workers);
    stk_free(pool);
}
