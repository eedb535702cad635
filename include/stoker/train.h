/* train.h - training: fit, evaluate, predict, callbacks, checkpoints, weight files.
 *
 *     stk_error err;
 *     stk_model *m = NULL;
 *     stk_trainer *t = NULL;
 *     stk_history *h = NULL;
 *     if (stk_model_new("line", &m, &err) != STK_OK) return 1;
 *     stk_model_add(m, "Input(shape=(1,))");
 *     stk_model_add(m, "Dense(1)");
 *     if (stk_model_build(m, 0, NULL, &err) != STK_OK) puts(err.message);
 *
 *     stk_trainer_options how = stk_trainer_defaults();
 *     how.optimizer = "sgd:lr=0.1";
 *     how.loss = "mse";
 *     how.metrics = "mae";
 *     if (stk_trainer_new(m, &how, &t, &err) != STK_OK) puts(err.message);
 *
 *     stk_tensor *x = NULL, *y = NULL;
 *     stk_tensor_from(STK_F32, 2, (int64_t[]){4, 1}, (float[]){0, 1, 2, 3}, &x, &err);
 *     stk_tensor_from(STK_F32, 2, (int64_t[]){4, 1}, (float[]){1, 3, 5, 7}, &y, &err);   // y = 2x + 1
 *     stk_fit_options fit = stk_fit_defaults();
 *     fit.epochs = 200;
 *     if (stk_trainer_fit(t, &(stk_train_data){.nx = 1, .x = &x, .ny = 1, .y = &y}, &fit, &h, &err) != STK_OK)
 *         puts(err.message);
 *     printf("loss %g, mae %g\n", stk_history_value(h, "loss", -1), stk_history_value(h, "mae", -1));
 *     if (stk_trainer_save_weights(t, "line.safetensors", &err) != STK_OK) puts(err.message);
 *     stk_history_release(h), stk_tensor_release(x), stk_tensor_release(y);
 *     stk_trainer_release(t);
 *     stk_model_release(m);
 *
 * A trainer holds a model's numbers (one stk_store with weights, optimizer state and metrics) and the programs that
 * change them, one per batch shape. Whole stretches of steps run inside fit without a look at anything but the next batch; loss and
 * metrics add up inside the program and are read a few times per second at most. A trainer belongs to one thread at a time; only
 * stk_trainer_stop may be called by others and by signal handlers. */
#ifndef STOKER_TRAIN_H
#define STOKER_TRAIN_H

#include "data.h"
#include "layers.h"
#include "optim.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- numbers with names ---------------------------------------------------------------------------------- */
typedef struct stk_logs {
    int32_t count;
    const char *const *names; /* "loss", "accuracy", "val_loss", "learning_rate" ... */
    const double *values;
} stk_logs;
/* NaN when it is not there. */
STK_API double stk_logs_get(const stk_logs *logs, const char *name);

/* What was logged at the end of each epoch. */
typedef struct stk_history stk_history;
STK_API int64_t stk_history_rows(const stk_history *h);
STK_API int64_t stk_history_epoch(const stk_history *h, int64_t row); /* from 0; -1: no such row */
STK_API int32_t stk_history_count(const stk_history *h);              /* names */
STK_API const char *stk_history_name(const stk_history *h, int32_t index);
/* row -1 is the last one. NaN when there is no such number. */
STK_API double stk_history_value(const stk_history *h, const char *name, int64_t row);
/* {"epoch": [0, 1], "history": {"loss": [0.5, 0.25]}}; free it with stk_text_free. */
STK_API STK_MUST_USE stk_status stk_history_json(const stk_history *h, int32_t indent, char **text,
                                                 stk_error *err);
STK_API void stk_history_release(stk_history *h);

/* ---- trainers ---------------------------------------------------------------------------------------------- */
typedef struct stk_trainer stk_trainer;

typedef struct stk_trainer_options {
    const char *optimizer;      /* see optim.h; NULL: "rmsprop", as Keras' compile */
    const char *loss;           /* Keras' name; for several outputs one each, separated by ';' */
    const double *loss_weights; /* one per output; NULL: all 1 */
    const char *metrics;   /* "accuracy,mae"; for several outputs "accuracy;mae,mse"; NULL: none */
    const char *precision; /* a policy of layers.h, "mixed_bfloat16"; NULL: as the model says */
    stk_device *device;    /* NULL: cpu:0 */
    int32_t threads;       /* at most; 0: all of the device */
    bool deterministic;    /* kernels by table: same bits on every machine of one instruction set */
    int64_t seed;          /* initial weights, order of the rows, dropout */
} stk_trainer_options;
STK_API stk_trainer_options stk_trainer_defaults(void);

