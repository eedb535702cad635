/* watch.h - where the time goes, and what to do about it.
 *
 *     stk_error err;
 *     stk_watch *watch = NULL;
 *     stk_report *report = NULL;
 *     char *text = NULL;
 *     stk_watch_start(NULL, &watch, &err);
 *     for (int i = 0; i < 100; i++) {
 *         stk_watch_step(1);                     // once per round, always at the same place
 *         stk_watch_begin(STK_BOOK_INPUT);
 *         // ... get a batch ...
 *         stk_watch_end(STK_BOOK_INPUT);
 *         // stk_program_run(program, 1, &err);  books its kernels by itself
 *     }
 *     stk_watch_step(1);                         // the end of the last round
 *     if (stk_watch_stop(watch, &report, &err) == STK_OK &&
 *         stk_report_render(report, STK_REPORT_TEXT, &text, NULL, &err) == STK_OK)
 *         puts(text);
 *     stk_text_free(text);
 *     stk_report_release(report);
 *
 * A report holds closed books (the rows of a step add up to its wall time), the ops with their share of this machine's
 * roofline, the stages of the input pipeline, and, when a doctor made it, a verdict with measured advice. It can be
 * written as text, JSON (doc/watch.md), a Chrome trace, TensorBoard events or one HTML file.
 *
 * The doctor (stk_doctor_run) takes a job: something that can run its steps with settings changed. It measures by
 * taking turns and gives no verdict where noise is larger than the effect. */
#ifndef STOKER_WATCH_H
#define STOKER_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "placement.h"
#include "train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- lists ------------------------------------------------------------------------------------------------ */
typedef enum stk_book {
#define STK_BOOK(NAME, name, colour, doc) STK_BOOK_##NAME,
#include "books.def"
    STK_BOOK_COUNT
} stk_book;
typedef enum stk_phase {
#define STK_PHASE(NAME, name, doc) STK_PHASE_##NAME,
#include "phases.def"
    STK_PHASE_COUNT
} stk_phase;
typedef enum stk_knob {
#define STK_KNOB(NAME, name, class, least, most, doc) STK_KNOB_##NAME,
#include "knobs.def"
    STK_KNOB_COUNT
} stk_knob;
typedef enum stk_knob_class {
    STK_KNOB_IS_SAFE,
    STK_KNOB_IS_MATH,
    STK_KNOB_IS_CEILING
} stk_knob_class;

STK_API const char *stk_book_name(stk_book book);
STK_API const char *stk_phase_name(stk_phase phase);
STK_API const char *stk_knob_name(stk_knob knob);
STK_API const char *stk_knob_doc(stk_knob knob);
STK_API stk_knob_class stk_knob_class_of(stk_knob knob);

/* ---- recording ---------------------------------------------------------------------------------------------- */
typedef struct stk_watch stk_watch;
typedef struct stk_report stk_report;

typedef struct stk_watch_settings {
    const char *title;  /* of the reports */
    int64_t batch;      /* examples per step, for examples/s; 0 = not known */
    int64_t sample;     /* record one step in so many; 0 and 1 = every step */
    int64_t records;    /* room per thread; 0 = 65536, the newest stay */
    int64_t plan_steps; /* steps of the whole run this one stands for; 0 = not known */
    bool no_roofline;   /* skip the 0.1 s measurement of what this machine can do */
} stk_watch_settings;
STK_API stk_watch_settings stk_watch_settings_defaults(void);

/* One watch at a time; another is refused with STK_ERR_STATE. */
STK_API STK_MUST_USE stk_status stk_watch_start(const stk_watch_settings *options, stk_watch **out,
                                                stk_error *err);
/* Ends the recording and frees the watch; report may be NULL to throw it away. */
STK_API STK_MUST_USE stk_status stk_watch_stop(stk_watch *watch, stk_report **report,
                                               stk_error *err);
/* For loops of one's own (the trainer does this by itself). All cost one compare while nobody watches.
 * stk_watch_step: the round since the last call had so many steps; 0: what was since then was no round. */
