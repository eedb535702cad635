/* shadows.c - the bfloat16 form of a trained float32 variable is kept from step to step.
 *
 *     w16 = cast(w)                  w, w16 variables
 *     ... w16 ...                    ... w16 ...
 *     w' = w - update        ->      w' = w - update,  w16' = cast(w')
 *
 * The chain that updates the weight has it in registers and writes both; a cast at the start of each step would read 4 bytes and write
 * 2 per element, from memory, in a launch of its own. The store (run/store.c) makes the shadow anew when others have written
 * the variable, by the same rounding: the bits are those of the cast. */
#include "graph/ir/rewrite.h"

typedef struct shadows {
    bool *wanted;    /* per old value: a variable that gets one */
    stk_val *shadow; /* per old value: its shadow in the new graph */
} shadows;

static bool is_rounding(const stk_graph *g, const stk_node *n)
{
    return n->op == STK_OP_CAST && stk_g_dtype(g, n->out) == STK_BF16 &&
           stk_g_dtype(g, n->in[0]) == STK_F32 && stk_node_of(g, n->in[0])->op == STK_OP_VARIABLE;
}

/* Bodies of control flow know variables by their names: no shadows in such a graph. */
static bool find_wanted(shadows *s, const stk_graph *g, stk_may_shadow *may, const void *context)
{
    bool any = false;
    for (int64_t k = 0; k < g->nnodes; k++) {
        const stk_node *n = &g->nodes[k];
        stk_half half;
        if (n->nsubs) return false;
        if (!is_rounding(g, n)) continue;
        const stk_node *variable = stk_node_of(g, n->in[0]);
        if (stk_half_of(variable, &half) ||
            !may(context, variable->name, g->values[n->in[0]].assigned))
            continue;
        any = s->wanted[n->in[0]] = true;
    }
    return any;
}

static stk_val round_off(stk_graph *g, stk_val v)
{
    const int64_t to = STK_BF16;
    return stk_g_apply(g, STK_OP_CAST, 1, &v, &(stk_attrs){.ints = &to, .nints = 1});
}

static stk_val shadow_node(stk_rewrite *rw, const stk_node *old, const stk_val *in)
{
    shadows *s = rw->context;
    if (old->op == STK_OP_VARIABLE && s->wanted[old->out]) {
        stk_val whole = stk_rewrite_copy(rw->to, old, in);
        s->shadow[old->out] = stk_g_shadow(rw->to, old);
        return whole;
    }
    if (is_rounding(rw->from, old)) return s->shadow[old->in[0]];
    if (old->op == STK_OP_ASSIGN && s->wanted[old->in[0]]) {
        stk_val whole = stk_rewrite_copy(rw->to, old, in);
        stk_g_assign(rw->to, s->shadow[old->in[0]], round_off(rw->to, in[1]));
        return whole;
    }
    return 0;
}

stk_status stk_pass_shadows(const stk_graph *g, stk_may_shadow *may, const void *context,
                            stk_graph **out, stk_error *err)
{
    const size_t values = (size_t)g->nvalues;
    shadows s = {stk_calloc(values, sizeof *s.wanted), stk_calloc(values, sizeof *s.shadow)};
    stk_status status = STK_OK;
    if (s.wanted && s.shadow) {
        const bool any = find_wanted(&s, g, may, context);
        status = stk_rewrite_graph(g, any ? shadow_node : NULL, &s, out, err);
    } else {
        status = stk_fail_memory(err, "shadows", values);
    }
    stk_free(s.wanted);
    stk_free(s.shadow);
    return status;
}
