/* Pictures: decoded as TensorFlow does, cropped and scaled, written and read again, damage refused. */
#include "check.h"

#include "base/file.h"
#include "base/tensor.h"
#include "stoker/picture.h"

#include <zlib.h>

static stk_npz *decoded;

static const char *golden(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/data/golden/%s", STK_TEST_DIR, name);
    return path;
}
static stk_tensor *want(const char *name)
{
    stk_error err;
    if (!decoded) CHECK_OK(stk_npz_load(golden("decoded.npz"), &decoded, &err));
    stk_tensor *t = decoded ? stk_npz_find(decoded, name) : NULL;
    CHECK_MSG(t != NULL, "no %s in decoded.npz", name);
    return t;
}
__attribute__((destructor)) static void forget(void) { stk_npz_release(decoded); }

/* Largest difference of two images of one shape, -1 when the shapes differ. */
static int64_t difference(const stk_tensor *a, const stk_tensor *b)
{
    if (!a || !b || a->dtype != b->dtype || a->rank != b->rank ||
        memcmp(a->shape, b->shape, (size_t)a->rank * 8) != 0)
        return -1;
    int64_t worst = 0, n = stk_tensor_count(a);
    for (int64_t i = 0; i < n; i++) {
        int64_t d = (int64_t)stk_tensor_at(a, i) - (int64_t)stk_tensor_at(b, i);
        if (d < 0) d = -d;
        if (d > worst) worst = d;
    }
    return worst;
}

static bool built(const char *name)
{
    return stk_picture_supported(strstr(name, ".jpg")   ? STK_PICTURE_JPEG
                                 : strstr(name, ".png") ? STK_PICTURE_PNG
                                                        : STK_PICTURE_GIF);
}

static void check_file(const char *name, const char *expected, stk_picture_options options,
                       int64_t tolerance)
{
    stk_error err;
    stk_tensor *image = NULL;
    if (!built(name)) return;
    REQUIRE(CHECK_OK(stk_picture_load(golden(name), &options, &image, &err)));
    int64_t d = difference(image, want(expected));
    CHECK_MSG(d >= 0 && d <= tolerance, "%s: %s, differs by %d", expected, STK_TENSOR_TEXT(image),
              (int)d);
    stk_tensor_release(image);
}

TEST(pictures_decode_as_in_tensorflow)
{
    static const char *const names[] = {"photo.jpg", "photo420.jpg", "gray.jpg", "photo.png",
                                        "gray.png",  "alpha.png",    "wide.png", "palette.png",
                                        "photo.bmp", "photo.gif"};
    stk_picture_options o = stk_picture_options_defaults();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) check_file(names[i], names[i], o, 0);
    o.dtype = STK_U16;
    check_file("wide.png", "wide.png/uint16", o, 0);
    o = stk_picture_options_defaults();
    o.channels = 3;
    check_file("gray.jpg", "gray.jpg/3", o, 0);
    o.channels = 1;
    check_file("photo420.jpg", "photo420.jpg/1", o, 0);
}

TEST(crops_are_cut_from_the_whole)
{
    stk_error err;
    stk_picture_options o = stk_picture_options_defaults();
    o.top = 17, o.left = 23, o.height = 30, o.width = 41;
    check_file("photo420.jpg", "photo420.jpg/crop", o, 6); /* theirs is off at its borders */
    static const char *const names[] = {"photo420.jpg", "photo.jpg", "photo.png", "photo.bmp"};
    for (size_t i = 0; i < 4; i++) {
        stk_tensor *whole = NULL, *part = NULL, *view = NULL;
        if (!built(names[i])) continue;
        REQUIRE(CHECK_OK(stk_picture_load(golden(names[i]), NULL, &whole, &err)));
        REQUIRE(CHECK_OK(stk_picture_load(golden(names[i]), &o, &part, &err)));
        CHECK_OK(
            stk_tensor_slice(whole, (int64_t[]){17, 23, 0}, (int64_t[]){30, 41, 3}, &view, &err));
        CHECK_MSG(difference(part, view) == 0, "%s: crop differs by %d", names[i],
                  (int)difference(part, view));
        stk_tensor_release(whole);
        stk_tensor_release(part);
        stk_tensor_release(view);
    }
    o.width = 80;
    stk_tensor *image = NULL;
    CHECK_FAILS(stk_picture_load(golden("photo.bmp"), &o, &image, &err), STK_ERR_RANGE, "inside");
}

