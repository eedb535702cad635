/* report_text.c - a report for the terminal, at most 100 columns wide. */
#include "watch/report.h"
#include "watch/scaling.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { WIDTH = 100, MOST_OPS = 16, MOST_PLACES = 12, BAR = 40 };

static void put_rule(stk_text *t, const char *title)
{
    stk_text_put(t, "\n%s ", title);
    for (int i = (int)strlen(title) + 1; i < 78; i++) stk_text_add(t, "-", 1);
    stk_text_add(t, "\n", 1);
}

static void put_head(const stk_report *r, stk_text *t)
{
    char when[32] = "";
    time_t created = (time_t)r->created;
    struct tm tm;
    if (r->created && gmtime_r(&created, &tm)) strftime(when, sizeof when, "%Y-%m-%d %H:%M", &tm);
    stk_text_put(t, "%.60s   %s UTC, stoker %s\n", r->title[0] ? r->title : "report", when,
                 r->version);
    if (r->machine[0]) stk_text_put(t, "%.99s\n", r->machine);
    if (r->roof.threads)
        stk_text_put(t, "can do %.0f GFLOP/s and %.0f GB/s on one thread, %.0f and %.0f on %d\n",
                     r->roof.gflops[0], r->roof.gbs[0][2], r->roof.gflops[1], r->roof.gbs[1][2],
                     r->roof.threads);
    if (r->lost)
        stk_text_put(t, "%lld records did not fit; the newest are here\n", (long long)r->lost);
}

/* "1.42x (1.38-1.45)" */
static char *gain_text(stk_gain g, char text[48])
{
    snprintf(text, 48, "%.2fx (%.2f-%.2f)", g.best, g.low, g.high);
    return text;
}

static void put_advice(const stk_report *r, stk_text *t, bool mathematics)
{
    char gain[48];
    int number = 0;
    for (int64_t i = 0; i < r->nadvice; i++) {
        const stk_advice *a = &r->advice[i];
        if (a->changes_mathematics != mathematics) continue;
        if (!number++)
            put_rule(t, mathematics ? "changes the mathematics: your decision"
                                    : "advice, by measured gain");
        stk_text_put(t, "%2d. %-60.60s %s\n", number, a->text, gain_text(a->gain, gain));
    }
    if (!mathematics && number > 1 && r->together.best > 0)
        stk_text_put(t, "    %-60s %s\n", "all of these together", gain_text(r->together, gain));
}

static void put_curve(const stk_report *r, stk_text *t)
{
    char time[24], rate[24];
    double best = 0;
    for (int64_t i = 0; i < r->ncurve; i++)
        if (r->curve[i].examples_per_second > best) best = r->curve[i].examples_per_second;
    if (r->ncurve < 2) return;
    put_rule(t, "examples per second by batch size");
    for (int64_t i = 0; i < r->ncurve; i++) {
        const stk_curve_point *p = &r->curve[i];
        stk_text_put(t, "%8lld  %10s per step  %10s/s  ", (long long)p->batch,
                     stk_time_text(p->step_seconds, time),
                     stk_count_text(p->examples_per_second, rate));
        for (int k = 0; k < (int)(p->examples_per_second / best * BAR + 0.5); k++)
            stk_text_add(t, "#", 1);
        stk_text_put(t, "%s\n", p->batch == r->knee ? " knee" : "");
    }
    stk_text_add(t, "    ", 4);
    stk_text_wrap(
        t,
        "Another batch size is another training: keep examples seen equal, and start from "
        "a learning rate scaled with the batch (linearly for SGD, by the square root for "
        "Adam) with a short warm-up.",
        4, WIDTH - 4);
    if (r->batch_limit)
        stk_text_put(t, "    memory holds a batch of about %lld\n", (long long)r->batch_limit);
}

