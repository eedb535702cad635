/* sequence.c - a plan as it is run: an array of kernels whose arguments are set. Slots are set before a run, and only where another block
 * stands there than in the run before. */
#include "device/cl/recipes.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- arranging ------------------------------------------------------------------------------------------- */

typedef struct arranging {
    const char *wishes;
    bool elects;
    stk_elect_cache **cache;
} arranging;

/* "tiled/2" asks for a variant. */
static int32_t take_variant(char *wish)
{
    char *slash = wish ? strchr(wish, '/') : NULL;
    if (!slash) return -1;
    *slash = 0;
    return atoi(slash + 1);
}

static stk_status choose(stk_cl_device *d, stk_plan *p, stk_task *t, const arranging *a,
                         stk_error *err)
{
    char why[160] = "", name[64];
    stk_cl_chosen *c = stk_arena_alloc(&p->arena, sizeof *c);
    if (!c) return stk_fail_memory(err, "launches", sizeof *c);
    t->own = c;
    if (t->kernel < 0) return STK_OK;
    stk_kernel kernel = (stk_kernel)t->kernel;
    char *wish = stk_kernel_wish(a->wishes, kernel, name, sizeof name) ? name : NULL;
    int32_t asked = take_variant(wish);
    c->recipe = stk_cl_recipe_of(d, kernel, t->params, wish, why, sizeof why);
    if (!c->recipe && wish)
        return stk_fail(
            err, STK_ERR_UNSUPPORTED,
            "STOKER_KERNEL asks for %s:%s, which %s does not take: %s; without it, %s is "
            "taken",
            stk_kernel_name(kernel), wish, d->device.name, why,
            stk_cl_impl_name(&d->device, kernel, 0));
    if (!c->recipe)
        return stk_fail(err, STK_ERR_UNSUPPORTED, "%s: no '%s' on %s: %s", t->label,
                        stk_kernel_name(kernel), d->device.name, why);
    for (int32_t i = 0; i < t->nargs; i++)
        if (p->home[t->arg[i]].bytes > INT32_MAX)
            return stk_fail(
                err, STK_ERR_UNSUPPORTED,
                "%s: an array of %lld bytes; kernels of %s count to 2^31: use a smaller "
                "batch",
                t->label, (long long)p->home[t->arg[i]].bytes, d->device.name);
    if (asked >= 0)
        c->variant = asked < c->recipe->variants ? asked : 0;
    else if (a->elects)
        c->variant = stk_cl_elect(d, p, t, c->recipe, a->cache);
    stk_cl_build b = {
        .d = d, .plan = p, .task = t, .impl = c->recipe->name, .variant = c->variant, .err = err};
    c->recipe->emit(&b, t->params);
    t->scratch_bytes = b.scratch;
    return b.status;
}

stk_status stk_cl_arrange(stk_device *d, stk_plan *p, const stk_arrange_options *o, stk_error *err)
{
    const char *wishes = o->kernels ? o->kernels : getenv("STOKER_KERNEL");
    stk_elect_cache *cache = NULL;
    arranging a = {wishes, !o->deterministic && !o->ref, &cache};
    stk_status status = STK_OK;
    int64_t start = stk_now_ns();
    for (int64_t k = 0; k < p->ntasks && status == STK_OK; k++)
        status = choose(stk_cl_of(d), p, &p->tasks[k], &a, err);
    if (cache) p->election_ms += (double)(stk_now_ns() - start) * 1e-6;
    stk_elect_cache_close(cache);
    STK_TRY(status);
    stk_plan_in_order(p);
    if (!o->no_group) stk_cl_find_endings(stk_cl_of(d), p);
    return STK_OK;
}

void stk_cl_report(const stk_plan *p, int64_t task, stk_task_report *out)
{
    const stk_cl_chosen *c = p->tasks[task].own;
    *out = (stk_task_report){.impl = !c || !c->recipe ? "-"
                                     : c->ended       ? "ending"
                                                      : c->recipe->name,
                             .units = 1,
                             .parts = 1,
                             .threads = 1};
}

/* ---- loading --------------------------------------------------------------------------------------------- */

static void release_made(stk_cl_device *d, stk_cl_step *steps, int64_t nsteps, stk_block **tables,
                         int64_t ntables)
{
    for (int64_t i = 0; i < nsteps; i++)
        if (steps[i].kernel) d->backend->kernel_free(d, steps[i].kernel);
    for (int64_t i = 0; i < ntables; i++) d->device.vt->memory.free(tables[i]);
    stk_free(steps);
    stk_free(tables);
}

stk_status stk_cl_load(stk_device *device, stk_plan *p, stk_sequence **out, stk_error *err)
{
    stk_cl_build b = {.d = stk_cl_of(device), .plan = p, .loading = true, .err = err};
    stk_cl_sequence *s = stk_arena_alloc(&p->arena, sizeof *s);
    int64_t *first = stk_arena_array(&p->arena, (size_t)p->ntasks + 1, sizeof *first);
    if (!s || !first) return stk_fail_memory(err, "launches", sizeof *s);
    for (int64_t k = 0; k < p->ntasks && b.status == STK_OK; k++) {
        const stk_cl_chosen *c = p->tasks[k].own;
        first[k] = b.nsteps;
        b.task = &p->tasks[k];
        b.scratch = 0;
        if (!c->recipe || c->ended) continue;
        b.impl = c->recipe->name;
        b.variant = c->variant;
        b.ending = c->ending;
        c->recipe->emit(&b, p->tasks[k].params);
    }
    first[p->ntasks] = b.nsteps;
    if (b.status != STK_OK) {
        release_made(b.d, b.steps, b.nsteps, b.tables, b.ntables);
        return b.status;
    }
    *s = (stk_cl_sequence){.head = {.device = device},
                           .steps = b.steps,
                           .nsteps = b.nsteps,
                           .ntasks = p->ntasks,
                           .first = first,
                           .tables = b.tables,
                           .ntables = b.ntables,
                           .uniforms = p->uniforms};
    *out = &s->head;
    return STK_OK;
}

void stk_cl_unload(stk_sequence *loaded)
{
    stk_cl_sequence *s = (stk_cl_sequence *)loaded;
    if (s) release_made(stk_cl_of(s->head.device), s->steps, s->nsteps, s->tables, s->ntables);
}

/* ---- running --------------------------------------------------------------------------------------------- */

stk_status stk_cl_bind(stk_cl_device *d, stk_cl_step *step, const stk_address *slots,
                       stk_error *err)
{
    int64_t freed = __atomic_load_n(&d->device.freed, __ATOMIC_RELAXED);
    for (int32_t i = 0; i < step->nslots; i++) {
        stk_cl_place *place = &step->slots[i];
        stk_address now = slots[place->slot];
        uintptr_t given = stk_cl_given(now.block);
        int64_t at = (now.offset + place->offset) / place->item;
        if (place->given == given && place->bound == at && place->freed == freed) continue;
        STK_TRY(d->backend->argument(d, step->kernel, place->index, sizeof given, &given, err));
        STK_TRY(d->backend->argument(d, step->kernel, place->index + 1, sizeof at, &at, err));
        place->given = given;
        place->bound = at;
        place->freed = freed;
    }
    return STK_OK;
}
