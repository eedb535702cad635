/* Which elementwise nodes run together: each cluster becomes one chain, one pass over memory.
 *
 * Nodes are taken in order. A node joins the clusters of its operands when they have its shape and when
 * joining makes no cycle: no value may leave the cluster, pass through an outside node and come back. A path that
 * enters another cluster leaves it from any of its nodes, since a cluster runs as one. */
#include "graph/plan/plan.h"

#include <string.h>

typedef struct fuser {
    const stk_graph *g;
    int32_t *cluster; /* per node; -1 none */
    int32_t *parent;  /* union-find over cluster ids */
    int32_t *size;    /* nodes per cluster root */
    int32_t *first;   /* lowest node index per cluster root */
    int32_t *next;    /* per node: the next of its cluster, in a ring */
    int32_t *visited; /* per node: stamp of the last search */
    int32_t *counted; /* per value: stamp of the last count */
    int32_t *stack;
    int32_t stamp, count;
} fuser;

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

/* Puts the producers of what a node reads on the stack, but for those inside the two clusters. */
static int32_t push_inputs(fuser *f, int32_t k, int32_t a, int32_t b, int32_t depth)
{
    const stk_node *n = &f->g->nodes[k];
    for (int32_t i = 0; i < n->nin; i++) {
        int32_t from = f->g->values[n->in[i]].node;
        int32_t source = f->cluster[from] >= 0 ? find(f, f->cluster[from]) : -1;
        if (source == a || source == b || f->visited[from] == f->stamp) continue;
        f->stack[depth++] = from;
    }
    return depth;
}

/* Does a path lead from cluster `to` through the outside into cluster `from`? Searched backwards. */
static bool is_around(fuser *f, int32_t from, int32_t to)
{
    int32_t depth = 0, first = f->first[from], k = first;
    f->stamp++;
    do depth = push_inputs(f, k, from, to, depth);
    while ((k = f->next[k]) != first);
    while (depth > 0) {
        k = f->stack[--depth];
        if (f->visited[k] == f->stamp) continue;
        f->visited[k] = f->stamp;
        const stk_node *n = &f->g->nodes[k];
        for (int32_t i = 0; i < n->nin; i++) {
            int32_t source = f->cluster[f->g->values[n->in[i]].node];
            if (source >= 0 && find(f, source) == to) return true;
        }
        depth = push_inputs(f, k, from, to, depth);
        if (f->visited[f->next[k]] != f->stamp) f->stack[depth++] = f->next[k];
    }
    return false;
}

/* Different values that the two clusters together read from outside. */
static int32_t count_operands(fuser *f, int32_t a, int32_t b)
{
    int32_t count = 0, ends[2] = {f->first[a], f->first[b]};
    f->stamp++;
    for (int side = 0; side < 2; side++) {
        int32_t k = ends[side];
        do {
            const stk_node *n = &f->g->nodes[k];
            for (int32_t i = 0; i < n->nin; i++) {
                int32_t from = f->g->values[n->in[i]].node;
                int32_t source = f->cluster[from] >= 0 ? find(f, f->cluster[from]) : -1;
                if (source == a || source == b || f->counted[n->in[i]] == f->stamp) continue;
                f->counted[n->in[i]] = f->stamp;
                count++;
            }
        } while ((k = f->next[k]) != ends[side]);
    }
    return count;
}

/* May the clusters become one? Direct edges between them are what we want. */
static bool can_join(fuser *f, int32_t mine, int32_t id)
{
    return f->size[mine] + f->size[id] <= MOST_NODES &&
           count_operands(f, mine, id) <= MOST_OPERANDS && !is_around(f, mine, id) &&
           !is_around(f, id, mine);
}

static void join(fuser *f, int32_t a, int32_t b)
{
    int32_t *left = &f->next[f->first[a]], *right = &f->next[f->first[b]], swap = *left;
    *left = *right; /* two rings become one */
    *right = swap;
    f->parent[b] = a;
    f->size[a] += f->size[b];
    if (f->first[b] < f->first[a]) f->first[a] = f->first[b];
}

static void place_node(fuser *f, int32_t k, bool no_fuse)
{
    const stk_graph *g = f->g;
    const stk_node *n = &g->nodes[k];
    int32_t mine = f->count++;
    f->cluster[k] = f->parent[mine] = mine;
    f->size[mine] = 1;
    f->first[mine] = k;
    for (int32_t i = 0; i < n->nin && !no_fuse; i++) {
        int32_t from = g->values[n->in[i]].node;
        if (f->cluster[from] < 0 || must_store(stk_type_of(g, n->in[i])->dtype)) continue;
        if (!stk_shape_equal(&stk_type_of(g, n->in[i])->shape, &stk_type_of(g, n->out)->shape))
            continue;
        int32_t id = find(f, f->cluster[from]);
        mine = find(f, mine);
        if (id != mine && can_join(f, mine, id)) join(f, id, mine);
    }
}

stk_status stk_plan_clusters(const stk_graph *g, bool no_fuse, int32_t *clusters, int32_t *count,
                             stk_error *err)
{
    size_t n = (size_t)g->nnodes + 1, edges = n;
    for (int64_t k = 0; k < g->nnodes; k++) edges += (size_t)g->nodes[k].nin;
    size_t values = (size_t)g->nvalues + 1, all = 6 * n + values + edges;
    int32_t *memory = stk_calloc(all, sizeof *memory);
    if (!memory) return stk_fail_memory(err, "fuse", all * sizeof *memory);
    fuser f = {.g = g,
               .cluster = clusters,
               .parent = memory,
               .size = memory + n,
               .first = memory + 2 * n,
               .next = memory + 3 * n,
               .visited = memory + 4 * n,
               .counted = memory + 6 * n,
               .stack = memory + 6 * n + values};
    for (int32_t k = 0; k < g->nnodes; k++) {
        clusters[k] = -1;
        f.next[k] = k;
    }
    for (int64_t k = 0; k < g->nnodes; k++)
        if (is_chainable(g, &g->nodes[k])) place_node(&f, (int32_t)k, no_fuse);
    /* Number the clusters that are left 0, 1, 2, ... */
    int32_t *number = memory + 5 * n;
    memset(number, 0, n * sizeof *number);
    *count = 0;
    for (int64_t k = 0; k < g->nnodes; k++)
        if (clusters[k] >= 0) {
            int32_t root = find(&f, clusters[k]);
            if (!number[root]) number[root] = ++*count;
            clusters[k] = root;
        }
    for (int64_t k = 0; k < g->nnodes; k++)
        if (clusters[k] >= 0) clusters[k] = number[clusters[k]] - 1;
    stk_free(memory);
    return STK_OK;
}
