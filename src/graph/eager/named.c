/* Eager calls by name: stk_add(e, a, b, &c) and its like. */
#include "graph/eager/eager.h"

/* ---- calls that need a builder ---------------------------------------------------------------------- */

typedef struct built {
    stk_dtype dtype;
    int32_t n;
    const int32_t *axes;
    bool keep;
} built;

static stk_val build_cast(stk_graph *g, stk_val x, const built *b)
{
    return stk_g_cast(g, x, b->dtype);
}
static stk_val build_sum(stk_graph *g, stk_val x, const built *b)
{
    return stk_g_sum(g, x, b->n, b->axes, b->keep);
}
static stk_val build_mean(stk_graph *g, stk_val x, const built *b)
{
    return stk_g_mean(g, x, b->n, b->axes, b->keep);
}

/* Builds the few nodes and runs them one by one, so that each is found again and tapes see it. */
static stk_status run_built(stk_eager *e, stk_tensor *x,
                            stk_val (*build)(stk_graph *, stk_val, const built *), built options,
                            stk_tensor **out)
{
    stk_graph *g = NULL;
    if (!e) return STK_ERR_ARGUMENT;
    if (!x || !out)
        return stk_fail(&e->error, STK_ERR_ARGUMENT, "eager call: input and out must be given");
    STK_TRY(stk_graph_new(&g, &e->error));
    stk_val v = stk_g_input(g, "x", x->dtype, x->rank, x->shape), y = v ? build(g, v, &options) : 0;
    stk_tensor **known = stk_calloc((size_t)g->nvalues, sizeof *known);
    stk_status status =
        known ? stk_graph_status(g, &e->error) : stk_fail_memory(&e->error, "eager", 0);
    if (status == STK_OK) {
        known[v] = stk_tensor_retain(x);
        status = stk_eager_interpret(e, g, known, 1, &y);
    }
    if (status == STK_OK) *out = stk_tensor_retain(known[y]);
    for (int64_t k = 0; known && k < g->nvalues; k++) stk_tensor_release(known[k]);
    stk_free(known);
    stk_graph_release(g);
    return status;
}

/* ---- named calls ------------------------------------------------------------------------------------------------------ */

#define IN_1                                                                                       \
    (stk_tensor *[]) { x }
#define IN_2                                                                                       \
    (stk_tensor *[]) { a, b }
#define IN_3                                                                                       \
    (stk_tensor *[]) { a, b, c }
#define STK_EW(NAME, name, arity, result, doc)                                                     \
    stk_status stk_##name(stk_eager *e, STK_EAGER_ARGS_##arity, stk_tensor **out)                  \
    {                                                                                              \
        return stk_eager_apply(e, STK_OP_##NAME, arity, IN_##arity, NULL, out);                    \
    }
#define STK_EW_TYPED(NAME, name, arity, result, doc)
#include "stoker/elementwise.def"

/* Through the builder, which knows about ranges: float to int8 is more than one operation. */
stk_status stk_cast(stk_eager *e, stk_tensor *x, stk_dtype dtype, stk_tensor **out)
{
    return run_built(e, x, build_cast, (built){.dtype = dtype}, out);
}

stk_status stk_matmul_t(stk_eager *e, stk_tensor *a, stk_tensor *b, bool ta, bool tb,
                        stk_tensor **out)
{
    int64_t flags[2] = {ta, tb};
    return stk_eager_apply(e, STK_OP_MATMUL, 2, IN_2, &(stk_attrs){.ints = flags, .nints = 2}, out);
}

stk_status stk_matmul(stk_eager *e, stk_tensor *a, stk_tensor *b, stk_tensor **out)
{
    return stk_matmul_t(e, a, b, false, false, out);
}

stk_status stk_reshape(stk_eager *e, stk_tensor *x, int32_t rank, const int64_t *shape,
                       stk_tensor **out)
{
    return stk_eager_apply(e, STK_OP_RESHAPE, 1, &x, &(stk_attrs){.ints = shape, .nints = rank},
                           out);
}

stk_status stk_transpose(stk_eager *e, stk_tensor *x, const int32_t *perm, stk_tensor **out)
{
    int64_t ints[STK_MAX_RANK];
    int32_t rank = x ? x->rank : 0;
    for (int32_t i = 0; i < rank; i++) ints[i] = perm ? perm[i] : rank - 1 - i;
    return stk_eager_apply(e, STK_OP_TRANSPOSE, 1, &x, &(stk_attrs){.ints = ints, .nints = rank},
                           out);
}

stk_status stk_sum(stk_eager *e, stk_tensor *x, int32_t n, const int32_t *axes, bool keep,
                   stk_tensor **out)
{
    return run_built(e, x, build_sum, (built){.n = n, .axes = axes, .keep = keep}, out);
}

stk_status stk_mean(stk_eager *e, stk_tensor *x, int32_t n, const int32_t *axes, bool keep,
                    stk_tensor **out)
{
    return run_built(e, x, build_mean, (built){.n = n, .axes = axes, .keep = keep}, out);
}
