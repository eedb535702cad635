/* Einsum: against plain sums, what it refuses, and the table of cases. */
#include "graph/op_case.h"
#include "graph/values.h"

#define SHAPE(...)                                                                                 \
    (const int64_t[]) { __VA_ARGS__ }
#define NUM(...)                                                                                   \
    (const double[]) { __VA_ARGS__ }

/* ---- einsum: every equation against the plain sums ----------------------------------------------------------- */

/* Two operands of at most 3 axes each, labels a-f, by looping over all values of all labels. */
static void check_einsum(const char *equation, int64_t rank_a, const int64_t *a, int64_t rank_b,
                         const int64_t *b, const char *left, const char *right, const char *out,
                         stk_dtype dtype)
{
    int64_t size[6] = {1, 1, 1, 1, 1, 1}, count_a = 1, count_b = 1, count_y = 1;
    double x[64], z[64], want[256] = {0};
    for (int64_t i = 0; i < rank_a; i++) size[left[i] - 'a'] = a[i], count_a *= a[i];
    for (int64_t i = 0; i < rank_b; i++) size[right[i] - 'a'] = b[i], count_b *= b[i];
    for (const char *c = out; *c; c++) count_y *= size[*c - 'a'];
    for (int64_t i = 0; i < count_a; i++) x[i] = (double)(i * 7 % 5 - 2);
    for (int64_t i = 0; i < count_b; i++) z[i] = (double)(i * 3 % 7 - 3);
    for (int64_t k = 0; k < size[0] * size[1] * size[2] * size[3] * size[4] * size[5]; k++) {
        int64_t at[6], rest = k, i = 0, j = 0, y = 0;
        for (int d = 5; d >= 0; d--) at[d] = rest % size[d], rest /= size[d];
        for (int64_t d = 0; d < rank_a; d++) i = i * a[d] + at[left[d] - 'a'];
        for (int64_t d = 0; d < rank_b; d++) j = j * b[d] + at[right[d] - 'a'];
        for (const char *c = out; *c; c++) y = y * size[*c - 'a'] + at[*c - 'a'];
        want[y] += x[i] * (rank_b >= 0 ? z[j] : 1);
    }
    stk_graph *g = graph();
    stk_val in[] = {numbers(g, dtype, (int32_t)rank_a, a, x),
                    rank_b >= 0 ? numbers(g, dtype, (int32_t)rank_b, b, z) : 0};
    int before = check_failures;
    expect(g, stk_g_einsum(g, equation, rank_b >= 0 ? 2 : 1, in), dtype, count_y, want, 1e-5);
    CHECK_MSG(before == check_failures, "in einsum %s", equation);
}

TEST(einsum_of_one_operand)
{
    check_einsum("ab->ba", 2, SHAPE(2, 3), -1, NULL, "ab", "", "ba", STK_F32);
    check_einsum("ba", 2, SHAPE(2, 3), -1, NULL, "ba", "", "ab", STK_F32);
    check_einsum("ab->", 2, SHAPE(2, 3), -1, NULL, "ab", "", "", STK_F32);
    check_einsum("ab->b", 2, SHAPE(2, 3), -1, NULL, "ab", "", "b", STK_I32);
    check_einsum("aa->a", 2, SHAPE(3, 3), -1, NULL, "aa", "", "a", STK_F32);
    check_einsum("aa", 2, SHAPE(3, 3), -1, NULL, "aa", "", "", STK_F32);
    check_einsum("aba->b", 3, SHAPE(3, 2, 3), -1, NULL, "aba", "", "b", STK_F32);
    check_einsum("aaa->a", 3, SHAPE(3, 3, 3), -1, NULL, "aaa", "", "a", STK_F32);
    check_einsum(" a ... -> ... a", 3, SHAPE(2, 3, 4), -1, NULL, "abc", "", "bca", STK_F32);
}

