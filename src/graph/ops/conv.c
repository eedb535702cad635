/* Convolution over 1, 2 or 3 spatial axes, channels last, and what is made of it: transposed, depthwise, separable.
 *
 * Three ops that are each other's gradients, so that any order of gradient exists:
 *
 *     conv(x, w) -> y        conv_bwd_data(dy, w) -> dx        conv_bwd_weight(x, dy) -> dw
 *
 * Attributes of all three, with r spatial axes: stride[r] dilation[r] low[r] high[r] groups; then the sizes that the inputs leave open:
 * of the image for conv_bwd_data, of the kernel for conv_bwd_weight. A transposed convolution is
 * conv_bwd_data used forward. */
#include "graph/ir/op.h"

#include <string.h>

enum { ATTRIBUTE_MOST = 0x7fffffff };

typedef struct conv_attrs {
    int32_t axes;
    const int64_t *stride, *dilation, *low, *high, *open;
    int64_t groups;
} conv_attrs;

static conv_attrs attrs_of(const stk_node *n, int32_t axes)
{
    const int64_t *i = n->ints;
    return (conv_attrs){axes,       i, i + axes, i + 2 * axes, i + 3 * axes, i + 4 * axes + 1,
                        i[4 * axes]};
}

/* ---- shape rules ------------------------------------------------------------------------------------- */

/* Checks ranks, dtypes and attributes; in[0] is always the image side. `open` says that sizes follow. */
static stk_status check_attrs(stk_infer *c, bool open, conv_attrs *a)
{
    int32_t rank = c->in[0]->shape.rank, axes = rank - 2;
    if (!stk_dtype_is_float(c->in[0]->dtype) || c->in[0]->dtype != c->in[1]->dtype)
        return stk_infer_fail(c, STK_ERR_DTYPE, "operands need one float dtype; cast first");
    if (axes < 1 || axes > 3 || c->in[1]->shape.rank != rank)
        return stk_infer_fail(
            c, STK_ERR_SHAPE,
            "needs [batch, 1 to 3 sizes, channels] and as many axes on the other operand, such as "
            "[n,h,w,c] and [kh,kw,c,filters]");
    if (c->node->nints != (open ? 5 : 4) * axes + 1)
        return stk_infer_fail(c, STK_ERR_ARGUMENT,
                              "%d attributes; needs stride, dilation, low, high%s of %d axes "
                              "and groups",
                              c->node->nints, open ? ", sizes" : "", axes);
    *a = attrs_of(c->node, axes);
    for (int32_t i = 0; i < c->node->nints; i++) {
        bool pad = i >= 2 * axes && i < 4 * axes;
        int64_t v = c->node->ints[i];
        if (v < (pad ? 0 : 1) || v > ATTRIBUTE_MOST)
            return stk_infer_fail(c, STK_ERR_RANGE, "%s %lld; must be %d to %d",
                                  pad ? "padding" : "stride, dilation, groups or size",
                                  (long long)v, pad ? 0 : 1, ATTRIBUTE_MOST);
    }
    return STK_OK;
}

/* Output size along axis i; -1 when the kernel does not fit. */
static int64_t out_size(const conv_attrs *a, int32_t i, int64_t in, int64_t kernel)
{
    int64_t room = in + a->low[i] + a->high[i] - ((kernel - 1) * a->dilation[i] + 1);
    return in < 1 || kernel < 1 || room < 0 ? -1 : room / a->stride[i] + 1;
}

/* Spatial sizes of image, kernel and output must belong together. Out sizes are written when out is NULL on entry. */
static stk_status check_sizes(stk_infer *c, const conv_attrs *a, const int64_t *in,
                              const int64_t *kernel, const int64_t *out, int64_t *made)
{
    for (int32_t i = 0; i < a->axes; i++) {
        int64_t size = kernel[i] > ATTRIBUTE_MOST ? -1 : out_size(a, i, in[i], kernel[i]);
        if (size < 0)
            return stk_infer_fail(c, STK_ERR_SHAPE,
                                  "kernel size %lld with dilation %lld does not fit into %lld + "
                                  "%lld + %lld pixels of axis "
                                  "%d; pad (padding same) or take a smaller kernel",
                                  (long long)kernel[i], (long long)a->dilation[i],
                                  (long long)a->low[i], (long long)in[i], (long long)a->high[i],
                                  i + 1);
        if (out && out[i] != size)
            return stk_infer_fail(
                c, STK_ERR_SHAPE,
                "axis %d has %lld output pixels where image, kernel and stride give %lld", i + 1,
                (long long)out[i], (long long)size);
        if (made) made[i] = size;
    }
    return STK_OK;
}

