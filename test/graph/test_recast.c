/* Half values that are widened for several readers: each chain widens what it reads (passes/recast.c, plan/fuse.c). */
#include "check.h"

#include "graph/run/program.h"
#include "stoker/nn.h"

/* x - mean(x) over half values: the sum is stored once, as a half, and the difference reads that. */
TEST(half_values_are_widened_where_they_are_read)
{
    enum { ROWS = 64, COLUMNS = 48 };
    stk_graph *g = NULL;
    stk_error err;
    const int64_t shape[] = {ROWS, COLUMNS};
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val a = stk_g_input(g, "a", STK_BF16, 2, shape);
    stk_val x = stk_g_exp(g, stk_g_matmul(g, a, stk_g_transpose(g, a, (int32_t[]){1, 0})));
    stk_val wide = stk_g_cast(g, x, STK_F32);
    stk_val mean = stk_g_mean(g, wide, 1, (int32_t[]){0}, true);
    stk_g_output(g, "y", stk_g_cast(g, stk_g_sub(g, wide, mean), STK_BF16));
    stk_program *p = NULL;
    CHECK_OK(stk_program_new(g, NULL, &p, &err));
    int halves_read = 0;
    for (int64_t k = 0; k < p->plan.ntasks; k++) {
        const stk_task *t = &p->plan.tasks[k];
        if (t->kernel != STK_K_CHAIN || t->count != ROWS * ROWS) continue;
        const stk_chain *c = t->params;
        for (int32_t i = 0; i < c->inputs; i++)
            halves_read +=
                c->input[i].dtype == STK_BF16 && c->ops > 1 && c->op[0].code == STK_EW_SUB;
    }
    CHECK_EQ_I64(halves_read, 1);
    stk_program_release(p);
    stk_graph_release(g);
}

/* A norm over what was computed as float32 and rounded: statistics and chain read the rounded value, and float32 is stored nowhere. */
TEST(statistics_and_chains_read_the_same_numbers)
{
    enum { ROWS = 512, COLUMNS = 32 };
    stk_graph *g = NULL;
    stk_error err;
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val a = stk_g_input(g, "a", STK_F32, 2, (int64_t[]){ROWS, COLUMNS});
    stk_val half = stk_g_cast(g, a, STK_BF16), variance;
    stk_val wide = stk_g_cast(g, half, STK_F32);
    stk_val mean = stk_g_moments(g, wide, &variance);
    stk_g_output(g, "y", stk_g_cast(g, stk_g_sub(g, wide, mean), STK_BF16));
    stk_g_output(g, "mean", mean);
    stk_program *p = NULL;
    CHECK_OK(stk_program_new(g, NULL, &p, &err));
    for (int64_t k = 0; k < p->plan.ntasks; k++) {
        const stk_task *t = &p->plan.tasks[k];
        if (t->kernel != STK_K_CHAIN || t->count != ROWS * COLUMNS) continue;
        const stk_chain *c = t->params;
        for (int32_t o = 0; o < c->outputs; o++) CHECK_EQ_I64(c->output[o].dtype, STK_BF16);
    }
    stk_tensor *x = NULL, *got = NULL;
    CHECK_OK(stk_tensor_new(STK_F32, 2, (int64_t[]){ROWS, COLUMNS}, &x, &err));
    for (int i = 0; i < ROWS * COLUMNS; i++) ((float *)x->data)[i] = 1.003f; /* 1 when rounded */
    CHECK_OK(stk_program_feed(p, "a", x, &err));
    CHECK_OK(stk_program_run(p, 1, &err));
    CHECK_OK(stk_program_read(p, "mean", &got, &err));
    CHECK_NEAR(stk_tensor_at(got, 0), 1, 0);
    stk_tensor_release(x);
    stk_tensor_release(got);
    stk_program_release(p);
    stk_graph_release(g);
}

TEST_MAIN()
