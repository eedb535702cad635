/* Backward weight by tiles over a grid: the gradient of a weight is a sum over all points of the source's number, a tap away, times
 * that of dy. Both are turned, so that points are the terms of products (vec/conv_grid.h). Two ways:
 *
 *     by images    units are images; each part has sums of its own for all weights, which are added up at the end
 *                      scratch    [ for each part: sums | whether it met infinite numbers ]
 *                      room       [ grid | a row of floats | dy in pairs | taps | 32 x 32 sums | the grid turned ]
 *     across       units are blocks of 32 x 32 weights, for all taps; where weights are many and pixels few. All images are turned
 *                  before, once for all parts
 *                      scratch    [ all grids turned | dy in pairs | whether a piece of them is infinite ]
 *                      room       [ grid | a row of floats | taps | 32 x 32 sums | sums of a block ] */
#include "device/cpu/conv_grid.h"

#include "device/cpu/conv_plan.h"
#include "device/cpu/cpu.h"
#include "device/cpu/sums.h"
#include "device/cpu/vec/elementwise.h"
#include "device/cpu/vec/vec.h"

#include <string.h>

enum { SIDE = STK_GRID_SIDE, STEPS = 16 /* of dy in a piece */ };

/* ---- sizes -------------------------------------------------------------------------------------------------- */

static int64_t sums_bytes(const stk_grid_state *s)
{
    return stk_grid_line(s->plan.all_taps * s->plan.numbers * s->panels * SIDE * 4);
}

static stk_grid_chunk all_images(const stk_grid_state *s, int64_t n)
{
    return stk_grid_chunk_of(&s->plan, s->plan.phase, 0, n, 0, INT64_MAX / 2);
}

/* Steps along the points of a chunk, up to its last result. */
static int64_t steps_of(const stk_grid_plan *plan, const stk_grid_chunk *c)
{
    int64_t last[3];
    for (int i = 0; i < 3; i++) last[i] = (i == plan->band ? c->rows : c->phase->count[i]) - 1;
    const int64_t point = (last[0] * c->size[1] + last[1]) * c->size[2] + last[2];
    return ((c->images - 1) * c->points + point) / SIDE + 1;
}

static void set_turned(stk_grid_state *s, int64_t points)
{
    s->turned_row = stk_round_up(points + STK_GRID_SLACK, SIDE) * 2;
    if (s->turned_row / STK_ALIGN % 2 == 0) s->turned_row += STK_ALIGN; /* apart in the cache */
    s->turned_plane = s->turned_row * s->plan.numbers;
}

static int64_t dy_bytes(const stk_grid_state *s, int64_t steps)
{
    return steps * s->panels * stk_grid_tile(s);
}

void stk_grid_choose_across(stk_grid_state *s, int64_t n)
{
    enum { MANY = 256 << 10, MOST = 32 << 20 };
    const stk_grid_chunk c = all_images(s, n);
    if (s->rows < s->plan.phase->count[s->plan.band] || sums_bytes(s) < MANY) return;
    set_turned(s, s->plan.phase->grids * c.together);
    s->steps = steps_of(&s->plan, &c);
    s->across = s->turned_plane * s->thirds + dy_bytes(s, s->steps) <= MOST;
    if (s->across) s->images = 1;
}

void stk_grid_size_weight(stk_grid_state *s, int64_t points, int64_t steps)
{
    stk_grid_room *r = &s->room;
    if (s->across) {
        r->turned = s->plan.all_taps * STK_GRID_SUMS;
    } else {
        set_turned(s, points);
        r->turned = s->turned_plane * s->thirds;
        r->squares = dy_bytes(s, steps);
    }
}

/* Pieces to be ready: images turned, then stretches of dy. */
static int64_t pieces_of(const stk_grid_state *s, int64_t n)
{
    return s->across ? n + stk_ceil_div(s->steps, STEPS) : 0;
}

static int64_t scratch(const void *params, int32_t parts)
{
    const stk_conv *c = params;
    stk_grid_state s;
    if (!stk_grid_ask(c, STK_GRID_WEIGHT, &s)) return 0;
    if (!s.across) return (sums_bytes(&s) + STK_ALIGN) * parts;
    return s.turned_plane * s.thirds + dy_bytes(&s, s.steps) + stk_grid_line(pieces_of(&s, c->n));
}

static int64_t room(const void *params)
{
    stk_grid_state s;
    return stk_grid_ask(params, STK_GRID_WEIGHT, &s) ? s.room.total : 0;
}

