/* Chains that would wait for each other: what fusing must not make. */
#include "graph/op_case.h"

/* The second gradient of a norm has two chains, each of which could take in a node that the other one waits for,
 * by way of a sum. */
static stk_val norm(stk_graph *g, const stk_val *in, stk_dtype real)
{
    (void)real;
    return stk_g_sqrt(g, stk_g_sum_all(g, stk_g_square(g, in[0])));
}

static stk_val scaled_by_norm(stk_graph *g, const stk_val *in, stk_dtype real)
{
    return stk_g_div(g, in[0], norm(g, in, real));
}

static const op_case cases[] = {
    {.name = "norm", .build = norm, .nin = 1, .in = {{STK_F32, 1, {3}, 0.5, 1}}, .grad2 = 1},
    {.name = "scaled by norm",
     .build = scaled_by_norm,
     .nin = 1,
     .in = {{STK_F32, 2, {3, 4}, 0.5, 1}},
     .grad2 = 1},
};

OP_CASE_MAIN(cases)
