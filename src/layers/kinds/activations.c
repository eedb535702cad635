/* Activations that are layers of their own, with options: ReLU, LeakyReLU, ELU, PReLU, Softmax; and Identity. */
#include "layers/layer.h"
#include "layers/objects.h"

#include <math.h>

/* ---- ReLU --------------------------------------------------------------------------------------------------------------- */

typedef struct relu {
    double max_value, negative_slope, threshold;
} relu;

static const stk_config_field relu_fields[] = {
    STK_FIELD(relu, max_value, REAL, "None"),
    STK_FIELD(relu, negative_slope, REAL, "0"),
    STK_FIELD(relu, threshold, REAL, "0"),
};

static void relu_call(stk_layer_call *c)
{
    const relu *o = c->config;
    stk_relu_options options = {.negative_slope = o->negative_slope,
                                .max_value = isnan(o->max_value) ? INFINITY : o->max_value,
                                .threshold = o->threshold};
    c->y[0] = stk_g_relu_general(c->g, c->x[0], &options);
}

const stk_layer_def stk_layer_relu = {.keras_class = "ReLU",
                                      .no_build = true,
                                      .fields = STK_FIELDS(relu, relu_fields),
                                      .mask = STK_MASK_PASSES,
                                      .call = relu_call};

/* ---- LeakyReLU, ELU --------------------------------------------------------------------------------------------------------- */

typedef struct slope {
    double negative_slope, alpha;
} slope;

static const stk_config_field leaky_relu_fields[] = {STK_FIELD(slope, negative_slope, REAL, "0.3")};
static const stk_config_field elu_fields[] = {STK_FIELD(slope, alpha, REAL, "1")};

static void leaky_relu_call(stk_layer_call *c)
{
    c->y[0] = stk_g_leaky_relu(c->g, c->x[0], ((const slope *)c->config)->negative_slope);
}
static void elu_call(stk_layer_call *c)
{
    c->y[0] = stk_g_elu(c->g, c->x[0], ((const slope *)c->config)->alpha);
}

const stk_layer_def stk_layer_leaky_relu = {.keras_class = "LeakyReLU",
                                            .no_build = true,
                                            .fields = STK_FIELDS(slope, leaky_relu_fields),
                                            .mask = STK_MASK_PASSES,
                                            .call = leaky_relu_call};
const stk_layer_def stk_layer_elu = {.keras_class = "ELU",
                                     .no_build = true,
                                     .fields = STK_FIELDS(slope, elu_fields),
                                     .mask = STK_MASK_PASSES,
                                     .call = elu_call};

/* ---- PReLU ------------------------------------------------------------------------------------------------------------------ */

typedef struct prelu {
    const stk_object *alpha_initializer, *alpha_regularizer, *alpha_constraint;
    stk_ints shared_axes;
} prelu;

static const stk_config_field prelu_fields[] = {
    STK_FIELD(prelu, alpha_initializer, INITIALIZER, "zeros"),
    STK_FIELD(prelu, alpha_regularizer, REGULARIZER, "None"),
    STK_FIELD(prelu, alpha_constraint, CONSTRAINT, "None"),
    STK_FIELD(prelu, shared_axes, INTS, "None"),
};

static void prelu_call(stk_layer_call *c)
{
    const prelu *o = c->config;
    stk_graph *g = c->g;
    if (!stk_c_rank(c, 0, 2, STK_MAX_RANK)) return;
    stk_shape s = stk_c_shape(c, 0);
    for (int32_t i = 0; i < o->shared_axes.n; i++) {
        int32_t axis = stk_c_axis(c, 0, o->shared_axes.v[i]);
        if (axis < 1) {
            stk_c_fail(c, STK_ERR_RANGE, "shared_axes count from 1, behind the batch");
            return;
        }
        s.dim[axis] = 1;
    }
    stk_val alpha = stk_c_weight(c, "alpha", s.rank - 1, s.dim + 1, STK_WISH(o, alpha));
    stk_val x = c->x[0], below = stk_g_mul(g, alpha, stk_g_relu(g, stk_g_neg(g, x)));
    c->y[0] = stk_g_sub(g, stk_g_relu(g, x), below);
}

const stk_layer_def stk_layer_prelu = {.keras_class = "PReLU",
                                       .fields = STK_FIELDS(prelu, prelu_fields),
                                       .mask = STK_MASK_PASSES,
                                       .call = prelu_call};

/* ---- Softmax ------------------------------------------------------------------------------------------------------------------ */

typedef struct softmax {
    stk_ints axis;
} softmax;

static const stk_config_field softmax_fields[] = {STK_FIELD(softmax, axis, INTS, "-1")};

static stk_val softmax_over(stk_layer_call *c, stk_val x)
{
    const softmax *o = c->config;
    stk_graph *g = c->g;
    int32_t axes[STK_MAX_RANK];
    for (int32_t i = 0; i < o->axis.n; i++) axes[i] = (int32_t)o->axis.v[i];
    if (o->axis.n == 1) return stk_g_softmax(g, x, axes[0]);
    stk_val top = stk_g_reduce_max(g, x, o->axis.n, axes, true);
    stk_val e = stk_g_exp(g, stk_g_sub(g, x, top));
    return stk_g_div(g, e, stk_g_sum(g, e, o->axis.n, axes, true));
}

static void softmax_call(stk_layer_call *c)
{
    stk_graph *g = c->g;
    stk_val x = c->x[0], mask = c->mask[0];
    double far = c->compute == STK_F16 ? -3e4 : -1e9; /* Keras' large negative number */
    if (mask) {
        mask = stk_g_cast(g, mask, STK_BOOL);
        x = stk_g_select(g, mask, x, stk_g_scalar(g, stk_g_dtype(g, x), far));
    }
    stk_val y = softmax_over(c, x);
    c->y[0] = mask ? stk_g_select(g, mask, y, stk_g_scalar(g, stk_g_dtype(g, y), 0)) : y;
}

const stk_layer_def stk_layer_softmax = {.keras_class = "Softmax",
                                         .no_build = true,
                                         .fields = STK_FIELDS(softmax, softmax_fields),
                                         .mask = STK_MASK_PASSES,
                                         .call = softmax_call};

/* ---- Identity, ActivityRegularization ----------------------------------------------------------------------------------------- */

static void identity_call(stk_layer_call *c) { c->y[0] = c->x[0]; }

const stk_layer_def stk_layer_identity = {
    .keras_class = "Identity", .no_build = true, .mask = STK_MASK_PASSES, .call = identity_call};

static const stk_config_field activity_fields[] = {
    STK_FIELD(stk_regularizer, l1, REAL, "0"),
    STK_FIELD(stk_regularizer, l2, REAL, "0"),
};

static void activity_call(stk_layer_call *c)
{
    const stk_object_def *def = stk_object_find(STK_REGULARIZERS, "L1L2");
    c->y[0] = stk_c_activity(c, &(stk_object){def, c->config}, c->x[0]);
}

const stk_layer_def stk_layer_activity_regularization = {
    .keras_class = "ActivityRegularization",
    .no_build = true,
    .fields = STK_FIELDS(stk_regularizer, activity_fields),
    .mask = STK_MASK_PASSES,
    .call = activity_call};