static bool supports(const void *params) { return stk_grid_takes(params, STK_GRID_WEIGHT); }

static int64_t units(const void *params)
{
    const stk_conv *c = params;
    stk_grid_state s;
    if (!stk_grid_ask(c, STK_GRID_WEIGHT, &s)) return 1;
    return s.across ? s.panels * s.plan.numbers / SIDE : c->n;
}

/* By images few parts when there are many weights, whose sums are added up at the end. */
static int64_t grain(const void *params)
{
    enum { SUMS = 1 << 18, FEW = 4, PIXELS = 512 };
    const stk_conv *c = params;
    stk_grid_state s;
    if (!stk_grid_ask(c, STK_GRID_WEIGHT, &s) || s.across) return 1;
    const int64_t parts = stk_max_i64(SUMS * 4 / sums_bytes(&s), FEW);
    const int64_t pixels = stk_max_i64(c->out[0] * c->out[1] * c->out[2], 1);
    return stk_max_i64(stk_ceil_div(c->n, parts), stk_ceil_div(PIXELS, pixels));
}

static uint32_t aligned(const void *params)
{
    stk_grid_state s;
    const bool across = !stk_grid_ask(params, STK_GRID_WEIGHT, &s) || s.across;
    return across ? 0 : stk_conv_weight_aligned(params);
}

static stk_status prepare(stk_launch *launch, stk_error *err)
{
    return stk_grid_prepare(launch, STK_GRID_WEIGHT, err);
}

/* ---- dy ------------------------------------------------------------------------------------------------------- */

/* Pixels of dy at 32 points from `at` on; -1: none. */
static void places_of(const stk_grid_state *s, const stk_grid_chunk *c, int64_t at,
                      int64_t out[SIDE])
{
    int64_t place = 0, run = 0;
    for (int64_t i = 0; i < SIDE; i++) out[i] = -1;
    for (int64_t i = at; (i = stk_grid_next(&s->plan, c, i, &place, &run)) < c->together;)
        for (; run > 0; run--, i++) {
            if (i >= at + SIDE) return;
            out[i - at] = place++;
        }
}

/* Steps from `first` on, of `steps` that a panel has, to panels of `all` steps. */
static bool zip_dy(const stk_grid_state *s, const stk_grid_chunk *c, const char *dy, int64_t first,
                   int64_t steps, int64_t all, char *to)
{
    const int64_t pixel = s->plan.dest_c * s->size;
    bool infinite = false;
    for (int64_t step = first; step < first + steps; step++) {
        int64_t place[SIDE];
        const void *rows[SIDE];
        places_of(s, c, step * SIDE, place);
        for (int64_t j = 0; j < s->panels; j++) {
            const int64_t lanes = stk_min_i64(s->plan.dest_c - j * SIDE, SIDE);
            for (int64_t i = 0; i < SIDE; i++)
                rows[i] = place[i] < 0 ? NULL : dy + place[i] * pixel + j * SIDE * s->size;
            infinite |=
                s->vec->zip(s->floats, rows, lanes, to + (j * all + step) * stk_grid_tile(s));
        }
    }
    return infinite;
}

/* ---- rows of weights -------------------------------------------------------------------------------------------- */

/* The gradients of `lines` numbers of a point from `first` on for tap t, channels from j on. */
static void put_rows(const stk_launch *launch, int64_t t, int64_t first, int64_t lines, int64_t j,
                     int64_t channels, const float *from, int64_t ld)
{
    const stk_grid_state *s = launch->state;
    const stk_grid_phase *p = s->plan.phase;
    const int64_t in = s->plan.source_c, out = s->plan.dest_c;
    const int64_t end = stk_min_i64(first + lines, p->merged * in);
    for (int64_t i = first; i < end; i++, from += ld) {
        const int64_t row = p->order[p->tap[t].first + i / in] * in + i % in;
        char *to = (char *)launch->arg[2] + (row * out + j) * s->size;
        if (s->floats)
            memcpy(to, from, (size_t)channels * sizeof *from);
        else
            stk_vec_get()->ew->store[STK_BF16](channels, to, from);
    }
}

/* ---- by images ---------------------------------------------------------------------------------------------------- */

static float *part_sums(const stk_launch *launch, int part)
{
    const stk_grid_state *s = launch->state;
    return (float *)(void *)((char *)launch->scratch + part * (sums_bytes(s) + STK_ALIGN));
}

static char *part_note(const stk_launch *launch, int part)
{
    return (char *)part_sums(launch, part) + sums_bytes(launch->state);
}

