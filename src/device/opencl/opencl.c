/* opencl.c - which OpenCL devices there are and what they are called.
 *
 *     gpu:N      those of type GPU or accelerator that CUDA does not list (gpus.c)
 *     opencl:N   those of type CPU: good for tests and for trying things out, never picked by themselves
 *
 *     STOKER_GPU=any    lets those of type CPU stand in as gpu:N, behind the real ones */
#include "device/opencl/opencl.h"

#include "base/memory.h"
#include "device/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

stk_status stk_opencl_fail(const stk_opencl *d, const char *what, cl_int code, stk_error *err)
{
    const char *name = stk_cl_name(&d->base);
    const char *error = stk_cl_error_name(code);
    if (code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY ||
        code == CL_OUT_OF_RESOURCES)
        return stk_fail(err, STK_ERR_MEMORY,
                        "%s: %s: %s; it has %llu MiB, in pieces of at most %llu MiB: try a smaller "
                        "batch, or --device cpu",
                        name, what, error, (unsigned long long)(d->base.memory >> 20),
                        (unsigned long long)(d->base.largest >> 20));
    if (code == CL_DEVICE_NOT_AVAILABLE)
        return stk_fail(err, STK_ERR_DEVICE,
                        "%s: %s: %s: the device was lost; start again from the last checkpoint, or "
                        "with --device cpu",
                        name, what, error);
    return stk_fail(err, STK_ERR_DEVICE,
                    "%s: %s: %s; `stoker selftest --device %s` tells whether its driver is sound",
                    name, what, error, name);
}

/* ---- finding --------------------------------------------------------------------------------------------- */

enum { MOST_DEVICES = 32, MOST_PLATFORMS = 16 };

typedef struct found {
    cl_device_id id;
    bool is_cpu;
} found;

static bool info_is_true(const stk_cl *cl, cl_device_id id, cl_uint what)
{
    cl_uint yes = 0;
    return cl->GetDeviceInfo(id, what, sizeof yes, &yes, NULL) == CL_SUCCESS && yes;
}

/* NVIDIA's driver says where a card sits: one that CUDA has is listed there. */
static bool is_of_cuda(const stk_cl *cl, cl_device_id id)
{
    cl_uint bus = 0, slot = 0, domain = 0;
    if (cl->GetDeviceInfo(id, CL_DEVICE_PCI_BUS_ID_NV, sizeof bus, &bus, NULL) != CL_SUCCESS ||
        cl->GetDeviceInfo(id, CL_DEVICE_PCI_SLOT_ID_NV, sizeof slot, &slot, NULL) != CL_SUCCESS)
        return false;
    (void)cl->GetDeviceInfo(id, CL_DEVICE_PCI_DOMAIN_ID_NV, sizeof domain, &domain, NULL);
    return stk_cuda_has((int)domain, (int)bus, (int)(slot >> 3)); /* behind it: the function */
}

/* All that can be used: available, with a compiler. */
static found all[MOST_DEVICES];
static int32_t nall;

static void find_all(void)
{
    const stk_cl *cl = stk_cl_open();
    cl_platform_id platforms[MOST_PLATFORMS];
    cl_uint nplatforms = 0;
    if (!cl || cl->GetPlatformIDs(MOST_PLATFORMS, platforms, &nplatforms) != CL_SUCCESS) return;
    for (cl_uint p = 0; p < nplatforms && p < MOST_PLATFORMS; p++) {
        cl_device_id ids[MOST_DEVICES];
        cl_uint nids = 0;
        if (cl->GetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, MOST_DEVICES, ids, &nids) !=
            CL_SUCCESS)
            continue;
        for (cl_uint i = 0; i < nids && i < MOST_DEVICES && nall < MOST_DEVICES; i++) {
            cl_bits type = 0;
            if (cl->GetDeviceInfo(ids[i], CL_DEVICE_TYPE, sizeof type, &type, NULL) != CL_SUCCESS ||
                !info_is_true(cl, ids[i], CL_DEVICE_AVAILABLE) ||
                !info_is_true(cl, ids[i], CL_DEVICE_COMPILER_AVAILABLE) || is_of_cuda(cl, ids[i]))
                continue;
            all[nall++] = (found){ids[i], (type & CL_DEVICE_TYPE_CPU) != 0};
        }
    }
}

/* Of one kind, in the order of their numbers; out may be NULL. */
static int32_t find_kind(bool cpus, cl_device_id *out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int32_t n = 0;
    pthread_once(&once, find_all);
    const char *stand_in = getenv("STOKER_GPU");
    bool any = !cpus && stand_in && !strcmp(stand_in, "any");
    for (int pass = 0; pass < (any ? 2 : 1); pass++)
        for (int32_t i = 0; i < nall; i++)
            if (all[i].is_cpu == (pass ? true : cpus)) {
                if (out) out[n] = all[i].id;
                n++;
            }
    return n;
}

int32_t stk_opencl_count_gpus(void) { return find_kind(false, NULL); }
static int32_t count_cpus(void) { return find_kind(true, NULL); }

/* ---- opening --------------------------------------------------------------------------------------------- */

static uint64_t info_number(const stk_opencl *d, cl_uint what, size_t size)
{
    uint64_t wide = 0;
    uint32_t narrow = 0;
    void *to = size == 8 ? (void *)&wide : (void *)&narrow;
    if (d->cl->GetDeviceInfo(d->id, what, size, to, NULL) != CL_SUCCESS) return 0;
    return size == 8 ? wide : narrow;
}

static void info_text(const stk_opencl *d, cl_uint what, char *out, size_t size)
{
    out[0] = 0;
    if (d->cl->GetDeviceInfo(d->id, what, size, out, NULL) != CL_SUCCESS) out[0] = 0;
    out[size - 1] = 0;
}