/* Where an epoch is more than its steps. */
static void put_epoch(const stk_report *r, stk_text *t)
{
    const stk_epoch_rows *e = &r->epoch;
    const struct {
        const char *name;
        double seconds;
    } rows[] = {{"steps", e->training},
                {"validation", e->validation},
                {"callbacks at its end", e->callbacks},
                {"checkpoint", e->checkpoint}};
    double all = e->training + e->validation + e->callbacks + e->checkpoint;
    char time[24];
    if (e->steps < 1 || all <= e->training) return;
    put_rule(t, "an epoch");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].seconds > 0)
            stk_text_put(t, "  %-24s %10s %6.1f %%\n", rows[i].name,
                         stk_time_text(rows[i].seconds, time), rows[i].seconds / all * 100);
}

static void put_doctor(const stk_report *r, stk_text *t)
{
    char gain[48];
    stk_text_put(t, "\nVERDICT  %s\n         ", r->verdict);
    stk_text_wrap(t, r->headline, 9, WIDTH);
    for (const char *line = r->evidence; line && *line;) {
        int length = (int)strcspn(line, "\n");
        char copy[512];
        snprintf(copy, sizeof copy, "%.*s", length, line);
        stk_text_put(t, "       - ");
        stk_text_wrap(t, copy, 9, WIDTH);
        line += length + (line[length] == '\n');
    }
    stk_text_put(t, "       - effects below %.0f %% cannot be told apart from noise here\n",
                 r->noise * 100);
    if (r->left_out)
        stk_text_put(t,
                     "       - steps are long: %lld comparisons were left out, give it more time\n",
                     (long long)r->left_out);
    if (r->nceilings) put_rule(t, "the most that could be won");
    for (int64_t i = 0; i < r->nceilings; i++)
        stk_text_put(t, "    %-60s %s\n", r->ceilings[i].text,
                     gain_text(r->ceilings[i].gain, gain));
    put_advice(r, t, false);
    put_advice(r, t, true);
    put_curve(r, t);
    put_epoch(r, t);
}

static void put_phases(const stk_report *r, stk_text *t)
{
    char time[24];
    put_rule(t, "phases");
    for (int p = 0; p < STK_PHASE_COUNT; p++) {
        stk_text_put(t, "  %-10s %10s", stk_phase_name((stk_phase)p),
                     stk_time_text(r->phase_seconds[p], time));
        if (r->phase_steps[p]) stk_text_put(t, "  %lld steps", (long long)r->phase_steps[p]);
        stk_text_add(t, "\n", 1);
    }
}

static void put_books(const stk_report *r, stk_text *t)
{
    char a[24], b[24], c[24], d[24];
    double wall = stk_report_seconds(r, STK_BOOK_COUNT);
    if (!r->book_steps || wall <= 0) return;
    put_rule(t, "one step of the steady state");
    stk_text_put(t, "  %s on average; 8 of 10 steps take %s to %s, median %s",
                 stk_time_text(wall, a), stk_time_text(r->p10, b), stk_time_text(r->p90, c),
                 stk_time_text(r->median, d));
    if (r->batch) stk_text_put(t, "; %s examples/s", stk_count_text((double)r->batch / wall, a));
    stk_text_add(t, "\n", 1);
    for (int k = 0; k < STK_BOOK_COUNT; k++) {
        double share = r->book[k] / wall;
        if (r->book[k] <= 0 && k != STK_BOOK_RESIDUAL) continue;
        stk_text_put(t, "  %-12s %10s %6.1f %%  ", stk_book_name((stk_book)k),
                     stk_time_text(r->book[k], a), share * 100);
        for (int i = 0; i < (int)(share * 60 + 0.5); i++) stk_text_add(t, "#", 1);
        stk_text_add(t, "\n", 1);
    }
    stk_text_put(t, "  %-12s %10s\n", "wall", stk_time_text(wall, a));
}

