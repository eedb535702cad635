/* Memory, copies and events. Two queues in order: one computes, one sends batches up meanwhile. A queue that another one waits for is
 * flushed first, or it might never begin. */
#include "device/opencl/opencl.h"

#include "base/memory.h"

#include <string.h>

/* ---- memory ---------------------------------------------------------------------------------------------- */

/* Waited for: whatever comes next, in either queue, must find zeros, not bring them. */
static cl_int fill_zero(stk_opencl *d, cl_mem mem, size_t bytes)
{
    const uint32_t zero = 0;
    cl_event filled = NULL;
    cl_int code = STK_CL_QUEUED(d, d->cl->EnqueueFillBuffer(d->transfers, mem, &zero, sizeof zero,
                                                            0, bytes, 0, NULL, &filled));
    if (code != CL_SUCCESS) return code;
    code = d->cl->WaitForEvents(1, &filled);
    (void)d->cl->ReleaseEvent(filled);
    return code;
}

static stk_block *block_alloc(stk_device *device, size_t bytes)
{
    stk_opencl *d = stk_opencl_of(device);
    cl_int code = CL_SUCCESS;
    size_t rounded = (size_t)stk_round_up((int64_t)bytes + 1, STK_ALIGN);
    stk_cl_block *b = stk_malloc(sizeof *b);
    if (!b) return NULL;
    *b = (stk_cl_block){.head = {device, NULL, bytes}};
    cl_mem mem = NULL;
    if (rounded <= d->base.largest)
        mem = d->cl->CreateBuffer(d->context, CL_MEM_READ_WRITE, rounded, NULL, &code);
    if (mem && code == CL_SUCCESS) code = fill_zero(d, mem, rounded);
    b->given = (uintptr_t)mem;
    if (mem && code == CL_SUCCESS) {
        stk_device_takes(device, (int64_t)bytes);
        return &b->head;
    }
    if (mem) (void)d->cl->ReleaseMemObject(mem);
    stk_free(b);
    return NULL;
}

/* OpenCL keeps it until what is queued is done with it. */
static void block_free(stk_block *block)
{
    if (!block) return;
    stk_device_takes(block->device, -(int64_t)block->bytes);
    (void)stk_opencl_of(block->device)->cl->ReleaseMemObject(stk_cl_mem_of(block));
    stk_free(block);
}

/* Memory of the driver, mapped for good: that is how pinned memory is had everywhere. What it came from stands in front of it. */
typedef struct pinned {
    cl_mem mem;
    void *mapped;
} pinned;

static void *host_alloc(stk_device *device, size_t bytes)
{
    stk_opencl *d = stk_opencl_of(device);
    cl_int code = CL_SUCCESS;
    size_t all = bytes + 2 * STK_ALIGN;
    cl_mem mem = d->cl->CreateBuffer(d->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, all,
                                     NULL, &code);
    if (!mem || code != CL_SUCCESS) return NULL;
    pthread_rwlock_rdlock(&d->queues);
    char *mapped = d->cl->EnqueueMapBuffer(d->transfers, mem, 1, CL_MAP_READ_WRITE, 0, all, 0, NULL,
                                           NULL, &code);
    pthread_rwlock_unlock(&d->queues);
    if (!mapped || code != CL_SUCCESS) {
        (void)d->cl->ReleaseMemObject(mem);
        return NULL;
    }
    memset(mapped, 0, all);
    char *memory = mapped + sizeof(pinned);
    memory += (STK_ALIGN - (uintptr_t)memory % STK_ALIGN) % STK_ALIGN;
    memcpy(memory - sizeof(pinned), &(pinned){mem, mapped}, sizeof(pinned));
    return memory;
}

static void host_free(stk_device *device, void *memory, size_t bytes)
{
    stk_opencl *d = stk_opencl_of(device);
    (void)bytes;
    if (!memory) return;
    pinned p;
    memcpy(&p, (const char *)memory - sizeof p, sizeof p);
    (void)STK_CL_QUEUED(d,
                        d->cl->EnqueueUnmapMemObject(d->transfers, p.mem, p.mapped, 0, NULL, NULL));
    (void)STK_CL_QUEUED(
        d, d->cl->Finish(d->transfers)); /* not every driver keeps it for what is queued */
    (void)d->cl->ReleaseMemObject(p.mem);
}

