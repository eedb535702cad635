/* Indices that are out of range when a program runs: on the CPU the run ends and names the first one, whatever came behind it
 * is not computed, and the next run is a new one. Devices with a queue of their own give zeros. */
#include "graph/values.h"

#include "stoker/eager.h"

#define SHAPE(...)                                                                                 \
    (const int64_t[]) { __VA_ARGS__ }

static stk_tensor *indices(stk_dtype dtype, int32_t rank, const int64_t *shape, const int64_t *v)
{
    stk_error err;
    stk_tensor *t = NULL;
    CHECK_OK(stk_tensor_new(dtype, rank, shape, &t, &err));
    for (int64_t i = 0; t && i < stk_tensor_count(t); i++)
        CHECK_OK(stk_tensor_set(t, i, (double)v[i], &err));
    return t;
}

static stk_program_options on(const char *device)
{
    stk_error err;
    stk_program_options o = stk_program_options_defaults();
    CHECK_OK(stk_device_open(device, 0, &o.device, &err));
    return o;
}

/* y over an input "i" of this type, on the CPU: good indices run, bad ones fail with these words, good ones run again. */
static void ends(stk_graph *g, stk_val y, const stk_program_options *how, stk_tensor *good,
                 stk_tensor *bad, const char *words)
{
    stk_error err = {0};
    stk_program *p = NULL;
    stk_g_output(g, "y", y);
    if (CHECK_OK(stk_program_new(g, how, &p, &err))) {
        for (int round = 0; round < 3; round++) {
            CHECK_OK(stk_program_feed(p, "i", good, &err));
            CHECK_OK(stk_program_run(p, 2, &err));
            CHECK_OK(stk_program_feed(p, "i", bad, &err));
            CHECK_FAILS(stk_program_run(p, 1, &err), STK_ERR_RANGE, words);
        }
    }
    stk_program_release(p);
    stk_graph_release(g);
}

/* Rows of every size that has a loop of its own, by both implementations, with int32 and int64. */
TEST(a_gather_names_the_place_the_index_and_the_range)
{
    for (int64_t width = 1; width <= 5; width++)
        for (int way = 0; way < 4; way++) {
            stk_dtype dtype = way & 1 ? STK_I32 : STK_I64;
            stk_program_options how = on("cpu:0");
            how.ref = way >= 2;
            stk_tensor *good = indices(dtype, 2, SHAPE(2, 2), SHAPE(1, 2, 0, 3));
            stk_tensor *bad = indices(dtype, 2, SHAPE(2, 2), SHAPE(1, 2, -1, 7));
            stk_graph *g = graph();
            stk_val x = stk_g_fill(g, STK_F32, 2, SHAPE(4, width), 1);
            stk_val i = stk_g_input(g, "i", dtype, 2, SHAPE(2, 2));
            ends(g, stk_g_gather(g, x, i, 0), &how, good, bad,
                 "gather: indices[1,0] = -1 is not in [0, 4)");
            stk_tensor_release(good), stk_tensor_release(bad);
            stk_device_release(how.device);
        }
}

/* Many threads meet many bad indices: the first one is named. */
TEST(the_first_of_many_is_named)
{
    enum { N = 200000 };
    stk_error err;
    stk_program_options how = on("cpu:0");
    stk_tensor *good = NULL, *bad = NULL;
    CHECK_OK(stk_tensor_new(STK_I32, 1, SHAPE(N), &good, &err));
    CHECK_OK(stk_tensor_new(STK_I32, 1, SHAPE(N), &bad, &err));
    for (int64_t k = 0; k < N; k++) ((int32_t *)bad->data)[k] = k >= 70001 && k % 3 == 0 ? 9 : 2;
    stk_graph *g = graph();
    stk_val x = stk_g_fill(g, STK_F32, 2, SHAPE(5, 8), 1);
    stk_val i = stk_g_input(g, "i", STK_I32, 1, SHAPE(N));
    ends(g, stk_g_gather(g, x, i, 0), &how, good, bad, "indices[70002] = 9 is not in [0, 5)");
    stk_tensor_release(good), stk_tensor_release(bad);
    stk_device_release(how.device);
}

