/* what_if.c - predicted step times on cards one does not own. A model, not a measurement:
 *
 *     work = sum over ops of max(F / (eta P), bytes / (0.8 BW))
 *     T = max(work + N gap, N host) + syncs * round trip, and what of copy lies beyond that
 *     copy = latency + input bytes / link          (0 where memory is shared)
 *
 * F flops, P peak, N kernels. The range comes from eta (0.45 to 0.15 of peak, as measured for hand-written OpenCL training
 * kernels) and from the gap between kernels and the latency of a copy in the best and the usual case. */
#include "watch/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

typedef struct card {
    const char *name, *full;
    double tflops, gbs, link, gap_low, gap_high, round_trip, gib;
    const char *sources;
} card;

static const card cards[] = {
#define STK_CARD(name, full, tflops, gbs, link, gap_low, gap_high, round_trip, gib, sources)       \
    {name, full, tflops, gbs, link, gap_low, gap_high, round_trip, gib, sources},
#include "watch/cards.def"
};
enum { CARDS = sizeof cards / sizeof *cards };

static const double ETA[2] = {0.45, 0.15}, BANDWIDTH_SHARE = 0.8;
static const double HOST_US = 1.5, LATENCY_US[2] = {10, 35};
static const int64_t MOST_BATCH = (int64_t)1 << 24;

int32_t stk_card_count(void) { return CARDS; }
const char *stk_card_name(int32_t i) { return i >= 0 && i < CARDS ? cards[i].name : ""; }

typedef struct terms {
    double compute, memory, launch, link, total;
} terms;

/* One op: it takes the longer of its two times. */
static void add_part(const card *c, double flops, double bytes, int slow, terms *t)
{
    double compute = flops / (ETA[slow] * c->tflops * 1e12);
    double memory = bytes / (BANDWIDTH_SHARE * c->gbs * 1e9);
    if (compute > memory)
        t->compute += compute;
    else
        t->memory += memory;
}

/* Forward and backward each read the weights and the latter writes gradients of their size, whatever the batch is; the update
 * does not depend on it at all. Without ops of their own the update is 2 times the weights of this traffic. */
static void add_work(const card *c, const stk_work *w, double scale, int slow, terms *t)
{
    stk_work_part whole = {w->flops, w->bytes, false};
    const stk_work_part *part = w->nparts > 0 ? w->part : &whole;
    int32_t n = w->nparts > 0 ? w->nparts : 1;
    double growing = 0;
    for (int32_t i = 0; i < n; i++) growing += part[i].updates ? 0 : part[i].bytes;
    double fixed = (w->nparts > 0 ? 3 : 5) * w->parameter_bytes;
    double kept = growing > 0 ? fmin(1, fixed / growing) : 0;
    for (int32_t i = 0; i < n; i++)
        if (part[i].updates)
            add_part(c, part[i].flops, part[i].bytes, slow, t);
        else
            add_part(c, part[i].flops * scale, part[i].bytes * (kept + (1 - kept) * scale), slow,
                     t);
}

static terms predict(const card *c, const stk_work *w, double batch, int slow)
{
    double scale = w->batch > 0 ? batch / (double)w->batch : 1;
    double gap = (slow ? c->gap_high : c->gap_low) * 1e-6;
    terms t = {0};
    add_work(c, w, scale, slow, &t);
    double work = t.compute + t.memory;
    t.total = fmax(work + w->kernels * gap, w->kernels * HOST_US * 1e-6 * slow);
    t.launch = t.total - work;
    if (c->link > 0) t.link = LATENCY_US[slow] * 1e-6 + w->input_bytes * scale / (c->link * 1e9);
    t.total += w->syncs * c->round_trip * 1e-6 + fmax(0, t.link - t.total);
    return t;
}

/* Measured steps around this batch: on the line between two of them, beyond the last in proportion. */
static double measured_time(const stk_work *w, double batch)
{
    const stk_work_point *p = w->point;
    int32_t i = 0;
    while (i + 1 < w->npoints && (double)p[i + 1].batch < batch) i++;
    if (i + 1 == w->npoints) return p[i].seconds * batch / (double)p[i].batch;
    double share = (batch - (double)p[i].batch) / (double)(p[i + 1].batch - p[i].batch);
    return p[i].seconds + share * (p[i + 1].seconds - p[i].seconds);
}

