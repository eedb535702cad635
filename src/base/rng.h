/* rng.h - random numbers as a function: element i of a stream is the same whoever asks for it.
 *
 * The generator is Philox4x32-10, a keyed bijection of a 128-bit counter (Salmon et al., "Parallel
 * random numbers: as easy as 1, 2, 3", 2011). There is no state to carry or to lock: a piece
 * [first, first + n) of a stream can be made by any thread, in any order, with the same bits.
 *
 *     key      [0..1]  seed, mixed by stk_rng_key
 *     counter  [0..1]  block: low and high half of (element / elements per block)
 *              [2..3]  stream: which op, which step
 *     result   [0..3]  four words; element e of a 32-bit kind is word e % 4 of block e / 4
 *
 * Kinds that may have to draw again (integers, truncated normals) take further words from blocks
 * that belong to that element alone, under keys made from the seed and the number of the attempt.
 * All arithmetic is +, -, *, / and square root, which round alike everywhere; libm does not. */
#ifndef STK_BASE_RNG_H
#define STK_BASE_RNG_H

#include <stdbool.h>
#include <stdint.h>

typedef struct stk_rng {
    uint64_t seed, stream;
} stk_rng;

enum { STK_PHILOX_ROUNDS = 10 };
#define STK_PHILOX_M0 0xD2511F53u
#define STK_PHILOX_M1 0xCD9E8D57u
#define STK_PHILOX_W0 0x9E3779B9u
#define STK_PHILOX_W1 0xBB67AE85u

static inline void stk_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4])
{
    uint32_t k0 = key[0], k1 = key[1];
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    for (int round = 0; round < STK_PHILOX_ROUNDS; round++) {
        uint64_t p0 = (uint64_t)STK_PHILOX_M0 * c0, p1 = (uint64_t)STK_PHILOX_M1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += STK_PHILOX_W0;
        k1 += STK_PHILOX_W1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* A mix of 64 bits in which every bit of the result hangs on every bit of x; a bijection. */
static inline uint64_t stk_mix64(uint64_t x)
{
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93u;
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93u;
    return x ^ x >> 32;
}

/* The key of a seed, so that seeds 1, 2, 3 are as good as any. */
static inline void stk_rng_key(uint64_t seed, uint32_t key[2])
{
    uint64_t mixed = stk_mix64(seed + 0x9E3779B97F4A7C15u);
    key[0] = (uint32_t)mixed;
    key[1] = (uint32_t)(mixed >> 32);
}

/* The four words of one block: what a kernel needs that makes its numbers on the fly. */
static inline void stk_rng_block(stk_rng rng, uint64_t block, uint32_t out[4])
{
    uint32_t key[2];
    stk_rng_key(rng.seed, key);
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)rng.stream,
                                 (uint32_t)(rng.stream >> 32)};
    stk_philox(key, counter, out);
}

/* 24 bits of the word: [0, 1). */
static inline float stk_word_to_unit(uint32_t word) { return (float)(word >> 8) * 0x1p-24f; }

/* Elements first .. first + n - 1 of the stream into out. n <= 0 does nothing. */
void stk_rng_words(stk_rng rng, int64_t first, int64_t n, uint32_t *out);
void stk_rng_uniform(stk_rng rng, int64_t first, int64_t n, float low, float high, float *out);
void stk_rng_uniform_f64(stk_rng rng, int64_t first, int64_t n, double low, double high,
                         double *out); /* 53 bits; [low, high), as above */
/* Integers in [low, high), each exactly as likely; high <= low gives low. */
void stk_rng_int32(stk_rng rng, int64_t first, int64_t n, int32_t low, int32_t high, int32_t *out);
void stk_rng_int64(stk_rng rng, int64_t first, int64_t n, int64_t low, int64_t high, int64_t *out);
void stk_rng_normal(stk_rng rng, int64_t first, int64_t n, float mean, float deviation, float *out);
void stk_rng_normal_f64(stk_rng rng, int64_t first, int64_t n, double mean, double deviation,
                        double *out);
/* Normal, drawn again until it is within two deviations of the mean. */
void stk_rng_truncated(stk_rng rng, int64_t first, int64_t n, float mean, float deviation,
                       float *out);
/* 1 with this probability, else 0. 0 and 1 are exact. */
void stk_rng_bernoulli(stk_rng rng, int64_t first, int64_t n, double probability, uint8_t *out);
/* 0 .. n-1 in random order, every order as likely. Needs the whole array; see stk_perm otherwise. */
void stk_rng_permutation(stk_rng rng, int64_t n, int64_t *out);

/* Tests: do without AVX2, to show that the bits do not change. Not while others draw. */
void stk_rng_force_narrow(bool narrow);

/* A permutation that needs no array: at(i) costs about 30 ns for any i of any n. A small cipher
 * over the smallest power of two that holds n, walked until it lands inside. */
enum { STK_PERM_ROUNDS = 16 };
typedef struct stk_perm {
    int64_t n;
    int32_t low_bits, high_bits, rounds;
    uint64_t key[STK_PERM_ROUNDS];
} stk_perm;
stk_perm stk_perm_init(uint64_t seed, int64_t n);
int64_t stk_perm_get(const stk_perm *perm, int64_t i);    /* 0 <= i < n */
int64_t stk_perm_at(uint64_t seed, int64_t n, int64_t i); /* both in one */

#endif
