/* roofline.c - what this machine can do: multiply-adds per second, and bytes per second for data of three sizes, on one
 * thread and on all. Disturbance only ever makes it slower, so the best of a few short tries counts. Where all threads together do
 * less than they should, the machine is looked at again a little later: virtual processors are two cores at one moment and two
 * halves of one core at the next. */
#include "base/clock.h"
#include "base/cpus.h"
#include "base/pool.h"
#include "device/cpu/vec/peak.h"
#include "watch/report.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

enum { TRIES = 5 };
static const int64_t LEVEL_FLOATS[STK_ROOF_LEVELS] = {
    3 << 13,  /* three arrays of 32 KiB each: second level */
    3 << 16,  /* 256 KiB each */
    3 << 21}; /* 8 MiB each: memory */

typedef struct piece {
    const stk_vec_peak *peak;
    int64_t rounds;
    float *memory; /* NULL: arithmetic */
    int64_t floats;
    volatile float sink;
} piece;

static void run_piece(void *context, int64_t part, int32_t thread)
{
    piece *p = context;
    (void)thread;
    if (!p->memory) {
        p->sink = p->peak->fma(p->rounds);
        return;
    }
    int64_t n = p->floats / 3;
    float *a = p->memory + part * p->floats;
    for (int64_t r = 0; r < p->rounds; r++) p->peak->triad(a, a + n, a + 2 * n, n);
}

/* Best seconds of a few tries. */
static double time_piece(stk_pool *pool, piece *p, int32_t parts)
{
    double best = 1e9;
    for (int i = 0; i < TRIES; i++) {
        int64_t start = stk_now_ns();
        stk_pool_run(pool, run_piece, p, parts);
        double took = (double)(stk_now_ns() - start) * 1e-9;
        if (took > 0 && took < best) best = took;
    }
    return best;
}

static void keep_best(double *best, double value)
{
    if (value > *best) *best = value;
}

/* Only regions that called the threads: a pool whose processors are taken does without them for a while. */
static void time_join(stk_pool *pool, stk_roofline *out)
{
    piece empty = {.peak = stk_vec_get()->peak};
    for (int i = 0; i < 4 * TRIES && out->threads > 1; i++) {
        int64_t regions = stk_pool_read_stats(pool).regions, start = stk_now_ns();
        stk_pool_run(pool, run_piece, &empty, out->threads);
        double took = (double)(stk_now_ns() - start) * 1e-9;
        if (stk_pool_read_stats(pool).regions == regions) continue;
        if (out->join == 0 || took < out->join) out->join = took;
    }
}

static void measure(stk_pool *pool, float *memory, stk_roofline *out)
{
    const stk_vec_peak *peak = stk_vec_get()->peak;
    for (int all = 0; all < 2; all++) {
        int32_t parts = all ? out->threads : 1;
        piece fma = {.peak = peak, .rounds = 100000};
        double seconds = time_piece(pool, &fma, parts);
        keep_best(&out->gflops[all],
                  (double)parts * (double)(fma.rounds * peak->flops_per_round) / seconds * 1e-9);
        for (int level = 0; level < STK_ROOF_LEVELS; level++) {
            int64_t floats = LEVEL_FLOATS[level];
            piece triad = {.peak = peak, .memory = memory, .floats = floats};
            triad.rounds = floats < (1 << 20) ? (1 << 21) / floats : 1;
            seconds = time_piece(pool, &triad, parts);
            keep_best(&out->gbs[all][level],
                      (double)parts * (double)(floats * 4 * triad.rounds) / seconds * 1e-9);
            out->level_bytes[level] = level + 1 < STK_ROOF_LEVELS ? (double)floats * 4 * 3 : 1e300;
        }
    }
    time_join(pool, out);
    /* All threads can do what one can; less was somebody else's doing. */
    out->gflops[1] = fmax(out->gflops[0], out->gflops[1]);
    for (int level = 0; level < STK_ROOF_LEVELS; level++)
        out->gbs[1][level] = fmax(out->gbs[0][level], out->gbs[1][level]);
}

static void measure_often(stk_pool *pool, float *memory, stk_roofline *out)
{
    enum { LOOKS = 6 };
    static const struct timespec PAUSE = {0, 40 * 1000 * 1000};
    static const double AS_CORES = 0.8;
    for (int i = 0; i < LOOKS; i++) {
        if (i) nanosleep(&PAUSE, NULL);
        measure(pool, memory, out);
        if (out->gflops[1] > AS_CORES * out->threads * out->gflops[0]) return;
    }
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static stk_roofline known; /* threads 0: not measured yet */

static stk_status measure_once(stk_error *err)
{
    stk_pool *pool = NULL;
    stk_roofline r = {.threads = stk_cpu_count()};
    size_t floats = (size_t)LEVEL_FLOATS[STK_ROOF_LEVELS - 1] * (size_t)r.threads;
    STK_TRY(stk_pool_new(r.threads, &pool, err));
    float *memory = stk_alloc_pages(floats * sizeof *memory);
    if (memory) {
        memset(memory, 0, floats * sizeof *memory);
        measure_often(pool, memory, &r);
        stk_free_pages(memory, floats * sizeof *memory);
        known = r;
    }
    stk_pool_release(pool);
    return memory ? STK_OK : stk_fail_memory(err, "measuring bandwidth", floats * 4);
}

stk_status stk_roofline_measure(stk_roofline *out, stk_error *err)
{
    pthread_mutex_lock(&lock);
    stk_status status = known.threads ? STK_OK : measure_once(err);
    if (status == STK_OK) *out = known;
    pthread_mutex_unlock(&lock);
    return status;
}

double stk_roof_share(const stk_roofline *roof, double flops, double bytes, double seconds,
                      int32_t threads, bool *compute_side)
{
    int all = threads > 1, level = 0;
    *compute_side = false;
    if (!roof->threads || seconds <= 0) return 0;
    while (level + 1 < STK_ROOF_LEVELS && bytes > roof->level_bytes[level]) level++;
    double arithmetic = flops / (roof->gflops[all] * 1e9);
    double traffic = bytes / (roof->gbs[all][level] * 1e9);
    *compute_side = arithmetic > traffic;
    return (arithmetic > traffic ? arithmetic : traffic) / seconds;
}
