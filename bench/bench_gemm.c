// Matrix products shape by shape: every implementation of the gemm kernel id, on 1 thread and on the
// pool, against the multiply-add peak of this machine. For people who work on those kernels.
//
//     bench_gemm [--seconds S] [--threads T] [--bf16] [--zeros P] [--only NAME]
//                [MxNxK[t][T][a][b] ...]
//
// t: a transposed, T: b transposed; a, b: P of 100 numbers of that operand are zero (50).
// --bf16: matrices of bfloat16; the share is still that of the peak of float32.
//
// The implementations take turns, slice by slice, so that a disturbed moment hits all of them. The
// fastest slice counts (the machine may be busy with other things), the lower quartile stands beside it.
#include "device/launch.h"

#include "base/clock.h"
#include "device/cpu/cpu.h"

enum { MAX_IMPLS = 8, MAX_SLICES = 4096, PEAK_CHAINS = 12 };

typedef struct bench_shape {
    int64_t m, n, k;
    int ta, tb;
    int zeros;
} bench_shape;

static const bench_shape key_shapes[] = {
    {10, 128, 100, 0, 0, 0},     {10, 10, 128, 0, 0, 0},   {100, 128, 10, 1, 0, 0},
    {128, 10, 10, 1, 0, 0},      {10, 128, 10, 0, 1, 0},   {32, 128, 100, 0, 0, 0},
    {32, 10, 128, 0, 0, 0},      {100, 128, 32, 1, 0, 0},  {128, 10, 32, 1, 0, 0},
    {32, 128, 10, 0, 1, 0},      {10, 10, 10, 0, 0, 0},    {512, 256, 128, 0, 0, 0},
    {512, 128, 256, 0, 0, 0},    {512, 1, 128, 0, 0, 0},   {256, 128, 512, 1, 0, 0},
    {128, 256, 512, 1, 0, 0},    {128, 1, 512, 1, 0, 0},   {512, 128, 1, 0, 1, 0},
    {512, 256, 128, 0, 1, 0},    {512, 128, 256, 0, 1, 0}, {32, 10, 30752, 0, 0, 0},
    {30752, 10, 32, 1, 0, 0},    {32, 30752, 10, 0, 1, 0}, {512, 512, 512, 0, 0, 0},
    {1024, 1024, 1024, 0, 0, 0},
};

// ---- the peak --------------------------------------------------------------------------------------

#define PEAK(name, isa, bytes)                                                                     \
    __attribute__((target(isa), noinline)) static double name(int64_t repeats)                     \
    {                                                                                              \
        typedef float vector __attribute__((vector_size(bytes)));                                  \
        vector r[PEAK_CHAINS], x = (vector){0} + 0.999f, y = (vector){0} + 0.001f;                 \
        _Pragma("GCC unroll 12") for (int i = 0; i < PEAK_CHAINS; i++) r[i] = x * (float)i;        \
        int64_t begin = stk_now_ns();                                                              \
        for (int64_t n = 0; n < repeats; n++) {                                                    \
            _Pragma("GCC unroll 12") for (int i = 0; i < PEAK_CHAINS; i++) r[i] = r[i] * x + y;    \
        }                                                                                          \
        for (int i = 1; i < PEAK_CHAINS; i++) r[0] += r[i];                                        \
        volatile float sink = r[0][0];                                                             \
        (void)sink;                                                                                \
        double flops = 2.0 * PEAK_CHAINS * (bytes / 4) * (double)repeats;                          \
        return flops / (double)(stk_now_ns() - begin);                                             \
    }
#if defined(__x86_64__)
PEAK(peak_avx512, "avx512f", 64)
PEAK(peak_avx2, "avx2,fma", 32)
PEAK(peak_base, "sse2", 16)
#endif

static double measured_peak(void)
{
    double best = 0;
#if defined(__x86_64__)
    double (*run)(int64_t) = __builtin_cpu_supports("avx512f") ? peak_avx512
                             : __builtin_cpu_supports("fma")   ? peak_avx2
                                                               : peak_base;
    for (int i = 0; i < 200; i++) {
        double rate = run(20000);
        if (rate > best) best = rate;
    }
#endif
    return best;
}

static stk_dtype dtype = STK_F32;
static double zeros_percent = 50;
static const char *only; // this implementation, NULL: all

// ---- one shape --------------------------------------------------------------------------------------

typedef struct contender {
    stk_device *device;
    stk_launch launch;
    double slice[MAX_SLICES]; // ns per run
} contender;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void run_slice(contender *c, int64_t repeats, int slice)
{
    int64_t begin = stk_now_ns();
    for (int64_t i = 0; i < repeats; i++) stk_cpu_run((const stk_cpu *)c->device, &c->launch, 1, 0);
    c->slice[slice] = (double)(stk_now_ns() - begin) / (double)repeats;
}

static void nothing(void *context, int64_t part, int32_t thread)
{
    (void)context, (void)part, (void)thread;
}

// A pool that met other programs on its processors sleeps early for a while; this wins its patience back.
static void calm(stk_device *device)
{
    for (int i = 0; i < 700; i++) stk_pool_run(((stk_cpu *)device)->pool, nothing, NULL, 2);
}

