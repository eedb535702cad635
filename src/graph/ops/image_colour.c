/* Colours of images, composed of elementwise operations: they fuse into chains. */
#include "graph/ops/image.h"

#include <math.h>

/* ---- element types ------------------------------------------------------------------------------------ */

/* Largest value of an integer type; 0 for others. */
static double largest(stk_dtype t)
{
    switch (t) {
    case STK_U8: return UINT8_MAX;
    case STK_I8: return INT8_MAX;
    case STK_U16: return UINT16_MAX;
    case STK_I16: return INT16_MAX;
    case STK_I32: return INT32_MAX;
    case STK_U32: return UINT32_MAX;
    default: return 0;
    }
}

stk_val stk_g_image_to_float(stk_graph *g, stk_val image)
{
    if (stk_image_axis(g, "image_to_float", image, 0) < 0) return 0;
    stk_dtype t = stk_g_dtype(g, image);
    if (stk_dtype_is_float(t)) return image;
    if (!largest(t))
        return stk_g_fail(
            g, STK_ERR_DTYPE,
            "image_to_float: %s is no image; floats and integers of up to 32 bits are",
            STK_TYPE_TEXT(stk_type_of(g, image)));
    return stk_g_mul(g, stk_g_cast(g, image, STK_F32), stk_g_scalar(g, STK_F32, 1 / largest(t)));
}

stk_val stk_g_image_from_float(stk_graph *g, stk_val image, stk_dtype dtype)
{
    if (stk_image_axis(g, "image_from_float", image, 0) < 0) return 0;
    stk_dtype t = stk_g_dtype(g, image);
    if (!stk_dtype_is_float(t) || (!stk_dtype_is_float(dtype) && !largest(dtype)))
        return stk_g_fail(
            g, STK_ERR_DTYPE,
            "image_from_float: from %s to %s; from floats to floats or integers of up to 32 bits",
            STK_TYPE_TEXT(stk_type_of(g, image)), stk_dtype_name(dtype));
    if (stk_dtype_is_float(dtype)) return stk_g_cast(g, image, dtype);
    /* Half a step more than the largest value, so that 1 / 255, 2 / 255 ... come back exactly. */
    double top = largest(dtype), low = stk_dtype_kind(dtype) == 'U' ? 0 : -top - 1;
    stk_val y = stk_g_mul(g, image, stk_g_scalar(g, t, top + 0.5));
    y = stk_g_max(g, stk_g_min(g, y, stk_g_scalar(g, t, top)), stk_g_scalar(g, t, low));
    return stk_g_cast(g, y, dtype);
}

/* ---- words ------------------------------------------------------------------------------------------------ */

static stk_val number(stk_graph *g, stk_val like, double v)
{
    return stk_g_scalar(g, stk_g_dtype(g, like), v);
}

static stk_val channel(stk_graph *g, stk_val x, int64_t c)
{
    return stk_g_slice_axis(g, x, -1, c, 1);
}

static stk_val clip01(stk_graph *g, stk_val x)
{
    return stk_g_min(g, stk_g_max(g, x, number(g, x, 0)), number(g, x, 1));
}

/* The amount in the image's dtype; one per image is [images,1,1,1] and broadcasts by itself. */
static stk_val amount(stk_graph *g, const char *who, stk_val x, stk_val v)
{
    if (!stk_graph_ok(g)) return 0;
    if (!stk_val_ok(g, v) || !stk_dtype_is_float(stk_g_dtype(g, v)))
        return stk_g_fail(g, STK_ERR_ARGUMENT, "%s: the amount must be a float value of this graph",
                          who);
    stk_shape both, have = stk_type_of(g, x)->shape;
    if (!stk_shape_broadcast(&have, &stk_type_of(g, v)->shape, &both) ||
        !stk_shape_equal(&both, &have))
        return stk_g_fail(g, STK_ERR_SHAPE,
                          "%s: amount %s does not fit image %s; give a scalar, or [images,1,1,1]",
                          who, STK_TYPE_TEXT(stk_type_of(g, v)), STK_TYPE_TEXT(stk_type_of(g, x)));
    return stk_g_cast(g, v, stk_g_dtype(g, x));
}

/* ---- brightness, contrast ----------------------------------------------------------------------------------- */

