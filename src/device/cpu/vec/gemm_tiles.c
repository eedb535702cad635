/* gemm_tiles.c - products of bfloat16 by tiles (tiles.h): 16 x 16 sums over 32 terms in one instruction.
 *
 *     slab    as many columns of b as a few MB hold, over all of k, packed:  [block of k][panel of 32 columns][k / 2][32] pairs
 *     block   up to 512 terms; 256 rows of c pass it together, panel after panel: the panel stays in the first level of the
 *             cache, the rows of a in the second
 *     square  32 x 32 of c, held in four tiles over a block
 *     a       read in place, 32 rows at a time; packed [k / 32][32 rows][32 terms] where it is stored by columns, where rows
 *             are fewer or lie at addresses that share lines of the cache, and behind the last whole 32 terms
 *     sums    c in floats, where k takes several blocks
 *
 * What is packed is padded with zeros, so every tile is whole. Terms are added in an order that depends on k alone: the bits of c do not
 * depend on the cut into jobs. */
#include "device/cpu/vec/gemm.h"
#include "device/cpu/vec/pairs.h"
#include "device/cpu/vec/tiles.h"

#include <string.h>

#if STK_HAS_TILES

enum {
    SIDE = 2 * TILE_ROWS,        /* of a square */
    TERMS = 2 * TILE_ROWS,       /* of a tile */
    GROUP_TILE = 2 * TILE_BYTES, /* bytes: 32 rows of packed a, */
    PANEL_TILE = 2 * TILE_BYTES, /* and 32 columns of packed b, over the terms of a tile */
    KC = 512,
    MC = 256,
    SLAB_MOST = 1 << 21, /* numbers */
    SLAB_WIDTH = 1024,   /* where its sums are kept: a megabyte of them */
    SAME_LINES = 2048,   /* bytes: rows so far apart push each other out of the first level */
};

typedef struct square {
    const char *a;
    int64_t a_row, a_step; /* bytes between rows, and between tiles */
    int64_t whole;         /* tiles of a there */
    const char *a_last;    /* and one more, packed; NULL: none */
    const char *b;
    const float *from; /* sums so far, where there are `more` */
    float *to;
    int64_t from_row, to_row; /* floats */
    bool more;
} square;

typedef void square_fn(const square *s, tile *file);

#define TILES(word) TILE_##word
#define T(name)     real_##name
#define ATTRIBUTE   STK_TILES
#include "device/cpu/vec/gemm_tiles.inc"

#define TILES(word) STANDIN_##word
#define T(name)     standin_##name
#define ATTRIBUTE
#include "device/cpu/vec/gemm_tiles.inc"

/* ---- plan ---------------------------------------------------------------------------------------------- */

typedef struct plan {
    int64_t kc, nc; /* of a block, of a slab */
    bool blocks;
} plan;

static int64_t tiles_of(int64_t k) { return stk_ceil_div(k, TERMS); }

static plan plan_for(const stk_gemm *g, int64_t n)
{
    plan p = {.kc = stk_round_up(stk_max_i64(g->k, 1), TERMS)};
    const int64_t all = p.kc, width = stk_round_up(stk_max_i64(n, 1), SIDE);
    p.blocks = g->k > KC;
    if (p.blocks) p.kc = stk_round_up(stk_ceil_div(g->k, stk_ceil_div(g->k, KC)), TERMS);
    p.nc = stk_max_i64(SLAB_MOST / all / SIDE * SIDE, SIDE);
    if (p.blocks) p.nc = stk_min_i64(p.nc, SLAB_WIDTH);
    p.nc = stk_min_i64(p.nc, width);
    return p;
}

/* Bytes of b packed, a slab or all of it. */
static int64_t packed_bytes(const stk_gemm *g, int64_t n)
{
    return tiles_of(g->k) * TERMS * stk_round_up(n, SIDE) * 2;
}

