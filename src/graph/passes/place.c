/* place.c - which node runs where. What the device does not take runs on the CPU: it is gathered into islands, each of which is
 * one node with a body of its own, downloaded before and uploaded afterwards (run/island.c).
 *
 *     level     0              1               2              3
 *     device    a, b, c -----> .               e, f, g -----> .         a level is how often a value has crossed over
 *     island              \--> d (and all of level 1) --/      \--> h    on its way: nodes of one level can go together
 *
 * Whatever leads from one node of an island to another without leaving it is inside; whatever leaves it comes back on a
 * higher level. So one island per level makes no cycle, and no arrangement crosses over less often. */
#include "graph/ir/rewrite.h"

#include <stdio.h>
#include <string.h>

typedef struct placing {
    const stk_graph *g;
    stk_device *device;
    int32_t *level;    /* per node; odd: an island */
    int64_t *row;      /* per node of an island: in the list */
    int64_t *order;    /* nodes by level */
    bool *crosses;     /* per value: used on another level than it is made on */
    stk_val *map;      /* old value -> new one */
    stk_val *inside;   /* old value -> value in the body that is being built */
    stk_val *in, *out; /* of the island that is being built, old values */
    stk_val *brought;  /* values that were brought inside */
    int64_t nbrought;
    stk_islands *list;
    stk_graph *to;
} placing;

/* ---- asking the device ----------------------------------------------------------------------------------- */

/* A chain of this operation alone. */
static void describe_elementwise(const stk_graph *g, const stk_node *n, stk_chain *c)
{
    stk_lane first = stk_lane_of(stk_type_of(g, n->in[0])->dtype);
    stk_lane last = stk_lane_of(stk_type_of(g, n->in[n->nin - 1])->dtype);
    *c = (stk_chain){.inputs = n->nin, .outputs = 1, .ops = 1, .segments = 1, .regs = n->nin + 1};
    for (int32_t i = 0; i < n->nin; i++)
        c->input[i].dtype = (int32_t)stk_type_of(g, n->in[i])->dtype;
    c->output[0].dtype = (int32_t)stk_type_of(g, n->out)->dtype;
    c->op[0] = (stk_chain_op){.code = (int16_t)(stk_opdef_of((stk_op)n->op)->ew - 1),
                              .lane = (int8_t)last,
                              .from = (int8_t)first};
}

static bool makes_nothing(const stk_graph *g, const stk_node *n)
{
    for (int32_t o = 0; o < n->nout; o++)
        if (stk_shape_count(&stk_type_of(g, n->out + o)->shape)) return false;
    return true;
}

/* Leaves, assignments and control flow are everywhere; bodies are asked about when they are compiled. */
static stk_status ask(const placing *p, const stk_node *n, stk_arena *arena, bool *takes, char *why,
                      size_t size, stk_error *err)
{
    const stk_opdef *def = stk_opdef_of((stk_op)n->op);
    stk_device *d = p->device;
    *takes = true;
    if (def->flags & (STK_OPF_LEAF | STK_OPF_CONTROL) || n->op == STK_OP_ASSIGN) return STK_OK;
    if (makes_nothing(p->g, n)) return STK_OK;
    if (def->ew) {
        stk_chain c;
        describe_elementwise(p->g, n, &c);
        *takes = d->vt->kernels.supports(d, STK_K_CHAIN, &c, why, size);
    } else if (def->lower) {
        stk_lower l = {.g = p->g, .node = n, .arena = arena, .err = err, .kernel = -1};
        STK_TRY(def->lower(&l));
        if (!l.alias)
            *takes = d->vt->kernels.supports(d, (stk_kernel)l.kernel, l.params, why, size);
    }
    return STK_OK;
}

static bool list_node(placing *p, const stk_node *n, int32_t number, const char *why)
{
    stk_islands *list = p->list;
    if (!STK_GROW(list->rows, list->count, list->capacity)) return false;
    stk_island *row = &list->rows[list->count++];
    *row = (stk_island){.op = stk_op_name((stk_op)n->op), .number = number};
    snprintf(row->name, sizeof row->name, "%s", n->origin.place ? n->origin.place : "");
    snprintf(row->reason, sizeof row->reason, "%s", why);
    stk_type_text(stk_type_of(p->g, n->out), row->shape, sizeof row->shape);
    return true;
}

