// One product or one convolution (forward and both gradients) on several devices by turns:
//
//     bench_device [--rounds N] cpu:0 opencl:0 ...
//
// Prints the best time of each device and, behind the first, its share of the first one's pace. A turn is several runs
// and one wait, so that launches of a queue overlap as they do in training.
#include "stoker/stoker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 8, RUNS = 4 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef struct job {
    const char *name;
    double flops;
    stk_graph *(*build)(void);
} job;

static stk_graph *product(void)
{
    enum { N = 1024 };
    stk_graph *g = NULL;
    if (stk_graph_new(&g, NULL) != STK_OK) exit(1);
    stk_val a = stk_g_variable(g, "a", STK_F32, 2, (int64_t[]){N, N});
    stk_val b = stk_g_variable(g, "b", STK_F32, 2, (int64_t[]){N, N});
    stk_g_output(g, "y", stk_g_matmul(g, a, b));
    return g;
}

enum { IMAGES = 32, SIDE = 28, IN = 32, OUT = 64 };

static stk_graph *convolution(void)
{
    stk_graph *g = NULL;
    if (stk_graph_new(&g, NULL) != STK_OK) exit(1);
    stk_val x = stk_g_variable(g, "x", STK_F32, 4, (int64_t[]){IMAGES, SIDE, SIDE, IN});
    stk_val w = stk_g_variable(g, "w", STK_F32, 4, (int64_t[]){3, 3, IN, OUT});
    stk_conv_options o = stk_conv_options_defaults();
    stk_val y = stk_g_conv(g, x, w, &o), wrt[2] = {x, w}, d[2];
    stk_val loss = stk_g_sum(g, stk_g_mul(g, y, y), 0, NULL, false);
    stk_g_gradients(g, loss, 2, wrt, d);
    stk_g_output(g, "y", loss);
    stk_g_output(g, "dx", d[0]);
    stk_g_output(g, "dw", d[1]);
    return g;
}

static double turn(stk_program *p)
{
    stk_tensor *t = NULL;
    double start = now();
    if (stk_program_run(p, RUNS, NULL) != STK_OK || stk_program_read(p, "y", &t, NULL) != STK_OK)
        exit(1);
    stk_tensor_release(t);
    return (now() - start) / RUNS;
}

static void measure(const job *j, int n, char **names, int rounds)
{
    stk_program *p[MOST] = {0};
    stk_device *device[MOST] = {0};
    double best[MOST];
    stk_error err;
    for (int i = 0; i < n; i++) {
        stk_graph *g = j->build();
        stk_program_options o = stk_program_options_defaults();
        best[i] = 1e30;
        if (stk_device_open(names[i], 0, &device[i], &err) != STK_OK) goto failed;
        o.device = device[i];
        if (stk_program_new(g, &o, &p[i], &err) != STK_OK) goto failed;
        stk_graph_release(g);
        turn(p[i]);
    }
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < n; i++) {
            double s = turn(p[i]);
            if (s < best[i]) best[i] = s;
        }
    for (int i = 0; i < n; i++) {
        printf("%-12s %-10s %8.2f ms %8.1f GFLOP/s %5.0f %% of %s\n", j->name, names[i],
               best[i] * 1e3, j->flops / best[i] * 1e-9, 100 * best[0] / best[i], names[0]);
        stk_program_release(p[i]);
        stk_device_release(device[i]);
    }
    return;
failed:
    fprintf(stderr, "%s\n", err.message);
    exit(1);
}

int main(int argc, char **argv)
{
    static const job jobs[] = {
        {"gemm 1024", 2.0 * 1024 * 1024 * 1024, product},
        {"conv 3x3", 6.0 * IMAGES * SIDE * SIDE * 9 * IN * OUT, convolution},
    };
    char *names[MOST];
    int n = 0, rounds = 20;
    for (int i = 1; i < argc && n < MOST; i++)
        if (!strcmp(argv[i], "--rounds") && i + 1 < argc)
            rounds = atoi(argv[++i]);
        else
            names[n++] = argv[i];
    if (!n) names[n++] = "cpu:0";
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) measure(&jobs[i], n, names, rounds);
    return 0;
}
