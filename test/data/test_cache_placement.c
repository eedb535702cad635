/* Where a cache is put by itself, what it holds, and that nothing changes by it, to the bit. */
#include "pipelines.h"

#include "data/stream/cache_placement.h"
#include "stoker/pixels.h"

#include <unistd.h>

enum { IMAGES = 23, SIDE = 6 };
static collect kept;

/* ---- parts of pipelines ----------------------------------------------------------------------------------------- */
static int64_t calls; /* of functions that count */
static stk_status call_count(void *context, const stk_map_info *info, stk_tensor *const *in,
                             stk_tensor **out, stk_error *err)
{
    (void)context, (void)info;
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    for (int32_t i = 0; i < info->inputs; i++) {
        if (out[i])
            STK_TRY(stk_tensor_copy(out[i], in[i], err));
        else
            out[i] = stk_tensor_retain(in[i]);
    }
    return STK_OK;
}
static const stk_map_fn counting = {.name = "decode", .call = call_count, .flags = STK_MAP_PURE};
static const stk_map_fn not_known = {.name = "secret", .call = call_count};

static stk_status call_slow(void *context, const stk_map_info *info, stk_tensor *const *in,
                            stk_tensor **out, stk_error *err)
{
    usleep(2000);
    return call_count(context, info, in, out, err);
}
static const stk_map_fn slow = {.name = "slow", .call = call_slow, .flags = STK_MAP_PURE};

static stk_status call_growing(void *context, const stk_map_info *info, stk_tensor *const *in,
                               stk_tensor **out, stk_error *err)
{
    (void)context, (void)info;
    int64_t n = (int64_t)stk_tensor_at(in[0], 0) % 10 * 100;
    return stk_tensor_new(STK_F32, 1, &n, &out[0], err);
}

static stk_dataset *images(void)
{
    stk_error err;
    stk_tensor *x = NULL, *y = NULL;
    CHECK_OK(stk_tensor_new(STK_U8, 4, (int64_t[]){IMAGES, SIDE, SIDE, 3}, &x, &err));
    CHECK_OK(stk_tensor_new(STK_I32, 1, (int64_t[]){IMAGES}, &y, &err));
    for (int i = 0; i < IMAGES * SIDE * SIDE * 3; i++) ((uint8_t *)x->data)[i] = (uint8_t)(i * 37);
    for (int i = 0; i < IMAGES; i++) ((int32_t *)y->data)[i] = i;
    stk_tensor *both[] = {x, y};
    stk_dataset *ds = stk_data_slices(2, both, NULL, "(0,1)", &err);
    stk_tensor_release(x);
    stk_tensor_release(y);
    return ds;
}

static stk_dataset *step(stk_dataset *ds, stk_pixel_step s)
{
    stk_error err;
    stk_pixels *pixels = NULL;
    stk_map_fn fn = {0};
    CHECK_OK(stk_pixels_new(1, &s, &pixels, &err));
    CHECK_OK(stk_map_pixels(pixels, 0, &fn, &err));
    stk_pixels_release(pixels);
    return stk_data_map(ds, &fn, NULL, &err);
}
static stk_dataset *rescale(stk_dataset *ds)
{
    return step(
        ds, (stk_pixel_step){.op = STK_PIXEL_RESCALE, .scale = {1.0f / 255}, .offset = {-0.37f}});
}
static stk_dataset *resize(stk_dataset *ds)
{
    return step(ds, (stk_pixel_step){.op = STK_PIXEL_RESIZE, .height = 5, .width = 4, .method = 1});
}
static stk_dataset *flip(stk_dataset *ds)
{
    return step(ds, (stk_pixel_step){.op = STK_PIXEL_RANDOM_FLIP_LEFT_RIGHT});
}
static stk_dataset *brightness(stk_dataset *ds)
{
    return step(ds, (stk_pixel_step){.op = STK_PIXEL_RANDOM_BRIGHTNESS, .a = 0.2});
}
static stk_dataset *mix(stk_dataset *ds)
{
    return stk_data_shuffle(ds, STK_SHUFFLE_ALL, 5, true, NULL);
}
static stk_dataset *finish(stk_dataset *ds)
{
    return stk_data_prefetch(stk_data_batch(ds, 4, false, NULL), 2, NULL);
}
static stk_dataset *map(stk_dataset *ds, const stk_map_fn *fn)
{
    return stk_data_map(ds, fn, NULL, NULL);
}

/* ---- looking ------------------------------------------------------------------------------------------------------ */

