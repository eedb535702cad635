/* Random ops in programs: distributions, which bits when, dropout and its gradient, and what the builders refuse. */
#include "check.h"

#include "stoker/nn.h"

enum { N = 200000 };

/* Runs a graph whose output is "y" for `runs` runs and gives the last value. */
static stk_tensor *run_graph(stk_graph *g, int32_t threads, int64_t runs)
{
    stk_error err = {0};
    stk_device *device = NULL;
    stk_program *p = NULL;
    stk_tensor *y = NULL;
    stk_program_options options = stk_program_options_defaults();
    CHECK_OK(stk_device_open("default", threads, &device, &err));
    options.device = device;
    if (CHECK_OK(stk_program_new(g, &options, &p, &err))) {
        CHECK_OK(stk_program_run(p, runs, &err));
        CHECK_OK(stk_program_read(p, "y", &y, &err));
    }
    stk_program_release(p);
    stk_device_release(device);
    return y;
}

typedef stk_val (*builder)(stk_graph *g);

static stk_tensor *run(builder build, int32_t threads, int64_t runs)
{
    stk_graph *g = NULL;
    stk_error err;
    if (!CHECK_OK(stk_graph_new(&g, &err))) return NULL;
    stk_g_output(g, "y", build(g));
    stk_tensor *y = run_graph(g, threads, runs);
    stk_graph_release(g);
    return y;
}

static const int64_t shape[] = {N / 100, 100};

static stk_val uniform(stk_graph *g)
{
    return stk_g_random_uniform(g, STK_F32, 2, shape, -1, 3, NULL);
}
static stk_val uniform_f64(stk_graph *g)
{
    return stk_g_random_uniform(g, STK_F64, 2, shape, -1, 3, NULL);
}
static stk_val uniform_f16(stk_graph *g)
{
    return stk_g_random_uniform(g, STK_F16, 2, shape, -1, 3, NULL);
}
static stk_val normal(stk_graph *g)
{
    return stk_g_random_normal(g, STK_F32, 2, shape, 2, 0.5, NULL);
}
static stk_val normal_f64(stk_graph *g)
{
    return stk_g_random_normal(g, STK_F64, 2, shape, 2, 0.5, NULL);
}
static stk_val truncated(stk_graph *g)
{
    return stk_g_random_truncated_normal(g, STK_F32, 2, shape, 1, 2, NULL);
}
static stk_val truncated_f64(stk_graph *g)
{
    return stk_g_random_truncated_normal(g, STK_F64, 2, shape, 1, 2, NULL);
}
static stk_val bernoulli(stk_graph *g)
{
    return stk_g_random_bernoulli(g, STK_BOOL, 2, shape, 0.3, NULL);
}
static stk_val bernoulli_i32(stk_graph *g)
{
    return stk_g_random_bernoulli(g, STK_I32, 2, shape, 0.3, NULL);
}
static stk_val dice(stk_graph *g) { return stk_g_random_int(g, STK_I32, 2, shape, 1, 7, NULL); }
static stk_val dice_u8(stk_graph *g) { return stk_g_random_int(g, STK_U8, 2, shape, 1, 7, NULL); }
static stk_val order(stk_graph *g) { return stk_g_random_permutation(g, 1000, NULL); }

/* ---- distributions: mean, deviation and bounds, with room for five standard errors ---------------------------- */

typedef struct want {
    builder build;
    stk_dtype dtype;
    double mean, deviation, low, high;
} want;

