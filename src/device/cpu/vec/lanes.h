/* lanes.h - the few words of vector code that plain C cannot say: one register of numbers, part of
 * a register, rows read as columns, sums across lanes.
 *
 * This is the only place of the folder that knows instruction sets by name; every set offers the
 * same words, for floats (vf_) and for doubles (vd_). `vf` holds STK_VF floats, `vd` STK_VD
 * doubles, and + - * are written as such. A part is the first n lanes (1 <= n <= all); lanes
 * outside read as zero, and their memory is neither read nor written.
 *
 *     vf_load  vf_store  vf_part_of  vf_load_part  vf_store_part
 *     vf_turn(from, stride, out)   out[c] lane i = from[i * stride + c], c = 0..3
 *     vf_sums(rows)                lane i = the sum of all lanes of rows[i]
 *     vf_keep(v)                   v in a register: gcc else reads a number again for each of its uses
 *     vf_twice(from)               half a register, in both halves
 *     vf_halves(low, high)         the low half of one, the high half of the other
 *     vf_store_low(to, v), _high   one half
 *     vf_nonzero(v)                bit i: lane i is not zero (a NaN is not)
 *     vf_list(lanes, first, to)    first + i for every bit i of lanes, in order; how many. Behind them up to
 *                                  STK_VF numbers of `to` are spoilt
 *     vf_squeeze(lanes, v, to)     the lanes themselves, in order; spoils as much
 */
#ifndef STK_DEVICE_CPU_VEC_LANES_H
#define STK_DEVICE_CPU_VEC_LANES_H

#include "device/cpu/vec/vec.h"

#if defined(__AVX__)
#include <immintrin.h>
#endif

/* Loops over lanes and accumulators have constant bounds and have to vanish: gcc keeps an array in
 * registers only when every index is a constant. */
#if defined(__clang__)
#define STK_UNROLL _Pragma("unroll")
#else
#define STK_UNROLL _Pragma("GCC unroll 64")
#endif
#define STK_INLINE static inline __attribute__((always_inline))

enum { STK_VD = STK_VF / 2 };

typedef float vf __attribute__((vector_size(STK_VF * 4)));
typedef double vd __attribute__((vector_size(STK_VF * 4)));
typedef float vf_unaligned __attribute__((vector_size(STK_VF * 4), aligned(4), may_alias));
typedef double vd_unaligned __attribute__((vector_size(STK_VF * 4), aligned(8), may_alias));

STK_INLINE vf vf_load(const float *from) { return *(const vf_unaligned *)from; }
STK_INLINE void vf_store(float *to, vf v) { *(vf_unaligned *)to = v; }
STK_INLINE vf vf_keep(vf v)
{
#if defined(__AVX512F__)
    __asm__("" : "+v"(v));
#elif defined(__x86_64__)
    __asm__("" : "+x"(v));
#endif
    return v;
}
STK_INLINE vd vd_load(const double *from) { return *(const vd_unaligned *)from; }
STK_INLINE void vd_store(double *to, vd v) { *(vd_unaligned *)to = v; }

/* Words for which the compiler's own lane access is good enough on every set. */
STK_INLINE void vd_turn(const double *from, int64_t stride, vd out[4])
{
    STK_UNROLL for (int c = 0; c < 4; c++)
    {
        vd column = {0};
        STK_UNROLL for (int i = 0; i < STK_VD; i++) column[i] = from[i * stride + c];
        out[c] = column;
    }
}
STK_INLINE vd vd_sums(const vd rows[STK_VD])
{
    vd out = {0};
    STK_UNROLL for (int i = 0; i < STK_VD; i++) STK_UNROLL for (int l = 0; l < STK_VD; l++)
        out[i] += rows[i][l];
    return out;
}

#if defined(__AVX512F__)

typedef __mmask16 vf_part;
typedef __mmask8 vd_part;

STK_INLINE vf_part vf_part_of(int64_t n) { return (__mmask16)((1u << n) - 1u); }
STK_INLINE vf vf_load_part(const float *from, vf_part p) { return _mm512_maskz_loadu_ps(p, from); }
STK_INLINE void vf_store_part(float *to, vf v, vf_part p) { _mm512_mask_storeu_ps(to, p, v); }
STK_INLINE vf vf_twice(const float *from) { return _mm512_broadcast_f32x8(_mm256_loadu_ps(from)); }
STK_INLINE vf vf_halves(vf low, vf high) { return _mm512_mask_blend_ps(0xff00, low, high); }
STK_INLINE void vf_store_low(float *to, vf v) { _mm256_storeu_ps(to, _mm512_castps512_ps256(v)); }
STK_INLINE void vf_store_high(float *to, vf v)
{
    _mm256_storeu_ps(to, _mm512_extractf32x8_ps(v, 1));
}
STK_INLINE vd_part vd_part_of(int64_t n) { return (__mmask8)((1u << n) - 1u); }
STK_INLINE vd vd_load_part(const double *from, vd_part p) { return _mm512_maskz_loadu_pd(p, from); }
STK_INLINE void vd_store_part(double *to, vd v, vd_part p) { _mm512_mask_storeu_pd(to, p, v); }

