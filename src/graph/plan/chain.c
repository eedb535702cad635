/* From a cluster of elementwise nodes to a chain: registers, walks, constants; and the joining of equal chains. */
#include "graph/plan/plan.h"

#include <math.h>
#include <string.h>

typedef struct builder {
    stk_plan *plan;
    const stk_graph *g;
    const stk_chains *chains;
    int32_t id;
    stk_chain *chain;
    stk_shape shape;
    stk_val in_val[STK_CHAIN_IO], out_val[STK_CHAIN_IO];
    int16_t *reg; /* those of `chains` */
    int32_t *last_use;
    bool busy[STK_CHAIN_REGS];
    const char *full; /* what ran out, or NULL */
} builder;

static bool inside(const builder *b, stk_val v)
{
    return b->chains->clusters[b->g->values[v].node] == b->id;
}
static int32_t first_node(const builder *b) { return b->chains->first[b->id]; }
static int32_t next_node(const builder *b, int32_t k) { return b->chains->next[k]; }

static int16_t take_register(builder *b, stk_lane lane)
{
    /* A register keeps its lane: tiles of different element size do not share storage. */
    for (int16_t r = 0; r < STK_CHAIN_REGS; r++) {
        bool fresh = r >= b->chain->regs;
        if (b->busy[r] || (!fresh && b->chain->reg_lane[r] != (int8_t)lane)) continue;
        b->busy[r] = true;
        b->chain->reg_lane[r] = (int8_t)lane;
        if (fresh) b->chain->regs = r + 1;
        return r;
    }
    b->full = "registers";
    return 0;
}

static void set_walk(builder *b, stk_chain_input *in, const stk_shape *s)
{
    int64_t stride[STK_MAX_RANK];
    int32_t lead = b->shape.rank - s->rank;
    if (stk_shape_equal(s, &b->shape)) {
        in->access = STK_ACCESS_DENSE;
    } else if (stk_shape_count(s) == 1) {
        in->access = STK_ACCESS_SCALAR;
    } else if (stk_shape_count(s) == s->dim[s->rank - 1] &&
               s->dim[s->rank - 1] == b->shape.dim[b->shape.rank - 1]) {
        in->access = STK_ACCESS_ROW;
    } else {
        in->access = STK_ACCESS_STRIDED;
        stk_shape_strides(s, stride);
        for (int32_t i = 0; i < s->rank; i++) in->stride[lead + i] = s->dim[i] == 1 ? 0 : stride[i];
    }
}

/* A value that every element of the chain sees alike and that a double holds exactly. */
static bool is_constant(const builder *b, stk_val v, double *value)
{
    return stk_g_splat(b->g, v, value) && fabs(*value) < STK_EXACT;
}

static void enter_constant(builder *b, stk_val v, double value)
{
    stk_chain *c = b->chain;
    stk_lane lane = stk_lane_of(stk_type_of(b->g, v)->dtype);
    if (c->constants == STK_CHAIN_IO) {
        b->full = "constants";
        return;
    }
    int16_t r = take_register(b, lane);
    b->reg[v] = (int16_t)(r + 1);
    c->constant[c->constants++] = (stk_chain_const){r, (int32_t)lane, value};
}

static void enter_input(builder *b, stk_val v)
{
    stk_chain *c = b->chain;
    const stk_type *t = stk_type_of(b->g, v);
    if (c->inputs == STK_CHAIN_IO) {
        b->full = "inputs";
        return;
    }
    b->reg[v] = (int16_t)(take_register(b, stk_lane_of(t->dtype)) + 1);
    stk_chain_input *in = &c->input[c->inputs];
    in->dtype = (int32_t)t->dtype;
    set_walk(b, in, &t->shape);
    b->in_val[c->inputs++] = v;
}

/* Inputs hold registers 0..inputs-1 and constants the next ones, so all operands enter before the first op. */
static void enter_all(builder *b)
{
    for (int pass = 0; pass < 2; pass++)
        for (int32_t k = first_node(b); k >= 0; k = next_node(b, k)) {
            const stk_node *n = &b->g->nodes[k];
            double value;
            for (int32_t i = 0; i < n->nin && !b->full; i++) {
                if (inside(b, n->in[i]) || b->reg[n->in[i]]) continue;
                bool constant = is_constant(b, n->in[i], &value);
                if (constant && pass == 1) enter_constant(b, n->in[i], value);
                if (!constant && pass == 0) enter_input(b, n->in[i]);
            }
        }
}

static void find_last_uses(builder *b)
{
    int32_t index = 0;
    for (int32_t k = first_node(b); k >= 0; k = next_node(b, k), index++) {
        const stk_node *n = &b->g->nodes[k];
        for (int32_t i = 0; i < n->nin; i++) b->last_use[n->in[i]] = index;
    }
}

