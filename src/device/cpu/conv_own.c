/* Own convolution kernels, float32 (depthwise ones are in conv_deep.c): they walk phases and bands (conv_plan.h) and leave the arithmetic to the vector
 * kernels of vec/conv.h. Units are images.
 *
 * Scratch of one part, in floats, each piece rounded up to a cache line:
 *
 *     data     [ band | packed weights ]          weight   [ band | packed dy | sums ]
 *
 * With at most four channels of results lanes go along the taps and channels of the source instead: weights and their sums are
 * turned, [channel of results][row]. Otherwise weights are packed into panels [rows][registers of columns] when a panel's rows would lie far apart, when the
 * columns do not fill registers, and for backward data, which needs them transposed. */
#include "base/memory.h"
#include "device/cpu/conv_few.h"
#include "device/cpu/conv_plan.h"
#include "device/cpu/cpu.h"
#include "device/cpu/sums.h"
#include "device/cpu/vec/vec.h"

#include <string.h>

enum {
    DATA_BAND = 1 << 15,   /* floats of source per band: a share of the second-level cache */
    WEIGHT_BAND = 1 << 12, /* floats of dy per band: half of the first-level cache */
    FAR = 1 << 14,         /* weights beyond this many floats are packed */
    PANEL = 4,             /* registers of the widest panel */
    FEW = 4,               /* channels of results that leave most of a register empty */
    NARROW = 256,          /* bytes of a pixel of dy up to which it is read in place */
};

typedef struct own_sizes {
    int64_t wide; /* columns of a group rounded up to registers, or ending with half of one */
    int64_t band, bands;   /* floats of one image's band, and of all images that go together */
    int64_t packed, extra; /* floats of scratch; extra: sums of backward weight */
    int64_t total;         /* of a thread's room */
    bool narrow;           /* few channels of results */
} own_sizes;

typedef struct own_state {
    stk_conv_plan plan;
    own_sizes size;
    const stk_vec_conv *vec;
    stk_conv_phases all;
} own_state;

static const stk_vec_conv *vec(void) { return stk_vec_get()->conv; }

static int64_t line(int64_t floats)
{
    return stk_round_up(floats, STK_ALIGN / (int64_t)sizeof(float));
}

/* ---- panels of columns -----------------------------------------------------------------------------------------------
 * By halves of registers: 24 columns of 16 lanes are one and a half, which saves a quarter of the multiply-adds. */

static int64_t wide_of(int64_t columns)
{
    const int64_t width = vec()->width;
    if (columns > width && columns % width == width / 2) return columns;
    return stk_round_up(columns, width);
}

/* Floats of the panel that starts with `left` floats to go; a lone last register is avoided, it is slow. */
static int64_t panel_width(int64_t left)
{
    static const int8_t first[] = {0, 2, 2, 3, 4, 5, 6, 4, 8, 4, 6, 6}; /* of so many halves */
    const int64_t half = vec()->width / 2, halves = left / half;
    return (halves < (int64_t)sizeof first ? first[halves] : 2 * PANEL) * half;
}

static stk_conv_fn *data_of(int64_t panel)
{
    const int64_t halves = panel / (vec()->width / 2);
    return halves % 2 ? vec()->data_half[halves / 2 - 1] : vec()->data[halves / 2 - 1];
}

static stk_conv_fn *weight_of(int64_t panel)
{
    const int64_t halves = panel / (vec()->width / 2);
    return halves % 2 ? vec()->weight_half[halves / 2 - 1] : vec()->weight[halves / 2 - 1];
}

/* ---- sizes -------------------------------------------------------------------------------------- */

/* Runs must fill registers: those of one kernel row are joined where its taps meet neighbours. */
static bool is_narrow(const stk_conv_plan *plan)
{
    const stk_conv *c = plan->conv;
    bool joined = c->dilation[2] == 1 && (!plan->back || c->stride[2] == 1);
    return c->groups == 1 && plan->columns <= FEW && vec()->width > FEW &&
           plan->inner * (joined ? c->kernel[2] : 1) >= vec()->width;
}

