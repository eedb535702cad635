/* Softmax, its logarithm, and cross entropy over softmax with the gradient ready at once.
 *
 * The ops work on the last axis; the builders bring another axis there. Cross entropy gives two outputs: the
 * loss of each row and d loss / d logits (softmax - target), so that its backward pass is one multiply. */
#include "graph/ir/compose.h"
#include "stoker/nn.h"

static stk_status infer_rows(stk_infer *c)
{
    const stk_type *x = c->in[0];
    if (!stk_dtype_is_float(x->dtype))
        return stk_infer_fail(c, STK_ERR_DTYPE, "needs a float type; cast to float32 first");
    if (x->shape.rank < 1 || x->shape.dim[x->shape.rank - 1] < 1)
        return stk_infer_fail(c, STK_ERR_SHAPE, "needs a last axis of at least one element");
    for (int32_t i = 1; i < c->node->nin; i++)
        if (!stk_type_equal(x, c->in[i]))
            return stk_infer_fail(c, STK_ERR_SHAPE,
                                  "both inputs must have the same shape and dtype");
    *c->out = *x;
    return STK_OK;
}

static stk_status lower_rows(stk_lower *l, stk_kernel kernel, bool log)
{
    const stk_type *x = stk_type_of(l->g, l->node->in[0]);
    stk_softmax_params *p = stk_lower_params(l, kernel, sizeof *p);
    if (!p) return STK_ERR_MEMORY;
    p->rows = stk_outer_count(&x->shape, 1);
    p->n = stk_inner_count(&x->shape, 1);
    p->log = log;
    p->dtype = x->dtype;
    return STK_OK;
}

static double cost_rows(const stk_graph *g, const stk_node *n)
{
    return 10.0 * (double)stk_shape_count(&stk_type_of(g, n->in[0])->shape);
}

static stk_val sum_rows(stk_graph *g, stk_val x)
{
    return stk_g_sum(g, x, 1, (int32_t[]){-1}, true);
}

/* ---- softmax ------------------------------------------------------------------------------------------- */

static void grad_softmax(stk_grad *c)
{
    c->din[0] =
        stk_g_apply(c->g, STK_OP_SOFTMAX_GRAD, 2, (stk_val[]){c->node.out, c->dout[0]}, NULL);
}

static stk_status lower_softmax(stk_lower *l) { return lower_rows(l, STK_K_SOFTMAX, false); }

const stk_opdef stk_opdef_softmax = {.flags = STK_OPF_WIDEN,
                                     .infer = infer_rows,
                                     .grad = grad_softmax,
                                     .lower = lower_softmax,
                                     .cost = cost_rows};

/* ---- softmax_grad(y, dy) = y (dy - sum(dy y)) -------------------------------------------------------------- */

static void compose_softmax_grad(stk_graph *g, const stk_node *node, const stk_val *in,
                                 stk_val *out)
{
    (void)node;
    out[0] = stk_g_mul(g, in[0], stk_g_sub(g, in[1], sum_rows(g, stk_g_mul(g, in[1], in[0]))));
}

static void grad_softmax_grad(stk_grad *c) { stk_grad_compose(c, compose_softmax_grad, 1); }
static stk_status lower_softmax_grad(stk_lower *l)
{
    return lower_rows(l, STK_K_SOFTMAX_GRAD, false);
}

const stk_opdef stk_opdef_softmax_grad = {.flags = STK_OPF_WIDEN,
                                          .infer = infer_rows,
                                          .grad = grad_softmax_grad,
                                          .lower = lower_softmax_grad,
                                          .cost = cost_rows};

/* ---- log_softmax ---------------------------------------------------------------------------------------------- */

static void grad_log_softmax(stk_grad *c)
{
    c->din[0] =
        stk_g_apply(c->g, STK_OP_LOG_SOFTMAX_GRAD, 2, (stk_val[]){c->node.out, c->dout[0]}, NULL);
}

static stk_status lower_log_softmax(stk_lower *l) { return lower_rows(l, STK_K_SOFTMAX, true); }

const stk_opdef stk_opdef_log_softmax = {.flags = STK_OPF_WIDEN,
                                         .infer = infer_rows,
                                         .grad = grad_log_softmax,
                                         .lower = lower_log_softmax,
                                         .cost = cost_rows};

/* ---- log_softmax_grad(y, dy) = dy - e^y sum(dy) ------------------------------------------------------------------- */

static void compose_log_softmax_grad(stk_graph *g, const stk_node *node, const stk_val *in,
                                     stk_val *out)
{
    (void)node;
    out[0] = stk_g_sub(g, in[1], stk_g_mul(g, stk_g_exp(g, in[0]), sum_rows(g, in[1])));
}

static void grad_log_softmax_grad(stk_grad *c) { stk_grad_compose(c, compose_log_softmax_grad, 1); }
static stk_status lower_log_softmax_grad(stk_lower *l)
{
    return lower_rows(l, STK_K_SOFTMAX_GRAD, true);
}

