/* The end of building, and what a model can be asked. */
#include "layers/model.h"

#include <stdio.h>
#include <string.h>

/* ---- inputs --------------------------------------------------------------------------------------------------------- */

/* An InputLayer without a text: shape holds the batch axis. */
static stk_status make_input(stk_model *m, const stk_spec *spec, stk_layer *out, stk_error *err)
{
    if (spec->rank < 1 || spec->rank > STK_MAX_RANK)
        return stk_fail(err, STK_ERR_SHAPE,
                        "input '%s': %d axes with the batch; there may be 1 to %d",
                        spec->name ? spec->name : "", spec->rank, STK_MAX_RANK);
    stk_layer_state *layer = stk_arena_alloc(&m->arena, sizeof *layer);
    stk_input_config *o = stk_arena_alloc(&m->arena, sizeof *o);
    char *name = spec->name ? stk_arena_strdup(&m->arena, spec->name) : NULL;
    if (!layer || !o || (spec->name && !name))
        return stk_fail_memory(err, "an input", sizeof *layer);
    *o = (stk_input_config){.shape = {.n = -1},
                            .batch_size = STK_NONE,
                            .batch_shape = {.n = spec->rank},
                            .dtype = stk_dtype_name(spec->dtype)};
    for (int32_t i = 0; i < spec->rank; i++)
        o->batch_shape.v[i] = spec->shape[i] < 0 ? -1 : spec->shape[i];
    *layer = (stk_layer_state){
        .def = &stk_layer_input, .name = name, .trainable = true, .config = o, .policy = m->policy};
    return stk_model_enter(m, layer, out, err);
}

stk_sym stk_m_input(stk_model *m, const char *name, stk_dtype dtype, int32_t rank,
                    const int64_t *shape)
{
    stk_layer number = 0;
    stk_spec spec = {.name = name, .dtype = dtype, .rank = rank + 1, .shape = {-1}};
    if (!m || m->error.code != STK_OK) return 0;
    if (m->built || m->kind == STK_MODEL_SEQUENTIAL || rank < 0 || rank >= STK_MAX_RANK ||
        (rank && !shape) || (unsigned)dtype >= STK_DTYPE_COUNT) {
        stk_fail(
            &m->error, STK_ERR_ARGUMENT,
            "input '%s' of model '%s': needs a model that is functional and not built, an element "
            "type, and 0 to %d sizes besides the batch (got %d)",
            name ? name : "", stk_model_name(m), STK_MAX_RANK - 1, rank);
        return 0;
    }
    for (int32_t i = 0; i < rank; i++) spec.shape[i + 1] = shape[i];
    m->kind = STK_MODEL_FUNCTIONAL;
    if (make_input(m, &spec, &number, &m->error) != STK_OK) return 0;
    return stk_m_call(m, number, 0, NULL);
}

/* A sequential model learns what it is fed: an input in front, then all layers are called. */
static stk_status put_input_first(stk_model *m, const stk_spec *spec, stk_error *err)
{
    stk_layer number = 0;
    stk_spec unnamed = *spec;
    unnamed.name = NULL;
    if (unnamed.rank > 0 && unnamed.rank <= STK_MAX_RANK) unnamed.shape[0] = -1; /* any batch */
    STK_TRY(make_input(m, &unnamed, &number, err));
    stk_layer_state *input = m->layers[number - 1];
    memmove(m->layers + 1, m->layers, (size_t)(m->nlayers - 1) * sizeof *m->layers);
    m->layers[0] = input;
    for (int64_t i = 0; i < m->nlayers; i++) m->layers[i]->number = (int32_t)i + 1;
    for (int32_t i = 1; i <= m->nlayers; i++) {
        stk_sym y = 0;
        stk_mcall call = {.layer = i, .nin = i > 1, .in = m->outputs};
        STK_TRY(stk_model_enter_call(m, &call, &y, err));
        m->noutputs = 0;
        STK_TRY(stk_model_add_output(m, y, err));
    }
    return STK_OK;
}

static stk_status no_layers(const stk_model *m, stk_error *err)
{
    return stk_fail(
        err, STK_ERR_STATE,
        "model '%s' has no layers; add some, as stk_model_add(m, \"Dense(10)\") does it "
        "or as entries of \"layers\" in its JSON",
        stk_model_name(m));
}

