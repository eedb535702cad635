/* launch.h - a task as the CPU runs it, with plain pointers, and what an implementation of a kernel id is.
 *
 * A launch covers `units` (rows, images, elements) cut into `parts` that depend on the shape only, never on the number
 * of threads: threads change who computes a part, not what is computed, so results have the same bits for any
 * thread count. */
#ifndef STK_DEVICE_CPU_LAUNCH_H
#define STK_DEVICE_CPU_LAUNCH_H

#include "device/device.h"

typedef struct stk_launch stk_launch;
typedef struct stk_impl stk_impl;

/* An arg that lives only inside its group, cut along with the units: instead of a whole array, each thread has
 * memory for one part of it, used again for the next part while it is in cache. arg[] holds the address for the
 * first thread. */
typedef struct stk_local {
    int32_t arg;
    int32_t pad;
    int64_t unit;  /* bytes of one unit of the group */
    int64_t share; /* bytes from one thread's memory to the next one's */
} stk_local;

typedef struct stk_index_note stk_index_note; /* index_note.h */

/* What a part has added up for itself: n numbers, floats or doubles (sums.h). */
typedef struct stk_sums {
    void *at;
    int64_t n;
    stk_lane lane;
} stk_sums;

enum { STK_MOST_LOCAL_ARGS = 64 }; /* args of a launch that has any */

struct stk_launch {
    /* Hot: what the loop reads. */
    void (*run)(const stk_launch *launch, int64_t lo, int64_t hi, int part);
    void **arg;         /* inputs, then outputs (per segment for chains) */
    const void *params; /* the kernel id's problem struct */
    void *scratch;      /* impl->scratch() bytes, alive during this launch only */
    void *room;    /* impl->room() bytes, alive during one part: that of the thread which runs it */
    void *state;   /* made by impl->prepare */
    int64_t units; /* cut into parts: part p covers units*p/parts .. units*(p+1)/parts */
    /* run() gets these bounds times scale (a chain counts elements, its group counts rows) */
    int64_t scale;
    int32_t parts;
    int32_t threads; /* how many threads pay off here */
    int32_t locals;
    const stk_local *local;
    int64_t room_share; /* bytes from one thread's room to the next one's; 0: none is asked for */
    bool follows; /* runs part by part behind the launch before it, in the same parallel region */
    int32_t solo; /* p + 1: all of it belongs to part p of the region; 0: it is shared out */
    /* Cold: for election, reports and errors. */
    int32_t kernel; /* stk_kernel */
    int32_t args;
    const stk_impl *impl;
    const char *label; /* op name for the trace: a literal, or interned there */
    /* program and place in it, for the trace; 0: made by hand, below 1 << 24 otherwise */
    uint32_t tag;
    double flops, bytes;
    stk_index_note *note; /* where an index out of range is told; NULL: nobody asks */
};

/* What a device writes into the arg of a launch's spans: the tag, and the part (255: that one or a later one). */
static inline uint32_t stk_launch_span_arg(const stk_launch *l, int32_t part)
{
    return stk_task_span_arg(l->tag, part);
}

/* One implementation of one kernel id on one device. Optional slots may be NULL; the default is named. */
struct stk_impl {
    /* "avx2", "onednn", "ref": shown in profiles and used by STOKER_KERNEL=op:name */
    const char *name;
    int32_t kernel; /* stk_kernel */
    int32_t rank; /* deterministic mode takes the supported one with the lowest rank; ref is 100 */
    bool (*supports)(const void *params); /* (optional) default: yes */
    int64_t (*units)(const void *params); /* (optional) default: 1 */
    int64_t (*grain)(const void *params); /* (optional) fewest units worth a part: 1 */
    /* (optional) fewest units of a part that runs behind another one, whose results are in cache; default: grain */
    int64_t (*least)(const void *params);
    /* (optional) bit i: unit u touches only the u-th share of arg i. Such args can pass from launch to launch
     * inside one parallel region, while they are still in cache. Default: none. */
    uint32_t (*aligned)(const void *params);
    int64_t (*scratch)(const void *params, int32_t parts); /* (optional) bytes; default: 0 */
    /* (optional) bytes that a part needs only while it runs. A thread uses the same ones for part after part, so they
     * stay in its cache; pieces of scratch, one per part, do not. Default: 0. */
    int64_t (*room)(const void *params);
    stk_status (*prepare)(stk_launch *launch, stk_error *err); /* (optional) fills state */
    void (*discard)(stk_launch *launch);                       /* (optional) frees state */
    /* (optional) what all parts share is made once, before the first part, in pieces that the threads take: weights packed into scratch.
     * Reads only args that are not `aligned`: those are whole before the group begins. The room is that of the thread, as in run. */
    int64_t (*pieces)(const stk_launch *launch);
    void (*ready)(const stk_launch *launch, int64_t piece);
    void (*run)(const stk_launch *launch, int64_t lo, int64_t hi, int part);
    /* (optional) sums that each part makes in its piece of scratch; n = 0: none this time. Once all parts have run they are added up in
     * the order of the parts, by all threads, before finish() brings the total (stk_launch_total) to where it belongs. */
    stk_sums (*sums)(const stk_launch *launch, int32_t part);
    /* (optional) runs once after all parts */
    void (*finish)(const stk_launch *launch);
};

#endif
