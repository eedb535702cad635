/* placement.c - device "auto": every device that may be chosen gets a trainer of its own and one batch; what its program
 * should take is predicted, and the close ones are run by turns. */
#include "stoker/placement.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/spill.h"
#include "device/device.h"
#include "train/placement.h"
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct candidate {
    stk_device *device;
    stk_trainer *trainer;
    stk_batches batches;
    stk_program *program; /* the trainer's */
    stk_step_mode mode;
} candidate;

static bool may_be_chosen(const stk_device_report *d, const char *also)
{
    const char *wish = getenv("STOKER_AUTO");
    return !d->only_by_name || (wish && !strcmp(wish, "any")) || (also && !strcmp(d->name, also));
}

/* ---- candidates ------------------------------------------------------------------------------------------------ */

static void drop(candidate *c)
{
    stk_batches_close(&c->batches);
    stk_trainer_release(c->trainer);
    stk_device_release(c->device);
    *c = (candidate){0};
}

static stk_status make(candidate *c, stk_model *model, const stk_trainer_options *how,
                       const stk_train_data *data, int64_t batch, const stk_calibration *host,
                       stk_forecast *row, stk_error *err)
{
    stk_trainer_options o = *how;
    stk_calibration measured;
    STK_TRY(stk_device_open(row->device, how->threads, &c->device, err));
    STK_TRY(stk_device_calibrate(c->device, false, &measured, err));
    o.device = c->device;
    bool trains = data->dataset ? o.loss != NULL : data->ny > 0;
    c->mode = trains ? STK_STEP_TRAIN : STK_STEP_PREDICT;
    STK_TRY(stk_trainer_new(model, &o, &c->trainer, err));
    stk_batch_options of = stk_trainer_batches(c->trainer, c->mode, batch);
    STK_TRY(stk_batches_open(&c->batches, data, &of, err));
    STK_TRY(stk_batches_begin(&c->batches, 0, 0, err));
    STK_TRY(stk_batches_next(&c->batches, err));
    if (c->batches.end) return stk_fail(err, STK_ERR_ARGUMENT, "no batch to try a step with");
    STK_TRY(stk_trainer_prepare(c->trainer, c->mode, &c->batches, &c->program, err));
    stk_program_stats stats;
    stk_program_describe(c->program, &stats);
    row->launches = stats.launches;
    row->islands = stk_program_islands(c->program, 0, NULL);
    row->predicted = stk_program_predict(c->program, &measured, host);
    return STK_OK;
}

/* ---- trying ------------------------------------------------------------------------------------------------------ */

enum { MOST_TURNS = 25, LEAST_TURNS = 7 };

typedef struct times {
    double seconds[MOST_TURNS];
    int64_t steps; /* of one turn; 0: is not tried */
    int32_t turns;
} times;