static bool add_chunk(const stk_grid_state *s, const stk_grid_desk *d, const stk_grid_chunk *c,
                      const char *x, const char *dy, float *sums)
{
    const stk_grid_phase *p = c->phase;
    const int64_t point = s->plan.numbers * 2, steps = steps_of(&s->plan, c);
    bool infinite = stk_grid_fill(s, d, c, x);
    for (int64_t t = 0; t < s->thirds; t++)
        for (int64_t at = 0; at < p->grids * c->together + SIDE; at += SIDE)
            s->vec->turn(s->floats, SIDE, d->grid + t * s->plane + at * point, s->plan.numbers,
                         d->turned + t * s->turned_plane + at * 2, s->turned_row);
    infinite |= zip_dy(s, c, dy, 0, steps, steps, d->squares);
    for (int64_t t = 0; t < p->taps; t++) d->at[t] = stk_grid_shift(c, &p->tap[t]) * 2;
    const stk_grid_weight weight = {.floats = s->floats,
                                    .turned = d->turned,
                                    .row = s->turned_row,
                                    .plane = s->turned_plane,
                                    .at = d->at,
                                    .taps = p->taps,
                                    .numbers = s->plan.numbers,
                                    .steps = steps,
                                    .dy = d->squares,
                                    .ld = steps,
                                    .panels = s->panels,
                                    .to = sums,
                                    .sums = d->sums};
    s->vec->weight(&weight);
    return infinite;
}

static void run_images(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const stk_grid_state *s = launch->state;
    const stk_grid_phase *p = s->plan.phase;
    const stk_grid_desk d = stk_grid_desk_of(launch);
    float *sums = part_sums(launch, part);
    memset(sums, 0, (size_t)sums_bytes(s));
    *part_note(launch, part) = 0;
    for (int64_t image = lo; image < hi; image += s->images) {
        const int64_t images = stk_min_i64(s->images, hi - image);
        const char *dy = (const char *)launch->arg[1] + image * stk_grid_dest_bytes(s);
        for (int64_t row = 0; row < p->count[s->plan.band]; row += s->rows) {
            const stk_grid_chunk c = stk_grid_chunk_of(&s->plan, p, image, images, row, s->rows);
            if (add_chunk(s, &d, &c, launch->arg[0], dy, sums)) *part_note(launch, part) = 1;
        }
    }
}

static stk_sums sums(const stk_launch *launch, int32_t part)
{
    const stk_grid_state *s = launch->state;
    if (s->across) return (stk_sums){0};
    return (stk_sums){.at = part_sums(launch, part),
                      .n = sums_bytes(s) / (int64_t)sizeof(float),
                      .lane = STK_LANE_F32};
}

static bool finish_images(const stk_launch *launch)
{
    const stk_grid_state *s = launch->state;
    const int64_t ld = s->panels * SIDE;
    const float *total = stk_launch_total(launch).at;
    bool infinite = false;
    for (int32_t part = 0; part < launch->parts; part++) {
        int64_t lo, hi;
        stk_launch_range(launch, part, &lo, &hi);
        if (lo < hi) infinite |= *part_note(launch, part);
    }
    for (int64_t t = 0; total && t < s->plan.all_taps; t++)
        put_rows(launch, t, 0, s->plan.numbers, 0, s->plan.dest_c, total + t * s->plan.numbers * ld,
                 ld);
    return infinite;
}

/* ---- across ------------------------------------------------------------------------------------------------------ */

static int64_t pieces(const stk_launch *launch)
{
    return pieces_of(launch->state, ((const stk_conv *)launch->params)->n);
}

static char *dy_of(const stk_launch *launch)
{
    const stk_grid_state *s = launch->state;
    return (char *)launch->scratch + s->turned_plane * s->thirds;
}

static char *notes_of(const stk_launch *launch)
{
    const stk_grid_state *s = launch->state;
    return dy_of(launch) + dy_bytes(s, s->steps);
}

