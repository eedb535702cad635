/* gemm_deep.c - products with a small result and long sums, as gradients of weights are: c has too few rows to be shared out, so
 * the sums are. Units are the terms k; each part adds up its own terms into a matrix of its own,
 * and finish() adds these in order. Both operands of a gradient are cut along k too (the rows of a batch), so this
 * can follow what made them, part by part.
 *
 *     scratch:  part 0 [sums m x n][the engine's own]   part 1 ... */
#include "device/cpu/gemm.h"

#include "device/cpu/cpu.h"
#include "device/cpu/vec/gemm.h"

#include <string.h>

enum {
    STRETCH = 256,     /* terms at a time: what the engine takes as one block */
    LEAST_TERMS = 512, /* of a part: adding its sums to the others costs about 30 of them */
    MOST_SUMS = 1 << 17,
};

/* What one product of a part looks like to the engine: c is dense. */
static stk_gemm stretch_of(const stk_gemm *g, int64_t terms, bool add)
{
    stk_gemm s = *g;
    s.k = terms;
    s.ldc = g->n;
    s.accumulate = add;
    return s;
}

static int64_t sums_bytes(const stk_gemm *g)
{
    return stk_round_up(g->m * g->n * stk_dtype_size((stk_dtype)g->dtype), STK_ALIGN);
}

/* A whole stretch packs the most (gemm_engine.inc). */
static int64_t part_bytes(const stk_gemm *g)
{
    const stk_gemm s = stretch_of(g, STRETCH, true);
    return sums_bytes(g) + stk_round_up(stk_vec_get()->gemm->scratch[g->dtype](&s), STK_ALIGN);
}

/* Where rows or columns of c make enough parts, those are better: nothing has to be added up. */
static bool supports(const void *params)
{
    const stk_gemm *g = params;
    if (g->dtype != STK_F32 && g->dtype != STK_F64) return false;
    if (g->batch != 1 || g->m < 2 || g->n < 2 || g->k < 2 * LEAST_TERMS) return false;
    return g->m * g->n <= MOST_SUMS && stk_gemm_units(g) / stk_gemm_grain(g) < 8;
}

static int64_t units(const void *params) { return ((const stk_gemm *)params)->k; }

static int64_t grain(const void *params)
{
    enum { MOST_PARTS = 32, ALL_SUMS = 1 << 20 };
    const stk_gemm *g = params;
    const int64_t parts = stk_min_i64(ALL_SUMS / (g->m * g->n), MOST_PARTS);
    return stk_max_i64(stk_ceil_div(g->k, parts), LEAST_TERMS);
}

static uint32_t aligned(const void *params)
{
    const stk_gemm *g = params;
    return (g->ta && g->lda == g->m ? 1u : 0u) | (!g->tb && g->ldb == g->n ? 2u : 0u);
}

static int64_t scratch(const void *params, int32_t parts) { return part_bytes(params) * parts; }

static void run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const stk_gemm *g = launch->params;
    const int64_t size = stk_dtype_size((stk_dtype)g->dtype);
    char *sums = (char *)launch->scratch + part * part_bytes(g);
    for (int64_t k = lo; k < hi; k += STRETCH) {
        const stk_gemm s = stretch_of(g, stk_min_i64(STRETCH, hi - k), k > lo);
        stk_gemm_job job = {.whole = &s,
                            .a = (const char *)launch->arg[0] + k * (g->ta ? g->lda : 1) * size,
                            .b = (const char *)launch->arg[1] + k * (g->tb ? 1 : g->ldb) * size,
                            .c = sums,
                            .row_hi = g->m,
                            .col_hi = g->n,
                            .scratch = sums + sums_bytes(g)};
        stk_vec_get()->gemm->run[g->dtype](&job);
    }
}

#define ADD_ROW(type)                                                                              \
    static void add_row_##type(int64_t n, void *to, const void *from)                              \
    {                                                                                              \
        type *sum = to;                                                                            \
        const type *x = from;                                                                      \
        for (int64_t j = 0; j < n; j++) sum[j] += x[j];                                            \
    }
ADD_ROW(float)
ADD_ROW(double)

/* Empty parts were not run. */
static void finish(const stk_launch *launch)
{
    const stk_gemm *g = launch->params;
    const int64_t size = stk_dtype_size((stk_dtype)g->dtype), row = g->n * size;
    bool add = g->accumulate;
    for (int32_t part = 0; part < launch->parts; part++) {
        const char *sums = (const char *)launch->scratch + part * part_bytes(g);
        int64_t lo, hi;
        stk_launch_range(launch, part, &lo, &hi);
        if (lo == hi) continue;
        for (int64_t i = 0; i < g->m; i++) {
            char *c = (char *)launch->arg[2] + i * g->ldc * size;
            if (!add)
                memcpy(c, sums + i * row, (size_t)row);
            else if (g->dtype == STK_F32)
                add_row_float(g->n, c, sums + i * row);
            else
                add_row_double(g->n, c, sums + i * row);
        }
        add = true;
    }
}

const stk_impl stk_impl_gemm_deep = {.name = "deep",
                                     .kernel = STK_K_GEMM,
                                     .rank = 9,
                                     .supports = supports,
                                     .units = units,
                                     .grain = grain,
                                     .aligned = aligned,
                                     .scratch = scratch,
                                     .run = run,
                                     .finish = finish};
