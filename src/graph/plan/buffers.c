/* Where every value lives: aliases resolved, variables updated in place where that is safe, and the rest packed
 * into one arena by lifetime.
 *
 *     offset ^   +------+        +-----------+
 *            |   |  a   |  +-----+     d     |      a, b, c, d: buffers; two may share bytes
 *            |   +------+--+  c  +-----------+      only when their times do not meet
 *            |   |     b   |     |
 *            +---+---------+-----+-----------> group (time)
 */
#include "graph/plan/plan.h"

#include <stdlib.h>
#include <string.h>

/* ---- homes ------------------------------------------------------------------------------------------- */

static stk_place place_of_leaf(const stk_node *n)
{
    switch (n->op) {
    case STK_OP_INPUT: return STK_AT_INPUT;
    case STK_OP_VARIABLE: return STK_AT_VARIABLE;
    case STK_OP_CONST: return STK_AT_CONST;
    case STK_OP_STEP: return STK_AT_UNIFORM;
    default: return STK_AT_ARENA;
    }
}

static void resolve_aliases(stk_plan *p)
{
    const stk_graph *g = p->g;
    for (int64_t k = 0; k < g->nnodes; k++) {
        const stk_node *n = &g->nodes[k];
        if (n->op == STK_OP_ASSIGN) p->home[n->out].root = n->in[1];
        for (int32_t o = 0; o < n->nout; o++) {
            stk_home *h = &p->home[n->out + o];
            h->bytes = stk_type_bytes(stk_type_of(g, n->out + o));
            if (h->root == n->out + o) {
                h->place = (int8_t)place_of_leaf(n);
            } else { /* sources come first, so theirs are final */
                const stk_home *source = &p->home[h->root];
                h->offset += source->offset;
                h->place = source->place;
                h->root = source->root;
            }
        }
    }
}

/* ---- tasks that write variables --------------------------------------------------------------------------- */

static int32_t op_that_defines(const stk_chain *c, int32_t reg)
{
    int32_t at = -1;
    for (int32_t i = 0; i < c->ops; i++)
        if (c->op[i].dst == reg) at = i;
    return at;
}

static int32_t last_read(const stk_chain *c, int32_t reg)
{
    int32_t at = -1;
    for (int32_t i = 0; i < c->ops; i++) {
        const stk_chain_op *op = &c->op[i];
        int arity = stk_ew_arity((stk_ew)op->code);
        if (op->a == reg || (arity > 1 && op->b == reg) || (arity > 2 && op->c == reg)) at = i;
    }
    return at;
}

/* May output arg `out` of the task share memory with input arg `in`? Only in a chain that walks both alike, in the same
 * segment, and has read the input for the last time when it writes. */
static bool may_share(const stk_plan *p, const stk_task *t, int32_t in, int32_t out)
{
    const stk_chain *c = t->params;
    int32_t per = t->nin + t->nout;
    if (t->kernel != STK_K_CHAIN || in / per != out / per) return false;
    int32_t i = in % per, o = out % per - t->nin;
    if (o < 0 || i >= t->nin || c->input[i].access != STK_ACCESS_DENSE) return false;
    if (p->home[t->arg[in]].bytes != p->home[t->arg[out]].bytes) return false;
    if (stk_dtype_size((stk_dtype)c->input[i].dtype) !=
        stk_dtype_size((stk_dtype)c->output[o].dtype))
        return false;
    int32_t defined = op_that_defines(c, c->output[o].reg);
    if (defined < 0 || last_read(c, i) > defined) return false;
    /* An output that is defined earlier and also sits on this input's memory would be overwritten. */
    for (int32_t other = 0; other < t->nout; other++) {
        int32_t arg = in / per * per + t->nin + other;
        if (arg != out && stk_root(p, t->arg[arg]) == stk_root(p, t->arg[in])) return false;
    }
    return true;
}

/* Who uses what, made once for a plan: values by root, and for each the task that writes it and the last one that reads its
 * root. Joined lists of roots stay right; tasks that are added later are not in it. */
