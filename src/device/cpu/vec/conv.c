/* Vector kernels of convolution (conv.h). A tile of accumulators stays in registers: pixels x output channels for
 * data, weight rows x output channels for weights. Each body is one inlined function whose tile sizes are constants;
 * the wrappers at the end give it names. A tile that hangs over the end repeats its last row and does not
 * store the repetitions. */
#include "device/cpu/vec/conv.h"
#include "device/cpu/vec/lanes.h"

#include <string.h>

typedef float vfu __attribute__((vector_size(STK_VF * 4), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))
#define UNROLL STK_UNROLL

/* Rows of a tile for 1..4 registers of columns: enough chains to hide the latency of FMA, few enough
 * for one address register each. Halves of registers go by pairs of rows. */
enum {
    MANY = STK_VREGS >= 32,
    TILE_1 = 8,
    TILE_1_HALF = MANY ? 8 : 6,
    TILE_2 = MANY ? 8 : 6,
    TILE_2_HALF = MANY ? 8 : 4,
    TILE_3 = MANY ? 8 : 4,
    TILE_4 = MANY ? 6 : 3,
};

/* Rows of weights that are neighbours in a run need no address each: as many as there are registers for. */
enum {
    NEAR_1 = MANY ? 12 : 8,
    NEAR_1_HALF = MANY ? 12 : 6,
    NEAR_2 = MANY ? 12 : 6,
    NEAR_2_HALF = MANY ? 9 : 4,
    NEAR_3 = MANY ? 8 : 4,
    NEAR_4 = MANY ? 6 : 3,
    SUMS = 26, /* registers of a tile at most */
};
#define SUMS_OF(ROWS, NV, HALF) ((ROWS) * (NV) + (HALF) * ((ROWS) + 1) / 2)

INLINE vf splat(float v) { return v - (vf){0}; }
INLINE vf load(const float *p) { return (vf) * (const vfu *)p; }

/* Sums of a tile: rows of NV registers, and, where the columns end with half a register, one more for every two rows: the low half is
 * that of the even row. So half a register costs half of the multiply-adds. Adds the products of row r; `even` is the left side
 * of the row before. */
INLINE vf add_products(vf *acc, const vf *right, vf even, vf left, const int r, const int ROWS,
                       const int NV, const int HALF)
{
    UNROLL for (int v = 0; v < NV; v++) acc[r * NV + v] += left * right[v];
    if (HALF && (r % 2 || r + 1 == ROWS))
        acc[ROWS * NV + r / 2] += (r % 2 ? vf_halves(even, left) : left) * right[NV];
    return left;
}

INLINE void load_right(vf *right, const float *w, const int NV, const int HALF)
{
    UNROLL for (int v = 0; v < NV; v++) right[v] = load(w + v * STK_VF);
    if (HALF) right[NV] = vf_twice(w + NV * STK_VF);
}

/* Stores row r of a tile; without a half the last register may be stored in part. */
INLINE void store_row(float *y, const vf *acc, const int r, const int ROWS, const int NV,
                      const int HALF, const bool whole, vf_part part)
{
    UNROLL for (int v = 0; v < NV - 1; v++) vf_store(y + v * STK_VF, acc[r * NV + v]);
    if (whole)
        vf_store(y + (NV - 1) * STK_VF, acc[r * NV + NV - 1]);
    else
        vf_store_part(y + (NV - 1) * STK_VF, acc[r * NV + NV - 1], part);
    if (HALF && r % 2)
        vf_store_high(y + NV * STK_VF, acc[ROWS * NV + r / 2]);
    else if (HALF)
        vf_store_low(y + NV * STK_VF, acc[ROWS * NV + r / 2]);
}

/* Where a walk over the pixels of a block stands. */
typedef struct walk {
    const float *x; /* first pixel of the row */
    float *y;
    int64_t col, row, left; /* pixels left */
} walk;

INLINE walk first_pixel(const stk_conv_block *b)
{
    return (walk){b->x, b->y, 0, 0, b->images * b->rows * b->cols};
}

INLINE void next_row(walk *at, const stk_conv_block *b)
{
    at->col = 0;
    at->x += b->x_row;
    at->y += b->y_row;
    if (++at->row < b->rows) return;
    at->row = 0;
    at->x += b->x_image - b->rows * b->x_row;
    at->y += b->y_image - b->rows * b->y_row;
}

