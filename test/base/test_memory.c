/* The heap's own promises: alignment, fault injection, arenas, growth, checked sizes. */
#include "check.h"

TEST(blocks_are_aligned_and_counted)
{
    int64_t live = stk_alloc_live();
    for (size_t size = 0; size < 300; size += 37) {
        void *block = stk_malloc(size);
        CHECK(block != NULL);
        CHECK_EQ_I64((uintptr_t)block % STK_ALIGN, 0);
        CHECK_EQ_I64(stk_alloc_live(), live + 1);
        stk_free(block);
    }
    stk_free(NULL);
    CHECK_EQ_I64(stk_alloc_live(), live);
}

TEST(impossible_sizes_are_refused)
{
    CHECK(stk_malloc(SIZE_MAX) == NULL);
    CHECK(stk_calloc(SIZE_MAX / 2, 3) == NULL);
    size_t product = 7;
    CHECK(!stk_mul_size(SIZE_MAX, 2, &product));
    int64_t wide = 7;
    CHECK(!stk_mul_i64(INT64_MAX, 2, &wide));
    CHECK(stk_mul_i64(-4, 5, &wide));
    CHECK_EQ_I64(wide, -20);
}

TEST(the_nth_allocation_fails_once_or_from_then_on)
{
    stk_alloc_fail_at(2, false);
    void *first = stk_malloc(8), *second = stk_malloc(8), *third = stk_malloc(8);
    CHECK(first && !second && third);
    stk_alloc_fail_at(1, true);
    CHECK(!stk_malloc(8) && !stk_malloc(8));
    stk_alloc_fail_at(0, false);
    stk_free(first);
    stk_free(third);
}

TEST(realloc_keeps_bytes_and_survives_refusal)
{
    char *text = stk_strdup("0123456789");
    REQUIRE(CHECK(text));
    stk_alloc_fail_at(1, false);
    CHECK(stk_realloc(text, 11, 4000) == NULL);
    CHECK_STR(text, "0123456789");
    char *longer = stk_realloc(text, 11, 4000);
    REQUIRE(CHECK(longer));
    CHECK_STR(longer, "0123456789");
    stk_free(longer);
}

TEST(arena_gives_zeroed_memory_and_returns_all)
{
    int64_t live = stk_alloc_live();
    stk_arena arena = {0};
    for (size_t size = 1; size < 200000; size *= 3) {
        unsigned char *block = stk_arena_alloc(&arena, size);
        REQUIRE(CHECK(block));
        CHECK_EQ_I64((uintptr_t)block % 16, 0);
        CHECK(block[0] == 0 && block[size - 1] == 0);
        memset(block, 0xff, size);
    }
    CHECK_STR(stk_arena_strdup(&arena, "word"), "word");
    CHECK(stk_arena_array(&arena, SIZE_MAX / 2, 4) == NULL);
    stk_arena_release(&arena);
    stk_arena_release(&arena);
    CHECK_EQ_I64(stk_alloc_live(), live);
}

static stk_status grow_a_list(void)
{
    int64_t *items = NULL, count = 0, capacity = 0;
    for (int64_t i = 0; i < 100; i++) {
        if (!STK_GROW(items, count, capacity)) {
            stk_free(items);
            return STK_ERR_MEMORY;
        }
        items[count++] = i;
    }
    for (int64_t i = 0; i < 100; i++) CHECK_EQ_I64(items[i], i);
    stk_free(items);
    return STK_OK;
}

TEST(growing_survives_every_refusal) { OOM_LOOP(grow_a_list()); }

TEST_MAIN()
