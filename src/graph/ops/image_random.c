/* Random variants of the image operations, for augmentation: each image of a batch draws for itself. Composed of
 * random numbers and the plain operations, so the same seed and counter give the same images anywhere. */
#include "graph/ops/image.h"

#include <math.h>

/* One number for each image, shaped to broadcast over it: [] or [images,1,1,1]. */
static stk_val draw(stk_graph *g, stk_val image, double low, double high,
                    const stk_random_options *options)
{
    if (low == high) return stk_g_scalar(g, STK_F32, low);
    bool batch = stk_g_rank(g, image) == 4;
    int64_t shape[] = {batch ? stk_g_dim(g, image, 0) : 1, 1, 1, 1};
    return stk_g_random_uniform(g, STK_F32, batch ? 4 : 0, shape, low, high, options);
}

static bool range_ok(stk_graph *g, const char *who, double low, double high)
{
    if (isfinite(low) && isfinite(high) && low <= high) return true;
    stk_g_fail(g, STK_ERR_RANGE, "%s: from %g to %g; the first must not be above the second", who,
               low, high);
    return false;
}

static stk_val flip_some(stk_graph *g, stk_val image, stk_val flipped,
                         const stk_random_options *options)
{
    if (!flipped) return 0;
    stk_val coin = draw(g, image, 0, 1, options);
    return stk_g_select(g, stk_g_lt(g, coin, stk_g_scalar(g, STK_F32, 0.5)), flipped, image);
}

stk_val stk_g_image_random_flip_left_right(stk_graph *g, stk_val image,
                                           const stk_random_options *options)
{
    return flip_some(g, image, stk_g_image_flip_left_right(g, image), options);
}

stk_val stk_g_image_random_flip_up_down(stk_graph *g, stk_val image,
                                        const stk_random_options *options)
{
    return flip_some(g, image, stk_g_image_flip_up_down(g, image), options);
}

stk_val stk_g_image_random_brightness(stk_graph *g, stk_val image, double delta,
                                      const stk_random_options *options)
{
    if (stk_image_axis(g, "random_brightness", image, 0) < 0 ||
        !range_ok(g, "random_brightness", -delta, delta))
        return 0;
    return stk_g_image_adjust_brightness(g, image, draw(g, image, -delta, delta, options));
}

stk_val stk_g_image_random_contrast(stk_graph *g, stk_val image, double low, double high,
                                    const stk_random_options *options)
{
    if (stk_image_axis(g, "random_contrast", image, 0) < 0 ||
        !range_ok(g, "random_contrast", low, high))
        return 0;
    return stk_g_image_adjust_contrast(g, image, draw(g, image, low, high, options));
}

stk_val stk_g_image_random_saturation(stk_graph *g, stk_val image, double low, double high,
                                      const stk_random_options *options)
{
    if (stk_image_axis(g, "random_saturation", image, 3) < 0 ||
        !range_ok(g, "random_saturation", low, high))
        return 0;
    return stk_g_image_adjust_saturation(g, image, draw(g, image, low, high, options));
}

stk_val stk_g_image_random_hue(stk_graph *g, stk_val image, double delta,
                               const stk_random_options *options)
{
    if (stk_image_axis(g, "random_hue", image, 3) < 0 || !range_ok(g, "random_hue", -delta, delta))
        return 0;
    return stk_g_image_adjust_hue(g, image, draw(g, image, -delta, delta, options));
}

/* ---- windows ---------------------------------------------------------------------------------------------- */

/* Columns of numbers in 0 .. 1, [images, 1] each: one draw for all, since a caller's stream may be used once only. */
static void draw_columns(stk_graph *g, int64_t images, int32_t n, stk_val *columns,
                         const stk_random_options *options)
{
    stk_val all = stk_g_random_uniform(g, STK_F32, 2, (int64_t[]){images, n}, 0, 1, options);
    for (int32_t i = 0; i < n; i++) columns[i] = stk_g_slice_axis(g, all, 1, i, 1);
}

static stk_val between(stk_graph *g, stk_val u, double low, double high)
{
    stk_val scaled = stk_g_mul(g, u, stk_g_scalar(g, STK_F32, high - low));
    return stk_g_add(g, scaled, stk_g_scalar(g, STK_F32, low));
}

/* `size` consecutive indices out of `have`, the first one as u says: [images, size]. */
static stk_val random_run(stk_graph *g, stk_val u, int64_t have, int64_t size)
{
    stk_val first = stk_g_floor(g, between(g, u, 0, (double)(have - size + 1)));
    first = stk_g_min(
        g, first,
        stk_g_scalar(g, STK_F32, (double)(have - size))); /* it may have been rounded up */
    stk_val run = stk_g_iota(g, STK_I64, 1, &size, 0);
    return stk_g_add(g, run, stk_g_cast(g, first, STK_I64));
}

