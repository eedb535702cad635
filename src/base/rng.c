/* Filling arrays from streams. Words are made in chunks of blocks and then turned into what is
 * wanted by plain loops, compiled twice so that a CPU with AVX2 has twice the lanes. No FMA in
 * either: the bits are the same. */
#include "base/avx2.h"
#include "base/rng.h"

#include "base/rng_math.h"

#include <math.h>
#include <string.h>

enum {
    LANES = 8,
    CHUNK_BLOCKS = 64,
    CHUNK = CHUNK_BLOCKS * 4 /* words */
};

#if defined(__x86_64__)
#include <immintrin.h>
#endif
static bool narrow_only;
static bool is_wide(void) { return STK_HAS_AVX2() && !narrow_only; }
void stk_rng_force_narrow(bool narrow) { narrow_only = narrow; }

/* `blocks` (a multiple of LANES) blocks from `block` on, four words each, in order. */
static void make_words_base(stk_rng rng, uint64_t block, int64_t blocks, uint32_t *words)
{
    for (int64_t i = 0; i < blocks; i++) stk_rng_block(rng, block + (uint64_t)i, words + 4 * i);
}

#if defined(__x86_64__)
/* Four blocks per register, one word in the low half of each 64-bit lane: the multiplication looks
 * at the low halves only, so the upper ones may hold rubbish until the end. Two registers are in
 * flight, because one multiplication waits for the one before it. */
STK_AVX2 static void make_words_wide(stk_rng rng, uint64_t block, int64_t blocks, uint32_t *words)
{
    const __m256i m0 = _mm256_set1_epi64x(STK_PHILOX_M0), m1 = _mm256_set1_epi64x(STK_PHILOX_M1);
    const __m256i low = _mm256_set1_epi64x(0xffffffff), step = _mm256_setr_epi64x(0, 1, 2, 3);
    __m256i keys[STK_PHILOX_ROUNDS][2];
    uint32_t key[2];
    stk_rng_key(rng.seed, key);
    for (int round = 0; round < STK_PHILOX_ROUNDS; round++) {
        keys[round][0] = _mm256_set1_epi64x(key[0] + (uint32_t)round * STK_PHILOX_W0);
        keys[round][1] = _mm256_set1_epi64x(key[1] + (uint32_t)round * STK_PHILOX_W1);
    }
    for (int64_t done = 0; done < blocks; done += LANES) {
        __m256i c0[2], c1[2], c2[2], c3[2];
        for (int v = 0; v < 2; v++) {
            uint64_t start = block + (uint64_t)done + (uint64_t)v * 4;
            c0[v] = _mm256_add_epi64(_mm256_set1_epi64x((int64_t)start), step);
            c1[v] = _mm256_srli_epi64(c0[v], 32);
            c2[v] = _mm256_set1_epi64x((int64_t)rng.stream);
            c3[v] = _mm256_srli_epi64(c2[v], 32);
        }
        for (int round = 0; round < STK_PHILOX_ROUNDS; round++) {
            const __m256i r0 = keys[round][0], r1 = keys[round][1];
            for (int v = 0; v < 2; v++) {
                __m256i p0 = _mm256_mul_epu32(c0[v], m0), p1 = _mm256_mul_epu32(c2[v], m1);
                c0[v] = _mm256_xor_si256(_mm256_srli_epi64(p1, 32), _mm256_xor_si256(c1[v], r0));
                c2[v] = _mm256_xor_si256(_mm256_srli_epi64(p0, 32), _mm256_xor_si256(c3[v], r1));
                c1[v] = p1;
                c3[v] = p0;
            }
        }
        for (int v = 0; v < 2; v++) { /* lanes of c0 c1 | c2 c3 to rows of four words */
            __m256i a = _mm256_or_si256(_mm256_and_si256(c0[v], low), _mm256_slli_epi64(c1[v], 32));
            __m256i b = _mm256_or_si256(_mm256_and_si256(c2[v], low), _mm256_slli_epi64(c3[v], 32));
            __m256i even = _mm256_unpacklo_epi64(a, b), odd = _mm256_unpackhi_epi64(a, b);
            __m256i *to = (__m256i *)(void *)(words + (done + 4 * v) * 4);
            _mm256_storeu_si256(to, _mm256_permute2x128_si256(even, odd, 0x20));
            _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(even, odd, 0x31));
        }
    }
}
#else
#define make_words_wide make_words_base
#endif

/* What becomes of the words of a chunk. `scale` holds the two numbers of the kind (low and width,
 * mean and deviation ...), `top` the end that must not be reached. */
