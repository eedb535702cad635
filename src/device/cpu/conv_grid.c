/* Convolutions by tiles of AMX: bfloat16, and floats in thirds. The source goes onto a grid, some images or some rows of one at a
 * time, and is read there as often as it has taps (conv_grid_plan.h, vec/conv_grid.h). Weights are packed once for all parts.
 *
 * Units are images. Scratch: forward and backward data [ weights of each phase, packed | whether a piece of them is infinite ],
 * backward weight [ sums of each part | whether the part met infinite numbers ]. The room of a thread:
 *
 *     [ grid | a row of floats | squares, or dy in pairs | steps | 32 x 32 sums | the grid turned | steps along it ]
 *
 * Products of thirds cannot say what becomes of infinite numbers: images that have some are computed again by the reference, and
 * so are weights. NaN spreads by itself. */
#include "base/memory.h"
#include "device/cpu/conv_few.h"
#include "device/cpu/conv_grid_plan.h"
#include "device/cpu/conv_plan.h"
#include "device/cpu/cpu.h"
#include "device/cpu/isa.h"
#include "device/cpu/vec/conv_grid.h"
#include "device/cpu/vec/elementwise.h"
#include "device/cpu/vec/vec.h"

#include <string.h>

enum { SIDE = STK_GRID_SIDE, SLACK = 64 /* points behind a grid that tiles may read */ };

typedef struct room {
    int64_t grid, row, squares, at, sums, turned, along, total; /* bytes of each piece */
} room;

typedef struct grid_state {
    stk_grid_plan plan;
    bool floats;
    int64_t size, thirds; /* bytes of a number; 3 or 1 */
    int64_t images, rows; /* of a chunk */
    int64_t panels;
    room room;
    int64_t plane, turned_plane, turned_row; /* bytes */
    const stk_vec_conv_grid *vec;
} grid_state;

static int64_t line(int64_t bytes) { return stk_round_up(bytes, STK_ALIGN); }

/* ---- sizes -------------------------------------------------------------------------------------------------- */

static int64_t tile_bytes(const grid_state *s) { return s->thirds * STK_GRID_TILE; }
static int64_t blocks_of(const grid_state *s) { return s->plan.numbers / SIDE; }

static int64_t phase_bytes(const grid_state *s, const stk_grid_phase *p)
{
    return p->taps * blocks_of(s) * tile_bytes(s) * s->panels;
}

static int64_t weights_bytes(const grid_state *s)
{
    return s->plan.all_taps * blocks_of(s) * tile_bytes(s) * s->panels;
}

static int64_t sums_bytes(const grid_state *s)
{
    return line(s->plan.all_taps * s->plan.numbers * s->panels * SIDE * 4);
}

/* What is on the grid at a time should stay in the second level of the cache, beside a panel of weights or of dy. */
static void cut_up(grid_state *s)
{
    enum { DATA = 768 << 10, WEIGHT = 1 << 20, ENOUGH = 1024, MOST = 4096 };
    const bool weight = s->plan.way == STK_GRID_WEIGHT;
    int64_t points = 1, each = 1, along = 1, extra = 0;
    for (int64_t i = 0; i < s->plan.phases; i++) {
        const stk_grid_phase *p = &s->plan.phase[i];
        const stk_grid_chunk c = stk_grid_chunk_of(&s->plan, p, 0, 1, 0, INT64_MAX / 2);
        int64_t number = s->plan.numbers * p->grids * (weight ? 2 : 1);
        if (weight) number += s->panels * SIDE;
        points = stk_max_i64(points, c.points);
        each = stk_max_i64(each, number * 2 * s->thirds);
        along = stk_max_i64(along, c.points / c.size[s->plan.band]);
        extra = stk_max_i64(extra, p->reach[s->plan.band]);
    }
    const int64_t most =
        stk_max_i64(stk_min_i64((weight ? WEIGHT : DATA) / each, MOST), 2 * SIDE);
    s->images = 1;
    s->rows = INT64_MAX / 2;
    if (points <= most)
        s->images = stk_max_i64(stk_min_i64(most, weight ? MOST : ENOUGH) / points, 1);
    else
        s->rows = stk_max_i64(most / along - extra, 1);
}

