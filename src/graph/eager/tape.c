/* Tapes: what was computed from watched tensors, and its gradient.
 *
 * The gradient is made by the same rules as in graphs: the noted operations become a graph, stk_g_gradients adds the
 * backward nodes, and these run one by one as eager calls on the tensors at hand. Being eager calls, they are
 * noted by outer tapes. */
#include "graph/eager/eager.h"
#include "stoker/tracing.h"

#include <stdio.h>
#include <string.h>

/* ---- the set of tensors that matter ------------------------------------------------------------------ */

static uint64_t hash_pointer(const void *p)
{
    return ((uint64_t)(uintptr_t)p >> 6) * 0x9e3779b97f4a7c15ull >> 16;
}

static bool is_watched(const stk_tape *tape, const stk_tensor *t)
{
    if (!tape->cap_watched) return false;
    for (uint64_t i = hash_pointer(t);; i++) {
        const stk_tensor *at = tape->watched[i & (uint64_t)(tape->cap_watched - 1)];
        if (!at) return false;
        if (at == t) return true;
    }
}

static void put(stk_tensor **set, int64_t size, stk_tensor *t)
{
    uint64_t i = hash_pointer(t);
    while (set[i & (uint64_t)(size - 1)]) i++;
    set[i & (uint64_t)(size - 1)] = t;
}

/* Adds t and holds a handle, so that its address is not given to another tensor while the tape lives. */
static bool watch(stk_tape *tape, stk_tensor *t)
{
    if (is_watched(tape, t)) return true;
    if (2 * (tape->nwatched + 1) > tape->cap_watched) {
        int64_t size = tape->cap_watched ? 2 * tape->cap_watched : 32;
        stk_tensor **bigger = stk_calloc((size_t)size, sizeof *bigger);
        if (!bigger) return false;
        for (int64_t i = 0; i < tape->cap_watched; i++)
            if (tape->watched[i]) put(bigger, size, tape->watched[i]);
        stk_free(tape->watched);
        tape->watched = bigger;
        tape->cap_watched = size;
    }
    put(tape->watched, tape->cap_watched, stk_tensor_retain(t));
    tape->nwatched++;
    return true;
}

/* ---- noting ------------------------------------------------------------------------------------------------ */

stk_status stk_tape_begin(stk_eager *e, stk_tape **out)
{
    if (!e || !out) return STK_ERR_ARGUMENT;
    stk_tape *tape = stk_calloc(1, sizeof *tape);
    if (!tape) return stk_fail_memory(&e->error, "stk_tape_begin", sizeof *tape);
    tape->e = e;
    tape->outer = e->tape;
    e->tape = tape;
    *out = tape;
    return STK_OK;
}

stk_status stk_tape_watch(stk_tape *tape, stk_tensor *t)
{
    if (!tape) return STK_ERR_ARGUMENT;
    if (!t)
        return stk_fail(&tape->e->error, STK_ERR_ARGUMENT, "stk_tape_watch: the tensor is NULL");
    return watch(tape, t) ? STK_OK : stk_fail_memory(&tape->e->error, "stk_tape_watch", 0);
}

void stk_tape_release(stk_tape *tape)
{
    if (!tape) return;
    stk_tape **link = &tape->e->tape;
    while (*link && *link != tape) link = &(*link)->outer;
    if (*link) *link = tape->outer;
    for (int64_t k = 0; k < tape->count; k++) {
        for (int32_t i = 0; i < tape->entries[k].nin; i++)
            stk_tensor_release(tape->entries[k].in[i]);
        for (int32_t o = 0; o < tape->entries[k].nout; o++)
            stk_tensor_release(tape->entries[k].out[o]);
    }
    for (int64_t i = 0; i < tape->cap_watched; i++) stk_tensor_release(tape->watched[i]);
    stk_free(tape->watched);
    stk_free(tape->entries);
    stk_arena_release(&tape->arena);
    stk_free(tape);
}

static bool note(stk_tape *tape, const stk_tape_entry *from)
{
    stk_tape_entry t = *from;
    t.in = stk_arena_copy(&tape->arena, from->in, (size_t)t.nin * sizeof *t.in);
    t.out = stk_arena_copy(&tape->arena, from->out, (size_t)t.nout * sizeof *t.out);
    t.attrs.ints = stk_arena_copy(&tape->arena, from->attrs.ints,
                                  (size_t)t.attrs.nints * sizeof *t.attrs.ints);
    t.attrs.reals = stk_arena_copy(&tape->arena, from->attrs.reals,
                                   (size_t)t.attrs.nreals * sizeof *t.attrs.reals);
    if (!t.in || !t.out || !t.attrs.ints || !t.attrs.reals ||
        !STK_GROW(tape->entries, tape->count, tape->capacity))
        return false;
    for (int32_t o = 0; o < t.nout; o++)
        if (!watch(tape, t.out[o])) return false;
    for (int32_t i = 0; i < t.nin; i++) stk_tensor_retain(t.in[i]);
    for (int32_t o = 0; o < t.nout; o++) stk_tensor_retain(t.out[o]);
    tape->entries[tape->count++] = t;
    return true;
}

