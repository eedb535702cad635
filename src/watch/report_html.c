/* report_html.c - one HTML file with everything inside: no scripts, no network, light and dark, wide and narrow. Tables
 * and words are written here, drawings in report_svg.c. */
#include "watch/report_html.h"
#include "watch/scaling.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char STYLE[] =
    ":root{--bg:#fbfaf7;--fg:#22242a;--soft:#6b6e76;--line:#dfdcd3;--card:#fff;--good:#2f7f79;"
    "--warn:#c0562f;--mark:#f3efe4;color-scheme:light dark}"
    "@media(prefers-color-scheme:dark){:root{--bg:#17191d;--fg:#e4e3de;--soft:#9a9ca3;"
    "--line:#33363d;--card:#1e2126;--good:#6fc3b8;--warn:#ee9a6c;--mark:#262a30}}"
    "*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--fg);"
    "font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}"
    "main{max-width:1000px;margin:0 auto;padding:28px 20px 60px}"
    "h1{font-size:24px;line-height:1.25;margin:0 0 4px;font-weight:650;letter-spacing:-.01em}"
    "h2{font-size:16px;margin:36px 0 10px;font-weight:650}"
    "p{margin:6px 0}.soft{color:var(--soft)}.small{font-size:13px}"
    ".verdict{border-left:4px solid var(--warn);background:var(--card);padding:16px 20px;"
    "margin:22px 0;border-radius:0 6px 6px 0;box-shadow:0 1px 2px rgba(0,0,0,.06)}"
    ".verdict.good{border-color:var(--good)}.verdict b{font-size:21px;font-weight:650;"
    "letter-spacing:-.01em}.verdict ul{margin:10px 0 0;padding-left:18px;color:var(--soft)}"
    ".key{display:flex;flex-wrap:wrap;gap:4px 18px;margin:10px 0 0;font-size:13px}"
    ".key span{white-space:nowrap}.key i{display:inline-block;width:10px;height:10px;"
    "border-radius:2px;margin-right:6px}"
    ".facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(140px,1fr));gap:1px;"
    "background:var(--card);border:1px solid var(--line);border-radius:6px;overflow:hidden}"
    ".facts div{outline:1px solid var(--line);padding:10px 14px}.facts "
    "b{display:block;font-size:19px;"
    "font-weight:600;font-variant-numeric:tabular-nums}.facts span{font-size:12.5px;"
    "color:var(--soft)}"
    ".wide{overflow-x:auto;-webkit-overflow-scrolling:touch}"
    "table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:14px}"
    "th{font-weight:500;color:var(--soft);text-align:right;font-size:12.5px;padding:4px 8px}"
    "td{padding:5px 8px;text-align:right;border-top:1px solid var(--line);white-space:nowrap}"
    "th:first-child,td:first-child,.l{text-align:left!important}"
    "tr.hot td{background:var(--mark)}svg{display:block;width:100%}"
    "svg text{fill:var(--fg);font:12px system-ui,-apple-system,'DejaVu Sans',sans-serif}"
    "svg .s{fill:var(--soft)}svg .axis{stroke:var(--line)}svg .box{fill:var(--card);"
    "stroke:var(--line)}svg .hot{stroke:var(--warn);stroke-width:2.5}"
    ".bar{display:inline-block;height:8px;border-radius:2px;background:var(--good);"
    "vertical-align:middle}.bar.m{background:#c2a13a}"
    ".bar[style*=--w]{width:calc(var(--w)*110px)}.phone{display:none}"
    ".spark{display:inline-block;width:84px;height:20px;vertical-align:middle}"
    ".gain{width:40%}.over .spark{width:100%}.over td:nth-child(2){width:60%}"
    ".spark .area{fill:var(--good);fill-opacity:.45;stroke:var(--good);stroke-width:1;"
    "vector-effect:non-scaling-stroke}"
    "footer{margin-top:44px;padding-top:12px;border-top:1px solid var(--line);font-size:12.5px;"
    "color:var(--soft)}"
    "@media(max-width:560px){main{padding:18px 14px 40px}h1{font-size:20px}"
    "td,th{padding:4px}table{font-size:13px}.min{min-width:620px}.min "
    "text{font-size:15px}.x,.desk{display:none!important}"
    ".phone{display:block}td:first-child{white-space:normal;overflow-wrap:break-word}"
    ".bar[style*=--w]{width:calc(var(--w)*46px)}.spark{width:52px}"
    ".gain{width:24%}.over td:nth-child(2){width:50%}}";

