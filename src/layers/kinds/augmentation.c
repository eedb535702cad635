/* Images changed at random while training: what such layers share; flips, turns, zooms, shifts, contrast and brightness. */
#include "layers/kinds/augmentation.h"

#include "stoker/image.h"

#include <math.h>
#include <string.h>

#define AUG      STK_AUG
#define AUG_LAST STK_AUG_LAST
#define AUG_FILL                                                                                   \
    AUG(fill_mode, TEXT, "reflect"), AUG(interpolation, TEXT, "bilinear"),                         \
        AUG(seed, INT, "None", .wide = true), AUG(fill_value, REAL, "0"),                          \
        AUG(data_format, TEXT, "None")

/* ---- checking ----------------------------------------------------------------------------------------------------------- */

static stk_status refuse(const stk_layer_state *layer, stk_error *err, const char *what)
{
    return stk_layer_refuse(layer, err, STK_ERR_ARGUMENT, "%s", what);
}

bool stk_augment_range(const stk_reals *v, double least, double *low, double *high)
{
    if (v->n != 1 && v->n != 2) return false;
    *high = v->n == 1 ? fabs(v->v[0]) : fmax(v->v[0], v->v[1]);
    *low = v->n == 1 ? fmax(-*high, least) : v->v[0] == *high ? v->v[1] : v->v[0];
    return isfinite(*low) && isfinite(*high);
}

stk_status stk_augment_check(stk_layer_state *layer, stk_error *err)
{
    stk_augment *o = layer->config;
    stk_image_fill fill;
    if (o->data_format && strcmp(o->data_format, "channels_last"))
        return refuse(layer, err,
                      "only data_format 'channels_last' is supported; put a Permute before and "
                      "behind it");
    if (o->fill_mode && !stk_image_fill_parse(o->fill_mode, &fill))
        return refuse(layer, err, "fill_mode takes constant, reflect, wrap or nearest");
    if (o->interpolation && strcmp(o->interpolation, "bilinear") &&
        strcmp(o->interpolation, "nearest"))
        return refuse(layer, err, "interpolation takes bilinear or nearest");
    if (o->value_range.n <= 0) {
        o->bytes[1] = 255;
        o->value_range = (stk_reals){.n = 2, .v = o->bytes};
    }
    if (o->value_range.n != 2 || o->value_range.v[0] == o->value_range.v[1])
        return refuse(layer, err, "value_range takes two numbers that differ");
    return STK_OK;
}

stk_status stk_augment_check_factor(stk_layer_state *layer, double least, double most,
                                    stk_error *err)
{
    stk_augment *o = layer->config;
    if (!stk_augment_range(&o->factor, least, &o->low[0], &o->high[0]) || o->high[0] < least ||
        o->low[0] > most || (o->factor.n == 1 && o->high[0] > most))
        return stk_layer_refuse(layer, err, STK_ERR_RANGE,
                                "factor takes a number, or two: lower and upper, from %g to %g",
                                least, most);
    return stk_augment_check(layer, err);
}

static stk_status check_light(stk_layer_state *layer, stk_error *err)
{
    stk_augment *o = layer->config;
    bool contrast = !strcmp(layer->def->keras_class, "RandomContrast");
    if (!stk_augment_range(&o->factor, contrast ? 0 : -INFINITY, &o->low[0], &o->high[0]))
        return refuse(layer, err, "factor takes a number, or two: lower and upper");
    return stk_augment_check(layer, err);
}

static stk_status check_turn(stk_layer_state *layer, stk_error *err)
{
    stk_augment *o = layer->config;
    if (!stk_augment_range(&o->factor, -INFINITY, &o->low[0], &o->high[0]))
        return refuse(layer, err, "factor takes a number, or two: lower and upper");
    return stk_augment_check(layer, err);
}

static stk_status check_factors(stk_layer_state *layer, stk_error *err)
{
    stk_augment *o = layer->config;
    if (!stk_augment_range(&o->height_factor, -INFINITY, &o->low[0], &o->high[0]) ||
        (o->width_factor.n >= 0 &&
         !stk_augment_range(&o->width_factor, -INFINITY, &o->low[1], &o->high[1])))
        return refuse(layer, err,
                      "height_factor and width_factor take a number, or two: lower and upper");
    if (o->low[0] <= -1 || o->low[1] <= -1)
        return refuse(layer, err, "height_factor and width_factor must be above -1");
    return stk_augment_check(layer, err);
}

/* ---- what the layers use ------------------------------------------------------------------------------------------------ */

