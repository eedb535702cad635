/* emit.c - the last step of compiling: memory is allocated, addresses are written into the launches, and what
 * depends on the caller's data is noted as patches. */
#include "graph/run/control.h"
#include "graph/run/program.h"

#include <string.h>

/* ---- constants ------------------------------------------------------------------------------------ */

/* One block holds the step number and every constant that a task reads. */
static stk_status load_constants(stk_program *p, stk_error *err)
{
    const stk_graph *g = p->g;
    stk_home *home = p->plan.home;
    int64_t bytes = STK_ALIGN;
    for (int64_t k = 0; k < g->nnodes; k++)
        if (g->nodes[k].op == STK_OP_CONST) {
            home[g->nodes[k].out].at = bytes;
            bytes += stk_round_up(home[g->nodes[k].out].bytes, STK_ALIGN);
        }
    p->constants = p->device->vt->alloc(p->device, (size_t)bytes);
    if (!p->constants) return stk_fail_memory(err, "constants", (size_t)bytes);
    p->constant_bytes = bytes;
    p->step_address = p->constants;
    for (int64_t k = 0; k < g->nnodes; k++) {
        const stk_node *n = &g->nodes[k];
        stk_tensor *dense = NULL;
        if (n->op != STK_OP_CONST || home[n->out].bytes == 0) continue;
        if (n->tensor->dtype == STK_STRING)
            return stk_fail(err, STK_ERR_DTYPE, "a constant of strings cannot be computed with");
        STK_TRY(stk_tensor_dense(n->tensor, &dense, err));
        stk_status status = p->device->vt->upload(p->device, (char *)p->constants + home[n->out].at,
                                                  dense->data, (size_t)home[n->out].bytes, err);
        stk_tensor_release(dense);
        STK_TRY(status);
    }
    return STK_OK;
}

/* ---- variables and inputs ---------------------------------------------------------------------------- */

static stk_status bind_variables(stk_program *p, void **address, stk_error *err)
{
    for (int64_t k = 0; k < p->g->nnodes; k++) {
        const stk_node *n = &p->g->nodes[k];
        if (n->op == STK_OP_VARIABLE)
            STK_TRY(stk_store_bind(p->store, n->name, stk_type_of(p->g, n->out), &address[n->out],
                                   err));
    }
    return STK_OK;
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
        p->feeds[i++] = (stk_feed){.name = n->name, .type = *stk_type_of(p->g, n->out)};
    }
    return STK_OK;
}

/* ---- addresses ------------------------------------------------------------------------------------------ */

typedef struct linker {
    stk_program *p;
    void **variable;  /* per value: address of a variable */
    int32_t *feed_of; /* per value: index of an input */
    const stk_program_options *options;
} linker;

/* Address of a value; inputs have none yet. */
static void *resolve(const linker *l, stk_val v)
{
    const stk_home *h = &l->p->plan.home[v], *root = &l->p->plan.home[h->root];
    switch ((stk_place)root->place) {
    case STK_AT_ARENA: return (char *)l->p->memory + root->at + h->offset;
    case STK_AT_VARIABLE: return (char *)l->variable[h->root] + h->offset;
    case STK_AT_CONST: return (char *)l->p->constants + root->at + h->offset;
    case STK_AT_STEP: return l->p->step_address;
    default: return NULL;
    }
}

/* The patch list that a value belongs to, when its memory comes from the caller. */
static bool patch_list(const linker *l, stk_val root, stk_patch ***list, int32_t **count)
{
    stk_program *p = l->p;
    if (p->plan.home[root].place == STK_AT_INPUT) {
        *list = &p->feeds[l->feed_of[root]].patches;
        *count = &p->feeds[l->feed_of[root]].npatches;
        return true;
    }
    for (int32_t i = 0; p->plan.home[root].place == STK_AT_RESULT && i < p->nfetches; i++)
        if (stk_root(&p->plan, p->g->outputs[i].val) == root) {
            *list = &p->fetches[i].patches;
            *count = &p->fetches[i].npatches;
            return true;
        }
    return false;
}

static bool make_room(stk_program *p, stk_patch **list, int32_t *count)
{
    *list = stk_arena_array(&p->plan.arena, (size_t)*count, sizeof **list);
    *count = 0;
    return *list != NULL;
}

static stk_status add_patches(const linker *l, stk_error *err)
{
    stk_program *p = l->p;
    const stk_plan *plan = &p->plan;
    bool room = true;
    for (int pass = 0; pass < 2; pass++) { /* count, then write */
        for (int64_t k = 0; k < plan->ntasks; k++)
            for (int32_t i = 0; i < plan->tasks[k].nargs; i++) {
                const stk_home *h = &plan->home[plan->tasks[k].arg[i]];
                stk_patch **list;
                int32_t *count;
                if (!patch_list(l, h->root, &list, &count)) continue;
                if (pass) (*list)[*count] = (stk_patch){&p->launches[k].arg[i], h->offset};
                ++*count;
            }
        for (int32_t i = 0; pass == 0 && i < p->nfeeds; i++)
            room = room && make_room(p, &p->feeds[i].patches, &p->feeds[i].npatches);
        for (int32_t i = 0; pass == 0 && i < p->nfetches; i++)
            room = room && make_room(p, &p->fetches[i].patches, &p->fetches[i].npatches);
        if (!room) return stk_fail_memory(err, "inputs", 0);
    }
    return STK_OK;
}

