/* The training jobs of the benchmark, built through the public graph API: what a user of it would write. */
#include "rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const bench_job jobs[] = {
    {"tiny_step", false, {100, 128, 10}, 3, 10, 100, false, 1e-3},
    {"tiny_step_b32", false, {100, 128, 10}, 3, 32, 100, false, 1e-3},
    {"mlp_b512", false, {128, 256, 128, 1}, 4, 512, 20, true, 1e-3},
    {"cnn_step", true, {64, 64, 3}, 3, 32, 8, false, 1e-4},
};
enum { CNN_FILTERS = 32, CLASSES = 10 };
static const double BETA1 = 0.9, BETA2 = 0.999, EPSILON = 1e-7;

const bench_job *bench_find_job(const char *name)
{
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
        if (!strcmp(jobs[i].name, name)) return &jobs[i];
    return NULL;
}

int bench_failed(const char *what, const stk_error *err)
{
    fprintf(stderr, "%s: %s: %s\n", what, stk_status_name(err->code), err->message);
    return 1;
}

/* ---- random data: a small generator is enough, the peers use their own -------------------------------- */

static uint64_t state;
static double uniform(void)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(state >> 11) * 0x1p-53;
}
static double normal(void)
{
    return sqrt(-2 * log(uniform() + 1e-300)) * cos(6.283185307179586 * uniform());
}

/* Second half of the ring: the same inputs with other answers, so that the loss cannot reach 0. */
static int make_data(bench_training *t)
{
    const bench_job *j = t->job;
    stk_error err;
    int64_t features = j->cnn ? j->sizes[0] * j->sizes[1] * j->sizes[2] : j->sizes[0];
    int64_t rows = j->ring * j->batch, half = rows / 2;
    if (stk_tensor_new(STK_F32, 2, (int64_t[]){rows, features}, &t->x, &err) ||
        stk_tensor_new(j->mean_square ? STK_F32 : STK_I32, 2, (int64_t[]){rows, 1}, &t->y, &err))
        return bench_failed("data", &err);
    float *x = t->x->data, *yf = t->y->data;
    int32_t *yi = t->y->data;
    for (int64_t i = 0; i < half * features; i++) x[i] = (float)normal();
    memcpy(x + half * features, x, (size_t)(half * features) * sizeof *x);
    double *w = calloc((size_t)(features * CLASSES), sizeof *w);
    for (int64_t i = 0; w && i < features * CLASSES; i++) w[i] = normal();
    for (int64_t r = 0; w && r < half; r++) {
        double score[CLASSES] = {0};
        int best = 0;
        for (int c = 0; c < CLASSES; c++) {
            for (int64_t k = 0; k < features; k++)
                score[c] += (double)x[r * features + k] * w[k * CLASSES + c];
            if (score[c] > score[best]) best = c;
        }
        if (j->mean_square) {
            yf[r] = (float)(score[0] / sqrt((double)features) + 0.5);
            yf[half + r] = yf[r] - 1;
        } else {
            yi[r] = best;
            yi[half + r] = (best + 1 + (int)(uniform() * 9)) % CLASSES;
        }
    }
    free(w);
    return w ? 0 : 1;
}

static int cut_batches(bench_training *t)
{
    const bench_job *j = t->job;
    stk_error err;
    int64_t features = t->x->shape[1];
    t->xs = calloc((size_t)j->ring, sizeof *t->xs);
    t->ys = calloc((size_t)j->ring, sizeof *t->ys);
    for (int64_t i = 0; i < j->ring; i++) {
        stk_tensor *x = NULL, *y = NULL;
        if (stk_tensor_slice(t->x, (int64_t[]){i * j->batch, 0}, (int64_t[]){j->batch, features},
                             &x, &err) ||
            stk_tensor_slice(t->y, (int64_t[]){i * j->batch, 0}, (int64_t[]){j->batch, 1}, &y,
                             &err) ||
            stk_tensor_reshape(x, j->cnn ? 4 : 2,
                               j->cnn ? (int64_t[]){j->batch, j->sizes[0], j->sizes[1], j->sizes[2]}
                                      : (int64_t[]){j->batch, features},
                               &t->xs[i], &err) ||
            stk_tensor_reshape(y, j->mean_square ? 2 : 1, (int64_t[]){j->batch, 1}, &t->ys[i],
                               &err))
            return bench_failed("batches", &err);
        stk_tensor_release(x);
        stk_tensor_release(y);
    }
    return 0;
}