stk_val stk_g_image_adjust_brightness(stk_graph *g, stk_val image, stk_val delta)
{
    if (stk_image_axis(g, "adjust_brightness", image, 0) < 0) return 0;
    stk_val x = stk_g_image_to_float(g, image);
    stk_val y = stk_g_add(g, x, amount(g, "adjust_brightness", x, delta));
    return y ? stk_g_image_from_float(g, y, stk_g_dtype(g, image)) : 0;
}

stk_val stk_g_image_adjust_contrast(stk_graph *g, stk_val image, stk_val factor)
{
    int32_t axis = stk_image_axis(g, "adjust_contrast", image, 0);
    if (axis < 0) return 0;
    stk_val x = stk_g_image_to_float(g, image);
    stk_val mean = stk_g_mean(g, x, 2, (int32_t[]){axis, axis + 1}, true);
    stk_val f = amount(g, "adjust_contrast", x, factor);
    stk_val y = stk_g_add(g, stk_g_mul(g, stk_g_sub(g, x, mean), f), mean);
    return y ? stk_g_image_from_float(g, y, stk_g_dtype(g, image)) : 0;
}

stk_val stk_g_image_standardise(stk_graph *g, stk_val image)
{
    int32_t axis = stk_image_axis(g, "standardise", image, 0);
    if (axis < 0) return 0;
    stk_dtype t = stk_g_dtype(g, image);
    stk_val x = stk_dtype_is_float(t) ? image : stk_g_cast(g, image, STK_F32);
    int32_t axes[] = {axis, axis + 1, axis + 2};
    stk_shape s = stk_type_of(g, image)->shape;
    double count = (double)(s.dim[axis] * s.dim[axis + 1] * s.dim[axis + 2]);
    stk_val centred = stk_g_sub(g, x, stk_g_mean(g, x, 3, axes, true));
    stk_val deviation = stk_g_sqrt(g, stk_g_mean(g, stk_g_square(g, centred), 3, axes, true));
    return stk_g_div(g, centred,
                     stk_g_max(g, deviation, number(g, x, 1 / sqrt(count > 1 ? count : 1))));
}

/* ---- grey ----------------------------------------------------------------------------------------------------- */

stk_val stk_g_image_rgb_to_grayscale(stk_graph *g, stk_val image)
{
    if (stk_image_axis(g, "rgb_to_grayscale", image, 3) < 0) return 0;
    stk_val x = stk_g_image_to_float(g, image);
    stk_val r = stk_g_mul(g, channel(g, x, 0), number(g, x, 0.2989));
    stk_val m = stk_g_mul(g, channel(g, x, 1), number(g, x, 0.5870));
    stk_val b = stk_g_mul(g, channel(g, x, 2), number(g, x, 0.1140));
    stk_val y = stk_g_add(g, stk_g_add(g, r, m), b);
    return y ? stk_g_image_from_float(g, y, stk_g_dtype(g, image)) : 0;
}

stk_val stk_g_image_grayscale_to_rgb(stk_graph *g, stk_val image)
{
    if (stk_image_axis(g, "grayscale_to_rgb", image, 1) < 0) return 0;
    stk_shape s = stk_type_of(g, image)->shape;
    s.dim[s.rank - 1] = 3;
    return stk_g_broadcast(g, image, s.rank, s.dim);
}

/* ---- hue, saturation, value ---------------------------------------------------------------------------------- */

typedef struct hsv {
    stk_val h, s, v;
} hsv;

