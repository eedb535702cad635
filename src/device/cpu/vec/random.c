/* Uniform, normal and Bernoulli numbers: words in chunks that stay in L1, then turned into what is wanted.
 *
 * Floats must come out as from base/rng.c, to the bit and on every ISA, so this file is compiled without contraction
 * to fused multiply-add (see CMakeLists.txt). */
#include "device/cpu/vec/random.h"

#include "base/rng_math.h"
#include "device/cpu/vec/philox.h"

enum {
    BLOCKS = 64, /* a multiple of every STK_PHILOX_STEP */
    CHUNK = BLOCKS * 4,
};

/* turn(words, count, to) makes `count` elements, a multiple of 4: where a run begins or ends inside a block, the whole
 * block is made elsewhere and the wanted part copied. */
#define IN_CHUNKS(type, turn)                                                                      \
    do {                                                                                           \
        uint32_t words[CHUNK];                                                                     \
        type surplus[CHUNK];                                                                       \
        while (n > 0) {                                                                            \
            int64_t skip = first & 3, blocks = (skip + n + 3) >> 2;                                \
            if (blocks > BLOCKS) blocks = BLOCKS;                                                  \
            int64_t made = (blocks + STK_PHILOX_STEP - 1) / STK_PHILOX_STEP * STK_PHILOX_STEP;     \
            stk_philox_words(rng, (uint64_t)(first >> 2), made, words);                            \
            int64_t count = blocks * 4 - skip < n ? blocks * 4 - skip : n;                         \
            if (skip == 0 && count % 4 == 0) {                                                     \
                turn(words, count, out);                                                           \
            } else {                                                                               \
                turn(words, blocks * 4, surplus);                                                  \
                memcpy(out, surplus + skip, (size_t)count * sizeof *out);                          \
            }                                                                                      \
            out += count;                                                                          \
            first += count;                                                                        \
            n -= count;                                                                            \
        }                                                                                          \
    } while (0)

static void uniform(stk_rng rng, int64_t first, int64_t n, float low, float high, float *out)
{
    if (!(high > low)) high = low;
    float top = high > low ? nextafterf(high, low) : low, width = high - low;
#define TO_UNIFORM(from, count, to)                                                                \
    for (int64_t i = 0; i < (count); i++) {                                                        \
        float v = low + width * stk_word_to_unit((from)[i]);                                       \
        (to)[i] = v < top ? v : top;                                                               \
    }
    IN_CHUNKS(float, TO_UNIFORM);
}

static void normal(stk_rng rng, int64_t first, int64_t n, float mean, float deviation, float *out)
{
#define TO_NORMAL(from, count, to)                                                                 \
    for (int64_t i = 0; i < (count); i += 2) {                                                     \
        float radius = stk_normal_radius((from)[i]), cosine, sine;                                 \
        stk_turn((from)[i + 1], &cosine, &sine);                                                   \
        (to)[i] = mean + deviation * (radius * cosine);                                            \
        (to)[i + 1] = mean + deviation * (radius * sine);                                          \
    }
    IN_CHUNKS(float, TO_NORMAL);
}

static void bernoulli(stk_rng rng, int64_t first, int64_t n, double probability, uint8_t *out)
{
    double scaled = probability * 0x1p32 + 0.5;
    if (!(probability > 0) || scaled >= 0x1p32) {
        memset(out, probability > 0, (size_t)n);
        return;
    }
    uint32_t threshold = (uint32_t)scaled;
#define TO_BERNOULLI(from, count, to)                                                              \
    for (int64_t i = 0; i < (count); i++) (to)[i] = (from)[i] < threshold;
    IN_CHUNKS(uint8_t, TO_BERNOULLI);
}

const stk_vec_random STK_VEC(stk_vec_random) = {
    .uniform = uniform,
    .normal = normal,
    .bernoulli = bernoulli,
};
