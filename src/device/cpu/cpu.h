/* cpu.h - the CPU device inside: its pool, its implementations. */
#ifndef STK_DEVICE_CPU_CPU_H
#define STK_DEVICE_CPU_CPU_H

#include "base/pool.h"
#include "device/cpu/launch.h"

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

/* Small products with trained weights are shared out among so many threads (plan/owners.c). */
enum { STK_CPU_OWNERS = 2 };

/* The CPU with its own compute pool; threads 0 = all the process may use. */
stk_status stk_cpu_device_new(int32_t threads, stk_device **out, stk_error *err);
/* Runs the launches in order, on at most `threads` threads (0: as each launch says; it changes no bit of the results). */
void stk_cpu_run(const stk_cpu *cpu, const stk_launch *launches, int64_t n, int32_t threads);
/* As stk_cpu_run, but no region begins once *stop is set. */
void stk_cpu_run_until(const stk_cpu *cpu, const stk_launch *launches, int64_t n, int32_t threads,
                       const int *stop);
/* Implementations of a kernel id, best guess first, ref last; count in *n. */
const stk_impl *const *stk_cpu_impls(const stk_cpu *cpu, stk_kernel kernel, int32_t *n);
bool stk_cpu_supports(const stk_cpu *cpu, stk_kernel kernel, const void *params);

/* The half-open range of units of one part. */
static inline void stk_part_range(int64_t units, int32_t parts, int32_t part, int64_t *lo,
                                  int64_t *hi)
{
    *lo = units * part / parts;
    *hi = units * (part + 1) / parts;
}

/* What run() gets for one part of a launch. `units` of a launch are those of its group; whoever has to know in
 * prepare() or finish() how much a part holds asks here, never the units. */
static inline void stk_launch_range(const stk_launch *l, int32_t part, int64_t *lo, int64_t *hi)
{
    stk_part_range(l->units, l->parts, part, lo, hi);
    *lo *= l->scale;
    *hi *= l->scale;
}

/* Rows of so many elements that make a part of at least `worth` elements. */
static inline int64_t stk_rows_worth(int64_t row, int64_t worth)
{
    return row > 0 && row < worth ? worth / row : 1;
}

/* Memory of a launch: scratch, then a room for each thread that may run a part of it. */
static inline int64_t stk_impl_room(const stk_impl *impl, const void *params)
{
    enum { PAGE = 4096 };
    return impl->room ? stk_round_up(impl->room(params), PAGE) : 0;
}
static inline int64_t stk_impl_memory(const stk_impl *impl, const void *params, int32_t parts,
                                      int32_t threads)
{
    int64_t scratch = impl->scratch ? impl->scratch(params, parts) : 0;
    int64_t rooms = stk_impl_room(impl, params) * stk_min_i64(parts, threads);
    return rooms ? stk_round_up(scratch, STK_ALIGN) + rooms : scratch;
}
static inline void stk_launch_give(stk_launch *l, void *memory)
{
    int64_t scratch = l->impl->scratch ? l->impl->scratch(l->params, l->parts) : 0;
    l->scratch = memory;
    l->room = (char *)memory + stk_round_up(scratch, STK_ALIGN);
    l->room_share = stk_impl_room(l->impl, l->params);
}

/* The most of `units` that one part can get. A group that counts in `u` coarser units, parts <= u, gives a part up to
 * ceil(u / parts) of them, which is less than 2 u / parts. */
static inline int64_t stk_most_units(int64_t units, int32_t parts)
{
    return stk_min_i64(units, 2 * stk_ceil_div(units, parts));
}

#endif
