/* tfrecord.h - the framing of TFRecord files.
 *
 *     0   8   length of the data, little endian
 *     8   4   masked CRC32C of these 8 bytes
 *    12   n   data
 *    12+n 4   masked CRC32C of the data
 *
 * Nothing marks the beginning of a record, but 8 bytes whose checksum follows them are one with a
 * chance of error of 2^-32 per place: that is how reading finds its way again after damage. */
#ifndef STK_DATA_TFRECORD_H
#define STK_DATA_TFRECORD_H

#include "base/crc32c.h"
#include "stoker/records.h"

#include <string.h>

enum { STK_FRAME_HEAD = 12, STK_FRAME_TAIL = 4, STK_FRAME = 16 };

static inline uint32_t stk_little32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}
static inline uint64_t stk_little64(const uint8_t *at)
{
    return stk_little32(at) | (uint64_t)stk_little32(at + 4) << 32;
}
static inline void stk_put_little(uint8_t *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) at[i] = (uint8_t)(value >> (8 * i));
}

/* Whether 12 bytes are the head of a record. */
static inline bool stk_frame_head_fits(const uint8_t *at)
{
    return stk_crc32c_unmask(stk_little32(at + 8)) == stk_crc32c(0, at, 8);
}
/* Head and tail of a record. */
static inline void stk_frame_make(const void *data, size_t size, uint8_t head[STK_FRAME_HEAD],
                                  uint8_t tail[STK_FRAME_TAIL])
{
    stk_put_little(head, size, 8);
    stk_put_little(head + 8, stk_crc32c_mask(stk_crc32c(0, head, 8)), 4);
    stk_put_little(tail, stk_crc32c_mask(stk_crc32c(0, data, size)), 4);
}

/* Offsets of all records of a plain file: count of them, freed with stk_free. Stored in the user's
 * cache, or beside the file, when the file is large enough for that to pay. Records are found by
 * their heads alone; one damaged head fails, with its offset. */
typedef struct stk_record_index {
    uint64_t *offset;
    int64_t count, capacity;
} stk_record_index;
stk_status stk_record_index_get(const char *path, const uint8_t *data, size_t size,
                                int64_t changed_ns, bool beside, stk_record_index *out,
                                stk_error *err);

#endif
