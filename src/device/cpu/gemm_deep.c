/* gemm_deep.c - products with a small result and long sums, as gradients of weights are: c has too few rows to be shared out, so
 * the sums are. Units are the terms k; each part adds up its own terms into a matrix of its own,
 * and finish() adds these in order. Both operands of a gradient are cut along k too (the rows of a batch), so this
 * can follow what made them, part by part.
 *
 *     scratch:  part 0 [sums m x n]   part 1 ...     room: the engine's own */
#include "device/cpu/gemm.h"

#include "device/cpu/cpu.h"
#include "device/cpu/isa.h"
#include "device/cpu/sums.h"
#include "device/cpu/vec/elementwise.h"
#include "device/cpu/vec/gemm.h"

#include <string.h>

enum {
    STRETCH = 256,       /* terms at a time: what the engine takes as one block; */
    TILES_STRETCH = 512, /* and tiles, which lose more by going through the sums */
    LEAST_TERMS = 256,   /* of a part: adding its sums to the others costs about 30 of them */
    MOST_SUMS = 1 << 17,
};

/* bfloat16 goes by pairs or by tiles; its sums are floats until they are rounded at the end. */
static bool is_wide(const stk_gemm *g) { return g->dtype == STK_BF16; }

static int64_t sum_size(const stk_gemm *g)
{
    return is_wide(g) ? (int64_t)sizeof(float) : stk_dtype_size((stk_dtype)g->dtype);
}

typedef void product_fn(const stk_gemm_job *job);

/* How well columns fill the registers of a tile; one register leaves the loads of the other side to wait for. */
static double filling(int64_t columns)
{
    enum { LANES = 16 };
    const double full = (double)columns / (double)stk_round_up(columns, LANES);
    return columns <= LANES ? full / 2 : full;
}

/* Both operands lie by terms, so either can be the left one: the sums are then c turned. */
static bool is_turned(const stk_gemm *g)
{
    return g->ta && !g->tb && !is_wide(g) && filling(g->m) > 1.1 * filling(g->n);
}

/* What one product of a part looks like to the engine: c is dense. */
static stk_gemm stretch_of(const stk_gemm *g, int64_t terms, bool add)
{
    stk_gemm s = *g;
    if (is_turned(g)) {
        s.m = g->n, s.n = g->m;
        s.lda = g->ldb, s.ldb = g->lda;
    }
    s.k = terms;
    s.ldc = s.n;
    s.accumulate = add;
    return s;
}

static int64_t sums_bytes(const stk_gemm *g)
{
    return stk_round_up(g->m * g->n * sum_size(g), STK_ALIGN);
}

/* A whole stretch packs the most (gemm_engine.inc). */
static int64_t room(const void *params)
{
    const stk_gemm s = stretch_of(params, STRETCH, true);
    const stk_vec *vec = stk_vec_get();
    return is_wide(&s) ? vec->gemm_pairs->scratch(&s) : vec->gemm->scratch[s.dtype](&s);
}
static int64_t tiles_room(const void *params)
{
    const stk_gemm s = stretch_of(params, TILES_STRETCH, true);
    return stk_vec_get()->gemm_tiles->scratch(&s, false);
}

/* Operands that do not stay in cache until all of c's rows have passed over them. */
static bool is_large(const stk_gemm *g)
{
    enum { BYTES = 1 << 20, TERMS = 16 * LEAST_TERMS };
    return g->k >= TERMS && g->k * (g->m + g->n) * stk_dtype_size((stk_dtype)g->dtype) >= BYTES;
}

/* Where rows or columns of c make enough parts, those are better: nothing has to be added up. But cut by terms this can follow
 * what made large operands. */
static bool supports(const void *params)
{
    const stk_gemm *g = params;
    if (is_wide(g) ? !stk_isa_has_pairs() : g->dtype != STK_F32 && g->dtype != STK_F64)
        return false;
    if (g->batch != 1 || g->m < 2 || g->n < 2 || g->k < 2 * LEAST_TERMS) return false;
    return g->m * g->n <= MOST_SUMS && (is_large(g) || stk_gemm_units(g) / stk_gemm_grain(g) < 8);
}

static bool tiles_supports(const void *params)
{
    enum { LEAST = 16 };
    const stk_gemm *g = params;
    return is_wide(g) && g->m >= LEAST && g->n >= LEAST && stk_isa_has_tiles() && supports(g);
}

