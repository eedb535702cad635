/* Growing texts and numbers for people. */
#include "watch/text.h"

#include "base/memory.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void stk_text_add(stk_text *t, const void *data, size_t size)
{
    if (t->failed) return;
    if (t->used + size + 1 > t->size) {
        size_t grown = 2 * t->size + size + 4096;
        char *more = stk_realloc(t->data, t->used, grown);
        t->failed = !more;
        if (!more) return;
        t->data = more;
        t->size = grown;
    }
    if (size) memcpy(t->data + t->used, data, size);
    t->used += size;
    t->data[t->used] = '\0';
}

void stk_text_put(stk_text *t, const char *format, ...)
{
    char line[1024];
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof line) {
        stk_text_add(t, line, (size_t)n);
    } else if (n > 0) {
        char *longer = stk_malloc((size_t)n + 1);
        if (!longer) t->failed = true;
        if (longer) vsnprintf(longer, (size_t)n + 1, format, again);
        if (longer) stk_text_add(t, longer, (size_t)n);
        stk_free(longer);
    }
    va_end(again);
}

void stk_text_html(stk_text *t, const char *text)
{
    for (; *text; text++) switch (*text) {
        case '&': stk_text_add(t, "&amp;", 5); break;
        case '<': stk_text_add(t, "&lt;", 4); break;
        case '>': stk_text_add(t, "&gt;", 4); break;
        case '"': stk_text_add(t, "&quot;", 6); break;
        case '\'': stk_text_add(t, "&#39;", 5); break;
        default: stk_text_add(t, text, 1);
        }
}

void stk_text_wrap(stk_text *t, const char *text, int indent, int width)
{
    int column = indent;
    while (*text) {
        int length = (int)strcspn(text, " \n");
        if (column > indent && column + 1 + length > width) {
            stk_text_put(t, "\n%*s", indent, "");
            column = indent;
        }
        if (column > indent) stk_text_add(t, " ", 1), column++;
        stk_text_add(t, text, (size_t)length);
        column += length;
        text += length;
        if (*text == '\n' && text[1]) {
            stk_text_put(t, "\n%*s", indent, "");
            column = indent;
        }
        if (*text) text++;
    }
    stk_text_add(t, "\n", 1);
}

stk_status stk_text_finish(stk_text *t, char **out, size_t *size, stk_error *err)
{
    stk_text_add(t, "", 0);
    stk_text done = *t;
    *t = (stk_text){0};
    if (done.failed) {
        stk_free(done.data);
        return stk_fail_memory(err, "a report", done.size);
    }
    *out = done.data;
    if (size) *size = done.used;
    return STK_OK;
}

/* Three digits that mean something, whatever the size. */
static char *three_digits(double v, const char *unit, char text[24])
{
    int digits = fabs(v) < 9.995 ? 2 : fabs(v) < 99.95 ? 1 : 0;
    snprintf(text, 24, "%.*f %s", digits, v, unit);
    return text;
}

char *stk_time_text(double s, char text[24])
{
    if (s == 0) return memcpy(text, "0", 2);
    if (fabs(s) < 999.5e-9) return three_digits(s * 1e9, "ns", text);
    if (fabs(s) < 999.5e-6) return three_digits(s * 1e6, "us", text);
    if (fabs(s) < 999.5e-3) return three_digits(s * 1e3, "ms", text);
    return three_digits(s, "s", text);
}

char *stk_count_text(double n, char text[24])
{
    if (n < 9999.5)
        return snprintf(text, 24, n < 99.95 && n != floor(n) ? "%.1f" : "%.0f", n), text;
    if (n < 999.5e3) return three_digits(n / 1e3, "k", text);
    if (n < 999.5e6) return three_digits(n / 1e6, "M", text);
    return three_digits(n / 1e9, "G", text);
}
