/* job_state.c - what the doctor's turns change about a training, kept before and put back behind them. */
#include "watch/job_train.h"

#include "graph/run/store.h"

#include <string.h>

void stk_train_job_forget(stk_train_job *job)
{
    for (int32_t i = 0; i < job->nsaved; i++) stk_tensor_release(job->saved[i]);
    stk_free(job->saved);
    stk_free(job->states);
    job->saved = NULL;
    job->states = NULL;
    job->nsaved = 0;
}

/* Callbacks count too: early stopping must not remember what probes did. */
static int64_t copy_states(const stk_train_job *job, double *states, bool back)
{
    int64_t at = 0;
    for (int32_t i = 0; i < job->whole.ncallbacks; i++) {
        stk_callback *c = job->whole.callbacks[i];
        for (int32_t k = 0; k < c->nstate; k++, at++) {
            if (states && back) c->state[k] = states[at];
            if (states && !back) states[at] = c->state[k];
        }
    }
    return at;
}

stk_status stk_train_job_save(void *context, stk_error *err)
{
    stk_train_job *job = context;
    stk_store *store = stk_trainer_store(job->trainer);
    stk_train_job_forget(job);
    int32_t n = stk_store_count(store);
    job->saved = stk_calloc((size_t)n, sizeof *job->saved);
    job->states = stk_calloc((size_t)copy_states(job, NULL, false) + 1, sizeof *job->states);
    if (!job->saved || !job->states) return stk_fail_memory(err, "a copy of the weights", 0);
    copy_states(job, job->states, false);
    job->step = job->trainer->step;
    for (; job->nsaved < n; job->nsaved++)
        STK_TRY(stk_store_get(store, stk_store_name(store, job->nsaved), &job->saved[job->nsaved],
                              err));
    return STK_OK;
}

/* Variables that came with the first program (slots of optimizers) begin as zeros, and shall do so again. */
static stk_status clear_variable(stk_store *store, const char *name, stk_error *err)
{
    stk_tensor *value = NULL;
    STK_TRY(stk_store_get(store, name, &value, err));
    memset(value->data, 0, (size_t)stk_tensor_bytes(value));
    stk_status status = stk_store_set(store, name, value, err);
    stk_tensor_release(value);
    return status;
}

stk_status stk_train_job_restore(void *context, stk_error *err)
{
    stk_train_job *job = context;
    stk_store *store = stk_trainer_store(job->trainer);
    for (int32_t i = 0; i < job->nsaved; i++)
        STK_TRY(stk_store_set(store, stk_store_name(store, i), job->saved[i], err));
    for (int32_t i = job->nsaved; i < stk_store_count(store); i++) /* new ones come last */
        STK_TRY(clear_variable(store, stk_store_name(store, i), err));
    copy_states(job, job->states, true);
    job->trainer->step = job->step;
    job->trainer->position.epoch = job->trainer->position.batch = 0;
    return STK_OK;
}
