/* books.c - closed books: every nanosecond of the steady rounds goes into exactly one row.
 *
 * The step thread's spans nest. Its time line is cut where a span begins or ends, and each piece is charged to the
 * innermost span that has a row in spans.def (kernels: to kernels or optimizer). A piece of a run in which other
 * threads still compute is waiting for them. A piece of waiting for a device with a queue of its own is that device's
 * kernels, or its transfers, as far as it works on such. What no span covers is the residual. */
#include "watch/record.h"

#include <stdlib.h>

/* Stretches in which somebody works, joined where they overlap, by start. */
typedef struct stretches {
    stk_interval *v;
    int64_t n;
    int64_t at; /* where the sweep stands */
} stretches;

typedef struct sweep {
    const stk_recording *rec;
    const stk_known_launches *known;
    stretches mates;     /* threads that share the step's kernels */
    stretches remote;    /* kernels of devices with a queue of their own */
    stretches transfers; /* what travels to and from these */
    double updating;     /* share of the remote kernels' time that only writes variables */
    int64_t round;       /* where the sweep stands */
    double ns[STK_BOOK_COUNT];
} sweep;

/* ---- what others do ------------------------------------------------------------------------------------------- */

static int by_start(const void *a, const void *b)
{
    const stk_interval *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

typedef enum other { NOBODY, MATE, REMOTE, TRANSFER } other;

static other kind_of(const sweep *s, const stk_interval *v)
{
    if (v->thread == s->rec->step_thread) return NOBODY;
    stk_trace_role role = s->rec->threads[v->thread].role;
    if (!v->kernel) {
        bool travels = v->book == STK_BOOK_UPLOAD || v->book == STK_BOOK_DOWNLOAD;
        return travels && role != STK_TRACE_HOST ? TRANSFER : NOBODY;
    }
    const stk_launch_facts *facts = stk_known_launch(s->known, v->arg >> 8);
    return facts && facts->remote ? REMOTE : MATE;
}

static stk_status list_stretches(const sweep *s, other kind, stretches *out, stk_error *err)
{
    const stk_recording *rec = s->rec;
    int64_t n = 0, joined = 0;
    for (int64_t i = 0; i < rec->n; i++) n += kind_of(s, &rec->all[i]) == kind;
    stk_interval *v = out->v = stk_malloc((size_t)n * sizeof *v + 1);
    if (!v) return stk_fail_memory(err, "books", (size_t)n * sizeof *v);
    n = 0;
    for (int64_t i = 0; i < rec->n; i++)
        if (kind_of(s, &rec->all[i]) == kind) v[n++] = rec->all[i];
    qsort(v, (size_t)n, sizeof *v, by_start);
    for (int64_t i = 0; i < n; i++) {
        if (joined && v[i].start <= v[joined - 1].end) {
            if (v[i].end > v[joined - 1].end) v[joined - 1].end = v[i].end;
        } else {
            v[joined++] = v[i];
        }
    }
    out->n = joined;
    return STK_OK;
}

static double share_of_updates(const sweep *s)
{
    double all = 0, updates = 0;
    for (int64_t i = 0; i < s->rec->n; i++) {
        const stk_interval *v = &s->rec->all[i];
        if (kind_of(s, v) != REMOTE) continue;
        const stk_launch_facts *facts = stk_known_launch(s->known, v->arg >> 8);
        all += (double)(v->end - v->start);
        if (facts->updates) updates += (double)(v->end - v->start);
    }
    return all > 0 ? updates / all : 0;
}

/* Part of [from, to) in which they work. Pieces come in order, so the list is walked once. */
static int64_t overlap(stretches *s, int64_t from, int64_t to)
{
    int64_t sum = 0;
    while (s->at < s->n && s->v[s->at].end <= from) s->at++;
    for (int64_t i = s->at; i < s->n && s->v[i].start < to; i++) {
        int64_t a = s->v[i].start > from ? s->v[i].start : from;
        int64_t b = s->v[i].end < to ? s->v[i].end : to;
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

/* The host waits for a device. What travels while it computes is no loss. */
static void charge_waiting(sweep *s, int64_t from, int64_t to, int book)
{
    double computes = (double)overlap(&s->remote, from, to);
    double travels = (double)overlap(&s->transfers, from, to);
    double rest = (double)(to - from) - computes;
    if (travels > rest) travels = rest;
    if (book == STK_BOOK_ISLANDS) travels = 0; /* is what an island costs */
    s->ns[STK_BOOK_KERNELS] += computes * (1 - s->updating);
    s->ns[STK_BOOK_OPTIMIZER] += computes * s->updating;
    s->ns[STK_BOOK_UPLOAD] += travels;
    s->ns[book] += rest - travels;
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
        if (book == STK_BOOK_SYNC || book == STK_BOOK_DOWNLOAD || book == STK_BOOK_ISLANDS) {
            charge_waiting(s, a, b, book);
            continue;
        }
        int64_t waits = in_run && book == STK_BOOK_DISPATCH ? overlap(&s->mates, a, b) : 0;
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
        if (top.book == STK_BOOK_ISLANDS && book != STK_BOOK_HOST) book = STK_BOOK_ISLANDS;
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
    stk_status status = list_stretches(&s, MATE, &s.mates, err);
    if (status == STK_OK) status = list_stretches(&s, REMOTE, &s.remote, err);
    if (status == STK_OK) status = list_stretches(&s, TRANSFER, &s.transfers, err);
    if (status == STK_OK) {
        s.updating = share_of_updates(&s);
        sweep_thread(&s);
        for (int64_t i = rec->first_steady; i < rec->nrounds; i++)
            r->book_steps += rec->rounds[i].steps;
        for (int b = 0; b < STK_BOOK_COUNT; b++)
            r->book[b] = s.ns[b] * 1e-9 / (double)r->book_steps;
    }
    stk_free(s.mates.v);
    stk_free(s.remote.v);
    stk_free(s.transfers.v);
    stk_known_launches_release(&known);
    return status;
}
