/* progress.c - how far training is, as text. Pure: numbers in, text out; who prints it, and where, is not known here. */
#include "base/memory.h"
#include "stoker/train.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct line {
    char *text;
    size_t size, used;
} line;

static void add(line *l, const char *format, ...) STK_PRINTF(2, 3);
static void add(line *l, const char *format, ...)
{
    if (l->used + 1 >= l->size) return;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(l->text + l->used, l->size - l->used, format, args);
    va_end(args);
    if (n > 0) l->used += stk_min_i64((int64_t)n, (int64_t)(l->size - l->used) - 1);
}

/* 3.2 s, 1:05, 2:03:04 */
static void add_time(line *l, double seconds)
{
    long long s = seconds < 0 ? 0 : seconds > 359999 ? 359999 : (long long)(seconds + 0.5);
    if (seconds < 9.95)
        add(l, "%.1f s", seconds < 0 ? 0 : seconds);
    else if (s < 60)
        add(l, "%lld s", s);
    else if (s < 3600)
        add(l, "%lld:%02lld", s / 60, s % 60);
    else
        add(l, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
}

static void add_rate(line *l, double rate)
{
    if (rate >= 999.5e6)
        add(l, "%.2fG", rate / 1e9);
    else if (rate >= 999.5e3)
        add(l, "%.2fM", rate / 1e6);
    else if (rate >= 9.995e3)
        add(l, "%.1fk", rate / 1e3);
    else
        add(l, "%.0f", rate);
}

static void add_values(line *l, const stk_logs *logs)
{
    for (int32_t i = 0; i < logs->count; i++) {
        double v = logs->values[i], size = fabs(v);
        const char *format = !isfinite(v)                                ? " - %s %g"
                             : size != 0 && (size < 1e-3 || size >= 1e5) ? " - %s %.4e"
                                                                         : " - %s %.4f";
        add(l, format, logs->names[i], v);
    }
}

/* Columns on a terminal: continuation bytes of UTF-8 take none. */
static int32_t columns_of(const char *text)
{
    int32_t n = 0;
    for (; *text; text++) n += (*text & 0xc0) != 0x80;
    return n;
}

enum { BAR_LEAST = 10, BAR_MOST = 30 };

static void add_bar(line *l, double part, int32_t width, bool ascii)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int32_t steps = (int32_t)(part * width * 8), full = steps / 8, rest = steps % 8;
    add(l, " %s", ascii ? "[" : "▕");
    for (int32_t i = 0; i < full; i++) add(l, "%s", ascii ? "#" : "█");
    if (!ascii && rest && full < width) add(l, "%s", eighths[rest]);
    int32_t done = full + (!ascii && rest && full < width);
    for (int32_t i = done; i < width; i++) add(l, "%s", ascii ? "." : " ");
    add(l, "%s", ascii ? "]" : "▏");
}

/* What stands to the right of the bar. */
static void add_tail(line *l, const stk_progress *p)
{
    double rate = p->seconds > 0 ? (double)p->samples / p->seconds : 0;
    if (p->steps > 0 && p->step < p->steps && p->step > p->first_step) {
        add(l, " ETA ");
        add_time(l, p->seconds * (double)(p->steps - p->step) / (double)(p->step - p->first_step));
    } else {
        add(l, " ");
        add_time(l, p->seconds);
    }
    add(l, ", ");
    add_rate(l, rate);
    add(l, " samples/s");
    add_values(l, &p->logs);
}

/* Cut so that the text takes at most `most` columns, never inside a character. */
static void cut(char *text, int32_t most)
{
    int32_t n = 0;
    for (; *text; text++) {
        if ((*text & 0xc0) != 0x80 && ++n > most) {
            *text = 0;
            return;
        }
    }
}

char *stk_progress_bar(const stk_progress *p, int32_t columns, bool ascii, char *text, size_t size)
{
    char head[96], tail[1024];
    line h = {head, sizeof head, 0}, t = {tail, sizeof tail, 0}, l = {text, size, 0};
    head[0] = tail[0] = 0;
    if (!size) return text;
    text[0] = 0;
    add(&h, "Epoch %lld/%lld", (long long)p->epoch + 1, (long long)p->epochs);
    if (p->steps > 0)
        add(&h, " %lld/%lld", (long long)p->step, (long long)p->steps);
    else
        add(&h, " %lld steps", (long long)p->step);
    add_tail(&t, p);
    add(&l, "%s", head);
    int32_t room = columns - columns_of(head) - columns_of(tail) - 3;
    if (p->steps > 0 && (room >= BAR_LEAST || columns <= 0)) {
        double part = (double)p->step / (double)p->steps;
        add_bar(&l, part < 1 ? part : 1, columns <= 0 || room > BAR_MOST ? BAR_MOST : room, ascii);
    }
    add(&l, "%s", tail);
    if (columns > 0) cut(text, columns);
    return text;
}

char *stk_progress_epoch(const stk_progress *p, char *text, size_t size)
{
    line l = {text, size, 0};
    if (!size) return text;
    text[0] = 0;
    add(&l, "Epoch %lld/%lld - ", (long long)p->epoch + 1, (long long)p->epochs);
    add_time(&l, p->seconds);
    double rate = p->seconds > 0 ? (double)p->samples / p->seconds : 0;
    add(&l, " - ");
    add_rate(&l, rate);
    add(&l, " samples/s");
    add_values(&l, &p->logs);
    return text;
}
