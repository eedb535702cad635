/* npy.h - the .npy format, from any stream of bytes (a file, a member of an archive, memory).
 *
 *     0  6   93 'N' 'U' 'M' 'P' 'Y'
 *     6  2   version: 1 0, 2 0 or 3 0
 *     8  2   length of the header (version 1), or 4 bytes (2 and 3)
 *    10      header: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n, spaces so that
 *            the data starts at a multiple of 64
 *     ..     elements
 *
 * Read: every element type of ours in both byte orders; |S and <U as strings (zero bytes at the end
 * of an item are padding, as for numpy); |V2 and <V2 as bfloat16. Refused: objects (they hold
 * Python code), records, complex numbers, dates. */
#ifndef STK_BASE_NPY_H
#define STK_BASE_NPY_H

#include "stoker/tensor.h"

typedef struct stk_npy_source {
    stk_status (*read)(struct stk_npy_source *self, void *to, size_t size, stk_error *err);
    uint64_t left;    /* bytes until its end; kept by the reader of the format */
    const char *name; /* for messages */
} stk_npy_source;

STK_MUST_USE stk_status stk_npy_read(stk_npy_source *source, stk_tensor **out, stk_error *err);
STK_MUST_USE stk_status stk_npy_parse(const char *name, const void *data, size_t size,
                                      stk_tensor **out, stk_error *err); /* from memory */

/* The header alone, checked against what follows it; the elements are left to be read. */
STK_MUST_USE stk_status stk_npy_check(stk_npy_source *source, stk_error *err);

/* A file that lies in memory which stays: a tensor that points into it, where the elements can be used as they are
 * (own byte order, rows first, aligned, no strings or bools); release(owner) runs when it is gone. Otherwise a copy,
 * and release(owner) runs at once. On failure the caller keeps owner. */
STK_MUST_USE stk_status stk_npy_view(const char *name, const void *data, size_t size,
                                     void (*release)(void *owner), void *owner, stk_tensor **out,
                                     stk_error *err);

/* What a file of this tensor consists of. Strings are laid out anew, everything else is the
 * tensor's own memory (dense is a handle on it or on a copy). */
typedef struct stk_npy_image {
    char header[512];
    size_t header_size;
    const void *data;
    size_t data_size;
    stk_tensor *dense;
    char *strings;
} stk_npy_image;
STK_MUST_USE stk_status stk_npy_image_make(const stk_tensor *t, stk_npy_image *out, stk_error *err);
void stk_npy_image_release(stk_npy_image *image);

#endif
