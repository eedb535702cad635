/* Input rows: pipelines from memory and from files to batches. An iteration is many batches, more than is read ahead, and
 * streams repeat without end, so that no sample is a batch that lay ready.
 *
 * Before anything is timed, the part of the work that is not random is done once and its digest goes into the row's line
 * as "check": bench/run compares it with that of each peer, and a peer with another one is not counted. What is random is
 * looked at on its own: every image is the original plus one number, every scalar comes once. */
#include "rows_files.h"

#include "stoker/data.h"
#include "stoker/pixels.h"
#include "stoker/sources.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCALARS = 10000000, BATCH = 32, TARGET = 224 };
/* batches per iteration, and batches in the digest */
enum { IMAGE_STEP = 100, SCALAR_STEP = 10000, PHOTO_STEP = 4, CHECKED = 2 };

typedef struct input_row {
    stk_dataset *ds, *plain; /* plain: without what is random */
    stk_stream *stream;
    stk_tensor *source;
    stk_stream_options options;
    int64_t step;
    double (*limit)(int threads); /* seconds per iteration that nothing can beat; NULL: none */
} input_row;

/* ---- streams --------------------------------------------------------------------------------------- */

static int start(input_row *r, stk_dataset *ds)
{
    stk_error err;
    stk_stream_release(r->stream);
    r->stream = NULL;
    if (!ds || stk_dataset_stream(ds, &r->options, &r->stream, &err))
        return bench_failed("stream", &err);
    return 0;
}

static int next_batch(input_row *r, stk_tensor **parts)
{
    stk_error err;
    bool end = false;
    if (stk_stream_next(r->stream, parts, &end, &err)) return bench_failed("next", &err);
    if (end) fprintf(stderr, "the stream ended\n");
    return end;
}

static void release_batch(const input_row *r, stk_tensor **parts)
{
    const stk_schema *schema = stk_dataset_schema(r->ds);
    for (int32_t i = 0; i < schema->n; i++) stk_tensor_release(parts[i]);
}

int bench_data_run(void *state, int64_t iterations)
{
    input_row *r = state;
    for (int64_t i = 0; i < iterations * r->step; i++) {
        stk_tensor *parts[2] = {NULL};
        if (next_batch(r, parts)) return 1;
        release_batch(r, parts);
    }
    return 0;
}

int bench_data_finish(void *state)
{
    input_row *r = state;
    stk_stream_usage usage;
    if (stk_stream_usage_read(r->stream, &usage)) bench_note_number("workers", usage.threads);
    int threads = r->options.cpu_budget;
    if (!r->limit) return 0;
    stk_stream_release(r->stream); /* its workers must not take part */
    r->stream = NULL;
    double seconds = r->limit(threads);
    if (seconds > 0) bench_note_seconds("limit", seconds);
    return seconds < 0;
}

void bench_data_teardown(void *state)
{
    input_row *r = state;
    if (!r) return;
    stk_stream_release(r->stream);
    stk_dataset_release(r->ds);
    stk_dataset_release(r->plain);
    stk_tensor_release(r->source);
    free(r);
}

static input_row *row_new(const bench_options *o, int64_t step, void **state)
{
    input_row *r = calloc(1, sizeof *r);
    *state = r;
    if (!r) return NULL;
    r->step = step;
    r->options = stk_stream_options_defaults();
    r->options.threads = o->threads == 1 ? 1 : 0;
    r->options.cpu_budget = o->threads;
    return r;
}

/* Batch, prefetch; both datasets must have been made. */
static int finish_pipeline(input_row *r, stk_error *err)
{
    r->ds = stk_data_prefetch(stk_data_batch(r->ds, BATCH, true, err), STK_AUTOTUNE, err);
    r->plain = stk_data_batch(r->plain, BATCH, true, err);
    if (!r->ds || !r->plain) return bench_failed("pipeline", err);
    char *text = NULL;
    if (getenv("BENCH_DUMP") && stk_dataset_explain(r->ds, NULL, &text, err) == STK_OK)
        fputs(text, stderr);
    stk_text_free(text);
    return 0;
}

