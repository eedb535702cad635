/* Operations that move elements and compute none: reshape, transpose, broadcast, slice, pad, concat, and
 * the builders that are made of them. All but reshape lower to strided copies. */
#include "graph/ir/op.h"

#include <string.h>

static void strides_of(const stk_type *t, int64_t *stride) { stk_shape_strides(&t->shape, stride); }

/* Strided copy problem over the sizes of `over`, strides to be filled by the caller. */
static stk_copy_params *copy_over(stk_lower *l, const stk_shape *over)
{
    stk_copy_params *p = stk_lower_params(l, STK_K_COPY, sizeof *p);
    if (!p) return NULL;
    p->rank = over->rank;
    memcpy(p->dim, over->dim, sizeof p->dim);
    p->item = stk_dtype_size(stk_type_of(l->g, l->node->out)->dtype);
    return p;
}

/* ---- reshape: an alias, no element moves ------------------------------------------------------------ */

/* Elements without the sizes of 0: what an empty tensor would hold. */
static int64_t count_beside_zeros(int32_t rank, const int64_t *dim)
{
    int64_t n = 1;
    for (int32_t i = 0; i < rank; i++)
        if (dim[i] > 0 && !stk_mul_i64(n, dim[i], &n)) return 0;
    return n;
}

static stk_status infer_reshape(stk_infer *c)
{
    int64_t have = stk_shape_count(&c->in[0]->shape), known = 1;
    int32_t rank = c->node->nints, hole = -1;
    if (rank > STK_MAX_RANK)
        return stk_infer_fail(c, STK_ERR_SHAPE, "rank %d; at most %d", rank, STK_MAX_RANK);
    c->out->dtype = c->in[0]->dtype;
    c->out->shape.rank = rank;
    for (int32_t i = 0; i < rank; i++) {
        int64_t d = c->node->ints[i];
        if (d == -1 && hole < 0) {
            hole = i;
            continue;
        }
        if (d < 0 || !stk_mul_i64(known, d, &known))
            return stk_infer_fail(c, STK_ERR_SHAPE,
                                  "size %lld of axis %d; sizes are >= 0, one may be -1",
                                  (long long)d, i);
        c->out->shape.dim[i] = d;
    }
    if (hole >= 0) {
        int64_t all = have, part = known;
        if (have == 0 && known == 0) { /* as TensorFlow: (0, 3) to (0, -1) is (0, 3) */
            all = count_beside_zeros(c->in[0]->shape.rank, c->in[0]->shape.dim);
            part = count_beside_zeros(rank, c->node->ints);
        }
        if (part == 0 || all % part)
            return stk_infer_fail(c, STK_ERR_SHAPE,
                                  "%lld elements do not divide into the other sizes",
                                  (long long)have);
        c->out->shape.dim[hole] = all / part;
        known *= all / part;
    }
    if (known != have)
        return stk_infer_fail(c, STK_ERR_SHAPE, "%lld elements cannot become %s", (long long)have,
                              STK_SHAPE_TEXT(&c->out->shape));
    return STK_OK;
}

static void grad_reshape(stk_grad *c)
{
    stk_shape s = stk_type_of(c->g, c->node.in[0])->shape;
    c->din[0] = stk_g_reshape(c->g, c->dout[0], s.rank, s.dim);
}

static stk_status lower_alias(stk_lower *l)
{
    l->alias = 1;
    return STK_OK;
}

stk_val stk_g_reshape(stk_graph *g, stk_val x, int32_t rank, const int64_t *shape)
{
    if (rank < 0 || (rank && !shape))
        return stk_g_fail(g, STK_ERR_ARGUMENT, "reshape: no shape given");
    return stk_g_apply(g, STK_OP_RESHAPE, 1, &x, &(stk_attrs){.ints = shape, .nints = rank});
}
const stk_opdef stk_opdef_reshape = {
    .infer = infer_reshape, .grad = grad_reshape, .lower = lower_alias};

/* ---- stop_gradient: an alias through which no gradient goes --------------------------------------------- */

static stk_status infer_stop(stk_infer *c)
{
    *c->out = *c->in[0];
    return STK_OK;
}
stk_val stk_g_stop_gradient(stk_graph *g, stk_val x)
{
    return stk_g_apply(g, STK_OP_STOP_GRADIENT, 1, &x, NULL);
}
const stk_opdef stk_opdef_stop_gradient = {
    .flags = STK_OPF_NO_GRAD, .infer = infer_stop, .lower = lower_alias};

