/* What watching costs and how much it explains: every training row with its books open, as a loop of one's own and through
 * fit, and a training over a pipeline. Numbers are per cent. */
#include "rows.h"

#include "stoker/watch.h"
#include "watch/stats.h"

#include <math.h>
#include <time.h>

/* ---- the workloads ---------------------------------------------------------------------------------------------- */

typedef struct workload {
    const char *name;
    int (*setup)(const bench_options *o, void **state);
    int (*run)(void *state, int64_t steps);
    void (*teardown)(void *state);
} workload;

static int loop_setup(const bench_options *o, void **state)
{
    bench_training *t = NULL;
    int code = bench_training_new(bench_find_job(o->row), o->threads, &t);
    *state = t;
    return code;
}

/* A loop as fit's: rounds are marked, the batch is bound, the program runs. */
static int loop_run(void *state, int64_t steps)
{
    stk_watch_step(0);
    stk_watch_step(1);
    for (int64_t i = 0; i < steps; i++) {
        if (bench_training_run(state, 1)) return 1;
        stk_watch_step(1);
    }
    return 0;
}

static void loop_teardown(void *state) { bench_training_release(state); }

#define LOOP(name)                                                                                 \
    {                                                                                              \
        name, loop_setup, loop_run, loop_teardown                                                  \
    }
#define FIT(name)                                                                                  \
    {                                                                                              \
        name, bench_fit_setup, bench_fit_run, bench_fit_teardown                                   \
    }
static const workload workloads[] = {
    LOOP("tiny_step"),
    LOOP("tiny_step_b32"),
    LOOP("mlp_b512"),
    LOOP("cnn_step"),
    FIT("fit_tiny_step"),
    FIT("fit_tiny_step_b32"),
    FIT("fit_mlp_b512"),
    FIT("fit_cnn_step"),
    {"fit_pipeline", bench_pipeline_setup, bench_fit_run, bench_fit_teardown},
};
enum { WORKLOADS = sizeof workloads / sizeof *workloads };

static int open_workload(const workload *w, int threads, void **state)
{
    bench_options o = {.row = w->name, .threads = threads};
    int code = w->setup(&o, state);
    return code ? code : w->run(*state, 100); /* elections and trials are over */
}

/* ---- what it costs ------------------------------------------------------------------------------------------------ */

enum {
    BLOCKS = 32,
    TURNS = 8,
    SAMPLE = 64,
    DENSE = 512
}; /* dense: so many first steps are sampled 8 times as often */

/* Of this thread: records cost instructions, and other processes do not count. */
static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The dense start of a watch is not timed where steps are short: those are trainings of many thousands. */
static int timed(const workload *w, void *state, int64_t steps, bool watched, double *seconds)
{
    stk_error err;
    stk_watch *watch = NULL;
    stk_watch_settings s = stk_watch_settings_defaults();
    s.sample = SAMPLE;
    s.no_roofline = true;
    if (watched && stk_watch_start(&s, &watch, &err)) return bench_failed("watch", &err);
    int code = steps >= SAMPLE ? w->run(state, DENSE) : 0;
    double start = cpu_seconds();
    if (!code) code = w->run(state, steps);
    *seconds = cpu_seconds() - start;
    if (watched && stk_watch_stop(watch, NULL, &err)) return bench_failed("watch", &err);
    return code;
}

/* One block: turns with and without in the order a b b a, the best of each: disturbance only ever makes them slower. */
static int one_block(const workload *w, void *state, int64_t steps, double block[2])
{
    int code = 0;
    block[0] = block[1] = INFINITY;
    for (int i = 0; i < TURNS && !code; i++) {
        double seconds = 0;
        int watched = (i + 1) / 2 % 2;
        code = timed(w, state, steps, watched, &seconds);
        block[watched] = fmin(block[watched], seconds);
    }
    return code;
}

/* About 4 ms, in whole periods of the sampling. */
static int64_t steps_of_turn(double step_seconds)
{
    double steps = 0.004 / fmax(step_seconds, 1e-7);
    if (steps >= SAMPLE) return (int64_t)fmin(steps / SAMPLE, DENSE / SAMPLE) * SAMPLE;
    return steps < 2 ? 2 : (int64_t)steps;
}

/* best: the best turn with against the best without, of all blocks; low: the lower end of what the blocks allow. */
static int cost_of(const workload *w, double *best, double *low)
{
    void *state = NULL;
    double all[2] = {INFINITY, INFINITY}, ratio[BLOCKS] = {0}, warm = 1;
    int code = open_workload(w, 1, &state); /* one thread: all of the step is on it */
    if (!code) code = timed(w, state, 8, true, &warm);
    bool slow = warm / 8 > 0.002;
    if (!code && !slow) code = timed(w, state, SAMPLE, true, &warm);
    int64_t steps = steps_of_turn(warm / (slow ? 8 : SAMPLE));
    int blocks = slow ? BLOCKS / 4 : steps < SAMPLE ? BLOCKS / 2 : BLOCKS;
    for (int i = 0; i < blocks && !code; i++) {
        double block[2];
        code = one_block(w, state, steps, block);
        ratio[i] = log(block[1] / block[0]);
        for (int k = 0; k < 2; k++) all[k] = fmin(all[k], block[k]);
    }
    if (state) w->teardown(state);
    *best = (all[1] / all[0] - 1) * 100;
    *low = (stk_gain_of(ratio, blocks).low - 1) * 100;
    bench_note_number(w->name, *best);
    return code;
}

/* Sampled books (one step in 64, as always-on watching does) against none, in turns. What a record costs does not depend on the
 * step it belongs to, so the shortest step is the worst; longer ones count as far as their cost can be told from noise. */
int bench_watch_overhead(const bench_options *o, double *percent)
{
    (void)o;
    for (int i = 0; i < WORKLOADS; i++) {
        double best, low;
        if (cost_of(&workloads[i], &best, &low)) return 1;
        *percent = i == 0 ? best : fmax(*percent, low);
    }
    return 0;
}

/* ---- what it leaves unexplained ------------------------------------------------------------------------------------- */

static int record_residual(const workload *w, void *state, double *percent)
{
    stk_error err;
    stk_watch *watch = NULL;
    stk_report *r = NULL;
    stk_watch_settings s = stk_watch_settings_defaults();
    s.no_roofline = true;
    if (stk_watch_start(&s, &watch, &err)) return bench_failed("watch", &err);
    int code = w->run(state, 200);
    if (stk_watch_stop(watch, &r, &err)) code = bench_failed("watch", &err);
    double wall = stk_report_seconds(r, STK_BOOK_COUNT);
    *percent = wall > 0 ? 100 * stk_report_seconds(r, STK_BOOK_RESIDUAL) / wall : 100;
    stk_report_release(r);
    return code;
}

/* Somebody else may take the processor just where nobody claims the time: the median of a few recordings counts. */
static int residual_of(const workload *w, int threads, double *percent)
{
    enum { TRIES = 5 };
    void *state = NULL;
    double all[TRIES];
    int code = open_workload(w, threads, &state);
    for (int i = 0; i < TRIES && !code; i++) code = record_residual(w, state, &all[i]);
    *percent = code ? 100 : stk_median(all, TRIES);
    bench_note_number(w->name, *percent);
    if (state) w->teardown(state);
    return code;
}

/* The worst of all workloads. */
int bench_watch_residual(const bench_options *o, double *percent)
{
    *percent = 0;
    for (int i = 0; i < WORKLOADS; i++) {
        double one;
        if (residual_of(&workloads[i], o->threads, &one)) return 1;
        *percent = fmax(*percent, one);
    }
    return 0;
}
