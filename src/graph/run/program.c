/* program.c - running and reading; feed.c is how data gets in. Nothing here allocates once the feeds are bound. */
#include "graph/ir/op.h"
#include "graph/run/control.h"
#include "graph/run/program.h"

#include "base/trace.h"

#include <string.h>

void stk_program_release(stk_program *p)
{
    if (!p) return;
    stk_program_delist(p);
    const stk_device_vt *vt = p->device ? p->device->vt : NULL;
    if (p->sequence) { /* nothing goes before the device is through with it */
        (void)!vt->queue.wait(p->device, NULL);
        vt->kernels.unload(p->sequence);
    }
    for (int64_t k = 0; p->control && k < p->plan.ntasks; k++)
        stk_control_release(p->device, p->control[k]);
    stk_feeds_release(p);
    for (int32_t i = 0; i < p->plan.narenas; i++)
        if (p->plan.memory[i]) vt->memory.free(p->plan.memory[i]);
    if (p->constants) vt->memory.free(p->constants);
    stk_free(p->islands.rows);
    stk_free(p->plan.tasks);
    stk_arena_release(&p->plan.arena);
    stk_store_release(p->store);
    stk_device_release(p->device);
    stk_graph_release(p->g);
    stk_free(p);
}

stk_store *stk_program_store(stk_program *p) { return p ? p->store : NULL; }
int64_t stk_program_step(const stk_program *p) { return p ? p->step : 0; }
void stk_program_set_step(stk_program *p, int64_t step)
{
    if (p) p->step = step;
}

stk_device *stk_program_device(const stk_program *p) { return p ? p->device : NULL; }

int32_t stk_program_islands(const stk_program *p, int32_t room, stk_island *out)
{
    int32_t n = 0;
    if (!p || (room > 0 && !out)) return 0;
    for (; n < p->islands.count; n++)
        if (n < room) out[n] = p->islands.rows[n];
    for (int64_t k = 0; p->control && k < p->plan.ntasks; k++)
        for (int b = 0; p->control[k] && b < 2; b++) {
            int32_t left = room > n ? room - n : 0;
            n += stk_program_islands(p->control[k]->body[b], left, left ? out + n : NULL);
        }
    return n;
}

void stk_program_describe(const stk_program *p, stk_program_stats *out)
{
    if (p && out) *out = p->stats;
}

/* ---- running ---------------------------------------------------------------------------------------------- */

/* The tasks between two places of control flow go to the device in one piece. */
static stk_status run_once(stk_program *p, stk_error *err)
{
    const stk_queue_vt *queue = &p->device->vt->queue;
    stk_sequence_run run = {.count = p->plan.ntasks,
                            .slots = p->slots,
                            .uniforms = p->uniforms,
                            .uniform_bytes = (size_t)p->uniform_bytes};
    if (!p->control) return queue->run(p->sequence, &run, err);
    for (int64_t k = 0; k <= p->plan.ntasks; k++) {
        bool end = k == p->plan.ntasks;
        if (!end && !p->control[k]) continue;
        run.count = k - run.first;
        if (run.count > 0 || k == 0) /* control flow at the start: the uniforms go first */
            STK_TRY(queue->run(p->sequence, &run, err));
        if (!end) STK_TRY(stk_control_run(p, p->control[k], p->plan.tasks[k].link, err));
        run.first = k + 1;
    }
    return STK_OK;
}

stk_status stk_program_run(stk_program *p, int64_t times, stk_error *err)
{
    if (!p) return stk_fail(err, STK_ERR_ARGUMENT, "stk_program_run: the program is NULL");
    uint64_t start = stk_trace_start();
    for (int32_t i = 0; i < p->nfeeds; i++)
        if (!p->feeds[i].fed)
            return stk_fail(err, STK_ERR_STATE,
                            "input '%s' was not fed; call stk_program_feed first",
                            p->feeds[i].name);
    bool sent = !stk_device_shares(p->device);
    if (p->clock != stk_store_clock(p->store))
        STK_TRY(stk_store_sync(p->store, p->uses, p->nuses, &p->clock, err));
    if (sent) STK_TRY(stk_feeds_await(p, err));
    for (int64_t t = 0; t < times; t++) {
        memcpy(p->uniforms, &p->step, sizeof p->step);
        STK_TRY(run_once(p, err));
        STK_TRY(stk_host_failure(err));
        p->step++;
    }
    if (sent) STK_TRY(stk_feeds_used(p, err));
    if (stk_store_lends(p->store)) STK_TRY(stk_store_show(p->store, p->uses, p->nuses, err));
    stk_trace_span(start, "program run", p->serial);
    if (!sent || !stk_trace_is_sample()) return STK_OK;
    start = stk_trace_start();
    stk_status status = p->device->vt->queue.wait(p->device, err);
    stk_trace_span(start, "program wait", p->serial);
    return status;
}

/* ---- reading ------------------------------------------------------------------------------------------------ */

stk_status stk_program_fetch(stk_program *p, int32_t i, stk_tensor **copy, stk_error *err)
{
    const stk_fetch *f = &p->fetches[i];
    const stk_queue_vt *queue = &p->device->vt->queue;
    if (f->feed >= 0 && !p->feeds[f->feed].fed)
        return stk_fail(err, STK_ERR_STATE, "output '%s' is an input that was not fed", f->name);
    stk_tensor *t = NULL;
    STK_TRY(stk_tensor_new(f->type.dtype, f->type.shape.rank, f->type.shape.dim, &t, err));
    uint64_t start = stk_trace_start();
    stk_status status = f->feed >= 0 ? stk_feeds_await(p, err) : STK_OK;
    if (status == STK_OK) status = queue->wait(p->device, err);
    stk_trace_span(start, "program wait", p->serial);
    start = stk_trace_start();
    if (status == STK_OK)
        status = queue->get(p->device, t->data, stk_program_address(p, &f->link),
                            (size_t)stk_type_bytes(&f->type), err);
    stk_trace_span(start, "program read", p->serial);
    if (status == STK_OK)
        *copy = t;
    else
        stk_tensor_release(t);
    return status;
}

stk_status stk_program_read(stk_program *p, const char *output, stk_tensor **copy, stk_error *err)
{
    if (!p || !output || !copy)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_program_read: program, output and copy must be given");
    for (int32_t i = 0; i < p->nfetches; i++)
        if (!strcmp(p->fetches[i].name, output)) return stk_program_fetch(p, i, copy, err);
    return stk_fail(err, STK_ERR_ARGUMENT, "no output '%s'; the first of %d is '%s'", output,
                    p->nfetches, p->nfetches ? p->fetches[0].name : "");
}