const stk_opdef stk_opdef_log_softmax_grad = {.flags = STK_OPF_WIDEN,
                                              .infer = infer_rows,
                                              .grad = grad_log_softmax_grad,
                                              .lower = lower_log_softmax_grad,
                                              .cost = cost_rows};

/* ---- cross entropy --------------------------------------------------------------------------------------------------- */

static stk_status infer_xent(stk_infer *c)
{
    const stk_type *x = c->in[0], *t = c->in[1];
    bool sparse = c->node->op == STK_OP_SPARSE_XENT;
    if (!stk_dtype_is_float(x->dtype))
        return stk_infer_fail(c, STK_ERR_DTYPE, "logits need a float type; cast to float32 first");
    if (x->shape.rank < 1 || x->shape.dim[x->shape.rank - 1] < 1)
        return stk_infer_fail(c, STK_ERR_SHAPE, "logits need a last axis of at least one class");
    c->out[0] = *x;
    c->out[0].shape.rank--;
    c->out[1] = *x;
    if (sparse && t->dtype != STK_I32 && t->dtype != STK_I64)
        return stk_infer_fail(c, STK_ERR_DTYPE,
                              "labels are class numbers: cast them to int32 or int64");
    if (!sparse && t->dtype != x->dtype)
        return stk_infer_fail(c, STK_ERR_DTYPE, "labels must have the logits' dtype %s; cast them",
                              stk_dtype_name(x->dtype));
    const stk_shape *want = &c->out[sparse ? 0 : 1].shape;
    if (!stk_shape_equal(&t->shape, want))
        return stk_infer_fail(c, STK_ERR_SHAPE, "labels must have shape %s", STK_SHAPE_TEXT(want));
    return STK_OK;
}

static stk_status lower_xent(stk_lower *l)
{
    const stk_type *x = stk_type_of(l->g, l->node->in[0]);
    stk_xent_params *p = stk_lower_params(l, STK_K_XENT, sizeof *p);
    if (!p) return STK_ERR_MEMORY;
    p->rows = stk_outer_count(&x->shape, 1);
    p->n = stk_inner_count(&x->shape, 1);
    p->dtype = x->dtype;
    p->label = stk_type_of(l->g, l->node->in[1])->dtype;
    return STK_OK;
}

/* Output 1 (softmax * sum(labels) - labels) of dense labels, for gradients of gradients. */
static void compose_xent(stk_graph *g, const stk_node *node, const stk_val *in, stk_val *out)
{
    (void)node;
    stk_val p = stk_g_apply(g, STK_OP_SOFTMAX, 1, in, NULL);
    out[1] = stk_g_sub(g, stk_g_mul(g, p, sum_rows(g, in[1])), in[1]);
}

static void grad_softmax_xent(stk_grad *c)
{
    stk_graph *g = c->g;
    stk_val dloss = c->dout[0];
    if (dloss) {
        dloss = stk_g_expand_dims(g, dloss, -1);
        c->din[0] = stk_g_mul(g, c->node.out + 1, dloss);
        stk_val log_p = stk_g_apply(g, STK_OP_LOG_SOFTMAX, 1, c->node.in, NULL);
        c->din[1] = stk_g_neg(g, stk_g_mul(g, log_p, dloss));
    }
    if (c->dout[1]) stk_grad_compose(c, compose_xent, 2);
}

const stk_opdef stk_opdef_softmax_xent = {.flags = STK_OPF_WIDEN,
                                          .infer = infer_xent,
                                          .grad = grad_softmax_xent,
                                          .lower = lower_xent,
                                          .cost = cost_rows};

/* The derivative of output 1 is that of softmax, but 0 in rows whose label is no class. */
static void compose_sparse_xent(stk_graph *g, const stk_node *node, const stk_val *in, stk_val *out)
{
    (void)node;
    stk_dtype real = stk_g_dtype(g, in[0]), label = stk_g_dtype(g, in[1]);
    stk_val zero = stk_g_scalar(g, label, 0),
            end = stk_g_scalar(g, label, (double)stk_g_dim(g, in[0], -1));
    stk_val valid = stk_g_and(g, stk_g_ge(g, in[1], zero), stk_g_lt(g, in[1], end));
    stk_val mask = stk_g_expand_dims(g, stk_g_cast(g, valid, real), -1);
    out[1] = stk_g_mul(g, stk_g_apply(g, STK_OP_SOFTMAX, 1, in, NULL), mask);
}

static void grad_sparse_xent(stk_grad *c)
{
    if (c->dout[0])
        c->din[0] = stk_g_mul(c->g, c->node.out + 1, stk_g_expand_dims(c->g, c->dout[0], -1));
    if (c->dout[1]) stk_grad_compose(c, compose_sparse_xent, 2);
}

const stk_opdef stk_opdef_sparse_xent = {.flags = STK_OPF_WIDEN,
                                         .infer = infer_xent,
                                         .grad = grad_sparse_xent,
                                         .lower = lower_xent,
                                         .cost = cost_rows};

/* ---- builders ----------------------------------------------------------------------------------------------------------- */

