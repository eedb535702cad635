/* rng_math.h - the pieces of the Box-Muller transform, from words to numbers.
 *
 * Written with series and exact reductions only, so that every compiler and CPU gives the same
 * bits; branch-free, so that loops over them become vector code. Not a general libm: the arguments
 * are what words can be. */
#ifndef STK_BASE_RNG_MATH_H
#define STK_BASE_RNG_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float stk_float_of_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, 4);
    return f;
}
static inline uint32_t stk_bits_of_float(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return bits;
}

/* ln u for 2^-33 <= u <= 1. With u = m 2^e, m in [sqrt 1/2, sqrt 2) and s = (m - 1) / (m + 1) it is
 * e ln 2 + 2 (s + s^3/3 + s^5/5 + ...), where |s| < 0.172. */
static inline float stk_log_unit(float u)
{
    enum { SQRT_HALF = 0x3f3504f3 };
    uint32_t bits = stk_bits_of_float(u), above = bits - SQRT_HALF;
    int32_t e = (int32_t)above >> 23;
    float m = stk_float_of_bits((above & 0x7fffffu) + SQRT_HALF);
    float s = (m - 1.0f) / (m + 1.0f), q = s * s;
    float series =
        q * (1.0f / 3 + q * (1.0f / 5 + q * (1.0f / 7 + q * (1.0f / 9 + q * (1.0f / 11)))));
    return (float)e * 0.693147180559945f + (2.0f * s + 2.0f * s * series);
}

/* sqrt(-2 ln u) where u is the word on (0, 1]. The largest result is 6.76. */
static inline float stk_normal_radius(uint32_t word)
{
    float u = (float)(int32_t)(word >> 1) * 0x1p-31f + 0x1p-33f;
    return sqrtf(-2.0f * stk_log_unit(u < 1.0f ? u : 1.0f));
}

/* Cosine and sine of a random angle: (quarter + part / 2^30) quarter turns, where quarter is the two
 * top bits and part the other 30 as a signed number. So the angle is never further than an eighth
 * of a turn from an axis, where short series do. */
static inline void stk_turn(uint32_t word, float *cosine, float *sine)
{
    int32_t part = (int32_t)(word << 2) >> 2; /* 30 bits, signed */
    float x = (float)part * (1.57079632679489662f * 0x1p-30f), q = x * x;
    float s = x + x * q * (-1.0f / 6 + q * (1.0f / 120 + q * (-1.0f / 5040 + q * (1.0f / 362880))));
    float c =
        1.0f + q * (-0.5f + q * (1.0f / 24 +
                                 q * (-1.0f / 720 + q * (1.0f / 40320 + q * (-1.0f / 3628800)))));
    uint32_t quarter = word >> 30, swap = 0u - (quarter & 1u);
    uint32_t bs = stk_bits_of_float(s), bc = stk_bits_of_float(c);
    uint32_t bx = (bs & swap) | (bc & ~swap), by = (bc & swap) | (bs & ~swap);
    *cosine = stk_float_of_bits(bx ^ (((quarter + 1) & 2u) << 30));
    *sine = stk_float_of_bits(by ^ ((quarter & 2u) << 30));
}

/* The same in double, from two words each. */
static inline double stk_log_unit_f64(double u)
{
    const uint64_t sqrt_half = 0x3fe6a09e667f3bcd;
    uint64_t bits, m_bits;
    memcpy(&bits, &u, 8);
    bits -= sqrt_half;
    int64_t e = (int64_t)bits >> 52;
    m_bits = (bits & 0xfffffffffffffu) + sqrt_half;
    double m, series = 0;
    memcpy(&m, &m_bits, 8);
    double s = (m - 1.0) / (m + 1.0), q = s * s;
    for (int k = 23; k >= 3; k -= 2) series = q * (1.0 / k + series);
    return (double)e * 0.693147180559945309417 + (2.0 * s + 2.0 * s * series);
}

static inline double stk_normal_radius_f64(uint32_t high, uint32_t low)
{
    uint64_t both = (uint64_t)high << 32 | low;
    double u = (double)(int64_t)(both >> 1) * 0x1p-63 + 0x1p-65;
    return sqrt(-2.0 * stk_log_unit_f64(u < 1.0 ? u : 1.0));
}

static inline void stk_turn_f64(uint32_t high, uint32_t low, double *cosine, double *sine)
{
    int64_t part = (int64_t)(((uint64_t)high << 32 | low) << 2) >> 2; /* 62 bits, signed */
    double x = (double)part * (1.57079632679489661923 * 0x1p-62), q = x * x, s = 0, c = 0;
    for (int k = 18; k >= 4; k -= 2) {
        s = q * (-1.0 / (k * (k + 1))) * (1.0 + s);
        c = q * (-1.0 / (k * (k - 1))) * (1.0 + c);
    }
    s = x + x * (q * (-1.0 / 6) * (1.0 + s));
    c = 1.0 + q * -0.5 * (1.0 + c);
    uint32_t quarter = high >> 30;
    double along = quarter & 1 ? s : c, across = quarter & 1 ? c : s;
    *cosine = (quarter + 1) & 2 ? -along : along;
    *sine = quarter & 2 ? -across : across;
}

#endif
