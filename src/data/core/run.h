/* run.h - what the stages of one running stream share: workers, memory for batches, budgets. */
#ifndef STK_DATA_RUN_H
#define STK_DATA_RUN_H

#include "base/clock.h"
#include "base/workers.h"
#include "data/core/node.h"

#include <pthread.h>

typedef struct stk_slab stk_slab;

struct stk_run {
    stk_stream_options options; /* resolved: no zeros */
    int32_t cpus;
    stk_slab *slab;
    stk_workers *crew; /* NULL until the first item wants it */
    pthread_mutex_t lock;
    int64_t ram_used, ram_peak; /* atomic */
    int32_t queues; /* stages with elements in flight, which share what is left; atomic */
    stk_stage *root;
    struct stk_tuner *tuner;
    stk_tick_scale clock; /* [0]: when it began */
};

/* Bytes that the buffers of a stream with these options may have. */
int64_t stk_ram_budget(const stk_stream_options *options);
stk_status stk_run_new(stk_dataset *plan, const stk_stream_options *options, stk_run **out,
                       stk_error *err);
void stk_run_release(stk_run *run);

stk_run *stk_stream_run(stk_stream *stream); /* NULL for streams that are not of a dataset */

/* Workers are never more than this; items of one thread are done by whoever waits for them. */
bool stk_run_has_workers(const stk_run *run);
stk_status stk_run_crew(stk_run *run, stk_workers **out, stk_error *err);

/* Memory of buffers is asked for before it is filled. Fails, with advice, beyond the budget. */
stk_status stk_run_take_ram(stk_run *run, const char *who, int64_t bytes, stk_error *err);
void stk_run_give_ram(stk_run *run, int64_t bytes);

/* Reused blocks. A slab outlives its stream as long as a tensor of it does. */
stk_status stk_slab_new(const stk_memory_source *memory, stk_slab **out, stk_error *err);
void stk_slab_close(stk_slab *slab); /* NULL is fine */
stk_status stk_slab_take(stk_slab *slab, stk_dtype dtype, int32_t rank, const int64_t *shape,
                         stk_tensor **out, stk_error *err);
int64_t stk_slab_bytes(const stk_slab *slab); /* held, in use or not */

#endif