STK_API void stk_watch_step(int32_t steps);
STK_API void stk_watch_begin(stk_book book); /* nests; the innermost one counts */
STK_API void stk_watch_end(stk_book book);
/* A stage of an input pipeline, measured elsewhere: what is added here goes into the report. */
typedef enum stk_watch_stage_kind {
    STK_STAGE_COMPUTE, /* decoding, mapping */
    STK_STAGE_STORAGE, /* reading files or sockets */
    STK_STAGE_BUFFER   /* shuffle, cache, prefetch */
} stk_watch_stage_kind;
enum { STK_WATCH_DEPTHS = 48 };
typedef struct stk_watch_stage {
    char name[64]; /* "map parse_jpeg", "read train-0003.tfrecord" */
    stk_watch_stage_kind kind;
    int32_t workers;
    int64_t elements;    /* handed out */
    double busy_seconds; /* of all workers together */
    double wait_input_seconds, wait_room_seconds;
    double depth, capacity; /* queue behind it: mean number of elements inside, and room */
    int64_t bytes;          /* held in memory */
    /* Where they are known: */
    double seconds;                 /* it was watched for: elements per second */
    double depth_least, depth_most; /* of the queue */
    int32_t ndepths;                /* the queue over time, evenly spaced */
    float depths[STK_WATCH_DEPTHS];
} stk_watch_stage;
STK_API STK_MUST_USE stk_status stk_report_add_stage(stk_report *report,
                                                     const stk_watch_stage *stage, stk_error *err);

/* ---- reports ------------------------------------------------------------------------------------------------ */
typedef enum stk_report_kind {
    STK_REPORT_TEXT,        /* at most 100 columns */
    STK_REPORT_JSON,        /* everything, read back by stk_report_load */
    STK_REPORT_HTML,        /* one file, no network */
    STK_REPORT_CHROME,      /* chrome://tracing and ui.perfetto.dev */
    STK_REPORT_TENSORBOARD, /* an event file: step times and books as scalars */
    STK_REPORT_KINDS
} stk_report_kind;
STK_API void stk_report_release(stk_report *report); /* NULL is fine */
/* As text in memory (bytes for events); free with stk_text_free. size may be NULL. */
STK_API STK_MUST_USE stk_status stk_report_render(const stk_report *report, stk_report_kind kind,
                                                  char **text, size_t *size, stk_error *err);
/* Into a file, whole or not at all. */
STK_API STK_MUST_USE stk_status stk_report_save(const stk_report *report, stk_report_kind kind,
                                                const char *path, stk_error *err);
STK_API STK_MUST_USE stk_status stk_report_load(const char *path, stk_report **out, stk_error *err);
/* Two runs side by side: what changed and what it cost. Free with stk_text_free. */
STK_API STK_MUST_USE stk_status stk_report_compare(const stk_report *a, const stk_report *b,
                                                   char **text, stk_error *err);
/* Seconds per step of the steady state in one book; of all of them together for STK_BOOK_COUNT. */
STK_API double stk_report_seconds(const stk_report *report, stk_book book);
STK_API double stk_report_phase_seconds(const stk_report *report, stk_phase phase);
STK_API int64_t stk_report_phase_steps(const stk_report *report, stk_phase phase);

/* ---- a whole training, afterwards ------------------------------------------------------------------------------
 * The trainer's clock knows exactly what lies between steps; what lies inside is split as the sampled steps say (a watch
 * with sample = 64 around fit). report NULL, or with too few steps in it: `unsplit` has the time of the steps. */
typedef struct stk_budget {
    double total; /* seconds; everything below adds up to it */
    double seconds[STK_BOOK_COUNT];
    double build, validation, epoch_ends, unsplit; /* epoch_ends: callbacks of epochs */
    int64_t steps, samples, sampled;               /* sampled: steps that were looked at closely */
} stk_budget;
STK_API void stk_budget_of(const stk_train_times *times, const stk_report *report, stk_budget *out);
STK_API double stk_budget_computing(const stk_budget *budget); /* share that is arithmetic */
/* "88 % kernels, 7 % input wait, 3 % optimizer" into text; returns text. */
STK_API char *stk_budget_line(const stk_budget *budget, char *text, size_t size);
/* A table with the kernels by op. Free with stk_text_free. */
STK_API STK_MUST_USE stk_status stk_budget_text(const stk_budget *budget, const stk_report *report,
                                                char **text, stk_error *err);

