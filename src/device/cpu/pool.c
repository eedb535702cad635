/* Pooling kernels: the reference (float32, float64) and the vector form (float32). Units are images. */
#include "device/cpu/cpu.h"
#include "device/cpu/vec/pool.h"

#include <math.h>
#include <string.h>

static int64_t pixels(const int64_t size[3]) { return size[0] * size[1] * size[2]; }
static int64_t images(const void *params) { return ((const stk_pool_params *)params)->n; }

/* Elements of one image on either side. */
static int64_t x_size(const stk_pool_params *p) { return pixels(p->in) * p->c; }
static int64_t y_size(const stk_pool_params *p) { return pixels(p->out) * p->c; }

static uint32_t aligned_2(const void *params)
{
    (void)params;
    return 3u;
}
static uint32_t aligned_3(const void *params)
{
    (void)params;
    return 7u;
}

/* ---- vector ------------------------------------------------------------------------------------------- */

static bool vec_supports(const void *params)
{
    return ((const stk_pool_params *)params)->dtype == STK_F32;
}

static const stk_vec_pool *vec(void) { return stk_vec_get()->pool; }

static void vec_max_pool(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_pool_params *p = l->params;
    const float *x = l->arg[0];
    float *y = l->arg[1];
    for (int64_t i = lo; i < hi; i++) vec()->max(p, x + i * x_size(p), y + i * y_size(p));
}

static void vec_max_pool_grad(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_pool_params *p = l->params;
    const float *x = l->arg[0], *dy = l->arg[1];
    float *dx = l->arg[2];
    for (int64_t i = lo; i < hi; i++)
        vec()->max_grad(p, x + i * x_size(p), dy + i * y_size(p), dx + i * x_size(p));
}

static void vec_max_pool_pick(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_pool_params *p = l->params;
    const float *x = l->arg[0], *v = l->arg[1];
    float *y = l->arg[2];
    for (int64_t i = lo; i < hi; i++)
        vec()->max_pick(p, x + i * x_size(p), v + i * x_size(p), y + i * y_size(p));
}

static void vec_avg_pool(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_pool_params *p = l->params;
    const float *x = l->arg[0];
    float *y = l->arg[1];
    for (int64_t i = lo; i < hi; i++) vec()->avg(p, x + i * x_size(p), y + i * y_size(p));
}

static void vec_avg_pool_grad(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_pool_params *p = l->params;
    const float *dy = l->arg[0];
    float *dx = l->arg[1];
    for (int64_t i = lo; i < hi; i++) vec()->avg_grad(p, dy + i * y_size(p), dx + i * x_size(p));
}

/* ---- reference: one window and channel at a time ---------------------------------------------------------- */

static bool ref_supports(const void *params)
{
    const stk_pool_params *p = params;
    return p->dtype == STK_F32 || p->dtype == STK_F64;
}

static double at(const stk_pool_params *p, const void *array, int64_t i)
{
    return p->dtype == STK_F64 ? ((const double *)array)[i] : (double)((const float *)array)[i];
}

static void put(const stk_pool_params *p, void *array, int64_t i, double value)
{
    if (p->dtype == STK_F64)
        ((double *)array)[i] = value;
    else
        ((float *)array)[i] = (float)value;
}

typedef enum pool_kind {
    MAX_POOL,
    MAX_POOL_GRAD,
    MAX_POOL_PICK,
    AVG_POOL,
    AVG_POOL_GRAD
} pool_kind;

/* What a window knows: its first maximum in a, the sum of a, how many elements lie inside. */
typedef struct window {
    int64_t from[3], to[3], first, count;
    double best, sum;
} window;

static int64_t element(const stk_pool_params *p, int64_t n, int64_t z, int64_t y, int64_t x,
                       int64_t c)
{
    return (((n * p->in[0] + z) * p->in[1] + y) * p->in[2] + x) * p->c + c;
}

