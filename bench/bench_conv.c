// Convolution and pooling kernels one by one: time, rate and share of this machine's multiply-add peak for every
// implementation of the CPU device. Not a row of the benchmark table; for whoever works on the kernels.
//
//     build/bench/bench_conv [threads] [part of a shape's name] [part of an implementation's name] [bfloat16]
//
// The best sample counts, with one thread that of each part: what disturbs only ever makes it slower.
#include "harness.h"

#include "base/memory.h"
#include "device/cpu/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct shape {
    const char *name;
    int64_t n, ic, oc, groups, size, kernel, stride, pad;
} shape;

static const shape shapes[] = {
    {"64x64x3->32", 32, 3, 32, 1, 64, 3, 1, 0},
    {"128x128x3->32", 32, 3, 32, 1, 128, 3, 1, 0},
    {"31x31x32->64", 32, 32, 64, 1, 31, 3, 1, 0},
    {"28x28x1->32", 32, 1, 32, 1, 28, 3, 1, 0},
    {"14x14x64->128 same", 32, 64, 128, 1, 14, 3, 1, 1},
    {"14x14x64->128 stride 2", 32, 64, 128, 1, 14, 3, 2, 1},
    {"7x7x256->256 same", 32, 256, 256, 1, 7, 3, 1, 1},
    {"14x14x256->512 1x1", 32, 256, 512, 1, 14, 1, 1, 0},
    {"32x32x16->3 same", 32, 16, 3, 1, 32, 3, 1, 1},
    {"64x64x32->32 same", 16, 32, 32, 1, 64, 3, 1, 1},
    {"32x32x64->64 same", 16, 64, 64, 1, 32, 3, 1, 1},
    {"16x16x128->128 same", 16, 128, 128, 1, 16, 3, 1, 1},
    {"8x8x256->256 same", 16, 256, 256, 1, 8, 3, 1, 1},
    {"32x32x16->16 same", 32, 16, 16, 1, 32, 3, 1, 1},
    {"4x4x256->256 same", 8, 256, 256, 1, 4, 3, 1, 1},
    {"2x2x512->512 same", 8, 512, 512, 1, 2, 3, 1, 1},
    {"64x64x3->24 stride 2", 32, 3, 24, 1, 64, 3, 2, 1},
    {"96x96x3->16 stride 2", 16, 3, 16, 1, 96, 3, 2, 1},
    {"32x32x3->96 4x4 stride 4", 32, 3, 96, 1, 32, 4, 4, 0},
    {"16x16x24->48 stride 2", 32, 24, 48, 1, 16, 3, 2, 1},
    {"32x32x16->24 stride 2", 32, 16, 24, 1, 32, 3, 2, 1},
    {"depthwise 28x28x64", 32, 64, 64, 64, 28, 3, 1, 1},
    {"depthwise 32x32x24", 32, 24, 24, 24, 32, 3, 1, 1},
    {"depthwise 12x12x96", 16, 96, 96, 96, 12, 3, 1, 1},
    {"depthwise 49x49x48 stride 2", 16, 48, 48, 48, 49, 3, 2, 0},
    {"depthwise 14x14x240 5x5", 16, 240, 240, 240, 14, 5, 1, 2},
    {"depthwise 32x32x48 stride 2", 32, 48, 48, 48, 32, 3, 2, 1},
    {"depthwise 16x16x96", 32, 96, 96, 96, 16, 3, 1, 1},
    {"depthwise 7x7x192", 16, 192, 192, 192, 7, 3, 1, 1},
};

static double peak; // GFLOP/s of one thread

// What one core does when nothing is loaded or stored: enough chains to hide the latency, few enough for the registers.
#define BURN(name, attributes, LANES)                                                              \
    attributes static float name(int64_t n)                                                        \
    {                                                                                              \
        float r[LANES], x = 0.999f, y = 0.001f, sum = 0;                                           \
        for (int i = 0; i < LANES; i++) r[i] = (float)i;                                           \
        for (int64_t k = 0; k < n; k++)                                                            \
            for (int i = 0; i < LANES; i++) r[i] = r[i] * x + y;                                   \
        for (int i = 0; i < LANES; i++) sum += r[i];                                               \
        return sum;                                                                                \
    }
#if defined(__x86_64__)
BURN(burn_avx2, __attribute__((target("avx2,fma"), optimize("O3"))), 96)
BURN(burn_avx512, __attribute__((target("arch=x86-64-v4"), optimize("O3"))), 192)
#endif
BURN(burn_base, __attribute__((optimize("O3"))), 32)

