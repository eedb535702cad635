/* feed.c - inputs. Where the device shares the host's memory a feed is a handle on the tensor. Elsewhere it is sent up,
 * into one of two slots by turns, so that the next batch travels while the device still computes on this one:
 *
 *     transfers    send 0 | send 1 |        send 0 | ...        `sent`: the run waits for its slot
 *     queue               run 0    | run 1         | ...        `used`: the next send into a slot waits for the run on it
 */
#include "graph/run/program.h"

#include "base/trace.h"

#include <string.h>

/* ---- a device of its own memory ------------------------------------------------------------------------ */

static void release_upload(stk_device *d, stk_upload *u)
{
    for (int i = 0; u && i < 2; i++) {
        (void)!(u->sent[i] ? d->vt->queue.join(d, u->sent[i], NULL) : STK_OK);
        if (u->used[i]) d->vt->queue.event_free(d, u->used[i]);
        if (u->sent[i]) d->vt->queue.event_free(d, u->sent[i]);
        if (u->block[i]) d->vt->memory.free(u->block[i]);
        if (u->staging[i]) d->vt->memory.host_free(d, u->staging[i], u->bytes);
        stk_tensor_release(u->held[i]);
    }
    stk_free(u);
}

static stk_upload *new_upload(stk_device *d, size_t bytes)
{
    stk_upload *u = stk_calloc(1, sizeof *u);
    bool good = u != NULL;
    if (u) u->bytes = bytes + 1;
    for (int i = 0; good && i < 2; i++) {
        u->block[i] = d->vt->memory.alloc(d, u->bytes);
        u->sent[i] = d->vt->queue.event_new(d);
        u->used[i] = d->vt->queue.event_new(d);
        good = u->block[i] && u->sent[i] && u->used[i];
    }
    if (good) return u;
    release_upload(d, u);
    return NULL;
}

/* The tensor is copied into memory that the device reads from, so that the caller may change it as soon as we return. One
 * that lies in such memory already (stk_device_host_memory) is held until it has arrived. */
static const void *stage(stk_device *d, stk_upload *u, stk_tensor *dense, size_t bytes)
{
    stk_tensor_release(u->held[u->turn]);
    u->held[u->turn] = NULL;
    if (dense->buffer->device == d && !dense->buffer->block) {
        u->held[u->turn] = stk_tensor_retain(dense);
        return dense->data;
    }
    for (int i = 0; i < 2; i++) /* both at once: later steps allocate nothing */
        if (!u->staging[i]) u->staging[i] = d->vt->memory.host_alloc(d, u->bytes);
    if (u->staging[u->turn] && bytes) memcpy(u->staging[u->turn], dense->data, bytes);
    return u->staging[u->turn];
}

static stk_status send(stk_program *p, int32_t i, stk_tensor *dense, stk_error *err)
{
    stk_feed *f = &p->feeds[i];
    size_t bytes = (size_t)stk_type_bytes(&f->type);
    const stk_queue_vt *queue = &p->device->vt->queue;
    if (f->uniform_at >= 0) {
        memcpy(p->uniforms + f->uniform_at, dense->data, bytes);
        return STK_OK;
    }
    if (!f->upload) f->upload = new_upload(p->device, bytes);
    stk_upload *u = f->upload;
    if (!u) return stk_fail_memory(err, f->name, bytes);
    if (u->taken) u->turn ^= 1;
    u->taken = false;
    uint64_t start = stk_trace_start();
    STK_TRY(queue->join(p->device, u->sent[u->turn], err)); /* what was staged two feeds ago */
    stk_trace_span(start, "program wait", p->serial);
    const void *from = stage(p->device, u, dense, bytes);
    if (!from) return stk_fail_memory(err, f->name, bytes);
    p->slots[i] = stk_address_of(u->block[u->turn], 0);
    return queue->send(p->device, p->slots[i], from, bytes, u->used[u->turn], u->sent[u->turn],
                       err);
}

stk_status stk_feeds_await(stk_program *p, stk_error *err)
{
    for (int32_t i = 0; i < p->nfeeds; i++) {
        stk_upload *u = p->feeds[i].upload;
        if (u) STK_TRY(p->device->vt->queue.await(p->device, u->sent[u->turn], err));
    }
    return STK_OK;
}

stk_status stk_feeds_used(stk_program *p, stk_error *err)
{
    for (int32_t i = 0; i < p->nfeeds; i++) {
        stk_upload *u = p->feeds[i].upload;
        if (!u) continue;
        u->taken = true;
        STK_TRY(p->device->vt->queue.record(p->device, u->used[u->turn], err));
    }
    return STK_OK;
}

/* ---- feeding ------------------------------------------------------------------------------------------- */

void stk_feeds_release(stk_program *p)
{
    for (int32_t i = 0; i < p->nfeeds; i++) {
        stk_tensor_release(p->feeds[i].tensor);
        release_upload(p->device, p->feeds[i].upload);
    }
}

static stk_status check_feed(const stk_feed *f, const stk_tensor *t, stk_error *err)
{
    bool fits = t->rank == f->type.shape.rank;
    for (int32_t i = 0; fits && i < t->rank; i++) fits = t->shape[i] == f->type.shape.dim[i];
    if (fits && t->dtype != STK_STRING) return STK_OK;
    char got[160];
    return stk_fail(err, fits ? STK_ERR_DTYPE : STK_ERR_SHAPE,
                    "input '%s' is %s, got %s; feed that shape, or compile a program for this one",
                    f->name, STK_TYPE_TEXT(&f->type), stk_tensor_describe(t, got, sizeof got));
}

/* Another dtype or strides are straightened out first. */
stk_status stk_feed_slot(stk_program *p, int32_t i, stk_tensor *t, stk_error *err)
{
    stk_feed *f = &p->feeds[i];
    stk_tensor *ready = NULL;
    STK_TRY(check_feed(f, t, err));
    if (t->dtype == f->type.dtype)
        STK_TRY(stk_tensor_dense(t, &ready, err));
    else
        STK_TRY(stk_tensor_cast(t, f->type.dtype, &ready, err));
    f->fed = true;
    if (!stk_device_shares(p->device)) {
        stk_status status = send(p, i, ready, err);
        f->fed = status == STK_OK; /* what did not get there cannot be computed with */
        stk_tensor_release(ready);
        return status;
    }
    stk_tensor_release(f->tensor);
    f->tensor = ready;
    p->slots[i] = stk_address_host(ready->data);
    return STK_OK;
}

stk_status stk_program_feed(stk_program *p, const char *input, stk_tensor *t, stk_error *err)
{
    if (!p || !input || !t)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_program_feed: program, input and tensor must be given");
    uint64_t start = stk_trace_start(); /* finding and checking are part of it */
    int32_t i = 0;
    while (i < p->nfeeds && strcmp(p->feeds[i].name, input)) i++;
    if (i == p->nfeeds)
        return stk_fail(err, STK_ERR_ARGUMENT, "no input '%s'; the first of %d is '%s'", input,
                        p->nfeeds, p->nfeeds ? p->feeds[0].name : "");
    stk_status status = stk_feed_slot(p, i, t, err);
    stk_trace_span(start, "program feed", p->serial);
    return status;
}
