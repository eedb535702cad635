/* Activations: all are compositions of elementwise ops, which the compiler fuses into one pass. Definitions
 * and default constants are those of Keras 3.
 *
 * Branches are taken with select, and the branch not taken is fed a harmless value: otherwise an infinity there times a
 * zero gradient would be NaN. */
#include "graph/ir/op.h"
#include "stoker/nn.h"

#include <math.h>

static stk_val num(stk_graph *g, stk_val like, double v)
{
    return stk_g_scalar(g, stk_g_dtype(g, like), v);
}
static stk_val times(stk_graph *g, stk_val x, double v) { return stk_g_mul(g, x, num(g, x, v)); }
static stk_val plus(stk_graph *g, stk_val x, double v) { return stk_g_add(g, x, num(g, x, v)); }

stk_val stk_g_leaky_relu(stk_graph *g, stk_val x, double slope)
{
    return stk_g_select(g, stk_g_gt(g, x, num(g, x, 0)), x, times(g, x, slope));
}

stk_relu_options stk_relu_options_defaults(void)
{
    return (stk_relu_options){.max_value = INFINITY};
}

stk_val stk_g_relu_general(stk_graph *g, stk_val x, const stk_relu_options *options)
{
    stk_relu_options o = options ? *options : stk_relu_options_defaults();
    if (!stk_graph_ok(g)) return 0;
    if (isnan(o.max_value) || isnan(o.negative_slope) || isnan(o.threshold))
        return stk_g_fail(g, STK_ERR_RANGE, "relu_general: an option is NaN; give numbers");
    if (o.threshold == 0 && o.negative_slope == 0 && isinf(o.max_value)) return stk_g_relu(g, x);
    if (o.threshold == 0 && o.negative_slope == 0 && o.max_value == 6) return stk_g_relu6(g, x);
    stk_val above = stk_g_gt(g, x, num(g, x, o.threshold));
    stk_val low =
        o.negative_slope == 0 ? num(g, x, 0) : times(g, plus(g, x, -o.threshold), o.negative_slope);
    stk_val y = stk_g_select(g, above, x, low);
    if (isinf(o.max_value)) return y;
    stk_val top = num(g, x, o.max_value);
    return stk_g_select(g, stk_g_le(g, x, top), y, top);
}

/* x where `up`, scale * (e^x - 1) elsewhere. */
static stk_val exp_below(stk_graph *g, stk_val x, stk_val up, double scale)
{
    stk_val zero = num(g, x, 0);
    stk_val low = stk_g_expm1(g, stk_g_select(g, up, zero, x));
    return stk_g_select(g, up, x, scale == 1 ? low : times(g, low, scale));
}

stk_val stk_g_elu(stk_graph *g, stk_val x, double alpha)
{
    return exp_below(g, x, stk_g_gt(g, x, num(g, x, 0)), alpha);
}

stk_val stk_g_selu(stk_graph *g, stk_val x)
{
    const double alpha = 1.6732632423543772848170429916717,
                 scale = 1.0507009873554804934193349852946;
    /* At 0 the slope is that of the upper branch, as in Keras. */
    return times(g, exp_below(g, x, stk_g_ge(g, x, num(g, x, 0)), alpha), scale);
}

/* Continuously differentiable for every alpha: alpha (e^(x/alpha) - 1) below 0. */
stk_val stk_g_celu(stk_graph *g, stk_val x, double alpha)
{
    if (!stk_graph_ok(g)) return 0;
    if (!(alpha != 0))
        return stk_g_fail(g, STK_ERR_RANGE, "celu: alpha is %g; it divides, so not 0", alpha);
    stk_val zero = num(g, x, 0), up = stk_g_gt(g, x, zero);
    stk_val low = stk_g_expm1(g, times(g, stk_g_select(g, up, zero, x), 1 / alpha));
    return stk_g_select(g, up, x, times(g, low, alpha));
}

stk_val stk_g_gelu(stk_graph *g, stk_val x, bool approximate)
{
    return approximate ? stk_g_gelu_tanh(g, x) : stk_g_gelu_erf(g, x);
}

stk_val stk_g_silu(stk_graph *g, stk_val x) { return stk_g_mul(g, x, stk_g_sigmoid(g, x)); }

