/* watch.c - when kernels and copies ran, in rows of the trace: an event before each and one behind it, whose distances the card measures. Events cost
 * the card about a microsecond each, so there are none while nobody traces. */
#include "device/cuda/cuda.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/trace.h"

#include <stdio.h>

typedef struct command {
    CUevent start, end;
    const char *name;
    uint32_t arg;
    stk_cuda_row row;
} command;

enum { MOST = 2048 }; /* commands that are not over yet */

/* Distances come in milliseconds as a float: exact to a tenth of a microsecond up to this one. */
static const float FAR = 1000;

typedef struct stk_cuda_watch {
    pthread_mutex_t lock;
    stk_trace_row *row[STK_CUDA_ROWS];
    int64_t ended[STK_CUDA_ROWS]; /* where the last span of a row ended */
    CUevent zero;                 /* what times are measured from, */
    int64_t zero_ns;              /* and when that was by the host's clock */
    CUevent spare[2 * MOST + 1];  /* events that wait for use */
    int64_t nspare, made;
    command commands[MOST]; /* a ring */
    int64_t first, count;
} watch;

/* ---- events ---------------------------------------------------------------------------------------------- */

/* Under the lock, as all of these. NULL: the driver has none left, or too many are under way. */
static CUevent take_event(stk_cuda *d, watch *w)
{
    CUevent e = NULL;
    if (w->nspare > 0) return w->spare[--w->nspare];
    if (w->made == sizeof w->spare / sizeof *w->spare ||
        d->cu->cuEventCreate(&e, CU_EVENT_DEFAULT) != CUDA_SUCCESS)
        return NULL;
    w->made++;
    return e;
}

static void give_event(watch *w, CUevent e)
{
    if (e) w->spare[w->nspare++] = e;
}

static bool distance(stk_cuda *d, CUevent from, CUevent to, float *ms)
{
    return d->cu->cuEventElapsedTime(ms, from, to) == CUDA_SUCCESS;
}

/* ---- starting -------------------------------------------------------------------------------------------- */

/* What ended was seen soon afterwards, never before: of several tries the one that was seen soonest. */
static bool compare_clocks(stk_cuda *d, watch *w)
{
    enum { TRIES = 5 };
    CUevent later = take_event(d, w);
    bool good = later && w->zero && d->cu->cuEventRecord(w->zero, d->queue) == CUDA_SUCCESS &&
                d->cu->cuEventSynchronize(w->zero) == CUDA_SUCCESS;
    w->zero_ns = stk_now_ns();
    for (int i = 0; good && i < TRIES; i++) {
        float ms = 0;
        good = d->cu->cuEventRecord(later, d->queue) == CUDA_SUCCESS &&
               d->cu->cuEventSynchronize(later) == CUDA_SUCCESS;
        int64_t seen = stk_now_ns();
        good = good && distance(d, w->zero, later, &ms);
        int64_t zero = seen - (int64_t)((double)ms * 1e6);
        if (good && zero < w->zero_ns) w->zero_ns = zero;
    }
    give_event(w, later);
    return good;
}

static void make_rows(stk_cuda *d, watch *w)
{
    static const struct {
        const char *name;
        stk_trace_role role;
    } rows[STK_CUDA_ROWS] = {{"queue", STK_TRACE_COMPUTE},
                             {"copies", STK_TRACE_TRANSFER},
                             {"transfers", STK_TRACE_TRANSFER}};
    for (int i = 0; i < STK_CUDA_ROWS; i++) {
        char name[80];
        snprintf(name, sizeof name, "%s %s", stk_cl_name(&d->base), rows[i].name);
        w->row[i] = stk_trace_row_new(name, rows[i].role);
    }
}

