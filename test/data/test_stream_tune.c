/* Plans, counters, and the tuner with planted slow stages. Times are compared with each other, never with a clock. */
#include "pipelines.h"

#include "base/clock.h"

#include <unistd.h>

static stk_status call_sleep(void *x, const stk_map_info *i, stk_tensor *const *in,
                             stk_tensor **out, stk_error *err)
{
    usleep(2000);
    return call_times_ten(x, i, in, out, err);
}
static const stk_map_fn sleepy = {.name = "sleepy", .call = call_sleep};

static stk_status call_burn(void *x, const stk_map_info *i, stk_tensor *const *in, stk_tensor **out,
                            stk_error *err)
{
    volatile double sum = 0;
    for (int k = 0; k < 200000; k++) sum = sum + 1.0 / (k + 1);
    return call_times_ten(x, i, in, out, err);
}
static const stk_map_fn burning = {.name = "burning", .call = call_burn};

static stk_dataset *slow_pipeline(const stk_map_fn *fn, bool filtered)
{
    stk_dataset *ds = stk_data_repeat(stk_data_range(0, 1000, 1, NULL), -1, NULL);
    static const stk_map_fn all = {.name = "all", .call = call_times_ten};
    if (filtered)
        ds = stk_data_filter(stk_data_skip(ds, 1, NULL), &all, NULL); /* in order from here on */
    ds = stk_data_map(ds, fn, NULL, NULL);
    return stk_data_prefetch(stk_data_batch(ds, 4, false, NULL), STK_AUTOTUNE, NULL);
}

/* Batches per second after `warm` batches. */
static double rate(stk_dataset *ds, int threads, int warm, int measured, int32_t *chosen)
{
    stk_error err;
    stk_stream *s = NULL;
    stk_stream_options o = stk_stream_options_defaults();
    o.threads = threads;
    if (!CHECK_OK(stk_dataset_stream(ds, &o, &s, &err))) return 0;
    int64_t start = 0;
    for (int i = 0; i < warm + measured; i++) {
        stk_tensor *part = NULL;
        bool end = false;
        if (i == warm) start = stk_now_ns();
        if (!CHECK_OK(stk_stream_next(s, &part, &end, &err)) || end) break;
        stk_tensor_release(part);
    }
    double seconds = (double)(stk_now_ns() - start) * 1e-9;
    stk_stream_usage usage;
    if (chosen && CHECK(stk_stream_usage_read(s, &usage))) *chosen = usage.threads;
    stk_stream_release(s);
    return measured / seconds;
}

TEST(sleeping_jobs_get_more_workers)
{
    setenv("STOKER_CACHE", "", 1); /* nothing remembered */
    for (int filtered = 0; filtered < 2; filtered++) {
        stk_dataset *ds = slow_pipeline(&sleepy, filtered);
        int32_t chosen = 0;
        double best = 0, tuned = 0;
        for (int attempt = 0; attempt < 3 && !(tuned > 0.7 * best && chosen > 8); attempt++) {
            best = rate(ds, 64, 100, 300, NULL);
            tuned = rate(ds, 0, 300, 300, &chosen);
        }
        CHECK_MSG(chosen > 8, "%d workers for jobs that sleep", (int)chosen);
        CHECK_MSG(tuned > 0.7 * best, "tuned %.0f, by hand %.0f batches/s", tuned, best);
        stk_dataset_release(ds);
    }
}

TEST(busy_jobs_do_not)
{
    setenv("STOKER_CACHE", "", 1);
    stk_dataset *ds = slow_pipeline(&burning, false);
    int32_t chosen = 0;
    rate(ds, 0, 20, 60, &chosen);
    CHECK_MSG(chosen <= 8, "%d workers for jobs that only compute", (int)chosen);
    stk_dataset_release(ds);
}

