/* sides.c - which values belong to one of two owners: halves of variables (passes/halves.c), and what is made of those of one owner. */
#include "graph/plan/plan.h"

void stk_plan_sides(stk_plan *p)
{
    for (int64_t k = 0; k < p->g->nnodes; k++) {
        const stk_node *n = &p->g->nodes[k];
        stk_half half;
        int8_t side = stk_half_of(n, &half) ? (int8_t)(half.owner + 1) : 0;
        bool both = false;
        for (int32_t i = 0; i < n->nin; i++) {
            const int8_t other = p->home[n->in[i]].side;
            both |= side && other && other != side;
            if (other) side = other;
        }
        for (int32_t o = 0; o < n->nout; o++) p->home[n->out + o].side = both ? 0 : side;
    }
}
