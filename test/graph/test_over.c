/* Programs over streams, and host functions that fail. */
#include "check.h"

#include "stoker/tracing.h"

#include <string.h>

/* sum += sum(x) * k; y = x + k, for batches of `rows` numbers. */
static stk_program *adder(int64_t rows, stk_tensor *sum)
{
    stk_graph *g = NULL;
    stk_program *p = NULL;
    stk_error err;
    stk_program_options options = stk_program_options_defaults();
    CHECK_OK(stk_graph_new(&g, &err));
    CHECK_OK(stk_device_open("cpu:0", 0, &options.device,
                             &err)); /* adopted memory is memory of the host */
    CHECK_OK(stk_store_new(options.device, &options.store, &err));
    CHECK_OK(stk_store_adopt(options.store, "sum", sum, &err));
    stk_val k = stk_g_input(g, "k", STK_I64, 0, NULL);
    stk_val x = stk_g_input(g, "x", STK_I64, 1, &rows);
    stk_val v = stk_g_variable(g, "sum", STK_I64, 0, NULL);
    stk_g_assign(g, v, stk_g_add(g, v, stk_g_mul(g, stk_g_sum_all(g, x), k)));
    stk_g_output(g, "y", stk_g_add(g, x, k));
    stk_g_output(g, "x again", x);
    CHECK_OK(stk_program_new_caller(g, &options, &p, &err));
    stk_store_release(options.store);
    stk_device_release(options.device);
    stk_graph_release(g);
    return p;
}

static stk_stream *numbers(int64_t n, int64_t batch)
{
    stk_error err;
    stk_stream *s = NULL;
    stk_dataset *ds = stk_data_batch(stk_data_range(0, n, 1, &err), batch, false, &err);
    CHECK_OK(stk_dataset_stream(ds, NULL, &s, &err));
    stk_dataset_release(ds);
    return s;
}

static stk_tensor *number(int64_t value)
{
    stk_tensor *t = NULL;
    stk_error err;
    CHECK_OK(stk_tensor_from(STK_I64, 0, NULL, &value, &t, &err));
    return t;
}

TEST(an_epoch_with_a_smaller_last_batch)
{
    stk_error err;
    stk_tensor *sum = number(0), *two = number(2), *all = NULL, *again = NULL;
    stk_program *full = adder(4, sum), *rest = adder(2, sum);
    CHECK_OK(stk_tensor_new(STK_I64, 1, (int64_t[]){10}, &all, &err));
    CHECK_OK(stk_tensor_new(STK_I64, 1, (int64_t[]){10}, &again, &err));
    stk_over o = {.stream = numbers(10, 4),
                  .leaf = (int32_t[]){-1, 0},
                  .given = (stk_tensor *[]){two, NULL},
                  .results = (stk_tensor *[]){all, again}};
    CHECK_OK(stk_program_over(full, &o, &err));
    CHECK(o.end == STK_OVER_SHAPE && o.done == 2 && o.row == 8 && o.part);
    CHECK_OK(stk_program_over(rest, &o, &err));
    CHECK(o.end == STK_OVER_DATA && o.done == 3 && o.row == 10 && !o.part);
    CHECK(*(int64_t *)sum->data == 90);
    for (int64_t i = 0; i < 10; i++)
        CHECK(((int64_t *)all->data)[i] == i + 2 && ((int64_t *)again->data)[i] == i);
    CHECK_OK(stk_program_over(rest, &o, &err)); /* the end stays the end */
    CHECK(o.end == STK_OVER_DATA && o.done == 3);
    stk_over_clear(&o);
    stk_stream_release(o.stream);
    stk_program_release(full), stk_program_release(rest);
    stk_tensor_release(sum), stk_tensor_release(two), stk_tensor_release(all);
    stk_tensor_release(again);
}

