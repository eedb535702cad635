/* .npz: archives made by numpy are read, ours are read again. */
#include "check.h"
#include "temporary.h"

#include "base/file.h"
#include "base/npz.h"
#include "base/tensor.h"

static const char *fixture(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/fixtures/numpy/%s", STK_TEST_DIR, name);
    return path;
}

TEST(numpy_archives_stored_and_packed)
{
    stk_error err;
    const char *names[] = {"plain.npz", "packed.npz"};
    for (int k = 0; k < 2; k++) {
        stk_npz *npz = NULL;
        REQUIRE(CHECK_OK(stk_npz_load(fixture(names[k]), &npz, &err)));
        CHECK_EQ_I64(stk_npz_count(npz), 5);
        CHECK_STR(stk_npz_name(npz, 0), "weights");
        CHECK_STR(STK_TENSOR_TEXT(stk_npz_find(npz, "weights")), "float32[2,3]");
        CHECK_NEAR(stk_tensor_at(stk_npz_find(npz, "weights"), 5), 49, 0);
        CHECK_NEAR(stk_tensor_at(stk_npz_find(npz, "layer/bias"), 5), 98, 0);
        CHECK_EQ_I64(stk_npz_find(npz, "flags")->dtype, STK_BOOL);
        CHECK_STR(STK_TENSOR_TEXT(stk_npz_find(npz, "zeros")), "float32[50,50]");
        CHECK_NEAR(stk_tensor_at(stk_npz_find(npz, "name with \xc3\xa9"), 5), 100, 0);
        CHECK(stk_npz_find(npz, "weight") == NULL && stk_npz_find(npz, NULL) == NULL);
        CHECK(stk_npz_name(npz, 5) == NULL && stk_npz_tensor(npz, -1) == NULL);
        CHECK(stk_npz_tensor(npz, 0) == stk_npz_find(npz, "weights"));
        stk_npz_release(npz);
    }
    stk_npz_release(NULL);
    CHECK_EQ_I64(stk_npz_count(NULL), 0);
    CHECK(stk_npz_name(NULL, 0) == NULL && stk_npz_find(NULL, "a") == NULL);
}

TEST(strange_archives)
{
    stk_error err;
    stk_npz *npz = NULL;
    REQUIRE(CHECK_OK(stk_npz_load(fixture("mixed.npz"), &npz, &err)));
    CHECK_EQ_I64(stk_npz_count(npz), 1); /* the text is passed over, of two equal names one stays */
    CHECK_NEAR(stk_tensor_at(stk_npz_find(npz, "twice"), 0), 2, 0);
    stk_npz_release(npz);
    REQUIRE(CHECK_OK(stk_npz_load(fixture("nothing.npz"), &npz, &err)));
    CHECK_EQ_I64(stk_npz_count(npz), 0);
    stk_npz_release(npz);
    CHECK_FAILS(stk_npz_load(fixture("f4.npy"), &npz, &err), STK_ERR_FORMAT, "not a ZIP archive");
    CHECK(npz == NULL);
}

static void make_tensors(stk_tensor *tensors[3])
{
    stk_error err;
    float numbers[6] = {1, 2, 3, 4, 5, 6};
    stk_string words[2] = {{"one", 3}, {"three", 5}};
    CHECK_OK(stk_tensor_from(STK_F32, 2, (int64_t[]){2, 3}, numbers, &tensors[0], &err));
    CHECK_OK(stk_tensor_strings(1, (int64_t[]){2}, words, &tensors[1], &err));
    CHECK_OK(stk_tensor_transpose(tensors[0], NULL, &tensors[2], &err));
}

static const char *const names[3] = {"a", "words/of mine", "turned"};