const stk_memory_vt stk_opencl_memory = {
    .alloc = block_alloc, .free = block_free, .host_alloc = host_alloc, .host_free = host_free};

/* ---- copies ---------------------------------------------------------------------------------------------- */

/* A device that was lost stays lost, whatever later calls say. */
static stk_status done(stk_opencl *d, const char *what, cl_int code, stk_error *err)
{
    if (code == CL_SUCCESS) code = __atomic_load_n(&d->lost, __ATOMIC_RELAXED);
    return code == CL_SUCCESS ? STK_OK : stk_opencl_fail(d, what, code, err);
}

/* The same for a copy whose event was asked for. */
static stk_status copied(stk_opencl *d, const char *what, const char *name, cl_int code,
                         cl_event seen, stk_error *err)
{
    stk_opencl_note(d, STK_CL_COPIES, seen, name, 0);
    return done(d, what, code, err);
}

/* Copies between host and device: those that are waited for, and those that only begin, which a flush sends on its way. */
static stk_status write_up(stk_device *device, stk_address to, const void *from, size_t bytes,
                           bool waits, stk_error *err)
{
    stk_opencl *d = stk_opencl_of(device);
    cl_event seen = NULL;
    if (!bytes) return STK_OK;
    cl_int code = STK_CL_QUEUED(
        d, d->cl->EnqueueWriteBuffer(d->queue, stk_cl_mem_of(to.block), waits, (size_t)to.offset,
                                     bytes, from, 0, NULL, stk_opencl_watched(d, &seen)));
    STK_TRY(copied(d, "a write", "device upload", code, seen, err));
    return waits ? STK_OK : done(d, "a flush", STK_CL_QUEUED(d, d->cl->Flush(d->queue)), err);
}

static stk_status read_down(stk_device *device, void *to, stk_address from, size_t bytes,
                            bool waits, stk_error *err)
{
    stk_opencl *d = stk_opencl_of(device);
    cl_event seen = NULL;
    if (!bytes) return STK_OK;
    cl_int code = STK_CL_QUEUED(d, d->cl->EnqueueReadBuffer(d->queue, stk_cl_mem_of(from.block),
                                                            waits, (size_t)from.offset, bytes, to,
                                                            0, NULL, stk_opencl_watched(d, &seen)));
    STK_TRY(copied(d, "a read", "device download", code, seen, err));
    return waits ? STK_OK : done(d, "a flush", STK_CL_QUEUED(d, d->cl->Flush(d->queue)), err);
}

static stk_status queue_set(stk_device *device, stk_address to, const void *from, size_t bytes,
                            stk_error *err)
{
    return write_up(device, to, from, bytes, true, err);
}
static stk_status queue_set_later(stk_device *device, stk_address to, const void *from,
                                  size_t bytes, stk_error *err)
{
    return write_up(device, to, from, bytes, false, err);
}
static stk_status queue_get(stk_device *device, void *to, stk_address from, size_t bytes,
                            stk_error *err)
{
    return read_down(device, to, from, bytes, true, err);
}
static stk_status queue_get_later(stk_device *device, void *to, stk_address from, size_t bytes,
                                  stk_error *err)
{
    return read_down(device, to, from, bytes, false, err);
}

static stk_status queue_copy(stk_device *device, stk_address to, stk_address from, size_t bytes,
                             stk_error *err)
{
    stk_opencl *d = stk_opencl_of(device);
    cl_event seen = NULL;
    if (!bytes || stk_address_equal(to, from)) return STK_OK;
    return copied(d, "a copy", "device copy",
                  STK_CL_QUEUED(d, d->cl->EnqueueCopyBuffer(
                                       d->queue, stk_cl_mem_of(from.block), stk_cl_mem_of(to.block),
                                       (size_t)from.offset, (size_t)to.offset, bytes, 0, NULL,
                                       stk_opencl_watched(d, &seen))),
                  seen, err);
}

static stk_status queue_wait(stk_device *device, stk_error *err)
{
    stk_opencl *d = stk_opencl_of(device);
    cl_int code = STK_CL_QUEUED(d, d->cl->Finish(d->queue));
    stk_opencl_harvest(d);
    return done(d, "waiting for the queue", code, err);
}

