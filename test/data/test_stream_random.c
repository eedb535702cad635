/* 200 random pipelines: one thread and many give the same; saved anywhere and restored, the rest is the same; so it is with a
 * cache put in where one belongs. */
#include "pipelines.h"

#include "base/json.h"
#include "base/rng.h"
#include "data/stream/cache_placement.h"
#include "data/json/pipeline.h"

/* ---- random numbers of the test itself ------------------------------------------------------------- */
static uint64_t dice_state;
static int64_t dice(int64_t n)
{
    dice_state = stk_mix64(dice_state + 0x9E3779B97F4A7C15u);
    return (int64_t)(dice_state >> 33) % n;
}

/* ---- functions --------------------------------------------------------------------------------------- */
static int64_t first(stk_tensor *const *in) { return (int64_t)stk_tensor_at(in[0], 0); }

/* Adds a random number that depends on seed and index, so that any mix-up of either shows. */
static stk_status call_noise(void *x, const stk_map_info *info, stk_tensor *const *in,
                             stk_tensor **out, stk_error *err)
{
    (void)x;
    int64_t n = stk_tensor_count(in[0]);
    if (!out[0] && stk_tensor_new(STK_I64, in[0]->rank, in[0]->shape, &out[0], err) != STK_OK)
        return STK_ERR_MEMORY;
    uint64_t bits = stk_seed_mix(info->seed, (uint64_t)info->index);
    for (int64_t i = 0; i < n; i++) {
        stk_status status =
            stk_tensor_set(out[0], i, stk_tensor_at(in[0], i) + (double)(bits % 1000), err);
        if (status != STK_OK) return status;
    }
    return STK_OK;
}
static const stk_map_fn noise = {.name = "noise", .call = call_noise};

static stk_status call_double(void *x, const stk_map_info *info, stk_tensor *const *in,
                              stk_tensor **out, stk_error *err)
{
    (void)x;
    (void)info;
    if (!out[0] && stk_tensor_new(STK_I64, in[0]->rank, in[0]->shape, &out[0], err) != STK_OK)
        return STK_ERR_MEMORY;
    for (int64_t i = 0; i < stk_tensor_count(in[0]); i++) {
        stk_status status = stk_tensor_set(out[0], i, stk_tensor_at(in[0], i) * 2 + 1, err);
        if (status != STK_OK) return status;
    }
    return STK_OK;
}
static const stk_map_fn doubled = {
    .name = "double", .call = call_double, .flags = STK_MAP_ELEMENTWISE | STK_MAP_PURE};

static stk_status call_odd(void *x, const stk_map_info *info, stk_tensor *const *in,
                           stk_tensor **out, stk_error *err)
{
    (void)x;
    (void)info;
    bool yes = first(in) % 3 != 0;
    return stk_tensor_from(STK_BOOL, 0, NULL, &yes, &out[0], err);
}
static const stk_map_fn not_third = {.name = "not_third", .call = call_odd, .flags = STK_MAP_PURE};

static stk_status call_key(void *x, const stk_map_info *info, stk_tensor *const *in,
                           stk_tensor **out, stk_error *err)
{
    (void)x;
    (void)info;
    int64_t key = first(in) % 3;
    return stk_tensor_from(STK_I64, 0, NULL, &key, &out[0], err);
}
static const stk_map_fn key = {.name = "key", .call = call_key};

static const stk_field scalar_field = {.dtype = STK_I64};
static const stk_schema scalar = {1, &scalar_field, "0"};
static stk_dataset *call_spread(void *x, const stk_map_info *info, stk_tensor *const *in,
                                stk_error *err)
{
    (void)x;
    (void)info;
    int64_t n = first(in) & 0xFFFF;
    stk_dataset *ds = stk_data_range(n, n + n % 5, 1, err);
    ds = stk_data_shuffle(ds, STK_SHUFFLE_ALL, 1, true, err);
    return n % 2 ? stk_data_map(ds, &noise, NULL, err) : ds;
}
static const stk_flat_fn spread = {.name = "spread", .call = call_spread, .output = &scalar};

static stk_dataset *call_window(void *x, int64_t k, stk_dataset *window, stk_error *err)
{
    (void)x;
    return stk_data_shuffle(window, 2, (uint64_t)k, true, err);
}
static const stk_group_fn regroup = {.name = "regroup", .call = call_window, .output = &scalar};

