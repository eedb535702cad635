/* Generic loops by macro for every kind and lane, and hand-shaped ones for what training runs all day: sums and
 * extremes of floats. */
#include "device/cpu/vec/reduce.h"

#include <math.h>
#include <string.h>

/* ---- any kind, any lane ---------------------------------------------------------------------- */

#define ADD(a, x)       ((a) + (x))
#define MULTIPLY(a, x)  ((a) * (x))
#define ADD_I(a, x)     (int64_t)((uint64_t)(a) + (uint64_t)(x))
#define MUL_I(a, x)     (int64_t)((uint64_t)(a) * (uint64_t)(x))
#define LARGER(a, x)    ((((x) > (a)) | ((x) != (x))) ? (x) : (a)) /* NaN wins and stays */
#define SMALLER(a, x)   ((((x) < (a)) | ((x) != (x))) ? (x) : (a))
#define LARGER_I(a, x)  ((x) > (a) ? (x) : (a))
#define SMALLER_I(a, x) ((x) < (a) ? (x) : (a))
#define EITHER(a, x)    ((a) | (x))
#define BOTH(a, x)      ((a) & (x))

/* Four accumulators hide the latency of the operation. */
#define ROWS(name, in, acc_type, op, identity)                                                     \
    static void rows_##name(int64_t rows, int64_t n, int64_t stride, const void *x_, void *acc_)   \
    {                                                                                              \
        acc_type *acc = acc_;                                                                      \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            const in *x = (const in *)x_ + r * stride;                                             \
            acc_type a = identity, b = identity, c = identity, d = identity;                       \
            int64_t i = 0;                                                                         \
            for (; i + 4 <= n; i += 4) {                                                           \
                acc_type x0 = (acc_type)x[i], x1 = (acc_type)x[i + 1];                             \
                acc_type x2 = (acc_type)x[i + 2], x3 = (acc_type)x[i + 3];                         \
                a = op(a, x0), b = op(b, x1), c = op(c, x2), d = op(d, x3);                        \
            }                                                                                      \
            for (; i < n; i++) {                                                                   \
                acc_type x0 = (acc_type)x[i];                                                      \
                a = op(a, x0);                                                                     \
            }                                                                                      \
            a = op(a, b), c = op(c, d), a = op(a, c);                                              \
            acc[r] = op(acc[r], a);                                                                \
        }                                                                                          \
    }
#define COLS(name, in, acc_type, op)                                                               \
    static void cols_##name(int64_t n, int64_t width, int64_t stride, const void *x_, void *acc_)  \
    {                                                                                              \
        acc_type *restrict acc = acc_;                                                             \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const in *restrict x = (const in *)x_ + i * stride;                                    \
            for (int64_t j = 0; j < width; j++) {                                                  \
                acc_type v = (acc_type)x[j];                                                       \
                acc[j] = op(acc[j], v);                                                            \
            }                                                                                      \
        }                                                                                          \
    }
#define BOTH_WAYS(name, in, acc_type, op, identity)                                                \
    ROWS(name, in, acc_type, op, identity)                                                         \
    COLS(name, in, acc_type, op)

BOTH_WAYS(prod_f32, float, double, MULTIPLY, 1.0)
COLS(max_f32, float, float, LARGER)
COLS(min_f32, float, float, SMALLER)
BOTH_WAYS(sum_f64, double, double, ADD, 0.0)
BOTH_WAYS(prod_f64, double, double, MULTIPLY, 1.0)
BOTH_WAYS(max_f64, double, double, LARGER, -(double)INFINITY)
BOTH_WAYS(min_f64, double, double, SMALLER, (double)INFINITY)
BOTH_WAYS(sum_i64, int64_t, int64_t, ADD_I, 0)
BOTH_WAYS(prod_i64, int64_t, int64_t, MUL_I, 1)
BOTH_WAYS(max_i64, int64_t, int64_t, LARGER_I, INT64_MIN)
BOTH_WAYS(min_i64, int64_t, int64_t, SMALLER_I, INT64_MAX)
BOTH_WAYS(any_bool, int32_t, int32_t, EITHER, 0)
BOTH_WAYS(all_bool, int32_t, int32_t, BOTH, 1)

/* ---- float vectors --------------------------------------------------------------------------- */

typedef float vf __attribute__((vector_size(STK_VF * 4)));
typedef int32_t vi __attribute__((vector_size(STK_VF * 4)));

