/* Sizes of convolutions by tiles (conv_winograd.h): which kind of tile, how many of them at a time, and how a problem is cut into
 * parts. */
#include "device/cpu/conv_winograd.h"

#include "base/memory.h"
#include "device/cpu/isa.h"
#include "device/cpu/vec/gemm.h"

enum {
    BLOCK = 128 * 1024, /* positions x tiles x channels of both sides: they stay in L2 */
    STRIP = 12,         /* rows of a product that are held in registers */
    TILES_LEAST = 36,
    TILES_MOST = 192,
    GAP = 80, /* floats between positions: their lines must not fall into one set of the cache */
    CHANNELS_LEAST = 16,
    WEIGHTS_MOST = 1 << 17,
    ACROSS_BLOCK = 32,              /* channels: two registers of AVX-512 */
    ACROSS_WEIGHTS = 1 << 18,       /* at least so many floats, transformed: they leave L2, */
    ACROSS_WEIGHTS_MOST = 1 << 18,  /* at most so many, as they are, per tap */
    ACROSS_SOURCE = 1 << 20,        /* and at most so many of all tiles */
    ACROSS_SOURCE_WEIGHT = 1 << 21, /* there the other way adds to sums outside of L2 */
    ACROSS_TILES = 96,              /* of results at a time */
};

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
static const stk_winograd_tile *tile_for(const stk_conv *c, stk_dtype dtype, int points)
{
    const stk_vec_winograd *vec = stk_vec_get()->winograd;
    const stk_winograd_tile *const *kinds = dtype == STK_BF16 ? vec->halves : vec->floats;
    for (int i = 0; i < STK_WINOGRAD_KINDS; i++)
        if (kinds[i]->cols.points == points && fits_tile(c, kinds[i])) return kinds[i];
    return NULL;
}

static int64_t tiles_of_image(const stk_conv *c, const stk_winograd_tile *tile, bool back)
{
    const int64_t *dest = back ? c->in : c->out;
    return stk_ceil_div(dest[1], tile->rows.outs) * stk_ceil_div(dest[2], tile->cols.outs);
}

static bool is_across(const stk_conv *c, const stk_winograd_tile *tile, stk_winograd_kind kind)
{
    const bool back = kind == STK_WINOGRAD_BACK;
    const int64_t most = kind == STK_WINOGRAD_WEIGHT ? ACROSS_SOURCE_WEIGHT : ACROSS_SOURCE;
    const int64_t positions = tile->rows.points * tile->cols.points;
    const double source = (double)positions * (double)c->n * (double)tiles_of_image(c, tile, back) *
                          (double)(back ? c->oc : c->ic);
    return positions * c->ic * c->oc >= ACROSS_WEIGHTS && source <= most &&
           c->ic * c->oc <= ACROSS_WEIGHTS_MOST && (back ? c->ic : c->oc) >= 4 * ACROSS_BLOCK;
}

static bool takes_dtype(stk_dtype dtype)
{
    return dtype == STK_F32 || (dtype == STK_BF16 && stk_isa_has_pairs());
}

bool stk_winograd_supports(const void *params, stk_winograd_kind kind, int points)
{
    const stk_conv *c = params;
    bool fits = takes_dtype(c->dtype) && c->groups == 1 && c->ic >= CHANNELS_LEAST &&
                c->oc >= CHANNELS_LEAST;
    fits = fits && c->kernel[0] == 1 && c->in[0] == 1 && c->out[0] == 1 && c->low[0] == 0;
    fits = fits && (double)c->n * (double)c->out[1] * (double)c->out[2] >= 64;
    const stk_winograd_tile *tile = fits ? tile_for(c, c->dtype, points) : NULL;
    return tile && (c->ic * c->oc <= WEIGHTS_MOST || is_across(c, tile, kind));
}

/* Products of `tiles` rows; the last ones of a part have fewer, by the same path. */
static stk_gemm gemm_of(const stk_winograd_state *s)
{
    stk_gemm g = {.m = s->tiles, .n = s->block, .k = s->in, .batch = 1, .dtype = STK_F32};
    g.lda = s->in;
    g.ldb = g.ldc = s->block;
    if (s->kind == STK_WINOGRAD_WEIGHT) {
        g.m = s->in;
        g.k = s->tiles;
        g.ta = 1;
        g.accumulate = !s->across;
    }
    return g;
}

/* How many tiles at a time, of how many channels. */
static void fill_block(stk_winograd_state *s, int64_t images)
{
    s->block = s->out;
    s->tiles = BLOCK / s->positions / (s->in + s->out);
    if (s->kind != STK_WINOGRAD_WEIGHT) s->tiles = s->tiles / STRIP * STRIP; /* rows there */
    s->tiles = stk_min_i64(stk_max_i64(s->tiles, TILES_LEAST), TILES_MOST);
    s->source_tiles = s->tiles;
    if (!s->across) return;
    s->block = ACROSS_BLOCK;
    s->source_tiles = images * s->tile_rows * s->tile_cols;
    s->tiles = s->kind == STK_WINOGRAD_WEIGHT ? s->source_tiles
                                              : stk_min_i64(s->source_tiles, ACROSS_TILES);
}

