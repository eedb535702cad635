/* Pipeline files: the list of ops read one after the other, each by its own reader. */
#include "data/pipeline.h"

#include "base/file.h"

#include <stdio.h>
#include <string.h>

enum { MOST_DEPTH = 16 };

static const struct {
    const char *name;
    stk_node_reader *read;
} node_rows[] = {
#define STK_PIPELINE_NODE(name, reader) {name, reader},
#include "data/pipeline.def"
};

static const struct {
    const char *name;
    stk_map_reader *read;
} map_rows[] = {
#define STK_PIPELINE_MAP(name, reader) {name, reader},
#include "data/pipeline.def"
};

enum {
    NODES = sizeof node_rows / sizeof node_rows[0],
    MAPS = sizeof map_rows / sizeof map_rows[0]
};

/* ---- options --------------------------------------------------------------------------------------- */
static const char *op_name(const stk_json *op)
{
    return stk_json_text(stk_json_get(op, "op"), "?");
}

static stk_status wrong_type(const stk_json *op, const char *name, const stk_json *value,
                             const char *wanted, stk_error *err)
{
    return stk_fail(err, STK_ERR_FORMAT, "pipeline: op \"%.40s\": \"%s\" is a %s, it takes %s",
                    op_name(op), name, stk_json_kind_name(value->kind), wanted);
}

stk_status stk_option_int(const stk_json *op, const char *name, int64_t low, int64_t high,
                          int64_t *value, stk_error *err)
{
    const stk_json *v = stk_json_get(op, name);
    if (!v) return STK_OK;
    if (v->kind != STK_JSON_INT) return wrong_type(op, name, v, "a whole number", err);
    if (v->integer < low || v->integer > high)
        return stk_fail(err, STK_ERR_RANGE,
                        "pipeline: op \"%.40s\": \"%s\" is %lld, it takes %lld..%lld", op_name(op),
                        name, (long long)v->integer, (long long)low, (long long)high);
    *value = v->integer;
    return STK_OK;
}

stk_status stk_option_double(const stk_json *op, const char *name, double *value, stk_error *err)
{
    const stk_json *v = stk_json_get(op, name);
    if (!v) return STK_OK;
    if (v->kind != STK_JSON_INT && v->kind != STK_JSON_DOUBLE)
        return wrong_type(op, name, v, "a number", err);
    *value = v->number;
    return STK_OK;
}

stk_status stk_option_bool(const stk_json *op, const char *name, bool *value, stk_error *err)
{
    const stk_json *v = stk_json_get(op, name);
    if (!v) return STK_OK;
    if (v->kind != STK_JSON_BOOL) return wrong_type(op, name, v, "true or false", err);
    *value = v->truth;
    return STK_OK;
}

stk_status stk_option_text(const stk_json *op, const char *name, const char **value, stk_error *err)
{
    const stk_json *v = stk_json_get(op, name);
    if (!v) return STK_OK;
    if (v->kind != STK_JSON_STRING || strlen(v->text) != (size_t)v->count)
        return wrong_type(op, name, v, "a text", err);
    *value = v->text;
    return STK_OK;
}

stk_status stk_options_known(const stk_json *op, const char *const *names, stk_error *err)
{
    for (int64_t i = 0; i < op->count; i++) {
        const char *name = op->items[i].name;
        bool known = strcmp(name, "op") == 0;
        for (int k = 0; names[k] && !known; k++) known = strcmp(name, names[k]) == 0;
        if (known) continue;
        char list[256] = "";
        for (int k = 0; names[k]; k++)
            snprintf(list + strlen(list), sizeof list - strlen(list), " %s", names[k]);
        return stk_fail(err, STK_ERR_FORMAT,
                        "pipeline: op \"%.40s\" has no option \"%.40s\"; it knows%s", op_name(op),
                        name, list[0] ? list : " none");
    }
    return STK_OK;
}

stk_status stk_option_input(const stk_json *op, const stk_dataset *in, bool wanted, stk_error *err)
{
    if (!in == !wanted) return STK_OK;
    return stk_fail(err, STK_ERR_FORMAT,
                    wanted ? "pipeline: op \"%.40s\" needs something before it; begin with a source"
                           : "pipeline: op \"%.40s\" is a source; it can only come first",
                    op_name(op));
}

