/* rnn.h - what the recurrent kernels of the CPU share: how sequences are cut, where a row lies, and products with the
 * recurrent weights. */
#ifndef STK_DEVICE_CPU_RNN_H
#define STK_DEVICE_CPU_RNN_H

#include "device/cpu/vec/gemm.h"
#include "device/cpu/vec/rnn.h"
#include "device/cpu/launch.h"

#include <string.h>

/* A unit is one sequence of the batch: all its steps run on one thread. */
int64_t stk_rnn_units(const void *params);
int64_t stk_rnn_grain(const void *params);
bool stk_rnn_supports(const void *params); /* float32 and float64 */

/* Bit i of `sequences` (rows of every step) and of `states` (rows of one step): arg i is cut along with the batch. */
uint32_t stk_rnn_cut(const stk_rnn_params *p, uint32_t sequences, uint32_t states);

/* Recurrent weights in panels (kernels_rnn.h); plain ones are a single panel. */
typedef struct stk_rnn_weights {
    const char *at;
    int64_t rows, columns, panel;
} stk_rnn_weights;

/* One part of a launch. */
typedef struct stk_rnn_job {
    const stk_rnn_params *p;
    const stk_vec_gemm *gemm;
    const stk_vec_rnn_cells *cells;
    const uint8_t *mask; /* NULL: every step counts */
    int64_t lo, hi;      /* sequences */
    int64_t size;        /* bytes of an element */
    void *gemm_scratch;
    char *work; /* this part's own rows, `work_width` elements each */
} stk_rnn_job;

stk_status stk_rnn_prepare(stk_launch *launch, stk_error *err); /* state = the vector kernels */
int64_t stk_rnn_scratch(const stk_rnn_params *p, int32_t parts, int64_t work_width);
stk_rnn_job stk_rnn_open(const stk_launch *launch, int32_t fixed, int64_t lo, int64_t hi, int part,
                         int64_t work_width);

/* Which step is the k-th to be computed. */
static inline int64_t stk_rnn_time(const stk_rnn_params *p, int64_t k)
{
    return p->reverse ? p->time - 1 - k : k;
}
/* Row of sequence i at step t, and rows between neighbouring sequences. */
static inline int64_t stk_rnn_at(const stk_rnn_params *p, int64_t i, int64_t t)
{
    return p->time_major ? t * p->batch + i : i * p->time + t;
}
static inline int64_t stk_rnn_apart(const stk_rnn_params *p) { return p->time_major ? 1 : p->time; }

/* Rows of a matrix: element 0 of the part's first row, and elements from one row to the next. */
typedef struct stk_rnn_rows {
    char *at;
    int64_t step;
} stk_rnn_rows;

static inline stk_rnn_rows stk_rnn_states(const stk_rnn_job *j, const void *arg, int64_t width)
{
    return (stk_rnn_rows){(char *)(uintptr_t)arg + j->lo * width * j->size, width};
}
static inline stk_rnn_rows stk_rnn_step(const stk_rnn_job *j, const void *arg, int64_t t,
                                        int64_t width)
{
    return (stk_rnn_rows){(char *)(uintptr_t)arg + stk_rnn_at(j->p, j->lo, t) * width * j->size,
                          stk_rnn_apart(j->p) * width};
}
static inline void *stk_rnn_row_at(const stk_rnn_job *j, stk_rnn_rows r, int64_t i)
{
    return r.at + i * r.step * j->size;
}
static inline void *stk_rnn_column(const stk_rnn_job *j, void *row, int64_t column)
{
    return (char *)row + column * j->size;
}
static inline bool stk_rnn_masked(const stk_rnn_job *j, int64_t i, int64_t t)
{
    return j->mask && !j->mask[stk_rnn_at(j->p, j->lo + i, t)];
}
void stk_rnn_copy_rows(const stk_rnn_job *j, stk_rnn_rows to, stk_rnn_rows from);

/* c = a u[row_lo.., column_lo..column_hi] (or c +=) for all rows of the part; a is `depth` wide. */
typedef struct stk_rnn_product {
    stk_rnn_rows a, c;
    int64_t row_lo, depth, column_lo, column_hi;
    bool add;
} stk_rnn_product;
void stk_rnn_multiply(const stk_rnn_job *j, const stk_rnn_weights *u, const stk_rnn_product *x);

#endif