/* Control flow stands among the launches as a place without a kernel; its addresses are patched like theirs. */
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

/* Which args live in memory of the threads. */
static stk_status emit_locals(stk_program *p, const stk_task *t, stk_launch *out, stk_error *err)
{
    for (int32_t i = 0; i < t->nargs; i++)
        out->locals += p->plan.home[stk_root(&p->plan, t->arg[i])].unit > 0;
    if (!out->locals) return STK_OK;
    stk_local *local = stk_arena_array(&p->plan.arena, (size_t)out->locals, sizeof *local);
    if (!local) return stk_fail_memory(err, "launches", 0);
    out->local = local;
    for (int32_t i = 0; i < t->nargs; i++) {
        const stk_home *h = &p->plan.home[stk_root(&p->plan, t->arg[i])];
        if (h->unit > 0) *local++ = (stk_local){.arg = i, .unit = h->unit, .share = h->share};
    }
    return STK_OK;
}

static stk_status emit_launch(const linker *l, const stk_task *t, int64_t k, stk_error *err)
{
    stk_program *p = l->p;
    stk_launch *out = &p->launches[k];
    void **arg = stk_arena_array(&p->plan.arena, (size_t)t->nargs, sizeof *arg);
    if (!arg) return stk_fail_memory(err, "launches", 0);
    for (int32_t i = 0; i < t->nargs; i++) arg[i] = resolve(l, t->arg[i]);
    *out = (stk_launch){.arg = arg,
                        .params = t->params,
                        .units = t->units,
                        .scale = t->scale,
                        .parts = t->parts,
                        .threads = t->threads,
                        .follows = t->follows,
                        .kernel = t->kernel,
                        .args = t->nargs,
                        .impl = t->impl,
                        .label = stk_op_name((stk_op)p->g->nodes[t->node].op),
                        .tag = stk_launch_tag(p->serial, k),
                        .flops = t->flops,
                        .bytes = t->bytes};
    if (t->scratch_bytes) out->scratch = (char *)p->memory + t->scratch_at;
    STK_TRY(emit_locals(p, t, out, err));
    p->nlaunches++; /* from here on release() discards it */
    if (t->kernel < 0) return emit_control(l, t, k, err);
    out->run = t->impl->run;
    return t->impl->prepare ? t->impl->prepare(out, err) : STK_OK;
}

static stk_status list_outputs(const linker *l, stk_error *err)
{
    stk_program *p = l->p;
    p->fetches = stk_arena_array(&p->plan.arena, (size_t)p->g->noutputs, sizeof *p->fetches);
    if (!p->fetches) return stk_fail_memory(err, "outputs", 0);
    for (int64_t i = 0; i < p->g->noutputs; i++) {
        const stk_output *o = &p->g->outputs[i];
        const stk_home *h = &p->plan.home[o->val];
        bool is_input = p->plan.home[h->root].place == STK_AT_INPUT;
        int32_t twin = -1;
        for (int64_t j = i - 1; j >= 0; j--)
            if (stk_root(&p->plan, p->g->outputs[j].val) == h->root) twin = (int32_t)j;
        p->fetches[p->nfetches++] =
            (stk_fetch){.name = o->name,
                        .twin = twin,
                        .type = *stk_type_of(p->g, o->val),
                        .address = resolve(l, o->val),
                        .outside = p->plan.home[h->root].place == STK_AT_RESULT,
                        .offset = h->offset,
                        .feed = is_input ? l->feed_of[h->root] : -1};
    }
    return STK_OK;
}

static stk_status emit_all(const linker *l, stk_error *err)
{
    stk_program *p = l->p;
    const stk_plan *plan = &p->plan;
    STK_TRY(load_constants(p, err));
    STK_TRY(bind_variables(p, l->variable, err));
    STK_TRY(list_inputs(p, l->feed_of, err));
    p->memory_bytes = plan->arena_bytes;
    p->memory = p->device->vt->alloc(p->device, (size_t)p->memory_bytes + STK_ALIGN);
    if (!p->memory) return stk_fail_memory(err, "activations", (size_t)p->memory_bytes);
    p->launches = stk_arena_array(&p->plan.arena, (size_t)plan->ntasks, sizeof *p->launches);
    if (!p->launches) return stk_fail_memory(err, "launches", 0);
    for (int64_t k = 0; k < plan->ntasks; k++) STK_TRY(emit_launch(l, &plan->tasks[k], k, err));
    STK_TRY(list_outputs(l, err));
    return add_patches(l, err);
}

stk_status stk_program_emit(stk_program *p, const stk_program_options *options, stk_error *err)
{
    size_t values = (size_t)p->g->nvalues;
    linker l = {p, stk_calloc(values, sizeof(void *)), stk_calloc(values, sizeof(int32_t)),
                options};
    stk_status status =
        l.variable && l.feed_of ? emit_all(&l, err) : stk_fail_memory(err, "linking", values * 12);
    stk_free(l.variable);
    stk_free(l.feed_of);
    return status;
}
