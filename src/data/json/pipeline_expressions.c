/* Readers of nodes whose functions are expressions over the element (expression.h).
 *
 *     {"op": "filter", "where": "label < 5"}                   take_while alike
 *     {"op": "map", "to": {"x": "image / 255", "y": "label"}}  a list for a tuple, a text for one part
 *     {"op": "scan", "state": {"sum": 0}, "next": {"sum": "sum + $0"}, "give": "sum"}
 *     {"op": "reduce", "state": {"n": 0, "sum": 0.0}, "next": {"n": "n + 1", "sum": "sum + price"}}
 *     {"op": "bucket_by_sequence_length", "length": "len(tokens)", "boundaries": [10, 20], "sizes": [32, 16, 8]}
 *     {"op": "rejection_resample", "class": "label", "target": [0.5, 0.5]} */
#include "data/json/expression.h"
#include "data/json/pipeline.h"

#include <stdio.h>
#include <string.h>

enum { MOST_PARTS = 256 };

/* Several expressions: first the new state, then what is given. */
typedef struct calculation {
    int32_t n, nstate, ninputs;
    stk_expression *e[MOST_PARTS];
    char structure[4096]; /* of what is given */
    char names[4096];     /* one after the other */
    const char *name[MOST_PARTS];
    size_t named;
} calculation;

static void calculation_release(void *context)
{
    calculation *c = context;
    for (int32_t i = 0; c && i < c->n; i++) stk_expression_free(c->e[i]);
    stk_free(c);
}

/* ---- reading ------------------------------------------------------------------------------------------ */
static stk_status add_text(calculation *c, const stk_json *value, const char *name,
                           const stk_schema *in, int32_t first, stk_error *err)
{
    const char *text = stk_json_text(value, NULL);
    if (!text || strlen(text) != (size_t)value->count)
        return stk_fail(err, STK_ERR_FORMAT, "an expression is a text, not a %s",
                        stk_json_kind_name(value->kind));
    if (c->n == MOST_PARTS)
        return stk_fail(err, STK_ERR_RANGE, "more than %d expressions", MOST_PARTS);
    STK_TRY(stk_expression_new(text, in, first, &c->e[c->n], err));
    if (!name) name = stk_expression_field(c->e[c->n])->name;
    size_t size = name ? strlen(name) + 1 : 0;
    if (size && c->named + size <= sizeof c->names) {
        c->name[c->n] = memcpy(c->names + c->named, name, size);
        c->named += size;
    }
    c->n++;
    return STK_OK;
}

/* A text: one part. A list: a tuple. An object: parts with names. */
static stk_status add_all(calculation *c, const stk_json *what, const stk_schema *in, int32_t first,
                          stk_error *err)
{
    bool list = what->kind == STK_JSON_ARRAY, object = what->kind == STK_JSON_OBJECT;
    strcpy(c->structure, "0");
    if (!list && !object) return add_text(c, what, NULL, in, first, err);
    if (what->count < 1)
        return stk_fail(err, STK_ERR_FORMAT, "it takes one expression or more, not none");
    size_t at = 0, room = sizeof c->structure;
    at += (size_t)snprintf(c->structure, room, "%s", object ? "{" : "(");
    for (int64_t i = 0; i < what->count; i++) {
        const stk_json *item = &what->items[i];
        STK_TRY(add_text(c, item, object ? item->name : NULL, in, first, err));
        at += (size_t)snprintf(c->structure + at, room - at, "%s%s%s%lld", i ? "," : "",
                               object ? item->name : "", object ? ":" : "", (long long)i);
        if (at + 16 > room) return stk_fail(err, STK_ERR_RANGE, "the names are too long");
    }
    snprintf(c->structure + at, room - at, "%s", object ? "}" : ")");
    return STK_OK;
}

static stk_status calculation_new(calculation **out, stk_error *err)
{
    *out = stk_calloc(1, sizeof **out);
    return *out ? STK_OK : stk_fail_memory(err, "expression", sizeof **out);
}

/* ---- calling -------------------------------------------------------------------------------------------- */
static stk_status call_map(void *context, const stk_map_info *info, stk_tensor *const *in,
                           stk_tensor **out, stk_error *err)
{
    const calculation *c = context;
    for (int32_t i = 0; i < c->n; i++)
        STK_TRY(stk_expression_run(c->e[i], in, info->index, &out[i], err));
    return STK_OK;
}