static void size_up(grid_state *s, int64_t n)
{
    const bool weight = s->plan.way == STK_GRID_WEIGHT;
    int64_t all = 1, together = 1, row = 1, steps = 1;
    s->images = stk_min_i64(s->images, n);
    for (int64_t i = 0; i < s->plan.phases; i++) {
        const stk_grid_phase *p = &s->plan.phase[i];
        const stk_grid_chunk c = stk_grid_chunk_of(&s->plan, p, 0, s->images, 0, s->rows);
        all = stk_max_i64(all, p->grids * c.together);
        together = stk_max_i64(together, c.together);
        row = stk_max_i64(row, c.size[2]);
        steps = stk_max_i64(steps, p->taps * blocks_of(s));
    }
    const int64_t squares = stk_ceil_div(together, SIDE) + 1;
    room *r = &s->room;
    s->plane = line((all + SLACK) * s->plan.numbers * 2);
    r->grid = s->plane * s->thirds;
    r->row = s->floats ? line(row * s->plan.numbers * 4) : 0;
    r->squares = line(squares * (weight ? s->panels * tile_bytes(s) : (int64_t)sizeof(stk_grid_square)));
    r->at = line(steps * (int64_t)sizeof(int64_t));
    r->sums = STK_GRID_SUMS;
    if (weight) {
        s->turned_row = stk_round_up(all + SLACK, SIDE) * 2;
        if (s->turned_row / STK_ALIGN % 2 == 0) s->turned_row += STK_ALIGN; /* apart in the cache */
        s->turned_plane = s->turned_row * s->plan.numbers;
        r->turned = s->turned_plane * s->thirds;
        r->along = line(squares * (int64_t)sizeof(int64_t));
    }
    r->total = r->grid + r->row + r->squares + r->at + r->sums + r->turned + r->along;
}

static stk_status state_init(grid_state *s, const stk_conv *c, int way, stk_error *err)
{
    *s = (grid_state){.floats = c->dtype == STK_F32, .vec = stk_vec_get()->conv_grid};
    s->size = stk_dtype_size((stk_dtype)c->dtype);
    s->thirds = s->floats ? 3 : 1;
    STK_TRY(stk_grid_plan_make(&s->plan, c, way, err));
    s->panels = stk_ceil_div(s->plan.dest_c, SIDE);
    cut_up(s);
    size_up(s, c->n);
    return STK_OK;
}

/* The state for a question about sizes; false where there is no memory, which prepare() will tell. */
static bool ask(const void *params, int way, grid_state *s)
{
    const bool good = state_init(s, params, way, NULL) == STK_OK;
    stk_grid_plan_discard(&s->plan);
    return good;
}

static int64_t pieces_of(const grid_state *s) { return s->plan.phases * s->panels; }

static int64_t scratch(const void *params, int way, int32_t parts)
{
    grid_state s;
    if (!ask(params, way, &s)) return 0;
    return way == STK_GRID_WEIGHT ? (sums_bytes(&s) + STK_ALIGN) * parts
                                  : weights_bytes(&s) + line(pieces_of(&s));
}

static int64_t room_of(const void *params, int way)
{
    grid_state s;
    if (!ask(params, way, &s)) return 0;
    const int64_t few = way == STK_GRID_FORWARD ? 0 : stk_conv_few_floats(params);
    return stk_max_i64(s.room.total, few * (int64_t)sizeof(float));
}

