/* Running sums and products along an axis, and the linear recurrence that their gradients need:
 *
 *     linear_scan(a, b):  y[i] = a[i] * y[i-1] + b[i],  y[-1] = 0
 *
 * It is an op for users too (exponential moving averages, diagonal state spaces). */
#include "graph/ir/op.h"
#include "stoker/nn.h"

enum { AXIS, EXCLUSIVE, REVERSE, SCAN_INTS };

static bool is_scannable(stk_dtype t)
{
    return t == STK_I32 || t == STK_I64 || stk_dtype_is_float(t);
}

static stk_status infer_scan(stk_infer *c)
{
    const stk_node *n = c->node;
    const stk_type *x = c->in[0];
    bool linear = n->op == STK_OP_LINEAR_SCAN;
    if (n->nints != SCAN_INTS || (n->ints[EXCLUSIVE] | 1) != 1 || (n->ints[REVERSE] | 1) != 1 ||
        (linear && n->ints[EXCLUSIVE]))
        return stk_infer_fail(c, STK_ERR_ARGUMENT,
                              "needs axis, exclusive (%s) and reverse (0 or 1)",
                              linear ? "0" : "0 or 1");
    if (n->ints[AXIS] < 0 || n->ints[AXIS] >= x->shape.rank)
        return stk_infer_fail(c, STK_ERR_RANGE, "axis %lld; 0 to %d is possible",
                              (long long)n->ints[AXIS], x->shape.rank - 1);
    if (linear ? !stk_dtype_is_float(x->dtype) : !is_scannable(x->dtype))
        return stk_infer_fail(c, STK_ERR_DTYPE, "needs %s; cast first",
                              linear ? "a float type" : "floats, int32 or int64");
    if (linear && !stk_type_equal(x, c->in[1]))
        return stk_infer_fail(c, STK_ERR_SHAPE, "both inputs must have the same shape and dtype");
    *c->out = *x;
    return STK_OK;
}

static stk_status lower_scan(stk_lower *l)
{
    const stk_node *n = l->node;
    const stk_type *x = stk_type_of(l->g, n->in[0]);
    stk_scan_params *p = stk_lower_params(l, STK_K_SCAN, sizeof *p);
    if (!p) return STK_ERR_MEMORY;
    int32_t axis = (int32_t)n->ints[AXIS];
    p->outer = p->inner = 1;
    p->n = x->shape.dim[axis];
    for (int32_t i = 0; i < axis; i++) p->outer *= x->shape.dim[i];
    for (int32_t i = axis + 1; i < x->shape.rank; i++) p->inner *= x->shape.dim[i];
    p->kind = n->op == STK_OP_CUMSUM    ? STK_SCAN_SUM
              : n->op == STK_OP_CUMPROD ? STK_SCAN_PROD
                                        : STK_SCAN_LINEAR;
    p->exclusive = (int32_t)n->ints[EXCLUSIVE];
    p->reverse = (int32_t)n->ints[REVERSE];
    p->dtype = x->dtype;
    return STK_OK;
}

static stk_val scan(stk_graph *g, stk_op op, int32_t nin, const stk_val *in, int64_t axis,
                    bool exclusive, bool reverse)
{
    int64_t ints[SCAN_INTS] = {axis, exclusive, reverse};
    return stk_g_apply(g, op, nin, in, &(stk_attrs){.ints = ints, .nints = SCAN_INTS});
}

/* x moved by one along the axis, the free place filled with `fill`: forward[i] = x[i-1], backward[i] = x[i+1]. */
static stk_val shift(stk_graph *g, stk_val x, int64_t axis, bool forward, double fill)
{
    if (!stk_graph_ok(g) || !stk_val_ok(g, x)) return 0;
    int64_t low[STK_MAX_RANK] = {0}, high[STK_MAX_RANK] = {0}, n = stk_g_dim(g, x, (int32_t)axis);
    if (n == 0) return x;
    stk_val rest = stk_g_slice_axis(g, x, (int32_t)axis, forward ? 0 : 1, n - 1);
    *(forward ? &low[axis] : &high[axis]) = 1;
    return stk_g_pad(g, rest, low, high, fill);
}

/* ---- cumsum: its gradient is the same in the other direction ------------------------------------------- */

