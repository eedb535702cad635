/* tell.c - the experiments as text and as JSON. */
#include "watch/paradox/paradox.h"

#include "base/json.h"
#include "watch/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 100, INDENT = 5 };

/* ---- pieces ---------------------------------------------------------------------------------------------------------- */

static int digits_of(double times) { return times < 9.995 ? 2 : times < 99.95 ? 1 : 0; }

char *stk_paradox_times_text(double times, char text[24])
{
    double n = times >= 1 ? times : 1 / times;
    snprintf(text, 24, "%.*fx %s", digits_of(n), n, times >= 1 ? "slower" : "faster");
    return text;
}

char *stk_paradox_books_line(const stk_paradox_side *s, char *text, size_t room)
{
    stk_budget b = {.total = 1};
    memcpy(b.seconds, s->book, sizeof b.seconds);
    return stk_budget_line(&b, text, room);
}

char *stk_paradox_gain_text(const stk_paradox_cell *c, char text[48])
{
    int digits = digits_of(c->gain.best);
    if (c->trouble[0])
        snprintf(text, 48, "%s", c->judged);
    else
        snprintf(text, 48, "%.*fx (%.*f-%.*f)%s%s", digits, c->gain.best, digits, c->gain.low,
                 digits, c->gain.high, c->gain.low > 1 ? "" : " ",
                 c->gain.low > 1 ? "" : c->judged);
    return text;
}

bool stk_paradox_against(const stk_paradox_cell *a, const stk_paradox_cell *b, double *written,
                         double *cured)
{
    if (a->trouble[0] || b->trouble[0] || !(a->written.seconds > 0) || !(a->cured.seconds > 0))
        return false;
    *written = b->written.seconds / a->written.seconds;
    *cured = b->cured.seconds / a->cured.seconds;
    return true;
}

static void put_wrapped(stk_text *t, const char *word, const char *text)
{
    stk_text_put(t, "%*s%-7s", INDENT, "", word);
    stk_text_wrap(t, text, INDENT + 7, COLUMNS);
}

/* ---- text --------------------------------------------------------------------------------------------------------------- */

static void put_head(const stk_paradox *p, stk_text *t)
{
    stk_text_put(
        t, "Why can a GPU be slower than a CPU? The same work twice, measured by turns on:\n");
    for (int32_t i = 0; i < p->ndevices; i++) {
        const stk_device_report *d = &p->devices[i];
        char line[400];
        snprintf(line, sizeof line, "%s%s%s", d->detail, d->note[0] ? "; " : "", d->note);
        stk_text_put(t, "  %-9s ", d->name);
        stk_text_wrap(t, line, 12, COLUMNS);
    }
    stk_text_put(t, "\n     %-36s %11s %11s   %s\n", "experiment", "as written", "cured", "gain");
}

static void put_cell(const stk_paradox *p, const stk_paradox_cell *c, stk_text *t)
{
    char where[96], a[24], b[24], gain[48];
    stk_paradox_row row = stk_paradox_row_at(c->row);
    snprintf(where, sizeof where, "%s, per %s", p->devices[c->device].name, row.per);
    if (c->trouble[0]) {
        char line[400];
        snprintf(line, sizeof line, "%s: %s", where, c->trouble);
        stk_text_put(t, "%*s", INDENT, "");
        stk_text_wrap(t, line, INDENT + 2, COLUMNS);
        return;
    }
    stk_text_put(t, "%*s%-36s %11s %11s   %s\n", INDENT, "", where,
                 stk_time_text(c->written.seconds, a), stk_time_text(c->cured.seconds, b),
                 stk_paradox_gain_text(c, gain));
}

static void put_books(const stk_paradox *p, const stk_paradox_cell *c, bool named, stk_text *t)
{
    char a[160], b[160], line[400];
    if (c->trouble[0]) return;
    stk_paradox_books_line(&c->written, a, sizeof a);
    stk_paradox_books_line(&c->cured, b, sizeof b);
    if (!a[0] && !b[0]) return;
    snprintf(line, sizeof line, "%s%s%s; cured: %s", named ? p->devices[c->device].name : "",
             named ? ": " : "", a, b);
    put_wrapped(t, "books", line);
    if (c->note[0]) put_wrapped(t, "start", c->note);
}

