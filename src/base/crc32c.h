/* crc32c.h - the Castagnoli checksum (polynomial 0x1EDC6F41, reflected), as in TFRecord files. */
#ifndef STK_BASE_CRC32C_H
#define STK_BASE_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Checksum of data behind a part whose checksum is `crc` (0 for the first part):
 * stk_crc32c(stk_crc32c(0, a, n), b, m) is that of a and b together. "123456789" gives e3069283. */
uint32_t stk_crc32c(uint32_t crc, const void *data, size_t size);

/* TFRecord stores checksums masked, because a checksum over data that holds checksums is weak. */
static inline uint32_t stk_crc32c_mask(uint32_t crc)
{
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}
static inline uint32_t stk_crc32c_unmask(uint32_t masked)
{
    uint32_t rotated = masked - 0xa282ead8u;
    return (rotated >> 17) | (rotated << 15);
}

/* Tests: the table version, which every machine has. */
uint32_t stk_crc32c_portable(uint32_t crc, const void *data, size_t size);

#endif
