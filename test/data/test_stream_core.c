/* The thin path: sources, map, batch, prefetch, positions. */
#include "check.h"
#include "pipelines.h"

TEST(range_counts_and_ends)
{
    stk_error err;
    collect c = {0};
    run_all(stk_data_range(3, 10, 2, &err), NULL, &c);
    CHECK_STR(c.text, "3|5|7|9|");
    run_all(stk_data_range(5, 0, -2, &err), NULL, &c);
    CHECK_STR(c.text, "5|3|1|");
    run_all(stk_data_range(5, 0, 1, &err), NULL, &c);
    CHECK_STR(c.text, "");
    CHECK(!stk_data_range(0, 1, 0, &err));
    CHECK_CONTAINS(err.message, "step");
}

TEST(batches_have_a_rest_or_not)
{
    stk_error err;
    collect c = {0};
    run_all(stk_data_batch(stk_data_range(0, 7, 1, &err), 3, false, &err), NULL, &c);
    CHECK_STR(c.text, "0,1,2|3,4,5|6|");
    run_all(stk_data_batch(stk_data_range(0, 7, 1, &err), 3, true, &err), NULL, &c);
    CHECK_STR(c.text, "0,1,2|3,4,5|");
}

TEST(maps_run_in_order_on_any_number_of_threads)
{
    stk_error err;
    for (int threads = 1; threads <= 4; threads++) {
        stk_stream_options o = stk_stream_options_defaults();
        o.threads = threads;
        collect c = {0};
        stk_dataset *ds = stk_data_map(stk_data_range(0, 9, 1, &err), &times_ten, NULL, &err);
        ds = stk_data_prefetch(stk_data_batch(ds, 4, false, &err), 2, &err);
        run_all(ds, &o, &c);
        CHECK_STR(c.text, "0,10,20,30|40,50,60,70|80|");
    }
}

TEST(slices_are_views)
{
    stk_error err;
    stk_tensor *x = NULL, *parts[1];
    CHECK_OK(stk_tensor_from(STK_F32, 2, (int64_t[]){5, 2}, (float[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
                             &x, &err));
    stk_dataset *ds = stk_data_batch(stk_data_slices(1, &x, NULL, NULL, &err), 2, false, &err);
    stk_stream *s = NULL;
    CHECK_OK(stk_dataset_stream(ds, NULL, &s, &err));
    bool end = false;
    CHECK_OK(stk_stream_next(s, parts, &end, &err));
    CHECK(parts[0]->data == x->data);
    CHECK_EQ_I64(parts[0]->shape[0], 2);
    stk_tensor_release(parts[0]);
    stk_stream_release(s);
    stk_dataset_release(ds);
    stk_tensor_release(x);
}

static stk_status small_pipeline(int threads)
{
    stk_error err;
    stk_dataset *ds = stk_data_map(stk_data_range(0, 9, 1, &err), &times_ten, NULL, &err);
    ds = stk_data_prefetch(stk_data_batch(ds, 4, false, &err), 2, &err);
    if (!ds) return err.code;
    stk_stream_options o = stk_stream_options_defaults();
    o.threads = threads;
    stk_stream *s = NULL;
    stk_status status = stk_dataset_stream(ds, &o, &s, &err);
    stk_dataset_release(ds);
    for (bool end = false; status == STK_OK && !end;) {
        stk_tensor *part = NULL;
        status = stk_stream_next(s, &part, &end, &err);
        if (status == STK_OK && !end) stk_tensor_release(part);
    }
    stk_stream_release(s);
    return status;
}

TEST(without_memory_nothing_leaks) { OOM_LOOP(small_pipeline(1)); }

TEST(names_of_digits_are_no_leaves)
{
    stk_error err;
    stk_schema *s = NULL;
    char text[80];
    stk_field fields[] = {{.name = "8", .dtype = STK_F32, .rank = 0},
                          {.name = "1a", .dtype = STK_I64, .rank = 0}};
    CHECK_OK(stk_schema_new(2, fields, "{8:0,1a:1}", &s, &err));
    CHECK_STR(stk_schema_describe(s, text, sizeof text), "{8: float32[], 1a: int64[]}");
    stk_schema_release(s);
}

TEST_MAIN()