static void put_ops(const stk_report *r, stk_text *t)
{
    char time[24];
    double wall = stk_report_seconds(r, STK_BOOK_COUNT) * (double)r->book_steps, rest = 0;
    if (!r->nops || wall <= 0) return;
    put_rule(t, "ops");
    stk_text_put(t, "  %-18s %-17s %-8s %9s %10s %6s %8s %7s %6s\n", "op", "kernel", "by", "calls",
                 "per call", "time", "GFLOP/s", "GB/s", "roof");
    for (int64_t i = 0; i < r->nops; i++) {
        const stk_report_op *o = &r->ops[i];
        if (i >= MOST_OPS) {
            rest += o->seconds;
            continue;
        }
        stk_text_put(t, "  %-18.18s %-17.17s %-8.8s %9lld %10s %5.1f%% %8.1f %7.1f %5.0f%%%c\n",
                     o->label, o->kernel, o->impl, (long long)o->calls,
                     stk_time_text(o->calls ? o->seconds / (double)o->calls : 0, time),
                     o->seconds / wall * 100, o->flops / o->seconds * 1e-9,
                     o->bytes / o->seconds * 1e-9, o->roof * 100, o->compute_side ? 'c' : 'm');
    }
    if (rest > 0)
        stk_text_put(t, "  %lld more ops: %.1f %%\n", (long long)(r->nops - MOST_OPS),
                     rest / wall * 100);
    stk_text_put(
        t,
        "  roof: share of what this machine can do; limited by c arithmetic, m memory; %s on %s\n",
        r->nislands ? "most" : "all", stk_report_device(r));
}

static void put_histogram(const stk_report *r, stk_text *t)
{
    int64_t most = 0;
    char time[24];
    for (int i = 0; i < STK_HISTOGRAM; i++)
        if (r->histogram_calls[i] > most) most = r->histogram_calls[i];
    if (!most || r->program.launches < 16) return;
    put_rule(t, "kernels by time of one call");
    for (int i = 0; i < STK_HISTOGRAM; i++) {
        if (!r->histogram_calls[i]) continue;
        double edge = i ? 0.5e-6 * (double)(1 << i) : 0.5e-6;
        stk_text_put(t, "  below %9s %10lld %-6s ", stk_time_text(edge, time),
                     (long long)r->histogram_calls[i],
                     r->histogram_calls[i] == 1 ? "call" : "calls");
        for (int64_t k = 0; k < r->histogram_calls[i] * BAR / most; k++) stk_text_add(t, "#", 1);
        stk_text_add(t, "\n", 1);
    }
}

/* What ran on the CPU because the device does not take it. */
static void put_islands(const stk_report *r, stk_text *t)
{
    char down[24], up[24];
    if (!r->nislands) return;
    put_rule(t, "islands: operations that the device lacks, run on the CPU in between");
    for (int64_t i = 0; i < r->nislands && i < MOST_PLACES; i++) {
        const stk_island_row *row = &r->islands[i];
        stk_text_put(t, "  %-16.16s %-20.20s %-22.22s %9s down %9s up  %s\n", row->op, row->place,
                     row->shape, stk_bytes_text((double)row->bytes_down, down),
                     stk_bytes_text((double)row->bytes_up, up), row->reason);
    }
    if (r->nislands > MOST_PLACES)
        stk_text_put(t, "  and %lld more\n", (long long)(r->nislands - MOST_PLACES));
}

/* Where the time goes by layer, and where ops are so short that starting them counts. */
static void put_places(const stk_report *r, stk_text *t)
{
    char all[24], each[24], back[24];
    double steps = (double)r->book_steps, wall = stk_report_seconds(r, STK_BOOK_COUNT) * steps;
    if (!r->nplaces || wall <= 0) return;
    put_rule(t, "layers");
    stk_text_put(t, "  %-31s %8s %10s %10s %7s %9s  %s\n", "where", "launches", "per step",
                 "backward", "time", "per call", "dearest op");
    for (int64_t i = 0; i < r->nplaces && i < MOST_PLACES; i++) {
        const stk_layer_cost *p = &r->places[i];
        stk_text_put(t, "  %-31.31s %8lld %10s %10s %5.1f %% %9s  %.16s\n",
                     p->place[0] ? p->place : "(not known)", (long long)p->launches,
                     stk_time_text(p->seconds / steps, all),
                     stk_time_text(p->backward_seconds / steps, back), p->seconds / wall * 100,
                     stk_time_text(p->calls ? p->seconds / (double)p->calls : 0, each), p->largest);
    }
    if (r->nplaces > MOST_PLACES)
        stk_text_put(t, "  and %lld more\n", (long long)(r->nplaces - MOST_PLACES));
    if (r->tiny.calls < 8) return;
    stk_text_put(t, "  %.0f calls of a step take less than %s: %s, %.0f %% of a step\n",
                 r->tiny.calls, stk_time_text(STK_TINY_SECONDS, each),
                 stk_time_text(r->tiny.seconds, all), r->tiny.seconds * steps / wall * 100);
    stk_text_put(t, "  (%s each; the same work in large ops would take about %s each)\n",
                 stk_time_text(r->tiny.seconds / r->tiny.calls, each),
                 stk_time_text(r->tiny.ideal_seconds / r->tiny.calls, back));
}