static stk_status note_everywhere(stk_eager *e, const stk_tape_entry *entry)
{
    for (stk_tape *tape = e->tape; tape; tape = tape->outer) {
        bool matters = false;
        for (int32_t i = 0; i < entry->nin && !tape->paused; i++)
            matters |= is_watched(tape, entry->in[i]);
        if (!matters || note(tape, entry)) continue;
        return stk_fail_memory(&e->error, "tape", 0);
    }
    return STK_OK;
}

stk_status stk_tape_note(stk_eager *e, stk_op op, int32_t nin, stk_tensor *const *in,
                         const stk_attrs *attrs, int32_t nout, stk_tensor *const *out)
{
    stk_tape_entry entry = {.op = op,
                            .nin = nin,
                            .nout = nout,
                            .in = (stk_tensor **)(uintptr_t)in,
                            .out = (stk_tensor **)(uintptr_t)out};
    if (attrs) entry.attrs = *attrs;
    return note_everywhere(e, &entry);
}

static void never_run(void *context, int32_t nin, const stk_tensor *const *in, int32_t nout,
                      stk_tensor *const *out)
{
    (void)context, (void)nin, (void)in, (void)nout, (void)out;
}

stk_status stk_tape_note_host(stk_eager *e, const stk_host *host, int32_t nx, stk_tensor *const *x,
                              int32_t ny, stk_tensor *const *y)
{
    if (!e) return STK_ERR_ARGUMENT;
    if (!host || !host->name || nx < 0 || ny < 1 || (nx && !x) || !y)
        return stk_fail(&e->error, STK_ERR_ARGUMENT,
                        "stk_tape_note_host: a host with a name, x and y must be given");
    stk_tape_entry entry = {.op = STK_OP_HOST,
                            .nin = nx,
                            .nout = ny,
                            .in = (stk_tensor **)(uintptr_t)x,
                            .out = (stk_tensor **)(uintptr_t)y,
                            .host = *host};
    entry.host.run = never_run;
    return note_everywhere(e, &entry);
}

/* ---- running a graph node by node -------------------------------------------------------------------------- */

/* Outer tapes learn where the results come from, and that there is no way back through them. */
static stk_status run_host(stk_eager *e, const stk_graph *g, const stk_node *n,
                           stk_tensor *const *in, stk_tensor **out)
{
    enum { MOST = 64 };
    stk_tensor *here[MOST] = {0};
    stk_status status = STK_OK;
    for (int32_t i = 0; i < n->nin && status == STK_OK; i++)
        status = stk_tensor_to(in[i], NULL, &here[i], &e->error);
    if (status == STK_OK) status = stk_host_call(g, n, here, out, &e->error);
    for (int32_t i = 0; i < n->nin; i++) stk_tensor_release(here[i]);
    if (status != STK_OK) return status;
    status = stk_tape_note_host(e, &(stk_host){.name = n->name}, n->nin, in, n->nout, out);
    for (int32_t o = 0; o < n->nout && status != STK_OK; o++) {
        stk_tensor_release(out[o]);
        out[o] = NULL;
    }
    return status;
}

static stk_status run_node(stk_eager *e, const stk_graph *g, const stk_node *n, stk_tensor **known)
{
    enum { MOST = 64 };
    stk_tensor *in[MOST];
    if (n->op == STK_OP_CONST) {
        known[n->out] = stk_tensor_retain(n->tensor);
        return STK_OK;
    }
    if (n->nin > MOST)
        return stk_fail(&e->error, STK_ERR_RANGE, "%s: %d inputs", stk_op_name((stk_op)n->op),
                        n->nin);
    for (int32_t i = 0; i < n->nin; i++) in[i] = known[n->in[i]];
    if (n->op == STK_OP_HOST) return run_host(e, g, n, in, &known[n->out]);
    return stk_eager_apply(
        e, (stk_op)n->op, n->nin, in,
        &(stk_attrs){.ints = n->ints, .nints = n->nints, .reals = n->reals, .nreals = n->nreals},
        &known[n->out]);
}