static stk_status call_running(void *x, const stk_map_info *info, stk_tensor *const *in,
                               stk_tensor **out, stk_error *err)
{
    (void)x;
    (void)info;
    int64_t sum = (first(in) + first(in + 1)) % 100000;
    for (int k = 0; k < 2; k++)
        if (stk_tensor_from(STK_I64, 0, NULL, &sum, &out[k], err) != STK_OK) return STK_ERR_MEMORY;
    return STK_OK;
}
static const stk_field pair_fields[2] = {{.dtype = STK_I64}, {.dtype = STK_I64}};
static const stk_schema pair = {2, pair_fields, "(0,1)"};
static const stk_map_fn running = {
    .name = "running", .call = call_running, .output = &pair, .flags = STK_MAP_PURE};

static stk_dataset *call_open(void *x, const stk_map_info *info, stk_tensor *const *in,
                              stk_error *err)
{
    (void)x;
    stk_dataset *window = stk_dataset_retain(stk_tensor_dataset(in[0]));
    return info->index % 2 ? window : stk_data_shuffle(window, 3, 1, true, err);
}
static const stk_flat_fn open_window = {.name = "open", .call = call_open, .output = &scalar};

static stk_dataset *append(stk_dataset *ds, const char *ops, stk_error *err)
{
    char json[1024];
    stk_json_document *document = NULL;
    stk_pipeline p = {.folder = ""};
    snprintf(json, sizeof json, "[%s]", ops);
    if (!CHECK(stk_json_parse(json, strlen(json), NULL, &document, err) == STK_OK)) return ds;
    ds = stk_pipeline_read(stk_json_root(document), &p, "", ds, err);
    stk_json_release(document);
    return ds;
}

/* What pipeline files can say, over one int64. */
static stk_dataset *from_file(stk_dataset *ds, int64_t which)
{
    static const char *const texts[] = {
        "{\"op\": \"filter\", \"where\": \"$0 % 4 != 1 or index < 3\"}",
        "{\"op\": \"take_while\", \"where\": \"$0 != 77\"}",
        "{\"op\": \"map\", \"to\": \"where($0 > 50, $0 - 50, $0 * 3) + index % 2\"}",
        "{\"op\": \"scan\", \"state\": {\"s\": 1}, \"next\": {\"s\": \"(s * 7 + $0) % 1000\"}, "
        "\"give\": \"s\"}",
        "{\"op\": \"flat_map\", \"ops\": [{\"op\": \"repeat\", \"times\": 2}]}",
        "{\"op\": \"window\", \"size\": 4, \"shift\": 3, \"nested\": true}, {\"op\": "
        "\"interleave\", \"cycle\": 2, \"ops\": [{\"op\": \"shuffle\", \"buffer\": 2}]}",
        "{\"op\": \"group_by_window\", \"key\": \"$0 % 2\", \"size\": 3, \"ops\": [{\"op\": "
        "\"skip\", \"count\": 1}]}",
        "{\"op\": \"rejection_resample\", \"class\": \"$0 % 2\", \"target\": [0.7, 0.3]}, "
        "{\"op\": \"map\", \"to\": \"$1\"}",
        "{\"op\": \"batch\", \"size\": 3}, {\"op\": \"bucket_by_sequence_length\", \"length\": "
        "\"len($0)\", \"boundaries\": [3], \"sizes\": [2, 2]}, {\"op\": \"unbatch\"}, {\"op\": "
        "\"unbatch\"}",
    };
    enum { TEXTS = sizeof texts / sizeof *texts };
    stk_error err = {.code = STK_OK};
    stk_dataset *read = append(ds, texts[which % TEXTS], &err);
    CHECK_MSG(read != NULL, "%s", err.message);
    return read;
}

/* ---- random pipelines over int64 scalars ------------------------------------------------------------------ */
static stk_dataset *source(void)
{
    int64_t n = 5 + dice(60);
    if (dice(3) == 0) return stk_data_take(stk_data_random((uint64_t)dice(9), -1, NULL), n, NULL);
    stk_dataset *ds = stk_data_range(dice(50), 50 + n, 1, NULL);
    return dice(2) ? ds : stk_data_filter(ds, &not_third, NULL); /* without random access */
}

