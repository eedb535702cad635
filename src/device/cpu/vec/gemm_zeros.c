/* gemm_zeros.c - products one side of which is full of zeros: what came out of a relu, or goes back through one.
 *
 *     out[r][q] = sum over k of s[r][k] d[k][q]      s: the side with zeros, d: the other one
 *
 * What is not zero in s is listed; each number on a list takes one row of d, so that zeros cost nothing. A block of d is packed
 * and stays in L1 while a group of rows goes over it; a row's sums are in registers meanwhile.
 *
 *     block of d     [DEEP][PITCH]                      columns beyond the last one are zeros
 *     lists          [row of a group][stretch of DEEP k]{ rows of the block, numbers }
 *     sums           [row of a group][PITCH]            between one block of d and the next
 *
 * s is a, or b as its columns: then out is c turned. Terms are added in the order of gemm_engine.inc, and the bits are those of
 * its product (a sum of nothing but zeros may have another sign). Zero times infinity is not zero: where d holds a number that
 * is not finite, or s too few zeros, the dense product does the job. */
#include "device/cpu/vec/gemm.h"
#include "device/cpu/vec/lanes.h"

#include "base/memory.h"

enum {
    LANES = STK_VF,
    ACROSS =
        STK_VREGS == 32 ? 8 : 12, /* registers of one row: enough to hide the time of an addition */
    WIDEST = 12,                  /* of any set */
    PITCH = ACROSS * LANES,
    DEEP = 64,            /* rows of a block: it just fits L1 */
    GROUP = 128,          /* rows of s listed together */
    STRETCHES = 4,        /* of DEEP, in one stretch of a sum */
    SLOTS = DEEP + LANES, /* of a list: what is written behind its end counts, too */
    FULL_PERCENT = 75,    /* of s: from there on the dense product is faster */
};

typedef struct list {
    int64_t count;
    int32_t at[SLOTS]; /* rows of the block */
    float value[SLOTS];
} list;

typedef struct side {
    const float *from;
    int64_t ld;
    bool turned; /* s: k by k instead of row by row; d: column by column instead of k by k */
} side;

typedef struct walk {
    side s, d;
    float *out;
    int64_t ld, r, q, k;
    bool turned; /* out is written column by column */
    float *block, *sums;
    list *lists;
    vf odd; /* NaN as soon as something of d is not finite */
} walk;

/* ---- lists -------------------------------------------------------------------------------------- */

STK_INLINE int64_t list_lanes(list *l, int64_t count, vf v, int64_t first)
{
    const uint32_t lanes = vf_nonzero(v);
    vf_squeeze(lanes, v, l->value + count);
    return count + vf_list(lanes, (int32_t)first, l->at + count);
}

/* Numbers `step` apart, one by one. */
static int64_t list_few(list *l, int64_t count, const float *s, int64_t step, int64_t first,
                        int64_t n)
{
    for (int64_t i = first; i < n; i++) {
        if (s[i * step] == 0) continue;
        l->at[count] = (int32_t)i;
        l->value[count++] = s[i * step];
    }
    return count;
}

static void list_row(list *l, const float *s, int64_t n)
{
    int64_t count = 0, i = 0;
    for (; i + LANES <= n; i += LANES) count = list_lanes(l, count, vf_load(s + i), i);
    if (i < n) count = list_lanes(l, count, vf_load_part(s + i, vf_part_of(n - i)), i);
    l->count = count;
}

/* Four rows that lie side by side, k by k; their lists are `STRETCHES` apart. */
static void list_turned(list *l, const float *s, int64_t ld, int64_t n)
{
    int64_t count[4] = {0}, i = 0;
    for (; i + LANES <= n; i += LANES) {
        vf row[4];
        vf_turn(s + i * ld, ld, row);
        STK_UNROLL for (int r = 0; r < 4; r++) count[r] =
            list_lanes(l + r * STRETCHES, count[r], row[r], i);
    }
    for (int r = 0; r < 4; r++)
        l[r * STRETCHES].count = list_few(l + r * STRETCHES, count[r], s + r, ld, i, n);
}

/* Some rows of s, from the first of them on, and n of their k. */
static void list_rows(const walk *w, int64_t first, int64_t rows, int64_t k, int64_t n, list *l)
{
    const side *s = &w->s;
    int64_t r = 0;
    if (!s->turned) {
        for (; r < rows; r++) list_row(l + r * STRETCHES, s->from + (first + r) * s->ld + k, n);
        return;
    }
    const float *from = s->from + k * s->ld + first;
    for (; r + 4 <= rows; r += 4) list_turned(l + r * STRETCHES, from + r, s->ld, n);
    for (; r < rows; r++)
        l[r * STRETCHES].count = list_few(l + r * STRETCHES, 0, from + r, s->ld, 0, n);
}

/* How many numbers of a group are not zero. */
static int64_t list_group(const walk *w, int64_t first, int64_t rows, int64_t k, int64_t depth)
{
    int64_t found = 0;
    for (int64_t i = 0; i < depth; i += DEEP) {
        list *l = w->lists + i / DEEP;
        list_rows(w, first, rows, k + i, stk_min_i64(DEEP, depth - i), l);
        for (int64_t r = 0; r < rows; r++) found += l[r * STRETCHES].count;
    }
    return found;
}

