/* Derivatives through a composition of plain ops; see compose.h. */
#include "graph/ir/compose.h"

enum { MOST = 16 }; /* inputs or outputs of a fused op */

stk_val stk_g_plus(stk_graph *g, stk_val sum, stk_val v)
{
    if (!sum || !v) return sum ? sum : v;
    return stk_g_add(g, sum, v);
}

/* A node of its own for the same value. Gradients stop there: what an input depends on is the business of
 * the walk that called us. */
static stk_val stand_in(stk_graph *g, stk_val v)
{
    stk_shape s = stk_type_of(g, v)->shape;
    return stk_g_reshape(g, v, s.rank, s.dim);
}

void stk_grad_compose(stk_grad *c, stk_composition compose, uint32_t which)
{
    stk_graph *g = c->g;
    stk_val in[MOST] = {0}, real[MOST] = {0}, d[MOST] = {0}, out[MOST] = {0}, sum = 0;
    int32_t at[MOST], n = 0;
    if (c->node.nin > MOST || c->node.nout > MOST) {
        stk_g_fail(g, STK_ERR_INTERNAL, "gradient of '%s': more than %d inputs or outputs",
                   stk_op_name((stk_op)c->node.op), MOST);
        return;
    }
    for (int32_t i = 0; i < c->node.nin; i++) {
        bool is_real = stk_dtype_is_float(stk_g_dtype(g, c->node.in[i]));
        in[i] = is_real ? stand_in(g, c->node.in[i]) : c->node.in[i];
        if (!stk_graph_ok(g)) return;
        if (is_real) at[n] = i, real[n++] = in[i];
    }
    compose(g, &c->node, in, out);
    for (int32_t k = 0; k < c->node.nout && stk_graph_ok(g); k++)
        if (c->dout[k] && out[k] && (which >> k & 1u))
            sum = stk_g_plus(g, sum, stk_g_sum_all(g, stk_g_mul(g, out[k], c->dout[k])));
    if (!sum || !stk_graph_ok(g)) return;
    stk_g_gradients(g, sum, n, real, d);
    for (int32_t i = 0; i < n; i++) c->din[at[i]] = stk_g_plus(g, c->din[at[i]], d[i]);
}

int64_t stk_inner_count(const stk_shape *s, int32_t axes)
{
    int64_t n = 1;
    for (int32_t i = s->rank - axes; i < s->rank; i++) n *= s->dim[i];
    return n;
}

int64_t stk_outer_count(const stk_shape *s, int32_t axes)
{
    int64_t n = 1;
    for (int32_t i = 0; i < s->rank - axes; i++) n *= s->dim[i];
    return n;
}

stk_val stk_g_as_rows(stk_graph *g, stk_val x, int32_t axes)
{
    if (!stk_graph_ok(g) || !stk_val_ok(g, x)) return 0;
    stk_shape s = stk_type_of(g, x)->shape;
    return stk_g_reshape(g, x, 2,
                         (int64_t[]){stk_outer_count(&s, axes), stk_inner_count(&s, axes)});
}
