/* Whole training steps: what fusing, grouping, election and threads make of a graph must be the same training as one
 * reference launch per node. Small nets of every shape that the planner treats differently. */
#include "check.h"

#include "stoker/graph.h"
#include "stoker/nn.h"

typedef struct net {
    const char *name;
    int64_t batch, in, hidden, out;
    int cnn;
} net;

static uint64_t seed;
static double uniform(void)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(seed >> 11) * 0x1p-53;
}

static stk_tensor *random_tensor(stk_dtype dtype, int32_t rank, const int64_t *shape, double lo,
                                 double hi)
{
    stk_tensor *t = NULL;
    stk_error err;
    CHECK_OK(stk_tensor_new(dtype, rank, shape, &t, &err));
    for (int64_t i = 0; i < stk_tensor_count(t); i++)
        CHECK_OK(stk_tensor_set(t, i, lo + (hi - lo) * uniform(), &err));
    return t;
}

enum { PARAMETERS = 6 };
typedef struct model {
    stk_graph *g;
    stk_val p[PARAMETERS];
    int n;
} model;

static stk_val parameter(model *m, int32_t rank, const int64_t *shape)
{
    char name[8];
    snprintf(name, sizeof name, "p%d", m->n);
    return m->p[m->n++] = stk_g_variable(m->g, name, STK_F32, rank, shape);
}

static stk_val dense(model *m, stk_val x, int64_t out)
{
    stk_val w = parameter(m, 2, (int64_t[]){stk_g_dim(m->g, x, 1), out});
    return stk_g_add(m->g, stk_g_matmul(m->g, x, w), parameter(m, 1, &out));
}

/* SGD with momentum for odd parameters, Adam-like for even ones, so that updates join only in part. */
static void update(model *m, stk_val loss)
{
    stk_graph *g = m->g;
    stk_val d[PARAMETERS];
    char name[8];
    stk_g_gradients(g, loss, m->n, m->p, d);
    for (int i = 0; i < m->n; i++) {
        int64_t shape[STK_MAX_RANK];
        int32_t rank = stk_g_rank(g, m->p[i]);
        for (int32_t k = 0; k < rank; k++) shape[k] = stk_g_dim(g, m->p[i], k);
        snprintf(name, sizeof name, "m%d", i);
        stk_val v = stk_g_variable(g, name, STK_F32, rank, shape);
        stk_val moved =
            stk_g_add(g, v, stk_g_mul(g, stk_g_sub(g, d[i], v), stk_g_scalar(g, STK_F32, 0.1)));
        stk_val step = moved;
        if (i % 2 == 0) {
            snprintf(name, sizeof name, "v%d", i);
            stk_val s = stk_g_variable(g, name, STK_F32, rank, shape);
            stk_val square = stk_g_add(g, s,
                                       stk_g_mul(g, stk_g_sub(g, stk_g_square(g, d[i]), s),
                                                 stk_g_scalar(g, STK_F32, 0.01)));
            step = stk_g_div(g, moved,
                             stk_g_add(g, stk_g_sqrt(g, square), stk_g_scalar(g, STK_F32, 1e-3)));
            stk_g_assign(g, s, square);
        }
        stk_g_assign(g, v, moved);
        stk_g_assign(g, m->p[i],
                     stk_g_sub(g, m->p[i], stk_g_mul(g, step, stk_g_scalar(g, STK_F32, 0.01))));
    }
}

static model build(const net *n)
{
    model m = {0};
    stk_error err;
    CHECK_OK(stk_graph_new(&m.g, &err));
    stk_val x, y = stk_g_input(m.g, "y", STK_I32, 1, &n->batch);
    if (n->cnn) {
        x = stk_g_input(m.g, "x", STK_F32, 4, (int64_t[]){n->batch, n->in, n->in, 3});
        stk_val w = parameter(&m, 4, (int64_t[]){3, 3, 3, n->hidden}),
                b = parameter(&m, 1, &n->hidden);
        x = stk_g_max_pool(m.g, stk_g_relu(m.g, stk_g_add(m.g, stk_g_conv(m.g, x, w, NULL), b)),
                           NULL);
        x = stk_g_reshape(m.g, x, 2, (int64_t[]){n->batch, -1});
    } else {
        x = stk_g_input(m.g, "x", STK_F32, 2, (int64_t[]){n->batch, n->in});
        x = stk_g_relu(m.g, dense(&m, x, n->hidden));
        x = stk_g_tanh(m.g, dense(&m, x, n->hidden));
    }
    stk_val loss =
        stk_g_mean_all(m.g, stk_g_sparse_softmax_cross_entropy(m.g, dense(&m, x, n->out), y));
    update(&m, loss);
    stk_g_output(m.g, "loss", loss);
    return m;
}

