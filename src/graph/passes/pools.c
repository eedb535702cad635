/* pools.c - maxima are taken before rounding, and their gradients widened before they are spread.
 *
 *     h = cast(f, bfloat16)                     y', which = max_pool(f)
 *     y, which = max_pool(h)            ->      y = cast(y', bfloat16)
 *
 *     d = max_pool_grad(which, dy)              d' = max_pool_grad(which, cast(dy, float32))
 *     d' = cast(d, float32)             ->
 *
 * for an f that the device computed as float32, and a gradient that it wants as float32 (convolutions of few channels). Rounding keeps
 * the order, so y has the same bits, of a quarter of the numbers; where several numbers round to the maximum, the gradient goes to
 * the largest of them instead of the first. */
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

static stk_val late(stk_rewrite *rw, const stk_node *old, const stk_val *in)
{
    switch (old->op) {
    case STK_OP_MAX_POOL: return pool_first(rw, old, in);
    case STK_OP_CAST: return widen_first(rw, old, in);
    default: return 0;
    }
}

stk_status stk_pass_pools(const stk_graph *g, stk_graph **out, stk_error *err)
{
    return stk_rewrite_counted(g, late, out, err);
}
