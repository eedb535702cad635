/* Normalisation by statistics of the batch, of each example, or of groups of channels. */
#include "layers/layer.h"
#include "layers/objects.h"

#include <math.h>
#include <string.h>

/* Options that the affine part of all of them has. */
typedef struct affine {
    bool center, scale;
    const stk_object *beta_initializer, *gamma_initializer;
    const stk_object *beta_regularizer, *gamma_regularizer;
    const stk_object *beta_constraint, *gamma_constraint;
} affine;

/* The rows of a table for a struct that holds an `affine` named a; the macro spells offsets once. */
#define AFFINE(type, member, kind_, fallback_)                                                     \
    {                                                                                              \
        .name = #member, .kind = STK_FIELD_##kind_, .offset = offsetof(type, a.member),            \
        .fallback = (fallback_)                                                                    \
    }
#define AFFINE_SWITCHES(type) AFFINE(type, center, BOOL, "True"), AFFINE(type, scale, BOOL, "True")
#define AFFINE_STARTS(type)                                                                        \
    AFFINE(type, beta_initializer, INITIALIZER, "zeros"),                                          \
        AFFINE(type, gamma_initializer, INITIALIZER, "ones")
#define AFFINE_RULES(type)                                                                         \
    AFFINE(type, beta_regularizer, REGULARIZER, "None"),                                           \
        AFFINE(type, gamma_regularizer, REGULARIZER, "None"),                                      \
        AFFINE(type, beta_constraint, CONSTRAINT, "None"),                                         \
        AFFINE(type, gamma_constraint, CONSTRAINT, "None")

/* gamma and beta as variables (0 where switched off), cast to dtype: Keras keeps them out of half types too. */
static void affine_weights(stk_layer_call *c, const affine *a, int32_t rank, const int64_t *shape,
                           stk_dtype dtype, stk_val *gamma, stk_val *beta)
{
    *gamma = *beta = 0;
    if (a->scale)
        *gamma = stk_g_cast(c->g,
                            stk_c_weight(c, "gamma", rank, shape,
                                         &(stk_weight_wish){.initializer = a->gamma_initializer,
                                                            .regularizer = a->gamma_regularizer,
                                                            .constraint = a->gamma_constraint,
                                                            .as_is = true}),
                            dtype);
    if (a->center)
        *beta = stk_g_cast(c->g,
                           stk_c_weight(c, "beta", rank, shape,
                                        &(stk_weight_wish){.initializer = a->beta_initializer,
                                                           .regularizer = a->beta_regularizer,
                                                           .constraint = a->beta_constraint,
                                                           .as_is = true}),
                           dtype);
}

/* Half types are normalised in float32: their sums of squares overflow. */
static stk_dtype wide(stk_dtype dtype)
{
    return dtype == STK_F16 || dtype == STK_BF16 ? STK_F32 : dtype;
}

/* A vector along `axis` of something with `rank` axes. */
static stk_val along(stk_graph *g, stk_val v, int32_t rank, int32_t axis)
{
    int64_t shape[STK_MAX_RANK];
    for (int32_t i = 0; i < rank; i++) shape[i] = i == axis ? -1 : 1;
    return v ? stk_g_reshape(g, v, rank, shape) : 0;
}

static stk_val scale_and_shift(stk_graph *g, stk_val x, stk_val gamma, stk_val beta)
{
    if (gamma) x = stk_g_mul(g, x, gamma);
    return beta ? stk_g_add(g, x, beta) : x;
}

/* ---- BatchNormalization -------------------------------------------------------------------------------------------- */

typedef struct batch_norm {
    int64_t axis;
    double momentum, epsilon;
    affine a;
    const stk_object *moving_mean_initializer, *moving_variance_initializer;
    bool synchronized, renorm;
    double renorm_momentum;
    const stk_json *renorm_clipping;
    double rmin, rmax, dmax; /* made by check, of renorm_clipping; NaN: no limit */
    stk_initializer stddev_values;
    stk_object stddev_initializer; /* made by check: the root of moving_variance_initializer */
} batch_norm;

static double limit_of(const stk_json *limits, const char *name)
{
    return stk_json_double(stk_json_get(limits, name), NAN);
}

