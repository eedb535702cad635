/* plan.h - from a graph to the plan that a device is handed (device/plan.h): tasks, the values they work on, and when
 * each of these is alive.
 *
 *     graph --fuse--> tasks --homes--> [device: arrange] --memory--> offsets in one arena --emit--> [device: load]
 */
#ifndef STK_GRAPH_PLAN_H
#define STK_GRAPH_PLAN_H

#include "device/plan.h"
#include "graph/ir/op.h"

/* sides.c: which values belong to one owner only. */
void stk_plan_sides(stk_plan *p);
/* fuse.c: clusters[node] = number of the chain an elementwise node belongs to, -1 for others. */
stk_status stk_plan_clusters(const stk_graph *g, bool no_fuse, int32_t *clusters, int32_t *count,
                             stk_error *err);
/* chain.c: what is asked about the nodes of clusters, found out once for a graph. */
typedef struct stk_chains {
    const int32_t *clusters;
    int32_t *first;    /* per cluster: its first node */
    int32_t *next;     /* per node: the next one of its cluster, -1 behind the last */
    bool *outside;     /* per value: something outside of its cluster uses it */
    int16_t *reg;      /* per value: register + 1 in the chain that is made now, 0 = none */
    int32_t *last_use; /* per value: op index of its last read inside that chain */
} stk_chains;
stk_status stk_chains_new(const stk_graph *g, const int32_t *clusters, int32_t count,
                          stk_chains *out, stk_error *err);
void stk_chains_release(stk_chains *c);
/* The chain of one cluster as a task. */
stk_status stk_plan_chain(stk_plan *p, stk_chains *chains, int32_t id, stk_task *out,
                          stk_error *err);
/* Joins equal chains whose results only go into variables: a whole optimizer becomes one launch. */
stk_status stk_plan_join_updates(stk_plan *p, stk_error *err);
/* tasks.c: all tasks in a valid order. */
stk_status stk_plan_tasks(stk_plan *p, stk_error *err);
/* buffers.c: homes before the device arranges the tasks, lifetimes and offsets afterwards. */
stk_status stk_plan_homes(stk_plan *p, stk_error *err);
stk_status stk_plan_memory(stk_plan *p, stk_device *device, stk_error *err);

#endif
