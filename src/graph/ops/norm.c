/* Norms by row: layer norm and root-mean-square norm over the last axes, group norm, unit length. Each is one fused
 * op with a fused gradient; statistics are outputs because the gradient needs them. Batch norm is in
 * batch_norm.c. */
#include "graph/ir/compose.h"
#include "stoker/nn.h"

#include <math.h>

static stk_shape leading(const stk_shape *s, int32_t axes)
{
    stk_shape out = *s;
    out.rank -= axes;
    return out;
}

static stk_shape trailing(const stk_shape *s, int32_t axes)
{
    stk_shape out = {.rank = axes};
    for (int32_t i = 0; i < axes; i++) out.dim[i] = s->dim[s->rank - axes + i];
    return out;
}

static stk_status check_float(stk_infer *c)
{
    if (!stk_dtype_is_float(c->in[0]->dtype))
        return stk_infer_fail(c, STK_ERR_DTYPE, "needs a float type; cast to float32 first");
    for (int32_t i = 1; i < c->node->nin; i++)
        if (c->in[i]->dtype != c->in[0]->dtype)
            return stk_infer_fail(c, STK_ERR_DTYPE,
                                  "inputs need one dtype; cast one of them (stk_g_cast)");
    return STK_OK;
}

/* Input i must have this shape. */
static stk_status check_input(stk_infer *c, int32_t i, const char *what, const stk_shape *want)
{
    if (stk_shape_equal(&c->in[i]->shape, want)) return STK_OK;
    return stk_infer_fail(c, STK_ERR_SHAPE, "%s must have shape %s", what, STK_SHAPE_TEXT(want));
}

/* ---- row norms: layer_norm and rms_norm ------------------------------------------------------------
 * attributes: axes (how many last axes), has gamma, has beta; eps */

enum { AXES, HAS_GAMMA, HAS_BETA, ROW_INTS };

static stk_status check_row_attributes(stk_infer *c, const stk_type *x)
{
    const stk_node *n = c->node;
    bool good = n->nints == ROW_INTS && n->nreals == 1 && (n->ints[HAS_GAMMA] | 1) == 1 &&
                (n->ints[HAS_BETA] | 1) == 1;
    if (!good)
        return stk_infer_fail(c, STK_ERR_ARGUMENT,
                              "needs the attributes axes, gamma (0, 1), beta (0, 1) and eps");
    if (n->ints[HAS_BETA] && (n->op == STK_OP_RMS_NORM || n->op == STK_OP_RMS_NORM_GRAD))
        return stk_infer_fail(c, STK_ERR_ARGUMENT, "has no beta; add it afterwards");
    if (n->ints[AXES] < 1 || n->ints[AXES] > x->shape.rank)
        return stk_infer_fail(c, STK_ERR_RANGE,
                              "normalises the last %lld axes; 1 to %d are possible",
                              (long long)n->ints[AXES], x->shape.rank);
    if (!(n->reals[0] >= 0) || isinf(n->reals[0]))
        return stk_infer_fail(c, STK_ERR_RANGE, "eps is %g; needs a number >= 0", n->reals[0]);
    return STK_OK;
}

static stk_status infer_row_norm(stk_infer *c)
{
    const stk_node *n = c->node;
    const stk_type *x = c->in[0];
    bool center = n->op == STK_OP_LAYER_NORM;
    STK_TRY(check_row_attributes(c, x));
    STK_TRY(check_float(c));
    int32_t axes = (int32_t)n->ints[AXES],
            want = 1 + (int32_t)(n->ints[HAS_GAMMA] + n->ints[HAS_BETA]);
    if (n->nin != want)
        return stk_infer_fail(c, STK_ERR_ARGUMENT, "takes %d inputs with these attributes", want);
    stk_shape inner = trailing(&x->shape, axes), outer = leading(&x->shape, axes);
    if (stk_shape_count(&inner) < 1)
        return stk_infer_fail(c, STK_ERR_SHAPE, "the normalised axes hold no element");
    for (int32_t i = 1; i < n->nin; i++)
        STK_TRY(check_input(c, i, i == 1 && n->ints[HAS_GAMMA] ? "gamma" : "beta", &inner));
    c->out[0] = *x;
    c->out[1] = (stk_type){x->dtype, outer};
    if (center) c->out[2] = c->out[1];
    return STK_OK;
}

