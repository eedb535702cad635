/* launch.h - one kernel, run by hand through the device. What a kernel's test needs:
 *
 *     stk_device *device = launch_device(2);                       // 2 threads; ask again, get the same
 *     void *arg[] = {x, y};                                        // inputs, then outputs
 *     LAUNCH(device, STK_K_REDUCE, "vec", &params, arg, 2, 4);     // cut into 4 parts (0: as many as pay off)
 *     LAUNCH(device, STK_K_REDUCE, "ref", &params, arg_ref, 2, 0);
 *
 * LAUNCH is a check: false (and reported) when the implementation is missing or refuses the problem. launch_prepare
 * and launch_discard are for tests and benches that run one launch many times. */
#ifndef STK_TEST_DEVICE_LAUNCH_H
#define STK_TEST_DEVICE_LAUNCH_H

#include "check.h"

#include "device/cpu/cpu.h"

enum { LAUNCH_GUARD = 64 };

/* Shared by all tests of a program and released at its end. */
static inline stk_device *launch_device(int32_t threads)
{
    static stk_device *devices[17];
    stk_error err;
    if (threads < 1 || threads > 16) return NULL;
    if (!devices[threads]) CHECK_OK(stk_device_open("cpu:0", threads, &devices[threads], &err));
    return devices[threads];
}

static inline const stk_impl *launch_impl(stk_device *device, stk_kernel kernel, const char *name)
{
    int32_t n = 0;
    const stk_impl *const *list = stk_cpu_impls((const stk_cpu *)device, kernel, &n);
    for (int32_t i = 0; i < n; i++)
        if (!strcmp(list[i]->name, name)) return list[i];
    return NULL;
}

/* Fills in what a compiler would: units, parts, scratch, state. False when it cannot. */
static inline bool launch_prepare(stk_launch *l, stk_device *device, stk_kernel kernel,
                                  const char *name, const void *params, void **arg, int32_t args,
                                  int32_t parts)
{
    stk_error err;
    stk_device_report report;
    const stk_impl *impl = launch_impl(device, kernel, name);
    *l = (stk_launch){.kernel = (int32_t)kernel, .params = params, .arg = arg, .args = args};
    if (!CHECK_MSG(impl, "kernel %s has no implementation \"%s\"", stk_kernel_name(kernel), name))
        return false;
    if (!CHECK_MSG(!impl->supports || impl->supports(params), "%s:%s refuses the problem",
                   stk_kernel_name(kernel), name))
        return false;
    device->vt->describe(device, &report);
    l->impl = impl;
    l->run = impl->run;
    l->label = name;
    l->units = impl->units ? impl->units(params) : 1;
    l->scale = 1;
    int64_t grain = impl->grain ? impl->grain(params) : 1;
    int64_t pays = stk_min_i64(stk_max_i64(l->units / stk_max_i64(grain, 1), 1), 64);
    l->parts = parts ? (int32_t)stk_max_i64(stk_min_i64(parts, l->units), 1) : (int32_t)pays;
    l->threads = report.threads;
    int64_t scratch = stk_impl_memory(impl, params, l->parts, l->threads);
    if (scratch) { /* dirty, and watched at its end */
        void *memory = stk_malloc((size_t)scratch + LAUNCH_GUARD);
        memset(memory, 0xa5, (size_t)scratch + LAUNCH_GUARD);
        stk_launch_give(l, memory);
    }
    return !impl->prepare || CHECK_OK(impl->prepare(l, &err));
}

static inline void launch_discard(stk_launch *l)
{
    if (l->scratch) {
        int64_t scratch = stk_impl_memory(l->impl, l->params, l->parts, l->threads);
        for (int i = 0; i < LAUNCH_GUARD; i++)
            CHECK_MSG(((uint8_t *)l->scratch)[scratch + i] == 0xa5,
                      "%s wrote behind its %" PRId64 " bytes of scratch", l->impl->name, scratch);
    }
    if (l->impl && l->impl->discard) l->impl->discard(l);
    stk_free(l->scratch);
    l->scratch = NULL;
}

#define LAUNCH(device, kernel, name, params, arg, args, parts)                                     \
    launch_once((device), (kernel), (name), (params), (arg), (args), (parts))
static inline bool launch_once(stk_device *device, stk_kernel kernel, const char *name,
                               const void *params, void **arg, int32_t args, int32_t parts)
{
    stk_launch l;
    bool good = launch_prepare(&l, device, kernel, name, params, arg, args, parts);
    if (good) stk_cpu_run((const stk_cpu *)device, &l, 1, 0);
    launch_discard(&l);
    return good;
}

/* Small reproducible numbers for inputs. */
static inline uint64_t launch_random(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    uint64_t z = *state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
static inline double launch_uniform(uint64_t *state, double low, double high)
{
    return low + (high - low) * (double)(launch_random(state) >> 11) * 0x1p-53;
}

#endif
