/* small_net.h - a dense network that is trained for some steps on any device: what tests of drivers break in all places. */
#ifndef STK_TEST_DEVICE_SMALL_NET_H
#define STK_TEST_DEVICE_SMALL_NET_H

#include "check.h"
#include "graph/run/program.h"
#include "stoker/nn.h"

enum { BATCH = 10, IN = 20, HIDDEN = 32, OUT = 5, STEPS = 20 };

/* Two dense layers, cross entropy, Adam. */
static stk_graph *mlp(void)
{
    stk_graph *g = NULL;
    stk_error err;
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val x = stk_g_input(g, "x", STK_F32, 2, (int64_t[]){BATCH, IN});
    stk_val y = stk_g_input(g, "y", STK_I64, 1, (int64_t[]){BATCH});
    stk_val p[4] = {stk_g_variable(g, "w1", STK_F32, 2, (int64_t[]){IN, HIDDEN}),
                    stk_g_variable(g, "b1", STK_F32, 1, (int64_t[]){HIDDEN}),
                    stk_g_variable(g, "w2", STK_F32, 2, (int64_t[]){HIDDEN, OUT}),
                    stk_g_variable(g, "b2", STK_F32, 1, (int64_t[]){OUT})};
    stk_val h = stk_g_relu(g, stk_g_add(g, stk_g_matmul(g, x, p[0]), p[1]));
    stk_val z = stk_g_add(g, stk_g_matmul(g, h, p[2]), p[3]);
    stk_val loss = stk_g_mean_all(g, stk_g_sparse_softmax_cross_entropy(g, z, y)), d[4];
    stk_g_gradients(g, loss, 4, p, d);
    for (int i = 0; i < 4; i++) {
        char name[8];
        int64_t shape[2] = {stk_g_dim(g, p[i], 0), i % 2 ? 1 : stk_g_dim(g, p[i], 1)};
        stk_val state[2];
        for (int k = 0; k < 2; k++) {
            snprintf(name, sizeof name, "%c%d", k ? 'v' : 'm', i);
            state[k] = stk_g_variable(g, name, STK_F32, i % 2 ? 1 : 2, shape);
        }
        stk_val m = stk_g_lerp(g, state[0], d[i], stk_g_scalar(g, STK_F32, 0.1));
        stk_val v = stk_g_lerp_square(g, state[1], d[i], stk_g_scalar(g, STK_F32, 0.001));
        stk_g_assign(g, state[0], m);
        stk_g_assign(g, state[1], v);
        stk_val step = stk_g_div_sqrt(g, m, v, stk_g_scalar(g, STK_F32, 1e-4));
        stk_g_assign(g, p[i], stk_g_fnma(g, step, stk_g_scalar(g, STK_F32, 0.01), p[i]));
    }
    stk_g_output(g, "loss", loss);
    return g;
}

static stk_tensor *numbers(stk_dtype dtype, int32_t rank, const int64_t *shape, double scale,
                           uint64_t seed)
{
    stk_tensor *t = NULL;
    stk_error err;
    CHECK_OK(stk_tensor_new(dtype, rank, shape, &t, &err));
    for (int64_t i = 0; i < stk_tensor_count(t); i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        double u = (double)(seed >> 11) * 0x1p-53;
        CHECK_OK(
            stk_tensor_set(t, i, dtype == STK_I64 ? floor(u * OUT) : (2 * u - 1) * scale, &err));
    }
    return t;
}

/* Trains; losses[STEPS]. The status is that of the first thing that fails. */
static stk_status train(const char *device, double *losses, char *islands, stk_error *err)
{
    stk_graph *g = mlp();
    stk_device *d = NULL;
    stk_program *p = NULL;
    stk_tensor *x = numbers(STK_F32, 2, (int64_t[]){BATCH, IN}, 1, 1);
    stk_tensor *y = numbers(STK_I64, 1, (int64_t[]){BATCH}, 1, 2);
    stk_tensor *w1 = numbers(STK_F32, 2, (int64_t[]){IN, HIDDEN}, 0.3, 3);
    stk_tensor *w2 = numbers(STK_F32, 2, (int64_t[]){HIDDEN, OUT}, 0.3, 4);
    stk_status status = stk_device_open(device, 0, &d, err);
    stk_program_options o = {.device = d, .deterministic = true};
    if (status == STK_OK) status = stk_program_new(g, &o, &p, err);
    if (status == STK_OK) status = stk_store_set(stk_program_store(p), "w1", w1, err);
    if (status == STK_OK) status = stk_store_set(stk_program_store(p), "w2", w2, err);
    if (p && islands) *islands = (char)stk_program_islands(p, 0, NULL);
    for (int i = 0; i < STEPS && status == STK_OK; i++) {
        stk_tensor *loss = NULL;
        status = stk_program_feed(p, "x", x, err);
        if (status == STK_OK) status = stk_program_feed(p, "y", y, err);
        if (status == STK_OK) status = stk_program_run(p, 1, err);
        if (status == STK_OK) status = stk_program_read(p, "loss", &loss, err);
        if (status == STK_OK) losses[i] = stk_tensor_at(loss, 0);
        stk_tensor_release(loss);
    }
    stk_program_release(p);
    stk_device_release(d);
    stk_graph_release(g);
    stk_tensor *all[] = {x, y, w1, w2};
    for (int i = 0; i < 4; i++) stk_tensor_release(all[i]);
    return status;
}

#endif
