/* gemm_tiles.c - products of bfloat16 by tiles (tiles.h): 16 x 16 sums over 32 terms in one instruction; and of floats, in
 * thirds.
 *
 *     pass    rows of c, as many as leave their part of a, over all of k, in the second level of the cache
 *     panel   32 columns of b over a block of up to 512 terms: packed just before the rows pass it, for the first level
 *     square  32 x 32 of c, held in four tiles over a block
 *     a       read in place, 32 rows at a time; packed [k / 32][32 rows][32 terms] where it is stored by columns, where rows
 *             are fewer or lie at addresses that share lines of the cache, and behind the last whole 32 terms
 *     sums    c in floats for a panel, where k takes several blocks
 *
 * b is packed again for each pass, a few squares' worth of time. Packed once for all of them it would have to come from the
 * third level, at 10 bytes a cycle where a square takes in 60: that is slower.
 *
 * What is packed is padded with zeros, so every tile is whole. Terms are added in an order that depends on k alone: the bits of c do not
 * depend on the cut into jobs.
 *
 * Floats are cut into three bfloat16 each, whose sum they are (thirds.h): a = a1 + a2 + a3, the second at most 2^-8 of the first, the
 * third 2^-17. Six products of tiles make one of floats, 1 1 + 1 2 + 2 1 + 2 2 + 1 3 + 3 1; what is left out, 2 3 + 3 2 + 3 3, is
 * at most 2^-23.9 of a term, about one rounding of it, with either sign. Sums are rounded at their full size once in 32 terms,
 * multiply-adds round 32 times: test_amx.c measures a half to a quarter of the errors of the float kernels, and as much where
 * sizes of terms differ by 36 powers of ten (doc/architecture.md has the figures). Numbers below 2^-103 may lose their last
 * thirds, up to 2^-126; sums of a few terms that come within 1 % of the largest number may be infinite. All of a is packed,
 * thirds behind each other in place of each tile; blocks have fewer terms.
 *
 * Six products of an infinity would make NaN (0 * inf, inf - inf), so rows of a and columns of b that have an endless number
 * are multiplied again, without tiles: all of their sums are endless, whatever the other terms are. */
#include "device/cpu/vec/gemm.h"
#include "device/cpu/vec/pairs.h"
#include "device/cpu/vec/thirds.h"
#include "device/cpu/vec/tiles.h"

#include <string.h>

#if STK_HAS_TILES

enum {
    SIDE = 2 * TILE_ROWS,        /* of a square */
    TERMS = 2 * TILE_ROWS,       /* of a tile */
    GROUP_TILE = 2 * TILE_BYTES, /* bytes: 32 rows of packed a, */
    PANEL_TILE = 2 * TILE_BYTES, /* and 32 columns of packed b, over the terms of a tile */
    MOST_GROUPS = 16,            /* of 32 rows in a pass, */
    LEAST_GROUPS = 2,
    SAME_LINES = 2048, /* bytes: rows so far apart push each other out of the first level */
    MARKS = 64,        /* bytes: which columns of a panel have endless numbers */
};

/* What differs between the types: tiles in place of one, bytes of an element, the most terms of a block and of a stretch (below), bytes of
 * a in a pass. A third of the second level leaves room for c and what is packed next; thirds take more of the time of tiles than of
 * loads, so they do with less, and go through c for each block. */
typedef struct manner {
    int64_t tiles, size, kc, longest, left;
} manner;

static const manner by_halves = {1, 2, 512, INT64_MAX / 2, 3 << 18};
static const manner by_thirds = {3, 4, 192, 192, 400 << 10};

static bool in_thirds(const stk_gemm *g) { return g->dtype == STK_F32; }
static const manner *manner_of(const stk_gemm *g) { return in_thirds(g) ? &by_thirds : &by_halves; }

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

static int64_t tiles_of(int64_t k) { return stk_ceil_div(k, TERMS); }

/* k in equal pieces of whole tiles, none longer than `most`. */
static int64_t piece_of(int64_t k, int64_t most)
{
    return stk_round_up(stk_max_i64(stk_ceil_div(k, stk_max_i64(stk_ceil_div(k, most), 1)), 1),
                        TERMS);
}

/* Bytes of 32 rows or columns over k terms, packed. */
static int64_t strip_bytes(const stk_gemm *g, int64_t k)
{
    return tiles_of(k) * manner_of(g)->tiles * PANEL_TILE;
}

