/* Operations of keras.ops between layers: x * 2 + 1, x[:, 0], ops.relu(x), and the masks that functional models of Keras
 * carry as explicit tensors. They have options and arguments like layers, but no weights. */
#include "layers/kinds/operation.h"
#include "stoker/image.h"

#include <string.h>

/* ---- options: one table per word in the rows ------------------------------------------------------------------------- */

#define O(member, kind_, ...) STK_FIELD(stk_operation, member, kind_, __VA_ARGS__)
#define UNUSED(name_)                                                                              \
    {                                                                                              \
        .name = name_, .kind = STK_FIELD_NULL, .fallback = "None"                                  \
    }
static const stk_config_field NONE_fields[] = {UNUSED("sparse")};
static const stk_config_field AXIS_fields[] = {O(axis, INTS, "None")};
static const stk_config_field REDUCE_fields[] = {O(axis, INTS, "None"), O(keepdims, BOOL, "False"),
                                                 UNUSED("initial"), UNUSED("dtype")};
static const stk_config_field SHAPE_fields[] = {O(newshape, INTS, NULL)};
static const stk_config_field SIZES_fields[] = {O(shape, INTS, NULL)};
static const stk_config_field AXES_fields[] = {O(axes, INTS, "None")};
static const stk_config_field TYPE_fields[] = {O(dtype, TEXT, "None"), UNUSED("sparse"),
                                               UNUSED("ragged")};
static const stk_config_field SCAN_fields[] = {O(axis, INTS, "None"), UNUSED("dtype")};
static const stk_config_field CLIP_fields[] = {O(x_min, JSON, "None"), O(x_max, JSON, "None")};
static const stk_config_field EINSUM_fields[] = {O(subscripts, TEXT, NULL)};
static const stk_config_field TWO_AXES_fields[] = {O(offset, INT, "0"), O(axis1, INT, "0"),
                                                   O(axis2, INT, "1")};
static const stk_config_field MOVE_fields[] = {O(source, INTS, NULL), O(destination, INTS, NULL)};
static const stk_config_field FINITE_fields[] = {O(nan, REAL, "0"), O(posinf, REAL, "None"),
                                                 O(neginf, REAL, "None")};
static const stk_config_field NORM_fields[] = {O(ord, JSON, "None"), O(axis, INTS, "None"),
                                               O(keepdims, BOOL, "False")};
static const stk_config_field NORMALIZE_fields[] = {
    O(axis, INTS, "-1"), O(order, INT, "2", .low = 1), O(epsilon, REAL, "None")};
static const stk_config_field LAYER_NORM_fields[] = {O(axis, INTS, "-1"), O(epsilon, REAL, "None"),
                                                     O(rms_scaling, BOOL, "False")};
static const stk_config_field MOMENTS_fields[] = {O(axes, INTS, "None"),
                                                  O(keepdims, BOOL, "False"),
                                                  {.name = "synchronized",
                                                   .kind = STK_FIELD_BOOL,
                                                   .offset = offsetof(stk_operation, sorted),
                                                   .fallback = "False"}};
static const stk_config_field PAD_fields[] = {O(pad_width, JSON, NULL), O(mode, TEXT, "constant")};
static const stk_config_field REPEAT_fields[] = {O(repeats, INTS, NULL), O(axis, INTS, "None")};
static const stk_config_field ROLL_fields[] = {O(shift, INTS, NULL), O(axis, INTS, "None")};
static const stk_config_field RESIZE_fields[] = {O(size, INTS, NULL),
                                                 O(interpolation, TEXT, "bilinear"),
                                                 O(antialias, BOOL, "False"),
                                                 O(data_format, TEXT, "None"),
                                                 O(crop_to_aspect_ratio, BOOL, "False"),
                                                 O(pad_to_aspect_ratio, BOOL, "False"),
                                                 {.name = "fill_mode",
                                                  .kind = STK_FIELD_TEXT,
                                                  .offset = offsetof(stk_operation, mode),
                                                  .fallback = "constant"},
                                                 {.name = "fill_value",
                                                  .kind = STK_FIELD_REAL,
                                                  .offset = offsetof(stk_operation, b),
                                                  .fallback = "0"}};
static const stk_config_field ROUND_fields[] = {O(decimals, INT, "0")};
static const stk_config_field SPLIT_fields[] = {O(indices_or_sections, JSON, NULL),
                                                O(axis, INTS, "0")};
static const stk_config_field UNSTACK_fields[] = {O(num, INT, "None"), O(axis, INTS, "0")};
static const stk_config_field TOP_fields[] = {O(k, INT, "1", .low = 1), O(sorted, BOOL, "True")};
static const stk_config_field BAND_fields[] = {O(k, INT, "0")};
static const stk_config_field HOT_fields[] = {O(num_classes, INT, NULL, .low = 1),
                                              O(axis, INTS, "-1"),
                                              O(dtype, TEXT, "None"),
                                              {.name = "sparse",
                                               .kind = STK_FIELD_BOOL,
                                               .offset = offsetof(stk_operation, sorted),
                                               .fallback = "False"}};
