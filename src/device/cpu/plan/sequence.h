/* sequence.h - a plan as the CPU runs it: an array of launches with plain pointers in them. */
#ifndef STK_DEVICE_CPU_PLAN_SEQUENCE_H
#define STK_DEVICE_CPU_PLAN_SEQUENCE_H

#include "device/cpu/cpu.h"
#include "device/plan.h"

/* Where a slot's address stands in the launches' argument lists. */
typedef struct stk_patch {
    void **where;
    int64_t offset;
} stk_patch;

typedef struct stk_slot {
    stk_patch *patches;
    int32_t n;
    stk_address bound; /* what stands there now */
} stk_slot;

/* Whether threads help is found out by trying (trial.c). */
enum { STK_TRIAL_KEPT = 16 };
typedef struct stk_thread_trial {
    int32_t threads; /* the decision so far: 1, or 0 for as many as each launch wants */
    int32_t block;   /* runs of one kind in a row during a trial; 0: there is none, ever */
    int32_t rounds, done;
    int64_t spent[2]; /* nanoseconds in this trial, [one thread, all] */
    int64_t rest;     /* runs until the next trial */
    int32_t kept[2];
    int64_t ns[2][STK_TRIAL_KEPT]; /* [one thread, all], rising */
} stk_thread_trial;

/* How the memory behind an address is found; NULL: stk_address_pointer. */
typedef void *(*stk_resolve)(stk_address a);

typedef struct stk_cpu_sequence {
    stk_sequence head;
    const stk_cpu *cpu;
    stk_resolve resolve;
    stk_launch *launches; /* one per task; those that are not for the device have no run */
    int64_t n;
    stk_slot *slots;
    int32_t nslots;
    void *uniforms; /* where launches read them; NULL: none does */
    int stop;       /* an index was out of range (index_note.h) */
    bool plain;     /* one launch in one part with nothing after it: called without ceremony */
    stk_thread_trial trial;
} stk_cpu_sequence;

/* Everything is in the plan's arena, except what implementations made for themselves: stk_cpu_unload gives that back. */
stk_status stk_cpu_load(const stk_cpu *cpu, stk_resolve resolve, stk_plan *p,
                        stk_cpu_sequence **out, stk_error *err);
void stk_cpu_unload(stk_cpu_sequence *s);
stk_status stk_cpu_run_sequence(stk_sequence *s, const stk_sequence_run *run, stk_error *err);

/* trial.c: sets up the trials of a new sequence, if it needs any; a run that is part of one. */
void stk_trial_start(stk_cpu_sequence *s);
void stk_trial_run(stk_cpu_sequence *s);

#endif