/* All convolutions in one figure, and those that are below the usual of a good one. */
static void put_convs(const stk_report *r, stk_text *t)
{
    static const double GOOD = 0.6;
    char time[24];
    int64_t shown = 0, low = 0;
    if (!r->nconvs || !r->roof.threads) return;
    put_rule(t, "convolutions");
    stk_text_put(t, "  %.0f %% of the peak of multiply-adds over all %lld of them\n",
                 stk_report_conv_share(r) * 100, (long long)r->nconvs);
    for (int64_t i = 0; i < r->nconvs; i++) {
        const stk_conv_cost *c = &r->convs[i];
        if (c->share >= GOOD || low++ >= MOST_PLACES) continue;
        if (!shown++)
            stk_text_put(t, "  %-31s %-16s %-17s %-9s %10s %6s\n", "below 60 %", "op", "kernel",
                         "by", "per call", "peak");
        stk_text_put(t, "  %-31.31s %-16.16s %-17.17s %-9.9s %10s %5.0f%%\n", c->place, c->op,
                     c->kernel, c->impl, stk_time_text(c->seconds / (double)c->calls, time),
                     c->share * 100);
    }
    if (low > shown) stk_text_put(t, "  and %lld more\n", (long long)(low - shown));
}

static void put_stages(const stk_report *r, stk_text *t)
{
    char a[24], b[24], c[24], d[24], e[24], queue[32];
    if (!r->nstages) return;
    put_rule(t, "input pipeline");
    stk_text_put(t, "  %-25s %7s %9s %9s %9s %9s %14s %8s\n", "stage", "", "busy", "waits for",
                 "waits for", "elements", "queue: least", "");
    stk_text_put(t, "  %-25s %7s %9s %9s %9s %9s %14s %8s\n", "", "workers", "per elem.", "input",
                 "room", "/s", "mean most/room", "RAM");
    for (int64_t i = 0; i < r->nstages; i++) {
        const stk_watch_stage *s = &r->stages[i];
        double n = s->elements ? (double)s->elements : 1;
        if (s->depth_most > 0 && s->depth_most < 1000 && s->capacity < 1000)
            snprintf(queue, sizeof queue,
                     s->depth < 100 ? "%.0f %.1f %.0f/%.0f" : "%.0f %.0f %.0f/%.0f", s->depth_least,
                     s->depth, s->depth_most, s->capacity);
        else
            snprintf(queue, sizeof queue, s->depth < 1000 ? "%.1f/%.0f" : "%.0f/%.0f", s->depth,
                     s->capacity);
        stk_text_put(
            t, "%c %-25.25s %7d %9s %9s %9s %9s %14s %8s\n", i == r->limiting_stage ? '>' : ' ',
            s->name, s->workers, stk_time_text(s->busy_seconds / n, a),
            stk_time_text(s->wait_input_seconds / n, b), stk_time_text(s->wait_room_seconds / n, c),
            s->seconds > 0 ? stk_count_text((double)s->elements / s->seconds, d) : "",
            s->capacity > 0 || s->depth_most > 0 ? queue : "",
            s->bytes ? stk_bytes_text((double)s->bytes, e) : "");
    }
    if (r->limiting_stage >= 0) stk_text_put(t, "  > limits the pipeline\n");
}

