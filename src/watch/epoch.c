/* epoch.c - the books of an epoch: its steps, its validation, and what is done once at its end. */
#include "watch/epoch.h"

#include "base/cpus.h"

#include <math.h>

double stk_epoch_seconds(const stk_epoch_rows *e)
{
    return e->training + e->validation + e->callbacks + e->checkpoint;
}

stk_gain stk_epoch_gain(const stk_epoch_rows *e, double part, stk_gain gain)
{
    double share = part / fmax(stk_epoch_seconds(e), 1e-12);
    double of[3] = {gain.best, gain.low, gain.high}, out[3];
    for (int i = 0; i < 3; i++) out[i] = 1 / (1 - share + share / fmax(of[i], 1e-6));
    return (stk_gain){out[0], out[1], out[2]};
}

/* The validation takes turns like any job, without what belongs to the steps of the training. */
static stk_prober prober_of(const stk_prober *p)
{
    stk_prober v = *p;
    v.job = p->job->validation;
    v.period = 1;
    v.never_waits = false;
    return v;
}

static stk_status measure_validation(stk_prober *p, stk_epoch_rows *e, stk_error *err)
{
    const stk_job *job = p->job;
    stk_prober v = prober_of(p);
    stk_variant variant = {0};
    stk_job_settings as_is = stk_job_settings_defaults();
    double first = 0, second = 0;
    if (!job->validation || job->validation_steps < 1) return STK_OK;
    stk_prober_tell(p, "validation");
    stk_status status = stk_variant_open(&v, &as_is, &variant, err);
    if (status == STK_OK) status = stk_variant_turn(&v, &variant, &first, err);
    if (status == STK_OK) status = stk_variant_turn(&v, &variant, &second, err);
    e->validation_steps = job->validation_steps;
    e->validation_every = stk_max_i64(job->validation_every, 1);
    e->validation = fmin(first, second) * (double)(variant.batch * e->validation_steps) /
                    (double)e->validation_every;
    stk_variant_close(&v, &variant);
    return status;
}

/* The first time may make files and caches: the better of two, where that is affordable. */
static stk_status measure_end(stk_prober *p, stk_epoch_rows *e, stk_error *err)
{
    static const double AFFORDABLE = 0.5;
    stk_epoch_end first, second;
    if (!p->job->epoch_end) return STK_OK;
    stk_prober_tell(p, "the end of an epoch");
    STK_TRY(p->job->epoch_end(p->job->context, &first, err));
    e->callbacks = first.callbacks;
    e->checkpoint = first.checkpoint;
    if (first.callbacks + first.checkpoint <= 0 || first.callbacks + first.checkpoint > AFFORDABLE)
        return STK_OK;
    STK_TRY(p->job->epoch_end(p->job->context, &second, err));
    e->callbacks = fmin(first.callbacks, second.callbacks);
    e->checkpoint = fmin(first.checkpoint, second.checkpoint);
    return STK_OK;
}

stk_status stk_epoch_measure(stk_prober *p, double step_seconds, stk_report *r, stk_error *err)
{
    stk_epoch_rows *e = &r->epoch;
    if (p->job->epoch_steps < 1) return STK_OK;
    e->steps = p->job->epoch_steps;
    e->training = step_seconds * (double)e->steps;
    STK_TRY(measure_validation(p, e, err));
    return measure_end(p, e, err);
}

stk_status stk_epoch_try_batch(stk_prober *p, const stk_epoch_rows *e, int64_t *batch,
                               stk_gain *gain, stk_error *err)
{
    enum { MOST_ROWS = 1024, TIMES = 8 };
    const stk_job *job = p->job->validation;
    stk_prober v = prober_of(p);
    stk_variant variants[2] = {{0}};
    stk_job_settings s[2] = {stk_job_settings_defaults(), stk_job_settings_defaults()};
    *gain = (stk_gain){0, 0, 0};
    if (!job || !job->knob[STK_KNOB_BATCH].offered) return STK_OK;
    int64_t most = stk_max_i64(stk_min_i64(job->batch * TIMES, MOST_ROWS), 2 * job->batch);
    if (job->knob[STK_KNOB_BATCH].most > 0)
        most = stk_min_i64(most, job->knob[STK_KNOB_BATCH].most);
    *batch = most;
    if (most <= job->batch) return STK_OK;
    s[1].value[STK_KNOB_BATCH] = most;
    stk_prober_tell(p, "a larger batch for the validation");
    stk_status status = stk_variant_open(&v, &s[0], &variants[0], err);
    if (status == STK_OK) status = stk_variant_open(&v, &s[1], &variants[1], err);
    stk_gain of_validation = {1, 1, 1};
    if (status == STK_OK)
        status = stk_variants_compare(&v, &variants[0], &variants[1], stk_care_for_promises(p),
                                      &of_validation, NULL, err);
    for (int i = 0; i < 2; i++) stk_variant_close(&v, &variants[i]);
    if (status == STK_OK) *gain = stk_epoch_gain(e, e->validation, of_validation);
    return status;
}
