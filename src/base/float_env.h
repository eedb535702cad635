/* float_env.h - subnormal numbers count as zero while we compute.
 *
 * Arithmetic on subnormals is up to 100 times slower, and optimizer moments decay into them. Every
 * thread of ours runs in this mode; a caller's thread enters it around a computation and gets its
 * own mode back afterwards:
 *
 *     stk_float_env was = stk_float_env_enter();
 *     ... compute ...
 *     stk_float_env_leave(was); */
#ifndef STK_BASE_FLOAT_ENV_H
#define STK_BASE_FLOAT_ENV_H

#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef uint64_t stk_float_env;

static inline stk_float_env stk_float_env_enter(void)
{
#if defined(__x86_64__)
    enum { FLUSH_RESULTS = 0x8000, FLUSH_INPUTS = 0x0040 };
    unsigned was = _mm_getcsr();
    if ((was & (FLUSH_RESULTS | FLUSH_INPUTS)) != (FLUSH_RESULTS | FLUSH_INPUTS))
        _mm_setcsr(was | FLUSH_RESULTS | FLUSH_INPUTS);
    return was;
#elif defined(__aarch64__)
    uint64_t was;
    __asm__ volatile("mrs %0, fpcr" : "=r"(was));
    __asm__ volatile("msr fpcr, %0" : : "r"(was | (uint64_t)1 << 24));
    return was;
#else
    return 0;
#endif
}

/* The other way round, for what must give the same bits on every thread: text that is read as numbers. */
static inline stk_float_env stk_float_env_exact(void)
{
#if defined(__x86_64__)
    unsigned was = _mm_getcsr();
    if (was & 0x8040) _mm_setcsr(was & ~0x8040u);
    return was;
#elif defined(__aarch64__)
    uint64_t was;
    __asm__ volatile("mrs %0, fpcr" : "=r"(was));
    __asm__ volatile("msr fpcr, %0" : : "r"(was & ~((uint64_t)1 << 24)));
    return was;
#else
    return 0;
#endif
}

static inline void stk_float_env_leave(stk_float_env was)
{
#if defined(__x86_64__)
    if (_mm_getcsr() != (unsigned)was) _mm_setcsr((unsigned)was);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(was));
#else
    (void)was;
#endif
}

#endif
