/* Columns of a table in the making: memory for as many rows as will come, handed over as tensors. */
#include "base/dtype.h"
#include "base/spill.h"
#include "base/tensor.h"
#include "data/formats/csv.h"

void stk_csv_columns_free(const stk_csv_plan *p, stk_csv_columns *g)
{
    for (int32_t i = 0; i < p->wanted; i++) {
        if (g->tensor) stk_tensor_release(g->tensor[i]);
        if (g->data && p->column[i].dtype == STK_STRING) stk_free(g->data[i]);
    }
    stk_free(g->tensor);
    stk_free(g->data);
    *g = (stk_csv_columns){0};
}

static int64_t column_bytes(const stk_csv_plan *p, int32_t i, int64_t rows)
{
    return p->column[i].dtype == STK_STRING
               ? 0
               : (rows * stk_dtype_size(p->column[i].dtype) + 63) / 64 * 64;
}

static void drop_block(void *block) { stk_tensor_release(block); }

/* Many columns are one question of memory: they share one block, which may lie on a disk. */
static stk_status make_numbers(const stk_csv_plan *p, int32_t rank, const int64_t *shape,
                               int64_t rows, stk_csv_columns *g, stk_error *err)
{
    int64_t total = 0, at = 0;
    stk_tensor *block = NULL;
    for (int32_t i = 0; i < p->wanted; i++) total += column_bytes(p, i, rows);
    STK_TRY(stk_tensor_roomy(p->name, STK_U8, 1, &total, &block, err));
    stk_status status = STK_OK;
    for (int32_t i = 0; status == STK_OK && i < p->wanted; i++) {
        if (p->column[i].dtype == STK_STRING) continue;
        g->data[i] = (char *)block->data + at;
        at += column_bytes(p, i, rows);
        status = stk_tensor_wrap(p->column[i].dtype, rank, shape, NULL, g->data[i], drop_block,
                                 stk_tensor_retain(block), &g->tensor[i], err);
        if (status != STK_OK) stk_tensor_release(block);
    }
    stk_tensor_release(block);
    return status;
}

stk_status stk_csv_columns_make(const stk_csv_plan *p, int32_t rank, const int64_t *shape,
                                stk_csv_columns *g, stk_error *err)
{
    int64_t rows = 1;
    for (int32_t i = 0; i < rank; i++) rows *= shape[i];
    g->data = stk_calloc((size_t)p->wanted, sizeof *g->data);
    g->tensor = stk_calloc((size_t)p->wanted, sizeof(stk_tensor *));
    if (!g->data || !g->tensor)
        return stk_fail_memory(err, p->name, (size_t)p->wanted * sizeof *g->data);
    for (int32_t i = 0; i < p->wanted; i++) {
        if (p->column[i].dtype != STK_STRING) continue;
        g->data[i] = stk_calloc((size_t)rows, sizeof(stk_string));
        if (!g->data[i]) return stk_fail_memory(err, p->name, (size_t)rows * sizeof(stk_string));
    }
    return make_numbers(p, rank, shape, rows, g, err);
}

/* Hands the columns over, cut to `rows`. */
stk_status stk_csv_columns_finish(const stk_csv_plan *p, stk_csv_columns *g, int32_t rank,
                                  const int64_t *shape, stk_tensor **columns, stk_error *err)
{
    for (int32_t i = 0; i < p->wanted; i++) {
        if (p->column[i].dtype == STK_STRING) {
            STK_TRY(stk_tensor_strings(rank, shape, g->data[i], &g->tensor[i], err));
        } else if (rank == 1 && g->tensor[i]->shape[0] != shape[0]) {
            stk_tensor *cut = NULL;
            STK_TRY(stk_tensor_slice(g->tensor[i], (int64_t[]){0}, shape, &cut, err));
            stk_tensor_release(g->tensor[i]);
            g->tensor[i] = cut;
        }
    }
    for (int32_t i = 0; i < p->wanted; i++) {
        columns[i] = g->tensor[i];
        g->tensor[i] = NULL;
    }
    return STK_OK;
}
