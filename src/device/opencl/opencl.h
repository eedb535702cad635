/* opencl.h - a device behind OpenCL 1.2. Kernels, recipes and the loading of plans are those of cl/.
 *
 *     opencl.c    finding and opening devices, names          queue.c     memory, copies, events
 *     compile.c   text to programs, kernels, arguments        run.c       a loaded plan, run
 *     api.c       the library, opened late */
#ifndef STK_DEVICE_OPENCL_OPENCL_H
#define STK_DEVICE_OPENCL_OPENCL_H

#include "device/cl/cl.h"
#include "device/opencl/api.h"

/* The host is at most so many marks of so many runs ahead of the device. */
enum { STK_CL_AHEAD = 4, STK_CL_MARK_RUNS = 8 };

typedef struct stk_opencl {
    stk_cl_device base;
    const stk_cl *cl;
    cl_device_id id;
    cl_context context;
    cl_command_queue queue, transfers;
    /* how far it is, under the lock */
    cl_event mark[STK_CL_AHEAD];
    int64_t runs;
    cl_int lost; /* the error after which nothing is believed any more; atomic */
} stk_opencl;

static inline stk_opencl *stk_opencl_of(stk_device *d) { return (stk_opencl *)d; }

/* STK_ERR_DEVICE (or memory): "opencl:0: WHAT: CL_OUT_OF_RESOURCES; ..." */
stk_status stk_opencl_fail(const stk_opencl *d, const char *what, cl_int code, stk_error *err);

static inline cl_mem stk_cl_mem_of(const stk_block *b) { return (cl_mem)stk_cl_given(b); }
extern const stk_memory_vt stk_opencl_memory;   /* queue.c */
extern const stk_queue_vt stk_opencl_queue;     /* queue.c, without run */
extern const stk_cl_backend stk_opencl_backend; /* compile.c */
stk_status stk_opencl_run(stk_sequence *s, const stk_sequence_run *run, stk_error *err);

#endif
