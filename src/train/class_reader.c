/* Losses and metrics from text and from Keras' JSON: one reader over their tables. */
#include "train/losses.h"

#include <stdio.h>
#include <string.h>

/* Members of Keras' configs that change nothing here. */
static bool is_silent(const char *name)
{
    static const char *const silent[] = {"name", "dtype", "fn", "label_weights", "num_labels"};
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        if (!strcmp(name, silent[i])) return true;
    return false;
}

static stk_options options_of(const stk_class_reader *r, int32_t kind, char takes[512],
                              char what[96])
{
    snprintf(takes, 512, "%s", r->always);
    stk_options_names(r->defaults(kind), takes, 512);
    snprintf(what, 96, "%s %s", r->names->what, r->names->name(kind, 0));
    return (stk_options){r->rows, r->count, takes, what};
}

void stk_class_defaults(const stk_class_reader *r, int32_t kind, void *out)
{
    char takes[512], what[96];
    r->start(kind, out);
    stk_options o = options_of(r, kind, takes, what);
    (void)!stk_options_text(&o, r->defaults(kind), out, NULL); /* a test reads all rows */
}

static stk_status read_config(const stk_class_reader *r, const stk_options *o,
                              const stk_json *config, void *out, stk_error *err)
{
    const char *name = stk_json_text(stk_json_get(config, "name"), NULL);
    if (name && r->name_size > strlen(name)) strcpy((char *)out + r->name, name);
    for (int64_t i = 0; config && i < config->count; i++) {
        const stk_json *item = &config->items[i];
        bool last_axis = !strcmp(item->name, "axis") && stk_json_int(item, 0) == -1;
        if (is_silent(item->name) || last_axis) continue;
        if (!strcmp(item->name, "axis"))
            return stk_fail(err, STK_ERR_UNSUPPORTED,
                            "%s: only axis -1, the last one, is supported", o->what);
        STK_TRY(stk_options_json(o, item, out, err));
    }
    return STK_OK;
}

static stk_status read_json(const stk_class_reader *r, const stk_json *json, void *out,
                            stk_error *err)
{
    const char *name = stk_json_text(stk_json_get(json, "class_name"), NULL);
    const stk_json *config = stk_json_get(json, "config");
    char takes[512], what[96];
    if (!name) {
        return stk_fail(err, STK_ERR_FORMAT,
                        "%s: expected a JSON object with class_name and config", r->names->what);
    }
    /* Keras writes a plain function as {"class_name": "function", "config": "mse"}. */
    if (!strcmp(name, "function")) name = stk_json_text(config, name);
    int32_t kind = stk_names_find(r->names, name, strlen(name), err);
    if (kind < 0) return STK_ERR_ARGUMENT;
    stk_class_defaults(r, kind, out);
    stk_options o = options_of(r, kind, takes, what);
    return config && config->kind == STK_JSON_OBJECT ? read_config(r, &o, config, out, err)
                                                     : STK_OK;
}

stk_status stk_class_parse(const stk_class_reader *r, const char *text, void *out, stk_error *err)
{
    char takes[512], what[96];
    while (*text == ' ') text++;
    if (*text == '{') {
        stk_json_document *document = NULL;
        STK_TRY(stk_json_parse(text, strlen(text), NULL, &document, err));
        stk_status status = read_json(r, stk_json_root(document), out, err);
        stk_json_release(document);
        return status;
    }
    size_t size = strcspn(text, ":");
    int32_t kind = stk_names_find(r->names, text, size, err);
    if (kind < 0) return STK_ERR_ARGUMENT;
    stk_class_defaults(r, kind, out);
    stk_options o = options_of(r, kind, takes, what);
    return text[size] ? stk_options_text(&o, text + size + 1, out, err) : STK_OK;
}
