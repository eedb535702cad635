/* CRC32C: published answers, both versions against a bit-by-bit one, any cut. */
#include "check.h"

#include "base/crc32c.h"
#include "base/rng.h"

static uint32_t bit_by_bit(const unsigned char *data, size_t size)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int k = 0; k < 8; k++) crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    }
    return ~crc;
}

TEST(known_answers)
{
    unsigned char block[32];
    CHECK_EQ_I64(stk_crc32c(0, "123456789", 9), 0xe3069283u);
    CHECK_EQ_I64(stk_crc32c(0, "", 0), 0);
    CHECK_EQ_I64(stk_crc32c(0, NULL, 0), 0);
    memset(block, 0, 32); /* RFC 3720, B.4 */
    CHECK_EQ_I64(stk_crc32c(0, block, 32), 0x8a9136aau);
    memset(block, 0xff, 32);
    CHECK_EQ_I64(stk_crc32c(0, block, 32), 0x62a8ab43u);
    for (int i = 0; i < 32; i++) block[i] = (unsigned char)i;
    CHECK_EQ_I64(stk_crc32c(0, block, 32), 0x46dd794eu);
    for (int i = 0; i < 32; i++) block[i] = (unsigned char)(31 - i);
    CHECK_EQ_I64(stk_crc32c(0, block, 32), 0x113fdb5cu);
}

enum { SIZE = 20000 };
static uint32_t storage[SIZE / 4];

TEST(both_versions_at_every_length_and_alignment)
{
    unsigned char *data = (unsigned char *)storage;
    stk_rng_words((stk_rng){1, 1}, 0, SIZE / 4, storage);
    const size_t lengths[] = {0,    1,    7,          8,     9,     15,   16,   100,
                              383,  384,  385,        400,   767,   768,  1000, 6143,
                              6144, 6145, 6143 + 384, 12288, 12300, 19990};
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++)
        for (size_t start = 0; start < 9; start++) {
            uint32_t want = bit_by_bit(data + start, lengths[k]);
            CHECK_EQ_I64(stk_crc32c(0, data + start, lengths[k]), want);
            CHECK_EQ_I64(stk_crc32c_portable(0, data + start, lengths[k]), want);
        }
}

TEST(parts_make_the_whole)
{
    const unsigned char *data = (unsigned char *)storage;
    stk_rng_words((stk_rng){1, 2}, 0, SIZE / 4, storage);
    uint32_t whole = stk_crc32c(0, data, SIZE);
    for (size_t cut = 0; cut <= SIZE; cut += 997) {
        CHECK_EQ_I64(stk_crc32c(stk_crc32c(0, data, cut), data + cut, SIZE - cut), whole);
        CHECK_EQ_I64(stk_crc32c_portable(stk_crc32c_portable(0, data, cut), data + cut, SIZE - cut),
                     whole);
    }
}

TEST(masking_goes_there_and_back)
{
    /* The length field of a record of 0 bytes, as any TFRecord writer stores it. */
    CHECK_EQ_I64(stk_crc32c_mask(stk_crc32c(0, "\0\0\0\0\0\0\0\0", 8)), 0x07980329);
    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t crc = i * 0x9E3779B9u;
        CHECK_EQ_I64(stk_crc32c_unmask(stk_crc32c_mask(crc)), crc);
        CHECK(stk_crc32c_mask(crc) != crc);
    }
}

TEST_MAIN()
