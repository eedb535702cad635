/* See jpeg_huffman.h. The bits are kept in one 64-bit word, the next one on top; 32 of them are enough for any code with
 * its number, so one look at the count per coefficient is enough. */
#if STK_HAVE_JPEG

#include "data/jpeg_huffman.h"

#include <string.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)

/* Kinds of look-ups that are no coefficient: skip is below 16 for those. */
enum { SIXTEEN_ZEROS = 16, END_OF_BLOCK = 64, NUMBER_FOLLOWS = 254, LONG_CODE = 255 };

/* The part of libjpeg's private decoder that is used: two functions, at this place since version 6. */
typedef struct entropy_decoder {
    void (*start_pass)(j_decompress_ptr);
    boolean (*decode_mcu)(j_decompress_ptr, JBLOCKROW *);
} entropy_decoder;

/* Where coefficient k of the zigzag lies in a block. Sixteen more: a damaged run ends there, and is noticed behind. */
static const uint8_t natural[64 + 16] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33,
    40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36,
    29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54,
    47, 55, 62, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63};

/* A number of `size` bits: those that begin with 0 are negative. */
static inline int32_t extend(uint32_t bits, int32_t size)
{
    int32_t value = (int32_t)bits;
    return size && value < 1 << (size - 1) ? value - (1 << size) + 1 : value;
}

/* ---- tables ------------------------------------------------------------------------------------- */

/* All look-ups that begin with this code. */
static void add_code(stk_jpeg_table *t, uint32_t code, int length, int symbol, bool dc)
{
    int size = dc ? symbol : symbol & 15, run = dc ? 0 : symbol >> 4,
        spare = STK_JPEG_LOOK - length;
    stk_jpeg_code *at = &t->look[code << spare];
    for (uint32_t rest = 0; rest < 1u << spare; rest++) {
        stk_jpeg_code c = {(int16_t)symbol, NUMBER_FOLLOWS, (uint8_t)length};
        if (size == 0 && (dc || run == 0))
            c = (stk_jpeg_code){0, END_OF_BLOCK, (uint8_t)length};
        else if (size == 0 && run == 15)
            c = (stk_jpeg_code){0, SIXTEEN_ZEROS, (uint8_t)length};
        else if (size > 0 && size <= spare)
            c = (stk_jpeg_code){(int16_t)extend(rest >> (spare - size), size), (uint8_t)run,
                                (uint8_t)(length + size)};
        at[rest] = c;
    }
}

/* false: not a table this reader takes. */
static bool make_table(stk_jpeg_table *t, const JHUFF_TBL *from, bool dc)
{
    if (!from) return false;
    for (int i = 0; i < 1 << STK_JPEG_LOOK; i++) t->look[i] = (stk_jpeg_code){0, LONG_CODE, 0};
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
            if (length <= STK_JPEG_LOOK) add_code(t, code, length, symbol, dc);
        }
        t->behind[length] = (int32_t)(code << (16 - length));
        code <<= 1;
    }
    return true;
}

/* ---- bits --------------------------------------------------------------------------------------- */

typedef struct reader {
    const uint8_t *at, *end;
    uint64_t bits;
    int32_t count; /* below 0: zeros were taken for data */
    bool ran_out;  /* the data end without a marker */
} reader;

/* Byte by byte: 0xFF is followed by a 0 that does not count. Stops at a marker and at the end; zeros follow then. */
static __attribute__((noinline)) void refill_slowly(reader *r)
{
    if (r->count < 0) return;
    r->ran_out |= r->end - r->at < 2;
    r->bits &= r->count ? ~(UINT64_MAX >> r->count) : 0;
    while (r->count <= 56 && r->at < r->end) {
        uint64_t byte = *r->at;
        if (byte == 0xFF) {
            r->ran_out |= r->end - r->at < 2;
            if (r->ran_out || r->at[1] != 0) return;
            r->at++;
        }
        r->at++;
        r->bits |= byte << (56 - r->count);
        r->count += 8;
    }
}

/* At least 56 bits, unless data end. Eight bytes at once when none of them is 0xFF. */
static inline void refill(reader *r)
{
    if (LIKELY(r->end - r->at >= 8)) {
        uint64_t word;
        memcpy(&word, r->at, 8);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        word = __builtin_bswap64(word);
#endif
        if (LIKELY(((~word - 0x0101010101010101u) & word & 0x8080808080808080u) == 0)) {
            int32_t bytes = (63 - r->count) >> 3;
            r->bits |= word >> r->count;
            r->at += bytes;
            r->count += bytes * 8;
            /* Below `count` stand bits of the byte after: they come again, at the same place. */
            return;
        }
    }
    refill_slowly(r);
}

static inline void drop_bits(reader *r, int32_t n)
{
    r->bits <<= n;
    r->count -= n;
}

static inline int32_t take_number(reader *r, int32_t size)
{
    if (!size) return 0;
    uint32_t value = (uint32_t)(r->bits >> (64 - size));
    drop_bits(r, size);
    return extend(value, size);
}

/* A code that is longer than a look-up: its symbol, or -1. */
static int long_symbol(const stk_jpeg_table *t, reader *r)
{
    int32_t top = (int32_t)(r->bits >> 48);
    for (int length = STK_JPEG_LOOK + 1; length <= 16; length++) {
        if (top >= t->behind[length] || top < t->first[length]) continue;
        drop_bits(r, length);
        return t->symbols[t->place[length] + ((top - t->first[length]) >> (16 - length))];
    }
    return -1;
}

