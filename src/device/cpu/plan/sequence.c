/* Loading and running. The loop over launches is in cpu.c; here addresses become pointers: those that are known once, those of
 * slots before a run, and only where another one stands there than in the run before. */
#include "device/cpu/plan/sequence.h"

#include "base/float_env.h"
#include "base/trace.h"
#include "device/cpu/index_note.h"
#include "device/cpu/plan/arrange.h"

#include <string.h>

/* ---- loading --------------------------------------------------------------------------------------------- */

static void *pointer(const stk_cpu_sequence *s, stk_address a)
{
    return s->resolve ? s->resolve(a) : stk_address_pointer(a);
}

/* Which args live in memory of the threads. */
static stk_status load_locals(stk_plan *p, const stk_task *t, stk_launch *out, stk_error *err)
{
    for (int32_t i = 0; i < t->nargs; i++)
        out->locals += stk_slice_of(&p->home[stk_root(p, t->arg[i])]) != NULL;
    if (!out->locals) return STK_OK;
    stk_local *local = stk_arena_array(&p->arena, (size_t)out->locals, sizeof *local);
    if (!local) return stk_fail_memory(err, "launches", 0);
    out->local = local;
    for (int32_t i = 0; i < t->nargs; i++) {
        const stk_slice *s = stk_slice_of(&p->home[stk_root(p, t->arg[i])]);
        if (s) *local++ = (stk_local){.arg = i, .unit = s->unit, .share = s->share};
    }
    return STK_OK;
}

static stk_status load_task(stk_cpu_sequence *s, stk_plan *p, const stk_task *t, stk_error *err)
{
    const stk_cut *c = stk_cut_of(t);
    stk_launch *out = &s->launches[s->n];
    void **arg = stk_arena_array(&p->arena, (size_t)t->nargs, sizeof *arg);
    if (!arg) return stk_fail_memory(err, "launches", 0);
    for (int32_t i = 0; i < t->nargs; i++)
        arg[i] = t->link[i].slot < 0 ? pointer(s, t->link[i].at) : NULL;
    *out = (stk_launch){.arg = arg,
                        .params = t->params,
                        .units = c->units,
                        .scale = c->scale,
                        .parts = c->parts,
                        .threads = c->threads,
                        .follows = c->follows,
                        .solo = c->solo,
                        .kernel = t->kernel,
                        .args = t->nargs,
                        .impl = c->impl,
                        .label = t->label,
                        .tag = t->tag,
                        .flops = t->flops,
                        .bytes = t->bytes};
    if (t->scratch_bytes) stk_launch_give(out, pointer(s, t->scratch));
    STK_TRY(load_locals(p, t, out, err));
    /* Behind a queue nobody would hear of it: such devices compute with zeros. */
    if (t->check && !s->resolve) {
        out->note = stk_index_note_new(&p->arena, t->check, &s->stop);
        if (!out->note) return stk_fail_memory(err, "launches", 0);
    }
    s->n++; /* from here on unload discards it */
    if (t->kernel < 0) return STK_OK;
    out->run = c->impl->run;
    return c->impl->prepare ? c->impl->prepare(out, err) : STK_OK;
}

static stk_status add_patches(stk_cpu_sequence *s, stk_plan *p, stk_error *err)
{
    for (int pass = 0; pass < 2; pass++) { /* count, then write */
        for (int64_t k = 0; k < p->ntasks; k++)
            for (int32_t i = 0; p->tasks[k].kernel >= 0 && i < p->tasks[k].nargs; i++) {
                const stk_link *link = &p->tasks[k].link[i];
                if (link->slot < 0) continue;
                stk_slot *slot = &s->slots[link->slot];
                if (pass)
                    slot->patches[slot->n] = (stk_patch){&s->launches[k].arg[i], link->at.offset};
                slot->n++;
            }
        for (int32_t i = 0; pass == 0 && i < s->nslots; i++) {
            s->slots[i].patches =
                stk_arena_array(&p->arena, (size_t)s->slots[i].n, sizeof(stk_patch));
            if (!s->slots[i].patches) return stk_fail_memory(err, "inputs", 0);
            s->slots[i].n = 0;
        }
    }
    return STK_OK;
}

