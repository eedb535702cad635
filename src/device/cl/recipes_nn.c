/* Random numbers, recurrent cells, images. */
#include "device/cl/recipes.h"

#include "base/resize_taps.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { GROUP = 256 };

/* ---- random numbers -------------------------------------------------------------------------------------- */

static void put_words(unsigned int to[2], uint64_t v)
{
    to[0] = (unsigned int)v;
    to[1] = (unsigned int)(v >> 32);
}
static void put_double(unsigned int to[2], double v)
{
    uint64_t bits;
    memcpy(&bits, &v, 8);
    put_words(to, bits);
}

/* Low, width and the number that is not reached any more, in both precisions (base/rng.c). */
static void put_range(sk_random *p, double low, double high)
{
    float a = (float)low, b = (float)high;
    if (!(high > low)) high = low;
    if (!(b > a)) b = a;
    p->a = a;
    p->b = (float)(double)(b - a);
    p->top = b > a ? nextafterf(b, a) : a;
    put_double(p->da, low);
    put_double(p->db, high - low);
    put_double(p->dtop, high > low ? nextafter(high, low) : low);
}

static sk_random random_numbers(const stk_random_params *r)
{
    sk_random p = {.count = (int)r->count, .kind = r->kind, .a = (float)r->a, .b = (float)r->b};
    double scaled = r->a * 0x1p32;
    put_words(p.seed, stk_random_stream(r, 0).seed);
    put_double(p.da, r->a);
    put_double(p.db, r->b);
    if (r->kind == STK_RANDOM_UNIFORM) put_range(&p, r->a, r->b);
    p.always = !(scaled > 0) ? 0 : scaled >= 0x1p32 ? 1 : -1;
    if (p.always < 0 && scaled + 0.5 >= 0x1p32) p.always = 1;
    if (p.always < 0) p.threshold = (unsigned int)(scaled + 0.5);
    put_words(p.low, (uint64_t)r->low);
    put_words(p.width, r->high > r->low ? (uint64_t)r->high - (uint64_t)r->low : 1);
    return p;
}

static void emit_random(stk_cl_build *b, const void *params)
{
    const stk_random_params *r = params;
    sk_random p = random_numbers(r);
    if (r->count == 0) return;
    stk_cl_kernel(b, "random.cl", "random_numbers", "-DSK_KIND=%d -DSK_T=%s -DSK_WIDE=%d", r->kind,
                  stk_cl_type(r->dtype), r->dtype == STK_F64);
    stk_cl_arg(b, 0, 8);
    stk_cl_arg(b, 1, stk_cl_size(r->dtype));
    stk_cl_numbers(b, &p, sizeof p);
    stk_cl_grid(b, r->count, GROUP);
}

static void emit_permutation(stk_cl_build *b, const void *params)
{
    const stk_random_params *r = params;
    sk_random p = random_numbers(r);
    if (r->count == 0) return;
    stk_cl_kernel(b, "random.cl", "permutation", "-DSK_KIND=4 -DSK_T=sk_long -DSK_WIDE=0");
    stk_cl_arg(b, 0, 8);
    stk_cl_arg(b, 1, 8);
    stk_cl_numbers(b, &p, sizeof p);
    stk_cl_groups(b, 1, 1, 1, 1);
}

/* The bits are part of what is asked for: where divisions and roots do not round as everywhere, the CPU draws. */
static const char *refuse_random(const stk_cl_device *d, const void *params)
{
    const stk_random_params *r = params;
    bool normal = r->kind == STK_RANDOM_NORMAL || r->kind == STK_RANDOM_TRUNCATED_NORMAL;
    if (normal && !d->exact_division)
        return "divisions of this device do not round exactly, its numbers would be others";
    return stk_cl_refuse_lane(d, r->dtype);
}

const stk_cl_recipe stk_cl_recipe_random = {
    .kernel = STK_K_RANDOM, .name = "philox", .refuses = refuse_random, .emit = emit_random};
const stk_cl_recipe stk_cl_recipe_permutation = {
    .kernel = STK_K_PERMUTATION, .name = "philox", .emit = emit_permutation};

/* ---- recurrent cells ------------------------------------------------------------------------------------- */

typedef struct cell {
    const char *kernel;
    int32_t number, fixed, outputs;
    bool scratch;
} cell;