/* What is given sees the new state and the element. */
static stk_status call_scan(void *context, const stk_map_info *info, stk_tensor *const *in,
                            stk_tensor **out, stk_error *err)
{
    const calculation *c = context;
    for (int32_t i = 0; i < c->nstate; i++)
        STK_TRY(stk_expression_run(c->e[i], in, info->index, &out[i], err));
    if (c->n == c->nstate) return STK_OK;
    stk_tensor **seen = stk_parts_new(info->inputs);
    if (!seen) return stk_fail_memory(err, "scan", (size_t)info->inputs * sizeof *seen);
    memcpy(seen, in, (size_t)info->inputs * sizeof *seen);
    memcpy(seen, out, (size_t)c->nstate * sizeof *seen);
    stk_status status = STK_OK;
    for (int32_t i = c->nstate; i < c->n && status == STK_OK; i++)
        status = stk_expression_run(c->e[i], seen, info->index, &out[i], err);
    stk_free(seen);
    return status;
}

static stk_status calculation_schema(void *context, const stk_schema *in, stk_schema **out,
                                     stk_error *err)
{
    (void)in;
    const calculation *c = context;
    stk_field *fields = stk_calloc((size_t)c->n + 1, sizeof *fields);
    if (!fields) return stk_fail_memory(err, "expression", (size_t)c->n * sizeof *fields);
    for (int32_t i = 0; i < c->n; i++) {
        fields[i] = *stk_expression_field(c->e[i]);
        fields[i].name = c->name[i];
    }
    stk_status status =
        stk_schema_new(c->n, fields, c->structure[0] ? c->structure : NULL, out, err);
    stk_free(fields);
    return status;
}

static stk_map_fn function_of(calculation *c, const char *name)
{
    stk_map_fn fn = {.name = name,
                     .context = c,
                     .call = c->nstate ? call_scan : call_map,
                     .schema = calculation_schema,
                     .release = calculation_release};
    bool alike = !c->nstate, pure = true;
    for (int32_t i = 0; i < c->n; i++) {
        alike = alike && stk_expression_elementwise(c->e[i]);
        pure = pure && !stk_expression_asks_index(c->e[i]);
    }
    fn.flags = (alike ? STK_MAP_ELEMENTWISE : 0u) | (pure ? STK_MAP_PURE : 0u);
    return fn;
}

stk_status stk_read_key(const stk_json *op, const char *name, const stk_schema *in, stk_map_fn *fn,
                        stk_error *err)
{
    const char *text = NULL;
    calculation *c = NULL;
    STK_TRY(stk_option_text(op, name, &text, err));
    if (!text)
        return stk_fail(err, STK_ERR_FORMAT, "it needs \"%s\", an expression over the element",
                        name);
    STK_TRY(calculation_new(&c, err));
    stk_status status = add_text(c, stk_json_get(op, name), NULL, in, 0, err);
    if (status == STK_OK && (stk_expression_field(c->e[0])->rank != 0 ||
                             stk_expression_field(c->e[0])->dtype == STK_STRING))
        status = stk_fail(
            err, STK_ERR_SHAPE,
            "\"%s\" must give one number; any(), all(), sum() or x[i] make one of many", name);
    strcpy(c->structure, "0");
    *fn = function_of(c, text);
    if (status != STK_OK) calculation_release(c);
    return status;
}

/* ---- nodes ---------------------------------------------------------------------------------------------- */
static stk_dataset *give_up(stk_dataset *in)
{
    stk_dataset_release(in);
    return NULL;
}

static stk_dataset *read_where(stk_dataset *in, const stk_json *op,
                               stk_dataset *(*make)(stk_dataset *, const stk_map_fn *, stk_error *),
                               stk_error *err)
{
    stk_map_fn fn;
    if (!stk_options_good(in, op, STK_OPTIONS(STK_OTHER("where")), err)) return NULL;
    if (stk_read_key(op, "where", in->schema, &fn, err) != STK_OK) return give_up(in);
    // cppcheck-suppress returnDanglingLifetime ; the maker copies the function
    return make(in, &fn, err);
}

stk_dataset *stk_read_filter(stk_dataset *in, const stk_json *op, stk_pipeline *p, stk_error *err)
{
    (void)p;
    return read_where(in, op, stk_data_filter, err);
}

stk_dataset *stk_read_take_while(stk_dataset *in, const stk_json *op, stk_pipeline *p,
                                 stk_error *err)
{
    (void)p;
    return read_where(in, op, stk_data_take_while, err);
}

