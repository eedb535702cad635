/* thread.h - how the library starts threads of its own. */
#ifndef STK_BASE_THREAD_H
#define STK_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>

/* pthread_create() for a thread that takes no signals: those belong to the program's own threads. Faults stay: they are raised by
 * what the thread does, and the system ends a process that blocks one (map.c lives on SIGBUS). */
static inline int stk_thread_start(pthread_t *thread, void *(*body)(void *), void *context)
{
    static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP};
    sigset_t blocked, old;
    sigfillset(&blocked);
    for (unsigned i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &old);
    int failed = pthread_create(thread, NULL, body, context);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return failed;
}

#endif
