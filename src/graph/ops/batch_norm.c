/* Batch norm over the last axis (channels), with statistics over all the others.
 *
 * Forward it is two passes over x: `moments` (a parallel reduction), then y = (x - mean) * scale + beta, which is
 * left as elementwise ops so that it fuses with the activation behind it. Backward it is two passes over (dy, x):
 * `column_sums`, then one elementwise chain for dx. The gradient rule that makes it so sits on `scale_shift`, an op
 * whose value is its first input (the elementwise result) and which the compiler drops. */
#include "graph/ir/compose.h"
#include "stoker/nn.h"

#include <math.h>

static int64_t last_dim(const stk_shape *s) { return s->rank ? s->dim[s->rank - 1] : 0; }

static stk_status check_columns(stk_infer *c, const stk_type *x)
{
    if (!stk_dtype_is_float(x->dtype))
        return stk_infer_fail(c, STK_ERR_DTYPE, "needs a float type; cast to float32 first");
    if (x->shape.rank < 1)
        return stk_infer_fail(c, STK_ERR_SHAPE, "needs at least one axis, the channels");
    return STK_OK;
}

/* Of the numbers per channel: statistics of half types are float32. */
static stk_dtype wide_dtype(stk_dtype d) { return d == STK_F16 || d == STK_BF16 ? STK_F32 : d; }

static stk_status check_channel_inputs(stk_infer *c, int32_t first, const stk_type *x)
{
    stk_type want = {x->dtype, {.rank = 1, .dim = {last_dim(&x->shape)}}};
    for (int32_t i = first; i < c->node->nin; i++)
        if (!stk_type_equal(c->in[i], &want))
            return stk_infer_fail(c, STK_ERR_SHAPE, "input %d must be %s, one number per channel",
                                  i, STK_TYPE_TEXT(&want));
    return STK_OK;
}

static void fill_columns(const stk_type *x, stk_moments_params *p)
{
    p->rows = stk_outer_count(&x->shape, 1);
    p->n = stk_inner_count(&x->shape, 1);
    p->dtype = x->dtype;
}

static stk_status lower_columns(stk_lower *l, stk_kernel kernel)
{
    stk_moments_params *p = stk_lower_params(l, kernel, sizeof *p);
    if (!p) return STK_ERR_MEMORY;
    fill_columns(stk_type_of(l->g, l->node->in[0]), p);
    return STK_OK;
}

/* Does the device take the columns of bfloat16 as they are? */
static bool half_columns(const stk_graph *g, const stk_node *n, stk_device *device)
{
    char why[128];
    stk_moments_params p = {0};
    fill_columns(stk_type_of(g, n->in[0]), &p);
    p.dtype = STK_BF16;
    return device->vt->kernels.supports(
        device, n->op == STK_OP_MOMENTS ? STK_K_MOMENTS : STK_K_COLUMN_SUMS, &p, why, sizeof why);
}

static double cost_columns(const stk_graph *g, const stk_node *n)
{
    return 4.0 * (double)stk_shape_count(&stk_type_of(g, n->in[0])->shape);
}

/* ---- moments(x) -> mean, variance of each column ------------------------------------------------------ */

static stk_status infer_moments(stk_infer *c)
{
    const stk_type *x = c->in[0];
    STK_TRY(check_columns(c, x));
    if (stk_outer_count(&x->shape, 1) < 1)
        return stk_infer_fail(c, STK_ERR_SHAPE,
                              "no rows to take a mean over: a leading axis has size 0");
    c->out[0] = c->out[1] =
        (stk_type){wide_dtype(x->dtype), {.rank = 1, .dim = {last_dim(&x->shape)}}};
    return STK_OK;
}

/* d mean = 1/N, d variance = 2 (x - mean) / N; the mean inside the variance adds nothing, deviations sum to 0. */
static void grad_moments(stk_grad *c)
{
    stk_graph *g = c->g;
    stk_val x = c->node.in[0], dx = 0;
    stk_dtype real = stk_g_dtype(g, x);
    stk_shape s = stk_type_of(g, x)->shape;
    double n = (double)stk_outer_count(&s, 1);
    if (c->dout[1]) {
        stk_val slope = stk_g_mul(g, c->dout[1], stk_g_scalar(g, real, 2 / n));
        dx = stk_g_mul(g, stk_g_sub(g, x, c->node.out), slope);
    }
    if (c->dout[0]) dx = stk_g_plus(g, dx, stk_g_mul(g, c->dout[0], stk_g_scalar(g, real, 1 / n)));
    c->din[0] = stk_g_broadcast(g, dx, s.rank, s.dim);
}

