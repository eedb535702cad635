/* job_train.h - a trainer as a job: what its files share. */
#ifndef STK_WATCH_JOB_TRAIN_H
#define STK_WATCH_JOB_TRAIN_H

#include "data/stream/cache_placement.h"
#include "stoker/tracing.h"
#include "train/trainer.h"
#include "watch/report.h"

typedef struct stk_step_callback { /* what of a callback belongs to steps */
    stk_callback base;
    stk_callback *from;
} stk_step_callback;

typedef struct stk_train_job {
    stk_recorded_step recorded; /* program not NULL: this one, and no trainer */
    stk_train_data batches;     /* its data */
    stk_trainer *trainer;
    stk_trainer *narrow; /* the same with 16-bit numbers and memory of its own, or NULL */
    const stk_train_data *data;
    stk_fit_options fit;   /* of steps: no validation, no checkpoint, callbacks of steps only */
    stk_fit_options whole; /* as it was given */
    bool evaluates;        /* this one is the validation of another */
    stk_step_callback *steps;
    stk_callback **step_list;
    stk_job validation; /* open NULL: there is none */
    stk_train_data held_back;
    stk_tensor *split[STK_PARTS_MAX]; /* rows of held_back that were cut off the arrays */
    int32_t nsaved;
    stk_tensor **saved; /* in the order of the store */
    double *states;     /* of all callbacks */
    int64_t step;
    stk_cache_need keeps; /* what a cache would hold */
    /* the data with a cache of kept_mib in it, filled; NULL: nobody asked for it yet */
    stk_dataset *kept;
    int64_t kept_mib, kept_part; /* part: so many elements stand for all; 0: it holds all */
} stk_train_job;

/* job_train.c: functions and knobs of a job over job->data. */
void stk_train_job_fill(stk_train_job *job, stk_job *out);

/* job_recorded.c: so many steps over the stream, by the programs of the recorded step. */
typedef struct stk_recorded_run {
    stk_over over;
    stk_program *program;
    int32_t threads; /* 0: as it is */
} stk_recorded_run;
stk_status stk_recorded_steps(const stk_recorded_step *s, stk_recorded_run *run, stk_stream *stream,
                              int64_t steps, stk_error *err);

/* job_state.c: weights, optimizer, metrics, step and the numbers of callbacks. */
stk_status stk_train_job_save(void *context, stk_error *err);
stk_status stk_train_job_restore(void *context, stk_error *err);
void stk_train_job_forget(stk_train_job *job);

/* job_epoch.c: callbacks of steps into job->fit, the others are measured by stk_train_job_epoch_end. */
stk_status stk_train_job_callbacks(stk_train_job *job, stk_error *err);
stk_status stk_train_job_epoch_end(void *context, stk_epoch_end *out, stk_error *err);
/* The data that fit would validate on into job->held_back; false: none. */
stk_status stk_train_job_held_back(stk_train_job *job, bool *any, stk_error *err);
void stk_train_job_epoch_release(stk_train_job *job);

/* buckets.c: each part of the element whose shape is not fixed by the schema, padded with zeros to powers of two. */
stk_status stk_pad_to_buckets(const stk_schema *schema, stk_tensor **parts, stk_error *err);
/* May elements of this schema differ in shape, apart from a last batch that is smaller? */
bool stk_shapes_vary(const stk_schema *schema);

#endif
