/* JPEG by libjpeg-turbo. The library reports errors by longjmp; everything that has to be given back
 * lives in a job that the jump does not touch. Its own memory comes from malloc, not from our hook. */
#include "data/pictures/picture.h"

#include <string.h>

#if STK_HAVE_JPEG

#include <setjmp.h>
#include <stdio.h> /* before jpeglib.h, which needs FILE */

#include "data/pictures/jpeg_huffman.h"

#include <jerror.h>

typedef struct job {
    struct jpeg_decompress_struct in;
    struct jpeg_compress_struct out;
    struct jpeg_error_mgr errors;
    jmp_buf back;
    char text[JMSG_LENGTH_MAX];
    bool cut_short;
    stk_tensor *image;
    uint8_t *row; /* one decoded row, where it cannot go straight into the image */
    stk_growing_bytes bytes;
    struct jpeg_destination_mgr to;
    union {
        uint8_t block[16 << 10];  /* encoding */
        stk_jpeg_huffman huffman; /* decoding */
    };
} job;

enum { JUMP_ERROR = 1, JUMP_MEMORY, JUMP_ODD };

/* Options after the sizes are known, in pixels of the decoded (maybe smaller) picture. */
typedef struct window {
    int64_t top, left, height, width;
} window;

static void on_error(j_common_ptr info)
{
    job *j = info->client_data;
    info->err->format_message(info, j->text);
    longjmp(j->back, JUMP_ERROR);
}
static void on_message(j_common_ptr info, int level)
{
    job *j = info->client_data;
    if (level < 0 && info->err->msg_code == JWRN_JPEG_EOF) j->cut_short = true;
}

static job *job_new(stk_error *err)
{
    job *j = stk_calloc(1, sizeof *j);
    if (!j) {
        stk_fail_memory(err, "JPEG", sizeof *j);
        return NULL;
    }
    j->in.err = j->out.err = jpeg_std_error(&j->errors);
    j->in.client_data = j->out.client_data = j;
    j->errors.error_exit = on_error;
    j->errors.emit_message = on_message;
    return j;
}

/* With everything that is still inside. */
static void job_free(job *j)
{
    jpeg_destroy_decompress(&j->in);
    jpeg_destroy_compress(&j->out);
    stk_tensor_release(j->image);
    stk_free(j->row);
    stk_free(j->bytes.data);
    stk_free(j);
}

static stk_status fail_job(const job *j, stk_error *err)
{
    return stk_fail(err, STK_ERR_FORMAT, "JPEG: %s", j->text[0] ? j->text : "damaged");
}

/* ---- decoding ----------------------------------------------------------------------------------- */

static stk_status begin(job *j, const uint8_t *data, size_t size, const stk_picture_options *o,
                        stk_error *err)
{
    jpeg_create_decompress(&j->in);
    j->in.client_data = j;
    jpeg_mem_src(&j->in, data, (unsigned long)size);
    if (jpeg_read_header(&j->in, TRUE) != JPEG_HEADER_OK) return fail_job(j, err);
    return stk_picture_check_size("JPEG", j->in.image_height, j->in.image_width, o, err);
}

static stk_status choose_colours(job *j, int32_t channels, stk_error *err)
{
    struct jpeg_decompress_struct *d = &j->in;
    if (channels == 4)
        return stk_fail(err, STK_ERR_UNSUPPORTED, "JPEG: has no alpha channel; ask for 0, 1 or 3");
    if (d->num_components == 4) { /* inks; turned into RGB row by row */
        if (channels == 1)
            return stk_fail(err, STK_ERR_UNSUPPORTED,
                            "JPEG: a CMYK picture is decoded to 3 channels, not to 1");
        d->out_color_space = JCS_CMYK;
        return STK_OK;
    }
    if (channels == 0) channels = d->num_components == 1 ? 1 : 3;
    d->out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    return STK_OK;
}

/* 8, 4, 2 or 1 eighths: the fractions the library has vector code for. */
static unsigned choose_eighths(const stk_picture_options *o, int64_t height, int64_t width)
{
    unsigned eighths = 8;
    if (o->least_height < 1 || o->least_width < 1) return 8;
    while (eighths > 1 && height * (eighths / 2) / 8 >= o->least_height &&
           width * (eighths / 2) / 8 >= o->least_width)
        eighths /= 2;
    return eighths;
}