TEST(distributions)
{
    const double third = 4 / sqrt(12), bit = sqrt(0.3 * 0.7), die = sqrt(35.0 / 12),
                 cut = 2 * 0.8796256610342398;
    const want cases[] = {
        {uniform, STK_F32, 1, third, -1, 3},      {uniform_f64, STK_F64, 1, third, -1, 3},
        {uniform_f16, STK_F16, 1, third, -1, 3},  {normal, STK_F32, 2, 0.5, -1, 5},
        {normal_f64, STK_F64, 2, 0.5, -1, 5},     {truncated, STK_F32, 1, cut, -3, 5},
        {truncated_f64, STK_F64, 1, cut, -3, 5},  {bernoulli, STK_BOOL, 0.3, bit, 0, 1},
        {bernoulli_i32, STK_I32, 0.3, bit, 0, 1}, {dice, STK_I32, 3.5, die, 1, 6},
        {dice_u8, STK_U8, 3.5, die, 1, 6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const want *w = &cases[i];
        stk_tensor *y = run(w->build, 2, 1);
        REQUIRE(CHECK(y));
        CHECK_EQ_I64(y->dtype, w->dtype);
        double sum = 0, square = 0, low = 1e9, high = -1e9;
        for (int64_t k = 0; k < N; k++) {
            double v = stk_tensor_at(y, k);
            sum += v;
            square += (v - w->mean) * (v - w->mean);
            low = fmin(low, v);
            high = fmax(high, v);
        }
        CHECK_NEAR(sum / N, w->mean, 5 * w->deviation / sqrt(N));
        CHECK_NEAR(sqrt(square / N), w->deviation, 0.01 * w->deviation);
        CHECK_MSG(low >= w->low && high <= w->high, "case %zu: %g to %g", i, low, high);
        stk_tensor_release(y);
    }
}

/* Neighbours know nothing of each other, neither along a row nor from run to run. */
TEST(correlations)
{
    stk_tensor *a = run(uniform, 1, 1), *b = run(uniform, 1, 2);
    double along = 0, across = 0;
    for (int64_t k = 0; a && b && k + 1 < N; k++) {
        along += (stk_tensor_at(a, k) - 1) * (stk_tensor_at(a, k + 1) - 1);
        across += (stk_tensor_at(a, k) - 1) * (stk_tensor_at(b, k) - 1);
    }
    double variance = 16.0 / 12;
    CHECK_NEAR(along / N / variance, 0, 5 / sqrt(N));
    CHECK_NEAR(across / N / variance, 0, 5 / sqrt(N));
    stk_tensor_release(a);
    stk_tensor_release(b);
}

/* Every face of the die as often as the others: chi squared with 5 degrees of freedom. */
TEST(die_is_fair)
{
    int64_t seen[7] = {0};
    stk_tensor *y = run(dice, 2, 1);
    for (int64_t k = 0; y && k < N; k++) seen[(int)stk_tensor_at(y, k)]++;
    double chi = 0;
    for (int f = 1; f <= 6; f++) chi += pow((double)seen[f] - N / 6.0, 2) / (N / 6.0);
    CHECK_MSG(chi < 25, "chi squared is %g", chi);
    stk_tensor_release(y);
}

TEST(permutation_has_each_once)
{
    bool seen[1000] = {0};
    stk_tensor *y = run(order, 2, 1), *z = run(order, 2, 2);
    int64_t fixed = 0, same = 0;
    for (int64_t k = 0; y && z && k < 1000; k++) {
        int64_t v = (int64_t)stk_tensor_at(y, k);
        if (CHECK(v >= 0 && v < 1000 && !seen[v])) seen[v] = true;
        fixed += v == k;
        same += v == (int64_t)stk_tensor_at(z, k);
    }
    CHECK(fixed < 10 && same < 10);
    stk_tensor_release(y);
    stk_tensor_release(z);
}

/* ---- which bits when -------------------------------------------------------------------------------------------- */

static bool equal(const stk_tensor *a, const stk_tensor *b)
{
    return a && b && stk_tensor_bytes(a) == stk_tensor_bytes(b) &&
           !memcmp(a->data, b->data, (size_t)stk_tensor_bytes(a));
}

TEST(same_bits_on_any_number_of_threads)
{
    static const builder all[] = {uniform, uniform_f64, normal, truncated, bernoulli, dice, order};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        stk_tensor *one = run(all[i], 1, 1), *two = run(all[i], 2, 1), *four = run(all[i], 4, 1);
        stk_tensor *later = run(all[i], 1, 2);
        CHECK(equal(one, two) && equal(one, four));
        CHECK(!equal(one, later)); /* the next run has other numbers */
        stk_tensor_release(one);
        stk_tensor_release(two);
        stk_tensor_release(four);
        stk_tensor_release(later);
    }
}

/* Two draws of one graph: different by default, equal when stream, seed and counter are. */
static stk_val difference(stk_graph *g, const stk_random_options *a, const stk_random_options *b)
{
    const int64_t few[] = {50};
    return stk_g_sub(g, stk_g_random_uniform(g, STK_F32, 1, few, 0, 1, a),
                     stk_g_random_uniform(g, STK_F32, 1, few, 0, 1, b));
}
static stk_val default_pair(stk_graph *g) { return difference(g, NULL, NULL); }
static stk_val equal_pair(stk_graph *g)
{
    stk_random_options o = {.seed = 4, .stream = 9};
    return difference(g, &o, &o);
}
static stk_val seeds(stk_graph *g)
{
    return difference(g, &(stk_random_options){.seed = 4, .stream = 9},
                      &(stk_random_options){.seed = 5, .stream = 9});
}
static stk_val counters(stk_graph *g)
{
    stk_random_options a = {.stream = 9, .counter = stk_g_scalar(g, STK_I64, 1)}, b = a;
    b.counter = stk_g_scalar(g, STK_I64, 2);
    return difference(g, &a, &b);
}

