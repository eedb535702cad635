/* Functions of the caller inside of programs: results, gradients, names in traces, mistakes, refused memory. */
#include "values.h"

#include "base/trace.h"

#define L(...) ((int64_t[]){__VA_ARGS__})

typedef struct counter {
    int32_t calls;
    double factor;
} counter;

/* y = factor x^2, s = sum of x */
static void square(void *context, int32_t nin, const stk_tensor *const *in, int32_t nout,
                   stk_tensor *const *out)
{
    counter *c = context;
    const float *x = in[0]->data;
    float *y = out[0]->data, sum = 0;
    CHECK(nin == 1 && nout == 2);
    for (int64_t i = 0; i < stk_tensor_count(in[0]); i++) {
        y[i] = (float)c->factor * x[i] * x[i];
        sum += x[i];
    }
    *(float *)out[1]->data = sum;
    c->calls++;
}
/* x, dy, ds -> dx */
static void square_gradient(void *context, int32_t nin, const stk_tensor *const *in, int32_t nout,
                            stk_tensor *const *out)
{
    counter *c = context;
    CHECK(nin == 3 && nout == 1);
    for (int64_t i = 0; i < stk_tensor_count(in[0]); i++)
        ((float *)out[0]->data)[i] =
            (float)(2 * c->factor * stk_tensor_at(in[0], i) * stk_tensor_at(in[1], i) +
                    stk_tensor_at(in[2], 0));
}

static const stk_host_result results[] = {{STK_F32, 1, {3}}, {STK_F32, 0, {0}}};

TEST(a_host_function_computes_and_is_counted_once_per_run)
{
    stk_error err = {0};
    counter c = {.factor = 2};
    stk_host host = {.name = "square", .run = square, .context = &c};
    stk_graph *g = graph();
    stk_program *p = NULL;
    stk_val x = numbers(g, STK_F32, 1, L(3), (double[]){1, 2, 3});
    stk_val y = stk_g_host(g, &host, 1, &x, 2, results);
    stk_g_output(g, "y", stk_g_add(g, y, y + 1));
    if (CHECK_OK(stk_program_new(g, NULL, &p, &err))) {
        stk_tensor *t = NULL;
        CHECK_OK(stk_program_run(p, 4, &err));
        CHECK_EQ_I64(c.calls, 4);
        CHECK_OK(stk_program_read(p, "y", &t, &err));
        check_tensor(t, STK_F32, 3, (double[]){8, 14, 24}, 1e-6, __FILE__, __LINE__);
        stk_tensor_release(t);
    }
    stk_program_release(p);
    stk_graph_release(g);
}

TEST(gradients_are_asked_for)
{
    counter c = {.factor = 2};
    stk_host host = {.name = "square", .run = square, .gradient = square_gradient, .context = &c};
    feeds f = {0};
    stk_graph *g = graph();
    stk_val x = fed(g, &f, STK_F32, 1, L(3), (double[]){1, 2, 3}), dx = 0;
    stk_val y = stk_g_host(g, &host, 1, &x, 2, results);
    stk_val loss =
        stk_g_add(g, stk_g_sum_all(g, y), stk_g_mul(g, y + 1, stk_g_scalar(g, STK_F32, 10)));
    stk_g_gradients(g, loss, 1, &x, &dx);
    expect_fed(g, &f, dx, STK_F32, 3, (double[]){14, 18, 22}, 1e-5);
}

TEST(training_through_one_without_a_gradient_is_refused)
{
    stk_error err = {0};
    counter c = {.factor = 1};
    stk_host host = {.name = "opaque", .run = square, .context = &c};
    stk_graph *g = graph();
    stk_val x = stk_g_input(g, "x", STK_F32, 1, L(3)), dx = 0;
    stk_g_gradients(g, stk_g_sum_all(g, stk_g_host(g, &host, 1, &x, 2, results)), 1, &x, &dx);
    CHECK_FAILS(stk_graph_status(g, &err), STK_ERR_UNSUPPORTED, "'opaque' has no gradient");
    stk_graph_release(g);
    g = graph();
    refuse(g, stk_g_host(g, &(stk_host){.name = "nothing"}, 0, NULL, 1, results), STK_ERR_ARGUMENT,
           "function");
    g = graph();
    refuse(g, stk_g_host(g, &host, 0, NULL, 1, (stk_host_result[]){{STK_STRING, 0, {0}}}),
           STK_ERR_ARGUMENT, "type");
    g = graph();
    refuse(g, stk_g_apply(g, STK_OP_HOST, 0, NULL, NULL), STK_ERR_RANGE, "outputs");
}

static void find_span(void *context, const stk_trace_event *e)
{
    if (e->kind == STK_TRACE_SPAN && !strcmp(e->name, "host:square")) ++*(int32_t *)context;
}

TEST(its_time_is_billed_under_its_name)
{
    stk_error err = {0};
    counter c = {.factor = 1};
    stk_host host = {.name = "square", .run = square, .context = &c};
    stk_graph *g = graph();
    stk_program *p = NULL;
    int32_t spans = 0;
    stk_val x = numbers(g, STK_F32, 1, L(3), (double[]){1, 2, 3});
    stk_g_output(g, "y", stk_g_host(g, &host, 1, &x, 2, results));
    stk_trace_enable(0);
    if (CHECK_OK(stk_program_new(g, NULL, &p, &err))) CHECK_OK(stk_program_run(p, 3, &err));
    stk_trace_disable();
    stk_trace_drain(find_span, &spans, NULL);
    CHECK_EQ_I64(spans, 3);
    stk_program_release(p);
    stk_graph_release(g);
}

static counter quiet = {.factor = 1};
static stk_status build_and_run(void)
{
    stk_error err = {0};
    stk_host host = {.name = "square", .run = square, .context = &quiet};
    stk_graph *g = NULL;
    stk_program *p = NULL;
    stk_program_options o = {.deterministic = true};
    stk_status status = stk_graph_new(&g, &err);
    if (status != STK_OK) return status;
    stk_val x = stk_g_fill(g, STK_F32, 1, L(3), 2);
    stk_g_output(g, "y", stk_g_host(g, &host, 1, &x, 2, results));
    status = stk_program_new(g, &o, &p, &err);
    if (status == STK_OK) status = stk_program_run(p, 1, &err);
    stk_program_release(p);
    stk_graph_release(g);
    return status;
}
TEST(refused_memory_leaks_nothing) { OOM_LOOP(build_and_run()); }

TEST_MAIN()
