/* Models from the JSON that Keras 3 writes.
 *
 *     {"class_name": "Sequential", "config": {"name": .., "layers": [layer, ..], "build_input_shape": [..]}}
 *     {"class_name": "Functional", "config": {"name": .., "layers": [layer + name + inbound_nodes, ..],
 *                                             "input_layers": [["a", 0, 0], ..], "output_layers": ["b", 0, 0]}}
 *
 * An inbound node is one call: {"args": [..], "kwargs": {..}}, in which tensors stand as {"class_name": "__keras_tensor__",
 * "config": {"keras_history": [layer, call of it, output of that]}}. What compile() left behind is not looked at. */
#include "layers/model.h"

#include "base/file.h"

#include <stdio.h>
#include <string.h>

enum { DEEPEST = 16 };

typedef struct source {
    stk_model *model;
    stk_error *err;
    int32_t depth;
} source;

static stk_status read_model(const stk_json *json, int32_t depth, stk_model **out, stk_error *err);

static bool is_model(const char *keras_class)
{
    return keras_class && (!strcmp(keras_class, "Sequential") ||
                           !strcmp(keras_class, "Functional") || !strcmp(keras_class, "Model"));
}

static const char *class_of(const stk_json *json)
{
    return stk_json_text(stk_json_get(json, "class_name"), NULL);
}

/* ---- layers ----------------------------------------------------------------------------------------------------------- */

static stk_status read_inner(source *s, const stk_json *json, stk_layer *out)
{
    stk_model *inner = NULL;
    const stk_json *config = stk_json_get(json, "config");
    const char *name = stk_json_text(stk_json_get(config, "name"), NULL);
    STK_TRY(read_model(json, s->depth + 1, &inner, s->err));
    stk_status status = STK_OK;
    if (!inner->built)
        status = stk_fail(s->err, STK_ERR_UNSUPPORTED,
                          "model '%s' inside of model '%s' has no input shape; give it an Input",
                          stk_model_name(inner), stk_model_name(s->model));
    if (status == STK_OK) status = stk_model_nest(s->model, inner, name, out, s->err);
    stk_model_release(inner);
    return status;
}

static stk_status read_one(source *s, const stk_json *json, stk_layer *out)
{
    char where[128];
    stk_layer_state *layer = NULL;
    if (is_model(class_of(json))) return read_inner(s, json, out);
    snprintf(where, sizeof where, "model '%.64s'", stk_model_name(s->model));
    stk_reader r = {.model = s->model, .arena = &s->model->arena, .where = where, .err = s->err};
    STK_TRY(stk_layer_read(&r, json, &layer));
    return stk_model_enter(s->model, layer, out, s->err);
}

static const stk_json *layers_of(source *s, const stk_json *config)
{
    const stk_json *layers = stk_json_get(config, "layers");
    if (layers && layers->kind == STK_JSON_ARRAY && layers->count < INT32_MAX) return layers;
    stk_fail(s->err, STK_ERR_FORMAT,
             "model '%.64s': its config has no list of layers, \"layers\": [...], as Keras' "
             "model.to_json() writes it",
             stk_model_name(s->model));
    return NULL;
}

/* ---- sequential ---------------------------------------------------------------------------------------------------------- */

static bool read_spec(const stk_json *shape, stk_spec *spec)
{
    if (!shape || shape->kind != STK_JSON_ARRAY || shape->count < 1 || shape->count > STK_MAX_RANK)
        return false;
    *spec = (stk_spec){.dtype = STK_F32, .rank = (int32_t)shape->count};
    for (int32_t i = 0; i < spec->rank; i++) {
        const stk_json *dim = &shape->items[i];
        if (dim->kind != STK_JSON_NULL && dim->kind != STK_JSON_INT) return false;
        spec->shape[i] = dim->kind == STK_JSON_NULL ? -1 : dim->integer;
        if (spec->shape[i] > INT32_MAX) return false;
    }
    return true;
}

