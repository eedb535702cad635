/* tensor.h (internal) - what other folders need of tensors beyond the public API. */
#ifndef STK_BASE_TENSOR_H
#define STK_BASE_TENSOR_H

#include "base/shape.h"

/* As stk_tensor_new, but the elements are garbage: for results that are written in full. */
stk_status stk_tensor_raw(stk_dtype dtype, int32_t rank, const int64_t *shape, stk_tensor **out,
                          stk_error *err);

/* A handle of its own on t's memory with t's shape; the caller then edits data, rank, shape and
 * stride of the view before anybody else sees it. NULL when out of memory. */
stk_tensor *stk_tensor_view(stk_tensor *t);

stk_shape stk_tensor_shape(const stk_tensor *t);

/* Address of the element with this flat row-major index, which must be in range. */
void *stk_tensor_address(const stk_tensor *t, int64_t index);

/* Elements of a string tensor copied, with their bytes, into a dense tensor of its own. */
stk_status stk_tensor_copy_strings(const stk_tensor *t, stk_tensor **out, stk_error *err);

/* ERR_ARGUMENT when the handle is NULL or its fields are beyond what the library can have made. */
stk_status stk_tensor_check(const char *who, const stk_tensor *t, stk_error *err);

#define STK_TENSOR_TEXT(t) stk_tensor_describe((t), (char[160]){0}, 160)

#endif