/* Rows i, i+4, i+8, i+12 share a register, a quarter each; then 4x4 squares inside the quarters. */
STK_INLINE void vf_turn(const float *from, int64_t stride, vf out[4])
{
    __m512 row[4];
    STK_UNROLL for (int i = 0; i < 4; i++)
    {
        const float *at = from + i * stride;
        __m512 r = _mm512_castps128_ps512(_mm_loadu_ps(at));
        r = _mm512_insertf32x4(r, _mm_loadu_ps(at + 4 * stride), 1);
        r = _mm512_insertf32x4(r, _mm_loadu_ps(at + 8 * stride), 2);
        row[i] = _mm512_insertf32x4(r, _mm_loadu_ps(at + 12 * stride), 3);
    }
    __m512d low01 = _mm512_castps_pd(_mm512_unpacklo_ps(row[0], row[1]));
    __m512d high01 = _mm512_castps_pd(_mm512_unpackhi_ps(row[0], row[1]));
    __m512d low23 = _mm512_castps_pd(_mm512_unpacklo_ps(row[2], row[3]));
    __m512d high23 = _mm512_castps_pd(_mm512_unpackhi_ps(row[2], row[3]));
    out[0] = _mm512_castpd_ps(_mm512_unpacklo_pd(low01, low23));
    out[1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low01, low23));
    out[2] = _mm512_castpd_ps(_mm512_unpacklo_pd(high01, high23));
    out[3] = _mm512_castpd_ps(_mm512_unpackhi_pd(high01, high23));
}

/* Sums of four registers, quarter by quarter: every quarter ends as {sum r0, r1, r2, r3}. */
STK_INLINE __m512 vf_quarter_sums(const vf r[4])
{
    __m512 s01 = _mm512_add_ps(_mm512_unpacklo_ps(r[0], r[1]), _mm512_unpackhi_ps(r[0], r[1]));
    __m512 s23 = _mm512_add_ps(_mm512_unpacklo_ps(r[2], r[3]), _mm512_unpackhi_ps(r[2], r[3]));
    __m512d a = _mm512_castps_pd(s01), b = _mm512_castps_pd(s23);
    return _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)),
                         _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
}
STK_INLINE vf vf_sums(const vf rows[STK_VF])
{
    __m512 a = vf_quarter_sums(rows), b = vf_quarter_sums(rows + 4);
    __m512 c = vf_quarter_sums(rows + 8), d = vf_quarter_sums(rows + 12);
    __m512 ab = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
    __m512 cd = _mm512_add_ps(_mm512_shuffle_f32x4(c, d, 0x88), _mm512_shuffle_f32x4(c, d, 0xdd));
    return _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
}

/* GCC 12 makes one instruction of a comparison and the widening of its mask; where it then runs out of registers it stores 16 bits
 * and reads 32 back, and lists grow by what the stack held. So the widening is kept apart (test_lists). */
STK_INLINE uint32_t vf_nonzero(vf v)
{
    __mmask16 lanes = _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_NEQ_UQ);
    __asm__("" : "+k"(lanes));
    return lanes;
}

STK_INLINE int64_t vf_list(uint32_t lanes, int32_t first, int32_t *to)
{
    const __m512i all = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i at = _mm512_add_epi32(all, _mm512_set1_epi32(first));
    _mm512_storeu_si512(to, _mm512_maskz_compress_epi32((__mmask16)lanes, at));
    return __builtin_popcount(lanes);
}

STK_INLINE void vf_squeeze(uint32_t lanes, vf v, float *to)
{
    _mm512_storeu_ps(to, _mm512_maskz_compress_ps((__mmask16)lanes, v));
}

/* ---- starts: quotients and roots without the divider ---------------------------------------------------
 * Estimates to 14 bits that Newton steps refine; vf_middling: 2^-100 <= |x| < 2^101, where no step underflows. */
