/* show.h - progress of training on a terminal, in a log, or for machines. */
#ifndef STK_CLI_SHOW_H
#define STK_CLI_SHOW_H

#include "cli.h"

typedef struct cli_show {
    stk_callback callback; /* to be given to fit */
    bool bar;              /* a terminal: the line is drawn again and again */
    bool ascii, json, quiet;
    bool open; /* a bar stands there that the next text must not overwrite */
} cli_show;

/* The struct must stay where it is while fit runs. */
void cli_show_init(cli_show *show, const cli_args *args);
void cli_show_close(cli_show *show); /* leaves the bar's line, if one is drawn */
/* Where the time of the last fit went. */
void cli_show_times(const stk_trainer *t);

#endif
