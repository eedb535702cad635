/* run.h - what the commands that run a model have in common: load it and its data, make a trainer, do the work, put all back. */
#ifndef STK_CLI_RUN_H
#define STK_CLI_RUN_H

#include "load.h"

typedef struct cli_run {
    const cli_args *args;
    stk_model *model;
    stk_keras *file; /* of the model; NULL: it was JSON */
    stk_loaded_data data;
    stk_trainer_options how;
    stk_fit_options fit; /* batch, epochs, steps */
    stk_trainer *trainer;
} cli_run;

typedef stk_status (*cli_work)(cli_run *run, void *context, stk_error *err);
/* MODEL.json DATA... as the arguments name them, with targets or without, and --weights when given. Returns the exit code. */
int cli_run_model(const cli_args *args, bool targets, cli_work work, void *context);

/* Files that options name shall be written: can they be, do two options name the same one, and is none of them an argument,
 * which is read? Better to know now than after an hour. `options` ends with NULL. */
stk_status cli_check_outputs(const cli_args *args, const char *const *options, stk_error *err);

/* From now on Ctrl-C stops the fit that t runs after its step, and a second one the program. NULL: there is no fit to stop. */
void cli_catch_signals(stk_trainer *t);
bool cli_interrupted(void);

/* --settings FILE, as `stoker doctor --write` makes it: options and data follow it, except where the command line says
 * something else. */
#define CLI_SETTINGS_OPTION                                                                        \
    {                                                                                              \
        "settings", "FILE", "follow what `stoker doctor --write FILE` found"                       \
    }
typedef struct cli_settings {
    stk_job_settings used, idle; /* idle: they were there, and play no part with this data */
} cli_settings;
stk_status cli_use_settings(const cli_args *args, stk_trainer_options *how, stk_fit_options *fit,
                            stk_loaded_data *data, cli_settings *out, stk_error *err);
/* "settings: ..." on a line of its own; nothing when there were none. */
void cli_print_settings(const cli_args *args, const cli_settings *s);

#endif
