/* golden_model.h - one file of test/golden/models run through this library: the model from Keras' JSON, its outputs and gradients,
 * ten steps of training, the weights and metrics after them. What is in a file is described in tools/golden/model.py.
 *
 *     golden_model_check("test/golden/models/dense_softmax.npz");
 */
#ifndef STK_TEST_TRAIN_GOLDEN_MODEL_H
#define STK_TEST_TRAIN_GOLDEN_MODEL_H

#include "check.h"

#include "base/json.h"
#include "stoker/layers.h"
#include "stoker/losses.h"
#include "train/step.h"

#include <dirent.h>

enum { GOLDEN_PARTS = 8, GOLDEN_WEIGHTS = 64 };

typedef struct golden_model {
    const char *name;
    stk_npz *file;
    stk_json_document *document;
    const stk_json *meta;
    double tolerance;
    int64_t batch, batches, steps;
    int32_t nx, ny;
    bool weighted;
    stk_model *model;
    stk_store *store;
} golden_model;

/* ---- the file --------------------------------------------------------------------------------------------------------- */

static inline const stk_json *golden_meta(const golden_model *m, const char *name)
{
    return stk_json_get(m->meta, name);
}

static inline stk_tensor *golden_member(const golden_model *m, const char *format, const char *name,
                                        int32_t i)
{
    char full[256];
    snprintf(full, sizeof full, format, name, i);
    return stk_npz_find(m->file, full);
}
static inline stk_tensor *golden_numbered(const golden_model *m, const char *name, int32_t i)
{
    return golden_member(m, "%s%d", name, i);
}
static inline stk_tensor *golden_named(const golden_model *m, const char *group, const char *weight)
{
    char full[256];
    snprintf(full, sizeof full, "%s/%s", group, weight);
    return stk_npz_find(m->file, full);
}

static inline bool golden_model_open(const char *path, golden_model *m)
{
    stk_error err = {0};
    memset(m, 0, sizeof *m);
    m->name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    if (!CHECK_OK(stk_npz_load(path, &m->file, &err))) return false;
    const stk_tensor *meta = stk_npz_find(m->file, "meta"), *json = stk_npz_find(m->file, "json");
    if (!CHECK(meta && json)) return false;
    stk_json_options options = stk_json_defaults();
    options.allow_nonfinite = true;
    if (!CHECK_OK(stk_json_parse(meta->data, (size_t)stk_tensor_bytes(meta), &options, &m->document,
                                 &err)))
        return false;
    m->meta = stk_json_root(m->document);
    m->tolerance = stk_json_double(golden_meta(m, "tolerance"), 0);
    m->batch = stk_json_int(golden_meta(m, "batch"), 0);
    m->batches = stk_json_int(golden_meta(m, "batches"), 0);
    m->steps = stk_json_int(golden_meta(m, "steps"), 0);
    m->weighted = stk_json_bool(golden_meta(m, "sample_weight"), false);
    while (m->nx < GOLDEN_PARTS && golden_numbered(m, "x", m->nx)) m->nx++;
    while (m->ny < GOLDEN_PARTS && golden_numbered(m, "y", m->ny)) m->ny++;
    stk_status status =
        stk_model_from_json(json->data, (size_t)stk_tensor_bytes(json), &m->model, &err);
    if (!CHECK_MSG(status == STK_OK, "%s: its JSON is refused: %s", m->name, err.message))
        return false;
    return CHECK_OK(stk_store_new(NULL, &m->store, &err));
}

static inline void golden_model_close(golden_model *m)
{
    stk_store_release(m->store);
    stk_model_release(m->model);
    stk_json_release(m->document);
    stk_npz_release(m->file);
}

static inline const char *golden_weight_name(const golden_model *m, int32_t i)
{
    const stk_json *row = stk_json_item(golden_meta(m, "weights"), i);
    return stk_json_text(stk_json_get(row, "name"), "");
}

