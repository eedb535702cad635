/* Pooling kernels: the reference (float32, float64) and the vector form (float32; maxima of bfloat16 as well, which are exact).
 * Units are images. */
#include "device/cpu/cpu.h"
#include "device/cpu/vec/pool.h"

#include <math.h>
#include <string.h>

static int64_t pixels(const int64_t size[3]) { return size[0] * size[1] * size[2]; }
static int64_t images(const void *params) { return ((const stk_pool_params *)params)->n; }

/* Elements of one image on either side, and bytes of the numbers of its maxima. */
static int64_t x_size(const stk_pool_params *p) { return pixels(p->in) * p->c; }
static int64_t y_size(const stk_pool_params *p) { return pixels(p->out) * p->c; }
static int64_t which_size(const stk_pool_params *p)
{
    return y_size(p) * (stk_pool_wide(p->window) ? 4 : 1);
}

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

static bool avg_supports(const void *params)
{
    return ((const stk_pool_params *)params)->dtype == STK_F32;
}

static const stk_vec_pool *vec(void) { return stk_vec_get()->pool; }

static bool max_supports(const void *params)
{
    const stk_pool_params *p = params;
    return p->dtype == STK_F32 || p->dtype == STK_BF16;
}

/* Where windows share pixels the gradient is a sum, which float32 adds up. */
static bool max_grad_supports(const void *params)
{
    const stk_pool_params *p = params;
    bool apart = true;
    for (int i = 0; i < 3; i++) apart &= p->out[i] == 1 || p->stride[i] >= p->window[i];
    return p->dtype == STK_F32 || (p->dtype == STK_BF16 && apart);
}

/* Images from number i on of an array with `each` elements per image. */
static char *image(const stk_pool_params *p, void *array, int64_t i, int64_t each)
{
    return (char *)array + i * each * stk_dtype_size((stk_dtype)p->dtype);
}

static void vec_max_pool(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_pool_params *p = l->params;
    char *which = l->arg[2];
    for (int64_t i = lo; i < hi; i++)
        vec()->max[p->dtype == STK_BF16](p, image(p, l->arg[0], i, x_size(p)),
                                         image(p, l->arg[1], i, y_size(p)),
                                         which + i * which_size(p));
}

static void vec_max_pool_grad(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_pool_params *p = l->params;
    const char *which = l->arg[0];
    for (int64_t i = lo; i < hi; i++)
        vec()->max_grad[p->dtype == STK_BF16](p, which + i * which_size(p),
                                              image(p, l->arg[1], i, y_size(p)),
                                              image(p, l->arg[2], i, x_size(p)));
}

