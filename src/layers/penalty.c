/* Regularisers and constraints as graph: the numbers of Keras. */
#include "graph/ir/ir.h"
#include "layers/objects.h"
#include "stoker/nn.h"

/* Keras' epsilon in norms. */
static const double EPSILON = 1e-7;

static stk_val times(stk_graph *g, double factor, stk_val x)
{
    return stk_g_mul(g, x, stk_g_scalar(g, stk_g_dtype(g, x), factor));
}

static stk_val sum_l1l2(stk_graph *g, const stk_regularizer *o, stk_val w)
{
    stk_val sum = 0;
    if (o->l1 != 0) sum = times(g, o->l1, stk_g_sum_all(g, stk_g_abs(g, w)));
    if (o->l2 != 0) {
        stk_val squares = times(g, o->l2, stk_g_sum_all(g, stk_g_square(g, w)));
        sum = sum ? stk_g_add(g, sum, squares) : squares;
    }
    return sum ? sum : stk_g_scalar(g, stk_g_dtype(g, w), 0);
}

/* Half the sum of |dot products| of different normalised rows (columns), by their number. */
static stk_val orthogonal(stk_graph *g, const stk_regularizer *o, stk_val w)
{
    if (stk_g_rank(g, w) != 2)
        return stk_g_fail(g, STK_ERR_SHAPE,
                          "OrthogonalRegularizer is for matrices, the weight has %d axes",
                          stk_g_rank(g, w));
    bool rows = o->mode == 0;
    stk_dtype dtype = stk_g_dtype(g, w);
    int64_t n = stk_g_dim(g, w, rows ? 0 : 1);
    stk_val unit = stk_g_unit_norm(g, w, 1, (int32_t[]){rows ? 1 : 0}, 1e-12);
    stk_val dots = stk_g_matmul_t(g, unit, unit, !rows, rows);
    stk_val others =
        stk_g_sub(g, stk_g_fill(g, dtype, 2, (int64_t[]){n, n}, 1), stk_g_eye(g, dtype, n, n));
    double pairs = (double)n * (double)(n - 1) / 2;
    return times(g, o->factor * 0.5 / (pairs > 1 ? pairs : 1),
                 stk_g_sum_all(g, stk_g_abs(g, stk_g_mul(g, dots, others))));
}

stk_val stk_g_regularize(stk_graph *g, const stk_object *regularizer, stk_val w)
{
    const stk_regularizer *o = regularizer->config;
    return regularizer->def->kind == STK_REG_L1L2 ? sum_l1l2(g, o, w) : orthogonal(g, o, w);
}

static stk_val norm_of(stk_graph *g, const stk_constraint *o, stk_val w)
{
    int32_t axes[STK_MAX_RANK];
    for (int32_t i = 0; i < o->axis.n; i++) axes[i] = (int32_t)o->axis.v[i];
    return stk_g_sqrt(g,
                      stk_g_sum(g, stk_g_square(g, w), o->axis.n > 0 ? o->axis.n : 0, axes, true));
}

static stk_val constrain(stk_graph *g, const stk_object *constraint, stk_val w)
{
    if (!constraint) return w;
    const stk_constraint *o = constraint->config;
    stk_val one_eps = stk_g_scalar(g, stk_g_dtype(g, w), EPSILON);
    if (constraint->def->kind == STK_CONSTRAINT_NON_NEG) return stk_g_relu(g, w);
    stk_val norm = norm_of(g, o, w), wanted;
    if (constraint->def->kind == STK_CONSTRAINT_UNIT_NORM)
        return stk_g_div(g, w, stk_g_add(g, norm, one_eps));
    if (constraint->def->kind == STK_CONSTRAINT_MAX_NORM)
        wanted = stk_g_clip(g, norm, 0, o->max_value);
    else
        wanted = stk_g_add(g, times(g, o->rate, stk_g_clip(g, norm, o->min_value, o->max_value)),
                           times(g, 1 - o->rate, norm));
    return stk_g_mul(g, w, stk_g_div(g, wanted, stk_g_add(g, norm, one_eps)));
}

stk_val stk_weight_constrain(const stk_weight *w, stk_graph *g, stk_val value)
{
    return constrain(g, w->constraint, value);
}