/* The digest of the first batches without what is random, then the stream that is timed. */
static int check_and_start(input_row *r)
{
    bench_digest digests[2] = {{0}};
    int32_t n = stk_dataset_schema(r->plain)->n;
    if (start(r, r->plain)) return 1;
    for (int b = 0; b < CHECKED; b++) {
        stk_tensor *parts[2] = {NULL};
        if (next_batch(r, parts)) return 1;
        for (int32_t i = 0; i < n; i++)
            if (bench_digest_add(&digests[i], parts[i])) return 1;
        release_batch(r, parts);
    }
    bench_digest_note(digests, n);
    return start(r, r->ds);
}

/* ---- images from memory ------------------------------------------------------------------------------ */

static int add_step(stk_dataset **ds, stk_pixel_step step, stk_error *err)
{
    stk_pixels *pixels = NULL;
    stk_map_fn fn = {0};
    if (stk_pixels_new(1, &step, &pixels, err) || stk_map_pixels(pixels, 0, &fn, err)) return 1;
    stk_pixels_release(pixels);
    *ds = stk_data_map(*ds, &fn, NULL, err);
    return !*ds;
}

/* Every image must be the original / 255 plus one number within +-0.1, as it was or mirrored. */
static int check_images(input_row *r)
{
    enum { SIDE = BENCH_SIDE, PIXELS = BENCH_PIXELS };
    stk_tensor *parts[2] = {NULL};
    if (next_batch(r, parts)) return 1;
    uint8_t *source = malloc(PIXELS);
    int64_t wrong = !source, mirrored = 0;
    for (int64_t i = 0; source && i < BATCH; i++) {
        const float *x = (const float *)parts[0]->data + i * PIXELS;
        double worst[2] = {0, 0}, delta[2];
        bench_image(i, source);
        for (int flip = 0; flip < 2; flip++) {
            delta[flip] = x[0] - source[flip ? (SIDE - 1) * 3 : 0] / 255.0;
            for (int64_t p = 0; p < PIXELS; p++) {
                int64_t row = p / (SIDE * 3), column = p / 3 % SIDE, channel = p % 3;
                int64_t from = (row * SIDE + (flip ? SIDE - 1 - column : column)) * 3 + channel;
                worst[flip] = fmax(worst[flip], fabs(x[p] - source[from] / 255.0 - delta[flip]));
            }
        }
        int flip = worst[1] < worst[0];
        mirrored += flip;
        wrong += worst[flip] > 1e-5 || fabs(delta[flip]) > 0.1001;
    }
    free(source);
    release_batch(r, parts);
    if (!wrong && mirrored > 4 && mirrored < 28) return 0;
    fprintf(stderr, "%d images are wrong, %d mirrored\n", (int)wrong, (int)mirrored);
    return 1;
}

static double limit_images(int threads)
{
    return bench_limit_convert(threads) * IMAGE_STEP * BATCH;
}

int bench_images_setup(const bench_options *o, void **state)
{
    stk_error err;
    input_row *r = row_new(o, IMAGE_STEP, state);
    int64_t shape[] = {BENCH_IMAGES, BENCH_SIDE, BENCH_SIDE, 3};
    if (!r || stk_tensor_new(STK_U8, 4, shape, &r->source, &err))
        return bench_failed("images", &err);
    for (int64_t i = 0; i < BENCH_IMAGES; i++)
        bench_image(i, (uint8_t *)r->source->data + i * BENCH_PIXELS);
    stk_pixel_step unit = {.op = STK_PIXEL_RESCALE, .scale = {1.0f / 255}};
    r->limit = limit_images;
    r->ds = stk_data_repeat(stk_data_slices(1, &r->source, NULL, NULL, &err), STK_INFINITE, &err);
    if (!r->ds || add_step(&r->ds, unit, &err)) return bench_failed("pipeline", &err);
    r->plain = stk_dataset_retain(r->ds);
    if (add_step(&r->ds, (stk_pixel_step){.op = STK_PIXEL_RANDOM_BRIGHTNESS, .a = 0.1}, &err) ||
        add_step(&r->ds, (stk_pixel_step){.op = STK_PIXEL_RANDOM_FLIP_LEFT_RIGHT}, &err))
        return bench_failed("pipeline", &err);
    return finish_pipeline(r, &err) || check_and_start(r) || check_images(r);
}

/* ---- images from records -------------------------------------------------------------------------------- */

