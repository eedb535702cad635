/* Names of element types, as they come from .npy headers and from users. */
#include "base/memory.h"
#include "stoker/tensor.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *name = stk_strndup((const char *)data, size);
    if (!name) return 0;
    stk_dtype dtype = STK_DTYPE_COUNT, again = STK_DTYPE_COUNT;
    if (stk_dtype_parse(name, &dtype)) {
        /* What was understood has a name that is understood the same way. */
        if (!stk_dtype_parse(stk_dtype_name(dtype), &again) || again != dtype) abort();
    } else if (dtype != STK_DTYPE_COUNT) {
        abort();
    }
    stk_free(name);
    return 0;
}
