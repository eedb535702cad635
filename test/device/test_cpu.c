/* The CPU device: opening, sharing, description, memory, groups of launches, instruction sets. */
#include "device/launch.h"

#include "base/trace.h"
#include "device/cpu/cpu.h"
#include "device/cpu/vec/vec.h"

TEST(opens_by_name)
{
    stk_error err;
    stk_device *a = NULL, *b = NULL, *c = NULL;
    REQUIRE(CHECK_OK(stk_device_open("cpu:0", 2, &a, &err)));
    REQUIRE(CHECK_OK(stk_device_open("cpu", 2, &b, &err)));
    REQUIRE(CHECK_OK(stk_device_open("cpu", 1, &c, &err)));
    CHECK(a == b); /* one pool per number of threads */
    CHECK(a != c);
    stk_device_report report;
    stk_device_describe(a, &report);
    CHECK_STR(report.name, "cpu:0");
    CHECK_EQ_I64(report.threads, 2);
    CHECK(report.memory > 0);
    CHECK(report.fork_join_ns > 0);
    CHECK_CONTAINS(report.detail, stk_vec_get()->name);
    stk_device_release(a);
    stk_device_release(b);
    stk_device_release(c);
    stk_device_release(NULL);
    CHECK_FAILS(stk_device_open("gpu:7", 0, &a, &err), STK_ERR_DEVICE, "gpu:7");
    CHECK_CONTAINS(err.message, "there is \"cpu:0\"");
    CHECK_FAILS(stk_device_open("cpu:1", 0, &a, &err), STK_ERR_DEVICE, "cpu:1");
    CHECK_FAILS(stk_device_open("cpu", -1, &a, &err), STK_ERR_ARGUMENT, "threads");
    CHECK_FAILS(stk_device_open(NULL, 0, &a, &err), STK_ERR_ARGUMENT, "NULL");
    CHECK(a == NULL || a == b);
}

TEST(are_listed)
{
    stk_error err;
    stk_device_report list[8];
    int32_t n = -1;
    int32_t all = stk_device_count();
    REQUIRE(CHECK(all >= 1 && all <= 8));
    CHECK_OK(stk_device_list(8, list, &n, &err));
    CHECK_EQ_I64(n, all);
    CHECK_STR(list[0].name, "cpu:0");
    CHECK(list[0].shares_memory);
    for (int32_t i = 0; i < n; i++) { /* every name that is listed without trouble can be opened */
        stk_device *d = NULL;
        if (list[i].trouble[0]) continue;
        REQUIRE(CHECK_OK(stk_device_open(list[i].name, 1, &d, &err)));
        CHECK_STR(stk_device_name(d), list[i].name);
        stk_device_release(d);
    }
    CHECK_OK(stk_device_list(0, NULL, &n, &err));
    CHECK_EQ_I64(n, 0);
    CHECK_FAILS(stk_device_list(8, NULL, &n, &err), STK_ERR_ARGUMENT, "array");
}

/* The others are listed all the same. */
TEST(one_that_cannot_be_opened_is_listed_with_its_trouble)
{
    stk_error err;
    stk_device_report list[8];
    int32_t n = 0, broken = 0, good = 0;
    const char *before = getenv("STOKER_APART");
    setenv("STOKER_APART", "broken", 1);
    CHECK_OK(stk_device_list(8, list, &n, &err));
    for (int32_t i = 0; i < n; i++)
        if (!strcmp(list[i].name, "apart:0") && !before) {
            CHECK_MSG(strstr(list[i].trouble, "broken device"), "'%s'", list[i].trouble);
            CHECK(list[i].only_by_name);
            broken++;
        } else {
            good += !list[i].trouble[0];
        }
    if (!before) CHECK_EQ_I64(broken, 1);
    CHECK(good >= 1);
    if (before)
        setenv("STOKER_APART", before, 1);
    else
        unsetenv("STOKER_APART");
}

TEST(default_is_what_the_environment_names)
{
    stk_error err;
    stk_device *d = NULL;
    const char *was = getenv("STOKER_DEVICE");
    char kept[64];
    snprintf(kept, sizeof kept, "%s", was ? was : "");
    setenv("STOKER_DEVICE", "none:3", 1);
    CHECK_FAILS(stk_device_open("default", 0, &d, &err), STK_ERR_DEVICE, "none:3");
    setenv("STOKER_DEVICE", "", 1);
    CHECK_OK(stk_device_open("default", 0, &d, &err));
    CHECK_STR(stk_device_name(d), "cpu:0");
    stk_device_release(d);
    setenv("STOKER_DEVICE", kept, 1);
}

static stk_status open_and_close(void)
{
    stk_device *d = NULL;
    stk_error err;
    stk_status status = stk_device_open("cpu", 3, &d, &err);
    stk_device_release(d);
    return status;
}

TEST(survives_without_memory) { OOM_LOOP(open_and_close()); }

TEST(lists_implementations_ref_last)
{
    stk_device *d = launch_device(1);
    for (int k = 0; k < STK_KERNEL_COUNT; k++) {
        int32_t n = -1;
        const stk_impl *const *list = stk_cpu_impls((const stk_cpu *)d, (stk_kernel)k, &n);
        CHECK(n >= 0);
        for (int32_t i = 0; i < n; i++) {
            CHECK_EQ_I64(list[i]->kernel, k);
            CHECK(list[i]->run != NULL);
            if (i) CHECK(list[i]->rank >= list[i - 1]->rank);
        }
    }
}

