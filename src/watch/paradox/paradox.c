/* paradox.c - measures every experiment on every device: two contenders take turns, then each runs with its books open. */
#include "watch/paradox/paradox.h"

#include "base/clock.h"
#include "base/memory.h"
#include "watch/probe.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const stk_experiment experiments[] = {
#define STK_EXPERIMENT(id, open, name, per, units, math, written, cured, cause, cure)              \
    {{id, name, per, written, cured, cause, cure, math}, units, stk_paradox_##open},
#include "watch/paradox/experiments.def"
};
enum { EXPERIMENTS = sizeof experiments / sizeof *experiments };

const stk_experiment *stk_experiment_at(int32_t i)
{
    return i >= 0 && i < EXPERIMENTS ? &experiments[i] : NULL;
}
int32_t stk_paradox_row_count(void) { return EXPERIMENTS; }
stk_paradox_row stk_paradox_row_at(int32_t i)
{
    const stk_experiment *e = stk_experiment_at(i);
    return e ? e->row : (stk_paradox_row){"", "", "", "", "", "", "", false};
}

stk_paradox_options stk_paradox_options_defaults(void)
{
    return (stk_paradox_options){.seconds = 30};
}

int32_t stk_paradox_device_count(const stk_paradox *p) { return p ? p->ndevices : 0; }
const stk_device_report *stk_paradox_device(const stk_paradox *p, int32_t i)
{
    return p && i >= 0 && i < p->ndevices ? &p->devices[i] : NULL;
}
int32_t stk_paradox_cell_count(const stk_paradox *p) { return p ? p->ncells : 0; }
const stk_paradox_cell *stk_paradox_cell_at(const stk_paradox *p, int32_t i)
{
    return p && i >= 0 && i < p->ncells ? &p->cells[i] : NULL;
}
void stk_paradox_release(stk_paradox *p) { stk_free(p); }

int32_t stk_paradox_together(const stk_paradox *p, int32_t at)
{
    int32_t n = 0;
    while (at + n < p->ncells && p->cells[at + n].row == p->cells[at].row) n++;
    return n;
}

/* ---- one pair on one device ------------------------------------------------------------------------------------ */

typedef struct session { /* what goes on */
    const stk_paradox_options *options;
    double begun, planned, told;
    char doing[96];
} session;

static stk_status ask_to_go_on(session *s, stk_error *err)
{
    static const double PAUSE = 0.1;
    double now = stk_seconds_now();
    if (!s->options->progress || now < s->told + PAUSE) return STK_OK;
    s->told = now;
    double share = fmin(1, (now - s->begun) / s->planned);
    if (s->options->progress(s->options->context, share, s->doing)) return STK_OK;
    return stk_fail(err, STK_ERR_CANCELLED, "interrupted while measuring; nothing was written");
}

static stk_status run_contender(void *context, void *variant, int64_t steps, stk_error *err)
{
    stk_contender *c = variant;
    STK_TRY(ask_to_go_on(context, err));
    return c->run(c->self, steps, err);
}

static const char *judge(stk_gain g)
{
    static const double NARROW = 1.15;
    if (g.low > 1) return "faster";
    if (g.high < 1) return "slower";
    return g.high / g.low < NARROW ? "no difference" : "too noisy";
}

/* Shares of the books, from some steps more. */
static stk_status book(const stk_variant *v, stk_paradox_side *out, stk_error *err)
{
    enum { LEAST = 8, MOST = 2000 };
    static const double SECONDS = 0.08;
    stk_contender *c = v->variant;
    stk_watch_settings how = stk_watch_settings_defaults();
    stk_watch *watch = NULL;
    stk_report *r = NULL;
    how.no_roofline = true;
    int64_t steps = (int64_t)(SECONDS / fmax(v->step_seconds, 1e-9));
    steps = stk_max_i64(LEAST, stk_min_i64(steps, c->booked ? c->booked : MOST));
    STK_TRY(stk_watch_start(&how, &watch, err));
    stk_status status = c->run(c->self, steps, err);
    stk_status stopped = stk_watch_stop(watch, &r, status == STK_OK ? err : NULL);
    if (status == STK_OK) status = stopped;
    if (status != STK_OK) {
        stk_report_release(r);
        return status;
    }
    double wall = stk_report_seconds(r, STK_BOOK_COUNT);
    for (int b = 0; b < STK_BOOK_COUNT && wall > 0; b++) out->book[b] = r->book[b] / wall;
    if (c->builds) {
        out->book[STK_BOOK_BUILD] += out->book[STK_BOOK_RESIDUAL];
        out->book[STK_BOOK_RESIDUAL] = 0;
    }
    stk_report_release(r);
    return STK_OK;
}

