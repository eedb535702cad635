/* wide.h (internal) - loops over pixels that are written once and compiled for AVX2 as well, where the machine may have it.
 *
 *     INLINE void loop(...) { ... }
 *     WIDE static void loop_wide(...) { loop(...); }
 *     (HAS_WIDE() ? loop_wide : loop_narrow)(...);
 *
 * No step may differ between the two: contraction is off. */
#ifndef STK_DATA_WIDE_H
#define STK_DATA_WIDE_H

#define INLINE static inline __attribute__((always_inline))

#if defined(__x86_64__) && defined(__GNUC__)
#define WIDE       __attribute__((target("avx2")))
#define HAS_WIDE() __builtin_cpu_supports("avx2")
#else
#define WIDE
#define HAS_WIDE() 0
#endif

#endif