/* "prefetch batch map cache memory" */
static const char *chain(const stk_dataset *ds)
{
    static char text[256];
    for (text[0] = '\0'; ds; ds = stk_dataset_input(ds, 0)) {
        strcat(text, text[0] ? " " : "");
        strcat(text, stk_dataset_name(ds));
    }
    return text;
}

/* Every bit of one walk, as one number. */
static uint64_t bits_of(stk_dataset *ds, const stk_stream_options *o, int64_t *elements)
{
    stk_error err;
    stk_stream *s = NULL;
    stk_tensor *parts[2];
    uint64_t bits = 0;
    *elements = 0;
    if (!CHECK_OK(stk_dataset_stream(ds, o, &s, &err))) return 0;
    for (bool end = false; CHECK_OK(stk_stream_next(s, parts, &end, &err)) && !end; ++*elements)
        for (int32_t p = 0; p < stk_stream_schema(s)->n; p++) {
            const uint8_t *data = parts[p]->data;
            int64_t n = stk_tensor_bytes(parts[p]);
            for (int64_t i = 0; i < n; i++) bits = (bits ^ data[i]) * 0x100000001B3u;
            stk_tensor_release(parts[p]);
        }
    stk_stream_release(s);
    return bits;
}

/* Three epochs, with one worker and with many, are the same bits with a cache and without. Takes ds over. */
static void keeps(stk_dataset *ds, const char *expected)
{
    stk_error err = {.code = STK_OK};
    if (!CHECK(ds != NULL)) return;
    for (int threads = 1; threads <= 4; threads += 3) {
        stk_dataset *with = stk_data_place_cache(stk_dataset_retain(ds), 1 << 20, &err);
        if (!CHECK_MSG(with != NULL, "%s", err.message)) break;
        CHECK_STR(chain(with), expected);
        CHECK(stk_schema_equal(stk_dataset_schema(ds), stk_dataset_schema(with)));
        CHECK_EQ_I64(stk_dataset_cardinality(ds), stk_dataset_cardinality(with));
        stk_stream_options o = stk_dataset_options(ds);
        o.threads = threads;
        for (o.epoch = 0; o.epoch < 3; o.epoch++) {
            int64_t n, m;
            uint64_t without = bits_of(ds, &o, &n), within = bits_of(with, &o, &m);
            CHECK(n > 0 && n == m);
            CHECK_MSG(without == within, "%s, %d threads, epoch %d: differs", expected, threads,
                      (int)o.epoch);
        }
        stk_dataset_release(with);
    }
    stk_dataset_release(ds);
}

TEST(behind_the_last_that_is_alike)
{
    keeps(finish(map(images(), &counting)), "prefetch batch cache map memory");
    keeps(finish(mix(map(images(), &counting))), "prefetch batch shuffle cache map memory");
    keeps(finish(flip(mix(resize(map(images(), &counting))))),
          "prefetch batch map shuffle cache map map memory");
    keeps(finish(brightness(flip(resize(images())))), "prefetch batch map map cache map memory");
    keeps(finish(stk_data_repeat(map(images(), &counting), 3, NULL)),
          "prefetch batch repeat cache map memory");
    keeps(stk_data_prefetch(map(stk_data_batch(images(), 4, true, NULL), &counting), 2, NULL),
          "prefetch cache map batch memory"); /* work on whole batches */
    keeps(finish(stk_data_take(map(images(), &counting), 7, NULL)),
          "prefetch batch cache take map memory");
    stk_dataset *fixed = stk_data_shuffle(map(images(), &counting), 8, 5, false, NULL);
    keeps(finish(fixed), "prefetch batch cache shuffle map memory");
    keeps(finish(stk_data_filter(
              stk_data_range(0, 40, 1, NULL),
              &(stk_map_fn){.name = "some", .call = times_ten.call, .flags = STK_MAP_PURE}, NULL)),
          "prefetch batch cache filter range"); /* in order */
}

/* Pure functions behind a shuffle: it changes places with them. */
TEST(shuffled_paths)
{
    keeps(finish(flip(resize(map(mix(images()), &counting)))),
          "prefetch batch map shuffle cache map map memory");
    keeps(finish(flip(resize(mix(map(images(), &counting))))), /* work on both sides of it */
          "prefetch batch map shuffle cache map map memory");
    keeps(finish(mix(flip(resize(mix(images()))))),
          "prefetch batch shuffle map shuffle cache map memory");
    stk_dataset *some = stk_data_shuffle(images(), 4, 5, true, NULL); /* in order only */
    keeps(finish(resize(some)), "prefetch batch map shuffle memory");
}

