/* picture.h - JPEG, PNG, GIF and BMP files to and from tensors.
 *
 *     stk_error err;
 *     stk_tensor *image = NULL;
 *     stk_picture_options options = stk_picture_options_defaults();
 *     options.channels = 3;
 *     if (stk_picture_load("cat.jpg", &options, &image, &err) != STK_OK) return puts(err.message);
 *     printf("%lld x %lld\n", (long long)image->shape[1], (long long)image->shape[0]);
 *     char *bytes = NULL;
 *     size_t size = 0;
 *     if (stk_png_encode(image, -1, &bytes, &size, &err) == STK_OK) printf("%zu bytes as PNG\n", size);
 *     stk_bytes_free(bytes);
 *     stk_tensor_release(image);
 *
 * Images are uint8 (16-bit PNG: also uint16) tensors [height, width, channels]. JPEG needs
 * libjpeg-turbo and PNG libpng at build time; without them those files are refused by name. */
#ifndef STOKER_PICTURE_H
#define STOKER_PICTURE_H

#include "records.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum stk_picture_format {
    STK_PICTURE_UNKNOWN,
    STK_PICTURE_JPEG,
    STK_PICTURE_PNG,
    STK_PICTURE_GIF, /* first frame */
    STK_PICTURE_BMP
} stk_picture_format;
STK_API stk_picture_format stk_picture_detect(const void *data,
                                              size_t size);             /* by the first bytes */
STK_API const char *stk_picture_format_name(stk_picture_format format); /* "JPEG" */
STK_API bool stk_picture_supported(stk_picture_format format);          /* in this build */

typedef struct stk_picture_options {
    int32_t channels;      /* 0: as stored; 1 gray, 3 RGB, 4 RGBA (not JPEG) */
    stk_dtype dtype;       /* uint8; uint16 for PNG */
    int64_t top, left;     /* crop window, in pixels of the stored picture; it has to lie inside */
    int64_t height, width; /* 0: to the border */
    /* JPEG: decode at 1/2, 1/4 or 1/8 of the size when the (cropped) result still is at least this
     * high and wide. Much faster, and a better base for shrinking, but not the same pixels. 0: full
     * size. */
    int64_t least_height, least_width;
    bool accurate;       /* JPEG: the slower integer transform; false, as in TensorFlow */
    bool recover;        /* JPEG: a file that is cut short gives what is there, not an error */
    int64_t most_pixels; /* larger pictures are refused; 2^28 */
} stk_picture_options;
STK_API stk_picture_options stk_picture_options_defaults(void);

typedef struct stk_picture_info {
    stk_picture_format format;
    int64_t height, width;
    int32_t channels;
} stk_picture_info;
STK_API STK_MUST_USE stk_status stk_picture_probe(const void *data, size_t size,
                                                  stk_picture_info *info, stk_error *err);

/* options NULL: the defaults. */
STK_API STK_MUST_USE stk_status stk_picture_decode(const void *data, size_t size,
                                                   const stk_picture_options *options,
                                                   stk_tensor **out, stk_error *err);
STK_API STK_MUST_USE stk_status stk_picture_load(const char *path,
                                                 const stk_picture_options *options,
                                                 stk_tensor **out, stk_error *err);

/* The bytes are freed with stk_bytes_free. quality 1..100; fine: colours at full resolution.
 * level 0..9, -1 for libpng's own choice. */
STK_API STK_MUST_USE stk_status stk_jpeg_encode(const stk_tensor *image, int32_t quality, bool fine,
                                                char **bytes, size_t *size, stk_error *err);
STK_API STK_MUST_USE stk_status stk_png_encode(const stk_tensor *image, int32_t level, char **bytes,
                                               size_t *size, stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