TEST(einsum_of_two_operands)
{
    static const stk_dtype types[] = {STK_F32, STK_F64, STK_I32};
    for (int t = 0; t < 3; t++) {
        check_einsum("ab,bc->ac", 2, SHAPE(2, 3), 2, SHAPE(3, 4), "ab", "bc", "ac", types[t]);
        check_einsum("ab,bc->ca", 2, SHAPE(2, 3), 2, SHAPE(3, 4), "ab", "bc", "ca", types[t]);
        check_einsum("ab,cb", 2, SHAPE(2, 3), 2, SHAPE(4, 3), "ab", "cb", "ac", types[t]);
        check_einsum("ba,bc->ac", 2, SHAPE(3, 2), 2, SHAPE(3, 4), "ba", "bc", "ac", types[t]);
        check_einsum("abc,acd->abd", 3, SHAPE(2, 3, 4), 3, SHAPE(2, 4, 2), "abc", "acd", "abd",
                     types[t]);
        check_einsum("abc,dca->bd", 3, SHAPE(2, 3, 4), 3, SHAPE(2, 4, 2), "abc", "dca", "bd",
                     types[t]);
        check_einsum("abc,adc->adb", 3, SHAPE(2, 3, 4), 3, SHAPE(2, 2, 4), "abc", "adc", "adb",
                     types[t]);
        check_einsum("abc,cd->abd", 3, SHAPE(2, 3, 4), 2, SHAPE(4, 2), "abc", "cd", "abd",
                     types[t]);
        check_einsum("ab,ab->", 2, SHAPE(2, 3), 2, SHAPE(2, 3), "ab", "ab", "", types[t]);
        check_einsum("ab,ba->ab", 2, SHAPE(2, 3), 2, SHAPE(3, 2), "ab", "ba", "ab", types[t]);
        check_einsum("a,b->ab", 1, SHAPE(2), 1, SHAPE(3), "a", "b", "ab", types[t]);
        check_einsum("a,b->ba", 1, SHAPE(2), 1, SHAPE(3), "a", "b", "ba", types[t]);
        check_einsum("a,a", 1, SHAPE(4), 1, SHAPE(4), "a", "a", "", types[t]);
        check_einsum("ab,->ab", 2, SHAPE(2, 3), 0, NULL, "ab", "", "ab", types[t]);
        check_einsum("ab,cd->ac", 2, SHAPE(2, 3), 2, SHAPE(2, 4), "ab", "cd", "ac", types[t]);
        check_einsum("aab,bc->ac", 3, SHAPE(2, 2, 3), 2, SHAPE(3, 4), "aab", "bc", "ac", types[t]);
        check_einsum("a...b,b->...a", 3, SHAPE(2, 3, 4), 1, SHAPE(4), "acb", "b", "ca", types[t]);
        check_einsum("...b,b...->...", 2, SHAPE(2, 3), 2, SHAPE(3, 2), "ab", "ba", "a", types[t]);
    }
}

TEST(einsum_broadcasts_under_the_ellipsis_and_takes_many_operands)
{
    stk_graph *g = graph();
    stk_val x = numbers(g, STK_F32, 3, SHAPE(2, 1, 2), NUM(1, 2, 3, 4)),
            y = numbers(g, STK_F32, 2, SHAPE(3, 2), NUM(1, 0, 0, 1, 1, 1));
    expect(g, stk_g_einsum(g, "...a,...a->...", 2, (stk_val[]){x, y}), STK_F32, 6,
           NUM(1, 2, 3, 3, 4, 7), 1e-6);
    g = graph();
    x = numbers(g, STK_F32, 2, SHAPE(2, 2), NUM(1, 2, 3, 4));
    y = numbers(g, STK_F32, 1, SHAPE(2), NUM(1, 10));
    expect(g, stk_g_einsum(g, "a,ab,bc,c->", 4, (stk_val[]){y, x, x, y}), STK_F32, 1,
           NUM(7 + 100 + 150 + 2200), 1e-3);
}

