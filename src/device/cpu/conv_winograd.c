/* Convolutions of stride 1 with fewer multiplications (vec/winograd.h): matrix products over tiles instead of taps over
 * pixels, for some additions before and behind. One or two axes, one group. Products are those of float32; bfloat16 is
 * widened by the transforms that read it.
 *
 *     winograd     3x3 taps by tiles of 2x2 results: 16 products instead of 36, 2.25 times less arithmetic
 *     winograd6    6 points along an axis: 4 times less for 3x3, 2.8 for 5x5, 2 for 1x3, 1.7 for 1x5
 *
 * Backward data is the forward walk over dy with the taps turned round and weights transposed. Backward weight adds up
 * products of the two transformed images, and transforms their sum back at the end.
 *
 * Units are images: a part transforms all weights, then some tiles at a time. Where weights are many and pixels few they are blocks of channels
 * of the results instead ("across"): a part transforms all tiles, then the weights of one block after the other, which
 * nobody else needs. Each is then transformed about once, and lies in L2 until it is used.
 *
 * The room of a part, in floats, each piece rounded up to a cache line. A tile has P positions, a block B channels, which are
 * all of them unless the walk is across:
 *
 *     data     [ weights: P x in x B | source: P x tiles x in | results: P x tiles x B | of the products, weights transposed ]
 *     weight   [ sums: P x in x B    | source                 | dy: P x tiles x B      | of the products ]
 *
 * Scratch of backward weight: the gradients of the parts. Across they need none. */
#include "device/cpu/conv_winograd.h"

#include "base/memory.h"
#include "device/cpu/conv_few.h"
#include "device/cpu/cpu.h"
#include "device/cpu/sums.h"
#include "device/cpu/vec/conv.h"
#include "device/cpu/vec/elementwise.h"
#include "device/cpu/vec/gemm.h"
#include "device/cpu/vec/vec.h"

#include <string.h>

/* ---- tiles ------------------------------------------------------------------------------------------ */

typedef struct place {
    int64_t image, row, col; /* of the first pixel of the destination */
} place;

static place place_of(const stk_winograd_state *s, int64_t tile)
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