static stk_status measure(session *s, const stk_experiment *e, stk_contender c[2], double seconds,
                          stk_paradox_cell *cell, stk_error *err)
{
    enum { AS_WRITTEN, CURED };
    stk_job job = {.context = s, .run = run_contender};
    stk_doctor_options how = stk_doctor_options_defaults();
    how.seconds = seconds;
    stk_prober p = stk_prober_of(&job, &how);
    stk_variant v[2];
    stk_turns turns;
    for (int i = 0; i < 2; i++)
        v[i] = (stk_variant){.variant = &c[i],
                             .settings = stk_job_settings_defaults(),
                             .batch = c[i].units,
                             .ahead = c[i].ahead};
    STK_TRY(stk_variants_compare(&p, &v[AS_WRITTEN], &v[CURED],
                                 (stk_care){.narrow = 0.05, .seconds = seconds}, &cell->gain,
                                 &turns, err));
    cell->judged = judge(cell->gain);
    cell->written.seconds = turns.median * e->per;
    cell->cured.seconds = cell->written.seconds / cell->gain.best;
    snprintf(cell->note, sizeof cell->note, "%s", c[AS_WRITTEN].note);
    STK_TRY(book(&v[AS_WRITTEN], &cell->written, err));
    return book(&v[CURED], &cell->cured, err);
}

/* A device that lacks something loses its cell, not the whole table. */
static stk_status run_cell(session *s, stk_device *device, double seconds, stk_paradox_cell *cell,
                           stk_error *err)
{
    const stk_experiment *e = &experiments[cell->row];
    stk_contender c[2] = {{0}};
    snprintf(s->doing, sizeof s->doing, "%s on %s", e->row.id, stk_device_name(device));
    STK_TRY(ask_to_go_on(s, err));
    stk_status status = STK_OK;
    for (int i = 0; i < 2 && status == STK_OK; i++) {
        status = e->open(device, i == 1, &c[i], err);
        if (status != STK_OK) c[i] = (stk_contender){0};
    }
    if (status == STK_OK) status = measure(s, e, c, seconds, cell, err);
    for (int i = 0; i < 2; i++)
        if (c[i].close) c[i].close(c[i].self);
    if (status == STK_OK || status == STK_ERR_CANCELLED || status == STK_ERR_MEMORY) return status;
    *cell = (stk_paradox_cell){.row = cell->row, .device = cell->device, .judged = "failed"};
    snprintf(cell->trouble, sizeof cell->trouble, "%s", err ? err->message : "it failed");
    return STK_OK;
}

/* ---- what was asked for ------------------------------------------------------------------------------------------ */

/* "3" takes every row of cause 3, "1b" that row. */
static bool names_row(const char *word, size_t length, const char *id)
{
    return length > 0 && !strncmp(word, id, length) &&
           (!id[length] || isalpha((unsigned char)id[length]));
}

static stk_status choose_rows(const char *only, bool chosen[EXPERIMENTS], stk_error *err)
{
    for (int i = 0; i < EXPERIMENTS; i++) chosen[i] = !only || !*only;
    while (only && *only) {
        size_t length = strcspn(only, ", ");
        bool known = length == 0;
        for (int i = 0; i < EXPERIMENTS; i++)
            if (names_row(only, length, experiments[i].row.id)) chosen[i] = known = true;
        if (!known) {
            char list[128] = "";
            for (int i = 0, used = 0; i < EXPERIMENTS; i++)
                used += snprintf(list + used, sizeof list - (size_t)used, "%s%s", i ? ", " : "",
                                 experiments[i].row.id);
            return stk_fail(
                err, STK_ERR_ARGUMENT,
                "there is no experiment '%.*s'; there are %s, and 1, 5, 6 for both of a kind",
                (int)length, only, list);
        }
        only += length + (only[length] != '\0');
    }
    return STK_OK;
}

