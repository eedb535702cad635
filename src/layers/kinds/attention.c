/* Attention: MultiHeadAttention, and the plain Attention layer. */
#include "layers/layer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What takes the place of masked scores, as in Keras. */
static double large_negative(stk_dtype dtype) { return dtype == STK_F16 ? -3e4 : -1e9; }

static stk_val both(stk_graph *g, stk_val a, stk_val b)
{
    return a && b ? stk_g_and(g, a, b) : a ? a : b;
}

/* bool [1, t, s]: query i may look at keys 0 .. i */
static stk_val causal_mask(stk_graph *g, int64_t t, int64_t s)
{
    stk_val row = stk_g_iota(g, STK_I32, 3, (int64_t[]){1, t, 1}, 1);
    stk_val column = stk_g_iota(g, STK_I32, 3, (int64_t[]){1, 1, s}, 2);
    return stk_g_ge(g, row, column);
}

/* ---- MultiHeadAttention ------------------------------------------------------------------------------------------------ */

typedef struct mha {
    int64_t num_heads, key_dim, value_dim, sliding_window;
    int64_t head_dim, num_query_heads, num_key_value_heads; /* GroupedQueryAttention's words */
    double dropout;
    bool use_bias, use_gate;
    stk_ints output_shape, attention_axes;
    const stk_object *kernel_initializer, *bias_initializer;
    const stk_object *kernel_regularizer, *bias_regularizer;
    const stk_object *kernel_constraint, *bias_constraint;
    int64_t seed;
} mha;

typedef struct mha_inputs {
    stk_val query, value, key, attention_mask;
    stk_val query_mask, value_mask, key_mask;
} mha_inputs;

static stk_status check_mha(stk_layer_state *layer, stk_error *err)
{
    mha *o = layer->config;
    (void)err;
    o->num_key_value_heads = o->num_heads;
    return STK_OK;
}

static stk_status check_gqa(stk_layer_state *layer, stk_error *err)
{
    mha *o = layer->config;
    o->num_heads = o->num_query_heads;
    o->key_dim = o->value_dim = o->head_dim;
    if (o->num_query_heads % o->num_key_value_heads == 0) return STK_OK;
    return stk_layer_refuse(
        layer, err, STK_ERR_ARGUMENT,
        "%lld heads of queries for %lld of keys; the second must divide the first",
        (long long)o->num_query_heads, (long long)o->num_key_value_heads);
}

/* Inputs come by place (query, value, key) or by name. */
static bool sort_inputs(stk_layer_call *c, mha_inputs *in)
{
    struct {
        const char *name;
        stk_val *value, *mask;
    } slots[] = {{"query", &in->query, &in->query_mask},
                 {"value", &in->value, &in->value_mask},
                 {"key", &in->key, &in->key_mask},
                 {"attention_mask", &in->attention_mask, NULL}};
    int32_t place = 0;
    for (int32_t i = 0; i < c->nx; i++) {
        int32_t slot = -1;
        for (int32_t k = 0; c->role[i] && k < 4; k++)
            if (!strcmp(slots[k].name, c->role[i])) slot = k;
        if (!c->role[i] && place < 3) slot = place++;
        if (slot < 0) {
            stk_c_fail(c, STK_ERR_ARGUMENT,
                       "input %d ('%s'); it takes query, value, key and attention_mask", i,
                       c->role[i] ? c->role[i] : "");
            return false;
        }
        *slots[slot].value = c->x[i];
        if (slots[slot].mask) *slots[slot].mask = c->mask[i];
    }
    if (!in->query || !in->value) {
        stk_c_fail(c, STK_ERR_ARGUMENT, "it needs a query and a value");
        return false;
    }
    if (!in->key) {
        in->key = in->value;
        in->key_mask = 0;
    }
    return true;
}

static bool three_axes(stk_layer_call *c, stk_val x, const char *who)
{
    if (stk_g_rank(c->g, x) == 3) return true;
    if (stk_graph_ok(c->g))
        stk_c_fail(c, STK_ERR_SHAPE, "the %s is %s; it takes [batch, steps, features]", who,
                   STK_TYPE_TEXT(stk_type_of(c->g, x)));
    return false;
}