static stk_status turn(candidate *c, int64_t steps, double *seconds, stk_error *err)
{
    const stk_queue_vt *queue = &c->device->vt->queue;
    int64_t start = stk_now_ns();
    for (int64_t i = 0; i < steps; i++) {
        STK_TRY(stk_trainer_prepare(c->trainer, c->mode, &c->batches, &c->program, err));
        STK_TRY(stk_program_run(c->program, 1, err));
    }
    STK_TRY(queue->wait(c->device, err));
    *seconds = (double)(stk_now_ns() - start) * 1e-9 / (double)steps;
    return STK_OK;
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void sum_up(times *t, stk_forecast *row)
{
    qsort(t->seconds, (size_t)t->turns, sizeof *t->seconds, by_size);
    row->measured = t->seconds[0];
    row->scatter = (t->seconds[t->turns / 2] - t->seconds[0]) / row->measured;
}

/* A first stretch settles threads and caches and says how many steps make a turn: 8 ms, short enough to fall between two
 * disturbances. Long steps have fewer turns, a quarter of a second of them. */
static stk_status settle(candidate *c, times *t, stk_error *err)
{
    static const double TURN = 0.008, ALL = 0.25;
    double each = 0;
    STK_TRY(turn(c, 1, &each, err));
    int64_t steps = (int64_t)fmin(fmax(0.05 / fmax(each, 1e-7), 2), 2000);
    STK_TRY(turn(c, steps, &each, err));
    t->steps = (int64_t)fmin(fmax(TURN / fmax(each, 1e-7), 1), 5000);
    double turns = ALL / fmax((double)t->steps * each, 1e-7);
    t->turns = (int32_t)fmin(fmax(turns, LEAST_TURNS), MOST_TURNS);
    return STK_OK;
}

static stk_status try_close(candidate *c, double close, stk_placement *p, stk_error *err)
{
    times t[STK_FORECASTS] = {0};
    double best = INFINITY;
    for (int32_t i = 0; i < p->n; i++)
        if (!p->row[i].trouble[0]) best = fmin(best, p->row[i].predicted);
    for (int32_t i = 0; i < p->n; i++)
        if (!p->row[i].trouble[0] && p->row[i].predicted <= close * best)
            STK_TRY(settle(&c[i], &t[i], err));
    for (int k = 0; k < MOST_TURNS; k++)
        for (int32_t i = 0; i < p->n; i++)
            if (k < t[i].turns) STK_TRY(turn(&c[i], t[i].steps, &t[i].seconds[k], err));
    for (int32_t i = 0; i < p->n; i++)
        if (t[i].steps) sum_up(&t[i], &p->row[i]);
    return STK_OK;
}

/* ---- choosing --------------------------------------------------------------------------------------------------- */

static double seconds_of(const stk_forecast *row)
{
    return row->measured > 0 ? row->measured : row->predicted;
}

static stk_status choose(stk_placement *p, stk_error *err)
{
    p->chosen = -1;
    for (int32_t i = 0; i < p->n; i++)
        if (!p->row[i].trouble[0] &&
            (p->chosen < 0 || seconds_of(&p->row[i]) < seconds_of(&p->row[p->chosen])))
            p->chosen = i;
    if (p->chosen < 0)
        return stk_fail(err, STK_ERR_DEVICE, "auto: no device can run this model; %s: %s",
                        p->n ? p->row[0].device : "none", p->n ? p->row[0].trouble : "");
    const stk_forecast *best = &p->row[p->chosen];
    for (int32_t i = 0; i < p->n; i++) {
        const stk_forecast *row = &p->row[i];
        if (i == p->chosen || row->trouble[0]) continue;
        double margin = seconds_of(row) / fmax(seconds_of(best), 1e-12);
        if (p->margin == 0 || margin < p->margin) p->margin = margin;
        if (row->measured > 0 && margin - 1 < row->scatter + best->scatter) p->uncertain = true;
    }
    return STK_OK;
}

/* What islands of other devices take there. */
static stk_status calibrate_host(int32_t threads, stk_calibration *out, stk_error *err)
{
    stk_device *host = NULL;
    STK_TRY(stk_device_open("cpu:0", threads, &host, err));
    stk_status status = stk_device_calibrate(host, false, out, err);
    stk_device_release(host);
    return status;
}

stk_status stk_place_training(stk_model *model, const stk_trainer_options *how,
                              const stk_train_data *data, int64_t batch, stk_placement *out,
                              stk_error *err)
{
    static const stk_place_rules rules = {.close = 4};
    return stk_place_among(model, how, data, batch, &rules, out, err);
}

stk_status stk_place_among(stk_model *model, const stk_trainer_options *how,
                           const stk_train_data *data, int64_t batch, const stk_place_rules *rules,
                           stk_placement *out, stk_error *err)
{
    if (!model || !how || !data || !out)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_place_training: model, options, data and out must be given");
    stk_device_report list[STK_FORECASTS];
    candidate c[STK_FORECASTS] = {0};
    int32_t n = 0;
    *out = (stk_placement){0};
    STK_TRY(stk_device_list(STK_FORECASTS, list, &n, err));
    for (int32_t i = 0; i < n; i++)
        if (may_be_chosen(&list[i], rules->also))
            snprintf(out->row[out->n++].device, sizeof out->row->device, "%s", list[i].name);
    stk_calibration host;
    stk_status status = out->n > 1 ? calibrate_host(how->threads, &host, err) : STK_OK;
    for (int32_t i = 0; status == STK_OK && i < out->n && out->n > 1;
         i++) { /* a lone one is taken without asking */
        stk_error why;
        stk_forecast *row = &out->row[i];
        if (make(&c[i], model, how, data, batch, &host, row, &why) != STK_OK)
            snprintf(row->trouble, sizeof row->trouble, "%.255s", why.message);
    }
    if (status == STK_OK && out->n > 1) status = try_close(c, rules->close, out, err);
    if (status == STK_OK) status = choose(out, err);
    for (int32_t i = 0; i < out->n; i++) drop(&c[i]);
    return status;
}

stk_status stk_trainer_compile(stk_trainer *t, const stk_train_data *data, int64_t batch,
                               stk_program **p, stk_error *err)
{
    if (!t || !data || !p)
        return stk_fail(
            err, STK_ERR_ARGUMENT,
            "stk_trainer_compile: trainer, data and a place for the program are needed");
    stk_batches b = {0};
    stk_batch_options of = stk_trainer_batches(t, STK_STEP_TRAIN, batch);
    STK_TRY(stk_batches_open(&b, data, &of, err));
    stk_status status = stk_batches_begin(&b, 0, 0, err);
    if (status == STK_OK) status = stk_batches_next(&b, err);
    if (status == STK_OK && b.end)
        status = stk_fail(err, STK_ERR_ARGUMENT, "no data: there is no batch");
    if (status == STK_OK) status = stk_trainer_prepare(t, STK_STEP_TRAIN, &b, p, err);
    stk_batches_close(&b);
    return status;
}

char *stk_placement_line(const stk_placement *p, char *text, size_t size)
{
    const stk_forecast *best = &p->row[p->chosen];
    if (p->margin == 0)
        snprintf(text, size, "%s: the only device to choose", best->device);
    else
        snprintf(text, size,
                 "%s: %s%.2fx faster than the next (step predicted %.3g ms, measured %.3g)",
                 best->device, p->uncertain ? "uncertain, " : "", p->margin, best->predicted * 1e3,
                 best->measured * 1e3);
    return text;
}

stk_status stk_trainer_placement(const stk_trainer *t, char **text, stk_error *err)
{
    if (!t || !text || !t->last)
        return stk_fail(err, STK_ERR_STATE, "stk_trainer_placement: nothing has run yet");
    STK_TRY(stk_program_placement(t->last, text, err));
    if (!t->resident_bytes) return STK_OK;
    char line[160];
    snprintf(line, sizeof line, "data: %s live on %s; only the numbers of rows go up\n",
             STK_BYTES_TEXT((double)t->resident_bytes), stk_device_name(t->device));
    size_t size = strlen(line) + strlen(*text) + 1;
    char *both = stk_malloc(size);
    if (both) snprintf(both, size, "%s%s", line, *text);
    stk_text_free(*text);
    *text = both;
    return both ? STK_OK : stk_fail_memory(err, "stk_trainer_placement", size);
}
