/* PNG by libpng. Errors come by longjmp, memory through our hook. */
#include "data/pictures/picture.h"

#include <stdio.h>
#include <string.h>

#if STK_HAVE_PNG

#include <png.h>
#include <setjmp.h>

typedef struct job {
    png_structp png;
    png_infop info;
    bool writing;
    char text[128];
    const uint8_t *data;
    size_t size, at;
    stk_tensor *image;
    png_bytep *rows;
    stk_growing_bytes bytes;
    bool no_memory;
} job;

static void on_error(png_structp png, png_const_charp text)
{
    job *j = png_get_error_ptr(png);
    snprintf(j->text, sizeof j->text, "%s", text);
    png_longjmp(png, 1);
}
static void on_warning(png_structp png, png_const_charp text) { (void)png, (void)text; }
static png_voidp on_alloc(png_structp png, png_alloc_size_t size)
{
    job *j = png_get_mem_ptr(png);
    void *memory = stk_malloc(size);
    if (!memory) j->no_memory = true;
    return memory;
}
static void on_free(png_structp png, png_voidp memory)
{
    (void)png;
    stk_free(memory);
}
static void on_read(png_structp png, png_bytep to, size_t size)
{
    job *j = png_get_io_ptr(png);
    if (size > j->size - j->at) png_error(png, "the file is cut short");
    memcpy(to, j->data + j->at, size);
    j->at += size;
}
static void on_write(png_structp png, png_bytep from, size_t size)
{
    job *j = png_get_io_ptr(png);
    if (stk_growing_add(&j->bytes, from, size)) return;
    j->no_memory = true;
    png_error(png, "out of memory");
}
static void on_flush(png_structp png) { (void)png; }

static void job_close(job *j)
{
    if (j->png && j->writing) png_destroy_write_struct(&j->png, &j->info);
    if (j->png && !j->writing) png_destroy_read_struct(&j->png, &j->info, NULL);
    stk_tensor_release(j->image);
    stk_free(j->rows);
    stk_free(j->bytes.data);
}

static stk_status fail_job(const job *j, stk_error *err)
{
    if (j->no_memory) return stk_fail_memory(err, "PNG", j->bytes.size);
    return stk_fail(err, STK_ERR_FORMAT, "PNG: %s", j->text[0] ? j->text : "damaged");
}

static stk_status job_open(job *j, bool writing, stk_error *err)
{
    j->writing = writing;
    j->png = writing ? png_create_write_struct_2(PNG_LIBPNG_VER_STRING, j, on_error, on_warning, j,
                                                 on_alloc, on_free)
                     : png_create_read_struct_2(PNG_LIBPNG_VER_STRING, j, on_error, on_warning, j,
                                                on_alloc, on_free);
    j->info = j->png ? png_create_info_struct(j->png) : NULL;
    return j->info ? STK_OK : stk_fail_memory(err, "PNG", 4096);
}

static stk_status read_head(job *j, const stk_picture_options *o, stk_error *err)
{
    png_set_read_fn(j->png, j, on_read);
    png_set_user_limits(j->png, 0x7fffffff, 0x7fffffff);
    png_read_info(j->png, j->info);
    return stk_picture_check_size("PNG", png_get_image_height(j->png, j->info),
                                  png_get_image_width(j->png, j->info), o, err);
}

/* Channels of the picture as it is stored, palette and transparency resolved. */
static int32_t stored_channels(const job *j)
{
    int colour = png_get_color_type(j->png, j->info);
    bool clear = png_get_valid(j->png, j->info, PNG_INFO_tRNS) != 0;
    if (colour == PNG_COLOR_TYPE_PALETTE) return clear ? 4 : 3;
    if (colour == PNG_COLOR_TYPE_GRAY) return 1;
    if (colour == PNG_COLOR_TYPE_GRAY_ALPHA) return 2;
    return colour == PNG_COLOR_TYPE_RGB_ALPHA ? 4 : 3;
}

