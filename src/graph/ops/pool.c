/* Pooling over 1, 2 or 3 spatial axes, channels last: the largest or the mean of each window.
 *
 * Attributes, with r spatial axes: window[r] stride[r] low[r] high[r]; the gradients add the sizes of the image. What
 * lies outside the image is never a maximum and is not counted in a mean.
 *
 *     max_pool(x) -> y, which     max_pool_grad(which, dy) -> dx     max_pool_pick(which, v) -> v at the maxima
 *     avg_pool(x) -> y            avg_pool_grad(dy) -> dx
 *
 * `which` numbers the element of its window that was the maximum, so that x need not be kept for the gradient. The
 * gradient of max_pool_grad is max_pool_pick, and the other way round, so any order exists. */
#include "graph/ir/op.h"

#include <string.h>

enum { ATTRIBUTE_MOST = 0x7fffffff };

typedef struct pool_attrs {
    int32_t axes;
    const int64_t *window, *stride, *low, *high, *image;
} pool_attrs;

static pool_attrs attrs_of(const stk_node *n, int32_t axes)
{
    const int64_t *i = n->ints;
    return (pool_attrs){axes, i, i + axes, i + 2 * axes, i + 3 * axes, i + 4 * axes};
}

static stk_shape shape_of(const stk_graph *g, stk_val v) { return stk_type_of(g, v)->shape; }

/* ---- shape rules --------------------------------------------------------------------------------------- */

static stk_dtype which_dtype(const pool_attrs *a)
{
    int64_t window[3] = {1, 1, 1};
    memcpy(window, a->window, (size_t)a->axes * sizeof *window);
    return stk_pool_wide(window) ? STK_I32 : STK_U8;
}

/* `value` is the input that holds numbers, `image` says that the sizes of the image follow. */
static stk_status check_attrs(stk_infer *c, int value, bool image, pool_attrs *a)
{
    int32_t axes = c->in[0]->shape.rank - 2;
    if (!stk_dtype_is_float(c->in[value]->dtype))
        return stk_infer_fail(c, STK_ERR_DTYPE, "needs a float dtype; cast first");
    if (axes < 1 || axes > 3)
        return stk_infer_fail(c, STK_ERR_SHAPE,
                              "needs [batch, 1 to 3 sizes, channels], such as [n,h,w,c]");
    if (c->node->nints != (image ? 5 : 4) * axes)
        return stk_infer_fail(c, STK_ERR_ARGUMENT,
                              "%d attributes; needs window, stride, low, high%s of %d axes",
                              c->node->nints, image ? ", sizes" : "", axes);
    *a = attrs_of(c->node, axes);
    for (int32_t i = 0; i < axes; i++) {
        bool good = a->window[i] >= 1 && a->window[i] <= ATTRIBUTE_MOST && a->stride[i] >= 1 &&
                    a->stride[i] <= ATTRIBUTE_MOST && a->low[i] >= 0 && a->low[i] < a->window[i] &&
                    a->high[i] >= 0 && a->high[i] < a->window[i] && (!image || a->image[i] >= 1);
        if (!good)
            return stk_infer_fail(c, STK_ERR_RANGE,
                                  "axis %d: window %lld, stride %lld, padding %lld and %lld; "
                                  "window and stride are at least 1, "
                                  "padding smaller than the window",
                                  i + 1, (long long)a->window[i], (long long)a->stride[i],
                                  (long long)a->low[i], (long long)a->high[i]);
    }
    if (value == 1 && c->in[0]->dtype != which_dtype(a))
        return stk_infer_fail(
            c, STK_ERR_DTYPE,
            "the first input is the second result of max_pool: %s for this window",
            stk_dtype_name(which_dtype(a)));
    return STK_OK;
}

