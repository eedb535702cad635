/* Simplification while copying: constants are folded, identities removed, equal nodes merged (CSE), dead ones left
 * behind (the walk does that). One forward pass sees each node after its inputs were simplified. */
#include "graph/ir/rewrite.h"

#include <math.h>
#include <string.h>

/* ---- merging equal nodes ---------------------------------------------------------------------------- */

typedef struct seen {
    uint64_t *hash; /* open addressing; 0 = free */
    int32_t *node;
    int64_t size; /* power of two */
} seen;

static uint64_t mix(uint64_t h, const void *data, size_t size)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < size; i++) h = (h ^ p[i]) * 0x100000001b3ull;
    return h;
}

static uint64_t hash_node(const stk_node *n, const stk_val *in)
{
    uint64_t h = mix(0xcbf29ce484222325ull, &n->op, sizeof n->op);
    h = mix(h, in, (size_t)n->nin * sizeof *in);
    h = mix(h, n->ints, (size_t)n->nints * sizeof *n->ints);
    h = mix(h, n->reals, (size_t)n->nreals * sizeof *n->reals);
    if (n->tensor) h = mix(h, n->tensor->shape, sizeof n->tensor->shape);
    return h ? h : 1;
}

static bool same_tensor(const stk_tensor *a, const stk_tensor *b)
{
    if (a == b) return true;
    if (!a || !b || a->dtype != b->dtype || a->rank != b->rank || stk_tensor_count(a) != 1 ||
        stk_tensor_count(b) != 1 || a->dtype == STK_STRING)
        return false;
    return !memcmp(a->data, b->data, (size_t)stk_dtype_size(a->dtype)) &&
           !memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape);
}

static bool same_node(const stk_node *a, const stk_val *in_a, const stk_node *b)
{
    return a->op == b->op && a->nin == b->nin && a->nints == b->nints && a->nreals == b->nreals &&
           !memcmp(in_a, b->in, (size_t)a->nin * sizeof *in_a) &&
           !memcmp(a->ints, b->ints, (size_t)a->nints * sizeof *a->ints) &&
           !memcmp(a->reals, b->reals, (size_t)a->nreals * sizeof *a->reals) &&
           same_tensor(a->tensor, b->tensor);
}

static stk_val find_equal(stk_rewrite *rw, const stk_node *old, const stk_val *in)
{
    seen *s = rw->context;
    uint64_t h = hash_node(old, in);
    for (int64_t i = (int64_t)(h & (uint64_t)(s->size - 1)); s->hash[i];
         i = (i + 1) & (s->size - 1))
        if (s->hash[i] == h && same_node(old, in, &rw->to->nodes[s->node[i]]))
            return rw->to->nodes[s->node[i]].out;
    return 0;
}

static void remember(stk_rewrite *rw, stk_val v)
{
    seen *s = rw->context;
    const stk_node *n = stk_node_of(rw->to, v);
    uint64_t h = hash_node(n, n->in);
    int64_t i = (int64_t)(h & (uint64_t)(s->size - 1));
    while (s->hash[i]) i = (i + 1) & (s->size - 1);
    s->hash[i] = h;
    s->node[i] = rw->to->values[v].node;
}

/* ---- folding ------------------------------------------------------------------------------------------ */

/* Scalar arithmetic that turns up in optimizers and schedules; others stay for the kernels. */
static bool fold_scalar(stk_op op, double a, double b, double *y)
{
    switch (op) {
    case STK_OP_NEG: *y = -a; return true;
    case STK_OP_SQUARE: *y = a * a; return true;
    case STK_OP_SQRT: *y = sqrt(a); return a >= 0;
    case STK_OP_RECIPROCAL: *y = 1 / a; return a != 0;
    case STK_OP_ADD: *y = a + b; return true;
    case STK_OP_SUB: *y = a - b; return true;
    case STK_OP_MUL: *y = a * b; return true;
    case STK_OP_DIV: *y = a / b; return b != 0;
    default: return false;
    }
}

static stk_val splat_like(stk_graph *g, const stk_type *t, double v)
{
    return stk_g_fill(g, t->dtype, t->shape.rank, t->shape.dim, v);
}

