/* kernels_host.h - a function of the caller among the launches. The one problem struct that holds addresses: of the function, of what it
 * is given, and of its name. They are those of this process, so nothing about it is remembered on disk. */
#ifndef STK_DEVICE_KERNELS_HOST_H
#define STK_DEVICE_KERNELS_HOST_H

#include "stoker/tensor.h"

typedef struct stk_host_array {
    int64_t dtype, rank;
    int64_t dim[STK_MAX_RANK];
} stk_host_array;

typedef struct stk_host_params {
    int64_t run, context, name; /* stk_host_run *, void *, const char * */
    int64_t nin, nout;
    stk_host_array array[]; /* inputs, then outputs */
} stk_host_params;

#endif
