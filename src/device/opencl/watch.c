/* watch.c - when kernels and copies ran, as the device itself measured it, in rows of the trace. Queues that measure cost a little with every command,
 * so they are made when somebody traces for the first time: everything queued ends, then others take their place. */
#include "device/opencl/opencl.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/trace.h"

#include <stdio.h>

typedef struct command {
    cl_event event;
    const char *name;
    uint32_t arg;
    stk_opencl_row row;
} command;

enum { MOST = 4096 }; /* commands that are not over yet */

typedef struct stk_opencl_watch {
    pthread_mutex_t lock;
    stk_trace_row *row[STK_CL_ROWS];
    cl_command_queue before[2]; /* the ones that did not measure */
    int64_t ahead;              /* ns: clock of the host less that of the device */
    command commands[MOST];     /* a ring */
    int64_t first, count;
} watch;

/* ---- starting -------------------------------------------------------------------------------------------- */

static bool moment_of(stk_opencl *d, cl_event e, cl_uint what, int64_t *ns)
{
    uint64_t stamp = 0;
    if (d->cl->GetEventProfilingInfo(e, what, sizeof stamp, &stamp, NULL) != CL_SUCCESS || !stamp)
        return false;
    *ns = (int64_t)stamp;
    return true;
}

/* The least of several differences: what ended was seen soon afterwards, never before. */
static bool compare_clocks(stk_opencl *d, cl_command_queue queue, int64_t *ahead)
{
    enum { TRIES = 5 };
    const uint32_t zero = 0;
    cl_int code = CL_SUCCESS;
    bool known = false;
    cl_mem mem = d->cl->CreateBuffer(d->context, CL_MEM_READ_WRITE, sizeof zero, NULL, &code);
    for (int i = 0; mem && i < TRIES; i++) {
        cl_event e = NULL;
        int64_t end = 0;
        if (d->cl->EnqueueFillBuffer(queue, mem, &zero, sizeof zero, 0, sizeof zero, 0, NULL, &e) !=
            CL_SUCCESS)
            break;
        if (d->cl->WaitForEvents(1, &e) == CL_SUCCESS &&
            moment_of(d, e, CL_PROFILING_COMMAND_END, &end)) {
            int64_t now = stk_now_ns() - end;
            if (!known || now < *ahead) *ahead = now;
            known = true;
        }
        (void)d->cl->ReleaseEvent(e);
    }
    if (mem) (void)d->cl->ReleaseMemObject(mem);
    return known;
}

static watch *make(stk_opencl *d)
{
    static const struct {
        const char *name;
        stk_trace_role role;
    } rows[STK_CL_ROWS] = {{"queue", STK_TRACE_COMPUTE},
                           {"copies", STK_TRACE_TRANSFER},
                           {"transfers", STK_TRACE_TRANSFER}};
    watch *w = stk_calloc(1, sizeof *w);
    if (!w) return NULL;
    pthread_mutex_init(&w->lock, NULL);
    for (int i = 0; i < STK_CL_ROWS; i++) {
        char name[80];
        snprintf(name, sizeof name, "%s %s", stk_cl_name(&d->base), rows[i].name);
        w->row[i] = stk_trace_row_new(name, rows[i].role);
    }
    return w;
}

/* Where clocks cannot be compared, or no such queue is to be had, nothing is watched; that is settled then, too. */
void stk_opencl_watch_start(stk_opencl *d)
{
    cl_int code = CL_SUCCESS;
    if (!stk_trace_is_on() || __atomic_load_n(&d->watch, __ATOMIC_ACQUIRE)) return;
    pthread_rwlock_wrlock(&d->queues);
    watch *w = d->watch ? NULL : make(d);
    cl_command_queue queue[2] = {NULL, NULL};
    for (int i = 0; w && i < 2 && code == CL_SUCCESS; i++)
        queue[i] = d->cl->CreateCommandQueue(d->context, d->id, CL_QUEUE_PROFILING_ENABLE, &code);
    bool good = w && code == CL_SUCCESS && compare_clocks(d, queue[0], &w->ahead) &&
                d->cl->Finish(d->queue) == CL_SUCCESS && d->cl->Finish(d->transfers) == CL_SUCCESS;
    for (int i = 0; w && i < 2; i++) {
        cl_command_queue *now = i ? &d->transfers : &d->queue;
        w->before[i] = good ? *now : queue[i];
        if (good) *now = queue[i];
    }
    for (int i = 0; w && !good && i < STK_CL_ROWS; i++) {
        stk_trace_row_free(w->row[i]);
        w->row[i] = NULL;
    }
    if (w) __atomic_store_n(&d->watch, w, __ATOMIC_RELEASE);
    pthread_rwlock_unlock(&d->queues);
}

void stk_opencl_watch_free(stk_opencl *d)
{
    watch *w = d->watch;
    if (!w) return;
    stk_opencl_harvest(d);
    for (int i = 0; i < STK_CL_ROWS; i++) stk_trace_row_free(w->row[i]);
    for (int64_t i = 0; i < w->count; i++)
        (void)d->cl->ReleaseEvent(w->commands[(w->first + i) % MOST].event);
    for (int i = 0; i < 2; i++)
        if (w->before[i]) (void)d->cl->ReleaseCommandQueue(w->before[i]);
    pthread_mutex_destroy(&w->lock);
    stk_free(w);
    d->watch = NULL;
}

/* ---- watching -------------------------------------------------------------------------------------------- */

cl_event *stk_opencl_watched(const stk_opencl *d, cl_event *to)
{
    const watch *w = __atomic_load_n(&d->watch, __ATOMIC_ACQUIRE);
    return w && w->row[STK_CL_KERNELS] && stk_trace_is_on() ? to : NULL;
}

/* A full ring forgets: a gap in the trace is better than a wait. */
void stk_opencl_note(stk_opencl *d, stk_opencl_row row, cl_event event, const char *name,
                     uint32_t arg)
{
    watch *w = d->watch;
    if (!event) return;
    if (w->count == MOST) stk_opencl_harvest(d);
    pthread_mutex_lock(&w->lock);
    if (w->count < MOST)
        w->commands[(w->first + w->count++) % MOST] = (command){event, name, arg, row};
    else
        (void)d->cl->ReleaseEvent(event);
    pthread_mutex_unlock(&w->lock);
}

static bool is_over(stk_opencl *d, cl_event e)
{
    cl_int state = 1;
    return d->cl->GetEventInfo(e, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL) !=
               CL_SUCCESS ||
           state <= CL_COMPLETE;
}

/* Up to the first that still runs; that of the other queue may wait behind it for the next time. */
void stk_opencl_harvest(stk_opencl *d)
{
    watch *w = __atomic_load_n(&d->watch, __ATOMIC_ACQUIRE);
    if (!w || w->count == 0) return;
    pthread_mutex_lock(&w->lock);
    while (w->count > 0 && is_over(d, w->commands[w->first].event)) {
        command c = w->commands[w->first];
        int64_t start = 0, end = 0;
        if (moment_of(d, c.event, CL_PROFILING_COMMAND_START, &start) &&
            moment_of(d, c.event, CL_PROFILING_COMMAND_END, &end))
            stk_trace_row_span(w->row[c.row], start + w->ahead, end + w->ahead, c.name, c.arg);
        (void)d->cl->ReleaseEvent(c.event);
        w->first = (w->first + 1) % MOST;
        w->count--;
    }
    pthread_mutex_unlock(&w->lock);
}
