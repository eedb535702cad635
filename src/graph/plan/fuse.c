/* Which elementwise nodes run together: each cluster becomes one chain, one pass over memory.
 *
 * Nodes are taken in order. A node joins the clusters of its operands when they have its shape and when
 * joining makes no cycle: no value may leave the cluster, pass through an outside node and come back. A path that
 * enters another cluster leaves it from any of its nodes, since a cluster runs as one.
 *
 * What is widened for one reader (recast.c) waits for it: beside its producer it would be stored as float32, and the half value
 * too; beside its reader it is loaded as half of that.
 *
 * All clusters and lone nodes (units) stand in a list in an order in which they could run, so that only what stands between two
 * units is searched for a path between them. A unit that is joined to an earlier one takes its place; what it needs
 * of the units between them moves in front of it. */
#include "graph/plan/plan.h"

#include <string.h>

typedef struct fuser {
    const stk_graph *g;
    int32_t *parent;  /* per node: union-find; a root stands for its unit */
    int32_t *size;    /* nodes per root; 0: the node is in no cluster */
    int32_t *next;    /* per node: the next of its unit, in a ring */
    int32_t *visited; /* per node: stamp of the last search */
    int32_t *counted; /* per value: stamp of the last count */
    int32_t *reader;  /* per value: its only reader + 1; 0: none, or SEVERAL, UNROUNDED */
    int32_t *stack;
    int32_t *earlier, *later; /* per root: its neighbours in the list of units, -1 at the ends */
    int64_t *label;           /* per root: grows along the list */
    int32_t *found;           /* roots that the last search passed */
    int32_t nfound, tail, stamp;
} fuser;

enum { GAP_BITS = 32 };
/* Units that a search may pass: those who are that far from each other gain nothing by running together. */
enum { FARTHEST = 2048 };

/* Per chain. A node is at most one output and takes at most one register, an operand from outside is an input or a constant
 * and takes one register: within these numbers no limit of a chain (kernels.h) can be passed. */
enum { MOST_NODES = 24, MOST_OPERANDS = 24 };
_Static_assert(MOST_NODES + MOST_OPERANDS <= (int)STK_CHAIN_REGS &&
                   MOST_NODES <= (int)STK_CHAIN_IO && MOST_OPERANDS <= (int)STK_CHAIN_IO &&
                   MOST_NODES <= (int)STK_CHAIN_OPS,
               "chains hold what is fused");

static int32_t find(fuser *f, int32_t id)
{
    while (f->parent[id] != id) id = f->parent[id] = f->parent[f->parent[id]];
    return id;
}

static bool is_chainable(const stk_graph *g, const stk_node *n)
{
    return stk_op_is_elementwise((stk_op)n->op) &&
           stk_shape_count(&stk_type_of(g, n->out)->shape) > 0;
}

/* Integers narrower than 64 bits wrap when they are stored; inside a chain they would not. */
static bool must_store(stk_dtype d)
{
    char kind = stk_dtype_kind(d);
    return (kind == 'I' || kind == 'U') && stk_dtype_size(d) < 8;
}

/* ---- the list of units --------------------------------------------------------------------------------- */

static void take_out(fuser *f, int32_t root)
{
    int32_t before = f->earlier[root], after = f->later[root];
    if (before >= 0) f->later[before] = after;
    if (after >= 0)
        f->earlier[after] = before;
    else
        f->tail = before;
}

static void put_before(fuser *f, int32_t root, int32_t place)
{
    int32_t before = f->earlier[place];
    f->earlier[root] = before;
    f->later[root] = place;
    f->earlier[place] = root;
    if (before >= 0) f->later[before] = root;
}

static void append(fuser *f, int32_t root)
{
    f->earlier[root] = f->tail;
    f->later[root] = -1;
    f->label[root] = (f->tail >= 0 ? f->label[f->tail] : 0) + ((int64_t)1 << GAP_BITS);
    if (f->tail >= 0) f->later[f->tail] = root;
    f->tail = root;
}

static void label_again(fuser *f)
{
    int32_t head = f->tail;
    int64_t at = 0;
    while (f->earlier[head] >= 0) head = f->earlier[head];
    for (; head >= 0; head = f->later[head]) f->label[head] = at += (int64_t)1 << GAP_BITS;
}

/* The units that the last search passed move in front of `place`, in the order they have. Shell sort: the list is short, and
 * labels are elsewhere. */