/* Fewer than half a tile of channels, or of what a result reads, is mostly padding; floats have to be worth their cutting. */
static bool takes(const void *params, int way)
{
    enum { LEAST = 16, LEAST_FLOATS = 32 };
    const stk_conv *c = params;
    const int64_t taps = c->kernel[0] * c->kernel[1] * c->kernel[2];
    const int64_t source = way == STK_GRID_BACK ? c->oc : c->ic;
    const int64_t dest = way == STK_GRID_BACK ? c->ic : c->oc;
    const int64_t least = c->dtype == STK_F32 ? LEAST_FLOATS : LEAST;
    return (c->dtype == STK_F32 || c->dtype == STK_BF16) && stk_isa_has_tiles() && dest >= least &&
           source * taps >= least && stk_grid_plan_takes(c, way);
}

static int64_t units(const void *params) { return ((const stk_conv *)params)->n; }

/* A part should have some hundred pixels; and few parts when there are many weights, whose sums are added up at the end. */
static int64_t data_grain(const void *params)
{
    const stk_conv *c = params;
    return stk_ceil_div(512, stk_max_i64(c->out[0] * c->out[1] * c->out[2], 1));
}

static int64_t weight_grain(const void *params)
{
    enum { SUMS = 1 << 21 };
    const stk_conv *c = params;
    const int64_t sums = c->kernel[0] * c->kernel[1] * c->kernel[2] * c->ic * c->oc;
    const int64_t parts = stk_max_i64(SUMS / stk_max_i64(sums, 1), 2);
    return stk_max_i64(stk_ceil_div(c->n, parts), data_grain(params));
}

static void discard(stk_launch *launch)
{
    grid_state *s = launch->state;
    if (!s) return;
    stk_grid_plan_discard(&s->plan);
    stk_free(s);
    launch->state = NULL;
}

static stk_status prepare(stk_launch *launch, int way, stk_error *err)
{
    grid_state *s = launch->state = stk_calloc(1, sizeof *s);
    if (!s) return stk_fail_memory(err, "a convolution", sizeof *s);
    const stk_status status = state_init(s, launch->params, way, err);
    if (status != STK_OK) discard(launch);
    return status;
}

/* ---- weights, packed ------------------------------------------------------------------------------------------- */

static int64_t pieces(const stk_launch *launch) { return pieces_of(launch->state); }

/* Numbers from `first` on of a point of tap t, as lines, by channels from j on, as lanes. A copy where they are not side by side. */
static bool pack_step(const grid_state *s, const stk_grid_phase *p, int64_t t, int64_t first,
                      int64_t j, const char *w, char *to)
{
    const stk_grid_plan *plan = &s->plan;
    const bool back = plan->way == STK_GRID_BACK;
    const int64_t in = plan->source_c, out = plan->dest_c;
    const int64_t ld = back ? in : out, lanes = stk_min_i64(out - j, SIDE);
    stk_grid_source from = {.ld = ld, .lanes = lanes, .floats = s->floats, .turned = back};
    char copy[SIDE * SIDE * 4] __attribute__((aligned(64)));
    from.lines = stk_min_i64(p->merged * in - first, SIDE);
    if (from.lines <= 0) {
        memset(to, 0, (size_t)tile_bytes(s));
        return false;
    }
    const int64_t *order = p->order + p->tap[t].first + first / in;
    const int64_t number = first % in;
    if (number + from.lines <= in) {
        from.from = w + (back ? (*order * out + j) * in + number : (*order * in + number) * out + j) *
                            s->size;
        return s->vec->pack(&from, to);
    }
    for (int64_t i = 0; i < from.lines; i++)
        for (int64_t k = 0; k < lanes; k++) {
            const int64_t tap = order[(number + i) / in], c = (number + i) % in;
            const int64_t at = back ? (tap * out + j + k) * in + c : (tap * in + c) * out + j + k;
            memcpy(copy + (i * SIDE + k) * s->size, w + at * s->size, (size_t)s->size);
        }
    from.from = copy;
    from.ld = SIDE;
    from.turned = false;
    return s->vec->pack(&from, to);
}

static char *weights_of(const stk_launch *launch, int64_t phase)
{
    const grid_state *s = launch->state;
    char *at = launch->scratch;
    for (int64_t i = 0; i < phase; i++) at += phase_bytes(s, &s->plan.phase[i]);
    return at;
}