/* A cast that only names the lane of an input anew (bfloat16 to float32, both floats in a chain) shares its register. */
static bool shares_register(const builder *b, const stk_node *n)
{
    const stk_type *in = stk_type_of(b->g, n->in[0]), *out = stk_type_of(b->g, n->out);
    return n->op == STK_OP_CAST && !inside(b, n->in[0]) && !b->chains->outside[n->out] &&
           out->dtype == STK_F32 && stk_lane_of(in->dtype) == STK_LANE_F32;
}

/* `index`: of the node in its cluster, as find_last_uses() counts. */
static void add_op(builder *b, const stk_node *n, int32_t index)
{
    stk_chain *c = b->chain;
    const stk_type *out = stk_type_of(b->g, n->out);
    if (shares_register(b, n)) {
        b->reg[n->out] = b->reg[n->in[0]];
        return;
    }
    if (c->ops == STK_CHAIN_OPS) {
        b->full = "ops";
        return;
    }
    int16_t r[3] = {0};
    for (int32_t i = 0; i < n->nin; i++) r[i] = (int16_t)(b->reg[n->in[i]] - 1);
    stk_lane lane = stk_lane_of(stk_type_of(b->g, n->in[n->op == STK_OP_SELECT ? 1 : 0])->dtype);
    stk_chain_op *op = &c->op[c->ops];
    *op = (stk_chain_op){.code = (int16_t)(stk_opdef_of((stk_op)n->op)->ew - 1),
                         .lane = (int8_t)lane,
                         .from = (int8_t)lane,
                         .a = r[0],
                         .b = r[1],
                         .c = r[2]};
    if (n->op == STK_OP_CAST) op->lane = (int8_t)stk_lane_of(out->dtype);
    op->dst = take_register(b, stk_lane_of(out->dtype));
    b->reg[n->out] = (int16_t)(op->dst + 1);
    if (b->chains->outside[n->out]) {
        if (c->outputs == STK_CHAIN_IO) {
            b->full = "outputs";
            return;
        }
        c->output[c->outputs] = (stk_chain_output){(int32_t)out->dtype, op->dst};
        b->out_val[c->outputs++] = n->out;
    }
    /* Temporaries read for the last time give their register back. */
    for (int32_t i = 0; i < n->nin; i++) {
        bool is_output = false;
        for (int32_t o = 0; o < c->outputs; o++) is_output |= b->out_val[o] == n->in[i];
        bool temporary = inside(b, n->in[i]) && r[i] >= c->inputs + c->constants;
        if (temporary && b->last_use[n->in[i]] == index && !is_output) b->busy[r[i]] = false;
    }
    c->ops++;
}

static void choose_tile(stk_chain *c)
{
    enum { BUDGET = 24 << 10 }; /* of a 32 KiB L1 */
    int64_t per_element = 0;
    for (int32_t r = 0; r < c->regs; r++) per_element += stk_lane_size((stk_lane)c->reg_lane[r]);
    int64_t tile = BUDGET / (per_element ? per_element : 1) / 64 * 64;
    c->tile = (int32_t)(tile < 64 ? 64 : tile > 1024 ? 1024 : tile);
}

static stk_status make_task(builder *b, stk_task *out, stk_error *err)
{
    stk_chain *c = b->chain;
    int32_t args = c->inputs + c->outputs;
    int64_t *count = stk_arena_alloc(&b->plan->arena, sizeof *count);
    stk_val *arg = stk_arena_array(&b->plan->arena, (size_t)args, sizeof *arg);
    if (!count || !arg) return stk_fail_memory(err, "chain", sizeof *c);
    *count = stk_shape_count(&b->shape);
    memcpy(arg, b->in_val, (size_t)c->inputs * sizeof *arg);
    memcpy(arg + c->inputs, b->out_val, (size_t)c->outputs * sizeof *arg);
    c->segments = 1;
    c->count = count;
    c->rank = b->shape.rank;
    memcpy(c->dim, b->shape.dim, sizeof c->dim);
    choose_tile(c);
    *out = (stk_task){.kernel = STK_K_CHAIN,
                      .params = c,
                      .params_size = sizeof *c,
                      .nin = c->inputs,
                      .nout = c->outputs,
                      .arg = arg,
                      .nargs = args,
                      .count = *count};
    out->flops = (double)*count * c->ops;
    for (int32_t i = 0; i < args; i++)
        out->bytes += (double)stk_type_bytes(stk_type_of(b->g, arg[i]));
    return STK_OK;
}

