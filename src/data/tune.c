/* The tuner. */
#include "data/tune.h"

#include "base/clock.h"
#include "data/ring.h"
#include "data/run.h"

struct stk_tuner {
    int32_t threads;
};

stk_status stk_tuner_new(stk_run *run, const stk_dataset *plan, stk_tuner **out, stk_error *err)
{
    (void)plan;
    stk_tuner *t = stk_calloc(1, sizeof *t);
    if (!t) return stk_fail_memory(err, "stream", sizeof *t);
    t->threads = run->options.threads > 1 ? run->options.threads : run->cpus;
    *out = t;
    return STK_OK;
}

void stk_tuner_release(stk_tuner *tuner) { stk_free(tuner); }

int32_t stk_tuner_threads(const stk_tuner *tuner) { return tuner->threads; }

int64_t stk_tuner_in_flight(stk_stage *stage, int64_t elements)
{
    stk_run *run = stage->run;
    if (!stk_run_has_workers(run)) return 1;
    int64_t most = run->tuner->threads, ahead = stage->ds->ahead;
    if (stage->ds->parallel > 0) most = stk_min_i64(most, stage->ds->parallel);
    most += ahead == STK_AUTOTUNE ? most : ahead > 0 ? stk_ceil_div(ahead, elements) : 1;
    int64_t bytes = __atomic_load_n(&stage->element_bytes, __ATOMIC_RELAXED) * elements;
    if (bytes > 0) most = stk_min_i64(most, run->options.ram_budget / 2 / bytes);
    return stk_max_i64(1, stk_min_i64(most, STK_RING_MOST - 1));
}

void stk_tuner_tick(stk_run *run) { (void)run; }