/* x with `axis` and the last axis exchanged; doing it twice gives x back. */
static stk_val swap_with_last(stk_graph *g, stk_val x, int32_t axis)
{
    int32_t rank = stk_g_rank(g, x), perm[STK_MAX_RANK];
    if (!stk_graph_ok(g) || axis == rank - 1) return x;
    for (int32_t i = 0; i < rank; i++) perm[i] = i;
    perm[axis] = rank - 1;
    perm[rank - 1] = axis;
    return stk_g_transpose(g, x, perm);
}

static stk_val along(stk_graph *g, stk_op op, stk_val x, int32_t axis)
{
    if (!stk_graph_ok(g)) return 0;
    axis = stk_g_axis(g, stk_op_name(op), x, axis);
    if (axis < 0) return 0;
    stk_val last = swap_with_last(g, x, axis);
    return swap_with_last(g, stk_g_apply(g, op, 1, &last, NULL), axis);
}

stk_val stk_g_softmax(stk_graph *g, stk_val x, int32_t axis)
{
    return along(g, STK_OP_SOFTMAX, x, axis);
}
stk_val stk_g_log_softmax(stk_graph *g, stk_val x, int32_t axis)
{
    return along(g, STK_OP_LOG_SOFTMAX, x, axis);
}

stk_val stk_g_softmax_cross_entropy(stk_graph *g, stk_val logits, stk_val labels, double smoothing)
{
    if (!stk_graph_ok(g)) return 0;
    if (!(smoothing >= 0 && smoothing <= 1))
        return stk_g_fail(g, STK_ERR_RANGE,
                          "softmax_cross_entropy: label smoothing %g; needs 0 to 1", smoothing);
    if (smoothing > 0) { /* a share of each label is spread over all classes */
        stk_dtype real = stk_g_dtype(g, labels);
        stk_val keep = stk_g_scalar(g, real, 1 - smoothing);
        stk_val each =
            stk_g_scalar(g, real, smoothing / (double)stk_max_i64(stk_g_dim(g, labels, -1), 1));
        labels = stk_g_add(g, stk_g_mul(g, labels, keep), each);
    }
    return stk_g_apply(g, STK_OP_SOFTMAX_XENT, 2, (stk_val[]){logits, labels}, NULL);
}

stk_val stk_g_sparse_softmax_cross_entropy(stk_graph *g, stk_val logits, stk_val labels)
{
    stk_dtype t = stk_g_dtype(g, labels);
    char kind = stk_dtype_kind(t);
    if (stk_graph_ok(g) && stk_val_ok(g, labels) && (kind == 'I' || kind == 'U') && t != STK_I32)
        labels = stk_g_cast(g, labels, STK_I64);
    return stk_g_apply(g, STK_OP_SPARSE_XENT, 2, (stk_val[]){logits, labels}, NULL);
}

/* max(x, 0) - x z + log(1 + e^-|x|). Written with selects on x >= 0, so that its derivative is sigmoid(x) - z at
 * x = 0 as well, where those of max and |x| are not. */
stk_val stk_g_sigmoid_cross_entropy(stk_graph *g, stk_val logits, stk_val labels)
{
    stk_val zero = stk_g_scalar(g, stk_g_dtype(g, logits), 0);
    stk_val up = stk_g_ge(g, logits, zero);
    stk_val positive = stk_g_select(g, up, logits, zero);
    stk_val minus_abs = stk_g_select(g, up, stk_g_neg(g, logits), logits);
    return stk_g_add(g, stk_g_sub(g, positive, stk_g_mul(g, logits, labels)),
                     stk_g_softplus(g, minus_abs));
}

/* ---- sparsemax: from sorted values and their running sums, as Keras computes it --------------------------------------- */

stk_val stk_g_sparsemax(stk_graph *g, stk_val x, int32_t axis)
{
    if (!stk_graph_ok(g) || !stk_val_ok(g, x)) return 0;
    axis = stk_g_axis(g, "sparsemax", x, axis);
    if (axis < 0) return 0;
    stk_shape s = stk_type_of(g, x)->shape, line = {.rank = s.rank};
    stk_dtype dtype = stk_g_dtype(g, x);
    for (int32_t i = 0; i < s.rank; i++) line.dim[i] = i == axis ? s.dim[i] : 1;
    stk_val one = stk_g_scalar(g, dtype, 1), zero = stk_g_scalar(g, dtype, 0);
    stk_val sorted = stk_g_sort(g, x, axis, true),
            sums = stk_g_cumsum(g, sorted, axis, false, false);
    stk_val rank = stk_g_add(g, stk_g_iota(g, dtype, line.rank, line.dim, axis), one);
    stk_val excess = stk_g_sub(g, sorted, stk_g_div(g, stk_g_sub(g, sums, one), rank));
    stk_val support = stk_g_gt(g, excess, zero);
    stk_val count = stk_g_sum(g, stk_g_cast(g, support, dtype), 1, &axis, true);
    stk_val total = stk_g_sum(g, stk_g_select(g, support, sums, zero), 1, &axis, true);
    stk_val threshold = stk_g_div(g, stk_g_sub(g, total, one), count);
    return stk_g_relu(g, stk_g_sub(g, x, threshold));
}
