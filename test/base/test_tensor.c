/* Tensors: making, ownership, views, asking, bad input, out of memory. */
#include "check.h"

#include "base/tensor.h"

TEST(new_is_zeroed_and_aligned_at_every_size)
{
    stk_error err;
    const int64_t sizes[] = {0, 1, 2, 15, 16, 17, 1000, (2 << 20) / 4 - 1, (2 << 20) / 4, 1 << 20};
    int64_t live = stk_alloc_live();
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        stk_tensor *t = NULL;
        REQUIRE(CHECK_OK(stk_tensor_new(STK_F32, 1, &sizes[k], &t, &err)));
        CHECK_EQ_I64((uintptr_t)t->data % 64, 0);
        CHECK_EQ_I64(stk_tensor_count(t), sizes[k]);
        CHECK_EQ_I64(stk_tensor_bytes(t), sizes[k] * 4);
        CHECK(t->inside && t->refs == 1 && t->buffer->refs == 1);
        bool zero = true;
        for (int64_t i = 0; i < sizes[k]; i++) zero &= ((float *)t->data)[i] == 0;
        CHECK(zero);
        stk_tensor_release(t);
    }
    CHECK_EQ_I64(stk_alloc_live(), live);
}

TEST(a_small_tensor_is_one_allocation)
{
    stk_error err;
    stk_tensor *t = NULL;
    int64_t before = stk_alloc_count();
    CHECK_OK(stk_tensor_new(STK_F32, 2, (int64_t[]){10, 10}, &t, &err));
    CHECK_EQ_I64(stk_alloc_count() - before, 1);
    stk_tensor_release(t);
}

TEST(every_dtype_scalar_at_set)
{
    stk_error err;
    for (int d = 0; d < STK_DTYPE_COUNT; d++) {
        stk_tensor *t = NULL;
        if (d == STK_STRING) {
            CHECK_FAILS(stk_tensor_scalar(STK_STRING, 1, &t, &err), STK_ERR_DTYPE, "string");
            CHECK(t == NULL);
            continue;
        }
        REQUIRE(CHECK_OK(stk_tensor_scalar((stk_dtype)d, 1, &t, &err)));
        CHECK_EQ_I64(t->rank, 0);
        CHECK_NEAR(stk_tensor_at(t, 0), 1, 0);
        CHECK_OK(stk_tensor_set(t, 0, 0, &err));
        CHECK_NEAR(stk_tensor_at(t, 0), 0, 0);
        CHECK_NEAR(stk_tensor_at(t, 1), 0, 0);
        CHECK_FAILS(stk_tensor_set(t, 1, 0, &err), STK_ERR_RANGE, "index 1");
        CHECK_FAILS(stk_tensor_set(t, -1, 0, &err), STK_ERR_RANGE, "index -1");
        stk_tensor_release(t);
    }
}

static stk_tensor *counting(int32_t rank, const int64_t *shape)
{
    stk_error err;
    stk_tensor *t = NULL;
    CHECK_OK(stk_tensor_new(STK_I32, rank, shape, &t, &err));
    for (int64_t i = 0; i < stk_tensor_count(t); i++) ((int32_t *)t->data)[i] = (int32_t)i;
    return t;
}

TEST(slices_share_memory_and_keep_it_alive)
{
    stk_error err;
    int64_t live = stk_alloc_live();
    stk_tensor *t = counting(3, (int64_t[]){4, 3, 5}), *s = NULL, *inner = NULL;
    CHECK_OK(stk_tensor_slice(t, (int64_t[]){1, 0, 2}, (int64_t[]){2, 3, 2}, &s, &err));
    CHECK(!s->inside);
    CHECK_EQ_I64(t->buffer->refs, 2);
    CHECK_NEAR(stk_tensor_at(s, 0), 17, 0);
    CHECK_NEAR(stk_tensor_at(s, 11), 43, 0); /* [2,2,3] of t */
    CHECK_OK(stk_tensor_set(s, 0, -7, &err));
    CHECK_NEAR(stk_tensor_at(t, 17), -7, 0);
    stk_tensor_release(t); /* the views go on */
    CHECK_OK(stk_tensor_slice(s, (int64_t[]){1, 1, 1}, (int64_t[]){1, 1, 1}, &inner, &err));
    stk_tensor_release(s);
    CHECK_NEAR(stk_tensor_at(inner, 0), 38, 0);
    CHECK(stk_tensor_is_dense(inner));
    stk_tensor_release(inner);
    CHECK_EQ_I64(stk_alloc_live(), live);
}

