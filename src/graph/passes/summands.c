/* summands.c - a pass for devices on which small products with trained weights are shared out among the owners of the
 * weights' rows (the CPU: src/device/cpu/plan/owners.c):
 *
 *     y = x . w      becomes the sum of two products, [batch, out] each, of half the columns of x with half the rows of w
 *
 * The number of summands does not depend on the machine, so results have the same bits on any number of threads. */
#include "graph/ir/rewrite.h"

enum {
    SUMMANDS = 2,
    LEAST_NS = 2000, /* of one core: less is not worth waking the other one */
    MOST_NS = 50000, /* products that are shared out by rows anyway */
};

static bool is_worth_it(int64_t m, int64_t k, int64_t n)
{
    double ns = 2.0 * (double)m * (double)k * (double)n / 80; /* on one core of today */
    return k % SUMMANDS == 0 && m <= k && ns >= LEAST_NS && ns <= MOST_NS;
}

static stk_val split_product(stk_rewrite *rw, const stk_node *n, const stk_val *in)
{
    const bool *trained = rw->context;
    stk_half half;
    if (n->op != STK_OP_MATMUL || n->ints[0] || n->ints[1] || !trained[n->in[1]]) return 0;
    const stk_type *a = stk_type_of(rw->from, n->in[0]), *b = stk_type_of(rw->from, n->in[1]);
    if (stk_half_of(stk_node_of(rw->from, n->in[1]), &half)) return 0; /* has an owner already */
    if (a->dtype != STK_F32 || a->shape.rank != 2 || b->shape.rank != 2) return 0;
    if (!is_worth_it(a->shape.dim[0], a->shape.dim[1], b->shape.dim[1])) return 0;
    stk_val parts = stk_g_matmul_parts(rw->to, in[0], in[1], SUMMANDS), sum = 0;
    const stk_shape y = stk_type_of(rw->from, n->out)->shape;
    for (int32_t i = 0; i < SUMMANDS; i++) {
        stk_val part = stk_g_reshape(rw->to, stk_g_slice_axis(rw->to, parts, 0, i, 1), 2, y.dim);
        sum = i ? stk_g_add(rw->to, sum, part) : part;
    }
    return sum;
}

stk_status stk_pass_summands(const stk_graph *g, stk_graph **out, stk_error *err)
{
    bool *trained = stk_calloc((size_t)g->nvalues, sizeof *trained);
    if (!trained) return stk_fail_memory(err, "summands", (size_t)g->nvalues);
    for (int64_t k = 0; k < g->nnodes; k++)
        if (g->nodes[k].op == STK_OP_ASSIGN) trained[g->nodes[k].in[0]] = true;
    stk_status status = stk_rewrite_graph(g, split_product, trained, out, err);
    stk_free(trained);
    return status;
}