TEST(there_and_back)
{
    stk_error err;
    stk_tensor *tensors[3];
    make_tensors(tensors);
    for (int kind = 0; kind < 5; kind++) { /* the last through the public call */
        stk_npz *npz = NULL;
        if (kind < 4) {
            stk_zip_writer w;
            CHECK_OK(stk_zip_create(temporary("a.npz"), &w, &err));
            w.force_zip64 = kind & 2;
            CHECK_OK(stk_npz_write(&w, 3, names, tensors, kind & 1, &err));
            CHECK_OK(stk_zip_commit(&w, &err));
        } else {
            CHECK_OK(stk_npz_save(temporary("a.npz"), 3, names, tensors, &err));
        }
        REQUIRE(CHECK_OK(stk_npz_load(temporary("a.npz"), &npz, &err)));
        CHECK_EQ_I64(stk_npz_count(npz), 3);
        CHECK_STR(stk_npz_name(npz, 1), "words/of mine");
        CHECK_NEAR(stk_tensor_at(stk_npz_find(npz, "a"), 5), 6, 0);
        CHECK_STR(STK_TENSOR_TEXT(stk_npz_find(npz, "turned")), "float32[3,2]");
        CHECK_NEAR(stk_tensor_at(stk_npz_find(npz, "turned"), 1), 4, 0);
        const stk_string *s = stk_npz_tensor(npz, 1)->data;
        CHECK(s[1].size == 5 && memcmp(s[1].data, "three", 5) == 0);
        stk_npz_release(npz);
    }
    CHECK_OK(stk_npz_save(temporary("none.npz"), 0, NULL, NULL, &err));
    for (int i = 0; i < 3; i++) stk_tensor_release(tensors[i]);
}

TEST(damage_is_named)
{
    stk_error err;
    char *data = NULL;
    size_t size;
    stk_npz *npz = NULL;
    CHECK_OK(stk_file_read(fixture("packed.npz"), 1 << 20, &data, &size, &err));
    for (size_t cut = 0; cut < size; cut += 7)
        CHECK_STATUS(stk_npz_parse("cut", data, cut, &npz, &err), STK_ERR_FORMAT);
    data[70] ^= 1; /* inside the first member */
    CHECK_STATUS(stk_npz_parse("archive", data, size, &npz, &err), STK_ERR_FORMAT);
    CHECK_CONTAINS(err.message, "weights");
    stk_free(data);
}

static stk_status save_and_load(const char *path, stk_tensor *const *tensors, stk_error *err)
{
    stk_npz *npz = NULL;
    stk_status status = stk_npz_save(path, 3, names, tensors, err);
    if (status == STK_OK) status = stk_npz_load(path, &npz, err);
    stk_npz_release(npz);
    return status;
}

static stk_status load_packed(const char *path, stk_error *err)
{
    stk_npz *npz = NULL;
    stk_status status = stk_npz_load(path, &npz, err);
    stk_npz_release(npz);
    return status;
}

TEST(bad_arguments_and_no_memory)
{
    stk_error err;
    stk_tensor *tensors[3], *none[1] = {NULL};
    stk_npz *npz = NULL;
    make_tensors(tensors);
    const char *twice[2] = {"a", "a"}, *empty[1] = {""};
    CHECK_FAILS(stk_npz_save(temporary("x.npz"), 2, twice, tensors, &err), STK_ERR_ARGUMENT,
                "name a is given twice");
    CHECK_FAILS(stk_npz_save(temporary("x.npz"), 1, empty, tensors, &err), STK_ERR_ARGUMENT,
                "empty");
    CHECK_FAILS(stk_npz_save(temporary("x.npz"), 1, NULL, tensors, &err), STK_ERR_ARGUMENT,
                "count 1");
    CHECK_FAILS(stk_npz_save(temporary("x.npz"), -1, names, tensors, &err), STK_ERR_ARGUMENT, "-1");
    CHECK_FAILS(stk_npz_save(temporary("x.npz"), 1, names, none, &err), STK_ERR_ARGUMENT,
                "tensor a: npy: the tensor is NULL");
    CHECK_FAILS(stk_npz_save(NULL, 1, names, tensors, &err), STK_ERR_ARGUMENT, "NULL");
    CHECK_FAILS(stk_npz_load(NULL, &npz, &err), STK_ERR_ARGUMENT, "NULL");
    CHECK_FAILS(stk_npz_load("x", NULL, &err), STK_ERR_ARGUMENT, "NULL");
    CHECK_FAILS(stk_npz_load(temporary("not there"), &npz, &err), STK_ERR_IO, "No such file");
    char path[256], packed[512];
    snprintf(path, sizeof path, "%s", temporary("oom.npz"));
    snprintf(packed, sizeof packed, "%s", fixture("packed.npz"));
    OOM_LOOP(save_and_load(path, tensors, &err));
    OOM_LOOP(load_packed(packed, &err));
    CHECK_EQ_I64(access(temporary("x.npz"), F_OK), -1);
    for (int i = 0; i < 3; i++) stk_tensor_release(tensors[i]);
}

TEST_MAIN()
