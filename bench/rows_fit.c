/* The same jobs through the whole of training: a model of layers, fit over shuffled arrays; and how soon the first step is
 * done by a process that was just started. The peers' side is Keras' fit. */
#define _GNU_SOURCE
#include "rows.h"

#include "stoker/train.h"

#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct fitting {
    bench_training *data; /* x and y of it */
    stk_model *model;
    stk_trainer *trainer;
    stk_tensor *x, *y;
    double first_loss;
    int64_t epoch; /* another order of the rows in each call */
    /* bench_pipeline_setup: */
    stk_dataset *dataset;
    stk_callback callback;
    double seen; /* by the callback */
} fitting;

static int make_trainer(const bench_job *j, int threads, const char *metrics, stk_model **model,
                        stk_trainer **trainer)
{
    stk_error err;
    char line[64], optimizer[32];
    if (stk_model_new("bench", model, &err)) return bench_failed("model", &err);
    if (j->cnn)
        snprintf(line, sizeof line, "Input(shape=(%d, %d, %d))", (int)j->sizes[0], (int)j->sizes[1],
                 (int)j->sizes[2]);
    else
        snprintf(line, sizeof line, "Input(shape=(%d,))", (int)j->sizes[0]);
    stk_model_add(*model, line);
    if (j->cnn) {
        stk_model_add(*model, "Conv2D(32, 3, activation=relu)");
        stk_model_add(*model, "MaxPooling2D(2)");
        stk_model_add(*model, "Flatten()");
        stk_model_add(*model, "Dense(10)");
    }
    for (int32_t l = 1; !j->cnn && l < j->nsizes; l++) {
        snprintf(line, sizeof line, l + 1 < j->nsizes ? "Dense(%d, activation=relu)" : "Dense(%d)",
                 (int)j->sizes[l]);
        stk_model_add(*model, line);
    }
    if (stk_model_build(*model, 0, NULL, &err)) return bench_failed("model", &err);
    stk_trainer_options how = stk_trainer_defaults();
    snprintf(optimizer, sizeof optimizer, "adam:lr=%g", j->rate);
    how.optimizer = optimizer;
    how.metrics = metrics;
    how.loss = j->mean_square ? "mse" : "sparse_categorical_crossentropy:from_logits=true";
    if (stk_device_open("cpu:0", threads, &how.device, &err)) return bench_failed("device", &err);
    stk_status status = stk_trainer_new(*model, &how, trainer, &err);
    stk_device_release(how.device);
    return status ? bench_failed("trainer", &err) : 0;
}

static double mean_loss(fitting *f)
{
    stk_error err;
    const stk_logs *logs = NULL;
    stk_train_data data = {.nx = 1, .x = &f->x, .ny = 1, .y = &f->y};
    if (stk_trainer_evaluate(f->trainer, &data, f->data->job->batch, 0, &logs, &err)) return NAN;
    return stk_logs_get(logs, "loss");
}

static int set_up(const bench_job *j, int threads, const char *metrics, fitting *f)
{
    stk_error err;
    if (!f || bench_training_new(j, threads, &f->data)) return 1;
    int64_t rows = j->ring * j->batch;
    if (stk_tensor_reshape(f->data->x, j->cnn ? 4 : 2,
                           (int64_t[]){rows, j->sizes[0], j->sizes[1], j->sizes[2]}, &f->x, &err) ||
        stk_tensor_reshape(f->data->y, j->mean_square ? 2 : 1, (int64_t[]){rows, 1}, &f->y, &err))
        return bench_failed("data", &err);
    if (make_trainer(j, threads, metrics, &f->model, &f->trainer)) return 1;
    f->first_loss = mean_loss(f);
    return 0;
}

int bench_fit_setup(const bench_options *o, void **out)
{
    fitting *f = calloc(1, sizeof *f);
    *out = f;
    return set_up(bench_find_job(o->row + strlen("fit_")), o->threads, NULL, f);
}

/* ---- the same with all that can be around a step ------------------------------------------------------------- */

static stk_status brighten(void *context, const stk_map_info *info, stk_tensor *const *in,
                           stk_tensor **out, stk_error *err)
{
    (void)context, (void)info, (void)err;
    for (int i = 0; i < 2; i++) {
        if (!out[i])
            out[i] = stk_tensor_retain(in[i]);
        else
            memcpy(out[i]->data, in[i]->data, (size_t)stk_tensor_bytes(in[i]));
    }
    float *x = out[0]->data;
    for (int64_t k = 0; out[0] != in[0] && k < stk_tensor_count(out[0]); k++) x[k] += 0.01f;
    return STK_OK;
}

static stk_status look(stk_callback *self, stk_trainer *t, const stk_progress *p, stk_error *err)
{
    (void)t, (void)err;
    *(double *)self->context += stk_logs_get(&p->logs, "loss");
    return STK_OK;
}