/* The next chain finds no registers of this one. */
static void forget_registers(builder *b)
{
    for (int32_t k = first_node(b); k >= 0; k = next_node(b, k)) {
        const stk_node *n = &b->g->nodes[k];
        b->reg[n->out] = 0;
        for (int32_t i = 0; i < n->nin; i++) b->reg[n->in[i]] = 0;
    }
}

stk_status stk_plan_chain(stk_plan *p, stk_chains *chains, int32_t id, stk_task *out,
                          stk_error *err)
{
    builder b = {.plan = p,
                 .g = p->g,
                 .chains = chains,
                 .id = id,
                 .reg = chains->reg,
                 .last_use = chains->last_use};
    b.chain = stk_arena_alloc(&p->arena, sizeof *b.chain);
    if (!b.chain) return stk_fail_memory(err, "chain", sizeof *b.chain);
    int32_t last = first_node(&b);
    b.shape = stk_type_of(p->g, p->g->nodes[last].out)->shape; /* all have the same */
    find_last_uses(&b);
    enter_all(&b);
    int32_t index = 0;
    for (int32_t k = first_node(&b); k >= 0 && !b.full; k = next_node(&b, k), index++) {
        add_op(&b, &p->g->nodes[k], index);
        if (p->g->nodes[k].op != STK_OP_CAST) last = k; /* what it is called in reports */
    }
    forget_registers(&b);
    if (b.full)
        return stk_fail(err, STK_ERR_INTERNAL, "a chain ran out of %s; please report this", b.full);
    STK_TRY(make_task(&b, out, err));
    out->node = last;
    return STK_OK;
}

/* ---- what is known about all of them ------------------------------------------------------------------ */

static void link_nodes(stk_chains *c, const stk_graph *g, int32_t count)
{
    for (int32_t i = 0; i < count; i++) c->first[i] = -1;
    for (int64_t k = g->nnodes - 1; k >= 0; k--) {
        int32_t id = c->clusters[k];
        c->next[k] = id >= 0 ? c->first[id] : -1;
        if (id >= 0) c->first[id] = (int32_t)k;
    }
}

static void find_outside(stk_chains *c, const stk_graph *g)
{
    for (int64_t i = 0; i < g->noutputs; i++) c->outside[g->outputs[i].val] = true;
    for (int64_t k = 0; k < g->nnodes; k++)
        for (int32_t i = 0; i < g->nodes[k].nin; i++) {
            stk_val v = g->nodes[k].in[i];
            int32_t home = c->clusters[g->values[v].node];
            if (home < 0 || home != c->clusters[k]) c->outside[v] = true;
        }
}

stk_status stk_chains_new(const stk_graph *g, const int32_t *clusters, int32_t count,
                          stk_chains *out, stk_error *err)
{
    size_t values = (size_t)g->nvalues, nodes = (size_t)g->nnodes;
    *out = (stk_chains){.clusters = clusters};
    out->first = stk_calloc((size_t)count + 1, sizeof *out->first);
    out->next = stk_calloc(nodes + 1, sizeof *out->next);
    out->outside = stk_calloc(values, sizeof *out->outside);
    out->reg = stk_calloc(values, sizeof *out->reg);
    out->last_use = stk_calloc(values, sizeof *out->last_use);
    if (!out->first || !out->next || !out->outside || !out->reg || !out->last_use) {
        stk_chains_release(out);
        return stk_fail_memory(err, "chains", values * sizeof *out->last_use);
    }
    link_nodes(out, g, count);
    find_outside(out, g);
    return STK_OK;
}

void stk_chains_release(stk_chains *c)
{
    stk_free(c->first);
    stk_free(c->next);
    stk_free(c->outside);
    stk_free(c->reg);
    stk_free(c->last_use);
}

/* ---- joining updates ---------------------------------------------------------------------------------- */

/* Per value, what uses it but an assignment and one task: MANY when there is an output, a node that is an alias, or a second
 * task; else that task + 1, or 0. */
enum { MANY = -1 };

static int32_t *find_users(const stk_plan *p)
{
    const stk_graph *g = p->g;
    int32_t *user = stk_calloc((size_t)g->nvalues, sizeof *user);
    if (!user) return NULL;
    for (int32_t k = 0; k < p->ntasks; k++)
        for (int32_t i = 0; !p->tasks[k].dead && i < p->tasks[k].nargs; i++) {
            int32_t *u = &user[p->tasks[k].arg[i]];
            *u = *u == 0 || *u == k + 1 ? k + 1 : MANY;
        }
    for (int64_t i = 0; i < g->noutputs; i++) user[g->outputs[i].val] = MANY;
    for (int64_t k = 0; k < g->nnodes; k++) {
        if (g->nodes[k].op == STK_OP_ASSIGN || stk_op_is_elementwise((stk_op)g->nodes[k].op))
            continue;
        for (int32_t i = 0; i < g->nodes[k].nin; i++) user[g->nodes[k].in[i]] = MANY;
    }
    return user;
}

