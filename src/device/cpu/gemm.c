/* gemm.c - the gemm kernel id: how products are cut into units, and the implementation on our own
 * vector kernels. */
#include "device/cpu/gemm.h"

#include "device/cpu/cpu.h"
#include "device/cpu/isa.h"
#include "device/cpu/vec/gemm.h"

#include <math.h>

enum { COLUMNS = 64 }; /* of a unit, when units are columns: whole registers of every set */

/* ---- units --------------------------------------------------------------------------------------- */

/* Fewest rows that make up for a part's own packing of b, or for reading it once more. */
static int64_t least_rows(const stk_gemm *g)
{
    enum { SMALL_B = 32 * 1024, LARGE_B = 128 * 1024, NARROW = 32 };
    if (g->n <= NARROW) return 8;
    if ((g->tb && g->k > 1) || g->k * g->n > LARGE_B) return 128;
    return g->k * g->n > SMALL_B ? 64 : 1;
}

/* Where rows do not make two parts, columns do. */
bool stk_gemm_by_columns(const stk_gemm *g)
{
    enum {
        SMALL_B = 64 * 1024,
        TINY_B = 4 * 1024
    }; /* elements: in L2 beside a part of a and c; packed in no time */
    if (g->n < 2 * COLUMNS || (g->tb && g->m > 1 && g->k * g->n <= TINY_B)) return false;
    if (g->batch == 1 && g->m > 1 && g->m < 2 * least_rows(g)) return true;
    if (g->n < 4 * g->m) return false;
    /* A transposed b is packed: by columns each part packs its own. */
    return g->m * g->batch < 4 || (g->batch == 1 && (g->tb || g->k * g->n > SMALL_B));
}

static int64_t units_of_one(const stk_gemm *g, stk_gemm_cut cut)
{
    return stk_ceil_div(cut.columns ? g->n : g->m, cut.step);
}

int64_t stk_gemm_count(const stk_gemm *g, stk_gemm_cut cut)
{
    return g->batch * units_of_one(g, cut);
}

bool stk_gemm_next(const stk_gemm *g, stk_gemm_cut cut, int64_t *at, int64_t hi, stk_gemm_part *out)
{
    if (*at >= hi) return false;
    const int64_t per_batch = cut.step == 1 ? (cut.columns ? g->n : g->m) : units_of_one(g, cut);
    const int64_t batch = g->batch == 1 ? 0 : *at / per_batch;
    const int64_t lo = *at - batch * per_batch;
    const int64_t end = stk_min_i64(hi - batch * per_batch, per_batch);
    *at += end - lo;
    *out = (stk_gemm_part){.batch = batch, .row_hi = g->m, .col_hi = g->n};
    if (cut.columns) {
        out->col_lo = lo * cut.step;
        out->col_hi = stk_min_i64(end * cut.step, g->n);
    } else {
        out->row_lo = lo * cut.step;
        out->row_hi = stk_min_i64(end * cut.step, g->m);
    }
    return true;
}

stk_gemm_cut stk_gemm_own_cut(const stk_gemm *g)
{
    const bool columns = stk_gemm_by_columns(g);
    return (stk_gemm_cut){columns, columns ? COLUMNS : 1};
}

int64_t stk_gemm_units(const void *params)
{
    return stk_gemm_count(params, stk_gemm_own_cut(params));
}

/* Nanoseconds of one unit on a core of today: 100 FLOP/ns, or 20 B/ns where there is little to compute. A
 * constant, not a measurement: the cut must not differ between machines. */
static double unit_ns(const stk_gemm *g, stk_gemm_cut cut)
{
    const double size = (double)stk_dtype_size((stk_dtype)g->dtype), k = (double)g->k;
    const double width = cut.columns ? (double)cut.step : (double)g->n;
    const double height = cut.columns ? (double)g->m : (double)cut.step;
    const double flops = 2.0 * width * height * k * (g->dtype == STK_F32 ? 1.0 : 2.0);
    const double bytes = size * (width * height + k * (cut.columns ? width : height));
    return fmax(flops / 100, bytes / 20);
}

/* Numbers of parts that share out evenly; not very large ones, as each may have its own scratch. */
static int64_t even_parts(int64_t parts)
{
    if (parts >= 8) return stk_min_i64(parts, 32) / 8 * 8;
    return parts >= 4 ? 4 : parts >= 2 ? 2 : 1;
}

/* Where memory is what takes time: so many that what goes in and out of a part stays in the second-level cache for those before
 * and behind it. */
