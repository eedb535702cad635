/* Copies and casts: every pair of types, strides of every kind, against one-element conversions. */
#include "check.h"

#include "base/convert.h"
#include "base/tensor.h"

static const double values[] = {0,
                                -0.0,
                                1,
                                -1,
                                0.5,
                                -0.5,
                                1.5,
                                2.5,
                                127,
                                128,
                                -128,
                                -129,
                                255,
                                256,
                                32767,
                                32768,
                                -32769,
                                65504,
                                65520,
                                65535,
                                65536,
                                1e-7,
                                6e-8,
                                -3e-8,
                                1e10,
                                -1e10,
                                2147483647.0,
                                2147483648.0,
                                -2147483649.0,
                                4294967295.0,
                                4294967296.0,
                                9.2e18,
                                1.8e19,
                                2e19,
                                -1e19,
                                3.4e38,
                                1e39,
                                -1e300,
                                INFINITY,
                                -INFINITY,
                                NAN,
                                1e-310};
enum { VALUES = sizeof values / sizeof *values };

/* What an element should become: the single-element rules of dtype.h. */
static void expected_element(stk_dtype to, void *at, stk_dtype from, const void *x)
{
    char kind = stk_dtype_kind(from);
    if (kind == 'F' || (from == STK_U64 && stk_dtype_kind(to) == 'F'))
        stk_store_f64(to, at, stk_load_f64(from, x));
    else
        stk_store_i64(to, at, stk_load_i64(from, x));
}

/* NaN has many bit patterns: any is as good. */
static bool same_element(stk_dtype dtype, const void *a, const void *b)
{
    double x = stk_load_f64(dtype, a), y = stk_load_f64(dtype, b);
    return (x != x && y != y) || memcmp(a, b, (size_t)stk_dtype_size(dtype)) == 0;
}

TEST(every_pair_of_types)
{
    for (int f = 0; f < STK_STRING; f++) {
        stk_dtype from = (stk_dtype)f;
        uint64_t source[VALUES], result[VALUES], one;
        int64_t from_size = stk_dtype_size(from);
        for (int i = 0; i < VALUES; i++)
            stk_store_f64(from, (char *)source + i * from_size, values[i]);
        for (int t = 0; t < STK_STRING; t++) {
            stk_dtype to = (stk_dtype)t;
            int64_t to_size = stk_dtype_size(to);
            stk_convert(to, result, from, source, VALUES);
            for (int i = 0; i < VALUES; i++) {
                const char *x = (char *)source + i * from_size, *y = (char *)result + i * to_size;
                expected_element(to, &one, from, x);
                if (to == from) memcpy(&one, x, (size_t)to_size);
                CHECK_MSG(same_element(to, y, &one), "%s -> %s of %g: %g, expected %g",
                          stk_dtype_name(from), stk_dtype_name(to), stk_load_f64(from, x),
                          stk_load_f64(to, y), stk_load_f64(to, &one));
            }
        }
    }
}

TEST(foreign_bools_of_any_byte_count_as_one)
{
    uint8_t odd[3] = {0, 2, 255};
    float f[3];
    int64_t i[3];
    stk_convert(STK_F32, f, STK_BOOL, odd, 3);
    stk_convert(STK_I64, i, STK_BOOL, odd, 3);
    CHECK(f[0] == 0 && f[1] == 1 && f[2] == 1 && i[0] == 0 && i[1] == 1 && i[2] == 1);
}

TEST(double_to_half_rounds_once)
{
    /* 1 + 2^-11 is a tie between halves; a little more must round up, a little less down. A float
     * in between would lose the little. */
    CHECK_EQ_I64(stk_f64_to_f16(1 + 0x1p-11), 0x3c00);
    CHECK_EQ_I64(stk_f64_to_f16(1 + 0x1p-11 + 0x1p-40), 0x3c01);
    CHECK_EQ_I64(stk_f64_to_f16(1 + 0x1p-10 + 0x1p-11 - 0x1p-40), 0x3c01);
    CHECK_EQ_I64(stk_f64_to_f16(-(1 + 0x1p-11 + 0x1p-40)), 0xbc01);
    CHECK_EQ_I64(stk_f64_to_f16(65519.9999999), 0x7bff);
    CHECK_EQ_I64(stk_f64_to_f16(65520), 0x7c00);
    CHECK_EQ_I64(stk_f64_to_f16(1e300), 0x7c00);
    CHECK_EQ_I64(stk_f64_to_f16(0x1p-25), 0);
    CHECK_EQ_I64(stk_f64_to_f16(0x1p-25 + 0x1p-60), 1);
}

TEST(half_survives_the_way_to_float_and_back)
{
    for (uint32_t h = 0; h < 65536; h++) {
        float f = stk_f16_to_f32((uint16_t)h), b = stk_bf16_to_f32((uint16_t)h);
        if (f == f)
            CHECK_EQ_I64(stk_f32_to_f16(f), h);
        else
            CHECK((stk_f32_to_f16(f) & 0x7fff) > 0x7c00);
        if (b == b)
            CHECK_EQ_I64(stk_f32_to_bf16(b), h);
        else
            CHECK((stk_f32_to_bf16(b) & 0x7fff) > 0x7f80);
    }
}

