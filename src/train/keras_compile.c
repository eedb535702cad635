/* keras_compile.c - model.compile(...) as Keras writes it down, to the texts of a trainer and back.
 *
 *     {"optimizer": {"class_name": "Adam", "config": {..}}, "loss": "mse" or {..} or [..] or {"output": ..},
 *      "loss_weights": null or [..] or {..}, "metrics": ["mae", ..] or [["mae"], ..] or {"output": [..]}, ..}
 *
 * Older files have "optimizer_config" in place of "optimizer". */
#include "train/keras_file.h"

#include "base/memory.h"
#include "layers/config.h"
#include "stoker/losses.h"
#include "stoker/metrics.h"

#include <stdlib.h>
#include <string.h>

/* ---- reading ------------------------------------------------------------------------------------------------------ */

typedef struct text {
    char *data;
    size_t size;
    bool failed;
} text;

static void append(text *t, const char *more)
{
    size_t n = strlen(more);
    char *grown =
        t->failed ? NULL : stk_realloc(t->data, t->data ? t->size + 1 : 0, t->size + n + 1);
    if (!grown) {
        t->failed = true;
        return;
    }
    memcpy(grown + t->size, more, n + 1);
    t->data = grown;
    t->size += n;
}

/* A name, a function of Keras by name, or an object of it. */
static void append_item(text *t, const stk_json *v)
{
    const char *name = stk_json_text(v, NULL);
    const char *keras_class = stk_json_text(stk_json_get(v, "class_name"), "");
    if (!strcmp(keras_class, "function")) name = stk_json_text(stk_json_get(v, "config"), NULL);
    if (name || v->kind == STK_JSON_NULL) {
        append(t, name ? name : "");
        return;
    }
    stk_json_writer w = {.allow_nonfinite = true};
    char *json = NULL;
    size_t size = 0;
    stk_json_put_tree(&w, v);
    if (stk_json_finish(&w, &json, &size, NULL) == STK_OK)
        append(t, json);
    else
        t->failed = true;
    stk_free(json);
}

/* Is it a container of things, and no object of Keras? */
static bool is_dict(const stk_json *v)
{
    return v && v->kind == STK_JSON_OBJECT && !stk_json_get(v, "class_name");
}
static bool is_list(const stk_json *v) { return v && v->kind == STK_JSON_ARRAY; }

/* What belongs to output i of n. */
static const stk_json *of_output(const stk_json *v, const stk_model *m, int32_t i, int32_t n)
{
    if (is_dict(v)) return stk_json_get(v, stk_model_output(m, i).name);
    if (is_list(v) && (n > 1 || (v->count == 1 && is_list(&v->items[0]))))
        return stk_json_item(v, i);
    return i == 0 ? v : NULL;
}

/* "a,b;c": outputs split by semicolons, items by commas. */
static void append_outputs(text *t, const stk_json *v, const stk_model *m)
{
    int32_t n = stk_model_output_count(m);
    for (int32_t i = 0; i < n; i++) {
        const stk_json *mine = of_output(v, m, i, n);
        if (i) append(t, ";");
        for (int64_t k = 0; is_list(mine) && k < mine->count; k++) {
            if (k) append(t, ",");
            append_item(t, &mine->items[k]);
        }
        if (mine && !is_list(mine)) append_item(t, mine);
    }
}

static stk_status read_loss_weights(const stk_json *v, const stk_model *m, stk_compiled *out,
                                    stk_error *err)
{
    int32_t n = stk_model_output_count(m);
    if (!v || v->kind == STK_JSON_NULL) return STK_OK;
    out->loss_weights = stk_calloc((size_t)n + 1, sizeof *out->loss_weights);
    if (!out->loss_weights) return stk_fail_memory(err, "loss weights", (size_t)n * 8);
    for (int32_t i = 0; i < n; i++)
        out->loss_weights[i] = stk_json_double(
            is_dict(v) ? stk_json_get(v, stk_model_output(m, i).name) : stk_json_item(v, i), 1);
    return STK_OK;
}

static bool is_given(const stk_json *v)
{
    return v && v->kind != STK_JSON_NULL && !((is_list(v) || is_dict(v)) && !v->count);
}

stk_status stk_compiled_read(const stk_json *config, const stk_model *model, stk_compiled *out,
                             stk_error *err)
{
    const stk_json *optimizer = stk_json_get(config, "optimizer");
    const stk_json *loss = stk_json_get(config, "loss"), *metrics = stk_json_get(config, "metrics");
    const stk_json *weighted = stk_json_get(config, "weighted_metrics");
    text to[3] = {{0}};
    if (!optimizer) optimizer = stk_json_get(config, "optimizer_config");
    if (is_given(optimizer)) append_item(&to[0], optimizer);
    if (is_given(loss)) append_outputs(&to[1], loss, model);
    if (!is_given(metrics)) metrics = weighted;
    if (is_given(metrics)) append_outputs(&to[2], metrics, model);
    out->optimizer = to[0].data;
    out->loss = to[1].data;
    out->metrics = to[2].data;
    if (to[0].failed || to[1].failed || to[2].failed)
        return stk_fail_memory(err, "what a model was compiled with", to[0].size);
    return read_loss_weights(stk_json_get(config, "loss_weights"), model, out, err);
}

void stk_compiled_release(stk_compiled *c)
{
    stk_free(c->optimizer);
    stk_free(c->loss);
    stk_free(c->metrics);
    stk_free(c->loss_weights);
    *c = (stk_compiled){0};
}

/* ---- writing ------------------------------------------------------------------------------------------------------- */