static const stk_config_field POOL_fields[] = {O(pool_size, INTS, NULL), O(strides, INTS, "None"),
                                               O(padding, TEXT, "valid"),
                                               O(data_format, TEXT, "None")};
static const stk_config_field CONV_fields[] = {O(strides, INTS, "1"), O(padding, TEXT, "valid"),
                                               O(data_format, TEXT, "None"),
                                               O(dilation_rate, INTS, "1")};
static const stk_config_field ATTEND_fields[] = {
    O(is_causal, BOOL, "False"), UNUSED("flash_attention"), UNUSED("attn_logits_soft_cap")};
static const stk_config_field APPROX_fields[] = {O(approximate, BOOL, "True")};
static const stk_config_field ALPHA_fields[] = {O(alpha, REAL, "1")};
static const stk_config_field SLOPE_fields[] = {O(negative_slope, REAL, "0.2")};
static const stk_config_field BEND_fields[] = {O(threshold, REAL, "0.5"),
                                               O(default_value, REAL, "0")};
static const stk_config_field BASE_fields[] = {O(b, REAL, "4")};

/* ---- arguments -------------------------------------------------------------------------------------------------------- */

static bool is_tensor(const stk_json *v)
{
    return !strcmp(stk_json_text(stk_json_get(v, "class_name"), ""), "__keras_tensor__");
}

/* The type that numbers beside tensors take: that of the first tensor that is not a condition. */
static stk_dtype partner_type(const stk_layer_call *c)
{
    for (int32_t i = 0; i < c->nx; i++)
        if (stk_g_dtype(c->g, c->x[i]) != STK_BOOL || c->nx == 1) return stk_g_dtype(c->g, c->x[i]);
    return STK_F32;
}

static bool is_number(const stk_json *v)
{
    return v->kind == STK_JSON_INT || v->kind == STK_JSON_DOUBLE || v->kind == STK_JSON_BOOL;
}

static double number_of(const stk_json *v)
{
    return v->kind == STK_JSON_BOOL ? (double)v->truth : v->number;
}

/* Sizes of nested lists, as far as the first members go. */
static bool list_shape(const stk_json *v, stk_shape *s)
{
    for (s->rank = 0; v && v->kind == STK_JSON_ARRAY; v = stk_json_item(v, 0)) {
        if (s->rank == STK_MAX_RANK) return false;
        s->dim[s->rank++] = v->count;
    }
    return true;
}

static bool has_fraction(const stk_json *v)
{
    if (v->kind != STK_JSON_ARRAY) return v->kind == STK_JSON_DOUBLE;
    for (int64_t i = 0; i < v->count; i++)
        if (has_fraction(&v->items[i])) return true;
    return false;
}

static bool fill(const stk_json *v, const stk_shape *s, int32_t depth, stk_tensor *t, int64_t *at)
{
    if (depth == s->rank)
        return is_number(v) && stk_tensor_set(t, (*at)++, number_of(v), NULL) == STK_OK;
    if (v->kind != STK_JSON_ARRAY || v->count != s->dim[depth]) return false;
    for (int64_t i = 0; i < v->count; i++)
        if (!fill(&v->items[i], s, depth + 1, t, at)) return false;
    return true;
}

/* Numbers that stand in the model: [[1, 2], [3, 4]]. */
static stk_val constant(stk_layer_call *c, const stk_json *v, stk_dtype dtype)
{
    stk_shape s = {0};
    stk_tensor *t = NULL;
    stk_error err = {0};
    int64_t at = 0;
    if (!list_shape(v, &s))
        return stk_c_fail(c, STK_ERR_SHAPE, "a constant of more than %d axes", STK_MAX_RANK);
    if (stk_tensor_new(dtype, s.rank, s.dim, &t, &err) != STK_OK)
        return stk_c_fail(c, err.code, "%s", err.message);
    stk_val y =
        fill(v, &s, 0, t, &at)
            ? stk_g_const(c->g, t)
            : stk_c_fail(c, STK_ERR_FORMAT,
                         "a constant whose rows differ in length, or that holds no numbers");
    stk_tensor_release(t);
    return y;
}

/* What is no tensor of the model: a number, lists of numbers, or Keras' form of an array. */
static stk_val written(stk_layer_call *c, const stk_json *v, int32_t i)
{
    const char *keras_class = stk_json_text(stk_json_get(v, "class_name"), "");
    if (v->kind == STK_JSON_BOOL) return stk_g_scalar(c->g, STK_BOOL, v->truth);
    if (is_number(v)) {
        stk_dtype dtype = partner_type(c);
        if (v->kind == STK_JSON_DOUBLE && !stk_dtype_is_float(dtype)) dtype = STK_F32;
        return stk_g_scalar(c->g, dtype, v->number);
    }
    if (v->kind == STK_JSON_ARRAY) return constant(c, v, has_fraction(v) ? STK_F32 : STK_I32);
    if (!strcmp(keras_class, "__numpy__") || !strcmp(keras_class, "__tensor__")) {
        const stk_json *config = stk_json_get(v, "config"), *value = stk_json_get(config, "value");
        const char *name = stk_json_text(stk_json_get(config, "dtype"), "float32");
        stk_dtype dtype = STK_F32;
        if (!value || !stk_dtype_parse(name, &dtype) || dtype == STK_STRING)
            return stk_c_fail(c, STK_ERR_UNSUPPORTED, "a constant of dtype '%.40s'", name);
        return constant(c, value, dtype);
    }
    return stk_c_fail(c, STK_ERR_UNSUPPORTED, "argument %d is neither a tensor nor numbers", i);
}

