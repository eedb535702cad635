/* Every kind and type from one template (reduce_type.inc), and shaped by hand what training runs all day: sums of floats, and the
 * place of the largest of a row. */
#include "device/cpu/vec/reduce.h"

#include "device/cpu/vec/lanes.h"

#include <math.h>
#include <string.h>

#define IN      float
#define ACC     float
#define MODULAR float
#define T(name) name##_f32
#include "device/cpu/vec/reduce_type.inc"

#define IN      float
#define ACC     double
#define MODULAR double
#define T(name) name##_f32_f64
#include "device/cpu/vec/reduce_type.inc"

#define IN      double
#define ACC     double
#define MODULAR double
#define T(name) name##_f64
#include "device/cpu/vec/reduce_type.inc"

#define IN      int64_t
#define ACC     int64_t
#define MODULAR uint64_t
#define T(name) name##_i64
#include "device/cpu/vec/reduce_type.inc"

#define IN      int32_t
#define ACC     int32_t
#define MODULAR uint32_t
#define T(name) name##_bool
#include "device/cpu/vec/reduce_type.inc"

/* ---- sums of floats ---------------------------------------------------------------------------- */

/* How many floats one accumulator may take before it is emptied into a double: keeps the error of a sum at
 * a few ulp however long it is. */
enum { RUN_LENGTH = 64 };

/* In double, by halves: the order is fixed by the width alone. */
static inline double across_in_double(vf v)
{
    double part[STK_VF];
    float f[STK_VF];
    memcpy(f, &v, sizeof f);
    for (int i = 0; i < STK_VF; i++) part[i] = (double)f[i];
    for (int half = STK_VF / 2; half; half /= 2)
        for (int i = 0; i < half; i++) part[i] += part[i + half];
    return part[0];
}

static inline double sum_short(int64_t n, const float *x) /* n < 8 vectors */
{
    double total = 0;
    int64_t i = 0;
    if (n >= STK_VF) {
        vf a = vf_load(x);
        for (i = STK_VF; i + STK_VF <= n; i += STK_VF) a += vf_load(x + i);
        total = across_in_double(a);
    }
    for (; i < n; i++) total += (double)x[i];
    return total;
}

static double sum_row(int64_t n, const float *x)
{
    double total = 0;
    while (n >= 8 * STK_VF) {
        vf a[8];
        for (int k = 0; k < 8; k++) a[k] = vf_load(x + k * STK_VF);
        x += 8 * STK_VF, n -= 8 * STK_VF;
        for (int run = 1; run < RUN_LENGTH && n >= 8 * STK_VF; run++) {
            for (int k = 0; k < 8; k++) a[k] += vf_load(x + k * STK_VF);
            x += 8 * STK_VF, n -= 8 * STK_VF;
        }
        total +=
            across_in_double(((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7])));
    }
    return n ? total + sum_short(n, x) : total;
}

static void rows_SUM_f32(int64_t rows, int64_t n, int64_t stride, const void *x, void *acc_)
{
    double *acc = acc_;
    for (int64_t r = 0; r < rows; r++) acc[r] += sum_row(n, (const float *)x + r * stride);
}

/* One strip of `vectors` registers, at most RUN_LENGTH rows deep. */
static inline __attribute__((always_inline)) void sum_strip(int vectors, int64_t n, int64_t stride,
                                                            const float *x, double *acc)
{
    vf a[8];
    for (int k = 0; k < vectors; k++) a[k] = vf_load(x + k * STK_VF);
    for (int64_t i = 1; i < n; i++)
        for (int k = 0; k < vectors; k++) a[k] += vf_load(x + i * stride + k * STK_VF);
    for (int k = 0; k < vectors; k++) {
        float f[STK_VF];
        memcpy(f, &a[k], sizeof f);
        for (int j = 0; j < STK_VF; j++) acc[k * STK_VF + j] += (double)f[j];
    }
}

static void cols_SUM_f32(int64_t n, int64_t width, int64_t stride, const void *x_, void *acc_)
{
    const float *x = x_;
    double *acc = acc_;
    for (int64_t i = 0; i < n; i += RUN_LENGTH, x += RUN_LENGTH * stride) {
        int64_t rows = n - i < RUN_LENGTH ? n - i : RUN_LENGTH, j = 0;
        for (; j + 8 * STK_VF <= width; j += 8 * STK_VF) sum_strip(8, rows, stride, x + j, acc + j);
        for (; j + 2 * STK_VF <= width; j += 2 * STK_VF) sum_strip(2, rows, stride, x + j, acc + j);
        for (; j + STK_VF <= width; j += STK_VF) sum_strip(1, rows, stride, x + j, acc + j);
        for (; j < width; j++) {
            float a = x[j];
            for (int64_t r = 1; r < rows; r++) a += x[r * stride + j];
            acc[j] += (double)a;
        }
    }
}

