/* Softmax, its gradient and cross entropy on the CPU: units are rows. The work is in vec/softmax.c; the reference at the
 * end is what it is tested against. */
#include "device/cpu/cpu.h"
#include "device/cpu/vec/softmax.h"

#include <math.h>

static bool is_f32(const void *params)
{
    return ((const stk_softmax_params *)params)->dtype == STK_F32;
}
static int64_t rows_of(const void *params) { return ((const stk_softmax_params *)params)->rows; }

static uint32_t all_args_cut(const void *params)
{
    (void)params;
    return 0xf;
}

/* ---- vec ------------------------------------------------------------------------------------------ */

static void run_softmax(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    const stk_softmax_params *p = l->params;
    const stk_vec_softmax *v = stk_vec_get()->softmax;
    const float *x = l->arg[0];
    float *y = l->arg[1];
    (void)part;
    (p->log ? v->log_softmax : v->softmax)(hi - lo, p->n, x + lo * p->n, y + lo * p->n);
}

static void run_softmax_grad(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    const stk_softmax_params *p = l->params;
    const stk_vec_softmax *v = stk_vec_get()->softmax;
    const float *y = l->arg[0], *dy = l->arg[1];
    float *dx = l->arg[2];
    int64_t at = lo * p->n;
    (void)part;
    (p->log ? v->log_softmax_grad : v->softmax_grad)(hi - lo, p->n, y + at, dy + at, dx + at);
}

static bool xent_is_f32(const void *params)
{
    return ((const stk_xent_params *)params)->dtype == STK_F32;
}
static int64_t xent_rows(const void *params) { return ((const stk_xent_params *)params)->rows; }

static void run_xent(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    const stk_xent_params *p = l->params;
    const stk_vec_softmax *v = stk_vec_get()->softmax;
    int64_t rows = hi - lo, at = lo * p->n;
    const float *x = (const float *)l->arg[0] + at;
    float *loss = (float *)l->arg[2] + lo, *grad = (float *)l->arg[3] + at;
    (void)part;
    if (p->label == STK_I32)
        v->xent_i32(rows, p->n, x, (const int32_t *)l->arg[1] + lo, loss, grad);
    else if (p->label == STK_I64)
        v->xent_i64(rows, p->n, x, (const int64_t *)l->arg[1] + lo, loss, grad);
    else
        v->xent(rows, p->n, x, (const float *)l->arg[1] + at, loss, grad);
}

const stk_impl stk_impl_softmax_vec = {.name = "vec",
                                       .kernel = STK_K_SOFTMAX,
                                       .supports = is_f32,
                                       .units = rows_of,
                                       .aligned = all_args_cut,
                                       .run = run_softmax};
const stk_impl stk_impl_softmax_grad_vec = {.name = "vec",
                                            .kernel = STK_K_SOFTMAX_GRAD,
                                            .supports = is_f32,
                                            .units = rows_of,
                                            .aligned = all_args_cut,
                                            .run = run_softmax_grad};
const stk_impl stk_impl_xent_vec = {.name = "vec",
                                    .kernel = STK_K_XENT,
                                    .supports = xent_is_f32,
                                    .units = xent_rows,
                                    .aligned = all_args_cut,
                                    .run = run_xent};

/* ---- ref: sums in double, one row after another --------------------------------------------------------- */

static bool is_real(const void *params)
{
    int32_t t = ((const stk_softmax_params *)params)->dtype;
    return t == STK_F32 || t == STK_F64;
}
static bool xent_is_real(const void *params)
{
    int32_t t = ((const stk_xent_params *)params)->dtype;
    return t == STK_F32 || t == STK_F64;
}

/* Maximum of a row and the logarithm of the sum of e^(x - maximum). */
static double log_sum(stk_dtype t, const char *x, int64_t n, double *top)
{
    int64_t size = stk_dtype_size(t);
    double sum = 0;
    *top = -(double)INFINITY;
    for (int64_t j = 0; j < n; j++) *top = fmax(*top, stk_load_f64(t, x + j * size));
    for (int64_t j = 0; j < n; j++) sum += exp(stk_load_f64(t, x + j * size) - *top);
    return sum == 0 ? -(double)INFINITY : log(sum);
}