stk_status stk_eager_interpret(stk_eager *e, const stk_graph *g, stk_tensor **known, int32_t n,
                               const stk_val *wanted)
{
    bool *needed = stk_calloc((size_t)g->nnodes + 1, sizeof *needed);
    if (!needed) return stk_fail_memory(&e->error, "eager", (size_t)g->nnodes);
    for (int32_t i = 0; i < n; i++)
        if (wanted[i]) needed[g->values[wanted[i]].node] = true;
    for (int64_t k = g->nnodes - 1; k >= 0; k--)
        for (int32_t i = 0; needed[k] && !known[g->nodes[k].out] && i < g->nodes[k].nin; i++)
            needed[g->values[g->nodes[k].in[i]].node] = true;
    stk_status status = STK_OK;
    for (int64_t k = 0; k < g->nnodes && status == STK_OK; k++)
        if (needed[k] && !known[g->nodes[k].out]) status = run_node(e, g, &g->nodes[k], known);
    stk_free(needed);
    return status;
}

/* ---- gradients ------------------------------------------------------------------------------------------------- */

/* The tape as a graph: values know their tensors, tensors (by address) their values. */
typedef struct replay {
    stk_graph *g;
    stk_tensor **known; /* per value */
    int64_t capacity;
    stk_val *slot; /* open hash from tensor to value; 0 = free */
    int64_t nslots;
} replay;

static stk_val *slot_of(const replay *r, const stk_tensor *t)
{
    uint64_t i = hash_pointer(t);
    stk_val *at;
    while (*(at = &r->slot[i & (uint64_t)(r->nslots - 1)]) && r->known[*at] != t) i++;
    return at;
}

static stk_val value_of(const replay *r, const stk_tensor *t)
{
    return r->nslots ? *slot_of(r, t) : 0;
}

static bool make_room(replay *r, int64_t values)
{
    int64_t bigger = r->capacity ? r->capacity : 128;
    while (bigger <= values) bigger *= 2;
    stk_tensor **known = stk_calloc((size_t)bigger, sizeof *known);
    stk_val *slot = stk_calloc((size_t)bigger * 2, sizeof *slot);
    if (!known || !slot) {
        stk_free(known);
        stk_free(slot);
        stk_g_fail(r->g, STK_ERR_MEMORY, "tape: out of memory for %lld values", (long long)bigger);
        return false;
    }
    if (r->known) memcpy(known, r->known, (size_t)r->capacity * sizeof *known);
    stk_free(r->known);
    stk_free(r->slot);
    r->known = known;
    r->slot = slot;
    r->nslots = 2 * bigger;
    for (int64_t v = 1; v < r->capacity; v++)
        if (known[v]) *slot_of(r, known[v]) = (stk_val)v;
    r->capacity = bigger;
    return true;
}

static bool remember(replay *r, stk_val v, stk_tensor *t)
{
    if (v >= r->capacity && !make_room(r, v)) return false;
    r->known[v] = stk_tensor_retain(t);
    *slot_of(r, t) = v;
    return true;
}

static stk_val leaf(replay *r, stk_tensor *t)
{
    char name[32];
    stk_val v = value_of(r, t);
    if (v) return v;
    snprintf(name, sizeof name, "t%lld", (long long)r->g->nvalues);
    v = stk_g_input(r->g, name, t->dtype, t->rank, t->shape);
    return v && remember(r, v, t) ? v : 0;
}

static stk_val replay_host(replay *r, const stk_tape_entry *t, const stk_val *in)
{
    enum { MOST = 32 };
    stk_host_result results[MOST];
    for (int32_t o = 0; o < t->nout && o < MOST; o++) {
        results[o] = (stk_host_result){.dtype = t->out[o]->dtype, .rank = t->out[o]->rank};
        memcpy(results[o].shape, t->out[o]->shape, sizeof results[o].shape);
    }
    return stk_g_host(r->g, &t->host, t->nin, in, t->nout, results);
}

static bool replay_entry(replay *r, const stk_tape_entry *t)
{
    enum { MOST = 64 };
    stk_val in[MOST];
    for (int32_t i = 0; i < t->nin && i < MOST; i++)
        if (!(in[i] = leaf(r, t->in[i]))) return false;
    stk_val y = t->op == STK_OP_HOST ? replay_host(r, t, in)
                                     : stk_g_apply(r->g, t->op, t->nin, in, &t->attrs);
    for (int32_t o = 0; y && o < t->nout; o++)
        if (!remember(r, y + o, t->out[o])) return false;
    return y != 0;
}

