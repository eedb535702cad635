/* watching.h - what doctor and profile share: a trainer as a job, and reports into files. */
#ifndef STK_CLI_WATCHING_H
#define STK_CLI_WATCHING_H

#include "load.h"

typedef struct cli_watching {
    const cli_args *args;
    stk_model *model;
    stk_trainer *trainer;
    cli_batches data;
    stk_trainer_options how;
    stk_fit_options fit;
    stk_job job;
} cli_watching;

#define CLI_WATCHING_OPTIONS                                                                       \
    {"optimizer", "TEXT", "as in train (default: adam)"},                                          \
        {"loss", "NAME", "as in train (default: what fits the targets)"},                          \
        {"metrics", "NAMES", "as in train"}, {"epochs", "N", "of the run that is asked about"},    \
        {"steps", "N", "steps per epoch of that run (default: all the data)"},                     \
        {"html", "FILE", "write a report to look at in a browser"},                                \
        {"report", "FILE", "write everything as JSON, for stoker compare and what-if"},            \
        {"trace", "FILE", "write a few steps for chrome://tracing or ui.perfetto.dev"},            \
    {                                                                                              \
        "tensorboard", "FILE", "write step times and books as TensorBoard events"                  \
    }

/* false: the mistake was told, and *code says how to end. Release in either case. */
bool cli_watching_open(const cli_args *args, cli_watching *out, int *code);
void cli_watching_release(cli_watching *w);
/* Prints the report (text, or JSON with --json) and writes the files that were asked for. Exit code. */
int cli_watching_tell(const cli_args *args, const stk_report *report);

#endif
