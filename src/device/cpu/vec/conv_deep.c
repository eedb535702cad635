/* conv_deep.c - depthwise convolutions (conv.h): no sum over channels, so channels fill the registers on both sides, and a
 * pixel costs as many loads as multiply-adds. Where the taps of a kernel row meet neighbouring pixels (three of them, stride
 * and dilation 1), an element is loaded once for all three.
 *
 * Rows come first, channels second: all channels of a few rows of pictures stay in the first-level cache, and memory is read in
 * order. The order of a pixel's sum is that of the runs, whichever way it goes. */
#include "device/cpu/vec/conv.h"
#include "device/cpu/vec/lanes.h"

enum {
    MANY = STK_VREGS >= 32,
    PIXELS = 8, /* of a tile at most */
    ROW_TAPS = 3,
    TAPS = 9,            /* whose sums of weights are kept in registers together */
    NEAR_ROWS = 1 << 12, /* floats of y whose pixels pass all channels together */
};

/* One register of channels, the last one of a pixel in part. */
typedef struct lane {
    bool whole;
    vf_part part;
} lane;

STK_INLINE vf load(const float *p, const lane *l)
{
    return l->whole ? vf_load(p) : vf_load_part(p, l->part);
}

STK_INLINE void store(float *p, vf v, const lane *l)
{
    if (l->whole)
        vf_store(p, v);
    else
        vf_store_part(p, v, l->part);
}

/* Do the runs go by threes over neighbouring pixels? */
static bool slides(const stk_conv_block *b)
{
    if (b->runs == 0 || b->runs % ROW_TAPS) return false;
    for (int64_t r = 0; r < b->runs; r++)
        if (r % ROW_TAPS && b->run[r].x != b->run[r - 1].x + b->x_col) return false;
    return true;
}

/* ---- data ------------------------------------------------------------------------------------------- */

/* P neighbouring pixels of one row, any taps. */
STK_INLINE void data_tile(const stk_conv_block *b, const float *x, float *y, int64_t c, const int P,
                          const lane *l)
{
    vf acc[PIXELS];
    STK_UNROLL for (int p = 0; p < P; p++) acc[p] = (vf){0};
    for (const stk_conv_run *run = b->run, *end = run + b->runs; run < end; run++) {
        const vf right = load(b->w + run->w * b->ldw + c, l);
        STK_UNROLL for (int p = 0; p < P; p++) acc[p] += load(x + run->x + p * b->x_col, l) * right;
    }
    STK_UNROLL for (int p = 0; p < P; p++) store(y + p * b->y_col, acc[p], l);
}

/* The same when the runs slide: pixel j of the source is tap 0 of result j, 1 of j - 1, 2 of j - 2. */
STK_INLINE void slide_tile(const stk_conv_block *b, const float *x, float *y, int64_t c,
                           const int P, const lane *l)
{
    vf acc[PIXELS];
    STK_UNROLL for (int p = 0; p < P; p++) acc[p] = (vf){0};
    for (const stk_conv_run *run = b->run, *end = run + b->runs; run < end; run += ROW_TAPS) {
        vf right[ROW_TAPS];
        STK_UNROLL for (int k = 0; k < ROW_TAPS; k++) right[k] =
            load(b->w + run[k].w * b->ldw + c, l);
        STK_UNROLL for (int j = 0; j < P + ROW_TAPS - 1; j++)
        {
            const vf left = vf_keep(load(x + run->x + j * b->x_col, l));
            STK_UNROLL for (int k = 0; k < ROW_TAPS; k++) if (j >= k && j - k < P) acc[j - k] +=
                left * right[k];
        }
    }
    STK_UNROLL for (int p = 0; p < P; p++) store(y + p * b->y_col, acc[p], l);
}

/* Tiles of equal length as far as possible: a short one waits for its own sums. */
#define TILE(tile, P)                                                                              \
    case P:                                                                                        \
        tile(b, x, y, c, P, l);                                                                    \
        break;
#define TILES(tile)                                                                                \
    switch (now) {                                                                                 \
        TILE(tile, 1)                                                                              \
        TILE(tile, 2)                                                                              \
        TILE(tile, 3)                                                                              \
        TILE(tile, 4)                                                                              \
        TILE(tile, 5)                                                                              \
        TILE(tile, 6)                                                                              \
        TILE(tile, 7)                                                                              \
        TILE(tile, 8)                                                                              \
    }

STK_INLINE void data_row(const stk_conv_block *b, int64_t row, int64_t c, bool slide, const lane *l)
{
    const float *x = b->x + row * b->x_row + c;
    float *y = b->y + row * b->y_row + c;
    int64_t tiles = (b->cols + PIXELS - 1) / PIXELS;
    for (int64_t left = b->cols, now; left > 0; left -= now, tiles--) {
        now = (left + tiles - 1) / tiles;
        if (slide)
            TILES(slide_tile)
        else
            TILES(data_tile)
        x += now * b->x_col;
        y += now * b->y_col;
    }
}

