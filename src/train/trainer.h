/* trainer.h - the trainer inside: what trainer.c, fit.c, callbacks.c and checkpoint.c share. */
#ifndef STK_TRAIN_TRAINER_H
#define STK_TRAIN_TRAINER_H

#include "base/clock.h"
#include "base/trace.h"
#include "train/batches.h"
#include "train/history.h"
#include "train/named.h"
#include "train/resident.h"
#include "train/step.h"

enum { STK_MODES = STK_STEP_PREDICT + 1 };

/* ---- time: each moment of fit belongs to one category ------------------------------------------------------
 * The trainer is in one category at any time; switching reads the clock once. */
typedef struct stk_books {
    uint64_t ticks[STK_SPAN_COUNT + 1]; /* last: none of them */
    uint64_t since;                     /* start of the running one */
    uint64_t trace;                     /* the same, 0 when tracing is off */
    int32_t now;                        /* stk_span_kind, STK_SPAN_COUNT = none */
    stk_tick_scale scale;
    int64_t steps, samples;
} stk_books;

/* Where a run stands, beside the numbers in the store. Read from a checkpoint, used by the next fit. */
typedef struct stk_position {
    int64_t epoch, batch; /* the next one to do */
    void *data;           /* of the dataset, see stk_batches_save */
    size_t data_size;
    double *states; /* of all callbacks, one behind the other */
    int64_t nstates;
    bool loaded; /* a checkpoint was read and no fit has used it yet */
} stk_position;

struct stk_trainer {
    stk_model *model;
    stk_optimizer *optimizer;
    stk_step *maker; /* losses, metrics, how a step is made */
    stk_device *device;
    stk_store *store;
    stk_program_options how;
    stk_trainer_options made; /* as it was made, with texts of its own; device NULL */
    int64_t seed, step;
    stk_function *functions[STK_MODES][2]; /* [..][weighted] */
    stk_program *last;
    int32_t nx, ny;
    int32_t nlogs;
    char **names;            /* [2 * nlogs]: own, and the same with val_ in front */
    const char **epoch_logs; /* [2 * nlogs + 1]: those of an epoch, learning_rate behind them */
    double *values;          /* [2 * nlogs + 1] */
    stk_logs evaluated;      /* what evaluate hands out */
    stk_history *history;
    stk_position position;
    struct stk_fit *fit;    /* the running one, else NULL */
    stk_named_list best;    /* weights that early stopping keeps */
    int64_t resident_bytes; /* of the data that lived on the device in the last fit */
    stk_books books;
    int32_t stop; /* atomic */
    bool finish;
    stk_error trouble; /* something could not be written and is tried again; code STK_OK: nothing */
    const void *trouble_of;
};

/* fit.c: `of` could not write (why), or could again (NULL). The training goes on; what is still so at its end is the error
 * of fit. */
void stk_trouble(stk_trainer *t, const void *of, const stk_error *why);

/* books.c */
void stk_books_start(stk_books *b);
int32_t stk_books_enter(stk_books *b, int32_t kind); /* returns the one that was left */
void stk_books_end(stk_books *b);

/* trainer_copy.c: a trainer with the same model, losses and weights but another policy of numbers and memory of its own. */
STK_MUST_USE stk_status stk_trainer_copy(stk_trainer *t, const char *precision, stk_trainer **out,
                                         stk_error *err);
/* Does it compute with 32-bit numbers throughout? */
bool stk_trainer_is_float32(stk_trainer *t);

/* trainer_options.c: copies of what the caller gave. */
STK_MUST_USE stk_status stk_trainer_keep_options(stk_trainer *t, const stk_trainer_options *o,
                                                 stk_error *err);
void stk_trainer_drop_options(stk_trainer *t);
/* "a,b;c" of options, word by word with the output it is for. */
typedef struct stk_trainer_word {
    char *text;
    int32_t output;
} stk_trainer_word;
typedef struct stk_trainer_words {
    stk_trainer_word *items;
    int64_t count, capacity;
    int32_t outputs;
} stk_trainer_words;
STK_MUST_USE stk_status stk_trainer_split(const char *text, stk_trainer_words *out, stk_error *err);
void stk_trainer_words_release(stk_trainer_words *w);

/* trainer.c: do weights (if they are still to be made) and `slots` arrays of state for each of them fit into memory? */
STK_MUST_USE stk_status stk_check_room(const stk_model *m, bool weights, int32_t slots,
                                       stk_error *err);

/* trainer.c: the program for this batch, fed. */
STK_MUST_USE stk_status stk_trainer_prepare(stk_trainer *t, stk_step_mode mode, stk_batches *b,
                                            stk_program **program, stk_error *err);
stk_batch_options stk_trainer_batches(stk_trainer *t, stk_step_mode mode, int64_t batch);
/* Evaluation over opened batches into values[0 .. nlogs). */
STK_MUST_USE stk_status stk_trainer_run_evaluation(stk_trainer *t, stk_batches *b, double *values,
                                                   stk_error *err);
/* Copies of the model's weights, and back. */
STK_MUST_USE stk_status stk_trainer_get_weights(stk_trainer *t, stk_named_list *out,
                                                stk_error *err);
STK_MUST_USE stk_status stk_trainer_put_weights(stk_trainer *t, const stk_named_list *list,
                                                stk_error *err);

/* culprit.c: what in the data of the running fit can have made the loss NaN or infinite: the first number that is neither in
 * batches after `from` up to `to` of this epoch. Datasets are walked once more for it. */
bool stk_culprit_find(stk_trainer *t, int64_t from, int64_t to, char *text, size_t size);

/* ---- a running fit -------------------------------------------------------------------------------------------- */
typedef struct stk_fit {
    stk_trainer *t;
    const stk_fit_options *o;
    stk_batches batches, validation;
    bool validates;
    bool every_step;      /* some callback wants to know about each */
    bool looks;           /* some callback wants to see progress */
    int64_t epoch, batch; /* the next ones */
    int64_t samples, first_batch;
    int64_t began;             /* ns: of the epoch */
    uint64_t look_at, save_at; /* ticks when something is due; UINT64_MAX: never */
    double ticks_per_second;
    double rate;
    int64_t saved_epoch,
        saved_batch; /* what the checkpoint's file holds; -1: nothing of this run */
} stk_fit;

/* checkpoint.c: of the running fit, or between fits. */
STK_MUST_USE stk_status stk_checkpoint_write(stk_trainer *t, const char *path, stk_error *err);

#endif
