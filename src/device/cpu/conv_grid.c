/* Convolutions by tiles of AMX: bfloat16, and floats in thirds. The source goes onto a grid, some images or some rows of one at a
 * time, and is read there as often as it has taps (conv_grid_plan.h, vec/conv_grid.h). Weights are packed once for all parts.
 *
 * Here are forward and backward data, whose units are images, and what backward weight shares with them (conv_grid_weight.c).
 *
 *     scratch    [ weights of each phase, packed | whether a piece of them is infinite ]
 *     room       [ grid | a row of floats | squares | steps | 32 x 32 sums ]
 *
 * Where pixels are few, units are panels of 32 channels ("across"): the grids are made once, and each part packs its own weights.
 *
 *     scratch    [ grids of each phase | whether one of them, or a panel of weights, is infinite ]
 *     room       [ a row of floats | squares | steps | 32 x 32 sums | weights of a panel, packed ]
 *
 * Products of thirds cannot say what becomes of infinite numbers: images that have some are computed again by the reference, and
 * so are weights. NaN spreads by itself. */
#include "device/cpu/conv_grid.h"

#include "device/cpu/conv_few.h"
#include "device/cpu/conv_plan.h"
#include "device/cpu/cpu.h"
#include "device/cpu/isa.h"
#include "device/cpu/vec/vec.h"

#include <string.h>

enum { SIDE = STK_GRID_SIDE };

/* ---- sizes -------------------------------------------------------------------------------------------------- */

static int64_t blocks_of(const stk_grid_state *s) { return s->plan.numbers / SIDE; }

static int64_t phase_bytes(const stk_grid_state *s, const stk_grid_phase *p)
{
    return p->taps * blocks_of(s) * stk_grid_tile(s) * s->panels;
}

static int64_t weights_bytes(const stk_grid_state *s)
{
    return s->plan.all_taps * blocks_of(s) * stk_grid_tile(s) * s->panels;
}

/* What is on the grid at a time should stay in the second level of the cache, beside a panel of weights or of dy. */
static void cut_up(stk_grid_state *s)
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
    const int64_t most = stk_max_i64(stk_min_i64((weight ? WEIGHT : DATA) / each, MOST), 2 * SIDE);
    s->images = 1;
    s->rows = INT64_MAX / 2;
    if (points <= most)
        s->images = stk_max_i64(stk_min_i64(most, weight ? MOST : ENOUGH) / points, 1);
    else
        s->rows = stk_max_i64(most / along - extra, 1);
}

/* So few pixels that parts of them would be smaller than what they share: parts are panels of channels then. */
static void choose_across(stk_grid_state *s, int64_t n)
{
    enum { FEW = 1024, MOST = 4 << 20 };
    for (int64_t i = 0; i < s->plan.phases; i++) {
        const stk_grid_phase *p = &s->plan.phase[i];
        const stk_grid_chunk c = stk_grid_chunk_of(&s->plan, p, 0, n, 0, INT64_MAX / 2);
        const int64_t bytes = (p->grids * c.together + STK_GRID_SLACK) * s->plan.numbers * 2;
        if (c.together > FEW || bytes * s->thirds * s->plan.phases > MOST) return;
    }
    s->across = s->panels > 1;
    if (s->across) s->images = n, s->rows = INT64_MAX / 2;
}

