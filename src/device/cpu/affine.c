/* Images under projective transforms, and the transpose of that. A unit is one row of the result; of the
 * transpose one image, since its additions may fall anywhere in it. */
#include "device/cpu/cpu.h"

#include <math.h>
#include <string.h>

/* ---- where a pixel comes from ---------------------------------------------------------------------- */

/* d c b a | a b c d | d c b a, for a coordinate at any distance. */
static float reflect(float v, float n)
{
    float period = 2 * n;
    if (v < 0) {
        if (v < period) v += period * truncf(-v / period);
        v = v < -n ? v + period : -v - 1;
    } else if (v > n - 1) {
        v -= period * truncf(v / period);
        if (v >= n) v = period - v - 1;
    }
    return v;
}

/* The gap between the last pixel and the first has no width, as in TensorFlow. */
static float wrap(float v, float n)
{
    if (v < 0) return v + n * (truncf(-v / (n - 1)) + 1);
    if (v > n - 1) return v - n * truncf(v / (n - 1));
    return v;
}

static float settle(float v, int64_t size, int32_t fill)
{
    float n = (float)size;
    if (fill == STK_OUTSIDE_CONSTANT) return v;
    if (size <= 1) return 0;
    if (fill == STK_OUTSIDE_REFLECT) v = reflect(v, n);
    if (fill == STK_OUTSIDE_WRAP) v = wrap(v, n);
    return fminf(fmaxf(v, 0), n - 1);
}

/* Coordinates in an image of h x w for the pixel (x, y) of the result; false: nowhere. */
static bool locate(const stk_project_params *p, const float *t, int64_t h, int64_t w, int64_t x,
                   int64_t y, float *from_x, float *from_y)
{
    const float u = (float)x, v = (float)y, far = 1e9f;
    float depth = t[6] * u + t[7] * v + 1;
    if (depth == 0) return false;
    float at_x = settle((t[0] * u + t[1] * v + t[2]) / depth, w, p->fill);
    float at_y = settle((t[3] * u + t[4] * v + t[5]) / depth, h, p->fill);
    if (!(fabsf(at_x) < far && fabsf(at_y) < far)) return false; /* also NaN */
    *from_x = at_x;
    *from_y = at_y;
    return true;
}

/* The (up to four) pixels that a result is made of. */
typedef struct corner {
    int64_t x, y;
    float weight;
} corner;

static int corners_of(const stk_project_params *p, const float *t, int64_t h, int64_t w, int64_t x,
                      int64_t y, corner c[4])
{
    float u, v;
    if (!locate(p, t, h, w, x, y, &u, &v)) return 0;
    if (!p->bilinear) {
        c[0] = (corner){(int64_t)roundf(u), (int64_t)roundf(v), 1};
        return 1;
    }
    float left = floorf(u), top = floorf(v), right = u - left, below = v - top;
    int64_t i = (int64_t)left, j = (int64_t)top;
    c[0] = (corner){i, j, (1 - right) * (1 - below)};
    c[1] = (corner){i + 1, j, right * (1 - below)};
    c[2] = (corner){i, j + 1, (1 - right) * below};
    c[3] = (corner){i + 1, j + 1, right * below};
    return 4;
}

static bool is_inside(const corner *c, int64_t h, int64_t w)
{
    return (uint64_t)c->x < (uint64_t)w && (uint64_t)c->y < (uint64_t)h;
}

static void load_transform(const stk_launch *l, int64_t image, float t[8])
{
    const stk_project_params *p = l->params;
    int64_t first = p->shared ? 0 : image * 8;
    for (int i = 0; i < 8; i++)
        t[i] = p->transform == STK_F64 ? (float)((const double *)l->arg[1])[first + i]
                                       : ((const float *)l->arg[1])[first + i];
}

/* ---- project ------------------------------------------------------------------------------------------- */

static int64_t project_units(const void *params)
{
    const stk_project_params *p = params;
    return p->batch * p->out_h;
}

static int64_t project_grain(const void *params)
{
    enum { WORTH_A_PART = 1024 }; /* elements of the result */
    const stk_project_params *p = params;
    int64_t row = p->out_w * p->channels;
    return row > 0 && row < WORTH_A_PART ? WORTH_A_PART / row : 1;
}

static uint32_t project_aligned(const void *params)
{
    (void)params;
    return 4u;
}

static bool project_supports(const void *params)
{
    const stk_project_params *p = params;
    return !p->bilinear || (p->out_dtype == STK_F32 && (p->dtype == STK_F32 || p->dtype == STK_U8));
}

