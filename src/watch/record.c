/* record.c - a watch: switches the trace on, drains it, hands it through the steps that make a report. */
#include "watch/record.h"

#include "base/trace.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

struct stk_watch {
    stk_watch_settings options;
    char title[128];
    int64_t begun;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool watching;

stk_watch_settings stk_watch_settings_defaults(void) { return (stk_watch_settings){.title = ""}; }

static void drop(void *context, const stk_trace_event *event) { (void)context, (void)event; }

stk_status stk_watch_start(const stk_watch_settings *options, stk_watch **out, stk_error *err)
{
    if (!out) return stk_fail(err, STK_ERR_ARGUMENT, "stk_watch_start: out is NULL");
    *out = NULL;
    stk_watch *w = stk_calloc(1, sizeof *w);
    if (!w) return stk_fail_memory(err, "a watch", sizeof *w);
    pthread_mutex_lock(&lock);
    bool busy = watching;
    watching = true;
    pthread_mutex_unlock(&lock);
    if (busy) {
        stk_free(w);
        return stk_fail(err, STK_ERR_STATE, "somebody is watching already; stop that watch first");
    }
    w->options = options ? *options : stk_watch_settings_defaults();
    snprintf(w->title, sizeof w->title, "%s", w->options.title ? w->options.title : "");
    stk_trace_drain(drop, NULL, NULL); /* what was before belongs to nobody */
    w->begun = stk_now_ns();
    stk_trace_step_break();
    stk_trace_enable(w->options.records);
    if (w->options.sample > 1) stk_trace_sample(w->options.sample);
    *out = w;
    return STK_OK;
}

void stk_watch_step(int32_t steps)
{
    if (steps > 0)
        stk_trace_step((uint32_t)steps);
    else
        stk_trace_step_break();
}
void stk_watch_begin(stk_book book) { stk_trace_begin(stk_book_name(book), 0); }
void stk_watch_end(stk_book book) { stk_trace_end(stk_book_name(book)); }

/* ---- draining -------------------------------------------------------------------------------------------- */

static stk_traced_thread *find_thread(stk_recording *rec, const stk_trace_event *e)
{
    for (int64_t i = 0; i < rec->nthreads; i++)
        if (rec->threads[i].number == e->thread) return &rec->threads[i];
    if (!STK_GROW(rec->threads, rec->nthreads, rec->cap_threads)) return NULL;
    stk_traced_thread *t = &rec->threads[rec->nthreads++];
    memset(t, 0, sizeof *t);
    t->number = e->thread;
    t->role = e->role;
    snprintf(t->name, sizeof t->name, "%s", e->thread_name);
    return t;
}

static void take(void *context, const stk_trace_event *e)
{
    enum { DEEPEST = (int)(sizeof((stk_traced_thread *)0)->open / sizeof(int64_t)) };
    stk_recording *rec = context;
    stk_traced_thread *t = find_thread(rec, e);
    if (!t || !STK_GROW(rec->all, rec->n, rec->cap)) {
        rec->no_memory = true;
        return;
    }
    if (e->kind == STK_TRACE_END) {
        if (t->depth > 0 && --t->depth < DEEPEST && t->open[t->depth] >= 0)
            rec->all[t->open[t->depth]].end = e->ns;
        return;
    }
    if (e->kind != STK_TRACE_SPAN && e->kind != STK_TRACE_BEGIN) return;
    int64_t end = e->kind == STK_TRACE_SPAN ? e->ns + e->value : e->ns;
    if (e->kind == STK_TRACE_BEGIN && t->depth++ < DEEPEST) t->open[t->depth - 1] = rec->n;
    rec->all[rec->n++] = (stk_interval){.start = e->ns,
                                        .end = end,
                                        .name = e->name,
                                        .arg = e->arg,
                                        .thread = (int32_t)(t - rec->threads)};
}

static int by_thread_and_start(const void *a, const void *b)
{
    const stk_interval *x = a, *y = b;
    if (x->thread != y->thread) return x->thread < y->thread ? -1 : 1;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return x->end > y->end ? -1 : x->end < y->end;
}

static const struct {
    const char *name;
    int8_t book, role;
} roles[] = {
#define STK_ROLE(name, book, role) {name, STK_BOOK_##book, STK_ROLE_##role},
#include "watch/spans.def"
#define STK_BOOK(NAME, name, colour, doc) {name, STK_BOOK_##NAME, STK_ROLE_WORK},
#include "stoker/books.def"
};
enum { ROLES = sizeof roles / sizeof *roles };

/* Names are compared by pointer first: there are many spans and few names. */
static void give_roles(stk_recording *rec)
{
    enum { SLOTS = 256 };
    const char *seen[SLOTS] = {0};
    int8_t known[SLOTS] = {0};
    for (int64_t i = 0; i < rec->n; i++) {
        stk_interval *v = &rec->all[i];
        size_t slot = ((uintptr_t)v->name >> 3) % SLOTS;
        if (seen[slot] != v->name) {
            int role = 0;
            const char *name = strncmp(v->name, "host:", 5) ? v->name : "host code";
            while (role < ROLES && strcmp(roles[role].name, name)) role++;
            seen[slot] = v->name;
            known[slot] = (int8_t)role;
        }
        bool found = known[slot] < ROLES;
        v->role = found ? roles[known[slot]].role : STK_ROLE_NONE;
        v->book = found ? roles[known[slot]].book : STK_BOOK_COUNT;
    }
}

/* Unnamed spans inside a run on the same thread, and those of launches on any other. */
static void mark_kernels(stk_recording *rec)
{
    int64_t run_end = 0;
    int32_t thread = -1;
    for (int64_t i = 0; i < rec->n; i++) {
        stk_interval *v = &rec->all[i];
        if (v->thread != thread) thread = v->thread, run_end = 0;
        if (v->role == STK_ROLE_RUN && v->end > run_end) run_end = v->end;
        bool computes = rec->threads[v->thread].role == STK_TRACE_COMPUTE;
        v->kernel = v->role == STK_ROLE_NONE && (v->start < run_end || v->arg >> 8 || computes);
    }
}

static stk_status drain(stk_recording *rec, stk_error *err)
{
    stk_trace_drain(take, rec, &rec->lost);
    if (rec->no_memory) return stk_fail_memory(err, "a recording", (size_t)rec->n);
    if (rec->n) qsort(rec->all, (size_t)rec->n, sizeof *rec->all, by_thread_and_start);
    give_roles(rec);
    mark_kernels(rec);
    return STK_OK;
}

static void release(stk_recording *rec)
{
    stk_free(rec->all);
    stk_free(rec->threads);
    stk_free(rec->rounds);
    *rec = (stk_recording){0};
}

/* ---- from a watch to a report -------------------------------------------------------------------------------- */

static stk_status describe_run(const stk_watch *w, stk_report *r, stk_error *err)
{
    stk_device_report host = {
        0}; /* the processor is part of every machine, and first in the list */
    int32_t n = 0;
    STK_TRY(stk_device_list(1, &host, &n, err));
    r->title = stk_arena_strdup(&r->arena, w->title);
    r->machine = stk_arena_strdup(&r->arena, host.detail);
    if (!r->title || !r->machine) return stk_fail_memory(err, "a report", 0);
    r->created = (int64_t)time(NULL);
    r->batch = w->options.batch;
    r->plan_steps = w->options.plan_steps;
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0) r->memory.peak_rss = (int64_t)usage.ru_maxrss * 1024;
    return w->options.no_roofline ? STK_OK : stk_roofline_measure(&r->roof, err);
}

