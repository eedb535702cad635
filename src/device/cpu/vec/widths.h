/* widths.h - short fixed-width vectors of float, for kernels whose rows are too short for loops.
 *
 * For W = 4, 8, 16 up to what the ISA has in one register there are types vW (v8) and mW (its mask) and the words
 * vW_load, vW_store, vW_splat, vW_max, vW_min, vW_exp_down, vW_sum, vW_top, vW_keep, vW_late. This header is the
 * vocabulary in which kernels are written without #ifdef, so it has some itself.
 *
 * A row of n >= W elements is walked in whole vectors; what is left over is done by one more vector that ends with the
 * row and overlaps the one before it. Nothing is read or written outside the row, no masked store is
 * needed (slow on several CPUs), and only sums have to leave out what they have counted already (vW_late). */
#ifndef STK_DEVICE_CPU_VEC_WIDTHS_H
#define STK_DEVICE_CPU_VEC_WIDTHS_H

#include "device/cpu/vec/math.h"

#if defined(__SSE__)
#include <immintrin.h>
#endif

/* The widest W, and the choice of a width for rows of n >= 4: runs `rows_of(W, whole)` with whole = n / W, as a
 * constant where the row is short enough to be unrolled. */
#if defined(__AVX512F__)
#define STK_LANES_MOST 16
#elif defined(__AVX__)
#define STK_LANES_MOST 8
#else
#define STK_LANES_MOST 4
#endif

#if STK_LANES_MOST >= 8
#define STK_BELOW_16(n, rows_of)                                                                   \
    if ((n) < 8) {                                                                                 \
        rows_of(4, 1)                                                                              \
    } else if ((n) < 16) {                                                                         \
        rows_of(8, 1)                                                                              \
    }
#else
#define STK_BELOW_16(n, rows_of)                                                                   \
    if ((n) < 8) {                                                                                 \
        rows_of(4, 1)                                                                              \
    } else if ((n) < 12) {                                                                         \
        rows_of(4, 2)                                                                              \
    } else if ((n) < 16) {                                                                         \
        rows_of(4, 3)                                                                              \
    }
#endif
#define STK_BY_WIDTH(n, rows_of) STK_BY_WIDTH_OF(n, rows_of, STK_LANES_MOST)
#define STK_BY_WIDTH_OF(n, rows_of, most)                                                          \
    do {                                                                                           \
        STK_BELOW_16(n, rows_of)                                                                   \
        else                                                                                       \
        {                                                                                          \
            rows_of(most, (n) / most)                                                              \
        }                                                                                          \
    } while (0)

#define STK_LANES_TYPE(W)                                                                          \
    typedef float v##W __attribute__((vector_size(W * 4)));                                        \
    typedef int32_t m##W __attribute__((vector_size(W * 4)));                                      \
    STK_INLINE v##W v##W##_load(const float *p)                                                    \
    {                                                                                              \
        v##W v;                                                                                    \
        memcpy(&v, p, sizeof v);                                                                   \
        return v;                                                                                  \
    }                                                                                              \
    STK_INLINE void v##W##_store(float *p, v##W v) { memcpy(p, &v, sizeof v); }                    \
    STK_INLINE v##W v##W##_splat(float f) { return (v##W){0} + f; }                                \
    /* 0 where the mask is 0 */                                                                    \
    STK_INLINE v##W v##W##_keep(v##W v, m##W mask) { return (v##W)((m##W)v & mask); }

/* ---- W = 4 ---------------------------------------------------------------------------------------
 * max is a > b ? a : b: a NaN in a is dropped, one in b kept; min is a < b ? a : b. late: all ones in the last `count` lanes. sum and top
 * fold the vector onto its half until one number is left: a fixed order. */

STK_LANES_TYPE(4)
STK_INLINE m4 v4_late(int64_t count)
{
    m4 lane = {0, 1, 2, 3};
    return lane >= (int32_t)(4 - count);
}
#if defined(__SSE__)
STK_INLINE v4 v4_max(v4 a, v4 b) { return (v4)_mm_max_ps((__m128)a, (__m128)b); }
STK_INLINE v4 v4_min(v4 a, v4 b) { return (v4)_mm_min_ps((__m128)a, (__m128)b); }
#else
STK_INLINE v4 v4_max(v4 a, v4 b)
{
    m4 first = a > b;
    return (v4)(((m4)a & first) | ((m4)b & ~first));
}
STK_INLINE v4 v4_min(v4 a, v4 b)
{
    m4 first = a < b;
    return (v4)(((m4)a & first) | ((m4)b & ~first));
}
#endif
STK_INLINE float v4_sum(v4 v)
{
    v4 u = v + (v4){v[2], v[3], v[0], v[1]};
    return u[0] + u[1];
}
STK_INLINE float v4_top(v4 v)
{
    v4 u = v4_max(v, (v4){v[2], v[3], v[0], v[1]});
    u = v4_max(u, (v4){u[1], u[0], u[3], u[2]});
    return u[0];
}