/* One pixel of n channels out of up to four, any of which may lie outside. */
#define BLEND(name, type)                                                                          \
    static void name(float *restrict out, const type *restrict image, const stk_project_params *p, \
                     const corner *c, int corners)                                                 \
    {                                                                                              \
        int64_t n = p->channels;                                                                   \
        float fill = (float)p->value;                                                              \
        bool all = corners == 4;                                                                   \
        for (int k = 0; k < corners; k++) all &= is_inside(&c[k], p->in_h, p->in_w);               \
        if (all) {                                                                                 \
            const type *a = image + (c[0].y * p->in_w + c[0].x) * n, *b = a + p->in_w * n;         \
            float s = c[0].weight, t = c[1].weight, u = c[2].weight, v = c[3].weight;              \
            for (int64_t i = 0; i < n; i++)                                                        \
                out[i] =                                                                           \
                    s * (float)a[i] + t * (float)a[n + i] + u * (float)b[i] + v * (float)b[n + i]; \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            float sum = corners ? 0 : fill;                                                        \
            for (int k = 0; k < corners; k++)                                                      \
                sum += c[k].weight * (is_inside(&c[k], p->in_h, p->in_w)                           \
                                          ? (float)image[(c[k].y * p->in_w + c[k].x) * n + i]      \
                                          : fill);                                                 \
            out[i] = sum;                                                                          \
        }                                                                                          \
    }
BLEND(blend_f32, float)
BLEND(blend_u8, uint8_t)

static void copy_pixel(uint8_t *out, const uint8_t *image, const stk_project_params *p,
                       const corner *c, int corners, const uint8_t *fill)
{
    int64_t size = stk_dtype_size((stk_dtype)p->dtype), pixel = size * p->channels;
    if (corners && is_inside(c, p->in_h, p->in_w)) {
        memcpy(out, image + (c->y * p->in_w + c->x) * pixel, (size_t)pixel);
        return;
    }
    for (int64_t i = 0; i < p->channels; i++) memcpy(out + i * size, fill, (size_t)size);
}

static void project_run(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_project_params *p = l->params;
    int64_t size = stk_dtype_size((stk_dtype)p->dtype),
            image = p->in_h * p->in_w * p->channels * size;
    int64_t pixel = p->channels * stk_dtype_size((stk_dtype)p->out_dtype);
    uint8_t fill[16];
    corner c[4] = {{0}};
    float t[8];
    stk_store_f64((stk_dtype)p->dtype, fill, p->value);
    for (int64_t u = lo; u < hi; u++) {
        const uint8_t *in = (const uint8_t *)l->arg[0] + u / p->out_h * image;
        uint8_t *out = (uint8_t *)l->arg[2] + u * p->out_w * pixel;
        load_transform(l, u / p->out_h, t);
        for (int64_t x = 0; x < p->out_w; x++, out += pixel) {
            int corners = corners_of(p, t, p->in_h, p->in_w, x, u % p->out_h, c);
            if (!p->bilinear)
                copy_pixel(out, in, p, c, corners, fill);
            else if (p->dtype == STK_U8)
                blend_u8((float *)(void *)out, in, p, c, corners);
            else
                blend_f32((float *)(void *)out, (const float *)(const void *)in, p, c, corners);
        }
    }
}

const stk_impl stk_impl_project_own = {.name = "own",
                                       .kernel = STK_K_PROJECT,
                                       .supports = project_supports,
                                       .units = project_units,
                                       .grain = project_grain,
                                       .aligned = project_aligned,
                                       .run = project_run};

static void project_ref(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_project_params *p = l->params;
    stk_dtype in = (stk_dtype)p->dtype, to = (stk_dtype)p->out_dtype;
    float t[8];
    corner at[4] = {{0}};
    for (int64_t u = lo; u < hi; u++)
        for (int64_t x = 0; x < p->out_w; x++)
            for (int64_t i = 0; i < p->channels; i++) {
                load_transform(l, u / p->out_h, t);
                int corners = corners_of(p, t, p->in_h, p->in_w, x, u % p->out_h, at);
                double sum = corners ? 0 : p->value;
                for (int k = 0; k < corners; k++) {
                    int64_t row = u / p->out_h * p->in_h + at[k].y;
                    int64_t from = (row * p->in_w + at[k].x) * p->channels + i;
                    bool inside = is_inside(&at[k], p->in_h, p->in_w);
                    const uint8_t *image = l->arg[0];
                    sum +=
                        (double)at[k].weight *
                        (inside ? stk_load_f64(in, image + from * stk_dtype_size(in)) : p->value);
                }
                stk_store_f64(to,
                              (uint8_t *)l->arg[2] +
                                  ((u * p->out_w + x) * p->channels + i) * stk_dtype_size(to),
                              sum);
            }
}

