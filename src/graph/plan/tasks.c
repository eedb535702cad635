/* The list of tasks: chains from clusters, one task per other node, none for aliases and leaves; then an order in which
 * every input is ready. */
#include "graph/plan/plan.h"

#include <stdio.h>
#include <string.h>

void *stk_lower_params(stk_lower *l, stk_kernel kernel, size_t size)
{
    void *params = stk_arena_alloc(l->arena, size);
    if (!params) {
        stk_fail_memory(l->err, "lowering", size);
        return NULL;
    }
    l->kernel = (int32_t)kernel;
    l->params = params;
    l->params_size = (int64_t)size;
    return params;
}

stk_status stk_lower_check(stk_lower *l, const char *op, int32_t i, int32_t depth,
                           const int64_t *dim)
{
    const char *layer = l->node->origin.place;
    size_t room = strlen(op) + (layer ? strlen(layer) : 0) + 16;
    stk_index_check *c = stk_arena_alloc(l->arena, sizeof *c);
    char *who = stk_arena_alloc(l->arena, room);
    if (!c || !who) return stk_fail_memory(l->err, "lowering", sizeof *c + room);
    snprintf(who, room, layer ? "%s of layer '%s'" : "%s", op, layer);
    c->who = who;
    c->index = stk_type_of(l->g, l->node->in[i])->shape;
    c->depth = depth;
    memcpy(c->dim, dim, (size_t)(depth ? depth : 1) * sizeof *dim);
    l->check = c;
    return STK_OK;
}

static bool add_task(stk_plan *p, const stk_task *t)
{
    if (!STK_GROW(p->tasks, p->ntasks, p->cap_tasks)) return false;
    p->tasks[p->ntasks++] = *t;
    return true;
}

/* Task of a node that is not elementwise; *made = false when it needs none. */
static stk_status lower_node(stk_plan *p, int64_t k, stk_task *t, bool *made, stk_error *err)
{
    const stk_graph *g = p->g;
    const stk_node *n = &g->nodes[k];
    const stk_opdef *def = stk_opdef_of((stk_op)n->op);
    *made = false;
    if (def->flags & STK_OPF_LEAF || n->op == STK_OP_ASSIGN) return STK_OK;
    *t = (stk_task){.kernel = -1, .node = (int32_t)k, .nin = n->nin, .nout = n->nout};
    if (!(def->flags & STK_OPF_CONTROL)) {
        bool empty = true;
        for (int32_t o = 0; o < n->nout; o++)
            empty &= stk_shape_count(&stk_type_of(g, n->out + o)->shape) == 0;
        stk_lower l = {.g = g, .node = n, .arena = &p->arena, .err = err, .kernel = -1};
        if (!def->lower)
            return stk_fail(err, STK_ERR_UNSUPPORTED, "'%s' cannot run inside a program",
                            stk_op_name((stk_op)n->op));
        STK_TRY(def->lower(&l));
        if (l.alias) {
            p->home[n->out].root = n->in[0];
            p->home[n->out].offset = l.offset;
            return STK_OK;
        }
        if (empty) return STK_OK;
        t->kernel = l.kernel;
        t->params = l.params;
        t->params_size = l.params_size;
        t->check = l.check;
    }
    t->nargs = n->nin + n->nout;
    t->arg = stk_arena_array(&p->arena, (size_t)t->nargs, sizeof *t->arg);
    if (!t->arg) return stk_fail_memory(err, "lowering", 0);
    memcpy(t->arg, n->in, (size_t)n->nin * sizeof *t->arg);
    for (int32_t o = 0; o < n->nout; o++) t->arg[n->nin + o] = n->out + o;
    for (int32_t i = 0; i < t->nargs; i++)
        t->bytes += (double)stk_type_bytes(stk_type_of(g, t->arg[i]));
    t->flops =
        def->cost ? def->cost(g, n) : (double)stk_shape_count(&stk_type_of(g, n->out)->shape);
    *made = true;
    return STK_OK;
}