typedef struct shape {
    double a, b, top;
    uint64_t threshold;
} shape;

STK_ALWAYS_INLINE void words_as_they_are(const uint32_t *words, int64_t n, const shape *s,
                                         void *out)
{
    (void)s;
    memcpy(out, words, (size_t)n * sizeof *words);
}

STK_ALWAYS_INLINE void words_to_uniform(const uint32_t *words, int64_t n, const shape *s, void *out)
{
    float *y = out, low = (float)s->a, width = (float)s->b, top = (float)s->top;
    for (int64_t i = 0; i < n; i++) {
        float v = low + width * stk_word_to_unit(words[i]);
        y[i] = v < top ? v : top;
    }
}

STK_ALWAYS_INLINE void words_to_uniform_f64(const uint32_t *words, int64_t n, const shape *s,
                                            void *out)
{
    double *y = out;
    for (int64_t i = 0; i < n / 2; i++) {
        double u =
            (double)(words[2 * i] >> 5) * 0x1p-27 + (double)(words[2 * i + 1] >> 6) * 0x1p-53;
        double v = s->a + s->b * u;
        y[i] = v < s->top ? v : s->top;
    }
}

STK_ALWAYS_INLINE void words_to_normal(const uint32_t *words, int64_t n, const shape *s, void *out)
{
    float *y = out, mean = (float)s->a, deviation = (float)s->b;
    for (int64_t i = 0; i < n; i += 2) {
        float radius = stk_normal_radius(words[i]), cosine, sine;
        stk_turn(words[i + 1], &cosine, &sine);
        y[i] = mean + deviation * (radius * cosine);
        y[i + 1] = mean + deviation * (radius * sine);
    }
}

STK_ALWAYS_INLINE void words_to_normal_f64(const uint32_t *words, int64_t n, const shape *s,
                                           void *out)
{
    double *y = out;
    for (int64_t i = 0; i < n / 2; i += 2) { /* two elements from one block */
        double radius = stk_normal_radius_f64(words[2 * i], words[2 * i + 1]), cosine, sine;
        stk_turn_f64(words[2 * i + 2], words[2 * i + 3], &cosine, &sine);
        y[i] = s->a + s->b * (radius * cosine);
        y[i + 1] = s->a + s->b * (radius * sine);
    }
}

STK_ALWAYS_INLINE void words_to_bernoulli(const uint32_t *words, int64_t n, const shape *s,
                                          void *out)
{
    uint8_t *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = words[i] < s->threshold;
}

/* Chunks over [first, first + n): whole blocks are made, then the wanted part is copied out. */
#define FILL(name, convert, type, per_block)                                                       \
    STK_ALWAYS_INLINE void name##_body(stk_rng rng, int64_t first, int64_t n, const shape *s,      \
                                       type *out, bool wide)                                       \
    {                                                                                              \
        uint32_t words[CHUNK];                                                                     \
        type values[CHUNK * (per_block) / 4];                                                      \
        while (n > 0) {                                                                            \
            int64_t block = first / (per_block), skip = first % (per_block);                       \
            int64_t blocks = (skip + n + (per_block)-1) / (per_block);                             \
            if (blocks > CHUNK_BLOCKS) blocks = CHUNK_BLOCKS;                                      \
            blocks = (blocks + LANES - 1) / LANES * LANES;                                         \
            if (wide)                                                                              \
                make_words_wide(rng, (uint64_t)block, blocks, words);                              \
            else                                                                                   \
                make_words_base(rng, (uint64_t)block, blocks, words);                              \
            convert(words, blocks * 4, s, values);                                                 \
            int64_t count = blocks * (per_block)-skip;                                             \
            if (count > n) count = n;                                                              \
            memcpy(out, values + skip, (size_t)count * sizeof *out);                               \
            out += count;                                                                          \
            first += count;                                                                        \
            n -= count;                                                                            \
        }                                                                                          \
    }                                                                                              \
    static void name##_base(stk_rng rng, int64_t first, int64_t n, const shape *s, type *out)      \
    {                                                                                              \
        name##_body(rng, first, n, s, out, false);                                                 \
    }                                                                                              \
    STK_AVX2 static void name##_wide(stk_rng rng, int64_t first, int64_t n, const shape *s,        \
                                     type *out)                                                    \
    {                                                                                              \
        name##_body(rng, first, n, s, out, true);                                                  \
    }                                                                                              \
    static void name(stk_rng rng, int64_t first, int64_t n, const shape *s, type *out)             \
    {                                                                                              \
        if (is_wide())                                                                             \
            name##_wide(rng, first, n, s, out);                                                    \
        else                                                                                       \
            name##_base(rng, first, n, s, out);                                                    \
    }

