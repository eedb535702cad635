/* report_html.h - what pages share, and the drawings of the HTML report. */
#ifndef STK_WATCH_REPORT_HTML_H
#define STK_WATCH_REPORT_HTML_H

#include "watch/report.h"

/* Every page begins and ends so: style, title, machine, when. machine may be "", created 0. */
void stk_html_head(stk_text *t, const char *title, const char *machine, int64_t created);
void stk_html_foot(stk_text *t, const char *version);
void stk_html_escaped(stk_text *t, const char *before, const char *text, const char *after);

void stk_svg_budget(const stk_report *r, stk_text *t);
void stk_svg_timeline(const stk_report *r, stk_text *t);
void stk_svg_pipeline(const stk_report *r, stk_text *t);
void stk_svg_histogram(const stk_report *r, stk_text *t);
void stk_svg_curve(const stk_report *r, stk_text *t);
void stk_svg_devices(const stk_report *r, stk_text *t);
void stk_svg_steps(const stk_report *r, stk_text *t);
void stk_svg_arena(const stk_report *r, stk_text *t);
/* A small curve for a table's cell: n values from 0 to top. */
void stk_svg_spark(const double *values, int64_t n, double top, stk_text *t);

#endif
