/* devices.c - the same step elsewhere: tried on the devices of this machine, by the model on cards that are not here.
 *
 * Which batch makes a device win follows from two predictions each: time = fixed + per example * batch. Both lines are moved to what
 * was measured at the job's own batch; where they cross is the batch. */
#include "watch/rules.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const USUAL_CARDS[] = {"t4", "a100", "rtx3080ti", "rtx4090", "irisxe"};
enum { ROOM = STK_FORECASTS + 64 };

static stk_status add_row(stk_report *r, const char *name, const char *kind, double low,
                          double high, const char *note, stk_error *err)
{
    const char *name_kept = stk_arena_strdup(&r->arena, name);
    const char *note_kept = stk_arena_strdup(&r->arena, note);
    if (!name_kept || !note_kept) return stk_fail_memory(err, "devices", 0);
    if (r->ndevices < ROOM)
        r->devices[r->ndevices++] = (stk_device_row){name_kept, kind, low, high, note_kept};
    return STK_OK;
}

/* ---- of this machine ------------------------------------------------------------------------------------------ */

static const stk_forecast *find(const stk_placement *p, const char *device)
{
    for (int32_t i = 0; i < p->n; i++)
        if (!strcmp(p->row[i].device, device) && !p->row[i].trouble[0]) return &p->row[i];
    return NULL;
}

typedef struct line { /* seconds of a step over its batch */
    double fixed, each;
} line;

static line line_through(const stk_forecast *a, int64_t batch, const stk_forecast *b, int64_t other)
{
    double scale = a->measured > 0 ? a->measured / a->predicted : 1;
    double each = (b->predicted - a->predicted) / (double)(other - batch);
    return (line){scale * (a->predicted - each * (double)batch), scale * each};
}

int64_t stk_batch_to_win(const stk_job *job, const stk_placement *here, const char *device)
{
    static const double BEYOND = 1e6; /* nobody trains with such batches */
    stk_placement larger;
    stk_error ignored;
    int64_t batch = job->batch, other = 8 * batch;
    while (other >= 2 * batch && job->devices(job->context, other, false, &larger, &ignored))
        other /= 2;
    if (other < 2 * batch) return 0;
    const stk_forecast *cpu = find(here, "cpu:0"), *cpu_more = find(&larger, "cpu:0");
    const stk_forecast *it = find(here, device), *it_more = find(&larger, device);
    if (!cpu || !cpu_more || !it || !it_more) return 0;
    line c = line_through(cpu, batch, cpu_more, other), d = line_through(it, batch, it_more, other);
    double cross = c.each > d.each ? (d.fixed - c.fixed) / (c.each - d.each) : INFINITY;
    return cross > (double)batch && cross < BEYOND ? (int64_t)ceil(cross) : 0;
}

static stk_gain gain_of(const stk_forecast *slow, const stk_forecast *fast)
{
    double best = slow->measured / fast->measured, scatter = slow->scatter + fast->scatter;
    return (stk_gain){best, best / (1 + scatter), best * (1 + scatter)};
}

/* After steps, by functions of its own. */
static bool asks_for_results(const stk_job *job)
{
    return job->knob[STK_KNOB_CALLBACK_EVERY].offered || job->knob[STK_KNOB_READ_EVERY].offered;
}

static stk_status add_other(const stk_job *job, const stk_placement *p, const stk_forecast *row,
                            const char *own, stk_report *r, stk_findings *f, stk_error *err)
{
    const stk_forecast *cpu = find(p, "cpu:0");
    char note[64] = "";
    if (cpu && row != cpu) {
        stk_gain slower = gain_of(row, cpu);
        int64_t from = slower.low > 1 ? stk_batch_to_win(job, p, row->device) : 0;
        if (slower.low > 1 && from > 0)
            snprintf(note, sizeof note, "%.3gx slower; ahead from batch %lld", slower.best,
                     (long long)from);
        else
            snprintf(note, sizeof note, "%.3gx as fast as cpu:0%s", 1 / slower.best,
                     slower.low > 1 ? ", at any batch" : "");
        if (!strcmp(own, row->device)) {
            f->cpu_gain = slower;
            f->cpu_until = from;
            if (!asks_for_results(job)) f->undisturbed = row->measured * (1 + row->scatter);
        }
        if (!strcmp(own, "cpu:0") && slower.high < 1) f->device_faster = true;
    }
    return add_row(r, row->device, "tried", row->measured, row->measured * (1 + row->scatter), note,
                   err);
}

/* What cannot be tried is not compared: a device that fails is no reason to say nothing about the job. */
static stk_status try_devices(const stk_job *job, const char *own, stk_report *r, stk_findings *f,
                              stk_error *err)
{
    stk_placement p;
    stk_error ignored;
    if (!job->devices || job->devices(job->context, job->batch, true, &p, &ignored) != STK_OK)
        return STK_OK;
    for (int32_t i = 0; i < p.n && p.n > 1; i++)
        if (p.row[i].measured > 0) STK_TRY(add_other(job, &p, &p.row[i], own, r, f, err));
    return STK_OK;
}

/* ---- cards ------------------------------------------------------------------------------------------------------ */

static stk_status add_cards(const stk_doctor_options *o, const stk_work *work, stk_report *r,
                            stk_findings *f, stk_error *err)
{
    static const char *const notes[] = {"the CPU is faster", "uncertain", "faster"};
    const char *const *cards = o->cards ? o->cards : USUAL_CARDS;
    int32_t n = o->cards ? o->ncards : (int32_t)(sizeof USUAL_CARDS / sizeof *USUAL_CARDS);
    for (int32_t i = 0; i < n; i++) {
        stk_what_if x;
        STK_TRY(stk_what_if_card(cards[i], work, &x, err));
        STK_TRY(
            add_row(r, x.card, "model", x.low_seconds, x.high_seconds, notes[x.verdict + 1], err));
        f->cards++;
        f->cards_faster += x.verdict > 0;
        f->cards_slower += x.verdict < 0;
    }
    return STK_OK;
}

stk_status stk_compare_devices(const stk_job *job, const stk_doctor_options *options, stk_report *r,
                               stk_findings *f, stk_error *err)
{
    stk_work work;
    if (stk_report_work(r, &work, NULL) != STK_OK) return STK_OK;
    const char *own = stk_report_device(r);
    char title[96];
    snprintf(title, sizeof title, "%s, model alone", own);
    r->devices = stk_arena_array(&r->arena, ROOM, sizeof *r->devices);
    if (!r->devices) return stk_fail_memory(err, "devices", 0);
    STK_TRY(add_row(r, title, "measured", work.cpu_seconds, work.cpu_seconds,
                    "books without input, callbacks", err));
    STK_TRY(try_devices(job, own, r, f, err));
    return add_cards(options, &work, r, f, err);
}
