/* DLPack: shared memory both ways, deleters that run exactly once, and refusals. */
#include "check.h"

#include "base/dlpack.h"
#include "base/tensor.h"

static int deleted;
static void count_delete(stk_dl_managed *self) { deleted += self->context == &deleted; }

TEST(out_keeps_the_tensor_alive)
{
    stk_error err;
    int64_t live = stk_alloc_live();
    stk_tensor *t = NULL, *part = NULL;
    void *managed = NULL;
    CHECK_OK(stk_tensor_new(STK_I16, 2, (int64_t[]){4, 6}, &t, &err));
    for (int i = 0; i < 24; i++) ((int16_t *)t->data)[i] = (int16_t)i;
    CHECK_OK(stk_tensor_slice(t, (int64_t[]){1, 2}, (int64_t[]){2, 3}, &part, &err));
    CHECK_OK(stk_dlpack_export(part, &managed, &err));
    stk_tensor_release(part);
    stk_tensor_release(t);
    stk_dl_managed *m = managed;
    const stk_dl_tensor *d = &m->tensor;
    CHECK_EQ_I64(d->rank, 2);
    CHECK(d->device_type == 1 && d->device_number == 0 && d->byte_offset == 0);
    CHECK(d->code == STK_DL_INT && d->bits == 16 && d->lanes == 1);
    CHECK(d->shape[0] == 2 && d->shape[1] == 3 && d->strides[0] == 6 && d->strides[1] == 1);
    CHECK_EQ_I64(((int16_t *)d->data)[1 * 6 + 2], 16);
    m->deleter(m);
    CHECK_EQ_I64(stk_alloc_live(), live);
}

TEST(every_type_goes_out_and_comes_back)
{
    stk_error err;
    for (int k = 0; k < STK_STRING; k++) {
        stk_tensor *t = NULL, *back = NULL;
        void *managed = NULL;
        int64_t live = stk_alloc_live();
        CHECK_OK(stk_tensor_new((stk_dtype)k, 3, (int64_t[]){2, 0, 3}, &t, &err));
        CHECK_OK(stk_dlpack_export(t, &managed, &err));
        CHECK_OK(stk_dlpack_import(managed, &back, &err));
        CHECK_EQ_I64(back->dtype, k);
        CHECK(back->data == t->data && back->rank == 3 && back->shape[1] == 0);
        stk_tensor_release(t);
        stk_tensor_release(back);
        CHECK_EQ_I64(stk_alloc_live(), live);
    }
}

static stk_dl_managed foreign(void *data, int32_t rank, int64_t *shape, int64_t *strides)
{
    return (stk_dl_managed){.tensor = {.data = data,
                                       .device_type = STK_DL_CPU,
                                       .rank = rank,
                                       .code = STK_DL_FLOAT,
                                       .bits = 32,
                                       .lanes = 1,
                                       .shape = shape,
                                       .strides = strides},
                            .context = &deleted,
                            .deleter = count_delete};
}

TEST(in_takes_offset_and_strides)
{
    stk_error err;
    float data[12];
    for (int i = 0; i < 12; i++) data[i] = (float)i;
    int64_t shape[2] = {2, 3}, strides[2] = {-6, 2};
    stk_tensor *t = NULL, *view = NULL;
    deleted = 0;
    stk_dl_managed m = foreign(data, 2, shape, NULL); /* no strides: dense */
    m.tensor.byte_offset = 8;
    CHECK_OK(stk_dlpack_import(&m, &t, &err));
    CHECK(stk_tensor_is_dense(t));
    CHECK_NEAR(stk_tensor_at(t, 0), 2, 0);
    CHECK_NEAR(stk_tensor_at(t, 5), 7, 0);
    CHECK_OK(stk_tensor_transpose(t, NULL, &view, &err));
    stk_tensor_release(t);
    CHECK_EQ_I64(deleted, 0);
    stk_tensor_release(view);
    CHECK_EQ_I64(deleted, 1);

    m = foreign(data, 2, shape, strides);
    m.tensor.byte_offset = 24;
    CHECK_OK(stk_dlpack_import(&m, &t, &err));
    CHECK_NEAR(stk_tensor_at(t, 1), 8, 0);
    CHECK_NEAR(stk_tensor_at(t, 5), 4, 0);
    stk_tensor_release(t);
    CHECK_EQ_I64(deleted, 2);

    m = foreign(data, 0, NULL, NULL);
    m.deleter = NULL; /* nobody wants to know */
    CHECK_OK(stk_dlpack_import(&m, &t, &err));
    CHECK_EQ_I64(stk_tensor_count(t), 1);
    stk_tensor_release(t);
    int64_t none[1] = {0};
    m = foreign(NULL, 1, none, NULL);
    m.tensor.byte_offset = 64;
    CHECK_OK(stk_dlpack_import(&m, &t, &err));
    stk_tensor_release(t);
    CHECK_EQ_I64(deleted, 3);
}

