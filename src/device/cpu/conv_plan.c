/* Phases, bands and runs of the own convolution kernels (conv_plan.h). */
#include "device/cpu/conv_plan.h"

#include <string.h>

enum { BAND_MOST = 1 << 24 }; /* elements; beyond this the reference kernel serves */

/* Tap k of axis i as an offset in source pixels for destination pixel `to`; false when no source pixel
 * lies there (backward, between the strides). */
static bool tap_offset(const stk_conv_plan *plan, int i, int64_t to, int64_t k, int64_t *offset)
{
    const stk_conv *c = plan->conv;
    int64_t at = plan->back ? to + c->low[i] - k * c->dilation[i] : k * c->dilation[i] - c->low[i];
    if (!plan->back) {
        *offset = at;
        return true;
    }
    if (at % c->stride[i]) return false;
    *offset = at / c->stride[i];
    return true;
}

/* Taps in order of rising source offset: backward runs through the kernel from its end. */
static int64_t tap_at(const stk_conv_plan *plan, int i, int64_t nth)
{
    return plan->back ? plan->conv->kernel[i] - 1 - nth : nth;
}

static void axis_get(const stk_conv_plan *plan, int i, int64_t to, stk_conv_axis *a)
{
    *a = (stk_conv_axis){.to = to};
    a->to_step = plan->back ? plan->conv->stride[i] : 1;
    a->from_step = plan->back ? 1 : plan->conv->stride[i];
    a->count = plan->dest[i] > to ? (plan->dest[i] - to - 1) / a->to_step + 1 : 0;
    bool any = false;
    int64_t last = 0, offset;
    for (int64_t nth = 0; nth < plan->conv->kernel[i]; nth++) {
        if (!tap_offset(plan, i, to, tap_at(plan, i, nth), &offset)) continue;
        if (!any) a->from = offset;
        any = true;
        last = offset;
    }
    a->reach = any ? last - a->from + 1 : 0;
}

static bool axis_padded(const stk_conv_axis *a, int64_t size)
{
    return a->reach && (a->from < 0 || a->from + (a->count - 1) * a->from_step + a->reach > size);
}

static int64_t extent(const stk_conv_axis *a, int64_t pixels)
{
    return a->reach ? (pixels - 1) * a->from_step + a->reach : 0;
}

/* Even cuts of `count` into pieces of at most `most`. */
static int64_t even_piece(int64_t count, int64_t most)
{
    if (count <= most) return stk_max_i64(count, 1);
    return stk_ceil_div(count, stk_ceil_div(count, stk_max_i64(most, 1)));
}

/* Destination pixels along one axis whose source, `each` elements per source pixel, stays within the limit. */
static int64_t fit(const stk_conv_plan *plan, const stk_conv_axis *a, int64_t each)
{
    int64_t room = plan->band_source / each - a->reach;
    return room < 0 ? 0 : room / a->from_step + 1;
}

/* Whole rows while they fit, else pieces of one row. */
static void cut_bands(const stk_conv_plan *plan, stk_conv_phase *p)
{
    const stk_conv_axis *rows = &p->axis[1], *cols = &p->axis[2];
    int64_t pixel = stk_max_i64(p->axis[0].reach, 1) * plan->source_c;
    int64_t most = fit(plan, rows, stk_max_i64(extent(cols, cols->count), 1) * pixel);
    p->band_cols = cols->count;
    if (most < 1) {
        most = fit(plan, cols, stk_max_i64(rows->reach, 1) * pixel);
        p->band_cols = even_piece(cols->count, stk_max_i64(most, 16));
    }
    if (p->band_cols > 4 * plan->band_pixels)
        p->band_cols = even_piece(cols->count, 2 * plan->band_pixels);
    bool whole = p->band_cols == cols->count;
    most = stk_min_i64(most, plan->band_pixels / stk_max_i64(cols->count, 1));
    p->band_rows = whole ? even_piece(rows->count, stk_max_i64(most, 1)) : 1;
}

