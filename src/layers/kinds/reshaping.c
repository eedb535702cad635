/* Layers that move numbers and compute none: Flatten, Reshape, Permute, RepeatVector, padding, cropping, upsampling. */
#include "layers/kinds/image.h"
#include "stoker/image.h"

#include <string.h>

/* ---- Flatten ------------------------------------------------------------------------------------------------------------- */

typedef struct format {
    int32_t data_format;
} format;

static const stk_config_field flatten_fields[] = {STK_FIELD_FORMAT(format)};

static void flatten_call(stk_layer_call *c)
{
    const format *o = c->config;
    if (!stk_c_rank(c, 0, 1, STK_MAX_RANK)) return;
    stk_val x = stk_image_last(c->g, c->x[0], o->data_format);
    stk_shape s = stk_c_shape(c, 0);
    int64_t rest = 1;
    for (int32_t i = 1; i < s.rank; i++) rest *= s.dim[i];
    c->y[0] = stk_g_reshape(c->g, x, 2, (int64_t[]){s.dim[0], rest});
}

const stk_layer_def stk_layer_flatten = {.keras_class = "Flatten",
                                         .fields = STK_FIELDS(format, flatten_fields),
                                         .keeps_dtype = true,
                                         .call = flatten_call};

/* ---- Reshape ----------------------------------------------------------------------------------------------------------------- */

typedef struct reshape {
    stk_ints target_shape;
} reshape;

static const stk_config_field reshape_fields[] = {STK_FIELD(reshape, target_shape, INTS, NULL)};

static void reshape_call(stk_layer_call *c)
{
    const stk_ints *to = &((const reshape *)c->config)->target_shape;
    int64_t shape[STK_MAX_RANK] = {stk_c_dim(c, 0, 0)};
    if (to->n < 0 || to->n >= STK_MAX_RANK) {
        stk_c_fail(c, STK_ERR_RANGE, "target_shape has %d sizes; there may be 0 to %d", to->n,
                   STK_MAX_RANK - 1);
        return;
    }
    memcpy(shape + 1, to->v, (size_t)to->n * sizeof *shape);
    c->y[0] = stk_g_reshape(c->g, c->x[0], to->n + 1, shape);
}

const stk_layer_def stk_layer_reshape = {.keras_class = "Reshape",
                                         .no_build = true,
                                         .fields = STK_FIELDS(reshape, reshape_fields),
                                         .keeps_dtype = true,
                                         .call = reshape_call};

/* ---- Permute ----------------------------------------------------------------------------------------------------------------- */

typedef struct permute {
    stk_ints dims;
} permute;

static const stk_config_field permute_fields[] = {STK_FIELD(permute, dims, INTS, NULL, .low = 1)};

static void permute_call(stk_layer_call *c)
{
    const stk_ints *dims = &((const permute *)c->config)->dims;
    int32_t perm[STK_MAX_RANK] = {0};
    uint32_t seen = 1;
    if (dims->n >= STK_MAX_RANK || !stk_c_rank(c, 0, dims->n + 1, dims->n + 1)) return;
    for (int32_t i = 0; i < dims->n; i++) {
        perm[i + 1] = (int32_t)dims->v[i];
        if (dims->v[i] <= dims->n) seen |= 1u << dims->v[i];
    }
    if (seen != (1u << (dims->n + 1)) - 1) {
        stk_c_fail(c, STK_ERR_RANGE, "dims must be 1 to %d, each once; the batch is not counted",
                   dims->n);
        return;
    }
    c->y[0] = stk_g_transpose(c->g, c->x[0], perm);
}

const stk_layer_def stk_layer_permute = {.keras_class = "Permute",
                                         .fields = STK_FIELDS(permute, permute_fields),
                                         .keeps_dtype = true,
                                         .call = permute_call};

/* ---- RepeatVector --------------------------------------------------------------------------------------------------------------- */

typedef struct repeat_vector {
    int64_t n;
} repeat_vector;

static const stk_config_field repeat_vector_fields[] = {
    STK_FIELD(repeat_vector, n, INT, NULL, .low = 1)};