TEST(slices_at_the_edges)
{
    stk_error err;
    stk_tensor *t = counting(2, (int64_t[]){2, 3}), *s = NULL, *scalar = NULL;
    CHECK_OK(stk_tensor_slice(t, (int64_t[]){2, 3}, (int64_t[]){0, 0}, &s, &err));
    CHECK_EQ_I64(stk_tensor_count(s), 0);
    CHECK(s->data == t->data); /* no pointer past the block */
    stk_tensor_release(s);
    CHECK_FAILS(stk_tensor_slice(t, (int64_t[]){1, 0}, (int64_t[]){2, 1}, &s, &err), STK_ERR_RANGE,
                "axis 0 from 1 with 2");
    CHECK(s == NULL);
    CHECK_FAILS(stk_tensor_slice(t, (int64_t[]){-1, 0}, (int64_t[]){1, 1}, &s, &err), STK_ERR_RANGE,
                "-1");
    CHECK_FAILS(stk_tensor_slice(t, (int64_t[]){0, INT64_MAX}, (int64_t[]){1, 1}, &s, &err),
                STK_ERR_RANGE, "axis 1");
    CHECK_FAILS(stk_tensor_slice(t, (int64_t[]){0, 1}, (int64_t[]){1, INT64_MAX}, &s, &err),
                STK_ERR_RANGE, "axis 1");
    CHECK_FAILS(stk_tensor_slice(t, NULL, NULL, &s, &err), STK_ERR_ARGUMENT, "NULL");
    CHECK_FAILS(stk_tensor_slice(NULL, NULL, NULL, &s, &err), STK_ERR_ARGUMENT, "NULL");
    CHECK_FAILS(stk_tensor_slice(t, (int64_t[]){0, 0}, (int64_t[]){1, 1}, NULL, &err),
                STK_ERR_ARGUMENT, "out");
    CHECK_OK(stk_tensor_scalar(STK_F32, 5, &scalar, &err));
    CHECK_OK(stk_tensor_slice(scalar, NULL, NULL, &s, &err));
    CHECK_NEAR(stk_tensor_at(s, 0), 5, 0);
    stk_tensor_release(s);
    stk_tensor_release(scalar);
    stk_tensor_release(t);
}

TEST(transposes)
{
    stk_error err;
    stk_tensor *t = counting(3, (int64_t[]){2, 3, 4}), *p = NULL;
    CHECK_OK(stk_tensor_transpose(t, (int32_t[]){2, 0, 1}, &p, &err));
    CHECK_STR(STK_TENSOR_TEXT(p), "int32[4,2,3]");
    for (int64_t a = 0; a < 4; a++)
        for (int64_t b = 0; b < 2; b++)
            for (int64_t c = 0; c < 3; c++)
                CHECK_NEAR(stk_tensor_at(p, (a * 2 + b) * 3 + c), (b * 3 + c) * 4 + a, 0);
    stk_tensor_release(p);
    CHECK_OK(stk_tensor_transpose(t, NULL, &p, &err));
    CHECK_STR(STK_TENSOR_TEXT(p), "int32[4,3,2]");
    CHECK(!stk_tensor_is_dense(p));
    stk_tensor_release(p);
    CHECK_FAILS(stk_tensor_transpose(t, (int32_t[]){0, 1, 1}, &p, &err), STK_ERR_ARGUMENT,
                "entry 2");
    CHECK_FAILS(stk_tensor_transpose(t, (int32_t[]){0, 1, 3}, &p, &err), STK_ERR_ARGUMENT, "0..2");
    CHECK_FAILS(stk_tensor_transpose(t, (int32_t[]){-1, 1, 2}, &p, &err), STK_ERR_ARGUMENT, "-1");
    CHECK_FAILS(stk_tensor_transpose(NULL, NULL, &p, &err), STK_ERR_ARGUMENT, "NULL");
    stk_tensor_release(t);
}

