/* Backward data for images of few channels, float32: there the own kernel would leave most of each register empty.
 *
 * A product first gives every pixel of dy its contributions to all taps and channels, side by side
 *
 *     t[pixel, (tap, channel)] = sum over c of dy[pixel, c] * w[tap, channel, c]
 *
 * and these are then added to the pixels of dx they belong to, in the order of dy's pixels. Units are images.
 * Scratch of one part, in floats: [ t of a band of pixels | transposed weights, in panels ]. */
#include "base/memory.h"
#include "device/cpu/cpu.h"
#include "device/cpu/vec/conv.h"

#include <string.h>

enum {
    BAND = 1 << 12,
    PANEL = 4
}; /* floats of t that stay in the first-level cache; registers of a panel */

typedef struct columns_sizes {
    int64_t columns, wide; /* of t: taps * channels, and rounded up to registers */
    int64_t band_cols;     /* pixels of one row of dy that go together */
    int64_t t, total;      /* floats of scratch */
} columns_sizes;

static const stk_vec_conv *vec(void) { return stk_vec_get()->conv; }

static int64_t volume(const int64_t size[3]) { return size[0] * size[1] * size[2]; }

static columns_sizes sizes_of(const stk_conv *c)
{
    columns_sizes s = {.columns = volume(c->kernel) * c->ic};
    s.wide = stk_round_up(s.columns, vec()->width);
    s.band_cols = stk_min_i64(c->out[2], stk_max_i64(BAND / s.wide, 16));
    s.t = stk_round_up(s.band_cols * s.wide, 16);
    s.total = s.t + stk_round_up(c->oc * s.wide, 16);
    return s;
}

static bool supports(const void *params)
{
    const stk_conv *c = params;
    double columns = (double)volume(c->kernel) * (double)c->ic;
    return c->dtype == STK_F32 && c->groups == 1 && 2 * c->ic <= vec()->width &&
           columns >= (double)vec()->width && columns < 4096;
}

static int64_t units(const void *params) { return ((const stk_conv *)params)->n; }

static int64_t room(const void *params) { return sizes_of(params).total * (int64_t)sizeof(float); }

static int64_t panel_of(int64_t left) { return left < PANEL ? left : PANEL; }

static void pack(const stk_conv *c, const columns_sizes *s, const float *w, float *to)
{
    int64_t vf = vec()->width;
    for (int64_t first = 0, nv; first < s->wide; first += nv) {
        nv = panel_of((s->wide - first) / vf) * vf;
        int64_t live = stk_min_i64(nv, s->columns - first);
        for (int64_t k = 0; k < c->oc; k++, to += nv) {
            for (int64_t j = 0; j < live; j++) to[j] = w[(first + j) * c->oc + k];
            memset(to + live, 0, (size_t)(nv - live) * sizeof *to);
        }
    }
}

static void products(const stk_conv *c, const columns_sizes *s, const float *dy, int64_t cols,
                     const float *w, float *t)
{
    int64_t vf = vec()->width;
    stk_conv_run run = {.n = c->oc};
    stk_conv_block b = {
        .x = dy, .images = 1, .rows = 1, .cols = cols, .x_col = c->oc, .run = &run, .runs = 1};
    b.y_col = s->wide;
    for (int64_t first = 0, nv; first < s->wide; first += nv * vf) {
        nv = panel_of((s->wide - first) / vf);
        b.y = t + first;
        b.w = w + first * c->oc;
        b.ldw = b.columns = nv * vf;
        vec()->data[nv - 1](&b);
    }
}

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

/* A few elements, too few for what the compiler makes of a plain loop. */
static inline void add(float *to, const float *from, int64_t n)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) *(four *)(to + i) += *(const four *)(from + i);
    for (; i < n; i++) to[i] += from[i];
}

/* Adds one kernel row of contributions of the output pixel in column ow to the row of dx. */
static void add_row(const stk_conv *c, const float *t, int64_t ow, float *dx)
{
    int64_t iw = ow * c->stride[2] - c->low[2], ic = c->ic;
    if (c->dilation[2] == 1) {
        int64_t from = iw < 0 ? -iw : 0, to = stk_min_i64(c->kernel[2], c->in[2] - iw);
        float *at = dx + (iw + from) * ic;
        const float *give = t + from * ic;
        add(at, give, (to - from) * ic);
        return;
    }
    for (int64_t k = 0; k < c->kernel[2]; k++, t += ic, iw += c->dilation[2])
        for (int64_t j = 0; j < ic && iw >= 0 && iw < c->in[2]; j++) dx[iw * ic + j] += t[j];
}

/* The columns `cols` from `first` on of row (d, h) of dy: all kernel rows that land inside the image. Neighbours
 * overlap, so every n-th pixel is taken in turn: a sum that was just stored is not needed at once. */
static void add_band(const stk_conv *c, const columns_sizes *s, const float *t, int64_t d,
                     int64_t h, int64_t first, int64_t cols, float *dx)
{
    int64_t apart = stk_ceil_div((c->kernel[2] - 1) * c->dilation[2] + 1, c->stride[2]);
    for (int64_t kd = 0; kd < c->kernel[0]; kd++)
        for (int64_t kh = 0; kh < c->kernel[1]; kh++) {
            int64_t z = d * c->stride[0] + kd * c->dilation[0] - c->low[0];
            int64_t y = h * c->stride[1] + kh * c->dilation[1] - c->low[1];
            if (z < 0 || z >= c->in[0] || y < 0 || y >= c->in[1]) continue;
            float *row = dx + (z * c->in[1] + y) * c->in[2] * c->ic;
            const float *give = t + (kd * c->kernel[1] + kh) * c->kernel[2] * c->ic;
            for (int64_t start = 0; start < apart; start++)
                for (int64_t col = start; col < cols; col += apart)
                    add_row(c, give + col * s->wide, first + col, row);
        }
}

static void run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const stk_conv *c = launch->params;
    columns_sizes s = sizes_of(c);
    float *t = launch->room, *w = t + s.t;
    (void)part;
    pack(c, &s, launch->arg[1], w);
    int64_t x_image = volume(c->in) * c->ic, y_row = c->out[2] * c->oc;
    for (int64_t i = lo; i < hi; i++) {
        const float *dy = (const float *)launch->arg[0] + i * volume(c->out) * c->oc;
        float *dx = (float *)launch->arg[2] + i * x_image;
        memset(dx, 0, (size_t)x_image * sizeof *dx);
        for (int64_t d = 0; d < c->out[0]; d++)
            for (int64_t h = 0; h < c->out[1]; h++, dy += y_row)
                for (int64_t first = 0; first < c->out[2]; first += s.band_cols) {
                    int64_t cols = stk_min_i64(s.band_cols, c->out[2] - first);
                    products(c, &s, dy + first * c->oc, cols, w, t);
                    add_band(c, &s, t, d, h, first, cols, dx);
                }
    }
}

static uint32_t aligned(const void *params)
{
    (void)params;
    return 1u | 4u;
}

const stk_impl stk_impl_conv_bwd_data_columns = {.name = "columns",
                                                 .kernel = STK_K_CONV_BWD_DATA,
                                                 .rank = 8,
                                                 .supports = supports,
                                                 .units = units,
                                                 .aligned = aligned,
                                                 .room = room,
                                                 .run = run};
