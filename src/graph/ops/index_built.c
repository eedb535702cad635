/* Builders over the operations of index.c: they check constants, fit axes and flatten coordinates. */
#include "graph/ir/op.h"

#include "base/tensor.h"

/* Constant indices are known now: negative ones are counted from the end, impossible ones are a mistake of the
 * builder. Element i is a coordinate of dim[i % depth]. Other indices pass as they are. */
static stk_val settle(stk_graph *g, const char *who, stk_val indices, int64_t depth,
                      const int64_t *dim)
{
    if (!stk_graph_ok(g) || !stk_val_ok(g, indices)) return indices;
    const stk_tensor *t = stk_node_of(g, indices)->tensor;
    if (stk_node_of(g, indices)->op != STK_OP_CONST ||
        (t->dtype != STK_I32 && t->dtype != STK_I64) || depth < 1)
        return indices;
    bool negative = false;
    int64_t count = stk_tensor_count(t);
    for (int64_t i = 0; i < count; i++) {
        int64_t v = stk_load_i64(t->dtype, stk_tensor_address(t, i)), n = dim[i % depth];
        if (v < -n || v >= n)
            return stk_g_fail(
                g, STK_ERR_RANGE,
                "%s: constant index %lld (element %lld of %s) is outside; %lld to %lld fit", who,
                (long long)v, (long long)i, STK_TENSOR_TEXT(t), (long long)-n, (long long)n - 1);
        negative |= v < 0;
    }
    if (!negative) return indices;
    stk_tensor *fixed = NULL;
    stk_error err;
    stk_status status = stk_tensor_new(t->dtype, t->rank, t->shape, &fixed, &err);
    if (status != STK_OK) return stk_g_fail(g, status, "%s", err.message);
    for (int64_t i = 0; i < count; i++) {
        int64_t v = stk_load_i64(t->dtype, stk_tensor_address(t, i));
        stk_store_i64(t->dtype, stk_tensor_address(fixed, i), v < 0 ? v + dim[i % depth] : v);
    }
    stk_val settled = stk_g_const(g, fixed);
    stk_tensor_release(fixed);
    return settled;
}

/* ---- slices ------------------------------------------------------------------------------------------- */

static stk_val gather(stk_graph *g, stk_val x, stk_val indices, int32_t axis, int32_t batch,
                      bool lax)
{
    if (!stk_graph_ok(g)) return 0;
    axis = stk_g_axis(g, "gather", x, axis);
    if (axis < 0) return 0;
    int64_t n = stk_g_dim(g, x, axis);
    indices = settle(g, "gather", indices, 1, &n);
    return stk_g_apply(g, STK_OP_GATHER, 2, (stk_val[]){x, indices},
                       &(stk_attrs){.ints = (int64_t[]){axis, batch, lax}, .nints = 3});
}

stk_val stk_g_gather_batch(stk_graph *g, stk_val x, stk_val indices, int32_t axis, int32_t batch)
{
    return gather(g, x, indices, axis, batch, false);
}

stk_val stk_g_gather(stk_graph *g, stk_val x, stk_val indices, int32_t axis)
{
    return gather(g, x, indices, axis, 0, false);
}

static stk_val scatter(stk_graph *g, const char *who, stk_scatter_mode mode, stk_val base,
                       stk_val indices, stk_val updates, int32_t axis)
{
    if (!stk_graph_ok(g)) return 0;
    axis = stk_g_axis(g, who, base, axis);
    if (axis < 0) return 0;
    stk_shape s = stk_type_of(g, base)->shape;
    int64_t ints[3 + STK_MAX_RANK] = {mode, axis, 0};
    double value;
    for (int32_t i = 0; i < s.rank; i++) ints[3 + i] = s.dim[i];
    indices = settle(g, who, indices, 1, &s.dim[axis]);
    /* Zeros need not be read. */
    int32_t nin = stk_g_splat(g, base, &value) && value == 0 && stk_val_ok(g, updates) &&
                          stk_g_dtype(g, base) == stk_g_dtype(g, updates)
                      ? 2
                      : 3;
    return stk_g_apply(g, STK_OP_SCATTER, nin, (stk_val[]){indices, updates, base},
                       &(stk_attrs){.ints = ints, .nints = 3 + s.rank});
}

stk_val stk_g_scatter_add(stk_graph *g, stk_val base, stk_val indices, stk_val updates,
                          int32_t axis)
{
    return scatter(g, "scatter_add", STK_SCATTER_ADD, base, indices, updates, axis);
}

stk_val stk_g_scatter_set(stk_graph *g, stk_val base, stk_val indices, stk_val updates,
                          int32_t axis)
{
    return scatter(g, "scatter_set", STK_SCATTER_SET, base, indices, updates, axis);
}

stk_val stk_g_segment_sum(stk_graph *g, stk_val x, stk_val ids, int64_t segments)
{
    if (!stk_graph_ok(g) || !stk_val_ok(g, x) || !stk_val_ok(g, ids))
        return stk_g_fail(g, STK_ERR_ARGUMENT, "segment_sum: an input is 0 (none)");
    stk_type t = *stk_type_of(g, x);
    stk_shape s = {.rank = 1, .dim = {segments}};
    for (int32_t i = stk_g_rank(g, ids); i < t.shape.rank; i++) s.dim[s.rank++] = t.shape.dim[i];
    return stk_g_scatter_add(g, stk_g_fill(g, t.dtype, s.rank, s.dim, 0), ids, x, 0);
}

