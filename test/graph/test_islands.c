/* A device with memory of its own (apart:0): what it does not take, what travels, and that nobody touches its addresses. */
#include "check.h"
#include "graph/run/program.h"
#include "stoker/nn.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 7 };

static stk_device *open_device(const char *name)
{
    stk_error err;
    stk_device *d = NULL;
    setenv("STOKER_APART", "1", 1);
    CHECK_OK(stk_device_open(name, 2, &d, &err));
    return d;
}

static stk_program *compile(const stk_graph *g, const char *device)
{
    stk_error err;
    stk_program *p = NULL;
    stk_device *d = open_device(device);
    stk_program_options o = {.device = d, .deterministic = true};
    CHECK_OK(stk_program_new(g, &o, &p, &err));
    stk_device_release(d);
    return p;
}

static stk_tensor *numbers(int seed)
{
    stk_tensor *t = NULL;
    stk_error err;
    CHECK_OK(stk_tensor_new(STK_F32, 1, (int64_t[]){N}, &t, &err));
    for (int i = 0; i < N; i++) ((float *)t->data)[i] = (float)((i * 37 + seed * 11) % 17) / 8 - 1;
    return t;
}

static stk_tensor *run(stk_program *p, stk_tensor *x)
{
    stk_error err;
    stk_tensor *y = NULL;
    CHECK_OK(stk_program_feed(p, "x", x, &err));
    CHECK_OK(stk_program_run(p, 1, &err));
    CHECK_OK(stk_program_read(p, "y", &y, &err));
    return y;
}

/* erf and sort are missing there: erf -> (exp) -> sort, erf again: two islands. */
static stk_graph *two_islands(void)
{
    stk_graph *g = NULL;
    stk_error err;
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val x = stk_g_input(g, "x", STK_F32, 1, (int64_t[]){N});
    stk_g_place(g, "odd_layer");
    stk_val a = stk_g_erf(g, stk_g_exp(g, x));
    stk_g_place(g, NULL);
    stk_val b = stk_g_sort(g, stk_g_mul(g, a, x), 0, false);
    stk_g_output(g, "y", stk_g_add(g, stk_g_erf(g, b), x));
    return g;
}

TEST(missing_operations_are_listed_and_run)
{
    stk_graph *g = two_islands();
    stk_program *home = compile(g, "cpu:0"), *away = compile(g, "apart:0");
    stk_island rows[8];
    REQUIRE(CHECK(home && away));
    CHECK_EQ_I64(stk_program_islands(home, 8, rows), 0);
    REQUIRE(CHECK_EQ_I64(stk_program_islands(away, 8, rows), 3));
    CHECK_STR(rows[0].op, "erf");
    CHECK_STR(rows[0].name, "odd_layer");
    CHECK_STR(rows[0].shape, "float32[7]");
    CHECK_STR(rows[0].reason, "no kernel for erf");
    CHECK_EQ_I64(rows[0].bytes_down, 4 * N);
    CHECK_EQ_I64(rows[0].bytes_up, 4 * N);
    CHECK_STR(rows[1].op, "sort");
    CHECK_STR(rows[2].op, "erf");
    CHECK(rows[0].number != rows[1].number);
    CHECK_EQ_I64(rows[1].number, rows[2].number); /* one after the other: they go together */
    CHECK_EQ_I64(rows[2].bytes_down, 0);
    CHECK_STR(stk_device_name(stk_program_device(away)), "apart:0");
    for (int i = 0; i < 3; i++) {
        stk_tensor *x = numbers(i), *a = run(home, x), *b = run(away, x);
        REQUIRE(CHECK(a && b));
        CHECK(!memcmp(a->data, b->data, 4 * N));
        stk_tensor_release(x), stk_tensor_release(a), stk_tensor_release(b);
    }
    stk_program_release(home);
    stk_program_release(away);
    stk_graph_release(g);
}

TEST(inputs_take_turns_in_two_slots)
{
    stk_error err;
    stk_graph *g = NULL;
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val x = stk_g_input(g, "x", STK_F32, 1, (int64_t[]){N});
    stk_val scale = stk_g_input(g, "scale", STK_F32, 0, NULL);
    stk_val w = stk_g_variable(g, "w", STK_F32, 1, (int64_t[]){N});
    stk_g_assign(g, w, stk_g_add(g, w, stk_g_mul(g, x, scale)));
    stk_g_output(g, "y", stk_g_mul(g, x, scale));
    setenv("STOKER_APART_LATENCY", "200", 1);
    stk_program *p = compile(g, "apart:0");
    setenv("STOKER_APART_LATENCY", "0", 1);
    REQUIRE(CHECK(p));
    CHECK(p->feeds[1].uniform_at >= 0 && !p->feeds[1].upload); /* goes along with the run */
    float want[N] = {0};
    stk_block *before = NULL;
    stk_tensor *t = numbers(0), *s = NULL, *sum = NULL;
    CHECK_OK(stk_tensor_scalar(STK_F32, 0, &s, &err));
    for (int i = 0; i < 12; i++) { /* the tensors are changed while the device is still at work */
        for (int k = 0; k < N; k++) {
            ((float *)t->data)[k] = (float)(i + k);
            want[k] += (float)(i + k) * (float)(i % 3);
        }
        ((float *)s->data)[0] = (float)(i % 3);
        CHECK_OK(stk_program_feed(p, "x", t, &err));
        CHECK_OK(stk_program_feed(p, "scale", s, &err));
        CHECK(p->slots[0].block != before);
        before = p->slots[0].block;
        CHECK_OK(stk_program_run(p, 1, &err));
    }
    CHECK_OK(stk_store_get(stk_program_store(p), "w", &sum, &err));
    for (int k = 0; sum && k < N; k++) CHECK_NEAR(((float *)sum->data)[k], want[k], 0);
    stk_tensor_release(t), stk_tensor_release(s), stk_tensor_release(sum);
    stk_program_release(p);
    stk_graph_release(g);
}