/* Levels of all nodes, and a row for each that does not stay on the device. */
static stk_status find_levels(placing *p, int32_t *levels, stk_error *err)
{
    stk_arena arena = {0};
    stk_status status = STK_OK;
    *levels = 1;
    for (int64_t k = 0; k < p->g->nnodes && status == STK_OK; k++) {
        const stk_node *n = &p->g->nodes[k];
        char why[128] = "";
        bool takes = true;
        status = ask(p, n, &arena, &takes, why, sizeof why, err);
        int32_t level = takes ? 0 : 1;
        for (int32_t i = 0; i < n->nin; i++) {
            int32_t from = p->level[p->g->values[n->in[i]].node];
            if ((from & 1) != (takes ? 0 : 1)) from++;
            if (from > level) level = from;
        }
        p->level[k] = level;
        if (level >= *levels) *levels = level + 1;
        p->row[k] = p->list->count;
        if (status == STK_OK && !takes && !list_node(p, n, level / 2, why))
            status = stk_fail_memory(err, "place", sizeof(stk_island));
    }
    stk_arena_release(&arena);
    return status;
}

/* ---- what crosses over ----------------------------------------------------------------------------------- */

static void find_crossings(placing *p)
{
    const stk_graph *g = p->g;
    for (int64_t k = 0; k < g->nnodes; k++)
        for (int32_t i = 0; i < g->nodes[k].nin; i++) {
            stk_val v = g->nodes[k].in[i];
            if (p->level[g->values[v].node] != p->level[k]) p->crosses[v] = true;
        }
    for (int64_t i = 0; i < g->noutputs; i++) p->crosses[g->outputs[i].val] = true;
}

/* By level, and within one as they were. */
static void sort_by_level(placing *p, int32_t *first, int32_t levels)
{
    for (int64_t k = 0; k < p->g->nnodes; k++) first[p->level[k] + 1]++;
    for (int32_t i = 0; i < levels; i++) first[i + 1] += first[i];
    int32_t *at = first; /* counts up to where the next level starts */
    for (int64_t k = 0; k < p->g->nnodes; k++) p->order[at[p->level[k]]++] = k;
}

/* ---- the new graph --------------------------------------------------------------------------------------- */

static void set_origin(stk_graph *to, const stk_node *old)
{
    const char *now = to->origin.place ? to->origin.place : "";
    if (strcmp(now, old->origin.place ? old->origin.place : "")) stk_g_place(to, old->origin.place);
    to->origin.part = old->origin.part;
}

static void copy_node(placing *p, stk_graph *to, stk_val *map, const stk_node *old)
{
    enum { FEW = 64 };
    stk_val few[FEW], *in = few;
    if (old->nin > FEW) in = stk_arena_array(&to->arena, (size_t)old->nin, sizeof *in);
    if (!in) {
        stk_g_fail(p->to, STK_ERR_MEMORY, "out of memory in a pass");
        return;
    }
    for (int32_t i = 0; i < old->nin; i++) in[i] = map[old->in[i]];
    set_origin(to, old);
    stk_val v = stk_rewrite_copy(to, old, in);
    for (int32_t o = 0; v && o < old->nout; o++) map[old->out + o] = v + o;
}

/* Constants go with the island; everything else comes down. */
static int32_t bring_in(placing *p, stk_graph *body, const stk_node *n, int32_t nin,
                        stk_island *row)
{
    const stk_graph *g = p->g;
    for (int32_t i = 0; i < n->nin; i++) {
        stk_val v = n->in[i];
        char name[24];
        if (p->inside[v]) continue;
        if (stk_node_of(g, v)->op == STK_OP_CONST) {
            copy_node(p, body, p->inside, stk_node_of(g, v));
            p->brought[p->nbrought++] = v;
            continue;
        }
        const stk_type *t = stk_type_of(g, v);
        snprintf(name, sizeof name, "x%d", nin);
        p->inside[v] = stk_g_input(body, name, t->dtype, t->shape.rank, t->shape.dim);
        p->in[nin++] = p->brought[p->nbrought++] = v;
        row->bytes_down += stk_type_bytes(t);
    }
    return nin;
}

static int32_t send_out(placing *p, stk_graph *body, const stk_node *n, int32_t nout,
                        stk_island *row)
{
    for (int32_t o = 0; o < n->nout; o++) {
        char name[24];
        if (!p->crosses[n->out + o]) continue;
        snprintf(name, sizeof name, "y%d", nout);
        stk_g_output(body, name, p->inside[n->out + o]);
        p->out[nout++] = n->out + o;
        row->bytes_up += stk_type_bytes(stk_type_of(p->g, n->out + o));
    }
    return nout;
}