const stk_impl stk_impl_project_ref = {.name = "ref",
                                       .kernel = STK_K_PROJECT,
                                       .rank = 100,
                                       .units = project_units,
                                       .run = project_ref};

/* ---- project_grad: in_* are the sizes of dy, out_* those of the image ------------------------------------ */

static int64_t grad_units(const void *params)
{
    return ((const stk_project_params *)params)->batch;
}

static uint32_t grad_aligned(const void *params)
{
    (void)params;
    return 1u | 4u;
}

#define SPREAD(name, type)                                                                         \
    static void name(type *restrict image, const type *restrict dy, const stk_project_params *p,   \
                     const float *t)                                                               \
    {                                                                                              \
        corner c[4] = {{0}};                                                                       \
        memset(image, 0, (size_t)(p->out_h * p->out_w * p->channels) * sizeof *image);             \
        for (int64_t y = 0; y < p->in_h; y++)                                                      \
            for (int64_t x = 0; x < p->in_w; x++) {                                                \
                const type *d = dy + (y * p->in_w + x) * p->channels;                              \
                int corners = corners_of(p, t, p->out_h, p->out_w, x, y, c);                       \
                for (int k = 0; k < corners; k++) {                                                \
                    if (!is_inside(&c[k], p->out_h, p->out_w)) continue;                           \
                    type *to = image + (c[k].y * p->out_w + c[k].x) * p->channels;                 \
                    for (int64_t i = 0; i < p->channels; i++) to[i] += (type)c[k].weight * d[i];   \
                }                                                                                  \
            }                                                                                      \
    }
SPREAD(spread_f32, float)
SPREAD(spread_f64, double)

static void project_grad_run(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_project_params *p = l->params;
    int64_t small = p->in_h * p->in_w * p->channels, large = p->out_h * p->out_w * p->channels;
    float t[8];
    for (int64_t b = lo; b < hi; b++) {
        load_transform(l, b, t);
        if (p->dtype == STK_F64)
            spread_f64((double *)l->arg[2] + b * large, (const double *)l->arg[0] + b * small, p,
                       t);
        else
            spread_f32((float *)l->arg[2] + b * large, (const float *)l->arg[0] + b * small, p, t);
    }
}

const stk_impl stk_impl_project_grad_own = {.name = "own",
                                            .kernel = STK_K_PROJECT_GRAD,
                                            .units = grad_units,
                                            .aligned = grad_aligned,
                                            .run = project_grad_run};

/* By definition: the gradient of one pixel is the sum over all results of its weight in them. */
static double weight_in(const stk_project_params *p, const float *t, int64_t row, int64_t column,
                        int64_t x, int64_t y)
{
    corner c[4] = {{0}};
    double weight = 0;
    int corners = corners_of(p, t, p->out_h, p->out_w, x, y, c);
    for (int k = 0; k < corners; k++)
        if (c[k].x == column && c[k].y == row) weight += (double)c[k].weight;
    return weight;
}

static void project_grad_ref(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_project_params *p = l->params;
    stk_dtype type = (stk_dtype)p->dtype;
    int64_t size = stk_dtype_size(type), large = p->out_h * p->out_w;
    float t[8];
    for (int64_t u = lo * large; u < hi * large; u++)
        for (int64_t i = 0; i < p->channels; i++) {
            double sum = 0;
            load_transform(l, u / large, t);
            for (int64_t at = 0; at < p->in_h * p->in_w; at++) {
                int64_t from = (u / large * p->in_h * p->in_w + at) * p->channels + i;
                sum += weight_in(p, t, u % large / p->out_w, u % p->out_w, at % p->in_w,
                                 at / p->in_w) *
                       stk_load_f64(type, (const uint8_t *)l->arg[0] + from * size);
            }
            stk_store_f64(type, (uint8_t *)l->arg[2] + (u * p->channels + i) * size, sum);
        }
}

const stk_impl stk_impl_project_grad_ref = {.name = "ref",
                                            .kernel = STK_K_PROJECT_GRAD,
                                            .rank = 100,
                                            .units = grad_units,
                                            .run = project_grad_ref};
