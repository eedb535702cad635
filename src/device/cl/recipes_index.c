/* Picking, placing and ordering elements, and walks along lines. */
#include "device/cl/recipes.h"

#include <stdio.h>
#include <string.h>

enum { GROUP = 256, LINES = 16, RUN = 16 };

/* ---- lines ----------------------------------------------------------------------------------------------- */

static void start_lines(stk_cl_build *b, const char *kernel, int64_t dtype)
{
    stk_cl_kernel(b, "lines.cl", kernel,
                  "-DSK_T=%s -DSK_A=%s -DSK_LOAD=sk_load_%s -DSK_STORE=sk_store_%s -DSK_SCAN=%d",
                  stk_cl_type(dtype), stk_cl_lane(dtype), stk_cl_short(dtype), stk_cl_short(dtype),
                  strcmp(kernel, "iota") != 0);
}

static void emit_iota(stk_cl_build *b, const void *params)
{
    const stk_iota_params *q = params;
    sk_lines p = {.outer = (int)q->outer, .n = (int)q->n, .inner = (int)q->inner};
    if (q->outer * q->n * q->inner == 0) return;
    start_lines(b, "iota", q->dtype);
    stk_cl_arg(b, 0, stk_cl_size(q->dtype));
    stk_cl_numbers(b, &p, sizeof p);
    stk_cl_grid(b, q->outer * q->n * q->inner, GROUP);
}
static const char *refuse_iota(const stk_cl_device *d, const void *params)
{
    return stk_cl_refuse_lane(d, ((const stk_iota_params *)params)->dtype);
}

static void emit_scan(stk_cl_build *b, const void *params)
{
    const stk_scan_params *q = params;
    bool linear = q->kind == STK_SCAN_LINEAR;
    sk_lines p = {.outer = (int)q->outer,
                  .n = (int)q->n,
                  .inner = (int)q->inner,
                  .a = q->kind == STK_SCAN_PROD,
                  .b = q->exclusive,
                  .c = q->reverse};
    if (q->outer * q->n * q->inner == 0) return;
    start_lines(b, linear ? "linear" : "scan", q->dtype);
    for (int32_t i = 0; i < (linear ? 3 : 2); i++) stk_cl_arg(b, i, stk_cl_size(q->dtype));
    stk_cl_numbers(b, &p, sizeof p);
    stk_cl_grid(b, q->outer * q->inner, LINES);
}
static const char *refuse_scan(const stk_cl_device *d, const void *params)
{
    return stk_cl_refuse_lane(d, ((const stk_scan_params *)params)->dtype);
}

const stk_cl_recipe stk_cl_recipe_iota = {
    .kernel = STK_K_IOTA, .name = "plain", .refuses = refuse_iota, .emit = emit_iota};
const stk_cl_recipe stk_cl_recipe_scan = {
    .kernel = STK_K_SCAN, .name = "lines", .refuses = refuse_scan, .emit = emit_scan};

/* ---- sorting --------------------------------------------------------------------------------------------- */

/* Scratch memory of a sort, two of each: passes go from one to the other. */
typedef struct sorting {
    int64_t keys[2], places[2];
    int now;
} sorting;

/* Options of sort.cl for keys of this type; rows: numbers of rows, those out of range last. */
static void key_options(int64_t dtype, bool rows, char *out, size_t size)
{
    static const char *const infinity[] = {[STK_F32] = "0x7f800000u",
                                           [STK_F64] = "0x7ff0000000000000ul",
                                           [STK_F16] = "0x7c00u",
                                           [STK_BF16] = "0x7f80u"};
    int64_t bytes = stk_cl_size(dtype);
    char kind = stk_dtype_kind((stk_dtype)dtype);
    snprintf(out, size, "-DSK_E=%s -DSK_BITS=%d -DSK_KEY=%d -DSK_INFINITY=%s -DSK_RUN=%d",
             rows ? stk_cl_type(dtype) : stk_cl_item(bytes), (int)(8 * bytes),
             rows          ? 3
             : kind == 'F' ? 2
             : kind == 'I' ? 1
                           : 0,
             kind == 'F' ? infinity[dtype] : "0", RUN);
}

