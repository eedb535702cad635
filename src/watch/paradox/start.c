/* start.c - experiment 2: what it takes to make a model and run its first step, beside a step of one that runs. */
#include "watch/paradox/experiments.h"

#include "base/memory.h"
#include "watch/probe.h"
#include "watch/text.h"

#include <stdio.h>

static const char *const LAYERS[] = {"Input(shape=(16, 16, 3))",
                                     "Conv2D(8, 3, activation=relu)",
                                     "MaxPooling2D()",
                                     "Conv2D(16, 3, activation=relu)",
                                     "Flatten()",
                                     "Dense(32, activation=relu)",
                                     "Dense(10)",
                                     NULL};
enum { BATCH = 32, WIDTH = 16 * 16 * 3 };

typedef struct start {
    stk_device *device;
    stk_tensor *x, *y;
    bool again; /* one model, used again */
    stk_model *model;
    stk_trainer *trainer;
} start;

static void drop_model(start *s)
{
    stk_trainer_release(s->trainer);
    stk_model_release(s->model);
    s->trainer = NULL;
    s->model = NULL;
}

static stk_status make_model(start *s, stk_error *err)
{
    drop_model(s);
    return stk_training_make(s->device, &(stk_training){.layers = LAYERS}, &s->model, &s->trainer,
                             err);
}

/* Reads its loss, and so waits for the device. */
static stk_status one_step(start *s, stk_error *err)
{
    const stk_logs *logs = NULL;
    stk_train_data data = {.nx = 1, .x = &s->x, .ny = 1, .y = &s->y};
    return stk_trainer_train_on_batch(s->trainer, &data, &logs, err);
}

static stk_status run(void *self, int64_t steps, stk_error *err)
{
    start *s = self;
    for (int64_t i = 0; i < steps; i++) {
        stk_watch_step(1);
        if (!s->again || !s->trainer) STK_TRY(make_model(s, err));
        STK_TRY(one_step(s, err));
    }
    stk_watch_step(1);
    return STK_OK;
}

static stk_status outcome(void *self, stk_tensor **out, stk_error *err)
{
    start *s = self;
    return stk_training_weight(s->trainer, out, err);
}

static void close_start(void *self)
{
    start *s = self;
    drop_model(s);
    stk_tensor_release(s->x);
    stk_tensor_release(s->y);
    stk_device_release(s->device);
    stk_free(s);
}

/* The very first time: later ones find kernels that were chosen or compiled then. */
static stk_status first_time(start *s, char *note, size_t room, stk_error *err)
{
    char text[2][24];
    double begun = stk_seconds_now();
    STK_TRY(make_model(s, err));
    double made = stk_seconds_now();
    STK_TRY(one_step(s, err));
    double done = stk_seconds_now();
    snprintf(note, room, "the first time here: model %s, first step %s",
             stk_time_text(made - begun, text[0]), stk_time_text(done - made, text[1]));
    drop_model(s);
    return STK_OK;
}

stk_status stk_paradox_start(stk_device *device, bool cured, stk_contender *out, stk_error *err)
{
    start *s = stk_calloc(1, sizeof *s);
    if (!s) return stk_fail_memory(err, "an experiment", sizeof *s);
    s->device = stk_device_retain(device);
    s->again = cured;
    stk_tensor *flat = NULL;
    stk_status status = stk_paradox_rows(BATCH, WIDTH, &flat, &s->y, err);
    if (status == STK_OK)
        status = stk_tensor_reshape(flat, 4, (int64_t[]){BATCH, 16, 16, 3}, &s->x, err);
    stk_tensor_release(flat);
    *out = (stk_contender){.self = s,
                           .units = 1,
                           .run = run,
                           .outcome = outcome,
                           .close = close_start,
                           .builds = !cured};
    if (status == STK_OK && !cured) status = first_time(s, out->note, sizeof out->note, err);
    if (status != STK_OK) close_start(s);
    return status;
}
