/* Elementwise nodes with more operands, numbers and results than one chain holds are cut into several: sums of many scalars
 * (norms of many gradients, penalties of many layers), many constants, many results. */
#include "check.h"

#include "stoker/graph.h"

enum { MANY = 100 };

typedef stk_val (*wide)(stk_graph *g, const stk_val *x);

/* ((x0 + x1) + x2) + ... */
static stk_val line(stk_graph *g, const stk_val *x)
{
    stk_val sum = x[0];
    for (int i = 1; i < MANY; i++) sum = stk_g_add(g, sum, x[i]);
    return sum;
}

/* Pairs, pairs of pairs, ... */
static stk_val tree(stk_graph *g, const stk_val *x)
{
    stk_val sum[MANY];
    int n = MANY;
    memcpy(sum, x, sizeof sum);
    while (n > 1) {
        for (int i = 0; i < n / 2; i++) sum[i] = stk_g_add(g, sum[2 * i], sum[2 * i + 1]);
        if (n % 2) sum[n / 2] = sum[n - 1];
        n = (n + 1) / 2;
    }
    return sum[0];
}

/* Another number for each term. */
static stk_val numbers(stk_graph *g, const stk_val *x)
{
    stk_val sum = x[0];
    for (int i = 1; i < MANY; i++)
        sum = stk_g_add(g, stk_g_mul(g, sum, stk_g_scalar(g, STK_F32, 1 - 0.001 * i)),
                        stk_g_scalar(g, STK_F32, 0.01 * i));
    return sum;
}

/* All partial sums are results. */
static stk_val results(stk_graph *g, const stk_val *x)
{
    stk_val sum = x[0];
    for (int i = 1; i < MANY; i++) {
        char name[16];
        sum = stk_g_add(g, sum, x[i % 3]);
        snprintf(name, sizeof name, "part%d", i);
        stk_g_output(g, name, sum);
    }
    return sum;
}

static double run(wide build, int64_t size, bool no_fuse)
{
    stk_error err;
    stk_graph *g = NULL;
    stk_program *p = NULL;
    stk_tensor *t = NULL;
    stk_val x[MANY];
    double sum = NAN;
    CHECK_OK(stk_graph_new(&g, &err));
    for (int i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        x[i] = stk_g_variable(g, name, STK_F32, 1, &size);
    }
    stk_g_output(g, "sum", build(g, x));
    stk_program_options options = stk_program_options_defaults();
    options.no_fuse = no_fuse;
    if (CHECK_OK(stk_program_new(g, &options, &p, &err))) {
        for (int i = 0; i < MANY; i++) {
            char name[16];
            snprintf(name, sizeof name, "x%d", i);
            CHECK_OK(stk_tensor_new(STK_F32, 1, &size, &t, &err));
            for (int64_t k = 0; k < size; k++) CHECK_OK(stk_tensor_set(t, k, i + 1, &err));
            stk_status status = stk_store_set(stk_program_store(p), name, t, &err);
            if (status != STK_ERR_ARGUMENT) CHECK(status == STK_OK); /* unused ones may be gone */
            stk_tensor_release(t);
            t = NULL;
        }
        CHECK_OK(stk_program_run(p, 1, &err));
        if (CHECK_OK(stk_program_read(p, "sum", &t, &err))) sum = stk_tensor_at(t, size - 1);
        stk_tensor_release(t);
    }
    stk_program_release(p);
    stk_graph_release(g);
    return sum;
}

TEST(what_one_chain_cannot_hold_becomes_several)
{
    static const wide all[] = {line, tree, numbers, results};
    static const int64_t sizes[] = {1, 777};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        for (int s = 0; s < 2; s++) {
            double fused = run(all[k], sizes[s], false), plain = run(all[k], sizes[s], true);
            CHECK(isfinite(fused) && fabs(fused) > 1);
            CHECK_NEAR(fused, plain, 1e-4 * fabs(plain));
        }
    CHECK_NEAR(run(line, 5, false), MANY * (MANY + 1) / 2, 1e-3);
}

TEST_MAIN()