static inline vf load(const float *x)
{
    vf v;
    memcpy(&v, x, sizeof v);
    return v;
}

static inline vf choose(vi mask, vf yes, vf no)
{
    return (vf)(((vi)yes & mask) | ((vi)no & ~mask));
}
static inline vf larger(vf a, vf x) { return choose((x > a) | (x != x), x, a); }
static inline vf smaller(vf a, vf x) { return choose((x < a) | (x != x), x, a); }

/* How many floats one accumulator may take before it is emptied into a double: keeps the error of a sum at
 * a few ulp however long it is. */
enum { RUN_LENGTH = 64 };

/* In double, by halves: the order is fixed by the width alone. */
static inline double across(vf v)
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
        vf a = load(x);
        for (i = STK_VF; i + STK_VF <= n; i += STK_VF) a += load(x + i);
        total = across(a);
    }
    for (; i < n; i++) total += (double)x[i];
    return total;
}

static double sum_row(int64_t n, const float *x)
{
    double total = 0;
    while (n >= 8 * STK_VF) {
        vf a[8];
        for (int k = 0; k < 8; k++) a[k] = load(x + k * STK_VF);
        x += 8 * STK_VF, n -= 8 * STK_VF;
        for (int run = 1; run < RUN_LENGTH && n >= 8 * STK_VF; run++) {
            for (int k = 0; k < 8; k++) a[k] += load(x + k * STK_VF);
            x += 8 * STK_VF, n -= 8 * STK_VF;
        }
        total += across(((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7])));
    }
    return n ? total + sum_short(n, x) : total;
}

static void rows_sum_f32(int64_t rows, int64_t n, int64_t stride, const void *x, void *acc_)
{
    double *acc = acc_;
    for (int64_t r = 0; r < rows; r++) acc[r] += sum_row(n, (const float *)x + r * stride);
}

/* One strip of `vectors` registers, at most RUN_LENGTH rows deep. */
static inline __attribute__((always_inline)) void sum_strip(int vectors, int64_t n, int64_t stride,
                                                            const float *x, double *acc)
{
    vf a[8];
    for (int k = 0; k < vectors; k++) a[k] = load(x + k * STK_VF);
    for (int64_t i = 1; i < n; i++)
        for (int k = 0; k < vectors; k++) a[k] += load(x + i * stride + k * STK_VF);
    for (int k = 0; k < vectors; k++) {
        float f[STK_VF];
        memcpy(f, &a[k], sizeof f);
        for (int j = 0; j < STK_VF; j++) acc[k * STK_VF + j] += (double)f[j];
    }
}

static void cols_sum_f32(int64_t n, int64_t width, int64_t stride, const void *x_, void *acc_)
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

/* The last vector may overlap the one before: an extreme does not mind seeing an element twice. */
#define EXTREME_ROWS(name, better, better_1)                                                       \
    static inline float extreme_##name(int64_t n, const float *x) /* n >= STK_VF */                \
    {                                                                                              \
        vf a = load(x), b = load(x + n - STK_VF);                                                  \
        int64_t i = STK_VF;                                                                        \
        if (n >= 5 * STK_VF) {                                                                     \
            vf c = a, d = a;                                                                       \
            for (; i + 4 * STK_VF <= n; i += 4 * STK_VF) {                                         \
                a = better(a, load(x + i)), b = better(b, load(x + i + STK_VF));                   \
                c = better(c, load(x + i + 2 * STK_VF)), d = better(d, load(x + i + 3 * STK_VF));  \
            }                                                                                      \
            a = better(a, c), b = better(b, d);                                                    \
        }                                                                                          \
        for (; i + STK_VF <= n; i += STK_VF) a = better(a, load(x + i));                           \
        a = better(a, b);                                                                          \
        float f[STK_VF];                                                                           \
        memcpy(f, &a, sizeof f);                                                                   \
        for (int half = STK_VF / 2; half; half /= 2)                                               \
            for (int k = 0; k < half; k++) f[k] = better_1(f[k], f[k + half]);                     \
        return f[0];                                                                               \
    }                                                                                              \
    static void rows_##name(int64_t rows, int64_t n, int64_t stride, const void *x_, void *acc_)   \
    {                                                                                              \
        float *acc = acc_;                                                                         \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            const float *x = (const float *)x_ + r * stride;                                       \
            float best = acc[r];                                                                   \
            if (n >= STK_VF) {                                                                     \
                float found = extreme_##name(n, x);                                                \
                best = better_1(best, found);                                                      \
            } else {                                                                               \
                for (int64_t i = 0; i < n; i++) best = better_1(best, x[i]);                       \
            }                                                                                      \
            acc[r] = best;                                                                         \
        }                                                                                          \
    }