#define STK_LANES_FOLD(W, H, low, high)                                                            \
    STK_INLINE float v##W##_sum(v##W v) { return v##H##_sum((v##H)low + (v##H)high); }             \
    STK_INLINE float v##W##_top(v##W v) { return v##H##_top(v##H##_max((v##H)low, (v##H)high)); }

/* ---- W = 8 ------------------------------------------------------------------------------------------ */
#if STK_LANES_MOST >= 8
STK_LANES_TYPE(8)
STK_INLINE m8 v8_late(int64_t count)
{
    m8 lane = {0, 1, 2, 3, 4, 5, 6, 7};
    return lane >= (int32_t)(8 - count);
}
STK_INLINE v8 v8_max(v8 a, v8 b) { return (v8)_mm256_max_ps((__m256)a, (__m256)b); }
STK_INLINE v8 v8_min(v8 a, v8 b) { return (v8)_mm256_min_ps((__m256)a, (__m256)b); }
STK_LANES_FOLD(8, 4, _mm256_castps256_ps128((__m256)v), _mm256_extractf128_ps((__m256)v, 1))
#endif

/* ---- W = 16 ----------------------------------------------------------------------------------------- */
#if STK_LANES_MOST >= 16
STK_LANES_TYPE(16)
STK_INLINE m16 v16_late(int64_t count)
{
    m16 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return lane >= (int32_t)(16 - count);
}
STK_INLINE v16 v16_max(v16 a, v16 b) { return (v16)_mm512_max_ps((__m512)a, (__m512)b); }
STK_INLINE v16 v16_min(v16 a, v16 b) { return (v16)_mm512_min_ps((__m512)a, (__m512)b); }
STK_LANES_FOLD(16, 8, _mm512_castps512_ps256((__m512)v),
               _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd((__m512)v), 1)))
#endif

/* ---- e^x for x <= 0 or NaN ------------------------------------------------------------------------------
 * As stk_exp_f32, but with one power of two instead of two, and 0 where the result would be subnormal. */
#define STK_LANES_EXP(W)                                                                           \
    STK_INLINE v##W v##W##_exp_down(v##W x)                                                        \
    {                                                                                              \
        v##W c = v##W##_max(v##W##_splat(-87.0f), x);                                              \
        v##W t = c * 0x1.715476p0f + STK_ROUND_F32, n = t - STK_ROUND_F32;                         \
        v##W r = (c - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;                                     \
        v##W p = 0x1.6d967ap-10f * r + 0x1.122638p-7f; /* stk_exp_rest */                          \
        p = p * r + 0x1.55548ap-5f;                                                                \
        p = p * r + 0x1.5554b2p-3f;                                                                \
        p = p * r + 0.5f;                                                                          \
        p = p * (r * r) + r + 1.0f;                                                                \
        /* The low bits of t are k; the 127 + k that make 2^k are those of t + 127 ulp. */         \
        p *= (v##W)(((m##W)t + 127) << 23);                                                        \
        return v##W##_keep(p, x >= -87.0f) + v##W##_keep(x, x != x);                               \
    }
STK_LANES_EXP(4)
#if STK_LANES_MOST >= 8
STK_LANES_EXP(8)
#endif
#if STK_LANES_MOST >= 16
STK_LANES_EXP(16)
#endif

/* ---- the widest one by its other name: vn, mn, vn_(load) ------------------------------------------------ */
#define STK_NATIVE_PASTE(letter, most, rest) letter##most##rest
#define STK_NATIVE(letter, most, rest)       STK_NATIVE_PASTE(letter, most, rest)
#define vn                                   STK_NATIVE(v, STK_LANES_MOST, )
#define mn                                   STK_NATIVE(m, STK_LANES_MOST, )
#define vn_(word)                            STK_NATIVE(v, STK_LANES_MOST, _##word)

#endif
