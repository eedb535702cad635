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

/* Memory that the candidates of a task take turns in: fresh pages cost more than most runs. */
typedef struct trial {
    void *memory, **arg;
    int64_t bytes;
    char *scratch;
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

static bool trial_open(const stk_plan *p, const stk_task *t, int64_t scratch, trial *out)
{
    *out = (trial){.bytes = stk_round_up(scratch, STK_ALIGN)};
    for (int32_t i = 0; i < t->nargs; i++)
        out->bytes += stk_round_up(p->home[t->arg[i]].bytes, STK_ALIGN);
    out->memory = stk_alloc_pages((size_t)out->bytes + 1);
    out->arg = stk_calloc((size_t)t->nargs, sizeof *out->arg);
    if (!out->memory || !out->arg) return false;
    char *at = out->memory;
    for (int32_t i = 0; i < t->nargs; i++) {
        out->arg[i] = at;
        at += stk_round_up(p->home[t->arg[i]].bytes, STK_ALIGN);
    }
    out->scratch = at;
    fill_numbers(p, t, out->arg);
    return true;
}

static bool trial_start(trial *tr, const stk_task *t)
{
    const stk_cut *c = stk_cut_of(t);
    tr->launch = (stk_launch){.run = c->impl->run,
                              .arg = tr->arg,
                              .params = t->params,
                              .units = c->units,
                              .scale = 1,
                              .parts = c->parts,
                              .threads = c->threads,
                              .kernel = t->kernel,
                              .args = t->nargs,
                              .impl = c->impl,
                              .label = "election"};
    stk_launch_give(&tr->launch, tr->scratch);
    return !c->impl->prepare || c->impl->prepare(&tr->launch, NULL) == STK_OK;
}

static void trial_stop(trial *tr)
{
    if (tr->launch.impl && tr->launch.impl->discard) tr->launch.impl->discard(&tr->launch);
    tr->launch.impl = NULL;
}

static void trial_close(trial *tr)
{
    stk_free(tr->arg);
    if (tr->memory) stk_free_pages(tr->memory, (size_t)tr->bytes + 1);
}

/* Fastest of several short samples on one thread, in ns, shared among the threads that would take part: how the cores
 * happen to be shared with others at this moment must not decide. A slow first run ends early. */
static double time_task(trial *tr, const stk_task *t, const stk_election *e)
{
    enum { SAMPLES = 3 };
    static const double SAMPLE_NS = 150e3;
    double best = 1e300;
    if (trial_start(tr, t)) {
        int64_t start = stk_now_ns();
        stk_cpu_run(e->cpu, &tr->launch, 1, 1); /* warm-up: pages, code, caches */
        int64_t repeat = 1;
        for (int s = 0; s < SAMPLES; s++) {
            start = stk_now_ns();
            for (int64_t r = 0; r < repeat; r++) stk_cpu_run(e->cpu, &tr->launch, 1, 1);
            double ns = (double)(stk_now_ns() - start) / (double)repeat;
            if (ns < best) best = ns;
            if (s == 0 && ns < SAMPLE_NS) repeat = (int64_t)(SAMPLE_NS / (ns + 1)) + 1;
            if (s == 0 && ns > 30e6) break;
        }
    }
    trial_stop(tr);
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

/* Candidates of one problem and their best times so far. Two rounds, between which all other problems have theirs: machines that are
 * shared have spells of some hundred milliseconds in which one kind of instruction is several times slower than another. */
typedef struct contest {
    uint64_t key;
    int64_t task; /* the first one that has this problem */
    const stk_impl *impl[16];
    double ns[16];
    int32_t n;
} contest;

/* Who takes part in a round: ref only where there is no other, in the second one nobody who is far behind. */
static bool takes_part(const contest *c, int32_t i, bool first)
{
    static const double HOPELESS = 2.5; /* times the best */
    double best = 1e300;
    if (first) return !i || c->impl[i]->rank < 100;
    for (int32_t k = 0; k < c->n; k++) best = c->ns[k] < best ? c->ns[k] : best;
    return c->ns[i] <= HOPELESS * best;
}

static void time_round(const stk_plan *p, stk_task *t, stk_election *e, contest *c, bool first)
{
    const int64_t start = stk_now_ns();
    int64_t scratch = 0;
    trial tr;
    for (int32_t i = 0; i < c->n; i++) {
        settle(t, e, c->impl[i]);
        if (takes_part(c, i, first)) scratch = stk_max_i64(scratch, t->scratch_bytes);
    }
    const bool open = trial_open(p, t, scratch, &tr);
    for (int32_t i = 0; open && i < c->n; i++) {
        if (!takes_part(c, i, first)) continue;
        settle(t, e, c->impl[i]);
        const double ns = time_task(&tr, t, e) + fetch_ns(p, t, c->impl[i]);
        if (ns < c->ns[i]) c->ns[i] = ns;
    }
    trial_close(&tr);
    e->spent_ms += (double)(stk_now_ns() - start) / 1e6;
}

static const stk_impl *winner(const contest *c)
{
    static const double CLEARLY =
        0.92; /* the first of the table stays unless it is beaten beyond noise */
    int32_t best = 0;
    for (int32_t i = 1; i < c->n; i++)
        if (c->ns[i] < CLEARLY * c->ns[best]) best = i;
    return c->impl[best];
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

/* Contests of a plan, while it is arranged. */
typedef struct contests {
    contest *items;
    int64_t count, capacity;
} contests;

static contest *contest_of(const contests *all, uint64_t key)
{
    for (int64_t i = 0; i < all->count; i++)
        if (all->items[i].key == key) return &all->items[i];
    return NULL;
}

static stk_status begin_contest(stk_plan *p, int64_t k, stk_election *e, contests *all,
                                uint64_t key, const stk_impl **chosen, stk_error *err)
{
    stk_task *t = &p->tasks[k];
    contest c = {.key = key, .task = k};
    char name[64];
    c.n = candidates(t, e, c.impl, (int32_t)(sizeof c.impl / sizeof *c.impl));
    if (!c.n)
        return stk_fail(err, STK_ERR_UNSUPPORTED,
                        "%s: no kernel for '%s' on this device; cast to float32 or float64",
                        t->label, stk_kernel_name((stk_kernel)t->kernel));
    if (forced_name(e, (stk_kernel)t->kernel, name, sizeof name))
        return choose_forced(t, c.impl, c.n, name, chosen, err);
    *chosen = c.impl[0];
    if (e->ref || c.n == 1 || (c.n == 2 && c.impl[1]->rank >= 100)) return STK_OK;
    for (int32_t i = 0; i < c.n; i++) c.ns[i] = 1e300;
    time_round(p, t, e, &c, true);
    if (!STK_GROW(all->items, all->count, all->capacity))
        return stk_fail_memory(err, "kernel election", sizeof c);
    all->items[all->count++] = c;
    return STK_OK;
}

/* What can be said without timing, or where the problem has its contest. */
static stk_status elect_task(stk_plan *p, int64_t k, stk_election *e, stk_elect_cache *cache,
                             contests *all, stk_error *err)
{
    stk_task *t = &p->tasks[k];
    const stk_impl *chosen = NULL;
    char name[64];
    uint64_t key = stk_elect_key(t->kernel, t->params, t->params_size, machine_threads());
    const char *known = stk_elect_cache_find(cache, key);
    bool forced = forced_name(e, (stk_kernel)t->kernel, name, sizeof name);
    if (!e->ref && !forced && (known || e->deterministic)) chosen = choose_at_once(t, e, known);
    const contest *same = chosen ? NULL : contest_of(all, key);
    if (same) chosen = same->impl[0];
    if (!chosen) STK_TRY(begin_contest(p, k, e, all, key, &chosen, err));
    settle(t, e, chosen);
    return STK_OK;
}

/* The second rounds, and what came of them, for all tasks with the problem. */
static void end_contests(stk_plan *p, stk_election *e, stk_elect_cache *cache, contests *all)
{
    for (int64_t i = 0; i < all->count; i++) {
        contest *c = &all->items[i];
        time_round(p, &p->tasks[c->task], e, c, false);
        stk_elect_cache_add(cache, c->key, (stk_kernel)p->tasks[c->task].kernel, winner(c)->name);
    }
    for (int64_t k = 0; k < p->ntasks && all->count; k++) {
        stk_task *t = &p->tasks[k];
        if (t->kernel < 0) continue;
        const contest *c =
            contest_of(all, stk_elect_key(t->kernel, t->params, t->params_size, machine_threads()));
        if (c) settle(t, e, winner(c));
    }
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
    contests all = {NULL, 0, 0};
    for (int64_t k = 0; k < p->ntasks && status == STK_OK; k++) {
        stk_task *t = &p->tasks[k];
        t->own = stk_arena_alloc(&p->arena, sizeof(stk_cut));
        if (!t->own)
            status = stk_fail_memory(err, "kernel election", sizeof(stk_cut));
        else if (t->kernel < 0)
            *stk_cut_of(t) = (stk_cut){.units = 1, .scale = 1, .parts = 1, .threads = 1};
        else
            status = elect_task(p, k, e, cache, &all, err);
    }
    if (status == STK_OK) end_contests(p, e, cache, &all);
    for (int64_t k = 0; k < p->ntasks && status == STK_OK; k++)
        if (p->tasks[k].kernel >= 0) limit_threads(&p->tasks[k], e);
    stk_free(all.items);
    stk_elect_cache_close(cache);
    return status;
}
