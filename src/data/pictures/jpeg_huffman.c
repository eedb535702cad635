/* See jpeg_huffman.h. The bits are kept in one 64-bit word, the next one on top. After a top-up there are 56 or more,
 * enough for any code with its number. */
#define _GNU_SOURCE /* dladdr */
#if STK_HAVE_JPEG

#include "data/pictures/jpeg_huffman.h"

#include <dlfcn.h>
#include <string.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define LOOKS     (1 << STK_JPEG_LOOK)

enum {
    SIXTEEN_ZEROS = 0xF0, /* symbols without a number */
    END_OF_BLOCK = 0,
    BEYOND = 128 /* k behind the end of a block that was said, not reached */
};

/* The part of libjpeg's private decoder that is used: two functions, at this place since version 6 (is_known). */
typedef struct entropy_decoder {
    void (*start_pass)(j_decompress_ptr);
    boolean (*decode_mcu)(j_decompress_ptr, JBLOCKROW *);
} entropy_decoder;

/* Where coefficient k of the zigzag lies in a block. Damaged runs end behind, where they are noticed. */
static const uint8_t natural[96] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48, 41, 34,
    27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
    58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63, 63, 63, 63, 63, 63, 63, 63, 63,
    63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63};

/* The number of `size` > 0 bits on top of `bits`: those that begin with 0 are negative. */
static inline int32_t number_of(uint64_t bits, uint32_t size)
{
    int32_t negative = (int32_t)(bits >> 63 ^ 1);
    return (int32_t)(bits >> (64 - size)) - negative * ((1 << size) - 1);
}

/* ---- tables ------------------------------------------------------------------------------------- */

/* false: not a table this reader takes. */
static bool make_table(stk_jpeg_table *t, const JHUFF_TBL *from, bool dc)
{
    if (!from) return false;
    memset(t->code, 0, sizeof t->code);
    t->symbols = from->huffval;
    uint32_t code = 0;
    int place = 0;
    for (int length = 1; length <= 16; length++) {
        int count = from->bits[length];
        if (place + count > 256 || code + (uint32_t)count > 1u << length) return false;
        t->first[length] = (int32_t)(code << (16 - length));
        t->place[length] = place;
        for (int i = 0; i < count; i++, code++, place++) {
            int symbol = from->huffval[place], size = dc ? symbol : symbol & 15;
            if (dc ? symbol > 11 : size > 10) return false; /* more than eight-bit samples need */
            if (!dc && size == 0 && symbol != 0 && symbol != 0xF0) return false;
            if (length > STK_JPEG_LOOK) continue;
            stk_jpeg_code *at = t->code + (code << (STK_JPEG_LOOK - length));
            for (int n = LOOKS >> length; n > 0; n--)
                *at++ = (stk_jpeg_code){(uint8_t)length, (uint8_t)symbol};
        }
        t->behind[length] = (int32_t)(code << (16 - length));
        code <<= 1;
    }
    return true;
}

/* The coefficient at the front of these bits, if it is there as a whole. */
static stk_jpeg_pair one_of(const stk_jpeg_table *t, uint32_t look, uint32_t bits)
{
    stk_jpeg_pair p = {0};
    stk_jpeg_code c = t->code[look];
    uint32_t size = c.symbol & 15;
    if (c.length == 0 || c.length + size > bits) return p;
    p.total = (uint8_t)(c.length + size);
    if (size) {
        uint64_t top = (uint64_t)look << (64 - STK_JPEG_LOOK) << c.length;
        p.value = p.other = (int16_t)number_of(top, size);
        p.skip = c.symbol >> 4;
        p.advance = 1;
    } else { /* a zero is written where one is */
        p.advance = c.symbol == END_OF_BLOCK ? BEYOND : 16;
    }
    return p;
}

static void make_pairs(const stk_jpeg_table *t, stk_jpeg_pair *pairs)
{
    for (uint32_t look = 0; look < LOOKS; look++) {
        stk_jpeg_pair p = one_of(t, look, STK_JPEG_LOOK);
        if (p.total && p.advance == 1) {
            stk_jpeg_pair q = one_of(t, look << p.total & (LOOKS - 1), STK_JPEG_LOOK - p.total);
            if (q.total && q.advance == 1) {
                p.second = (uint8_t)(1 + q.skip);
                p.other = q.value;
            }
            p.total = (uint8_t)(p.total + q.total);
            p.advance = (uint8_t)(1 + q.skip + q.advance);
        }
        pairs[look] = p;
    }
}

/* ---- bytes -------------------------------------------------------------------------------------- */

/* What is left of the window moves to its front, and more data come behind it, up to the next marker; then zeros. Data
 * that end without a marker are odd: false. */
