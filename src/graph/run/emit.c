/* emit.c - the last step of compiling: memory is allocated, every argument gets its address or the slot that a run fills
 * in, and the device loads the plan. */
#include "graph/run/control.h"
#include "graph/run/program.h"

#include "base/cpus.h"
#include "base/spill.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- constants and uniforms -------------------------------------------------------------------------- */

/* One block: the numbers that come with every run, then every constant that a task reads. */
static stk_status load_constants(stk_program *p, stk_error *err)
{
    const stk_graph *g = p->g;
    stk_home *home = p->plan.home;
    int64_t bytes = STK_UNIFORM_BYTES;
    for (int64_t k = 0; k < g->nnodes; k++)
        if (g->nodes[k].op == STK_OP_CONST) {
            home[g->nodes[k].out].at = bytes;
            bytes += stk_round_up(home[g->nodes[k].out].bytes, STK_ALIGN);
        }
    p->constants = p->device->vt->memory.alloc(p->device, (size_t)bytes);
    if (!p->constants) return stk_fail_memory(err, "constants", (size_t)bytes);
    for (int64_t k = 0; k < g->nnodes; k++) {
        const stk_node *n = &g->nodes[k];
        if (n->op == STK_OP_STEP) p->plan.uniforms = stk_address_of(p->constants, 0);
        stk_tensor *dense = NULL;
        if (n->op != STK_OP_CONST || home[n->out].bytes == 0) continue;
        if (n->tensor->dtype == STK_STRING)
            return stk_fail(err, STK_ERR_DTYPE, "a constant of strings cannot be computed with");
        STK_TRY(stk_tensor_dense(n->tensor, &dense, err));
        stk_status status =
            p->device->vt->queue.set(p->device, stk_address_of(p->constants, home[n->out].at),
                                     dense->data, (size_t)home[n->out].bytes, err);
        stk_tensor_release(dense);
        STK_TRY(status);
    }
    return STK_OK;
}

/* ---- variables and inputs ---------------------------------------------------------------------------- */

static stk_status bind_variable(const stk_program *p, const stk_node *n, stk_variable_use *use,
                                stk_address *address, stk_error *err)
{
    stk_type type = *stk_type_of(p->g, n->out);
    stk_half half;
    const char *shadow = stk_shadow_of(n);
    use->halved = stk_half_of(n, &half);
    use->shadow = shadow != NULL;
    use->assigned = p->g->values[n->out].assigned;
    if (shadow) {
        type.dtype = STK_F32;
        STK_TRY(stk_store_bind_shadow(p->store, shadow, &type, address, err));
    } else if (use->halved) {
        type.shape.dim[half.axis] *= 2;
        STK_TRY(
            stk_store_bind_half(p->store, half.whole, &type, half.axis, half.owner, address, err));
    } else {
        STK_TRY(stk_store_bind(p->store, n->name, &type, address, err));
    }
    use->index = stk_store_index(p->store, shadow ? shadow : use->halved ? half.whole : n->name);
    return STK_OK;
}

/* A shadow stands behind its variable (passes/shadows.c). */
static void note_kept(stk_program *p)
{
    for (int64_t i = 1; i < p->nuses; i++)
        if (p->uses[i].shadow && p->uses[i].assigned && p->uses[i - 1].index == p->uses[i].index)
            p->uses[i - 1].kept = true;
}

static stk_status bind_variables(stk_program *p, stk_address *address, stk_error *err)
{
    int64_t count = 0;
    for (int64_t k = 0; k < p->g->nnodes; k++) count += p->g->nodes[k].op == STK_OP_VARIABLE;
    p->uses = stk_arena_array(&p->plan.arena, (size_t)count, sizeof *p->uses);
    if (!p->uses) return stk_fail_memory(err, "variables", (size_t)count * sizeof *p->uses);
    for (int64_t k = 0; k < p->g->nnodes; k++) {
        const stk_node *n = &p->g->nodes[k];
        if (n->op == STK_OP_VARIABLE)
            STK_TRY(bind_variable(p, n, &p->uses[p->nuses++], &address[n->out], err));
    }
    note_kept(p);
    return STK_OK;
}