static void repeat_vector_call(stk_layer_call *c)
{
    const repeat_vector *o = c->config;
    if (!stk_c_rank(c, 0, 2, 2)) return;
    c->y[0] = stk_g_broadcast(c->g, stk_g_expand_dims(c->g, c->x[0], 1), 3,
                              (int64_t[]){stk_c_dim(c, 0, 0), o->n, stk_c_dim(c, 0, 1)});
}

const stk_layer_def stk_layer_repeat_vector = {.keras_class = "RepeatVector",
                                               .fields =
                                                   STK_FIELDS(repeat_vector, repeat_vector_fields),
                                               .keeps_dtype = true,
                                               .call = repeat_vector_call};

/* ---- ZeroPadding, Cropping ---------------------------------------------------------------------------------------------------- */

typedef struct borders {
    stk_ints padding, cropping;
    int32_t data_format;
} borders;

static void pad_call(stk_layer_call *c)
{
    const borders *o = c->config;
    int32_t axes = o->padding.n / 2, first = o->data_format == STK_CHANNELS_FIRST ? 2 : 1;
    int64_t low[STK_MAX_RANK] = {0}, high[STK_MAX_RANK] = {0};
    if (!stk_c_rank(c, 0, axes + 2, axes + 2)) return;
    for (int32_t i = 0; i < axes; i++) {
        low[first + i] = o->padding.v[2 * i];
        high[first + i] = o->padding.v[2 * i + 1];
    }
    c->y[0] = stk_g_pad(c->g, c->x[0], low, high, 0);
}

static void crop_call(stk_layer_call *c)
{
    const borders *o = c->config;
    int32_t axes = o->cropping.n / 2, first = o->data_format == STK_CHANNELS_FIRST ? 2 : 1;
    int64_t from[STK_MAX_RANK] = {0};
    if (!stk_c_rank(c, 0, axes + 2, axes + 2)) return;
    stk_shape s = stk_c_shape(c, 0);
    for (int32_t i = 0; i < axes; i++) {
        from[first + i] = o->cropping.v[2 * i];
        s.dim[first + i] -= o->cropping.v[2 * i] + o->cropping.v[2 * i + 1];
        if (s.dim[first + i] > 0) continue;
        stk_c_fail(c, STK_ERR_SHAPE, "cropping %lld and %lld leaves nothing of axis %d",
                   (long long)o->cropping.v[2 * i], (long long)o->cropping.v[2 * i + 1], first + i);
        return;
    }
    c->y[0] = stk_g_slice(c->g, c->x[0], from, s.dim, NULL);
}

static stk_status no_negatives(stk_layer_state *layer, stk_error *err)
{
    const borders *o = layer->config;
    const stk_ints *list = o->padding.n ? &o->padding : &o->cropping;
    for (int32_t i = 0; i < list->n; i++)
        if (list->v[i] < 0)
            return stk_fail(err, STK_ERR_FORMAT, "%s: borders are counted from 0 on, got %lld",
                            layer->def->keras_class, (long long)list->v[i]);
    return STK_OK;
}

#define BORDERS(id, class_, member, axes, fallback, call_, ...)                                    \
    static const stk_config_field id##_fields[] = {                                                \
        STK_FIELD(borders, member, PAIRS, fallback, .count = axes), __VA_ARGS__};                  \
    const stk_layer_def stk_layer_##id = {.keras_class = class_,                                   \
                                          .fields = STK_FIELDS(borders, id##_fields),              \
                                          .keeps_dtype = true,                                     \
                                          .check = no_negatives,                                   \
                                          .call = call_};