stk_val stk_g_expand_dims(stk_graph *g, stk_val x, int32_t axis)
{
    if (!stk_graph_ok(g) || !stk_val_ok(g, x)) return 0;
    stk_shape s = stk_type_of(g, x)->shape;
    if (axis < 0) axis += s.rank + 1;
    if (axis < 0 || axis > s.rank || s.rank == STK_MAX_RANK)
        return stk_g_fail(g, STK_ERR_RANGE, "expand_dims: axis %d does not fit %s", axis,
                          STK_SHAPE_TEXT(&s));
    memmove(s.dim + axis + 1, s.dim + axis, (size_t)(s.rank - axis) * sizeof s.dim[0]);
    s.dim[axis] = 1;
    return stk_g_reshape(g, x, s.rank + 1, s.dim);
}

stk_val stk_g_squeeze(stk_graph *g, stk_val x, int32_t axis)
{
    if (!stk_graph_ok(g) || !stk_val_ok(g, x)) return 0;
    stk_shape s = stk_type_of(g, x)->shape;
    axis = stk_g_axis(g, "squeeze", x, axis);
    if (axis < 0) return 0;
    if (s.dim[axis] != 1)
        return stk_g_fail(g, STK_ERR_SHAPE, "squeeze: axis %d of %s has not size 1", axis,
                          STK_SHAPE_TEXT(&s));
    memmove(s.dim + axis, s.dim + axis + 1, (size_t)(s.rank - axis - 1) * sizeof s.dim[0]);
    return stk_g_reshape(g, x, s.rank - 1, s.dim);
}

/* ---- transpose ------------------------------------------------------------------------------------------ */

static stk_status infer_transpose(stk_infer *c)
{
    uint32_t seen = 0;
    int32_t rank = c->in[0]->shape.rank;
    if (c->node->nints != rank)
        return stk_infer_fail(c, STK_ERR_SHAPE, "perm has %d axes, not %d", c->node->nints, rank);
    *c->out = *c->in[0];
    for (int32_t i = 0; i < rank; i++) {
        int64_t p = c->node->ints[i];
        if (p < 0 || p >= rank || seen >> p & 1u)
            return stk_infer_fail(c, STK_ERR_ARGUMENT, "perm must name each of the %d axes once",
                                  rank);
        seen |= 1u << p;
        c->out->shape.dim[i] = c->in[0]->shape.dim[p];
    }
    return STK_OK;
}

static void grad_transpose(stk_grad *c)
{
    int32_t back[STK_MAX_RANK] = {0};
    for (int32_t i = 0; i < c->node.nints; i++) back[c->node.ints[i]] = i;
    c->din[0] = stk_g_transpose(c->g, c->dout[0], back);
}

static stk_status lower_transpose(stk_lower *l)
{
    const stk_type *in = stk_type_of(l->g, l->node->in[0]), *out = stk_type_of(l->g, l->node->out);
    int64_t stride[STK_MAX_RANK];
    stk_copy_params *p = copy_over(l, &out->shape);
    if (!p) return STK_ERR_MEMORY;
    strides_of(in, stride);
    strides_of(out, p->out_stride);
    for (int32_t i = 0; i < in->shape.rank; i++) p->in_stride[i] = stride[l->node->ints[i]];
    return STK_OK;
}

stk_val stk_g_transpose(stk_graph *g, stk_val x, const int32_t *perm)
{
    int32_t rank = stk_g_rank(g, x);
    int64_t ints[STK_MAX_RANK];
    for (int32_t i = 0; i < rank; i++) ints[i] = perm ? perm[i] : rank - 1 - i;
    return stk_g_apply(g, STK_OP_TRANSPOSE, 1, &x, &(stk_attrs){.ints = ints, .nints = rank});
}
const stk_opdef stk_opdef_transpose = {
    .infer = infer_transpose, .grad = grad_transpose, .lower = lower_transpose};

/* ---- broadcast --------------------------------------------------------------------------------------------- */

