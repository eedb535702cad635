/* trainer.c - making a trainer, and what is done with one outside of fit: evaluate, predict, single batches, weights. */
#include "train/trainer.h"

#include "base/cpus.h"
#include "base/spill.h"
#include "base/tensor.h"
#include "stoker/keras.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- making ---------------------------------------------------------------------------------------------------- */

static stk_status make_step(stk_trainer *t, const stk_trainer_options *o,
                            const stk_trainer_words *losses, const stk_trainer_words *metrics,
                            stk_error *err)
{
    const char **texts = stk_calloc((size_t)losses->count + 1, sizeof *texts);
    stk_step_metric *wanted = stk_calloc((size_t)metrics->count + 1, sizeof *wanted);
    stk_status status = texts && wanted ? STK_OK : stk_fail_memory(err, "stk_trainer_new", 0);
    for (int64_t i = 0; status == STK_OK && i < losses->count; i++)
        texts[i] = losses->items[i].text;
    for (int64_t i = 0; status == STK_OK && i < metrics->count; i++)
        wanted[i] =
            (stk_step_metric){.text = metrics->items[i].text, .output = metrics->items[i].output};
    stk_step_config c = {.model = t->model,
                         .optimizer = t->optimizer,
                         .nlosses = (int32_t)losses->count,
                         .losses = texts,
                         .loss_weights = o->loss_weights,
                         .nmetrics = (int32_t)metrics->count,
                         .metrics = wanted,
                         .policy = o->precision,
                         .seed = o->seed};
    if (status == STK_OK) status = stk_step_new(&c, &t->maker, err);
    stk_free(texts);
    stk_free(wanted);
    return status;
}

/* Names of the logs: those of the step, and the same with val_; and room for one more, the learning rate. */
static stk_status make_logs(stk_trainer *t, stk_error *err)
{
    int32_t n = t->nlogs = stk_step_result_count(t->maker);
    t->names = stk_calloc((size_t)n * 2 + 1, sizeof *t->names);
    t->epoch_logs = stk_calloc((size_t)n * 2 + 1, sizeof *t->epoch_logs);
    t->values = stk_calloc((size_t)n * 2 + 1, sizeof *t->values);
    if (!t->names || !t->epoch_logs || !t->values)
        return stk_fail_memory(err, "stk_trainer_new", (size_t)n * 16);
    for (int32_t i = 0; i < 2 * n; i++) {
        char name[256];
        snprintf(name, sizeof name, "%s%s", i < n ? "" : "val_",
                 stk_step_result_name(t->maker, i % n));
        if (!(t->names[i] = stk_strdup(name)))
            return stk_fail_memory(err, "stk_trainer_new", sizeof name);
    }
    t->evaluated = (stk_logs){n, (const char *const *)t->names, t->values};
    return STK_OK;
}

stk_status stk_check_room(const stk_model *m, bool weights, int32_t slots, stk_error *err)
{
    stk_param_count p = stk_model_params(m);
    double state = (double)p.trainable_bytes * slots,
           need = state + (weights ? (double)p.bytes : 0);
    double left = need > 1 << 20 ? (double)stk_memory_left("") : INFINITY;
    if (need < left) return STK_OK;
    char text[128] = "";
    if (slots)
        snprintf(text, sizeof text, " and %s of optimizer state (%d numbers per weight)",
                 STK_BYTES_TEXT(state), slots);
    return stk_fail(err, STK_ERR_MEMORY,
                    "model '%s' needs %s of memory, has %s: %s of weights%s; use a smaller model, "
                    "an optimizer with less state, or a machine with more",
                    stk_model_name(m), STK_BYTES_TEXT(need), STK_BYTES_TEXT(left),
                    STK_BYTES_TEXT(p.bytes), text);
}