static stk_status no_shape(const stk_model *m, stk_error *err)
{
    return stk_fail(err, STK_ERR_STATE,
                    "model '%s' is not built: the shape of what it is fed with is not known; begin "
                    "it with an Input layer, or give the shape to stk_model_build",
                    stk_model_name(m));
}

stk_status stk_model_check_built(const stk_model *m, stk_error *err)
{
    STK_TRY(stk_model_status(m, err));
    if (m->built) return STK_OK;
    if (!m->nlayers) return no_layers(m, err);
    if (m->kind == STK_MODEL_SEQUENTIAL && !m->ninputs) return no_shape(m, err);
    return stk_fail(err, STK_ERR_STATE, "model '%s' is not built; call stk_model_build first",
                    stk_model_name(m));
}

stk_status stk_model_build(stk_model *m, int32_t n, const stk_spec *inputs, stk_error *err)
{
    STK_TRY(stk_model_status(m, err));
    if (m->built) return STK_OK;
    stk_error *keep =
        &m->error; /* a model that could not be built stays unusable, with its reason */
    stk_status status = STK_OK;
    if (!m->nlayers) {
        status = no_layers(m, keep);
    } else if (m->kind == STK_MODEL_SEQUENTIAL && !m->ninputs) {
        if (n != 1 || !inputs) /* not a mistake of the model: it may be built later */
            return no_shape(m, err);
        status = put_input_first(m, inputs, keep);
    }
    if (status == STK_OK && !m->noutputs)
        status = stk_fail(keep, STK_ERR_STATE,
                          "model '%s' has no outputs; name them with stk_m_output, or as "
                          "\"output_layers\" in its JSON",
                          stk_model_name(m));
    if (status == STK_OK && !m->ninputs)
        status = stk_fail(keep, STK_ERR_STATE,
                          "model '%s' has no inputs; make them with stk_m_input, or name them as "
                          "\"input_layers\" in its JSON",
                          stk_model_name(m));
    if (status == STK_OK) status = stk_model_order(m, keep);
    if (status != STK_OK) return stk_model_status(m, err);
    m->built = true;
    return STK_OK;
}

/* ---- asking ------------------------------------------------------------------------------------------------------------- */

bool stk_model_is_built(const stk_model *m) { return m && m->built; }

const char *stk_model_name(const stk_model *m)
{
    if (!m) return "";
    if (m->name) return m->name;
    return m->kind == STK_MODEL_FUNCTIONAL ? "functional" : "sequential";
}

int32_t stk_model_input_count(const stk_model *m) { return m ? (int32_t)m->ninputs : 0; }
int32_t stk_model_output_count(const stk_model *m) { return m ? (int32_t)m->noutputs : 0; }

static stk_spec spec_of(const stk_model *m, stk_sym s)
{
    const stk_msym *sym = stk_sym_at(m, s);
    stk_spec spec = {.name = stk_layer_at(m, m->calls[sym->call].layer)->name,
                     .dtype = sym->dtype,
                     .rank = sym->rank};
    memcpy(spec.shape, sym->dim, sizeof spec.shape);
    return spec;
}

stk_spec stk_model_input(const stk_model *m, int32_t i)
{
    if (!m || i < 0 || i >= m->ninputs) return (stk_spec){0};
    return spec_of(m, m->inputs[i]);
}

stk_spec stk_model_output(const stk_model *m, int32_t i)
{
    if (!m || i < 0 || i >= m->noutputs) return (stk_spec){0};
    stk_spec spec = spec_of(m, m->outputs[i]);
    if (m->output_names && m->output_names[i]) spec.name = m->output_names[i];
    return spec;
}

static const stk_layer_state *layer_in_order(const stk_model *m, int32_t i)
{
    if (!m || i < 0 || i >= stk_model_layer_count(m)) return NULL;
    return stk_layer_at(m, m->built ? m->order[i] : i + 1);
}

int32_t stk_model_layer_count(const stk_model *m)
{
    return !m ? 0 : (int32_t)(m->built ? m->norder : m->nlayers);
}

