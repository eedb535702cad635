/* Reverse-mode differentiation: walks the nodes backwards and lets each op's rule add the nodes of its
 * gradient to the same graph. */
#include "graph/ir/op.h"

#include <string.h>

/* needed[v]: v depends on one of x. Other values get no gradient work. */
static void mark_needed(const stk_graph *g, int64_t last, int32_t n, const stk_val *x, bool *needed)
{
    for (int32_t i = 0; i < n; i++) needed[x[i]] = true;
    for (int64_t k = 0; k <= last; k++) {
        const stk_node *node = &g->nodes[k];
        bool depends = false;
        for (int32_t i = 0; i < node->nin; i++) depends |= needed[node->in[i]];
        for (int32_t o = 0; depends && o < node->nout; o++) needed[node->out + o] = true;
    }
}

static void add_gradient(stk_graph *g, stk_val *slot, stk_val d)
{
    *slot = *slot ? stk_g_add(g, *slot, d) : d;
}

static void back_through(stk_graph *g, int64_t k, const bool *needed, stk_val *grad)
{
    enum { MOST_INPUTS = 256 };
    stk_node node = g->nodes[k];
    const stk_opdef *def = stk_opdef_of((stk_op)node.op);
    bool arrives = false, wanted = false;
    for (int32_t o = 0; o < node.nout; o++) arrives |= grad[node.out + o] != 0;
    for (int32_t i = 0; i < node.nin; i++) wanted |= needed[node.in[i]];
    if (!arrives || !wanted || (def->flags & (STK_OPF_NO_GRAD | STK_OPF_LEAF))) return;
    if (!def->grad || node.nin > MOST_INPUTS) {
        stk_g_fail(g, STK_ERR_UNSUPPORTED,
                   "gradients: '%s' has no gradient; keep it out of the path from the loss "
                   "to the variables, or compute it before the step",
                   stk_op_name((stk_op)node.op));
        return;
    }
    stk_val din[MOST_INPUTS] = {0};
    stk_grad c = {.g = g, .node = node, .dout = grad + node.out, .din = din};
    g->origin = (stk_origin){node.origin.place, STK_PART_BACKWARD};
    def->grad(&c);
    for (int32_t i = 0; i < node.nin; i++)
        if (din[i] && needed[node.in[i]]) add_gradient(g, &grad[node.in[i]], din[i]);
}

void stk_g_gradients(stk_graph *g, stk_val y, int32_t n, const stk_val *x, stk_val *dx)
{
    if (dx) memset(dx, 0, (size_t)(n > 0 ? n : 0) * sizeof *dx);
    if (!stk_graph_ok(g)) return;
    if (!stk_val_ok(g, y) || n < 0 || (n && (!x || !dx))) {
        stk_g_fail(g, STK_ERR_ARGUMENT, "gradients: y is value %d, which is not in this graph", y);
        return;
    }
    for (int32_t i = 0; i < n; i++)
        if (!stk_val_ok(g, x[i])) {
            stk_g_fail(g, STK_ERR_ARGUMENT,
                       "gradients: x[%d] is value %d, which is not in this graph", i, x[i]);
            return;
        }
    if (!stk_dtype_is_float(stk_g_dtype(g, y))) {
        stk_g_fail(g, STK_ERR_DTYPE, "gradients: y is %s; only float values have gradients",
                   STK_TYPE_TEXT(stk_type_of(g, y)));
        return;
    }
    int64_t values = g->nvalues, last = g->values[y].node;
    bool *needed = stk_calloc((size_t)values, sizeof *needed);
    stk_val *grad = stk_calloc((size_t)values, sizeof *grad);
    stk_origin before = g->origin;
    if (needed && grad) {
        stk_shape s = stk_type_of(g, y)->shape;
        mark_needed(g, last, n, x, needed);
        grad[y] = stk_g_fill(g, stk_g_dtype(g, y), s.rank, s.dim, 1);
        for (int64_t k = last; k >= 0 && stk_graph_ok(g); k--) back_through(g, k, needed, grad);
        for (int32_t i = 0; i < n; i++) dx[i] = grad[x[i]];
    } else {
        stk_g_fail(g, STK_ERR_MEMORY, "gradients: out of memory for %lld values",
                   (long long)values);
    }
    g->origin = before;
    stk_free(needed);
    stk_free(grad);
    if (!stk_graph_ok(g) && dx) memset(dx, 0, (size_t)n * sizeof *dx);
}