/* The statistics as columns, x as rows. */
typedef struct rows {
    stk_val dy, x, mean, rstd, gamma;
    int64_t count, n;
} rows;

static void compose_row_norm(stk_graph *g, const stk_node *node, const stk_val *in, stk_val *out)
{
    int32_t axes = (int32_t)node->ints[AXES], last[] = {-1};
    bool center = node->op == STK_OP_LAYER_NORM;
    stk_shape lead = leading(&stk_type_of(g, in[0])->shape, axes);
    stk_val x = stk_g_as_rows(g, in[0], axes), mean = 0;
    if (center) {
        mean = stk_g_mean(g, x, 1, last, true);
        x = stk_g_sub(g, x, mean);
        out[1] = stk_g_reshape(g, mean, lead.rank, lead.dim);
    }
    stk_val var = stk_g_mean(g, stk_g_square(g, x), 1, last, true);
    stk_val eps = stk_g_scalar(g, stk_g_dtype(g, x), node->reals[0]);
    stk_val rstd = stk_g_rsqrt(g, stk_g_add(g, var, eps));
    out[center ? 2 : 1] = stk_g_reshape(g, rstd, lead.rank, lead.dim);
}

static void grad_row_norm(stk_grad *c)
{
    stk_graph *g = c->g;
    bool center = c->node.op == STK_OP_LAYER_NORM, gamma = c->node.ints[HAS_GAMMA],
         beta = c->node.ints[HAS_BETA];
    if (c->dout[0]) {
        stk_val in[5] = {c->dout[0], c->node.in[0]};
        int32_t n = 2;
        if (gamma) in[n++] = c->node.in[1];
        in[n++] = c->node.out + 1;
        if (center) in[n++] = c->node.out + 2;
        stk_attrs attrs = {.ints = c->node.ints,
                           .nints = c->node.nints,
                           .reals = c->node.reals,
                           .nreals = c->node.nreals};
        stk_val d =
            stk_g_apply(g, center ? STK_OP_LAYER_NORM_GRAD : STK_OP_RMS_NORM_GRAD, n, in, &attrs);
        if (!d) return;
        c->din[0] = d;
        if (gamma) c->din[1] = d + 1;
        if (beta) c->din[1 + gamma] = d + 2;
    }
    bool statistics = c->dout[1] || (center && c->dout[2]);
    if (statistics) stk_grad_compose(c, compose_row_norm, ~1u);
}

static stk_status lower_row(stk_lower *l, stk_kernel kernel, stk_val of, bool center)
{
    const stk_type *x = stk_type_of(l->g, of);
    const stk_node *n = l->node;
    stk_row_norm_params *p = stk_lower_params(l, kernel, sizeof *p);
    if (!p) return STK_ERR_MEMORY;
    int32_t axes = (int32_t)n->ints[AXES];
    p->rows = stk_outer_count(&x->shape, axes);
    p->n = stk_inner_count(&x->shape, axes);
    p->eps = n->reals[0];
    p->center = center;
    p->gamma = (int32_t)n->ints[HAS_GAMMA];
    p->beta = (int32_t)n->ints[HAS_BETA];
    p->dtype = x->dtype;
    return STK_OK;
}

static stk_status lower_row_norm(stk_lower *l)
{
    return lower_row(l, STK_K_ROW_NORM, l->node->in[0], l->node->op == STK_OP_LAYER_NORM);
}

static double cost_norm(const stk_graph *g, const stk_node *n)
{
    return 8.0 * (double)stk_shape_count(&stk_type_of(g, n->in[0])->shape);
}

const stk_opdef stk_opdef_layer_norm = {.flags = STK_OPF_WIDEN,
                                        .infer = infer_row_norm,
                                        .grad = grad_row_norm,
                                        .lower = lower_row_norm,
                                        .cost = cost_norm};
const stk_opdef stk_opdef_rms_norm = {.flags = STK_OPF_WIDEN,
                                      .infer = infer_row_norm,
                                      .grad = grad_row_norm,
                                      .lower = lower_row_norm,
                                      .cost = cost_norm};

