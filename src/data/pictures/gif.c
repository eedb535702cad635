/* GIF, the first frame, with a decoder of our own.
 *
 *     0  6  "GIF87a" or "GIF89a"      6  2  width    8  2  height of the screen
 *    10  1  80: global palette of 2 << (low 3 bits) colours, 3 bytes each, from byte 13 on
 *    then blocks: 21 label, sub-blocks        an extension; F9 tells the transparent colour
 *                 2C left top width height flags [palette] bits sub-blocks        a frame
 *                 3B                          the end
 *    sub-blocks: length 1..255 and that many bytes, until a length of 0
 *
 * LZW: codes of growing length, lowest bit first. 2^bits is "clear", the next "end". Every other code
 * stands for a string: the string of an earlier code and one more pixel. The table is kept as
 * (prefix, last pixel, length), and strings are written from their end. */
#include "data/pictures/picture.h"
#include "data/pictures/picture_plain.h"

#include <string.h>

enum { MOST_CODES = 4096 };

typedef struct gif {
    const uint8_t *at, *end;
    int64_t height, width; /* of the screen */
    const uint8_t *global, *local;
    int32_t global_count, local_count;
    int32_t clear_colour; /* transparent, or -1 */
} gif;

typedef struct frame {
    int64_t left, top, width, height;
    bool interlaced;
} frame;

static stk_status cut_short(stk_error *err)
{
    return stk_fail(err, STK_ERR_FORMAT, "GIF: the file is cut short");
}

static stk_status read_screen(gif *g, const uint8_t *data, size_t size,
                              const stk_picture_options *o, stk_error *err)
{
    *g = (gif){.clear_colour = -1};
    if (size < 13) return cut_short(err);
    g->width = stk_le16(data + 6);
    g->height = stk_le16(data + 8);
    g->at = data + 13;
    g->end = data + size;
    if (data[10] & 0x80) {
        g->global = g->at;
        g->global_count = 2 << (data[10] & 7);
        if (g->end - g->at < 3 * g->global_count) return cut_short(err);
        g->at += 3 * g->global_count;
    }
    return stk_picture_check_size("GIF", g->height, g->width, o, err);
}

static bool skip_blocks(gif *g)
{
    while (g->at < g->end) {
        int64_t length = *g->at++;
        if (length == 0) return true;
        if (length > g->end - g->at) return false;
        g->at += length;
    }
    return false;
}

/* To the first frame; reads its head and palette. */
static stk_status find_frame(gif *g, frame *f, stk_error *err)
{
    while (g->at < g->end && *g->at == 0x21) {
        if (g->end - g->at >= 7 && g->at[1] == 0xf9 && g->at[2] == 4 && (g->at[3] & 1))
            g->clear_colour = g->at[6];
        if (g->end - g->at < 2) return cut_short(err);
        g->at += 2;
        if (!skip_blocks(g)) return cut_short(err);
    }
    if (g->end - g->at < 10) return cut_short(err);
    if (*g->at != 0x2c) return stk_fail(err, STK_ERR_FORMAT, "GIF: has no picture");
    *f = (frame){stk_le16(g->at + 1), stk_le16(g->at + 3), stk_le16(g->at + 5), stk_le16(g->at + 7),
                 (g->at[9] & 0x40) != 0};
    uint8_t flags = g->at[9];
    g->at += 10;
    g->local = g->global;
    g->local_count = g->global_count;
    if (flags & 0x80) {
        g->local = g->at;
        g->local_count = 2 << (flags & 7);
        if (g->end - g->at < 3 * g->local_count) return cut_short(err);
        g->at += 3 * g->local_count;
    }
    if (!g->local) return stk_fail(err, STK_ERR_FORMAT, "GIF: has no palette");
    if (f->width < 1 || f->height < 1 || f->left + f->width > g->width ||
        f->top + f->height > g->height)
        return stk_fail(
            err, STK_ERR_FORMAT,
            "GIF: the frame of %lld x %lld at (%lld, %lld) is not inside of %lld x %lld",
            (long long)f->width, (long long)f->height, (long long)f->left, (long long)f->top,
            (long long)g->width, (long long)g->height);
    return STK_OK;
}

/* ---- bits --------------------------------------------------------------------------------------- */

typedef struct bits {
    gif *g;
    int64_t block; /* bytes left in the sub-block */
    uint32_t word;
    int32_t have;
} bits;

static bool take_code(bits *b, int32_t size, uint32_t *code)
{
    gif *g = b->g;
    while (b->have < size) {
        if (b->block == 0) {
            if (g->at == g->end || *g->at == 0) return false;
            b->block = *g->at++;
        }
        if (g->at == g->end) return false;
        b->word |= (uint32_t)*g->at++ << b->have;
        b->have += 8;
        b->block--;
    }
    *code = b->word & ((1u << size) - 1);
    b->word >>= size;
    b->have -= size;
    return true;
}

/* ---- strings ------------------------------------------------------------------------------------ */

typedef struct lzw {
    uint16_t prefix[MOST_CODES], length[MOST_CODES];
    uint8_t last[MOST_CODES], first[MOST_CODES];
    uint32_t clear, next, before; /* before: the last code, MOST_CODES after a clear */
    int32_t least, size;
} lzw;

static void lzw_clear(lzw *z)
{
    z->size = z->least + 1;
    z->next = z->clear + 2;
    z->before = MOST_CODES;
}

