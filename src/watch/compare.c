/* compare.c - two reports side by side: what changed, and what it cost. */
#include "watch/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "+12.3 %", or "" when there is nothing to compare with. */
static char *change(double a, double b, char text[24])
{
    text[0] = '\0';
    if (a > 0 && b > 0) snprintf(text, 24, "%+.1f %%", (b / a - 1) * 100);
    return text;
}

static void put_times(stk_text *t, const char *name, double a, double b)
{
    char x[24], y[24], z[24], d[24];
    stk_text_put(t, "  %-26.26s %12s %12s %12s  %s\n", name, stk_time_text(a, x),
                 stk_time_text(b, y), stk_time_text(b - a, z), change(a, b, d));
}

/* Spread of the steady steps: a difference inside it is noise. */
static double spread(const stk_report *r)
{
    return r->median > 0 ? (r->p90 - r->p10) / (2 * r->median) : 0;
}

static bool same_op(const stk_report_op *a, const stk_report_op *b)
{
    return !strcmp(a->label, b->label) && !strcmp(a->kernel, b->kernel) && a->updates == b->updates;
}

static const stk_report_op *find_same(const stk_report *r, const stk_report_op *like)
{
    for (int64_t i = 0; i < r->nops; i++)
        if (same_op(&r->ops[i], like) && !strcmp(r->ops[i].impl, like->impl)) return &r->ops[i];
    return NULL;
}

/* The op of r that `like` of the report `from` became: the same one, or one whose implementation `from` does not know. */
static const stk_report_op *find_op(const stk_report *r, const stk_report *from,
                                    const stk_report_op *like)
{
    const stk_report_op *same = find_same(r, like);
    for (int64_t i = 0; i < r->nops && !same; i++)
        if (same_op(&r->ops[i], like) && !find_same(from, &r->ops[i])) same = &r->ops[i];
    return same;
}

static double per_step(const stk_report *r, const stk_report_op *o)
{
    return o && r->book_steps ? o->seconds / (double)r->book_steps : 0;
}

static void put_ops(const stk_report *a, const stk_report *b, stk_text *t)
{
    double wall =
        fmax(stk_report_seconds(a, STK_BOOK_COUNT), stk_report_seconds(b, STK_BOOK_COUNT));
    bool titled = false, moved = false;
    char name[64];
    for (int pass = 0; pass < 2; pass++) {
        const stk_report *r = pass ? b : a, *other = pass ? a : b;
        for (int64_t i = 0; i < r->nops; i++) {
            const stk_report_op *o = &r->ops[i], *twin = find_op(other, r, o);
            if (pass && twin) continue;
            double mine = per_step(r, o), theirs = per_step(other, twin);
            if (fabs(mine - theirs) < 0.01 * wall) continue;
            if (!titled) stk_text_put(t, "\nops that changed by more than 1 %% of a step\n");
            titled = true;
            bool other_impl = twin && strcmp(twin->impl, o->impl);
            moved |= other_impl;
            snprintf(name, sizeof name, "%s %s%s", o->label, o->impl, other_impl ? " *" : "");
            put_times(t, name, pass ? theirs : mine, pass ? mine : theirs);
        }
    }
    if (moved) stk_text_put(t, "  * another implementation\n");
}

/* By layer: the same ops may have become dearer in one place only. */
static double place_seconds(const stk_report *r, const char *place)
{
    for (int64_t i = 0; i < r->nplaces; i++)
        if (!strcmp(r->places[i].place, place))
            return r->book_steps ? r->places[i].seconds / (double)r->book_steps : 0;
    return -1; /* has no such layer */
}

static void put_places(const stk_report *a, const stk_report *b, stk_text *t)
{
    double wall =
        fmax(stk_report_seconds(a, STK_BOOK_COUNT), stk_report_seconds(b, STK_BOOK_COUNT));
    bool titled = false;
    for (int pass = 0; pass < 2; pass++) {
        const stk_report *r = pass ? b : a;
        for (int64_t i = 0; i < r->nplaces; i++) {
            const char *place = r->places[i].place;
            double x = place_seconds(a, place), y = place_seconds(b, place);
            if (pass && x >= 0) continue; /* was shown */
            x = fmax(x, 0), y = fmax(y, 0);
            if (fabs(x - y) < 0.01 * wall) continue;
            if (!titled) stk_text_put(t, "\nlayers that changed by more than 1 %% of a step\n");
            titled = true;
            put_times(t, *place ? place : "(not known)", x, y);
        }
    }
}

static void put_text_change(stk_text *t, const char *what, const char *a, const char *b)
{
    if (strcmp(a ? a : "", b ? b : ""))
        stk_text_put(t, "  %-14s %.36s -> %.36s\n", what, a && *a ? a : "-", b && *b ? b : "-");
}

static void put_number_change(stk_text *t, const char *what, int64_t a, int64_t b)
{
    if (a != b) stk_text_put(t, "  %-14s %lld -> %lld\n", what, (long long)a, (long long)b);
}

static void put_bytes_change(stk_text *t, const char *what, int64_t a, int64_t b)
{
    char x[24], y[24];
    if (llabs(a - b) > 0.05 * (double)stk_max_i64(a, b))
        stk_text_put(t, "  %-14s %s -> %s\n", what, stk_bytes_text((double)a, x),
                     stk_bytes_text((double)b, y));
}

