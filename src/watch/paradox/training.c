/* training.c - a training as a contender: a small model, its trainer, and data that goes on from turn to turn. */
#include "base/rng.h"
#include "watch/paradox/experiments.h"
#include "watch/probe.h"

#include <stdio.h>
#include <string.h>

const char *const stk_small_net[] = {"Input(shape=(32,))", "Dense(64, activation=relu)",
                                     "Dense(10)", NULL};

typedef struct training {
    stk_model *model;
    stk_trainer *trainer;
    stk_train_data data;
    stk_tensor *x, *y;
    stk_callback *callback;
    stk_job job;
    stk_variant variant;
} training;

stk_status stk_paradox_rows(int64_t rows, int64_t width, stk_tensor **x, stk_tensor **y,
                            stk_error *err)
{
    enum { CLASSES = 10 };
    *x = *y = NULL;
    stk_status status = stk_tensor_new(STK_F32, 2, (int64_t[]){rows, width}, x, err);
    if (status == STK_OK) status = stk_tensor_new(STK_I32, 1, &rows, y, err);
    if (status != STK_OK) {
        stk_tensor_release(*x);
        *x = NULL;
        return status;
    }
    float *to = (*x)->data;
    int32_t *label = (*y)->data;
    stk_rng_uniform((stk_rng){.seed = 27}, 0, rows * width, 0, 1, to);
    for (int64_t i = 0; i < rows; i++) label[i] = (int32_t)(to[i * width] * CLASSES);
    return STK_OK;
}

stk_status stk_training_make(stk_device *device, const stk_training *what, stk_model **model,
                             stk_trainer **trainer, stk_error *err)
{
    stk_trainer_options how = stk_trainer_defaults();
    STK_TRY(stk_model_new("paradox", model, err));
    for (int32_t i = 0; what->layers[i]; i++) {
        if (what->custom && i == what->custom_at) stk_model_add_custom(*model, what->custom);
        stk_model_add(*model, what->layers[i]);
    }
    STK_TRY(stk_model_build(*model, 0, NULL, err));
    how.optimizer = "adam";
    how.loss = "sparse_categorical_crossentropy:from_logits=true";
    how.metrics = "accuracy";
    how.device = device;
    how.seed = 1;
    return stk_trainer_new(*model, &how, trainer, err);
}

stk_status stk_training_weight(stk_trainer *t, stk_tensor **out, stk_error *err)
{
    stk_weight first = stk_model_weight(stk_trainer_model(t), 0);
    return stk_store_get(stk_trainer_store(t), first.name, out, err);
}

static stk_status run(void *self, int64_t steps, stk_error *err)
{
    training *t = self;
    return t->job.run(t->job.context, t->variant.variant, steps, err);
}

static stk_status outcome(void *self, stk_tensor **out, stk_error *err)
{
    training *t = self;
    return stk_training_weight(t->trainer, out, err);
}

static void close_training(void *self)
{
    training *t = self;
    if (!t) return;
    if (t->variant.variant) t->job.close(t->job.context, t->variant.variant);
    stk_train_job_release(&t->job);
    stk_trainer_release(t->trainer);
    stk_model_release(t->model);
    stk_dataset_release(t->data.dataset);
    stk_tensor_release(t->x);
    stk_tensor_release(t->y);
    stk_free(t);
}

static stk_status open_job(training *t, const stk_training *what, stk_device *device,
                           stk_error *err)
{
    stk_fit_options fit = stk_fit_defaults();
    if (what->batch) fit.batch = what->batch;
    fit.no_shuffle = true;
    fit.callbacks = &t->callback;
    fit.ncallbacks = t->callback ? 1 : 0;
    STK_TRY(stk_training_make(device, what, &t->model, &t->trainer, err));
    STK_TRY(stk_train_job_new(t->trainer, &t->data, &fit, &t->job, err));
    stk_prober p = stk_prober_of(&t->job, NULL);
    stk_job_settings as_is = stk_job_settings_defaults();
    return stk_variant_open(&p, &as_is, &t->variant, err);
}

stk_status stk_training_open(stk_device *device, const stk_training *what, stk_contender *out,
                             stk_error *err)
{
    training *t = stk_calloc(1, sizeof *t);
    if (!t) {
        stk_dataset_release(what->dataset);
        stk_tensor_release(what->x);
        stk_tensor_release(what->y);
        return stk_fail_memory(err, "an experiment", sizeof *t);
    }
    t->x = what->x, t->y = what->y;
    t->callback = what->callback;
    t->data = (stk_train_data){.nx = 1, .x = &t->x, .ny = 1, .y = &t->y};
    if (what->dataset) t->data = (stk_train_data){.dataset = what->dataset};
    stk_status status = open_job(t, what, device, err);
    if (status != STK_OK) {
        close_training(t);
        return status;
    }
    *out = (stk_contender){.self = t,
                           .units = what->units,
                           .ahead = t->variant.ahead,
                           .run = run,
                           .outcome = outcome,
                           .close = close_training};
    return STK_OK;
}