static void lzw_init(lzw *z, int32_t least)
{
    z->least = least;
    z->clear = 1u << least;
    for (uint32_t c = 0; c < z->clear; c++) {
        z->length[c] = 1;
        z->last[c] = z->first[c] = (uint8_t)c;
    }
    lzw_clear(z);
}

/* The string of `before` and one more pixel gets the next code. */
static void lzw_add(lzw *z, uint8_t pixel)
{
    if (z->next >= MOST_CODES) return;
    uint32_t c = z->next++;
    z->prefix[c] = (uint16_t)z->before;
    z->length[c] = (uint16_t)(z->length[z->before] + 1);
    z->last[c] = pixel;
    z->first[c] = z->first[z->before];
    if (z->next == 1u << z->size && z->size < 12) z->size++;
}

/* Up to `room` pixels of a code's string at out; how many it has. */
static int64_t lzw_write(const lzw *z, uint32_t code, uint8_t *out, int64_t room)
{
    int64_t n = z->length[code];
    for (int64_t i = n - 1; i >= 0; i--) {
        if (i < room) out[i] = z->last[code];
        code = z->prefix[code];
    }
    return n;
}

/* Colour numbers of the frame. Pixels that the data do not reach stay 0. */
static stk_status unpack(gif *g, uint8_t *pixels, int64_t count, stk_error *err)
{
    if (g->at == g->end) return cut_short(err);
    int32_t least = *g->at++;
    if (least < 1 || least > 8)
        return stk_fail(err, STK_ERR_FORMAT, "GIF: code size %d; 1..8 exist", least);
    lzw *z = stk_malloc(sizeof *z);
    if (!z) return stk_fail_memory(err, "GIF", sizeof *z);
    lzw_init(z, least);
    bits b = {.g = g};
    stk_status status = STK_OK;
    int64_t done = 0;
    uint32_t code;
    while (status == STK_OK && done < count) {
        if (!take_code(&b, z->size, &code)) {
            status = cut_short(err);
        } else if (code == z->clear) {
            lzw_clear(z);
        } else if (code == z->clear + 1) {
            status = cut_short(err);
        } else if (code > z->next || (code == z->next && z->before == MOST_CODES)) {
            status = stk_fail(err, STK_ERR_FORMAT, "GIF: code %u before it has a meaning", code);
        } else {
            if (z->before != MOST_CODES) lzw_add(z, z->first[code == z->next ? z->before : code]);
            if (code >= z->next) { /* the table is full: nothing was added */
                status = stk_fail(err, STK_ERR_FORMAT, "GIF: code %u has no meaning", code);
                break;
            }
            done += lzw_write(z, code, pixels + done, count - done);
            z->before = code;
        }
    }
    stk_free(z);
    return status;
}

/* Row of the frame that is stored as number y. */
static int64_t interlaced_row(int64_t y, int64_t height)
{
    static const int64_t from[4] = {0, 4, 2, 1}, step[4] = {8, 8, 4, 2};
    for (int pass = 0; pass < 4; pass++) {
        int64_t rows = height > from[pass] ? stk_ceil_div(height - from[pass], step[pass]) : 0;
        if (y < rows) return from[pass] + y * step[pass];
        y -= rows;
    }
    return 0;
}

static stk_status paint(const gif *g, const frame *f, const uint8_t *pixels, stk_tensor *image,
                        stk_error *err)
{
    int32_t channels = (int32_t)image->shape[2];
    for (int64_t y = 0; y < f->height; y++) {
        int64_t row = f->top + (f->interlaced ? interlaced_row(y, f->height) : y);
        uint8_t *to = (uint8_t *)image->data + (row * g->width + f->left) * channels;
        for (int64_t x = 0; x < f->width; x++, to += channels) {
            int32_t colour = *pixels++;
            if (colour == g->clear_colour) continue;
            if (colour >= g->local_count)
                return stk_fail(err, STK_ERR_FORMAT, "GIF: colour %d of a palette of %d", colour,
                                g->local_count);
            const uint8_t *c = g->local + 3 * colour;
            stk_put_pixel(to, channels, (uint8_t[4]){c[0], c[1], c[2], 255});
        }
    }
    return STK_OK;
}

stk_status stk_gif_probe(const uint8_t *data, size_t size, stk_picture_info *info, stk_error *err)
{
    gif g;
    stk_picture_options o = stk_picture_options_defaults();
    STK_TRY(read_screen(&g, data, size, &o, err));
    info->height = g.height;
    info->width = g.width;
    info->channels = 3;
    return STK_OK;
}

stk_status stk_gif_decode(const uint8_t *data, size_t size, const stk_picture_options *o,
                          stk_tensor **out, stk_error *err)
{
    gif g;
    frame f = {0};
    STK_TRY(read_screen(&g, data, size, o, err));
    STK_TRY(find_frame(&g, &f, err));
    int32_t channels = o->channels ? o->channels : 3;
    int64_t count = f.width * f.height;
    uint8_t *pixels = stk_calloc((size_t)count, 1);
    if (!pixels) return stk_fail_memory(err, "GIF", (size_t)count);
    stk_status status = unpack(&g, pixels, count, err);
    if (status == STK_OK)
        status = stk_tensor_new(STK_U8, 3, (int64_t[]){g.height, g.width, channels}, out, err);
    if (status == STK_OK) status = paint(&g, &f, pixels, *out, err);
    stk_free(pixels);
    return status;
}
