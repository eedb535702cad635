/* gpus.c - what gpu:N is: the cards of CUDA first, then those of OpenCL that CUDA has not listed. */
#include "device/cuda/cuda.h"
#include "device/opencl/opencl.h"

static int32_t count_gpus(void) { return stk_cuda_count() + stk_opencl_count_gpus(); }

static stk_status open_gpu(int32_t index, int32_t threads, stk_device **out, stk_error *err)
{
    int32_t cards = stk_cuda_count();
    (void)threads;
    if (index < cards) return stk_cuda_open(index, out, err);
    return stk_opencl_open_gpu(index - cards, out, err);
}

const stk_driver stk_driver_gpu = {
    .kind = "gpu", .count = count_gpus, .open = open_gpu, .missing = stk_cuda_missing};