static void put_row(const stk_paradox *p, const stk_paradox_cell *cells, int32_t n, stk_text *t)
{
    stk_paradox_row row = stk_paradox_row_at(cells[0].row);
    char pair[256];
    stk_text_put(t, "%-*s%s%s\n", INDENT, row.id, row.name,
                 row.changes_mathematics ? " (changes the mathematics)" : "");
    for (int32_t i = 0; i < n; i++) put_cell(p, &cells[i], t);
    snprintf(pair, sizeof pair, "%s; cured: %s", row.written, row.cured);
    put_wrapped(t, "what", pair);
    for (int32_t i = 0; i < n; i++) put_books(p, &cells[i], n > 1, t);
    put_wrapped(t, "cause", row.cause);
    put_wrapped(t, "cure", row.cure);
}

/* Another device beside the first one: the paradox itself, and what is left of it. */
static void put_against(const stk_paradox *p, int32_t device, stk_text *t)
{
    stk_text_put(t, "\n%s beside %s:\n", p->devices[device].name, p->devices[0].name);
    for (int32_t i = 0; i < p->ncells; i += stk_paradox_together(p, i)) {
        double written, cured;
        char a[24], b[24];
        stk_paradox_row row = stk_paradox_row_at(p->cells[i].row);
        if (!stk_paradox_against(&p->cells[i], &p->cells[i + device], &written, &cured)) continue;
        stk_text_put(t, "  %-3s%-42s %s as written, %s cured\n", row.id, row.name,
                     stk_paradox_times_text(written, a), stk_paradox_times_text(cured, b));
    }
}

static bool has_gpu(const stk_paradox *p)
{
    bool found = false;
    for (int32_t i = 0; i < p->ndevices; i++)
        found |= !strncmp(p->devices[i].name, "gpu", 3) && !p->devices[i].only_by_name;
    return found;
}

