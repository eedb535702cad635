/* Building models: layers are entered, calls are entered, shapes are found out at once. */
#include "layers/model.h"

#include <stdio.h>
#include <string.h>

stk_status stk_model_new(const char *name, stk_model **out, stk_error *err)
{
    if (!out)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_model_new: out is NULL; pass the address of a stk_model *");
    *out = NULL;
    stk_model *m = stk_calloc(1, sizeof *m);
    if (!m) return stk_fail_memory(err, "stk_model_new", sizeof *m);
    m->refs = 1;
    m->trainable = true;
    stk_policy_parse("float32", &m->policy);
    if (name) {
        m->name = stk_arena_strdup(&m->arena, name);
        if (!m->name) {
            stk_model_release(m);
            return stk_fail_memory(err, "stk_model_new", strlen(name));
        }
    }
    *out = m;
    return STK_OK;
}

stk_model *stk_model_retain(stk_model *m)
{
    if (m) __atomic_add_fetch(&m->refs, 1, __ATOMIC_RELAXED);
    return m;
}

void stk_model_release(stk_model *m)
{
    if (!m || __atomic_sub_fetch(&m->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
    for (int64_t i = 0; i < m->nlayers; i++) {
        stk_model_release(m->layers[i]->inner);
        if (m->layers[i]->def->release) m->layers[i]->def->release(m->layers[i]->config);
    }
    for (int64_t i = 0; i < m->ndocuments; i++) stk_json_release(m->documents[i]);
    stk_arena_release(&m->arena);
    stk_free(m->layers);
    stk_free(m->calls);
    stk_free(m->syms);
    stk_free(m->inputs);
    stk_free(m->outputs);
    stk_free(m->weights);
    stk_name_index_release(&m->weight_names);
    stk_name_index_release(&m->layer_names);
    stk_free(m->order);
    stk_free(m->weight_order);
    stk_free(m->documents);
    stk_free(m);
}

stk_status stk_model_status(const stk_model *m, stk_error *err)
{
    if (!m) return stk_fail(err, STK_ERR_ARGUMENT, "the model is NULL");
    if (m->error.code != STK_OK && err) *err = m->error;
    return m->error.code;
}

static bool may_build(stk_model *m)
{
    if (!m || m->error.code != STK_OK) return false;
    if (m->built)
        stk_fail(&m->error, STK_ERR_STATE,
                 "model '%s' is built already; nothing can be added to it", stk_model_name(m));
    return !m->built;
}

/* ---- layers -------------------------------------------------------------------------------------------------------- */

stk_status stk_model_keep(stk_model *m, stk_json_document *document, stk_error *err)
{
    if (!STK_GROW(m->documents, m->ndocuments, m->cap_documents)) {
        stk_json_release(document);
        return stk_fail_memory(err, "a model's options", sizeof document);
    }
    m->documents[m->ndocuments++] = document;
    return STK_OK;
}

static bool name_taken(const stk_model *m, const char *name)
{
    return stk_name_index_find(&m->layer_names, name, 0) > 0;
}

/* dense, dense_1, dense_2 ... */
static const char *new_name(stk_model *m, const stk_layer_state *layer)
{
    char base[96], name[128];
    if (layer->def->snake)
        snprintf(base, sizeof base, "%s", layer->def->snake);
    else
        stk_snake_case(layer->def->keras_class, base, sizeof base);
    if (layer->inner) snprintf(base, sizeof base, "%.90s", stk_model_name(layer->inner));
    snprintf(name, sizeof name, "%s", base);
    int64_t i = stk_name_index_find(&m->layer_names, base, 1);
    const char *key =
        i > 0 ? base : stk_arena_strdup(&m->arena, base); /* the index keeps the first */
    if (i > 0) snprintf(name, sizeof name, "%s_%lld", base, (long long)i);
    for (i = i > 0 ? i + 1 : 1; name_taken(m, name); i++)
        snprintf(name, sizeof name, "%s_%lld", base, (long long)i);
    if (!key || !stk_name_index_put(&m->layer_names, key, 1, i)) return NULL;
    return stk_arena_strdup(&m->arena, name);
}

stk_status stk_model_enter(stk_model *m, stk_layer_state *layer, stk_layer *out, stk_error *err)
{
    if (!layer->name)
        layer->name = new_name(m, layer);
    else if (name_taken(m, layer->name))
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "model '%s': two layers are named '%.64s'; give one of them another name",
                        stk_model_name(m), layer->name);
    if (!layer->name || !STK_GROW(m->layers, m->nlayers, m->cap_layers) ||
        !stk_name_index_put(&m->layer_names, layer->name, 0, m->nlayers + 1))
        return stk_fail_memory(err, "a layer", sizeof *layer);
    m->layers[m->nlayers++] = layer;
    layer->number = (int32_t)m->nlayers;
    *out = layer->number;
    return STK_OK;
}

static stk_status make_layer(stk_model *m, const char *text, stk_layer *out, stk_error *err)
{
    stk_json_document *document = NULL;
    stk_layer_state *layer = NULL;
    STK_TRY(stk_options_parse(text, false, &document, err));
    STK_TRY(stk_model_keep(m, document, err));
    stk_reader r = {.model = m, .arena = &m->arena, .where = "the model", .err = err};
    STK_TRY(stk_layer_read(&r, stk_json_root(document), &layer));
    return stk_model_enter(m, layer, out, err);
}

stk_status stk_model_nest(stk_model *m, stk_model *inner, const char *name, stk_layer *out,
                          stk_error *err)
{
    if (!inner || !inner->built || inner == m)
        return stk_fail(err, STK_ERR_STATE,
                        "a model inside of another one must be built first, with stk_model_build");
    stk_layer_state *layer = stk_arena_alloc(&m->arena, sizeof *layer);
    if (!layer) return stk_fail_memory(err, "a layer", sizeof *layer);
    *layer = (stk_layer_state){.def = &stk_layer_model,
                               .trainable = true,
                               .own_policy = true,
                               .policy = inner->policy,
                               .inner = inner};
    if (name) {
        layer->name = stk_arena_strdup(&m->arena, name);
        if (!layer->name) return stk_fail_memory(err, "a layer", strlen(name));
    }
    STK_TRY(stk_model_enter(m, layer, out, err));
    stk_model_retain(inner);
    return STK_OK;
}

/* ---- calls ----------------------------------------------------------------------------------------------------------- */

int32_t stk_role_mask(const char *role)
{
    static const struct {
        const char *name;
        int32_t input;
    } masks[] = {{"mask", 0}, {"query_mask", 0}, {"value_mask", 1}, {"key_mask", 2}};
    for (size_t i = 0; role && i < sizeof masks / sizeof *masks; i++)
        if (!strcmp(masks[i].name, role)) return masks[i].input;
    return -1;
}

static stk_status check_inputs(const stk_model *m, const stk_mcall *call, stk_error *err)
{
    const stk_layer_state *layer = stk_layer_at(m, call->layer);
    const stk_layer_def *def = layer->def;
    int32_t low = def->max_inputs ? def->min_inputs : 1;
    int32_t high = def->max_inputs < 0 ? STK_LAYER_INPUTS : def->max_inputs ? def->max_inputs : 1;
    if (layer->inner) low = high = (int32_t)layer->inner->ninputs;
    if (def == &stk_layer_input) low = high = 0;
    int32_t n = call->nin;
    for (int32_t i = 0; call->role && i < call->nin; i++) n -= stk_role_mask(call->role[i]) >= 0;
    if (n < low || n > high || call->nin > STK_LAYER_INPUTS)
        return stk_fail(err, STK_ERR_ARGUMENT, "layer '%s' (%s): takes %d to %d inputs, got %d",
                        layer->name, def->keras_class, low, high, n);
    for (int32_t i = 0; i < call->nin; i++)
        if (call->in[i] <= 0 || call->in[i] > m->nsyms)
            return stk_fail(
                err, STK_ERR_ARGUMENT,
                "layer '%s' (%s): input %d is tensor %d, which this model does not have",
                layer->name, def->keras_class, i, call->in[i]);
    return STK_OK;
}

stk_status stk_model_enter_call(stk_model *m, const stk_mcall *like, stk_sym *out, stk_error *err)
{
    stk_mcall call = *like;
    stk_msym made[STK_LAYER_OUTPUTS];
    STK_TRY(check_inputs(m, &call, err));
    call.in = stk_arena_copy(&m->arena, like->in, (size_t)like->nin * sizeof *like->in);
    if (!call.in) return stk_fail_memory(err, "a call of a layer", sizeof call);
    if (like->role) {
        call.role = stk_arena_copy(&m->arena, like->role, (size_t)like->nin * sizeof *like->role);
        if (!call.role) return stk_fail_memory(err, "a call of a layer", sizeof call);
    }
    stk_layer_state *layer = stk_layer_at(m, call.layer);
    if (layer->def == &stk_layer_input) {
        call.nout = 1;
        STK_TRY(stk_input_type(layer, &made[0], err));
    } else {
        STK_TRY(stk_model_infer(m, &call, made, &call.nout, err));
    }
    call.number = layer->ncalls;
    call.out = (stk_sym)m->nsyms + 1;
    if (!STK_GROW(m->calls, m->ncalls, m->cap_calls))
        return stk_fail_memory(err, "a call of a layer", sizeof call);
    for (int32_t i = 0; i < call.nout; i++) {
        if (!STK_GROW(m->syms, m->nsyms, m->cap_syms))
            return stk_fail_memory(err, "a call of a layer", sizeof call);
        made[i].call = (int32_t)m->ncalls;
        made[i].index = i;
        m->syms[m->nsyms++] = made[i];
    }
    if (layer->def == &stk_layer_input) {
        if (!STK_GROW(m->inputs, m->ninputs, m->cap_inputs))
            return stk_fail_memory(err, "an input", sizeof call);
        m->inputs[m->ninputs++] = call.out;
    }
    layer->called = true;
    if (layer->ncalls++)
        m->calls[layer->last_call].next = (int32_t)m->ncalls + 1;
    else
        layer->first_call = (int32_t)m->ncalls;
    layer->last_call = (int32_t)m->ncalls;
    m->calls[m->ncalls++] = call;
    *out = call.out;
    return STK_OK;
}

stk_status stk_model_add_output(stk_model *m, stk_sym y, stk_error *err)
{
    if (y <= 0 || y > m->nsyms)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "model '%s': output is tensor %d, which it does not have",
                        stk_model_name(m), y);
    if (!STK_GROW(m->outputs, m->noutputs, m->cap_outputs))
        return stk_fail_memory(err, "an output", sizeof y);
    m->outputs[m->noutputs++] = y;
    return STK_OK;
}

