/* Vector kernels of convolution (conv.h). A tile of accumulators stays in registers: pixels x output channels for
 * data, weight rows x output channels for weights. Each body is one inlined function whose tile sizes are constants;
 * the wrappers at the end give it names. A tile that hangs over the end repeats its last row and does not
 * store the repetitions. */
#include "device/cpu/vec/conv.h"
#include "device/cpu/vec/lanes.h"

#include <string.h>

typedef float vfu __attribute__((vector_size(STK_VF * 4), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

/* Rows of a tile for 1..4 registers of columns: enough chains to hide the latency of FMA, few enough
 * for one address register each. */
enum {
    MANY = STK_VREGS >= 32,
    TILE_1 = 8,
    TILE_2 = MANY ? 8 : 6,
    TILE_3 = MANY ? 8 : 4,
    TILE_4 = MANY ? 6 : 3,
};

INLINE vf splat(float v) { return v - (vf){0}; }
INLINE vf load(const float *p) { return (vf) * (const vfu *)p; }

/* Stores `columns` of the NV registers of one pixel. */
INLINE void store(float *y, const vf *acc, const int NV, int64_t columns)
{
    if (columns >= NV * STK_VF) {
        UNROLL for (int v = 0; v < NV; v++) * (vfu *)(y + v * STK_VF) = (vfu)acc[v];
    } else {
        float part[4 * STK_VF];
        UNROLL for (int v = 0; v < NV; v++) * (vfu *)(part + v * STK_VF) = (vfu)acc[v];
        memcpy(y, part, (size_t)columns * sizeof *y);
    }
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

INLINE void data_block(const stk_conv_block *b, const int P, const int NV)
{
    walk at = first_pixel(b);
    const int64_t ldw = b->ldw;
    while (at.left > 0) {
        const float *px[8];
        float *py[8];
        vf acc[24];
        int64_t live = next_pixels(&at, b, P, px, py);
        UNROLL for (int i = 0; i < P * NV; i++) acc[i] = (vf){0};
        for (const stk_conv_run *run = b->run, *end = run + b->runs; run < end; run++) {
            const float *w = b->w + run->w * ldw;
            const int64_t first = run->x, last = first + run->n;
            for (int64_t k = first; k < last; k++, w += ldw) {
                vf right[4];
                UNROLL for (int v = 0; v < NV; v++) right[v] = load(w + v * STK_VF);
                UNROLL for (int p = 0; p < P; p++)
                {
                    vf left = splat(px[p][k]);
                    UNROLL for (int v = 0; v < NV; v++) acc[p * NV + v] += left * right[v];
                }
            }
        }
        UNROLL for (int p = 0; p < P; p++) if (p < live) store(py[p], acc + p * NV, NV, b->columns);
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

INLINE void weight_block(const stk_conv_block *b, const int R, const int NV)
{
    cursor at = {b->run, b->run + b->runs, 0};
    for (;;) {
        int64_t offset[8] = {0};
        float *dw[8] = {0};
        vf acc[24];
        int live = next_rows(&at, b, R, offset, dw);
        if (!live) return;
        UNROLL for (int i = 0; i < R * NV; i++) acc[i] = (vf){0};
        for (int64_t image = 0; image < b->images; image++)
            for (int64_t row = 0; row < b->rows; row++) {
                const float *x = b->x + image * b->x_image + row * b->x_row;
                const float *y = b->y + image * b->y_image + row * b->y_row;
                for (int64_t col = 0; col < b->cols; col++, x += b->x_col, y += b->y_col) {
                    vf right[4];
                    UNROLL for (int v = 0; v < NV; v++) right[v] = load(y + v * STK_VF);
                    UNROLL for (int r = 0; r < R; r++)
                    {
                        vf left = splat(x[offset[r]]);
                        UNROLL for (int v = 0; v < NV; v++) acc[r * NV + v] += left * right[v];
                    }
                }
            }
        UNROLL for (int r = 0; r < R; r++)
        {
            if (r >= live) break;
            UNROLL for (int v = 0; v < NV; v++)
            {
                vfu *to = (vfu *)(dw[r] + v * STK_VF);
                *to = (vfu)((vf)*to + acc[r * NV + v]);
            }
        }
    }
}

/* ---- few channels of results: lanes go along the runs, and are added up at the end ---------------------- */

enum { NARROW_PIXELS = 8, NARROW_VECTORS = MANY ? 4 : 2 };

INLINE void narrow_data_block(const stk_conv_block *b, const int P, const int C)
{
    walk at = first_pixel(b);
    while (at.left > 0) {
        const float *px[NARROW_PIXELS];
        float *py[NARROW_PIXELS], sum[STK_VF];
        vf acc[STK_VF];
        int64_t live = next_pixels(&at, b, P, px, py);
        UNROLL for (int i = 0; i < STK_VF; i++) acc[i] = (vf){0};
        for (const stk_conv_run *run = b->run, *end = run + b->runs; run < end; run++)
            for (int64_t k = 0; k < run->n; k += STK_VF) {
                const float *w = b->w + run->w + k;
                const bool whole = k + STK_VF <= run->n;
                const vf_part part = vf_part_of(whole ? STK_VF : run->n - k);
                vf right[4];
                UNROLL for (int c = 0; c < C; c++) right[c] = vf_load_part(w + c * b->ldw, part);
                UNROLL for (int p = 0; p < P; p++)
                {
                    const vf left = vf_load_part(px[p] + run->x + k, part);
                    UNROLL for (int c = 0; c < C; c++) acc[p * C + c] += left * right[c];
                }
            }
        vf_store(sum, vf_sums(acc));
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
                UNROLL for (int v = 0; v < V; v++) left[v] =
                    v + 1 < V ? vf_load(x + v * STK_VF) : vf_load_part(x + v * STK_VF, part);
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

#define WRAP(body, tile, nv)                                                                       \
    static void body##_##nv(const stk_conv_block *b) { body##_block(b, tile, nv); }
WRAP(data, TILE_1, 1)
WRAP(data, TILE_2, 2)
WRAP(data, TILE_3, 3)
WRAP(data, TILE_4, 4)
WRAP(weight, TILE_1, 1)
WRAP(weight, TILE_2, 2)
WRAP(weight, TILE_3, 3)
WRAP(weight, TILE_4, 4)
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
    .narrow_data = {narrow_data_1, narrow_data_2, narrow_data_3, narrow_data_4},
    .narrow_weight = {narrow_weight_1, narrow_weight_2, narrow_weight_3, narrow_weight_4},
    .deep_data = STK_VEC(stk_conv_deep_data),
    .deep_weight = STK_VEC(stk_conv_deep_weight),
    .gather = STK_VEC(stk_conv_gather),
    .gather_halves = STK_VEC(stk_conv_gather_halves),
    .few = &STK_VEC(stk_vec_conv_few),
};
