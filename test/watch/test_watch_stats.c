/* Intervals that hold the truth as often as they say, change points where they were put, and a model that obeys physics. */
#include "check.h"

#include "base/rng.h"
#include "watch/report.h"
#include "watch/stats.h"

static uint64_t stream = 1;
static void noise(double *out, int64_t n, double deviation)
{
    stk_rng_normal_f64((stk_rng){7, stream++}, 0, n, 0, deviation, out);
}

TEST(signed_rank_critical_values)
{
    /* Two-sided 5 %, from any printed table of Wilcoxon's test. */
    static const struct {
        int32_t n, k;
    } table[] = {{5, -1}, {6, 0}, {7, 2}, {8, 3}, {10, 8}, {12, 13}, {15, 25}, {20, 52}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        CHECK_EQ_I64(stk_signed_rank_critical(table[i].n), table[i].k);
}

TEST(intervals_hold_the_truth)
{
    enum { RUNS = 2000, PAIRS = 8 };
    int held = 0;
    for (int i = 0; i < RUNS; i++) {
        double d[PAIRS];
        noise(d, PAIRS, 0.1);
        for (int k = 0; k < PAIRS; k++) d[k] += log(1.4);
        stk_gain g = stk_gain_of(d, PAIRS);
        CHECK(g.low <= g.best && g.best <= g.high);
        held += g.low <= 1.4 && 1.4 <= g.high;
    }
    CHECK_MSG(held > 0.94 * RUNS, "%d of %d intervals hold the truth", held, RUNS);
}

TEST(one_bad_turn_does_not_matter)
{
    double d[] = {0.30, 0.31, 0.29, 0.30, 0.32, 0.30, 0.28, 5.0};
    stk_gain g = stk_gain_of(d, 8);
    CHECK_NEAR(g.best, exp(0.30), 0.04);
    stk_gain few = stk_gain_of(d, 3);
    CHECK_MSG(few.low < exp(0.28) && few.high > exp(0.32), "three pairs claim too much");
}

TEST(change_points_are_found)
{
    enum { N = 120, AT = 40 };
    double v[N], p;
    noise(v, N, 0.05);
    for (int i = 0; i < N; i++) v[i] += i < AT ? 1.5 : 1;
    int64_t at = stk_change_point(v, N, &p);
    CHECK_MSG(llabs(at - AT) <= 2, "found at %lld", (long long)at);
    CHECK(p < 1e-6);
    CHECK(llabs(stk_settled_from(v, N) - AT) <= 2);
}

TEST(steady_rows_stay_whole)
{
    enum { RUNS = 300, N = 100 };
    int64_t cut = 0;
    for (int i = 0; i < RUNS; i++) {
        double v[N];
        noise(v, N, 0.1);
        for (int k = 0; k < N; k++) v[k] += 2;
        cut += stk_settled_from(v, N) > 0;
    }
    CHECK_MSG(cut <= RUNS / 25, "%lld of %d steady rows were cut", (long long)cut, RUNS);
}

/* ---- rows of steps without and with a warm-up ---- */

static void correlated(double *v, int64_t n, double with_the_one_before)
{
    double e[2000], a = 0, own = sqrt(1 - with_the_one_before * with_the_one_before);
    noise(e, n, 1);
    for (int64_t i = 0; i < n; i++) {
        a = i ? with_the_one_before * a + own * e[i] : e[i];
        v[i] = exp(0.08 * a);
    }
}
static void neighbour(double *v, int64_t n, double slower)
{
    correlated(v, n, 0.5);
    for (int64_t i = 0; i < n; i++) /* slow, fast, slow, fast: he comes and goes */
        v[i] *= i / (n / 4) % 2 ? 1 : slower;
}
static void wave(double *v, int64_t n, double height)
{
    noise(v, n, 0.02);
    double begin = (double)stream;
    for (int64_t i = 0; i < n; i++)
        v[i] += 1 + height * sin(begin + 2 * 3.14159 * (double)i / (double)n);
}
static void drift(double *v, int64_t n, double by)
{
    noise(v, n, 0.02);
    for (int64_t i = 0; i < n; i++) v[i] += 1 + by * (1 - (double)i / (double)n);
}
static void bursts(double *v, int64_t n, double every)
{
    noise(v, n, 0.03);
    for (int64_t i = 0; i < n; i++) v[i] += i % (int64_t)every == (int64_t)every - 1 ? 3 : 1;
}
/* The first `part` of the row is 1.3 times as slow. */
static void warm_up(double *v, int64_t n, double part)
{
    correlated(v, n, 0.3);
    for (int64_t i = 0; i < (int64_t)((double)n * part); i++) v[i] *= 1.3;
}

TEST(what_is_no_warm_up_is_not_taken_for_one)
{
    enum { RUNS = 100, LONGEST = 2000 };
    static const struct {
        const char *name;
        void (*make)(double *v, int64_t n, double how);
        double how;
        int64_t n;
    } rows[] = {{"correlated", correlated, 0.5, 100},
                {"correlated", correlated, 0.8, 100},
                {"correlated", correlated, 0.95, 400},
                {"correlated", correlated, 0.95, 2000},
                {"wave", wave, 0.15, 24},
                {"wave", wave, 0.15, 100},
                {"wave", wave, 0.15, 2000},
                {"drift", drift, 0.3, 100},
                {"drift", drift, 0.3, 2000},
                {"drift upwards", drift, -0.3, 100},
                {"bursts", bursts, 4, 100},
                {"bursts", bursts, 16, 100},
                {"bursts", bursts, 50, 600}};
    static double v[LONGEST];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int cut = 0;
        for (int run = 0; run < RUNS; run++) {
            rows[i].make(v, rows[i].n, rows[i].how);
            cut += stk_settled_from(v, rows[i].n) > 1;
        }
        CHECK_MSG(cut <= RUNS / 10, "%s %g: %d of %d rows of %lld were cut", rows[i].name,
                  rows[i].how, cut, RUNS, (long long)rows[i].n);
    }
}

