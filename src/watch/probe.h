/* probe.h - variants of a job that take turns: how one setting compares with another. */
#ifndef STK_WATCH_PROBE_H
#define STK_WATCH_PROBE_H

#include "watch/report.h"

typedef struct stk_variant {
    void *variant;
    stk_job_settings settings;
    int64_t batch;       /* examples per step */
    int64_t ahead;       /* elements its buffers and workers may have ready */
    int64_t warm;        /* steps before a turn is timed */
    int64_t steps;       /* of one turn; 0 until the first one */
    double step_seconds; /* of the last turn */
} stk_variant;

typedef struct stk_prober {
    const stk_job *job;
    stk_doctor_options options;
    int64_t period; /* of the job's steps as it is; turns are whole periods */
    /* what happens every so many steps takes next to no time as it is */
    bool cheap[STK_KNOB_COUNT];
    bool never_waits; /* for batches: buffers are full all the time, and need no care */
    double deadline;  /* stk_now_ns() * 1e-9; comparisons are cut short behind it */
    double limit;     /* behind it none is begun */
    char doing[96];   /* for who watches: what is measured now */
    double told;      /* when that was said last */
} stk_prober;

/* How sure is sure: a comparison ends when the interval's width (log of high / low) is below `narrow`; from options.rounds
 * pairs on below twice that; and when `seconds` are over. */
typedef struct stk_care {
    double narrow, seconds;
} stk_care;

stk_prober stk_prober_of(const stk_job *job, const stk_doctor_options *options);
double stk_seconds_now(void);
/* Says what is done now; NULL: the same as before. */
void stk_prober_tell(stk_prober *p, const char *doing);
stk_status stk_variant_open(const stk_prober *p, const stk_job_settings *settings, stk_variant *out,
                            stk_error *err);
void stk_variant_close(const stk_prober *p, stk_variant *variant);
/* One turn: seconds per example. */
stk_status stk_variant_turn(const stk_prober *p, stk_variant *variant, double *seconds,
                            stk_error *err);
typedef struct stk_turns {
    double median, scatter; /* seconds per example; how far single turns lie apart, as a share */
} stk_turns;
/* Turns a b b a a b ...: how much faster b is, per example. turns (may be NULL): those of a. */
stk_status stk_variants_compare(stk_prober *p, stk_variant *a, stk_variant *b, stk_care care,
                                stk_gain *out, stk_turns *turns, stk_error *err);
/* Is there time for another comparison, by the turns that this variant takes? */
bool stk_prober_has_time(const stk_prober *p, const stk_variant *variant);
stk_care stk_care_for_promises(const stk_prober *p);
stk_care stk_care_for_causes(const stk_prober *p);

#endif