static void size_up(stk_grid_state *s)
{
    const bool weight = s->plan.way == STK_GRID_WEIGHT;
    int64_t all = 1, together = 1, row = 1, steps = 1;
    for (int64_t i = 0; i < s->plan.phases; i++) {
        const stk_grid_phase *p = &s->plan.phase[i];
        const stk_grid_chunk c = stk_grid_chunk_of(&s->plan, p, 0, s->images, 0, s->rows);
        all = stk_max_i64(all, p->grids * c.together);
        together = stk_max_i64(together, c.together);
        row = stk_max_i64(row, c.size[2]);
        steps = stk_max_i64(steps, p->taps * blocks_of(s));
    }
    stk_grid_room *r = &s->room;
    s->plane = stk_grid_line((all + STK_GRID_SLACK) * s->plan.numbers * 2);
    r->grid = s->plane * s->thirds;
    r->row = s->floats ? stk_grid_line(row * s->plan.numbers * 4) : 0;
    r->at = stk_grid_line(steps * (int64_t)sizeof(int64_t));
    r->sums = STK_GRID_SUMS;
    if (weight)
        stk_grid_size_weight(s, all, stk_ceil_div(together, SIDE) + 1);
    else
        r->squares =
            stk_grid_line((stk_ceil_div(together, SIDE) + 1) * (int64_t)sizeof(stk_grid_square));
    if (!weight && s->across) {
        r->grid = 0;
        r->turned = steps * stk_grid_tile(s);
    }
    r->total = r->grid + r->row + r->squares + r->at + r->sums + r->turned;
}

stk_status stk_grid_state_init(stk_grid_state *s, const stk_conv *c, int way, stk_error *err)
{
    *s = (stk_grid_state){.floats = c->dtype == STK_F32, .vec = stk_vec_get()->conv_grid};
    s->size = stk_dtype_size((stk_dtype)c->dtype);
    s->thirds = s->floats ? 3 : 1;
    STK_TRY(stk_grid_plan_make(&s->plan, c, way, err));
    s->panels = stk_ceil_div(s->plan.dest_c, SIDE);
    cut_up(s);
    s->images = stk_min_i64(s->images, c->n);
    if (way == STK_GRID_WEIGHT)
        stk_grid_choose_across(s, c->n);
    else
        choose_across(s, c->n);
    size_up(s);
    return STK_OK;
}

bool stk_grid_ask(const stk_conv *c, int way, stk_grid_state *s)
{
    const bool good = stk_grid_state_init(s, c, way, NULL) == STK_OK;
    stk_grid_plan_discard(&s->plan);
    return good;
}

/* Pieces to be ready: panels of weights, or across the grids of phases; whose notes are followed by those of panels then. */
static int64_t pieces_of(const stk_grid_state *s)
{
    return s->plan.phases * (s->across ? 1 : s->panels);
}

static int64_t notes(const stk_grid_state *s) { return s->plan.phases * (s->panels + 1); }

/* Of what is made ready. */
static int64_t shared_bytes(const stk_grid_state *s)
{
    return s->across ? s->plan.phases * s->plane * s->thirds : weights_bytes(s);
}

static int64_t scratch(const void *params, int way, int32_t parts)
{
    stk_grid_state s;
    (void)parts;
    return stk_grid_ask(params, way, &s) ? shared_bytes(&s) + stk_grid_line(notes(&s)) : 0;
}

static int64_t room_of(const void *params, int way)
{
    stk_grid_state s;
    const int64_t few = way == STK_GRID_BACK ? stk_conv_few_floats(params) : 0;
    if (!stk_grid_ask(params, way, &s)) return 0;
    return stk_max_i64(s.room.total, few * (int64_t)sizeof(float));
}

/* Fewer than half a tile of channels, or of what a result reads, is mostly padding; floats have to be worth their cutting. A few
 * channels are gathered one by one, which has to serve many results: else they are left to kernels of floats. */
bool stk_grid_takes(const stk_conv *c, int way)
{
    enum { LEAST = 16, LEAST_FLOATS = 32, FEW = 8, MANY = 48 };
    const int64_t taps = c->kernel[0] * c->kernel[1] * c->kernel[2];
    const int64_t source = way == STK_GRID_BACK ? c->oc : c->ic;
    const int64_t dest = way == STK_GRID_BACK ? c->ic : c->oc;
    const int64_t least = c->dtype == STK_F32 ? LEAST_FLOATS : LEAST;
    if (source < FEW && (dest < MANY || way == STK_GRID_BACK)) return false;
    return (c->dtype == STK_F32 || c->dtype == STK_BF16) && stk_isa_has_tiles() && dest >= least &&
           source * taps >= least && stk_grid_plan_takes(c, way);
}

static int64_t units_of(const stk_conv *c, int way)
{
    stk_grid_state s;
    return stk_grid_ask(c, way, &s) && s.across ? s.panels : c->n;
}