static stk_status check_channels(stk_infer *c, const conv_attrs *a, int64_t ic, int64_t per_group,
                                 int64_t oc)
{
    if (ic < 1 || oc < 1 || ic % a->groups || ic / a->groups != per_group)
        return stk_infer_fail(
            c, STK_ERR_SHAPE,
            "%lld channels in %lld group(s) need kernels of %lld input channels, not %lld",
            (long long)ic, (long long)a->groups, (long long)(ic / a->groups), (long long)per_group);
    if (oc % a->groups)
        return stk_infer_fail(c, STK_ERR_SHAPE,
                              "%lld output channels do not divide into %lld groups", (long long)oc,
                              (long long)a->groups);
    return STK_OK;
}

static stk_status finish_infer(stk_infer *c)
{
    const stk_shape *s = &c->out->shape;
    c->out->dtype = c->in[0]->dtype;
    return stk_shape_check(stk_op_name((stk_op)c->node->op), s->rank, s->dim,
                           stk_dtype_size(c->out->dtype), c->err);
}

static stk_status infer_conv(stk_infer *c)
{
    conv_attrs a;
    STK_TRY(check_attrs(c, false, &a));
    const int64_t *x = c->in[0]->shape.dim, *w = c->in[1]->shape.dim;
    stk_shape *y = &c->out->shape;
    STK_TRY(check_channels(c, &a, x[a.axes + 1], w[a.axes], w[a.axes + 1]));
    STK_TRY(check_sizes(c, &a, x + 1, w, NULL, y->dim + 1));
    y->rank = a.axes + 2;
    y->dim[0] = x[0];
    y->dim[a.axes + 1] = w[a.axes + 1];
    return finish_infer(c);
}

static stk_status infer_conv_bwd_data(stk_infer *c)
{
    conv_attrs a;
    STK_TRY(check_attrs(c, true, &a));
    const int64_t *dy = c->in[0]->shape.dim, *w = c->in[1]->shape.dim;
    stk_shape *dx = &c->out->shape;
    int64_t ic;
    if (dy[a.axes + 1] != w[a.axes + 1])
        return stk_infer_fail(c, STK_ERR_SHAPE, "%lld channels, but kernels have %lld filters",
                              (long long)dy[a.axes + 1], (long long)w[a.axes + 1]);
    if (!stk_mul_i64(w[a.axes], a.groups, &ic))
        return stk_infer_fail(c, STK_ERR_RANGE, "%lld groups are too many", (long long)a.groups);
    STK_TRY(check_channels(c, &a, ic, w[a.axes], w[a.axes + 1]));
    STK_TRY(check_sizes(c, &a, a.open, w, dy + 1, NULL));
    dx->rank = a.axes + 2;
    dx->dim[0] = dy[0];
    memcpy(dx->dim + 1, a.open, (size_t)a.axes * sizeof *a.open);
    dx->dim[a.axes + 1] = ic;
    return finish_infer(c);
}

static stk_status infer_conv_bwd_weight(stk_infer *c)
{
    conv_attrs a;
    STK_TRY(check_attrs(c, true, &a));
    const int64_t *x = c->in[0]->shape.dim, *dy = c->in[1]->shape.dim;
    stk_shape *dw = &c->out->shape;
    int64_t ic = x[a.axes + 1];
    if (x[0] != dy[0])
        return stk_infer_fail(c, STK_ERR_SHAPE, "batches of %lld and %lld differ", (long long)x[0],
                              (long long)dy[0]);
    STK_TRY(check_channels(c, &a, ic, ic / a.groups, dy[a.axes + 1]));
    STK_TRY(check_sizes(c, &a, x + 1, a.open, dy + 1, NULL));
    dw->rank = a.axes + 2;
    memcpy(dw->dim, a.open, (size_t)a.axes * sizeof *a.open);
    dw->dim[a.axes] = ic / a.groups;
    dw->dim[a.axes + 1] = dy[a.axes + 1];
    return finish_infer(c);
}

