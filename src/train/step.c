/* One step of training as graph: cast inputs, call the model, losses, metrics, gradients, update. The order of things is
 * that of Keras' train_step and test_step. */
#include "train/step.h"

#include "layers/model.h"
#include "train/metrics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MODES = 3, RESULT_NAME = 128 };

/* A number that is reported: a sum kept by the programs. */
typedef struct result {
    stk_metric metric;
    int32_t output;
    bool weighted;
    char name[RESULT_NAME], prefix[RESULT_NAME + 16]; /* "accuracy", "metrics/accuracy" */
} result;

typedef struct mode_context {
    const stk_step *step;
    stk_step_mode mode;
    bool weighted;
} mode_context;

struct stk_step {
    stk_arena arena;
    stk_model *model;
    stk_optimizer *optimizer;
    int32_t ninputs, noutputs;
    stk_loss *losses; /* one per output */
    bool *has_loss;   /* one per output */
    double *loss_weights;
    bool any_loss;
    int32_t nresults, nlosses; /* results: loss, losses of outputs, metrics */
    result *results;
    stk_tensor *class_weights; /* float32; NULL: none */
    int64_t seed;
    int32_t nweights, ntrained;
    int32_t *trained;    /* which weights of the model */
    const char **names;  /* of the trained ones */
    const char **inputs; /* x0 .. y0 .. w0 .. */
    mode_context contexts[MODES][2];
};

/* ---- making ---------------------------------------------------------------------------------------------------------- */

static void *take(stk_step *s, size_t count, size_t size, stk_status *status, stk_error *err)
{
    void *memory = *status == STK_OK ? stk_arena_array(&s->arena, count ? count : 1, size) : NULL;
    if (!memory && *status == STK_OK) *status = stk_fail_memory(err, "stk_step_new", count * size);
    return memory;
}

static stk_status read_losses(stk_step *s, const stk_step_config *c, stk_error *err)
{
    stk_status status = STK_OK;
    size_t n = (size_t)s->noutputs;
    s->losses = take(s, n, sizeof *s->losses, &status, err);
    s->has_loss = take(s, n, sizeof *s->has_loss, &status, err);
    s->loss_weights = take(s, n, sizeof *s->loss_weights, &status, err);
    STK_TRY(status);
    if (c->nlosses > 1 && c->nlosses != s->noutputs)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "%d losses for a model with %d outputs; give one loss, or one per output",
                        c->nlosses, s->noutputs);
    for (int32_t o = 0; o < s->noutputs && c->nlosses > 0; o++) {
        int32_t from = c->nlosses == 1 ? 0 : o;
        s->loss_weights[o] = c->loss_weights ? c->loss_weights[from] : 1;
        if (!c->losses[from]) continue;
        STK_TRY(stk_loss_parse(c->losses[from], &s->losses[o], err));
        s->has_loss[o] = s->any_loss = true;
    }
    return STK_OK;
}

static bool name_is_taken(const stk_step *s, const char *name)
{
    for (int32_t i = 0; i < s->nresults; i++)
        if (!strcmp(s->results[i].name, name)) return true;
    return false;
}

/* A second metric of the same name is shown as "auc_1". */
static stk_status add_result(stk_step *s, const stk_metric *metric, int32_t output, bool weighted,
                             const char *before, const char *name, stk_error *err)
{
    result *r = &s->results[s->nresults];
    *r = (result){.metric = *metric, .output = output, .weighted = weighted};
    int n = snprintf(r->name, sizeof r->name, "%s%s%s", before, *before ? "_" : "", name);
    if (n < 0 || (size_t)n >= sizeof r->name - 8)
        return stk_fail(err, STK_ERR_ARGUMENT, "metric '%.60s...': the name is too long", name);
    for (int k = 1; name_is_taken(s, r->name); k++)
        snprintf(r->name + n, sizeof r->name - (size_t)n, "_%d", k);
    snprintf(r->prefix, sizeof r->prefix, "metrics/%s", r->name);
    s->nresults++;
    return STK_OK;
}

