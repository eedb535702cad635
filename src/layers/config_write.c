/* The writer of option tables: what Keras' get_config writes. */
#include "layers/config.h"
#include "layers/layer.h"

#include <math.h>
#include <string.h>

void stk_class_begin(stk_json_writer *w, const char *module, const char *keras_class)
{
    stk_json_begin_object(w);
    stk_json_name(w, "module");
    stk_json_put_text(w, module);
    stk_json_name(w, "class_name");
    stk_json_put_text(w, keras_class);
    stk_json_name(w, "config");
    stk_json_begin_object(w);
}

void stk_class_end(stk_json_writer *w, const char *registered)
{
    stk_json_end_object(w);
    stk_json_name(w, "registered_name");
    if (registered)
        stk_json_put_text(w, registered);
    else
        stk_json_put_null(w);
}

void stk_policy_write(stk_json_writer *w, const char *policy)
{
    stk_class_begin(w, "keras", "DTypePolicy");
    stk_json_name(w, "name");
    stk_json_put_text(w, policy);
    stk_class_end(w, NULL);
    stk_json_end_object(w);
}

static void put_real(stk_json_writer *w, double value)
{
    if (isnan(value))
        stk_json_put_null(w);
    else
        stk_json_put_double(w, value);
}

static void put_choice(stk_json_writer *w, const char *choices, int32_t place)
{
    const char *word = choices;
    for (; place > 0 && word; place--) {
        word = strchr(word, '|');
        if (word) word++;
    }
    const char *end = word ? strchr(word, '|') : NULL;
    if (word) stk_json_put_bytes(w, word, end ? (size_t)(end - word) : strlen(word));
}

static void put_ints(stk_json_writer *w, const stk_config_field *f, const stk_ints *list)
{
    if (list->n < 0) {
        stk_json_put_null(w);
    } else if (list->lone && !f->count) {
        stk_json_put_int(w, list->v[0]);
    } else {
        stk_json_begin_array(w);
        for (int32_t i = 0; i < list->n; i++)
            if (list->v[i] < 0 && f->sizes)
                stk_json_put_null(w);
            else
                stk_json_put_int(w, list->v[i]);
        stk_json_end_array(w);
    }
}

static void put_pairs(stk_json_writer *w, const stk_config_field *f, const stk_ints *list)
{
    stk_json_begin_array(w);
    for (int32_t i = 0; i < f->count; i++) {
        if (f->count > 1) stk_json_begin_array(w);
        stk_json_put_int(w, list->v[2 * i]);
        stk_json_put_int(w, list->v[2 * i + 1]);
        if (f->count > 1) stk_json_end_array(w);
    }
    stk_json_end_array(w);
}

static void put_reals(stk_json_writer *w, const stk_reals *list)
{
    if (list->n < 0) {
        stk_json_put_null(w);
    } else if (list->lone) {
        put_real(w, list->v[0]);
    } else {
        stk_json_begin_array(w);
        for (int32_t i = 0; i < list->n; i++) put_real(w, list->v[i]);
        stk_json_end_array(w);
    }
}

static void put_object(stk_json_writer *w, const stk_object *object)
{
    if (!object) {
        stk_json_put_null(w);
        return;
    }
    stk_class_begin(w, stk_family_module(object->def->family), object->def->keras_class);
    stk_config_write(w, &object->def->fields, object->config);
    stk_class_end(w, NULL);
    stk_json_end_object(w);
}

static void put_activation(stk_json_writer *w, const stk_activation *a)
{
    if (a->layer)
        stk_layer_write(w, a->layer);
    else
        stk_json_put_text(w, a->def->name);
}

static void put_layers(stk_json_writer *w, const stk_layer_list *list)
{
    stk_json_begin_array(w);
    for (int32_t i = 0; i < list->n; i++) stk_layer_write(w, list->v[i]);
    stk_json_end_array(w);
}

static void put_field(stk_json_writer *w, const stk_config_field *f, const void *at)
{
    switch (f->kind) {
    case STK_FIELD_INT:
        if (*(const int64_t *)at == STK_NONE)
            stk_json_put_null(w);
        else
            stk_json_put_int(w, *(const int64_t *)at);
        break;
    case STK_FIELD_REAL: put_real(w, *(const double *)at); break;
    case STK_FIELD_BOOL: stk_json_put_bool(w, *(const bool *)at); break;
    case STK_FIELD_TEXT:
        if (*(const char *const *)at)
            stk_json_put_text(w, *(const char *const *)at);
        else
            stk_json_put_null(w);
        break;
    case STK_FIELD_CHOICE: put_choice(w, f->choices, *(const int32_t *)at); break;
    case STK_FIELD_INTS: put_ints(w, f, at); break;
    case STK_FIELD_REALS: put_reals(w, at); break;
    case STK_FIELD_PAIRS: put_pairs(w, f, at); break;
    case STK_FIELD_ACTIVATION: put_activation(w, at); break;
    case STK_FIELD_INITIALIZER:
    case STK_FIELD_REGULARIZER:
    case STK_FIELD_CONSTRAINT: put_object(w, *(const stk_object *const *)at); break;
    case STK_FIELD_LAYER:
        if (*(stk_layer_state *const *)at)
            stk_layer_write(w, *(stk_layer_state *const *)at);
        else
            stk_json_put_null(w);
        break;
    case STK_FIELD_LAYERS: put_layers(w, at); break;
    case STK_FIELD_JSON:
        if (*(const stk_json *const *)at)
            stk_json_put_tree(w, *(const stk_json *const *)at);
        else
            stk_json_put_null(w);
        break;
    case STK_FIELD_NULL: stk_json_put_null(w); break;
    }
}

void stk_config_write(stk_json_writer *w, const stk_fields *fields, const void *config)
{
    for (int32_t i = 0; i < fields->count; i++) {
        const stk_config_field *f = &fields->rows[i];
        const void *at = (const char *)config + f->offset;
        if (f->input_only || (f->optional && !*(const void *const *)at)) continue;
        stk_json_name(w, f->name);
        put_field(w, f, at);
    }
}
