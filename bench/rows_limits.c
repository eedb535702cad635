/* What input rows are held against: the plainest program that does the part of the work nobody can leave out, on as many
 * threads, in the same process, right after the row was timed. */
#define _GNU_SOURCE
#include "rows_files.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if STK_HAVE_JPEG
#include <jpeglib.h>
#endif
#if defined(__x86_64__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

enum { MOST_THREADS = 64, ROUNDS = 5 };

typedef struct job {
    pthread_t thread;
    pthread_barrier_t *gate;
    int (*work)(struct job *); /* all of this thread's images, once */
    int index, threads, failed;
    const uint8_t *from;
    float *to;
    int64_t images;
    double seconds[ROUNDS];
    char **files;
    size_t *sizes;
} job;

/* One processor per thread: left alone, both may share one for the short time this takes. */
static void stay_on_processor(int index)
{
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all)) return;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &all) || index-- > 0) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        (void)sched_setaffinity(0, sizeof one, &one);
        return;
    }
}

static void *job_main(void *argument)
{
    job *j = argument;
    stay_on_processor(j->index);
    for (int round = -1; round < ROUNDS; round++) { /* the first one warms up */
        pthread_barrier_wait(j->gate);
        double start = bench_now();
        if (j->work(j)) j->failed = 1;
        pthread_barrier_wait(j->gate);
        if (round >= 0) j->seconds[round] = bench_now() - start;
    }
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* -> median seconds of a round, all threads from the first start to the last end */
static double run_together(job *jobs, int threads)
{
    pthread_barrier_t gate;
    pthread_barrier_init(&gate, NULL, (unsigned)threads);
    int failed = 0, started = 1;
    for (int t = 0; t < threads; t++) {
        jobs[t].gate = &gate;
        jobs[t].index = t;
        jobs[t].threads = threads;
    }
    for (; started < threads; started++)
        if (pthread_create(&jobs[started].thread, NULL, job_main, &jobs[started])) break;
    if (started < threads) { /* the others wait for ever; this program ends with an error anyway */
        fprintf(stderr, "limit: the system refused a thread\n");
        return -1;
    }
    cpu_set_t mine;
    bool known = sched_getaffinity(0, sizeof mine, &mine) == 0;
    job_main(&jobs[0]);
    if (known) (void)sched_setaffinity(0, sizeof mine, &mine);
    for (int t = 1; t < threads; t++) pthread_join(jobs[t].thread, NULL);
    for (int t = 0; t < threads; t++) failed |= jobs[t].failed;
    pthread_barrier_destroy(&gate);
    qsort(jobs[0].seconds, ROUNDS, sizeof(double), by_value);
    return failed ? -1 : jobs[0].seconds[ROUNDS / 2];
}

/* ---- bytes to floats ------------------------------------------------------------------------------------ */

enum { LIMIT_IMAGES = 512, LIMIT_BATCH = 32 };

WIDE static void convert(const uint8_t *restrict from, float *restrict to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = (float)from[i];
}

/* Each thread fills a batch of its own again and again, as large as a pipeline's: it does not fit the caches. */
static int convert_images(job *j)
{
    for (int64_t i = 0; i < j->images; i++)
        convert(j->from + i * BENCH_PIXELS, j->to + i % LIMIT_BATCH * BENCH_PIXELS, BENCH_PIXELS);
    return 0;
}

#if defined(__x86_64__)
#include <immintrin.h>

/* The same with stores past the caches. */
__attribute__((target("avx2"))) static int stream_images(job *j)
{
    if (!__builtin_cpu_supports("avx2")) return convert_images(j);
    for (int64_t i = 0; i < j->images; i++) {
        const uint8_t *from = j->from + i * BENCH_PIXELS;
        float *to = j->to + i % LIMIT_BATCH * BENCH_PIXELS;
        for (int64_t k = 0; k < BENCH_PIXELS; k += 8) {
            if (k % 64 == 0) __builtin_prefetch(from + k + 2048, 0, 0);
            __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)(from + k));
            _mm256_stream_ps(to + k, _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)));
        }
    }
    _mm_sfence();
    return 0;
}
#else
static int stream_images(job *j) { return convert_images(j); }
#endif

