/* The gemm kernel through dnnl_sgemm: large float products, one library call per unit.
 *
 * Which algorithm the library takes may depend on the size of a call, so units are fixed blocks of rows
 * (or columns) and never joined: the same bits for any number of parts. */
#include "device/cpu/onednn.h"

#if STK_HAVE_ONEDNN

#include "device/cpu/cpu.h"
#include "device/cpu/gemm.h"

/* Smaller problems never make the library be loaded: our own kernels are ahead there anyway. Version 2 does
 * not pack below some 300 rows and drops to half of its speed, so blocks are larger than that. */
enum { LEAST_PRODUCTS = 1 << 20, BLOCK = 512, MOST_BLOCKS = 16 };

static stk_gemm_cut cut_of(const stk_gemm *g)
{
    const bool columns = stk_gemm_by_columns(g);
    const int64_t size = columns ? g->n : g->m;
    const int64_t step = stk_round_up(stk_ceil_div(size, MOST_BLOCKS), 16);
    return (stk_gemm_cut){columns, stk_max_i64(step, BLOCK)};
}

static bool supports(const void *params)
{
    const stk_gemm *g = params;
    return g->dtype == STK_F32 && g->m > 0 && g->n > 0 &&
           (double)g->m * (double)g->n * (double)g->k >= LEAST_PRODUCTS && stk_onednn_get();
}

static int64_t units(const void *params) { return stk_gemm_count(params, cut_of(params)); }

static void run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_gemm *g = launch->params;
    const stk_onednn *dnn = stk_onednn_get();
    const stk_gemm_cut cut = cut_of(g);
    const int was = stk_onednn_enter(dnn);
    stk_gemm_part r;
    for (int64_t unit = lo; unit < hi;) {
        stk_gemm_next(g, cut, &unit, unit + 1, &r);
        const float *a = (const float *)launch->arg[0] + r.batch * g->batch_a;
        const float *b = (const float *)launch->arg[1] + r.batch * g->batch_b;
        float *c = (float *)launch->arg[2] + r.batch * g->batch_c;
        a += r.row_lo * (g->ta ? 1 : g->lda);
        b += r.col_lo * (g->tb ? g->ldb : 1);
        c += r.row_lo * g->ldc + r.col_lo;
        (void)dnn->dnnl_sgemm(g->ta ? 'T' : 'N', g->tb ? 'T' : 'N', r.row_hi - r.row_lo,
                              r.col_hi - r.col_lo, g->k, 1.0f, a, g->lda, b, g->ldb,
                              g->accumulate ? 1.0f : 0.0f, c, g->ldc);
    }
    stk_onednn_leave(dnn, was);
}

const stk_impl stk_impl_gemm_onednn = {.name = "onednn",
                                       .kernel = STK_K_GEMM,
                                       .rank = 30,
                                       .supports = supports,
                                       .units = units,
                                       .run = run};

#endif
