/* 3x3 convolutions of stride 1 with fewer multiplications (vec/winograd.h): 16 matrix products over tiles instead of 9 taps over
 * pixels, 2.25 times less arithmetic for some additions before and behind. float32, two axes, one group. Units are images.
 *
 * Backward data is the forward walk over dy with the taps turned round and weights read transposed. Backward weight adds up
 * products of the two transformed images, and transforms their sum back at the end.
 *
 * Scratch of one part, in floats, each piece rounded up to a cache line:
 *
 *     data     [ weights: 16 x in x out | source: 16 x tiles x in | results: 16 x tiles x out | of the products ]
 *     weight   [ sums: 16 x in x out    | source                  | dy: 16 x tiles x out      | of the products ] */
#include "base/memory.h"
#include "device/cpu/conv_plan.h"
#include "device/cpu/cpu.h"
#include "device/cpu/vec/gemm.h"
#include "device/cpu/vec/vec.h"
#include "device/cpu/vec/winograd.h"

#include <string.h>

enum { FORWARD, BACK, WEIGHT };
enum {
    POSITIONS = 16,
    BLOCK = 12 * 1024, /* tiles x channels of both sides: they stay in L2 */
    TILES_LEAST = 24,
    TILES_MOST = 192,
    GAP = 80, /* floats between positions: their lines must not fall into one set of the cache */
    CHANNELS_LEAST = 16,
    WEIGHTS_MOST = 1 << 17,
};

typedef struct winograd_state {
    int kind;
    int64_t rows, cols, low[2];       /* of the destination; padding as the destination sees it */
    int64_t from_rows, from_cols;     /* of the source */
    int64_t in, out;                  /* channels of source and destination */
    int64_t tile_rows, tile_cols;     /* tiles of one image */
    int64_t tiles;                    /* at a time */
    int64_t source_step, result_step; /* floats between positions */
    int64_t weights, source, results, product, total; /* floats of scratch */
    stk_gemm gemm;
    const stk_vec *vec;
} winograd_state;

static int64_t line(int64_t floats)
{
    return stk_round_up(floats, STK_ALIGN / (int64_t)sizeof(float));
}

/* ---- sizes -------------------------------------------------------------------------------------- */

static bool supports(const void *params)
{
    const stk_conv *c = params;
    bool fits = c->dtype == STK_F32 && c->groups == 1 && c->ic >= CHANNELS_LEAST &&
                c->oc >= CHANNELS_LEAST && c->ic * c->oc <= WEIGHTS_MOST;
    fits = fits && c->kernel[0] == 1 && c->in[0] == 1 && c->out[0] == 1 && c->low[0] == 0;
    for (int i = 1; i < 3; i++)
        fits = fits && c->kernel[i] == 3 && c->stride[i] == 1 && c->dilation[i] == 1 &&
               c->low[i] <= 2 && c->in[i] >= 2 && c->out[i] >= 2;
    return fits && (double)c->n * (double)c->out[1] * (double)c->out[2] >= 64;
}

/* Products of `tiles` rows; the last ones of a part have fewer, by the same path. */
static stk_gemm gemm_of(const winograd_state *s)
{
    stk_gemm g = {.m = s->tiles, .n = s->out, .k = s->in, .batch = 1, .dtype = STK_F32};
    g.lda = s->in;
    g.ldb = g.ldc = s->out;
    if (s->kind == BACK) {
        g.tb = 1;
        g.ldb = s->in;
    } else if (s->kind == WEIGHT) {
        g.m = s->in;
        g.k = s->tiles;
        g.ta = g.accumulate = 1;
    }
    return g;
}

static void fill_state(winograd_state *s, const stk_conv *c, int kind)
{
    const bool back = kind == BACK;
    const int64_t *dest = back ? c->in : c->out, *from = back ? c->out : c->in;
    *s = (winograd_state){.kind = kind, .rows = dest[1], .cols = dest[2], .vec = stk_vec_get()};
    s->from_rows = from[1];
    s->from_cols = from[2];
    for (int i = 0; i < 2; i++) s->low[i] = back ? 2 - c->low[i + 1] : c->low[i + 1];
    s->in = back ? c->oc : c->ic;
    s->out = back ? c->ic : c->oc;
    s->tile_rows = (s->rows + 1) / 2;
    s->tile_cols = (s->cols + 1) / 2;
    s->tiles = stk_min_i64(stk_max_i64(BLOCK / (s->in + s->out), TILES_LEAST), TILES_MOST);
    s->source_step = s->tiles * s->in + GAP;
    s->result_step = s->tiles * s->out + GAP;
    s->gemm = gemm_of(s);
    s->weights = line(POSITIONS * c->ic * c->oc);
    s->source = line(POSITIONS * s->source_step);
    s->results = line(POSITIONS * s->result_step);
    s->product = line(s->vec->gemm->scratch[STK_F32](&s->gemm) / (int64_t)sizeof(float) + 1);
    s->total = s->weights + s->source + s->results + s->product;
}