static void fill_sizes(stk_winograd_state *s, const stk_conv *c)
{
    const int64_t taps = c->kernel[1] * c->kernel[2];
    int64_t product = s->vec->gemm->scratch[STK_F32](&s->gemm) / (int64_t)sizeof(float) + 1;
    if (s->kind == STK_WINOGRAD_BACK) product += (taps + 1) * s->in * s->block;
    s->weight_step = s->in * s->block + GAP;
    s->source_step = s->source_tiles * s->in + GAP;
    s->result_step = s->tiles * s->block + GAP;
    s->weights = line(s->positions * s->weight_step);
    s->source = line(s->positions * s->source_step);
    s->results = line(s->positions * s->result_step);
    s->product = line(product);
    s->total = s->weights + s->source + s->results + s->product;
}

static void fill_state(stk_winograd_state *s, const stk_conv *c, stk_winograd_kind kind, int points)
{
    const bool back = kind == STK_WINOGRAD_BACK;
    const int64_t *dest = back ? c->in : c->out, *from = back ? c->out : c->in;
    *s = (stk_winograd_state){.kind = kind, .rows = dest[1], .cols = dest[2], .vec = stk_vec_get()};
    s->size = stk_dtype_size(c->dtype);
    s->from_rows = from[1];
    s->from_cols = from[2];
    s->tile = tile_for(c, c->dtype, points);
    s->plain = tile_for(c, STK_F32, points);
    s->positions = s->tile->rows.points * s->tile->cols.points;
    for (int i = 0; i < 2; i++)
        s->low[i] = back ? c->kernel[i + 1] - 1 - c->low[i + 1] : c->low[i + 1];
    s->in = back ? c->oc : c->ic;
    s->out = back ? c->ic : c->oc;
    s->tile_rows = stk_ceil_div(s->rows, s->tile->rows.outs);
    s->tile_cols = stk_ceil_div(s->cols, s->tile->cols.outs);
    s->across = is_across(c, s->tile, kind);
    fill_block(s, c->n);
    s->gemm = gemm_of(s);
    fill_sizes(s, c);
}

int64_t stk_winograd_room(const void *params, stk_winograd_kind kind, int points)
{
    stk_winograd_state s;
    fill_state(&s, params, kind, points);
    return s.total * (int64_t)sizeof(float);
}

int64_t stk_winograd_weights(const stk_conv *c)
{
    return c->kernel[1] * c->kernel[2] * c->ic * c->oc;
}

static bool params_across(const void *params, stk_winograd_kind kind, int points)
{
    const stk_conv *c = params;
    return is_across(c, tile_for(c, c->dtype, points), kind);
}

int64_t stk_winograd_scratch(const void *params, int32_t parts, int points)
{
    if (params_across(params, STK_WINOGRAD_WEIGHT, points)) return 0;
    return stk_winograd_weights(params) * (int64_t)sizeof(float) * parts;
}

int64_t stk_winograd_units(const void *params, stk_winograd_kind kind, int points)
{
    const stk_conv *c = params;
    if (!params_across(params, kind, points)) return c->n;
    return stk_ceil_div(kind == STK_WINOGRAD_BACK ? c->ic : c->oc, ACROSS_BLOCK);
}

/* Transformed weights cost as much as some hundred pixels, and each part has its own. Across, all tiles cost as much as some
 * dozens of channels. */
int64_t stk_winograd_grain(const void *params, stk_winograd_kind kind, int points)
{
    enum { PIXELS = 512, FLOATS = 1 << 22, BLOCKS = 4 };
    const stk_conv *c = params;
    if (params_across(params, kind, points))
        return stk_min_i64(BLOCKS, stk_winograd_units(params, kind, points) / 2);
    const stk_winograd_tile *tile = tile_for(c, c->dtype, points);
    const int64_t pixels = stk_max_i64(c->out[1] * c->out[2], 1);
    const int64_t weights = tile->rows.points * tile->cols.points * c->ic * c->oc;
    const int64_t parts = stk_max_i64(FLOATS / weights, 4);
    return stk_max_i64(stk_ceil_div(PIXELS, pixels), stk_ceil_div(c->n, parts));
}

uint32_t stk_winograd_aligned(const void *params, stk_winograd_kind kind, int points)
{
    if (params_across(params, kind, points)) return 0;
    return kind == STK_WINOGRAD_WEIGHT ? stk_conv_weight_aligned(params)
                                       : stk_conv_data_aligned(params);
}

stk_status stk_winograd_prepare(stk_launch *launch, stk_winograd_kind kind, int points,
                                stk_error *err)
{
    stk_winograd_state *s = launch->state = stk_calloc(1, sizeof *s);
    if (!s) return stk_fail_memory(err, "a convolution", sizeof *s);
    fill_state(s, launch->params, kind, points);
    return STK_OK;
}

void stk_winograd_discard(stk_launch *launch)
{
    stk_free(launch->state);
    launch->state = NULL;
}
