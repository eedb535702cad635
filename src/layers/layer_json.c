/* One layer from and to Keras' JSON: {"module": .., "class_name": .., "config": {..}, "registered_name": ..}. */
#include "layers/model.h"

#include <stdio.h>
#include <string.h>

/* A policy is a name, or {"class_name": "DTypePolicy", "config": {"name": ..}}. */
static stk_status read_policy(stk_reader *r, const stk_json *v, stk_layer_state *layer)
{
    const char *name =
        stk_json_text(v, stk_json_text(stk_json_get(stk_json_get(v, "config"), "name"), NULL));
    if (!v || v->kind == STK_JSON_NULL) return STK_OK;
    if (!stk_policy_parse(name, &layer->policy))
        return stk_fail(
            r->err, STK_ERR_UNSUPPORTED,
            "%s: dtype '%.40s' is not supported; there are float32, float64, float16, bfloat16, "
            "mixed_float16 and mixed_bfloat16",
            r->where, name ? name : "?");
    layer->own_policy = strcmp(name, r->model->policy.name) != 0;
    return STK_OK;
}

static stk_status read_common(stk_reader *r, const stk_json *config, stk_layer_state *layer)
{
    const stk_json *name = stk_json_get(config, "name");
    layer->trainable = stk_json_bool(stk_json_get(config, "trainable"), true);
    if (name && name->kind == STK_JSON_STRING) {
        if (!name->count || strlen(name->text) != (size_t)name->count || strchr(name->text, '/'))
            return stk_fail(r->err, STK_ERR_FORMAT, "%s: '%.64s' is no name for a layer", r->where,
                            name->text);
        layer->name = stk_arena_strdup(r->arena, name->text);
        if (!layer->name) return stk_fail_memory(r->err, r->where, (size_t)name->count);
    }
    if (layer->def == &stk_layer_input || layer->def->operation) return STK_OK;
    return read_policy(r, stk_json_get(config, "dtype"), layer);
}

/* A layer inside of another needs a name for its weights even if nobody gave one. */
static stk_status name_part(stk_reader *r, stk_layer_state *layer)
{
    char name[96];
    if (layer->name || !r->depth) return STK_OK;
    if (layer->def->snake)
        snprintf(name, sizeof name, "%s", layer->def->snake);
    else
        stk_snake_case(layer->def->keras_class, name, sizeof name);
    layer->name = stk_arena_strdup(r->arena, name);
    return layer->name ? STK_OK : stk_fail_memory(r->err, r->where, sizeof name);
}

stk_status stk_layer_read(stk_reader *r, const stk_json *json, stk_layer_state **out)
{
    static const char *const common[] = {"name", "trainable", "dtype", "batch_input_shape", NULL};
    static const stk_json nothing = {.kind = STK_JSON_OBJECT};
    const char *keras_class = stk_json_text(stk_json_get(json, "class_name"), NULL);
    const stk_json *config = stk_json_get(json, "config");
    if (!keras_class)
        return stk_fail(r->err, STK_ERR_FORMAT, "%s: a layer without class_name", r->where);
    const char *module = stk_json_text(stk_json_get(json, "module"), "");
    bool operation = !strncmp(module, "keras.src.ops", 13) || !strncmp(module, "keras.ops", 9);
    const stk_layer_def *def =
        operation ? stk_operation_find(keras_class) : stk_layer_find(keras_class);
    if (!def) {
        char near[128];
        if (operation)
            stk_operation_near_misses(keras_class, near, sizeof near);
        else
            stk_layer_near_misses(keras_class, near, sizeof near);
        return stk_fail(r->err, STK_ERR_UNSUPPORTED, "%s: there is no layer class '%.64s'.%s",
                        r->where, keras_class, near);
    }
    if (!config || config->kind != STK_JSON_OBJECT) config = &nothing;
    stk_layer_state *layer = stk_arena_alloc(r->arena, sizeof *layer);
    if (!layer) return stk_fail_memory(r->err, r->where, sizeof *layer);
    *layer = (stk_layer_state){.def = def, .trainable = true, .policy = r->model->policy};
    char where[160];
    const char *name = stk_json_text(stk_json_get(config, "name"), NULL);
    snprintf(where, sizeof where, name ? "%s '%.64s'" : "%s", def->keras_class, name);
    stk_reader inner = *r;
    inner.where = where;
    layer->config = stk_arena_alloc(r->arena, def->fields.size + 1);
    if (!layer->config) return stk_fail_memory(r->err, r->where, def->fields.size);
    STK_TRY(read_common(&inner, config, layer));
    STK_TRY(stk_config_read(&inner, &def->fields, config, common, layer->config));
    STK_TRY(name_part(&inner, layer));
    if (def->check) STK_TRY(def->check(layer, r->err));
    *out = layer;
    return STK_OK;
}

static void write_common(stk_json_writer *w, const stk_layer_state *layer)
{
    stk_json_name(w, "name");
    stk_json_put_text(w, layer->name);
    if (layer->def->operation) return;
    if (!layer->def->no_trainable) {
        stk_json_name(w, "trainable");
        stk_json_put_bool(w, layer->trainable);
    }
    stk_json_name(w, "dtype");
    if (layer->def->no_trainable)
        stk_json_put_text(w, layer->policy.name);
    else
        stk_policy_write(w, layer->policy.name);
}

/* The members of a layer's object up to registered_name; the object stays open for what a model adds. */
void stk_layer_write_open(stk_json_writer *w, const stk_layer_state *layer)
{
    const char *module = layer->def->module ? layer->def->module : "keras.layers";
    stk_class_begin(w, module, layer->def->keras_class);
    if (layer->def == &stk_layer_input) {
        stk_input_config o = *(const stk_input_config *)layer->config;
        o.name = layer->name;
        stk_config_write(w, &layer->def->fields, &o);
    } else {
        write_common(w, layer);
        stk_config_write(w, &layer->def->fields, layer->config);
    }
    stk_class_end(w, layer->def->operation ? layer->def->keras_class : NULL);
}

void stk_layer_write(stk_json_writer *w, const stk_layer_state *layer)
{
    stk_layer_write_open(w, layer);
    stk_json_end_object(w);
}