/* Pieces of scratch. They do not shrink when k or n grow: what is enough for a product is enough for smaller ones. */
static int64_t rows_bytes(const stk_gemm *g)
{
    return MC / SIDE * tiles_of(stk_min_i64(g->k, KC)) * GROUP_TILE;
}
static int64_t sums_bytes(const stk_gemm *g)
{
    return g->k > KC ? MC * stk_min_i64(stk_round_up(g->n, SIDE), SLAB_WIDTH) * 4 : 0;
}
static int64_t slab_bytes(const stk_gemm *g)
{
    const int64_t most = stk_max_i64(SLAB_MOST * 2, packed_bytes(g, SIDE));
    return stk_min_i64(packed_bytes(g, g->n), most);
}

static int64_t tiles_scratch(const stk_gemm *g, bool packed)
{
    return SIDE * SIDE * 4 + rows_bytes(g) + sums_bytes(g) + (packed ? 0 : slab_bytes(g));
}

/* ---- packing -------------------------------------------------------------------------------------------- */

/* n columns of b over all of k. */
static void pack_slab(const stk_gemm *g, const plan *p, const uint16_t *b, int64_t n, char *to)
{
    for (int64_t k = 0; k < g->k; k += p->kc) {
        const int64_t kc = stk_min_i64(p->kc, g->k - k), tiles = tiles_of(kc);
        for (int64_t j = 0; j < n; j += SIDE, to += tiles * PANEL_TILE) {
            const uint16_t *from = b + (g->tb ? j * g->ldb + k : k * g->ldb + j);
            const int64_t filled = (kc + 1) / 2 * 2 * TILE_ROW;
            stk_pairs_panel((vf_unaligned *)(void *)to, from, g->ldb, g->tb,
                            stk_min_i64(n - j, SIDE), kc);
            memset(to + filled, 0, (size_t)(tiles * PANEL_TILE - filled));
        }
    }
}

/* A tile's worth of up to 32 rows stored by rows. */
static void pack_rows(const uint16_t *a, int64_t lda, int64_t rows, int64_t terms, char *to)
{
    const vp_part part = vp_part_of(terms);
    for (int64_t i = 0; i < SIDE; i++, a += lda, to += TILE_ROW)
        vf_store((float *)(void *)to, i < rows ? vp_load_part(a, part) : (vf){0});
}

/* The same of rows stored by columns: zipped like b, then pairs are turned like floats. */
static void pack_columns(const uint16_t *a, int64_t lda, int64_t rows, int64_t terms, char *to)
{
    float zipped[TILE_ROWS][SIDE] __attribute__((aligned(64)));
    stk_pairs_zip((vf_unaligned *)(void *)zipped, a, lda, rows, terms);
    for (int64_t pair = (terms + 1) / 2; pair < TILE_ROWS; pair++)
        memset(zipped[pair], 0, sizeof zipped[pair]);
    for (int64_t i = 0; i < SIDE; i += 4) {
        vf out[4];
        vf_turn(&zipped[0][i], SIDE, out);
        STK_UNROLL for (int r = 0; r < 4; r++)
            vf_store((float *)(void *)(to + (i + r) * TILE_ROW), out[r]);
    }
}

static bool in_place(const stk_gemm *g, int64_t rows)
{
    return !g->ta && rows >= SIDE && g->lda * 2 % SAME_LINES != 0;
}

/* What is not read in place of m rows and k terms: [group of 32 rows][tile]. */
static void pack_a(const stk_gemm *g, const uint16_t *a, int64_t m, int64_t k, char *to)
{
    const int64_t tiles = tiles_of(k);
    for (int64_t t = 0; t < tiles; t++)
        for (int64_t i = 0; i < m; i += SIDE) {
            const int64_t rows = stk_min_i64(m - i, SIDE);
            const int64_t terms = stk_min_i64(k - t * TERMS, TERMS);
            char *at = to + (i / SIDE * tiles + t) * GROUP_TILE;
            if (g->ta)
                pack_columns(a + t * TERMS * g->lda + i, g->lda, rows, terms, at);
            else if (terms < TERMS || !in_place(g, rows))
                pack_rows(a + i * g->lda + t * TERMS, g->lda, rows, terms, at);
        }
}