/* Of m rows in equal passes. */
static int64_t rows_of_pass(const stk_gemm *g, int64_t m)
{
    const int64_t fit = manner_of(g)->left / stk_max_i64(strip_bytes(g, g->k), 1);
    const int64_t groups = stk_max_i64(stk_min_i64(fit, MOST_GROUPS), LEAST_GROUPS);
    return piece_of(m, groups * SIDE);
}

/* Panels of columns of b over all of k; those of thirds have their marks behind them. */
static int64_t panel_stride(const stk_gemm *g)
{
    return strip_bytes(g, g->k) + (in_thirds(g) ? MARKS : 0);
}
static int64_t packed_bytes(const stk_gemm *g, int64_t n)
{
    return stk_ceil_div(n, SIDE) * panel_stride(g);
}

/* Pieces of scratch. They do not shrink when m, n or k grow: what is enough for a product is enough for smaller ones. */
static int64_t left_bytes(const stk_gemm *g)
{
    const manner *by = manner_of(g);
    const int64_t strip = strip_bytes(g, stk_min_i64(g->k, by->longest));
    const int64_t groups = stk_min_i64(stk_ceil_div(g->m, SIDE), MOST_GROUPS);
    const int64_t packed = stk_min_i64(strip * groups, stk_max_i64(by->left, strip * LEAST_GROUPS));
    if (!in_thirds(g)) return packed;
    stk_gemm again = *g; /* of endless rows, in the same place: a long k needs the most */
    again.k = by->longest;
    return stk_max_i64(stk_max_i64(packed, by->longest * by->size),
                       STK_VEC(stk_gemm_f32_scratch)(&again));
}
static int64_t sums_bytes(const stk_gemm *g)
{
    const bool some = !in_thirds(g) && g->k > by_halves.kc;
    return some ? MOST_GROUPS * SIDE * SIDE * 4 : 0;
}
static int64_t marks_bytes(const stk_gemm *g)
{
    return in_thirds(g) ? stk_round_up(stk_ceil_div(g->n, SIDE) * 4, MARKS) : 0;
}

static int64_t tiles_scratch(const stk_gemm *g, bool packed)
{
    const int64_t panel = packed ? 0 : strip_bytes(g, stk_min_i64(g->k, manner_of(g)->kc));
    return SIDE * SIDE * 4 + marks_bytes(g) + sums_bytes(g) + panel + left_bytes(g);
}

/* ---- packing -------------------------------------------------------------------------------------------- */

/* Panels of up to 32 columns over k terms. That of thirds says which columns have endless numbers. */
static void halves_panel(const stk_gemm *g, const uint16_t *b, int64_t n, int64_t k, char *to)
{
    const int64_t filled = (k + 1) / 2 * 2 * TILE_ROW;
    stk_pairs_panel((vf_unaligned *)(void *)to, b, g->ldb, g->tb, n, k);
    memset(to + filled, 0, (size_t)(tiles_of(k) * PANEL_TILE - filled));
}

static uint32_t thirds_panel(const stk_gemm *g, const float *b, int64_t n, int64_t k, char *to)
{
    stk_thirds_source s = {.at = b, .ld = g->ldb, .lanes = n, .turned = g->tb};
    uint32_t endless = 0;
    const int64_t step = TERMS * (g->tb ? 1 : g->ldb);
    for (int64_t t = 0; t < k; t += TERMS, to += 3 * PANEL_TILE, s.at += step) {
        s.lines = stk_min_i64(k - t, TERMS);
        endless |= stk_thirds_pack(false, s, s.at + step, to);
    }
    return endless;
}

/* Up to 32 columns from j on, terms k ... k + kc. */
static uint32_t pack_panel(const stk_gemm *g, const char *b, int64_t j, int64_t k, int64_t kc,
                           char *to)
{
    const int64_t cols = stk_min_i64(g->n - j, SIDE);
    const char *from = b + (g->tb ? j * g->ldb + k : k * g->ldb + j) * manner_of(g)->size;
    if (in_thirds(g)) return thirds_panel(g, (const void *)from, cols, kc, to);
    halves_panel(g, (const void *)from, cols, kc, to);
    return 0;
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
    return !in_thirds(g) && !g->ta && rows >= SIDE && g->lda * 2 % SAME_LINES != 0;
}

