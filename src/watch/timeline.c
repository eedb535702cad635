/* timeline.c - threads over time: how busy each was, and a few steady steps in full, for drawings and traces. */
#include "watch/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Time of a thread's outermost spans inside the steady state; for the step thread without waiting. */
static double busy_share(const stk_recording *rec, const stk_report *r, int32_t thread)
{
    int64_t from = rec->rounds[rec->first_steady].start, to = rec->rounds[rec->nrounds - 1].end;
    int64_t until = from, sum = 0;
    if (thread == rec->step_thread) {
        double wall = stk_report_seconds(r, STK_BOOK_COUNT);
        double idle = r->book[STK_BOOK_INPUT] + r->book[STK_BOOK_THREADS] + r->book[STK_BOOK_SYNC];
        return wall > 0 ? 1 - idle / wall : 0;
    }
    for (int64_t i = 0; i < rec->n; i++) {
        const stk_interval *v = &rec->all[i];
        if (v->thread != thread || v->end <= until) continue;
        int64_t a = v->start > until ? v->start : until, b = v->end < to ? v->end : to;
        if (b > a) sum += b - a;
        until = v->end;
    }
    return to > from ? (double)sum / (double)(to - from) : 0;
}

/* ---- over time --------------------------------------------------------------------------------------------- */

typedef struct slicer {
    int64_t from, to;
    double *into; /* [STK_SLICES] ns */
} slicer;

static void add_slices(const slicer *s, int64_t a, int64_t b)
{
    double width = (double)(s->to - s->from) / STK_SLICES;
    if (a < s->from) a = s->from;
    if (b > s->to) b = s->to;
    while (a < b) {
        int k = (int)((double)(a - s->from) / width);
        if (k >= STK_SLICES) k = STK_SLICES - 1;
        int64_t edge = s->from + (int64_t)((k + 1) * width) + 1;
        int64_t end = edge < b ? edge : b;
        s->into[k] += (double)(end - a);
        a = end;
    }
}

/* The step's thread is busy when it does not wait; others are while they are in a span. */
static stk_status slice_thread(const stk_recording *rec, stk_report *r, int32_t thread,
                               stk_error *err)
{
    stk_thread_row *row = &r->threads[thread];
    bool steps = thread == rec->step_thread;
    slicer s = {rec->rounds[rec->first_steady].start, rec->rounds[rec->nrounds - 1].end,
                stk_arena_array(&r->arena, STK_SLICES, sizeof(double))};
    int64_t until = s.from;
    if (!s.into) return stk_fail_memory(err, "threads", STK_SLICES * sizeof(double));
    for (int64_t i = 0; i < rec->n; i++) {
        const stk_interval *v = &rec->all[i];
        if (v->thread != thread || v->end <= until) continue;
        if (steps && v->book != STK_BOOK_INPUT && v->book != STK_BOOK_SYNC) continue;
        add_slices(&s, v->start > until ? v->start : until, v->end);
        until = v->end;
    }
    double width = (double)(s.to - s.from) / STK_SLICES;
    for (int k = 0; k < STK_SLICES; k++) {
        double share = s.into[k] / width;
        s.into[k] = steps ? 1 - share : share;
        if (s.into[k] < 0) s.into[k] = 0;
        if (s.into[k] > 1) s.into[k] = 1;
    }
    row->over = s.into;
    row->nover = STK_SLICES;
    return STK_OK;
}

