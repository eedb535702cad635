/* One loop per operation and lane, made by macros from the formula of one element. The compiler turns them
 * into vector code of the ISA at hand; `ivdep` tells it that a result may only coincide with an operand,
 * which would otherwise cost a run-time overlap test that in-place work fails. */
#include "device/cpu/vec/elementwise.h"

#include "device/cpu/vec/math.h"

#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* loops over libm stay scalar, as they should */
#define FOR_TILE _Pragma("clang loop vectorize(assume_safety)") for (int64_t i = 0; i < n; i++)
#else
#define FOR_TILE _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)
#endif

/* The formula sees its operands as x (and y). */
#define UNARY(name, in, out, formula)                                                              \
    static void name(int64_t n, void *d, const void *a, const void *b, const void *c)              \
    {                                                                                              \
        out *to = d;                                                                               \
        const in *from = a;                                                                        \
        (void)b, (void)c;                                                                          \
        FOR_TILE                                                                                   \
        {                                                                                          \
            in x = from[i];                                                                        \
            to[i] = (out)(formula);                                                                \
        }                                                                                          \
    }
#define BINARY(name, in, out, formula)                                                             \
    static void name(int64_t n, void *d, const void *a, const void *b, const void *c)              \
    {                                                                                              \
        out *to = d;                                                                               \
        const in *left = a, *right = b;                                                            \
        (void)c;                                                                                   \
        FOR_TILE                                                                                   \
        {                                                                                          \
            in x = left[i], y = right[i];                                                          \
            to[i] = (out)(formula);                                                                \
        }                                                                                          \
    }
#define TERNARY(name, in, formula)                                                                 \
    static void name(int64_t n, void *d, const void *a, const void *b, const void *c)              \
    {                                                                                              \
        in *to = d;                                                                                \
        const in *first = a, *second = b, *third = c;                                              \
        FOR_TILE                                                                                   \
        {                                                                                          \
            in x = first[i], y = second[i], z = third[i];                                          \
            to[i] = (formula);                                                                     \
        }                                                                                          \
    }
#define SELECT(name, type)                                                                         \
    static void name(int64_t n, void *d, const void *a, const void *b, const void *c)              \
    {                                                                                              \
        type *to = d;                                                                              \
        const int32_t *which = a;                                                                  \
        const type *yes = b, *no = c;                                                              \
        FOR_TILE                                                                                   \
        {                                                                                          \
            type x = yes[i], y = no[i];                                                            \
            to[i] = which[i] ? x : y;                                                              \
        }                                                                                          \
    }

/* ---- float and double ------------------------------------------------------------------------ */