static int64_t near_parts(const stk_gemm *g)
{
    enum { NEAR = 256 * 1024, FEW_TERMS = 64 };
    if (g->k * g->n > FEW_TERMS * (g->k + g->n)) return 1;
    return g->m * g->batch * (g->k + g->n) * stk_dtype_size((stk_dtype)g->dtype) / NEAR;
}

/* A part should last 10 us at least, and 40 us where that leaves 8 of them: long parts lose less at their
 * edges. */
int64_t stk_gemm_grain(const void *params)
{
    const stk_gemm *g = params;
    const stk_gemm_cut cut = stk_gemm_own_cut(g);
    const int64_t count = stk_gemm_count(g, cut);
    const double ns = fmin(unit_ns(g, cut) * (double)count, 1e15);
    int64_t parts = stk_max_i64((int64_t)(ns / 40e3), stk_min_i64((int64_t)(ns / 10e3), 8));
    parts = stk_max_i64(parts, near_parts(g));
    if (!cut.columns) parts = stk_min_i64(parts, count / least_rows(g));
    return stk_max_i64(count / even_parts(parts), 1);
}

/* Behind another launch there is no region to pay for, and a part's operand is in cache: only packing b has to pay off. */
int64_t stk_gemm_least(const void *params)
{
    const stk_gemm *g = params;
    enum { FEW = 32 };
    return stk_gemm_by_columns(g) ? stk_gemm_grain(g) : stk_max_i64(least_rows(g), FEW);
}

/* Row by row, c (and a, when it is not transposed) is touched in equal shares if it is dense. */
static uint32_t aligned_in(const stk_gemm *g, stk_gemm_cut cut)
{
    if (cut.columns) return 0;
    bool c = g->ldc == g->n && (g->batch == 1 || g->batch_c == g->m * g->n);
    bool a = !g->ta && g->lda == g->k && (g->batch == 1 || g->batch_a == g->m * g->k);
    return (a ? 1u : 0u) | (c ? 4u : 0u);
}

uint32_t stk_gemm_aligned(const void *params)
{
    return aligned_in(params, stk_gemm_own_cut(params));
}

/* ---- own ----------------------------------------------------------------------------------------- */

static bool own_supports(const void *params)
{
    return stk_vec_get()->gemm->run[((const stk_gemm *)params)->dtype] != NULL;
}

static int64_t own_room(const void *params)
{
    const stk_gemm *g = params;
    return stk_vec_get()->gemm->scratch[g->dtype](g);
}

static stk_status own_prepare(stk_launch *launch, stk_error *err)
{
    (void)err;
    launch->state = (void *)(uintptr_t)stk_vec_get()->gemm;
    return STK_OK;
}

/* matmul_parts: each batch takes a stretch of the columns of one a, and of the rows of one b. */
static bool is_in_summands(const stk_gemm *g)
{
    return g->batch > 1 && !g->ta && g->batch_a == g->k && g->lda == g->batch * g->k;
}

typedef void product_fn(const stk_gemm_job *job);

/* packed: of b; NULL where each part packs its own. */
static void run_parts(const stk_launch *launch, int64_t lo, int64_t hi, stk_gemm_cut cut,
                      product_fn *run, const void *packed)
{
    const stk_gemm *g = launch->params;
    const int64_t size = stk_dtype_size((stk_dtype)g->dtype);
    const bool first_summand = is_in_summands(g);
    stk_gemm_part r;
    for (int64_t at = lo; stk_gemm_next(g, cut, &at, hi, &r);) {
        stk_gemm_job job = {.whole = g,
                            .a = (const char *)launch->arg[0] + r.batch * g->batch_a * size,
                            .b = (const char *)launch->arg[1] + r.batch * g->batch_b * size,
                            .c = (char *)launch->arg[2] + r.batch * g->batch_c * size,
                            .row_lo = r.row_lo,
                            .row_hi = r.row_hi,
                            .col_lo = r.col_lo,
                            .col_hi = r.col_hi,
                            .back = first_summand && r.batch == 0,
                            .packed = packed,
                            .scratch = launch->room};
        run(&job);
    }
}

static void own_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const stk_gemm *g = launch->params;
    const stk_vec_gemm *vec = launch->state;
    (void)part;
    run_parts(launch, lo, hi, stk_gemm_own_cut(g), vec->run[g->dtype], NULL);
}

const stk_impl stk_impl_gemm_own = {.name = "own",
                                    .kernel = STK_K_GEMM,
                                    .rank = 10,
                                    .supports = own_supports,
                                    .units = stk_gemm_units,
                                    .grain = stk_gemm_grain,
                                    .least = stk_gemm_least,
                                    .aligned = stk_gemm_aligned,
                                    .room = own_room,
                                    .prepare = own_prepare,
                                    .run = own_run};

