/* pools.c - maxima and sums are taken before rounding, and gradients of maxima widened before they are spread.
 *
 *     h = cast(f, bfloat16)                     y', which = max_pool(f)
 *     y, which = max_pool(h)            ->      y = cast(y', bfloat16)
 *
 *     d = max_pool_grad(which, dy)              d' = max_pool_grad(which, cast(dy, float32))
 *     d' = cast(d, float32)             ->
 *
 * for an f that the device computed as float32, and a gradient that it wants as float32 (convolutions of few channels). Rounding keeps
 * the order, so y has the same bits, of a quarter of the numbers; where several numbers round to the maximum, the gradient goes to
 * the largest of them instead of the first.
 *
 *     y = reduce(cast(f, bfloat16))       ->    y = cast(reduce(f), bfloat16)
 *
 * where f is in memory as float32 anyway (rows of an embedding) and nobody else reads it rounded: a sum of what was not rounded, which
 * is rounded once, and no pass over f for a cast alone. */
#include "graph/ir/rewrite.h"

static bool is_half(stk_dtype d) { return d == STK_F16 || d == STK_BF16; }

static stk_val cast_to(stk_graph *g, stk_val v, stk_dtype dtype)
{
    const int64_t to = dtype;
    return stk_g_apply(g, STK_OP_CAST, 1, &v, &(stk_attrs){.ints = &to, .nints = 1});
}

static bool is_read_once(const stk_rewrite *rw, stk_val old)
{
    const int32_t *uses = rw->context;
    return uses[old] == 1;
}

/* The cast of `which` to its own type is for the order of results; simplify takes it out. */
static stk_val pool_first(stk_rewrite *rw, const stk_node *pool, const stk_val *in)
{
    const stk_node *cast = stk_node_of(rw->to, in[0]);
    const stk_dtype half = stk_g_dtype(rw->to, in[0]);
    if (cast->op != STK_OP_CAST || !is_half(half) || !is_read_once(rw, pool->in[0])) return 0;
    const stk_val wide = cast->in[0];
    if (stk_g_dtype(rw->to, wide) != STK_F32) return 0;
    const stk_val y = stk_rewrite_copy(rw->to, pool, &wide);
    if (!y) return 0;
    const stk_val rounded = cast_to(rw->to, y, half);
    cast_to(rw->to, y + 1, stk_g_dtype(rw->to, y + 1));
    return rounded;
}

static stk_val widen_first(stk_rewrite *rw, const stk_node *cast, const stk_val *in)
{
    const stk_node *grad = stk_node_of(rw->to, in[0]);
    if (grad->op != STK_OP_MAX_POOL_GRAD || !is_half(stk_g_dtype(rw->to, in[0])) ||
        stk_g_dtype(rw->from, cast->out) != STK_F32 || !is_read_once(rw, cast->in[0]))
        return 0;
    const stk_node like = *grad; /* nodes may move */
    const stk_val wide[] = {grad->in[0], cast_to(rw->to, grad->in[1], STK_F32)};
    return stk_rewrite_copy(rw->to, &like, wide);
}

/* What a chain makes is rounded there for nothing. */
static stk_val reduce_first(stk_rewrite *rw, const stk_node *reduce, const stk_val *in)
{
    const stk_node *cast = stk_node_of(rw->to, in[0]);
    const stk_dtype half = stk_g_dtype(rw->to, in[0]);
    if (cast->op != STK_OP_CAST || !is_half(half) || !is_read_once(rw, reduce->in[0])) return 0;
    const stk_val wide = cast->in[0];
    if (stk_g_dtype(rw->to, wide) != STK_F32 || stk_g_dtype(rw->from, reduce->out) != half ||
        stk_op_is_elementwise((stk_op)stk_node_of(rw->to, wide)->op))
        return 0;
    const stk_val y = stk_rewrite_copy(rw->to, reduce, &wide);
    return y ? cast_to(rw->to, y, half) : 0;
}

static stk_val late(stk_rewrite *rw, const stk_node *old, const stk_val *in)
{
    switch (old->op) {
    case STK_OP_MAX_POOL: return pool_first(rw, old, in);
    case STK_OP_REDUCE: return reduce_first(rw, old, in);
    case STK_OP_CAST: return widen_first(rw, old, in);
    default: return 0;
    }
}

stk_status stk_pass_pools(const stk_graph *g, stk_graph **out, stk_error *err)
{
    return stk_rewrite_counted(g, late, out, err);
}
