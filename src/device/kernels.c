/* Names of kernel ids and elementwise codes. */
#include "device/kernels.h"

#include <string.h>

const char *stk_kernel_name(stk_kernel kernel)
{
    static const char *const names[] = {
#define STK_KERNEL(NAME, name, params, doc) #name,
#include "device/kernels.def"
    };
    return (unsigned)kernel < STK_KERNEL_COUNT ? names[kernel] : "?";
}

bool stk_kernel_wish(const char *list, stk_kernel kernel, char *name, size_t size)
{
    const char *id = stk_kernel_name(kernel);
    size_t length = strlen(id);
    while (list && *list) {
        size_t item = strcspn(list, ",");
        if (item > length && !strncmp(list, id, length) && list[length] == ':' &&
            item - length - 1 < size) {
            memcpy(name, list + length + 1, item - length - 1);
            name[item - length - 1] = 0;
            return true;
        }
        list += item + (list[item] == ',');
    }
    return false;
}

static const struct {
    const char *name;
    int arity;
} ew[] = {
#define STK_EW(NAME, name, arity, result, doc) {#name, arity},
#include "stoker/elementwise.def"
};

const char *stk_ew_name(stk_ew op) { return (unsigned)op < STK_EW_COUNT ? ew[op].name : "?"; }
int stk_ew_arity(stk_ew op) { return (unsigned)op < STK_EW_COUNT ? ew[op].arity : 0; }

stk_lane stk_lane_of(stk_dtype dtype)
{
    if (dtype == STK_F64) return STK_LANE_F64;
    if (dtype == STK_BOOL) return STK_LANE_BOOL;
    return stk_dtype_is_float(dtype) ? STK_LANE_F32 : STK_LANE_I64;
}
