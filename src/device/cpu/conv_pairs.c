/* Convolutions of bfloat16 by dot products of pairs. What the pixels read is gathered into dense rows, some hundred pixels at a time,
 * and multiplied (vec/gemm_pairs.c); copying costs 2 / output channels of the product. Where a pixel reads one pixel, and neighbours read neighbours, the source itself is these rows.
 *
 * Two neighbouring channels of bfloat16 take the place of one float, so phases, bands and runs are those of the float kernels with half of
 * the source's channels (conv_plan.h). Where these are odd (the first layer of image nets) elements are single numbers, and pairs are made
 * of neighbours in the gathered rows; not for backward data. Units are images.
 *
 * Scratch of one part, each piece rounded up to a cache line:
 *
 *     [ band | rows | results, where pixels lie apart | their places | weights, turned for backward data | of the product
 *       | sums of backward weight ] */
#include "base/memory.h"
#include "device/cpu/conv_few.h"
#include "device/cpu/conv_plan.h"
#include "device/cpu/cpu.h"
#include "device/cpu/isa.h"
#include "device/cpu/sums.h"
#include "device/cpu/vec/elementwise.h"
#include "device/cpu/vec/gemm.h"
#include "device/cpu/vec/vec.h"

#include <string.h>

enum { DATA_BAND = 1 << 15, ROWS = 1 << 17, PIXELS_LEAST = 96, PIXELS_MOST = 512, GAP = 16 };
enum {
    NARROW = 8
}; /* fewer results per pixel: gathering costs as much as multiplying, lanes stay empty */
enum { ODD_RESULTS = 48, ODD_TERMS = 24 }; /* so many where elements are gathered one by one */

enum { FORWARD, BACK, WEIGHT };

typedef struct pairs_sizes {
    int64_t pixels; /* gathered at a time */
    int64_t ld;     /* floats between their rows */
    int64_t band, rows, results, places, turned, product, sums, total; /* bytes */
} pairs_sizes;

typedef struct pairs_state {
    stk_conv halved; /* channels of the source in pairs, if they are bfloat16 and even */
    stk_conv_plan plan;
    pairs_sizes size;
    int kind;
    bool in_place; /* no gathering */
    const stk_vec *vec;
    stk_conv_phases all;
} pairs_state;

static int64_t volume(const int64_t size[3]) { return size[0] * size[1] * size[2]; }
static int64_t line(int64_t bytes) { return stk_round_up(bytes, STK_ALIGN); }

/* ---- sizes -------------------------------------------------------------------------------------- */

static void init_plan(const stk_conv *c, int kind, stk_conv *halved, stk_conv_plan *plan)
{
    const bool odd = kind != BACK && c->ic % 2;
    *halved = *c;
    if (kind == BACK)
        halved->oc /= 2;
    else if (!odd)
        halved->ic /= 2;
    stk_conv_plan_init(plan, halved, kind == BACK, DATA_BAND, DATA_BAND);
    if (odd) plan->size = sizeof(uint16_t);
}

/* Numbers in an element. */
static int64_t per(const stk_conv_plan *plan)
{
    return plan->size / stk_dtype_size((stk_dtype)plan->conv->dtype);
}

/* The product that `pixels` rows of `terms` numbers make. */
static stk_gemm product_of(const stk_conv_plan *plan, int kind, int64_t pixels, int64_t terms,
                           int64_t ld)
{
    stk_gemm g = {.m = pixels, .n = plan->dest_c, .k = terms, .batch = 1};
    g.dtype = (int32_t)plan->conv->dtype;
    g.lda = per(plan) * ld;
    g.ldb = g.ldc = plan->dest_c;
    if (kind == BACK) {
        g.tb = 1;
        g.ldb = per(plan) * plan->rows;
    } else if (kind == WEIGHT) {
        g.m = terms;
        g.k = pixels;
        g.ta = g.accumulate = 1;
    }
    return g;
}

