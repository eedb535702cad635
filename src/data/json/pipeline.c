/* Pipeline files: the list of ops read one after the other, each by its own reader; messages that say where. */
#include "data/json/pipeline.h"

#include "base/dtype.h"
#include "base/file.h"
#include "base/spelling.h"

#include <stdio.h>
#include <string.h>

enum { MOST_DEPTH = 16 };

typedef enum form { SOURCE, NODE, JOIN, PLAIN, NUMBER, SIZED, MAP } form;

static const struct row {
    const char *name;
    form form;
    stk_node_reader *read;
    stk_map_reader *read_map;
    stk_dataset *(*plain)(stk_dataset *, stk_error *);
    stk_dataset *(*sized)(stk_dataset *, int64_t, bool, stk_error *);
    stk_dataset *(*number)(stk_dataset *, int64_t, stk_error *);
    const char *option; /* of number */
    int64_t otherwise;
} rows[] = {
#define STK_PIPELINE_SOURCE(title, reader) {.name = title, .form = SOURCE, .read = reader},
#define STK_PIPELINE_NODE(title, reader)   {.name = title, .form = NODE, .read = reader},
#define STK_PIPELINE_JOIN(title, reader)   {.name = title, .form = JOIN, .read = reader},
#define STK_PIPELINE_PLAIN(title, make)    {.name = title, .form = PLAIN, .plain = make},
#define STK_PIPELINE_SIZED(title, make)    {.name = title, .form = SIZED, .sized = make},
#define STK_PIPELINE_MAP(title, reader)    {.name = title, .form = MAP, .read_map = reader},
#define STK_PIPELINE_NUMBER(title, what, value, make)                                              \
    {.name = title, .form = NUMBER, .number = make, .option = what, .otherwise = value},
#include "data/json/pipeline.def"
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static const struct row *find_row(const stk_json *op)
{
    const char *name = stk_json_text(stk_json_get(op, "op"), NULL);
    for (int i = 0; name && i < ROWS; i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    return NULL;
}

/* ---- options --------------------------------------------------------------------------------------- */
static stk_status wrong_type(const char *name, const stk_json *value, const char *wanted,
                             stk_error *err)
{
    return stk_fail(err, STK_ERR_FORMAT, "\"%s\" is a %s, it takes %s", name,
                    stk_json_kind_name(value->kind), wanted);
}

stk_status stk_option_int(const stk_json *op, const char *name, int64_t low, int64_t high,
                          int64_t *value, stk_error *err)
{
    const stk_json *v = stk_json_get(op, name);
    if (!v) return STK_OK;
    if (v->kind != STK_JSON_INT) return wrong_type(name, v, "a whole number", err);
    if (v->integer < low || v->integer > high)
        return stk_fail(err, STK_ERR_FORMAT, "\"%s\" is %lld, it takes %lld..%lld", name,
                        (long long)v->integer, (long long)low, (long long)high);
    *value = v->integer;
    return STK_OK;
}

stk_status stk_option_double(const stk_json *op, const char *name, double *value, stk_error *err)
{
    const stk_json *v = stk_json_get(op, name);
    if (!v) return STK_OK;
    if (v->kind != STK_JSON_INT && v->kind != STK_JSON_DOUBLE)
        return wrong_type(name, v, "a number", err);
    *value = v->number;
    return STK_OK;
}

stk_status stk_option_bool(const stk_json *op, const char *name, bool *value, stk_error *err)
{
    const stk_json *v = stk_json_get(op, name);
    if (!v) return STK_OK;
    if (v->kind != STK_JSON_BOOL) return wrong_type(name, v, "true or false", err);
    *value = v->truth;
    return STK_OK;
}

stk_status stk_option_text(const stk_json *op, const char *name, const char **value, stk_error *err)
{
    const stk_json *v = stk_json_get(op, name);
    if (!v) return STK_OK;
    if (v->kind != STK_JSON_STRING || strlen(v->text) != (size_t)v->count)
        return wrong_type(name, v, "a text", err);
    *value = v->text;
    return STK_OK;
}

static stk_status unknown_option(const char *name, const stk_pipeline_option *list, stk_error *err)
{
    enum { MOST = 64 };
    const char *names[MOST] = {NULL};
    char text[256] = "", near[128];
    int32_t n = 0;
    for (; n < MOST && list[n].name; n++) {
        names[n] = list[n].name;
        snprintf(text + strlen(text), sizeof text - strlen(text), " %s", names[n]);
    }
    stk_did_you_mean(name, names, n, near, sizeof near);
    return stk_fail(err, STK_ERR_FORMAT, "it has no option \"%.40s\"; it knows%s%s%s", name,
                    n ? text : " none", *near ? "." : "", near);
}

static stk_status options_list(const stk_json *op, const stk_pipeline_option *list, stk_error *err)
{
    for (int64_t i = 0; i < op->count; i++) {
        const char *name = op->items[i].name;
        bool known = strcmp(name, "op") == 0;
        for (int k = 0; list[k].name && !known; k++) known = strcmp(name, list[k].name) == 0;
        if (!known) return unknown_option(name, list, err);
    }
    for (const stk_pipeline_option *o = list; o->name; o++) {
        if (o->kind == STK_PIPELINE_INT)
            STK_TRY(stk_option_int(op, o->name, o->low, o->high, o->value, err));
        else if (o->kind == STK_PIPELINE_BOOL)
            STK_TRY(stk_option_bool(op, o->name, o->value, err));
        else if (o->kind == STK_PIPELINE_TEXT)
            STK_TRY(stk_option_text(op, o->name, o->value, err));
    }
    return STK_OK;
}

stk_status stk_options_known(const stk_json *op, const char *const *names, stk_error *err)
{
    stk_pipeline_option list[32] = {{0}};
    for (int k = 0; k < 31 && names[k]; k++) list[k] = (stk_pipeline_option)STK_OTHER(names[k]);
    return options_list(op, list, err);
}

bool stk_options_good(stk_dataset *in, const stk_json *op, const stk_pipeline_option *list,
                      stk_error *err)
{
    if (options_list(op, list, err) == STK_OK) return true;
    stk_dataset_release(in);
    return false;
}

stk_status stk_options_map(const stk_json *op, stk_map_options *o, stk_error *err)
{
    int64_t parallel = o->parallel, seed = 0;
    STK_TRY(stk_option_int(op, "parallel", -1, 1024, &parallel, err));
    STK_TRY(stk_option_int(op, "seed", 0, INT64_MAX, &seed, err));
    STK_TRY(stk_option_bool(op, "unordered", &o->unordered, err));
    o->parallel = (int32_t)parallel;
    o->seed = (uint64_t)seed;
    return STK_OK;
}

/* `whole`: all of them must be; doubles then hold them as far as int64 goes into `wholes`. */
static stk_status read_list(const stk_json *op, const char *name, int32_t *n, double **values,
                            int64_t **wholes, stk_error *err)
{
    enum { MOST = 1 << 16 };
    const stk_json *list = stk_json_get(op, name);
    *n = 0;
    if (!list) return STK_OK;
    bool good = list->kind == STK_JSON_ARRAY && list->count <= MOST;
    for (int64_t i = 0; good && i < list->count; i++) {
        stk_json_kind kind = list->items[i].kind;
        good = kind == STK_JSON_INT || (kind == STK_JSON_DOUBLE && values);
    }
    if (!good)
        return wrong_type(name, list, values ? "a list of numbers" : "a list of whole numbers",
                          err);
    size_t size = (size_t)list->count + 1;
    if (values && !(*values = stk_calloc(size, sizeof **values)))
        return stk_fail_memory(err, "pipeline", size * sizeof **values);
    if (wholes && !(*wholes = stk_calloc(size, sizeof **wholes)))
        return stk_fail_memory(err, "pipeline", size * sizeof **wholes);
    for (int64_t i = 0; i < list->count; i++) {
        if (values) (*values)[i] = list->items[i].number;
        if (wholes) (*wholes)[i] = list->items[i].integer;
    }
    *n = (int32_t)list->count;
    return STK_OK;
}

stk_status stk_option_numbers(const stk_json *op, const char *name, int32_t *n, double **values,
                              stk_error *err)
{
    *values = NULL;
    return read_list(op, name, n, values, NULL, err);
}

stk_status stk_option_wholes(const stk_json *op, const char *name, int32_t *n, int64_t **values,
                             stk_error *err)
{
    *values = NULL;
    return read_list(op, name, n, NULL, values, err);
}

/* ---- one op -------------------------------------------------------------------------------------------- */
static stk_dataset *read_map(stk_map_reader *read, stk_dataset *in, const stk_json *op,
                             const char *folder, stk_error *err)
{
    stk_map_options o = stk_map_options_defaults();
    stk_map_fn fn = {0};
    stk_status status = stk_options_map(op, &o, err);
    if (status == STK_OK) status = read(op, folder, &fn, err);
    if (status == STK_OK) return stk_data_map(in, &fn, &o, err);
    stk_dataset_release(in);
    return NULL;
}

static stk_dataset *read_sized(const struct row *row, stk_dataset *in, const stk_json *op,
                               stk_error *err)
{
    int64_t size = 0;
    bool drop = false;
    const stk_pipeline_option *options =
        STK_OPTIONS(STK_INT("size", &size, 1, INT32_MAX), STK_BOOLEAN("drop_remainder", &drop));
    if (!stk_options_good(in, op, options, err)) return NULL;
    if (size) return row->sized(in, size, drop, err);
    (void)stk_fail(err, STK_ERR_FORMAT, "it needs \"size\", a whole number");
    stk_dataset_release(in);
    return NULL;
}

static stk_dataset *read_row(const struct row *row, stk_dataset *in, const stk_json *op,
                             stk_pipeline *p, stk_error *err)
{
    int64_t number = row->otherwise;
    switch (row->form) {
    case MAP: return read_map(row->read_map, in, op, p->folder, err);
    case PLAIN:
        return stk_options_good(in, op, &(stk_pipeline_option){0}, err) ? row->plain(in, err)
                                                                        : NULL;
    case NUMBER:
        return stk_options_good(in, op,
                                STK_OPTIONS(STK_INT(row->option, &number, -1, INT64_MAX / 4)), err)
                   ? row->number(in, number, err)
                   : NULL;
    case SIZED: return read_sized(row, in, op, err);
    default: return row->read(in, op, p, err);
    }
}

static stk_status no_such_op(const stk_json *op, stk_error *err)
{
    const char *name = stk_json_text(stk_json_get(op, "op"), NULL), *names[ROWS];
    if (!name)
        return stk_fail(err, STK_ERR_FORMAT,
                        op->kind == STK_JSON_OBJECT
                            ? "the object has no text named \"op\", as in {\"op\": \"shuffle\"}"
                            : "an op is an object like {\"op\": \"shuffle\"}, this is a %s",
                        stk_json_kind_name(op->kind));
    char list[STK_ERROR_TEXT * 3 / 4] = "", near[128];
    for (int i = 0; i < ROWS; i++) {
        names[i] = rows[i].name;
        snprintf(list + strlen(list), sizeof list - strlen(list), " %s", names[i]);
    }
    stk_did_you_mean(name, names, ROWS, near, sizeof near);
    return *near
               ? stk_fail(err, STK_ERR_FORMAT, "there is no op \"%.40s\".%s", name, near)
               : stk_fail(err, STK_ERR_FORMAT, "there is no op \"%.40s\"; there are%s", name, list);
}

/* ---- {"element": part}: what the element of the function says ---------------------------------------- */
bool stk_pipeline_asks(const stk_json *value)
{
    return value->kind == STK_JSON_OBJECT && value->count == 1 &&
           strcmp(value->items[0].name, "element") == 0;
}

static stk_status element_value(const stk_json *which, const stk_pipeline *p, stk_arena *arena,
                                stk_json *to, stk_error *err)
{
    int32_t part = -1;
    if (!p->schema || !p->parts)
        return stk_fail(err, STK_ERR_FORMAT,
                        "{\"element\": ...} is there in the ops of flat_map and interleave only");
    STK_TRY(stk_pipeline_part(which, p->schema, &part, err));
    const stk_tensor *t = p->parts[part];
    if (stk_tensor_dataset(t) || t->rank != 0)
        return stk_fail(err, STK_ERR_SHAPE, "part %d of the element is no scalar", (int)part);
    const char *name = to->name;
    int64_t name_size = to->name_size;
    *to = (stk_json){.name = name, .name_size = name_size};
    char kind = stk_dtype_kind(t->dtype);
    if (t->dtype == STK_STRING) {
        const stk_string *s = t->data;
        char *text = stk_arena_alloc(arena, (size_t)s->size + 1);
        if (!text) return stk_fail_memory(err, "pipeline", (size_t)s->size);
        memcpy(text, s->data, (size_t)s->size);
        to->kind = STK_JSON_STRING;
        to->text = text;
        to->count = s->size;
        return STK_OK;
    }
    to->kind = kind == 'F' ? STK_JSON_DOUBLE : kind == 'B' ? STK_JSON_BOOL : STK_JSON_INT;
    to->number = stk_load_f64(t->dtype, t->data);
    to->truth = to->number != 0;
    if (kind != 'F') to->integer = stk_load_i64(t->dtype, t->data);
    return STK_OK;
}

/* A copy of the op with what it asks of the element filled in; op itself when it asks nothing. */
static stk_status fill_in(const stk_json *op, const stk_pipeline *p, stk_arena *arena,
                          stk_json *copy, bool *any, stk_error *err)
{
    *copy = *op;
    *any = false;
    for (int64_t i = 0; i < op->count; i++) *any |= stk_pipeline_asks(&op->items[i]);
    if (!*any) return STK_OK;
    stk_json *items = stk_arena_copy(arena, op->items, (size_t)op->count * sizeof *items);
    if (!items) return stk_fail_memory(err, "pipeline", (size_t)op->count * sizeof *items);
    copy->items = items;
    for (int64_t i = 0; i < op->count; i++)
        if (stk_pipeline_asks(&items[i]))
            STK_TRY(element_value(&op->items[i].items[0], p, arena, &items[i], err));
    return STK_OK;
}

stk_status stk_pipeline_part(const stk_json *which, const stk_schema *schema, int32_t *part,
                             stk_error *err)
{
    *part = which->kind == STK_JSON_INT && which->integer >= 0 && which->integer < schema->n
                ? (int32_t)which->integer
                : -1;
    for (int32_t i = 0; which->kind == STK_JSON_STRING && i < schema->n; i++)
        if (schema->fields[i].name && strcmp(schema->fields[i].name, which->text) == 0) *part = i;
    if (*part >= 0) return STK_OK;
    char text[200];
    return stk_fail(err, STK_ERR_FORMAT,
                    "the element has no such part; it is %s: give a name or a number of 0..%d",
                    stk_schema_describe(schema, text, sizeof text), (int)schema->n - 1);
}

/* ---- lists of ops ---------------------------------------------------------------------------------------- */
static stk_dataset *read_op(stk_dataset *in, const stk_json *op, stk_pipeline *p, stk_error *err)
{
    const struct row *row = find_row(op);
    stk_arena arena = {0};
    stk_json filled;
    stk_status status = STK_OK;
    if (!row)
        status = no_such_op(op, err);
    else if (!in && row->form != SOURCE && row->form != JOIN)
        status = stk_fail(err, STK_ERR_FORMAT, "it needs something before it; begin with a source");
    else if (in && row->form == SOURCE)
        status = stk_fail(err, STK_ERR_FORMAT, "it is a source; it can only come first");
    bool asks = false;
    const char *folder = p->folder;
    if (status == STK_OK) status = fill_in(op, p, &arena, &filled, &asks, err);
    if (asks) p->folder = ""; /* paths that elements hold are taken as they are */
    stk_dataset *ds = NULL;
    if (status == STK_OK)
        ds = read_row(row, in, &filled, p, err);
    else
        stk_dataset_release(in);
    p->folder = folder;
    stk_arena_release(&arena);
    return ds;
}

/* Puts a place in front of the message. */
static void put_before(stk_error *err, const char *place)
{
    static const char prefix[] = "pipeline: ";
    char why[sizeof err->message];
    memcpy(why, err->message, sizeof why);
    bool has = strncmp(why, prefix, sizeof prefix - 1) == 0;
    (void)stk_fail(err, err->code, "%s: %s", place, why + (has ? sizeof prefix - 1 : 0));
}

static void tell_place(const stk_json *op, stk_pipeline *p, stk_error *err)
{
    if (p->told || !err) return;
    char place[sizeof p->path + 80];
    snprintf(place, sizeof place, "pipeline: %s (%.40s)", p->path,
             stk_json_text(stk_json_get(op, "op"), "?"));
    put_before(err, place);
    p->told = true;
}

static stk_dataset *read_ops(const stk_json *ops, stk_pipeline *p, stk_dataset *ds, stk_error *err)
{
    size_t length = strlen(p->path);
    for (int64_t i = 0; i < ops->count; i++) {
        snprintf(p->path + length, sizeof p->path - length, "%sops[%lld]", length ? "." : "",
                 (long long)i);
        ds = read_op(ds, &ops->items[i], p, err);
        if (!ds) {
            tell_place(&ops->items[i], p, err);
            return NULL;
        }
    }
    p->path[length] = 0;
    return ds;
}

static const stk_json *ops_of(const stk_json *pipeline)
{
    const stk_json *ops =
        pipeline->kind == STK_JSON_OBJECT ? stk_json_get(pipeline, "ops") : pipeline;
    return ops && ops->kind == STK_JSON_ARRAY && ops->count > 0 ? ops : NULL;
}

bool stk_pipeline_begins(const stk_json *pipeline)
{
    const stk_json *ops = ops_of(pipeline);
    const struct row *row = ops ? find_row(&ops->items[0]) : NULL;
    return row && (row->form == SOURCE || stk_json_get(&ops->items[0], "inputs"));
}

stk_dataset *stk_pipeline_read(const stk_json *pipeline, stk_pipeline *p, const char *label,
                               stk_dataset *start, stk_error *err)
{
    size_t length = strlen(p->path);
    const stk_json *ops = ops_of(pipeline);
    if (!ops || p->depth >= MOST_DEPTH) {
        (void)stk_fail(err, STK_ERR_FORMAT, "expected {\"ops\": [...]} with one op or more%s%s%s",
                       *label ? " as " : "", label,
                       p->depth >= MOST_DEPTH ? ", nested less deeply" : "");
        stk_dataset_release(start);
        return NULL;
    }
    if (*label)
        snprintf(p->path + length, sizeof p->path - length, "%s%s", length ? "." : "", label);
    p->depth++;
    stk_dataset *ds = read_ops(ops, p, start, err);
    p->depth--;
    if (ds) p->path[length] = 0;
    return ds;
}

/* ---- files ------------------------------------------------------------------------------------------------- */
stk_dataset *stk_data_pipeline(const char *json, size_t size, const char *folder, stk_error *err)
{
    stk_json_document *document = NULL;
    stk_error own;
    if (!err) err = &own;
    if (stk_json_parse(json, size, NULL, &document, err) != STK_OK) return NULL;
    stk_pipeline p = {.folder = folder ? folder : ""};
    stk_dataset *ds = stk_pipeline_read(stk_json_root(document), &p, "", NULL, err);
    if (!ds && !p.told) put_before(err, "pipeline");
    stk_json_release(document);
    return ds;
}

stk_dataset *stk_data_pipeline_file(const char *path, stk_error *err)
{
    enum { MOST_BYTES = 16 << 20 };
    char *text = NULL, folder[1024] = "";
    size_t size = 0;
    stk_error own;
    if (!err) err = &own;
    if (stk_file_read(path, MOST_BYTES, &text, &size, err) != STK_OK) return NULL;
    const char *slash = strrchr(path, '/');
    if (slash) snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    stk_dataset *ds = stk_data_pipeline(text, size, folder, err);
    if (!ds) put_before(err, path);
    stk_free(text);
    return ds;
}