stk_status stk_trainer_check_memory(const stk_model *model, const char *optimizer, bool training,
                                    stk_error *err)
{
    stk_optimizer *o = NULL;
    if (!model) return stk_fail(err, STK_ERR_ARGUMENT, "stk_trainer_check_memory: no model");
    STK_TRY(stk_optimizer_parse(optimizer ? optimizer : "rmsprop", &o, err));
    int32_t slots = training ? stk_optimizer_slots(o) : 0;
    stk_optimizer_release(o);
    return stk_check_room(model, true, slots, err);
}

static stk_status setup(stk_trainer *t, const stk_trainer_options *o, stk_error *err)
{
    stk_trainer_words losses = {0}, metrics = {0};
    stk_status status =
        stk_optimizer_parse(o->optimizer ? o->optimizer : "rmsprop", &t->optimizer, err);
    if (status == STK_OK) status = stk_trainer_split(o->loss ? o->loss : "", &losses, err);
    if (status == STK_OK) status = stk_trainer_split(o->metrics ? o->metrics : "", &metrics, err);
    if (status == STK_OK && losses.count == 0 && metrics.count > 0)
        status = stk_fail(err, STK_ERR_ARGUMENT,
                          "metrics are given but no loss; name one, for instance \"mse\"");
    if (status == STK_OK) status = make_step(t, o, &losses, &metrics, err);
    stk_trainer_words_release(&losses);
    stk_trainer_words_release(&metrics);
    if (status == STK_OK && o->device)
        t->device = stk_device_retain(o->device);
    else if (status == STK_OK)
        status = stk_device_open("default", 0, &t->device, err);
    if (status == STK_OK) status = stk_store_new(t->device, &t->store, err);
    if (status == STK_OK) status = stk_step_init(t->maker, t->store, err);
    if (status == STK_OK) status = make_logs(t, err);
    return status;
}

stk_status stk_trainer_new(stk_model *model, const stk_trainer_options *options, stk_trainer **out,
                           stk_error *err)
{
    if (!model || !out)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_trainer_new: model and out must be given");
    stk_trainer_options o = options ? *options : stk_trainer_defaults();
    stk_trainer *t = stk_calloc(1, sizeof *t);
    if (!t) return stk_fail_memory(err, "stk_trainer_new", sizeof *t);
    t->model = stk_model_retain(model);
    t->nx = stk_model_input_count(model);
    t->ny = stk_model_output_count(model);
    t->seed = o.seed;
    stk_status status = stk_trainer_keep_options(t, &o, err);
    if (status == STK_OK) status = stk_check_room(model, true, 0, err);
    if (status == STK_OK) status = setup(t, &o, err);
    t->how = (stk_program_options){.device = t->device,
                                   .store = t->store,
                                   .threads = o.threads,
                                   .deterministic = o.deterministic};
    if (status == STK_OK)
        *out = t;
    else
        stk_trainer_release(t);
    return status;
}

stk_device *stk_trainer_device(stk_trainer *t) { return t ? t->device : NULL; }

static void drop_programs(stk_trainer *t)
{
    for (int i = 0; i < STK_MODES; i++)
        for (int k = 0; k < 2; k++) {
            stk_function_release(t->functions[i][k]);
            t->functions[i][k] = NULL;
        }
    t->last = NULL;
}

stk_status stk_trainer_set_threads(stk_trainer *t, int32_t threads, stk_error *err)
{
    if (!t || threads < 0)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_trainer_set_threads: a trainer and 0 or more threads must be given");
    if (t->fit) return stk_fail(err, STK_ERR_STATE, "stk_trainer_set_threads: it is training");
    t->how.threads = threads;
    drop_programs(t);
    return STK_OK;
}

void stk_trainer_release(stk_trainer *t)
{
    if (!t) return;
    drop_programs(t);
    stk_trainer_drop_options(t);
    for (int32_t i = 0; t->names && i < 2 * t->nlogs; i++) stk_free(t->names[i]);
    stk_free(t->names);
    stk_free(t->epoch_logs);
    stk_free(t->values);
    stk_free(t->position.data);
    stk_free(t->position.states);
    stk_history_release(t->history);
    stk_named_release(&t->best);
    stk_step_release(t->maker);
    stk_optimizer_release(t->optimizer);
    stk_store_release(t->store);
    stk_device_release(t->device);
    stk_model_release(t->model);
    stk_free(t);
}