/* Rows and columns of pixels are alike: tiles go along the longer side where the other one is short. */
static stk_conv_block along(const stk_conv_block *b)
{
    stk_conv_block t = *b;
    if (b->cols >= 4 || b->rows <= b->cols) return t;
    t.rows = b->cols, t.cols = b->rows;
    t.x_row = b->x_col, t.x_col = b->x_row;
    t.y_row = b->y_col, t.y_col = b->y_row;
    return t;
}

void STK_VEC(stk_conv_deep_data)(const stk_conv_block *block)
{
    const stk_conv_block b = along(block);
    const bool slide = slides(&b);
    const lane all = {.whole = true, .part = vf_part_of(STK_VF)};
    const int64_t rest = b.columns % STK_VF, end = b.columns - rest;
    for (int64_t row = 0; row < b.rows; row++) {
        for (int64_t c = 0; c < end; c += STK_VF) data_row(&b, row, c, slide, &all);
        if (rest) data_row(&b, row, end, slide, &(lane){.part = vf_part_of(rest)});
    }
}

/* ---- weight ------------------------------------------------------------------------------------------ */

/* Up to TAPS taps over rows lo..hi. */
STK_INLINE void weight_taps(const stk_conv_block *b, int64_t lo, int64_t hi,
                            const stk_conv_run *run, int64_t live, int64_t c, const lane *l)
{
    int64_t offset[TAPS];
    vf acc[TAPS];
    STK_UNROLL for (int t = 0; t < TAPS; t++)
    {
        offset[t] = run[t < live ? t : live - 1].x;
        acc[t] = (vf){0};
    }
    for (int64_t row = lo; row < hi; row++) {
        const float *x = b->x + row * b->x_row + c, *y = b->y + row * b->y_row + c;
        for (int64_t col = 0; col < b->cols; col++, x += b->x_col, y += b->y_col) {
            const vf right = load(y, l);
            STK_UNROLL for (int t = 0; t < TAPS; t++) acc[t] += load(x + offset[t], l) * right;
        }
    }
    STK_UNROLL for (int t = 0; t < TAPS; t++)
    {
        if (t >= live) break;
        float *to = b->dw + run[t].w * b->ldw + c;
        store(to, load(to, l) + acc[t], l);
    }
}

/* Kernel rows of 3, 5 or 7 taps over neighbouring pixels: of each row as many pixels are at hand, and the next one takes the
 * place of the oldest. */
enum { ROW_MOST = 7, SUMS_MOST = 14 };

typedef struct rows {
    int64_t offset[ROW_TAPS]; /* of tap 0 in each kernel row */
    int64_t x_col, y_col;
} rows;

/* Only taps lo to hi - 1 are inside of the picture: one question for all kernel rows. */
STK_INLINE void weight_edge(const rows *w, const float *x, const float *y, const int R, const int T,
                            int64_t lo, int64_t hi, vf *acc, const lane *l)
{
    const vf right = load(y, l);
    STK_UNROLL for (int k = 0; k < T; k++)
    {
        if (k < lo || k >= hi) continue;
        STK_UNROLL for (int r = 0; r < R; r++) acc[r * T + k] +=
            load(x + w->offset[r] + k * w->x_col, l) * right;
    }
}

/* `at` is the place of the pixel that tap 0 meets. */
STK_INLINE void weight_pixel(const rows *w, const float *x, const float *y, const int R,
                             const int T, const int at, vf near[ROW_TAPS][ROW_MOST], vf *acc,
                             const lane *l)
{
    const vf right = load(y, l);
    STK_UNROLL for (int r = 0; r < R; r++)
    {
        near[r][(at + T - 1) % T] = load(x + w->offset[r] + (T - 1) * w->x_col, l);
        STK_UNROLL for (int k = 0; k < T; k++) acc[r * T + k] += near[r][(at + k) % T] * right;
    }
}

/* Pixels of one row whose taps are all inside, T at a time. */
STK_INLINE void weight_inside(const rows *w, const float *x, const float *y, int64_t count,
                              const int R, const int T, vf *acc, const lane *l)
{
    vf near[ROW_TAPS][ROW_MOST];
    STK_UNROLL for (int r = 0; r < R; r++) STK_UNROLL for (int k = 0; k < T - 1; k++) near[r][k] =
        load(x + w->offset[r] + k * w->x_col, l);
    for (; count >= T; count -= T, x += T * w->x_col, y += T * w->y_col)
        STK_UNROLL for (int p = 0; p < T; p++)
            weight_pixel(w, x + p * w->x_col, y + p * w->y_col, R, T, p, near, acc, l);
    for (; count > 0; count--, x += w->x_col, y += w->y_col)
        weight_edge(w, x, y, R, T, 0, T, acc, l);
}