static stk_status choose_window(const job *j, const stk_picture_options *o, window *w,
                                unsigned *eighths, stk_error *err)
{
    int64_t full_h = j->in.image_height, full_w = j->in.image_width;
    int64_t height = o->height ? o->height : full_h - o->top;
    int64_t width = o->width ? o->width : full_w - o->left;
    if (o->top < 0 || o->left < 0 || height < 1 || width < 1 || height > full_h - o->top ||
        width > full_w - o->left)
        return stk_fail(
            err, STK_ERR_RANGE,
            "JPEG: the crop of %lld x %lld at (%lld, %lld) is not inside of %lld x %lld "
            "pixels",
            (long long)width, (long long)height, (long long)o->left, (long long)o->top,
            (long long)full_w, (long long)full_h);
    unsigned e = *eighths = choose_eighths(o, height, width);
    w->top = o->top * e / 8;
    w->left = o->left * e / 8;
    w->height = stk_ceil_div((o->top + height) * e, 8) - w->top;
    w->width = stk_ceil_div((o->left + width) * e, 8) - w->left;
    return STK_OK;
}

/* Adobe stores inks inverted: 255 is no ink. */
static void inks_to_rgb(uint8_t *rgb, const uint8_t *inks, int64_t n, bool inverted)
{
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < 3; c++) {
            unsigned ink = inks[4 * i + c], black = inks[4 * i + 3];
            if (!inverted) ink = 255 - ink, black = 255 - black;
            rgb[3 * i + c] = (uint8_t)((ink * black + 127) / 255);
        }
}

/* Narrows decoding to the columns of the window plus a margin, because colours are interpolated
 * across its border. Sets the first decoded column. */
static void narrow(job *j, const window *w, int64_t *first)
{
    *first = 0;
#ifdef LIBJPEG_TURBO_VERSION_NUMBER
    enum { MARGIN = 16 };
    int64_t all = j->in.output_width;
    int64_t from = stk_max_i64(w->left - MARGIN, 0);
    int64_t to = stk_min_i64(w->left + w->width + MARGIN, all);
    if (to - from >= all) return;
    JDIMENSION offset = (JDIMENSION)from, width = (JDIMENSION)(to - from);
    jpeg_crop_scanline(&j->in, &offset, &width);
    *first = offset;
#else
    (void)w;
#endif
}

static void skip_rows(job *j, int64_t rows)
{
#ifdef LIBJPEG_TURBO_VERSION_NUMBER
    if (rows > 0) jpeg_skip_scanlines(&j->in, (JDIMENSION)rows);
#else
    for (JSAMPROW row = j->row; rows > 0; rows--) jpeg_read_scanlines(&j->in, &row, 1);
#endif
}

/* Rows of the window to the taker. One that is not wanted is passed over, which saves its colours, except at the end:
 * there it is read, to see whether the file is whole. */
static void read_rows(job *j, const window *w, int64_t first, const stk_row_taker *taker)
{
    int64_t parts = j->in.output_components, channels = parts == 4 ? 3 : parts;
    bool inks = parts == 4, straight = !inks && w->left == first && j->in.output_width == w->width;
    int64_t last = w->height - 1;
    for (int64_t y = 0; y < w->height; y++) {
        uint8_t *to = taker->place(taker->context, y);
        if (!to && y < last) {
            skip_rows(j, 1);
            continue;
        }
        JSAMPROW row = straight && to ? to : j->row;
        jpeg_read_scanlines(&j->in, &row, 1);
        if (!to) continue;
        const uint8_t *from = j->row + (w->left - first) * parts;
        if (inks)
            inks_to_rgb(to, from, w->width, j->in.saw_Adobe_marker);
        else if (!straight)
            memcpy(to, from, (size_t)(w->width * channels));
        taker->put(taker->context, y);
    }
}

static void on_odd(j_decompress_ptr info) { longjmp(((job *)info->client_data)->back, JUMP_ODD); }

static boolean decode_mcu(j_decompress_ptr info, JBLOCKROW *blocks)
{
    stk_jpeg_huffman_mcu(&((job *)info->client_data)->huffman, info, blocks);
    return TRUE;
}