enum { STEPS = INSTRUMENTED ? 3 : 10 };

typedef struct run {
    double loss[STEPS];
    stk_tensor *weights;
} run;

static run train(const net *n, stk_program_options o, int32_t threads)
{
    run r = {0};
    stk_error err;
    stk_program *p = NULL;
    seed = 42;
    model m = build(n);
    CHECK_OK(stk_device_open("default", threads, &o.device, &err));
    if (!CHECK_OK(stk_program_new(m.g, &o, &p, &err))) return r;
    for (int i = 0; i < m.n; i++) {
        int64_t shape[STK_MAX_RANK];
        char name[8];
        int32_t rank = stk_g_rank(m.g, m.p[i]);
        for (int32_t k = 0; k < rank; k++) shape[k] = stk_g_dim(m.g, m.p[i], k);
        snprintf(name, sizeof name, "p%d", i);
        stk_tensor *w = random_tensor(STK_F32, rank, shape, -0.2, 0.2);
        CHECK_OK(stk_store_set(stk_program_store(p), name, w, &err));
        stk_tensor_release(w);
    }
    stk_tensor *x = n->cnn
                        ? random_tensor(STK_F32, 4, (int64_t[]){n->batch, n->in, n->in, 3}, -1, 1)
                        : random_tensor(STK_F32, 2, (int64_t[]){n->batch, n->in}, -1, 1);
    stk_tensor *y = random_tensor(STK_I32, 1, &n->batch, 0, (double)n->out - 1e-6);
    CHECK_OK(stk_program_feed(p, "x", x, &err));
    CHECK_OK(stk_program_feed(p, "y", y, &err));
    for (int s = 0; s < STEPS; s++) {
        stk_tensor *loss = NULL;
        CHECK_OK(stk_program_run(p, 1, &err));
        CHECK_OK(stk_program_read(p, "loss", &loss, &err));
        r.loss[s] = stk_tensor_at(loss, 0);
        stk_tensor_release(loss);
    }
    CHECK_OK(stk_store_get(stk_program_store(p), "p0", &r.weights, &err));
    stk_tensor_release(x);
    stk_tensor_release(y);
    stk_program_release(p);
    stk_graph_release(m.g);
    stk_device_release(o.device);
    return r;
}

static void compare(const net *n, const char *what, const run *got, const run *want)
{
    for (int s = 0; s < STEPS; s++)
        CHECK_MSG(fabs(got->loss[s] - want->loss[s]) <= 1e-4 * (1 + fabs(want->loss[s])),
                  "%s, %s: loss %d is %.7g, reference %.7g", n->name, what, s, got->loss[s],
                  want->loss[s]);
}

TEST(ten_losses_agree_with_the_reference)
{
    static const net nets[] = {
        {"tiny", 10, 100, 128, 10, 0},     {"one row", 1, 7, 5, 3, 0},
        {"batch 32", 32, 100, 128, 10, 0}, {"batch 512", 512, 32, 64, 9, 0},
        {"odd", 33, 17, 65, 7, 0},         {"cnn", 8, 16, 8, 10, 1},
        {"cnn wide", 16, 34, 16, 10, 1},   {"cnn odd", 3, 11, 5, 4, 1},
    };
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        const net *n = &nets[i];
        run ref = train(n, (stk_program_options){.ref = true, .no_fuse = true}, 1);
        run one = train(n, (stk_program_options){.deterministic = true}, 1);
        run two = train(n, (stk_program_options){.deterministic = true}, 2);
        run four = train(n, (stk_program_options){.deterministic = true}, 4);
        run elected = train(n, (stk_program_options){0}, 2);
        bool falls = ref.loss[STEPS - 1] < ref.loss[0];
        CHECK_MSG(INSTRUMENTED || falls, "%s: the loss went from %g to %g", n->name, ref.loss[0],
                  ref.loss[STEPS - 1]);
        compare(n, "one thread", &one, &ref);
        compare(n, "elected", &elected, &ref);
        size_t bytes = (size_t)stk_tensor_bytes(one.weights);
        CHECK_MSG(!memcmp(one.weights->data, two.weights->data, bytes),
                  "%s: two threads give other bits", n->name);
        CHECK_MSG(!memcmp(one.weights->data, four.weights->data, bytes),
                  "%s: four threads give other bits", n->name);
        run *all[] = {&ref, &one, &two, &four, &elected};
        for (int k = 0; k < 5; k++) stk_tensor_release(all[k]->weights);
    }
}

