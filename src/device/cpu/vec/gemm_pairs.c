/* gemm_pairs.c - products of bfloat16 by dot products of pairs: two terms of a sum per lane and instruction, added up in
 * float and rounded once. Twice the rate of float products where the processor has the instruction.
 *
 *     tile    up to 12 rows x 32 columns of c, held in registers over a block of k
 *     panel   32 columns of b, packed:  [k / 2][32] pairs {b[k][j], b[k + 1][j]}
 *     a       read in place when it is stored by rows (a pair is two neighbours), else packed like b, 32 rows at a time
 *     sums    c in floats, only when k takes several blocks
 *
 * An odd last k is paired with zero. Terms are added in the order of k, block after block, and blocks depend on k alone: the bits
 * of c do not depend on the cut into jobs. */
#include "device/cpu/vec/gemm.h"
#include "device/cpu/vec/pairs.h"

#if STK_HAS_PAIRS

enum {
    WIDE = STK_PAIRS_WIDE,
    ROWS = 12,
    KC = 512,
    NC_MOST = 128 * 1024, /* numbers of b packed at a time */
    MC = 256,             /* rows that pass the blocks of k together */
    GROUP = 32,           /* rows of a that are packed together */
};

typedef struct strip {
    int64_t n, pairs; /* columns, whole pairs of this block of k */
    bool odd;         /* and one number more, with a in place */
    const char *a;
    int64_t a_row, a_k; /* bytes between rows, between pairs */
    const vf_unaligned *b;
    int64_t b_panel; /* registers between panels */
    float *sums;
    int64_t sums_row;
    uint16_t *c;
    int64_t c_row;
    bool more, last, add; /* sums hold blocks before; c is written; to what it was */
} strip;

STK_INLINE STK_PAIRS void tile_end(const strip *s, vf sum, int64_t i, int64_t j, vf_part part)
{
    float *sums = s->sums + i * s->sums_row + j;
    uint16_t *c = s->c + i * s->c_row + j;
    if (s->more) sum += vf_load_part(sums, part);
    if (!s->last) {
        vf_store_part(sums, sum, part);
        return;
    }
    if (s->add) sum += vp_load_wide(c, part);
    vp_store_rounded(c, sum, part);
}

STK_INLINE STK_PAIRS void tile(const int rows, const int width, const strip *s, int64_t j)
{
    vf sum[ROWS][2];
    STK_UNROLL for (int i = 0; i < rows; i++) STK_UNROLL for (int v = 0; v < width; v++) sum[i][v] =
        (vf){0};
    const char *a = s->a;
    const vf_unaligned *b = s->b + j / WIDE * s->b_panel;
    for (int64_t k = s->pairs; k > 0; k--, a += s->a_k, b += 2) {
        vf x[2];
        STK_UNROLL for (int v = 0; v < width; v++) x[v] = b[v];
        STK_UNROLL for (int i = 0; i < rows; i++)
        {
            const vf y = vp_splat(a + i * s->a_row);
            STK_UNROLL for (int v = 0; v < width; v++) sum[i][v] = vp_dot(sum[i][v], y, x[v]);
        }
    }
    if (s->odd) STK_UNROLL for (int i = 0; i < rows; i++)
        {
            const vf y = vp_splat_low((const uint16_t *)(const void *)(a + i * s->a_row));
            STK_UNROLL for (int v = 0; v < width; v++) sum[i][v] = vp_dot(sum[i][v], y, b[v]);
        }
    STK_UNROLL for (int i = 0; i < rows; i++) STK_UNROLL for (int v = 0; v < width; v++)
    {
        const int64_t first = j + v * STK_VF;
        tile_end(s, sum[i][v], i, first, vf_part_of(stk_min_i64(s->n - first, STK_VF)));
    }
}

STK_INLINE STK_PAIRS void strip_of(const int rows, const strip *s)
{
    int64_t j = 0;
    for (; j + STK_VF < s->n; j += WIDE) tile(rows, 2, s, j);
    if (j < s->n) tile(rows, 1, s, j);
}

#define STRIP(rows)                                                                                \
    STK_PAIRS static void strip_##rows(const strip *s) { strip_of(rows, s); }
STRIP(1)
STRIP(2)
STRIP(3)
STRIP(4)
STRIP(5)
STRIP(6)
STRIP(7)
STRIP(8)
STRIP(9)
STRIP(10)
STRIP(11)
STRIP(12)
#undef STRIP

static void (*const strips[ROWS + 1])(const strip *s) = {
    NULL,    strip_1, strip_2, strip_3,  strip_4,  strip_5, strip_6,
    strip_7, strip_8, strip_9, strip_10, strip_11, strip_12};

/* m rows in strips of nearly equal height; a, sums and c move on behind them. */
static void rows_below(strip *s, int64_t m)
{
    const int64_t count = stk_ceil_div(m, ROWS), low = m / count, taller = m - low * count;
    for (int64_t i = 0; i < count; i++) {
        const int64_t rows = low + (i < taller);
        strips[rows](s);
        s->a += rows * s->a_row;
        s->sums += rows * s->sums_row;
        s->c += rows * s->c_row;
    }
}

