/* cuda.c - which cards there are, and how one is opened. */
#include "device/cuda/cuda.h"

#include "base/cpus.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Of a card that is not listed, why. */
static char left_out[400];

static void leave_out(const stk_cu *cu, const card *c)
{
    char name[100] = "";
    (void)cu->cuDeviceGetName(name, sizeof name, c->id);
    if (!c->target)
        snprintf(left_out, sizeof left_out,
                 "%s (compute capability %d.%d) is older than NVRTC %d.%d compiles for: an older "
                 "one in STOKER_NVRTC does, OpenCL may as well",
                 name, c->sm / 10, c->sm % 10, cu->nvrtc / 1000, cu->nvrtc % 1000 / 10);
    else
        snprintf(left_out, sizeof left_out,
                 "%s is closed to programs that compute (compute mode \"prohibited\"): nvidia-smi "
                 "-c 0 opens it",
                 name);
}

static void find_all(void)
{
    const stk_cu *cu = stk_cu_open();
    int n = 0;
    if (!cu || cu->cuDeviceGetCount(&n) != CUDA_SUCCESS) return;
    for (int i = 0; i < n && ncards < MOST_CARDS; i++) {
        card c = {0};
        if (cu->cuDeviceGet(&c.id, i) != CUDA_SUCCESS) continue;
        c.sm = stk_cu_capability(cu, c.id);
        c.target = stk_cu_target(cu, c.sm);
        c.units = attribute(cu, c.id, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
        c.domain = attribute(cu, c.id, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
        c.bus = attribute(cu, c.id, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
        c.slot = attribute(cu, c.id, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
        bool open =
            attribute(cu, c.id, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) != CU_COMPUTEMODE_PROHIBITED;
        if (c.target && open)
            cards[ncards++] = c;
        else
            leave_out(cu, &c);
    }
}

const char *stk_cuda_missing(void)
{
    (void)stk_cuda_count();
    return left_out[0] ? left_out : stk_cu_missing();
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

/* A card that shares the host's memory counts pages of files as taken, which the system gives up when somebody wants them. */
static size_t free_memory(stk_cuda *d)
{
    size_t left = 0, all = 0;
    if (d->cu->cuMemGetInfo_v2(&left, &all) != CUDA_SUCCESS) {
        (void)d->cu->cuDeviceTotalMem_v2(&left, d->id);
        return left;
    }
    if (attribute(d->cu, d->id, CU_DEVICE_ATTRIBUTE_INTEGRATED)) {
        size_t host = (size_t)stk_min_i64(stk_memory_left(""), (int64_t)all);
        if (host > left) left = host;
    }
    return left;
}

static void read_facts(stk_cuda *d, const card *c)
{
    char name[100] = "";
    (void)d->cu->cuDeviceGetName(name, sizeof name, d->id);
    d->sm = c->sm;
    d->target = c->target;
    d->machine = c->target == c->sm;
    d->base.has_f64 = d->base.exact_division = true; /* as IEEE wants it, unless told otherwise */
    d->base.units = c->units;
    d->base.group_limit =
        (size_t)attribute(d->cu, d->id, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    d->base.parameter_limit = 4096;
    d->base.axis_limit = 65535;
    d->base.memory = d->base.largest = free_memory(d);
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
    if (code != CUDA_SUCCESS) {
        stk_status status = stk_cuda_fail_opening(d, code, err);
        release(&d->base.device);
        return status;
    }
    read_facts(d, &cards[index]);
    d->base.device.caps =
        (stk_device_caps){.joins_updates = true, .memory = (int64_t)d->base.memory};
    *out = &d->base.device;
    return STK_OK;
}
