/* Graphs as map functions: the same numbers on one thread and many, one program per shape. */
#include "check.h"
#include "stoker/map_program.h"

static void build(stk_graph *g, const stk_val *x, void *context)
{
    (void)context;
    stk_val y = stk_g_cast(g, x[0], STK_F32);
    stk_g_output(
        g, "y",
        stk_g_add(g, stk_g_mul(g, y, stk_g_scalar(g, STK_F32, 3)), stk_g_scalar(g, STK_F32, 1)));
}

TEST(programs_map_elements)
{
    static const stk_field field = {.dtype = STK_F32};
    static const stk_schema schema = {1, &field, "0"};
    stk_error err;
    for (int threads = 1; threads <= 4; threads += 3) {
        stk_map_fn fn;
        const char *x = "x", *y = "y";
        REQUIRE(
            CHECK_OK(stk_map_program("affine", 1, &x, &y, &schema, build, NULL, NULL, &fn, &err)));
        stk_dataset *ds = stk_data_map(stk_data_range(0, 50, 1, &err), &fn, NULL, &err);
        ds = stk_data_batch(ds, 8, false, &err);
        stk_stream_options o = stk_stream_options_defaults();
        o.threads = threads;
        stk_stream *s = NULL;
        REQUIRE(CHECK_OK(stk_dataset_stream(ds, &o, &s, &err)));
        int64_t at = 0;
        for (bool end = false; !end;) {
            stk_tensor *t = NULL;
            if (!CHECK_OK(stk_stream_next(s, &t, &end, &err)) || end) break;
            for (int64_t i = 0; i < t->shape[0]; i++, at++)
                CHECK_NEAR(stk_tensor_at(t, i), 3.0 * (double)at + 1, 0);
            stk_tensor_release(t);
        }
        CHECK_EQ_I64(at, 50);
        stk_stream_release(s);
        stk_dataset_release(ds);
    }
}

TEST_MAIN()
