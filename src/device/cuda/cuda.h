/* cuda.h - a card behind the CUDA driver. Kernels, recipes and the loading of plans are those of cl/, the same text that OpenCL runs.
 *
 *     cuda.c      finding and opening cards                   queue.c     memory, copies, events
 *     errors.c    what errors mean, by errors.def
 *     compile.c   text to modules, kernels, arguments         run.c       a loaded plan, run: launches, graphs
 *     api.c       the libraries, opened late                  watch.c     when kernels and copies ran, for the trace */
#ifndef STK_DEVICE_CUDA_CUDA_H
#define STK_DEVICE_CUDA_CUDA_H

#include "device/cl/cl.h"
#include "device/cuda/api.h"

/* The host is at most so many marks of so many runs ahead of the card. */
enum { STK_CUDA_AHEAD = 4, STK_CUDA_MARK_RUNS = 8 };

typedef struct stk_cuda {
    stk_cl_device base;
    const stk_cu *cu;
    int id;
    CUcontext context;
    /* One computes, one sends batches up meanwhile; in the third one nothing ever runs: launches are put together to graphs there. */
    CUstream queue, transfers, drafts;
    int sm;             /* 86: compute capability 8.6 */
    int target;         /* what is compiled for: sm, or the last one the compiler knows */
    bool machine;       /* machine code, not PTX; under the lock of base */
    bool graphs;        /* STOKER_CUDA_GRAPHS=0: none */
    int64_t relaunched; /* runs that were one graph; atomic */
    /* how far it is, under the lock of base */
    CUevent mark[STK_CUDA_AHEAD];
    bool marked[STK_CUDA_AHEAD];
    int64_t runs;
    pthread_mutex_t drafting;
    int lost;                     /* the error after which nothing is believed any more; atomic */
    struct stk_cuda_watch *watch; /* NULL: never traced so far */
} stk_cuda;

static inline stk_cuda *stk_cuda_of(stk_device *d) { return (stk_cuda *)d; }

/* Every call into the driver works on the context of the calling thread. */
static inline int stk_cuda_enter(stk_cuda *d) { return d->cu->cuCtxSetCurrent(d->context); }

/* errors.c: STK_OK, or "gpu:0: WHAT: CUDA_ERROR_...; what to do". A card that was lost stays lost, whatever later calls say. */
stk_status stk_cuda_done(stk_cuda *d, const char *what, int code, stk_error *err);
stk_status stk_cuda_fail_opening(stk_cuda *d, int code, stk_error *err);

extern const stk_memory_vt stk_cuda_memory;   /* queue.c */
extern const stk_queue_vt stk_cuda_queue;     /* queue.c, without run */
extern const stk_cl_backend stk_cuda_backend; /* compile.c */

/* compile.c: a kernel gets all its places, when its plan is loaded; then it goes with its arguments into a stream. */
stk_status stk_cuda_ready(stk_cuda *d, stk_cl_step *step, stk_error *err);
int stk_cuda_launch(stk_cuda *d, const stk_cl_step *step, CUstream stream);

/* run.c */
stk_status stk_cuda_load(stk_device *d, stk_plan *p, stk_sequence **out, stk_error *err);
void stk_cuda_unload(stk_sequence *s);
stk_status stk_cuda_run(stk_sequence *s, const stk_sequence_run *run, stk_error *err);

/* watch.c: rows of the trace. Copies in line with kernels have one of their own: rows do not overlap themselves. */
typedef enum stk_cuda_row {
    STK_CUDA_KERNELS,
    STK_CUDA_COPIES,
    STK_CUDA_SENDS,
    STK_CUDA_ROWS
} stk_cuda_row;
/* A command that is to be seen: what stands before it in its stream. */
typedef struct stk_cuda_span {
    CUevent start, end; /* NULL: nobody looks */
    CUstream stream;
} stk_cuda_span;
void stk_cuda_watch_start(stk_cuda *d); /* while tracing: makes the rows. Before a run */
bool stk_cuda_watches(const stk_cuda *d);
stk_cuda_span stk_cuda_watch_begin(stk_cuda *d, CUstream stream);
void stk_cuda_watch_end(stk_cuda *d, stk_cuda_span *span, stk_cuda_row row, const char *name,
                        uint32_t arg);
void stk_cuda_harvest(stk_cuda *d); /* what is over goes into the trace */
void stk_cuda_watch_free(stk_cuda *d);

/* Cards that can be used, for gpu:N (gpus.c); and whether one of them sits there, so that OpenCL does not list it again. */
int32_t stk_cuda_count(void);
const char *stk_cuda_missing(void); /* what is there and not among them, and why; "": nothing */
stk_status stk_cuda_open(int32_t index, stk_device **out, stk_error *err);
bool stk_cuda_has(int domain, int bus, int slot);

#endif
