/* jpeg_huffman.h (internal) - the entropy-coded part of baseline JPEG, faster than libjpeg-turbo reads it.
 *
 * Decoding a photo is mostly reading its Huffman codes, one after the other. libjpeg-turbo looks up a code, then fetches
 * the bits of the number behind it. Here one look-up of eleven bits gives code and number together, which covers nine of
 * ten coefficients. The coefficients go where libjpeg-turbo wants them; transform, colours and scaling stay its own, so
 * the pixels are the same to the bit.
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

enum { STK_JPEG_LOOK = 11 };

typedef struct stk_jpeg_code {
    int16_t value; /* of the coefficient; or the symbol, see skip */
    uint8_t skip;  /* zeros before it; or one of the kinds in jpeg_huffman.c */
    uint8_t length;
} stk_jpeg_code;

typedef struct stk_jpeg_table {
    stk_jpeg_code look[1 << STK_JPEG_LOOK];
    /* Longer codes: of each length the first one, left-aligned in 16 bits, behind the last one, and the symbol's place. */
    int32_t first[17], behind[17], place[17];
    const uint8_t *symbols;
} stk_jpeg_table;

typedef struct stk_jpeg_huffman {
    const uint8_t *at, *end;
    uint64_t bits; /* the next one on top */
    int32_t count; /* how many there are */
    int32_t last_dc[MAX_COMPS_IN_SCAN];
    uint32_t restart_left, restart_next;
    void (*odd)(j_decompress_ptr info); /* does not return */
    stk_jpeg_table dc[2], ac[2];
} stk_jpeg_huffman;

/* After jpeg_start_decompress, with `odd` set: takes the reading of codes over if this picture allows it. `decode` finds h
 * and calls stk_jpeg_huffman_mcu with it. */
bool stk_jpeg_huffman_install(stk_jpeg_huffman *h, j_decompress_ptr info,
                              boolean (*decode)(j_decompress_ptr, JBLOCKROW *));
/* One MCU; blocks NULL: passed over. */
void stk_jpeg_huffman_mcu(stk_jpeg_huffman *h, j_decompress_ptr info, JBLOCKROW *blocks);

#endif
