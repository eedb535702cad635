/* The driver that is none: see fake_cuda.h. */
#include "fake_cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the ground it stands on ----------------------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
void fake_lock(void) { pthread_mutex_lock(&mutex); }
void fake_unlock(void) { pthread_mutex_unlock(&mutex); }

static int64_t live;
void fake_live(int by) { __atomic_add_fetch(&live, by, __ATOMIC_RELAXED); }

int fake_number(const char *variable, int otherwise)
{
    const char *text = getenv(variable);
    return text && *text ? atoi(text) : otherwise;
}

static fake ground;
static int usable;
static void plant_from_outside(void);

static void open_ground(void)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    cl_platform_id platforms[8];
    cl_uint n = 0, devices = 0;
    cl_int code = 0;
    if (!library) return;
#define STK_CL(name, result, arguments)                                                            \
    *(void **)(void *)&ground.cl.name = dlsym(library, "cl" #name);                                \
    if (!ground.cl.name) return;
#include "device/opencl/api.def"
    *(void **)(void *)&ground.GetKernelInfo = dlsym(library, "clGetKernelInfo");
    *(void **)(void *)&ground.GetKernelArgInfo = dlsym(library, "clGetKernelArgInfo");
    *(void **)(void *)&ground.GetKernelWorkGroupInfo = dlsym(library, "clGetKernelWorkGroupInfo");
    *(void **)(void *)&ground.RetainEvent = dlsym(library, "clRetainEvent");
    if (ground.cl.GetPlatformIDs(8, platforms, &n) != CL_SUCCESS) return;
    for (cl_uint i = 0; i < n && i < 8 && !devices; i++)
        if (ground.cl.GetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU, 1, &ground.id, &devices) !=
            CL_SUCCESS)
            devices = 0;
    if (!devices) return;
    ground.context = ground.cl.CreateContext(NULL, 1, &ground.id, NULL, NULL, &code);
    ground.sm = fake_number("STK_FAKE_CUDA_SM", 75);
    ground.memory = (size_t)4 << 30;
    const char *memory = getenv("STK_FAKE_CUDA_MEMORY");
    if (memory && *memory) ground.memory = strtoull(memory, NULL, 10);
    ground.process = getpid();
    plant_from_outside();
    usable = code == CL_SUCCESS;
}

fake *fake_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_ground);
    return usable ? &ground : NULL;
}

/* ---- faults on order ------------------------------------------------------------------------------------- */

static struct {
    const char *name;
    int64_t after;
    int code, all;
} planted;
static int gone; /* the error of everything from now on */

static struct {
    const char *name;
    int64_t count;
} calls[64];

EXPORT void faulty_plant(const char *name, int64_t after, int code, int all);
void faulty_plant(const char *name, int64_t after, int code, int all)
{
    fake_lock();
    planted.name = name;
    planted.after = after;
    planted.code = code;
    planted.all = all;
    gone = 0;
    memset(calls, 0, sizeof calls);
    fake_unlock();
}

EXPORT int64_t faulty_calls(const char *name);
int64_t faulty_calls(const char *name)
{
    for (int i = 0; i < 64 && calls[i].name; i++)
        if (!strcmp(calls[i].name, name)) return calls[i].count;
    return 0;
}

/* STK_FAKE_CUDA_FAULT=cuInit:803 */
static void plant_from_outside(void)
{
    static char name[64];
    int code = 0;
    const char *text = getenv("STK_FAKE_CUDA_FAULT");
    if (!text || sscanf(text, "%63[^:]:%d", name, &code) != 2) return;
    planted.name = name;
    planted.code = code;
}

/* What was made and not given back: blocks, streams, events, modules, graphs, contexts. */
EXPORT int64_t faulty_live(void);
int64_t faulty_live(void) { return live; }

EXPORT void faulty_memory(size_t bytes);
void faulty_memory(size_t bytes) { ground.memory = bytes; }

static int note_locked(const char *name)
{
    int i = 0;
    while (i < 63 && calls[i].name && strcmp(calls[i].name, name)) i++;
    calls[i].name = name;
    calls[i].count++;
    if (getpid() != ground.process) return CUDA_ERROR_NOT_INITIALIZED; /* a context does not fork */
    if (gone) return gone;
    if (!planted.name || strcmp(planted.name, name) || calls[i].count <= planted.after)
        return CUDA_SUCCESS;
    if (planted.all) gone = planted.code;
    return planted.code;
}

