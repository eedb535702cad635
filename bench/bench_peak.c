// What this machine can do at most: multiply-add rate per instruction set, and memory bandwidth
// for data that fits L1, L2, L3 or none of them, on 1 and on all given threads. bench/run uses it
// for the "limit" column. Prints one JSON object:
//
//   {"threads": 2,
//    "flops":     [{"isa": "avx2", "threads": 1, "gflops": 105.1, "best": 107.8}, ...],
//    "bandwidth": [{"level": "l2", "op": "read", "threads": 1, "bytes": 262144,
//                   "gbs": 101.3, "best": 103.0}, ...]}
//
// "bytes" is the data of one thread; rates are the sum over threads and count bytes read plus
// bytes written by the program (not the lines a cache fetches before they are overwritten).
// The best sample counts as the limit, since disturbance only ever makes it smaller.
#define _GNU_SOURCE
#include "harness.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { MAX_THREADS = 64, SAMPLES = 9, ACCUMULATORS = 12 };

// A kernel repeats its work `repeats` times over the buffers of one thread.
typedef struct work {
    float *a, *b, *c; // bandwidth only
    size_t floats;    // per buffer
    int64_t repeats;
} work;
typedef void (*kernel)(const work *w);

static volatile float sink; // keeps results alive

// ---- multiply-add kernels: 12 independent chains hide the latency of every known core --------
// Each chain starts at another value: equal ones would be merged into one by the compiler.

#define FOR_ACCUMULATORS(DO)                                                                       \
    DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)

#define FMA_KERNEL(NAME, ATTRIBUTES, VECTOR, SET, STEP, ADD, LANE)                                 \
    ATTRIBUTES static void NAME(const work *w)                                                     \
    {                                                                                              \
        const VECTOR x = SET(0.999f), y = SET(0.001f);                                             \
        VECTOR r[ACCUMULATORS];                                                                    \
        FOR_ACCUMULATORS(START)                                                                    \
        for (int64_t i = 0; i < w->repeats; i++) {                                                 \
            FOR_ACCUMULATORS(STEP)                                                                 \
        }                                                                                          \
        VECTOR sum = x;                                                                            \
        FOR_ACCUMULATORS(ADD)                                                                      \
        sink = LANE(sum);                                                                          \
    }

#if defined(__x86_64__)
#define BUILT_FOR(isa) __attribute__((target(isa), noinline))

#define START(i)    r[i] = _mm_set1_ps(0.1f * (i + 1));
#define SSE_STEP(i) r[i] = _mm_add_ps(_mm_mul_ps(r[i], x), y);
#define SSE_ADD(i)  sum = _mm_add_ps(sum, r[i]);
FMA_KERNEL(fma_sse2, BUILT_FOR("sse2"), __m128, _mm_set1_ps, SSE_STEP, SSE_ADD, _mm_cvtss_f32)
#undef START

#define START(i)     r[i] = _mm256_set1_ps(0.1f * (i + 1));
#define AVX2_STEP(i) r[i] = _mm256_fmadd_ps(r[i], x, y);
#define AVX2_ADD(i)  sum = _mm256_add_ps(sum, r[i]);
FMA_KERNEL(fma_avx2, BUILT_FOR("avx2,fma"), __m256, _mm256_set1_ps, AVX2_STEP, AVX2_ADD,
           _mm256_cvtss_f32)
#undef START

#define START(i)       r[i] = _mm512_set1_ps(0.1f * (i + 1));
#define AVX512_STEP(i) r[i] = _mm512_fmadd_ps(r[i], x, y);
#define AVX512_ADD(i)  sum = _mm512_add_ps(sum, r[i]);
FMA_KERNEL(fma_avx512, BUILT_FOR("avx512f"), __m512, _mm512_set1_ps, AVX512_STEP, AVX512_ADD,
           _mm512_cvtss_f32)

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
static bool has_avx512(void) { return __builtin_cpu_supports("avx512f"); }
#else
// Any other machine: 16-byte vectors, which the compiler contracts to its multiply-add.
typedef float vec4 __attribute__((vector_size(16)));
#define SET4(v)     ((vec4){v, v, v, v})
#define START(i)    r[i] = SET4(0.1f * (i + 1));
#define VEC_STEP(i) r[i] = r[i] * x + y;
#define VEC_ADD(i)  sum += r[i];
#define VEC_LANE(v) (v)[0]
FMA_KERNEL(fma_generic, __attribute__((noinline)), vec4, SET4, VEC_STEP, VEC_ADD, VEC_LANE)
static bool has_avx2(void) { return false; }
#endif

static bool always(void) { return true; }

