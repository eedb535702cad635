/* Resizing of images: a unit is one row of the result. The rows it needs are summed into a row of float32, which
 * is then summed along the width. Weights are made once, when the launch is prepared. */
#include "device/cpu/cpu.h"
#include "base/resize_taps.h"
#include "device/cpu/vec/resize.h"
#include "device/cpu/vec/vec.h"

#include <string.h>

typedef struct resize_state {
    stk_taps *down, *across;
} resize_state;

static void resize_discard(stk_launch *l)
{
    resize_state *s = l->state;
    if (!s) return;
    stk_taps_free(s->down);
    stk_taps_free(s->across);
    stk_free(s);
    l->state = NULL;
}

static stk_status resize_prepare(stk_launch *l, stk_error *err)
{
    const stk_resize_params *p = l->params;
    resize_state *s = l->state = stk_calloc(1, sizeof *s);
    if (!s) return stk_fail_memory(err, "weights of a resize", sizeof *s);
    int64_t in_h = p->transposed ? p->out_h : p->in_h, out_h = p->transposed ? p->in_h : p->out_h;
    int64_t in_w = p->transposed ? p->out_w : p->in_w, out_w = p->transposed ? p->in_w : p->out_w;
    stk_status status =
        stk_taps_new(p->kind, p->antialias, p->transposed, in_h, out_h, &s->down, err);
    if (status == STK_OK)
        status = stk_taps_new(p->kind, p->antialias, p->transposed, in_w, out_w, &s->across, err);
    if (status != STK_OK) resize_discard(l);
    return status;
}

static int64_t resize_units(const void *params)
{
    const stk_resize_params *p = params;
    return p->batch * p->out_h;
}

static int64_t resize_grain(const void *params)
{
    const stk_resize_params *p = params;
    return stk_rows_worth(p->out_w * p->channels, 4096);
}

static uint32_t resize_aligned(const void *params)
{
    (void)params;
    return 2u; /* the result; of the image each unit reads a window */
}

/* ---- nearest: pixels are copied, of whatever type ---------------------------------------------------- */

#define COPY_PIXELS(bytes)                                                                         \
    case bytes:                                                                                    \
        for (int64_t i = 0; i < n; i++)                                                            \
            memcpy(out + i * bytes, row + (int64_t)first[i] * bytes, bytes);                       \
        return;
static void copy_pixels(uint8_t *out, const uint8_t *row, int64_t n, int64_t pixel,
                        const int32_t *first)
{
    switch (pixel) {
        COPY_PIXELS(1)
        COPY_PIXELS(2)
        COPY_PIXELS(3)
        COPY_PIXELS(4)
        COPY_PIXELS(8)
        COPY_PIXELS(12)
        COPY_PIXELS(16)
    default: break;
    }
    for (int64_t i = 0; i < n; i++) memcpy(out + i * pixel, row + first[i] * pixel, (size_t)pixel);
}

static bool copies_pixels(const stk_resize_params *p)
{
    return p->kind == STK_TAPS_NEAREST && !p->transposed;
}

/* ---- the fast one ----------------------------------------------------------------------------------------- */

static bool resize_vec_supports(const void *params)
{
    const stk_resize_params *p = params;
    return copies_pixels(p) ||
           (p->out_dtype == STK_F32 && (p->in_dtype == STK_F32 || p->in_dtype == STK_U8));
}

static int64_t row_floats(const stk_resize_params *p)
{
    return stk_round_up(p->in_w * p->channels + STK_RESIZE_SLACK, STK_ALIGN / 4);
}

static int64_t resize_vec_scratch(const void *params, int32_t parts)
{
    return copies_pixels(params) ? 0 : row_floats(params) * (int64_t)sizeof(float) * parts;
}

static void resize_vec_run(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    const stk_resize_params *p = l->params;
    const resize_state *s = l->state;
    const stk_taps *down = s->down, *across = s->across;
    int64_t size = stk_dtype_size((stk_dtype)p->in_dtype), width = p->in_w * p->channels;
    for (int64_t u = lo; u < hi; u++) {
        int64_t y = u % p->out_h, from = (u / p->out_h * p->in_h + down->first[y]) * width;
        const uint8_t *x = (const uint8_t *)l->arg[0] + from * size;
        if (copies_pixels(p)) {
            int64_t pixel = p->channels * size;
            copy_pixels((uint8_t *)l->arg[1] + u * p->out_w * pixel, x, p->out_w, pixel,
                        across->first);
            continue;
        }
        const stk_vec_resize *vec = stk_vec_get()->resize;
        float *row = (float *)l->scratch + part * row_floats(p);
        float *out = (float *)l->arg[1] + u * p->out_w * p->channels;
        const float *weight = down->weight + down->at[y];
        int64_t taps = down->at[y + 1] - down->at[y];
        if (taps == 0)
            memset(row, 0, (size_t)width * sizeof *row);
        else if (p->in_dtype == STK_U8)
            vec->rows_u8(row, x, width, width, weight, taps);
        else
            vec->rows_f32(row, (const float *)(const void *)x, width, width, weight, taps);
        vec->columns(out, row, p->out_w, p->channels, across->first, across->at, across->weight);
    }
}

const stk_impl stk_impl_resize_vec = {.name = "vec",
                                      .kernel = STK_K_RESIZE,
                                      .supports = resize_vec_supports,
                                      .units = resize_units,
                                      .grain = resize_grain,
                                      .aligned = resize_aligned,
                                      .scratch = resize_vec_scratch,
                                      .prepare = resize_prepare,
                                      .discard = resize_discard,
                                      .run = resize_vec_run};

/* ---- reference: the double sum, for each element ------------------------------------------------------------- */

static void resize_one(const stk_launch *l, int64_t image, int64_t y, int64_t x, int64_t c)
{
    const stk_resize_params *p = l->params;
    const resize_state *s = l->state;
    const stk_taps *down = s->down, *across = s->across;
    int64_t to = ((image * p->out_h + y) * p->out_w + x) * p->channels + c;
    int64_t in_size = stk_dtype_size((stk_dtype)p->in_dtype);
    uint8_t *out = (uint8_t *)l->arg[1] + to * stk_dtype_size((stk_dtype)p->out_dtype);
    double sum = 0;
    for (int32_t i = down->at[y]; i < down->at[y + 1]; i++)
        for (int32_t j = across->at[x]; j < across->at[x + 1]; j++) {
            int64_t row = down->first[y] + i - down->at[y],
                    column = across->first[x] + j - across->at[x];
            int64_t from = ((image * p->in_h + row) * p->in_w + column) * p->channels + c;
            const uint8_t *in = (const uint8_t *)l->arg[0] + from * in_size;
            if (copies_pixels(p)) {
                memcpy(out, in, (size_t)in_size);
                return;
            }
            sum += (double)down->weight[i] * (double)across->weight[j] *
                   stk_load_f64((stk_dtype)p->in_dtype, in);
        }
    stk_store_f64((stk_dtype)p->out_dtype, out, sum);
}

static void resize_ref(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)part;
    const stk_resize_params *p = l->params;
    for (int64_t u = lo; u < hi; u++)
        for (int64_t x = 0; x < p->out_w; x++)
            for (int64_t c = 0; c < p->channels; c++)
                resize_one(l, u / p->out_h, u % p->out_h, x, c);
}

const stk_impl stk_impl_resize_ref = {.name = "ref",
                                      .kernel = STK_K_RESIZE,
                                      .rank = 100,
                                      .units = resize_units,
                                      .prepare = resize_prepare,
                                      .discard = resize_discard,
                                      .run = resize_ref};