/* ---- squares -------------------------------------------------------------------------------------------- */

/* One slab, one block of k, up to 256 rows. */
typedef struct passage {
    const stk_gemm_job *job;
    square_fn *const (*squares)[2];
    tile *file;    /* of the stand-ins */
    float *square; /* 32 x 32 sums on their way to c */
    const char *a; /* element 0 of the rows and of the block, in place */
    char *packed;  /* a */
    const char *b; /* panels */
    float *sums;   /* [row][nc] where there are several blocks */
    int64_t nc, k; /* k: terms of the block */
    int64_t row, col, m, n;
    bool more, last; /* blocks before; no block behind */
} passage;

/* The part of the square that c has, out of it and into it, where c holds floats and the square goes beyond its edge. */
static void copy_part(const float *from, int64_t from_row, float *to, int64_t to_row, int64_t rows,
                      int64_t cols)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j += STK_VF) {
            const vf_part part = vf_part_of(stk_min_i64(cols - j, STK_VF));
            vf_store_part(to + i * to_row + j, vf_load_part(from + i * from_row + j, part), part);
        }
}

STK_PAIRS static void round_part(const float *from, uint16_t *to, int64_t to_row, int64_t rows,
                                 int64_t cols, bool add)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j += STK_VF) {
            const vf_part part = vf_part_of(stk_min_i64(cols - j, STK_VF));
            uint16_t *c = to + i * to_row + j;
            vf sum = vf_load(from + i * SIDE + j);
            if (add) sum += vp_load_wide(c, part);
            vp_store_rounded(c, sum, part);
        }
}

static square square_at(const passage *p, int64_t i, int64_t j, int64_t rows)
{
    const stk_gemm *g = p->job->whole;
    const int64_t tiles = tiles_of(p->k);
    square s = {.b = p->b + j / SIDE * tiles * PANEL_TILE};
    const char *packed = p->packed + i / SIDE * tiles * GROUP_TILE;
    if (in_place(g, rows)) {
        s.a = p->a + i * g->lda * 2;
        s.a_row = g->lda * 2;
        s.a_step = TILE_ROW;
        s.whole = p->k / TERMS;
        if (s.whole < tiles) s.a_last = packed + s.whole * GROUP_TILE;
    } else {
        s.a = packed;
        s.a_row = TILE_ROW;
        s.a_step = GROUP_TILE;
        s.whole = tiles;
    }
    return s;
}

static void wide_square(const passage *p, square *s, int64_t i, int64_t j, int64_t rows,
                        int64_t cols)
{
    const stk_gemm *g = p->job->whole;
    float *c = (float *)p->job->c + (p->row + i) * g->ldc + p->col + j;
    const bool whole = rows % TILE_ROWS == 0 && cols % TILE_ROWS == 0;
    s->more = p->more || g->accumulate;
    s->from = s->to = whole ? c : p->square;
    s->from_row = s->to_row = whole ? g->ldc : SIDE;
    if (!whole && s->more) copy_part(c, g->ldc, p->square, SIDE, rows, cols);
    p->squares[rows > TILE_ROWS][cols > TILE_ROWS](s, p->file);
    if (!whole) copy_part(p->square, SIDE, c, g->ldc, rows, cols);
}

static void half_square(const passage *p, square *s, int64_t i, int64_t j, int64_t rows,
                        int64_t cols)
{
    const stk_gemm *g = p->job->whole;
    float *sums = p->sums + i * p->nc + j;
    s->more = p->more;
    s->from = sums;
    s->from_row = p->nc;
    s->to = p->last ? p->square : sums;
    s->to_row = p->last ? SIDE : p->nc;
    p->squares[rows > TILE_ROWS][cols > TILE_ROWS](s, p->file);
    if (p->last)
        round_part(p->square, (uint16_t *)p->job->c + (p->row + i) * g->ldc + p->col + j, g->ldc,
                   rows, cols, g->accumulate);
}

