/* The CPU as a device: host memory, the implementations of impls.def, and the loop that runs launches.
 *
 * Launches run in order, each cut into parts. A launch that `follows` joins the group of the one before it: part p of
 * the whole group runs on one thread, launch after launch, while its data is in that core's cache. */
#include "device/cpu/cpu.h"

#include "base/clock.h"
#include "base/cpus.h"
#include "base/float_env.h"
#include "base/trace.h"
#include "device/cpu/isa.h"
#include "device/cpu/plan/arrange.h"
#include "device/cpu/plan/sequence.h"
#include "device/cpu/sums.h"
#include "device/cpu/vec/vec.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* ---- running ------------------------------------------------------------------------------------ */

typedef struct group {
    const stk_launch *launch;
    int64_t count;
    int32_t parts, threads;
} group;

/* The room and local args are found in this share's memory; these are shifted so that the part's first unit is at its
 * start. */
static void run_local(const stk_launch *l, int64_t lo, int64_t hi, int32_t part, int32_t share)
{
    void *arg[STK_MOST_LOCAL_ARGS];
    stk_launch mine = *l;
    if (l->locals) {
        memcpy(arg, l->arg, (size_t)l->args * sizeof *arg);
        mine.arg = arg;
    }
    for (int32_t i = 0; i < l->locals; i++) {
        const stk_local *local = &l->local[i];
        arg[local->arg] = (char *)arg[local->arg] + share * local->share - lo * local->unit;
    }
    mine.room = (char *)l->room + share * l->room_share;
    l->run(&mine, lo * l->scale, hi * l->scale, part);
}

/* One range of one launch, with a span in the trace of the thread that runs it. */
static inline void run_range(const stk_launch *l, int64_t lo, int64_t hi, int32_t part,
                             int32_t share)
{
    if (lo >= hi) return;
    uint64_t start = stk_trace_start();
    if (l->locals || (share && l->room_share))
        run_local(l, lo, hi, part, share);
    else
        l->run(l, lo * l->scale, hi * l->scale, part);
    stk_trace_span(start, l->label, stk_launch_span_arg(l, part));
}

/* Most launches of a small model are one part: no division, no pool. */
static inline void run_whole(const stk_launch *launch, int64_t count)
{
    for (int64_t i = 0; i < count; i++) run_range(&launch[i], 0, launch[i].units, 0, 0);
}

static void ready_piece(const stk_launch *l, int64_t piece, int32_t share)
{
    uint64_t start = stk_trace_start();
    stk_launch mine = *l;
    mine.room = (char *)l->room + share * l->room_share;
    l->impl->ready(&mine, piece);
    stk_trace_span(start, l->label,
                   stk_launch_span_arg(l, l->parts + 1)); /* 0 would be a call, parts serial */
}

static void ready_on_thread(void *context, int64_t piece, int32_t thread)
{
    ready_piece(context, piece, thread);
}

/* What all parts share, by as many threads as the parts run on. */
static void ready(const stk_cpu *cpu, const stk_launch *l, int32_t threads)
{
    const int64_t pieces = l->impl->ready ? l->impl->pieces(l) : 0;
    if (threads > 1 && pieces > 1)
        stk_pool_run_on(cpu->pool, threads, ready_on_thread, (void *)(uintptr_t)l, pieces);
    else
        for (int64_t i = 0; i < pieces; i++) ready_piece(l, i, 0);
}

static void sums_on_thread(void *context, int64_t piece, int32_t thread)
{
    const stk_launch *l = context;
    (void)thread;
    uint64_t start = stk_trace_start();
    stk_sums_piece(l, piece);
    stk_trace_span(start, l->label, stk_launch_span_arg(l, l->parts + 1));
}

/* Few sums are added up sooner than the threads are called. */
static void finish(const stk_cpu *cpu, const stk_launch *l, int32_t threads)
{
    enum { FEW = 3 };
    if (!l->impl->finish) return;
    const int64_t pieces = threads > 1 && l->impl->sums ? stk_sums_pieces(l) : 0;
    const bool shared = pieces > FEW;
    if (shared) stk_pool_run_on(cpu->pool, threads, sums_on_thread, (void *)(uintptr_t)l, pieces);
    uint64_t start = stk_trace_start();
    if (shared)
        l->impl->finish(l);
    else
        stk_launch_join(l);
    stk_trace_span(start, l->label, stk_launch_span_arg(l, l->parts));
}