/* Inputs that came by place, not by name. */
static int32_t by_place(const stk_layer_call *c)
{
    int32_t n = 0;
    while (n < c->nx && !c->role[n]) n++;
    return n;
}

stk_val stk_o_argument(stk_layer_call *c, int32_t i)
{
    int32_t tensors = 0;
    if (!c->args)
        return i < c->nx ? c->x[i] : stk_c_fail(c, STK_ERR_ARGUMENT, "argument %d is missing", i);
    for (int32_t k = 0; k < i && k < c->args->count; k++) tensors += is_tensor(&c->args->items[k]);
    const stk_json *v = stk_json_item(c->args, i);
    if (!v) return stk_c_fail(c, STK_ERR_ARGUMENT, "argument %d is missing", i);
    return is_tensor(v) && tensors < c->nx ? c->x[tensors] : written(c, v, i);
}

stk_val stk_o_optional(stk_layer_call *c, int32_t i, const char *name)
{
    for (int32_t k = 0; k < c->nx; k++)
        if (c->role[k] && !strcmp(c->role[k], name)) return c->x[k];
    const stk_json *v = stk_json_get(c->arguments, name);
    if (v && v->kind != STK_JSON_NULL) return written(c, v, i);
    if (!c->args) return i < by_place(c) ? c->x[i] : 0;
    v = stk_json_item(c->args, i);
    return v && v->kind != STK_JSON_NULL ? stk_o_argument(c, i) : 0;
}
#define X(i)    stk_o_argument(c, i)
#define TWO(op) stk_o_two(c, op)

/* Floats win over integers, wide ones over narrow ones, as Keras' result_type has it for what is common. */
stk_val stk_o_two(stk_layer_call *c, stk_o_pair op)
{
    stk_val a = X(0), b = X(1);
    stk_dtype x = stk_g_dtype(c->g, a), y = stk_g_dtype(c->g, b), both = x;
    if (!stk_graph_ok(c->g) || x == y) return op(c->g, a, b);
    bool fx = stk_dtype_is_float(x), fy = stk_dtype_is_float(y);
    if (fx != fy)
        both = fx ? x : y;
    else if (fx && stk_dtype_size(x) == stk_dtype_size(y))
        both = STK_F32; /* float16 and bfloat16 */
    else if (x == STK_BOOL || (y != STK_BOOL && stk_dtype_size(y) > stk_dtype_size(x)))
        both = y;
    return op(c->g, stk_g_cast(c->g, a, both), stk_g_cast(c->g, b, both));
}

int32_t stk_o_axis(stk_layer_call *c, const stk_operation *o)
{
    if (o->axis.n == 1) return (int32_t)o->axis.v[0];
    if (o->axis.n > 1) stk_c_fail(c, STK_ERR_UNSUPPORTED, "axis must be one number here");
    return o->axis.n < 0 ? -1 : 0;
}

stk_dtype stk_o_dtype(stk_layer_call *c, const stk_operation *o)
{
    stk_dtype dtype = stk_g_dtype(c->g, c->nx ? c->x[0] : 0);
    if (o->dtype && (!stk_dtype_parse(o->dtype, &dtype) || dtype == STK_STRING))
        stk_c_fail(c, STK_ERR_DTYPE, "dtype '%.40s' is not supported", o->dtype);
    return dtype;
}

/* Of integers it is a fraction, too. */
static stk_val divide(stk_graph *g, stk_val a, stk_val b)
{
    if (stk_dtype_is_float(stk_g_dtype(g, a))) return stk_g_div(g, a, b);
    return stk_g_div(g, stk_g_cast(g, a, STK_F32), stk_g_cast(g, b, STK_F32));
}

/* ---- the rows --------------------------------------------------------------------------------------------------------------- */

#define STK_OPERATION(Class, module_, options, expression)                                         \
    static void call_##Class(stk_layer_call *c)                                                    \
    {                                                                                              \
        const stk_operation *o = c->config;                                                        \
        (void)o;                                                                                   \
        c->y[0] = expression;                                                                      \
    }
#include "layers/operations.def"

static const stk_layer_def defs[] = {
#define STK_OPERATION(Class, module_, options, expression)                                         \
    {.keras_class = #Class,                                                                        \
     .module = "keras.src.ops." #module_,                                                          \
     .fields = {options##_fields, (int32_t)(sizeof options##_fields / sizeof *options##_fields),   \
                sizeof(stk_operation)},                                                            \
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
