/* Images under projective transforms, and the transpose of that. A unit is one row of the result; of the
 * transpose one image, since its additions may fall anywhere in it. */
#include "device/cpu/cpu.h"

#include <string.h>

/* ---- where a pixel comes from ----------------------------------------------------------------------
 * For a tile of a row at a time, written so that the compiler makes vectors of it: no calls, no branches. */

enum { TILE = 64 };
static const float far = 1e9f;     /* coordinates beyond are of no use */
static const float nowhere = 2e9f; /* there is no such pixel, only the fill */

/* Rounded towards zero. */
static inline float whole(float v)
{
    float near = v > -far ? v : -far;
    return (float)(int32_t)(near < far ? near : far);
}

static inline int32_t floor_of(float v)
{
    int32_t i = (int32_t)v;
    return i - ((float)i > v);
}

/* Halves go away from zero. */
static inline int32_t round_of(float v)
{
    int32_t i = (int32_t)v;
    float rest = v - (float)i;
    return i + (rest >= 0.5f) - (rest <= -0.5f);
}

/* d c b a | a b c d | d c b a, for a coordinate at any distance. */
static inline float reflect(float v, float n)
{
    float period = 2 * n, below = v + period * whole(-v / period),
          above = v - period * whole(v / period);
    below = below < -n ? below + period : -below - 1;
    above = above >= n ? period - above - 1 : above;
    return v < 0 ? below : v > n - 1 ? above : v;
}

/* The gap between the last pixel and the first has no width, as in TensorFlow. */
static inline float wrap(float v, float n)
{
    float below = v + n * (whole(-v / (n - 1)) + 1), above = v - n * whole(v / (n - 1));
    return v < 0 ? below : v > n - 1 ? above : v;
}

static inline float settle(float v, float n, int32_t fill)
{
    if (fill == STK_OUTSIDE_CONSTANT) return v;
    if (fill == STK_OUTSIDE_REFLECT) v = reflect(v, n);
    if (fill == STK_OUTSIDE_WRAP) v = wrap(v, n);
    v = v > 0 ? v : 0;
    return v < n - 1 ? v : n - 1;
}

static inline void locate_as(int32_t fill, const float *t, int64_t h, int64_t w, int32_t x,
                             int32_t y, int32_t n, float *restrict u, float *restrict v)
{
    float high = (float)h, wide = (float)w, row = (float)y;
    for (int32_t i = 0; i < n; i++) {
        float column = (float)(x + i), depth = t[6] * column + t[7] * row + 1;
        float a = settle((t[0] * column + t[1] * row + t[2]) / depth, wide, fill);
        float b = settle((t[3] * column + t[4] * row + t[5]) / depth, high, fill);
        bool somewhere = (depth != 0) & (a > -far) & (a < far) & (b > -far) & (b < far);
        u[i] = somewhere ? a : nowhere;
        v[i] = somewhere ? b : nowhere;
    }
}

/* Coordinates (u, v) in an image of h x w for the pixels x .. x+n-1 of row y of the result. */
static void locate(int32_t fill, const float *t, int64_t h, int64_t w, int64_t x, int64_t y,
                   int64_t n, float *u, float *v)
{
    switch (fill) { /* the fill is a constant in each call, so that the loops have no branch */
    case STK_OUTSIDE_REFLECT:
        locate_as(1, t, h, w, (int32_t)x, (int32_t)y, (int32_t)n, u, v);
        break;
    case STK_OUTSIDE_WRAP: locate_as(2, t, h, w, (int32_t)x, (int32_t)y, (int32_t)n, u, v); break;
    case STK_OUTSIDE_NEAREST:
        locate_as(3, t, h, w, (int32_t)x, (int32_t)y, (int32_t)n, u, v);
        break;
    default: locate_as(0, t, h, w, (int32_t)x, (int32_t)y, (int32_t)n, u, v); break;
    }
}

/* The (up to four) pixels that a result is made of. */
typedef struct corner {
    int64_t x, y;
    float weight;
} corner;

static inline int corners_at(float u, float v, bool bilinear, corner c[4])
{
    if (u == nowhere) return 0;
    if (!bilinear) {
        c[0] = (corner){round_of(u), round_of(v), 1};
        return 1;
    }
    int32_t i = floor_of(u), j = floor_of(v);
    float right = u - (float)i, below = v - (float)j;
    c[0] = (corner){i, j, (1 - right) * (1 - below)};
    c[1] = (corner){i + 1, j, right * (1 - below)};
    c[2] = (corner){i, j + 1, (1 - right) * below};
    c[3] = (corner){i + 1, j + 1, right * below};
    return 4;
}

