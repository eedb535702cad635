/* dtype.h - facts about element types and the conversions every layer needs. */
#ifndef STK_BASE_DTYPE_H
#define STK_BASE_DTYPE_H

#include "stoker/tensor.h"

#include <string.h>

char stk_dtype_kind(stk_dtype dtype); /* F I U B S, see dtype.def */
static inline bool stk_dtype_valid(stk_dtype d) { return (unsigned)d < STK_DTYPE_COUNT; }
static inline bool stk_dtype_is_float(stk_dtype d) { return stk_dtype_kind(d) == 'F'; }
const char *stk_dtype_numpy(stk_dtype dtype);

/* Half types are storage; arithmetic is in float. Round to nearest even, NaN stays NaN. */
static inline float stk_bf16_to_f32(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, 4);
    return f;
}
static inline uint16_t stk_f32_to_bf16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    uint32_t nan = (bits & 0x7fffffffu) > 0x7f800000u;
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return (uint16_t)(nan ? (bits >> 16) | 0x40u : rounded);
}
float stk_f16_to_f32(uint16_t h);
uint16_t stk_f32_to_f16(float f);
uint16_t stk_f64_to_f16(double v); /* one rounding, as if straight from double */

/* One element as a double, and back (float -> integer truncates and saturates, NaN -> 0). */
double stk_load_f64(stk_dtype dtype, const void *at);
void stk_store_f64(stk_dtype dtype, void *at, double value);
/* The same exact for 64-bit integers. */
int64_t stk_load_i64(stk_dtype dtype, const void *at);
void stk_store_i64(stk_dtype dtype, void *at, int64_t value);

#endif