static void look(const stk_pool_params *p, const void *a, int64_t n, int64_t flat, int64_t c,
                 window *w)
{
    int64_t out[3] = {flat / p->out[2] / p->out[1], flat / p->out[2] % p->out[1], flat % p->out[2]};
    *w = (window){.first = -1};
    for (int i = 0; i < 3; i++) {
        int64_t from = out[i] * p->stride[i] - p->low[i], to = from + p->window[i];
        w->from[i] = from < 0 ? 0 : from;
        w->to[i] = to > p->in[i] ? p->in[i] : to;
    }
    for (int64_t z = w->from[0]; z < w->to[0]; z++)
        for (int64_t y = w->from[1]; y < w->to[1]; y++)
            for (int64_t x = w->from[2]; x < w->to[2]; x++) {
                int64_t e = element(p, n, z, y, x, c);
                double v = a ? at(p, a, e) : 0;
                if (w->first < 0 || v > w->best || (isnan(v) && !isnan(w->best)))
                    w->first = e, w->best = v;
                w->sum += v;
                w->count++;
            }
}

static void spread(const stk_pool_params *p, void *dx, int64_t n, int64_t c, const window *w,
                   double share)
{
    for (int64_t z = w->from[0]; z < w->to[0]; z++)
        for (int64_t y = w->from[1]; y < w->to[1]; y++)
            for (int64_t x = w->from[2]; x < w->to[2]; x++) {
                int64_t e = element(p, n, z, y, x, c);
                put(p, dx, e, at(p, dx, e) + share);
            }
}

static void ref(const stk_launch *l, int64_t lo, int64_t hi, pool_kind kind)
{
    const stk_pool_params *p = l->params;
    void **arg = l->arg;
    bool back = kind == MAX_POOL_GRAD || kind == AVG_POOL_GRAD;
    void *out = arg[kind == MAX_POOL || kind == AVG_POOL || kind == AVG_POOL_GRAD ? 1 : 2];
    for (int64_t n = lo; n < hi; n++) {
        if (back)
            for (int64_t e = n * x_size(p); e < (n + 1) * x_size(p); e++) put(p, out, e, 0);
        for (int64_t i = 0; i < y_size(p); i++) {
            window w;
            int64_t e = n * y_size(p) + i, c = i % p->c;
            look(p, kind == AVG_POOL_GRAD ? NULL : arg[0], n, i / p->c, c, &w);
            switch (kind) {
            case MAX_POOL: put(p, out, e, w.best); break;
            case MAX_POOL_GRAD: put(p, out, w.first, at(p, out, w.first) + at(p, arg[1], e)); break;
            case MAX_POOL_PICK: put(p, out, e, at(p, arg[1], w.first)); break;
            case AVG_POOL: put(p, out, e, w.sum / (double)w.count); break;
            case AVG_POOL_GRAD: spread(p, out, n, c, &w, at(p, arg[0], e) / (double)w.count); break;
            }
        }
    }
}

#define POOL(id, ID, args)                                                                         \
    static void ref_##id(const stk_launch *l, int64_t lo, int64_t hi, int part)                    \
    {                                                                                              \
        (void)part;                                                                                \
        ref(l, lo, hi, ID);                                                                        \
    }                                                                                              \
    const stk_impl stk_impl_##id##_vec = {.name = "vec",                                           \
                                          .kernel = STK_K_##ID,                                    \
                                          .rank = 10,                                              \
                                          .supports = vec_supports,                                \
                                          .units = images,                                         \
                                          .aligned = aligned_##args,                               \
                                          .run = vec_##id};                                        \
    const stk_impl stk_impl_##id##_ref = {.name = "ref",                                           \
                                          .kernel = STK_K_##ID,                                    \
                                          .rank = 100,                                             \
                                          .supports = ref_supports,                                \
                                          .units = images,                                         \
                                          .aligned = aligned_##args,                               \
                                          .run = ref_##id};
POOL(max_pool, MAX_POOL, 2)
POOL(max_pool_grad, MAX_POOL_GRAD, 3)
POOL(max_pool_pick, MAX_POOL_PICK, 3)
POOL(avg_pool, AVG_POOL, 2)
POOL(avg_pool_grad, AVG_POOL_GRAD, 2)
