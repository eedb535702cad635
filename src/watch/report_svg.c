/* report_svg.c - drawings as inline SVG. Sizes are those of the drawing, the page scales it. Words have to stay readable on a
 * phone: what is short is drawn a second time for it, narrow; what goes along time scrolls. */
#include "watch/report_html.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WIDE = 960, NARROW = 380 };

static void begin(stk_text *t, int height, const char *label)
{
    stk_text_put(t,
                 "<div class=\"wide\"><svg class=\"min\" viewBox=\"0 0 %d %d\" role=\"img\" "
                 "aria-label=\"%s\">",
                 WIDE, height, label);
}
/* One of two: wide or narrow, of which the page shows the one that fits. */
static void begin_one(stk_text *t, int wide, int height, const char *label)
{
    stk_text_put(t, "<div class=\"%s\"><svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">",
                 wide == WIDE ? "desk" : "phone", wide, height, label);
}
static void end(stk_text *t) { stk_text_put(t, "</svg></div>\n"); }

static void rect(stk_text *t, double x, double y, double w, double h, const char *colour)
{
    stk_text_put(t, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\"", x, y,
                 w, h, colour);
}

static void words(stk_text *t, double x, double y, const char *anchor, const char *class,
                  const char *text)
{
    stk_text_put(t, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">", x, y, anchor,
                 class);
    stk_text_html(t, text);
    stk_text_put(t, "</text>");
}

static void axis(stk_text *t, double x1, double y1, double x2, double y2)
{
    stk_text_put(t, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"axis\"/>", x1,
                 y1, x2, y2);
}

/* Lines at nothing, half and all of a scale that stands on `base`. */
static void levels(stk_text *t, double left, double base, double tall, double top,
                   char *(*say)(double value, char text[24]))
{
    char text[24];
    for (int k = 0; k <= 2; k++) {
        double y = base - tall * k / 2.0;
        axis(t, left - 6, y, WIDE - 10, y);
        words(t, left - 12, y + 4, "end", "s", say(top * k / 2, text));
    }
}

/* ---- where one step goes ----------------------------------------------------------------------------------------- */

void stk_svg_budget(const stk_report *r, stk_text *t)
{
    double wall = stk_report_seconds(r, STK_BOOK_COUNT), x = 0;
    stk_text_put(t, "<svg viewBox=\"0 0 1000 34\" preserveAspectRatio=\"none\" height=\"34\" "
                    "role=\"img\" aria-label=\"time budget\" style=\"border-radius:5px\">");
    for (int b = 0; b < STK_BOOK_COUNT; b++) {
        double w = r->book[b] / wall * 1000;
        if (w <= 0) continue;
        rect(t, x, 0, w, 34, stk_book_colour((stk_book)b));
        stk_text_put(t, "><title>%s %.1f %%</title></rect>", stk_book_name((stk_book)b),
                     r->book[b] / wall * 100);
        x += w;
    }
    stk_text_put(t, "</svg>");
}

/* ---- threads over time ---------------------------------------------------------------------------------------------- */

static const char *span_colour(const stk_span_row *s)
{
    return s->book < STK_BOOK_COUNT ? stk_book_colour((stk_book)s->book) : "#7a93b8";
}

/* Rounds and runs only frame what is inside them. */
static bool is_frame(const stk_span_row *s)
{
    return !strcmp(s->name, "step") || !strcmp(s->name, "program run") ||
           !strcmp(s->name, "train.step");
}