typedef struct uses {
    int32_t *next, *last;    /* values of one root, in a list from the root on; its end */
    int32_t *writer, *arg;   /* by value: task or -1, which of its arguments */
    int32_t *reader, *times; /* by root: the last task that reads it or -1, how often that does */
} uses;

static void uses_release(uses *u) { stk_free(u->next); }

static stk_status uses_new(const stk_plan *p, int64_t values, uses *u, stk_error *err)
{
    int32_t *memory = stk_calloc(6 * (size_t)values, sizeof *memory);
    if (!memory) return stk_fail_memory(err, "memory plan", 6 * (size_t)values * sizeof *memory);
    *u = (uses){memory,
                memory + values,
                memory + 2 * values,
                memory + 3 * values,
                memory + 4 * values,
                memory + 5 * values};
    for (int64_t v = 0; v < values; v++) {
        u->last[v] = (int32_t)v;
        u->writer[v] = u->reader[v] = -1;
    }
    for (int32_t v = 1; v < values; v++) {
        int32_t root = p->home[v].root;
        if (root == v) continue;
        u->next[u->last[root]] = v;
        u->last[root] = v;
    }
    for (int32_t k = 0; k < p->ntasks; k++)
        for (int32_t i = 0; i < p->tasks[k].nargs; i++) {
            stk_val v = p->tasks[k].arg[i];
            if (stk_is_output_arg(&p->tasks[k], i)) {
                u->writer[v] = k;
                u->arg[v] = i;
            } else {
                stk_val root = stk_root(p, v);
                u->times[root] = u->reader[root] == k ? u->times[root] + 1 : 1;
                u->reader[root] = k;
            }
        }
    return STK_OK;
}

/* All values of root r get another one. */
static void move_root(stk_plan *p, uses *u, stk_val r, stk_val to)
{
    for (int32_t v = r; v; v = u->next[v]) {
        p->home[v].root = to;
        p->home[v].place = p->home[to].place;
    }
    u->next[u->last[to]] = r;
    u->last[to] = u->last[r];
}

/* Can value root r (written by an arena task) be computed right in the variable's memory? */
static bool fits_in_variable(const stk_plan *p, const uses *u, stk_val r, stk_val var)
{
    int32_t writer = u->writer[r];
    if (writer < 0 || p->tasks[writer].kernel < 0 || u->reader[var] > writer) return false;
    if (u->reader[var] < writer) return true;
    const stk_task *t = &p->tasks[writer];
    int32_t per = t->nin + t->nout, segment = u->arg[r] / per * per, met = 0;
    for (int32_t i = segment; i < segment + t->nin; i++) {
        if (stk_root(p, t->arg[i]) != var) continue;
        if (p->home[t->arg[i]].offset != 0 || !may_share(p, t, i, u->arg[r])) return false;
        met++;
    }
    return met == u->times[var]; /* else another segment reads it */
}

static stk_status add_copy(stk_plan *p, stk_val from, stk_val to, int32_t node, stk_error *err)
{
    stk_copy_params *c = stk_arena_alloc(&p->arena, sizeof *c);
    stk_val *arg = stk_arena_array(&p->arena, 2, sizeof *arg);
    if (!c || !arg || !STK_GROW(p->tasks, p->ntasks, p->cap_tasks))
        return stk_fail_memory(err, "plan", sizeof *c);
    c->rank = 1;
    c->dim[0] = p->home[from].bytes;
    c->in_stride[0] = c->out_stride[0] = c->item = 1;
    arg[0] = from;
    arg[1] = to;
    p->tasks[p->ntasks++] = (stk_task){.kernel = STK_K_COPY,
                                       .node = node,
                                       .params = c,
                                       .params_size = sizeof *c,
                                       .nin = 1,
                                       .nout = 1,
                                       .arg = arg,
                                       .nargs = 2,
                                       .bytes = 2.0 * (double)c->dim[0]};
    return STK_OK;
}

/* One more value, not in the graph: a temporary of the plan. home[] was made large enough. */
static stk_val new_temporary(stk_plan *p, int64_t *used, int64_t bytes)
{
    stk_val v = (stk_val)(*used)++;
    p->home[v] = (stk_home){.place = STK_AT_ARENA, .root = v, .bytes = bytes};
    return v;
}

