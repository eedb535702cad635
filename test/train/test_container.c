/* The file of a checkpoint: round trips, every damaged byte noticed, nothing lost when writing fails. */
#include "check.h"
#include "temporary.h"

#include "base/file.h"
#include "train/container.h"

static void fill(stk_named_list *list)
{
    stk_error err;
    static const struct {
        const char *name;
        stk_dtype dtype;
        int32_t rank;
        int64_t shape[3];
    } rows[] = {{"dense/kernel", STK_F32, 2, {3, 5}},
                {"step", STK_I64, 0, {0}},
                {"none", STK_F64, 2, {0, 4}},
                {"mask", STK_BOOL, 1, {7}},
                {"half", STK_F16, 3, {2, 1, 3}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stk_tensor *t = NULL;
        REQUIRE(CHECK_OK(stk_tensor_new(rows[i].dtype, rows[i].rank, rows[i].shape, &t, &err)));
        for (int64_t k = 0; k < stk_tensor_count(t); k++)
            CHECK_OK(stk_tensor_set(t, k, (double)(k % 2), &err));
        REQUIRE(CHECK_OK(stk_named_add(list, rows[i].name, t, &err)));
    }
}

static bool same(const stk_named_list *a, const stk_named_list *b)
{
    if (a->count != b->count) return false;
    for (int64_t i = 0; i < a->count; i++) {
        const stk_tensor *x = a->items[i].tensor, *y = b->items[i].tensor;
        if (strcmp(a->items[i].name, b->items[i].name) || x->dtype != y->dtype ||
            x->rank != y->rank || stk_tensor_bytes(x) != stk_tensor_bytes(y) ||
            memcmp(x->shape, y->shape, (size_t)x->rank * 8) ||
            memcmp(x->data, y->data, (size_t)stk_tensor_bytes(x)))
            return false;
    }
    return true;
}

static const char text[] = "{\"epoch\": 3}";

TEST(what_was_saved_comes_back)
{
    stk_error err;
    stk_named_list list = {0};
    stk_container back;
    fill(&list);
    const char *path = temporary("a.ckpt");
    CHECK_OK(stk_container_save(path, text, strlen(text), &list, &err));
    REQUIRE(CHECK_OK(stk_container_load(path, &back, &err)));
    CHECK(same(&list, &back.list));
    CHECK(!strcmp(back.text, text));
    CHECK_EQ_I64(back.text_size, strlen(text));
    stk_container_release(&back);
    stk_named_release(&list);
    CHECK_EQ_I64(temporary_count(), 1); /* no temporary file stays */
}

TEST(an_empty_one_is_fine)
{
    stk_error err;
    stk_named_list list = {0};
    stk_container back;
    CHECK_OK(stk_container_save(temporary("empty.ckpt"), "", 0, &list, &err));
    REQUIRE(CHECK_OK(stk_container_load(temporary("empty.ckpt"), &back, &err)));
    CHECK_EQ_I64(back.list.count, 0);
    stk_container_release(&back);
}

TEST(every_flipped_byte_and_every_cut_is_noticed)
{
    stk_error err;
    stk_named_list list = {0};
    char *data = NULL;
    size_t size = 0;
    fill(&list);
    CHECK_OK(stk_container_save(temporary("b.ckpt"), text, strlen(text), &list, &err));
    REQUIRE(CHECK_OK(stk_file_read(temporary("b.ckpt"), 1 << 20, &data, &size, &err)));
    stk_container back;
    for (size_t i = 0; i < size; i++) {
        data[i] ^= 0x20;
        if (!CHECK(stk_container_parse("flipped", data, size, &back, &err) != STK_OK))
            stk_container_release(&back);
        data[i] ^= 0x20;
    }
    for (size_t i = 0; i < size; i++)
        CHECK(stk_container_parse("cut", data, i, &back, &err) == STK_ERR_FORMAT);
    stk_free(data);
    stk_named_release(&list);
}

TEST(a_failed_save_leaves_the_old_file)
{
    stk_error err;
    stk_named_list list = {0};
    stk_container back;
    fill(&list);
    const char *path = temporary("c.ckpt");
    CHECK_OK(stk_container_save(path, text, strlen(text), &list, &err));
    stk_tensor *words = NULL;
    CHECK_OK(stk_tensor_strings(1, (int64_t[]){1}, &(stk_string){"a", 1}, &words, &err));
    CHECK_OK(stk_named_add(&list, "words", words, &err));
    CHECK_FAILS(stk_container_save(path, text, strlen(text), &list, &err), STK_ERR_ARGUMENT,
                "words");
    CHECK_OK(stk_container_load(path, &back, &err));
    CHECK_EQ_I64(back.list.count, 5);
    stk_container_release(&back);
    stk_named_release(&list);
    CHECK_FAILS(stk_container_load(temporary("missing"), &back, &err), STK_ERR_IO, "missing");
}

static stk_status load_and_release(const char *path, stk_error *err)
{
    stk_container c;
    stk_status status = stk_container_load(path, &c, err);
    stk_container_release(&c);
    return status;
}

TEST(out_of_memory_is_an_ordinary_error)
{
    stk_error err;
    stk_named_list list = {0};
    fill(&list);
    char path[300];
    snprintf(path, sizeof path, "%s", temporary("d.ckpt"));
    OOM_LOOP(stk_container_save(path, text, strlen(text), &list, &err));
    OOM_LOOP(load_and_release(path, &err));
    stk_named_release(&list);
}

TEST_MAIN()