static stk_status lower_moments(stk_lower *l) { return lower_columns(l, STK_K_MOMENTS); }

const stk_opdef stk_opdef_moments = {.flags = STK_OPF_WIDEN,
                                     .infer = infer_moments,
                                     .grad = grad_moments,
                                     .lower = lower_moments,
                                     .cost = cost_columns,
                                     .half = half_columns,
                                     .widened = 1};

/* ---- column_sums(dy, x, mean) -> sum of dy, sum of dy * (x - mean) ---------------------------------------- */

static stk_status infer_column_sums(stk_infer *c)
{
    STK_TRY(check_columns(c, c->in[0]));
    if (!stk_type_equal(c->in[0], c->in[1]))
        return stk_infer_fail(c, STK_ERR_SHAPE, "dy and x must have the same shape and dtype");
    const bool wide = c->in[2]->dtype == wide_dtype(c->in[0]->dtype);
    const stk_type of = {wide ? c->in[2]->dtype : c->in[0]->dtype, c->in[0]->shape};
    STK_TRY(check_channel_inputs(c, 2, &of));
    c->out[0] = c->out[1] = *c->in[2];
    return STK_OK;
}

static void grad_column_sums(stk_grad *c)
{
    stk_graph *g = c->g;
    stk_val dy = c->node.in[0], x = c->node.in[1], mean = c->node.in[2], ddy = 0;
    stk_shape s = stk_type_of(g, x)->shape;
    if (c->dout[1]) {
        ddy = stk_g_mul(g, stk_g_sub(g, x, mean), c->dout[1]);
        c->din[1] = stk_g_mul(g, dy, c->dout[1]);
        c->din[2] = stk_g_neg(g, stk_g_mul(g, c->node.out, c->dout[1]));
    }
    if (c->dout[0]) ddy = stk_g_plus(g, ddy, c->dout[0]);
    c->din[0] = stk_g_broadcast(g, ddy, s.rank, s.dim);
}

static stk_status lower_column_sums(stk_lower *l) { return lower_columns(l, STK_K_COLUMN_SUMS); }

const stk_opdef stk_opdef_column_sums = {.flags = STK_OPF_WIDEN,
                                         .infer = infer_column_sums,
                                         .grad = grad_column_sums,
                                         .lower = lower_column_sums,
                                         .cost = cost_columns,
                                         .half = half_columns,
                                         .widened = 2};

/* ---- scale_shift(y, x, mean, scale, [beta]) = y, differentiated as (x - mean) * scale + beta ----------------- */

static stk_status infer_scale_shift(stk_infer *c)
{
    STK_TRY(check_columns(c, c->in[1]));
    if (!stk_type_equal(c->in[0], c->in[1]))
        return stk_infer_fail(c, STK_ERR_SHAPE, "y and x must have the same shape and dtype");
    STK_TRY(check_channel_inputs(c, 2, c->in[1]));
    *c->out = *c->in[0];
    return STK_OK;
}

static void grad_scale_shift(stk_grad *c)
{
    stk_graph *g = c->g;
    stk_val dy = c->dout[0], x = c->node.in[1], mean = c->node.in[2], scale = c->node.in[3];
    stk_val sums = stk_g_apply(g, STK_OP_COLUMN_SUMS, 3, (stk_val[]){dy, x, mean}, NULL);
    if (!sums) return;
    c->din[1] = stk_g_mul(g, dy, scale);
    c->din[2] = stk_g_neg(g, stk_g_mul(g, scale, sums));
    c->din[3] = sums + 1;
    if (c->node.nin > 4) c->din[4] = sums;
}

static stk_status lower_scale_shift(stk_lower *l)
{
    l->alias = 1;
    return STK_OK;
}

const stk_opdef stk_opdef_scale_shift = {
    .infer = infer_scale_shift, .grad = grad_scale_shift, .lower = lower_scale_shift};

/* ---- builders ---------------------------------------------------------------------------------------------------- */

static stk_val affine(stk_graph *g, stk_val x, stk_val mean, stk_val variance, stk_val gamma,
                      stk_val beta, double eps)
{
    stk_dtype real = stk_g_dtype(g, x);
    stk_val scale = stk_g_rsqrt(g, stk_g_add(g, variance, stk_g_scalar(g, real, eps)));
    if (gamma) scale = stk_g_mul(g, scale, gamma);
    stk_val y = stk_g_mul(g, stk_g_sub(g, x, mean), scale);
    if (beta) y = stk_g_add(g, y, beta);
    return stk_g_apply(g, STK_OP_SCALE_SHIFT, beta ? 5 : 4, (stk_val[]){y, x, mean, scale, beta},
                       NULL);
}