static stk_status infer_broadcast(stk_infer *c)
{
    stk_shape want = {.rank = c->node->nints}, got;
    if (want.rank > STK_MAX_RANK)
        return stk_infer_fail(c, STK_ERR_SHAPE, "rank %d; at most %d", want.rank, STK_MAX_RANK);
    for (int32_t i = 0; i < want.rank; i++) want.dim[i] = c->node->ints[i];
    STK_TRY(
        stk_shape_check("broadcast", want.rank, want.dim, stk_dtype_size(c->in[0]->dtype), c->err));
    if (!stk_shape_broadcast(&c->in[0]->shape, &want, &got) || !stk_shape_equal(&got, &want))
        return stk_infer_fail(c, STK_ERR_SHAPE,
                              "does not broadcast to %s; sizes must be equal or 1",
                              STK_SHAPE_TEXT(&want));
    *c->out = (stk_type){c->in[0]->dtype, want};
    return STK_OK;
}

static void grad_broadcast(stk_grad *c)
{
    stk_shape s = stk_type_of(c->g, c->node.in[0])->shape;
    c->din[0] = stk_g_sum_to(c->g, c->dout[0], &s);
}

static stk_status lower_broadcast(stk_lower *l)
{
    const stk_type *in = stk_type_of(l->g, l->node->in[0]), *out = stk_type_of(l->g, l->node->out);
    int64_t stride[STK_MAX_RANK];
    stk_copy_params *p = copy_over(l, &out->shape);
    if (!p) return STK_ERR_MEMORY;
    strides_of(in, stride);
    strides_of(out, p->out_stride);
    int32_t lead = out->shape.rank - in->shape.rank;
    for (int32_t i = 0; i < in->shape.rank; i++)
        p->in_stride[lead + i] = in->shape.dim[i] == 1 ? 0 : stride[i];
    return STK_OK;
}

stk_val stk_g_broadcast(stk_graph *g, stk_val x, int32_t rank, const int64_t *shape)
{
    if (stk_graph_ok(g) && stk_val_ok(g, x)) {
        stk_shape have = stk_type_of(g, x)->shape;
        if (have.rank == rank && (!rank || !memcmp(have.dim, shape, (size_t)rank * sizeof *shape)))
            return x;
    }
    return stk_g_apply(g, STK_OP_BROADCAST, 1, &x, &(stk_attrs){.ints = shape, .nints = rank});
}
const stk_opdef stk_opdef_broadcast = {
    .infer = infer_broadcast, .grad = grad_broadcast, .lower = lower_broadcast};

/* ---- slice: attributes start[rank] size[rank] step[rank] --------------------------------------------------------- */

static stk_status infer_slice(stk_infer *c)
{
    int32_t rank = c->in[0]->shape.rank;
    const int64_t *start = c->node->ints, *size = start + rank, *step = size + rank;
    if (c->node->nints != 3 * rank)
        return stk_infer_fail(c, STK_ERR_ARGUMENT, "start, size and step need %d numbers each",
                              rank);
    *c->out = *c->in[0];
    for (int32_t i = 0; i < rank; i++) {
        int64_t have = c->in[0]->shape.dim[i], last;
        bool fits = step[i] != 0 && size[i] >= 0 && size[i] <= have;
        if (fits && size[i] > 0) {
            fits = stk_mul_i64(size[i] - 1, step[i], &last) && start[i] >= 0 && start[i] < have &&
                   start[i] + last >= 0 && start[i] + last < have;
        }
        if (!fits)
            return stk_infer_fail(c, STK_ERR_RANGE,
                                  "axis %d: %lld elements from %lld in steps of %lld leave 0..%lld",
                                  i, (long long)size[i], (long long)start[i], (long long)step[i],
                                  (long long)have - 1);
        c->out->shape.dim[i] = size[i];
    }
    return STK_OK;
}

/* The reverse of a slice: zeros of x's shape with dy in the window. Steps become interior padding. */
static void grad_slice(stk_grad *c)
{
    stk_shape s = stk_type_of(c->g, c->node.in[0])->shape;
    const int64_t *start = c->node.ints, *size = start + s.rank, *step = size + s.rank;
    stk_val d = c->dout[0];
    int64_t ints[3 * STK_MAX_RANK];
    for (int32_t i = 0; i < s.rank; i++) {
        int64_t n = size[i], stride = step[i] < 0 ? -step[i] : step[i];
        int64_t span = n ? (n - 1) * stride + 1 : 0,
                first = step[i] < 0 ? start[i] - (span - 1) : start[i];
        if (step[i] < 0) d = stk_g_reverse(c->g, d, i);
        if (n == 0) first = 0;
        ints[i] = first;
        ints[s.rank + i] = s.dim[i] - first - span;
        ints[2 * s.rank + i] = stride - 1;
    }
    double zero = 0;
    c->din[0] =
        stk_g_apply(c->g, STK_OP_PAD, 1, &d,
                    &(stk_attrs){.ints = ints, .nints = 3 * s.rank, .reals = &zero, .nreals = 1});
}