static const struct {
    const char *isa;
    kernel run;
    int lanes;
    bool (*usable)(void);
} fma_kernels[] = {
#if defined(__x86_64__)
    {"sse2", fma_sse2, 4, always},
    {"avx2", fma_avx2, 8, has_avx2},
    {"avx512", fma_avx512, 16, has_avx512},
#else
    {"generic", fma_generic, 4, always},
#endif
};

// ---- bandwidth kernels: one body, built for the baseline and for AVX2 ------------------------

typedef float vec8 __attribute__((vector_size(32)));

#define FOR_EACH_REPEAT for (int64_t repeat = 0; repeat < w->repeats; repeat++)
// Data may have changed: repeats are not merged. And: this loop is not a call of memcpy.
#define FORGET_MEMORY __asm__ volatile("" : : : "memory")
#define KEEP_LOOP     __asm__ volatile("")

#define STREAM_KERNEL(NAME, ATTRIBUTES, EXPRESSION)                                                \
    ATTRIBUTES static void NAME(const work *w)                                                     \
    {                                                                                              \
        vec8 *a = (vec8 *)(void *)w->a;                                                            \
        const vec8 *b = (const vec8 *)(const void *)w->b, *c = (const vec8 *)(const void *)w->c;   \
        (void)c;                                                                                   \
        FOR_EACH_REPEAT                                                                            \
        {                                                                                          \
            for (size_t i = 0; i < w->floats / 8; i += 4) {                                        \
                a[i] = EXPRESSION(i), a[i + 1] = EXPRESSION(i + 1);                                \
                a[i + 2] = EXPRESSION(i + 2), a[i + 3] = EXPRESSION(i + 3);                        \
                KEEP_LOOP;                                                                         \
            }                                                                                      \
            FORGET_MEMORY;                                                                         \
        }                                                                                          \
    }
#define COPY_OF(i)  b[i]
#define TRIAD_OF(i) (b[i] + 0.5f * c[i])

#define READ_KERNEL(NAME, ATTRIBUTES)                                                              \
    ATTRIBUTES static void NAME(const work *w)                                                     \
    {                                                                                              \
        vec8 s0 = {0}, s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;              \
        FOR_EACH_REPEAT                                                                            \
        {                                                                                          \
            const vec8 *p = (const vec8 *)(const void *)w->a;                                      \
            for (const vec8 *end = p + w->floats / 8; p < end; p += 8) {                           \
                s0 += p[0], s1 += p[1], s2 += p[2], s3 += p[3];                                    \
                s4 += p[4], s5 += p[5], s6 += p[6], s7 += p[7];                                    \
            }                                                                                      \
            FORGET_MEMORY;                                                                         \
        }                                                                                          \
        s0 += s1 + s2 + s3 + s4 + s5 + s6 + s7;                                                    \
        sink = s0[0];                                                                              \
    }

#define STREAM_KERNELS(ISA, ATTRIBUTES)                                                            \
    READ_KERNEL(read_##ISA, ATTRIBUTES)                                                            \
    STREAM_KERNEL(copy_##ISA, ATTRIBUTES, COPY_OF)                                                 \
    STREAM_KERNEL(triad_##ISA, ATTRIBUTES, TRIAD_OF)

STREAM_KERNELS(base, __attribute__((noinline)))

static void copy_memcpy(const work *w)
{
    FOR_EACH_REPEAT
    {
        memcpy(w->a, w->b, w->floats * sizeof(float));
        FORGET_MEMORY;
    }
}

#if defined(__x86_64__)
STREAM_KERNELS(avx2, BUILT_FOR("avx2,fma"))

__attribute__((target("avx2,fma"))) static void copy_nt_avx2(const work *w)
{
    FOR_EACH_REPEAT
    {
        for (size_t i = 0; i < w->floats; i += 8)
            _mm256_stream_ps(w->a + i, _mm256_load_ps(w->b + i));
        _mm_sfence();
    }
}
#else
#define read_avx2    read_base
#define copy_avx2    copy_base
#define triad_avx2   triad_base
#define copy_nt_avx2 copy_base
#endif

static const struct {
    const char *op;
    kernel base, avx2;
    int streams; // floats moved per element: read 1, copy 2, triad 3
} stream_kernels[] = {
    {"read", read_base, read_avx2, 1},
    {"copy", copy_base, copy_avx2, 2},
    {"copy_memcpy", copy_memcpy, copy_memcpy, 2},
    {"copy_nt", NULL, copy_nt_avx2, 2}, // non-temporal stores
    {"triad", triad_base, triad_avx2, 3},
};

// ---- running a kernel on several threads at once ---------------------------------------------

typedef struct worker {
    pthread_t thread;
    kernel run;
    work work;
    atomic_int *gate; // counts arrivals; all start when it reaches `threads`
    int index, threads;
    double start, end;
} worker;

// One core per thread: left alone, both may share one for the short time a sample takes.
static void stay_on_core(int index)
{
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed) || CPU_COUNT(&allowed) == 0) return;
    index %= CPU_COUNT(&allowed);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || index-- > 0) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        (void)pthread_setaffinity_np(pthread_self(), sizeof one, &one);
        return;
    }
}