/* ---- their gradients: (dy, x, [gamma], [mean], rstd) -> dx, dgamma, [dbeta] ---------------------------------- */

static stk_status infer_row_norm_grad(stk_infer *c)
{
    const stk_node *n = c->node;
    const stk_type *x = c->in[1];
    bool center = n->op == STK_OP_LAYER_NORM_GRAD;
    STK_TRY(check_row_attributes(c, x));
    STK_TRY(check_float(c));
    int32_t axes = (int32_t)n->ints[AXES], gamma = (int32_t)n->ints[HAS_GAMMA],
            want = 3 + center + gamma;
    if (n->nin != want)
        return stk_infer_fail(c, STK_ERR_ARGUMENT, "takes %d inputs with these attributes", want);
    stk_shape inner = trailing(&x->shape, axes), outer = leading(&x->shape, axes);
    STK_TRY(check_input(c, 0, "dy", &x->shape));
    if (gamma) STK_TRY(check_input(c, 2, "gamma", &inner));
    for (int32_t i = 2 + gamma; i < n->nin; i++) STK_TRY(check_input(c, i, "a statistic", &outer));
    c->out[0] = *x;
    c->out[1] = (stk_type){x->dtype, inner};
    if (center) c->out[2] = c->out[1];
    return STK_OK;
}

static rows as_rows(stk_graph *g, const stk_node *node, const stk_val *in)
{
    int32_t axes = (int32_t)node->ints[AXES], next = 2;
    stk_shape s = stk_type_of(g, in[1])->shape;
    rows r = {.count = stk_outer_count(&s, axes), .n = stk_inner_count(&s, axes)};
    int64_t column[] = {r.count, 1}, row[] = {1, r.n};
    r.dy = stk_g_as_rows(g, in[0], axes);
    r.x = stk_g_as_rows(g, in[1], axes);
    if (node->ints[HAS_GAMMA]) r.gamma = stk_g_reshape(g, in[next++], 2, row);
    if (node->op == STK_OP_LAYER_NORM_GRAD) r.mean = stk_g_reshape(g, in[next++], 2, column);
    r.rstd = stk_g_reshape(g, in[next], 2, column);
    return r;
}

/* With h = (x - mean) rstd and e = dy gamma: dx = rstd (e - mean(e) - h mean(e h)); rms has no mean(e). */
static void compose_row_norm_grad(stk_graph *g, const stk_node *node, const stk_val *in,
                                  stk_val *out)
{
    stk_shape s = stk_type_of(g, in[1])->shape;
    stk_shape inner = trailing(&s, (int32_t)node->ints[AXES]);
    rows r = as_rows(g, node, in);
    int32_t down[] = {0}, across[] = {1};
    stk_val h = stk_g_mul(g, r.mean ? stk_g_sub(g, r.x, r.mean) : r.x, r.rstd);
    stk_val e = r.gamma ? stk_g_mul(g, r.dy, r.gamma) : r.dy;
    stk_val slope = stk_g_mean(g, stk_g_mul(g, e, h), 1, across, true);
    stk_val d = stk_g_sub(g, e, stk_g_mul(g, h, slope));
    if (r.mean) d = stk_g_sub(g, d, stk_g_mean(g, e, 1, across, true));
    out[0] = stk_g_reshape(g, stk_g_mul(g, d, r.rstd), s.rank, s.dim);
    out[1] = stk_g_reshape(g, stk_g_sum(g, stk_g_mul(g, r.dy, h), 1, down, false), inner.rank,
                           inner.dim);
    if (r.mean)
        out[2] = stk_g_reshape(g, stk_g_sum(g, r.dy, 1, down, false), inner.rank, inner.dim);
}

static void grad_row_norm_grad(stk_grad *c) { stk_grad_compose(c, compose_row_norm_grad, ~0u); }

static stk_status lower_row_norm_grad(stk_lower *l)
{
    return lower_row(l, STK_K_ROW_NORM_GRAD, l->node->in[1], l->node->op == STK_OP_LAYER_NORM_GRAD);
}