static hsv split_hsv(stk_graph *g, stk_val x)
{
    stk_val r = channel(g, x, 0), m = channel(g, x, 1), b = channel(g, x, 2),
            zero = number(g, x, 0);
    stk_val top = stk_g_max(g, stk_g_max(g, r, m), b), low = stk_g_min(g, stk_g_min(g, r, m), b);
    stk_val range = stk_g_sub(g, top, low), one = number(g, x, 1);
    stk_val coloured = stk_g_gt(g, range, zero), lit = stk_g_gt(g, top, zero);
    /* Divisors that are not used must still not be 0: their gradient would be NaN. */
    stk_val sixth = stk_g_div(g, number(g, x, 1.0 / 6), stk_g_select(g, coloured, range, one));
    stk_val from_r = stk_g_mul(g, sixth, stk_g_sub(g, m, b));
    stk_val from_m = stk_g_add(g, stk_g_mul(g, sixth, stk_g_sub(g, b, r)), number(g, x, 2.0 / 6));
    stk_val from_b = stk_g_add(g, stk_g_mul(g, sixth, stk_g_sub(g, r, m)), number(g, x, 4.0 / 6));
    stk_val h = stk_g_select(g, stk_g_eq(g, r, top), from_r,
                             stk_g_select(g, stk_g_eq(g, m, top), from_m, from_b));
    h = stk_g_select(g, coloured, h, zero);
    h = stk_g_select(g, stk_g_lt(g, h, zero), stk_g_add(g, h, one), h);
    stk_val s = stk_g_select(g, lit, stk_g_div(g, range, stk_g_select(g, lit, top, one)), zero);
    return (hsv){h, s, top};
}

/* v ((1 - s) + s d), where d is how much of this primary the hue has: a trapezium around it. */
static stk_val primary(stk_graph *g, hsv c, double centre, double sign, double offset)
{
    stk_val six = stk_g_mul(g, c.h, number(g, c.h, 6));
    stk_val far = stk_g_abs(g, stk_g_sub(g, six, number(g, c.h, centre)));
    stk_val d =
        clip01(g, stk_g_add(g, stk_g_mul(g, far, number(g, c.h, sign)), number(g, c.h, offset)));
    stk_val rest = stk_g_sub(g, number(g, c.h, 1), c.s);
    return stk_g_mul(g, c.v, stk_g_add(g, rest, stk_g_mul(g, c.s, d)));
}

static stk_val join_rgb(stk_graph *g, hsv c)
{
    stk_val rgb[] = {primary(g, c, 3, 1, -1), primary(g, c, 2, -1, 2), primary(g, c, 4, -1, 2)};
    return stk_g_concat(g, 3, rgb, -1);
}

static stk_val need_floats(stk_graph *g, const char *who, stk_val image)
{
    if (stk_image_axis(g, who, image, 3) < 0) return 0;
    if (stk_dtype_is_float(stk_g_dtype(g, image))) return image;
    return stk_g_fail(g, STK_ERR_DTYPE, "%s: %s; needs floats, use stk_g_image_to_float first", who,
                      STK_TYPE_TEXT(stk_type_of(g, image)));
}

stk_val stk_g_image_rgb_to_hsv(stk_graph *g, stk_val image)
{
    if (!need_floats(g, "rgb_to_hsv", image)) return 0;
    hsv c = split_hsv(g, image);
    return stk_g_concat(g, 3, (stk_val[]){c.h, c.s, c.v}, -1);
}

stk_val stk_g_image_hsv_to_rgb(stk_graph *g, stk_val image)
{
    if (!need_floats(g, "hsv_to_rgb", image)) return 0;
    return join_rgb(g, (hsv){channel(g, image, 0), channel(g, image, 1), channel(g, image, 2)});
}

stk_val stk_g_image_adjust_saturation(stk_graph *g, stk_val image, stk_val factor)
{
    if (stk_image_axis(g, "adjust_saturation", image, 3) < 0) return 0;
    stk_val x = stk_g_image_to_float(g, image), f = amount(g, "adjust_saturation", x, factor);
    if (!f) return 0;
    hsv c = split_hsv(g, x);
    c.s = clip01(g, stk_g_mul(g, c.s, f));
    stk_val y = join_rgb(g, c);
    return y ? stk_g_image_from_float(g, y, stk_g_dtype(g, image)) : 0;
}

stk_val stk_g_image_adjust_hue(stk_graph *g, stk_val image, stk_val delta)
{
    if (stk_image_axis(g, "adjust_hue", image, 3) < 0) return 0;
    stk_val x = stk_g_image_to_float(g, image), d = amount(g, "adjust_hue", x, delta);
    if (!d) return 0;
    hsv c = split_hsv(g, x);
    stk_val turned = stk_g_add(g, c.h, d);
    c.h = stk_g_sub(g, turned, stk_g_floor(g, turned));
    stk_val y = join_rgb(g, c);
    return y ? stk_g_image_from_float(g, y, stk_g_dtype(g, image)) : 0;
}