static stk_status read_sequential(source *s, const stk_json *json, const stk_json *config)
{
    stk_model *m = s->model;
    stk_spec spec;
    const stk_json *layers = layers_of(s, config);
    if (!layers) return s->err->code;
    m->kind = STK_MODEL_SEQUENTIAL;
    for (int64_t i = 0; i < layers->count; i++) {
        stk_layer number = 0;
        STK_TRY(read_one(s, &layers->items[i], &number));
        STK_TRY(stk_model_append(m, number, s->err));
    }
    if (m->ninputs) return stk_model_build(m, 0, NULL, s->err);
    if (read_spec(stk_json_get(config, "build_input_shape"), &spec) ||
        read_spec(stk_json_get(stk_json_get(json, "build_config"), "input_shape"), &spec))
        return stk_model_build(m, 1, &spec, s->err);
    return STK_OK; /* the shape comes later */
}

/* ---- functional: which tensor is meant --------------------------------------------------------------------------------------- */

static int32_t find_layer(const stk_model *m, const char *name)
{
    int64_t number = name ? stk_name_index_find(&m->layer_names, name, 0) : 0;
    return number > 0 ? (int32_t)number : 0;
}

/* ["dense", 1, 0] -> its sym; 0 when that call was not made yet; -1 when it never will. */
static stk_sym find_tensor(const stk_model *m, const stk_json *history)
{
    int32_t layer = find_layer(m, stk_json_text(stk_json_item(history, 0), NULL));
    int64_t call = stk_json_int(stk_json_item(history, 1), -1);
    int64_t index = stk_json_int(stk_json_item(history, 2), -1);
    if (!layer || call < 0 || index < 0) return -1;
    const stk_layer_state *state = stk_layer_at(m, layer);
    if (call >= state->ncalls) return 0;
    int64_t k = state->first_call;
    while (m->calls[k].number != call) k = m->calls[k].next - 1;
    return index < m->calls[k].nout ? m->calls[k].out + (stk_sym)index : -1;
}

static stk_status bad_tensor(source *s, const char *where, const stk_json *history)
{
    return stk_fail(
        s->err, STK_ERR_FORMAT,
        "model '%.64s', layer '%.64s': refers to output %lld of call %lld of layer '%.64s', which "
        "is not there",
        stk_model_name(s->model), where, (long long)stk_json_int(stk_json_item(history, 2), -1),
        (long long)stk_json_int(stk_json_item(history, 1), -1),
        stk_json_text(stk_json_item(history, 0), "?"));
}

/* ---- functional: calls --------------------------------------------------------------------------------------------------------- */

typedef struct inbound {
    stk_sym in[STK_LAYER_INPUTS];
    const char *role[STK_LAYER_INPUTS];
    int32_t n;
    bool waits; /* for a call that was not made yet */
} inbound;

/* Tensors of an argument, flattened; *plain: there was something else in it. */
static stk_status take_tensors(source *s, const char *where, const stk_json *v, const char *role,
                               inbound *to, bool *plain)
{
    const char *keras_class = class_of(v);
    if (v->kind == STK_JSON_ARRAY) {
        for (int64_t i = 0; i < v->count; i++)
            STK_TRY(take_tensors(s, where, &v->items[i], role, to, plain));
        return STK_OK;
    }
    if (!keras_class || strcmp(keras_class, "__keras_tensor__")) {
        *plain = *plain || v->kind != STK_JSON_NULL;
        return STK_OK;
    }
    const stk_json *history = stk_json_get(stk_json_get(v, "config"), "keras_history");
    stk_sym tensor = find_tensor(s->model, history);
    if (tensor < 0) return bad_tensor(s, where, history);
    if (to->n == STK_LAYER_INPUTS)
        return stk_fail(s->err, STK_ERR_UNSUPPORTED, "layer '%.64s': more than %d inputs", where,
                        STK_LAYER_INPUTS);
    to->waits = to->waits || !tensor;
    to->in[to->n] = tensor;
    to->role[to->n++] = role;
    return STK_OK;
}

