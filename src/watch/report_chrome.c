/* report_chrome.c - the timeline as a Chrome trace: {"traceEvents": [{"ph": "X", ...}]}, read by chrome://tracing and
 * ui.perfetto.dev. Times are microseconds. */
#include "watch/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* JSON strings here are names from the trace: control characters and quotes are all that can hurt. */
static void put_string(stk_text *t, const char *text)
{
    stk_text_add(t, "\"", 1);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            stk_text_put(t, "\\%c", c);
        else if (c < 32)
            stk_text_put(t, "\\u%04x", c);
        else
            stk_text_add(t, text, 1);
    }
    stk_text_add(t, "\"", 1);
}

/* Where a span ends for viewers, which nest by time: rounds are cut by marks that stand inside of the spans around the
 * program, so these would reach into the next round by a moment. */
static double end_of(const stk_report *r, const stk_span_row *s)
{
    double end = s->start + s->seconds;
    for (int64_t i = 0; i < r->nspans; i++) {
        const stk_span_row *f = &r->spans[i];
        if (f->thread != s->thread || strcmp(f->name, "step")) continue;
        double round_end = f->start + f->seconds;
        if (f->start <= s->start && s->start < round_end) end = fmin(end, round_end);
    }
    return end;
}

void stk_report_put_chrome(const stk_report *r, stk_text *t)
{
    stk_text_put(t, "{\"displayTimeUnit\": \"ns\", \"otherData\": {\"title\": ");
    put_string(t, r->title);
    stk_text_put(t, "},\n\"traceEvents\": [\n{\"ph\": \"M\", \"pid\": 1, \"tid\": 0, \"name\": "
                    "\"process_name\", \"args\": {\"name\": \"stoker\"}}");
    for (int64_t i = 0; i < r->nthreads; i++) {
        stk_text_put(t,
                     ",\n{\"ph\": \"M\", \"pid\": 1, \"tid\": %lld, \"name\": \"thread_name\", "
                     "\"args\": {\"name\": ",
                     (long long)i + 1);
        put_string(t, r->threads[i].name);
        stk_text_put(t, "}}");
    }
    for (int64_t i = 0; i < r->nspans; i++) {
        const stk_span_row *s = &r->spans[i];
        stk_text_put(t, ",\n{\"ph\": \"X\", \"pid\": 1, \"tid\": %d, \"ts\": %.3f, \"dur\": %.3f, ",
                     s->thread + 1, s->start * 1e6, (end_of(r, s) - s->start) * 1e6);
        stk_text_put(t, "\"cat\": \"%s\", \"name\": ",
                     s->book < STK_BOOK_COUNT ? stk_book_name((stk_book)s->book) : "stage");
        put_string(t, s->name);
        stk_text_put(t, "}");
    }
    stk_text_put(t, "\n]}\n");
}