static uint64_t state = 88172645463325252u;
static int64_t draw(int64_t n) /* xorshift: shapes only, no statistics asked */
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int64_t)(state % (uint64_t)n);
}

/* A view with a random layout: axes permuted, some cut, some reversed. */
static stk_tensor *random_view(stk_dtype dtype, int32_t rank, const int64_t *shape, bool broadcast)
{
    stk_error err;
    int32_t perm[STK_MAX_RANK];
    int64_t grown[STK_MAX_RANK], start[STK_MAX_RANK], size[STK_MAX_RANK];
    for (int32_t i = 0; i < rank; i++) perm[i] = i;
    for (int32_t i = rank - 1; i > 0; i--) {
        int64_t j = draw(i + 1);
        int32_t swap = perm[i];
        perm[i] = perm[j];
        perm[j] = swap;
    }
    for (int32_t i = 0; i < rank; i++) { /* axis perm[i] of the block is axis i of the view */
        start[perm[i]] = draw(3);
        size[perm[i]] = shape[i];
        grown[perm[i]] = shape[i] + start[perm[i]] + draw(2);
    }
    stk_tensor *block = NULL, *cut = NULL, *view = NULL;
    CHECK_OK(stk_tensor_new(dtype, rank, grown, &block, &err));
    CHECK_OK(stk_tensor_slice(block, start, size, &cut, &err));
    CHECK_OK(stk_tensor_transpose(cut, perm, &view, &err));
    for (int i = 0; i < rank; i++) {
        int64_t kind = draw(broadcast ? 6 : 3);
        if (kind == 1 && shape[i] > 0 && stk_tensor_count(view) > 0) { /* reverse */
            view->data =
                (char *)view->data + (shape[i] - 1) * view->stride[i] * stk_dtype_size(dtype);
            view->stride[i] = -view->stride[i];
        } else if (kind == 4) {
            view->stride[i] = 0;
        }
    }
    stk_tensor_release(block);
    stk_tensor_release(cut);
    return view;
}

TEST(random_layouts_against_element_by_element)
{
    stk_error err;
    for (int round = 0; round < 3000; round++) {
        int32_t rank = (int32_t)draw(6);
        int64_t shape[STK_MAX_RANK] = {0};
        for (int i = 0; i < rank; i++) shape[i] = draw(20) == 0 ? 0 : 1 + draw(rank > 3 ? 4 : 9);
        if (rank && draw(10) == 0) shape[rank - 1] = 600 + draw(200); /* longer than a chunk */
        stk_dtype from_type = (stk_dtype)draw(STK_STRING), to_type = (stk_dtype)draw(STK_STRING);
        if (draw(2)) to_type = from_type;
        stk_tensor *from = random_view(from_type, rank, shape, true);
        stk_tensor *to = random_view(to_type, rank, shape, false);
        int64_t count = stk_tensor_count(from), wrong = 0;
        for (int64_t i = 0; i < count; i++)
            CHECK_OK(stk_tensor_set(from, i, (double)draw(200), &err));
        CHECK_OK(stk_tensor_copy(to, from, &err));
        for (int64_t i = 0; i < count; i++) {
            uint64_t one;
            expected_element(to_type, &one, from_type, stk_tensor_address(from, i));
            wrong += !same_element(to_type, stk_tensor_address(to, i), &one);
        }
        CHECK_MSG(wrong == 0, "round %d: %s -> %s: %lld wrong", round, STK_TENSOR_TEXT(from),
                  STK_TENSOR_TEXT(to), (long long)wrong);
        stk_tensor_release(from);
        stk_tensor_release(to);
    }
}

TEST(copies_write_nothing_beside_the_view)
{
    stk_error err;
    stk_tensor *block = NULL, *hole = NULL, *ones = NULL;
    CHECK_OK(stk_tensor_new(STK_U8, 2, (int64_t[]){5, 7}, &block, &err));
    CHECK_OK(stk_tensor_slice(block, (int64_t[]){1, 2}, (int64_t[]){3, 4}, &hole, &err));
    CHECK_OK(stk_tensor_new(STK_F32, 2, (int64_t[]){3, 4}, &ones, &err));
    for (int i = 0; i < 12; i++) CHECK_OK(stk_tensor_set(ones, i, 1, &err));
    CHECK_OK(stk_tensor_copy(hole, ones, &err));
    double sum = 0;
    for (int i = 0; i < 35; i++) sum += stk_tensor_at(block, i);
    CHECK_NEAR(sum, 12, 0);
    CHECK_NEAR(stk_tensor_at(block, 9), 1, 0);
    CHECK_NEAR(stk_tensor_at(block, 8), 0, 0);
    stk_tensor_release(block);
    stk_tensor_release(hole);
    stk_tensor_release(ones);
}

