// What does a layer on the host cost in the middle of a net on another device, and was that said beforehand?
//
//     bench_island [--calibrate] [device ...]         (opencl:0, where none is named)
//
// The same net is trained with an activation that is a C function (it and its gradient are islands: down, function, up) and with a
// cheap one that the device has, by turns; the difference of the medians is what the islands cost. Said beforehand: the difference of what
// stk_program_predict makes of the device's calibration, and the time of the two functions alone. STOKER_APART=1 STOKER_APART_LATENCY=50 bench_island apart:0 asks a device with slow answers.
#include "base/clock.h"
#include "device/device.h"
#include "stoker/stoker.h"
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *what, const stk_error *err)
{
    fprintf(stderr, "%s: %s\n", what, err->message);
    exit(1);
}

/* ---- the layer ------------------------------------------------------------------------------------------- */

/* Mish, x tanh(log(1 + exp(x))), as one would write it. */
static void forward(void *context, int32_t nin, const stk_tensor *const *in, int32_t nout,
                    stk_tensor *const *out)
{
    const float *x = in[0]->data;
    float *y = out[0]->data;
    int64_t n = stk_tensor_count(in[0]);
    (void)context, (void)nin, (void)nout;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * tanhf(log1pf(expf(x[i])));
}

static void backward(void *context, int32_t nin, const stk_tensor *const *in, int32_t nout,
                     stk_tensor *const *out)
{
    const float *x = in[0]->data, *d = in[1]->data;
    float *dx = out[0]->data;
    int64_t n = stk_tensor_count(in[0]);
    (void)context, (void)nin, (void)nout;
    for (int64_t i = 0; i < n; i++) {
        float e = expf(x[i]), t = tanhf(log1pf(e));
        dx[i] = d[i] * (t + x[i] * (1 - t * t) * e / (1 + e));
    }
}

static void build_host(stk_custom_call *c, void *context)
{
    static const stk_host host = {.name = "mish", .run = forward, .gradient = backward};
    stk_graph *g = stk_custom_graph(c);
    stk_val x = stk_custom_input(c, 0);
    stk_host_result like = {.dtype = stk_g_dtype(g, x), .rank = stk_g_rank(g, x)};
    (void)context;
    for (int32_t i = 0; i < like.rank; i++) like.shape[i] = stk_g_dim(g, x, i);
    stk_custom_output(c, 0, stk_g_host(g, &host, 1, &x, 1, &like));
}

/* Something that the device does have, and that costs next to nothing. */
static void build_native(stk_custom_call *c, void *context)
{
    (void)context;
    stk_custom_output(c, 0, stk_g_leaky_relu(stk_custom_graph(c), stk_custom_input(c, 0), 0.1));
}

static void put_numbers(stk_tensor *t)
{
    uint32_t state = 1;
    for (int64_t i = 0; i < stk_tensor_count(t); i++) {
        state = state * 1664525u + 1013904223u;
        ((float *)t->data)[i] = (float)(state >> 8) * 0x1p-23f - 1;
    }
}

/* Both functions alone, on arrays of this many elements. */
static double time_functions(int64_t count)
{
    stk_error err;
    stk_tensor *t[4];
    double best = INFINITY;
    for (int i = 0; i < 4; i++)
        if (stk_tensor_new(STK_F32, 1, &count, &t[i], &err)) fail("functions", &err);
    for (int i = 0; i < 2; i++) put_numbers(t[i]); /* what branches do hangs on them */
    for (int i = 0; i < 30; i++) {
        int64_t start = stk_now_ns();
        forward(NULL, 1, (const stk_tensor *const *)t, 1, t + 2);
        backward(NULL, 2, (const stk_tensor *const *)t, 1, t + 3);
        best = fmin(best, (double)(stk_now_ns() - start) * 1e-9);
    }
    for (int i = 0; i < 4; i++) stk_tensor_release(t[i]);
    return best;
}

/* ---- nets ------------------------------------------------------------------------------------------------ */

typedef struct net {
    const char *name, *before, *after; /* layers, one a line; the host's stands between them */
    int32_t rank;
    int64_t shape[3], batch, count; /* count: elements of a row that go through the layer */
} net;

static const net nets[] = {
    {"mlp, batch 32", "Input(shape=(784,))\nDense(128)", "Dense(10)", 1, {784}, 32, 128},
    {"mlp, batch 512", "Input(shape=(784,))\nDense(512)", "Dense(10)", 1, {784}, 512, 512},
    {"cnn, batch 8",
     "Input(shape=(24, 24, 1))\nConv2D(16, 3, padding=same)",
     "MaxPooling2D()\nConv2D(32, 3)\nFlatten()\nDense(10)",
     3,
     {24, 24, 1},
     8,
     24 * 24 * 16},
    {"cnn, batch 64",
     "Input(shape=(24, 24, 1))\nConv2D(16, 3, padding=same)",
     "MaxPooling2D()\nConv2D(32, 3)\nFlatten()\nDense(10)",
     3,
     {24, 24, 1},
     64,
     24 * 24 * 16},
};

typedef struct training {
    stk_model *model;
    stk_trainer *trainer;
    stk_program *program;
    stk_tensor *x, *y;
} training;

