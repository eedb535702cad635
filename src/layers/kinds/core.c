/* Input, Dense, Activation, and a model as a layer. */
#include "layers/activation.h"
#include "layers/model.h"
#include "layers/objects.h"

#include <string.h>

/* ---- InputLayer ---------------------------------------------------------------------------------------------------- */

static const stk_config_field input_fields[] = {
    STK_FIELD(stk_input_config, shape, INTS, "None", .input_only = true),
    STK_FIELD(stk_input_config, batch_size, INT, "None", .input_only = true),
    STK_FIELD(stk_input_config, batch_shape, INTS, "None", .sizes = true),
    STK_FIELD(stk_input_config, dtype, TEXT, "float32"),
    STK_FIELD(stk_input_config, sparse, BOOL, "False"),
    STK_FIELD(stk_input_config, ragged, BOOL, "False"),
    STK_FIELD(stk_input_config, name, TEXT, "None"),
    STK_FIELD(stk_input_config, optional, BOOL, "False"),
};

/* shape=(28, 28) is batch_shape=(None, 28, 28). */
static stk_status check_input(stk_layer_state *layer, stk_error *err)
{
    stk_input_config *o = layer->config;
    if (o->shape.n >= 0 && o->shape.n < STK_MAX_RANK) {
        o->batch_shape = (stk_ints){.n = o->shape.n + 1};
        o->batch_shape.v[0] = o->batch_size == STK_NONE ? -1 : o->batch_size;
        for (int32_t i = 0; i < o->shape.n; i++) o->batch_shape.v[i + 1] = o->shape.v[i];
    }
    if (o->batch_shape.n < 1)
        return stk_fail(err, STK_ERR_FORMAT,
                        "Input: option 'shape' is missing, as in Input(shape=(28, 28, 1))");
    if (o->sparse || o->ragged)
        return stk_fail(err, STK_ERR_UNSUPPORTED,
                        "Input: sparse and ragged inputs are not supported");
    return STK_OK;
}

stk_status stk_input_type(const stk_layer_state *layer, stk_msym *out, stk_error *err)
{
    const stk_input_config *o = layer->config;
    *out = (stk_msym){.rank = o->batch_shape.n};
    for (int32_t i = 0; i < out->rank; i++)
        out->dim[i] = o->batch_shape.v[i] < 0 ? -1 : o->batch_shape.v[i];
    if (o->dtype && !strcmp(o->dtype, "string"))
        return stk_fail(
            err, STK_ERR_UNSUPPORTED,
            "layer '%s' (InputLayer): models compute with numbers, there are no tensors "
            "of strings; look words up where the data is made, and start the model "
            "with their numbers",
            layer->name);
    if (!o->dtype || !stk_dtype_parse(o->dtype, &out->dtype) || out->dtype == STK_STRING)
        return stk_fail(err, STK_ERR_DTYPE,
                        "layer '%s' (InputLayer): dtype '%.40s' is not supported", layer->name,
                        o->dtype ? o->dtype : "None");
    return STK_OK;
}

static void input_call(stk_layer_call *c) /* models set their inputs themselves */
{
    c->y[0] = c->nx ? c->x[0] : 0;
}

const stk_layer_def stk_layer_input = {.keras_class = "InputLayer",
                                       .fields = STK_FIELDS(stk_input_config, input_fields),
                                       .max_inputs = 1,
                                       .keeps_dtype = true,
                                       .mask = STK_MASK_PASSES,
                                       .check = check_input,
                                       .call = input_call};

/* ---- Dense ------------------------------------------------------------------------------------------------------------- */

typedef struct dense {
    int64_t units;
    stk_activation activation;
    bool use_bias;
    const stk_object *kernel_initializer, *bias_initializer, *kernel_regularizer, *bias_regularizer,
        *activity_regularizer, *kernel_constraint, *bias_constraint;
} dense;

static const stk_config_field dense_fields[] = {
    STK_FIELD(dense, units, INT, NULL, .low = 1),
    STK_FIELD(dense, activation, ACTIVATION, "None"),
    STK_FIELD(dense, use_bias, BOOL, "True"),
    STK_FIELD(dense, kernel_initializer, INITIALIZER, "glorot_uniform"),
    STK_FIELD(dense, bias_initializer, INITIALIZER, "zeros"),
    STK_FIELD(dense, kernel_regularizer, REGULARIZER, "None"),
    STK_FIELD(dense, bias_regularizer, REGULARIZER, "None"),
    STK_FIELD(dense, activity_regularizer, REGULARIZER, "None", .optional = true),
    STK_FIELD(dense, kernel_constraint, CONSTRAINT, "None"),
    STK_FIELD(dense, bias_constraint, CONSTRAINT, "None"),
    {.name = "quantization_config", .kind = STK_FIELD_NULL, .fallback = "None"},
};

static void dense_call(stk_layer_call *c)
{
    const dense *o = c->config;
    if (!stk_c_rank(c, 0, 2, STK_MAX_RANK)) return;
    stk_shape s = stk_c_shape(c, 0);
    int64_t in = s.dim[s.rank - 1];
    stk_val kernel = stk_c_weight(c, "kernel", 2, (int64_t[]){in, o->units}, STK_WISH(o, kernel));
    /* All axes but the last are one for the product: one large matrix instead of many small ones. */
    stk_val x = s.rank > 2 ? stk_g_reshape(c->g, c->x[0], 2, (int64_t[]){-1, in}) : c->x[0];
    stk_val y = stk_g_matmul(c->g, x, kernel);
    if (o->use_bias)
        y = stk_g_add(c->g, y, stk_c_weight(c, "bias", 1, &o->units, STK_WISH(o, bias)));
    s.dim[s.rank - 1] = o->units;
    bool by_row = s.rank > 2 && o->activation.def; /* elementwise, or along the last axis */
    if (by_row) y = stk_c_activate(c, &o->activation, y);
    if (by_row) s.dim[s.rank - 1] = stk_g_dim(c->g, y, 1);
    if (s.rank > 2) y = stk_g_reshape(c->g, y, s.rank, s.dim);
    if (!by_row) y = stk_c_activate(c, &o->activation, y);
    c->y[0] = stk_c_activity(c, o->activity_regularizer, y);
}

const stk_layer_def stk_layer_dense = {.keras_class = "Dense",
                                       .fields = STK_FIELDS(dense, dense_fields),
                                       .mask = STK_MASK_PASSES,
                                       .call = dense_call};

/* ---- Activation -------------------------------------------------------------------------------------------------------- */

typedef struct activation {
    stk_activation activation;
    const stk_object *activity_regularizer;
} activation;

static const stk_config_field activation_fields[] = {
    STK_FIELD(activation, activation, ACTIVATION, NULL),
    STK_FIELD(activation, activity_regularizer, REGULARIZER, "None", .optional = true),
};

static void activation_call(stk_layer_call *c)
{
    const activation *o = c->config;
    c->y[0] =
        stk_c_activity(c, o->activity_regularizer, stk_c_activate(c, &o->activation, c->x[0]));
}

const stk_layer_def stk_layer_activation = {.keras_class = "Activation",
                                            .no_build = true,
                                            .fields = STK_FIELDS(activation, activation_fields),
                                            .mask = STK_MASK_PASSES,
                                            .call = activation_call};

/* ---- a model as a layer: its calls are run by model_call.c, its JSON read by model_read.c ------------------------------- */

static void model_call(stk_layer_call *c) { stk_c_model(c, c->layer->inner); }

const stk_layer_def stk_layer_model = {
    .keras_class = "Functional", .keeps_dtype = true, .mask = STK_MASK_OWN, .call = model_call};