/* ---- gradients ------------------------------------------------------------------------------------------- */

/* One of the three ops with the attributes of node n; `open` gives the sizes its inputs leave open. */
static stk_val related(stk_graph *g, stk_op op, const stk_node *n, stk_val a, stk_val b,
                       const int64_t *open)
{
    int64_t ints[5 * 3 + 1];
    int32_t axes = stk_type_of(g, n->in[0])->shape.rank - 2, nints = 4 * axes + 1;
    memcpy(ints, n->ints, (size_t)nints * sizeof *ints);
    for (int32_t i = 0; open && i < axes; i++) ints[nints++] = open[i];
    return stk_g_apply(g, op, 2, (stk_val[]){a, b}, &(stk_attrs){.ints = ints, .nints = nints});
}

static stk_shape shape_of(const stk_graph *g, stk_val v) { return stk_type_of(g, v)->shape; }

static void grad_conv(stk_grad *c)
{
    stk_val x = c->node.in[0], w = c->node.in[1], dy = c->dout[0];
    stk_shape image = shape_of(c->g, x), kernel = shape_of(c->g, w);
    c->din[0] = related(c->g, STK_OP_CONV_BWD_DATA, &c->node, dy, w, image.dim + 1);
    c->din[1] = related(c->g, STK_OP_CONV_BWD_WEIGHT, &c->node, x, dy, kernel.dim);
}

static void grad_conv_bwd_data(stk_grad *c)
{
    stk_val dy = c->node.in[0], w = c->node.in[1], d = c->dout[0];
    stk_shape kernel = shape_of(c->g, w);
    c->din[0] = related(c->g, STK_OP_CONV, &c->node, d, w, NULL);
    c->din[1] = related(c->g, STK_OP_CONV_BWD_WEIGHT, &c->node, d, dy, kernel.dim);
}

static void grad_conv_bwd_weight(stk_grad *c)
{
    stk_val x = c->node.in[0], dy = c->node.in[1], d = c->dout[0];
    stk_shape image = shape_of(c->g, x);
    c->din[0] = related(c->g, STK_OP_CONV_BWD_DATA, &c->node, dy, d, image.dim + 1);
    c->din[1] = related(c->g, STK_OP_CONV, &c->node, x, d, NULL);
}

/* ---- lowering ----------------------------------------------------------------------------------------------- */

/* The values that play image, kernel and output in one of the three ops. */
static void roles(const stk_node *n, stk_val *image, stk_val *kernel, stk_val *out)
{
    *image = n->op == STK_OP_CONV_BWD_DATA ? n->out : n->in[0];
    *kernel = n->op == STK_OP_CONV_BWD_WEIGHT ? n->out : n->in[1];
    *out = n->op == STK_OP_CONV ? n->out : n->op == STK_OP_CONV_BWD_DATA ? n->in[0] : n->in[1];
}

static void fill_problem(const stk_graph *g, const stk_node *n, stk_conv *p)
{
    stk_val image, kernel, out;
    roles(n, &image, &kernel, &out);
    stk_shape x = shape_of(g, image), w = shape_of(g, kernel), y = shape_of(g, out);
    int32_t axes = x.rank - 2;
    conv_attrs a = attrs_of(n, axes);
    p->n = x.dim[0];
    p->ic = x.dim[axes + 1];
    p->oc = y.dim[axes + 1];
    p->groups = a.groups;
    p->dtype = stk_type_of(g, image)->dtype;
    for (int32_t i = 0; i < 3; i++) { /* fewer axes: the last ones, the others have size 1 */
        int32_t j = i - (3 - axes);
        p->in[i] = j < 0 ? 1 : x.dim[j + 1];
        p->out[i] = j < 0 ? 1 : y.dim[j + 1];
        p->kernel[i] = j < 0 ? 1 : w.dim[j];
        p->stride[i] = j < 0 ? 1 : a.stride[j];
        p->dilation[i] = j < 0 ? 1 : a.dilation[j];
        p->low[i] = j < 0 ? 0 : a.low[j];
    }
}

static int64_t volume(const int64_t s[3]) { return s[0] * s[1] * s[2]; }