/* ---- sequential --------------------------------------------------------------------------------------------------------- */

/* Calls the layer on what the model ends with; without an input yet, that waits for stk_model_build. */
stk_status stk_model_append(stk_model *m, stk_layer number, stk_error *err)
{
    stk_sym y = 0;
    stk_mcall call = {.layer = number};
    if (stk_layer_at(m, number)->def == &stk_layer_input) {
        if (m->nlayers > 1)
            return stk_fail(err, STK_ERR_STATE,
                            "model '%s': an Input comes first in a sequential model",
                            stk_model_name(m));
    } else if (m->noutputs) {
        call.nin = 1;
        call.in = &m->outputs[0];
    } else {
        return STK_OK;
    }
    STK_TRY(stk_model_enter_call(m, &call, &y, err));
    m->noutputs = 0;
    return stk_model_add_output(m, y, err);
}

bool stk_model_may_append(stk_model *m)
{
    if (!may_build(m)) return false;
    if (m->kind == STK_MODEL_FUNCTIONAL)
        stk_fail(
            &m->error, STK_ERR_STATE,
            "model '%s' is functional: stk_model_add is for sequential models; use stk_m_apply",
            stk_model_name(m));
    m->kind = STK_MODEL_SEQUENTIAL;
    return m->error.code == STK_OK;
}

