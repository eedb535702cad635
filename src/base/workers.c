/* Workers over a stk_queue of tasks. A thread leaves when it takes a task without a function, so
 * shrinking needs no flag that a waiting thread would have to be woken for. */
#define _GNU_SOURCE
#include "base/workers.h"

#include "base/clock.h"
#include "base/float_env.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/trace.h"

#include <pthread.h>
#include <string.h>

enum { MAX_THREADS = 1024 };

typedef struct task {
    stk_work_fn run; /* NULL = the thread that takes it leaves */
    void *context;
} task;

typedef struct hand {
    struct stk_workers *workers;
    struct hand *next;
    pthread_t handle;
    bool left; /* under `lock` */
} hand;

struct stk_workers {
    stk_queue *queue;
    hand *hands;     /* list, changed by resize only */
    int32_t threads; /* atomic */
    pthread_mutex_t lock;
    pthread_cond_t idle, someone_left;
    int64_t pending; /* submitted and not done; under lock */
    int64_t tasks, busy_ns;
};

#define LOCAL static __thread __attribute__((tls_model("initial-exec")))
LOCAL const stk_workers *inside; /* the workers this thread belongs to */

static void begin_task(stk_workers *w)
{
    pthread_mutex_lock(&w->lock);
    w->pending++;
    pthread_mutex_unlock(&w->lock);
}

static void run_task(stk_workers *w, const task *t)
{
    int64_t start = stk_now_ns();
    t->run(t->context);
    int64_t end = stk_now_ns();
    pthread_mutex_lock(&w->lock);
    w->tasks++;
    w->busy_ns += end - start;
    if (--w->pending == 0) pthread_cond_broadcast(&w->idle);
    pthread_mutex_unlock(&w->lock);
}

/* On a thread that is not ours: in the numeric mode of our threads, for the same bits. */
static void run_here(stk_workers *w, const task *t)
{
    stk_float_env was = stk_float_env_enter();
    run_task(w, t);
    stk_float_env_leave(was);
}