void stk_svg_timeline(const stk_report *r, stk_text *t)
{
    enum { LEFT = 96, ROW = 30, TOP = 6 };
    double length = 0;
    bool shown[64] = {0};
    int row[64] = {0}, rows = 0;
    char text[32];
    for (int64_t i = 0; i < r->nspans; i++) {
        length = fmax(length, r->spans[i].start + r->spans[i].seconds);
        if (r->spans[i].thread >= 0 && r->spans[i].thread < 64) shown[r->spans[i].thread] = true;
    }
    if (length <= 0) return;
    for (int i = 0; i < 64; i++)
        if (shown[i]) row[i] = rows++;
    double scale = (WIDE - LEFT - 8) / length;
    begin(t, TOP + rows * ROW + 22, "timeline");
    for (int i = 0; i < 64 && i < r->nthreads; i++) {
        if (!shown[i]) continue;
        double y = TOP + row[i] * ROW;
        snprintf(text, sizeof text, "%.14s", r->threads[i].name);
        words(t, LEFT - 10, y + 15, "end", "s", text);
        axis(t, LEFT, y + 24, WIDE - 8, y + 24);
    }
    for (int pass = 0; pass < 2; pass++) /* frames below, what they hold above */
        for (int64_t i = 0; i < r->nspans; i++) {
            const stk_span_row *s = &r->spans[i];
            if (s->thread < 0 || s->thread >= 64 || is_frame(s) != !pass) continue;
            double y = TOP + row[s->thread] * ROW, w = fmax(s->seconds * scale, 0.4);
            if (pass)
                rect(t, LEFT + s->start * scale, y + 3, w, 17, span_colour(s));
            else
                rect(t, LEFT + s->start * scale, y + 1, w, 21, "#8a8f98");
            char time[24];
            stk_text_put(t, "%s><title>",
                         !pass   ? " fill-opacity=\".16\""
                         : w > 3 ? " stroke=\"var(--bg)\" stroke-width=\".7\""
                                 : "");
            stk_text_html(t, s->name);
            stk_text_put(t, " %s</title></rect>", stk_time_text(s->seconds, time));
        }
    words(t, LEFT, TOP + rows * ROW + 14, "start", "s", "0");
    words(t, WIDE - 8, TOP + rows * ROW + 14, "end", "s", stk_time_text(length, text));
    end(t);
}

/* ---- the pipeline ---------------------------------------------------------------------------------------------------- */

/* At most so many letters; what had to be cut ends with an ellipsis. */
static void cut_words(const char *text, int most, char *out, size_t size)
{
    if ((int)strlen(text) <= most)
        snprintf(out, size, "%s", text);
    else
        snprintf(out, size, "%.*s\xe2\x80\xa6", most - 1, text);
}

/* Side by side, or one below the other. */
static void draw_pipeline(const stk_report *r, stk_text *t, int wide)
{
    enum { HEIGHT = 92, STEP = 84 };
    bool down = wide == NARROW;
    int64_t boxes = r->nstages + 1; /* the step stands at the end */
    double gap = 26, w = fmin(190, (WIDE - 12 - gap * (double)(boxes - 1)) / (double)boxes);
    double wall = stk_report_seconds(r, STK_BOOK_COUNT);
    if (down) w = NARROW - 12;
    begin_one(t, wide, down ? (int)boxes * STEP : HEIGHT, "input pipeline");
    for (int64_t i = 0; i < boxes; i++) {
        double x = down ? 6 : 6 + (double)i * (w + gap), y = down ? (double)i * STEP : 0;
        bool step = i == r->nstages, hot = i == r->limiting_stage;
        char name[64], time[24], line[64];
        if (step && r->limiting_stage >= 0)
            hot = wall > 0 && r->book[STK_BOOK_INPUT] < 0.05 * wall; /* the model is the limit */
        if (hot && !step && wall > 0 && r->book[STK_BOOK_INPUT] < 0.05 * wall) hot = false;
        stk_text_put(t,
                     "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"58\" rx=\"5\" "
                     "class=\"box%s\"/>",
                     x, y + 8, w, hot ? " hot" : "");
        cut_words(step ? "step" : r->stages[i].name, (int)fmin(48, w / 7.4), name, sizeof name);
        words(t, x + w / 2, y + 32, "middle", "", name);
        if (step) {
            snprintf(line, sizeof line, "%s", stk_time_text(wall - r->book[STK_BOOK_INPUT], time));
        } else {
            const stk_watch_stage *s = &r->stages[i];
            double n = s->elements ? (double)s->elements : 1;
            snprintf(line, sizeof line, s->workers > 1 ? "%s / %d" : "%s",
                     stk_time_text(s->busy_seconds / n, time), s->workers);
        }
        words(t, x + w / 2, y + 51, "middle", "s", line);
        if (hot && down) words(t, x + w - 12, y + 51, "end", "s", "limits");
        if (hot && !down) words(t, x + w / 2, y + 84, "middle", "s", "limits");
        if (step) continue;
        if (down)
            stk_text_put(t, "<path d=\"M%.1f %.1fv18m-4 -6l4 6l4 -6\"", x + w / 2, y + 70);
        else
            stk_text_put(t, "<path d=\"M%.1f 37h%.1fm-6 -4l6 4l-6 4\"", x + w + 4, gap - 8);
        stk_text_put(t, " fill=\"none\" stroke=\"currentColor\" stroke-opacity=\".45\"/>");
    }
    end(t);
}

