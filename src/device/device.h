/* device.h - the device contract, by concern: what it can do, memory, a queue, kernels.
 *
 * A device knows no graph. It is handed a plan (plan.h): tasks over values, each a kernel id with its problem. It says
 * which of them it takes, puts them in its own order, and loads them into a sequence that can be run again and again.
 *
 *     supports -> arrange -> (memory is planned) -> load -> run, run, run ... -> unload
 *
 * Memory of a device comes in blocks. An address is a block and an offset; only the device itself knows what stands
 * behind a block, and nobody else computes with its pointers: a block may well be a cl_mem.
 *
 * How to write one (src/device/apart is a small one, and complete):
 *   - a row in drivers.def, and stk_driver_KIND with count and open in a folder of its own;
 *   - open fills in stk_device: vt, caps. Structs of yours start with the ones of this file (stk_block, stk_sequence);
 *   - several threads may use a device at once (eager calls here, a program there): what is queued by one thread keeps
 *     its order, calls of different threads may mix between any two. One sequence is run by one thread at a time;
 *   - what fails late (a kernel that was queued) is reported by the next call that returns a status, and from then on;
 *   - kernels write spans into a row of the trace that is marked as one of compute, transfers into one of transfers
 *     (base/trace.h: a thread of your own marks itself, times that come from a card go through stk_trace_row_span);
 *     arg of a span is stk_task_span_arg(task->tag). */
#ifndef STK_DEVICE_DEVICE_H
#define STK_DEVICE_DEVICE_H

#include "base/status.h"
#include "device/kernels.h"
#include "stoker/device.h"

typedef struct stk_plan stk_plan;
typedef struct stk_event stk_event; /* devices say what it is */

/* ---- addresses ------------------------------------------------------------------------------------------- */

/* One allocation. Devices put more behind it (a cl_mem, say). `host` is for devices that share the host's memory; all
 * others leave it NULL, or let it point to where touching is a fault. */
typedef struct stk_block {
    stk_device *device;
    char *host;
    size_t bytes;
} stk_block;

/* Without a block: memory of the host, for devices that share it. */
typedef struct stk_address {
    stk_block *block;
    int64_t offset;
} stk_address;

static inline stk_address stk_address_of(stk_block *block, int64_t offset)
{
    return (stk_address){block, offset};
}
static inline stk_address stk_address_host(const void *p)
{
    return (stk_address){NULL, (int64_t)(intptr_t)p};
}
static inline stk_address stk_address_plus(stk_address a, int64_t bytes)
{
    a.offset += bytes;
    return a;
}
static inline bool stk_address_is_null(stk_address a) { return !a.block && !a.offset; }
static inline bool stk_address_equal(stk_address a, stk_address b)
{
    return a.block == b.block && a.offset == b.offset;
}
/* What the host touches; only where the device shares its memory. */
static inline void *stk_address_pointer(stk_address a)
{
    return (void *)((a.block ? (uintptr_t)a.block->host : 0) + (uintptr_t)a.offset);
}

/* ---- what it can do -------------------------------------------------------------------------------------- */

/* Filled in by open, of this very device; never changes. */
typedef struct stk_device_caps {
    bool shares_memory; /* works on the host's memory: an address may be a pointer of the host */
    bool complete;      /* takes every problem: nobody has to ask */
    /* "auto" does not pick it: a test device, an OpenCL device that is the processor itself */
    bool only_by_name;
    /* Small products with trained weights are wanted as so many summands; 0: whole. */
    int32_t owners;
    bool joins_updates;    /* a launch costs more than a cache saves: updates of any size in one */
    int64_t largest_block; /* bytes; 0: as much as there is. Larger arenas are cut up (plan.h) */
    int64_t memory;        /* bytes of its own; 0: those of the host */
} stk_device_caps;

/* ---- memory ---------------------------------------------------------------------------------------------- */

