/* .npy: files made by numpy (tools/make_numpy_fixtures.py) are read; ours are the same bytes. */
#include "check.h"
#include "temporary.h"

#include "base/dtype.h"
#include "base/file.h"
#include "base/npy.h"
#include "base/tensor.h"

static const char *fixture(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/fixtures/numpy/%s.npy", STK_TEST_DIR, name);
    return path;
}

static stk_tensor *load(const char *name)
{
    stk_error err;
    stk_tensor *t = NULL;
    CHECK_OK(stk_npy_load(fixture(name), &t, &err));
    return t;
}

static const double base[6] = {0, 1, 2, 3, 4, 100};
static double expected(stk_dtype dtype, int i)
{
    switch (stk_dtype_kind(dtype)) {
    case 'F': return base[i] * 0.5 - 1;
    case 'I': return base[i] - 2;
    case 'B': return fmod(base[i], 2);
    default: return base[i];
    }
}

static void check_values(const stk_tensor *t, stk_dtype dtype)
{
    REQUIRE(CHECK(t != NULL));
    CHECK_EQ_I64(t->dtype, dtype);
    CHECK(t->rank == 2 && t->shape[0] == 2 && t->shape[1] == 3 && stk_tensor_is_dense(t));
    for (int i = 0; i < 6; i++) CHECK_NEAR(stk_tensor_at(t, i), expected(dtype, i), 0);
}

static const struct {
    const char *name;
    stk_dtype dtype;
} kinds[] = {{"f4", STK_F32}, {"f8", STK_F64}, {"f2", STK_F16}, {"i1", STK_I8},
             {"u1", STK_U8},  {"i2", STK_I16}, {"u2", STK_U16}, {"i4", STK_I32},
             {"u4", STK_U32}, {"i8", STK_I64}, {"u8", STK_U64}, {"b1", STK_BOOL}};

TEST(numpy_files_of_every_type_and_byte_order)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        stk_tensor *t = load(kinds[i].name);
        check_values(t, kinds[i].dtype);
        stk_tensor_release(t);
        if (stk_dtype_size(kinds[i].dtype) == 1) continue;
        char big[16];
        snprintf(big, sizeof big, "%s_big", kinds[i].name);
        t = load(big);
        check_values(t, kinds[i].dtype);
        stk_tensor_release(t);
    }
    stk_tensor *t = load("bf16");
    check_values(t, STK_BF16);
    stk_tensor_release(t);
}

TEST(versions_orders_and_shapes)
{
    const char *same[] = {"fortran", "version2", "version3"};
    for (int i = 0; i < 3; i++) {
        stk_tensor *t = load(same[i]);
        check_values(t, STK_F32);
        stk_tensor_release(t);
    }
    stk_tensor *t = load("fortran3");
    CHECK_STR(STK_TENSOR_TEXT(t), "int32[2,3,4]");
    for (int i = 0; i < 24; i++) CHECK_NEAR(stk_tensor_at(t, i), i, 0);
    stk_tensor_release(t);
    t = load("scalar");
    CHECK_STR(STK_TENSOR_TEXT(t), "float32[]");
    CHECK_NEAR(stk_tensor_at(t, 0), 2.5, 0);
    stk_tensor_release(t);
    t = load("empty");
    CHECK_STR(STK_TENSOR_TEXT(t), "float32[0,3]");
    stk_tensor_release(t);
    t = load("one_axis");
    CHECK_STR(STK_TENSOR_TEXT(t), "int64[5]");
    stk_tensor_release(t);
    t = load("eight_axes");
    CHECK_STR(STK_TENSOR_TEXT(t), "uint8[1,2,1,1,1,2,1,1]");
    stk_tensor_release(t);
}

static void check_string(const stk_tensor *t, int64_t i, const char *text, int64_t size)
{
    const stk_string *s = &((const stk_string *)t->data)[i];
    CHECK_EQ_I64(s->size, size);
    CHECK(s->size == size && memcmp(s->data, text, (size_t)size) == 0);
}

TEST(strings)
{
    stk_tensor *t = load("bytes");
    CHECK_STR(STK_TENSOR_TEXT(t), "string[2,3]");
    check_string(t, 0, "a", 1);
    check_string(t, 1, "", 0);
    check_string(t, 2, "long", 4);
    check_string(t, 3, "x\0y", 3);
    check_string(t, 4, "\xff", 1);
    stk_tensor_release(t);
    const char *orders[] = {"words", "words_big"};
    for (int k = 0; k < 2; k++) {
        t = load(orders[k]);
        check_string(t, 1, "", 0);
        check_string(t, 2, "h\xc3\xa9", 3);
        check_string(t, 3, "\xe2\x82\xac", 3);
        check_string(t, 4, "\xf0\x9f\x98\x80!", 5);
        stk_tensor_release(t);
    }
}