void stk_conv_phase_get(const stk_conv_plan *plan, int64_t index, stk_conv_phase *phase)
{
    memset(phase, 0, sizeof *phase);
    int64_t to[3] = {index / plan->phases[2] / plan->phases[1],
                     index / plan->phases[2] % plan->phases[1], index % plan->phases[2]};
    for (int i = 0; i < 3; i++) {
        axis_get(plan, i, to[i], &phase->axis[i]);
        phase->padded |= axis_padded(&phase->axis[i], plan->source[i]);
    }
    cut_bands(plan, phase);
    phase->span[0] = phase->padded ? phase->axis[0].reach : plan->source[0];
    phase->span[1] = phase->padded ? extent(&phase->axis[1], phase->band_rows) : plan->source[1];
    phase->span[2] = phase->padded ? extent(&phase->axis[2], phase->band_cols) : plan->source[2];
}

/* One band each, and so few pixels that the weights would be read again and again. */
static int64_t images_together(const stk_conv_plan *plan)
{
    enum { HEAVY = 1 << 16, PIXELS = 256, MOST = 16 };
    int64_t pixels = 1;
    if (plan->rows * plan->dest_c < HEAVY) return 1;
    for (int64_t i = 0; i < stk_conv_plan_phases(plan); i++) {
        stk_conv_phase p;
        stk_conv_phase_get(plan, i, &p);
        bool whole = p.axis[0].count == 1 && p.band_rows >= p.axis[1].count &&
                     p.band_cols >= p.axis[2].count;
        if (!whole) return 1;
        pixels = stk_max_i64(pixels, p.axis[1].count * p.axis[2].count);
    }
    return stk_min_i64(stk_max_i64(PIXELS / pixels, 1),
                       stk_min_i64(MOST, stk_max_i64(plan->conv->n, 1)));
}

void stk_conv_plan_init(stk_conv_plan *plan, const stk_conv *conv, bool back, int64_t band_source,
                        int64_t band_pixels)
{
    *plan = (stk_conv_plan){.conv = conv, .back = back, .taps = 1, .size = sizeof(float)};
    plan->band_source = band_source;
    plan->band_pixels = band_pixels;
    for (int i = 0; i < 3; i++) {
        plan->source[i] = back ? conv->out[i] : conv->in[i];
        plan->dest[i] = back ? conv->in[i] : conv->out[i];
        plan->phases[i] = back ? stk_min_i64(conv->stride[i], conv->in[i]) : 1;
        plan->taps *= conv->kernel[i];
    }
    plan->source_c = back ? conv->oc : conv->ic;
    plan->dest_c = back ? conv->ic : conv->oc;
    plan->inner = plan->source_c / conv->groups;
    plan->columns = plan->dest_c / conv->groups;
    plan->rows = plan->taps * plan->inner;
    plan->images = images_together(plan);
}

/* Adds the taps of one kernel row, joined into one run where both source and weights go on. */
static void row_runs(const stk_conv_plan *plan, stk_conv_phase *phase, int64_t to, int64_t first,
                     int64_t tap, int64_t *row, int64_t *order)
{
    int64_t start = phase->runs, offset;
    int64_t inner = plan->inner;
    for (int64_t nth = 0; nth < plan->conv->kernel[2]; nth++) {
        int64_t k = tap_at(plan, 2, nth);
        if (!tap_offset(plan, 2, to, k, &offset)) continue;
        int64_t x = first + (offset - phase->axis[2].from) * plan->source_c;
        stk_conv_run *before = phase->runs > start ? &phase->run[phase->runs - 1] : NULL;
        int64_t at = *row / inner;
        *row += inner;
        if (order) order[at] = tap + k;
        if (before && before->x + before->n == x)
            before->n += inner;
        else
            phase->run[phase->runs++] = (stk_conv_run){x, at * inner, inner};
    }
}

void stk_conv_phase_runs(const stk_conv_plan *plan, int64_t index, stk_conv_phase *phase,
                         int64_t *row, int64_t *order)
{
    const int64_t *kernel = plan->conv->kernel;
    int64_t to[3] = {index / plan->phases[2] / plan->phases[1],
                     index / plan->phases[2] % plan->phases[1], index % plan->phases[2]};
    int64_t d, h;
    for (int64_t i = 0; i < kernel[0]; i++) {
        int64_t kd = tap_at(plan, 0, i);
        if (!tap_offset(plan, 0, to[0], kd, &d)) continue;
        for (int64_t j = 0; j < kernel[1]; j++) {
            int64_t kh = tap_at(plan, 1, j);
            if (!tap_offset(plan, 1, to[1], kh, &h)) continue;
            int64_t line = (d - phase->axis[0].from) * phase->span[1] + (h - phase->axis[1].from);
            row_runs(plan, phase, to[2], line * phase->span[2] * plan->source_c,
                     (kd * kernel[1] + kh) * kernel[2], row, order);
        }
    }
}

