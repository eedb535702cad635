/* Convolutions and pooling. */
#include "device/cl/recipes.h"

#include <stdio.h>

enum { FORWARD, DATA, WEIGHT };   /* SK_WHAT */
enum { DIRECT, WIDE, TILED };     /* SK_HOW */
enum { GROUP = 64, PARTS = 256 }; /* pixels of one part of a sum, at least */

static int64_t volume(const int64_t s[3]) { return s[0] * s[1] * s[2]; }

static sk_conv numbers_of(const stk_conv *c)
{
    sk_conv p = {
        .n = (int)c->n, .ic = (int)c->ic, .oc = (int)c->oc, .groups = (int)c->groups, .splits = 1};
    for (int i = 0; i < 3; i++) {
        p.in[i] = (int)c->in[i];
        p.out[i] = (int)c->out[i];
        p.taps[i] = (int)c->kernel[i];
        p.stride[i] = (int)c->stride[i];
        p.dilation[i] = (int)c->dilation[i];
        p.low[i] = (int)c->low[i];
    }
    return p;
}

/* What is made of it as a product: rows, depth, columns of one group. */
typedef struct product {
    int64_t rows, depth, columns;
} product;

static product product_of(const stk_conv *c, int what)
{
    int64_t taps = volume(c->kernel), in = c->ic / c->groups, out = c->oc / c->groups;
    if (what == FORWARD) return (product){c->n * volume(c->out), taps * in, out};
    if (what == DATA) return (product){c->n * volume(c->in), taps * out, in};
    return (product){taps * in, c->n * volume(c->out), out};
}

/* Sums over many pixels are cut into parts. Their number hangs on the problem only. */
static void split(sk_conv *p, int64_t pixels, int64_t wanted)
{
    int64_t splits = stk_min_i64(wanted, pixels / PARTS);
    p->splits = (int)stk_max_i64(splits, 1);
    p->part = (int)stk_ceil_div(pixels, p->splits);
}

static void start(stk_cl_build *b, const stk_conv *c, int what, int how, const char *more)
{
    stk_cl_kernel(b, "conv.cl", "conv", "-DSK_R=%s -DSK_WHAT=%d -DSK_HOW=%d %s",
                  stk_cl_type(c->dtype), what, how, more);
}

/* Arguments 0, 1, and the result: its own place, or parts of it in scratch memory. */
static int64_t put_arguments(stk_cl_build *b, const stk_conv *c, const sk_conv *p, int64_t results)
{
    int64_t item = stk_cl_size(c->dtype), room = 0;
    if (p->splits > 1) room = stk_cl_room(b, results * p->splits * item);
    stk_cl_arg(b, 0, item);
    stk_cl_arg(b, 1, item);
    if (p->splits > 1)
        stk_cl_room_arg(b, room, item);
    else
        stk_cl_arg(b, 2, item);
    return room;
}

static void emit_direct(stk_cl_build *b, const stk_conv *c, int what)
{
    sk_conv p = numbers_of(c);
    product q = product_of(c, what);
    int64_t results = q.rows * q.columns * c->groups;
    if (results == 0) return;
    if (what == WEIGHT) split(&p, q.depth, 64);
    start(b, c, what, DIRECT, "");
    int64_t room = put_arguments(b, c, &p, results);
    stk_cl_numbers(b, &p, sizeof p);
    stk_cl_grid(b, results * p.splits, GROUP);
    if (p.splits > 1) stk_cl_add_parts(b, c->dtype, room, 2, 1, p.splits, results);
}

static void emit_tiled(stk_cl_build *b, const stk_conv *c, int what)
{
    enum { USUAL = 64, ITEMS = 256 };
    sk_conv p = numbers_of(c);
    product q = product_of(c, what);
    const stk_cl_tile *tile = stk_cl_tile_of(b->variant, c->dtype);
    int64_t x = stk_ceil_div(q.rows, tile->m), y = stk_ceil_div(q.columns, tile->n),
            usual = stk_ceil_div(q.rows, USUAL) * stk_ceil_div(q.columns, USUAL),
            results = q.rows * q.columns * c->groups;
    char more[64];
    if (results == 0) return;
    p.part = (int)q.depth;
    if (what == WEIGHT) split(&p, q.depth, stk_max_i64(128 / stk_max_i64(usual, 1), 1));
    stk_cl_axes(b, x, y, c->groups * p.splits);
    start(b, c, what, TILED, stk_cl_tile_options(tile, more));
    int64_t room = put_arguments(b, c, &p, results);
    stk_cl_numbers(b, &p, sizeof p);
    stk_cl_groups(b, x, y, c->groups * p.splits, ITEMS);
    if (p.splits > 1) stk_cl_add_parts(b, c->dtype, room, 2, 1, p.splits, results);
}

