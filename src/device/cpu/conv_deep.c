/* Depthwise convolutions, float32 and bfloat16: one channel in and one out of every group. There is so little arithmetic per
 * element that pictures must not be copied to get zeros around them. Instead each axis is cut into stretches of results that have
 * the same taps inside of the picture (of 3x3 taps: the first, all between, the last one); a block of stretches runs over just
 * its taps (vec/conv_deep.c).
 *
 *     forward, weight   source = result * stride + tap * dilation - low
 *     backward data     results whose numbers have the same remainder by the stride have the same taps: a phase each
 *
 * bfloat16 goes by bands of rows that stay in the second-level cache, widened before and rounded after. Units are images. Room of a thread, in floats: [ weights | source of a band | results ]. */
#include "base/memory.h"
#include "device/cpu/conv_plan.h"
#include "device/cpu/cpu.h"
#include "device/cpu/sums.h"
#include "device/cpu/vec/elementwise.h"

#include <string.h>

enum { FORWARD, BACK, WEIGHT };
enum {
    AXIS_TAPS = 16, /* more along an axis are left to other implementations */
    TAPS = 512,
    BAND = 1 << 15, /* floats of source and results together */
};

typedef struct stretch {
    int64_t lo, hi; /* results, counted within the phase */
} stretch;

/* One axis of one phase. */
typedef struct axis {
    int64_t to, to_step, count;              /* results: to, to + to_step, ... */
    int64_t step;                            /* of the source per result */
    int64_t taps;                            /* that meet the source at all, by rising source */
    int64_t tap[AXIS_TAPS], base[AXIS_TAPS]; /* base: what result 0 meets; may be outside */
    stretch cut[2 * AXIS_TAPS + 1];
    int64_t cuts;
} axis;

static int64_t volume(const int64_t size[3]) { return size[0] * size[1] * size[2]; }

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

static bool meets(const axis *a, int64_t nth, int64_t result, int64_t size)
{
    const int64_t at = a->base[nth] + result * a->step;
    return at >= 0 && at < size;
}

/* Ends a stretch at every result where some tap enters or leaves the source. */
static void cut_axis(axis *a, int64_t size)
{
    int64_t lo = 0;
    for (a->cuts = 0; lo < a->count;) {
        int64_t hi = a->count;
        for (int64_t t = 0; t < a->taps; t++) {
            const int64_t enters = floor_div(-a->base[t] - 1, a->step) + 1;
            const int64_t leaves = floor_div(size - 1 - a->base[t], a->step) + 1;
            if (enters > lo) hi = stk_min_i64(hi, enters);
            if (leaves > lo) hi = stk_min_i64(hi, leaves);
        }
        a->cut[a->cuts++] = (stretch){lo, hi};
        lo = hi;
    }
}

static void axis_of(const stk_conv *c, bool back, int i, int64_t phase, axis *a)
{
    *a = (axis){.to = phase, .to_step = back ? c->stride[i] : 1, .step = back ? 1 : c->stride[i]};
    const int64_t size = back ? c->in[i] : c->out[i];
    a->count = size > phase ? (size - phase - 1) / a->to_step + 1 : 0;
    for (int64_t nth = 0; nth < c->kernel[i]; nth++) {
        const int64_t k = back ? c->kernel[i] - 1 - nth : nth;
        const int64_t at =
            back ? phase + c->low[i] - k * c->dilation[i] : k * c->dilation[i] - c->low[i];
        if (back && at % c->stride[i]) continue;
        a->tap[a->taps] = k;
        a->base[a->taps++] = back ? at / c->stride[i] : at;
    }
    cut_axis(a, back ? c->out[i] : c->in[i]);
}

/* ---- one walk for all three ----------------------------------------------------------------------------------- */

typedef struct deep_state {
    int64_t phases[3];
    axis *axis[3]; /* of each phase */
    axis all[];
} deep_state;

typedef struct walk {
    const stk_conv *c;
    const deep_state *state;
    const stk_vec_conv *vec;
    int kind;
    const int64_t *source, *dest; /* sizes */
    const float *x, *w;           /* of an image: x and y as if all its rows were there */
    float *y, *dw;
    bool whole_rows; /* the vector loop knows about the edges of rows (weights) */
} walk;

