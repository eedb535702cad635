/* workers.h - a pool of threads that takes tasks from a bounded queue; the input pipeline's hands.
 * (Numeric kernels are split by pool.h instead.)
 *
 * With threads = 0 it is its own one-thread twin: the same calls, but a submitted task runs at once
 * on the caller's thread and nothing is ever concurrent. */
#ifndef STK_BASE_WORKERS_H
#define STK_BASE_WORKERS_H

#include "base/queue.h"

typedef struct stk_workers stk_workers;
typedef void (*stk_work_fn)(void *context);

STK_MUST_USE stk_status stk_workers_new(int32_t threads, int64_t queue_capacity, stk_workers **out,
                                        stk_error *err);
/* Runs what was submitted to the end, then stops the threads. Not from inside a task. */
void stk_workers_release(stk_workers *workers);

/* Waits while the queue is full. From inside a task of the same workers a full queue is not waited
 * for (all workers might do so): the task runs at once on that worker. */
void stk_workers_submit(stk_workers *workers, stk_work_fn task, void *context);
bool stk_workers_try_submit(stk_workers *workers, stk_work_fn task,
                            void *context);  /* false: full */
void stk_workers_wait(stk_workers *workers); /* until all that was submitted is done */

/* Changes the number of threads (0 = twin) while tasks are running; one caller at a time, not from
 * inside a task. When the system refuses a thread, those that were made stay. */
STK_MUST_USE stk_status stk_workers_resize(stk_workers *workers, int32_t threads, stk_error *err);
STK_MUST_USE stk_status stk_workers_resize_queue(stk_workers *workers, int64_t capacity,
                                                 stk_error *err);
int32_t stk_workers_threads(const stk_workers *workers);

typedef struct stk_workers_stats {
    stk_queue_stats queue; /* of the twin: all zero */
    int64_t tasks;         /* done */
    int64_t busy_ns;       /* time inside tasks, summed over threads */
} stk_workers_stats;
stk_workers_stats stk_workers_read_stats(stk_workers *workers, bool reset);

#endif