#define STK_HAS_STARTS 1
STK_INLINE vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
STK_INLINE vf vf_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); }
STK_INLINE vf vf_recip_start(vf x) { return _mm512_rcp14_ps(x); }
STK_INLINE vf vf_rsqrt_start(vf x) { return _mm512_rsqrt14_ps(x); }
STK_INLINE vf vf_sqrt(vf x) { return _mm512_sqrt_ps(x); }
STK_INLINE vf_part vf_is_zero(vf x)
{
    return _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_EQ_OQ);
}
STK_INLINE vf_part vf_middling(vf x)
{
    const __m512i size = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
    return _mm512_cmplt_epu32_mask(_mm512_sub_epi32(size, _mm512_set1_epi32(27 << 23)),
                                   _mm512_set1_epi32(201 << 23));
}
STK_INLINE bool vf_all_middling(vf x) /* and positive */
{
    const __m512i above = _mm512_sub_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(27 << 23));
    return _mm512_cmpge_epu32_mask(above, _mm512_set1_epi32(201 << 23)) == 0;
}
STK_INLINE vf vf_choose(vf_part p, vf yes, vf no) { return _mm512_mask_mov_ps(no, p, yes); }
STK_INLINE vf vf_splat(float x) { return _mm512_set1_ps(x); }

/* ---- pairs: a register of 16 pairs of bfloat16, each pair in the place of one float ------------------
 * The processor must have AVX512_BF16, which the set as a whole does not ask for: functions that use the dot product are
 * marked STK_PAIRS, and called only after stk_isa_has_pairs().
 *
 *     vp_dot(sum, a, b)          sum + a.low * b.low + a.high * b.high, lane by lane
 *     vp_splat(p)                the pair at p in every lane
 *     vp_zip(even, odd, out)     out[0], out[1]: 32 pairs {even[i], odd[i]} from 32 + 32 numbers
 *     vp_store_rounded, vp_load_wide   16 floats to 16 bfloat16 (nearest, ties to even) and back; _two: 16 and 16
 *     vp_thirds(x, out)          out[0] + out[1] + out[2] is x: floats that are bfloat16, the nearest to x, the nearest to what that
 *                                leaves, and the rest. Below 2^-103 the rest may be lost; x is finite
 *     vp_thirds_below(x, out)    the same of what does not round to infinity, else out[0] is infinite or NaN
 *     vp_larger(most, pairs), vp_endless_in(most)   whether any of many pairs had an infinity or NaN
 *     vp_join(low, high)         the pairs {low, high} of floats that are bfloat16
 *     vf_endless(v)              bit i: lane i is infinite or NaN; vf_infinite(v): infinite */
#define STK_HAS_PAIRS 1
#define STK_PAIRS     __attribute__((target("avx512bf16")))

typedef __mmask32 vp_part;

