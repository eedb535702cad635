/* Optimizers as descriptions: from options, text or Keras' JSON, and their variables in a store. */
#include "optim/optimizer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST 1e300
#define ROW(member, alias, kind, low, high, none)                                                  \
    STK_OPTION(stk_optimizer_options, member, alias, kind, low, high, none)
static const stk_option rows[] = {
    ROW(learning_rate, "lr", REAL, 0, MOST, NAN),
    ROW(momentum, NULL, REAL, 0, 1, NAN),
    ROW(nesterov, NULL, BOOL, 0, 1, NAN),
    ROW(rho, NULL, REAL, 0, 1, NAN),
    ROW(beta_1, "beta1", REAL, 0, 1, NAN),
    ROW(beta_2, "beta2", REAL, 0, 1, NAN),
    ROW(epsilon, "eps", REAL, 0, MOST, NAN),
    ROW(amsgrad, NULL, BOOL, 0, 1, NAN),
    ROW(centered, NULL, BOOL, 0, 1, NAN),
    ROW(initial_accumulator_value, NULL, REAL, 0, MOST, NAN),
    ROW(weight_decay, "wd", REAL, 0, MOST, 0),
    ROW(clipnorm, NULL, REAL, 0, MOST, 0),
    ROW(global_clipnorm, NULL, REAL, 0, MOST, 0),
    ROW(clipvalue, NULL, REAL, 0, MOST, 0),
    ROW(use_ema, "ema", BOOL, 0, 1, NAN),
    ROW(ema_momentum, NULL, REAL, 0, 1, NAN),
    ROW(ema_overwrite_frequency, NULL, INT, 0, 1e15, 0),
    ROW(loss_scale_factor, NULL, REAL, 0, MOST, 0),
    ROW(gradient_accumulation_steps, "accumulate", INT, 0, 1e15, 0),
    ROW(dynamic_loss_scale, NULL, BOOL, 0, 1, NAN),
    ROW(initial_scale, NULL, REAL, 0, MOST, NAN),
    ROW(dynamic_growth_steps, NULL, INT, 1, 1e15, NAN),
};
static const char common[] =
    " weight_decay clipnorm global_clipnorm clipvalue use_ema ema_momentum ema_overwrite_frequency"
    " loss_scale_factor gradient_accumulation_steps";
static const char scaling[] = " dynamic_loss_scale initial_scale dynamic_growth_steps";

/* The options of a kind: those that its defaults name and those of all. `text` takes what is written in text only too. */
typedef struct reader {
    char takes[512], what[64];
    stk_options options;
} reader;

static void reader_init(reader *r, stk_optimizer_kind kind, bool text)
{
    size_t used = 0;
    for (const char *at = stk_update_rules[kind].defaults; *at;) {
        size_t name = strcspn(at, "="), all = strcspn(at, ",");
        bool twice = !strncmp(at, "weight_decay", name);
        if (!twice) {
            if (used) r->takes[used++] = ' ';
            memcpy(r->takes + used, at, name);
            used += name;
        }
        at += all + (at[all] == ',');
    }
    snprintf(r->takes + used, sizeof r->takes - used, "%s%s", common, text ? scaling : "");
    snprintf(r->what, sizeof r->what, "optimizer %s", stk_update_rules[kind].name);
    r->options = (stk_options){rows, (int32_t)(sizeof rows / sizeof *rows), r->takes, r->what};
}

stk_optimizer_options stk_optimizer_defaults(stk_optimizer_kind kind)
{
    stk_optimizer_options o = {.kind = kind,
                               .ema_momentum = 0.99,
                               .epsilon = 1e-7,
                               .initial_scale = 32768,
                               .dynamic_growth_steps = 2000,
                               .schedule = stk_schedule_defaults(STK_SCHEDULE_CONSTANT)};
    if (kind < 0 || kind >= STK_OPTIMIZER_COUNT) return o;
    reader r;
    reader_init(&r, kind, true);
    (void)!stk_options_text(&r.options, stk_update_rules[kind].defaults, &o,
                            NULL); /* tested for each */
    return o;
}

