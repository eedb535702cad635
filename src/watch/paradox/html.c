/* html.c - the experiments as one HTML page, in the style of the reports. */
#include "watch/paradox/paradox.h"

#include "watch/report_html.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the table -------------------------------------------------------------------------------------------------- */

static void put_cell(const stk_paradox_cell *c, stk_text *t)
{
    char a[24], b[24], gain[48];
    if (c->trouble[0]) {
        stk_html_escaped(t, "<td class=\"l small\" style=\"white-space:normal\">", c->trouble,
                         "</td>");
        return;
    }
    stk_paradox_gain_text(c, gain);
    char *rest = strchr(gain, ' ');
    if (rest) *rest++ = '\0';
    stk_text_put(t,
                 "<td>%s &rarr; %s<br><b%s>%s</b> <span class=\"soft small\" "
                 "style=\"white-space:normal\">%s</span></td>",
                 stk_time_text(c->written.seconds, a), stk_time_text(c->cured.seconds, b),
                 c->gain.low > 1 ? " style=\"color:var(--good)\"" : "", gain, rest ? rest : "");
}

static void put_row(const stk_paradox *p, int32_t at, int32_t n, stk_text *t)
{
    stk_paradox_row row = stk_paradox_row_at(p->cells[at].row);
    stk_html_escaped(t, "<tr><td style=\"white-space:normal;min-width:130px\"><b>", row.id,
                     "</b> ");
    stk_html_escaped(t, "", row.name, "<br><span class=\"soft small\">per ");
    stk_html_escaped(t, "", row.per,
                     row.changes_mathematics ? "; changes the mathematics</span></td>"
                                             : "</span></td>");
    for (int32_t d = 0; d < n; d++) put_cell(&p->cells[at + d], t);
    stk_html_escaped(t, "<td class=\"l x small\" style=\"white-space:normal;min-width:300px\">",
                     row.cause, "<br><span style=\"color:var(--good)\">");
    stk_html_escaped(t, "", row.cure, "</span></td></tr>\n");
}

static void put_table(const stk_paradox *p, stk_text *t)
{
    stk_text_put(t, "<div class=\"wide\"><table><tr><th>experiment</th>");
    for (int32_t d = 0; d < p->ndevices; d++)
        stk_html_escaped(t, "<th>", p->devices[d].name, "<br>as written &rarr; cured, gain</th>");
    stk_text_put(t,
                 "<th class=\"l x\">cause, and <span style=\"color:var(--good)\">cure</span></th>"
                 "</tr>\n");
    for (int32_t i = 0, n; i < p->ncells; i += n) {
        n = stk_paradox_together(p, i);
        put_row(p, i, n, t);
    }
    stk_text_put(t, "</table></div>\n");
}

/* ---- the books ----------------------------------------------------------------------------------------------------- */

static void put_piece(stk_text *t, double share, const char *colour, const char *name)
{
    if (share <= 0) return;
    stk_text_put(t, "<i title=\"%s %.0f %%\" style=\"flex:%.4f;background:%s\"></i>", name,
                 share * 100, share, colour);
}

/* As long as its time is beside the longer one of the two. */
static void put_bar(const stk_paradox_side *s, const char *what, double longest, stk_text *t)
{
    char time[24];
    stk_html_escaped(t, "<tr><td style=\"white-space:normal\">", what, "</td>");
    stk_text_put(t,
                 "<td>%s</td><td class=\"l\" style=\"width:55%%\"><span style=\"display:flex;"
                 "height:14px;border-radius:3px;overflow:hidden;width:%.2f%%;min-width:2px\">",
                 stk_time_text(s->seconds, time), s->seconds / longest * 100);
    for (int b = 0; b < STK_BOOK_COUNT; b++)
        put_piece(t, s->book[b], stk_book_colour((stk_book)b), stk_book_name((stk_book)b));
    stk_text_put(t, "</span></td></tr>\n");
}

static void put_books(const stk_paradox *p, stk_text *t)
{
    stk_text_put(t, "<h2>Where the time of both went</h2><div class=\"key\">");
    for (int b = 0; b < STK_BOOK_COUNT; b++)
        stk_text_put(t, "<span><i style=\"background:%s\"></i>%s</span>",
                     stk_book_colour((stk_book)b), stk_book_name((stk_book)b));
    stk_text_put(t, "</div>\n");
    for (int32_t i = 0; i < p->ncells; i++) {
        const stk_paradox_cell *c = &p->cells[i];
        stk_paradox_row row = stk_paradox_row_at(c->row);
        char head[160];
        if (c->trouble[0]) continue;
        snprintf(head, sizeof head, "%s %s, %s", row.id, row.name, p->devices[c->device].name);
        stk_html_escaped(t, "<p style=\"margin-top:18px\"><b>", head, "</b></p>");
        if (c->note[0]) stk_html_escaped(t, "<p class=\"soft small\">", c->note, "</p>");
        double longest = fmax(c->written.seconds, c->cured.seconds);
        stk_text_put(t, "<div class=\"wide\"><table>");
        put_bar(&c->written, row.written, longest, t);
        put_bar(&c->cured, row.cured, longest, t);
        stk_text_put(t, "</table></div>\n");
    }
}

/* ---- devices side by side --------------------------------------------------------------------------------------------- */

static void put_times(stk_text *t, double times)
{
    char text[24];
    stk_text_put(t, "<td style=\"color:var(--%s)\">%s</td>", times >= 1 ? "warn" : "good",
                 stk_paradox_times_text(times, text));
}

static void put_against(const stk_paradox *p, int32_t device, stk_text *t)
{
    stk_html_escaped(t, "<h2>", p->devices[device].name, " beside ");
    stk_html_escaped(t, "", p->devices[0].name,
                     "</h2><div class=\"wide\"><table><tr><th>experiment</th><th>as written</th>"
                     "<th>cured</th></tr>\n");
    for (int32_t i = 0; i < p->ncells; i += stk_paradox_together(p, i)) {
        double written, cured;
        stk_paradox_row row = stk_paradox_row_at(p->cells[i].row);
        if (!stk_paradox_against(&p->cells[i], &p->cells[i + device], &written, &cured)) continue;
        stk_html_escaped(t, "<tr><td>", row.id, " ");
        stk_html_escaped(t, "", row.name, "</td>");
        put_times(t, written);
        put_times(t, cured);
        stk_text_put(t, "</tr>\n");
    }
    stk_text_put(t, "</table></div>\n");
}

stk_status stk_paradox_put_html(const stk_paradox *p, char **text, stk_error *err)
{
    stk_text out = {0}, *t = &out;
    stk_html_head(t, "Why can a GPU be slower than a CPU?", "", p->created);
    stk_text_put(t,
                 "<p>The same work twice: as people write it, and cured. Both take turns on this "
                 "machine; gains are ratios of times with their 95 %% interval.</p><ul>");
    for (int32_t i = 0; i < p->ndevices; i++) {
        stk_html_escaped(t, "<li><b>", p->devices[i].name, "</b> ");
        stk_html_escaped(t, "", p->devices[i].detail, p->devices[i].note[0] ? "; " : "");
        stk_html_escaped(t, "", p->devices[i].note, "</li>");
    }
    stk_text_put(t, "</ul>\n");
    put_table(p, t);
    for (int32_t d = 1; d < p->ndevices; d++) put_against(p, d, t);
    put_books(p, t);
    stk_html_foot(t, STK_VERSION);
    return stk_text_finish(t, text, NULL, err);
}
