/* pictures.c - experiments with pictures that are augmented on their way to a small convolutional net. */
#define _GNU_SOURCE /* memfd_create */
#include "watch/paradox/experiments.h"

#include "base/crc32c.h"
#include "base/memory.h"
#include "base/rng.h"
#include "stoker/sources.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PICTURES = 512, SIDE = 64, CUT = 56, CHANNELS = 3, BATCH = 32, SEED = 5 };

static const char *const SMALL_CONV[] = {"Input(shape=(56, 56, 3))",
                                         "Conv2D(8, 3, strides=2, activation=relu)",
                                         "GlobalAveragePooling2D()", "Dense(10)", NULL};

static stk_status draw(stk_tensor **x, stk_tensor **y, stk_error *err)
{
    enum { BYTES = PICTURES * SIDE * SIDE * CHANNELS };
    *x = *y = NULL;
    STK_TRY(stk_tensor_new(STK_U8, 4, (int64_t[]){PICTURES, SIDE, SIDE, CHANNELS}, x, err));
    STK_TRY(stk_tensor_new(STK_I64, 1, (int64_t[]){PICTURES}, y, err));
    stk_rng_words((stk_rng){.seed = SEED}, 0, BYTES / 4, (*x)->data);
    for (int64_t i = 0; i < PICTURES; i++) ((int64_t *)(*y)->data)[i] = i % 10;
    return STK_OK;
}

/* ---- the pipeline behind either source ------------------------------------------------------------------------- */

static stk_dataset *augmented(stk_dataset *ds, bool cured, stk_error *err)
{
    static const stk_pixel_step steps[] = {
        {.op = STK_PIXEL_RANDOM_CROP, .height = CUT, .width = CUT},
        {.op = STK_PIXEL_RANDOM_FLIP_LEFT_RIGHT},
        {.op = STK_PIXEL_RESCALE, .scale = {1.0f / 255}},
        {.op = STK_PIXEL_RANDOM_BRIGHTNESS, .a = 0.2},
        {.op = STK_PIXEL_RANDOM_CONTRAST, .a = 0.7, .b = 1.3},
        {.op = STK_PIXEL_RANDOM_SATURATION, .a = 0.7, .b = 1.3}};
    stk_pixels *pixels = NULL;
    stk_map_fn fn;
    stk_map_options how = {.parallel = cured ? STK_AUTOTUNE : 1, .seed = SEED};
    stk_status status = stk_pixels_new(sizeof steps / sizeof *steps, steps, &pixels, err);
    if (status == STK_OK) status = stk_map_pixels(pixels, 0, &fn, err);
    stk_pixels_release(pixels);
    if (status != STK_OK) {
        stk_dataset_release(ds);
        return NULL;
    }
    ds = stk_data_map(ds, &fn, &how, err);
    ds = stk_data_batch(ds, BATCH, true, err);
    return cured ? stk_data_prefetch(ds, STK_AUTOTUNE, err) : ds;
}

static stk_status open_over(stk_device *device, stk_dataset *source, bool cured, stk_contender *out,
                            stk_error *err)
{
    stk_dataset *ds = source ? augmented(source, cured, err) : NULL;
    if (!ds) return err ? err->code : STK_ERR_MEMORY;
    return stk_training_open(
        device, &(stk_training){.layers = SMALL_CONV, .dataset = ds, .units = BATCH}, out, err);
}

stk_status stk_paradox_pictures_memory(stk_device *device, bool cured, stk_contender *out,
                                       stk_error *err)
{
    stk_tensor *xy[2];
    stk_status status = draw(&xy[0], &xy[1], err);
    stk_dataset *ds = status == STK_OK ? stk_data_slices(2, xy, NULL, NULL, err) : NULL;
    stk_tensor_release(xy[0]);
    stk_tensor_release(xy[1]);
    return status == STK_OK ? open_over(device, ds, cured, out, err) : status;
}

/* ---- a file of records ------------------------------------------------------------------------------------------ */

/* One frame: length, its checksum, the record, its checksum. */
static stk_status write_frame(FILE *to, const char *record, size_t size, stk_error *err)
{
    uint64_t length = size;
    uint32_t of_length = stk_crc32c_mask(stk_crc32c(0, &length, sizeof length));
    uint32_t of_record = stk_crc32c_mask(stk_crc32c(0, record, size));
    bool whole = fwrite(&length, sizeof length, 1, to) == 1 &&
                 fwrite(&of_length, sizeof of_length, 1, to) == 1 &&
                 fwrite(record, 1, size, to) == size &&
                 fwrite(&of_record, sizeof of_record, 1, to) == 1;
    return whole ? STK_OK : stk_fail(err, STK_ERR_IO, "records in memory: %s", strerror(errno));
}