static void data_plan(const stk_conv *c, bool back, stk_conv_plan *plan, own_sizes *size)
{
    stk_conv_plan_init(plan, c, back, DATA_BAND, DATA_BAND);
    *size = (own_sizes){.wide = wide_of(plan->columns)};
    size->band = line(stk_conv_plan_band(plan));
    size->bands = size->band * plan->images;
    bool pack = back || size->wide != plan->columns || plan->rows * plan->dest_c > FAR;
    size->narrow = is_narrow(plan);
    if (pack || size->narrow) size->packed = line(c->groups * plan->rows * size->wide);
    size->total = size->bands + size->packed;
}

/* Bands of dy that stay in the first-level cache while all rows of weights pass over them. */
static void weight_plan(const stk_conv *c, stk_conv_plan *plan, own_sizes *size)
{
    stk_conv_plan_init(plan, c, false, DATA_BAND, stk_max_i64(WEIGHT_BAND / c->oc, 64));
    *size = (own_sizes){.wide = wide_of(plan->columns)};
    size->band = line(stk_conv_plan_band(plan));
    size->bands = size->band * plan->images;
    stk_conv_phase p;
    stk_conv_phase_get(plan, 0, &p);
    size->narrow = is_narrow(plan);
    if (!size->narrow && (size->wide != plan->columns || c->oc * (int64_t)sizeof(float) > NARROW))
        size->packed = line(plan->images * p.band_rows * p.band_cols * PANEL * vec()->width);
    size->extra = line(c->groups * size->wide * plan->rows);
    size->total = stk_max_i64(size->bands + size->packed, stk_conv_few_floats(c));
}

static bool small_enough(const stk_conv *c)
{
    double phases = 1, taps = 1, reach = 1;
    for (int i = 0; i < 3; i++) {
        phases *= (double)stk_min_i64(c->stride[i], c->in[i]);
        taps *= (double)c->kernel[i];
        reach *= (double)(c->kernel[i] - 1) * (double)c->dilation[i] + 1;
    }
    return phases < 1e5 && taps < 1e6 && reach < 1e9;
}

static bool data_supports(const stk_conv *c, bool back)
{
    if (c->dtype != STK_F32 || !small_enough(c) || stk_conv_deep_takes(c)) return false;
    stk_conv_plan plan;
    stk_conv_plan_init(&plan, c, back, DATA_BAND, DATA_BAND);
    return stk_conv_plan_band(&plan) >= 0;
}

static bool forward_supports(const void *params) { return data_supports(params, false); }
static bool back_supports(const void *params) { return data_supports(params, true); }
static bool weight_supports(const void *params) { return data_supports(params, false); }

static int64_t units(const void *params) { return ((const stk_conv *)params)->n; }

static int64_t data_room(const stk_conv *c, bool back)
{
    stk_conv_plan plan;
    own_sizes size;
    data_plan(c, back, &plan, &size);
    return size.total * (int64_t)sizeof(float);
}

static int64_t forward_room(const void *params) { return data_room(params, false); }
static int64_t back_room(const void *params) { return data_room(params, true); }

static int64_t weight_room(const void *params)
{
    stk_conv_plan plan;
    own_sizes size;
    weight_plan(params, &plan, &size);
    return size.total * (int64_t)sizeof(float);
}
static int64_t weight_scratch(const void *params, int32_t parts)
{
    stk_conv_plan plan;
    own_sizes size;
    weight_plan(params, &plan, &size);
    return size.extra * (int64_t)sizeof(float) * parts;
}

/* Packing costs about as much as `worth` pixels of every part. */
static int64_t data_grain(const stk_conv *c, bool back, int64_t worth)
{
    stk_conv_plan plan;
    own_sizes size;
    data_plan(c, back, &plan, &size);
    int64_t pixels = plan.dest[0] * plan.dest[1] * plan.dest[2];
    return size.packed ? stk_ceil_div(worth, stk_max_i64(pixels, 1)) : 1;
}

