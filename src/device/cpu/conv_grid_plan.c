/* Phases, taps and grids of convolutions by tiles (conv_grid_plan.h). */
#include "device/cpu/conv_grid_plan.h"

#include "base/memory.h"

#include <string.h>

enum { SIDE = 32 };

static int64_t volume(const int64_t size[3]) { return size[0] * size[1] * size[2]; }

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/* ---- axes -------------------------------------------------------------------------------------------------- */

/* The taps of one axis for the results to, to + step, ...: in the order of their places in the source. */
typedef struct axis_taps {
    int64_t count, low, high; /* shifts */
    int64_t remainders;       /* 1, or all from 0 to from_step - 1 */
} axis_taps;

static bool tap_offset(const stk_conv *c, int way, int i, int64_t to, int64_t k, int64_t *offset)
{
    if (way != STK_GRID_BACK) {
        *offset = k * c->dilation[i] - c->low[i];
        return true;
    }
    const int64_t at = to + c->low[i] - k * c->dilation[i];
    *offset = at / c->stride[i];
    return at % c->stride[i] == 0;
}

/* Number n of the taps as they come: backward runs through the kernel from its end. */
static int64_t tap_at(const stk_conv *c, int way, int i, int64_t n)
{
    return way == STK_GRID_BACK ? c->kernel[i] - 1 - n : n;
}

static int64_t from_step(const stk_conv *c, int way, int i)
{
    return way == STK_GRID_BACK ? 1 : c->stride[i];
}

static axis_taps look_at_axis(const stk_conv *c, int way, int i, int64_t to)
{
    const int64_t step = from_step(c, way, i);
    axis_taps a = {.remainders = 1};
    for (int64_t n = 0, offset; n < c->kernel[i]; n++) {
        if (!tap_offset(c, way, i, to, tap_at(c, way, i, n), &offset)) continue;
        const int64_t shift = floor_div(offset, step);
        if (!a.count || shift < a.low) a.low = shift;
        if (!a.count || shift > a.high) a.high = shift;
        a.count++;
    }
    if (step > 1 && (c->kernel[i] > 1 || c->low[i])) a.remainders = step;
    return a;
}

/* ---- phases -------------------------------------------------------------------------------------------------- */

/* Axes from this one on are merged: those along which it is cheaper to copy more than to multiply zeros. */
static int first_merged(const stk_conv *c, int64_t source_c)
{
    int64_t merged = 1;
    int first = 3;
    for (int i = 2; i >= 0; i--) {
        const int64_t now = stk_round_up(merged * source_c, SIDE) * c->kernel[i];
        const int64_t then = stk_round_up(merged * c->kernel[i] * source_c, SIDE);
        if (then * 4 > now * 3) break;
        merged *= c->kernel[i];
        first = i;
    }
    return first;
}

/* Pictures so small that most of a grid would be its edges are gathered. */
static bool mostly_edges(const stk_conv *c, int way, int64_t to_count[3])
{
    double points = 1, results = 1;
    for (int i = 0; i < 3; i++) {
        const axis_taps a = look_at_axis(c, way, i, 0);
        if (i) points *= (double)(to_count[i] + a.high - a.low);
        if (i) results *= (double)to_count[i];
    }
    return points > 1.7 * results;
}

static void look_at_axes(stk_grid_plan *plan, stk_grid_phase *p, const stk_conv *c, int first,
                         const int64_t to[3], axis_taps taps[3])
{
    p->grids = p->taps = p->pieces = p->merged = 1;
    for (int i = 0; i < 3; i++) {
        const axis_taps a = taps[i] = look_at_axis(c, plan->way, i, to[i]);
        p->to[i] = to[i];
        p->to_step[i] = plan->way == STK_GRID_BACK ? c->stride[i] : 1;
        p->count[i] = plan->dest[i] > to[i] ? (plan->dest[i] - to[i] - 1) / p->to_step[i] + 1 : 0;
        p->from_step[i] = from_step(c, plan->way, i);
        if (i < first) {
            p->low[i] = a.low;
            p->reach[i] = a.high - a.low;
            p->grids *= a.remainders;
            p->taps *= a.count;
        } else {
            p->merged *= a.count;
        }
    }
    if (!p->merged) p->taps = 0;
}

