/* tune.h - how many workers, how much in flight: from measured times, under budgets. */
#ifndef STK_DATA_TUNE_H
#define STK_DATA_TUNE_H

#include "data/stream/rewrite.h"

typedef struct stk_tuner stk_tuner;

stk_status stk_tuner_new(stk_run *run, const stk_dataset *plan, stk_tuner **out, stk_error *err);
void stk_tuner_release(stk_tuner *tuner); /* remembers its choice for the next run of this plan */

int32_t stk_tuner_threads(const stk_tuner *tuner); /* now */
/* Items of `elements` elements that a stage may have in flight now; at least 1. */
int64_t stk_tuner_in_flight(stk_stage *stage, int64_t elements);
/* Bytes that this stage may have in flight now: its part of what shuffles, caches and the like leave. */
int64_t stk_tuner_share(stk_stage *stage);
/* Looks at the counters every now and then; cheap in between. On the thread of a consumer. */
void stk_tuner_tick(stk_run *run);
void stk_tuner_explain(stk_tuner *tuner, stk_notes *out);

#endif