TEST(choices_are_remembered)
{
    char folder[] = "/tmp/stk_tune_XXXXXX", path[64];
    stk_error err;
    stk_stream *s = NULL;
    char *text = NULL;
    REQUIRE(CHECK(mkdtemp(folder) != NULL));
    setenv("STOKER_CACHE", folder, 1);
    stk_dataset *ds = slow_pipeline(&sleepy, false);
    int32_t chosen = 0;
    for (int i = 0; i < 3 && chosen <= 8; i++) rate(ds, 0, 200, 50, &chosen);
    CHECK_OK(stk_dataset_stream(ds, NULL, &s, &err));
    CHECK_OK(stk_stream_choices(s, &text, &err));
    CHECK_CONTAINS(text, "as the last run of this plan had found");
    stk_free(text);
    stk_stream_release(s);
    stk_dataset_release(ds);
    snprintf(path, sizeof path, "%s/data_tune", folder);
    unlink(path);
    rmdir(folder);
}

static stk_status call_halve(void *x, const stk_map_info *i, stk_tensor *const *in,
                             stk_tensor **out, stk_error *err)
{
    (void)x;
    (void)i;
    if (!out[0] && stk_tensor_new(STK_I64, in[0]->rank, in[0]->shape, &out[0], err) != STK_OK)
        return STK_ERR_MEMORY;
    for (int64_t k = 0; k < stk_tensor_count(in[0]); k++)
        ((int64_t *)out[0]->data)[k] = ((int64_t *)in[0]->data)[k] / 2;
    return STK_OK;
}
static const stk_map_fn halve = {.name = "halve", .call = call_halve, .flags = STK_MAP_ELEMENTWISE};

TEST(plans_are_explained)
{
    stk_error err;
    char *text = NULL;
    stk_dataset *ds = stk_data_map(stk_data_range(0, 100, 1, &err), &times_ten, NULL, &err);
    ds = stk_data_take(stk_data_map(ds, &times_ten, NULL, &err), -1, &err);
    ds = stk_data_repeat(stk_data_shuffle(ds, STK_SHUFFLE_ALL, 1, true, &err), 2, &err);
    ds = stk_data_prefetch(stk_data_batch(ds, 8, true, &err), STK_AUTOTUNE, &err);
    CHECK_OK(stk_dataset_explain(ds, NULL, &text, &err));
    CHECK_CONTAINS(text, "map + map");
    CHECK_CONTAINS(text, "take: does nothing");
    CHECK_CONTAINS(text, "shuffle + repeat");
    CHECK_CONTAINS(text, "times_ten then times_ten");
    CHECK_CONTAINS(text, "by number");
    stk_free(text);
    stk_dataset_release(ds);
    ds = stk_data_batch(stk_data_map(stk_data_range(0, 100, 1, &err), &halve, NULL, &err), 8, false,
                        &err);
    CHECK_OK(stk_dataset_explain(ds, NULL, &text, &err));
    CHECK_CONTAINS(text, "halve on whole batches of 8");
    stk_free(text);
    static collect c, d;
    stk_stream_options o = stk_stream_options_defaults();
    o.rewrite = false;
    stk_dataset_retain(ds);
    run_all(ds, NULL, &c);
    run_all(ds, &o, &d);
    CHECK_STR(c.text, d.text);
}

TEST(stages_are_counted)
{
    stk_error err;
    stk_stream *s = NULL;
    static collect c;
    stk_dataset *ds = stk_data_batch(
        stk_data_map(stk_data_range(0, 40, 1, &err), &burning, NULL, &err), 4, false, &err);
    CHECK_OK(stk_dataset_stream(ds, NULL, &s, &err));
    collect_stream(s, 1000, false, &c);
    stk_stage_stats rows[8];
    CHECK_EQ_I64(stk_stream_stats(s, rows, 8), 3);
    CHECK_STR(rows[0].name, "batch");
    CHECK_EQ_I64(rows[0].elements, 10);
    CHECK_EQ_I64(rows[0].bytes, 320);
    CHECK_STR(rows[1].name, "map");
    CHECK_EQ_I64(rows[1].depth, 1);
    CHECK_EQ_I64(rows[1].elements, 40);
    CHECK_MSG(rows[1].busy > 10 * (rows[0].busy + rows[2].busy), "map %g, batch %g, range %g s",
              rows[1].busy, rows[0].busy, rows[2].busy);
    stk_stream_release(s);
    stk_dataset_release(ds);
}

TEST_MAIN()