FILL(fill_words, words_as_they_are, uint32_t, 4)
FILL(fill_uniform, words_to_uniform, float, 4)
FILL(fill_uniform_f64, words_to_uniform_f64, double, 2)
FILL(fill_normal, words_to_normal, float, 4)
FILL(fill_normal_f64, words_to_normal_f64, double, 2)
FILL(fill_bernoulli, words_to_bernoulli, uint8_t, 4)

void stk_rng_words(stk_rng rng, int64_t first, int64_t n, uint32_t *out)
{
    fill_words(rng, first, n, &(shape){0}, out);
}

/* The sum low + width * u may round up to high, which is outside: the number below is taken. */
void stk_rng_uniform(stk_rng rng, int64_t first, int64_t n, float low, float high, float *out)
{
    if (!(high > low)) high = low;
    float top = high > low ? nextafterf(high, low) : low;
    fill_uniform(rng, first, n, &(shape){.a = low, .b = (double)(high - low), .top = top}, out);
}

void stk_rng_uniform_f64(stk_rng rng, int64_t first, int64_t n, double low, double high,
                         double *out)
{
    if (!(high > low)) high = low;
    double top = high > low ? nextafter(high, low) : low;
    fill_uniform_f64(rng, first, n, &(shape){.a = low, .b = high - low, .top = top}, out);
}

void stk_rng_normal(stk_rng rng, int64_t first, int64_t n, float mean, float deviation, float *out)
{
    fill_normal(rng, first, n, &(shape){.a = mean, .b = deviation}, out);
}

void stk_rng_normal_f64(stk_rng rng, int64_t first, int64_t n, double mean, double deviation,
                        double *out)
{
    fill_normal_f64(rng, first, n, &(shape){.a = mean, .b = deviation}, out);
}

void stk_rng_bernoulli(stk_rng rng, int64_t first, int64_t n, double probability, uint8_t *out)
{
    double scaled = probability * 0x1p32;
    uint64_t threshold = !(scaled > 0)      ? 0
                         : scaled >= 0x1p32 ? (uint64_t)1 << 32
                                            : (uint64_t)(scaled + 0.5);
    fill_bernoulli(rng, first, n, &(shape){.threshold = threshold}, out);
}

/* ---- kinds that may draw again -------------------------------------------------------------- */

/* Block `attempt` (1, 2, ...) of the words that belong to this element alone. */
static void spare_words(stk_rng rng, int64_t element, uint64_t attempt, uint32_t out[4])
{
    rng.seed ^= stk_mix64(attempt * 0xA0761D6478BD642Fu);
    stk_rng_block(rng, (uint64_t)element, out);
}

void stk_rng_truncated(stk_rng rng, int64_t first, int64_t n, float mean, float deviation,
                       float *out)
{
    stk_rng_normal(rng, first, n, 0, 1, out);
    for (int64_t i = 0; i < n; i++) {
        float v = out[i];
        for (uint64_t attempt = 1; !(v >= -2 && v <= 2); attempt++) {
            uint32_t words[4];
            float draws[4];
            spare_words(rng, first + i, attempt, words);
            words_to_normal(words, 4, &(shape){.a = 0, .b = 1}, draws);
            for (int k = 0; k < 4 && !(v >= -2 && v <= 2); k++) v = draws[k];
        }
        out[i] = mean + deviation * v;
    }
}

/* Unbiased: of the 2^32 (2^64) words, those that would make some results likelier are refused
 * (Lemire, "Fast random integer generation in an interval", 2019). width = 0 means 2^64. */
static uint64_t below(stk_rng rng, int64_t element, uint32_t word, uint32_t more, uint64_t width)
{
    uint32_t spare[4];
    if (width != 0 && width <= (uint64_t)1 << 32) {
        uint64_t product = (uint64_t)word * width;
        if ((uint32_t)product < width) {
            uint64_t refused = ((uint64_t)1 << 32) % width;
            for (uint64_t attempt = 0; (uint32_t)product < refused; attempt++) {
                if (attempt % 4 == 0) spare_words(rng, element, attempt / 4 + 1, spare);
                product = spare[attempt % 4] * width;
            }
        }
        return product >> 32;
    }
    uint64_t both = (uint64_t)more << 32 | word;
    if (width == 0) return both;
    unsigned __int128 product = (unsigned __int128)both * width;
    if ((uint64_t)product < width) {
        uint64_t refused = (0 - width) % width;
        for (uint64_t attempt = 0; (uint64_t)product < refused; attempt++) {
            if (attempt % 2 == 0) spare_words(rng, element, attempt / 2 + 1, spare);
            both = (uint64_t)spare[attempt % 2 * 2] << 32 | spare[attempt % 2 * 2 + 1];
            product = (unsigned __int128)both * width;
        }
    }
    return (uint64_t)(product >> 64);
}

