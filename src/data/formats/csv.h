/* csv.h (internal) - the plan of a table and the parser of its rows. */
#ifndef STK_DATA_CSV_H
#define STK_DATA_CSV_H

#include "base/memory.h"
#include "data/formats/csv_number.h"
#include "stoker/csv.h"

/* How the rows of a table become columns. Immutable while rows are parsed. */
typedef struct stk_csv_plan {
    const char *name; /* for messages */
    char delimiter;
    bool quotes;
    int32_t fields; /* per row */
    int32_t *slot;  /* [fields]: which wanted column, or -1 */
    int32_t wanted;
    stk_csv_column *column;     /* [wanted]; texts of our own */
    const char **title;         /* [wanted] */
    const char *const *missing; /* ends with NULL */
    const stk_fives *fives;
} stk_csv_plan;

/* Where parsed rows go: row r of column c is at data[c] + r * size of its dtype. Strings are places
 * in the text or in the arena. */
typedef struct stk_csv_sink {
    void *const *data;
    stk_arena *arena;
} stk_csv_sink;

/* One field as it stands: its text (unquoted into the arena when it has doubled quotes) and where it
 * ends. */
stk_status stk_csv_field(const stk_csv_plan *plan, const char *at, const char *end,
                         stk_arena *arena, stk_string *text, const char **after, stk_error *err);
/* Rows from `at` until `end` (which is a row's end), `most` at the most, into rows first.. of the
 * sink. base is the beginning of the text, for offsets in messages; first_line: the number of the
 * row at `at` in messages. */
stk_status stk_csv_rows(const stk_csv_plan *plan, const char *base, const char *at, const char *end,
                        int64_t first, int64_t most, const stk_csv_sink *sink, int64_t *rows,
                        stk_error *err);
/* The end of the row that begins at `at`: behind its line end, or `end`. */
const char *stk_csv_row_end(const stk_csv_plan *plan, const char *at, const char *end);
bool stk_csv_is_blank(const char *at, const char *end); /* nothing on this line */

/* Field text to a number of any type; false when it is none. */
bool stk_csv_number(const stk_csv_plan *plan, stk_dtype dtype, stk_string text, void *to);
bool stk_csv_is_missing(const stk_csv_plan *plan, stk_string text);

/* ---- csv_columns.c: memory of all columns for `rows` rows: tensors for numbers, lists of places for strings ----------- */
typedef struct stk_csv_columns {
    void **data;
    stk_tensor **tensor;
} stk_csv_columns;
STK_MUST_USE stk_status stk_csv_columns_make(const stk_csv_plan *p, int32_t rank,
                                             const int64_t *shape, stk_csv_columns *out,
                                             stk_error *err);
/* Hands the columns over, cut to `shape`. */
STK_MUST_USE stk_status stk_csv_columns_finish(const stk_csv_plan *p, stk_csv_columns *c,
                                               int32_t rank, const int64_t *shape,
                                               stk_tensor **columns, stk_error *err);
void stk_csv_columns_free(const stk_csv_plan *p, stk_csv_columns *c); /* a zeroed one is fine */

#endif