static int64_t forward_grain(const void *params) { return data_grain(params, false, 256); }
static int64_t back_grain(const void *params) { return data_grain(params, true, 512); }

/* Each part has its own sums, and adding them up is serial: few parts when there are many weights. */
static int64_t weight_grain(const void *params)
{
    enum { SUMS = 1 << 21 }; /* floats of all parts together */
    const stk_conv *c = params;
    stk_conv_plan plan;
    own_sizes size;
    weight_plan(c, &plan, &size);
    int64_t pixels = c->out[0] * c->out[1] * c->out[2];
    int64_t parts = stk_max_i64(SUMS / stk_max_i64(size.extra, 1), 2);
    return stk_max_i64(stk_ceil_div(c->n, parts), stk_ceil_div(256, stk_max_i64(pixels, 1)));
}

/* ---- prepare -------------------------------------------------------------------------------------- */

static void discard(stk_launch *launch)
{
    own_state *s = launch->state;
    if (!s) return;
    stk_conv_phases_discard(&s->all);
    stk_free(s);
    launch->state = NULL;
}

static stk_status prepare(stk_launch *launch, int kind, stk_error *err)
{
    own_state *s = launch->state = stk_calloc(1, sizeof *s);
    if (!s) return stk_fail_memory(err, "a convolution", sizeof *s);
    if (kind == 2)
        weight_plan(launch->params, &s->plan, &s->size);
    else
        data_plan(launch->params, kind == 1, &s->plan, &s->size);
    s->vec = vec();
    stk_status status = stk_conv_phases_make(&s->plan, &s->all, err);
    if (status != STK_OK) discard(launch);
    return status;
}

static stk_status forward_prepare(stk_launch *launch, stk_error *err)
{
    return prepare(launch, 0, err);
}
static stk_status back_prepare(stk_launch *launch, stk_error *err)
{
    return prepare(launch, 1, err);
}
static stk_status weight_prepare(stk_launch *launch, stk_error *err)
{
    return prepare(launch, 2, err);
}

/* ---- panels ----------------------------------------------------------------------------------------- */

/* Rows of one tap of one panel: to[k][0..nv) = w[tap, k, first + ...], or with in and out swapped. */
static void pack_tap(const own_state *s, const float *w, int64_t group, int64_t tap, int64_t first,
                     int64_t nv, float *to)
{
    const stk_conv_plan *plan = &s->plan;
    const stk_conv *c = plan->conv;
    int64_t live = stk_min_i64(nv, plan->columns - first), in = c->ic / c->groups,
            out = c->oc / c->groups;
    const float *from = w + tap * in * c->oc + group * out;
    for (int64_t k = 0; k < plan->inner; k++, to += nv) {
        if (plan->back)
            for (int64_t j = 0; j < live; j++) to[j] = from[(first + j) * c->oc + k];
        else
            memcpy(to, from + k * c->oc + first, (size_t)live * sizeof *to);
        memset(to + live, 0, (size_t)(nv - live) * sizeof *to);
    }
}

/* to[channel of results][row] */
static void turn_weights(const own_state *s, const float *w, float *to)
{
    const stk_conv_plan *plan = &s->plan;
    const int64_t oc = plan->conv->oc, k_step = plan->back ? 1 : oc, j_step = plan->back ? oc : 1;
    for (int64_t i = 0; i < plan->taps; i++)
        for (int64_t k = 0; k < plan->inner; k++)
            for (int64_t j = 0; j < plan->columns; j++)
                to[j * plan->rows + i * plan->inner + k] =
                    w[s->all.order[i] * plan->inner * plan->columns + k * k_step + j * j_step];
}