static stk_status read_results(stk_step *s, const stk_step_config *c, stk_error *err)
{
    stk_status status = STK_OK;
    stk_metric mean = stk_metric_defaults(STK_METRIC_MEAN_LOSS);
    s->results = take(s, (size_t)(1 + s->noutputs + c->nmetrics), sizeof *s->results, &status, err);
    STK_TRY(status);
    if (s->any_loss) STK_TRY(add_result(s, &mean, 0, false, "", "loss", err));
    for (int32_t o = 0; o < s->noutputs && s->noutputs > 1; o++)
        if (s->has_loss[o])
            STK_TRY(
                add_result(s, &mean, o, false, stk_model_output(s->model, o).name, "loss", err));
    s->nlosses = s->nresults;
    for (int32_t i = 0; i < c->nmetrics; i++) {
        const stk_step_metric *m = &c->metrics[i];
        stk_metric metric;
        if (m->output < 0 || m->output >= s->noutputs)
            return stk_fail(err, STK_ERR_RANGE,
                            "metric '%s' is for output %d, but the model has %d, from 0 on",
                            m->text ? m->text : "", m->output, s->noutputs);
        STK_TRY(stk_metric_parse(m->text, &metric, err));
        const char *before = s->noutputs > 1 ? stk_model_output(s->model, m->output).name : "";
        STK_TRY(add_result(s, &metric, m->output, m->weighted, before, metric.name, err));
    }
    return STK_OK;
}

static stk_status list_trained(stk_step *s, stk_error *err)
{
    stk_status status = STK_OK;
    s->nweights = stk_model_weight_count(s->model);
    s->trained = take(s, (size_t)s->nweights, sizeof *s->trained, &status, err);
    s->names = take(s, (size_t)s->nweights, sizeof *s->names, &status, err);
    STK_TRY(status);
    for (int32_t i = 0; i < s->nweights; i++) {
        stk_weight w = stk_model_weight(s->model, i);
        if (!w.trainable) continue;
        s->trained[s->ntrained] = i;
        s->names[s->ntrained++] = w.name;
    }
    return STK_OK;
}

static stk_status name_inputs(stk_step *s, stk_error *err)
{
    stk_status status = STK_OK;
    int32_t n = s->ninputs + 2 * s->noutputs;
    s->inputs = take(s, (size_t)n, sizeof *s->inputs, &status, err);
    for (int32_t i = 0; i < n && status == STK_OK; i++) {
        char text[24];
        int32_t o = i - s->ninputs;
        snprintf(text, sizeof text, "%c%d",
                 o < 0             ? 'x'
                 : o < s->noutputs ? 'y'
                                   : 'w',
                 o < 0             ? i
                 : o < s->noutputs ? o
                                   : o - s->noutputs);
        s->inputs[i] = stk_arena_strdup(&s->arena, text);
        if (!s->inputs[i]) status = stk_fail_memory(err, "stk_step_new", sizeof text);
    }
    for (int m = 0; m < MODES; m++)
        for (int k = 0; k < 2; k++) s->contexts[m][k] = (mode_context){s, (stk_step_mode)m, k == 1};
    return status;
}

static stk_status read_class_weights(stk_step *s, const stk_step_config *c, stk_error *err)
{
    if (c->nclass_weights <= 0) return STK_OK;
    if (s->noutputs != 1)
        return stk_fail(err, STK_ERR_UNSUPPORTED,
                        "class weights are for models with one output, this one has %d; use sample "
                        "weights",
                        s->noutputs);
    int64_t n = c->nclass_weights;
    STK_TRY(stk_tensor_new(STK_F32, 1, &n, &s->class_weights, err));
    for (int64_t i = 0; i < n; i++)
        STK_TRY(stk_tensor_set(s->class_weights, i, c->class_weights[i], err));
    return STK_OK;
}

/* float16 gradients vanish below 6e-8: Keras scales the loss as soon as the policy is chosen. */
static stk_status set_optimizer(stk_step *s, const stk_step_config *c, stk_error *err)
{
    if (c->policy) STK_TRY(stk_model_set_policy(c->model, c->policy, err));
    if (!c->optimizer) return STK_OK;
    stk_optimizer_options o = *stk_optimizer_get_options(c->optimizer);
    if (c->policy && !strcmp(c->policy, "mixed_float16") && !o.dynamic_loss_scale) {
        o.dynamic_loss_scale = true;
        return stk_optimizer_new(&o, &s->optimizer, err);
    }
    s->optimizer = stk_optimizer_retain(c->optimizer);
    return STK_OK;
}

static stk_status fill(stk_step *s, const stk_step_config *c, stk_error *err)
{
    s->model = stk_model_retain(c->model);
    s->ninputs = stk_model_input_count(s->model);
    s->noutputs = stk_model_output_count(s->model);
    s->seed = c->seed;
    STK_TRY(set_optimizer(s, c, err));
    STK_TRY(read_losses(s, c, err));
    STK_TRY(read_results(s, c, err));
    STK_TRY(read_class_weights(s, c, err));
    STK_TRY(name_inputs(s, err));
    return list_trained(s, err);
}

