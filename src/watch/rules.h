/* rules.h - from measurements to a verdict. */
#ifndef STK_WATCH_RULES_H
#define STK_WATCH_RULES_H

#include "watch/report.h"

typedef enum stk_rule {
#define STK_RULE(NAME, verdict, symptom, advice) STK_RULE_##NAME,
#include "watch/rules.def"
} stk_rule;

/* What the probes found. gain.best 0 = not measured. */
typedef struct stk_findings {
    stk_gain gain[STK_KNOB_COUNT]; /* best value of each knob against the job as it is */
    stk_gain batch_gain;           /* per example, at about four times the batch */
    int32_t programs;              /* made for the shapes of batches so far */
    char why[256];                 /* the last one was made */
    double slice_noise;            /* scatter of single turns, as a ratio */
    double others;                 /* processors that other processes kept busy */
    int32_t processors;
    int32_t cards_faster, cards_slower, cards;
    /* The job runs on another device: cpu:0 against it, tried by turns; the batch from which the device should win (0: none is
       known); seconds of a step there, where nobody asks for results after steps. */
    stk_gain cpu_gain;
    int64_t cpu_until;
    double undisturbed;
    /* The job runs on the CPU: some device of this machine was faster when tried. */
    bool device_faster;
} stk_findings;

/* devices.c: rows of the devices of this machine and of a few cards. Takes a second trainer's memory where there is another device. */
stk_status stk_compare_devices(const stk_job *job, const stk_doctor_options *options, stk_report *r,
                               stk_findings *f, stk_error *err);

/* The batch from which `device` takes less time than the CPU, where `here` is what was tried at the job's own; 0: none, or not known. */
int64_t stk_batch_to_win(const stk_job *job, const stk_placement *here, const char *device);

/* Fills verdict, headline and evidence. */
stk_status stk_judge(stk_report *r, const stk_findings *f, stk_error *err);

#endif
