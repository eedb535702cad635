/* math.h - functions of one float, written without branches so that a loop over them becomes vector code.
 *
 * The hot ones (exp, log, tanh, sigmoid, erf and their kin) are float polynomials with one or two ulp of error;
 * the rest goes through double, where a short polynomial is exact enough to round right nearly always.
 * Coefficients are Chebyshev interpolations of the remainder named beside them. Inputs below 2^-126 may
 * count as zero (the device computes with subnormals off). NaN gives NaN; every function is right at 0 and infinity.
 * Nothing here relies on a fused multiply-add, nor breaks when the machine has one. */
#ifndef STK_DEVICE_CPU_VEC_MATH_H
#define STK_DEVICE_CPU_VEC_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define STK_INLINE static inline __attribute__((always_inline))

/* a * b + c, fused where the machine can do it in one go. Left to itself the compiler may fuse differently in the
 * vector loop and in its tail, and an element would change bits with its place in the tile; so this folder's
 * elementwise code is compiled without contraction and says where it wants it. */
#if defined(__FMA__) || defined(__aarch64__)
STK_INLINE float stk_madd_f32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
STK_INLINE double stk_madd_f64(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
STK_INLINE float stk_madd_f32(float a, float b, float c) { return a * b + c; }
STK_INLINE double stk_madd_f64(double a, double b, double c) { return a * b + c; }
#endif

STK_INLINE uint32_t stk_bits_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}
STK_INLINE float stk_from_bits_f32(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, 4);
    return x;
}
STK_INLINE uint64_t stk_bits_f64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, 8);
    return bits;
}
STK_INLINE double stk_from_bits_f64(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, 8);
    return x;
}
STK_INLINE float stk_copysign_f32(float magnitude, float sign)
{
    return stk_from_bits_f32((stk_bits_f32(magnitude) & 0x7fffffffu) |
                             (stk_bits_f32(sign) & 0x80000000u));
}

/* ---- exponentials ------------------------------------------------------------------------- */

/* Adding 1.5 * 2^23 leaves the nearest integer in the low bits: rounds and converts in one go. */
#define STK_ROUND_F32 0x1.8p23f
#define STK_ROUND_F64 0x1.8p52

/* x = k ln2 + r with |r| <= ln2/2; *k as bits to be shifted into an exponent. */
STK_INLINE float stk_exp_reduce(float x, uint32_t *k)
{
    float t = stk_madd_f32(x, 0x1.715476p0f, STK_ROUND_F32);
    float n = t - STK_ROUND_F32;
    *k = stk_bits_f32(t) - stk_bits_f32(STK_ROUND_F32);
    return stk_madd_f32(n, -0x1.7f7d1cp-20f, stk_madd_f32(n, -0x1.62e4p-1f, x));
}

/* (e^r - 1 - r) / r^2; minimax for e^r - 1, 2^-26 of it */
STK_INLINE float stk_exp_rest(float r)
{
    float p = 0x1.6d967ap-10f;
    p = stk_madd_f32(p, r, 0x1.122638p-7f);
    p = stk_madd_f32(p, r, 0x1.55548ap-5f);
    p = stk_madd_f32(p, r, 0x1.5554b2p-3f);
    return stk_madd_f32(p, r, 0.5f);
}

STK_INLINE float stk_exp_f32(float x)
{
    x = x > 89.0f ? 89.0f : x; /* comparisons this way round let NaN through */
    x = x < -104.0f ? -104.0f : x;
    uint32_t k;
    float r = stk_exp_reduce(x, &k);
    float p = stk_madd_f32(r * r, stk_exp_rest(r), r) + 1.0f;
    /* 2^k in two factors: k reaches 128 and below -126. */
    uint32_t half = (uint32_t)((int32_t)k >> 1);
    return p * stk_from_bits_f32((half + 127u) << 23) * stk_from_bits_f32((k - half + 127u) << 23);
}

/* x <= 0 or NaN: one power of two is enough; 0 where the result would be subnormal. */
STK_INLINE float stk_exp_down_f32(float x)
{
    uint32_t k;
    float r = stk_exp_reduce(x < -87.0f ? -87.0f : x, &k);
    float p = stk_madd_f32(stk_madd_f32(stk_exp_rest(r), r, 1.0f), r, 1.0f);
    return x < -87.0f ? 0.0f : p * stk_from_bits_f32((k + 127u) << 23);
}

