/* Parts of images changed at random: crops, shears, perspectives, elastic waves, boxes that are erased or come from another image. */
#include "layers/kinds/augmentation.h"

#include "stoker/image.h"

#include <math.h>
#include <string.h>

static stk_val scalar(stk_graph *g, double value) { return stk_g_scalar(g, STK_F32, value); }

/* ---- RandomCrop: one place for the whole batch -------------------------------------------------------------------------------- */

/* `size` of `from` places along an axis, from a random one on. */
static stk_val cut(stk_layer_call *c, stk_val x, int32_t axis, int64_t from, int64_t size)
{
    stk_graph *g = c->g;
    stk_val start = stk_augment_draw(c, 0, 0, (double)(from - size + 1), STK_F32);
    start = stk_g_min(g, stk_g_floor(g, start), scalar(g, (double)(from - size)));
    stk_val places =
        stk_g_add(g, stk_g_iota(g, STK_I32, 1, &size, 0), stk_g_cast(g, start, STK_I32));
    return stk_g_gather(g, x, places, axis);
}

/* Images that are not larger than the crop lose what does not fit its sides and are scaled. */
static stk_val fit(stk_layer_call *c, stk_val x, int64_t height, int64_t width)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    int64_t tall = (int64_t)((double)(width * o->height) / (double)o->width);
    int64_t wide = (int64_t)((double)(height * o->width) / (double)o->height);
    tall = tall < 1 ? 1 : tall > height ? height : tall;
    wide = wide < 1 ? 1 : wide > width ? width : wide;
    int64_t top = (height - tall) / 2, left = (width - wide) / 2;
    int64_t rows = o->height < height - top ? o->height : height - top;
    int64_t columns = o->width < width - left ? o->width : width - left;
    x = stk_g_image_crop(g, x, top, left, rows, columns);
    if (rows == o->height && columns == o->width) return x;
    return stk_g_image_resize(g, x, o->height, o->width, STK_RESIZE_BILINEAR, false);
}

/* Outside of training Keras gives the images as they are, whatever their size; the shape of the model is that of training. */
static void call_random_crop(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    bool rest = stk_augment_at_rest(c);
    if (!stk_graph_ok(c->g) || (rest && !c->trial)) return;
    int64_t height = stk_c_dim(c, 0, 1), width = stk_c_dim(c, 0, 2);
    if (height > o->height && width > o->width) {
        c->y[0] = cut(c, c->y[0], 1, height, o->height);
        c->y[0] = cut(c, c->y[0], 2, width, o->width);
    } else {
        c->y[0] = stk_g_cast(c->g, fit(c, c->y[0], height, width), c->compute);
    }
}
static const stk_config_field crop_fields[] = {
    STK_AUG(height, INT, NULL, .low = 1), STK_AUG(width, INT, NULL, .low = 1),
    STK_AUG(seed, INT, "None", .wide = true), STK_AUG(data_format, TEXT, "None")};
STK_AUGMENTATION(random_crop, "RandomCrop", stk_augment_check, crop_fields);

/* ---- RandomShear -------------------------------------------------------------------------------------------------------------- */

static void call_random_shear(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    if (stk_augment_at_rest(c)) return;
    stk_val coin = stk_g_gt(g, stk_augment_draw(c, 2, 0, 1, STK_F32), scalar(g, 0.5));
    stk_val sign = stk_g_select(g, coin, scalar(g, -1), scalar(g, 1));
    stk_val y = stk_g_mul(g, stk_augment_draw(c, 2, o->low[1], o->high[1], STK_F32), sign);
    stk_val x = stk_g_mul(g, stk_augment_draw(c, 2, o->low[0], o->high[0], STK_F32), sign);
    stk_val zero = stk_g_zeros_like(g, x), one = stk_g_add(g, zero, scalar(g, 1));
    stk_augment_read(c, (stk_val[]){one, x, zero, y, one, zero, zero, zero});
}
static stk_status check_shear(stk_layer_state *layer, stk_error *err)
{
    stk_augment *o = layer->config;
    if (!stk_augment_range(&o->x_factor, -1, &o->low[0], &o->high[0]) ||
        !stk_augment_range(&o->y_factor, -1, &o->low[1], &o->high[1]) || o->low[0] < -1 ||
        o->low[1] < -1 || o->high[0] > 1 || o->high[1] > 1)
        return stk_layer_refuse(layer, err, STK_ERR_RANGE,
                                "x_factor and y_factor take a number, or two: lower and upper, up "
                                "to 1");
    return stk_augment_check(layer, err);
}
static const stk_config_field shear_fields[] = {
    STK_AUG(x_factor, REALS, "0.0"),          STK_AUG(y_factor, REALS, "0.0"),
    STK_AUG(interpolation, TEXT, "bilinear"), STK_AUG(fill_mode, TEXT, "reflect"),
    STK_AUG(fill_value, REAL, "0"),           STK_AUG_LAST};