TEST(reshapes_are_views_where_they_can_be)
{
    stk_error err;
    stk_tensor *t = counting(3, (int64_t[]){2, 3, 4}), *r = NULL, *p = NULL, *s = NULL;
    CHECK_OK(stk_tensor_reshape(t, 2, (int64_t[]){-1, 6}, &r, &err));
    CHECK_STR(STK_TENSOR_TEXT(r), "int32[4,6]");
    CHECK(r->buffer == t->buffer);
    stk_tensor_release(r);

    /* [2,3,4] cut to [2,3,2]: the first two axes still merge, the last two do not */
    CHECK_OK(stk_tensor_slice(t, (int64_t[]){0, 0, 1}, (int64_t[]){2, 3, 2}, &s, &err));
    CHECK_OK(stk_tensor_reshape(s, 4, (int64_t[]){6, 1, 2, 1}, &r, &err));
    CHECK(r->buffer == t->buffer);
    for (int64_t i = 0; i < 12; i++) CHECK_NEAR(stk_tensor_at(r, i), stk_tensor_at(s, i), 0);
    stk_tensor_release(r);
    CHECK_OK(stk_tensor_reshape(s, 1, (int64_t[]){12}, &r, &err));
    CHECK(r->buffer != t->buffer);
    CHECK(stk_tensor_is_dense(r));
    for (int64_t i = 0; i < 12; i++) CHECK_NEAR(stk_tensor_at(r, i), stk_tensor_at(s, i), 0);
    stk_tensor_release(r);

    CHECK_OK(stk_tensor_transpose(t, NULL, &p, &err)); /* [4,3,2], strides 1,4,12 */
    CHECK_OK(stk_tensor_reshape(p, 4, (int64_t[]){2, 2, 3, 2}, &r, &err));
    CHECK(r->buffer == t->buffer); /* splitting an axis never needs a copy */
    for (int64_t i = 0; i < 24; i++) CHECK_NEAR(stk_tensor_at(r, i), stk_tensor_at(p, i), 0);
    stk_tensor_release(r);
    CHECK_OK(stk_tensor_reshape(p, 2, (int64_t[]){8, 3}, &r, &err));
    CHECK(r->buffer != t->buffer);
    for (int64_t i = 0; i < 24; i++) CHECK_NEAR(stk_tensor_at(r, i), stk_tensor_at(p, i), 0);
    stk_tensor_release(r);
    stk_tensor_release(p);
    stk_tensor_release(s);
    stk_tensor_release(t);
}