const char *stk_model_layer_name(const stk_model *m, int32_t i)
{
    const stk_layer_state *layer = layer_in_order(m, i);
    return layer ? layer->name : NULL;
}

const char *stk_model_layer_class(const stk_model *m, int32_t i)
{
    const stk_layer_state *layer = layer_in_order(m, i);
    if (!layer) return NULL;
    if (!layer->inner) return layer->def->keras_class;
    return layer->inner->kind == STK_MODEL_SEQUENTIAL ? "Sequential" : "Functional";
}

bool stk_weight_trainable(const stk_model *m, const stk_mweight *w)
{
    bool trainable = m->trainable && !w->fixed;
    for (int32_t i = 0; i < w->depth; i++) trainable = trainable && w->chain[i]->trainable;
    return trainable;
}

int32_t stk_model_weight_count(const stk_model *m)
{
    return m && m->built ? (int32_t)m->nweight_order : 0;
}

stk_weight stk_model_weight(const stk_model *m, int32_t i)
{
    if (i < 0 || i >= stk_model_weight_count(m)) return (stk_weight){0};
    const stk_mweight *w = &m->weights[m->weight_order[i]];
    stk_weight out = {.name = w->name,
                      .layer = stk_layer_at(m, w->layer)->name,
                      .dtype = w->dtype,
                      .rank = w->shape.rank,
                      .trainable = stk_weight_trainable(m, w),
                      .initializer = w->initializer,
                      .regularizer = w->regularizer,
                      .constraint = w->constraint};
    memcpy(out.shape, w->shape.dim, sizeof out.shape);
    return out;
}

int32_t stk_model_find_weight(const stk_model *m, const char *name)
{
    for (int32_t i = 0; name && i < stk_model_weight_count(m); i++)
        if (!strcmp(m->weights[m->weight_order[i]].name, name)) return i;
    return -1;
}

/* Sums of sizes that were checked one by one; files can name so many that the sum does not fit. */
static void add_size(int64_t *sum, int64_t n)
{
    if (__builtin_add_overflow(*sum, n, sum)) *sum = INT64_MAX;
}

stk_param_count stk_model_params(const stk_model *m)
{
    stk_param_count p = {0};
    for (int32_t i = 0; i < stk_model_weight_count(m); i++) {
        const stk_mweight *w = &m->weights[m->weight_order[i]];
        int64_t n = stk_shape_count(&w->shape), bytes = n * stk_dtype_size(w->dtype);
        bool trainable = stk_weight_trainable(m, w);
        add_size(&p.total, n);
        add_size(&p.bytes, bytes);
        add_size(trainable ? &p.trainable : &p.fixed, n);
        add_size(trainable ? &p.trainable_bytes : &p.fixed_bytes, bytes);
    }
    return p;
}

char *stk_sym_text(const stk_msym *s, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "(");
    for (int32_t i = 0; i < s->rank && used < size; i++) {
        const char *comma = i + 1 < s->rank ? ", " : s->rank == 1 ? "," : "";
        int n = s->dim[i] < 0
                    ? snprintf(text + used, size - used, "None%s", comma)
                    : snprintf(text + used, size - used, "%lld%s", (long long)s->dim[i], comma);
        used += n > 0 ? (size_t)n : 0;
    }
    if (used < size) snprintf(text + used, size - used, ")");
    return text;
}

/* ---- changing what a built model may change -------------------------------------------------------------------------------- */

stk_status stk_model_set_trainable(stk_model *m, const char *layer, bool trainable, stk_error *err)
{
    enum { MOST = 64 };
    STK_TRY(stk_model_status(m, err));
    if (!layer) {
        m->trainable = trainable;
        return STK_OK;
    }
    const char *names[MOST];
    int32_t n = 0;
    for (int64_t i = 0; i < m->nlayers; i++) {
        if (n < MOST) names[n++] = m->layers[i]->name;
        if (strcmp(m->layers[i]->name, layer)) continue;
        m->layers[i]->trainable = trainable;
        return STK_OK;
    }
    char near[128];
    stk_did_you_mean(layer, names, n, near, sizeof near);
    return stk_fail(err, STK_ERR_ARGUMENT, "model '%s' has no layer '%.64s'.%s", stk_model_name(m),
                    layer, near);
}
