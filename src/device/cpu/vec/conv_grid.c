/* conv_grid.c - what conv_grid.h says: packing, cutting and turning, and the walks over squares of 32 x 32 sums. */
#include "device/cpu/vec/conv_grid.h"

#include "base/memory.h"
#include "device/cpu/vec/pairs.h"
#include "device/cpu/vec/tiles.h"

#include <string.h>

#if STK_HAS_TILES

enum { SIDE = STK_GRID_SIDE };

typedef struct stk_grid_sides {
    const char *a, *b;
    int64_t row, plane; /* bytes between rows of a, and between its thirds */
    const int64_t *at;  /* of a step: bytes from a */
    int64_t steps;
    float *to; /* 32 x 32, rows so many floats apart; `more`: is added to */
    int64_t to_row;
    bool more;
} stk_grid_sides;

typedef void square_fn(const stk_grid_sides *s, tile *file);

#define TILES(word) TILE_##word
#define T(name)     real_##name
#define ATTRIBUTE   STK_TILES
#include "device/cpu/vec/conv_grid.inc"

#define TILES(word) STANDIN_##word
#define T(name)     standin_##name
#define ATTRIBUTE
#include "device/cpu/vec/conv_grid.inc"

/* ---- floats in thirds ------------------------------------------------------------------------------------- */

/* A pair of registers as pairs of bfloat16, one for each third. NaN has at least one that is NaN, and spreads; infinite numbers
 * would make NaN of what is infinite, so they are reported. */
STK_INLINE bool put_thirds(vf low, vf high, char *to, int64_t plane)
{
    vf l[3], h[3];
    vp_thirds(low, l);
    vp_thirds(high, h);
    STK_UNROLL for (int t = 0; t < 3; t++)
        vf_store((float *)(void *)(to + t * plane), vp_join(l[t], h[t]));
    return (vf_infinite(low) | vf_infinite(high)) != 0;
}

/* Numbers i and 16 + i of 32 make a pair. */
static bool cut(int64_t n, const float *from, char *to, int64_t plane)
{
    bool infinite = false;
    for (int64_t i = 0; i < n; i += SIDE, from += SIDE, to += TILE_ROW)
        infinite |= put_thirds(vf_load(from), vf_load(from + STK_VF), to, plane);
    return infinite;
}

/* ---- weights ---------------------------------------------------------------------------------------------- */

/* A copy with zeros around it: lines x lanes. */
static void square_of_floats(const stk_grid_source *s, float to[SIDE][SIDE])
{
    const float *from = s->from;
    if (s->lines < SIDE || s->lanes < SIDE) memset(to, 0, sizeof(float) * SIDE * SIDE);
    if (!s->turned) {
        for (int64_t i = 0; i < s->lines; i++)
            memcpy(to[i], from + i * s->ld, (size_t)s->lanes * sizeof(float));
    } else if (s->lines == SIDE && s->lanes == SIDE) {
        for (int64_t j = 0; j < SIDE; j += STK_VF)
            for (int64_t i = 0; i < SIDE; i += 4) {
                vf out[4];
                vf_turn(from + j * s->ld + i, s->ld, out);
                STK_UNROLL for (int r = 0; r < 4; r++) vf_store(&to[i + r][j], out[r]);
            }
    } else {
        for (int64_t j = 0; j < s->lanes; j++)
            for (int64_t i = 0; i < s->lines; i++) to[i][j] = from[j * s->ld + i];
    }
}

static bool pack(const stk_grid_source *s, char *to)
{
    float room[SIDE][SIDE] __attribute__((aligned(64)));
    bool infinite = false;
    if (!s->floats) {
        const int64_t filled = (s->lines + 1) / 2 * 2 * TILE_ROW;
        stk_pairs_panel((vf_unaligned *)(void *)to, s->from, s->ld, s->turned, s->lanes, s->lines);
        memset(to + filled, 0, (size_t)(STK_GRID_TILE - filled));
        return false;
    }
    square_of_floats(s, room);
    for (int i = 0; i < TILE_ROWS; i++, to += 2 * TILE_ROW)
        for (int j = 0; j < 2; j++)
            infinite |=
                put_thirds(vf_load(&room[i][j * STK_VF]), vf_load(&room[i + TILE_ROWS][j * STK_VF]),
                           to + j * TILE_ROW, STK_GRID_TILE);
    return infinite;
}

