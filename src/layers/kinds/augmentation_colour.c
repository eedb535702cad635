/* Colours and light changed at random: hue, saturation, gray, inverted, posterised, sharpened, blurred, solarised images; and
 * what is not random in it: contrast to the full range, and equalised histograms. */
#include "layers/kinds/augmentation.h"

#include "stoker/image.h"

#include <math.h>

static const double BYTES[2] = {0, 255}, UNIT[2] = {0, 1};

static stk_val number(const stk_layer_call *c, double value)
{
    return stk_g_scalar(c->g, c->compute, value);
}

/* Whether there are three channels, which colours need. */
static bool coloured(stk_layer_call *c)
{
    if (!stk_c_rank(c, 0, 4, 4)) return false;
    if (stk_c_dim(c, 0, 3) == 3) return true;
    stk_c_fail(c, STK_ERR_SHAPE, "images with %lld channels; it needs 3: red, green and blue",
               (long long)stk_c_dim(c, 0, 3));
    return false;
}

static const stk_config_field colour_fields[] = {STK_AUG(factor, REALS, NULL),
                                                 STK_AUG(value_range, REALS, "None"), STK_AUG_LAST};
static const stk_config_field chance_fields[] = {STK_AUG(factor, REALS, "1.0"),
                                                 STK_AUG(value_range, REALS, "None"), STK_AUG_LAST};

/* ---- hue and saturation ---------------------------------------------------------------------------------------------------- */

static void call_random_hue(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    stk_val part[3], one = number(c, 1), zero = number(c, 0);
    if (!coloured(c) || stk_augment_at_rest(c)) return;
    stk_val coin = stk_augment_draw(c, 4, 0, 1, STK_F32);
    stk_val by = stk_augment_draw(c, 4, 0.5 * o->low[0], 0.5 * o->high[0], c->compute);
    by = stk_g_select(g, stk_g_gt(g, coin, stk_g_scalar(g, STK_F32, 0.5)), stk_g_neg(g, by), by);
    stk_val x = stk_augment_scale(g, c->y[0], o->value_range.v, UNIT);
    stk_g_split(g, stk_g_image_rgb_to_hsv(g, x), -1, 3, part);
    stk_val h = stk_g_add(g, part[0], by);
    h = stk_g_select(g, stk_g_gt(g, h, one), stk_g_sub(g, h, one), h);
    part[0] = stk_g_select(g, stk_g_lt(g, h, zero), stk_g_add(g, h, one), h);
    x = stk_g_clip(g, stk_g_image_hsv_to_rgb(g, stk_g_concat(g, 3, part, -1)), 0, 1);
    c->y[0] = stk_augment_scale(g, x, UNIT, o->value_range.v);
}
static stk_status check_hue(stk_layer_state *layer, stk_error *err)
{
    return stk_augment_check_factor(layer, 0, 1, err);
}
STK_AUGMENTATION(random_hue, "RandomHue", check_hue, colour_fields);

/* Keras multiplies by f / (1 - f): 0.5 changes nothing. */
static void call_random_saturation(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    stk_val part[3];
    if (!coloured(c) || stk_augment_at_rest(c)) return;
    stk_val f = stk_augment_draw(c, 4, o->low[0], o->high[0], c->compute);
    f = stk_g_div(g, f, stk_g_add(g, stk_g_sub(g, number(c, 1), f), number(c, 1e-7)));
    stk_g_split(g, stk_g_image_rgb_to_hsv(g, c->y[0]), -1, 3, part);
    part[1] = stk_augment_clip(c, stk_g_mul(g, part[1], f));
    c->y[0] = stk_g_image_hsv_to_rgb(g, stk_g_concat(g, 3, part, -1));
}
static stk_status check_signed(stk_layer_state *layer, stk_error *err)
{
    return stk_augment_check_factor(layer, -1, 1, err);
}
STK_AUGMENTATION(random_saturation, "RandomSaturation", check_signed, colour_fields);

/* ---- towards gray ------------------------------------------------------------------------------------------------------------ */

static void call_random_degeneration(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    if (!coloured(c) || stk_augment_at_rest(c)) return;
    stk_val by = stk_augment_draw(c, 4, o->low[0], o->high[0], c->compute);
    stk_val gray = stk_g_image_rgb_to_grayscale(g, c->y[0]);
    stk_val off = stk_g_mul(g, by, stk_g_sub(g, gray, c->y[0]));
    c->y[0] = stk_augment_clip(c, stk_g_add(g, c->y[0], off));
}
STK_AUGMENTATION(random_degeneration, "RandomColorDegeneration", check_signed, colour_fields);

