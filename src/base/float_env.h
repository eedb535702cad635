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

#if defined(__x86_64__)
#define STK_FLOAT_FLUSH (0x8000u | 0x0040u) /* of results, of operands */
#elif defined(__aarch64__)
#define STK_FLOAT_FLUSH ((uint64_t)1 << 24)
#endif

static inline stk_float_env stk_float_env_enter(void)
{
#if defined(__x86_64__)
    unsigned was = _mm_getcsr();
    if ((was & STK_FLOAT_FLUSH) != STK_FLOAT_FLUSH) _mm_setcsr(was | STK_FLOAT_FLUSH);
    return was;
#elif defined(__aarch64__)
    uint64_t was;
    __asm__ volatile("mrs %0, fpcr" : "=r"(was));
    __asm__ volatile("msr fpcr, %0" : : "r"(was | STK_FLOAT_FLUSH));
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
    if (was & STK_FLOAT_FLUSH) _mm_setcsr(was & ~STK_FLOAT_FLUSH);
    return was;
#elif defined(__aarch64__)
    uint64_t was;
    __asm__ volatile("mrs %0, fpcr" : "=r"(was));
    __asm__ volatile("msr fpcr, %0" : : "r"(was & ~STK_FLOAT_FLUSH));
    return was;
#else
    return 0;
#endif
}

/* Around work of some tens of nanoseconds, where asking the processor for its mode (7 ns) and waiting for the answer
 * counts: our mode is written without a look at the caller's, which is written back afterwards. */
static inline stk_float_env stk_float_env_take(void)
{
#if defined(__x86_64__)
    enum { NEAREST_ALL_MASKED = 0x1f80 };
    unsigned was = _mm_getcsr();
    _mm_setcsr(NEAREST_ALL_MASKED | STK_FLOAT_FLUSH);
    return was;
#else
    return stk_float_env_enter();
#endif
}

static inline void stk_float_env_give_back(stk_float_env was)
{
#if defined(__x86_64__)
    _mm_setcsr((unsigned)was);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(was));
#else
    (void)was;
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
