/* Convolutions of few pixels with many weights, float32 or bfloat16: the last stages of image nets, 2 x 2 pixels of 512 channels. There are
 * not enough images to share out, and every implementation that packs the weights spends its time on that. So the work is
 * cut along channels, and the weights are read once, where they lie: tap by tap one product over the pixels that have that tap
 * inside the image, without the zeros around it.
 *
 *     forward   y[pixels, oc]  += x[pixels] . w[tap]        units: blocks of oc
 *     back      dx[pixels, ic] += dy[pixels] . w[tap]'      units: blocks of ic
 *     weight    dw[tap]         = x[pixels]' . dy[pixels]   units: taps times blocks of ic
 *
 * bfloat16 is multiplied by pairs (vec/gemm_pairs.c) and added up in floats, which are rounded when all taps are done.
 *
 * Scratch of one part: [ numbers of pixels of x | of y | rows of the left side | of the right side or results | sums of bfloat16
 *                        | the engine's ] */
#include "device/cpu/conv_plan.h"
#include "device/cpu/cpu.h"
#include "device/cpu/isa.h"
#include "device/cpu/vec/elementwise.h"
#include "device/cpu/vec/gemm.h"

#include <string.h>

enum {
    CHANNELS = 64,           /* of a unit: whole registers of every set */
    MOST_PIXELS = 256,       /* of all images together: more are worth packing weights for */
    LEAST_WEIGHTS = 1 << 18, /* fewer are packed in no time */
};

typedef struct taps_memory {
    int32_t *x, *y; /* numbers of pixels, [pixels] each */
    char *left;     /* of the element type */
    char *right;    /* that, or floats */
    float *sums;    /* [results][columns of the part] */
    void *engine;
} taps_memory;

static int64_t volume(const int64_t size[3]) { return size[0] * size[1] * size[2]; }

static int64_t pixels(const stk_conv *c) { return c->n * volume(c->out); }

static bool supports(const void *params)
{
    const stk_conv *c = params;
    const double weights = (double)volume(c->kernel) * (double)c->ic * (double)c->oc;
    const bool type = c->dtype == STK_F32 || (c->dtype == STK_BF16 && stk_isa_has_pairs());
    return type && c->groups == 1 && pixels(c) > 0 && pixels(c) <= MOST_PIXELS &&
           weights >= LEAST_WEIGHTS && volume(c->kernel) <= 1024;
}

/* ---- which pixels meet in a tap ---------------------------------------------------------------------------- */

/* The place in x that output `out` reads through tap k along one axis; -1: outside. */
static int64_t place(const stk_conv *c, int axis, int64_t out, int64_t k)
{
    const int64_t at = out * c->stride[axis] + k * c->dilation[axis] - c->low[axis];
    return at < c->in[axis] ? at : -1;
}

static int64_t meet(const stk_conv *c, int64_t tap, const taps_memory *m)
{
    const int64_t k[3] = {tap / c->kernel[2] / c->kernel[1], tap / c->kernel[2] % c->kernel[1],
                          tap % c->kernel[2]};
    int64_t count = 0, y = 0;
    for (int64_t i = 0; i < c->n; i++)
        for (int64_t d = 0; d < c->out[0]; d++)
            for (int64_t h = 0; h < c->out[1]; h++)
                for (int64_t w = 0; w < c->out[2]; w++, y++) {
                    const int64_t at[3] = {place(c, 0, d, k[0]), place(c, 1, h, k[1]),
                                           place(c, 2, w, k[2])};
                    if (at[0] < 0 || at[1] < 0 || at[2] < 0) continue;
                    m->x[count] =
                        (int32_t)(((i * c->in[0] + at[0]) * c->in[1] + at[1]) * c->in[2] + at[2]);
                    m->y[count++] = (int32_t)y;
                }
    return count;
}

/* `bytes` of a row on both sides. */
static void take_rows(char *to, const char *from, const int32_t *row, int64_t count, int64_t bytes)
{
    for (int64_t i = 0; i < count; i++)
        memcpy(to + i * bytes, from + row[i] * bytes, (size_t)bytes);
}

/* `columns` of rows that stand so far apart. */
static void add_columns(float *to, int64_t to_width, const float *rows, int64_t width,
                        const int32_t *row, int64_t count, int64_t columns)
{
    for (int64_t i = 0; i < count; i++) {
        float *sum = to + row[i] * to_width;
        const float *x = rows + i * width;
        for (int64_t j = 0; j < columns; j++) sum[j] += x[j];
    }
}