static void read_facts(stk_opencl *d)
{
    static char extensions[8192]; /* only a look at it; opening is under the lock of device.c */
    char name[128], version[128], driver[64];
    info_text(d, CL_DEVICE_NAME, name, sizeof name);
    info_text(d, CL_DEVICE_VERSION, version, sizeof version);
    info_text(d, CL_DRIVER_VERSION, driver, sizeof driver);
    info_text(d, CL_DEVICE_EXTENSIONS, extensions, sizeof extensions);
    d->base.is_cpu = info_number(d, CL_DEVICE_TYPE, 8) & CL_DEVICE_TYPE_CPU;
    d->base.has_f64 = strstr(extensions, "cl_khr_fp64") != NULL;
    d->base.exact_division =
        info_number(d, CL_DEVICE_SINGLE_FP_CONFIG, 8) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
    d->base.units = (int32_t)info_number(d, CL_DEVICE_MAX_COMPUTE_UNITS, 4);
    d->base.group_limit = info_number(d, CL_DEVICE_MAX_WORK_GROUP_SIZE, 8);
    d->base.parameter_limit = info_number(d, CL_DEVICE_MAX_PARAMETER_SIZE, 8);
    d->base.local_limit = info_number(d, CL_DEVICE_LOCAL_MEM_SIZE, 8);
    d->base.memory = info_number(d, CL_DEVICE_GLOBAL_MEM_SIZE, 8);
    d->base.largest = info_number(d, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 8);
    snprintf(d->base.about, sizeof d->base.about, "%.90s, OpenCL driver %.40s", name, driver);
    snprintf(d->base.driver, sizeof d->base.driver, "%.80s|%.60s|%.40s", name, version, driver);
}

static void describe(stk_device *device, stk_device_report *out)
{
    stk_opencl *d = stk_opencl_of(device);
    snprintf(out->detail, sizeof out->detail, "%s", d->base.about);
    snprintf(out->note, sizeof out->note, "%s",
             d->base.is_cpu ? "a CPU behind OpenCL, no GPU: for tests, never picked by itself"
                            : "experimental: GPUs were not at hand when this was written");
    out->threads = d->base.units;
}

static void release(stk_device *device)
{
    stk_opencl *d = stk_opencl_of(device);
    if (d->transfers) (void)d->cl->Finish(d->transfers);
    if (d->queue) (void)d->cl->Finish(d->queue);
    stk_opencl_watch_free(d);
    for (int i = 0; i < STK_CL_AHEAD; i++)
        if (d->mark[i]) (void)d->cl->ReleaseEvent(d->mark[i]);
    stk_cl_programs_release(&d->base);
    if (d->transfers) (void)d->cl->ReleaseCommandQueue(d->transfers);
    if (d->queue) (void)d->cl->ReleaseCommandQueue(d->queue);
    if (d->context) (void)d->cl->ReleaseContext(d->context);
    pthread_rwlock_destroy(&d->queues);
    pthread_mutex_destroy(&d->base.lock);
    stk_free(d);
}

static stk_device_vt vt = {.kernels = {.supports = stk_cl_supports,
                                       .name = stk_cl_impl_name,
                                       .arrange = stk_cl_arrange,
                                       .load = stk_cl_load,
                                       .unload = stk_cl_unload,
                                       .report = stk_cl_report},
                           .describe = describe,
                           .release = release};

static stk_status open_one(cl_device_id id, stk_device **out, stk_error *err)
{
    cl_int code = CL_SUCCESS;
    stk_opencl *d = stk_calloc(1, sizeof *d);
    if (!d) return stk_fail_memory(err, "opencl", sizeof *d);
    vt.memory = stk_opencl_memory;
    vt.queue = stk_opencl_queue;
    vt.queue.run = stk_opencl_run;
    d->base.device = (stk_device){.vt = &vt, .refs = 1};
    d->base.backend = &stk_opencl_backend;
    d->cl = stk_cl_open();
    d->id = id;
    pthread_mutex_init(&d->base.lock, NULL);
    pthread_rwlock_init(&d->queues, NULL);
    read_facts(d);
    d->base.device.caps = (stk_device_caps){.only_by_name = d->base.is_cpu,
                                            .joins_updates = true,
                                            .largest_block = (int64_t)d->base.largest,
                                            .memory = (int64_t)d->base.memory};
    d->context = d->cl->CreateContext(NULL, 1, &id, NULL, NULL, &code);
    if (code == CL_SUCCESS) d->queue = d->cl->CreateCommandQueue(d->context, id, 0, &code);
    if (code == CL_SUCCESS) d->transfers = d->cl->CreateCommandQueue(d->context, id, 0, &code);
    if (code == CL_SUCCESS) {
        *out = &d->base.device;
        return STK_OK;
    }
    stk_status status = stk_opencl_fail(d, "opening", code, err);
    release(&d->base.device);
    return status;
}

static stk_status open_kind(bool cpus, int32_t index, stk_device **out, stk_error *err)
{
    cl_device_id ids[2 * MOST_DEVICES];
    if (index >= find_kind(cpus, ids))
        return stk_fail(err, STK_ERR_DEVICE, "%s:%d is gone: its driver does not list it any more",
                        cpus ? "opencl" : "gpu", index);
    return open_one(ids[index], out, err);
}

stk_status stk_opencl_open_gpu(int32_t index, stk_device **out, stk_error *err)
{
    return open_kind(false, index, out, err);
}

static stk_status open_cpu(int32_t index, int32_t threads, stk_device **out, stk_error *err)
{
    (void)threads;
    return open_kind(true, index, out, err);
}

const stk_driver stk_driver_opencl = {.kind = "opencl", .count = count_cpus, .open = open_cpu};