int64_t stk_conv_plan_band(const stk_conv_plan *plan)
{
    int64_t most = 0, phases = stk_conv_plan_phases(plan);
    for (int64_t i = 0; i < phases; i++) {
        stk_conv_phase p;
        stk_conv_phase_get(plan, i, &p);
        if (!p.padded) continue;
        double size =
            (double)p.span[0] * (double)p.span[1] * (double)p.span[2] * (double)plan->source_c;
        if (size > BAND_MOST) return -1;
        most = stk_max_i64(most, (int64_t)size);
    }
    return most;
}

/* One source row with zeros where it lies outside. */
static void copy_row(const stk_conv_plan *plan, const char *x, int64_t first, int64_t cols,
                     char *to)
{
    const int64_t pixel = plan->source_c * plan->size;
    int64_t left = first < 0 ? stk_min_i64(-first, cols) : 0;
    int64_t end = stk_max_i64(stk_min_i64(cols, plan->source[2] - first), left);
    memset(to, 0, (size_t)(left * pixel));
    memcpy(to + left * pixel, x + (first + left) * pixel, (size_t)((end - left) * pixel));
    memset(to + end * pixel, 0, (size_t)((cols - end) * pixel));
}

const void *stk_conv_band(const stk_conv_plan *plan, const stk_conv_phase *phase, const void *x,
                          int64_t d, int64_t row, int64_t rows, int64_t col, int64_t cols,
                          void *band)
{
    const stk_conv_axis *a = phase->axis;
    const char *from = x;
    const int64_t pixel = plan->source_c * plan->size;
    int64_t z = a[0].from + d * a[0].from_step, y = a[1].from + row * a[1].from_step;
    int64_t first = a[2].from + col * a[2].from_step;
    if (!phase->padded) return from + ((z * plan->source[1] + y) * plan->source[2] + first) * pixel;
    int64_t high = extent(&a[1], rows), wide = extent(&a[2], cols);
    for (int64_t i = 0; i < a[0].reach; i++)
        for (int64_t j = 0; j < high; j++) {
            char *to = (char *)band + (i * phase->span[1] + j) * phase->span[2] * pixel;
            bool inside =
                z + i >= 0 && z + i < plan->source[0] && y + j >= 0 && y + j < plan->source[1];
            if (inside)
                copy_row(plan, from + ((z + i) * plan->source[1] + y + j) * plan->source[2] * pixel,
                         first, wide, to);
            else
                memset(to, 0, (size_t)(wide * pixel));
        }
    return band;
}

uint32_t stk_conv_data_aligned(const void *params)
{
    (void)params;
    return 1u | 4u;
}

uint32_t stk_conv_weight_aligned(const void *params)
{
    (void)params;
    return 1u | 2u;
}

stk_status stk_conv_phases_make(const stk_conv_plan *plan, stk_conv_phases *all, stk_error *err)
{
    int64_t n = all->count = stk_conv_plan_phases(plan), row = 0;
    all->phase = stk_calloc((size_t)stk_max_i64(n, 1), sizeof *all->phase);
    all->order = stk_calloc((size_t)plan->taps, sizeof *all->order);
    stk_conv_run *run = stk_calloc((size_t)plan->taps, sizeof *run);
    if (!all->phase || !all->order || !run) {
        stk_free(run);
        return stk_fail_memory(err, "the taps of a convolution", (size_t)plan->taps * sizeof *run);
    }
    all->phase[0].run = run;
    for (int64_t i = 0; i < n; i++) {
        stk_conv_phase *p = &all->phase[i];
        stk_conv_phase_get(plan, i, p);
        p->run = run;
        stk_conv_phase_runs(plan, i, p, &row, all->order);
        run += p->runs;
    }
    return STK_OK;
}

void stk_conv_phases_discard(stk_conv_phases *all)
{
    if (all->phase) stk_free(all->phase[0].run);
    stk_free(all->phase);
    stk_free(all->order);
    *all = (stk_conv_phases){0};
}
