/* Readers of nodes whose functions make datasets: the function is a list of ops, read anew for each element.
 *
 *     {"op": "interleave", "cycle": 4, "ops": [{"op": "tfrecord", "files": {"element": 0}}]}
 *     {"op": "flat_map", "ops": [{"op": "batch", "size": 5}]}             behind a window with "nested"
 *     {"op": "group_by_window", "key": "len(tokens) // 10", "size": 32, "ops": [{"op": "padded_batch", "size": 32}]}
 *
 * The ops go on from the element (a dataset of it, or the datasets it consists of), unless the first of them begins by
 * itself: a source, {"op": "element", "part": ...}, or one with "inputs". {"element": part} stands for a scalar of it. */
#include "data/core/nested.h"
#include "data/json/pipeline.h"

#include <stdio.h>
#include <string.h>

typedef struct function {
    stk_json_document *ops;
    stk_schema *in, *out;
    char folder[1024], path[200], name[48];
    bool pure; /* what it gives hangs on the element alone, as far as was seen */
} function;

static void function_release(void *context)
{
    function *f = context;
    if (!f) return;
    stk_json_release(f->ops);
    stk_schema_release(f->in);
    stk_schema_release(f->out);
    stk_free(f);
}

/* The name is that of the ops: "tfrecord, batch". */
static void name_it(function *f)
{
    const stk_json *ops = stk_json_root(f->ops);
    size_t at = 0;
    for (int64_t i = 0; i < ops->count && at + 1 < sizeof f->name; i++)
        at += (size_t)snprintf(f->name + at, sizeof f->name - at, "%s%s", i ? ", " : "",
                               stk_json_text(stk_json_get(&ops->items[i], "op"), "?"));
}

/* A copy of the op's list of ops that outlives the file. */
static stk_status function_new(const stk_json *op, const stk_pipeline *p, const stk_schema *in,
                               function **out, stk_error *err)
{
    const stk_json *ops = stk_json_get(op, "ops");
    char *text = NULL;
    size_t size = 0;
    stk_json_writer w = {0};
    if (!ops || ops->kind != STK_JSON_ARRAY || ops->count < 1)
        return stk_fail(err, STK_ERR_FORMAT, "it needs \"ops\", a list of one op or more");
    function *f = *out = stk_calloc(1, sizeof *f);
    if (!f) return stk_fail_memory(err, "pipeline", sizeof *f);
    f->pure = true;
    f->in = stk_schema_retain(in);
    snprintf(f->folder, sizeof f->folder, "%s", p->folder);
    memcpy(f->path, p->path, sizeof f->path);
    stk_json_put_tree(&w, ops);
    STK_TRY(stk_json_finish(&w, &text, &size, err));
    stk_status status = stk_json_parse(text, size, NULL, &f->ops, err);
    stk_free(text);
    if (status == STK_OK) name_it(f);
    return status;
}

/* The dataset for an element; parts NULL: only its schema is wanted. */
static stk_dataset *build(const function *f, int depth, stk_tensor *const *parts, stk_error *err)
{
    stk_pipeline p = {.folder = f->folder, .depth = depth, .schema = f->in, .parts = parts};
    memcpy(p.path, f->path, sizeof p.path);
    const stk_json *ops = stk_json_root(f->ops);
    stk_dataset *start = NULL;
    if (!stk_pipeline_begins(ops) && !(start = stk_element_dataset(f->in, parts, err))) return NULL;
    return stk_pipeline_read(ops, &p, "", start, err);
}

static stk_dataset *call_flat(void *context, const stk_map_info *info, stk_tensor *const *in,
                              stk_error *err)
{
    (void)info;
    return build(context, 0, in, err);
}

static stk_dataset *call_group(void *context, int64_t key, stk_dataset *window, stk_error *err)
{
    (void)key;
    const function *f = context;
    stk_pipeline p = {.folder = f->folder};
    memcpy(p.path, f->path, sizeof p.path);
    return stk_pipeline_read(stk_json_root(f->ops), &p, "", window, err);
}