static bool fill_window(stk_jpeg_huffman *h)
{
    /* Bits that were topped up come from bytes before `at`: only those from `at` on are kept. */
    size_t kept = h->filled > h->at ? h->filled - h->at : 0;
    memmove(h->window, h->window + h->at, kept);
    h->filled = kept;
    h->at = 0;
    while (!h->over && h->filled < STK_JPEG_WINDOW) {
        size_t room = STK_JPEG_WINDOW - h->filled, left = (size_t)(h->end - h->source);
        if (left < 2) return false;
        size_t most = room < left ? room : left;
        const uint8_t *stop = memchr(h->source, 0xFF, most);
        size_t plain = stop ? (size_t)(stop - h->source) : most;
        memcpy(h->window + h->filled, h->source, plain);
        h->filled += plain;
        h->source += plain;
        if (!stop) continue;
        if (h->end - h->source < 2) return false;
        h->over = h->source[1] != 0;
        if (h->over) break;
        h->window[h->filled++] = 0xFF;
        h->source += 2;
    }
    memset(h->window + h->filled, 0, STK_JPEG_MCU_BYTES);
    return true;
}

/* ---- bits --------------------------------------------------------------------------------------- */

typedef struct reader {
    const uint8_t *at;
    uint64_t bits;
    uint32_t count;
} reader;

/* Below `count` may stand the first bits of the next byte: they come again, at the same place. */
static inline void top_up(reader *r)
{
    uint64_t word;
    memcpy(&word, r->at, 8);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    r->bits |= word >> r->count;
    r->at += (63 - r->count) >> 3;
    r->count |= 56;
}

static inline void drop_bits(reader *r, uint32_t n)
{
    r->bits <<= n;
    r->count -= n;
}

/* The symbol of the next code, or -1. */
static int take_symbol(const stk_jpeg_table *t, reader *r)
{
    stk_jpeg_code c = t->code[r->bits >> (64 - STK_JPEG_LOOK)];
    if (LIKELY(c.length)) {
        drop_bits(r, c.length);
        return c.symbol;
    }
    int32_t top = (int32_t)(r->bits >> 48);
    for (int length = STK_JPEG_LOOK + 1; length <= 16; length++) {
        if (top >= t->behind[length] || top < t->first[length]) continue;
        drop_bits(r, (uint32_t)length);
        return t->symbols[t->place[length] + ((top - t->first[length]) >> (16 - length))];
    }
    return -1;
}

static inline int32_t take_number(reader *r, uint32_t size)
{
    int32_t value = size ? number_of(r->bits, size) : 0;
    drop_bits(r, size);
    return value;
}

/* ---- blocks ------------------------------------------------------------------------------------- */

static inline bool read_dc(const stk_jpeg_table *t, reader *r, int32_t *difference)
{
    top_up(r);
    int size = take_symbol(t, r);
    if (size < 0) return false;
    *difference = take_number(r, (uint32_t)size);
    return true;
}

/* A coefficient with many bits; false: no such code. */
static __attribute__((noinline)) bool read_long(const stk_jpeg_table *t, reader *r, unsigned *k,
                                                JCOEF *block)
{
    int symbol = take_symbol(t, r);
    if (symbol < 0) return false;
    if (symbol == END_OF_BLOCK || symbol == SIXTEEN_ZEROS) {
        *k += symbol == END_OF_BLOCK ? BEYOND : 16;
        return true;
    }
    *k += (unsigned)symbol >> 4;
    block[natural[*k]] = (JCOEF)take_number(r, (uint32_t)symbol & 15);
    *k += 1;
    return true;
}

/* The 63 others. */
static inline bool read_ac(const stk_jpeg_table *t, const stk_jpeg_pair *pairs, reader *from,
                           JCOEF *block)
{
    reader r = *from;
    unsigned k = 1;
    while (k < 64) {
        top_up(&r);
        const stk_jpeg_pair *p = &pairs[r.bits >> (64 - STK_JPEG_LOOK)];
        /* With coefficient 63 a block ends; what follows is not its own. */
        if (LIKELY(p->total && k + p->skip < 63)) {
            drop_bits(&r, p->total);
            k += p->skip;
            block[natural[k]] = p->value;
            block[natural[k + p->second]] = p->other;
            k += p->advance;
        } else {
            reader slow = r;
            if (!read_long(t, &slow, &k, block)) return false;
            r = slow;
        }
    }
    *from = r;
    return k == 64 || k >= BEYOND;
}

/* ---- MCUs --------------------------------------------------------------------------------------- */

