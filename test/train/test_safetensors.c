/* safetensors: round trips, files of other programs, and everything that must be refused. */
#include "check.h"
#include "temporary.h"

#include "train/safetensors.h"

TEST(what_was_saved_comes_back)
{
    stk_error err;
    stk_tensor *t[3] = {NULL};
    stk_safetensors *file = NULL;
    const char *names[] = {"mask", "kernel", "step"};
    CHECK_OK(stk_tensor_from(STK_BOOL, 1, (int64_t[]){3}, (uint8_t[]){1, 0, 1}, &t[0], &err));
    CHECK_OK(stk_tensor_from(STK_F32, 2, (int64_t[]){2, 2}, (float[]){1, 2, 3, 4}, &t[1], &err));
    CHECK_OK(stk_tensor_scalar(STK_I64, 7, &t[2], &err));
    CHECK_OK(stk_safetensors_save(temporary("a.safetensors"), 3, names, t, &err));
    REQUIRE(CHECK_OK(stk_safetensors_load(temporary("a.safetensors"), &file, &err)));
    CHECK_EQ_I64(stk_safetensors_count(file), 3);
    CHECK(!strcmp(stk_safetensors_name(file, 0), "step")); /* wide elements first */
    for (int i = 0; i < 3; i++) {
        stk_tensor *back = stk_safetensors_find(file, names[i]);
        REQUIRE(CHECK(back && back->dtype == t[i]->dtype && back->rank == t[i]->rank));
        for (int64_t k = 0; k < stk_tensor_count(t[i]); k++)
            CHECK_NEAR(stk_tensor_at(back, k), stk_tensor_at(t[i], k), 0);
        stk_tensor_release(t[i]);
    }
    CHECK(!stk_safetensors_find(file, "bias"));
    stk_safetensors_release(file);
}

TEST(a_view_is_written_in_its_own_order)
{
    stk_error err;
    stk_tensor *t = NULL, *turned = NULL;
    stk_safetensors *file = NULL;
    CHECK_OK(stk_tensor_from(STK_F32, 2, (int64_t[]){2, 3}, (float[]){1, 2, 3, 4, 5, 6}, &t, &err));
    CHECK_OK(stk_tensor_transpose(t, NULL, &turned, &err));
    CHECK_OK(stk_safetensors_save(temporary("t"), 1, (const char *[]){"w"}, &turned, &err));
    REQUIRE(CHECK_OK(stk_safetensors_load(temporary("t"), &file, &err)));
    stk_tensor *back = stk_safetensors_tensor(file, 0);
    CHECK_EQ_I64(back->shape[0], 3);
    CHECK_NEAR(stk_tensor_at(back, 1), 4, 0);
    stk_safetensors_release(file);
    stk_tensor_release(turned);
    stk_tensor_release(t);
}

/* A file with this header and `bytes` of data. */
static stk_status parse(const char *header, size_t bytes, stk_error *err)
{
    uint8_t raw[1024] = {0};
    size_t n = strlen(header);
    for (int i = 0; i < 8; i++) raw[i] = (uint8_t)((uint64_t)n >> 8 * i);
    memcpy(raw + 8, header, n);
    stk_safetensors *file = NULL;
    stk_status status = stk_safetensors_parse("test", raw, 8 + n + bytes, &file, err);
    stk_safetensors_release(file);
    return status;
}

