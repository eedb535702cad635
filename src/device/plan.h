/* plan.h - the work of a program as a device sees it: tasks, the values they work on, and where each of these lives.
 *
 * A task is one kernel id with its problem. Tasks stand in an order in which every input is ready; a device may change
 * it as long as nobody reads before it is written. Values that share memory have one root. The task's time counts the
 * stretches after which memory may be used again; tasks of one time may run at the same moment.
 *
 *     arg[] inputs, then outputs: values            link[] the same as addresses, or slots that each run fills in
 *
 * The uniforms are one small block of numbers that come with every run: the number of the step (int64 at offset 0), then
 * inputs of a few bytes (a learning rate, a seed, a flag), which so need no transfer of their own. Tasks read them like any
 * value, at known addresses inside plan->uniforms. */
#ifndef STK_DEVICE_PLAN_H
#define STK_DEVICE_PLAN_H

#include "base/memory.h"
#include "base/shape.h"
#include "device/device.h"

/* An address that is known, or one that comes with every run. */
typedef struct stk_link {
    stk_address at; /* of a slot: only the offset counts */
    int32_t slot;   /* -1: none */
} stk_link;

/* Indices that have to be in range, and how a failure speaks of them. A device whose kernels have no way to tell computes
 * with zeros instead, as kernels_index.h says. */
typedef struct stk_index_check {
    const char *who;           /* "gather of layer 'words'" */
    stk_shape index;           /* of the indices */
    int32_t depth;             /* their last axis holds so many coordinates; 0: each stands alone */
    int64_t dim[STK_MAX_RANK]; /* of each coordinate: it must be below */
} stk_index_check;

typedef struct stk_task {
    int32_t kernel;     /* stk_kernel; -1: not for the device (control flow) */
    int32_t node;       /* what it was made for; nothing to a device */
    const void *params; /* problem struct, in the plan's arena */
    int64_t params_size;
    int32_t nin, nout; /* per segment for chains */
    int32_t *arg;      /* inputs then outputs; chains: segments x (nin + nout) */
    int32_t nargs;
    int64_t count; /* chains: elements of all segments together */
    double flops, bytes;
    const char *label;            /* for the trace: a literal, or interned there */
    const stk_index_check *check; /* of its indices; NULL: they may be out of range */
    bool dead;
    /* filled by the device, in arrange */
    void *own;     /* what it notes, in the plan's arena */
    int32_t group; /* its time: values may share memory when their times do not meet */
    int64_t scratch_bytes;
    /* filled before loading */
    int32_t scratch_arena;
    int64_t scratch_at; /* in that arena */
    stk_address scratch;
    stk_link *link;
    uint32_t tag; /* program and place in it, for the trace */
} stk_task;

/* Where a value lives. Aliases share the buffer of another value at an offset. */
typedef enum stk_place {
    STK_AT_ARENA,
    STK_AT_INPUT,
    STK_AT_VARIABLE,
    STK_AT_CONST,
    STK_AT_UNIFORM, /* among the numbers that come with every run */
    STK_AT_RESULT,  /* memory that the caller gives for an output */
} stk_place;

typedef struct stk_home {
    int8_t place;   /* stk_place */
    int8_t side;    /* s + 1: only what belongs to owner s goes into it; 0: shared */
    int32_t root;   /* value that owns the buffer (itself when not an alias) */
    int64_t offset; /* bytes from the start of root's buffer */
    /* roots in the arena: */
    int64_t bytes, at;   /* size; offset in its arena once planned */
    int32_t arena;       /* which of them */
    int32_t first, last; /* times between which it is alive */
    int64_t room;        /* bytes it takes in the arena */
    void *own;           /* what the device notes */
} stk_home;

enum { STK_MOST_ARENAS = 16 };

struct stk_plan {
    const struct stk_graph *g; /* what it was made from; devices do not look inside */
    stk_arena arena;           /* everything the plan and its sequence point to */
    stk_task *tasks;
    int64_t ntasks, cap_tasks;
    stk_home *home; /* per value */
    int64_t nvalues;
    int32_t groups; /* times */
    /* One arena, or several where it would be larger than a block of the device may be. */
    int32_t narenas;
    int64_t arena_size[STK_MOST_ARENAS];
    int64_t arena_bytes;                     /* of all */
    bool no_fuse, outside_results, join_all; /* join_all: caps.joins_updates of its device */
    double election_ms;                      /* spent on timing implementations */
    /* filled before loading */
    stk_block *memory[STK_MOST_ARENAS]; /* the arenas on the device */
    stk_address uniforms;               /* where a run's uniforms go; no block: nobody reads them */
    size_t uniform_bytes;               /* how many come with a run */
    int32_t nslots;
};

static inline bool stk_is_output_arg(const stk_task *t, int32_t i)
{
    return i % (t->nin + t->nout) >= t->nin;
}
/* For arrange: the order stays, one task after the other. */
static inline void stk_plan_in_order(stk_plan *p)
{
    for (int64_t k = 0; k < p->ntasks; k++) p->tasks[k].group = (int32_t)k;
    p->groups = (int32_t)p->ntasks;
}
static inline int32_t stk_root(const stk_plan *p, int32_t v) { return p->home[v].root; }

#endif
