/* arrange.h - how the CPU does a plan: which implementation runs each task, in how many parts, on how many threads, and
 * which tasks share a parallel region. */
#ifndef STK_DEVICE_CPU_PLAN_ARRANGE_H
#define STK_DEVICE_CPU_PLAN_ARRANGE_H

#include "device/cpu/cpu.h"
#include "device/plan.h"

/* What the CPU notes about a task. */
typedef struct stk_cut {
    const stk_impl *impl;
    int64_t units, scale;
    int32_t parts, threads;
    bool follows; /* in the region of the one before */
    bool few;     /* heads a region of rows that are shared out although they are few */
    bool owned;   /* cut in two by owners.c, which one thread does without */
    int32_t solo; /* p + 1: in this region, but all of it in part p (stk_launch) */
} stk_cut;
static inline stk_cut *stk_cut_of(const stk_task *t) { return t->own; }

/* About a value that never leaves its region: each thread has memory for one part of it (stk_local). */
typedef struct stk_slice {
    int64_t unit, share;
} stk_slice;
static inline const stk_slice *stk_slice_of(const stk_home *h) { return h->own; }

typedef struct stk_election {
    const stk_cpu *cpu;
    int32_t threads; /* most to use */
    double fork_join_ns;
    bool deterministic, ref, no_group;
    const char *kernels; /* forced ones; NULL: as STOKER_KERNEL says */
    int64_t largest;     /* bytes of scratch and rooms; 0: no limit */
    double spent_ms;     /* on timing candidates */
} stk_election;

/* elect.c: fills implementation, units, parts, threads, scratch of every task. */
stk_status stk_elect(stk_plan *p, stk_election *e, const char *machine, stk_error *err);
/* How a launch of this problem is cut. Depends on the problem only, never on the machine's threads. */
void stk_cut_problem(const stk_impl *impl, const void *params, double flops, double bytes,
                     int64_t *units, int32_t *parts);

/* groups.c: fills follows, scale, group of every task. */
void stk_plan_groups(stk_plan *p, const stk_election *e);
/* Is arg i of the task cut along with its units, when the group has `units` of them? */
bool stk_arg_is_cut(const stk_task *t, int32_t i, int64_t units);

/* owners.c: cuts a small product in two when it is a summand or a gradient that is used for an update at once. Is it
 * the head of its region (alone), or does it come on top of one? */
bool stk_plan_own(stk_plan *p, const stk_election *e, int64_t k, bool alone);
/* Is the task, with few rows, made of the summands of a product that has two owners? Then these share its rows. */
bool stk_plan_share_rows(stk_plan *p, const stk_election *e, int64_t k);
/* Small gradients and their updates go to the end, where they share one region; so does what is very small and can wait. */
void stk_plan_gradients_last(stk_plan *p);
/* Is task k so small that one owner does all of it, in the region of the tasks from `first` to next - 1? Which one should; -1: it is
 * not. */
int32_t stk_plan_alone(const stk_plan *p, int64_t first, int64_t next, int64_t k);
/* s + 1: the task works on the halves of owner s (the graph's halves pass makes them); 0: on none, or on those of both. */
int32_t stk_plan_side(const stk_plan *p, int64_t k);
/* The task is not cut into parts. */
void stk_plan_keep_whole(stk_plan *p, int64_t k);

/* order.c: does one write what the other touches? Then their order is fixed. */
bool stk_tasks_are_ordered(const stk_plan *p, const stk_task *a, const stk_task *b);
/* May task k run before those from `to` on? Moves it there. */
bool stk_task_moves(const stk_plan *p, int64_t k, int64_t to);
void stk_task_move(stk_plan *p, int64_t k, int64_t to);
/* Does the second read what the first one writes? */
bool stk_task_feeds(const stk_plan *p, const stk_task *from, const stk_task *to);
void stk_plan_scalars_first(stk_plan *p);

/* The slots of stk_kernels_vt, for every device that computes with the kernels of the CPU. */
stk_status stk_cpu_arrange(stk_device *d, stk_plan *p, const stk_arrange_options *o,
                           stk_error *err);
void stk_cpu_rooms(stk_device *d, stk_plan *p); /* rooms.c */
void stk_cpu_report(const stk_plan *p, int64_t task, stk_task_report *out);

#endif
