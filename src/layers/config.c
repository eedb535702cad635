/* The reader of option tables. */
#include "layers/config.h"

#include "base/number.h"
#include "layers/activation.h"
#include "layers/layer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Sizes stay below this, so that the product of two of them cannot overflow. */
static const int64_t LARGEST = INT32_MAX;

static const char *say(const stk_json *v, char *text, size_t size)
{
    if (v->kind == STK_JSON_STRING)
        snprintf(text, size, "'%.40s'", v->text);
    else if (v->kind == STK_JSON_INT)
        snprintf(text, size, "%lld", (long long)v->integer);
    else if (v->kind == STK_JSON_DOUBLE)
        snprintf(text, size, "%.17g", v->number);
    else if (v->kind == STK_JSON_BOOL)
        snprintf(text, size, "%s", v->truth ? "True" : "False");
    else if (v->kind == STK_JSON_ARRAY)
        snprintf(text, size, "a list of %lld", (long long)v->count);
    else
        snprintf(text, size, "%s", v->kind == STK_JSON_NULL ? "None" : "an object");
    return text;
}

static stk_status refuse(stk_reader *r, const stk_config_field *f, const stk_json *v,
                         const char *wanted)
{
    char got[64];
    return stk_fail(r->err, STK_ERR_FORMAT, "%s: option '%s' is %s; it takes %s", r->where, f->name,
                    say(v, got, sizeof got), wanted);
}

static stk_status no_memory(stk_reader *r) { return stk_fail_memory(r->err, r->where, 0); }

/* ---- numbers --------------------------------------------------------------------------------------------------- */

static bool whole(const stk_json *v, int64_t *out)
{
    if (v->kind == STK_JSON_INT)
        *out = v->integer;
    else if (v->kind == STK_JSON_DOUBLE && v->number == floor(v->number) &&
             fabs(v->number) < STK_EXACT)
        *out = (int64_t)v->number;
    else
        return false;
    return true;
}

static stk_status check_size(stk_reader *r, const stk_config_field *f, const stk_json *v, int64_t n)
{
    char wanted[80];
    if (f->low && n < f->low) {
        snprintf(wanted, sizeof wanted, "whole numbers from %lld on", (long long)f->low);
        return refuse(r, f, v, wanted);
    }
    if (!f->wide && (n > LARGEST || n < -LARGEST))
        return refuse(r, f, v, "whole numbers below 2^31");
    return STK_OK;
}

static stk_status read_int(stk_reader *r, const stk_config_field *f, const stk_json *v, void *at)
{
    int64_t n = STK_NONE;
    const stk_json *seed = stk_json_get(stk_json_get(v, "config"), "seed");
    if (v->kind == STK_JSON_OBJECT && seed) v = seed; /* a SeedGenerator */
    if (v->kind != STK_JSON_NULL || !f->fallback) {   /* None is no answer to what must be given */
        if (!whole(v, &n)) return refuse(r, f, v, "a whole number");
        STK_TRY(check_size(r, f, v, n));
    }
    *(int64_t *)at = n;
    return STK_OK;
}

static stk_status read_real(stk_reader *r, const stk_config_field *f, const stk_json *v, void *at)
{
    /* Numbers of numpy scalars are written as {"class_name": "__numpy__", "config": {"value": 0.1}}. */
    const stk_json *wrapped = stk_json_get(stk_json_get(v, "config"), "value");
    if (v->kind == STK_JSON_OBJECT && wrapped) v = wrapped;
    if (v->kind == STK_JSON_NULL)
        *(double *)at = NAN;
    else if (v->kind == STK_JSON_INT || v->kind == STK_JSON_DOUBLE)
        *(double *)at = v->number;
    else
        return refuse(r, f, v, "a number");
    return STK_OK;
}

static stk_status read_bool(stk_reader *r, const stk_config_field *f, const stk_json *v, void *at)
{
    if (v->kind == STK_JSON_BOOL)
        *(bool *)at = v->truth;
    else if (v->kind == STK_JSON_INT && (v->integer == 0 || v->integer == 1))
        *(bool *)at = v->integer == 1;
    else if (v->kind == STK_JSON_NULL)
        *(bool *)at = false;
    else
        return refuse(r, f, v, "True or False");
    return STK_OK;
}

