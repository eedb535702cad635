/* Kernel election: the candidates of each task are timed once on this machine; the winner is remembered in a file of the
 * user (elect_cache.c). Deterministic mode and a forced kernel (STOKER_KERNEL) need no timing. */
#include "device/cpu/plan/arrange.h"

#include "base/clock.h"
#include "base/cpus.h"
#include "device/elect_cache.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tasks are judged for the threads of the machine, not of the program: all programs choose alike, and give the same bits whatever
 * number of threads they have. */
static int32_t machine_threads(void)
{
    enum { MOST = 8 };
    static _Atomic int32_t known;
    int32_t threads = atomic_load(&known);
    if (threads) return threads;
    threads = stk_cpu_count() < MOST ? stk_cpu_count() : MOST;
    atomic_store(&known, threads);
    return threads;
}

static bool forced_name(const stk_election *e, stk_kernel kernel, char *name, size_t size)
{
    return stk_kernel_wish(e->kernels ? e->kernels : getenv("STOKER_KERNEL"), kernel, name, size);
}

static void settle(stk_task *t, const stk_election *e, const stk_impl *impl)
{
    stk_cut *c = stk_cut_of(t);
    double lanes = t->kernel == STK_K_CHAIN ? 0.25 : 1; /* vector lanes are cheap; memory decides */
    c->impl = impl;
    c->scale = 1;
    stk_cut_problem(impl, t->params, t->flops * lanes, t->bytes, &c->units, &c->parts);
    c->threads = e->threads < c->parts ? e->threads : c->parts;
    t->scratch_bytes = stk_impl_memory(impl, t->params, c->parts, e->threads);
}

/* ---- timing ---------------------------------------------------------------------------------------------- */

typedef struct trial {
    void *memory;
    int64_t bytes;
    stk_launch launch;
} trial;

/* Every other number is zero, in no order that a processor could learn. */
static void fill_halves(float *x, int64_t count)
{
    uint32_t state = 1;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = state >> 31 ? 0.25f : 0.0f;
    }
}

/* Kernels that skip zeros (conv_few.h, vec/gemm_zeros.c) are judged by the share of zeros that is expected; others do not look. */
static void fill_numbers(const stk_plan *p, const stk_task *t, void **arg)
{
    if (t->kernel == STK_K_CONV_BWD_DATA || t->kernel == STK_K_CONV_BWD_WEIGHT)
        for (int32_t i = 0; i < t->nargs; i++)
            memset(arg[i], 0x3c, (size_t)p->home[t->arg[i]].bytes);
    if (t->kernel != STK_K_GEMM) return;
    const stk_gemm *g = t->params;
    for (int32_t i = 0; i < 2 && g->dtype == STK_F32; i++)
        if (g->zeros & (i ? STK_ZEROS_B : STK_ZEROS_A))
            fill_halves(arg[i], p->home[t->arg[i]].bytes / (int64_t)sizeof(float));
}

static bool trial_open(const stk_plan *p, const stk_task *t, trial *out)
{
    const stk_cut *c = stk_cut_of(t);
    *out = (trial){.bytes = stk_round_up(t->scratch_bytes, STK_ALIGN)};
    for (int32_t i = 0; i < t->nargs; i++)
        out->bytes += stk_round_up(p->home[t->arg[i]].bytes, STK_ALIGN);
    out->memory = stk_alloc_pages((size_t)out->bytes + 1);
    void **arg = stk_calloc((size_t)t->nargs, sizeof *arg);
    if (!out->memory || !arg) {
        stk_free(arg);
        return false;
    }
    char *at = out->memory;
    for (int32_t i = 0; i < t->nargs; i++) {
        arg[i] = at;
        at += stk_round_up(p->home[t->arg[i]].bytes, STK_ALIGN);
    }
    fill_numbers(p, t, arg);
    out->launch = (stk_launch){.run = c->impl->run,
                               .arg = arg,
                               .params = t->params,
                               .units = c->units,
                               .scale = 1,
                               .parts = c->parts,
                               .threads = c->threads,
                               .kernel = t->kernel,
                               .args = t->nargs,
                               .impl = c->impl,
                               .label = "election"};
    stk_launch_give(&out->launch, at);
    return !c->impl->prepare || c->impl->prepare(&out->launch, NULL) == STK_OK;
}

static void trial_close(trial *t)
{
    if (t->launch.impl && t->launch.impl->discard) t->launch.impl->discard(&t->launch);
    stk_free(t->launch.arg);
    if (t->memory) stk_free_pages(t->memory, (size_t)t->bytes + 1);
}

