/* Consumers that may be called away while they wait. */
#include "data/core/patience.h"

#include "base/clock.h"

#include <time.h>

enum { LOOK_UP_NS = 50000000 };

__thread stk_patience *stk_patience_now __attribute__((tls_model("initial-exec")));

void stk_patience_enter(stk_patience *p, const stk_stream_options *options)
{
    if (!options->interrupt) return;
    *p = (stk_patience){.options = options, .asked = stk_ticks(), .outer = stk_patience_now};
    stk_patience_now = p;
}

void stk_patience_leave(stk_patience *p)
{
    if (stk_patience_now == p) stk_patience_now = p->outer;
}

bool stk_patience_ask(void)
{
    stk_patience *p = stk_patience_now;
    if (!p) return true;
    if (!p->over) p->over = p->options->interrupt(p->options->interrupt_context);
    p->asked = stk_ticks();
    return !p->over;
}

bool stk_patience_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
    struct timespec until;
    if (!stk_patience_now) return pthread_cond_wait(cond, lock) == 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_UP_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (pthread_cond_timedwait(cond, lock, &until) == 0) return true;
    /* The question may take long, and may need what another thread holds: not under the lock. */
    pthread_mutex_unlock(lock);
    bool go_on = stk_patience_ask();
    pthread_mutex_lock(lock);
    return go_on;
}

stk_status stk_patience_over(stk_error *err)
{
    return stk_fail(err, STK_ERR_CANCELLED, "interrupted while waiting for the next element");
}
