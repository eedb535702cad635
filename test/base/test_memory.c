/* The heap's own promises: alignment, fault injection, arenas, growth, checked sizes. */
#include "check.h"

#include <pthread.h>

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

static void *allocate_here(void *argument)
{
    void **blocks = argument;
    for (int i = 0; i < 100; i++) {
        blocks[i] = stk_malloc((size_t)i * 40);
        if (blocks[i]) memset(blocks[i], i, (size_t)i * 40);
    }
    void *own = stk_malloc(64);
    stk_free(own); /* stays with this thread and goes with it */
    return NULL;
}

static void *free_here(void *argument)
{
    void **blocks = argument;
    for (int i = 0; i < 100; i++) stk_free(blocks[i]);
    return NULL;
}

TEST(blocks_may_be_freed_by_another_thread)
{
    int64_t live = stk_alloc_live(), count = stk_alloc_count();
    for (int round = 0; round < 20; round++) {
        void *blocks[100];
        pthread_t maker, freer;
        REQUIRE(CHECK(pthread_create(&maker, NULL, allocate_here, blocks) == 0));
        pthread_join(maker, NULL);
        for (int i = 0; i < 100; i++) {
            REQUIRE(CHECK(blocks[i] && (uintptr_t)blocks[i] % STK_ALIGN == 0));
            for (int k = 0; k < i * 40; k++) REQUIRE(CHECK(((char *)blocks[i])[k] == i));
        }
        CHECK_EQ_I64(stk_alloc_live(), live + 100);
        REQUIRE(CHECK(pthread_create(&freer, NULL, free_here, blocks) == 0));
        pthread_join(freer, NULL);
        CHECK_EQ_I64(stk_alloc_live(), live);
    }
    CHECK_EQ_I64(stk_alloc_count() - count, 20 * 101); /* also those of threads that are gone */
}

TEST(kept_blocks_never_overlap)
{
    enum { MANY = 600 };
    unsigned char *blocks[MANY] = {0};
    size_t sizes[MANY] = {0};
    uint64_t state = 1;
    for (int step = 0; step < 20000; step++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        int i = (int)(state >> 33) % MANY;
        if (blocks[i]) {
            bool whole = true;
            for (size_t k = 0; k < sizes[i]; k++) whole &= blocks[i][k] == (unsigned char)i;
            CHECK(whole);
            stk_free(blocks[i]);
            blocks[i] = NULL;
        } else {
            sizes[i] = (size_t)(state >> 20) % 2600;
            blocks[i] = stk_malloc(sizes[i]);
            REQUIRE(CHECK(blocks[i]));
            memset(blocks[i], i, sizes[i]);
        }
    }
    for (int i = 0; i < MANY; i++) stk_free(blocks[i]);
}

static int64_t hook_allocs, hook_frees;
static void *hook_alloc(void *context, size_t align, size_t size)
{
    void *memory = NULL;
    hook_allocs += context == &hook_allocs;
    return posix_memalign(&memory, align, size) == 0 ? memory : NULL;
}
static void hook_free(void *context, void *memory)
{
    hook_frees += context == &hook_allocs;
    free(memory);
}

TEST(a_hook_sees_every_block)
{
    stk_set_allocator(&(stk_allocator){hook_alloc, hook_free, &hook_allocs});
    for (int i = 0; i < 10; i++) stk_free(stk_malloc(100));
    stk_set_allocator(NULL);
    CHECK_EQ_I64(hook_allocs, 10);
    CHECK_EQ_I64(hook_frees, 10);
}

TEST_MAIN()