static int64_t pixels_of(int64_t terms)
{
    return stk_min_i64(stk_max_i64(ROWS / terms, PIXELS_LEAST), PIXELS_MOST);
}

static void size_up(const stk_conv_plan *plan, int kind, pairs_sizes *s)
{
    const int64_t terms = plan->rows, phases = stk_conv_plan_phases(plan);
    const int64_t size = sizeof(uint16_t);
    *s = (pairs_sizes){.ld = stk_round_up(terms, GAP) + GAP, .pixels = pixels_of(terms)};
    s->band = line(stk_conv_plan_band(plan) * plan->size);
    s->rows = line(s->pixels * s->ld * plan->size);
    if (phases > 1) {
        s->results = line(s->pixels * plan->dest_c * size);
        s->places = line(s->pixels * (int64_t)sizeof(int64_t));
    }
    if (kind == BACK) s->turned = line(plan->rows * plan->dest_c * 4);
    const stk_gemm g = product_of(plan, kind, s->pixels, per(plan) * terms, s->ld);
    s->product = line(stk_vec_get()->gemm_pairs->scratch(&g));
    if (kind == WEIGHT) s->sums = line(per(plan) * plan->rows * plan->dest_c * 4);
    s->total = s->band + s->rows + s->results + s->places + s->turned + s->product + s->sums;
}

static bool pairs_support(const stk_conv *c, int kind)
{
    double phases = 1, taps = 1, reach = 1;
    const bool odd = (kind == BACK ? c->oc : c->ic) % 2;
    if (c->dtype != STK_BF16 || c->groups != 1 || !stk_isa_has_pairs()) return false;
    if ((kind == BACK && odd) || c->n < 1) return false;
    if (odd && (c->oc < ODD_RESULTS || volume(c->kernel) * c->ic < ODD_TERMS)) return false;
    if ((kind == BACK ? c->ic : c->oc) < NARROW) return false;
    for (int i = 0; i < 3; i++) {
        phases *= (double)stk_min_i64(c->stride[i], c->in[i]);
        taps *= (double)c->kernel[i];
        reach *= (double)(c->kernel[i] - 1) * (double)c->dilation[i] + 1;
        if (c->in[i] < 1 || c->out[i] < 1) return false;
    }
    if (!(phases < 1e3 && taps < 1e4 && reach < 1e8)) return false;
    stk_conv halved;
    stk_conv_plan plan;
    init_plan(c, kind, &halved, &plan);
    return stk_conv_plan_band(&plan) >= 0;
}