#define FLOATS(s, t, fn)                                                                           \
    UNARY(neg_##s, t, t, -x)                                                                       \
    UNARY(abs_##s, t, t, fn(fabs)(x))                                                              \
    UNARY(sign_##s, t, t, x != x ? x : (t)(x > 0) - (t)(x < 0))                                    \
    UNARY(square_##s, t, t, x *x)                                                                  \
    UNARY(sqrt_##s, t, t, fn(sqrt)(x))                                                             \
    UNARY(rsqrt_##s, t, t, 1 / fn(sqrt)(x))                                                        \
    UNARY(reciprocal_##s, t, t, 1 / x)                                                             \
    UNARY(floor_##s, t, t, fn(floor)(x))                                                           \
    UNARY(ceil_##s, t, t, fn(ceil)(x))                                                             \
    UNARY(round_##s, t, t, fn(rint)(x))                                                            \
    UNARY(trunc_##s, t, t, fn(trunc)(x))                                                           \
    UNARY(relu_##s, t, t, x < 0 ? 0 : x)                                                           \
    UNARY(relu6_##s, t, t, x<0 ? 0 : x> 6 ? 6 : x)                                                 \
    BINARY(add_##s, t, t, x + y)                                                                   \
    BINARY(sub_##s, t, t, x - y)                                                                   \
    BINARY(mul_##s, t, t, x *y)                                                                    \
    BINARY(div_##s, t, t, x / y)                                                                   \
    BINARY(floordiv_##s, t, t, fn(floor)(x / y))                                                   \
    BINARY(max_##s, t, t, ((x > y) | (x != x)) ? x : y)                                            \
    BINARY(min_##s, t, t, ((x < y) | (x != x)) ? x : y)                                            \
    BINARY(relu_grad_##s, t, t, y > 0 ? x : 0)                                                     \
    BINARY(relu6_grad_##s, t, t, ((y > 0) & (y < 6)) ? x : 0)                                      \
    BINARY(add_relu_##s, t, t, x + y < 0 ? 0 : x + y)                                              \
    TERNARY(fma_##s, t, stk_madd_##s(x, y, z))                                                     \
    TERNARY(fnma_##s, t, stk_madd_##s(-x, y, z))                                                   \
    TERNARY(lerp_##s, t, stk_madd_##s(y - x, z, x))                                                \
    TERNARY(lerp_square_##s, t, stk_madd_##s(stk_madd_##s(y, y, -x), z, x))                        \
    TERNARY(div_sqrt_##s, t, x / (fn(sqrt)(y) + z))                                                \
    UNARY(isnan_##s, t, int32_t, x != x)                                                           \
    UNARY(isinf_##s, t, int32_t, fn(fabs)(x) == (t)INFINITY)                                       \
    UNARY(isfinite_##s, t, int32_t, fn(fabs)(x) < (t)INFINITY)                                     \
    COMPARES(s, t)                                                                                 \
    SELECT(select_##s, t)
#define COMPARES(s, t)                                                                             \
    BINARY(eq_##s, t, int32_t, x == y)                                                             \
    BINARY(ne_##s, t, int32_t, x != y)                                                             \
    BINARY(lt_##s, t, int32_t, x < y)                                                              \
    BINARY(le_##s, t, int32_t, x <= y)                                                             \
    BINARY(gt_##s, t, int32_t, x > y)                                                              \
    BINARY(ge_##s, t, int32_t, x >= y)

#define FN_F32(name) name##f
#define FN_F64(name) name
FLOATS(f32, float, FN_F32)
FLOATS(f64, double, FN_F64)

/* ---- float with one operand that is a number, not a tile ------------------------------------------ */

/* x, y and z are told where they come from: a tile's element, or a number read before the loop. */
#define WITH_NUMBER(name, from_x, from_y, from_z, formula)                                         \
    static void name(int64_t n, void *d, const void *a, const void *b, const void *c)              \
    {                                                                                              \
        float *to = d;                                                                             \
        const float *first = a, *second = b, *third = c;                                           \
        float number_x = *first, number_y = *second, number_z = *third;                            \
        (void)number_x, (void)number_y, (void)number_z;                                            \
        FOR_TILE                                                                                   \
        {                                                                                          \
            float x = from_x, y = from_y, z = from_z;                                              \
            (void)z;                                                                               \
            to[i] = (formula);                                                                     \
        }                                                                                          \
    }
WITH_NUMBER(add_number, first[i], number_y, 0, x + y)
WITH_NUMBER(sub_number, first[i], number_y, 0, x - y)
WITH_NUMBER(number_sub, number_x, second[i], 0, x - y)
WITH_NUMBER(mul_number, first[i], number_y, 0, x *y)
WITH_NUMBER(div_number, first[i], number_y, 0, x / y)
WITH_NUMBER(number_div, number_x, second[i], 0, x / y)
WITH_NUMBER(max_number, first[i], number_y, 0, ((x > y) | (x != x)) ? x : y)
WITH_NUMBER(min_number, first[i], number_y, 0, ((x < y) | (x != x)) ? x : y)
WITH_NUMBER(fma_number_x, number_x, second[i], third[i], stk_madd_f32(x, y, z))
WITH_NUMBER(fma_number_z, first[i], second[i], number_z, stk_madd_f32(x, y, z))
WITH_NUMBER(fnma_number_x, number_x, second[i], third[i], stk_madd_f32(-x, y, z))
WITH_NUMBER(lerp_number_z, first[i], second[i], number_z, stk_madd_f32(y - x, z, x))
WITH_NUMBER(lerp_square_number_z, first[i], second[i], number_z,
            stk_madd_f32(stk_madd_f32(y, y, -x), z, x))
WITH_NUMBER(div_sqrt_number_z, first[i], second[i], number_z, x / (sqrtf(y) + z))

/* The remainder takes the sign of the divisor; fmod is exact where x - y*floor(x/y) is not. */
#define FLOOR_MOD(s, t, fmod_fn)                                                                   \
    static inline t floor_mod_##s(t x, t y)                                                        \
    {                                                                                              \
        t r = fmod_fn(x, y);                                                                       \
        return r != 0 && (r < 0) != (y < 0) ? r + y : r;                                           \
    }                                                                                              \
    BINARY(mod_##s, t, t, floor_mod_##s(x, y))
FLOOR_MOD(f32, float, fmodf)
FLOOR_MOD(f64, double, fmod)

#define UNARY_F32(name) UNARY(name##_f32, float, float, stk_##name##_f32(x))
UNARY_F32(exp)
UNARY_F32(expm1)
UNARY_F32(log)
UNARY_F32(log1p)
UNARY_F32(asin)
UNARY_F32(acos)
UNARY_F32(atan)
UNARY_F32(sinh)
UNARY_F32(cosh)
UNARY_F32(tanh)
UNARY_F32(asinh)
UNARY_F32(acosh)
UNARY_F32(atanh)
UNARY_F32(sigmoid)
UNARY_F32(softplus)
UNARY_F32(erf)
UNARY_F32(erfc)
UNARY_F32(gelu_erf)
UNARY_F32(gelu_tanh)
BINARY(gelu_erf_grad_f32, float, float, x *stk_gelu_erf_slope_f32(y))
BINARY(gelu_tanh_grad_f32, float, float, x *stk_gelu_tanh_slope_f32(y))
BINARY(pow_f32, float, float, stk_pow_f32(x, y))
BINARY(atan2_f32, float, float, stk_atan2_f32(x, y))

/* A tile with an angle that the fast reduction cannot take (or an infinity) goes element by element; the choice is
 * made per element, so its neighbours keep their bits. */
static bool any_beyond(int64_t n, const float *x)
{
    uint32_t largest = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t magnitude = stk_bits_f32(x[i]) & 0x7fffffffu;
        largest = magnitude > largest ? magnitude : largest;
    }
    return largest >= stk_bits_f32(STK_TRIG_LIMIT);
}
#define TRIGONOMETRIC(name)                                                                        \
    UNARY(name##_near_f32, float, float, stk_##name##_f32(x))                                      \
    static void name##_f32(int64_t n, void *d, const void *a, const void *b, const void *c)        \
    {                                                                                              \
        const float *x = a;                                                                        \
        if (!any_beyond(n, x)) {                                                                   \
            name##_near_f32(n, d, a, b, c);                                                        \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            if (fabsf(x[i]) < STK_TRIG_LIMIT)                                                      \
                name##_near_f32(1, (float *)d + i, x + i, b, c);                                   \
            else                                                                                   \
                ((float *)d)[i] = name##f(x[i]);                                                   \
    }
TRIGONOMETRIC(sin)
TRIGONOMETRIC(cos)
TRIGONOMETRIC(tan)

/* Doubles take libm: correct to the last bit or so, and rare in training. */
static inline double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static inline double softplus(double x) { return (x < 0 ? 0 : x) + log1p(exp(-fabs(x))); }
static inline double gelu_erf(double x) { return 0.5 * x * erfc(-x * M_SQRT1_2); }
/* Beyond 40 slopes are 0 and 1, for infinities as well. */
static inline double gelu_bounded(double x) { return x > 40 ? 40 : x < -40 ? -40 : x; }
static inline double gelu_erf_slope(double x)
{
    x = gelu_bounded(x);
    return 0.5 * erfc(-x * M_SQRT1_2) + x * exp(-0.5 * x * x) * (0.5 * M_2_SQRTPI * M_SQRT1_2);
}
static inline double gelu_gate(double x)
{
    return sigmoid(2 * M_2_SQRTPI * M_SQRT1_2 * x * (1 + 0.044715 * x * x));
}
static inline double gelu_tanh(double x) { return x * gelu_gate(x); }
static inline double gelu_tanh_slope(double x)
{
    x = gelu_bounded(x);
    double s = gelu_gate(x);
    return s + s * (1 - s) * x * 2 * M_2_SQRTPI * M_SQRT1_2 * (1 + 0.134145 * x * x);
}
#define UNARY_F64(name) UNARY(name##_f64, double, double, name(x))
UNARY_F64(exp)
UNARY_F64(expm1)
UNARY_F64(log)
UNARY_F64(log1p)
UNARY_F64(sin)
UNARY_F64(cos)
UNARY_F64(tan)
UNARY_F64(asin)
UNARY_F64(acos)
UNARY_F64(atan)
UNARY_F64(sinh)
UNARY_F64(cosh)
UNARY_F64(tanh)
UNARY_F64(asinh)
UNARY_F64(acosh)
UNARY_F64(atanh)
UNARY_F64(sigmoid)
UNARY_F64(softplus)
UNARY_F64(erf)
UNARY_F64(erfc)
UNARY_F64(gelu_erf)
UNARY_F64(gelu_tanh)
BINARY(gelu_erf_grad_f64, double, double, x *gelu_erf_slope(y))
BINARY(gelu_tanh_grad_f64, double, double, x *gelu_tanh_slope(y))
BINARY(pow_f64, double, double, pow(x, y))
BINARY(atan2_f64, double, double, atan2(x, y))

/* ---- integers: wrap around on overflow ------------------------------------------------------ */

/* Copies of the sign come in from the left: a plain shift of the number, or of its complement. */
static inline int64_t shift_right(int64_t x, uint64_t by)
{
    uint64_t flip = x < 0 ? UINT64_MAX : 0, bits = by < 64 ? ((uint64_t)x ^ flip) >> (by & 63) : 0;
    return (int64_t)(bits ^ flip);
}

#define WRAP(op) (int64_t)((uint64_t)x op(uint64_t) y)
UNARY(neg_i64, int64_t, int64_t, -(uint64_t)x)
UNARY(abs_i64, int64_t, int64_t, x < 0 ? -(uint64_t)x : (uint64_t)x)
UNARY(sign_i64, int64_t, int64_t, (x > 0) - (x < 0))
UNARY(square_i64, int64_t, int64_t, (uint64_t)x *(uint64_t)x)
UNARY(same_i64, int64_t, int64_t, x)
UNARY(relu_i64, int64_t, int64_t, x < 0 ? 0 : x)
UNARY(relu6_i64, int64_t, int64_t, x<0 ? 0 : x> 6 ? 6 : x)
UNARY(never_i64, int64_t, int32_t, ((void)x, 0))
UNARY(always_i64, int64_t, int32_t, ((void)x, 1))
UNARY(not_i64, int64_t, int64_t, ~x)
BINARY(add_i64, int64_t, int64_t, WRAP(+))
BINARY(sub_i64, int64_t, int64_t, WRAP(-))
BINARY(mul_i64, int64_t, int64_t, WRAP(*))
BINARY(max_i64, int64_t, int64_t, x > y ? x : y)
BINARY(min_i64, int64_t, int64_t, x < y ? x : y)
BINARY(and_i64, int64_t, int64_t, x &y)
BINARY(or_i64, int64_t, int64_t, x | y)
BINARY(xor_i64, int64_t, int64_t, x ^ y)
BINARY(shl_i64, int64_t, int64_t, (uint64_t)y < 64 ? (uint64_t)x << ((uint64_t)y & 63) : 0)
BINARY(shr_i64, int64_t, int64_t, shift_right(x, (uint64_t)y))
BINARY(relu_grad_i64, int64_t, int64_t, y > 0 ? x : 0)
BINARY(relu6_grad_i64, int64_t, int64_t, ((y > 0) & (y < 6)) ? x : 0)
BINARY(add_relu_i64, int64_t, int64_t,
       (int64_t)((uint64_t)x + (uint64_t)y) > 0 ? (int64_t)((uint64_t)x + (uint64_t)y) : 0)
COMPARES(i64, int64_t)
SELECT(select_i64, int64_t)

/* Dividing by -1 is negation, which wraps where the hardware would trap. */
static inline int64_t quotient(int64_t x, int64_t y)
{
    return y == 0 ? 0 : y == -1 ? (int64_t)(-(uint64_t)x) : x / y;
}
static inline int64_t floor_quotient(int64_t x, int64_t y)
{
    int64_t q = quotient(x, y);
    return y != 0 && y != -1 && x % y != 0 && (x < 0) != (y < 0) ? q - 1 : q;
}
static inline int64_t floor_remainder(int64_t x, int64_t y)
{
    return (int64_t)((uint64_t)x - (uint64_t)y * (uint64_t)floor_quotient(x, y));
}
/* Negative exponents give the quotient 1 / x^|y|, rounded to zero like every quotient here. */
static inline int64_t power(int64_t x, int64_t y)
{
    if (y < 0) return x == 1 || (x == -1 && y % 2 == 0) ? 1 : x == -1 ? -1 : 0;
    uint64_t result = 1, base = (uint64_t)x;
    for (; y; y >>= 1, base *= base)
        if (y & 1) result *= base;
    return (int64_t)result;
}
BINARY(div_i64, int64_t, int64_t, quotient(x, y))
BINARY(floordiv_i64, int64_t, int64_t, floor_quotient(x, y))
BINARY(mod_i64, int64_t, int64_t, floor_remainder(x, y))
BINARY(pow_i64, int64_t, int64_t, power(x, y))

/* ---- booleans ----------------------------------------------------------------------------- */

UNARY(not_bool, int32_t, int32_t, x ^ 1)
BINARY(and_bool, int32_t, int32_t, x &y)
BINARY(or_bool, int32_t, int32_t, x | y)
BINARY(xor_bool, int32_t, int32_t, x ^ y)
COMPARES(bool, int32_t)
SELECT(select_bool, int32_t)

/* ---- moves between lanes ------------------------------------------------------------------ */

#define MOVE(name, in, out, formula)                                                               \
    static void name(int64_t n, void *to_, const void *from_)                                      \
    {                                                                                              \
        out *to = to_;                                                                             \
        const in *from = from_;                                                                    \
        FOR_TILE                                                                                   \
        {                                                                                          \
            in x = from[i];                                                                        \
            to[i] = (out)(formula);                                                                \
        }                                                                                          \
    }

/* Out of range sticks to the end, NaN gives 0; no conversion ever sees a value it cannot take. */
static inline int64_t saturate(double x)
{
    double end = 9223372036854775808.0, in = fabs(x) < end ? x : 0.0;
    return x >= end ? INT64_MAX : x <= -end ? INT64_MIN : (int64_t)in;
}

#define MEMCPY(name, bytes)                                                                        \
    static void name(int64_t n, void *to, const void *from)                                        \
    {                                                                                              \
        if (to != from) memcpy(to, from, (size_t)n *(bytes));                                      \
    }
MEMCPY(move_4, 4)
MEMCPY(move_8, 8)
MOVE(f32_to_f64, float, double, x)
MOVE(f32_to_bool, float, int32_t, x != 0)
MOVE(f64_to_f32, double, float, x)
MOVE(f64_to_bool, double, int32_t, x != 0)
MOVE(i64_to_bool, int64_t, int32_t, x != 0)
MOVE(bool_to_f32, int32_t, float, x)
MOVE(bool_to_f64, int32_t, double, x)
MOVE(bool_to_i64, int32_t, int64_t, x)

/* Few machines convert 64-bit integers in vectors, all do 32-bit ones: a tile whose values fit takes that way. */
static bool fits_int32(int64_t n, const int64_t *x)
{
    uint64_t beyond = 0;
    for (int64_t i = 0; i < n; i++) beyond |= ((uint64_t)x[i] + 0x80000000u) >> 32;
    return beyond == 0;
}
#define FITS_INT32(s, t)                                                                           \
    static bool fits_int32_##s(int64_t n, const t *x)                                              \
    {                                                                                              \
        int32_t beyond = 0;                                                                        \
        for (int64_t i = 0; i < n; i++) beyond |= !(x[i] > (t)-0x1p31 && x[i] < (t)0x1p31);        \
        return beyond == 0;                                                                        \
    }
FITS_INT32(f32, float)
FITS_INT32(f64, double)
#define TWO_WAYS(name, fits)                                                                       \
    static void name(int64_t n, void *to, const void *from)                                        \
    {                                                                                              \
        if (fits(n, from))                                                                         \
            name##_narrow(n, to, from);                                                            \
        else                                                                                       \
            name##_wide(n, to, from);                                                              \
    }
MOVE(f32_to_i64_narrow, float, int64_t, (int32_t)x)
MOVE(f32_to_i64_wide, float, int64_t, saturate((double)x))
TWO_WAYS(f32_to_i64, fits_int32_f32)
MOVE(f64_to_i64_narrow, double, int64_t, (int32_t)x)
MOVE(f64_to_i64_wide, double, int64_t, saturate(x))
TWO_WAYS(f64_to_i64, fits_int32_f64)
MOVE(i64_to_f32_narrow, int64_t, float, (int32_t)x)
MOVE(i64_to_f32_wide, int64_t, float, x)
TWO_WAYS(i64_to_f32, fits_int32)
MOVE(i64_to_f64_narrow, int64_t, double, (int32_t)x)
MOVE(i64_to_f64_wide, int64_t, double, x)
TWO_WAYS(i64_to_f64, fits_int32)

#define SPLAT(name, type)                                                                          \
    static void name(int64_t n, void *to_, const void *from)                                       \
    {                                                                                              \
        type *to = to_, x = *(const type *)from;                                                   \
        for (int64_t i = 0; i < n; i++) to[i] = x;                                                 \
    }
SPLAT(splat_4, int32_t)
SPLAT(splat_8, int64_t)

/* ---- stored types ------------------------------------------------------------------------- */

/* Half to float: normal numbers by moving the exponent, the rest as a multiple of 2^-24 (no subnormal float
 * ever appears, so this works with subnormals off). */
static inline float half_to_float(uint16_t h)
{
    uint32_t rest = h & 0x7fffu, sign = (uint32_t)(h & 0x8000u) << 16;
    uint32_t normal = (rest << 13) + ((rest >= 0x7c00u ? 255u - 31u : 127u - 15u) << 23);
    uint32_t small = stk_bits_f32((float)(int32_t)rest * 0x1p-24f);
    return stk_from_bits_f32((rest < 0x400u ? small : normal) | sign);
}

/* Nearest even. Small results are rounded by the adder: 0.5 has an ulp of 2^-24. */
static inline uint16_t float_to_half(float f)
{
    uint32_t bits = stk_bits_f32(f), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
    uint32_t small = stk_bits_f32(stk_from_bits_f32(rest) + 0.5f) - stk_bits_f32(0.5f);
    uint32_t normal = (rest + 0xfffu + (rest >> 13 & 1u) - ((127u - 15u) << 23)) >> 13;
    uint32_t h = rest < 0x38800000u ? small : normal;
    h = rest >= 0x477ff000u ? 0x7c00u : h; /* rounds past 65504 */
    h = rest > 0x7f800000u ? 0x7e00u : h;
    return (uint16_t)(sign | h);
}

MOVE(load_f16, uint16_t, float, half_to_float(x))
MOVE(store_f16, float, uint16_t, float_to_half(x))
MOVE(load_bf16, uint16_t, float, stk_bf16_to_f32(x))
MOVE(load_bool, uint8_t, int32_t, x != 0)
MOVE(store_bool, int32_t, uint8_t, x != 0)
#define INTEGER(s, type)                                                                           \
    MOVE(load_##s, type, int64_t, x)                                                               \
    MOVE(store_##s, int64_t, type, x)
INTEGER(i8, int8_t)
INTEGER(u8, uint8_t)
INTEGER(i16, int16_t)
INTEGER(u16, uint16_t)
INTEGER(i32, int32_t)
INTEGER(u32, uint32_t)

/* ---- the table ---------------------------------------------------------------------------- */

#define FLOAT_ROW(NAME, name)                                                                      \
    [STK_EW_##NAME] = {[STK_LANE_F32] = name##_f32, [STK_LANE_F64] = name##_f64}
#define NUMBER_ROW(NAME, name)                                                                     \
    [STK_EW_##NAME] = {                                                                            \
        [STK_LANE_F32] = name##_f32, [STK_LANE_F64] = name##_f64, [STK_LANE_I64] = name##_i64}
#define ROUNDING_ROW(NAME, name)                                                                   \
    [STK_EW_##NAME] = {                                                                            \
        [STK_LANE_F32] = name##_f32, [STK_LANE_F64] = name##_f64, [STK_LANE_I64] = same_i64}
#define LOGIC_ROW(NAME, name)                                                                      \
    [STK_EW_##NAME] = {[STK_LANE_I64] = name##_i64, [STK_LANE_BOOL] = name##_bool}
#define ANY_ROW(NAME, name) [STK_EW_##NAME] = {name##_f32, name##_f64, name##_i64, name##_bool}

const stk_vec_ew STK_VEC(stk_vec_ew) = {
    .op = {NUMBER_ROW(NEG, neg),
           NUMBER_ROW(ABS, abs),
           NUMBER_ROW(SIGN, sign),
           NUMBER_ROW(SQUARE, square),
           FLOAT_ROW(SQRT, sqrt),
           FLOAT_ROW(RSQRT, rsqrt),
           FLOAT_ROW(RECIPROCAL, reciprocal),
           FLOAT_ROW(EXP, exp),
           FLOAT_ROW(EXPM1, expm1),
           FLOAT_ROW(LOG, log),
           FLOAT_ROW(LOG1P, log1p),
           FLOAT_ROW(SIN, sin),
           FLOAT_ROW(COS, cos),
           FLOAT_ROW(TAN, tan),
           FLOAT_ROW(ASIN, asin),
           FLOAT_ROW(ACOS, acos),
           FLOAT_ROW(ATAN, atan),
           FLOAT_ROW(SINH, sinh),
           FLOAT_ROW(COSH, cosh),
           FLOAT_ROW(TANH, tanh),
           FLOAT_ROW(ASINH, asinh),
           FLOAT_ROW(ACOSH, acosh),
           FLOAT_ROW(ATANH, atanh),
           FLOAT_ROW(SIGMOID, sigmoid),
           FLOAT_ROW(SOFTPLUS, softplus),
           FLOAT_ROW(ERF, erf),
           FLOAT_ROW(ERFC, erfc),
           FLOAT_ROW(GELU_ERF, gelu_erf),
           FLOAT_ROW(GELU_TANH, gelu_tanh),
           ROUNDING_ROW(FLOOR, floor),
           ROUNDING_ROW(CEIL, ceil),
           ROUNDING_ROW(ROUND, round),
           ROUNDING_ROW(TRUNC, trunc),
           NUMBER_ROW(RELU, relu),
           NUMBER_ROW(RELU6, relu6),
           [STK_EW_ISNAN] = {isnan_f32, isnan_f64, never_i64, NULL},
           [STK_EW_ISINF] = {isinf_f32, isinf_f64, never_i64, NULL},
           [STK_EW_ISFINITE] = {isfinite_f32, isfinite_f64, always_i64, NULL},
           LOGIC_ROW(NOT, not ),
           NUMBER_ROW(ADD, add),
           NUMBER_ROW(SUB, sub),
           NUMBER_ROW(MUL, mul),
           NUMBER_ROW(DIV, div),
           NUMBER_ROW(FLOORDIV, floordiv),
           NUMBER_ROW(MOD, mod),
           NUMBER_ROW(POW, pow),
           [STK_EW_MAX] = {max_f32, max_f64, max_i64, or_bool},
           [STK_EW_MIN] = {min_f32, min_f64, min_i64, and_bool},
           FLOAT_ROW(ATAN2, atan2),
           LOGIC_ROW(AND, and),
           LOGIC_ROW(OR, or),
           LOGIC_ROW(XOR, xor),
           [STK_EW_SHL] = {[STK_LANE_I64] = shl_i64},
           [STK_EW_SHR] = {[STK_LANE_I64] = shr_i64},
           ANY_ROW(EQ, eq),
           ANY_ROW(NE, ne),
           ANY_ROW(LT, lt),
           ANY_ROW(LE, le),
           ANY_ROW(GT, gt),
           ANY_ROW(GE, ge),
           NUMBER_ROW(RELU_GRAD, relu_grad),
           NUMBER_ROW(RELU6_GRAD, relu6_grad),
           FLOAT_ROW(GELU_ERF_GRAD, gelu_erf_grad),
           FLOAT_ROW(GELU_TANH_GRAD, gelu_tanh_grad),
           NUMBER_ROW(ADD_RELU, add_relu),
           FLOAT_ROW(FMA, fma),
           FLOAT_ROW(FNMA, fnma),
           FLOAT_ROW(LERP, lerp),
           FLOAT_ROW(LERP_SQUARE, lerp_square),
           FLOAT_ROW(DIV_SQRT, div_sqrt),
           ANY_ROW(SELECT, select)},
    .scalar = {[STK_EW_ADD] = {[1] = add_number},
               [STK_EW_SUB] = {number_sub, sub_number},
               [STK_EW_MUL] = {[1] = mul_number},
               [STK_EW_DIV] = {number_div, div_number},
               [STK_EW_MAX] = {[1] = max_number},
               [STK_EW_MIN] = {[1] = min_number},
               [STK_EW_FMA] = {[0] = fma_number_x, [2] = fma_number_z},
               [STK_EW_FNMA] = {[0] = fnma_number_x},
               [STK_EW_LERP] = {[2] = lerp_number_z},
               [STK_EW_LERP_SQUARE] = {[2] = lerp_square_number_z},
               [STK_EW_DIV_SQRT] = {[2] = div_sqrt_number_z}},
    .load = {[STK_F32] = move_4,
             [STK_F64] = move_8,
             [STK_F16] = load_f16,
             [STK_BF16] = load_bf16,
             [STK_I8] = load_i8,
             [STK_U8] = load_u8,
             [STK_I16] = load_i16,
             [STK_U16] = load_u16,
             [STK_I32] = load_i32,
             [STK_U32] = load_u32,
             [STK_I64] = move_8,
             [STK_U64] = move_8,
             [STK_BOOL] = load_bool},
    .store = {[STK_F32] = move_4,
              [STK_F64] = move_8,
              [STK_F16] = store_f16,
              [STK_BF16] = STK_VEC(stk_store_bf16),
              [STK_I8] = store_i8,
              [STK_U8] = store_u8,
              [STK_I16] = store_i16,
              [STK_U16] = store_u16,
              [STK_I32] = store_i32,
              [STK_U32] = store_u32,
              [STK_I64] = move_8,
              [STK_U64] = move_8,
              [STK_BOOL] = store_bool},
    .cast = {[STK_LANE_F32] = {move_4, f32_to_f64, f32_to_i64, f32_to_bool},
             [STK_LANE_F64] = {f64_to_f32, move_8, f64_to_i64, f64_to_bool},
             [STK_LANE_I64] = {i64_to_f32, i64_to_f64, move_8, i64_to_bool},
             [STK_LANE_BOOL] = {bool_to_f32, bool_to_f64, bool_to_i64, move_4}},
    .splat = {[STK_LANE_F32] = splat_4,
              [STK_LANE_F64] = splat_8,
              [STK_LANE_I64] = splat_8,
              [STK_LANE_BOOL] = splat_4},
};
