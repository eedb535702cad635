/* Running sums, products and linear recurrences along n of [outer, n, inner].
 *
 * With inner > 1 the step along n is a whole row of independent columns, which the compiler turns into vectors; a unit of
 * work is then a block of columns. With inner = 1 a line is a chain of dependent steps, and lines are the units.
 * Every line is walked from its start by one thread, so no split can change a bit. */
#include "device/cpu/cpu.h"

enum { COLUMNS = 64 };

static int64_t blocks_of(const stk_scan_params *p) { return stk_ceil_div(p->inner, COLUMNS); }

static int64_t units_of(const void *params)
{
    const stk_scan_params *p = params;
    return p->outer * blocks_of(p);
}

/* Only when a unit is a whole line or slab are its elements the u-th share. */
static uint32_t all_args_cut(const void *params) { return blocks_of(params) == 1 ? 7 : 0; }

static bool supports_scan(const void *params)
{
    const stk_scan_params *p = params;
    if (p->dtype == STK_F32 || p->dtype == STK_F64) return true;
    return p->kind != STK_SCAN_LINEAR && (p->dtype == STK_I32 || p->dtype == STK_I64);
}

/* Where a line's columns [c, c + width) start, and the signed distance from step to step. */
typedef struct line {
    int64_t at, step, n, width;
} line;

static line line_of(const stk_scan_params *p, int64_t unit)
{
    int64_t o = unit / blocks_of(p), c = unit % blocks_of(p) * COLUMNS;
    line l = {.n = p->n, .width = stk_min_i64(COLUMNS, p->inner - c), .step = p->inner};
    l.at = o * p->n * p->inner + c;
    if (p->reverse) {
        l.at += (p->n - 1) * p->inner;
        l.step = -p->inner;
    }
    return l;
}

/* Integers wrap: their sums run unsigned. */
#define SCAN(name, type, start, join)                                                              \
    static void name(const line *l, bool exclusive, const type *restrict x, type *restrict y)      \
    {                                                                                              \
        type acc[COLUMNS];                                                                         \
        for (int64_t c = 0; c < l->width; c++) acc[c] = start;                                     \
        for (int64_t i = 0, at = l->at; i < l->n; i++, at += l->step)                              \
            for (int64_t c = 0; c < l->width; c++) {                                               \
                type before = acc[c], after = (type)(before join x[at + c]);                       \
                y[at + c] = exclusive ? before : after;                                            \
                acc[c] = after;                                                                    \
            }                                                                                      \
    }
SCAN(sum_f32, float, 0, +)
SCAN(sum_f64, double, 0, +)
SCAN(sum_i32, uint32_t, 0, +)
SCAN(sum_i64, uint64_t, 0, +)
SCAN(prod_f32, float, 1, *)
SCAN(prod_f64, double, 1, *)
SCAN(prod_i32, uint32_t, 1, *)
SCAN(prod_i64, uint64_t, 1, *)

#define LINEAR(name, type)                                                                         \
    static void name(const line *l, const type *restrict a, const type *restrict b,                \
                     type *restrict y)                                                             \
    {                                                                                              \
        type acc[COLUMNS];                                                                         \
        for (int64_t c = 0; c < l->width; c++) acc[c] = 0;                                         \
        for (int64_t i = 0, at = l->at; i < l->n; i++, at += l->step)                              \
            for (int64_t c = 0; c < l->width; c++)                                                 \
                y[at + c] = acc[c] = a[at + c] * acc[c] + b[at + c];                               \
    }
LINEAR(linear_f32, float)
LINEAR(linear_f64, double)

static void run_scan(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const stk_scan_params *p = launch->params;
    void **arg = launch->arg;
    bool prod = p->kind == STK_SCAN_PROD, linear = p->kind == STK_SCAN_LINEAR,
         exclusive = p->exclusive;
    (void)part;
    for (int64_t u = lo; u < hi; u++) {
        line l = line_of(p, u);
        switch (p->dtype) {
        case STK_F32:
            if (linear)
                linear_f32(&l, arg[0], arg[1], arg[2]);
            else
                (prod ? prod_f32 : sum_f32)(&l, exclusive, arg[0], arg[1]);
            break;
        case STK_F64:
            if (linear)
                linear_f64(&l, arg[0], arg[1], arg[2]);
            else
                (prod ? prod_f64 : sum_f64)(&l, exclusive, arg[0], arg[1]);
            break;
        case STK_I32: (prod ? prod_i32 : sum_i32)(&l, exclusive, arg[0], arg[1]); break;
        default: (prod ? prod_i64 : sum_i64)(&l, exclusive, arg[0], arg[1]); break;
        }
    }
}

const stk_impl stk_impl_scan_own = {.name = "own",
                                    .kernel = STK_K_SCAN,
                                    .supports = supports_scan,
                                    .units = units_of,
                                    .aligned = all_args_cut,
                                    .run = run_scan};

/* ---- ref: one element at a time, index by index ---------------------------------------------------------- */

static double ref_get(const stk_launch *l, int32_t arg, int64_t i)
{
    stk_dtype t = (stk_dtype)((const stk_scan_params *)l->params)->dtype;
    return stk_load_f64(t, (const char *)l->arg[arg] + i * stk_dtype_size(t));
}

/* Integers, wrapping. */
static void ref_line_i64(const stk_launch *l, int64_t o, int64_t c)
{
    const stk_scan_params *p = l->params;
    stk_dtype t = (stk_dtype)p->dtype;
    int64_t size = stk_dtype_size(t);
    uint64_t acc = p->kind == STK_SCAN_PROD ? 1 : 0;
    for (int64_t k = 0; k < p->n; k++) {
        int64_t i = p->reverse ? p->n - 1 - k : k, at = (o * p->n + i) * p->inner + c;
        uint64_t x = (uint64_t)stk_load_i64(t, (const char *)l->arg[0] + at * size), before = acc;
        acc = p->kind == STK_SCAN_SUM ? acc + x : acc * x;
        uint64_t v = p->exclusive ? before : acc;
        stk_store_i64(t, (char *)l->arg[1] + at * size, t == STK_I32 ? (int32_t)v : (int64_t)v);
    }
}

static void ref_line(const stk_launch *l, int64_t o, int64_t c)
{
    const stk_scan_params *p = l->params;
    stk_dtype t = (stk_dtype)p->dtype;
    double acc = p->kind == STK_SCAN_PROD ? 1 : 0;
    int32_t out = p->kind == STK_SCAN_LINEAR ? 2 : 1;
    for (int64_t k = 0; k < p->n; k++) {
        int64_t i = p->reverse ? p->n - 1 - k : k, at = (o * p->n + i) * p->inner + c;
        double x = ref_get(l, 0, at), before = acc;
        if (p->kind == STK_SCAN_SUM) acc += x;
        if (p->kind == STK_SCAN_PROD) acc *= x;
        if (p->kind == STK_SCAN_LINEAR) acc = x * acc + ref_get(l, 1, at);
        stk_store_f64(t, (char *)l->arg[out] + at * stk_dtype_size(t), p->exclusive ? before : acc);
    }
}

static void run_ref(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    const stk_scan_params *p = l->params;
    bool real = p->dtype == STK_F32 || p->dtype == STK_F64;
    (void)lo, (void)hi, (void)part;
    for (int64_t o = 0; o < p->outer; o++)
        for (int64_t c = 0; c < p->inner; c++) (real ? ref_line : ref_line_i64)(l, o, c);
}

const stk_impl stk_impl_scan_ref = {
    .name = "ref", .kernel = STK_K_SCAN, .rank = 100, .supports = supports_scan, .run = run_ref};