static int contenders(contender *list, const stk_gemm *g, void **arg, int32_t threads)
{
    stk_device *device = launch_device(threads);
    int32_t n = 0;
    int count = 0;
    const stk_impl *const *impls = stk_cpu_impls((const stk_cpu *)device, STK_K_GEMM, &n);
    for (int32_t i = 0; i < n && count < MAX_IMPLS; i++) {
        if (!strcmp(impls[i]->name, "ref") || (impls[i]->supports && !impls[i]->supports(g)))
            continue;
        if (only && strcmp(impls[i]->name, only)) continue;
        contender *c = &list[count];
        c->device = device;
        if (launch_prepare(&c->launch, device, STK_K_GEMM, impls[i]->name, g, arg, 3, 0)) count++;
    }
    return count;
}

static void report(contender *c, const stk_gemm *g, int slices, double peak, int32_t threads)
{
    double flops = 2.0 * (double)g->m * (double)g->n * (double)g->k;
    qsort(c->slice, (size_t)slices, sizeof *c->slice, by_value);
    printf("  %-11s %10.3f %10.3f %7.1f %4.0f%% %5d\n", c->launch.impl->name, c->slice[0] / 1e3,
           c->slice[slices / 4] / 1e3, flops / c->slice[0],
           peak > 0 ? 100 * flops / c->slice[0] / peak / threads : 0, c->launch.parts);
}

static void bench(const bench_shape *s, int32_t threads, double seconds, double peak)
{
    static contender list[MAX_IMPLS];
    stk_gemm g = {.m = s->m, .n = s->n, .k = s->k, .batch = 1, .ta = s->ta, .tb = s->tb};
    g.lda = g.ta ? g.m : g.k;
    g.ldb = g.tb ? g.k : g.n;
    g.ldc = g.n;
    g.dtype = dtype;
    g.zeros = s->zeros;
    int64_t sizes[] = {g.m * g.k, g.k * g.n, g.m * g.n};
    void *arg[3];
    uint64_t seed = 1;
    for (int i = 0; i < 3; i++) {
        float *x = arg[i] = stk_alloc_pages((size_t)sizes[i] * 4);
        for (int64_t j = 0; dtype == STK_F32 && j < sizes[i]; j++)
            x[j] = (float)launch_uniform(&seed, -1, 1);
        for (int64_t j = 0; i < 2 && (s->zeros & 1 << i) && j < sizes[i]; j++)
            if (launch_uniform(&seed, 0, 100) < zeros_percent) x[j] = 0;
    }
    int count = contenders(list, &g, arg, threads), slices = 0;
    double flops = 2.0 * (double)g.m * (double)g.n * (double)g.k;
    int64_t repeats = (int64_t)(20000.0 / (flops / 60.0 + 30.0)) + 1;
    for (int i = 0; i < count; i++) run_slice(&list[i], repeats, 0);
    int64_t begin = stk_now_ns();
    while (slices < MAX_SLICES && (slices < 8 || (double)(stk_now_ns() - begin) < seconds * 1e9)) {
        if (threads > 1) calm(launch_device(threads));
        for (int i = 0; i < count; i++) run_slice(&list[i], repeats, slices);
        slices++;
    }
    printf("%lldx%lldx%lld%s%s, %d thread%s\n", (long long)g.m, (long long)g.n, (long long)g.k,
           g.ta ? " a'" : "", g.tb ? " b'" : "", threads, threads > 1 ? "s" : "");
    for (int i = 0; i < count; i++) {
        report(&list[i], &g, slices, peak, threads);
        launch_discard(&list[i].launch);
    }
    for (int i = 0; i < 3; i++) stk_free_pages(arg[i], (size_t)sizes[i] * 4);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    double seconds = 0.5;
    int32_t threads = 2;
    bench_shape asked[64];
    size_t count = 0;
    for (int i = 1; i < argc; i++) {
        long long m, n, k;
        if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
            seconds = atof(argv[++i]);
        else if (!strcmp(argv[i], "--threads") && i + 1 < argc)
            threads = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--bf16"))
            dtype = STK_BF16;
        else if (!strcmp(argv[i], "--only") && i + 1 < argc)
            only = argv[++i];
        else if (!strcmp(argv[i], "--zeros") && i + 1 < argc)
            zeros_percent = atof(argv[++i]);
        else if (sscanf(argv[i], "%lldx%lldx%lld", &m, &n, &k) == 3 && count < 64)
            asked[count++] = (bench_shape){m,
                                           n,
                                           k,
                                           strchr(argv[i], 't') != NULL,
                                           strchr(argv[i], 'T') != NULL,
                                           (strchr(argv[i], 'a') ? STK_ZEROS_A : 0) |
                                               (strchr(argv[i], 'b') ? STK_ZEROS_B : 0)};
        else {
            fprintf(stderr, "bench_gemm [--seconds S] [--threads T] [--bf16] [--zeros P] "
                            "[--only NAME] [MxNxK[t][T][a][b] ...]\n");
            return 2;
        }
    }
    const bench_shape *shapes = count ? asked : key_shapes;
    if (!count) count = sizeof key_shapes / sizeof *key_shapes;
    double peak = measured_peak();
    printf("peak of one thread: %.1f GFLOP/s\n  %-11s %10s %10s %7s %5s %5s\n", peak, "", "best us",
           "quarter us", "GFLOP/s", "peak", "parts");
    for (size_t i = 0; i < count; i++) {
        bench(&shapes[i], 1, seconds, peak);
        if (threads > 1) bench(&shapes[i], threads, seconds, peak);
    }
    return 0;
}