/* Same number of weights, in Keras' order, trainable alike; then their values go into the store. */
static inline bool golden_set_weights(const golden_model *m)
{
    stk_error err = {0};
    int32_t n = stk_model_weight_count(m->model);
    const stk_json *rows = golden_meta(m, "weights");
    if (!CHECK_MSG(rows && rows->count == n, "%s: %d weights, Keras has %d", m->name, n,
                   rows ? (int)rows->count : 0))
        return false;
    for (int32_t i = 0; i < n; i++) {
        stk_weight w = stk_model_weight(m->model, i);
        const char *name = golden_weight_name(m, i);
        const stk_tensor *t = golden_named(m, "w0", name);
        bool trained = stk_json_bool(stk_json_get(stk_json_item(rows, i), "trainable"), false);
        CHECK_MSG(w.trainable == trained, "%s: %s trainable is %d, Keras says %d", m->name, w.name,
                  w.trainable, trained);
        stk_status status = stk_store_set(m->store, w.name, t, &err);
        if (!CHECK_MSG(t && status == STK_OK, "%s: weight %d, %s for Keras' %s: %s", m->name, i,
                       w.name, name, err.message))
            return false;
    }
    return CHECK_OK(stk_model_reset_states(m->model, m->store, &err));
}

/* ---- comparing ------------------------------------------------------------------------------------------------------- */

static inline double golden_largest(const stk_tensor *t)
{
    double most = 0;
    for (int64_t i = 0; t && i < stk_tensor_count(t); i++)
        most = fmax(most, fabs(stk_tensor_at(t, i)));
    return most;
}

/* Differences relative to the largest number that is expected, or to `least` if that is more. */
static inline bool golden_same(const golden_model *m, const char *what, const stk_tensor *got,
                               const stk_tensor *want, double least)
{
    double scale = fmax(fmax(golden_largest(want), least), 1e-6), worst = 0;
    int64_t at = 0;
    if (!CHECK_MSG(got && want && stk_tensor_count(got) == stk_tensor_count(want),
                   "%s, %s: another number of elements", m->name, what))
        return false;
    for (int64_t i = 0; i < stk_tensor_count(want); i++) {
        double off = fabs(stk_tensor_at(got, i) - stk_tensor_at(want, i)) / scale;
        if (off > worst || isnan(off)) worst = isnan(off) ? INFINITY : off, at = i;
    }
    return CHECK_MSG(worst <= m->tolerance, "%s, %s: [%d] is %.7g, Keras has %.7g (off by %.1e)",
                     m->name, what, (int)at, stk_tensor_at(got, at), stk_tensor_at(want, at),
                     worst);
}

/* ---- outputs ------------------------------------------------------------------------------------------------------------ */

/* Rows of batch `step` of an array. */
static inline stk_tensor *golden_rows(const golden_model *m, const char *name, int32_t i,
                                      int64_t step)
{
    stk_error err = {0};
    stk_tensor *all = golden_numbered(m, name, i), *part = NULL, *dense = NULL;
    int64_t start[STK_MAX_RANK] = {step % m->batches * m->batch}, size[STK_MAX_RANK];
    if (!CHECK(all != NULL)) return NULL;
    memcpy(size, all->shape, sizeof size);
    size[0] = stk_min_i64(m->batch, all->shape[0] - start[0]);
    CHECK_OK(stk_tensor_slice(all, start, size, &part, &err));
    CHECK_OK(stk_tensor_dense(part, &dense, &err));
    stk_tensor_release(part);
    return dense;
}

static inline stk_program_options golden_program_options(const golden_model *m)
{
    stk_program_options o = stk_program_options_defaults();
    o.store = m->store;
    o.deterministic = true; /* no elections: many small programs */
    return o;
}

static inline bool golden_feed(const golden_model *m, stk_program *p, const char *member,
                               const char *input, int32_t n)
{
    stk_error err = {0};
    bool good = true;
    for (int32_t i = 0; good && i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "%s%d", input, i);
        stk_tensor *t = golden_rows(m, member, i, 0);
        good = t && CHECK_OK(stk_program_feed(p, name, t, &err));
        stk_tensor_release(t);
    }
    return good;
}

static inline void golden_inputs(const golden_model *m, stk_graph *g, const char *member,
                                 const char *input, int32_t n, stk_val *x)
{
    for (int32_t i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "%s%d", input, i);
        stk_tensor *t = golden_rows(m, member, i, 0);
        x[i] = t ? stk_g_input(g, name, t->dtype, t->rank, t->shape) : 0;
        stk_tensor_release(t);
    }
}

