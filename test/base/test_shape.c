/* Shapes: checks, broadcasting, strides, text. */
#include "check.h"

#include "base/shape.h"

static stk_shape shape_of(int32_t rank, const int64_t *dims)
{
    stk_shape s = {.rank = rank};
    for (int i = 0; i < rank; i++) s.dim[i] = dims[i];
    return s;
}
#define SHAPE(...)                                                                                 \
    shape_of((int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                        \
             (int64_t[]){__VA_ARGS__})

TEST(check_refuses_what_cannot_be)
{
    stk_error err;
    int64_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    CHECK_OK(stk_shape_check("t", 0, NULL, 4, &err));
    CHECK_OK(stk_shape_check("t", 8, nine, 4, &err));
    CHECK_OK(stk_shape_check("t", 2, (int64_t[]){0, INT64_MAX / 8}, 8, &err));
    CHECK_FAILS(stk_shape_check("t", 9, nine, 4, &err), STK_ERR_SHAPE, "rank 9");
    CHECK_FAILS(stk_shape_check("t", -1, nine, 4, &err), STK_ERR_SHAPE, "rank -1");
    CHECK_FAILS(stk_shape_check("t", 1, NULL, 4, &err), STK_ERR_ARGUMENT, "NULL");
    CHECK_FAILS(stk_shape_check("t", 2, (int64_t[]){3, -2}, 4, &err), STK_ERR_SHAPE, "size -2");
    CHECK_FAILS(stk_shape_check("t", 1, (int64_t[]){INT64_MAX / 4 + 1}, 4, &err), STK_ERR_RANGE,
                "4 bytes");
    CHECK_FAILS(stk_shape_check("t", 3, (int64_t[]){0, INT64_MAX, 2}, 1, &err), STK_ERR_RANGE,
                "[0,9223372036854775807,2]");
}

TEST(broadcast_follows_numpy)
{
    stk_shape out, a = SHAPE(3, 1), b = SHAPE(1, 4), scalar = {0}, c = SHAPE(5, 3, 4),
                   zero = SHAPE(0, 4), two = SHAPE(2, 4);
    REQUIRE(CHECK(stk_shape_broadcast(&a, &b, &out)));
    CHECK_STR(STK_SHAPE_TEXT(&out), "[3,4]");
    REQUIRE(CHECK(stk_shape_broadcast(&scalar, &c, &out)));
    CHECK(stk_shape_equal(&out, &c));
    REQUIRE(CHECK(stk_shape_broadcast(&c, &a, &out)));
    CHECK(stk_shape_equal(&out, &c));
    REQUIRE(CHECK(stk_shape_broadcast(&zero, &b, &out)));
    CHECK(stk_shape_equal(&out, &zero));
    CHECK(!stk_shape_broadcast(&two, &c, &out));
    CHECK(!stk_shape_broadcast(&zero, &two, &out));
    REQUIRE(CHECK(stk_shape_broadcast(&a, &b, &a))); /* out may be an input */
    CHECK_STR(STK_SHAPE_TEXT(&a), "[3,4]");
}

TEST(strides_and_text)
{
    int64_t stride[STK_MAX_RANK];
    stk_shape s = SHAPE(2, 3, 4), empty = SHAPE(2, 0, 4), scalar = {0};
    stk_shape_strides(&s, stride);
    CHECK_EQ_I64(stride[0], 12);
    CHECK_EQ_I64(stride[1], 4);
    CHECK_EQ_I64(stride[2], 1);
    stk_shape_strides(&empty, stride);
    CHECK_EQ_I64(stride[0], 4);
    CHECK_EQ_I64(stk_shape_count(&empty), 0);
    CHECK_EQ_I64(stk_shape_count(&scalar), 1);
    CHECK_STR(STK_SHAPE_TEXT(&scalar), "[]");
    char tiny[4];
    CHECK_STR(stk_shape_text(&s, tiny, sizeof tiny), "[2,");
    CHECK(!stk_shape_equal(&s, &empty));
    CHECK(!stk_shape_equal(&s, &scalar));
}

TEST_MAIN()