void stk_svg_pipeline(const stk_report *r, stk_text *t)
{
    draw_pipeline(r, t, WIDE);
    draw_pipeline(r, t, NARROW);
}

/* ---- sizes of ops ------------------------------------------------------------------------------------------------------ */

static void draw_histogram(const stk_report *r, stk_text *t, int wide, int first, int last,
                           int64_t most)
{
    enum { BASE = 112, TALL = 88 };
    char label[32];
    double w = (double)(wide - 20) / (last - first + 1);
    int every = (int)ceil(66 / w); /* labels stand so far apart */
    begin_one(t, wide, BASE + 20, "histogram of kernel times");
    for (int i = first; i <= last; i++) {
        double h = (double)r->histogram_calls[i] / (double)most * TALL, x = 10 + (i - first) * w;
        rect(t, x + 2, BASE - h, w - 4, h, "#2f7f79");
        stk_text_put(t, " rx=\"2\"><title>%lld calls</title></rect>",
                     (long long)r->histogram_calls[i]);
        double edge = 0.5 * (double)(1 << i); /* us */
        snprintf(label, sizeof label, edge < 1000 ? "< %g us" : "< %.0f ms",
                 edge < 1000 ? edge : edge / 1000);
        if ((i - first) % every == 0)
            words(t, fmax(x + w / 2, 32), BASE + 15, "middle", "s", label);
    }
    axis(t, 10, BASE, wide - 10, BASE);
    end(t);
}

void stk_svg_histogram(const stk_report *r, stk_text *t)
{
    int64_t most = 0;
    int first = STK_HISTOGRAM, last = 0;
    for (int i = 0; i < STK_HISTOGRAM; i++) {
        if (!r->histogram_calls[i]) continue;
        if (i < first) first = i;
        last = i;
        if (r->histogram_calls[i] > most) most = r->histogram_calls[i];
    }
    if (!most || last - first < 1) return;
    stk_text_put(t, "<h2>Kernels by time of one call</h2>\n");
    draw_histogram(r, t, WIDE, first, last, most);
    draw_histogram(r, t, NARROW, first, last, most);
}

/* ---- batch sizes --------------------------------------------------------------------------------------------------------- */