static stk_status check_batch_norm(stk_layer_state *layer, stk_error *err)
{
    batch_norm *o = layer->config;
    const stk_json *limits = o->renorm_clipping;
    if (!o->renorm) return STK_OK;
    for (int64_t i = 0; limits && i < limits->count; i++) {
        const char *name = limits->kind == STK_JSON_OBJECT ? limits->items[i].name : "a list";
        if (strcmp(name, "rmin") && strcmp(name, "rmax") && strcmp(name, "dmax"))
            return stk_layer_refuse(layer, err, STK_ERR_ARGUMENT,
                                    "renorm_clipping has '%s'; it takes rmin, rmax and dmax", name);
    }
    o->rmin = limit_of(limits, "rmin");
    o->rmax = limit_of(limits, "rmax");
    o->dmax = limit_of(limits, "dmax");
    if (o->rmax < o->rmin || o->dmax < 0)
        return stk_layer_refuse(layer, err, STK_ERR_ARGUMENT,
                                "renorm_clipping: rmax must not be below rmin, nor dmax below 0");
    o->stddev_values = (stk_initializer){.seed = STK_NONE, .rest = o->moving_variance_initializer};
    o->stddev_initializer = (stk_object){&stk_root_of, &o->stddev_values};
    return STK_OK;
}

static stk_val moving(stk_layer_call *c, const char *name, int64_t n, const stk_object *start)
{
    return stk_c_weight(c, name, 1, &n,
                        &(stk_weight_wish){.initializer = start, .fixed = true, .as_is = true});
}

/* momentum old + (1 - momentum) batch, as one interpolation. */
static stk_val followed(stk_layer_call *c, stk_val old, stk_val batch, double momentum)
{
    stk_dtype dtype = stk_g_dtype(c->g, old);
    stk_val part = stk_g_scalar(c->g, dtype, 1 - momentum);
    batch = stk_g_cast(c->g, batch, dtype);
    return stk_g_add(c->g, old, stk_g_mul(c->g, stk_g_sub(c->g, batch, old), part));
}

static void follow(stk_layer_call *c, const char *name, stk_val old, stk_val batch, double momentum)
{
    stk_c_update(c, name, followed(c, old, batch, momentum));
}

/* Statistics over the places that the mask leaves; sums as Keras makes them. */
static void masked_moments(stk_layer_call *c, stk_val x, int32_t axis, stk_val *mean,
                           stk_val *variance)
{
    stk_graph *g = c->g;
    int32_t rank = stk_g_rank(g, x), axes[STK_MAX_RANK], n = 0;
    stk_dtype dtype = stk_g_dtype(g, x);
    for (int32_t i = 0; i < rank; i++)
        if (i != axis) axes[n++] = i;
    stk_val keep = stk_g_cast(g, stk_g_expand_dims(g, c->mask[0], -1), dtype);
    stk_shape s = stk_c_shape(c, 0);
    keep = stk_g_broadcast(g, keep, s.rank, s.dim);
    stk_val count = stk_g_add(g, stk_g_sum(g, keep, n, axes, true), stk_g_scalar(g, dtype, 1e-7));
    *mean = stk_g_div(g, stk_g_sum(g, stk_g_mul(g, x, keep), n, axes, true), count);
    stk_val off = stk_g_mul(g, stk_g_sub(g, x, *mean), keep);
    *variance = stk_g_div(g, stk_g_sum(g, stk_g_square(g, off), n, axes, true), count);
}

static stk_val masked_batch_norm(stk_layer_call *c, stk_val x, int32_t axis, double epsilon,
                                 stk_val gamma, stk_val beta, stk_val *mean, stk_val *variance)
{
    stk_graph *g = c->g;
    int32_t rank = stk_g_rank(g, x);
    int64_t n = stk_g_dim(g, x, axis);
    masked_moments(c, x, axis, mean, variance);
    stk_val shifted = stk_g_add(g, *variance, stk_g_scalar(g, stk_g_dtype(g, x), epsilon));
    stk_val y = stk_g_mul(g, stk_g_sub(g, x, *mean), stk_g_rsqrt(g, shifted));
    *mean = stk_g_reshape(g, *mean, 1, &n);
    *variance = stk_g_reshape(g, *variance, 1, &n);
    return scale_and_shift(g, y, along(g, gamma, rank, axis), along(g, beta, rank, axis));
}

/* ---- renorm: the batch's statistics, corrected towards those of many batches ------------------------------------------ */

typedef struct renorm {
    stk_val moving_mean, moving_variance, moving_stddev, mean, stddev; /* what is followed */
} renorm;

