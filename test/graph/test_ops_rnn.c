/* Recurrent layers: own kernels against reference ones and differences, fused against composed, bad input. */
#include "op_case.h"
#include "stoker/recurrent.h"
#include "values.h"

/* ---- cases: inputs x w u b h0 [c0] [mask] -------------------------------------------------------------- */

static stk_val side_by_side(stk_graph *g, stk_rnn_result y)
{
    stk_val flat[3] = {stk_g_reshape(g, y.sequence, 1, (int64_t[]){-1}),
                       stk_g_reshape(g, y.h, 1, (int64_t[]){-1}),
                       y.c ? stk_g_reshape(g, y.c, 1, (int64_t[]){-1}) : 0};
    return stk_g_concat(g, y.c ? 3 : 2, flat, 0);
}

enum { REVERSE = 1, TIME_MAJOR = 2, MASK = 4, BEFORE = 8 };

static stk_rnn_options options_of(const stk_val *in, bool lstm, int how)
{
    stk_rnn_options o = stk_rnn_options_defaults();
    o.h0 = in[4];
    o.c0 = lstm ? in[5] : 0;
    o.reverse = how & REVERSE;
    o.time_major = how & TIME_MAJOR;
    o.reset_after = !(how & BEFORE);
    o.mask = how & MASK ? in[lstm ? 6 : 5] : 0;
    return o;
}

