/* Windows and weights of each way to resize, along one axis. */
#include "base/resize_taps.h"

#include "base/memory.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* The window of one output pixel, before and after its weights are known. */
typedef struct window {
    int32_t first, count;
} window;

typedef struct axis {
    int32_t kind, in;
    bool antialias;
    float scale;   /* input pixels per output pixel */
    float inverse; /* the same by way of its reciprocal: differs in the last bit */
} axis;

static int32_t clamp_pixel(float v, int32_t n)
{
    if (!(v > 0)) return 0;
    return v >= (float)n ? n - 1 : (int32_t)v;
}

/* Adds to a pixel that may lie outside: the border pixel gets it. */
static void add_tap(window w, float *weight, int32_t pixel, int32_t n, float value)
{
    int32_t inside = pixel < 0 ? 0 : pixel >= n ? n - 1 : pixel;
    weight[inside - w.first] += value;
}

static void normalise(float *weight, int32_t count)
{
    float sum = 0;
    for (int32_t i = 0; i < count; i++) sum += weight[i];
    if (fabsf(sum) < 1000 * FLT_MIN) return;
    for (int32_t i = 0; i < count; i++) weight[i] *= 1 / sum;
}

/* ---- nearest, bilinear, bicubic, area without antialias ------------------------------------------------- */

static window nearest(const axis *a, int64_t i, float *weight)
{
    if (weight) weight[0] = 1;
    return (window){clamp_pixel(floorf(((float)i + 0.5f) * a->scale), a->in), 1};
}

static window bilinear(const axis *a, int64_t i, float *weight)
{
    float at = ((float)i + 0.5f) * a->scale - 0.5f, below = floorf(at), part = at - below;
    int32_t low = clamp_pixel(below, a->in), high = clamp_pixel(below + 1, a->in);
    window w = {low, high - low + 1};
    if (!weight) return w;
    if (w.count == 1) {
        weight[0] = 1;
    } else {
        weight[0] = 1 - part;
        weight[1] = part;
    }
    return w;
}

/* Keys' cubic at distance x, a = -0.5. */
static float keys(float x)
{
    if (x >= 2) return 0;
    if (x >= 1) return ((-0.5f * x + 2.5f) * x - 4) * x + 2;
    return (1.5f * x - 2.5f) * x * x + 1;
}

/* Positions between pixels are rounded to 1/1024, as the table of the original does. */
static window bicubic(const axis *a, int64_t i, float *weight)
{
    float at = ((float)i + 0.5f) * a->scale - 0.5f, below = floorf(at);
    float part = rintf((at - below) * 1024) / 1024;
    int32_t base = (int32_t)below;
    int32_t low = base - 1 < 0 ? 0 : base - 1, high = base + 2 >= a->in ? a->in - 1 : base + 2;
    if (low > high) low = high;
    window w = {low, high - low + 1};
    if (!weight) return w;
    for (int32_t k = -1; k <= 2; k++)
        if (base + k >= w.first && base + k < w.first + w.count)
            weight[base + k - w.first] = keys(fabsf((float)k - part));
    normalise(weight, w.count);
    return w;
}

static window area(const axis *a, int64_t i, float *weight)
{
    float from = (float)i * a->scale, to = ((float)i + 1) * a->scale;
    int32_t first = (int32_t)floorf(from), end = (int32_t)ceilf(to);
    int32_t low = first >= a->in ? a->in - 1 : first, high = end > a->in ? a->in : end;
    window w = {low, high > low ? high - low : 1};
    for (int32_t k = first; weight && k < end; k++) {
        float left = fmaxf(from, (float)k), right = fminf(to, (float)k + 1);
        add_tap(w, weight, k, a->in, (right - left) / a->scale);
    }
    return w;
}

/* ---- filters: widened when the image shrinks and antialias is asked for ----------------------------------- */

static float triangle(float x) { return x < 1 ? 1 - x : 0; }

static float mitchell(float x)
{
    if (x >= 2) return 0;
    if (x >= 1) return (((-7.0f / 18) * x + 2) * x - 10.0f / 3) * x + 16.0f / 9;
    return ((7.0f / 6) * x - 2) * x * x + 8.0f / 9;
}

static float gaussian(float x) { return x < 1.5f ? expf(-x * x / (2 * 0.5f * 0.5f)) : 0; }

static float lanczos(float x, float radius)
{
    const float pi = 3.14159265358979f;
    if (x > radius) return 0;
    if (x <= 1e-3f) return 1;
    return radius * sinf(pi * x) * sinf(pi * x / radius) / (pi * pi * x * x);
}
static float lanczos3(float x) { return lanczos(x, 3); }
static float lanczos5(float x) { return lanczos(x, 5); }

