/* Trace rings: order, nesting, overwriting, threads, reading while others write. */
#include "check.h"

#include "base/trace.h"

#include <pthread.h>

typedef struct seen {
    stk_trace_event event[64];
    char thread_name[32];
    int64_t count, wrong;
    int64_t next[8]; /* per thread */
} seen;

static void keep(void *context, const stk_trace_event *event)
{
    seen *s = context;
    if (s->count < 64) s->event[s->count] = *event;
    snprintf(s->thread_name, sizeof s->thread_name, "%s", event->thread_name);
    s->count++;
}

TEST(off_means_nothing)
{
    seen s = {0};
    stk_trace_forget();
    int64_t allocations = stk_alloc_count();
    CHECK(!stk_trace_is_on());
    stk_trace_begin("a", 1);
    stk_trace_end("a");
    CHECK(stk_trace_start() == 0);
    stk_trace_span(0, "b", 2);
    stk_trace_counter("c", 3);
    stk_trace_mark("d", 4);
    CHECK_EQ_I64(stk_trace_drain(keep, &s, NULL), 0);
    CHECK_EQ_I64(stk_alloc_count(), allocations);
}

TEST(records_come_back_in_order)
{
    seen s = {0};
    int64_t lost = -1, before = stk_now_ns();
    stk_trace_forget();
    stk_trace_name_thread("the main one");
    stk_trace_enable(0);
    stk_trace_begin("outer", 7);
    uint64_t start = stk_trace_start();
    CHECK(start != 0);
    for (int64_t t = stk_now_ns(); stk_now_ns() - t < 2000000;) {
    }
    stk_trace_span(start, "inner", 8);
    stk_trace_counter("depth", -5);
    stk_trace_mark("here", 0xffffffffu);
    stk_trace_end("outer");
    stk_trace_disable();
    stk_trace_mark("after", 1);
    CHECK_EQ_I64(stk_trace_drain(keep, &s, &lost), 5);
    int64_t after = stk_now_ns();
    CHECK_EQ_I64(lost, 0);
    const stk_trace_kind kinds[] = {STK_TRACE_BEGIN, STK_TRACE_SPAN, STK_TRACE_COUNTER,
                                    STK_TRACE_MARK, STK_TRACE_END};
    const char *names[] = {"outer", "inner", "depth", "here", "outer"};
    for (int i = 0; i < 5; i++) {
        CHECK_EQ_I64(s.event[i].kind, kinds[i]);
        CHECK_STR(s.event[i].name, names[i]);
        CHECK_EQ_I64(s.event[i].thread, 1);
        CHECK(s.event[i].ns >= before - 100000 && s.event[i].ns <= after + 100000);
    }
    CHECK_STR(s.thread_name, "the main one");
    CHECK_EQ_I64(s.event[0].arg, 7);
    CHECK(s.event[1].value > 1500000); /* 2 ms on the other clock */
    CHECK(s.event[1].ns + s.event[1].value <= s.event[2].ns + 1000);
    CHECK_EQ_I64(s.event[2].value, -5);
    CHECK_EQ_I64(s.event[3].arg, 0xffffffffu);
    CHECK_EQ_I64(stk_trace_drain(keep, &s, &lost), 0); /* nothing is given twice */
    stk_trace_forget();
}

TEST(a_full_ring_keeps_the_newest)
{
    seen s = {0};
    int64_t lost = 0;
    stk_trace_forget();
    stk_trace_enable(16);
    for (int64_t i = 0; i < 100; i++) stk_trace_counter("i", i);
    int64_t given = stk_trace_drain(keep, &s, &lost);
    CHECK(given >= 15 && given <= 16);
    CHECK_EQ_I64(given + lost, 100);
    for (int64_t i = 0; i < given; i++) CHECK_EQ_I64(s.event[i].value, 100 - given + i);
    stk_trace_counter("i", 100);
    s.count = 0;
    CHECK_EQ_I64(stk_trace_drain(keep, &s, &lost), 1);
    CHECK_EQ_I64(lost, 0);
    CHECK_EQ_I64(s.event[0].value, 100);
    stk_trace_disable();
    stk_trace_forget();
}

TEST(interned_names)
{
    stk_trace_forget();
    char text[32] = "matmul.3";
    const char *a = stk_trace_intern(text);
    text[7] = '4';
    const char *b = stk_trace_intern(text);
    CHECK_STR(a, "matmul.3");
    CHECK_STR(b, "matmul.4");
    CHECK(stk_trace_intern("matmul.3") == a);
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "op %d", i);
        CHECK_STR(stk_trace_intern(text), text);
    }
    stk_alloc_fail_at(1, false);
    CHECK(stk_trace_intern("not there yet") == NULL);
    CHECK_STR(stk_trace_intern("not there yet"), "not there yet");
    stk_trace_forget();
}

enum { WRITERS = 3, EACH = 20000 };

static void *write_many(void *argument)
{
    char name[32];
    snprintf(name, sizeof name, "writer %d", (int)(intptr_t)argument);
    stk_trace_name_thread(name);
    for (int64_t i = 0; i < EACH; i++) stk_trace_counter("n", i * i);
    return NULL;
}

/* Values are the squares of a rising number; a torn record would not be. */
static void check_square(void *context, const stk_trace_event *event)
{
    seen *s = context;
    int64_t root = (int64_t)llround(sqrt((double)event->value));
    if (root * root != event->value || root < s->next[event->thread] || strcmp(event->name, "n") ||
        event->kind != STK_TRACE_COUNTER)
        s->wrong++;
    s->next[event->thread] = root + 1;
    s->count++;
}

TEST(reading_while_threads_write)
{
    seen s = {0};
    int64_t lost = 0, all_lost = 0;
    int64_t live = stk_alloc_live();
    stk_trace_forget();
    stk_trace_enable(64); /* small, so that overwriting meets the reader */
    pthread_t writer[WRITERS];
    for (int i = 0; i < WRITERS; i++)
        REQUIRE(CHECK(pthread_create(&writer[i], NULL, write_many, (void *)(intptr_t)i) == 0));
    for (int i = 0; i < 300; i++) {
        stk_trace_drain(check_square, &s, &lost);
        all_lost += lost;
    }
    for (int i = 0; i < WRITERS; i++) pthread_join(writer[i], NULL);
    stk_trace_drain(check_square, &s, &lost);
    all_lost += lost;
    CHECK_EQ_I64(s.wrong, 0);
    CHECK_EQ_I64(s.count + all_lost, WRITERS * EACH);
    CHECK(s.count > 0);
    stk_trace_disable();
    stk_trace_drain(check_square, &s, &lost); /* rings of threads that are gone are freed */
    CHECK_EQ_I64(stk_alloc_live(), live);
    stk_trace_forget();
}

TEST(without_memory_records_are_lost_and_counted)
{
    seen s = {0};
    int64_t lost = 0;
    stk_trace_forget();
    stk_trace_enable(0);
    stk_alloc_fail_at(1, true);
    for (int i = 0; i < 5; i++) stk_trace_mark("m", 0);
    stk_alloc_fail_at(0, false);
    CHECK_EQ_I64(stk_trace_drain(keep, &s, &lost), 0);
    CHECK_EQ_I64(lost, 5);
    stk_trace_forget(); /* tried again from here */
    stk_trace_mark("m", 0);
    CHECK_EQ_I64(stk_trace_drain(keep, &s, &lost), 1);
    stk_trace_disable();
    stk_trace_forget();
    CHECK_EQ_I64(stk_alloc_live(), 0);
}

TEST_MAIN()