/* Leading-axis windows are contiguous: no copy then. */
static bool slice_is_contiguous(const stk_shape *in, const int64_t *start, const int64_t *size,
                                const int64_t *step)
{
    int32_t i = 0;
    while (i < in->rank && size[i] == 1) i++;
    if (i < in->rank && (step[i] != 1 && size[i] > 1)) return false;
    for (i++; i < in->rank; i++)
        if (start[i] != 0 || size[i] != in->dim[i] || (step[i] != 1 && size[i] > 1)) return false;
    return true;
}

static stk_status lower_slice(stk_lower *l)
{
    const stk_type *in = stk_type_of(l->g, l->node->in[0]), *out = stk_type_of(l->g, l->node->out);
    int32_t rank = in->shape.rank;
    const int64_t *start = l->node->ints, *size = start + rank, *step = size + rank;
    int64_t stride[STK_MAX_RANK], first = 0;
    strides_of(in, stride);
    for (int32_t i = 0; i < rank; i++) first += start[i] * stride[i];
    if (stk_shape_count(&out->shape) && slice_is_contiguous(&in->shape, start, size, step)) {
        l->alias = 1;
        l->offset = first * stk_dtype_size(in->dtype);
        return STK_OK;
    }
    stk_copy_params *p = copy_over(l, &out->shape);
    if (!p) return STK_ERR_MEMORY;
    strides_of(out, p->out_stride);
    p->in_offset = first;
    for (int32_t i = 0; i < rank; i++) p->in_stride[i] = stride[i] * step[i];
    return STK_OK;
}

stk_val stk_g_slice(stk_graph *g, stk_val x, const int64_t *start, const int64_t *size,
                    const int64_t *step)
{
    int32_t rank = stk_g_rank(g, x);
    int64_t ints[3 * STK_MAX_RANK];
    for (int32_t i = 0; i < rank; i++) {
        ints[i] = start[i];
        ints[rank + i] = size[i];
        ints[2 * rank + i] = step ? step[i] : 1;
    }
    return stk_g_apply(g, STK_OP_SLICE, 1, &x, &(stk_attrs){.ints = ints, .nints = 3 * rank});
}
const stk_opdef stk_opdef_slice = {.infer = infer_slice, .grad = grad_slice, .lower = lower_slice};

static stk_val slice_one_axis(stk_graph *g, const char *who, stk_val x, int32_t axis, int64_t start,
                              int64_t size, int64_t step)
{
    if (!stk_graph_ok(g) || !stk_val_ok(g, x)) return 0;
    stk_shape s = stk_type_of(g, x)->shape;
    axis = stk_g_axis(g, who, x, axis);
    if (axis < 0) return 0;
    int64_t from[STK_MAX_RANK] = {0}, by[STK_MAX_RANK];
    for (int32_t i = 0; i < s.rank; i++) by[i] = 1;
    from[axis] = start;
    s.dim[axis] = size;
    by[axis] = step;
    return stk_g_slice(g, x, from, s.dim, by);
}

stk_val stk_g_slice_axis(stk_graph *g, stk_val x, int32_t axis, int64_t start, int64_t size)
{
    return slice_one_axis(g, "slice_axis", x, axis, start, size, 1);
}

stk_val stk_g_reverse(stk_graph *g, stk_val x, int32_t axis)
{
    int64_t n = stk_g_dim(g, x, axis);
    return n < 2 ? x : slice_one_axis(g, "reverse", x, axis, n - 1, n, -1);
}

/* ---- pad: attributes low[rank] high[rank] interior[rank], value ------------------------------------------------------ */

static stk_status infer_pad(stk_infer *c)
{
    int32_t rank = c->in[0]->shape.rank;
    const int64_t *low = c->node->ints, *high = low + rank, *gap = high + rank;
    if (c->node->nints != 3 * rank)
        return stk_infer_fail(c, STK_ERR_ARGUMENT, "low, high and interior need %d numbers each",
                              rank);
    *c->out = *c->in[0];
    for (int32_t i = 0; i < rank; i++) {
        int64_t n = c->in[0]->shape.dim[i], spread;
        if (low[i] < 0 || high[i] < 0 || gap[i] < 0 ||
            !stk_mul_i64(n ? n - 1 : 0, gap[i], &spread) ||
            __builtin_add_overflow(n + spread, low[i], &spread) ||
            __builtin_add_overflow(spread, high[i], &spread))
            return stk_infer_fail(c, STK_ERR_RANGE,
                                  "axis %d: padding %lld, %lld, interior %lld; needs >= 0", i,
                                  (long long)low[i], (long long)high[i], (long long)gap[i]);
        c->out->shape.dim[i] = spread;
    }
    return STK_OK;
}

