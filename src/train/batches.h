/* batches.h - where the steps get their batches: rows of arrays, or the elements of a dataset.
 *
 *     stk_batches b = {0};
 *     STK_TRY(stk_batches_open(&b, data, &how, err));
 *     STK_TRY(stk_batches_begin(&b, epoch, done, err));            // `done` batches of this epoch were seen before
 *     while (STK_OK == (status = stk_batches_next(&b, err)) && !b.end)
 *         use(b.parts, b.n, b.rows);                               // valid until the next call
 *     stk_batches_close(&b);
 *
 * Arrays: order and contents of every batch are a function of (seed, epoch, number of the batch). In steady state nothing is
 * allocated: rows are copied into two slots in turn, or, unshuffled, looked at where they are. */
#ifndef STK_TRAIN_BATCHES_H
#define STK_TRAIN_BATCHES_H

#include "base/rng.h"
#include "stoker/train.h"

enum { STK_PARTS_MAX = 64 };

typedef struct stk_batch_options {
    int64_t batch;
    int64_t first, rows; /* of the arrays; rows -1: all from first on */
    bool shuffle;
    int64_t seed;
    int64_t steps; /* per epoch, 0: all there is */
    bool with_y;   /* false: predict, only x is wanted */
    const double *class_weights;
    int32_t classes;
    int32_t nx, ny;              /* what the model wants */
    stk_model *model;            /* whose inputs x must fit */
    stk_device *device;          /* where they go to; NULL: not known. Not held */
    const struct stk_step *step; /* whose classes the labels must be; NULL: not looked at */
} stk_batch_options;

typedef struct stk_batch_slot {
    stk_tensor *part[STK_PARTS_MAX];
} stk_batch_slot;

/* Rows of the next batch may be copied by a thread of its own while this one is trained on. Whether that pays is found out by
 * trying: it costs waking a thread, and takes time from a processor that may be computing. */
typedef struct stk_rows_ahead {
    struct stk_workers *workers;
    int64_t calls; /* of next, since the trial began */
    bool on;       /* copy ahead, now */
    bool pending;  /* batch `number` is being copied, or lies ready, in the slot of `turn` */
    int64_t number;
    int32_t turn;
    uint64_t last;       /* ticks of the last call */
    uint64_t copy;       /* least ticks of a copy */
    uint64_t between[2]; /* least ticks between two calls: [copied at once, ahead] */
} stk_rows_ahead;

typedef struct stk_batches {
    /* the batch at hand */
    stk_tensor *parts[STK_PARTS_MAX];
    int32_t n;
    bool weighted; /* the last part are weights */
    int64_t rows;
    bool end;
    /* both kinds */
    stk_batch_options how;
    int64_t epoch, at; /* batches handed out in this epoch */
    int64_t steps;     /* in an epoch; 0: not known */
    /* arrays */
    stk_tensor *arrays[STK_PARTS_MAX];
    int32_t narrays;                 /* n, less the weights that are made here */
    const stk_tensor *labels;        /* class weights look here */
    const stk_tensor *given;         /* weights of the samples, or NULL */
    int64_t total;                   /* rows in use */
    int64_t *order;                  /* [total] this epoch's permutation; NULL: as they stand */
    stk_batch_slot slot[2], tail[2]; /* tail: the last, smaller batch */
    int32_t turn;
    stk_rows_ahead ahead;
    /* They live on the device (resident.h); parts have their shapes only. */
    struct stk_resident *resident;
    /* datasets */
    stk_dataset *dataset;
    stk_stream *stream;
    int64_t walks; /* times the dataset was started in this epoch */
    int32_t leaves;
} stk_batches;

STK_MUST_USE stk_status stk_batches_open(stk_batches *b, const stk_train_data *data,
                                         const stk_batch_options *how, stk_error *err);
STK_MUST_USE stk_status stk_batches_begin(stk_batches *b, int64_t epoch, int64_t done,
                                          stk_error *err);
STK_MUST_USE stk_status stk_batches_next(stk_batches *b, stk_error *err);
/* Labels that are no classes of the model are refused: of arrays when they are opened, of datasets batch by batch. y: one per
 * output. */
STK_MUST_USE stk_status stk_batches_check_labels(const struct stk_step *step, int32_t ny,
                                                 stk_tensor *const *y, stk_error *err);
/* Position inside the epoch, for datasets: bytes freed with stk_free (NULL for arrays, whose position is a number). */
STK_MUST_USE stk_status stk_batches_save(stk_batches *b, void **bytes, size_t *size,
                                         stk_error *err);
STK_MUST_USE stk_status stk_batches_restore(stk_batches *b, const void *bytes, size_t size,
                                            stk_error *err); /* after begin */
void stk_batches_close(stk_batches *b);

/* rows.c: the batches of arrays. */
void stk_rows_begin(stk_batches *b); /* b->epoch and b->at are set */
void stk_rows_next(stk_batches *b);
void stk_rows_close(stk_batches *b);
/* Of the batch at hand: its first row in the order of the epoch; and array i, which was left out as it lives on the device. */
int64_t stk_rows_first(const stk_batches *b);
void stk_rows_copy(stk_batches *b, int32_t i);
/* Tests: always or never ahead, instead of a trial. */
void stk_rows_force(stk_batches *b, bool ahead);

#endif