const stk_opdef stk_opdef_layer_norm_grad = {.flags = STK_OPF_WIDEN,
                                             .infer = infer_row_norm_grad,
                                             .grad = grad_row_norm_grad,
                                             .lower = lower_row_norm_grad,
                                             .cost = cost_norm};
const stk_opdef stk_opdef_rms_norm_grad = {.flags = STK_OPF_WIDEN,
                                           .infer = infer_row_norm_grad,
                                           .grad = grad_row_norm_grad,
                                           .lower = lower_row_norm_grad,
                                           .cost = cost_norm};

static stk_val row_norm(stk_graph *g, stk_op op, stk_val x, stk_val gamma, stk_val beta,
                        int32_t axes, double eps)
{
    stk_val in[3] = {x};
    int32_t n = 1;
    if (gamma) in[n++] = gamma;
    if (beta) in[n++] = beta;
    int64_t ints[ROW_INTS] = {axes, gamma != 0, beta != 0};
    return stk_g_apply(g, op, n, in,
                       &(stk_attrs){.ints = ints, .nints = ROW_INTS, .reals = &eps, .nreals = 1});
}

stk_val stk_g_layer_norm(stk_graph *g, stk_val x, stk_val gamma, stk_val beta, int32_t axes,
                         double eps)
{
    return row_norm(g, STK_OP_LAYER_NORM, x, gamma, beta, axes, eps);
}

stk_val stk_g_rms_norm(stk_graph *g, stk_val x, stk_val gamma, int32_t axes, double eps)
{
    return row_norm(g, STK_OP_RMS_NORM, x, gamma, 0, axes, eps);
}

/* ---- group norm: (x, gamma, beta) -> y, mean, rstd; attributes: groups; eps ------------------------------------- */

static stk_status check_groups(stk_infer *c, const stk_type *x, stk_shape *channels,
                               stk_shape *statistics)
{
    const stk_node *n = c->node;
    STK_TRY(check_float(c));
    if (x->shape.rank < 2)
        return stk_infer_fail(c, STK_ERR_SHAPE, "x needs at least 2 axes: batch, ..., channels");
    int64_t width = x->shape.dim[x->shape.rank - 1], groups = n->nints == 1 ? n->ints[0] : 0;
    if (groups < 1 || width < 1 || width % groups)
        return stk_infer_fail(c, STK_ERR_SHAPE, "%lld groups do not divide %lld channels",
                              (long long)groups, (long long)width);
    if (n->nreals != 1 || !(n->reals[0] >= 0) || isinf(n->reals[0]))
        return stk_infer_fail(c, STK_ERR_RANGE, "eps must be a number >= 0");
    *channels = (stk_shape){.rank = 1, .dim = {width}};
    *statistics = (stk_shape){.rank = 2, .dim = {x->shape.dim[0], groups}};
    if (stk_shape_count(&x->shape) == 0 && x->shape.dim[0] != 0)
        return stk_infer_fail(c, STK_ERR_SHAPE, "a group holds no element");
    return STK_OK;
}

static stk_status infer_group_norm(stk_infer *c)
{
    stk_shape channels, statistics;
    STK_TRY(check_groups(c, c->in[0], &channels, &statistics));
    STK_TRY(check_input(c, 1, "gamma", &channels));
    STK_TRY(check_input(c, 2, "beta", &channels));
    c->out[0] = *c->in[0];
    c->out[1] = c->out[2] = (stk_type){c->in[0]->dtype, statistics};
    return STK_OK;
}

static stk_status infer_group_norm_grad(stk_infer *c)
{
    stk_shape channels, statistics;
    STK_TRY(check_groups(c, c->in[1], &channels, &statistics));
    STK_TRY(check_input(c, 0, "dy", &c->in[1]->shape));
    STK_TRY(check_input(c, 2, "gamma", &channels));
    STK_TRY(check_input(c, 3, "mean", &statistics));
    STK_TRY(check_input(c, 4, "rstd", &statistics));
    c->out[0] = *c->in[1];
    c->out[1] = c->out[2] = (stk_type){c->in[1]->dtype, channels};
    return STK_OK;
}