/* A kernel of one tap, and one that covers the whole image, are plain matrix products [rows, inner] x [inner, oc]. */
static bool is_product(const stk_conv *p, int64_t *rows, int64_t *inner)
{
    bool point = p->groups == 1, whole = p->groups == 1;
    for (int32_t i = 0; i < 3; i++) {
        point &= p->kernel[i] == 1 && p->stride[i] == 1 && p->low[i] == 0 && p->out[i] == p->in[i];
        whole &=
            p->kernel[i] == p->in[i] && p->dilation[i] == 1 && p->low[i] == 0 && p->out[i] == 1;
    }
    *rows = point ? p->n * volume(p->in) : p->n;
    *inner = point ? p->ic : volume(p->in) * p->ic;
    return (point || whole) && p->n > 0;
}

static stk_status lower_product(stk_lower *l, const stk_conv *c, int64_t rows, int64_t inner)
{
    stk_gemm *p = stk_lower_params(l, STK_K_GEMM, sizeof *p);
    if (!p) return STK_ERR_MEMORY;
    p->batch = 1;
    p->dtype = (int32_t)c->dtype;
    p->zeros = stk_lower_zeros(l);
    switch ((stk_op)l->node->op) {
    case STK_OP_CONV: /* x w */
        p->m = rows, p->n = c->oc, p->k = inner;
        p->lda = inner, p->ldb = c->oc;
        break;
    case STK_OP_CONV_BWD_DATA: /* dy w^T */
        p->m = rows, p->n = inner, p->k = c->oc;
        p->lda = c->oc, p->ldb = c->oc, p->tb = 1;
        break;
    default: /* x^T dy */
        p->m = inner, p->n = c->oc, p->k = rows;
        p->lda = inner, p->ldb = c->oc, p->ta = 1;
        break;
    }
    p->ldc = p->n;
    p->batch_c = p->m * p->n;
    return STK_OK;
}

static const stk_kernel conv_kernels[] = {STK_K_CONV, STK_K_CONV_BWD_DATA, STK_K_CONV_BWD_WEIGHT};

static stk_status lower_conv(stk_lower *l)
{
    stk_conv problem = {0};
    int64_t rows, inner;
    fill_problem(l->g, l->node, &problem);
    if (is_product(&problem, &rows, &inner)) return lower_product(l, &problem, rows, inner);
    stk_conv *p = stk_lower_params(l, conv_kernels[l->node->op - STK_OP_CONV], sizeof *p);
    if (!p) return STK_ERR_MEMORY;
    *p = problem;
    return STK_OK;
}

static bool half_conv(const stk_graph *g, const stk_node *n, stk_device *device)
{
    char why[128];
    stk_conv p = {0};
    if (stk_type_of(g, n->in[0])->dtype != stk_type_of(g, n->in[1])->dtype) return false;
    fill_problem(g, n, &p);
    if (p.dtype != STK_BF16 && p.dtype != STK_F16) return false;
    return device->vt->kernels.supports(device, conv_kernels[n->op - STK_OP_CONV], &p, why,
                                        sizeof why);
}

static double cost_conv(const stk_graph *g, const stk_node *n)
{
    stk_conv p = {0};
    fill_problem(g, n, &p);
    return 2.0 * (double)p.n * (double)volume(p.out) * (double)p.oc * (double)volume(p.kernel) *
           (double)(p.ic / p.groups);
}

_Static_assert(STK_OP_CONV_BWD_DATA == STK_OP_CONV + 1 && STK_OP_CONV_BWD_WEIGHT == STK_OP_CONV + 2,
               "lower_conv counts on this order");

const stk_opdef stk_opdef_conv = {.flags = STK_OPF_WIDEN,
                                  .infer = infer_conv,
                                  .grad = grad_conv,
                                  .lower = lower_conv,
                                  .cost = cost_conv,
                                  .half = half_conv};
const stk_opdef stk_opdef_conv_bwd_data = {.flags = STK_OPF_WIDEN,
                                           .infer = infer_conv_bwd_data,
                                           .grad = grad_conv_bwd_data,
                                           .lower = lower_conv,
                                           .cost = cost_conv,
                                           .half = half_conv};
const stk_opdef stk_opdef_conv_bwd_weight = {.flags = STK_OPF_WIDEN,
                                             .infer = infer_conv_bwd_weight,
                                             .grad = grad_conv_bwd_weight,
                                             .lower = lower_conv,
                                             .cost = cost_conv,
                                             .half = half_conv};