/* ---- panels: the same, with b packed once for all parts ---------------------------------------------- */

enum { PIECE = STK_GEMM_PANEL }; /* columns that one thread packs at a time */

/* A part of 128 rows spends an eighth of its time on packing a large b; a few rows, or columns of b, share nothing. */
static bool panels_supports(const void *params)
{
    enum { LEAST_ROWS = 64, LEAST_B = 16 * 1024 };
    const stk_gemm *g = params;
    return stk_vec_get()->gemm->pack[g->dtype] && g->batch == 1 && g->m >= LEAST_ROWS &&
           g->n >= STK_GEMM_PANEL && g->k * g->n >= LEAST_B && !stk_gemm_by_columns(g);
}

static int64_t panels_scratch(const void *params, int32_t parts)
{
    const stk_gemm *g = params;
    (void)parts;
    return stk_vec_get()->gemm->packed[g->dtype](g);
}

static int64_t panels_pieces(const stk_launch *launch)
{
    return stk_ceil_div(((const stk_gemm *)launch->params)->n, PIECE);
}

static void panels_ready(const stk_launch *launch, int64_t piece)
{
    const stk_gemm *g = launch->params;
    const int64_t column = piece * PIECE, count = stk_min_i64(PIECE, g->n - column);
    stk_vec_get()->gemm->pack[g->dtype](g, launch->arg[1], column, count, launch->scratch);
}

static void panels_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const stk_gemm *g = launch->params;
    const stk_vec_gemm *vec = launch->state;
    (void)part;
    run_parts(launch, lo, hi, stk_gemm_own_cut(g), vec->run[g->dtype], launch->scratch);
}

const stk_impl stk_impl_gemm_panels = {.name = "panels",
                                       .kernel = STK_K_GEMM,
                                       .rank = 10,
                                       .supports = panels_supports,
                                       .units = stk_gemm_units,
                                       .grain = stk_gemm_grain,
                                       .least = stk_gemm_least,
                                       .aligned = stk_gemm_aligned,
                                       .scratch = panels_scratch,
                                       .room = own_room,
                                       .prepare = own_prepare,
                                       .pieces = panels_pieces,
                                       .ready = panels_ready,
                                       .run = panels_run};

/* ---- zeros: floats with many zeros in one operand --------------------------------------------------- */

/* Rows of a part, or columns where b has the zeros: each part packs all of the other operand. */
enum { LEAST_WITH_ZEROS = 32 };

static stk_gemm_cut zeros_cut(const stk_gemm *g)
{
    const bool columns = !(g->zeros & STK_ZEROS_A);
    return (stk_gemm_cut){columns, columns ? 16 : 1};
}

/* In small products listing and packing cost what the zeros save. */
static bool zeros_supports(const void *params)
{
    enum { LEAST_ACROSS = 64, LEAST_TERMS = 64, LEAST_WORK = 1 << 20 };
    const stk_gemm *g = params;
    const bool by_b = zeros_cut(g).columns;
    const double work = (double)g->m * (double)g->n * (double)g->k;
    return g->zeros && g->dtype == STK_F32 && g->batch == 1 && !g->accumulate &&
           work >= LEAST_WORK && g->k >= LEAST_TERMS && (by_b ? g->n : g->m) >= LEAST_WITH_ZEROS &&
           (by_b ? g->m : g->n) >= LEAST_ACROSS;
}

static int64_t zeros_units(const void *params) { return stk_gemm_count(params, zeros_cut(params)); }

static int64_t zeros_grain(const void *params)
{
    const stk_gemm *g = params;
    const stk_gemm_cut cut = zeros_cut(g);
    const int64_t count = stk_gemm_count(g, cut);
    const double ns = fmin(unit_ns(g, cut) * (double)count, 1e15) / 2;
    const int64_t most = (cut.columns ? g->n : g->m) / LEAST_WITH_ZEROS;
    const int64_t parts = even_parts(stk_min_i64((int64_t)(ns / 5e3), most));
    return stk_max_i64(stk_ceil_div(count, parts), 1);
}

static uint32_t zeros_aligned(const void *params) { return aligned_in(params, zeros_cut(params)); }

static int64_t zeros_room(const void *params) { return stk_vec_get()->gemm_zeros->scratch(params); }

static void zeros_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    (void)part;
    run_parts(launch, lo, hi, zeros_cut(launch->params), stk_vec_get()->gemm_zeros->run, NULL);
}