void stk_html_escaped(stk_text *t, const char *before, const char *text, const char *after)
{
    stk_text_put(t, "%s", before);
    stk_text_html(t, text);
    stk_text_put(t, "%s", after);
}

void stk_html_head(stk_text *t, const char *title, const char *machine, int64_t created)
{
    char when[48] = "";
    time_t seconds = (time_t)created;
    struct tm tm;
    if (created && gmtime_r(&seconds, &tm)) strftime(when, sizeof when, "%Y-%m-%d %H:%M UTC", &tm);
    stk_text_put(t, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">");
    stk_html_escaped(t, "<title>", title, "</title>");
    stk_text_put(t, "<style>%s</style></head>\n<body><main>", STYLE);
    stk_html_escaped(t, "<h1>", title, "</h1>");
    stk_html_escaped(t, "<p class=\"soft small\">", machine, "");
    stk_text_put(t, "%s%s</p>\n", machine[0] ? " &middot; " : "", when);
}

void stk_html_foot(stk_text *t, const char *version)
{
    stk_text_put(t, "<footer>stoker %s</footer></main></body></html>\n", version);
}

static void put_fact(stk_text *t, const char *value, const char *what)
{
    stk_html_escaped(t, "<div><b>", value, "</b><span>");
    stk_text_put(t, "%s</span></div>", what);
}

static void put_facts(const stk_report *r, stk_text *t)
{
    char text[24];
    double wall = stk_report_seconds(r, STK_BOOK_COUNT);
    double kernels = r->book[STK_BOOK_KERNELS] + r->book[STK_BOOK_OPTIMIZER];
    stk_text_put(t, "<div class=\"facts\">");
    put_fact(t, stk_time_text(wall > 0 ? wall : r->median, text), "a steady step");
    if (r->batch && wall > 0)
        put_fact(t, stk_count_text((double)r->batch / wall, text), "examples per second");
    if (wall > 0) {
        snprintf(text, sizeof text, "%.0f %%", kernels / wall * 100);
        put_fact(t, text, "of it in kernels");
        snprintf(text, sizeof text, "%.1f %%", r->book[STK_BOOK_RESIDUAL] / wall * 100);
        put_fact(t, text, "unexplained");
    }
    put_fact(t, stk_bytes_text((double)r->memory.peak_rss, text), "peak memory");
    stk_text_put(t, "</div>\n");
}

static void put_gain(stk_text *t, stk_gain g)
{
    stk_text_put(t, "%.2f&times; <span class=\"soft\">(%.2f&ndash;%.2f)</span>", g.best, g.low,
                 g.high);
}

static void put_verdict(const stk_report *r, stk_text *t)
{
    static const char *const fine[] = {"compute-bound", "memory-bound",
                                       "the CPU is the right tool"};
    bool good = false;
    for (int i = 0; i < 3; i++) good |= !strcmp(r->verdict, fine[i]);
    stk_text_put(t, "<div class=\"verdict%s\">", good ? " good" : "");
    stk_html_escaped(t, "<b>", r->verdict, "</b><p>");
    stk_html_escaped(t, "", r->headline, "</p><ul>");
    for (const char *line = r->evidence; *line;) {
        char copy[512];
        int length = (int)strcspn(line, "\n");
        snprintf(copy, sizeof copy, "%.*s", length, line);
        stk_html_escaped(t, "<li>", copy, "</li>");
        line += length + (line[length] == '\n');
    }
    stk_text_put(t, "<li>effects below %.0f %% cannot be told from noise here</li></ul></div>\n",
                 r->noise * 100);
}

static void put_advice_rows(const stk_report *r, stk_text *t, bool mathematics)
{
    for (int64_t i = 0; i < r->nadvice; i++) {
        const stk_advice *a = &r->advice[i];
        if (a->changes_mathematics != mathematics) continue;
        stk_html_escaped(t, "<tr><td>", a->text, "</td><td>");
        put_gain(t, a->gain);
        stk_text_put(t,
                     "</td><td class=\"l gain\"><span class=\"bar%s\" "
                     "style=\"width:%.1f%%\"></span></td></tr>",
                     mathematics ? " m" : "", fmin(100, fmax(1, (a->gain.best - 1) * 40)));
    }
}

