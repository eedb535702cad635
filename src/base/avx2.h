/* avx2.h - loops that are written once and compiled for AVX2 as well, where the processor may have it.
 *
 *     STK_ALWAYS_INLINE void loop(...) { ... }
 *     static void loop_plain(...) { loop(...); }
 *     STK_AVX2 static void loop_avx2(...) { loop(...); }
 *     (STK_HAS_AVX2() ? loop_avx2 : loop_plain)(...);
 *
 * Both must give the same bits: contraction is off. Kernels of a device are built per instruction set instead
 * (src/device/cpu/vec/). */
#ifndef STK_BASE_AVX2_H
#define STK_BASE_AVX2_H

#define STK_ALWAYS_INLINE static inline __attribute__((always_inline))

#if defined(__x86_64__) && defined(__GNUC__)
#define STK_AVX2       __attribute__((target("avx2")))
#define STK_HAS_AVX2() __builtin_cpu_supports("avx2")
#else
#define STK_AVX2
#define STK_HAS_AVX2() 0
#endif

#endif
