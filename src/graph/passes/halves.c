/* halves.c - small dense layers in two halves, each for one owner (device/cpu/plan/groups.c).
 *
 * A weight and the units it leads to are cut by columns, the weight behind it by rows, and so is everything that is computed between them:
 * forward, backward and update. Each owner keeps its units; all that crosses from core to core are the sums of the second product.
 *
 *     y = relu(x . w + b) . v   =   relu(x . w0 + b0) . v0  +  relu(x . w1 + b1) . v1
 *
 * Where a value is cut follows from what it is made of; variables are cut as those need it that they are computed with. A cut that
 * meets something that does not know halves is given up, with all that came of it, and the products stay to summands.c.
 *
 * The number of halves does not depend on the machine, so results have the same bits on any number of threads. */
#include "graph/ir/rewrite.h"

#include <string.h>

enum {
    HALVES = 2,
    LINE = 16,       /* floats: halves of rows are whole lines */
    LEAST_NS = 2000, /* of one core: less is not worth waking the other one */
    MOST_NS = 50000, /* products that are shared out by rows anyway */
};

/* Along which axis a value is cut, counted from the last one so that it stays the same under broadcasting. */
typedef enum way { WHOLE, BY_COLUMNS, BY_ROWS } way;

typedef struct cuts {
    const stk_graph *g;
    stk_may_halve *may;
    const void *context;
    int8_t *way;       /* per value */
    int32_t *reason;   /* per value: the weight that it is cut for */
    bool *given_up;    /* per value: a weight that cannot be cut */
    stk_val *second;   /* per value: the second half in the new graph */
    bool changed, any; /* in this round; at all */
} cuts;

static const stk_shape *shape_of(const cuts *c, stk_val v) { return &stk_type_of(c->g, v)->shape; }

/* ---- where values are cut --------------------------------------------------------------------------------- */

/* A variable that is not cut yet goes the way of those it is computed with. */
static bool demand(cuts *c, stk_val v, way w, int32_t reason)
{
    const stk_node *n = stk_node_of(c->g, v);
    const stk_shape *s = shape_of(c, v);
    const int32_t axis = s->rank - (int32_t)w;
    if (c->way[v] != WHOLE) return c->way[v] == (int8_t)w;
    if (n->op != STK_OP_VARIABLE || axis < 0 || s->dim[axis] % HALVES) return false;
    if (!c->may(c->context, n->name, axis)) return false;
    c->way[v] = (int8_t)w;
    c->reason[v] = reason;
    c->changed = true;
    return true;
}

static bool makes(cuts *c, const stk_node *n, way w, int32_t reason)
{
    c->changed |= c->way[n->out] != (int8_t)w;
    c->way[n->out] = (int8_t)w;
    c->reason[n->out] = reason;
    return true;
}

/* Does the axis that is cut stretch through this operand? */
static bool stretches(const stk_shape *operand, const stk_shape *result, way w)
{
    return operand->rank >= (int32_t)w &&
           operand->dim[operand->rank - (int32_t)w] == result->dim[result->rank - (int32_t)w];
}

static bool cut_elementwise(cuts *c, const stk_node *n, way w, int32_t reason)
{
    const stk_shape *result = shape_of(c, n->out);
    for (int32_t i = 0; i < n->nin; i++)
        if (stretches(shape_of(c, n->in[i]), result, w) ? !demand(c, n->in[i], w, reason)
                                                        : c->way[n->in[i]] != WHOLE)
            return false;
    return makes(c, n, w, reason);
}

static bool cut_assign(cuts *c, const stk_node *n, way w, int32_t reason)
{
    return demand(c, n->in[0], w, reason) && c->way[n->in[1]] == (int8_t)w &&
           makes(c, n, w, reason);
}

/* A sum over the axis that is cut is whole again. */
static bool cut_reduce(cuts *c, const stk_node *n, way w, int32_t reason)
{
    const int32_t axis = shape_of(c, n->in[0])->rank - (int32_t)w;
    int32_t behind = 0;
    for (int32_t i = 2; i < n->nints; i++) {
        if (n->ints[i] == axis) return n->ints[0] == STK_REDUCE_SUM;
        behind += n->ints[i] > axis;
    }
    return makes(c, n, n->ints[1] ? w : (way)((int32_t)w - behind), reason);
}

static double product_ns(const stk_shape *a, const stk_shape *y, bool ta)
{
    return 2.0 * (double)y->dim[0] * (double)y->dim[1] * (double)a->dim[!ta] / 80; /* on one core */
}

/* A weight whose columns are worth two owners. */
static bool is_chosen(const cuts *c, const stk_node *n)
{
    const stk_val w = n->in[1];
    const stk_shape *a = shape_of(c, n->in[0]), *y = shape_of(c, n->out);
    const double ns = product_ns(a, y, false);
    return !n->ints[0] && !n->ints[1] && c->g->values[w].assigned && !c->given_up[w] &&
           stk_type_of(c->g, w)->dtype == STK_F32 && y->dim[1] % (HALVES * LINE) == 0 &&
           a->dim[0] <= a->dim[1] && ns >= LEAST_NS && ns <= MOST_NS;
}