static inline void golden_outputs(const golden_model *m, bool training)
{
    stk_error err = {0};
    stk_graph *g = NULL;
    stk_program *p = NULL;
    stk_val x[GOLDEN_PARTS], y[GOLDEN_PARTS] = {0};
    stk_program_options options = golden_program_options(m);
    int32_t n = stk_model_output_count(m->model);
    if (!CHECK_OK(stk_graph_new(&g, &err))) return;
    golden_inputs(m, g, "x", "x", m->nx, x);
    /* Moving averages are left alone here: what is assigned would be seen by later checks. */
    stk_model_call(m->model, g, x, &(stk_call){.training = training}, y);
    for (int32_t i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "y%d", i);
        stk_g_output(g, name, y[i]);
    }
    stk_status status = stk_program_new(g, &options, &p, &err);
    if (CHECK_MSG(status == STK_OK, "%s: %s", m->name, err.message) &&
        golden_feed(m, p, "x", "x", m->nx) && CHECK_OK(stk_program_run(p, 1, &err)))
        for (int32_t i = 0; i < n; i++) {
            stk_tensor *got = NULL, *want = training ? golden_numbered(m, "train_out", i) : NULL;
            char name[16];
            snprintf(name, sizeof name, "y%d", i);
            CHECK_OK(stk_program_read(p, name, &got, &err));
            golden_same(m, training ? "outputs in training" : "outputs", got,
                        want ? want : golden_numbered(m, "out", i), 0);
            stk_tensor_release(got);
        }
    stk_program_release(p);
    stk_graph_release(g);
}

/* ---- gradients ------------------------------------------------------------------------------------------------------------ */

/* A part of meta as text, for the readers of losses, metrics and optimizers. Free it with stk_free. */
static inline char *golden_text_of(const stk_json *value)
{
    stk_error err = {0};
    stk_json_writer w = {.allow_nonfinite = true};
    char *text = NULL;
    size_t size = 0;
    stk_json_put_tree(&w, value);
    CHECK_OK(stk_json_finish(&w, &text, &size, &err));
    return text;
}

static inline int32_t golden_class_weights(const golden_model *m, double *weights)
{
    const stk_json *table = golden_meta(m, "class_weight");
    for (int64_t i = 0; table && i < table->count; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", (int)i);
        weights[i] = stk_json_double(stk_json_get(table, key), 1);
    }
    return table ? (int32_t)table->count : 0;
}

/* Weights of the samples of output o: given, by class, or none. */
static inline stk_val golden_sample_weights(const golden_model *m, stk_graph *g, int32_t o,
                                            stk_val y, const stk_val *given)
{
    stk_error err = {0};
    double table[GOLDEN_WEIGHTS];
    stk_tensor *t = NULL;
    int64_t n = golden_class_weights(m, table);
    if (m->weighted) return given[o];
    if (!n) return 0;
    CHECK_OK(stk_tensor_new(STK_F32, 1, &n, &t, &err));
    for (int64_t i = 0; i < n; i++) CHECK_OK(stk_tensor_set(t, i, table[i], &err));
    stk_val weights = stk_g_gather(g, stk_g_const(g, t), y, 0);
    stk_tensor_release(t);
    return weights;
}

static inline stk_val golden_total_loss(const golden_model *m, stk_graph *g, stk_call *call,
                                        const stk_val *y, const stk_val *p, const stk_val *sw)
{
    stk_error err = {0};
    stk_val total = 0;
    const stk_json *by = golden_meta(m, "loss_weights");
    for (int32_t o = 0; o < m->ny; o++) {
        stk_loss loss;
        char *text = golden_text_of(stk_json_item(golden_meta(m, "losses"), o));
        bool good = text && CHECK_OK(stk_loss_parse(text, &loss, &err));
        stk_free(text);
        if (!good) return 0;
        stk_val one = stk_g_loss(g, &loss, y[o], p[o], golden_sample_weights(m, g, o, y[o], sw),
                                 call->output_masks[o]);
        if (by && by->kind == STK_JSON_ARRAY)
            one = stk_g_mul(g, one,
                            stk_g_scalar(g, STK_F32, stk_json_double(stk_json_item(by, o), 1)));
        total = total ? stk_g_add(g, total, one) : one;
    }
    return call->penalty ? stk_g_add(g, total, call->penalty) : total;
}