/* What libpng has to do to every row so that it comes out with `channels`. */
static void choose_steps(job *j, int32_t channels, bool wide)
{
    int colour = png_get_color_type(j->png, j->info), depth = png_get_bit_depth(j->png, j->info);
    int32_t stored = stored_channels(j);
    if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(j->png);
    if (colour == PNG_COLOR_TYPE_GRAY && depth < 8) png_set_expand_gray_1_2_4_to_8(j->png);
    if (!wide && depth == 16) png_set_strip_16(j->png);
    if (wide && depth < 16) png_set_expand_16(j->png);
    if (wide && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) png_set_swap(j->png);
    bool coloured = stored >= 3, has_alpha = stored == 2 || stored == 4;
    /* png_set_expand_16 turns a transparent colour into alpha on the way. */
    bool clear = png_get_valid(j->png, j->info, PNG_INFO_tRNS) != 0;
    if (clear && (channels == 2 || channels == 4)) png_set_tRNS_to_alpha(j->png);
    if (clear && (channels == 2 || channels == 4 || (wide && depth < 16))) has_alpha = true;
    if (channels >= 3 && !coloured) png_set_gray_to_rgb(j->png);
    if (channels <= 2 && coloured) png_set_rgb_to_gray(j->png, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
    if ((channels == 1 || channels == 3) && has_alpha) png_set_strip_alpha(j->png);
    if ((channels == 2 || channels == 4) && !has_alpha)
        png_set_add_alpha(j->png, 0xffff, PNG_FILLER_AFTER);
}

static stk_status decode(job *j, const stk_picture_options *o, stk_error *err)
{
    STK_TRY(read_head(j, o, err));
    int32_t channels = o->channels ? o->channels : stored_channels(j);
    choose_steps(j, channels, o->dtype == STK_U16);
    png_set_interlace_handling(j->png);
    png_read_update_info(j->png, j->info);
    int64_t height = png_get_image_height(j->png, j->info);
    int64_t shape[3] = {height, png_get_image_width(j->png, j->info), channels};
    size_t row = png_get_rowbytes(j->png, j->info);
    STK_TRY(stk_tensor_raw(o->dtype, 3, shape, &j->image, err));
    if ((int64_t)row * height != stk_tensor_bytes(j->image))
        return stk_fail(err, STK_ERR_INTERNAL, "PNG: rows of %zu bytes do not make %s", row,
                        STK_TENSOR_TEXT(j->image));
    j->rows = stk_calloc((size_t)height, sizeof *j->rows);
    if (!j->rows) return stk_fail_memory(err, "PNG", (size_t)height * sizeof *j->rows);
    for (int64_t y = 0; y < height; y++) j->rows[y] = (png_bytep)j->image->data + (size_t)y * row;
    png_read_image(j->png, j->rows);
    png_read_end(j->png, NULL);
    return STK_OK;
}

stk_status stk_png_decode(const uint8_t *data, size_t size, const stk_picture_options *o,
                          stk_tensor **out, stk_error *err)
{
    job j = {.data = data, .size = size}, *volatile keep = &j;
    stk_status status = job_open(&j, false, err);
    if (status == STK_OK) {
        if (setjmp(png_jmpbuf(j.png)))
            status = fail_job(keep, err);
        else
            status = decode(&j, o, err);
    }
    if (status == STK_OK) {
        *out = keep->image;
        keep->image = NULL;
    }
    job_close(keep);
    return status;
}

stk_status stk_png_probe(const uint8_t *data, size_t size, stk_picture_info *info, stk_error *err)
{
    job j = {.data = data, .size = size}, *volatile keep = &j;
    stk_picture_options o = stk_picture_options_defaults();
    stk_status status = job_open(&j, false, err);
    if (status == STK_OK) {
        if (setjmp(png_jmpbuf(j.png)))
            status = fail_job(keep, err);
        else
            status = read_head(&j, &o, err);
    }
    if (status == STK_OK) {
        info->height = png_get_image_height(keep->png, keep->info);
        info->width = png_get_image_width(keep->png, keep->info);
        info->channels = stored_channels(keep);
    }
    job_close(keep);
    return status;
}

static void encode(job *j, int32_t level)
{
    static const int colours[5] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                   PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
    const stk_tensor *image = j->image;
    bool wide = image->dtype == STK_U16;
    png_set_write_fn(j->png, j, on_write, on_flush);
    png_set_compression_level(j->png, level);
    png_set_IHDR(j->png, j->info, (png_uint_32)image->shape[1], (png_uint_32)image->shape[0],
                 wide ? 16 : 8, colours[image->shape[2]], PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(j->png, j->info);
    if (wide && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) png_set_swap(j->png);
    size_t row = (size_t)(image->shape[1] * image->shape[2]) * (wide ? 2 : 1);
    for (int64_t y = 0; y < image->shape[0]; y++)
        png_write_row(j->png, (png_const_bytep)image->data + (size_t)y * row);
    png_write_end(j->png, j->info);
}

stk_status stk_png_encode(const stk_tensor *image, int32_t level, char **bytes, size_t *size,
                          stk_error *err)
{
    *bytes = NULL;
    STK_TRY(stk_tensor_check("PNG", image, err));
    if ((image->dtype != STK_U8 && image->dtype != STK_U16) || image->rank != 3 ||
        image->shape[2] < 1 || image->shape[2] > 4 || image->shape[0] < 1 || image->shape[1] < 1 ||
        image->shape[0] > 1 << 24 || image->shape[1] > 1 << 24)
        return stk_fail(err, STK_ERR_SHAPE,
                        "PNG: cannot store %s; give uint8 or uint16 [height,width,1..4]",
                        STK_TENSOR_TEXT(image));
    if (level < -1 || level > 9)
        return stk_fail(err, STK_ERR_RANGE, "PNG: compression level %d; give -1..9", level);
    job j = {0}, *volatile keep = &j;
    stk_status status = stk_tensor_dense((stk_tensor *)(uintptr_t)image, &j.image, err);
    if (status == STK_OK) status = job_open(&j, true, err);
    if (status == STK_OK) {
        if (setjmp(png_jmpbuf(j.png)))
            status = fail_job(keep, err);
        else
            encode(&j, level);
    }
    if (status == STK_OK) {
        *bytes = (char *)keep->bytes.data;
        *size = keep->bytes.size;
        keep->bytes = (stk_growing_bytes){0};
    }
    job_close(keep);
    return status;
}

#else

static stk_status absent(stk_error *err)
{
    return stk_fail(err, STK_ERR_UNSUPPORTED,
                    "PNG: this build has no libpng; install libpng-dev and build again");
}
stk_status stk_png_decode(const uint8_t *data, size_t size, const stk_picture_options *o,
                          stk_tensor **out, stk_error *err)
{
    (void)data, (void)size, (void)o, (void)out;
    return absent(err);
}
stk_status stk_png_probe(const uint8_t *data, size_t size, stk_picture_info *info, stk_error *err)
{
    (void)data, (void)size, (void)info;
    return absent(err);
}
stk_status stk_png_encode(const stk_tensor *image, int32_t level, char **bytes, size_t *size,
                          stk_error *err)
{
    (void)image, (void)level, (void)size;
    *bytes = NULL;
    return absent(err);
}

#endif