TEST(reshapes_that_cannot_be)
{
    stk_error err;
    stk_tensor *t = counting(2, (int64_t[]){3, 4}), *r = NULL, *empty = NULL, *one = NULL;
    CHECK_FAILS(stk_tensor_reshape(t, 2, (int64_t[]){5, -1}, &r, &err), STK_ERR_SHAPE,
                "int32[3,4] with 12 elements to [5,-1]");
    CHECK_FAILS(stk_tensor_reshape(t, 1, (int64_t[]){11}, &r, &err), STK_ERR_SHAPE, "[11]");
    CHECK_FAILS(stk_tensor_reshape(t, 2, (int64_t[]){-1, -1}, &r, &err), STK_ERR_SHAPE, "-1");
    CHECK_FAILS(stk_tensor_reshape(t, 2, (int64_t[]){-2, 6}, &r, &err), STK_ERR_SHAPE, "-2");
    CHECK_FAILS(stk_tensor_reshape(t, 9, NULL, &r, &err), STK_ERR_SHAPE, "rank 9");
    CHECK_FAILS(stk_tensor_reshape(t, 2, NULL, &r, &err), STK_ERR_ARGUMENT, "NULL");
    CHECK_FAILS(stk_tensor_reshape(t, 0, NULL, &r, &err), STK_ERR_SHAPE, "[]");
    CHECK_FAILS(stk_tensor_reshape(t, 2, (int64_t[]){INT64_MAX, 4}, &r, &err), STK_ERR_RANGE,
                "fit");
    CHECK_FAILS(stk_tensor_reshape(t, 1, (int64_t[]){12}, NULL, &err), STK_ERR_ARGUMENT, "out");
    CHECK_OK(stk_tensor_new(STK_F32, 2, (int64_t[]){0, 4}, &empty, &err));
    CHECK_FAILS(stk_tensor_reshape(empty, 2, (int64_t[]){-1, 0}, &r, &err), STK_ERR_SHAPE,
                "[-1,0]");
    CHECK_OK(stk_tensor_reshape(empty, 3, (int64_t[]){7, -1, 2}, &r, &err));
    CHECK_STR(STK_TENSOR_TEXT(r), "float32[7,0,2]");
    stk_tensor_release(r);
    CHECK_OK(stk_tensor_scalar(STK_F32, 3, &one, &err));
    CHECK_OK(stk_tensor_reshape(one, 3, (int64_t[]){1, -1, 1}, &r, &err));
    CHECK_NEAR(stk_tensor_at(r, 0), 3, 0);
    stk_tensor_release(r);
    stk_tensor_release(one);
    stk_tensor_release(empty);
    stk_tensor_release(t);
}

static int released;
static void count_release(void *owner) { released += owner == &released; }