TEST(warm_ups_of_any_length_are_found_among_steps_that_follow_each_other)
{
    enum { RUNS = 50 };
    static const double parts[] = {0.1, 0.3, 0.5, 0.7};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        int found = 0, n = 300, at = (int)(n * parts[i]);
        for (int run = 0; run < RUNS; run++) {
            double v[300];
            warm_up(v, n, parts[i]);
            int64_t from = stk_settled_from(v, n);
            found += from >= at - 6 && from <= at + 50;
        }
        CHECK_MSG(found >= RUNS * 9 / 10, "%d steps of warm-up: found in %d of %d rows", at, found,
                  RUNS);
    }
}

TEST(a_level_that_was_left_and_found_again_was_reached_before)
{
    double v[400];
    int late = 0;
    for (int run = 0; run < 50; run++) {
        neighbour(v, 400, 1.6);
        late +=
            stk_settled_from(v, 400) > 130; /* steps 100 to 199 have the level of the last 100 */
    }
    CHECK_MSG(late <= 2, "in %d of 50 rows a visit of a neighbour was taken for warm-up", late);
}

TEST(slow_first_steps_and_ramps)
{
    double v[60];
    noise(v, 60, 0.01);
    for (int i = 0; i < 60; i++) v[i] += 1;
    v[0] = 30, v[1] = 4;
    CHECK_EQ_I64(stk_settled_from(v, 60), 2);
    for (int i = 0; i < 60; i++) v[i] = 1 + (i < 20 ? 0.1 * (20 - i) : 0) + 0.001 * (i % 3);
    int64_t from = stk_settled_from(v, 60);
    CHECK_MSG(from >= 15 && from <= 22, "a ramp of 20 steps settled at %lld", (long long)from);
    for (int i = 0; i < 60; i++) v[i] = i < 30 ? 1 : 2; /* slower later is no warm-up */
    CHECK_EQ_I64(stk_settled_from(v, 60), 0);
    CHECK_EQ_I64(stk_settled_from(v, 1), 0);
    CHECK_EQ_I64(stk_settled_from(v, 0), 0);
}

/* ---- what if ---------------------------------------------------------------------------------------------------- */

TEST(small_nets_are_bound_by_launches_large_ones_by_arithmetic)
{
    stk_error err;
    stk_work small = {.flops = 2e7,
                      .bytes = 3e6,
                      .input_bytes = 1e5,
                      .parameter_bytes = 4e5,
                      .activation_bytes = 1e6,
                      .kernels = 20,
                      .batch = 32,
                      .cpu_seconds = 6e-5};
    stk_work large = {.flops = 4e11,
                      .bytes = 3e9,
                      .input_bytes = 2e7,
                      .parameter_bytes = 1e8,
                      .activation_bytes = 2e9,
                      .kernels = 300,
                      .batch = 32,
                      .cpu_seconds = 3};
    stk_what_if x;
    CHECK_OK(stk_what_if_card("uhd620", &small, &x, &err));
    CHECK_STR(x.binding, "launch");
    CHECK_EQ_I64(x.verdict, -1);
    CHECK_OK(stk_what_if_card("a100", &large, &x, &err));
    CHECK_EQ_I64(x.verdict, 1);
    CHECK(x.low_seconds < x.high_seconds);
    CHECK(x.low_seconds > large.flops / 19.5e12); /* not faster than its peak */
    CHECK(x.break_even_low >= 1 && x.break_even_low <= x.break_even_high);
    CHECK(x.batch_limit > 0 && x.batch_limit < 32 * 40);
    CHECK_FAILS(stk_what_if_card("voodoo2", &small, &x, &err), STK_ERR_ARGUMENT, "rtx3080ti");
}