/* The taps that the results of three stretches have inside of the source. */
static int64_t runs_of(const walk *k, const axis *const a[3], const stretch *const cut[3],
                       int64_t depth, stk_conv_run *run)
{
    const stk_conv *c = k->c;
    const int64_t at[3] = {depth, cut[1]->lo, cut[2]->lo};
    int64_t runs = 0;
    for (int64_t d = 0; d < a[0]->taps; d++) {
        if (!meets(a[0], d, at[0], k->source[0])) continue;
        for (int64_t h = 0; h < a[1]->taps; h++) {
            if (!meets(a[1], h, at[1], k->source[1])) continue;
            const int64_t line = (a[0]->base[d] * k->source[1] + a[1]->base[h]) * k->source[2];
            const int64_t tap = (a[0]->tap[d] * c->kernel[1] + a[1]->tap[h]) * c->kernel[2];
            for (int64_t i = 0; i < a[2]->taps; i++)
                if (k->whole_rows || meets(a[2], i, at[2], k->source[2]))
                    run[runs++] = (stk_conv_run){
                        .x = (line + a[2]->base[i]) * c->ic, .w = tap + a[2]->tap[i], .n = 1};
        }
    }
    return runs;
}

static void block(const walk *k, const axis *const a[3], const stretch *const cut[3], int64_t depth)
{
    stk_conv_run run[TAPS];
    const int64_t c = k->c->ic, *source = k->source, *dest = k->dest;
    const int64_t row = cut[1]->lo, col = cut[2]->lo;
    stk_conv_block b = {.w = k->w, .dw = k->dw, .images = 1, .ldw = c, .columns = c, .run = run};
    b.runs = runs_of(k, a, cut, depth, run);
    if (k->whole_rows) b.taps = a[2]->taps, b.low = -a[2]->base[0], b.width = source[2];
    b.rows = cut[1]->hi - row;
    b.cols = cut[2]->hi - col;
    b.x_col = a[2]->step * c;
    b.x_row = a[1]->step * source[2] * c;
    b.y_col = a[2]->to_step * c;
    b.y_row = a[1]->to_step * dest[2] * c;
    b.x = k->x +
          ((depth * a[0]->step * source[1] + row * a[1]->step) * source[2] + col * a[2]->step) * c;
    b.y = k->y + (((a[0]->to + depth * a[0]->to_step) * dest[1] + a[1]->to + row * a[1]->to_step) *
                      dest[2] +
                  a[2]->to + col * a[2]->to_step) *
                     c;
    if (k->kind != WEIGHT)
        k->vec->deep_data(&b);
    else if (b.runs)
        k->vec->deep_weight(&b);
}

/* Of the results' rows lo..hi those that this phase has. */
static void phase(const walk *k, const axis *const a[3], int64_t lo, int64_t hi)
{
    const int64_t step = a[1]->to_step;
    const int64_t first = stk_max_i64(stk_ceil_div(stk_max_i64(lo - a[1]->to, 0), step), 0);
    const int64_t end = hi > a[1]->to ? stk_ceil_div(hi - a[1]->to, step) : 0;
    for (int64_t d = 0; d < a[0]->count; d++)
        for (int64_t i = 0; i < a[1]->cuts; i++) {
            const stretch rows = {stk_max_i64(a[1]->cut[i].lo, first),
                                  stk_min_i64(a[1]->cut[i].hi, end)};
            const stretch all = {0, a[2]->count}, *cut = k->whole_rows ? &all : a[2]->cut;
            const int64_t cuts = k->whole_rows ? 1 : a[2]->cuts;
            for (int64_t j = 0; j < cuts && rows.lo < rows.hi; j++)
                block(k, a, (const stretch *const[]){NULL, &rows, &cut[j]}, d);
        }
}

static void band(const walk *k, int64_t lo, int64_t hi)
{
    const deep_state *s = k->state;
    for (int64_t d = 0; d < s->phases[0]; d++)
        for (int64_t h = 0; h < s->phases[1]; h++)
            for (int64_t w = 0; w < s->phases[2]; w++)
                phase(k, (const axis *const[]){&s->axis[0][d], &s->axis[1][h], &s->axis[2][w]}, lo,
                      hi);
}

/* ---- bands and memory ------------------------------------------------------------------------------------------- */

typedef struct deep_sizes {
    int64_t rows;                  /* of results in a band */
    int64_t weights, source, dest; /* floats of room; 0: read and written where they are */
} deep_sizes;

static int64_t line(int64_t floats)
{
    return stk_round_up(floats, STK_ALIGN / (int64_t)sizeof(float));
}

/* Rows of the source that the results' rows lo..hi meet; none gives an empty stretch. */
static stretch source_rows(const stk_conv *c, int kind, int64_t lo, int64_t hi)
{
    const int64_t size = kind == BACK ? c->out[1] : c->in[1],
                  reach = (c->kernel[1] - 1) * c->dilation[1];
    stretch s = {lo * c->stride[1] - c->low[1], (hi - 1) * c->stride[1] - c->low[1] + reach + 1};
    if (kind == BACK)
        s = (stretch){floor_div(lo + c->low[1] - reach, c->stride[1]),
                      floor_div(hi - 1 + c->low[1], c->stride[1]) + 1};
    s.lo = stk_min_i64(stk_max_i64(s.lo, 0), size);
    s.hi = stk_max_i64(stk_min_i64(s.hi, size), s.lo);
    return s;
}

