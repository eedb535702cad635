/* Pictures of any format: which one it is, cropping where the decoder does not, channels. */
#include "data/pictures/picture.h"

#include "base/map.h"

#include <string.h>

stk_picture_options stk_picture_options_defaults(void)
{
    return (stk_picture_options){.dtype = STK_U8, .most_pixels = (int64_t)1 << 28};
}

static bool begins(const uint8_t *data, size_t size, const char *magic, size_t length)
{
    return size >= length && memcmp(data, magic, length) == 0;
}

stk_picture_format stk_picture_detect(const void *data, size_t size)
{
    if (!data) return STK_PICTURE_UNKNOWN;
    if (begins(data, size, "\xff\xd8\xff", 3)) return STK_PICTURE_JPEG;
    if (begins(data, size, "\x89PNG\r\n\x1a\n", 8)) return STK_PICTURE_PNG;
    if (begins(data, size, "GIF87a", 6) || begins(data, size, "GIF89a", 6)) return STK_PICTURE_GIF;
    if (begins(data, size, "BM", 2)) return STK_PICTURE_BMP;
    return STK_PICTURE_UNKNOWN;
}

typedef stk_status (*decode_function)(const uint8_t *, size_t, const stk_picture_options *,
                                      stk_tensor **, stk_error *);
typedef stk_status (*probe_function)(const uint8_t *, size_t, stk_picture_info *, stk_error *);

static const struct {
    const char *name;
    bool built;
    decode_function decode;
    probe_function probe;
} formats[] = {
    [STK_PICTURE_UNKNOWN] = {"unknown", false, NULL, NULL},
    [STK_PICTURE_JPEG] = {"JPEG", STK_HAVE_JPEG, stk_jpeg_decode, stk_jpeg_probe},
    [STK_PICTURE_PNG] = {"PNG", STK_HAVE_PNG, stk_png_decode, stk_png_probe},
    [STK_PICTURE_GIF] = {"GIF", true, stk_gif_decode, stk_gif_probe},
    [STK_PICTURE_BMP] = {"BMP", true, stk_bmp_decode, stk_bmp_probe},
};

const char *stk_picture_format_name(stk_picture_format format)
{
    return (unsigned)format <= STK_PICTURE_BMP ? formats[format].name : "unknown";
}
bool stk_picture_supported(stk_picture_format format)
{
    return (unsigned)format <= STK_PICTURE_BMP && formats[format].built;
}

stk_status stk_picture_check_size(const char *what, int64_t height, int64_t width,
                                  const stk_picture_options *o, stk_error *err)
{
    int64_t pixels;
    if (height < 1 || width < 1 || !stk_mul_i64(height, width, &pixels))
        return stk_fail(err, STK_ERR_FORMAT, "%s: has %lld x %lld pixels", what, (long long)width,
                        (long long)height);
    if (pixels > o->most_pixels)
        return stk_fail(err, STK_ERR_RANGE,
                        "%s: has %lld x %lld pixels, more than the %lld allowed; raise most_pixels",
                        what, (long long)width, (long long)height, (long long)o->most_pixels);
    return STK_OK;
}

static stk_status known(const void *data, size_t size, stk_picture_format *format, stk_error *err)
{
    if (!data) return stk_fail(err, STK_ERR_ARGUMENT, "picture: the data are NULL");
    *format = stk_picture_detect(data, size);
    if (*format == STK_PICTURE_UNKNOWN)
        return stk_fail(err, STK_ERR_FORMAT,
                        "picture: %zu bytes that begin neither as JPEG nor as PNG, GIF or BMP",
                        size);
    return STK_OK;
}

stk_status stk_picture_probe(const void *data, size_t size, stk_picture_info *info, stk_error *err)
{
    stk_picture_format format;
    *info = (stk_picture_info){STK_PICTURE_UNKNOWN, 0, 0, 0};
    STK_TRY(known(data, size, &format, err));
    info->format = format;
    return formats[format].probe(data, size, info, err);
}

/* The crop window of a whole picture, copied out of it. */
static stk_status cut(stk_tensor **image, const stk_picture_options *o, stk_error *err)
{
    const stk_tensor *whole = *image;
    int64_t height = o->height ? o->height : whole->shape[0] - o->top;
    int64_t width = o->width ? o->width : whole->shape[1] - o->left;
    if (o->top < 0 || o->left < 0 || height < 1 || width < 1 || height > whole->shape[0] - o->top ||
        width > whole->shape[1] - o->left)
        return stk_fail(err, STK_ERR_RANGE,
                        "picture: the crop of %lld x %lld at (%lld, %lld) is not inside of %lld x "
                        "%lld pixels",
                        (long long)width, (long long)height, (long long)o->left, (long long)o->top,
                        (long long)whole->shape[1], (long long)whole->shape[0]);
    if (height == whole->shape[0] && width == whole->shape[1]) return STK_OK;
    stk_tensor *view = NULL, *dense = NULL;
    int64_t start[3] = {o->top, o->left, 0}, size[3] = {height, width, whole->shape[2]};
    STK_TRY(stk_tensor_slice(*image, start, size, &view, err));
    stk_status status = stk_tensor_dense(view, &dense, err);
    stk_tensor_release(view);
    if (status != STK_OK) return status;
    stk_tensor_release(*image);
    *image = dense;
    return STK_OK;
}

stk_status stk_picture_decode(const void *data, size_t size, const stk_picture_options *options,
                              stk_tensor **out, stk_error *err)
{
    stk_picture_options o = options ? *options : stk_picture_options_defaults();
    stk_picture_format format;
    *out = NULL;
    STK_TRY(known(data, size, &format, err));
    if (o.channels != 0 && o.channels != 1 && o.channels != 3 && o.channels != 4)
        return stk_fail(err, STK_ERR_ARGUMENT, "picture: %d channels; give 0, 1, 3 or 4",
                        o.channels);
    if (o.dtype != STK_U8 && !(o.dtype == STK_U16 && format == STK_PICTURE_PNG))
        return stk_fail(err, STK_ERR_DTYPE,
                        "picture: %s is decoded to uint8%s, not to %s; cast afterwards",
                        formats[format].name, format == STK_PICTURE_PNG ? " or uint16" : "",
                        stk_dtype_name(o.dtype));
    stk_status status = formats[format].decode(data, size, &o, out, err);
    if (status == STK_OK && format != STK_PICTURE_JPEG) status = cut(out, &o, err);
    if (status != STK_OK) {
        stk_tensor_release(*out);
        *out = NULL;
    }
    return status;
}

stk_status stk_picture_load(const char *path, const stk_picture_options *options, stk_tensor **out,
                            stk_error *err)
{
    *out = NULL;
    stk_map map;
    STK_TRY(stk_map_open(path, true, &map, err));
    stk_status status = stk_picture_decode(map.data, map.size, options, out, err);
    stk_map_close(&map);
    return status == STK_OK ? STK_OK : stk_fail_in(err, status, "%s", path);
}

bool stk_growing_add(stk_growing_bytes *b, const void *data, size_t size)
{
    size_t need;
    if (!stk_add_size(b->size, size, &need)) return false;
    if (need > b->capacity) {
        size_t larger = b->capacity ? b->capacity : 4096;
        while (larger < need)
            if (!stk_mul_size(larger, 2, &larger)) return false;
        uint8_t *grown = stk_realloc(b->data, b->capacity, larger);
        if (!grown) return false;
        b->data = grown;
        b->capacity = larger;
    }
    if (size) memcpy(b->data + b->size, data, size);
    b->size = need;
    return true;
}