/* ---- blocks ------------------------------------------------------------------------------------- */

/* Symbols that a look-up did not finish; -1: none. */
static int rest_of_symbol(const stk_jpeg_table *t, stk_jpeg_code c, reader *r)
{
    if (c.skip == LONG_CODE) return long_symbol(t, r);
    drop_bits(r, c.length);
    return c.value;
}

static inline bool read_dc(const stk_jpeg_table *t, reader *r, int32_t *difference)
{
    if (r->count < 32) refill(r);
    stk_jpeg_code c = t->look[r->bits >> (64 - STK_JPEG_LOOK)];
    if (LIKELY(c.skip < 16 || c.skip == END_OF_BLOCK)) {
        drop_bits(r, c.length);
        *difference = c.value;
        return true;
    }
    int symbol = rest_of_symbol(t, c, r);
    if (symbol < 0) return false;
    *difference = take_number(r, symbol);
    return true;
}

/* The 63 others. */
static inline bool read_ac(const stk_jpeg_table *t, reader *r, JCOEF *block)
{
    int k = 1;
    while (k < 64) {
        if (r->count < 32) refill(r);
        stk_jpeg_code c = t->look[r->bits >> (64 - STK_JPEG_LOOK)];
        if (LIKELY(c.skip < 16)) {
            drop_bits(r, c.length);
            k += c.skip;
            block[natural[k]] = c.value;
            k++;
            continue;
        }
        if (c.skip == END_OF_BLOCK) {
            drop_bits(r, c.length);
            return true;
        }
        int symbol = c.skip == SIXTEEN_ZEROS ? 0xF0 : rest_of_symbol(t, c, r);
        if (c.skip == SIXTEEN_ZEROS) drop_bits(r, c.length);
        if (symbol < 0) return false;
        if (symbol == 0) return true;
        if (symbol == 0xF0) {
            k += 16;
            continue;
        }
        k += symbol >> 4;
        block[natural[k]] = (JCOEF)take_number(r, symbol & 15);
        k++;
    }
    return k == 64;
}

/* ---- MCUs --------------------------------------------------------------------------------------- */

/* The marker between two intervals: bits up to the byte are padding, then FF D0 .. D7 in turn. */
static bool restart(stk_jpeg_huffman *h, j_decompress_ptr info)
{
    /* Whole bytes that were read ahead would be data: there must be none. */
    if (h->count >= 8 || h->end - h->at < 2 || h->at[0] != 0xFF ||
        h->at[1] != 0xD0 + h->restart_next)
        return false;
    h->at += 2;
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
    JBLOCK nowhere;
    if (info->restart_interval && h->restart_left == 0 && !restart(h, info)) h->odd(info);
    reader r = {h->at, h->end, h->bits, h->count, false};
    for (int b = 0; b < info->blocks_in_MCU; b++) {
        int part = info->MCU_membership[b];
        const jpeg_component_info *c = info->cur_comp_info[part];
        JCOEF *block = blocks ? *blocks[b] : nowhere;
        int32_t difference = 0;
        if (!read_dc(&h->dc[c->dc_tbl_no], &r, &difference)) h->odd(info);
        int32_t dc = h->last_dc[part] += difference;
        block[0] = (JCOEF)dc;
        if (!read_ac(&h->ac[c->ac_tbl_no], &r, block)) h->odd(info);
        if (dc > MOST_DC || dc < -MOST_DC) h->odd(info);
    }
    if (r.count < 0 || r.ran_out) h->odd(info); /* more was read than there is */
    h->at = r.at;
    h->bits = r.bits;
    h->count = r.count;
    h->restart_left--;
}

/* One scan with all components, eight bits, Huffman codes, not progressive. */
static bool is_plain(j_decompress_ptr info)
{
    return info->data_precision == 8 && !info->progressive_mode && !info->arith_code &&
           !jpeg_has_multiple_scans(info) && info->comps_in_scan == info->num_components &&
           info->src && info->src->next_input_byte && info->Ss == 0 && info->Se == DCTSIZE2 - 1 &&
           info->Ah == 0 && info->Al == 0;
}

bool stk_jpeg_huffman_install(stk_jpeg_huffman *h, j_decompress_ptr info,
                              boolean (*decode)(j_decompress_ptr, JBLOCKROW *))
{
    bool made[2][2] = {{false}};
    if (!is_plain(info)) return false;
    for (int i = 0; i < info->comps_in_scan; i++) {
        int dc = info->cur_comp_info[i]->dc_tbl_no, ac = info->cur_comp_info[i]->ac_tbl_no;
        if (dc < 0 || dc > 1 || ac < 0 || ac > 1) return false;
        if (!made[0][dc] && !make_table(&h->dc[dc], info->dc_huff_tbl_ptrs[dc], true)) return false;
        if (!made[1][ac] && !make_table(&h->ac[ac], info->ac_huff_tbl_ptrs[ac], false))
            return false;
        made[0][dc] = made[1][ac] = true;
    }
    h->at = info->src->next_input_byte;
    h->end = h->at + info->src->bytes_in_buffer;
    h->bits = 0;
    h->count = 0;
    h->restart_left = info->restart_interval;
    h->restart_next = 0;
    memset(h->last_dc, 0, sizeof h->last_dc);
    ((entropy_decoder *)(void *)info->entropy)->decode_mcu = decode;
    return true;
}

#endif
