/* spiral.c - trains a small network on three interleaved spirals, the whole step (forward, gradients, Adam) as one
 * program, and shows what that program does. */
#include "stoker/graph.h"
#include "stoker/nn.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BATCH = 96, HIDDEN = 64, CLASSES = 3, STEPS = 3000 };

static void check(stk_status status, const stk_error *err)
{
    if (status == STK_OK) return;
    fprintf(stderr, "%s: %s\n", stk_status_name(err->code), err->message);
    exit(1);
}

/* ---- data: points on three arms, with noise -------------------------------------------------------------- */

static float noise(void) { return (float)rand() / (float)RAND_MAX - 0.5f; }

static void make_batch(float *x, int32_t *y)
{
    for (int i = 0; i < BATCH; i++) {
        float r = (float)rand() / (float)RAND_MAX, arm = (float)(i % CLASSES) * 2.0944f;
        y[i] = i % CLASSES;
        x[2 * i] = r * cosf(arm + 4 * r) + 0.05f * noise();
        x[2 * i + 1] = r * sinf(arm + 4 * r) + 0.05f * noise();
    }
}

/* ---- the network and its training ------------------------------------------------------------------------- */

typedef struct net {
    stk_graph *g;
    stk_val p[6];
    int n;
} net;

static stk_val dense(net *m, stk_val x, int64_t out)
{
    char name[2][8];
    int64_t in = stk_g_dim(m->g, x, 1);
    snprintf(name[0], sizeof name[0], "w%d", m->n);
    snprintf(name[1], sizeof name[1], "b%d", m->n);
    stk_val w = stk_g_variable(m->g, name[0], STK_F32, 2, (int64_t[]){in, out});
    stk_val b = stk_g_variable(m->g, name[1], STK_F32, 1, &out);
    m->p[m->n++] = w;
    m->p[m->n++] = b;
    return stk_g_add(m->g, stk_g_matmul(m->g, x, w), b);
}

static void adam(net *m, stk_val loss, double rate)
{
    stk_graph *g = m->g;
    stk_val d[6];
    stk_g_gradients(g, loss, m->n, m->p, d);
#define NUM(v) stk_g_scalar(g, STK_F32, v)
    for (int i = 0; i < m->n; i++) {
        int64_t shape[2] = {stk_g_dim(g, m->p[i], 0), stk_g_dim(g, m->p[i], 1)};
        int32_t rank = stk_g_rank(g, m->p[i]);
        char name[2][8];
        snprintf(name[0], sizeof name[0], "m%d", i);
        snprintf(name[1], sizeof name[1], "v%d", i);
        stk_val mean = stk_g_variable(g, name[0], STK_F32, rank, shape),
                square = stk_g_variable(g, name[1], STK_F32, rank, shape);
        stk_val mean1 = stk_g_lerp(g, mean, d[i], NUM(0.1)),
                square1 = stk_g_lerp_square(g, square, d[i], NUM(0.001));
        stk_g_assign(g, mean, mean1);
        stk_g_assign(g, square, square1);
        stk_g_assign(
            g, m->p[i],
            stk_g_fnma(g, NUM(rate), stk_g_div_sqrt(g, mean1, square1, NUM(1e-7)), m->p[i]));
    }
}

static stk_graph *build(void)
{
    stk_error err;
    net m = {0};
    int64_t batch = BATCH;
    check(stk_graph_new(&m.g, &err), &err);
    stk_val x = stk_g_input(m.g, "x", STK_F32, 2, (int64_t[]){BATCH, 2}),
            y = stk_g_input(m.g, "y", STK_I32, 1, &batch);
    stk_val h = stk_g_relu(m.g, dense(&m, stk_g_relu(m.g, dense(&m, x, HIDDEN)), HIDDEN)),
            z = dense(&m, h, CLASSES);
    stk_val loss = stk_g_mean_all(m.g, stk_g_sparse_softmax_cross_entropy(m.g, z, y));
    stk_val hit = stk_g_eq(m.g, stk_g_argmax(m.g, z, 1), stk_g_cast(m.g, y, STK_I64));
    adam(&m, loss, 1e-3);
    stk_g_output(m.g, "loss", loss);
    stk_g_output(m.g, "accuracy", stk_g_mean_all(m.g, stk_g_cast(m.g, hit, STK_F32)));
    return m.g;
}

static void init_weights(stk_program *p)
{
    stk_error err;
    stk_store *s = stk_program_store(p);
    for (int32_t i = 0; i < stk_store_count(s); i++) {
        stk_tensor *t = NULL;
        const char *name = stk_store_name(s, i);
        if (name[0] != 'w') continue;
        check(stk_store_get(s, name, &t, &err), &err);
        for (int64_t k = 0; k < stk_tensor_count(t); k++)
            ((float *)t->data)[k] = noise() * sqrtf(24.0f / (float)(t->shape[0] + t->shape[1]));
        check(stk_store_set(s, name, t, &err), &err);
        stk_tensor_release(t);
    }
}

static double read_one(stk_program *p, const char *name)
{
    stk_error err;
    stk_tensor *t = NULL;
    check(stk_program_read(p, name, &t, &err), &err);
    double v = stk_tensor_at(t, 0);
    stk_tensor_release(t);
    return v;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(void)
{
    stk_error err;
    stk_program *p = NULL;
    stk_tensor *x = NULL, *y = NULL;
    stk_graph *g = build();
    check(stk_program_new(g, NULL, &p, &err), &err);
    stk_graph_release(g);
    init_weights(p);
    check(stk_tensor_new(STK_F32, 2, (int64_t[]){BATCH, 2}, &x, &err), &err);
    check(stk_tensor_new(STK_I32, 1, (int64_t[]){BATCH}, &y, &err), &err);
    check(stk_program_feed(p, "x", x, &err),
          &err); /* in place: new numbers in x are seen by the next run */
    check(stk_program_feed(p, "y", y, &err), &err);
    double in_steps = 0, accuracy = 0;
    printf("  step    loss  accuracy\n");
    for (int s = 0; s <= STEPS; s++) {
        make_batch(x->data, y->data);
        double start = seconds();
        check(stk_program_run(p, 1, &err), &err);
        in_steps += seconds() - start;
        if (s % 500) continue;
        accuracy = read_one(p, "accuracy");
        printf("%6d  %.4f     %5.1f%%\n", s, read_one(p, "loss"), 100 * accuracy);
    }
    char *text = NULL;
    check(stk_program_dump(p, &text, &err), &err);
    printf("\n%.1f us per step. One step is these launches (+ runs in the region of the one "
           "before):\n\n%s",
           in_steps / (STEPS + 1) * 1e6, text);
    stk_text_free(text);
    stk_tensor_release(x);
    stk_tensor_release(y);
    stk_program_release(p);
    return accuracy > 0.9 ? 0 : 1;
}