static stk_status read_ints(stk_reader *r, const stk_config_field *f, const stk_json *v, void *at)
{
    stk_ints list = {.n = -1};
    int64_t n;
    char wanted[80];
    snprintf(wanted, sizeof wanted, f->count ? "a whole number or a list of %d" : "whole numbers",
             f->count);
    if (v->kind == STK_JSON_NULL) {
        /* n = -1 says it */
    } else if (whole(v, &n)) {
        STK_TRY(check_size(r, f, v, n));
        list.lone = true;
        list.n = f->count ? f->count : 1;
        for (int32_t i = 0; i < list.n; i++) list.v[i] = n;
    } else if (v->kind == STK_JSON_ARRAY && v->count <= STK_MAX_RANK &&
               (!f->count || v->count == f->count)) {
        list.n = (int32_t)v->count;
        for (int32_t i = 0; i < list.n; i++) {
            const stk_json *item = &v->items[i];
            if (item->kind == STK_JSON_NULL)
                list.v[i] = -1; /* an unknown size in a shape */
            else if (!whole(item, &list.v[i]))
                return refuse(r, f, item, wanted);
            STK_TRY(check_size(r, f, item, list.v[i]));
        }
    } else {
        return refuse(r, f, v, wanted);
    }
    *(stk_ints *)at = list;
    return STK_OK;
}

/* 1 -> 1 1 1 1; (1, 2) -> 1 1 2 2; ((0, 1), (2, 3)) -> 0 1 2 3. One axis: (1, 2) are both its ends. */
static stk_status read_pairs(stk_reader *r, const stk_config_field *f, const stk_json *v, void *at)
{
    stk_ints list = {.n = 2 * f->count};
    const char *wanted = "a whole number, one per axis, or a pair per axis";
    int64_t n;
    if (whole(v, &n)) {
        STK_TRY(check_size(r, f, v, n));
        for (int32_t i = 0; i < list.n; i++) list.v[i] = n;
    } else if (v->kind == STK_JSON_ARRAY && f->count == 1 && v->count == 2) {
        for (int32_t i = 0; i < 2; i++) {
            if (!whole(&v->items[i], &list.v[i])) return refuse(r, f, v, wanted);
            STK_TRY(check_size(r, f, &v->items[i], list.v[i]));
        }
    } else if (v->kind == STK_JSON_ARRAY && v->count == f->count) {
        for (int32_t i = 0; i < f->count; i++) {
            const stk_json *item = &v->items[i];
            const stk_json *low = item->kind == STK_JSON_ARRAY ? stk_json_item(item, 0) : item;
            const stk_json *high = item->kind == STK_JSON_ARRAY ? stk_json_item(item, 1) : item;
            if (!low || !high || !whole(low, &list.v[2 * i]) || !whole(high, &list.v[2 * i + 1]))
                return refuse(r, f, v, wanted);
            STK_TRY(check_size(r, f, low, list.v[2 * i]));
            STK_TRY(check_size(r, f, high, list.v[2 * i + 1]));
        }
    } else {
        return refuse(r, f, v, wanted);
    }
    *(stk_ints *)at = list;
    return STK_OK;
}

/* Nested lists are flattened: the numbers of an array that Keras wrote. */
static int64_t count_numbers(const stk_json *v)
{
    int64_t n = 0;
    if (v->kind == STK_JSON_INT || v->kind == STK_JSON_DOUBLE) return 1;
    for (int64_t i = 0; v->kind == STK_JSON_ARRAY && i < v->count; i++)
        n += count_numbers(&v->items[i]);
    return n;
}
static double *put_numbers(const stk_json *v, double *at)
{
    if (v->kind == STK_JSON_INT || v->kind == STK_JSON_DOUBLE) *at++ = v->number;
    for (int64_t i = 0; v->kind == STK_JSON_ARRAY && i < v->count; i++)
        at = put_numbers(&v->items[i], at);
    return at;
}