static const struct {
    float (*at)(float distance);
    float radius;
} filters[STK_TAPS_COUNT] = {
    [STK_TAPS_BILINEAR] = {triangle, 1},    [STK_TAPS_BICUBIC] = {keys, 2},
    [STK_TAPS_LANCZOS3] = {lanczos3, 3},    [STK_TAPS_LANCZOS5] = {lanczos5, 5},
    [STK_TAPS_GAUSSIAN] = {gaussian, 1.5f}, [STK_TAPS_MITCHELL] = {mitchell, 2},
};

static window filtered(const axis *a, int64_t i, float *weight)
{
    float widen = a->antialias ? fmaxf(a->inverse, 1) : 1, radius = filters[a->kind].radius * widen;
    float at = ((float)i + 0.5f) * a->inverse;
    int32_t low = clamp_pixel(ceilf(at - radius - 0.5f), a->in);
    int32_t high = clamp_pixel(floorf(at + radius - 0.5f), a->in);
    window w = {low, high >= low ? high - low + 1 : 1};
    if (!weight) return w;
    for (int32_t k = 0; k < w.count; k++) {
        float centre = (float)(low + k) + 0.5f;
        weight[k] = filters[a->kind].at(fabsf(centre - at) * (1 / widen));
    }
    normalise(weight, w.count);
    return w;
}

/* ---- tables ------------------------------------------------------------------------------------------------- */

/* The window of output pixel i; its weights too unless weight is NULL (zeroed before). */
static window tap(const axis *a, int64_t i, float *weight)
{
    bool filter = a->antialias || a->kind > STK_TAPS_AREA;
    if (a->kind == STK_TAPS_NEAREST) return nearest(a, i, weight);
    if (a->kind == STK_TAPS_AREA) return area(a, i, weight);
    if (filter) return filtered(a, i, weight);
    return a->kind == STK_TAPS_BILINEAR ? bilinear(a, i, weight) : bicubic(a, i, weight);
}

/* Room for n windows with `total` weights, all zero. */
static stk_taps *taps_alloc(int64_t n, int64_t total, stk_error *err)
{
    size_t ints = (size_t)(2 * n + 1) * sizeof(int32_t), floats = (size_t)total * sizeof(float);
    stk_taps *t = total <= INT32_MAX ? stk_calloc(1, sizeof *t + ints + floats) : NULL;
    if (!t) {
        stk_fail_memory(err, "weights of a resize", sizeof *t + ints + floats);
        return NULL;
    }
    t->n = n;
    t->first = (int32_t *)(t + 1);
    t->at = t->first + n;
    t->weight = (float *)(void *)(t->at + n + 1);
    return t;
}

static stk_taps *taps_forward(const axis *a, int64_t out, stk_error *err)
{
    int64_t total = 0;
    for (int64_t i = 0; i < out; i++) total += tap(a, i, NULL).count;
    stk_taps *t = taps_alloc(out, total, err);
    for (int64_t i = 0; t && i < out; i++) {
        window w = tap(a, i, t->weight + t->at[i]);
        t->first[i] = w.first;
        t->at[i + 1] = t->at[i] + w.count;
    }
    return t;
}

/* Windows move to the right with the output pixel, so those that see one input pixel stand together. */
static stk_taps *taps_transposed(const stk_taps *f, int64_t in, stk_error *err)
{
    stk_taps *back = taps_alloc(in, 0, err);
    if (!back) return NULL;
    int32_t *count = back->at; /* becomes the count of window i, then its start */
    for (int32_t o = 0; o < f->n; o++)
        for (int32_t p = f->first[o]; p < f->first[o] + f->at[o + 1] - f->at[o]; p++) {
            if (!count[p]) back->first[p] = o;
            count[p] = o - back->first[p] + 1;
        }
    int64_t total = 0;
    for (int64_t p = 0; p < in; p++) total += count[p];
    stk_taps *t = taps_alloc(in, total, err);
    for (int64_t p = 0; t && p < in; p++) {
        t->first[p] = back->first[p];
        t->at[p + 1] = t->at[p] + count[p];
    }
    for (int32_t o = 0; t && o < f->n; o++)
        for (int32_t k = f->at[o]; k < f->at[o + 1]; k++) {
            int32_t p = f->first[o] + k - f->at[o];
            t->weight[t->at[p] + o - t->first[p]] = f->weight[k];
        }
    stk_taps_free(back);
    return t;
}

stk_status stk_taps_new(int32_t kind, int32_t antialias, int32_t transposed, int64_t in,
                        int64_t out, stk_taps **taps, stk_error *err)
{
    axis a = {kind, (int32_t)in, antialias != 0, (float)in / (float)out,
              1 / ((float)out / (float)in)};
    stk_taps *t = taps_forward(&a, out, err);
    if (t && transposed) {
        stk_taps *forward = t;
        t = taps_transposed(forward, in, err);
        stk_taps_free(forward);
    }
    *taps = t;
    return t ? STK_OK : STK_ERR_MEMORY;
}

void stk_taps_free(stk_taps *taps) { stk_free(taps); }