/* A part should have some hundred pixels. */
static int64_t grain_of(const stk_conv *c, int way)
{
    stk_grid_state s;
    if (stk_grid_ask(c, way, &s) && s.across) return 1;
    return stk_ceil_div(512, stk_max_i64(c->out[0] * c->out[1] * c->out[2], 1));
}

static uint32_t aligned_of(const stk_conv *c, int way)
{
    stk_grid_state s;
    return stk_grid_ask(c, way, &s) && !s.across ? stk_conv_data_aligned(c) : 0;
}

void stk_grid_discard(stk_launch *launch)
{
    stk_grid_state *s = launch->state;
    if (!s) return;
    stk_grid_plan_discard(&s->plan);
    stk_free(s);
    launch->state = NULL;
}

stk_status stk_grid_prepare(stk_launch *launch, int way, stk_error *err)
{
    stk_grid_state *s = launch->state = stk_calloc(1, sizeof *s);
    if (!s) return stk_fail_memory(err, "a convolution", sizeof *s);
    const stk_status status = stk_grid_state_init(s, launch->params, way, err);
    if (status != STK_OK) stk_grid_discard(launch);
    return status;
}

/* ---- the grid ---------------------------------------------------------------------------------------------------- */

stk_grid_desk stk_grid_desk_of(const stk_launch *launch)
{
    const stk_grid_room *r = &((const stk_grid_state *)launch->state)->room;
    stk_grid_desk d = {.grid = launch->room};
    d.row = d.grid + r->grid;
    d.squares = d.row + r->row;
    d.at = (int64_t *)(void *)(d.squares + r->squares);
    d.sums = (float *)(void *)((char *)d.at + r->at);
    d.turned = (char *)d.sums + r->sums;
    return d;
}

/* Across, the grid of a phase is shared. */
static stk_grid_desk desk_across(const stk_launch *launch, int64_t phase)
{
    const stk_grid_state *s = launch->state;
    stk_grid_desk d = stk_grid_desk_of(launch);
    d.grid = (char *)launch->scratch + phase * s->plane * s->thirds;
    return d;
}

bool stk_grid_fill(const stk_grid_state *s, const stk_grid_desk *d, const stk_grid_chunk *c,
                   const char *x)
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
        memset(to + t * s->plane, 0, (size_t)(STK_GRID_SLACK * s->plan.numbers * 2));
    return infinite;
}

/* ---- weights, packed ------------------------------------------------------------------------------------------- */

static int64_t pieces(const stk_launch *launch) { return pieces_of(launch->state); }

/* Numbers from `first` on of a point of tap t, as lines, by channels from j on, as lanes. A copy where they are not side by side. */
static bool pack_step(const stk_grid_state *s, const stk_grid_phase *p, int64_t t, int64_t first,
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
        memset(to, 0, (size_t)stk_grid_tile(s));
        return false;
    }
    const int64_t *order = p->order + p->tap[t].first + first / in;
    const int64_t number = first % in;
    if (number + from.lines <= in) {
        from.from =
            w +
            (back ? (*order * out + j) * in + number : (*order * in + number) * out + j) * s->size;
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
    const stk_grid_state *s = launch->state;
    char *at = launch->scratch;
    for (int64_t i = 0; i < phase; i++) at += phase_bytes(s, &s->plan.phase[i]);
    return at;
}

static char *notes_of(const stk_launch *launch)
{
    return (char *)launch->scratch + shared_bytes(launch->state);
}

static bool pack_panel(const stk_grid_state *s, const stk_grid_phase *p, int64_t panel,
                       const char *w, char *to)
{
    bool infinite = false;
    for (int64_t t = 0; t < p->taps; t++)
        for (int64_t first = 0; first < s->plan.numbers; first += SIDE, to += stk_grid_tile(s))
            infinite |= pack_step(s, p, t, first, panel * SIDE, w, to);
    return infinite;
}

