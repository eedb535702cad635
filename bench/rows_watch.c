/* What watching costs and how much it explains: the jobs of the training rows with books open. Numbers are per cent. */
#include "rows.h"

#include "stoker/watch.h"
#include "watch/stats.h"

#include <math.h>
#include <time.h>

static const char *const job_names[] = {"tiny_step", "tiny_step_b32", "mlp_b512", "cnn_step"};
enum { JOBS = sizeof job_names / sizeof *job_names, BLOCKS = 64, TURNS = 16, SAMPLE = 64 };

/* A loop as fit's: rounds are marked, the batch is bound, the program runs. */
static int rounds(bench_training *t, int64_t steps)
{
    stk_watch_step(0);
    stk_watch_step(1);
    for (int64_t i = 0; i < steps; i++) {
        if (bench_training_run(t, 1)) return 1;
        stk_watch_step(1);
    }
    return 0;
}

/* Of this thread: records cost instructions, and other processes do not count. */
static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int timed(bench_training *t, int64_t steps, bool watched, double *seconds)
{
    stk_error err;
    stk_watch *watch = NULL;
    stk_watch_settings s = stk_watch_settings_defaults();
    s.sample = SAMPLE;
    s.no_roofline = true;
    if (watched && stk_watch_start(&s, &watch, &err)) return bench_failed("watch", &err);
    double start = cpu_seconds();
    int code = rounds(t, steps);
    *seconds = cpu_seconds() - start;
    if (watched && stk_watch_stop(watch, NULL, &err)) return bench_failed("watch", &err);
    return code;
}

/* One block: turns of a millisecond, with and without in the order a b b a; drift of the machine goes into both alike. */
static int one_block(bench_training *t, double *log_ratio)
{
    double seconds[2][TURNS / 2];
    int n[2] = {0, 0}, code = 0;
    for (int i = 0; i < TURNS && !code; i++) {
        int watched = (i + 1) / 2 % 2;
        code = timed(t, SAMPLE - 1, watched, &seconds[watched][n[watched]++]);
    }
    if (!code) *log_ratio = log(stk_median(seconds[1], n[1]) / stk_median(seconds[0], n[0]));
    return code;
}

/* Sampled books (one step in 64, as always-on watching does) against none, in turns, on the shortest step. A turn makes 64
 * marks, so exactly one of its steps is recorded. */
int bench_watch_overhead(const bench_options *o, double *percent)
{
    bench_training *t = NULL;
    double ratio[BLOCKS] = {0}, warm = 1;
    (void)o; /* one thread: all of the step is on it */
    if (bench_training_new(bench_find_job("tiny_step"), 1, &t)) return 1;
    int code = timed(t, 5000, true, &warm);
    for (int i = 0; i < BLOCKS && !code; i++) code = one_block(t, &ratio[i]);
    bench_training_release(t);
    stk_gain slower = stk_gain_of(ratio, BLOCKS);
    bench_note_number("low", (slower.low - 1) * 100);
    bench_note_number("high", (slower.high - 1) * 100);
    *percent = (slower.best - 1) * 100;
    return code;
}

static int residual_of(const char *name, int threads, double *percent)
{
    stk_error err;
    bench_training *t = NULL;
    stk_watch *watch = NULL;
    stk_report *r = NULL;
    stk_watch_settings s = stk_watch_settings_defaults();
    s.no_roofline = true;
    if (bench_training_new(bench_find_job(name), threads, &t)) return 1;
    int code = rounds(t, 100); /* elections and trials are over */
    if (!code && stk_watch_start(&s, &watch, &err)) code = bench_failed("watch", &err);
    if (!code) code = rounds(t, 200);
    if (watch && stk_watch_stop(watch, &r, &err)) code = bench_failed("watch", &err);
    double wall = stk_report_seconds(r, STK_BOOK_COUNT);
    *percent = wall > 0 ? 100 * stk_report_seconds(r, STK_BOOK_RESIDUAL) / wall : 100;
    bench_note_number(name, *percent);
    stk_report_release(r);
    bench_training_release(t);
    return code;
}

/* The worst of the four jobs. */
int bench_watch_residual(const bench_options *o, double *percent)
{
    *percent = 0;
    for (int i = 0; i < JOBS; i++) {
        double one;
        if (residual_of(job_names[i], o->threads, &one)) return 1;
        *percent = fmax(*percent, one);
    }
    return 0;
}
