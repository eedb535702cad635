/* Models as Keras 3 writes them (model_read.c draws the form), and copies made that way. */
#include "layers/model.h"

#include <stdio.h>
#include <string.h>

static void put_shape(stk_json_writer *w, const stk_msym *s)
{
    stk_json_begin_array(w);
    for (int32_t i = 0; i < s->rank; i++)
        if (s->dim[i] < 0)
            stk_json_put_null(w);
        else
            stk_json_put_int(w, s->dim[i]);
    stk_json_end_array(w);
}

static void put_history(stk_json_writer *w, const stk_model *m, stk_sym s)
{
    const stk_msym *sym = stk_sym_at(m, s);
    const stk_mcall *call = &m->calls[sym->call];
    int32_t number = 0; /* calls that no output needs are not written and not counted */
    for (int32_t k = 0; k < sym->call; k++)
        number += m->calls[k].used && m->calls[k].layer == call->layer;
    stk_json_begin_array(w);
    stk_json_put_text(w, stk_layer_at(m, call->layer)->name);
    stk_json_put_int(w, number);
    stk_json_put_int(w, sym->index);
    stk_json_end_array(w);
}

static void put_tensor(stk_json_writer *w, const stk_model *m, stk_sym s)
{
    stk_json_begin_object(w);
    stk_json_name(w, "class_name");
    stk_json_put_text(w, "__keras_tensor__");
    stk_json_name(w, "config");
    stk_json_begin_object(w);
    stk_json_name(w, "shape");
    put_shape(w, stk_sym_at(m, s));
    stk_json_name(w, "dtype");
    stk_json_put_text(w, stk_dtype_name(stk_sym_at(m, s)->dtype));
    stk_json_name(w, "keras_history");
    put_history(w, m, s);
    stk_json_end_object(w);
    stk_json_end_object(w);
}

/* ---- calls ------------------------------------------------------------------------------------------------------------- */

static const char *role_of(const stk_mcall *call, int32_t i)
{
    return call->role ? call->role[i] : NULL;
}

static bool has_tensor(const stk_mcall *call, const char *role)
{
    for (int32_t i = 0; i < call->nin; i++)
        if (role_of(call, i) && !strcmp(role_of(call, i), role)) return true;
    return false;
}

/* Tensors of one name: alone, or as a list when there are several (states). */
static void put_named(stk_json_writer *w, const stk_model *m, const stk_mcall *call,
                      const char *role)
{
    int32_t n = 0;
    for (int32_t i = 0; i < call->nin; i++)
        n += role_of(call, i) && !strcmp(role_of(call, i), role);
    stk_json_name(w, role);
    if (n > 1) stk_json_begin_array(w);
    for (int32_t i = 0; i < call->nin; i++)
        if (role_of(call, i) && !strcmp(role_of(call, i), role)) put_tensor(w, m, call->in[i]);
    if (n > 1) stk_json_end_array(w);
}

static void put_kwargs(stk_json_writer *w, const stk_model *m, const stk_mcall *call)
{
    stk_json_begin_object(w);
    if (stk_layer_at(m, call->layer)->inner && !has_tensor(call, "mask") &&
        !stk_json_get(call->arguments, "mask")) {
        stk_json_name(w, "mask"); /* Keras always passes it to models */
        stk_json_put_null(w);
    }
    for (int32_t i = 0; i < call->nin; i++) {
        bool again = false;
        for (int32_t k = 0; k < i; k++)
            again = again || (role_of(call, i) && role_of(call, k) &&
                              !strcmp(role_of(call, i), role_of(call, k)));
        if (role_of(call, i) && !again) put_named(w, m, call, role_of(call, i));
    }
    for (int64_t i = 0; call->arguments && i < call->arguments->count; i++) {
        const stk_json *v = &call->arguments->items[i];
        if (has_tensor(call, v->name)) continue;
        stk_json_name(w, v->name);
        stk_json_put_tree(w, v);
    }
    stk_json_end_object(w);
}

