/* What more threads would bring: the model against steps whose answer is known, and a real recording. */
#include "check.h"

#include "base/json.h"
#include "planted.h"
#include "watch/scaling.h"

static const stk_roofline MACHINE = {.threads = 2,
                                     .gflops = {100, 200},
                                     .gbs = {{50, 30, 10}, {100, 60, 16}},
                                     .level_bytes = {1e5, 1e6, 1e300},
                                     .join = 2e-6};

static double seconds_on(const stk_scaling *s, int32_t threads, bool memory)
{
    for (int64_t i = 0; i < s->npoints; i++)
        if (s->point[i].threads == threads)
            return memory ? s->point[i].memory_seconds : s->point[i].seconds;
    return -1;
}

/* A millisecond in 64 parts, and as much that nobody shares: Amdahl's law, with a microsecond of ceremony per thread. */
TEST(serial_time_stays)
{
    const stk_region_cost regions[] = {{.cut = 1e-3, .parts = 64, .op = "conv", .place = "a"},
                                       {.serial = 0.75e-3, .parts = 1, .op = "sort", .place = "b"}};
    stk_scaling s = {0};
    stk_scaling_predict(regions, 2, 0.25e-3, &MACHINE, &s);
    CHECK_EQ_I64(s.npoints, STK_SCALING_POINTS);
    CHECK_EQ_I64(s.regions, 2);
    CHECK_EQ_I64(s.split, 1);
    CHECK_NEAR(s.cut, 1e-3, 1e-12);
    CHECK_NEAR(s.serial, 0.75e-3, 1e-12);
    CHECK_NEAR(seconds_on(&s, 1, false), 2e-3, 1e-12);
    CHECK_NEAR(seconds_on(&s, 2, false), 1.5e-3 + 2e-6, 1e-12);
    CHECK_NEAR(seconds_on(&s, 16, false), 1e-3 + 1e-3 / 16 + 16e-6, 1e-12);
    CHECK(seconds_on(&s, 64, false) > 1e-3); /* never below what is serial */
    CHECK(!strcmp(s.limit[0].op, "sort"));   /* what holds it back comes first */
    CHECK_EQ_I64(s.nlimits, 2);
}

TEST(no_more_threads_than_parts_or_than_pay)
{
    const stk_region_cost few = {.cut = 1e-3, .parts = 4, .op = "gemm", .place = ""},
                          uneven = {.cut = 1e-3, .parts = 3, .op = "gemm", .place = ""},
                          tiny = {.cut = 1e-6, .parts = 64, .op = "add", .place = ""};
    stk_scaling s = {0}, u = {0}, t = {0};
    stk_scaling_predict(&few, 1, 0, &MACHINE, &s);
    CHECK_NEAR(seconds_on(&s, 4, false), 0.25e-3 + 4e-6, 1e-12);
    CHECK_NEAR(seconds_on(&s, 64, false), seconds_on(&s, 4, false), 1e-12);
    stk_scaling_predict(&uneven, 1, 0, &MACHINE, &u);
    CHECK_NEAR(seconds_on(&u, 2, false), 1e-3 * 2 / 3 + 2e-6, 1e-12);
    stk_scaling_predict(&tiny, 1, 0, &MACHINE, &t); /* calling others takes longer than doing it */
    CHECK_NEAR(seconds_on(&t, 64, false), 1e-6, 1e-15);
}

TEST(memory_does_not_grow_with_threads)
{
    const stk_region_cost stream = {
        .cut = 1e-3, .parts = 64, .bytes = 8e6, .op = "add", .place = ""};
    stk_scaling s = {0}, unknown = {0};
    stk_roofline nothing = {0};
    stk_scaling_predict(&stream, 1, 0, &MACHINE, &s);
    CHECK_NEAR(seconds_on(&s, 1, true), 1e-3, 1e-12);
    CHECK_NEAR(seconds_on(&s, 64, true), 0.5e-3 + 2e-6,
               1e-12); /* 16 GB/s for 8 MB, from two threads on */
    CHECK(seconds_on(&s, 64, false) < 0.1e-3);
    stk_scaling_predict(&stream, 1, 0, &nothing, &unknown);
    CHECK_NEAR(seconds_on(&unknown, 64, true), 1e-3 / 64, 1e-12);
}

/* The parts of the model of a recorded step are those of its books. */
TEST(a_recorded_step_has_one)
{
    static const plant p = {"scaling", .net = NET_MLP, .batch = 64, .in = 64, .hidden = 64};
    stk_error err;
    planted job;
    stk_watch *watch = NULL;
    stk_report *r = NULL;
    void *variant = NULL;
    char *text = NULL, *page = NULL;
    stk_job_settings settings = stk_job_settings_defaults();
    REQUIRE(CHECK_OK(planted_job(&p, &job, &err)) && CHECK_OK(stk_watch_start(NULL, &watch, &err)));
    CHECK_OK(job.job.open(&job, &settings, &variant, &err));
    CHECK_OK(job.job.run(&job, variant, 60, &err));
    REQUIRE(CHECK_OK(stk_watch_stop(watch, &r, &err)));
    const stk_scaling *s = &r->scaling;
    double computing = r->book[STK_BOOK_KERNELS] + r->book[STK_BOOK_OPTIMIZER];
    CHECK_EQ_I64(s->npoints, STK_SCALING_POINTS);
    CHECK_EQ_I64(s->regions, r->program.regions);
    CHECK(s->cut + s->serial >
          0.5 * computing); /* of all threads together: no less than the step's thread saw */
    CHECK(s->outside >= 0 && s->serial > 0);
    for (int64_t i = 1; i < s->npoints; i++) CHECK(s->point[i].seconds <= s->point[i - 1].seconds);
    CHECK(s->nlimits > 0 && s->limit[0].op[0]);
    CHECK_OK(stk_report_render(r, STK_REPORT_TEXT, &text, NULL, &err));
    CHECK_OK(stk_report_render(r, STK_REPORT_HTML, &page, NULL, &err));
    if (text && page) {
        CHECK_CONTAINS(text, "more threads: a model");
        CHECK_CONTAINS(text, s->limit[0].op);
        CHECK_CONTAINS(page, "<h2>More threads</h2>");
    }
    stk_text_free(text);
    stk_text_free(page);
    job.job.close(&job, variant);
    planted_release(&job);
    stk_report_release(r);
}

TEST_MAIN()
