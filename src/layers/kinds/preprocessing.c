/* Numbers brought to a convenient range: Rescaling, and Normalization by known or measured statistics. */
#include "layers/model.h"

#include <stdio.h>
#include <string.h>

/* A constant in the compute dtype: one number, or several along the given axes of the input. */
static stk_val constant(stk_layer_call *c, const stk_reals *v, const int64_t *shape)
{
    stk_error err;
    stk_tensor *t = NULL;
    int32_t rank = v->n == 1 ? 0 : stk_g_rank(c->g, c->x[0]);
    stk_status status = stk_tensor_new(STK_F64, rank, shape, &t, &err);
    if (status == STK_OK) memcpy(t->data, v->v, (size_t)v->n * sizeof *v->v);
    stk_tensor *cast = NULL;
    if (status == STK_OK) status = stk_tensor_cast(t, c->compute, &cast, &err);
    stk_val y =
        status == STK_OK ? stk_g_const(c->g, cast) : stk_c_fail(c, status, "%s", err.message);
    stk_tensor_release(cast);
    stk_tensor_release(t);
    return y;
}

/* ---- Rescaling: x scale + offset ----------------------------------------------------------------------------------- */

typedef struct rescaling {
    stk_reals scale, offset; /* one number, or one per channel */
} rescaling;

static stk_val per_channel(stk_layer_call *c, const stk_reals *v, const char *name)
{
    int64_t shape[STK_MAX_RANK];
    int32_t rank = stk_g_rank(c->g, c->x[0]);
    for (int32_t i = 0; i < rank; i++) shape[i] = 1;
    if (rank && v->n != 1) shape[rank - 1] = v->n;
    if (v->n != 1 && (!rank || stk_c_dim(c, 0, -1) != v->n))
        return stk_c_fail(c, STK_ERR_SHAPE,
                          "%s has %d numbers; it takes one, or one for each of the last axis", name,
                          v->n);
    return constant(c, v, shape);
}

static void call_rescaling(stk_layer_call *c)
{
    const rescaling *o = c->config;
    stk_val x = stk_g_cast(c->g, c->x[0], c->compute);
    x = stk_g_mul(c->g, x, per_channel(c, &o->scale, "scale"));
    c->y[0] = stk_g_add(c->g, x, per_channel(c, &o->offset, "offset"));
}
static const stk_config_field rescaling_fields[] = {STK_FIELD(rescaling, scale, REALS, NULL),
                                                    STK_FIELD(rescaling, offset, REALS, "0")};
const stk_layer_def stk_layer_rescaling = {.keras_class = "Rescaling",
                                           .fields = STK_FIELDS(rescaling, rescaling_fields),
                                           .keeps_dtype = true,
                                           .mask = STK_MASK_PASSES,
                                           .call = call_rescaling};

/* ---- Normalization: (x - mean) / deviation ---------------------------------------------------------------------------- */

typedef struct normalization {
    stk_ints axis; /* axes that keep their own statistics; None: one for all */
    stk_reals mean, variance;
    bool invert;
} normalization;

static stk_status check_normalization(stk_layer_state *layer, stk_error *err)
{
    const normalization *o = layer->config;
    if (o->mean.n == o->variance.n) return STK_OK;
    return stk_layer_refuse(layer, err, STK_ERR_ARGUMENT,
                            "mean and variance are given together, with the same "
                            "number of values");
}

/* The sizes of the kept axes, 1 elsewhere; the number of kept axes, or -1 after a mistake. */
static int32_t kept_axes(stk_layer_call *c, const normalization *o, int64_t *broadcast,
                         int64_t *kept)
{
    int32_t rank = stk_g_rank(c->g, c->x[0]), n = 0;
    bool keep[STK_MAX_RANK] = {false};
    for (int32_t i = 0; i < o->axis.n; i++) {
        int32_t axis = stk_c_axis(c, 0, o->axis.v[i]);
        if (axis < 0) return -1;
        keep[axis] = true;
    }
    for (int32_t i = 0; i < rank; i++) {
        broadcast[i] = keep[i] ? stk_c_dim(c, 0, i) : 1;
        if (keep[i]) kept[n++] = broadcast[i];
    }
    return n;
}

static void call_normalization(stk_layer_call *c)
{
    const normalization *o = c->config;
    stk_graph *g = c->g;
    int64_t broadcast[STK_MAX_RANK], kept[STK_MAX_RANK], count = 1;
    int32_t n = kept_axes(c, o, broadcast, kept);
    stk_val x = stk_g_cast(g, c->x[0], c->compute), mean, variance;
    if (n < 0 || !stk_graph_ok(g)) return;
    for (int32_t i = 0; i < n; i++) count *= kept[i];
    if (o->mean.n > 1 && o->mean.n != count) {
        stk_c_fail(c, STK_ERR_SHAPE, "%d means for %lld values along its axes", o->mean.n,
                   (long long)count);
        return;
    }
    if (o->mean.n >= 1) {
        mean = constant(c, &o->mean, broadcast);
        variance = constant(c, &o->variance, broadcast);
    } else {
        stk_weight_wish fixed = {.fixed = true}, ones = {.fixed = true, .initializer = &stk_ones};
        stk_weight_wish whole = {.fixed = true, .typed = true, .dtype = STK_I64};
        int32_t rank = stk_g_rank(g, x);
        mean = stk_g_reshape(g, stk_c_weight(c, "mean", n, kept, &fixed), rank, broadcast);
        variance = stk_g_reshape(g, stk_c_weight(c, "variance", n, kept, &ones), rank, broadcast);
        stk_c_weight(c, "count", 0, NULL,
                     &whole); /* how many examples were seen; not used in calls */
    }
    stk_val deviation = stk_g_max(g, stk_g_sqrt(g, variance), stk_g_scalar(g, c->compute, 1e-7));
    c->y[0] = o->invert ? stk_g_add(g, mean, stk_g_mul(g, x, deviation))
                        : stk_g_div(g, stk_g_sub(g, x, mean), deviation);
}
static const stk_config_field normalization_fields[] = {
    STK_FIELD(normalization, axis, INTS, "-1"),
    STK_FIELD(normalization, mean, REALS, "None"),
    STK_FIELD(normalization, variance, REALS, "None"),
    STK_FIELD(normalization, invert, BOOL, "False"),
};
const stk_layer_def stk_layer_normalization = {.keras_class = "Normalization",
                                               .fields =
                                                   STK_FIELDS(normalization, normalization_fields),
                                               .keeps_dtype = true,
                                               .mask = STK_MASK_PASSES,
                                               .check = check_normalization,
                                               .call = call_normalization};