static void draw_curve(const stk_report *r, stk_text *t, int wide)
{
    enum { LEFT = 70, BASE = 190, TALL = 160 };
    int right = wide == WIDE ? 40 : 24;
    double top = 0;
    char text[24];
    for (int64_t i = 0; i < r->ncurve; i++)
        top = fmax(top, r->curve[i].examples_per_second *
                            fmin(1.3, r->curve[i].gain.high / r->curve[i].gain.best));
    if (top <= 0) return;
    double step = (double)(wide - LEFT - right) / (double)(r->ncurve > 1 ? r->ncurve - 1 : 1);
    begin_one(t, wide, BASE + 36, "examples per second by batch size");
    for (int k = 0; k <= 4; k++) {
        double y = BASE - TALL * k / 4.0;
        axis(t, LEFT - 10, y, wide - 10, y);
        words(t, LEFT - 16, y + 4, "end", "s", stk_count_text(top * k / 4, text));
    }
    stk_text_put(t, "<polyline fill=\"none\" stroke=\"#2f7f79\" stroke-width=\"2.5\" points=\"");
    for (int64_t i = 0; i < r->ncurve; i++)
        stk_text_put(t, "%.1f,%.1f ", LEFT + (double)i * step,
                     BASE - TALL * r->curve[i].examples_per_second / top);
    stk_text_put(t, "\"/>");
    for (int64_t i = 0; i < r->ncurve; i++) {
        const stk_curve_point *p = &r->curve[i];
        double x = LEFT + (double)i * step, each = p->examples_per_second / p->gain.best;
        double y = BASE - TALL * p->examples_per_second / top;
        stk_text_put(t,
                     "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#2f7f79\" "
                     "stroke-opacity=\".5\" stroke-width=\"6\"/>",
                     x, x, BASE - TALL * fmin(1.05, each * p->gain.low / top),
                     BASE - TALL * fmin(1.05, each * p->gain.high / top));
        bool knee = p->batch == r->knee;
        stk_text_put(t, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" fill=\"%s\"/>", x, y,
                     knee ? 7 : 4, knee ? "#e0803a" : "#2f7f79");
        snprintf(text, sizeof text, "%lld", (long long)p->batch);
        words(t, x, BASE + 18, "middle", "s", text);
        if (knee) words(t, x, BASE + 33, "middle", "", "knee");
    }
    end(t);
}

void stk_svg_curve(const stk_report *r, stk_text *t)
{
    draw_curve(r, t, WIDE);
    draw_curve(r, t, NARROW);
}

/* ---- devices: ranges on a logarithmic line ----------------------------------------------------------------------------------- */

static void draw_devices(const stk_report *r, stk_text *t, int wide)
{
    enum { ROW = 30 };
    int left = wide == WIDE ? 220 : 150, right = wide == WIDE ? 190 : 106;
    double low = INFINITY, high = 0;
    for (int64_t i = 0; i < r->ndevices; i++) {
        low = fmin(low, r->devices[i].low_seconds);
        high = fmax(high, r->devices[i].high_seconds);
    }
    if (!(low > 0) || high <= 0) return;
    low = pow(10, floor(log10(low) * 2) / 2);
    high = pow(10, ceil(log10(high) * 2 + 1e-9) / 2);
    double scale = (wide - left - right) / log(high / low);
    begin_one(t, wide, (int)(r->ndevices * ROW + 30), "devices");
    int every = (int)ceil(52 / (log(10) * scale)), k = 0; /* so that words have room */
    for (double d = pow(10, ceil(log10(low))); d <= high * 1.001; d *= 10, k++) {
        double x = left + log(d / low) * scale;
        char text[24];
        axis(t, x, 4, x, (double)r->ndevices * ROW + 6);
        if (k % every == 0)
            words(t, x, (double)r->ndevices * ROW + 22, "middle", "s", stk_time_text(d, text));
    }
    for (int64_t i = 0; i < r->ndevices; i++) {
        const stk_device_row *v = &r->devices[i];
        double y = 6 + (double)i * ROW, x = left + log(v->low_seconds / low) * scale;
        double w = fmax(log(v->high_seconds / v->low_seconds) * scale, 5);
        bool measured = !strcmp(v->kind, "measured");
        words(t, left - 12, y + 15, "end", "", v->name);
        rect(t, x, y + 5, w, 12, measured ? "#2f7f79" : "#c2a13a");
        stk_text_put(t, " rx=\"3\"%s/>", measured ? "" : " fill-opacity=\".75\"");
        words(t, x + w + (wide == WIDE ? 10 : 5), y + 15, "start", "s",
              measured ? "measured" : v->note);
    }
    end(t);
}

void stk_svg_devices(const stk_report *r, stk_text *t)
{
    draw_devices(r, t, WIDE);
    draw_devices(r, t, NARROW);
}

/* ---- step times ---------------------------------------------------------------------------------------------------------------- */

