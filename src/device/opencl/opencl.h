/* opencl.h - a device behind OpenCL 1.2. Kernels, recipes and the loading of plans are those of cl/.
 *
 *     opencl.c    finding and opening devices, names          queue.c     memory, copies, events
 *     compile.c   text to programs, kernels, arguments        run.c       a loaded plan, run
 *     api.c       the library, opened late                    watch.c     when commands ran, for the trace */
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
    /* The queues are others once they are watched (watch.c): who uses them holds this. */
    pthread_rwlock_t queues;
    struct stk_opencl_watch *watch; /* NULL: never traced so far */
} stk_opencl;

/* A call that uses the queues. */
#define STK_CL_QUEUED(d, call)                                                                     \
    ({                                                                                             \
        pthread_rwlock_rdlock(&(d)->queues);                                                       \
        cl_int code_ = (call);                                                                     \
        pthread_rwlock_unlock(&(d)->queues);                                                       \
        code_;                                                                                     \
    })

static inline stk_opencl *stk_opencl_of(stk_device *d) { return (stk_opencl *)d; }

/* STK_ERR_DEVICE (or memory): "opencl:0: WHAT: CL_OUT_OF_RESOURCES; ..." */
stk_status stk_opencl_fail(const stk_opencl *d, const char *what, cl_int code, stk_error *err);

static inline cl_mem stk_cl_mem_of(const stk_block *b) { return (cl_mem)stk_cl_given(b); }
extern const stk_memory_vt stk_opencl_memory;   /* queue.c */
extern const stk_queue_vt stk_opencl_queue;     /* queue.c, without run */
extern const stk_cl_backend stk_opencl_backend; /* compile.c */

/* watch.c: rows of the trace. Copies in line with kernels have one of their own: rows do not overlap themselves. */
typedef enum stk_opencl_row {
    STK_CL_KERNELS,
    STK_CL_COPIES,
    STK_CL_SENDS,
    STK_CL_ROWS
} stk_opencl_row;
/* While tracing: makes sure that the queues know when their commands run. Before a run. */
void stk_opencl_watch_start(stk_opencl *d);
/* Where to put the event of a command that is to be seen: `to`, or NULL while nobody looks. */
cl_event *stk_opencl_watched(const stk_opencl *d, cl_event *to);
/* Takes the event, if there is one. */
void stk_opencl_note(stk_opencl *d, stk_opencl_row row, cl_event event, const char *name,
                     uint32_t arg);
void stk_opencl_harvest(stk_opencl *d); /* what is over goes into the trace */
void stk_opencl_watch_free(stk_opencl *d);

stk_status stk_opencl_run(stk_sequence *s, const stk_sequence_run *run, stk_error *err);

/* Cards of OpenCL, for gpu:N (gpus.c). */
int32_t stk_opencl_count_gpus(void);
stk_status stk_opencl_open_gpu(int32_t index, stk_device **out, stk_error *err);

#endif
