/* Operations that follow indices: gather and scatter of slices, take and put of single elements, one_hot, sort,
 * and the builders that are made of them. Gathers and scatters are each other's gradients. */
#include "graph/ir/op.h"

#include "base/tensor.h"

#include <string.h>

static bool is_index(const stk_type *t) { return t->dtype == STK_I32 || t->dtype == STK_I64; }

static stk_status need_index(stk_infer *c, int32_t i)
{
    if (is_index(c->in[i])) return STK_OK;
    return stk_infer_fail(c, STK_ERR_DTYPE, "input %d holds indices: int32 or int64; cast first",
                          i);
}

static stk_status need_numbers(stk_infer *c, stk_dtype dtype)
{
    if (dtype != STK_STRING) return STK_OK;
    return stk_infer_fail(c, STK_ERR_DTYPE, "strings do not enter kernels; look them up first");
}

static int64_t product(const int64_t *dim, int32_t from, int32_t to)
{
    int64_t n = 1;
    for (int32_t i = from; i < to; i++) n *= dim[i];
    return n;
}

/* ---- gather: attributes axis, batch ----------------------------------------------------------------
 *
 *     x [B.., outer.., n, inner..], indices [B.., I..]  ->  [B.., outer.., I.., inner..]
 *
 * with `batch` axes B and n the size of `axis`. */

/* The shape above, or a failure. */
static stk_status gathered_shape(stk_infer *c, const stk_shape *x, const stk_shape *index,
                                 int64_t axis, int64_t batch, stk_shape *out)
{
    if (axis < 0 || axis >= x->rank)
        return stk_infer_fail(c, STK_ERR_RANGE, "axis %lld is outside %s", (long long)axis,
                              STK_SHAPE_TEXT(x));
    if (batch < 0 || batch > axis || batch > index->rank)
        return stk_infer_fail(c, STK_ERR_RANGE,
                              "%lld batch axes; 0 to %d fit axis %lld and indices %s",
                              (long long)batch, axis < index->rank ? (int)axis : index->rank,
                              (long long)axis, STK_SHAPE_TEXT(index));
    for (int64_t i = 0; i < batch; i++)
        if (x->dim[i] != index->dim[i])
            return stk_infer_fail(c, STK_ERR_SHAPE,
                                  "batch axis %lld has sizes %lld and %lld; they must agree",
                                  (long long)i, (long long)x->dim[i], (long long)index->dim[i]);
    if (x->rank - 1 + index->rank - batch > STK_MAX_RANK)
        return stk_infer_fail(c, STK_ERR_SHAPE, "the result would have more than %d axes",
                              STK_MAX_RANK);
    out->rank = 0;
    for (int64_t i = 0; i < axis; i++) out->dim[out->rank++] = x->dim[i];
    for (int64_t i = batch; i < index->rank; i++) out->dim[out->rank++] = index->dim[i];
    for (int64_t i = axis + 1; i < x->rank; i++) out->dim[out->rank++] = x->dim[i];
    return STK_OK;
}

static stk_status infer_gather(stk_infer *c)
{
    if (c->node->nints != 2 && c->node->nints != 3)
        return stk_infer_fail(c, STK_ERR_ARGUMENT, "needs axis and batch");
    STK_TRY(need_index(c, 1));
    STK_TRY(need_numbers(c, c->in[0]->dtype));
    c->out->dtype = c->in[0]->dtype;
    return gathered_shape(c, &c->in[0]->shape, &c->in[1]->shape, c->node->ints[0], c->node->ints[1],
                          &c->out->shape);
}

static stk_val scatter(stk_graph *g, int64_t mode, stk_val indices, stk_val updates, stk_val base,
                       int64_t axis, int64_t batch, const stk_shape *shape)
{
    int64_t ints[3 + STK_MAX_RANK] = {mode, axis, batch};
    for (int32_t i = 0; i < shape->rank; i++) ints[3 + i] = shape->dim[i];
    return stk_g_apply(g, STK_OP_SCATTER, base ? 3 : 2, (stk_val[]){indices, updates, base},
                       &(stk_attrs){.ints = ints, .nints = 3 + shape->rank});
}