STK_INLINE float stk_expm1_f32(float x)
{
    float c = x > 89.0f ? 89.0f : x;
    c = c < -18.0f ? -18.0f : c;
    uint32_t k;
    float r = stk_exp_reduce(c, &k);
    float p = stk_madd_f32(r * r, stk_exp_rest(r), r);
    float scale = stk_from_bits_f32((k + 126u) << 23); /* 2^(k-1), k <= 128 */
    float y = 2.0f * stk_madd_f32(scale, p, scale - 0.5f);
    return fabsf(x) < 0x1p-25f ? x : y; /* keeps -0, and what halving would flush */
}

/* e^x for |x| < 700, relative error 2^-49 */
STK_INLINE double stk_exp_f64(double x)
{
    double t = stk_madd_f64(x, 0x1.71547652b82fep0, STK_ROUND_F64);
    double n = t - STK_ROUND_F64;
    double r = stk_madd_f64(n, -0x1.a39ef35793c76p-33, stk_madd_f64(n, -0x1.62e42feep-1, x));
    double p = 0x1.288680fcd17d3p-22;
    p = stk_madd_f64(p, r, 0x1.72c729cbdb150p-19);
    p = stk_madd_f64(p, r, 0x1.a019c2e2f2daap-16);
    p = stk_madd_f64(p, r, 0x1.a019ada56ce53p-13);
    p = stk_madd_f64(p, r, 0x1.6c16c175ffd21p-10);
    p = stk_madd_f64(p, r, 0x1.1111111c4725cp-7);
    p = stk_madd_f64(p, r, 0x1.555555555424dp-5);
    p = stk_madd_f64(p, r, 0x1.5555555553b79p-3);
    p = stk_madd_f64(p, r, 0x1.0000000000002p-1);
    return (stk_madd_f64(r * r, p, r) + 1.0) * stk_from_bits_f64((stk_bits_f64(t) + 1023u) << 52);
}