static void clear_columns(float *to, int64_t rows, int64_t width, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++) memset(to + i * width, 0, (size_t)columns * sizeof *to);
}

/* ---- products and their memory ------------------------------------------------------------------------------- */

typedef enum taps_kind { FORWARD, BACK, WEIGHT } taps_kind;

/* Over the `count` pixels of one tap. */
static stk_gemm product_of(const stk_conv *c, taps_kind kind, int64_t count)
{
    const int64_t ic = c->ic, oc = c->oc;
    stk_gemm g = {.m = count, .n = oc, .k = ic, .batch = 1, .dtype = (int32_t)c->dtype};
    if (kind == BACK) g.n = ic, g.k = oc, g.tb = 1;
    if (kind == WEIGHT) g.m = ic, g.k = count, g.ta = 1;
    g.lda = kind == BACK ? oc : ic;
    g.ldb = oc;
    g.ldc = g.n;
    return g;
}

/* The most of any number of pixels: what is packed, and how, hangs on it. */
static int64_t engine_bytes(const stk_conv *c, taps_kind kind)
{
    const stk_vec *vec = stk_vec_get();
    int64_t most = 0;
    for (int64_t count = 1; count <= pixels(c); count++) {
        const stk_gemm g = product_of(c, kind, count);
        most = stk_max_i64(most, c->dtype == STK_BF16 ? vec->gemm_pairs->scratch(&g)
                                                      : vec->gemm->scratch[STK_F32](&g));
    }
    return stk_round_up(most, STK_ALIGN);
}

static int64_t line(int64_t elements) { return stk_round_up(elements * 4, STK_ALIGN); }

static int64_t rows_bytes(const stk_conv *c)
{
    return 2 * line(pixels(c)) + line(pixels(c) * c->ic) + line(pixels(c) * c->oc);
}

static int64_t blocks(int64_t channels) { return stk_ceil_div(channels, CHANNELS); }

static int64_t results_of(const stk_conv *c, taps_kind kind)
{
    return c->n * volume(kind == FORWARD ? c->out : c->in);
}

/* Sums of one part of `parts`, in floats. */
static int64_t sums_bytes(const stk_conv *c, taps_kind kind, int32_t parts)
{
    if (c->dtype == STK_F32 || kind == WEIGHT) return 0;
    const int64_t all = blocks(kind == FORWARD ? c->oc : c->ic);
    return line(results_of(c, kind) * stk_ceil_div(all, stk_max_i64(parts, 1)) * CHANNELS);
}

static int64_t scratch(const stk_conv *c, taps_kind kind, int32_t parts)
{
    return (rows_bytes(c) + sums_bytes(c, kind, parts) + engine_bytes(c, kind)) * parts;
}

static stk_status prepare(stk_launch *launch, taps_kind kind, stk_error *err)
{
    (void)err;
    launch->state = (void *)(uintptr_t)(scratch(launch->params, kind, launch->parts) /
                                        stk_max_i64(launch->parts, 1)); /* of one part */
    return STK_OK;
}

static taps_memory memory_of(const stk_launch *launch, taps_kind kind, int part)
{
    const stk_conv *c = launch->params;
    char *at = (char *)launch->scratch + part * (int64_t)(uintptr_t)launch->state;
    const int64_t numbers = line(pixels(c)),
                  left = line(pixels(c) * (kind == BACK ? c->oc : c->ic));
    return (taps_memory){.x = (int32_t *)(void *)at,
                         .y = (int32_t *)(void *)(at + numbers),
                         .left = at + 2 * numbers,
                         .right = at + 2 * numbers + left,
                         .sums = (float *)(void *)(at + rows_bytes(c)),
                         .engine = at + rows_bytes(c) + sums_bytes(c, kind, launch->parts)};
}

/* Results of bfloat16 are floats, but for weights. */
static void multiply(const stk_gemm *g, const void *a, const void *b, void *out, int64_t lo,
                     int64_t hi, bool weights, void *scratch_)
{
    stk_gemm_job job = {.whole = g, .a = a, .b = b, .c = out, .scratch = scratch_};
    job.row_lo = weights ? lo : 0, job.row_hi = weights ? hi : g->m;
    job.col_lo = weights ? 0 : lo, job.col_hi = weights ? g->n : hi;
    job.wide = g->dtype == STK_BF16 && !weights;
    if (g->dtype == STK_BF16)
        stk_vec_get()->gemm_pairs->run(&job);
    else
        stk_vec_get()->gemm->run[STK_F32](&job);
}