static void grad_gather(stk_grad *c)
{
    stk_shape shape = stk_type_of(c->g, c->node.in[0])->shape;
    c->din[0] = scatter(c->g, STK_SCATTER_ADD, c->node.in[1], c->dout[0], 0, c->node.ints[0],
                        c->node.ints[1], &shape);
}

static void fill_gather(stk_gather_params *p, const stk_shape *x, const stk_type *index,
                        stk_dtype dtype, int64_t axis, int64_t batch)
{
    p->batch = product(x->dim, 0, (int32_t)batch);
    p->outer = product(x->dim, (int32_t)batch, (int32_t)axis);
    p->n = x->dim[axis];
    p->count = product(index->shape.dim, (int32_t)batch, index->shape.rank);
    p->inner = product(x->dim, (int32_t)axis + 1, x->rank);
    p->dtype = dtype;
    p->index = index->dtype;
}

/* Attribute i, which may be missing: an index out of range is no mistake. */
static bool is_lax(const stk_node *n, int32_t i) { return n->nints > i && n->ints[i]; }

static stk_status lower_gather(stk_lower *l)
{
    const stk_type *x = stk_type_of(l->g, l->node->in[0]);
    stk_gather_params *p = stk_lower_params(l, STK_K_GATHER, sizeof *p);
    if (!p) return STK_ERR_MEMORY;
    fill_gather(p, &x->shape, stk_type_of(l->g, l->node->in[1]), x->dtype, l->node->ints[0],
                l->node->ints[1]);
    return is_lax(l->node, 2) ? STK_OK : stk_lower_check(l, "gather", 1, 0, &p->n);
}
const stk_opdef stk_opdef_gather = {
    .infer = infer_gather, .grad = grad_gather, .lower = lower_gather};

/* ---- scatter: attributes mode, axis, batch, shape...; inputs indices, updates, [base] -------------------
 * Updates have the shape that a gather of `shape` with these indices would give. */

static stk_status infer_scatter(stk_infer *c)
{
    const stk_node *n = c->node;
    stk_shape shape = {.rank = n->nints - 3}, want;
    if (shape.rank < 1 || shape.rank > STK_MAX_RANK || n->ints[0] < STK_SCATTER_ADD ||
        n->ints[0] > STK_SCATTER_SET)
        return stk_infer_fail(c, STK_ERR_ARGUMENT,
                              "needs mode 0 or 1, axis, batch and a shape of rank 1 to %d",
                              STK_MAX_RANK);
    STK_TRY(need_index(c, 0));
    STK_TRY(need_numbers(c, c->in[1]->dtype));
    for (int32_t i = 0; i < shape.rank; i++) shape.dim[i] = n->ints[3 + i];
    STK_TRY(
        stk_shape_check("scatter", shape.rank, shape.dim, stk_dtype_size(c->in[1]->dtype), c->err));
    STK_TRY(gathered_shape(c, &shape, &c->in[0]->shape, n->ints[1], n->ints[2], &want));
    if (!stk_shape_equal(&want, &c->in[1]->shape))
        return stk_infer_fail(c, STK_ERR_SHAPE, "into %s these indices place updates of %s",
                              STK_SHAPE_TEXT(&shape), STK_SHAPE_TEXT(&want));
    *c->out = (stk_type){c->in[1]->dtype, shape};
    if (c->out->dtype == STK_BOOL && n->ints[0] == STK_SCATTER_ADD)
        return stk_infer_fail(c, STK_ERR_DTYPE,
                              "booleans do not add up; cast to int32, or set instead of add");
    if (n->nin == 3 && !stk_type_equal(c->in[2], c->out))
        return stk_infer_fail(c, STK_ERR_SHAPE, "the base must be %s", STK_TYPE_TEXT(c->out));
    return STK_OK;
}

/* Where one place is set twice the last update stays, yet each of them gets the gradient: which one wins is not
 * known before the run. */