static int corners_of(const stk_project_params *p, const float *t, int64_t h, int64_t w, int64_t x,
                      int64_t y, corner c[4])
{
    float u, v;
    locate(p->fill, t, h, w, x, y, 1, &u, &v);
    return corners_at(u, v, p->bilinear, c);
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
    const stk_project_params *p = params;
    return stk_rows_worth(p->out_w * p->channels, 1024);
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
    static inline void name(float *restrict out, const type *restrict image,                       \
                            const stk_project_params *p, const corner *c, int corners, int64_t n)  \
    {                                                                                              \
        float fill = (float)p->value;                                                              \
        if (corners && is_inside(&c[0], p->in_h, p->in_w) && is_inside(&c[3], p->in_h, p->in_w)) { \
            const type *a = image + (c[0].y * p->in_w + c[0].x) * n, *b = a + p->in_w * n;         \
            float q = c[0].weight, r = c[1].weight, s = c[2].weight, t = c[3].weight;              \
            for (int64_t i = 0; i < n; i++)                                                        \
                out[i] =                                                                           \
                    q * (float)a[i] + r * (float)a[n + i] + s * (float)b[i] + t * (float)b[n + i]; \
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
    }                                                                                              \
    static void name##_tile(float *out, const type *image, const stk_project_params *p,            \
                            const float *u, const float *v, int64_t count)                         \
    {                                                                                              \
        corner c[4];                                                                               \
        int64_t n = p->channels;                                                                   \
        for (int64_t i = 0; i < count; i++) {                                                      \
            int corners = corners_at(u[i], v[i], true, c);                                         \
            if (n == 1)                                                                            \
                name(out + i, image, p, c, corners, 1);                                            \
            else if (n == 3)                                                                       \
                name(out + 3 * i, image, p, c, corners, 3);                                        \
            else                                                                                   \
                name(out + n * i, image, p, c, corners, n);                                        \
        }                                                                                          \
    }
BLEND(blend_f32, float)
BLEND(blend_u8, uint8_t)

static void copy_tile(uint8_t *out, const uint8_t *image, const stk_project_params *p,
                      const float *u, const float *v, int64_t count)
{
    int64_t size = stk_dtype_size((stk_dtype)p->dtype), pixel = size * p->channels;
    uint8_t fill[16];
    stk_store_f64((stk_dtype)p->dtype, fill, p->value);
    for (int64_t i = 0; i < count; i++, out += pixel) {
        corner c[4];
        if (corners_at(u[i], v[i], false, c) && is_inside(c, p->in_h, p->in_w)) {
            memcpy(out, image + (c->y * p->in_w + c->x) * pixel, (size_t)pixel);
            continue;
        }
        for (int64_t k = 0; k < p->channels; k++) memcpy(out + k * size, fill, (size_t)size);
    }
}

static void project_run(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_project_params *p = l->params;
    int64_t size = stk_dtype_size((stk_dtype)p->dtype),
            image = p->in_h * p->in_w * p->channels * size;
    int64_t pixel = p->channels * stk_dtype_size((stk_dtype)p->out_dtype);
    float t[8], u[TILE], v[TILE];
    for (int64_t unit = lo; unit < hi; unit++) {
        const uint8_t *in = (const uint8_t *)l->arg[0] + unit / p->out_h * image;
        load_transform(l, unit / p->out_h, t);
        for (int64_t x = 0; x < p->out_w; x += TILE) {
            uint8_t *out = (uint8_t *)l->arg[2] + (unit * p->out_w + x) * pixel;
            int64_t n = stk_min_i64(TILE, p->out_w - x);
            locate(p->fill, t, p->in_h, p->in_w, x, unit % p->out_h, n, u, v);
            if (!p->bilinear)
                copy_tile(out, in, p, u, v, n);
            else if (p->dtype == STK_U8)
                blend_u8_tile((float *)(void *)out, in, p, u, v, n);
            else
                blend_f32_tile((float *)(void *)out, (const float *)(const void *)in, p, u, v, n);
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
    static inline void name##_tile(type *restrict image, const type *restrict dy,                  \
                                   const stk_project_params *p, const float *u, const float *v,    \
                                   int64_t count, int64_t n)                                       \
    {                                                                                              \
        corner c[4];                                                                               \
        for (int64_t x = 0; x < count; x++) {                                                      \
            int corners = corners_at(u[x], v[x], p->bilinear, c);                                  \
            for (int k = 0; k < corners; k++) {                                                    \
                if (!is_inside(&c[k], p->out_h, p->out_w)) continue;                               \
                type *to = image + (c[k].y * p->out_w + c[k].x) * n, weight = (type)c[k].weight;   \
                for (int64_t i = 0; i < n; i++) to[i] += weight * dy[x * n + i];                   \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void name(type *image, const type *dy, const stk_project_params *p, const float *t)     \
    {                                                                                              \
        float u[TILE], v[TILE];                                                                    \
        int64_t n = p->channels;                                                                   \
        memset(image, 0, (size_t)(p->out_h * p->out_w * n) * sizeof *image);                       \
        for (int64_t y = 0; y < p->in_h; y++)                                                      \
            for (int64_t x = 0; x < p->in_w; x += TILE) {                                          \
                int64_t count = stk_min_i64(TILE, p->in_w - x);                                    \
                const type *d = dy + (y * p->in_w + x) * n;                                        \
                locate(p->fill, t, p->out_h, p->out_w, x, y, count, u, v);                         \
                if (n == 1)                                                                        \
                    name##_tile(image, d, p, u, v, count, 1);                                      \
                else if (n == 3)                                                                   \
                    name##_tile(image, d, p, u, v, count, 3);                                      \
                else                                                                               \
                    name##_tile(image, d, p, u, v, count, n);                                      \
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
