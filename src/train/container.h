/* container.h - the file of a checkpoint: one JSON text and named tensors, with a checksum over every byte.
 * All numbers are little endian. What the text and the names mean is the business of checkpoint.c.
 *
 *      0    8   "STKCKPT" and a line feed
 *      8    4   version: 1
 *     12    4   T: number of tensors
 *     16    8   size of the whole file
 *     24    8   size of the text, which starts at 64
 *     32    8   size of the table, which follows the text
 *     40    4   CRC-32C of text and table
 *     44   16   zeros
 *     60    4   CRC-32C of bytes 0..59
 *     64        text: JSON
 *     ..        table: T rows
 *     ..        elements; each tensor starts at the next multiple of 64, zeros between
 *
 *     row:  0    8   place of the elements in the file
 *           8    4   CRC-32C of the elements
 *          12    2   bytes of the name
 *          14    1   element type (row number in dtype.def)
 *          15    1   R: axes, 0 to 8
 *          16   8R   sizes
 *          ..        name, not terminated
 *
 * Places follow from the sizes; they are written so that a file can be looked into by hand, and must be right. */
#ifndef STK_TRAIN_CONTAINER_H
#define STK_TRAIN_CONTAINER_H

#include "train/named.h"

typedef struct stk_container {
    char *text; /* 0-terminated */
    size_t text_size;
    stk_named_list list;
} stk_container;

STK_MUST_USE stk_status stk_container_load(const char *path, stk_container *out, stk_error *err);
STK_MUST_USE stk_status stk_container_parse(const char *name, const void *data, size_t size,
                                            stk_container *out, stk_error *err);
/* Replaces the file as a whole: whoever is killed meanwhile leaves the old one. */
STK_MUST_USE stk_status stk_container_save(const char *path, const char *text, size_t text_size,
                                           const stk_named_list *list, stk_error *err);
void stk_container_release(stk_container *c); /* back to the zero state */

#endif