/* First i with x[i] == value, or x[i] NaN when value is; there is one. */
static inline int64_t find_f32(const float *x, int64_t n, float value)
{
    int64_t i = 0;
    bool nan = value != value;
    for (; i + STK_VF <= n; i += STK_VF) {
        vf v = vf_load(x + i);
        mask_f32 hit = nan ? v != v : v == value;
        uint64_t words[STK_VF / 2], any = 0;
        memcpy(words, &hit, sizeof words);
        for (int k = 0; k < STK_VF / 2; k++) any |= words[k];
        if (any) break;
    }
    while (nan ? x[i] == x[i] : x[i] != value) i++;
    return i;
}

/* ---- the table --------------------------------------------------------------------------------- */

/* A dense row: find the extreme with vectors, then look for it. */
STK_INLINE void arg_row_f32(const stk_reduce_kind kind, int64_t n, int64_t base, int64_t width,
                            int64_t stride, const void *x_, void *best_, int64_t *index)
{
    const float *x = x_;
    float *best = best_;
    if (width != 1 || stride != 1 || n < STK_VF) {
        arg_f32(kind, n, base, width, stride, x, best, index);
        return;
    }
    int64_t all;
    float worst = kind == STK_REDUCE_MAX ? -INFINITY : INFINITY;
    float extreme = stretch_f32(kind, worst, n, x, &all);
    if (*index >= 0 && !beats_f32(kind, *best, extreme)) return;
    *best = extreme;
    *index = base + find_f32(x, n, extreme);
}

/* kind, ending of the template, ending here, identity */
#define EACH_REDUCTION(X)                                                                          \
    X(PROD, f32_f64, f32, 1.0)                                                                     \
    X(MAX, f32, f32, -INFINITY)                                                                    \
    X(MIN, f32, f32, INFINITY)                                                                     \
    X(SUM, f64, f64, 0.0)                                                                          \
    X(PROD, f64, f64, 1.0)                                                                         \
    X(MAX, f64, f64, -(double)INFINITY)                                                            \
    X(MIN, f64, f64, (double)INFINITY)                                                             \
    X(SUM, i64, i64, 0)                                                                            \
    X(PROD, i64, i64, 1)                                                                           \
    X(MAX, i64, i64, INT64_MIN)                                                                    \
    X(MIN, i64, i64, INT64_MAX)                                                                    \
    X(ANY, bool, bool, 0)                                                                          \
    X(ALL, bool, bool, 1)
#define NAMED(KIND, type, ending, identity)                                                        \
    static void rows_##KIND##_##ending(int64_t rows, int64_t n, int64_t stride, const void *x,     \
                                       void *acc)                                                  \
    {                                                                                              \
        rows_##type(STK_REDUCE_##KIND, identity, rows, n, stride, x, acc);                         \
    }                                                                                              \
    static void cols_##KIND##_##ending(int64_t n, int64_t width, int64_t stride, const void *x,    \
                                       void *acc)                                                  \
    {                                                                                              \
        cols_##type(STK_REDUCE_##KIND, n, width, stride, x, acc);                                  \
    }
EACH_REDUCTION(NAMED)

#define NAMED_ARG(KIND, body, ending)                                                              \
    static void arg_##KIND##_##ending(int64_t n, int64_t base, int64_t width, int64_t stride,      \
                                      const void *x, void *best, int64_t *index)                   \
    {                                                                                              \
        body(STK_REDUCE_##KIND, n, base, width, stride, x, best, index);                           \
    }
NAMED_ARG(MAX, arg_row_f32, f32)
NAMED_ARG(MIN, arg_row_f32, f32)
NAMED_ARG(MAX, arg_f64, f64)
NAMED_ARG(MIN, arg_f64, f64)
NAMED_ARG(MAX, arg_i64, i64)
NAMED_ARG(MIN, arg_i64, i64)

#define NUMBERS(way, KIND)                                                                         \
    {                                                                                              \
        way##_##KIND##_f32, way##_##KIND##_f64, way##_##KIND##_i64, NULL                           \
    }
#define TABLE(way)                                                                                 \
    {                                                                                              \
        [STK_REDUCE_SUM] = NUMBERS(way, SUM), [STK_REDUCE_PROD] = NUMBERS(way, PROD),              \
        [STK_REDUCE_MAX] = NUMBERS(way, MAX), [STK_REDUCE_MIN] = NUMBERS(way, MIN),                \
        [STK_REDUCE_ANY] = {[STK_LANE_BOOL] = way##_ANY_bool},                                     \
        [STK_REDUCE_ALL] = {[STK_LANE_BOOL] = way##_ALL_bool},                                     \
    }

const stk_vec_reduce STK_VEC(stk_vec_reduce) = {
    .rows = TABLE(rows),
    .cols = TABLE(cols),
    .arg = {NUMBERS(arg, MAX), NUMBERS(arg, MIN)},
};
