/* table.h - rows of cells, printed in columns that line up.
 *
 *     cli_table t = {.columns = 2, .right = 1u << 1};      // column 1 is flushed right
 *     cli_cell(&t, "%s", "loss"), cli_cell(&t, "%.4f", 0.25);
 *     cli_table_print(&t, stdout, "  ");
 *     cli_table_free(&t); */
#ifndef STK_CLI_TABLE_H
#define STK_CLI_TABLE_H

#include "cli.h"

typedef struct cli_table {
    int columns;
    unsigned right; /* bit per column */
    char **cells;
    int count, room;
    bool failed; /* out of memory: nothing is printed, instead of half a table */
} cli_table;

void cli_cell(cli_table *t, const char *format, ...) STK_PRINTF(2, 3); /* the next one */
void cli_table_print(const cli_table *t, FILE *out, const char *indent);
void cli_table_free(cli_table *t);

#endif