// Time of this thread alone, without what others take from it.
static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Best processor time of each part by itself, added up: good figures on a machine that others use as well.
static double best_of_parts(const stk_launch *l, double seconds)
{
    double best[64], sum = 0, start = bench_now();
    double ready = l->impl->ready ? 1e9 : 0;
    for (int round = 0; round < 3 || bench_now() - start < seconds; round++) {
        const double first = cpu_now();
        for (int64_t i = 0; l->impl->ready && i < l->impl->pieces(l); i++) l->impl->ready(l, i);
        if (cpu_now() - first < ready) ready = cpu_now() - first;
        for (int32_t part = 0; part < l->parts; part++) {
            int64_t lo = l->units * part / l->parts, hi = l->units * (part + 1) / l->parts;
            double begin = cpu_now();
            l->run(l, lo, hi, part);
            double took = cpu_now() - begin;
            if (round == 0 || took < best[part]) best[part] = took;
        }
    }
    for (int32_t part = 0; part < l->parts; part++) sum += best[part];
    double finish = 1e9;
    for (int i = 0; l->impl->finish && i < 20; i++) {
        double begin = cpu_now();
        l->impl->finish(l);
        double took = cpu_now() - begin;
        if (took < finish) finish = took;
    }
    return sum + ready + (l->impl->finish ? finish : 0);
}

typedef struct timed {
    stk_device *device;
    stk_launch *launch;
} timed;

static int run_launch(void *state, int64_t iterations)
{
    timed *t = state;
    for (int64_t i = 0; i < iterations; i++)
        stk_cpu_run((const stk_cpu *)t->device, t->launch, 1, 0);
    return 0;
}

static float *numbers(int64_t n)
{
    float *x = stk_alloc_pages((size_t)n * sizeof *x);
    for (int64_t i = 0; x && i < n; i++) x[i] = (float)(i * 7919 % 1013) / 512 - 1;
    return x;
}

static void report(stk_device *device, const char *what, stk_kernel kernel, const stk_impl *impl,
                   const void *params, void **arg, int args, double flops, double bytes,
                   int threads)
{
    stk_launch l = {
        .run = impl->run, .arg = arg, .params = params, .kernel = (int32_t)kernel, .args = args};
    l.units = impl->units ? impl->units(params) : 1;
    int64_t grain = impl->grain ? impl->grain(params) : 1, most = l.units / stk_max_i64(grain, 1);
    for (l.parts = 1; l.parts * 2 <= most && l.parts < 64;) l.parts *= 2;
    l.scale = 1;
    l.threads = threads;
    l.impl = impl;
    int64_t scratch = stk_impl_memory(impl, params, l.parts, threads);
    stk_launch_give(&l, stk_alloc_pages((size_t)scratch + 1));
    stk_error err = {0};
    if (impl->prepare && impl->prepare(&l, &err) != STK_OK) {
        printf("%-24s %-16s %-8s %s\n", what, stk_kernel_name(kernel), impl->name, err.message);
    } else {
        bench_samples samples;
        bench_time_slices(run_launch, &(timed){device, &l}, 0.4, &samples);
        bench_summary s = bench_summarize(&samples);
        if (threads == 1) s.best = best_of_parts(&l, 0.4);
        printf("%-24s %-16s %-8s %3d %9.1f %9.1f %8.1f %5.0f%% %8.1f\n", what,
               stk_kernel_name(kernel), impl->name, l.parts, s.best * 1e6, s.median * 1e6,
               flops / s.best / 1e9, 100 * flops / s.best / 1e9 / peak / threads,
               bytes / s.best / 1e9);
        fflush(stdout);
    }
    if (impl->discard) impl->discard(&l);
    stk_free_pages(l.scratch, (size_t)scratch + 1);
}

static const char *wanted_impl = "";
static stk_dtype dtype = STK_F32;

static void each_impl(stk_device *device, const char *what, stk_kernel kernel, const void *params,
                      void **arg, int args, double flops, double bytes, int threads)
{
    int32_t n = 0;
    const stk_impl *const *list = stk_cpu_impls((const stk_cpu *)device, kernel, &n);
    for (int32_t i = 0; i < n; i++)
        if ((!list[i]->supports || list[i]->supports(params)) && list[i]->rank < 100 &&
            strstr(list[i]->name, wanted_impl))
            report(device, what, kernel, list[i], params, arg, args, flops, bytes, threads);
}

