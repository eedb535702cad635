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
} stk_findings;

/* Fills verdict, headline and evidence. */
stk_status stk_judge(stk_report *r, const stk_findings *f, stk_error *err);

#endif