static char *notes_of(const stk_launch *launch)
{
    const grid_state *s = launch->state;
    return (char *)launch->scratch + weights_bytes(s);
}

static void ready(const stk_launch *launch, int64_t piece)
{
    const grid_state *s = launch->state;
    const int64_t phase = piece / s->panels, panel = piece % s->panels;
    const stk_grid_phase *p = &s->plan.phase[phase];
    char *to = weights_of(launch, phase) + phase_bytes(s, p) / s->panels * panel;
    bool infinite = false;
    for (int64_t t = 0; t < p->taps; t++)
        for (int64_t first = 0; first < s->plan.numbers; first += SIDE, to += tile_bytes(s))
            infinite |= pack_step(s, p, t, first, panel * SIDE, launch->arg[1], to);
    notes_of(launch)[piece] = infinite;
}

static bool weights_are_infinite(const stk_launch *launch)
{
    const grid_state *s = launch->state;
    return memchr(notes_of(launch), 1, (size_t)pieces_of(s)) != NULL;
}

/* ---- the grid ---------------------------------------------------------------------------------------------------- */

typedef struct desk {
    char *grid, *row, *squares, *turned;
    int64_t *at, *along;
    float *sums;
} desk;

static desk desk_of(const stk_launch *launch)
{
    const room *r = &((const grid_state *)launch->state)->room;
    desk d = {.grid = launch->room};
    d.row = d.grid + r->grid;
    d.squares = d.row + r->row;
    d.at = (int64_t *)(void *)(d.squares + r->squares);
    d.sums = (float *)(void *)((char *)d.at + r->at);
    d.turned = (char *)d.sums + r->sums;
    d.along = (int64_t *)(void *)(d.turned + r->turned);
    return d;
}

/* All grids of the chunk, and zeros behind them. Are there infinite numbers? */
static bool fill(const grid_state *s, const desk *d, const stk_grid_chunk *c, const char *x)
{
    const int64_t row = c->size[2] * s->plan.numbers;
    char *to = d->grid;
    bool infinite = false;
    for (int64_t g = 0; g < c->phase->grids; g++)
        for (int64_t image = 0; image < c->images; image++)
            for (int64_t i = 0; i < c->size[0] * c->size[1]; i++, to += row * 2) {
                char *numbers = s->floats ? d->row : to;
                stk_grid_row(&s->plan, c, g, image, i / c->size[1], i % c->size[1], x, s->size,
                             numbers);
                if (s->floats)
                    infinite |= s->vec->cut(row, (const float *)(void *)d->row, to, s->plane);
            }
    for (int64_t t = 0; t < s->thirds; t++)
        memset(to + t * s->plane, 0, (size_t)(SLACK * s->plan.numbers * 2));
    return infinite;
}

/* ---- forward and backward data --------------------------------------------------------------------------------- */

static int64_t list_squares(const grid_state *s, const stk_grid_chunk *c, stk_grid_square *out)
{
    int64_t count = 0, place = 0, run = 0;
    for (int64_t at = 0;; at = out[count++].start + SIDE) {
        at = stk_grid_next(&s->plan, c, at, &place, &run);
        if (at >= c->together) return count;
        stk_grid_square *q = &out[count];
        const int64_t end = at + SIDE;
        memset(q, -1, sizeof *q);
        q->start = (int32_t)at;
        while (at < end) {
            for (int64_t i = 0; i < run && at < end; i++, at++)
                q->place[at - q->start] = (int32_t)(place + i * c->phase->to_step[2]);
            q->rows = (int32_t)(at - q->start);
            at = stk_grid_next(&s->plan, c, at, &place, &run);
            if (at >= c->together) break;
        }
    }
}

static int64_t dest_bytes(const grid_state *s)
{
    const int64_t *dest = s->plan.dest;
    return dest[0] * dest[1] * dest[2] * s->plan.dest_c * s->size;
}