/* Sizes of the pooled image for an image of shape x. */
static stk_status pooled(stk_infer *c, const pool_attrs *a, const stk_shape *x, stk_shape *y)
{
    *y = *x;
    if (x->dim[a->axes + 1] < 1) return stk_infer_fail(c, STK_ERR_SHAPE, "there are no channels");
    for (int32_t i = 0; i < a->axes; i++) {
        int64_t in = x->dim[i + 1], room;
        if (in < 1 || in > INT64_MAX / 4 || (room = in + a->low[i] + a->high[i] - a->window[i]) < 0)
            return stk_infer_fail(c, STK_ERR_SHAPE,
                                  "window %lld does not fit into %lld + %lld + %lld pixels of axis "
                                  "%d; pad (padding same) or "
                                  "take a smaller window",
                                  (long long)a->window[i], (long long)a->low[i], (long long)in,
                                  (long long)a->high[i], i + 1);
        y->dim[i + 1] = room / a->stride[i] + 1;
    }
    return STK_OK;
}

static stk_status infer_avg_pool(stk_infer *c)
{
    pool_attrs a;
    STK_TRY(check_attrs(c, 0, false, &a));
    c->out->dtype = c->in[0]->dtype;
    STK_TRY(pooled(c, &a, &c->in[0]->shape, &c->out->shape));
    return stk_shape_check(stk_op_name((stk_op)c->node->op), c->out->shape.rank, c->out->shape.dim,
                           stk_dtype_size(c->out->dtype), c->err);
}

static stk_status infer_max_pool(stk_infer *c)
{
    STK_TRY(infer_avg_pool(c));
    pool_attrs a = attrs_of(c->node, c->in[0]->shape.rank - 2);
    c->out[1] = (stk_type){which_dtype(&a), c->out->shape};
    return STK_OK;
}

/* The image that a gradient of shape dy belongs to. */
static stk_status infer_image(stk_infer *c, const pool_attrs *a, const stk_type *dy)
{
    stk_shape x = dy->shape, y;
    memcpy(x.dim + 1, a->image, (size_t)a->axes * sizeof *a->image);
    STK_TRY(stk_shape_check(stk_op_name((stk_op)c->node->op), x.rank, x.dim,
                            stk_dtype_size(dy->dtype), c->err));
    STK_TRY(pooled(c, a, &x, &y));
    if (!stk_shape_equal(&y, &dy->shape))
        return stk_infer_fail(c, STK_ERR_SHAPE, "pooling an image %s gives %s, not this gradient",
                              STK_SHAPE_TEXT(&x), STK_SHAPE_TEXT(&y));
    *c->out = (stk_type){dy->dtype, x};
    return STK_OK;
}

static stk_status infer_avg_pool_grad(stk_infer *c)
{
    pool_attrs a;
    STK_TRY(check_attrs(c, 0, true, &a));
    return infer_image(c, &a, c->in[0]);
}

static stk_status infer_max_pool_grad(stk_infer *c)
{
    pool_attrs a;
    STK_TRY(check_attrs(c, 1, true, &a));
    if (!stk_shape_equal(&c->in[0]->shape, &c->in[1]->shape))
        return stk_infer_fail(c, STK_ERR_SHAPE, "both inputs need the same shape");
    return infer_image(c, &a, c->in[1]);
}

static stk_status infer_max_pool_pick(stk_infer *c)
{
    pool_attrs a;
    STK_TRY(check_attrs(c, 1, false, &a));
    if (c->in[1]->shape.rank != c->in[0]->shape.rank)
        return stk_infer_fail(c, STK_ERR_SHAPE, "both inputs need as many axes");
    STK_TRY(pooled(c, &a, &c->in[1]->shape, &c->out->shape));
    c->out->dtype = c->in[1]->dtype;
    if (!stk_shape_equal(&c->in[0]->shape, &c->out->shape))
        return stk_infer_fail(
            c, STK_ERR_SHAPE,
            "pooling the second input gives %s, so the first must have that shape",
            STK_SHAPE_TEXT(&c->out->shape));
    return STK_OK;
}

