/* timeline.c - threads over time: how busy each was, and a few steady steps in full, for drawings and traces. */
#include "watch/record.h"

#include <stdio.h>
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
    return STK_OK;
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