stk_status stk_step_new(const stk_step_config *config, stk_step **out, stk_error *err)
{
    if (!config || !out || !config->model)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_step_new: config, its model and out must be given");
    STK_TRY(stk_model_check_built(config->model, err));
    stk_step *s = stk_calloc(1, sizeof *s);
    if (!s) return stk_fail_memory(err, "stk_step_new", sizeof *s);
    stk_status status = fill(s, config, err);
    if (status == STK_OK)
        *out = s;
    else
        stk_step_release(s);
    return status;
}

void stk_step_release(stk_step *s)
{
    if (!s) return;
    stk_model_release(s->model);
    stk_optimizer_release(s->optimizer);
    stk_tensor_release(s->class_weights);
    stk_arena_release(&s->arena);
    stk_free(s);
}

const stk_optimizer *stk_step_optimizer(const stk_step *s) { return s ? s->optimizer : NULL; }

/* ---- the graph --------------------------------------------------------------------------------------------------------- */

/* What is being built: arrays live in the graph's arena. */
typedef struct work {
    const stk_step *s;
    stk_graph *g;
    const stk_val *y, *w; /* true values and weights as fed; w NULL: none */
    stk_val *x, *p, *masks, *weights, *values;
    double batch;
    stk_val penalty;
} work;

/* [n] becomes [n, 1] for a model that wants one column, and bytes become what the model computes with. */
static stk_val adapt(const work *w, int32_t i, stk_val x)
{
    stk_spec spec = stk_model_input(w->s->model, i);
    bool column = spec.rank == 2 && spec.shape[1] == 1;
    if (stk_g_rank(w->g, x) == 1 && column) x = stk_g_expand_dims(w->g, x, -1);
    return stk_g_cast(w->g, x, spec.dtype);
}

static stk_val call_model(work *w, stk_step_mode mode)
{
    stk_call call = {.training = mode == STK_STEP_TRAIN,
                     .seed = w->s->seed,
                     .weights = w->weights,
                     .values = mode == STK_STEP_TRAIN ? w->values : NULL,
                     .output_masks = w->masks};
    stk_model_call(w->s->model, w->g, w->x, &call, w->p);
    return call.penalty;
}

/* Class weights become weights of samples; a class without one counts once. */
static stk_val class_weights(const work *w, stk_val y, stk_val p)
{
    stk_graph *g = w->g;
    bool columns = stk_g_rank(g, y) > 1 && stk_g_dim(g, y, -1) != 1;
    stk_val label =
        columns ? stk_g_argmax(g, y, -1) : stk_g_cast(g, stk_class_numbers(g, y, p), STK_I64);
    stk_val zero = stk_g_scalar(g, STK_I64, 0),
            most = stk_g_scalar(g, STK_I64, (double)stk_tensor_count(w->s->class_weights));
    stk_val known = stk_g_and(g, stk_g_ge(g, label, zero), stk_g_lt(g, label, most));
    stk_val table = stk_g_const(g, w->s->class_weights);
    stk_val found = stk_g_gather(g, table, stk_g_select(g, known, label, zero), 0);
    return stk_g_select(g, known, found, stk_g_scalar(g, STK_F32, 1));
}

static stk_val sample_weights(const work *w, int32_t o)
{
    stk_val fed = w->w ? stk_g_cast(w->g, w->w[o], STK_F32) : 0;
    if (!w->s->class_weights) return fed;
    stk_val own = class_weights(w, w->y[o], w->p[o]);
    return fed ? stk_g_mul(w->g, own, stk_weights_like(w->g, fed, own)) : own;
}

/* A mean over samples: total and count of "metrics/loss". */
static void track(const work *w, const result *r, stk_val value)
{
    stk_graph *g = w->g;
    static const char *const names[2] = {"total", "count"};
    stk_val batch = stk_g_scalar(g, STK_F32, w->batch);
    stk_val grows[2] = {stk_g_mul(g, value, batch), batch};
    for (int k = 0; k < 2; k++) {
        char name[RESULT_NAME + 32];
        snprintf(name, sizeof name, "%s/%s", r->prefix, names[k]);
        stk_val sum = stk_g_variable(g, name, STK_F32, 0, NULL);
        stk_g_assign(g, sum, stk_g_add(g, sum, grows[k]));
    }
}

