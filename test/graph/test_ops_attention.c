/* Attention as one operation: against its reference, against products and softmax, by differences, at its edges. */
#include "op_case.h"

#include "stoker/nn.h"

#define STEPS(b, t, h, d)                                                                          \
    {                                                                                              \
        STK_F32, 4, {b, t, h, d}, -2, 2                                                            \
    }
#define SEEN(b, h, t, s)                                                                           \
    {                                                                                              \
        STK_BOOL, 4, {b, h, t, s}, 0, 1                                                            \
    }

static stk_val build_plain(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    return stk_g_attention(g, in[0], in[1], in[2], NULL);
}
static stk_val build_causal(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    return stk_g_attention(g, in[0], in[1], in[2],
                           &(stk_attention_options){.causal = true, .scale = 0.3});
}
static stk_val build_masked(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    return stk_g_attention(g, in[0], in[1], in[2], &(stk_attention_options){.mask = in[3]});
}
static stk_val build_both(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    return stk_g_attention(g, in[0], in[1], in[2],
                           &(stk_attention_options){.mask = in[3], .causal = true, .scale = -0.5});
}

#define CASE(text, how, twice, ...)                                                                \
    {                                                                                              \
        .name = text, .build = build_##how, .nin = 3, .in = {__VA_ARGS__}, .tol = 2e-5,            \
        .grad2 = twice                                                                             \
    }
#define MASKED(text, how, twice, ...)                                                              \
    {                                                                                              \
        .name = text, .build = build_##how, .nin = 4, .in = {__VA_ARGS__}, .tol = 2e-5,            \
        .grad2 = twice                                                                             \
    }

static const op_case cases[] = {
    CASE("one of all", plain, 1, STEPS(1, 1, 1, 1), STEPS(1, 1, 1, 1), STEPS(1, 1, 1, 1)),
    CASE("one query", plain, 0, STEPS(2, 1, 3, 8), STEPS(2, 19, 3, 8), STEPS(2, 19, 3, 8)),
    CASE("one key", plain, 0, STEPS(2, 5, 2, 4), STEPS(2, 1, 2, 4), STEPS(2, 1, 2, 3)),
    CASE("odd sizes", plain, 1, STEPS(2, 5, 3, 7), STEPS(2, 3, 3, 7), STEPS(2, 3, 3, 5)),
    CASE("a register of queries", plain, 0, STEPS(1, 16, 2, 16), STEPS(1, 17, 2, 16),
         STEPS(1, 17, 2, 16)),
    CASE("one query more", plain, 0, STEPS(1, 65, 2, 9), STEPS(1, 33, 2, 9), STEPS(1, 33, 2, 17)),
    CASE("shared heads", plain, 1, STEPS(2, 6, 4, 3), STEPS(2, 5, 2, 3), STEPS(2, 5, 2, 4)),
    CASE("causal", causal, 1, STEPS(2, 6, 2, 3), STEPS(2, 6, 2, 3), STEPS(2, 6, 2, 3)),
    CASE("causal, more keys", causal, 0, STEPS(1, 4, 1, 4), STEPS(1, 40, 1, 4), STEPS(1, 40, 1, 4)),
    CASE("causal, fewer keys", causal, 0, STEPS(1, 90, 1, 4), STEPS(1, 7, 1, 4), STEPS(1, 7, 1, 4)),
    MASKED("mask", masked, 1, STEPS(2, 5, 2, 3), STEPS(2, 4, 2, 3), STEPS(2, 4, 2, 3),
           SEEN(2, 2, 5, 4)),
    MASKED("mask of keys", masked, 0, STEPS(3, 20, 2, 4), STEPS(3, 9, 2, 4), STEPS(3, 9, 2, 4),
           SEEN(3, 1, 1, 9)),
    MASKED("mask of queries", masked, 0, STEPS(3, 20, 2, 4), STEPS(3, 9, 2, 4), STEPS(3, 9, 2, 4),
           SEEN(3, 1, 20, 1)),
    MASKED("mask of heads", masked, 0, STEPS(2, 6, 3, 4), STEPS(2, 5, 3, 4), STEPS(2, 5, 3, 4),
           SEEN(1, 3, 6, 5)),
    MASKED("mask and causal", both, 1, STEPS(2, 7, 2, 3), STEPS(2, 7, 2, 3), STEPS(2, 7, 2, 3),
           SEEN(2, 1, 7, 7)),
    {.name = "nothing is seen",
     .build = build_masked,
     .nin = 4,
     .in = {STEPS(2, 5, 2, 3), STEPS(2, 4, 2, 3), STEPS(2, 4, 2, 3), {STK_BOOL, 2, {5, 4}, 0, 0}},
     .tol = 2e-5},
};
OP_CASE_TEST(by_table, cases)

/* Several blocks, enough images, smaller blocks for many keys: against the reference alone, differences would take too long. */
static const op_case large[] = {
    CASE("images enough", plain, 0, STEPS(17, 20, 2, 8), STEPS(17, 24, 2, 8), STEPS(17, 24, 2, 8)),
    CASE("causal, blocks", causal, 0, STEPS(1, 130, 2, 5), STEPS(1, 130, 2, 5),
         STEPS(1, 130, 2, 5)),
    CASE("causal, shared", causal, 0, STEPS(17, 18, 4, 4), STEPS(17, 18, 2, 4),
         STEPS(17, 18, 2, 4)),
    MASKED("mask, images enough", both, 0, STEPS(18, 34, 1, 4), STEPS(18, 34, 1, 4),
           STEPS(18, 34, 1, 4), SEEN(18, 1, 34, 34)),
    CASE("many keys", plain, 0, STEPS(1, 40, 1, 3), STEPS(1, 1100, 1, 3), STEPS(1, 1100, 1, 2)),
};
TEST(larger)
{
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        op_test_values(&large[i], STK_F32);
        op_test_fast_gradients(&large[i]);
    }
}

