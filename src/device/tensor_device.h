/* tensor_device.h - tensors whose elements are in memory of a device. */
#ifndef STK_DEVICE_TENSOR_DEVICE_H
#define STK_DEVICE_TENSOR_DEVICE_H

#include "base/shape.h"
#include "device/device.h"

/* A dense tensor there, zeroed. */
stk_status stk_tensor_on(stk_device *d, stk_dtype dtype, const stk_shape *shape, stk_tensor **out,
                         stk_error *err);

/* Of its first element; only of tensors that are on a device. */
static inline stk_address stk_tensor_place(const stk_tensor *t)
{
    return stk_address_of(t->buffer->block, (int64_t)(intptr_t)t->data);
}

#endif