TEST(memory_is_zeroed_and_copied)
{
    stk_error err;
    stk_device *d = launch_device(1);
    size_t sizes[] = {1, 100, 3 << 20};
    for (int i = 0; i < 3; i++) {
        stk_block *b = d->vt->memory.alloc(d, sizes[i]);
        REQUIRE(CHECK(b != NULL && b->device == d && b->bytes == sizes[i]));
        CHECK(b->host[0] == 0 && b->host[sizes[i] - 1] == 0);
        stk_address first = stk_address_of(b, 0), last = stk_address_of(b, (int64_t)sizes[i] - 1);
        char x = 7, y = 0;
        CHECK_OK(d->vt->queue.set(d, last, &x, 1, &err));
        CHECK_OK(d->vt->queue.copy(d, first, last, 1, &err));
        CHECK_OK(d->vt->queue.get(d, &y, first, 1, &err));
        CHECK_EQ_I64(y, 7);
        d->vt->memory.free(b);
    }
    CHECK_OK(d->vt->queue.wait(d, &err));
}

/* ---- groups: what ran when ------------------------------------------------------------------------ */

enum { UNITS = 37 };

typedef struct record {
    int32_t step[2][UNITS * 3]; /* order in which a unit of each launch was done within its part */
    int32_t finished;
} record;

static _Thread_local int32_t clock_of_thread;

static void note(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    (void)part;
    record *r = l->arg[0];
    int which = (int)(intptr_t)l->state;
    for (int64_t u = lo; u < hi; u++) r->step[which][u] = ++clock_of_thread;
}

static void count_finish(const stk_launch *l) { ((record *)l->arg[0])->finished++; }

TEST(followers_run_part_by_part)
{
    static const stk_impl noting = {.name = "note", .run = note, .finish = count_finish};
    for (int32_t threads = 1; threads <= 4; threads++) {
        static record r;
        memset(&r, 0, sizeof r);
        void *arg[] = {&r};
        stk_launch l[2];
        for (int i = 0; i < 2; i++)
            l[i] = (stk_launch){.run = note,
                                .arg = arg,
                                .impl = &noting,
                                .units = UNITS,
                                .parts = 5,
                                .threads = 4,
                                .scale = i ? 3 : 1,
                                .follows = i == 1,
                                .state = (void *)(intptr_t)i};
        stk_device *d = launch_device(threads);
        stk_cpu_run((const stk_cpu *)d, l, 2, 0);
        CHECK_EQ_I64(r.finished, 2);
        for (int32_t part = 0; part < 5; part++) {
            int64_t lo, hi;
            stk_part_range(UNITS, 5, part, &lo, &hi);
            int32_t last_first = r.step[0][hi - 1], first_second = r.step[1][lo * 3];
            CHECK_EQ_I64(first_second, last_first + 1); /* the same thread, right behind */
            for (int64_t u = lo * 3; u < hi * 3; u++) CHECK(r.step[1][u] > 0);
        }
    }
}

static void count_spans(void *context, const stk_trace_event *event)
{
    if (event->kind == STK_TRACE_SPAN && !strcmp(event->name, "traced")) *(int64_t *)context += 1;
}

TEST(groups_leave_a_trace_when_asked)
{
    static float y[100];
    stk_fill_params p = {.count = 100, .item = 4};
    void *arg[] = {y};
    stk_launch l[3];
    for (int i = 0; i < 3; i++) {
        REQUIRE(launch_prepare(&l[i], launch_device(1), STK_K_FILL, "own", &p, arg, 1, 2));
        l[i].label = "traced";
        l[i].follows = i == 1;
    }
    int64_t spans = 0;
    for (int on = 0; on < 2; on++) {
        if (on) stk_trace_enable(0);
        stk_cpu_run((const stk_cpu *)launch_device(1), l, 3, 0);
        stk_trace_disable();
        stk_trace_drain(count_spans, &spans, NULL);
        CHECK_EQ_I64(spans, on ? 6 : 0); /* three launches of two parts each */
    }
    stk_trace_forget();
    for (int i = 0; i < 3; i++) launch_discard(&l[i]);
}

TEST(subnormals_are_off_while_running)
{
    stk_device *d = launch_device(2);
    enum { N = 100000 };
    float *x = stk_malloc(N * sizeof *x);
    for (int i = 0; i < N; i++) x[i] = 1e-30f;
    int64_t count[] = {N};
    stk_chain c = {.inputs = 1,
                   .outputs = 1,
                   .ops = 1,
                   .regs = 2,
                   .segments = 1,
                   .tile = 1024,
                   .count = count};
    c.op[0] = (stk_chain_op){.code = STK_EW_MUL, .dst = 1, .a = 0, .b = 0};
    c.output[0].reg = 1;
    void *arg[] = {x, x};
    CHECK(LAUNCH(d, STK_K_CHAIN, "vec", &c, arg, 2, 8));
    int nonzero = 0;
    for (int i = 0; i < N; i++) nonzero += x[i] != 0;
    CHECK_EQ_I64(nonzero, 0);
    volatile float tiny = 1e-30f; /* and the caller has its own mode back */
    CHECK(tiny * 1e-10f != 0);
    stk_free(x);
}

TEST(instruction_sets_by_name)
{
    CHECK(stk_vec_find("base") != NULL);
    CHECK(stk_vec_find("abacus") == NULL);
    const stk_vec *asked = stk_vec_get(); /* the whole suite may run with less than there is */
    unsetenv("STOKER_ISA");
    stk_vec_use(NULL);
    const stk_vec *widest = stk_vec_get();
    stk_vec_use(stk_vec_find("base"));
    CHECK_STR(stk_vec_get()->name, "base");
    setenv("STOKER_ISA", "base", 1);
    stk_vec_use(NULL);
    CHECK_STR(stk_vec_get()->name, "base");
    setenv("STOKER_ISA", "abacus", 1);
    stk_vec_use(NULL);
    CHECK(stk_vec_get() == widest);
    unsetenv("STOKER_ISA");
    stk_vec_use(asked);
}

TEST_MAIN()
