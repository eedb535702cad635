/* Memory, copies and events. Two streams: one computes, one sends batches up meanwhile; events make one wait for the other. */
#include "device/cuda/cuda.h"

#include "base/memory.h"

#include <string.h>

/* ---- memory ---------------------------------------------------------------------------------------------- */

/* Waited for: whatever comes next, in either stream, must find zeros, not bring them. */
static int fill_zero(stk_cuda *d, CUdeviceptr at, size_t bytes)
{
    int code = d->cu->cuMemsetD32Async(at, 0, bytes / 4, d->transfers);
    return code == CUDA_SUCCESS ? d->cu->cuStreamSynchronize(d->transfers) : code;
}

static stk_block *block_alloc(stk_device *device, size_t bytes)
{
    stk_cuda *d = stk_cuda_of(device);
    CUdeviceptr at = 0;
    size_t rounded = (size_t)stk_round_up((int64_t)bytes + 1, STK_ALIGN);
    stk_cl_block *b = stk_malloc(sizeof *b);
    if (!b) return NULL;
    int code = stk_cuda_enter(d);
    if (code == CUDA_SUCCESS) code = d->cu->cuMemAlloc_v2(&at, rounded);
    if (code == CUDA_SUCCESS && (code = fill_zero(d, at, rounded)) != CUDA_SUCCESS)
        (void)d->cu->cuMemFree_v2(at);
    *b = (stk_cl_block){.head = {device, NULL, bytes}, .given = (uintptr_t)at};
    if (code == CUDA_SUCCESS) {
        stk_device_takes(device, (int64_t)bytes);
        return &b->head;
    }
    (void)!stk_cuda_done(d, "memory", code, NULL); /* (notes a card that is lost) */
    stk_free(b);
    return NULL;
}

/* What is queued may still use it. */
static void settle(stk_cuda *d)
{
    (void)stk_cuda_enter(d);
    (void)d->cu->cuStreamSynchronize(d->transfers);
    (void)d->cu->cuStreamSynchronize(d->queue);
}

static void block_free(stk_block *block)
{
    if (!block) return;
    stk_cuda *d = stk_cuda_of(block->device);
    stk_device_takes(block->device, -(int64_t)block->bytes);
    settle(d);
    (void)d->cu->cuMemFree_v2((CUdeviceptr)stk_cl_given(block));
    stk_free(block);
}

static void *host_alloc(stk_device *device, size_t bytes)
{
    stk_cuda *d = stk_cuda_of(device);
    void *memory = NULL;
    if (stk_cuda_enter(d) != CUDA_SUCCESS ||
        d->cu->cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE) != CUDA_SUCCESS)
        return NULL;
    return memset(memory, 0, bytes);
}

static void host_free(stk_device *device, void *memory, size_t bytes)
{
    stk_cuda *d = stk_cuda_of(device);
    (void)bytes;
    if (!memory) return;
    settle(d);
    (void)d->cu->cuMemFreeHost(memory);
}

const stk_memory_vt stk_cuda_memory = {
    .alloc = block_alloc, .free = block_free, .host_alloc = host_alloc, .host_free = host_free};

/* ---- copies ---------------------------------------------------------------------------------------------- */

static CUdeviceptr pointer_of(stk_address a)
{
    return (CUdeviceptr)stk_cl_given(a.block) + (CUdeviceptr)a.offset;
}

static stk_status queue_set_later(stk_device *device, stk_address to, const void *from,
                                  size_t bytes, stk_error *err)
{
    stk_cuda *d = stk_cuda_of(device);
    if (!bytes) return STK_OK;
    int code = stk_cuda_enter(d);
    stk_cuda_span span = stk_cuda_watch_begin(d, d->queue);
    if (code == CUDA_SUCCESS)
        code = d->cu->cuMemcpyHtoDAsync_v2(pointer_of(to), from, bytes, d->queue);
    stk_cuda_watch_end(d, &span, STK_CUDA_COPIES, "device upload", 0);
    return stk_cuda_done(d, "a write", code, err);
}

static stk_status queue_get_later(stk_device *device, void *to, stk_address from, size_t bytes,
                                  stk_error *err)
{
    stk_cuda *d = stk_cuda_of(device);
    if (!bytes) return STK_OK;
    int code = stk_cuda_enter(d);
    stk_cuda_span span = stk_cuda_watch_begin(d, d->queue);
    if (code == CUDA_SUCCESS)
        code = d->cu->cuMemcpyDtoHAsync_v2(to, pointer_of(from), bytes, d->queue);
    stk_cuda_watch_end(d, &span, STK_CUDA_COPIES, "device download", 0);
    return stk_cuda_done(d, "a read", code, err);
}

static stk_status queue_wait(stk_device *device, stk_error *err)
{
    stk_cuda *d = stk_cuda_of(device);
    int code = stk_cuda_enter(d);
    if (code == CUDA_SUCCESS) code = d->cu->cuStreamSynchronize(d->queue);
    stk_cuda_harvest(d);
    return stk_cuda_done(d, "waiting for the queue", code, err);
}