static void emit_wide(stk_cl_build *b, const stk_conv *c, int what)
{
    enum { DEPTH = 512, SHALLOW = 64 };
    static const int64_t rows_at_once[] = {8, 4};
    static const double zero = 0;
    const int64_t at_once = rows_at_once[b->variant];
    sk_conv p = numbers_of(c);
    product q = product_of(c, what);
    int64_t width = c->dtype == STK_F64 ? 8 : 16, results = q.rows * q.columns * c->groups;
    int vectors = q.columns > width ? 2 : 1;
    int64_t depth = DEPTH, wide = width * vectors * (c->dtype == STK_F64 ? 8 : 4);
    while (depth > SHALLOW && (size_t)(depth * wide) > b->d->local_limit) depth /= 2;
    int64_t panels = stk_ceil_div(q.columns, width * vectors);
    char more[96];
    if (results == 0) return;
    bool thin = c->ic / c->groups < at_once;
    snprintf(more, sizeof more, "-DSK_W=%d -DSK_NV=%d -DSK_MR=%d -DSK_KC=%d -DSK_THIN=%d",
             (int)width, vectors, (int)at_once, (int)depth, what == WEIGHT && thin);
    p.rows = 256;
    while (p.rows > 32 && panels * c->groups * stk_ceil_div(q.rows, p.rows) < 4 * b->d->units)
        p.rows /= 2;
    if (what == WEIGHT) split(&p, q.depth, 16);
    start(b, c, what, WIDE, more);
    int64_t room = put_arguments(b, c, &p, results);
    if (what != WEIGHT) stk_cl_table_arg(b, &zero, sizeof zero, 8);
    stk_cl_numbers(b, &p, sizeof p);
    if (what == WEIGHT) {
        int64_t strips = thin ? stk_ceil_div(q.rows, at_once)
                              : volume(c->kernel) * stk_ceil_div(c->ic / c->groups, at_once);
        stk_cl_groups(b, panels * c->groups, strips, p.splits, 1);
    } else {
        stk_cl_groups(b, panels, stk_ceil_div(q.rows, p.rows), c->groups, 1);
    }
    if (p.splits > 1) stk_cl_add_parts(b, c->dtype, room, 2, 1, p.splits, results);
}

static const char *refuse_conv(const stk_cl_device *d, const void *params)
{
    return stk_cl_refuse_real(d, ((const stk_conv *)params)->dtype);
}

/* Few channels made leave vectors and tiles empty. */
static const char *refuse_narrow(const stk_cl_device *d, const stk_conv *c, int what)
{
    enum { FEW = 4 };
    if (product_of(c, what).columns < FEW) return "few channels: direct";
    return stk_cl_refuse_real(d, c->dtype);
}
static const char *refuse_wide(const stk_cl_device *d, const stk_conv *c, int what)
{
    return d->is_cpu ? refuse_narrow(d, c, what) : "meant for devices of type CPU";
}