static void grad_pad(stk_grad *c)
{
    stk_shape s = stk_type_of(c->g, c->node.in[0])->shape;
    int64_t step[STK_MAX_RANK];
    for (int32_t i = 0; i < s.rank; i++) step[i] = c->node.ints[2 * s.rank + i] + 1;
    c->din[0] = stk_g_slice(c->g, c->dout[0], c->node.ints, s.dim, step);
}

static stk_status lower_pad(stk_lower *l)
{
    const stk_type *in = stk_type_of(l->g, l->node->in[0]), *out = stk_type_of(l->g, l->node->out);
    int32_t rank = in->shape.rank;
    const int64_t *low = l->node->ints, *gap = low + 2 * rank;
    stk_pad_params *p = stk_lower_params(l, STK_K_PAD, sizeof *p);
    if (!p) return STK_ERR_MEMORY;
    int64_t stride[STK_MAX_RANK];
    strides_of(out, stride);
    p->copy.rank = rank;
    memcpy(p->copy.dim, in->shape.dim, sizeof p->copy.dim);
    strides_of(in, p->copy.in_stride);
    for (int32_t i = 0; i < rank; i++) {
        p->copy.out_stride[i] = stride[i] * (gap[i] + 1);
        p->copy.out_offset += stride[i] * low[i];
    }
    p->copy.item = p->fill.item = stk_dtype_size(in->dtype);
    p->fill.count = stk_shape_count(&out->shape);
    stk_store_f64(in->dtype, p->fill.value, l->node->nreals ? l->node->reals[0] : 0);
    return STK_OK;
}

stk_val stk_g_pad(stk_graph *g, stk_val x, const int64_t *low, const int64_t *high, double value)
{
    int32_t rank = stk_g_rank(g, x);
    int64_t ints[3 * STK_MAX_RANK] = {0};
    for (int32_t i = 0; i < rank; i++) {
        ints[i] = low[i];
        ints[rank + i] = high[i];
    }
    return stk_g_apply(g, STK_OP_PAD, 1, &x,
                       &(stk_attrs){.ints = ints, .nints = 3 * rank, .reals = &value, .nreals = 1});
}
const stk_opdef stk_opdef_pad = {.infer = infer_pad, .grad = grad_pad, .lower = lower_pad};

/* ---- concat ---------------------------------------------------------------------------------------------------------- */

static stk_status infer_concat(stk_infer *c)
{
    const stk_node *n = c->node;
    *c->out = *c->in[0];
    int64_t axis = n->nints == 1 ? n->ints[0] : -1, total = 0;
    if (axis < 0 || axis >= c->in[0]->shape.rank)
        return stk_infer_fail(c, STK_ERR_RANGE, "axis %lld; 0 to %d is possible", (long long)axis,
                              c->in[0]->shape.rank - 1);
    for (int32_t i = 0; i < n->nin; i++) {
        stk_type t = *stk_type_of(c->g, n->in[i]);
        if (__builtin_add_overflow(total, t.shape.dim[axis], &total))
            return stk_infer_fail(c, STK_ERR_RANGE, "the sizes add up to more than 2^63");
        t.shape.dim[axis] = c->in[0]->shape.dim[axis];
        if (!stk_type_equal(&t, c->in[0]))
            return stk_infer_fail(c, STK_ERR_SHAPE,
                                  "input %d is %s; all must agree but on axis %lld", i,
                                  STK_TYPE_TEXT(stk_type_of(c->g, n->in[i])), (long long)axis);
    }
    c->out->shape.dim[axis] = total;
    return STK_OK;
}

static void grad_concat(stk_grad *c)
{
    int64_t at = 0;
    for (int32_t i = 0; i < c->node.nin; i++) {
        int64_t n = stk_g_dim(c->g, c->node.in[i], (int32_t)c->node.ints[0]);
        c->din[i] = stk_g_slice_axis(c->g, c->dout[0], (int32_t)c->node.ints[0], at, n);
        at += n;
    }
}