/* Addresses of the next P pixels; returns how many are real. */
INLINE int64_t next_pixels(walk *at, const stk_conv_block *b, const int P, const float **px,
                           float **py)
{
    int64_t live = at->left < P ? at->left : P;
    if (at->col + P <= b->cols) {
        const float *x = at->x + at->col * b->x_col;
        float *y = at->y + at->col * b->y_col;
        UNROLL for (int p = 0; p < P; p++) px[p] = x + p * b->x_col, py[p] = y + p * b->y_col;
        at->col += P;
    } else {
        UNROLL for (int p = 0; p < P; p++)
        {
            if (at->col == b->cols && p < live) next_row(at, b);
            int64_t col = p < live ? at->col++ : at->col - 1;
            px[p] = at->x + col * b->x_col;
            py[p] = at->y + col * b->y_col;
        }
    }
    at->left -= live;
    return live;
}

INLINE void data_block(const stk_conv_block *b, const int P, const int NV, const int HALF)
{
    walk at = first_pixel(b);
    const int64_t ldw = b->ldw;
    const bool whole = HALF || b->columns >= NV * STK_VF;
    const vf_part part = vf_part_of(whole ? STK_VF : b->columns - (NV - 1) * STK_VF);
    while (at.left > 0) {
        const float *px[8];
        float *py[8];
        vf acc[SUMS];
        int64_t live = next_pixels(&at, b, P, px, py);
        UNROLL for (int i = 0; i < SUMS_OF(P, NV, HALF); i++) acc[i] = (vf){0};
        for (const stk_conv_run *run = b->run, *end = run + b->runs; run < end; run++) {
            const float *w = b->w + run->w * ldw;
            const int64_t first = run->x, last = first + run->n;
            for (int64_t k = first; k < last; k++, w += ldw) {
                vf right[4], left = {0};
                load_right(right, w, NV, HALF);
                UNROLL for (int p = 0; p < P; p++) left =
                    add_products(acc, right, left, splat(px[p][k]), p, P, NV, HALF);
            }
        }
        UNROLL for (int p = 0; p < P; p++) if (p < live)
            store_row(py[p], acc, p, P, NV, HALF, whole, part);
    }
}

/* Steps through the rows of weights, R at a time: their input offsets and places in dw. */
typedef struct cursor {
    const stk_conv_run *run, *end;
    int64_t k; /* next element of *run */
} cursor;

INLINE int next_rows(cursor *at, const stk_conv_block *b, const int R, int64_t *offset, float **dw)
{
    int live = 0;
    UNROLL for (int r = 0; r < R; r++)
    {
        if (at->run < at->end && at->k == at->run->n) {
            at->run++;
            at->k = 0;
        }
        if (at->run < at->end) {
            offset[r] = at->run->x + at->k;
            dw[r] = b->dw + (at->run->w + at->k) * b->ldw;
            at->k++;
            live++;
        } else {
            offset[r] = offset[r ? r - 1 : 0];
            dw[r] = dw[r ? r - 1 : 0];
        }
    }
    return live;
}

/* Adds a tile's sum to row r of weights, whose memory ends with the panel. */
INLINE void add_row(float *dw, const vf *acc, const int r, const int R, const int NV,
                    const int HALF)
{
    UNROLL for (int v = 0; v < NV; v++)
        vf_store(dw + v * STK_VF, load(dw + v * STK_VF) + acc[r * NV + v]);
    if (!HALF) return;
    const vf sum = vf_twice(dw + NV * STK_VF) + acc[R * NV + r / 2];
    if (r % 2)
        vf_store_high(dw + NV * STK_VF, sum);
    else
        vf_store_low(dw + NV * STK_VF, sum);
}

/* R rows of weights, of which row r takes x + offset[r]; without offsets they are neighbours. */
INLINE void weight_tile(const stk_conv_block *b, const int64_t *offset, int64_t first, vf *acc,
                        const int R, const int NV, const int HALF)
{
    UNROLL for (int i = 0; i < SUMS_OF(R, NV, HALF); i++) acc[i] = (vf){0};
    for (int64_t image = 0; image < b->images; image++)
        for (int64_t row = 0; row < b->rows; row++) {
            const float *x = b->x + image * b->x_image + row * b->x_row + first;
            const float *y = b->y + image * b->y_image + row * b->y_row;
            for (int64_t col = 0; col < b->cols; col++, x += b->x_col, y += b->y_col) {
                vf right[4], left = {0};
                load_right(right, y, NV, HALF);
                UNROLL for (int r = 0; r < R; r++) left = add_products(
                    acc, right, left, splat(x[offset ? offset[r] : r]), r, R, NV, HALF);
            }
        }
}

INLINE void weight_scattered(const stk_conv_block *b, const int R, const int NV, const int HALF)
{
    cursor at = {b->run, b->run + b->runs, 0};
    for (;;) {
        int64_t offset[8] = {0};
        float *dw[8] = {0};
        vf acc[SUMS];
        int live = next_rows(&at, b, R, offset, dw);
        if (!live) return;
        weight_tile(b, offset, 0, acc, R, NV, HALF);
        UNROLL for (int r = 0; r < R; r++) if (r < live) add_row(dw[r], acc, r, R, NV, HALF);
    }
}