static stk_val within(stk_graph *g, stk_val x, double low, double high)
{
    if (!isnan(low)) x = stk_g_max(g, x, stk_g_scalar(g, stk_g_dtype(g, x), low));
    return isnan(high) ? x : stk_g_min(g, x, stk_g_scalar(g, stk_g_dtype(g, x), high));
}

/* gamma and beta for a plain batch norm: (x r + d) gamma + beta = x (r gamma) + (d gamma + beta). r and d are numbers, not
 * functions of the weights. */
static void corrected(stk_layer_call *c, const renorm *old, stk_val mean, stk_val stddev,
                      stk_val *gamma, stk_val *beta)
{
    const batch_norm *o = c->config;
    stk_graph *g = c->g;
    stk_dtype dtype = stk_g_dtype(g, mean);
    stk_val least = stk_g_scalar(g, dtype, sqrt(o->epsilon));
    stk_val usual = stk_g_max(g, stk_g_cast(g, old->stddev, dtype), least);
    stk_val r = stk_g_div(g, stddev, usual);
    stk_val d = stk_g_div(g, stk_g_sub(g, mean, stk_g_cast(g, old->mean, dtype)), usual);
    r = stk_g_stop_gradient(g, within(g, r, o->rmin, o->rmax));
    d = stk_g_stop_gradient(g, within(g, d, -o->dmax, o->dmax));
    if (*gamma) d = stk_g_mul(g, d, *gamma);
    *gamma = *gamma ? stk_g_mul(g, r, *gamma) : r;
    *beta = *beta ? stk_g_add(g, d, *beta) : d;
}

static stk_val call_renorm(stk_layer_call *c, const renorm *old, stk_val x, int32_t axis,
                           stk_val gamma, stk_val beta)
{
    const batch_norm *o = c->config;
    stk_graph *g = c->g;
    int32_t rank = stk_g_rank(g, x);
    stk_dtype dtype = stk_g_dtype(g, x), kept = stk_g_dtype(g, old->moving_stddev);
    stk_val mean, variance, epsilon = stk_g_scalar(g, dtype, o->epsilon);
    stk_val y = c->mask[0] ? masked_batch_norm(c, x, axis, o->epsilon, 0, 0, &mean, &variance)
                           : stk_g_batch_norm(g, x, 0, 0, axis, o->epsilon, &mean, &variance);
    stk_val stddev = stk_g_sqrt(g, stk_g_add(g, variance, epsilon));
    corrected(c, old, mean, stddev, &gamma, &beta);
    follow(c, "renorm_mean", old->mean, mean, o->renorm_momentum);
    follow(c, "renorm_stddev", old->stddev, stddev, o->renorm_momentum);
    follow(c, "moving_mean", old->moving_mean, mean, o->momentum);
    stk_val next = followed(c, old->moving_stddev, stddev, o->momentum);
    stk_c_update(c, "moving_stddev", next);
    stk_c_update(
        c, "moving_variance",
        stk_g_relu(g, stk_g_sub(g, stk_g_square(g, next), stk_g_scalar(g, kept, o->epsilon))));
    return scale_and_shift(g, y, along(g, gamma, rank, axis), along(g, beta, rank, axis));
}