static void pack_weights(const own_state *s, const float *w, float *to)
{
    const stk_conv_plan *plan = &s->plan;
    if (s->size.narrow) {
        turn_weights(s, w, to);
        return;
    }
    for (int64_t g = 0; g < plan->conv->groups; g++)
        for (int64_t first = 0, nv; first < s->size.wide; first += nv) {
            nv = panel_width(s->size.wide - first);
            for (int64_t i = 0; i < plan->taps; i++, to += plan->inner * nv)
                pack_tap(s, w, g, s->all.order[i], first, nv, to);
        }
}

/* ---- forward and backward data ------------------------------------------------------------------------ */

/* One band: b holds pixels and strides; w is packed or plain. */
static void data_band(const own_state *s, stk_conv_block *b, const float *w)
{
    const stk_conv_plan *plan = &s->plan;
    const float *x = b->x;
    float *y = b->y;
    if (s->size.narrow) {
        b->w = w;
        b->ldw = plan->rows;
        s->vec->narrow_data[plan->columns - 1](b);
        return;
    }
    for (int64_t g = 0; g < plan->conv->groups; g++)
        for (int64_t first = 0, nv; first < s->size.wide; first += nv) {
            nv = panel_width(s->size.wide - first);
            b->x = x + g * plan->inner;
            b->y = y + g * plan->columns + first;
            b->columns = stk_min_i64(nv, plan->columns - first);
            b->w = s->size.packed ? w + (g * s->size.wide + first) * plan->rows
                                  : w + g * plan->columns + first;
            b->ldw = s->size.packed ? nv : plan->dest_c;
            data_of(nv)(b);
        }
}

static int64_t image(const int64_t size[3], int64_t channels)
{
    return size[0] * size[1] * size[2] * channels;
}

/* The source of one band of b->images images: b->x and b->x_image. */
static void bring_band(const own_state *s, const stk_conv_phase *p, const float *x, int64_t d,
                       int64_t row, int64_t col, stk_conv_block *b, float *scratch)
{
    int64_t x_image = image(s->plan.source, s->plan.source_c);
    b->x_image = p->padded ? s->size.band : x_image;
    for (int64_t i = 0; i < b->images; i++) {
        const float *at = stk_conv_band(&s->plan, p, x + i * x_image, d, row, b->rows, col, b->cols,
                                        scratch + i * s->size.band);
        if (i == 0) b->x = at;
        if (!p->padded) break;
    }
}

static void data_phase(const own_state *s, const stk_conv_phase *p, int64_t images, const float *x,
                       const float *w, float *y, float *scratch)
{
    const stk_conv_plan *plan = &s->plan;
    const stk_conv_axis *a = p->axis;
    const int64_t *dest = plan->dest, c = plan->dest_c;
    stk_conv_block b = {.images = images, .run = p->run, .runs = p->runs};
    b.x_col = a[2].from_step * plan->source_c;
    b.x_row = a[1].from_step * p->span[2] * plan->source_c;
    b.y_col = a[2].to_step * c;
    b.y_row = a[1].to_step * dest[2] * c;
    b.y_image = image(dest, c);
    for (int64_t d = 0; d < a[0].count; d++)
        for (int64_t row = 0; row < a[1].count; row += p->band_rows)
            for (int64_t col = 0; col < a[2].count; col += p->band_cols) {
                b.rows = stk_min_i64(p->band_rows, a[1].count - row);
                b.cols = stk_min_i64(p->band_cols, a[2].count - col);
                bring_band(s, p, x, d, row, col, &b, scratch);
                int64_t at_d = a[0].to + d * a[0].to_step, at_row = a[1].to + row * a[1].to_step;
                b.y = y + ((at_d * dest[1] + at_row) * dest[2] + a[2].to + col * a[2].to_step) * c;
                data_band(s, &b, w);
            }
}

static void data_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const own_state *s = launch->state;
    const stk_conv_plan *plan = &s->plan;
    float *scratch = launch->room;
    const float *x = launch->arg[0], *w = launch->arg[1];
    float *y = launch->arg[2];
    (void)part;
    if (s->size.packed && lo < hi) {
        pack_weights(s, w, scratch + s->size.bands);
        w = scratch + s->size.bands;
    }
    int64_t x_image = image(plan->source, plan->source_c),
            y_image = image(plan->dest, plan->dest_c);
    for (int64_t i = lo; i < hi; i += plan->images)
        for (int64_t p = 0; p < s->all.count; p++)
            data_phase(s, &s->all.phase[p], stk_min_i64(plan->images, hi - i), x + i * x_image, w,
                       y + i * y_image, scratch);
}