/* ---- blocks of d -------------------------------------------------------------------------------- */

/* Both give what is NaN if something that they packed is not finite. */
static vf pack_rows(const walk *w, const float *from, int64_t depth, int64_t width)
{
    const int64_t whole = width / LANES * LANES;
    const vf_part part = vf_part_of(width - whole + (whole == width));
    vf odd = {0};
    float *to = w->block;
    for (int64_t i = 0; i < depth; i++, from += w->d.ld, to += PITCH) {
        int64_t j = 0;
        for (; j < whole; j += LANES) {
            const vf v = vf_load(from + j);
            odd += v * 0.0f;
            vf_store(to + j, v);
        }
        if (j == width) continue;
        const vf v = vf_load_part(from + j, part);
        odd += v * 0.0f;
        vf_store(to + j, v);
    }
    return odd;
}

static vf pack_turned(const walk *w, const float *from, int64_t depth, int64_t width)
{
    const int64_t ld = w->d.ld;
    vf odd = {0};
    for (int64_t j = 0; j < width; j += LANES, from += LANES * ld) {
        const int64_t n = stk_min_i64(LANES, width - j);
        float *to = w->block + j;
        int64_t i = 0;
        for (; n == LANES && i + 4 <= depth; i += 4) {
            vf turned[4];
            vf_turn(from + i, ld, turned);
            STK_UNROLL for (int t = 0; t < 4; t++)
            {
                odd += turned[t] * 0.0f;
                vf_store(to + (i + t) * PITCH, turned[t]);
            }
        }
        for (; i < depth; i++) {
            float row[LANES] = {0};
            for (int64_t c = 0; c < n; c++) row[c] = from[c * ld + i];
            odd += vf_load(row) * 0.0f;
            vf_store(to + i * PITCH, vf_load(row));
        }
    }
    return odd;
}

static vf pack_block(const walk *w, int64_t k, int64_t depth, int64_t q, int64_t width)
{
    const int64_t ld = w->d.ld;
    return w->d.turned ? pack_turned(w, w->d.from + q * ld + k, depth, width)
                       : pack_rows(w, w->d.from + k * ld + q, depth, width);
}

/* ---- rows --------------------------------------------------------------------------------------- */

/* Where a row's sums go after the last block: into out, added to what earlier stretches of k left there. */
typedef struct target {
    float *at;
    vf_part part; /* of the last register */
    bool begin, end, add;
} target;

STK_INLINE void row_of(const int width, const list *l, const float *block, float *sums, target t)
{
    vf sum[WIDEST];
    const vf none = {0};
    STK_UNROLL for (int v = 0; v < width; v++) sum[v] = t.begin ? none : vf_load(sums + v * LANES);
    for (int64_t i = 0, count = l->count; i < count; i++) {
        const float *x = block + (int64_t)l->at[i] * PITCH, y = l->value[i];
        STK_UNROLL for (int v = 0; v < width; v++) sum[v] = sum[v] + y * vf_load(x + v * LANES);
    }
    if (!t.end) {
        STK_UNROLL for (int v = 0; v < width; v++) vf_store(sums + v * LANES, sum[v]);
        return;
    }
    STK_UNROLL for (int v = 0; v < width - 1; v++)
    {
        float *at = t.at + v * LANES;
        vf_store(at, t.add ? vf_load(at) + sum[v] : sum[v]);
    }
    float *at = t.at + (width - 1) * LANES;
    vf_store_part(at, t.add ? vf_load_part(at, t.part) + sum[width - 1] : sum[width - 1], t.part);
}

/* All rows of a group over one block. */
STK_INLINE void rows_of(const int width, const walk *w, int64_t rows, int64_t stretch, target t,
                        int64_t step)
{
    const list *l = w->lists + stretch;
    for (int64_t r = 0; r < rows; r++, t.at += step)
        row_of(width, l + r * STRETCHES, w->block, w->sums + r * PITCH, t);
}

typedef void rows_fn(const walk *w, int64_t rows, int64_t stretch, target t, int64_t step);
#define ROWS(width)                                                                                \
    static void rows_##width(const walk *w, int64_t rows, int64_t stretch, target t, int64_t step) \
    {                                                                                              \
        rows_of(width, w, rows, stretch, t, step);                                                 \
    }
ROWS(1)
ROWS(2)
ROWS(3)
ROWS(4)
ROWS(5)
ROWS(6)
ROWS(7)
ROWS(8)
ROWS(9)
ROWS(10)
ROWS(11)
ROWS(12)
#undef ROWS

static rows_fn *const rows_by_width[WIDEST + 1] = {NULL,    rows_1,  rows_2, rows_3, rows_4,
                                                   rows_5,  rows_6,  rows_7, rows_8, rows_9,
                                                   rows_10, rows_11, rows_12};

