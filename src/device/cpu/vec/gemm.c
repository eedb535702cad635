/* gemm.c - the table of matrix products of one instruction set, and products of half types: blocks
 * of a and b become floats, a block of c adds up in float over all of k and is rounded once. */
#include "device/cpu/vec/gemm.h"

#include "base/memory.h"
#include "device/cpu/vec/elementwise.h"

enum { HALF_M = 96, HALF_N = 256, HALF_K = 256 };

typedef struct half_blocks {
    int64_t m, n, k; /* the largest block of this problem */
    float *a, *b, *c;
    void *scratch;
} half_blocks;

static half_blocks half_sizes(const stk_gemm *g)
{
    return (half_blocks){.m = stk_min_i64(g->m, HALF_M),
                         .n = stk_min_i64(g->n, HALF_N),
                         .k = stk_min_i64(g->k, HALF_K)};
}

/* The product of two blocks. m and n stay those of the whole: the path depends on them. */
static stk_gemm half_problem(const stk_gemm *g, const half_blocks *h)
{
    return (stk_gemm){.m = g->m,
                      .n = g->n,
                      .k = h->k,
                      .lda = g->ta ? h->m : h->k,
                      .ldb = g->tb ? h->k : h->n,
                      .ldc = h->n,
                      .ta = g->ta,
                      .tb = g->tb,
                      .dtype = STK_F32};
}

/* rows x columns halves from or to a dense block of floats with rows `width` apart. */
static void read_block(const stk_gemm *g, const uint16_t *from, int64_t ld, int64_t rows,
                       int64_t columns, float *to, int64_t width)
{
    stk_tile_move load = STK_VEC(stk_vec_ew).load[g->dtype];
    for (int64_t i = 0; i < rows; i++) load(columns, to + i * width, from + i * ld);
}
static void write_block(const stk_gemm *g, uint16_t *to, int64_t ld, int64_t rows, int64_t columns,
                        const float *from, int64_t width)
{
    stk_tile_move store = STK_VEC(stk_vec_ew).store[g->dtype];
    for (int64_t i = 0; i < rows; i++) store(columns, to + i * ld, from + i * width);
}

static void half_block(const stk_gemm_job *job, const half_blocks *h, int64_t i, int64_t j)
{
    const stk_gemm *g = job->whole;
    const int64_t m = stk_min_i64(job->row_hi - i, h->m), n = stk_min_i64(job->col_hi - j, h->n);
    const uint16_t *a = job->a, *b = job->b;
    uint16_t *c = (uint16_t *)job->c + i * g->ldc + j;
    stk_gemm problem = half_problem(g, h);
    stk_gemm_job part = {.whole = &problem,
                         .a = h->a,
                         .b = h->b,
                         .c = h->c,
                         .row_hi = m,
                         .col_hi = n,
                         .scratch = h->scratch};
    if (g->accumulate) read_block(g, c, g->ldc, m, n, h->c, h->n);
    for (int64_t k = 0; k == 0 || k < g->k; k += h->k) {
        problem.k = stk_min_i64(h->k, g->k - k);
        problem.accumulate = g->accumulate || k > 0;
        if (g->ta)
            read_block(g, a + k * g->lda + i, g->lda, problem.k, m, h->a, h->m);
        else
            read_block(g, a + i * g->lda + k, g->lda, m, problem.k, h->a, h->k);
        if (g->tb)
            read_block(g, b + j * g->ldb + k, g->ldb, n, problem.k, h->b, h->k);
        else
            read_block(g, b + k * g->ldb + j, g->ldb, problem.k, n, h->b, h->n);
        STK_VEC(stk_gemm_f32)(&part);
    }
    write_block(g, c, g->ldc, m, n, h->c, h->n);
}

static void half(const stk_gemm_job *job)
{
    half_blocks h = half_sizes(job->whole);
    h.a = job->scratch;
    h.b = h.a + stk_round_up(h.m * h.k, STK_VF);
    h.c = h.b + stk_round_up(h.k * h.n, STK_VF);
    h.scratch = h.c + stk_round_up(h.m * h.n, STK_VF);
    for (int64_t j = job->col_lo; j < job->col_hi; j += h.n)
        for (int64_t i = job->row_lo; i < job->row_hi; i += h.m) half_block(job, &h, i, j);
}

static int64_t half_scratch(const stk_gemm *g)
{
    half_blocks h = half_sizes(g);
    stk_gemm problem = half_problem(g, &h);
    int64_t floats = stk_round_up(h.m * h.k, STK_VF) + stk_round_up(h.k * h.n, STK_VF) +
                     stk_round_up(h.m * h.n, STK_VF);
    return stk_round_up(floats * 4, STK_ALIGN) + STK_VEC(stk_gemm_f32_scratch)(&problem);
}

const stk_vec_gemm STK_VEC(stk_vec_gemm) = {
    .run = {[STK_F32] = STK_VEC(stk_gemm_f32),
            [STK_F64] = STK_VEC(stk_gemm_f64),
            [STK_F16] = half,
            [STK_BF16] = half},
    .scratch = {[STK_F32] = STK_VEC(stk_gemm_f32_scratch),
                [STK_F64] = STK_VEC(stk_gemm_f64_scratch),
                [STK_F16] = half_scratch,
                [STK_BF16] = half_scratch},
    .packed = {[STK_F32] = STK_VEC(stk_gemm_f32_packed), [STK_F64] = STK_VEC(stk_gemm_f64_packed)},
    .pack = {[STK_F32] = STK_VEC(stk_gemm_f32_pack), [STK_F64] = STK_VEC(stk_gemm_f64_pack)},
};
