/* A part of a graph as a graph of its own: what some values need, from the inputs or from values that are at hand. */
#include "graph/ir/rewrite.h"

#include <stdio.h>

typedef struct part {
    const stk_graph *from;
    stk_graph *to;
    stk_val *map;  /* old value -> new value */
    bool *needed;  /* per old value */
    bool *at_hand; /* per old value: becomes an input */
} part;

static void mark(part *p)
{
    const stk_graph *g = p->from;
    for (int64_t k = g->nnodes - 1; k >= 0; k--) {
        const stk_node *n = &g->nodes[k];
        bool makes = false;
        for (int32_t o = 0; o < n->nout; o++)
            makes |= p->needed[n->out + o] && !p->at_hand[n->out + o];
        for (int32_t i = 0; makes && i < n->nin; i++) p->needed[n->in[i]] = true;
    }
}

static void copy_node(part *p, const stk_node *n)
{
    enum { FEW = 64 };
    stk_val few[FEW], *in = few;
    if (n->nin > FEW) in = stk_arena_array(&p->to->arena, (size_t)n->nin, sizeof *in);
    if (!in) {
        stk_g_fail(p->to, STK_ERR_MEMORY, "out of memory in a part of a graph");
        return;
    }
    for (int32_t i = 0; i < n->nin; i++) in[i] = p->map[n->in[i]];
    stk_g_place(p->to, n->origin.place);
    stk_val v = stk_rewrite_copy(p->to, n, in);
    for (int32_t o = 0; v && o < n->nout; o++)
        if (!p->map[n->out + o]) p->map[n->out + o] = v + o;
}

/* Returns how many inputs it got. */
static int32_t build(part *p, int32_t room, stk_val *inputs)
{
    const stk_graph *g = p->from;
    int32_t nin = 0;
    for (int64_t k = 0; k < g->nnodes && stk_graph_ok(p->to); k++) {
        const stk_node *n = &g->nodes[k];
        bool makes = false;
        for (int32_t o = 0; o < n->nout; o++) {
            stk_val v = n->out + o;
            if (!p->needed[v]) continue;
            if (!p->at_hand[v] && n->op != STK_OP_INPUT) {
                makes = true;
                continue;
            }
            char name[32];
            const stk_type *t = stk_type_of(g, v);
            snprintf(name, sizeof name, "%d", (int)v);
            p->map[v] = stk_g_input(p->to, name, t->dtype, t->shape.rank, t->shape.dim);
            if (nin < room) inputs[nin] = v;
            nin++;
        }
        if (makes) copy_node(p, n);
    }
    return nin;
}

stk_status stk_graph_part(const stk_graph *g, int32_t nhand, const stk_val *hand, int32_t nout,
                          const stk_val *outputs, int32_t room, stk_val *inputs, int32_t *nin,
                          stk_graph **out, stk_error *err)
{
    STK_TRY(stk_graph_status(g, err));
    part p = {.from = g};
    STK_TRY(stk_graph_new(&p.to, err));
    p.to->next_stream = g->next_stream;
    p.map = stk_calloc((size_t)g->nvalues, sizeof *p.map);
    p.needed = stk_calloc((size_t)g->nvalues, sizeof *p.needed);
    p.at_hand = stk_calloc((size_t)g->nvalues, sizeof *p.at_hand);
    stk_status status = p.map && p.needed && p.at_hand
                            ? STK_OK
                            : stk_fail_memory(err, "graph_part", (size_t)g->nvalues);
    for (int32_t i = 0; status == STK_OK && i < nhand + nout; i++) {
        stk_val v = i < nhand ? hand[i] : outputs[i - nhand];
        if (!stk_val_ok(g, v))
            status = stk_fail(err, STK_ERR_ARGUMENT, "graph_part: value %d is not in this graph",
                              (int)v);
        else
            (i < nhand ? p.at_hand : p.needed)[v] = true;
    }
    if (status == STK_OK) {
        mark(&p);
        *nin = build(&p, room, inputs);
        for (int32_t i = 0; i < nout && stk_graph_ok(p.to); i++) {
            char name[32];
            snprintf(name, sizeof name, "%d", (int)i);
            stk_g_output(p.to, name, p.map[outputs[i]]);
        }
        status = stk_graph_status(p.to, err);
    }
    if (status == STK_OK && *nin > room)
        status = stk_fail(err, STK_ERR_RANGE, "graph_part: it has %d inputs, there is room for %d",
                          (int)*nin, (int)room);
    stk_free(p.map);
    stk_free(p.needed);
    stk_free(p.at_hand);
    if (status == STK_OK)
        *out = p.to;
    else
        stk_graph_release(p.to);
    return status;
}