stk_layer stk_model_add(stk_model *m, const char *layer)
{
    stk_layer number = 0;
    if (!stk_model_may_append(m)) return 0;
    if (make_layer(m, layer, &number, &m->error) != STK_OK) return 0;
    return stk_model_append(m, number, &m->error) == STK_OK ? number : 0;
}

stk_layer stk_model_add_model(stk_model *m, stk_model *inner)
{
    stk_layer number = 0;
    if (!stk_model_may_append(m)) return 0;
    if (stk_model_nest(m, inner, NULL, &number, &m->error) != STK_OK) return 0;
    return stk_model_append(m, number, &m->error) == STK_OK ? number : 0;
}

/* ---- functional ---------------------------------------------------------------------------------------------------------- */

bool stk_model_may_connect(stk_model *m)
{
    if (!may_build(m)) return false;
    if (m->kind == STK_MODEL_SEQUENTIAL)
        stk_fail(&m->error, STK_ERR_STATE, "model '%s' is sequential: go on with stk_model_add",
                 stk_model_name(m));
    m->kind = STK_MODEL_FUNCTIONAL;
    return m->error.code == STK_OK;
}

stk_layer stk_m_layer(stk_model *m, const char *layer)
{
    stk_layer number = 0;
    if (!stk_model_may_connect(m)) return 0;
    return make_layer(m, layer, &number, &m->error) == STK_OK ? number : 0;
}