/* Keeps a handle of the model, makes the numbers: weights from their initialisers, optimizer state. */
STK_API STK_MUST_USE stk_status stk_trainer_new(stk_model *model,
                                                const stk_trainer_options *options,
                                                stk_trainer **out, stk_error *err);
/* Whether weights, and for training the optimizer's state beside them, fit into the memory that is left (the machine's, the control
 * group's, ulimit's): STK_ERR_MEMORY with "needs X, has Y". stk_trainer_new asks for the weights, stk_trainer_fit for the rest. */
STK_API STK_MUST_USE stk_status stk_trainer_check_memory(const stk_model *model,
                                                         const char *optimizer, bool training,
                                                         stk_error *err);
STK_API void stk_trainer_release(stk_trainer *t);
STK_API stk_model *stk_trainer_model(stk_trainer *t);   /* borrowed */
STK_API stk_device *stk_trainer_device(stk_trainer *t); /* borrowed */
STK_API stk_store *stk_trainer_store(
    stk_trainer *t); /* borrowed: weights, optimizer, metrics, by name */
/* Threads at most from now on, 0: all of the device; programs are made anew. Between fits. */
STK_API STK_MUST_USE stk_status stk_trainer_set_threads(stk_trainer *t, int32_t threads,
                                                        stk_error *err);
STK_API int64_t stk_trainer_step(const stk_trainer *t); /* steps since the weights were new */
STK_API STK_MUST_USE stk_status stk_trainer_rate(stk_trainer *t, double *rate, stk_error *err);
STK_API STK_MUST_USE stk_status stk_trainer_set_rate(stk_trainer *t, double rate, stk_error *err);

/* ---- what to train on: arrays whose first axis is the samples, or a dataset whose elements are batches ------- */
typedef struct stk_train_data {
    int32_t nx, ny;
    stk_tensor *const *x, *const *y; /* one per input and output of the model */
    stk_tensor *weights;             /* one number per sample; NULL: all 1 */
    /* Instead of the above. The leaves of an element are x..., y..., and perhaps weights; borrowed. */
    stk_dataset *dataset;
} stk_train_data;

typedef struct stk_callback stk_callback;
typedef struct stk_fit_options {
    int64_t batch;           /* rows per step, of arrays; 32 */
    int64_t epochs;          /* number of the last epoch; 1 */
    int64_t initial_epoch;   /* 0 */
    int64_t steps_per_epoch; /* 0: all there is. With more than a dataset has, it is walked again */
    bool no_shuffle;         /* arrays are shuffled anew in each epoch unless set */
    double validation_split; /* share of the arrays, taken from their end before shuffling */
    const stk_train_data *validation; /* or data of its own */
    int64_t validation_batch;         /* 0: batch */
    int64_t validation_steps;         /* 0: all there is */
    int64_t validation_every;         /* epochs; 1 */
    const double *class_weights;      /* [classes]: weight of a sample by its integer label */
    int32_t classes;
    stk_callback *const *callbacks; /* borrowed; called in this order */
    int32_t ncallbacks;
    int64_t callbacks_every; /* batch_end is called after every so many steps; 0: after each */
    const char *checkpoint;  /* file that is kept up to date; NULL: none */
    /* at most this much work is lost; 0: at the end of each epoch only */
    double checkpoint_seconds;
    bool resume; /* go on from the checkpoint if the file exists */
} stk_fit_options;
STK_API stk_fit_options stk_fit_defaults(void);

/* Trains. *history (may be NULL) is a handle for the caller, also of what was logged before a checkpoint. Ends with
 * ERR_CANCELLED after stk_trainer_stop, when the running step is done and the checkpoint is written; *history is given
 * then as well. */
STK_API STK_MUST_USE stk_status stk_trainer_fit(stk_trainer *t, const stk_train_data *data,
                                                const stk_fit_options *options,
                                                stk_history **history, stk_error *err);