/* An image to its place in the rows of all; behind the last one come zeros. */
static bool turn_image(const stk_launch *launch, const stk_grid_chunk *all, int64_t image)
{
    const stk_grid_state *s = launch->state;
    const stk_grid_phase *p = s->plan.phase;
    const stk_grid_desk d = stk_grid_desk_of(launch);
    const stk_grid_chunk c = stk_grid_chunk_of(&s->plan, p, image, 1, 0, s->rows);
    const int64_t point = s->plan.numbers * 2;
    const bool infinite = stk_grid_fill(s, &d, &c, launch->arg[0]);
    for (int64_t g = 0; g < p->grids * s->thirds; g++) {
        const int64_t third = g / p->grids, grid = g % p->grids;
        const bool last = image == all->images - 1 && grid == p->grids - 1;
        const int64_t points = c.points + (last ? STK_GRID_SLACK : 0);
        const char *from = d.grid + third * s->plane + grid * c.points * point;
        char *to = (char *)launch->scratch + third * s->turned_plane +
                   (grid * all->together + image * c.points) * 2;
        for (int64_t at = 0; at < points; at += SIDE)
            s->vec->turn(s->floats, stk_min_i64(points - at, SIDE), from + at * point,
                         s->plan.numbers, to + at * 2, s->turned_row);
    }
    return infinite;
}

static void ready(const stk_launch *launch, int64_t piece)
{
    const stk_grid_state *s = launch->state;
    const int64_t n = ((const stk_conv *)launch->params)->n;
    const stk_grid_chunk all = all_images(s, n);
    if (piece < n) {
        notes_of(launch)[piece] = turn_image(launch, &all, piece);
        return;
    }
    const int64_t first = (piece - n) * STEPS;
    notes_of(launch)[piece] = zip_dy(s, &all, launch->arg[1], first,
                                     stk_min_i64(s->steps - first, STEPS), s->steps, dy_of(launch));
}

/* 32 numbers by 32 channels, for all taps. */
static void run_block(const stk_launch *launch, const stk_grid_desk *d, int64_t i, int64_t j)
{
    const stk_grid_state *s = launch->state;
    const int64_t taps = s->plan.all_taps;
    float *sums = (float *)(void *)d->turned;
    const stk_grid_weight w = {.floats = s->floats,
                               .turned = (const char *)launch->scratch + i * SIDE * s->turned_row,
                               .dy = dy_of(launch) + j * s->steps * stk_grid_tile(s),
                               .steps = s->steps,
                               .row = s->turned_row,
                               .plane = s->turned_plane,
                               .at = d->at,
                               .taps = taps,
                               .numbers = SIDE,
                               .panels = 1,
                               .to = sums,
                               .sums = d->sums};
    memset(sums, 0, (size_t)(taps * STK_GRID_SUMS));
    s->vec->weight(&w);
    for (int64_t t = 0; t < taps; t++)
        put_rows(launch, t, i * SIDE, SIDE, j * SIDE, stk_min_i64(s->plan.dest_c - j * SIDE, SIDE),
                 sums + t * SIDE * SIDE, SIDE);
}

static void run_across(const stk_launch *launch, int64_t lo, int64_t hi)
{
    const stk_grid_state *s = launch->state;
    const stk_grid_desk d = stk_grid_desk_of(launch);
    const stk_grid_chunk all = all_images(s, ((const stk_conv *)launch->params)->n);
    const int64_t blocks = s->plan.numbers / SIDE;
    for (int64_t t = 0; t < s->plan.all_taps; t++)
        d.at[t] = stk_grid_shift(&all, &s->plan.phase->tap[t]) * 2;
    for (int64_t block = lo; block < hi; block++)
        run_block(launch, &d, block % blocks, block / blocks);
}

/* ---- the kernel ---------------------------------------------------------------------------------------------------- */

static void run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    if (((const stk_grid_state *)launch->state)->across)
        run_across(launch, lo, hi);
    else
        run_images(launch, lo, hi, part);
}

static void finish(const stk_launch *launch)
{
    const stk_impl *ref = &stk_impl_conv_bwd_weight_ref;
    const bool across = ((const stk_grid_state *)launch->state)->across;
    const bool infinite = across ? memchr(notes_of(launch), 1, (size_t)pieces(launch)) != NULL
                                 : finish_images(launch);
    if (infinite) ref->run(launch, 0, ref->units(launch->params), 0);
}

const stk_impl stk_impl_conv_bwd_weight_grid = {.name = "grid",
                                                .kernel = STK_K_CONV_BWD_WEIGHT,
                                                .rank = 4,
                                                .supports = supports,
                                                .units = units,
                                                .grain = grain,
                                                .aligned = aligned,
                                                .scratch = scratch,
                                                .room = room,
                                                .prepare = prepare,
                                                .discard = stk_grid_discard,
                                                .pieces = pieces,
                                                .ready = ready,
                                                .run = run,
                                                .sums = sums,
                                                .finish = finish};