/* ---- gradients --------------------------------------------------------------------------------------------- */

/* Another pooling op with the attributes of node n; sizes of the image are added when given. */
static stk_val related(stk_graph *g, stk_op op, const stk_node *n, int32_t nin, const stk_val *in,
                       const int64_t *image)
{
    int64_t ints[5 * 3];
    int32_t axes = shape_of(g, n->in[0]).rank - 2, nints = 4 * axes;
    memcpy(ints, n->ints, (size_t)nints * sizeof *ints);
    for (int32_t i = 0; image && i < axes; i++) ints[nints++] = image[i];
    return stk_g_apply(g, op, nin, in, &(stk_attrs){.ints = ints, .nints = nints});
}

static void grad_max_pool(stk_grad *c)
{
    stk_shape x = shape_of(c->g, c->node.in[0]);
    if (!c->dout[0]) return;
    c->din[0] = related(c->g, STK_OP_MAX_POOL_GRAD, &c->node, 2,
                        (stk_val[]){c->node.out + 1, c->dout[0]}, x.dim + 1);
}

static void grad_max_pool_grad(stk_grad *c)
{
    c->din[1] = related(c->g, STK_OP_MAX_POOL_PICK, &c->node, 2,
                        (stk_val[]){c->node.in[0], c->dout[0]}, NULL);
}

static void grad_max_pool_pick(stk_grad *c)
{
    stk_shape v = shape_of(c->g, c->node.in[1]);
    c->din[1] = related(c->g, STK_OP_MAX_POOL_GRAD, &c->node, 2,
                        (stk_val[]){c->node.in[0], c->dout[0]}, v.dim + 1);
}

static void grad_avg_pool(stk_grad *c)
{
    stk_shape x = shape_of(c->g, c->node.in[0]);
    c->din[0] = related(c->g, STK_OP_AVG_POOL_GRAD, &c->node, 1, c->dout, x.dim + 1);
}

static void grad_avg_pool_grad(stk_grad *c)
{
    c->din[0] = related(c->g, STK_OP_AVG_POOL, &c->node, 1, c->dout, NULL);
}

/* ---- lowering ------------------------------------------------------------------------------------------------- */

/* The values that play image and pooled image. */
static void sides(const stk_node *n, stk_val *x, stk_val *y)
{
    switch ((stk_op)n->op) {
    case STK_OP_MAX_POOL_GRAD: *x = n->out, *y = n->in[1]; break;
    case STK_OP_MAX_POOL_PICK: *x = n->in[1], *y = n->out; break;
    case STK_OP_AVG_POOL_GRAD: *x = n->out, *y = n->in[0]; break;
    default: *x = n->in[0], *y = n->out; break;
    }
}

static const stk_kernel pool_kernels[] = {STK_K_MAX_POOL, STK_K_MAX_POOL_GRAD, STK_K_MAX_POOL_PICK,
                                          STK_K_AVG_POOL, STK_K_AVG_POOL_GRAD};

static void fill_problem(const stk_graph *g, const stk_node *n, stk_pool_params *p)
{
    stk_val image, small;
    sides(n, &image, &small);
    stk_shape x = shape_of(g, image), y = shape_of(g, small);
    int32_t axes = x.rank - 2;
    pool_attrs a = attrs_of(n, axes);
    p->n = x.dim[0];
    p->c = x.dim[axes + 1];
    p->dtype = stk_type_of(g, n->out)->dtype;
    for (int32_t i = 0; i < 3; i++) { /* fewer axes: the last ones, the others have size 1 */
        int32_t j = i - (3 - axes);
        p->in[i] = j < 0 ? 1 : x.dim[j + 1];
        p->out[i] = j < 0 ? 1 : y.dim[j + 1];
        p->window[i] = j < 0 ? 1 : a.window[j];
        p->stride[i] = j < 0 ? 1 : a.stride[j];
        p->low[i] = j < 0 ? 0 : a.low[j];
    }
}

