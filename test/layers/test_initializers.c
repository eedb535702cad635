/* Initialisers draw what their names say; constraints and regularisers compute what theirs say. */
#include "check.h"
#include "stoker/layers.h"

#define L(...) ((int64_t[]){__VA_ARGS__})
enum { IN = 60, OUT = 40 };

/* The kernel of Dense(OUT) on IN features, filled by an initialiser. */
static stk_tensor *kernel(const char *initializer, int64_t seed)
{
    stk_error err = {0};
    stk_model *m = NULL;
    stk_store *store = NULL;
    stk_tensor *t = NULL;
    char layer[200];
    snprintf(layer, sizeof layer, "Dense(%d, kernel_initializer=%s)", OUT, initializer);
    CHECK_OK(stk_model_new(NULL, &m, &err));
    stk_model_add(m, "Input((60,))");
    stk_model_add(m, layer);
    CHECK_OK(stk_model_build(m, 0, NULL, &err));
    CHECK_OK(stk_store_new(NULL, &store, &err));
    CHECK_OK(stk_model_init(m, store, seed, &err));
    CHECK_OK(stk_store_get(store, "dense/kernel", &t, &err));
    stk_store_release(store);
    stk_model_release(m);
    return t;
}

static const struct expectation {
    const char *initializer;
    double mean, deviation, largest; /* largest: no |number| above it; 0 = any */
} expectations[] = {
    {"zeros", 0, 0, 0},
    {"ones", 1, 0, 1},
    {"Constant(0.25)", 0.25, 0, 0.25},
    {"random_uniform(-2, 4)", 1, 1.7320508, 4},
    {"random_normal(1, 2)", 1, 2, 0},
    {"truncated_normal(stddev=0.5)", 0, 0.5 * 0.8796256, 1},
    {"glorot_uniform", 0, 0.14142136, 0.24494898},                /* sqrt(2 / 100), sqrt(6 / 100) */
    {"glorot_normal", 0, 0.14142136, 2 * 0.14142136 / 0.8796256}, /* cut at two deviations */
    {"he_uniform", 0, 0.18257419, 0.31622777},
    {"he_normal", 0, 0.18257419, 2 * 0.18257419 / 0.8796256},
    {"lecun_uniform", 0, 0.12909944, 0.2236068},
    {"lecun_normal", 0, 0.12909944, 2 * 0.12909944 / 0.8796256},
    {"VarianceScaling(scale=4, mode=fan_out, distribution=untruncated_normal)", 0, 0.31622777, 0},
    {"VarianceScaling(input_axes=(1,), output_axes=(0,), distribution=uniform)", 0, 0.15811388,
     0.27386128},
};

TEST(moments_are_those_of_the_distribution)
{
    for (size_t i = 0; i < sizeof expectations / sizeof *expectations; i++) {
        const struct expectation *e = &expectations[i];
        stk_tensor *t = kernel(e->initializer, 5);
        REQUIRE(t);
        int64_t n = stk_tensor_count(t);
        double sum = 0, squares = 0, largest = 0;
        for (int64_t k = 0; k < n; k++) {
            double v = stk_tensor_at(t, k);
            sum += v;
            squares += v * v;
            if (fabs(v) > largest) largest = fabs(v);
        }
        double mean = sum / (double)n, deviation = sqrt(fmax(squares / (double)n - mean * mean, 0));
        /* 2400 numbers: the mean is within 5 of its standard errors, the deviation within 8 %. */
        CHECK_MSG(fabs(mean - e->mean) <= 5 * e->deviation / sqrt((double)n) + 1e-6, "%s: mean %g",
                  e->initializer, mean);
        CHECK_MSG(fabs(deviation - e->deviation) <= 0.08 * e->deviation + 1e-6, "%s: deviation %g",
                  e->initializer, deviation);
        CHECK_MSG(!e->largest || largest <= e->largest * 1.00001, "%s: largest %g", e->initializer,
                  largest);
        stk_tensor_release(t);
    }
}

TEST(columns_of_orthogonal_are_orthonormal)
{
    stk_tensor *t = kernel("orthogonal(gain=2)", 5), *eye = kernel("identity", 5);
    REQUIRE(t && eye);
    for (int32_t a = 0; a < OUT; a += 7)
        for (int32_t b = 0; b < OUT; b += 3) {
            double dot = 0;
            for (int32_t i = 0; i < IN; i++)
                dot += stk_tensor_at(t, i * OUT + a) * stk_tensor_at(t, i * OUT + b);
            CHECK_NEAR(dot, a == b ? 4 : 0, 1e-5);
        }
    CHECK_NEAR(stk_tensor_at(eye, 3 * OUT + 3), 1, 0);
    CHECK_NEAR(stk_tensor_at(eye, 3 * OUT + 4), 0, 0);
    stk_tensor_release(t);
    stk_tensor_release(eye);
}