/* ---- adapt ----------------------------------------------------------------------------------------------------------------- */

/* Which statistic each element of t counts for: strides over the kept axes, 0 over the others. */
typedef struct statistics {
    int64_t stride[STK_MAX_RANK];
    int64_t count; /* statistics */
    int32_t rank;  /* of the weights */
    int64_t shape[STK_MAX_RANK];
    double *mean, *variance;
} statistics;

static stk_status plan_statistics(const normalization *o, const stk_tensor *t, statistics *s,
                                  const char *layer, stk_error *err)
{
    bool keep[STK_MAX_RANK] = {false};
    for (int32_t i = 0; i < o->axis.n; i++) {
        int64_t axis = o->axis.v[i] < 0 ? o->axis.v[i] + t->rank : o->axis.v[i];
        if (axis < 0 || axis >= t->rank)
            return stk_fail(err, STK_ERR_RANGE,
                            "adapt: layer '%s' keeps axis %lld, the data has %d axes", layer,
                            (long long)o->axis.v[i], t->rank);
        keep[axis] = true;
    }
    for (int32_t i = 0; i < t->rank; i++)
        if (keep[i]) s->shape[s->rank++] = t->shape[i];
    s->count = 1;
    for (int32_t i = t->rank; i-- > 0;) {
        s->stride[i] = keep[i] ? s->count : 0;
        if (keep[i]) s->count *= t->shape[i];
    }
    s->mean = stk_calloc((size_t)s->count, 2 * sizeof *s->mean);
    if (!s->mean) return stk_fail_memory(err, "adapt", 0);
    s->variance = s->mean + s->count;
    return STK_OK;
}

static int64_t statistic_of(const statistics *s, const stk_tensor *t, int64_t index)
{
    int64_t at = 0;
    for (int32_t i = t->rank; i-- > 0;) {
        at += index % t->shape[i] * s->stride[i];
        index /= t->shape[i];
    }
    return at;
}

/* Two passes: the mean first, so that large means leave the variance exact. */
static void measure(const stk_tensor *t, statistics *s)
{
    int64_t n = stk_tensor_count(t);
    double each = s->count ? (double)n / (double)s->count : 1;
    for (int64_t i = 0; i < n; i++) s->mean[statistic_of(s, t, i)] += stk_tensor_at(t, i) / each;
    for (int64_t i = 0; i < n; i++) {
        int64_t k = statistic_of(s, t, i);
        double off = stk_tensor_at(t, i) - s->mean[k];
        s->variance[k] += off * off / each;
    }
}

static stk_status store_numbers(stk_store *store, const char *layer, const char *name,
                                stk_dtype dtype, const statistics *s, const double *values,
                                stk_error *err)
{
    char path[512];
    stk_tensor *t = NULL;
    snprintf(path, sizeof path, "%s/%s", layer, name);
    STK_TRY(stk_tensor_new(dtype, s->rank, s->shape, &t, err));
    stk_status status = STK_OK;
    for (int64_t i = 0; status == STK_OK && i < s->count; i++)
        status = stk_tensor_set(t, i, values[i], err);
    if (status == STK_OK) status = stk_store_set(store, path, t, err);
    stk_tensor_release(t);
    return status;
}

static const stk_layer_state *find_normalization(const stk_model *m, const char *layer)
{
    for (int64_t i = 0; i < m->nlayers; i++)
        if (!strcmp(m->layers[i]->name, layer) && m->layers[i]->def == &stk_layer_normalization)
            return m->layers[i];
    return NULL;
}

stk_status stk_model_adapt(const stk_model *m, const char *layer, stk_store *store,
                           const stk_tensor *data, stk_error *err)
{
    const stk_layer_state *state = m && layer ? find_normalization(m, layer) : NULL;
    statistics s = {0}, one = {.count = 1};
    if (!state)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "adapt: the model has no Normalization layer '%.64s'", layer ? layer : "");
    const normalization *o = state->config;
    if (o->mean.n >= 0)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "adapt: the mean and variance of layer '%s' were given; leave them out",
                        layer);
    if (!data || data->rank < 1 || stk_tensor_count(data) == 0 || data->dtype == STK_STRING)
        return stk_fail(err, STK_ERR_SHAPE,
                        "adapt: layer '%s' needs at least one example of numbers", layer);
    stk_status status = plan_statistics(o, data, &s, layer, err);
    if (status == STK_OK) {
        double examples = (double)data->shape[0];
        measure(data, &s);
        status = store_numbers(store, layer, "mean", state->policy.variable, &s, s.mean, err);
        if (status == STK_OK)
            status = store_numbers(store, layer, "variance", state->policy.variable, &s, s.variance,
                                   err);
        if (status == STK_OK)
            status = store_numbers(store, layer, "count", STK_I64, &one, &examples, err);
    }
    stk_free(s.mean);
    return status;
}
