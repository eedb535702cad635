/* Backward convolutions of dy with few numbers (conv_few.h). Memory, in floats:
 *
 *     [ filters: oc x taps x ic | some rows of weights, widened | one image of x, where it is not float ] */
#include "device/cpu/conv_few.h"
#include "device/cpu/vec/conv.h"
#include "device/cpu/vec/elementwise.h"

#include <string.h>

enum {
    FEW = 16,        /* one element of so many, at most: from there on dense products are slower */
    TAPS_MOST = 128, /* bounds the windows of a pixel, */
    CHANNELS_MOST = 1024, /* and its numbers */
    CHANNELS_LEAST = 8,
    FLOATS_MOST = 1 << 18, /* of filters, and of an image */
    TERMS_LEAST = 64,      /* of a filter: below, looking for zeros costs what it saves */
    PIXELS_LEAST = 64,     /* of an image */
    ROWS = 16,             /* widened together */
};

/* One row of taps: stretches of the same length in an image and in a filter. */
typedef struct window {
    int64_t image, filter, n;
} window;

typedef struct few_walk {
    const stk_conv *conv;
    const stk_vec_ew *ew;
    const stk_vec_conv_few *vec;
    int64_t terms;         /* of a filter */
    int64_t pixels, reach; /* of dy, and elements of x, per image */
    int64_t size;          /* bytes of an element */
    float *filters, *wide, *image;
} few_walk;

static int64_t volume(const int64_t size[3]) { return size[0] * size[1] * size[2]; }

int64_t stk_conv_few_floats(const stk_conv *c)
{
    const int64_t taps = volume(c->kernel), pixels = volume(c->out);
    const double filters = (double)taps * (double)c->ic * (double)c->oc;
    const double image = (double)volume(c->in) * (double)c->ic;
    if ((c->dtype != STK_F32 && c->dtype != STK_BF16) || c->groups != 1) return 0;
    if (taps > TAPS_MOST || c->oc > CHANNELS_MOST || c->oc < CHANNELS_LEAST) return 0;
    if (taps * c->ic < TERMS_LEAST || pixels < PIXELS_LEAST) return 0;
    if (filters > FLOATS_MOST || image > FLOATS_MOST) return 0;
    return (int64_t)filters + ROWS * c->oc + (c->dtype == STK_F32 ? 0 : (int64_t)image);
}

static few_walk walk_of(const stk_conv *c, float *memory)
{
    const stk_vec *vec = stk_vec_get();
    few_walk w = {.conv = c, .ew = vec->ew, .vec = vec->conv->few, .filters = memory};
    w.terms = volume(c->kernel) * c->ic;
    w.pixels = volume(c->out);
    w.reach = volume(c->in) * c->ic;
    w.size = stk_dtype_size((stk_dtype)c->dtype);
    w.wide = w.filters + w.terms * c->oc;
    w.image = w.wide + ROWS * c->oc;
    return w;
}

/* n elements as floats: where they lie, or widened into `to`. */
static float *floats_at(const few_walk *w, char *from, int64_t n, float *to)
{
    if (w->conv->dtype == STK_F32) return (float *)(void *)from;
    w->ew->load[w->conv->dtype](n, to, from);
    return to;
}

static char *image_of(const few_walk *w, void *images, int64_t i, int64_t elements)
{
    return (char *)images + i * elements * w->size;
}

/* How many of an image's numbers are not zero; stops beyond `most`. */
static int64_t count_image(const few_walk *w, const char *dy, int64_t most)
{
    const int64_t all = w->pixels * w->conv->oc, step = ROWS * w->conv->oc;
    int64_t found = 0;
    for (int64_t i = 0; i < all && found <= most; i += step) {
        const int64_t n = stk_min_i64(step, all - i);
        const void *at = dy + i * w->size;
        found += w->conv->dtype == STK_F32 ? w->vec->count(n, at) : w->vec->count_halves(n, at);
    }
    return found;
}

/* ---- windows ------------------------------------------------------------------------------------ */

/* Where a tap of a pixel of dy reads along an axis, and whether that is inside of the image. */
static bool inside(const stk_conv *c, int axis, int64_t pixel, int64_t tap, int64_t *at)
{
    *at = pixel * c->stride[axis] - c->low[axis] + tap * c->dilation[axis];
    return *at >= 0 && *at < c->in[axis];
}

/* Taps along a row that touch are one window; dilated ones are one each. */
static int row_windows(const stk_conv *c, int64_t col, int64_t image, int64_t filter, window *out)
{
    int count = 0;
    for (int64_t tap = 0, at; tap < c->kernel[2]; tap++) {
        if (!inside(c, 2, col, tap, &at)) continue;
        window *last = out + count - 1;
        if (count && last->image + last->n == image + at * c->ic)
            last->n += c->ic;
        else
            out[count++] = (window){image + at * c->ic, filter + tap * c->ic, c->ic};
    }
    return count;
}

