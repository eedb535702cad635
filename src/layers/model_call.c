/* Adding a model to a graph: its calls are run one after the other. The same code, on small trial graphs, finds out what a
 * call gives (stk_model_infer) and declares weights. */
#include "layers/activation.h"
#include "layers/model_call.h"
#include "layers/objects.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PATH = STK_LAYER_PATH, DEEPEST = 16 };

/* ---- mistakes ------------------------------------------------------------------------------------------------------------ */

stk_val stk_c_fail(stk_layer_call *c, stk_status code, const char *format, ...)
{
    char text[STK_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return stk_g_fail(c->g, code, "%s", text);
}

bool stk_c_rank(stk_layer_call *c, int32_t i, int32_t low, int32_t high)
{
    int32_t rank = stk_g_rank(c->g, c->x[i]);
    if (!stk_graph_ok(c->g)) return false;
    if (rank >= low && rank <= high) return true;
    if (low == high)
        stk_c_fail(c, STK_ERR_SHAPE, "input %d has %d axes with the batch, it needs %d", i, rank,
                   low);
    else
        stk_c_fail(c, STK_ERR_SHAPE, "input %d has %d axes with the batch, it needs %d to %d", i,
                   rank, low, high);
    return false;
}

int32_t stk_c_axis(stk_layer_call *c, int32_t i, int64_t axis)
{
    int32_t rank = stk_g_rank(c->g, c->x[i]);
    if (!stk_graph_ok(c->g)) return -1;
    if (axis >= -rank && axis < rank) return (int32_t)(axis < 0 ? axis + rank : axis);
    stk_c_fail(c, STK_ERR_RANGE, "axis %lld of an input with %d axes", (long long)axis, rank);
    return -1;
}

/* ---- calls ----------------------------------------------------------------------------------------------------------------- */

static void prepare_inputs(const stk_layer_call *c, stk_val *x)
{
    bool cast = !c->layer->def->keeps_dtype && !c->layer->inner && stk_dtype_is_float(c->compute);
    for (int32_t i = 0; i < c->nx; i++) {
        x[i] = c->x[i];
        if (cast && x[i] && stk_dtype_is_float(stk_g_dtype(c->g, x[i])) &&
            stk_g_dtype(c->g, x[i]) != c->compute)
            x[i] = stk_g_cast(c->g, x[i], c->compute);
    }
}

/* Says which layer it was; trial graphs say it better, with None for what is not known. */
static void name_mistake(stk_layer_call *c)
{
    char types[256] = "";
    size_t used = 0;
    if (c->frame->trial >= 0 && !c->parent) return;
    for (int32_t i = 0; i < c->nx && i < 3 && used < sizeof types; i++) {
        int n =
            snprintf(types + used, sizeof types - used, "%s%s", i ? ", " : " on ",
                     stk_val_ok(c->g, c->x[i]) ? STK_TYPE_TEXT(stk_type_of(c->g, c->x[i])) : "?");
        used += n > 0 ? (size_t)n : 0;
    }
    stk_fail_in(&c->g->error, c->g->error.code, "layer '%s' (%s)%s", c->layer->name,
                c->layer->def->keras_class, c->frame->trial >= 0 ? "" : types);
}

/* A mask that was passed by name stands for the mask of its input. (training=False is written for every
 * dropout of a functional model and means nothing: whoever runs the model decides.) */
static void take_call_arguments(stk_layer_call *c, const stk_val *given, stk_val *x, stk_val *masks,
                                const char **roles)
{
    int32_t n = 0;
    for (int32_t i = 0; i < c->nx; i++) {
        if (stk_role_mask(c->role[i]) >= 0) continue;
        x[n] = x[i];
        masks[n] = c->mask[i];
        roles[n++] = c->role[i];
    }
    for (int32_t i = 0; i < c->nx; i++) {
        int32_t of = stk_role_mask(c->role[i]);
        if (of >= 0 && of < n) masks[of] = given[i];
    }
    c->nx = n;
    c->mask = masks;
    c->role = roles;
}

/* Runs c->layer; c->x, mask, role, path and parent are set, y and ymask have room. */
static void run_layer(stk_layer_call *c)
{
    const stk_layer_def *def = c->layer->def;
    stk_val x[STK_LAYER_INPUTS];
    stk_val masks[STK_LAYER_INPUTS];
    const char *roles[STK_LAYER_INPUTS];
    const stk_val *given = c->x;
    const int32_t ngiven = c->nx;
    if (!stk_graph_ok(c->g)) return;
    c->config = c->layer->config;
    c->compute = c->layer->policy.compute;
    c->training = c->frame->training;
    c->trial = c->frame->trial >= 0;
    c->trainable = c->layer->trainable && (!c->parent || c->parent->trainable);
    c->ny = 1;
    c->y[0] = 0;
    memset(c->ymask, 0, STK_LAYER_OUTPUTS * sizeof *c->ymask);
    if (c->frame->depth >= DEEPEST) {
        stk_c_fail(c, STK_ERR_RANGE, "layers inside layers, more than %d deep", DEEPEST);
        return;
    }
    c->frame->depth++;
    const char *before = stk_g_place(c->g, c->path);
    prepare_inputs(c, x);
    c->x = x;
    take_call_arguments(c, given, x, masks, roles);
    if (c->layer->inner)
        stk_c_model(c, c->layer->inner);
    else
        def->call(c);
    c->frame->depth--;
    c->g->origin.place = before;
    if (def->mask == STK_MASK_PASSES && c->nx)
        for (int32_t i = 0; i < c->ny; i++) c->ymask[i] = c->mask[0];
    c->x = given;
    c->nx = ngiven;
    if (stk_graph_ok(c->g) && (c->ny < 1 || c->ny > STK_LAYER_OUTPUTS || !c->y[0]))
        stk_c_fail(c, STK_ERR_INTERNAL, "the layer made no output");
    if (!stk_graph_ok(c->g)) name_mistake(c);
}

static bool join_path(stk_layer_call *c, const char *front, const char *name, char *path)
{
    int n = front ? snprintf(path, PATH, "%s/%s", front, name) : snprintf(path, PATH, "%s", name);
    if (n > 0 && n < PATH) return true;
    stk_g_fail(c->g, STK_ERR_RANGE, "the name of layer '%.64s' is longer than %d characters", name,
               PATH);
    return false;
}

int32_t stk_c_part(stk_layer_call *c, const stk_layer_state *part, const char *scope, int32_t n,
                   const stk_val *x, const stk_val *mask, stk_val *y, stk_val *ymask)
{
    static const stk_val no_masks[STK_LAYER_INPUTS];
    static const char *const no_roles[STK_LAYER_INPUTS];
    char path[PATH];
    stk_layer_call inner = {.g = c->g,
                            .layer = part,
                            .nx = n,
                            .x = x,
                            .mask = mask ? mask : no_masks,
                            .role = no_roles,
                            .y = y,
                            .ymask = ymask,
                            .frame = c->frame,
                            .path = path,
                            .parent = c};
    y[0] = 0;
    if (!stk_graph_ok(c->g) || n > STK_LAYER_INPUTS ||
        !join_path(c, c->path, scope ? scope : part->name, path))
        return 1;
    run_layer(&inner);
    return inner.ny;
}

stk_val stk_c_activate(stk_layer_call *c, const stk_activation *a, stk_val x)
{
    stk_val y[STK_LAYER_OUTPUTS], ymask[STK_LAYER_OUTPUTS];
    if (a->def) return a->def->build(c->g, x);
    stk_c_part(c, a->layer, NULL, 1, &x, NULL, y, ymask);
    return y[0];
}

/* All used calls of a model; x and mask per input, y and ymask per output (ymask may be NULL). parent: the call that the
 * model stands for as a layer, or NULL. */
static void run_calls(stk_frame *f, stk_layer_call *parent, const stk_model *m, const stk_val *x,
                      const stk_val *mask, stk_val *y, stk_val *ymask)
{
    static const char *const no_roles[STK_LAYER_INPUTS];
    stk_val *vals = stk_calloc((size_t)m->nsyms + 1, 2 * sizeof *vals);
    stk_val *masks = vals ? vals + m->nsyms + 1 : NULL;
    if (!vals)
        stk_g_fail(f->g, STK_ERR_MEMORY, "out of memory for a model of %lld tensors",
                   (long long)m->nsyms);
    for (int64_t i = 0; vals && i < m->ninputs; i++) {
        vals[m->inputs[i]] = x[i];
        masks[m->inputs[i]] = mask ? mask[i] : 0;
    }
    for (int64_t k = 0; vals && k < m->ncalls && stk_graph_ok(f->g); k++) {
        const stk_mcall *call = &m->calls[k];
        const stk_layer_state *layer = stk_layer_at(m, call->layer);
        stk_val in[STK_LAYER_INPUTS], inmask[STK_LAYER_INPUTS];
        stk_val out[STK_LAYER_OUTPUTS], outmask[STK_LAYER_OUTPUTS];
        char path[PATH];
        if (!call->used || layer->def == &stk_layer_input) continue;
        for (int32_t i = 0; i < call->nin; i++) {
            in[i] = vals[call->in[i]];
            inmask[i] = masks[call->in[i]];
        }
        stk_layer_call c = {.g = f->g,
                            .layer = layer,
                            .nx = call->nin,
                            .x = in,
                            .mask = inmask,
                            .role = call->role ? (const char *const *)call->role : no_roles,
                            .args = call->args,
                            .arguments = call->arguments,
                            .y = out,
                            .ymask = outmask,
                            .frame = f,
                            .path = path,
                            .parent = parent,
                            .random_count = 1000 * call->number};
        if (!parent) f->owner = call->layer;
        if (!join_path(&c, parent ? parent->path : NULL, layer->name, path)) break;
        run_layer(&c);
        for (int32_t i = 0; i < call->nout && i < c.ny; i++) {
            vals[call->out + i] = out[i];
            masks[call->out + i] = outmask[i];
        }
    }
    for (int64_t i = 0; i < m->noutputs; i++) {
        y[i] = vals && stk_graph_ok(f->g) ? vals[m->outputs[i]] : 0;
        if (ymask) ymask[i] = vals && stk_graph_ok(f->g) ? masks[m->outputs[i]] : 0;
    }
    stk_free(vals);
}

void stk_c_model(stk_layer_call *c, const stk_model *inner)
{
    if (inner->noutputs > STK_LAYER_OUTPUTS) {
        stk_c_fail(c, STK_ERR_RANGE, "a model inside of a model with more than %d outputs",
                   STK_LAYER_OUTPUTS);
        return;
    }
    c->trainable = c->trainable && inner->trainable;
    c->ny = (int32_t)inner->noutputs;
    run_calls(c->frame, c, inner, c->x, c->mask, c->y, c->ymask);
}

static bool check_call(const stk_model *m, stk_graph *g, const stk_val *x)
{
    if (!stk_graph_ok(g)) return false;
    stk_error why;
    if (stk_model_check_built(m, &why) != STK_OK) {
        stk_g_fail(g, why.code, "%s", why.message);
        return false;
    }
    for (int64_t i = 0; i < m->ninputs; i++) {
        const stk_msym *want = stk_sym_at(m, m->inputs[i]);
        char shape[160];
        bool ok = stk_val_ok(g, x[i]) && stk_g_rank(g, x[i]) == want->rank;
        for (int32_t k = 0; ok && k < want->rank; k++)
            ok = want->dim[k] < 0 || want->dim[k] == stk_g_dim(g, x[i], k);
        if (ok) continue;
        stk_g_fail(g, STK_ERR_SHAPE,
                   "model '%s': input %lld ('%s') is %s, the model was built for %s",
                   stk_model_name(m), (long long)i, stk_model_input(m, (int32_t)i).name,
                   stk_val_ok(g, x[i]) ? STK_TYPE_TEXT(stk_type_of(g, x[i])) : "no value",
                   stk_sym_text(want, shape, sizeof shape));
        return false;
    }
    return true;
}

/* New values are assigned, but for those of weights whose training goes on from there. */
static void hand_out(const stk_frame *f, const stk_call *call)
{
    const stk_model *m = f->model;
    bool good = stk_graph_ok(f->g);
    for (int64_t i = 0; i < m->nweights; i++) {
        bool kept = call->values && stk_weight_trainable(m, &m->weights[i]);
        if (f->updated[i] && !kept) stk_g_assign(f->g, f->variables[i], f->updated[i]);
    }
    for (int64_t i = 0; i < m->nweight_order; i++) {
        int32_t k = m->weight_order[i];
        bool kept = call->values && stk_weight_trainable(m, &m->weights[k]);
        if (call->weights) call->weights[i] = good ? f->variables[k] : 0;
        if (call->values) call->values[i] = good && kept ? f->updated[k] : 0;
    }
}

void stk_model_call(const stk_model *m, stk_graph *g, const stk_val *x, stk_call *call, stk_val *y)
{
    stk_call none = {0};
    if (!call) call = &none;
    for (int64_t i = 0; m && y && i < m->noutputs; i++) y[i] = 0;
    call->penalty = 0;
    if (!check_call(m, g, x)) return;
    stk_frame f = {.g = g, .model = m, .trial = -1, .training = call->training, .seed = call->seed};
    f.variables = stk_calloc((size_t)m->nweights + 1, 3 * sizeof *f.variables);
    if (!f.variables) {
        stk_g_fail(g, STK_ERR_MEMORY, "out of memory for a model of %lld weights",
                   (long long)m->nweights);
        return;
    }
    f.cast = f.variables + m->nweights + 1;
    f.updated = f.cast + m->nweights + 1;
    run_calls(&f, NULL, m, x, call->masks, y, call->output_masks);
    stk_frame_penalise_weights(&f);
    hand_out(&f, call);
    call->penalty = stk_graph_ok(g) ? f.penalty : 0;
    stk_free(f.variables);
}

/* ---- trials ------------------------------------------------------------------------------------------------------------------ */

/* What stands for unknown sizes in the two trials: batches, and sizes large enough for windows and strides. */
static const int64_t batch_trial[2] = {2, 3}, size_trial[2] = {96, 224};

static void run_trial(stk_model *m, const stk_mcall *call, int32_t trial, stk_graph *g,
                      stk_layer_call *c)
{
    static const char *const no_roles[STK_LAYER_INPUTS];
    static const stk_val no_masks[STK_LAYER_INPUTS];
    stk_val x[STK_LAYER_INPUTS];
    char path[PATH];
    stk_frame f = {.g = g, .model = m, .declare = m, .trial = trial, .owner = call->layer};
    for (int32_t i = 0; i < call->nin; i++) {
        const stk_msym *s = stk_sym_at(m, call->in[i]);
        int64_t dim[STK_MAX_RANK];
        char name[24];
        for (int32_t k = 0; k < s->rank; k++)
            dim[k] = s->dim[k] >= 0 ? s->dim[k] : k == 0 ? batch_trial[trial] : size_trial[trial];
        snprintf(name, sizeof name, "x%d", i);
        x[i] = stk_g_input(g, name, s->dtype, s->rank, dim);
    }
    c->g = g;
    c->layer = stk_layer_at(m, call->layer);
    c->nx = call->nin;
    c->x = x;
    c->mask = no_masks;
    c->role = call->role ? (const char *const *)call->role : no_roles;
    c->args = call->args;
    c->arguments = call->arguments;
    c->frame = &f;
    c->path = path;
    if (join_path(c, NULL, c->layer->name, path)) run_layer(c);
    c->x = NULL;
    c->frame = NULL;
    c->path = NULL;
}

static stk_status trial_failed(const stk_model *m, const stk_mcall *call, const stk_graph *g,
                               stk_error *err)
{
    char types[256] = "", one[128];
    size_t used = 0;
    const stk_layer_state *layer = stk_layer_at(m, call->layer);
    for (int32_t i = 0; i < call->nin && i < 3 && used < sizeof types; i++) {
        int n = snprintf(types + used, sizeof types - used, "%s%s", i ? ", " : " on ",
                         stk_sym_text(stk_sym_at(m, call->in[i]), one, sizeof one));
        used += n > 0 ? (size_t)n : 0;
    }
    return stk_fail(err, g->error.code, "layer '%.64s' (%s)%s: %.640s", layer->name,
                    layer->def->keras_class, types, g->error.message);
}

/* Types of the outputs of one trial. */
static stk_status try_call(stk_model *m, const stk_mcall *call, int32_t trial, stk_msym *out,
                           int32_t *nout, stk_error *err)
{
    stk_graph *g = NULL;
    stk_val y[STK_LAYER_OUTPUTS], ymask[STK_LAYER_OUTPUTS];
    stk_layer_call c = {.y = y, .ymask = ymask};
    STK_TRY(stk_graph_new(&g, err));
    run_trial(m, call, trial, g, &c);
    stk_status status = STK_OK;
    if (!stk_graph_ok(g)) status = trial_failed(m, call, g, err);
    for (int32_t i = 0; status == STK_OK && i < c.ny; i++) {
        const stk_type *type = stk_type_of(g, y[i]);
        out[i] = (stk_msym){.dtype = type->dtype, .rank = type->shape.rank};
        memcpy(out[i].dim, type->shape.dim, sizeof out[i].dim);
    }
    *nout = c.ny;
    stk_graph_release(g);
    return status;
}

stk_status stk_model_infer(stk_model *m, stk_mcall *call, stk_msym *out, int32_t *nout,
                           stk_error *err)
{
    stk_msym second[STK_LAYER_OUTPUTS];
    int32_t nsecond = 0;
    STK_TRY(try_call(m, call, 0, out, nout, err));
    STK_TRY(try_call(m, call, 1, second, &nsecond, err));
    for (int32_t i = 0; i < *nout; i++) {
        if (nsecond != *nout || second[i].rank != out[i].rank)
            return stk_fail(err, STK_ERR_SHAPE,
                            "layer '%s' (%s): its outputs depend on sizes that are not known",
                            stk_layer_at(m, call->layer)->name,
                            stk_layer_at(m, call->layer)->def->keras_class);
        for (int32_t k = 0; k < out[i].rank; k++)
            if (second[i].dim[k] != out[i].dim[k]) out[i].dim[k] = -1;
    }
    return STK_OK;
}
