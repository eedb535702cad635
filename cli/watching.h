/* watching.h - what doctor and profile share: options, and reports into files. */
#ifndef STK_CLI_WATCHING_H
#define STK_CLI_WATCHING_H

#include "run.h"

#define CLI_WATCHING_OPTIONS                                                                       \
    {"weights", "FILE", "as in train"}, {"optimizer", "TEXT", "as in train (default: adam)"},      \
        {"loss", "NAME", "as in train (default: what fits the targets)"},                          \
        {"metrics", "NAMES", "as in train"},                                                       \
        {"epochs", "N", "of the run that is asked about: does its start matter?"},                 \
        {"steps", "N", "steps per epoch of that run (default: all the data)"},                     \
        {"shuffle", "yes|no", "as in train (default: yes)"},                                       \
        {"seed", "N", "as in train (default: 0)"}, {"deterministic", NULL, "as in train"},         \
        {"html", "FILE", "write a report to look at in a browser"},                                \
        {"report", "FILE", "write everything as JSON, for stoker compare and what-if"},            \
        {"trace", "FILE", "write a few steps for chrome://tracing or ui.perfetto.dev"},            \
        {"tensorboard", "FOLDER", "write step times and books as TensorBoard events"},             \
        CLI_SETTINGS_OPTION

/* The files of these options, and those that `more` (ends with NULL, may be NULL itself) names: can they be written? */
stk_status cli_check_reports(const cli_args *args, const char *const *more, stk_error *err);
/* From now on Ctrl-C ends the job's next run. */
void cli_begin_watching(const cli_run *r, stk_job *job);
/* Prints the report (text, or JSON with --json) and writes the files that were asked for. */
stk_status cli_tell_report(const cli_args *args, const stk_report *report, stk_error *err);

#endif