static stk_dataset *random_node(stk_dataset *ds, int depth)
{
    stk_map_options o = stk_map_options_defaults();
    stk_interleave_options weave = {1 + dice(4), 1 + dice(3), dice(2) ? STK_AUTOTUNE : 1};
    stk_tensor *zero = NULL;
    o.seed = (uint64_t)dice(100);
    switch (dice(24)) {
    case 0: return stk_data_map(ds, &noise, &o, NULL);
    case 1: return stk_data_map(ds, &doubled, &o, NULL);
    case 2: return stk_data_shuffle(ds, 1 + dice(20), (uint64_t)dice(9), dice(2), NULL);
    case 3: return stk_data_shuffle(ds, STK_SHUFFLE_ALL, (uint64_t)dice(9), dice(2), NULL);
    case 4: return stk_data_repeat(ds, 1 + dice(3), NULL);
    case 5: return stk_data_take(ds, dice(60), NULL);
    case 6: return stk_data_skip(ds, dice(5), NULL);
    case 7: return stk_data_filter(ds, &not_third, NULL);
    case 8: return stk_data_shard(ds, 1 + dice(3), 0, NULL);
    case 9: return stk_data_interleave(ds, &spread, &weave, NULL);
    case 10: return stk_data_flat_map(ds, &spread, NULL);
    case 11: return stk_data_prefetch(ds, dice(2) ? STK_AUTOTUNE : 1 + dice(6), NULL);
    case 12: return stk_data_group_by_window(ds, &key, &regroup, 1 + dice(4), NULL);
    case 13: return stk_data_unbatch(stk_data_batch(ds, 1 + dice(5), dice(2), NULL), NULL);
    case 14:
        return stk_data_unbatch(
            stk_data_window(ds, 1 + dice(4), 1 + dice(4), 1 + dice(2), dice(2), NULL), NULL);
    case 15:
        return depth > 1 ? ds : stk_data_concatenate(ds, random_node(source(), depth + 1), NULL);
    case 16: {
        stk_dataset *in[2] = {ds, random_node(source(), depth + 1)};
        return stk_data_sample_from(2, in, NULL, (uint64_t)dice(9), dice(2), NULL);
    }
    case 17: return stk_data_cache(ds, NULL, NULL);
    case 18: return stk_data_unique(ds, NULL);
    case 19:
        return stk_data_flat_map(
            stk_data_window_nested(ds, 1 + dice(4), 1 + dice(4), 1 + dice(2), dice(2), NULL),
            &open_window, NULL);
    case 20:
    case 21:
    case 22: return from_file(ds, dice(1000));
    default:
        if (stk_tensor_scalar(STK_I64, 0, &zero, NULL) != STK_OK) return ds;
        ds = stk_data_scan(ds, 1, &zero, &running, NULL);
        stk_tensor_release(zero);
        return ds;
    }
}

static stk_dataset *random_pipeline(uint64_t seed)
{
    dice_state = seed * 7919 + 1;
    stk_dataset *ds = source();
    int64_t nodes = 1 + dice(6);
    for (int64_t i = 0; i < nodes; i++) ds = random_node(ds, 0);
    if (dice(3) == 0) ds = stk_data_map(ds, &noise, NULL, NULL);
    if (dice(2)) ds = stk_data_batch(ds, 1 + dice(8), dice(2), NULL);
    if (dice(3) == 0) ds = stk_data_enumerate(ds, 3, NULL);
    if (dice(2)) ds = stk_data_prefetch(ds, STK_AUTOTUNE, NULL);
    return stk_data_take(ds, 400, NULL);
}

static stk_stream *stream_of(stk_dataset *ds, int threads, bool rewrite)
{
    stk_error err;
    stk_stream *s = NULL;
    stk_stream_options o = stk_stream_options_defaults();
    o.threads = threads;
    o.rewrite = rewrite;
    o.epoch = 3;
    CHECK_OK(stk_dataset_stream(ds, &o, &s, &err));
    return s;
}

static collect whole, other;

static void compare_threads(uint64_t seed, stk_dataset *ds)
{
    for (int threads = 1; threads <= 4; threads += 3)
        for (int rewrite = 0; rewrite < 2; rewrite++) {
            collect *to = threads == 1 && !rewrite ? &whole : &other;
            memset(to, 0, sizeof *to);
            stk_stream *s = stream_of(ds, threads, rewrite);
            collect_stream(s, 1000, false, to);
            CHECK_MSG(to->status == STK_OK, "pipeline %d: %s", (int)seed, to->error.message);
            stk_stream_release(s);
            if (to == &other)
                CHECK_MSG(strcmp(whole.text, other.text) == 0,
                          "pipeline %d: %d threads, rewrite %d: differs\n  %.300s\n  %.300s",
                          (int)seed, threads, rewrite, whole.text, other.text);
        }
}