static stk_status decode(job *j, const uint8_t *data, size_t size, const stk_picture_options *o,
                         const stk_row_taker *taker, bool alone, stk_error *err)
{
    window w = {0};
    unsigned eighths = 8;
    STK_TRY(begin(j, data, size, o, err));
    STK_TRY(choose_colours(j, o->channels, err));
    STK_TRY(choose_window(j, o, &w, &eighths, err));
    j->in.scale_num = eighths;
    j->in.scale_denom = 8;
    j->in.dct_method = o->accurate ? JDCT_ISLOW : JDCT_IFAST;
    jpeg_start_decompress(&j->in);
    j->huffman.odd = on_odd;
    if (!alone) (void)stk_jpeg_huffman_install(&j->huffman, &j->in, decode_mcu);
    /* Rounding up may end beyond the decoded picture by one. */
    w.height = stk_min_i64(w.height, (int64_t)j->in.output_height - w.top);
    w.width = stk_min_i64(w.width, (int64_t)j->in.output_width - w.left);
    size_t row = (size_t)j->in.output_width * (size_t)j->in.output_components;
    int64_t first = 0, channels = j->in.output_components == 4 ? 3 : j->in.output_components;
    j->row = stk_malloc(row);
    if (!j->row) return stk_fail_memory(err, "JPEG", row);
    STK_TRY(taker->begin(taker->context, w.height, w.width, channels, err));
    narrow(j, &w, &first);
    skip_rows(j, w.top);
    read_rows(j, &w, first, taker);
    if (j->cut_short && !o->recover)
        return stk_fail(err, STK_ERR_FORMAT, "JPEG: the file is cut short");
    return STK_OK;
}

/* alone: the library without our reading of codes. *odd: the data need that. */
static stk_status decode_once(const uint8_t *data, size_t size, const stk_picture_options *o,
                              const stk_row_taker *taker, bool alone, bool *odd, stk_error *err)
{
    job *j = job_new(err);
    if (!j) return STK_ERR_MEMORY;
    stk_status status;
    int jump = setjmp(j->back);
    *odd = jump == JUMP_ODD;
    if (jump)
        status = fail_job(j, err);
    else
        status = decode(j, data, size, o, taker, alone, err);
    job_free(j);
    return status;
}

stk_status stk_jpeg_decode_rows(const uint8_t *data, size_t size, const stk_picture_options *o,
                                const stk_row_taker *taker, stk_error *err)
{
    bool odd = false;
    stk_status status = decode_once(data, size, o, taker, false, &odd, err);
    return odd ? decode_once(data, size, o, taker, true, &odd, err) : status;
}

/* A taker that keeps everything. */
static stk_status keep_begin(void *context, int64_t height, int64_t width, int64_t channels,
                             stk_error *err)
{
    stk_tensor **image = context;
    if (*image) return STK_OK; /* the second attempt */
    return stk_tensor_raw(STK_U8, 3, (int64_t[]){height, width, channels}, image, err);
}
static uint8_t *keep_place(void *context, int64_t y)
{
    const stk_tensor *image = *(stk_tensor **)context;
    return (uint8_t *)image->data + y * image->stride[0];
}
static void keep_put(void *context, int64_t y) { (void)context, (void)y; }

stk_status stk_jpeg_decode(const uint8_t *data, size_t size, const stk_picture_options *o,
                           stk_tensor **out, stk_error *err)
{
    stk_tensor *image = NULL;
    stk_row_taker taker = {&image, keep_begin, keep_place, keep_put};
    stk_status status = stk_jpeg_decode_rows(data, size, o, &taker, err);
    if (status == STK_OK)
        *out = image;
    else
        stk_tensor_release(image);
    return status;
}

stk_status stk_jpeg_probe(const uint8_t *data, size_t size, stk_picture_info *info, stk_error *err)
{
    job *j = job_new(err);
    if (!j) return STK_ERR_MEMORY;
    stk_picture_options o = stk_picture_options_defaults();
    stk_status status;
    if (setjmp(j->back))
        status = fail_job(j, err);
    else
        status = begin(j, data, size, &o, err);
    if (status == STK_OK) {
        info->height = j->in.image_height;
        info->width = j->in.image_width;
        info->channels = j->in.num_components == 1 ? 1 : 3;
    }
    job_free(j);
    return status;
}

/* ---- encoding ----------------------------------------------------------------------------------- */