STK_INLINE double stk_clamp_f64(double x, double low, double high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

/* ---- logarithms --------------------------------------------------------------------------- */

/* x = 2^e m with sqrt(1/2) <= m < sqrt(2), for normal x > 0. */
STK_INLINE float stk_log_reduce(float x, float *e)
{
    uint32_t shifted = stk_bits_f32(x) - 0x3f3504f3u;
    *e = (float)((int32_t)shifted >> 23);
    return stk_from_bits_f32((shifted & 0x7fffffu) + 0x3f3504f3u);
}

/* Normal x > 0 only. */
STK_INLINE float stk_log_core(float x)
{
    float e, f = stk_log_reduce(x, &e) - 1.0f; /* exact */
    float p = 0x1.1d8ea6p-4f;                  /* (log(1+f) - f + f^2/2) / f^3 */
    p = stk_madd_f32(p, f, -0x1.d635bcp-4f);
    p = stk_madd_f32(p, f, 0x1.dea282p-4f);
    p = stk_madd_f32(p, f, -0x1.fcf4c6p-4f);
    p = stk_madd_f32(p, f, 0x1.23d21ap-3f);
    p = stk_madd_f32(p, f, -0x1.555b4ap-3f);
    p = stk_madd_f32(p, f, 0x1.999d5ap-3f);
    p = stk_madd_f32(p, f, -0x1.fffffcp-3f);
    p = stk_madd_f32(p, f, 0x1.555554p-2f);
    float z = f * f, y = f * z * p;
    y = stk_madd_f32(e, 0x1.7f7d1cp-20f, y);
    y = stk_madd_f32(-0.5f, z, y);
    return stk_madd_f32(e, 0x1.62e4p-1f, f + y);
}

STK_INLINE float stk_log_f32(float x)
{
    float y = stk_log_core(x);
    y = x > 0.0f ? y : NAN;
    y = fabsf(x) < 0x1p-126f ? -INFINITY : y; /* zero, and subnormals as zero */
    return x == INFINITY ? x : y;
}

/* log(u) for u = 1 + x rounded, plus what the rounding lost. */
STK_INLINE float stk_log1p_f32(float x)
{
    float u = 1.0f + x, lost = x - (u - 1.0f);
    float y = stk_log_f32(u);
    y = ((u > 0.0f) & (u < INFINITY)) ? y + lost / u : y;
    return fabsf(x) < 0x1p-25f ? x : y;
}

/* Relative error 2^-50; normal x > 0, infinity, 0 (-infinity), else NaN. */
STK_INLINE double stk_log_f64(double x)
{
    uint64_t shifted = stk_bits_f64(x) - 0x3fe6a09e667f3bcdu;
    double m = stk_from_bits_f64((shifted & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu);
    /* The exponent, biased to be positive, as a double: 2^52 + n has n in its low bits. */
    uint64_t biased = ((shifted >> 52) + 2048u) & 0xfffu;
    double e = stk_from_bits_f64(biased | 0x4330000000000000u) - (0x1p52 + 2048.0);
    double s = (m - 1.0) / (m + 1.0), z = s * s;
    double p = 0x1.546a3155bacbfp-3; /* (log((1+s)/(1-s)) - 2s) / s^3 */
    p = stk_madd_f64(p, z, 0x1.7382dbfa1ce75p-3);
    p = stk_madd_f64(p, z, 0x1.c71fccd953895p-3);
    p = stk_madd_f64(p, z, 0x1.2492462af84abp-2);
    p = stk_madd_f64(p, z, 0x1.9999999b8677ap-2);
    p = stk_madd_f64(p, z, 0x1.55555555553b8p-1);
    double y = stk_madd_f64(e, 0x1.62e42fefa39efp-1, stk_madd_f64(s * z, p, 2.0 * s));
    y = x > 0.0 ? y : (double)NAN;
    y = x == 0.0 ? -(double)INFINITY : y;
    return x == (double)INFINITY ? x : y;
}

STK_INLINE double stk_log1p_f64(double x)
{
    double u = 1.0 + x, lost = x - (u - 1.0), y = stk_log_f64(u);
    return ((u > 0.0) & (u < (double)INFINITY)) ? y + lost / u : y;
}

/* ---- sigmoid and its kin ------------------------------------------------------------------ */

/* One power of two is enough: up to e^88 it is finite, beyond it is infinite and the result 0. */
STK_INLINE float stk_sigmoid_f32(float x)
{
    x = x > 87.0f ? 87.0f : x;
    x = x < -89.0f ? -89.0f : x;
    uint32_t k;
    float r = stk_exp_reduce(-x, &k);
    float p = stk_madd_f32(stk_madd_f32(stk_exp_rest(r), r, 1.0f), r, 1.0f);
    return 1.0f / stk_madd_f32(p, stk_from_bits_f32((k + 127u) << 23), 1.0f);
}

STK_INLINE float stk_softplus_f32(float x)
{
    float t = stk_exp_f32(-fabsf(x)), u = 1.0f + t; /* log1p without its special cases */
    float y = stk_log_core(u) + (t - (u - 1.0f)) / u;
    y = t < 0x1p-25f ? t : y;
    y = (x < 0.0f ? 0.0f : x) + y;
    return x == x ? y : x;
}

/* e / (e + 2) with e = e^2x - 1. Written as s r - (1 - s) it keeps the sign of a zero. */
STK_INLINE float stk_tanh_f32(float x)
{
    x = x > 10.0f ? 10.0f : x;
    x = x < -10.0f ? -10.0f : x;
    uint32_t k;
    float r = stk_exp_reduce(x + x, &k), scale = stk_from_bits_f32((k + 127u) << 23);
    float p = r * stk_madd_f32(stk_exp_rest(r), r, 1.0f);
    float e = stk_madd_f32(scale, p, -(1.0f - scale));
    return e / (e + 2.0f);
}

STK_INLINE float stk_sinh_f32(float x)
{
    double a = (double)fabsf(x), z = a * a;
    double p = 0x1.b557c78eb1ae2p-26; /* (sinh(a) - a) / a^3 */
    p = stk_madd_f64(p, z, 0x1.71d208a299728p-19);
    p = stk_madd_f64(p, z, 0x1.a01a131097a98p-13);
    p = stk_madd_f64(p, z, 0x1.1111110857b52p-7);
    p = stk_madd_f64(p, z, 0x1.5555555558201p-3);
    double e = stk_exp_f64(stk_clamp_f64(a, 0.0, 100.0));
    double y = a < 1.0 ? stk_madd_f64(a * z, p, a) : 0.5 * e - 0.5 / e;
    return stk_copysign_f32((float)y, x);
}

STK_INLINE float stk_cosh_f32(float x)
{
    double e = stk_exp_f64(stk_clamp_f64((double)fabsf(x), 0.0, 100.0));
    return (float)(0.5 * e + 0.5 / e);
}

STK_INLINE float stk_asinh_f32(float x)
{
    double a = (double)fabsf(x), z = a * a;
    double y = stk_log1p_f64(a + z / (1.0 + sqrt(1.0 + z)));
    return a < (double)INFINITY ? stk_copysign_f32((float)y, x) : x;
}

STK_INLINE float stk_acosh_f32(float x)
{
    double t = (double)x - 1.0;
    double y = stk_log1p_f64(t + sqrt(t * (t + 2.0)));
    return t >= 0.0 ? (float)y : NAN;
}

STK_INLINE float stk_atanh_f32(float x)
{
    double a = (double)fabsf(x);
    float y = (float)(0.5 * stk_log1p_f64(2.0 * a / (1.0 - a)));
    return stk_copysign_f32(a <= 1.0 ? y : NAN, x);
}

/* ---- error function ----------------------------------------------------------------------- */

STK_INLINE float stk_erf_f32(float x)
{
    float a = fabsf(x), z = a * a;
    float p = 0x1.4a5690p-14f; /* erf(a) / a - 1 for a < 1 */
    p = stk_madd_f32(p, z, -0x1.a45088p-11f);
    p = stk_madd_f32(p, z, 0x1.541270p-8f);
    p = stk_madd_f32(p, z, -0x1.b7fabap-6f);
    p = stk_madd_f32(p, z, 0x1.ce2d10p-4f);
    p = stk_madd_f32(p, z, -0x1.81273ep-2f);
    p = stk_madd_f32(p, z, 0x1.06eba8p-3f);
    float c = a > 4.0f ? 4.0f : a; /* erf(4) rounds to 1 */
    float q = -0x1.b77830p-20f;    /* -log(1 - erf(c)) for c in [1, 4] */
    q = stk_madd_f32(q, c, 0x1.825ce4p-15f);
    q = stk_madd_f32(q, c, -0x1.38e5e6p-11f);
    q = stk_madd_f32(q, c, 0x1.37ecc6p-8f);
    q = stk_madd_f32(q, c, -0x1.b0e246p-6f);
    q = stk_madd_f32(q, c, 0x1.c2e356p-4f);
    q = stk_madd_f32(q, c, 0x1.437eb4p-1f);
    q = stk_madd_f32(q, c, 0x1.2156fap+0f);
    q = stk_madd_f32(q, c, -0x1.4fb068p-12f);
    float y = a < 1.0f ? stk_madd_f32(a, p, a) : 1.0f - stk_exp_f32(-q);
    return stk_copysign_f32(y, x);
}

/* ---- gelu: x times a share that goes from 0 to 1, and its slope ----------------------------- */

/* The share of a normal distribution beyond a >= 0, given e = e^(-a^2/2): their quotient is smooth in 1 / (1 + 0.3 a). */
STK_INLINE float stk_normal_tail(float a, float e)
{
    float t = 1.0f / stk_madd_f32(0.3f, a, 1.0f);
    float p = 0x1.3a0962p-5f;
    p = stk_madd_f32(p, t, -0x1.5a042ep-3f);
    p = stk_madd_f32(p, t, 0x1.d364f6p-3f);
    p = stk_madd_f32(p, t, -0x1.374e4ep-4f);
    p = stk_madd_f32(p, t, 0x1.2332e0p-3f);
    p = stk_madd_f32(p, t, 0x1.846ed2p-4f);
    p = stk_madd_f32(p, t, 0x1.f33ac6p-4f);
    p = stk_madd_f32(p, t, 0x1.e9718ap-4f);
    return e * stk_madd_f32(p, t, 0x1.cbf876p-18f);
}
STK_INLINE float stk_gelu_erf_f32(float x)
{
    float tail = stk_normal_tail(fabsf(x), stk_exp_down_f32(-0.5f * x * x));
    return x * (x < 0.0f ? tail : 1.0f - tail);
}

/* Slopes stay as they are beyond 16: 0 and 1, for infinities as well. */
STK_INLINE float stk_gelu_bounded(float x) { return x > 16.0f ? 16.0f : x < -16.0f ? -16.0f : x; }
STK_INLINE float stk_gelu_erf_slope_f32(float x)
{
    float near = stk_gelu_bounded(x), e = stk_exp_down_f32(-0.5f * near * near);
    float tail = stk_normal_tail(fabsf(near), e);
    return stk_madd_f32(near, 0x1.988454p-2f * e, near < 0.0f ? tail : 1.0f - tail);
}

/* (1 + tanh(u)) / 2 = 1 / (1 + e^-2u), u = x (k + k c x^2), k = sqrt(2 / pi), c = 0.044715. */
STK_INLINE float stk_gelu_2u(float x)
{
    return x * stk_madd_f32(0x1.2444f2p-4f, x * x, 0x1.988454p+0f);
}
STK_INLINE float stk_gelu_tanh_f32(float x) { return x * stk_sigmoid_f32(stk_gelu_2u(x)); }
STK_INLINE float stk_gelu_tanh_slope_f32(float x)
{
    float near = stk_gelu_bounded(x), e = stk_exp_down_f32(-fabsf(stk_gelu_2u(near)));
    float r = 1.0f / (1.0f + e), rest = e * r, s = near < 0.0f ? rest : r; /* rest r = s (1 - s) */
    float slope = stk_madd_f32(0x1.b6676cp-3f, near * near, 0x1.988454p+0f);
    return stk_madd_f32(rest * r * near, slope, s);
}

/* erfc(a) e^(a^2) is smooth in t = (a-3)/(a+3). */
STK_INLINE float stk_erfc_f32(float x)
{
    double a = stk_clamp_f64((double)fabsf(x), 0.0, 10.5), t = (a - 3.0) / (a + 3.0);
    double g = 0x1.94cf1929a93b9p-21;
    g = stk_madd_f64(g, t, 0x1.300d61c3cecbbp-20);
    g = stk_madd_f64(g, t, -0x1.0c5c6e33277aep-17);
    g = stk_madd_f64(g, t, -0x1.956ae0e9504dep-17);
    g = stk_madd_f64(g, t, 0x1.0dc0be0769772p-14);
    g = stk_madd_f64(g, t, 0x1.796ca86a0755fp-15);
    g = stk_madd_f64(g, t, -0x1.3918c3b705961p-11);
    g = stk_madd_f64(g, t, 0x1.731609941a9a4p-11);
    g = stk_madd_f64(g, t, 0x1.17c89e99a0428p-8);
    g = stk_madd_f64(g, t, -0x1.8fa592c1f71d6p-6);
    g = stk_madd_f64(g, t, 0x1.258b13263a7d3p-4);
    g = stk_madd_f64(g, t, -0x1.336ffbe9bcc34p-3);
    g = stk_madd_f64(g, t, 0x1.f6ff204323110p-3);
    g = stk_madd_f64(g, t, -0x1.4e102b9d01f2fp-2);
    g = stk_madd_f64(g, t, 0x1.6e9827d2272d2p-3);
    double y = g * stk_exp_f64(-a * a);
    return (float)(x < 0.0f ? 2.0 - y : y);
}

/* ---- trigonometry ------------------------------------------------------------------------- */

/* Up to here the reduction below is exact; beyond, tiles fall back to libm. */
#define STK_TRIG_LIMIT 0x1p28f

/* x = k pi/2 + r with |r| <= pi/4. pi/2 comes in pieces of 24 bits whose products with k are exact. */
STK_INLINE double stk_trig_reduce(double x, uint64_t *k)
{
    double t = stk_madd_f64(x, 0x1.45f306dc9c883p-1, STK_ROUND_F64), n = t - STK_ROUND_F64;
    *k = stk_bits_f64(t);
    double r = stk_madd_f64(n, -0x1.4442dp-24, stk_madd_f64(n, -0x1.921fb4p+0, x));
    return stk_madd_f64(n, -0x1.8469898cc517p-48, r);
}

STK_INLINE double stk_sin_core(double r)
{
    double z = r * r, p = -0x1.aa2597cec801bp-26;
    p = stk_madd_f64(p, z, 0x1.71d9a402aff57p-19);
    p = stk_madd_f64(p, z, -0x1.a019fd935808dp-13);
    p = stk_madd_f64(p, z, 0x1.1111110fd096dp-7);
    p = stk_madd_f64(p, z, -0x1.555555555515fp-3);
    return stk_madd_f64(r * z, p, r);
}

STK_INLINE double stk_cos_core(double r)
{
    double z = r * r, p = -0x1.2522849d46e4fp-22;
    p = stk_madd_f64(p, z, 0x1.a015bef868684p-16);
    p = stk_madd_f64(p, z, -0x1.6c16bf50cf7c4p-10);
    p = stk_madd_f64(p, z, 0x1.5555555501f78p-5);
    return stk_madd_f64(z * z, p, stk_madd_f64(-0.5, z, 1.0));
}

/* sin(x + quarter pi/2) */
STK_INLINE float stk_sin_turned(float x, uint64_t quarter)
{
    uint64_t k;
    double r = stk_trig_reduce((double)x, &k);
    k += quarter;
    double y = (k & 1u) ? stk_cos_core(r) : stk_sin_core(r);
    return (float)stk_from_bits_f64(stk_bits_f64(y) ^ (k & 2u) << 62);
}

STK_INLINE float stk_sin_f32(float x)
{
    float y = stk_sin_turned(x, 0);
    return x == 0.0f ? x : y;
}
STK_INLINE float stk_cos_f32(float x) { return stk_sin_turned(x, 1); }
STK_INLINE float stk_tan_f32(float x)
{
    uint64_t k;
    double r = stk_trig_reduce((double)x, &k);
    double s = stk_sin_core(r), c = stk_cos_core(r);
    double y = (k & 1u) ? -c / s : s / c;
    return x == 0.0f ? x : (float)y;
}

/* Angle of the point (x, y) in the first quadrant. A point above the diagonal is mirrored, one above pi/8 turned
 * back by pi/4, so that the series is short. */
STK_INLINE double stk_angle(double y, double x)
{
    double num = y > x ? x : y, den = y > x ? y : x;
    double turn = num > 0x1.a827999fcef32p-2 * den ? 1.0 : 0.0; /* tan(pi/8) */
    double n = turn != 0.0 ? num - den : num, d = turn != 0.0 ? num + den : den;
    double t = n / d, z = t * t;
    double p = 0x1.0dfb3a0a53121p-5; /* (atan(t) - t) / t^3 */
    p = stk_madd_f64(p, z, -0x1.edc1b261b5fcdp-5);
    p = stk_madd_f64(p, z, 0x1.377e18d324d86p-4);
    p = stk_madd_f64(p, z, -0x1.7415b609ec447p-4);
    p = stk_madd_f64(p, z, 0x1.c719638e1c453p-4);
    p = stk_madd_f64(p, z, -0x1.249240daae1c2p-3);
    p = stk_madd_f64(p, z, 0x1.999999885ea4cp-3);
    p = stk_madd_f64(p, z, -0x1.5555555552617p-2);
    double angle = stk_madd_f64(turn, M_PI_4, stk_madd_f64(t * z, p, t));
    return y > x ? M_PI_2 - angle : angle;
}

STK_INLINE float stk_atan_f32(float x)
{
    return stk_copysign_f32((float)stk_angle((double)fabsf(x), 1.0), x);
}

STK_INLINE float stk_asin_f32(float x)
{
    double a = (double)fabsf(x);
    return stk_copysign_f32((float)stk_angle(a, sqrt((1.0 - a) * (1.0 + a))), x);
}

STK_INLINE float stk_acos_f32(float x)
{
    double a = (double)fabsf(x), angle = stk_angle(sqrt((1.0 - a) * (1.0 + a)), a);
    return (float)(x < 0.0f ? M_PI - angle : angle);
}

STK_INLINE float stk_atan2_f32(float y, float x)
{
    double a = (double)fabsf(y), b = (double)fabsf(x);
    /* The corners of infinity stand on the diagonal; the origin counts as lying on the axis. */
    int corner = a == (double)INFINITY && b == (double)INFINITY, origin = a == 0.0 && b == 0.0;
    double u = corner ? 1.0 : a, v = corner || origin ? 1.0 : b;
    double angle = stk_angle(u, v);
    angle = (stk_bits_f32(x) & 0x80000000u) ? M_PI - angle : angle;
    angle = a == a && b == b ? angle : (double)NAN;
    return stk_copysign_f32((float)angle, y);
}

/* ---- power -------------------------------------------------------------------------------- */

STK_INLINE float stk_pow_f32(float x, float y)
{
    float a = fabsf(x);
    double power = (double)y * stk_log_f64((double)a);
    double r = stk_exp_f64(stk_clamp_f64(power, -200.0, 200.0));
    float half = 0.5f * y;
    int whole = rintf(y) == y, odd = whole && rintf(half) != half;
    float z = (float)r;
    z = x < 0.0f && x > -INFINITY && !whole ? NAN : z;
    z = odd ? stk_copysign_f32(z, x) : z;
    z = a == 1.0f && (x > 0.0f || whole) ? (odd ? x : 1.0f) : z; /* also for y infinite or NaN */
    z = x == 1.0f ? 1.0f : z;
    return y == 0.0f ? 1.0f : z;
}

#endif
