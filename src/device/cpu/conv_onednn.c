/* Convolutions through oneDNN: images as they are (channels last, no copies), weights in whatever blocks the
 * library likes, brought there and back inside each launch since they change with every step.
 *
 * All that a part needs is made in prepare: its stream, memory objects on the arrays, a block of memory
 *
 *     [ weights in the library's format | scratchpad of the primitive ]
 *
 * so that parts share only the primitives, which are read-only. Backward weight sums each part's images
 * there; finish adds the parts in order and brings the sum back. Version 2 of the library only. */
#include "device/cpu/onednn.h"

#if STK_HAVE_ONEDNN

#include "device/cpu/conv_few.h"
#include "device/cpu/conv_plan.h"
#include "device/cpu/cpu.h"
#include "device/cpu/isa.h"
#include "device/cpu/sums.h"

#include <string.h>

typedef enum conv_kind { FORWARD, BACK_DATA, BACK_WEIGHT } conv_kind;

#if DNNL_VERSION_MAJOR == 2

/* Smaller problems never make the library be loaded: our own kernels are ahead there anyway. */
static const double LEAST_FLOPS = 4e6;

typedef struct lane { /* of one part */
    dnnl_stream_t stream;
    dnnl_memory_t x, y, plain, blocked, scratchpad; /* plain: the weights as we have them */
} lane;

typedef struct dnn_state {
    const stk_onednn *dnn;
    dnnl_engine_t engine;
    conv_kind kind;
    int64_t images[2]; /* that one call takes: parts have one or two sizes */
    dnnl_primitive_t conv[2];
    dnnl_memory_desc_t x_desc[2], y_desc[2], blocked_desc, plain_desc;
    dnnl_primitive_t reorder; /* NULL: the library takes our format */
    int64_t blocked_bytes, scratchpad_bytes, part_bytes;
    char *memory;
    int64_t memory_bytes;
    int32_t parts;
    lane *lane;
} dnn_state;

/* ---- descriptions ------------------------------------------------------------------------------------ */

/* Spatial axes that the library sees: 3, or 2 for images that are flat. */
static int axes_of(const stk_conv *c)
{
    return c->in[0] == 1 && c->out[0] == 1 && c->kernel[0] == 1 ? 2 : 3;
}

/* bfloat16 stays as it is, but gradients of weights are sums: floats until they are all added up. */
static dnnl_data_type_t type_of(const stk_conv *c, bool sums)
{
    return c->dtype == STK_BF16 && !sums ? dnnl_bf16 : dnnl_f32;
}

static dnnl_status_t describe(const stk_onednn *dnn, const int64_t *dims, const int64_t *strides,
                              int n, dnnl_data_type_t type, dnnl_memory_desc_t *out)
{
    dnnl_dims_t d = {0}, s = {0};
    for (int i = 0; i < n; i++) d[i] = dims[i], s[i] = strides[i];
    return dnn->dnnl_memory_desc_init_by_strides(out, n, d, type, s);
}

/* [images, channels, (depth), height, width], channels innermost in memory. */
static dnnl_status_t describe_images(const stk_onednn *dnn, int axes, int64_t images,
                                     const int64_t size[3], int64_t channels, dnnl_data_type_t type,
                                     dnnl_memory_desc_t *out)
{
    int64_t dims[5] = {images, channels}, strides[5] = {size[0] * size[1] * size[2] * channels, 1};
    int64_t step = channels;
    for (int i = 0; i < axes; i++) {
        int from = 2 - i, to = 1 + axes - i;
        dims[to] = size[from];
        strides[to] = step;
        step *= size[from];
    }
    return describe(dnn, dims, strides, 2 + axes, type, out);
}

/* [(groups), out, in, (depth), height, width] over our [depth, height, width, in, groups * out]. */
static dnnl_status_t describe_weights(const stk_onednn *dnn, int axes, const stk_conv *c,
                                      dnnl_data_type_t type, bool any, dnnl_memory_desc_t *out)
{
    int64_t dims[6], strides[6], step = c->ic / c->groups * c->oc;
    int lead = c->groups > 1;
    if (lead) dims[0] = c->groups, strides[0] = c->oc / c->groups;
    dims[lead] = c->oc / c->groups, strides[lead] = 1;
    dims[lead + 1] = c->ic / c->groups, strides[lead + 1] = c->oc;
    for (int i = 0; i < axes; i++) {
        int from = 2 - i, to = lead + 1 + axes - i;
        dims[to] = c->kernel[from];
        strides[to] = step;
        step *= c->kernel[from];
    }
    dnnl_status_t status = describe(dnn, dims, strides, lead + 2 + axes, type, out);
    if (any) out->format_kind = dnnl_format_kind_any;
    return status;
}