/* Ask fit to end: from a callback it is a regular end (early stopping), from elsewhere a cancellation. */
STK_API void stk_trainer_stop(stk_trainer *t);   /* any thread, also signal handlers */
STK_API void stk_trainer_finish(stk_trainer *t); /* callbacks: this epoch is the last one */

/* Loss and metrics of the data, in the order and with the names of fit's. The logs belong to the trainer and stay until
 * the next call. batch 0: 32. steps 0: all there is. */
STK_API STK_MUST_USE stk_status stk_trainer_evaluate(stk_trainer *t, const stk_train_data *data,
                                                     int64_t batch, int64_t steps,
                                                     const stk_logs **logs, stk_error *err);
/* One tensor per output into y[], handles for the caller. Of a dataset the leaves behind x are not looked at. */
STK_API STK_MUST_USE stk_status stk_trainer_predict(stk_trainer *t, const stk_train_data *data,
                                                    int64_t batch, stk_tensor **y, stk_error *err);
/* One step on these rows; logs (may be NULL) as of evaluate: of this batch alone. */
STK_API STK_MUST_USE stk_status stk_trainer_train_on_batch(stk_trainer *t,
                                                           const stk_train_data *data,
                                                           const stk_logs **logs, stk_error *err);

/* ---- callbacks --------------------------------------------------------------------------------------------- */
typedef struct stk_progress {
    int64_t epoch, epochs; /* from 0; the total */
    int64_t step, steps;   /* done in this epoch; in all of it, 0 = not known */
    int64_t first_step;    /* where this run entered the epoch (0 unless resumed) */
    int64_t samples;       /* seen by this run in this epoch */
    double seconds;        /* since the epoch began, or was entered */
    stk_logs logs;         /* loss and metrics so far */
    /* a log or checkpoint that cannot be written, and is tried again; or NULL */
    const char *trouble;
} stk_progress;

/* A callback is a struct whose slots may be NULL. Calls that fail end the training with their message. `state` are the numbers a
 * checkpoint must hold for it to go on as if nothing had happened; they are put back after train_begin. */
struct stk_callback {
    /* of the kind: "early_stopping"; a resumed run must have the same callbacks */
    const char *name;
    void *context;
    double *state;
    int32_t nstate;
    stk_status (*train_begin)(stk_callback *self, stk_trainer *t, stk_error *err);
    stk_status (*epoch_begin)(stk_callback *self, stk_trainer *t, int64_t epoch, stk_error *err);
    /* A few times per second, and at the end of the epoch before validation. */
    stk_status (*progress)(stk_callback *self, stk_trainer *t, const stk_progress *p,
                           stk_error *err);
    /* After every step; logs are read each time, which costs some microseconds. */
    stk_status (*batch_end)(stk_callback *self, stk_trainer *t, const stk_progress *p,
                            stk_error *err);
    /* p->logs has everything of the epoch, also val_... and learning_rate. */
    stk_status (*epoch_end)(stk_callback *self, stk_trainer *t, const stk_progress *p,
                            stk_error *err);
    stk_status (*train_end)(stk_callback *self, stk_trainer *t, stk_error *err);
    void (*release)(
        stk_callback *self); /* frees context, state and self; for stk_callback_release */
};
STK_API void stk_callback_release(stk_callback *callback); /* NULL is fine */

typedef struct stk_monitor_options { /* what early stopping and its kin look at */
    const char *monitor;             /* "val_loss" */
    const char *mode;                /* "auto", "min" or "max" */
    double min_delta;                /* less is no improvement; -1: as Keras (0, reduce_lr 1e-4) */
    int64_t patience;                /* epochs without one; -1: as Keras (0, reduce_lr 10) */
    int64_t start_from;              /* first epoch that counts */
    double baseline;                 /* must be beaten; NaN: none */
    bool restore_best;               /* early stopping: put the best weights back at the end */
    double factor, min_lr;           /* reduce_lr: new rate = rate * factor, at least min_lr */
    int64_t cooldown;                /* reduce_lr: epochs of rest after a reduction */
} stk_monitor_options;
STK_API stk_monitor_options stk_monitor_defaults(void); /* Keras' of EarlyStopping; factor 0.1 */
STK_API STK_MUST_USE stk_status stk_early_stopping(const stk_monitor_options *options,
                                                   stk_callback **out, stk_error *err);
STK_API STK_MUST_USE stk_status stk_reduce_lr(const stk_monitor_options *options,
                                              stk_callback **out, stk_error *err);