/* Values that no task makes are taken as they are before anything changes. */
static stk_status save_values(stk_plan *p, stk_error *err)
{
    const stk_graph *g = p->g;
    int64_t used = g->nvalues;
    for (int64_t k = 0; k < g->nnodes; k++) {
        const stk_node *n = &g->nodes[k];
        if (n->op != STK_OP_ASSIGN || p->home[n->in[0]].bytes == 0) continue;
        stk_home *h = &p->home[n->in[1]];
        if (h->place == STK_AT_ARENA && h->offset == 0 && p->home[h->root].bytes == h->bytes)
            continue;
        stk_val t = new_temporary(p, &used, h->bytes);
        STK_TRY(add_copy(p, n->in[1], t, (int32_t)k, err));
        p->home[n->out].root = t;
        p->home[n->out].offset = 0;
        p->home[n->out].place = STK_AT_ARENA;
    }
    p->nvalues = used;
    return STK_OK;
}

/* Every assignment: in place when safe, else through a copy at the end. The copies read temporaries only, so
 * swapping two variables works. */
static stk_status place_assignments(stk_plan *p, uses *u, stk_error *err)
{
    const stk_graph *g = p->g;
    for (int64_t k = 0; k < g->nnodes; k++) {
        const stk_node *n = &g->nodes[k];
        if (n->op != STK_OP_ASSIGN || p->home[n->in[0]].bytes == 0) continue;
        stk_val r = p->home[n->out].root, var = stk_root(p, n->in[0]);
        if (p->home[r].place == STK_AT_ARENA && fits_in_variable(p, u, r, var))
            move_root(p, u, r, var);
        else
            STK_TRY(add_copy(p, r, n->in[0], (int32_t)k, err));
    }
    return STK_OK;
}

/* Outputs that a task writes whole go to the caller's memory when that is wanted. */
static void place_results(stk_plan *p)
{
    for (int64_t i = 0; p->outside_results && i < p->g->noutputs; i++) {
        const stk_home *h = &p->home[p->g->outputs[i].val];
        stk_home *root = &p->home[h->root];
        if (root->place == STK_AT_ARENA && h->offset == 0 && root->bytes == h->bytes)
            root->place = STK_AT_RESULT;
    }
}

stk_status stk_plan_homes(stk_plan *p, stk_error *err)
{
    uses u;
    resolve_aliases(p);
    STK_TRY(save_values(p, err));
    STK_TRY(uses_new(p, p->nvalues, &u, err));
    stk_status status = place_assignments(p, &u, err);
    uses_release(&u);
    if (status == STK_OK) place_results(p);
    return status;
}

/* ---- lifetimes and offsets ------------------------------------------------------------------------------------ */

typedef struct block {
    int64_t bytes, at;
    int32_t first, last, owner; /* owner: value root, or -1 - task for scratch */
    int32_t arena;
    int8_t side; /* whose it is: owners do not use each other's memory, even at other times */
} block;

static int larger_first(const void *a, const void *b)
{
    const block *x = a, *y = b;
    if (x->side != y->side) return x->side < y->side ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->first != y->first ? (x->first < y->first ? -1 : 1)
                                : (x->owner < y->owner ? -1 : x->owner > y->owner);
}

/* Lowest gap in b's arena among the blocks that are alive at the same time. placed: sorted by offset. */
static int64_t find_gap(const block *placed, int64_t n, const block *b)
{
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        const block *rival = &placed[i];
        if (rival->arena != b->arena) continue;
        if (rival->side == b->side && (rival->first > b->last || b->first > rival->last)) continue;
        if (rival->at - at >= b->bytes) break;
        at = stk_max_i64(at, rival->at + rival->bytes);
    }
    return at;
}

static void insert_by_offset(block *placed, int64_t n, const block *b)
{
    int64_t low = 0, high = n;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (placed[middle].at <= b->at)
            low = middle + 1;
        else
            high = middle;
    }
    memmove(placed + low + 1, placed + low, (size_t)(n - low) * sizeof *placed);
    placed[low] = *b;
}