static int64_t scratch(const void *params, int kind, int32_t parts)
{
    winograd_state s;
    fill_state(&s, params, kind);
    return s.total * (int64_t)sizeof(float) * parts;
}

static int64_t units(const void *params) { return ((const stk_conv *)params)->n; }

/* Transformed weights cost as much as some dozen tiles, and each part has its own. */
static int64_t grain(const void *params)
{
    enum { TILES = 128, FLOATS = 1 << 22 };
    const stk_conv *c = params;
    const int64_t tiles = stk_max_i64(c->out[1] * c->out[2] / 4, 1);
    const int64_t parts = stk_max_i64(FLOATS / (POSITIONS * c->ic * c->oc), 4);
    return stk_max_i64(stk_ceil_div(TILES, tiles), stk_ceil_div(c->n, parts));
}

static stk_status prepare(stk_launch *launch, int kind, stk_error *err)
{
    winograd_state *s = launch->state = stk_calloc(1, sizeof *s);
    if (!s) return stk_fail_memory(err, "a convolution", sizeof *s);
    fill_state(s, launch->params, kind);
    return STK_OK;
}

static void discard(stk_launch *launch)
{
    stk_free(launch->state);
    launch->state = NULL;
}

/* ---- tiles ------------------------------------------------------------------------------------------ */

typedef struct place {
    int64_t image, row, col; /* of the first pixel of the destination */
} place;

static place place_of(const winograd_state *s, int64_t tile)
{
    const int64_t each = s->tile_rows * s->tile_cols, at = tile % each;
    return (place){tile / each, at / s->tile_cols * 2, at % s->tile_cols * 2};
}

/* Bit size * r + c: the pixel r, c behind the place lies in the picture. */
static uint32_t inside(int64_t row, int64_t col, int64_t rows, int64_t cols, int size)
{
    uint32_t bits = 0;
    for (int r = 0; r < size; r++)
        for (int c = 0; c < size; c++) {
            const bool here = row + r >= 0 && row + r < rows && col + c >= 0 && col + c < cols;
            bits |= (uint32_t)here << (size * r + c);
        }
    return bits;
}

static void bring_source(const winograd_state *s, const float *x, int64_t first, int64_t count,
                         float *to)
{
    for (int64_t i = 0; i < count; i++, to += s->in) {
        const place p = place_of(s, first + i);
        const int64_t row = p.row - s->low[0], col = p.col - s->low[1];
        const int64_t at = ((p.image * s->from_rows + row) * s->from_cols + col) * s->in;
        const uint32_t bits = inside(row, col, s->from_rows, s->from_cols, 4);
        s->vec->winograd->source(x + at, s->from_cols * s->in, s->in, bits, s->in, to,
                                 s->source_step);
    }
}

static int64_t pixel_of(const winograd_state *s, place p)
{
    return ((p.image * s->rows + p.row) * s->cols + p.col) * s->out;
}

static void put_results(const winograd_state *s, const float *from, int64_t first, int64_t count,
                        float *y)
{
    for (int64_t i = 0; i < count; i++, from += s->out) {
        const place p = place_of(s, first + i);
        s->vec->winograd->result(from, s->result_step, s->out, y + pixel_of(s, p), s->cols * s->out,
                                 s->out, inside(p.row, p.col, s->rows, s->cols, 2));
    }
}

static void bring_results(const winograd_state *s, const float *dy, int64_t first, int64_t count,
                          float *to)
{
    for (int64_t i = 0; i < count; i++, to += s->out) {
        const place p = place_of(s, first + i);
        s->vec->winograd->result_back(dy + pixel_of(s, p), s->cols * s->out, s->out,
                                      inside(p.row, p.col, s->rows, s->cols, 2), s->out, to,
                                      s->result_step);
    }
}

/* ---- the three kernels -------------------------------------------------------------------------------- */

static int64_t tiles_of(const winograd_state *s, int64_t images)
{
    return images * s->tile_rows * s->tile_cols;
}