/* Where data must be sent to a device, an input of a few bytes goes along with the uniforms. */
static void ride_along(stk_program *p, stk_feed *f, stk_val v)
{
    enum { FEW = 16 };
    int64_t bytes = stk_type_bytes(&f->type);
    f->uniform_at = -1;
    if (stk_device_shares(p->device) || p->plan.outside_results) return; /* bodies get addresses */
    if (bytes > FEW || p->uniform_bytes + FEW > STK_UNIFORM_BYTES) return;
    f->uniform_at = p->uniform_bytes;
    p->plan.home[v].place = STK_AT_UNIFORM;
    p->plan.home[v].at = f->uniform_at;
    p->plan.uniforms = stk_address_of(p->constants, 0);
    p->uniform_bytes += FEW;
}

static stk_status list_inputs(stk_program *p, int32_t *feed_of, stk_error *err)
{
    for (int64_t k = 0; k < p->g->nnodes; k++) p->nfeeds += p->g->nodes[k].op == STK_OP_INPUT;
    p->feeds = stk_arena_array(&p->plan.arena, (size_t)p->nfeeds, sizeof *p->feeds);
    if (!p->feeds) return stk_fail_memory(err, "inputs", 0);
    int32_t i = 0;
    for (int64_t k = 0; k < p->g->nnodes; k++) {
        const stk_node *n = &p->g->nodes[k];
        if (n->op != STK_OP_INPUT) continue;
        feed_of[n->out] = i;
        p->feeds[i] = (stk_feed){.name = n->name, .type = *stk_type_of(p->g, n->out)};
        ride_along(p, &p->feeds[i++], n->out);
    }
    return STK_OK;
}

/* ---- addresses ------------------------------------------------------------------------------------------ */

typedef struct linker {
    stk_program *p;
    stk_address *variable; /* per value: address of a variable */
    int32_t *feed_of;      /* per value: index of an input */
    const stk_program_options *options;
} linker;

/* Inputs have the first slots, results those behind. */
static int32_t slot_of_result(const stk_program *p, stk_val root)
{
    int32_t i = 0;
    while (stk_root(&p->plan, p->g->outputs[i].val) != root) i++;
    return p->nfeeds + i;
}

static stk_link resolve(const linker *l, stk_val v)
{
    const stk_program *p = l->p;
    const stk_home *h = &p->plan.home[v], *root = &p->plan.home[h->root];
    switch ((stk_place)root->place) {
    case STK_AT_ARENA: return (stk_link){{p->plan.memory[root->arena], root->at + h->offset}, -1};
    case STK_AT_VARIABLE: return (stk_link){stk_address_plus(l->variable[h->root], h->offset), -1};
    case STK_AT_UNIFORM:
    case STK_AT_CONST: return (stk_link){{p->constants, root->at + h->offset}, -1};
    case STK_AT_INPUT: return (stk_link){{NULL, h->offset}, l->feed_of[h->root]};
    default: return (stk_link){{NULL, h->offset}, slot_of_result(p, h->root)};
    }
}

static stk_status list_outputs(const linker *l, stk_error *err)
{
    stk_program *p = l->p;
    p->fetches = stk_arena_array(&p->plan.arena, (size_t)p->g->noutputs, sizeof *p->fetches);
    if (!p->fetches) return stk_fail_memory(err, "outputs", 0);
    for (int64_t i = 0; i < p->g->noutputs; i++) {
        const stk_output *o = &p->g->outputs[i];
        const stk_home *h = &p->plan.home[o->val];
        stk_place place = (stk_place)p->plan.home[h->root].place;
        p->fetches[p->nfetches++] =
            (stk_fetch){.name = o->name,
                        .type = *stk_type_of(p->g, o->val),
                        .link = resolve(l, o->val),
                        .outside = place == STK_AT_RESULT,
                        .feed = place == STK_AT_INPUT ? l->feed_of[h->root] : -1};
    }
    return STK_OK;
}

/* ---- tasks ------------------------------------------------------------------------------------------------ */

/* Control flow stands among the tasks without a kernel. */
static stk_status emit_control(const linker *l, const stk_task *t, int64_t k, stk_error *err)
{
    stk_program *p = l->p;
    stk_program_options inner = *l->options;
    inner.device = p->device;
    inner.store = p->store;
    if (!p->control)
        p->control = stk_arena_array(&p->plan.arena, (size_t)p->plan.ntasks, sizeof *p->control);
    if (!p->control) return stk_fail_memory(err, "control flow", 0);
    return stk_control_new(p, &p->g->nodes[t->node], &inner, &p->control[k], err);
}