static stk_status make_tasks(stk_plan *p, const int32_t *clusters, int32_t count, stk_error *err)
{
    const stk_graph *g = p->g;
    stk_chains chains;
    STK_TRY(stk_chains_new(g, clusters, count, &chains, err));
    stk_status status = STK_OK;
    for (int64_t k = 0; k < g->nnodes && status == STK_OK; k++) {
        stk_task t;
        bool made = false;
        if (clusters[k] < 0) {
            bool elementwise =
                stk_op_is_elementwise((stk_op)g->nodes[k].op); /* empty ones need no work */
            if (!elementwise) status = lower_node(p, k, &t, &made, err);
        } else if (chains.next[k] < 0) { /* the last one of its chain */
            status = stk_plan_chain(p, &chains, clusters[k], &t, err);
            made = status == STK_OK;
        }
        if (made && !add_task(p, &t)) status = stk_fail_memory(err, "tasks", 0);
    }
    stk_chains_release(&chains);
    return status;
}

/* ---- order ------------------------------------------------------------------------------------------------ */

/* Follows aliases made so far to the value that a task really writes. */
static stk_val source_of(const stk_plan *p, stk_val v)
{
    while (p->home[v].root != v) v = p->home[v].root;
    return v;
}

/* Emits task k after all tasks that write what it reads. Depth is bounded by the length of the graph. */
static void visit(const stk_plan *p, const int32_t *writer, int64_t k, int8_t *state,
                  int32_t *stack, stk_task *sorted, int64_t *count)
{
    int64_t depth = 0;
    stack[depth++] = (int32_t)k;
    while (depth > 0) {
        int32_t at = stack[depth - 1];
        bool ready = true;
        for (int32_t i = 0; state[at] != 2 && i < p->tasks[at].nargs; i++) {
            int32_t w = writer[source_of(p, p->tasks[at].arg[i])];
            if (w < 0 || w == at || state[w] != 0) continue;
            state[w] = 1;
            stack[depth++] = w;
            ready = false;
            break;
        }
        if (!ready) continue;
        depth--;
        if (state[at] != 2) sorted[(*count)++] = p->tasks[at];
        state[at] = 2;
    }
}

static stk_status order_tasks(stk_plan *p, stk_error *err)
{
    size_t n = (size_t)p->ntasks + 1, values = (size_t)p->g->nvalues;
    stk_task *sorted = stk_calloc(n, sizeof *sorted);
    int32_t *writer = stk_malloc(values * sizeof *writer), *stack = stk_calloc(n, sizeof *stack);
    int8_t *state = stk_calloc(n, 1);
    stk_status status = STK_OK;
    if (sorted && writer && stack && state) {
        int64_t count = 0;
        for (size_t v = 0; v < values; v++) writer[v] = -1;
        for (int64_t k = 0; k < p->ntasks; k++) {
            const stk_task *t = &p->tasks[k];
            int32_t per = t->nin + t->nout;
            if (t->dead) state[k] = 2;
            for (int32_t i = 0; !t->dead && i < t->nargs; i++)
                if (i % per >= t->nin) writer[t->arg[i]] = (int32_t)k;
        }
        for (int64_t k = 0; k < p->ntasks; k++)
            if (state[k] == 0) {
                state[k] = 1;
                visit(p, writer, k, state, stack, sorted, &count);
            }
        if (count) memcpy(p->tasks, sorted, (size_t)count * sizeof *sorted);
        p->ntasks = count;
    } else {
        status = stk_fail_memory(err, "ordering", n * sizeof *sorted);
    }
    stk_free(sorted);
    stk_free(writer);
    stk_free(stack);
    stk_free(state);
    return status;
}

stk_status stk_plan_tasks(stk_plan *p, stk_error *err)
{
    int32_t *clusters = stk_calloc((size_t)p->g->nnodes + 1, sizeof *clusters), chains = 0;
    if (!clusters) return stk_fail_memory(err, "tasks", (size_t)p->g->nnodes * sizeof *clusters);
    stk_plan_sides(p);
    stk_status status = stk_plan_clusters(p->g, p->no_fuse, clusters, &chains, err);
    if (status == STK_OK) status = make_tasks(p, clusters, chains, err);
    if (status == STK_OK && !p->no_fuse) status = stk_plan_join_updates(p, err);
    if (status == STK_OK) status = order_tasks(p, err);
    stk_free(clusters);
    return status;
}