static stk_status read_reals(stk_reader *r, const stk_config_field *f, const stk_json *v, void *at)
{
    const stk_json *wrapped = stk_json_get(stk_json_get(v, "config"), "value");
    if (v->kind == STK_JSON_OBJECT && wrapped) v = wrapped;
    stk_reals list = {.n = -1};
    if (v->kind != STK_JSON_NULL) {
        int64_t n = count_numbers(v);
        if (!n || n > LARGEST) return refuse(r, f, v, "numbers");
        if (f->count && n != f->count && n != 1) return refuse(r, f, v, "another count of numbers");
        list.v = stk_arena_array(r->arena, (size_t)n, sizeof *list.v);
        if (!list.v) return no_memory(r);
        put_numbers(v, list.v);
        list.n = (int32_t)n;
        list.lone = v->kind != STK_JSON_ARRAY;
    }
    *(stk_reals *)at = list;
    return STK_OK;
}

/* ---- words ---------------------------------------------------------------------------------------------------------- */

static stk_status read_text(stk_reader *r, const stk_config_field *f, const stk_json *v, void *at)
{
    char *copy = NULL;
    if (v->kind == STK_JSON_STRING) {
        copy = stk_arena_strdup(r->arena, v->text);
        if (!copy) return no_memory(r);
    } else if (v->kind != STK_JSON_NULL) {
        return refuse(r, f, v, "a text");
    }
    *(char **)at = copy;
    return STK_OK;
}

static stk_status read_choice(stk_reader *r, const stk_config_field *f, const stk_json *v, void *at)
{
    int32_t place = 0;
    for (const char *word = f->choices; v->kind == STK_JSON_STRING && word; place++) {
        const char *end = strchr(word, '|');
        size_t n = end ? (size_t)(end - word) : strlen(word);
        if (strlen(v->text) == n && !strncasecmp(v->text, word, n)) {
            *(int32_t *)at = place;
            return STK_OK;
        }
        word = end ? end + 1 : NULL;
    }
    char wanted[160];
    snprintf(wanted, sizeof wanted, "one of %.140s", f->choices);
    return refuse(r, f, v, wanted);
}

/* ---- objects ---------------------------------------------------------------------------------------------------------- */

static stk_status read_object(stk_reader *r, const stk_config_field *f, const stk_json *v, void *at)
{
    stk_family family = f->kind == STK_FIELD_INITIALIZER   ? STK_INITIALIZERS
                        : f->kind == STK_FIELD_REGULARIZER ? STK_REGULARIZERS
                                                           : STK_CONSTRAINTS;
    *(const stk_object **)at = NULL;
    if (v->kind == STK_JSON_NULL) return STK_OK;
    static const stk_json nothing = {.kind = STK_JSON_OBJECT};
    const stk_json *config = stk_json_get(v, "config");
    const char *name =
        v->kind == STK_JSON_STRING ? v->text : stk_json_text(stk_json_get(v, "class_name"), NULL);
    if (!name) return refuse(r, f, v, "a name, or an object with class_name and config");
    const stk_object_def *def = stk_object_find(family, name);
    if (!def) {
        char near[128];
        stk_object_near_misses(family, name, near, sizeof near);
        return stk_fail(r->err, STK_ERR_UNSUPPORTED, "%s: option '%s': there is no %s '%.64s'.%s",
                        r->where, f->name, stk_family_name(family), name, near);
    }
    stk_object *object = stk_arena_alloc(r->arena, sizeof *object);
    void *values = stk_arena_alloc(r->arena, def->fields.size + 1);
    if (!object || !values) return no_memory(r);
    char where[256];
    snprintf(where, sizeof where, "%.140s, %s %s", r->where, f->name, def->keras_class);
    stk_reader inner = *r;
    inner.where = where;
    STK_TRY(stk_config_read(&inner, &def->fields,
                            config && config->kind == STK_JSON_OBJECT ? config : &nothing, NULL,
                            values));
    *object = (stk_object){def, values};
    *(const stk_object **)at = object;
    return STK_OK;
}

