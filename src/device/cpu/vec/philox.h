/* philox.h - the generator of base/rng.h for one register full of blocks at a time.
 *
 * The four words of STK_VF blocks lie in four registers, one block per lane. Which lane holds which block is chosen so
 * that the interleaving at the end, which every ISA has within 128 bits only, gives the words in order. */
#ifndef STK_DEVICE_CPU_VEC_PHILOX_H
#define STK_DEVICE_CPU_VEC_PHILOX_H

#include "base/rng.h"
#include "device/cpu/vec/vec.h"

#include <string.h>

#if defined(__SSE4_1__)
#include <immintrin.h>
#endif

typedef uint32_t stk_pw __attribute__((vector_size(STK_VF * 4)));

#define STK_PHILOX_INLINE static inline __attribute__((always_inline))

#if defined(__AVX512F__)
#define STK_PHILOX_REG            __m512i
#define STK_PHILOX_MM(word)       _mm512_##word
#define STK_PHILOX_STORE(p, v)    _mm512_storeu_si512((p), (v))
#define STK_PHILOX_ODD(even, odd) _mm512_mask_blend_epi32(0xaaaa, (even), (odd))
#elif defined(__AVX2__)
#define STK_PHILOX_REG            __m256i
#define STK_PHILOX_MM(word)       _mm256_##word
#define STK_PHILOX_STORE(p, v)    _mm256_storeu_si256((__m256i *)(void *)(p), (v))
#define STK_PHILOX_ODD(even, odd) _mm256_blend_epi32((even), (odd), 0xaa)
#elif defined(__SSE4_1__)
#define STK_PHILOX_REG            __m128i
#define STK_PHILOX_MM(word)       _mm_##word
#define STK_PHILOX_STORE(p, v)    _mm_storeu_si128((__m128i *)(void *)(p), (v))
#define STK_PHILOX_ODD(even, odd) _mm_blend_epi16((even), (odd), 0xcc)
#endif

#if defined(STK_PHILOX_REG)
/* High halves of the products: even and odd lanes apart, since products are twice as wide. */
STK_PHILOX_INLINE stk_pw stk_mul_high(stk_pw a, uint32_t b)
{
    STK_PHILOX_REG x = (STK_PHILOX_REG)a, m = STK_PHILOX_MM(set1_epi32)((int)b);
    STK_PHILOX_REG even = STK_PHILOX_MM(mul_epu32)(x, m);
    STK_PHILOX_REG odd = STK_PHILOX_MM(mul_epu32)(STK_PHILOX_MM(srli_epi64)(x, 32), m);
    return (stk_pw)STK_PHILOX_ODD(STK_PHILOX_MM(srli_epi64)(even, 32), odd);
}

STK_PHILOX_INLINE void stk_store_blocks(uint32_t *out, stk_pw c0, stk_pw c1, stk_pw c2, stk_pw c3)
{
    STK_PHILOX_REG a = STK_PHILOX_MM(unpacklo_epi32)((STK_PHILOX_REG)c0, (STK_PHILOX_REG)c1);
    STK_PHILOX_REG b = STK_PHILOX_MM(unpackhi_epi32)((STK_PHILOX_REG)c0, (STK_PHILOX_REG)c1);
    STK_PHILOX_REG c = STK_PHILOX_MM(unpacklo_epi32)((STK_PHILOX_REG)c2, (STK_PHILOX_REG)c3);
    STK_PHILOX_REG d = STK_PHILOX_MM(unpackhi_epi32)((STK_PHILOX_REG)c2, (STK_PHILOX_REG)c3);
    STK_PHILOX_STORE(out, STK_PHILOX_MM(unpacklo_epi64)(a, c));
    STK_PHILOX_STORE(out + STK_VF, STK_PHILOX_MM(unpackhi_epi64)(a, c));
    STK_PHILOX_STORE(out + 2 * STK_VF, STK_PHILOX_MM(unpacklo_epi64)(b, d));
    STK_PHILOX_STORE(out + 3 * STK_VF, STK_PHILOX_MM(unpackhi_epi64)(b, d));
}
#else
STK_PHILOX_INLINE stk_pw stk_mul_high(stk_pw a, uint32_t b)
{
    stk_pw high = {0};
    for (int i = 0; i < STK_VF; i++) high[i] = (uint32_t)((uint64_t)a[i] * b >> 32);
    return high;
}

STK_PHILOX_INLINE void stk_store_blocks(uint32_t *out, stk_pw c0, stk_pw c1, stk_pw c2, stk_pw c3)
{
    for (int i = 0; i < STK_VF; i++) {
        uint32_t *to = out + 4 * (i % 4 * (STK_VF / 4) + i / 4);
        to[0] = c0[i];
        to[1] = c1[i];
        to[2] = c2[i];
        to[3] = c3[i];
    }
}
#endif

/* Two registers full of blocks at once: the rounds of one hide the latency of the other. */
enum { STK_PHILOX_TWINS = 2, STK_PHILOX_STEP = STK_PHILOX_TWINS * STK_VF };

/* `blocks` (a multiple of STK_PHILOX_STEP) blocks from `block` on, four words each, in order. */
STK_PHILOX_INLINE void stk_philox_words(stk_rng rng, uint64_t block, int64_t blocks, uint32_t *out)
{
    uint32_t key[2], k0[STK_PHILOX_ROUNDS], k1[STK_PHILOX_ROUNDS];
    stk_pw lane = {0};
    stk_rng_key(rng.seed, key);
    for (uint32_t r = 0; r < STK_PHILOX_ROUNDS; r++) {
        k0[r] = key[0] + r * STK_PHILOX_W0;
        k1[r] = key[1] + r * STK_PHILOX_W1;
    }
    for (uint32_t i = 0; i < STK_VF; i++) lane[i] = i % 4 * (STK_VF / 4) + i / 4;
    for (int64_t done = 0; done < blocks; done += STK_PHILOX_STEP) {
        stk_pw c0[STK_PHILOX_TWINS], c1[STK_PHILOX_TWINS], c2[STK_PHILOX_TWINS],
            c3[STK_PHILOX_TWINS];
#pragma GCC unroll 2
        for (int t = 0; t < STK_PHILOX_TWINS; t++) {
            uint64_t at = block + (uint64_t)done + (uint64_t)(t * STK_VF);
            c0[t] = lane + (uint32_t)at;
            c1[t] = (stk_pw){0} + (uint32_t)(at >> 32) - (stk_pw)(c0[t] < lane); /* the carry */
            c2[t] = (stk_pw){0} + (uint32_t)rng.stream;
            c3[t] = (stk_pw){0} + (uint32_t)(rng.stream >> 32);
        }
#pragma GCC unroll 10
        for (int r = 0; r < STK_PHILOX_ROUNDS; r++)
#pragma GCC unroll 2
            for (int t = 0; t < STK_PHILOX_TWINS; t++) {
                stk_pw h0 = stk_mul_high(c0[t], STK_PHILOX_M0), l0 = c0[t] * STK_PHILOX_M0;
                stk_pw h1 = stk_mul_high(c2[t], STK_PHILOX_M1), l1 = c2[t] * STK_PHILOX_M1;
                c0[t] = h1 ^ c1[t] ^ k0[r];
                c1[t] = l1;
                c2[t] = h0 ^ c3[t] ^ k1[r];
                c3[t] = l0;
            }
#pragma GCC unroll 2
        for (int t = 0; t < STK_PHILOX_TWINS; t++)
            stk_store_blocks(out + 4 * (done + t * STK_VF), c0[t], c1[t], c2[t], c3[t]);
    }
}

#endif
