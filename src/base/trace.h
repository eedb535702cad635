/* trace.h - what happened when: records written by every thread, read by one.
 *
 *     uint64_t start = stk_trace_start();                 // 0 when tracing is off
 *     ... work ...
 *     stk_trace_span(start, "matmul", node_number);       // nothing when start is 0
 *     stk_trace_counter("queue depth", depth);
 *
 * Off, each of these is one compare of a global. On, a record costs about 20 ns: the clock and four
 * stores into a ring of the thread's own, no lock. A full ring forgets its oldest records; the
 * reader learns how many. Names are pointers that must live as long as the trace: literals, or
 * strings from stk_trace_intern. Reading, drawing and judging belong to src/watch.
 *
 *     record    0  ticks of the moment (start of a span)    16  name
 *               8  duration in ticks, or value              24  kind | arg << 32 */
#ifndef STK_BASE_TRACE_H
#define STK_BASE_TRACE_H

#include "base/clock.h"
#include "base/status.h"

#include <stdbool.h>

typedef enum stk_trace_kind {
    STK_TRACE_BEGIN,   /* of a stretch on this thread; stretches nest */
    STK_TRACE_END,     /* of the innermost open one */
    STK_TRACE_SPAN,    /* a whole stretch in one record */
    STK_TRACE_COUNTER, /* the value from now on */
    STK_TRACE_MARK     /* a moment */
} stk_trace_kind;

extern uint32_t stk_trace_on; /* read by the inline functions below; set by enable and disable */

static inline bool stk_trace_is_on(void)
{
    return __builtin_expect(__atomic_load_n(&stk_trace_on, __ATOMIC_RELAXED) != 0, 0);
}

void stk_trace_put(stk_trace_kind kind, const char *name, uint32_t arg, uint64_t ticks,
                   int64_t value); /* for the functions below */

static inline void stk_trace_begin(const char *name, uint32_t arg)
{
    if (stk_trace_is_on()) stk_trace_put(STK_TRACE_BEGIN, name, arg, stk_ticks(), 0);
}
static inline void stk_trace_end(const char *name)
{
    if (stk_trace_is_on()) stk_trace_put(STK_TRACE_END, name, 0, stk_ticks(), 0);
}
static inline uint64_t stk_trace_start(void) { return stk_trace_is_on() ? stk_ticks() : 0; }
static inline void stk_trace_span(uint64_t start, const char *name, uint32_t arg)
{
    if (start) stk_trace_put(STK_TRACE_SPAN, name, arg, start, (int64_t)(stk_ticks() - start));
}
static inline void stk_trace_counter(const char *name, int64_t value)
{
    if (stk_trace_is_on()) stk_trace_put(STK_TRACE_COUNTER, name, 0, stk_ticks(), value);
}
static inline void stk_trace_mark(const char *name, uint32_t arg)
{
    if (stk_trace_is_on()) stk_trace_put(STK_TRACE_MARK, name, arg, stk_ticks(), 0);
}

/* Loops call this once per round, always at the same place: the stretch since the call before becomes a span "step" of
 * so many steps. With sampling, one round in `period` is recorded in full and nothing else, which is cheap enough to be
 * always on; 0 ends it. From periods of 64 on, the first 8 periods are sampled 8 times as often. Rounds are counted per
 * thread, from the call of stk_trace_sample on for the thread that makes it. */
extern uint32_t stk_trace_rounds; /* somebody wants to know about rounds */
void stk_trace_round(uint32_t steps);
static inline void stk_trace_step(uint32_t steps)
{
    if (__builtin_expect(__atomic_load_n(&stk_trace_rounds, __ATOMIC_RELAXED) != 0, 0))
        stk_trace_round(steps);
}
void stk_trace_sample(int64_t period);
/* A round is being recorded that has no recorded neighbours: what it starts must end in it to be seen. */
bool stk_trace_is_sample(void);
/* Ends the row of rounds on this thread: what comes now belongs to no step. */
void stk_trace_step_break(void);

/* The same pointer for the same text, valid until stk_trace_forget. NULL when out of memory. */
const char *stk_trace_intern(const char *text);

/* What is written into a row: rows are threads, and queues of devices. */
typedef enum stk_trace_role {
    STK_TRACE_HOST,    /* anything */
    STK_TRACE_COMPUTE, /* kernels of a device */
    STK_TRACE_TRANSFER /* copies to and from a device */
} stk_trace_role;

/* How this thread is called in reports ("pool 1"), cut at 31 bytes, and what it does. Works while off, too. */
void stk_trace_name_thread_as(const char *name, stk_trace_role role);
static inline void stk_trace_name_thread(const char *name)
{
    stk_trace_name_thread_as(name, STK_TRACE_HOST);
}

/* A row without a thread, for times that a device measured. Written by one thread at a time. NULL when out of
 * memory, which the functions below take. */
typedef struct stk_trace_row stk_trace_row;
stk_trace_row *stk_trace_row_new(const char *name, stk_trace_role role);
/* A span between two moments of stk_now_ns(). Nothing while tracing is off. */
void stk_trace_row_span(stk_trace_row *row, int64_t start_ns, int64_t end_ns, const char *name,
                        uint32_t arg);
void stk_trace_row_free(stk_trace_row *row); /* what was written stays readable */

/* records = room per thread, rounded up to a power of two, 0 = 65536; for threads that record for
 * the first time from now on. May be called again while on. */
void stk_trace_enable(int64_t records);
void stk_trace_disable(void); /* what was recorded stays readable */

typedef struct stk_trace_event {
    int64_t ns;    /* stk_now_ns() of the moment */
    int64_t value; /* span: duration in ns; counter: the value */
    const char *name;
    stk_trace_kind kind;
    uint32_t arg;
    int32_t thread;          /* 1, 2, ... in order of first record */
    const char *thread_name; /* "" when it was never named; valid during the visit */
    stk_trace_role role;     /* of the thread, or row */
} stk_trace_event;

/* Gives every record that was not drained before to `visit`, thread by thread, each thread's in the
 * order they were written (spans: by their ends). Others may go on recording meanwhile. Returns how
 * many were given; *lost (may be NULL) gets the number overwritten or without memory since the last
 * drain. One drain at a time; visit must not record or drain. */
int64_t stk_trace_drain(void (*visit)(void *context, const stk_trace_event *event), void *context,
                        int64_t *lost);

/* Frees rings and interned names. Only when tracing is off and no thread is inside a record. */
void stk_trace_forget(void);

#endif