/* ---- the graph ------------------------------------------------------------------------------------------- */

typedef struct parameters {
    stk_val value[16];
    char name[16][16];
    int64_t fan[16]; /* in + out, 0 for a bias */
    int n;
} parameters;

static stk_val parameter(stk_graph *g, parameters *p, int32_t rank, const int64_t *shape)
{
    int64_t receptive = 1;
    for (int32_t i = 0; i + 2 < rank; i++) receptive *= shape[i];
    p->fan[p->n] = rank > 1 ? receptive * (shape[rank - 2] + shape[rank - 1]) : 0;
    snprintf(p->name[p->n], sizeof p->name[0], "p%d", p->n);
    return p->value[p->n] = stk_g_variable(g, p->name[p->n], STK_F32, rank, shape),
           p->value[p->n++];
}

static stk_val dense(stk_graph *g, parameters *p, stk_val x, int64_t out)
{
    stk_val w = parameter(g, p, 2, (int64_t[]){stk_g_dim(g, x, 1), out});
    return stk_g_add(g, stk_g_matmul(g, x, w), parameter(g, p, 1, &out));
}

static stk_val forward(stk_graph *g, const bench_job *j, parameters *p, stk_val x)
{
    if (j->cnn) {
        stk_val w = parameter(g, p, 4, (int64_t[]){3, 3, j->sizes[2], CNN_FILTERS});
        stk_val b = parameter(g, p, 1, (int64_t[]){CNN_FILTERS});
        x = stk_g_relu(g, stk_g_add(g, stk_g_conv(g, x, w, NULL), b));
        x = stk_g_max_pool(g, x, NULL);
        return dense(g, p, stk_g_reshape(g, x, 2, (int64_t[]){j->batch, -1}), CLASSES);
    }
    for (int32_t l = 1; l < j->nsizes; l++) {
        x = dense(g, p, x, j->sizes[l]);
        if (l + 1 < j->nsizes) x = stk_g_relu(g, x);
    }
    return x;
}

/* Adam as Keras has it, written out; the compiler makes one launch of it. */
static void adam(stk_graph *g, const bench_job *j, parameters *p, stk_val loss)
{
    stk_val d[16];
    char name[24];
#define NUM(v) stk_g_scalar(g, STK_F32, (v))
    stk_g_gradients(g, loss, p->n, p->value, d);
    stk_val t = stk_g_add(g, stk_g_cast(g, stk_g_step(g), STK_F32), NUM(1));
    stk_val c1 = stk_g_sub(g, NUM(1), stk_g_pow(g, NUM(BETA1), t));
    stk_val c2 = stk_g_sqrt(g, stk_g_sub(g, NUM(1), stk_g_pow(g, NUM(BETA2), t)));
    stk_val rate = stk_g_div(g, stk_g_mul(g, NUM(j->rate), c2), c1);
    for (int i = 0; i < p->n; i++) {
        int64_t shape[STK_MAX_RANK];
        int32_t rank = stk_g_rank(g, p->value[i]);
        for (int32_t k = 0; k < rank; k++) shape[k] = stk_g_dim(g, p->value[i], k);
        snprintf(name, sizeof name, "m%d", i);
        stk_val m = stk_g_variable(g, name, STK_F32, rank, shape);
        snprintf(name, sizeof name, "v%d", i);
        stk_val v = stk_g_variable(g, name, STK_F32, rank, shape);
        stk_val m1 = stk_g_add(g, m, stk_g_mul(g, stk_g_sub(g, d[i], m), NUM(1 - BETA1)));
        stk_val v1 =
            stk_g_add(g, v, stk_g_mul(g, stk_g_sub(g, stk_g_square(g, d[i]), v), NUM(1 - BETA2)));
        stk_val step =
            stk_g_mul(g, rate, stk_g_div(g, m1, stk_g_add(g, stk_g_sqrt(g, v1), NUM(EPSILON))));
        stk_g_assign(g, m, m1);
        stk_g_assign(g, v, v1);
        stk_g_assign(g, p->value[i], stk_g_sub(g, p->value[i], step));
    }
}