static void call_random_grayscale(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    if (!coloured(c) || stk_augment_at_rest(c)) return;
    stk_val turn = stk_augment_chance(c, o->high[0], o->high[0]);
    stk_val gray = stk_g_image_rgb_to_grayscale(c->g, c->y[0]);
    c->y[0] = stk_g_select(c->g, turn, gray, c->y[0]);
}
static const stk_config_field grayscale_fields[] = {
    STK_AUG(factor, REALS, "0.5"), STK_AUG(data_format, TEXT, "None"),
    STK_AUG(seed, INT, "None", .wide = true, .input_only = true)};
STK_AUGMENTATION(random_grayscale, "RandomGrayscale", check_hue, grayscale_fields);

/* ---- inverted, solarised, posterised ------------------------------------------------------------------------------------------- */

static void call_random_invert(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    if (stk_augment_at_rest(c)) return;
    stk_val turn = stk_augment_chance(c, o->low[0], o->high[0]);
    stk_val inverted = stk_g_sub(c->g, number(c, o->value_range.v[1]), c->y[0]);
    c->y[0] = stk_g_select(c->g, turn, inverted, c->y[0]);
}
STK_AUGMENTATION(random_invert, "RandomInvert", check_hue, chance_fields);

static void call_solarization(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    if (stk_augment_at_rest(c)) return;
    stk_val more = stk_augment_draw(c, 4, o->low[0], 255 * o->high[0], c->compute);
    stk_val from = stk_augment_draw(c, 4, o->low[1], 255 * o->high[1], c->compute);
    stk_val x = stk_augment_scale(g, c->y[0], o->value_range.v, BYTES);
    x = stk_g_clip(g, stk_g_add(g, x, more), 0, 255);
    x = stk_g_select(g, stk_g_lt(g, x, from), x, stk_g_sub(g, number(c, 255), x));
    c->y[0] = stk_augment_scale(g, x, BYTES, o->value_range.v);
}
/* A lone number is the upper end. */
static bool upper_range(const stk_reals *v, double *low, double *high)
{
    bool good = stk_augment_range(v, 0, low, high);
    return good && *low >= 0 && *high <= 1;
}
static stk_status check_solarization(stk_layer_state *layer, stk_error *err)
{
    stk_augment *o = layer->config;
    if (!upper_range(&o->addition_factor, &o->low[0], &o->high[0]) ||
        !upper_range(&o->threshold_factor, &o->low[1], &o->high[1]))
        return stk_layer_refuse(layer, err, STK_ERR_RANGE,
                                "addition_factor and threshold_factor take a number, or two, "
                                "from 0 to 1");
    return stk_augment_check(layer, err);
}
static const stk_config_field solarization_fields[] = {
    STK_AUG(addition_factor, REALS, "0.0"), STK_AUG(threshold_factor, REALS, "0.0"),
    STK_AUG(value_range, REALS, "None"), STK_AUG(seed, INT, "None", .wide = true),
    STK_AUG(data_format, TEXT, "None")};
STK_AUGMENTATION(solarization, "Solarization", check_solarization, solarization_fields);

/* Bytes keep their first `factor` bits: what is below 2^(8 - factor) is taken away. */
static void call_random_posterization(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    if (stk_augment_at_rest(c)) return;
    stk_val bits = stk_g_floor(g, stk_augment_draw(c, 4, o->low[0], o->high[0], STK_F32));
    stk_val rest = stk_g_sub(g, stk_g_scalar(g, STK_F32, 8), bits);
    stk_val step =
        stk_g_round(g, stk_g_exp(g, stk_g_mul(g, rest, stk_g_scalar(g, STK_F32, M_LN2))));
    stk_val x = stk_augment_scale(g, stk_g_cast(g, c->y[0], STK_F32), o->value_range.v, BYTES);
    x = stk_g_floor(g, stk_g_clip(g, x, 0, 255));
    x = stk_g_mul(g, stk_g_floor(g, stk_g_div(g, x, step)), step);
    c->y[0] = stk_g_cast(g, stk_augment_scale(g, x, BYTES, o->value_range.v), c->compute);
}
static stk_status check_posterization(stk_layer_state *layer, stk_error *err)
{
    return stk_augment_check_factor(layer, 1, 8, err);
}
STK_AUGMENTATION(random_posterization, "RandomPosterization", check_posterization, colour_fields);