typedef struct geometry {
    dnnl_dims_t stride, dilation, low, high;
} geometry;

static geometry geometry_of(const stk_conv *c, int axes)
{
    geometry g = {0};
    for (int i = 0; i < axes; i++) {
        int from = 3 - axes + i;
        int64_t wide = (c->kernel[from] - 1) * c->dilation[from] + 1;
        g.stride[i] = c->stride[from];
        g.dilation[i] = c->dilation[from] - 1;
        g.low[i] = c->low[from];
        int64_t high = (c->out[from] - 1) * c->stride[from] + wide - c->in[from] - c->low[from];
        g.high[i] = stk_max_i64(high, 0);
    }
    return g;
}

static dnnl_status_t describe_conv(const stk_onednn *dnn, conv_kind kind, const geometry *g,
                                   const dnnl_memory_desc_t *x, const dnnl_memory_desc_t *w,
                                   const dnnl_memory_desc_t *y, dnnl_convolution_desc_t *out)
{
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    switch (kind) {
    case FORWARD:
        return dnn->dnnl_dilated_convolution_forward_desc_init(out, dnnl_forward_training, direct,
                                                               x, w, NULL, y, g->stride,
                                                               g->dilation, g->low, g->high);
    case BACK_DATA:
        return dnn->dnnl_dilated_convolution_backward_data_desc_init(
            out, direct, x, w, y, g->stride, g->dilation, g->low, g->high);
    default:
        return dnn->dnnl_dilated_convolution_backward_weights_desc_init(
            out, direct, x, w, NULL, y, g->stride, g->dilation, g->low, g->high);
    }
}

/* The first implementation, for work one that is not the library's plain reference. */
static dnnl_status_t pick(dnn_state *s, const dnnl_convolution_desc_t *desc,
                          dnnl_primitive_desc_t hint, bool work, dnnl_primitive_desc_t *out)
{
    const stk_onednn *dnn = s->dnn;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_iterator_t it = NULL;
    *out = NULL;
    dnnl_status_t status = dnn->dnnl_primitive_attr_create(&attr);
    if (status == dnnl_success)
        status = dnn->dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (status == dnnl_success)
        status = dnn->dnnl_primitive_desc_iterator_create(&it, desc, attr, s->engine, hint);
    while (status == dnnl_success && !*out) {
        const char *name = "";
        dnnl_primitive_desc_t found = dnn->dnnl_primitive_desc_iterator_fetch(it);
        if (!found) status = dnnl_out_of_memory;
        if (found) (void)dnn->dnnl_primitive_desc_query(found, dnnl_query_impl_info_str, 0, &name);
        if (found && !(work && strstr(name, "ref")))
            *out = found;
        else if (found) {
            (void)dnn->dnnl_primitive_desc_destroy(found);
            status = dnn->dnnl_primitive_desc_iterator_next(it);
        }
    }
    if (it) (void)dnn->dnnl_primitive_desc_iterator_destroy(it);
    if (attr) (void)dnn->dnnl_primitive_attr_destroy(attr);
    return status == dnnl_iterator_ends ? dnnl_unimplemented : status;
}

/* ---- prepare ------------------------------------------------------------------------------------------- */

static void take_formats(dnn_state *s, dnnl_primitive_desc_t pd)
{
    dnnl_query_t what = s->kind == BACK_WEIGHT ? dnnl_query_diff_weights_md : dnnl_query_weights_md;
    s->blocked_desc = *s->dnn->dnnl_primitive_desc_query_md(pd, what, 0);
    int64_t blocked = (int64_t)s->dnn->dnnl_memory_desc_get_size(&s->blocked_desc);
    const dnnl_memory_desc_t *pad =
        s->dnn->dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    int64_t scratchpad = pad ? (int64_t)s->dnn->dnnl_memory_desc_get_size(pad) : 0;
    s->blocked_bytes = stk_max_i64(s->blocked_bytes, stk_round_up(blocked, 4096));
    s->scratchpad_bytes = stk_max_i64(s->scratchpad_bytes, stk_round_up(scratchpad, 4096));
}