EXTREME_ROWS(max_f32, larger, LARGER)
EXTREME_ROWS(min_f32, smaller, SMALLER)

/* ---- where the extreme stands ------------------------------------------------------------------ */

#define FIRST_NAN(best, x) ((x) != (x) && (best) == (best))
#define MORE(best, x)      ((x) > (best) || FIRST_NAN(best, x))
#define LESS(best, x)      ((x) < (best) || FIRST_NAN(best, x))
#define MORE_I(best, x)    ((x) > (best))
#define LESS_I(best, x)    ((x) < (best))

#define ARG(name, type, better)                                                                    \
    static void arg_##name(int64_t n, int64_t base, int64_t width, int64_t stride, const void *x_, \
                           void *best_, int64_t *index)                                            \
    {                                                                                              \
        type *best = best_;                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const type *x = (const type *)x_ + i * stride;                                         \
            for (int64_t j = 0; j < width; j++) {                                                  \
                if (index[j] >= 0 && !better(best[j], x[j])) continue;                             \
                best[j] = x[j];                                                                    \
                index[j] = base + i;                                                               \
            }                                                                                      \
        }                                                                                          \
    }
ARG(max_any_f32, float, MORE)
ARG(min_any_f32, float, LESS)
ARG(max_f64, double, MORE)
ARG(min_f64, double, LESS)
ARG(max_i64, int64_t, MORE_I)
ARG(min_i64, int64_t, LESS_I)

/* First i with x[i] == value, or x[i] NaN when value is; there is one. */
static inline int64_t find_f32(const float *x, int64_t n, float value)
{
    int64_t i = 0;
    bool nan = value != value;
    for (; i + STK_VF <= n; i += STK_VF) {
        vf v = load(x + i);
        vi hit = nan ? v != v : v == value;
        uint64_t words[STK_VF / 2], any = 0;
        memcpy(words, &hit, sizeof words);
        for (int k = 0; k < STK_VF / 2; k++) any |= words[k];
        if (any) break;
    }
    while (nan ? x[i] == x[i] : x[i] != value) i++;
    return i;
}

/* A dense row of floats: find the extreme with vectors, then look for it. */
#define ARG_ROW(name, better)                                                                      \
    static void arg_##name##_f32(int64_t n, int64_t base, int64_t width, int64_t stride,           \
                                 const void *x_, void *best_, int64_t *index)                      \
    {                                                                                              \
        const float *x = x_;                                                                       \
        float *best = best_;                                                                       \
        if (width != 1 || stride != 1 || n < STK_VF) {                                             \
            arg_##name##_any_f32(n, base, width, stride, x, best, index);                          \
            return;                                                                                \
        }                                                                                          \
        float extreme = extreme_##name##_f32(n, x);                                                \
        if (*index >= 0 && !better(*best, extreme)) return;                                        \
        *best = extreme;                                                                           \
        *index = base + find_f32(x, n, extreme);                                                   \
    }
ARG_ROW(max, MORE)
ARG_ROW(min, LESS)

/* ---- the table --------------------------------------------------------------------------------- */

#define NUMBERS(way, name)                                                                         \
    {                                                                                              \
        way##_##name##_f32, way##_##name##_f64, way##_##name##_i64, NULL                           \
    }
#define TABLE(way)                                                                                 \
    {                                                                                              \
        [STK_REDUCE_SUM] = NUMBERS(way, sum), [STK_REDUCE_PROD] = NUMBERS(way, prod),              \
        [STK_REDUCE_MAX] = NUMBERS(way, max), [STK_REDUCE_MIN] = NUMBERS(way, min),                \
        [STK_REDUCE_ANY] = {[STK_LANE_BOOL] = way##_any_bool},                                     \
        [STK_REDUCE_ALL] = {[STK_LANE_BOOL] = way##_all_bool},                                     \
    }

const stk_vec_reduce STK_VEC(stk_vec_reduce) = {
    .rows = TABLE(rows),
    .cols = TABLE(cols),
    .arg = {NUMBERS(arg, max), NUMBERS(arg, min)},
};
