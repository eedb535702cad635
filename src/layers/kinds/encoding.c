/* Numbers as categories: CategoryEncoding, Discretization. */
#include "layers/kinds/encode.h"

stk_val stk_c_encode(stk_layer_call *c, stk_val x, int32_t mode, int64_t depth, stk_dtype integer)
{
    stk_graph *g = c->g;
    int32_t rank = stk_g_rank(g, x), axis = rank > 1 ? 1 : 0;
    if (mode == STK_OUT_INT) return stk_g_cast(g, x, integer);
    x = stk_g_cast(g, x, STK_I64);
    if (mode == STK_OUT_ONE_HOT && rank > 1 && stk_g_dim(g, x, -1) == 1)
        x = stk_g_squeeze(g, x, -1);
    stk_val hot = stk_g_one_hot(g, x, depth, -1, c->compute, 1, 0);
    if (mode == STK_OUT_ONE_HOT) return hot;
    if (mode == STK_OUT_COUNT) return stk_g_sum(g, hot, 1, &axis, false);
    return rank > 1 ? stk_g_reduce_max(g, hot, 1, &axis, false) : hot;
}

/* ---- CategoryEncoding -------------------------------------------------------------------------------------------------- */

typedef struct category_encoding {
    int64_t num_tokens;
    int32_t output_mode;
    bool sparse;
} category_encoding;

static void call_category_encoding(stk_layer_call *c)
{
    const category_encoding *o = c->config;
    if (o->sparse) {
        stk_c_fail(c, STK_ERR_UNSUPPORTED, "sparse results; leave sparse out");
        return;
    }
    if (o->output_mode == STK_OUT_INT) {
        stk_c_fail(c, STK_ERR_ARGUMENT, "output_mode int; it takes one_hot, multi_hot or count");
        return;
    }
    c->y[0] = stk_c_encode(c, c->x[0], o->output_mode, o->num_tokens, STK_I64);
}
static const stk_config_field category_encoding_fields[] = {
    STK_FIELD(category_encoding, num_tokens, INT, NULL, .low = 1),
    STK_FIELD(category_encoding, output_mode, CHOICE, "multi_hot", .choices = STK_OUTPUT_MODES),
    STK_FIELD(category_encoding, sparse, BOOL, "False", .input_only = true),
};
const stk_layer_def stk_layer_category_encoding = {
    .keras_class = "CategoryEncoding",
    .fields = STK_FIELDS(category_encoding, category_encoding_fields),
    .keeps_dtype = true,
    .call = call_category_encoding};

/* ---- Discretization ------------------------------------------------------------------------------------------------------- */

typedef struct discretization {
    stk_reals bin_boundaries;
    int64_t num_bins;
    double epsilon;
    int32_t output_mode;
    bool sparse;
} discretization;

/* A bin's number is how many boundaries are not above the value. */
static void call_discretization(stk_layer_call *c)
{
    const discretization *o = c->config;
    stk_graph *g = c->g;
    if (o->bin_boundaries.n < 1) {
        stk_c_fail(
            c, STK_ERR_STATE,
            "it has no bin_boundaries; write them into the model, or adapt() it in Keras first");
        return;
    }
    if (o->sparse) {
        stk_c_fail(c, STK_ERR_UNSUPPORTED, "sparse results; leave sparse out");
        return;
    }
    stk_dtype dtype = stk_g_dtype(g, c->x[0]);
    stk_val x = stk_dtype_is_float(dtype) ? c->x[0] : stk_g_cast(g, c->x[0], STK_F32), bin = 0;
    for (int32_t i = 0; i < o->bin_boundaries.n; i++) {
        stk_val edge = stk_g_scalar(g, stk_g_dtype(g, x), o->bin_boundaries.v[i]);
        stk_val above = stk_g_cast(g, stk_g_ge(g, x, edge), STK_I64);
        bin = bin ? stk_g_add(g, bin, above) : above;
    }
    c->y[0] = stk_c_encode(c, bin, o->output_mode, o->bin_boundaries.n + 1, STK_I64);
}
static const stk_config_field discretization_fields[] = {
    STK_FIELD(discretization, bin_boundaries, REALS, "None"),
    STK_FIELD(discretization, num_bins, INT, "None"),
    STK_FIELD(discretization, epsilon, REAL, "0.01"),
    STK_FIELD(discretization, output_mode, CHOICE, "int", .choices = STK_OUTPUT_MODES),
    STK_FIELD(discretization, sparse, BOOL, "False"),
};
const stk_layer_def stk_layer_discretization = {
    .keras_class = "Discretization",
    .fields = STK_FIELDS(discretization, discretization_fields),
    .no_trainable = true,
    .keeps_dtype = true,
    .call = call_discretization};