static stk_status lower_groups(stk_lower *l, stk_kernel kernel, stk_val of)
{
    const stk_type *x = stk_type_of(l->g, of);
    stk_group_norm_params *p = stk_lower_params(l, kernel, sizeof *p);
    if (!p) return STK_ERR_MEMORY;
    p->images = x->shape.dim[0];
    p->channels = x->shape.dim[x->shape.rank - 1];
    p->rows = 1;
    for (int32_t i = 1; i + 1 < x->shape.rank; i++) p->rows *= x->shape.dim[i];
    p->groups = l->node->ints[0];
    p->eps = l->node->reals[0];
    p->dtype = x->dtype;
    return STK_OK;
}

static stk_status lower_group_norm(stk_lower *l)
{
    return lower_groups(l, STK_K_GROUP_NORM, l->node->in[0]);
}
static stk_status lower_group_norm_grad(stk_lower *l)
{
    return lower_groups(l, STK_K_GROUP_NORM_GRAD, l->node->in[1]);
}

/* x as [images, rows, groups, channels of a group]; what is reduced are axes 1 and 3. */
static stk_val as_groups(stk_graph *g, stk_val x, int64_t groups)
{
    stk_shape s = stk_type_of(g, x)->shape;
    int64_t width = s.dim[s.rank - 1];
    return stk_g_reshape(
        g, x, 4,
        (int64_t[]){s.dim[0], stk_inner_count(&s, s.rank - 1) / width, groups, width / groups});
}
static const int32_t within_group[] = {1, 3};

static stk_val per_group(stk_graph *g, stk_val statistic)
{
    stk_shape s = stk_type_of(g, statistic)->shape;
    return stk_g_reshape(g, statistic, 4, (int64_t[]){s.dim[0], 1, s.dim[1], 1});
}

static void compose_group_norm(stk_graph *g, const stk_node *node, const stk_val *in, stk_val *out)
{
    stk_val x = as_groups(g, in[0], node->ints[0]), mean = stk_g_mean(g, x, 2, within_group, true);
    stk_val var = stk_g_mean(g, stk_g_square(g, stk_g_sub(g, x, mean)), 2, within_group, true);
    stk_val rstd =
        stk_g_rsqrt(g, stk_g_add(g, var, stk_g_scalar(g, stk_g_dtype(g, x), node->reals[0])));
    int64_t shape[] = {stk_g_dim(g, in[0], 0), node->ints[0]};
    out[1] = stk_g_reshape(g, mean, 2, shape);
    out[2] = stk_g_reshape(g, rstd, 2, shape);
}

static void grad_group_norm(stk_grad *c)
{
    stk_graph *g = c->g;
    if (c->dout[0]) {
        stk_val in[] = {c->dout[0], c->node.in[0], c->node.in[1], c->node.out + 1, c->node.out + 2};
        stk_attrs attrs = {.ints = c->node.ints, .nints = 1, .reals = c->node.reals, .nreals = 1};
        stk_val d = stk_g_apply(g, STK_OP_GROUP_NORM_GRAD, 5, in, &attrs);
        for (int32_t i = 0; d && i < 3; i++) c->din[i] = d + i;
    }
    if (c->dout[1] || c->dout[2]) stk_grad_compose(c, compose_group_norm, ~1u);
}

static void compose_group_norm_grad(stk_graph *g, const stk_node *node, const stk_val *in,
                                    stk_val *out)
{
    stk_shape s = stk_type_of(g, in[1])->shape;
    int64_t groups = node->ints[0], width = s.dim[s.rank - 1];
    int32_t down[] = {0, 1};
    stk_val dy = as_groups(g, in[0], groups), x = as_groups(g, in[1], groups);
    stk_val gamma = stk_g_reshape(g, in[2], 4, (int64_t[]){1, 1, groups, width / groups});
    stk_val mean = per_group(g, in[3]), rstd = per_group(g, in[4]);
    stk_val h = stk_g_mul(g, stk_g_sub(g, x, mean), rstd), e = stk_g_mul(g, dy, gamma);
    stk_val slope = stk_g_mean(g, stk_g_mul(g, e, h), 2, within_group, true);
    stk_val d = stk_g_sub(g, stk_g_sub(g, e, stk_g_mean(g, e, 2, within_group, true)),
                          stk_g_mul(g, h, slope));
    out[0] = stk_g_reshape(g, stk_g_mul(g, d, rstd), s.rank, s.dim);
    out[1] = stk_g_reshape(g, stk_g_sum(g, stk_g_mul(g, dy, h), 2, down, false), 1, &width);
    out[2] = stk_g_reshape(g, stk_g_sum(g, dy, 2, down, false), 1, &width);
}

