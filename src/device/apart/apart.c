/* apart.c - a device for tests: the kernels of the CPU behind everything that makes a device a device. Its memory is where the
 * host cannot touch it (the addresses it hands out fault), its queue is a thread that runs late, transfers have another one, and
 * some operations are missing.
 *
 *     STOKER_APART=1              it exists: apart:0
 *     STOKER_APART_LATENCY=N      microseconds before everything it does (0)
 *     STOKER_APART_LAUNCH=N       microseconds that every kernel takes longer (0)
 *     STOKER_APART_WITHOUT=A,B    kernels and elementwise operations it does not take (see MISSING)
 *     STOKER_APART_BLOCK=N        bytes of its largest block (any)
 *     STOKER_APART_MEMORY=N       bytes it has (those of the host)
 *     STOKER_APART_ROAD=N         megabytes per second that go up or come down (as memory does)
 *     STOKER_APART_THREADS=N      threads of its own (as many as cpu:0): with STOKER_THREADS=1 it is the faster one at large work
 *
 * What a program computes on it has the same bits as on cpu:0. */
#include "device/apart/queue.h"
#include "device/cpu/plan/arrange.h"
#include "device/cpu/plan/sequence.h"

#include "base/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static const char MISSING[] = "sort,scan,resize,max_pool_pick,erf,gelu_erf,gelu_erf_grad,floor_mod";

typedef struct apart {
    stk_device device;
    stk_device *cpu; /* whose kernels it runs */
    stk_apart_queue queue, transfers;
    int64_t launch_ns; /* before every kernel */
    int64_t ns_per_kb; /* of what goes up and down; 0: as fast as memory */
    char missing[256]; /* ",sort,erf," */
} apart;

static apart *of(stk_device *d) { return (apart *)d; }

/* ---- memory ---------------------------------------------------------------------------------------------- */

typedef struct apart_block {
    stk_block head; /* host: pages that nobody may touch */
    char *real;
} apart_block;

static void *real_address(stk_address a)
{
    return a.block ? ((apart_block *)a.block)->real + a.offset : NULL;
}

static stk_block *apart_alloc(stk_device *d, size_t bytes)
{
    apart_block *b = stk_malloc(sizeof *b);
    if (!b) return NULL;
    void *guard =
        mmap(NULL, bytes + 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *b = (apart_block){{d, guard, bytes}, stk_alloc_pages(bytes)};
    if (guard != MAP_FAILED && b->real) {
        stk_device_takes(d, (int64_t)bytes);
        return &b->head;
    }
    if (guard != MAP_FAILED) munmap(guard, bytes + 1);
    if (b->real) stk_free_pages(b->real, bytes);
    stk_free(b);
    return NULL;
}

/* What is queued may still need it. */
static void apart_free(stk_block *block)
{
    apart_block *b = (apart_block *)block;
    if (!b) return;
    stk_apart_queue_wait(&of(block->device)->transfers);
    stk_apart_queue_wait(&of(block->device)->queue);
    stk_device_takes(block->device, -(int64_t)block->bytes);
    munmap(b->head.host, b->head.bytes + 1);
    stk_free_pages(b->real, b->head.bytes);
    stk_free(b);
}

static void *apart_host_alloc(stk_device *d, size_t bytes)
{
    (void)d;
    return stk_alloc_pages(bytes);
}

static void apart_host_free(stk_device *d, void *memory, size_t bytes)
{
    (void)d;
    stk_free_pages(memory, bytes);
}

/* ---- jobs ------------------------------------------------------------------------------------------------ */

typedef struct copy_job {
    stk_apart_job head;
    void *to;
    const void *from;
    size_t bytes;
    const char *name; /* in the trace; NULL: not there */
    int64_t ns_per_kb;
    stk_event *after, *done;
    int64_t after_ticket, done_ticket;
} copy_job;

/* As long as it would take on a slow road. */
static void travel(const copy_job *c)
{
    if (c->ns_per_kb <= 0) return;
    int64_t ns = (int64_t)c->bytes * c->ns_per_kb / 1024;
    nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL);
}

