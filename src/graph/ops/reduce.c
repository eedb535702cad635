/* Reductions: one op with a kind (reductions.def); mean, logsumexp and sum_to are built from it.
 *
 * Attributes: kind, keep, axes... (sorted, each once). The kernel reduces the middle of [outer, n, inner]; a
 * set of axes that is not one block is brought there by a transpose when the graph is built. */
#include "graph/ir/op.h"

#include <string.h>

static stk_status infer_reduce(stk_infer *c)
{
    const stk_node *n = c->node;
    const stk_type *x = c->in[0];
    int64_t kind = n->nints >= 2 ? n->ints[0] : -1;
    if (kind < 0 || kind >= STK_REDUCE_COUNT)
        return stk_infer_fail(c, STK_ERR_ARGUMENT, "no such reduction");
    bool logic = kind == STK_REDUCE_ANY || kind == STK_REDUCE_ALL;
    bool arg = kind == STK_REDUCE_ARGMAX || kind == STK_REDUCE_ARGMIN;
    if (logic != (x->dtype == STK_BOOL) || x->dtype == STK_STRING)
        return stk_infer_fail(c, STK_ERR_DTYPE, "%s",
                              logic ? "any and all need bool; compare first"
                                    : "needs numbers; cast to float32 or int32 first");
    uint32_t reduced = 0;
    int64_t count = 1;
    for (int32_t i = 2; i < n->nints; i++) {
        int64_t axis = n->ints[i];
        if (axis < 0 || axis >= x->shape.rank || reduced >> axis & 1u)
            return stk_infer_fail(c, STK_ERR_RANGE, "axis %lld is outside or twice",
                                  (long long)axis);
        reduced |= 1u << axis;
        count *= x->shape.dim[axis];
    }
    if (count == 0 && (arg || kind == STK_REDUCE_MAX || kind == STK_REDUCE_MIN))
        return stk_infer_fail(c, STK_ERR_SHAPE,
                              "nothing to choose from: a reduced axis has size 0");
    *c->out = (stk_type){.dtype = arg ? STK_I64 : x->dtype};
    for (int32_t i = 0; i < x->shape.rank; i++) {
        bool gone = reduced >> i & 1u;
        if (gone && !n->ints[1]) continue;
        c->out->shape.dim[c->out->shape.rank++] = gone ? 1 : x->shape.dim[i];
    }
    return STK_OK;
}

/* The result shape with the reduced axes kept as 1, so that it broadcasts against x. */
static stk_val keep_axes(stk_graph *g, const stk_node *n, stk_val v)
{
    stk_shape s = stk_type_of(g, n->in[0])->shape;
    for (int32_t i = 2; i < n->nints; i++) s.dim[n->ints[i]] = 1;
    return stk_g_reshape(g, v, s.rank, s.dim);
}

static void grad_reduce(stk_grad *c)
{
    stk_graph *g = c->g;
    const stk_node *n = &c->node;
    stk_val x = n->in[0], dy = keep_axes(g, n, c->dout[0]), y = keep_axes(g, n, n->out);
    stk_type t = *stk_type_of(g, x);
    switch ((stk_reduce_kind)n->ints[0]) {
    case STK_REDUCE_SUM: c->din[0] = stk_g_broadcast(g, dy, t.shape.rank, t.shape.dim); break;
    case STK_REDUCE_PROD: c->din[0] = stk_g_div(g, stk_g_mul(g, dy, y), x); break;
    case STK_REDUCE_MAX:
    case STK_REDUCE_MIN: { /* ties share the gradient */
        int64_t ints[2 + STK_MAX_RANK];
        memcpy(ints, n->ints, (size_t)n->nints * sizeof *ints);
        ints[0] = STK_REDUCE_SUM;
        stk_val hit = stk_g_cast(g, stk_g_eq(g, x, y), t.dtype);
        stk_val hits =
            stk_g_apply(g, STK_OP_REDUCE, 1, &hit, &(stk_attrs){.ints = ints, .nints = n->nints});
        hits = keep_axes(g, n, hits);
        c->din[0] = stk_g_mul(g, hit, stk_g_div(g, dy, hits));
        break;
    }
    default: break; /* any, all, argmax, argmin: flat */
    }
}

static stk_status lower_reduce(stk_lower *l)
{
    const stk_node *n = l->node;
    const stk_type *x = stk_type_of(l->g, n->in[0]);
    stk_reduce_params *p = stk_lower_params(l, STK_K_REDUCE, sizeof *p);
    if (!p) return STK_ERR_MEMORY;
    int32_t first = n->nints > 2 ? (int32_t)n->ints[2] : 0, last = first + n->nints - 3;
    p->outer = p->n = p->inner = 1;
    for (int32_t i = 0; i < x->shape.rank; i++) {
        int64_t *part = i < first ? &p->outer : i <= last ? &p->n : &p->inner;
        *part *= x->shape.dim[i];
    }
    p->kind = (int32_t)n->ints[0];
    p->dtype = x->dtype;
    return STK_OK;
}

static double cost_reduce(const stk_graph *g, const stk_node *n)
{
    return (double)stk_shape_count(&stk_type_of(g, n->in[0])->shape);
}

const stk_opdef stk_opdef_reduce = {
    .infer = infer_reduce, .grad = grad_reduce, .lower = lower_reduce, .cost = cost_reduce};

/* ---- builders ------------------------------------------------------------------------------------------ */