/* ---- inputs of any number of axes: those that attention goes over become one, all others part of the batch -------------- */

typedef struct folding {
    int32_t rank, natt;         /* of the inputs; how many axes attention goes over */
    int32_t perm[STK_MAX_RANK]; /* the others, those, features */
    bool plain;                 /* [b, t, f] already */
} folding;

static bool find_axes(stk_layer_call *c, const mha_inputs *in, folding *f)
{
    const mha *o = c->config;
    bool over[STK_MAX_RANK] = {false};
    int32_t n = 0;
    f->rank = stk_g_rank(c->g, in->query);
    if (!stk_graph_ok(c->g)) return false;
    for (int32_t i = 0; i < o->attention_axes.n; i++) {
        int64_t axis = o->attention_axes.v[i];
        axis += axis < 0 ? f->rank : 0;
        if (axis < 1 || axis > f->rank - 2) {
            stk_c_fail(c, STK_ERR_RANGE, "attention axis %lld of an input with %d axes",
                       (long long)o->attention_axes.v[i], f->rank);
            return false;
        }
        over[axis] = true;
    }
    for (int32_t i = 1; i + 1 < f->rank; i++) {
        if (o->attention_axes.n < 0) over[i] = true;
        f->natt += over[i];
    }
    for (int32_t way = 0; way < 2; way++)
        for (int32_t i = 0; i + 1 < f->rank; i++)
            if (over[i] == (way == 1)) f->perm[n++] = i;
    f->perm[n] = f->rank - 1;
    f->plain = f->rank == 3;
    if (f->rank >= 3 && f->rank == stk_g_rank(c->g, in->value) &&
        f->rank == stk_g_rank(c->g, in->key))
        return true;
    stk_c_fail(c, STK_ERR_SHAPE,
               "query, value and key have %d, %d and %d axes; they take as many, "
               "[batch, steps.., features]",
               f->rank, stk_g_rank(c->g, in->value), stk_g_rank(c->g, in->key));
    return false;
}

static stk_val folded(stk_graph *g, stk_val x, const folding *f)
{
    int64_t sizes[3] = {1, 1, stk_g_dim(g, x, -1)};
    if (f->plain || !stk_graph_ok(g)) return x;
    for (int32_t i = 0; i + 1 < f->rank; i++)
        sizes[i >= f->rank - 1 - f->natt] *= stk_g_dim(g, x, f->perm[i]);
    return stk_g_reshape(g, stk_g_transpose(g, x, f->perm), 3, sizes);
}

/* y is [batch, steps, outputs] of the folded query; `out` are the sizes behind the steps. */
static stk_val unfolded(stk_graph *g, stk_val y, stk_val query, const folding *f, int32_t nout,
                        const int64_t *out)
{
    int64_t sizes[2 * STK_MAX_RANK];
    int32_t back[STK_MAX_RANK], n = f->rank - 1;
    if (f->rank - 1 + nout > STK_MAX_RANK) {
        stk_g_fail(g, STK_ERR_RANGE, "results with more than %d axes", STK_MAX_RANK);
        return 0;
    }
    for (int32_t i = 0; i < n; i++) {
        sizes[i] = stk_g_dim(g, query, f->perm[i]);
        back[f->perm[i]] = i;
    }
    for (int32_t i = 0; i < nout; i++) {
        sizes[n + i] = out[i];
        back[n + i] = n + i;
    }
    y = stk_g_reshape(g, y, n + nout, sizes);
    return f->plain ? y : stk_g_transpose(g, y, back);
}