int fake_note(const char *name)
{
    fake_lock();
    int code = note_locked(name);
    fake_unlock();
    return code;
}

/* ---- devices and contexts -------------------------------------------------------------------------------- */

static struct stk_cu_context {
    int retained;
} the_context;
static _Thread_local CUcontext current;

int fake_enter(const char *name)
{
    int code = fake_note(name);
    return code                                              ? code
           : current == &the_context && the_context.retained ? 0
                                                             : CUDA_ERROR_INVALID_CONTEXT;
}

int cuInit(unsigned flags)
{
    (void)flags;
    return fake_open() ? fake_note(__func__) : CUDA_ERROR_NO_DEVICE;
}

int cuDriverGetVersion(int *version)
{
    *version = 1000 * fake_number("STK_FAKE_CUDA_VERSION", 13);
    return CUDA_SUCCESS;
}

int cuGetErrorName(int code, const char **name)
{
    static const struct {
        int code;
        const char *name;
    } names[] = {
#define STK_CUDA_ERROR(code, kind, advice) {CUDA_ERROR_##code, "CUDA_ERROR_" #code},
#define STK_CUDA_OPENING(code, advice)     {CUDA_ERROR_##code, "CUDA_ERROR_" #code},
#include "device/cuda/errors.def"
        {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
        {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"},
        {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
        {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
        {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].code == code) *name = names[i].name;
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

int cuDeviceGetCount(int *n)
{
    *n = 1;
    return CUDA_SUCCESS;
}

int cuDeviceGet(int *out, int index)
{
    *out = 7; /* no number to be guessed */
    return index == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

int cuDeviceGetName(char *name, int size, int id)
{
    snprintf(name, (size_t)size, "no card, a fake for tests");
    return id == 7 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

int cuDeviceGetAttribute(int *out, int what, int id)
{
    const int sm = fake_open()->sm;
    const int table[][2] = {
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 2},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, fake_number("STK_FAKE_CUDA_MODE", 0)},
        {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 1},
        {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
        {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, sm / 10},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, sm % 10}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i][0] == what && id == 7) {
            *out = table[i][1];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

int cuDeviceTotalMem_v2(size_t *bytes, int id)
{
    *bytes = fake_open()->memory;
    return id == 7 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

int cuDevicePrimaryCtxRetain(CUcontext *out, int id)
{
    int code = fake_note(__func__);
    if (code || id != 7) return code ? code : CUDA_ERROR_INVALID_VALUE;
    the_context.retained++;
    fake_live(1);
    *out = &the_context;
    return CUDA_SUCCESS;
}

int cuDevicePrimaryCtxRelease_v2(int id)
{
    if (id != 7 || the_context.retained == 0) return CUDA_ERROR_INVALID_VALUE;
    the_context.retained--;
    fake_live(-1);
    return CUDA_SUCCESS;
}

int cuCtxSetCurrent(CUcontext context)
{
    current = context;
    return CUDA_SUCCESS;
}

/* ---- memory ---------------------------------------------------------------------------------------------- */

enum { MOST_BLOCKS = 4096 };
static fake_block blocks[MOST_BLOCKS];
static size_t taken;

fake_block *fake_block_at(CUdeviceptr at, size_t bytes)
{
    for (int i = 0; i < MOST_BLOCKS; i++)
        if (blocks[i].mem && at >= blocks[i].at && at + bytes <= blocks[i].at + blocks[i].bytes)
            return &blocks[i];
    return NULL;
}

int cuMemGetInfo_v2(size_t *left, size_t *all)
{
    ENTER;
    *all = fake_open()->memory;
    *left = *all - taken;
    return CUDA_SUCCESS;
}

static int make_block(CUdeviceptr *out, size_t bytes)
{
    static CUdeviceptr next = 0x500000000000u; /* where nobody of the host lives */
    fake *f = fake_open();
    int i = 0;
    cl_int code = 0;
    const unsigned rubbish = 0xbadc0ffeu;
    while (i < MOST_BLOCKS && blocks[i].mem) i++;
    if (i == MOST_BLOCKS || taken + bytes > f->memory) return CUDA_ERROR_OUT_OF_MEMORY;
    cl_mem mem =
        f->cl.CreateBuffer(f->context, CL_MEM_READ_WRITE, (bytes + 3) / 4 * 4, NULL, &code);
    cl_command_queue queue = mem ? f->cl.CreateCommandQueue(f->context, f->id, 0, &code) : NULL;
    if (!queue) return CUDA_ERROR_OUT_OF_MEMORY;
    (void)f->cl.EnqueueFillBuffer(queue, mem, &rubbish, 4, 0, (bytes + 3) / 4 * 4, 0, NULL, NULL);
    (void)f->cl.Finish(queue);
    (void)f->cl.ReleaseCommandQueue(queue);
    blocks[i] = (fake_block){next, bytes, mem};
    *out = next;
    next += (bytes + 0x10000u) / 256 * 256; /* gaps: one too far is noticed */
    taken += bytes;
    fake_live(1);
    return CUDA_SUCCESS;
}

int cuMemAlloc_v2(CUdeviceptr *out, size_t bytes)
{
    ENTER;
    fake_lock();
    int code = bytes ? make_block(out, bytes) : CUDA_ERROR_INVALID_VALUE;
    fake_unlock();
    return code;
}

int cuMemFree_v2(CUdeviceptr at)
{
    (void)fake_note(__func__); /* given back even when the card is lost: for the count */
    fake_lock();
    fake_block *b = fake_block_at(at, 1);
    int code = b && b->at == at ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (code == CUDA_SUCCESS) {
        (void)fake_open()->cl.ReleaseMemObject(b->mem);
        taken -= b->bytes;
        *b = (fake_block){0};
        fake_live(-1);
    }
    fake_unlock();
    return code;
}

int cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    ENTER;
    (void)flags;
    *out = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (!*out) return CUDA_ERROR_OUT_OF_MEMORY;
    memset(*out, 0x5a, bytes);
    fake_live(1);
    return CUDA_SUCCESS;
}

int cuMemFreeHost(void *memory)
{
    free(memory);
    fake_live(-1);
    return CUDA_SUCCESS;
}

/* ---- streams and events ---------------------------------------------------------------------------------- */

int fake_code(cl_int code)
{
    return code == CL_SUCCESS                         ? CUDA_SUCCESS
           : code == CL_MEM_OBJECT_ALLOCATION_FAILURE ? CUDA_ERROR_OUT_OF_MEMORY
                                                      : CUDA_ERROR_LAUNCH_FAILED;
}

int cuStreamCreate(CUstream *out, unsigned flags)
{
    ENTER;
    fake *f = fake_open();
    cl_int code = 0;
    if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    CUstream s = calloc(1, sizeof *s);
    s->queue = f->cl.CreateCommandQueue(f->context, f->id, CL_QUEUE_PROFILING_ENABLE, &code);
    *out = s;
    fake_live(1);
    return fake_code(code);
}

int cuStreamDestroy_v2(CUstream s)
{
    (void)fake_open()->cl.ReleaseCommandQueue(s->queue);
    free(s);
    fake_live(-1);
    return CUDA_SUCCESS;
}

/* What was queued is over when it returns, and when the card is lost too: nobody may free memory under a kernel of ours. */
int cuStreamSynchronize(CUstream s)
{
    if (getpid() != fake_open()->process) return CUDA_ERROR_NOT_INITIALIZED;
    cl_int code = fake_open()->cl.Finish(s->queue);
    ENTER;
    return fake_code(code);
}

int cuEventCreate(CUevent *out, unsigned flags)
{
    ENTER;
    if (flags != CU_EVENT_DISABLE_TIMING && flags != CU_EVENT_DEFAULT)
        return CUDA_ERROR_INVALID_VALUE;
    *out = calloc(1, sizeof **out);
    (*out)->timed = flags == CU_EVENT_DEFAULT;
    fake_live(1);
    return CUDA_SUCCESS;
}

int cuEventDestroy_v2(CUevent e)
{
    if (e->event) (void)fake_open()->cl.ReleaseEvent(e->event);
    free(e);
    fake_live(-1);
    return CUDA_SUCCESS;
}

int cuEventRecord(CUevent e, CUstream s)
{
    ENTER;
    fake *f = fake_open();
    cl_event now = NULL;
    if (s->capturing) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; /* nobody should want it */
    fake_lock();
    cl_int code = f->cl.EnqueueMarkerWithWaitList(s->queue, 0, NULL, &now);
    if (e->event) (void)f->cl.ReleaseEvent(e->event);
    e->event = now;
    (void)f->cl.Flush(s->queue);
    fake_unlock();
    return fake_code(code);
}

int cuEventSynchronize(CUevent e)
{
    fake *f = fake_open();
    fake_lock();
    cl_event now = e->event;
    if (now) (void)f->RetainEvent(now);
    fake_unlock();
    cl_int code = now ? f->cl.WaitForEvents(1, &now) : CL_SUCCESS;
    if (now) (void)f->cl.ReleaseEvent(now);
    ENTER;
    return fake_code(code);
}

int cuEventQuery(CUevent e)
{
    ENTER;
    cl_int state = CL_COMPLETE;
    fake_lock();
    if (e->event)
        (void)fake_open()->cl.GetEventInfo(e->event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                           sizeof state, &state, NULL);
    fake_unlock();
    return state == CL_COMPLETE ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

/* Of events that were recorded, are over, and were made to be timed. */
int cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
    ENTER;
    fake *f = fake_open();
    uint64_t at[2] = {0};
    CUevent both[] = {from, to};
    for (int i = 0; i < 2; i++) {
        if (!both[i]->timed || !both[i]->event) return CUDA_ERROR_INVALID_HANDLE;
        int code = cuEventQuery(both[i]);
        if (code != CUDA_SUCCESS) return code;
        if (f->cl.GetEventProfilingInfo(both[i]->event, CL_PROFILING_COMMAND_END, sizeof at[i],
                                        &at[i], NULL) != CL_SUCCESS)
            return CUDA_ERROR_UNKNOWN;
    }
    *ms = (float)((double)(int64_t)(at[1] - at[0]) / 1e6);
    return CUDA_SUCCESS;
}

int cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags)
{
    ENTER;
    (void)flags;
    fake_lock();
    cl_int code = e->event
                      ? fake_open()->cl.EnqueueBarrierWithWaitList(s->queue, 1, &e->event, NULL)
                      : CL_SUCCESS;
    fake_unlock();
    return fake_code(code);
}

/* ---- copies ---------------------------------------------------------------------------------------------- */

/* (a memory error of a copy is told at once; a stream that is captured takes no copies here) */
static fake_block *copy_block(CUstream s, CUdeviceptr at, size_t bytes, int *code)
{
    fake_block *b = fake_block_at(at, bytes);
    *code = s->capturing ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
            : b          ? CUDA_SUCCESS
                         : CUDA_ERROR_INVALID_VALUE;
    return *code ? NULL : b;
}

int cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream s)
{
    ENTER;
    fake *f = fake_open();
    int code = 0;
    fake_lock();
    fake_block *b = copy_block(s, to, bytes, &code);
    if (b)
        code = fake_code(
            f->cl.EnqueueWriteBuffer(s->queue, b->mem, 0, to - b->at, bytes, from, 0, NULL, NULL));
    (void)f->cl.Flush(s->queue);
    fake_unlock();
    return code;
}

int cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream s)
{
    ENTER;
    fake *f = fake_open();
    int code = 0;
    fake_lock();
    fake_block *b = copy_block(s, from, bytes, &code);
    if (b)
        code = fake_code(
            f->cl.EnqueueReadBuffer(s->queue, b->mem, 0, from - b->at, bytes, to, 0, NULL, NULL));
    (void)f->cl.Flush(s->queue);
    fake_unlock();
    return code;
}

int cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s)
{
    ENTER;
    fake *f = fake_open();
    int code = 0;
    fake_lock();
    fake_block *a = copy_block(s, to, bytes, &code), *b = a ? copy_block(s, from, bytes, &code) : a;
    if (b)
        code = fake_code(f->cl.EnqueueCopyBuffer(s->queue, b->mem, a->mem, from - b->at, to - a->at,
                                                 bytes, 0, NULL, NULL));
    fake_unlock();
    return code;
}

int cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t n, CUstream s)
{
    ENTER;
    int code = 0;
    fake_lock();
    fake_block *b = copy_block(s, to, 4 * n, &code);
    if (b)
        code = fake_code(fake_open()->cl.EnqueueFillBuffer(s->queue, b->mem, &value, 4, to - b->at,
                                                           4 * n, 0, NULL, NULL));
    fake_unlock();
    return code;
}