/* One node for the nodes order[first..end). */
static void build_island(placing *p, int64_t first, int64_t end)
{
    stk_graph *body = NULL;
    stk_error err;
    int32_t nin = 0, nout = 0;
    if (stk_graph_new(&body, &err) != STK_OK) {
        stk_g_fail(p->to, err.code, "%s", err.message);
        return;
    }
    for (int64_t i = first; i < end; i++) {
        const stk_node *n = &p->g->nodes[p->order[i]];
        stk_island *about = &p->list->rows[p->row[p->order[i]]];
        nin = bring_in(p, body, n, nin, about);
        copy_node(p, body, p->inside, n);
        nout = send_out(p, body, n, nout, about);
        for (int32_t o = 0; o < n->nout; o++) p->brought[p->nbrought++] = n->out + o;
    }
    for (int32_t i = 0; i < nin; i++) p->in[i] = p->map[p->in[i]];
    while (p->nbrought > 0) p->inside[p->brought[--p->nbrought]] = 0; /* nothing in the next one */
    set_origin(p->to, &p->g->nodes[p->order[first]]);
    stk_node like = {
        .op = STK_OP_ISLAND, .nin = nin, .nout = (int16_t)nout, .subs = &body, .nsubs = 1};
    stk_val v = 0;
    if (!stk_graph_ok(body)) stk_g_fail(p->to, body->error.code, "%s", body->error.message);
    if (stk_graph_ok(p->to)) v = stk_g_add_node(p->to, &like, p->in);
    if (!v) stk_graph_release(body);
    for (int32_t o = 0; v && o < nout; o++) p->map[p->out[o]] = v + o;
}

/* A node has at most MOST_OUTPUTS outputs, so a large island is cut; then all its values cross over. */
static void build_islands(placing *p, int64_t first, int64_t end)
{
    enum { MOST_OUTPUTS = 64 };
    const stk_node *nodes = p->g->nodes;
    int64_t all = 0, outs = 0;
    for (int64_t i = first; i < end; i++)
        for (int32_t o = 0; o < nodes[p->order[i]].nout; o++)
            all += p->crosses[nodes[p->order[i]].out + o];
    for (int64_t i = first; all > MOST_OUTPUTS && i < end; i++)
        for (int32_t o = 0; o < nodes[p->order[i]].nout; o++)
            p->crosses[nodes[p->order[i]].out + o] = true;
    for (int64_t i = first; all > MOST_OUTPUTS && i < end; i++) {
        if (outs + nodes[p->order[i]].nout > MOST_OUTPUTS) {
            build_island(p, first, i);
            first = i;
            outs = 0;
        }
        outs += nodes[p->order[i]].nout;
    }
    build_island(p, first, end);
}

static void build(placing *p, const int32_t *end, int32_t levels)
{
    const stk_graph *g = p->g;
    p->to->next_stream = g->next_stream;
    for (int32_t level = 0, at = 0; level < levels && stk_graph_ok(p->to); at = end[level++]) {
        if (level & 1 && end[level] > at) build_islands(p, at, end[level]);
        for (int32_t i = at; !(level & 1) && i < end[level] && stk_graph_ok(p->to); i++)
            copy_node(p, p->to, p->map, &g->nodes[p->order[i]]);
    }
    for (int64_t i = 0; i < g->noutputs && stk_graph_ok(p->to); i++)
        stk_g_output(p->to, g->outputs[i].name, p->map[g->outputs[i].val]);
}

static bool make_room(placing *p)
{
    size_t nodes = (size_t)p->g->nnodes + 1, values = (size_t)p->g->nvalues;
    p->level = stk_calloc(nodes, sizeof *p->level);
    p->row = stk_calloc(nodes, sizeof *p->row);
    p->order = stk_calloc(nodes, sizeof *p->order);
    p->crosses = stk_calloc(values, sizeof *p->crosses);
    p->map = stk_calloc(values, sizeof *p->map);
    p->inside = stk_calloc(values, sizeof *p->inside);
    p->in = stk_calloc(values, sizeof *p->in);
    p->out = stk_calloc(values, sizeof *p->out);
    p->brought = stk_calloc(values, sizeof *p->brought);
    if (!p->brought || !p->row) return false;
    return p->level && p->order && p->crosses && p->map && p->inside && p->in && p->out;
}

static void clear(placing *p)
{
    stk_free(p->level);
    stk_free(p->row);
    stk_free(p->order);
    stk_free(p->crosses);
    stk_free(p->map);
    stk_free(p->inside);
    stk_free(p->in);
    stk_free(p->out);
    stk_free(p->brought);
}

static stk_status place(placing *p, stk_error *err)
{
    int32_t levels = 0;
    STK_TRY(find_levels(p, &levels, err));
    int32_t *end = stk_calloc((size_t)levels + 2, sizeof *end);
    if (!end) return stk_fail_memory(err, "place", (size_t)levels * sizeof *end);
    find_crossings(p);
    sort_by_level(p, end, levels);
    build(p, end, levels);
    stk_free(end);
    return stk_graph_status(p->to, err);
}

stk_status stk_pass_place(const stk_graph *g, stk_device *device, stk_islands *list,
                          stk_graph **out, stk_error *err)
{
    placing p = {.g = g, .device = device, .list = list};
    STK_TRY(stk_graph_new(&p.to, err));
    stk_status status = make_room(&p) ? place(&p, err) : stk_fail_memory(err, "place", 0);
    clear(&p);
    if (status == STK_OK)
        *out = p.to;
    else
        stk_graph_release(p.to);
    return status;
}