/* Primitive number i (of the two sizes of parts); the second one keeps the weights' format of the first. */
static dnnl_status_t make_conv(dnn_state *s, const stk_conv *c, int i)
{
    const stk_onednn *dnn = s->dnn;
    int axes = axes_of(c);
    geometry g = geometry_of(c, axes);
    dnnl_memory_desc_t any, w;
    dnnl_convolution_desc_t desc;
    dnnl_primitive_desc_t hint = NULL, pd = NULL;
    const dnnl_data_type_t type = type_of(c, false);
    dnnl_status_t status =
        describe_images(dnn, axes, s->images[i], c->in, c->ic, type, &s->x_desc[i]);
    if (status == dnnl_success)
        status = describe_images(dnn, axes, s->images[i], c->out, c->oc, type, &s->y_desc[i]);
    if (status == dnnl_success) status = describe_weights(dnn, axes, c, type, true, &any);
    if (status == dnnl_success && s->kind != FORWARD) { /* backward wants to see the forward one */
        status = describe_conv(dnn, FORWARD, &g, &s->x_desc[i], &any, &s->y_desc[i], &desc);
        if (status == dnnl_success) status = pick(s, &desc, NULL, false, &hint);
    }
    if (status == dnnl_success && s->kind == BACK_WEIGHT)
        status = describe_weights(dnn, axes, c, type_of(c, true), true, &any);
    if (status == dnnl_success) {
        w = i == 0 ? any : s->blocked_desc;
        status = describe_conv(dnn, s->kind, &g, &s->x_desc[i], &w, &s->y_desc[i], &desc);
    }
    if (status == dnnl_success) status = pick(s, &desc, hint, true, &pd);
    if (status == dnnl_success) {
        take_formats(s, pd);
        status = dnn->dnnl_primitive_create(&s->conv[i], pd);
    }
    if (pd) (void)dnn->dnnl_primitive_desc_destroy(pd);
    if (hint) (void)dnn->dnnl_primitive_desc_destroy(hint);
    return status;
}

static dnnl_status_t make_reorder(dnn_state *s, const stk_conv *c)
{
    const stk_onednn *dnn = s->dnn;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status =
        describe_weights(dnn, axes_of(c), c, type_of(c, false), false, &s->plain_desc);
    if (status != dnnl_success) return status;
    if (dnn->dnnl_memory_desc_equal(&s->plain_desc, &s->blocked_desc)) return status;
    bool back = s->kind == BACK_WEIGHT;
    status = dnn->dnnl_reorder_primitive_desc_create(
        &pd, back ? &s->blocked_desc : &s->plain_desc, s->engine,
        back ? &s->plain_desc : &s->blocked_desc, s->engine, NULL);
    if (status == dnnl_success) status = dnn->dnnl_primitive_create(&s->reorder, pd);
    if (pd) (void)dnn->dnnl_primitive_desc_destroy(pd);
    return status;
}

static dnnl_status_t make_lane(dnn_state *s, const stk_launch *launch, int32_t part)
{
    const stk_onednn *dnn = s->dnn;
    lane *l = &s->lane[part];
    int64_t lo, hi;
    stk_launch_range(launch, part, &lo, &hi);
    int i = s->kind == BACK_WEIGHT && hi - lo != s->images[0];
    char *memory = s->memory + part * s->part_bytes;
    dnnl_memory_desc_t pad;
    dnnl_status_t status =
        dnn->dnnl_stream_create(&l->stream, s->engine, dnnl_stream_default_flags);
    if (status == dnnl_success)
        status = dnn->dnnl_memory_create(&l->x, &s->x_desc[i], s->engine, DNNL_MEMORY_NONE);
    if (status == dnnl_success)
        status = dnn->dnnl_memory_create(&l->y, &s->y_desc[i], s->engine, DNNL_MEMORY_NONE);
    if (status == dnnl_success)
        status = dnn->dnnl_memory_create(&l->plain, &s->plain_desc, s->engine, DNNL_MEMORY_NONE);
    if (status == dnnl_success)
        status = dnn->dnnl_memory_create(&l->blocked, &s->blocked_desc, s->engine, memory);
    if (status == dnnl_success)
        status = dnn->dnnl_memory_desc_init_by_strides(
            &pad, 1, (dnnl_dims_t){s->scratchpad_bytes / 4}, dnnl_f32, (dnnl_dims_t){1});
    if (status == dnnl_success)
        status =
            dnn->dnnl_memory_create(&l->scratchpad, &pad, s->engine, memory + s->blocked_bytes);
    return status;
}

