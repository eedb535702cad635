/* Input rows: images from memory to augmented batches, and scalars shuffled into batches. What comes out is checked before
 * it is timed: the same work as the peers do, not merely as much. */
#include "rows.h"

#include "stoker/data.h"
#include "stoker/pixels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IMAGES = 1000, SIDE = 256, PIXELS = SIDE * SIDE * 3, SCALARS = 10000000, BATCH = 32 };
enum { IMAGE_STEP = 100, SCALAR_STEP = 10000 }; /* batches per iteration: more than is read ahead */

typedef struct input_row {
    stk_dataset *ds;
    stk_stream *stream;
    stk_tensor *source;
    int64_t step;
} input_row;

static int add_step(stk_dataset **ds, stk_pixel_step step, stk_error *err)
{
    stk_pixels *pixels = NULL;
    stk_map_fn fn = {0};
    if (stk_pixels_new(1, &step, &pixels, err) || stk_map_pixels(pixels, 0, &fn, err)) return 1;
    stk_pixels_release(pixels);
    *ds = stk_data_map(*ds, &fn, NULL, err);
    return !*ds;
}

static int start(input_row *r, const bench_options *o)
{
    stk_error err;
    stk_stream_options so = stk_stream_options_defaults();
    so.threads = o->threads == 1 ? 1 : 0;
    so.cpu_budget = o->threads;
    if (!r->ds || stk_dataset_stream(r->ds, &so, &r->stream, &err))
        return bench_failed("stream", &err);
    return 0;
}

static int next_batch(input_row *r, stk_tensor **batch)
{
    stk_error err;
    bool end = false;
    if (stk_stream_next(r->stream, batch, &end, &err)) return bench_failed("next", &err);
    if (end) fprintf(stderr, "the stream ended\n");
    return end;
}

int bench_data_run(void *state, int64_t iterations)
{
    int64_t step = ((input_row *)state)->step;
    for (int64_t i = 0; i < iterations * step; i++) {
        stk_tensor *batch = NULL;
        if (next_batch(state, &batch)) return 1;
        stk_tensor_release(batch);
    }
    return 0;
}

int bench_data_finish(void *state)
{
    input_row *r = state;
    stk_stream_usage usage;
    if (stk_stream_usage_read(r->stream, &usage)) bench_note_number("workers", usage.threads);
    return 0;
}

void bench_data_teardown(void *state)
{
    input_row *r = state;
    if (!r) return;
    stk_stream_release(r->stream);
    stk_dataset_release(r->ds);
    stk_tensor_release(r->source);
    free(r);
}

/* Every image must be the original / 255 plus one number within +-0.1, as it was or mirrored. */
static int check_images(input_row *r)
{
    stk_tensor *batch = NULL;
    if (next_batch(r, &batch)) return 1;
    const uint8_t *source = r->source->data;
    int64_t wrong = 0, mirrored = 0;
    for (int64_t i = 0; i < batch->shape[0]; i++) {
        const float *x = (const float *)batch->data + i * PIXELS;
        double worst[2] = {0, 0}, delta[2];
        for (int flip = 0; flip < 2; flip++) {
            delta[flip] = x[0] - source[i * PIXELS + (flip ? (SIDE - 1) * 3 : 0)] / 255.0;
            for (int64_t p = 0; p < PIXELS; p++) {
                int64_t row = p / (SIDE * 3), column = p / 3 % SIDE, channel = p % 3;
                int64_t from = (row * SIDE + (flip ? SIDE - 1 - column : column)) * 3 + channel;
                worst[flip] =
                    fmax(worst[flip], fabs(x[p] - source[i * PIXELS + from] / 255.0 - delta[flip]));
            }
        }
        int flip = worst[1] < worst[0];
        mirrored += flip;
        wrong += worst[flip] > 1e-5 || fabs(delta[flip]) > 0.1001;
    }
    stk_tensor_release(batch);
    if (!wrong && mirrored > 4 && mirrored < 28) return 0;
    fprintf(stderr, "%d images are wrong, %d mirrored\n", (int)wrong, (int)mirrored);
    return 1;
}

int bench_images_setup(const bench_options *o, void **state)
{
    stk_error err;
    input_row *r = calloc(1, sizeof *r);
    *state = r;
    if (r) r->step = IMAGE_STEP;
    if (!r || stk_tensor_new(STK_U8, 4, (int64_t[]){IMAGES, SIDE, SIDE, 3}, &r->source, &err))
        return bench_failed("images", &err);
    uint32_t bits = 1;
    uint8_t *to = r->source->data;
    for (int64_t i = 0; i < (int64_t)IMAGES * PIXELS; i++) {
        bits = bits * 1664525u + 1013904223u;
        to[i] = (uint8_t)(bits >> 24);
    }
    r->ds = stk_data_repeat(stk_data_slices(1, &r->source, NULL, NULL, &err), STK_INFINITE, &err);
    if (!r->ds ||
        add_step(&r->ds, (stk_pixel_step){.op = STK_PIXEL_RESCALE, .scale = {1.0f / 255}}, &err) ||
        add_step(&r->ds, (stk_pixel_step){.op = STK_PIXEL_RANDOM_BRIGHTNESS, .a = 0.1}, &err) ||
        add_step(&r->ds, (stk_pixel_step){.op = STK_PIXEL_RANDOM_FLIP_LEFT_RIGHT}, &err))
        return bench_failed("pipeline", &err);
    r->ds = stk_data_prefetch(stk_data_batch(r->ds, BATCH, false, &err), STK_AUTOTUNE, &err);
    char *text = NULL;
    if (getenv("BENCH_DUMP") && stk_dataset_explain(r->ds, NULL, &text, &err) == STK_OK)
        fputs(text, stderr);
    stk_text_free(text);
    return start(r, o) || check_images(r);
}

/* Each number exactly once in an epoch, and not in its old place. */
static int check_shuffled(input_row *r)
{
    int64_t sum = 0, count = 0, moved = 0;
    uint8_t *seen = calloc(SCALARS, 1);
    while (seen && count < SCALARS) {
        stk_tensor *batch = NULL;
        if (next_batch(r, &batch)) return 1;
        for (int64_t i = 0; i < batch->shape[0]; i++, count++) {
            int64_t v = (int64_t)((const float *)batch->data)[i];
            if (v < 0 || v >= SCALARS || seen[v])
                return fprintf(stderr, "%d comes twice\n", (int)v), 1;
            seen[v] = 1;
            sum += v;
            moved += v != count;
        }
        stk_tensor_release(batch);
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
    input_row *r = calloc(1, sizeof *r);
    *state = r;
    if (r) r->step = SCALAR_STEP;
    if (!r || stk_tensor_new(STK_F32, 1, (int64_t[]){SCALARS}, &r->source, &err))
        return bench_failed("scalars", &err);
    for (int64_t i = 0; i < SCALARS; i++) ((float *)r->source->data)[i] = (float)i;
    r->ds =
        stk_data_shuffle(stk_data_slices(1, &r->source, NULL, NULL, &err), SCALARS, 1, true, &err);
    r->ds = stk_data_batch(stk_data_repeat(r->ds, STK_INFINITE, &err), BATCH, false, &err);
    r->ds = stk_data_prefetch(r->ds, STK_AUTOTUNE, &err);
    return start(r, o) || check_shuffled(r);
}