/* A CPU behind OpenCL is nothing that somebody who bought a card wants to see beside it. */
static bool is_shown(const stk_device_report *d)
{
    return !d->only_by_name || !strncmp(d->name, "apart", 5);
}

static stk_status choose_devices(const stk_paradox_options *o, stk_paradox *p, stk_device **open,
                                 stk_error *err)
{
    stk_device_report list[4 * STK_PARADOX_DEVICES];
    int32_t n = 0;
    for (int32_t i = 0; i < o->ndevices && p->ndevices < STK_PARADOX_DEVICES; i++) {
        STK_TRY(stk_device_open(o->devices[i], 0, &open[p->ndevices], err));
        stk_device_describe(open[p->ndevices], &p->devices[p->ndevices]);
        p->ndevices++;
    }
    if (o->ndevices) return STK_OK;
    STK_TRY(stk_device_list(4 * STK_PARADOX_DEVICES, list, &n, err));
    for (int32_t i = 0; i < n && p->ndevices < STK_PARADOX_DEVICES; i++) {
        if (!is_shown(&list[i])) continue;
        STK_TRY(stk_device_open(list[i].name, 0, &open[p->ndevices], err));
        p->devices[p->ndevices++] = list[i];
    }
    return STK_OK;
}

/* ---- all of it ------------------------------------------------------------------------------------------------------ */

static stk_status run_rows(session *s, stk_paradox *p, stk_device *const *open, const bool *chosen,
                           double each, stk_error *err)
{
    for (int32_t row = 0; row < EXPERIMENTS; row++) {
        stk_paradox_cell *first = &p->cells[p->ncells];
        if (!chosen[row]) continue;
        for (int32_t d = 0; d < p->ndevices; d++) {
            stk_paradox_cell *cell = &p->cells[p->ncells];
            *cell = (stk_paradox_cell){.row = row, .device = d, .judged = ""};
            STK_TRY(run_cell(s, open[d], each, cell, err));
            p->ncells++;
        }
        if (s->options->row) s->options->row(s->options->context, p, first, p->ndevices);
    }
    return STK_OK;
}

stk_status stk_paradox_run(const stk_paradox_options *options, stk_paradox **out, stk_error *err)
{
    static const double LONGEST = 4,
                        ASIDE = 0.6; /* seconds of a cell: measuring; making and booking */
    bool chosen[EXPERIMENTS];
    stk_device *open[STK_PARADOX_DEVICES] = {0};
    stk_paradox_options o = options ? *options : stk_paradox_options_defaults();
    if (!out) return stk_fail(err, STK_ERR_ARGUMENT, "stk_paradox_run: out is NULL");
    *out = NULL;
    if (!(o.seconds > 0)) o.seconds = stk_paradox_options_defaults().seconds;
    STK_TRY(choose_rows(o.only, chosen, err));
    stk_paradox *p = stk_calloc(1, sizeof *p);
    if (!p) return stk_fail_memory(err, "a table of experiments", sizeof *p);
    stk_status status = choose_devices(&o, p, open, err);
    int rows = 0;
    for (int i = 0; i < EXPERIMENTS; i++) rows += chosen[i];
    double each = fmin(o.seconds / fmax(rows, 1), LONGEST);
    session s = {.options = &o,
                 .begun = stk_seconds_now(),
                 .planned = (each + ASIDE) * rows * fmax(p->ndevices, 1)};
    p->created = (int64_t)time(NULL);
    if (status == STK_OK) status = run_rows(&s, p, open, chosen, each, err);
    p->seconds = stk_seconds_now() - s.begun;
    for (int i = 0; i < STK_PARADOX_DEVICES; i++) stk_device_release(open[i]);
    if (status == STK_OK)
        *out = p;
    else
        stk_paradox_release(p);
    return status;
}
