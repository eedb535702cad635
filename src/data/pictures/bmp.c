/* BMP, uncompressed: 8 bits with a palette, 24 and 32 bits. Where nobody asks for a number of channels, 8 bits are one
 * channel of the bytes as they stand, as for TensorFlow; 3 or 4 channels are the palette's colours.
 *
 *      0  2  "BM"                       14  4  size of this header, at least 40
 *     10  4  offset of the pixels       18  4  width     22  4  height (negative: top row first)
 *                                       28  2  bits      30  4  compression (0; 3 = bit fields)
 *                                       46  4  colours of the palette (0: all)
 *     palette: blue, green, red, 0 each; pixels: blue, green, red(, alpha); rows end at a multiple
 *     of 4 bytes */
#include "data/pictures/picture.h"
#include "data/pictures/picture_plain.h"

#include <string.h>

typedef struct head {
    int64_t height, width;
    bool top_down;
    uint32_t bits, colours;
    const uint8_t *palette, *pixels;
    size_t stride;
} head;

static stk_status read_head(const uint8_t *data, size_t size, const stk_picture_options *o, head *h,
                            stk_error *err)
{
    if (size < 54) return stk_fail(err, STK_ERR_FORMAT, "BMP: cut short, %zu bytes", size);
    uint32_t offset = stk_le32(data + 10), header = stk_le32(data + 14);
    int32_t width = (int32_t)stk_le32(data + 18), height = (int32_t)stk_le32(data + 22);
    uint32_t packing = stk_le32(data + 30);
    h->bits = stk_le16(data + 28);
    h->top_down = height < 0;
    h->height = height < 0 ? -(int64_t)height : height;
    h->width = width;
    if (header < 40 || header > size - 14)
        return stk_fail(err, STK_ERR_UNSUPPORTED,
                        "BMP: its header has %u bytes; 40 and more are read", header);
    if ((h->bits != 8 && h->bits != 24 && h->bits != 32) ||
        (packing != 0 && !(packing == 3 && h->bits == 32)))
        return stk_fail(
            err, STK_ERR_UNSUPPORTED,
            "BMP: %u bits per pixel with compression %u; uncompressed 8, 24 and 32 bits "
            "are read",
            h->bits, packing);
    STK_TRY(stk_picture_check_size("BMP", h->height, h->width, o, err));
    h->stride = ((size_t)h->width * h->bits + 31) / 32 * 4;
    if (offset > size || h->stride * (size_t)h->height > size - offset)
        return stk_fail(err, STK_ERR_FORMAT, "BMP: cut short, %zu bytes for %lld x %lld pixels",
                        size, (long long)h->width, (long long)h->height);
    h->pixels = data + offset;
    h->colours = stk_le32(data + 46);
    if (h->colours == 0 || h->colours > 256) h->colours = 256;
    h->palette = data + 14 + header;
    if (h->bits == 8 && (size_t)h->colours * 4 > size - 14 - header)
        return stk_fail(err, STK_ERR_FORMAT, "BMP: its palette is cut short");
    return STK_OK;
}

stk_status stk_bmp_probe(const uint8_t *data, size_t size, stk_picture_info *info, stk_error *err)
{
    head h = {0};
    stk_picture_options o = stk_picture_options_defaults();
    STK_TRY(read_head(data, size, &o, &h, err));
    info->height = h.height;
    info->width = h.width;
    info->channels = (int32_t)h.bits / 8;
    return STK_OK;
}

stk_status stk_bmp_decode(const uint8_t *data, size_t size, const stk_picture_options *o,
                          stk_tensor **out, stk_error *err)
{
    head h = {0};
    STK_TRY(read_head(data, size, o, &h, err));
    int32_t channels = o->channels ? o->channels : (int32_t)h.bits / 8;
    STK_TRY(stk_tensor_raw(STK_U8, 3, (int64_t[]){h.height, h.width, channels}, out, err));
    uint8_t *to = (*out)->data;
    for (int64_t y = 0; y < h.height; y++) {
        const uint8_t *row = h.pixels + h.stride * (size_t)(h.top_down ? y : h.height - 1 - y);
        if (h.bits == 8 && !o->channels) {
            memcpy(to, row, (size_t)h.width);
            to += h.width;
            continue;
        }
        for (int64_t x = 0; x < h.width; x++, to += channels) {
            const uint8_t *p = row + (size_t)x * (h.bits / 8);
            uint8_t rgba[4] = {0, 0, 0, 255};
            if (h.bits == 8) {
                if (*p >= h.colours)
                    return stk_fail(err, STK_ERR_FORMAT, "BMP: colour %u of a palette of %u", *p,
                                    h.colours);
                p = h.palette + 4 * (size_t)*p;
            } else if (h.bits == 32) {
                rgba[3] = p[3];
            }
            rgba[0] = p[2];
            rgba[1] = p[1];
            rgba[2] = p[0];
            stk_put_pixel(to, channels, rgba);
        }
    }
    return STK_OK;
}