static stk_status read_layer(stk_reader *r, const stk_config_field *f, const stk_json *v, void *at)
{
    enum { DEEPEST = 16 };
    *(stk_layer_state **)at = NULL;
    if (v->kind == STK_JSON_NULL) return STK_OK;
    if (v->kind != STK_JSON_OBJECT) return refuse(r, f, v, "a layer, as in LSTM(8)");
    if (r->depth >= DEEPEST)
        return stk_fail(r->err, STK_ERR_UNSUPPORTED, "%s: layers inside layers, more than %d deep",
                        r->where, DEEPEST);
    stk_reader inner = *r;
    inner.depth++;
    STK_TRY(stk_layer_read(&inner, v, at));
    (*(stk_layer_state **)at)->attribute = f->name;
    return STK_OK;
}

/* As weight files of Keras name it: "cells/lstm_cell", "cells/lstm_cell_1". */
static const char *listed_attribute(stk_reader *r, const stk_config_field *f,
                                    const stk_layer_list *list)
{
    const stk_layer_def *def = list->v[list->n]->def;
    char text[160], word[96], number[16] = "";
    int32_t same = 0;
    for (int32_t i = 0; i < list->n; i++) same += list->v[i]->def == def;
    if (same) snprintf(number, sizeof number, "_%d", same);
    stk_snake_case(def->keras_class, word, sizeof word);
    snprintf(text, sizeof text, "%s/%s%s", f->name, def->snake ? def->snake : word, number);
    return stk_arena_strdup(r->arena, text);
}

static stk_status read_layers(stk_reader *r, const stk_config_field *f, const stk_json *v, void *at)
{
    stk_layer_list list = {0};
    if (v->kind != STK_JSON_ARRAY || !v->count || v->count > STK_MAX_PARTS)
        return refuse(r, f, v, "a list of layers, as in [LSTMCell(8), GRUCell(4)]");
    list.v = stk_arena_array(r->arena, (size_t)v->count, sizeof *list.v);
    if (!list.v) return no_memory(r);
    for (; list.n < v->count; list.n++) {
        STK_TRY(read_layer(r, f, &v->items[list.n], &list.v[list.n]));
        if (!list.v[list.n]) return refuse(r, f, &v->items[list.n], "a layer");
        list.v[list.n]->attribute = listed_attribute(r, f, &list);
        if (!list.v[list.n]->attribute) return no_memory(r);
    }
    *(stk_layer_list *)at = list;
    return STK_OK;
}

static stk_status read_activation(stk_reader *r, const stk_config_field *f, const stk_json *v,
                                  void *at)
{
    stk_activation a = {.def = stk_activation_find("linear")};
    const char *name = v->kind == STK_JSON_STRING ? v->text : NULL;
    const char *keras_class = stk_json_text(stk_json_get(v, "class_name"), NULL);
    if (keras_class && !strcmp(keras_class, "function"))
        name = stk_json_text(stk_json_get(v, "config"), NULL);
    if (name) {
        a.def = stk_activation_find(name);
        if (!a.def) {
            char near[128];
            stk_activation_near_misses(name, near, sizeof near);
            return stk_fail(r->err, STK_ERR_UNSUPPORTED,
                            "%s: option '%s': there is no activation '%.64s'.%s", r->where, f->name,
                            name, near);
        }
    } else if (keras_class) {
        a.def = NULL;
        STK_TRY(read_layer(r, f, v, &a.layer));
    } else if (v->kind != STK_JSON_NULL) {
        return refuse(r, f, v, "the name of an activation, or a layer");
    }
    *(stk_activation *)at = a;
    return STK_OK;
}

static stk_status read_json(stk_reader *r, const stk_config_field *f, const stk_json *v, void *at)
{
    (void)r, (void)f;
    *(const stk_json **)at = v->kind == STK_JSON_NULL ? NULL : v;
    return STK_OK;
}

static stk_status read_null(stk_reader *r, const stk_config_field *f, const stk_json *v, void *at)
{
    (void)at;
    return v->kind == STK_JSON_NULL ? STK_OK : refuse(r, f, v, "only None here");
}

typedef stk_status (*field_reader)(stk_reader *, const stk_config_field *, const stk_json *,
                                   void *);