/* R kernel rows of T taps over rows lo..hi. Result j meets pixels j - low ...; those of the source are 0..width - 1. */
STK_INLINE void weight_rows(const stk_conv_block *b, int64_t lo, int64_t hi,
                            const stk_conv_run *run, int64_t c, const int R, const int T,
                            const lane *l)
{
    rows w = {.x_col = b->x_col, .y_col = b->y_col};
    vf acc[SUMS_MOST];
    STK_UNROLL for (int r = 0; r < R; r++) w.offset[r] = run[r * T].x;
    STK_UNROLL for (int t = 0; t < R * T; t++) acc[t] = (vf){0};
    const int64_t low = b->width ? b->low : 0, width = b->width ? b->width : b->cols + T - 1;
    for (int64_t row = lo; row < hi; row++) {
        const float *x = b->x + row * b->x_row + c, *y = b->y + row * b->y_row + c;
        const int64_t inside = width + low - T + 1; /* where that ends */
        for (int64_t j = 0; j < b->cols;) {
            if (j == low && inside - low >= T) {
                const int64_t end = inside < b->cols ? inside : b->cols;
                weight_inside(&w, x + j * w.x_col, y + j * w.y_col, end - j, R, T, acc, l);
                j = end;
                if (j >= b->cols) break;
            }
            const int64_t first = low > j ? low - j : 0, rest = width + low - j;
            weight_edge(&w, x + j * w.x_col, y + j * w.y_col, R, T, first, rest < T ? rest : T, acc,
                        l);
            j++;
        }
    }
    STK_UNROLL for (int t = 0; t < R * T; t++)
    {
        float *to = b->dw + run[t].w * b->ldw + c;
        store(to, load(to, l) + acc[t], l);
    }
}

/* As many kernel rows together as registers hold. */
STK_INLINE void weight_kernel(const stk_conv_block *b, int64_t lo, int64_t hi, int64_t c,
                              const int T, const lane *l)
{
    const int most = !MANY ? 1 : T == 3 ? 3 : 2;
    const stk_conv_run *run = b->run;
    int64_t left = b->runs / T;
    for (; left >= most; left -= most, run += most * T) weight_rows(b, lo, hi, run, c, most, T, l);
    if (most > 2 && left == 2) {
        weight_rows(b, lo, hi, run, c, 2, T, l);
        return;
    }
    for (; left > 0; left--, run += T) weight_rows(b, lo, hi, run, c, 1, T, l);
}

/* Taps of a kernel row that meet neighbouring pixels, the same number in all rows; 0: they do not. */
static int64_t row_taps(const stk_conv_block *b)
{
    int64_t taps = 1;
    while (taps < b->runs && b->run[taps].x == b->run[taps - 1].x + b->x_col) taps++;
    if (b->runs % taps) return 0;
    for (int64_t r = 0; r < b->runs; r++)
        if (r % taps && b->run[r].x != b->run[r - 1].x + b->x_col) return 0;
    return taps;
}

STK_INLINE void weight_lane(const stk_conv_block *b, int64_t lo, int64_t hi, int64_t c,
                            int64_t taps, const lane *l)
{
    switch (taps) {
    case 3: weight_kernel(b, lo, hi, c, 3, l); return;
    case 5: weight_kernel(b, lo, hi, c, 5, l); return;
    case 7: weight_kernel(b, lo, hi, c, 7, l); return;
    default: break;
    }
    for (int64_t t = 0; t < b->runs; t += TAPS)
        weight_taps(b, lo, hi, b->run + t, b->runs - t < TAPS ? b->runs - t : TAPS, c, l);
}

void STK_VEC(stk_conv_deep_weight)(const stk_conv_block *b)
{
    const int64_t taps = b->width ? b->taps : row_taps(b);
    const lane all = {.whole = true, .part = vf_part_of(STK_VF)};
    const int64_t rest = b->columns % STK_VF, end = b->columns - rest;
    const int64_t row = b->cols * b->columns, together = row < NEAR_ROWS ? NEAR_ROWS / row : 1;
    for (int64_t lo = 0, hi; lo < b->rows; lo = hi) {
        hi = lo + together < b->rows ? lo + together : b->rows;
        for (int64_t c = 0; c < end; c += STK_VF) weight_lane(b, lo, hi, c, taps, &all);
        if (rest) weight_lane(b, lo, hi, end, taps, &(lane){.part = vf_part_of(rest)});
    }
}
