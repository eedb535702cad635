/* Copies, fills, concatenation. */
#include "device/cl/recipes.h"

#include <string.h>

enum { GROUP = 256 };

static const char *refuse_item(int64_t item)
{
    return item == 1 || item == 2 || item == 4 || item == 8 ? NULL : "elements of an odd size";
}

/* Sizes of one go, and neighbours that lie one behind the other on both sides are one. */
static sk_walk walk_of(const stk_copy_params *c)
{
    sk_walk w = {.count = 1, .in_offset = (int)c->in_offset, .out_offset = (int)c->out_offset};
    for (int64_t i = 0; i < c->rank; i++) {
        w.count *= (int)c->dim[i];
        if (c->dim[i] == 1) continue;
        int32_t last = w.rank - 1;
        if (w.rank && w.in_stride[last] == c->in_stride[i] * c->dim[i] &&
            w.out_stride[last] == c->out_stride[i] * c->dim[i])
            w.dim[last] *= (int)c->dim[i];
        else
            w.dim[++last] = (int)c->dim[i];
        w.in_stride[last] = (int)c->in_stride[i];
        w.out_stride[last] = (int)c->out_stride[i];
        w.rank = last + 1;
    }
    return w;
}

static void emit_walk(stk_cl_build *b, const stk_copy_params *c)
{
    sk_walk w = walk_of(c);
    if (w.count == 0) return;
    stk_cl_kernel(b, "move.cl", "copy", "-DSK_E=%s -DSK_I=int", stk_cl_item(c->item));
    stk_cl_arg(b, 0, c->item);
    stk_cl_arg(b, 1, c->item);
    stk_cl_numbers(b, &w, sizeof w);
    stk_cl_grid(b, w.count, GROUP);
}

static void emit_value(stk_cl_build *b, const stk_fill_params *f, int32_t arg)
{
    sk_lines p = {.n = (int)f->count};
    if (f->count == 0) return;
    memcpy(&p.a, f->value, 4);
    memcpy(&p.b, f->value + 4, 4);
    stk_cl_kernel(b, "move.cl", "fill", "-DSK_E=%s -DSK_I=int", stk_cl_item(f->item));
    stk_cl_arg(b, arg, f->item);
    stk_cl_numbers(b, &p, sizeof p);
    stk_cl_grid(b, f->count, GROUP);
}

static void emit_copy(stk_cl_build *b, const void *params) { emit_walk(b, params); }
static void emit_fill(stk_cl_build *b, const void *params) { emit_value(b, params, 0); }
static void emit_pad(stk_cl_build *b, const void *params)
{
    const stk_pad_params *p = params;
    emit_value(b, &p->fill, 1);
    emit_walk(b, &p->copy);
}

static const char *refuse_copy(const stk_cl_device *d, const void *params)
{
    (void)d;
    return refuse_item(((const stk_copy_params *)params)->item);
}
static const char *refuse_fill(const stk_cl_device *d, const void *params)
{
    (void)d;
    return refuse_item(((const stk_fill_params *)params)->item);
}
static const char *refuse_pad(const stk_cl_device *d, const void *params)
{
    (void)d;
    return refuse_item(((const stk_pad_params *)params)->copy.item);
}

/* Bytes, in pieces as large as everything is a multiple of. */
static void emit_concat(stk_cl_build *b, const void *params)
{
    const stk_concat_params *c = params;
    int64_t item = 8, at = 0;
    for (int64_t i = 0; i < c->inputs; i++)
        while (c->width[i] % item) item /= 2;
    for (int64_t i = 0; b->loading && i <= c->inputs; i++)
        while (b->task->link[i].at.offset % item) item /= 2;
    for (int64_t i = 0; i < c->inputs; i++) {
        sk_lines p = {.outer = (int)c->outer,
                      .inner = (int)(c->width[i] / item),
                      .a = (int)(c->total / item),
                      .b = (int)(at / item)};
        at += c->width[i];
        if (c->outer * c->width[i] == 0) continue;
        stk_cl_kernel(b, "move.cl", "place", "-DSK_E=%s -DSK_I=int", stk_cl_item(item));
        stk_cl_arg(b, (int32_t)i, item);
        stk_cl_arg(b, (int32_t)c->inputs, item);
        stk_cl_numbers(b, &p, sizeof p);
        stk_cl_grid(b, c->outer * p.inner, GROUP);
    }
}

const stk_cl_recipe stk_cl_recipe_copy = {
    .kernel = STK_K_COPY, .name = "plain", .refuses = refuse_copy, .emit = emit_copy};
const stk_cl_recipe stk_cl_recipe_fill = {
    .kernel = STK_K_FILL, .name = "plain", .refuses = refuse_fill, .emit = emit_fill};
const stk_cl_recipe stk_cl_recipe_pad = {
    .kernel = STK_K_PAD, .name = "plain", .refuses = refuse_pad, .emit = emit_pad};
const stk_cl_recipe stk_cl_recipe_concat = {
    .kernel = STK_K_CONCAT, .name = "plain", .emit = emit_concat};