TEST(jpeg_is_decoded_smaller)
{
    if (!built(".jpg")) return;
    stk_error err;
    stk_picture_options o = stk_picture_options_defaults();
    stk_tensor *image = NULL, *whole = NULL;
    o.least_height = 30, o.least_width = 30;
    REQUIRE(CHECK_OK(stk_picture_load(golden("photo.jpg"), &o, &image, &err)));
    REQUIRE(CHECK_OK(stk_picture_load(golden("photo.jpg"), NULL, &whole, &err)));
    CHECK_STR(STK_TENSOR_TEXT(image), "uint8[31,42,3]");
    double a = 0, b = 0;
    for (int64_t i = 0; i < stk_tensor_count(image); i++) a += stk_tensor_at(image, i);
    for (int64_t i = 0; i < stk_tensor_count(whole); i++) b += stk_tensor_at(whole, i);
    CHECK_NEAR(a / (double)stk_tensor_count(image), b / (double)stk_tensor_count(whole), 2);
    stk_tensor_release(image);
    stk_tensor_release(whole);
}

TEST(what_is_written_is_read_again)
{
    stk_error err;
    stk_tensor *photo = NULL, *again = NULL;
    char *bytes = NULL;
    size_t size = 0;
    REQUIRE(CHECK_OK(stk_picture_load(golden("photo.bmp"), NULL, &photo, &err)));
    if (built(".png")) {
        CHECK_OK(stk_png_encode(photo, 9, &bytes, &size, &err));
        CHECK_OK(stk_picture_decode(bytes, size, NULL, &again, &err));
        CHECK_EQ_I64(difference(photo, again), 0);
        stk_tensor_release(again);
        stk_bytes_free(bytes);
        CHECK_OK(stk_png_encode(want("wide.png/uint16"), -1, &bytes, &size, &err));
        stk_picture_options o = stk_picture_options_defaults();
        o.dtype = STK_U16;
        CHECK_OK(stk_picture_decode(bytes, size, &o, &again, &err));
        CHECK_EQ_I64(difference(want("wide.png/uint16"), again), 0);
        stk_tensor_release(again);
        stk_bytes_free(bytes);
    }
    if (built(".jpg")) {
        CHECK_OK(stk_jpeg_encode(photo, 95, true, &bytes, &size, &err));
        CHECK_OK(stk_picture_decode(bytes, size, NULL, &again, &err));
        CHECK(difference(photo, again) >= 0 && difference(photo, again) < 25);
        stk_tensor_release(again);
        stk_bytes_free(bytes);
        CHECK_FAILS(stk_jpeg_encode(photo, 0, true, &bytes, &size, &err), STK_ERR_RANGE, "quality");
    }
    stk_tensor_release(photo);
}