bool stk_augment_at_rest(stk_layer_call *c)
{
    c->y[0] = stk_g_cast(c->g, c->x[0], c->compute);
    return !stk_c_rank(c, 0, 4, 4) || !c->training;
}

stk_val stk_augment_draw(stk_layer_call *c, int32_t rank, double low, double high, stk_dtype dtype)
{
    const stk_augment *o = c->config;
    int64_t shape[4] = {stk_c_dim(c, 0, 0), 1, 1, 1};
    stk_random_options random = stk_c_random(c, o->seed);
    if (low == high) return stk_g_fill(c->g, dtype, rank, shape, low);
    return stk_g_random_uniform(c->g, dtype, rank, shape, low, high, &random);
}

stk_val stk_augment_chance(stk_layer_call *c, double low, double high)
{
    stk_val p = stk_augment_draw(c, 4, low, high, STK_F32);
    return stk_g_lt(c->g, stk_augment_draw(c, 4, 0, 1, STK_F32), p);
}

stk_val stk_augment_clip(stk_layer_call *c, stk_val x)
{
    const stk_augment *o = c->config;
    const double *v = o->value_range.v;
    return stk_g_clip(c->g, x, fmin(v[0], v[1]), fmax(v[0], v[1]));
}

/* As Keras does it, so that the last digits are the same. */
stk_val stk_augment_scale(stk_graph *g, stk_val x, const double *from, const double *to)
{
    stk_dtype dtype = stk_g_dtype(g, x);
    if (from[0] == to[0] && from[1] == to[1]) return x;
    x = stk_g_div(g, stk_g_sub(g, x, stk_g_scalar(g, dtype, from[0])),
                  stk_g_scalar(g, dtype, from[1] - from[0]));
    return stk_g_add(g, stk_g_mul(g, x, stk_g_scalar(g, dtype, to[1] - to[0])),
                     stk_g_scalar(g, dtype, to[0]));
}

void stk_augment_read(stk_layer_call *c, const stk_val *columns)
{
    const stk_augment *o = c->config;
    stk_project_options options = stk_project_options_defaults();
    options.bilinear = strcmp(o->interpolation, "nearest") != 0;
    if (o->fill_mode) stk_image_fill_parse(o->fill_mode, &options.fill);
    options.value = o->fill_value;
    stk_val rows = stk_g_concat(c->g, 8, columns, 1);
    c->y[0] = stk_g_cast(c->g, stk_g_image_project(c->g, c->y[0], rows, &options), c->compute);
}

/* ---- RandomFlip ---------------------------------------------------------------------------------------------------------------- */

enum { FLIP_BOTH, FLIP_HORIZONTAL, FLIP_VERTICAL };

static stk_val flip(stk_layer_call *c, stk_val x, int32_t axis)
{
    stk_val coin = stk_augment_draw(c, 4, 0, 1, STK_F32);
    stk_val turn = stk_g_lt(c->g, coin, stk_g_scalar(c->g, STK_F32, 0.5));
    return stk_g_select(c->g, turn, stk_g_reverse(c->g, x, axis), x);
}

static void call_random_flip(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    if (stk_augment_at_rest(c)) return;
    if (o->mode != FLIP_VERTICAL) c->y[0] = flip(c, c->y[0], 2);
    if (o->mode != FLIP_HORIZONTAL) c->y[0] = flip(c, c->y[0], 1);
}
static stk_status check_flip(stk_layer_state *layer, stk_error *err)
{
    return stk_augment_check(layer, err);
}
static const stk_config_field random_flip_fields[] = {
    AUG(mode, CHOICE, "horizontal_and_vertical",
        .choices = "horizontal_and_vertical|horizontal|vertical"),
    AUG(seed, INT, "None", .wide = true), AUG(data_format, TEXT, "None")};
STK_AUGMENTATION(random_flip, "RandomFlip", check_flip, random_flip_fields);

/* ---- turns, zooms, shifts: rows of 8 numbers say where each pixel is read ------------------------------------------------------- */

/* The shift that keeps the middle in its place when p is read at `by` p: (size - 1) / 2 (1 - by). */
static stk_val centre(stk_graph *g, stk_val by, double size)
{
    stk_val rest = stk_g_sub(g, stk_g_scalar(g, STK_F32, 1), by);
    return stk_g_mul(g, rest, stk_g_scalar(g, STK_F32, (size - 1) / 2));
}

