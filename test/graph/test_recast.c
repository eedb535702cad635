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

/* Rows picked from a table that was rounded (an embedding under a mixed precision), and the table's gradient. */
static stk_program *lookup(int64_t picked, bool whole)
{
    enum { ROWS = 50, COLUMNS = 6 };
    stk_graph *g = NULL;
    stk_error err;
    stk_program *p = NULL;
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val w = stk_g_input(g, "w", STK_F32, 2, (int64_t[]){ROWS, COLUMNS}), dw = 0;
    stk_val i = stk_g_input(g, "i", STK_I32, 1, &picked), table = stk_g_cast(g, w, STK_BF16);
    stk_val rows = stk_g_gather(g, table, i, 0);
    stk_g_gradients(g, stk_g_sum_all(g, stk_g_cast(g, rows, STK_F32)), 1, &w, &dw);
    stk_g_output(g, "rows", rows);
    stk_g_output(g, "dw", dw);
    if (whole) stk_g_output(g, "table", table);
    CHECK_OK(stk_program_new(g, NULL, &p, &err));
    stk_graph_release(g);
    return p;
}

static stk_dtype dtype_gathered(const stk_program *p)
{
    for (int64_t k = 0; k < p->plan.ntasks; k++)
        if (p->plan.tasks[k].kernel == STK_K_GATHER)
            return (stk_dtype)((const stk_gather_params *)p->plan.tasks[k].params)->dtype;
    return STK_DTYPE_COUNT;
}

TEST(few_rows_of_a_table_are_rounded_alone)
{
    stk_error err;
    stk_program *p = lookup(3, false), *many = lookup(60, false), *whole = lookup(3, true);
    stk_tensor *w = NULL, *i = NULL, *rows = NULL, *dw = NULL;
    CHECK_EQ_I64(dtype_gathered(p), STK_F32);
    if (stk_program_device(p)->caps.complete) { /* else half types may be widened before */
        CHECK_EQ_I64(dtype_gathered(many), STK_BF16);
        CHECK_EQ_I64(dtype_gathered(whole), STK_BF16);
    }
    CHECK_OK(stk_tensor_new(STK_F32, 2, (int64_t[]){50, 6}, &w, &err));
    CHECK_OK(stk_tensor_new(STK_I32, 1, (int64_t[]){3}, &i, &err));
    for (int k = 0; k < 300; k++) ((float *)w->data)[k] = (float)k + 0.003f;
    memcpy(i->data, (int32_t[]){7, 49, 7}, 3 * sizeof(int32_t));
    CHECK_OK(stk_program_feed(p, "w", w, &err));
    CHECK_OK(stk_program_feed(p, "i", i, &err));
    CHECK_OK(stk_program_run(p, 1, &err));
    CHECK_OK(stk_program_read(p, "rows", &rows, &err));
    CHECK_OK(stk_program_read(p, "dw", &dw, &err));
    for (int k = 0; k < 6; k++) {
        const double first = 42 + k, last = 294 + k + k % 2;
        CHECK_NEAR(stk_tensor_at(rows, k), first, 0);
        CHECK_NEAR(stk_tensor_at(rows, 6 + k), last, 0);
        CHECK_NEAR(stk_tensor_at(rows, 12 + k), first, 0);
        CHECK_NEAR(stk_tensor_at(dw, 42 + k), 2, 0);
        CHECK_NEAR(stk_tensor_at(dw, 294 + k), 1, 0);
        CHECK_NEAR(stk_tensor_at(dw, k), 0, 0);
    }
    if (stk_program_device(p)->caps.shares_memory) {
        ((int32_t *)i->data)[1] = 50;
        CHECK_OK(stk_program_feed(p, "i", i, &err));
        CHECK_FAILS(stk_program_run(p, 1, &err), STK_ERR_RANGE,
                    "gather: indices[1] = 50 is not in [0, 50)");
    }
    stk_tensor_release(w), stk_tensor_release(i);
    stk_tensor_release(rows), stk_tensor_release(dw);
    stk_program_release(p), stk_program_release(many), stk_program_release(whole);
}

TEST_MAIN()
