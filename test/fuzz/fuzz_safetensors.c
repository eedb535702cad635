/* safetensors: any bytes are read or refused, without a leak and without believing a size. */
#include "base/memory.h"
#include "train/safetensors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_error err = {.code = STK_OK};
    stk_safetensors *file = NULL;
    stk_status status = stk_safetensors_parse("fuzz", data, size, &file, &err);
    if (status != STK_OK && (file || err.code != status || !err.message[0])) abort();
    uint64_t bytes = 0;
    for (int32_t i = 0; i < stk_safetensors_count(file); i++) {
        if (!stk_safetensors_name(file, i)[0]) abort();
        bytes += (uint64_t)stk_tensor_bytes(stk_safetensors_tensor(file, i));
    }
    if (bytes > size) abort();
    stk_safetensors_release(file);
    if (stk_alloc_live() != 0) abort();
    return 0;
}