const char *stk_optimizer_name(stk_optimizer_kind kind)
{
    return kind >= 0 && kind < STK_OPTIMIZER_COUNT ? stk_update_rules[kind].name : "?";
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static stk_status check(const stk_optimizer_options *o, stk_error *err)
{
    if (o->kind < 0 || o->kind >= STK_OPTIMIZER_COUNT)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_optimizer_new: kind %d is unknown, 0 to %d fit",
                        (int)o->kind, STK_OPTIMIZER_COUNT - 1);
    const char *name = stk_update_rules[o->kind].name;
    reader r;
    reader_init(&r, o->kind, true);
    STK_TRY(stk_options_check(&r.options, o, err));
    if ((o->clipnorm > 0) + (o->global_clipnorm > 0) + (o->clipvalue > 0) > 1)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "optimizer %s: clipnorm, global_clipnorm and clipvalue exclude each other; "
                        "set one of them",
                        name);
    if (o->gradient_accumulation_steps == 1 || o->gradient_accumulation_steps < 0)
        return stk_fail(err, STK_ERR_RANGE,
                        "optimizer %s: gradient_accumulation_steps is %lld, it must be at least 2, "
                        "or 0 for none",
                        name, (long long)o->gradient_accumulation_steps);
    if (o->kind == STK_OPTIMIZER_LION && o->beta_1 <= 0)
        return stk_fail(err, STK_ERR_RANGE, "optimizer lion: beta_1 must be larger than 0");
    if (o->dynamic_loss_scale && !(o->initial_scale > 0))
        return stk_fail(err, STK_ERR_RANGE, "optimizer %s: initial_scale must be larger than 0",
                        name);
    if (memchr(o->name, 0, sizeof o->name) == NULL)
        return stk_fail(err, STK_ERR_ARGUMENT, "optimizer %s: the name is too long", name);
    return stk_schedule_check(&o->schedule, err);
}

stk_status stk_optimizer_new(const stk_optimizer_options *options, stk_optimizer **out,
                             stk_error *err)
{
    if (!options || !out)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_optimizer_new: options and out must be given");
    STK_TRY(check(options, err));
    stk_optimizer *o = stk_calloc(1, sizeof *o);
    if (!o) return stk_fail_memory(err, "stk_optimizer_new", sizeof *o);
    o->options = *options;
    if (o->options.dynamic_loss_scale) o->options.loss_scale_factor = 0; /* not twice */
    o->refs = 1;
    *out = o;
    return STK_OK;
}

stk_optimizer *stk_optimizer_retain(stk_optimizer *o)
{
    if (o) __atomic_add_fetch(&o->refs, 1, __ATOMIC_RELAXED);
    return o;
}

void stk_optimizer_release(stk_optimizer *o)
{
    if (o && __atomic_sub_fetch(&o->refs, 1, __ATOMIC_ACQ_REL) == 0) stk_free(o);
}

const stk_optimizer_options *stk_optimizer_get_options(const stk_optimizer *o)
{
    return o ? &o->options : NULL;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static const char *name_of(int32_t i, int32_t which)
{
    return which == 0   ? stk_update_rules[i].name
           : which == 1 ? stk_update_rules[i].keras_class
                        : NULL;
}

static stk_status find_kind(const char *text, size_t size, stk_optimizer_options *o, stk_error *err)
{
    static const stk_names names = {"optimizer", STK_OPTIMIZER_COUNT, name_of};
    int32_t kind = stk_names_find(&names, text, size, err);
    if (kind < 0) return STK_ERR_ARGUMENT;
    *o = stk_optimizer_defaults((stk_optimizer_kind)kind);
    return STK_OK;
}

static stk_status set_name(stk_optimizer_options *o, const char *name, size_t size, stk_error *err)
{
    if (size >= sizeof o->name || memchr(name, '/', size))
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "optimizer %s: name '%.*s' must be shorter than %zu letters, without '/'",
                        stk_update_rules[o->kind].name, (int)(size < 80 ? size : 80), name,
                        sizeof o->name);
    memcpy(o->name, name, size);
    o->name[size] = 0;
    return STK_OK;
}

static stk_status read_text(const char *text, stk_optimizer_options *o, stk_error *err)
{
    size_t size = strcspn(text, ":");
    reader r;
    STK_TRY(find_kind(text, size, o, err));
    reader_init(&r, o->kind, true);
    text += size + (text[size] == ':');
    while (*text) {
        size_t all = strcspn(text, ","), name = strcspn(text, "=,");
        const char *value = text + name + 1;
        if (name == all)
            return stk_fail(err, STK_ERR_ARGUMENT, "%s: '%.*s' is no option; write name=value",
                            r.what, (int)(all < 80 ? all : 80), text);
        size_t value_size = all - name - 1;
        if (name == 8 && !memcmp(text, "schedule", 8))
            STK_TRY(stk_schedule_text(value, value_size, &o->schedule, &o->learning_rate, err));
        else if (name == 4 && !memcmp(text, "name", 4))
            STK_TRY(set_name(o, value, value_size, err));
        else
            STK_TRY(stk_options_set(&r.options, text, name, value, value_size, o, err));
        text += all + (text[all] == ',');
    }
    return STK_OK;
}

