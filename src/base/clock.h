/* clock.h - time that only goes forward. stk_now_ns for intervals, stk_ticks where 20 ns matter. */
#ifndef STK_BASE_CLOCK_H
#define STK_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

static inline int64_t stk_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* A counter that runs at one rate on all cores (the time-stamp counter; about 10 ns to read). Its
 * unit is the machine's own: compare it with stk_now_ns at two moments, as stk_tick_scale does. */
static inline uint64_t stk_ticks(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return (uint64_t)stk_now_ns();
#endif
}

/* Two moments seen on both clocks. The line through them turns ticks into nanoseconds; the longer
 * the distance, the better. */
typedef struct stk_tick_scale {
    uint64_t ticks[2];
    int64_t ns[2];
} stk_tick_scale;

static inline void stk_tick_scale_mark(stk_tick_scale *scale, int which)
{
    scale->ns[which] = stk_now_ns();
    scale->ticks[which] = stk_ticks();
}

/* stk_now_ns() of the moment when stk_ticks() gave `ticks`. */
static inline int64_t stk_tick_scale_ns(const stk_tick_scale *scale, uint64_t ticks)
{
    double span = (double)(scale->ticks[1] - scale->ticks[0]);
    double rate = span > 0 ? (double)(scale->ns[1] - scale->ns[0]) / span : 0;
    double off = (double)(int64_t)(ticks - scale->ticks[0]); /* may lie before the first mark */
    return scale->ns[0] + (int64_t)(off * rate);
}

#endif
