/* problem.h - runs one kernel implementation part by part, in either order, on arrays. */
#ifndef STK_TEST_DEVICE_PROBLEM_H
#define STK_TEST_DEVICE_PROBLEM_H

#include "launch.h"

#include "device/cpu/cpu.h"
#include "device/cpu/sums.h"
#include "device/cpu/vec/vec.h"

/* Whole numbers over 8: sums of a few hundred products are exact in float, whatever their order. */
static inline void fill_exact(float *x, int64_t n, uint64_t seed)
{
    for (int64_t i = 0; i < n; i++) x[i] = (float)((int)(launch_random(&seed) & 31) - 16) / 8;
}

static inline void fill_uniform(float *x, int64_t n, uint64_t seed)
{
    for (int64_t i = 0; i < n; i++) x[i] = (float)launch_uniform(&seed, -1, 1);
}

/* Does the implementation exist in this build and take the problem? */
static inline bool takes_problem(stk_kernel kernel, const char *name, const void *params)
{
    const stk_impl *impl = launch_impl(launch_device(1), kernel, name);
    return impl && (!impl->supports || impl->supports(params));
}

/* Runs all parts (backwards when asked), then finish. The caller's args are inputs, then outputs. */
static inline bool run_problem(stk_kernel kernel, const char *name, const void *params, void **args,
                               int32_t nargs, int32_t parts, bool backwards)
{
    stk_launch l;
    bool good = launch_prepare(&l, launch_device(1), kernel, name, params, args, nargs, parts);
    for (int64_t i = good && l.impl->ready ? l.impl->pieces(&l) : 0; i > 0; i--)
        l.impl->ready(&l, i - 1);
    for (int32_t i = 0; good && i < l.parts; i++) {
        int64_t lo, hi;
        int32_t part = backwards ? l.parts - 1 - i : i;
        stk_part_range(l.units, l.parts, part, &lo, &hi);
        if (lo < hi) l.run(&l, lo, hi, part);
    }
    if (good) stk_launch_join(&l);
    launch_discard(&l);
    return good;
}

/* Every instruction set this machine has, for a loop: EACH_ISA { ... } */
static inline const stk_vec *nth_isa(int i)
{
    static const char *const names[] = {"base", "avx2", "avx512"};
    const stk_vec *found = NULL;
    int seen = 0;
    for (int k = 0; k < 3 && !found; k++)
        if (stk_vec_find(names[k]) && seen++ == i) found = stk_vec_find(names[k]);
    stk_vec_use(found);
    return found;
}
#define EACH_ISA for (int isa_ = 0; nth_isa(isa_); isa_++)

#endif