/* ---- sharper and softer ----------------------------------------------------------------------------------------------------------- */

stk_val stk_augment_convolve(stk_graph *g, stk_val x, stk_val kernel)
{
    stk_conv_options same = stk_conv_options_defaults();
    int64_t shape[4] = {stk_g_dim(g, kernel, 0), stk_g_dim(g, kernel, 1), stk_g_dim(g, x, 3), 1};
    same.padding = STK_PADDING_SAME;
    kernel = stk_g_expand_dims(g, stk_g_expand_dims(g, kernel, 2), 3);
    return stk_g_depthwise_conv(g, x, stk_g_broadcast(g, kernel, 4, shape), &same);
}

static void call_random_sharpness(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    const int64_t small[2] = {3, 3}, point[2] = {1, 1};
    if (stk_augment_at_rest(c)) return;
    stk_val by = stk_augment_draw(c, 4, 2 * o->low[0], 2 * o->high[0], c->compute);
    stk_val around = stk_g_fill(g, c->compute, 2, small, 1.0 / 13);
    stk_val middle = stk_g_pad(g, stk_g_fill(g, c->compute, 2, point, 4.0 / 13), point, point, 0);
    stk_val soft = stk_augment_convolve(g, c->y[0], stk_g_add(g, around, middle));
    stk_val off = stk_g_sub(g, soft, c->y[0]);
    off = stk_g_mul(g, stk_g_sub(g, number(c, 1), by), off);
    c->y[0] = stk_augment_clip(c, stk_g_add(g, c->y[0], off));
}
STK_AUGMENTATION(random_sharpness, "RandomSharpness", check_hue, colour_fields);

stk_val stk_augment_bell(stk_graph *g, int64_t size, stk_val sigma, stk_val reach)
{
    stk_dtype dtype = stk_g_dtype(g, sigma);
    stk_val x = stk_g_iota(g, dtype, 1, &size, 0);
    x = stk_g_sub(g, x, stk_g_scalar(g, dtype, (double)(size - 1) / 2));
    stk_val bell = stk_g_square(g, stk_g_div(g, x, sigma));
    bell = stk_g_exp(g, stk_g_mul(g, bell, stk_g_scalar(g, dtype, -0.5)));
    if (reach)
        bell =
            stk_g_select(g, stk_g_le(g, stk_g_abs(g, x), reach), bell, stk_g_scalar(g, dtype, 0));
    return stk_g_div(g, bell, stk_g_sum_all(g, bell));
}

/* One pair of widths for the whole batch. Keras makes the kernel as [second size, first size] and reads it as [first, second]. */
static void call_random_blur(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    const int64_t *size = o->kernel_size.v;
    stk_val bell[2];
    if (stk_augment_at_rest(c)) return;
    stk_val turn = stk_augment_chance(c, o->low[0], o->high[0]);
    for (int32_t i = 0; i < 2; i++) {
        stk_val sigma = stk_augment_draw(c, 0, o->low[1], o->high[1], c->compute);
        bell[i] = stk_augment_bell(g, size[i], stk_g_add(g, sigma, number(c, 1e-6)), 0);
    }
    stk_val kernel = stk_g_reshape(g, stk_g_outer(g, bell[1], bell[0]), 2, size);
    stk_val soft = stk_augment_convolve(g, c->y[0], kernel);
    c->y[0] = stk_augment_clip(c, stk_g_select(g, turn, soft, c->y[0]));
}
static stk_status check_blur(stk_layer_state *layer, stk_error *err)
{
    stk_augment *o = layer->config;
    if (o->kernel_size.v[0] % 2 == 0 || o->kernel_size.v[1] % 2 == 0)
        return stk_layer_refuse(layer, err, STK_ERR_ARGUMENT, "kernel_size takes odd numbers");
    if (!upper_range(&o->sigma, &o->low[1], &o->high[1]))
        return stk_layer_refuse(layer, err, STK_ERR_RANGE,
                                "sigma takes a number, or two, from 0 to 1");
    return stk_augment_check_factor(layer, 0, 1, err);
}
static const stk_config_field blur_fields[] = {
    STK_AUG(factor, REALS, "1.0"), STK_AUG(kernel_size, INTS, "3", .count = 2, .low = 1),
    STK_AUG(sigma, REALS, "1.0"), STK_AUG(value_range, REALS, "None"), STK_AUG_LAST};
STK_AUGMENTATION(random_blur, "RandomGaussianBlur", check_blur, blur_fields);

/* ---- the whole range -------------------------------------------------------------------------------------------------------------- */

