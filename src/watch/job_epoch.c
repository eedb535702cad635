/* job_epoch.c - what a training does once per epoch: callbacks of epochs, a checkpoint, the data that is held back for validation.
 * None of it belongs into the turns of a probe, which would pay for an epoch's end after a few steps. */
#include "watch/job_train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- callbacks of steps ------------------------------------------------------------------------------------------ */

static stk_callback *real_one(stk_callback *self) { return ((stk_step_callback *)self)->from; }

static stk_status pass_train_begin(stk_callback *self, stk_trainer *t, stk_error *err)
{
    return real_one(self)->train_begin(real_one(self), t, err);
}
static stk_status pass_train_end(stk_callback *self, stk_trainer *t, stk_error *err)
{
    return real_one(self)->train_end(real_one(self), t, err);
}
static stk_status pass_progress(stk_callback *self, stk_trainer *t, const stk_progress *p,
                                stk_error *err)
{
    return real_one(self)->progress(real_one(self), t, p, err);
}
static stk_status pass_batch_end(stk_callback *self, stk_trainer *t, const stk_progress *p,
                                 stk_error *err)
{
    return real_one(self)->batch_end(real_one(self), t, p, err);
}

stk_status stk_train_job_callbacks(stk_train_job *job, stk_error *err)
{
    int32_t n = job->whole.ncallbacks, kept = 0;
    job->steps = stk_calloc((size_t)n + 1, sizeof *job->steps);
    job->step_list = stk_calloc((size_t)n + 1, sizeof(stk_callback *));
    if (!job->steps || !job->step_list) return stk_fail_memory(err, "callbacks", 0);
    for (int32_t i = 0; i < n; i++) {
        stk_callback *c = job->whole.callbacks[i];
        if (!c->batch_end && !c->progress) continue;
        stk_step_callback *s = &job->steps[kept];
        *s = (stk_step_callback){.base = {.name = c->name}, .from = c};
        if (c->train_begin) s->base.train_begin = pass_train_begin;
        if (c->train_end) s->base.train_end = pass_train_end;
        if (c->progress) s->base.progress = pass_progress;
        if (c->batch_end) s->base.batch_end = pass_batch_end;
        job->step_list[kept++] = &s->base;
    }
    job->fit.callbacks = job->step_list;
    job->fit.ncallbacks = kept;
    return STK_OK;
}

/* ---- the end of an epoch ----------------------------------------------------------------------------------------- */

static bool has_epoch_end(const stk_train_job *job)
{
    bool any = job->whole.checkpoint != NULL;
    for (int32_t i = 0; i < job->whole.ncallbacks; i++) {
        const stk_callback *c = job->whole.callbacks[i];
        any |= c->epoch_end != NULL || c->epoch_begin != NULL;
    }
    return any;
}

/* Callbacks may ask for val_loss and the like: they get an epoch of one step with one batch of validation. The checkpoint goes beside the
 * real one, onto the same disk. */
stk_status stk_train_job_epoch_end(void *context, stk_epoch_end *out, stk_error *err)
{
    stk_train_job *job = context;
    stk_fit_options fit = job->whole;
    stk_train_times times;
    char path[4096] = "";
    *out = (stk_epoch_end){0, 0};
    if (!has_epoch_end(job)) return STK_OK;
    fit.epochs = 1;
    fit.initial_epoch = 0;
    fit.steps_per_epoch = fit.validation_steps = fit.validation_every = 1;
    fit.checkpoint_seconds = 0;
    fit.resume = false;
    if (fit.checkpoint) {
        snprintf(path, sizeof path, "%s.doctor", fit.checkpoint);
        fit.checkpoint = path;
    }
    stk_status status = stk_trainer_fit(job->trainer, job->data, &fit, NULL, err);
    stk_trainer_times(job->trainer, &times);
    if (path[0]) unlink(path);
    *out = (stk_epoch_end){.callbacks = times.seconds[STK_SPAN_EPOCH_END],
                           .checkpoint = times.seconds[STK_SPAN_CHECKPOINT]};
    return status;
}

/* ---- validation data ---------------------------------------------------------------------------------------------- */

static stk_status rows_behind(stk_tensor *from, int64_t first, stk_tensor **out, stk_error *err)
{
    int64_t start[STK_MAX_RANK] = {first}, size[STK_MAX_RANK] = {0};
    for (int32_t i = 0; i < from->rank; i++) size[i] = from->shape[i];
    size[0] -= first;
    return stk_tensor_slice(from, start, size, out, err);
}

static stk_status cut_off(stk_train_job *job, stk_error *err)
{
    const stk_train_data *d = job->data;
    int64_t rows = d->x[0]->shape[0];
    int64_t kept = (int64_t)floor((double)rows * (1 - job->whole.validation_split));
    int32_t n = d->nx + d->ny;
    if (kept >= rows || n + 1 > STK_PARTS_MAX) return STK_OK;
    for (int32_t i = 0; i < n; i++)
        STK_TRY(rows_behind(i < d->nx ? d->x[i] : d->y[i - d->nx], kept, &job->split[i], err));
    if (d->weights) STK_TRY(rows_behind(d->weights, kept, &job->split[n], err));
    job->held_back = (stk_train_data){.nx = d->nx,
                                      .x = job->split,
                                      .ny = d->ny,
                                      .y = job->split + d->nx,
                                      .weights = job->split[n]};
    return STK_OK;
}

stk_status stk_train_job_held_back(stk_train_job *job, bool *any, stk_error *err)
{
    if (job->whole.validation)
        job->held_back = *job->whole.validation;
    else if (job->whole.validation_split > 0 && !job->data->dataset)
        STK_TRY(cut_off(job, err));
    *any = job->held_back.dataset || (job->held_back.nx > 0 && job->held_back.x[0]->rank > 0);
    return STK_OK;
}

void stk_train_job_epoch_release(stk_train_job *job)
{
    for (int32_t i = 0; i < STK_PARTS_MAX; i++) stk_tensor_release(job->split[i]);
    stk_free(job->steps);
    stk_free(job->step_list);
}