static void discard(stk_launch *launch)
{
    dnn_state *s = launch->state;
    if (!s) return;
    const stk_onednn *dnn = s->dnn;
    for (int32_t i = 0; s->lane && i < s->parts; i++) {
        lane *l = &s->lane[i];
        if (l->x) (void)dnn->dnnl_memory_destroy(l->x);
        if (l->y) (void)dnn->dnnl_memory_destroy(l->y);
        if (l->plain) (void)dnn->dnnl_memory_destroy(l->plain);
        if (l->blocked) (void)dnn->dnnl_memory_destroy(l->blocked);
        if (l->scratchpad) (void)dnn->dnnl_memory_destroy(l->scratchpad);
        if (l->stream) (void)dnn->dnnl_stream_destroy(l->stream);
    }
    for (int i = 0; i < 2; i++)
        if (s->conv[i]) (void)dnn->dnnl_primitive_destroy(s->conv[i]);
    if (s->reorder) (void)dnn->dnnl_primitive_destroy(s->reorder);
    if (s->memory) stk_free_pages(s->memory, (size_t)s->memory_bytes);
    stk_free(s->lane);
    stk_free(s);
    launch->state = NULL;
}

static dnnl_status_t make_all(dnn_state *s, const stk_launch *launch)
{
    const stk_conv *c = launch->params;
    s->images[0] = s->images[1] =
        1; /* a call, for any cut; but sums go over all images of a part */
    for (int32_t part = 0; s->kind == BACK_WEIGHT && part < s->parts; part++) {
        int64_t lo, hi;
        stk_launch_range(launch, part, &lo, &hi);
        if (part == 0) s->images[0] = s->images[1] = hi - lo;
        if (hi - lo != s->images[0]) s->images[1] = hi - lo;
    }
    dnnl_status_t status = make_conv(s, c, 0);
    if (status == dnnl_success && s->images[1] != s->images[0]) status = make_conv(s, c, 1);
    if (status == dnnl_success) status = make_reorder(s, c);
    if (status != dnnl_success) return status;
    s->part_bytes = s->blocked_bytes + s->scratchpad_bytes;
    if (s->kind == BACK_DATA) {
        const int64_t few = stk_conv_few_floats(c) * (int64_t)sizeof(float);
        s->part_bytes = stk_max_i64(s->part_bytes, stk_round_up(few, 4096));
    }
    s->memory_bytes = s->part_bytes * s->parts;
    s->memory = stk_alloc_pages((size_t)s->memory_bytes);
    s->lane = stk_calloc((size_t)s->parts, sizeof *s->lane);
    if (!s->memory || !s->lane) return dnnl_out_of_memory;
    for (int32_t part = 0; part < s->parts && status == dnnl_success; part++)
        status = make_lane(s, launch, part);
    return status;
}

static stk_status prepare(stk_launch *launch, conv_kind kind, stk_error *err)
{
    dnn_state *s = launch->state = stk_calloc(1, sizeof *s);
    if (!s) return stk_fail_memory(err, "a convolution", sizeof *s);
    s->dnn = stk_onednn_get();
    s->kind = kind;
    s->parts = launch->parts;
    stk_status status = stk_onednn_engine(&s->engine, err);
    if (status == STK_OK) {
        int was = stk_onednn_enter(s->dnn);
        status = stk_onednn_status(make_all(s, launch), "a convolution", err);
        stk_onednn_leave(s->dnn, was);
    }
    if (status != STK_OK) discard(launch);
    return status;
}

/* ---- run --------------------------------------------------------------------------------------------------- */

/* Calls on prepared objects with valid arguments do not fail. */
static void reorder(const dnn_state *s, dnnl_stream_t stream, dnnl_memory_t from, dnnl_memory_t to)
{
    dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    (void)s->dnn->dnnl_primitive_execute(s->reorder, stream, 2, args);
}