/* Swapping two variables, one assigned from the other, and a value that is both. */
TEST(assignments_see_the_old_values)
{
    stk_error err;
    stk_graph *g = NULL;
    stk_program *p = NULL;
    int64_t n = 3;
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val a = stk_g_variable(g, "a", STK_F32, 1, &n), b = stk_g_variable(g, "b", STK_F32, 1, &n);
    stk_val c = stk_g_variable(g, "c", STK_F32, 1, &n), d = stk_g_variable(g, "d", STK_F32, 1, &n);
    stk_g_assign(g, a, b);
    stk_g_assign(g, b, a);
    stk_g_assign(g, c, stk_g_add(g, c, a));
    stk_g_assign(g, d, stk_g_add(g, c, c));
    CHECK_OK(stk_program_new(g, NULL, &p, &err));
    const char *names[] = {"a", "b", "c", "d"};
    for (int i = 0; i < 4; i++) {
        stk_tensor *t = NULL;
        CHECK_OK(stk_tensor_from(STK_F32, 1, &n, (float[]){(float)(i + 1), 0, 0}, &t, &err));
        CHECK_OK(stk_store_set(stk_program_store(p), names[i], t, &err));
        stk_tensor_release(t);
    }
    CHECK_OK(stk_program_run(p, 1, &err));
    double want[] = {2, 1, 4, 6};
    for (int i = 0; i < 4; i++) {
        stk_tensor *t = NULL;
        CHECK_OK(stk_store_get(stk_program_store(p), names[i], &t, &err));
        CHECK_NEAR(stk_tensor_at(t, 0), want[i], 0);
        stk_tensor_release(t);
    }
    stk_program_release(p);
    stk_graph_release(g);
}

/* Steps allocate nothing. */
TEST(no_allocation_in_the_loop)
{
    net n = {"tiny", 10, 20, 16, 10, 0};
    stk_error err;
    stk_program *p = NULL;
    seed = 1;
    model m = build(&n);
    CHECK_OK(stk_program_new(m.g, NULL, &p, &err));
    stk_tensor *x = random_tensor(STK_F32, 2, (int64_t[]){10, 20}, -1, 1),
               *y = random_tensor(STK_I32, 1, (int64_t[]){10}, 0, 9);
    CHECK_OK(stk_program_feed(p, "x", x, &err));
    CHECK_OK(stk_program_feed(p, "y", y, &err));
    int64_t before = stk_alloc_count();
    for (int i = 0; i < 1000; i++) {
        CHECK_OK(stk_program_feed(p, "x", x, &err));
        CHECK_OK(stk_program_run(p, 1, &err));
    }
    CHECK_EQ_I64(stk_alloc_count() - before, 0);
    stk_tensor_release(x);
    stk_tensor_release(y);
    stk_program_release(p);
    stk_graph_release(m.g);
}

static stk_status whole_story(stk_error *err)
{
    stk_graph *g = NULL;
    stk_program *p = NULL;
    stk_tensor *x = NULL, *out = NULL;
    int64_t n = 4;
    stk_status s = stk_graph_new(&g, err);
    if (!s) {
        stk_val v = stk_g_variable(g, "v", STK_F32, 1, &n),
                in = stk_g_input(g, "x", STK_F32, 1, &n), d = 0;
        stk_val loss = stk_g_sum_all(g, stk_g_square(g, stk_g_sub(g, in, v)));
        stk_g_gradients(g, loss, 1, &v, &d);
        stk_g_assign(g, v, stk_g_sub(g, v, d));
        stk_g_output(g, "loss", loss);
    }
    if (!s) s = stk_program_new(g, NULL, &p, err);
    if (!s) s = stk_tensor_new(STK_F32, 1, &n, &x, err);
    if (!s) s = stk_program_feed(p, "x", x, err);
    if (!s) s = stk_program_run(p, 2, err);
    if (!s) s = stk_program_read(p, "loss", &out, err);
    stk_tensor_release(x);
    stk_tensor_release(out);
    stk_program_release(p);
    stk_graph_release(g);
    return s;
}

TEST(every_allocation_may_fail)
{
    stk_error err;
    setenv("STOKER_CACHE", "", 1);
    OOM_LOOP(whole_story(&err));
    unsetenv("STOKER_CACHE");
}

TEST_MAIN()