static stk_status lower_pool(stk_lower *l)
{
    const stk_kernel kernel = pool_kernels[l->node->op - STK_OP_MAX_POOL];
    stk_pool_params *p = stk_lower_params(l, kernel, sizeof *p);
    if (!p) return STK_ERR_MEMORY;
    fill_problem(l->g, l->node, p);
    return STK_OK;
}

static bool half_pool(const stk_graph *g, const stk_node *n, stk_device *device)
{
    char why[128];
    stk_pool_params p = {0};
    fill_problem(g, n, &p);
    if (p.dtype != STK_BF16 && p.dtype != STK_F16) return false;
    return device->vt->kernels.supports(device, pool_kernels[n->op - STK_OP_MAX_POOL], &p, why,
                                        sizeof why);
}

static double cost_pool(const stk_graph *g, const stk_node *n)
{
    stk_val image, small;
    sides(n, &image, &small);
    stk_shape x = shape_of(g, image);
    return (double)stk_shape_count(&x);
}

_Static_assert(STK_OP_AVG_POOL_GRAD == STK_OP_MAX_POOL + 4,
               "lower_pool counts on the order of ops.def");

#define POOL_OP(id, shape_rule)                                                                    \
    const stk_opdef stk_opdef_##id = {.flags = STK_OPF_WIDEN,                                      \
                                      .infer = shape_rule,                                         \
                                      .grad = grad_##id,                                           \
                                      .lower = lower_pool,                                         \
                                      .cost = cost_pool,                                           \
                                      .half = half_pool};
POOL_OP(max_pool, infer_max_pool)
POOL_OP(max_pool_grad, infer_max_pool_grad)
POOL_OP(max_pool_pick, infer_max_pool_pick)
POOL_OP(avg_pool, infer_avg_pool)
POOL_OP(avg_pool_grad, infer_avg_pool_grad)

/* ---- builders ----------------------------------------------------------------------------------------------------- */

stk_pool_options stk_pool_options_defaults(void)
{
    return (stk_pool_options){.padding = STK_PADDING_VALID, .window = {2, 2, 2}};
}

static stk_val pool(stk_graph *g, stk_op op, stk_val x, const stk_pool_options *given)
{
    if (!stk_graph_ok(g)) return 0;
    stk_pool_options o = given ? *given : stk_pool_options_defaults();
    if (!stk_val_ok(g, x))
        return stk_g_fail(g, STK_ERR_ARGUMENT, "%s: operand missing", stk_op_name(op));
    stk_type t = *stk_type_of(g, x);
    int32_t axes = t.shape.rank - 2;
    if (o.padding != STK_PADDING_VALID && o.padding != STK_PADDING_SAME &&
        o.padding != STK_PADDING_EXPLICIT)
        return stk_g_fail(g, STK_ERR_ARGUMENT, "%s(%s): padding %d; valid, same or explicit",
                          stk_op_name(op), STK_TYPE_TEXT(&t), (int)o.padding);
    if (axes < 1 || axes > 3)
        return stk_g_fail(g, STK_ERR_SHAPE, "%s(%s): needs [batch, 1 to 3 sizes, channels]",
                          stk_op_name(op), STK_TYPE_TEXT(&t));
    int64_t ints[4 * 3] = {0};
    for (int32_t i = 0; i < axes; i++) {
        int64_t in = t.shape.dim[i + 1], window = o.window[i],
                stride = o.stride[i] ? o.stride[i] : window;
        ints[i] = window;
        ints[axes + i] = stride;
        if (o.padding == STK_PADDING_EXPLICIT) {
            ints[2 * axes + i] = o.low[i];
            ints[3 * axes + i] = o.high[i];
        } else if (o.padding == STK_PADDING_SAME && stride > 0 && stride <= ATTRIBUTE_MOST &&
                   window > 0 && window <= ATTRIBUTE_MOST) { /* else the shape rule complains */
            int64_t total = (stk_ceil_div(in, stride) - 1) * stride + window - in;
            ints[2 * axes + i] = stk_max_i64(total, 0) / 2;
            ints[3 * axes + i] = stk_max_i64(total, 0) - ints[2 * axes + i];
        }
    }
    return stk_g_apply(g, op, 1, &x, &(stk_attrs){.ints = ints, .nints = 4 * axes});
}