static int64_t image_bytes(const stk_conv *c, const int64_t size[3], int64_t channels)
{
    return size[0] * size[1] * size[2] * channels * stk_dtype_size((stk_dtype)c->dtype);
}

static void data_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const dnn_state *s = launch->state;
    const stk_onednn *dnn = s->dnn;
    const stk_conv *c = launch->params;
    const lane *l = &s->lane[part];
    bool forward = s->kind == FORWARD;
    char *x = launch->arg[forward ? 0 : 2], *y = launch->arg[forward ? 2 : 0];
    int was = stk_onednn_enter(dnn);
    (void)dnn->dnnl_memory_set_data_handle(l->plain, launch->arg[1]);
    if (s->reorder) reorder(s, l->stream, l->plain, l->blocked);
    dnnl_exec_arg_t args[] = {{forward ? DNNL_ARG_SRC : DNNL_ARG_DIFF_SRC, l->x},
                              {forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, l->y},
                              {DNNL_ARG_WEIGHTS, s->reorder ? l->blocked : l->plain},
                              {DNNL_ARG_SCRATCHPAD, l->scratchpad}};
    for (int64_t i = lo; i < hi; i++) {
        (void)dnn->dnnl_memory_set_data_handle(l->x, x + i * image_bytes(c, c->in, c->ic));
        (void)dnn->dnnl_memory_set_data_handle(l->y, y + i * image_bytes(c, c->out, c->oc));
        (void)dnn->dnnl_primitive_execute(s->conv[0], l->stream, 4, args);
    }
    (void)dnn->dnnl_stream_wait(l->stream);
    stk_onednn_leave(dnn, was);
}

static void back_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const dnn_state *s = launch->state;
    float *memory = (float *)(void *)(s->memory + part * s->part_bytes);
    stk_conv_few_data(launch, lo, hi, part, memory, s->part_bytes / (int64_t)sizeof *memory,
                      data_run);
}

static void weight_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    const dnn_state *s = launch->state;
    const stk_onednn *dnn = s->dnn;
    const stk_conv *c = launch->params;
    const lane *l = &s->lane[part];
    int was = stk_onednn_enter(dnn);
    (void)dnn->dnnl_memory_set_data_handle(l->x, (char *)launch->arg[0] +
                                                     lo * image_bytes(c, c->in, c->ic));
    (void)dnn->dnnl_memory_set_data_handle(l->y, (char *)launch->arg[1] +
                                                     lo * image_bytes(c, c->out, c->oc));
    dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, l->x},
                              {DNNL_ARG_DIFF_DST, l->y},
                              {DNNL_ARG_DIFF_WEIGHTS, l->blocked},
                              {DNNL_ARG_SCRATCHPAD, l->scratchpad}};
    (void)dnn->dnnl_primitive_execute(s->conv[hi - lo != s->images[0]], l->stream, 4, args);
    (void)dnn->dnnl_stream_wait(l->stream);
    stk_onednn_leave(dnn, was);
}

/* Formats are the same in all parts, so sums can be made before they are turned back. */
static stk_sums weight_sums(const stk_launch *launch, int32_t part)
{
    const dnn_state *s = launch->state;
    return (stk_sums){
        .at = s->memory + part * s->part_bytes,
        .n = (int64_t)(s->dnn->dnnl_memory_desc_get_size(&s->blocked_desc) / sizeof(float)),
        .lane = STK_LANE_F32};
}

static void weight_finish(const stk_launch *launch)
{
    const dnn_state *s = launch->state;
    const stk_onednn *dnn = s->dnn;
    const stk_sums total = stk_launch_total(launch);
    if (!s->reorder) {
        memcpy(launch->arg[2], total.at, (size_t)total.n * sizeof(float));
        return;
    }
    const lane *l = &s->lane[0];
    int was = stk_onednn_enter(dnn);
    (void)dnn->dnnl_memory_set_data_handle(l->plain, launch->arg[2]);
    reorder(s, l->stream, l->blocked, l->plain);
    (void)dnn->dnnl_stream_wait(l->stream);
    stk_onednn_leave(dnn, was);
}

