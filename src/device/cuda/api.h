/* api.h - as much of the CUDA driver and of NVRTC as is used here: types, constants, the table of functions. Declared by hand, so that nothing
 * has to be installed to build, and opened at run time, so that nothing has to be installed to run. */
#ifndef STK_DEVICE_CUDA_API_H
#define STK_DEVICE_CUDA_API_H

#include <stddef.h>
#include <stdint.h>

typedef unsigned long long CUdeviceptr;
typedef struct stk_cu_context *CUcontext;
typedef struct stk_cu_stream *CUstream;
typedef struct stk_cu_event *CUevent;
typedef struct stk_cu_module *CUmodule;
typedef struct stk_cu_function *CUfunction;
typedef struct stk_cu_graph *CUgraph;
typedef struct stk_cu_graph_exec *CUgraphExec;
typedef struct stk_nvrtc_program *nvrtcProgram;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_DEINITIALIZED = 4,
    CUDA_ERROR_STUB_LIBRARY = 34,
    CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_DEVICE_NOT_LICENSED = 102,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_ECC_UNCORRECTABLE = 214,
    CUDA_ERROR_INVALID_PTX = 218,
    CUDA_ERROR_NVLINK_UNCORRECTABLE = 220,
    CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_ERROR_JIT_COMPILATION_DISABLED = 223,
    CUDA_ERROR_CONTAINED = 226,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_ERROR_LAUNCH_TIMEOUT = 702,
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    CUDA_ERROR_ASSERT = 710,
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
    CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
    CUDA_ERROR_MISALIGNED_ADDRESS = 716,
    CUDA_ERROR_INVALID_ADDRESS_SPACE = 717,
    CUDA_ERROR_INVALID_PC = 718,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_TENSOR_MEMORY_LEAK = 721,
    CUDA_ERROR_SYSTEM_NOT_READY = 802,
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804,
    CUDA_ERROR_MPS_CONNECTION_FAILED = 805,
    CUDA_ERROR_MPS_RPC_FAILURE = 806,
    CUDA_ERROR_MPS_CLIENT_TERMINATED = 810,
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
    CUDA_ERROR_EXTERNAL_DEVICE = 911,
    CUDA_ERROR_UNKNOWN = 999,

    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_INTEGRATED = 18,
    CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20,
    CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
    CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34,
    CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_COMPUTEMODE_PROHIBITED = 2,
    CU_STREAM_NON_BLOCKING = 1,
    CU_STREAM_CAPTURE_MODE_RELAXED = 2,
    CU_EVENT_DEFAULT = 0,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_MEMHOSTALLOC_PORTABLE = 1,
    CU_JIT_ERROR_LOG_BUFFER = 5,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
    NVRTC_SUCCESS = 0,
    NVRTC_ERROR_OUT_OF_MEMORY = 1,
    NVRTC_ERROR_COMPILATION = 6,
};

typedef struct stk_cu {
#define STK_CU(name, result, arguments)    result(*name) arguments;
#define STK_NVRTC(name, result, arguments) result(*name) arguments;
#include "device/cuda/api.def"
    int driver;           /* CUDA version of the driver: 13000 */
    int nvrtc;            /* of the compiler, likewise */
    int arch[64], narchs; /* compute capabilities it compiles for, rising: 75, 80 ... */
} stk_cu;

/* NULL where CUDA cannot be used: no driver ($STOKER_CUDA, else libcuda.so.1), no compiler that fits it ($STOKER_NVRTC, else libnvrtc.so.13, .12,
 * .11.2 where the loader, toolkits or wheels of Python have them), or one that lacks a function. STOKER_CUDA set to nothing: not wanted. */
const stk_cu *stk_cu_open(void);
/* What there is of CUDA that cannot be used, and what to do about it; "": nothing. */
const char *stk_cu_missing(void);
int stk_cu_capability(const stk_cu *cu, int id); /* 86: compute capability 8.6 */
/* What to compile for: the card's own number, or the last one before it that the compiler knows; 0: older than all of them. */
int stk_cu_target(const stk_cu *cu, int sm);

/* errors.c */
const char *stk_cu_error_name(const stk_cu *cu, int code);
const char *stk_cu_advice(int code); /* when a card does not open, or a driver does not start */

#endif