void stk_rng_int32(stk_rng rng, int64_t first, int64_t n, int32_t low, int32_t high, int32_t *out)
{
    uint64_t width = high > low ? (uint64_t)((int64_t)high - low) : 1;
    uint32_t words[CHUNK];
    for (int64_t done = 0; done < n; done += CHUNK) {
        int64_t count = n - done < CHUNK ? n - done : CHUNK;
        stk_rng_words(rng, first + done, count, words);
        for (int64_t i = 0; i < count; i++)
            out[done + i] =
                (int32_t)(low + (int64_t)below(rng, first + done + i, words[i], 0, width));
    }
}

/* Narrow ranges use one word per element, as above; wide ones a second one from the spare words. */
void stk_rng_int64(stk_rng rng, int64_t first, int64_t n, int64_t low, int64_t high, int64_t *out)
{
    uint64_t width = high > low ? (uint64_t)high - (uint64_t)low : 1;
    bool wide = width > (uint64_t)1 << 32;
    uint32_t words[CHUNK];
    for (int64_t done = 0; done < n; done += CHUNK) {
        int64_t count = n - done < CHUNK ? n - done : CHUNK;
        stk_rng_words(rng, first + done, count, words);
        for (int64_t i = 0; i < count; i++) {
            uint32_t spare[4] = {0};
            if (wide) spare_words(rng, first + done + i, 0x100000000u, spare);
            uint64_t v = below(rng, first + done + i, words[i], spare[0], width);
            out[done + i] = (int64_t)((uint64_t)low + v);
        }
    }
}

/* ---- permutations --------------------------------------------------------------------------- */

void stk_rng_permutation(stk_rng rng, int64_t n, int64_t *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = i;
    uint32_t words[CHUNK];
    for (int64_t i = 1; i < n; i++) { /* element i changes places with one of 0..i */
        if ((i - 1) % CHUNK == 0) stk_rng_words(rng, i, n - i < CHUNK ? n - i : CHUNK, words);
        uint32_t spare[4] = {0};
        if (i >= (int64_t)1 << 32) spare_words(rng, i, 0x100000000u, spare);
        int64_t j = (int64_t)below(rng, i, words[(i - 1) % CHUNK], spare[0], (uint64_t)i + 1);
        int64_t swap = out[i];
        out[i] = out[j];
        out[j] = swap;
    }
}

stk_perm stk_perm_init(uint64_t seed, int64_t n)
{
    stk_perm perm = {.n = n};
    int32_t bits = 2; /* both halves have one bit or more */
    while (bits < 63 && ((int64_t)1 << bits) < n) bits++;
    perm.low_bits = bits / 2;
    perm.high_bits = bits - bits / 2;
    perm.rounds = bits < 16 ? STK_PERM_ROUNDS : STK_PERM_ROUNDS / 2; /* few bits mix slowly */
    for (int i = 0; i < STK_PERM_ROUNDS; i++)
        perm.key[i] = stk_mix64(seed + (uint64_t)(i + 1) * 0x9E3779B97F4A7C15u);
    return perm;
}

int64_t stk_perm_get(const stk_perm *perm, int64_t i)
{
    uint64_t low_mask = ((uint64_t)1 << perm->low_bits) - 1;
    uint64_t high_mask = ((uint64_t)1 << perm->high_bits) - 1, x = (uint64_t)i;
    do { /* each half in turn is changed by a hash of the other: a bijection whatever the hash */
        uint64_t low = x & low_mask, high = x >> perm->low_bits;
        for (int round = 0; round < perm->rounds; round += 2) {
            low ^= stk_mix64(high + perm->key[round]) & low_mask;
            high ^= stk_mix64(low + perm->key[round + 1]) & high_mask;
        }
        x = high << perm->low_bits | low;
    } while (x >= (uint64_t)perm->n);
    return (int64_t)x;
}

int64_t stk_perm_at(uint64_t seed, int64_t n, int64_t i)
{
    stk_perm perm = stk_perm_init(seed, n);
    return stk_perm_get(&perm, i);
}