/* ---- a job ---------------------------------------------------------------------------------------------- */

typedef struct plan {
    int64_t kc, nc, mc, panel; /* panel: registers */
    bool blocks;               /* several blocks of k */
} plan;

static plan plan_for(const stk_gemm *g, int64_t m, int64_t n)
{
    plan p = {.kc = g->k, .mc = m};
    p.blocks = g->k > KC;
    if (p.blocks) {
        p.kc = stk_round_up(stk_ceil_div(g->k, stk_ceil_div(g->k, KC)), 8);
        p.mc = stk_min_i64(m, MC);
    }
    p.panel = (p.kc + 1) / 2 * 2;
    p.nc = stk_min_i64(stk_max_i64(NC_MOST / stk_max_i64(p.kc, 1) / WIDE, 1) * WIDE,
                       stk_round_up(n, WIDE));
    return p;
}

static void pack_b(const stk_gemm *g, const uint16_t *b, int64_t n, int64_t k, int64_t panel,
                   vf_unaligned *to)
{
    for (int64_t j = 0; j < n; j += WIDE, to += panel)
        stk_pairs_panel(to, b + j * (g->tb ? g->ldb : 1), g->ldb, g->tb, stk_min_i64(n - j, WIDE),
                        k);
}

/* One block of k for rows lo..lo + m: s has b, n and what becomes of the sums. */
static void block_rows(const stk_gemm *g, const uint16_t *a, int64_t m, int64_t k, strip *s,
                       vf_unaligned *packed)
{
    if (!g->ta) {
        s->a = (const char *)a;
        s->a_row = g->lda * 2;
        s->a_k = 4;
        s->pairs = k / 2;
        s->odd = k % 2;
        rows_below(s, m);
        return;
    }
    s->a_row = 4;
    s->a_k = 4 * GROUP;
    s->pairs = (k + 1) / 2;
    s->odd = false;
    for (int64_t i = 0; i < m; i += GROUP) {
        const int64_t rows = stk_min_i64(m - i, GROUP);
        stk_pairs_zip(packed, a + i, g->lda, rows, k);
        s->a = (const char *)packed;
        rows_below(s, rows);
    }
}

static void pairs(const stk_gemm_job *job)
{
    const stk_gemm *g = job->whole;
    const plan p = plan_for(g, job->row_hi - job->row_lo, job->col_hi - job->col_lo);
    const plan most = plan_for(g, g->m, g->n); /* what scratch was asked for */
    const uint16_t *a = job->a, *b = job->b;
    vf_unaligned *panels = job->scratch, *packed = panels + most.nc / WIDE * most.panel;
    float *sums = (float *)(void *)(packed + (g->ta ? most.panel : 0));
    if (g->k == 0) {
        stk_pairs_no_terms(job);
        return;
    }
    for (int64_t i = job->row_lo; i < job->row_hi; i += p.mc)
        for (int64_t j = job->col_lo; j < job->col_hi; j += p.nc) {
            const int64_t m = stk_min_i64(p.mc, job->row_hi - i);
            for (int64_t k = 0; k < g->k; k += p.kc) {
                const int64_t kc = stk_min_i64(p.kc, g->k - k);
                strip s = {.n = stk_min_i64(p.nc, job->col_hi - j),
                           .b = panels,
                           .b_panel = p.panel,
                           .more = k > 0};
                const int64_t at = i * g->ldc + j;
                if (job->wide) {
                    s.sums = (float *)job->c + at;
                    s.sums_row = g->ldc;
                    s.more |= g->accumulate != 0;
                } else {
                    s.sums = sums;
                    s.sums_row = p.nc;
                    s.c = (uint16_t *)job->c + at;
                    s.c_row = g->ldc;
                    s.last = k + p.kc >= g->k;
                    s.add = g->accumulate;
                }
                pack_b(g, b + (g->tb ? j * g->ldb + k : k * g->ldb + j), s.n, kc, p.panel, panels);
                block_rows(g, a + (g->ta ? k * g->lda + i : i * g->lda + k), m, kc, &s, packed);
            }
        }
}

static int64_t pairs_scratch(const stk_gemm *g)
{
    const plan p = plan_for(g, g->m, g->n);
    int64_t registers = p.nc / WIDE * p.panel + (g->ta ? p.panel : 0);
    if (p.blocks) registers += p.mc * p.nc / STK_VF;
    return (registers + 1) * (int64_t)sizeof(vf);
}

const stk_vec_gemm_pairs STK_VEC(stk_vec_gemm_pairs) = {pairs, pairs_scratch};

#else

const stk_vec_gemm_pairs STK_VEC(stk_vec_gemm_pairs) = {NULL, NULL};

#endif