stk_model *stk_trainer_model(stk_trainer *t) { return t ? t->model : NULL; }
stk_store *stk_trainer_store(stk_trainer *t) { return t ? t->store : NULL; }
int64_t stk_trainer_step(const stk_trainer *t) { return t ? t->step : 0; }
stk_program *stk_trainer_program(stk_trainer *t) { return t ? t->last : NULL; }

static stk_status check_trainer(const char *who, const stk_trainer *t, stk_error *err)
{
    return t ? STK_OK : stk_fail(err, STK_ERR_ARGUMENT, "%s: the trainer is NULL", who);
}

stk_status stk_trainer_rate(stk_trainer *t, double *rate, stk_error *err)
{
    STK_TRY(check_trainer("stk_trainer_rate", t, err));
    return stk_optimizer_rate(stk_step_optimizer(t->maker), t->store, rate, err);
}

stk_status stk_trainer_set_rate(stk_trainer *t, double rate, stk_error *err)
{
    STK_TRY(check_trainer("stk_trainer_set_rate", t, err));
    return stk_optimizer_set_rate(stk_step_optimizer(t->maker), t->store, rate, err);
}

double stk_logs_get(const stk_logs *logs, const char *name)
{
    for (int32_t i = 0; logs && name && i < logs->count; i++)
        if (!strcmp(logs->names[i], name)) return logs->values[i];
    return NAN;
}

/* ---- one batch --------------------------------------------------------------------------------------------------- */

stk_batch_options stk_trainer_batches(stk_trainer *t, stk_step_mode mode, int64_t batch)
{
    return (stk_batch_options){.batch = batch ? batch : 32,
                               .rows = -1,
                               .seed = t->seed,
                               .with_y = mode != STK_STEP_PREDICT,
                               .nx = t->nx,
                               .ny = t->ny,
                               .model = t->model,
                               .device = t->device,
                               .step = t->maker};
}

stk_status stk_trainer_prepare(stk_trainer *t, stk_step_mode mode, stk_batches *b,
                               stk_program **program, stk_error *err)
{
    stk_function **f = &t->functions[mode][b->weighted];
    stk_tensor *x[STK_PARTS_MAX];
    int32_t n = b->n - b->weighted;
    if (!*f) STK_TRY(stk_step_function(t->maker, mode, b->weighted, &t->how, f, err));
    memcpy(x, b->parts, (size_t)n * sizeof *x);
    for (int32_t i = 0; b->weighted && i < t->ny; i++) x[n + i] = b->parts[n];
    int32_t before = stk_function_count(*f);
    STK_TRY(b->resident ? stk_resident_call(b, *f, x, program, err)
                        : stk_function_call(*f, x, program, err));
    if (stk_function_count(*f) != before && t->fit) { /* that was no step, but the making of one */
        int32_t now = t->books.now;
        t->books.now = STK_SPAN_BUILD;
        stk_books_enter(&t->books, now);
    }
    t->last = *program;
    return STK_OK;
}

/* ---- evaluate ------------------------------------------------------------------------------------------------------ */

stk_status stk_trainer_run_evaluation(stk_trainer *t, stk_batches *b, double *values,
                                      stk_error *err)
{
    STK_TRY(stk_step_reset(t->maker, t->store, err));
    STK_TRY(stk_batches_begin(b, 0, 0, err));
    for (int64_t step = 0;; step++) {
        stk_program *p = NULL;
        STK_TRY(stk_batches_next(b, err));
        if (b->end) break;
        STK_TRY(stk_trainer_prepare(t, STK_STEP_EVALUATE, b, &p, err));
        stk_program_set_step(p, step);
        STK_TRY(stk_program_run(p, 1, err));
    }
    return stk_step_results(t->maker, t->store, values, err);
}

