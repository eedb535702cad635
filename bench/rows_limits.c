/* What input rows are held against: the plainest program that does the part of the work nobody can leave out, on as many
 * threads, in the same process, right after the row was timed. */
#include "rows_files.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void *job_main(void *argument)
{
    job *j = argument;
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
    job_main(&jobs[0]);
    for (int t = 1; t < threads; t++) pthread_join(jobs[t].thread, NULL);
    for (int t = 0; t < threads; t++) failed |= jobs[t].failed;
    pthread_barrier_destroy(&gate);
    qsort(jobs[0].seconds, ROUNDS, sizeof(double), by_value);
    return failed ? -1 : jobs[0].seconds[ROUNDS / 2];
}

/* ---- bytes to floats ------------------------------------------------------------------------------------ */

WIDE static void convert(const uint8_t *restrict from, float *restrict to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] = (float)from[i];
}

static int convert_images(job *j)
{
    for (int64_t i = 0; i < j->images; i++)
        convert(j->from + i * BENCH_PIXELS, j->to, BENCH_PIXELS);
    return 0;
}

/* Images are read from a large array; results stay in the caches: no pipeline has to be read by anybody either. */
double bench_limit_convert(int threads)
{
    enum { IMAGES = 512 };
    static job jobs[MOST_THREADS];
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    int64_t each = IMAGES / threads;
    uint8_t *from = malloc((size_t)IMAGES * BENCH_PIXELS);
    float *to = aligned_alloc(64, (size_t)threads * BENCH_PIXELS * sizeof(float));
    double seconds = -1;
    if (from && to) {
        for (int64_t i = 0; i < IMAGES; i++) bench_image(i, from + i * BENCH_PIXELS);
        memset(to, 0, (size_t)threads * BENCH_PIXELS * sizeof(float));
        for (int t = 0; t < threads; t++)
            jobs[t] = (job){.work = convert_images,
                            .from = from + t * each * BENCH_PIXELS,
                            .to = to + (int64_t)t * BENCH_PIXELS,
                            .images = each};
        seconds = run_together(jobs, threads) / (double)(each * threads);
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
