/* zeros.c - which values are full of zeros, as far as the graph tells: what came out of a relu, or went back through one. Kernels
 * that skip zeros are offered there only, and are elected on such numbers. */
#include "graph/ir/op.h"

static bool has_zeros(const stk_graph *g, stk_val v, int depth);

/* Dropout and masks keep the zeros of what they let through, and put zeros for the rest. */
static bool select_has_zeros(const stk_graph *g, const stk_node *n, int depth)
{
    double yes = 1, no = 1;
    const bool zero_yes = stk_g_splat(g, n->in[1], &yes) && yes == 0;
    const bool zero_no = stk_g_splat(g, n->in[2], &no) && no == 0;
    return (zero_yes || has_zeros(g, n->in[1], depth)) &&
           (zero_no || has_zeros(g, n->in[2], depth));
}

static bool has_zeros(const stk_graph *g, stk_val v, int depth)
{
    enum { DEEPEST = 8 };
    const stk_node *n = stk_node_of(g, v);
    if (depth++ >= DEEPEST) return false;
    switch (n->op) {
    case STK_OP_RELU:
    case STK_OP_RELU6:
    case STK_OP_RELU_GRAD:
    case STK_OP_RELU6_GRAD:
    case STK_OP_ADD_RELU: return true;
    case STK_OP_RESHAPE:
    case STK_OP_TRANSPOSE:
    case STK_OP_STOP_GRADIENT:
    case STK_OP_CAST:
    case STK_OP_NEG: return has_zeros(g, n->in[0], depth);
    case STK_OP_MUL: return has_zeros(g, n->in[0], depth) || has_zeros(g, n->in[1], depth);
    case STK_OP_SELECT: return select_has_zeros(g, n, depth);
    default: return false;
    }
}

int32_t stk_lower_zeros(const stk_lower *l)
{
    return (has_zeros(l->g, l->node->in[0], 0) ? STK_ZEROS_A : 0) |
           (has_zeros(l->g, l->node->in[1], 0) ? STK_ZEROS_B : 0);
}