/* ---- what it will give ------------------------------------------------------------------------------------ */
static bool asks_element(const stk_json *value)
{
    if (stk_pipeline_asks(value)) return true;
    bool list = value->kind == STK_JSON_OBJECT || value->kind == STK_JSON_ARRAY;
    for (int64_t i = 0; list && i < value->count; i++)
        if (asks_element(&value->items[i])) return true;
    return false;
}

/* Is what the elements say only which files and how many? Then the ops do the same for elements that were not tried. */
static bool asks_plainly(const stk_json *value, const stk_schema *in)
{
    static const char *const files[] = {"file", "files", "path", "pattern"};
    bool list = value->kind == STK_JSON_OBJECT || value->kind == STK_JSON_ARRAY, plain = true;
    for (int64_t i = 0; list && plain && i < value->count; i++) {
        const stk_json *item = &value->items[i];
        int32_t part = 0;
        bool file = false;
        for (int k = 0; k < 4 && item->name; k++) file |= !strcmp(item->name, files[k]);
        if (file) continue;
        if (!stk_pipeline_asks(item))
            plain = asks_plainly(item, in);
        else if (stk_pipeline_part(&item->items[0], in, &part, NULL) != STK_OK)
            plain = false;
        else
            plain = in->fields[part].dtype != STK_STRING && in->fields[part].dtype != STK_BOOL;
    }
    return plain;
}

/* Adds the schema of the dataset for one element to f->out. */
static stk_status learn_one(function *f, int depth, stk_tensor *const *parts, stk_error *err)
{
    stk_error error = {.code = STK_OK};
    stk_dataset *ds = build(f, depth, parts, &error);
    if (!ds && err) *err = error;
    if (!ds) return error.code != STK_OK ? error.code : STK_ERR_STATE;
    stk_schema *common = NULL;
    f->pure = f->pure && stk_dataset_is_steady(ds);
    stk_status status =
        f->out ? stk_schema_common("ops", f->out, ds->schema, &common, err) : STK_OK;
    if (status == STK_OK && !f->out) common = stk_schema_retain(ds->schema);
    if (status == STK_OK) {
        stk_schema_release(f->out);
        f->out = common;
    }
    stk_dataset_release(ds);
    return status;
}

/* Without questions to the element its schema is enough. */
static stk_status learn_from_schema(function *f, int depth, stk_error *err)
{
    stk_schema **leaves = NULL;
    int32_t n = f->in->n;
    bool nested = false;
    for (int32_t i = 0; i < n; i++) nested |= f->in->fields[i].dataset;
    if (!nested) return learn_one(f, depth, NULL, err);
    stk_tensor **parts = stk_parts_new(n);
    if (!parts) return stk_fail_memory(err, "pipeline", 64);
    stk_status status = stk_leaves_new(f->in, &leaves, err);
    if (status == STK_OK) status = stk_nested_new(n, leaves, -1, NULL, parts, err);
    if (status == STK_OK) status = learn_one(f, depth, parts, err);
    stk_elements_free(n, parts);
    stk_leaves_release(n, leaves);
    return status;
}

/* Otherwise the first two elements are tried. */
static stk_status learn_from_elements(function *f, int depth, stk_dataset *in, stk_error *err)
{
    stk_stream_options o = stk_stream_options_defaults();
    stk_stream *s = NULL;
    bool end = false;
    o.threads = 1;
    stk_tensor **parts = stk_parts_new(f->in->n);
    if (!parts) return stk_fail_memory(err, "pipeline", 64);
    stk_status status = stk_dataset_stream(in, &o, &s, err);
    for (int i = 0; i < 2 && status == STK_OK && !end; i++) {
        status = stk_stream_next(s, parts, &end, err);
        if (status == STK_OK && !end) status = learn_one(f, depth, parts, err);
        stk_parts_release(f->in->n, parts);
    }
    if (status == STK_OK && !f->out)
        status = stk_fail(err, STK_ERR_STATE,
                          "nothing comes before it, so what its ops give cannot be known");
    stk_stream_release(s);
    stk_free(parts);
    return status;
}