STK_AUGMENTATION(random_shear, "RandomShear", check_shear, shear_fields);

/* ---- RandomPerspective: three corners move, the first one stays ------------------------------------------------------------------ */

/* A corner's coordinate times 1 + something drawn. */
static stk_val corner(stk_layer_call *c, double at)
{
    const stk_augment *o = c->config;
    double by = 0.5 * o->scale.v[0];
    return stk_augment_draw(c, 2, at * (1 - by), at * (1 + by), STK_F32);
}

/* The projection that takes (0, 0), (x2, 0), (0, y3), (x4, y4) to the corners (0, 0), (w, 0), (0, h), (w, h). With the first one
 * fixed, the eight equations of Keras have this solution. */
static void call_random_perspective(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    if (stk_augment_at_rest(c)) return;
    double w = (double)stk_c_dim(c, 0, 2) - 1, h = (double)stk_c_dim(c, 0, 1) - 1;
    if (w < 1 || h < 1) {
        stk_c_fail(c, STK_ERR_SHAPE, "images need two pixels in both directions");
        return;
    }
    stk_val before = c->y[0], turn = stk_augment_chance(c, o->low[0], o->high[0]);
    stk_val x2 = corner(c, w), y3 = corner(c, h), x4 = corner(c, w), y4 = corner(c, h);
    stk_val one = scalar(g, 1), zero = stk_g_zeros_like(g, x2);
    stk_val c1 = stk_g_div(g, stk_g_sub(g, stk_g_div(g, x4, x2), one), y4);
    stk_val c0 = stk_g_div(g, stk_g_sub(g, stk_g_div(g, y4, y3), one), x4);
    stk_val a0 = stk_g_mul(g, stk_g_add(g, c0, stk_g_div(g, one, x2)), scalar(g, w));
    stk_val b1 = stk_g_mul(g, stk_g_add(g, c1, stk_g_div(g, one, y3)), scalar(g, h));
    stk_augment_read(c, (stk_val[]){a0, zero, zero, zero, b1, zero, c0, c1});
    c->y[0] = stk_g_select(g, turn, c->y[0], before);
}
static stk_status check_perspective(stk_layer_state *layer, stk_error *err)
{
    stk_augment *o = layer->config;
    if (o->scale.n != 1 || !(o->scale.v[0] >= 0 && o->scale.v[0] <= 1))
        return stk_layer_refuse(layer, err, STK_ERR_RANGE, "scale takes a number from 0 to 1");
    return stk_augment_check_factor(layer, 0, 1, err);
}
static const stk_config_field perspective_fields[] = {STK_AUG(factor, REALS, "1.0"),
                                                      STK_AUG(scale, REALS, "1.0"),
                                                      STK_AUG(interpolation, TEXT, "bilinear"),
                                                      STK_AUG(fill_value, REAL, "0"),
                                                      STK_AUG(seed, INT, "None", .wide = true),
                                                      STK_AUG(data_format, TEXT, "None")};
STK_AUGMENTATION(random_perspective, "RandomPerspective", check_perspective, perspective_fields);

/* ---- boxes ------------------------------------------------------------------------------------------------------------------------ */