/* A mask [batch.., steps of the query.., steps of the key..] for the folded batch: [b, t, s]. */
static stk_val folded_mask(stk_graph *g, stk_val mask, const mha_inputs *in, const folding *f)
{
    int64_t sizes[2 * STK_MAX_RANK], whole[2 * STK_MAX_RANK], flat[3] = {1, 1, 1};
    int32_t others = f->rank - 1 - f->natt, front = stk_g_rank(g, mask) - 2 * f->natt, n = others;
    if (f->plain || !stk_graph_ok(g)) return mask;
    if (front < 0 || front > others || others + 2 * f->natt > STK_MAX_RANK) {
        stk_g_fail(g, STK_ERR_SHAPE, "attention_mask has %d axes; it takes %d to %d",
                   stk_g_rank(g, mask), 2 * f->natt, others + 2 * f->natt);
        return 0;
    }
    for (int32_t i = 0; i < others; i++) {
        sizes[i] = i < front ? stk_g_dim(g, mask, i) : 1;
        flat[0] *= whole[i] = stk_g_dim(g, in->query, f->perm[i]);
    }
    for (int32_t side = 0; side < 2; side++)
        for (int32_t i = 0; i < f->natt; i++) {
            sizes[n] = stk_g_dim(g, mask, front + n - others);
            flat[1 + side] *= whole[n++] =
                stk_g_dim(g, side ? in->value : in->query, f->perm[others + i]);
        }
    mask = stk_g_broadcast(g, stk_g_reshape(g, mask, n, sizes), n, whole);
    return stk_g_reshape(g, mask, 3, flat);
}

/* Keras makes these masks for [batch, steps, features] alone. */
static bool fits_folding(stk_layer_call *c, const mha_inputs *in, const folding *f)
{
    const mha *o = c->config;
    bool causal = stk_json_bool(stk_json_get(c->arguments, "use_causal_mask"), false);
    if (f->plain) return true;
    if (in->query_mask || in->value_mask || in->key_mask || causal ||
        o->sliding_window != STK_NONE) {
        stk_c_fail(c, STK_ERR_UNSUPPORTED,
                   "masks of inputs, use_causal_mask and sliding_window are for inputs of 3 axes; "
                   "give attention_mask instead");
        return false;
    }
    return true;
}

/* [b, t, in] times a kernel of [in.., out..], both flattened to a matrix; bias of [out..] or none. */
static stk_val project(stk_layer_call *c, const char *scope, stk_val x, int32_t rank,
                       const int64_t *shape, int32_t in_axes)
{
    const mha *o = c->config;
    char name[64];
    int64_t in = 1, out = 1;
    for (int32_t i = 0; i < rank; i++) *(i < in_axes ? &in : &out) *= shape[i];
    snprintf(name, sizeof name, "%s/kernel", scope);
    stk_val w = stk_c_weight(c, name, rank, shape, STK_WISH(o, kernel));
    stk_val y = stk_g_matmul(c->g, x, stk_g_reshape(c->g, w, 2, (int64_t[]){in, out}));
    if (!o->use_bias) return y;
    snprintf(name, sizeof name, "%s/bias", scope);
    stk_val b = stk_c_weight(c, name, rank - in_axes, shape + in_axes, STK_WISH(o, bias));
    return stk_g_add(c->g, y, stk_g_reshape(c->g, b, 1, &out));
}

/* [b, t, heads, size] <-> [b, heads, t, size] */
static stk_val swap_heads(stk_graph *g, stk_val x)
{
    return stk_g_transpose(g, x, (int32_t[]){0, 2, 1, 3});
}

/* Fewer heads than the query has are used by several of them: [b, heads, t, size]. */
static stk_val shared(stk_graph *g, stk_val x, int64_t heads, int64_t times)
{
    if (times == 1) return x;
    int64_t b = stk_g_dim(g, x, 0), t = stk_g_dim(g, x, 2), size = stk_g_dim(g, x, 3);
    x = stk_g_broadcast(g, stk_g_expand_dims(g, x, 2), 5, (int64_t[]){b, heads, times, t, size});
    return stk_g_reshape(g, x, 4, (int64_t[]){b, heads * times, t, size});
}

/* [b, t, heads, size] */
static stk_val heads_of(stk_layer_call *c, const char *scope, stk_val x, int64_t heads,
                        int64_t size)
{
    int64_t shape[] = {stk_g_dim(c->g, x, 2), heads, size};
    int64_t sizes[] = {stk_g_dim(c->g, x, 0), stk_g_dim(c->g, x, 1), heads, size};
    return stk_g_reshape(c->g, project(c, scope, x, 3, shape, 1), 4, sizes);
}

/* Whether keys are within so many steps of the query: bool [1, t, s]. */
static stk_val window_mask(stk_graph *g, int64_t t, int64_t s, int64_t window)
{
    stk_val row = stk_g_iota(g, STK_I32, 3, (int64_t[]){1, t, 1}, 1);
    stk_val column = stk_g_iota(g, STK_I32, 3, (int64_t[]){1, 1, s}, 2);
    return stk_g_lt(g, stk_g_abs(g, stk_g_sub(g, row, column)),
                    stk_g_scalar(g, STK_I32, (double)window));
}

