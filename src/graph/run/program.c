/* program.c - running: feed, run, read. Nothing here allocates once the feeds are bound. */
#include "graph/run/control.h"
#include "graph/run/program.h"

#include "base/trace.h"

#include <string.h>

void stk_program_release(stk_program *p)
{
    if (!p) return;
    stk_program_delist(p);
    for (int64_t i = 0; i < p->nlaunches; i++) {
        const stk_impl *impl = p->launches[i].impl;
        if (impl && impl->discard) impl->discard(&p->launches[i]);
        if (p->control) stk_control_release(p->device, p->control[i]);
    }
    for (int32_t i = 0; i < p->nfeeds; i++) {
        stk_tensor_release(p->feeds[i].tensor);
        if (p->feeds[i].copy)
            p->device->vt->free(p->device, p->feeds[i].copy,
                                (size_t)stk_type_bytes(&p->feeds[i].type) + 1);
    }
    if (p->memory) p->device->vt->free(p->device, p->memory, (size_t)p->memory_bytes + STK_ALIGN);
    if (p->constants) p->device->vt->free(p->device, p->constants, (size_t)p->constant_bytes);
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

void stk_program_describe(const stk_program *p, stk_program_stats *out)
{
    if (p && out) *out = p->stats;
}

/* ---- feeding ------------------------------------------------------------------------------------------ */

static void bind(stk_feed *f, void *address)
{
    f->address = address;
    for (int32_t i = 0; i < f->npatches; i++)
        *f->patches[i].where = (char *)address + f->patches[i].offset;
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

/* Through memory of our own: another dtype, strides, or a device that does not see host memory. */
static stk_status feed_copy(stk_program *p, stk_feed *f, stk_tensor *t, stk_error *err)
{
    size_t bytes = (size_t)stk_type_bytes(&f->type);
    stk_tensor *ready = NULL;
    if (!f->copy) f->copy = p->device->vt->alloc(p->device, bytes + 1);
    if (!f->copy) return stk_fail_memory(err, f->name, bytes);
    if (t->dtype == f->type.dtype)
        STK_TRY(stk_tensor_dense(t, &ready, err));
    else
        STK_TRY(stk_tensor_cast(t, f->type.dtype, &ready, err));
    stk_status status = p->device->vt->upload(p->device, f->copy, ready->data, bytes, err);
    stk_tensor_release(ready);
    if (status == STK_OK) bind(f, f->copy);
    return status;
}

static stk_feed *find_feed(stk_program *p, const char *name)
{
    for (int32_t i = 0; i < p->nfeeds; i++)
        if (!strcmp(p->feeds[i].name, name)) return &p->feeds[i];
    return NULL;
}

stk_status stk_program_feed(stk_program *p, const char *input, stk_tensor *t, stk_error *err)
{
    if (!p || !input || !t)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_program_feed: program, input and tensor must be given");
    uint64_t start = stk_trace_start(); /* finding and checking are part of it */
    stk_feed *f = find_feed(p, input);
    if (!f)
        return stk_fail(err, STK_ERR_ARGUMENT, "no input '%s'; the first of %d is '%s'", input,
                        p->nfeeds, p->nfeeds ? p->feeds[0].name : "");
    STK_TRY(check_feed(f, t, err));
    stk_status status = STK_OK;
    if (p->device->vt->shares_memory && t->dtype == f->type.dtype && stk_tensor_is_dense(t)) {
        stk_tensor *old = f->tensor;
        f->tensor = stk_tensor_retain(t);
        bind(f, t->data);
        stk_tensor_release(old);
    } else {
        status = feed_copy(p, f, t, err);
    }
    stk_trace_span(start, "program feed", p->serial);
    return status;
}

/* ---- running ---------------------------------------------------------------------------------------------- */

/* The launches between two places of control flow go to the device in one piece. */
stk_status stk_program_run_once(stk_program *p, int32_t threads, stk_error *err)
{
    const stk_device_vt *vt = p->device->vt;
    if (!p->control) return vt->run(p->device, p->launches, p->nlaunches, threads, err);
    int64_t at = 0;
    for (int64_t k = 0; k <= p->nlaunches; k++) {
        if (k < p->nlaunches && !p->control[k]) continue;
        if (k > at) STK_TRY(vt->run(p->device, p->launches + at, k - at, threads, err));
        if (k < p->nlaunches)
            STK_TRY(stk_control_run(p->device, p->control[k], p->launches[k].arg, err));
        at = k + 1;
    }
    return STK_OK;
}

stk_status stk_program_run(stk_program *p, int64_t times, stk_error *err)
{
    if (!p) return stk_fail(err, STK_ERR_ARGUMENT, "stk_program_run: the program is NULL");
    uint64_t start = stk_trace_start();
    for (int32_t i = 0; i < p->nfeeds; i++)
        if (!p->feeds[i].address)
            return stk_fail(err, STK_ERR_STATE,
                            "input '%s' was not fed; call stk_program_feed first",
                            p->feeds[i].name);
    const stk_device_vt *vt = p->device->vt;
    for (int64_t t = 0; t < times; t++) {
        if (vt->shares_memory)
            *(int64_t *)p->step_address = p->step;
        else
            STK_TRY(vt->upload(p->device, p->step_address, &p->step, sizeof p->step, err));
        if (p->trial.block && --p->trial.rest < 0)
            STK_TRY(stk_program_run_trial(p, err));
        else
            STK_TRY(stk_program_run_once(p, p->trial.threads, err));
        p->step++;
    }
    stk_trace_span(start, "program run", p->serial);
    return STK_OK;
}

stk_status stk_program_read(stk_program *p, const char *output, stk_tensor **copy, stk_error *err)
{
    if (!p || !output || !copy)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_program_read: program, output and copy must be given");
    for (int32_t i = 0; i < p->nfetches; i++) {
        const stk_fetch *f = &p->fetches[i];
        if (strcmp(f->name, output)) continue;
        const void *from = f->address;
        if (f->feed >= 0)
            from = p->feeds[f->feed].address ? (char *)p->feeds[f->feed].address + f->offset : NULL;
        if (!from)
            return stk_fail(err, STK_ERR_STATE, "output '%s' is an input that was not fed", output);
        stk_tensor *t = NULL;
        STK_TRY(stk_tensor_new(f->type.dtype, f->type.shape.rank, f->type.shape.dim, &t, err));
        uint64_t start = stk_trace_start();
        stk_status status = p->device->vt->wait(p->device, err);
        stk_trace_span(start, "program wait", p->serial);
        start = stk_trace_start();
        if (status == STK_OK)
            status = p->device->vt->download(p->device, t->data, from,
                                             (size_t)stk_type_bytes(&f->type), err);
        stk_trace_span(start, "program read", p->serial);
        if (status == STK_OK)
            *copy = t;
        else
            stk_tensor_release(t);
        return status;
    }
    return stk_fail(err, STK_ERR_ARGUMENT, "no output '%s'; the first of %d is '%s'", output,
                    p->nfetches, p->nfetches ? p->fetches[0].name : "");
}