INLINE void weight_near(const stk_conv_block *b, int64_t first, float *dw, const int R,
                        const int NV, const int HALF)
{
    vf acc[SUMS];
    weight_tile(b, NULL, first, acc, R, NV, HALF);
    UNROLL for (int r = 0; r < R; r++) add_row(dw + r * b->ldw, acc, r, R, NV, HALF);
}

#define NEAR(r)                                                                                    \
    case r:                                                                                        \
        if (r <= MOST) weight_near(b, run->x + k, dw, r <= MOST ? r : 1, NV, HALF);                \
        break;

/* Runs in tiles of equal length as far as possible: 27 rows are three times nine. Short runs are joined. */
INLINE void weight_block(const stk_conv_block *b, const int R, const int MOST, const int NV,
                         const int HALF)
{
    int64_t rows = 0, near = 0;
    for (int64_t i = 0; i < b->runs; i++) {
        rows += b->run[i].n;
        near += (b->run[i].n + MOST - 1) / MOST;
    }
    if (near > (rows + R - 1) / R) {
        weight_scattered(b, R, NV, HALF);
        return;
    }
    for (const stk_conv_run *run = b->run, *end = run + b->runs; run < end; run++) {
        int64_t tiles = (run->n + MOST - 1) / MOST;
        for (int64_t k = 0, now; k < run->n; k += now, tiles--) {
            float *dw = b->dw + (run->w + k) * b->ldw;
            now = (run->n - k + tiles - 1) / tiles;
            switch (now) {
                NEAR(1)
                NEAR(2)
                NEAR(3)
                NEAR(4)
                NEAR(5)
                NEAR(6)
                NEAR(7)
                NEAR(8)
                NEAR(9)
                NEAR(10)
                NEAR(11)
                NEAR(12)
            }
        }
    }
}

/* ---- few channels of results: lanes go along the runs, and are added up at the end ---------------------- */

enum { NARROW_PIXELS = 8, NARROW_VECTORS = MANY ? 4 : 2 };

/* One register along the run, for all pixels. */
INLINE void narrow_step(const float *const *px, int64_t x, const float *w, int64_t ldw, vf *acc,
                        const int P, const int C, const bool whole, vf_part part)
{
    vf right[4];
    UNROLL for (int c = 0; c < C; c++) right[c] =
        vf_keep(whole ? vf_load(w + c * ldw) : vf_load_part(w + c * ldw, part));
    UNROLL for (int p = 0; p < P; p++)
    {
        const vf left = vf_keep(whole ? vf_load(px[p] + x) : vf_load_part(px[p] + x, part));
        UNROLL for (int c = 0; c < C; c++) acc[p * C + c] += left * right[c];
    }
}

INLINE void narrow_data_block(const stk_conv_block *b, const int P, const int C)
{
    walk at = first_pixel(b);
    while (at.left > 0) {
        const float *px[NARROW_PIXELS];
        float *py[NARROW_PIXELS], sum[STK_VF];
        vf acc[STK_VF];
        int64_t live = next_pixels(&at, b, P, px, py);
        UNROLL for (int i = 0; i < STK_VF; i++) acc[i] = (vf){0};
        for (const stk_conv_run *run = b->run, *end = run + b->runs; run < end; run++) {
            const float *w = b->w + run->w;
            const vf_part part = vf_part_of(run->n % STK_VF ? run->n % STK_VF : STK_VF);
            int64_t k = 0;
            for (; k + STK_VF <= run->n; k += STK_VF)
                narrow_step(px, run->x + k, w + k, b->ldw, acc, P, C, true, part);
            if (k < run->n) narrow_step(px, run->x + k, w + k, b->ldw, acc, P, C, false, part);
        }
        const vf sums = vf_sums(acc);
        if (b->y_col == C && py[P - 1] == py[0] + (P - 1) * C) { /* side by side */
            vf_store_part(py[0], sums, vf_part_of(P * C));
            continue;
        }
        vf_store(sum, sums);
        UNROLL for (int p = 0; p < P; p++) if (p < live) UNROLL for (int c = 0; c < C; c++)
            py[p][c] = sum[p * C + c];
    }
}