static stk_status read_inbound(source *s, const char *where, const stk_json *node, inbound *to,
                               bool operation, stk_mcall *call)
{
    bool plain = false;
    const stk_json *args = stk_json_get(node, "args"), *kwargs = stk_json_get(node, "kwargs");
    if (!args || args->kind != STK_JSON_ARRAY)
        return stk_fail(s->err, STK_ERR_FORMAT,
                        "layer '%.64s': an inbound node without args; write the model with Keras 3",
                        where);
    STK_TRY(take_tensors(s, where, args, NULL, to, &plain));
    for (int64_t i = 0; operation && i < args->count; i++) /* None keeps its place */
        plain = plain || args->items[i].kind == STK_JSON_NULL;
    if (plain && operation)
        call->args = args;
    else if (plain)
        return stk_fail(s->err, STK_ERR_UNSUPPORTED,
                        "layer '%.64s': an argument that is no tensor must be passed by name",
                        where);
    for (int64_t i = 0; kwargs && kwargs->kind == STK_JSON_OBJECT && i < kwargs->count; i++) {
        bool other = kwargs->items[i].kind == STK_JSON_NULL;
        STK_TRY(take_tensors(s, where, &kwargs->items[i], kwargs->items[i].name, to, &other));
        if (other) call->arguments = kwargs;
    }
    return STK_OK;
}

/* Makes the next call of a layer if its inputs are there. */
static stk_status read_call(source *s, int32_t layer, const stk_json *node, bool *made)
{
    inbound from = {.n = 0};
    stk_sym y = 0;
    stk_mcall call = {.layer = layer, .in = from.in, .role = from.role};
    const stk_layer_state *state = stk_layer_at(s->model, layer);
    STK_TRY(read_inbound(s, state->name, node, &from, state->def->operation, &call));
    *made = !from.waits;
    if (from.waits) return STK_OK;
    call.nin = from.n;
    return stk_model_enter_call(s->model, &call, &y, s->err);
}

/* Layers are listed so that almost every call can be made at once; the rest waits for another round. */
static stk_status read_calls(source *s, const stk_json *layers, int64_t *done)
{
    bool progress = true, all = false;
    while (progress && !all) {
        progress = false;
        all = true;
        for (int32_t i = 0; i < layers->count; i++) {
            const stk_json *nodes = stk_json_get(&layers->items[i], "inbound_nodes");
            if (stk_layer_at(s->model, i + 1)->def == &stk_layer_input) continue;
            while (nodes && nodes->kind == STK_JSON_ARRAY && done[i] < nodes->count) {
                bool made = false;
                STK_TRY(read_call(s, i + 1, &nodes->items[done[i]], &made));
                if (!made) break;
                done[i]++;
                progress = true;
            }
            all = all && (!nodes || done[i] >= nodes->count);
        }
    }
    if (!all)
        return stk_fail(
            s->err, STK_ERR_FORMAT,
            "model '%.64s': its layers wait for each other in a circle, or for a layer that is "
            "not called",
            stk_model_name(s->model));
    return STK_OK;
}

/* ---- functional: ends --------------------------------------------------------------------------------------------------------- */

typedef struct ends {
    stk_sym sym[STK_LAYER_INPUTS];
    const char *name[STK_LAYER_INPUTS]; /* NULL: not in a dict */
    int32_t n;
} ends;

static const stk_json *next_key(const stk_json *v, const char *after)
{
    const stk_json *best = NULL;
    for (int64_t i = 0; i < v->count; i++)
        if ((!after || strcmp(v->items[i].name, after) > 0) &&
            (!best || strcmp(v->items[i].name, best->name) < 0))
            best = &v->items[i];
    return best;
}

