/* elect.h - which implementation runs each task, in how many parts, on how many threads, and which tasks share a
 * parallel region. */
#ifndef STK_GRAPH_ELECT_H
#define STK_GRAPH_ELECT_H

#include "graph/plan/plan.h"

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

/* owners.c: cuts a small product in two when it is a summand or a gradient that is used for an update at once. Is it
 * the head of its region (alone), or does it come on top of one? */
bool stk_plan_own(stk_plan *p, const stk_election *e, int64_t k, bool alone);
/* Small gradients and their updates go to the end, where they share one region. */
void stk_plan_gradients_last(stk_plan *p);
/* Does one write what the other touches? Then their order is fixed. */
bool stk_tasks_are_ordered(const stk_plan *p, const stk_task *a, const stk_task *b);
/* May task k run before those from `to` on? Moves it there. */
bool stk_task_moves(const stk_plan *p, int64_t k, int64_t to);
void stk_task_move(stk_plan *p, int64_t k, int64_t to);
/* Does the second read what the first one writes? */
bool stk_task_feeds(const stk_plan *p, const stk_task *from, const stk_task *to);
void stk_plan_scalars_first(stk_plan *p);

/* How a launch of this problem is cut. Depends on the problem only, never on the machine's threads. */
void stk_cut(const stk_impl *impl, const void *params, double flops, double bytes, int64_t *units,
             int32_t *parts);

#endif
