/* CRC32C by the CPU's instruction where there is one, by tables elsewhere.
 *
 * The instruction takes 8 bytes with a latency of 3 cycles and can start one each cycle, so three
 * independent stretches are summed at once and joined:
 *
 *     [ a: STRIDE bytes ][ b: STRIDE bytes ][ c: STRIDE bytes ]
 *     crc(a b c) = shift(crc(a), 2 STRIDE) ^ shift(crc(b), STRIDE) ^ crc(c)
 *
 * where shift(x, n) is x carried on through n zero bytes. That is linear in x, so it is four table
 * lookups; the tables are made once by doubling. */
#include "base/crc32c.h"

#include <pthread.h>
#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

enum { LONG_STRIDE = 2048, SHORT_STRIDE = 128 };
static const uint32_t polynomial = 0x82f63b78u; /* reflected */

static uint32_t byte_table[8][256]; /* [k][b]: b followed by k zero bytes */
static uint32_t long_shift[4][256], short_shift[4][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A linear map of 32 bits: column i is the image of bit i. */
static uint32_t apply(const uint32_t map[32], uint32_t x)
{
    uint32_t sum = 0;
    for (int i = 0; x; i++, x >>= 1)
        if (x & 1) sum ^= map[i];
    return sum;
}

static void square(const uint32_t map[32], uint32_t out[32])
{
    for (int i = 0; i < 32; i++) out[i] = apply(map, map[i]);
}

/* The map "carry on through `bytes` zero bytes" (a power of two), spread into byte tables. */
static void make_shift(uint32_t table[4][256], int bytes)
{
    uint32_t map[32], next[32];
    for (int i = 0; i < 32; i++) map[i] = i == 0 ? polynomial : 1u << (i - 1); /* one zero bit */
    for (int bits = 1; bits < bytes * 8; bits *= 2) {
        square(map, next);
        memcpy(map, next, sizeof map);
    }
    for (int k = 0; k < 4; k++)
        for (uint32_t b = 0; b < 256; b++) table[k][b] = apply(map, b << (8 * k));
}

static void make_tables(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
        byte_table[0][b] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (uint32_t b = 0; b < 256; b++) {
            uint32_t before = byte_table[k - 1][b];
            byte_table[k][b] = before >> 8 ^ byte_table[0][before & 255];
        }
    make_shift(long_shift, LONG_STRIDE);
    make_shift(short_shift, SHORT_STRIDE);
}

static uint64_t load64(const unsigned char *at)
{
    uint64_t word;
    memcpy(&word, at, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

uint32_t stk_crc32c_portable(uint32_t crc, const void *data, size_t size)
{
    pthread_once(&once, make_tables);
    const unsigned char *at = data;
    uint32_t sum = ~crc;
    for (; size >= 8; size -= 8, at += 8) {
        uint64_t word = load64(at) ^ sum;
        sum = 0;
        for (int k = 0; k < 8; k++) sum ^= byte_table[7 - k][word >> (8 * k) & 255];
    }
    for (; size > 0; size--, at++) sum = sum >> 8 ^ byte_table[0][(sum ^ *at) & 255];
    return ~sum;
}

#if defined(__x86_64__)
static uint32_t shift(uint32_t table[4][256], uint32_t x)
{
    return table[0][x & 255] ^ table[1][x >> 8 & 255] ^ table[2][x >> 16 & 255] ^ table[3][x >> 24];
}

/* As many blocks of three strides as there are; sum is the inverted checksum. */
__attribute__((target("sse4.2"))) static uint32_t three_at_once(uint32_t sum,
                                                                const unsigned char **data,
                                                                size_t *size, size_t stride,
                                                                uint32_t table[4][256])
{
    const unsigned char *at = *data;
    for (; *size >= 3 * stride; *size -= 3 * stride, at += 3 * stride) {
        uint64_t a = sum, b = 0, c = 0;
        for (size_t i = 0; i < stride; i += 8) {
            a = _mm_crc32_u64(a, load64(at + i));
            b = _mm_crc32_u64(b, load64(at + stride + i));
            c = _mm_crc32_u64(c, load64(at + 2 * stride + i));
        }
        sum = shift(table, shift(table, (uint32_t)a) ^ (uint32_t)b) ^ (uint32_t)c;
    }
    *data = at;
    return sum;
}

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const void *data,
                                                                 size_t size)
{
    const unsigned char *at = data;
    uint32_t sum = ~crc;
    if (size >= 3 * SHORT_STRIDE) {
        pthread_once(&once, make_tables);
        sum = three_at_once(sum, &at, &size, LONG_STRIDE, long_shift);
        sum = three_at_once(sum, &at, &size, SHORT_STRIDE, short_shift);
    }
    uint64_t wide = sum;
    for (; size >= 8; size -= 8, at += 8) wide = _mm_crc32_u64(wide, load64(at));
    sum = (uint32_t)wide;
    for (; size > 0; size--, at++) sum = _mm_crc32_u8(sum, *at);
    return ~sum;
}
#endif

uint32_t stk_crc32c(uint32_t crc, const void *data, size_t size)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2")) return by_instruction(crc, data, size);
#endif
    return stk_crc32c_portable(crc, data, size);
}