/* What is not read in place of m rows: [group of 32 rows][tile]. */
static void pack_halves(const stk_gemm *g, const uint16_t *a, int64_t m, char *to)
{
    const int64_t tiles = tiles_of(g->k), groups = stk_ceil_div(m, SIDE);
    for (int64_t x = 0; x < tiles * groups; x++) {
        const int64_t t = g->ta ? x / groups : x % tiles, i = g->ta ? x % groups : x / tiles;
        const int64_t rows = stk_min_i64(m - i * SIDE, SIDE);
        const int64_t terms = stk_min_i64(g->k - t * TERMS, TERMS);
        char *at = to + (i * tiles + t) * GROUP_TILE;
        if (g->ta)
            pack_columns(a + t * TERMS * g->lda + i * SIDE, g->lda, rows, terms, at);
        else if (terms < TERMS || !in_place(g, rows))
            pack_rows(a + i * SIDE * g->lda + t * TERMS, g->lda, rows, terms, at);
    }
}

/* All of it, along the memory of a: tiles of a group, or groups of a tile. endless: bits of rows, a word for each group. */
static void pack_thirds(const stk_gemm *g, const float *a, int64_t m, char *to, uint32_t *endless)
{
    const int64_t tiles = tiles_of(g->k), groups = stk_ceil_div(m, SIDE);
    for (int64_t x = 0; x < tiles * groups; x++) {
        const int64_t t = g->ta ? x / groups : x % tiles, i = g->ta ? x % groups : x / tiles;
        const stk_thirds_source s = {
            .at = a + (g->ta ? t * TERMS * g->lda + i * SIDE : i * SIDE * g->lda + t * TERMS),
            .ld = g->lda,
            .lines = stk_min_i64(m - i * SIDE, SIDE),
            .lanes = stk_min_i64(g->k - t * TERMS, TERMS),
            .turned = g->ta};
        endless[i] |=
            stk_thirds_pack(true, s, s.at + STK_THIRDS_SIDE, to + (i * tiles + t) * 3 * GROUP_TILE);
    }
}

/* ---- squares -------------------------------------------------------------------------------------------- */

/* A pass: up to 512 rows, and where in it we are: a panel, a block of k. */
typedef struct passage {
    const stk_gemm_job *job;
    square_fn *const (*squares)[2][2]; /* [by thirds] */
    tile *file;                        /* of the stand-ins */
    float *square;                     /* 32 x 32 sums on their way to c */
    float *sums;                       /* [row][32] where there are several blocks */
    char *left, *panel;                /* a, and a block of b */
    /* Rows and columns that have endless numbers: bits, a word for each group and each panel. */
    uint32_t endless[MOST_GROUPS], *marks;
    int64_t row, m, kc;
    int64_t col, n, first, k; /* of the panel and of the block */
    const char *b;
    bool more, last; /* blocks before; no block behind */
} passage;

