/* tensor_device.c - tensors in memory of a device. The buffer holds the device and the block; `data` of the handle is the
 * offset of the first element in it, so that whoever touches it faults at once. */
#include "device/tensor_device.h"

#include "base/memory.h"
#include "base/tensor.h"

#include <string.h>

typedef struct resident {
    stk_buffer buffer;
    stk_tensor tensor;
} resident;

static void release_resident(stk_buffer *self)
{
    stk_device *d = self->device;
    d->vt->memory.free(self->block);
    stk_device_release(d);
    stk_free(self);
}

stk_status stk_tensor_on(stk_device *d, stk_dtype dtype, const stk_shape *shape, stk_tensor **out,
                         stk_error *err)
{
    size_t bytes = (size_t)stk_shape_count(shape) * (size_t)stk_dtype_size(dtype);
    resident *r = stk_calloc(1, sizeof *r);
    stk_block *block = r ? d->vt->memory.alloc(d, bytes + 1) : NULL;
    if (!block) {
        stk_free(r);
        return stk_fail_memory(err, d->name, bytes);
    }
    r->buffer = (stk_buffer){.size = bytes,
                             .release = release_resident,
                             .refs = 1,
                             .device = stk_device_retain(d),
                             .block = block};
    r->tensor = (stk_tensor){
        .dtype = dtype, .rank = shape->rank, .buffer = &r->buffer, .refs = 1, .inside = true};
    memcpy(r->tensor.shape, shape->dim, sizeof r->tensor.shape);
    stk_shape_strides(shape, r->tensor.stride);
    *out = &r->tensor;
    return STK_OK;
}

stk_device *stk_tensor_device(const stk_tensor *t)
{
    return t && t->buffer && t->buffer->block ? t->buffer->device : NULL;
}

static stk_status bring_up(stk_tensor *t, stk_device *d, stk_tensor **out, stk_error *err)
{
    stk_tensor *dense = NULL, *there = NULL;
    if (t->dtype == STK_STRING)
        return stk_fail(err, STK_ERR_DTYPE, "strings stay on the host; %s takes numbers", d->name);
    STK_TRY(stk_tensor_dense(t, &dense, err));
    stk_shape shape = stk_tensor_shape(t);
    stk_status status = stk_tensor_on(d, t->dtype, &shape, &there, err);
    if (status == STK_OK)
        status = d->vt->queue.set(d, stk_tensor_place(there), dense->data,
                                  (size_t)stk_tensor_bytes(dense), err);
    stk_tensor_release(dense);
    if (status == STK_OK)
        *out = there;
    else
        stk_tensor_release(there);
    return status;
}

static stk_status bring_down(stk_tensor *t, stk_tensor **out, stk_error *err)
{
    stk_device *d = t->buffer->device;
    stk_tensor *here = NULL;
    STK_TRY(stk_tensor_raw(t->dtype, t->rank, t->shape, &here, err));
    stk_status status =
        d->vt->queue.get(d, here->data, stk_tensor_place(t), (size_t)stk_tensor_bytes(here), err);
    if (status == STK_OK)
        *out = here;
    else
        stk_tensor_release(here);
    return status;
}

stk_status stk_tensor_to(stk_tensor *t, stk_device *device, stk_tensor **out, stk_error *err)
{
    if (!t || !out)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_tensor_to: tensor and out must be given");
    stk_device *from = stk_tensor_device(t);
    if (device && stk_device_shares(device)) device = NULL;
    if (from == device) {
        *out = stk_tensor_retain(t);
        return STK_OK;
    }
    STK_TRY(stk_device_usable(from ? from : device, err));
    if (!from) return bring_up(t, device, out, err);
    if (!device) return bring_down(t, out, err);
    stk_tensor *here = NULL;
    STK_TRY(bring_down(t, &here, err));
    stk_status status = bring_up(here, device, out, err);
    stk_tensor_release(here);
    return status;
}

/* Between host and device; the host's side is dense. */
static stk_status across(stk_tensor *to, stk_tensor *from, stk_error *err)
{
    stk_device *up = stk_tensor_device(to), *down = stk_tensor_device(from);
    size_t bytes = (size_t)stk_tensor_bytes(to);
    if (up && down) {
        if (stk_address_equal(stk_tensor_place(to), stk_tensor_place(from))) return STK_OK;
        return up->vt->queue.copy(up, stk_tensor_place(to), stk_tensor_place(from), bytes, err);
    }
    return up ? up->vt->queue.set(up, stk_tensor_place(to), from->data, bytes, err)
              : down->vt->queue.get(down, to->data, stk_tensor_place(from), bytes, err);
}

stk_status stk_tensor_write(stk_tensor *to, stk_tensor *from, stk_error *err)
{
    if (!to || !from)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_tensor_write: both tensors must be given");
    stk_device *there = stk_tensor_device(to), *here = stk_tensor_device(from);
    if (!there && !here) return stk_tensor_copy(to, from, err);
    STK_TRY(stk_device_usable(there ? there : here, err));
    stk_shape a = stk_tensor_shape(to), b = stk_tensor_shape(from);
    if (to->dtype != from->dtype || !stk_shape_equal(&a, &b))
        return stk_fail(err, STK_ERR_SHAPE, "stk_tensor_write: %s does not go into %s",
                        STK_TENSOR_TEXT(from), STK_TENSOR_TEXT(to));
    if (!stk_tensor_bytes(to)) return STK_OK;
    stk_tensor *ready = NULL;
    if (here && there && here != there)
        STK_TRY(bring_down(from, &ready, err));
    else if (here)
        ready = stk_tensor_retain(from);
    else
        STK_TRY(stk_tensor_dense(from, &ready, err));
    stk_tensor *down = NULL;
    stk_status status = STK_OK;
    if (there || stk_tensor_is_dense(to)) {
        status = across(to, ready, err);
    } else if ((status = bring_down(ready, &down, err)) == STK_OK) {
        status = stk_tensor_copy(to, down, err);
    }
    stk_tensor_release(down);
    stk_tensor_release(ready);
    return status;
}