TEST(overlapping_copies_read_before_they_write)
{
    stk_error err;
    stk_tensor *t = NULL, *low = NULL, *high = NULL, *turned = NULL;
    CHECK_OK(stk_tensor_new(STK_I32, 1, (int64_t[]){10}, &t, &err));
    for (int i = 0; i < 10; i++) ((int32_t *)t->data)[i] = i;
    CHECK_OK(stk_tensor_slice(t, (int64_t[]){0}, (int64_t[]){9}, &low, &err));
    CHECK_OK(stk_tensor_slice(t, (int64_t[]){1}, (int64_t[]){9}, &high, &err));
    CHECK_OK(stk_tensor_copy(high, low, &err));
    for (int i = 1; i < 10; i++) CHECK_EQ_I64(((int32_t *)t->data)[i], i - 1);
    stk_tensor_release(low);
    stk_tensor_release(high);
    stk_tensor_release(t);

    CHECK_OK(stk_tensor_new(STK_I32, 2, (int64_t[]){3, 3}, &t, &err));
    for (int i = 0; i < 9; i++) ((int32_t *)t->data)[i] = i;
    CHECK_OK(stk_tensor_transpose(t, NULL, &turned, &err));
    CHECK_OK(stk_tensor_copy(t, turned, &err));
    CHECK_EQ_I64(((int32_t *)t->data)[1], 3);
    CHECK_EQ_I64(((int32_t *)t->data)[3], 1);
    CHECK_OK(stk_tensor_copy(t, t, &err));
    stk_tensor_release(turned);
    stk_tensor_release(t);
}

TEST(dense_gives_the_same_handle_when_it_can)
{
    stk_error err;
    stk_tensor *t = NULL, *d = NULL, *turned = NULL;
    CHECK_OK(stk_tensor_new(STK_F32, 2, (int64_t[]){64, 100}, &t, &err));
    for (int i = 0; i < 6400; i++) ((float *)t->data)[i] = (float)i;
    CHECK_OK(stk_tensor_dense(t, &d, &err));
    CHECK(d == t);
    stk_tensor_release(d);
    CHECK_OK(stk_tensor_transpose(t, NULL, &turned, &err));
    CHECK_OK(stk_tensor_dense(turned, &d, &err));
    CHECK(d->buffer != t->buffer && stk_tensor_is_dense(d));
    for (int64_t i = 0; i < 6400; i++)
        CHECK(((float *)d->data)[i] == (float)(i % 64 * 100 + i / 64));
    stk_tensor_release(d);
    stk_tensor_release(turned);
    stk_tensor_release(t);
}

TEST(bad_copies)
{
    stk_error err;
    stk_tensor *a = NULL, *b = NULL, *s = NULL, *out = NULL;
    CHECK_OK(stk_tensor_new(STK_F32, 2, (int64_t[]){2, 3}, &a, &err));
    CHECK_OK(stk_tensor_new(STK_F32, 1, (int64_t[]){6}, &b, &err));
    CHECK_OK(stk_tensor_new(STK_STRING, 2, (int64_t[]){2, 3}, &s, &err));
    CHECK_FAILS(stk_tensor_copy(a, b, &err), STK_ERR_SHAPE, "float32[6] does not fit into");
    CHECK_FAILS(stk_tensor_copy(a, s, &err), STK_ERR_DTYPE, "string[2,3]");
    CHECK_FAILS(stk_tensor_copy(s, s, &err), STK_ERR_DTYPE, "string");
    CHECK_FAILS(stk_tensor_copy(NULL, a, &err), STK_ERR_ARGUMENT, "NULL");
    CHECK_FAILS(stk_tensor_copy(a, NULL, &err), STK_ERR_ARGUMENT, "NULL");
    CHECK_FAILS(stk_tensor_cast(a, STK_STRING, &out, &err), STK_ERR_DTYPE, "do not mix");
    CHECK_FAILS(stk_tensor_cast(a, (stk_dtype)77, &out, &err), STK_ERR_DTYPE, "77");
    CHECK_FAILS(stk_tensor_cast(NULL, STK_F32, &out, &err), STK_ERR_ARGUMENT, "NULL");
    CHECK_FAILS(stk_tensor_cast(a, STK_F32, NULL, &err), STK_ERR_ARGUMENT, "out");
    CHECK_FAILS(stk_tensor_dense(NULL, &out, &err), STK_ERR_ARGUMENT, "NULL");
    CHECK_FAILS(stk_tensor_dense(a, NULL, &err), STK_ERR_ARGUMENT, "out");
    a->stride[0] = 0;
    CHECK_FAILS(stk_tensor_copy(a, a, &err), STK_ERR_ARGUMENT, "broadcast");
    a->stride[0] = 3;
    a->buffer->readonly = true;
    CHECK_FAILS(stk_tensor_copy(a, a, &err), STK_ERR_STATE, "read-only");
    stk_tensor_release(a);
    stk_tensor_release(b);
    stk_tensor_release(s);
}

TEST_MAIN()
