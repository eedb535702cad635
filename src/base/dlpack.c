/* DLPack both ways. The memory is shared, never copied. */
#include "base/dlpack.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "base/tensor.h"

_Static_assert(sizeof(stk_dl_tensor) == 48 && sizeof(stk_dl_managed) == 64, "the layout is an ABI");

static const struct {
    uint8_t code, bits;
} codes[STK_DTYPE_COUNT] = {[STK_F32] = {STK_DL_FLOAT, 32}, [STK_F64] = {STK_DL_FLOAT, 64},
                            [STK_F16] = {STK_DL_FLOAT, 16}, [STK_BF16] = {STK_DL_BFLOAT, 16},
                            [STK_I8] = {STK_DL_INT, 8},     [STK_U8] = {STK_DL_UINT, 8},
                            [STK_I16] = {STK_DL_INT, 16},   [STK_U16] = {STK_DL_UINT, 16},
                            [STK_I32] = {STK_DL_INT, 32},   [STK_U32] = {STK_DL_UINT, 32},
                            [STK_I64] = {STK_DL_INT, 64},   [STK_U64] = {STK_DL_UINT, 64},
                            [STK_BOOL] = {STK_DL_BOOL, 8},  [STK_STRING] = {255, 255}};

/* ---- out ------------------------------------------------------------------------------------ */

typedef struct exported {
    stk_dl_managed managed;
    stk_tensor *tensor; /* one count of ours */
    int64_t shape[STK_MAX_RANK], strides[STK_MAX_RANK];
} exported;

static void delete_exported(stk_dl_managed *self)
{
    exported *e = (exported *)self;
    stk_tensor_release(e->tensor);
    stk_free(e);
}

stk_status stk_dlpack_export(stk_tensor *t, void **managed, stk_error *err)
{
    if (!managed) return stk_fail(err, STK_ERR_ARGUMENT, "dlpack: the out pointer is NULL");
    *managed = NULL;
    STK_TRY(stk_tensor_check("dlpack", t, err));
    if (t->dtype == STK_STRING)
        return stk_fail(err, STK_ERR_DTYPE, "dlpack: %s: DLPack has no strings",
                        STK_TENSOR_TEXT(t));
    if (t->buffer->readonly)
        return stk_fail(err, STK_ERR_STATE,
                        "dlpack: the memory of %s is read-only, which DLPack 0.8 cannot say; give "
                        "away a copy (stk_tensor_cast)",
                        STK_TENSOR_TEXT(t));
    exported *e = stk_malloc(sizeof *e);
    if (!e) return stk_fail_memory(err, "dlpack", sizeof *e);
    for (int i = 0; i < STK_MAX_RANK; i++) {
        e->shape[i] = t->shape[i];
        e->strides[i] = t->stride[i];
    }
    e->tensor = stk_tensor_retain(t);
    e->managed = (stk_dl_managed){.tensor = {.data = t->data,
                                             .device_type = STK_DL_CPU,
                                             .rank = t->rank,
                                             .code = codes[t->dtype].code,
                                             .bits = codes[t->dtype].bits,
                                             .lanes = 1,
                                             .shape = e->shape,
                                             .strides = e->strides},
                                  .context = e,
                                  .deleter = delete_exported};
    *managed = &e->managed;
    return STK_OK;
}

/* ---- in ------------------------------------------------------------------------------------- */

static stk_status find_dtype(const stk_dl_tensor *d, stk_dtype *out, stk_error *err)
{
    for (int i = 0; i < STK_STRING; i++) {
        if (codes[i].code != d->code || codes[i].bits != d->bits || d->lanes != 1) continue;
        *out = (stk_dtype)i;
        return STK_OK;
    }
    return stk_fail(err, STK_ERR_DTYPE,
                    "dlpack: element type code %d with %d bits and %d lanes is not known here; "
                    "convert it on the other side",
                    d->code, d->bits, d->lanes);
}

static void delete_imported(void *owner)
{
    stk_dl_managed *m = owner;
    if (m->deleter) m->deleter(m);
}

stk_status stk_dlpack_import(void *managed, stk_tensor **out, stk_error *err)
{
    if (!managed || !out)
        return stk_fail(err, STK_ERR_ARGUMENT, "dlpack: the managed tensor or out pointer is NULL");
    *out = NULL;
    stk_dl_managed *m = managed;
    const stk_dl_tensor *d = &m->tensor;
    stk_dtype dtype = STK_F32;
    if (d->device_type != STK_DL_CPU)
        return stk_fail(err, STK_ERR_DEVICE,
                        "dlpack: the memory is on a device of type %d; copy it to the CPU (type 1) "
                        "first",
                        (int)d->device_type);
    STK_TRY(find_dtype(d, &dtype, err));
    /* An empty tensor may come with any pointer, and adding to NULL is not allowed. */
    char *data = d->data ? (char *)d->data + d->byte_offset : NULL;
    stk_status status =
        stk_tensor_wrap(dtype, d->rank, d->shape, d->strides, data, delete_imported, m, out, err);
    return status == STK_OK || status == STK_ERR_MEMORY ? status
                                                        : stk_fail_in(err, status, "dlpack");
}
