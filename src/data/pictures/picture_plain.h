/* picture_plain.h - what the own decoders (GIF, BMP) share: from one colour per pixel to channels. */
#ifndef STK_DATA_PICTURE_PLAIN_H
#define STK_DATA_PICTURE_PLAIN_H

#include <stdint.h>

static inline uint32_t stk_le16(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}
static inline uint32_t stk_le32(const uint8_t *at) { return stk_le16(at) | stk_le16(at + 2) << 16; }

/* One pixel; gray by the weights of JPEG. */
static inline void stk_put_pixel(uint8_t *to, int32_t channels, const uint8_t rgba[4])
{
    if (channels == 1) {
        to[0] = (uint8_t)((299 * rgba[0] + 587 * rgba[1] + 114 * rgba[2] + 500) / 1000);
        return;
    }
    to[0] = rgba[0];
    to[1] = rgba[1];
    to[2] = rgba[2];
    if (channels == 4) to[3] = rgba[3];
}

#endif