/* ---- the doctor ----------------------------------------------------------------------------------------------- */
#define STK_AS_IS INT64_MIN

typedef struct stk_job_settings {
    int64_t value[STK_KNOB_COUNT]; /* STK_AS_IS where nothing is changed */
} stk_job_settings;
STK_API stk_job_settings stk_job_settings_defaults(void); /* everything as it is */

typedef struct stk_job_knob {
    bool offered;    /* the job can change it */
    int64_t current; /* what it is without a change */
    int64_t most;    /* largest sensible value; 0 = no limit known */
} stk_job_knob;

/* Seconds of what is done once at the end of an epoch. */
typedef struct stk_epoch_end {
    double callbacks, checkpoint;
} stk_epoch_end;

/* A variant is the job running with some settings. Several variants are open at a time and take turns; each keeps its own
 * position in the data. They may share weights: the doctor saves before and restores afterwards. */
typedef struct stk_job {
    void *context;
    const char *name;
    int64_t batch;      /* examples per step as it is */
    int64_t plan_steps; /* steps of the whole run that is asked about; 0 = not known */
    stk_job_knob knob[STK_KNOB_COUNT];
    stk_status (*open)(void *context, const stk_job_settings *settings, void **variant,
                       stk_error *err);
    /* Runs so many steps; with FREE_MODEL: takes so many batches. */
    stk_status (*run)(void *context, void *variant, int64_t steps, stk_error *err);
    void (*close)(void *context, void *variant);
    stk_status (*save)(void *context, stk_error *err); /* (optional) weights, random state, step */
    stk_status (*restore)(void *context, stk_error *err); /* (optional) puts them back, every bit */
    /* (optional) stages of the variant's pipeline since it was opened; returns how many. */
    int32_t (*stages)(void *context, void *variant, stk_watch_stage *out, int32_t most);
    /* (optional) what those should know who read times of this variant ("measured with 9 of 900 elements"); "": nothing. */
    void (*remark)(void *context, void *variant, char *text, size_t size);
    /* (optional) programs made so far, and why the last one was ("input 'x' is f32[32,17], it was f32[32,23] before"). */
    int32_t (*programs)(void *context, char *why, size_t size);
    /* (optional) what a step of `batch` examples takes on the devices of this machine, the job's own among them: predicted, and
     * tried where `tries` says so. */
    stk_status (*devices)(void *context, int64_t batch, bool tries, stk_placement *out,
                          stk_error *err);
    /* Epochs, where the job has such. What their ends cost is measured apart: run must not contain it. */
    int64_t epoch_steps; /* 0 = not known */
    /* (optional) does once what comes at the end of an epoch apart from validation: callbacks, a checkpoint */
    stk_status (*epoch_end)(void *context, stk_epoch_end *out, stk_error *err);
    /* (optional) the validation, as a job of its own whose steps are its batches */
    const struct stk_job *validation;
    int64_t validation_steps, validation_every; /* batches of one validation; epochs between two */
} stk_job;

typedef struct stk_doctor_options {
    double seconds;           /* about this long; 12 */
    double slice_ms;          /* one turn of one variant; 25 */
    int32_t rounds;           /* turns per comparison; 7, at least 6 */
    bool no_math;             /* leave out batch sizes and precision */
    const char *const *cards; /* what-if cards for the comparison of devices; NULL = a few */
    int32_t ncards;
    /* NULL, or called between turns, ten times a second at most: share of the time that is over, what is measured ("prefetch 2") */
    void (*progress)(void *context, double share, const char *doing);
    void *progress_context;
} stk_doctor_options;
STK_API stk_doctor_options stk_doctor_options_defaults(void);

