/* Small dense layers in two halves (passes/halves.c): which graphs have them, that results have the same bits for any number of
 * threads and agree with those of whole layers, and that nobody outside of programs sees halves (store.c). */
#include "check.h"

#include "graph/run/program.h"
#include "stoker/nn.h"
#include "stoker/tracing.h"

#include <string.h>

enum { MOST_LAYERS = 4, MOST_WEIGHTS = 2 * MOST_LAYERS, STEPS = 40 };

typedef enum activation { RELU, TANH, SIGMOID } activation;
typedef enum aim { SPARSE, SQUARES, BINARY } aim;
typedef enum method { SGD, MOMENTUM, ADAM, CLIPPED } method;

typedef struct net {
    const char *name;
    int64_t batch, size[MOST_LAYERS + 1];
    int32_t layers;
    activation activation;
    aim loss;
    method method;
    int halved; /* variables that have halves */
} net;

/* Adam has three arrays per weight. A weight by columns, its bias, and the weight behind it are cut: the bias behind that is whole. */
static const net NETS[] = {
    {"the usual one", 10, {100, 128, 10}, 2, RELU, SPARSE, ADAM, 9},
    {"more rows", 32, {100, 128, 10}, 2, RELU, SPARSE, ADAM, 9},
    {"odd numbers of rows and inputs", 13, {101, 96, 7}, 2, TANH, SPARSE, MOMENTUM, 6},
    {"one result", 32, {80, 160, 1}, 2, SIGMOID, BINARY, SGD, 3},
    {"three layers", 16, {96, 128, 128, 3}, 3, RELU, SQUARES, ADAM, 9},
    {"four layers", 16, {96, 128, 128, 128, 5}, 4, TANH, SQUARES, ADAM, 18},
    {"a norm of gradients", 24, {64, 128, 10}, 2, RELU, SPARSE, CLIPPED, 3},
    {"halves that are no whole lines", 32, {100, 120, 10}, 2, RELU, SPARSE, ADAM, 0},
    {"too little to do", 4, {20, 32, 3}, 2, RELU, SQUARES, ADAM, 0},
    {"too much to do", 256, {512, 512, 10}, 2, RELU, SPARSE, SGD, 0},
    {"one layer", 32, {128, 128}, 1, RELU, SQUARES, ADAM, 0},
};
enum { NETS_COUNT = sizeof NETS / sizeof *NETS };

/* ---- graphs ----------------------------------------------------------------------------------------------- */

typedef struct weights {
    stk_val value[MOST_WEIGHTS];
    char name[MOST_WEIGHTS][8];
    int32_t rank[MOST_WEIGHTS];
    int64_t shape[MOST_WEIGHTS][2];
    int n;
} weights;

static stk_val number(stk_graph *g, double x) { return stk_g_scalar(g, STK_F32, x); }

static stk_val weight(stk_graph *g, weights *w, int32_t rank, int64_t first, int64_t second)
{
    int i = w->n++;
    snprintf(w->name[i], sizeof w->name[i], "w%d", i);
    w->rank[i] = rank;
    w->shape[i][0] = first;
    w->shape[i][1] = second;
    return w->value[i] = stk_g_variable(g, w->name[i], STK_F32, rank, w->shape[i]);
}

static stk_val forward(stk_graph *g, const net *t, weights *w, stk_val x)
{
    for (int32_t l = 0; l < t->layers; l++) {
        x = stk_g_matmul(g, x, weight(g, w, 2, t->size[l], t->size[l + 1]));
        x = stk_g_add(g, x, weight(g, w, 1, t->size[l + 1], 0));
        if (l + 1 == t->layers) return x;
        x = t->activation == RELU   ? stk_g_relu(g, x)
            : t->activation == TANH ? stk_g_tanh(g, x)
                                    : stk_g_sigmoid(g, x);
    }
    return x;
}

static stk_val loss_of(stk_graph *g, const net *t, stk_val out)
{
    int64_t shape[2] = {t->batch, t->size[t->layers]};
    if (t->loss == SPARSE) {
        stk_val y = stk_g_input(g, "y", STK_I32, 1, shape);
        return stk_g_mean_all(g, stk_g_sparse_softmax_cross_entropy(g, out, y));
    }
    stk_val y = stk_g_input(g, "y", STK_F32, 2, shape);
    if (t->loss == SQUARES) return stk_g_mean_all(g, stk_g_square(g, stk_g_sub(g, out, y)));
    return stk_g_mean_all(g, stk_g_sub(g, stk_g_softplus(g, out), stk_g_mul(g, out, y)));
}