static const stk_watch_stage *find_stage(const stk_report *r, const char *name)
{
    for (int64_t i = 0; i < r->nstages; i++)
        if (!strcmp(r->stages[i].name, name)) return &r->stages[i];
    return NULL;
}

/* Stages that came or went, and those with other workers or another room. */
static void put_stages(const stk_report *a, const stk_report *b, stk_text *t)
{
    for (int64_t i = 0; i < a->nstages; i++) {
        const stk_watch_stage *x = &a->stages[i], *y = find_stage(b, x->name);
        if (!y) {
            stk_text_put(t, "  %-14s %.48s -> -\n", "stage", x->name);
            continue;
        }
        if (x->workers == y->workers && x->capacity == y->capacity) continue;
        stk_text_put(t, "  %-14s %.40s: workers %d -> %d, room %.0f -> %.0f\n", "stage", x->name,
                     x->workers, y->workers, x->capacity, y->capacity);
    }
    for (int64_t i = 0; i < b->nstages; i++)
        if (!find_stage(a, b->stages[i].name))
            stk_text_put(t, "  %-14s - -> %.48s\n", "stage", b->stages[i].name);
}

/* On how many threads kernels ran, which may be fewer than there are. */
static int32_t threads_used(const stk_report *r)
{
    int32_t most = 0;
    for (int64_t i = 0; i < r->nops; i++)
        if (r->ops[i].threads > most) most = r->ops[i].threads;
    return most;
}

static void put_settings(const stk_report *a, const stk_report *b, stk_text *t)
{
    stk_text part = {0};
    put_text_change(&part, "title", a->title, b->title);
    put_text_change(&part, "machine", a->machine, b->machine);
    put_text_change(&part, "version", a->version, b->version);
    put_text_change(&part, "verdict", a->verdict, b->verdict);
    put_number_change(&part, "batch", a->batch, b->batch);
    put_number_change(&part, "launches", a->program.launches, b->program.launches);
    put_number_change(&part, "processors", a->roof.threads, b->roof.threads);
    put_number_change(&part, "threads used", threads_used(a), threads_used(b));
    put_bytes_change(&part, "weights", a->memory.weights, b->memory.weights);
    put_bytes_change(&part, "arena", a->memory.arena, b->memory.arena);
    put_bytes_change(&part, "pipeline RAM", a->memory.stages, b->memory.stages);
    put_bytes_change(&part, "process peak", a->memory.peak_rss, b->memory.peak_rss);
    put_stages(a, b, &part);
    if (part.used) stk_text_put(t, "what is different\n%s\n", part.data);
    t->failed |= part.failed;
    stk_free(part.data);
}

static void put_conclusion(const stk_report *a, const stk_report *b, stk_text *t)
{
    double x = stk_report_seconds(a, STK_BOOK_COUNT), y = stk_report_seconds(b, STK_BOOK_COUNT);
    double noise = fmax(spread(a), spread(b));
    if (x <= 0 || y <= 0) return;
    if (a->batch > 0 && b->batch > 0) x /= (double)a->batch, y /= (double)b->batch;
    double ratio = x / y;
    const char *per = a->batch > 0 && b->batch > 0 ? "example" : "step";
    if (fabs(log(ratio)) <= noise)
        stk_text_put(t,
                     "\nper %s B is %.2fx as fast as A: within the spread of the steps (%.0f %%)\n",
                     per, ratio, noise * 100);
    else
        stk_text_put(t, "\nper %s B is %.2fx as fast as A (spread of the steps: %.0f %%)\n", per,
                     ratio, noise * 100);
}

stk_status stk_report_compare(const stk_report *a, const stk_report *b, char **text, stk_error *err)
{
    if (!a || !b || !text)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_report_compare: two reports and text must be given");
    if (stk_report_seconds(a, STK_BOOK_COUNT) <= 0 || stk_report_seconds(b, STK_BOOK_COUNT) <= 0)
        return stk_fail(err, STK_ERR_FORMAT,
                        "report %s has no settled steps to compare; profile more of them (--count)",
                        stk_report_seconds(a, STK_BOOK_COUNT) <= 0 ? "A" : "B");
    stk_text t = {0};
    put_settings(a, b, &t);
    stk_text_put(&t, "  %-26s %12s %12s %12s  %s\n", "one steady step", "A", "B", "B - A",
                 "change");
    for (int k = 0; k < STK_BOOK_COUNT; k++)
        if (a->book[k] > 0 || b->book[k] > 0)
            put_times(&t, stk_book_name((stk_book)k), a->book[k], b->book[k]);
    put_times(&t, "wall", stk_report_seconds(a, STK_BOOK_COUNT),
              stk_report_seconds(b, STK_BOOK_COUNT));
    stk_text_put(&t, "\n  %-26s %12s %12s %12s\n", "phases", "A", "B", "B - A");
    for (int p = 0; p < STK_PHASE_STEADY; p++)
        put_times(&t, stk_phase_name((stk_phase)p), a->phase_seconds[p], b->phase_seconds[p]);
    put_ops(a, b, &t);
    put_places(a, b, &t);
    put_conclusion(a, b, &t);
    return stk_text_finish(&t, text, NULL, err);
}