static int by_start(const void *a, const void *b)
{
    const stk_interval *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* How long some kernel runs, and on how many threads then. */
static stk_status measure_device(const stk_recording *rec, stk_report *r, stk_error *err)
{
    int64_t from = rec->rounds[rec->first_steady].start, to = rec->rounds[rec->nrounds - 1].end;
    int64_t n = 0, until = from;
    double any = 0, sum = 0;
    stk_interval *v = stk_malloc((size_t)rec->n * sizeof *v + 1);
    if (!v) return stk_fail_memory(err, "a timeline", (size_t)rec->n * sizeof *v);
    for (int64_t i = 0; i < rec->n; i++)
        if (rec->all[i].kernel && rec->all[i].start >= from && rec->all[i].end <= to)
            v[n++] = rec->all[i];
    if (n) qsort(v, (size_t)n, sizeof *v, by_start);
    for (int64_t i = 0; i < n; i++) {
        int64_t start = v[i].start > until ? v[i].start : until;
        sum += (double)(v[i].end - v[i].start);
        if (v[i].end > start) any += (double)(v[i].end - start);
        if (v[i].end > until) until = v[i].end;
    }
    stk_free(v);
    r->device_busy = any / (double)(to - from);
    r->device_threads = any > 0 ? sum / any : 0;
    return STK_OK;
}

/* One step in so many: there is nothing to say about the time in between. */
static bool is_sampled(const stk_recording *rec)
{
    double inside = 0;
    for (int64_t i = rec->first_steady; i < rec->nrounds; i++)
        inside += (double)(rec->rounds[i].end - rec->rounds[i].start);
    int64_t from = rec->rounds[rec->first_steady].start, to = rec->rounds[rec->nrounds - 1].end;
    return to <= from || inside < 0.5 * (double)(to - from);
}

static stk_status list_threads(const stk_recording *rec, stk_report *r, stk_error *err)
{
    r->threads = stk_arena_array(&r->arena, (size_t)rec->nthreads, sizeof *r->threads);
    if (!r->threads) return stk_fail_memory(err, "threads", 0);
    for (int32_t t = 0; t < (int32_t)rec->nthreads; t++) {
        char name[64];
        const stk_traced_thread *from = &rec->threads[t];
        if (t == rec->step_thread)
            snprintf(name, sizeof name, "steps");
        else if (from->name[0])
            snprintf(name, sizeof name, "%s", from->name);
        else
            snprintf(name, sizeof name, "thread %d", from->number);
        r->threads[t].name = stk_arena_strdup(&r->arena, name);
        if (!r->threads[t].name) return stk_fail_memory(err, "threads", 0);
        r->threads[t].busy = busy_share(rec, r, t);
    }
    r->nthreads = rec->nthreads;
    if (is_sampled(rec)) return STK_OK;
    for (int32_t t = 0; t < (int32_t)rec->nthreads; t++) STK_TRY(slice_thread(rec, r, t, err));
    return measure_device(rec, r, err);
}

/* Steps shown: whole rounds from the middle of the steady state, as many as fit. */
static void choose_window(const stk_recording *rec, int64_t *from, int64_t *to)
{
    int64_t steady = rec->nrounds - rec->first_steady, first = rec->first_steady + steady / 2;
    int64_t last = first, count = 0;
    *from = rec->rounds[first].start;
    *to = rec->rounds[first].end;
    while (last + 1 < rec->nrounds && last - first < 3) {
        last++;
        count = 0;
        for (int64_t i = 0; i < rec->n; i++)
            count += rec->all[i].start >= *from && rec->all[i].start < rec->rounds[last].end;
        if (count > STK_SPANS_KEPT) break;
        *to = rec->rounds[last].end;
    }
}

static stk_status keep_spans(const stk_recording *rec, stk_report *r, stk_error *err)
{
    int64_t from, to;
    choose_window(rec, &from, &to);
    r->spans = stk_arena_array(&r->arena, STK_SPANS_KEPT, sizeof *r->spans);
    if (!r->spans) return stk_fail_memory(err, "a timeline", 0);
    for (int64_t i = 0; i < rec->n && r->nspans < STK_SPANS_KEPT; i++) {
        const stk_interval *v = &rec->all[i];
        if (v->end <= from || v->start >= to) continue;
        int64_t start = v->start > from ? v->start : from, end = v->end < to ? v->end : to;
        r->spans[r->nspans] = (stk_span_row){.thread = v->thread,
                                             .book = v->kernel ? STK_BOOK_KERNELS : v->book,
                                             .start = (double)(start - from) * 1e-9,
                                             .seconds = (double)(end - start) * 1e-9,
                                             .name = stk_arena_strdup(&r->arena, v->name)};
        if (!r->spans[r->nspans++].name) return stk_fail_memory(err, "a timeline", 0);
    }
    return STK_OK;
}

stk_status stk_record_timeline(stk_recording *rec, stk_report *r, stk_error *err)
{
    if (rec->step_thread < 0 || rec->nrounds <= rec->first_steady) return STK_OK;
    STK_TRY(list_threads(rec, r, err));
    return keep_spans(rec, r, err);
}