STK_INLINE STK_PAIRS vf vp_dot(vf sum, vf a, vf b)
{
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}
STK_INLINE vf vp_splat(const void *p)
{
    int32_t pair;
    __builtin_memcpy(&pair, p, sizeof pair);
    return (vf)_mm512_set1_epi32(pair);
}
STK_INLINE vf vp_splat_low(const uint16_t *p) { return (vf)_mm512_set1_epi32(*p); }
STK_INLINE vp_part vp_part_of(int64_t n) { return n >= 32 ? ~(vp_part)0 : ((vp_part)1 << n) - 1; }
STK_INLINE vf vp_load_part(const uint16_t *from, vp_part p)
{
    return (vf)_mm512_maskz_loadu_epi16(p, from);
}
STK_INLINE void vp_store_part(uint16_t *to, vf v, vp_part p)
{
    _mm512_mask_storeu_epi16(to, p, (__m512i)v);
}
STK_INLINE void vp_zip(vf even, vf odd, vf out[2])
{
    static const uint16_t order[32] = {0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,
                                       37, 6,  38, 7,  39, 8,  40, 9,  41, 10, 42,
                                       11, 43, 12, 44, 13, 45, 14, 46, 15, 47};
    const __m512i low = _mm512_loadu_si512(order);
    const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
    out[0] = (vf)_mm512_permutex2var_epi16((__m512i)even, low, (__m512i)odd);
    out[1] = (vf)_mm512_permutex2var_epi16((__m512i)even, high, (__m512i)odd);
}
STK_INLINE STK_PAIRS void vp_store_rounded(uint16_t *to, vf v, vf_part p)
{
    _mm256_mask_storeu_epi16(to, p, (__m256i)_mm512_cvtneps_pbh(v));
}
STK_INLINE STK_PAIRS void vp_store_rounded_two(uint16_t *to, vf v, vf next)
{
    _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(next, v));
}
STK_INLINE vf vp_load_wide(const uint16_t *from, vf_part p)
{
    return (vf)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(p, from)), 16);
}
STK_INLINE vf_part vf_endless(vf v) { return _mm512_fpclass_ps_mask(v, 0x99); }
STK_INLINE vf_part vf_infinite(vf v) { return _mm512_fpclass_ps_mask(v, 0x18); }
STK_INLINE vf vp_nearest(vf x) /* ties go away from zero */
{
    const __m512i up = _mm512_add_epi32((__m512i)x, _mm512_set1_epi32(0x8000));
    return (vf)_mm512_and_si512(up, _mm512_set1_epi32((int32_t)0xffff0000u));
}
STK_INLINE void vp_thirds_below(vf x, vf out[3])
{
    out[0] = vp_nearest(x);
    const vf rest = x - out[0];
    out[1] = vp_nearest(rest);
    out[2] = rest - out[1];
}
/* The largest numbers would round to infinity: the first third of these is the largest one that bfloat16 has. */
STK_INLINE void vp_thirds(vf x, vf out[3])
{
    enum { SMALLER_WITH_SIGN = 2 };
    const vf most = (vf)_mm512_set1_epi32(0x7f7f7fff);
    out[0] = vp_nearest(_mm512_range_ps(x, most, SMALLER_WITH_SIGN));
    const vf rest = x - out[0];
    out[1] = vp_nearest(rest);
    out[2] = rest - out[1];
}
/* The larger ones of twice the 32 numbers' bits, where the sign drops out; whether one of them all was infinite or NaN. */
STK_INLINE vf vp_larger(vf most, vf pairs)
{
    const __m512i twice = _mm512_add_epi16((__m512i)pairs, (__m512i)pairs);
    return (vf)_mm512_max_epu16((__m512i)most, twice);
}
STK_INLINE bool vp_endless_in(vf most)
{
    return _mm512_cmpge_epu16_mask((__m512i)most, _mm512_set1_epi16((int16_t)0xff00)) != 0;
}
STK_INLINE vf vp_join(vf low, vf high)
{
    return (vf)_mm512_mask_mov_epi16(_mm512_srli_epi32((__m512i)low, 16), 0xaaaaaaaau,
                                     (__m512i)high);
}
/* The instruction takes subnormal numbers for zeros. These round them as well, as stk_f32_to_bf16() does: they are looked for, and go
 * by integers. */
STK_INLINE bool vp_has_tiny(vf v)
{
    const __mmask16 low =
        _mm512_testn_epi32_mask((__m512i)v, _mm512_set1_epi32(0x7f800000)); /* no exponent */
    return _mm512_mask_test_epi32_mask(low, (__m512i)v, _mm512_set1_epi32(0x7fffff)) != 0;
}
STK_INLINE void vp_store_tiny(uint16_t *to, vf v, vf_part p)
{
    const __m512i bits = (__m512i)v, high = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    const __m512i sum = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __m512i rounded = _mm512_srli_epi32(sum, 16);
    const __m512i nan = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
    const __mmask16 is_nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    _mm512_mask_cvtepi32_storeu_epi16(to, p, _mm512_mask_mov_epi32(rounded, is_nan, nan));
}
STK_INLINE STK_PAIRS void vp_store_exactly(uint16_t *to, vf v, vf_part p)
{
    if (__builtin_expect(vp_has_tiny(v), 0))
        vp_store_tiny(to, v, p);
    else
        vp_store_rounded(to, v, p);
}
/* Two registers, side by side. */
STK_INLINE STK_PAIRS void vp_store_two(uint16_t *to, vf v, vf next)
{
    if (__builtin_expect(vp_has_tiny(v) | vp_has_tiny(next), 0)) {
        vp_store_tiny(to, v, 0xffff);
        vp_store_tiny(to + STK_VF, next, 0xffff);
    } else {
        _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(next, v));
    }
}
/* Bit i: number i of 32 is not zero. */
STK_INLINE uint32_t vp_nonzero(const uint16_t *from)
{
    return _mm512_test_epi16_mask(_mm512_loadu_si512(from), _mm512_set1_epi16(0x7fff));
}
/* n <= 32 numbers; behind them fewer than 16 may be spoilt. Short ones by short registers, which seldom cross lines. */
STK_INLINE void vp_copy(uint16_t *to, const uint16_t *from, int64_t n)
{
    const vp_part part = vp_part_of(n);
    if (n <= 8)
        _mm_storeu_si128((__m128i *)(void *)to, _mm_maskz_loadu_epi16((__mmask8)part, from));
    else if (n <= 16)
        _mm256_storeu_si256((__m256i *)(void *)to, _mm256_maskz_loadu_epi16((__mmask16)part, from));
    else
        _mm512_storeu_si512(to, _mm512_maskz_loadu_epi16(part, from));
}
/* Whether this processor has what STK_PAIRS asks for. */
STK_INLINE bool vp_here(void) { return __builtin_cpu_supports("avx512bf16") != 0; }