static void call_batch_norm(stk_layer_call *c)
{
    const batch_norm *o = c->config;
    int32_t axis = stk_c_axis(c, 0, o->axis);
    if (axis < 0) return;
    int64_t n = stk_c_dim(c, 0, axis);
    stk_dtype dtype = wide(c->compute);
    stk_val gamma, beta, mean, variance, y, x = stk_g_cast(c->g, c->x[0], dtype);
    affine_weights(c, &o->a, 1, &n, dtype, &gamma, &beta);
    stk_val old_mean = moving(c, "moving_mean", n, o->moving_mean_initializer);
    stk_val old_variance = moving(c, "moving_variance", n, o->moving_variance_initializer);
    renorm old = {old_mean, old_variance, 0, 0, 0};
    if (o->renorm) {
        old.moving_stddev = moving(c, "moving_stddev", n, &o->stddev_initializer);
        old.mean = moving(c, "renorm_mean", n, o->moving_mean_initializer);
        old.stddev = moving(c, "renorm_stddev", n, &o->stddev_initializer);
    }
    if (o->renorm && c->training && c->trainable) {
        y = call_renorm(c, &old, x, axis, gamma, beta);
    } else if (c->training && c->trainable) {
        y = c->mask[0] ? masked_batch_norm(c, x, axis, o->epsilon, gamma, beta, &mean, &variance)
                       : stk_g_batch_norm(c->g, x, gamma, beta, axis, o->epsilon, &mean, &variance);
        follow(c, "moving_mean", old_mean, mean, o->momentum);
        follow(c, "moving_variance", old_variance, variance, o->momentum);
    } else {
        y = stk_g_batch_norm_infer(c->g, x, gamma, beta, stk_g_cast(c->g, old_mean, dtype),
                                   stk_g_cast(c->g, old_variance, dtype), axis, o->epsilon);
    }
    c->y[0] = stk_g_cast(c->g, y, c->compute);
}
static const stk_config_field batch_norm_fields[] = {
    STK_FIELD(batch_norm, axis, INT, "-1"),
    STK_FIELD(batch_norm, momentum, REAL, "0.99"),
    STK_FIELD(batch_norm, epsilon, REAL, "0.001"),
    AFFINE_SWITCHES(batch_norm),
    AFFINE_STARTS(batch_norm),
    STK_FIELD(batch_norm, moving_mean_initializer, INITIALIZER, "zeros"),
    STK_FIELD(batch_norm, moving_variance_initializer, INITIALIZER, "ones"),
    AFFINE_RULES(batch_norm),
    STK_FIELD(batch_norm, synchronized, BOOL, "False"),
    STK_FIELD(batch_norm, renorm, BOOL, "False"),
    STK_FIELD(batch_norm, renorm_clipping, JSON, "None"),
    STK_FIELD(batch_norm, renorm_momentum, REAL, "0.99"),
};
const stk_layer_def stk_layer_batch_norm = {.keras_class = "BatchNormalization",
                                            .fields = STK_FIELDS(batch_norm, batch_norm_fields),
                                            .mask = STK_MASK_PASSES,
                                            .check = check_batch_norm,
                                            .call = call_batch_norm};

/* ---- LayerNormalization ----------------------------------------------------------------------------------------------- */

typedef struct layer_norm {
    stk_ints axis;
    double epsilon;
    affine a;
    bool rms_scaling;
} layer_norm;

/* Axes as places in rising order; their number, or -1 after a mistake. */
static int32_t sorted_axes(stk_layer_call *c, const stk_ints *given, int32_t *axes)
{
    bool used[STK_MAX_RANK] = {false};
    int32_t rank = stk_g_rank(c->g, c->x[0]), n = 0;
    for (int32_t i = 0; i < given->n; i++) {
        int32_t axis = stk_c_axis(c, 0, given->v[i]);
        if (axis < 0) return -1;
        used[axis] = true;
    }
    for (int32_t i = 0; i < rank; i++)
        if (used[i]) axes[n++] = i;
    if (n) return n;
    stk_c_fail(c, STK_ERR_ARGUMENT, "axis is empty; it takes at least one");
    return -1;
}

/* Any axes: mean and variance by reductions. */
static stk_val general_layer_norm(stk_graph *g, stk_val x, int32_t n, const int32_t *axes,
                                  const layer_norm *o, stk_val gamma, stk_val beta)
{
    int64_t shape[STK_MAX_RANK];
    int32_t rank = stk_g_rank(g, x);
    for (int32_t i = 0; i < rank; i++) shape[i] = 1;
    for (int32_t i = 0; i < n; i++) shape[axes[i]] = stk_g_dim(g, x, axes[i]);
    if (gamma) gamma = stk_g_reshape(g, gamma, rank, shape);
    if (beta) beta = stk_g_reshape(g, beta, rank, shape);
    stk_val off = stk_g_sub(g, x, stk_g_mean(g, x, n, axes, true));
    stk_val variance = stk_g_mean(g, stk_g_square(g, off), n, axes, true);
    stk_val by =
        stk_g_rsqrt(g, stk_g_add(g, variance, stk_g_scalar(g, stk_g_dtype(g, x), o->epsilon)));
    /* Keras' rms_scaling divides the input itself, by the deviation, and adds no beta. */
    if (o->rms_scaling) return scale_and_shift(g, stk_g_mul(g, x, by), gamma, 0);
    return scale_and_shift(g, stk_g_mul(g, off, by), gamma, beta);
}