/* Does v hold one number per channel, the same for all pixels of an image of type x? */
static bool per_channel(const stk_graph *g, stk_val v, const stk_type *x)
{
    stk_shape s = shape_of(g, v);
    for (int32_t i = 0; i + 1 < s.rank; i++)
        if (s.dim[i] != 1) return false;
    return s.rank <= x->shape.rank;
}

/* relu and adding a bias keep the order within a channel, and so does rounding: what was largest stays largest. So the
 * maximum is taken first and they work on the few pixels that are left, forward and in the gradient. */
stk_val stk_g_max_pool(stk_graph *g, stk_val x, const stk_pool_options *options)
{
    enum { DEEPEST = 4 };
    struct {
        stk_op op;
        stk_val bias;
    } later[DEEPEST];
    int32_t n = 0;
    while (stk_graph_ok(g) && stk_val_ok(g, x) && n < DEEPEST) {
        const stk_node *from = stk_node_of(g, x);
        const stk_type *t = stk_type_of(g, x);
        if (from->op != STK_OP_RELU && from->op != STK_OP_ADD) break;
        int bias = from->op == STK_OP_ADD && per_channel(g, from->in[0], t) ? 0 : 1;
        stk_val main = from->op == STK_OP_RELU ? from->in[0] : from->in[1 - bias];
        if (!stk_type_equal(stk_type_of(g, main), t)) break;
        if (from->op == STK_OP_ADD && !per_channel(g, from->in[bias], t)) break;
        later[n].op = (stk_op)from->op;
        later[n++].bias = from->op == STK_OP_ADD ? from->in[bias] : 0;
        x = main;
    }
    stk_val y = pool(g, STK_OP_MAX_POOL, x, options);
    while (n-- > 0)
        y = later[n].op == STK_OP_RELU ? stk_g_relu(g, y) : stk_g_add(g, y, later[n].bias);
    return y;
}

stk_val stk_g_avg_pool(stk_graph *g, stk_val x, const stk_pool_options *options)
{
    return pool(g, STK_OP_AVG_POOL, x, options);
}

/* The spatial axes; 0 when there are none. */
static int32_t spatial_axes(stk_graph *g, const char *who, stk_val x, int32_t axes[3])
{
    if (!stk_graph_ok(g)) return 0;
    if (!stk_val_ok(g, x)) return stk_g_fail(g, STK_ERR_ARGUMENT, "%s: operand missing", who);
    stk_type t = *stk_type_of(g, x);
    int32_t n = t.shape.rank - 2;
    if (n < 1 || n > 3)
        return stk_g_fail(g, STK_ERR_SHAPE, "%s(%s): needs [batch, 1 to 3 sizes, channels]", who,
                          STK_TYPE_TEXT(&t));
    for (int32_t i = 0; i < n; i++) axes[i] = i + 1;
    return n;
}

stk_val stk_g_global_max_pool(stk_graph *g, stk_val x, bool keep)
{
    int32_t axes[3], n = spatial_axes(g, "global_max_pool", x, axes);
    return n ? stk_g_reduce_max(g, x, n, axes, keep) : 0;
}

stk_val stk_g_global_avg_pool(stk_graph *g, stk_val x, bool keep)
{
    int32_t axes[3], n = spatial_axes(g, "global_avg_pool", x, axes);
    return n ? stk_g_mean(g, x, n, axes, keep) : 0;
}
