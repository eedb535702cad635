/* The bounded queue: order, both waits, close, resize, counters, many threads. */
#include "check.h"

#include "base/queue.h"

#include <pthread.h>
#include <time.h>

static stk_queue *make(int64_t capacity)
{
    stk_error err;
    stk_queue *q = NULL;
    CHECK_OK(stk_queue_new(sizeof(int64_t), capacity, &q, &err));
    return q;
}

static void pause_ms(long ms) { nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL); }

TEST(first_in_first_out_and_never_beyond_capacity)
{
    stk_queue *q = make(3);
    int64_t v;
    CHECK_EQ_I64(stk_queue_try_pop(q, &v), STK_QUEUE_BUSY);
    for (int64_t round = 0; round < 10; round++) {
        for (int64_t i = 0; i < 3; i++) CHECK_EQ_I64(stk_queue_try_push(q, &i), STK_QUEUE_DONE);
        v = 99;
        CHECK_EQ_I64(stk_queue_try_push(q, &v), STK_QUEUE_BUSY);
        for (int64_t i = 0; i < 3; i++) {
            CHECK_EQ_I64(stk_queue_pop(q, &v), STK_QUEUE_DONE);
            CHECK_EQ_I64(v, i);
        }
    }
    stk_queue_stats s = stk_queue_read_stats(q, false);
    CHECK_EQ_I64(s.pushes, 30);
    CHECK_EQ_I64(s.pops, 30);
    CHECK_EQ_I64(s.max_depth, 3);
    CHECK_EQ_I64(s.depth, 0);
    CHECK_EQ_I64(s.push_waits + s.pop_waits, 0);
    stk_queue_release(q);
}

TEST(close_refuses_pushes_and_lets_the_rest_out)
{
    stk_queue *q = make(4);
    int64_t v = 7;
    CHECK_EQ_I64(stk_queue_push(q, &v), STK_QUEUE_DONE);
    stk_queue_close(q);
    CHECK_EQ_I64(stk_queue_push(q, &v), STK_QUEUE_CLOSED);
    CHECK_EQ_I64(stk_queue_try_push(q, &v), STK_QUEUE_CLOSED);
    v = 0;
    CHECK_EQ_I64(stk_queue_pop(q, &v), STK_QUEUE_DONE);
    CHECK_EQ_I64(v, 7);
    CHECK_EQ_I64(stk_queue_pop(q, &v), STK_QUEUE_CLOSED);
    CHECK_EQ_I64(stk_queue_try_pop(q, &v), STK_QUEUE_CLOSED);
    stk_queue_close(q);
    stk_queue_release(q);
}

static void *push_ten(void *argument)
{
    for (int64_t i = 0; i < 10; i++) CHECK_EQ_I64(stk_queue_push(argument, &i), STK_QUEUE_DONE);
    return NULL;
}

static void *pop_until_closed(void *argument)
{
    int64_t v, *count = calloc(1, sizeof *count);
    while (stk_queue_pop(argument, &v) == STK_QUEUE_DONE) ++*count;
    return count;
}

TEST(waits_are_counted_on_the_side_that_waits)
{
    /* Who waits is up to the scheduler: each side is tried until it was made to. */
    stk_queue *q = make(2);
    stk_queue_stats s = {0};
    for (int attempt = 0; attempt < 1000 && s.push_waits == 0; attempt++) {
        pthread_t producer;
        REQUIRE(CHECK(pthread_create(&producer, NULL, push_ten, q) == 0));
        while (stk_queue_read_stats(q, false).depth < 2) pause_ms(1);
        pause_ms(2); /* the producer stands before a full queue */
        int64_t v;
        for (int64_t i = 0; i < 10; i++) {
            CHECK_EQ_I64(stk_queue_pop(q, &v), STK_QUEUE_DONE);
            CHECK_EQ_I64(v, i);
        }
        pthread_join(producer, NULL);
        s = stk_queue_read_stats(q, true);
    }
    CHECK(s.push_waits >= 1 && s.push_wait_ns > 0);
    CHECK_EQ_I64(s.max_depth, 2);
    CHECK(s.mean_depth > 0 && s.mean_depth <= 2);
    stk_queue_release(q);

    s = (stk_queue_stats){0};
    for (int attempt = 0; attempt < 1000 && s.pop_waits == 0; attempt++) {
        q = make(2);
        pthread_t consumer;
        REQUIRE(CHECK(pthread_create(&consumer, NULL, pop_until_closed, q) == 0));
        pause_ms(2);
        push_ten(q);
        stk_queue_close(q);
        int64_t *count = NULL;
        pthread_join(consumer, (void **)&count);
        CHECK_EQ_I64(*count, 10);
        free(count);
        s = stk_queue_read_stats(q, false);
        stk_queue_release(q);
    }
    CHECK(s.pop_waits >= 1 && s.pop_wait_ns > 0);
    CHECK_EQ_I64(s.pushes, 10);
}

static void *push_into_closing(void *argument)
{
    int64_t v = 1;
    stk_queue_result result = stk_queue_push(argument, &v);
    return (void *)(intptr_t)(result == STK_QUEUE_CLOSED);
}