static void call_layer_norm(stk_layer_call *c)
{
    const layer_norm *o = c->config;
    int32_t axes[STK_MAX_RANK], rank = stk_g_rank(c->g, c->x[0]);
    int32_t n = sorted_axes(c, &o->axis, axes);
    int64_t shape[STK_MAX_RANK];
    if (n < 0) return;
    for (int32_t i = 0; i < n; i++) shape[i] = stk_c_dim(c, 0, axes[i]);
    stk_dtype dtype = wide(c->compute);
    stk_val gamma, beta, x = stk_g_cast(c->g, c->x[0], dtype);
    affine_weights(c, &o->a, n, shape, dtype, &gamma, &beta);
    stk_val y = axes[0] == rank - n && !o->rms_scaling
                    ? stk_g_layer_norm(c->g, x, gamma, beta, n, o->epsilon)
                    : general_layer_norm(c->g, x, n, axes, o, gamma, beta);
    c->y[0] = stk_g_cast(c->g, y, c->compute);
}
static const stk_config_field layer_norm_fields[] = {
    STK_FIELD(layer_norm, axis, INTS, "-1"),
    STK_FIELD(layer_norm, epsilon, REAL, "0.001"),
    AFFINE_SWITCHES(layer_norm),
    STK_FIELD(layer_norm, rms_scaling, BOOL, "False"),
    AFFINE_STARTS(layer_norm),
    AFFINE_RULES(layer_norm),
};
const stk_layer_def stk_layer_layer_norm = {.keras_class = "LayerNormalization",
                                            .fields = STK_FIELDS(layer_norm, layer_norm_fields),
                                            .mask = STK_MASK_PASSES,
                                            .call = call_layer_norm};

/* ---- GroupNormalization ------------------------------------------------------------------------------------------------- */

typedef struct group_norm {
    int64_t groups, axis; /* groups -1: one per channel */
    double epsilon;
    affine a;
} group_norm;

/* Swaps an axis with the last one; the same again brings it back. */
static stk_val swap_last(stk_graph *g, stk_val x, int32_t axis)
{
    int32_t perm[STK_MAX_RANK], rank = stk_g_rank(g, x);
    if (axis == rank - 1) return x;
    for (int32_t i = 0; i < rank; i++) perm[i] = i;
    perm[axis] = rank - 1;
    perm[rank - 1] = axis;
    return stk_g_transpose(g, x, perm);
}

static void call_group_norm(stk_layer_call *c)
{
    const group_norm *o = c->config;
    int32_t axis = stk_c_axis(c, 0, o->axis);
    if (axis < 0 || !stk_c_rank(c, 0, 2, STK_MAX_RANK)) return;
    int64_t n = stk_c_dim(c, 0, axis), groups = o->groups == -1 ? n : o->groups;
    if (groups < 1 || n % groups) {
        stk_c_fail(c, STK_ERR_SHAPE, "%lld groups of %lld channels; the groups must divide them",
                   (long long)groups, (long long)n);
        return;
    }
    stk_dtype dtype = wide(c->compute);
    stk_val gamma, beta, x = swap_last(c->g, stk_g_cast(c->g, c->x[0], dtype), axis);
    affine_weights(c, &o->a, 1, &n, dtype, &gamma, &beta);
    stk_val y = stk_g_group_norm(c->g, x, gamma, beta, (int32_t)groups, o->epsilon);
    c->y[0] = stk_g_cast(c->g, swap_last(c->g, y, axis), c->compute);
}
static const stk_config_field group_norm_fields[] = {
    STK_FIELD(group_norm, groups, INT, "32"),
    STK_FIELD(group_norm, axis, INT, "-1"),
    STK_FIELD(group_norm, epsilon, REAL, "0.001"),
    AFFINE_SWITCHES(group_norm),
    AFFINE_STARTS(group_norm),
    AFFINE_RULES(group_norm),
};
const stk_layer_def stk_layer_group_norm = {.keras_class = "GroupNormalization",
                                            .fields = STK_FIELDS(group_norm, group_norm_fields),
                                            .mask = STK_MASK_PASSES,
                                            .call = call_group_norm};

/* ---- UnitNormalization ---------------------------------------------------------------------------------------------------- */

typedef struct unit_norm {
    stk_ints axis;
} unit_norm;