/* Results that no tap reaches. */
static void put_zeros(const grid_state *s, const stk_grid_chunk *c, char *y)
{
    const int64_t pixel = s->plan.dest_c * s->size;
    int64_t place = 0, run = 0;
    for (int64_t at = stk_grid_next(&s->plan, c, 0, &place, &run); at < c->together;
         at = stk_grid_next(&s->plan, c, at + run, &place, &run))
        for (int64_t i = 0; i < run; i++)
            memset(y + (place + i * c->phase->to_step[2]) * pixel, 0, (size_t)pixel);
}

static void multiply_chunk(const stk_launch *launch, const desk *d, const stk_grid_chunk *c,
                           int64_t phase, char *y)
{
    const grid_state *s = launch->state;
    const stk_grid_phase *p = c->phase;
    const int64_t point = s->plan.numbers * 2;
    stk_grid_square *square = (stk_grid_square *)(void *)d->squares;
    int64_t steps = 0;
    for (int64_t t = 0; t < p->taps; t++)
        for (int64_t block = 0; block < blocks_of(s); block++)
            d->at[steps++] = stk_grid_shift(c, &p->tap[t]) * point + block * SIDE * 2;
    const stk_grid_data data = {.floats = s->floats,
                                .grid = d->grid,
                                .point = point,
                                .plane = s->plane,
                                .at = d->at,
                                .steps = steps,
                                .weights = weights_of(launch, phase),
                                .square = square,
                                .squares = list_squares(s, c, square),
                                .y = y,
                                .channels = s->plan.dest_c,
                                .sums = d->sums};
    s->vec->data(&data);
}

/* Results lo..hi by the reference. */
static void run_plainly(const stk_launch *launch, int64_t lo, int64_t hi)
{
    const grid_state *s = launch->state;
    const stk_impl *ref = s->plan.way == STK_GRID_BACK ? &stk_impl_conv_bwd_data_ref : &stk_impl_conv_ref;
    ref->run(launch, lo, hi, 0);
}

static void data_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const grid_state *s = launch->state;
    const desk d = desk_of(launch);
    (void)part;
    if (weights_are_infinite(launch)) {
        run_plainly(launch, lo, hi);
        return;
    }
    for (int64_t image = lo; image < hi; image += s->images) {
        const int64_t images = stk_min_i64(s->images, hi - image);
        char *y = (char *)launch->arg[2] + image * dest_bytes(s);
        bool infinite = false;
        for (int64_t i = 0; i < s->plan.phases; i++) {
            const stk_grid_phase *p = &s->plan.phase[i];
            for (int64_t row = 0; row < p->count[s->plan.band]; row += s->rows) {
                const stk_grid_chunk c =
                    stk_grid_chunk_of(&s->plan, p, image, images, row, s->rows);
                if (!p->taps) {
                    put_zeros(s, &c, y);
                    continue;
                }
                infinite |= fill(s, &d, &c, launch->arg[0]);
                multiply_chunk(launch, &d, &c, i, y);
            }
        }
        if (infinite) run_plainly(launch, image, image + images);
    }
}

static void back_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const int64_t floats = ((const grid_state *)launch->state)->room.total / (int64_t)sizeof(float);
    stk_conv_few_data(launch, lo, hi, part, launch->room,
                      stk_max_i64(floats, stk_conv_few_floats(launch->params)), data_run);
}

/* ---- backward weight --------------------------------------------------------------------------------------------- */

static float *part_sums(const stk_launch *launch, int part)
{
    const grid_state *s = launch->state;
    return (float *)(void *)((char *)launch->scratch + part * (sums_bytes(s) + STK_ALIGN));
}

static char *part_note(const stk_launch *launch, int part)
{
    return (char *)part_sums(launch, part) + sums_bytes(launch->state);
}

