/* Contraction: short runs of elementwise operations that have a name of their own (fma, lerp, add_relu, ...) become one,
 * so that a chain reads and writes its tiles less often. A moving average is one lerp, Adam is five operations
 * instead of twelve. Only what has no other reader is taken in. */
#include "graph/ir/rewrite.h"

typedef struct uses {
    int32_t *count; /* per value of the old graph */
} uses;

/* The node that makes operand v of `user`, when it is `op`, nobody else reads it and it has the user's shape. */
static const stk_node *only_for(const stk_rewrite *rw, const stk_node *user, stk_val v, stk_op op)
{
    const stk_node *n = stk_node_of(rw->from, v);
    const uses *u = rw->context;
    bool fits = n->op == (int16_t)op && u->count[v] == 1 &&
                stk_type_equal(stk_type_of(rw->from, v), stk_type_of(rw->from, user->out));
    return fits ? n : NULL;
}

static stk_val mapped(const stk_rewrite *rw, stk_val old) { return rw->map[old]; }

static stk_val apply3(stk_rewrite *rw, stk_op op, stk_val a, stk_val b, stk_val c)
{
    return stk_g_apply(rw->to, op, 3, (stk_val[]){mapped(rw, a), mapped(rw, b), mapped(rw, c)},
                       NULL);
}

/* base + product, where product = (target - base) * weight: a step of a moving average. */
static stk_val lerp(stk_rewrite *rw, const stk_node *product, stk_val base)
{
    for (int side = 0; side < 2; side++) {
        const stk_node *way = only_for(rw, product, product->in[side], STK_OP_SUB);
        if (!way || way->in[1] != base) continue;
        const stk_node *square = only_for(rw, product, way->in[0], STK_OP_SQUARE);
        stk_val weight = product->in[!side];
        if (square) return apply3(rw, STK_OP_LERP_SQUARE, base, square->in[0], weight);
        return apply3(rw, STK_OP_LERP, base, way->in[0], weight);
    }
    return 0;
}

static stk_val contract_add(stk_rewrite *rw, const stk_node *n)
{
    for (int side = 0; side < 2; side++) {
        const stk_node *product = only_for(rw, n, n->in[side], STK_OP_MUL);
        if (!product) continue;
        stk_val v = lerp(rw, product, n->in[!side]);
        return v ? v : apply3(rw, STK_OP_FMA, product->in[0], product->in[1], n->in[!side]);
    }
    return 0;
}

static stk_val contract_node(stk_rewrite *rw, const stk_node *n, const stk_val *in)
{
    const stk_node *part;
    (void)in;
    if (!stk_op_is_elementwise((stk_op)n->op)) return 0;
    bool is_float = stk_dtype_is_float(stk_type_of(rw->from, n->out)->dtype);
    switch (n->op) {
    case STK_OP_RELU:
        part = only_for(rw, n, n->in[0], STK_OP_ADD);
        if (!part) return 0;
        return stk_g_add_relu(rw->to, mapped(rw, part->in[0]), mapped(rw, part->in[1]));
    case STK_OP_ADD: return is_float ? contract_add(rw, n) : 0;
    case STK_OP_SUB:
        part = is_float ? only_for(rw, n, n->in[1], STK_OP_MUL) : NULL;
        return part ? apply3(rw, STK_OP_FNMA, part->in[0], part->in[1], n->in[0]) : 0;
    case STK_OP_DIV:
        part = is_float ? only_for(rw, n, n->in[1], STK_OP_ADD) : NULL;
        for (int side = 0; part && side < 2; side++) {
            const stk_node *root = only_for(rw, part, part->in[side], STK_OP_SQRT);
            if (root) return apply3(rw, STK_OP_DIV_SQRT, n->in[0], root->in[0], part->in[!side]);
        }
        return 0;
    default: return 0;
    }
}

stk_status stk_pass_contract(const stk_graph *g, stk_graph **out, stk_error *err)
{
    uses u = {stk_calloc((size_t)g->nvalues, sizeof *u.count)};
    if (!u.count) return stk_fail_memory(err, "contract", (size_t)g->nvalues * sizeof *u.count);
    for (int64_t k = 0; k < g->nnodes; k++)
        for (int32_t i = 0; i < g->nodes[k].nin; i++) u.count[g->nodes[k].in[i]]++;
    for (int64_t i = 0; i < g->noutputs; i++) u.count[g->outputs[i].val]++;
    stk_status status = stk_rewrite_graph(g, contract_node, &u, out, err);
    stk_free(u.count);
    return status;
}