static void call_random_rotation(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    const double turn = 6.283185307179586;
    if (stk_augment_at_rest(c)) return;
    double h = (double)stk_c_dim(c, 0, 1), w = (double)stk_c_dim(c, 0, 2);
    stk_val angle = stk_augment_draw(c, 2, o->low[0] * turn, o->high[0] * turn, STK_F32);
    stk_val cosine = stk_g_cos(g, angle), sine = stk_g_sin(g, angle),
            zero = stk_g_zeros_like(g, angle);
    stk_val half_w = stk_g_scalar(g, STK_F32, (w - 1) / 2),
            half_h = stk_g_scalar(g, STK_F32, (h - 1) / 2);
    stk_val x = stk_g_add(g, centre(g, cosine, w), stk_g_mul(g, sine, half_h));
    stk_val y = stk_g_sub(g, centre(g, cosine, h), stk_g_mul(g, sine, half_w));
    stk_augment_read(c, (stk_val[]){cosine, stk_g_neg(g, sine), x, sine, cosine, y, zero, zero});
}
static const stk_config_field random_rotation_fields[] = {AUG(factor, REALS, NULL), AUG_FILL};
STK_AUGMENTATION(random_rotation, "RandomRotation", check_turn, random_rotation_fields);

static void call_random_zoom(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    if (stk_augment_at_rest(c)) return;
    stk_val high = stk_augment_draw(c, 2, 1 + o->low[0], 1 + o->high[0], STK_F32),
            zero = stk_g_zeros_like(g, high);
    stk_val wide = o->width_factor.n < 0
                       ? high
                       : stk_augment_draw(c, 2, 1 + o->low[1], 1 + o->high[1], STK_F32);
    stk_val x = centre(g, wide, (double)stk_c_dim(c, 0, 2));
    stk_val y = centre(g, high, (double)stk_c_dim(c, 0, 1));
    stk_augment_read(c, (stk_val[]){wide, zero, x, zero, high, y, zero, zero});
}
static const stk_config_field random_zoom_fields[] = {AUG(height_factor, REALS, NULL),
                                                      AUG(width_factor, REALS, "None"), AUG_FILL};
STK_AUGMENTATION(random_zoom, "RandomZoom", check_factors, random_zoom_fields);

static void call_random_translation(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    if (stk_augment_at_rest(c)) return;
    double h = (double)stk_c_dim(c, 0, 1), w = (double)stk_c_dim(c, 0, 2);
    stk_val down = stk_augment_draw(c, 2, o->low[0] * h, o->high[0] * h, STK_F32);
    stk_val right = stk_augment_draw(c, 2, o->low[1] * w, o->high[1] * w, STK_F32);
    stk_val zero = stk_g_zeros_like(g, down), one = stk_g_add(g, zero, stk_g_scalar(g, STK_F32, 1));
    stk_augment_read(
        c, (stk_val[]){one, zero, stk_g_neg(g, right), zero, one, stk_g_neg(g, down), zero, zero});
}
static const stk_config_field random_translation_fields[] = {
    AUG(height_factor, REALS, NULL), AUG(width_factor, REALS, NULL), AUG_FILL};
STK_AUGMENTATION(random_translation, "RandomTranslation", check_factors, random_translation_fields);

/* ---- light ----------------------------------------------------------------------------------------------------------------------- */

static void call_random_contrast(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    if (stk_augment_at_rest(c)) return;
    stk_val by = stk_augment_draw(c, 4, 1 - o->low[0], 1 + o->high[0], c->compute);
    stk_val mean = stk_g_mean(g, c->y[0], 2, (int32_t[]){1, 2}, true);
    stk_val off = stk_g_sub(g, c->y[0], mean);
    c->y[0] = stk_augment_clip(c, stk_g_add(g, stk_g_mul(g, off, by), mean));
}
static const stk_config_field random_contrast_fields[] = {
    AUG(factor, REALS, NULL), AUG(value_range, REALS, "None"), AUG_LAST};
STK_AUGMENTATION(random_contrast, "RandomContrast", check_light, random_contrast_fields);

static void call_random_brightness(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    if (stk_augment_at_rest(c)) return;
    double range = fabs(o->value_range.v[1] - o->value_range.v[0]);
    stk_val by = stk_augment_draw(c, 4, o->low[0] * range, o->high[0] * range, c->compute);
    c->y[0] = stk_augment_clip(c, stk_g_add(c->g, c->y[0], by));
}
STK_AUGMENTATION(random_brightness, "RandomBrightness", check_light, random_contrast_fields);