TEST(coordinates_and_single_elements_are_looked_after_too)
{
    for (int ref = 0; ref < 2; ref++) {
        stk_program_options how = on("cpu:0");
        how.ref = ref;
        stk_tensor *good = indices(STK_I32, 2, SHAPE(2, 2), SHAPE(1, 2, 0, 0));
        stk_tensor *bad = indices(STK_I32, 2, SHAPE(2, 2), SHAPE(1, 2, 0, 7));
        stk_graph *g = graph();
        stk_val x = stk_g_fill(g, STK_F32, 2, SHAPE(2, 3), 1);
        stk_val i = stk_g_input(g, "i", STK_I32, 2, SHAPE(2, 2));
        ends(g, stk_g_gather_nd(g, x, i, 0), &how, good, bad,
             "gather_nd: indices[1] = [0, 7] does not index into shape [2,3]");
        g = graph();
        x = stk_g_fill(g, STK_F32, 2, SHAPE(2, 3), 1);
        i = stk_g_input(g, "i", STK_I32, 2, SHAPE(2, 2));
        ends(g, stk_g_take_along(g, x, i, 1), &how, good, bad,
             "take_along: indices[1,1] = 7 is not in [0, 3)");
        g = graph();
        x = stk_g_fill(g, STK_F32, 2, SHAPE(2, 3), 1);
        i = stk_g_input(g, "i", STK_I32, 2, SHAPE(2, 2));
        ends(g, stk_g_gather_batch(g, x, i, 1, 1), &how, good, bad,
             "gather: indices[1,1] = 7 is not in [0, 3)");
        stk_tensor_release(good), stk_tensor_release(bad);
        stk_device_release(how.device);
    }
}

/* Updates that a scatter leaves out get no gradient, and nobody complains. */
TEST(scatters_and_their_gradients_leave_out)
{
    const double at[] = {1, -1, 7};
    feeds f = {0};
    stk_graph *g = graph();
    stk_val x = fed(g, &f, STK_F32, 1, SHAPE(3), (double[]){3, 4, 5});
    stk_val i = fed(g, &f, STK_I64, 1, SHAPE(3), at);
    stk_val y = stk_g_scatter_add(g, stk_g_fill(g, STK_F32, 1, SHAPE(4), 0), i, x, 0), dx = 0;
    stk_g_gradients(g, stk_g_sum_all(g, stk_g_mul(g, y, y)), 1, &x, &dx);
    expect_fed(g, &f, dx, STK_F32, 3, (double[]){6, 0, 0}, 0);
}

/* A step that fails has not touched its variable. */
TEST(nothing_behind_it_is_computed)
{
    stk_error err = {0};
    stk_program_options how = on("cpu:0");
    stk_program *p = NULL;
    stk_tensor *w = NULL, *bad = indices(STK_I32, 1, SHAPE(2), SHAPE(0, 4));
    stk_graph *g = graph();
    stk_val v = stk_g_variable(g, "w", STK_F32, 2, SHAPE(4, 3));
    stk_val i = stk_g_input(g, "i", STK_I32, 1, SHAPE(2));
    stk_val loss = stk_g_sum_all(g, stk_g_exp(g, stk_g_gather(g, v, i, 0))), dv = 0;
    stk_g_gradients(g, loss, 1, &v, &dv);
    stk_g_assign(g, v, stk_g_sub(g, v, dv));
    stk_g_output(g, "loss", loss);
    if (CHECK_OK(stk_program_new(g, &how, &p, &err))) {
        CHECK_OK(stk_program_feed(p, "i", bad, &err));
        for (int n = 0; n < 40; n++) /* in trials of threads as well */
            CHECK_FAILS(stk_program_run(p, 1, &err), STK_ERR_RANGE, "indices[1] = 4");
        CHECK_OK(stk_store_get(stk_program_store(p), "w", &w, &err));
        for (int64_t k = 0; w && k < 12; k++) CHECK_NEAR(stk_tensor_at(w, k), 0, 0);
    }
    stk_tensor_release(w), stk_tensor_release(bad);
    stk_program_release(p);
    stk_graph_release(g);
    stk_device_release(how.device);
}