/* ---- turning ------------------------------------------------------------------------------------------------ */

/* Where the numbers of a point lie: cut floats in pairs of i and 16 + i. */
static int64_t number_at(bool floats, int64_t i)
{
    return floats ? i / SIDE * SIDE + i % 2 * TILE_ROWS + i % SIDE / 2 : i;
}

static void turn(bool floats, int64_t count, const char *points, int64_t numbers, char *to,
                 int64_t row)
{
    const vp_part part = vp_part_of(count);
    float zipped[TILE_ROWS][SIDE] __attribute__((aligned(64)));
    for (int64_t j = 0; j < numbers; j += SIDE) {
        stk_pairs_zip((vf_unaligned *)(void *)zipped, (const uint16_t *)(const void *)points + j,
                      numbers, SIDE, SIDE);
        for (int64_t i = 0; i < SIDE; i += 4) {
            vf out[4];
            vf_turn(&zipped[0][i], SIDE, out);
            STK_UNROLL for (int r = 0; r < 4; r++) vp_store_part(
                (uint16_t *)(void *)(to + number_at(floats, j + i + r) * row), out[r], part);
        }
    }
}

static void zip_halves(const uint16_t *even, const uint16_t *odd, vp_part part, char *to)
{
    vf out[2];
    vp_zip(even ? vp_load_part(even, part) : (vf){0}, odd ? vp_load_part(odd, part) : (vf){0}, out);
    vf_store((float *)(void *)to, out[0]);
    vf_store((float *)(void *)(to + TILE_ROW), out[1]);
}

static bool zip_floats(const float *even, const float *odd, int64_t lanes, char *to)
{
    bool infinite = false;
    for (int64_t j = 0; j < SIDE; j += STK_VF, to += TILE_ROW) {
        const bool here = j < lanes;
        const vf_part part = vf_part_of(here ? stk_min_i64(lanes - j, STK_VF) : 1);
        infinite |=
            put_thirds(here && even ? vf_load_part(even + j, part) : (vf){0},
                       here && odd ? vf_load_part(odd + j, part) : (vf){0}, to, STK_GRID_TILE);
    }
    return infinite;
}

static bool zip(bool floats, const void *const *rows, int64_t lanes, char *to)
{
    bool infinite = false;
    for (int i = 0; i < SIDE; i += 2, to += 2 * TILE_ROW)
        if (floats)
            infinite |= zip_floats(rows[i], rows[i + 1], lanes, to);
        else
            zip_halves(rows[i], rows[i + 1], vp_part_of(lanes), to);
    return infinite;
}

/* ---- results ------------------------------------------------------------------------------------------------- */

/* Up to 32 channels of a pixel. */
STK_INLINE STK_PAIRS void put_pixel(const bool floats, const float *from, int64_t cols, char *to)
{
    const vf low = vf_load(from), high = vf_load(from + STK_VF);
    for (int64_t j = 0; j < cols; j += STK_VF) {
        const vf_part part = vf_part_of(stk_min_i64(cols - j, STK_VF));
        if (floats)
            vf_store_part((float *)(void *)to + j, j ? high : low, part);
        else
            vp_store_rounded((uint16_t *)(void *)to + j, j ? high : low, part);
    }
}

STK_PAIRS static void put_square(const stk_grid_data *d, const stk_grid_square *s, int64_t first,
                                 int64_t cols)
{
    const int64_t size = d->floats ? sizeof(float) : sizeof(uint16_t);
    for (int32_t i = 0; i < s->rows; i++) {
        if (s->place[i] < 0) continue;
        const float *from = d->sums + i * SIDE;
        char *to = d->y + (s->place[i] * d->channels + first) * size;
        if (d->floats)
            put_pixel(true, from, cols, to);
        else if (cols < SIDE)
            put_pixel(false, from, cols, to);
        else
            vp_store_rounded_two((uint16_t *)(void *)to, vf_load(from), vf_load(from + STK_VF));
    }
}

typedef square_fn *const squares_of[2][2][2];

