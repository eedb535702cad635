/* Operations of keras.ops between layers: x * 2 + 1, x[:, 0], ops.relu(x), and the masks that functional models of Keras
 * carry as explicit tensors. They have options and arguments like layers, but no weights. */
#include "layers/layer.h"

#include <string.h>

typedef struct operation {
    stk_ints axis, axes, newshape;
    bool keepdims;
    const char *dtype;
} operation;

static const stk_config_field NONE_fields[1];
static const stk_config_field AXIS_fields[] = {STK_FIELD(operation, axis, INTS, "None")};
static const stk_config_field REDUCE_fields[] = {STK_FIELD(operation, axis, INTS, "None"),
                                                 STK_FIELD(operation, keepdims, BOOL, "False")};
static const stk_config_field SHAPE_fields[] = {STK_FIELD(operation, newshape, INTS, NULL)};
static const stk_config_field AXES_fields[] = {STK_FIELD(operation, axes, INTS, "None")};
static const stk_config_field TYPE_fields[] = {STK_FIELD(operation, dtype, TEXT, "None")};

/* ---- arguments -------------------------------------------------------------------------------------------------------- */

static bool is_tensor(const stk_json *v)
{
    const char *keras_class = stk_json_text(stk_json_get(v, "class_name"), "");
    return !strcmp(keras_class, "__keras_tensor__");
}

/* The type that numbers beside tensors take: that of the first tensor that is not a condition. */
static stk_dtype partner_type(const stk_layer_call *c)
{
    for (int32_t i = 0; i < c->nx; i++)
        if (stk_g_dtype(c->g, c->x[i]) != STK_BOOL || c->nx == 1) return stk_g_dtype(c->g, c->x[i]);
    return STK_F32;
}

/* Argument i as a tensor of the graph: one of the inputs, or a number that was written into the model. */
static stk_val argument(stk_layer_call *c, int32_t i)
{
    int32_t tensors = 0;
    if (!c->args)
        return i < c->nx ? c->x[i] : stk_c_fail(c, STK_ERR_ARGUMENT, "argument %d is missing", i);
    for (int32_t k = 0; k < i && k < c->args->count; k++) tensors += is_tensor(&c->args->items[k]);
    const stk_json *v = stk_json_item(c->args, i);
    if (v && is_tensor(v) && tensors < c->nx) return c->x[tensors];
    if (v && (v->kind == STK_JSON_INT || v->kind == STK_JSON_DOUBLE))
        return stk_g_scalar(c->g, partner_type(c), v->number);
    if (v && v->kind == STK_JSON_BOOL) return stk_g_scalar(c->g, STK_BOOL, v->truth);
    return stk_c_fail(c, STK_ERR_UNSUPPORTED, "argument %d is neither a tensor nor a number", i);
}
#define X(i) argument(c, i)

static int32_t axis_of(stk_layer_call *c, const operation *o)
{
    if (o->axis.n == 1) return (int32_t)o->axis.v[0];
    if (o->axis.n > 1) stk_c_fail(c, STK_ERR_UNSUPPORTED, "axis must be one number here");
    return o->axis.n < 0 ? -1 : 0;
}

static stk_dtype dtype_of(stk_layer_call *c, const operation *o)
{
    stk_dtype dtype = stk_g_dtype(c->g, c->nx ? c->x[0] : 0);
    if (o->dtype && (!stk_dtype_parse(o->dtype, &dtype) || dtype == STK_STRING))
        stk_c_fail(c, STK_ERR_DTYPE, "dtype '%.40s' is not supported", o->dtype);
    return dtype;
}

/* ---- builders that are more than one call -------------------------------------------------------------------------------- */

typedef stk_val (*reduction)(stk_graph *g, stk_val x, int32_t n, const int32_t *axes, bool keep);
static stk_val reduce(stk_layer_call *c, const operation *o, reduction op)
{
    int32_t axes[STK_MAX_RANK];
    for (int32_t i = 0; i < o->axis.n; i++) axes[i] = (int32_t)o->axis.v[i];
    return op(c->g, X(0), o->axis.n > 0 ? o->axis.n : 0, axes, o->keepdims);
}

static stk_val like(stk_layer_call *c, const operation *o, double value)
{
    stk_shape s = stk_c_shape(c, 0);
    return stk_g_fill(c->g, dtype_of(c, o), s.rank, s.dim, value);
}

/* The batch may be written as None. */
static stk_val reshape(stk_layer_call *c, const operation *o)
{
    stk_ints to = o->newshape;
    int32_t open = 0;
    for (int32_t i = 0; i < to.n; i++) open += to.v[i] < 0;
    if (to.n > 0 && to.v[0] < 0 && open > 1) to.v[0] = stk_c_dim(c, 0, 0);
    return to.n < 0 ? 0 : stk_g_reshape(c->g, X(0), to.n, to.v);
}

static stk_val transpose(stk_layer_call *c, const operation *o)
{
    int32_t perm[STK_MAX_RANK];
    if (o->axes.n < 0) return stk_g_transpose(c->g, X(0), NULL);
    if (!stk_c_rank(c, 0, o->axes.n, o->axes.n)) return 0;
    for (int32_t i = 0; i < o->axes.n; i++) {
        perm[i] = stk_c_axis(c, 0, o->axes.v[i]);
        if (perm[i] < 0) return 0;
    }
    return stk_g_transpose(c->g, c->x[0], perm);
}

/* ---- x[1:, ::2, 0, None, ...] ---------------------------------------------------------------------------------------------- */

typedef struct window {
    int64_t start[STK_MAX_RANK], size[STK_MAX_RANK], step[STK_MAX_RANK];
    stk_shape out; /* without the axes that an index takes away, with those that None adds */
    int32_t axis;  /* next one of x */
} window;