static void do_copy(stk_apart_job *job)
{
    copy_job *c = (copy_job *)job;
    if (c->after) stk_apart_await(c->after, c->after_ticket);
    uint64_t start = c->name ? stk_trace_start() : 0;
    if (c->bytes) memmove(c->to, c->from, c->bytes);
    travel(c);
    stk_trace_span(start, c->name, 0);
    if (c->done) stk_apart_happen(c->done, c->done_ticket);
}

static stk_status give_copy(stk_apart_queue *q, copy_job like, stk_error *err)
{
    copy_job *job =
        malloc(sizeof *job); /* check: allow heap, a queue is not the program's memory */
    if (!job) return stk_fail_memory(err, "a copy", sizeof *job);
    *job = like;
    job->head.run = do_copy;
    if (job->after) job->after_ticket = stk_apart_promised(job->after);
    if (job->done) job->done_ticket = stk_apart_promise(job->done);
    stk_apart_queue_give(q, &job->head);
    return STK_OK;
}

static stk_status apart_wait(stk_device *d, stk_error *err)
{
    (void)err;
    stk_apart_queue_wait(&of(d)->queue);
    return STK_OK;
}

static stk_status apart_set_later(stk_device *d, stk_address to, const void *from, size_t bytes,
                                  stk_error *err)
{
    copy_job job = {.to = real_address(to),
                    .from = from,
                    .bytes = bytes,
                    .name = "device upload",
                    .ns_per_kb = of(d)->ns_per_kb};
    return give_copy(&of(d)->queue, job, err);
}

static stk_status apart_get_later(stk_device *d, void *to, stk_address from, size_t bytes,
                                  stk_error *err)
{
    copy_job job = {.to = to,
                    .from = real_address(from),
                    .bytes = bytes,
                    .name = "device download",
                    .ns_per_kb = of(d)->ns_per_kb};
    return give_copy(&of(d)->queue, job, err);
}

static stk_status apart_set(stk_device *d, stk_address to, const void *from, size_t bytes,
                            stk_error *err)
{
    STK_TRY(apart_set_later(d, to, from, bytes, err));
    return apart_wait(d, err);
}

static stk_status apart_get(stk_device *d, void *to, stk_address from, size_t bytes, stk_error *err)
{
    STK_TRY(apart_get_later(d, to, from, bytes, err));
    return apart_wait(d, err);
}

static stk_status apart_copy(stk_device *d, stk_address to, stk_address from, size_t bytes,
                             stk_error *err)
{
    copy_job job = {
        .to = real_address(to), .from = real_address(from), .bytes = bytes, .name = "device copy"};
    return give_copy(&of(d)->queue, job, err);
}

static stk_status apart_send(stk_device *d, stk_address to, const void *from, size_t bytes,
                             stk_event *after, stk_event *done, stk_error *err)
{
    copy_job job = {.to = real_address(to),
                    .from = from,
                    .bytes = bytes,
                    .name = "device upload",
                    .ns_per_kb = of(d)->ns_per_kb,
                    .after = after,
                    .done = done};
    return give_copy(&of(d)->transfers, job, err);
}

/* ---- events ---------------------------------------------------------------------------------------------- */

static stk_event *apart_event_new(stk_device *d)
{
    (void)d;
    stk_event *e = stk_calloc(1, sizeof *e);
    if (!e) return NULL;
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->came, NULL);
    return e;
}

static void apart_event_free(stk_device *d, stk_event *e)
{
    stk_apart_queue_wait(&of(d)->transfers);
    stk_apart_queue_wait(&of(d)->queue);
    pthread_cond_destroy(&e->came);
    pthread_mutex_destroy(&e->lock);
    stk_free(e);
}

static stk_status apart_record(stk_device *d, stk_event *e, stk_error *err)
{
    return give_copy(&of(d)->queue, (copy_job){.done = e}, err);
}

static stk_status apart_await(stk_device *d, stk_event *e, stk_error *err)
{
    if (stk_apart_happened(e)) return STK_OK;
    return give_copy(&of(d)->queue, (copy_job){.after = e}, err);
}