/* Fastest of several short samples on one thread, in ns, shared among the threads that would take part: how the cores
 * happen to be shared with others at this moment must not decide. A slow first run ends early. */
static double time_task(const stk_plan *p, const stk_task *t, const stk_election *e)
{
    enum { SAMPLES = 5 };
    static const double SAMPLE_NS = 150e3;
    trial tr;
    double best = 1e300;
    if (trial_open(p, t, &tr)) {
        int64_t start = stk_now_ns();
        stk_cpu_run(e->cpu, &tr.launch, 1, 1); /* warm-up: pages, code, caches */
        int64_t repeat = 1;
        for (int s = 0; s < SAMPLES; s++) {
            start = stk_now_ns();
            for (int64_t r = 0; r < repeat; r++) stk_cpu_run(e->cpu, &tr.launch, 1, 1);
            double ns = (double)(stk_now_ns() - start) / (double)repeat;
            if (ns < best) best = ns;
            if (s == 0 && ns < SAMPLE_NS) repeat = (int64_t)(SAMPLE_NS / (ns + 1)) + 1;
            if (s == 0 && ns > 30e6) break;
        }
    }
    trial_close(&tr);
    return best / (double)stk_min_i64(stk_cut_of(t)->parts, machine_threads());
}

/* A trial has its operands in cache. Large ones come from memory, unless they are cut along with the units: then the task runs
 * behind the one that makes them. */
static double fetch_ns(const stk_plan *p, const stk_task *t, const stk_impl *impl)
{
    enum { LARGE = 1 << 20 };
    static const double BYTES_PER_NS = 32;
    const uint32_t cut = impl->aligned ? impl->aligned(t->params) : 0;
    double bytes = 0;
    for (int32_t i = 0; i < t->nin && i < 32; i++)
        if (p->home[t->arg[i]].bytes >= LARGE && !(cut >> i & 1u))
            bytes += (double)p->home[t->arg[i]].bytes;
    return bytes / BYTES_PER_NS;
}

/* ---- choosing ----------------------------------------------------------------------------------------------- */

static const stk_impl *find_by_name(const stk_impl *const *list, int32_t n, const char *name)
{
    for (int32_t i = 0; i < n; i++)
        if (!strcmp(list[i]->name, name)) return list[i];
    return NULL;
}

static stk_status choose_forced(const stk_task *t, const stk_impl *const *list, int32_t n,
                                const char *name, const stk_impl **out, stk_error *err)
{
    *out = find_by_name(list, n, name);
    if (*out && (!(*out)->supports || (*out)->supports(t->params))) return STK_OK;
    char known[256] = "";
    for (int32_t i = 0; i < n; i++)
        if (strlen(known) + strlen(list[i]->name) + 3 < sizeof known)
            strcat(strcat(known, i ? ", " : ""), list[i]->name);
    return stk_fail(err, STK_ERR_UNSUPPORTED,
                    "STOKER_KERNEL asks for %s:%s, which %s; there are: %s",
                    stk_kernel_name((stk_kernel)t->kernel), name,
                    *out ? "does not take this problem" : "does not exist", known);
}

static const stk_impl *choose_timed(const stk_plan *p, stk_task *t, stk_election *e,
                                    const stk_impl *const *list, int32_t n)
{
    static const double CLEARLY =
        0.92; /* the first of the table stays unless it is beaten beyond noise */
    const stk_impl *best = NULL;
    double best_ns = 0;
    for (int32_t i = 0; i < n; i++) {
        bool is_ref = list[i]->rank >= 100;
        if ((list[i]->supports && !list[i]->supports(t->params)) || (is_ref && best)) continue;
        settle(t, e, list[i]);
        double ns = time_task(p, t, e) + fetch_ns(p, t, list[i]);
        if (!best || ns < CLEARLY * best_ns) {
            best = list[i];
            best_ns = ns;
        }
    }
    return best;
}

/* Does it take the problem, with memory that the device has in one piece? */
static bool takes(const stk_impl *impl, const stk_task *t, const stk_election *e)
{
    if (impl->supports && !impl->supports(t->params)) return false;
    if (!e->largest || (!impl->scratch && !impl->room)) return true;
    stk_task asked = *t;
    stk_cut cut;
    asked.own = &cut;
    settle(&asked, e, impl);
    return asked.scratch_bytes <= e->largest;
}

/* The supported implementations, ref last; ref alone when asked for. */
static int32_t candidates(const stk_task *t, const stk_election *e, const stk_impl **out,
                          int32_t most)
{
    int32_t all = 0, n = 0;
    const stk_impl *const *list = stk_cpu_impls(e->cpu, (stk_kernel)t->kernel, &all);
    for (int32_t i = 0; i < all && n < most; i++) {
        if (e->ref && list[i]->rank < 100 && i + 1 < all) continue;
        if (takes(list[i], t, e)) out[n++] = list[i];
    }
    return n;
}