static void grad_scatter(stk_grad *c)
{
    stk_graph *g = c->g;
    const stk_node *n = &c->node;
    stk_shape shape = stk_type_of(g, n->out)->shape;
    c->din[1] = stk_g_apply(g, STK_OP_GATHER, 2, (stk_val[]){c->dout[0], n->in[0]},
                            &(stk_attrs){.ints = (int64_t[]){n->ints[1], n->ints[2], true},
                                         .nints = 3}); /* what was left out gets nothing */
    if (n->nin < 3) return;
    if (n->ints[0] == STK_SCATTER_ADD)
        c->din[2] = c->dout[0];
    else
        c->din[2] = scatter(g, STK_SCATTER_SET, n->in[0], stk_g_zeros_like(g, n->in[1]), c->dout[0],
                            n->ints[1], n->ints[2], &shape);
}

static stk_status lower_scatter(stk_lower *l)
{
    const stk_node *n = l->node;
    const stk_type *out = stk_type_of(l->g, n->out);
    stk_scatter_params *p = stk_lower_params(l, STK_K_SCATTER, sizeof *p);
    if (!p) return STK_ERR_MEMORY;
    fill_gather(&p->at, &out->shape, stk_type_of(l->g, n->in[0]), out->dtype, n->ints[1],
                n->ints[2]);
    p->mode = (int32_t)n->ints[0];
    p->base = n->nin == 3;
    return STK_OK;
}

static double cost_scatter(const stk_graph *g, const stk_node *n)
{
    return (double)stk_shape_count(&stk_type_of(g, n->in[1])->shape);
}
const stk_opdef stk_opdef_scatter = {.flags = STK_OPF_WIDEN,
                                     .infer = infer_scatter,
                                     .grad = grad_scatter,
                                     .lower = lower_scatter,
                                     .cost = cost_scatter};

/* ---- take_along (axis) and put_along (axis, size) -------------------------------------------------------- */

static stk_status infer_take_along(stk_infer *c)
{
    int64_t axis = c->node->nints == 1 || c->node->nints == 2 ? c->node->ints[0] : -1;
    const stk_shape *x = &c->in[0]->shape, *index = &c->in[1]->shape;
    STK_TRY(need_index(c, 1));
    STK_TRY(need_numbers(c, c->in[0]->dtype));
    if (axis < 0 || axis >= x->rank)
        return stk_infer_fail(c, STK_ERR_RANGE, "axis %lld; 0 to %d is possible", (long long)axis,
                              x->rank - 1);
    stk_shape same = *index;
    if (same.rank == x->rank) same.dim[axis] = x->dim[axis];
    if (!stk_shape_equal(&same, x))
        return stk_infer_fail(c, STK_ERR_SHAPE,
                              "indices need the shape of the input but on axis %lld",
                              (long long)axis);
    *c->out = (stk_type){c->in[0]->dtype, *index};
    return STK_OK;
}

static stk_val put_along(stk_graph *g, stk_val indices, stk_val updates, int64_t axis, int64_t size)
{
    return stk_g_apply(g, STK_OP_PUT_ALONG, 2, (stk_val[]){indices, updates},
                       &(stk_attrs){.ints = (int64_t[]){axis, size}, .nints = 2});
}

/* Zeros where put_along left an update out. */
static stk_val take_along(stk_graph *g, stk_val x, stk_val indices, int64_t axis)
{
    return stk_g_apply(g, STK_OP_TAKE_ALONG, 2, (stk_val[]){x, indices},
                       &(stk_attrs){.ints = (int64_t[]){axis, true}, .nints = 2});
}

static void grad_take_along(stk_grad *c)
{
    int64_t axis = c->node.ints[0];
    c->din[0] = put_along(c->g, c->node.in[1], c->dout[0], axis,
                          stk_g_dim(c->g, c->node.in[0], (int32_t)axis));
}