/* Arguments of an operation: tensors in the order of the inputs, everything else as it was read. */
static void put_mixed(stk_json_writer *w, const stk_model *m, const stk_mcall *call,
                      const stk_json *v, int32_t *next)
{
    const char *keras_class = stk_json_text(stk_json_get(v, "class_name"), "");
    if (v->kind == STK_JSON_ARRAY) {
        stk_json_begin_array(w);
        for (int64_t i = 0; i < v->count; i++) put_mixed(w, m, call, &v->items[i], next);
        stk_json_end_array(w);
    } else if (!strcmp(keras_class, "__keras_tensor__") && *next < call->nin) {
        put_tensor(w, m, call->in[(*next)++]);
    } else {
        stk_json_put_tree(w, v);
    }
}

static void put_node(stk_json_writer *w, const stk_model *m, const stk_mcall *call, bool list)
{
    stk_json_begin_object(w);
    stk_json_name(w, "args");
    if (call->args) {
        int32_t next = 0;
        put_mixed(w, m, call, call->args, &next);
    } else {
        stk_json_begin_array(w);
        if (list) stk_json_begin_array(w);
        for (int32_t i = 0; i < call->nin; i++)
            if (!role_of(call, i)) put_tensor(w, m, call->in[i]);
        if (list) stk_json_end_array(w);
        stk_json_end_array(w);
    }
    stk_json_name(w, "kwargs");
    put_kwargs(w, m, call);
    stk_json_end_object(w);
}

/* ---- layers -------------------------------------------------------------------------------------------------------------- */

static void put_model_open(stk_json_writer *w, const stk_model *m, const char *name);

static const stk_mcall *first_call(const stk_model *m, int32_t layer)
{
    for (int64_t k = 0; k < m->ncalls; k++)
        if (m->calls[k].layer == layer && m->calls[k].used) return &m->calls[k];
    return NULL;
}

/* What Keras builds the layer with before it loads weights: the shape of the input, a list of shapes, or one shape for each
 * argument by its name. */
static void put_build_config(stk_json_writer *w, const stk_model *m, const stk_mcall *call,
                             bool list)
{
    if (!call) return;
    const stk_layer_def *def = stk_layer_at(m, call->layer)->def;
    const char *names = def->build_shapes;
    int32_t n = 0;
    for (int32_t i = 0; i < call->nin; i++) n += !role_of(call, i);
    if (!n || (n > 1 && !list && !names)) return;
    stk_json_name(w, "build_config");
    stk_json_begin_object(w);
    stk_json_name(w, names ? "shapes_dict" : "input_shape");
    if (names) stk_json_begin_object(w);
    if (list) stk_json_begin_array(w);
    for (int32_t i = 0; i < call->nin; i++) {
        char name[64];
        if (role_of(call, i) && (!names || stk_role_mask(role_of(call, i)) >= 0)) continue;
        if (names) {
            size_t length = strcspn(names, "|");
            snprintf(name, sizeof name, "%.*s", (int)length, names);
            names += length + (names[length] == '|');
            if (role_of(call, i)) snprintf(name, sizeof name, "%.50s_shape", role_of(call, i));
            if (!name[0] || !strcmp(name, "attention_mask_shape")) continue;
            stk_json_name(w, name);
        }
        put_shape(w, stk_sym_at(m, call->in[i]));
    }
    if (list) stk_json_end_array(w);
    if (def->build_shapes) stk_json_end_object(w);
    stk_json_end_object(w);
}

static void put_layer(stk_json_writer *w, const stk_model *m, int32_t number)
{
    const stk_layer_state *layer = stk_layer_at(m, number);
    bool list = layer->def->list || (layer->inner && layer->inner->ninputs > 1);
    if (layer->def->operation)
        list = !strcmp(layer->def->keras_class, "Concatenate") ||
               !strcmp(layer->def->keras_class, "Stack");
    if (layer->inner) {
        put_model_open(w, layer->inner, layer->name);
    } else {
        stk_layer_write_open(w, layer);
        if (m->built && !layer->def->no_build) put_build_config(w, m, first_call(m, number), list);
    }
    if (m->kind == STK_MODEL_FUNCTIONAL) {
        stk_json_name(w, "name");
        stk_json_put_text(w, layer->name);
        stk_json_name(w, "inbound_nodes");
        stk_json_begin_array(w);
        for (int64_t k = 0; k < m->ncalls; k++)
            if (m->calls[k].layer == number && m->calls[k].used && layer->def != &stk_layer_input)
                put_node(w, m, &m->calls[k], list);
        stk_json_end_array(w);
    }
    stk_json_end_object(w);
}