static void put_foot(const stk_paradox *p, stk_text *t)
{
    for (int32_t d = 1; d < p->ndevices; d++) put_against(p, d, t);
    stk_text_put(t, "\n%.0f s. Gains are ratios of times with their 95 %% interval.", p->seconds);
    if (!has_gpu(p))
        stk_text_put(
            t, " There is no GPU among these devices;\n`stoker what-if` tells what a card would do "
               "(a model).");
    stk_text_put(t, "\n`stoker doctor` looks for the same causes in your own training.\n");
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------------ */

static void json_side(stk_json_writer *w, const char *name, const stk_paradox_side *s)
{
    stk_json_name(w, name);
    stk_json_begin_object(w);
    stk_json_member_double(w, "seconds", s->seconds);
    stk_json_name(w, "books");
    stk_json_begin_object(w);
    for (int b = 0; b < STK_BOOK_COUNT; b++)
        if (s->book[b] > 0) stk_json_member_double(w, stk_book_name((stk_book)b), s->book[b]);
    stk_json_end_object(w);
    stk_json_end_object(w);
}

static void json_cell(stk_json_writer *w, const stk_paradox *p, const stk_paradox_cell *c)
{
    stk_json_begin_object(w);
    stk_json_member_text(w, "device", p->devices[c->device].name);
    stk_json_member_text(w, "judged", c->judged);
    if (c->trouble[0]) {
        stk_json_member_text(w, "trouble", c->trouble);
    } else {
        json_side(w, "as_written", &c->written);
        json_side(w, "cured", &c->cured);
        stk_json_name(w, "gain");
        stk_json_begin_object(w);
        stk_json_member_double(w, "best", c->gain.best);
        stk_json_member_double(w, "low", c->gain.low);
        stk_json_member_double(w, "high", c->gain.high);
        stk_json_end_object(w);
        if (c->note[0]) stk_json_member_text(w, "note", c->note);
    }
    stk_json_end_object(w);
}

static void json_row(stk_json_writer *w, const stk_paradox *p, int32_t at, int32_t n)
{
    stk_paradox_row row = stk_paradox_row_at(p->cells[at].row);
    stk_json_begin_object(w);
    stk_json_member_text(w, "id", row.id);
    stk_json_member_text(w, "name", row.name);
    stk_json_member_text(w, "per", row.per);
    stk_json_member_text(w, "written", row.written);
    stk_json_member_text(w, "cured", row.cured);
    stk_json_member_text(w, "cause", row.cause);
    stk_json_member_text(w, "cure", row.cure);
    stk_json_name(w, "changes_mathematics");
    stk_json_put_bool(w, row.changes_mathematics);
    stk_json_name(w, "devices");
    stk_json_begin_array(w);
    for (int32_t i = 0; i < n; i++) json_cell(w, p, &p->cells[at + i]);
    stk_json_end_array(w);
    stk_json_end_object(w);
}

static void json_devices(stk_json_writer *w, const stk_paradox *p)
{
    stk_json_name(w, "devices");
    stk_json_begin_array(w);
    for (int32_t i = 0; i < p->ndevices; i++) {
        stk_json_begin_object(w);
        stk_json_member_text(w, "name", p->devices[i].name);
        stk_json_member_text(w, "detail", p->devices[i].detail);
        stk_json_member_text(w, "note", p->devices[i].note);
        stk_json_end_object(w);
    }
    stk_json_end_array(w);
}

static stk_status put_json(const stk_paradox *p, char **text, stk_error *err)
{
    stk_json_writer w = {.indent = 2};
    stk_json_begin_object(&w);
    stk_json_name(&w, "stoker_paradox");
    stk_json_put_int(&w, 1);
    stk_json_member_text(&w, "version", STK_VERSION);
    stk_json_name(&w, "created");
    stk_json_put_int(&w, p->created);
    stk_json_member_double(&w, "seconds", p->seconds);
    json_devices(&w, p);
    stk_json_name(&w, "rows");
    stk_json_begin_array(&w);
    for (int32_t i = 0, n; i < p->ncells; i += n) {
        n = stk_paradox_together(p, i);
        json_row(&w, p, i, n);
    }
    stk_json_end_array(&w);
    stk_json_end_object(&w);
    return stk_json_finish(&w, text, NULL, err);
}

/* ---- doors -------------------------------------------------------------------------------------------------------------------- */

stk_status stk_paradox_head(const stk_paradox *p, char **text, stk_error *err)
{
    stk_text t = {0};
    if (!p || !text) return stk_fail(err, STK_ERR_ARGUMENT, "stk_paradox_head: nothing to tell");
    put_head(p, &t);
    return stk_text_finish(&t, text, NULL, err);
}

stk_status stk_paradox_lines(const stk_paradox *p, const stk_paradox_cell *cells, int32_t n,
                             char **text, stk_error *err)
{
    stk_text t = {0};
    if (!p || !text || !cells || n < 1)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_paradox_lines: nothing to tell");
    put_row(p, cells, n, &t);
    return stk_text_finish(&t, text, NULL, err);
}

stk_status stk_paradox_foot(const stk_paradox *p, char **text, stk_error *err)
{
    stk_text t = {0};
    if (!p || !text) return stk_fail(err, STK_ERR_ARGUMENT, "stk_paradox_foot: nothing to tell");
    put_foot(p, &t);
    return stk_text_finish(&t, text, NULL, err);
}

stk_status stk_paradox_render(const stk_paradox *p, stk_report_kind kind, char **text,
                              stk_error *err)
{
    if (!p || !text || kind > STK_REPORT_HTML)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_paradox_render: something measured, text, and one of text, JSON, HTML "
                        "must be given");
    if (kind == STK_REPORT_JSON) return put_json(p, text, err);
    if (kind == STK_REPORT_HTML) return stk_paradox_put_html(p, text, err);
    stk_text t = {0};
    put_head(p, &t);
    for (int32_t i = 0, n; i < p->ncells; i += n) {
        n = stk_paradox_together(p, i);
        put_row(p, &p->cells[i], n, &t);
    }
    put_foot(p, &t);
    return stk_text_finish(&t, text, NULL, err);
}

stk_status stk_paradox_save(const stk_paradox *p, const char *path, stk_error *err)
{
    char *text = NULL;
    if (!path) return stk_fail(err, STK_ERR_ARGUMENT, "stk_paradox_save: the path is NULL");
    STK_TRY(stk_paradox_render(p, STK_REPORT_HTML, &text, err));
    stk_status status = stk_report_save_text(path, text, strlen(text), err);
    stk_free(text);
    return status;
}