static stk_graph *training_graph(const bench_job *j, parameters *p)
{
    stk_graph *g = NULL;
    stk_error err;
    if (stk_graph_new(&g, &err)) return NULL;
    stk_val x = j->cnn ? stk_g_input(g, "x", STK_F32, 4,
                                     (int64_t[]){j->batch, j->sizes[0], j->sizes[1], j->sizes[2]})
                       : stk_g_input(g, "x", STK_F32, 2, (int64_t[]){j->batch, j->sizes[0]});
    stk_val y = j->mean_square ? stk_g_input(g, "y", STK_F32, 2, (int64_t[]){j->batch, 1})
                               : stk_g_input(g, "y", STK_I32, 1, &j->batch);
    stk_val out = forward(g, j, p, x);
    stk_val loss = j->mean_square
                       ? stk_g_mean_all(g, stk_g_square(g, stk_g_sub(g, out, y)))
                       : stk_g_mean_all(g, stk_g_sparse_softmax_cross_entropy(g, out, y));
    adam(g, j, p, loss);
    stk_g_output(g, "loss", loss);
    return g;
}

/* Glorot uniform; biases 0. */
static int init_parameters(bench_training *t, const stk_graph *g, const parameters *p)
{
    for (int i = 0; i < p->n; i++) {
        stk_tensor *w = NULL;
        stk_error err;
        int64_t shape[STK_MAX_RANK];
        int32_t rank = stk_g_rank(g, p->value[i]);
        for (int32_t k = 0; k < rank; k++) shape[k] = stk_g_dim(g, p->value[i], k);
        if (stk_tensor_new(STK_F32, rank, shape, &w, &err)) return bench_failed("parameters", &err);
        double limit = p->fan[i] ? sqrt(6.0 / (double)p->fan[i]) : 0;
        for (int64_t k = 0; k < stk_tensor_count(w); k++)
            ((float *)w->data)[k] = (float)(limit * (2 * uniform() - 1));
        stk_status status = stk_store_set(stk_program_store(t->program), p->name[i], w, &err);
        stk_tensor_release(w);
        if (status) return bench_failed("parameters", &err);
    }
    return 0;
}

int bench_training_new(const bench_job *job, int threads, bench_training **out)
{
    stk_error err;
    parameters p = {0};
    bench_training *t = calloc(1, sizeof *t);
    if (!t) return 1;
    *out = t;
    t->job = job;
    state = 7;
    double start = bench_now();
    if (make_data(t) || cut_batches(t)) return 1;
    t->data_seconds = bench_now() - start;
    if (stk_device_open("cpu:0", threads, &t->device, &err)) return bench_failed("device", &err);
    stk_program_options options = stk_program_options_defaults();
    options.device = t->device;
    stk_graph *g = training_graph(job, &p);
    if (stk_program_new(g, &options, &t->program, &err)) return bench_failed("program", &err);
    int failed = init_parameters(t, g, &p);
    stk_graph_release(g);
    return failed;
}

int bench_training_run(bench_training *t, int64_t steps)
{
    stk_error err;
    for (int64_t i = 0; i < steps; i++) {
        if (stk_program_feed(t->program, "x", t->xs[t->at], &err) ||
            stk_program_feed(t->program, "y", t->ys[t->at], &err) ||
            stk_program_run(t->program, 1, &err))
            return bench_failed("step", &err);
        t->at = t->at + 1 == t->job->ring ? 0 : t->at + 1;
    }
    return 0;
}

double bench_training_loss(bench_training *t)
{
    double sum = 0;
    for (int64_t i = 0; i < t->job->ring; i++) {
        stk_tensor *loss = NULL;
        stk_error err;
        if (bench_training_run(t, 1) || stk_program_read(t->program, "loss", &loss, &err))
            return NAN;
        sum += stk_tensor_at(loss, 0);
        stk_tensor_release(loss);
    }
    return sum / (double)t->job->ring;
}

void bench_training_release(bench_training *t)
{
    if (!t) return;
    for (int64_t i = 0; t->xs && t->ys && i < t->job->ring; i++) {
        stk_tensor_release(t->xs[i]);
        stk_tensor_release(t->ys[i]);
    }
    free(t->xs);
    free(t->ys);
    stk_tensor_release(t->x);
    stk_tensor_release(t->y);
    stk_program_release(t->program);
    stk_device_release(t->device);
    free(t);
}