/* Splits number n into three, the last one fastest. */
static void unravel(int64_t n, const int64_t size[3], int64_t out[3])
{
    for (int i = 2; i >= 0; i--) {
        out[i] = n % size[i];
        n /= size[i];
    }
}

/* Tap n of those that axis i has. */
static int64_t nth_tap(const stk_conv *c, int way, int i, int64_t to, int64_t n, int64_t *offset)
{
    for (int64_t k = 0;; k++) {
        const int64_t tap = tap_at(c, way, i, k);
        if (tap_offset(c, way, i, to, tap, offset) && n-- == 0) return tap;
    }
}

static void list_grids(stk_grid_phase *p, int first, const axis_taps taps[3])
{
    int64_t size[3];
    for (int i = 0; i < 3; i++) size[i] = i < first ? taps[i].remainders : 1;
    for (int64_t g = 0; g < p->grids; g++) unravel(g, size, p->remainder[g]);
}

/* What a point has: taps of merged axes, joined along the last one where they touch. */
static void list_pieces(stk_grid_plan *plan, stk_grid_phase *p, const stk_conv *c, int first,
                        const axis_taps taps[3])
{
    int64_t size[3], at[3];
    for (int i = 0; i < 3; i++) size[i] = i < first ? 1 : taps[i].count;
    p->pieces = 0;
    for (int64_t m = 0; m < p->merged; m++) {
        stk_grid_piece piece = {.pixels = 1};
        unravel(m, size, at);
        for (int i = first; i < 3; i++) nth_tap(c, plan->way, i, p->to[i], at[i], &piece.offset[i]);
        stk_grid_piece *before = p->pieces ? &p->piece[p->pieces - 1] : NULL;
        if (before && before->offset[0] == piece.offset[0] &&
            before->offset[1] == piece.offset[1] &&
            before->offset[2] + before->pixels == piece.offset[2])
            before->pixels++;
        else
            p->piece[p->pieces++] = piece;
    }
}

static void list_taps(stk_grid_plan *plan, stk_grid_phase *p, const stk_conv *c, int first,
                      const axis_taps taps[3])
{
    int64_t size[3], at[3], tap[3] = {0};
    for (int i = 0; i < 3; i++) size[i] = taps[i].count;
    for (int64_t n = 0; n < p->taps * p->merged; n++) {
        stk_grid_tap *t = &p->tap[n / p->merged];
        if (n % p->merged == 0) *t = (stk_grid_tap){.first = n};
        unravel(n, size, at);
        for (int i = 0; i < 3; i++) {
            int64_t offset = 0;
            tap[i] = nth_tap(c, plan->way, i, p->to[i], at[i], &offset);
            if (i >= first || n % p->merged) continue;
            t->shift[i] = floor_div(offset, p->from_step[i]) - p->low[i];
            t->grid = t->grid * taps[i].remainders + offset -
                      floor_div(offset, p->from_step[i]) * p->from_step[i];
        }
        p->order[n] = (tap[0] * c->kernel[1] + tap[1]) * c->kernel[2] + tap[2];
    }
}

