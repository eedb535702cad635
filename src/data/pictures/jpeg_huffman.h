/* jpeg_huffman.h (internal) - the entropy-coded part of baseline JPEG, faster than libjpeg-turbo reads it.
 *
 * Decoding a photo is mostly reading its Huffman codes, one after the other: where a code ends is known only when it is
 * read. So what counts is the way from one code to the next, and guesses of the processor that fail. Here that way is one
 * look-up and one shift, and the look-up gives two coefficients where their bits are few, which is most of the time; what
 * kind it is makes no branch. Bits are topped up without asking whether that is needed, and bytes that are only there to
 * protect 0xFF were taken out before. The coefficients go where libjpeg-turbo wants them; transform, colours and scaling
 * stay its own, so the pixels are the same to the bit.
 *
 * Anything unusual (damaged data, a marker where none should be, the end of the file) is not judged here: `odd` is called
 * and must not return; the picture is then decoded again by libjpeg-turbo alone. */
#ifndef STK_DATA_JPEG_HUFFMAN_H
#define STK_DATA_JPEG_HUFFMAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h> /* before jpeglib.h, which needs FILE */

#include <jpeglib.h>

enum {
    STK_JPEG_LOOK = 11,
    /* No MCU is longer: ten blocks of 64 numbers, at most 27 bits each; and some words behind it. */
    STK_JPEG_MCU_BYTES = D_MAX_BLOCKS_IN_MCU * DCTSIZE2 * 27 / 8 + 64,
    STK_JPEG_WINDOW = 16 << 10
};

/* One code with the number behind it. */
typedef struct stk_jpeg_code {
    uint8_t length; /* of the code; 0: longer than a look-up */
    uint8_t symbol; /* size of the number, and zeros before it * 16 */
} stk_jpeg_code;

/* Up to two coefficients: value at k + skip, other at k + skip + second; then k grows by skip + advance. */
typedef struct stk_jpeg_pair {
    uint8_t total; /* bits; 0: the first one is not whole, take it by its code */
    uint8_t skip, second, advance;
    int16_t value, other;
} stk_jpeg_pair;

typedef struct stk_jpeg_table {
    stk_jpeg_code code[1 << STK_JPEG_LOOK];
    /* Longer codes: of each length the first one, left-aligned in 16 bits, behind the last one, and the symbol's place. */
    int32_t first[17], behind[17], place[17];
    const uint8_t *symbols;
} stk_jpeg_table;

typedef struct stk_jpeg_huffman {
    const uint8_t *source, *end; /* what is not in the window yet */
    bool over;                   /* a marker is next in the source */
    size_t filled;               /* bytes in the window */
    size_t at;                   /* next byte for `bits` */
    uint64_t bits;               /* the next one on top */
    uint32_t count;              /* how many there are */
    int32_t last_dc[MAX_COMPS_IN_SCAN];
    uint32_t restart_left, restart_next;
    void (*odd)(j_decompress_ptr info); /* does not return */
    JBLOCK nowhere;                     /* for blocks that are passed over */
    stk_jpeg_table dc[2], ac[2];
    stk_jpeg_pair pairs[2][1 << STK_JPEG_LOOK];           /* of ac */
    uint8_t window[STK_JPEG_WINDOW + STK_JPEG_MCU_BYTES]; /* data without the protecting zeros */
} stk_jpeg_huffman;

/* After jpeg_start_decompress, with `odd` set: takes the reading of codes over if this picture allows it. `decode` finds h
 * and calls stk_jpeg_huffman_mcu with it. */
bool stk_jpeg_huffman_install(stk_jpeg_huffman *h, j_decompress_ptr info,
                              boolean (*decode)(j_decompress_ptr, JBLOCKROW *));
/* One MCU; blocks NULL: passed over. */
void stk_jpeg_huffman_mcu(stk_jpeg_huffman *h, j_decompress_ptr info, JBLOCKROW *blocks);

#endif