static void put_advice(const stk_report *r, stk_text *t)
{
    int64_t safe = 0;
    for (int64_t i = 0; i < r->nadvice; i++) safe += !r->advice[i].changes_mathematics;
    if (r->nadvice) stk_text_put(t, "<h2>Advice, by measured gain</h2>\n");
    if (safe) {
        stk_text_put(t, "<div class=\"wide\"><table>");
        put_advice_rows(r, t, false);
        if (safe > 1 && r->together.best > 0) {
            stk_text_put(t, "<tr><td class=\"soft\">all of these together</td><td>");
            put_gain(t, r->together);
            stk_text_put(t, "</td><td></td></tr>");
        }
        stk_text_put(t, "</table></div>\n");
    }
    if (r->nadvice > safe) {
        stk_text_put(t, "<p class=\"soft\">These change the mathematics; they are your "
                        "decision:</p><div class=\"wide\"><table>");
        put_advice_rows(r, t, true);
        stk_text_put(t, "</table></div>\n");
    }
    if (!r->nceilings) return;
    stk_text_put(t, "<h2>The most that could be won</h2><div class=\"wide\"><table>");
    for (int64_t i = 0; i < r->nceilings; i++) {
        stk_html_escaped(t, "<tr><td>", r->ceilings[i].text, "</td><td>");
        put_gain(t, r->ceilings[i].gain);
        stk_text_put(t, "</td><td class=\"gain x\"></td></tr>");
    }
    stk_text_put(t, "</table></div>\n");
}

static void put_epoch(const stk_report *r, stk_text *t)
{
    const stk_epoch_rows *e = &r->epoch;
    double all = e->training + e->validation + e->callbacks + e->checkpoint;
    char a[24], b[24], c[24], d[24];
    if (e->steps < 1 || all <= e->training) return;
    stk_text_put(t,
                 "<h2>An epoch</h2><p>%lld steps %s, validation %s, callbacks at its end %s, "
                 "checkpoint %s: %.0f %% of it is training.</p>\n",
                 (long long)e->steps, stk_time_text(e->training, a),
                 stk_time_text(e->validation, b), stk_time_text(e->callbacks, c),
                 stk_time_text(e->checkpoint, d), e->training / all * 100);
}

static void put_budget(const stk_report *r, stk_text *t)
{
    char text[24];
    double wall = stk_report_seconds(r, STK_BOOK_COUNT);
    if (wall <= 0) return;
    stk_text_put(t, "<h2>Where one step goes</h2>\n");
    stk_svg_budget(r, t);
    stk_text_put(t, "<div class=\"key\">");
    for (int b = 0; b < STK_BOOK_COUNT; b++) {
        if (r->book[b] <= 0) continue;
        stk_text_put(t,
                     "<span><i style=\"background:%s\"></i>%s %s <span class=\"soft\">%.1f "
                     "%%</span></span>",
                     stk_book_colour((stk_book)b), stk_book_name((stk_book)b),
                     stk_time_text(r->book[b], text), r->book[b] / wall * 100);
    }
    stk_text_put(t, "</div>\n");
}

static void put_phases(const stk_report *r, stk_text *t)
{
    char text[24];
    stk_text_put(t, "<h2>From start to steady state</h2>\n");
    if (r->nsteps > 1) stk_svg_steps(r, t);
    stk_text_put(t, "<div class=\"facts\" style=\"margin-top:10px\">");
    for (int p = 0; p < STK_PHASE_COUNT; p++) {
        char what[64];
        if (r->phase_steps[p])
            snprintf(what, sizeof what, "%s, %lld steps", stk_phase_name((stk_phase)p),
                     (long long)r->phase_steps[p]);
        else
            snprintf(what, sizeof what, "%s", stk_phase_name((stk_phase)p));
        put_fact(t, stk_time_text(r->phase_seconds[p], text), what);
    }
    stk_text_put(t, "</div>\n");
}