static void vec_max_pool_pick(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_pool_params *p = l->params;
    const char *which = l->arg[0];
    for (int64_t i = lo; i < hi; i++)
        vec()->max_pick[p->dtype == STK_BF16](p, which + i * which_size(p),
                                              image(p, l->arg[1], i, x_size(p)),
                                              image(p, l->arg[2], i, y_size(p)));
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

static bool ref_avg_supports(const void *params)
{
    const stk_pool_params *p = params;
    return p->dtype == STK_F32 || p->dtype == STK_F64;
}
static bool ref_max_supports(const void *params)
{
    return max_supports(params) || ref_avg_supports(params);
}
static bool ref_max_grad_supports(const void *params)
{
    return max_grad_supports(params) || ref_avg_supports(params);
}

static double at(const stk_pool_params *p, const void *array, int64_t i)
{
    const stk_dtype d = (stk_dtype)p->dtype;
    return stk_load_f64(d, (const char *)array + i * stk_dtype_size(d));
}

static void put(const stk_pool_params *p, void *array, int64_t i, double value)
{
    const stk_dtype d = (stk_dtype)p->dtype;
    stk_store_f64(d, (char *)array + i * stk_dtype_size(d), value);
}

static stk_dtype which_dtype(const stk_pool_params *p)
{
    return stk_pool_wide(p->window) ? STK_I32 : STK_U8;
}

static int64_t which_at(const stk_pool_params *p, const void *which, int64_t i)
{
    stk_dtype d = which_dtype(p);
    return stk_load_i64(d, (const char *)which + i * stk_dtype_size(d));
}

/* A walk over the elements of one window of one channel that lie inside the image. */
typedef struct walk {
    int64_t origin[3];    /* of the window; may be outside */
    int64_t element;      /* of x */
    int64_t number, taps; /* in the whole window */
} walk;

static void start(const stk_pool_params *p, int64_t flat, walk *w)
{
    int64_t out[3] = {flat / p->out[2] / p->out[1], flat / p->out[2] % p->out[1], flat % p->out[2]};
    *w = (walk){.number = -1, .taps = pixels(p->window)};
    for (int i = 0; i < 3; i++) w->origin[i] = out[i] * p->stride[i] - p->low[i];
}

static bool step(const stk_pool_params *p, int64_t n, int64_t c, walk *w)
{
    while (++w->number < w->taps) {
        int64_t z = w->origin[0] + w->number / p->window[2] / p->window[1];
        int64_t y = w->origin[1] + w->number / p->window[2] % p->window[1];
        int64_t x = w->origin[2] + w->number % p->window[2];
        if (z < 0 || z >= p->in[0] || y < 0 || y >= p->in[1] || x < 0 || x >= p->in[2]) continue;
        w->element = (((n * p->in[0] + z) * p->in[1] + y) * p->in[2] + x) * p->c + c;
        return true;
    }
    return false;
}

typedef enum pool_kind {
    MAX_POOL,
    MAX_POOL_GRAD,
    MAX_POOL_PICK,
    AVG_POOL,
    AVG_POOL_GRAD
} pool_kind;

static void ref_max(const stk_pool_params *p, void **arg, int64_t n, int64_t i)
{
    walk w;
    bool any = false;
    double best = 0;
    int64_t number = 0, e = n * y_size(p) + i;
    for (start(p, i / p->c, &w); step(p, n, i % p->c, &w); any = true) {
        double v = at(p, arg[0], w.element);
        if (any && !(v > best) && !(isnan(v) && !isnan(best))) continue;
        best = v;
        number = w.number;
    }
    put(p, arg[1], e, best);
    stk_store_i64(which_dtype(p), (char *)arg[2] + e * stk_dtype_size(which_dtype(p)), number);
}

static void ref_avg(const stk_pool_params *p, void **arg, int64_t n, int64_t i, bool back)
{
    walk w;
    double sum = 0, count = 0;
    int64_t e = n * y_size(p) + i;
    for (start(p, i / p->c, &w); step(p, n, i % p->c, &w); count++)
        if (!back) sum += at(p, arg[0], w.element);
    if (!back) {
        put(p, arg[1], e, sum / count);
        return;
    }
    for (start(p, i / p->c, &w); step(p, n, i % p->c, &w);)
        put(p, arg[1], w.element, at(p, arg[1], w.element) + at(p, arg[0], e) / count);
}

static void ref_which(const stk_pool_params *p, void **arg, int64_t n, int64_t i, bool back)
{
    walk w;
    int64_t e = n * y_size(p) + i, number = which_at(p, arg[0], e);
    for (start(p, i / p->c, &w); step(p, n, i % p->c, &w);) {
        if (w.number != number) continue;
        if (back)
            put(p, arg[2], w.element, at(p, arg[2], w.element) + at(p, arg[1], e));
        else
            put(p, arg[2], e, at(p, arg[1], w.element));
    }
}

static void ref(const stk_launch *l, int64_t lo, int64_t hi, pool_kind kind)
{
    const stk_pool_params *p = l->params;
    void **arg = l->arg;
    for (int64_t n = lo; n < hi; n++) {
        if (kind == MAX_POOL_GRAD || kind == AVG_POOL_GRAD) /* gradients add to zeros */
            for (int64_t e = n * x_size(p); e < (n + 1) * x_size(p); e++)
                put(p, arg[kind == MAX_POOL_GRAD ? 2 : 1], e, 0);
        for (int64_t i = 0; i < y_size(p); i++) {
            if (kind == MAX_POOL)
                ref_max(p, arg, n, i);
            else if (kind == AVG_POOL || kind == AVG_POOL_GRAD)
                ref_avg(p, arg, n, i, kind == AVG_POOL_GRAD);
            else
                ref_which(p, arg, n, i, kind == MAX_POOL_GRAD);
        }
    }
}

#define POOL(id, ID, args, takes)                                                                  \
    static void ref_##id(const stk_launch *l, int64_t lo, int64_t hi, int part)                    \
    {                                                                                              \
        (void)part;                                                                                \
        ref(l, lo, hi, ID);                                                                        \
    }                                                                                              \
    const stk_impl stk_impl_##id##_vec = {.name = "vec",                                           \
                                          .kernel = STK_K_##ID,                                    \
                                          .rank = 10,                                              \
                                          .supports = takes##_supports,                            \
                                          .units = images,                                         \
                                          .aligned = aligned_##args,                               \
                                          .run = vec_##id};                                        \
    const stk_impl stk_impl_##id##_ref = {.name = "ref",                                           \
                                          .kernel = STK_K_##ID,                                    \
                                          .rank = 100,                                             \
                                          .supports = ref_##takes##_supports,                      \
                                          .units = images,                                         \
                                          .aligned = aligned_##args,                               \
                                          .run = ref_##id};
POOL(max_pool, MAX_POOL, 3, max)
POOL(max_pool_grad, MAX_POOL_GRAD, 3, max_grad)
POOL(max_pool_pick, MAX_POOL_PICK, 3, max)
POOL(avg_pool, AVG_POOL, 2, avg)
POOL(avg_pool_grad, AVG_POOL_GRAD, 2, avg)