static void move_found(fuser *f, int32_t place)
{
    int32_t n = f->nfound, *found = f->found;
    if (!n) return;
    for (int32_t gap = n / 2; gap > 0; gap /= 2)
        for (int32_t i = gap; i < n; i++)
            for (int32_t k = i; k >= gap && f->label[found[k - gap]] > f->label[found[k]];
                 k -= gap) {
                int32_t swap = found[k];
                found[k] = found[k - gap];
                found[k - gap] = swap;
            }
    for (int32_t i = 0; i < n; i++) {
        take_out(f, found[i]);
        put_before(f, found[i], place);
    }
    int32_t before = f->earlier[found[0]];
    int64_t low = before >= 0 ? f->label[before] : 0, room = f->label[place] - low;
    if (room <= n) {
        label_again(f);
        return;
    }
    for (int32_t i = 0; i < n; i++) f->label[found[i]] = low + room / (n + 1) * (i + 1);
}

/* ---- paths ----------------------------------------------------------------------------------------------- */

/* Puts the producers of what a node reads on the stack, but for those inside the two units and those before both. */
static int32_t push_inputs(fuser *f, int32_t k, int32_t from, int32_t to, int32_t depth)
{
    const stk_node *n = &f->g->nodes[k];
    for (int32_t i = 0; i < n->nin; i++) {
        int32_t node = f->g->values[n->in[i]].node, unit = find(f, node);
        if (unit == from || unit == to || f->visited[node] == f->stamp ||
            f->label[unit] < f->label[to])
            continue;
        f->stack[depth++] = node;
    }
    return depth;
}

/* Does a path lead from unit `to` through others into unit `from`, which stands behind it? Searched backwards. */
static bool is_around(fuser *f, int32_t from, int32_t to)
{
    int32_t depth = 0, k = from;
    f->stamp++;
    f->nfound = 0;
    do depth = push_inputs(f, k, from, to, depth);
    while ((k = f->next[k]) != from);
    while (depth > 0) {
        k = f->stack[--depth];
        if (f->visited[k] == f->stamp) continue;
        f->visited[k] = f->stamp;
        const stk_node *n = &f->g->nodes[k];
        for (int32_t i = 0; i < n->nin; i++)
            if (find(f, f->g->values[n->in[i]].node) == to) return true;
        if (find(f, k) == k) {
            if (f->nfound == FARTHEST) return true;
            f->found[f->nfound++] = k;
        }
        depth = push_inputs(f, k, from, to, depth);
        if (f->visited[f->next[k]] != f->stamp) f->stack[depth++] = f->next[k];
    }
    return false;
}

/* Different values that the two clusters together read from outside. */
static int32_t count_operands(fuser *f, int32_t a, int32_t b)
{
    int32_t count = 0, ends[2] = {a, b};
    f->stamp++;
    for (int side = 0; side < 2; side++) {
        int32_t k = ends[side];
        do {
            const stk_node *n = &f->g->nodes[k];
            for (int32_t i = 0; i < n->nin; i++) {
                int32_t source = find(f, f->g->values[n->in[i]].node);
                if (source == a || source == b || f->counted[n->in[i]] == f->stamp) continue;
                f->counted[n->in[i]] = f->stamp;
                count++;
            }
        } while ((k = f->next[k]) != ends[side]);
    }
    return count;
}

/* Makes the units one if that is possible. Direct edges between them are what we want. */
static void try_join(fuser *f, int32_t a, int32_t b)
{
    int32_t first = f->label[a] < f->label[b] ? a : b, second = first == a ? b : a;
    if (f->size[a] + f->size[b] > MOST_NODES || count_operands(f, a, b) > MOST_OPERANDS ||
        is_around(f, second, first))
        return;
    take_out(f, second);
    move_found(f, first);
    int32_t swap = f->next[first]; /* two rings become one */
    f->next[first] = f->next[second];
    f->next[second] = swap;
    f->parent[second] = first;
    f->size[first] += f->size[second];
}

enum { SEVERAL = -1, UNROUNDED = -2 };

static void find_readers(fuser *f)
{
    const stk_graph *g = f->g;
    for (int32_t k = 0; k < g->nnodes; k++)
        for (int32_t i = 0; i < g->nodes[k].nin; i++) {
            int32_t *r = &f->reader[g->nodes[k].in[i]];
            *r = *r == 0 || *r == k + 1 ? k + 1 : SEVERAL;
        }
    for (int64_t i = 0; i < g->noutputs; i++) f->reader[g->outputs[i].val] = SEVERAL;
}

/* The node that makes operand i of node k, if the two may share a chain; -1: they may not. */
static int32_t maker_of(const fuser *f, int32_t k, int32_t i)
{
    const stk_graph *g = f->g;
    const stk_type *in = stk_type_of(g, g->nodes[k].in[i]);
    int32_t from = g->values[g->nodes[k].in[i]].node;
    bool fits = f->size[from] && !must_store(in->dtype) &&
                stk_shape_equal(&in->shape, &stk_type_of(g, g->nodes[k].out)->shape);
    return fits ? from : -1;
}

