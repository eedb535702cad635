/* Image builders that only move pixels: flips, turns, windows, borders. */
#include "graph/ops/image.h"

#include <math.h>

stk_val stk_g_image_flip_left_right(stk_graph *g, stk_val image)
{
    int32_t axis = stk_image_axis(g, "flip_left_right", image, 0);
    return axis < 0 ? 0 : stk_g_reverse(g, image, axis + 1);
}

stk_val stk_g_image_flip_up_down(stk_graph *g, stk_val image)
{
    int32_t axis = stk_image_axis(g, "flip_up_down", image, 0);
    return axis < 0 ? 0 : stk_g_reverse(g, image, axis);
}

static stk_val swap_sides(stk_graph *g, stk_val image, int32_t axis)
{
    int32_t perm[] = {0, 1, 2, 3};
    perm[axis] = axis + 1;
    perm[axis + 1] = axis;
    return stk_g_transpose(g, image, perm);
}

stk_val stk_g_image_transpose(stk_graph *g, stk_val image)
{
    int32_t axis = stk_image_axis(g, "image_transpose", image, 0);
    return axis < 0 ? 0 : swap_sides(g, image, axis);
}

stk_val stk_g_image_rot90(stk_graph *g, stk_val image, int32_t turns)
{
    int32_t axis = stk_image_axis(g, "rot90", image, 0);
    if (axis < 0) return 0;
    switch ((turns % 4 + 4) % 4) {
    case 1: return swap_sides(g, stk_g_reverse(g, image, axis + 1), axis);
    case 2: return stk_g_reverse(g, stk_g_reverse(g, image, axis), axis + 1);
    case 3: return stk_g_reverse(g, swap_sides(g, image, axis), axis + 1);
    default: return image;
    }
}

stk_val stk_g_image_crop(stk_graph *g, stk_val image, int64_t top, int64_t left, int64_t height,
                         int64_t width)
{
    int32_t axis = stk_image_axis(g, "image_crop", image, 0);
    if (axis < 0) return 0;
    stk_shape s = stk_type_of(g, image)->shape;
    int64_t start[STK_MAX_RANK] = {0}, h = s.dim[axis], w = s.dim[axis + 1];
    if (top < 0 || left < 0 || height < 0 || width < 0 || top > h || left > w || height > h - top ||
        width > w - left)
        return stk_g_fail(
            g, STK_ERR_RANGE,
            "image_crop: %lld x %lld from (%lld, %lld) leaves the image of %lld x %lld",
            (long long)height, (long long)width, (long long)top, (long long)left, (long long)h,
            (long long)w);
    if (height == h && width == w) return image;
    start[axis] = height ? top : 0;
    start[axis + 1] = width ? left : 0;
    s.dim[axis] = height;
    s.dim[axis + 1] = width;
    return stk_g_slice(g, image, start, s.dim, NULL);
}

stk_val stk_g_image_central_crop(stk_graph *g, stk_val image, double fraction)
{
    int32_t axis = stk_image_axis(g, "central_crop", image, 0);
    if (axis < 0) return 0;
    if (!(fraction > 0 && fraction <= 1))
        return stk_g_fail(g, STK_ERR_RANGE, "central_crop: fraction %g; needs above 0, at most 1",
                          fraction);
    int64_t h = stk_g_dim(g, image, axis), w = stk_g_dim(g, image, axis + 1);
    int64_t top = (int64_t)(((double)h - (double)h * fraction) / 2);
    int64_t left = (int64_t)(((double)w - (double)w * fraction) / 2);
    return stk_g_image_crop(g, image, top, left, h - 2 * top, w - 2 * left);
}

stk_val stk_g_image_pad(stk_graph *g, stk_val image, int64_t top, int64_t left, int64_t height,
                        int64_t width)
{
    int32_t axis = stk_image_axis(g, "image_pad", image, 0);
    if (axis < 0) return 0;
    int64_t h = stk_g_dim(g, image, axis), w = stk_g_dim(g, image, axis + 1);
    if (top < 0 || left < 0 || height < h || width < w || top > height - h || left > width - w)
        return stk_g_fail(
            g, STK_ERR_RANGE,
            "image_pad: an image of %lld x %lld at (%lld, %lld) does not fit into %lld x %lld",
            (long long)h, (long long)w, (long long)top, (long long)left, (long long)height,
            (long long)width);
    if (height == h && width == w) return image;
    int64_t low[STK_MAX_RANK] = {0}, high[STK_MAX_RANK] = {0};
    low[axis] = top;
    low[axis + 1] = left;
    high[axis] = height - h - top;
    high[axis + 1] = width - w - left;
    return stk_g_pad(g, image, low, high, 0);
}

static int64_t half_of(int64_t n) { return n > 0 ? n / 2 : 0; }

stk_val stk_g_image_crop_or_pad(stk_graph *g, stk_val image, int64_t height, int64_t width)
{
    int32_t axis = stk_image_axis(g, "crop_or_pad", image, 0);
    if (axis < 0) return 0;
    if (height < 1 || width < 1)
        return stk_g_fail(g, STK_ERR_RANGE, "crop_or_pad: to %lld x %lld; needs at least 1 x 1",
                          (long long)height, (long long)width);
    int64_t h = stk_g_dim(g, image, axis), w = stk_g_dim(g, image, axis + 1);
    stk_val x = stk_g_image_crop(g, image, half_of(h - height), half_of(w - width),
                                 stk_min_i64(h, height), stk_min_i64(w, width));
    return stk_g_image_pad(g, x, half_of(height - h), half_of(width - w), height, width);
}