/* bool: whether places along an axis are within `ratio` [images, 1, 1, 1] of its length, somewhere. */
static stk_val within(stk_layer_call *c, stk_val ratio, int32_t axis)
{
    stk_graph *g = c->g;
    int64_t shape[4] = {1, 1, 1, 1}, n = stk_c_dim(c, 0, axis);
    stk_val all = scalar(g, (double)n), length = stk_g_mul(g, ratio, all);
    shape[axis] = n;
    stk_val from = stk_augment_draw(c, 4, 0, 1, STK_F32);
    from = stk_g_mul(g, from, stk_g_sub(g, all, length));
    stk_val at = stk_g_iota(g, STK_F32, 4, shape, axis), to = stk_g_add(g, from, length);
    return stk_g_and(g, stk_g_ge(g, at, from), stk_g_lt(g, at, to));
}

/* What an erased box is filled with: noise, a number, or one per channel. */
static stk_val filling(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    stk_shape s = stk_c_shape(c, 0);
    const stk_reals *v = &o->erase_value;
    stk_val part[3];
    if (v->n < 0) {
        stk_random_options random = stk_c_random(c, o->seed);
        stk_val noise = stk_g_random_normal(g, STK_F32, s.rank, s.dim, 0, 1, &random);
        return stk_g_mul(g, noise, scalar(g, o->value_range.v[1]));
    }
    for (int32_t i = 0; i < 3; i++)
        part[i] = stk_g_fill(g, STK_F32, 4, (int64_t[]){1, 1, 1, 1}, v->v[v->n == 3 ? i : 0]);
    return v->n == 3 ? stk_g_concat(g, 3, part, -1) : part[0];
}

static void call_random_erasing(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    if (stk_augment_at_rest(c)) return;
    stk_val wide = stk_g_sqrt(g, stk_augment_draw(c, 4, o->low[1], o->high[1], STK_F32));
    stk_val tall = stk_g_sqrt(g, stk_augment_draw(c, 4, o->low[1], o->high[1], STK_F32));
    stk_val box = within(c, wide, 2);
    box = stk_g_and(g, box, within(c, tall, 1));
    box = stk_g_and(g, box, stk_augment_chance(c, o->low[0], o->high[0]));
    stk_val fill = stk_g_cast(g, stk_augment_clip(c, filling(c)), c->compute);
    c->y[0] = stk_g_select(g, box, fill, c->y[0]);
}
static stk_status check_scale(stk_layer_state *layer, stk_error *err)
{
    stk_augment *o = layer->config;
    if (!stk_augment_range(&o->scale, 0, &o->low[1], &o->high[1]) || o->low[1] < 0 ||
        o->high[1] > 1)
        return stk_layer_refuse(layer, err, STK_ERR_RANGE,
                                "scale takes a number, or two, from 0 to 1");
    return stk_augment_check_factor(layer, 0, 1, err);
}
static stk_status check_erasing(stk_layer_state *layer, stk_error *err)
{
    stk_augment *o = layer->config;
    static double usual[2] = {0.02, 0.33};
    if (o->scale.n < 0) o->scale = (stk_reals){.n = 2, .v = usual};
    if (o->erase_value.n > 1 && o->erase_value.n != 3)
        return stk_layer_refuse(layer, err, STK_ERR_ARGUMENT,
                                "fill_value takes a number, or three");
    return check_scale(layer, err);
}
static const stk_config_field erasing_fields[] = {STK_AUG(factor, REALS, "1.0"),
                                                  STK_AUG(scale, REALS, "None"),
                                                  {.name = "fill_value",
                                                   .kind = STK_FIELD_REALS,
                                                   .offset = offsetof(stk_augment, erase_value),
                                                   .fallback = "None"},
                                                  STK_AUG(value_range, REALS, "None"),
                                                  STK_AUG(seed, INT, "None", .wide = true),
                                                  STK_AUG(data_format, TEXT, "None")};
STK_AUGMENTATION(random_erasing, "RandomErasing", check_erasing, erasing_fields);

/* ---- two images in one: CutMix and MixUp. Targets stay as they are, as in Keras when a model holds the layer. --------------------- */

enum { TRIES = 8 };

/* Marsaglia and Tsang for alpha + 1, whose tries succeed in 95 of 100 cases: of eight at once a good one counts. Then
 * log(gamma(alpha)) = log(gamma(alpha + 1)) + log(u) / alpha, which does not underflow for small alpha. */