static bool thirds_supports(const void *params)
{
    enum { LEAST = 64 };
    const stk_gemm *g = params;
    return g->dtype == STK_F32 && g->m >= LEAST && g->n >= LEAST && stk_isa_has_tiles() &&
           supports(g);
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

static int64_t scratch(const void *params, int32_t parts) { return sums_bytes(params) * parts; }

static void run_by(const stk_launch *launch, int64_t lo, int64_t hi, int part, product_fn *product,
                   int64_t stretch)
{
    const stk_gemm *g = launch->params;
    const int64_t size = stk_dtype_size((stk_dtype)g->dtype);
    const int left = is_turned(g) ? 1 : 0;
    char *sums = (char *)launch->scratch + part * sums_bytes(g);
    for (int64_t k = lo; k < hi; k += stretch) {
        const stk_gemm s = stretch_of(g, stk_min_i64(stretch, hi - k), k > lo);
        const char *a = launch->arg[left], *b = launch->arg[1 - left];
        stk_gemm_job job = {.whole = &s,
                            .a = a + k * (s.ta ? s.lda : 1) * size,
                            .b = b + k * (s.tb ? 1 : s.ldb) * size,
                            .c = sums,
                            .row_hi = s.m,
                            .col_hi = s.n,
                            .scratch = launch->room,
                            .wide = is_wide(g)};
        product(&job);
    }
}

static void run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const stk_gemm *g = launch->params;
    const stk_vec *vec = stk_vec_get();
    run_by(launch, lo, hi, part, is_wide(g) ? vec->gemm_pairs->run : vec->gemm->run[g->dtype],
           STRETCH);
}

static void tiles_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    run_by(launch, lo, hi, part, stk_vec_get()->gemm_tiles->run, TILES_STRETCH);
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

/* Into c, or what is there already plus the sums; halves are widened and rounded here. */
static void put_row(const stk_gemm *g, void *c, float *sums)
{
    const stk_vec_ew *ew = stk_vec_get()->ew;
    float old[64];
    for (int64_t j = 0; g->accumulate && j < g->n; j += 64) {
        const int64_t n = stk_min_i64(64, g->n - j);
        ew->load[STK_BF16](n, old, (const uint16_t *)c + j);
        add_row_float(n, sums + j, old);
    }
    ew->store[STK_BF16](g->n, c, sums);
}

#define PUT_TURNED(type)                                                                           \
    static void put_turned_##type(const stk_gemm *g, void *c, const void *sums)                    \
    {                                                                                              \
        const type *x = sums;                                                                      \
        for (int64_t j = 0; j < g->n; j++)                                                         \
            for (int64_t i = 0; i < g->m; i++) {                                                   \
                type *to = (type *)c + i * g->ldc + j;                                             \
                *to = g->accumulate ? *to + *x++ : *x++;                                           \
            }                                                                                      \
    }
PUT_TURNED(float)
PUT_TURNED(double)

static void put_sums(const stk_gemm *g, char *c, char *sums)
{
    if (is_turned(g)) {
        (g->dtype == STK_F32 ? put_turned_float : put_turned_double)(g, c, sums);
        return;
    }
    const int64_t row = g->n * sum_size(g);
    for (int64_t i = 0; i < g->m; i++, sums += row) {
        char *to = c + i * g->ldc * stk_dtype_size((stk_dtype)g->dtype);
        if (is_wide(g))
            put_row(g, to, (float *)(void *)sums);
        else if (!g->accumulate)
            memcpy(to, sums, (size_t)row);
        else
            (g->dtype == STK_F32 ? add_row_float : add_row_double)(g->n, to, sums);
    }
}

static stk_sums sums(const stk_launch *launch, int32_t part)
{
    const stk_gemm *g = launch->params;
    return (stk_sums){.at = (char *)launch->scratch + part * sums_bytes(g),
                      .n = g->m * g->n,
                      .lane = g->dtype == STK_F64 ? STK_LANE_F64 : STK_LANE_F32};
}

static void finish(const stk_launch *launch)
{
    char *total = stk_launch_total(launch).at;
    if (total) put_sums(launch->params, launch->arg[2], total);
}

const stk_impl stk_impl_gemm_deep = {.name = "deep",
                                     .kernel = STK_K_GEMM,
                                     .rank = 9,
                                     .supports = supports,
                                     .units = units,
                                     .grain = grain,
                                     .aligned = aligned,
                                     .scratch = scratch,
                                     .room = room,
                                     .run = run,
                                     .sums = sums,
                                     .finish = finish};
const stk_impl stk_impl_gemm_deep_tiles = {.name = "deep_tiles",
                                           .kernel = STK_K_GEMM,
                                           .rank = 8,
                                           .supports = tiles_supports,
                                           .units = units,
                                           .grain = grain,
                                           .aligned = aligned,
                                           .scratch = scratch,
                                           .room = tiles_room,
                                           .run = tiles_run,
                                           .sums = sums,
                                           .finish = finish};
const stk_impl stk_impl_gemm_deep_thirds = {.name = "deep_thirds",
                                            .kernel = STK_K_GEMM,
                                            .rank = 6,
                                            .supports = thirds_supports,
                                            .units = units,
                                            .grain = grain,
                                            .aligned = aligned,
                                            .scratch = scratch,
                                            .room = tiles_room,
                                            .run = tiles_run,
                                            .sums = sums,
                                            .finish = finish};