BORDERS(zero_padding1d, "ZeroPadding1D", padding, 1, "1", pad_call, STK_FIELD_FORMAT(borders))
BORDERS(zero_padding2d, "ZeroPadding2D", padding, 2, "1", pad_call, STK_FIELD_FORMAT(borders))
BORDERS(zero_padding3d, "ZeroPadding3D", padding, 3, "1", pad_call, STK_FIELD_FORMAT(borders))
BORDERS(cropping1d, "Cropping1D", cropping, 1, "1", crop_call, )
BORDERS(cropping2d, "Cropping2D", cropping, 2, "0", crop_call, STK_FIELD_FORMAT(borders))
BORDERS(cropping3d, "Cropping3D", cropping, 3, "1", crop_call, STK_FIELD_FORMAT(borders))

/* ---- UpSampling ----------------------------------------------------------------------------------------------------------------- */

typedef struct upsampling {
    stk_ints size;
    int32_t data_format;
    int32_t interpolation;
} upsampling;
static const stk_resize_kind kinds[] = {STK_RESIZE_NEAREST,  STK_RESIZE_BILINEAR,
                                        STK_RESIZE_BICUBIC,  STK_RESIZE_LANCZOS3,
                                        STK_RESIZE_LANCZOS5, STK_RESIZE_AREA};

/* Each element of an axis n times: [outer, d, inner] -> [outer, d, n, inner] -> [outer, d n, inner]. */
static stk_val repeat(stk_graph *g, stk_val x, int32_t axis, int64_t n)
{
    if (!stk_graph_ok(g) || n == 1) return x;
    stk_shape s = stk_type_of(g, x)->shape;
    int64_t outer = 1, inner = 1, d = s.dim[axis], whole;
    for (int32_t i = 0; i < s.rank; i++) *(i < axis ? &outer : &inner) *= i == axis ? 1 : s.dim[i];
    if (!stk_mul_i64(d, n, &whole))
        return stk_g_fail(g, STK_ERR_RANGE, "size %lld x %lld", (long long)d, (long long)n);
    x = stk_g_reshape(g, x, 4, (int64_t[]){outer, d, 1, inner});
    x = stk_g_broadcast(g, x, 4, (int64_t[]){outer, d, n, inner});
    s.dim[axis] = whole;
    return stk_g_reshape(g, x, s.rank, s.dim);
}

static void upsampling_call(stk_layer_call *c)
{
    const upsampling *o = c->config;
    if (!stk_c_rank(c, 0, o->size.n + 2, o->size.n + 2)) return;
    stk_val x = stk_image_last(c->g, c->x[0], o->data_format);
    if (o->interpolation)
        x = stk_g_image_resize(c->g, x, stk_g_dim(c->g, x, 1) * o->size.v[0],
                               stk_g_dim(c->g, x, 2) * o->size.v[1], kinds[o->interpolation],
                               false);
    else
        for (int32_t i = 0; i < o->size.n; i++) x = repeat(c->g, x, i + 1, o->size.v[i]);
    c->y[0] = stk_image_back(c->g, x, o->data_format);
}

static const stk_config_field upsampling1_fields[] = {
    STK_FIELD(upsampling, size, INTS, "2", .low = 1)};
static const stk_config_field upsampling2_fields[] = {
    STK_FIELD(upsampling, size, INTS, "2", .count = 2, .low = 1),
    STK_FIELD_FORMAT(upsampling),
    STK_FIELD(upsampling, interpolation, CHOICE, "nearest",
              .choices = "nearest|bilinear|bicubic|lanczos3|lanczos5|area"),
};
static const stk_config_field upsampling3_fields[] = {
    STK_FIELD(upsampling, size, INTS, "2", .count = 3, .low = 1),
    STK_FIELD_FORMAT(upsampling),
};

const stk_layer_def stk_layer_upsampling1d = {.keras_class = "UpSampling1D",
                                              .fields = STK_FIELDS(upsampling, upsampling1_fields),
                                              .call = upsampling_call};
const stk_layer_def stk_layer_upsampling2d = {.keras_class = "UpSampling2D",
                                              .fields = STK_FIELDS(upsampling, upsampling2_fields),
                                              .call = upsampling_call};
const stk_layer_def stk_layer_upsampling3d = {.keras_class = "UpSampling3D",
                                              .fields = STK_FIELDS(upsampling, upsampling3_fields),
                                              .call = upsampling_call};