/* Pixels of dy at 32 points from `at` on; -1: none. */
static void places_of(const grid_state *s, const stk_grid_chunk *c, int64_t at, int64_t out[SIDE])
{
    const int64_t end = at + SIDE;
    int64_t place = 0, run = 0;
    for (int64_t i = 0; i < SIDE; i++) out[i] = -1;
    for (int64_t i = at; (i = stk_grid_next(&s->plan, c, i, &place, &run)) < c->together;)
        for (const int64_t first = end - SIDE; run > 0; run--, i++) {
            if (i >= end) return;
            out[i - first] = place++;
        }
}

/* Steps along the points of a chunk, up to its last result. */
static int64_t steps_of(const stk_grid_plan *plan, const stk_grid_chunk *c)
{
    int64_t last[3];
    for (int i = 0; i < 3; i++) last[i] = (i == plan->band ? c->rows : c->phase->count[i]) - 1;
    const int64_t point = (last[0] * c->size[1] + last[1]) * c->size[2] + last[2];
    return ((c->images - 1) * c->points + point) / SIDE + 1;
}

/* dy on the grid, 32 points at a time. */
static bool zip_dy(const grid_state *s, const desk *d, const stk_grid_chunk *c, const char *dy,
                   int64_t steps)
{
    const int64_t pixel = s->plan.dest_c * s->size;
    bool infinite = false;
    for (int64_t step = 0; step < steps; step++) {
        int64_t place[SIDE];
        const void *rows[SIDE];
        places_of(s, c, step * SIDE, place);
        for (int64_t j = 0; j < s->panels; j++) {
            const int64_t lanes = stk_min_i64(s->plan.dest_c - j * SIDE, SIDE);
            for (int64_t i = 0; i < SIDE; i++)
                rows[i] = place[i] < 0 ? NULL : dy + place[i] * pixel + j * SIDE * s->size;
            infinite |= s->vec->zip(s->floats, rows, lanes,
                                    d->squares + (j * steps + step) * tile_bytes(s));
        }
    }
    return infinite;
}

static bool add_chunk(const grid_state *s, const desk *d, const stk_grid_chunk *c, const char *x,
                      const char *dy, float *sums)
{
    const stk_grid_phase *p = c->phase;
    const int64_t point = s->plan.numbers * 2;
    bool infinite = fill(s, d, c, x);
    const int64_t steps = steps_of(&s->plan, c);
    for (int64_t t = 0; t < s->thirds; t++)
        for (int64_t at = 0; at < p->grids * c->together + SIDE; at += SIDE)
            s->vec->turn(s->floats, d->grid + t * s->plane + at * point, s->plan.numbers,
                         d->turned + t * s->turned_plane + at * 2, s->turned_row);
    infinite |= zip_dy(s, d, c, dy, steps);
    for (int64_t t = 0; t < p->taps; t++) d->at[t] = stk_grid_shift(c, &p->tap[t]) * 2;
    for (int64_t i = 0; i < steps; i++) d->along[i] = i * SIDE * 2;
    const stk_grid_weight weight = {.floats = s->floats,
                                    .turned = d->turned,
                                    .row = s->turned_row,
                                    .plane = s->turned_plane,
                                    .at = d->at,
                                    .taps = p->taps,
                                    .numbers = s->plan.numbers,
                                    .along = d->along,
                                    .steps = steps,
                                    .dy = d->squares,
                                    .panels = s->panels,
                                    .to = sums,
                                    .sums = d->sums};
    s->vec->weight(&weight);
    return infinite;
}

static void weight_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const grid_state *s = launch->state;
    const stk_grid_phase *p = s->plan.phase;
    const desk d = desk_of(launch);
    float *sums = part_sums(launch, part);
    memset(sums, 0, (size_t)sums_bytes(s));
    *part_note(launch, part) = 0;
    for (int64_t image = lo; image < hi; image += s->images) {
        const int64_t images = stk_min_i64(s->images, hi - image);
        const char *dy = (const char *)launch->arg[1] + image * dest_bytes(s);
        for (int64_t row = 0; row < p->count[s->plan.band]; row += s->rows) {
            const stk_grid_chunk c = stk_grid_chunk_of(&s->plan, p, image, images, row, s->rows);
            if (add_chunk(s, &d, &c, launch->arg[0], dy, sums)) *part_note(launch, part) = 1;
        }
    }
}