static inline void golden_compare_gradients(const golden_model *m, stk_program *p)
{
    stk_error err = {0};
    double steepest = 0;
    int32_t n = stk_model_weight_count(m->model);
    for (int32_t i = 0; i < n; i++)
        steepest =
            fmax(steepest, golden_largest(golden_named(m, "grad", golden_weight_name(m, i))));
    for (int32_t i = 0; i < n; i++) {
        char what[160];
        stk_tensor *want = golden_named(m, "grad", golden_weight_name(m, i)), *got = NULL;
        if (!want) continue;
        snprintf(what, sizeof what, "grad/%s", golden_weight_name(m, i));
        CHECK_OK(stk_program_read(p, what, &got, &err));
        golden_same(m, what, got, want, 0.01 * steepest);
        stk_tensor_release(got);
    }
}

static inline void golden_gradients(const golden_model *m)
{
    stk_error err = {0};
    stk_graph *g = NULL;
    stk_program *p = NULL;
    stk_val x[GOLDEN_PARTS], y[GOLDEN_PARTS], sw[GOLDEN_PARTS] = {0}, out[GOLDEN_PARTS] = {0};
    stk_val masks[GOLDEN_PARTS] = {0}, weights[GOLDEN_WEIGHTS] = {0}, values[GOLDEN_WEIGHTS] = {0},
            wrt[GOLDEN_WEIGHTS], d[GOLDEN_WEIGHTS];
    int32_t n = stk_model_weight_count(m->model), place[GOLDEN_WEIGHTS], count = 0;
    stk_program_options options = golden_program_options(m);
    if (!CHECK(n <= GOLDEN_WEIGHTS) || !CHECK_OK(stk_graph_new(&g, &err))) return;
    golden_inputs(m, g, "x", "x", m->nx, x);
    golden_inputs(m, g, "y", "y", m->ny, y);
    if (m->weighted) golden_inputs(m, g, "sw", "s", m->ny, sw);
    stk_call call = {.training = true, .weights = weights, .values = values, .output_masks = masks};
    stk_model_call(m->model, g, x, &call, out);
    stk_val loss = golden_total_loss(m, g, &call, y, out, sw);
    for (int32_t i = 0; i < n; i++)
        if (golden_named(m, "grad", golden_weight_name(m, i))) {
            place[count] = i;
            wrt[count++] = values[i] ? values[i] : weights[i];
        }
    stk_g_gradients(g, loss, count, wrt, d);
    for (int32_t i = 0; i < count; i++) {
        char name[160];
        snprintf(name, sizeof name, "grad/%s", golden_weight_name(m, place[i]));
        stk_g_output(g, name, d[i] ? d[i] : stk_g_zeros_like(g, wrt[i]));
    }
    stk_g_output(g, "loss", loss);
    stk_status status = stk_program_new(g, &options, &p, &err);
    if (CHECK_MSG(status == STK_OK, "%s: %s", m->name, err.message) &&
        golden_feed(m, p, "x", "x", m->nx) && golden_feed(m, p, "y", "y", m->ny) &&
        (!m->weighted || golden_feed(m, p, "sw", "s", m->ny)) &&
        CHECK_OK(stk_program_run(p, 1, &err)))
        golden_compare_gradients(m, p);
    stk_program_release(p);
    stk_graph_release(g);
}

/* ---- training --------------------------------------------------------------------------------------------------------------- */

typedef struct golden_texts { /* what a stk_step_config points to */
    int32_t nlosses, nmetrics;
    char *optimizer, *losses[GOLDEN_PARTS], *metrics[GOLDEN_WEIGHTS];
    stk_step_metric metric[GOLDEN_WEIGHTS];
    double loss_weights[GOLDEN_PARTS], class_weights[GOLDEN_WEIGHTS];
} golden_texts;

static inline void golden_read_texts(const golden_model *m, golden_texts *t)
{
    const stk_json *losses = golden_meta(m, "losses"), *groups = golden_meta(m, "metrics");
    const stk_json *by = golden_meta(m, "loss_weights");
    memset(t, 0, sizeof *t);
    t->optimizer = golden_text_of(golden_meta(m, "optimizer"));
    for (int64_t i = 0; i < losses->count; i++) {
        t->losses[t->nlosses++] = golden_text_of(&losses->items[i]);
        t->loss_weights[i] = stk_json_double(stk_json_item(by, i), 1);
    }
    for (int64_t o = 0; o < groups->count; o++)
        for (int64_t i = 0; i < groups->items[o].count; i++) {
            t->metrics[t->nmetrics] = golden_text_of(&groups->items[o].items[i]);
            t->metric[t->nmetrics] =
                (stk_step_metric){.text = t->metrics[t->nmetrics], .output = (int32_t)o};
            t->nmetrics++;
        }
}

