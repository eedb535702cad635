/* patience.h - a consumer that may be called away: it looks up about every 50 ms while stk_stream_next takes longer.
 *
 * It belongs to the thread that called stk_stream_next and to nobody else: workers and read-ahead threads have none
 * and wait as long as it takes. */
#ifndef STK_DATA_PATIENCE_H
#define STK_DATA_PATIENCE_H

#include "base/status.h"
#include "stoker/data.h"

#include <pthread.h>

typedef struct stk_patience {
    const stk_stream_options *options;
    uint64_t asked; /* ticks when it last looked up */
    bool over;
    struct stk_patience *outer; /* a stream inside of a function of a stream */
} stk_patience;

extern __thread stk_patience *stk_patience_now __attribute__((tls_model("initial-exec")));

/* Around a call of the consumer. Without a question in the options nothing happens. */
void stk_patience_enter(stk_patience *p, const stk_stream_options *options);
void stk_patience_leave(stk_patience *p);
/* Waits at most 50 ms, or until somebody signals; false: called away. Without patience it waits for the signal. */
bool stk_patience_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
bool stk_patience_ask(void); /* false: called away */
stk_status stk_patience_over(stk_error *err);

/* For work that may go on for long without waiting: costs a look at the counter. */
static inline bool stk_patience_lasts(uint64_t ticks)
{
    enum { PERIOD = 100000000 }; /* ticks: some 50 ms */
    stk_patience *p = stk_patience_now;
    return !p || ticks - p->asked < PERIOD || stk_patience_ask();
}

#endif
