/* api.h - as much of OpenCL 1.2 as is used here: types, constants, and the table of its functions. Declared by hand, so that nothing has to
 * be installed to build, and opened at run time, so that nothing has to be installed to run. */
#ifndef STK_DEVICE_OPENCL_API_H
#define STK_DEVICE_OPENCL_API_H

#include <stddef.h>
#include <stdint.h>

typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_bits;
typedef struct stk_cl_platform *cl_platform_id;
typedef struct stk_cl_device_id *cl_device_id;
typedef struct stk_cl_context *cl_context;
typedef struct stk_cl_command_queue *cl_command_queue;
typedef struct stk_cl_memory *cl_mem;
typedef struct stk_cl_program_object *cl_program;
typedef struct stk_cl_kernel_object *cl_kernel;
typedef struct stk_cl_event_object *cl_event;

enum {
    CL_SUCCESS = 0,
    CL_COMPLETE = 0,
    CL_DEVICE_NOT_AVAILABLE = -2,
    CL_MEM_OBJECT_ALLOCATION_FAILURE = -4,
    CL_OUT_OF_RESOURCES = -5,
    CL_OUT_OF_HOST_MEMORY = -6,
    CL_BUILD_PROGRAM_FAILURE = -11,
    CL_PLATFORM_VERSION = 0x0901,
    CL_PLATFORM_NAME = 0x0902,
    CL_DEVICE_TYPE = 0x1000,
    CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
    CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
    CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
    CL_DEVICE_MAX_PARAMETER_SIZE = 0x1017,
    CL_DEVICE_SINGLE_FP_CONFIG = 0x101B,
    CL_DEVICE_GLOBAL_MEM_SIZE = 0x101F,
    CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
    CL_DEVICE_AVAILABLE = 0x1027,
    CL_DEVICE_COMPILER_AVAILABLE = 0x1028,
    CL_DEVICE_NAME = 0x102B,
    CL_DEVICE_VENDOR = 0x102C,
    CL_DRIVER_VERSION = 0x102D,
    CL_DEVICE_VERSION = 0x102F,
    CL_DEVICE_EXTENSIONS = 0x1030,
    CL_DEVICE_PCI_BUS_ID_NV = 0x4008, /* of NVIDIA's driver */
    CL_DEVICE_PCI_SLOT_ID_NV = 0x4009,
    CL_DEVICE_PCI_DOMAIN_ID_NV = 0x400A,
    CL_DEVICE_TYPE_CPU = 1 << 1,
    CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT = 1 << 7,
    CL_MEM_READ_WRITE = 1 << 0,
    CL_MEM_ALLOC_HOST_PTR = 1 << 4,
    CL_MAP_READ_WRITE = 3,
    CL_PROGRAM_BINARY_SIZES = 0x1165,
    CL_PROGRAM_BINARIES = 0x1166,
    CL_PROGRAM_BUILD_LOG = 0x1183,
    CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11D3,
    CL_PROFILING_COMMAND_START = 0x1282,
    CL_PROFILING_COMMAND_END = 0x1283,
    CL_QUEUE_PROFILING_ENABLE = 1 << 1,
};
#define CL_DEVICE_TYPE_ALL 0xFFFFFFFFu

typedef struct stk_cl {
#define STK_CL(name, result, arguments) result(*name) arguments;
#include "device/opencl/api.def"
} stk_cl;

/* NULL where there is no OpenCL: no library ($STOKER_OPENCL, else libOpenCL.so.1), or one that lacks a function. */
const stk_cl *stk_cl_open(void);
const char *stk_cl_error_name(cl_int code); /* "CL_OUT_OF_RESOURCES" */

#endif