/* ---- builders ------------------------------------------------------------------------------------------------- */

stk_conv_options stk_conv_options_defaults(void)
{
    return (stk_conv_options){.padding = STK_PADDING_VALID,
                              .stride = {1, 1, 1},
                              .dilation = {1, 1, 1},
                              .output_padding = {-1, -1, -1},
                              .groups = 1};
}

/* Options, or the defaults; on values that arithmetic here could not stand, the mistake is recorded. */
static bool read_options(stk_graph *g, const char *who, stk_val x, stk_val w,
                         const stk_conv_options *given, stk_conv_options *o)
{
    if (!stk_graph_ok(g)) return false;
    *o = given ? *given : stk_conv_options_defaults();
    if (!stk_val_ok(g, x) || !stk_val_ok(g, w))
        return stk_g_fail(g, STK_ERR_ARGUMENT, "%s: operand missing", who);
    stk_type tx = *stk_type_of(g, x), tw = *stk_type_of(g, w);
    int32_t axes = tx.shape.rank - 2;
    if (axes < 1 || axes > 3 || tw.shape.rank != tx.shape.rank)
        return stk_g_fail(
            g, STK_ERR_SHAPE,
            "%s(%s, %s): needs [batch, 1 to 3 sizes, channels] and kernels with as many axes", who,
            STK_TYPE_TEXT(&tx), STK_TYPE_TEXT(&tw));
    if ((unsigned)o->padding > STK_PADDING_EXPLICIT ||
        (o->padding == STK_PADDING_CAUSAL && axes != 1))
        return stk_g_fail(g, STK_ERR_ARGUMENT,
                          "%s(%s, %s): padding %d; valid, same, explicit, or causal with one axis",
                          who, STK_TYPE_TEXT(&tx), STK_TYPE_TEXT(&tw), (int)o->padding);
    for (int32_t i = 0; i < axes; i++) {
        int64_t all[] = {o->stride[i] - 1,         o->dilation[i] - 1,  o->low[i],      o->high[i],
                         o->output_padding[i] + 1, tx.shape.dim[i + 1], tw.shape.dim[i]};
        for (size_t j = 0; j < sizeof all / sizeof *all; j++)
            if (all[j] < 0 || all[j] >= ATTRIBUTE_MOST)
                return stk_g_fail(g, STK_ERR_RANGE,
                                  "%s(%s, %s): axis %d: stride and dilation are at least 1, "
                                  "padding at least 0, all below 2^31",
                                  who, STK_TYPE_TEXT(&tx), STK_TYPE_TEXT(&tw), i + 1);
    }
    return true;
}

/* Zeros before and after axis i of an image, for a convolution from `in` pixels to `out`: as TensorFlow does it, the odd one
 * goes behind. */
static void same_padding(int64_t in, int64_t out, int64_t wide, int64_t stride, int64_t *low,
                         int64_t *high)
{
    int64_t total = stk_max_i64((out - 1) * stride + wide - in, 0);
    *low = total / 2;
    *high = total - *low;
}

/* Effective width of a kernel: from its first tap to its last. */
static int64_t reach(const stk_conv_options *o, const stk_shape *w, int32_t i)
{
    return (w->dim[i] - 1) * o->dilation[i] + 1;
}

static void pack_attrs(const stk_conv_options *o, int32_t axes, const int64_t *low,
                       const int64_t *high, int64_t *ints)
{
    for (int32_t i = 0; i < axes; i++) {
        ints[i] = o->stride[i];
        ints[axes + i] = o->dilation[i];
        ints[2 * axes + i] = low[i];
        ints[3 * axes + i] = high[i];
    }
    ints[4 * axes] = o->groups;
}

static stk_val conv(stk_graph *g, stk_val x, stk_val w, const stk_conv_options *o)
{
    stk_shape sx = shape_of(g, x), sw = shape_of(g, w);
    int32_t axes = sx.rank - 2;
    int64_t low[3] = {0}, high[3] = {0}, ints[4 * 3 + 1];
    for (int32_t i = 0; i < axes; i++) {
        switch (o->padding) {
        case STK_PADDING_VALID: break;
        case STK_PADDING_SAME:
            same_padding(sx.dim[i + 1], stk_ceil_div(sx.dim[i + 1], o->stride[i]), reach(o, &sw, i),
                         o->stride[i], &low[i], &high[i]);
            break;
        case STK_PADDING_CAUSAL: low[i] = reach(o, &sw, i) - 1; break;
        case STK_PADDING_EXPLICIT: low[i] = o->low[i], high[i] = o->high[i]; break;
        }
    }
    pack_attrs(o, axes, low, high, ints);
    return stk_g_apply(g, STK_OP_CONV, 2, (stk_val[]){x, w},
                       &(stk_attrs){.ints = ints, .nints = 4 * axes + 1});
}