stk_dataset *stk_read_map(stk_dataset *in, const stk_json *op, stk_pipeline *p, stk_error *err)
{
    (void)p;
    stk_map_options o = stk_map_options_defaults();
    calculation *c = NULL;
    const stk_json *to = stk_json_get(op, "to");
    if (!stk_options_good(in, op,
                          STK_OPTIONS(STK_OTHER("to"), STK_OTHER("parallel"), STK_OTHER("seed"),
                                      STK_OTHER("unordered")),
                          err))
        return NULL;
    stk_status status =
        to ? STK_OK
           : stk_fail(err, STK_ERR_FORMAT,
                      "it needs \"to\", an expression, a list of them, or an object with names");
    if (status == STK_OK) status = stk_options_map(op, &o, err);
    if (status == STK_OK) status = calculation_new(&c, err);
    if (status == STK_OK) status = add_all(c, to, in->schema, 0, err);
    if (status != STK_OK) {
        calculation_release(c);
        return give_up(in);
    }
    stk_map_fn fn = function_of(c, stk_json_text(to, "expressions"));
    return stk_data_map(in, &fn, &o, err);
}

/* ---- scan, reduce ------------------------------------------------------------------------------------------ */

/* What the expressions of a scan see: the state by its names, then the element. */
static stk_status state_schema(const stk_json *state, const stk_schema *in, stk_schema **out,
                               stk_error *err)
{
    int32_t n = (int32_t)state->count;
    stk_field *fields = stk_calloc((size_t)(n + in->n) + 1, sizeof *fields);
    if (!fields) return stk_fail_memory(err, "scan", (size_t)n * sizeof *fields);
    for (int32_t i = 0; i < n; i++)
        fields[i] = (stk_field){.name = state->items[i].name,
                                .dtype = state->items[i].kind == STK_JSON_INT ? STK_I64 : STK_F64};
    memcpy(fields + n, in->fields, (size_t)in->n * sizeof *fields);
    stk_status status = stk_schema_new(n + in->n, fields, NULL, out, err);
    stk_free(fields);
    return status;
}

static stk_status check_state(const stk_json *state, const stk_json *next, stk_error *err)
{
    bool good = state && state->kind == STK_JSON_OBJECT && state->count > 0 && next &&
                next->kind == STK_JSON_OBJECT && state->count < MOST_PARTS / 2;
    for (int64_t i = 0; good && i < state->count; i++)
        good = state->items[i].kind == STK_JSON_INT || state->items[i].kind == STK_JSON_DOUBLE;
    if (!good)
        return stk_fail(err, STK_ERR_FORMAT,
                        "it needs \"state\", an object with the numbers to begin with, and "
                        "\"next\", an object with an expression for each of them");
    for (int64_t i = 0; i < next->count; i++)
        if (!stk_json_get(state, next->items[i].name))
            return stk_fail(err, STK_ERR_FORMAT, "\"next\" has \"%.40s\", \"state\" has not",
                            next->items[i].name);
    return STK_OK;
}

/* New state: the expression of its name, as its dtype; without one it stays. */
static stk_status add_next(calculation *c, const stk_json *state, const stk_json *next,
                           const stk_schema *seen, stk_error *err)
{
    for (int32_t i = 0; i < (int32_t)state->count; i++) {
        const char *name = state->items[i].name;
        const stk_json *text = stk_json_get(next, name);
        stk_json same = {.kind = STK_JSON_STRING, .text = name, .count = (int64_t)strlen(name)};
        STK_TRY(add_text(c, text ? text : &same, name, seen, (int32_t)state->count, err));
        if (stk_expression_field(c->e[i])->rank != 0)
            return stk_fail(err, STK_ERR_SHAPE, "\"next\": \"%.40s\" must give one number", name);
        STK_TRY(stk_expression_cast(c->e[i], seen->fields[i].dtype, err));
    }
    c->nstate = c->n;
    return STK_OK;
}