static void pass(const passage *p)
{
    for (int64_t j = 0; j < p->n; j += SIDE)
        for (int64_t i = 0; i < p->m; i += SIDE) {
            const int64_t rows = stk_min_i64(p->m - i, SIDE), cols = stk_min_i64(p->n - j, SIDE);
            square s = square_at(p, i, j, rows);
            (p->job->wide ? wide_square : half_square)(p, &s, i, j, rows, cols);
        }
}

/* ---- a job ------------------------------------------------------------------------------------------------ */

/* All blocks of k for the rows and the slab in p. */
static void pass_blocks(passage *p, int64_t kc, const char *slab)
{
    const stk_gemm *g = p->job->whole;
    const uint16_t *a = p->job->a;
    for (int64_t k = 0; k < g->k; k += kc) {
        const uint16_t *from = a + (g->ta ? k * g->lda + p->row : p->row * g->lda + k);
        p->k = stk_min_i64(kc, g->k - k);
        p->a = (const char *)from;
        p->b = slab + k * stk_round_up(p->n, SIDE) * 2;
        p->more = k > 0;
        p->last = k + kc >= g->k;
        pack_a(g, from, p->m, p->k, p->packed);
        pass(p);
    }
}

static void multiply(const stk_gemm_job *job, passage *p)
{
    const stk_gemm *g = job->whole;
    const plan whole = plan_for(g, job->packed ? g->n : job->col_hi - job->col_lo);
    char *at = job->scratch;
    p->job = job;
    p->nc = whole.nc;
    p->square = (float *)(void *)at;
    p->packed = at += SIDE * SIDE * 4;
    p->sums = (float *)(void *)(at += rows_bytes(g));
    at += sums_bytes(g);
    for (p->col = job->col_lo; p->col < job->col_hi; p->col += whole.nc) {
        const char *slab = at;
        p->n = stk_min_i64(whole.nc, job->col_hi - p->col);
        if (job->packed)
            slab = (const char *)job->packed + packed_bytes(g, p->col);
        else
            pack_slab(g, &whole, (const uint16_t *)job->b + p->col * (g->tb ? g->ldb : 1), p->n,
                      at);
        for (p->row = job->row_lo; p->row < job->row_hi; p->row += MC) {
            p->m = stk_min_i64(MC, job->row_hi - p->row);
            pass_blocks(p, whole.kc, slab);
        }
    }
}

STK_TILES static void real_run(const stk_gemm_job *job)
{
    passage p = {.squares = real_squares};
    if (job->whole->k == 0) {
        stk_pairs_no_terms(job);
        return;
    }
    tiles_begin();
    multiply(job, &p);
    tiles_end();
}

static void standin_run(const stk_gemm_job *job)
{
    tile file[8];
    passage p = {.squares = standin_squares, .file = file};
    if (job->whole->k == 0)
        stk_pairs_no_terms(job);
    else
        multiply(job, &p);
}

static int64_t right_bytes(const stk_gemm *g) { return packed_bytes(g, g->n); }

static void pack_right(const stk_gemm *g, const void *b, void *to)
{
    const plan p = plan_for(g, g->n);
    for (int64_t j = 0; j < g->n; j += p.nc)
        pack_slab(g, &p, (const uint16_t *)b + j * (g->tb ? g->ldb : 1),
                  stk_min_i64(p.nc, g->n - j), (char *)to + packed_bytes(g, j));
}

const stk_vec_gemm_tiles STK_VEC(stk_vec_gemm_amx) = {real_run, tiles_scratch, right_bytes,
                                                      pack_right};
const stk_vec_gemm_tiles STK_VEC(stk_vec_gemm_standin) = {standin_run, tiles_scratch, right_bytes,
                                                          pack_right};

#else

const stk_vec_gemm_tiles STK_VEC(stk_vec_gemm_amx) = {NULL, NULL, NULL, NULL};
const stk_vec_gemm_tiles STK_VEC(stk_vec_gemm_standin) = {NULL, NULL, NULL, NULL};

#endif

/* The sets are built without; isa.c puts one of the others in. */
const stk_vec_gemm_tiles STK_VEC(stk_vec_gemm_tiles) = {NULL, NULL, NULL, NULL};