static stk_status read_config(const stk_json *config, stk_optimizer_options *o, stk_error *err)
{
    reader r;
    reader_init(&r, o->kind, false);
    for (int64_t i = 0; i < config->count; i++) {
        const stk_json *item = &config->items[i];
        if (!strcmp(item->name, "name")) { /* Keras' automatic "adam_1" must not rename variables */
            continue;
        } else if (!strcmp(item->name, "is_legacy_optimizer") ||
                   !strcmp(item->name, "jit_compile")) {
            continue;
        } else if (!strcmp(item->name, "learning_rate") && item->kind == STK_JSON_OBJECT) {
            STK_TRY(stk_schedule_json(item, &o->schedule, &o->learning_rate, err));
        } else {
            STK_TRY(stk_options_json(&r.options, item, o, err));
        }
    }
    return STK_OK;
}

static stk_status read_json(const stk_json *json, int32_t depth, stk_optimizer_options *o,
                            stk_error *err)
{
    const char *name = stk_json_text(stk_json_get(json, "class_name"), NULL);
    const stk_json *config = stk_json_get(json, "config");
    if (!name || !config || config->kind != STK_JSON_OBJECT)
        return stk_fail(err, STK_ERR_FORMAT,
                        "optimizer: expected a JSON object with class_name and config, as "
                        "keras.optimizers.serialize writes it");
    if (!strcmp(name, "LossScaleOptimizer") && depth == 0) {
        STK_TRY(read_json(stk_json_get(config, "inner_optimizer"), 1, o, err));
        o->dynamic_loss_scale = true;
        o->initial_scale = stk_json_double(stk_json_get(config, "initial_scale"), o->initial_scale);
        o->dynamic_growth_steps =
            stk_json_int(stk_json_get(config, "dynamic_growth_steps"), o->dynamic_growth_steps);
        return STK_OK;
    }
    STK_TRY(find_kind(name, strlen(name), o, err));
    return read_config(config, o, err);
}

stk_status stk_optimizer_parse(const char *text, stk_optimizer **out, stk_error *err)
{
    stk_optimizer_options o;
    if (!text || !out)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_optimizer_parse: text and out must be given");
    while (*text == ' ' || *text == '\n' || *text == '\t') text++;
    if (*text == '{') {
        stk_json_document *document = NULL;
        STK_TRY(stk_json_parse(text, strlen(text), NULL, &document, err));
        stk_status status = read_json(stk_json_root(document), 0, &o, err);
        stk_json_release(document);
        STK_TRY(status);
    } else {
        STK_TRY(read_text(text, &o, err));
    }
    return stk_optimizer_new(&o, out, err);
}

/* ---- writing ------------------------------------------------------------------------------------------------------- */

static void begin_class(stk_json_writer *w, const char *keras_class)
{
    stk_json_begin_object(w);
    stk_json_name(w, "module");
    stk_json_put_text(w, "keras.optimizers");
    stk_json_name(w, "class_name");
    stk_json_put_text(w, keras_class);
    stk_json_name(w, "config");
    stk_json_begin_object(w);
}

static void end_class(stk_json_writer *w)
{
    stk_json_end_object(w);
    stk_json_name(w, "registered_name");
    stk_json_put_null(w);
    stk_json_end_object(w);
}

stk_status stk_optimizer_to_json(const stk_optimizer *optimizer, char **out, stk_error *err)
{
    if (!optimizer || !out)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_optimizer_to_json: optimizer and out must be given");
    const stk_optimizer_options *o = &optimizer->options;
    stk_json_writer w = {0};
    reader r;
    size_t size;
    reader_init(&r, o->kind, false);
    if (o->dynamic_loss_scale) {
        begin_class(&w, "LossScaleOptimizer");
        stk_json_name(&w, "initial_scale");
        stk_json_put_double(&w, o->initial_scale);
        stk_json_name(&w, "dynamic_growth_steps");
        stk_json_put_int(&w, o->dynamic_growth_steps);
        stk_json_name(&w, "inner_optimizer");
    }
    begin_class(&w, stk_update_rules[o->kind].keras_class);
    stk_json_name(&w, "name");
    stk_json_put_text(&w, o->name[0] ? o->name : stk_update_rules[o->kind].name);
    if (o->schedule.kind != STK_SCHEDULE_CONSTANT) {
        stk_json_name(&w, "learning_rate");
        stk_schedule_write(&o->schedule, o->learning_rate, &w);
        r.options.takes = strchr(r.takes, ' ') + 1; /* learning_rate is the first */
    }
    stk_options_write(&r.options, o, &w);
    end_class(&w);
    if (o->dynamic_loss_scale) end_class(&w);
    return stk_json_finish(&w, out, &size, err);
}