static int64_t scratch(const stk_conv *c, int way, int32_t parts)
{
    stk_conv halved;
    stk_conv_plan plan;
    pairs_sizes size;
    init_plan(c, way, &halved, &plan);
    size_up(&plan, way, &size);
    return size.total * parts;
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

/* ---- prepare -------------------------------------------------------------------------------------- */

static void discard(stk_launch *launch)
{
    pairs_state *s = launch->state;
    if (!s) return;
    stk_conv_phases_discard(&s->all);
    stk_free(s);
    launch->state = NULL;
}

/* One phase of one tap, and pixels lie in the source as in the result. */
static bool reads_in_place(const stk_conv_plan *plan, const stk_conv_phases *all)
{
    bool same = plan->taps == 1 && all->count == 1 && !all->phase[0].padded;
    for (int i = 0; i < 3; i++)
        same &= plan->source[i] == plan->dest[i] && plan->conv->stride[i] == 1;
    return same;
}

static stk_status prepare(stk_launch *launch, int way, stk_error *err)
{
    pairs_state *s = launch->state = stk_calloc(1, sizeof *s);
    if (!s) return stk_fail_memory(err, "a convolution", sizeof *s);
    s->kind = way;
    init_plan(launch->params, way, &s->halved, &s->plan);
    size_up(&s->plan, way, &s->size);
    s->vec = stk_vec_get();
    stk_status status = stk_conv_phases_make(&s->plan, &s->all, err);
    if (status != STK_OK)
        discard(launch);
    else
        s->in_place = reads_in_place(&s->plan, &s->all);
    return status;
}

/* ---- gathering and multiplying ---------------------------------------------------------------------- */

/* The work of one part: rows gathered so far, and where their results go. */
typedef struct basket {
    const pairs_state *s;
    const char *w; /* [rows][oc], or turned */
    char *y;       /* the part's images; dy for weights */
    int64_t size;  /* bytes of a number */
    float *band, *sums;
    char *rows, *results;
    int64_t *places; /* pixels, where they lie apart */
    void *product;
    const char *source;   /* what is multiplied: rows, or images in place; */
    int64_t ld;           /* elements between its pixels */
    int64_t first, held;  /* pixels: of the first row, and rows */
    int64_t start, terms; /* of the phase, in numbers */
} basket;

static basket open_basket(const pairs_state *s, char *memory, const void *w, void *y)
{
    const pairs_sizes *z = &s->size;
    basket b = {.s = s, .w = w, .y = y, .band = (float *)(void *)memory};
    b.size = stk_dtype_size((stk_dtype)s->halved.dtype);
    b.rows = memory += z->band;
    b.results = memory += z->rows;
    b.places = (int64_t *)(void *)(memory += z->results);
    memory += z->places + z->turned;
    b.product = memory;
    b.sums = (float *)(void *)(memory + z->product);
    b.source = b.rows;
    b.ld = z->ld;
    return b;
}

/* The weights of the phase. */
static const char *right_of(const basket *b)
{
    return b->w + (b->s->kind == BACK ? b->start * b->size : 0);
}

static void empty_basket(basket *b)
{
    const pairs_state *s = b->s;
    const int64_t pixel = s->plan.dest_c * b->size;
    if (!b->held) return;
    const stk_gemm g = product_of(&s->plan, s->kind, b->held, b->terms, b->ld);
    stk_gemm_job job = {.whole = &g, .a = b->source, .scratch = b->product};
    job.row_hi = g.m;
    job.col_hi = g.n;
    char *y = b->y + b->first * pixel;
    if (s->kind == WEIGHT) {
        job.b = y;
        job.c = b->sums;
        job.wide = true;
    } else {
        job.b = right_of(b);
        job.c = s->all.count > 1 ? b->results : y;
    }
    s->vec->gemm_pairs->run(&job);
    for (int64_t i = 0; s->all.count > 1 && i < b->held; i++)
        memcpy(b->y + b->places[i] * pixel, b->results + i * pixel, (size_t)pixel);
    b->first += b->held;
    b->held = 0;
}

/* Pixel numbers of a band's rows, where they do not follow each other. */
static void note_places(basket *b, const stk_conv_phase *p, int64_t origin, int64_t cols,
                        int64_t first, int64_t count)
{
    const stk_conv_axis *a = p->axis;
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = (first + i) / cols, col = (first + i) % cols;
        b->places[b->held + i] =
            origin + row * a[1].to_step * b->s->plan.dest[2] + col * a[2].to_step;
    }
}

static void put_band(basket *b, const stk_conv_phase *p, const stk_conv_block *block,
                     int64_t origin)
{
    const pairs_sizes *z = &b->s->size;
    const int64_t pixels = block->rows * block->cols;
    for (int64_t done = 0, count; done < pixels; done += count) {
        count = stk_min_i64(pixels - done, z->pixels - b->held);
        if (b->s->all.count > 1) note_places(b, p, origin, block->cols, done, count);
        char *to = b->rows + b->held * z->ld * b->s->plan.size;
        if (b->s->plan.size == sizeof(float))
            b->s->vec->conv->gather(block, done, count, (float *)(void *)to, z->ld);
        else
            b->s->vec->conv->gather_halves(block, done, count, (uint16_t *)(void *)to, z->ld);
        b->held += count;
        if (b->held == z->pixels) empty_basket(b);
    }
}