TEST(streams_seeds_and_counters)
{
    static const struct {
        builder build;
        bool same;
    } cases[] = {{default_pair, false}, {equal_pair, true}, {seeds, false}, {counters, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_tensor *y = run(cases[i].build, 1, 1);
        int64_t zeros = 0;
        for (int64_t k = 0; y && k < 50; k++) zeros += stk_tensor_at(y, k) == 0;
        CHECK_MSG(cases[i].same ? zeros == 50 : zeros < 5, "case %zu: %" PRId64 " equal", i, zeros);
        stk_tensor_release(y);
    }
}

/* ---- dropout ------------------------------------------------------------------------------------------------------ */

/* y and dy/dx side by side: for x = 1 both are the mask, scaled. */
static stk_val with_gradient(stk_graph *g, stk_val x, stk_val y)
{
    stk_val d = 0;
    stk_g_gradients(g, y, 1, &x, &d);
    return stk_g_stack(g, 2, (stk_val[]){y, d}, 0);
}
static stk_val ones(stk_graph *g) { return stk_g_fill(g, STK_F32, 2, shape, 1); }
static stk_val dropout(stk_graph *g)
{
    stk_val x = ones(g);
    return with_gradient(g, x, stk_g_dropout(g, x, 0.25, NULL, NULL));
}
static stk_val dropout_rows(stk_graph *g)
{
    stk_val x = ones(g);
    return with_gradient(g, x, stk_g_dropout(g, x, 0.25, (int64_t[]){N / 100, 1}, NULL));
}
static stk_val dropout_none(stk_graph *g) { return stk_g_dropout(g, ones(g), 0, NULL, NULL); }
static stk_val dropout_all(stk_graph *g) { return stk_g_dropout(g, ones(g), 1, NULL, NULL); }

TEST(dropout_scales_and_follows_its_mask_back)
{
    stk_tensor *y = run(dropout, 2, 3), *rows = run(dropout_rows, 2, 3);
    int64_t kept = 0, whole = 0;
    REQUIRE(CHECK(y && rows));
    for (int64_t k = 0; k < N; k++) {
        double v = stk_tensor_at(y, k);
        CHECK(v == 0 || fabs(v - 4.0 / 3) < 1e-6);
        CHECK(v == stk_tensor_at(y, N + k)); /* the gradient has the same mask */
        kept += v != 0;
        CHECK(stk_tensor_at(rows, k) == stk_tensor_at(rows, k / 100 * 100)); /* whole rows */
        whole += stk_tensor_at(rows, k) != 0;
    }
    CHECK_NEAR((double)kept / N, 0.75, 5 * sqrt(0.75 * 0.25 / N));
    CHECK_NEAR((double)whole / N, 0.75, 5 * sqrt(0.75 * 0.25 / (N / 100.0)));
    stk_tensor_release(y);
    stk_tensor_release(rows);
    y = run(dropout_none, 1, 1);
    rows = run(dropout_all, 1, 1);
    for (int64_t k = 0; y && rows && k < 100; k++) {
        CHECK_NEAR(stk_tensor_at(y, k), 1, 0);
        CHECK_NEAR(stk_tensor_at(rows, k), 0, 0);
    }
    stk_tensor_release(y);
    stk_tensor_release(rows);
}

static stk_val alpha(stk_graph *g)
{
    return stk_g_alpha_dropout(g, stk_g_random_normal(g, STK_F32, 2, shape, 0, 1, NULL), 0.2, NULL,
                               NULL);
}
static stk_val noise(stk_graph *g) { return stk_g_gaussian_noise(g, ones(g), 0.5, NULL); }
static stk_val gauss(stk_graph *g) { return stk_g_gaussian_dropout(g, ones(g), 0.2, NULL); }

TEST(noise_keeps_mean_and_deviation)
{
    static const struct {
        builder build;
        double mean, deviation;
    } cases[] = {{alpha, 0, 1}, {noise, 1, 0.5}, {gauss, 1, 0.5}};
    for (size_t i = 0; i < 3; i++) {
        stk_tensor *y = run(cases[i].build, 2, 1);
        double sum = 0, square = 0;
        for (int64_t k = 0; y && k < N; k++) {
            double v = stk_tensor_at(y, k);
            sum += v;
            square += (v - cases[i].mean) * (v - cases[i].mean);
        }
        CHECK_NEAR(sum / N, cases[i].mean, 0.01);
        CHECK_NEAR(sqrt(square / N), cases[i].deviation, 0.02);
        stk_tensor_release(y);
    }
}

/* ---- what is refused -------------------------------------------------------------------------------------------------- */

#define REFUSED(code, text, ...)                                                                   \
    do {                                                                                           \
        stk_graph *g = NULL;                                                                       \
        stk_error err = {0};                                                                       \
        CHECK_OK(stk_graph_new(&g, &err));                                                         \
        stk_val x = stk_g_input(g, "x", STK_F32, 2, (int64_t[]){2, 3});                            \
        stk_val i = stk_g_input(g, "i", STK_I32, 1, (int64_t[]){2});                               \
        (void)x, (void)i;                                                                          \
        CHECK((__VA_ARGS__) == 0);                                                                 \
        CHECK_FAILS(stk_graph_status(g, &err), code, text);                                        \
        stk_graph_release(g);                                                                      \
    } while (0)

TEST(bad_input)
{
    const int64_t s[] = {2, 3}, negative[] = {2, -3}, huge[] = {INT64_MAX, 2};
    stk_random_options o = {0};
    REFUSED(STK_ERR_RANGE, "low 2, high 1", stk_g_random_uniform(g, STK_F32, 2, s, 2, 1, NULL));
    REFUSED(STK_ERR_RANGE, "low", stk_g_random_uniform(g, STK_F32, 2, s, 0, NAN, NULL));
    REFUSED(STK_ERR_RANGE, "deviation -1", stk_g_random_normal(g, STK_F32, 2, s, 0, -1, NULL));
    REFUSED(STK_ERR_RANGE, "deviation inf",
            stk_g_random_truncated_normal(g, STK_F32, 2, s, 0, INFINITY, NULL));
    REFUSED(STK_ERR_RANGE, "probability 1.5", stk_g_random_bernoulli(g, STK_BOOL, 2, s, 1.5, NULL));
    REFUSED(STK_ERR_RANGE, "low 5 is not below high 5",
            stk_g_random_int(g, STK_I32, 2, s, 5, 5, NULL));
    REFUSED(STK_ERR_RANGE, "use int64",
            stk_g_random_int(g, STK_I32, 2, s, 0, (int64_t)1 << 40, NULL));
    REFUSED(STK_ERR_DTYPE, "use random_int", stk_g_random_uniform(g, STK_I32, 2, s, 0, 1, NULL));
    REFUSED(STK_ERR_SHAPE, "rank 9", stk_g_random_uniform(g, STK_F32, 9, s, 0, 1, NULL));
    REFUSED(STK_ERR_SHAPE, "random_uniform", stk_g_random_uniform(g, STK_F32, 2, NULL, 0, 1, NULL));
    REFUSED(STK_ERR_SHAPE, "random_normal",
            stk_g_random_normal(g, STK_F32, 2, negative, 0, 1, NULL));
    REFUSED(STK_ERR_RANGE, "random_normal", stk_g_random_normal(g, STK_F32, 2, huge, 0, 1, NULL));
    REFUSED(STK_ERR_RANGE, "length", stk_g_random_permutation(g, -1, NULL));
    REFUSED(STK_ERR_DTYPE, "int64 scalar",
            (o.counter = x, stk_g_random_uniform(g, STK_F32, 2, s, 0, 1, &o)));
    REFUSED(STK_ERR_RANGE, "rate 1.5", stk_g_dropout(g, x, 1.5, NULL, NULL));
    REFUSED(STK_ERR_DTYPE, "dropout(int32[2])", stk_g_dropout(g, i, 0.5, NULL, NULL));
    REFUSED(STK_ERR_SHAPE, "1 or 3", stk_g_dropout(g, x, 0.5, (int64_t[]){2, 2}, NULL));
    REFUSED(STK_ERR_RANGE, "gaussian_dropout", stk_g_gaussian_dropout(g, x, 1, NULL));
    REFUSED(STK_ERR_ARGUMENT, "dropout", stk_g_dropout(g, 99, 0.5, NULL, NULL));
}

/* Straight through the general door, where nothing has been settled by a builder. */
TEST(bad_attributes)
{
    REFUSED(STK_ERR_ARGUMENT, "random_uniform",
            (x = stk_g_step(g), stk_g_apply(g, STK_OP_RANDOM_UNIFORM, 1, &x, NULL)));
    REFUSED(STK_ERR_DTYPE, "random_uniform",
            (x = stk_g_step(g), stk_g_apply(g, STK_OP_RANDOM_UNIFORM, 1, &x,
                                            &(stk_attrs){.ints = (int64_t[]){0, 0, 99, 0, 0, 4},
                                                         .nints = 6,
                                                         .reals = (double[]){0, 1},
                                                         .nreals = 2})));
    REFUSED(STK_ERR_RANGE, "random_permutation",
            (x = stk_g_step(g), stk_g_apply(g, STK_OP_RANDOM_PERMUTATION, 1, &x, NULL)));
}

TEST_MAIN()