TEST(foreign_memory_is_given_back_once)
{
    stk_error err;
    float data[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    stk_tensor *t = NULL, *view = NULL;
    released = 0;
    CHECK_OK(stk_tensor_wrap(STK_F32, 2, (int64_t[]){3, 4}, NULL, data, count_release, &released,
                             &t, &err));
    CHECK(t->data == data && stk_tensor_is_dense(t));
    CHECK_OK(stk_tensor_transpose(t, NULL, &view, &err));
    CHECK(stk_tensor_retain(t) == t);
    stk_tensor_release(t);
    stk_tensor_release(t);
    CHECK_EQ_I64(released, 0);
    CHECK_NEAR(stk_tensor_at(view, 1), 4, 0);
    stk_tensor_release(view);
    CHECK_EQ_I64(released, 1);

    /* reversed rows, every second column */
    CHECK_OK(stk_tensor_wrap(STK_F32, 2, (int64_t[]){3, 2}, (int64_t[]){-4, 2}, data + 8, NULL,
                             NULL, &t, &err));
    CHECK_NEAR(stk_tensor_at(t, 0), 8, 0);
    CHECK_NEAR(stk_tensor_at(t, 5), 2, 0);
    CHECK(t->buffer->data == data);
    CHECK_EQ_I64(t->buffer->size, 11 * sizeof(float));
    stk_tensor_release(t);
    CHECK_OK(stk_tensor_wrap(STK_F32, 2, (int64_t[]){5, 3}, (int64_t[]){0, 1}, data, NULL, NULL, &t,
                             &err));
    CHECK_NEAR(stk_tensor_at(t, 14), 2, 0);
    t->buffer->readonly = true;
    CHECK_FAILS(stk_tensor_set(t, 0, 1, &err), STK_ERR_STATE, "read-only");
    stk_tensor_release(t);
    CHECK_OK(stk_tensor_wrap(STK_F32, 1, (int64_t[]){0}, NULL, NULL, NULL, NULL, &t, &err));
    stk_tensor_release(t);
}

TEST(foreign_memory_that_is_refused_stays_with_the_caller)
{
    stk_error err;
    float data[4] = {0};
    stk_tensor *t = NULL;
    released = 0;
    CHECK_FAILS(
        stk_tensor_wrap(STK_F32, 1, (int64_t[]){4}, NULL, NULL, count_release, &released, &t, &err),
        STK_ERR_ARGUMENT, "NULL");
    CHECK_FAILS(stk_tensor_wrap(STK_F32, 1, (int64_t[]){3}, NULL, (char *)data + 1, count_release,
                                &released, &t, &err),
                STK_ERR_ARGUMENT, "aligned");
    CHECK_FAILS(stk_tensor_wrap(STK_F32, 1, (int64_t[]){3}, (int64_t[]){INT64_MAX}, data,
                                count_release, &released, &t, &err),
                STK_ERR_RANGE, "strides");
    CHECK_FAILS(stk_tensor_wrap(STK_F32, 2, (int64_t[]){2, 2}, (int64_t[]){INT64_MAX, INT64_MAX},
                                data, count_release, &released, &t, &err),
                STK_ERR_RANGE, "strides");
    CHECK_FAILS(stk_tensor_wrap((stk_dtype)99, 1, (int64_t[]){3}, NULL, data, count_release,
                                &released, &t, &err),
                STK_ERR_DTYPE, "99");
    CHECK_EQ_I64(released, 0);
    CHECK(t == NULL);
}

TEST(strings)
{
    stk_error err;
    stk_string items[6] = {{"a", 1},  {"", 0},     {"long string", 11},
                           {NULL, 0}, {"x\0y", 3}, {"z", 1}};
    stk_tensor *t = NULL, *p = NULL, *d = NULL;
    int64_t before = stk_alloc_count();
    CHECK_OK(stk_tensor_strings(2, (int64_t[]){2, 3}, items, &t, &err));
    CHECK_EQ_I64(stk_alloc_count() - before, 1);
    stk_string *s = t->data;
    CHECK(s[2].size == 11 && memcmp(s[2].data, "long string", 11) == 0 &&
          s[2].data != items[2].data);
    CHECK(s[4].size == 3 && memcmp(s[4].data, "x\0y", 3) == 0);
    CHECK_NEAR(stk_tensor_at(t, 0), 0, 0);
    CHECK_FAILS(stk_tensor_set(t, 0, 1, &err), STK_ERR_DTYPE, "string[2,3]");
    CHECK_OK(stk_tensor_transpose(t, NULL, &p, &err));
    CHECK_OK(stk_tensor_dense(p, &d, &err));
    stk_tensor_release(p);
    stk_tensor_release(t);
    s = d->data; /* its bytes are its own */
    CHECK(s[4].size == 11 && memcmp(s[4].data, "long string", 11) == 0);
    stk_tensor_release(d);
    CHECK_FAILS(stk_tensor_strings(1, (int64_t[]){1}, &(stk_string){NULL, 2}, &t, &err),
                STK_ERR_ARGUMENT, "string 0");
    CHECK_FAILS(stk_tensor_strings(1, (int64_t[]){1}, &(stk_string){"a", -1}, &t, &err),
                STK_ERR_ARGUMENT, "size -1");
    CHECK_FAILS(stk_tensor_strings(1, (int64_t[]){1}, NULL, &t, &err), STK_ERR_ARGUMENT, "NULL");
    CHECK_OK(stk_tensor_from(STK_STRING, 1, (int64_t[]){6}, items, &t, &err));
    stk_tensor_release(t);
    CHECK_OK(stk_tensor_new(STK_STRING, 1, (int64_t[]){2}, &t, &err));
    CHECK_EQ_I64(((stk_string *)t->data)[1].size, 0);
    stk_tensor_release(t);
}

TEST(bad_input_of_the_makers)
{
    stk_error err;
    stk_tensor *t = (stk_tensor *)&err;
    CHECK_FAILS(stk_tensor_new(STK_F32, 1, (int64_t[]){INT64_MAX}, &t, &err), STK_ERR_RANGE,
                "4 bytes");
    CHECK(t == NULL);
    CHECK_FAILS(stk_tensor_new(STK_F32, 1, (int64_t[]){INT64_MAX / 8}, &t, &err), STK_ERR_MEMORY,
                "out of memory");
    CHECK_FAILS(stk_tensor_new(STK_F32, 1, (int64_t[]){3}, NULL, &err), STK_ERR_ARGUMENT, "out");
    CHECK_FAILS(stk_tensor_new((stk_dtype)-1, 1, (int64_t[]){3}, &t, &err), STK_ERR_DTYPE, "-1");
    CHECK_FAILS(stk_tensor_from(STK_F32, 1, (int64_t[]){3}, NULL, &t, &err), STK_ERR_ARGUMENT,
                "12 bytes");
    CHECK_OK(stk_tensor_from(STK_F32, 1, (int64_t[]){0}, NULL, &t, &err));
    stk_tensor_release(t);
    CHECK_STATUS(stk_tensor_new(STK_F32, 99, NULL, &t, NULL), STK_ERR_SHAPE);
    stk_tensor_release(NULL);
    CHECK(stk_tensor_retain(NULL) == NULL);
    CHECK_EQ_I64(stk_tensor_count(NULL), 0);
    CHECK_EQ_I64(stk_tensor_bytes(NULL), 0);
    CHECK(!stk_tensor_is_dense(NULL));
    CHECK_NEAR(stk_tensor_at(NULL, 0), 0, 0);
    CHECK_FAILS(stk_tensor_set(NULL, 0, 0, &err), STK_ERR_ARGUMENT, "NULL");
    CHECK_STR(STK_TENSOR_TEXT(NULL), "NULL");
}

/* Every public call that allocates, each giving back what it takes. */
static stk_status use_all(stk_error *err)
{
    stk_tensor *made[12] = {0};
    int n = 0;
    stk_status status;
    stk_string words[2] = {{"one", 3}, {"two", 3}};
    float numbers[6] = {1, 2, 3, 4, 5, 6};
    int64_t shape[2] = {2, 3}, big = 1 << 20;
#define MAKE(call)                                                                                 \
    if ((status = (call)) != STK_OK) goto end;                                                     \
    n++
    MAKE(stk_tensor_new(STK_F32, 2, shape, &made[n], err));
    MAKE(stk_tensor_new(STK_F32, 1, &big, &made[n], err));
    MAKE(stk_tensor_from(STK_F32, 2, shape, numbers, &made[n], err));
    MAKE(stk_tensor_wrap(STK_F32, 2, shape, NULL, numbers, NULL, NULL, &made[n], err));
    MAKE(stk_tensor_strings(1, (int64_t[]){2}, words, &made[n], err));
    MAKE(stk_tensor_scalar(STK_I64, 4, &made[n], err));
    MAKE(stk_tensor_slice(made[0], (int64_t[]){0, 1}, (int64_t[]){2, 2}, &made[n], err));
    MAKE(stk_tensor_transpose(made[2], NULL, &made[n], err));
    MAKE(stk_tensor_reshape(made[2], 1, (int64_t[]){6}, &made[n], err));
    MAKE(stk_tensor_reshape(made[6], 1, (int64_t[]){4}, &made[n], err));
    MAKE(stk_tensor_dense(made[7], &made[n], err));
    MAKE(stk_tensor_cast(made[2], STK_BF16, &made[n], err));
    status = stk_tensor_copy(made[8], made[9], NULL) == STK_ERR_SHAPE ? STK_OK : STK_ERR_INTERNAL;
end:
    for (int i = 0; i < n; i++) stk_tensor_release(made[i]);
    return status;
}

TEST(out_of_memory_leaks_nothing)
{
    stk_error err;
    OOM_LOOP(use_all(&err));
}

TEST_MAIN()