static void run_softmax_ref(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    const stk_softmax_params *p = l->params;
    stk_dtype t = (stk_dtype)p->dtype;
    int64_t size = stk_dtype_size(t);
    (void)part;
    for (int64_t r = lo; r < hi; r++) {
        const char *x = (const char *)l->arg[0] + r * p->n * size;
        char *y = (char *)l->arg[1] + r * p->n * size;
        double top, rest = log_sum(t, x, p->n, &top);
        for (int64_t j = 0; j < p->n; j++) {
            double v = stk_load_f64(t, x + j * size) - top - rest;
            stk_store_f64(t, y + j * size, p->log ? v : exp(v));
        }
    }
}

static void run_softmax_grad_ref(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    const stk_softmax_params *p = l->params;
    stk_dtype t = (stk_dtype)p->dtype;
    int64_t size = stk_dtype_size(t), n = p->n;
    (void)part;
    for (int64_t r = lo; r < hi; r++) {
        const char *y = (const char *)l->arg[0] + r * n * size,
                   *dy = (const char *)l->arg[1] + r * n * size;
        char *dx = (char *)l->arg[2] + r * n * size;
        double sum = 0;
        for (int64_t j = 0; j < n; j++)
            sum += stk_load_f64(t, dy + j * size) * (p->log ? 1 : stk_load_f64(t, y + j * size));
        for (int64_t j = 0; j < n; j++) {
            double a = stk_load_f64(t, y + j * size), d = stk_load_f64(t, dy + j * size);
            stk_store_f64(t, dx + j * size, p->log ? d - exp(a) * sum : a * (d - sum));
        }
    }
}

static double weight_of(const stk_launch *l, int64_t r, int64_t j)
{
    const stk_xent_params *p = l->params;
    stk_dtype t = (stk_dtype)p->label;
    int64_t size = stk_dtype_size(t);
    if (t != STK_I32 && t != STK_I64)
        return stk_load_f64(t, (const char *)l->arg[1] + (r * p->n + j) * size);
    return stk_load_i64(t, (const char *)l->arg[1] + r * size) == j;
}

static void run_xent_ref(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    const stk_xent_params *p = l->params;
    stk_dtype t = (stk_dtype)p->dtype;
    int64_t size = stk_dtype_size(t), n = p->n;
    bool sparse = p->label == STK_I32 || p->label == STK_I64;
    (void)part;
    for (int64_t r = lo; r < hi; r++) {
        const char *x = (const char *)l->arg[0] + r * n * size;
        char *loss = (char *)l->arg[2] + r * size, *grad = (char *)l->arg[3] + r * n * size;
        double top, rest = log_sum(t, x, n, &top), weights = 0, sum = 0;
        for (int64_t j = 0; j < n; j++) weights += weight_of(l, r, j);
        bool valid = !sparse || weights == 1; /* else the label is no class */
        for (int64_t j = 0; j < n; j++) {
            double w = weight_of(l, r, j), log_p = stk_load_f64(t, x + j * size) - top - rest;
            if (w != 0) sum -= w * log_p;
            stk_store_f64(t, grad + j * size, valid ? exp(log_p) * weights - w : 0);
        }
        stk_store_f64(t, loss, valid ? sum : (double)NAN);
    }
}

const stk_impl stk_impl_softmax_ref = {.name = "ref",
                                       .kernel = STK_K_SOFTMAX,
                                       .rank = 100,
                                       .supports = is_real,
                                       .units = rows_of,
                                       .run = run_softmax_ref};
const stk_impl stk_impl_softmax_grad_ref = {.name = "ref",
                                            .kernel = STK_K_SOFTMAX_GRAD,
                                            .rank = 100,
                                            .supports = is_real,
                                            .units = rows_of,
                                            .run = run_softmax_grad_ref};
const stk_impl stk_impl_xent_ref = {.name = "ref",
                                    .kernel = STK_K_XENT,
                                    .rank = 100,
                                    .supports = xent_is_real,
                                    .units = xent_rows,
                                    .run = run_xent_ref};
