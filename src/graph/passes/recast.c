/* recast.c - every elementwise reader of a widened half value widens it by itself.
 *
 *     f = cast(h, float32), read by a norm's statistics and by three chains: the chains read h, half the bytes, and widen it as it
 *     is loaded. f is left to the statistics, which run behind it part by part, so that it is no longer stored as a whole.
 *
 * To be run last: simplify would find the casts equal again. */
#include "graph/ir/rewrite.h"

static bool is_half(stk_dtype d) { return d == STK_F16 || d == STK_BF16; }

static bool is_widening(const stk_graph *g, stk_val v)
{
    const stk_node *n = stk_node_of(g, v);
    return n->op == STK_OP_CAST && stk_g_dtype(g, v) == STK_F32 &&
           is_half(stk_g_dtype(g, n->in[0]));
}

static stk_val widen_again(stk_graph *g, stk_val v)
{
    const stk_val from = stk_node_of(g, v)->in[0];
    const int64_t to = STK_F32;
    return stk_g_apply(g, STK_OP_CAST, 1, &from, &(stk_attrs){.ints = &to, .nints = 1});
}

static stk_val recast_node(stk_rewrite *rw, const stk_node *old, const stk_val *in)
{
    enum { MOST = 3 };
    stk_val own[MOST];
    bool any = false;
    if (!stk_op_is_elementwise((stk_op)old->op) || old->nin > MOST) return 0;
    for (int32_t i = 0; i < old->nin; i++) {
        own[i] = in[i];
        for (int32_t j = 0; j < i; j++)
            if (in[j] == in[i]) own[i] = own[j];
        if (own[i] != in[i] || !is_widening(rw->to, in[i])) continue;
        own[i] = widen_again(rw->to, in[i]);
        any = true;
    }
    return any ? stk_rewrite_copy(rw->to, old, own) : 0;
}

stk_status stk_pass_recast(const stk_graph *g, stk_graph **out, stk_error *err)
{
    stk_graph *all = NULL;
    STK_TRY(stk_rewrite_graph(g, recast_node, NULL, &all, err));
    stk_status status = stk_rewrite_graph(all, NULL, NULL, out, err); /* casts that nobody reads */
    stk_graph_release(all);
    return status;
}