TEST(einsum_points_into_the_equation)
{
    static const struct {
        const char *equation, *fragment;
    } bad[] = {
        {"ab,bc->aq", "\"ab,bc->a[q]\", character 9: 'q' is in no operand"},
        {"ab,bc->aa", "'a' stands twice"},
        {"abc,bc->a",
         "[a]bc,bc->a\", character 1: operand 0 is float32[2,3], but its term names 3 axes"},
        {"ab,cb->ac", "operand 1 is float32[3,4]: its axis 1, 'b', has size 4, but 'b' was 3"},
        {"ab->a", "1 terms for 2 operands"},
        {"ab,bc,c->a", "more than there are operands (2)"},
        {"ab,b1->a", "\"ab,b[1]->a\", character 5: axes are named by letters"},
        {"ab,bc-ac", "the arrow is '->'"},
        {"ab,b.c->a", "three dots"},
        {"......,bc->a", "one ellipsis"},
        {"...b,bc->c", "write ... in the result"},
        {"ab,bc->a,c", "the result is one term"},
        {"ab,bc->a->c", "the result is one term"},
        {"a...,...->...", "does not broadcast"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        stk_graph *g = graph();
        stk_val in[] = {stk_g_input(g, "x", STK_F32, 2, SHAPE(2, 3)),
                        stk_g_input(g, "y", STK_F32, 2, SHAPE(3, 4))};
        refuse(g, stk_g_einsum(g, bad[i].equation, 2, in), STK_ERR_ARGUMENT, bad[i].fragment);
    }
    stk_graph *g = graph();
    stk_val in[] = {stk_g_input(g, "x", STK_F32, 2, SHAPE(2, 3)),
                    stk_g_input(g, "y", STK_F64, 2, SHAPE(3, 4))};
    refuse(g, stk_g_einsum(g, "ab,bc", 2, in), STK_ERR_DTYPE, "operand 1 is float64[3,4]");
    g = graph();
    refuse(g, stk_g_einsum(g, NULL, 1, in), STK_ERR_ARGUMENT, "NULL");
    g = graph();
    refuse(g, stk_g_einsum(g, "a", 0, in), STK_ERR_ARGUMENT, "0 operands");
}

static stk_status build_one(void)
{
    stk_graph *g = NULL;
    stk_error err;
    stk_status status = stk_graph_new(&g, &err);
    if (status != STK_OK) return status;
    stk_val x = stk_g_input(g, "x", STK_F32, 3, SHAPE(4, 4, 4)),
            y = stk_g_input(g, "y", STK_F32, 2, SHAPE(4, 3));
    stk_g_einsum(g, "aab,bc->ca", 2, (stk_val[]){x, y});
    status = stk_graph_status(g, &err);
    stk_graph_release(g);
    return status;
}

TEST(memory_may_end_anywhere) { OOM_LOOP(build_one()); }

/* ---- cases ------------------------------------------------------------------------------------------------------- */

#define BUILD(name, expression)                                                                    \
    static stk_val name(stk_graph *g, const stk_val *in, stk_dtype real)                           \
    {                                                                                              \
        (void)real;                                                                                \
        return (expression);                                                                       \
    }
BUILD(einsum_matmul, stk_g_einsum(g, "ij,jk->ik", 2, in))
BUILD(einsum_scores, stk_g_einsum(g, "bqhd,bkhd->bhqk", 2, in))
BUILD(einsum_bilinear, stk_g_einsum(g, "bi,ijk,bj->bk", 3, in))
BUILD(einsum_trace, stk_g_einsum(g, "...ii->...", 1, in))
BUILD(einsum_elementwise, stk_g_einsum(g, "ab,ba->ba", 2, in))

#define REAL(rank, ...)                                                                            \
    {                                                                                              \
        STK_F32, rank, {__VA_ARGS__}, -1, 1                                                        \
    }

static const op_case cases[] = {
    {.name = "einsum matmul",
     .build = einsum_matmul,
     .nin = 2,
     .in = {REAL(2, 3, 5), REAL(2, 5, 4)},
     .grad2 = 1},
    {.name = "einsum scores",
     .build = einsum_scores,
     .nin = 2,
     .in = {REAL(4, 2, 3, 2, 5), REAL(4, 2, 4, 2, 5)}},
    {.name = "einsum bilinear",
     .build = einsum_bilinear,
     .nin = 3,
     .in = {REAL(2, 3, 4), REAL(3, 4, 5, 2), REAL(2, 3, 5)}},
    {.name = "einsum trace", .build = einsum_trace, .nin = 1, .in = {REAL(4, 2, 3, 4, 4)}},
    {.name = "einsum elementwise",
     .build = einsum_elementwise,
     .nin = 2,
     .in = {REAL(2, 3, 4), REAL(2, 4, 3)}},
};

OP_CASE_MAIN(cases)