static void *worker_main(void *argument)
{
    worker *w = argument;
    stay_on_core(w->index);
    work warm = w->work;
    warm.repeats = 1;
    w->run(&warm);
    atomic_fetch_add(w->gate, 1);
    while (atomic_load(w->gate) < w->threads) sched_yield();
    w->start = bench_now();
    w->run(&w->work);
    w->end = bench_now();
    return NULL;
}

// -> seconds from the first start to the last end, or a negative number
static double run_together(kernel run, const work *per_thread, int threads, int64_t repeats)
{
    static worker workers[MAX_THREADS];
    atomic_int gate = 0;
    int started = 0;
    for (; started < threads; started++) {
        worker *w = &workers[started];
        *w = (worker){.run = run,
                      .work = per_thread[started],
                      .gate = &gate,
                      .index = started,
                      .threads = threads};
        w->work.repeats = repeats;
        if (pthread_create(&w->thread, NULL, worker_main, w)) break;
    }
    // Those that run wait for the missing ones; let them go before giving up.
    if (started < threads) atomic_fetch_add(&gate, threads);
    double start = 0, end = 0;
    for (int i = 0; i < started; i++) {
        pthread_join(workers[i].thread, NULL);
        start = i && start < workers[i].start ? start : workers[i].start;
        end = end > workers[i].end ? end : workers[i].end;
    }
    return started == threads ? end - start : -1;
}

// -> seconds per repeat; median and best (smallest) over the samples
static bench_summary measure(kernel run, const work *per_thread, int threads, double seconds)
{
    bench_samples samples = {0};
    int64_t repeats = 1;
    double slice = seconds / SAMPLES, took = 0;
    while ((took = run_together(run, per_thread, threads, repeats)) < slice / 2 && took >= 0)
        repeats *= 2;
    if (took > 0 && took < slice) repeats = (int64_t)((double)repeats * slice / took);
    for (int i = 0; i < SAMPLES && took >= 0; i++) {
        took = run_together(run, per_thread, threads, repeats);
        samples.value[samples.count++] = took / (double)repeats;
    }
    if (took < 0) samples.count = 0;
    return bench_summarize(&samples);
}

static void print_flops(int threads, double seconds, const char **comma)
{
    static const work nothing[MAX_THREADS];
    for (size_t i = 0; i < sizeof fma_kernels / sizeof *fma_kernels; i++) {
        if (!fma_kernels[i].usable()) continue;
        bench_summary s = measure(fma_kernels[i].run, nothing, threads, seconds);
        double gflop = 2e-9 * fma_kernels[i].lanes * ACCUMULATORS * threads;
        printf("%s\n    {\"isa\": \"%s\", \"threads\": %d, \"gflops\": %.1f, \"best\": %.1f}",
               *comma, fma_kernels[i].isa, threads, s.median > 0 ? gflop / s.median : 0,
               s.best > 0 ? gflop / s.best : 0);
        *comma = ",";
    }
}

// ---- buffers and cache sizes -------------------------------------------------------------------

typedef struct level {
    const char *name;
    size_t bytes; // for all buffers of one thread together
} level;

// Asked from sysfs, since sysconf() multiplies L3 by the sockets' core complexes on some CPUs.
static size_t cache_size(int wanted_level, size_t otherwise)
{
    size_t found = 0;
    for (int i = 0; i < 8; i++) {
        char path[96], type[32] = "", unit = 'K';
        int at_level = 0;
        unsigned long size = 0;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/", i);
        size_t stem = strlen(path);
        const char *names[] = {"level", "type", "size"};
        for (int n = 0; n < 3; n++) {
            snprintf(path + stem, sizeof path - stem, "%s", names[n]);
            FILE *f = fopen(path, "r");
            if (!f) continue;
            int got = n == 0   ? fscanf(f, "%d", &at_level)
                      : n == 1 ? fscanf(f, "%31s", type)
                               : fscanf(f, "%lu%c", &size, &unit);
            if (got < 1) size = 0;
            fclose(f);
        }
        bool data = strcmp(type, "Instruction") != 0;
        if (at_level == wanted_level && data) found = size << (unit == 'M' ? 20 : 10);
    }
    return found ? found : otherwise;
}

