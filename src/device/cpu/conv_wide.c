/* Convolutions of bfloat16 by the own kernels of float32: the images of a part are widened, convolved and rounded while they are in cache.
 * Where pictures are gathered for few products (strides, narrow results) that is faster than dot products of pairs; the election
 * decides. What pairs do not take is left to casts outside, which join the chains around the convolution.
 *
 * Scratch: [ of the inner kernel | float gradient of the weights | of each part: its first, second and third array as floats ] */
#include "base/memory.h"
#include "device/cpu/conv_plan.h"
#include "device/cpu/cpu.h"
#include "device/cpu/vec/elementwise.h"
#include "device/cpu/vec/vec.h"

enum { ARGS = 3 };

typedef struct wide_sizes {
    int64_t each[ARGS];            /* elements: of an image, or of all weights */
    bool cut[ARGS];                /* by images */
    int64_t at[ARGS];              /* floats before the array in the scratch of a part */
    int64_t inner, gradient, part; /* bytes */
} wide_sizes;

typedef struct wide_state {
    stk_conv floats;
    stk_launch inner;
    wide_sizes size;
} wide_state;

static int64_t volume(const int64_t size[3]) { return size[0] * size[1] * size[2]; }

static stk_conv in_floats(const stk_conv *c)
{
    stk_conv f = *c;
    f.dtype = STK_F32;
    return f;
}

static wide_sizes size_up(const stk_conv *f, const stk_impl *inner, int32_t parts)
{
    const int64_t x = volume(f->in) * f->ic, y = volume(f->out) * f->oc;
    const int64_t w = volume(f->kernel) * (f->ic / f->groups) * f->oc;
    const bool weight = inner->kernel == STK_K_CONV_BWD_WEIGHT;
    const bool back = inner->kernel == STK_K_CONV_BWD_DATA;
    wide_sizes s = {.each = {back ? y : x, weight ? y : w,
                             weight ? w
                             : back ? x
                                    : y},
                    .cut = {true, weight, !weight}};
    int64_t images = stk_ceil_div(f->n, stk_max_i64(parts, 1)), floats = 0;
    for (int i = 0; i < ARGS; i++) {
        s.at[i] = floats;
        if (i == 2 && weight) break; /* one for all parts */
        floats += stk_round_up(s.each[i] * (s.cut[i] ? images : 1), STK_ALIGN);
    }
    s.part = floats * (int64_t)sizeof(float);
    if (weight) s.gradient = stk_round_up(w * (int64_t)sizeof(float), STK_ALIGN);
    if (inner->scratch) s.inner = stk_round_up(inner->scratch(f, parts), STK_ALIGN);
    return s;
}

static bool supports(const void *params, const stk_impl *pairs, const stk_impl *inner)
{
    const stk_conv f = in_floats(params);
    return pairs->supports(params) && inner->supports(&f);
}

static int64_t grain(const void *params, const stk_impl *inner)
{
    const stk_conv f = in_floats(params);
    return inner->grain ? inner->grain(&f) : 1;
}

static int64_t scratch(const void *params, const stk_impl *inner, int32_t parts)
{
    const stk_conv f = in_floats(params);
    const wide_sizes s = size_up(&f, inner, parts);
    return s.inner + s.gradient + s.part * parts;
}

static int64_t room(const void *params, const stk_impl *inner)
{
    const stk_conv f = in_floats(params);
    return inner->room ? inner->room(&f) : 0;
}

static int64_t units(const void *params) { return ((const stk_conv *)params)->n; }

static void discard(stk_launch *launch)
{
    wide_state *s = launch->state;
    if (!s) return;
    if (s->inner.impl->discard) s->inner.impl->discard(&s->inner);
    stk_free(s);
    launch->state = NULL;
}

static stk_status prepare(stk_launch *launch, const stk_impl *inner, stk_error *err)
{
    wide_state *s = launch->state = stk_calloc(1, sizeof *s);
    if (!s) return stk_fail_memory(err, "a convolution", sizeof *s);
    s->floats = in_floats(launch->params);
    s->size = size_up(&s->floats, inner, launch->parts);
    s->inner = *launch;
    s->inner.run = inner->run;
    s->inner.params = &s->floats;
    s->inner.impl = inner;
    s->inner.state = NULL;
    stk_status status = inner->prepare ? inner->prepare(&s->inner, err) : STK_OK;
    if (status != STK_OK) discard(launch);
    return status;
}

static stk_launch inner_of(const stk_launch *launch, void **arg)
{
    const wide_state *s = launch->state;
    stk_launch inner = s->inner;
    inner.arg = arg;
    inner.scratch = launch->scratch;
    inner.room = launch->room;
    return inner;
}