TEST(bodies_of_control_flow_fail_as_programs_do)
{
    stk_error err = {0};
    stk_program_options how = on("cpu:0");
    stk_tensor *good = indices(STK_I32, 1, SHAPE(1), SHAPE(0)),
               *bad = indices(STK_I32, 1, SHAPE(1), SHAPE(3));
    stk_graph *picks = graph(), *keeps = graph(), *g = graph();
    stk_val x = stk_g_fill(picks, STK_F32, 1, SHAPE(3), 1);
    stk_g_output(picks, "y",
                 stk_g_gather(picks, x, stk_g_input(picks, "a", STK_I32, 1, SHAPE(1)), 0));
    stk_g_output(keeps, "y",
                 stk_g_cast(keeps, stk_g_input(keeps, "a", STK_I32, 1, SHAPE(1)), STK_F32));
    stk_val i = stk_g_input(g, "i", STK_I32, 1, SHAPE(1));
    stk_val any = stk_g_reshape(g, stk_g_ge(g, i, stk_g_scalar(g, STK_I32, 0)), 0, NULL);
    ends(g, stk_g_cond(g, any, picks, keeps, 1, &i), &how, good, bad,
         "gather: indices[0] = 3 is not in [0, 3)");
    stk_graph_release(picks), stk_graph_release(keeps);
    stk_tensor_release(good), stk_tensor_release(bad);
    stk_device_release(how.device);
    (void)err;
}

TEST(eager_calls_fail_and_go_on)
{
    stk_error err = {0};
    stk_program_options how = on("cpu:0");
    stk_eager *e = NULL;
    stk_tensor *x = indices(STK_F32, 1, SHAPE(3), SHAPE(7, 8, 9)), *y = NULL;
    stk_tensor *bad = indices(STK_I64, 0, NULL, SHAPE(3)),
               *good = indices(STK_I64, 0, NULL, SHAPE(2));
    stk_attrs attrs = {.ints = (int64_t[]){0, 0}, .nints = 2};
    CHECK_OK(stk_eager_new(how.device, &e, &err));
    for (int n = 0; e && n < 3; n++) {
        stk_status failed =
            stk_eager_apply(e, STK_OP_GATHER, 2, (stk_tensor *[]){x, bad}, &attrs, &y);
        check_fails(failed, STK_ERR_RANGE, stk_eager_error(e),
                    "gather: indices = 3 is not in [0, 3)", "stk_eager_apply", __FILE__, __LINE__);
        if (CHECK_OK(stk_eager_apply(e, STK_OP_GATHER, 2, (stk_tensor *[]){x, good}, &attrs, &y)))
            CHECK_NEAR(stk_tensor_at(y, 0), 9, 0);
        stk_tensor_release(y);
        y = NULL;
    }
    stk_eager_release(e);
    stk_tensor_release(x), stk_tensor_release(bad), stk_tensor_release(good);
    stk_device_release(how.device);
}

/* Where the host does not wait for a kernel there are zeros, as on TensorFlow's GPUs. */
TEST(devices_with_a_queue_give_zeros)
{
    setenv("STOKER_APART", "1", 1);
    stk_error err = {0};
    stk_program_options how = on("apart:0");
    stk_program *p = NULL;
    stk_tensor *bad = indices(STK_I32, 1, SHAPE(2), SHAPE(2, 3)), *y = NULL;
    stk_graph *g = graph();
    stk_val x = stk_g_fill(g, STK_F32, 1, SHAPE(3), 4);
    stk_g_output(g, "y", stk_g_gather(g, x, stk_g_input(g, "i", STK_I32, 1, SHAPE(2)), 0));
    if (how.device && CHECK_OK(stk_program_new(g, &how, &p, &err))) {
        CHECK_OK(stk_program_feed(p, "i", bad, &err));
        CHECK_OK(stk_program_run(p, 1, &err));
        CHECK_OK(stk_program_read(p, "y", &y, &err));
        check_tensor(y, STK_F32, 2, (double[]){4, 0}, 0, __FILE__, __LINE__);
    }
    stk_tensor_release(bad), stk_tensor_release(y);
    stk_program_release(p);
    stk_graph_release(g);
    stk_device_release(how.device);
}

TEST_MAIN()
