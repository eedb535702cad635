/* Half types in ops that compute only in float32: casts in front and behind. Chains and matrix products take
 * half types themselves and are left alone, and so is what the device has a kernel of its own for. Statistics of what was widened for
 * them read it as it was. */
#include "graph/ir/rewrite.h"

static bool is_half(stk_dtype d) { return d == STK_F16 || d == STK_BF16; }

/* The float32 value of an operand. What an op of several results keeps for its gradient (gates of a recurrent layer) goes there as it
 * was computed: rounding it on the way would cost two passes over it, and exactness. */
static stk_val wide_of(stk_graph *g, stk_val v)
{
    const stk_node *cast = stk_node_of(g, v);
    if (cast->op == STK_OP_CAST && stk_g_dtype(g, cast->in[0]) == STK_F32 &&
        stk_node_of(g, cast->in[0])->nout > 1)
        return cast->in[0];
    return stk_g_cast(g, v, STK_F32);
}

/* The node over what was widened for it, where the device takes that as it is; 0: it does not. */
static stk_val read_halves(stk_rewrite *rw, const stk_node *old, const stk_val *in, int32_t widened)
{
    enum { MOST = 4 };
    stk_val half[MOST];
    if (old->nin > MOST) return 0;
    for (int32_t i = 0; i < old->nin; i++) {
        const stk_node *cast = stk_node_of(rw->to, in[i]);
        half[i] = in[i];
        if (i >= widened) continue;
        if (stk_g_dtype(rw->to, in[i]) != STK_F32 || cast->op != STK_OP_CAST ||
            stk_g_dtype(rw->to, cast->in[0]) != STK_BF16)
            return 0;
        half[i] = cast->in[0];
    }
    return stk_opdef_of((stk_op)old->op)->half(rw->from, old, rw->context)
               ? stk_rewrite_copy(rw->to, old, half)
               : 0;
}

static stk_val widen_node(stk_rewrite *rw, const stk_node *old, const stk_val *in)
{
    enum { MOST = 16 };
    stk_val wide[MOST];
    bool half = false;
    const stk_opdef *def = stk_opdef_of((stk_op)old->op);
    if (!(def->flags & STK_OPF_WIDEN) || old->nin > MOST || old->nout > MOST) return 0;
    if (def->widened) {
        const stk_val y = read_halves(rw, old, in, def->widened);
        if (y) return y;
    } else if (def->half && def->half(rw->from, old, rw->context)) {
        return 0;
    }
    for (int32_t i = 0; i < old->nin; i++) {
        bool this_one = is_half(stk_g_dtype(rw->to, in[i]));
        wide[i] = this_one ? wide_of(rw->to, in[i]) : in[i];
        half |= this_one;
    }
    if (!half) return 0;
    stk_val y = stk_rewrite_copy(rw->to, old, wide);
    if (!y) return 0;
    /* Outputs must be consecutive ids, so all pass one cast each, also those that keep their type. */
    stk_val first = 0;
    for (int32_t o = 0; o < old->nout; o++) {
        const stk_type *want = stk_type_of(rw->from, old->out + o);
        int64_t to = want->dtype;
        stk_val v = stk_g_apply(rw->to, STK_OP_CAST, 1, &(stk_val){y + o},
                                &(stk_attrs){.ints = &to, .nints = 1});
        if (o == 0) first = v;
    }
    return first;
}

stk_status stk_pass_widen(const stk_graph *g, stk_device *device, stk_graph **out, stk_error *err)
{
    return stk_rewrite_graph(g, widen_node, device, out, err);
}