static double convert_together(int (*work)(job *), int threads, const uint8_t *from, float *to)
{
    static job jobs[MOST_THREADS];
    int64_t each = LIMIT_IMAGES / threads;
    for (int t = 0; t < threads; t++)
        jobs[t] = (job){.work = work,
                        .from = from + t * each * BENCH_PIXELS,
                        .to = to + (int64_t)t * LIMIT_BATCH * BENCH_PIXELS,
                        .images = each};
    return run_together(jobs, threads) / (double)(each * threads);
}

/* From memory to memory, by the faster of both kinds of stores. */
double bench_limit_convert(int threads)
{
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    size_t source = (size_t)LIMIT_IMAGES * BENCH_PIXELS;
    size_t room = (size_t)threads * LIMIT_BATCH * BENCH_PIXELS * sizeof(float);
    uint8_t *from = malloc(source);
    float *to = aligned_alloc(2 << 20, room);
    double seconds = -1;
    if (from && to) {
        (void)madvise(to, room, MADV_HUGEPAGE);
        memset(to, 0, room);
        for (int64_t i = 0; i < LIMIT_IMAGES; i++) bench_image(i, from + i * BENCH_PIXELS);
        seconds = fmin(convert_together(convert_images, threads, from, to),
                       convert_together(stream_images, threads, from, to));
    }
    free(from);
    free(to);
    return seconds;
}

/* ---- JPEG ------------------------------------------------------------------------------------------------- */

#if STK_HAVE_JPEG
static int decode_photos(job *j)
{
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr errors;
    uint8_t *image = (uint8_t *)j->to;
    d.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&d);
    for (int i = j->index; i < BENCH_PHOTOS; i += j->threads) {
        jpeg_mem_src(&d, (const unsigned char *)j->files[i], (unsigned long)j->sizes[i]);
        jpeg_read_header(&d, TRUE);
        d.out_color_space = JCS_RGB;
        d.dct_method = JDCT_IFAST; /* as Stoker and TensorFlow have it */
        jpeg_start_decompress(&d);
        size_t row = (size_t)d.output_width * 3;
        while (d.output_scanline < d.output_height) {
            JSAMPROW at = image + d.output_scanline * row;
            jpeg_read_scanlines(&d, &at, 1);
        }
        jpeg_finish_decompress(&d);
    }
    jpeg_destroy_decompress(&d);
    return 0;
}

static char *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    char *data = malloc(4 << 20);
    *size = f && data ? fread(data, 1, 4 << 20, f) : 0;
    if (f) fclose(f);
    return data;
}

double bench_limit_decode(int threads)
{
    enum { ROOM = 1024 * 768 * 3 };
    static job jobs[MOST_THREADS];
    static char *files[BENCH_PHOTOS];
    static size_t sizes[BENCH_PHOTOS];
    const char *folder = bench_data_path("photos");
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    char *images = malloc((size_t)threads * ROOM), path[640];
    bool good = images;
    for (int i = 0; i < BENCH_PHOTOS; i++) {
        bench_photo_path(folder, i, path, sizeof path);
        files[i] = read_file(path, &sizes[i]);
        good = good && sizes[i] > 0;
    }
    for (int t = 0; t < threads && good; t++)
        jobs[t] = (job){.work = decode_photos,
                        .to = (float *)(void *)(images + (size_t)t * ROOM),
                        .files = files,
                        .sizes = sizes};
    double seconds = good ? run_together(jobs, threads) / BENCH_PHOTOS : -1;
    for (int i = 0; i < BENCH_PHOTOS; i++) free(files[i]);
    free(images);
    return seconds;
}
#else
double bench_limit_decode(int threads)
{
    (void)threads;
    return 0;
}
#endif
