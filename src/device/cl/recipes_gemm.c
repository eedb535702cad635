/* Matrix products: `wide` for processors with wide vectors and caches, `tiled` for those with many small threads. */
#include "device/cl/recipes.h"

#include <stdio.h>
#include <string.h>

static const char *refuse_any(const stk_cl_device *d, const void *params)
{
    const stk_gemm *g = params;
    if (g->dtype != STK_F32 && g->dtype != STK_F16 && g->dtype != STK_BF16 && g->dtype != STK_F64)
        return "products of real numbers only";
    return stk_cl_refuse_lane(d, g->dtype);
}

enum { WIDE_DEPTH = 128 }; /* terms of a block of `wide`; between blocks its sums are in c */

static const char *refuse_wide(const stk_cl_device *d, const void *params)
{
    const stk_gemm *g = params;
    if ((g->dtype == STK_F16 || g->dtype == STK_BF16) && g->k > WIDE_DEPTH)
        return "sums of half types would be rounded after every block of terms";
    return d->is_cpu ? refuse_any(d, params) : "meant for devices of type CPU";
}

static sk_gemm numbers_of(const stk_gemm *g)
{
    return (sk_gemm){.m = (int)g->m,
                     .n = (int)g->n,
                     .k = (int)g->k,
                     .a_row = g->ta ? 1 : (int)g->lda,
                     .a_column = g->ta ? (int)g->lda : 1,
                     .b_row = g->tb ? 1 : (int)g->ldb,
                     .b_column = g->tb ? (int)g->ldb : 1,
                     .ldc = (int)g->ldc,
                     .batch_a = (int)g->batch_a,
                     .batch_b = (int)g->batch_b,
                     .batch_c = (int)g->batch_c,
                     .accumulate = g->accumulate,
                     .splits = 1,
                     .part = (int)g->k};
}

static void emit_product(stk_cl_build *b, const stk_gemm *g, const char *options)
{
    stk_cl_kernel(b, "gemm.cl", "gemm",
                  "-DSK_T=%s -DSK_R=%s -DSK_LOAD=sk_load_%s -DSK_STORE=sk_store_%s -DSK_END=%d %s",
                  stk_cl_type(g->dtype), stk_cl_lane(g->dtype), stk_cl_short(g->dtype),
                  stk_cl_short(g->dtype), b->ending.kind, options);
}

/* The operands of what is done with the product, and whether the product itself is wanted by others. */
static void put_ending(stk_cl_build *b, int64_t item, sk_gemm *p)
{
    if (!b->ending.kind || !b->loading) return;
    const stk_task *next = b->task + 1;
    p->keep = b->plan->home[stk_root(b->plan, b->task->arg[2])].last > next->group;
    stk_cl_arg_of(b, next, b->ending.with, item);
    stk_cl_arg_of(b, next, 2, item);
}

static void emit_wide(stk_cl_build *b, const void *params)
{
    const stk_gemm *g = params;
    static const int rows_at_once[] = {8, 4, 12};
    const int64_t width = g->dtype == STK_F64 ? 8 : 16, item = stk_cl_size(g->dtype);
    bool plain = g->dtype == STK_F32 || g->dtype == STK_F64;
    char options[128];
    sk_gemm p = numbers_of(g);
    /* Enough blocks of rows for every processor. */
    int64_t panels = stk_ceil_div(g->n, 2 * width) * g->batch, rows = 128;
    while (rows > 16 && panels * stk_ceil_div(g->m, rows) < 2 * b->d->units) rows /= 2;
    if (g->m == 0 || g->n == 0 || g->batch == 0) return;
    p.rows = (int)rows;
    snprintf(options, sizeof options, "-DSK_WIDE=1 -DSK_W=%d -DSK_MR=%d -DSK_KC=%d%s", (int)width,
             rows_at_once[b->variant], WIDE_DEPTH, plain ? " -DSK_PLAIN=1" : "");
    emit_product(b, g, options);
    for (int32_t i = 0; i < 3; i++) stk_cl_arg(b, i, item);
    put_ending(b, item, &p);
    stk_cl_numbers(b, &p, sizeof p);
    stk_cl_groups(b, stk_ceil_div(g->n, 2 * width), stk_ceil_div(g->m, rows), g->batch, 1);
}