static stk_val fold(stk_rewrite *rw, const stk_node *old, const stk_val *in)
{
    const stk_type *t = stk_type_of(rw->from, old->out);
    double a = 0, b = 0, y;
    if (!stk_dtype_is_float(t->dtype) || old->nin < 1 || old->nin > 2) return 0;
    if (!stk_g_splat(rw->to, in[0], &a) || (old->nin == 2 && !stk_g_splat(rw->to, in[1], &b)))
        return 0;
    if (!fold_scalar((stk_op)old->op, a, b, &y)) return 0;
    if (t->dtype == STK_F32) y = (double)(float)y;
    return splat_like(rw->to, t, y);
}

/* ---- identities ------------------------------------------------------------------------------------------ */

static bool same_type(stk_rewrite *rw, const stk_node *old, stk_val v)
{
    return stk_type_equal(stk_type_of(rw->from, old->out), stk_type_of(rw->to, v));
}

/* x + 0, x - 0, x * 1, x / 1 with x already of the result's shape. Not x * 0: NaN times 0 is NaN. */
static stk_val drop_neutral(stk_rewrite *rw, const stk_node *old, const stk_val *in)
{
    double c;
    bool plus = old->op == STK_OP_ADD || old->op == STK_OP_SUB,
         times = old->op == STK_OP_MUL || old->op == STK_OP_DIV;
    if (!plus && !times) return 0;
    if (stk_g_splat(rw->to, in[1], &c) && c == (plus ? 0 : 1) && same_type(rw, old, in[0]))
        return in[0];
    bool commutes = old->op == STK_OP_ADD || old->op == STK_OP_MUL;
    if (commutes && stk_g_splat(rw->to, in[0], &c) && c == (plus ? 0 : 1) &&
        same_type(rw, old, in[1]))
        return in[1];
    return 0;
}

static bool is_identity_perm(const stk_node *n)
{
    for (int32_t i = 0; i < n->nints; i++)
        if (n->ints[i] != i) return false;
    return true;
}

/* A number is cast before it is spread, not each of its copies. */
static stk_val cast_first(stk_rewrite *rw, const stk_node *cast, stk_val v)
{
    const stk_node spread = *stk_node_of(rw->to, v); /* nodes move as the graph grows */
    if (spread.op != STK_OP_BROADCAST) return 0;
    const stk_val one = stk_rewrite_copy(rw->to, cast, &spread.in[0]);
    return one ? stk_rewrite_copy(rw->to, &spread, &one) : 0;
}

static stk_val drop_identity(stk_rewrite *rw, const stk_node *old, const stk_val *in)
{
    const stk_node *src;
    switch (old->op) {
    case STK_OP_RESHAPE:
        if (same_type(rw, old, in[0])) return in[0];
        src = stk_node_of(rw->to, in[0]);
        if (src->op != STK_OP_RESHAPE) return 0;
        return stk_g_reshape(rw->to, src->in[0], stk_type_of(rw->from, old->out)->shape.rank,
                             stk_type_of(rw->from, old->out)->shape.dim);
    case STK_OP_BROADCAST: return same_type(rw, old, in[0]) ? in[0] : 0;
    case STK_OP_CAST: return same_type(rw, old, in[0]) ? in[0] : cast_first(rw, old, in[0]);
    case STK_OP_TRANSPOSE: return is_identity_perm(old) ? in[0] : 0;
    case STK_OP_SCALE_SHIFT: return in[0]; /* it stood there for its gradient rule only */
    case STK_OP_NEG:
        src = stk_node_of(rw->to, in[0]);
        return src->op == STK_OP_NEG ? src->in[0] : 0;
    default: return drop_neutral(rw, old, in);
    }
}