static stk_status read_scan(const stk_json *op, const stk_schema *in, bool last, calculation *c,
                            stk_error *err)
{
    const stk_json *state = stk_json_get(op, "state"), *give = stk_json_get(op, "give");
    stk_schema *seen = NULL;
    STK_TRY(check_state(state, stk_json_get(op, "next"), err));
    STK_TRY(state_schema(state, in, &seen, err));
    stk_status status = add_next(c, state, stk_json_get(op, "next"), seen, err);
    if (status == STK_OK && !last) {
        if (give)
            status = add_all(c, give, seen, c->nstate, err);
        else
            for (int32_t i = 0; i < c->nstate && status == STK_OK; i++) {
                const char *name = state->items[i].name;
                stk_json same = {
                    .kind = STK_JSON_STRING, .text = name, .count = (int64_t)strlen(name)};
                status = add_text(c, &same, name, seen, c->nstate, err);
            }
    }
    c->structure[0] = 0; /* scan knows how to split what it is given */
    if (last && status == STK_OK) {
        size_t at = (size_t)snprintf(c->structure, sizeof c->structure, "{");
        for (int32_t i = 0; i < c->n && at + 96 < sizeof c->structure; i++)
            at += (size_t)snprintf(c->structure + at, 90, "%s%.64s:%d", i ? "," : "",
                                   state->items[i].name, (int)i);
        strcpy(c->structure + at, "}");
    }
    stk_schema_release(seen);
    return status;
}

static stk_status first_state(const stk_json *state, stk_tensor **to, stk_error *err)
{
    for (int64_t i = 0; i < state->count; i++) {
        const stk_json *v = &state->items[i];
        stk_status status = v->kind == STK_JSON_INT
                                ? stk_tensor_from(STK_I64, 0, NULL, &v->integer, &to[i], err)
                                : stk_tensor_from(STK_F64, 0, NULL, &v->number, &to[i], err);
        STK_TRY(status);
    }
    return STK_OK;
}

static stk_dataset *make_scan(stk_dataset *in, const stk_json *op, bool last, stk_error *err)
{
    calculation *c = NULL;
    stk_tensor *state[MOST_PARTS] = {0};
    stk_status status = calculation_new(&c, err);
    if (status == STK_OK) status = read_scan(op, in->schema, last, c, err);
    if (status == STK_OK) status = first_state(stk_json_get(op, "state"), state, err);
    stk_dataset *ds = NULL;
    if (status == STK_OK) {
        int32_t n = c->nstate;
        stk_map_fn fn = function_of(c, "expressions");
        ds = (last ? stk_data_reduce : stk_data_scan)(in, n, state, &fn, err);
    } else {
        calculation_release(c);
        stk_dataset_release(in);
    }
    stk_parts_release(MOST_PARTS, state);
    return ds;
}

stk_dataset *stk_read_scan(stk_dataset *in, const stk_json *op, stk_pipeline *p, stk_error *err)
{
    (void)p;
    bool good = stk_options_good(
        in, op, STK_OPTIONS(STK_OTHER("state"), STK_OTHER("next"), STK_OTHER("give")), err);
    return good ? make_scan(in, op, false, err) : NULL;
}

stk_dataset *stk_read_reduce(stk_dataset *in, const stk_json *op, stk_pipeline *p, stk_error *err)
{
    (void)p;
    bool good = stk_options_good(in, op, STK_OPTIONS(STK_OTHER("state"), STK_OTHER("next")), err);
    return good ? make_scan(in, op, true, err) : NULL;
}

/* ---- padding ------------------------------------------------------------------------------------------------ */
typedef struct pads {
    int64_t (*shapes)[STK_MAX_RANK];
    double *values;
} pads;

static void pads_release(pads *p)
{
    stk_free(p->shapes);
    stk_free(p->values);
}

/* "shapes": one list of sizes for each part; "values": one number for each part. */
static stk_status read_pads(const stk_json *op, const stk_schema *in, pads *to, stk_error *err)
{
    const stk_json *shapes = stk_json_get(op, "shapes");
    int32_t n = 0;
    STK_TRY(stk_option_numbers(op, "values", &n, &to->values, err));
    bool good = (!to->values || n == in->n) &&
                (!shapes || (shapes->kind == STK_JSON_ARRAY && shapes->count == in->n));
    if (good && shapes) {
        to->shapes = stk_calloc((size_t)in->n + 1, sizeof *to->shapes);
        if (!to->shapes) return stk_fail_memory(err, "pipeline", 64);
    }
    for (int32_t i = 0; good && shapes && i < in->n; i++) {
        const stk_json *list = &shapes->items[i];
        good = list->kind == STK_JSON_ARRAY && list->count <= STK_MAX_RANK;
        for (int64_t k = 0; good && k < list->count; k++) {
            good = list->items[k].kind == STK_JSON_INT && list->items[k].integer >= -1;
            to->shapes[i][k] = list->items[k].integer;
        }
    }
    if (good) return STK_OK;
    return stk_fail(
        err, STK_ERR_FORMAT,
        "\"shapes\" is a list of sizes and \"values\" a number for each of the %d parts",
        (int)in->n);
}