static inline void golden_free_texts(golden_texts *t)
{
    stk_free(t->optimizer);
    for (int32_t i = 0; i < t->nlosses; i++) stk_free(t->losses[i]);
    for (int32_t i = 0; i < t->nmetrics; i++) stk_free(t->metrics[i]);
}

static inline stk_step *golden_step(const golden_model *m, const golden_texts *t)
{
    stk_error err = {0};
    stk_step *step = NULL;
    stk_optimizer *optimizer = NULL, *scaled = NULL;
    const stk_json *scale = golden_meta(m, "loss_scale");
    if (!CHECK_OK(stk_optimizer_parse(t->optimizer, &optimizer, &err))) return NULL;
    if (scale && scale->kind != STK_JSON_NULL) {
        stk_optimizer_options options = *stk_optimizer_get_options(optimizer);
        options.dynamic_loss_scale = true;
        options.initial_scale = stk_json_double(scale, 0);
        CHECK_OK(stk_optimizer_new(&options, &scaled, &err));
    }
    stk_step_config c = {.model = m->model,
                         .optimizer = scaled ? scaled : optimizer,
                         .nlosses = t->nlosses,
                         .losses = (const char *const *)t->losses,
                         .loss_weights = t->loss_weights,
                         .nmetrics = t->nmetrics,
                         .metrics = t->metric,
                         .class_weights = t->class_weights};
    c.nclass_weights = golden_class_weights(m, (double *)t->class_weights);
    stk_status status = stk_step_new(&c, &step, &err);
    CHECK_MSG(status == STK_OK, "%s: %s", m->name, err.message);
    stk_optimizer_release(optimizer);
    stk_optimizer_release(scaled);
    return step;
}

/* The program for a batch, fed. weighted: with sample weights. */
static inline stk_program *golden_batch(const golden_model *m, stk_function *f, int64_t step)
{
    stk_error err = {0};
    stk_tensor *parts[3 * GOLDEN_PARTS];
    stk_program *p = NULL;
    int32_t n = 0;
    for (int32_t i = 0; i < m->nx; i++) parts[n++] = golden_rows(m, "x", i, step);
    for (int32_t i = 0; i < m->ny; i++) parts[n++] = golden_rows(m, "y", i, step);
    for (int32_t i = 0; m->weighted && i < m->ny; i++) parts[n++] = golden_rows(m, "sw", i, step);
    stk_status status = stk_function_call(f, parts, &p, &err);
    CHECK_MSG(status == STK_OK, "%s: %s", m->name, err.message);
    for (int32_t i = 0; i < n; i++) stk_tensor_release(parts[i]);
    return p;
}

static inline void golden_ten_losses(const golden_model *m, stk_step *step)
{
    stk_error err = {0};
    stk_function *f = NULL;
    stk_program_options options = golden_program_options(m);
    const stk_tensor *losses = stk_npz_find(m->file, "losses");
    if (!CHECK_OK(stk_step_function(step, STK_STEP_TRAIN, m->weighted, &options, &f, &err))) return;
    for (int64_t i = 0; i < m->steps; i++) {
        stk_program *p = golden_batch(m, f, i);
        stk_tensor *loss = NULL;
        if (!p || !CHECK_OK(stk_program_run(p, 1, &err)) ||
            !CHECK_OK(stk_program_read(p, "loss", &loss, &err)))
            break;
        double want = stk_tensor_at(losses, i), got = stk_tensor_at(loss, 0);
        CHECK_MSG(fabs(got - want) <= m->tolerance * fmax(fabs(want), 1e-2),
                  "%s: loss %d is %.7g, Keras has %.7g", m->name, (int)i, got, want);
        stk_tensor_release(loss);
    }
    stk_function_release(f);
}

static inline void golden_final_weights(const golden_model *m)
{
    stk_error err = {0};
    for (int32_t i = 0; i < stk_model_weight_count(m->model); i++) {
        char what[160];
        stk_tensor *got = NULL;
        snprintf(what, sizeof what, "w10/%s", golden_weight_name(m, i));
        CHECK_OK(stk_store_get(m->store, stk_model_weight(m->model, i).name, &got, &err));
        golden_same(m, what, got, stk_npz_find(m->file, what), 0);
        stk_tensor_release(got);
    }
}