const stk_impl stk_impl_gemm_zeros = {.name = "zeros",
                                      .kernel = STK_K_GEMM,
                                      .rank = 7,
                                      .supports = zeros_supports,
                                      .units = zeros_units,
                                      .grain = zeros_grain,
                                      .aligned = zeros_aligned,
                                      .room = zeros_room,
                                      .run = zeros_run};

/* ---- pairs: bfloat16 where the processor has dot products of them --------------------------------- */

static bool pairs_supports(const void *params)
{
    return ((const stk_gemm *)params)->dtype == STK_BF16 && stk_isa_has_pairs();
}

static int64_t pairs_room(const void *params) { return stk_vec_get()->gemm_pairs->scratch(params); }

static stk_status pairs_prepare(stk_launch *launch, stk_error *err)
{
    (void)err;
    launch->state = (void *)(uintptr_t)stk_vec_get()->gemm_pairs;
    return STK_OK;
}

static void pairs_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const stk_vec_gemm_pairs *vec = launch->state;
    (void)part;
    run_parts(launch, lo, hi, stk_gemm_own_cut(launch->params), vec->run, NULL);
}

const stk_impl stk_impl_gemm_pairs = {.name = "pairs",
                                      .kernel = STK_K_GEMM,
                                      .rank = 5,
                                      .supports = pairs_supports,
                                      .units = stk_gemm_units,
                                      .grain = stk_gemm_grain,
                                      .aligned = stk_gemm_aligned,
                                      .room = pairs_room,
                                      .prepare = pairs_prepare,
                                      .run = pairs_run};

/* ---- tiles: bfloat16 where the processor multiplies tiles of them; floats by tiles of their thirds --- */

/* Less than a tile is mostly padding. A long k has gemm_deep.c, and would make packed columns of many megabytes. */
static bool tiles_supports(const void *params)
{
    enum { LEAST_ROWS = 8, LEAST = 16, LONGEST = 1 << 16 };
    const stk_gemm *g = params;
    return g->dtype == STK_BF16 && g->m >= LEAST_ROWS && g->n >= LEAST && g->k >= LEAST &&
           g->k <= LONGEST && stk_isa_has_tiles();
}

/* Six products of tiles take a third of the time of multiply-adds, cutting b into thirds as long as 32 rows of them, a as 32 columns. */
static bool thirds_supports(const void *params)
{
    enum { LEAST = 64, LEAST_TERMS = 32 };
    const stk_gemm *g = params;
    return g->dtype == STK_F32 && g->m >= LEAST && g->n >= LEAST && g->k >= LEAST_TERMS &&
           stk_isa_has_tiles();
}

/* Parts are larger than those of other products: multiplying takes less, and each part packs all of the other operand. */
static int64_t tiles_grain(const void *params)
{
    enum { LEAST = 128, ENOUGH = 256, PARTS = 4 };
    const stk_gemm *g = params;
    const stk_gemm_cut cut = stk_gemm_own_cut(g);
    const int64_t lines = (cut.columns ? g->n : g->m) / PARTS;
    const int64_t least = stk_max_i64(stk_min_i64(lines, ENOUGH), LEAST);
    return stk_max_i64(stk_gemm_grain(g), least / cut.step);
}

static int64_t tiles_room(const void *params)
{
    return stk_vec_get()->gemm_tiles->scratch(params, false);
}

static stk_status tiles_prepare(stk_launch *launch, stk_error *err)
{
    (void)err;
    launch->state = (void *)(uintptr_t)stk_vec_get()->gemm_tiles;
    return STK_OK;
}

static void tiles_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const stk_vec_gemm_tiles *vec = launch->state;
    (void)part;
    run_parts(launch, lo, hi, stk_gemm_own_cut(launch->params), vec->run, NULL);
}

const stk_impl stk_impl_gemm_tiles = {.name = "tiles",
                                      .kernel = STK_K_GEMM,
                                      .rank = 4,
                                      .supports = tiles_supports,
                                      .units = stk_gemm_units,
                                      .grain = tiles_grain,
                                      .aligned = stk_gemm_aligned,
                                      .room = tiles_room,
                                      .prepare = tiles_prepare,
                                      .run = tiles_run};

const stk_impl stk_impl_gemm_thirds = {.name = "thirds",
                                       .kernel = STK_K_GEMM,
                                       .rank = 7,
                                       .supports = thirds_supports,
                                       .units = stk_gemm_units,
                                       .grain = tiles_grain,
                                       .aligned = stk_gemm_aligned,
                                       .room = tiles_room,
                                       .prepare = tiles_prepare,
                                       .run = tiles_run};