static void back_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const own_state *s = launch->state;
    stk_conv_few_data(launch, lo, hi, part, launch->room, s->size.total, data_run);
}

/* ---- backward weight ------------------------------------------------------------------------------------ */

/* One panel of dy, its pixels side by side, rounded up to registers with zeros. */
static void pack_dy(const stk_conv_block *b, int64_t live, int64_t wide, float *to)
{
    for (int64_t i = 0; i < b->images; i++)
        for (int64_t row = 0; row < b->rows; row++)
            for (int64_t col = 0; col < b->cols; col++, to += wide) {
                memcpy(to, b->y + i * b->y_image + row * b->y_row + col * b->y_col,
                       (size_t)live * sizeof *to);
                memset(to + live, 0, (size_t)(wide - live) * sizeof *to);
            }
}

static void weight_group(const own_state *s, const stk_conv_block *group, float *packed,
                         float *sums)
{
    for (int64_t first = 0, nv; first < s->size.wide; first += nv) {
        nv = panel_width(s->size.wide - first);
        stk_conv_block b = *group;
        b.y += first;
        b.dw = sums + first * s->plan.rows;
        b.ldw = b.columns = nv;
        if (s->size.packed) {
            pack_dy(&b, stk_min_i64(nv, s->plan.columns - first), nv, packed);
            b.y = packed;
            b.y_col = nv;
            b.y_row = b.cols * b.y_col;
            b.y_image = b.rows * b.y_row;
        }
        weight_of(nv)(&b);
    }
}

static void weight_band(const own_state *s, const stk_conv_block *band, float *packed, float *sums)
{
    const stk_conv_plan *plan = &s->plan;
    stk_conv_block b = *band;
    if (s->size.narrow) {
        b.dw = sums;
        b.ldw = plan->rows;
        s->vec->narrow_weight[plan->columns - 1](&b);
        return;
    }
    for (int64_t g = 0; g < plan->conv->groups; g++) {
        b.x = band->x + g * plan->inner;
        b.y = band->y + g * plan->columns;
        weight_group(s, &b, packed, sums + g * s->size.wide * plan->rows);
    }
}

static void weight_images(const own_state *s, int64_t images, const float *x, float *dy,
                          float *scratch, float *sums)
{
    const stk_conv_plan *plan = &s->plan;
    const stk_conv_phase *p = s->all.phase;
    const int64_t *dest = plan->dest;
    stk_conv_block b = {.images = images, .run = p->run, .runs = p->runs};
    b.x_col = p->axis[2].from_step * plan->source_c;
    b.x_row = p->axis[1].from_step * p->span[2] * plan->source_c;
    b.y_col = plan->dest_c;
    b.y_row = dest[2] * plan->dest_c;
    b.y_image = image(dest, plan->dest_c);
    float *packed = scratch + s->size.bands;
    for (int64_t d = 0; d < dest[0]; d++)
        for (int64_t row = 0; row < dest[1]; row += p->band_rows)
            for (int64_t col = 0; col < dest[2]; col += p->band_cols) {
                b.rows = stk_min_i64(p->band_rows, dest[1] - row);
                b.cols = stk_min_i64(p->band_cols, dest[2] - col);
                bring_band(s, p, x, d, row, col, &b, scratch);
                b.y = dy + ((d * dest[1] + row) * dest[2] + col) * plan->dest_c;
                weight_band(s, &b, packed, sums);
            }
}

static float *sums_of(const stk_launch *launch, int32_t part)
{
    const own_state *s = launch->state;
    return (float *)launch->scratch + part * s->size.extra;
}