/* ---- ops ----------------------------------------------------------------------------------------------- */
static stk_dataset *read_map(stk_map_reader *read, stk_dataset *in, const stk_json *op,
                             const char *folder, stk_error *err)
{
    stk_map_options o = stk_map_options_defaults();
    stk_map_fn fn = {0};
    int64_t parallel = o.parallel, seed = 0;
    stk_status status = stk_option_input(op, in, true, err);
    if (status == STK_OK) status = stk_option_int(op, "parallel", -1, 1024, &parallel, err);
    if (status == STK_OK) status = stk_option_int(op, "seed", 0, INT64_MAX, &seed, err);
    if (status == STK_OK) status = stk_option_bool(op, "unordered", &o.unordered, err);
    if (status == STK_OK) status = read(op, folder, &fn, err);
    if (status != STK_OK) {
        stk_dataset_release(in);
        return NULL;
    }
    o.parallel = (int32_t)parallel;
    o.seed = (uint64_t)seed;
    return stk_data_map(in, &fn, &o, err);
}

static stk_dataset *read_op(stk_dataset *in, const stk_json *op, const char *folder, stk_error *err)
{
    const char *name = stk_json_text(stk_json_get(op, "op"), NULL);
    for (int i = 0; name && i < NODES; i++)
        if (strcmp(node_rows[i].name, name) == 0) return node_rows[i].read(in, op, folder, err);
    for (int i = 0; name && i < MAPS; i++)
        if (strcmp(map_rows[i].name, name) == 0)
            return read_map(map_rows[i].read, in, op, folder, err);
    char list[STK_ERROR_TEXT / 2] = "";
    for (int i = 0; i < NODES; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), " %s", node_rows[i].name);
    for (int i = 0; i < MAPS; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), " %s", map_rows[i].name);
    (void)stk_fail(err, STK_ERR_FORMAT, "pipeline: %s \"%.40s\"; there are%s",
                   name ? "there is no op" : "an op is an object with a text named \"op\", not",
                   name ? name : stk_json_kind_name(op->kind), list);
    stk_dataset_release(in);
    return NULL;
}

stk_dataset *stk_pipeline_read(const stk_json *pipeline, const char *folder, int depth,
                               stk_error *err)
{
    const stk_json *ops =
        pipeline->kind == STK_JSON_OBJECT ? stk_json_get(pipeline, "ops") : pipeline;
    if (!ops || ops->kind != STK_JSON_ARRAY || ops->count == 0 || depth > MOST_DEPTH) {
        (void)stk_fail(err, STK_ERR_FORMAT,
                       "pipeline: expected {\"ops\": [...]} with one op or more%s",
                       depth > MOST_DEPTH ? ", nested less deeply" : "");
        return NULL;
    }
    stk_dataset *ds = NULL;
    for (int64_t i = 0; i < ops->count; i++) {
        ds = read_op(ds, &ops->items[i], folder, err);
        if (!ds) return NULL;
    }
    return ds;
}

stk_dataset *stk_data_pipeline(const char *json, size_t size, const char *folder, stk_error *err)
{
    stk_json_document *document = NULL;
    if (stk_json_parse(json, size, NULL, &document, err) != STK_OK) return NULL;
    stk_dataset *ds = stk_pipeline_read(stk_json_root(document), folder ? folder : "", 0, err);
    stk_json_release(document);
    return ds;
}

stk_dataset *stk_data_pipeline_file(const char *path, stk_error *err)
{
    enum { MOST_BYTES = 16 << 20 };
    char *text = NULL, folder[1024] = "";
    size_t size = 0;
    if (stk_file_read(path, MOST_BYTES, &text, &size, err) != STK_OK) return NULL;
    const char *slash = strrchr(path, '/');
    if (slash) snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    stk_dataset *ds = stk_data_pipeline(text, size, folder, err);
    stk_free(text);
    return ds;
}