static void emit_cell(stk_cl_build *b, const stk_rnn_params *r, const cell *c)
{
    sk_rnn p = {.batch = (int)r->batch,
                .time = (int)r->time,
                .hidden = (int)r->hidden,
                .time_major = r->time_major,
                .reverse = r->reverse,
                .reset_after = r->reset_after,
                .saved = r->saved};
    int64_t item = stk_cl_size(r->dtype), lanes = b->d->is_cpu ? 1 : 64;
    int64_t room = c->scratch ? stk_cl_room(b, r->batch * 4 * r->hidden * item) : 0;
    if (r->batch == 0) return;
    stk_cl_kernel(
        b, "rnn.cl", c->kernel,
        "-DSK_R=%s -DSK_CELL=%d -DSK_LANES=%d -DSK_MASK=%d -DSK_DHS=%d -DSK_DH=%d -DSK_DC=%d",
        stk_cl_type(r->dtype), c->number, (int)lanes, (r->given & STK_RNN_MASK) != 0,
        (r->given & STK_RNN_DHS) != 0, (r->given & STK_RNN_DH) != 0, (r->given & STK_RNN_DC) != 0);
    for (int32_t i = 0; i < c->fixed; i++) stk_cl_arg(b, i, item);
    for (int32_t which = STK_RNN_MASK; which <= STK_RNN_DC; which *= 2) /* panels are not needed */
        if (r->given & which)
            stk_cl_arg(b, stk_rnn_arg(r->given, c->fixed, which), which == STK_RNN_MASK ? 1 : item);
    for (int32_t i = 0; i < c->outputs; i++)
        stk_cl_arg(b, stk_rnn_outputs(r->given, c->fixed) + i, item);
    if (c->scratch) stk_cl_room_arg(b, room, item);
    stk_cl_numbers(b, &p, sizeof p);
    stk_cl_groups(b, r->batch, 1, 1, lanes);
}

static const char *refuse_cell(const stk_cl_device *d, const void *params)
{
    return stk_cl_refuse_real(d, ((const stk_rnn_params *)params)->dtype);
}