static void put_depths(const stk_watch_stage *s, stk_text *t)
{
    double values[STK_WATCH_DEPTHS];
    stk_text_put(t, "<td class=\"l\">");
    for (int32_t i = 0; i < s->ndepths; i++) values[i] = s->depths[i];
    stk_svg_spark(values, s->ndepths, fmax(s->capacity, s->depth_most), t);
    if (s->depth_most > 0)
        stk_text_put(t,
                     " <span class=\"small soft\">%.0f&ndash;%.0f<span class=\"x\">, mean "
                     "%.1f</span></span>",
                     s->depth_least, s->depth_most, s->depth);
    else if (s->capacity > 0)
        stk_text_put(t, "<span class=\"small soft\">%.1f of %.0f</span>", s->depth, s->capacity);
    stk_text_put(t, "</td>");
}

static void put_pipeline(const stk_report *r, stk_text *t)
{
    char a[24], b[24], c[24], d[24], e[24];
    if (!r->nstages) return;
    stk_text_put(t, "<h2>Input pipeline</h2>\n");
    stk_svg_pipeline(r, t);
    stk_text_put(t, "<div class=\"wide\"><table><tr><th>stage</th><th class=\"x\">workers</th>"
                    "<th>busy per element</th><th class=\"x\">waits for input</th>"
                    "<th class=\"x\">waits for room</th><th>elements/s</th>"
                    "<th class=\"l\">queue over time</th><th class=\"x\">memory</th></tr>");
    for (int64_t i = 0; i < r->nstages; i++) {
        const stk_watch_stage *s = &r->stages[i];
        double n = s->elements ? (double)s->elements : 1;
        stk_text_put(t, "<tr%s>", i == r->limiting_stage ? " class=\"hot\"" : "");
        stk_html_escaped(t, "<td>", s->name, "</td>");
        stk_text_put(t,
                     "<td class=\"x\">%d</td><td>%s</td><td class=\"x\">%s</td>"
                     "<td class=\"x\">%s</td><td>%s</td>",
                     s->workers, stk_time_text(s->busy_seconds / n, a),
                     stk_time_text(s->wait_input_seconds / n, b),
                     stk_time_text(s->wait_room_seconds / n, c),
                     s->seconds > 0 ? stk_count_text((double)s->elements / s->seconds, d) : "");
        put_depths(s, t);
        stk_text_put(t, "<td class=\"x\">%s</td></tr>",
                     s->bytes ? stk_bytes_text((double)s->bytes, e) : "");
    }
    stk_text_put(t, "</table></div>\n");
}

static void put_threads(const stk_report *r, stk_text *t)
{
    bool any = false;
    for (int64_t i = 0; i < r->nthreads; i++) any |= r->threads[i].nover > 0;
    if (!any) return;
    stk_text_put(t, "<h2>Threads over time</h2>\n<div class=\"wide\"><table class=\"over\">");
    for (int64_t i = 0; i < r->nthreads; i++) {
        const stk_thread_row *row = &r->threads[i];
        stk_html_escaped(t, "<tr><td>", row->name, "</td><td class=\"l\">");
        stk_svg_spark(row->over, row->nover, 1, t);
        stk_text_put(t, "</td><td>%.0f %% busy</td></tr>", row->busy * 100);
    }
    stk_text_put(t, "</table></div>\n");
    if (r->device_busy > 0) {
        stk_html_escaped(t, "<p class=\"soft small\">", stk_report_device(r), ": ");
        stk_text_put(t, "kernels run %.0f %% of the time, then on %.2f threads.</p>\n",
                     r->device_busy * 100, r->device_threads);
    }
}