#define CONV(kernel_id, suffix, what)                                                              \
    static void emit_direct_##suffix(stk_cl_build *b, const void *params)                          \
    {                                                                                              \
        emit_direct(b, params, what);                                                              \
    }                                                                                              \
    static void emit_wide_##suffix(stk_cl_build *b, const void *params)                            \
    {                                                                                              \
        emit_wide(b, params, what);                                                                \
    }                                                                                              \
    static void emit_tiled_##suffix(stk_cl_build *b, const void *params)                           \
    {                                                                                              \
        emit_tiled(b, params, what);                                                               \
    }                                                                                              \
    static const char *refuse_wide_##suffix(const stk_cl_device *d, const void *params)            \
    {                                                                                              \
        return refuse_wide(d, params, what);                                                       \
    }                                                                                              \
    static const char *refuse_narrow_##suffix(const stk_cl_device *d, const void *params)          \
    {                                                                                              \
        return refuse_narrow(d, params, what);                                                     \
    }                                                                                              \
    const stk_cl_recipe stk_cl_recipe_##suffix##_wide = {.kernel = kernel_id,                      \
                                                         .name = "wide",                           \
                                                         .refuses = refuse_wide_##suffix,          \
                                                         .emit = emit_wide_##suffix,               \
                                                         .variants = 2};                           \
    const stk_cl_recipe stk_cl_recipe_##suffix##_tiled = {.kernel = kernel_id,                     \
                                                          .name = "tiled",                         \
                                                          .refuses = refuse_narrow_##suffix,       \
                                                          .emit = emit_tiled_##suffix,             \
                                                          .variants = STK_CL_TILES};               \
    const stk_cl_recipe stk_cl_recipe_##suffix##_direct = {.kernel = kernel_id,                    \
                                                           .name = "direct",                       \
                                                           .refuses = refuse_conv,                 \
                                                           .emit = emit_direct_##suffix};
CONV(STK_K_CONV, conv, FORWARD)
CONV(STK_K_CONV_BWD_DATA, conv_bwd_data, DATA)
CONV(STK_K_CONV_BWD_WEIGHT, conv_bwd_weight, WEIGHT)

/* ---- pooling --------------------------------------------------------------------------------------------- */

static void emit_pool(stk_cl_build *b, const stk_pool_params *c, const char *kernel, bool input,
                      const int *args)
{
    sk_pool p = {.n = (int)c->n, .c = (int)c->c};
    bool wide = stk_pool_wide(c->window);
    int64_t channels = b->d->is_cpu && c->c > 4 ? 16 : 1, item = stk_cl_size(c->dtype);
    int64_t count = c->n * stk_ceil_div(c->c, channels) * volume(input ? c->in : c->out);
    for (int i = 0; i < 3; i++) {
        p.in[i] = (int)c->in[i];
        p.out[i] = (int)c->out[i];
        p.window[i] = (int)c->window[i];
        p.stride[i] = (int)c->stride[i];
        p.low[i] = (int)c->low[i];
    }
    if (count == 0) return;
    stk_cl_kernel(b, "pool.cl", kernel,
                  "-DSK_T=%s -DSK_A=%s -DSK_LOAD=sk_load_%s -DSK_STORE=sk_store_%s -DSK_W=%s "
                  "-DSK_Q=%d",
                  stk_cl_type(c->dtype), stk_cl_lane(c->dtype), stk_cl_short(c->dtype),
                  stk_cl_short(c->dtype), wide ? "int" : "uchar", (int)channels);
    for (int32_t i = 0; args[i] >= 0; i++) stk_cl_arg(b, i, args[i] ? item : wide ? 4 : 1);
    stk_cl_numbers(b, &p, sizeof p);
    stk_cl_grid(b, count, channels > 1 ? 16 : GROUP);
}

static const char *refuse_pool(const stk_cl_device *d, const void *params)
{
    return stk_cl_refuse_real(d, ((const stk_pool_params *)params)->dtype);
}

/* args: 1 an element, 0 a number of a tap */
#define POOL(kernel_id, suffix, input, ...)                                                        \
    static void emit_##suffix(stk_cl_build *b, const void *params)                                 \
    {                                                                                              \
        emit_pool(b, params, #suffix, input, (const int[]){__VA_ARGS__, -1});                      \
    }                                                                                              \
    const stk_cl_recipe stk_cl_recipe_##suffix = {                                                 \
        .kernel = kernel_id, .name = "gather", .refuses = refuse_pool, .emit = emit_##suffix};
POOL(STK_K_MAX_POOL, max_pool, false, 1, 1, 0)
POOL(STK_K_MAX_POOL_GRAD, max_pool_grad, true, 0, 1, 1)
POOL(STK_K_MAX_POOL_PICK, max_pool_pick, false, 0, 1, 1)
POOL(STK_K_AVG_POOL, avg_pool, false, 1, 1)
POOL(STK_K_AVG_POOL_GRAD, avg_pool_grad, true, 1, 1)