stk_status stk_cpu_load(const stk_cpu *cpu, stk_resolve resolve, stk_plan *p,
                        stk_cpu_sequence **out, stk_error *err)
{
    stk_cpu_sequence *s = stk_arena_alloc(&p->arena, sizeof *s);
    if (!s) return stk_fail_memory(err, "launches", sizeof *s);
    s->cpu = cpu;
    s->resolve = resolve;
    s->nslots = p->nslots;
    s->launches = stk_arena_array(&p->arena, (size_t)p->ntasks, sizeof *s->launches);
    s->slots = stk_arena_array(&p->arena, (size_t)p->nslots, sizeof *s->slots);
    stk_status status =
        s->launches && s->slots ? STK_OK : stk_fail_memory(err, "launches", sizeof *s->launches);
    for (int64_t k = 0; k < p->ntasks && status == STK_OK; k++)
        status = load_task(s, p, &p->tasks[k], err);
    if (status == STK_OK) status = add_patches(s, p, err);
    if (status != STK_OK) {
        stk_cpu_unload(s);
        return status;
    }
    if (p->uniforms.block) s->uniforms = pointer(s, p->uniforms);
    const stk_launch *l = s->launches;
    s->plain =
        s->n == 1 && l->run && l->parts == 1 && !l->locals && !l->impl->ready && !l->impl->finish;
    stk_trial_start(s);
    *out = s;
    return STK_OK;
}

void stk_cpu_unload(stk_cpu_sequence *s)
{
    for (int64_t i = 0; s && i < s->n; i++) {
        const stk_impl *impl = s->launches[i].impl;
        if (impl && impl->discard) impl->discard(&s->launches[i]);
    }
}

/* ---- running --------------------------------------------------------------------------------------------- */

static void bind(const stk_cpu_sequence *s, stk_slot *slot, stk_address a)
{
    char *base = pointer(s, a);
    slot->bound = a;
    for (int32_t i = 0; i < slot->n; i++) *slot->patches[i].where = base + slot->patches[i].offset;
}

static inline void bind_all(stk_cpu_sequence *s, const stk_sequence_run *run)
{
    const stk_address *a = run->slots;
    for (stk_slot *slot = s->slots, *end = slot + s->nslots; slot < end; slot++, a++)
        if (a->block || !stk_address_equal(slot->bound, *a)) /* a block may be a new one */
            bind(s, slot, *a);
    if (s->uniforms) memcpy(s->uniforms, run->uniforms, run->uniform_bytes);
}

/* One small kernel, as eager calls run it: no region, no finish. */
static void run_plain(stk_cpu_sequence *s, const stk_sequence_run *run)
{
    const stk_launch *l = s->launches;
    stk_float_env was = stk_float_env_take(); /* first: the rest is done while it takes effect */
    bind_all(s, run);
    uint64_t start = stk_trace_start();
    l->run(l, 0, l->units * l->scale, 0);
    stk_trace_span(start, l->label, stk_launch_span_arg(l, 0));
    stk_float_env_give_back(was);
}

/* One of the launches that just ran noted an index; the first in the order of the program is told. */
static stk_status tell_stop(stk_cpu_sequence *s, stk_error *err)
{
    stk_status told = STK_OK;
    s->stop = 0;
    for (int64_t i = 0; i < s->n; i++) {
        stk_index_note *note = s->launches[i].note;
        if (note && told == STK_OK)
            told = stk_index_note_take(note, err);
        else if (note)
            (void)!stk_index_note_take(note, NULL);
    }
    return told;
}

stk_status stk_cpu_run_sequence(stk_sequence *sequence, const stk_sequence_run *run, stk_error *err)
{
    stk_cpu_sequence *s = (stk_cpu_sequence *)sequence;
    if (s->plain && run->count) {
        run_plain(s, run);
        return s->stop ? tell_stop(s, err) : STK_OK;
    }
    bind_all(s, run);
    if (s->trial.block && --s->trial.rest < 0)
        stk_trial_run(s);
    else
        stk_cpu_run_until(s->cpu, s->launches + run->first, run->count, s->trial.threads, &s->stop);
    return s->stop ? tell_stop(s, err) : STK_OK;
}