int bench_pipeline_setup(const bench_options *o, void **out)
{
    fitting *f = calloc(1, sizeof *f);
    stk_error err;
    stk_map_fn fn = {.name = "brighten", .call = brighten};
    *out = f;
    if (set_up(bench_find_job("tiny_step_b32"), o->threads, "accuracy", f)) return 1;
    stk_dataset *ds = stk_data_slices(2, (stk_tensor *[]){f->x, f->y}, NULL, "(0,1)", &err);
    ds = stk_data_shuffle(ds, STK_SHUFFLE_ALL, 7, true, &err);
    ds = stk_data_map(ds, &fn, NULL, &err);
    ds = stk_data_batch(ds, f->data->job->batch, true, &err);
    f->dataset = stk_data_prefetch(ds, STK_AUTOTUNE, &err);
    f->callback = (stk_callback){.name = "look", .context = &f->seen, .batch_end = look};
    return f->dataset ? 0 : bench_failed("pipeline", &err);
}

int bench_fit_run(void *state, int64_t steps)
{
    fitting *f = state;
    stk_error err;
    stk_fit_options fit = stk_fit_defaults();
    fit.batch = f->data->job->batch;
    fit.steps_per_epoch = steps;
    fit.initial_epoch = f->epoch;
    fit.epochs = ++f->epoch;
    stk_train_data data = {.nx = 1, .x = &f->x, .ny = 1, .y = &f->y};
    if (f->dataset) data = (stk_train_data){.dataset = f->dataset};
    fit.callbacks = (stk_callback *const[]){&f->callback};
    fit.ncallbacks = f->callback.batch_end ? 1 : 0;
    return stk_trainer_fit(f->trainer, &data, &fit, NULL, &err) ? bench_failed("fit", &err) : 0;
}

int bench_fit_finish(void *state)
{
    fitting *f = state;
    double loss = mean_loss(f);
    bench_note_number("first_loss", f->first_loss);
    bench_note_number("last_loss", loss);
    if (isfinite(loss) && loss < f->first_loss) return 0;
    fprintf(stderr, "the loss went from %g to %g: this is not training\n", f->first_loss, loss);
    return 1;
}

void bench_fit_teardown(void *state)
{
    fitting *f = state;
    if (!f) return;
    stk_dataset_release(f->dataset);
    stk_trainer_release(f->trainer);
    stk_model_release(f->model);
    stk_tensor_release(f->x);
    stk_tensor_release(f->y);
    bench_training_release(f->data);
    free(f);
}

/* ---- from the start of the process to the end of the first step --------------------------------------------- */

/* What the new process does: one batch of 10 rows, one step. */
static int first_step(int threads, double *mb)
{
    const bench_job *j = bench_find_job("tiny_step");
    stk_error err;
    stk_model *model = NULL;
    stk_trainer *trainer = NULL;
    stk_tensor *x = NULL, *y = NULL;
    if (stk_tensor_new(STK_F32, 2, (int64_t[]){j->batch, j->sizes[0]}, &x, &err) ||
        stk_tensor_new(STK_I32, 1, &j->batch, &y, &err))
        return bench_failed("data", &err);
    for (int64_t i = 0; i < stk_tensor_count(x); i++) ((float *)x->data)[i] = (float)(i % 7) - 3;
    for (int64_t i = 0; i < j->batch; i++) ((int32_t *)y->data)[i] = (int32_t)i;
    int failed = make_trainer(j, threads, NULL, &model, &trainer);
    stk_train_data data = {.nx = 1, .x = &x, .ny = 1, .y = &y};
    if (!failed && stk_trainer_fit(trainer, &data, NULL, NULL, &err))
        failed = bench_failed("fit", &err);
    *mb = bench_peak_rss_mb();
    stk_trainer_release(trainer);
    stk_model_release(model);
    stk_tensor_release(x);
    stk_tensor_release(y);
    return failed;
}

int bench_fit_start(const bench_options *o, double *ms)
{
    double ignored, best = INFINITY;
    char threads[16];
    if (getenv("BENCH_FIRST_STEP")) _exit(first_step(o->threads, &ignored));
    setenv("BENCH_FIRST_STEP", "1", 1);
    snprintf(threads, sizeof threads, "%d", o->threads);
    char *words[] = {"bench_rows", "--row",     "fit_start", "--seconds",
                     "1",          "--threads", threads,     NULL};
    for (int i = 0; i < 4; i++) { /* the first one fills the election's file */
        pid_t child;
        int status = 1;
        double start = bench_now();
        if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, words, environ) ||
            waitpid(child, &status, 0) < 0 || status) {
            fprintf(stderr, "the process that makes one step failed\n");
            return 1;
        }
        double took = (bench_now() - start) * 1e3;
        if (i > 0 && took < best) best = took;
    }
    *ms = best;
    return 0;
}

int bench_fit_rss(const bench_options *o, double *mb) { return first_step(o->threads, mb); }