stk_dataset *stk_read_padded_batch(stk_dataset *in, const stk_json *op, stk_pipeline *p,
                                   stk_error *err)
{
    (void)p;
    int64_t size = 0;
    bool drop = false;
    pads to = {0};
    if (!stk_options_good(in, op,
                          STK_OPTIONS(STK_INT("size", &size, 1, INT32_MAX),
                                      STK_BOOLEAN("drop_remainder", &drop), STK_OTHER("shapes"),
                                      STK_OTHER("values")),
                          err))
        return NULL;
    bool good = read_pads(op, in->schema, &to, err) == STK_OK;
    stk_dataset *ds =
        good ? stk_data_padded_batch(in, size, drop, (const int64_t(*)[STK_MAX_RANK])to.shapes,
                                     to.values, err)
             : give_up(in);
    pads_release(&to);
    return ds;
}

stk_dataset *stk_read_bucket(stk_dataset *in, const stk_json *op, stk_pipeline *p, stk_error *err)
{
    (void)p;
    stk_bucket_options o = {0};
    stk_map_fn length = {0};
    pads to = {0};
    int64_t *boundaries = NULL, *sizes = NULL;
    int32_t count = 0;
    if (!stk_options_good(
            in, op,
            STK_OPTIONS(STK_OTHER("length"), STK_OTHER("boundaries"), STK_OTHER("sizes"),
                        STK_OTHER("shapes"), STK_OTHER("values"),
                        STK_BOOLEAN("drop_remainder", &o.drop_remainder),
                        STK_BOOLEAN("pad_to_bucket_boundary", &o.pad_to_bucket_boundary)),
            err))
        return NULL;
    stk_status status = stk_option_wholes(op, "boundaries", &o.n, &boundaries, err);
    if (status == STK_OK) status = stk_option_wholes(op, "sizes", &count, &sizes, err);
    if (status == STK_OK && (!boundaries || !sizes || o.n < 1 || count != o.n + 1))
        status = stk_fail(err, STK_ERR_FORMAT,
                          "it needs \"boundaries\" and \"sizes\", which is one number longer");
    if (status == STK_OK) status = read_pads(op, in->schema, &to, err);
    if (status == STK_OK) status = stk_read_key(op, "length", in->schema, &length, err);
    o.boundaries = boundaries;
    o.sizes = sizes;
    o.padded_shapes = (const int64_t(*)[STK_MAX_RANK])to.shapes;
    o.padding_values = to.values;
    stk_dataset *ds =
        status == STK_OK ? stk_data_bucket_by_sequence_length(in, &length, &o, err) : give_up(in);
    stk_free(boundaries);
    stk_free(sizes);
    pads_release(&to);
    return ds;
}

stk_dataset *stk_read_rejection_resample(stk_dataset *in, const stk_json *op, stk_pipeline *p,
                                         stk_error *err)
{
    (void)p;
    stk_map_fn class_of = {0};
    double *target = NULL, *initial = NULL;
    int32_t n = 0, count = 0;
    int64_t seed = 0;
    if (!stk_options_good(in, op,
                          STK_OPTIONS(STK_OTHER("class"), STK_OTHER("target"), STK_OTHER("initial"),
                                      STK_INT("seed", &seed, 0, INT64_MAX)),
                          err))
        return NULL;
    stk_status status = stk_option_numbers(op, "target", &n, &target, err);
    if (status == STK_OK) status = stk_option_numbers(op, "initial", &count, &initial, err);
    if (status == STK_OK && (!target || n < 1 || (initial && count != n)))
        status = stk_fail(err, STK_ERR_FORMAT,
                          "it needs \"target\", a frequency for each class, and takes \"initial\", "
                          "as many");
    if (status == STK_OK) status = stk_read_key(op, "class", in->schema, &class_of, err);
    stk_dataset *ds = status == STK_OK ? stk_data_rejection_resample(in, &class_of, n, target,
                                                                     initial, (uint64_t)seed, err)
                                       : give_up(in);
    stk_free(target);
    stk_free(initial);
    return ds;
}