TEST(close_wakes_those_who_wait)
{
    stk_queue *q = make(1);
    int64_t v = 0;
    CHECK_EQ_I64(stk_queue_push(q, &v), STK_QUEUE_DONE);
    pthread_t pusher[3];
    void *refused;
    for (int i = 0; i < 3; i++)
        REQUIRE(CHECK(pthread_create(&pusher[i], NULL, push_into_closing, q) == 0));
    pause_ms(5);
    stk_queue_close(q);
    for (int i = 0; i < 3; i++) {
        pthread_join(pusher[i], &refused);
        CHECK(refused != NULL);
    }
    stk_queue_release(q);
}

TEST(resize_keeps_items_and_order)
{
    stk_error err;
    stk_queue *q = make(4);
    int64_t v, next_in = 0, next_out = 0;
    for (; next_in < 4; next_in++) CHECK_EQ_I64(stk_queue_push(q, &next_in), STK_QUEUE_DONE);
    CHECK_EQ_I64(stk_queue_pop(q, &v), STK_QUEUE_DONE); /* the ring is wrapped from here on */
    next_out++;
    CHECK_EQ_I64(stk_queue_push(q, &next_in), STK_QUEUE_DONE);
    next_in++;
    CHECK_OK(stk_queue_resize(q, 2, &err)); /* fewer than inside */
    CHECK_EQ_I64(stk_queue_try_push(q, &v), STK_QUEUE_BUSY);
    for (int i = 0; i < 3; i++, next_out++) {
        CHECK_EQ_I64(stk_queue_pop(q, &v), STK_QUEUE_DONE);
        CHECK_EQ_I64(v, next_out);
    }
    CHECK_EQ_I64(stk_queue_try_push(q, &next_in), STK_QUEUE_DONE);
    next_in++;
    CHECK_EQ_I64(stk_queue_try_push(q, &v), STK_QUEUE_BUSY);
    CHECK_OK(stk_queue_resize(q, 100, &err));
    for (; next_in < 90; next_in++) CHECK_EQ_I64(stk_queue_try_push(q, &next_in), STK_QUEUE_DONE);
    for (; next_out < 90; next_out++) {
        CHECK_EQ_I64(stk_queue_pop(q, &v), STK_QUEUE_DONE);
        CHECK_EQ_I64(v, next_out);
    }
    CHECK_FAILS(stk_queue_resize(q, 0, &err), STK_ERR_RANGE, "capacity 0");
    CHECK_FAILS(stk_queue_resize(q, INT64_MAX, &err), STK_ERR_RANGE, "memory");
    stk_alloc_fail_at(1, false);
    CHECK_FAILS(stk_queue_resize(q, 50, &err), STK_ERR_MEMORY, "400 bytes");
    CHECK_EQ_I64(stk_queue_read_stats(q, false).capacity, 100);
    stk_queue_release(q);
}

enum { PRODUCERS = 3, EACH = 3000 };
typedef struct crowd {
    stk_queue *queue;
    int64_t sum; /* atomic */
} crowd;

static void *produce(void *argument)
{
    for (int64_t i = 1; i <= EACH; i++) stk_queue_push(((crowd *)argument)->queue, &i);
    return NULL;
}

static void *consume(void *argument)
{
    crowd *c = argument;
    int64_t v;
    while (stk_queue_pop(c->queue, &v) == STK_QUEUE_DONE)
        __atomic_add_fetch(&c->sum, v, __ATOMIC_RELAXED);
    return NULL;
}

TEST(nothing_is_lost_in_a_crowd)
{
    stk_error err;
    crowd c = {make(5), 0};
    pthread_t producer[PRODUCERS], consumer[2];
    for (int i = 0; i < 2; i++)
        REQUIRE(CHECK(pthread_create(&consumer[i], NULL, consume, &c) == 0));
    for (int i = 0; i < PRODUCERS; i++)
        REQUIRE(CHECK(pthread_create(&producer[i], NULL, produce, &c) == 0));
    for (int i = 0; i < 20; i++) CHECK_OK(stk_queue_resize(c.queue, 1 + i % 7, &err));
    for (int i = 0; i < PRODUCERS; i++) pthread_join(producer[i], NULL);
    stk_queue_close(c.queue);
    for (int i = 0; i < 2; i++) pthread_join(consumer[i], NULL);
    CHECK_EQ_I64(c.sum, (int64_t)PRODUCERS * EACH * (EACH + 1) / 2);
    stk_queue_release(c.queue);
}

static stk_status make_and_release(stk_error *err)
{
    stk_queue *q = NULL;
    stk_status status = stk_queue_new(16, 10, &q, err);
    stk_queue_release(q);
    return status;
}

TEST(bad_arguments_and_no_memory)
{
    stk_error err;
    stk_queue *q = NULL;
    CHECK_FAILS(stk_queue_new(8, 0, &q, &err), STK_ERR_RANGE, "capacity 0");
    CHECK_FAILS(stk_queue_new(8, INT64_MAX, &q, &err), STK_ERR_RANGE, "8 bytes");
    CHECK_FAILS(stk_queue_new(0, 4, &q, &err), STK_ERR_ARGUMENT, "size");
    CHECK_FAILS(stk_queue_new(8, 4, NULL, &err), STK_ERR_ARGUMENT, "NULL");
    stk_queue_release(NULL);
    OOM_LOOP(make_and_release(&err));
}

TEST_MAIN()
