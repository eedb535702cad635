/* One tensor, many threads: handles are counted without a lock and the memory goes once. */
#include "check.h"

#include "stoker/tensor.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 3000 };
static int released; /* atomic */
static void count_release(void *owner)
{
    (void)owner;
    __atomic_add_fetch(&released, 1, __ATOMIC_RELAXED);
}

static void *use(void *argument)
{
    stk_error err;
    stk_tensor *t = argument;
    for (int i = 0; i < ROUNDS; i++) {
        stk_tensor *mine = stk_tensor_retain(t), *row = NULL, *turned = NULL, *dense = NULL;
        CHECK_OK(stk_tensor_slice(mine, (int64_t[]){1, 0}, (int64_t[]){1, 3}, &row, &err));
        CHECK_OK(stk_tensor_transpose(row, NULL, &turned, &err));
        stk_tensor_release(mine);
        stk_tensor_release(row);
        CHECK_OK(stk_tensor_dense(turned, &dense, &err));
        CHECK(stk_tensor_at(dense, 2) == 6);
        stk_tensor_release(turned);
        stk_tensor_release(dense);
    }
    stk_tensor_release(t); /* each thread got one */
    return NULL;
}

TEST(handles_are_counted_across_threads)
{
    stk_error err;
    float numbers[6] = {1, 2, 3, 4, 5, 6};
    int64_t live = stk_alloc_live();
    for (int foreign = 0; foreign < 2; foreign++) {
        stk_tensor *t = NULL;
        int64_t shape[2] = {2, 3};
        if (foreign)
            CHECK_OK(
                stk_tensor_wrap(STK_F32, 2, shape, NULL, numbers, count_release, NULL, &t, &err));
        else
            CHECK_OK(stk_tensor_from(STK_F32, 2, shape, numbers, &t, &err));
        pthread_t thread[THREADS];
        for (int i = 0; i < THREADS; i++)
            REQUIRE(CHECK(pthread_create(&thread[i], NULL, use, stk_tensor_retain(t)) == 0));
        stk_tensor_release(t);
        for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
        CHECK_EQ_I64(released, foreign);
        CHECK_EQ_I64(stk_alloc_live(), live);
    }
}

TEST_MAIN()