static void *work(void *argument)
{
    hand *h = argument;
    stk_workers *w = h->workers;
    stk_trace_name_thread("worker");
    stk_float_env_enter();
    inside = w;
    task t;
    while (stk_queue_pop(w->queue, &t) == STK_QUEUE_DONE && t.run) run_task(w, &t);
    pthread_mutex_lock(&w->lock);
    h->left = true;
    pthread_cond_signal(&w->someone_left);
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Tasks that no thread will take any more. */
static void drain_here(stk_workers *w)
{
    task t;
    while (stk_queue_try_pop(w->queue, &t) == STK_QUEUE_DONE) run_here(w, &t);
}

void stk_workers_submit(stk_workers *w, stk_work_fn run, void *context)
{
    task t = {run, context};
    begin_task(w);
    if (stk_workers_threads(w) == 0) {
        run_here(w, &t);
    } else if (inside == w) {
        if (stk_queue_try_push(w->queue, &t) != STK_QUEUE_DONE) run_task(w, &t);
    } else {
        stk_queue_push(w->queue, &t);
        /* The last thread may have left meanwhile; resize drains after it has said so. */
        if (stk_workers_threads(w) == 0) drain_here(w);
    }
}

bool stk_workers_try_submit(stk_workers *w, stk_work_fn run, void *context)
{
    task t = {run, context};
    begin_task(w);
    if (stk_workers_threads(w) == 0) {
        run_here(w, &t);
        return true;
    }
    if (stk_queue_try_push(w->queue, &t) == STK_QUEUE_DONE) {
        if (stk_workers_threads(w) == 0) drain_here(w);
        return true;
    }
    pthread_mutex_lock(&w->lock);
    if (--w->pending == 0) pthread_cond_broadcast(&w->idle);
    pthread_mutex_unlock(&w->lock);
    return false;
}

void stk_workers_wait(stk_workers *w)
{
    pthread_mutex_lock(&w->lock);
    while (w->pending > 0) pthread_cond_wait(&w->idle, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

/* ---- threads ------------------------------------------------------------------------------ */

static stk_status add_hand(stk_workers *w, stk_error *err)
{
    hand *h = stk_calloc(1, sizeof *h);
    if (!h) return stk_fail_memory(err, "workers", sizeof *h);
    h->workers = w;
    int failed = stk_thread_start(&h->handle, work, h);
    if (failed) {
        stk_free(h);
        return stk_fail(err, STK_ERR_MEMORY,
                        "workers: the system refused thread %d: %s; ask for fewer",
                        (int)w->threads + 1, strerror(failed));
    }
    pthread_setname_np(h->handle, "stk-worker");
    h->next = w->hands;
    w->hands = h;
    __atomic_store_n(&w->threads, w->threads + 1, __ATOMIC_SEQ_CST);
    return STK_OK;
}

/* Waits for one thread to leave and buries it. */
static void collect_hand(stk_workers *w)
{
    pthread_mutex_lock(&w->lock);
    hand **link = &w->hands;
    for (;;) {
        while (*link && !(*link)->left) link = &(*link)->next;
        if (*link) break;
        pthread_cond_wait(&w->someone_left, &w->lock);
        link = &w->hands;
    }
    hand *gone = *link;
    *link = gone->next;
    pthread_mutex_unlock(&w->lock);
    pthread_join(gone->handle, NULL);
    stk_free(gone);
}

stk_status stk_workers_resize(stk_workers *w, int32_t threads, stk_error *err)
{
    if (threads < 0 || threads > MAX_THREADS)
        return stk_fail(err, STK_ERR_RANGE, "workers: %d threads is outside 0..%d", (int)threads,
                        MAX_THREADS);
    while (w->threads < threads) STK_TRY(add_hand(w, err));
    int32_t surplus = w->threads - threads;
    task leave = {NULL, NULL};
    for (int32_t i = 0; i < surplus; i++) stk_queue_push(w->queue, &leave);
    for (int32_t i = 0; i < surplus; i++) collect_hand(w);
    __atomic_store_n(&w->threads, threads, __ATOMIC_SEQ_CST);
    if (threads == 0) drain_here(w);
    return STK_OK;
}

stk_status stk_workers_resize_queue(stk_workers *w, int64_t capacity, stk_error *err)
{
    return stk_queue_resize(w->queue, capacity, err);
}

int32_t stk_workers_threads(const stk_workers *w)
{
    return __atomic_load_n(&w->threads, __ATOMIC_SEQ_CST);
}

stk_status stk_workers_new(int32_t threads, int64_t queue_capacity, stk_workers **out,
                           stk_error *err)
{
    if (!out) return stk_fail(err, STK_ERR_ARGUMENT, "workers_new: the out pointer is NULL");
    *out = NULL;
    stk_workers *w = stk_calloc(1, sizeof *w);
    if (!w) return stk_fail_memory(err, "workers_new", sizeof *w);
    stk_status status = stk_queue_new(sizeof(task), queue_capacity, &w->queue, err);
    if (status != STK_OK) {
        stk_free(w);
        return status;
    }
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->idle, NULL);
    pthread_cond_init(&w->someone_left, NULL);
    status = stk_workers_resize(w, threads, err);
    if (status != STK_OK) {
        stk_workers_release(w);
        return status;
    }
    *out = w;
    return STK_OK;
}

void stk_workers_release(stk_workers *w)
{
    if (!w) return;
    stk_workers_wait(w);
    task leave = {NULL, NULL};
    for (int32_t i = 0; i < w->threads; i++) stk_queue_push(w->queue, &leave);
    while (w->hands) collect_hand(w);
    pthread_cond_destroy(&w->someone_left);
    pthread_cond_destroy(&w->idle);
    pthread_mutex_destroy(&w->lock);
    stk_queue_release(w->queue);
    stk_free(w);
}

stk_workers_stats stk_workers_read_stats(stk_workers *w, bool reset)
{
    stk_workers_stats stats = {.queue = stk_queue_read_stats(w->queue, reset)};
    pthread_mutex_lock(&w->lock);
    stats.tasks = w->tasks;
    stats.busy_ns = w->busy_ns;
    if (reset) w->tasks = w->busy_ns = 0;
    pthread_mutex_unlock(&w->lock);
    return stats;
}