static stk_val slot(stk_graph *g, const weights *w, int i, const char *kind)
{
    char name[16];
    snprintf(name, sizeof name, "%s/%s", kind, w->name[i]);
    return stk_g_variable(g, name, STK_F32, w->rank[i], w->shape[i]);
}

static stk_val moved(stk_graph *g, stk_val old, stk_val now, double share)
{
    return stk_g_add(g, old, stk_g_mul(g, stk_g_sub(g, now, old), number(g, share)));
}

static void update(stk_graph *g, const net *t, const weights *w, int i, stk_val d)
{
    stk_val step = d;
    if (t->method == MOMENTUM || t->method == ADAM) {
        stk_val m = slot(g, w, i, "m");
        step = moved(g, m, d, 0.1);
        stk_g_assign(g, m, step);
    }
    if (t->method == ADAM) {
        stk_val v = slot(g, w, i, "v"), v1 = moved(g, v, stk_g_square(g, d), 0.01);
        stk_g_assign(g, v, v1);
        step = stk_g_div(g, step, stk_g_add(g, stk_g_sqrt(g, v1), number(g, 1e-3)));
    }
    stk_val rate = number(g, t->method == ADAM ? 1e-3 : 1e-2);
    stk_g_assign(g, w->value[i], stk_g_sub(g, w->value[i], stk_g_mul(g, rate, step)));
}

static void clip(stk_graph *g, const weights *w, stk_val *d)
{
    stk_val sum = 0;
    for (int i = 0; i < w->n; i++) {
        stk_val part = stk_g_sum(g, stk_g_square(g, d[i]), w->rank[i], (int32_t[]){0, 1}, false);
        sum = i ? stk_g_add(g, sum, part) : part;
    }
    stk_val scale = stk_g_rsqrt(g, stk_g_add(g, sum, number(g, 1)));
    for (int i = 0; i < w->n; i++) d[i] = stk_g_mul(g, d[i], scale);
}

static stk_graph *training_graph(const net *t, weights *w)
{
    stk_graph *g = NULL;
    stk_error err;
    stk_val d[MOST_WEIGHTS];
    *w = (weights){0};
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val x = stk_g_input(g, "x", STK_F32, 2, (int64_t[]){t->batch, t->size[0]});
    stk_val loss = loss_of(g, t, forward(g, t, w, x));
    stk_g_gradients(g, loss, w->n, w->value, d);
    if (t->method == CLIPPED) clip(g, w, d);
    for (int i = 0; i < w->n; i++) update(g, t, w, i, d[i]);
    stk_g_output(g, "loss", loss);
    return g;
}

/* ---- programs --------------------------------------------------------------------------------------------- */

static void fill(stk_tensor *t, uint32_t seed, float scale)
{
    for (int64_t i = 0; i < stk_tensor_count(t); i++) {
        seed = seed * 1664525u + 1013904223u;
        ((float *)t->data)[i] = scale * ((float)(seed >> 8) * 0x1p-23f - 1.0f);
    }
}

static void feed(stk_program *p, const net *t)
{
    stk_error err;
    stk_tensor *x = NULL, *y = NULL;
    const int64_t out = t->size[t->layers];
    CHECK_OK(stk_tensor_new(STK_F32, 2, (int64_t[]){t->batch, t->size[0]}, &x, &err));
    CHECK_OK(stk_tensor_new(t->loss == SPARSE ? STK_I32 : STK_F32, t->loss == SPARSE ? 1 : 2,
                            (int64_t[]){t->batch, out}, &y, &err));
    fill(x, 1, 1);
    for (int64_t i = 0; i < stk_tensor_count(y); i++)
        if (t->loss == SPARSE)
            ((int32_t *)y->data)[i] = (int32_t)(i * 7 % out);
        else
            ((float *)y->data)[i] = (float)(i * 3 % 2);
    CHECK_OK(stk_program_feed(p, "x", x, &err));
    CHECK_OK(stk_program_feed(p, "y", y, &err));
    stk_tensor_release(x);
    stk_tensor_release(y);
}

