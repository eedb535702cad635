/* pictures.c - experiments with pictures that are augmented on their way to a small convolutional net. */
#include "watch/paradox/experiments.h"

#include "base/memory.h"
#include "base/rng.h"
#include "stoker/sources.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static stk_status write_records(const char *path, const stk_tensor *x, const stk_tensor *y,
                                stk_error *err)
{
    enum { BYTES = SIDE * SIDE * CHANNELS };
    stk_record_writer *w = NULL;
    STK_TRY(stk_record_writer_new(path, NULL, &w, err));
    stk_status status = STK_OK;
    for (int64_t i = 0; i < PICTURES && status == STK_OK; i++) {
        stk_string bytes = {(const char *)x->data + i * BYTES, BYTES};
        stk_tensor *image = NULL, *label = NULL;
        char *record = NULL;
        size_t size = 0;
        status = stk_tensor_strings(0, NULL, &bytes, &image, err);
        if (status == STK_OK)
            status = stk_tensor_from(STK_I64, 0, NULL, (const int64_t *)y->data + i, &label, err);
        if (status == STK_OK)
            status = stk_example_encode(2, (stk_named_tensor[]){{"image", image}, {"label", label}},
                                        &record, &size, err);
        if (status == STK_OK) status = stk_record_write(w, record, size, err);
        stk_bytes_free(record);
        stk_tensor_release(image);
        stk_tensor_release(label);
    }
    if (status == STK_OK) return stk_record_writer_commit(w, err);
    stk_record_writer_abandon(w);
    return status;
}

/* A file that lost its name as soon as it was whole: it is read through the descriptor, and is gone with the process, however
 * that ends. */
static stk_status make_records(int *file, char *path, size_t room, stk_error *err)
{
    const char *folder = getenv("TMPDIR");
    char named[512];
    stk_tensor *x = NULL, *y = NULL;
    *file = -1;
    snprintf(named, sizeof named, "%s/stoker-paradox-%ld.tfrecord",
             folder && *folder ? folder : "/tmp", (long)getpid());
    stk_status status = draw(&x, &y, err);
    if (status == STK_OK) status = write_records(named, x, y, err);
    stk_tensor_release(x);
    stk_tensor_release(y);
    STK_TRY(status);
    *file = open(named, O_RDONLY | O_CLOEXEC);
    int failure = errno;
    unlink(named);
    if (*file < 0)
        return stk_fail(err, STK_ERR_IO, "%s: cannot be opened: %s", named, strerror(failure));
    snprintf(path, room, "/proc/self/fd/%d", *file);
    return STK_OK;
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