/* Moves the reduced axes to the end when they are not one block. mask: bit per axis. */
static stk_val gather_axes(stk_graph *g, stk_val x, uint32_t *mask)
{
    int32_t rank = stk_g_rank(g, x), perm[STK_MAX_RANK], n = 0, first = -1, last = -1, count = 0;
    for (int32_t i = 0; i < rank; i++)
        if (*mask >> i & 1u) {
            if (first < 0) first = i;
            last = i;
            count++;
        }
    if (!count || last - first + 1 == count) return x;
    for (int32_t i = 0; i < rank; i++)
        if (!(*mask >> i & 1u)) perm[n++] = i;
    for (int32_t i = 0; i < rank; i++)
        if (*mask >> i & 1u) perm[n++] = i;
    *mask = ((1u << count) - 1u) << (rank - count);
    return stk_g_transpose(g, x, perm);
}

static stk_val reduce(stk_graph *g, const char *who, stk_reduce_kind kind, stk_val x, int32_t n,
                      const int32_t *axes, bool keep)
{
    if (!stk_graph_ok(g)) return 0;
    if (!stk_val_ok(g, x) || n < 0 || n > STK_MAX_RANK || (n && !axes))
        return stk_g_fail(g, STK_ERR_ARGUMENT, "%s: input %d or its axes are not usable", who, x);
    stk_shape s = stk_type_of(g, x)->shape;
    uint32_t mask = n ? 0 : (1u << s.rank) - 1u;
    for (int32_t i = 0; i < n; i++) {
        int32_t axis = stk_g_axis(g, who, x, axes[i]);
        if (axis < 0) return 0;
        mask |= 1u << axis;
    }
    stk_shape kept = s;
    for (int32_t i = 0; i < s.rank; i++)
        if (mask >> i & 1u) kept.dim[i] = 1;
    uint32_t moved = mask;
    stk_val t = gather_axes(g, x, &moved);
    bool reshape_after = keep && t != x;
    int64_t ints[2 + STK_MAX_RANK] = {kind, keep && !reshape_after};
    int32_t nints = 2;
    for (int32_t i = 0; i < s.rank; i++)
        if (moved >> i & 1u) ints[nints++] = i;
    stk_val y = stk_g_apply(g, STK_OP_REDUCE, 1, &t, &(stk_attrs){.ints = ints, .nints = nints});
    return reshape_after ? stk_g_reshape(g, y, kept.rank, kept.dim) : y;
}

#define REDUCTION(name, KIND)                                                                      \
    stk_val stk_g_##name(stk_graph *g, stk_val x, int32_t n, const int32_t *axes, bool keep)       \
    {                                                                                              \
        return reduce(g, #name, STK_REDUCE_##KIND, x, n, axes, keep);                              \
    }
REDUCTION(sum, SUM)
REDUCTION(reduce_prod, PROD)
REDUCTION(reduce_max, MAX)
REDUCTION(reduce_min, MIN)
REDUCTION(any, ANY)
REDUCTION(all, ALL)

stk_val stk_g_argmax(stk_graph *g, stk_val x, int32_t axis)
{
    return reduce(g, "argmax", STK_REDUCE_ARGMAX, x, 1, &axis, false);
}
stk_val stk_g_argmin(stk_graph *g, stk_val x, int32_t axis)
{
    return reduce(g, "argmin", STK_REDUCE_ARGMIN, x, 1, &axis, false);
}
stk_val stk_g_sum_all(stk_graph *g, stk_val x) { return stk_g_sum(g, x, 0, NULL, false); }
stk_val stk_g_mean_all(stk_graph *g, stk_val x) { return stk_g_mean(g, x, 0, NULL, false); }

stk_val stk_g_mean(stk_graph *g, stk_val x, int32_t n, const int32_t *axes, bool keep)
{
    stk_val sum = stk_g_sum(g, x, n, axes, keep);
    if (!sum) return 0;
    int64_t all = stk_shape_count(&stk_type_of(g, x)->shape),
            left = stk_shape_count(&stk_type_of(g, sum)->shape);
    double count = left ? (double)all / (double)left : 1;
    return stk_g_mul(g, sum, stk_g_scalar(g, stk_g_dtype(g, x), 1.0 / count));
}

stk_val stk_g_logsumexp(stk_graph *g, stk_val x, int32_t axis, bool keep)
{
    /* Shifted by the maximum, which carries no gradient: the shift cancels. */
    stk_val top = stk_g_reduce_max(g, x, 1, &axis, true);
    stk_val sum = stk_g_sum(g, stk_g_exp(g, stk_g_sub(g, x, top)), 1, &axis, true);
    stk_val y = stk_g_add(g, stk_g_log(g, sum), top);
    return keep ? y : stk_g_squeeze(g, y, axis);
}

stk_val stk_g_sum_to(stk_graph *g, stk_val x, const stk_shape *shape)
{
    if (!stk_graph_ok(g) || !stk_val_ok(g, x)) return 0;
    stk_shape have = stk_type_of(g, x)->shape;
    int32_t lead = have.rank - shape->rank, axes[STK_MAX_RANK], n = 0;
    for (int32_t i = 0; i < have.rank; i++)
        if (i < lead || (shape->dim[i - lead] == 1 && have.dim[i] != 1)) axes[n++] = i;
    if (n) x = stk_g_sum(g, x, n, axes, false);
    if (!stk_graph_ok(g)) return 0;
    return stk_shape_equal(&stk_type_of(g, x)->shape, shape)
               ? x
               : stk_g_reshape(g, x, shape->rank, shape->dim);
}
