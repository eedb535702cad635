/* CSV: any text is read or refused; in pieces it gives the same rows as at once. */
#include "base/memory.h"
#include "stoker/csv.h"

#include <stdlib.h>
#include <string.h>

static bool same_column(const stk_tensor *whole, int64_t first, const stk_tensor *piece)
{
    for (int64_t i = 0; i < piece->shape[0]; i++) {
        if (whole->dtype == STK_STRING) {
            const stk_string *a = (const stk_string *)whole->data + first + i,
                             *b = (const stk_string *)piece->data + i;
            if (a->size != b->size || (a->size && memcmp(a->data, b->data, (size_t)a->size) != 0))
                return false;
        } else {
            size_t size = (size_t)stk_dtype_size(whole->dtype);
            if (memcmp((const char *)whole->data + (size_t)(first + i) * size,
                       (const char *)piece->data + (size_t)i * size, size) != 0)
                return false;
        }
    }
    return true;
}

static void read_pieces(stk_csv *t, int32_t n, stk_tensor *const *whole)
{
    stk_tensor **piece = calloc((size_t)n, sizeof *piece);
    int64_t done = 0, rows = 1;
    if (!piece) abort();
    while (rows > 0) {
        if (stk_csv_next(t, 3, piece, &rows, NULL) != STK_OK) abort();
        for (int32_t i = 0; i < n && rows > 0; i++) {
            if (done + rows > whole[i]->shape[0] || !same_column(whole[i], done, piece[i])) abort();
            stk_tensor_release(piece[i]);
        }
        done += rows;
    }
    if (done != whole[0]->shape[0]) abort();
    free(piece);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_csv *t = NULL;
    stk_csv_options o = stk_csv_options_defaults();
    o.threads = 1;
    if (size > 0) {
        o.header = data[0] & 1;
        o.quotes = !(data[0] & 2);
    }
    if (stk_csv_open_memory("fuzz", data, size, &o, &t, NULL) != STK_OK) return 0;
    int32_t n = stk_csv_column_count(t);
    stk_tensor **columns = calloc((size_t)n, sizeof *columns);
    if (!columns) abort();
    if (stk_csv_read(t, columns, NULL) == STK_OK) read_pieces(t, n, columns);
    for (int32_t i = 0; i < n; i++) stk_tensor_release(columns[i]);
    free(columns);
    stk_csv_close(t);
    if (stk_alloc_live() != 0) abort();
    return 0;
}