/* What has one part to itself is finished there, for the next one of that part may need it. */
static void run_solo(const stk_launch *l)
{
    ready(NULL, l, 1);
    run_range(l, 0, l->units, 0, 0);
    finish(NULL, l, 1);
}

static inline void run_part(const group *g, int32_t part, int32_t share)
{
    for (int64_t i = 0; i < g->count; i++) {
        const stk_launch *l = &g->launch[i];
        int64_t lo, hi;
        if (l->solo) {
            if (l->solo == part + 1) run_solo(l);
            continue;
        }
        stk_part_range(l->units, g->parts, part, &lo, &hi);
        run_range(l, lo, hi, part, share);
    }
}

static void run_on_thread(void *context, int64_t part, int32_t thread)
{
    run_part(context, (int32_t)part, thread);
}

static void run_group(const stk_cpu *cpu, const stk_launch *launch, int64_t count, int32_t threads)
{
    const int32_t parts = launch->solo ? STK_CPU_OWNERS : launch->parts;
    group g = {launch, count, parts, launch->threads};
    if (g.threads > threads) g.threads = threads;
    if (g.threads > g.parts) g.threads = g.parts;
    for (int64_t i = 0; i < count; i++)
        if (!launch[i].solo) ready(cpu, &launch[i], g.threads);
    if (g.threads > 1)
        stk_pool_run_on(cpu->pool, g.threads, run_on_thread, &g, g.parts);
    else if (g.parts > 1)
        for (int32_t part = 0; part < g.parts; part++) run_part(&g, part, 0);
    else
        run_whole(launch, count);
    for (int64_t i = 0; i < count; i++)
        if (!launch[i].solo) finish(cpu, &launch[i], g.threads);
}

void stk_cpu_run(const stk_cpu *cpu, const stk_launch *launches, int64_t n, int32_t threads)
{
    static const int never = 0;
    stk_cpu_run_until(cpu, launches, n, threads, &never);
}

void stk_cpu_run_until(const stk_cpu *cpu, const stk_launch *launches, int64_t n, int32_t threads,
                       const int *stop)
{
    if (threads < 1 || threads > cpu->threads) threads = cpu->threads;
    stk_float_env was = stk_float_env_enter();
    for (int64_t i = 0; i < n && !__atomic_load_n(stop, __ATOMIC_RELAXED);) {
        int64_t end = i + 1;
        while (end < n && launches[end].follows) end++;
        run_group(cpu, launches + i, end - i, threads);
        i = end;
    }
    stk_float_env_leave(was);
}

/* ---- memory: that of the host ------------------------------------------------------------------------- */

static stk_block *cpu_alloc(stk_device *d, size_t bytes)
{
    stk_block *b = stk_malloc(sizeof *b);
    if (!b) return NULL;
    *b = (stk_block){d, stk_alloc_pages(bytes), bytes};
    if (b->host) return b;
    stk_free(b);
    return NULL;
}

static void cpu_free(stk_block *b)
{
    if (!b) return;
    stk_free_pages(b->host, b->bytes);
    stk_free(b);
}

static void *cpu_host_alloc(stk_device *d, size_t bytes)
{
    (void)d;
    return stk_alloc_pages(bytes);
}

static void cpu_host_free(stk_device *d, void *memory, size_t bytes)
{
    (void)d;
    stk_free_pages(memory, bytes);
}

/* ---- queue: the caller's thread, so everything is done when it was asked for ---------------------------- */

static stk_status cpu_set(stk_device *d, stk_address to, const void *from, size_t bytes,
                          stk_error *err)
{
    (void)d, (void)err;
    if (bytes) memmove(stk_address_pointer(to), from, bytes);
    return STK_OK;
}

static stk_status cpu_get(stk_device *d, void *to, stk_address from, size_t bytes, stk_error *err)
{
    (void)d, (void)err;
    if (bytes) memmove(to, stk_address_pointer(from), bytes);
    return STK_OK;
}