/* Elementwise ops broadcast by themselves: an operand that was spread out for them goes in as it was. */
static bool unspread(stk_rewrite *rw, const stk_node *old, const stk_val *in, stk_val *slim)
{
    if (!stk_op_is_elementwise((stk_op)old->op) || old->nin < 2) return false;
    bool changed = false;
    for (int32_t i = 0; i < old->nin; i++) {
        const stk_node *src = stk_node_of(rw->to, in[i]);
        double value;
        slim[i] = src->op == STK_OP_BROADCAST ? src->in[0] : in[i];
        if (stk_g_rank(rw->to, in[i]) > 0 && stk_g_splat(rw->to, in[i], &value) &&
            fabs(value) < STK_EXACT)
            slim[i] = stk_g_scalar(rw->to, stk_g_dtype(rw->to, in[i]), value);
        changed |= slim[i] != in[i];
    }
    stk_shape s = stk_type_of(rw->to, slim[0])->shape;
    for (int32_t i = 1; i < old->nin; i++)
        if (!stk_shape_broadcast(&s, &stk_type_of(rw->to, slim[i])->shape, &s)) return false;
    return changed && stk_shape_equal(&s, &stk_type_of(rw->from, old->out)->shape);
}

/* Does anybody read the value otherwise than row by row? An output counts. */
static bool is_read_whole(const stk_graph *g, stk_val v)
{
    for (int64_t i = 0; i < g->noutputs; i++)
        if (g->outputs[i].val == v) return true;
    for (int64_t k = g->values[v].node + 1; k < g->nnodes; k++) {
        const stk_node *n = &g->nodes[k];
        for (int32_t i = 0; i < n->nin; i++)
            if (n->in[i] == v && (n->op != STK_OP_GATHER || i > 0)) return true;
    }
    return false;
}

/* Rows of a rounded table: the few that are picked are rounded, not all. */
static stk_val picked_first(stk_rewrite *rw, const stk_node *old, const stk_val *in)
{
    stk_graph *g = rw->to;
    if (old->op != STK_OP_GATHER || stk_node_of(g, in[0])->op != STK_OP_CAST) return 0;
    const stk_node table = *stk_node_of(g, in[0]); /* nodes move as the graph grows */
    const stk_shape *few = &stk_type_of(rw->from, old->out)->shape;
    if (stk_g_dtype(g, table.in[0]) != STK_F32 || stk_dtype_size(stk_g_dtype(g, in[0])) != 2 ||
        stk_shape_count(few) >= stk_shape_count(&stk_type_of(g, in[0])->shape) ||
        is_read_whole(rw->from, old->in[0]))
        return 0;
    const stk_val picked = stk_g_apply(g, STK_OP_GATHER, 2, (stk_val[]){table.in[0], in[1]},
                                       &(stk_attrs){.ints = old->ints, .nints = old->nints});
    return stk_g_cast(g, picked, stk_type_of(rw->from, old->out)->dtype);
}

static stk_val simplify_node(stk_rewrite *rw, const stk_node *old, const stk_val *in)
{
    stk_val slim[3], v;
    uint32_t flags = stk_opdef_of((stk_op)old->op)->flags;
    if (flags & (STK_OPF_EFFECT | STK_OPF_CONTROL) || old->op == STK_OP_VARIABLE) return 0;
    if ((v = fold(rw, old, in)) || (v = drop_identity(rw, old, in)) ||
        (v = picked_first(rw, old, in)))
        return v;
    if (unspread(rw, old, in, slim)) in = slim;
    if ((flags & STK_OPF_COMMUTES) &&
        in[0] > in[1]) { /* one order, so that a+b and b+a are one node */
        stk_val first = in[1], second = in[0];
        slim[0] = first;
        slim[1] = second;
        in = slim;
    }
    if ((v = find_equal(rw, old, in))) return v;
    v = stk_rewrite_copy(rw->to, old, in);
    if (v) remember(rw, v);
    return v;
}

stk_status stk_pass_simplify(const stk_graph *g, stk_graph **out, stk_error *err)
{
    seen s = {.size = 64};
    while (s.size < 4 * g->nnodes) s.size *= 2;
    s.hash = stk_calloc((size_t)s.size, sizeof *s.hash);
    s.node = stk_calloc((size_t)s.size, sizeof *s.node);
    stk_status status = s.hash && s.node ? stk_rewrite_graph(g, simplify_node, &s, out, err)
                                         : stk_fail_memory(err, "simplify", (size_t)s.size * 12);
    stk_free(s.hash);
    stk_free(s.node);
    return status;
}