static void bring_source(const stk_winograd_state *s, const char *x, int64_t first, int64_t count,
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
static int64_t pixel_of(const stk_winograd_state *s, place p)
{
    return ((p.image * s->rows + p.row) * s->cols + p.col) * s->out * s->size;
}

static stk_winograd_inside inside_results(const stk_winograd_state *s, place p)
{
    return inside(p.row, p.col, s->rows, s->cols, s->tile->rows.outs, s->tile->cols.outs);
}

/* Channels of the destination that are walked together. */
typedef struct channels {
    int64_t first, count;
} channels;

static channels block_of(const stk_winograd_state *s, int64_t block)
{
    const int64_t first = block * s->block;
    return (channels){first, stk_min_i64(s->block, s->out - first)};
}

static void put_results(const stk_winograd_state *s, const float *from, int64_t first,
                        int64_t count, channels c, char *y)
{
    y += c.first * s->size;
    for (int64_t i = 0; i < count; i++, from += s->block) {
        const place p = place_of(s, first + i);
        s->tile->result(from, s->result_step, c.count, y + pixel_of(s, p), s->cols * s->out, s->out,
                        inside_results(s, p));
    }
}

static void bring_results(const stk_winograd_state *s, const char *dy, int64_t first, int64_t count,
                          channels c, float *to)
{
    dy += c.first * s->size;
    for (int64_t i = 0; i < count; i++, to += s->block) {
        const place p = place_of(s, first + i);
        s->tile->result_back(dy + pixel_of(s, p), s->cols * s->out, s->out, inside_results(s, p),
                             c.count, to, s->result_step);
    }
}

/* ---- weights ------------------------------------------------------------------------------------------ */

/* Transposed before they are transformed: they are fewer then. `turned` has a block of every tap, and room to widen one. */
static void bring_turned(const stk_winograd_state *s, const stk_launch *launch, channels c,
                         float *turned, float *weights)
{
    const stk_conv *conv = launch->params;
    const int64_t taps = s->tile->rows.taps * s->tile->cols.taps, each = s->in * s->block;
    float *wide = turned + taps * each;
    for (int64_t tap = 0; tap < taps; tap++) {
        char *from = (char *)launch->arg[1] + (tap * s->out + c.first) * s->in * s->size;
        const float *floats = (float *)(void *)from;
        if (conv->dtype != STK_F32) {
            s->vec->ew->load[conv->dtype](c.count * s->in, wide, from);
            floats = wide;
        }
        s->vec->conv->few->turn(c.count, s->in, floats, turned + tap * each, s->block);
    }
    s->plain->weights(turned, each, true, each, weights, s->weight_step);
}

static void bring_weights(const stk_winograd_state *s, const stk_launch *launch, channels c,
                          float *weights, float *turned)
{
    const int64_t all = s->in * s->out;
    const char *from = (char *)launch->arg[1] + c.first * s->size;
    if (s->kind == STK_WINOGRAD_BACK)
        bring_turned(s, launch, c, turned, weights);
    else if (c.count == s->out)
        s->tile->weights(from, all, false, all, weights, s->weight_step);
    else
        for (int64_t i = 0; i < s->in; i++, from += s->out * s->size, weights += s->block)
            s->tile->weights(from, all, false, c.count, weights, s->weight_step);
}

/* ---- the three kernels -------------------------------------------------------------------------------- */

/* The pieces of a part's room. */
typedef struct pieces {
    float *weights, *source, *results, *product;
} pieces;

static pieces pieces_of(const stk_winograd_state *s, const stk_launch *launch)
{
    pieces p = {.weights = launch->room};
    p.source = p.weights + s->weights;
    p.results = p.source + s->source;
    p.product = p.results + s->results;
    return p;
}

static char *images_from(const stk_winograd_state *s, void *pictures, int64_t first, int64_t pixels,
                         int64_t channels_)
{
    return (char *)pictures + first * pixels * channels_ * s->size;
}

static int64_t tiles_of(const stk_winograd_state *s, int64_t images)
{
    return images * s->tile_rows * s->tile_cols;
}

static void multiply(const stk_winograd_state *s, const pieces *p, int64_t first, int64_t count,
                     channels c)
{
    for (int64_t i = 0; i < s->positions; i++) {
        stk_gemm_job job = {.whole = &s->gemm,
                            .a = p->source + i * s->source_step + first * s->in,
                            .b = p->weights + i * s->weight_step,
                            .c = p->results + i * s->result_step,
                            .row_hi = count,
                            .col_hi = c.count,
                            .scratch = p->product};
        s->vec->gemm->run[STK_F32](&job);
    }
}

static void data_across(const stk_launch *launch, int64_t lo, int64_t hi)
{
    const stk_winograd_state *s = launch->state;
    const pieces p = pieces_of(s, launch);
    bring_source(s, launch->arg[0], 0, s->source_tiles, p.source);
    for (int64_t block = lo; block < hi; block++) {
        const channels c = block_of(s, block);
        bring_weights(s, launch, c, p.weights, p.product);
        for (int64_t first = 0; first < s->source_tiles; first += s->tiles) {
            const int64_t count = stk_min_i64(s->tiles, s->source_tiles - first);
            multiply(s, &p, first, count, c);
            put_results(s, p.results, first, count, c, launch->arg[2]);
        }
    }
}

static void data_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const stk_winograd_state *s = launch->state;
    const pieces p = pieces_of(s, launch);
    const channels all = {0, s->out};
    const int64_t end = tiles_of(s, hi - lo);
    (void)part;
    if (lo >= hi) return;
    if (s->across) {
        data_across(launch, lo, hi);
        return;
    }
    const char *x = images_from(s, launch->arg[0], lo, s->from_rows * s->from_cols, s->in);
    char *y = images_from(s, launch->arg[2], lo, s->rows * s->cols, s->out);
    bring_weights(s, launch, all, p.weights, p.product);
    for (int64_t first = 0; first < end; first += s->tiles) {
        const int64_t count = stk_min_i64(s->tiles, end - first);
        bring_source(s, x, first, count, p.source);
        multiply(s, &p, 0, count, all);
        put_results(s, p.results, first, count, all, y);
    }
}