/* v is one number per channel of x, or 0 (none). */
static bool check_per_channel(stk_graph *g, const char *what, stk_val x, int32_t axis, stk_val v)
{
    if (!v) return true;
    if (!stk_val_ok(g, v)) {
        stk_g_fail(g, STK_ERR_ARGUMENT, "batch_norm: %s is value %d, which is not in this graph",
                   what, v);
        return false;
    }
    const stk_type *t = stk_type_of(g, x);
    stk_type want = {t->dtype, {.rank = 1, .dim = {t->shape.dim[axis]}}};
    if (stk_type_equal(stk_type_of(g, v), &want)) return true;
    stk_g_fail(
        g, STK_ERR_SHAPE, "batch_norm(%s): %s is %s; needs %s, one number per channel (axis %d)",
        STK_TYPE_TEXT(t), what, STK_TYPE_TEXT(stk_type_of(g, v)), STK_TYPE_TEXT(&want), axis);
    return false;
}

static bool check_batch_norm(stk_graph *g, stk_val x, stk_val gamma, stk_val beta, int32_t *axis,
                             double eps)
{
    if (!stk_graph_ok(g)) return false;
    *axis = stk_g_axis(g, "batch_norm", x, *axis);
    if (*axis < 0) return false;
    if (!(eps >= 0) || isinf(eps)) {
        stk_g_fail(g, STK_ERR_RANGE, "batch_norm: eps is %g; needs a number >= 0", eps);
        return false;
    }
    return check_per_channel(g, "gamma", x, *axis, gamma) &&
           check_per_channel(g, "beta", x, *axis, beta);
}

/* x with the channels last, or back again. */
static stk_val channels_last(stk_graph *g, stk_val x, int32_t axis, bool back)
{
    int32_t rank = stk_g_rank(g, x), perm[STK_MAX_RANK];
    if (!stk_graph_ok(g) || axis == rank - 1) return x;
    for (int32_t i = 0; i < rank; i++) {
        int32_t moved = i < axis ? i : i < rank - 1 ? i + 1 : axis;
        if (back)
            perm[moved] = i;
        else
            perm[i] = moved;
    }
    return stk_g_transpose(g, x, perm);
}

stk_val stk_g_moments(stk_graph *g, stk_val x, stk_val *variance)
{
    if (!stk_graph_ok(g)) return 0;
    const stk_dtype given = stk_g_dtype(g, x), wide = wide_dtype(given);
    if (wide != given) x = stk_g_cast(g, x, wide); /* a half type's moments are of that type, too */
    stk_val mean = stk_g_apply(g, STK_OP_MOMENTS, 1, &x, NULL);
    if (variance) *variance = mean ? stk_g_cast(g, mean + 1, given) : 0;
    return mean ? stk_g_cast(g, mean, given) : 0;
}

stk_val stk_g_batch_norm(stk_graph *g, stk_val x, stk_val gamma, stk_val beta, int32_t axis,
                         double eps, stk_val *mean, stk_val *variance)
{
    stk_val m = 0, v = 0, *to_mean = mean ? mean : &m, *to_variance = variance ? variance : &v;
    *to_mean = *to_variance = 0;
    if (!check_batch_norm(g, x, gamma, beta, &axis, eps)) return 0;
    stk_val last = channels_last(g, x, axis, false);
    *to_mean = stk_g_moments(g, last, to_variance);
    return channels_last(g, affine(g, last, *to_mean, *to_variance, gamma, beta, eps), axis, true);
}

stk_val stk_g_batch_norm_infer(stk_graph *g, stk_val x, stk_val gamma, stk_val beta, stk_val mean,
                               stk_val variance, int32_t axis, double eps)
{
    if (!check_batch_norm(g, x, gamma, beta, &axis, eps)) return 0;
    if (!mean || !variance)
        return stk_g_fail(
            g, STK_ERR_ARGUMENT,
            "batch_norm: mean and variance are needed; without them use the training form");
    if (!check_per_channel(g, "mean", x, axis, mean) ||
        !check_per_channel(g, "variance", x, axis, variance))
        return 0;
    stk_val last = channels_last(g, x, axis, false);
    return channels_last(g, affine(g, last, mean, variance, gamma, beta, eps), axis, true);
}
