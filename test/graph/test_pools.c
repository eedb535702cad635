/* Maxima of what was computed as float32 are taken before it is rounded (passes/pools.c). */
#include "check.h"

#include "device/kernels_conv.h"
#include "graph/run/program.h"
#include "stoker/nn.h"

enum { SIDE = 6, CHANNELS = 5, COUNT = SIDE * SIDE * CHANNELS };

/* x float32 -> rounded -> pooled, with the gradient of the sum of y * w; `twice`: somebody else reads what was rounded. */
static stk_graph *pooled(bool twice, int64_t window, int64_t stride)
{
    stk_graph *g = NULL;
    stk_error err;
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val x = stk_g_input(g, "x", STK_F32, 4, (int64_t[]){1, SIDE, SIDE, CHANNELS});
    stk_val half = stk_g_cast(g, x, STK_BF16), dx = 0;
    stk_pool_options o = stk_pool_options_defaults();
    for (int i = 0; i < 3; i++) o.window[i] = window, o.stride[i] = stride;
    stk_val y = stk_g_max_pool(g, half, &o);
    stk_val loss = stk_g_sum(g, stk_g_cast(g, y, STK_F32), 0, NULL, false);
    stk_g_gradients(g, loss, 1, &x, &dx);
    stk_g_output(g, "y", y);
    stk_g_output(g, "dx", dx);
    if (twice) stk_g_output(g, "half", half);
    return g;
}

static int64_t dtype_of_kernel(const stk_program *p, int32_t kernel)
{
    for (int64_t k = 0; k < p->plan.ntasks; k++)
        if (p->plan.tasks[k].kernel == kernel)
            return ((const stk_pool_params *)p->plan.tasks[k].params)->dtype;
    return -1;
}

static void run(stk_program *p, const float *values, stk_tensor **y, stk_tensor **dx)
{
    stk_error err;
    stk_tensor *x = NULL;
    CHECK_OK(stk_tensor_new(STK_F32, 4, (int64_t[]){1, SIDE, SIDE, CHANNELS}, &x, &err));
    memcpy(x->data, values, COUNT * sizeof *values);
    CHECK_OK(stk_program_feed(p, "x", x, &err));
    CHECK_OK(stk_program_run(p, 1, &err));
    CHECK_OK(stk_program_read(p, "y", y, &err));
    CHECK_OK(stk_program_read(p, "dx", dx, &err));
    stk_tensor_release(x);
}

/* Against a program in which the rounded values are read twice, so that they are pooled after rounding. */
static void compare(const float *values, int64_t window, int64_t stride, bool ties)
{
    stk_program *p[2] = {NULL, NULL};
    stk_tensor *y[2] = {NULL, NULL}, *dx[2] = {NULL, NULL};
    stk_error err;
    for (int i = 0; i < 2; i++) {
        stk_graph *g = pooled(i == 1, window, stride);
        if (!CHECK_OK(stk_program_new(g, NULL, &p[i], &err))) return;
        stk_graph_release(g);
        CHECK_EQ_I64(dtype_of_kernel(p[i], STK_K_MAX_POOL), i ? STK_BF16 : STK_F32);
        if (!i) CHECK_EQ_I64(dtype_of_kernel(p[i], STK_K_MAX_POOL_GRAD), STK_F32);
        run(p[i], values, &y[i], &dx[i]);
    }
    CHECK_EQ_I64(y[0]->dtype, STK_BF16);
    double sums[2] = {0};
    for (int64_t i = 0; i < stk_tensor_count(y[0]); i++)
        CHECK_NEAR(stk_tensor_at(y[0], i), stk_tensor_at(y[1], i), 0);
    for (int64_t i = 0; i < COUNT; i++) {
        if (!ties) CHECK_NEAR(stk_tensor_at(dx[0], i), stk_tensor_at(dx[1], i), 0);
        for (int k = 0; k < 2; k++) sums[k] += stk_tensor_at(dx[k], i);
    }
    CHECK_NEAR(sums[0], sums[1], 0);
    for (int i = 0; i < 2; i++) {
        stk_tensor_release(y[i]);
        stk_tensor_release(dx[i]);
        stk_program_release(p[i]);
    }
}