/* Time of this machine at another batch. Where none was measured a small part of it does not grow. */
static double cpu_time(const stk_work *w, double batch)
{
    if (w->npoints > 1 && batch >= (double)w->point[0].batch) return measured_time(w, batch);
    double fixed = fmin(0.3 * w->cpu_seconds, w->kernels * 0.5e-6);
    return fixed + (w->cpu_seconds - fixed) * (w->batch > 0 ? batch / (double)w->batch : 1);
}

static int64_t batch_limit(const card *c, const stk_work *w)
{
    double state = w->state_bytes > 0 ? w->state_bytes : 2 * w->parameter_bytes;
    double room = 0.9 * c->gib * 1073741824.0 - 2 * w->parameter_bytes - state;
    double each = (w->activation_bytes + 2 * w->input_bytes) / (double)(w->batch ? w->batch : 1);
    if (room <= 0) return -1;
    return each > 0 ? (int64_t)fmin(room / each, 1e15) : 0;
}

/* Smallest power-of-two step search, then bisection: T_cpu - T_card grows with the batch once it is positive. */
static int64_t break_even(const card *c, const stk_work *w, int slow)
{
    int64_t high = 1;
    while (high < MOST_BATCH &&
           predict(c, w, (double)high, slow).total >= cpu_time(w, (double)high))
        high *= 2;
    if (high >= MOST_BATCH) return -1;
    int64_t low = high / 2;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (predict(c, w, (double)middle, slow).total < cpu_time(w, (double)middle))
            high = middle;
        else
            low = middle;
    }
    return high;
}

static bool fits(const stk_what_if *x, int64_t batch)
{
    return x->batch_limit == 0 || batch <= x->batch_limit;
}

stk_status stk_what_if_card(const char *name, const stk_work *w, stk_what_if *out, stk_error *err)
{
    const card *c = NULL;
    if (!name || !w || !out)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_what_if_card: card, work and out must be given");
    for (int i = 0; i < CARDS; i++)
        if (!strcasecmp(cards[i].name, name)) c = &cards[i];
    if (!c) {
        char list[512] = "";
        for (int i = 0; i < CARDS; i++)
            snprintf(list + strlen(list), sizeof list - strlen(list), " %s", cards[i].name);
        return stk_fail(err, STK_ERR_ARGUMENT, "no card \"%s\"; there are%s", name, list);
    }
    double batch = (double)(w->batch ? w->batch : 1);
    terms best = predict(c, w, batch, 0), worst = predict(c, w, batch, 1);
    double middle[4] = {best.compute + worst.compute, best.memory + worst.memory,
                        best.launch + worst.launch, best.link + worst.link};
    static const char *const names[4] = {"compute", "memory", "launch", "PCIe"};
    int binding = 0;
    for (int i = 1; i < 4; i++)
        if (middle[i] > middle[binding]) binding = i;
    *out = (stk_what_if){.low_seconds = best.total, .high_seconds = worst.total};
    snprintf(out->card, sizeof out->card, "%s", c->full);
    snprintf(out->binding, sizeof out->binding, "%s", names[binding]);
    snprintf(out->sources, sizeof out->sources, "%s", c->sources);
    out->break_even_low = break_even(c, w, 0);
    out->break_even_high = break_even(c, w, 1);
    out->batch_limit = batch_limit(c, w);
    if (worst.total < w->cpu_seconds) out->verdict = 1;
    if (best.total > w->cpu_seconds || !fits(out, (int64_t)batch)) out->verdict = -1;
    if (!fits(out, out->break_even_low)) out->break_even_low = -1;
    if (!fits(out, out->break_even_high)) out->break_even_high = -1;
    return STK_OK;
}

/* Per step; those that are too many count with the last. */
static void take_parts(const stk_report *r, stk_work *w)
{
    double flops = 0, bytes = 0, steps = (double)r->book_steps;
    for (int64_t i = 0; i < r->nops && steps > 0; i++) {
        const stk_report_op *o = &r->ops[i];
        int32_t k = w->nparts < STK_WORK_PARTS ? w->nparts++ : STK_WORK_PARTS - 1;
        w->part[k].flops += o->flops / steps;
        w->part[k].bytes += o->bytes / steps;
        w->part[k].updates = o->updates;
        flops += o->flops / steps;
        bytes += o->bytes / steps;
    }
    /* Several programs, or ops that nobody knows: the sum does not tell about one step. */
    bool whole =
        fabs(flops - w->flops) <= 0.05 * w->flops && fabs(bytes - w->bytes) <= 0.05 * w->bytes;
    if (!whole) w->nparts = 0;
}