static void ready(const stk_launch *launch, int64_t piece)
{
    const stk_grid_state *s = launch->state;
    const int64_t phase = s->across ? piece : piece / s->panels, panel = piece % s->panels;
    const stk_grid_phase *p = &s->plan.phase[phase];
    if (s->across) {
        stk_grid_desk d = desk_across(launch, phase);
        const stk_grid_chunk c = stk_grid_chunk_of(&s->plan, p, 0, s->images, 0, s->rows);
        notes_of(launch)[piece] = p->taps && stk_grid_fill(s, &d, &c, launch->arg[0]);
        return;
    }
    char *to = weights_of(launch, phase) + phase_bytes(s, p) / s->panels * panel;
    notes_of(launch)[piece] = pack_panel(s, p, panel, launch->arg[1], to);
}

static bool pieces_are_infinite(const stk_launch *launch)
{
    return memchr(notes_of(launch), 1, (size_t)pieces_of(launch->state)) != NULL;
}

/* ---- forward and backward data --------------------------------------------------------------------------------- */

static int64_t list_squares(const stk_grid_state *s, const stk_grid_chunk *c, stk_grid_square *out)
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

int64_t stk_grid_dest_bytes(const stk_grid_state *s)
{
    const int64_t *dest = s->plan.dest;
    return dest[0] * dest[1] * dest[2] * s->plan.dest_c * s->size;
}

/* Results that no tap reaches. */
static void put_zeros(const stk_grid_state *s, const stk_grid_chunk *c, char *y)
{
    const int64_t pixel = s->plan.dest_c * s->size;
    int64_t place = 0, run = 0;
    for (int64_t at = stk_grid_next(&s->plan, c, 0, &place, &run); at < c->together;
         at = stk_grid_next(&s->plan, c, at + run, &place, &run))
        for (int64_t i = 0; i < run; i++)
            memset(y + (place + i * c->phase->to_step[2]) * pixel, 0, (size_t)pixel);
}

/* Squares and steps of a chunk; its weights are to be named. */
static stk_grid_data chunk_data(const stk_grid_state *s, const stk_grid_desk *d,
                                const stk_grid_chunk *c, char *y)
{
    const stk_grid_phase *p = c->phase;
    const int64_t point = s->plan.numbers * 2;
    stk_grid_square *square = (stk_grid_square *)(void *)d->squares;
    int64_t steps = 0;
    for (int64_t t = 0; t < p->taps; t++)
        for (int64_t block = 0; block < blocks_of(s); block++)
            d->at[steps++] = stk_grid_shift(c, &p->tap[t]) * point + block * SIDE * 2;
    return (stk_grid_data){.floats = s->floats,
                           .grid = d->grid,
                           .point = point,
                           .plane = s->plane,
                           .at = d->at,
                           .steps = steps,
                           .last = s->plan.dest_c,
                           .square = square,
                           .squares = list_squares(s, c, square),
                           .y = y,
                           .channels = s->plan.dest_c,
                           .sums = d->sums};
}

/* Results lo..hi by the reference. */
static void run_plainly(const stk_launch *launch, int64_t lo, int64_t hi)
{
    const stk_grid_state *s = launch->state;
    const stk_impl *ref =
        s->plan.way == STK_GRID_BACK ? &stk_impl_conv_bwd_data_ref : &stk_impl_conv_ref;
    ref->run(launch, lo, hi, 0);
}

/* Panels lo..hi of all images; their weights are packed here, as nobody else needs them. */
static void run_across(const stk_launch *launch, int64_t lo, int64_t hi)
{
    const stk_grid_state *s = launch->state;
    for (int64_t i = 0; i < s->plan.phases; i++) {
        const stk_grid_phase *p = &s->plan.phase[i];
        const stk_grid_desk d = desk_across(launch, i);
        const stk_grid_chunk c = stk_grid_chunk_of(&s->plan, p, 0, s->images, 0, s->rows);
        if (!p->taps) {
            if (!lo) put_zeros(s, &c, launch->arg[2]);
            continue;
        }
        stk_grid_data data = chunk_data(s, &d, &c, launch->arg[2]);
        data.weights = d.turned;
        for (int64_t panel = lo; panel < hi; panel++) {
            notes_of(launch)[pieces_of(s) + i * s->panels + panel] =
                pack_panel(s, p, panel, launch->arg[1], d.turned);
            data.first = panel * SIDE;
            data.last = stk_min_i64(data.first + SIDE, s->plan.dest_c);
            s->vec->data(&data);
        }
    }
}