static void put_threads(const stk_report *r, stk_text *t)
{
    static const char levels[] = " .:-=+*#";
    if (!r->nthreads) return;
    put_rule(t, "threads, over the steady state");
    for (int64_t i = 0; i < r->nthreads; i++) {
        const stk_thread_row *row = &r->threads[i];
        stk_text_put(t, "  %-24.24s %5.1f %% busy  ", row->name, row->busy * 100);
        for (int64_t k = 0; k < row->nover; k++)
            stk_text_add(t, &levels[(int)(fmin(fmax(row->over[k], 0), 1) * 7.49)], 1);
        stk_text_add(t, "\n", 1);
    }
    if (r->device_busy > 0)
        stk_text_put(t, "  %s: kernels run %.0f %% of the time, then on %.2f threads\n",
                     stk_report_device(r), r->device_busy * 100, r->device_threads);
}

static void put_bytes(stk_text *t, const char *indent, const char *name, int64_t bytes, double most)
{
    char size[24];
    stk_text_put(t, "%s%-*s %10s  ", indent, 16 - (int)strlen(indent), name,
                 stk_bytes_text((double)bytes, size));
    for (int k = 0; k < (int)((double)bytes / most * BAR + 0.5); k++) stk_text_add(t, "#", 1);
    stk_text_add(t, "\n", 1);
}

static void put_memory(const stk_report *r, stk_text *t)
{
    const stk_memory_rows *m = &r->memory;
    char a[24], data[200];
    const struct {
        const char *name;
        int64_t bytes;
    } rows[] = {{"weights", m->weights},     {"optimizer", m->optimizer}, {"metrics", m->metrics},
                {"constants", m->constants}, {"batch", m->inputs},        {"pipeline", m->stages},
                {"arena", m->arena}};
    double most = 1;
    put_rule(t, "memory");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if ((double)rows[i].bytes > most) most = (double)rows[i].bytes;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].bytes) put_bytes(t, "  ", rows[i].name, rows[i].bytes, most);
    for (int k = 0; k < STK_MEMORY_KINDS; k++)
        if (m->peak[k])
            put_bytes(t, "    ", stk_memory_kind_name((stk_memory_kind)k), m->peak[k], most);
    if (r->nbuffers)
        stk_text_put(t, "  (the arena is fullest in region %lld of %d)\n", (long long)m->peak_at,
                     r->program.regions);
    stk_text_put(t, "  process peak %s\n", stk_bytes_text((double)m->peak_rss, a));
    if (*stk_report_data_text(r, data)) stk_text_put(t, "  data: %s\n", data);
}

static void put_rest(const stk_report *r, stk_text *t)
{
    char a[24], b[24];
    stk_text_put(t,
                 "  %d launches in %d regions, %s flop and %s per step; built in %.1f ms "
                 "(election %.1f ms)\n",
                 r->program.launches, r->program.regions, stk_count_text(r->program.flops, a),
                 stk_bytes_text(r->program.bytes, b), r->program.build_ms, r->program.election_ms);
    for (int64_t i = 0; i < r->ndevices; i++) {
        const stk_device_row *v = &r->devices[i];
        if (i == 0) put_rule(t, "devices");
        stk_text_put(t, "  %-22.22s %-9s %10s .. %-10s %.40s\n", v->name, v->kind,
                     stk_time_text(v->low_seconds, a), stk_time_text(v->high_seconds, b), v->note);
    }
    if (r->ndevices > 1)
        stk_text_put(t, "  model: not measured; formula and sources in doc/watch.md\n");
}

static void put_scaling(const stk_report *r, stk_text *t)
{
    if (!r->scaling.npoints) return;
    put_rule(t, "more threads: a model over the measured regions");
    stk_scaling_put_text(&r->scaling, t);
}

void stk_report_put_text(const stk_report *r, stk_text *t)
{
    put_head(r, t);
    if (r->verdict) put_doctor(r, t);
    put_phases(r, t);
    put_books(r, t);
    put_stages(r, t);
    put_ops(r, t);
    put_islands(r, t);
    put_places(r, t);
    put_convs(r, t);
    put_histogram(r, t);
    put_threads(r, t);
    put_scaling(r, t);
    put_memory(r, t);
    put_rest(r, t);
}