stk_layer stk_m_model(stk_model *m, stk_model *inner)
{
    stk_layer number = 0;
    if (!stk_model_may_connect(m)) return 0;
    return stk_model_nest(m, inner, NULL, &number, &m->error) == STK_OK ? number : 0;
}

/* Which inputs were passed by name: {"key": {"__tensor__": 2}}; the others are arguments. */
static stk_status read_arguments(stk_model *m, const char *text, stk_mcall *call, stk_error *err)
{
    stk_json_document *document = NULL;
    STK_TRY(stk_options_parse(text, true, &document, err));
    STK_TRY(stk_model_keep(m, document, err));
    const stk_json *root = stk_json_root(document);
    call->role = stk_arena_array(&m->arena, (size_t)call->nin + 1, sizeof *call->role);
    if (!call->role) return stk_fail_memory(err, "a call of a layer", sizeof *call);
    for (int64_t i = 0; i < root->count; i++) {
        const stk_json *number = stk_json_get(&root->items[i], "__tensor__");
        int64_t k = stk_json_int(number, -1);
        if (number && k >= 0 && k < call->nin)
            call->role[k] = root->items[i].name;
        else if (number)
            return stk_fail(err, STK_ERR_ARGUMENT, "\"%.100s\": there is no input #%lld", text,
                            (long long)k);
        else
            call->arguments = root;
    }
    return STK_OK;
}

stk_sym stk_m_call_with(stk_model *m, stk_layer layer, int32_t n, const stk_sym *x,
                        const char *arguments)
{
    stk_sym y = 0;
    if (!stk_model_may_connect(m)) return 0;
    if (layer <= 0 || layer > m->nlayers || n < 0 || n > STK_LAYER_INPUTS || (n && !x)) {
        stk_fail(&m->error, STK_ERR_ARGUMENT,
                 "model '%s': there is no layer %d to call on %d inputs", stk_model_name(m), layer,
                 n);
        return 0;
    }
    stk_mcall call = {.layer = layer, .nin = n, .in = (stk_sym *)x};
    if (arguments && read_arguments(m, arguments, &call, &m->error) != STK_OK) return 0;
    return stk_model_enter_call(m, &call, &y, &m->error) == STK_OK ? y : 0;
}

stk_sym stk_m_call(stk_model *m, stk_layer layer, int32_t n, const stk_sym *x)
{
    return stk_m_call_with(m, layer, n, x, NULL);
}

stk_sym stk_m_apply(stk_model *m, const char *layer, int32_t n, const stk_sym *x)
{
    stk_layer number = stk_m_layer(m, layer);
    return number ? stk_m_call(m, number, n, x) : 0;
}

void stk_m_output(stk_model *m, stk_sym y)
{
    if (stk_model_may_connect(m)) (void)!stk_model_add_output(m, y, &m->error);
}