/* ---- forward and back: from one side's channels to the other's ------------------------------------------------ */

/* Where a part adds up: floats in their place, or sums that are rounded at the end. */
static void data_run(const stk_launch *launch, int64_t first, int64_t end, int part, taps_kind kind)
{
    const stk_conv *c = launch->params;
    const int64_t width = kind == FORWARD ? c->oc : c->ic, given = kind == FORWARD ? c->ic : c->oc;
    const int64_t lo = first * CHANNELS, columns = stk_min_i64(end * CHANNELS, width) - lo;
    const int64_t results = results_of(c, kind), size = stk_dtype_size((stk_dtype)c->dtype);
    const bool plain = c->dtype == STK_F32;
    const taps_memory m = memory_of(launch, kind, part);
    const char *from = launch->arg[0], *w = launch->arg[1];
    float *to = plain ? (float *)launch->arg[2] + lo : m.sums;
    const int64_t to_width = plain ? width : columns;
    clear_columns(to, results, to_width, columns);
    for (int64_t tap = 0; tap < volume(c->kernel); tap++, w += c->ic * c->oc * size) {
        const int64_t count = meet(c, tap, &m);
        const stk_gemm g = product_of(c, kind, count);
        if (!count) continue;
        take_rows(m.left, from, kind == FORWARD ? m.x : m.y, count, given * size);
        multiply(&g, m.left, w, m.right, lo, lo + columns, false, m.engine);
        add_columns(to, to_width, (const float *)(const void *)m.right + lo, width,
                    kind == FORWARD ? m.y : m.x, count, columns);
    }
    for (int64_t i = 0; !plain && i < results; i++)
        stk_vec_get()->ew->store[STK_BF16](columns, (uint16_t *)launch->arg[2] + i * width + lo,
                                           m.sums + i * columns);
}

static void forward_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    data_run(launch, lo, hi, part, FORWARD);
}

static void back_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    data_run(launch, lo, hi, part, BACK);
}

/* ---- weight -------------------------------------------------------------------------------------------------- */

static void weight_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const stk_conv *c = launch->params;
    const int64_t each = blocks(c->ic), size = stk_dtype_size((stk_dtype)c->dtype);
    const taps_memory m = memory_of(launch, WEIGHT, part);
    for (int64_t at = lo, end; at < hi; at = end) {
        const int64_t tap = at / each, count = meet(c, tap, &m);
        end = stk_min_i64(hi, (tap + 1) * each);
        const int64_t row = (at - tap * each) * CHANNELS;
        const int64_t row_end = stk_min_i64((end - tap * each) * CHANNELS, c->ic);
        const stk_gemm g = product_of(c, WEIGHT, count);
        take_rows(m.left, launch->arg[0], m.x, count, c->ic * size);
        take_rows(m.right, launch->arg[1], m.y, count, c->oc * size);
        multiply(&g, m.left, m.right, (char *)launch->arg[2] + tap * c->ic * c->oc * size, row,
                 row_end, true, m.engine);
    }
}

/* ---- rows of the table ---------------------------------------------------------------------------------------- */

static int64_t forward_units(const void *params) { return blocks(((const stk_conv *)params)->oc); }
static int64_t back_units(const void *params) { return blocks(((const stk_conv *)params)->ic); }
static int64_t weight_units(const void *params)
{
    const stk_conv *c = params;
    return volume(c->kernel) * blocks(c->ic);
}

STK_CONV_WAY(forward, FORWARD)
STK_CONV_WAY(back, BACK)
STK_CONV_WAY(weight, WEIGHT)

const stk_impl stk_impl_conv_taps = {.name = "taps",
                                     .kernel = STK_K_CONV,
                                     .rank = 9,
                                     .supports = supports,
                                     .units = forward_units,
                                     .scratch = forward_scratch,
                                     .prepare = forward_prepare,
                                     .run = forward_run};
const stk_impl stk_impl_conv_bwd_data_taps = {.name = "taps",
                                              .kernel = STK_K_CONV_BWD_DATA,
                                              .rank = 9,
                                              .supports = supports,
                                              .units = back_units,
                                              .scratch = back_scratch,
                                              .prepare = back_prepare,
                                              .run = back_run};
const stk_impl stk_impl_conv_bwd_weight_taps = {.name = "taps",
                                                .kernel = STK_K_CONV_BWD_WEIGHT,
                                                .rank = 9,
                                                .supports = supports,
                                                .units = weight_units,
                                                .scratch = weight_scratch,
                                                .prepare = weight_prepare,
                                                .run = weight_run};
