/* again.c - what gradients need and is cheap to compute is computed again for them instead of being kept.
 *
 *     x = conv(..), y = relu((x - mean) * scale + beta), z = conv(y)
 *
 * Backward y is read twice, for dw of the second convolution and for the slope of relu, and x once more, for the sums of the norm.
 * With a copy of y made from x there, y is alive for a moment only, forward and backward: a part of it goes from launch to launch in
 * the cache of a core (stk_local), and is not written to memory. The numbers are the same, operation by operation.
 *
 * For devices that pass values on in such a way. To be run after simplify, which would find the copies equal. */
#include "graph/ir/rewrite.h"

enum {
    LEAST_BYTES = 1 << 18, /* below, caches keep it */
    MOST_OPS = 8,          /* of a copy */
    MOST_KEPT = 2,         /* large values that it is made from */
    SMALLER = 8,           /* so much smaller is not large */
};

typedef struct again {
    bool *late;     /* per value: a node of the backward part reads it */
    bool *copied;   /* per value: those get a copy */
    int32_t *level; /* per value: how many sums over large values it has to wait for, */
    int32_t *until; /* and its first reader */
    stk_val *copy;  /* per old value: the last copy in the new graph, */
    int32_t *whose; /* and the level of those who read it */
} again;

static bool is_cheap(stk_op op)
{
    switch (op) {
    case STK_OP_NEG:
    case STK_OP_ADD:
    case STK_OP_SUB:
    case STK_OP_MUL:
    case STK_OP_MAX:
    case STK_OP_MIN:
    case STK_OP_FMA:
    case STK_OP_FNMA:
    case STK_OP_RELU:
    case STK_OP_RELU6:
    case STK_OP_ADD_RELU:
    case STK_OP_SIGMOID:
    case STK_OP_SELECT:
    case STK_OP_GT:
    case STK_OP_CAST: return true;
    default: return false;
    }
}

static bool is_kept(const again *a, stk_val v) { return a->late[v] && !a->copied[v]; }

static int64_t count_of(const stk_graph *g, stk_val v)
{
    return stk_shape_count(&stk_type_of(g, v)->shape);
}

/* Must operand u of a copy of v be copied as well? */
static bool goes_along(const stk_graph *g, const again *a, stk_val v, stk_val u)
{
    return count_of(g, u) > count_of(g, v) / SMALLER && !is_kept(a, u);
}

typedef struct price {
    int32_t ops, kept;
    stk_val from[MOST_KEPT];
} price;

/* Adds up what a copy of v costs; false: it cannot be made, or costs too much. */
static bool count_cost(const stk_graph *g, const again *a, stk_val v, price *p)
{
    const stk_node *n = stk_node_of(g, v);
    if (!is_cheap((stk_op)n->op) || n->origin.part != STK_PART_FORWARD || ++p->ops > MOST_OPS)
        return false;
    for (int32_t i = 0; i < n->nin; i++) {
        const stk_val u = n->in[i];
        bool known = false;
        for (int32_t k = 0; k < p->kept; k++) known |= p->from[k] == u;
        if (known || count_of(g, u) <= count_of(g, v) / SMALLER) continue;
        if (goes_along(g, a, v, u)) {
            if (!count_cost(g, a, u, p)) return false;
        } else if (p->kept == MOST_KEPT) {
            return false;
        } else {
            p->from[p->kept++] = u;
        }
    }
    return true;
}

static void choose(const stk_graph *g, again *a)
{
    for (int64_t k = 0; k < g->nnodes; k++) {
        const stk_node *n = &g->nodes[k];
        for (int32_t i = 0; n->origin.part == STK_PART_BACKWARD && i < n->nin; i++)
            a->late[n->in[i]] = true;
    }
    for (int64_t i = 0; i < g->noutputs; i++) a->late[g->outputs[i].val] = false;
    for (int64_t k = 0; k < g->nnodes; k++) {
        const stk_node *n = &g->nodes[k];
        price p = {0};
        a->copied[n->out] = a->late[n->out] && n->nout == 1 &&
                            stk_type_bytes(stk_type_of(g, n->out)) >= LEAST_BYTES &&
                            count_cost(g, a, n->out, &p) && p.kept > 0;
    }
}