static int64_t clamp(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

static bool take_slice(stk_layer_call *c, window *w, const stk_json *v, int64_t d)
{
    const stk_json *config = stk_json_get(v, "config");
    int64_t step = stk_json_int(stk_json_get(config, "step"), 1);
    const stk_json *from = stk_json_get(config, "start"), *to = stk_json_get(config, "stop");
    if (step < 1 || step > INT32_MAX) {
        stk_c_fail(c, STK_ERR_UNSUPPORTED, "slices with a step of %lld", (long long)step);
        return false;
    }
    int64_t start = clamp(stk_json_int(from, 0), -d, d), stop = clamp(stk_json_int(to, d), -d, d);
    if (start < 0) start += d;
    if (stop < 0) stop += d;
    w->start[w->axis] = start;
    w->step[w->axis] = step;
    w->size[w->axis] = stop > start ? (stop - start + step - 1) / step : 0;
    w->out.dim[w->out.rank++] = w->size[w->axis];
    w->axis++;
    return true;
}

static bool take_key(stk_layer_call *c, window *w, const stk_json *v, const stk_shape *s)
{
    const char *keras_class = stk_json_text(stk_json_get(v, "class_name"), "");
    bool slice = !strcmp(keras_class, "__slice__");
    if (w->out.rank >= STK_MAX_RANK || (v->kind != STK_JSON_NULL && w->axis >= s->rank)) {
        stk_c_fail(c, STK_ERR_RANGE, "more keys than the %d axes of x", s->rank);
        return false;
    }
    if (v->kind == STK_JSON_NULL) {
        w->out.dim[w->out.rank++] = 1;
        return true;
    }
    int64_t d = s->dim[w->axis], at = stk_json_int(v, 0);
    if (slice) return take_slice(c, w, v, d);
    if (v->kind != STK_JSON_INT || at < -d || at >= d) {
        stk_c_fail(c, STK_ERR_UNSUPPORTED,
                   "a key that is neither a slice, None, nor an index of axis %d", w->axis);
        return false;
    }
    w->start[w->axis] = at < 0 ? at + d : at;
    w->size[w->axis] = w->step[w->axis] = 1;
    w->axis++;
    return true;
}

static bool is_dots(const stk_json *v)
{
    return !strcmp(stk_json_text(stk_json_get(v, "class_name"), ""), "__ellipsis__");
}

static void take_whole(window *w, const stk_shape *s, int32_t until)
{
    for (; w->axis < until && w->out.rank < STK_MAX_RANK; w->axis++) {
        w->size[w->axis] = s->dim[w->axis];
        w->step[w->axis] = 1;
        w->out.dim[w->out.rank++] = s->dim[w->axis];
    }
}

static stk_val get_item(stk_layer_call *c)
{
    window w = {.axis = 0};
    stk_shape s = stk_c_shape(c, 0);
    const stk_json *keys = stk_json_item(c->args, 1), *items = keys;
    if (!keys) return stk_c_fail(c, STK_ERR_FORMAT, "x[..] without keys");
    int64_t n = keys->kind == STK_JSON_ARRAY ? keys->count : 1;
    if (keys->kind == STK_JSON_ARRAY) items = keys->items;
    for (int64_t i = 0; i < n; i++) {
        if (is_dots(&items[i])) {
            int32_t behind = 0;
            for (int64_t k = i + 1; k < n; k++) behind += items[k].kind != STK_JSON_NULL;
            take_whole(&w, &s, s.rank - behind);
        } else if (!take_key(c, &w, &items[i], &s)) {
            return 0;
        }
    }
    take_whole(&w, &s, s.rank);
    stk_val y = stk_g_slice(c->g, c->x[0], w.start, w.size, w.step);
    return stk_g_reshape(c->g, y, w.out.rank, w.out.dim);
}

/* ---- the rows --------------------------------------------------------------------------------------------------------------- */

#define STK_OPERATION(Class, module_, options, expression)                                         \
    static void call_##Class(stk_layer_call *c)                                                    \
    {                                                                                              \
        const operation *o = c->config;                                                            \
        (void)o;                                                                                   \
        c->y[0] = expression;                                                                      \
    }
#include "layers/operations.def"

enum {
    NONE_count,
    AXIS_count = 1,
    REDUCE_count = 2,
    SHAPE_count = 1,
    AXES_count = 1,
    TYPE_count = 1
};
static const stk_layer_def defs[] = {
#define STK_OPERATION(Class, module_, options, expression)                                         \
    {.keras_class = #Class,                                                                        \
     .module = "keras.src.ops." #module_,                                                          \
     .fields = {options##_fields, options##_count, sizeof(operation)},                             \
     .min_inputs = 1,                                                                              \
     .max_inputs = -1,                                                                             \
     .no_build = true,                                                                             \
     .keeps_dtype = true,                                                                          \
     .operation = true,                                                                            \
     .call = call_##Class},
#include "layers/operations.def"
};

const stk_layer_def *stk_operation_find(const char *keras_class)
{
    for (size_t i = 0; i < sizeof defs / sizeof *defs; i++)
        if (!strcmp(defs[i].keras_class, keras_class)) return &defs[i];
    return NULL;
}

void stk_operation_near_misses(const char *keras_class, char *text, size_t size)
{
    enum { COUNT = sizeof defs / sizeof *defs };
    const char *names[COUNT];
    for (int32_t i = 0; i < COUNT; i++) names[i] = defs[i].keras_class;
    stk_did_you_mean(keras_class, names, COUNT, text, size);
}
