/* elect.h - which implementation runs each task, in how many parts, on how many threads, and which tasks share a
 * parallel region. */
#ifndef STK_GRAPH_ELECT_H
#define STK_GRAPH_ELECT_H

#include "graph/plan.h"

typedef struct stk_election {
    stk_device *device;
    int32_t threads; /* most to use */
    double fork_join_ns;
    bool deterministic, ref, no_group;
    double spent_ms; /* on timing candidates */
} stk_election;

/* Fills impl, units, parts, threads, scratch_bytes of every task. */
stk_status stk_elect(stk_plan *p, stk_election *e, stk_error *err);
/* Fills follows, scale, group of every task. */
void stk_plan_groups(stk_plan *p, const stk_election *e);

/* How a launch of this problem is cut. Depends on the problem only, never on the machine's threads. */
void stk_cut(const stk_impl *impl, const void *params, double flops, double bytes, int64_t *units,
             int32_t *parts);

#endif