/* large: the tensor with n on the axis; small: the one with an index for each element. */
static stk_status lower_along(stk_lower *l, stk_kernel kernel, stk_val large, stk_val small,
                              stk_val index)
{
    const stk_type *x = stk_type_of(l->g, large);
    int32_t axis = (int32_t)l->node->ints[0];
    stk_along_params *p = stk_lower_params(l, kernel, sizeof *p);
    if (!p) return STK_ERR_MEMORY;
    p->outer = product(x->shape.dim, 0, axis);
    p->n = x->shape.dim[axis];
    p->count = stk_type_of(l->g, small)->shape.dim[axis];
    p->inner = product(x->shape.dim, axis + 1, x->shape.rank);
    p->dtype = x->dtype;
    p->index = stk_type_of(l->g, index)->dtype;
    return STK_OK;
}

static stk_status lower_take_along(stk_lower *l)
{
    STK_TRY(lower_along(l, STK_K_TAKE_ALONG, l->node->in[0], l->node->in[1], l->node->in[1]));
    const stk_along_params *p = l->params;
    return is_lax(l->node, 1) ? STK_OK : stk_lower_check(l, "take_along", 1, 0, &p->n);
}
const stk_opdef stk_opdef_take_along = {
    .infer = infer_take_along, .grad = grad_take_along, .lower = lower_take_along};

static stk_status infer_put_along(stk_infer *c)
{
    int64_t axis = c->node->nints == 2 ? c->node->ints[0] : -1;
    STK_TRY(need_index(c, 0));
    STK_TRY(need_numbers(c, c->in[1]->dtype));
    if (axis < 0 || axis >= c->in[1]->shape.rank || c->node->ints[1] < 0)
        return stk_infer_fail(c, STK_ERR_RANGE, "needs an axis of 0 to %d and a size",
                              c->in[1]->shape.rank - 1);
    if (!stk_shape_equal(&c->in[0]->shape, &c->in[1]->shape))
        return stk_infer_fail(c, STK_ERR_SHAPE, "needs one index for each update");
    if (c->in[1]->dtype == STK_BOOL)
        return stk_infer_fail(c, STK_ERR_DTYPE, "booleans do not add up; cast to int32 first");
    *c->out = *c->in[1];
    c->out->shape.dim[axis] = c->node->ints[1];
    return STK_OK;
}

static void grad_put_along(stk_grad *c)
{
    c->din[1] = take_along(c->g, c->dout[0], c->node.in[0], c->node.ints[0]);
}

static stk_status lower_put_along(stk_lower *l)
{
    return lower_along(l, STK_K_PUT_ALONG, l->node->out, l->node->in[1], l->node->in[0]);
}
const stk_opdef stk_opdef_put_along = {.flags = STK_OPF_WIDEN,
                                       .infer = infer_put_along,
                                       .grad = grad_put_along,
                                       .lower = lower_put_along};

/* ---- ravel_index: attributes lax, batch, dims... ---------------------------------------------------------------- */

static stk_status infer_ravel_index(stk_infer *c)
{
    const stk_node *n = c->node;
    const stk_shape *s = &c->in[0]->shape;
    int32_t depth = n->nints - 2;
    STK_TRY(need_index(c, 0));
    if (depth < 0 || depth > STK_MAX_RANK || s->rank < 1 || s->dim[s->rank - 1] != depth ||
        n->ints[1] < 0 || n->ints[1] >= s->rank)
        return stk_infer_fail(
            c, STK_ERR_SHAPE,
            "the last axis holds %d coordinates, the axes in front of it %lld batches", depth,
            (long long)(n->nints > 1 ? n->ints[1] : -1));
    STK_TRY(stk_shape_check("ravel_index", depth, n->ints + 2, 8, c->err));
    *c->out = (stk_type){STK_I64, *s};
    c->out->shape.rank--;
    c->out->shape.dim[c->out->shape.rank] = 0;
    int64_t all = product(s->dim, 0, (int32_t)n->ints[1]);
    for (int32_t i = 0; i < depth; i++)
        if (!stk_mul_i64(all, n->ints[2 + i], &all))
            return stk_infer_fail(c, STK_ERR_RANGE, "positions would pass 2^63");
    return STK_OK;
}