/* 8 bits with a palette, 3 x 2. */
TEST(bmp_of_8_bits_has_one_channel)
{
    stk_error err;
    enum { PALETTE = 54, PIXELS = PALETTE + 8 * 4, SIZE = PIXELS + 2 * 4 };
    uint8_t file[SIZE] = {
        'B', 'M', [10] = PIXELS, [14] = 40, [18] = 3, [22] = 2, [26] = 1, [28] = 8, [46] = 8};
    for (int i = 0; i < 8; i++) {
        file[PALETTE + 4 * i] = (uint8_t)(10 * i);
        file[PALETTE + 4 * i + 1] = (uint8_t)(20 * i);
        file[PALETTE + 4 * i + 2] = (uint8_t)(30 * i);
    }
    for (int i = 0; i < 6; i++) file[PIXELS + i / 3 * 4 + i % 3] = (uint8_t)i;
    stk_tensor *t = NULL;
    REQUIRE(CHECK_OK(stk_picture_decode(file, SIZE, NULL, &t, &err)));
    CHECK_STR(STK_TENSOR_TEXT(t), "uint8[2,3,1]");
    static const uint8_t bytes[6] = {3, 4, 5, 0, 1, 2}; /* as tf.image.decode_bmp says */
    CHECK(memcmp(t->data, bytes, 6) == 0);
    stk_tensor_release(t);
    stk_picture_info info;
    CHECK_OK(stk_picture_probe(file, SIZE, &info, &err));
    CHECK_EQ_I64(info.channels, 1);
    stk_picture_options o = stk_picture_options_defaults();
    o.channels = 3;
    REQUIRE(CHECK_OK(stk_picture_decode(file, SIZE, &o, &t, &err)));
    for (int i = 0; i < 18; i++)
        CHECK_EQ_I64(((const uint8_t *)t->data)[i], bytes[i / 3] * (30 - 10 * (i % 3)));
    stk_tensor_release(t);
}

/* The PNG with a transparent colour put in behind its head. */
static size_t make_clear(const char *png, size_t size, int32_t channels, uint8_t *out)
{
    uint8_t chunk[12 + 6] = {0, 0, 0, (uint8_t)(2 * channels), 't', 'R', 'N', 'S'};
    size_t value = 2 * (size_t)channels, head = 33;
    for (size_t i = 0; i < value; i += 2) chunk[8 + i + 1] = 7; /* the colour 7 (7 7) */
    uint32_t sum = (uint32_t)crc32(0, chunk + 4, (uInt)(4 + value));
    for (int i = 0; i < 4; i++) chunk[8 + value + (size_t)i] = (uint8_t)(sum >> (24 - 8 * i));
    memcpy(out, png, head);
    memcpy(out + head, chunk, 12 + value);
    memcpy(out + head + 12 + value, png + head, size - head);
    return size + 12 + value;
}

/* As 16 bits every value is 257 times the one of 8 bits, whatever becomes of the transparent colour. */
TEST(a_transparent_colour_in_16_bits)
{
    stk_error err;
    if (!built(".png")) return;
    for (int32_t stored = 1; stored <= 3; stored += 2) {
        stk_tensor *image = NULL, *narrow = NULL, *wide = NULL;
        char *bytes = NULL;
        uint8_t file[4096];
        size_t size = 0;
        REQUIRE(CHECK_OK(stk_tensor_new(STK_U8, 3, (int64_t[]){4, 5, stored}, &image, &err)));
        for (int64_t i = 0; i < 20 * stored; i++)
            ((uint8_t *)image->data)[i] = (uint8_t)(i / stored == 3 ? 7 : 11 * i);
        REQUIRE(CHECK_OK(stk_png_encode(image, 9, &bytes, &size, &err)));
        size = make_clear(bytes, size, stored, file);
        for (int32_t channels = 0; channels <= 4; channels += 1 + (channels == 1)) {
            stk_picture_options o = stk_picture_options_defaults();
            o.channels = channels;
            REQUIRE(CHECK_OK(stk_picture_decode(file, size, &o, &narrow, &err)));
            o.dtype = STK_U16;
            REQUIRE(CHECK_OK(stk_picture_decode(file, size, &o, &wide, &err)));
            REQUIRE(CHECK_EQ_I64(stk_tensor_count(wide), stk_tensor_count(narrow)));
            for (int64_t i = 0; i < stk_tensor_count(wide); i++)
                CHECK_NEAR(stk_tensor_at(wide, i), 257 * stk_tensor_at(narrow, i), 257);
            if (channels == 4) CHECK_EQ_I64(stk_tensor_at(wide, 3 * 4 + 3), 0);
            stk_tensor_release(narrow);
            stk_tensor_release(wide);
        }
        stk_bytes_free(bytes);
        stk_tensor_release(image);
    }
}

