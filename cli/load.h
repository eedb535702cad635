/* load.h - what the commands that run a model have in common: the model, its data, a trainer over it. */
#ifndef STK_CLI_LOAD_H
#define STK_CLI_LOAD_H

#include "cli.h"

/* Options that say which parts of the files are meant; to be put into a command's list. */
#define CLI_DATA_OPTIONS                                                                           \
    {"x", "NAMES", "arrays of an .npz that are the inputs (default: x, x_train, x0,x1...)"},       \
        {"y", "NAMES", "arrays that are the targets (default: y, y_train, or y0,y1,...)"},         \
        {"sample-weight", "NAME", "array of an .npz with one weight per sample"},                  \
    {                                                                                              \
        "target", "COLUMN", "column of a .csv that is the target (default: the last one)"          \
    }
#define CLI_RUN_OPTIONS                                                                            \
    {"batch", "N", "rows per step (default: 32)"},                                                 \
        {"threads", "N", "processors at most (default: all)"},                                     \
        {"device", "NAME", "one of `stoker devices`, or auto: the fastest by trial (else cpu:0)"}, \
        {"log-placement", NULL, "which operation ran on which device, on standard error"},         \
    {                                                                                              \
        "precision", "POLICY", "float32, mixed_bfloat16, mixed_float16 ... (default: the model's)" \
    }

/* JSON, or a file of Keras: then *file (NULL: not wanted) is it, with weights and what the model was compiled with. */
stk_status cli_load_model(const char *path, stk_model **out, stk_keras **file, stk_error *err);
/* Weights from --weights, or else from the file; `state`: with that of its optimizer, if it is the one. */
stk_status cli_load_weights(const cli_args *args, const stk_keras *file, bool state, stk_trainer *t,
                            stk_error *err);
/* "--weights is missing", unless the model's file holds them. */
bool cli_has_weights(const cli_args *args);
/* Data as stoker/load.h reads it, with the options of CLI_DATA_OPTIONS. */
stk_status cli_load_data(const cli_args *args, const stk_model *model, int n,
                         const char *const *paths, bool targets, stk_loaded_data *out,
                         stk_error *err);
/* The share that --val-split puts aside, where the data itself must be asked for it: a folder of pictures. Else nothing. */
stk_status cli_load_aside(const cli_args *args, const stk_model *model, const char *path,
                          stk_loaded_data *out, stk_error *err);

/* What was asked for, or what fits the data. */
stk_goal cli_choose_goal(const cli_args *args, const stk_model *model, const stk_train_data *data);
/* What the file says about optimizer, loss and metrics, where the command line says nothing. file may be NULL. */
void cli_use_compiled(const cli_args *args, const stk_keras *file, stk_trainer_options *how,
                      stk_goal *goal);

/* Fills the options that CLI_RUN_OPTIONS name. false: the mistake was told. */
bool cli_trainer_options(const cli_args *args, stk_trainer_options *out, int64_t *batch, int *code);

/* --device auto: the device is chosen now that model and data are there, and the choice is told. Otherwise nothing. */
stk_status cli_choose_device(const cli_args *args, stk_model *model, const stk_train_data *data,
                             int64_t batch, stk_trainer_options *how, stk_error *err);
/* What the device does not take is told before the training starts: operation, layer, shape, reason, bytes, predicted time. */
stk_status cli_tell_islands(const cli_args *args, stk_trainer *t, const stk_train_data *data,
                            int64_t batch, stk_error *err);
/* --log-placement: of the program that ran last. */
stk_status cli_log_placement(const cli_args *args, const stk_trainer *t, stk_error *err);

stk_status cli_error(stk_error *err, stk_status code, const char *format, ...) STK_PRINTF(3, 4);

#endif
