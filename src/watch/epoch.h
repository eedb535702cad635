/* epoch.h - what an epoch consists of beside its steps, and what a rarer or better fed validation would bring. */
#ifndef STK_WATCH_EPOCH_H
#define STK_WATCH_EPOCH_H

#include "watch/probe.h"

/* Fills r->epoch; step_seconds: of the job as it is. Jobs without epochs leave it empty. */
stk_status stk_epoch_measure(stk_prober *p, double step_seconds, stk_report *r, stk_error *err);
double stk_epoch_seconds(const stk_epoch_rows *e);
/* What a change of one part by `gain` is worth for the whole epoch. */
stk_gain stk_epoch_gain(const stk_epoch_rows *e, double part, stk_gain gain);
/* A larger batch for the validation: what it brings for the epoch; best 0: cannot be tried. */
stk_status stk_epoch_try_batch(stk_prober *p, const stk_epoch_rows *e, int64_t *batch,
                               stk_gain *gain, stk_error *err);

#endif