TEST(strict_about_everything)
{
    static const struct {
        const char *header;
        size_t bytes;
        stk_status expected;
        const char *message;
    } rows[] = {
        {"{}", 0, STK_OK, ""},
        {"{\"__metadata__\":{\"format\":\"pt\"}}   ", 0, STK_OK, ""},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, STK_OK, ""},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, STK_OK, ""},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0,9],\"data_offsets\":[0,0]}}", 0, STK_OK, ""},
        {"[]", 0, STK_ERR_FORMAT, "start with"},
        {" {}", 0, STK_ERR_FORMAT, "start with"},
        {"{", 0, STK_ERR_FORMAT, "header"},
        {"{}", 1, STK_ERR_FORMAT, "1 bytes of data"},
        {"{\"a\":3}", 0, STK_ERR_FORMAT, "needs dtype"},
        {"{\"__metadata__\":{\"n\":1}}", 0, STK_ERR_FORMAT, "texts"},
        {"{\"a\":{\"dtype\":\"F8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, STK_ERR_UNSUPPORTED,
         "'F8'"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,1]}}", 1, STK_ERR_FORMAT,
         "shape"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1.5],\"data_offsets\":[0,1]}}", 1, STK_ERR_FORMAT,
         "shape"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,1]}}", 1,
         STK_ERR_FORMAT, "shape"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,1]}}", 1, STK_ERR_FORMAT,
         "disagree"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 1, STK_ERR_FORMAT,
         "inside"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[2,1]}}", 2, STK_ERR_FORMAT,
         "inside"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}", 2, STK_ERR_FORMAT,
         "hole"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
         3, STK_ERR_FORMAT, "overlaps"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
         2, STK_ERR_FORMAT, "twice"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1,
         STK_ERR_UNSUPPORTED, "9 axes"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stk_error err = {.code = STK_OK};
        stk_status status = parse(rows[i].header, rows[i].bytes, &err);
        CHECK_MSG(status == rows[i].expected &&
                      (status == STK_OK || strstr(err.message, rows[i].message)),
                  "%s gave \"%s\": %s", rows[i].header, stk_status_name(status), err.message);
    }
}

TEST(short_files_are_refused)
{
    stk_error err;
    stk_safetensors *file = NULL;
    CHECK_FAILS(stk_safetensors_parse("t", "abc", 3, &file, &err), STK_ERR_FORMAT, "too few");
    CHECK_FAILS(stk_safetensors_parse("t", "\xff\0\0\0\0\0\0\0{}", 10, &file, &err), STK_ERR_FORMAT,
                "255");
    CHECK_FAILS(stk_safetensors_load(temporary("missing"), &file, &err), STK_ERR_IO, "missing");
}

TEST(saving_refuses_what_cannot_be_read_back)
{
    stk_error err;
    stk_tensor *t = NULL, *words = NULL;
    CHECK_OK(stk_tensor_scalar(STK_F32, 1, &t, &err));
    CHECK_OK(stk_tensor_strings(1, (int64_t[]){1}, &(stk_string){"a", 1}, &words, &err));
    stk_tensor *two[] = {t, t};
    CHECK_FAILS(stk_safetensors_save(temporary("x"), 2, (const char *[]){"a", "a"}, two, &err),
                STK_ERR_ARGUMENT, "two tensors");
    CHECK_FAILS(stk_safetensors_save(temporary("x"), 1, (const char *[]){"a"}, &words, &err),
                STK_ERR_DTYPE, "string");
    CHECK_FAILS(stk_safetensors_save(temporary("no/such"), 1, (const char *[]){"a"}, &t, &err),
                STK_ERR_IO, "no/such");
    stk_tensor_release(t);
    stk_tensor_release(words);
}

static stk_status load_and_release(const char *path, stk_error *err)
{
    stk_safetensors *file = NULL;
    stk_status status = stk_safetensors_load(path, &file, err);
    stk_safetensors_release(file);
    return status;
}

TEST(out_of_memory_is_an_ordinary_error)
{
    stk_error err;
    stk_tensor *t[2] = {NULL};
    char path[300];
    snprintf(path, sizeof path, "%s", temporary("oom"));
    CHECK_OK(stk_tensor_new(STK_F32, 2, (int64_t[]){5, 7}, &t[0], &err));
    CHECK_OK(stk_tensor_new(STK_U8, 1, (int64_t[]){5}, &t[1], &err));
    OOM_LOOP(stk_safetensors_save(path, 2, (const char *[]){"a", "b"}, t, &err));
    OOM_LOOP(load_and_release(path, &err));
    stk_tensor_release(t[0]);
    stk_tensor_release(t[1]);
}

TEST_MAIN()