/* Metrics of one evaluation over all batches, compared by name. */
static inline void golden_metrics(const golden_model *m, stk_step *step)
{
    stk_error err = {0};
    stk_function *f = NULL;
    stk_program_options options = golden_program_options(m);
    double values[GOLDEN_WEIGHTS] = {0};
    const stk_json *names = golden_meta(m, "metric_names");
    const stk_tensor *want = stk_npz_find(m->file, "metrics");
    if (!CHECK_OK(stk_step_reset(step, m->store, &err)) ||
        !CHECK_OK(stk_step_function(step, STK_STEP_EVALUATE, m->weighted, &options, &f, &err)))
        return;
    for (int64_t i = 0; i < m->batches; i++) {
        stk_program *p = golden_batch(m, f, i);
        if (!p || !CHECK_OK(stk_program_run(p, 1, &err))) break;
    }
    CHECK_OK(stk_step_results(step, m->store, values, &err));
    for (int64_t k = 0; k < names->count; k++) {
        const char *name = stk_json_text(&names->items[k], "");
        bool found = false;
        for (int32_t i = 0; i < stk_step_result_count(step); i++)
            if (!strcmp(stk_step_result_name(step, i), name)) {
                found = true;
                CHECK_MSG(fabs(values[i] - stk_tensor_at(want, k)) <=
                              m->tolerance * fmax(fabs(stk_tensor_at(want, k)), 1e-2),
                          "%s: metric %s is %.7g, Keras has %.7g", m->name, name, values[i],
                          stk_tensor_at(want, k));
            }
        CHECK_MSG(found, "%s: there is no result '%s'", m->name, name);
    }
    stk_function_release(f);
}

static inline void golden_training(const golden_model *m)
{
    stk_error err = {0};
    golden_texts texts;
    golden_read_texts(m, &texts);
    stk_step *step = golden_step(m, &texts);
    if (step && CHECK_OK(stk_step_init(step, m->store, &err)) && golden_set_weights(m)) {
        golden_ten_losses(m, step);
        golden_final_weights(m);
        if (!texts.class_weights[0])
            golden_metrics(m, step); /* Keras evaluates without class weights */
    }
    stk_step_release(step);
    golden_free_texts(&texts);
}

/* ---- everything --------------------------------------------------------------------------------------------------------------- */

static inline void golden_model_check(const char *path)
{
    golden_model m;
    if (golden_model_open(path, &m) && golden_set_weights(&m)) {
        bool train = stk_json_bool(golden_meta(&m, "train"), false);
        golden_outputs(&m, false);
        if (train) {
            golden_outputs(&m, true);
            golden_set_weights(&m); /* moving averages have moved */
            golden_gradients(&m);
            golden_training(&m);
        }
    }
    golden_model_close(&m);
}

/* STK_GOLDEN_MODEL=conv2d,lstm: files whose names hold one of these; unset: all. */
static inline bool golden_wanted(const char *name)
{
    const char *only = getenv("STK_GOLDEN_MODEL");
    char word[64];
    if (!only || !*only) return true;
    for (; *only; only += strcspn(only, ","), only += *only == ',') {
        snprintf(word, sizeof word, "%.*s", (int)strcspn(only, ","), only);
        if (*word && strstr(name, word)) return true;
    }
    return false;
}

/* All files whose names start with one of the words (a list that ends with NULL), or with none of them when not `with`. Returns
 * how many there were. */
static inline int32_t golden_models_check(const char *const *words, bool with)
{
    int32_t count = 0;
    DIR *folder = opendir(STK_TEST_DIR "/golden/models");
    if (!CHECK(folder != NULL)) return 0;
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        bool match = false;
        char path[1024];
        if (!strstr(entry->d_name, ".npz") || !golden_wanted(entry->d_name)) continue;
        for (const char *const *word = words; *word; word++)
            match |= !strncmp(entry->d_name, *word, strlen(*word));
        if (match != with) continue;
        snprintf(path, sizeof path, "%s/golden/models/%s", STK_TEST_DIR, entry->d_name);
        golden_model_check(path);
        count++;
    }
    closedir(folder);
    return count;
}

#endif
