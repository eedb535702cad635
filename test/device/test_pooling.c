/* Pooling kernels against the reference: windows at the edges, overlapping, with gaps, ties, NaN, every cut. */
#include "problem.h"

static const stk_kernel kernels[] = {STK_K_MAX_POOL, STK_K_MAX_POOL_GRAD, STK_K_MAX_POOL_PICK,
                                     STK_K_AVG_POOL, STK_K_AVG_POOL_GRAD};
enum { KERNELS = sizeof kernels / sizeof kernels[0] };

typedef struct pool_case {
    const char *name;
    int64_t n, c, in[3], window[3], stride[3], low[3], high[3];
} pool_case;

/* clang-format off */
static const pool_case cases[] = {
    {"2x2", 3, 32, {1, 6, 8}, {1, 2, 2}, {1, 2, 2}, {0}, {0}},
    {"2x2 rest left over", 2, 16, {1, 7, 9}, {1, 2, 2}, {1, 2, 2}, {0}, {0}},
    {"2x2 same", 2, 5, {1, 7, 9}, {1, 2, 2}, {1, 2, 2}, {0}, {0, 1, 1}},
    {"3x3 overlapping", 2, 8, {1, 9, 8}, {1, 3, 3}, {1, 2, 2}, {0}, {0}},
    {"3x3 same", 2, 13, {1, 6, 7}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}},
    {"gaps", 2, 8, {1, 9, 11}, {1, 2, 2}, {1, 3, 4}, {0}, {0}},
    {"large window", 2, 9, {1, 10, 10}, {1, 5, 5}, {1, 5, 5}, {0}, {0}},
    {"large overlapping", 1, 9, {1, 10, 11}, {1, 5, 4}, {1, 2, 3}, {0, 2, 1}, {0, 2, 1}},
    {"five taps", 2, 8, {1, 1, 15}, {1, 1, 5}, {1, 1, 5}, {0}, {0}},
    {"seven taps", 2, 3, {1, 1, 20}, {1, 1, 7}, {1, 1, 3}, {0, 0, 2}, {0}},
    {"1-d", 4, 7, {1, 1, 13}, {1, 1, 2}, {1, 1, 2}, {0}, {0, 0, 1}},
    {"3-d", 2, 4, {4, 5, 6}, {2, 2, 2}, {2, 2, 2}, {0}, {0, 1, 0}},
    {"3-d 3x3x3", 1, 4, {5, 5, 5}, {3, 3, 3}, {1, 2, 2}, {1, 1, 1}, {1, 1, 1}},
    {"whole image", 2, 6, {1, 3, 3}, {1, 3, 3}, {1, 1, 1}, {0}, {0}},
    {"one", 1, 1, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0}, {0}},
    {"empty batch", 0, 4, {1, 4, 4}, {1, 2, 2}, {1, 2, 2}, {0}, {0}},
};
/* clang-format on */
enum { CASES = sizeof cases / sizeof cases[0] };

static stk_pool_params problem(const pool_case *k)
{
    stk_pool_params p = {.n = k->n, .c = k->c, .dtype = STK_F32};
    for (int i = 0; i < 3; i++) {
        p.in[i] = k->in[i];
        p.window[i] = k->window[i];
        p.stride[i] = k->stride[i];
        p.low[i] = k->low[i];
        p.out[i] = (k->in[i] + k->low[i] + k->high[i] - k->window[i]) / k->stride[i] + 1;
    }
    return p;
}

/* Elements of the arrays of a kernel id, output last; how many arrays. */
static int sizes(const stk_pool_params *p, stk_kernel kernel, int64_t out[3])
{
    int64_t x = p->n * p->in[0] * p->in[1] * p->in[2] * p->c;
    int64_t y = p->n * p->out[0] * p->out[1] * p->out[2] * p->c;
    bool back = kernel == STK_K_MAX_POOL_GRAD || kernel == STK_K_AVG_POOL_GRAD;
    bool three = kernel == STK_K_MAX_POOL_GRAD || kernel == STK_K_MAX_POOL_PICK;
    out[0] = kernel == STK_K_AVG_POOL_GRAD ? y : x;
    out[1] = kernel == STK_K_MAX_POOL_GRAD ? y : kernel == STK_K_MAX_POOL_PICK ? x : back ? x : y;
    out[2] = back ? x : y;
    return three ? 3 : 2;
}