/* Lines of argument `arg`, sorted into scratch memory. */
static sorting emit_order(stk_cl_build *b, int32_t arg, int64_t dtype, bool rows, sk_lines p)
{
    sorting s = {0};
    char options[160];
    int64_t lines = (int64_t)p.outer * p.inner, count = lines * p.n;
    key_options(dtype, rows, options, sizeof options);
    for (int i = 0; i < (p.n > RUN ? 2 : 1); i++) {
        s.keys[i] = stk_cl_room(b, count * 8);
        s.places[i] = stk_cl_room(b, count * 4);
    }
    stk_cl_kernel(b, "sort.cl", "sort_runs", "%s", options);
    stk_cl_arg(b, arg, stk_cl_size(dtype));
    stk_cl_room_arg(b, s.keys[0], 8);
    stk_cl_room_arg(b, s.places[0], 4);
    stk_cl_numbers(b, &p, sizeof p);
    stk_cl_grid(b, lines * stk_ceil_div(p.n, RUN), LINES);
    for (int64_t run = RUN; run < p.n; run *= 2) {
        p.c = (int)run;
        stk_cl_kernel(b, "sort.cl", "sort_merge", "%s", options);
        stk_cl_room_arg(b, s.keys[s.now], 8);
        stk_cl_room_arg(b, s.places[s.now], 4);
        s.now ^= 1;
        stk_cl_room_arg(b, s.keys[s.now], 8);
        stk_cl_room_arg(b, s.places[s.now], 4);
        stk_cl_numbers(b, &p, sizeof p);
        stk_cl_grid(b, count, GROUP);
    }
    return s;
}

static void emit_sort(stk_cl_build *b, const void *params)
{
    const stk_sort_params *q = params;
    sk_lines p = {
        .outer = (int)q->outer, .n = (int)q->n, .inner = (int)q->inner, .b = q->descending};
    char options[160];
    int64_t count = q->outer * q->k * q->inner, item = stk_cl_size(q->dtype);
    if (count == 0) return;
    sorting s = emit_order(b, 0, q->dtype, false, p);
    key_options(q->dtype, false, options, sizeof options);
    p.c = (int)q->k;
    stk_cl_kernel(b, "sort.cl", "sort_finish", "%s", options);
    stk_cl_arg(b, 0, item);
    stk_cl_room_arg(b, s.places[s.now], 4);
    stk_cl_arg(b, 1, item);
    stk_cl_arg(b, 2, 8);
    stk_cl_numbers(b, &p, sizeof p);
    stk_cl_grid(b, count, GROUP);
}
static const char *refuse_sort(const stk_cl_device *d, const void *params)
{
    (void)d;
    return ((const stk_sort_params *)params)->dtype == STK_STRING ? "strings" : NULL;
}

const stk_cl_recipe stk_cl_recipe_sort = {
    .kernel = STK_K_SORT, .name = "merge", .refuses = refuse_sort, .emit = emit_sort};

/* ---- gather and scatter ---------------------------------------------------------------------------------- */

static sk_gather gather_numbers(const stk_gather_params *g)
{
    return (sk_gather){.batch = (int)g->batch,
                       .outer = (int)g->outer,
                       .n = (int)g->n,
                       .count = (int)g->count,
                       .inner = (int)g->inner};
}

static void emit_moves(stk_cl_build *b, const char *kernel, int64_t dtype, int64_t index,
                       const sk_gather *p, int64_t count)
{
    int64_t item = stk_cl_size(dtype);
    if (count == 0) return;
    stk_cl_kernel(b, "index.cl", kernel, "-DSK_MOVES=1 -DSK_E=%s -DSK_I=%s", stk_cl_item(item),
                  stk_cl_type(index));
    stk_cl_arg(b, 0, item);
    stk_cl_arg(b, 1, stk_cl_size(index));
    stk_cl_arg(b, 2, item);
    stk_cl_numbers(b, p, sizeof *p);
    stk_cl_grid(b, count, GROUP);
}

static void emit_gather(stk_cl_build *b, const void *params)
{
    const stk_gather_params *g = params;
    sk_gather p = gather_numbers(g);
    emit_moves(b, "gather", g->dtype, g->index, &p, g->batch * g->outer * g->count * g->inner);
}

static sk_gather along_numbers(const stk_along_params *a)
{
    return (sk_gather){
        .outer = (int)a->outer, .n = (int)a->n, .count = (int)a->count, .inner = (int)a->inner};
}

static void emit_take_along(stk_cl_build *b, const void *params)
{
    const stk_along_params *a = params;
    sk_gather p = along_numbers(a);
    emit_moves(b, "take_along", a->dtype, a->index, &p, a->outer * a->count * a->inner);
}

static void start_adds(stk_cl_build *b, const char *kernel, int64_t dtype, int64_t index, int base)
{
    stk_cl_kernel(b, "index.cl", kernel,
                  "-DSK_MOVES=0 -DSK_T=%s -DSK_A=%s -DSK_LOAD=sk_load_%s -DSK_STORE=sk_store_%s "
                  "-DSK_I=%s -DSK_BASE=%d",
                  stk_cl_type(dtype), stk_cl_lane(dtype), stk_cl_short(dtype), stk_cl_short(dtype),
                  stk_cl_type(index), base);
}