static stk_val build_losses(const work *w)
{
    const stk_step *s = w->s;
    stk_graph *g = w->g;
    stk_val total = 0;
    int32_t tracked = 1;
    for (int32_t o = 0; o < s->noutputs; o++) {
        if (!s->has_loss[o]) continue;
        stk_val loss =
            stk_g_loss(g, &s->losses[o], w->y[o], w->p[o], sample_weights(w, o), w->masks[o]);
        if (s->noutputs > 1) track(w, &s->results[tracked++], loss);
        if (s->loss_weights[o] != 1)
            loss = stk_g_mul(g, loss, stk_g_scalar(g, STK_F32, s->loss_weights[o]));
        total = total ? stk_g_add(g, total, loss) : loss;
    }
    if (w->penalty) total = stk_g_add(g, total, stk_g_cast(g, w->penalty, STK_F32));
    track(w, &s->results[0], total);
    return total;
}

static void build_metrics(const work *w)
{
    const stk_step *s = w->s;
    for (int32_t i = s->nlosses; i < s->nresults; i++) {
        const result *r = &s->results[i];
        int32_t o = r->output;
        stk_g_metric(w->g, &r->metric, r->prefix, w->y[o], w->p[o],
                     r->weighted ? sample_weights(w, o) : 0, w->masks[o]);
    }
}

static stk_val constrain(void *context, stk_graph *g, int32_t index, stk_val value)
{
    const stk_step *s = context;
    stk_weight w = stk_model_weight(s->model, s->trained[index]);
    return w.constraint ? stk_weight_constrain(&w, g, value) : value;
}

static void build_update(const work *w, stk_val loss)
{
    const stk_step *s = w->s;
    stk_graph *g = w->g;
    size_t n = (size_t)s->ntrained + 1;
    stk_val *v = stk_arena_array(&g->arena, n, sizeof *v),
            *d = stk_arena_array(&g->arena, n, sizeof *d),
            *value = stk_arena_array(&g->arena, n, sizeof *value);
    if (!v || !d || !value) {
        stk_fail_memory(&g->error, "building the update", n * sizeof *v);
        return;
    }
    if (s->ntrained == 0) return; /* nothing to train: statistics of layers may still move */
    for (int32_t i = 0; i < s->ntrained; i++) {
        value[i] = w->values[s->trained[i]];
        v[i] = value[i] ? value[i] : w->weights[s->trained[i]];
    }
    stk_g_gradients(g, stk_optimizer_scale_loss(s->optimizer, g, loss), s->ntrained, v, d);
    for (int32_t i = 0; i < s->ntrained; i++) {
        v[i] = w->weights[s->trained[i]];
        if (value[i] && !d[i]) stk_g_assign(g, v[i], value[i]); /* no update will */
    }
    stk_origin before = g->origin;
    stk_g_place(g, "optimizer");
    g->origin.part = STK_PART_UPDATE;
    stk_optimizer_apply(s->optimizer, g,
                        &(stk_update){.n = s->ntrained,
                                      .variables = v,
                                      .gradients = d,
                                      .names = s->names,
                                      .values = value,
                                      .constrain = constrain,
                                      .context = (void *)(uintptr_t)s});
    g->origin = before;
}

static bool prepare(work *w, const stk_val *x)
{
    const stk_step *s = w->s;
    stk_arena *arena = &w->g->arena;
    w->x = stk_arena_array(arena, (size_t)s->ninputs + 1, sizeof *w->x);
    w->p = stk_arena_array(arena, (size_t)s->noutputs + 1, sizeof *w->p);
    w->masks = stk_arena_array(arena, (size_t)s->noutputs + 1, sizeof *w->masks);
    w->weights = stk_arena_array(arena, (size_t)s->nweights + 1, sizeof *w->weights);
    w->values = stk_arena_array(arena, (size_t)s->nweights + 1, sizeof *w->values);
    if (!w->x || !w->p || !w->masks || !w->weights || !w->values) {
        stk_fail_memory(&w->g->error, "building a step", 0);
        return false;
    }
    for (int32_t i = 0; i < s->ninputs; i++) w->x[i] = adapt(w, i, x[i]);
    w->batch = stk_g_rank(w->g, x[0]) ? (double)stk_g_dim(w->g, x[0], 0) : 1;
    return stk_graph_ok(w->g);
}