#define BUILD(name, cell, lstm, how)                                                               \
    static stk_val name(stk_graph *g, const stk_val *in, stk_dtype real)                           \
    {                                                                                              \
        stk_rnn_options o = options_of(in, lstm, how);                                             \
        (void)real;                                                                                \
        return side_by_side(g, stk_g_##cell(g, in[0], in[1], in[2], in[3], &o));                   \
    }                                                                                              \
    static stk_val name##_composed(stk_graph *g, const stk_val *in, stk_dtype real)                \
    {                                                                                              \
        stk_rnn_options o = options_of(in, lstm, how);                                             \
        (void)real;                                                                                \
        return side_by_side(g, stk_g_##cell##_composed(g, in[0], in[1], in[2], in[3], &o));        \
    }
BUILD(lstm, lstm, true, 0)
BUILD(lstm_reverse, lstm, true, REVERSE)
BUILD(lstm_time_major, lstm, true, TIME_MAJOR)
BUILD(lstm_mask, lstm, true, MASK)
BUILD(lstm_everything, lstm, true, MASK | REVERSE | TIME_MAJOR)
BUILD(gru, gru, false, 0)
BUILD(gru_everything, gru, false, MASK | REVERSE | TIME_MAJOR)
BUILD(gru_mask, gru, false, MASK)
BUILD(gru_before, gru, false, BEFORE)
BUILD(gru_before_reverse, gru, false, BEFORE | REVERSE)
BUILD(gru_before_mask, gru, false, BEFORE | MASK)
BUILD(gru_before_everything, gru, false, BEFORE | MASK | REVERSE | TIME_MAJOR)

/* Only one of the results is used: the gradient kernel gets less than all it can take. */
static stk_val lstm_last_h(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    return stk_g_lstm(g, in[0], in[1], in[2], 0, NULL).h;
}
static stk_val lstm_last_c(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    return stk_g_lstm(g, in[0], in[1], in[2], 0, NULL).c;
}
static stk_val gru_sequence(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    return stk_g_gru(g, in[0], in[1], in[2], 0, NULL).sequence;
}

#define M2(a, b, r)                                                                                \
    {                                                                                              \
        STK_F32, 2, {a, b}, -(r), r                                                                \
    }
#define M3(a, b, c, r)                                                                             \
    {                                                                                              \
        STK_F32, 3, {a, b, c}, -(r), r                                                             \
    }
#define FLAGS(a, b)                                                                                \
    {                                                                                              \
        STK_BOOL, 2, {a, b}, 0, 1                                                                  \
    }
#define V1(a, r)                                                                                   \
    {                                                                                              \
        STK_F32, 1, {a}, -(r), r                                                                   \
    }
/* x of two leading sizes p, q; batch is one of them; f features, n units */
#define LSTM_IN(p, q, batch, f, n, r)                                                              \
    M3(p, q, f, 1), M2(f, 4 * n, r), M2(n, 4 * n, r), V1(4 * n, r), M2(batch, n, 1), M2(batch, n, 1)
#define GRU_IN(p, q, batch, f, n, r)                                                               \
    M3(p, q, f, 1), M2(f, 3 * n, r), M2(n, 3 * n, r), M2(2, 3 * n, r), M2(batch, n, 1)
#define GRU_BEFORE_IN(p, q, batch, f, n, r)                                                        \
    M3(p, q, f, 1), M2(f, 3 * n, r), M2(n, 3 * n, r), V1(3 * n, r), M2(batch, n, 1)

static const op_case small[] = {
    {.name = "lstm", .build = lstm, .nin = 6, .in = {LSTM_IN(3, 5, 3, 2, 4, 1.0)}},
    {.name = "lstm of one", .build = lstm, .nin = 6, .in = {LSTM_IN(1, 1, 1, 1, 1, 1.0)}},
    {.name = "lstm one sequence", .build = lstm, .nin = 6, .in = {LSTM_IN(1, 7, 1, 3, 9, 1.0)}},
    {.name = "lstm no steps", .build = lstm, .nin = 6, .in = {LSTM_IN(3, 0, 3, 2, 4, 1.0)}},
    {.name = "lstm no features", .build = lstm, .nin = 6, .in = {LSTM_IN(3, 2, 3, 0, 4, 1.0)}},
    {.name = "lstm nothing", .build = lstm, .nin = 6, .in = {LSTM_IN(0, 2, 0, 2, 4, 1.0)}},
    {.name = "lstm reverse", .build = lstm_reverse, .nin = 6, .in = {LSTM_IN(3, 5, 3, 2, 4, 1.0)}},
    {.name = "lstm time major",
     .build = lstm_time_major,
     .nin = 6,
     .in = {LSTM_IN(5, 3, 3, 2, 4, 1.0)}},
    {.name = "lstm mask",
     .build = lstm_mask,
     .nin = 7,
     .in = {LSTM_IN(6, 5, 6, 2, 4, 1.0), FLAGS(6, 5)}},
    {.name = "lstm everything",
     .build = lstm_everything,
     .nin = 7,
     .in = {LSTM_IN(5, 6, 6, 2, 4, 1.0), FLAGS(5, 6)}},
    {.name = "lstm last h",
     .build = lstm_last_h,
     .nin = 3,
     .in = {M3(3, 4, 2, 1), M2(2, 12, 1), M2(3, 12, 1)}},
    {.name = "lstm last c",
     .build = lstm_last_c,
     .nin = 3,
     .in = {M3(3, 4, 2, 1), M2(2, 12, 1), M2(3, 12, 1)}},
    {.name = "lstm wide numbers", .build = lstm, .nin = 6, .in = {LSTM_IN(2, 3, 2, 2, 3, 30.0)}},
    {.name = "gru", .build = gru, .nin = 5, .in = {GRU_IN(3, 5, 3, 2, 4, 1.0)}},
    {.name = "gru of one", .build = gru, .nin = 5, .in = {GRU_IN(1, 1, 1, 1, 1, 1.0)}},
    {.name = "gru one unit", .build = gru, .nin = 5, .in = {GRU_IN(4, 3, 4, 2, 1, 1.0)}},
    {.name = "gru no steps", .build = gru, .nin = 5, .in = {GRU_IN(3, 0, 3, 2, 4, 1.0)}},
    {.name = "gru mask",
     .build = gru_mask,
     .nin = 6,
     .in = {GRU_IN(6, 5, 6, 2, 4, 1.0), FLAGS(6, 5)}},
    {.name = "gru everything",
     .build = gru_everything,
     .nin = 6,
     .in = {GRU_IN(5, 6, 6, 2, 4, 1.0), FLAGS(5, 6)}},
    {.name = "gru sequence",
     .build = gru_sequence,
     .nin = 3,
     .in = {M3(3, 4, 2, 1), M2(2, 9, 1), M2(3, 9, 1)}},
    {.name = "gru before",
     .build = gru_before,
     .nin = 5,
     .in = {GRU_BEFORE_IN(3, 5, 3, 2, 4, 1.0)}},
    {.name = "gru before one unit",
     .build = gru_before,
     .nin = 5,
     .in = {GRU_BEFORE_IN(4, 3, 4, 2, 1, 1.0)}},
    {.name = "gru before no steps",
     .build = gru_before,
     .nin = 5,
     .in = {GRU_BEFORE_IN(3, 0, 3, 2, 4, 1.0)}},
    {.name = "gru before reverse",
     .build = gru_before_reverse,
     .nin = 5,
     .in = {GRU_BEFORE_IN(3, 5, 3, 2, 4, 1.0)}},
    {.name = "gru before mask",
     .build = gru_before_mask,
     .nin = 6,
     .in = {GRU_BEFORE_IN(6, 5, 6, 2, 4, 1.0), FLAGS(6, 5)}},
    {.name = "gru before everything",
     .build = gru_before_everything,
     .nin = 6,
     .in = {GRU_BEFORE_IN(5, 6, 6, 2, 4, 1.0), FLAGS(5, 6)}},
};
OP_CASE_TEST(small_layers, small)

/* Several parts, panels of weights (64, 96, 128) and none (67, 131), sums beyond one block. */
static const op_case large[] = {
    {.name = "lstm 64", .build = lstm, .nin = 6, .in = {LSTM_IN(33, 3, 33, 5, 64, 0.3)}},
    {.name = "lstm 67", .build = lstm, .nin = 6, .in = {LSTM_IN(16, 3, 16, 5, 67, 0.3)}},
    {.name = "lstm 96 everything",
     .build = lstm_everything,
     .nin = 7,
     .in = {LSTM_IN(4, 20, 20, 3, 96, 0.2), FLAGS(4, 20)}},
    {.name = "lstm 131", .build = lstm, .nin = 6, .in = {LSTM_IN(17, 2, 17, 5, 131, 0.2)}},
    {.name = "gru 96", .build = gru, .nin = 5, .in = {GRU_IN(33, 3, 33, 5, 96, 0.2)}},
    {.name = "gru 128 everything",
     .build = gru_everything,
     .nin = 6,
     .in = {GRU_IN(3, 17, 17, 3, 128, 0.2), FLAGS(3, 17)}},
    {.name = "gru before 96",
     .build = gru_before,
     .nin = 5,
     .in = {GRU_BEFORE_IN(18, 3, 18, 5, 96, 0.2)}},
    {.name = "gru before 131 mask",
     .build = gru_before_mask,
     .nin = 6,
     .in = {GRU_BEFORE_IN(9, 3, 9, 5, 131, 0.2), FLAGS(9, 3)}},
};
TEST(large_layers)
{
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        op_test_values(&large[i], STK_F32);
        op_test_values(&large[i], STK_F64);
        op_test_fast_gradients(&large[i]);
    }
}

/* ---- fused against composed ------------------------------------------------------------------------------- */

static stk_program *gradient_program(const op_case *c, stk_dtype real, stk_tensor **x)
{
    stk_error err;
    stk_graph *g = op_graph(c, real, OP_GRAD);
    stk_program *p = op_compile(c, g, (op_run_options){.threads = 2});
    stk_graph_release(g);
    if (!p) return NULL;
    op_feed(c, p, x);
    CHECK_OK(stk_program_run(p, 1, &err));
    return p;
}

static void same_as_composed(const op_case *fused,
                             stk_val (*build)(stk_graph *, const stk_val *, stk_dtype))
{
    stk_tensor *x[8];
    op_case composed = *fused;
    composed.build = build;
    op_make_inputs(fused, STK_F32, x);
    stk_graph *g[2] = {op_graph(fused, STK_F32, OP_VALUE), op_graph(&composed, STK_F32, OP_VALUE)};
    stk_tensor *y = op_run_value(fused, g[0], x, (op_run_options){.threads = 2});
    stk_tensor *want = op_run_value(&composed, g[1], x, (op_run_options){.threads = 2});
    op_compare(fused, "values of the composed form", y, want, 1e-5);
    stk_program *p[2] = {gradient_program(fused, STK_F32, x),
                         gradient_program(&composed, STK_F32, x)};
    for (int32_t i = 0; i < fused->nin && p[0] && p[1]; i++) {
        char name[8];
        if (fused->in[i].dtype != STK_F32) continue;
        snprintf(name, sizeof name, "d%d", i);
        stk_tensor *d[2] = {op_read(p[0], name), op_read(p[1], name)};
        op_compare(fused, name, d[0], d[1], 1e-4);
        for (int k = 0; k < 2; k++) stk_tensor_release(d[k]);
    }
    for (int k = 0; k < 2; k++) {
        stk_program_release(p[k]);
        stk_graph_release(g[k]);
    }
    stk_tensor_release(y);
    stk_tensor_release(want);
    for (int32_t i = 0; i < fused->nin; i++) stk_tensor_release(x[i]);
}

#define SAME(fn, n, ...)                                                                           \
    same_as_composed(&(op_case){.name = #fn, .build = fn, .nin = n, .in = {__VA_ARGS__}},          \
                     fn##_composed)
TEST(fused_is_composed)
{
    SAME(lstm, 6, LSTM_IN(9, 6, 9, 3, 10, 0.7));
    SAME(lstm_reverse, 6, LSTM_IN(9, 6, 9, 3, 10, 0.7));
    SAME(lstm_time_major, 6, LSTM_IN(6, 9, 9, 3, 10, 0.7));
    SAME(lstm_mask, 7, LSTM_IN(9, 6, 9, 3, 10, 0.7), FLAGS(9, 6));
    SAME(lstm_everything, 7, LSTM_IN(6, 9, 9, 3, 80, 0.3), FLAGS(6, 9));
    SAME(gru, 5, GRU_IN(9, 6, 9, 3, 10, 0.7));
    SAME(gru_mask, 6, GRU_IN(9, 6, 9, 3, 10, 0.7), FLAGS(9, 6));
    SAME(gru_everything, 6, GRU_IN(6, 9, 9, 3, 80, 0.3), FLAGS(6, 9));
    SAME(gru_before, 5, GRU_BEFORE_IN(9, 6, 9, 3, 10, 0.7));
    SAME(gru_before_reverse, 5, GRU_BEFORE_IN(9, 6, 9, 3, 10, 0.7));
    SAME(gru_before_mask, 6, GRU_BEFORE_IN(9, 6, 9, 3, 10, 0.7), FLAGS(9, 6));
    SAME(gru_before_everything, 6, GRU_BEFORE_IN(6, 9, 9, 3, 80, 0.3), FLAGS(6, 9));
}

static const op_case composed[] = {
    {.name = "composed lstm",
     .build = lstm_mask_composed,
     .nin = 7,
     .in = {LSTM_IN(2, 3, 2, 2, 2, 1.0), FLAGS(2, 3)},
     .grad2 = 1,
     .grad_tol = 1e-4},
    {.name = "composed gru",
     .build = gru_composed,
     .nin = 5,
     .in = {GRU_IN(2, 3, 2, 2, 2, 1.0)},
     .grad2 = 1,
     .grad_tol = 1e-4},
    {.name = "composed gru before",
     .build = gru_before_composed,
     .nin = 5,
     .in = {GRU_BEFORE_IN(2, 3, 2, 2, 2, 1.0)},
     .grad2 = 1,
     .grad_tol = 1e-4},
};
OP_CASE_TEST(composed_of_any_order, composed)

/* ---- half types, other ways in, mistakes --------------------------------------------------------------------- */

TEST(half_types_compute_in_float)
{
    stk_graph *g = graph();
    stk_error err;
    stk_val x = stk_g_fill(g, STK_F16, 3, (int64_t[]){2, 3, 1}, 0.5);
    stk_val w = stk_g_fill(g, STK_F16, 2, (int64_t[]){1, 4}, 0.25);
    stk_rnn_result y = stk_g_lstm(g, x, w, w, 0, NULL);
    CHECK_OK(stk_graph_status(g, &err));
    CHECK_EQ_I64(stk_g_dtype(g, y.sequence), STK_F16);
    double h = 0, c = 0;
    for (int t = 0; t < 3; t++) {
        double pre = 0.125 + 0.25 * h, gate = 1 / (1 + exp(-pre));
        c = gate * c + gate * tanh(pre);
        h = gate * tanh(c);
    }
    expect(g, y.h, STK_F16, 2, ((double[]){h, h}), 1e-3);
}

static stk_val input(stk_graph *g, const char *name, int32_t rank, const int64_t *shape)
{
    return stk_g_input(g, name, STK_F32, rank, shape);
}
#define IN(g, name, ...)                                                                           \
    input(g, name, (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[]){__VA_ARGS__})

TEST(mistakes_are_named)
{
    stk_graph *g = graph();
    refuse(g, stk_g_lstm(g, IN(g, "x", 4, 5), IN(g, "w", 5, 8), IN(g, "u", 2, 8), 0, NULL).h,
           STK_ERR_SHAPE, "lstm: x is float32[4,5]; a batch of sequences is float [batch, time");
    g = graph();
    refuse(g, stk_g_lstm(g, IN(g, "x", 4, 5, 3), IN(g, "w", 3, 8), IN(g, "u", 2, 6), 0, NULL).h,
           STK_ERR_SHAPE, "recurrent weights u are float32[2,6]; they need [units, 4 * units]");
    g = graph();
    refuse(g, stk_g_gru(g, IN(g, "x", 4, 5, 3), IN(g, "w", 2, 6), IN(g, "u", 2, 6), 0, NULL).h,
           STK_ERR_SHAPE, "gru: w is float32[2,6], but x float32[4,5,3] with 2 units needs");
    g = graph();
    refuse(
        g,
        stk_g_gru(g, IN(g, "x", 4, 5, 3), IN(g, "w", 3, 6), IN(g, "u", 2, 6), IN(g, "b", 6), NULL)
            .h,
        STK_ERR_SHAPE, "needs float32[2,6]");
    g = graph();
    stk_rnn_options o = stk_rnn_options_defaults();
    o.mask = IN(g, "m", 4, 5);
    refuse(g,
           stk_g_gru_composed(g, IN(g, "x", 4, 5, 3), IN(g, "w", 3, 6), IN(g, "u", 2, 6), 0, &o).h,
           STK_ERR_DTYPE, "the mask is float32[4,5]");
    g = graph();
    o = stk_rnn_options_defaults();
    o.h0 = IN(g, "h", 5, 2);
    refuse(g, stk_g_lstm(g, IN(g, "x", 4, 5, 3), IN(g, "w", 3, 8), IN(g, "u", 2, 8), 0, &o).h,
           STK_ERR_SHAPE, "h0 is float32[5,2]");
    g = graph();
    refuse(g, stk_g_lstm(g, 77, 78, 79, 0, NULL).h, STK_ERR_ARGUMENT, "no value of this graph");
}

/* The general door: whatever attributes come, a status is given. */
TEST(attributes_are_checked)
{
    static const int64_t bad[][4] = {{0, 0, 0, 4}, {0, 0, 0, -1}, {0, 0, 0, 2}, {0, 0, 0, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        stk_graph *g = graph();
        stk_error err;
        stk_val in[6] = {IN(g, "x", 4, 5, 8), IN(g, "h", 4, 2), IN(g, "c", 4, 2),
                         IN(g, "b", 8),       IN(g, "u", 2, 8), IN(g, "p", 3, 2, 2)};
        CHECK_EQ_I64(stk_g_apply(g, STK_OP_LSTM, 6, in, &(stk_attrs){.ints = bad[i], .nints = 4}),
                     0);
        CHECK(stk_graph_status(g, &err) != STK_OK);
        stk_graph_release(g);
    }
    stk_graph *g = graph();
    stk_val x = IN(g, "x", 4, 5, 8);
    refuse(g, stk_g_apply(g, STK_OP_GRU_GRAD, 5, (stk_val[]){x, x, x, x, x}, NULL),
           STK_ERR_ARGUMENT, "needs the attributes");
}

TEST(second_gradients_point_to_the_composed_form)
{
    stk_graph *g = graph();
    stk_error err;
    stk_val x = IN(g, "x", 4, 5, 3), dx, ddx;
    stk_rnn_result y = stk_g_lstm(g, x, IN(g, "w", 3, 8), IN(g, "u", 2, 8), 0, NULL);
    stk_g_gradients(g, stk_g_sum_all(g, y.sequence), 1, &x, &dx);
    CHECK(dx != 0);
    stk_g_gradients(g, stk_g_sum_all(g, dx), 1, &x, &ddx);
    CHECK_EQ_I64(ddx, 0);
    CHECK_FAILS(stk_graph_status(g, &err), STK_ERR_UNSUPPORTED, "stk_g_lstm_composed");
    stk_graph_release(g);
}

static stk_status build_with(int64_t failing)
{
    stk_graph *g = graph();
    stk_error err;
    stk_val x = IN(g, "x", 2, 3, 2), w = IN(g, "w", 2, 8), u = IN(g, "u", 2, 8), d[3];
    stk_alloc_fail_at(failing, false);
    stk_rnn_result y = stk_g_lstm(g, x, w, u, 0, NULL);
    stk_rnn_result z = stk_g_lstm_composed(g, x, w, u, 0, NULL);
    if (y.h && z.h)
        stk_g_gradients(g, stk_g_sum_all(g, stk_g_add(g, y.h, z.h)), 3, (stk_val[]){x, w, u}, d);
    stk_alloc_fail_at(0, false);
    stk_status status = stk_graph_status(g, &err);
    stk_graph_release(g);
    return status;
}

TEST(memory_may_run_out)
{
    int64_t live = stk_alloc_live(), failing = 1;
    while (build_with(failing) == STK_ERR_MEMORY) failing++;
    CHECK(failing > 10);
    CHECK_EQ_I64(build_with(0), STK_OK);
    CHECK_EQ_I64(stk_alloc_live(), live);
}

TEST_MAIN()