static void emit_scatter(stk_cl_build *b, const void *params)
{
    enum { FEW = 32 };
    const stk_scatter_params *s = params;
    const stk_gather_params *g = &s->at;
    sk_gather p = gather_numbers(g);
    int64_t item = stk_cl_size(g->dtype), count = g->batch * g->outer * g->n * g->inner;
    bool few = g->count <= FEW;
    sorting order = {0};
    if (count == 0) return;
    p.set = s->mode == STK_SCATTER_SET;
    if (!few)
        order = emit_order(
            b, 0, g->index, true,
            (sk_lines){.outer = (int)g->batch, .n = (int)g->count, .inner = 1, .a = (int)g->n});
    start_adds(b, few ? "scatter_few" : "scatter_sorted", g->dtype, g->index, s->base);
    if (few) {
        stk_cl_arg(b, 0, stk_cl_size(g->index));
    } else {
        stk_cl_room_arg(b, order.keys[order.now], 8);
        stk_cl_room_arg(b, order.places[order.now], 4);
    }
    for (int32_t i = 1; i <= 2 + s->base; i++) stk_cl_arg(b, i, item);
    stk_cl_numbers(b, &p, sizeof p);
    stk_cl_grid(b, count, GROUP);
}

static void emit_put_along(stk_cl_build *b, const void *params)
{
    const stk_along_params *a = params;
    sk_gather p = along_numbers(a);
    if (a->outer * a->n * a->inner == 0) return;
    start_adds(b, "put_along", a->dtype, a->index, 0);
    stk_cl_arg(b, 0, stk_cl_size(a->index));
    stk_cl_arg(b, 1, stk_cl_size(a->dtype));
    stk_cl_arg(b, 2, stk_cl_size(a->dtype));
    stk_cl_numbers(b, &p, sizeof p);
    stk_cl_grid(b, a->outer * a->inner, LINES);
}

static void emit_ravel_index(stk_cl_build *b, const void *params)
{
    const stk_ravel_params *r = params;
    sk_ravel p = {.batch = (int)r->batch, .count = (int)r->count, .depth = (int)r->depth};
    for (int i = 0; i < STK_MAX_RANK; i++) p.dim[i] = (int)r->dim[i];
    if (r->batch * r->count == 0) return;
    stk_cl_kernel(b, "index.cl", "ravel_index", "-DSK_MOVES=1 -DSK_E=uint -DSK_I=%s",
                  stk_cl_type(r->index));
    stk_cl_arg(b, 0, stk_cl_size(r->index));
    stk_cl_arg(b, 1, 8);
    stk_cl_numbers(b, &p, sizeof p);
    stk_cl_grid(b, r->batch * r->count, GROUP);
}

static void emit_one_hot(stk_cl_build *b, const void *params)
{
    const stk_one_hot_params *o = params;
    sk_lines p = {.outer = (int)o->outer, .n = (int)o->depth, .inner = (int)o->inner}, value = {0};
    if (o->outer * o->depth * o->inner == 0) return;
    memcpy(&value.outer, o->on, 4);
    memcpy(&value.n, o->on + 4, 4);
    memcpy(&value.inner, o->off, 4);
    memcpy(&value.a, o->off + 4, 4);
    stk_cl_kernel(b, "move.cl", "one_hot", "-DSK_E=%s -DSK_I=%s", stk_cl_item(o->item),
                  stk_cl_type(o->index));
    stk_cl_arg(b, 0, stk_cl_size(o->index));
    stk_cl_arg(b, 1, o->item);
    stk_cl_numbers(b, &p, sizeof p);
    stk_cl_numbers(b, &value, sizeof value);
    stk_cl_grid(b, o->outer * o->depth * o->inner, GROUP);
}

static const char *refuse_scatter(const stk_cl_device *d, const void *params)
{
    return stk_cl_refuse_lane(d, ((const stk_scatter_params *)params)->at.dtype);
}
static const char *refuse_gather(const stk_cl_device *d, const void *params)
{
    (void)d;
    return ((const stk_gather_params *)params)->dtype == STK_STRING ? "strings" : NULL;
}
static const char *refuse_along(const stk_cl_device *d, const void *params)
{
    return stk_cl_refuse_lane(d, ((const stk_along_params *)params)->dtype);
}

const stk_cl_recipe stk_cl_recipe_gather = {
    .kernel = STK_K_GATHER, .name = "plain", .refuses = refuse_gather, .emit = emit_gather};
const stk_cl_recipe stk_cl_recipe_scatter = {
    .kernel = STK_K_SCATTER, .name = "sorted", .refuses = refuse_scatter, .emit = emit_scatter};
const stk_cl_recipe stk_cl_recipe_take_along = {
    .kernel = STK_K_TAKE_ALONG, .name = "plain", .refuses = refuse_along, .emit = emit_take_along};
const stk_cl_recipe stk_cl_recipe_put_along = {
    .kernel = STK_K_PUT_ALONG, .name = "lines", .refuses = refuse_along, .emit = emit_put_along};
const stk_cl_recipe stk_cl_recipe_ravel_index = {
    .kernel = STK_K_RAVEL_INDEX, .name = "plain", .emit = emit_ravel_index};
const stk_cl_recipe stk_cl_recipe_one_hot = {
    .kernel = STK_K_ONE_HOT, .name = "plain", .emit = emit_one_hot};
