/* what_if.c - predicted step times on cards one does not own. A model, not a measurement:
 *
 *     T = max(max(F / (eta P), bytes / (0.8 BW)) + N gap, N host) + syncs * round trip + max(0, copy - T)
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

/* Traffic that does not grow with the batch: weights forward and backward, gradients, the optimizer's state. */
static double fixed_bytes(const stk_work *w)
{
    double fixed = 5 * w->parameter_bytes;
    return fixed < w->bytes ? fixed : w->bytes;
}

typedef struct terms {
    double compute, memory, launch, link, total;
} terms;

static terms predict(const card *c, const stk_work *w, double batch, int slow)
{
    double scale = w->batch > 0 ? batch / (double)w->batch : 1;
    double bytes = fixed_bytes(w) + (w->bytes - fixed_bytes(w)) * scale;
    double gap = (slow ? c->gap_high : c->gap_low) * 1e-6;
    terms t = {0};
    t.compute = w->flops * scale / (ETA[slow] * c->tflops * 1e12);
    t.memory = bytes / (BANDWIDTH_SHARE * c->gbs * 1e9);
    t.launch = w->kernels * fmax(gap, HOST_US * 1e-6 * slow);
    t.total = fmax(t.compute, t.memory) + t.launch;
    if (c->link > 0) t.link = LATENCY_US[slow] * 1e-6 + w->input_bytes * scale / (c->link * 1e9);
    t.total += w->syncs * c->round_trip * 1e-6 + fmax(0, t.link - t.total);
    return t;
}

/* What the measured CPU time would be at another batch: a small part of it does not grow. */
static double cpu_time(const stk_work *w, double batch)
{
    double fixed = fmin(0.3 * w->cpu_seconds, w->kernels * 0.5e-6);
    return fixed + (w->cpu_seconds - fixed) * (w->batch > 0 ? batch / (double)w->batch : 1);
}

static int64_t batch_limit(const card *c, const stk_work *w)
{
    double room = 0.9 * c->gib * 1073741824.0 - 4 * w->parameter_bytes;
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
    out->break_even_low = break_even(c, w, 0);
    out->break_even_high = break_even(c, w, 1);
    out->batch_limit = batch_limit(c, w);
    if (worst.total < w->cpu_seconds) out->verdict = 1;
    if (best.total > w->cpu_seconds) out->verdict = -1;
    return STK_OK;
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
                      .parameter_bytes = (double)r->memory.variables / 3,
                      .activation_bytes = (double)r->memory.arena,
                      .kernels = r->program.launches,
                      .batch = r->batch > 0 ? r->batch : 1,
                      .cpu_seconds = wall - r->book[STK_BOOK_INPUT] - r->book[STK_BOOK_CALLBACKS]};
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
    stk_text_put(t, "  %-25.25s %9s..%-9s %-8s %8s..%-8s %s", x->card,
                 stk_time_text(x->low_seconds, a), stk_time_text(x->high_seconds, b), x->binding,
                 batch_text(x->break_even_low, c), batch_text(x->break_even_high, d),
                 verdicts[x->verdict + 1]);
    if (x->batch_limit && x->batch_limit < w->batch) stk_text_put(t, ", out of memory");
    stk_text_add(t, "\n", 1);
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
    for (int32_t i = 0; i < (n > 0 ? n : CARDS); i++) {
        stk_what_if x;
        stk_status status = stk_what_if_card(n > 0 ? names[i] : cards[i].name, w, &x, err);
        if (status != STK_OK) {
            stk_free(t.data);
            return status;
        }
        put_row(&t, w, &x);
    }
    stk_text_put(&t, "\nbinding: the largest term; break-even: the batch from which the card wins, "
                     "best..usual case\n");
    return stk_text_finish(&t, text, NULL, err);
}