static void walk_data(const stk_grid_data *d, const squares_of *squares, tile *file)
{
    const int64_t panel = d->steps * (d->floats ? 3 : 1) * STK_GRID_TILE;
    stk_grid_sides s = {.b = d->weights,
                        .row = d->point,
                        .plane = d->plane,
                        .at = d->at,
                        .steps = d->steps,
                        .to = d->sums,
                        .to_row = SIDE};
    for (int64_t j = d->first; j < d->last; j += SIDE, s.b += panel) {
        const int64_t cols = stk_min_i64(d->last - j, SIDE);
        for (int64_t i = 0; i < d->squares; i++) {
            const stk_grid_square *square = &d->square[i];
            s.a = d->grid + square->start * d->point;
            (*squares)[d->floats][square->rows > TILE_ROWS][cols > TILE_ROWS](&s, file);
            put_square(d, square, j, cols);
        }
    }
}

/* ---- sums of weights --------------------------------------------------------------------------------------- */

static void add_square(const float *sums, float *to, int64_t ld)
{
    for (int i = 0; i < SIDE; i++, sums += SIDE, to += ld) {
        vf_store(to, vf_load(to) + vf_load(sums));
        vf_store(to + STK_VF, vf_load(to + STK_VF) + vf_load(sums + STK_VF));
    }
}

/* Taps meet the same points again and again: a stretch of them that stays in the first level of the cache, since reading rows at any
 * address costs two lines for one. Sums of thirds begin at zero, as in gemm_tiles.c. */
static void walk_weight(const stk_grid_weight *w, const squares_of *squares, tile *file)
{
    enum { STRETCH = 8 };
    static const int64_t along[STRETCH] = {0, 64, 128, 192, 256, 320, 384, 448};
    const int64_t ld = w->panels * SIDE, step = (w->floats ? 3 : 1) * STK_GRID_TILE;
    stk_grid_sides s = {.row = w->row, .plane = w->plane, .at = along, .to_row = ld, .more = true};
    if (w->floats) s.to = w->sums, s.to_row = SIDE, s.more = false;
    for (int64_t j = 0; j < w->panels; j++)
        for (int64_t i = 0; i < w->numbers; i += SIDE)
            for (int64_t k = 0; k < w->steps; k += STRETCH) {
                s.steps = stk_min_i64(w->steps - k, STRETCH);
                s.b = w->dy + (j * w->ld + k) * step;
                for (int64_t t = 0; t < w->taps; t++) {
                    float *to = w->to + (t * w->numbers + i) * ld + j * SIDE;
                    s.a = w->turned + i * w->row + w->at[t] + k * SIDE * 2;
                    if (!w->floats) s.to = to;
                    (*squares)[w->floats][1][1](&s, file);
                    if (w->floats) add_square(w->sums, to, ld);
                }
            }
}

STK_TILES static void real_data(const stk_grid_data *d)
{
    tiles_begin();
    walk_data(d, &real_squares, NULL);
    tiles_end();
}

STK_TILES static void real_weight(const stk_grid_weight *w)
{
    tiles_begin();
    walk_weight(w, &real_squares, NULL);
    tiles_end();
}

static void standin_data(const stk_grid_data *d)
{
    tile file[8];
    walk_data(d, &standin_squares, file);
}

static void standin_weight(const stk_grid_weight *w)
{
    tile file[8];
    walk_weight(w, &standin_squares, file);
}

const stk_vec_conv_grid STK_VEC(stk_vec_conv_grid_amx) = {pack, cut,       turn,
                                                          zip,  real_data, real_weight};
const stk_vec_conv_grid STK_VEC(stk_vec_conv_grid_standin) = {pack, cut,          turn,
                                                              zip,  standin_data, standin_weight};

#else

const stk_vec_conv_grid STK_VEC(stk_vec_conv_grid_amx) = {NULL, NULL, NULL, NULL, NULL, NULL};
const stk_vec_conv_grid STK_VEC(stk_vec_conv_grid_standin) = {NULL, NULL, NULL, NULL, NULL, NULL};

#endif

/* The sets are built without; isa.c puts one of the others in. */
const stk_vec_conv_grid STK_VEC(stk_vec_conv_grid) = {NULL, NULL, NULL, NULL, NULL, NULL};