static void back_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const stk_winograd_state *s = launch->state;
    if (s->across)
        data_run(launch, lo, hi, part);
    else
        stk_conv_few_data(launch, lo, hi, part, launch->room, s->total, data_run);
}

/* Adds the products of `count` tiles to the sums; across, they are all. */
static void multiply_back(const stk_winograd_state *s, const pieces *p, int64_t count, channels c)
{
    stk_gemm g = s->gemm;
    g.k = count;
    for (int64_t i = 0; i < s->positions; i++) {
        stk_gemm_job job = {.whole = &g,
                            .a = p->source + i * s->source_step,
                            .b = p->results + i * s->result_step,
                            .c = p->weights + i * s->weight_step,
                            .row_hi = s->in,
                            .col_hi = c.count,
                            .scratch = p->product};
        s->vec->gemm->run[STK_F32](&job);
    }
}

/* A block of the gradient, from its sums; bfloat16 by way of what dy needs no more. */
static void put_gradient(const stk_winograd_state *s, const stk_launch *launch, const pieces *p,
                         channels c)
{
    const stk_conv *conv = launch->params;
    const int64_t all = s->in * s->out, taps = conv->kernel[1] * conv->kernel[2];
    for (int64_t i = 0; i < s->in; i++) {
        const float *sums = p->weights + i * s->block;
        char *to = (char *)launch->arg[2] + (i * s->out + c.first) * s->size;
        if (conv->dtype == STK_F32) {
            s->tile->weights_back(sums, s->weight_step, c.count, (float *)(void *)to, all);
            continue;
        }
        s->tile->weights_back(sums, s->weight_step, c.count, p->results, s->block);
        for (int64_t tap = 0; tap < taps; tap++)
            s->vec->ew->store[conv->dtype](c.count, to + tap * all * s->size,
                                           p->results + tap * s->block);
    }
}

static void weight_across(const stk_launch *launch, int64_t lo, int64_t hi)
{
    const stk_winograd_state *s = launch->state;
    const pieces p = pieces_of(s, launch);
    bring_source(s, launch->arg[0], 0, s->source_tiles, p.source);
    for (int64_t block = lo; block < hi; block++) {
        const channels c = block_of(s, block);
        bring_results(s, launch->arg[1], 0, s->source_tiles, c, p.results);
        multiply_back(s, &p, s->source_tiles, c);
        put_gradient(s, launch, &p, c);
    }
}

static void weight_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const stk_winograd_state *s = launch->state;
    if (s->across) {
        weight_across(launch, lo, hi);
        return;
    }
    const int64_t all = s->in * s->out, end = tiles_of(s, hi - lo);
    float *gradient = (float *)launch->scratch + part * stk_winograd_weights(launch->params);
    const float *few = stk_conv_few_weight(launch, lo, hi, launch->room, s->total);
    if (few) {
        stk_conv_few_columns(launch->params, few, 0, s->out, gradient, s->out);
        return;
    }
    const pieces p = pieces_of(s, launch);
    const channels each = {0, s->out};
    const char *x = images_from(s, launch->arg[0], lo, s->from_rows * s->from_cols, s->in);
    const char *dy = images_from(s, launch->arg[1], lo, s->rows * s->cols, s->out);
    memset(p.weights, 0, (size_t)s->weights * sizeof(float));
    for (int64_t first = 0; first < end; first += s->tiles) {
        const int64_t count = stk_min_i64(s->tiles, end - first);
        bring_source(s, x, first, count, p.source);
        bring_results(s, dy, first, count, each, p.results);
        multiply_back(s, &p, count, each);
    }
    s->tile->weights_back(p.weights, s->weight_step, all, gradient, all);
}