/* bool, broadcastable to [b, heads, t, s]; 0: everything is seen. *causal: what use_causal_mask hides is not in it. */
static stk_val attention_mask(stk_layer_call *c, const mha_inputs *in, bool *causal)
{
    stk_graph *g = c->g;
    const mha *o = c->config;
    int64_t t = stk_g_dim(g, in->query, 1), s = stk_g_dim(g, in->value, 1);
    stk_val mask = 0;
    if (in->query_mask) mask = stk_g_expand_dims(g, in->query_mask, 2);
    if (in->value_mask) mask = both(g, mask, stk_g_expand_dims(g, in->value_mask, 1));
    if (in->key_mask) mask = both(g, mask, stk_g_expand_dims(g, in->key_mask, 1));
    *causal = stk_json_bool(stk_json_get(c->arguments, "use_causal_mask"), false);
    if (o->sliding_window != STK_NONE)
        mask = both(g, mask, window_mask(g, t, s, o->sliding_window));
    if (in->attention_mask) mask = both(g, mask, stk_g_cast(g, in->attention_mask, STK_BOOL));
    return mask && stk_g_rank(g, mask) == 3 ? stk_g_expand_dims(g, mask, 1) : mask;
}

/* Weights of the values, [b, heads, t, s], for those who want to see them or drop some. */
static stk_val weights_of(stk_layer_call *c, stk_val query, stk_val key, stk_val mask, bool causal)
{
    const mha *o = c->config;
    stk_graph *g = c->g;
    stk_dtype dtype = c->compute;
    query =
        stk_g_mul(g, swap_heads(g, query), stk_g_scalar(g, dtype, 1 / sqrt((double)o->key_dim)));
    key = shared(g, swap_heads(g, key), o->num_key_value_heads,
                 o->num_heads / o->num_key_value_heads);
    stk_val scores = stk_g_matmul_t(g, query, key, false, true);
    if (causal)
        mask = both(
            g, mask,
            stk_g_expand_dims(g, causal_mask(g, stk_g_dim(g, query, 2), stk_g_dim(g, key, 2)), 1));
    if (mask) scores = stk_g_select(g, mask, scores, stk_g_scalar(g, dtype, large_negative(dtype)));
    return stk_g_softmax(g, scores, -1);
}

/* [b, t, heads, size] by way of the weights. */
static stk_val look_by_weights(stk_layer_call *c, stk_val weights, stk_val value)
{
    const mha *o = c->config;
    stk_graph *g = c->g;
    if (c->training && o->dropout > 0) {
        stk_random_options random = stk_c_random(c, o->seed);
        weights = stk_g_dropout(g, weights, o->dropout, NULL, &random);
    }
    value = shared(g, swap_heads(g, value), o->num_key_value_heads,
                   o->num_heads / o->num_key_value_heads);
    return swap_heads(g, stk_g_matmul(g, weights, value));
}

/* Where scores of a head are few and its rows long enough, products and softmax over them stay in the caches by themselves, and products are
 * the faster kernels (by 6 % of a step at 128 x 128 scores of 32 wide heads; narrow heads and long sequences gain by one operation). */
static bool products_pay(stk_graph *g, const mha_inputs *in, int64_t key_dim)
{
    const int64_t wide = 32, few = 128 * 128;
    return key_dim >= wide && stk_g_dim(g, in->query, 1) * stk_g_dim(g, in->key, 1) <= few;
}

