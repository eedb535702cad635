/* What a layer's call says about its weights: wanted, made in a trial, used, updated, punished. */
#include "base/rng.h"
#include "layers/model_call.h"
#include "layers/objects.h"

#include <stdio.h>
#include <string.h>

enum { PATH = STK_LAYER_PATH };

static int64_t find_weight(const stk_frame *f, const char *name)
{
    return stk_name_index_find(&f->model->weight_names, name, f->owner);
}

static bool full_name(stk_layer_call *c, const char *name, char *text)
{
    int n = snprintf(text, PATH, "%s/%s", c->path, name);
    if (n > 0 && n < PATH) return true;
    stk_c_fail(c, STK_ERR_RANGE, "the name of weight '%s' is longer than %d characters", name,
               PATH);
    return false;
}

static bool declare(stk_layer_call *c, const char *name, int32_t rank, const int64_t *shape,
                    const stk_weight_wish *wish)
{
    stk_model *m = c->frame->declare;
    stk_mweight w = {.layer = c->frame->owner,
                     .dtype = wish->typed ? wish->dtype : c->layer->policy.variable,
                     .shape = {.rank = rank},
                     .fixed = wish->fixed || wish->state,
                     .state = wish->state,
                     .behind = wish->behind != NULL,
                     .typed = wish->typed,
                     .initializer = wish->initializer ? wish->initializer : &stk_zeros,
                     .regularizer = wish->regularizer,
                     .constraint = wish->constraint};
    for (int32_t i = 0; i < rank; i++) w.shape.dim[i] = shape[i]; /* a scalar has no list */
    for (const stk_layer_call *at = c; at && w.depth < STK_NESTING; at = at->parent)
        w.chain[w.depth++] = at->layer;
    w.name = stk_arena_strdup(&m->arena, name);
    if (!w.name || !STK_GROW(m->weights, m->nweights, m->cap_weights) ||
        !stk_name_index_put(&m->weight_names, w.name, w.layer, m->nweights)) {
        stk_c_fail(c, STK_ERR_MEMORY, "out of memory for weight '%s'", name);
        return false;
    }
    stk_layer_state *layer = stk_layer_at(m, w.layer);
    m->weights[m->nweights++] = w;
    if (layer->last_weight)
        m->weights[layer->last_weight - 1].next = (int32_t)m->nweights;
    else
        layer->first_weight = (int32_t)m->nweights;
    layer->last_weight = (int32_t)m->nweights;
    return true;
}

/* Moves the newest weight behind another one of the same layer, whose weights stand together. */
static void move_behind(stk_layer_call *c, const char *name)
{
    stk_model *m = c->frame->declare;
    char full[PATH];
    if (!full_name(c, name, full)) return;
    int64_t last = m->nweights - 1, to = find_weight(c->frame, full) + 1;
    stk_mweight moved = m->weights[last];
    memmove(m->weights + to + 1, m->weights + to, (size_t)(last - to) * sizeof *m->weights);
    m->weights[to] = moved;
    for (int64_t i = to; i <= last; i++) {
        m->weights[i].next = i < last ? (int32_t)i + 2 : 0;
        if (!stk_name_index_put(&m->weight_names, m->weights[i].name, m->weights[i].layer, i))
            stk_c_fail(c, STK_ERR_MEMORY, "out of memory for the names of weights");
    }
}

static bool fits(stk_layer_call *c, const stk_mweight *w, int32_t rank, const int64_t *shape)
{
    stk_shape wanted = {.rank = rank};
    for (int32_t i = 0; i < rank; i++) wanted.dim[i] = shape[i];
    if (stk_shape_equal(&w->shape, &wanted)) return true;
    if (w->state)
        stk_c_fail(c, STK_ERR_SHAPE,
                   "stateful=True needs batches of one size, which the input must name: "
                   "Input(batch_shape=(32, ...)); the state was %s and is to be %s",
                   STK_SHAPE_TEXT(&w->shape), STK_SHAPE_TEXT(&wanted));
    else if (c->frame->trial == 1 && !c->layer->called)
        stk_c_fail(
            c, STK_ERR_SHAPE,
            "the size of weight '%s' depends on a size of the input that is not known (None); "
            "give the input a definite shape",
            w->name);
    else
        stk_c_fail(
            c, STK_ERR_SHAPE,
            "weight '%s' is %s, this input needs %s; a layer that is called several times takes "
            "inputs of one kind",
            w->name, STK_SHAPE_TEXT(&w->shape), STK_SHAPE_TEXT(&wanted));
    return false;
}

/* A variable may be there from an earlier call of the model in the same graph. */
static stk_val variable_of(stk_graph *g, const stk_mweight *w)
{
    stk_val there = stk_graph_ok(g) ? stk_g_named(g, STK_OP_VARIABLE, w->name) : 0;
    return there ? there : stk_g_variable(g, w->name, w->dtype, w->shape.rank, w->shape.dim);
}

static void penalise(stk_frame *f, stk_val loss)
{
    loss = stk_g_cast(f->g, loss, STK_F32);
    f->penalty = f->penalty ? stk_g_add(f->g, f->penalty, loss) : loss;
}

static stk_val use_variable(stk_layer_call *c, int64_t i)
{
    stk_frame *f = c->frame;
    const stk_mweight *w = &f->model->weights[i];
    if (f->trial >= 0) return variable_of(f->g, w);
    if (!f->variables[i]) f->variables[i] = variable_of(f->g, w);
    return f->updated[i] ? f->updated[i] : f->variables[i];
}

