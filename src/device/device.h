/* device.h - the device contract, by concern: what it can do, memory, a queue, kernels.
 *
 * A device knows no graph. It is handed a plan (plan.h): tasks over values, each a kernel id with its problem. It says
 * which of them it takes, puts them in its own order, and loads them into a sequence that can be run again and again.
 *
 *     supports -> arrange -> (memory is planned) -> load -> run, run, run ... -> unload
 *
 * Memory of a device comes in blocks. An address is a block and an offset; only the device itself knows what stands
 * behind a block, and nobody else computes with its pointers. */
#ifndef STK_DEVICE_DEVICE_H
#define STK_DEVICE_DEVICE_H

#include "base/status.h"
#include "device/kernels.h"
#include "stoker/device.h"

typedef struct stk_plan stk_plan;
typedef struct stk_event stk_event; /* devices say what it is */

/* ---- addresses ------------------------------------------------------------------------------------------- */

/* Devices put more behind it. */
typedef struct stk_block {
    stk_device *device;
    char *host; /* where the host may touch it; NULL: nowhere */
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

typedef struct stk_device_caps {
    bool shares_memory; /* works on the host's memory: an address may be a pointer of the host */
    bool complete;      /* takes every problem: nobody has to ask */
    int32_t
        owners; /* small products with trained weights are wanted as so many summands; 0: whole */
} stk_device_caps;

/* ---- memory ---------------------------------------------------------------------------------------------- */

typedef struct stk_memory_vt {
    stk_block *(*alloc)(stk_device *d, size_t bytes); /* zeroed; NULL when out of memory */
    void (*free)(stk_block *block);
    /* Host memory that goes up and comes down fastest (pinned), zeroed; NULL when there is none left. */
    void *(*host_alloc)(stk_device *d, size_t bytes);
    void (*host_free)(stk_device *d, void *memory, size_t bytes);
} stk_memory_vt;

/* ---- queue ----------------------------------------------------------------------------------------------- */

/* A loaded plan. Devices put more behind it. */
typedef struct stk_sequence {
    stk_device *device;
} stk_sequence;

typedef struct stk_run {
    int64_t first, count;     /* which tasks of the sequence */
    const stk_address *slots; /* what the plan's slots stand for in this run */
    const void *
        uniforms; /* the few numbers that change from run to run, for the plan's address; read at once */
    size_t uniform_bytes;
} stk_run;

/* One queue in which runs, copies, set and get are done in the order they were asked for, and beside it a lane for
 * transfers. An event is a moment of either; waiting for one that was never recorded is no wait. */
typedef struct stk_queue_vt {
    /* Done when they return, behind everything queued before. */
    stk_status (*set)(stk_device *d, stk_address to, const void *from, size_t bytes,
                      stk_error *err);
    stk_status (*get)(stk_device *d, void *to, stk_address from, size_t bytes, stk_error *err);
    stk_status (*wait)(stk_device *d, stk_error *err); /* until all is done */
    /* Queued. */
    stk_status (*copy)(stk_device *d, stk_address to, stk_address from, size_t bytes,
                       stk_error *err);
    stk_status (*run)(stk_sequence *s, const stk_run *run, stk_error *err);
    /* In the lane for transfers: begins after an event of the queue, ends with another one. The host's memory stays as
     * it is until then. */
    stk_status (*send)(stk_device *d, stk_address to, const void *from, size_t bytes,
                       stk_event *after, stk_event *done, stk_error *err);
    stk_event *(*event_new)(stk_device *d); /* NULL when out of memory */
    void (*event_free)(stk_device *d, stk_event *e);
    stk_status (*record)(stk_device *d, stk_event *e,
                         stk_error *err);                             /* after what is queued now */
    stk_status (*await)(stk_device *d, stk_event *e, stk_error *err); /* the queue does */
    stk_status (*join)(stk_device *d, stk_event *e, stk_error *err);  /* the host does */
} stk_queue_vt;

/* ---- kernels --------------------------------------------------------------------------------------------- */

typedef struct stk_arrange_options {
    int32_t threads; /* at most this many; 0: all of the device */
    bool deterministic, ref, no_group;
    const char *kernels; /* "gemm:xsmm": forced ones; NULL: as STOKER_KERNEL says */
} stk_arrange_options;

/* What a task became, for reports. */
typedef struct stk_task_report {
    const char *impl; /* "-": none of the device */
    int64_t units;
    int32_t parts, threads;
    bool follows; /* shares a parallel region with the one before */
} stk_task_report;

typedef struct stk_kernels_vt {
    /* Is there an implementation for this problem? If not, why: a text of at most `size` bytes. */
    bool (*supports)(stk_device *d, stk_kernel kernel, const void *params, char *why, size_t size);
    /* (optional) Name of implementation i of a kernel, whatever the problem; NULL behind the last. */
    const char *(*name)(stk_device *d, stk_kernel kernel, int32_t i);
    /* The device's own order of the plan's tasks: their times, their scratch. */
    stk_status (*arrange)(stk_device *d, stk_plan *p, const stk_arrange_options *o, stk_error *err);
    /* (optional) Lifetimes are known: how much room each value takes in the arena. */
    void (*rooms)(stk_device *d, stk_plan *p);
    /* Addresses are known: everything that can be done before the first run. */
    stk_status (*load)(stk_device *d, stk_plan *p, stk_sequence **out, stk_error *err);
    void (*unload)(stk_sequence *s);
    void (*report)(const stk_plan *p, int64_t task, stk_task_report *out);
} stk_kernels_vt;

/* ---- device ---------------------------------------------------------------------------------------------- */

typedef struct stk_device_vt {
    stk_device_caps caps;
    stk_memory_vt memory;
    stk_queue_vt queue;
    stk_kernels_vt kernels;
    void (*describe)(stk_device *d, stk_device_report *out);
    void (*release)(stk_device *d);
} stk_device_vt;

struct stk_device {
    const stk_device_vt *vt;
    int32_t refs;     /* atomic */
    int32_t asked;    /* threads it was opened with */
    stk_device *next; /* among those that are open */
    char name[64];    /* "cpu:0" */
};

static inline bool stk_device_shares(const stk_device *d) { return d->vt->caps.shares_memory; }

/* One kind of device: "cpu:0", "cpu:1", ... are those of kind "cpu". A row in drivers.def each. */
typedef struct stk_driver {
    const char *kind;
    int32_t (*count)(void); /* how many this machine has */
    stk_status (*open)(int32_t index, int32_t threads, stk_device **out, stk_error *err);
} stk_driver;

#endif