static stk_status queue_set(stk_device *device, stk_address to, const void *from, size_t bytes,
                            stk_error *err)
{
    STK_TRY(queue_set_later(device, to, from, bytes, err));
    return queue_wait(device, err);
}

static stk_status queue_get(stk_device *device, void *to, stk_address from, size_t bytes,
                            stk_error *err)
{
    STK_TRY(queue_get_later(device, to, from, bytes, err));
    return queue_wait(device, err);
}

static stk_status queue_copy(stk_device *device, stk_address to, stk_address from, size_t bytes,
                             stk_error *err)
{
    stk_cuda *d = stk_cuda_of(device);
    if (!bytes || stk_address_equal(to, from)) return STK_OK;
    int code = stk_cuda_enter(d);
    stk_cuda_span span = stk_cuda_watch_begin(d, d->queue);
    if (code == CUDA_SUCCESS)
        code = d->cu->cuMemcpyDtoDAsync_v2(pointer_of(to), pointer_of(from), bytes, d->queue);
    stk_cuda_watch_end(d, &span, STK_CUDA_COPIES, "device copy", 0);
    return stk_cuda_done(d, "a copy", code, err);
}

/* ---- events ---------------------------------------------------------------------------------------------- */

/* What an stk_event is here. A CUDA event may be recorded again; who waits, waits for the record before. */
typedef struct moment {
    CUevent event;
    bool recorded;
} moment;
static moment *moment_of(stk_event *e) { return (moment *)(void *)e; }

static stk_event *event_new(stk_device *device)
{
    stk_cuda *d = stk_cuda_of(device);
    moment *m = stk_calloc(1, sizeof *m);
    if (!m) return NULL;
    if (stk_cuda_enter(d) == CUDA_SUCCESS &&
        d->cu->cuEventCreate(&m->event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS)
        return (stk_event *)(void *)m;
    stk_free(m);
    return NULL;
}

static void event_free(stk_device *device, stk_event *e)
{
    stk_cuda *d = stk_cuda_of(device);
    if (!e) return;
    (void)stk_cuda_enter(d);
    (void)d->cu->cuEventDestroy_v2(moment_of(e)->event);
    stk_free(e);
}

static int record_in(stk_cuda *d, stk_event *e, CUstream stream)
{
    int code = d->cu->cuEventRecord(moment_of(e)->event, stream);
    moment_of(e)->recorded |= code == CUDA_SUCCESS;
    return code;
}

static stk_status queue_record(stk_device *device, stk_event *e, stk_error *err)
{
    stk_cuda *d = stk_cuda_of(device);
    int code = stk_cuda_enter(d);
    if (code == CUDA_SUCCESS) code = record_in(d, e, d->queue);
    return stk_cuda_done(d, "a mark", code, err);
}

static stk_status queue_await(stk_device *device, stk_event *e, stk_error *err)
{
    stk_cuda *d = stk_cuda_of(device);
    if (!moment_of(e)->recorded) return STK_OK;
    int code = stk_cuda_enter(d);
    if (code == CUDA_SUCCESS) code = d->cu->cuStreamWaitEvent(d->queue, moment_of(e)->event, 0);
    return stk_cuda_done(d, "a barrier", code, err);
}

static stk_status queue_join(stk_device *device, stk_event *e, stk_error *err)
{
    stk_cuda *d = stk_cuda_of(device);
    if (!moment_of(e)->recorded) return STK_OK;
    int code = stk_cuda_enter(d);
    if (code == CUDA_SUCCESS) code = d->cu->cuEventSynchronize(moment_of(e)->event);
    return stk_cuda_done(d, "waiting for a transfer", code, err);
}

static stk_status queue_send(stk_device *device, stk_address to, const void *from, size_t bytes,
                             stk_event *after, stk_event *sent, stk_error *err)
{
    stk_cuda *d = stk_cuda_of(device);
    int code = stk_cuda_enter(d);
    if (code == CUDA_SUCCESS && after && moment_of(after)->recorded)
        code = d->cu->cuStreamWaitEvent(d->transfers, moment_of(after)->event, 0);
    stk_cuda_span span = {0};
    if (bytes) span = stk_cuda_watch_begin(d, d->transfers);
    if (code == CUDA_SUCCESS && bytes)
        code = d->cu->cuMemcpyHtoDAsync_v2(pointer_of(to), from, bytes, d->transfers);
    stk_cuda_watch_end(d, &span, STK_CUDA_SENDS, "device upload", 0);
    if (code == CUDA_SUCCESS && sent) code = record_in(d, sent, d->transfers);
    return stk_cuda_done(d, "a transfer", code, err);
}

const stk_queue_vt stk_cuda_queue = {.set = queue_set,
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