static void add_layers(stk_model *m, const char *layers)
{
    char text[512], *rest = NULL;
    snprintf(text, sizeof text, "%s", layers);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        stk_model_add(m, line);
}

static void prepare(const net *n, stk_device *d, bool host, training *t)
{
    stk_error err;
    stk_trainer_options how = stk_trainer_defaults();
    int64_t shape[4] = {n->batch, n->shape[0], n->shape[1], n->shape[2]};
    *t = (training){0};
    if (stk_model_new("m", &t->model, &err)) fail(n->name, &err);
    add_layers(t->model, n->before);
    stk_model_add_custom(t->model, &(stk_custom){.class_name = host ? "OnTheHost" : "Native",
                                                 .build = host ? build_host : build_native});
    add_layers(t->model, n->after);
    if (stk_model_build(t->model, 0, NULL, &err)) fail(n->name, &err);
    how.device = d;
    how.optimizer = "adam:lr=1e-4";
    how.loss = "sparse_categorical_crossentropy:from_logits=true";
    if (stk_tensor_new(STK_F32, n->rank + 1, shape, &t->x, &err) ||
        stk_tensor_new(STK_I32, 1, shape, &t->y, &err) ||
        stk_trainer_new(t->model, &how, &t->trainer, &err))
        fail(n->name, &err);
    put_numbers(t->x);
    stk_train_data data = {.nx = 1, .x = &t->x, .ny = 1, .y = &t->y};
    if (stk_trainer_compile(t->trainer, &data, n->batch, &t->program, &err)) fail(n->name, &err);
}

static void drop(training *t)
{
    stk_trainer_release(t->trainer);
    stk_model_release(t->model);
    stk_tensor_release(t->x);
    stk_tensor_release(t->y);
}

/* ---- measuring ------------------------------------------------------------------------------------------- */

/* Seconds of a step, asked for without waiting in between. */
static double turn(training *t, stk_device *d, int64_t steps)
{
    stk_error err;
    int64_t start = stk_now_ns();
    for (int64_t i = 0; i < steps; i++)
        if (stk_program_run(t->program, 1, &err)) fail("step", &err);
    if (d->vt->queue.wait(d, &err)) fail("step", &err);
    return (double)(stk_now_ns() - start) * 1e-9 / (double)steps;
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

enum { TURNS = 31 };

static void compare(const net *n, stk_device *d, const stk_calibration *c, bool list)
{
    training with, without;
    stk_island row[8];
    double slow[TURNS], fast[TURNS];
    prepare(n, d, true, &with);
    prepare(n, d, false, &without);
    int32_t islands = stk_program_islands(with.program, 8, row);
    double roads =
        stk_program_predict(with.program, c, NULL) - stk_program_predict(without.program, c, NULL);
    double own = time_functions(n->batch * n->count);
    double each = turn(&with, d, 20);
    int64_t steps = (int64_t)fmin(fmax(0.008 / each, 1), 1000);
    (void)turn(&without, d, steps);
    for (int i = 0; i < TURNS; i++) {
        slow[i] = turn(&with, d, steps);
        fast[i] = turn(&without, d, steps);
    }
    qsort(slow, TURNS, sizeof *slow, by_size);
    qsort(fast, TURNS, sizeof *fast, by_size);
    double said = roads + own, cost = slow[TURNS / 2] - fast[TURNS / 2];
    printf("%-15s step %8.3f ms, native %8.3f; %d islands: said %8.3f ms (%.3f of it the "
           "functions), cost %8.3f: off by %+.0f %%\n",
           n->name, slow[TURNS / 2] * 1e3, fast[TURNS / 2] * 1e3, islands, said * 1e3, own * 1e3,
           cost * 1e3, 100 * (said / cost - 1));
    for (int32_t i = 0; list && i < islands && i < 8; i++)
        printf("    %s %s of %s: %s; %lld bytes down, %lld up, %.3f ms\n", row[i].op, row[i].shape,
               row[i].name, row[i].reason, (long long)row[i].bytes_down, (long long)row[i].bytes_up,
               1e3 * stk_island_predict(&row[i], i == 0 || row[i].number != row[i - 1].number, c));
    drop(&with);
    drop(&without);
}

int main(int argc, char **argv)
{
    const char *devices[8] = {"opencl:0"};
    int n = 0;
    bool again = false;
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--calibrate"))
            again = true;
        else if (n < 8)
            devices[n++] = argv[i];
    for (int i = 0; i < (n ? n : 1); i++) {
        stk_device *d = NULL;
        stk_calibration c;
        stk_error err;
        if (stk_device_open(devices[i], 0, &d, &err) || stk_device_calibrate(d, again, &c, &err))
            fail(devices[i], &err);
        printf("%s: crossing over and back:", devices[i]);
        for (int k = 0; k < STK_PACE_POINTS && c.crossing.work[k] > 0; k++)
            printf(" %.3f ms for %.0f kB,", c.crossing.seconds[k] * 1e3, c.crossing.work[k] * 1e-3);
        printf(" a copy %.2f GB/s down, %.2f up\n", c.down * 1e-9, c.up * 1e-9);
        for (size_t k = 0; k < sizeof nets / sizeof *nets; k++) compare(&nets[k], d, &c, k == 0);
        stk_device_release(d);
    }
    return 0;
}