stk_val stk_g_conv(stk_graph *g, stk_val x, stk_val w, const stk_conv_options *options)
{
    stk_conv_options o;
    return read_options(g, "conv", x, w, options, &o) ? conv(g, x, w, &o) : 0;
}

/* Output size of a transposed convolution along axis i: Keras' rule, with and without output_padding. */
static int64_t transposed_size(const stk_conv_options *o, int64_t in, int64_t wide, int32_t i)
{
    int64_t s = o->stride[i], more = o->output_padding[i];
    bool same = o->padding == STK_PADDING_SAME;
    if (o->padding == STK_PADDING_EXPLICIT)
        return (in - 1) * s + wide - o->low[i] - o->high[i] + stk_max_i64(more, 0);
    if (more < 0) return in * s + (same ? 0 : stk_max_i64(wide - s, 0));
    return (in - 1) * s + wide - (same ? wide / 2 * 2 : 0) + more;
}

stk_val stk_g_conv_transpose(stk_graph *g, stk_val x, stk_val w, const stk_conv_options *options)
{
    stk_conv_options o;
    if (!read_options(g, "conv_transpose", x, w, options, &o)) return 0;
    if (o.padding == STK_PADDING_CAUSAL)
        return stk_g_fail(g, STK_ERR_ARGUMENT,
                          "conv_transpose: no causal padding; valid, same or explicit");
    stk_shape sx = shape_of(g, x), sw = shape_of(g, w);
    int32_t axes = sx.rank - 2;
    int64_t low[3] = {0}, high[3] = {0}, ints[5 * 3 + 1];
    for (int32_t i = 0; i < axes; i++) {
        int64_t in = sx.dim[i + 1], wide = reach(&o, &sw, i),
                out = transposed_size(&o, in, wide, i);
        if (o.padding == STK_PADDING_EXPLICIT)
            low[i] = o.low[i], high[i] = o.high[i];
        else if (o.padding == STK_PADDING_SAME)
            same_padding(out, in, wide, o.stride[i], &low[i], &high[i]);
        ints[4 * axes + 1 + i] = out;
    }
    pack_attrs(&o, axes, low, high, ints);
    return stk_g_apply(g, STK_OP_CONV_BWD_DATA, 2, (stk_val[]){x, w},
                       &(stk_attrs){.ints = ints, .nints = 5 * axes + 1});
}

stk_val stk_g_depthwise_conv(stk_graph *g, stk_val x, stk_val w, const stk_conv_options *options)
{
    stk_conv_options o;
    if (!read_options(g, "depthwise_conv", x, w, options, &o)) return 0;
    stk_type tx = *stk_type_of(g, x), tw = *stk_type_of(g, w);
    int32_t last = tx.shape.rank - 1;
    int64_t channels = tw.shape.dim[last - 1], out;
    if (channels != tx.shape.dim[last] || channels < 1 ||
        !stk_mul_i64(channels, tw.shape.dim[last], &out))
        return stk_g_fail(
            g, STK_ERR_SHAPE,
            "depthwise_conv(%s, %s): kernels must be [sizes, %lld channels, multiplier]",
            STK_TYPE_TEXT(&tx), STK_TYPE_TEXT(&tw), (long long)tx.shape.dim[last]);
    tw.shape.dim[last - 1] = 1;
    tw.shape.dim[last] = out;
    w = stk_g_reshape(g, w, tw.shape.rank, tw.shape.dim);
    o.groups = channels;
    return w ? conv(g, x, w, &o) : 0;
}

stk_val stk_g_separable_conv(stk_graph *g, stk_val x, stk_val depthwise, stk_val pointwise,
                             const stk_conv_options *options)
{
    return stk_g_conv(g, stk_g_depthwise_conv(g, x, depthwise, options), pointwise, NULL);
}