/* A program over a store that holds the first weights. */
typedef struct run {
    stk_device *device;
    stk_store *store;
    stk_program *program;
    weights w;
} run;

static void set_weights(run *r)
{
    stk_error err;
    for (int i = 0; i < r->w.n; i++) {
        stk_tensor *w = NULL;
        CHECK_OK(stk_tensor_new(STK_F32, r->w.rank[i], r->w.shape[i], &w, &err));
        fill(w, (uint32_t)i + 5, 0.2f);
        CHECK_OK(stk_store_set(r->store, r->w.name[i], w, &err));
        stk_tensor_release(w);
    }
}

static void add_program(run *r, const net *t, bool no_fuse, stk_program **out)
{
    stk_error err;
    stk_graph *g = training_graph(t, &r->w);
    stk_program_options o = stk_program_options_defaults();
    o.device = r->device;
    o.store = r->store;
    o.deterministic = true;
    o.no_fuse = no_fuse;
    CHECK_OK(stk_program_new(g, &o, out, &err));
    feed(*out, t);
    stk_graph_release(g);
}

static run start(const net *t, int32_t threads, bool no_fuse)
{
    stk_error err;
    run r = {0};
    CHECK_OK(stk_device_open("default", threads, &r.device, &err));
    CHECK_OK(stk_store_new(r.device, &r.store, &err));
    add_program(&r, t, no_fuse, &r.program);
    set_weights(&r);
    return r;
}

static void end(run *r)
{
    stk_program_release(r->program);
    stk_store_release(r->store);
    stk_device_release(r->device);
}

static int halved(const stk_program *p)
{
    int count = 0;
    stk_half half;
    for (int64_t k = 0; k < p->g->nnodes; k++)
        count += stk_half_of(&p->g->nodes[k], &half) && half.owner == 0;
    return count;
}

static void steps(stk_program *p, int64_t n)
{
    stk_error err;
    CHECK_OK(stk_program_run(p, n, &err));
}

/* How far two stores are from each other, and whether their bits agree. */
static double distance(run *a, run *b, bool *same)
{
    stk_error err;
    double most = 0;
    *same = true;
    CHECK(stk_store_count(a->store) == stk_store_count(b->store));
    for (int32_t i = 0; i < stk_store_count(a->store); i++) {
        stk_tensor *x = NULL, *y = NULL;
        const char *name = stk_store_name(a->store, i);
        CHECK(name[1] != '#'); /* halves have no names of their own */
        CHECK_OK(stk_store_get(a->store, name, &x, &err));
        CHECK_OK(stk_store_get(b->store, name, &y, &err));
        *same &= !memcmp(x->data, y->data, (size_t)stk_tensor_bytes(x));
        for (int64_t k = 0; k < stk_tensor_count(x); k++) {
            double far = fabs((double)((float *)x->data)[k] - (double)((float *)y->data)[k]);
            if (!(far <= most)) most = far;
        }
        stk_tensor_release(x);
        stk_tensor_release(y);
    }
    return most;
}

/* ---- tests ------------------------------------------------------------------------------------------------ */

TEST(any_number_of_threads_gives_the_same_bits)
{
    bool same;
    for (int i = 0; i < NETS_COUNT; i++) {
        const net *t = &NETS[i];
        run one = start(t, 1, false);
        CHECK_MSG(halved(one.program) == t->halved, "%s: %d variables in halves", t->name,
                  halved(one.program));
        steps(one.program, STEPS);
        for (int32_t threads = 2; threads <= 16; threads *= threads) {
            run more = start(t, threads, false);
            steps(more.program, STEPS);
            distance(&one, &more, &same);
            CHECK_MSG(same, "%s on %d threads", t->name, threads);
            end(&more);
        }
        end(&one);
    }
}

TEST(halves_agree_with_the_whole)
{
    bool same;
    for (int i = 0; i < NETS_COUNT; i++) {
        run halves = start(&NETS[i], 2, false), whole = start(&NETS[i], 2, true);
        CHECK(halved(whole.program) == 0);
        steps(halves.program, 5);
        steps(whole.program, 5);
        double far = distance(&halves, &whole, &same);
        CHECK_MSG(far < 2e-4, "%s: %g apart", NETS[i].name, far);
        end(&halves);
        end(&whole);
    }
}