/* The query, gate and attention of folded inputs: [b, t, heads * size]. *weights: wanted if not NULL. */
static stk_val attended(stk_layer_call *c, const mha_inputs *in, int64_t size, stk_val *weights)
{
    const mha *o = c->config;
    stk_graph *g = c->g;
    bool causal, plain = weights || (c->training && o->dropout > 0);
    plain |= c->compute != STK_F32; /* products of half types are faster than a kernel in float32 */
    stk_val query = heads_of(c, "query", in->query, o->num_heads, o->key_dim), seen;
    stk_val key = heads_of(c, "key", in->key, o->num_key_value_heads, o->key_dim), gate = 0;
    if (o->use_gate) gate = stk_g_sigmoid(g, heads_of(c, "gate", in->query, o->num_heads, size));
    stk_val value = heads_of(c, "value", in->value, o->num_key_value_heads, size);
    stk_val mask = attention_mask(c, in, &causal);
    plain |= !causal && products_pay(g, in, o->key_dim);
    if (plain) {
        stk_val all = weights_of(c, query, key, mask, causal);
        seen = look_by_weights(c, all, value);
        if (weights) *weights = all;
    } else {
        stk_attention_options look = {.causal = causal, .mask = mask};
        seen = stk_g_attention(g, query, key, value, &look);
    }
    if (gate) seen = stk_g_mul(g, seen, gate);
    int64_t sizes[3] = {stk_g_dim(g, in->query, 0), stk_g_dim(g, in->query, 1),
                        o->num_heads * size};
    return stk_g_reshape(g, seen, 3, sizes);
}

/* [b, heads, t, s] of the folded batch -> [batch.., heads, steps of the query.., steps of the key..] */
static stk_val unfolded_weights(stk_graph *g, stk_val weights, const mha_inputs *in,
                                const folding *f)
{
    int64_t sizes[3 * STK_MAX_RANK];
    int32_t n = 0, others = f->rank - 1 - f->natt;
    if (f->plain) return weights;
    for (int32_t i = 0; i < others; i++) sizes[n++] = stk_g_dim(g, in->query, f->perm[i]);
    sizes[n++] = stk_g_dim(g, weights, 1);
    for (int32_t side = 0; side < 2; side++)
        for (int32_t i = 0; i < f->natt; i++)
            sizes[n++] = stk_g_dim(g, side ? in->value : in->query, f->perm[others + i]);
    return stk_g_reshape(g, weights, n, sizes);
}

static void call_mha(stk_layer_call *c)
{
    const mha *o = c->config;
    stk_graph *g = c->g;
    mha_inputs in = {0}, flat;
    folding f = {0};
    stk_val weights = 0;
    bool show = stk_json_bool(stk_json_get(c->arguments, "return_attention_scores"), false);
    int64_t shape[STK_MAX_RANK] = {o->num_heads,
                                   o->value_dim == STK_NONE ? o->key_dim : o->value_dim};
    int32_t nout = o->output_shape.n > 0 ? o->output_shape.n : 1;
    if (!sort_inputs(c, &in) || !find_axes(c, &in, &f) || !fits_folding(c, &in, &f)) return;
    if (nout > STK_MAX_RANK - 2) {
        stk_c_fail(c, STK_ERR_RANGE, "output_shape of %d sizes", nout);
        return;
    }
    flat = in;
    flat.query = folded(g, in.query, &f);
    flat.value = folded(g, in.value, &f);
    flat.key = folded(g, in.key, &f);
    if (in.attention_mask) flat.attention_mask = folded_mask(g, in.attention_mask, &in, &f);
    stk_val y = attended(c, &flat, shape[1], show ? &weights : NULL);
    shape[2] = stk_g_dim(g, in.query, -1);
    for (int32_t i = 0; i < o->output_shape.n; i++) shape[2 + i] = o->output_shape.v[i];
    y = project(c, "attention_output", y, 2 + nout, shape, 2);
    c->y[0] = unfolded(g, y, in.query, &f, nout, shape + 2);
    c->ymask[0] = in.query_mask;
    if (show) {
        c->ny = 2;
        c->y[1] = unfolded_weights(g, weights, &in, &f);
    }
}
#define MHA(member, kind_, ...) STK_FIELD(mha, member, kind_, __VA_ARGS__)
static const stk_config_field mha_fields[] = {
    MHA(num_heads, INT, NULL, .low = 1),
    MHA(key_dim, INT, NULL, .low = 1),
    MHA(value_dim, INT, "None"),
    MHA(dropout, REAL, "0"),
    MHA(use_bias, BOOL, "True"),
    MHA(use_gate, BOOL, "False"),
    MHA(output_shape, INTS, "None"),
    MHA(attention_axes, INTS, "None"),
    MHA(sliding_window, INT, "None", .low = 1),
    {.name = "flash_attention", .kind = STK_FIELD_NULL, .fallback = "None", .input_only = true},
    MHA(kernel_initializer, INITIALIZER, "glorot_uniform"),
    MHA(bias_initializer, INITIALIZER, "zeros"),
    MHA(kernel_regularizer, REGULARIZER, "None"),
    MHA(bias_regularizer, REGULARIZER, "None"),
    {.name = "activity_regularizer", .kind = STK_FIELD_NULL, .fallback = "None"},
    MHA(kernel_constraint, CONSTRAINT, "None"),
    MHA(bias_constraint, CONSTRAINT, "None"),
    MHA(seed, INT, "None", .wide = true),
};
const stk_layer_def stk_layer_mha = {.keras_class = "MultiHeadAttention",
                                     .build_shapes = "query_shape|value_shape|key_shape",
                                     .scopes = "query=query_dense|key=key_dense|value=value_dense|"
                                               "gate=gate_dense|attention_output=output_dense",
                                     .fields = STK_FIELDS(mha, mha_fields),
                                     .min_inputs = 2,
                                     .max_inputs = 4,
                                     .mask = STK_MASK_OWN,
                                     .check = check_mha,
                                     .call = call_mha};