/* Every prefix of a file, and every file with one byte changed, is decoded or refused. */
TEST(damage_is_refused)
{
    stk_error err;
    static const char *const names[] = {"photo420.jpg", "gray.png", "photo.gif", "photo.bmp"};
    for (size_t k = 0; k < 4; k++) {
        char *data = NULL;
        size_t size = 0;
        if (!built(names[k])) continue;
        REQUIRE(CHECK_OK(stk_file_read(golden(names[k]), 1 << 20, &data, &size, &err)));
        int64_t live = stk_alloc_live(), refused = 0;
        for (size_t cut = 0; cut < size; cut += 97) {
            stk_tensor *image = NULL;
            refused += stk_picture_decode(data, cut, NULL, &image, NULL) != STK_OK;
            stk_tensor_release(image);
        }
        CHECK_MSG(refused >= (int64_t)(size / 97) - 1, "%s: only %d refused", names[k],
                  (int)refused);
        for (size_t at = 0; at < size; at += 1 + at / 40) {
            stk_tensor *image = NULL;
            stk_picture_info info;
            data[at] = (char)(data[at] ^ 0x55);
            (void)!stk_picture_probe(data, size, &info, NULL);
            (void)!stk_picture_decode(data, size, NULL, &image, NULL);
            data[at] = (char)(data[at] ^ 0x55);
            stk_tensor_release(image);
        }
        CHECK_EQ_I64(stk_alloc_live(), live);
        stk_free(data);
    }
    stk_tensor *image = NULL;
    CHECK_FAILS(stk_picture_decode("plain text", 10, NULL, &image, &err), STK_ERR_FORMAT, "JPEG");
    stk_picture_options o = stk_picture_options_defaults();
    o.most_pixels = 100;
    CHECK_FAILS(stk_picture_load(golden("photo.gif"), &o, &image, &err), STK_ERR_RANGE,
                "most_pixels");
}

TEST(probing_reads_the_head_only)
{
    stk_error err;
    static const char *const names[] = {"photo.jpg", "alpha.png", "photo.gif", "photo.bmp"};
    for (size_t k = 0; k < 4; k++) {
        char *data = NULL;
        size_t size = 0;
        stk_picture_info info;
        if (!built(names[k])) continue;
        REQUIRE(CHECK_OK(stk_file_read(golden(names[k]), 1 << 20, &data, &size, &err)));
        CHECK_OK(stk_picture_probe(data, size, &info, &err));
        CHECK_EQ_I64(info.height, want(names[k])->shape[0]);
        CHECK_EQ_I64(info.width, want(names[k])->shape[1]);
        CHECK_EQ_I64(info.channels, want(names[k])->shape[2]);
        stk_free(data);
    }
}

static stk_status decode_and_encode(const char *name)
{
    stk_tensor *image = NULL;
    char *bytes = NULL;
    size_t size = 0;
    stk_status status = stk_picture_load(golden(name), NULL, &image, NULL);
    if (status == STK_OK && built(".png")) status = stk_png_encode(image, -1, &bytes, &size, NULL);
    stk_bytes_free(bytes);
    bytes = NULL;
    if (status == STK_OK && built(".jpg") && image->shape[2] == 3)
        status = stk_jpeg_encode(image, 90, false, &bytes, &size, NULL);
    stk_bytes_free(bytes);
    stk_tensor_release(image);
    return status;
}

TEST(no_memory_is_an_ordinary_error)
{
    if (built(".jpg")) OOM_LOOP(decode_and_encode("photo.jpg"));
    if (built(".png")) OOM_LOOP(decode_and_encode("alpha.png"));
    OOM_LOOP(decode_and_encode("photo.gif"));
}

TEST_MAIN()