static stk_status lower_ravel_index(stk_lower *l)
{
    const stk_node *n = l->node;
    const stk_type *x = stk_type_of(l->g, n->in[0]);
    stk_ravel_params *p = stk_lower_params(l, STK_K_RAVEL_INDEX, sizeof *p);
    if (!p) return STK_ERR_MEMORY;
    p->batch = product(x->shape.dim, 0, (int32_t)n->ints[1]);
    p->count = product(x->shape.dim, (int32_t)n->ints[1], x->shape.rank - 1);
    p->depth = n->nints - 2;
    p->index = x->dtype;
    for (int64_t i = 0; i < p->depth; i++) p->dim[i] = n->ints[2 + i];
    return is_lax(n, 0) || !p->depth
               ? STK_OK
               : stk_lower_check(l, "gather_nd", 0, (int32_t)p->depth, p->dim);
}
const stk_opdef stk_opdef_ravel_index = {
    .flags = STK_OPF_NO_GRAD, .infer = infer_ravel_index, .lower = lower_ravel_index};

/* ---- one_hot: attributes dtype, axis, depth; on, off ---------------------------------------------------------- */

static stk_status infer_one_hot(stk_infer *c)
{
    const stk_node *n = c->node;
    stk_shape s = c->in[0]->shape;
    STK_TRY(need_index(c, 0));
    if (n->nints != 3 || n->nreals != 2 || !stk_dtype_valid((stk_dtype)n->ints[0]) ||
        n->ints[0] == STK_STRING)
        return stk_infer_fail(c, STK_ERR_ARGUMENT, "needs a number type, axis, depth, on and off");
    if (n->ints[1] < 0 || n->ints[1] > s.rank || n->ints[2] < 0 || s.rank == STK_MAX_RANK)
        return stk_infer_fail(
            c, STK_ERR_RANGE, "axis %lld (0 to %d), depth %lld (>= 0), rank %d (below %d)",
            (long long)n->ints[1], s.rank, (long long)n->ints[2], s.rank, STK_MAX_RANK);
    memmove(s.dim + n->ints[1] + 1, s.dim + n->ints[1],
            (size_t)(s.rank - n->ints[1]) * sizeof s.dim[0]);
    s.dim[n->ints[1]] = n->ints[2];
    s.rank++;
    *c->out = (stk_type){(stk_dtype)n->ints[0], s};
    return STK_OK;
}

static stk_status lower_one_hot(stk_lower *l)
{
    const stk_node *n = l->node;
    const stk_type *x = stk_type_of(l->g, n->in[0]), *out = stk_type_of(l->g, n->out);
    stk_one_hot_params *p = stk_lower_params(l, STK_K_ONE_HOT, sizeof *p);
    if (!p) return STK_ERR_MEMORY;
    p->outer = product(x->shape.dim, 0, (int32_t)n->ints[1]);
    p->inner = product(x->shape.dim, (int32_t)n->ints[1], x->shape.rank);
    p->depth = n->ints[2];
    p->item = stk_dtype_size(out->dtype);
    p->index = x->dtype;
    stk_store_f64(out->dtype, p->on, n->reals[0]);
    stk_store_f64(out->dtype, p->off, n->reals[1]);
    return STK_OK;
}

stk_val stk_g_one_hot(stk_graph *g, stk_val indices, int64_t depth, int32_t axis, stk_dtype dtype,
                      double on, double off)
{
    int32_t rank = stk_g_rank(g, indices);
    int64_t ints[] = {dtype, axis < 0 ? axis + rank + 1 : axis, depth};
    return stk_g_apply(
        g, STK_OP_ONE_HOT, 1, &indices,
        &(stk_attrs){.ints = ints, .nints = 3, .reals = (double[]){on, off}, .nreals = 2});
}
const stk_opdef stk_opdef_one_hot = {
    .flags = STK_OPF_NO_GRAD, .infer = infer_one_hot, .lower = lower_one_hot};