static void touch(stk_home *h, int32_t time)
{
    if (time < h->first) h->first = time;
    if (time > h->last) h->last = time;
}

static void find_lifetimes(stk_plan *p, int64_t values)
{
    for (int64_t v = 0; v < values; v++) {
        p->home[v].first = INT32_MAX;
        p->home[v].last = -1;
    }
    for (int64_t k = 0; k < p->ntasks; k++)
        for (int32_t i = 0; i < p->tasks[k].nargs; i++)
            touch(&p->home[stk_root(p, p->tasks[k].arg[i])], p->tasks[k].group);
    for (int64_t i = 0; i < p->g->noutputs; i++)
        touch(&p->home[stk_root(p, p->g->outputs[i].val)], p->groups);
}

/* The first and the last task of each group. */
typedef struct span {
    int64_t first, last;
} span;

static bool used_by_others_in_group(const stk_plan *p, const span *spans, int64_t task,
                                    stk_val root)
{
    const span *s = &spans[p->tasks[task].group];
    for (int64_t k = s->first; k <= s->last; k++) {
        if (k == task || p->tasks[k].group != p->tasks[task].group) continue;
        for (int32_t i = 0; i < p->tasks[k].nargs; i++)
            if (stk_root(p, p->tasks[k].arg[i]) == root) return true;
    }
    return false;
}

/* A chain's result may take over the memory of an operand that nobody reads afterwards. One that has a place of the device's own is
 * better off there. */
static void share_operands(stk_plan *p, uses *u, const span *spans)
{
    for (int64_t k = 0; k < p->ntasks; k++) {
        const stk_task *t = &p->tasks[k];
        for (int32_t o = 0; t->kernel == STK_K_CHAIN && o < t->nargs; o++) {
            stk_val out = t->arg[o];
            if (!stk_is_output_arg(t, o) || p->home[out].place != STK_AT_ARENA ||
                stk_root(p, out) != out || p->home[out].own)
                continue;
            for (int32_t i = 0; i < t->nargs; i++) {
                stk_val r = stk_root(p, t->arg[i]);
                const stk_home *h = &p->home[r];
                bool free_now = h->place == STK_AT_ARENA && r != out &&
                                p->home[t->arg[i]].offset == 0 && h->bytes == p->home[out].bytes &&
                                h->last == t->group && h->first < t->group;
                if (stk_is_output_arg(t, i) || !free_now || !may_share(p, t, i, o) ||
                    used_by_others_in_group(p, spans, k, r))
                    continue;
                int32_t last = p->home[out].last;
                move_root(p, u, out, r);
                touch(&p->home[r], last);
                break;
            }
        }
    }
}

static stk_status share_in_place(stk_plan *p, stk_error *err)
{
    uses u;
    int32_t groups = p->groups;
    for (int64_t k = 0; k < p->ntasks; k++)
        if (p->tasks[k].group >= groups) groups = p->tasks[k].group + 1;
    span *spans = stk_calloc((size_t)groups + 1, sizeof *spans);
    if (!spans) return stk_fail_memory(err, "memory plan", (size_t)groups * sizeof *spans);
    for (int64_t k = p->ntasks - 1; k >= 0; k--) {
        span *s = &spans[p->tasks[k].group];
        if (!s->last) s->last = k;
        s->first = k;
    }
    stk_status status = uses_new(p, p->nvalues, &u, err);
    if (status == STK_OK) {
        share_operands(p, &u, spans);
        uses_release(&u);
    }
    stk_free(spans);
    return status;
}

/* ---- packing ------------------------------------------------------------------------------------------------- */

static int64_t list_blocks(const stk_plan *p, block *out)
{
    int64_t n = 0;
    for (int64_t v = 1; v < p->nvalues; v++) {
        const stk_home *h = &p->home[v];
        if (h->root == v && h->place == STK_AT_ARENA && h->last >= 0 && h->bytes > 0)
            out[n++] = (block){h->room, 0, h->first, h->last, (int32_t)v, 0, h->side};
    }
    for (int64_t k = 0; k < p->ntasks; k++)
        if (p->tasks[k].scratch_bytes > 0)
            out[n++] = (block){stk_round_up(p->tasks[k].scratch_bytes, STK_ALIGN),
                               0,
                               p->tasks[k].group,
                               p->tasks[k].group,
                               (int32_t)(-1 - k),
                               0,
                               p->home[p->tasks[k].arg[p->tasks[k].nin]].side};
    return n;
}