stk_val stk_g_image_random_crop(stk_graph *g, stk_val image, int64_t height, int64_t width,
                                const stk_random_options *options)
{
    int32_t axis = stk_image_axis(g, "random_crop", image, 0);
    if (axis < 0) return 0;
    int64_t h = stk_g_dim(g, image, axis), w = stk_g_dim(g, image, axis + 1);
    if (height < 1 || width < 1 || height > h || width > w)
        return stk_g_fail(g, STK_ERR_RANGE,
                          "random_crop: %lld x %lld out of an image of %lld x %lld",
                          (long long)height, (long long)width, (long long)h, (long long)w);
    stk_val u[2], batch = axis ? image : stk_g_expand_dims(g, image, 0);
    draw_columns(g, stk_g_dim(g, batch, 0), 2, u, options);
    stk_val y = stk_g_gather_batch(g, batch, random_run(g, u[0], h, height), 1, 1);
    y = stk_g_gather_batch(g, y, random_run(g, u[1], w, width), 2, 1);
    return axis || !y ? y : stk_g_squeeze(g, y, 0);
}

/* ---- turns, zooms, shifts ------------------------------------------------------------------------------------- */

stk_random_affine_options stk_random_affine_options_defaults(void)
{
    return (stk_random_affine_options){
        .zoom_low = 1, .zoom_high = 1, .project = stk_project_options_defaults()};
}

/* With c the centre: p is read at A (p - c - shift) + c, where A turns by the angle and divides by the zoom. */
static stk_val affine_rows(stk_graph *g, int64_t n, double h, double w,
                           const stk_random_affine_options *o, const stk_random_options *options)
{
#define NUMBER(v) stk_g_scalar(g, STK_F32, (v))
    stk_val u[4];
    double cx = (w - 1) / 2, cy = (h - 1) / 2, wide = o->shift_width * w,
           high = o->shift_height * h;
    draw_columns(g, n, 4, u, options);
    stk_val angle = between(g, u[0], -o->rotation, o->rotation),
            zoom = between(g, u[1], o->zoom_low, o->zoom_high);
    stk_val from_x = between(g, u[2], cx - wide, cx + wide),
            from_y = between(g, u[3], cy - high, cy + high);
    stk_val a = stk_g_div(g, stk_g_cos(g, angle), zoom),
            b = stk_g_div(g, stk_g_sin(g, angle), zoom);
    stk_val minus_b = stk_g_neg(g, b);
    stk_val x = stk_g_sub(g, NUMBER(cx),
                          stk_g_add(g, stk_g_mul(g, a, from_x), stk_g_mul(g, minus_b, from_y)));
    stk_val y =
        stk_g_sub(g, NUMBER(cy), stk_g_add(g, stk_g_mul(g, b, from_x), stk_g_mul(g, a, from_y)));
    stk_val zero = stk_g_fill(g, STK_F32, 2, (int64_t[]){n, 1}, 0);
#undef NUMBER
    return stk_g_concat(g, 8, (stk_val[]){a, minus_b, x, b, a, y, zero, zero}, 1);
}

stk_val stk_g_image_random_affine(stk_graph *g, stk_val image,
                                  const stk_random_affine_options *affine,
                                  const stk_random_options *options)
{
    stk_random_affine_options o = affine ? *affine : stk_random_affine_options_defaults();
    int32_t axis = stk_image_axis(g, "random_affine", image, 0);
    if (axis < 0 || !range_ok(g, "random_affine: zoom", o.zoom_low, o.zoom_high) ||
        !range_ok(g, "random_affine: rotation", -o.rotation, o.rotation) ||
        !range_ok(g, "random_affine: shift", -o.shift_height, o.shift_height) ||
        !range_ok(g, "random_affine: shift", -o.shift_width, o.shift_width))
        return 0;
    if (o.zoom_low <= 0)
        return stk_g_fail(g, STK_ERR_RANGE, "random_affine: zoom %g; needs above 0", o.zoom_low);
    double h = (double)stk_g_dim(g, image, axis), w = (double)stk_g_dim(g, image, axis + 1);
    stk_val rows = affine_rows(g, axis ? stk_g_dim(g, image, 0) : 1, h, w, &o, options);
    return stk_g_image_project(g, image, rows, &o.project);
}