/* Layers with their share, and what is lost to ops that are too short. */
static void put_places(const stk_report *r, stk_text *t)
{
    enum { MOST = 20 };
    char a[24], b[24], c[24];
    double steps = (double)r->book_steps, wall = stk_report_seconds(r, STK_BOOK_COUNT) * steps;
    if (!r->nplaces || wall <= 0) return;
    stk_text_put(t, "<h2>Layers</h2>\n<div class=\"wide\"><table><tr><th>where</th><th "
                    "class=\"x\">launches</th>"
                    "<th>per step</th><th>of it backward</th><th class=\"x\">per call</th>"
                    "<th class=\"l\">of a step</th></tr>");
    for (int64_t i = 0; i < r->nplaces && i < MOST; i++) {
        const stk_layer_cost *p = &r->places[i];
        double share = p->seconds / wall;
        stk_html_escaped(t, "<tr><td>", p->place[0] ? p->place : "(not known)", "</td>");
        stk_text_put(t,
                     "<td class=\"x\">%lld</td><td>%s</td><td>%s</td><td class=\"x\">%s</td>"
                     "<td class=\"l\"><span class=\"bar\" style=\"--w:%.3f\"></span> <span "
                     "class=\"small soft\">%.1f %%</span></td></tr>",
                     (long long)p->launches, stk_time_text(p->seconds / steps, a),
                     stk_time_text(p->backward_seconds / steps, b),
                     stk_time_text(p->calls ? p->seconds / (double)p->calls : 0, c), fmin(1, share),
                     share * 100);
    }
    stk_text_put(t, "</table></div>\n");
    if (r->tiny.calls >= 8)
        stk_text_put(t,
                     "<p class=\"soft small\">%.0f calls of a step take less than %s each: %s, "
                     "%.0f %% of a step. The same work in large ops would take about %s.</p>\n",
                     r->tiny.calls, stk_time_text(STK_TINY_SECONDS, a),
                     stk_time_text(r->tiny.seconds, b), r->tiny.seconds * steps / wall * 100,
                     stk_time_text(r->tiny.ideal_seconds, c));
}

static void put_ops(const stk_report *r, stk_text *t)
{
    enum { MOST = 30 };
    char each[24];
    double wall = stk_report_seconds(r, STK_BOOK_COUNT) * (double)r->book_steps;
    if (!r->nops || wall <= 0) return;
    stk_text_put(t, "<h2>Operations</h2>\n<div class=\"wide\"><table><tr><th>op</th>"
                    "<th class=\"l x\">kernel</th><th class=\"x\">calls per step</th>"
                    "<th>per call</th><th>of a step</th><th class=\"x\">GFLOP/s</th>"
                    "<th class=\"x\">GB/s</th><th class=\"l\">of the roofline</th></tr>");
    for (int64_t i = 0; i < r->nops && i < MOST; i++) {
        const stk_report_op *o = &r->ops[i];
        stk_html_escaped(t, "<tr><td>", o->label, "</td><td class=\"l soft x\">");
        stk_html_escaped(t, "", o->kernel, " &middot; ");
        stk_html_escaped(t, "", o->impl, "</td>");
        stk_text_put(t,
                     "<td class=\"x\">%.1f</td><td>%s</td><td>%.1f %%</td>"
                     "<td class=\"x\">%.1f</td><td class=\"x\">%.1f</td>",
                     (double)o->calls / (double)r->book_steps,
                     stk_time_text(o->calls ? o->seconds / (double)o->calls : 0, each),
                     o->seconds / wall * 100, o->flops / o->seconds * 1e-9,
                     o->bytes / o->seconds * 1e-9);
        stk_text_put(t,
                     "<td class=\"l\"><span class=\"bar%s\" style=\"--w:%.3f\"></span> "
                     "<span class=\"small soft\">%.0f %%<span class=\"x\"> %s</span></span></td>"
                     "</tr>",
                     o->compute_side ? "" : " m", fmin(1, o->roof) * 0.64, o->roof * 100,
                     o->compute_side ? "arithmetic" : "memory");
    }
    stk_text_put(t, "</table></div>\n");
    if (r->roof.threads)
        stk_text_put(t,
                     "<p class=\"soft small\">Measured here: %.0f GFLOP/s and %.0f GB/s on one "
                     "thread, %.0f and %.0f on %d. Data that fits a cache is held against the "
                     "cache.</p>\n",
                     r->roof.gflops[0], r->roof.gbs[0][2], r->roof.gflops[1], r->roof.gbs[1][2],
                     r->roof.threads);
}