typedef struct stk_memory_vt {
    /* Zeroed: values that no task writes are read as zeros. NULL when out of memory; at most caps.largest_block bytes,
     * at least one. Aligned to STK_ALIGN at offset 0, and so is every value that the planner puts there. */
    stk_block *(*alloc)(stk_device *d, size_t bytes);
    /* What is queued may still use it: wait for that, or put the release in line. NULL is fine. */
    void (*free)(stk_block *block);
    /* Host memory that goes up and comes down fastest (pinned), zeroed; NULL when there is none left. A device that
     * has no such kind takes plain pages. Offered to the input pipeline as an allocator (stk_host_memory). */
    void *(*host_alloc)(stk_device *d, size_t bytes);
    void (*host_free)(stk_device *d, void *memory, size_t bytes);
} stk_memory_vt;

/* ---- queue ----------------------------------------------------------------------------------------------- */

/* A loaded plan. Devices put more behind it. */
typedef struct stk_sequence {
    stk_device *device;
} stk_sequence;

typedef struct stk_sequence_run {
    int64_t first, count; /* which tasks of the sequence; control flow cuts it into pieces */
    /* what the plan's slots stand for in this run; read before run returns */
    const stk_address *slots;
    /* The block of numbers that change from run to run (plan.h), for plan->uniforms; read before run returns. The same
     * in all pieces of a run: it is enough to write it with the piece whose first is 0, which always comes (its count may
     * be 0). In line with everything else: a run that is still computing must not see the next one's numbers. */
    const void *uniforms;
    size_t uniform_bytes;
} stk_sequence_run;

/* One queue in which runs, copies, set and get are done in the order they were asked for, and beside it a lane for
 * transfers, which has its own order. An event is a moment of either; waiting for one that was never recorded is no
 * wait, and recording it again makes it the later moment. Nobody else calls a flush: what was queued must begin without
 * one. A device bounds how far ahead of it the host may queue (some tens of runs), by waiting in `run`. */
typedef struct stk_queue_vt {
    /* Done when they return, behind everything queued before. */
    stk_status (*set)(stk_device *d, stk_address to, const void *from, size_t bytes,
                      stk_error *err);
    stk_status (*get)(stk_device *d, void *to, stk_address from, size_t bytes, stk_error *err);
    stk_status (*wait)(stk_device *d, stk_error *err); /* until the queue is through */
    /* Queued. The host's memory is left alone until wait, or join of an event recorded behind, has returned; it need
     * not be of host_alloc. */
    stk_status (*set_later)(stk_device *d, stk_address to, const void *from, size_t bytes,
                            stk_error *err);
    stk_status (*get_later)(stk_device *d, void *to, stk_address from, size_t bytes,
                            stk_error *err);
    stk_status (*copy)(stk_device *d, stk_address to, stk_address from, size_t bytes,
                       stk_error *err); /* on the device; the two do not overlap */
    stk_status (*run)(stk_sequence *s, const stk_sequence_run *run, stk_error *err);
    /* In the lane for transfers: begins after an event of the queue (NULL: at once), `done` is when it has ended. The
     * host's memory stays as it is until then. */
    stk_status (*send)(stk_device *d, stk_address to, const void *from, size_t bytes,
                       stk_event *after, stk_event *done, stk_error *err);
    stk_event *(*event_new)(stk_device *d); /* NULL when out of memory */
    void (*event_free)(stk_device *d, stk_event *e);
    /* e is when all that is queued now is done. */
    stk_status (*record)(stk_device *d, stk_event *e, stk_error *err);
    stk_status (*await)(stk_device *d, stk_event *e, stk_error *err); /* the queue waits for e */
    stk_status (*join)(stk_device *d, stk_event *e, stk_error *err);  /* the host waits for e */
} stk_queue_vt;

/* ---- kernels --------------------------------------------------------------------------------------------- */

typedef struct stk_arrange_options {
    int32_t threads; /* at most this many; 0: all of the device */
    bool deterministic, ref, no_group;
    const char *kernels; /* "gemm:xsmm": forced ones; NULL: as STOKER_KERNEL says */
    int64_t largest; /* bytes of a block of the device, which scratch has to fit in; 0: no limit */
} stk_arrange_options;

/* What a task became, for reports. */
typedef struct stk_task_report {
    const char *impl; /* "-": none of the device; a text that stays */
    int64_t units;
    int32_t parts, threads;
    bool follows; /* shares a parallel region with the one before */
} stk_task_report;