static stk_sums weight_sums(const stk_launch *launch, int32_t part)
{
    const int64_t n = stk_winograd_weights(launch->params);
    if (((const stk_winograd_state *)launch->state)->across) return (stk_sums){0};
    return (stk_sums){.at = (float *)launch->scratch + part * n, .n = n, .lane = STK_LANE_F32};
}

static void weight_finish(const stk_launch *launch)
{
    const stk_conv *c = launch->params;
    const stk_sums total = stk_launch_total(launch);
    if (total.n) stk_vec_get()->ew->store[c->dtype](total.n, launch->arg[2], total.at);
}

/* ---- both numbers of points ------------------------------------------------------------------------------ */

#define KIND(word, points, KIND_, POINTS_)                                                         \
    static bool word##_supports_##points(const void *params)                                       \
    {                                                                                              \
        return stk_winograd_supports(params, KIND_, POINTS_);                                      \
    }                                                                                              \
    static int64_t word##_units_##points(const void *params)                                       \
    {                                                                                              \
        return stk_winograd_units(params, KIND_, POINTS_);                                         \
    }                                                                                              \
    static int64_t word##_grain_##points(const void *params)                                       \
    {                                                                                              \
        return stk_winograd_grain(params, KIND_, POINTS_);                                         \
    }                                                                                              \
    static uint32_t word##_aligned_##points(const void *params)                                    \
    {                                                                                              \
        return stk_winograd_aligned(params, KIND_, POINTS_);                                       \
    }                                                                                              \
    static int64_t word##_room_##points(const void *params)                                        \
    {                                                                                              \
        return stk_winograd_room(params, KIND_, POINTS_);                                          \
    }                                                                                              \
    static stk_status word##_prepare_##points(stk_launch *launch, stk_error *err)                  \
    {                                                                                              \
        return stk_winograd_prepare(launch, KIND_, POINTS_, err);                                  \
    }
#define POINTS(points, POINTS_)                                                                    \
    static int64_t scratch_##points(const void *params, int32_t parts)                             \
    {                                                                                              \
        return stk_winograd_scratch(params, parts, POINTS_);                                       \
    }                                                                                              \
    KIND(forward, points, STK_WINOGRAD_FORWARD, POINTS_)                                           \
    KIND(back, points, STK_WINOGRAD_BACK, POINTS_)                                                 \
    KIND(weight, points, STK_WINOGRAD_WEIGHT, POINTS_)
POINTS(four, 4)
POINTS(six, 6)

#define IMPL(impl_name, points, kernel_, word, scratch_, run_, sums_, finish_)                     \
    {                                                                                              \
        .name = impl_name, .kernel = kernel_, .rank = 20, .supports = word##_supports_##points,    \
        .units = word##_units_##points, .grain = word##_grain_##points,                            \
        .aligned = word##_aligned_##points, .scratch = scratch_, .room = word##_room_##points,     \
        .prepare = word##_prepare_##points, .discard = stk_winograd_discard, .run = run_,          \
        .sums = sums_, .finish = finish_                                                           \
    }
#define DATA(name, points, kernel, word, run)                                                      \
    IMPL(name, points, kernel, word, NULL, run, NULL, NULL)
#define WEIGHTS(name, points)                                                                      \
    IMPL(name, points, STK_K_CONV_BWD_WEIGHT, weight, scratch_##points, weight_run, weight_sums,   \
         weight_finish)
const stk_impl stk_impl_conv_winograd = DATA("winograd", four, STK_K_CONV, forward, data_run);
const stk_impl stk_impl_conv_winograd6 = DATA("winograd6", six, STK_K_CONV, forward, data_run);
const stk_impl stk_impl_conv_bwd_data_winograd =
    DATA("winograd", four, STK_K_CONV_BWD_DATA, back, back_run);
const stk_impl stk_impl_conv_bwd_data_winograd6 =
    DATA("winograd6", six, STK_K_CONV_BWD_DATA, back, back_run);
const stk_impl stk_impl_conv_bwd_weight_winograd = WEIGHTS("winograd", four);
const stk_impl stk_impl_conv_bwd_weight_winograd6 = WEIGHTS("winograd6", six);