/* Across, parts do not have whole images. */
static void finish(const stk_launch *launch)
{
    const stk_grid_state *s = launch->state;
    bool infinite = s->across && pieces_are_infinite(launch);
    for (int64_t i = 0; s->across && i < s->plan.phases * s->panels; i++)
        infinite |= s->plan.phase[i / s->panels].taps && notes_of(launch)[pieces_of(s) + i];
    if (infinite) run_plainly(launch, 0, ((const stk_conv *)launch->params)->n);
}

static void data_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const stk_grid_state *s = launch->state;
    const stk_grid_desk d = stk_grid_desk_of(launch);
    (void)part;
    if (s->across) {
        run_across(launch, lo, hi);
        return;
    }
    if (pieces_are_infinite(launch)) {
        run_plainly(launch, lo, hi);
        return;
    }
    for (int64_t image = lo; image < hi; image += s->images) {
        const int64_t images = stk_min_i64(s->images, hi - image);
        char *y = (char *)launch->arg[2] + image * stk_grid_dest_bytes(s);
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
                infinite |= stk_grid_fill(s, &d, &c, launch->arg[0]);
                stk_grid_data data = chunk_data(s, &d, &c, y);
                data.weights = weights_of(launch, i);
                s->vec->data(&data);
            }
        }
        if (infinite) run_plainly(launch, image, image + images);
    }
}

static void back_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const stk_grid_state *s = launch->state;
    const int64_t floats = s->room.total / (int64_t)sizeof(float);
    if (s->across)
        data_run(launch, lo, hi, part);
    else
        stk_conv_few_data(launch, lo, hi, part, launch->room,
                          stk_max_i64(floats, stk_conv_few_floats(launch->params)), data_run);
}

/* ---- two kernels ------------------------------------------------------------------------------------------------ */

static stk_status prepare(stk_launch *launch, int way, stk_error *err)
{
    return stk_grid_prepare(launch, way, err);
}

#define WAY(word, WAY_)                                                                            \
    STK_CONV_WAY(word, WAY_)                                                                       \
    static bool word##_supports(const void *params) { return stk_grid_takes(params, WAY_); }       \
    static int64_t word##_room(const void *params) { return room_of(params, WAY_); }               \
    static int64_t word##_units(const void *params) { return units_of(params, WAY_); }             \
    static int64_t word##_grain(const void *params) { return grain_of(params, WAY_); }             \
    static uint32_t word##_aligned(const void *params) { return aligned_of(params, WAY_); }
WAY(forward, STK_GRID_FORWARD)
WAY(back, STK_GRID_BACK)

const stk_impl stk_impl_conv_grid = {.name = "grid",
                                     .kernel = STK_K_CONV,
                                     .rank = 4,
                                     .supports = forward_supports,
                                     .units = forward_units,
                                     .grain = forward_grain,
                                     .aligned = forward_aligned,
                                     .scratch = forward_scratch,
                                     .room = forward_room,
                                     .prepare = forward_prepare,
                                     .discard = stk_grid_discard,
                                     .pieces = pieces,
                                     .ready = ready,
                                     .run = data_run,
                                     .finish = finish};
const stk_impl stk_impl_conv_bwd_data_grid = {.name = "grid",
                                              .kernel = STK_K_CONV_BWD_DATA,
                                              .rank = 4,
                                              .supports = back_supports,
                                              .units = back_units,
                                              .grain = back_grain,
                                              .aligned = back_aligned,
                                              .scratch = back_scratch,
                                              .room = back_room,
                                              .prepare = back_prepare,
                                              .discard = stk_grid_discard,
                                              .pieces = pieces,
                                              .ready = ready,
                                              .run = back_run,
                                              .finish = finish};