/* Reading, writing what is there already, and other programs between steps change nothing. */
TEST(others_see_whole_variables)
{
    const net *t = &NETS[1];
    net fewer = *t;
    stk_error err;
    bool same;
    stk_program *plain = NULL, *rest = NULL;
    run a = start(t, 2, false), b = start(t, 2, false);
    steps(a.program, 6);
    steps(b.program, 2);
    for (int i = 0; i < b.w.n; i++) {
        stk_tensor *w = NULL;
        CHECK_OK(stk_store_get(b.store, b.w.name[i], &w, &err));
        CHECK_OK(stk_store_set(b.store, b.w.name[i], w, &err));
        stk_tensor_release(w);
    }
    steps(b.program, 4);
    distance(&a, &b, &same);
    CHECK(same);
    /* another program with halves, of other batches; one with whole variables; then the first one again */
    fewer.batch = 20;
    add_program(&a, &fewer, false, &rest);
    add_program(&a, &fewer, true, &plain);
    CHECK(halved(rest) == t->halved && halved(plain) == 0);
    steps(rest, 1);
    steps(a.program, 2);
    steps(plain, 2);
    steps(a.program, 1);
    stk_program_release(rest);
    rest = NULL;
    add_program(&b, &fewer, true, &rest);
    steps(rest, 1);
    stk_program_release(rest);
    add_program(&b, t, true, &rest);
    steps(rest, 2);
    stk_program_release(rest);
    add_program(&b, &fewer, true, &rest);
    steps(rest, 2);
    stk_program_release(rest);
    steps(b.program, 1);
    CHECK(distance(&a, &b, &same) < 2e-4);
    stk_program_release(plain);
    end(&a);
    end(&b);
}

/* Memory that was lent is written and looked at without asking. */
TEST(lent_memory_shows_every_step)
{
    stk_error err;
    bool same;
    stk_tensor *view = NULL, *copy = NULL;
    run a = start(&NETS[0], 2, false), b = start(&NETS[0], 2, false);
    if (stk_device_shares(a.device)) {
        steps(a.program, 3);
        steps(b.program, 3);
        CHECK_OK(stk_store_borrow(b.store, "w0", &view, &err));
        for (int i = 0; i < 3; i++) {
            CHECK_OK(stk_store_get(a.store, "w0", &copy, &err));
            CHECK(!memcmp(view->data, copy->data, (size_t)stk_tensor_bytes(copy)));
            fill(copy, (uint32_t)i, 0.1f);
            memcpy(view->data, copy->data, (size_t)stk_tensor_bytes(copy));
            CHECK_OK(stk_store_set(a.store, "w0", copy, &err));
            stk_tensor_release(copy);
            steps(a.program, 2);
            steps(b.program, 2);
        }
        stk_tensor_release(view);
        distance(&a, &b, &same);
        CHECK(same);
    }
    end(&a);
    end(&b);
}

/* What is shown to the user stays whole, and so does what lies in memory of the caller. */
TEST(some_variables_stay_whole)
{
    const net *t = &NETS[0];
    stk_error err;
    weights w;
    stk_graph *g = training_graph(t, &w);
    stk_g_output(g, "shown", w.value[2]);
    stk_program *p = NULL;
    CHECK_OK(stk_program_new(g, NULL, &p, &err));
    CHECK(halved(p) == 0);
    stk_program_release(p);
    stk_graph_release(g);
    stk_store *store = NULL;
    stk_device *device = NULL;
    stk_tensor *mine = NULL;
    CHECK_OK(stk_device_open("default", 2, &device, &err));
    CHECK_OK(stk_store_new(device, &store, &err));
    if (stk_device_shares(device)) {
        CHECK_OK(stk_tensor_new(STK_F32, 2, w.shape[0], &mine, &err));
        CHECK_OK(stk_store_adopt(store, "w0", mine, &err));
        stk_program_options o = stk_program_options_defaults();
        o.device = device;
        o.store = store;
        g = training_graph(t, &w);
        CHECK_OK(stk_program_new(g, &o, &p, &err));
        CHECK(halved(p) == 0);
        stk_program_release(p);
        stk_graph_release(g);
        stk_tensor_release(mine);
    }
    stk_store_release(store);
    stk_device_release(device);
}

TEST_MAIN()