stk_val stk_augment_log_gamma(stk_layer_call *c, int32_t rank, const int64_t *shape, stk_val alpha)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    stk_val one = scalar(g, 1), half = scalar(g, 0.5);
    stk_val d = stk_g_add(g, alpha, scalar(g, 2.0 / 3));
    stk_val scale = stk_g_rsqrt(g, stk_g_mul(g, d, scalar(g, 9)));
    stk_val found = stk_g_add(g, stk_g_log(g, d), stk_g_fill(g, STK_F32, rank, shape, 0));
    for (int32_t i = 0; i < TRIES; i++) { /* the last good one stays; all are alike */
        stk_random_options normal = stk_c_random(c, o->seed), uniform = stk_c_random(c, o->seed);
        stk_val x = stk_g_random_normal(g, STK_F32, rank, shape, 0, 1, &normal);
        stk_val u = stk_g_random_uniform(g, STK_F32, rank, shape, 1e-12, 1, &uniform);
        stk_val root = stk_g_add(g, one, stk_g_mul(g, scale, x));
        stk_val log_v =
            stk_g_mul(g, stk_g_log(g, stk_g_max(g, root, scalar(g, 1e-30))), scalar(g, 3));
        stk_val limit = stk_g_add(g, stk_g_sub(g, one, stk_g_exp(g, log_v)), log_v);
        limit = stk_g_add(g, stk_g_mul(g, d, limit), stk_g_mul(g, half, stk_g_square(g, x)));
        stk_val good =
            stk_g_and(g, stk_g_gt(g, root, scalar(g, 0)), stk_g_lt(g, stk_g_log(g, u), limit));
        found = stk_g_select(g, good, stk_g_add(g, stk_g_log(g, d), log_v), found);
    }
    stk_random_options last = stk_c_random(c, o->seed);
    stk_val u = stk_g_random_uniform(g, STK_F32, rank, shape, 1e-12, 1, &last);
    return stk_g_add(g, found, stk_g_div(g, stk_g_log(g, u), alpha));
}

/* beta(alpha, alpha), one per image: a / (a + b) of two gammas. */
static stk_val beta(stk_layer_call *c, stk_val alpha)
{
    int64_t shape[4] = {stk_c_dim(c, 0, 0), 1, 1, 1};
    stk_val a = stk_augment_log_gamma(c, 4, shape, alpha);
    stk_val b = stk_augment_log_gamma(c, 4, shape, alpha);
    return stk_g_sigmoid(c->g, stk_g_sub(c->g, a, b));
}

/* The images of the batch in another order. */
static stk_val others(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    stk_random_options random = stk_c_random(c, o->seed);
    stk_val order = stk_g_random_permutation(c->g, stk_c_dim(c, 0, 0), &random);
    return stk_g_gather(c->g, c->y[0], order, 0);
}

static void call_cut_mix(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    if (stk_augment_at_rest(c)) return;
    stk_val alpha = stk_augment_draw(c, 0, o->low[0] + 1e-6, o->high[0] + 1e-6, STK_F32);
    stk_val side = stk_g_sqrt(g, stk_g_sub(g, scalar(g, 1), beta(c, alpha)));
    stk_val box = within(c, side, 2);
    box = stk_g_and(g, box, within(c, side, 1));
    c->y[0] = stk_g_select(g, box, others(c), c->y[0]);
}
static stk_status check_cut_mix(stk_layer_state *layer, stk_error *err)
{
    return stk_augment_check_factor(layer, 0, 1, err);
}
static const stk_config_field cut_mix_fields[] = {STK_AUG(factor, REALS, "1.0"),
                                                  STK_AUG(seed, INT, "None", .wide = true),
                                                  STK_AUG(data_format, TEXT, "None")};
STK_AUGMENTATION(cut_mix, "CutMix", check_cut_mix, cut_mix_fields);