static deep_sizes sizes_of(const stk_conv *c, int kind)
{
    const int64_t *source = kind == BACK ? c->out : c->in, *dest = kind == BACK ? c->in : c->out;
    const int64_t source_row = source[0] * source[2] * c->ic, dest_row = dest[0] * dest[2] * c->ic;
    deep_sizes s = {.rows = stk_max_i64(dest[1], 1)};
    if (c->dtype == STK_F32) return s;
    int64_t most = stk_max_i64(source[1], 1);
    while (s.rows > 1 && s.rows * dest_row + most * source_row > BAND) {
        s.rows = (s.rows + 1) / 2;
        most = 0;
        for (int64_t lo = 0; lo < dest[1]; lo += s.rows) {
            const stretch rows = source_rows(c, kind, lo, stk_min_i64(lo + s.rows, dest[1]));
            most = stk_max_i64(most, rows.hi - rows.lo);
        }
    }
    s.weights = line(volume(c->kernel) * c->ic);
    s.source = line(most * source_row);
    s.dest = line(s.rows * dest_row);
    return s;
}

static void widen(int64_t n, float *to, const uint16_t *from)
{
    stk_vec_get()->ew->load[STK_BF16](n, to, from);
}

/* One image of bfloat16: x widened and y rounded (widened, for weights) a band at a time. */
static void half_image(walk *k, const deep_sizes *s, const uint16_t *x, uint16_t *y, float *room)
{
    const int64_t source_row = k->source[2] * k->c->ic, dest_row = k->dest[2] * k->c->ic;
    float *wide_x = room, *wide_y = room + s->source;
    for (int64_t lo = 0; lo < k->dest[1]; lo += s->rows) {
        const int64_t hi = stk_min_i64(lo + s->rows, k->dest[1]), n = (hi - lo) * dest_row;
        const stretch rows = source_rows(k->c, k->kind, lo, hi);
        widen((rows.hi - rows.lo) * source_row, wide_x, x + rows.lo * source_row);
        if (k->kind == WEIGHT) widen(n, wide_y, y + lo * dest_row);
        k->x = wide_x - rows.lo * source_row;
        k->y = wide_y - lo * dest_row;
        band(k, lo, hi);
        if (k->kind != WEIGHT) stk_vec_get()->ew->store[STK_BF16](n, y + lo * dest_row, wide_y);
    }
}

static void image(walk *k, const float *x, float *y)
{
    k->x = x;
    k->y = y;
    band(k, 0, k->dest[1]);
}

static void images(const stk_launch *launch, walk *k, int64_t lo, int64_t hi, void *y, float *room)
{
    const deep_sizes s = sizes_of(k->c, k->kind);
    const int64_t x_image = volume(k->source) * k->c->ic, y_image = volume(k->dest) * k->c->ic;
    for (int64_t i = lo; i < hi; i++)
        if (k->c->dtype == STK_F32)
            image(k, (const float *)launch->arg[0] + i * x_image, (float *)y + i * y_image);
        else
            half_image(k, &s, (const uint16_t *)launch->arg[0] + i * x_image,
                       (uint16_t *)y + i * y_image, room);
}

/* ---- three kernels ------------------------------------------------------------------------------------------------ */

bool stk_conv_deep_takes(const void *params)
{
    const stk_conv *c = params;
    if (c->groups < 2 || c->groups != c->ic || c->ic != c->oc) return false;
    for (int i = 0; i < 3; i++)
        if (c->kernel[i] > AXIS_TAPS || c->stride[i] > AXIS_TAPS) return false;
    bool flat = c->in[0] == 1 && c->out[0] == 1 && c->kernel[0] == 1 && c->low[0] == 0;
    return volume(c->kernel) <= TAPS && (c->dtype == STK_F32 || (c->dtype == STK_BF16 && flat));
}

static stk_status prepare(stk_launch *launch, bool back, stk_error *err)
{
    const stk_conv *c = launch->params;
    int64_t count[3], all = 0;
    for (int i = 0; i < 3; i++) all += count[i] = back ? c->stride[i] : 1;
    deep_state *s = launch->state = stk_calloc(1, sizeof *s + (size_t)all * sizeof *s->all);
    if (!s) return stk_fail_memory(err, "a depthwise convolution", sizeof *s);
    axis *next = s->all;
    for (int i = 0; i < 3; i++) {
        s->axis[i] = next;
        s->phases[i] = count[i];
        for (int64_t phase = 0; phase < count[i]; phase++) axis_of(c, back, i, phase, next++);
    }
    return STK_OK;
}
static stk_status forward_prepare(stk_launch *launch, stk_error *err)
{
    return prepare(launch, false, err);
}
static stk_status back_prepare(stk_launch *launch, stk_error *err)
{
    return prepare(launch, true, err);
}
static void discard(stk_launch *launch)
{
    stk_free(launch->state);
    launch->state = NULL;
}