static stk_status cpu_copy(stk_device *d, stk_address to, stk_address from, size_t bytes,
                           stk_error *err)
{
    return cpu_set(d, to, stk_address_pointer(from), bytes, err);
}

static stk_status cpu_send(stk_device *d, stk_address to, const void *from, size_t bytes,
                           stk_event *after, stk_event *done, stk_error *err)
{
    (void)after, (void)done;
    return cpu_set(d, to, from, bytes, err);
}

static stk_status cpu_wait(stk_device *d, stk_error *err)
{
    (void)d, (void)err;
    return STK_OK;
}

/* Its address stands for every event: all of them have happened. */
static stk_event *cpu_event_new(stk_device *d) { return (stk_event *)(void *)d; }

static void cpu_event_free(stk_device *d, stk_event *e) { (void)d, (void)e; }

static stk_status cpu_event(stk_device *d, stk_event *e, stk_error *err)
{
    (void)d, (void)e, (void)err;
    return STK_OK;
}

/* ---- what it is ------------------------------------------------------------------------------------ */

static void nothing(void *context, int64_t part, int32_t thread)
{
    (void)context, (void)part, (void)thread;
}

/* The lower quarter of a few empty regions, after some that wake the threads: what it costs when nobody disturbs. */
static double measure_fork_join(stk_cpu *cpu)
{
    enum { WARM = 8, ROUNDS = 25 };
    int64_t ns[ROUNDS] = {0};
    if (cpu->threads < 2) return 0;
    for (int i = 0; i < WARM; i++) stk_pool_run(cpu->pool, nothing, NULL, cpu->threads);
    for (int i = 0; i < ROUNDS; i++) {
        int64_t begin = stk_now_ns(), at = i;
        stk_pool_run(cpu->pool, nothing, NULL, cpu->threads);
        int64_t took = stk_now_ns() - begin;
        for (; at > 0 && ns[at - 1] > took; at--) ns[at] = ns[at - 1];
        ns[at] = took;
    }
    return (double)stk_max_i64(ns[ROUNDS / 4], 1);
}