/* Those who read a copy should be able to run together with it: what waits for a sum over what was made from it (a norm's
 * gradient) gets one of its own. */
static stk_val copy_of(stk_rewrite *rw, stk_val v, int32_t level)
{
    again *a = rw->context;
    const stk_node *n = stk_node_of(rw->from, v);
    stk_val in[3];
    if (a->copy[v] && a->whose[v] == level) return a->copy[v];
    for (int32_t i = 0; i < n->nin; i++)
        in[i] =
            goes_along(rw->from, a, v, n->in[i]) ? copy_of(rw, n->in[i], level) : rw->map[n->in[i]];
    a->whose[v] = level;
    return a->copy[v] = stk_rewrite_copy(rw->to, n, in);
}

/* The level at which a node runs, which is the highest of what it reads. */
static int32_t level_of(const again *a, const stk_node *n)
{
    int32_t level = 0;
    for (int32_t i = 0; i < n->nin; i++)
        if (a->level[n->in[i]] > level) level = a->level[n->in[i]];
    return level;
}

static void find_levels(const stk_graph *g, again *a)
{
    for (int64_t k = 0; k < g->nnodes; k++) {
        const stk_node *n = &g->nodes[k];
        int64_t most = 0;
        for (int32_t i = 0; i < n->nin; i++)
            if (count_of(g, n->in[i]) > most) most = count_of(g, n->in[i]);
        const bool sums = count_of(g, n->out) <= most / SMALLER;
        for (int32_t o = 0; o < n->nout; o++) a->level[n->out + o] = level_of(a, n) + sums;
    }
}

/* Elementwise nodes run as late as the first one that reads them. */
static int32_t when(const again *a, const stk_node *n)
{
    const int32_t own = level_of(a, n), reader = a->until[n->out];
    return stk_op_is_elementwise((stk_op)n->op) && reader > own ? reader : own;
}

static void find_readers(const stk_graph *g, again *a)
{
    for (int64_t k = g->nnodes - 1; k >= 0; k--) {
        const stk_node *n = &g->nodes[k];
        const int32_t level = when(a, n);
        for (int32_t i = 0; i < n->nin; i++) {
            int32_t *until = &a->until[n->in[i]];
            if (!*until || level < *until) *until = level;
        }
    }
}

static stk_val read_copies(stk_rewrite *rw, const stk_node *old, const stk_val *in)
{
    enum { MOST = 8 };
    const again *a = rw->context;
    stk_val own[MOST];
    bool any = false;
    if (old->origin.part != STK_PART_BACKWARD || old->nin > MOST) return 0;
    const int32_t level = when(a, old);
    for (int32_t i = 0; i < old->nin; i++) {
        any |= a->copied[old->in[i]];
        own[i] = a->copied[old->in[i]] ? copy_of(rw, old->in[i], level) : in[i];
    }
    return any ? stk_rewrite_copy(rw->to, old, own) : 0;
}

stk_status stk_pass_again(const stk_graph *g, stk_graph **out, stk_error *err)
{
    const size_t n = (size_t)g->nvalues;
    again a = {stk_calloc(n, sizeof *a.late),  stk_calloc(n, sizeof *a.copied),
               stk_calloc(n, sizeof *a.level), stk_calloc(n, sizeof *a.until),
               stk_calloc(n, sizeof *a.copy),  stk_calloc(n, sizeof *a.whose)};
    stk_status status = STK_OK;
    if (a.late && a.copied && a.level && a.until && a.copy && a.whose) {
        choose(g, &a);
        find_levels(g, &a);
        find_readers(g, &a);
        status = stk_rewrite_graph(g, read_copies, &a, out, err);
    } else {
        status = stk_fail_memory(err, "again", n * sizeof *a.copy);
    }
    stk_free(a.late);
    stk_free(a.copied);
    stk_free(a.level);
    stk_free(a.until);
    stk_free(a.copy);
    stk_free(a.whose);
    return status;
}