static bool is_widening(const stk_graph *g, const stk_node *n)
{
    if (n->op != STK_OP_CAST || stk_g_dtype(g, n->out) != STK_F32) return false;
    const stk_dtype from = stk_g_dtype(g, n->in[0]);
    return from == STK_BF16 || from == STK_F16;
}

/* The only reader of a value, if it may share a chain with what makes it. */
static bool has_one_chain(const fuser *f, stk_val v)
{
    if (f->reader[v] <= 0) return false;
    const stk_node *reader = &f->g->nodes[f->reader[v] - 1];
    return is_chainable(f->g, reader) &&
           stk_shape_equal(&stk_type_of(f->g, v)->shape, &stk_type_of(f->g, reader->out)->shape);
}

/* Floats that are rounded and widened again in one chain are not rounded (chain_plan.c). Where something else than a chain reads them so,
 * like the statistics of a norm on a device that has none of halves, chains must not read the rounded ones. */
static void find_unrounded(fuser *f)
{
    const stk_graph *g = f->g;
    for (int32_t k = 0; k < g->nnodes; k++) {
        const stk_node *n = &g->nodes[k];
        if (is_widening(g, n) && stk_node_of(g, n->in[0])->op == STK_OP_CAST &&
            !has_one_chain(f, n->out))
            f->reader[n->in[0]] = UNROUNDED;
    }
}

/* A half value is widened for one chain. */
static bool waits_for_reader(const fuser *f, int32_t k)
{
    const stk_node *n = &f->g->nodes[k];
    return is_widening(f->g, n) && has_one_chain(f, n->out) && f->reader[n->in[0]] != UNROUNDED;
}

static void join_units_of(fuser *f, int32_t a, int32_t b)
{
    int32_t x = find(f, a), y = find(f, b);
    if (x != y) try_join(f, x, y);
}

static void place_node(fuser *f, int32_t k, bool no_fuse)
{
    f->size[k] = 1;
    if (no_fuse || waits_for_reader(f, k)) return;
    for (int32_t i = 0; i < f->g->nodes[k].nin; i++) {
        int32_t from = maker_of(f, k, i);
        if (from < 0) continue;
        join_units_of(f, k, from);
        if (!waits_for_reader(f, from)) continue;
        int32_t before = maker_of(f, from, 0);
        if (before >= 0) join_units_of(f, from, before);
    }
}

/* Numbers the clusters 0, 1, 2, ... in the order of their first nodes. */
static int32_t number_clusters(fuser *f, int32_t *clusters)
{
    int32_t count = 0, *number = f->visited;
    memset(number, 0, (size_t)f->g->nnodes * sizeof *number);
    for (int32_t k = 0; k < f->g->nnodes; k++) {
        clusters[k] = -1;
        if (!f->size[k]) continue;
        int32_t root = find(f, k);
        if (!number[root]) number[root] = ++count;
        clusters[k] = number[root] - 1;
    }
    return count;
}

stk_status stk_plan_clusters(const stk_graph *g, bool no_fuse, int32_t *clusters, int32_t *count,
                             stk_error *err)
{
    size_t n = (size_t)g->nnodes + 1, values = (size_t)g->nvalues + 1, edges = 2 * n;
    for (int64_t k = 0; k < g->nnodes; k++) edges += (size_t)g->nodes[k].nin;
    size_t all = 6 * n + 2 * values + edges + FARTHEST;
    int32_t *memory = stk_calloc(all, sizeof *memory);
    int64_t *label = stk_calloc(n, sizeof *label);
    if (!memory || !label) {
        stk_free(memory);
        stk_free(label);
        return stk_fail_memory(err, "fuse", all * sizeof *memory);
    }
    fuser f = {.g = g,
               .parent = memory,
               .size = memory + n,
               .next = memory + 2 * n,
               .visited = memory + 3 * n,
               .earlier = memory + 4 * n,
               .later = memory + 5 * n,
               .counted = memory + 6 * n,
               .reader = memory + 6 * n + values,
               .stack = memory + 6 * n + 2 * values,
               .found = memory + 6 * n + 2 * values + edges,
               .label = label,
               .tail = -1};
    find_readers(&f);
    find_unrounded(&f);
    for (int32_t k = 0; k < g->nnodes; k++) {
        f.parent[k] = f.next[k] = k;
        append(&f, k);
        if (is_chainable(g, &g->nodes[k])) place_node(&f, k, no_fuse);
    }
    *count = number_clusters(&f, clusters);
    stk_free(memory);
    stk_free(label);
    return STK_OK;
}
