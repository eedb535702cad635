/* report.h - everything one run told, in plain arrays. The recorder and the doctor fill it, the writers read it, the JSON
 * form keeps all of it. Texts and arrays live in the report's arena. */
#ifndef STK_WATCH_REPORT_H
#define STK_WATCH_REPORT_H

#include "base/memory.h"
#include "stoker/watch.h"
#include "watch/text.h"

/* What this machine can do at most: [0] one thread, [1] all threads. */
enum { STK_ROOF_LEVELS = 3 }; /* data in L2, in L3, in memory */
typedef struct stk_roofline {
    int32_t threads;
    double gflops[2];
    double gbs[2][STK_ROOF_LEVELS];
    double level_bytes[STK_ROOF_LEVELS]; /* up to so many bytes of a launch the level counts */
    double join; /* seconds to call all threads and to wait for them; 0 = not known */
} stk_roofline;

typedef struct stk_report_op { /* one launch of a program, or all calls of one label */
    const char *label, *kernel, *impl, *device;
    int64_t calls;
    double seconds;      /* wall, as the step's thread saw it */
    double flops, bytes; /* of all calls */
    int32_t threads;
    double roof;       /* share of the roofline; 0 = not known */
    bool compute_side; /* right of the ridge: arithmetic is the limit */
    bool updates;
} stk_report_op;

typedef struct stk_island_row { /* an operation that the device does not take */
    const char *op, *place, *shape, *reason;
    int64_t bytes_down, bytes_up; /* of one step */
} stk_island_row;

typedef struct stk_layer_cost { /* what a layer costs, forward and backward */
    const char *place;          /* "encoder/dense_1", "optimizer", "" = not known */
    const char *largest;        /* its dearest op */
    int64_t launches, calls, tiny_calls;
    double seconds, backward_seconds, tiny_seconds;
} stk_layer_cost;
typedef struct stk_tiny_ops { /* calls below STK_TINY_SECONDS, of one step */
    double calls, seconds;
    double ideal_seconds; /* the same work at the speed of large ops */
} stk_tiny_ops;
static const double STK_TINY_SECONDS = 2e-6;
typedef struct stk_conv_cost { /* one convolution of the program: forward or one of its gradients */
    const char *place, *op, *kernel, *impl;
    int64_t calls;
    double seconds, flops; /* of all calls */
    double share;          /* of the multiply-adds that all threads could do in that time */
} stk_conv_cost;

enum { STK_SLICES = 48 };
typedef struct stk_thread_row {
    const char *name;
    double busy;  /* share of the steady state's wall time in spans */
    double *over; /* the same in nslices slices of the steady state */
    int64_t nover;
} stk_thread_row;

typedef struct stk_buffer_row { /* a piece of the arena */
    int64_t at, bytes;
    int32_t first, last; /* regions of the program in which it is alive */
    int32_t kind;        /* stk_memory_kind */
    const char *place;
} stk_buffer_row;
typedef enum stk_memory_kind {
    STK_MEMORY_ACTIVATIONS,
    STK_MEMORY_GRADIENTS,
    STK_MEMORY_UPDATE,
    STK_MEMORY_SCRATCH,
    STK_MEMORY_KINDS
} stk_memory_kind;
const char *stk_memory_kind_name(stk_memory_kind kind);
const char *stk_memory_kind_colour(stk_memory_kind kind);

typedef struct stk_span_row { /* a few steady steps, for the timeline */
    int32_t thread;           /* row of threads[] */
    int32_t book;             /* STK_BOOK_COUNT: a stage or another thread's work */
    double start, seconds;    /* from the first step shown */
    const char *name;
} stk_span_row;

enum { STK_HISTOGRAM = 16 }; /* calls of kernels by time: below 1/2 us, 1, 2, 4 ... us */

typedef struct stk_memory_rows {
    int64_t arena, constants, variables, stages, peak_rss;
    int64_t weights, optimizer, metrics, inputs;
    /* of the inputs: used where they are; copied to memory that goes up fast; in such memory already; living on the device */
    int64_t in_place, staged, pinned, resident;
    int64_t peak[STK_MEMORY_KINDS]; /* of the arena, at its fullest moment */
    int64_t peak_at;                /* that moment, as a region */
} stk_memory_rows;

typedef struct stk_program_totals { /* of the program that took most time */
    int32_t launches, regions, programs;
    double flops, bytes, build_ms, election_ms;
} stk_program_totals;

/* What more threads would bring: scaling.h. */
enum { STK_SCALING_POINTS = 7, /* 1, 2, 4 ... 64 threads */ STK_SCALING_LIMITS = 6 };
typedef struct stk_scaling_point {
    int32_t threads;
    double seconds;        /* of a step, when memory keeps up with the threads */
    double memory_seconds; /* with the memory of this machine */
} stk_scaling_point;
typedef struct stk_scaling_limit { /* a region that takes long however many threads there are */
    const char *op, *place;        /* its dearest launch */
    int32_t parts;
    double one, most; /* seconds on one thread, on as many as there may be */
} stk_scaling_limit;
typedef struct stk_scaling {     /* seconds of one step */
    double cut, serial, outside; /* kernels in parts; kernels in one piece; no kernel */
    double bytes;                /* that pass through memory */
    double join;                 /* one region's calling and waiting, on two threads */
    int32_t regions, split;      /* split: in more than one part */
    stk_scaling_point point[STK_SCALING_POINTS];
    int64_t npoints;                             /* 0: nothing is known */
    stk_scaling_limit limit[STK_SCALING_LIMITS]; /* longest first */
    int64_t nlimits;
} stk_scaling;

