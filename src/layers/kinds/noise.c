/* Layers that disturb what flows through them while training and do nothing otherwise. */
#include "layers/layer.h"

#include <string.h>

typedef struct noise {
    double rate; /* or the deviation */
    stk_ints noise_shape;
    int64_t seed;
    const char *data_format;
} noise;
#define RATE        STK_FIELD(noise, rate, REAL, NULL)
#define SEED        STK_FIELD(noise, seed, INT, "None", .wide = true)
#define NOISE_SHAPE STK_FIELD(noise, noise_shape, INTS, "None", .sizes = true)

static stk_status check_rate(stk_layer_state *layer, stk_error *err)
{
    const noise *o = layer->config;
    if (o->rate >= 0 && o->rate <= 1) return STK_OK;
    return stk_layer_refuse(layer, err, STK_ERR_RANGE, "rate is %g; it takes 0 to 1", o->rate);
}

/* Sizes to drop by: those given, or (n = -1) the input's. */
static bool noise_sizes(stk_layer_call *c, const stk_ints *given, int64_t *sizes)
{
    stk_shape s = stk_c_shape(c, 0);
    if (given->n >= 0 && given->n != s.rank) {
        stk_c_fail(c, STK_ERR_SHAPE, "noise_shape has %d sizes, the input has %d with the batch",
                   given->n, s.rank);
        return false;
    }
    for (int32_t i = 0; i < s.rank; i++)
        sizes[i] = given->n < 0 || given->v[i] < 0 ? s.dim[i] : given->v[i];
    return true;
}

static bool is_quiet(stk_layer_call *c)
{
    const noise *o = c->config;
    if (c->training && o->rate > 0) return false;
    c->y[0] = c->x[0];
    return true;
}

/* ---- Dropout --------------------------------------------------------------------------------------------------- */

static void call_dropout(stk_layer_call *c)
{
    const noise *o = c->config;
    int64_t sizes[STK_MAX_RANK];
    if (is_quiet(c) || !noise_sizes(c, &o->noise_shape, sizes)) return;
    stk_random_options random = stk_c_random(c, o->seed);
    c->y[0] = stk_g_dropout(c->g, c->x[0], o->rate, sizes, &random);
}
static const stk_config_field dropout_fields[] = {RATE, NOISE_SHAPE, SEED};
const stk_layer_def stk_layer_dropout = {.keras_class = "Dropout",
                                         .no_build = true,
                                         .fields = STK_FIELDS(noise, dropout_fields),
                                         .mask = STK_MASK_PASSES,
                                         .check = check_rate,
                                         .call = call_dropout};

/* ---- SpatialDropout: whole channels are dropped ---------------------------------------------------------------- */

static void spatial(stk_layer_call *c, int32_t rank)
{
    const noise *o = c->config;
    int64_t sizes[STK_MAX_RANK];
    bool first = o->data_format && o->data_format[0] && !strcmp(o->data_format, "channels_first");
    if (!stk_c_rank(c, 0, rank, rank) || is_quiet(c)) return;
    for (int32_t i = 0; i < rank; i++) sizes[i] = 1;
    sizes[0] = stk_c_dim(c, 0, 0);
    sizes[first ? 1 : rank - 1] = stk_c_dim(c, 0, first ? 1 : rank - 1);
    stk_random_options random = stk_c_random(c, o->seed);
    c->y[0] = stk_g_dropout(c->g, c->x[0], o->rate, sizes, &random);
}
static void call_spatial_1d(stk_layer_call *c) { spatial(c, 3); }
static void call_spatial_2d(stk_layer_call *c) { spatial(c, 4); }
static void call_spatial_3d(stk_layer_call *c) { spatial(c, 5); }
static const stk_config_field spatial_1d_fields[] = {RATE, SEED};
static const stk_config_field spatial_fields[] = {
    RATE, STK_FIELD(noise, data_format, TEXT, "channels_last"), SEED};
#define SPATIAL(id, class_, fields_)                                                               \
    const stk_layer_def stk_layer_##id = {.keras_class = class_,                                   \
                                          .no_build = true,                                        \
                                          .no_trainable = true,                                    \
                                          .fields = STK_FIELDS(noise, fields_),                    \
                                          .mask = STK_MASK_PASSES,                                 \
                                          .check = check_rate,                                     \
                                          .call = call_##id}
SPATIAL(spatial_1d, "SpatialDropout1D", spatial_1d_fields);
SPATIAL(spatial_2d, "SpatialDropout2D", spatial_fields);
SPATIAL(spatial_3d, "SpatialDropout3D", spatial_fields);

/* ---- noise that is added or multiplied -------------------------------------------------------------------------- */

static void call_gaussian_noise(stk_layer_call *c)
{
    const noise *o = c->config;
    if (is_quiet(c)) return;
    stk_random_options random = stk_c_random(c, o->seed);
    c->y[0] = stk_g_gaussian_noise(c->g, c->x[0], o->rate, &random);
}
static stk_status check_deviation(stk_layer_state *layer, stk_error *err)
{
    const noise *o = layer->config;
    if (o->rate >= 0) return STK_OK;
    return stk_layer_refuse(layer, err, STK_ERR_RANGE, "stddev is %g; it takes 0 or more", o->rate);
}
static const stk_config_field gaussian_noise_fields[] = {
    {.name = "stddev", .kind = STK_FIELD_REAL, .offset = offsetof(noise, rate)}, SEED};
const stk_layer_def stk_layer_gaussian_noise = {.keras_class = "GaussianNoise",
                                                .no_build = true,
                                                .fields = STK_FIELDS(noise, gaussian_noise_fields),
                                                .mask = STK_MASK_PASSES,
                                                .check = check_deviation,
                                                .call = call_gaussian_noise};

static void call_gaussian_dropout(stk_layer_call *c)
{
    const noise *o = c->config;
    if (is_quiet(c)) return;
    stk_random_options random = stk_c_random(c, o->seed);
    c->y[0] = stk_g_gaussian_dropout(c->g, c->x[0], o->rate, &random);
}
static const stk_config_field gaussian_dropout_fields[] = {RATE, SEED};
const stk_layer_def stk_layer_gaussian_dropout = {.keras_class = "GaussianDropout",
                                                  .no_build = true,
                                                  .fields =
                                                      STK_FIELDS(noise, gaussian_dropout_fields),
                                                  .mask = STK_MASK_PASSES,
                                                  .check = check_rate,
                                                  .call = call_gaussian_dropout};

static void call_alpha_dropout(stk_layer_call *c)
{
    const noise *o = c->config;
    int64_t sizes[STK_MAX_RANK];
    if (is_quiet(c) || !noise_sizes(c, &o->noise_shape, sizes)) return;
    stk_random_options random = stk_c_random(c, o->seed);
    c->y[0] = stk_g_alpha_dropout(c->g, c->x[0], o->rate, sizes, &random);
}
const stk_layer_def stk_layer_alpha_dropout = {.keras_class = "AlphaDropout",
                                               .no_build = true,
                                               .fields = STK_FIELDS(noise, dropout_fields),
                                               .mask = STK_MASK_PASSES,
                                               .check = check_rate,
                                               .call = call_alpha_dropout};