/* x * a and + b in one pass is rounded once: the cache must not come between them. */
TEST(not_between_what_is_rounded_together)
{
    keeps(finish(brightness(rescale(resize(images())))), "prefetch batch map map cache map memory");
    keeps(finish(flip(rescale(resize(images())))), "prefetch batch map cache map map memory");
    keeps(finish(brightness(rescale(mix(resize(images()))))),
          "prefetch batch map map shuffle cache map memory");
}

/* ---- functions that make datasets, generators ------------------------------------------------------------------- */
static const stk_field number = {.dtype = STK_I64};
static const stk_schema numbers = {1, &number, "0"};

static stk_dataset *from_json(const char *json)
{
    stk_error err = {.code = STK_OK};
    stk_dataset *ds = stk_data_pipeline(json, strlen(json), NULL, &err);
    CHECK_MSG(ds != NULL, "%s", err.message);
    return ds;
}

#define BEHIND_RANGE(ops) "[{\"op\": \"range\", \"start\": 1, \"stop\": 7}, " ops "]"
#define WEAVE(ops)        BEHIND_RANGE("{\"op\": \"interleave\", \"cycle\": 3, \"ops\": [" ops "]}")
#define UP_TO             "{\"op\": \"range\", \"stop\": {\"element\": 0}}"

/* A list of ops knows by itself. */
TEST(ops_that_make_datasets)
{
    keeps(finish(from_json(WEAVE(UP_TO))), "prefetch batch cache interleave range");
    keeps(finish(from_json(WEAVE(UP_TO ", {\"op\": \"map\", \"to\": \"$0 * 3\"}"))),
          "prefetch batch cache interleave range");
    keeps(finish(mix(from_json(WEAVE("{\"op\": \"repeat\", \"times\": 2}")))),
          "prefetch batch shuffle interleave range"); /* passes are epochs */
    keeps(finish(from_json(
              BEHIND_RANGE("{\"op\": \"window\", \"size\": 2, \"nested\": true},"
                           "{\"op\": \"flat_map\", \"ops\": [{\"op\": \"batch\", \"size\": 2}]}"))),
          "prefetch batch cache flat_map window range");
    keeps(finish(from_json(BEHIND_RANGE(
              "{\"op\": \"group_by_window\", \"key\": \"$0 % 2\", \"size\": 2,"
              " \"ops\": [{\"op\": \"batch\", \"size\": 2, \"drop_remainder\": true}]}"))),
          "prefetch batch cache group_by_window range");
    /* what is random in them, or may be for an element that was not tried, is not kept */
    keeps(finish(from_json(WEAVE(UP_TO ", {\"op\": \"shuffle\", \"buffer\": 2}"))),
          "prefetch batch interleave range");
    keeps(finish(from_json(WEAVE("{\"op\": \"random\", \"count\": {\"element\": 0}}"))),
          "prefetch batch interleave range");
    keeps(finish(from_json(BEHIND_RANGE(
              "{\"op\": \"map\", \"to\": [\"$0\", \"$0 > 4\"]},"
              "{\"op\": \"interleave\", \"ops\": [{\"op\": \"range\", \"stop\": 9},"
              "{\"op\": \"shuffle\", \"buffer\": 4, \"reshuffle\": {\"element\": 1}}]}"))),
          "prefetch batch interleave cache map range");
    /* above it the input still counts */
    keeps(finish(from_json(
              "[{\"op\": \"random\", \"count\": 5}, {\"op\": \"map\", \"to\": \"$0 % 7\"},"
              "{\"op\": \"flat_map\", \"ops\": [{\"op\": \"range\", \"stop\": 3}]}]")),
          "prefetch batch flat_map map random");
}

static stk_status call_parity(void *context, const stk_map_info *info, stk_tensor *const *in,
                              stk_tensor **out, stk_error *err)
{
    (void)context, (void)info;
    int64_t odd = *(const int64_t *)in[0]->data & 1;
    if (!out[0]) return stk_tensor_from(STK_I64, 0, NULL, &odd, &out[0], err);
    return stk_tensor_set(out[0], 0, (double)odd, err);
}

static stk_dataset *call_range(void *context, const stk_map_info *info, stk_tensor *const *in,
                               stk_error *err)
{
    (void)context, (void)info;
    return stk_data_range(0, (int64_t)stk_tensor_at(in[0], 0), 1, err);
}

static stk_status generator_open(void *context, void **walk, stk_error *err)
{
    (void)err;
    ++*(int64_t *)context;
    *walk = calloc(1, sizeof(int64_t));
    return STK_OK;
}
static stk_status generator_next(void *context, void *walk, stk_tensor **parts, bool *end,
                                 stk_error *err)
{
    (void)context;
    int64_t *at = walk, value = 7 * *at;
    *end = ++*at > 20;
    return *end ? STK_OK : stk_tensor_from(STK_I64, 0, NULL, &value, &parts[0], err);
}
static void generator_close(void *context, void *walk)
{
    (void)context;
    free(walk);
}

