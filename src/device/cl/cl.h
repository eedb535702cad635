/* cl.h - kernel text in a dialect that is OpenCL C and CUDA C at once (text/dialect.h), and how a plan becomes launches of it. Two kinds of
 * device stand on it, opencl/ and cuda/; what they do in their own way is a stk_cl_backend.
 *
 *     recipes_*.c one function per kernel id: which launches it is         programs.c  text to programs, kept on disk
 *     build.c     a task's launches: kernels, arguments, grids             sequence.c  arranging and loading a plan
 *     endings.c   operations that are done while a product is stored       texts.c     the files of text/ */
#ifndef STK_DEVICE_CL_CL_H
#define STK_DEVICE_CL_CL_H

#include "device/plan.h"

#include <pthread.h>

typedef struct stk_cl_program stk_cl_program;
typedef struct stk_cl_device stk_cl_device;
typedef struct stk_cl_step stk_cl_step;

/* One text of text/, by the name of its file; or text made for the occasion. */
typedef struct stk_cl_source {
    const char *name; /* "gemm.cl": for messages */
    const char *text;
    size_t size;
} stk_cl_source;
const stk_cl_source *stk_cl_text(const char *name);

/* What a program and a kernel are is known to the backend alone. */
typedef struct stk_cl_backend {
    const char *log;    /* "STOKER_OPENCL_LOG": where a user may see what is built */
    const char *folder; /* of the cache folder: "opencl" */
    /* Of every text on this device, before those of its recipe. */
    void (*options)(const stk_cl_device *d, char *out, size_t size);
    /* From dialect.h, params.h and the text. *said: what the compiler said, to be freed by the caller; NULL: nothing. */
    stk_status (*build)(stk_cl_device *d, const stk_cl_source *text, const char *options,
                        void **program, char **said, stk_error *err);
    /* What a compiler made, to be kept; and a program out of that, NULL: does not fit (any more). stk_free'd by the caller. */
    size_t (*binary)(stk_cl_device *d, void *program, unsigned char **out);
    void *(*revive)(stk_cl_device *d, const unsigned char *binary, size_t size,
                    const char *options);
    void (*program_free)(stk_cl_device *d, void *program);
    /* A kernel with room for arguments of its own: the same one twice has two sets of them. */
    stk_status (*kernel_new)(stk_cl_device *d, void *program, const char *name, void **kernel,
                             stk_error *err);
    void (*kernel_free)(stk_cl_device *d, void *kernel);
    stk_status (*argument)(stk_cl_device *d, void *kernel, int32_t index, size_t bytes,
                           const void *value, stk_error *err);
} stk_cl_backend;

/* What both kinds of device have; they put more behind it. */
struct stk_cl_device {
    stk_device device;
    const stk_cl_backend *backend;
    /* facts */
    bool is_cpu; /* wide vectors and caches instead of many small threads */
    bool has_f64, exact_division;
    int32_t units;
    size_t group_limit, parameter_limit;
    size_t local_limit; /* bytes that a group shares; known of devices of type CPU */
    int64_t axis_limit; /* groups on the second and third axis of a grid; 0: any number */
    uint64_t memory, largest;
    char about[160], driver[192]; /* name for people; everything that a compiled program hangs on */
    /* programs that were built, and what it took */
    pthread_mutex_t lock;
    stk_cl_program *programs;
    int64_t built, found;
    double build_ms;
};

static inline stk_cl_device *stk_cl_of(stk_device *d) { return (stk_cl_device *)d; }
static inline const char *stk_cl_name(const stk_cl_device *d)
{
    return d->device.name[0] ? d->device.name : d->about; /* it has a name once it is open */
}

/* A block of such a device: what its kernels are given for it, a cl_mem or an address. */
typedef struct stk_cl_block {
    stk_block head;
    uintptr_t given;
} stk_cl_block;

static inline uintptr_t stk_cl_given(const stk_block *b)
{
    return ((const stk_cl_block *)b)->given;
}

/* ---- programs (programs.c) ------------------------------------------------------------------------------- */

/* The program of this text with these options ("-DSK_R=float"), built at its first use. It belongs to the device. */
stk_status stk_cl_program_get(stk_cl_device *d, const stk_cl_source *source, const char *options,
                              void **out, stk_error *err);
void stk_cl_programs_release(stk_cl_device *d);

/* ---- sequences (sequence.c) ------------------------------------------------------------------------------ */

/* One buffer argument that each run fills in: two arguments of the kernel, the block and an offset in elements. */
typedef struct stk_cl_place {
    int64_t offset; /* bytes from where the slot points */
    int32_t slot, item, index;
    uintptr_t given; /* what stands there now; 0: nothing yet */
    int64_t bound;
    int64_t freed; /* blocks of the device when it was put there */
} stk_cl_place;

/* One launch of a sequence. */
struct stk_cl_step {
    void *kernel;
    size_t global[3], local[3]; /* items in all, and of a group */
    stk_cl_place *slots;        /* arguments that each run fills in */
    int32_t nslots;
    const char *label; /* of its task, for the trace */
    uint32_t span;     /* argument of its spans */
};

typedef struct stk_cl_sequence {
    stk_sequence head;
    stk_cl_step *steps;
    int64_t nsteps, ntasks;
    int64_t *first; /* per task: its first step; one more behind the last */
    stk_block **tables;
    int64_t ntables;
    stk_address uniforms;
    void *own; /* the backend's */
} stk_cl_sequence;

/* Puts what the slots stand for in this run where another block stood before. */
stk_status stk_cl_bind(stk_cl_device *d, stk_cl_step *step, const stk_address *slots,
                       stk_error *err);

bool stk_cl_supports(stk_device *d, stk_kernel kernel, const void *params, char *why, size_t size);
const char *stk_cl_impl_name(stk_device *d, stk_kernel kernel, int32_t i);
stk_status stk_cl_arrange(stk_device *d, stk_plan *p, const stk_arrange_options *o, stk_error *err);
stk_status stk_cl_load(stk_device *d, stk_plan *p, stk_sequence **out, stk_error *err);
void stk_cl_unload(stk_sequence *s); /* waits for nothing: the backend has */
void stk_cl_report(const stk_plan *p, int64_t task, stk_task_report *out);

#endif
