/* Small steps on two threads (owners.c): that weights keep their owners, and that results have the same bits for any
 * number of threads. */
#include "check.h"

#include "graph/run/program.h"
#include "stoker/nn.h"

#include <string.h>

/* More steps than the first trial of threads (trial.c) has. */
enum {
    FEW = 10,
    MORE = 32,
    IN = 100,
    HIDDEN = 128,
    OUT = 10,
    STEPS = 100,
    WEIGHTS = 4,
    RESULTS = WEIGHTS + 2
};

static const char *const NAMES[WEIGHTS] = {"w1", "b1", "w2", "b2"};
static const int64_t SHAPES[WEIGHTS][2] = {{IN, HIDDEN}, {HIDDEN}, {HIDDEN, OUT}, {OUT}};
static const int32_t RANKS[WEIGHTS] = {2, 1, 2, 1};

/* An adaptive update; `mean`: of the running mean of the gradient instead of the gradient. */
static void update(stk_graph *g, stk_val w, stk_val d, const char *name, int32_t rank,
                   const int64_t *shape, bool mean)
{
    char slot[16];
    stk_val rate = stk_g_div(
        g, stk_g_scalar(g, STK_F32, 0.01),
        stk_g_add(g, stk_g_cast(g, stk_g_step(g), STK_F32), stk_g_scalar(g, STK_F32, 10)));
    snprintf(slot, sizeof slot, "v/%s", name);
    stk_val v = stk_g_variable(g, slot, STK_F32, rank, shape), numerator = d;
    stk_val v1 = stk_g_add(
        g, v, stk_g_mul(g, stk_g_sub(g, stk_g_square(g, d), v), stk_g_scalar(g, STK_F32, 0.01)));
    stk_g_assign(g, v, v1);
    if (mean) {
        snprintf(slot, sizeof slot, "m/%s", name);
        stk_val m = stk_g_variable(g, slot, STK_F32, rank, shape);
        numerator =
            stk_g_add(g, m, stk_g_mul(g, stk_g_sub(g, d, m), stk_g_scalar(g, STK_F32, 0.1)));
        stk_g_assign(g, m, numerator);
    }
    stk_val root = stk_g_add(g, stk_g_sqrt(g, v1), stk_g_scalar(g, STK_F32, 1e-7));
    stk_g_assign(g, w, stk_g_sub(g, w, stk_g_mul(g, rate, stk_g_div(g, numerator, root))));
}

static stk_graph *training_graph(int64_t batch, bool mean)
{
    stk_graph *g = NULL;
    stk_error err;
    stk_val w[WEIGHTS], d[WEIGHTS];
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val x = stk_g_input(g, "x", STK_F32, 2, (int64_t[]){batch, IN});
    stk_val y = stk_g_input(g, "y", STK_I32, 1, (int64_t[]){batch});
    for (int i = 0; i < WEIGHTS; i++)
        w[i] = stk_g_variable(g, NAMES[i], STK_F32, RANKS[i], SHAPES[i]);
    stk_val h = stk_g_relu(g, stk_g_add(g, stk_g_matmul(g, x, w[0]), w[1]));
    stk_val logits = stk_g_add(g, stk_g_matmul(g, h, w[2]), w[3]);
    stk_val loss = stk_g_mean_all(g, stk_g_sparse_softmax_cross_entropy(g, logits, y));
    stk_g_gradients(g, loss, WEIGHTS, w, d);
    for (int i = 0; i < WEIGHTS; i++) update(g, w[i], d[i], NAMES[i], RANKS[i], SHAPES[i], mean);
    stk_g_output(g, "loss", loss);
    /* of parts that are put together at the end, and something that needs it */
    stk_val variance;
    stk_g_moments(g, h, &variance);
    stk_g_output(g, "spread", stk_g_sqrt(g, variance));
    return g;
}

static float noise(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) * 0x1p-23f - 1.0f;
}

static void fill(stk_tensor *t, uint32_t seed, float scale)
{
    for (int64_t i = 0; i < stk_tensor_count(t); i++) ((float *)t->data)[i] = scale * noise(&seed);
}

static void feed(stk_program *p, int64_t batch, stk_tensor **x, stk_tensor **y)
{
    stk_error err;
    CHECK_OK(stk_tensor_new(STK_F32, 2, (int64_t[]){batch, IN}, x, &err));
    CHECK_OK(stk_tensor_new(STK_I32, 1, (int64_t[]){batch}, y, &err));
    fill(*x, 1, 1);
    for (int i = 0; i < batch; i++) ((int32_t *)(*y)->data)[i] = i * 7 % OUT;
    CHECK_OK(stk_program_feed(p, "x", *x, &err));
    CHECK_OK(stk_program_feed(p, "y", *y, &err));
}