/* Measures, judges and hands over a report with a verdict. The job's numbers are put back to the bit. */
STK_API STK_MUST_USE stk_status stk_doctor_run(const stk_job *job,
                                               const stk_doctor_options *options,
                                               stk_report **report, stk_error *err);

/* A ratio of two times (above 1: faster) with its 95 % interval. */
typedef struct stk_gain {
    double best, low, high;
} stk_gain;
typedef struct stk_advice {
    const char *text; /* "prefetch 2" */
    stk_knob knob;
    int64_t value;
    stk_gain gain;
    bool changes_mathematics;
    stk_job_settings settings; /* ready for open */
} stk_advice;

STK_API const char *stk_report_verdict(const stk_report *report);  /* "input-bound"; "" = none */
STK_API const char *stk_report_evidence(const stk_report *report); /* lines; "" = none */
STK_API int32_t stk_report_advice_count(const stk_report *report);
/* Ranked by gain, those that change the mathematics behind the others. */
STK_API bool stk_report_advice(const stk_report *report, int32_t index, stk_advice *out);
/* All safe advice together, as settings for the job. */
STK_API stk_job_settings stk_report_settings(const stk_report *report);
/* Stored for later runs: {"prefetch": 2, ...}. Loading leaves other knobs as they are. */
STK_API STK_MUST_USE stk_status stk_job_settings_save(const stk_job_settings *s, const char *path,
                                                      stk_error *err);
STK_API STK_MUST_USE stk_status stk_job_settings_load(const char *path, stk_job_settings *out,
                                                      stk_error *err);
/* For a training that follows them. Before stk_trainer_new and fit: threads, precision, batch; either may be NULL. */
STK_API void stk_job_settings_options(const stk_job_settings *s, stk_trainer_options *how,
                                      stk_fit_options *fit);
/* A dataset in data is replaced by one with these workers, prefetch and so on, held by *owner (for the caller to release
 * after the training; NULL when there is none). The elements stay the same. A cache is left out where the pipeline has no place
 * for one. */
STK_API STK_MUST_USE stk_status stk_job_settings_data(const stk_job_settings *s,
                                                      stk_train_data *data, stk_dataset **owner,
                                                      stk_error *err);
/* "prefetch 2, workers 4" into text, "" when everything is as it is; returns text. */
STK_API char *stk_job_settings_text(const stk_job_settings *s, char *text, size_t size);
/* How much faster b is than a, measured by turns, per example. */
STK_API STK_MUST_USE stk_status stk_job_compare(const stk_job *job, const stk_job_settings *a,
                                                const stk_job_settings *b,
                                                const stk_doctor_options *options, stk_gain *out,
                                                stk_error *err);

/* A job over a trainer: fit with these options, in short stretches. Its weights, optimizer state and step number are put
 * back by the doctor. All arguments are borrowed and must outlive the job. Validation, callbacks of epochs and checkpoints (written
 * beside the real one) are measured apart from the steps. Release it with stk_train_job_release. */
STK_API STK_MUST_USE stk_status stk_train_job_new(stk_trainer *trainer, const stk_train_data *data,
                                                  const stk_fit_options *fit, stk_job *out,
                                                  stk_error *err);
STK_API void stk_train_job_release(stk_job *job); /* NULL and never-filled ones are fine */

/* A job over a step that is a program of its own (stk_program_new_caller), run over the batches of a dataset: what a recorder made of a
 * loop. Everything is borrowed and must outlive the job. */