static void call_mix_up(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    if (stk_augment_at_rest(c)) return;
    stk_val part = stk_g_cast(g, beta(c, scalar(g, o->alpha)), c->compute), other = others(c);
    c->y[0] = stk_g_add(g, other, stk_g_mul(g, part, stk_g_sub(g, c->y[0], other)));
}
static stk_status check_mix_up(stk_layer_state *layer, stk_error *err)
{
    const stk_augment *o = layer->config;
    if (!(o->alpha > 0 && o->alpha <= 1))
        return stk_layer_refuse(layer, err, STK_ERR_RANGE, "alpha is %g; it takes 0 to 1",
                                o->alpha);
    return stk_augment_check(layer, err);
}
static const stk_config_field mix_up_fields[] = {STK_AUG(alpha, REAL, "0.2"),
                                                 STK_AUG(data_format, TEXT, "None"),
                                                 STK_AUG(seed, INT, "None", .wide = true)};
STK_AUGMENTATION(mix_up, "MixUp", check_mix_up, mix_up_fields);

/* ---- RandomElasticTransform: each pixel is read a little off, by smooth noise ------------------------------------------------------- */

enum { OFF_CONSTANT, OFF_NEAREST, OFF_WRAP, OFF_MIRROR, OFF_REFLECT };

static int32_t parse_off(const char *mode)
{
    static const char *const names[] = {"constant", "nearest", "wrap", "mirror", "reflect"};
    for (int32_t i = 0; i < 5; i++)
        if (!strcmp(mode, names[i])) return i;
    return -1;
}

/* Places outside of 0 .. n - 1 as places inside; float32 whole numbers. */
static stk_val inside(stk_graph *g, stk_val i, double n, int32_t mode)
{
    stk_val size = scalar(g, n), last = scalar(g, n - 1);
    if (mode == OFF_WRAP) return stk_g_mod(g, i, size);
    if (mode == OFF_REFLECT) {
        stk_val at = stk_g_mod(g, i, scalar(g, 2 * n));
        return stk_g_min(g, at, stk_g_sub(g, scalar(g, 2 * n - 1), at));
    }
    if (mode == OFF_MIRROR && n > 1) {
        stk_val at = stk_g_mod(g, i, scalar(g, 2 * (n - 1)));
        return stk_g_min(g, at, stk_g_sub(g, scalar(g, 2 * (n - 1)), at));
    }
    return stk_g_min(g, stk_g_max(g, i, scalar(g, 0)), last);
}

/* Pixels of image [n, h w, channels] at whole places y, x [n, h, w]. */
static stk_val pixels(stk_layer_call *c, stk_val image, stk_val y, stk_val x)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    int32_t mode = parse_off(o->fill_mode);
    int64_t n = stk_c_dim(c, 0, 0), h = stk_c_dim(c, 0, 1), w = stk_c_dim(c, 0, 2);
    stk_val row = inside(g, y, (double)h, mode), column = inside(g, x, (double)w, mode);
    stk_val at = stk_g_add(g, stk_g_mul(g, row, scalar(g, (double)w)), column);
    at = stk_g_reshape(g, stk_g_cast(g, at, STK_I32), 2, (int64_t[]){n, h * w});
    stk_val read = stk_g_gather_batch(g, image, at, 1, 1);
    if (mode != OFF_CONSTANT) return read;
    stk_val same = stk_g_and(g, stk_g_eq(g, row, y), stk_g_eq(g, column, x));
    return stk_g_select(g, stk_g_reshape(g, same, 3, (int64_t[]){n, h * w, 1}), read,
                        stk_g_scalar(g, c->compute, o->fill_value));
}

/* c->y[0] read at y, x: by the nearest pixel, or by the four around. */
static stk_val read_off(stk_layer_call *c, stk_val y, stk_val x)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    stk_shape s = stk_c_shape(c, 0);
    int64_t flat[3] = {s.dim[0], s.dim[1] * s.dim[2], s.dim[3]}, one[3] = {flat[0], flat[1], 1};
    stk_val image = stk_g_reshape(g, c->y[0], 3, flat), sum = 0;
    if (!strcmp(o->interpolation, "nearest")) {
        sum = pixels(c, image, stk_g_round(g, y), stk_g_round(g, x));
        return stk_g_reshape(g, sum, 4, s.dim);
    }
    stk_val top = stk_g_floor(g, y), left = stk_g_floor(g, x);
    stk_val down = stk_g_sub(g, y, top), right = stk_g_sub(g, x, left);
    for (int32_t k = 0; k < 4; k++) {
        stk_val wy = k & 2 ? down : stk_g_sub(g, scalar(g, 1), down);
        stk_val wx = k & 1 ? right : stk_g_sub(g, scalar(g, 1), right);
        stk_val weight = stk_g_cast(g, stk_g_reshape(g, stk_g_mul(g, wy, wx), 3, one), c->compute);
        stk_val part = pixels(c, image, stk_g_add(g, top, scalar(g, k >> 1)),
                              stk_g_add(g, left, scalar(g, k & 1)));
        part = stk_g_mul(g, part, weight);
        sum = sum ? stk_g_add(g, sum, part) : part;
    }
    return stk_g_reshape(g, sum, 4, s.dim);
}

