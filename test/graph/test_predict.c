/* What a program should take, from numbers that are given: no clock is read. */
#include "check.h"

#include "graph/run/predict.h"
#include "stoker/calibrate.h"
#include "stoker/nn.h"

#include <math.h>
#include <stdlib.h>

static const double US = 1e-6;

/* A launch 5 us, a run 3 us more; products 1 us per 1000 operations from 1000 on, walks 1 us per 1000 bytes. */
static stk_calibration made_up(void)
{
    stk_calibration c = {.launch = 5 * US,
                         .run = 8 * US,
                         .feed = 2 * US,
                         .up = 1e9,
                         .down = 2e9,
                         .up_pinned = 1e9,
                         .flops = 1e9,
                         .bytes = 1e12};
    for (int k = 0; k < STK_PACES; k++)
        for (int i = 0; i < STK_PACE_POINTS; i++) {
            c.pace[k].work[i] = 1e4 * (double)(1 << 4 * i);
            c.pace[k].seconds[i] = 1e-9 * c.pace[k].work[i];
        }
    c.crossing = (stk_pace){{1e3, 1e5, 1e6}, {100 * US, 200 * US, 2000 * US}};
    return c;
}

TEST(seconds_lie_between_the_points_that_were_measured)
{
    stk_calibration c = made_up();
    stk_pace *p = &c.pace[STK_PACE_SUM];
    for (int i = 0; i < STK_PACE_POINTS; i++)
        CHECK_NEAR(stk_pace_seconds(&c, STK_PACE_SUM, p->work[i]), p->seconds[i], 1e-12);
    CHECK_NEAR(stk_pace_seconds(&c, STK_PACE_SUM, 0), 5 * US, 1e-12);
    CHECK_NEAR(stk_pace_seconds(&c, STK_PACE_SUM, 5e3), 7.5 * US,
               1e-12); /* half of what a launch leaves */
    CHECK_NEAR(stk_pace_seconds(&c, STK_PACE_SUM, 4e4), 40 * US, 1e-12);
    CHECK_NEAR(stk_pace_seconds(&c, STK_PACE_SUM, 1e9), 1,
               1e-9);              /* in proportion behind the last */
    p->seconds[1] = p->seconds[0]; /* twice the rate at the second point: halfway, the same time */
    CHECK_NEAR(stk_pace_seconds(&c, STK_PACE_SUM, 4e4), 10 * US, 1e-12);
    c.pace[STK_PACE_SUM] = (stk_pace){0}; /* nothing known but that it is a launch */
    CHECK_NEAR(stk_pace_seconds(&c, STK_PACE_SUM, 1e9), 5 * US, 1e-12);
}

static stk_program *compiled(const char *device, void (*build)(stk_graph *))
{
    stk_graph *g = NULL;
    stk_device *d = NULL;
    stk_program *p = NULL;
    stk_error err;
    CHECK_OK(stk_graph_new(&g, &err));
    CHECK_OK(stk_device_open(device, 0, &d, &err));
    build(g);
    CHECK_OK(stk_program_new(g, &(stk_program_options){.device = d}, &p, &err));
    stk_graph_release(g);
    stk_device_release(d);
    return p;
}

static void two_products(stk_graph *g)
{
    stk_val x = stk_g_input(g, "x", STK_F32, 2, (int64_t[]){100, 100});
    stk_val w = stk_g_variable(g, "w", STK_F32, 2, (int64_t[]){100, 100});
    stk_g_output(g, "y", stk_g_matmul(g, stk_g_matmul(g, x, w), w));
}

TEST(a_run_is_its_kernels_its_inputs_and_its_own_cost)
{
    stk_calibration c = made_up();
    stk_program *p = compiled("cpu:0", two_products);
    REQUIRE(p);
    double products = 2 * 2e6 * 1e-9;
    CHECK_NEAR(stk_program_predict(p, &c, NULL), 3 * US + 2 * US + products, 1e-9);
    c.feed = c.run = 50 * US; /* a queue with slow marks */
    CHECK_NEAR(stk_program_predict(p, &c, NULL), 45 * US + 50 * US + products, 1e-9);
    c.up_pinned = 1e5; /* 40 000 bytes: 0.4 s of travelling hide the rest */
    CHECK_NEAR(stk_program_predict(p, &c, NULL), 0.4, 1e-9);
    c.up_pinned = 1e9;
    c.bytes = 1e6; /* memory so slow that the products wait for their 120 000 bytes */
    CHECK_NEAR(stk_program_predict(p, &c, NULL), 95 * US + 2 * 0.12, 1e-9);
    stk_program_release(p);
}

/* apart:0 lacks erf. */
static void with_an_island(stk_graph *g)
{
    stk_val x = stk_g_input(g, "x", STK_F32, 2, (int64_t[]){100, 100});
    stk_val w = stk_g_variable(g, "w", STK_F32, 2, (int64_t[]){100, 100});
    stk_g_output(g, "y", stk_g_matmul(g, stk_g_erf(g, stk_g_matmul(g, x, w)), w));
}

