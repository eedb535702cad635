/* Control flow: values, gradients, gradients of gradients, mistakes. */
#include "graph/op_case.h"
#include "stoker/tracing.h"

static stk_graph *new_body(void)
{
    stk_graph *b = NULL;
    stk_error err;
    CHECK_OK(stk_graph_new(&b, &err));
    return b;
}

/* ---- cond: x > 0 ? sin(x) * y : x * x + y, chosen by the sum of x ---------------------------------------- */

static stk_val build_cond(stk_graph *g, const stk_val *in, stk_dtype real)
{
    int64_t shape[] = {4};
    stk_graph *yes = new_body(), *no = new_body();
    stk_val x = stk_g_input(yes, "x", real, 1, shape), y = stk_g_input(yes, "y", real, 1, shape);
    stk_g_output(yes, "o", stk_g_mul(yes, stk_g_sin(yes, x), y));
    x = stk_g_input(no, "x", real, 1, shape);
    y = stk_g_input(no, "y", real, 1, shape);
    stk_g_output(no, "o", stk_g_add(no, stk_g_square(no, x), y));
    stk_val pred = stk_g_gt(g, stk_g_sum_all(g, in[0]), stk_g_scalar(g, real, 0));
    stk_val out = stk_g_cond(g, pred, yes, no, 2, in);
    stk_graph_release(yes);
    stk_graph_release(no);
    return out;
}

/* A branch that gives an input back unchanged, a constant, and one value twice. */
static stk_val build_pass_through(stk_graph *g, const stk_val *in, stk_dtype real)
{
    int64_t shape[] = {4};
    stk_graph *b[2] = {new_body(), new_body()};
    for (int s = 0; s < 2; s++) {
        stk_val x = stk_g_input(b[s], "x", real, 1, shape), e = stk_g_exp(b[s], x);
        stk_g_output(b[s], "o0", s ? e : x);
        stk_g_output(b[s], "o1", stk_g_fill(b[s], real, 1, shape, 3));
        stk_g_output(b[s], "o2", e);
        stk_g_output(b[s], "o3", e);
    }
    stk_val pred = stk_g_gt(g, stk_g_sum_all(g, in[0]), stk_g_scalar(g, real, 100));
    stk_val y = stk_g_cond(g, pred, b[0], b[1], 1, in);
    stk_val z = stk_g_cond(g, stk_g_not(g, pred), b[0], b[1], 1, in);
    stk_graph_release(b[0]);
    stk_graph_release(b[1]);
    stk_val sum = stk_g_add(g, stk_g_add(g, y, y + 1), stk_g_mul(g, y + 2, y + 3));
    return stk_g_add(g, sum, stk_g_add(g, stk_g_add(g, z, z + 1), stk_g_mul(g, z + 2, z + 3)));
}

/* ---- while: doubles x until its sum passes 50 --------------------------------------------------------------- */

static stk_val doubling(stk_graph *g, const stk_val *in, stk_dtype real, int64_t max_trips)
{
    int64_t shape[] = {4};
    stk_graph *cond = new_body(), *body = new_body();
    stk_val x = stk_g_input(cond, "x", real, 1, shape);
    stk_g_input(cond, "k", real, 1, shape);
    stk_g_output(cond, "more",
                 stk_g_lt(cond, stk_g_sum_all(cond, x), stk_g_scalar(cond, real, 50)));
    x = stk_g_input(body, "x", real, 1, shape);
    stk_val k = stk_g_input(body, "k", real, 1, shape);
    stk_g_output(body, "o", stk_g_mul(body, x, stk_g_add(body, k, stk_g_scalar(body, real, 1))));
    stk_val y = stk_g_while(g, cond, body, 1, 2, in, max_trips);
    stk_graph_release(cond);
    stk_graph_release(body);
    return y;
}
static stk_val build_while(stk_graph *g, const stk_val *in, stk_dtype real)
{
    return doubling(g, in, real, 0);
}
static stk_val build_limited(stk_graph *g, const stk_val *in, stk_dtype real)
{
    return doubling(g, in, real, 12);
}

/* ---- scan: h = tanh(h * w + x_t), y_t = h * h ------------------------------------------------------------------ */

static stk_val scan(stk_graph *g, const stk_val *in, stk_dtype real, stk_scan_options o)
{
    int64_t shape[] = {3};
    stk_graph *b = new_body();
    stk_val h = stk_g_input(b, "h", real, 1, shape), x = stk_g_input(b, "x", real, 1, shape);
    stk_val w = stk_g_input(b, "w", real, 1, shape);
    stk_val next = stk_g_tanh(b, stk_g_add(b, stk_g_mul(b, h, w), x));
    stk_g_output(b, "h", next);
    stk_g_output(b, "y", stk_g_square(b, next));
    stk_val last = stk_g_scan(g, b, 1, &in[0], 1, &in[1], 1, &in[2], &o);
    stk_graph_release(b);
    return last ? stk_g_add(g, stk_g_mul(g, last + 1, last), last) : 0;
}
static stk_val build_scan(stk_graph *g, const stk_val *in, stk_dtype real)
{
    return scan(g, in, real, (stk_scan_options){0});
}
static stk_val build_backwards(stk_graph *g, const stk_val *in, stk_dtype real)
{
    return scan(g, in, real, (stk_scan_options){.reverse = true, .no_gradient = true});
}

#define VEC(n, lo, hi)                                                                             \
    {                                                                                              \
        STK_F32, 1, {n}, lo, hi                                                                    \
    }