TEST(the_host_cannot_touch_its_memory)
{
    stk_device *d = open_device("apart:0");
    stk_block *b = d->vt->memory.alloc(d, 100);
    REQUIRE(CHECK(b));
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        *(volatile char *)stk_address_pointer(stk_address_of(b, 8)) = 1;
        _exit(0);
    }
    int how = 0;
    waitpid(child, &how, 0);
    CHECK(how != 0); /* a signal, or a sanitizer that tells about one */
    stk_error err;
    char in[4] = "abc", out[4] = "";
    CHECK_OK(d->vt->queue.set(d, stk_address_of(b, 8), in, 4, &err));
    CHECK_OK(d->vt->queue.copy(d, stk_address_of(b, 50), stk_address_of(b, 8), 4, &err));
    CHECK_OK(d->vt->queue.get(d, out, stk_address_of(b, 50), 4, &err));
    CHECK_STR(out, "abc");
    d->vt->memory.free(b);
    stk_device_release(d);
}

/* The number of the run goes into a condition with nothing in front of it. */
TEST(uniforms_reach_control_flow_that_comes_first)
{
    const char *const names[] = {"cpu:0", "apart:0"};
    for (int n = 0; n < 2; n++) {
        stk_error err;
        stk_graph *g = NULL, *body = NULL;
        CHECK_OK(stk_graph_new(&g, &err));
        CHECK_OK(stk_graph_new(&body, &err));
        stk_g_output(body, "y", stk_g_input(body, "x", STK_I64, 0, NULL));
        stk_val step = stk_g_step(g);
        stk_g_output(
            g, "y",
            stk_g_scan(g, body, 1, &step, 0, NULL, 0, NULL, &(stk_scan_options){.trips = 2}));
        stk_program *p = compile(g, names[n]);
        REQUIRE(CHECK(p));
        for (int i = 0; i < 3; i++) {
            stk_tensor *y = NULL;
            CHECK_OK(stk_program_run(p, 1, &err));
            CHECK_OK(stk_program_read(p, "y", &y, &err));
            CHECK_EQ_I64((int64_t)stk_tensor_at(y, 0), i);
            stk_tensor_release(y);
        }
        stk_program_release(p);
        stk_graph_release(g);
        stk_graph_release(body);
    }
}

/* Four products of 40 kB that are alive together, where a block holds 64 kB. Kernels that need more memory than that are not taken. */
TEST(arenas_are_cut_into_blocks)
{
    static const char *const names[] = {"cpu:0", "apart:0"};
    stk_tensor *y[2] = {NULL, NULL};
    setenv("STOKER_APART_BLOCK", "65536", 1);
    for (int n = 0; n < 2; n++) {
        stk_error err;
        stk_graph *g = NULL;
        stk_tensor *x = NULL;
        CHECK_OK(stk_graph_new(&g, &err));
        stk_val in = stk_g_input(g, "x", STK_F32, 2, (int64_t[]){100, 100});
        stk_val a = stk_g_matmul(g, in, in), b = stk_g_matmul(g, a, in);
        stk_val c = stk_g_matmul(g, b, a), d = stk_g_matmul(g, c, b);
        stk_g_output(g, "y", stk_g_matmul(g, stk_g_matmul(g, a, b), stk_g_matmul(g, c, d)));
        stk_program *p = compile(g, names[n]);
        REQUIRE(CHECK(p));
        CHECK_MSG((p->plan.narenas > 1) == (n == 1), "%s: %d arenas", names[n], p->plan.narenas);
        CHECK_OK(stk_tensor_new(STK_F32, 2, (int64_t[]){100, 100}, &x, &err));
        for (int i = 0; i < 10000; i++) ((float *)x->data)[i] = (float)(i % 17 - 8) * 0.02f;
        CHECK_OK(stk_program_feed(p, "x", x, &err));
        CHECK_OK(stk_program_run(p, 2, &err));
        CHECK_OK(stk_program_read(p, "y", &y[n], &err));
        stk_tensor_release(x);
        stk_program_release(p);
        stk_graph_release(g);
    }
    unsetenv("STOKER_APART_BLOCK");
    if (CHECK(y[0] && y[1])) CHECK_NEAR_F32(y[1]->data, y[0]->data, 10000, 0.2, 1e-4);
    for (int n = 0; n < 2; n++) stk_tensor_release(y[n]);
}

TEST_MAIN()