static float *run_once(stk_kernel kernel, const char *name, const stk_pool_params *p, float *a,
                       float *b, int64_t n, int32_t parts)
{
    int64_t all[3];
    float *out = stk_malloc((size_t)n * sizeof *out);
    memset(out, 0xff, (size_t)n * sizeof *out);
    void *three[] = {a, b, out}, *two[] = {a, out};
    int arrays = sizes(p, kernel, all);
    run_problem(kernel, name, p, arrays == 3 ? three : two, arrays, parts, parts % 2 == 0);
    return out;
}

/* Few different values, so that most windows have ties, and now and then a NaN. */
static void fill_ties(float *x, int64_t n, bool nan)
{
    uint32_t seed = 11;
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 28 & 3) - 1;
        if (nan && (seed >> 20 & 15) == 0) x[i] = NAN;
    }
}

static void compare(const pool_case *k, stk_kernel kernel, int inputs)
{
    stk_pool_params p = problem(k);
    int64_t n[3];
    sizes(&p, kernel, n);
    float *a = stk_malloc((size_t)n[0] * sizeof *a), *b = stk_malloc((size_t)n[1] * sizeof *b);
    fill_uniform(b, n[1], 5);
    if (inputs == 0)
        fill_uniform(a, n[0], 6);
    else
        fill_ties(a, n[0], inputs == 2);
    float *expected = run_once(kernel, "ref", &p, a, b, n[2], 1), *first = NULL;
    for (int32_t parts = 1; parts <= (k->n ? k->n : 1); parts++) {
        float *got = run_once(kernel, "vec", &p, a, b, n[2], parts);
        if (!CHECK_NEAR_F32(got, expected, n[2], 1e-6, 1e-6))
            printf("    case '%s', %s, inputs %d\n", k->name, stk_kernel_name(kernel), inputs);
        if (first)
            CHECK(!memcmp(first, got, (size_t)n[2] * sizeof *got));
        else
            first = got;
        if (first != got) stk_free(got);
    }
    stk_free(first);
    stk_free(expected);
    stk_free(a);
    stk_free(b);
}

TEST(kernels_agree_with_ref)
{
    EACH_ISA
    for (int i = 0; i < KERNELS; i++)
        for (int k = 0; k < CASES; k++)
            for (int inputs = 0; inputs < 3; inputs++) compare(&cases[k], kernels[i], inputs);
}

TEST(padding_is_no_maximum_and_not_counted)
{
    stk_pool_params p = {.n = 1,
                         .c = 1,
                         .in = {1, 1, 2},
                         .out = {1, 1, 2},
                         .window = {1, 1, 2},
                         .stride = {1, 1, 1},
                         .dtype = STK_F32};
    float x[2] = {-4, -2}, y[2];
    run_problem(STK_K_MAX_POOL, "vec", &p, (void *[]){x, y}, 2, 1, false);
    CHECK_NEAR(y[0], -2, 0);
    CHECK_NEAR(y[1], -2, 0);
    run_problem(STK_K_AVG_POOL, "vec", &p, (void *[]){x, y}, 2, 1, false);
    CHECK_NEAR(y[0], -3, 0);
    CHECK_NEAR(y[1], -2, 0);
}

TEST(ties_go_to_the_first)
{
    stk_pool_params p = {.n = 1,
                         .c = 1,
                         .in = {1, 2, 2},
                         .out = {1, 1, 1},
                         .window = {1, 2, 2},
                         .stride = {1, 2, 2},
                         .dtype = STK_F32};
    float x[4] = {1, 7, 7, 7}, dy[1] = {3}, dx[4], expected[4] = {0, 3, 0, 0};
    run_problem(STK_K_MAX_POOL_GRAD, "vec", &p, (void *[]){x, dy, dx}, 3, 1, false);
    CHECK_NEAR_F32(dx, expected, 4, 0, 0);
}

TEST_MAIN()