static const op_case cases[] = {
    {.name = "cond, then",
     .build = build_cond,
     .nin = 2,
     .in = {VEC(4, 0.1, 1), VEC(4, -1, 1)},
     .grad2 = 1},
    {.name = "cond, else",
     .build = build_cond,
     .nin = 2,
     .in = {VEC(4, -1, -0.1), VEC(4, -1, 1)},
     .grad2 = 1},
    {.name = "passed through", .build = build_pass_through, .nin = 1, .in = {VEC(4, -1, 1)}},
    {.name = "while",
     .build = build_while,
     .nin = 2,
     .in = {VEC(4, 0.5, 1), VEC(4, 0.9, 1.1)},
     .no_grad = 1},
    {.name = "while, no trip",
     .build = build_while,
     .nin = 2,
     .in = {VEC(4, 50, 60), VEC(4, 0.9, 1.1)},
     .no_grad = 1},
    {.name = "while with a limit",
     .build = build_limited,
     .nin = 2,
     .in = {VEC(4, 0.5, 1), VEC(4, 0.9, 1.1)},
     .grad2 = 1,
     .grad_tol = 1e-4},
    {.name = "scan",
     .build = build_scan,
     .nin = 3,
     .in = {VEC(3, -1, 1), {STK_F32, 2, {5, 3}, -1, 1}, VEC(3, -1, 1)},
     .grad2 = 1},
    {.name = "scan backwards",
     .build = build_backwards,
     .nin = 3,
     .in = {VEC(3, -1, 1), {STK_F32, 2, {5, 3}, -1, 1}, VEC(3, -1, 1)},
     .grad2 = 1},
    {.name = "scan of one",
     .build = build_scan,
     .nin = 3,
     .in = {VEC(3, -1, 1), {STK_F32, 2, {1, 3}, -1, 1}, VEC(3, -1, 1)}},
    {.name = "scan of none",
     .build = build_scan,
     .nin = 3,
     .in = {VEC(3, -1, 1), {STK_F32, 2, {0, 3}, -1, 1}, VEC(3, -1, 1)}},
};
OP_CASE_TEST(control_flow, cases)

TEST(mistakes)
{
    stk_error err;
    stk_graph *g = NULL, *b = new_body(), *c = new_body();
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val x = stk_g_input(g, "x", STK_F32, 1, (int64_t[]){4});
    stk_g_output(b, "o", stk_g_input(b, "x", STK_F32, 1, (int64_t[]){4}));
    stk_g_output(c, "o", stk_g_input(c, "x", STK_F32, 1, (int64_t[]){5}));
    CHECK(stk_g_cond(g, x, b, b, 1, &x) == 0);
    CHECK_FAILS(stk_graph_status(g, &err), STK_ERR_DTYPE, "the condition must be one bool");
    stk_graph_release(g);
    CHECK_OK(stk_graph_new(&g, &err));
    x = stk_g_input(g, "x", STK_F32, 1, (int64_t[]){4});
    stk_val pred = stk_g_input(g, "p", STK_BOOL, 0, NULL);
    CHECK(stk_g_cond(g, pred, b, c, 1, &x) == 0);
    CHECK_FAILS(stk_graph_status(g, &err), STK_ERR_SHAPE, "float32[4] where float32[5] is needed");
    stk_graph_release(g);
    stk_graph_release(b);
    stk_graph_release(c);
}

static int asked;
static bool call_away(void *context)
{
    asked++;
    return *(const bool *)context;
}

/* A loop that would never end is called away; the next run is an ordinary one. */
TEST(loops_can_be_interrupted)
{
    stk_error err;
    stk_graph *g = NULL, *cond = new_body(), *body = new_body();
    stk_program *p = NULL;
    stk_tensor *x = NULL, *y = NULL;
    bool away = true;
    stk_program_options options = stk_program_options_defaults();
    CHECK_OK(stk_graph_new(&g, &err));
    stk_g_output(
        cond, "more",
        stk_g_lt(cond, stk_g_input(cond, "x", STK_F32, 0, NULL), stk_g_scalar(cond, STK_F32, 50)));
    stk_val v = stk_g_input(body, "x", STK_F32, 0, NULL);
    stk_g_output(body, "o", stk_g_mul(body, v, stk_g_scalar(body, STK_F32, 2)));
    v = stk_g_input(g, "x", STK_F32, 0, NULL);
    stk_g_output(g, "y", stk_g_while(g, cond, body, 1, 1, &v, 0));
    CHECK_OK(stk_program_new_caller(g, &options, &p, &err));
    CHECK_OK(stk_tensor_from(STK_F32, 0, NULL, &(float){0}, &x, &err)); /* twice 0 stays 0 */
    stk_loop_interrupt(call_away, &away);
    CHECK_FAILS(stk_program_call(p, 1, &x, 1, &y, &err), STK_ERR_CANCELLED, "interrupted");
    CHECK(asked == 1 && !y);
    away = false;
    *(float *)x->data = 7;
    CHECK_OK(stk_program_call(p, 1, &x, 1, &y, &err));
    CHECK(*(float *)y->data == 56);
    stk_loop_interrupt(NULL, NULL);
    stk_tensor_release(x);
    stk_tensor_release(y);
    stk_program_release(p);
    stk_graph_release(g);
    stk_graph_release(cond);
    stk_graph_release(body);
}

TEST_MAIN()
