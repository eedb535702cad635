/* text.h - a text that grows; failures of memory are remembered until the end. */
#ifndef STK_WATCH_TEXT_H
#define STK_WATCH_TEXT_H

#include "base/spill.h"
#include "base/status.h"

#include <stdbool.h>

typedef struct stk_text {
    char *data;
    size_t used, size;
    bool failed;
} stk_text;

void stk_text_add(stk_text *t, const void *data, size_t size);
void stk_text_put(stk_text *t, const char *format, ...) STK_PRINTF(2, 3);
/* With & < > " and ' written so that HTML and SVG take them as they are. */
void stk_text_html(stk_text *t, const char *text);
/* Lines no longer than `width`, all but the first indented by `indent`; ends with a newline. */
void stk_text_wrap(stk_text *t, const char *text, int indent, int width);
/* Hands the text over (0-terminated; freed with stk_text_free) and empties t. */
stk_status stk_text_finish(stk_text *t, char **out, size_t *size, stk_error *err);

/* "1.23 ms", "45.6 us", "12.3 s" into text; returns text. */
char *stk_time_text(double seconds, char text[24]);
char *stk_count_text(double count, char text[24]); /* "12.3 k", "4.56 M" */

#endif
