/* Views of memory that changes: everybody who holds one can be moved to a copy, all at once. */
#include "base/tensor.h"
#include "device/tensor_device.h"
#include "stoker/tracing.h"

#include <string.h>

stk_status stk_tensor_alias(stk_tensor *t, stk_tensor **view, stk_error *err)
{
    if (!t || !view)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_tensor_alias: tensor and view must be given");
    stk_tensor *v = stk_tensor_view(t);
    if (!v) return stk_fail_memory(err, "stk_tensor_alias", sizeof *v);
    *view = v;
    return STK_OK;
}

/* Handle and view of the copy change places: what is released below are the handles of the old memory. */
static void trade(stk_tensor *a, stk_tensor *b)
{
    stk_tensor old = *a;
    a->data = b->data;
    a->buffer = b->buffer;
    memcpy(a->stride, b->stride, sizeof a->stride);
    b->data = old.data;
    b->buffer = old.buffer;
    memcpy(b->stride, old.stride, sizeof b->stride);
}

stk_status stk_tensor_detach(stk_tensor *view, stk_error *err)
{
    stk_tensor *copy = NULL, *other = NULL;
    if (!view || view->inside)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_tensor_detach: needs a view, as stk_tensor_alias gives one");
    stk_device *d = stk_tensor_device(view);
    stk_shape shape = stk_tensor_shape(view);
    STK_TRY(d ? stk_tensor_on(d, view->dtype, &shape, &copy, err)
              : stk_tensor_raw(view->dtype, view->rank, view->shape, &copy, err));
    stk_status status = stk_tensor_write(copy, view, err);
    if (status == STK_OK) status = stk_tensor_alias(copy, &other, err);
    if (status == STK_OK) trade(view, other);
    stk_tensor_release(other);
    stk_tensor_release(copy);
    return status;
}