/* A doctor's curve has whole steps; what is not the model's is taken to be the same share of each. */
static void take_points(const stk_report *r, stk_work *w)
{
    if (r->ncurve < 2 || r->curve[0].step_seconds <= 0 || r->curve[0].batch != w->batch) return;
    for (int64_t i = 0; i < r->ncurve && w->npoints < STK_WORK_POINTS; i++)
        w->point[w->npoints++] =
            (stk_work_point){r->curve[i].batch,
                             w->cpu_seconds * r->curve[i].step_seconds / r->curve[0].step_seconds};
}

stk_status stk_report_work(const stk_report *r, stk_work *out, stk_error *err)
{
    if (!r || !out)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_report_work: report and out must be given");
    double wall = stk_report_seconds(r, STK_BOOK_COUNT);
    if (wall <= 0 || r->program.launches == 0)
        return stk_fail(err, STK_ERR_FORMAT,
                        "the report has no steps of a program; profile some steps first");
    *out = (stk_work){.flops = r->program.flops,
                      .bytes = r->program.bytes,
                      .input_bytes = r->input_bytes,
                      .parameter_bytes = r->memory.weights > 0 ? (double)r->memory.weights
                                                               : (double)r->memory.variables / 3,
                      .state_bytes = (double)r->memory.optimizer,
                      .activation_bytes = (double)r->memory.arena,
                      .kernels = r->program.launches,
                      .batch = r->batch > 0 ? r->batch : 1,
                      .cpu_seconds = wall - r->book[STK_BOOK_INPUT] - r->book[STK_BOOK_CALLBACKS]};
    take_parts(r, out);
    take_points(r, out);
    return STK_OK;
}

/* ---- a table ------------------------------------------------------------------------------------------------------ */

static char *batch_text(int64_t b, char text[24])
{
    if (b < 0)
        snprintf(text, 24, "never");
    else
        snprintf(text, 24, "%lld", (long long)b);
    return text;
}

static void put_row(stk_text *t, const stk_work *w, const stk_what_if *x)
{
    char a[24], b[24], c[24], d[24];
    static const char *const verdicts[] = {"the CPU is faster", "uncertain", "the card is faster"};
    stk_text_put(t, "  %-25.25s %9s..%-9s %-8s %8s..%-8s %s\n", x->card,
                 stk_time_text(x->low_seconds, a), stk_time_text(x->high_seconds, b), x->binding,
                 batch_text(x->break_even_low, c), batch_text(x->break_even_high, d),
                 fits(x, w->batch) ? verdicts[x->verdict + 1] : "out of memory");
}

stk_status stk_what_if_text(const stk_work *w, int32_t n, const char *const *names, char **text,
                            stk_error *err)
{
    char a[24], b[24], c[24];
    if (!w || !text)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_what_if_text: work and text must be given");
    stk_text t = {0};
    stk_text_put(&t, "model, not measured (formula and sources: doc/watch.md)\n");
    stk_text_put(&t, "a step here: %s measured, batch %lld, %s flop, %s moved, %d kernels\n\n",
                 stk_time_text(w->cpu_seconds, a), (long long)w->batch, stk_count_text(w->flops, b),
                 stk_bytes_text(w->bytes, c), w->kernels);
    stk_text_put(&t, "  %-25s %20s %-8s %18s\n", "card", "one step, from..to ", "binding",
                 "break-even batch  ");
    stk_text from = {0};
    for (int32_t i = 0; i < (n > 0 ? n : CARDS); i++) {
        stk_what_if x;
        stk_status status = stk_what_if_card(n > 0 ? names[i] : cards[i].name, w, &x, err);
        if (status != STK_OK) {
            stk_free(t.data);
            stk_free(from.data);
            return status;
        }
        put_row(&t, w, &x);
        stk_text_put(&from, "%s%s: %s", i ? "; " : "", n > 0 ? names[i] : cards[i].name, x.sources);
    }
    stk_text_put(&t, "\nbinding: the largest term; break-even: the batch from which the card wins, "
                     "best..usual case\n");
    stk_text_put(&t, "time here at other batches: %s\n",
                 w->npoints > 1 ? "measured by the doctor"
                                : "in proportion, 0.5 us per kernel fixed");
    stk_text_put(&t, "sources: ");
    stk_text_wrap(&t, from.data ? from.data : "", 9, 100);
    t.failed |= from.failed;
    stk_free(from.data);
    return stk_text_finish(&t, text, NULL, err);
}