static void choose_levels(level out[4], int threads)
{
    size_t l1 = cache_size(1, 32 << 10);
    size_t l2 = cache_size(2, 512 << 10);
    size_t l3 = cache_size(3, 8 << 20);
    size_t n = (size_t)threads;
    // A virtual machine owns only a part of a big shared L3: stay well inside it, and well
    // outside of it for main memory, within 1 GiB.
    size_t l3_part = l3 / 4 < 4 * l2 ? 4 * l2 : l3 / 4;
    if (l3_part > 32u << 20) l3_part = 32u << 20;
    size_t dram = 4 * l3 > 256u << 20 ? 4 * l3 : 256u << 20;
    if (dram > 1u << 30) dram = 1u << 30;
    out[0] = (level){"l1", l1 / 2};
    out[1] = (level){"l2", l2 / 2};
    out[2] = (level){"l3", l3_part / n};
    out[3] = (level){"dram", dram / n};
}

static float *map_floats(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    (void)madvise(p, bytes, MADV_HUGEPAGE);
    memset(p, 0, bytes);
    return p;
}

// The buffers of one thread lie 64 KiB + one line apart, so that equal offsets do not meet in
// the same cache set.
static void divide(float *base, size_t floats_total, int streams, work *w)
{
    enum { GAP = (64 * 1024 + 256) / sizeof(float) };
    size_t each = floats_total / (size_t)streams / 64 * 64;
    *w = (work){.a = base, .floats = each};
    w->b = w->a + each + GAP;
    w->c = w->b + each + GAP;
}

static void print_bandwidth(const level *l, float *base, int threads, double seconds,
                            const char **comma)
{
    size_t share = l->bytes + (1 << 20);
    for (size_t k = 0; k < sizeof stream_kernels / sizeof *stream_kernels; k++) {
        work per_thread[MAX_THREADS];
        kernel run = has_avx2() ? stream_kernels[k].avx2 : stream_kernels[k].base;
        if (!run) continue;
        for (int t = 0; t < threads; t++) {
            float *mine = base + (size_t)t * (share / sizeof(float));
            divide(mine, l->bytes / sizeof(float), stream_kernels[k].streams, &per_thread[t]);
        }
        bench_summary s = measure(run, per_thread, threads, seconds);
        double gb = 4e-9 * (double)per_thread[0].floats * stream_kernels[k].streams * threads;
        printf("%s\n    {\"level\": \"%s\", \"op\": \"%s\", \"threads\": %d, \"bytes\": %zu, "
               "\"gbs\": %.1f, \"best\": %.1f}",
               *comma, l->name, stream_kernels[k].op, threads, l->bytes,
               s.median > 0 ? gb / s.median : 0, s.best > 0 ? gb / s.best : 0);
        *comma = ",";
    }
}

static int print_all(int threads, double seconds)
{
    level levels[4];
    choose_levels(levels, threads);
    size_t whole = (size_t)threads * (levels[3].bytes + (1 << 20)) + (4 << 20);
    float *base = map_floats(whole);
    if (!base) {
        fprintf(stderr, "bench_peak: no %zu MB for the bandwidth buffers\n", whole >> 20);
        return 1;
    }
    const char *comma = "";
    printf("{\"threads\": %d,\n  \"flops\": [", threads);
    for (int t = 1; t <= threads; t = t < threads ? threads : t + 1) {
        print_flops(t, seconds, &comma);
    }
    printf("],\n  \"bandwidth\": [");
    comma = "";
    for (int l = 0; l < 4; l++) {
        for (int t = 1; t <= threads; t = t < threads ? threads : t + 1) {
            print_bandwidth(&levels[l], base, t, seconds, &comma);
        }
    }
    printf("]}\n");
    munmap(base, whole);
    return 0;
}

int main(int argc, char **argv)
{
    double seconds = 0.10;
    int threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seconds") == 0)
            seconds = strtod(argv[i + 1], NULL);
        else if (strcmp(argv[i], "--threads") == 0)
            threads = (int)strtol(argv[i + 1], NULL, 10);
        else
            argc = 0;
    }
    if (argc % 2 == 0 || seconds <= 0 || threads < 1 || threads > MAX_THREADS) {
        fprintf(stderr, "usage: bench_peak [--seconds PER_FIGURE] [--threads 1..%d]\n",
                MAX_THREADS);
        return 2;
    }
    return print_all(threads, seconds);
}
