/* data_rows.h - anything that can be converted, as rows by number: each becomes one record. */
#ifndef STK_CLI_DATA_ROWS_H
#define STK_CLI_DATA_ROWS_H

#include "data.h"

typedef struct data_rows data_rows;
struct data_rows {
    int64_t count;
    /* A record for row `index`; bytes are freed with stk_bytes_free unless they are borrowed. */
    stk_status (*record)(data_rows *rows, int64_t index, char **bytes, size_t *size, bool *borrowed,
                         stk_error *err);
    void (*close)(data_rows *rows);
    /* private to the kind */
    int32_t columns;
    stk_tensor **tensors;
    char **names;
    stk_csv *csv;
    stk_npz *npz;
    stk_record_reader *reader;
    char **files;
    int32_t *labels;
    char **classes;
    int32_t class_count;
};

/* A folder of pictures, .csv, .npz, .npy, or a TFRecord file. */
stk_status data_rows_open(const char *path, data_rows *out, stk_error *err);
void data_rows_close(data_rows *rows);

/* TFRecord of Examples to .npz or .csv. */
int data_export(const cli_args *args, const char *from, const char *to);

#endif