/* Into the first arena that has room. `most`: bytes of one; 0: there is one without an end. */
static bool place_block(stk_plan *p, block *b, int64_t most, block *placed, int64_t n)
{
    for (b->arena = 0; b->arena < STK_MOST_ARENAS; b->arena++) {
        b->at = find_gap(placed, n, b);
        int64_t end = b->at + b->bytes;
        if (most && end > most) continue;
        if (b->arena >= p->narenas) p->narenas = b->arena + 1;
        if (end > p->arena_size[b->arena]) p->arena_size[b->arena] = end;
        insert_by_offset(placed, n, b);
        return true;
    }
    return false;
}

static void settle(stk_plan *p, const block *b)
{
    if (b->owner >= 0) {
        p->home[b->owner].at = b->at;
        p->home[b->owner].arena = b->arena;
    } else {
        p->tasks[-1 - b->owner].scratch_at = b->at;
        p->tasks[-1 - b->owner].scratch_arena = b->arena;
    }
}

static stk_status pack(stk_plan *p, const stk_device *device, block *blocks, int64_t n,
                       block *placed, stk_error *err)
{
    /* what stk_program_emit adds to each arena must fit in as well */
    int64_t most = stk_max_i64(device->caps.largest_block - STK_ALIGN, 0);
    p->narenas = 1;
    memset(p->arena_size, 0, sizeof p->arena_size);
    for (int64_t i = 0; i < n; i++) {
        if (!place_block(p, &blocks[i], most, placed, i))
            return stk_fail(
                err, STK_ERR_MEMORY,
                "%s: a value of %lld bytes does not fit: blocks of this device hold at "
                "most %lld, and there can be %d; try a smaller batch, or --device cpu:0",
                device->name, (long long)blocks[i].bytes, (long long)most, STK_MOST_ARENAS);
        settle(p, &blocks[i]);
    }
    p->arena_bytes = 0;
    for (int32_t i = 0; i < p->narenas; i++) p->arena_bytes += p->arena_size[i];
    return STK_OK;
}

/* Where cores share out a small step, one reads ahead past the end of what it walks over, and takes that from the core that is about to
 * write it. A page lies between, as long as all of it stays in the second-level cache. */
static void leave_gaps(block *blocks, int64_t n)
{
    enum { ALL = 256 << 10, LEAST = 1 << 10, GAP = 4 << 10 };
    int64_t bytes = 0;
    for (int64_t i = 0; i < n; i++) bytes += blocks[i].bytes;
    for (int64_t i = 0; bytes <= ALL && i < n; i++)
        if (blocks[i].bytes > LEAST) blocks[i].bytes += GAP;
}

stk_status stk_plan_memory(stk_plan *p, stk_device *device, stk_error *err)
{
    int64_t values = p->nvalues;
    find_lifetimes(p, values);
    for (int64_t v = 1; v < values; v++)
        p->home[v].room = stk_round_up(p->home[v].bytes, STK_ALIGN);
    if (device->vt->kernels.rooms) device->vt->kernels.rooms(device, p);
    STK_TRY(share_in_place(p, err));
    block *blocks = stk_calloc((size_t)(values + p->ntasks), sizeof *blocks);
    block *placed = stk_calloc((size_t)(values + p->ntasks), sizeof *placed);
    stk_status status = STK_OK;
    if (!blocks || !placed) {
        status = stk_fail_memory(err, "memory plan", (size_t)values * sizeof *blocks);
    } else {
        int64_t n = list_blocks(p, blocks);
        if (device->caps.owners) leave_gaps(blocks, n);
        qsort(blocks, (size_t)n, sizeof *blocks, larger_first);
        status = pack(p, device, blocks, n, placed, err);
    }
    stk_free(blocks);
    stk_free(placed);
    return status;
}