static float *gradient_of(const stk_launch *launch)
{
    const wide_state *s = launch->state;
    return (float *)(void *)((char *)launch->scratch + s->size.inner);
}

/* The inner kernel counts images from the first of the part. */
static void run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const wide_state *s = launch->state;
    const wide_sizes *z = &s->size;
    const stk_vec_ew *ew = stk_vec_get()->ew;
    float *floats = (float *)(void *)((char *)gradient_of(launch) + z->gradient + part * z->part);
    void *arg[ARGS];
    int64_t count[ARGS];
    if (lo >= hi) return;
    for (int i = 0; i < ARGS; i++) {
        arg[i] = floats + z->at[i];
        count[i] = z->each[i] * (z->cut[i] ? hi - lo : 1);
    }
    for (int i = 0; i < 2; i++)
        ew->load[STK_BF16](count[i], arg[i],
                           (uint16_t *)launch->arg[i] + (z->cut[i] ? lo * z->each[i] : 0));
    if (!z->cut[2]) arg[2] = gradient_of(launch);
    const stk_launch inner = inner_of(launch, arg);
    inner.run(&inner, 0, hi - lo, part);
    if (z->cut[2])
        ew->store[STK_BF16](count[2], (uint16_t *)launch->arg[2] + lo * z->each[2], arg[2]);
}

/* The inner launch has the parts of its own problem, which are as many. */
static stk_sums sums(const stk_launch *launch, int32_t part)
{
    const stk_launch inner = inner_of(launch, NULL);
    const stk_sums all = inner.impl->sums(&inner, part); /* in the scratch of both */
    return (stk_sums){.at = all.at, .n = all.n, .lane = all.lane};
}

static void finish(const stk_launch *launch)
{
    const wide_state *s = launch->state;
    void *arg[ARGS] = {NULL, NULL, gradient_of(launch)};
    const stk_launch inner = inner_of(launch, arg);
    inner.impl->finish(&inner);
    stk_vec_get()->ew->store[STK_BF16](s->size.each[2], launch->arg[2], arg[2]);
}

/* ---- over the own kernel, three ways ------------------------------------------------------------------ */

#define WIDE(way, KERNEL, inner_name, impl_name, rank_, aligned_, sums_, finish_)                  \
    static bool way##_##inner_name##_supports(const void *params)                                  \
    {                                                                                              \
        return supports(params, &stk_impl_##way##_pairs, &stk_impl_##way##_##inner_name);          \
    }                                                                                              \
    static int64_t way##_##inner_name##_grain(const void *params)                                  \
    {                                                                                              \
        return grain(params, &stk_impl_##way##_##inner_name);                                      \
    }                                                                                              \
    static int64_t way##_##inner_name##_scratch(const void *params, int32_t parts)                 \
    {                                                                                              \
        return scratch(params, &stk_impl_##way##_##inner_name, parts);                             \
    }                                                                                              \
    static int64_t way##_##inner_name##_room(const void *params)                                   \
    {                                                                                              \
        return room(params, &stk_impl_##way##_##inner_name);                                       \
    }                                                                                              \
    static stk_status way##_##inner_name##_prepare(stk_launch *launch, stk_error *err)             \
    {                                                                                              \
        return prepare(launch, &stk_impl_##way##_##inner_name, err);                               \
    }                                                                                              \
    const stk_impl stk_impl_##way##_wide_##inner_name = {.name = impl_name,                        \
                                                         .kernel = KERNEL,                         \
                                                         .rank = rank_,                            \
                                                         .supports =                               \
                                                             way##_##inner_name##_supports,        \
                                                         .units = units,                           \
                                                         .grain = way##_##inner_name##_grain,      \
                                                         .aligned = aligned_,                      \
                                                         .scratch = way##_##inner_name##_scratch,  \
                                                         .room = way##_##inner_name##_room,        \
                                                         .prepare = way##_##inner_name##_prepare,  \
                                                         .discard = discard,                       \
                                                         .run = run,                               \
                                                         .sums = sums_,                            \
                                                         .finish = finish_};
#define OVER(inner, name, rank)                                                                    \
    WIDE(conv, STK_K_CONV, inner, name, rank, stk_conv_data_aligned, NULL, NULL)                   \
    WIDE(conv_bwd_data, STK_K_CONV_BWD_DATA, inner, name, rank, stk_conv_data_aligned, NULL, NULL) \
    WIDE(conv_bwd_weight, STK_K_CONV_BWD_WEIGHT, inner, name, rank, stk_conv_weight_aligned, sums, \
         finish)
OVER(own, "wide", 25)