static stk_status link_task(const linker *l, stk_task *t, int64_t k, stk_error *err)
{
    stk_program *p = l->p;
    t->link = stk_arena_array(&p->plan.arena, (size_t)t->nargs, sizeof *t->link);
    if (!t->link) return stk_fail_memory(err, "launches", 0);
    for (int32_t i = 0; i < t->nargs; i++) t->link[i] = resolve(l, t->arg[i]);
    if (t->scratch_bytes)
        t->scratch = stk_address_of(p->plan.memory[t->scratch_arena], t->scratch_at);
    t->tag = stk_launch_tag(p->serial, k);
    return t->kernel < 0 ? emit_control(l, t, k, err) : STK_OK;
}

/* Refused before anything is taken: "needs X, has Y", and with how many rows it would fit. What is small is not asked about. */
static stk_status check_room(const stk_program *p, stk_error *err)
{
    enum { SMALL = 64 << 20 };
    const stk_device *d = p->device;
    double need = (double)p->plan.arena_bytes, rows = 0;
    for (int64_t k = 0; k < p->g->nnodes; k++) {
        const stk_type *t = stk_type_of(p->g, p->g->nodes[k].out);
        if (p->g->nodes[k].op != STK_OP_INPUT) continue;
        if (!stk_device_shares(d)) need += 2 * (double)stk_type_bytes(t);
        if (rows == 0 && t->shape.rank > 0) rows = (double)t->shape.dim[0];
    }
    double taken = (double)stk_store_bytes(p->store);
    double left = d->caps.memory ? (double)d->caps.memory - taken : (double)stk_memory_left("");
    if (need < SMALL || need <= left) return STK_OK;
    char advice[64] = "";
    /* A third of what the same share would allow: a smaller batch keeps values that a large one computes where they are read. */
    if (rows > 1 && left > 0)
        snprintf(advice, sizeof advice, "try batch %.0f, ",
                 fmax(floor(0.3 * rows * left / need), 1));
    return stk_fail(err, STK_ERR_MEMORY,
                    "%s: activations need %s, it has %s left; %sa smaller model or 16-bit numbers "
                    "(a mixed precision)",
                    d->name, STK_BYTES_TEXT(need), STK_BYTES_TEXT(fmax(left, 0)), advice);
}

static stk_status emit_all(const linker *l, stk_error *err)
{
    stk_program *p = l->p;
    stk_plan *plan = &p->plan;
    STK_TRY(check_room(p, err));
    p->uniform_bytes = sizeof(int64_t) * 2; /* the step, and nothing that would straddle a line */
    STK_TRY(load_constants(p, err));
    STK_TRY(bind_variables(p, l->variable, err));
    STK_TRY(list_inputs(p, l->feed_of, err));
    for (int32_t i = 0; i < plan->narenas; i++) {
        size_t bytes = (size_t)plan->arena_size[i] + STK_ALIGN;
        plan->memory[i] = p->device->vt->memory.alloc(p->device, bytes);
        if (!plan->memory[i]) return stk_fail_memory(err, "activations", bytes);
    }
    STK_TRY(list_outputs(l, err));
    plan->nslots = p->nfeeds + p->nfetches;
    p->slots = stk_arena_array(&plan->arena, (size_t)plan->nslots, sizeof *p->slots);
    if (!p->slots) return stk_fail_memory(err, "inputs", 0);
    for (int64_t k = 0; k < plan->ntasks; k++) STK_TRY(link_task(l, &plan->tasks[k], k, err));
    plan->uniform_bytes = (size_t)p->uniform_bytes;
    return p->device->vt->kernels.load(p->device, plan, &p->sequence, err);
}

stk_status stk_program_emit(stk_program *p, const stk_program_options *options, stk_error *err)
{
    size_t values = (size_t)p->g->nvalues;
    linker l = {p, stk_calloc(values, sizeof(stk_address)), stk_calloc(values, sizeof(int32_t)),
                options};
    stk_status status =
        l.variable && l.feed_of ? emit_all(&l, err) : stk_fail_memory(err, "linking", values * 12);
    stk_free(l.variable);
    stk_free(l.feed_of);
    return status;
}