static void call_unit_norm(stk_layer_call *c)
{
    const unit_norm *o = c->config;
    int32_t axes[STK_MAX_RANK], n = sorted_axes(c, &o->axis, axes);
    if (n > 0) c->y[0] = stk_g_unit_norm(c->g, c->x[0], n, axes, 1e-12);
}
static const stk_config_field unit_norm_fields[] = {STK_FIELD(unit_norm, axis, INTS, "-1")};
const stk_layer_def stk_layer_unit_norm = {.keras_class = "UnitNormalization",
                                           .fields = STK_FIELDS(unit_norm, unit_norm_fields),
                                           .mask = STK_MASK_PASSES,
                                           .call = call_unit_norm};

/* ---- RMSNormalization ----------------------------------------------------------------------------------------------------- */

typedef struct rms_norm {
    stk_ints axis;
    double epsilon;
} rms_norm;

static void call_rms_norm(stk_layer_call *c)
{
    const rms_norm *o = c->config;
    stk_graph *g = c->g;
    int32_t axes[STK_MAX_RANK], rank = stk_g_rank(g, c->x[0]), n = sorted_axes(c, &o->axis, axes);
    int64_t shape[STK_MAX_RANK], wide_shape[STK_MAX_RANK];
    if (n < 0) return;
    for (int32_t i = 0; i < rank; i++) wide_shape[i] = 1;
    for (int32_t i = 0; i < n; i++) wide_shape[axes[i]] = shape[i] = stk_c_dim(c, 0, axes[i]);
    stk_dtype dtype = wide(c->compute);
    stk_val x = stk_g_cast(g, c->x[0], dtype);
    stk_val scale = stk_c_weight(c, "scale", n, shape,
                                 &(stk_weight_wish){.initializer = &stk_ones, .as_is = true});
    scale = stk_g_cast(g, scale, dtype);
    if (axes[0] == rank - n) {
        c->y[0] = stk_g_cast(g, stk_g_rms_norm(g, x, scale, n, o->epsilon), c->compute);
        return;
    }
    stk_val mean = stk_g_mean(g, stk_g_square(g, x), n, axes, true);
    stk_val by = stk_g_rsqrt(g, stk_g_add(g, mean, stk_g_scalar(g, dtype, o->epsilon)));
    stk_val y = stk_g_mul(g, stk_g_mul(g, x, by), stk_g_reshape(g, scale, rank, wide_shape));
    c->y[0] = stk_g_cast(g, y, c->compute);
}
static const stk_config_field rms_norm_fields[] = {STK_FIELD(rms_norm, axis, INTS, "-1"),
                                                   STK_FIELD(rms_norm, epsilon, REAL, "1e-6")};
const stk_layer_def stk_layer_rms_norm = {.keras_class = "RMSNormalization",
                                          .snake = "rms_normalization",
                                          .fields = STK_FIELDS(rms_norm, rms_norm_fields),
                                          .call = call_rms_norm};

/* ---- LayerScale of keras.applications' ConvNeXt: a factor for each channel ---------------------------------------------- */

typedef struct layer_scale {
    double init_values;
    int64_t projection_dim;
    stk_object start; /* made by check */
    stk_initializer value;
} layer_scale;

static stk_status check_layer_scale(stk_layer_state *layer, stk_error *err)
{
    layer_scale *o = layer->config;
    const stk_object_def *constant = stk_object_find(STK_INITIALIZERS, "constant");
    if (!constant) return stk_layer_refuse(layer, err, STK_ERR_INTERNAL, "there is no constant");
    o->value = (stk_initializer){.seed = STK_NONE, .value = o->init_values};
    o->start = (stk_object){constant, &o->value};
    return STK_OK;
}

static void call_layer_scale(stk_layer_call *c)
{
    const layer_scale *o = c->config;
    stk_val by = stk_c_weight(c, "variable", 1, &o->projection_dim,
                              &(stk_weight_wish){.initializer = &o->start});
    c->y[0] = stk_g_mul(c->g, c->x[0], by);
}
static const stk_config_field layer_scale_fields[] = {
    STK_FIELD(layer_scale, init_values, REAL, NULL),
    STK_FIELD(layer_scale, projection_dim, INT, NULL, .low = 1)};
const stk_layer_def stk_layer_layer_scale = {.keras_class = "LayerScale",
                                             .module = "keras.src.applications.convnext",
                                             .fields = STK_FIELDS(layer_scale, layer_scale_fields),
                                             .check = check_layer_scale,
                                             .call = call_layer_scale};