/* ---- the same by products and softmax ---------------------------------------------------------------------------------- */

static stk_val by_products(stk_graph *g, const stk_val *in, stk_dtype real)
{
    const int32_t perm[] = {0, 2, 1, 3};
    stk_val q = stk_g_transpose(g, in[0], perm), k = stk_g_transpose(g, in[1], perm);
    q = stk_g_mul(g, q, stk_g_scalar(g, real, 1 / sqrt((double)stk_g_dim(g, in[0], 3))));
    stk_val scores = stk_g_matmul_t(g, q, k, false, true);
    scores = stk_g_select(g, in[3], scores, stk_g_scalar(g, real, -1e9));
    stk_val v = stk_g_transpose(g, in[2], perm);
    return stk_g_transpose(g, stk_g_matmul(g, stk_g_softmax(g, scores, -1), v), perm);
}

static void compare_ways(const op_case *one, const op_case *other, stk_dtype real, double tol)
{
    stk_tensor *x[8];
    stk_error err;
    const op_case *both[] = {one, other};
    stk_program *p[2];
    op_make_inputs(one, real, x);
    for (int k = 0; k < 2; k++) {
        stk_graph *g = op_graph(both[k], real, OP_GRAD);
        p[k] = op_compile(both[k], g, (op_run_options){.threads = 2});
        if (p[k]) {
            op_feed(one, p[k], x);
            CHECK_OK(stk_program_run(p[k], 1, &err));
        }
        stk_graph_release(g);
    }
    for (int i = 0; i < 4 && p[0] && p[1]; i++) {
        const char *names[] = {"loss", "d0", "d1", "d2"};
        stk_tensor *a = op_read(p[0], names[i]), *b = op_read(p[1], names[i]);
        op_compare(one, names[i], a, b, tol);
        stk_tensor_release(a);
        stk_tensor_release(b);
    }
    for (int k = 0; k < 2; k++) stk_program_release(p[k]);
    for (int i = 0; i < 4; i++) stk_tensor_release(x[i]);
}

TEST(as_products_and_softmax)
{
    op_case fused = MASKED("by products", masked, 0, STEPS(3, 37, 2, 8), STEPS(3, 21, 2, 8),
                           STEPS(3, 21, 2, 8), SEEN(3, 1, 37, 21));
    op_case plain = fused;
    plain.build = by_products;
    compare_ways(&fused, &plain, STK_F32, 5e-5);
    fused.in[3].lo = fused.in[3].hi = 0; /* no query sees a key: the mean of all values */
    compare_ways(&fused, &plain, STK_F32, 5e-5);
}

/* ---- threads ----------------------------------------------------------------------------------------------------------------- */

TEST(same_bits_for_any_threads)
{
    const op_case c =
        CASE("threads", causal, 0, STEPS(19, 70, 4, 8), STEPS(19, 70, 2, 8), STEPS(19, 70, 2, 8));
    const int32_t threads[] = {1, 2, 4, 16};
    stk_tensor *x[8], *first[3] = {0};
    stk_error err;
    op_make_inputs(&c, STK_F32, x);
    stk_graph *g = op_graph(&c, STK_F32, OP_GRAD);
    for (int k = 0; k < 4; k++) {
        stk_program *p =
            op_compile(&c, g, (op_run_options){.threads = threads[k], .deterministic = true});
        REQUIRE(p);
        op_feed(&c, p, x);
        CHECK_OK(stk_program_run(p, 1, &err));
        for (int i = 0; i < 3; i++) {
            stk_tensor *d = op_read(p, (const char *[]){"d0", "d1", "d2"}[i]);
            if (k)
                op_same_bits(&c, "more threads", d, first[i]);
            else
                first[i] = stk_tensor_retain(d);
            stk_tensor_release(d);
        }
        stk_program_release(p);
    }
    for (int i = 0; i < 3; i++) {
        stk_tensor_release(first[i]);
        stk_tensor_release(x[i]);
    }
    stk_graph_release(g);
}

/* ---- refusals ----------------------------------------------------------------------------------------------------------------- */

static void refused(const char *part, int64_t keys, int64_t heads, int64_t depth, stk_dtype dtype,
                    bool bad_mask)
{
    stk_graph *g = NULL;
    stk_error err = {0};
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val q = stk_g_input(g, "q", STK_F32, 4, (int64_t[]){2, 5, 4, 3});
    stk_val k = stk_g_input(g, "k", dtype, 4, (int64_t[]){2, keys, heads, depth});
    stk_val m = stk_g_input(g, "m", STK_BOOL, 2, (int64_t[]){5, 9});
    stk_attention_options o = {.mask = bad_mask ? m : 0};
    CHECK(!stk_g_attention(g, q, k, k, &o));
    CHECK(stk_graph_status(g, &err) != STK_OK);
    CHECK_MSG(strstr(err.message, part), "'%s' is not in '%s'", part, err.message);
    stk_graph_release(g);
}

TEST(refusals)
{
    refused("one float dtype", 6, 4, 3, STK_F64, false);
    refused("4 heads of queries for 3 of keys", 6, 3, 3, STK_F32, false);
    refused("query and key one size", 6, 4, 2, STK_F32, false);
    refused("at least one key", 0, 4, 3, STK_F32, false);
    refused("the mask must be bool [2, 4, 6, 5]", 6, 4, 3, STK_F32, true);
}

TEST_MAIN()