stk_status stk_trainer_evaluate(stk_trainer *t, const stk_train_data *data, int64_t batch,
                                int64_t steps, const stk_logs **logs, stk_error *err)
{
    STK_TRY(check_trainer("stk_trainer_evaluate", t, err));
    stk_batch_options how = stk_trainer_batches(t, STK_STEP_EVALUATE, batch);
    how.steps = steps;
    stk_batches b;
    STK_TRY(stk_batches_open(&b, data, &how, err));
    stk_status status = stk_trainer_run_evaluation(t, &b, t->values, err);
    stk_batches_close(&b);
    if (status == STK_OK && logs) *logs = &t->evaluated;
    return status;
}

/* ---- predict --------------------------------------------------------------------------------------------------------- */

typedef struct pieces {
    stk_tensor **items; /* batch after batch, each with all outputs */
    int64_t count, capacity;
} pieces;

static stk_status join_output(const pieces *p, int32_t output, int32_t outputs, stk_tensor **out,
                              stk_error *err)
{
    int64_t rows = 0, shape[STK_MAX_RANK];
    for (int64_t i = output; i < p->count; i += outputs) rows += p->items[i]->shape[0];
    const stk_tensor *first = p->items[output];
    memcpy(shape, first->shape, sizeof shape);
    shape[0] = rows;
    STK_TRY(stk_tensor_raw(first->dtype, first->rank, shape, out, err));
    char *to = (*out)->data;
    for (int64_t i = output; i < p->count; i += outputs) {
        size_t bytes = (size_t)stk_tensor_bytes(p->items[i]);
        memcpy(to, p->items[i]->data, bytes);
        to += bytes;
    }
    return STK_OK;
}

static stk_status predict_all(stk_trainer *t, stk_batches *b, pieces *out, stk_error *err)
{
    STK_TRY(stk_batches_begin(b, 0, 0, err));
    for (;;) {
        stk_program *p = NULL;
        STK_TRY(stk_batches_next(b, err));
        if (b->end) return STK_OK;
        STK_TRY(stk_trainer_prepare(t, STK_STEP_PREDICT, b, &p, err));
        STK_TRY(stk_program_run(p, 1, err));
        for (int32_t i = 0; i < t->ny; i++) {
            char name[16];
            snprintf(name, sizeof name, "y%d", i);
            if (!STK_GROW(out->items, out->count, out->capacity))
                return stk_fail_memory(err, "predictions", sizeof *out->items);
            STK_TRY(stk_program_read(p, name, &out->items[out->count], err));
            out->count++;
        }
    }
}

stk_status stk_trainer_predict(stk_trainer *t, const stk_train_data *data, int64_t batch,
                               stk_tensor **y, stk_error *err)
{
    STK_TRY(check_trainer("stk_trainer_predict", t, err));
    if (!y) return stk_fail(err, STK_ERR_ARGUMENT, "stk_trainer_predict: no place for the result");
    stk_batch_options how = stk_trainer_batches(t, STK_STEP_PREDICT, batch);
    stk_batches b;
    pieces p = {0};
    STK_TRY(stk_batches_open(&b, data, &how, err));
    stk_status status = predict_all(t, &b, &p, err);
    stk_batches_close(&b);
    int32_t done = 0;
    for (; status == STK_OK && done < t->ny; done += status == STK_OK)
        status = join_output(&p, done, t->ny, &y[done], err);
    for (; status != STK_OK && done > 0; done--) {
        stk_tensor_release(y[done - 1]);
        y[done - 1] = NULL;
    }
    for (int64_t i = 0; i < p.count; i++) stk_tensor_release(p.items[i]);
    stk_free(p.items);
    return status;
}

/* ---- one step ----------------------------------------------------------------------------------------------------------- */