static const char *loss_class(int32_t kind)
{
    static const char *const classes[] = {
#define STK_LOSS(NAME, name, keras_class, aliases, defaults, doc) keras_class,
#include "stoker/losses.def"
    };
    return classes[kind];
}
static const struct {
    const char *name, *keras_class;
} metrics[] = {
#define STK_METRIC(NAME, name, keras_class, aliases, defaults, doc) {#name, keras_class},
#include "stoker/metrics.def"
};

/* delta=2 -> "delta": 2.0 */
static void put_option(stk_json_writer *w, const char *option, size_t size)
{
    char name[64], value[128], *end = NULL;
    size_t n = strcspn(option, "=,");
    if (n >= size || n >= sizeof name || size - n - 1 >= sizeof value) return;
    memcpy(name, option, n);
    name[n] = 0;
    memcpy(value, option + n + 1, size - n - 1);
    value[size - n - 1] = 0;
    stk_json_name(w, name);
    double number = strtod(value, &end);
    if (!strcmp(value, "true") || !strcmp(value, "false"))
        stk_json_put_bool(w, value[0] == 't');
    else if (end && end != value && !*end && strcspn(value, ".eEnN") == strlen(value))
        stk_json_put_int(w, strtoll(value, NULL, 10));
    else if (end && end != value && !*end)
        stk_json_put_double(w, number);
    else
        stk_json_put_text(w, value);
}

/* What words are written for. Keras' reader of older files fails at names of functions ("mse"): there they are objects. */
typedef struct word_style {
    bool metric, legacy;
} word_style;

static stk_status put_json(stk_json_writer *w, const char *json, stk_error *err)
{
    stk_json_document *document = NULL;
    STK_TRY(stk_json_parse(json, strlen(json), NULL, &document, err));
    stk_json_put_tree(w, stk_json_root(document));
    stk_json_release(document);
    return STK_OK;
}

static void put_class(stk_json_writer *w, const char *module, const char *keras_class,
                      const char *name, const char *options)
{
    stk_class_begin(w, module, keras_class);
    if (name) {
        stk_json_name(w, "name");
        stk_json_put_text(w, name);
    }
    for (const char *at = options; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] != 0))
        put_option(w, at, strcspn(at, ","));
    stk_class_end(w, NULL);
    stk_json_end_object(w);
}

/* "mse" as it is; "huber:delta=2" as an object of Keras; objects as they are. */
static stk_status put_word(stk_json_writer *w, const char *word, word_style how, stk_error *err)
{
    const char *options = strchr(word, ':');
    stk_metric m = {0};
    if (*word == '{') return put_json(w, word, err);
    STK_TRY(how.metric ? stk_metric_parse(word, &m, err) : stk_loss_parse(word, &m.loss, err));
    bool loss = !how.metric || m.kind == STK_METRIC_MEAN_LOSS;
    if (how.metric && m.kind == STK_METRIC_ACCURACY)
        stk_json_put_text(w, "accuracy");
    else if (!options && !how.legacy) /* Keras knows other short names than we do, but for losses */
        stk_json_put_text(w, loss ? word : metrics[m.kind].name);
    else
        put_class(w, how.metric ? "keras.metrics" : "keras.losses",
                  loss ? loss_class((int32_t)m.loss.kind) : metrics[m.kind].keras_class,
                  how.metric ? m.name : NULL, options ? options + 1 : "");
    return STK_OK;
}

/* One output's list, or what stands alone. */
static stk_status put_words(stk_json_writer *w, const char *words, word_style how, stk_error *err)
{
    stk_trainer_words list = {0};
    stk_status status = stk_trainer_split(words, &list, err);
    bool outputs = list.outputs > 1;
    int64_t at = 0;
    if (status == STK_OK && !how.metric && list.count == 1 && !outputs) {
        status = put_word(w, list.items[0].text, how, err);
        stk_trainer_words_release(&list);
        return status;
    }
    stk_json_begin_array(w);
    for (int32_t o = 0; status == STK_OK && o < list.outputs; o++) {
        if (outputs && how.metric) stk_json_begin_array(w);
        for (; status == STK_OK && at < list.count && list.items[at].output == o; at++)
            status = put_word(w, list.items[at].text, how, err);
        if (outputs && how.metric) stk_json_end_array(w);
    }
    stk_json_end_array(w);
    stk_trainer_words_release(&list);
    return status;
}

static stk_status put_optimizer(const stk_trainer *t, bool legacy, stk_json_writer *w,
                                stk_error *err)
{
    char *json = NULL;
    STK_TRY(stk_optimizer_to_json(t->optimizer, &json, err));
    stk_json_name(w, legacy ? "optimizer_config" : "optimizer");
    stk_status status = put_json(w, json, err);
    stk_text_free(json);
    return status;
}

stk_status stk_compiled_write(const stk_trainer *t, bool legacy, stk_json_writer *w, stk_error *err)
{
    const stk_trainer_options *o = &t->made;
    bool has_loss = o->loss && *o->loss;
    stk_json_begin_object(w);
    if (has_loss) {
        STK_TRY(put_optimizer(t, legacy, w, err));
        stk_json_name(w, "loss");
        STK_TRY(put_words(w, o->loss, (word_style){false, legacy}, err));
        stk_json_name(w, "loss_weights");
        if (o->loss_weights) stk_json_begin_array(w);
        for (int32_t i = 0; o->loss_weights && i < t->ny; i++)
            stk_json_put_double(w, o->loss_weights[i]);
        if (o->loss_weights)
            stk_json_end_array(w);
        else
            stk_json_put_null(w);
        stk_json_name(w, "metrics");
        if (o->metrics && *o->metrics)
            STK_TRY(put_words(w, o->metrics, (word_style){true, legacy}, err));
        else
            stk_json_put_null(w);
        stk_json_name(w, "weighted_metrics");
        stk_json_put_null(w);
    }
    stk_json_end_object(w);
    return STK_OK;
}
