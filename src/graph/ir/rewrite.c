/* The walk shared by all passes, and the checks after them. */
#include "graph/ir/rewrite.h"

#include <string.h>

static stk_status clone(const stk_graph *g, stk_graph **out, stk_error *err)
{
    return stk_rewrite_graph(g, NULL, NULL, out, err);
}

/* Bodies of control flow are copied whole: a node owns its bodies. */
static bool clone_subs(stk_graph *to, const stk_node *old, stk_graph **subs)
{
    for (int32_t k = 0; k < old->nsubs; k++) {
        stk_error err;
        stk_status status = clone(old->subs[k], &subs[k], &err);
        if (status == STK_OK) continue;
        stk_g_fail(to, status, "%s", err.message);
        while (k-- > 0) stk_graph_release(subs[k]);
        return false;
    }
    return true;
}

stk_val stk_rewrite_copy(stk_graph *to, const stk_node *old, const stk_val *in)
{
    enum { MOST_SUBS = 8 };
    stk_graph *subs[MOST_SUBS] = {0};
    if (!stk_graph_ok(to)) return 0;
    if (old->nsubs > MOST_SUBS) return stk_g_fail(to, STK_ERR_RANGE, "%d bodies", old->nsubs);
    if (!clone_subs(to, old, subs)) return 0;
    stk_node like = *old;
    like.subs = subs;
    stk_val v = stk_g_add_node(to, &like, in);
    if (!v)
        for (int32_t k = 0; k < old->nsubs; k++) stk_graph_release(subs[k]);
    return v;
}

static void mark_alive(const stk_graph *g, bool *alive)
{
    for (int64_t i = 0; i < g->noutputs; i++) alive[g->values[g->outputs[i].val].node] = true;
    for (int64_t k = g->nnodes - 1; k >= 0; k--) {
        const stk_node *n = &g->nodes[k];
        alive[k] |=
            (stk_opdef_of((stk_op)n->op)->flags & STK_OPF_EFFECT) != 0 || n->op == STK_OP_VARIABLE;
        for (int32_t i = 0; alive[k] && i < n->nin; i++) alive[g->values[n->in[i]].node] = true;
    }
}

/* What takes the place of a node comes from where the node came from. Neighbours share their place. */
static void move_origin(stk_rewrite *rw, const stk_node *old)
{
    if (old->origin.place != rw->place) {
        rw->place = old->origin.place;
        stk_g_place(rw->to, rw->place);
    }
    rw->to->origin.part = old->origin.part;
}

static void rewrite_node(stk_rewrite *rw, stk_rewrite_rule rule, const stk_node *old)
{
    enum { FEW = 64 };
    stk_val few[FEW], *in = few;
    if (old->nin > FEW) in = stk_arena_array(&rw->to->arena, (size_t)old->nin, sizeof *in);
    if (!in) {
        stk_g_fail(rw->to, STK_ERR_MEMORY, "out of memory in a pass");
        return;
    }
    for (int32_t i = 0; i < old->nin; i++) in[i] = rw->map[old->in[i]];
    move_origin(rw, old);
    stk_val v = rule ? rule(rw, old, in) : 0;
    if (!v) v = stk_rewrite_copy(rw->to, old, in);
    for (int32_t o = 0; v && o < old->nout; o++) rw->map[old->out + o] = v + o;
}

stk_status stk_rewrite_graph(const stk_graph *g, stk_rewrite_rule rule, void *context,
                             stk_graph **out, stk_error *err)
{
    stk_graph *to = NULL;
    STK_TRY(stk_graph_new(&to, err));
    to->next_stream = g->next_stream;
    stk_val *map = stk_calloc((size_t)g->nvalues, sizeof *map);
    bool *alive = stk_calloc((size_t)g->nnodes + 1, sizeof *alive);
    if (map && alive) {
        mark_alive(g, alive);
        stk_rewrite rw = {.from = g, .to = to, .map = map, .alive = alive, .context = context};
        for (int64_t k = 0; k < g->nnodes && stk_graph_ok(to); k++)
            if (alive[k]) rewrite_node(&rw, rule, &g->nodes[k]);
        for (int64_t i = 0; i < g->noutputs && stk_graph_ok(to); i++)
            stk_g_output(to, g->outputs[i].name, map[g->outputs[i].val]);
    } else {
        stk_g_fail(to, STK_ERR_MEMORY, "out of memory in a pass over %lld values",
                   (long long)g->nvalues);
    }
    stk_free(map);
    stk_free(alive);
    stk_status status = stk_graph_status(to, err);
    if (status == STK_OK)
        *out = to;
    else
        stk_graph_release(to);
    return status;
}

stk_status stk_rewrite_counted(const stk_graph *g, stk_rewrite_rule rule, stk_graph **out,
                               stk_error *err)
{
    int32_t *uses = stk_calloc((size_t)g->nvalues, sizeof *uses);
    if (!uses) return stk_fail_memory(err, "a pass", (size_t)g->nvalues * sizeof *uses);
    for (int64_t k = 0; k < g->nnodes; k++)
        for (int32_t i = 0; i < g->nodes[k].nin; i++) uses[g->nodes[k].in[i]]++;
    for (int64_t i = 0; i < g->noutputs; i++) uses[g->outputs[i].val]++;
    stk_status status = stk_rewrite_graph(g, rule, uses, out, err);
    stk_free(uses);
    return status;
}

stk_status stk_graph_verify(const stk_graph *g, const char *after, stk_error *err)
{
    for (int64_t k = 0; k < g->nnodes; k++) {
        const stk_node *n = &g->nodes[k];
        const stk_op_row *row = stk_op_row_of((stk_op)n->op);
        bool good = row && n->nin >= row->min_in && (row->max_in < 0 || n->nin <= row->max_in) &&
                    n->nout >= 1;
        for (int32_t i = 0; good && i < n->nin; i++) good = n->in[i] > 0 && n->in[i] < n->out;
        for (int32_t o = 0; good && o < n->nout; o++)
            good = g->values[n->out + o].node == k && g->values[n->out + o].index == o;
        if (!good)
            return stk_fail(err, STK_ERR_INTERNAL,
                            "node %lld (%s) is malformed after pass '%s'; please report this",
                            (long long)k, row ? row->name : "?", after);
    }
    for (int64_t i = 0; i < g->noutputs; i++)
        if (!stk_val_ok(g, g->outputs[i].val))
            return stk_fail(err, STK_ERR_INTERNAL,
                            "output '%s' is lost after pass '%s'; please report this",
                            g->outputs[i].name, after);
    return STK_OK;
}