/* ---- events ---------------------------------------------------------------------------------------------- */

/* What an stk_event is here. */
typedef struct moment {
    cl_event event; /* the last time it was recorded; NULL: never */
} moment;
static moment *moment_of(stk_event *e) { return (moment *)(void *)e; }

static stk_event *event_new(stk_device *device)
{
    (void)device;
    return (stk_event *)stk_calloc(1, sizeof(moment));
}

static void event_free(stk_device *device, stk_event *e)
{
    if (e && moment_of(e)->event)
        (void)stk_opencl_of(device)->cl->ReleaseEvent(moment_of(e)->event);
    stk_free(e);
}

static void renew(stk_opencl *d, stk_event *e, cl_event now)
{
    if (moment_of(e)->event) (void)d->cl->ReleaseEvent(moment_of(e)->event);
    moment_of(e)->event = now;
}

static stk_status queue_record(stk_device *device, stk_event *e, stk_error *err)
{
    stk_opencl *d = stk_opencl_of(device);
    cl_event now = NULL;
    STK_TRY(done(d, "a mark",
                 STK_CL_QUEUED(d, d->cl->EnqueueMarkerWithWaitList(d->queue, 0, NULL, &now)), err));
    renew(d, e, now);
    return done(d, "a flush", STK_CL_QUEUED(d, d->cl->Flush(d->queue)), err);
}

static bool is_over(stk_opencl *d, cl_event e)
{
    cl_int state = 1;
    return d->cl->GetEventInfo(e, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL) ==
               CL_SUCCESS &&
           state == CL_COMPLETE;
}

static stk_status queue_await(stk_device *device, stk_event *e, stk_error *err)
{
    stk_opencl *d = stk_opencl_of(device);
    if (!moment_of(e)->event || is_over(d, moment_of(e)->event)) return STK_OK;
    return done(d, "a barrier",
                STK_CL_QUEUED(
                    d, d->cl->EnqueueBarrierWithWaitList(d->queue, 1, &moment_of(e)->event, NULL)),
                err);
}

static stk_status queue_join(stk_device *device, stk_event *e, stk_error *err)
{
    stk_opencl *d = stk_opencl_of(device);
    if (!moment_of(e)->event) return STK_OK;
    return done(d, "waiting for a transfer", d->cl->WaitForEvents(1, &moment_of(e)->event), err);
}

static stk_status queue_send(stk_device *device, stk_address to, const void *from, size_t bytes,
                             stk_event *after, stk_event *sent, stk_error *err)
{
    stk_opencl *d = stk_opencl_of(device);
    cl_event now = NULL;
    cl_uint waits = after && moment_of(after)->event ? 1 : 0;
    const cl_event *list = waits ? &moment_of(after)->event : NULL;
    pthread_rwlock_rdlock(&d->queues);
    cl_int code = bytes
                      ? d->cl->EnqueueWriteBuffer(d->transfers, stk_cl_mem_of(to.block), 0,
                                                  (size_t)to.offset, bytes, from, waits, list, &now)
                      : d->cl->EnqueueMarkerWithWaitList(d->transfers, waits, list, &now);
    pthread_rwlock_unlock(&d->queues);
    STK_TRY(done(d, "a transfer", code, err));
    if (bytes && stk_opencl_watched(d, &now) && d->cl->RetainEvent(now) == CL_SUCCESS)
        stk_opencl_note(d, STK_CL_SENDS, now, "device upload", 0);
    if (sent)
        renew(d, sent, now);
    else
        (void)d->cl->ReleaseEvent(now);
    return done(d, "a flush", STK_CL_QUEUED(d, d->cl->Flush(d->transfers)), err);
}

const stk_queue_vt stk_opencl_queue = {.set = queue_set,
                                       .get = queue_get,
                                       .wait = queue_wait,
                                       .set_later = queue_set_later,
                                       .get_later = queue_get_later,
                                       .copy = queue_copy,
                                       .send = queue_send,
                                       .event_new = event_new,
                                       .event_free = event_free,
                                       .record = queue_record,
                                       .await = queue_await,
                                       .join = queue_join};