/* Rows or columns of the result when one operand has them cut, whole sums of two halves when both have their terms cut. */
static bool cut_matmul(cuts *c, const stk_node *n, int32_t reason)
{
    const stk_val a = n->in[0], b = n->in[1];
    const bool ta = n->ints[0], tb = n->ints[1];
    const way rows = ta ? BY_COLUMNS : BY_ROWS, columns = tb ? BY_ROWS : BY_COLUMNS;
    const way terms_a = ta ? BY_ROWS : BY_COLUMNS, terms_b = tb ? BY_COLUMNS : BY_ROWS;
    if (shape_of(c, a)->rank != 2 || shape_of(c, b)->rank != 2) return false;
    if (product_ns(shape_of(c, a), shape_of(c, n->out), ta) > MOST_NS) return false;
    if (c->way[a] == (int8_t)terms_a || c->way[b] == (int8_t)terms_b)
        return demand(c, a, terms_a, reason) && demand(c, b, terms_b, reason);
    if (c->way[a] == (int8_t)rows && c->way[b] == WHOLE) return makes(c, n, BY_ROWS, reason);
    if (c->way[b] == (int8_t)columns && c->way[a] == WHOLE) return makes(c, n, BY_COLUMNS, reason);
    return false;
}

/* False: this node does not know halves; *blame is the weight for which its operand is cut. */
static bool cut_node(cuts *c, const stk_node *n, int32_t *blame)
{
    way w = WHOLE;
    for (int32_t i = 0; i < n->nin && w == WHOLE; i++) {
        w = (way)c->way[n->in[i]];
        *blame = c->reason[n->in[i]];
    }
    if (w == WHOLE) {
        if (n->op != STK_OP_MATMUL || shape_of(c, n->out)->rank != 2 || !is_chosen(c, n))
            return true;
        *blame = n->in[1];
        return demand(c, n->in[1], BY_COLUMNS, *blame) && cut_matmul(c, n, *blame);
    }
    if (stk_op_is_elementwise((stk_op)n->op)) return cut_elementwise(c, n, w, *blame);
    switch (n->op) {
    case STK_OP_MATMUL: return cut_matmul(c, n, *blame);
    case STK_OP_REDUCE: return cut_reduce(c, n, w, *blame);
    case STK_OP_ASSIGN: return cut_assign(c, n, w, *blame);
    default: return false;
    }
}

/* One round over all nodes; false: a weight was given up. */
static bool cut_all(cuts *c)
{
    int32_t blame = 0;
    bool good = true;
    for (int64_t k = 0; k < c->g->nnodes && good; k++) good = cut_node(c, &c->g->nodes[k], &blame);
    for (int64_t i = 0; i < c->g->noutputs && good; i++) {
        const stk_val v = c->g->outputs[i].val;
        blame = c->reason[v];
        good = c->way[v] == WHOLE;
    }
    if (!good) c->given_up[blame] = true;
    return good;
}

/* Rounds until nothing changes: variables come before those that decide about them. */
static void find_cuts(cuts *c)
{
    do {
        c->changed = false;
        if (cut_all(c)) continue;
        memset(c->way, 0, (size_t)c->g->nvalues * sizeof *c->way);
        memset(c->reason, 0, (size_t)c->g->nvalues * sizeof *c->reason);
        c->changed = true;
    } while (c->changed);
    for (int64_t v = 0; v < c->g->nvalues; v++) c->any |= c->way[v] != WHOLE;
}

/* ---- the new graph ---------------------------------------------------------------------------------------- */

static stk_val halve(stk_rewrite *rw, const stk_node *n, const stk_val *in)
{
    enum { MOST = 8 };
    cuts *c = rw->context;
    stk_val other[MOST];
    const way w = (way)c->way[n->out];
    bool meets = false;
    if (n->op == STK_OP_VARIABLE && w != WHOLE) {
        const int32_t axis = shape_of(c, n->out)->rank - (int32_t)w;
        stk_val first = stk_g_half(rw->to, n, axis, 0);
        c->second[n->out] = stk_g_half(rw->to, n, axis, 1);
        return first;
    }
    for (int32_t i = 0; i < n->nin; i++) meets |= c->way[n->in[i]] != WHOLE;
    if (!meets) return 0;
    for (int32_t i = 0; i < n->nin; i++)
        other[i] = c->way[n->in[i]] != WHOLE ? c->second[n->in[i]] : in[i];
    stk_val first = stk_rewrite_copy(rw->to, n, in), second = stk_rewrite_copy(rw->to, n, other);
    c->second[n->out] = second;
    return w == WHOLE ? stk_g_add(rw->to, first, second) : first;
}

/* Bodies of control flow know variables by their names: these stay whole. */
static bool has_bodies(const stk_graph *g)
{
    for (int64_t k = 0; k < g->nnodes; k++)
        if (g->nodes[k].nsubs) return true;
    return false;
}

stk_status stk_pass_halves(const stk_graph *g, stk_may_halve *may, const void *context,
                           stk_graph **out, stk_error *err)
{
    const size_t values = (size_t)g->nvalues;
    cuts c = {.g = g,
              .may = may,
              .context = context,
              .way = stk_calloc(values, sizeof *c.way),
              .reason = stk_calloc(values, sizeof *c.reason),
              .given_up = stk_calloc(values, sizeof *c.given_up),
              .second = stk_calloc(values, sizeof *c.second)};
    stk_status status = STK_OK;
    if (!c.way || !c.reason || !c.given_up || !c.second) {
        status = stk_fail_memory(err, "halves", values);
    } else {
        if (!has_bodies(g)) find_cuts(&c);
        status = stk_rewrite_graph(g, c.any ? halve : NULL, &c, out, err);
    }
    stk_free(c.way);
    stk_free(c.reason);
    stk_free(c.given_up);
    stk_free(c.second);
    return status;
}