static const field_reader readers[] = {
    [STK_FIELD_INT] = read_int,
    [STK_FIELD_REAL] = read_real,
    [STK_FIELD_BOOL] = read_bool,
    [STK_FIELD_TEXT] = read_text,
    [STK_FIELD_CHOICE] = read_choice,
    [STK_FIELD_INTS] = read_ints,
    [STK_FIELD_REALS] = read_reals,
    [STK_FIELD_PAIRS] = read_pairs,
    [STK_FIELD_ACTIVATION] = read_activation,
    [STK_FIELD_INITIALIZER] = read_object,
    [STK_FIELD_REGULARIZER] = read_object,
    [STK_FIELD_CONSTRAINT] = read_object,
    [STK_FIELD_LAYER] = read_layer,
    [STK_FIELD_LAYERS] = read_layers,
    [STK_FIELD_JSON] = read_json,
    [STK_FIELD_NULL] = read_null,
};

/* ---- tables ------------------------------------------------------------------------------------------------------------ */

/* A default as JSON: None, True, False, a number or a word. */
static stk_json literal(const char *text)
{
    stk_json v = {.kind = STK_JSON_STRING, .text = text, .count = (int64_t)strlen(text)};
    if (!strcmp(text, "None")) {
        v.kind = STK_JSON_NULL;
    } else if (!strcmp(text, "True") || !strcmp(text, "False")) {
        v.kind = STK_JSON_BOOL;
        v.truth = text[0] == 'T';
    } else if (stk_parse_int64(text, strlen(text), &v.integer)) {
        v.kind = STK_JSON_INT;
        v.number = (double)v.integer;
    } else if (stk_parse_double(text, strlen(text), &v.number)) {
        v.kind = STK_JSON_DOUBLE;
    }
    return v;
}

static const stk_json *member(const stk_json *object, const stk_config_field *f, int32_t place)
{
    char number[16];
    const stk_json *v = stk_json_get(object, f->name);
    if (v) return v;
    snprintf(number, sizeof number, "#%d", place);
    return stk_json_get(object, number);
}

static bool listed(const char *name, const stk_fields *fields, const char *const *others)
{
    int64_t place;
    if (name[0] == '#' && stk_parse_int64(name + 1, strlen(name + 1), &place))
        return place >= 0 && place < fields->count;
    for (int32_t i = 0; i < fields->count; i++)
        if (!strcmp(fields->rows[i].name, name)) return true;
    for (; others && *others; others++)
        if (!strcmp(*others, name)) return true;
    return false;
}

static stk_status check_members(stk_reader *r, const stk_fields *fields, const stk_json *object,
                                const char *const *others)
{
    enum { MOST = 64 };
    for (int64_t i = 0; i < object->count; i++) {
        const stk_json *v = &object->items[i];
        if (v->kind == STK_JSON_NULL || listed(v->name, fields, others)) continue;
        if (v->name[0] == '#')
            return stk_fail(r->err, STK_ERR_FORMAT,
                            "%s: more options without a name than the %d that there are", r->where,
                            fields->count);
        const char *names[MOST];
        int32_t n = 0;
        for (; n < fields->count && n < MOST; n++) names[n] = fields->rows[n].name;
        char near[128];
        stk_did_you_mean(v->name, names, n, near, sizeof near);
        return stk_fail(r->err, STK_ERR_UNSUPPORTED, "%s: option '%.64s' is not known.%s", r->where,
                        v->name, near);
    }
    return STK_OK;
}

stk_status stk_config_read(stk_reader *r, const stk_fields *fields, const stk_json *object,
                           const char *const *others, void *out)
{
    STK_TRY(check_members(r, fields, object, others));
    for (int32_t i = 0; i < fields->count; i++) {
        const stk_config_field *f = &fields->rows[i];
        const stk_json *given = member(object, f, i);
        stk_json otherwise = literal(f->fallback ? f->fallback : "None");
        if (!given && !f->fallback)
            return stk_fail(r->err, STK_ERR_FORMAT, "%s: option '%s' is missing", r->where,
                            f->name);
        bool use = given && (given->kind != STK_JSON_NULL || !f->fallback || f->none);
        STK_TRY(readers[f->kind](r, f, use ? given : &otherwise, (char *)out + f->offset));
    }
    return STK_OK;
}
