/* plan.h - between the graph and the program: tasks (one kernel launch each, or one piece of control flow), the
 * buffers they work on, and when each buffer is alive.
 *
 *     graph --fuse--> tasks --order--> groups --buffers--> offsets in one arena --emit--> launches
 */
#ifndef STK_GRAPH_PLAN_H
#define STK_GRAPH_PLAN_H

#include "graph/ir/op.h"

typedef struct stk_task {
    int32_t kernel;     /* stk_kernel; -1: control flow */
    int32_t node;       /* representative graph node, for labels and control flow */
    const void *params; /* problem struct, in the plan's arena */
    int64_t params_size;
    int32_t nin, nout; /* per segment for chains */
    stk_val *arg;      /* inputs then outputs; chains: segments x (nin + nout) */
    int32_t nargs;
    int64_t count; /* chains: elements of all segments together */
    double flops, bytes;
    /* filled by the election */
    const stk_impl *impl;
    int64_t units, scale, scratch_bytes, scratch_at;
    int32_t parts, threads;
    bool follows;
    int32_t group; /* number of its parallel region; time in the memory plan */
    bool dead;
} stk_task;

/* Where a value lives. Aliases share the buffer of another value at an offset. */
typedef enum stk_place {
    STK_AT_ARENA,
    STK_AT_INPUT,
    STK_AT_VARIABLE,
    STK_AT_CONST,
    STK_AT_STEP,
    STK_AT_RESULT, /* memory that the caller gives for an output */
} stk_place;

typedef struct stk_home {
    int8_t place;   /* stk_place */
    stk_val root;   /* value that owns the buffer (itself when not an alias) */
    int64_t offset; /* bytes from the start of root's buffer */
    /* roots in the arena: */
    int64_t bytes, at;   /* size; offset in the arena once planned */
    int32_t first, last; /* groups between which it is alive */
    int64_t unit, share; /* > 0: lives inside one group only (stk_local) */
} stk_home;

typedef struct stk_plan {
    const stk_graph *g;
    stk_arena arena; /* everything the plan and the program's launches point to */
    stk_task *tasks;
    int64_t ntasks, cap_tasks;
    stk_home *home; /* per value */
    int32_t groups;
    int64_t arena_bytes;
    bool no_fuse, outside_results;
    bool keeps_parts; /* of the device */
} stk_plan;

/* fuse.c: clusters[node] = number of the chain an elementwise node belongs to, -1 for others. */
stk_status stk_plan_clusters(const stk_graph *g, bool no_fuse, int32_t *clusters, int32_t *count,
                             stk_error *err);
/* chain.c: the chain of one cluster as a task. */
stk_status stk_plan_chain(stk_plan *p, const int32_t *clusters, int32_t id, stk_task *out,
                          stk_error *err);
/* Joins equal chains whose results only go into variables: a whole optimizer becomes one launch. */
stk_status stk_plan_join_updates(stk_plan *p, stk_error *err);
/* tasks.c: all tasks in a valid order. */
stk_status stk_plan_tasks(stk_plan *p, stk_error *err);
/* groups.c: is arg i of the task cut along with its units, when the group has `units` of them? */
bool stk_arg_is_cut(const stk_task *t, int32_t i, int64_t units);
/* memory.c: homes, lifetimes, offsets. stk_plan_homes before the election, stk_plan_memory after grouping. */
stk_status stk_plan_homes(stk_plan *p, stk_error *err);
stk_status stk_plan_memory(stk_plan *p, stk_error *err);

/* Bytes of the arena for a root. */
int64_t stk_plan_room(const stk_plan *p, const stk_home *h);

static inline bool stk_is_output_arg(const stk_task *t, int32_t i)
{
    return i % (t->nin + t->nout) >= t->nin;
}
static inline stk_val stk_root(const stk_plan *p, stk_val v) { return p->home[v].root; }

#endif
