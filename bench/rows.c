/* Stoker's side of the benchmark rows. */
#include "rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- training steps -------------------------------------------------------------------------------------- */

typedef struct timed {
    bench_training *training;
    double first_loss;
} timed;

static int train_setup(const bench_options *o, void **out)
{
    timed *t = calloc(1, sizeof *t);
    *out = t;
    if (!t || bench_training_new(bench_find_job(o->row), o->threads, &t->training)) return 1;
    t->first_loss = bench_training_loss(t->training);
    char *text = NULL;
    if (getenv("BENCH_DUMP") && stk_program_dump(t->training->program, &text, NULL) == STK_OK)
        fputs(text, stderr);
    stk_text_free(text);
    return 0;
}

static int train_run(void *state, int64_t n)
{
    return bench_training_run(((timed *)state)->training, n);
}

/* The row counts only if the network learnt something. */
static int train_finish(void *state)
{
    timed *t = state;
    double loss = bench_training_loss(t->training);
    bench_note_number("first_loss", t->first_loss);
    bench_note_number("last_loss", loss);
    if (isfinite(loss) && loss < t->first_loss) return 0;
    fprintf(stderr, "the loss went from %g to %g: this is not training\n", t->first_loss, loss);
    return 1;
}

static void train_teardown(void *state)
{
    timed *t = state;
    if (t) bench_training_release(t->training);
    free(t);
}

/* ---- eager ops --------------------------------------------------------------------------------------------- */

typedef struct eager {
    stk_eager *e;
    stk_tensor *a, *b;
} eager;

static int eager_setup(const bench_options *o, void **out)
{
    stk_error err;
    eager *s = calloc(1, sizeof *s);
    (void)o;
    *out = s;
    if (!s || stk_eager_new(NULL, &s->e, &err) ||
        stk_tensor_new(STK_F32, 2, (int64_t[]){10, 10}, &s->a, &err) ||
        stk_tensor_new(STK_F32, 2, (int64_t[]){10, 10}, &s->b, &err))
        return bench_failed("eager", &err);
    for (int i = 0; i < 100; i++) {
        ((float *)s->a->data)[i] = (float)i * 0.01f;
        ((float *)s->b->data)[i] = 1 - (float)i * 0.01f;
    }
    return 0;
}

static int eager_add(void *state, int64_t n)
{
    eager *s = state;
    for (int64_t i = 0; i < n; i++) {
        stk_tensor *c = NULL;
        if (stk_add(s->e, s->a, s->b, &c)) return bench_failed("add", stk_eager_error(s->e));
        stk_tensor_release(c);
    }
    return 0;
}

static int eager_matmul(void *state, int64_t n)
{
    eager *s = state;
    for (int64_t i = 0; i < n; i++) {
        stk_tensor *c = NULL;
        if (stk_matmul(s->e, s->a, s->b, &c)) return bench_failed("matmul", stk_eager_error(s->e));
        stk_tensor_release(c);
    }
    return 0;
}

static void eager_teardown(void *state)
{
    eager *s = state;
    if (!s) return;
    stk_tensor_release(s->a);
    stk_tensor_release(s->b);
    stk_eager_release(s->e);
    free(s);
}

/* ---- start-up ------------------------------------------------------------------------------------------------- */

/* Data is made before the clock starts; graph, gradient, plan and first step are timed. */
static int time_build(const bench_options *o, double *ms)
{
    bench_training *t = NULL;
    const bench_job *job = bench_find_job("tiny_step");
    double start = bench_now();
    int failed = bench_training_new(job, o->threads, &t);
    double data = 0;
    if (!failed) {
        stk_program_stats stats;
        stk_program_describe(t->program, &stats);
        bench_note_number("compile_ms", stats.build_ms);
        bench_note_number("election_ms", stats.election_ms);
        failed = bench_training_run(t, 1);
        data = t->data_seconds;
    }
    *ms = (bench_now() - start - data) * 1e3;
    bench_training_release(t);
    return failed;
}

static int build_time(const bench_options *o, double *ms)
{
    double ignored; /* the first one fills the election's file */
    return time_build(o, &ignored) || time_build(o, ms);
}

static int build_cold(const bench_options *o, double *ms)
{
    setenv("STOKER_CACHE", "", 1); /* no file: everything is timed anew */
    return time_build(o, ms);
}

static int rss(const bench_options *o, double *mb)
{
    bench_training *t = NULL;
    int failed = bench_training_new(bench_find_job("tiny_step"), o->threads, &t) ||
                 bench_training_run(t, 1000);
    *mb = bench_peak_rss_mb();
    bench_training_release(t);
    return failed;
}

#define TRAIN(row, u)                                                                              \
    {                                                                                              \
        .name = row, .unit = u, .setup = train_setup, .run = train_run, .finish = train_finish,    \
        .teardown = train_teardown                                                                 \
    }
#define EAGER(row, f)                                                                              \
    {                                                                                              \
        .name = row, .unit = "ns", .setup = eager_setup, .run = f, .teardown = eager_teardown      \
    }
#define FIT(row, u)                                                                                \
    {                                                                                              \
        .name = row, .unit = u, .setup = bench_fit_setup, .run = bench_fit_run,                    \
        .finish = bench_fit_finish, .teardown = bench_fit_teardown                                 \
    }
#define INPUT(row, u, f)                                                                           \
    {                                                                                              \
        .name = row, .unit = u, .setup = f, .run = bench_data_run, .finish = bench_data_finish,    \
        .teardown = bench_data_teardown                                                            \
    }
static const bench_row rows[] = {
    TRAIN("tiny_step", "us"),
    TRAIN("tiny_step_b32", "us"),
    TRAIN("mlp_b512", "us"),
    TRAIN("cnn_step", "ms"),
    EAGER("eager_add", eager_add),
    EAGER("eager_matmul", eager_matmul),
    {.name = "build_time", .unit = "ms", .value = build_time},
    {.name = "build_cold", .unit = "ms", .value = build_cold},
    {.name = "rss", .unit = "MB", .value = rss},
    FIT("fit_tiny_step", "us"),
    FIT("fit_tiny_step_b32", "us"),
    FIT("fit_mlp_b512", "us"),
    FIT("fit_cnn_step", "ms"),
    INPUT("data_images", "ms", bench_images_setup),
    INPUT("data_shuffle", "ms", bench_scalars_setup),
    {.name = "fit_start", .unit = "ms", .value = bench_fit_start},
    {.name = "fit_rss", .unit = "MB", .value = bench_fit_rss},
    INPUT("record_pipeline", "ms", bench_records_setup),
    INPUT("photo_folder", "ms", bench_photos_setup),
    INPUT("photo_folder_scaled", "ms", bench_photos_setup),
    {.name = "csv_table", .unit = "ms", .setup = bench_csv_setup, .run = bench_csv_run},
    {.name = "record_write", .unit = "ms", .setup = bench_write_setup, .run = bench_write_run},
    {.name = "record_write_small",
     .unit = "ms",
     .setup = bench_write_setup,
     .run = bench_write_run},
    {.name = "record_verify", .unit = "ms", .setup = bench_verify_setup, .run = bench_verify_run},
    {.name = "watch_overhead", .unit = "%", .value = bench_watch_overhead},
    {.name = "watch_residual", .unit = "%", .value = bench_watch_residual},
};

int main(int argc, char **argv) { return bench_main(argc, argv, rows, sizeof rows / sizeof *rows); }