/* V registers of rows of weights, the last one in part, over all pixels. */
INLINE void narrow_rows(const stk_conv_block *b, int64_t offset, float *dw, vf_part part,
                        const int V, const int C)
{
    vf acc[4 * NARROW_VECTORS];
    UNROLL for (int i = 0; i < V * C; i++) acc[i] = (vf){0};
    for (int64_t image = 0; image < b->images; image++)
        for (int64_t row = 0; row < b->rows; row++) {
            const float *x = b->x + image * b->x_image + row * b->x_row + offset;
            const float *y = b->y + image * b->y_image + row * b->y_row;
            for (int64_t col = 0; col < b->cols; col++, x += b->x_col, y += b->y_col) {
                vf left[NARROW_VECTORS];
                UNROLL for (int v = 0; v < V; v++) left[v] = vf_keep(
                    v + 1 < V ? vf_load(x + v * STK_VF) : vf_load_part(x + v * STK_VF, part));
                UNROLL for (int c = 0; c < C; c++)
                {
                    const vf right = splat(y[c]);
                    UNROLL for (int v = 0; v < V; v++) acc[c * V + v] += left[v] * right;
                }
            }
        }
    UNROLL for (int c = 0; c < C; c++) UNROLL for (int v = 0; v < V; v++)
    {
        float *to = dw + c * b->ldw + v * STK_VF;
        if (v + 1 < V)
            vf_store(to, vf_load(to) + acc[c * V + v]);
        else
            vf_store_part(to, vf_load_part(to, part) + acc[c * V + v], part);
    }
}

INLINE void narrow_weight_block(const stk_conv_block *b, const int V, const int C)
{
    for (const stk_conv_run *run = b->run, *end = run + b->runs; run < end; run++)
        for (int64_t k = 0, now; k < run->n; k += now * STK_VF) {
            const int64_t left = run->n - k;
            float *dw = b->dw + run->w + k;
            now = left > V * STK_VF ? V : (left + STK_VF - 1) / STK_VF;
            const vf_part part =
                vf_part_of(left < now * STK_VF ? left - (now - 1) * STK_VF : STK_VF);
            switch (now) {
            case 1: narrow_rows(b, run->x + k, dw, part, 1, C); break;
            case 2: narrow_rows(b, run->x + k, dw, part, 2, C); break;
            case 3: narrow_rows(b, run->x + k, dw, part, V < 3 ? V : 3, C); break;
            default: narrow_rows(b, run->x + k, dw, part, V, C); break;
            }
        }
}

#define DATA(name, tile, nv, half)                                                                 \
    static void data_##name(const stk_conv_block *b) { data_block(b, tile, nv, half); }
#define WEIGHT(name, tile, near, nv, half)                                                         \
    static void weight_##name(const stk_conv_block *b) { weight_block(b, tile, near, nv, half); }
DATA(1, TILE_1, 1, 0)
DATA(1_half, TILE_1_HALF, 1, 1)
DATA(2, TILE_2, 2, 0)
DATA(2_half, TILE_2_HALF, 2, 1)
DATA(3, TILE_3, 3, 0)
DATA(4, TILE_4, 4, 0)
WEIGHT(1, TILE_1, NEAR_1, 1, 0)
WEIGHT(1_half, TILE_1_HALF, NEAR_1_HALF, 1, 1)
WEIGHT(2, TILE_2, NEAR_2, 2, 0)
WEIGHT(2_half, TILE_2_HALF, NEAR_2_HALF, 2, 1)
WEIGHT(3, TILE_3, NEAR_3, 3, 0)
WEIGHT(4, TILE_4, NEAR_4, 4, 0)
#define WRAP(body, tile, nv)                                                                       \
    static void body##_##nv(const stk_conv_block *b) { body##_block(b, tile, nv); }
enum { EACH_1 = (int)STK_VF < (int)NARROW_PIXELS ? (int)STK_VF : (int)NARROW_PIXELS };
WRAP(narrow_data, EACH_1, 1)
WRAP(narrow_data, STK_VF / 2, 2)
WRAP(narrow_data, STK_VF / 3, 3)
WRAP(narrow_data, STK_VF / 4, 4)
WRAP(narrow_weight, NARROW_VECTORS, 1)
WRAP(narrow_weight, NARROW_VECTORS, 2)
WRAP(narrow_weight, NARROW_VECTORS, 3)
WRAP(narrow_weight, NARROW_VECTORS, 4)

const stk_vec_conv STK_VEC(stk_vec_conv) = {
    .width = STK_VF,
    .data = {data_1, data_2, data_3, data_4},
    .weight = {weight_1, weight_2, weight_3, weight_4},
    .data_half = {data_1_half, data_2_half},
    .weight_half = {weight_1_half, weight_2_half},
    .narrow_data = {narrow_data_1, narrow_data_2, narrow_data_3, narrow_data_4},
    .narrow_weight = {narrow_weight_1, narrow_weight_2, narrow_weight_3, narrow_weight_4},
    .deep_data = STK_VEC(stk_conv_deep_data),
    .deep_weight = STK_VEC(stk_conv_deep_weight),
    .gather = STK_VEC(stk_conv_gather),
    .gather_halves = STK_VEC(stk_conv_gather_halves),
    .few = &STK_VEC(stk_vec_conv_few),
};