TEST(the_numbers_are_those_of_rounded_values)
{
    float values[COUNT];
    for (int i = 0; i < COUNT; i++) values[i] = (float)((i * 37) % COUNT) - COUNT / 2; /* exact */
    compare(values, 2, 2, false);
    compare(values, 3, 1, false);
    for (int i = 0; i < COUNT; i++) values[i] = 1 + 1e-3f * (float)((i * 37) % COUNT); /* rounded */
    compare(values, 2, 2, true);
}

TEST(the_largest_of_what_rounds_to_the_maximum_has_the_gradient)
{
    float values[COUNT] = {0};
    stk_error err;
    stk_tensor *y = NULL, *dx = NULL;
    stk_program *p = NULL;
    stk_graph *g = pooled(false, 2, 2);
    values[0] = 1.001f;                     /* both are 1 as bfloat16 */
    values[(SIDE + 1) * CHANNELS] = 1.002f; /* row 1, column 1 */
    if (!CHECK_OK(stk_program_new(g, NULL, &p, &err))) return;
    run(p, values, &y, &dx);
    CHECK_NEAR(stk_tensor_at(y, 0), 1, 0);
    CHECK_NEAR(stk_tensor_at(dx, 0), 0, 0);
    CHECK_NEAR(stk_tensor_at(dx, (SIDE + 1) * CHANNELS), 1, 0);
    stk_tensor_release(y);
    stk_tensor_release(dx);
    stk_program_release(p);
    stk_graph_release(g);
}

/* Means of rows that were gathered and rounded, and the gradient of the table: nothing of the size of all rows is cast. */
TEST(sums_are_taken_before_rounding)
{
    enum { WORDS = 40, WIDTH = 8, BATCH = 6, LENGTH = 5 };
    stk_graph *g = NULL;
    stk_error err;
    stk_program *p = NULL;
    stk_tensor *w = NULL, *i = NULL, *y = NULL, *dw = NULL;
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val table = stk_g_input(g, "w", STK_F32, 2, (int64_t[]){WORDS, WIDTH}), dtable = 0;
    stk_val words = stk_g_input(g, "i", STK_I32, 2, (int64_t[]){BATCH, LENGTH});
    stk_val rows = stk_g_cast(g, stk_g_gather(g, table, words, 0), STK_BF16);
    stk_val sums = stk_g_sum(g, rows, 1, (int32_t[]){1}, false);
    stk_g_gradients(g, stk_g_sum_all(g, stk_g_cast(g, sums, STK_F32)), 1, &table, &dtable);
    stk_g_output(g, "y", sums);
    stk_g_output(g, "dw", dtable);
    CHECK_OK(stk_program_new(g, NULL, &p, &err));
    for (int64_t k = 0; k < p->plan.ntasks; k++) {
        const stk_task *t = &p->plan.tasks[k];
        CHECK(t->kernel != STK_K_CHAIN || t->count < BATCH * LENGTH * WIDTH);
    }
    CHECK_OK(stk_tensor_new(STK_F32, 2, (int64_t[]){WORDS, WIDTH}, &w, &err));
    CHECK_OK(stk_tensor_new(STK_I32, 2, (int64_t[]){BATCH, LENGTH}, &i, &err));
    for (int k = 0; k < WORDS * WIDTH; k++) ((float *)w->data)[k] = 1.0035f; /* 1 when rounded */
    for (int k = 0; k < BATCH * LENGTH; k++) ((int32_t *)i->data)[k] = k / 2;
    CHECK_OK(stk_program_feed(p, "w", w, &err));
    CHECK_OK(stk_program_feed(p, "i", i, &err));
    CHECK_OK(stk_program_run(p, 1, &err));
    CHECK_OK(stk_program_read(p, "y", &y, &err));
    CHECK_OK(stk_program_read(p, "dw", &dw, &err));
    CHECK_EQ_I64(y->dtype, STK_BF16);
    CHECK_NEAR(stk_tensor_at(y, 0), 5.03125, 0); /* not 5: of 5.0175 */
    CHECK_NEAR(stk_tensor_at(dw, 0), 2, 0);
    CHECK_NEAR(stk_tensor_at(dw, 20 * WIDTH), 0, 0);
    stk_tensor_release(w), stk_tensor_release(i), stk_tensor_release(y), stk_tensor_release(dw);
    stk_program_release(p);
    stk_graph_release(g);
}

TEST_MAIN()