static stk_status apart_join(stk_device *d, stk_event *e, stk_error *err)
{
    (void)d, (void)err;
    stk_apart_await(e, stk_apart_promised(e));
    return STK_OK;
}

/* ---- kernels --------------------------------------------------------------------------------------------- */

static bool is_missing(const apart *a, const char *name)
{
    char wanted[64];
    snprintf(wanted, sizeof wanted, ",%s,", name);
    return strstr(a->missing, wanted) != NULL;
}

static bool apart_supports(stk_device *d, stk_kernel kernel, const void *params, char *why,
                           size_t size)
{
    const apart *a = of(d);
    const char *missing = is_missing(a, stk_kernel_name(kernel)) ? stk_kernel_name(kernel) : NULL;
    if (kernel == STK_K_HOST) {
        snprintf(why, size, "a function of the host");
        return false;
    }
    if (kernel == STK_K_CHAIN) {
        const stk_chain *c = params;
        for (int32_t i = 0; i < c->ops && !missing; i++)
            if (is_missing(a, stk_ew_name((stk_ew)c->op[i].code)))
                missing = stk_ew_name((stk_ew)c->op[i].code);
    }
    if (missing) snprintf(why, size, "no kernel for %s", missing);
    return !missing && a->cpu->vt->kernels.supports(a->cpu, kernel, params, why, size);
}

static stk_status apart_arrange(stk_device *d, stk_plan *p, const stk_arrange_options *o,
                                stk_error *err)
{
    return stk_cpu_arrange(of(d)->cpu, p, o, err);
}

typedef struct apart_sequence {
    stk_sequence head;
    stk_cpu_sequence *inner;
} apart_sequence;

static stk_status apart_load(stk_device *d, stk_plan *p, stk_sequence **out, stk_error *err)
{
    apart_sequence *s = stk_arena_alloc(&p->arena, sizeof *s);
    if (!s) return stk_fail_memory(err, "a sequence", sizeof *s);
    s->head.device = d;
    STK_TRY(stk_cpu_load((const stk_cpu *)of(d)->cpu, real_address, p, &s->inner, err));
    *out = &s->head;
    return STK_OK;
}

static void apart_unload(stk_sequence *s)
{
    stk_apart_queue_wait(&of(s->device)->queue);
    stk_cpu_unload(((apart_sequence *)s)->inner);
}

/* Slots and uniforms are those of the moment it was asked for. */
typedef struct run_job {
    stk_apart_job head;
    stk_cpu_sequence *inner;
    int64_t late_ns;
    stk_sequence_run run;
    stk_address slots[]; /* then the uniforms */
} run_job;

static void do_run(stk_apart_job *job)
{
    run_job *r = (run_job *)job;
    struct timespec late = {r->late_ns / 1000000000, r->late_ns % 1000000000};
    if (r->late_ns > 0) nanosleep(&late, NULL);
    (void)!stk_cpu_run_sequence(&r->inner->head, &r->run, NULL);
}

static stk_status apart_run(stk_sequence *sequence, const stk_sequence_run *run, stk_error *err)
{
    stk_cpu_sequence *inner = ((apart_sequence *)sequence)->inner;
    size_t slots = (size_t)inner->nslots;
    size_t bytes = sizeof(run_job) + slots * sizeof(stk_address) + run->uniform_bytes;
    run_job *job = malloc(bytes); /* check: allow heap, a queue is not the program's memory */
    if (!job) return stk_fail_memory(err, "a run", bytes);
    *job = (run_job){.head = {.run = do_run}, .inner = inner, .run = *run};
    job->late_ns = of(sequence->device)->launch_ns * run->count;
    if (slots) memcpy(job->slots, run->slots, slots * sizeof(stk_address));
    memcpy(job->slots + slots, run->uniforms, run->uniform_bytes);
    job->run.slots = job->slots;
    job->run.uniforms = job->slots + slots;
    stk_apart_queue_give(&of(sequence->device)->queue, &job->head);
    return STK_OK;
}

/* ---- life ------------------------------------------------------------------------------------------------ */

