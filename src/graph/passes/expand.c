/* Fused ops as what they stand for, on devices that lack their kernel: plain ops stay on the device, an island would not. */
#include "graph/ir/rewrite.h"

enum { MOST = 16 }; /* outputs of a fused op */

static stk_status takes(const stk_graph *g, const stk_node *n, stk_device *d, bool *yes,
                        stk_error *err)
{
    char why[128];
    stk_arena arena = {0};
    stk_lower l = {.g = g, .node = n, .arena = &arena, .err = err, .kernel = -1};
    stk_status status = stk_opdef_of((stk_op)n->op)->lower(&l);
    if (status == STK_OK)
        *yes = d->vt->kernels.supports(d, (stk_kernel)l.kernel, l.params, why, sizeof why);
    stk_arena_release(&arena);
    return status;
}

/* Is an operand what became of another fused op? What it hands on for its gradient may be as only its kernel writes it. */
static bool follows_expanded(const stk_rewrite *rw, const stk_node *old, const stk_val *in)
{
    for (int32_t i = 0; i < old->nin; i++) {
        const stk_node *from = stk_node_of(rw->from, old->in[i]);
        if (stk_opdef_of((stk_op)from->op)->compose && stk_node_of(rw->to, in[i])->op != from->op)
            return true;
    }
    return false;
}

static stk_val expand_node(stk_rewrite *rw, const stk_node *old, const stk_val *in)
{
    const stk_opdef *def = stk_opdef_of((stk_op)old->op);
    stk_val out[MOST] = {0}, first = 0;
    stk_error err;
    bool fused = true;
    if (!def->compose || old->nout > MOST) return 0;
    if (takes(rw->from, old, rw->context, &fused, &err) != STK_OK) return 0;
    if (fused && !follows_expanded(rw, old, in)) return 0;
    def->compose(rw->to, old, in, out);
    /* Outputs must be consecutive ids, so all pass one cast each to the type they have. */
    for (int32_t o = 0; o < old->nout; o++) {
        int64_t to = stk_type_of(rw->from, old->out + o)->dtype;
        stk_val v =
            stk_g_apply(rw->to, STK_OP_CAST, 1, &out[o], &(stk_attrs){.ints = &to, .nints = 1});
        if (o == 0) first = v;
    }
    return first;
}

stk_status stk_pass_expand(const stk_graph *g, stk_device *device, stk_graph **out, stk_error *err)
{
    return stk_rewrite_graph(g, expand_node, device, out, err);
}
