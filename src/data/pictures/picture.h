/* picture.h (internal) - what one decoder per format offers to picture.c. */
#ifndef STK_DATA_PICTURE_H
#define STK_DATA_PICTURE_H

#include "base/memory.h"
#include "base/tensor.h"
#include "stoker/picture.h"

/* Each decodes a whole picture as o->channels says (0: as stored). JPEG alone crops and scales by
 * itself; the others give the whole picture and picture.c cuts. */
stk_status stk_jpeg_decode(const uint8_t *data, size_t size, const stk_picture_options *o,
                           stk_tensor **out, stk_error *err);
stk_status stk_png_decode(const uint8_t *data, size_t size, const stk_picture_options *o,
                          stk_tensor **out, stk_error *err);
stk_status stk_gif_decode(const uint8_t *data, size_t size, const stk_picture_options *o,
                          stk_tensor **out, stk_error *err);
stk_status stk_bmp_decode(const uint8_t *data, size_t size, const stk_picture_options *o,
                          stk_tensor **out, stk_error *err);
stk_status stk_jpeg_probe(const uint8_t *data, size_t size, stk_picture_info *info, stk_error *err);
stk_status stk_png_probe(const uint8_t *data, size_t size, stk_picture_info *info, stk_error *err);
stk_status stk_gif_probe(const uint8_t *data, size_t size, stk_picture_info *info, stk_error *err);
stk_status stk_bmp_probe(const uint8_t *data, size_t size, stk_picture_info *info, stk_error *err);

/* Somebody who takes a picture row by row, so that it need not be kept as a whole. */
typedef struct stk_row_taker {
    void *context;
    stk_status (*begin)(void *context, int64_t height, int64_t width, int64_t channels,
                        stk_error *err);
    uint8_t *(*place)(void *context, int64_t y); /* for row y; NULL: not wanted */
    void (*put)(void *context, int64_t y);       /* it is there */
} stk_row_taker;
/* As stk_jpeg_decode, from the top row on; rows may have come when it fails. Damaged data may begin a second time. */
stk_status stk_jpeg_decode_rows(const uint8_t *data, size_t size, const stk_picture_options *o,
                                const stk_row_taker *taker, stk_error *err);

/* Refuses empty and too large pictures. */
stk_status stk_picture_check_size(const char *what, int64_t height, int64_t width,
                                  const stk_picture_options *o, stk_error *err);

/* Bytes that grow while a picture is written. */
typedef struct stk_growing_bytes {
    uint8_t *data;
    size_t size, capacity;
} stk_growing_bytes;
bool stk_growing_add(stk_growing_bytes *b, const void *data, size_t size);

#endif