/* ---- choices: x where a condition holds, else zero ---------------------------------------------------- */
STK_INLINE vf vf_where_above(vf y, float least, vf x)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(y, _mm512_set1_ps(least), _CMP_GT_OQ), x);
}
STK_INLINE vf vf_where_not_below(vf y, float least, vf x)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(y, _mm512_set1_ps(least), _CMP_NLT_UQ), x);
}
STK_INLINE vf vf_where_below(vf y, float most, vf x)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(y, _mm512_set1_ps(most), _CMP_LT_OQ), x);
}
STK_INLINE vf vf_at_most(
    vf x, float most) /* NaN stays; the minimum of the processor makes subnormal numbers zero */
{
    const __m512 limit = _mm512_set1_ps(most);
    return _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, limit, _CMP_GT_OQ), limit);
}

#elif defined(__AVX__)

/* Masked loads are as fast as plain ones, but masked stores are microcode on some machines: stores
 * go by the binary digits of n. */
typedef struct vf_part {
    __m256i mask;
    int64_t n;
} vf_part;
typedef vf_part vd_part;

STK_INLINE vf_part vf_part_of(int64_t n)
{
    static const int32_t window[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return (vf_part){_mm256_loadu_si256((const __m256i *)(const void *)(window + 8 - n)), n};
}
STK_INLINE vf vf_load_part(const float *from, vf_part p)
{
    return _mm256_maskload_ps(from, p.mask);
}
STK_INLINE void vf_store_part(float *to, vf v, vf_part p)
{
    __m128 rest = _mm256_castps256_ps128(v);
    if (p.n == 8) {
        vf_store(to, v);
        return;
    }
    if (p.n & 4) {
        _mm_storeu_ps(to, rest);
        rest = _mm256_extractf128_ps(v, 1);
        to += 4;
    }
    if (p.n & 2) {
        _mm_storel_pi((__m64 *)(void *)to, rest);
        rest = _mm_movehl_ps(rest, rest);
        to += 2;
    }
    if (p.n & 1) _mm_store_ss(to, rest);
}

STK_INLINE vf vf_twice(const float *from)
{
    return _mm256_broadcast_ps((const __m128 *)(const void *)from);
}
STK_INLINE vf vf_halves(vf low, vf high) { return _mm256_blend_ps(low, high, 0xf0); }
STK_INLINE void vf_store_low(float *to, vf v) { _mm_storeu_ps(to, _mm256_castps256_ps128(v)); }
STK_INLINE void vf_store_high(float *to, vf v) { _mm_storeu_ps(to, _mm256_extractf128_ps(v, 1)); }

STK_INLINE vd_part vd_part_of(int64_t n) { return vf_part_of(2 * n); }
STK_INLINE vd vd_load_part(const double *from, vd_part p)
{
    return _mm256_maskload_pd(from, p.mask);
}
STK_INLINE void vd_store_part(double *to, vd v, vd_part p)
{
    vf_store_part((float *)(void *)to, (vf)v, p);
}

STK_INLINE uint32_t vf_nonzero(vf v)
{
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_NEQ_UQ));
}

/* Rows i and i+4 share a register, half each; then 4x4 squares inside the halves. */
STK_INLINE void vf_turn(const float *from, int64_t stride, vf out[4])
{
    __m256 row[4];
    STK_UNROLL for (int i = 0; i < 4; i++)
    {
        const float *at = from + i * stride;
        row[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(at)),
                                      _mm_loadu_ps(at + 4 * stride), 1);
    }
    __m256d low01 = _mm256_castps_pd(_mm256_unpacklo_ps(row[0], row[1]));
    __m256d high01 = _mm256_castps_pd(_mm256_unpackhi_ps(row[0], row[1]));
    __m256d low23 = _mm256_castps_pd(_mm256_unpacklo_ps(row[2], row[3]));
    __m256d high23 = _mm256_castps_pd(_mm256_unpackhi_ps(row[2], row[3]));
    out[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(low01, low23));
    out[1] = _mm256_castpd_ps(_mm256_unpackhi_pd(low01, low23));
    out[2] = _mm256_castpd_ps(_mm256_unpacklo_pd(high01, high23));
    out[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(high01, high23));
}