TEST(types_that_are_refused)
{
    stk_error err;
    stk_tensor *t = NULL;
    CHECK_FAILS(stk_npy_load(fixture("refused_object"), &t, &err), STK_ERR_UNSUPPORTED,
                "Python code");
    CHECK_FAILS(stk_npy_load(fixture("refused_record"), &t, &err), STK_ERR_UNSUPPORTED, "records");
    CHECK_FAILS(stk_npy_load(fixture("refused_complex"), &t, &err), STK_ERR_UNSUPPORTED, "'<c8'");
    CHECK_FAILS(stk_npy_load(fixture("refused_date"), &t, &err), STK_ERR_UNSUPPORTED, "'<M8[s]'");
    CHECK_FAILS(stk_npy_load(fixture("refused_nine_axes"), &t, &err), STK_ERR_UNSUPPORTED,
                "more than 8 axes");
    CHECK(t == NULL);
}

/* Byte for byte what numpy writes, so numpy reads it. */
static void check_same_file(const stk_tensor *t, const char *name)
{
    stk_error err;
    char *ours = NULL, *theirs = NULL;
    size_t our_size = 0, their_size = 0;
    CHECK_OK(stk_npy_save(temporary("out.npy"), t, &err));
    CHECK_OK(stk_file_read(temporary("out.npy"), 1 << 20, &ours, &our_size, &err));
    CHECK_OK(stk_file_read(fixture(name), 1 << 20, &theirs, &their_size, &err));
    CHECK_MSG(our_size == their_size && memcmp(ours, theirs, our_size) == 0, "%s differs", name);
    stk_free(ours);
    stk_free(theirs);
}

TEST(our_files_are_numpy_s_files)
{
    stk_error err;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        stk_tensor *t = load(kinds[i].name);
        check_same_file(t, kinds[i].name);
        stk_tensor_release(t);
    }
    const char *more[] = {"scalar", "empty", "one_axis", "eight_axes", "bytes"};
    for (int i = 0; i < 5; i++) {
        stk_tensor *t = load(more[i]);
        check_same_file(t, more[i]);
        stk_tensor_release(t);
    }
    stk_tensor *t = load("f4"), *turned = NULL, *back = NULL, *dense = NULL;
    CHECK_OK(stk_tensor_transpose(t, NULL, &turned, &err)); /* strides that are not dense */
    CHECK_OK(stk_tensor_dense(turned, &dense, &err));
    CHECK_OK(stk_tensor_transpose(dense, NULL, &back, &err));
    CHECK(!stk_tensor_is_dense(back));
    check_same_file(back, "f4");
    stk_tensor_release(t);
    stk_tensor_release(turned);
    stk_tensor_release(dense);
    stk_tensor_release(back);
}

TEST(bfloat16_there_and_back)
{
    stk_error err;
    stk_tensor *t = load("bf16"), *again = NULL;
    CHECK_OK(stk_npy_save(temporary("b.npy"), t, &err));
    CHECK_OK(stk_npy_load(temporary("b.npy"), &again, &err));
    check_values(again, STK_BF16);
    stk_tensor_release(t);
    stk_tensor_release(again);
}

/* A file with this header text and `data` zero bytes behind it. */
static stk_status parse(const char *header, size_t data, stk_tensor **t, stk_error *err)
{
    char file[1024] = "\x93NUMPY\x01";
    size_t length = strlen(header);
    file[7] = 0;
    file[8] = (char)(length & 255);
    file[9] = (char)(length >> 8);
    memcpy(file + 10, header, length);
    memset(file + 10 + length, 2, data);
    *t = NULL;
    return stk_npy_parse("made up", file, 10 + length + data, t, err);
}

TEST(headers_of_other_writers)
{
    stk_error err;
    stk_tensor *t = NULL;
    const char *good[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
        "{\"shape\":(2,),\"fortran_order\":False,\"descr\":\"<f4\"}\n",
        "  {  'descr' :'<f4' , 'fortran_order':True,'shape':( 2 , )} \t\r\n",
        "{'descr': 'f4', 'fortran_order': False, 'shape': (2L,)}",
        "{'descr': '=f4', 'fortran_order': False, 'shape': (1, 2)}",
        "{'descr': '|S8', 'fortran_order': False, 'shape': ()}",
        "{'descr': '|S0', 'fortran_order': False, 'shape': (3,)}",
        "{'descr': '|b1', 'fortran_order': False, 'shape': (8,)}",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CHECK_OK(parse(good[i], 8, &t, &err));
        if (i == 7) CHECK_NEAR(stk_tensor_at(t, 7), 1, 0); /* byte 2 is true */
        if (i == 7) CHECK_EQ_I64(((uint8_t *)t->data)[7], 1);
        stk_tensor_release(t);
    }
}

