/* The gemm kernel said plainly: one element of c at a time, terms in order of k, in double (floats) or
 * modulo 2^64 (integers), rounded once at the end. */
#include "device/cpu/cpu.h"
#include "device/cpu/gemm.h"

typedef struct matrix {
    const char *at;
    int64_t row, column; /* steps in bytes */
} matrix;

static matrix matrix_of(const void *data, int64_t offset, int64_t ld, bool turned, int64_t size)
{
    return (matrix){(const char *)data + offset * size, (turned ? 1 : ld) * size,
                    (turned ? ld : 1) * size};
}

static void element(const stk_gemm *g, matrix a, matrix b, int64_t i, int64_t j, void *c)
{
    stk_dtype dtype = (stk_dtype)g->dtype;
    a.at += i * a.row;
    b.at += j * b.column;
    if (stk_dtype_is_float(dtype)) {
        double sum = g->accumulate ? stk_load_f64(dtype, c) : 0;
        for (int64_t k = 0; k < g->k; k++)
            sum += stk_load_f64(dtype, a.at + k * a.column) * stk_load_f64(dtype, b.at + k * b.row);
        stk_store_f64(dtype, c, sum);
    } else {
        uint64_t sum = g->accumulate ? (uint64_t)stk_load_i64(dtype, c) : 0;
        for (int64_t k = 0; k < g->k; k++)
            sum += (uint64_t)stk_load_i64(dtype, a.at + k * a.column) *
                   (uint64_t)stk_load_i64(dtype, b.at + k * b.row);
        stk_store_i64(dtype, c, (int64_t)sum);
    }
}

static void run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_gemm *g = launch->params;
    int64_t size = stk_dtype_size((stk_dtype)g->dtype);
    stk_gemm_part r;
    for (int64_t at = lo; stk_gemm_next(g, stk_gemm_own_cut(g), &at, hi, &r);) {
        matrix a = matrix_of(launch->arg[0], r.batch * g->batch_a, g->lda, g->ta, size);
        matrix b = matrix_of(launch->arg[1], r.batch * g->batch_b, g->ldb, g->tb, size);
        char *c = (char *)launch->arg[2] + r.batch * g->batch_c * size;
        for (int64_t i = r.row_lo; i < r.row_hi; i++)
            for (int64_t j = r.col_lo; j < r.col_hi; j++)
                element(g, a, b, i, j, c + (i * g->ldc + j) * size);
    }
}

static bool supports(const void *params)
{
    char kind = stk_dtype_kind((stk_dtype)((const stk_gemm *)params)->dtype);
    return kind == 'F' || kind == 'I' || kind == 'U';
}

const stk_impl stk_impl_gemm_ref = {.name = "ref",
                                    .kernel = STK_K_GEMM,
                                    .rank = 100,
                                    .supports = supports,
                                    .units = stk_gemm_units,
                                    .grain = stk_gemm_grain,
                                    .aligned = stk_gemm_aligned,
                                    .run = run};