static bool supports(const void *params)
{
    const stk_conv *c = params;
    double flops = 2.0 * (double)c->n * (double)(c->out[0] * c->out[1] * c->out[2]) *
                   (double)c->oc * (double)(c->kernel[0] * c->kernel[1] * c->kernel[2]) *
                   (double)(c->ic / c->groups);
    /* bfloat16 where our own kernels take it, too: else there is more choice in float. */
    const bool halves = c->dtype == STK_BF16 && c->groups == 1 && c->ic % 2 == 0 &&
                        c->oc % 2 == 0 && stk_isa_has_pairs();
    const bool takes = (c->dtype == STK_F32 || halves) && flops >= LEAST_FLOPS;
    const stk_onednn *dnn = takes ? stk_onednn_get() : NULL;
    return dnn && dnn->primitives;
}

#else

static bool supports(const void *params)
{
    (void)params;
    return false;
}
static stk_status prepare(stk_launch *launch, conv_kind kind, stk_error *err)
{
    (void)launch, (void)kind;
    return stk_fail(err, STK_ERR_UNSUPPORTED, "oneDNN: convolutions need version 2 of its header");
}
static void discard(stk_launch *launch) { (void)launch; }
static void data_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    (void)launch, (void)lo, (void)hi, (void)part;
}
static void back_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    data_run(launch, lo, hi, part);
}
static void weight_run(const stk_launch *launch, int64_t lo, int64_t hi, int part)
{
    data_run(launch, lo, hi, part);
}
static stk_sums weight_sums(const stk_launch *launch, int32_t part)
{
    (void)launch, (void)part;
    return (stk_sums){0};
}
static void weight_finish(const stk_launch *launch) { (void)launch; }

#endif

/* ---- rows of the table --------------------------------------------------------------------------------------- */

static int64_t units(const void *params) { return ((const stk_conv *)params)->n; }

/* Weights are turned into blocks once per part. */
static int64_t data_grain(const void *params)
{
    const stk_conv *c = params;
    int64_t pixels = c->out[0] * c->out[1] * c->out[2];
    return stk_ceil_div(512, stk_max_i64(pixels, 1));
}

/* Each part has its own sums, and adding them up is serial: few parts when there are many weights. */
static int64_t weight_grain(const void *params)
{
    enum { SUMS = 1 << 21 }; /* floats of all parts together */
    const stk_conv *c = params;
    int64_t weights = c->kernel[0] * c->kernel[1] * c->kernel[2] * (c->ic / c->groups) * c->oc;
    int64_t parts = stk_max_i64(SUMS / stk_max_i64(weights, 1), 2);
    return stk_max_i64(stk_ceil_div(c->n, parts), data_grain(params));
}

static stk_status forward_prepare(stk_launch *l, stk_error *err)
{
    return prepare(l, FORWARD, err);
}
static stk_status back_prepare(stk_launch *l, stk_error *err) { return prepare(l, BACK_DATA, err); }
static stk_status weight_prepare(stk_launch *l, stk_error *err)
{
    return prepare(l, BACK_WEIGHT, err);
}

const stk_impl stk_impl_conv_onednn = {.name = "onednn",
                                       .kernel = STK_K_CONV,
                                       .rank = 30,
                                       .supports = supports,
                                       .units = units,
                                       .grain = data_grain,
                                       .aligned = stk_conv_data_aligned,
                                       .prepare = forward_prepare,
                                       .discard = discard,
                                       .run = data_run};
const stk_impl stk_impl_conv_bwd_data_onednn = {.name = "onednn",
                                                .kernel = STK_K_CONV_BWD_DATA,
                                                .rank = 30,
                                                .supports = supports,
                                                .units = units,
                                                .grain = data_grain,
                                                .aligned = stk_conv_data_aligned,
                                                .prepare = back_prepare,
                                                .discard = discard,
                                                .run = back_run};
const stk_impl stk_impl_conv_bwd_weight_onednn = {.name = "onednn",
                                                  .kernel = STK_K_CONV_BWD_WEIGHT,
                                                  .rank = 30,
                                                  .supports = supports,
                                                  .units = units,
                                                  .grain = weight_grain,
                                                  .aligned = stk_conv_weight_aligned,
                                                  .prepare = weight_prepare,
                                                  .discard = discard,
                                                  .run = weight_run,
                                                  .sums = weight_sums,
                                                  .finish = weight_finish};

#endif