static void grad_group_norm_grad(stk_grad *c) { stk_grad_compose(c, compose_group_norm_grad, ~0u); }

const stk_opdef stk_opdef_group_norm = {.flags = STK_OPF_WIDEN,
                                        .infer = infer_group_norm,
                                        .grad = grad_group_norm,
                                        .lower = lower_group_norm,
                                        .cost = cost_norm};
const stk_opdef stk_opdef_group_norm_grad = {.flags = STK_OPF_WIDEN,
                                             .infer = infer_group_norm_grad,
                                             .grad = grad_group_norm_grad,
                                             .lower = lower_group_norm_grad,
                                             .cost = cost_norm};

/* v is 0 (none) or one number per channel of x. */
static bool is_per_channel(const stk_graph *g, stk_val x, stk_val v)
{
    stk_type want = {stk_g_dtype(g, x), {.rank = 1, .dim = {stk_g_dim(g, x, -1)}}};
    return !v || (stk_val_ok(g, v) && stk_type_equal(stk_type_of(g, v), &want));
}

/* x[batch, 1.., channels] has groups that are rows: each is a layer norm, which is faster there. */
static stk_val group_norm_of_rows(stk_graph *g, stk_val x, stk_val gamma, stk_val beta,
                                  int64_t groups, double eps)
{
    stk_shape s = stk_type_of(g, x)->shape;
    stk_val y = stk_g_reshape(g, x, 3, (int64_t[]){s.dim[0], groups, s.dim[s.rank - 1] / groups});
    y = stk_g_reshape(g, stk_g_layer_norm(g, y, 0, 0, 1, eps), s.rank, s.dim);
    if (gamma) y = stk_g_mul(g, y, gamma);
    return beta ? stk_g_add(g, y, beta) : y;
}

stk_val stk_g_group_norm(stk_graph *g, stk_val x, stk_val gamma, stk_val beta, int32_t groups,
                         double eps)
{
    if (!stk_graph_ok(g)) return 0;
    int64_t width = stk_g_dim(g, x, -1), count = groups;
    bool fits = stk_g_rank(g, x) >= 2 && groups > 0 && width > 0 && width % groups == 0 &&
                is_per_channel(g, x, gamma) && is_per_channel(g, x, beta);
    if (fits && stk_shape_count(&stk_type_of(g, x)->shape) == stk_g_dim(g, x, 0) * width)
        return group_norm_of_rows(g, x, gamma, beta, groups, eps);
    if (!gamma) gamma = stk_g_fill(g, stk_g_dtype(g, x), 1, &width, 1);
    if (!beta) beta = stk_g_fill(g, stk_g_dtype(g, x), 1, &width, 0);
    return stk_g_apply(g, STK_OP_GROUP_NORM, 3, (stk_val[]){x, gamma, beta},
                       &(stk_attrs){.ints = &count, .nints = 1, .reals = &eps, .nreals = 1});
}

/* ---- unit length ------------------------------------------------------------------------------------------------------ */

stk_val stk_g_unit_norm(stk_graph *g, stk_val x, int32_t n, const int32_t *axes, double eps)
{
    if (!stk_graph_ok(g)) return 0;
    if (!(eps > 0))
        return stk_g_fail(g, STK_ERR_RANGE, "unit_norm: eps is %g; needs a number > 0, as 1e-12",
                          eps);
    stk_val length2 = stk_g_sum(g, stk_g_square(g, x), n, axes, true);
    stk_val least = stk_g_scalar(g, stk_g_dtype(g, x), eps * eps);
    return stk_g_mul(g, x, stk_g_rsqrt(g, stk_g_max(g, length2, least)));
}