typedef struct wish {
    int32_t ny, nx;
    stk_tensor *const *y, *const *dy, *const *x;
    stk_val *v; /* [2 ny + 2 nx]: y, dy, x, dx */
} wish;

/* Leaves d in w->v + 2 ny + nx; 0 where nothing arrives. */
static stk_status differentiate(stk_tape *tape, replay *r, const wish *w)
{
    stk_val *y = w->v, *dy = y + w->ny, *x = dy + w->ny, *dx = x + w->nx;
    stk_eager *e = tape->e;
    for (int64_t k = 0; k < tape->count; k++)
        if (!replay_entry(r, &tape->entries[k])) break;
    for (int32_t i = 0; i < w->ny; i++) {
        y[i] = leaf(r, w->y[i]);
        dy[i] = w->dy && w->dy[i] ? leaf(r, w->dy[i]) : 0;
    }
    for (int32_t i = 0; i < w->nx; i++) x[i] = leaf(r, w->x[i]);
    stk_g_gradients_of(
        r->g, &(stk_gradient_request){.ny = w->ny, .y = y, .dy = dy, .nx = w->nx, .x = x}, dx);
    if (stk_graph_ok(r->g) && r->g->nvalues > r->capacity) make_room(r, r->g->nvalues);
    STK_TRY(stk_graph_status(r->g, &e->error));
    return stk_eager_interpret(e, r->g, r->known, w->nx, dx);
}

static stk_status check_wish(stk_eager *e, const wish *w, stk_tensor **dx)
{
    if (w->ny < 1 || !w->y || w->nx < 0 || (w->nx && (!w->x || !dx)))
        return stk_fail(&e->error, STK_ERR_ARGUMENT,
                        "tape: needs at least one y, and room for the gradient of each x");
    for (int32_t i = 0; i < w->ny; i++)
        if (!w->y[i]) return stk_fail(&e->error, STK_ERR_ARGUMENT, "tape: y[%d] is NULL", i);
    for (int32_t i = 0; i < w->nx; i++)
        if (!w->x[i]) return stk_fail(&e->error, STK_ERR_ARGUMENT, "tape: x[%d] is NULL", i);
    return STK_OK;
}

stk_status stk_tape_gradients(stk_tape *tape, int32_t ny, stk_tensor *const *y,
                              stk_tensor *const *dy, int32_t nx, stk_tensor *const *x,
                              stk_tensor **dx)
{
    if (!tape) return STK_ERR_ARGUMENT;
    stk_eager *e = tape->e;
    wish w = {.ny = ny, .nx = nx, .y = y, .dy = dy, .x = x};
    STK_TRY(check_wish(e, &w, dx));
    w.v = stk_calloc(2 * (size_t)ny + 2 * (size_t)nx, sizeof *w.v);
    if (!w.v) return stk_fail_memory(&e->error, "tape", 0);
    replay r = {0};
    bool before = tape->paused;
    stk_status status = stk_graph_new(&r.g, &e->error);
    tape->paused = true; /* its own gradient is not part of what it notes; outer tapes do note it */
    if (status == STK_OK) status = differentiate(tape, &r, &w);
    tape->paused = before;
    const stk_val *d = w.v + 2 * ny + nx;
    for (int32_t i = 0; i < nx && status == STK_OK; i++)
        dx[i] = d[i] ? stk_tensor_retain(r.known[d[i]]) : NULL;
    for (int64_t v = 0; v < r.capacity; v++) stk_tensor_release(r.known[v]);
    stk_free(r.known);
    stk_free(r.slot);
    stk_graph_release(r.g);
    stk_free(w.v);
    return status;
}

stk_status stk_tape_gradient(stk_tape *tape, stk_tensor *y, int32_t n, stk_tensor *const *x,
                             stk_tensor **dx)
{
    STK_TRY(stk_tape_gradients(tape, 1, &y, NULL, n, x, dx));
    stk_status status = STK_OK;
    for (int32_t i = 0; i < n && status == STK_OK; i++)
        if (!dx[i])
            status = stk_tensor_new(x[i]->dtype, x[i]->rank, x[i]->shape, &dx[i], &tape->e->error);
    for (int32_t i = 0; i < n && status != STK_OK; i++) stk_tensor_release(dx[i]);
    return status;
}

bool stk_tape_pause(stk_tape *tape, bool paused)
{
    if (!tape) return false;
    bool before = tape->paused;
    tape->paused = paused;
    return before;
}

bool stk_tape_watches(const stk_tape *tape, const stk_tensor *t)
{
    return tape && t && is_watched(tape, t);
}