static void put_layers(stk_json_writer *w, const stk_model *m)
{
    stk_json_name(w, "layers");
    stk_json_begin_array(w);
    for (int32_t i = 0; i < stk_model_layer_count(m); i++)
        put_layer(w, m, m->built ? m->order[i] : i + 1);
    stk_json_end_array(w);
}

/* ---- models ----------------------------------------------------------------------------------------------------------------- */

static void put_ends(stk_json_writer *w, const stk_model *m, const char *name, const stk_sym *syms,
                     int64_t n, const stk_json *form)
{
    stk_json_name(w, name);
    if (form) {
        stk_json_put_tree(w, form);
        return;
    }
    if (n != 1) stk_json_begin_array(w);
    for (int64_t i = 0; i < n; i++) put_history(w, m, syms[i]);
    if (n != 1) stk_json_end_array(w);
}

static void put_input_shape(stk_json_writer *w, const stk_model *m, const char *name)
{
    stk_json_name(w, name);
    if (m->kind == STK_MODEL_SEQUENTIAL)
        put_shape(w, stk_sym_at(m, m->inputs[0]));
    else
        stk_json_put_null(w);
}

/* Up to and with compile_config; the object stays open. */
static void put_model_open(stk_json_writer *w, const stk_model *m, const char *name)
{
    bool sequential = m->kind != STK_MODEL_FUNCTIONAL;
    if (sequential)
        stk_class_begin(w, "keras", "Sequential");
    else
        stk_class_begin(w, "keras.src.models.functional", "Functional");
    stk_json_name(w, "name");
    stk_json_put_text(w, name);
    stk_json_name(w, "trainable");
    stk_json_put_bool(w, m->trainable);
    if (sequential) {
        stk_json_name(w, "dtype");
        stk_policy_write(w, m->policy.name);
    }
    put_layers(w, m);
    if (sequential && m->built) put_input_shape(w, m, "build_input_shape");
    if (!sequential) {
        put_ends(w, m, "input_layers", m->inputs, m->ninputs, m->input_form);
        put_ends(w, m, "output_layers", m->outputs, m->noutputs, m->output_form);
    }
    stk_class_end(w, sequential ? NULL : "Functional");
    if (m->built) {
        stk_json_name(w, "build_config");
        stk_json_begin_object(w);
        put_input_shape(w, m, "input_shape");
        stk_json_end_object(w);
    }
    stk_json_name(w, "compile_config");
    stk_json_begin_object(w);
    stk_json_end_object(w);
}

stk_status stk_model_to_json(const stk_model *m, int32_t indent, char **out, stk_error *err)
{
    if (!out) return stk_fail(err, STK_ERR_ARGUMENT, "stk_model_to_json: out must not be NULL");
    *out = NULL;
    STK_TRY(stk_model_status(m, err));
    if (m->kind == STK_MODEL_FUNCTIONAL) STK_TRY(stk_model_check_built(m, err));
    stk_json_writer w = {.indent = indent, .allow_nonfinite = true};
    size_t size = 0;
    put_model_open(&w, m, stk_model_name(m));
    stk_json_end_object(&w);
    return stk_json_finish(&w, out, &size, err);
}

stk_status stk_model_clone(const stk_model *m, stk_model **out, stk_error *err)
{
    char *text = NULL;
    if (!out) return stk_fail(err, STK_ERR_ARGUMENT, "stk_model_clone: out must not be NULL");
    *out = NULL;
    STK_TRY(stk_model_to_json(m, 0, &text, err));
    stk_status status = stk_model_from_json(text, strlen(text), out, err);
    stk_text_free(text);
    return status;
}