static void bench_shape(stk_device *device, const shape *s, int threads)
{
    int64_t out = (s->size + 2 * s->pad - s->kernel) / s->stride + 1;
    stk_conv c = {.n = s->n,
                  .ic = s->ic,
                  .oc = s->oc,
                  .groups = s->groups,
                  .in = {1, s->size, s->size},
                  .out = {1, out, out},
                  .kernel = {1, s->kernel, s->kernel},
                  .stride = {1, s->stride, s->stride},
                  .dilation = {1, 1, 1},
                  .low = {0, s->pad, s->pad},
                  .dtype = dtype};
    int64_t x = s->n * s->size * s->size * s->ic, y = s->n * out * out * s->oc;
    int64_t w = s->kernel * s->kernel * (s->ic / s->groups) * s->oc;
    double flops = 2.0 * (double)y * (double)(s->kernel * s->kernel * (s->ic / s->groups));
    double bytes = 4.0 * (double)(x + y + w);
    float *ax = numbers(x), *ay = numbers(y), *aw = numbers(w);
    each_impl(device, s->name, STK_K_CONV, &c, (void *[]){ax, aw, ay}, 3, flops, bytes, threads);
    each_impl(device, s->name, STK_K_CONV_BWD_WEIGHT, &c, (void *[]){ax, ay, aw}, 3, flops, bytes,
              threads);
    each_impl(device, s->name, STK_K_CONV_BWD_DATA, &c, (void *[]){ay, aw, ax}, 3, flops, bytes,
              threads);
    stk_free_pages(ax, (size_t)x * sizeof *ax);
    stk_free_pages(ay, (size_t)y * sizeof *ay);
    stk_free_pages(aw, (size_t)w * sizeof *aw);
}

static void bench_pool(stk_device *device, int threads)
{
    stk_pool_params p = {.n = 32,
                         .c = 32,
                         .in = {1, 62, 62},
                         .out = {1, 31, 31},
                         .window = {1, 2, 2},
                         .stride = {1, 2, 2},
                         .dtype = STK_F32};
    int64_t x = 32 * 62 * 62 * 32, y = 32 * 31 * 31 * 32;
    float *ax = numbers(x), *ay = numbers(y);
    uint8_t *which = stk_alloc_pages((size_t)y);
    const char *name = "pool 62x62x32";
    double flops = (double)x, bytes = 4.0 * (double)(x + y);
    each_impl(device, name, STK_K_MAX_POOL, &p, (void *[]){ax, ay, which}, 3, flops, bytes,
              threads);
    each_impl(device, name, STK_K_MAX_POOL_GRAD, &p, (void *[]){which, ay, ax}, 3, flops, bytes,
              threads);
    each_impl(device, name, STK_K_AVG_POOL, &p, (void *[]){ax, ay}, 2, flops, bytes, threads);
    each_impl(device, name, STK_K_AVG_POOL_GRAD, &p, (void *[]){ay, ax}, 2, flops, bytes, threads);
    stk_free_pages(ax, (size_t)x * sizeof *ax);
    stk_free_pages(ay, (size_t)y * sizeof *ay);
    stk_free_pages(which, (size_t)y);
}

static void measure_peak(void)
{
    float (*burn)(int64_t) = burn_base;
    double flops = 2.0 * 32 * 20000;
    volatile float sink;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) burn = burn_avx2, flops = 2.0 * 96 * 20000;
    if (__builtin_cpu_supports("avx512f")) burn = burn_avx512, flops = 2.0 * 192 * 20000;
#endif
    for (int i = 0; i < 1000; i++) {
        double start = bench_now();
        sink = burn(20000);
        double rate = flops / (bench_now() - start) / 1e9;
        if (rate > peak) peak = rate;
    }
    (void)sink;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    const char *wanted = argc > 2 ? argv[2] : "";
    if (argc > 3) wanted_impl = argv[3];
    if (argc > 4 && !strcmp(argv[4], "bfloat16")) dtype = STK_BF16;
    stk_error err;
    stk_device *device = NULL;
    if (threads < 1 || stk_device_open("cpu:0", threads, &device, &err) != STK_OK) {
        fprintf(stderr, "bench_conv: %s\n",
                threads < 1 ? "the first argument is a number of threads" : err.message);
        return 2;
    }
    measure_peak();
    printf("peak %.1f GFLOP/s per thread, %d thread(s)\n", peak, threads);
    printf("%-24s %-16s %-8s %3s %9s %9s %8s %6s %8s\n", "shape", "kernel", "impl", "cut",
           "best us", "median us", "GFLOP/s", "peak", "GB/s");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (strstr(shapes[i].name, wanted)) bench_shape(device, &shapes[i], threads);
    if (strstr("pool", wanted)) bench_pool(device, threads);
    stk_device_release(device);
    return 0;
}