/* ---- GroupedQueryAttention: several heads of queries share one of keys and values -------------------------------------- */

static const stk_config_field gqa_fields[] = {
    MHA(head_dim, INT, NULL, .low = 1),
    MHA(num_query_heads, INT, NULL, .low = 1),
    MHA(num_key_value_heads, INT, NULL, .low = 1),
    MHA(dropout, REAL, "0"),
    MHA(use_bias, BOOL, "True"),
    MHA(sliding_window, INT, "None", .low = 1),
    {.name = "flash_attention", .kind = STK_FIELD_NULL, .fallback = "None", .input_only = true},
    MHA(kernel_initializer, INITIALIZER, "glorot_uniform"),
    MHA(bias_initializer, INITIALIZER, "zeros"),
    MHA(kernel_regularizer, REGULARIZER, "None"),
    MHA(bias_regularizer, REGULARIZER, "None"),
    {.name = "activity_regularizer", .kind = STK_FIELD_NULL, .fallback = "None"},
    MHA(kernel_constraint, CONSTRAINT, "None"),
    MHA(bias_constraint, CONSTRAINT, "None"),
    MHA(use_gate, BOOL, "False"),
    MHA(seed, INT, "None", .wide = true),
};
const stk_layer_def stk_layer_gqa = {.keras_class = "GroupQueryAttention",
                                     .snake = "grouped_query_attention",
                                     .build_shapes = "query_shape|value_shape|key_shape",
                                     .scopes = "query=query_dense|key=key_dense|value=value_dense|"
                                               "gate=gate_dense|attention_output=output_dense",
                                     .fields = STK_FIELDS(mha, gqa_fields),
                                     .min_inputs = 2,
                                     .max_inputs = 4,
                                     .mask = STK_MASK_OWN,
                                     .check = check_gqa,
                                     .call = call_mha};

/* ---- Attention and AdditiveAttention: one head, scores by a product or by tanh of a sum ----------------------------------- */

typedef struct attention {
    bool use_scale;
    int32_t score_mode;
    double dropout;
    int64_t seed;
} attention;
enum { SCORE_DOT, SCORE_CONCAT };

static stk_val weight_of(stk_layer_call *c, const char *name)
{
    return stk_c_weight(c, name, 0, NULL, &(stk_weight_wish){.initializer = &stk_ones});
}

/* tanh(query + key) for each pair, [b, t, s, size] */
static stk_val pairs(stk_graph *g, stk_val query, stk_val key, stk_val scale)
{
    stk_val sum = stk_g_add(g, stk_g_expand_dims(g, query, 2), stk_g_expand_dims(g, key, 1));
    return stk_g_tanh(g, scale ? stk_g_mul(g, sum, scale) : sum);
}

