/* Reverse-mode differentiation: walks the nodes backwards and lets each op's rule add the nodes of its
 * gradient to the same graph. */
#include "graph/ir/op.h"
#include "stoker/tracing.h"

#include <string.h>

/* Was the value recorded in one of the spans of the request? */
static bool is_recorded(const stk_gradient_request *r, stk_val v)
{
    for (int32_t i = 0; i < r->nspans; i++)
        if (v >= r->spans[2 * i] && v < r->spans[2 * i + 1]) return true;
    return r->nspans == 0;
}

/* needed[v]: v depends on one of x. Other values get no gradient work. */
static void mark_needed(const stk_graph *g, const stk_gradient_request *r, int64_t last,
                        bool *needed)
{
    for (int32_t i = 0; i < r->nx; i++) needed[r->x[i]] = true;
    for (int64_t k = 0; k <= last; k++) {
        const stk_node *node = &g->nodes[k];
        bool depends = false;
        for (int32_t i = 0; i < node->nin; i++) depends |= needed[node->in[i]];
        depends = depends && is_recorded(r, node->out);
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

static bool check_values(stk_graph *g, const char *name, int32_t n, const stk_val *x)
{
    for (int32_t i = 0; i < n; i++)
        if (!stk_val_ok(g, x[i])) {
            stk_g_fail(g, STK_ERR_ARGUMENT,
                       "gradients: %s[%d] is value %d, which is not in this graph", name, i, x[i]);
            return false;
        }
    return true;
}

static bool check_request(stk_graph *g, const stk_gradient_request *r, const stk_val *dx)
{
    if (!stk_graph_ok(g)) return false;
    if (!r || r->ny < 1 || !r->y || r->nx < 0 || (r->nx && (!r->x || !dx))) {
        stk_g_fail(g, STK_ERR_ARGUMENT, "gradients: needs at least one y, and room for each dx");
        return false;
    }
    if (!check_values(g, "y", r->ny, r->y) || !check_values(g, "x", r->nx, r->x)) return false;
    for (int32_t i = 0; i < r->ny; i++) {
        if (!stk_dtype_is_float(stk_g_dtype(g, r->y[i]))) {
            stk_g_fail(g, STK_ERR_DTYPE, "gradients: y is %s; only float values have gradients",
                       STK_TYPE_TEXT(stk_type_of(g, r->y[i])));
            return false;
        }
        if (r->dy && r->dy[i] &&
            (!stk_val_ok(g, r->dy[i]) ||
             !stk_type_equal(stk_type_of(g, r->dy[i]), stk_type_of(g, r->y[i])))) {
            stk_g_fail(g, STK_ERR_SHAPE, "gradients: dy[%d] must be as y, which is %s", i,
                       STK_TYPE_TEXT(stk_type_of(g, r->y[i])));
            return false;
        }
    }
    return true;
}

static void seed_gradients(stk_graph *g, const stk_gradient_request *r, stk_val *grad)
{
    for (int32_t i = 0; i < r->ny; i++) {
        stk_val y = r->y[i], dy = r->dy ? r->dy[i] : 0;
        stk_shape s = stk_type_of(g, y)->shape;
        if (!dy) dy = stk_g_fill(g, stk_g_dtype(g, y), s.rank, s.dim, 1);
        add_gradient(g, &grad[y], dy);
    }
}

void stk_g_gradients_of(stk_graph *g, const stk_gradient_request *r, stk_val *dx)
{
    if (dx && r && r->nx > 0) memset(dx, 0, (size_t)r->nx * sizeof *dx);
    if (!check_request(g, r, dx)) return;
    int64_t values = g->nvalues, last = 0;
    for (int32_t i = 0; i < r->ny; i++)
        if (g->values[r->y[i]].node > last) last = g->values[r->y[i]].node;
    bool *needed = stk_calloc((size_t)values, sizeof *needed);
    stk_val *grad = stk_calloc((size_t)values, sizeof *grad);
    stk_origin before = g->origin;
    if (needed && grad) {
        mark_needed(g, r, last, needed);
        seed_gradients(g, r, grad);
        for (int64_t k = last; k >= 0 && stk_graph_ok(g); k--)
            if (is_recorded(r, g->nodes[k].out)) back_through(g, k, needed, grad);
        for (int32_t i = 0; i < r->nx; i++) dx[i] = grad[r->x[i]];
    } else {
        stk_g_fail(g, STK_ERR_MEMORY, "gradients: out of memory for %lld values",
                   (long long)values);
    }
    g->origin = before;
    stk_free(needed);
    stk_free(grad);
    if (!stk_graph_ok(g) && dx) memset(dx, 0, (size_t)r->nx * sizeof *dx);
}

void stk_g_gradients(stk_graph *g, stk_val y, int32_t n, const stk_val *x, stk_val *dx)
{
    stk_g_gradients_of(g, &(stk_gradient_request){.ny = 1, .y = &y, .nx = n, .x = x}, dx);
}

stk_val stk_g_next(const stk_graph *g) { return g ? (stk_val)g->nvalues : 0; }

void stk_graph_forgive(stk_graph *g)
{
    if (g) g->error.code = STK_OK;
}
