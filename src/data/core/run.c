/* What the stages of a stream share. */
#define _GNU_SOURCE
#include "data/core/run.h"

#include "base/cpus.h"
#include "data/workers/tune.h"

#include <string.h>

enum { CREW_QUEUE = 4096 };

int64_t stk_ram_budget(const stk_stream_options *o)
{
    return o->ram_budget > 0 ? o->ram_budget : stk_memory_limit("") / 4;
}

static stk_stream_options resolve(stk_stream_options o)
{
    if (o.cpu_budget <= 0) o.cpu_budget = stk_cpu_count();
    o.ram_budget = stk_ram_budget(&o);
    return o;
}

stk_status stk_run_new(stk_dataset *plan, const stk_stream_options *options, stk_run **out,
                       stk_error *err)
{
    *out = NULL;
    stk_run *run = stk_calloc(1, sizeof *run);
    if (!run) return stk_fail_memory(err, "stream", sizeof *run);
    pthread_mutex_init(&run->lock, NULL);
    stk_tick_scale_mark(&run->clock, 0);
    run->options = resolve(*options);
    run->cpus = run->options.cpu_budget;
    stk_status status = stk_slab_new(&run->options.memory, &run->slab, err);
    if (status == STK_OK) status = stk_tuner_new(run, plan, &run->tuner, err);
    if (status == STK_OK) status = stk_stage_new(run, plan, &run->root, err);
    if (status != STK_OK) {
        stk_run_release(run);
        return status;
    }
    *out = run;
    return STK_OK;
}

void stk_run_release(stk_run *run)
{
    if (!run) return;
    stk_workers_release(run->crew);
    stk_tuner_release(run->tuner);
    stk_stage_release(run->root);
    stk_slab_close(run->slab);
    pthread_mutex_destroy(&run->lock);
    stk_free(run);
}

bool stk_run_has_workers(const stk_run *run) { return run->options.threads != 1; }

stk_status stk_run_crew(stk_run *run, stk_workers **out, stk_error *err)
{
    stk_status status = STK_OK;
    pthread_mutex_lock(&run->lock);
    if (!run->crew)
        status = stk_workers_new(stk_tuner_threads(run->tuner), CREW_QUEUE, &run->crew, err);
    *out = run->crew;
    pthread_mutex_unlock(&run->lock);
    return status;
}

stk_status stk_run_take_ram(stk_run *run, const char *who, int64_t bytes, stk_error *err)
{
    int64_t used = __atomic_add_fetch(&run->ram_used, bytes, __ATOMIC_RELAXED);
    if (used > run->options.ram_budget) {
        stk_run_give_ram(run, bytes);
        return stk_fail(
            err, STK_ERR_MEMORY,
            "%s: its buffer would bring the stream to %.1f MB, the budget is %.1f MB; use a "
            "smaller buffer, a cache in a file, or raise ram_budget",
            who, (double)used / 1e6, (double)run->options.ram_budget / 1e6);
    }
    int64_t peak = __atomic_load_n(&run->ram_peak, __ATOMIC_RELAXED);
    while (used > peak && !__atomic_compare_exchange_n(&run->ram_peak, &peak, used, true,
                                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return STK_OK;
}

void stk_run_give_ram(stk_run *run, int64_t bytes)
{
    __atomic_sub_fetch(&run->ram_used, bytes, __ATOMIC_RELAXED);
}