/* ---- sort: attributes axis, descending, k; outputs values and places ------------------------------------------- */

static stk_status infer_sort(stk_infer *c)
{
    const stk_node *n = c->node;
    const stk_type *x = c->in[0];
    int64_t axis = n->nints == 3 ? n->ints[0] : -1;
    STK_TRY(need_numbers(c, x->dtype));
    if (axis < 0 || axis >= x->shape.rank)
        return stk_infer_fail(c, STK_ERR_RANGE, "axis %lld; 0 to %d is possible", (long long)axis,
                              x->shape.rank - 1);
    int64_t have = x->shape.dim[axis];
    if (n->ints[2] < 0 || n->ints[2] > have || have > INT32_MAX)
        return stk_infer_fail(
            c, STK_ERR_RANGE,
            "the first %lld of %lld along axis %lld; 0 to %lld of at most 2^31 fit",
            (long long)n->ints[2], (long long)have, (long long)axis, (long long)have);
    c->out[0] = *x;
    c->out[0].shape.dim[axis] = n->ints[2];
    c->out[1] = c->out[0];
    c->out[1].dtype = STK_I64;
    return STK_OK;
}

static void grad_sort(stk_grad *c)
{
    int64_t axis = c->node.ints[0];
    if (c->dout[0])
        c->din[0] = put_along(c->g, c->node.out + 1, c->dout[0], axis,
                              stk_g_dim(c->g, c->node.in[0], (int32_t)axis));
}

static stk_status lower_sort(stk_lower *l)
{
    const stk_node *n = l->node;
    const stk_type *x = stk_type_of(l->g, n->in[0]);
    int32_t axis = (int32_t)n->ints[0];
    stk_sort_params *p = stk_lower_params(l, STK_K_SORT, sizeof *p);
    if (!p) return STK_ERR_MEMORY;
    p->outer = product(x->shape.dim, 0, axis);
    p->n = x->shape.dim[axis];
    p->inner = product(x->shape.dim, axis + 1, x->shape.rank);
    p->k = n->ints[2];
    p->dtype = x->dtype;
    p->descending = n->ints[1] != 0;
    return STK_OK;
}

/* About n log2 n comparisons a line. */
static double cost_sort(const stk_graph *g, const stk_node *n)
{
    const stk_shape *s = &stk_type_of(g, n->in[0])->shape;
    double steps = 1;
    for (int64_t left = s->dim[n->ints[0]]; left > 1; left /= 2) steps++;
    return (double)stk_shape_count(s) * steps;
}
const stk_opdef stk_opdef_sort = {
    .infer = infer_sort, .grad = grad_sort, .lower = lower_sort, .cost = cost_sort};

static stk_val sort(stk_graph *g, const char *who, stk_val x, int32_t axis, bool descending,
                    int64_t k)
{
    if (!stk_graph_ok(g)) return 0;
    axis = stk_g_axis(g, who, x, axis);
    if (axis < 0) return 0;
    int64_t ints[] = {axis, descending, k < 0 ? stk_g_dim(g, x, axis) : k};
    return stk_g_apply(g, STK_OP_SORT, 1, &x, &(stk_attrs){.ints = ints, .nints = 3});
}

stk_val stk_g_sort(stk_graph *g, stk_val x, int32_t axis, bool descending)
{
    return sort(g, "sort", x, axis, descending, -1);
}

stk_val stk_g_argsort(stk_graph *g, stk_val x, int32_t axis, bool descending)
{
    stk_val values = sort(g, "argsort", x, axis, descending, -1);
    return values ? values + 1 : 0;
}

stk_val stk_g_top_k(stk_graph *g, stk_val x, int64_t k, int32_t axis, stk_val *indices)
{
    if (indices) *indices = 0;
    if (k < 0) return stk_g_fail(g, STK_ERR_RANGE, "top_k: k is %lld; needs >= 0", (long long)k);
    stk_val values = sort(g, "top_k", x, axis, true, k);
    if (indices && values) *indices = values + 1;
    return values;
}