static void put_curve(const stk_report *r, stk_text *t)
{
    if (r->ncurve < 2) return;
    stk_text_put(t, "<h2>Examples per second by batch size</h2>\n");
    stk_svg_curve(r, t);
    stk_text_put(t,
                 "<p class=\"soft small\">The knee (%lld) reaches nine tenths of the best rate. "
                 "Another batch size is another training: keep the examples seen equal, start "
                 "from a learning rate scaled with the batch (linearly for SGD, by the square "
                 "root for Adam), with a short warm-up.</p>\n",
                 (long long)r->knee);
}

static void put_devices(const stk_report *r, stk_text *t)
{
    if (r->ndevices < 2) return;
    stk_text_put(t, "<h2>Other devices</h2>\n");
    stk_svg_devices(r, t);
    stk_text_put(t, "<p class=\"soft small\">Cards: model, not measured. Formula and sources in "
                    "doc/watch.md.</p>\n");
}

static void put_key(stk_text *t, const char *colour, const char *name, int64_t bytes)
{
    char text[24];
    if (bytes <= 0) return;
    stk_text_put(t, "<span><i style=\"background:%s\"></i>%s <span class=\"soft\">%s</span></span>",
                 colour, name, stk_bytes_text((double)bytes, text));
}

static void put_memory(const stk_report *r, stk_text *t)
{
    const stk_memory_rows *m = &r->memory;
    char text[24], data[200];
    stk_text_put(t, "<h2>Memory</h2><div class=\"facts\">");
    put_fact(t, stk_bytes_text((double)m->weights, text), "weights");
    put_fact(t, stk_bytes_text((double)m->optimizer, text), "optimizer");
    put_fact(t, stk_bytes_text((double)m->arena, text), "arena of the program");
    put_fact(t, stk_bytes_text((double)m->inputs, text), "one batch");
    if (m->stages) put_fact(t, stk_bytes_text((double)m->stages, text), "input pipeline");
    put_fact(t, stk_bytes_text((double)m->peak_rss, text), "peak of the process");
    stk_text_put(t, "</div>\n");
    if (*stk_report_data_text(r, data)) stk_html_escaped(t, "<p>Data: ", data, "</p>\n");
    if (!r->nbuffers) return;
    stk_text_put(t, "<p class=\"soft small\">The arena from the first region of the program to the "
                    "last: each box is a buffer, as high as it is large and as wide as it lives. "
                    "At the dashed line it is fullest:</p>");
    stk_text_put(t, "<div class=\"key\" style=\"margin:0 0 12px\">");
    for (int k = 0; k < STK_MEMORY_KINDS; k++)
        put_key(t, stk_memory_kind_colour((stk_memory_kind)k),
                stk_memory_kind_name((stk_memory_kind)k), m->peak[k]);
    stk_text_put(t, "</div>\n");
    stk_svg_arena(r, t);
}

static void put_program(const stk_report *r, stk_text *t)
{
    char text[24];
    stk_text_put(t, "<h2>Program</h2><div class=\"facts\">");
    snprintf(text, sizeof text, "%d", r->program.launches);
    put_fact(t, text, "launches per step");
    snprintf(text, sizeof text, "%d", r->program.regions);
    put_fact(t, text, "regions");
    put_fact(t, stk_count_text(r->program.flops, text), "flop per step");
    put_fact(t, stk_time_text(r->program.build_ms * 1e-3, text), "to build it");
    stk_text_put(t, "</div>\n");
}

void stk_report_put_html(const stk_report *r, stk_text *t)
{
    stk_html_head(t, r->title[0] ? r->title : "Stoker report", r->machine, r->created);
    if (r->verdict) put_verdict(r, t);
    put_facts(r, t);
    if (r->verdict) put_advice(r, t);
    if (r->verdict) put_epoch(r, t);
    put_budget(r, t);
    if (r->nspans) {
        stk_text_put(t, "<h2>A few steps, thread by thread</h2>\n");
        stk_svg_timeline(r, t);
    }
    put_threads(r, t);
    put_pipeline(r, t);
    put_ops(r, t);
    put_places(r, t);
    stk_svg_histogram(r, t);
    put_curve(r, t);
    put_devices(r, t);
    if (r->scaling.npoints) stk_scaling_put_html(&r->scaling, t);
    put_phases(r, t);
    put_memory(r, t);
    put_program(r, t);
    stk_html_foot(t, r->version);
}