static void apart_describe(stk_device *d, stk_device_report *out)
{
    of(d)->cpu->vt->describe(of(d)->cpu, out);
    snprintf(out->detail, sizeof out->detail, "the CPU's kernels behind memory of their own");
    if (of(d)->launch_ns || of(d)->ns_per_kb || of(d)->queue.latency_ns)
        snprintf(out->detail + strlen(out->detail), sizeof out->detail - strlen(out->detail),
                 ", %lld us late, %lld us per kernel, %lld ns per kB",
                 (long long)(of(d)->queue.latency_ns / 1000), (long long)(of(d)->launch_ns / 1000),
                 (long long)of(d)->ns_per_kb);
    snprintf(out->note, sizeof out->note, "for tests");
    out->fork_join_ns = 0;
}

static void apart_release(stk_device *d)
{
    apart *a = of(d);
    stk_apart_queue_end(&a->transfers);
    stk_apart_queue_end(&a->queue);
    stk_device_release(a->cpu);
    stk_free(a);
}

static const stk_device_vt apart_vt = {
    .memory = {.alloc = apart_alloc,
               .free = apart_free,
               .host_alloc = apart_host_alloc,
               .host_free = apart_host_free},
    .queue = {.set = apart_set,
              .get = apart_get,
              .wait = apart_wait,
              .set_later = apart_set_later,
              .get_later = apart_get_later,
              .copy = apart_copy,
              .run = apart_run,
              .send = apart_send,
              .event_new = apart_event_new,
              .event_free = apart_event_free,
              .record = apart_record,
              .await = apart_await,
              .join = apart_join},
    .kernels = {.supports = apart_supports,
                .arrange = apart_arrange,
                .rooms = stk_cpu_rooms,
                .load = apart_load,
                .unload = apart_unload,
                .report = stk_cpu_report},
    .describe = apart_describe,
    .release = apart_release,
};

static const char *setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

static int32_t count_apart(void) { return strcmp(setting("STOKER_APART", "0"), "0") ? 1 : 0; }

static stk_status start_queues(apart *a, int64_t late, stk_error *err)
{
    STK_TRY(stk_apart_queue_start(&a->queue, "apart:0 queue", STK_TRACE_COMPUTE, late, err));
    return stk_apart_queue_start(&a->transfers, "apart:0 transfers", STK_TRACE_TRANSFER, late, err);
}

static stk_status open_apart(int32_t index, int32_t threads, stk_device **out, stk_error *err)
{
    (void)index;
    if (!strcmp(setting("STOKER_APART", "0"), "broken"))
        return stk_fail(err, STK_ERR_DEVICE, "apart:0: STOKER_APART asks for a broken device");
    apart *a = stk_calloc(1, sizeof *a);
    if (!a) return stk_fail_memory(err, "apart", sizeof *a);
    int64_t late = atoll(setting("STOKER_APART_LATENCY", "0")) * 1000;
    a->device = (stk_device){
        .vt = &apart_vt, .refs = 1, .caps = {.only_by_name = true, .owners = STK_CPU_OWNERS}};
    a->device.caps.memory = atoll(setting("STOKER_APART_MEMORY", "0"));
    a->device.caps.largest_block = atoll(setting("STOKER_APART_BLOCK", "0"));
    a->launch_ns = atoll(setting("STOKER_APART_LAUNCH", "0")) * 1000;
    int64_t road = atoll(setting("STOKER_APART_ROAD", "0"));
    a->ns_per_kb = road > 0 ? 1024 * 1000 / road : 0;
    snprintf(a->missing, sizeof a->missing, ",%s,", setting("STOKER_APART_WITHOUT", MISSING));
    int32_t own = atoi(setting("STOKER_APART_THREADS", "0"));
    if (own > 0) threads = own;
    stk_status status = stk_cpu_device_new(threads, &a->cpu, err);
    if (status == STK_OK) status = start_queues(a, late, err);
    if (status == STK_OK)
        *out = &a->device;
    else
        apart_release(&a->device);
    return status;
}

const stk_driver stk_driver_apart = {.kind = "apart", .count = count_apart, .open = open_apart};