static int64_t units(const void *params) { return ((const stk_conv *)params)->n; }

static int64_t room(const void *params, int kind)
{
    const deep_sizes s = sizes_of(params, kind);
    return (s.weights + s.source + s.dest) * (int64_t)sizeof(float);
}
static int64_t forward_room(const void *params) { return room(params, FORWARD); }
static int64_t back_room(const void *params) { return room(params, BACK); }
static int64_t weight_room(const void *params) { return room(params, WEIGHT); }

static void data_run(const stk_launch *launch, int64_t lo, int64_t hi, int kind)
{
    const stk_conv *c = launch->params;
    walk k = {.c = c,
              .vec = stk_vec_get()->conv,
              .kind = kind,
              .w = launch->arg[1],
              .state = launch->state};
    k.source = kind == BACK ? c->out : c->in;
    k.dest = kind == BACK ? c->in : c->out;
    float *memory = launch->room;
    if (c->dtype != STK_F32) {
        widen(volume(c->kernel) * c->ic, memory, launch->arg[1]);
        k.w = memory;
        memory += line(volume(c->kernel) * c->ic);
    }
    images(launch, &k, lo, hi, launch->arg[2], memory);
}

static void forward_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    (void)part;
    data_run(launch, lo, hi, FORWARD);
}
static void back_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    (void)part;
    data_run(launch, lo, hi, BACK);
}

static int64_t sums_count(const stk_conv *c) { return line(volume(c->kernel) * c->ic); }

static int64_t weight_scratch(const void *params, int32_t parts)
{
    return sums_count(params) * (int64_t)sizeof(float) * parts;
}

/* Three, five or seven taps over neighbouring pixels (vec/conv_deep.c). */
static bool has_whole_rows(const stk_conv *c)
{
    const int64_t taps = c->kernel[2];
    return (taps == 3 || taps == 5 || taps == 7) && c->stride[2] == 1 && c->dilation[2] == 1;
}

static void weight_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const stk_conv *c = launch->params;
    walk k = {.c = c,
              .vec = stk_vec_get()->conv,
              .kind = WEIGHT,
              .source = c->in,
              .dest = c->out,
              .state = launch->state};
    k.whole_rows = has_whole_rows(c);
    k.dw = (float *)launch->scratch + part * sums_count(c);
    memset(k.dw, 0, (size_t)sums_count(c) * sizeof *k.dw);
    float *memory = launch->room; /* the place of widened weights stays empty */
    images(launch, &k, lo, hi, launch->arg[1], memory);
}

static stk_sums weight_sums(const stk_launch *launch, int32_t part)
{
    const stk_conv *c = launch->params;
    return (stk_sums){.at = (float *)launch->scratch + part * sums_count(c),
                      .n = volume(c->kernel) * c->ic,
                      .lane = STK_LANE_F32};
}

static void weight_finish(const stk_launch *launch)
{
    const stk_conv *c = launch->params;
    const int64_t count = volume(c->kernel) * c->ic;
    const float *total = stk_launch_total(launch).at;
    if (!total)
        memset(launch->arg[2], 0, (size_t)(count * stk_dtype_size((stk_dtype)c->dtype)));
    else
        stk_vec_get()->ew->store[c->dtype](count, launch->arg[2], total);
}

const stk_impl stk_impl_conv_deep = {.name = "deep",
                                     .kernel = STK_K_CONV,
                                     .rank = 4,
                                     .supports = stk_conv_deep_takes,
                                     .units = units,
                                     .aligned = stk_conv_data_aligned,
                                     .room = forward_room,
                                     .prepare = forward_prepare,
                                     .discard = discard,
                                     .run = forward_run};
const stk_impl stk_impl_conv_bwd_data_deep = {.name = "deep",
                                              .kernel = STK_K_CONV_BWD_DATA,
                                              .rank = 4,
                                              .supports = stk_conv_deep_takes,
                                              .units = units,
                                              .aligned = stk_conv_data_aligned,
                                              .room = back_room,
                                              .prepare = back_prepare,
                                              .discard = discard,
                                              .run = back_run};
const stk_impl stk_impl_conv_bwd_weight_deep = {.name = "deep",
                                                .kernel = STK_K_CONV_BWD_WEIGHT,
                                                .rank = 4,
                                                .supports = stk_conv_deep_takes,
                                                .units = units,
                                                .aligned = stk_conv_weight_aligned,
                                                .scratch = weight_scratch,
                                                .room = weight_room,
                                                .prepare = forward_prepare,
                                                .discard = discard,
                                                .run = weight_run,
                                                .sums = weight_sums,
                                                .finish = weight_finish};
