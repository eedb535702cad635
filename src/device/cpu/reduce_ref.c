/* The reduce kernel said plainly: one result at a time, elements in order, in double or int64_t. */
#include "device/cpu/cpu.h"

#include <math.h>

static bool beats(bool smallest, double x, double best)
{
    if (isnan(best)) return false;
    return isnan(x) || (smallest ? x < best : x > best);
}

static void reduce_float(const stk_reduce_params *p, const char *x, int64_t step, void *to)
{
    stk_dtype dtype = (stk_dtype)p->dtype;
    bool smallest = p->kind == STK_REDUCE_MIN || p->kind == STK_REDUCE_ARGMIN;
    double sum = 0, product = 1, best = smallest ? (double)INFINITY : -(double)INFINITY;
    int64_t at = 0;
    for (int64_t i = 0; i < p->n; i++) {
        double v = stk_load_f64(dtype, x + i * step);
        sum += v, product *= v;
        if (i == 0 || beats(smallest, v, best)) best = v, at = i;
    }
    switch ((stk_reduce_kind)p->kind) {
    case STK_REDUCE_SUM: stk_store_f64(dtype, to, sum); break;
    case STK_REDUCE_PROD: stk_store_f64(dtype, to, product); break;
    case STK_REDUCE_ARGMAX:
    case STK_REDUCE_ARGMIN: *(int64_t *)to = at; break;
    default: stk_store_f64(dtype, to, best); break;
    }
}

static void reduce_int(const stk_reduce_params *p, const char *x, int64_t step, void *to)
{
    stk_dtype dtype = (stk_dtype)p->dtype;
    bool smallest = p->kind == STK_REDUCE_MIN || p->kind == STK_REDUCE_ARGMIN;
    uint64_t sum = 0, product = 1;
    int64_t best = smallest ? INT64_MAX : INT64_MIN, at = 0, any = 0, all = 1;
    for (int64_t i = 0; i < p->n; i++) {
        int64_t v = stk_load_i64(dtype, x + i * step);
        sum += (uint64_t)v, product *= (uint64_t)v;
        any |= v != 0, all &= v != 0;
        if (i == 0 || (smallest ? v < best : v > best)) best = v, at = i;
    }
    switch ((stk_reduce_kind)p->kind) {
    case STK_REDUCE_SUM: stk_store_i64(dtype, to, (int64_t)sum); break;
    case STK_REDUCE_PROD: stk_store_i64(dtype, to, (int64_t)product); break;
    case STK_REDUCE_ANY: stk_store_i64(dtype, to, any); break;
    case STK_REDUCE_ALL: stk_store_i64(dtype, to, all); break;
    case STK_REDUCE_ARGMAX:
    case STK_REDUCE_ARGMIN: *(int64_t *)to = at; break;
    default: stk_store_i64(dtype, to, best); break;
    }
}

static void run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_reduce_params *p = launch->params;
    int64_t size = stk_dtype_size((stk_dtype)p->dtype);
    bool arg = p->kind == STK_REDUCE_ARGMAX || p->kind == STK_REDUCE_ARGMIN;
    for (int64_t u = lo; u < hi; u++) {
        int64_t o = u / p->inner, j = u % p->inner;
        const char *x = (const char *)launch->arg[0] + (o * p->n * p->inner + j) * size;
        void *to = (char *)launch->arg[1] + u * (arg ? 8 : size);
        if (stk_dtype_is_float((stk_dtype)p->dtype))
            reduce_float(p, x, p->inner * size, to);
        else
            reduce_int(p, x, p->inner * size, to);
    }
}

static int64_t units(const void *params)
{
    const stk_reduce_params *p = params;
    return p->outer * p->inner;
}

const stk_impl stk_impl_reduce_ref = {
    .name = "ref", .kernel = STK_K_REDUCE, .rank = 100, .units = units, .run = run};