static stk_status make_phase(stk_grid_plan *plan, stk_grid_phase *p, const stk_conv *c, int first,
                             const int64_t to[3], stk_error *err)
{
    axis_taps taps[3];
    look_at_axes(plan, p, c, first, to, taps);
    const size_t all = (size_t)stk_max_i64(p->taps * p->merged, 1);
    p->remainder = stk_calloc((size_t)p->grids, sizeof *p->remainder);
    p->tap = stk_calloc((size_t)stk_max_i64(p->taps, 1), sizeof *p->tap);
    p->piece = stk_calloc((size_t)stk_max_i64(p->merged, 1), sizeof *p->piece);
    p->order = stk_calloc(all, sizeof *p->order);
    if (!p->remainder || !p->tap || !p->piece || !p->order)
        return stk_fail_memory(err, "the taps of a convolution", all * sizeof *p->order);
    if (!p->taps) return STK_OK;
    list_grids(p, first, taps);
    list_pieces(plan, p, c, first, taps);
    list_taps(plan, p, c, first, taps);
    plan->filled = stk_max_i64(plan->filled, p->merged * plan->source_c);
    plan->all_taps += p->taps;
    return STK_OK;
}

static void set_sizes(stk_grid_plan *plan, const stk_conv *c, int way, int64_t phases[3])
{
    const bool back = way == STK_GRID_BACK;
    *plan = (stk_grid_plan){.way = way, .phases = 1};
    for (int i = 0; i < 3; i++) {
        plan->source[i] = back ? c->out[i] : c->in[i];
        plan->dest[i] = back ? c->in[i] : c->out[i];
        phases[i] = back ? stk_min_i64(c->stride[i], c->in[i]) : 1;
        plan->phases *= phases[i];
    }
    plan->source_c = back ? c->oc : c->ic;
    plan->dest_c = back ? c->ic : c->oc;
    plan->band = plan->dest[0] > 1 ? 0 : 1;
}

stk_status stk_grid_plan_make(stk_grid_plan *plan, const stk_conv *c, int way, stk_error *err)
{
    int64_t phases[3], to[3], count[3];
    set_sizes(plan, c, way, phases);
    plan->phase = stk_calloc((size_t)plan->phases, sizeof *plan->phase);
    if (!plan->phase) return stk_fail_memory(err, "a convolution", sizeof *plan->phase);
    for (int i = 0; i < 3; i++) count[i] = stk_ceil_div(plan->dest[i], phases[i]);
    const int first = mostly_edges(c, way, count) ? 0 : first_merged(c, plan->source_c);
    for (int64_t i = 0; i < plan->phases; i++) {
        unravel(i, phases, to);
        STK_TRY(make_phase(plan, &plan->phase[i], c, first, to, err));
    }
    plan->numbers = stk_round_up(stk_max_i64(plan->filled, 1), SIDE);
    return STK_OK;
}

void stk_grid_plan_discard(stk_grid_plan *plan)
{
    for (int64_t i = 0; plan->phase && i < plan->phases; i++) {
        stk_free(plan->phase[i].remainder);
        stk_free(plan->phase[i].tap);
        stk_free(plan->phase[i].piece);
        stk_free(plan->phase[i].order);
    }
    stk_free(plan->phase);
    plan->phase = NULL;
}

bool stk_grid_plan_takes(const stk_conv *c, int way)
{
    double phases = 1, taps = 1, reach = 1;
    if (c->groups != 1 || c->n < 1) return false;
    for (int i = 0; i < 3; i++) {
        if (c->in[i] < 1 || c->out[i] < 1) return false;
        phases *= way == STK_GRID_BACK ? (double)stk_min_i64(c->stride[i], c->in[i])
                                       : (double)c->stride[i];
        taps *= (double)c->kernel[i];
        reach *= ((double)(c->kernel[i] - 1) * (double)c->dilation[i] + 1 + (double)c->out[i]);
    }
    return phases < 100 && taps < 1e4 && reach < 1e7;
}

/* ---- chunks -------------------------------------------------------------------------------------------------- */

stk_grid_chunk stk_grid_chunk_of(const stk_grid_plan *plan, const stk_grid_phase *p, int64_t image,
                                 int64_t images, int64_t row, int64_t rows)
{
    stk_grid_chunk c = {p, .image = image, .images = images, .row = row};
    c.rows = stk_min_i64(rows, p->count[plan->band] - row);
    for (int i = 0; i < 3; i++) c.size[i] = (i == plan->band ? c.rows : p->count[i]) + p->reach[i];
    c.points = volume(c.size);
    c.together = images * c.points;
    return c;
}