void stk_svg_steps(const stk_report *r, stk_text *t)
{
    enum { LEFT = 70, BASE = 120, TALL = 104 };
    double top = 0;
    char text[24];
    for (int64_t i = 0; i < r->nsteps; i++) top = fmax(top, r->step_seconds[i]);
    double cut = fmin(top, r->p90 > 0 ? 4 * r->p90 : top); /* slow first steps are cut off */
    if (cut <= 0) return;
    double step = (double)(WIDE - LEFT - 10) / (double)r->nsteps;
    begin(t, BASE + 20, "step times");
    levels(t, LEFT, BASE, TALL, cut, stk_time_text);
    for (int64_t i = 0; i < r->nsteps; i++) {
        double h = fmin(1, r->step_seconds[i] / cut) * TALL;
        rect(t, LEFT + (double)i * step, BASE - h, fmax(step * 0.8, 0.6), h,
             i < r->first_steady ? "#e0803a" : "#2f7f79");
        stk_text_put(t, "><title>%s</title></rect>", stk_time_text(r->step_seconds[i], text));
    }
    words(t, LEFT, BASE + 15, "start", "s",
          r->first_steady ? "warm-up, then steady steps" : "steps");
    end(t);
}

/* ---- memory: what lives where, and how long -------------------------------------------------------------------------------------- */

void stk_svg_arena(const stk_report *r, stk_text *t)
{
    enum { LEFT = 84, BASE = 214, TALL = 200 };
    double top = (double)r->memory.arena, width = 1;
    char text[64], size[24];
    for (int64_t i = 0; i < r->nbuffers; i++) {
        const stk_buffer_row *b = &r->buffers[i];
        width = fmax(width, (double)b->last + 1);
        top = fmax(top, (double)(b->at + b->bytes));
    }
    if (top <= 0) return;
    double x_scale = (WIDE - LEFT - 10) / width, y_scale = TALL / top;
    begin(t, BASE + 22, "memory plan");
    levels(t, LEFT, BASE, TALL, top, stk_bytes_text);
    for (int64_t i = 0; i < r->nbuffers; i++) {
        const stk_buffer_row *b = &r->buffers[i];
        double h = fmax((double)b->bytes * y_scale, 0.5),
               w = fmax((double)(b->last - b->first + 1) * x_scale - 0.6, 0.6);
        rect(t, LEFT + b->first * x_scale, BASE - (double)b->at * y_scale - h, w, h,
             stk_memory_kind_colour((stk_memory_kind)b->kind));
        stk_text_put(t, "%s><title>", h > 2 ? " stroke=\"var(--bg)\" stroke-width=\".5\"" : "");
        stk_text_html(t, b->place[0] ? b->place : "buffer");
        stk_text_put(t, ": %s %s, regions %d to %d</title></rect>",
                     stk_memory_kind_name((stk_memory_kind)b->kind),
                     stk_bytes_text((double)b->bytes, size), b->first, b->last);
    }
    double peak = LEFT + ((double)r->memory.peak_at + 0.5) * x_scale;
    stk_text_put(t,
                 "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"var(--warn)\" "
                 "stroke-dasharray=\"4 3\"/>",
                 peak, peak, BASE - TALL, BASE);
    words(t, LEFT, BASE + 16, "start", "s", "first region of the program");
    snprintf(text, sizeof text, "last of %.0f", width);
    words(t, WIDE - 10, BASE + 16, "end", "s", text);
    end(t);
}

void stk_svg_spark(const double *values, int64_t n, double top, stk_text *t)
{
    enum { WIDTH = 110, HEIGHT = 20 };
    if (n < 2 || top <= 0) return;
    double step = (double)WIDTH / (double)(n - 1);
    stk_text_put(
        t,
        "<svg class=\"spark\" viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" role=\"img\" "
        "aria-label=\"over time\"><path class=\"area\" d=\"M0 %d",
        WIDTH, HEIGHT, HEIGHT);
    for (int64_t i = 0; i < n; i++) {
        double v = fmin(fmax(values[i] / top, 0), 1);
        stk_text_put(t, "L%.1f %.1f", (double)i * step, HEIGHT - 1 - v * (HEIGHT - 2));
    }
    stk_text_put(t, "L%d %dZ\"/></svg>", WIDTH, HEIGHT);
}