#define CELL(kernel_id, suffix, ...)                                                               \
    static void emit_##suffix(stk_cl_build *b, const void *params)                                 \
    {                                                                                              \
        emit_cell(b, params, &(const cell){#suffix, __VA_ARGS__});                                 \
    }                                                                                              \
    const stk_cl_recipe stk_cl_recipe_##suffix = {                                                 \
        .kernel = kernel_id, .name = "sequences", .refuses = refuse_cell, .emit = emit_##suffix};
CELL(STK_K_LSTM, lstm, 0, 5, 5, true)
CELL(STK_K_LSTM_GRAD, lstm_grad, 1, 4, 3, false)
CELL(STK_K_GRU, gru, 2, 4, 3, true)
CELL(STK_K_GRU_GRAD, gru_grad, 3, 4, 3, false)

/* ---- images ---------------------------------------------------------------------------------------------- */

/* first[n] and at[n + 1] behind each other, and the weights. */
static void put_taps(stk_cl_build *b, const stk_taps *t)
{
    size_t n = (size_t)t->n;
    int32_t *both = stk_malloc((2 * n + 1) * sizeof *both);
    if (!both) {
        stk_cl_give_up(b, stk_fail_memory(b->err, "resize", n));
        return;
    }
    memcpy(both, t->first, n * sizeof *both);
    memcpy(both + n, t->at, (n + 1) * sizeof *both);
    stk_cl_table_arg(b, both, (2 * n + 1) * sizeof *both, 4);
    stk_cl_table_arg(b, t->weight, (size_t)t->at[n] * sizeof(float), 4);
    stk_free(both);
}

static void emit_resize(stk_cl_build *b, const void *params)
{
    const stk_resize_params *r = params;
    int64_t count = r->batch * r->out_h * r->out_w * r->channels;
    bool copies = r->kind == STK_TAPS_NEAREST && !r->transposed;
    stk_taps *down = NULL, *across = NULL;
    sk_image p = {.batch = (int)r->batch,
                  .in_h = (int)r->in_h,
                  .in_w = (int)r->in_w,
                  .out_h = (int)r->out_h,
                  .out_w = (int)r->out_w,
                  .channels = (int)r->channels};
    if (count == 0 || !b->loading) return;
    stk_cl_give_up(b, stk_taps_new(r->kind, r->antialias, r->transposed,
                                   r->transposed ? r->out_h : r->in_h,
                                   r->transposed ? r->in_h : r->out_h, &down, b->err));
    stk_cl_give_up(b, stk_taps_new(r->kind, r->antialias, r->transposed,
                                   r->transposed ? r->out_w : r->in_w,
                                   r->transposed ? r->in_w : r->out_w, &across, b->err));
    int64_t in_item = stk_cl_size(r->in_dtype), out_item = stk_cl_size(r->out_dtype);
    stk_cl_kernel(
        b, "image.cl", "resize", "-DSK_RESIZE=1 -DSK_COPIES=%d -DSK_T=%s -DSK_Y=%s -DSK_A=%s",
        copies, copies ? stk_cl_item(in_item) : stk_cl_type(r->in_dtype),
        copies ? stk_cl_item(out_item) : stk_cl_type(r->out_dtype), stk_cl_lane(r->out_dtype));
    stk_cl_arg(b, 0, in_item);
    if (down && across) {
        put_taps(b, down);
        put_taps(b, across);
    }
    stk_cl_arg(b, 1, out_item);
    stk_cl_numbers(b, &p, sizeof p);
    stk_cl_grid(b, count, GROUP);
    stk_taps_free(down);
    stk_taps_free(across);
}

static const char *refuse_resize(const stk_cl_device *d, const void *params)
{
    const stk_resize_params *r = params;
    const char *why = stk_cl_refuse_lane(d, r->in_dtype);
    return why ? why : stk_cl_refuse_lane(d, r->out_dtype);
}

static void emit_projection(stk_cl_build *b, const stk_project_params *r, bool grad)
{
    int64_t in_item = stk_cl_size(r->dtype), out_item = stk_cl_size(r->out_dtype);
    sk_image p = {.batch = (int)r->batch,
                  .in_h = (int)r->in_h,
                  .in_w = (int)r->in_w,
                  .out_h = (int)r->out_h,
                  .out_w = (int)r->out_w,
                  .channels = (int)r->channels,
                  .shared = r->shared,
                  .bilinear = r->bilinear,
                  .fill = r->fill,
                  .value = (float)r->value};
    int64_t count = r->batch * r->channels * (grad ? 1 : r->out_h * r->out_w);
    if (count == 0) return;
    stk_cl_kernel(b, "image.cl", grad ? "project_grad" : "project",
                  "-DSK_RESIZE=0 -DSK_GRAD=%d -DSK_X=%s -DSK_T=%s -DSK_Y=%s -DSK_A=%s "
                  "-DSK_LOAD=sk_load_%s -DSK_STORE=sk_store_%s",
                  grad, stk_cl_type(r->transform), stk_cl_type(r->dtype), stk_cl_type(r->out_dtype),
                  stk_cl_lane(r->out_dtype), stk_cl_short(r->dtype), stk_cl_short(r->out_dtype));
    stk_cl_arg(b, 0, in_item);
    stk_cl_arg(b, 1, stk_cl_size(r->transform));
    stk_cl_arg(b, 2, out_item);
    stk_cl_numbers(b, &p, sizeof p);
    stk_cl_grid(b, count, grad ? 1 : GROUP);
}
static void emit_project(stk_cl_build *b, const void *params) { emit_projection(b, params, false); }
static void emit_project_grad(stk_cl_build *b, const void *params)
{
    emit_projection(b, params, true);
}

static const char *refuse_project(const stk_cl_device *d, const void *params)
{
    const stk_project_params *r = params;
    const char *why = stk_cl_refuse_lane(d, r->dtype);
    return why ? why : stk_cl_refuse_lane(d, r->transform);
}
static const char *refuse_project_grad(const stk_cl_device *d, const void *params)
{
    const char *why = stk_cl_refuse_real(d, ((const stk_project_params *)params)->dtype);
    return why ? why : refuse_project(d, params);
}

const stk_cl_recipe stk_cl_recipe_resize = {
    .kernel = STK_K_RESIZE, .name = "taps", .refuses = refuse_resize, .emit = emit_resize};
const stk_cl_recipe stk_cl_recipe_project = {
    .kernel = STK_K_PROJECT, .name = "plain", .refuses = refuse_project, .emit = emit_project};
const stk_cl_recipe stk_cl_recipe_project_grad = {.kernel = STK_K_PROJECT_GRAD,
                                                  .name = "images",
                                                  .refuses = refuse_project_grad,
                                                  .emit = emit_project_grad};
