/* .npz: any bytes are read or refused, without a leak and without believing a size. */
#include "base/memory.h"
#include "base/npz.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_error err = {.code = STK_OK};
    stk_npz *npz = NULL;
    stk_status status = stk_npz_parse("fuzz", data, size, &npz, &err);
    if (status != STK_OK && (npz || err.code != status || !err.message[0])) abort();
    uint64_t bytes = 0;
    for (int32_t i = 0; i < stk_npz_count(npz); i++) {
        stk_tensor *t = stk_npz_tensor(npz, i);
        if (!stk_npz_name(npz, i) || !t) abort();
        if (t->dtype != STK_STRING) bytes += (uint64_t)stk_tensor_bytes(t);
    }
    if (bytes > (uint64_t)size * 1100) abort();
    stk_npz_release(npz);
    if (stk_alloc_live() != 0) abort();
    return 0;
}
