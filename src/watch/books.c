/* books.c - closed books: every nanosecond of the steady rounds goes into exactly one row.
 *
 * The step thread's spans nest. Its time line is cut where a span begins or ends, and each piece is charged to the
 * innermost span that has a row in spans.def (kernels: to kernels or optimizer). A piece of a run in which other
 * threads still compute is waiting for them. What no span covers is the residual. */
#include "watch/record.h"

#include <stdlib.h>

typedef struct sweep {
    const stk_recording *rec;
    const stk_known_launches *known;
    stk_interval *others; /* kernels of other threads, joined where they overlap, by start */
    int64_t nothers;
    int64_t round, other; /* where the sweep stands in both lists */
    double ns[STK_BOOK_COUNT];
} sweep;

/* ---- what other threads do ------------------------------------------------------------------------------------ */

static int by_start(const void *a, const void *b)
{
    const stk_interval *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

static stk_status list_others(sweep *s, stk_error *err)
{
    const stk_recording *rec = s->rec;
    int64_t n = 0;
    for (int64_t i = 0; i < rec->n; i++)
        n += rec->all[i].kernel && rec->all[i].thread != rec->step_thread;
    s->others = stk_malloc((size_t)n * sizeof *s->others + 1);
    if (!s->others) return stk_fail_memory(err, "books", (size_t)n * sizeof *s->others);
    for (int64_t i = 0; i < rec->n; i++)
        if (rec->all[i].kernel && rec->all[i].thread != rec->step_thread)
            s->others[s->nothers++] = rec->all[i];
    qsort(s->others, (size_t)n, sizeof *s->others, by_start);
    int64_t joined = 0;
    for (int64_t i = 0; i < n; i++) {
        if (joined && s->others[i].start <= s->others[joined - 1].end) {
            if (s->others[i].end > s->others[joined - 1].end)
                s->others[joined - 1].end = s->others[i].end;
        } else {
            s->others[joined++] = s->others[i];
        }
    }
    s->nothers = joined;
    return STK_OK;
}

/* Part of [from, to) in which another thread computes. Pieces come in order, so the list is walked once. */
static int64_t overlap(sweep *s, int64_t from, int64_t to)
{
    int64_t sum = 0;
    while (s->other < s->nothers && s->others[s->other].end <= from) s->other++;
    for (int64_t i = s->other; i < s->nothers && s->others[i].start < to; i++) {
        int64_t a = s->others[i].start > from ? s->others[i].start : from;
        int64_t b = s->others[i].end < to ? s->others[i].end : to;
        if (b > a) sum += b - a;
    }
    return sum;
}

/* ---- the sweep ---------------------------------------------------------------------------------------------------- */

static int book_of(const sweep *s, const stk_interval *v)
{
    if (!v->kernel) return v->book;
    const stk_launch_facts *facts = stk_known_launch(s->known, v->arg >> 8);
    return facts && facts->updates ? STK_BOOK_OPTIMIZER : STK_BOOK_KERNELS;
}

static void charge(sweep *s, int64_t from, int64_t to, int book, bool in_run)
{
    const stk_recording *rec = s->rec;
    while (s->round < rec->nrounds && rec->rounds[s->round].end <= from) s->round++;
    for (int64_t i = s->round; i < rec->nrounds && rec->rounds[i].start < to; i++) {
        if (i < rec->first_steady) continue;
        int64_t a = rec->rounds[i].start > from ? rec->rounds[i].start : from;
        int64_t b = rec->rounds[i].end < to ? rec->rounds[i].end : to;
        if (b <= a) continue;
        int64_t waits = in_run && book == STK_BOOK_DISPATCH ? overlap(s, a, b) : 0;
        s->ns[STK_BOOK_THREADS] += (double)waits;
        s->ns[book] += (double)(b - a - waits);
    }
}

typedef struct level {
    int64_t end;
    int book;
    bool in_run;
} level;

/* One thread's spans, in the order of their starts; a stack of those that are open. */
static void sweep_thread(sweep *s)
{
    enum { DEEPEST = 64 };
    const stk_recording *rec = s->rec;
    level stack[DEEPEST] = {{INT64_MAX, STK_BOOK_RESIDUAL, false}};
    int depth = 1;
    int64_t at = 0;
    for (int64_t i = 0; i <= rec->n; i++) {
        const stk_interval *v = i < rec->n ? &rec->all[i] : NULL;
        if (v && v->thread != rec->step_thread) continue;
        int64_t start = v ? v->start : INT64_MAX;
        while (depth > 1 && stack[depth - 1].end <= start) {
            level top = stack[--depth];
            if (top.end > at) charge(s, at, top.end, top.book, top.in_run), at = top.end;
        }
        if (!v) break;
        level top = stack[depth - 1];
        if (at && start > at) charge(s, at, start, top.book, top.in_run);
        if (start > at) at = start;
        if (depth == DEEPEST) continue;
        int book = book_of(s, v);
        bool nameless = book == STK_BOOK_COUNT;
        int64_t end = v->end < top.end ? v->end : top.end; /* clocks may disagree by some ns */
        stack[depth++] = (level){end, nameless ? top.book : book,
                                 v->role == STK_ROLE_RUN || (top.in_run && nameless)};
    }
    charge(s, at, INT64_MAX, STK_BOOK_RESIDUAL, false);
}

stk_status stk_record_books(stk_recording *rec, stk_report *r, stk_error *err)
{
    stk_known_launches known = {0};
    sweep s = {.rec = rec, .known = &known};
    if (rec->step_thread < 0 || rec->nrounds <= rec->first_steady) return STK_OK;
    STK_TRY(stk_known_launches_get(&known, err));
    stk_status status = list_others(&s, err);
    if (status == STK_OK) {
        sweep_thread(&s);
        for (int64_t i = rec->first_steady; i < rec->nrounds; i++)
            r->book_steps += rec->rounds[i].steps;
        for (int b = 0; b < STK_BOOK_COUNT; b++)
            r->book[b] = s.ns[b] * 1e-9 / (double)r->book_steps;
    }
    stk_free(s.others);
    stk_known_launches_release(&known);
    return status;
}
