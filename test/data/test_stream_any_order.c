/* options.deterministic = false: a slow element holds nobody up; every element still comes once, also over a restore. */
#include "pipelines.h"

#include <unistd.h>

enum { COUNT = 60 };

/* The slow element waits until three others were handed out, or far too long. */
static int32_t handed;
static stk_status call_wait(void *x, const stk_map_info *info, stk_tensor *const *in,
                            stk_tensor **out, stk_error *err)
{
    bool slow = stk_tensor_at(in[0], 0) == 0;
    for (int i = 0; slow && i < 300 && __atomic_load_n(&handed, __ATOMIC_ACQUIRE) < 3; i++)
        usleep(10000);
    return call_times_ten(x, info, in, out, err);
}
static const stk_map_fn waiting = {.name = "waiting", .call = call_wait};

static stk_status call_all(void *x, const stk_map_info *i, stk_tensor *const *in, stk_tensor **out,
                           stk_error *err)
{
    (void)x;
    (void)i;
    (void)in;
    return stk_tensor_from(STK_BOOL, 0, NULL, &(bool){true}, &out[0], err);
}
static const stk_map_fn all = {.name = "all", .call = call_all};

static const stk_field scalar_field = {.dtype = STK_I64};
static const stk_schema scalar = {1, &scalar_field, "0"};
/* Dataset k: k, k + 10, k + 20, ...; the first is slow to begin. */
static stk_dataset *call_strided(void *x, const stk_map_info *info, stk_tensor *const *in,
                                 stk_error *err)
{
    (void)x;
    (void)info;
    int64_t k = (int64_t)stk_tensor_at(in[0], 0);
    stk_map_options o = stk_map_options_defaults();
    o.parallel = 1;
    return stk_data_map(stk_data_range(k, COUNT, 10, err), &waiting, &o, err);
}
static const stk_flat_fn strided = {.name = "strided", .call = call_strided, .output = &scalar};

typedef enum form { BY_NUMBER, IN_ORDER, BATCHED, INTERLEAVED, SHAPES } form;
static stk_dataset *pipeline(form shape)
{
    stk_interleave_options weave = {.cycle = 4, .block = 1, .parallel = STK_AUTOTUNE};
    stk_dataset *ds = stk_data_range(0, shape == INTERLEAVED ? 10 : COUNT, 1, NULL);
    switch (shape) {
    case BY_NUMBER: return stk_data_map(ds, &waiting, NULL, NULL);
    case IN_ORDER: return stk_data_map(stk_data_filter(ds, &all, NULL), &waiting, NULL, NULL);
    case BATCHED:
        return stk_data_unbatch(
            stk_data_batch(stk_data_map(ds, &waiting, NULL, NULL), 2, false, NULL), NULL);
    default: return stk_data_interleave(ds, &strided, &weave, NULL);
    }
}

static stk_stream *stream_of(stk_dataset *ds, int threads, bool deterministic)
{
    stk_error err;
    stk_stream *s = NULL;
    stk_stream_options o = stk_stream_options_defaults();
    o.threads = threads;
    o.deterministic = deterministic;
    __atomic_store_n(&handed, 0, __ATOMIC_RELEASE);
    CHECK_OK(stk_dataset_stream(ds, &o, &s, &err));
    return s;
}

/* Reads `most` elements, ticks them off, and returns where element 0 came; -1 when it did not. */
static int read_some(stk_stream *s, int most, int *seen)
{
    stk_error err;
    int place = -1;
    for (int i = 0; i < most; i++) {
        stk_tensor *part = NULL;
        bool end = false;
        if (!CHECK_OK(stk_stream_next(s, &part, &end, &err)) || end) break;
        int value = (int)(stk_tensor_at(part, 0) / 10);
        if (CHECK_MSG(value >= 0 && value < COUNT, "element %d", value)) seen[value]++;
        if (value == 0) place = i;
        stk_tensor_release(part);
        __atomic_add_fetch(&handed, 1, __ATOMIC_ACQ_REL);
    }
    return place;
}

static void each_once(const char *what, form shape, const int *seen)
{
    for (int i = 0; i < COUNT; i++)
        CHECK_MSG(seen[i] == 1, "%s, pipeline %d: element %d came %d times", what, (int)shape, i,
                  seen[i]);
}

TEST(slow_elements_hold_nobody_up)
{
    for (form shape = BY_NUMBER; shape < SHAPES; shape++) {
        int place = 0, seen[COUNT];
        stk_dataset *ds = pipeline(shape);
        REQUIRE(CHECK(ds != NULL));
        for (int attempt = 0; attempt < 3 && place < 3; attempt++) {
            memset(seen, 0, sizeof seen);
            stk_stream *s = stream_of(ds, 4, false);
            place = read_some(s, 1000, seen);
            stk_stream_release(s);
            each_once("any order", shape, seen);
        }
        CHECK_MSG(place >= 3, "pipeline %d: the slow element came as number %d", (int)shape, place);
        stk_dataset_release(ds);
    }
}

TEST(order_is_kept_otherwise)
{
    for (form shape = BY_NUMBER; shape < SHAPES; shape++) {
        int seen[COUNT] = {0};
        stk_dataset *ds = pipeline(shape);
        stk_stream *s = stream_of(ds, 4, true);
        __atomic_store_n(&handed, 3, __ATOMIC_RELEASE); /* nothing waits */
        CHECK_EQ_I64(read_some(s, 1000, seen), 0);
        each_once("in order", shape, seen);
        stk_stream_release(s);
        stk_dataset_release(ds);
    }
}

TEST(nothing_is_lost_over_a_restore)
{
    for (form shape = BY_NUMBER; shape < SHAPES; shape++)
        for (int place = 0; place < COUNT; place += 7)
            for (int threads = 1; threads <= 4; threads += 3) {
                int seen[COUNT] = {0};
                stk_error err;
                void *bytes = NULL;
                size_t size = 0;
                stk_dataset *ds = pipeline(shape);
                stk_stream *s = stream_of(ds, 4, false);
                read_some(s, place, seen);
                CHECK_OK(stk_stream_save(s, &bytes, &size, &err));
                stk_stream_release(s);
                s = stream_of(ds, threads, false);
                __atomic_store_n(&handed, 3, __ATOMIC_RELEASE);
                if (CHECK_OK(stk_stream_restore(s, bytes, size, &err))) read_some(s, 1000, seen);
                each_once("restored", shape, seen);
                stk_state_free(bytes);
                stk_stream_release(s);
                stk_dataset_release(ds);
            }
}

/* A map that says so itself, in a stream that is deterministic otherwise. */
TEST(unordered_maps)
{
    int place = 0, seen[COUNT];
    stk_map_options o = stk_map_options_defaults();
    o.unordered = true;
    stk_dataset *ds = stk_data_map(stk_data_range(0, COUNT, 1, NULL), &waiting, &o, NULL);
    for (int attempt = 0; attempt < 3 && place < 3; attempt++) {
        memset(seen, 0, sizeof seen);
        stk_stream *s = stream_of(ds, 4, true);
        place = read_some(s, 1000, seen);
        stk_stream_release(s);
        each_once("unordered", BY_NUMBER, seen);
    }
    CHECK_MSG(place >= 3, "the slow element came as number %d", place);
    stk_dataset_release(ds);
}

TEST_MAIN()