const stk_cl_tile *stk_cl_tile_of(int32_t variant, int64_t dtype)
{
    static const stk_cl_tile tiles[STK_CL_TILES] = {
        {64, 64, 4, 4}, {128, 64, 8, 4}, {64, 128, 4, 8}, {32, 32, 2, 2}};
    const stk_cl_tile *t = &tiles[variant];
    return dtype == STK_F64 && t->item_m * t->item_n > 16 ? &tiles[0] : t;
}

const char *stk_cl_tile_options(const stk_cl_tile *t, char text[64])
{
    snprintf(text, 64, "-DSK_BM=%d -DSK_BN=%d -DSK_TM=%d -DSK_TN=%d", t->m, t->n, t->item_m,
             t->item_n);
    return text;
}

/* A long k over few tiles is cut into parts, which are added afterwards. */
static int64_t splits_of(const stk_gemm *g, int64_t tiles, bool ending)
{
    enum { WANTED = 64, SHORTEST = 256 };
    bool dense = g->ldc == g->n && (g->batch == 1 || g->batch_c == g->m * g->n);
    if (ending || g->accumulate || !dense || g->dtype == STK_F16 || g->dtype == STK_BF16) return 1;
    int64_t splits = stk_min_i64(WANTED / stk_max_i64(tiles, 1), g->k / SHORTEST);
    return stk_max_i64(splits, 1);
}

static void emit_tiled(stk_cl_build *b, const void *params)
{
    enum { USUAL = 64, GROUP = 256 };
    const stk_gemm *g = params;
    const stk_cl_tile *tile = stk_cl_tile_of(b->variant, g->dtype);
    const int64_t item = stk_cl_size(g->dtype);
    int64_t x = stk_ceil_div(g->n, tile->n), y = stk_ceil_div(g->m, tile->m), room = 0;
    int64_t usual = stk_ceil_div(g->n, USUAL) * stk_ceil_div(g->m, USUAL); /* whatever the tile */
    int64_t splits = splits_of(g, usual * g->batch, b->ending.kind != 0),
            count = g->m * g->n * g->batch;
    sk_gemm p = numbers_of(g);
    char options[96] = "-DSK_WIDE=0 ";
    if (count == 0) return;
    if (splits > 1) {
        p.splits = (int)splits;
        p.part = (int)stk_ceil_div(g->k, splits);
        p.batch_c = (int)(g->m * g->n);
        room = stk_cl_room(b, splits * count * item);
    }
    stk_cl_axes(b, x, y, g->batch * splits);
    stk_cl_tile_options(tile, options + strlen(options));
    emit_product(b, g, options);
    stk_cl_arg(b, 0, item);
    stk_cl_arg(b, 1, item);
    if (splits > 1)
        stk_cl_room_arg(b, room, item);
    else
        stk_cl_arg(b, 2, item);
    put_ending(b, item, &p);
    stk_cl_numbers(b, &p, sizeof p);
    stk_cl_groups(b, x, y, g->batch * splits, GROUP);
    if (splits > 1) stk_cl_add_parts(b, g->dtype, room, 2, g->batch, splits, g->m * g->n);
}

const stk_cl_recipe stk_cl_recipe_gemm_wide = {
    .kernel = STK_K_GEMM, .name = "wide", .refuses = refuse_wide, .emit = emit_wide, .variants = 3};
const stk_cl_recipe stk_cl_recipe_gemm_tiled = {.kernel = STK_K_GEMM,
                                                .name = "tiled",
                                                .refuses = refuse_any,
                                                .emit = emit_tiled,
                                                .variants = STK_CL_TILES};
