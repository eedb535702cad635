/* table.c - aligned columns; widths are counted in characters of UTF-8. */
#include "table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMNS = 32 };

void cli_cell(cli_table *t, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (t->count == t->room) {
        int room = t->room ? t->room * 2 : 32;
        char **cells = realloc(t->cells, (size_t)room * sizeof *cells);
        if (!cells) {
            t->failed = true;
            return;
        }
        t->cells = cells;
        t->room = room;
    }
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    if (!copy) {
        t->failed = true;
        return;
    }
    memcpy(copy, text, size);
    t->cells[t->count++] = copy;
}

static int width(const char *text)
{
    int n = 0;
    for (; *text; text++) n += (*text & 0xc0) != 0x80;
    return n;
}

void cli_table_print(const cli_table *t, FILE *out, const char *indent)
{
    int widths[MOST_COLUMNS] = {0};
    if (t->failed || t->columns > MOST_COLUMNS) return;
    for (int i = 0; i < t->count; i++) {
        int w = width(t->cells[i]), *most = &widths[i % t->columns];
        if (w > *most) *most = w;
    }
    for (int i = 0; i < t->count; i++) {
        int column = i % t->columns, pad = widths[column] - width(t->cells[i]);
        bool right = t->right >> column & 1, last = column == t->columns - 1;
        bool nothing_follows = column == t->columns - 2 && i + 1 < t->count && !*t->cells[i + 1];
        if (column == 0) fputs(indent, out);
        if (right) fprintf(out, "%*s", pad, "");
        fputs(t->cells[i], out);
        if (!right && !last && !nothing_follows) fprintf(out, "%*s", pad, "");
        if (!nothing_follows) fputs(last ? "\n" : "  ", out);
    }
}

void cli_table_free(cli_table *t)
{
    for (int i = 0; i < t->count; i++) free(t->cells[i]);
    free(t->cells);
    *t = (cli_table){0};
}
