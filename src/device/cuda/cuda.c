/* cuda.c - which cards there are, and how one is opened. */
#include "device/cuda/cuda.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors ---------------------------------------------------------------------------------------------- */

/* After these the context is dead: every later call fails. */
static bool is_fatal(int code)
{
    static const int codes[] = {CUDA_ERROR_DEINITIALIZED,
                                CUDA_ERROR_DEVICE_UNAVAILABLE,
                                CUDA_ERROR_ECC_UNCORRECTABLE,
                                CUDA_ERROR_NVLINK_UNCORRECTABLE,
                                CUDA_ERROR_ILLEGAL_ADDRESS,
                                CUDA_ERROR_LAUNCH_TIMEOUT,
                                CUDA_ERROR_CONTEXT_IS_DESTROYED,
                                CUDA_ERROR_ASSERT,
                                CUDA_ERROR_UNKNOWN};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i] == code) return true;
    return code >= CUDA_ERROR_HARDWARE_STACK_ERROR && code <= CUDA_ERROR_LAUNCH_FAILED;
}

stk_status stk_cuda_done(stk_cuda *d, const char *what, int code, stk_error *err)
{
    const char *name = stk_cl_name(&d->base), *error = NULL;
    int before = __atomic_load_n(&d->lost, __ATOMIC_RELAXED);
    if (before) code = before;
    if (code == CUDA_SUCCESS) return STK_OK;
    if (d->cu->cuGetErrorName(code, &error) != CUDA_SUCCESS || !error) error = "a CUDA error";
    if (code == CUDA_ERROR_OUT_OF_MEMORY || code == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
        return stk_fail(err, STK_ERR_MEMORY,
                        "%s: %s: %s; it had %llu MiB free: try a smaller batch, or --device cpu",
                        name, what, error, (unsigned long long)(d->base.memory >> 20));
    if (!is_fatal(code))
        return stk_fail(
            err, STK_ERR_DEVICE,
            "%s: %s: %s (%d); `stoker selftest --device %s` tells whether its driver is "
            "sound",
            name, what, error, code, name);
    __atomic_store_n(&d->lost, code, __ATOMIC_RELAXED);
    return stk_fail(err, STK_ERR_DEVICE,
                    "%s: %s: %s (%d): the card was lost; start again from the last checkpoint, or "
                    "with --device cpu",
                    name, what, error, code);
}

/* ---- finding --------------------------------------------------------------------------------------------- */

enum { MOST_CARDS = 32 };

typedef struct card {
    int id, sm, target, units;
    int domain, bus, slot;
} card;
static card cards[MOST_CARDS];
static int32_t ncards;

static int attribute(const stk_cu *cu, int id, int what)
{
    int value = 0;
    return cu->cuDeviceGetAttribute(&value, what, id) == CUDA_SUCCESS ? value : 0;
}

/* What to compile for: the card's own number, or the last one before it that the compiler knows; 0: older than all of them. */
static int target_of(const stk_cu *cu, int sm)
{
    int best = 0;
    for (int i = 0; i < cu->narchs; i++)
        if (cu->arch[i] <= sm && cu->arch[i] > best) best = cu->arch[i];
    return best;
}

static void find_all(void)
{
    const stk_cu *cu = stk_cu_open();
    int n = 0;
    if (!cu || cu->cuDeviceGetCount(&n) != CUDA_SUCCESS) return;
    for (int i = 0; i < n && ncards < MOST_CARDS; i++) {
        card c = {0};
        if (cu->cuDeviceGet(&c.id, i) != CUDA_SUCCESS) continue;
        c.sm = 10 * attribute(cu, c.id, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
               attribute(cu, c.id, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
        c.target = target_of(cu, c.sm);
        c.units = attribute(cu, c.id, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
        c.domain = attribute(cu, c.id, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
        c.bus = attribute(cu, c.id, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
        c.slot = attribute(cu, c.id, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
        if (c.target &&
            attribute(cu, c.id, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) != CU_COMPUTEMODE_PROHIBITED)
            cards[ncards++] = c;
    }
}

int32_t stk_cuda_count(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_all);
    return ncards;
}

bool stk_cuda_has(int domain, int bus, int slot)
{
    for (int32_t i = 0; i < stk_cuda_count(); i++)
        if (cards[i].domain == domain && cards[i].bus == bus && cards[i].slot == slot) return true;
    return false;
}

/* ---- opening --------------------------------------------------------------------------------------------- */

static void describe(stk_device *device, stk_device_report *out)
{
    stk_cuda *d = stk_cuda_of(device);
    snprintf(out->detail, sizeof out->detail, "%s", d->base.about);
    snprintf(out->note, sizeof out->note, "experimental: never run on hardware here");
    out->threads = d->base.units;
}

static void release(stk_device *device)
{
    stk_cuda *d = stk_cuda_of(device);
    const stk_cu *cu = d->cu;
    if (d->context) {
        CUstream streams[] = {d->transfers, d->queue, d->drafts};
        (void)stk_cuda_enter(d);
        for (int i = 0; i < 3; i++)
            if (streams[i]) (void)cu->cuStreamSynchronize(streams[i]);
        stk_cuda_watch_free(d);
        stk_cl_programs_release(&d->base);
        for (int i = 0; i < STK_CUDA_AHEAD; i++)
            if (d->mark[i]) (void)cu->cuEventDestroy_v2(d->mark[i]);
        for (int i = 0; i < 3; i++)
            if (streams[i]) (void)cu->cuStreamDestroy_v2(streams[i]);
        (void)cu->cuDevicePrimaryCtxRelease_v2(d->id);
    }
    pthread_mutex_destroy(&d->drafting);
    pthread_mutex_destroy(&d->base.lock);
    stk_free(d);
}

static stk_device_vt vt = {.kernels = {.supports = stk_cl_supports,
                                       .name = stk_cl_impl_name,
                                       .arrange = stk_cl_arrange,
                                       .load = stk_cuda_load,
                                       .unload = stk_cuda_unload,
                                       .report = stk_cl_report},
                           .describe = describe,
                           .release = release};

static void read_facts(stk_cuda *d, const card *c)
{
    char name[100] = "";
    size_t left = 0, all = 0;
    (void)d->cu->cuDeviceGetName(name, sizeof name, d->id);
    if (d->cu->cuMemGetInfo_v2(&left, &all) != CUDA_SUCCESS)
        (void)d->cu->cuDeviceTotalMem_v2(&left, d->id);
    d->sm = c->sm;
    d->target = c->target;
    d->base.has_f64 = d->base.exact_division = true; /* as IEEE wants it, unless told otherwise */
    d->base.units = c->units;
    d->base.group_limit =
        (size_t)attribute(d->cu, d->id, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    d->base.parameter_limit = 4096;
    d->base.memory = d->base.largest = left;
    snprintf(d->base.about, sizeof d->base.about, "%s, compute capability %d.%d, CUDA driver %d.%d",
             name, d->sm / 10, d->sm % 10, d->cu->driver / 1000, d->cu->driver % 1000 / 10);
    snprintf(d->base.driver, sizeof d->base.driver, "%s|sm_%d|for %d|driver %d|nvrtc %d", name,
             d->sm, d->target, d->cu->driver, d->cu->nvrtc);
}

static int make_queues(stk_cuda *d)
{
    CUstream *streams[] = {&d->queue, &d->transfers, &d->drafts};
    int code = CUDA_SUCCESS;
    for (int i = 0; i < 3 && code == CUDA_SUCCESS; i++)
        code = d->cu->cuStreamCreate(streams[i], CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < STK_CUDA_AHEAD && code == CUDA_SUCCESS; i++)
        code = d->cu->cuEventCreate(&d->mark[i], CU_EVENT_DISABLE_TIMING);
    return code;
}

stk_status stk_cuda_open(int32_t index, stk_device **out, stk_error *err)
{
    const char *graphs = getenv("STOKER_CUDA_GRAPHS");
    if (index >= stk_cuda_count())
        return stk_fail(err, STK_ERR_DEVICE, "gpu:%d is gone: its driver does not list it any more",
                        index);
    stk_cuda *d = stk_calloc(1, sizeof *d);
    if (!d) return stk_fail_memory(err, "cuda", sizeof *d);
    vt.memory = stk_cuda_memory;
    vt.queue = stk_cuda_queue;
    vt.queue.run = stk_cuda_run;
    d->base.device = (stk_device){.vt = &vt, .refs = 1};
    d->base.backend = &stk_cuda_backend;
    d->cu = stk_cu_open();
    d->id = cards[index].id;
    d->graphs = !graphs || strcmp(graphs, "0") != 0;
    snprintf(d->base.about, sizeof d->base.about, "gpu:%d", index);
    pthread_mutex_init(&d->base.lock, NULL);
    pthread_mutex_init(&d->drafting, NULL);
    int code = d->cu->cuDevicePrimaryCtxRetain(&d->context, d->id);
    if (code != CUDA_SUCCESS) d->context = NULL;
    if (code == CUDA_SUCCESS) code = stk_cuda_enter(d);
    if (code == CUDA_SUCCESS) code = make_queues(d);
    stk_status status = stk_cuda_done(d, "opening", code, err);
    if (status != STK_OK) {
        release(&d->base.device);
        return status;
    }
    read_facts(d, &cards[index]);
    d->base.device.caps =
        (stk_device_caps){.joins_updates = true, .memory = (int64_t)d->base.memory};
    *out = &d->base.device;
    return STK_OK;
}