struct stk_over; /* tracing.h */
typedef struct stk_recorded_step {
    const char *name;
    stk_dataset *dataset;            /* its elements are batches */
    int64_t epoch_steps, plan_steps; /* 0 = not known */
    void *context;
    /* The program for an element like this (borrowed) on so many threads at most (0: as it is). into->leaf and into->given say
     * what its inputs are, as for stk_program_over. */
    stk_status (*program)(void *context, int32_t threads, int32_t nparts, stk_tensor *const *parts,
                          struct stk_over *into, stk_program **out, stk_error *err);
    /* (optional) the same examples in batches of so many rows; for the job to release */
    stk_dataset *(*rebatch)(void *context, int64_t rows, stk_error *err);
    int64_t rows; /* with rebatch: examples there are */
    stk_status (*save)(void *context,
                       stk_error *err); /* (optional) of everything the programs write */
    stk_status (*restore)(void *context, stk_error *err);
    bool threads; /* program can be asked for other numbers of threads */
} stk_recorded_step;
STK_API STK_MUST_USE stk_status stk_recorded_job_new(const stk_recorded_step *step, stk_job *out,
                                                     stk_error *err);
/* Released by stk_train_job_release. */

/* ---- what if ---------------------------------------------------------------------------------------------------
 * For cards one does not own: a model, not a measurement. Formula and sources in doc/watch.md. */
enum { STK_WORK_PARTS = 32, STK_WORK_POINTS = 12 };
typedef struct stk_work_part {
    double flops, bytes; /* of one step */
    bool updates;        /* only writes variables: does not grow with the batch */
} stk_work_part;
typedef struct stk_work_point {
    int64_t batch;
    double seconds;
} stk_work_point;
typedef struct stk_work {
    double flops, bytes;     /* of one step */
    double input_bytes;      /* of one batch */
    double parameter_bytes;  /* weights; gradients of the same size are added */
    double state_bytes;      /* the optimizer's; 0: as Adam's, twice the weights */
    double activation_bytes; /* of one batch */
    int32_t kernels;         /* launches of one step */
    int32_t syncs;           /* times the host waits in a step; 0 is usual */
    int64_t batch;
    double cpu_seconds; /* measured here, per step of this batch */
    /* Where they are known: */
    int32_t nparts; /* ops apart, each bound by arithmetic or by memory; together flops and bytes */
    stk_work_part part[STK_WORK_PARTS];
    int32_t npoints; /* steps measured here with other batches, smaller ones first */
    stk_work_point point[STK_WORK_POINTS];
} stk_work;
typedef struct stk_what_if {
    char card[48];
    double low_seconds, high_seconds;        /* per step at work.batch */
    char binding[16];                        /* launch, compute, memory, PCIe */
    int64_t break_even_low, break_even_high; /* batch from which the card is faster; -1 never */
    int64_t batch_limit;                     /* what its memory holds; 0 = not known */
    int verdict;                             /* 1 card faster, -1 CPU faster, 0 uncertain */
    char sources[48];                        /* of the card's numbers: letters of doc/watch.md */
} stk_what_if;
STK_API int32_t stk_card_count(void);
STK_API const char *stk_card_name(int32_t index);
STK_API STK_MUST_USE stk_status stk_what_if_card(const char *card, const stk_work *work,
                                                 stk_what_if *out, stk_error *err);
/* The work of a report's programs. */
STK_API STK_MUST_USE stk_status stk_report_work(const stk_report *report, stk_work *out,
                                                stk_error *err);
/* A table of cards for this work, labelled "model, not measured". n 0 = all. Free with stk_text_free. */
STK_API STK_MUST_USE stk_status stk_what_if_text(const stk_work *work, int32_t n,
                                                 const char *const *cards, char **text,
                                                 stk_error *err);

/* ---- TensorBoard -------------------------------------------------------------------------------------------------
 * Scalars of one's own in an event file. */
typedef struct stk_events stk_events;
/* folder/events.out.tfevents.<time>.<host>; the folder is made when it is not there. */
STK_API STK_MUST_USE stk_status stk_events_new(const char *folder, stk_events **out,
                                               stk_error *err);
STK_API STK_MUST_USE stk_status stk_events_scalar(stk_events *events, const char *tag, int64_t step,
                                                  double value, stk_error *err);
STK_API const char *stk_events_path(const stk_events *events);
/* Writes what is left and frees. */
STK_API STK_MUST_USE stk_status stk_events_close(stk_events *events, stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
