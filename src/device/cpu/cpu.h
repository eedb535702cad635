/* cpu.h - the CPU device inside: its pool, its implementations. */
#ifndef STK_DEVICE_CPU_CPU_H
#define STK_DEVICE_CPU_CPU_H

#include "base/pool.h"
#include "device/device.h"

#define STK_IMPL(name) extern const stk_impl stk_impl_##name;
#include "device/cpu/impls.def"

enum {
#define STK_IMPL(name) STK_CPU_IMPL_##name,
#include "device/cpu/impls.def"
    STK_CPU_IMPLS
};

typedef struct stk_cpu {
    stk_device device;
    stk_pool *pool;
    int32_t threads;
    double fork_join_ns;                 /* 0 until somebody asks */
    const stk_impl *impl[STK_CPU_IMPLS]; /* by kernel id, row order within one */
    int32_t first[STK_KERNEL_COUNT + 1]; /* of each kernel id in impl[] */
} stk_cpu;

/* The half-open range of units of one part. */
static inline void stk_part_range(int64_t units, int32_t parts, int32_t part, int64_t *lo,
                                  int64_t *hi)
{
    *lo = units * part / parts;
    *hi = units * (part + 1) / parts;
}

#endif