static int windows_of(const stk_conv *c, int64_t pixel, window *out)
{
    const int64_t col = pixel % c->out[2], row = pixel / c->out[2] % c->out[1];
    const int64_t plane = pixel / c->out[2] / c->out[1];
    int count = 0;
    for (int64_t i = 0, in_plane; i < c->kernel[0]; i++) {
        if (!inside(c, 0, plane, i, &in_plane)) continue;
        for (int64_t j = 0, in_row; j < c->kernel[1]; j++) {
            if (!inside(c, 1, row, j, &in_row)) continue;
            const int64_t image = (in_plane * c->in[1] + in_row) * c->in[2] * c->ic;
            const int64_t filter = (i * c->kernel[1] + j) * c->kernel[2] * c->ic;
            count += row_windows(c, col, image, filter, out + count);
        }
    }
    return count;
}

/* Every number of a pixel of dy times its filter into its windows of the image (data), or its windows into its filter. */
static void walk_pixel(const few_walk *w, int64_t pixel, const void *d, float *image, bool data)
{
    const stk_conv *c = w->conv;
    const bool plain = c->dtype == STK_F32;
    window at[TAPS_MOST];
    int32_t picked[CHANNELS_MOST];
    const int64_t count =
        plain ? w->vec->pick(c->oc, d, picked) : w->vec->pick_halves(c->oc, d, picked);
    const int windows = count ? windows_of(c, pixel, at) : 0;
    for (int64_t i = 0; i < count; i++) {
        const int32_t channel = picked[i];
        const float times =
            plain ? ((const float *)d)[channel] : stk_bf16_to_f32(((const uint16_t *)d)[channel]);
        float *filter = w->filters + channel * w->terms;
        for (int k = 0; k < windows; k++) {
            float *x = image + at[k].image, *f = filter + at[k].filter;
            w->vec->add(at[k].n, data ? x : f, data ? f : x, times);
        }
    }
}

static void walk_image(const few_walk *w, const char *dy, float *image, bool data)
{
    const int64_t step = w->conv->oc * w->size;
    for (int64_t pixel = 0; pixel < w->pixels; pixel++)
        walk_pixel(w, pixel, dy + pixel * step, image, data);
}

/* ---- data --------------------------------------------------------------------------------------- */

static void bring_filters(const few_walk *w, char *weights)
{
    const int64_t oc = w->conv->oc;
    for (int64_t row = 0; row < w->terms; row += ROWS) {
        const int64_t rows = stk_min_i64(ROWS, w->terms - row);
        const float *from = floats_at(w, weights + row * oc * w->size, rows * oc, w->wide);
        w->vec->turn(rows, oc, from, w->filters + row, w->terms);
    }
}

static void data_images(const few_walk *w, const stk_launch *launch, int64_t lo, int64_t hi)
{
    const bool plain = w->conv->dtype == STK_F32;
    bring_filters(w, launch->arg[1]);
    for (int64_t i = lo; i < hi; i++) {
        char *dx = (char *)launch->arg[2] + i * w->reach * w->size;
        float *image = plain ? (float *)(void *)dx : w->image;
        memset(image, 0, (size_t)w->reach * sizeof *image);
        walk_image(w, image_of(w, launch->arg[0], i, w->pixels * w->conv->oc), image, true);
        if (!plain) w->ew->store[w->conv->dtype](w->reach, dx, image);
    }
}

void stk_conv_few_data(const stk_launch *launch, int64_t lo, int64_t hi, int part, float *memory,
                       int64_t floats,
                       void (*dense)(const stk_launch *launch, int64_t lo, int64_t hi, int part))
{
    const stk_conv *c = launch->params;
    const int64_t needed = stk_conv_few_floats(c);
    if (!needed || needed > floats) {
        dense(launch, lo, hi, part);
        return;
    }
    const few_walk w = walk_of(c, memory);
    const int64_t each = w.pixels * c->oc, most = each / FEW;
    for (int64_t at = lo, end; at < hi; at = end) {
        const bool few = count_image(&w, image_of(&w, launch->arg[0], at, each), most) <= most;
        for (end = at + 1; end < hi; end++)
            if ((count_image(&w, image_of(&w, launch->arg[0], end, each), most) <= most) != few)
                break;
        if (few)
            data_images(&w, launch, at, end);
        else
            dense(launch, at, end, part);
    }
}

/* ---- weights ------------------------------------------------------------------------------------ */

const float *stk_conv_few_weight(const stk_launch *launch, int64_t lo, int64_t hi, float *memory,
                                 int64_t floats)
{
    const stk_conv *c = launch->params;
    const int64_t needed = stk_conv_few_floats(c);
    if (!needed || needed > floats) return NULL;
    const few_walk w = walk_of(c, memory);
    const int64_t each = w.pixels * c->oc, most = (hi - lo) * each / FEW;
    int64_t found = 0;
    for (int64_t i = lo; i < hi && found <= most; i++)
        found += count_image(&w, image_of(&w, launch->arg[1], i, each), most - found);
    if (found > most) return NULL;
    memset(w.filters, 0, (size_t)(w.terms * c->oc) * sizeof *w.filters);
    for (int64_t i = lo; i < hi; i++) {
        char *x = image_of(&w, launch->arg[0], i, w.reach);
        float *image = floats_at(&w, x, w.reach, w.image);
        walk_image(&w, image_of(&w, launch->arg[1], i, each), image, false);
    }
    return w.filters;
}

void stk_conv_few_columns(const stk_conv *c, const float *filters, int64_t first, int64_t count,
                          float *to, int64_t ld)
{
    const int64_t terms = volume(c->kernel) * c->ic;
    stk_vec_get()->conv->few->turn(count, terms, filters + first * terms, to, ld);
}