TEST(an_island_costs_its_crossing_its_bytes_and_the_processors_time)
{
    setenv("STOKER_APART", "1", 1);
    stk_calibration c = made_up(), host = made_up();
    stk_island row;
    stk_program *p = compiled("apart:0", with_an_island);
    REQUIRE(p);
    REQUIRE(CHECK_EQ_I64(stk_program_islands(p, 1, &row), 1));
    /* 80 000 bytes down and up: between the first point and the second */
    double crossing = 100 * US * pow(2, log(80.0) / log(100.0));
    CHECK_NEAR(stk_island_predict(&row, true, &c), crossing, 1e-12);
    CHECK_NEAR(stk_island_predict(&row, false, &c), crossing - 100 * US, 1e-12);
    stk_island empty = {.op = "host"};
    CHECK_NEAR(stk_island_predict(&empty, true, &c), 100 * US, 1e-12);
    CHECK_NEAR(stk_island_predict(&empty, false, &c), 0, 1e-12);
    double without = 3 * US + 2 * US + 2 * 2e6 * 1e-9 + crossing;
    CHECK_NEAR(stk_program_predict(p, &c, NULL), without, 1e-9);
    double body = 80000 * 1e-9 -
                  host.launch; /* a walk over both arrays; one launch is part of the crossing */
    CHECK_NEAR(stk_program_predict(p, &c, &host), without + body, 1e-9);
    CHECK_NEAR(stk_program_predict_islands(p, &c, NULL), crossing, 1e-12);
    CHECK_NEAR(stk_program_predict_islands(p, &c, &host), crossing + body, 1e-12);
    stk_program_release(p);
}

static void a_small_product(stk_graph *g)
{
    stk_val x = stk_g_input(g, "x", STK_F32, 2, (int64_t[]){10, 10});
    stk_val w = stk_g_variable(g, "w", STK_F32, 2, (int64_t[]){10, 10});
    stk_g_output(g, "y", stk_g_matmul(g, x, w));
}

/* A device with slow launches and fast products loses the small run and wins the large one. */
TEST(who_is_faster_hangs_on_the_work)
{
    stk_calibration near = made_up(), far = made_up();
    far.launch = far.run = 500 * US;
    for (int i = 0; i < STK_PACE_POINTS; i++) {
        stk_pace *p = &far.pace[STK_PACE_PRODUCT];
        p->seconds[i] = far.launch + p->work[i] * 1e-11;
    }
    stk_program *small = compiled("cpu:0", a_small_product),
                *large = compiled("cpu:0", two_products);
    REQUIRE(small && large);
    CHECK(stk_program_predict(small, &near, NULL) < stk_program_predict(small, &far, NULL));
    CHECK(stk_program_predict(large, &near, NULL) > stk_program_predict(large, &far, NULL));
    stk_program_release(small);
    stk_program_release(large);
}

static void convolve(stk_graph *g, int64_t channels)
{
    stk_conv_options o = stk_conv_options_defaults();
    stk_val x = stk_g_input(g, "x", STK_F32, 4, (int64_t[]){1, 20, 20, channels});
    stk_val w = stk_g_variable(g, "w", STK_F32, 4, (int64_t[]){3, 3, channels, 16});
    stk_g_output(g, "y", stk_g_conv(g, x, w, &o));
}
static void of_pictures(stk_graph *g) { convolve(g, 3); }
static void of_features(stk_graph *g) { convolve(g, 16); }

static void of_rows(stk_graph *g)
{
    stk_val x = stk_g_variable(g, "x", STK_F32, 2, (int64_t[]){5000, 8});
    stk_val i = stk_g_variable(g, "i", STK_I32, 1, (int64_t[]){1000});
    stk_g_output(g, "y", stk_g_gather(g, x, i, 0));
}

TEST(few_channels_and_picked_rows_have_paces_of_their_own)
{
    stk_calibration c = made_up();
    double before, flops = 18 * 18 * 16 * 9 * 2;
    stk_program *thin = compiled("cpu:0", of_pictures), *thick = compiled("cpu:0", of_features),
                *rows = compiled("cpu:0", of_rows);
    REQUIRE(thin && thick && rows);
    before = stk_program_predict(thick, &c, NULL);
    for (int i = 0; i < STK_PACE_POINTS; i++) c.pace[STK_PACE_CONV_THIN].seconds[i] *= 5;
    CHECK_NEAR(stk_program_predict(thick, &c, NULL), before, 1e-12);
    CHECK_NEAR(stk_program_predict(thin, &c, NULL), 5 * US + 5 * 3 * flops * 1e-9, 1e-9);
    /* eight thousand numbers, whatever they are picked from */
    CHECK_NEAR(stk_program_predict(rows, &c, NULL), 3 * US + (5 + 0.8 * 5) * US, 1e-9);
    stk_program_release(thin);
    stk_program_release(thick);
    stk_program_release(rows);
}

/* Whatever they are used for: no index lies outside, and nothing is zero all over. */
TEST(variables_are_filled_with_numbers)
{
    stk_error err;
    stk_tensor *t = NULL;
    stk_program *p = compiled("cpu:0", of_rows);
    REQUIRE(p);
    CHECK_OK(stk_fill_variables(p, &err));
    CHECK_OK(stk_program_run(p, 1, &err)); /* an index outside would end it */
    CHECK_OK(stk_program_fetch(p, 0, &t, &err));
    double sum = 0;
    for (int64_t i = 0; t && i < stk_tensor_count(t); i++) sum += ((float *)t->data)[i];
    CHECK(sum > 3000 && sum < 5000); /* of 8000 between 0 and 1 */
    stk_tensor_release(t);
    stk_program_release(p);
}

TEST_MAIN()