/* Chosen by numbers that are the same in every epoch, or not. */
TEST(choices)
{
    stk_error err;
    for (int same = 0; same < 2; same++) {
        stk_dataset *both[] = {map(stk_data_range(0, 8, 1, &err), &counting),
                               map(stk_data_range(50, 58, 1, &err), &counting)};
        stk_map_fn parity = {
            .name = "parity", .call = call_parity, .flags = STK_MAP_PURE | STK_MAP_SERIAL};
        stk_dataset *choice = same ? stk_data_range(0, 12, 1, &err) : stk_data_random(3, 12, &err);
        stk_dataset *ds = stk_data_choose_from(2, both, map(choice, &parity), false, &err);
        keeps(finish(ds), same ? "prefetch batch cache choose_from_datasets map range"
                               : "prefetch batch choose_from_datasets map range");
    }
}

/* Functions in C and generators are believed what they say. */
TEST(functions_and_generators_that_say_so)
{
    static int64_t walks;
    for (uint32_t flags = 0; flags <= STK_MAP_PURE; flags += STK_MAP_PURE) {
        stk_flat_fn flat = {.name = "up", .call = call_range, .output = &numbers, .flags = flags};
        keeps(finish(stk_data_flat_map(stk_data_range(1, 7, 1, NULL), &flat, NULL)),
              flags ? "prefetch batch cache flat_map range" : "prefetch batch flat_map range");
        stk_generator g = {.name = "sevens",
                           .context = &walks,
                           .output = &numbers,
                           .open = generator_open,
                           .next = generator_next,
                           .close = generator_close,
                           .cardinality = STK_UNKNOWN,
                           .flags = flags};
        keeps(finish(stk_data_generator(&g, NULL)),
              flags ? "prefetch batch cache generator" : "prefetch batch generator");
    }
    CHECK_EQ_I64(walks, 2 * (6 + 6) - 2 * 2); /* with a cache one of three epochs asks it */
}

TEST(nowhere)
{
    stk_error err;
    stk_cache_need size;
    keeps(finish(mix(images())), "prefetch batch shuffle memory"); /* is in memory */
    keeps(finish(map(images(), &not_known)), "prefetch batch map memory");
    keeps(finish(flip(images())), "prefetch batch map memory");
    keeps(finish(stk_data_cache(map(images(), &counting), NULL, &err)),
          "prefetch batch cache map memory"); /* the one that was there */
    stk_dataset *endless = stk_data_repeat(images(), STK_INFINITE, &err);
    endless = map(stk_data_zip(1, &endless, &err), &counting);
    CHECK(!stk_dataset_cache_need(endless, 0.1, &size));
    stk_dataset_release(endless);
    stk_dataset *any = map(stk_data_filter(images(), &times_ten, &err), &counting);
    CHECK(!stk_dataset_cache_need(any, 0.1, &size)); /* nobody says what the filter does */
    stk_dataset_release(any);
    CHECK(stk_data_place_cache(NULL, 1, &err) == NULL);
}

/* ---- sizes --------------------------------------------------------------------------------------------------------- */
TEST(sizes)
{
    stk_cache_need size = {0};
    stk_dataset *ds = finish(mix(map(images(), &counting)));
    calls = 0;
    REQUIRE(CHECK(stk_dataset_cache_need(ds, 0.1, &size)));
    CHECK_EQ_I64(calls, 0); /* announced, not measured */
    CHECK_EQ_I64(size.elements, IMAGES);
    CHECK_EQ_I64(size.bytes, IMAGES * (SIDE * SIDE * 3 + 4 + 64));
    CHECK(size.budget > 1 << 20);
    stk_dataset_release(ds);

    stk_field field = {.dtype = STK_F32, .rank = 1, .shape = {-1}};
    stk_schema schema = {1, &field, "0"};
    stk_map_fn growing = {
        .name = "grow", .call = call_growing, .output = &schema, .flags = STK_MAP_PURE};
    ds = map(stk_data_range(0, 1000, 1, NULL), &growing);
    REQUIRE(CHECK(stk_dataset_cache_need(ds, 5, &size)));
    double real = 1000 * (450 * 4 + 64);
    CHECK(size.elements == 1000 && (double)size.bytes > 0.7 * real &&
          (double)size.bytes < 1.5 * real);
    stk_dataset_release(ds);

    stk_map_fn some = {.name = "some", .call = times_ten.call, .flags = STK_MAP_PURE};
    ds = stk_data_filter(stk_data_range(0, 50, 1, NULL), &some, NULL); /* all but 0, nobody knows */
    REQUIRE(CHECK(stk_dataset_cache_need(ds, 5, &size)));
    CHECK_EQ_I64(size.elements, 49);
    CHECK(size.bytes >= 49 * (8 + 64));
    stk_dataset_release(ds);
}