stk_status stk_trainer_train_on_batch(stk_trainer *t, const stk_train_data *data,
                                      const stk_logs **logs, stk_error *err)
{
    STK_TRY(check_trainer("stk_trainer_train_on_batch", t, err));
    if (!data || data->dataset || data->nx != t->nx || data->ny != t->ny || !data->x || !data->y)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_trainer_train_on_batch: needs %d tensors x and %d tensors y", t->nx,
                        t->ny);
    stk_batches b = {.n = t->nx + t->ny + (data->weights != NULL),
                     .weighted = data->weights != NULL};
    if (t->nx + 2 * t->ny > STK_PARTS_MAX)
        return stk_fail(err, STK_ERR_RANGE, "too many inputs and outputs, at most %d",
                        STK_PARTS_MAX / 2);
    memcpy(b.parts, data->x, (size_t)t->nx * sizeof *b.parts);
    memcpy(b.parts + t->nx, data->y, (size_t)t->ny * sizeof *b.parts);
    b.parts[t->nx + t->ny] = data->weights;
    stk_program *p = NULL;
    STK_TRY(stk_batches_check_labels(t->maker, t->ny, data->y, err));
    if (logs) STK_TRY(stk_step_reset(t->maker, t->store, err));
    STK_TRY(stk_trainer_prepare(t, STK_STEP_TRAIN, &b, &p, err));
    stk_program_set_step(p, t->step);
    STK_TRY(stk_program_run(p, 1, err));
    t->step++;
    if (!logs) return STK_OK;
    STK_TRY(stk_step_results(t->maker, t->store, t->values, err));
    *logs = &t->evaluated;
    return STK_OK;
}

/* ---- weights -------------------------------------------------------------------------------------------------------------- */

stk_status stk_trainer_get_weights(stk_trainer *t, stk_named_list *out, stk_error *err)
{
    stk_status status = STK_OK;
    for (int32_t i = 0; status == STK_OK && i < stk_model_weight_count(t->model); i++) {
        stk_weight w = stk_model_weight(t->model, i);
        stk_tensor *copy = NULL;
        status = stk_store_get(t->store, w.name, &copy, err);
        if (status == STK_OK) status = stk_named_add(out, w.name, copy, err);
    }
    if (status != STK_OK) stk_named_release(out);
    return status;
}

static stk_status split_list(const stk_named_list *list, const char ***names, stk_tensor ***tensors,
                             stk_error *err)
{
    *names = stk_calloc((size_t)list->count + 1, sizeof **names);
    *tensors = stk_calloc((size_t)list->count + 1, sizeof **tensors);
    if (!*names || !*tensors) return stk_fail_memory(err, "weights", (size_t)list->count * 16);
    for (int64_t i = 0; i < list->count; i++) {
        (*names)[i] = list->items[i].name;
        (*tensors)[i] = list->items[i].tensor;
    }
    return STK_OK;
}

stk_status stk_trainer_put_weights(stk_trainer *t, const stk_named_list *list, stk_error *err)
{
    for (int64_t i = 0; i < list->count; i++)
        STK_TRY(stk_store_set(t->store, list->items[i].name, list->items[i].tensor, err));
    return STK_OK;
}

stk_status stk_trainer_save_weights(stk_trainer *t, const char *path, stk_error *err)
{
    STK_TRY(check_trainer("stk_trainer_save_weights", t, err));
    if (stk_keras_is_name(path)) return stk_trainer_save_keras(t, path, err);
    stk_named_list list = {0};
    const char **names = NULL;
    stk_tensor **tensors = NULL;
    STK_TRY(stk_trainer_get_weights(t, &list, err));
    stk_status status = split_list(&list, &names, &tensors, err);
    if (status == STK_OK)
        status = stk_safetensors_save(path, (int32_t)list.count, names, tensors, err);
    stk_free(names);
    stk_free(tensors);
    stk_named_release(&list);
    return status;
}
