/* From a cluster of elementwise nodes to a chain: registers, walks, constants; and the joining of equal chains. */
#include "graph/plan/plan.h"

#include <math.h>
#include <string.h>

typedef struct builder {
    stk_plan *plan;
    const stk_graph *g;
    const int32_t *clusters;
    int32_t id;
    stk_chain *chain;
    stk_shape shape;
    stk_val in_val[STK_CHAIN_IO], out_val[STK_CHAIN_IO];
    int16_t *reg;      /* per value: register + 1, 0 = none */
    int32_t *last_use; /* per value: op index of its last read inside the chain */
    bool busy[STK_CHAIN_REGS];
    const char *full; /* what ran out, or NULL */
} builder;

static bool inside(const builder *b, stk_val v)
{
    return b->clusters[b->g->values[v].node] == b->id;
}

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
        for (int64_t k = 0; k < b->g->nnodes; k++) {
            const stk_node *n = &b->g->nodes[k];
            double value;
            for (int32_t i = 0; b->clusters[k] == b->id && i < n->nin && !b->full; i++) {
                if (inside(b, n->in[i]) || b->reg[n->in[i]]) continue;
                bool constant = is_constant(b, n->in[i], &value);
                if (constant && pass == 1) enter_constant(b, n->in[i], value);
                if (!constant && pass == 0) enter_input(b, n->in[i]);
            }
        }
}

static bool used_outside(const builder *b, stk_val v)
{
    const stk_graph *g = b->g;
    for (int64_t i = 0; i < g->noutputs; i++)
        if (g->outputs[i].val == v) return true;
    for (int64_t k = g->values[v].node + 1; k < g->nnodes; k++)
        for (int32_t i = 0; b->clusters[k] != b->id && i < g->nodes[k].nin; i++)
            if (g->nodes[k].in[i] == v) return true;
    return false;
}

static void find_last_uses(builder *b)
{
    int32_t index = 0;
    for (int64_t k = 0; k < b->g->nnodes; k++) {
        if (b->clusters[k] != b->id) continue;
        const stk_node *n = &b->g->nodes[k];
        for (int32_t i = 0; i < n->nin; i++) b->last_use[n->in[i]] = index;
        index++;
    }
}

static void add_op(builder *b, const stk_node *n)
{
    stk_chain *c = b->chain;
    const stk_type *out = stk_type_of(b->g, n->out);
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
    if (used_outside(b, n->out)) {
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
        if (inside(b, n->in[i]) && b->last_use[n->in[i]] == c->ops && !is_output)
            b->busy[r[i]] = false;
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

stk_status stk_plan_chain(stk_plan *p, const int32_t *clusters, int32_t id, stk_task *out,
                          stk_error *err)
{
    size_t values = (size_t)p->g->nvalues;
    builder b = {.plan = p, .g = p->g, .clusters = clusters, .id = id};
    b.chain = stk_arena_alloc(&p->arena, sizeof *b.chain);
    b.reg = stk_calloc(values, sizeof *b.reg);
    b.last_use = stk_calloc(values, sizeof *b.last_use);
    stk_status status = STK_OK;
    if (!b.chain || !b.reg || !b.last_use) status = stk_fail_memory(err, "chain", sizeof *b.chain);
    int32_t last = 0;
    for (int64_t k = 0; status == STK_OK && k < p->g->nnodes; k++)
        if (clusters[k] == id) {
            b.shape = stk_type_of(p->g, p->g->nodes[k].out)->shape;
            last = (int32_t)k;
        }
    if (status == STK_OK) {
        find_last_uses(&b);
        enter_all(&b);
        for (int64_t k = 0; k < p->g->nnodes && !b.full; k++)
            if (clusters[k] == id) add_op(&b, &p->g->nodes[k]);
        status = b.full ? stk_fail(err, STK_ERR_INTERNAL,
                                   "a chain ran out of %s; please report this", b.full)
                        : make_task(&b, out, err);
        out->node = last;
    }
    stk_free(b.reg);
    stk_free(b.last_use);
    return status;
}

/* ---- joining updates ---------------------------------------------------------------------------------- */

/* Does anything but an assignment use v: an output, another task, or a node that is an alias? */
static bool used_elsewhere(const stk_plan *p, const stk_task *t, stk_val v)
{
    const stk_graph *g = p->g;
    for (int64_t i = 0; i < g->noutputs; i++)
        if (g->outputs[i].val == v) return true;
    for (int64_t k = g->values[v].node; k < g->nnodes; k++) {
        bool other =
            g->nodes[k].op != STK_OP_ASSIGN && !stk_op_is_elementwise((stk_op)g->nodes[k].op);
        for (int32_t i = 0; other && i < g->nodes[k].nin; i++)
            if (g->nodes[k].in[i] == v) return true;
    }
    for (int64_t k = 0; k < p->ntasks; k++)
        for (int32_t i = 0; &p->tasks[k] != t && !p->tasks[k].dead && i < p->tasks[k].nargs; i++)
            if (p->tasks[k].arg[i] == v) return true;
    return false;
}

/* Large updates stay on their own: they run behind their gradient, while it is in cache. */
static bool only_updates(const stk_plan *p, const stk_task *t)
{
    enum { LARGE = 1024 }; /* elements: worth a launch of its own, right behind its gradient */
    const stk_chain *c = t->params;
    if (t->dead || t->kernel != STK_K_CHAIN || c->segments != 1 || t->count >= LARGE) return false;
    for (int32_t i = 0; i < c->inputs; i++)
        if (c->input[i].access != STK_ACCESS_DENSE && c->input[i].access != STK_ACCESS_SCALAR)
            return false;
    for (int32_t o = 0; o < t->nout; o++)
        if (used_elsewhere(p, t, t->arg[t->nin + o])) return false;
    return true;
}

/* Same program, same kinds of arrays; scalars must be the same value, since they are loaded once. */
static bool same_chain(const stk_task *a, const stk_task *b)
{
    const stk_chain *x = a->params, *y = b->params;
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
        if (update[k] && !p->tasks[k].dead && same_chain(t, &p->tasks[k])) {
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
        if (!update[k] || other->dead || (k != first && !same_chain(&joined, other))) continue;
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
    if (!update) return stk_fail_memory(err, "joining updates", (size_t)p->ntasks);
    for (int64_t k = 0; k < p->ntasks; k++) update[k] = only_updates(p, &p->tasks[k]);
    stk_status status = STK_OK;
    for (int64_t k = 0; k < p->ntasks && status == STK_OK; k++)
        if (update[k] && !p->tasks[k].dead &&
            ((const stk_chain *)p->tasks[k].params)->segments == 1)
            status = join_equal(p, k, update, err);
    stk_free(update);
    return status;
}