/* Lists in their order, dicts in that of their keys, as Keras flattens them. */
static stk_status read_ends(source *s, const stk_json *v, const char *name, ends *to)
{
    const stk_json *first = stk_json_item(v, 0);
    if (v && v->kind == STK_JSON_ARRAY && first && first->kind == STK_JSON_STRING) {
        stk_sym tensor = find_tensor(s->model, v);
        if (tensor <= 0) return bad_tensor(s, "output", v);
        if (to->n == STK_LAYER_INPUTS)
            return stk_fail(s->err, STK_ERR_UNSUPPORTED,
                            "model '%.64s': more than %d inputs or outputs",
                            stk_model_name(s->model), STK_LAYER_INPUTS);
        to->sym[to->n] = tensor;
        to->name[to->n++] = name;
        return STK_OK;
    }
    if (v && v->kind == STK_JSON_ARRAY) {
        for (int64_t i = 0; i < v->count; i++) STK_TRY(read_ends(s, &v->items[i], name, to));
        return STK_OK;
    }
    if (!v || v->kind != STK_JSON_OBJECT)
        return stk_fail(
            s->err, STK_ERR_FORMAT,
            "model '%.64s': input_layers and output_layers name tensors as [\"dense\", 0, 0]",
            stk_model_name(s->model));
    for (const stk_json *item = next_key(v, NULL); item; item = next_key(v, item->name))
        STK_TRY(read_ends(s, item, item->name, to));
    return STK_OK;
}

static stk_status set_ends(source *s, const stk_json *config)
{
    stk_model *m = s->model;
    ends in = {.n = 0}, out = {.n = 0};
    const stk_json *inputs = stk_json_get(config, "input_layers");
    const stk_json *outputs = stk_json_get(config, "output_layers");
    STK_TRY(read_ends(s, inputs, NULL, &in));
    STK_TRY(read_ends(s, outputs, NULL, &out));
    if (in.n != m->ninputs)
        return stk_fail(s->err, STK_ERR_FORMAT,
                        "model '%.64s': input_layers names %d inputs, there are %lld InputLayers",
                        stk_model_name(m), in.n, (long long)m->ninputs);
    for (int32_t i = 0; i < in.n; i++) {
        if (stk_layer_at(m, m->calls[stk_sym_at(m, in.sym[i])->call].layer)->def !=
            &stk_layer_input)
            return stk_fail(s->err, STK_ERR_FORMAT, "model '%.64s': input %d is not an InputLayer",
                            stk_model_name(m), i);
        m->inputs[i] = in.sym[i];
    }
    for (int32_t i = 0; i < out.n; i++) STK_TRY(stk_model_add_output(m, out.sym[i], s->err));
    if (inputs->kind == STK_JSON_OBJECT) m->input_form = inputs;
    if (outputs->kind == STK_JSON_OBJECT) {
        m->output_form = outputs;
        m->output_names = stk_arena_copy(&m->arena, out.name, sizeof *out.name * (size_t)out.n);
        if (!m->output_names) return stk_fail_memory(s->err, "a model's outputs", sizeof out);
    }
    return STK_OK;
}

static stk_status read_functional(source *s, const stk_json *config)
{
    stk_model *m = s->model;
    const stk_json *layers = layers_of(s, config);
    if (!layers) return s->err->code;
    m->kind = STK_MODEL_FUNCTIONAL;
    if (!layers->count) return stk_model_build(m, 0, NULL, s->err); /* which says so */
    for (int64_t i = 0; i < layers->count; i++) {
        stk_layer number = 0;
        STK_TRY(read_one(s, &layers->items[i], &number));
        if (stk_layer_at(m, number)->def == &stk_layer_input) {
            stk_sym y = 0;
            stk_mcall call = {.layer = number};
            STK_TRY(stk_model_enter_call(m, &call, &y, s->err));
        }
    }
    int64_t *done = stk_calloc((size_t)layers->count + 1, sizeof *done);
    if (!done) return stk_fail_memory(s->err, "reading a model", (size_t)layers->count);
    stk_status status = read_calls(s, layers, done);
    stk_free(done);
    if (status == STK_OK) status = set_ends(s, config);
    return status == STK_OK ? stk_model_build(m, 0, NULL, s->err) : status;
}

