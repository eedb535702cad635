/* job_recorded.c - a recorded step as a job for the doctor: programs that somebody else makes, run over the batches of a dataset. */
#include "watch/job_train.h"

static stk_status other_program(const stk_recorded_step *s, stk_recorded_run *run, stk_error *err)
{
    stk_over *o = &run->over;
    o->leaf = NULL;
    o->given = NULL;
    return s->program(s->context, run->threads, o->nparts, o->part, o, &run->program, err);
}

stk_status stk_recorded_steps(const stk_recorded_step *s, stk_recorded_run *run, stk_stream *stream,
                              int64_t steps, stk_error *err)
{
    stk_over *o = &run->over;
    o->stream = stream;
    o->steps = steps;
    o->done = 0;
    while (o->done < steps) {
        bool end = false;
        STK_TRY(stk_over_peek(o, &end, err));
        if (end) return stk_fail(err, STK_ERR_STATE, "the dataset has no batch to measure with");
        if (!run->program || o->end == STK_OVER_SHAPE) STK_TRY(other_program(s, run, err));
        STK_TRY(stk_program_over(run->program, o, err));
    }
    return STK_OK;
}

static stk_status save(void *context, stk_error *err)
{
    const stk_recorded_step *s = &((stk_train_job *)context)->recorded;
    return s->save(s->context, err);
}
static stk_status restore(void *context, stk_error *err)
{
    const stk_recorded_step *s = &((stk_train_job *)context)->recorded;
    return s->restore(s->context, err);
}

stk_status stk_recorded_job_new(const stk_recorded_step *step, stk_job *out, stk_error *err)
{
    if (!step || !step->dataset || !step->program || !out)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_recorded_job_new: a step with dataset and program, and out must be "
                        "given");
    stk_train_job *job = stk_calloc(1, sizeof *job);
    if (!job) return stk_fail_memory(err, "a job", sizeof *job);
    *job = (stk_train_job){.recorded = *step, .batches = {.dataset = step->dataset}};
    job->data = &job->batches;
    job->fit = job->whole = stk_fit_defaults();
    stk_train_job_fill(job, out);
    if (step->save) out->save = save;
    if (step->restore) out->restore = restore;
    out->epoch_steps = step->epoch_steps;
    out->plan_steps = step->plan_steps;
    return STK_OK;
}