/* Four columns of some rows of sums, for rows of out. */
STK_INLINE void turn_sums(const float *sums, int64_t rows, vf turned[4])
{
    if (rows == LANES) {
        vf_turn(sums, PITCH, turned);
        return;
    }
    for (int c = 0; c < 4; c++) {
        float column[LANES] = {0};
        for (int64_t i = 0; i < rows; i++) column[i] = sums[i * PITCH + c];
        turned[c] = vf_load(column);
    }
}

/* Sums of a group, row by row, into the columns of out. */
static void put_turned(const walk *w, int64_t lo, int64_t rows, int64_t q, int64_t width, bool add)
{
    for (int64_t j = 0; j < width; j += 4) {
        const int64_t columns = stk_min_i64(4, width - j);
        for (int64_t r = 0; r < rows; r += LANES) {
            const int64_t n = stk_min_i64(LANES, rows - r);
            const vf_part part = vf_part_of(n);
            float *at = w->out + (q + j) * w->ld + lo + r;
            vf turned[4];
            turn_sums(w->sums + r * PITCH + j, n, turned);
            for (int64_t c = 0; c < columns; c++, at += w->ld)
                vf_store_part(at, add ? vf_load_part(at, part) + turned[c] : turned[c], part);
        }
    }
}

/* ---- the product -------------------------------------------------------------------------------- */

/* One group of rows times columns q..q+width of d, over one stretch of a sum. */
static void group_columns(walk *w, int64_t lo, int64_t rows, int64_t k, int64_t depth, int64_t q,
                          int64_t width)
{
    const int64_t across = stk_ceil_div(width, LANES);
    target t = {.at = w->turned ? w->sums : w->out + lo * w->ld + q,
                .part = vf_part_of(w->turned ? LANES : width - (across - 1) * LANES),
                .add = k > 0 && !w->turned};
    for (int64_t i = 0; i < depth; i += DEEP) {
        w->odd += pack_block(w, k + i, stk_min_i64(DEEP, depth - i), q, width);
        t.begin = i == 0;
        t.end = i + DEEP >= depth;
        rows_by_width[across](w, rows, i / DEEP, t, w->turned ? PITCH : w->ld);
    }
    if (w->turned) put_turned(w, lo, rows, q, width, k > 0);
}

/* False when the dense product has to do it. */
static bool product(walk *w)
{
    const int64_t stretch = stk_gemm_stretch(w->k);
    const int64_t blocks = stk_ceil_div(w->q, PITCH);
    const int64_t width = stk_round_up(stk_ceil_div(w->q, blocks), LANES);
    for (int64_t lo = 0; lo < w->r; lo += GROUP) {
        const int64_t rows = stk_min_i64(GROUP, w->r - lo);
        for (int64_t k = 0; k < w->k; k += stretch) {
            const int64_t depth = stk_min_i64(stretch, w->k - k);
            const int64_t found = list_group(w, lo, rows, k, depth);
            if (lo == 0 && k == 0 && found * 100 > rows * depth * FULL_PERCENT) return false;
            for (int64_t q = 0; q < w->q; q += width)
                group_columns(w, lo, rows, k, depth, q, stk_min_i64(width, w->q - q));
        }
    }
    for (int i = 0; i < LANES; i++)
        if (w->odd[i] != 0) return false; /* a NaN is not 0, either */
    return true;
}

static walk walk_of(const stk_gemm_job *job)
{
    const stk_gemm *g = job->whole;
    const bool by_b = !(g->zeros & STK_ZEROS_A);
    const int64_t lo[2] = {job->row_lo, job->col_lo};
    const int64_t count[2] = {job->row_hi - job->row_lo, job->col_hi - job->col_lo};
    const side a = {(const float *)job->a + lo[0] * (g->ta ? 1 : g->lda), g->lda, g->ta};
    const side b = {(const float *)job->b + lo[1] * (g->tb ? g->ldb : 1), g->ldb, g->tb};
    walk w = {.s = by_b ? b : a,
              .d = by_b ? a : b,
              .out = (float *)job->c + lo[0] * g->ldc + lo[1],
              .ld = g->ldc,
              .r = count[by_b],
              .q = count[!by_b],
              .k = g->k,
              .turned = by_b,
              .block = job->scratch};
    /* A side is turned when it lies the other way round than it is walked: s row by row, d k by k. */
    if (by_b) {
        w.s.turned = !w.s.turned;
        w.d.turned = !w.d.turned;
    }
    w.sums = w.block + DEEP * PITCH;
    w.lists = (list *)(void *)(w.sums + GROUP * PITCH);
    return w;
}

static int64_t own_scratch(void)
{
    return stk_round_up((DEEP * PITCH + GROUP * PITCH) * (int64_t)sizeof(float) +
                            GROUP * STRETCHES * (int64_t)sizeof(list),
                        STK_ALIGN);
}

static void run(const stk_gemm_job *job)
{
    walk w = walk_of(job);
    if (w.r <= 0 || w.q <= 0) return;
    if (!product(&w)) STK_VEC(stk_gemm_f32)(job);
}

static int64_t scratch(const stk_gemm *whole)
{
    return stk_max_i64(own_scratch(), STK_VEC(stk_gemm_f32_scratch)(whole));
}

const stk_vec_gemm_zeros STK_VEC(stk_vec_gemm_zeros) = {run, scratch};
