/* pool.h - THE compute pool: one set of threads that splits a piece of work and comes back.
 *
 *     static void rows(void *context, int64_t part, int32_t thread) { ... }
 *     stk_pool_run(pool, rows, &job, 8);          // rows(&job, 0..7, ...) on all threads, then returns
 *
 * A region costs a fraction of a microsecond when the threads are awake: they spin for a while
 * before they sleep. The assignment of parts to threads is fixed (thread t of n gets parts
 * t*parts/n .. (t+1)*parts/n, n = min(threads, parts)), so that data stays in the cache of the core
 * that made it; what a thread has not begun when another one is through with its own parts, that one may do. Results must not depend on the number of threads: let `parts` be given by the
 * shape, never by the thread count, wherever the split changes the order of a sum. */
#ifndef STK_BASE_POOL_H
#define STK_BASE_POOL_H

#include "base/status.h"

#include <stdint.h>

typedef struct stk_pool stk_pool;
typedef void (*stk_pool_function)(void *context, int64_t part, int32_t thread);

/* threads = 0 takes stk_cpu_count(); 1 makes no thread at all and every run is a plain loop. */
STK_MUST_USE stk_status stk_pool_new(int32_t threads, stk_pool **out, stk_error *err);
void stk_pool_release(stk_pool *pool); /* NULL is fine; not while a run is going on */

/* Calls function(context, part, thread) for each part in [0, parts) and returns when all are done.
 * The caller is thread 0. pool = NULL is a plain loop. Called from inside a region of the same pool
 * it is a plain loop on that thread; when another thread is using the pool it is a plain loop on
 * the caller, so it never waits for strangers and never deadlocks. The workers run with subnormals
 * off; the caller enters that mode itself (float_env.h). */
void stk_pool_run(stk_pool *pool, stk_pool_function function, void *context, int64_t parts);

/* The same on the first `threads` threads only; the caller is one of them. */
void stk_pool_run_on(stk_pool *pool, int32_t threads, stk_pool_function function, void *context,
                     int64_t parts);

int32_t stk_pool_threads(const stk_pool *pool); /* 1 for NULL */

typedef struct stk_pool_stats {
    int64_t regions;      /* runs that were split over threads */
    int64_t inline_runs;  /* runs done as a plain loop */
    int64_t rested;       /* runs done by the caller because the processors were taken by others */
    int64_t wakeups;      /* sleeping workers that had to be woken (about 25 us each) */
    int64_t helped;       /* parts that the caller did because their thread had not begun them */
    int64_t caller_waits; /* regions at whose end the caller waited more than about 1 us */
    int64_t wait_ns;      /* the time of these waits */
} stk_pool_stats;
stk_pool_stats stk_pool_read_stats(const stk_pool *pool);

#endif
