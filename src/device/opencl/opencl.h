/* opencl.h - a device behind OpenCL 1.2: what it is, the programs it has built, and how a task becomes launches.
 *
 *     opencl.c    finding and opening devices, names          queue.c     memory, copies, events
 *     programs.c  kernel text to programs, kept on disk       build.c     a task's launches: kernels, arguments, grids
 *     sequence.c  loading and running a plan                  recipes_*.c one function per kernel id: which launches it is
 *     text/       the kernels, in a dialect that is OpenCL C and CUDA C (text/dialect.h) */
#ifndef STK_DEVICE_OPENCL_OPENCL_H
#define STK_DEVICE_OPENCL_OPENCL_H

#include "device/opencl/api.h"
#include "device/plan.h"

#include <pthread.h>

typedef struct stk_cl_program stk_cl_program;

/* The host is at most so many marks of so many runs ahead of the device. */
enum { STK_CL_AHEAD = 4, STK_CL_MARK_RUNS = 8 };

typedef struct stk_cl_device {
    stk_device device;
    const stk_cl *cl;
    cl_device_id id;
    cl_context context;
    cl_command_queue queue, transfers;
    /* facts */
    bool is_cpu; /* wide vectors and caches instead of many small threads */
    bool has_f64, exact_division;
    int32_t units;
    size_t group_limit, parameter_limit;
    uint64_t memory, largest;
    /* how far it is, under the lock */
    cl_event mark[STK_CL_AHEAD];
    int64_t runs;
    cl_int lost;                  /* the error after which nothing is believed any more; atomic */
    char about[160], driver[192]; /* name for people; everything that a compiled program hangs on */
    /* programs that were built, and what it took */
    pthread_mutex_t lock;
    stk_cl_program *programs;
    int64_t built, found;
    double build_ms;
} stk_cl_device;

static inline stk_cl_device *stk_cl_of(stk_device *d) { return (stk_cl_device *)d; }

/* STK_ERR_DEVICE (or memory): "opencl:0: WHAT: CL_OUT_OF_RESOURCES; ..." */
stk_status stk_cl_fail(stk_cl_device *d, const char *what, cl_int code, stk_error *err);

/* ---- memory and queues (queue.c) ------------------------------------------------------------------------- */

typedef struct stk_cl_block {
    stk_block head;
    cl_mem mem;
} stk_cl_block;

static inline cl_mem stk_cl_mem_of(const stk_block *b) { return ((const stk_cl_block *)b)->mem; }
extern const stk_memory_vt stk_cl_memory;
extern const stk_queue_vt stk_cl_queue; /* without run */

/* ---- programs (programs.c) ------------------------------------------------------------------------------- */

/* One text of text/, by the name of its file; or text made for the occasion. */
typedef struct stk_cl_source {
    const char *name; /* "gemm.cl": for messages */
    const char *text;
    size_t size;
} stk_cl_source;
const stk_cl_source *stk_cl_text(const char *name);

/* The program of this text with these options ("-DSK_R=float"), built at its first use. It belongs to the device. */
stk_status stk_cl_program_get(stk_cl_device *d, const stk_cl_source *source, const char *options,
                              cl_program *out, stk_error *err);
void stk_cl_programs_release(stk_cl_device *d);

/* ---- sequences (sequence.c) ------------------------------------------------------------------------------ */

stk_status stk_cl_arrange(stk_device *d, stk_plan *p, const stk_arrange_options *o, stk_error *err);
stk_status stk_cl_load(stk_device *d, stk_plan *p, stk_sequence **out, stk_error *err);
void stk_cl_unload(stk_sequence *s);
stk_status stk_cl_run(stk_sequence *s, const stk_sequence_run *run, stk_error *err);
void stk_cl_report(const stk_plan *p, int64_t task, stk_task_report *out);

#endif