/* Walks to a random place with `before` threads, saves, and goes on there with `after` threads. */
static void compare_restored(uint64_t seed, stk_dataset *ds, int before, int after)
{
    stk_error err;
    void *bytes = NULL;
    size_t size = 0;
    int64_t place = whole.elements ? dice(whole.elements + 1) : 0;
    memset(&other, 0, sizeof other);
    stk_stream *s = stream_of(ds, before, true), *t = stream_of(ds, after, true);
    collect_stream(s, place, false, &other);
    if (CHECK_OK(stk_stream_save(s, &bytes, &size, &err)) &&
        CHECK_OK(stk_stream_restore(t, bytes, size, &err)))
        collect_stream(t, 1000, false, &other);
    CHECK_MSG(strcmp(whole.text, other.text) == 0,
              "pipeline %d: saved at %d of %d (%d -> %d threads): differs\n  %.300s\n  %.300s",
              (int)seed, (int)place, (int)whole.elements, before, after, whole.text, other.text);
    stk_state_free(bytes);
    stk_stream_release(s);
    stk_stream_release(t);
}

TEST(two_hundred_pipelines)
{
    int64_t elements = 0;
    for (uint64_t seed = 0; seed < 200 && check_failures < 20; seed += INSTRUMENTED ? 4 : 1) {
        stk_dataset *ds = random_pipeline(seed);
        if (!CHECK_MSG(ds != NULL, "pipeline %d could not be made", (int)seed)) continue;
        compare_threads(seed, ds);
        elements += whole.elements;
        compare_restored(seed, ds, 1, 1);
        compare_restored(seed, ds, 4, 1);
        compare_restored(seed, ds, 1, 4);
        compare_restored(seed, ds, 4, 4);
        stk_dataset_release(ds);
    }
    CHECK_MSG(elements > (INSTRUMENTED ? 500 : 2000), "only %d elements in all", (int)elements);
}

/* The same elements in two epochs, the second of which finds the cache filled; and from any place on. */
static bool compare_kept(uint64_t seed, stk_dataset *ds, int threads)
{
    stk_error err = {.code = STK_OK};
    stk_dataset *kept = stk_data_place_cache(stk_dataset_retain(ds), 1 << 20, &err);
    if (!CHECK_MSG(kept != NULL, "pipeline %d: %s", (int)seed, err.message)) return false;
    bool found = kept != ds;
    stk_stream_options o = stk_stream_options_defaults();
    o.threads = threads;
    for (o.epoch = 3; found && o.epoch < 5; o.epoch++) {
        run_all(stk_dataset_retain(ds), &o, &whole);
        run_all(stk_dataset_retain(kept), &o, &other);
        CHECK_MSG(strcmp(whole.text, other.text) == 0,
                  "pipeline %d: kept, %d threads, epoch %d: differs\n  %.300s\n  %.300s", (int)seed,
                  threads, (int)o.epoch, whole.text, other.text);
    }
    if (found) {
        stk_stream *s = stream_of(ds, 1, true);
        memset(&whole, 0, sizeof whole);
        collect_stream(s, 1000, false, &whole);
        stk_stream_release(s);
        compare_restored(seed, kept, threads, 1);
    }
    stk_dataset_release(kept);
    return found;
}

TEST(a_cache_changes_nothing)
{
    int places = 0;
    for (uint64_t seed = 0; seed < 400 && check_failures < 20; seed++) {
        stk_dataset *ds = random_pipeline(seed);
        if (!CHECK(ds != NULL)) continue;
        places += compare_kept(seed, ds, 1);
        compare_kept(seed, ds, 4);
        stk_dataset_release(ds);
    }
    CHECK_MSG(places > 40, "a place for a cache in %d of 400 pipelines only", places);
}

TEST(damaged_states_are_refused)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        stk_error err;
        void *bytes = NULL;
        size_t size = 0;
        stk_dataset *ds = random_pipeline(seed);
        stk_stream *s = stream_of(ds, 1, true);
        memset(&other, 0, sizeof other);
        collect_stream(s, 5, false, &other);
        REQUIRE(CHECK_OK(stk_stream_save(s, &bytes, &size, &err)));
        CHECK(stk_stream_restore(s, bytes, size / 2 / 8 * 8, &err) != STK_OK);
        CHECK(stk_stream_restore(s, bytes, 16, &err) != STK_OK);
        ((char *)bytes)[9] ^= 1;
        CHECK_FAILS(stk_stream_restore(s, bytes, size, &err), STK_ERR_ARGUMENT, "pipeline");
        stk_state_free(bytes);
        stk_stream_release(s);
        stk_dataset_release(ds);
    }
}

TEST_MAIN()
