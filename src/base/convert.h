/* convert.h - arrays of one element type into another. */
#ifndef STK_BASE_CONVERT_H
#define STK_BASE_CONVERT_H

#include "base/dtype.h"

/* n dense elements; numeric and bool types only; to and from do not overlap. Float to integer
 * truncates and saturates, NaN becomes 0; integer to integer keeps the low bits; to bool is != 0.
 */
void stk_convert(stk_dtype to_dtype, void *to, stk_dtype from_dtype, const void *from, int64_t n);

#endif