TEST(refusals_leave_it_with_the_caller)
{
    stk_error err;
    float data[4] = {0};
    int64_t shape[9] = {2, 2, 1, 1, 1, 1, 1, 1, 1}, negative[1] = {-1};
    int64_t far[1] = {INT64_MAX};
    stk_tensor *t = NULL;
    deleted = 0;
#define REFUSED(change, status, fragment)                                                          \
    do {                                                                                           \
        stk_dl_managed m = foreign(data, 2, shape, NULL);                                          \
        change;                                                                                    \
        CHECK_FAILS(stk_dlpack_import(&m, &t, &err), status, fragment);                            \
        CHECK(t == NULL);                                                                          \
    } while (0)
    REFUSED(m.tensor.device_type = 2, STK_ERR_DEVICE, "type 2");
    REFUSED(m.tensor.lanes = 4, STK_ERR_DTYPE, "4 lanes");
    REFUSED(m.tensor.code = 5, STK_ERR_DTYPE, "code 5");
    REFUSED(m.tensor.bits = 24, STK_ERR_DTYPE, "24 bits");
    REFUSED(m.tensor.rank = 9, STK_ERR_SHAPE, "rank 9");
    REFUSED(m.tensor.rank = -1, STK_ERR_SHAPE, "rank -1");
    REFUSED(m.tensor.shape = NULL, STK_ERR_ARGUMENT, "NULL");
    REFUSED((m.tensor.rank = 1, m.tensor.shape = negative), STK_ERR_SHAPE, "-1");
    REFUSED((m.tensor.rank = 1, m.tensor.strides = far), STK_ERR_RANGE, "strides");
    REFUSED(m.tensor.data = NULL, STK_ERR_ARGUMENT, "NULL");
    REFUSED(m.tensor.byte_offset = 2, STK_ERR_ARGUMENT, "aligned");
    CHECK_FAILS(stk_dlpack_import(NULL, &t, &err), STK_ERR_ARGUMENT, "NULL");
    CHECK_FAILS(stk_dlpack_import(data, NULL, &err), STK_ERR_ARGUMENT, "NULL");
    CHECK_EQ_I64(deleted, 0);
    void *managed = NULL;
    stk_tensor *s = NULL;
    CHECK_OK(stk_tensor_new(STK_STRING, 0, NULL, &s, &err));
    CHECK_FAILS(stk_dlpack_export(s, &managed, &err), STK_ERR_DTYPE, "no strings");
    CHECK_FAILS(stk_dlpack_export(s, NULL, &err), STK_ERR_ARGUMENT, "NULL");
    CHECK_FAILS(stk_dlpack_export(NULL, &managed, &err), STK_ERR_ARGUMENT, "NULL");
    stk_tensor_release(s);
    CHECK_OK(stk_tensor_new(STK_F32, 0, NULL, &s, &err));
    s->buffer->readonly = true;
    CHECK_FAILS(stk_dlpack_export(s, &managed, &err), STK_ERR_STATE, "read-only");
    stk_tensor_release(s);
}

static stk_status out_and_in(stk_error *err)
{
    stk_tensor *t = NULL, *back = NULL;
    void *managed = NULL;
    stk_status status = stk_tensor_new(STK_F32, 1, (int64_t[]){3}, &t, err);
    if (status == STK_OK) status = stk_dlpack_export(t, &managed, err);
    if (status == STK_OK) {
        status = stk_dlpack_import(managed, &back, err);
        if (status != STK_OK) ((stk_dl_managed *)managed)->deleter(managed);
    }
    stk_tensor_release(back);
    stk_tensor_release(t);
    return status;
}

TEST(out_of_memory)
{
    stk_error err;
    OOM_LOOP(out_and_in(&err));
}

TEST_MAIN()