/* ---- models --------------------------------------------------------------------------------------------------------------------- */

static stk_status read_into(stk_model *m, const stk_json *json, int32_t depth, stk_error *err)
{
    const stk_json *config = stk_json_get(json, "config");
    source s = {.model = m, .err = err, .depth = depth};
    m->trainable = stk_json_bool(stk_json_get(config, "trainable"), true);
    const stk_json *policy = stk_json_get(config, "dtype");
    const char *name = stk_json_text(
        policy, stk_json_text(stk_json_get(stk_json_get(policy, "config"), "name"), "float32"));
    if (!stk_policy_parse(name, &m->policy))
        return stk_fail(err, STK_ERR_UNSUPPORTED, "model '%.64s': dtype '%.40s' is not supported",
                        stk_model_name(m), name);
    if (!strcmp(class_of(json), "Sequential")) return read_sequential(&s, json, config);
    return read_functional(&s, config);
}

static stk_status read_model(const stk_json *json, int32_t depth, stk_model **out, stk_error *err)
{
    const char *keras_class = class_of(json);
    const stk_json *config = stk_json_get(json, "config");
    if (!is_model(keras_class) || !config || config->kind != STK_JSON_OBJECT)
        return stk_fail(err, STK_ERR_FORMAT,
                        "this is no model: %s%.64s%s, expected Sequential or Functional with a "
                        "config, as Keras' "
                        "model.to_json() writes it",
                        keras_class ? "class_name is '" : "class_name is missing",
                        keras_class ? keras_class : "", keras_class ? "'" : "");
    if (depth > DEEPEST)
        return stk_fail(err, STK_ERR_UNSUPPORTED, "models inside models, more than %d deep",
                        DEEPEST);
    stk_model *m = NULL;
    STK_TRY(stk_model_new(stk_json_text(stk_json_get(config, "name"), NULL), &m, err));
    stk_error local = {.code = STK_OK};
    stk_status status = read_into(m, json, depth, &local);
    if (status != STK_OK) {
        if (err) *err = local;
        stk_model_release(m);
        return status;
    }
    *out = m;
    return STK_OK;
}

/* A number that is out of range is a mistake in the text like any other. */
static stk_status wrong_text(stk_status status, stk_error *err)
{
    if (status != STK_ERR_RANGE) return status;
    if (err) err->code = STK_ERR_FORMAT;
    return STK_ERR_FORMAT;
}

stk_status stk_model_from_json(const char *text, size_t size, stk_model **out, stk_error *err)
{
    if (!text || !out)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_model_from_json: text and out must not be NULL");
    *out = NULL;
    stk_json_document *document = NULL;
    stk_json_options options = stk_json_defaults();
    options.allow_nonfinite = true;
    STK_TRY(wrong_text(stk_json_parse(text, size, &options, &document, err), err));
    stk_model *m = NULL;
    stk_status status = read_model(stk_json_root(document), 0, &m, err);
    if (status != STK_OK) {
        stk_json_release(document);
        return wrong_text(status, err);
    }
    status = stk_model_keep(m, document, err);
    if (status != STK_OK) stk_model_release(m);
    if (status == STK_OK) *out = m;
    return status;
}

stk_status stk_model_load_json(const char *path, stk_model **out, stk_error *err)
{
    static const uint64_t LARGEST_FILE = 1u << 28;
    char *text = NULL;
    size_t size = 0;
    if (!path || !out)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_model_load_json: path and out must not be NULL");
    *out = NULL;
    STK_TRY(stk_file_read(path, LARGEST_FILE, &text, &size, err));
    stk_status status = stk_model_from_json(text, size, out, err);
    stk_free(text);
    return status == STK_OK ? STK_OK : stk_fail_in(err, status, "%s", path);
}