/* Large updates stay on their own: they run behind their gradient, while it is in cache. */
static bool only_updates(const stk_plan *p, const stk_task *t, const int32_t *user)
{
    enum { LARGE = 1024 }; /* elements: worth a launch of its own, right behind its gradient */
    const stk_chain *c = t->params;
    if (t->dead || t->kernel != STK_K_CHAIN || c->segments != 1) return false;
    if (t->count >= LARGE && !p->join_all) return false;
    for (int32_t i = 0; i < c->inputs; i++)
        if (c->input[i].access != STK_ACCESS_DENSE && c->input[i].access != STK_ACCESS_SCALAR)
            return false;
    for (int32_t o = 0; o < t->nout; o++)
        if (user[t->arg[t->nin + o]] == MANY) return false;
    return true;
}

/* Same program, same kinds of arrays; scalars must be the same value, since they are loaded once. */
static bool same_chain(const stk_plan *p, const stk_task *a, const stk_task *b)
{
    const stk_chain *x = a->params, *y = b->params;
    if (p->home[a->arg[a->nin]].side != p->home[b->arg[b->nin]].side) return false;
    if (x->inputs != y->inputs || x->outputs != y->outputs || x->constants != y->constants ||
        x->ops != y->ops || x->regs != y->regs)
        return false;
    for (int32_t i = 0; i < x->inputs; i++) {
        if (x->input[i].dtype != y->input[i].dtype || x->input[i].access != y->input[i].access)
            return false;
        if (x->input[i].access == STK_ACCESS_SCALAR && a->arg[i] != b->arg[i]) return false;
    }
    return !memcmp(x->output, y->output, sizeof x->output) &&
           !memcmp(x->constant, y->constant, sizeof x->constant) &&
           !memcmp(x->op, y->op, sizeof x->op) &&
           !memcmp(x->reg_lane, y->reg_lane, sizeof x->reg_lane);
}

/* Joins all tasks equal to `first` into one with a segment each. It stands where the last of them stood: all its
 * inputs are ready there, and nobody waits for its results. */
static stk_status join_equal(stk_plan *p, int64_t first, const bool *update, stk_error *err)
{
    const stk_task *t = &p->tasks[first];
    int32_t segments = 0, per = t->nin + t->nout, s = 0;
    int64_t last = first;
    for (int64_t k = first; k < p->ntasks; k++)
        if (update[k] && !p->tasks[k].dead && same_chain(p, t, &p->tasks[k])) {
            segments++;
            last = k;
        }
    if (segments == 1) return STK_OK;
    stk_chain *c = stk_arena_copy(&p->arena, t->params, sizeof *c);
    int64_t *count = stk_arena_array(&p->arena, (size_t)segments, sizeof *count);
    stk_val *arg = stk_arena_array(&p->arena, (size_t)(segments * per), sizeof *arg);
    if (!c || !count || !arg) return stk_fail_memory(err, "joining updates", sizeof *c);
    stk_task joined = *t;
    joined.count = 0;
    joined.flops = joined.bytes = 0;
    for (int64_t k = first; k <= last; k++) {
        stk_task *other = &p->tasks[k];
        if (!update[k] || other->dead || (k != first && !same_chain(p, &joined, other))) continue;
        count[s] = other->count;
        memcpy(arg + s++ * per, other->arg, (size_t)per * sizeof *arg);
        joined.count += other->count;
        joined.flops += other->flops;
        joined.bytes += other->bytes;
        other->dead = true;
    }
    c->segments = segments;
    c->count = count;
    joined.params = c;
    joined.arg = arg;
    joined.nargs = segments * per;
    joined.dead = false;
    joined.node = p->tasks[last].node;
    p->tasks[last] = joined;
    return STK_OK;
}

stk_status stk_plan_join_updates(stk_plan *p, stk_error *err)
{
    bool *update = stk_calloc((size_t)p->ntasks + 1, sizeof *update);
    int32_t *user = find_users(p);
    if (!update || !user) {
        stk_free(update);
        stk_free(user);
        return stk_fail_memory(err, "joining updates", (size_t)p->ntasks);
    }
    for (int64_t k = 0; k < p->ntasks; k++) update[k] = only_updates(p, &p->tasks[k], user);
    stk_free(user);
    stk_status status = STK_OK;
    for (int64_t k = 0; k < p->ntasks && status == STK_OK; k++)
        if (update[k] && !p->tasks[k].dead &&
            ((const stk_chain *)p->tasks[k].params)->segments == 1)
            status = join_equal(p, k, update, err);
    stk_free(update);
    return status;
}