/* Bytes of an image of the source. */
static int64_t image_bytes(const stk_conv_plan *plan)
{
    return volume(plan->source) * plan->source_c * plan->size;
}

static void put_image(basket *b, const stk_conv_phase *p, const char *x, int64_t image)
{
    const stk_conv_plan *plan = &b->s->plan;
    const stk_conv_axis *a = p->axis;
    const int64_t *dest = plan->dest;
    stk_conv_block block = {.images = 1, .run = p->run, .runs = p->runs};
    block.x_col = a[2].from_step * plan->source_c;
    block.x_row = a[1].from_step * p->span[2] * plan->source_c;
    x += image * image_bytes(plan);
    for (int64_t d = 0; d < a[0].count; d++)
        for (int64_t row = 0; row < a[1].count; row += p->band_rows)
            for (int64_t col = 0; col < a[2].count; col += p->band_cols) {
                block.rows = stk_min_i64(p->band_rows, a[1].count - row);
                block.cols = stk_min_i64(p->band_cols, a[2].count - col);
                block.x = stk_conv_band(plan, p, x, d, row, block.rows, col, block.cols, b->band);
                const int64_t at_d = a[0].to + d * a[0].to_step;
                const int64_t at_row = a[1].to + row * a[1].to_step;
                const int64_t at_col = a[2].to + col * a[2].to_step;
                const int64_t at = (at_d * dest[1] + at_row) * dest[2] + at_col;
                put_band(b, p, &block, image * volume(dest) + at);
            }
}

static void put_in_place(basket *b, const char *x, int64_t images)
{
    const stk_conv_plan *plan = &b->s->plan;
    const int64_t pixels = images * volume(plan->dest);
    b->ld = plan->source_c;
    while (b->first < pixels) {
        b->source = x + b->first * plan->source_c * plan->size;
        b->held = stk_min_i64(pixels - b->first, b->s->size.pixels);
        empty_basket(b);
    }
}

static void put_phases(basket *b, const char *x, int64_t images)
{
    const pairs_state *s = b->s;
    for (int64_t i = 0; i < s->all.count; i++) {
        const stk_conv_phase *p = &s->all.phase[i];
        b->start = p->runs ? per(&s->plan) * p->run[0].w : 0;
        b->terms = 0;
        b->first = 0;
        for (int64_t r = 0; r < p->runs; r++) b->terms += per(&s->plan) * p->run[r].n;
        if (s->in_place) {
            put_in_place(b, x, images);
            continue;
        }
        for (int64_t image = 0; image < images; image++) put_image(b, p, x, image);
        empty_basket(b);
    }
}

/* to[c][block of rows][o] = w[its tap][c][o]: rows of the product's right side, stored by columns. */
static const char *turn_weights(const pairs_state *s, const float *w, float *to)
{
    const int64_t ic = s->plan.dest_c, oc = s->plan.source_c, taps = s->plan.taps;
    for (int64_t i = 0; i < taps; i++)
        for (int64_t c = 0; c < ic; c++)
            memcpy(to + (c * taps + i) * oc, w + (s->all.order[i] * ic + c) * oc,
                   (size_t)oc * sizeof *to);
    return (const char *)to;
}

static void data_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const pairs_state *s = launch->state;
    const stk_conv_plan *plan = &s->plan;
    const pairs_sizes *z = &s->size;
    char *memory = (char *)launch->scratch + part * z->total;
    const char *x = (const char *)launch->arg[0] + lo * image_bytes(plan);
    if (lo >= hi) return;
    basket b = open_basket(s, memory, launch->arg[1], launch->arg[2]);
    b.y += lo * volume(plan->dest) * plan->dest_c * b.size;
    if (s->kind == BACK)
        b.w = turn_weights(s, launch->arg[1],
                           (float *)(void *)(memory + z->band + z->rows + z->results + z->places));
    put_phases(&b, x, hi - lo);
}