static void read_model(char *text, size_t size)
{
    char line[256];
    snprintf(text, size, "unknown processor");
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (!file) return;
    while (fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !colon) continue;
        snprintf(text, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
        break;
    }
    fclose(file);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the measurement */

static void cpu_describe(stk_device *d, stk_device_report *out)
{
    stk_cpu *cpu = (stk_cpu *)d;
    char model[128];
    read_model(model, sizeof model);
    pthread_mutex_lock(&lock);
    if (cpu->fork_join_ns == 0) cpu->fork_join_ns = measure_fork_join(cpu);
    pthread_mutex_unlock(&lock);
    const char *unused = stk_isa_amx_unused();
    snprintf(out->detail, sizeof out->detail, "%s, %s kernels%s%s", model, stk_vec_get()->name,
             unused ? "; AMX is not used: " : "", unused ? unused : "");
    out->threads = cpu->threads;
    out->memory = stk_memory_limit("");
    out->fork_join_ns = cpu->fork_join_ns;
}

/* ---- kernels ------------------------------------------------------------------------------------------- */

const stk_impl *const *stk_cpu_impls(const stk_cpu *cpu, stk_kernel kernel, int32_t *n)
{
    if ((unsigned)kernel >= STK_KERNEL_COUNT) {
        *n = 0;
        return NULL;
    }
    *n = cpu->first[kernel + 1] - cpu->first[kernel];
    return cpu->impl + cpu->first[kernel];
}

bool stk_cpu_supports(const stk_cpu *cpu, stk_kernel kernel, const void *params)
{
    int32_t n = 0;
    const stk_impl *const *list = stk_cpu_impls(cpu, kernel, &n);
    for (int32_t i = n - 1; i >= 0; i--) /* ref takes most, and opens no library */
        if (!list[i]->supports || list[i]->supports(params)) return true;
    return false;
}

static const char *cpu_name(stk_device *d, stk_kernel kernel, int32_t i)
{
    int32_t n = 0;
    const stk_impl *const *list = stk_cpu_impls((const stk_cpu *)d, kernel, &n);
    return i < n ? list[i]->name : NULL;
}

static bool cpu_supports(stk_device *d, stk_kernel kernel, const void *params, char *why,
                         size_t size)
{
    if (stk_cpu_supports((const stk_cpu *)d, kernel, params)) return true;
    snprintf(why, size, "no kernel takes this problem");
    return false;
}

static stk_status cpu_load(stk_device *d, stk_plan *p, stk_sequence **out, stk_error *err)
{
    stk_cpu_sequence *s = NULL;
    STK_TRY(stk_cpu_load((const stk_cpu *)d, NULL, p, &s, err));
    s->head.device = d;
    *out = &s->head;
    return STK_OK;
}

static void cpu_unload(stk_sequence *s) { stk_cpu_unload((stk_cpu_sequence *)s); }

/* ---- life ------------------------------------------------------------------------------------------ */

static void cpu_release(stk_device *d)
{
    stk_cpu *cpu = (stk_cpu *)d;
    stk_pool_release(cpu->pool);
    stk_free(cpu);
}

static const stk_device_vt cpu_vt = {
    .memory = {.alloc = cpu_alloc,
               .free = cpu_free,
               .host_alloc = cpu_host_alloc,
               .host_free = cpu_host_free},
    .queue = {.set = cpu_set,
              .get = cpu_get,
              .wait = cpu_wait,
              .set_later = cpu_set,
              .get_later = cpu_get,
              .copy = cpu_copy,
              .run = stk_cpu_run_sequence,
              .send = cpu_send,
              .event_new = cpu_event_new,
              .event_free = cpu_event_free,
              .record = cpu_event,
              .await = cpu_event,
              .join = cpu_event},
    .kernels = {.supports = cpu_supports,
                .name = cpu_name,
                .arrange = stk_cpu_arrange,
                .rooms = stk_cpu_rooms,
                .load = cpu_load,
                .unload = cpu_unload,
                .report = stk_cpu_report},
    .describe = cpu_describe,
    .release = cpu_release,
};

static void list_impls(stk_cpu *cpu)
{
    static const stk_impl *const rows[] = {
#define STK_IMPL(name) &stk_impl_##name,
#include "device/cpu/impls.def"
    };
    int32_t listed = 0;
    for (int32_t kernel = 0; kernel < STK_KERNEL_COUNT; kernel++) {
        cpu->first[kernel] = listed;
        for (int32_t i = 0; i < STK_CPU_IMPLS; i++)
            if (rows[i]->kernel == kernel) cpu->impl[listed++] = rows[i];
    }
    cpu->first[STK_KERNEL_COUNT] = listed;
}

stk_status stk_cpu_device_new(int32_t threads, stk_device **out, stk_error *err)
{
    *out = NULL;
    if (threads < 0)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "cpu: %d threads; give the number of threads, or 0 for all", threads);
    stk_cpu *cpu = stk_calloc(1, sizeof *cpu);
    if (!cpu) return stk_fail_memory(err, "a CPU device", sizeof *cpu);
    stk_status status = stk_pool_new(threads, &cpu->pool, err);
    if (status != STK_OK) {
        stk_free(cpu);
        return status;
    }
    cpu->device =
        (stk_device){.vt = &cpu_vt,
                     .refs = 1,
                     .caps = {.shares_memory = true, .complete = true, .owners = STK_CPU_OWNERS}};
    snprintf(cpu->device.name, sizeof cpu->device.name, "cpu:0");
    cpu->threads = stk_pool_threads(cpu->pool);
    list_impls(cpu);
    *out = &cpu->device;
    return STK_OK;
}

/* One CPU device stands for all processors of the machine. */
static int32_t count_cpus(void) { return 1; }

static stk_status open_cpu(int32_t index, int32_t threads, stk_device **out, stk_error *err)
{
    (void)index;
    return stk_cpu_device_new(threads, out, err);
}

const stk_driver stk_driver_cpu = {.kind = "cpu", .count = count_cpus, .open = open_cpu};