static void data_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    static const int8_t straight[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    static const int8_t turned[9] = {8, 7, 6, 5, 4, 3, 2, 1, 0};
    const winograd_state *s = launch->state;
    const int64_t all = s->in * s->out, end = tiles_of(s, hi - lo);
    float *weights = (float *)launch->scratch + part * s->total;
    float *source = weights + s->weights, *results = source + s->source;
    const float *x = (const float *)launch->arg[0] + lo * s->from_rows * s->from_cols * s->in;
    float *y = (float *)launch->arg[2] + lo * s->rows * s->cols * s->out;
    if (lo >= hi) return;
    s->vec->winograd->weights(launch->arg[1], all, s->kind == BACK ? turned : straight, all,
                              weights, all);
    for (int64_t first = 0; first < end; first += s->tiles) {
        const int64_t count = stk_min_i64(s->tiles, end - first);
        bring_source(s, x, first, count, source);
        for (int64_t i = 0; i < POSITIONS; i++) {
            stk_gemm_job job = {.whole = &s->gemm,
                                .a = source + i * s->source_step,
                                .b = weights + i * all,
                                .c = results + i * s->result_step,
                                .row_hi = count,
                                .col_hi = s->out,
                                .scratch = results + s->results};
            s->vec->gemm->run[STK_F32](&job);
        }
        put_results(s, results, first, count, y);
    }
}

static void weight_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const winograd_state *s = launch->state;
    const int64_t all = s->in * s->out, end = tiles_of(s, hi - lo);
    float *sums = (float *)launch->scratch + part * s->total;
    float *source = sums + s->weights, *results = source + s->source;
    const float *x = (const float *)launch->arg[0] + lo * s->from_rows * s->from_cols * s->in;
    const float *dy = (const float *)launch->arg[1] + lo * s->rows * s->cols * s->out;
    memset(sums, 0, (size_t)s->weights * sizeof *sums);
    for (int64_t first = 0; first < end; first += s->tiles) {
        const int64_t count = stk_min_i64(s->tiles, end - first);
        stk_gemm g = s->gemm;
        g.k = count;
        bring_source(s, x, first, count, source);
        bring_results(s, dy, first, count, results);
        for (int64_t i = 0; i < POSITIONS; i++) {
            stk_gemm_job job = {.whole = &g,
                                .a = source + i * s->source_step,
                                .b = results + i * s->result_step,
                                .c = sums + i * all,
                                .row_hi = s->in,
                                .col_hi = s->out,
                                .scratch = results + s->results};
            s->vec->gemm->run[STK_F32](&job);
        }
    }
}

/* Adds the sums of the parts in order, and transforms them. Empty parts were not run. */
static void weight_finish(const stk_launch *launch)
{
    const winograd_state *s = launch->state;
    const int64_t all = s->in * s->out;
    float *total = NULL;
    for (int32_t part = 0; part < launch->parts; part++) {
        int64_t lo, hi;
        float *sums = (float *)launch->scratch + part * s->total;
        stk_launch_range(launch, part, &lo, &hi);
        if (lo == hi) continue;
        if (!total) total = sums;
        for (int64_t i = 0; total != sums && i < POSITIONS * all; i++) total[i] += sums[i];
    }
    if (total) s->vec->winograd->weights_back(total, all, all, launch->arg[2], all);
}

STK_CONV_WAY(forward, FORWARD)
STK_CONV_WAY(back, BACK)
STK_CONV_WAY(weight, WEIGHT)

const stk_impl stk_impl_conv_winograd = {.name = "winograd",
                                         .kernel = STK_K_CONV,
                                         .rank = 20,
                                         .supports = supports,
                                         .units = units,
                                         .grain = grain,
                                         .aligned = stk_conv_data_aligned,
                                         .scratch = forward_scratch,
                                         .prepare = forward_prepare,
                                         .discard = discard,
                                         .run = data_run};
const stk_impl stk_impl_conv_bwd_data_winograd = {.name = "winograd",
                                                  .kernel = STK_K_CONV_BWD_DATA,
                                                  .rank = 20,
                                                  .supports = supports,
                                                  .units = units,
                                                  .grain = grain,
                                                  .aligned = stk_conv_data_aligned,
                                                  .scratch = back_scratch,
                                                  .prepare = back_prepare,
                                                  .discard = discard,
                                                  .run = data_run};
const stk_impl stk_impl_conv_bwd_weight_winograd = {.name = "winograd",
                                                    .kernel = STK_K_CONV_BWD_WEIGHT,
                                                    .rank = 20,
                                                    .supports = supports,
                                                    .units = units,
                                                    .grain = grain,
                                                    .aligned = stk_conv_weight_aligned,
                                                    .scratch = weight_scratch,
                                                    .prepare = weight_prepare,
                                                    .discard = discard,
                                                    .run = weight_run,
                                                    .finish = weight_finish};