/* The memory of a part before its sums. */
static float *memory_of(const stk_launch *launch, int part, int64_t *floats)
{
    const pairs_sizes *z = &((const pairs_state *)launch->state)->size;
    *floats = (z->total - z->sums) / (int64_t)sizeof(float);
    return (float *)(void *)((char *)launch->scratch + part * z->total);
}

static void back_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    int64_t floats;
    float *memory = memory_of(launch, part, &floats);
    stk_conv_few_data(launch, lo, hi, part, memory, floats, data_run);
}

/* ---- backward weight -------------------------------------------------------------------------------- */

static float *sums_of(const stk_launch *launch, int32_t part)
{
    const pairs_sizes *z = &((const pairs_state *)launch->state)->size;
    return (float *)(void *)((char *)launch->scratch + (part + 1) * z->total - z->sums);
}

static void weight_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const pairs_state *s = launch->state;
    const stk_conv_plan *plan = &s->plan;
    char *memory = (char *)launch->scratch + part * s->size.total;
    const char *x = (const char *)launch->arg[0] + lo * image_bytes(plan);
    int64_t floats;
    float *room = memory_of(launch, part, &floats);
    const float *few = stk_conv_few_weight(launch, lo, hi, room, floats);
    if (few) {
        stk_conv_few_columns(launch->params, few, 0, plan->dest_c, sums_of(launch, part),
                             plan->dest_c);
        return;
    }
    memset(sums_of(launch, part), 0, (size_t)s->size.sums);
    basket b = open_basket(s, memory, NULL, launch->arg[1]);
    b.y += lo * volume(plan->dest) * plan->dest_c * b.size;
    put_phases(&b, x, hi - lo);
}

static stk_sums weight_sums(const stk_launch *launch, int32_t part)
{
    const pairs_state *s = launch->state;
    return (stk_sums){.at = sums_of(launch, part),
                      .n = per(&s->plan) * s->plan.rows * s->plan.dest_c,
                      .lane = STK_LANE_F32};
}

static void weight_finish(const stk_launch *launch)
{
    const pairs_state *s = launch->state;
    const stk_sums total = stk_launch_total(launch);
    if (total.n) s->vec->ew->store[s->halved.dtype](total.n, launch->arg[2], total.at);
}

/* ---- three kernels ------------------------------------------------------------------------------------ */

#define WAY(word, kind)                                                                            \
    STK_CONV_WAY(word, kind)                                                                       \
    static bool word##_supports(const void *params) { return pairs_support(params, kind); }
WAY(forward, FORWARD)
WAY(back, BACK)
WAY(weight, WEIGHT)

const stk_impl stk_impl_conv_pairs = {.name = "pairs",
                                      .kernel = STK_K_CONV,
                                      .rank = 5,
                                      .supports = forward_supports,
                                      .units = units,
                                      .grain = data_grain,
                                      .aligned = stk_conv_data_aligned,
                                      .scratch = forward_scratch,
                                      .prepare = forward_prepare,
                                      .discard = discard,
                                      .run = data_run};
const stk_impl stk_impl_conv_bwd_data_pairs = {.name = "pairs",
                                               .kernel = STK_K_CONV_BWD_DATA,
                                               .rank = 5,
                                               .supports = back_supports,
                                               .units = units,
                                               .grain = data_grain,
                                               .aligned = stk_conv_data_aligned,
                                               .scratch = back_scratch,
                                               .prepare = back_prepare,
                                               .discard = discard,
                                               .run = back_run};
const stk_impl stk_impl_conv_bwd_weight_pairs = {.name = "pairs",
                                                 .kernel = STK_K_CONV_BWD_WEIGHT,
                                                 .rank = 5,
                                                 .supports = weight_supports,
                                                 .units = units,
                                                 .grain = weight_grain,
                                                 .aligned = stk_conv_weight_aligned,
                                                 .scratch = weight_scratch,
                                                 .prepare = weight_prepare,
                                                 .discard = discard,
                                                 .run = weight_run,
                                                 .sums = weight_sums,
                                                 .finish = weight_finish};