static void start_bytes(j_compress_ptr out)
{
    job *j = out->client_data;
    j->to.next_output_byte = j->block;
    j->to.free_in_buffer = sizeof j->block;
}
static boolean more_room(j_compress_ptr out)
{
    job *j = out->client_data;
    if (!stk_growing_add(&j->bytes, j->block, sizeof j->block)) longjmp(j->back, JUMP_MEMORY);
    start_bytes(out);
    return TRUE;
}
static void end_bytes(j_compress_ptr out)
{
    job *j = out->client_data;
    if (!stk_growing_add(&j->bytes, j->block, sizeof j->block - j->to.free_in_buffer))
        longjmp(j->back, JUMP_MEMORY);
}

static void encode(job *j, const stk_tensor *image, int32_t quality, bool fine)
{
    jpeg_create_compress(&j->out);
    j->out.client_data = j;
    j->to = (struct jpeg_destination_mgr){.init_destination = start_bytes,
                                          .empty_output_buffer = more_room,
                                          .term_destination = end_bytes};
    j->out.dest = &j->to;
    j->out.image_height = (JDIMENSION)image->shape[0];
    j->out.image_width = (JDIMENSION)image->shape[1];
    j->out.input_components = (int)image->shape[2];
    j->out.in_color_space = image->shape[2] == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&j->out);
    jpeg_set_quality(&j->out, quality, TRUE);
    if (fine) j->out.comp_info[0].h_samp_factor = j->out.comp_info[0].v_samp_factor = 1;
    jpeg_start_compress(&j->out, TRUE);
    size_t row = (size_t)(image->shape[1] * image->shape[2]);
    while (j->out.next_scanline < j->out.image_height) {
        JSAMPROW at = (uint8_t *)image->data + j->out.next_scanline * row;
        jpeg_write_scanlines(&j->out, &at, 1);
    }
    jpeg_finish_compress(&j->out);
}

stk_status stk_jpeg_encode(const stk_tensor *image, int32_t quality, bool fine, char **bytes,
                           size_t *size, stk_error *err)
{
    *bytes = NULL;
    STK_TRY(stk_tensor_check("JPEG", image, err));
    if (image->dtype != STK_U8 || image->rank != 3 ||
        (image->shape[2] != 1 && image->shape[2] != 3) || image->shape[0] < 1 ||
        image->shape[1] < 1 || image->shape[0] > 65500 || image->shape[1] > 65500)
        return stk_fail(err, STK_ERR_SHAPE,
                        "JPEG: cannot store %s; give uint8[height,width,1 or 3] of at most 65500",
                        STK_TENSOR_TEXT(image));
    if (quality < 1 || quality > 100)
        return stk_fail(err, STK_ERR_RANGE, "JPEG: quality %d; give 1..100", quality);
    job *j = job_new(err);
    if (!j) return STK_ERR_MEMORY;
    stk_status status = stk_tensor_dense((stk_tensor *)(uintptr_t)image, &j->image, err);
    if (status == STK_OK) {
        int jump = setjmp(j->back);
        if (jump == 0)
            encode(j, j->image, quality, fine);
        else
            status = jump == JUMP_MEMORY ? stk_fail_memory(err, "JPEG", j->bytes.size * 2)
                                         : fail_job(j, err);
    }
    if (status == STK_OK) {
        *bytes = (char *)j->bytes.data;
        *size = j->bytes.size;
        j->bytes = (stk_growing_bytes){0};
    }
    job_free(j);
    return status;
}

#else

static stk_status absent(stk_error *err)
{
    return stk_fail(err, STK_ERR_UNSUPPORTED,
                    "JPEG: this build has no libjpeg; install libjpeg-dev and build again");
}
stk_status stk_jpeg_decode(const uint8_t *data, size_t size, const stk_picture_options *o,
                           stk_tensor **out, stk_error *err)
{
    (void)data, (void)size, (void)o, (void)out;
    return absent(err);
}
stk_status stk_jpeg_decode_rows(const uint8_t *data, size_t size, const stk_picture_options *o,
                                const stk_row_taker *taker, stk_error *err)
{
    (void)data, (void)size, (void)o, (void)taker;
    return absent(err);
}
stk_status stk_jpeg_probe(const uint8_t *data, size_t size, stk_picture_info *info, stk_error *err)
{
    (void)data, (void)size, (void)info;
    return absent(err);
}
stk_status stk_jpeg_encode(const stk_tensor *image, int32_t quality, bool fine, char **bytes,
                           size_t *size, stk_error *err)
{
    (void)image, (void)quality, (void)fine, (void)size;
    *bytes = NULL;
    return absent(err);
}

#endif