/* Also outside of training. Images of one colour stay as they are. */
static void call_auto_contrast(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    const int32_t plane[2] = {1, 2};
    stk_augment_at_rest(c);
    if (!stk_graph_ok(g)) return;
    stk_val x = stk_augment_scale(g, c->y[0], o->value_range.v, BYTES);
    stk_val low = stk_g_reduce_min(g, x, 2, plane, true);
    stk_val high = stk_g_reduce_max(g, x, 2, plane, true);
    stk_val scale = stk_g_div(g, number(c, 255), stk_g_sub(g, high, low));
    x = stk_g_sub(g, stk_g_mul(g, x, scale), stk_g_mul(g, low, scale));
    x = stk_augment_scale(g, stk_g_clip(g, x, 0, 255), BYTES, o->value_range.v);
    c->y[0] = stk_g_select(g, stk_g_eq(g, low, high), c->y[0], x);
}
static const stk_config_field contrast_fields[] = {STK_AUG(value_range, REALS, "None"),
                                                   STK_AUG(data_format, TEXT, "None")};
STK_AUGMENTATION(auto_contrast, "AutoContrast", stk_augment_check, contrast_fields);

/* One channel of the whole batch, as Keras does it, in bytes. */
static stk_val equalised(stk_layer_call *c, stk_val x)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    stk_shape s = stk_type_of(g, x)->shape;
    int64_t all = s.dim[0] * s.dim[1] * s.dim[2] * s.dim[3];
    stk_val most = stk_g_scalar(g, STK_F32, (double)(o->bins - 1)),
            zero = stk_g_scalar(g, STK_F32, 0), full = stk_g_scalar(g, STK_F32, 255),
            one = stk_g_scalar(g, STK_F32, 1);
    stk_val at = stk_g_div(g, stk_g_mul(g, x, most), full);
    at = stk_g_cast(g, stk_g_clip(g, stk_g_trunc(g, at), 0, (double)(o->bins - 1)), STK_I32);
    stk_val ones = stk_g_fill(g, STK_F32, 1, &all, 1);
    stk_val count = stk_g_segment_sum(g, ones, stk_g_reshape(g, at, 1, &all), o->bins);
    stk_val used = stk_g_sum_all(g, stk_g_cast(g, stk_g_gt(g, count, zero), STK_F32));
    stk_val below = stk_g_cumsum(g, count, 0, false, false);
    stk_val total = stk_g_scalar(g, STK_F32, (double)all);
    stk_val first = stk_g_reduce_min(g, stk_g_select(g, stk_g_gt(g, below, zero), below, total), 0,
                                     NULL, false);
    stk_val range = stk_g_max(g, stk_g_sub(g, total, first), one);
    stk_val table = stk_g_div(g, stk_g_mul(g, stk_g_sub(g, below, first), full), range);
    table = stk_g_clip(g, stk_g_round(g, table), 0, 255);
    stk_val place = stk_g_mul(g, stk_g_div(g, x, full), most);
    place = stk_g_cast(g, stk_g_trunc(g, stk_g_clip(g, place, 0, (double)(o->bins - 1))), STK_I32);
    return stk_g_select(g, stk_g_le(g, used, one), x, stk_g_gather(g, table, place, 0));
}

static void call_equalization(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    stk_val part[STK_LAYER_OUTPUTS];
    if (stk_augment_at_rest(c) || !stk_graph_ok(g)) return;
    int64_t n = stk_c_dim(c, 0, 3);
    if (n > STK_LAYER_OUTPUTS) {
        stk_c_fail(c, STK_ERR_RANGE, "images with %lld channels", (long long)n);
        return;
    }
    stk_val x = stk_augment_scale(g, stk_g_cast(g, c->y[0], STK_F32), o->value_range.v, BYTES);
    stk_g_split(g, x, -1, (int32_t)n, part);
    for (int64_t i = 0; i < n && stk_graph_ok(g); i++) part[i] = equalised(c, part[i]);
    x = stk_g_concat(g, (int32_t)n, part, -1);
    c->y[0] = stk_g_cast(g, stk_augment_scale(g, x, BYTES, o->value_range.v), c->compute);
}
static const stk_config_field equalization_fields[] = {STK_AUG(value_range, REALS, "None"),
                                                       STK_AUG(bins, INT, "256", .low = 2),
                                                       STK_AUG(data_format, TEXT, "None")};
STK_AUGMENTATION(equalization, "Equalization", stk_augment_check, equalization_fields);