/* ---- limits and filling ------------------------------------------------------------------------------------------- */
static int64_t calls_of_epoch(stk_dataset *ds, uint64_t epoch)
{
    stk_stream_options o = stk_stream_options_defaults();
    o.epoch = epoch;
    calls = 0;
    run_all(stk_dataset_retain(ds), &o, &kept);
    return calls;
}

TEST(each_is_made_once)
{
    stk_error err;
    stk_dataset *ds = stk_data_place_cache(finish(mix(map(images(), &counting))), 1 << 20, &err);
    CHECK_EQ_I64(calls_of_epoch(ds, 0), IMAGES);
    CHECK_EQ_I64(calls_of_epoch(ds, 1), 0);
    stk_dataset_release(ds);
}

/* By number some are kept; in order all or none. Neither fails. */
TEST(what_does_not_fit)
{
    stk_error err;
    int64_t each = SIDE * SIDE * 3 + 4 + 64;
    stk_dataset *ds = stk_data_place_cache(map(images(), &counting), 10 * each, &err);
    CHECK_EQ_I64(calls_of_epoch(ds, 0), IMAGES);
    CHECK_EQ_I64(calls_of_epoch(ds, 1), IMAGES - 10);
    CHECK(kept.status == STK_OK && kept.elements == IMAGES);
    stk_dataset_release(ds);
    stk_map_fn serial = counting;
    serial.flags |= STK_MAP_SERIAL;
    ds = stk_data_place_cache(map(images(), &serial), 10 * each, &err);
    CHECK_STR(chain(ds), "cache map memory");
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        CHECK_EQ_I64(calls_of_epoch(ds, epoch), IMAGES);
        CHECK(kept.status == STK_OK && kept.elements == IMAGES);
    }
    stk_dataset_release(ds);
}

static void fill_all_or_some(const stk_map_fn *fn)
{
    enum { MANY = 2000 };
    stk_error err;
    int64_t part = -1;
    stk_dataset *ds = stk_data_place_cache(finish(mix(map(images(), fn))), 1 << 20, &err);
    CHECK_OK(stk_dataset_fill_placed_cache(ds, 10, &part, &err));
    CHECK_EQ_I64(part, 0);
    CHECK_EQ_I64(calls_of_epoch(ds, 1), 0);
    CHECK_EQ_I64(kept.elements, (IMAGES + 3) / 4);
    stk_dataset_release(ds);
    ds =
        stk_data_place_cache(finish(mix(map(stk_data_range(0, MANY, 1, &err), fn))), 1 << 20, &err);
    CHECK_OK(stk_dataset_fill_placed_cache(ds, 0, &part, &err)); /* at 2 ms each */
    CHECK_MSG(part > 0 && part < MANY, "%d", (int)part);
    CHECK_EQ_I64(calls_of_epoch(ds, 1), 0);
    CHECK_EQ_I64(kept.elements, MANY / 4); /* some stand for all */
    stk_dataset_release(ds);
}

TEST(filled_in_time_or_not)
{
    stk_map_fn serial = slow;
    stk_error err;
    int64_t part = -1;
    serial.flags |= STK_MAP_SERIAL;
    fill_all_or_some(&slow);
    fill_all_or_some(&serial);
    stk_dataset *without = images();
    CHECK_OK(stk_dataset_fill_placed_cache(without, 1, &part, &err)); /* nothing to fill */
    CHECK_EQ_I64(part, 0);
    stk_dataset_release(without);
}

TEST(no_memory)
{
    stk_error err;
    stk_dataset *ds = finish(flip(resize(map(mix(images()), &counting))));
    for (int64_t n = 1; n < 100; n++) {
        stk_alloc_fail_at(n, false);
        stk_dataset *with = stk_data_place_cache(stk_dataset_retain(ds), 1 << 20, &err);
        stk_alloc_fail_at(0, false);
        stk_dataset_release(with);
        if (with) break;
        CHECK(err.code == STK_ERR_MEMORY);
        CHECK(n < 99);
    }
    stk_dataset_release(ds);
}

TEST_MAIN()