/* Where clocks cannot be compared there are no rows; that is settled then, too. */
void stk_cuda_watch_start(stk_cuda *d)
{
    if (!stk_trace_is_on() || __atomic_load_n(&d->watch, __ATOMIC_ACQUIRE)) return;
    pthread_mutex_lock(&d->base.lock);
    watch *w = d->watch ? NULL : stk_calloc(1, sizeof *w);
    if (w) {
        pthread_mutex_init(&w->lock, NULL);
        w->zero = take_event(d, w);
        if (compare_clocks(d, w)) make_rows(d, w);
        __atomic_store_n(&d->watch, w, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&d->base.lock);
}

void stk_cuda_watch_free(stk_cuda *d)
{
    watch *w = d->watch;
    if (!w) return;
    stk_cuda_harvest(d);
    for (; w->count > 0;
         w->count--, w->first = (w->first + 1) % MOST) { /* of a card that is lost */
        give_event(w, w->commands[w->first].start);
        give_event(w, w->commands[w->first].end);
    }
    give_event(w, w->zero);
    for (int64_t i = 0; i < w->nspare; i++) (void)d->cu->cuEventDestroy_v2(w->spare[i]);
    for (int i = 0; i < STK_CUDA_ROWS; i++) stk_trace_row_free(w->row[i]);
    pthread_mutex_destroy(&w->lock);
    stk_free(w);
    d->watch = NULL;
}

/* ---- watching -------------------------------------------------------------------------------------------- */

bool stk_cuda_watches(const stk_cuda *d)
{
    const watch *w = __atomic_load_n(&d->watch, __ATOMIC_ACQUIRE);
    return w && w->row[STK_CUDA_KERNELS] && stk_trace_is_on();
}

/* Launches that become a graph are not seen: an event among them would be a part of it. */
stk_cuda_span stk_cuda_watch_begin(stk_cuda *d, CUstream stream)
{
    stk_cuda_span span = {.stream = stream};
    if (stream == d->drafts || !stk_cuda_watches(d)) return span;
    watch *w = d->watch;
    if (w->count > MOST / 2) stk_cuda_harvest(d);
    pthread_mutex_lock(&w->lock);
    span.start = take_event(d, w);
    span.end = span.start ? take_event(d, w) : NULL;
    if (span.start && (!span.end || d->cu->cuEventRecord(span.start, stream) != CUDA_SUCCESS)) {
        give_event(w, span.start);
        give_event(w, span.end);
        span.start = span.end = NULL;
    }
    pthread_mutex_unlock(&w->lock);
    return span;
}

/* A full ring forgets: a gap in the trace is better than a wait. */
void stk_cuda_watch_end(stk_cuda *d, stk_cuda_span *span, stk_cuda_row row, const char *name,
                        uint32_t arg)
{
    if (!span->start) return;
    watch *w = d->watch;
    pthread_mutex_lock(&w->lock);
    if (w->count < MOST && d->cu->cuEventRecord(span->end, span->stream) == CUDA_SUCCESS) {
        command c = {span->start, span->end, name, arg, row};
        w->commands[(w->first + w->count++) % MOST] = c;
    } else {
        give_event(w, span->start);
        give_event(w, span->end);
    }
    pthread_mutex_unlock(&w->lock);
}

/* Rows do not overlap themselves, whatever rounding says, and nothing ends after it was seen. */
static void write_span(stk_cuda *d, watch *w, const command *c)
{
    float start = 0, took = 0;
    if (!distance(d, w->zero, c->start, &start) || !distance(d, c->start, c->end, &took)) return;
    int64_t from = w->zero_ns + (int64_t)((double)start * 1e6);
    int64_t to = from + (int64_t)((double)took * 1e6), now = stk_now_ns();
    if (to > now) {
        w->zero_ns -= to - now;
        from -= to - now;
        to = now;
    }
    if (from < w->ended[c->row]) from = w->ended[c->row];
    if (to < from) to = from;
    w->ended[c->row] = to;
    stk_trace_row_span(w->row[c->row], from, to, c->name, c->arg);
}

/* Far from zero this command's start takes its place. */
static void move_zero(stk_cuda *d, watch *w, command *c)
{
    float start = 0;
    if (!distance(d, w->zero, c->start, &start) || start < FAR) return;
    CUevent before = w->zero;
    w->zero_ns += (int64_t)((double)start * 1e6);
    w->zero = c->start;
    c->start = before;
}

/* Up to the first that still runs; that of the other stream may wait behind it for the next time. */
void stk_cuda_harvest(stk_cuda *d)
{
    watch *w = __atomic_load_n(&d->watch, __ATOMIC_ACQUIRE);
    if (!w || w->count == 0) return;
    pthread_mutex_lock(&w->lock);
    while (w->count > 0 && d->cu->cuEventQuery(w->commands[w->first].end) == CUDA_SUCCESS) {
        command *c = &w->commands[w->first];
        write_span(d, w, c);
        move_zero(d, w, c);
        give_event(w, c->start);
        give_event(w, c->end);
        w->first = (w->first + 1) % MOST;
        w->count--;
    }
    pthread_mutex_unlock(&w->lock);
}
