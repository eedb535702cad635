/* An island at run time: down, run, up. The device's queue is in order, so what comes down is complete, and what goes up is there
 * before the next launch. */
#include "graph/run/island.h"

#include "base/clock.h"
#include "base/trace.h"

#include <string.h>

struct stk_crossing {
    stk_device *device; /* not ours: the program around keeps it */
    stk_program *body;
    char *memory; /* of the device's fast kind: inputs, then outputs */
    int64_t bytes;
    int64_t *at;   /* of each in memory */
    int64_t least; /* ns: what the body took when nobody disturbed it; 0: it has not run */
};

static int64_t bytes_of(const stk_program *b, int32_t i)
{
    return stk_type_bytes(i < b->nfeeds ? &b->feeds[i].type : &b->fetches[i - b->nfeeds].type);
}

static stk_status make_room(stk_crossing *c, stk_error *err)
{
    stk_program *b = c->body;
    int32_t n = b->nfeeds + b->nfetches;
    c->at = stk_calloc((size_t)n + 1, sizeof *c->at);
    if (!c->at) return stk_fail_memory(err, "an island", (size_t)n * sizeof *c->at);
    for (int32_t i = 0; i < n; i++) {
        c->at[i] = c->bytes;
        c->bytes += stk_round_up(stk_max_i64(bytes_of(b, i), 1), STK_ALIGN);
    }
    c->memory = c->device->vt->memory.host_alloc(c->device, (size_t)c->bytes + 1);
    if (!c->memory) return stk_fail_memory(err, "an island", (size_t)c->bytes);
    for (int32_t i = 0; i < n; i++) b->slots[i] = stk_address_host(c->memory + c->at[i]);
    for (int32_t i = 0; i < b->nfeeds; i++) b->feeds[i].fed = true;
    return STK_OK;
}

stk_status stk_crossing_new(stk_device *device, const stk_graph *body,
                            const stk_program_options *options, stk_crossing **out, stk_error *err)
{
    stk_crossing *c = stk_calloc(1, sizeof *c);
    if (!c) return stk_fail_memory(err, "an island", sizeof *c);
    stk_program_options inner = *options;
    c->device = device;
    inner.device = NULL;
    inner.store = NULL;
    stk_status status = stk_device_open("cpu:0", 0, &inner.device, err);
    if (status == STK_OK)
        status = stk_program_compile(body, &inner, STK_COMPILE_OUTSIDE | STK_COMPILE_AS_IT_IS,
                                     &c->body, err);
    stk_device_release(inner.device);
    if (status == STK_OK) status = make_room(c, err);
    if (status == STK_OK)
        *out = c;
    else
        stk_crossing_release(c);
    return status;
}

void stk_crossing_release(stk_crossing *c)
{
    if (!c) return;
    if (c->memory) (void)!c->device->vt->queue.wait(c->device, NULL); /* what goes up from there */
    stk_program_release(c->body);
    if (c->memory) c->device->vt->memory.host_free(c->device, c->memory, (size_t)c->bytes + 1);
    stk_free(c->at);
    stk_free(c);
}

double stk_crossing_seconds(const stk_crossing *c) { return (double)c->least * 1e-9; }

const stk_program *stk_crossing_body(const stk_crossing *c) { return c->body; }

/* Results that the body does not compute itself: constants, inputs passed through. */
static stk_status copy_passed(stk_crossing *c, int32_t o, stk_error *err)
{
    stk_program *b = c->body;
    stk_address to = b->slots[b->nfeeds + o], from = stk_program_address(b, &b->fetches[o].link);
    if (stk_address_equal(to, from)) return STK_OK;
    return b->device->vt->queue.copy(b->device, to, from,
                                     (size_t)stk_type_bytes(&b->fetches[o].type), err);
}

stk_status stk_crossing_run(stk_crossing *c, const stk_address *arg, stk_error *err)
{
    const stk_queue_vt *queue = &c->device->vt->queue;
    stk_program *b = c->body;
    uint64_t start = stk_trace_start();
    for (int32_t i = 0; i < b->nfeeds; i++) /* all of them travel before anybody waits */
        STK_TRY(
            queue->get_later(c->device, c->memory + c->at[i], arg[i], (size_t)bytes_of(b, i), err));
    STK_TRY(queue->wait(c->device, err));
    int64_t began = stk_now_ns();
    STK_TRY(stk_program_run(b, 1, err));
    int64_t took = stk_now_ns() - began + 1;
    if (!c->least || took < c->least) c->least = took;
    for (int32_t o = 0; o < b->nfetches; o++) {
        int32_t i = b->nfeeds + o;
        STK_TRY(copy_passed(c, o, err));
        STK_TRY(
            queue->set_later(c->device, arg[i], c->memory + c->at[i], (size_t)bytes_of(b, i), err));
    }
    stk_trace_span(start, "island", b->serial);
    return STK_OK; /* the next time down waits before the memory is written again */
}
