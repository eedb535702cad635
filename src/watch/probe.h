/* probe.h - lanes of a job that take turns: how one setting compares with another. */
#ifndef STK_WATCH_PROBE_H
#define STK_WATCH_PROBE_H

#include "watch/report.h"

typedef struct stk_lane {
    void *lane;
    stk_job_settings settings;
    int64_t batch; /* examples per step */
    int64_t warm;  /* steps before a turn is timed: buffers come to their usual level */
    int64_t
        period; /* turns are whole periods: what happens every so many steps counts with its share */
    int64_t least;       /* steps of a turn at least: workers deliver in bursts */
    int64_t steps;       /* of one turn; 0 until the first one */
    double step_seconds; /* of the last turn */
} stk_lane;

typedef struct stk_prober {
    const stk_job *job;
    stk_doctor_options options;
    double deadline; /* stk_now_ns() * 1e-9; comparisons are cut short behind it */
} stk_prober;

stk_prober stk_prober_of(const stk_job *job, const stk_doctor_options *options);
double stk_seconds_now(void);
stk_status stk_lane_open(const stk_prober *p, const stk_job_settings *settings, stk_lane *out,
                         stk_error *err);
void stk_lane_close(const stk_prober *p, stk_lane *lane);
/* One turn: seconds per example. */
stk_status stk_lane_turn(const stk_prober *p, stk_lane *lane, double *seconds, stk_error *err);
/* Turns a b b a a b ...: how much faster b is, per example. */
stk_status stk_lanes_compare(const stk_prober *p, stk_lane *a, stk_lane *b, stk_gain *out,
                             stk_error *err);

#endif
