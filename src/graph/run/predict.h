/* predict.h - what calibrate.c, paces.c and predict.c share. */
#ifndef STK_GRAPH_RUN_PREDICT_H
#define STK_GRAPH_RUN_PREDICT_H

#include "graph/run/program.h"
#include "stoker/calibrate.h"

/* predict.c */
stk_pace_kind stk_task_kind(const stk_plan *p, const stk_task *t);
double stk_task_work(const stk_task *t, stk_pace_kind kind);
double stk_task_seconds(const stk_plan *p, const stk_task *t, const stk_calibration *c);

/* paces.c: fills in c->pace; launch and run are known. */
stk_status stk_paces_measure(stk_device *d, stk_calibration *c, stk_error *err);

/* calibrate.c: numbers into all variables: zeros as indices would pick the same row again and again. */
stk_status stk_fill_variables(stk_program *p, stk_error *err);
/* calibrate.c: seconds of one run when many are asked for without waiting, the least of several. */
stk_status stk_time_runs(stk_program *p, double *seconds, stk_error *err);

#endif
