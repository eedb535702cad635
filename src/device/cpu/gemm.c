/* gemm.c - the gemm kernel id: how products are cut into units, and the implementation on our own
 * vector kernels. */
#include "device/cpu/gemm.h"

#include "device/cpu/cpu.h"
#include "device/cpu/vec/gemm.h"

/* ---- units --------------------------------------------------------------------------------------- */

static int64_t column_blocks(const stk_gemm *g) { return stk_ceil_div(g->n, STK_GEMM_COLUMNS); }

bool stk_gemm_by_columns(const stk_gemm *g)
{
    enum { SMALL_B = 64 * 1024 }; /* elements: stays in L2 beside a part of a and c */
    if (g->n < 2 * STK_GEMM_COLUMNS || g->n < 4 * g->m) return false;
    return g->m * g->batch < 4 || (g->batch == 1 && g->k * g->n > SMALL_B);
}

int64_t stk_gemm_units(const void *params)
{
    const stk_gemm *g = params;
    return g->batch * (stk_gemm_by_columns(g) ? column_blocks(g) : g->m);
}

/* A part should last about 10 us: 1 MFLOP, or 200 KB where there is little to compute. A part that packs
 * b for itself needs enough rows to make up for it, and is not one of very many, as each has its own
 * scratch. Constants, not measurements: the cut must not differ between machines. */
int64_t stk_gemm_grain(const void *params)
{
    enum { PART_NS = 10000, FLOPS_PER_NS = 100, BYTES_PER_NS = 20, MOST_PARTS = 32 };
    const stk_gemm *g = params;
    const bool columns = stk_gemm_by_columns(g);
    double size = (double)stk_dtype_size((stk_dtype)g->dtype);
    double width = columns ? (double)STK_GEMM_COLUMNS : (double)g->n;
    double height = columns ? (double)g->m : 1.0, k = (double)g->k;
    double flops = 2.0 * width * height * k * (g->dtype == STK_F32 ? 1.0 : 2.0);
    double bytes = size * (width * height + k * (columns ? width : height));
    double ns = flops / FLOPS_PER_NS;
    if (ns < bytes / BYTES_PER_NS) ns = bytes / BYTES_PER_NS;
    int64_t grain = ns < PART_NS ? (int64_t)(PART_NS / (ns + 1e-3)) + 1 : 1;
    if (!columns && g->tb && g->k > 1) grain = stk_max_i64(grain, 128);
    if (!columns && g->k * g->n > 32 * 1024) grain = stk_max_i64(grain, 64);
    return stk_max_i64(grain, stk_ceil_div(stk_gemm_units(g), MOST_PARTS));
}

/* Row by row, c (and a, when it is not transposed) is touched in equal shares if it is dense. */
uint32_t stk_gemm_aligned(const void *params)
{
    const stk_gemm *g = params;
    if (stk_gemm_by_columns(g)) return 0;
    bool c = g->ldc == g->n && (g->batch == 1 || g->batch_c == g->m * g->n);
    bool a = !g->ta && g->lda == g->k && (g->batch == 1 || g->batch_a == g->m * g->k);
    return (a ? 1u : 0u) | (c ? 4u : 0u);
}

bool stk_gemm_next(const stk_gemm *g, int64_t *at, int64_t hi, stk_gemm_part *out)
{
    if (*at >= hi) return false;
    const bool columns = stk_gemm_by_columns(g);
    const int64_t per_batch = columns ? column_blocks(g) : g->m;
    const int64_t batch = g->batch == 1 ? 0 : *at / per_batch;
    const int64_t lo = *at - batch * per_batch;
    const int64_t end = stk_min_i64(hi - batch * per_batch, per_batch);
    *at += end - lo;
    *out = (stk_gemm_part){.batch = batch, .row_lo = lo, .row_hi = end, .col_hi = g->n};
    if (columns) {
        out->row_lo = 0;
        out->row_hi = g->m;
        out->col_lo = lo * STK_GEMM_COLUMNS;
        out->col_hi = stk_min_i64(end * STK_GEMM_COLUMNS, g->n);
    }
    return true;
}

/* ---- own ----------------------------------------------------------------------------------------- */

static bool own_supports(const void *params)
{
    return stk_vec_get()->gemm->run[((const stk_gemm *)params)->dtype] != NULL;
}

static int64_t own_scratch(const void *params, int32_t parts)
{
    const stk_gemm *g = params;
    return stk_vec_get()->gemm->scratch[g->dtype](g) * parts;
}

static stk_status own_prepare(stk_launch *launch, stk_error *err)
{
    (void)err;
    launch->state = (void *)(uintptr_t)stk_vec_get()->gemm;
    return STK_OK;
}

static void own_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const stk_gemm *g = launch->params;
    const stk_vec_gemm *vec = launch->state;
    const int64_t size = stk_dtype_size((stk_dtype)g->dtype);
    char *scratch = launch->scratch;
    if (part > 0 && scratch) scratch += part * vec->scratch[g->dtype](g);
    stk_gemm_part r;
    for (int64_t at = lo; stk_gemm_next(g, &at, hi, &r);) {
        stk_gemm_job job = {.whole = g,
                            .a = (const char *)launch->arg[0] + r.batch * g->batch_a * size,
                            .b = (const char *)launch->arg[1] + r.batch * g->batch_b * size,
                            .c = (char *)launch->arg[2] + r.batch * g->batch_c * size,
                            .row_lo = r.row_lo,
                            .row_hi = r.row_hi,
                            .col_lo = r.col_lo,
                            .col_hi = r.col_hi,
                            .scratch = scratch};
        vec->run[g->dtype](&job);
    }
}

const stk_impl stk_impl_gemm_own = {.name = "own",
                                    .kernel = STK_K_GEMM,
                                    .rank = 10,
                                    .supports = own_supports,
                                    .units = stk_gemm_units,
                                    .grain = stk_gemm_grain,
                                    .aligned = stk_gemm_aligned,
                                    .scratch = own_scratch,
                                    .prepare = own_prepare,
                                    .run = own_run};
