/* JPEG against libjpeg-turbo alone: our reading of Huffman codes must give the same pixels to the bit, whatever the kind
 * of file, and where data are damaged too; and a folder that resizes row by row gives what decoding as a whole does. */
#include "check.h"
#include "temporary.h"

#include "base/resize_taps.h"
#include "base/tensor.h"
#include "stoker/sources.h"

#if STK_HAVE_JPEG

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <jpeglib.h>

typedef struct kind {
    int height, width, channels, across, down, quality, restart;
    bool best_codes, progressive;
    int noise;
} kind;

static uint32_t bits = 1;
static uint32_t random_bits(void) { return (bits = bits * 1664525u + 1013904223u) >> 8; }

static uint8_t *encode(const kind *k, unsigned long *size)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    unsigned char *out = NULL;
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &out, size);
    c.image_height = (JDIMENSION)k->height;
    c.image_width = (JDIMENSION)k->width;
    c.input_components = k->channels;
    c.in_color_space = k->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, k->quality, TRUE);
    c.comp_info[0].h_samp_factor = k->across;
    c.comp_info[0].v_samp_factor = k->down;
    c.restart_interval = (unsigned)k->restart;
    c.optimize_coding = k->best_codes;
    if (k->progressive) jpeg_simple_progression(&c);
    jpeg_start_compress(&c, TRUE);
    uint8_t row[4096 * 3];
    for (int y = 0; y < k->height; y++) {
        for (int i = 0; i < k->width * k->channels; i++)
            row[i] = (uint8_t)(y * 2 + i / 3 + (k->noise ? (int)random_bits() % k->noise : 0));
        JSAMPROW at = row;
        jpeg_write_scanlines(&c, &at, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    return out;
}

static jmp_buf back;
static void give_up(j_common_ptr info)
{
    (void)info;
    longjmp(back, 1);
}
static void say_nothing(j_common_ptr info, int level) { (void)info, (void)level; }

/* By the library alone; NULL when it gives up. */
static uint8_t *plain(const uint8_t *data, unsigned long size, int eighths, size_t *bytes)
{
    static struct jpeg_decompress_struct d;
    static struct jpeg_error_mgr errors;
    static uint8_t *volatile pixels;
    pixels = NULL;
    d.err = jpeg_std_error(&errors);
    errors.error_exit = give_up;
    errors.emit_message = say_nothing;
    jpeg_create_decompress(&d);
    if (setjmp(back)) {
        jpeg_destroy_decompress(&d);
        free(pixels);
        return NULL;
    }
    jpeg_mem_src(&d, data, size);
    jpeg_read_header(&d, TRUE);
    d.out_color_space = d.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
    d.dct_method = JDCT_IFAST;
    d.scale_num = (unsigned)eighths;
    d.scale_denom = 8;
    jpeg_start_decompress(&d);
    size_t row = (size_t)d.output_width * (size_t)d.output_components;
    *bytes = row * d.output_height;
    pixels = calloc(1, *bytes);
    while (pixels && d.output_scanline < d.output_height) {
        JSAMPROW at = pixels + d.output_scanline * row;
        jpeg_read_scanlines(&d, &at, 1);
    }
    jpeg_destroy_decompress(&d);
    return pixels;
}

/* Ours and the library's; both may refuse, one alone may not. */
static void compare(const uint8_t *data, unsigned long size, int eighths, const kind *k, int what)
{
    stk_error err;
    stk_tensor *ours = NULL;
    stk_picture_options o = stk_picture_options_defaults();
    o.recover = true;
    o.least_height = eighths == 8 ? 0 : k->height * eighths / 8;
    o.least_width = eighths == 8 ? 0 : k->width * eighths / 8;
    size_t bytes = 0;
    uint8_t *theirs = plain(data, size, eighths, &bytes);
    stk_status status = stk_picture_decode(data, size, &o, &ours, &err);
    CHECK_MSG((status == STK_OK) == (theirs != NULL), "%dx%d damage %d: %s", k->width, k->height,
              what, status == STK_OK ? "the library refuses it" : err.message);
    if (status == STK_OK && theirs) {
        CHECK_EQ_I64(stk_tensor_bytes(ours), (int64_t)bytes);
        CHECK_MSG(memcmp(ours->data, theirs, bytes) == 0, "%dx%d, %d/8, damage %d: other pixels",
                  k->width, k->height, eighths, what);
    }
    stk_tensor_release(ours);
    free(theirs);
}

static const kind kinds[] = {
    {64, 64, 3, 2, 2, 90, 0, false, false, 32},    {61, 83, 3, 2, 2, 90, 0, false, false, 64},
    {40, 200, 3, 1, 1, 100, 0, false, false, 256}, {120, 72, 3, 2, 1, 75, 0, true, false, 16},
    {72, 96, 1, 1, 1, 95, 0, true, false, 100},    {96, 96, 3, 2, 2, 50, 1, false, false, 40},
    {96, 90, 3, 2, 2, 90, 5, true, false, 40},     {33, 47, 1, 1, 1, 30, 7, false, false, 0},
    {64, 80, 3, 2, 2, 85, 0, true, true, 50},      {8, 8, 3, 1, 1, 100, 0, false, false, 256},
    {1, 1, 3, 2, 2, 90, 0, false, false, 9},       {64, 64, 3, 4, 1, 90, 0, false, false, 80},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

TEST(pixels_are_those_of_the_library)
{
    for (int i = 0; i < KINDS; i++) {
        unsigned long size = 0;
        uint8_t *data = encode(&kinds[i], &size);
        compare(data, size, 8, &kinds[i], 0);
        for (int eighths = 1; eighths <= 4 && kinds[i].height % 8 == 0; eighths *= 2)
            if (kinds[i].width % 8 == 0) compare(data, size, eighths, &kinds[i], 0);
        free(data);
    }
}

/* Where the coded data of the first scan begin. */
static unsigned long behind_headers(const uint8_t *data, unsigned long size)
{
    for (unsigned long at = 2; at + 4 < size;) {
        unsigned long length = data[at + 2] * 256u + data[at + 3];
        if (data[at + 1] == 0xDA) return at + 2 + length;
        at += 2 + length;
    }
    return size - 1;
}

TEST(damage_gives_what_the_library_gives)
{
    for (int i = 0; i < KINDS; i++) {
        unsigned long size = 0;
        uint8_t *data = encode(&kinds[i], &size);
        uint8_t *copy = malloc(size);
        unsigned long start = behind_headers(data, size), rest = size - start;
        REQUIRE(CHECK(copy != NULL));
        for (int n = 0; n < 60; n++) { /* bytes changed */
            memcpy(copy, data, size);
            for (int j = 0; j <= n % 3; j++)
                copy[start + random_bits() % rest] = (uint8_t)random_bits();
            compare(copy, size, 8, &kinds[i], n + 1);
        }
        for (int n = 0; n < 20; n++) /* cut short */
            compare(data, start + random_bits() % rest, 8, &kinds[i], 1000 + n);
        free(copy);
        free(data);
    }
}

static void write_photo(const char *folder, const kind *k)
{
    char path[512];
    snprintf(path, sizeof path, "%s/a", folder);
    mkdir(folder, 0755);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/a/x.jpg", folder);
    unsigned long size = 0;
    uint8_t *data = encode(k, &size);
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(data, 1, size, f) == size);
    if (f) fclose(f);
    free(data);
}

/* The element of a folder with one picture. */
static stk_tensor *from_folder(const char *folder, const stk_image_folder_options *o)
{
    stk_error err;
    stk_tensor *parts[2] = {NULL};
    stk_stream *stream = NULL;
    bool end = false;
    stk_stream_options so = stk_stream_options_defaults();
    stk_dataset *ds = stk_data_image_folder(folder, o, &err);
    CHECK_OK(stk_dataset_stream(ds, &so, &stream, &err));
    CHECK_OK(stk_stream_next(stream, parts, &end, &err));
    stk_tensor_release(parts[1]);
    stk_stream_release(stream);
    stk_dataset_release(ds);
    return parts[0];
}

TEST(rows_are_resized_as_they_come)
{
    static const int32_t methods[] = {STK_TAPS_BILINEAR, STK_TAPS_BICUBIC, STK_TAPS_AREA};
    static const int64_t sizes[][2] = {{24, 24}, {61, 83}, {100, 150}, {1, 1}, {13, 90}};
    char folder[512];
    snprintf(folder, sizeof folder, "%s", temporary("photos"));
    write_photo(folder, &kinds[1]);
    for (int i = 0; i < 5 * 3 * 2; i++) {
        stk_error err;
        stk_image_folder_options o = stk_image_folder_options_defaults();
        o.method = methods[i % 3];
        o.antialias = i / 3 % 2 && o.method != STK_TAPS_AREA;
        o.height = sizes[i / 6][0];
        o.width = sizes[i / 6][1];
        stk_tensor *ours = from_folder(folder, &o), *whole = NULL, *want = NULL;
        stk_pixels *resize = NULL;
        stk_pixel_step step = {.op = STK_PIXEL_RESIZE,
                               .height = o.height,
                               .width = o.width,
                               .method = o.method,
                               .antialias = o.antialias};
        char path[600];
        snprintf(path, sizeof path, "%s/a/x.jpg", folder);
        CHECK_OK(stk_picture_load(path, NULL, &whole, &err));
        CHECK_OK(stk_pixels_new(1, &step, &resize, &err));
        CHECK_OK(stk_pixels_run(resize, 0, 0, whole, &want, &err));
        CHECK_EQ_I64(stk_tensor_bytes(ours), stk_tensor_bytes(want));
        CHECK(memcmp(ours->data, want->data, (size_t)stk_tensor_bytes(want)) == 0);
        stk_tensor_release(ours);
        stk_tensor_release(whole);
        stk_tensor_release(want);
        stk_pixels_release(resize);
    }
}

#else

int main(void)
{
    puts("NOT RUN: built without JPEG; to get it: apt install libjpeg-dev, then make again");
    return 77; /* skipped, for ctest */
}
#define STK_NOTHING_TO_TEST 1

#endif

#ifndef STK_NOTHING_TO_TEST
TEST_MAIN()
#endif
