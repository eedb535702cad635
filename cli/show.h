/* show.h - progress of training on a terminal, in a log, or for machines. */
#ifndef STK_CLI_SHOW_H
#define STK_CLI_SHOW_H

#include "cli.h"

typedef struct cli_show {
    stk_callback callback; /* to be given to fit */
    bool bar;              /* a terminal: the line is drawn again and again */
    bool ascii, json, quiet;
    bool troubled; /* has told that something cannot be written */
    bool open;     /* a bar stands there that the next text must not overwrite */
} cli_show;

/* Is this file a terminal on which a line may be drawn again and again, and does nobody object? */
bool cli_wants_bar(const cli_args *args, int file);

/* The struct must stay where it is while fit runs. */
void cli_show_init(cli_show *show, const cli_args *args);
void cli_show_close(cli_show *show); /* leaves the bar's line, if one is drawn */
/* Books of one step in 64, open while a fit runs. NULL when somebody else is watching; both take that. */
stk_watch *cli_books_open(const char *title);
stk_report *cli_books_close(stk_watch *watch);
/* Where the time of the last fit went: a table, or one line when the run was long enough and something else than arithmetic
 * took a noticeable share. books may be NULL. */
void cli_show_times(const cli_args *args, const stk_trainer *t, const stk_report *books,
                    bool table);
/* {"input wait": seconds, ...} */
void cli_json_times(FILE *out, const stk_trainer *t, const stk_report *books);

#endif