/* Regularisers see what the calls have left of a weight. */
void stk_frame_penalise_weights(stk_frame *f)
{
    for (int64_t i = 0; i < f->model->nweights; i++) {
        const stk_mweight *w = &f->model->weights[i];
        if (!f->variables[i] || !w->regularizer || !stk_weight_trainable(f->model, w)) continue;
        stk_val value = f->updated[i] ? f->updated[i] : f->variables[i];
        penalise(f, stk_g_regularize(f->g, w->regularizer, value));
    }
}

stk_val stk_c_weight(stk_layer_call *c, const char *name, int32_t rank, const int64_t *shape,
                     const stk_weight_wish *wish)
{
    static const stk_weight_wish plain;
    char full[PATH];
    stk_error err;
    if (!wish) wish = &plain;
    if (!stk_graph_ok(c->g) || !full_name(c, name, full)) return 0;
    if (stk_shape_check("weight", rank, shape, 8, &err) != STK_OK)
        return stk_c_fail(c, err.code, "%s", err.message);
    int64_t i = find_weight(c->frame, full);
    if (i < 0 && !c->frame->declare)
        return stk_c_fail(c, STK_ERR_SHAPE,
                          "weight '%s' is new: the input differs from the one that "
                          "the model was built with",
                          full);
    if (i < 0) {
        if (!declare(c, full, rank, shape, wish)) return 0;
        if (wish->behind) move_behind(c, wish->behind);
        i = find_weight(c->frame, full);
    }
    if (!fits(c, &c->frame->model->weights[i], rank, shape)) return 0;
    stk_val v = use_variable(c, i);
    stk_dtype dtype = c->frame->model->weights[i].dtype;
    if (wish->as_is || wish->typed || dtype == c->compute || !stk_dtype_is_float(dtype)) return v;
    if (c->frame->trial >= 0) return stk_g_cast(c->g, v, c->compute);
    stk_val *cast = &c->frame->cast[i];
    if (!*cast || stk_g_dtype(c->g, *cast) != c->compute) *cast = stk_g_cast(c->g, v, c->compute);
    return *cast;
}

stk_val stk_c_declared(stk_layer_call *c, const char *name)
{
    char full[PATH];
    if (!stk_graph_ok(c->g) || !full_name(c, name, full)) return 0;
    int64_t i = find_weight(c->frame, full);
    return i < 0 ? 0 : use_variable(c, i);
}

const stk_object *stk_c_initializer(stk_layer_call *c, const char *text)
{
    typedef struct wish {
        const stk_object *initializer;
    } wish;
    static const stk_config_field rows[] = {STK_FIELD(wish, initializer, INITIALIZER, "None")};
    static const stk_fields fields = STK_FIELDS(wish, rows);
    stk_model *m = c->frame->declare;
    stk_json_document *document = NULL;
    wish out = {0};
    if (!text || !m || !stk_graph_ok(c->g)) return NULL;
    stk_reader r = {.model = m, .arena = &m->arena, .where = "a weight", .err = &c->g->error};
    stk_json member = {.kind = STK_JSON_STRING, .text = text, .count = (int64_t)strlen(text)};
    if (strchr(text, '(')) {
        if (stk_options_parse(text, false, &document, r.err) != STK_OK) return NULL;
        if (stk_model_keep(m, document, r.err) != STK_OK) return NULL;
        member = *stk_json_root(document);
    }
    member.name = "initializer";
    member.name_size = (int64_t)strlen(member.name);
    stk_json object = {.kind = STK_JSON_OBJECT, .count = 1, .items = &member};
    return stk_config_read(&r, &fields, &object, NULL, &out) == STK_OK ? out.initializer : NULL;
}

void stk_c_update(stk_layer_call *c, const char *name, stk_val value)
{
    char full[PATH];
    if (c->frame->trial >= 0 || !full_name(c, name, full)) return;
    int64_t i = find_weight(c->frame, full);
    if (i < 0) {
        stk_c_fail(c, STK_ERR_INTERNAL, "there is no weight '%s' to update", full);
        return;
    }
    if (!c->training && !c->frame->model->weights[i].state) return;
    use_variable(c, i);
    /* A layer that is called again sees the value that its last call left. */
    c->frame->updated[i] = stk_g_cast(c->g, value, c->frame->model->weights[i].dtype);
    c->frame->cast[i] = 0;
}

/* A loss of the layer's own (activity regularisers), added to the penalty. */
static void add_loss(stk_layer_call *c, stk_val loss)
{
    if (c->frame->trial < 0) penalise(c->frame, loss);
}

stk_val stk_c_activity(stk_layer_call *c, const stk_object *regularizer, stk_val y)
{
    if (!regularizer || !stk_graph_ok(c->g)) return y;
    double batch = (double)stk_g_dim(c->g, y, 0);
    stk_val loss = stk_g_regularize(c->g, regularizer, stk_g_cast(c->g, y, STK_F32));
    add_loss(c, stk_g_div(c->g, loss, stk_g_scalar(c->g, STK_F32, batch > 0 ? batch : 1)));
    return y;
}

stk_random_options stk_c_random(stk_layer_call *c, int64_t seed)
{
    stk_random_options o = stk_random_options_defaults();
    uint64_t place = 0x9E3779B97F4A7C15u + (uint64_t)c->random_count++;
    for (const char *at = c->path; *at; at++)
        place = stk_mix64(place ^ (uint64_t)(unsigned char)*at);
    o.seed = seed != STK_NONE ? seed : c->frame->seed;
    o.stream = (int64_t)(place >> 2);
    return o;
}