static bool same(const stk_tensor *a, const stk_tensor *b)
{
    return a && b && !memcmp(a->data, b->data, (size_t)stk_tensor_bytes(a));
}

TEST(a_seed_is_a_promise)
{
    stk_tensor *a = kernel("glorot_uniform", 5), *b = kernel("glorot_uniform", 5);
    stk_tensor *c = kernel("glorot_uniform", 6), *d = kernel("glorot_uniform(seed=3)", 5);
    stk_tensor *e = kernel("glorot_uniform(seed=3)", 6);
    CHECK(same(a, b));
    CHECK(!same(a, c));
    CHECK(same(d, e));
    CHECK(!same(a, d));
    stk_tensor_release(a), stk_tensor_release(b), stk_tensor_release(c), stk_tensor_release(d);
    stk_tensor_release(e);
}

/* ---- constraints and penalties ----------------------------------------------------------------------------------------- */

static void check_constraint(const char *constraint, const float in[4], const float want[4])
{
    stk_error err = {0};
    stk_model *m = NULL;
    stk_graph *g = NULL;
    stk_program *p = NULL;
    stk_tensor *x = NULL, *y = NULL;
    char layer[200];
    snprintf(layer, sizeof layer, "Dense(2, kernel_constraint=%s)", constraint);
    CHECK_OK(stk_model_new(NULL, &m, &err));
    stk_model_add(m, "Input((2,))");
    stk_model_add(m, layer);
    CHECK_OK(stk_model_build(m, 0, NULL, &err));
    stk_weight w = stk_model_weight(m, 0);
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val v = stk_g_input(g, "w", STK_F32, 2, L(2, 2));
    stk_g_output(g, "y", stk_weight_constrain(&w, g, v));
    CHECK_OK(stk_program_new(g, NULL, &p, &err));
    CHECK_OK(stk_tensor_from(STK_F32, 2, L(2, 2), in, &x, &err));
    CHECK_OK(stk_program_feed(p, "w", x, &err));
    CHECK_OK(stk_program_run(p, 1, &err));
    CHECK_OK(stk_program_read(p, "y", &y, &err));
    for (int32_t i = 0; i < 4; i++) CHECK_NEAR(stk_tensor_at(y, i), want[i], 1e-5);
    stk_tensor_release(x), stk_tensor_release(y);
    stk_program_release(p);
    stk_graph_release(g);
    stk_model_release(m);
}

TEST(constraints_act_on_columns)
{
    const float w[4] = {3, -0.3f, 4, 0.4f}; /* columns of length 5 and 0.5 */
    check_constraint("max_norm(1)", w, (float[]){0.6f, -0.3f, 0.8f, 0.4f});
    check_constraint("max_norm(1, axis=1)", w,
                     (float[]){0.995037f, -0.0995037f, 0.995037f, 0.0995037f});
    check_constraint("non_neg", w, (float[]){3, 0, 4, 0.4f});
    check_constraint("unit_norm", w, (float[]){0.6f, -0.6f, 0.8f, 0.8f});
    check_constraint("min_max_norm(1, 2, rate=0.5)", w, (float[]){2.1f, -0.45f, 2.8f, 0.6f});
}

TEST(frozen_weights_are_not_penalised)
{
    stk_error err = {0};
    stk_model *m = NULL;
    CHECK_OK(stk_model_new(NULL, &m, &err));
    stk_model_add(m, "Input((2,))");
    stk_model_add(m, "Dense(2, kernel_regularizer=l1_l2(0.1, 0.2))");
    CHECK_OK(stk_model_build(m, 0, NULL, &err));
    for (int frozen = 0; frozen < 2; frozen++) {
        stk_graph *g = NULL;
        CHECK_OK(stk_graph_new(&g, &err));
        stk_val x = stk_g_input(g, "x", STK_F32, 2, L(1, 2)), y;
        stk_call call = {.training = true};
        stk_model_call(m, g, &x, &call, &y);
        CHECK_OK(stk_graph_status(g, &err));
        CHECK_EQ_I64(call.penalty != 0, !frozen);
        stk_graph_release(g);
        CHECK_OK(stk_model_set_trainable(m, NULL, false, &err));
    }
    stk_model_release(m);
}

TEST_MAIN()