TEST(steps_time_and_the_last_results)
{
    stk_error err;
    stk_tensor *sum = number(0), *one = number(1);
    stk_program *p = adder(2, sum);
    stk_over o = {.stream = numbers(1000, 2),
                  .leaf = (int32_t[]){-1, 0},
                  .given = (stk_tensor *[]){one, NULL},
                  .steps = 3};
    CHECK_OK(stk_program_over(p, &o, &err));
    CHECK(o.end == STK_OVER_STEPS && o.done == 3 && *(int64_t *)sum->data == 15);
    CHECK(o.nlast == 2 && stk_tensor_at(o.last[0], 1) == 6 && stk_tensor_at(o.last[1], 1) == 5);
    bool end = true;
    CHECK_OK(stk_over_peek(&o, &end, &err));
    CHECK(!end && stk_tensor_at(o.part[0], 0) == 6);
    stk_over_skip(&o);
    CHECK(o.done == 4);
    o.steps = 0, o.seconds = 1e-9;
    CHECK_OK(stk_program_over(p, &o, &err));
    CHECK(o.end == STK_OVER_TIME && o.done == 5 && stk_tensor_at(o.last[1], 0) == 8);
    stk_over_clear(&o);
    stk_stream_release(o.stream);
    stk_program_release(p);
    stk_tensor_release(sum), stk_tensor_release(one);
}

TEST(wrong_arguments_of_a_loop)
{
    stk_error err;
    stk_tensor *sum = number(0), *small = NULL;
    stk_program *p = adder(2, sum);
    stk_over o = {
        .stream = numbers(10, 2), .leaf = (int32_t[]){-1, 3}, .given = (stk_tensor *[]){sum, NULL}};
    CHECK(stk_program_over(p, &o, &err) == STK_ERR_RANGE);
    CHECK(stk_program_over(NULL, &o, &err) == STK_ERR_ARGUMENT);
    CHECK(stk_program_over(p, &(stk_over){0}, &err) == STK_ERR_ARGUMENT);
    CHECK_OK(stk_tensor_new(STK_I64, 1, (int64_t[]){3}, &small, &err));
    o.leaf = (int32_t[]){-1, 0};
    o.results = (stk_tensor *[]){small, NULL};
    CHECK(stk_program_over(p, &o, &err) == STK_ERR_SHAPE && strstr(err.message, "3 rows"));
    stk_over_clear(&o);
    stk_stream_release(o.stream);
    stk_program_release(p);
    stk_tensor_release(sum), stk_tensor_release(small);
}

static int calls;
static void fails_at_second(void *context, int32_t nin, const stk_tensor *const *in, int32_t nout,
                            stk_tensor *const *out)
{
    (void)context, (void)nin, (void)nout;
    memcpy(out[0]->data, in[0]->data, (size_t)stk_tensor_bytes(in[0]));
    if (++calls == 2) stk_host_fail(STK_ERR_RANGE, "the second call is one too many");
}

TEST(host_functions_may_fail)
{
    stk_graph *g = NULL;
    stk_program *p = NULL;
    stk_error err;
    stk_tensor *x = number(5), *y = NULL;
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val in = stk_g_input(g, "x", STK_I64, 0, NULL);
    stk_host host = {.name = "picky", .run = fails_at_second};
    stk_g_output(g, "y", stk_g_host(g, &host, 1, &in, 1, &(stk_host_result){.dtype = STK_I64}));
    CHECK_OK(stk_program_new_caller(g, NULL, &p, &err));
    for (int i = 1; i <= 3; i++) {
        stk_status status = stk_program_call(p, 1, &x, 1, &y, &err);
        CHECK(status == (i == 2 ? STK_ERR_RANGE : STK_OK));
        if (i == 2) CHECK(strstr(err.message, "one too many") && !y);
        stk_tensor_release(y);
        y = NULL;
    }
    stk_program_release(p);
    stk_graph_release(g);
    stk_tensor_release(x);
}

TEST_MAIN()