/* Bits of the window that were not taken; negative: more was taken than there was. */
static int64_t bits_left(const stk_jpeg_huffman *h)
{
    return (int64_t)(h->filled * 8) - (int64_t)(h->at * 8) + (int64_t)h->count;
}

/* The marker between two intervals: bits up to the byte are padding, then FF D0 .. D7 in turn. */
static bool restart(stk_jpeg_huffman *h, j_decompress_ptr info)
{
    if (bits_left(h) >= 8 || !h->over || h->source[1] != 0xD0 + h->restart_next) return false;
    h->source += 2;
    h->over = false;
    h->filled = h->at = 0;
    h->bits = 0;
    h->count = 0;
    h->restart_next = (h->restart_next + 1) & 7;
    h->restart_left = info->restart_interval;
    memset(h->last_dc, 0, sizeof h->last_dc);
    return true;
}

void stk_jpeg_huffman_mcu(stk_jpeg_huffman *h, j_decompress_ptr info, JBLOCKROW *blocks)
{
    enum { MOST_DC = 1 << 20 };
    if (info->restart_interval && h->restart_left == 0 && !restart(h, info)) h->odd(info);
    if (!h->over && h->filled - h->at < STK_JPEG_MCU_BYTES && !fill_window(h)) h->odd(info);
    reader r = {h->window + h->at, h->bits, h->count};
    for (int b = 0; b < info->blocks_in_MCU; b++) {
        int part = info->MCU_membership[b];
        const jpeg_component_info *c = info->cur_comp_info[part];
        JCOEF *block = blocks ? *blocks[b] : h->nowhere;
        int32_t difference = 0;
        if (!read_dc(&h->dc[c->dc_tbl_no], &r, &difference)) h->odd(info);
        int32_t dc = h->last_dc[part] += difference;
        block[0] = (JCOEF)dc;
        if (!read_ac(&h->ac[c->ac_tbl_no], h->pairs[c->ac_tbl_no], &r, block)) h->odd(info);
        if (dc > MOST_DC || dc < -MOST_DC) h->odd(info);
    }
    h->at = (size_t)(r.at - h->window);
    h->bits = r.bits;
    h->count = r.count;
    h->restart_left--;
    if (h->over && bits_left(h) < 0) h->odd(info);
}

/* One scan with all components, eight bits, Huffman codes, not progressive. */
static bool is_plain(j_decompress_ptr info)
{
    return info->data_precision == 8 && !info->progressive_mode && !info->arith_code &&
           !jpeg_has_multiple_scans(info) && info->comps_in_scan == info->num_components &&
           info->src && info->src->next_input_byte && info->Ss == 0 && info->Se == DCTSIZE2 - 1 &&
           info->Ah == 0 && info->Al == 0;
}

/* Does a function of the library stand where ours shall? A library that keeps something else there is left alone. */
static bool is_known(const entropy_decoder *e)
{
#ifdef LIBJPEG_TURBO_VERSION_NUMBER
    Dl_info library, found;
    return dladdr((void *)(uintptr_t)jpeg_read_header, &library) &&
           dladdr((void *)(uintptr_t)e->decode_mcu, &found) && library.dli_fbase == found.dli_fbase;
#else
    (void)e;
    return false;
#endif
}

bool stk_jpeg_huffman_install(stk_jpeg_huffman *h, j_decompress_ptr info,
                              boolean (*decode)(j_decompress_ptr, JBLOCKROW *))
{
    bool made[2][2] = {{false}};
    entropy_decoder *codes = (entropy_decoder *)(void *)info->entropy;
    if (!is_plain(info) || !is_known(codes)) return false;
    for (int i = 0; i < info->comps_in_scan; i++) {
        int dc = info->cur_comp_info[i]->dc_tbl_no, ac = info->cur_comp_info[i]->ac_tbl_no;
        if (dc < 0 || dc > 1 || ac < 0 || ac > 1) return false;
        if (!made[0][dc] && !make_table(&h->dc[dc], info->dc_huff_tbl_ptrs[dc], true)) return false;
        if (!made[1][ac] && !make_table(&h->ac[ac], info->ac_huff_tbl_ptrs[ac], false))
            return false;
        if (!made[1][ac]) make_pairs(&h->ac[ac], h->pairs[ac]);
        made[0][dc] = made[1][ac] = true;
    }
    h->source = info->src->next_input_byte;
    h->end = h->source + info->src->bytes_in_buffer;
    h->over = false;
    h->filled = h->at = 0;
    h->bits = 0;
    h->count = 0;
    h->restart_left = info->restart_interval;
    h->restart_next = 0;
    memset(h->last_dc, 0, sizeof h->last_dc);
    codes->decode_mcu = decode;
    return true;
}

#endif