static stk_status write_record(FILE *to, const void *pixels, const int64_t *number, stk_error *err)
{
    stk_string bytes = {pixels, SIDE * SIDE * CHANNELS};
    stk_tensor *image = NULL, *label = NULL;
    char *record = NULL;
    size_t size = 0;
    stk_status status = stk_tensor_strings(0, NULL, &bytes, &image, err);
    if (status == STK_OK) status = stk_tensor_from(STK_I64, 0, NULL, number, &label, err);
    if (status == STK_OK)
        status = stk_example_encode(2, (stk_named_tensor[]){{"image", image}, {"label", label}},
                                    &record, &size, err);
    if (status == STK_OK) status = write_frame(to, record, size, err);
    stk_bytes_free(record);
    stk_tensor_release(image);
    stk_tensor_release(label);
    return status;
}

static stk_status write_records(int file, stk_error *err)
{
    stk_tensor *x = NULL, *y = NULL;
    int copy = dup(file);
    FILE *to = copy >= 0 ? fdopen(copy, "wb") : NULL;
    if (!to) {
        if (copy >= 0) close(copy);
        return stk_fail(err, STK_ERR_IO, "records in memory: %s", strerror(errno));
    }
    stk_status status = draw(&x, &y, err);
    for (int64_t i = 0; i < PICTURES && status == STK_OK; i++)
        status = write_record(to, (const char *)x->data + i * SIDE * SIDE * CHANNELS,
                              (const int64_t *)y->data + i, err);
    stk_tensor_release(x);
    stk_tensor_release(y);
    if (fclose(to) != 0 && status == STK_OK)
        status = stk_fail(err, STK_ERR_IO, "records in memory: %s", strerror(errno));
    return status;
}

/* A file without a name, read through its descriptor: it is gone with the process, however that ends. */
static stk_status make_records(int *file, char *path, size_t room, stk_error *err)
{
    *file = memfd_create("stoker-paradox", MFD_CLOEXEC);
    if (*file < 0)
        return stk_fail(err, STK_ERR_IO, "a file in memory for records: %s", strerror(errno));
    snprintf(path, room, "/proc/self/fd/%d", *file);
    return write_records(*file, err);
}

typedef struct over_file { /* a contender, and the file it reads */
    stk_contender inner;
    int file;
} over_file;

static stk_status run_inner(void *self, int64_t steps, stk_error *err)
{
    over_file *o = self;
    return o->inner.run(o->inner.self, steps, err);
}
static stk_status outcome_inner(void *self, stk_tensor **out, stk_error *err)
{
    over_file *o = self;
    return o->inner.outcome(o->inner.self, out, err);
}
static void close_both(void *self)
{
    over_file *o = self;
    if (o->inner.close) o->inner.close(o->inner.self);
    if (o->file >= 0) close(o->file);
    stk_free(o);
}

static stk_dataset *parsed(const char *path, bool cured, stk_error *err)
{
    static const stk_feature features[2] = {{.name = "image",
                                             .kind = STK_FEATURE_RAW,
                                             .dtype = STK_U8,
                                             .rank = 3,
                                             .shape = {SIDE, SIDE, CHANNELS}},
                                            {.name = "label", .dtype = STK_I64}};
    stk_map_options how = {.parallel = cured ? STK_AUTOTUNE : 1};
    stk_map_fn parse;
    stk_dataset *ds = stk_data_tfrecord(1, &path, NULL, err);
    if (!ds) return NULL;
    if (stk_map_parse_example(2, features, false, &parse, err) == STK_OK)
        return stk_data_map(ds, &parse, &how, err);
    stk_dataset_release(ds);
    return NULL;
}

stk_status stk_paradox_pictures_records(stk_device *device, bool cured, stk_contender *out,
                                        stk_error *err)
{
    char path[64];
    over_file *o = stk_calloc(1, sizeof *o);
    if (!o) return stk_fail_memory(err, "an experiment", sizeof *o);
    stk_status status = make_records(&o->file, path, sizeof path, err);
    if (status == STK_OK)
        status = open_over(device, parsed(path, cured, err), cured, &o->inner, err);
    if (status != STK_OK) {
        close_both(o);
        return status;
    }
    *out = o->inner;
    out->self = o;
    out->run = run_inner;
    out->outcome = outcome_inner;
    out->close = close_both;
    return STK_OK;
}