/* Rows of weights, from the sums of all parts. */
static void put_rows(const stk_launch *launch, const float *sums)
{
    const grid_state *s = launch->state;
    const stk_grid_phase *p = s->plan.phase;
    const int64_t ld = s->panels * SIDE, in = s->plan.source_c, out = s->plan.dest_c;
    const stk_vec_ew *ew = stk_vec_get()->ew;
    for (int64_t t = 0; t < p->taps; t++)
        for (int64_t i = 0; i < p->merged * in; i++) {
            const float *from = sums + (t * s->plan.numbers + i) * ld;
            const int64_t row = p->order[p->tap[t].first + i / in] * in + i % in;
            char *to = (char *)launch->arg[2] + row * out * s->size;
            if (s->floats)
                memcpy(to, from, (size_t)out * sizeof *from);
            else
                ew->store[STK_BF16](out, to, from);
        }
}

/* Adds the sums of the parts in order. Empty parts were not run. */
static void weight_finish(const stk_launch *launch)
{
    const grid_state *s = launch->state;
    const int64_t count = sums_bytes(s) / (int64_t)sizeof(float);
    float *total = NULL;
    bool infinite = false;
    for (int32_t part = 0; part < launch->parts; part++) {
        int64_t lo, hi;
        float *sums = part_sums(launch, part);
        stk_launch_range(launch, part, &lo, &hi);
        if (lo == hi) continue;
        infinite |= *part_note(launch, part);
        if (!total) total = sums;
        for (int64_t i = 0; total != sums && i < count; i++) total[i] += sums[i];
    }
    if (infinite)
        stk_impl_conv_bwd_weight_ref.run(launch, 0, stk_impl_conv_bwd_weight_ref.units(launch->params), 0);
    else if (total)
        put_rows(launch, total);
}

/* ---- three kernels ------------------------------------------------------------------------------------------------ */

#define WAY(word, WAY_)                                                                            \
    STK_CONV_WAY(word, WAY_)                                                                       \
    static bool word##_supports(const void *params) { return takes(params, WAY_); }                \
    static int64_t word##_room(const void *params) { return room_of(params, WAY_); }
WAY(forward, STK_GRID_FORWARD)
WAY(back, STK_GRID_BACK)
WAY(weight, STK_GRID_WEIGHT)

const stk_impl stk_impl_conv_grid = {.name = "grid",
                                     .kernel = STK_K_CONV,
                                     .rank = 4,
                                     .supports = forward_supports,
                                     .units = units,
                                     .grain = data_grain,
                                     .aligned = stk_conv_data_aligned,
                                     .scratch = forward_scratch,
                                     .room = forward_room,
                                     .prepare = forward_prepare,
                                     .discard = discard,
                                     .pieces = pieces,
                                     .ready = ready,
                                     .run = data_run};
const stk_impl stk_impl_conv_bwd_data_grid = {.name = "grid",
                                              .kernel = STK_K_CONV_BWD_DATA,
                                              .rank = 4,
                                              .supports = back_supports,
                                              .units = units,
                                              .grain = data_grain,
                                              .aligned = stk_conv_data_aligned,
                                              .scratch = back_scratch,
                                              .room = back_room,
                                              .prepare = back_prepare,
                                              .discard = discard,
                                              .pieces = pieces,
                                              .ready = ready,
                                              .run = back_run};
const stk_impl stk_impl_conv_bwd_weight_grid = {.name = "grid",
                                                .kernel = STK_K_CONV_BWD_WEIGHT,
                                                .rank = 4,
                                                .supports = weight_supports,
                                                .units = units,
                                                .grain = weight_grain,
                                                .aligned = stk_conv_weight_aligned,
                                                .scratch = weight_scratch,
                                                .room = weight_room,
                                                .prepare = weight_prepare,
                                                .discard = discard,
                                                .run = weight_run,
                                                .finish = weight_finish};