static stk_val attention_scores(stk_layer_call *c, stk_val query, stk_val key)
{
    const attention *o = c->config;
    const int32_t last = -1;
    stk_val scale = o->use_scale ? weight_of(c, "scale") : 0;
    if (o->score_mode == SCORE_CONCAT) {
        stk_val by = weight_of(c, "concat_score_weight");
        return stk_g_mul(c->g, stk_g_sum(c->g, pairs(c->g, query, key, scale), 1, &last, false),
                         by);
    }
    stk_val scores = stk_g_matmul_t(c->g, query, key, false, true);
    return scale ? stk_g_mul(c->g, scores, scale) : scores;
}

static stk_val additive_scores(stk_layer_call *c, stk_val query, stk_val key)
{
    const attention *o = c->config;
    const int32_t last = -1;
    int64_t size = stk_g_dim(c->g, query, 2);
    stk_val each = pairs(c->g, query, key, 0);
    if (o->use_scale)
        each = stk_g_mul(c->g, each,
                         stk_c_weight(c, "scale", 1, &size,
                                      &(stk_weight_wish){
                                          .initializer = stk_c_initializer(c, "glorot_uniform")}));
    return stk_g_sum(c->g, each, 1, &last, false);
}

static void attend_once(stk_layer_call *c, stk_val (*score)(stk_layer_call *, stk_val, stk_val))
{
    const attention *o = c->config;
    stk_graph *g = c->g;
    stk_val query = c->x[0], value = c->x[1], key = c->nx > 2 ? c->x[2] : value, mask = 0;
    if (!three_axes(c, query, "query") || !three_axes(c, value, "value") ||
        !three_axes(c, key, "key"))
        return;
    stk_val scores = score(c, query, key);
    if (c->mask[1]) mask = stk_g_expand_dims(g, c->mask[1], 1);
    if (stk_json_bool(stk_json_get(c->arguments, "use_causal_mask"), false))
        mask = both(g, mask, causal_mask(g, stk_g_dim(g, query, 1), stk_g_dim(g, key, 1)));
    if (mask) {
        double off = c->compute == STK_F16 ? 65504 : 1e9;
        stk_val cost = stk_g_cast(g, stk_g_not(g, mask), c->compute);
        scores = stk_g_sub(g, scores, stk_g_mul(g, cost, stk_g_scalar(g, c->compute, off)));
    }
    stk_val weights = stk_g_softmax(g, scores, -1);
    if (c->training && o->dropout > 0) {
        stk_random_options random = stk_c_random(c, o->seed);
        weights = stk_g_dropout(g, weights, o->dropout, NULL, &random);
    }
    stk_val y = stk_g_matmul(g, weights, value);
    if (c->mask[0])
        y = stk_g_mul(g, y, stk_g_cast(g, stk_g_expand_dims(g, c->mask[0], 2), c->compute));
    c->y[0] = y;
    c->ymask[0] = c->mask[0];
    if (stk_json_bool(stk_json_get(c->arguments, "return_attention_scores"), false)) {
        c->ny = 2;
        c->y[1] = weights;
    }
}
static void call_attention(stk_layer_call *c) { attend_once(c, attention_scores); }
static void call_additive(stk_layer_call *c) { attend_once(c, additive_scores); }

static const stk_config_field attention_fields[] = {
    STK_FIELD(attention, use_scale, BOOL, "False"),
    STK_FIELD(attention, score_mode, CHOICE, "dot", .choices = "dot|concat"),
    STK_FIELD(attention, dropout, REAL, "0"),
    STK_FIELD(attention, seed, INT, "None", .wide = true),
};
static const stk_config_field additive_fields[] = {
    STK_FIELD(attention, use_scale, BOOL, "True"),
    STK_FIELD(attention, dropout, REAL, "0"),
    STK_FIELD(attention, seed, INT, "None", .wide = true),
};
#define ATTENTION(id, class_, fields_, call_)                                                      \
    const stk_layer_def stk_layer_##id = {.keras_class = class_,                                   \
                                          .fields = STK_FIELDS(attention, fields_),                \
                                          .min_inputs = 2,                                         \
                                          .max_inputs = 3,                                         \
                                          .list = true,                                            \
                                          .mask = STK_MASK_OWN,                                    \
                                          .call = call_};
ATTENTION(attention, "Attention", attention_fields, call_attention)
ATTENTION(additive_attention, "AdditiveAttention", additive_fields, call_additive)
