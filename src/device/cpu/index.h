/* index.h - what kernels that follow indices share. */
#ifndef STK_DEVICE_CPU_INDEX_H
#define STK_DEVICE_CPU_INDEX_H

#include "base/dtype.h"

/* Element i of an int32 or int64 array. */
static inline int64_t stk_index_at(const void *index, int32_t dtype, int64_t i)
{
    return dtype == STK_I32 ? ((const int32_t *)index)[i] : ((const int64_t *)index)[i];
}

/* Types that a scatter can add, and in which type: integers wrap around. Half types are widened by the
 * graph. */
#define STK_SCATTER_TYPES(ROW)                                                                     \
    ROW(F32, float, float)                                                                         \
    ROW(F64, double, double)                                                                       \
    ROW(I8, int8_t, uint32_t)                                                                      \
    ROW(U8, uint8_t, uint32_t)                                                                     \
    ROW(I16, int16_t, uint32_t)                                                                    \
    ROW(U16, uint16_t, uint32_t)                                                                   \
    ROW(I32, int32_t, uint32_t)                                                                    \
    ROW(U32, uint32_t, uint32_t)                                                                   \
    ROW(I64, int64_t, uint64_t)                                                                    \
    ROW(U64, uint64_t, uint64_t)

#endif