/* Without timing: the one remembered for this problem, or by table. Asks as few implementations as possible whether they
 * take it: a library is opened by that question. */
static const stk_impl *choose_at_once(const stk_task *t, const stk_election *e, const char *known)
{
    int32_t all = 0;
    const stk_impl *best = NULL;
    const stk_impl *const *list = stk_cpu_impls(e->cpu, (stk_kernel)t->kernel, &all);
    if (known) {
        best = find_by_name(list, all, known);
        if (best && takes(best, t, e)) return best;
        if (!e->largest) return NULL;
        best = NULL; /* a device with small blocks: what is remembered is for others */
    }
    for (int32_t i = 0; i < all; i++)
        if ((!best || list[i]->rank < best->rank) && takes(list[i], t, e)) best = list[i];
    return best;
}

static stk_status elect_by_time(stk_plan *p, stk_task *t, stk_election *e, stk_elect_cache *cache,
                                uint64_t key, const stk_impl **chosen, stk_error *err)
{
    enum { MOST = 16 };
    const stk_impl *list[MOST];
    char name[64];
    int32_t n = candidates(t, e, list, MOST);
    if (!n)
        return stk_fail(err, STK_ERR_UNSUPPORTED,
                        "%s: no kernel for '%s' on this device; cast to float32 or float64",
                        t->label, stk_kernel_name((stk_kernel)t->kernel));
    if (forced_name(e, (stk_kernel)t->kernel, name, sizeof name))
        return choose_forced(t, list, n, name, chosen, err);
    *chosen = list[0];
    if (e->ref || n == 1 || (n == 2 && list[1]->rank >= 100)) return STK_OK;
    int64_t start = stk_now_ns();
    *chosen = choose_timed(p, t, e, list, n);
    e->spent_ms += (double)(stk_now_ns() - start) / 1e6;
    stk_elect_cache_add(cache, key, (stk_kernel)t->kernel, (*chosen)->name);
    return STK_OK;
}

static stk_status elect_task(stk_plan *p, stk_task *t, stk_election *e, stk_elect_cache *cache,
                             stk_error *err)
{
    const stk_impl *chosen = NULL;
    char name[64];
    uint64_t key = stk_elect_key(t->kernel, t->params, t->params_size, machine_threads());
    const char *known = stk_elect_cache_find(cache, key);
    bool forced = forced_name(e, (stk_kernel)t->kernel, name, sizeof name);
    if (!e->ref && !forced && (known || e->deterministic)) chosen = choose_at_once(t, e, known);
    if (!chosen) STK_TRY(elect_by_time(p, t, e, cache, key, &chosen, err));
    settle(t, e, chosen);
    return STK_OK;
}

/* A parallel region must earn its fork-join twice over. */
static void limit_threads(stk_task *t, const stk_election *e)
{
    stk_cut *c = stk_cut_of(t);
    double ns = t->flops / 40 > t->bytes / 16 ? t->flops / 40 : t->bytes / 16;
    if (c->threads > 1 && ns * (1 - 1.0 / c->threads) < 2 * e->fork_join_ns) c->threads = 1;
}

stk_status stk_elect(stk_plan *p, stk_election *e, const char *machine, stk_error *err)
{
    enum { EDITION = 6 }; /* to be counted up when a kernel takes new problems, or is much faster */
    char about[256];
    /* With the number of kernels: what a build knew less of may be beaten by what this one has more. */
    snprintf(about, sizeof about, "%d.%d %s", STK_CPU_IMPLS, EDITION, machine);
    stk_elect_cache *cache =
        e->deterministic || e->ref ? NULL : stk_elect_cache_open("kernels.txt", about);
    stk_status status = STK_OK;
    for (int64_t k = 0; k < p->ntasks && status == STK_OK; k++) {
        stk_task *t = &p->tasks[k];
        t->own = stk_arena_alloc(&p->arena, sizeof(stk_cut));
        if (!t->own) {
            status = stk_fail_memory(err, "kernel election", sizeof(stk_cut));
        } else if (t->kernel < 0) {
            *stk_cut_of(t) = (stk_cut){.units = 1, .scale = 1, .parts = 1, .threads = 1};
        } else {
            status = elect_task(p, t, e, cache, err);
            if (status == STK_OK) limit_threads(t, e);
        }
    }
    stk_elect_cache_close(cache);
    return status;
}