/* Expected values were worked out by a script of its own from the formula of doc/watch.md and the cards' numbers. */
TEST(the_formula_is_the_documented_one)
{
    static const struct {
        const char *card;
        double low, high;
        int64_t even_low, even_high, limit;
    } expected[] = {{"t4", 0.000834891846, 0.0020224474, 3, 6, 26027},
                    {"a100", 0.00032126636, 0.000937505307, 1, 4, 65089},
                    {"rtx3080ti", 0.000239643395, 0.000683281062, 1, 4, 19517},
                    {"uhd620", 0.0127026263, 0.0320081818, -1, -1, 13007}};
    stk_error err;
    stk_work w = {.flops = 2e9,
                  .bytes = 6e7,
                  .input_bytes = 4e6,
                  .parameter_bytes = 2e6,
                  .activation_bytes = 3e7,
                  .kernels = 40,
                  .syncs = 1,
                  .batch = 64,
                  .cpu_seconds = 5e-3,
                  .nparts = 3,
                  .part = {{1.9e9, 2e7, false}, {9e7, 3e7, false}, {1e7, 1e7, true}}};
    stk_what_if x;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        CHECK_OK(stk_what_if_card(expected[i].card, &w, &x, &err));
        CHECK_NEAR(x.low_seconds, expected[i].low, 1e-6 * expected[i].low);
        CHECK_NEAR(x.high_seconds, expected[i].high, 1e-6 * expected[i].high);
        CHECK_EQ_I64(x.break_even_low, expected[i].even_low);
        CHECK_EQ_I64(x.break_even_high, expected[i].even_high);
        CHECK_EQ_I64(x.batch_limit, expected[i].limit);
    }
    /* Measured here: four times the batch takes hardly longer, so that the card has to wait for larger ones. */
    CHECK_OK(stk_what_if_card("t4", &w, &x, &err));
    int64_t before = x.break_even_high;
    w.cpu_seconds = 1.5e-3;
    w.npoints = 3;
    w.point[0] = (stk_work_point){64, 1.5e-3};
    w.point[1] = (stk_work_point){128, 1.6e-3};
    w.point[2] = (stk_work_point){256, 1.8e-3};
    CHECK_OK(stk_what_if_card("t4", &w, &x, &err));
    CHECK(x.break_even_high == -1 && before > 0);
    w.npoints = 0; /* the same in proportion would win at once */
    w.cpu_seconds = 1.5e-3 * 4;
    CHECK_OK(stk_what_if_card("t4", &w, &x, &err));
    CHECK(x.break_even_high > 0 && x.break_even_high < 64);
    w.activation_bytes = 64e9; /* a GB per example */
    CHECK_OK(stk_what_if_card("t4", &w, &x, &err));
    CHECK(x.verdict == -1 && x.batch_limit < 64);
    char *text = NULL;
    CHECK_OK(stk_what_if_text(&w, 1, (const char *[]){"t4"}, &text, &err));
    CHECK_CONTAINS(text, "out of memory");
    CHECK_CONTAINS(text, "sources: t4: a");
    stk_text_free(text);
}

TEST(every_card_gives_a_sane_range)
{
    stk_error err;
    stk_work w = {.flops = 1e9,
                  .bytes = 1e7,
                  .input_bytes = 1e6,
                  .kernels = 50,
                  .batch = 64,
                  .cpu_seconds = 1e-2};
    for (int32_t i = 0; i < stk_card_count(); i++) {
        stk_what_if x;
        CHECK_OK(stk_what_if_card(stk_card_name(i), &w, &x, &err));
        CHECK_MSG(x.low_seconds > 0 && x.low_seconds <= x.high_seconds, "%s", x.card);
        w.cpu_seconds = 0.5 * (x.low_seconds + x.high_seconds); /* inside the range: nobody knows */
        stk_what_if again;
        CHECK_OK(stk_what_if_card(stk_card_name(i), &w, &again, &err));
        CHECK(again.verdict == 0 || x.low_seconds == x.high_seconds);
    }
    char *text = NULL;
    CHECK_OK(stk_what_if_text(&w, 0, NULL, &text, &err));
    CHECK_CONTAINS(text, "model, not measured");
    CHECK_CONTAINS(text, "A100");
    stk_text_free(text);
}

TEST(periods_are_found_and_not_invented)
{
    enum { N = 200 };
    double v[N], e[N];
    for (int period = 2; period <= 16; period *= 2) {
        noise(e, N, 0.1);
        for (int i = 0; i < N; i++) v[i] = (i % period == 1 ? 5 : 0.3) * exp(e[i]);
        CHECK_EQ_I64(stk_period_of(v, N), period);
    }
    int invented = 0;
    for (int run = 0; run < 200; run++) {
        noise(e, N, 0.5); /* single steps scatter widely, nothing repeats */
        for (int i = 0; i < N; i++) v[i] = exp(e[i]);
        invented += stk_period_of(v, N) != 1;
    }
    CHECK_MSG(invented <= 2, "%d of 200 rows without a period have one", invented);
    for (int i = 0; i < N; i++) v[i] = i < N / 2 ? 1 : 3; /* a change of level is no period */
    CHECK_EQ_I64(stk_period_of(v, N), 1);
    CHECK_EQ_I64(stk_period_of(v, 3), 1);
}

TEST_MAIN()