static stk_status lower_concat(stk_lower *l)
{
    const stk_node *n = l->node;
    const stk_type *out = stk_type_of(l->g, n->out);
    stk_concat_params *p =
        stk_lower_params(l, STK_K_CONCAT, sizeof *p + (size_t)n->nin * sizeof p->width[0]);
    if (!p) return STK_ERR_MEMORY;
    int64_t axis = n->ints[0], inner = stk_dtype_size(out->dtype);
    p->inputs = n->nin;
    p->outer = 1;
    for (int32_t i = 0; i < out->shape.rank; i++) {
        if (i < axis) p->outer *= out->shape.dim[i];
        if (i > axis) inner *= out->shape.dim[i];
    }
    for (int32_t i = 0; i < n->nin; i++) {
        p->width[i] = stk_type_of(l->g, n->in[i])->shape.dim[axis] * inner;
        p->total += p->width[i];
    }
    return STK_OK;
}

stk_val stk_g_concat(stk_graph *g, int32_t n, const stk_val *x, int32_t axis)
{
    if (!stk_graph_ok(g)) return 0;
    if (n < 1 || !x) return stk_g_fail(g, STK_ERR_ARGUMENT, "concat: needs at least one input");
    axis = stk_g_axis(g, "concat", x[0], axis);
    if (axis < 0) return 0;
    int64_t at = axis;
    return n == 1 ? x[0]
                  : stk_g_apply(g, STK_OP_CONCAT, n, x, &(stk_attrs){.ints = &at, .nints = 1});
}
const stk_opdef stk_opdef_concat = {
    .infer = infer_concat, .grad = grad_concat, .lower = lower_concat};

/* ---- made of the above --------------------------------------------------------------------------------------------------- */

stk_val stk_g_stack(stk_graph *g, int32_t n, const stk_val *x, int32_t axis)
{
    enum { MOST = 1024 };
    if (!stk_graph_ok(g)) return 0;
    if (n < 1 || n > MOST || !x)
        return stk_g_fail(g, STK_ERR_ARGUMENT, "stack: %d inputs; 1 to %d", n, MOST);
    stk_val wide[MOST];
    if (axis < 0) axis += stk_g_rank(g, x[0]) + 1;
    for (int32_t i = 0; i < n; i++) wide[i] = stk_g_expand_dims(g, x[i], axis);
    return stk_g_concat(g, n, wide, axis);
}

void stk_g_split(stk_graph *g, stk_val x, int32_t axis, int32_t n, stk_val *parts)
{
    int64_t size = stk_g_dim(g, x, axis);
    if (n < 1 || size % n) {
        stk_g_fail(g, STK_ERR_SHAPE, "split: axis %d has %lld elements, not a multiple of %d", axis,
                   (long long)size, n);
        n = 0;
    }
    for (int32_t i = 0; i < n; i++)
        parts[i] = stk_g_slice_axis(g, x, axis, i * (size / n), size / n);
}

/* [a, b] times [2, 3] = [1, a, 1, b] broadcast to [2, a, 3, b], reshaped to [2a, 3b]; axes with 1 stay as they are. */
stk_val stk_g_tile(stk_graph *g, stk_val x, const int64_t *times)
{
    if (!stk_graph_ok(g) || !stk_val_ok(g, x)) return 0;
    stk_shape s = stk_type_of(g, x)->shape, one = {0}, many = {0};
    for (int32_t i = 0; i < s.rank; i++) {
        if (times[i] < 1)
            return stk_g_fail(g, STK_ERR_RANGE, "tile: times[%d] is %lld; needs >= 1", i,
                              (long long)times[i]);
        if (times[i] > 1) {
            if (many.rank + 2 > STK_MAX_RANK)
                return stk_g_fail(g, STK_ERR_SHAPE, "tile: too many axes repeat at once");
            one.dim[one.rank++] = 1;
            many.dim[many.rank++] = times[i];
        }
        if (many.rank + 1 > STK_MAX_RANK)
            return stk_g_fail(g, STK_ERR_SHAPE, "tile: too many axes repeat at once");
        one.dim[one.rank++] = many.dim[many.rank] = s.dim[i];
        many.rank++;
        s.dim[i] *= times[i];
    }
    x = stk_g_broadcast(g, stk_g_reshape(g, x, one.rank, one.dim), many.rank, many.dim);
    return stk_g_reshape(g, x, s.rank, s.dim);
}
