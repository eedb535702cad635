/* run.h - what the commands that run a model have in common: load it and its data, make a trainer, do the work, put all back. */
#ifndef STK_CLI_RUN_H
#define STK_CLI_RUN_H

#include "load.h"

typedef struct cli_run {
    const cli_args *args;
    stk_model *model;
    cli_batches data;
    stk_trainer_options how;
    stk_fit_options fit; /* batch, epochs, steps */
    stk_trainer *trainer;
} cli_run;

typedef stk_status (*cli_work)(cli_run *run, void *context, stk_error *err);
/* MODEL.json DATA... as the arguments name them, with targets or without, and --weights when given. Returns the exit code. */
int cli_run_model(const cli_args *args, bool targets, cli_work work, void *context);

/* --settings FILE, as `stoker doctor --write` makes it: options and data follow it, except where the command line says
 * something else. *used says what was found there. */
#define CLI_SETTINGS_OPTION                                                                        \
    {                                                                                              \
        "settings", "FILE", "follow what `stoker doctor --write FILE` found"                       \
    }
stk_status cli_use_settings(const cli_args *args, stk_trainer_options *how, stk_fit_options *fit,
                            cli_batches *data, stk_job_settings *used, stk_error *err);

#endif