int64_t stk_grid_shift(const stk_grid_chunk *c, const stk_grid_tap *t)
{
    return t->grid * c->together + (t->shift[0] * c->size[1] + t->shift[1]) * c->size[2] +
           t->shift[2];
}

int64_t stk_grid_next(const stk_grid_plan *plan, const stk_grid_chunk *c, int64_t at,
                      int64_t *place, int64_t *run)
{
    const stk_grid_phase *p = c->phase;
    int64_t count[3], i[3];
    for (int k = 0; k < 3; k++) count[k] = k == plan->band ? c->rows : p->count[k];
    if (volume(count) < 1) return c->together;
    while (at < c->together) {
        unravel(at % c->points, c->size, i);
        if (i[2] >= count[2]) {
            at += c->size[2] - i[2];
        } else if (i[1] >= count[1]) {
            at += (c->size[1] - i[1]) * c->size[2] - i[2];
        } else if (i[0] >= count[0]) {
            at += c->points - at % c->points;
        } else {
            i[plan->band] += c->row;
            *place = at / c->points;
            for (int k = 0; k < 3; k++)
                *place = *place * plan->dest[k] + p->to[k] + i[k] * p->to_step[k];
            *run = count[2] - i[2];
            return at;
        }
    }
    return c->together;
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

/* Pixels of row (z, y) of the source from x on, zeros where there are none. */
static void put_pixels(const stk_grid_plan *plan, const char *image, int64_t z, int64_t y,
                       int64_t x, int64_t pixels, int64_t pixel, char *to)
{
    const bool inside = z >= 0 && z < plan->source[0] && y >= 0 && y < plan->source[1];
    const int64_t left = inside ? stk_min_i64(stk_max_i64(-x, 0), pixels) : pixels;
    const int64_t end = inside ? stk_max_i64(stk_min_i64(plan->source[2] - x, pixels), left) : left;
    if (left) memset(to, 0, (size_t)(left * pixel));
    if (end > left)
        memcpy(to + left * pixel,
               image + ((z * plan->source[1] + y) * plan->source[2] + x + left) * pixel,
               (size_t)((end - left) * pixel));
    if (pixels > end) memset(to + end * pixel, 0, (size_t)((pixels - end) * pixel));
}

void stk_grid_row(const stk_grid_plan *plan, const stk_grid_chunk *c, int64_t grid, int64_t image,
                  int64_t d, int64_t h, const char *x, int64_t size, char *to)
{
    const stk_grid_phase *p = c->phase;
    const int64_t pixel = plan->source_c * size, point = plan->numbers * size;
    int64_t i[3] = {d, h, 0}, at[3];
    i[plan->band] += c->row;
    for (int k = 0; k < 3; k++)
        at[k] = (i[k] + p->low[k]) * p->from_step[k] + p->remainder[grid][k];
    x += (c->image + image) * volume(plan->source) * pixel;
    if (p->pieces == 1 && p->piece->pixels == 1 && p->from_step[2] == 1 && pixel == point) {
        put_pixels(plan, x, at[0] + p->piece->offset[0], at[1] + p->piece->offset[1],
                   at[2] + p->piece->offset[2], c->size[2], pixel, to);
        return;
    }
    for (int64_t w = 0; w < c->size[2]; w++, at[2] += p->from_step[2], to += point) {
        char *piece = to;
        for (int64_t k = 0; k < p->pieces; k++) {
            const int64_t *offset = p->piece[k].offset;
            put_pixels(plan, x, at[0] + offset[0], at[1] + offset[1], at[2] + offset[2],
                       p->piece[k].pixels, pixel, piece);
            piece += p->piece[k].pixels * pixel;
        }
        memset(piece, 0, (size_t)(to + point - piece));
    }
}
