/* Jobs in a list, one thread that takes them off. */
#include "device/apart/queue.h"

#include "base/thread.h"

#include <stdlib.h>
#include <time.h>

static void be_late(int64_t ns)
{
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    if (ns > 0) nanosleep(&t, NULL);
}

static void *work(void *context)
{
    stk_apart_queue *q = context;
    stk_trace_name_thread_as(q->name, q->role);
    pthread_mutex_lock(&q->lock);
    for (;;) {
        q->idle = true;
        while (!q->first && !q->ends) pthread_cond_wait(&q->more, &q->lock);
        q->idle = false;
        stk_apart_job *job = q->first;
        if (!job) break;
        q->first = job->next;
        if (!q->first) q->last = &q->first;
        pthread_mutex_unlock(&q->lock);
        be_late(q->latency_ns);
        job->run(job);
        free(job); /* check: allow heap, as it was taken */
        pthread_mutex_lock(&q->lock);
        q->done++;
        if (q->waiting && q->done == q->given) pthread_cond_broadcast(&q->less);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

stk_status stk_apart_queue_start(stk_apart_queue *q, const char *name, stk_trace_role role,
                                 int64_t latency_ns, stk_error *err)
{
    q->name = name;
    q->role = role;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->more, NULL);
    pthread_cond_init(&q->less, NULL);
    q->last = &q->first;
    q->latency_ns = latency_ns;
    q->started = stk_thread_start(&q->thread, work, q) == 0;
    if (!q->started) return stk_fail(err, STK_ERR_DEVICE, "%s: no thread for its queue", name);
    return STK_OK;
}

void stk_apart_queue_end(stk_apart_queue *q)
{
    if (!q->started) return;
    pthread_mutex_lock(&q->lock);
    q->ends = true;
    pthread_cond_signal(&q->more);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
    pthread_cond_destroy(&q->less);
    pthread_cond_destroy(&q->more);
    pthread_mutex_destroy(&q->lock);
}

void stk_apart_queue_give(stk_apart_queue *q, stk_apart_job *job)
{
    job->next = NULL;
    pthread_mutex_lock(&q->lock);
    *q->last = job;
    q->last = &job->next;
    q->given++;
    if (q->idle) pthread_cond_signal(&q->more);
    pthread_mutex_unlock(&q->lock);
}

void stk_apart_queue_wait(stk_apart_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->waiting++;
    while (q->done < q->given) pthread_cond_wait(&q->less, &q->lock);
    q->waiting--;
    pthread_mutex_unlock(&q->lock);
}

/* ---- events ---------------------------------------------------------------------------------------------- */

int64_t stk_apart_promise(stk_event *e)
{
    pthread_mutex_lock(&e->lock);
    int64_t ticket = ++e->promised;
    pthread_mutex_unlock(&e->lock);
    return ticket;
}

int64_t stk_apart_promised(stk_event *e)
{
    pthread_mutex_lock(&e->lock);
    int64_t ticket = e->promised;
    pthread_mutex_unlock(&e->lock);
    return ticket;
}

void stk_apart_happen(stk_event *e, int64_t ticket)
{
    pthread_mutex_lock(&e->lock);
    if (ticket > e->happened) e->happened = ticket;
    pthread_cond_broadcast(&e->came);
    pthread_mutex_unlock(&e->lock);
}

void stk_apart_await(stk_event *e, int64_t ticket)
{
    pthread_mutex_lock(&e->lock);
    while (e->happened < ticket) pthread_cond_wait(&e->came, &e->lock);
    pthread_mutex_unlock(&e->lock);
}

bool stk_apart_happened(stk_event *e)
{
    pthread_mutex_lock(&e->lock);
    bool all = e->happened >= e->promised;
    pthread_mutex_unlock(&e->lock);
    return all;
}
