/* Convolutions of stride 1 with fewer multiplications (vec/winograd.h): matrix products over tiles instead of taps over
 * pixels, for some additions before and behind. One or two axes, one group. Units are images. Products are those of
 * float32; bfloat16 is widened by the transforms that read it.
 *
 *     winograd     3x3 taps by tiles of 2x2 results: 16 products instead of 36, 2.25 times less arithmetic
 *     winograd6    6 points along an axis: 4 times less for 3x3, 2.8 for 5x5, 2 for 1x3, 1.7 for 1x5
 *
 * Backward data is the forward walk over dy with the taps turned round and weights read transposed. Backward weight adds up
 * products of the two transformed images, and transforms their sum back at the end.
 *
 * The room of a part, in floats, each piece rounded up to a cache line; a tile has P positions:
 *
 *     data     [ weights: P x in x out | source: P x tiles x in | results: P x tiles x out | of the products ]
 *     weight   [ sums: P x in x out    | source                 | dy: P x tiles x out      | of the products ]
 *
 * Scratch of backward weight: the gradients of the parts. */
#include "base/memory.h"
#include "device/cpu/conv_few.h"
#include "device/cpu/conv_plan.h"
#include "device/cpu/cpu.h"
#include "device/cpu/isa.h"
#include "device/cpu/vec/elementwise.h"
#include "device/cpu/vec/gemm.h"
#include "device/cpu/vec/vec.h"
#include "device/cpu/vec/winograd.h"

#include <string.h>

enum { FORWARD, BACK, WEIGHT };
enum { FOUR = 4, SIX = 6 }; /* points */
enum {
    BLOCK = 128 * 1024, /* positions x tiles x channels of both sides: they stay in L2 */
    TILES_LEAST = 24,
    TILES_MOST = 192,
    GAP = 80, /* floats between positions: their lines must not fall into one set of the cache */
    CHANNELS_LEAST = 16,
    WEIGHTS_MOST = 1 << 17,
};