void stk_step_build(const stk_step *s, stk_step_mode mode, bool weighted, stk_graph *g,
                    const stk_val *x)
{
    if (!s || !stk_graph_ok(g)) return;
    work w = {.s = s, .g = g, .y = x + s->ninputs};
    if (weighted) w.w = w.y + s->noutputs;
    if (mode != STK_STEP_PREDICT && !s->any_loss) {
        stk_g_fail(g, STK_ERR_STATE, "no loss was given; without one a model can only predict");
        return;
    }
    if (mode == STK_STEP_TRAIN && !s->optimizer) {
        stk_g_fail(g, STK_ERR_STATE, "no optimizer was given; without one a model is not trained");
        return;
    }
    if (!prepare(&w, x)) return;
    w.penalty = call_model(&w, mode);
    if (mode == STK_STEP_PREDICT) {
        for (int32_t o = 0; o < s->noutputs; o++) {
            char name[24];
            snprintf(name, sizeof name, "y%d", o);
            stk_g_output(g, name, w.p[o]);
        }
        return;
    }
    if (!stk_graph_ok(g)) return;
    const char *before = stk_g_place(g, "loss");
    stk_val loss = build_losses(&w);
    stk_g_place(g, "metrics");
    build_metrics(&w);
    stk_g_place(g, before);
    if (mode == STK_STEP_TRAIN && stk_graph_ok(g)) build_update(&w, loss);
    stk_g_output(g, "loss", loss);
}

/* ---- functions ----------------------------------------------------------------------------------------------------------- */

static void build(stk_graph *g, const stk_val *x, void *context)
{
    const mode_context *c = context;
    stk_step_build(c->step, c->mode, c->weighted, g, x);
}

int32_t stk_step_input_count(const stk_step *s, stk_step_mode mode, bool weighted)
{
    if (mode == STK_STEP_PREDICT) return s->ninputs;
    return s->ninputs + s->noutputs * (weighted ? 2 : 1);
}

stk_status stk_step_function(stk_step *s, stk_step_mode mode, bool weighted,
                             const stk_program_options *options, stk_function **out, stk_error *err)
{
    if (!s || (int)mode < 0 || (int)mode >= MODES || !out)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_step_function: step, mode and out must be given");
    return stk_function_new(stk_step_input_count(s, mode, weighted), s->inputs, build,
                            &s->contexts[mode][weighted], options, out, err);
}

/* ---- the store ------------------------------------------------------------------------------------------------------------ */

stk_status stk_step_init(const stk_step *s, stk_store *store, stk_error *err)
{
    if (!s || !store)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_step_init: step and store must be given");
    STK_TRY(stk_model_init(s->model, store, s->seed, err));
    if (s->optimizer) STK_TRY(stk_optimizer_init(s->optimizer, store, s->ntrained, s->names, err));
    return stk_step_reset(s, store, err);
}

stk_status stk_step_finish(const stk_step *s, stk_store *store, stk_error *err)
{
    if (!s || !store)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_step_finish: step and store must be given");
    if (!s->optimizer) return STK_OK;
    return stk_optimizer_finish(s->optimizer, store, s->ntrained, s->names, err);
}

stk_status stk_step_check_labels(const stk_step *s, int32_t output, const stk_tensor *labels,
                                 stk_error *err)
{
    if (!s || !labels || output < 0 || output >= s->noutputs)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_step_check_labels: there is no output %d, or no labels", output);
    stk_spec spec = stk_model_output(s->model, output);
    int64_t classes = spec.rank > 0 ? spec.shape[spec.rank - 1] : 0;
    bool column = labels->rank == spec.rank && spec.rank > 0 && labels->shape[spec.rank - 1] == 1;
    if (!s->has_loss[output] || classes < 1 || (labels->rank != spec.rank - 1 && !column))
        return STK_OK;
    return stk_loss_check_labels(&s->losses[output], classes, labels, err);
}

int32_t stk_step_result_count(const stk_step *s) { return s ? s->nresults : 0; }

const char *stk_step_result_name(const stk_step *s, int32_t i)
{
    return s && i >= 0 && i < s->nresults ? s->results[i].name : NULL;
}

stk_status stk_step_results(const stk_step *s, stk_store *store, double *values, stk_error *err)
{
    for (int32_t i = 0; i < stk_step_result_count(s); i++) {
        stk_tensor *t = NULL;
        STK_TRY(stk_metric_result(&s->results[i].metric, s->results[i].prefix, store, &t, err));
        int64_t n = stk_tensor_count(t);
        values[i] = 0;
        for (int64_t k = 0; k < n; k++) values[i] += stk_tensor_at(t, k) / (double)n;
        stk_tensor_release(t);
    }
    return STK_OK;
}

stk_status stk_step_reset(const stk_step *s, stk_store *store, stk_error *err)
{
    for (int32_t i = 0; i < stk_step_result_count(s); i++)
        STK_TRY(stk_metric_reset(s->results[i].prefix, store, err));
    return STK_OK;
}