/* ---- coordinates ---------------------------------------------------------------------------------------- */

/* Positions of the coordinates along axes batch .. batch+depth-1 of a tensor of shape s, whose batch and
 * coordinate axes are then one. Returns 0 on a mistake. */
static stk_val positions(stk_graph *g, const char *who, const stk_shape *s, stk_val indices,
                         int32_t batch, bool lax, stk_shape *flat)
{
    if (!stk_val_ok(g, indices))
        return stk_g_fail(g, STK_ERR_ARGUMENT, "%s: the indices are 0 (none)", who);
    const stk_type *t = stk_type_of(g, indices);
    int64_t depth = t->shape.rank ? t->shape.dim[t->shape.rank - 1] : -1;
    if (depth < 0 || batch < 0 || batch >= t->shape.rank || depth > s->rank - batch)
        return stk_g_fail(g, STK_ERR_SHAPE,
                          "%s: indices %s hold %lld coordinates for %s after %d batch axes", who,
                          STK_TYPE_TEXT(t), (long long)depth, STK_SHAPE_TEXT(s), batch);
    for (int32_t i = 0; i < batch; i++)
        if (t->shape.dim[i] != s->dim[i])
            return stk_g_fail(g, STK_ERR_SHAPE, "%s: batch axis %d of indices %s does not fit %s",
                              who, i, STK_TYPE_TEXT(t), STK_SHAPE_TEXT(s));
    int64_t ints[2 + STK_MAX_RANK] = {lax, batch};
    *flat = (stk_shape){.rank = 1, .dim = {1}};
    for (int32_t i = 0; i < batch + depth; i++) flat->dim[0] *= s->dim[i];
    for (int64_t i = 0; i < depth; i++) ints[2 + i] = s->dim[batch + i];
    for (int64_t i = batch + depth; i < s->rank; i++) flat->dim[flat->rank++] = s->dim[i];
    indices = settle(g, who, indices, depth, ints + 2);
    return stk_g_apply(g, STK_OP_RAVEL_INDEX, 1, &indices,
                       &(stk_attrs){.ints = ints, .nints = 2 + (int32_t)depth});
}

stk_val stk_g_gather_nd(stk_graph *g, stk_val x, stk_val indices, int32_t batch)
{
    if (!stk_graph_ok(g)) return 0;
    if (!stk_val_ok(g, x))
        return stk_g_fail(g, STK_ERR_ARGUMENT, "gather_nd: the input is 0 (none)");
    stk_shape s = stk_type_of(g, x)->shape, flat;
    stk_val at = positions(g, "gather_nd", &s, indices, batch, false, &flat);
    return at ? gather(g, stk_g_reshape(g, x, flat.rank, flat.dim), at, 0, 0, true) : 0;
}

static stk_val scatter_nd(stk_graph *g, const char *who, stk_scatter_mode mode, stk_val base,
                          stk_val indices, stk_val updates)
{
    if (!stk_graph_ok(g)) return 0;
    if (!stk_val_ok(g, base))
        return stk_g_fail(g, STK_ERR_ARGUMENT, "%s: the base is 0 (none)", who);
    stk_shape s = stk_type_of(g, base)->shape, flat;
    stk_val at = positions(g, who, &s, indices, 0, true, &flat);
    if (!at) return 0;
    stk_val y = scatter(g, who, mode, stk_g_reshape(g, base, flat.rank, flat.dim), at, updates, 0);
    return stk_g_reshape(g, y, s.rank, s.dim);
}

stk_val stk_g_scatter_nd_add(stk_graph *g, stk_val base, stk_val indices, stk_val updates)
{
    return scatter_nd(g, "scatter_nd_add", STK_SCATTER_ADD, base, indices, updates);
}

stk_val stk_g_scatter_nd_set(stk_graph *g, stk_val base, stk_val indices, stk_val updates)
{
    return scatter_nd(g, "scatter_nd_set", STK_SCATTER_SET, base, indices, updates);
}

/* ---- single elements ---------------------------------------------------------------------------------------- */

/* numpy rule: all axes but one broadcast against each other. */
stk_val stk_g_take_along(stk_graph *g, stk_val x, stk_val indices, int32_t axis)
{
    if (!stk_graph_ok(g)) return 0;
    axis = stk_g_axis(g, "take_along", x, axis);
    if (axis < 0 || !stk_val_ok(g, indices))
        return stk_g_fail(g, STK_ERR_ARGUMENT, "take_along: the indices are 0 (none)");
    stk_shape a = stk_type_of(g, x)->shape, b = stk_type_of(g, indices)->shape, both;
    int64_t n = a.dim[axis];
    indices = settle(g, "take_along", indices, 1, &n);
    if (a.rank == b.rank && stk_graph_ok(g)) {
        int64_t count = b.dim[axis];
        a.dim[axis] = b.dim[axis] = 1;
        if (stk_shape_broadcast(&a, &b, &both)) {
            both.dim[axis] = n;
            x = stk_g_broadcast(g, x, both.rank, both.dim);
            both.dim[axis] = count;
            indices = stk_g_broadcast(g, indices, both.rank, both.dim);
        }
    }
    int64_t at = axis;
    return stk_g_apply(g, STK_OP_TAKE_ALONG, 2, (stk_val[]){x, indices},
                       &(stk_attrs){.ints = &at, .nints = 1});
}