static void grad_cumsum(stk_grad *c)
{
    const int64_t *at = c->node.ints;
    c->din[0] = scan(c->g, STK_OP_CUMSUM, 1, c->dout, at[AXIS], at[EXCLUSIVE], !at[REVERSE]);
}
const stk_opdef stk_opdef_cumsum = {
    .flags = STK_OPF_WIDEN, .infer = infer_scan, .grad = grad_cumsum, .lower = lower_scan};

/* ---- cumprod ---------------------------------------------------------------------------------------------
 * y[j] = x[0] ... x[j]. With p[i] = x[0] ... x[i-1]:  dx[i] = p[i] s[i],  s[i] = dy[i] + x[i+1] s[i+1].
 * No division, so zeros in x are as good as any other number. Exclusive: dy moves up by one first. */
static void grad_cumprod(stk_grad *c)
{
    stk_graph *g = c->g;
    stk_val x = c->node.in[0], dy = c->dout[0];
    int64_t axis = c->node.ints[AXIS];
    bool reverse = c->node.ints[REVERSE];
    stk_val before = scan(g, STK_OP_CUMPROD, 1, &x, axis, true, reverse);
    if (c->node.ints[EXCLUSIVE]) dy = shift(g, dy, axis, reverse, 0);
    stk_val s = scan(g, STK_OP_LINEAR_SCAN, 2, (stk_val[]){shift(g, x, axis, reverse, 0), dy}, axis,
                     false, !reverse);
    c->din[0] = stk_g_mul(g, before, s);
}
const stk_opdef stk_opdef_cumprod = {
    .flags = STK_OPF_WIDEN, .infer = infer_scan, .grad = grad_cumprod, .lower = lower_scan};

/* ---- linear scan: db[i] = dy[i] + a[i+1] db[i+1], da[i] = db[i] y[i-1] ------------------------------------ */

static void grad_linear_scan(stk_grad *c)
{
    stk_graph *g = c->g;
    int64_t axis = c->node.ints[AXIS];
    bool reverse = c->node.ints[REVERSE];
    stk_val next = shift(g, c->node.in[0], axis, reverse, 0);
    c->din[1] =
        scan(g, STK_OP_LINEAR_SCAN, 2, (stk_val[]){next, c->dout[0]}, axis, false, !reverse);
    c->din[0] = stk_g_mul(g, c->din[1], shift(g, c->node.out, axis, !reverse, 0));
}
const stk_opdef stk_opdef_linear_scan = {
    .flags = STK_OPF_WIDEN, .infer = infer_scan, .grad = grad_linear_scan, .lower = lower_scan};

/* ---- builders ------------------------------------------------------------------------------------------------ */

static stk_val running(stk_graph *g, stk_op op, stk_val x, int32_t axis, bool exclusive,
                       bool reverse)
{
    if (!stk_graph_ok(g)) return 0;
    axis = stk_g_axis(g, stk_op_name(op), x, axis);
    if (axis < 0) return 0;
    stk_dtype t = stk_g_dtype(g, x);
    char kind = stk_dtype_kind(t);
    bool through_i64 =
        (kind == 'I' || kind == 'U') && !is_scannable(t); /* wraps to the same result */
    if (through_i64) x = stk_g_cast(g, x, STK_I64);
    x = scan(g, op, 1, &x, axis, exclusive, reverse);
    return through_i64 ? stk_g_cast(g, x, t) : x;
}

stk_val stk_g_cumsum(stk_graph *g, stk_val x, int32_t axis, bool exclusive, bool reverse)
{
    return running(g, STK_OP_CUMSUM, x, axis, exclusive, reverse);
}

stk_val stk_g_cumprod(stk_graph *g, stk_val x, int32_t axis, bool exclusive, bool reverse)
{
    return running(g, STK_OP_CUMPROD, x, axis, exclusive, reverse);
}

stk_val stk_g_linear_scan(stk_graph *g, stk_val a, stk_val b, int32_t axis, bool reverse)
{
    if (!stk_graph_ok(g)) return 0;
    axis = stk_g_axis(g, "linear_scan", a, axis);
    return axis < 0 ? 0 : scan(g, STK_OP_LINEAR_SCAN, 2, (stk_val[]){a, b}, axis, false, reverse);
}
