/* Opens the library that knows the OpenCL drivers of this machine. Once, and never closed: drivers start threads of their own. */
#include "device/opencl/api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static stk_cl table;
static bool complete;

static void open_library(void)
{
    const char *wish = getenv("STOKER_OPENCL");
    if (wish && !*wish) return; /* set to nothing: not wanted */
    void *library = dlopen(wish ? wish : "libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    complete = true;
#define STK_CL(name, result, arguments)                                                            \
    *(void **)(void *)&table.name = dlsym(library, "cl" #name);                                    \
    complete &= table.name != NULL;
#include "device/opencl/api.def"
}

const stk_cl *stk_cl_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_library);
    return complete ? &table : NULL;
}

const char *stk_cl_error_name(cl_int code)
{
    static const char *const names[] = {"CL_SUCCESS",
                                        "CL_DEVICE_NOT_FOUND",
                                        "CL_DEVICE_NOT_AVAILABLE",
                                        "CL_COMPILER_NOT_AVAILABLE",
                                        "CL_MEM_OBJECT_ALLOCATION_FAILURE",
                                        "CL_OUT_OF_RESOURCES",
                                        "CL_OUT_OF_HOST_MEMORY",
                                        "CL_PROFILING_INFO_NOT_AVAILABLE",
                                        "CL_MEM_COPY_OVERLAP",
                                        "CL_IMAGE_FORMAT_MISMATCH",
                                        "CL_IMAGE_FORMAT_NOT_SUPPORTED",
                                        "CL_BUILD_PROGRAM_FAILURE",
                                        "CL_MAP_FAILURE",
                                        "CL_MISALIGNED_SUB_BUFFER_OFFSET",
                                        "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"};
    static _Thread_local char other[32];
    if (code <= 0 && -code < (cl_int)(sizeof names / sizeof *names)) return names[-code];
    snprintf(other, sizeof other, "OpenCL error %d", code);
    return other;
}
