/* Task workers and their one-thread twin. */
#include "check.h"

#include "base/workers.h"

#include <pthread.h>
#include <time.h>

static void add_one(void *context) { __atomic_add_fetch((int64_t *)context, 1, __ATOMIC_RELAXED); }
static void add_slowly(void *context)
{
    nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL);
    add_one(context);
}

static stk_workers *make(int32_t threads, int64_t capacity)
{
    stk_error err;
    stk_workers *w = NULL;
    CHECK_OK(stk_workers_new(threads, capacity, &w, &err));
    return w;
}

TEST(all_tasks_run_with_any_number_of_threads)
{
    for (int32_t threads = 0; threads <= 4; threads++) {
        int64_t sum = 0;
        stk_workers *w = make(threads, 3);
        CHECK_EQ_I64(stk_workers_threads(w), threads);
        for (int round = 1; round <= 3; round++) {
            for (int i = 0; i < 200; i++) stk_workers_submit(w, add_one, &sum);
            stk_workers_wait(w);
            CHECK_EQ_I64(__atomic_load_n(&sum, __ATOMIC_RELAXED), round * 200);
        }
        stk_workers_stats s = stk_workers_read_stats(w, true);
        CHECK_EQ_I64(s.tasks, 600);
        CHECK(s.busy_ns >= 0);
        CHECK_EQ_I64(s.queue.pushes, threads ? 600 : 0);
        CHECK_EQ_I64(stk_workers_read_stats(w, false).tasks, 0);
        for (int i = 0; i < 50; i++) stk_workers_submit(w, add_one, &sum);
        stk_workers_release(w); /* finishes them */
        CHECK_EQ_I64(sum, 650);
    }
}

static void note_thread(void *context) { *(pthread_t *)context = pthread_self(); }

TEST(the_twin_runs_on_the_caller)
{
    stk_workers *w = make(0, 1);
    pthread_t who;
    memset(&who, 0, sizeof who);
    stk_workers_submit(w, note_thread, &who);
    CHECK(pthread_equal(who, pthread_self()));
    memset(&who, 0, sizeof who);
    CHECK(stk_workers_try_submit(w, note_thread, &who));
    CHECK(pthread_equal(who, pthread_self()));
    stk_workers_release(w);
}

TEST(try_submit_says_when_it_is_full)
{
    stk_workers *w = make(1, 1);
    int64_t sum = 0, taken = 0;
    int64_t asked =
        0; /* until it was full: the worker may be faster than a caller without a processor */
    for (; asked < 20 || (asked < 10000 && taken == asked); asked++)
        taken += stk_workers_try_submit(w, add_slowly, &sum);
    stk_workers_wait(w);
    CHECK(taken >= 1 && taken < asked);
    CHECK_EQ_I64(sum, taken);
    stk_workers_release(w);
}

typedef struct spawn {
    stk_workers *workers;
    int64_t sum;
} spawn;

static void count_spawn(void *context) { add_one(&((spawn *)context)->sum); }
static void submit_more(void *context)
{
    spawn *s = context;
    for (int i = 0; i < 20; i++) stk_workers_submit(s->workers, count_spawn, s);
}

TEST(tasks_may_submit_tasks_into_a_full_queue)
{
    for (int32_t threads = 0; threads <= 2; threads++) {
        spawn s = {make(threads, 1), 0};
        for (int i = 0; i < 10; i++) stk_workers_submit(s.workers, submit_more, &s);
        stk_workers_wait(s.workers);
        CHECK_EQ_I64(s.sum, 200);
        stk_workers_release(s.workers);
    }
}

static void *submit_many(void *context)
{
    spawn *s = context;
    for (int i = 0; i < 3000; i++) stk_workers_submit(s->workers, count_spawn, s);
    return NULL;
}

TEST(resizing_while_others_submit)
{
    stk_error err;
    spawn s = {make(1, 4), 0};
    pthread_t other[2];
    for (int i = 0; i < 2; i++)
        REQUIRE(CHECK(pthread_create(&other[i], NULL, submit_many, &s) == 0));
    const int32_t sizes[] = {3, 0, 2, 0, 1, 4, 0, 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CHECK_OK(stk_workers_resize(s.workers, sizes[i], &err));
        CHECK_OK(stk_workers_resize_queue(s.workers, 1 + (int64_t)i % 3, &err));
        CHECK_EQ_I64(stk_workers_threads(s.workers), sizes[i]);
    }
    for (int i = 0; i < 2; i++) pthread_join(other[i], NULL);
    stk_workers_wait(s.workers);
    CHECK_EQ_I64(s.sum, 6000);
    CHECK_OK(stk_workers_resize(s.workers, 0, &err));
    stk_workers_release(s.workers);
}

static stk_status make_and_release(stk_error *err)
{
    stk_workers *w = NULL;
    stk_status status = stk_workers_new(2, 4, &w, err);
    if (status == STK_OK) status = stk_workers_resize(w, 3, err);
    stk_workers_release(w);
    return status;
}

TEST(bad_arguments_and_no_memory)
{
    stk_error err;
    stk_workers *w = NULL;
    CHECK_FAILS(stk_workers_new(-1, 1, &w, &err), STK_ERR_RANGE, "-1 threads");
    CHECK_FAILS(stk_workers_new(1, 0, &w, &err), STK_ERR_RANGE, "capacity 0");
    CHECK_FAILS(stk_workers_new(1, 1, NULL, &err), STK_ERR_ARGUMENT, "NULL");
    CHECK(w == NULL);
    stk_workers_release(NULL);
    OOM_LOOP(make_and_release(&err));
}

TEST_MAIN()