typedef struct stk_kernels_vt {
    /* Is there an implementation for this problem? If not, why: a text of at most `size` bytes. Asked node by node before
     * chains are joined, an elementwise node as a chain of one operation: who takes the operations takes the chain.
     * Control flow is nobody's kernel; its bodies are programs of their own on the same device. Asked for every node of every
     * program: compile nothing here. */
    bool (*supports)(stk_device *d, stk_kernel kernel, const void *params, char *why, size_t size);
    /* (optional) Name of implementation i of a kernel, whatever the problem; NULL behind the last. */
    const char *(*name)(stk_device *d, stk_kernel kernel, int32_t i);
    /* The device's way with a plan: the order of the tasks (nobody reads before it is written), for each its time
     * (task->group; plan->groups: how many) and its scratch_bytes, an implementation, whatever else it notes in task->own.
     * A device that runs one task after the other gives each a time of its own: stk_plan_in_order (plan.h). */
    stk_status (*arrange)(stk_device *d, stk_plan *p, const stk_arrange_options *o, stk_error *err);
    /* (optional) Lifetimes are known: how much room each value takes in the arena. */
    void (*rooms)(stk_device *d, stk_plan *p);
    /* Addresses are known (task->link, task->scratch): everything that can be done before the first run, compiling
     * kernels and binding fixed arguments included. Tasks whose kernel is -1 are skipped, and never part of a run. */
    stk_status (*load)(stk_device *d, stk_plan *p, stk_sequence **out, stk_error *err);
    void (*unload)(stk_sequence *s); /* waits for its runs */
    void (*report)(const stk_plan *p, int64_t task, stk_task_report *out);
} stk_kernels_vt;

/* ---- device ---------------------------------------------------------------------------------------------- */

typedef struct stk_device_vt {
    stk_memory_vt memory;
    stk_queue_vt queue;
    stk_kernels_vt kernels;
    /* detail, threads, fork_join_ns; the rest is filled in from caps. */
    void (*describe)(stk_device *d, stk_device_report *out);
    void (*release)(stk_device *d); /* nobody uses it any more; ends what is queued */
} stk_device_vt;

/* Devices put more behind it. open sets vt and caps, the registry the rest. */
struct stk_device {
    const stk_device_vt *vt;
    stk_device_caps caps;
    int32_t refs;       /* atomic */
    int32_t asked;      /* threads it was opened with */
    int32_t process;    /* that opened it: queues do not live on in a child of fork */
    stk_device *next;   /* among those that are open */
    char name[64];      /* "cpu:0" */
    int64_t used, peak; /* bytes of its blocks, and the most they were; atomic */
    /* Blocks that were freed so far: after one, what looks like an old block may be a new one; atomic. */
    int64_t freed;
};

/* Devices of their own memory tell what they take (bytes > 0) and give back. */
static inline void stk_device_takes(stk_device *d, int64_t bytes)
{
    if (bytes < 0) __atomic_add_fetch(&d->freed, 1, __ATOMIC_RELAXED);
    int64_t now = __atomic_add_fetch(&d->used, bytes, __ATOMIC_RELAXED);
    int64_t most = __atomic_load_n(&d->peak, __ATOMIC_RELAXED);
    while (now > most && !__atomic_compare_exchange_n(&d->peak, &most, now, true, __ATOMIC_RELAXED,
                                                      __ATOMIC_RELAXED))
        ;
}

static inline bool stk_device_shares(const stk_device *d) { return d->caps.shares_memory; }

/* Whether this process may use it: a child of fork would wait forever for threads that stayed with its parent. */
STK_MUST_USE stk_status stk_device_usable(const stk_device *device, stk_error *err);

/* arg of the spans of a task's launch; `part` is for devices that cut it. */
static inline uint32_t stk_task_span_arg(uint32_t tag, int32_t part)
{
    return tag << 8 | (uint32_t)(part < 255 ? part : 255);
}

/* One kind of device: "cpu:0", "cpu:1", ... are those of kind "cpu". A row in drivers.def each. count is called often
 * and from any thread: it asks the system once. A kind whose library is missing counts 0. */
typedef struct stk_driver {
    const char *kind;
    int32_t (*count)(void); /* how many this machine has */
    stk_status (*open)(int32_t index, int32_t threads, stk_device **out, stk_error *err);
    /* (optional) What is there and cannot be used, and what to do about it; "": nothing. */
    const char *(*missing)(void);
} stk_driver;

#endif
