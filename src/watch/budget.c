/* budget.c - where the time of a whole training went: the trainer's own clock, which misses nothing, with the time inside
 * of steps split in the proportions that the sampled steps show. */
#include "watch/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Books of what the trainer counts as one stretch, running steps. The others it counts by itself. */
static const stk_book INSIDE[] = {STK_BOOK_HOST,   STK_BOOK_DISPATCH, STK_BOOK_THREADS,
                                  STK_BOOK_UPLOAD, STK_BOOK_KERNELS,  STK_BOOK_OPTIMIZER,
                                  STK_BOOK_SYNC,   STK_BOOK_ISLANDS};
enum { INSIDES = sizeof INSIDE / sizeof *INSIDE, LEAST_STEPS = 4 };

void stk_budget_of(const stk_train_times *times, const stk_report *r, stk_budget *out)
{
    const double *s = times->seconds;
    double inside = 0, known = 0;
    *out = (stk_budget){.total = times->total, .steps = times->steps, .samples = times->samples};
    out->build = s[STK_SPAN_BUILD];
    out->validation = s[STK_SPAN_VALIDATE];
    out->epoch_ends = s[STK_SPAN_EPOCH_END];
    out->seconds[STK_BOOK_INPUT] = s[STK_SPAN_INPUT] + s[STK_SPAN_GATHER];
    out->seconds[STK_BOOK_DOWNLOAD] = s[STK_SPAN_READ];
    out->seconds[STK_BOOK_CALLBACKS] = s[STK_SPAN_CALLBACK] + s[STK_SPAN_CHECKPOINT];
    for (int i = 0; r && i < INSIDES; i++) inside += r->book[INSIDE[i]];
    if (r && r->book_steps >= LEAST_STEPS && inside > 0) {
        out->sampled = r->book_steps;
        for (int i = 0; i < INSIDES; i++)
            out->seconds[INSIDE[i]] = s[STK_SPAN_STEP] * r->book[INSIDE[i]] / inside;
    } else {
        out->unsplit = s[STK_SPAN_STEP];
    }
    for (int k = 0; k < STK_SPAN_COUNT; k++) known += s[k];
    if (times->total > known) out->seconds[STK_BOOK_RESIDUAL] = times->total - known;
}

double stk_budget_computing(const stk_budget *b)
{
    double computing = b->seconds[STK_BOOK_KERNELS] + b->seconds[STK_BOOK_OPTIMIZER] +
                       b->seconds[STK_BOOK_THREADS] + b->unsplit;
    return b->total > 0 ? computing / b->total : 0;
}

/* ---- as text ----------------------------------------------------------------------------------------------------- */

typedef struct row {
    const char *name;
    double seconds;
} row;

enum { ROWS = STK_BOOK_COUNT + 4 };

static int larger_first(const void *a, const void *b)
{
    const row *x = a, *y = b;
    return x->seconds < y->seconds ? 1 : x->seconds > y->seconds ? -1 : 0;
}

static void list_rows(const stk_budget *b, row rows[ROWS])
{
    int n = 0;
    for (int k = 0; k < STK_BOOK_COUNT; k++)
        rows[n++] =
            (row){k == STK_BOOK_RESIDUAL ? "unclaimed" : stk_book_name((stk_book)k), b->seconds[k]};
    rows[n++] = (row){"building programs", b->build};
    rows[n++] = (row){"validation", b->validation};
    rows[n++] = (row){"callbacks of epochs", b->epoch_ends};
    rows[n++] = (row){"steps", b->unsplit};
    qsort(rows, ROWS, sizeof *rows, larger_first);
}

char *stk_budget_line(const stk_budget *b, char *text, size_t size)
{
    static const double LEAST = 0.015; /* smaller shares are not worth a word */
    row rows[ROWS];
    size_t used = 0;
    if (!size) return text;
    text[0] = '\0';
    if (b->total <= 0) return text;
    list_rows(b, rows);
    for (int i = 0; i < ROWS && rows[i].seconds >= LEAST * b->total && used < size; i++) {
        int n = snprintf(text + used, size - used, "%s%.0f %% %s", i ? ", " : "",
                         rows[i].seconds / b->total * 100, rows[i].name);
        used += n > 0 ? (size_t)n : 0;
    }
    return text;
}

/* The ops inside "kernels" and "optimizer", largest first, those below a twentieth of it together. */
static void put_ops(const stk_budget *b, const stk_report *r, stk_book book, stk_text *t)
{
    double all = 0, rest = 0;
    int64_t others = 0;
    bool updates = book == STK_BOOK_OPTIMIZER;
    char time[24];
    for (int64_t i = 0; i < r->nops; i++)
        if (r->ops[i].updates == updates) all += r->ops[i].seconds;
    for (int64_t i = 0; i < r->nops && all > 0; i++) {
        if (r->ops[i].updates != updates) continue;
        double seconds = b->seconds[book] * r->ops[i].seconds / all;
        if (seconds < 0.05 * b->seconds[book]) {
            rest += seconds;
            others++;
            continue;
        }
        stk_text_put(t, "    %-18.18s %10s %6.1f %%  by %.40s\n", r->ops[i].label,
                     stk_time_text(seconds, time), seconds / b->total * 100, r->ops[i].impl);
    }
    if (others)
        stk_text_put(t, "    %-18s %10s %6.1f %%  %lld of them\n", "others",
                     stk_time_text(rest, time), rest / b->total * 100, (long long)others);
}

stk_status stk_budget_text(const stk_budget *b, const stk_report *r, char **out, stk_error *err)
{
    row rows[ROWS];
    stk_text t = {0};
    char time[24], each[24];
    if (!b || !out)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_budget_text: budget and out must be given");
    list_rows(b, rows);
    stk_text_put(&t, "where the time went: %s, %lld steps, %lld samples, %s samples/s\n",
                 stk_time_text(b->total, time), (long long)b->steps, (long long)b->samples,
                 stk_count_text(b->total > 0 ? (double)b->samples / b->total : 0, each));
    for (int i = 0; i < ROWS; i++) {
        if (rows[i].seconds <= 0) continue;
        stk_text_put(&t, "  %-20s %10s %6.1f %%  %10s per step\n", rows[i].name,
                     stk_time_text(rows[i].seconds, time), rows[i].seconds / b->total * 100,
                     stk_time_text(b->steps ? rows[i].seconds / (double)b->steps : 0, each));
        if (r && b->sampled && !strcmp(rows[i].name, stk_book_name(STK_BOOK_KERNELS)))
            put_ops(b, r, STK_BOOK_KERNELS, &t);
        if (r && b->sampled && !strcmp(rows[i].name, stk_book_name(STK_BOOK_OPTIMIZER)))
            put_ops(b, r, STK_BOOK_OPTIMIZER, &t);
    }
    return stk_text_finish(&t, out, NULL, err);
}