/* How far each pixel is read off, in both directions alike: Keras draws both with one seed. One strength for the batch. The noise is
 * smoothed by a kernel of 6 [sigma] + 1, here the widest there may be with zeros around. */
static stk_val waves(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    stk_shape s = stk_c_shape(c, 0);
    double small = fmin((double)s.dim[1], (double)s.dim[2]),
           large = fmax((double)s.dim[1], (double)s.dim[2]);
    int64_t size = 6 * (int64_t)(small * 0.05 * o->high[1]) + 1;
    stk_val strength = stk_augment_draw(c, 0, o->low[1], o->high[1], STK_F32);
    stk_val sigma = stk_g_max(g, stk_g_mul(g, strength, scalar(g, 0.05 * small)), scalar(g, 1e-6));
    stk_val reach = stk_g_mul(g, stk_g_floor(g, sigma), scalar(g, 3));
    stk_val bell = stk_augment_bell(g, size, sigma, reach);
    stk_random_options random = stk_c_random(c, o->seed);
    stk_val noise = stk_g_random_normal(g, STK_F32, 4, (int64_t[]){s.dim[0], s.dim[1], s.dim[2], 1},
                                        0, 1, &random);
    stk_val smooth =
        stk_augment_convolve(g, stk_g_mul(g, noise, sigma), stk_g_outer(g, bell, bell));
    stk_val off = stk_g_mul(g, smooth, stk_g_mul(g, strength, scalar(g, 0.1 * large)));
    return stk_g_squeeze(g, off, 3);
}

static void call_random_elastic(stk_layer_call *c)
{
    const stk_augment *o = c->config;
    stk_graph *g = c->g;
    if (stk_augment_at_rest(c) || o->high[1] == 0 || o->high[0] == 0) return;
    int64_t h = stk_c_dim(c, 0, 1), w = stk_c_dim(c, 0, 2);
    stk_val turn = stk_augment_chance(c, o->low[0], o->high[0]), off = waves(c);
    stk_val y = stk_g_add(g, stk_g_iota(g, STK_F32, 3, (int64_t[]){1, h, 1}, 1), off);
    stk_val x = stk_g_add(g, stk_g_iota(g, STK_F32, 3, (int64_t[]){1, 1, w}, 2), off);
    stk_val moved = read_off(c, y, x);
    c->y[0] = stk_augment_clip(c, stk_g_select(g, turn, moved, c->y[0]));
}
static stk_status check_elastic(stk_layer_state *layer, stk_error *err)
{
    stk_augment *o = layer->config;
    const char *mode = o->fill_mode;
    if (parse_off(mode) < 0)
        return stk_layer_refuse(layer, err, STK_ERR_ARGUMENT,
                                "fill_mode takes constant, nearest, wrap, mirror or reflect");
    o->fill_mode = NULL; /* the common check does not know mirror */
    STK_TRY(check_scale(layer, err));
    o->fill_mode = mode;
    return STK_OK;
}
static const stk_config_field elastic_fields[] = {STK_AUG(factor, REALS, "1.0"),
                                                  STK_AUG(scale, REALS, "1.0"),
                                                  STK_AUG(interpolation, TEXT, "bilinear"),
                                                  STK_AUG(fill_mode, TEXT, "reflect"),
                                                  STK_AUG(fill_value, REAL, "0"),
                                                  STK_AUG(value_range, REALS, "None"),
                                                  STK_AUG(seed, INT, "None", .wide = true),
                                                  STK_AUG(data_format, TEXT, "None")};
STK_AUGMENTATION(random_elastic, "RandomElasticTransform", check_elastic, elastic_fields);
