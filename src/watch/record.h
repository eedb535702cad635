/* record.h - a drained trace as plain intervals, and what is made of it on the way to a report. */
#ifndef STK_WATCH_RECORD_H
#define STK_WATCH_RECORD_H

#include "base/trace.h"
#include "graph/run/program.h"
#include "watch/report.h"

typedef enum stk_role {
    STK_ROLE_NONE, /* a kernel inside a run, else somebody's own span */
    STK_ROLE_WORK,
    STK_ROLE_RUN,
    STK_ROLE_ROUND,
    STK_ROLE_BUILD
} stk_role;

typedef struct stk_interval {
    int64_t start, end; /* ns */
    const char *name;
    uint32_t arg;
    int32_t thread; /* index into threads */
    int8_t role, book;
    bool kernel;
} stk_interval;

typedef struct stk_round {
    int64_t start, end;
    int64_t steps;
} stk_round;

typedef struct stk_traced_thread {
    int32_t number; /* the trace's */
    stk_trace_role role;
    char name[32];
    int64_t open[32]; /* intervals begun and not ended */
    int32_t depth;
} stk_traced_thread;

typedef struct stk_recording {
    int64_t begun; /* ns of the watch's start */
    int64_t lost;
    stk_interval *all; /* by thread, then start, then the longer first */
    int64_t n, cap;
    stk_traced_thread *threads;
    int64_t nthreads, cap_threads;
    int32_t step_thread; /* -1: nobody ran steps */
    stk_round *rounds;
    int64_t nrounds, first_steady;
    bool no_memory;
} stk_recording;

/* rounds.c: finds the rounds and phases. */
stk_status stk_record_rounds(stk_recording *rec, stk_report *r, stk_error *err);
/* books.c: closes the books of the steady rounds. */
stk_status stk_record_books(stk_recording *rec, stk_report *r, stk_error *err);
/* ops.c: kernels by launch, histogram, threads, a stretch for the timeline, totals of the programs. */
stk_status stk_record_ops(stk_recording *rec, stk_report *r, stk_error *err);
stk_status stk_record_timeline(stk_recording *rec, stk_report *r, stk_error *err);
/* What the living programs say about themselves. */
typedef struct stk_known_launches {
    stk_launch_facts *launch; /* by tag */
    int64_t n, cap;
    stk_program_facts *program; /* launches NULL, buffers owned */
    int64_t programs, cap_programs;
    bool no_memory;
} stk_known_launches;
stk_status stk_known_launches_get(stk_known_launches *k, stk_error *err);
void stk_known_launches_release(stk_known_launches *k);
/* The facts of a launch by its tag; NULL when its program is gone. */
const stk_launch_facts *stk_known_launch(const stk_known_launches *k, uint32_t tag);

typedef struct stk_tally { /* of one tag; label only for launches made by hand */
    uint32_t tag;
    const char *label;
    int64_t calls;
    double thread_seconds, step_seconds; /* of all threads; of the step's own */
    double finish_seconds;               /* of those: after all parts were done */
    uint64_t threads;                    /* bit per thread seen */
} stk_tally;
double stk_tally_seconds(const stk_tally *t); /* wall, as the step's thread saw it */

/* layer_costs.c: the same by layer, and the tiny ones. */
stk_status stk_record_layer_costs(const stk_known_launches *known, const stk_tally *t, int64_t n,
                                  stk_report *r, stk_error *err);
/* convs.c: the convolutions one by one. */
stk_status stk_record_convs(const stk_known_launches *known, const stk_tally *t, int64_t n,
                            stk_report *r, stk_error *err);
/* scaling.c: what more threads would bring. */
stk_status stk_record_scaling(const stk_known_launches *known, const stk_tally *t, int64_t n,
                              stk_report *r, stk_error *err);
/* arena.c: the memory of one program. */
stk_status stk_record_memory(const stk_program_facts *p, stk_report *r, stk_error *err);

static inline bool stk_in_steady(const stk_recording *rec, int64_t ns)
{
    return rec->nrounds > rec->first_steady && ns >= rec->rounds[rec->first_steady].start &&
           ns < rec->rounds[rec->nrounds - 1].end;
}

#endif