stk_val stk_g_mish(stk_graph *g, stk_val x)
{
    return stk_g_mul(g, x, stk_g_tanh(g, stk_g_softplus(g, x)));
}

stk_val stk_g_softsign(stk_graph *g, stk_val x)
{
    return stk_g_div(g, x, plus(g, stk_g_abs(g, x), 1));
}

stk_val stk_g_log_sigmoid(stk_graph *g, stk_val x)
{
    return stk_g_neg(g, stk_g_softplus(g, stk_g_neg(g, x)));
}

stk_val stk_g_hard_sigmoid(stk_graph *g, stk_val x)
{
    return times(g, stk_g_relu6(g, plus(g, x, 3)), 1.0 / 6);
}

stk_val stk_g_hard_silu(stk_graph *g, stk_val x)
{
    return stk_g_mul(g, x, stk_g_hard_sigmoid(g, x));
}

stk_val stk_g_hard_tanh(stk_graph *g, stk_val x) { return stk_g_clip(g, x, -1, 1); }

stk_val stk_g_clip(stk_graph *g, stk_val x, double low, double high)
{
    if (!stk_graph_ok(g)) return 0;
    if (!(low <= high))
        return stk_g_fail(g, STK_ERR_RANGE, "clip: low %g is above high %g; exchange them", low,
                          high);
    stk_val least = num(g, x, low), most = num(g, x, high);
    stk_val y = stk_g_select(g, stk_g_lt(g, x, least), least, x);
    return stk_g_select(g, stk_g_gt(g, x, most), most, y);
}

stk_val stk_g_tanh_shrink(stk_graph *g, stk_val x) { return stk_g_sub(g, x, stk_g_tanh(g, x)); }

stk_val stk_g_soft_shrink(stk_graph *g, stk_val x, double threshold)
{
    stk_val zero = num(g, x, 0);
    stk_val low =
        stk_g_select(g, stk_g_lt(g, x, num(g, x, -threshold)), plus(g, x, threshold), zero);
    return stk_g_select(g, stk_g_gt(g, x, num(g, x, threshold)), plus(g, x, -threshold), low);
}

stk_val stk_g_hard_shrink(stk_graph *g, stk_val x, double threshold)
{
    return stk_g_select(g, stk_g_gt(g, stk_g_abs(g, x), num(g, x, threshold)), x, num(g, x, 0));
}

stk_val stk_g_threshold(stk_graph *g, stk_val x, double threshold, double otherwise)
{
    return stk_g_select(g, stk_g_gt(g, x, num(g, x, threshold)), x, num(g, x, otherwise));
}

stk_val stk_g_squareplus(stk_graph *g, stk_val x, double b)
{
    return times(g, stk_g_add(g, x, stk_g_sqrt(g, plus(g, stk_g_square(g, x), b))), 0.5);
}

/* 0 up to -1, x from 1 on, a parabola between. */
stk_val stk_g_sparse_plus(stk_graph *g, stk_val x)
{
    stk_val one = num(g, x, 1), bend = times(g, stk_g_square(g, plus(g, x, 1)), 0.25);
    stk_val low = stk_g_select(g, stk_g_le(g, x, num(g, x, -1)), num(g, x, 0), bend);
    return stk_g_select(g, stk_g_lt(g, x, one), low, x);
}

stk_val stk_g_sparse_sigmoid(stk_graph *g, stk_val x)
{
    stk_val one = num(g, x, 1), ramp = times(g, plus(g, x, 1), 0.5);
    stk_val low = stk_g_select(g, stk_g_le(g, x, num(g, x, -1)), num(g, x, 0), ramp);
    return stk_g_select(g, stk_g_ge(g, x, one), one, low);
}

/* First half times the sigmoid of the second. */
stk_val stk_g_glu(stk_graph *g, stk_val x, int32_t axis)
{
    stk_val half[2] = {0};
    if (!stk_graph_ok(g)) return 0;
    axis = stk_g_axis(g, "glu", x, axis);
    if (axis < 0) return 0;
    stk_g_split(g, x, axis, 2, half);
    return stk_g_mul(g, half[0], stk_g_sigmoid(g, half[1]));
}
