/* queue.h - a thread that does jobs in the order they were handed over, late on purpose, and events between two of them. */
#ifndef STK_DEVICE_APART_QUEUE_H
#define STK_DEVICE_APART_QUEUE_H

#include "base/trace.h"
#include "device/device.h"

#include <pthread.h>

typedef struct stk_apart_job {
    struct stk_apart_job *next;
    void (*run)(struct stk_apart_job *job);
} stk_apart_job;

typedef struct stk_apart_queue {
    pthread_mutex_t lock;
    pthread_cond_t more, less; /* a job came; a job is done */
    pthread_t thread;
    stk_apart_job *first, **last;
    int64_t given, done;
    int64_t latency_ns; /* before every job */
    const char *name;   /* in traces; stays */
    stk_trace_role role;
    int32_t waiting; /* for less */
    bool idle, ends, started;
} stk_apart_queue;

stk_status stk_apart_queue_start(stk_apart_queue *q, const char *name, stk_trace_role role,
                                 int64_t latency_ns, stk_error *err);
void stk_apart_queue_end(stk_apart_queue *q); /* after what it was given */
void stk_apart_queue_give(stk_apart_queue *q,
                          stk_apart_job *job); /* from malloc; freed when it is done */
void stk_apart_queue_wait(stk_apart_queue *q); /* until it has nothing to do */

/* A moment. Tickets count how often it was promised and how often it came. */
struct stk_event {
    pthread_mutex_t lock;
    pthread_cond_t came;
    int64_t promised, happened;
};
int64_t stk_apart_promise(stk_event *e);
int64_t stk_apart_promised(stk_event *e);
void stk_apart_happen(stk_event *e, int64_t ticket);
void stk_apart_await(stk_event *e, int64_t ticket);
bool stk_apart_happened(stk_event *e); /* as often as it was promised */

#endif
