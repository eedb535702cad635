/* fake_cuda.h - a CUDA driver and compiler for machines without a card, over an OpenCL device that is the processor: what the library calls is
 * declared by its own table (device/cuda/api.def), and done by kernels of the same text, so that all of the host's side runs as it would.
 *
 *     fake_cuda.c    contexts, memory, streams, events, copies; faults on order
 *     fake_launch.c  modules, launches, graphs
 *     fake_nvrtc.c   text to "machine code", which is what the OpenCL compiler made
 *
 * It is stricter than a driver. Addresses of the card are no addresses of the host; fresh memory is full of rubbish; a call without a current
 * context, an unknown option of the compiler, a pointer that is no block are errors. Everything that was made and not given back is counted.
 *
 *     STK_FAKE_CUDA_SM=86              the card's compute capability; 75 else
 *     STK_FAKE_CUDA_VERSION=12         of the driver, and STK_FAKE_NVRTC_VERSION of the compiler; 13 else
 *     STK_FAKE_CUDA_MODE=2             its compute mode
 *     STK_FAKE_CUDA_NO_PTX=1           the driver is too old for PTX of the compiler
 *     STK_FAKE_CUDA_FAULT=cuInit:803   a call that fails from the start
 *     STK_FAKE_CUDA_MEMORY=1000000     bytes it has; 4 GB else
 *     STK_FAKE_NVRTC_REAL=libnvrtc.so  every text goes through the real compiler as well; a warning is an error */
#ifndef STK_TEST_DEVICE_FAKE_CUDA_H
#define STK_TEST_DEVICE_FAKE_CUDA_H

#include "device/cuda/api.h"
#include "device/opencl/api.h"

#define EXPORT                             __attribute__((visibility("default")))
#define STK_CU(name, result, arguments)    EXPORT result name arguments;
#define STK_NVRTC(name, result, arguments) EXPORT result name arguments;
#include "device/cuda/api.def"

enum {
    CL_KERNEL_NUM_ARGS = 0x1191,
    CL_KERNEL_ARG_ADDRESS_QUALIFIER = 0x1196,
    CL_KERNEL_ARG_ADDRESS_GLOBAL = 0x119B,
    CL_KERNEL_ARG_TYPE_NAME = 0x1198,
    CL_KERNEL_COMPILE_WORK_GROUP_SIZE = 0x11B1,
};

typedef struct fake {
    stk_cl cl;
    cl_int (*GetKernelInfo)(cl_kernel, cl_uint, size_t, void *, size_t *);
    cl_int (*GetKernelArgInfo)(cl_kernel, cl_uint, cl_uint, size_t, void *, size_t *);
    cl_int (*GetKernelWorkGroupInfo)(cl_kernel, cl_device_id, cl_uint, size_t, void *, size_t *);
    cl_int (*RetainEvent)(cl_event);
    cl_device_id id;
    cl_context context;
    int sm;
    size_t memory;
    int process; /* that opened it */
} fake;

/* NULL where there is no OpenCL device. */
fake *fake_open(void);

/* Counts the call; CUDA_SUCCESS, or the error that was ordered for it. */
int fake_note(const char *name);
int fake_number(const char *variable, int otherwise);
void fake_lock(void);
void fake_unlock(void);
void fake_live(int by); /* one more, one less */

/* Of every call that works on a context: it must be the current one of the thread. */
int fake_enter(const char *name);
#define ENTER                                                                                      \
    do {                                                                                           \
        int bad = fake_enter(__func__);                                                            \
        if (bad) return bad;                                                                       \
    } while (0)

typedef struct fake_block {
    CUdeviceptr at;
    size_t bytes;
    cl_mem mem;
} fake_block;
/* The block that holds all of these bytes; NULL: nobody's memory. Under the lock. */
fake_block *fake_block_at(CUdeviceptr at, size_t bytes);
int fake_code(cl_int code); /* the CUDA error that says the same */

typedef struct fake_node fake_node; /* a launch that waits in a graph */
struct stk_cu_stream {
    cl_command_queue queue;
    int capturing;
    fake_node *nodes;
    int nnodes;
};
struct stk_cu_event {
    cl_event event;
    int timed;
};

#endif