typedef struct plan_facts {
    int shared, regions,
        summands; /* launches on two threads, their regions, products as summands */
} plan_facts;

/* The weights after some steps, and the last outputs. */
static void train(int64_t batch, bool mean, int32_t threads, bool no_fuse, stk_tensor **weights,
                  plan_facts *facts)
{
    stk_error err;
    stk_device *device = NULL;
    stk_program *p = NULL;
    stk_tensor *x = NULL, *y = NULL;
    stk_graph *g = training_graph(batch, mean);
    CHECK_OK(stk_device_open("default", threads, &device, &err));
    stk_program_options options = stk_program_options_defaults();
    options.device = device;
    options.deterministic = true;
    options.no_fuse = no_fuse;
    CHECK_OK(stk_program_new(g, &options, &p, &err));
    for (int i = 0; i < WEIGHTS; i++) {
        stk_tensor *w = NULL;
        CHECK_OK(stk_tensor_new(STK_F32, RANKS[i], SHAPES[i], &w, &err));
        fill(w, (uint32_t)i + 5, 0.1f);
        CHECK_OK(stk_store_set(stk_program_store(p), NAMES[i], w, &err));
        stk_tensor_release(w);
    }
    feed(p, batch, &x, &y);
    CHECK_OK(stk_program_run(p, STEPS, &err));
    *facts = (plan_facts){0};
    for (int64_t k = 0; k < p->plan.ntasks; k++) {
        stk_task_report about;
        p->device->vt->kernels.report(&p->plan, k, &about);
        facts->shared += about.threads > 1;
        facts->regions += about.threads > 1 && !about.follows;
        facts->summands += !strcmp(p->plan.tasks[k].label, "matmul_parts");
    }
    for (int i = 0; i < WEIGHTS; i++)
        CHECK_OK(stk_store_get(stk_program_store(p), NAMES[i], &weights[i], &err));
    CHECK_OK(stk_program_read(p, "loss", &weights[WEIGHTS], &err));
    CHECK_OK(stk_program_read(p, "spread", &weights[WEIGHTS + 1], &err));
    stk_tensor_release(x);
    stk_tensor_release(y);
    stk_program_release(p);
    stk_graph_release(g);
    stk_device_release(device);
}

static void release(stk_tensor **weights)
{
    for (int i = 0; i < RESULTS; i++) stk_tensor_release(weights[i]);
}

static bool same_bits(stk_tensor **a, stk_tensor **b)
{
    bool same = true;
    for (int i = 0; i < RESULTS; i++)
        same &= !memcmp(a[i]->data, b[i]->data, (size_t)stk_tensor_count(a[i]) * sizeof(float));
    return same;
}

/* x . w1 is made of summands (h . w2 is too small), and both gradients have updates: five launches in two regions. Sums and updates of
 * biases, the loss and the spread join the second one: seven more. With more rows those between product and gradient are shared as well:
 * seven launches in a region of their own. */
static void check_threads(int64_t batch, bool mean, int shared, int regions)
{
    stk_tensor *one[RESULTS], *more[RESULTS];
    plan_facts facts;
    train(batch, mean, 1, false, one, &facts);
    CHECK(facts.shared == 0 && facts.summands == 1);
    for (int32_t threads = 2; threads <= 16; threads *= threads) {
        train(batch, mean, threads, false, more, &facts);
        CHECK(facts.summands == 1);
        CHECK_MSG(facts.shared == shared && facts.regions == regions, "%d launches in %d regions",
                  facts.shared, facts.regions);
        CHECK(same_bits(one, more));
        release(more);
    }
    release(one);
}

TEST(any_number_of_threads_gives_the_same_bits)
{
    check_threads(FEW, true, 12, 2);
    check_threads(FEW, false, 12, 2);
    check_threads(MORE, true, 19, 3);
    check_threads(MORE + 1, true, 12, 2); /* rows that two owners cannot halve */
}

/* Without fusion the update is not contracted either: close, not equal. */
static void check_single(int64_t batch)
{
    stk_tensor *grouped[RESULTS], *single[RESULTS];
    plan_facts facts;
    train(batch, true, 2, false, grouped, &facts);
    train(batch, true, 2, true, single, &facts);
    CHECK(facts.summands == 0);
    for (int i = 0; i < WEIGHTS; i++)
        for (int64_t k = 0; k < stk_tensor_count(grouped[i]); k++)
            CHECK_NEAR(((float *)grouped[i]->data)[k], ((float *)single[i]->data)[k], 2e-3);
    release(grouped);
    release(single);
}

TEST(groups_agree_with_single_operations)
{
    check_single(FEW);
    check_single(MORE);
}

TEST_MAIN()