static stk_status read_function(const stk_json *op, stk_pipeline *p, stk_dataset *in, function **f,
                                stk_error *err)
{
    STK_TRY(function_new(op, p, in->schema, f, err));
    stk_status status = asks_element(stk_json_root((*f)->ops))
                            ? learn_from_elements(*f, p->depth, in, err)
                            : learn_from_schema(*f, p->depth, err);
    (*f)->pure = (*f)->pure && asks_plainly(stk_json_root((*f)->ops), (*f)->in);
    if (status != STK_OK) p->told = strncmp(err->message, "pipeline: ", 10) == 0;
    return status;
}

/* ---- nodes ------------------------------------------------------------------------------------------------ */
static stk_dataset *give_up(stk_dataset *in, function *f)
{
    function_release(f);
    stk_dataset_release(in);
    return NULL;
}

static stk_flat_fn flat_function(function *f)
{
    uint32_t flags = f->pure ? STK_MAP_PURE : 0;
    return (stk_flat_fn){f->name, f, call_flat, f->out, function_release, flags};
}

stk_dataset *stk_read_flat_map(stk_dataset *in, const stk_json *op, stk_pipeline *p, stk_error *err)
{
    function *f = NULL;
    if (!stk_options_good(in, op, STK_OPTIONS(STK_OTHER("ops")), err)) return NULL;
    if (read_function(op, p, in, &f, err) != STK_OK) return give_up(in, f);
    stk_flat_fn fn = flat_function(f);
    return stk_data_flat_map(in, &fn, err);
}

stk_dataset *stk_read_interleave(stk_dataset *in, const stk_json *op, stk_pipeline *p,
                                 stk_error *err)
{
    stk_interleave_options o = stk_interleave_options_defaults();
    int64_t parallel = o.parallel;
    function *f = NULL;
    if (!stk_options_good(in, op,
                          STK_OPTIONS(STK_OTHER("ops"), STK_INT("cycle", &o.cycle, 1, 4096),
                                      STK_INT("block", &o.block, 1, INT32_MAX),
                                      STK_INT("parallel", &parallel, -1, 1024)),
                          err))
        return NULL;
    if (read_function(op, p, in, &f, err) != STK_OK) return give_up(in, f);
    o.parallel = (int32_t)parallel;
    stk_flat_fn fn = flat_function(f);
    return stk_data_interleave(in, &fn, &o, err);
}

stk_dataset *stk_read_group_by_window(stk_dataset *in, const stk_json *op, stk_pipeline *p,
                                      stk_error *err)
{
    int64_t size = 0;
    function *f = NULL;
    stk_map_fn key;
    if (!stk_options_good(
            in, op,
            STK_OPTIONS(STK_OTHER("key"), STK_OTHER("ops"), STK_INT("size", &size, 1, INT32_MAX)),
            err))
        return NULL;
    stk_status status = stk_schema_tensors("group_by_window", in->schema, err);
    if (status == STK_OK) status = function_new(op, p, in->schema, &f, err);
    if (status == STK_OK) status = learn_from_schema(f, p->depth, err);
    if (status == STK_OK) status = stk_read_key(op, "key", in->schema, &key, err);
    if (status != STK_OK) return give_up(in, f);
    uint32_t flags = f->pure ? STK_MAP_PURE : 0;
    stk_group_fn fn = {f->name, f, call_group, f->out, function_release, flags};
    return stk_data_group_by_window(in, &key, &fn, size, err);
}

stk_dataset *stk_read_element(stk_dataset *in, const stk_json *op, stk_pipeline *p, stk_error *err)
{
    const stk_json *which = stk_json_get(op, "part");
    int32_t part = 0;
    if (!stk_options_good(in, op, STK_OPTIONS(STK_OTHER("part")), err)) return NULL;
    if (!p->schema) {
        (void)stk_fail(err, STK_ERR_FORMAT,
                       "it is there in the ops of flat_map and interleave only");
        return NULL;
    }
    if (!which) return stk_element_dataset(p->schema, p->parts, err);
    if (stk_pipeline_part(which, p->schema, &part, err) != STK_OK) return NULL;
    stk_schema one = {1, &p->schema->fields[part], "0"}, *alone = NULL;
    if (stk_schema_new(1, one.fields, NULL, &alone, err) != STK_OK) return NULL;
    stk_dataset *ds = stk_element_dataset(alone, p->parts ? &p->parts[part] : NULL, err);
    stk_schema_release(alone);
    return ds;
}