/* The part of the square that c has, out of it and into it, where c holds floats. */
static void copy_part(const float *from, int64_t from_row, float *to, int64_t to_row, int64_t rows,
                      int64_t cols, bool add)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j += STK_VF) {
            const vf_part part = vf_part_of(stk_min_i64(cols - j, STK_VF));
            float *at = to + i * to_row + j;
            const vf x = vf_load_part(from + i * from_row + j, part);
            vf_store_part(at, add ? vf_load_part(at, part) + x : x, part);
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

static square square_at(const passage *p, int64_t i, int64_t rows)
{
    const stk_gemm *g = p->job->whole;
    const char *packed = p->left + i / SIDE * strip_bytes(g, g->k);
    square s = {.b = p->b};
    if (in_place(g, rows)) {
        s.a = (const char *)p->job->a + ((p->row + i) * g->lda + p->first) * 2;
        s.a_row = g->lda * 2;
        s.a_step = TILE_ROW;
        s.whole = p->k / TERMS;
        if (p->k % TERMS) s.a_last = packed + g->k / TERMS * GROUP_TILE;
    } else {
        s.a = packed + strip_bytes(g, p->first);
        s.a_row = TILE_ROW;
        s.a_step = GROUP_TILE;
        s.whole = tiles_of(p->k);
    }
    return s;
}

static void multiply_square(const passage *p, const square *s, int64_t rows, int64_t cols)
{
    const bool down = rows > TILE_ROWS, across = cols > TILE_ROWS;
    p->squares[in_thirds(p->job->whole)][down][across](s, p->file);
}

static float *floats_of(const passage *p, int64_t i)
{
    return (float *)p->job->c + (p->row + i) * p->job->whole->ldc + p->col;
}

static void wide_square(const passage *p, square *s, int64_t i, int64_t rows)
{
    const stk_gemm *g = p->job->whole;
    float *c = floats_of(p, i);
    const bool whole = rows % TILE_ROWS == 0 && p->n % TILE_ROWS == 0;
    s->more = p->more || g->accumulate;
    s->from = s->to = whole ? c : p->square;
    s->from_row = s->to_row = whole ? g->ldc : SIDE;
    if (!whole && s->more) copy_part(c, g->ldc, p->square, SIDE, rows, p->n, false);
    multiply_square(p, s, rows, p->n);
    if (!whole) copy_part(p->square, SIDE, c, g->ldc, rows, p->n, false);
}

/* Sums of a block begin at zero, and are added to c afterwards: the six roundings do not grow with k. */
static void thirds_square(const passage *p, square *s, int64_t i, int64_t rows)
{
    const stk_gemm *g = p->job->whole;
    float *c = floats_of(p, i);
    const bool add = p->more || g->accumulate;
    const bool straight = !add && rows % TILE_ROWS == 0 && p->n % TILE_ROWS == 0;
    s->to = straight ? c : p->square;
    s->to_row = straight ? g->ldc : SIDE;
    for (int64_t row = 0; row < rows; row++) {
        __builtin_prefetch(c + row * g->ldc, 1);
        __builtin_prefetch(c + row * g->ldc + p->n - 1, 1);
    }
    multiply_square(p, s, rows, p->n);
    if (!straight) copy_part(p->square, SIDE, c, g->ldc, rows, p->n, add);
}

static void half_square(const passage *p, square *s, int64_t i, int64_t rows)
{
    const stk_gemm *g = p->job->whole;
    s->more = p->more;
    s->from = p->sums + i * SIDE;
    s->to = p->last ? p->square : p->sums + i * SIDE;
    s->from_row = s->to_row = SIDE;
    multiply_square(p, s, rows, p->n);
    if (p->last)
        round_part(p->square, (uint16_t *)p->job->c + (p->row + i) * g->ldc + p->col, g->ldc, rows,
                   p->n, g->accumulate);
}

typedef void square_way(const passage *p, square *s, int64_t i, int64_t rows);

/* All rows of the pass, block after block of the panel. */
static void pass_panel(passage *p)
{
    const stk_gemm_job *job = p->job;
    const stk_gemm *g = job->whole;
    square_way *way = in_thirds(g) ? thirds_square : job->wide ? wide_square : half_square;
    const char *packed = (const char *)job->packed;
    uint32_t *marks = &p->marks[(p->col - job->col_lo) / SIDE];
    if (packed) packed += p->col / SIDE * panel_stride(g);
    if (in_thirds(g))
        *marks = packed ? *(const uint32_t *)(const void *)(packed + strip_bytes(g, g->k)) : 0;
    for (p->first = 0; p->first < g->k; p->first += p->kc) {
        p->k = stk_min_i64(p->kc, g->k - p->first);
        p->more = p->first > 0;
        p->last = p->first + p->kc >= g->k;
        p->b = packed ? packed + strip_bytes(g, p->first) : p->panel;
        if (!packed) {
            const uint32_t endless = pack_panel(g, job->b, p->col, p->first, p->k, p->panel);
            if (endless) *marks |= endless;
        }
        for (int64_t i = 0; i < p->m; i += SIDE) {
            const int64_t rows = stk_min_i64(p->m - i, SIDE);
            square s = square_at(p, i, rows);
            way(p, &s, i, rows);
        }
    }
}

/* ---- endless numbers -------------------------------------------------------------------------------------- */

/* The next run of ones among bits *lo ... n; false: none. */
static bool next_run(const uint32_t *bits, int64_t n, int64_t *lo, int64_t *hi)
{
    while (*lo < n && !(bits[*lo / 32] >> *lo % 32 & 1)) ++*lo;
    *hi = *lo;
    while (*hi < n && bits[*hi / 32] >> *hi % 32 & 1) ++*hi;
    return *lo < *hi;
}

/* Without tiles: rows and columns that have endless numbers, which were taken as zeros. What is there already, old sums and those of
 * the finite terms, does not matter beside them. Neither the cut nor a row's neighbours have a part in what an element becomes. */
static void multiply_endless(const passage *p)
{
    const stk_gemm_job *job = p->job;
    stk_gemm_job again = *job;
    again.scratch = p->left;
    again.packed = NULL;
    for (int64_t lo = 0, hi; next_run(p->endless, p->m, &lo, &hi); lo = hi) {
        again.row_lo = p->row + lo;
        again.row_hi = p->row + hi;
        STK_VEC(stk_gemm_f32)(&again);
    }
    again.row_lo = p->row;
    again.row_hi = p->row + p->m;
    for (int64_t lo = 0, hi; next_run(p->marks, job->col_hi - job->col_lo, &lo, &hi); lo = hi) {
        again.col_lo = job->col_lo + lo;
        again.col_hi = job->col_lo + hi;
        STK_VEC(stk_gemm_f32)(&again);
    }
}

/* ---- a job ------------------------------------------------------------------------------------------------ */

static void run_pass(passage *p)
{
    const stk_gemm_job *job = p->job;
    const stk_gemm *g = job->whole;
    const char *a = (const char *)job->a + p->row * (g->ta ? 1 : g->lda) * manner_of(g)->size;
    memset(p->endless, 0, sizeof p->endless);
    if (in_thirds(g))
        pack_thirds(g, (const void *)a, p->m, p->left, p->endless);
    else
        pack_halves(g, (const void *)a, p->m, p->left);
    for (p->col = job->col_lo; p->col < job->col_hi; p->col += SIDE) {
        p->n = stk_min_i64(SIDE, job->col_hi - p->col);
        pass_panel(p);
    }
    if (in_thirds(g)) multiply_endless(p);
}

static void multiply_all(const stk_gemm_job *job, passage *p)
{
    const stk_gemm *g = job->whole;
    const int64_t mc = rows_of_pass(g, job->row_hi - job->row_lo);
    char *at = job->scratch;
    p->job = job;
    p->kc = piece_of(g->k, manner_of(g)->kc);
    p->square = (float *)(void *)at;
    p->marks = (uint32_t *)(void *)(at += SIDE * SIDE * 4);
    p->sums = (float *)(void *)(at += marks_bytes(g));
    p->panel = at += sums_bytes(g);
    p->left = at + (job->packed ? 0 : strip_bytes(g, p->kc));
    for (p->row = job->row_lo; p->row < job->row_hi; p->row += mc) {
        p->m = stk_min_i64(mc, job->row_hi - p->row);
        run_pass(p);
    }
}

/* Where c holds the sums, a long k is taken in stretches: a pass that has all of it would have few rows, and b is packed for each pass. */
static stk_gemm stretch_of(const stk_gemm *g, int64_t k)
{
    stk_gemm s = *g;
    s.k = stk_min_i64(piece_of(g->k, manner_of(g)->longest), g->k - k);
    if (k) s.accumulate = 1;
    return s;
}

static void multiply(const stk_gemm_job *job, passage *p)
{
    const stk_gemm *g = job->whole;
    const int64_t size = manner_of(g)->size;
    stk_gemm_job part = *job;
    stk_gemm s;
    if (!g->k) stk_pairs_no_terms(job);
    for (int64_t k = 0; k < g->k; k += s.k) {
        s = stretch_of(g, k);
        part.whole = &s;
        part.a = (const char *)job->a + k * (g->ta ? g->lda : 1) * size;
        part.b = (const char *)job->b + k * (g->tb ? 1 : g->ldb) * size;
        multiply_all(&part, p);
        if (part.packed) part.packed = (const char *)part.packed + packed_bytes(&s, g->n);
    }
}

STK_TILES static void real_run(const stk_gemm_job *job)
{
    passage p = {.squares = real_squares};
    tiles_begin();
    multiply(job, &p);
    tiles_end();
}

static void standin_run(const stk_gemm_job *job)
{
    tile file[8];
    passage p = {.squares = standin_squares, .file = file};
    multiply(job, &p);
}

static int64_t right_bytes(const stk_gemm *g)
{
    int64_t bytes = 0;
    for (int64_t k = 0; k < g->k;) {
        const stk_gemm s = stretch_of(g, k);
        bytes += packed_bytes(&s, g->n);
        k += s.k;
    }
    return bytes;
}

static void pack_right(const stk_gemm *g, const void *b, void *to)
{
    char *at = to;
    for (int64_t k = 0; k < g->k;) {
        const stk_gemm s = stretch_of(g, k);
        const int64_t strip = strip_bytes(&s, s.k);
        for (int64_t j = 0; j < g->n; j += SIDE, at += panel_stride(&s)) {
            const uint32_t endless = pack_panel(&s, b, j, k, s.k, at);
            if (in_thirds(g)) memcpy(at + strip, &endless, sizeof endless);
        }
        k += s.k;
    }
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
