/* rows.h - the jobs behind the training rows: the same networks, data rings and optimizer as bench/peers/common.py. */
#ifndef STOKER_BENCH_ROWS_H
#define STOKER_BENCH_ROWS_H

#include "harness.h"

#include "stoker/eager.h"
#include "stoker/graph.h"
#include "stoker/nn.h"

typedef struct bench_job {
    const char *name;
    bool cnn;         /* else an MLP */
    int64_t sizes[5]; /* MLP: layer widths; CNN: height, width, channels */
    int32_t nsizes;
    int64_t batch, ring;
    bool mean_square; /* else cross-entropy with integer labels */
    double rate;
} bench_job;

typedef struct bench_training {
    const bench_job *job;
    stk_device *device;
    stk_program *program;
    stk_tensor *x, *y;     /* [ring, batch, ...] */
    stk_tensor **xs, **ys; /* views of one batch each */
    int64_t at;
    double data_seconds; /* spent on making the data: not part of a start */
} bench_training;

const bench_job *bench_find_job(const char *name);
int bench_training_new(const bench_job *job, int threads, bench_training **out);
int bench_training_run(bench_training *t, int64_t steps);
double bench_training_loss(bench_training *t); /* mean over one ring */
void bench_training_release(bench_training *t);

/* rows_fit.c: the same jobs through a model of layers and fit. */
int bench_fit_setup(const bench_options *options, void **state);
/* tiny_step_b32 over a pipeline (shuffle, map, batch, prefetch) with a metric and a callback after each step; for the other
 * three functions. */
int bench_pipeline_setup(const bench_options *options, void **state);
int bench_fit_run(void *state, int64_t steps);
int bench_fit_finish(void *state);
void bench_fit_teardown(void *state);
int bench_fit_start(const bench_options *options, double *ms); /* from the start of the process */
int bench_fit_rss(const bench_options *options, double *mb);
/* What watching costs, and what it leaves unexplained; per cent of a step. */
int bench_watch_overhead(const bench_options *options, double *percent);
int bench_watch_residual(const bench_options *options, double *percent);

/* rows_records.c: files. */
int bench_csv_setup(const bench_options *options, void **state);
int bench_csv_run(void *state, int64_t tables);
int bench_write_setup(const bench_options *options, void **state);
int bench_write_run(void *state, int64_t files);
int bench_verify_setup(const bench_options *options, void **state);
int bench_verify_run(void *state, int64_t passes);

/* rows_data.c: input pipelines; an iteration is many batches. */
int bench_images_setup(const bench_options *options, void **state);
int bench_scalars_setup(const bench_options *options, void **state);
int bench_records_setup(const bench_options *options, void **state);
int bench_photos_setup(const bench_options *options, void **state);
int bench_data_run(void *state, int64_t iterations);
int bench_data_finish(void *state);
void bench_data_teardown(void *state);

int bench_failed(const char *what, const stk_error *err); /* says it on stderr, returns 1 */

#endif