/* Filters into the panels of the sums. */
static void put_filters(const own_state *s, const float *filters, float *sums)
{
    const stk_conv_plan *plan = &s->plan;
    for (int64_t first = 0, nv; first < s->size.wide; first += nv) {
        nv = panel_width(s->size.wide - first);
        stk_conv_few_columns(plan->conv, filters, first, stk_min_i64(nv, plan->columns - first),
                             sums + first * plan->rows, nv);
    }
}

static void weight_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const own_state *s = launch->state;
    const stk_conv_plan *plan = &s->plan;
    float *sums = sums_of(launch, part);
    const float *x = launch->arg[0];
    float *dy = launch->arg[1];
    int64_t x_image = image(plan->source, plan->source_c),
            y_image = image(plan->dest, plan->dest_c);
    const float *few = stk_conv_few_weight(launch, lo, hi, launch->room, s->size.total);
    memset(sums, 0, (size_t)s->size.extra * sizeof *sums);
    if (few) {
        put_filters(s, few, sums);
        return;
    }
    for (int64_t i = lo; i < hi; i += plan->images)
        weight_images(s, stk_min_i64(plan->images, hi - i), x + i * x_image, dy + i * y_image,
                      launch->room, sums);
}

static stk_sums weight_sums(const stk_launch *launch, int32_t part)
{
    const own_state *s = launch->state;
    return (stk_sums){.at = sums_of(launch, part), .n = s->size.extra, .lane = STK_LANE_F32};
}

static void weight_finish(const stk_launch *launch)
{
    const own_state *s = launch->state;
    const stk_conv_plan *plan = &s->plan;
    float *dw = launch->arg[2];
    int64_t columns = plan->columns;
    if (launch->units == 0) {
        memset(dw, 0, (size_t)(plan->rows * plan->dest_c) * sizeof *dw);
        return;
    }
    const float *from = stk_launch_total(launch).at;
    for (int64_t j = 0; s->size.narrow && j < columns; j++)
        for (int64_t k = 0; k < plan->rows; k++) dw[k * columns + j] = from[j * plan->rows + k];
    if (s->size.narrow) return;
    for (int64_t g = 0; g < plan->conv->groups; g++)
        for (int64_t first = 0, nv; first < s->size.wide; first += nv) {
            nv = panel_width(s->size.wide - first);
            size_t live = (size_t)stk_min_i64(nv, columns - first) * sizeof *dw;
            for (int64_t k = 0; k < plan->rows; k++, from += nv)
                memcpy(dw + k * plan->dest_c + g * columns + first, from, live);
        }
}

const stk_impl stk_impl_conv_own = {.name = "own",
                                    .kernel = STK_K_CONV,
                                    .rank = 10,
                                    .supports = forward_supports,
                                    .units = units,
                                    .grain = forward_grain,
                                    .aligned = stk_conv_data_aligned,
                                    .room = forward_room,
                                    .prepare = forward_prepare,
                                    .discard = discard,
                                    .run = data_run};
const stk_impl stk_impl_conv_bwd_data_own = {.name = "own",
                                             .kernel = STK_K_CONV_BWD_DATA,
                                             .rank = 10,
                                             .supports = back_supports,
                                             .units = units,
                                             .grain = back_grain,
                                             .aligned = stk_conv_data_aligned,
                                             .room = back_room,
                                             .prepare = back_prepare,
                                             .discard = discard,
                                             .run = back_run};
const stk_impl stk_impl_conv_bwd_weight_own = {.name = "own",
                                               .kernel = STK_K_CONV_BWD_WEIGHT,
                                               .rank = 10,
                                               .supports = weight_supports,
                                               .units = units,
                                               .grain = weight_grain,
                                               .aligned = stk_conv_weight_aligned,
                                               .scratch = weight_scratch,
                                               .room = weight_room,
                                               .prepare = weight_prepare,
                                               .discard = discard,
                                               .run = weight_run,
                                               .sums = weight_sums,
                                               .finish = weight_finish};