typedef struct stk_ceiling {
    const char *text; /* "if input were free" */
    stk_gain gain;
} stk_ceiling;
typedef struct stk_curve_point {
    int64_t batch;
    double step_seconds, examples_per_second;
    stk_gain gain; /* per example, against the job as it is */
} stk_curve_point;
typedef struct stk_epoch_rows { /* seconds of one epoch as it is; steps 0: not known */
    int64_t steps, validation_steps, validation_every;
    double training, validation, callbacks, checkpoint;
} stk_epoch_rows;
typedef struct stk_device_row {
    const char *name, *kind; /* kind: "measured", "tried" (elsewhere on this machine) or "model" */
    double low_seconds, high_seconds;
    const char *note;
} stk_device_row;

struct stk_report {
    stk_arena arena;
    const char *title, *version, *machine;
    int64_t created; /* seconds since 1970 */
    int64_t batch, plan_steps;
    stk_roofline roof;

    double phase_seconds[STK_PHASE_COUNT];
    int64_t phase_steps[STK_PHASE_COUNT];
    double *step_seconds; /* of all recorded steps, thinned to at most STK_STEPS_KEPT */
    int64_t nsteps, first_steady;
    double p10, median, p90;     /* of steady steps */
    int64_t period;              /* of steady steps: bursts come every so many; 1 = none found */
    double book[STK_BOOK_COUNT]; /* seconds per steady step */
    int64_t book_steps;
    int64_t lost; /* records that did not fit */

    stk_report_op *ops; /* by launch, slowest first */
    int64_t nops;
    stk_watch_stage *stages; /* in the order of the walk */
    int64_t nstages, cap_stages;
    int32_t limiting_stage; /* -1: none */
    stk_layer_cost *places; /* slowest first */
    int64_t nplaces;
    stk_conv_cost *convs; /* slowest first */
    int64_t nconvs;
    stk_island_row *islands;
    int64_t nislands;
    stk_tiny_ops tiny;
    stk_thread_row *threads;
    int64_t nthreads;
    double device_busy;      /* share of the steady state in which some kernel runs */
    double device_threads;   /* threads that compute then, on average */
    stk_buffer_row *buffers; /* of the busiest program, at most STK_BUFFERS_KEPT */
    int64_t nbuffers;
    stk_span_row *spans;
    int64_t nspans;
    int64_t histogram_calls[STK_HISTOGRAM];
    double histogram_seconds[STK_HISTOGRAM];
    stk_memory_rows memory;
    stk_program_totals program;
    stk_scaling scaling;
    double input_bytes; /* of one batch */

    /* the doctor's part */
    const char *verdict, *headline, *evidence; /* NULL: no doctor */
    stk_epoch_rows epoch;
    int64_t left_out; /* probes for which there was no time */
    double noise;     /* effects below this cannot be told; 0.05 = 5 % */
    stk_ceiling *ceilings;
    int64_t nceilings;
    stk_advice *advice;
    int64_t nadvice;
    stk_gain together; /* all safe advice at once; best 0 = not measured */
    stk_curve_point *curve;
    int64_t ncurve;
    int64_t knee, batch_limit; /* 0 = not known */
    stk_device_row *devices;
    int64_t ndevices;
    double doctor_seconds;
};
enum { STK_STEPS_KEPT = 600, STK_SPANS_KEPT = 1500, STK_BUFFERS_KEPT = 400 };

stk_report *stk_report_new(void); /* NULL without memory */
const char *stk_book_colour(stk_book book);
bool stk_knob_parse(const char *name, stk_knob *out);
void stk_knob_range(stk_knob knob, int64_t *least, int64_t *most);
/* The dataset (taken over) as these settings want it made, without prefetch. */
stk_dataset *stk_settings_pipeline(const stk_job_settings *s, stk_dataset *ds, stk_error *err);
/* The same with a cache of at most so many MiB where one belongs, if it does anywhere. */
stk_dataset *stk_settings_cache(int64_t mib, stk_dataset *ds, stk_error *err);
/* "prefetch 2" into text. */
char *stk_advice_text(stk_knob knob, int64_t value, char *text, size_t size);

/* Share of the roofline of one launch that works on `bytes` with `flops` in `seconds`, on so many threads. */
double stk_roof_share(const stk_roofline *roof, double flops, double bytes, double seconds,
                      int32_t threads, bool *compute_side);
/* About 0.1 s; measured once per process. */
stk_status stk_roofline_measure(stk_roofline *out, stk_error *err);

/* Into a file, whole or not at all. */
stk_status stk_report_save_text(const char *path, const char *text, size_t size, stk_error *err);

/* Writers. */
void stk_report_put_text(const stk_report *r, stk_text *t);
void stk_report_put_html(const stk_report *r, stk_text *t);
void stk_report_put_chrome(const stk_report *r, stk_text *t);
stk_status stk_report_put_json(const stk_report *r, char **text, size_t *size, stk_error *err);
void stk_report_put_events(const stk_report *r, stk_text *t);

/* report.c: where a batch comes from, as a sentence; "" when no input is known. Returns text. */
char *stk_report_data_text(const stk_report *r, char text[200]);
/* ops.c: the device that most of the kernels' time was spent on; "" when no kernel ran. */
const char *stk_report_device(const stk_report *r);
/* Multiply-adds of all convolutions over what the threads could do in their time; 0 without any. Above 1 where Winograd's way
 * leaves out multiplications. */
double stk_report_conv_share(const stk_report *r);

#endif