static stk_status make_report(const stk_watch *w, stk_report *r, stk_error *err)
{
    stk_recording rec = {.begun = w->begun, .step_thread = -1};
    stk_status status = drain(&rec, err);
    if (status == STK_OK) status = describe_run(w, r, err);
    r->lost = rec.lost;
    if (status == STK_OK) status = stk_record_rounds(&rec, r, err);
    if (status == STK_OK) status = stk_record_books(&rec, r, err);
    if (status == STK_OK) status = stk_record_ops(&rec, r, err);
    if (status == STK_OK) status = stk_record_timeline(&rec, r, err);
    release(&rec);
    return status;
}

stk_status stk_watch_stop(stk_watch *w, stk_report **report, stk_error *err)
{
    if (!w) return stk_fail(err, STK_ERR_ARGUMENT, "stk_watch_stop: the watch is NULL");
    stk_trace_sample(0);
    stk_trace_disable();
    stk_status status = STK_OK;
    if (report) {
        *report = stk_report_new();
        status = *report ? make_report(w, *report, err) : stk_fail_memory(err, "a report", 0);
        if (status != STK_OK) {
            stk_report_release(*report);
            *report = NULL;
        }
    }
    stk_free(w);
    pthread_mutex_lock(&lock);
    watching = false;
    pthread_mutex_unlock(&lock);
    return status;
}
