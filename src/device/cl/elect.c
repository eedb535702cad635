/* elect.c - which variant of a recipe runs a task: sizes of tiles are timed on the device once, as kernels of the CPU are, and remembered beside the compiled
 * programs. Whatever goes wrong while timing, variant 0 is taken: all of them compute the same bits. */
#include "device/cl/recipes.h"

#include "base/clock.h"
#include "base/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Below, starting a kernel is what it costs. */
static const double WORTH_IT = 3e7; /* operations */

/* ---- timing ---------------------------------------------------------------------------------------------- */

/* The task alone, with memory of its own. */
typedef struct trial {
    stk_plan plan;
    stk_task task;
    stk_cl_chosen chosen;
    stk_sequence *loaded;
    stk_block **blocks; /* of its arguments, then scratch memory */
} trial;

static stk_status trial_open(stk_cl_device *d, stk_plan *p, const stk_task *t,
                             const stk_cl_recipe *recipe, int32_t variant, trial *out,
                             stk_error *err)
{
    stk_device *device = &d->device;
    stk_arena *arena = &out->plan.arena;
    *out = (trial){.task = *t, .chosen = {.recipe = recipe, .variant = variant}};
    out->task.own = &out->chosen;
    out->task.label = "election";
    out->plan.home = p->home;
    out->plan.nvalues = p->nvalues;
    out->plan.tasks = &out->task;
    out->plan.ntasks = 1;
    out->task.link = stk_arena_array(arena, (size_t)t->nargs, sizeof *t->link);
    out->blocks = stk_calloc((size_t)t->nargs + 1, sizeof *out->blocks);
    if (!out->task.link || !out->blocks) return stk_fail_memory(err, "an election", 0);
    stk_cl_build b = {
        .d = d, .plan = &out->plan, .task = &out->task, .variant = variant, .err = err};
    b.impl = recipe->name;
    recipe->emit(&b, t->params); /* counts scratch memory */
    STK_TRY(b.status);
    for (int32_t i = 0; i <= t->nargs; i++) {
        int64_t bytes = i < t->nargs ? p->home[t->arg[i]].bytes : b.scratch;
        out->blocks[i] = device->vt->memory.alloc(device, (size_t)stk_max_i64(bytes, 1));
        if (!out->blocks[i]) return stk_fail_memory(err, "an election", (size_t)bytes);
        stk_address at = stk_address_of(out->blocks[i], 0);
        if (i < t->nargs)
            out->task.link[i] = (stk_link){.at = at, .slot = -1};
        else
            out->task.scratch = at;
    }
    return device->vt->kernels.load(device, &out->plan, &out->loaded, err);
}

static void trial_close(stk_cl_device *d, trial *t)
{
    if (t->loaded) d->device.vt->kernels.unload(t->loaded);
    for (int32_t i = 0; t->blocks && i <= t->task.nargs; i++)
        d->device.vt->memory.free(t->blocks[i]);
    stk_free(t->blocks);
    stk_arena_release(&t->plan.arena);
}

static stk_status run_times(stk_cl_device *d, trial *t, int64_t times, double *ns, stk_error *err)
{
    const stk_queue_vt *queue = &d->device.vt->queue;
    stk_sequence_run run = {.count = 1};
    int64_t start = stk_now_ns();
    for (int64_t i = 0; i < times; i++) STK_TRY(queue->run(t->loaded, &run, err));
    STK_TRY(queue->wait(&d->device, err));
    *ns = (double)(stk_now_ns() - start) / (double)times;
    return STK_OK;
}

/* The least of some short stretches; 0: it could not be timed. */
static double time_variant(stk_cl_device *d, stk_plan *p, const stk_task *t,
                           const stk_cl_recipe *recipe, int32_t variant)
{
    enum { SAMPLES = 4 };
    static const double SAMPLE_NS = 1e6, SLOW_NS = 3e7;
    trial tr = {0};
    stk_error err;
    double best = 0, ns = 0;
    stk_status status = trial_open(d, p, t, recipe, variant, &tr, &err);
    if (status == STK_OK) status = run_times(d, &tr, 1, &ns, &err); /* pages, code */
    int64_t times = 1;
    for (int i = 0; i < SAMPLES && status == STK_OK; i++) {
        status = run_times(d, &tr, times, &ns, &err);
        if (best <= 0 || ns < best) best = ns;
        if (i == 0 && ns < SAMPLE_NS) times = (int64_t)(SAMPLE_NS / (ns + 1)) + 1;
        if (ns > SLOW_NS) break;
    }
    trial_close(d, &tr);
    return status == STK_OK ? best : 0;
}

/* ---- choosing -------------------------------------------------------------------------------------------- */

static stk_elect_cache *open_cache(const stk_cl_device *d)
{
    char name[64], machine[256];
    uint64_t hash = 0;
    for (const char *c = d->driver; *c; c++) hash = stk_mix64(hash ^ (unsigned char)*c);
    snprintf(name, sizeof name, "%s/%016llx.tiles", d->backend->folder, (unsigned long long)hash);
    snprintf(machine, sizeof machine, "%d tiles, %s", STK_CL_TILES, d->driver);
    return stk_elect_cache_open(name, machine);
}

/* "tiled/2" of this recipe, or -1. */
static int32_t remembered(const stk_cl_recipe *recipe, const char *known)
{
    size_t n = strlen(recipe->name);
    if (!known || strncmp(known, recipe->name, n) != 0 || known[n] != '/') return -1;
    int32_t variant = atoi(known + n + 1);
    return variant >= 0 && variant < recipe->variants ? variant : -1;
}

int32_t stk_cl_elect(stk_cl_device *d, stk_plan *p, const stk_task *t, const stk_cl_recipe *recipe,
                     stk_elect_cache **cache)
{
    static const double CLEARLY = 0.95; /* the usual one stays unless it is beaten beyond noise */
    char name[32];
    if (recipe->variants < 2 || t->flops < WORTH_IT) return 0;
    if (!*cache) *cache = open_cache(d);
    uint64_t key = stk_elect_key(t->kernel, t->params, t->params_size, d->units);
    int32_t best = remembered(recipe, stk_elect_cache_find(*cache, key));
    if (best >= 0) return best;
    double least = 0;
    best = 0;
    for (int32_t i = 0; i < recipe->variants; i++) {
        double ns = time_variant(d, p, t, recipe, i);
        if (ns <= 0) continue;
        if (least <= 0 || ns < CLEARLY * least) best = i, least = ns;
    }
    snprintf(name, sizeof name, "%s/%d", recipe->name, best);
    if (least > 0) stk_elect_cache_add(*cache, key, (stk_kernel)t->kernel, name);
    return best;
}