/* Sums of four registers, half by half: both halves end as {sum r0, r1, r2, r3}. */
STK_INLINE __m256 vf_half_sums(const vf r[4])
{
    __m256 s01 = _mm256_add_ps(_mm256_unpacklo_ps(r[0], r[1]), _mm256_unpackhi_ps(r[0], r[1]));
    __m256 s23 = _mm256_add_ps(_mm256_unpacklo_ps(r[2], r[3]), _mm256_unpackhi_ps(r[2], r[3]));
    __m256d a = _mm256_castps_pd(s01), b = _mm256_castps_pd(s23);
    return _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(a, b)),
                         _mm256_castpd_ps(_mm256_unpackhi_pd(a, b)));
}
STK_INLINE vf vf_sums(const vf rows[STK_VF])
{
    __m256 a = vf_half_sums(rows), b = vf_half_sums(rows + 4);
    return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}

#else /* four floats or two doubles, in the compiler's own words */

typedef int64_t vf_part, vd_part;

STK_INLINE vf_part vf_part_of(int64_t n) { return n; }
STK_INLINE vf vf_load_part(const float *from, vf_part p)
{
    if (p == 4) return vf_load(from);
    return (vf){from[0], p > 1 ? from[1] : 0.0f, p > 2 ? from[2] : 0.0f, 0.0f};
}
STK_INLINE void vf_store_part(float *to, vf v, vf_part p)
{
    if (p == 4) {
        vf_store(to, v);
        return;
    }
    to[0] = v[0];
    if (p > 1) to[1] = v[1];
    if (p > 2) to[2] = v[2];
}
STK_INLINE vf vf_twice(const float *from) { return (vf){from[0], from[1], from[0], from[1]}; }
STK_INLINE vf vf_halves(vf low, vf high) { return (vf){low[0], low[1], high[2], high[3]}; }
STK_INLINE void vf_store_low(float *to, vf v) { to[0] = v[0], to[1] = v[1]; }
STK_INLINE void vf_store_high(float *to, vf v) { to[0] = v[2], to[1] = v[3]; }
STK_INLINE vd_part vd_part_of(int64_t n) { return n; }
STK_INLINE vd vd_load_part(const double *from, vd_part p)
{
    return p == 2 ? vd_load(from) : (vd){from[0], 0.0};
}
STK_INLINE void vd_store_part(double *to, vd v, vd_part p)
{
    to[0] = v[0];
    if (p == 2) to[1] = v[1];
}

STK_INLINE uint32_t vf_nonzero(vf v)
{
    return (uint32_t)((v[0] != 0) | (v[1] != 0) << 1 | (v[2] != 0) << 2 | (v[3] != 0) << 3);
}
STK_INLINE void vf_turn(const float *from, int64_t stride, vf out[4])
{
    vf a = vf_load(from), b = vf_load(from + stride);
    vf c = vf_load(from + 2 * stride), d = vf_load(from + 3 * stride);
    STK_UNROLL for (int i = 0; i < 4; i++) out[i] = (vf){a[i], b[i], c[i], d[i]};
}
STK_INLINE vf vf_sums(const vf rows[STK_VF])
{
    vf out = {0};
    STK_UNROLL for (int i = 0; i < STK_VF; i++) out[i] =
        (rows[i][0] + rows[i][2]) + (rows[i][1] + rows[i][3]);
    return out;
}

#endif

#if !defined(__AVX512F__)
STK_INLINE int64_t vf_list(uint32_t lanes, int32_t first, int32_t *to)
{
    int64_t count = 0;
    for (; lanes; lanes &= lanes - 1) to[count++] = first + __builtin_ctz(lanes);
    return count;
}
STK_INLINE void vf_squeeze(uint32_t lanes, vf v, float *to)
{
    float all[STK_VF];
    vf_store(all, v);
    for (; lanes; lanes &= lanes - 1) *to++ = all[__builtin_ctz(lanes)];
}
#endif
#if !defined(STK_HAS_STARTS)
#define STK_HAS_STARTS 0
#endif
#if !defined(STK_HAS_PAIRS)
#define STK_HAS_PAIRS 0
#endif

#endif
