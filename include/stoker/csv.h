/* csv.h - tables in text files: typed columns, quoting, missing values, all processors at once.
 *
 *     stk_error err;
 *     stk_csv *table = NULL;
 *     stk_csv_options options = stk_csv_options_defaults();      // header line, commas, all columns
 *     if (stk_csv_open("points.csv", &options, &table, &err) != STK_OK) return puts(err.message);
 *     int32_t n = stk_csv_column_count(table);
 *     stk_tensor *columns[64] = {NULL};
 *     if (n <= 64 && stk_csv_read(table, columns, &err) == STK_OK)
 *         printf("%lld rows\n", (long long)columns[0]->shape[0]);
 *     for (int32_t i = 0; i < n && i < 64; i++) stk_tensor_release(columns[i]);
 *     stk_csv_close(table);
 *
 * A field may stand in double quotes, with "" for one of them; then it may hold delimiters and line
 * ends. Lines end in LF or CR LF; empty lines are passed over. Numbers are read exactly (float32
 * by way of float64), and also nan, inf and infinity in any case. */
#ifndef STOKER_CSV_H
#define STOKER_CSV_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A column that is wanted. */
typedef struct stk_csv_column {
    const char *name;          /* as in the header; NULL: by number */
    int32_t number;            /* from 0; when there is no name */
    stk_dtype dtype;           /* any number type, or string */
    bool required;             /* a missing value is an error; else it becomes the fallback */
    double fallback;           /* numbers */
    const char *fallback_text; /* strings; NULL: "" */
} stk_csv_column;

typedef struct stk_csv_options {
    char delimiter;                /* ',' */
    bool header;                   /* the first line names the columns; true */
    bool quotes;                   /* " has its meaning; true */
    int64_t skip_lines;            /* before the header */
    const char *const *missing;    /* texts that count as missing beside the empty one, up to a */
    const stk_csv_column *columns; /* NULL: all of them, types guessed from the first 1000 rows: */
    int32_t column_count;          /* int64, float32 (missing: NaN) or string */
    int32_t threads;               /* of stk_csv_read; 0: all processors */
} stk_csv_options;                 /* `missing` ends with NULL; default NA, N/A, null, NULL */
STK_API stk_csv_options stk_csv_options_defaults(void);

typedef struct stk_csv stk_csv;
/* options NULL: the defaults. What they point to is copied. */
STK_API STK_MUST_USE stk_status stk_csv_open(const char *path, const stk_csv_options *options,
                                             stk_csv **out, stk_error *err);
/* Over memory that outlives the table. */
STK_API STK_MUST_USE stk_status stk_csv_open_memory(const char *name, const void *data, size_t size,
                                                    const stk_csv_options *options, stk_csv **out,
                                                    stk_error *err);
STK_API void stk_csv_close(stk_csv *table);

/* The wanted columns, in the order they were asked for. */
STK_API int32_t stk_csv_column_count(const stk_csv *table);
STK_API const char *stk_csv_column_name(const stk_csv *table,
                                        int32_t column); /* "" without header */
STK_API stk_dtype stk_csv_column_dtype(const stk_csv *table, int32_t column);

/* The whole table: one new tensor [rows] per column. Where a guessed type turns out too narrow in a later row (2.5 or nothing
 * among whole numbers), it becomes wider; stk_csv_column_dtype says so afterwards. */
STK_API STK_MUST_USE stk_status stk_csv_read(stk_csv *table, stk_tensor **columns, stk_error *err);
/* The next rows, at most `most`, in the types that were given or guessed when it was opened; *rows = 0 at the end, and the columns stay NULL then. */
STK_API STK_MUST_USE stk_status stk_csv_next(stk_csv *table, int64_t most, stk_tensor **columns,
                                             int64_t *rows, stk_error *err);
/* Where the next row begins, and going there again. */
STK_API int64_t stk_csv_offset(const stk_csv *table);
STK_API STK_MUST_USE stk_status stk_csv_seek(stk_csv *table, int64_t offset, stk_error *err);

/* tf.io.decode_csv: every element of the string tensor `lines` is one row; the columns have its
 * shape. options->header and skip_lines do not count; columns must be given, by number. */
STK_API STK_MUST_USE stk_status stk_decode_csv(const stk_tensor *lines,
                                               const stk_csv_options *options, stk_tensor **columns,
                                               stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