/* rate(context, epoch, rate so far) is the new rate. */
STK_API STK_MUST_USE stk_status stk_lr_scheduler(double (*rate)(void *context, int64_t epoch,
                                                                double rate),
                                                 void *context, stk_callback **out, stk_error *err);
/* Ends the training when the loss is no longer a number. */
STK_API STK_MUST_USE stk_status stk_terminate_on_nan(stk_callback **out, stk_error *err);
/* One line per epoch: epoch, then the logs. append: go on in a file that exists. */
STK_API STK_MUST_USE stk_status stk_csv_logger(const char *path, bool append, stk_callback **out,
                                               stk_error *err);
/* Writes weights at the end of epochs. "{epoch}" in the path becomes the number of the epoch from 1; with best_only only when
 * watch->monitor is better than ever. watch may be NULL: the defaults. */
STK_API STK_MUST_USE stk_status stk_model_checkpoint(const char *path, bool best_only,
                                                     const stk_monitor_options *watch,
                                                     stk_callback **out, stk_error *err);

/* Progress as text, for those who print it. columns: of the terminal, 0 = any. Both return text (at most size bytes, always
 * terminated).
 *     Epoch 3/10 120/469 [#######.................] ETA 2.1 s, 45.2k samples/s - loss 0.1234 - accuracy 0.9612
 *     Epoch 3/10 - 2.8 s - 21.3k samples/s - loss 0.1234 - accuracy 0.9612 */
STK_API char *stk_progress_bar(const stk_progress *p, int32_t columns, bool ascii, char *text,
                               size_t size);
STK_API char *stk_progress_epoch(const stk_progress *p, char *text, size_t size);

/* ---- where the time went ----------------------------------------------------------------------------------- */
typedef enum stk_span_kind {
#define STK_SPAN(NAME, name, doc) STK_SPAN_##NAME,
#include "spans.def"
    STK_SPAN_COUNT
} stk_span_kind;
STK_API const char *stk_span_name(stk_span_kind kind); /* "train.step" */
typedef struct stk_train_times {
    double seconds[STK_SPAN_COUNT]; /* of the last fit; no moment is counted twice */
    double total;                   /* wall time of it */
    int64_t steps, samples;
} stk_train_times;
STK_API void stk_trainer_times(const stk_trainer *t, stk_train_times *out);
/* The program of the last step, for reports; NULL before. Borrowed. */
STK_API stk_program *stk_trainer_program(stk_trainer *t);

/* ---- files ----------------------------------------------------------------------------------------------------
 * A checkpoint is one file with weights, optimizer, metrics, position in the data and history. It is written beside the old one and
 * renamed when it is on the disk. Loading gives the same bits as never having stopped. */
STK_API STK_MUST_USE stk_status stk_trainer_save(stk_trainer *t, const char *path, stk_error *err);
STK_API STK_MUST_USE stk_status stk_trainer_load(stk_trainer *t, const char *path, stk_error *err);
/* The weights of the model alone, as safetensors; loading wants every weight of the model unless partial. A checkpoint
 * and the files of Keras are understood as well, and written when the name ends so (keras.h). */
STK_API STK_MUST_USE stk_status stk_trainer_save_weights(stk_trainer *t, const char *path,
                                                         stk_error *err);
STK_API STK_MUST_USE stk_status stk_trainer_load_weights(stk_trainer *t, const char *path,
                                                         bool partial, stk_error *err);

/* safetensors: named tensors in a file. */
typedef struct stk_safetensors stk_safetensors;
STK_API STK_MUST_USE stk_status stk_safetensors_load(const char *path, stk_safetensors **out,
                                                     stk_error *err);
STK_API STK_MUST_USE stk_status stk_safetensors_save(const char *path, int32_t count,
                                                     const char *const *names,
                                                     stk_tensor *const *tensors, stk_error *err);
STK_API int32_t stk_safetensors_count(const stk_safetensors *file);
STK_API const char *stk_safetensors_name(const stk_safetensors *file, int32_t index);
STK_API stk_tensor *stk_safetensors_tensor(const stk_safetensors *file,
                                           int32_t index); /* borrowed */
STK_API stk_tensor *stk_safetensors_find(const stk_safetensors *file, const char *name);
STK_API void stk_safetensors_release(stk_safetensors *file);

#ifdef __cplusplus
}
#endif
#endif