static stk_dataset *records_pipeline(const char *path, const char *steps, stk_error *err)
{
    char text[2048];
    snprintf(
        text, sizeof text,
        "{\"ops\":[{\"op\":\"tfrecord\",\"files\":\"%s\"},{\"op\":\"repeat\"},"
        "{\"op\":\"parse_example\",\"features\":["
        "{\"name\":\"image\",\"kind\":\"raw\",\"dtype\":\"uint8\",\"shape\":[256,256,3]},"
        "{\"name\":\"label\",\"dtype\":\"int64\"}]},"
        "{\"op\":\"pixels\",\"steps\":[{\"op\":\"rescale\",\"scale\":0.00392156862745098}%s]}]}",
        path, steps);
    return stk_data_pipeline(text, strlen(text), NULL, err);
}

int bench_records_setup(const bench_options *o, void **state)
{
    stk_error err;
    input_row *r = row_new(o, IMAGE_STEP, state);
    const char *path = bench_data_path("images.tfrecord");
    if (!r || bench_make_images(path)) return 1;
    r->plain = records_pipeline(path, "", &err);
    r->ds = records_pipeline(path,
                             ",{\"op\":\"random_brightness\",\"delta\":0.1},"
                             "{\"op\":\"random_flip_left_right\"}",
                             &err);
    if (!r->ds || !r->plain) return bench_failed("pipeline", &err);
    return finish_pipeline(r, &err) || check_and_start(r) || check_images(r);
}

/* ---- photos ------------------------------------------------------------------------------------------------ */

static double limit_photos(int threads) { return bench_limit_decode(threads) * PHOTO_STEP * BATCH; }

int bench_photos_setup(const bench_options *o, void **state)
{
    stk_error err;
    input_row *r = row_new(o, PHOTO_STEP, state);
    const char *folder = bench_data_path("photos");
    if (!r || bench_make_photos(folder)) return 1;
    stk_image_folder_options how = stk_image_folder_options_defaults();
    how.height = how.width = TARGET;
    how.scaled = strstr(o->row, "scaled") != NULL;
    if (!how.scaled) r->limit = limit_photos;
    r->ds = stk_data_repeat(stk_data_image_folder(folder, &how, &err), STK_INFINITE, &err);
    if (!r->ds) return bench_failed("photos", &err);
    r->plain = stk_dataset_retain(r->ds);
    return finish_pipeline(r, &err) || check_and_start(r);
}

/* ---- scalars ----------------------------------------------------------------------------------------------- */

/* Each number exactly once in an epoch, and not in its old place. */
static int check_shuffled(input_row *r)
{
    int64_t sum = 0, count = 0, moved = 0;
    uint8_t *seen = calloc(SCALARS, 1);
    while (seen && count < SCALARS) {
        stk_tensor *parts[2] = {NULL};
        if (next_batch(r, parts)) return 1;
        for (int64_t i = 0; i < parts[0]->shape[0]; i++, count++) {
            int64_t v = (int64_t)((const float *)parts[0]->data)[i];
            if (v < 0 || v >= SCALARS || seen[v])
                return fprintf(stderr, "%d comes twice\n", (int)v), 1;
            seen[v] = 1;
            sum += v;
            moved += v != count;
        }
        release_batch(r, parts);
    }
    free(seen);
    if (count == SCALARS && moved > SCALARS - 100 && sum == (int64_t)SCALARS * (SCALARS - 1) / 2)
        return 0;
    fprintf(stderr, "not a permutation: %d of %d moved\n", (int)moved, (int)count);
    return 1;
}

int bench_scalars_setup(const bench_options *o, void **state)
{
    stk_error err;
    input_row *r = row_new(o, SCALAR_STEP, state);
    if (!r || stk_tensor_new(STK_F32, 1, (int64_t[]){SCALARS}, &r->source, &err))
        return bench_failed("scalars", &err);
    for (int64_t i = 0; i < SCALARS; i++) ((float *)r->source->data)[i] = (float)i;
    r->plain = stk_data_slices(1, &r->source, NULL, NULL, &err);
    if (!r->plain) return bench_failed("pipeline", &err);
    r->ds = stk_data_shuffle(stk_dataset_retain(r->plain), SCALARS, 1, true, &err);
    r->ds = stk_data_repeat(r->ds, STK_INFINITE, &err);
    return finish_pipeline(r, &err) || check_and_start(r) || check_shuffled(r);
}