typedef struct winograd_state {
    int kind;
    int64_t size; /* bytes of an element of the pictures */
    const stk_winograd_tile *tile;
    int64_t positions;                /* of a tile */
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

static bool fits_axis(const stk_conv *c, int i, const stk_winograd_axis *axis)
{
    bool fits = c->kernel[i] == axis->taps && c->low[i] < axis->taps;
    if (axis->taps == 1) return fits && c->stride[i] == 1;
    return fits && c->stride[i] == 1 && c->dilation[i] == 1 && c->in[i] >= 2 && c->out[i] >= 2;
}

static bool fits_tile(const stk_conv *c, const stk_winograd_tile *tile)
{
    return fits_axis(c, 1, &tile->rows) && fits_axis(c, 2, &tile->cols);
}

/* The kind of tile for a problem; NULL: none. */
static const stk_winograd_tile *tile_for(const stk_conv *c, int points)
{
    const stk_vec_winograd *vec = stk_vec_get()->winograd;
    const stk_winograd_tile *const *kinds = c->dtype == STK_BF16 ? vec->halves : vec->floats;
    for (int i = 0; i < STK_WINOGRAD_KINDS; i++)
        if (kinds[i]->cols.points == points && fits_tile(c, kinds[i])) return kinds[i];
    return NULL;
}

static bool takes_dtype(stk_dtype dtype)
{
    return dtype == STK_F32 || (dtype == STK_BF16 && stk_isa_has_pairs());
}

static bool supports(const void *params, int points)
{
    const stk_conv *c = params;
    bool fits = takes_dtype(c->dtype) && c->groups == 1 && c->ic >= CHANNELS_LEAST &&
                c->oc >= CHANNELS_LEAST && c->ic * c->oc <= WEIGHTS_MOST;
    fits = fits && c->kernel[0] == 1 && c->in[0] == 1 && c->out[0] == 1 && c->low[0] == 0;
    return fits && (double)c->n * (double)c->out[1] * (double)c->out[2] >= 64 &&
           tile_for(c, points);
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

static void fill_state(winograd_state *s, const stk_conv *c, int kind, int points)
{
    const bool back = kind == BACK;
    const int64_t *dest = back ? c->in : c->out, *from = back ? c->out : c->in;
    *s = (winograd_state){.kind = kind, .rows = dest[1], .cols = dest[2], .vec = stk_vec_get()};
    s->size = stk_dtype_size(c->dtype);
    s->from_rows = from[1];
    s->from_cols = from[2];
    s->tile = tile_for(c, points);
    s->positions = s->tile->rows.points * s->tile->cols.points;
    for (int i = 0; i < 2; i++)
        s->low[i] = back ? c->kernel[i + 1] - 1 - c->low[i + 1] : c->low[i + 1];
    s->in = back ? c->oc : c->ic;
    s->out = back ? c->ic : c->oc;
    s->tile_rows = stk_ceil_div(s->rows, s->tile->rows.outs);
    s->tile_cols = stk_ceil_div(s->cols, s->tile->cols.outs);
    s->tiles = BLOCK / s->positions / (s->in + s->out);
    s->tiles = stk_min_i64(stk_max_i64(s->tiles, TILES_LEAST), TILES_MOST);
    s->source_step = s->tiles * s->in + GAP;
    s->result_step = s->tiles * s->out + GAP;
    s->gemm = gemm_of(s);
    s->weights = line(s->positions * c->ic * c->oc);
    s->source = line(s->positions * s->source_step);
    s->results = line(s->positions * s->result_step);
    s->product = line(s->vec->gemm->scratch[STK_F32](&s->gemm) / (int64_t)sizeof(float) + 1);
    s->total = s->weights + s->source + s->results + s->product;
}

static int64_t room(const void *params, int kind, int points)
{
    winograd_state s;
    fill_state(&s, params, kind, points);
    return s.total * (int64_t)sizeof(float);
}

static int64_t weights_of(const stk_conv *c) { return c->kernel[1] * c->kernel[2] * c->ic * c->oc; }

static int64_t weight_scratch(const void *params, int32_t parts)
{
    return weights_of(params) * (int64_t)sizeof(float) * parts;
}

static int64_t units(const void *params) { return ((const stk_conv *)params)->n; }

/* Transformed weights cost as much as some hundred pixels, and each part has its own. */
static int64_t grain(const void *params, int points)
{
    enum { PIXELS = 512, FLOATS = 1 << 22 };
    const stk_conv *c = params;
    const stk_winograd_tile *tile = tile_for(c, points);
    const int64_t pixels = stk_max_i64(c->out[1] * c->out[2], 1);
    const int64_t weights = tile->rows.points * tile->cols.points * c->ic * c->oc;
    const int64_t parts = stk_max_i64(FLOATS / weights, 4);
    return stk_max_i64(stk_ceil_div(PIXELS, pixels), stk_ceil_div(c->n, parts));
}

static stk_status prepare(stk_launch *launch, int kind, int points, stk_error *err)
{
    winograd_state *s = launch->state = stk_calloc(1, sizeof *s);
    if (!s) return stk_fail_memory(err, "a convolution", sizeof *s);
    fill_state(s, launch->params, kind, points);
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
    return (place){tile / each, at / s->tile_cols * s->tile->rows.outs,
                   at % s->tile_cols * s->tile->cols.outs};
}

/* The part of a tile of `high` x `wide` pixels, whose first one is at row, col, that lies in the picture. */
static stk_winograd_inside inside(int64_t row, int64_t col, int64_t rows, int64_t cols,
                                  int64_t high, int64_t wide)
{
    return (stk_winograd_inside){stk_max_i64(-row, 0), stk_min_i64(rows - row, high),
                                 stk_max_i64(-col, 0), stk_min_i64(cols - col, wide)};
}

static void bring_source(const winograd_state *s, const char *x, int64_t first, int64_t count,
                         float *to)
{
    const stk_winograd_tile *tile = s->tile;
    for (int64_t i = 0; i < count; i++, to += s->in) {
        const place p = place_of(s, first + i);
        const int64_t row = p.row - s->low[0], col = p.col - s->low[1];
        const int64_t at = ((p.image * s->from_rows + row) * s->from_cols + col) * s->in;
        tile->source(
            x + at * s->size, s->from_cols * s->in, s->in,
            inside(row, col, s->from_rows, s->from_cols, tile->rows.points, tile->cols.points),
            s->in, to, s->source_step);
    }
}

/* In bytes. */
static int64_t pixel_of(const winograd_state *s, place p)
{
    return ((p.image * s->rows + p.row) * s->cols + p.col) * s->out * s->size;
}

static stk_winograd_inside inside_results(const winograd_state *s, place p)
{
    return inside(p.row, p.col, s->rows, s->cols, s->tile->rows.outs, s->tile->cols.outs);
}

static void put_results(const winograd_state *s, const float *from, int64_t first, int64_t count,
                        char *y)
{
    for (int64_t i = 0; i < count; i++, from += s->out) {
        const place p = place_of(s, first + i);
        s->tile->result(from, s->result_step, s->out, y + pixel_of(s, p), s->cols * s->out, s->out,
                        inside_results(s, p));
    }
}

static void bring_results(const winograd_state *s, const char *dy, int64_t first, int64_t count,
                          float *to)
{
    for (int64_t i = 0; i < count; i++, to += s->out) {
        const place p = place_of(s, first + i);
        s->tile->result_back(dy + pixel_of(s, p), s->cols * s->out, s->out, inside_results(s, p),
                             s->out, to, s->result_step);
    }
}

/* ---- the three kernels -------------------------------------------------------------------------------- */

static char *images_from(const winograd_state *s, void *pictures, int64_t first, int64_t pixels,
                         int64_t channels)
{
    return (char *)pictures + first * pixels * channels * s->size;
}

static int64_t tiles_of(const winograd_state *s, int64_t images)
{
    return images * s->tile_rows * s->tile_cols;
}

static void data_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const winograd_state *s = launch->state;
    const int64_t all = s->in * s->out, end = tiles_of(s, hi - lo);
    float *weights = launch->room;
    float *source = weights + s->weights, *results = source + s->source;
    const char *x = images_from(s, launch->arg[0], lo, s->from_rows * s->from_cols, s->in);
    char *y = images_from(s, launch->arg[2], lo, s->rows * s->cols, s->out);
    (void)part;
    if (lo >= hi) return;
    s->tile->weights(launch->arg[1], all, s->kind == BACK, all, weights, all);
    for (int64_t first = 0; first < end; first += s->tiles) {
        const int64_t count = stk_min_i64(s->tiles, end - first);
        bring_source(s, x, first, count, source);
        for (int64_t i = 0; i < s->positions; i++) {
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

static void back_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const winograd_state *s = launch->state;
    stk_conv_few_data(launch, lo, hi, part, launch->room, s->total, data_run);
}

static void weight_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const winograd_state *s = launch->state;
    const int64_t all = s->in * s->out, end = tiles_of(s, hi - lo);
    float *gradient = (float *)launch->scratch + part * weights_of(launch->params);
    const float *few = stk_conv_few_weight(launch, lo, hi, launch->room, s->total);
    if (few) {
        stk_conv_few_columns(launch->params, few, 0, s->out, gradient, s->out);
        return;
    }
    float *sums = launch->room;
    float *source = sums + s->weights, *results = source + s->source;
    const char *x = images_from(s, launch->arg[0], lo, s->from_rows * s->from_cols, s->in);
    const char *dy = images_from(s, launch->arg[1], lo, s->rows * s->cols, s->out);
    memset(sums, 0, (size_t)s->weights * sizeof *sums);
    for (int64_t first = 0; first < end; first += s->tiles) {
        const int64_t count = stk_min_i64(s->tiles, end - first);
        stk_gemm g = s->gemm;
        g.k = count;
        bring_source(s, x, first, count, source);
        bring_results(s, dy, first, count, results);
        for (int64_t i = 0; i < s->positions; i++) {
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
    s->tile->weights_back(sums, all, all, gradient, all);
}

/* Adds the gradients of the parts in order, into those of the first one. Empty parts were not run. */
static void weight_finish(const stk_launch *launch)
{
    const stk_conv *c = launch->params;
    const int64_t n = weights_of(c);
    float *total = NULL;
    for (int32_t part = 0; part < launch->parts; part++) {
        int64_t lo, hi;
        float *sums = (float *)launch->scratch + part * n;
        stk_launch_range(launch, part, &lo, &hi);
        if (lo == hi) continue;
        if (!total) total = sums;
        for (int64_t i = 0; total != sums && i < n; i++) total[i] += sums[i];
    }
    if (total) stk_vec_get()->ew->store[c->dtype](n, launch->arg[2], total);
}

/* ---- both numbers of points ------------------------------------------------------------------------------ */

#define KIND(word, points, KIND_, POINTS_)                                                         \
    static int64_t word##_room_##points(const void *params)                                        \
    {                                                                                              \
        return room(params, KIND_, POINTS_);                                                       \
    }                                                                                              \
    static stk_status word##_prepare_##points(stk_launch *launch, stk_error *err)                  \
    {                                                                                              \
        return prepare(launch, KIND_, POINTS_, err);                                               \
    }
#define POINTS(points, POINTS_)                                                                    \
    static bool supports_##points(const void *params) { return supports(params, POINTS_); }        \
    static int64_t grain_##points(const void *params) { return grain(params, POINTS_); }           \
    KIND(forward, points, FORWARD, POINTS_)                                                        \
    KIND(back, points, BACK, POINTS_)                                                              \
    KIND(weight, points, WEIGHT, POINTS_)
POINTS(four, FOUR)
POINTS(six, SIX)

#define IMPL(impl_name, points, kernel_, word, aligned_, scratch_, run_, finish_)                  \
    {                                                                                              \
        .name = impl_name, .kernel = kernel_, .rank = 20, .supports = supports_##points,           \
        .units = units, .grain = grain_##points, .aligned = aligned_, .scratch = scratch_,         \
        .room = word##_room_##points, .prepare = word##_prepare_##points, .discard = discard,      \
        .run = run_, .finish = finish_                                                             \
    }
#define DATA(name, points, kernel, word, run)                                                      \
    IMPL(name, points, kernel, word, stk_conv_data_aligned, NULL, run, NULL)
#define WEIGHTS(name, points)                                                                      \
    IMPL(name, points, STK_K_CONV_BWD_WEIGHT, weight, stk_conv_weight_aligned, weight_scratch,     \
         weight_run, weight_finish)
const stk_impl stk_impl_conv_winograd = DATA("winograd", four, STK_K_CONV, forward, data_run);
const stk_impl stk_impl_conv_winograd6 = DATA("winograd6", six, STK_K_CONV, forward, data_run);
const stk_impl stk_impl_conv_bwd_data_winograd =
    DATA("winograd", four, STK_K_CONV_BWD_DATA, back, back_run);
const stk_impl stk_impl_conv_bwd_data_winograd6 =
    DATA("winograd6", six, STK_K_CONV_BWD_DATA, back, back_run);
const stk_impl stk_impl_conv_bwd_weight_winograd = WEIGHTS("winograd", four);
const stk_impl stk_impl_conv_bwd_weight_winograd6 = WEIGHTS("winograd6", six);