TEST(headers_that_lie)
{
    stk_error err;
    stk_tensor *t = NULL;
    const struct {
        const char *header, *fragment;
        stk_status status;
    } bad[] = {
        {"", "expected '{'", STK_ERR_FORMAT},
        {"{", "a quoted word", STK_ERR_FORMAT},
        {"{'descr': '<f4'", "',' or '}'", STK_ERR_FORMAT},
        {"{'descr': '<f4'}", "are needed", STK_ERR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", "True or False", STK_ERR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 2}", "'('", STK_ERR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", "a size", STK_ERR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}", "',' or ')'", STK_ERR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "63 bits",
         STK_ERR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", "needs more than the 8",
         STK_ERR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,)}", "63 bits",
         STK_ERR_RANGE},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", "63 bits",
         STK_ERR_RANGE},
        {"{'descr': '|S0', 'fortran_order': False, 'shape': (100000000000,)}", "needs more",
         STK_ERR_FORMAT},
        {"{'descr': '<U2', 'fortran_order': False, 'shape': (1,)}", "no character", STK_ERR_FORMAT},
        {"{'descr': '<f3', 'fortran_order': False, 'shape': (1,)}", "'<f3'", STK_ERR_UNSUPPORTED},
        {"{'descr': '<f16', 'fortran_order': False, 'shape': (1,)}", "'<f16'", STK_ERR_UNSUPPORTED},
        {"{'descr': '', 'fortran_order': False, 'shape': (1,)}", "''", STK_ERR_UNSUPPORTED},
        {"{'descr': '<', 'fortran_order': False, 'shape': (1,)}", "'<'", STK_ERR_UNSUPPORTED},
        {"{'other': 1}", "descr, fortran_order or shape", STK_ERR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", "nothing after",
         STK_ERR_FORMAT},
        {"{'de\\scr': '<f4'}", "end of a short", STK_ERR_FORMAT},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_FAILS(parse(bad[i].header, 8, &t, &err), bad[i].status, bad[i].fragment);
        CHECK(t == NULL);
    }
    CHECK_FAILS(stk_npy_parse("m", "\x93NUMPX\x01\0\0\0", 10, &t, &err), STK_ERR_FORMAT,
                "does not start");
    CHECK_FAILS(stk_npy_parse("m", "\x93NUMPY\x04\0\0\0", 10, &t, &err), STK_ERR_UNSUPPORTED,
                "4.0");
    CHECK_FAILS(stk_npy_parse("m", "\x93NUMPY\x02\0\xff\xff\xff\x7f", 12, &t, &err), STK_ERR_FORMAT,
                "not believed");
    CHECK_FAILS(stk_npy_parse("m", "\x93NUM", 4, &t, &err), STK_ERR_FORMAT, "too early");
}

TEST(every_cut_of_a_file_is_refused)
{
    stk_error err;
    char *data = NULL;
    size_t size;
    CHECK_OK(stk_file_read(fixture("f8"), 1 << 20, &data, &size, &err));
    for (size_t cut = 0; cut < size; cut++) {
        stk_tensor *t = NULL;
        CHECK_STATUS(stk_npy_parse("cut", data, cut, &t, &err), STK_ERR_FORMAT);
        CHECK(t == NULL);
    }
    stk_free(data);
}

static stk_status there_and_back(const char *path, const stk_tensor *t, stk_error *err)
{
    stk_tensor *again = NULL;
    stk_status status = stk_npy_save(path, t, err);
    if (status == STK_OK) status = stk_npy_load(path, &again, err);
    stk_tensor_release(again);
    return status;
}

TEST(bad_arguments_and_no_memory)
{
    stk_error err;
    stk_tensor *t = load("f4"), *words = load("words"), *turned = load("fortran3"), *out = NULL;
    CHECK_FAILS(stk_npy_load(NULL, &out, &err), STK_ERR_ARGUMENT, "NULL");
    CHECK_FAILS(stk_npy_load("x", NULL, &err), STK_ERR_ARGUMENT, "NULL");
    CHECK_FAILS(stk_npy_load(temporary("none.npy"), &out, &err), STK_ERR_IO, "No such file");
    CHECK_FAILS(stk_npy_save(NULL, t, &err), STK_ERR_ARGUMENT, "NULL");
    CHECK_FAILS(stk_npy_save(temporary("x.npy"), NULL, &err), STK_ERR_ARGUMENT, "NULL");
    CHECK_FAILS(stk_npy_save(temporary("no/x.npy"), t, &err), STK_ERR_IO, "No such file");
    stk_tensor *tail = NULL;
    CHECK_OK(stk_tensor_strings(1, (int64_t[]){1}, &(stk_string){"a\0", 2}, &tail, &err));
    CHECK_FAILS(stk_npy_save(temporary("x.npy"), tail, &err), STK_ERR_UNSUPPORTED, "zero byte");
    stk_tensor_release(tail);
    char path[256], fortran[512];
    snprintf(path, sizeof path, "%s", temporary("oom.npy"));
    snprintf(fortran, sizeof fortran, "%s", fixture("fortran3"));
    stk_tensor *view = NULL;
    CHECK_OK(stk_tensor_transpose(turned, NULL, &view, &err));
    OOM_LOOP(there_and_back(path, t, &err));
    OOM_LOOP(there_and_back(path, words, &err));
    OOM_LOOP(there_and_back(path, view, &err));
    stk_tensor_release(view);
    stk_tensor_release(t);
    stk_tensor_release(words);
    stk_tensor_release(turned);
}

TEST_MAIN()
