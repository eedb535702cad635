/* Parts of graphs: what some values need, from inputs and from values at hand. */
#include "check.h"
#include "stoker/stoker.h"

TEST(part_takes_what_is_needed_and_stops_at_what_is_at_hand)
{
    stk_error err;
    stk_graph *g = NULL, *part = NULL;
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val a = stk_g_input(g, "a", STK_F32, 1, (int64_t[]){2});
    stk_val text = stk_g_input(g, "text", STK_STRING, 0, NULL);
    stk_val b = stk_g_input(g, "b", STK_F32, 1, (int64_t[]){2});
    stk_val sum = stk_g_add(g, a, b);
    stk_val twice = stk_g_add(g, sum, sum);
    stk_val more = stk_g_mul(g, twice, b);
    CHECK(text > 0);

    stk_val inputs[4];
    int32_t nin = 0;
    CHECK_OK(stk_graph_part(g, 0, NULL, 1, &sum, 4, inputs, &nin, &part, &err));
    CHECK_EQ_I64(nin, 2);
    CHECK_EQ_I64(inputs[0], a);
    CHECK_EQ_I64(inputs[1], b);
    stk_graph_release(part);

    CHECK_OK(stk_graph_part(g, 1, &sum, 2, (stk_val[]){twice, more}, 4, inputs, &nin, &part, &err));
    CHECK_EQ_I64(nin, 2); /* b comes before the sum */
    CHECK_EQ_I64(inputs[0], b);
    CHECK_EQ_I64(inputs[1], sum);
    stk_program *p = NULL;
    stk_tensor *x = NULL, *y = NULL;
    char name[2][16];
    snprintf(name[0], sizeof name[0], "%d", (int)b);
    snprintf(name[1], sizeof name[1], "%d", (int)sum);
    CHECK_OK(stk_program_new(part, NULL, &p, &err));
    CHECK_OK(stk_tensor_from(STK_F32, 1, (int64_t[]){2}, (float[]){3, 4}, &x, &err));
    CHECK_OK(stk_program_feed(p, name[0], x, &err));
    CHECK_OK(stk_program_feed(p, name[1], x, &err));
    CHECK_OK(stk_program_run(p, 1, &err));
    CHECK_OK(stk_program_read(p, "1", &y, &err));
    CHECK_NEAR(stk_tensor_at(y, 1), 32, 1e-6);
    stk_tensor_release(x);
    stk_tensor_release(y);
    stk_program_release(p);
    stk_graph_release(part);

    CHECK(stk_graph_part(g, 0, NULL, 1, (stk_val[]){99}, 4, inputs, &nin, &part, &err) ==
          STK_ERR_ARGUMENT);
    CHECK(stk_graph_part(g, 0, NULL, 1, &more, 1, inputs, &nin, &part, &err) == STK_ERR_RANGE);
    stk_graph_release(g);
}

TEST_MAIN()
