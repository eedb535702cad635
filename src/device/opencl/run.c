/* run.c - a loaded plan as OpenCL runs it: kernels whose arguments are set, one after the other. The host waits for nothing. */
#include "device/opencl/opencl.h"

#include "base/trace.h"

/* Filling copies its pattern at once, so that the numbers need not stay where they are. */
static cl_int write_uniforms(stk_opencl *d, const stk_cl_sequence *s, const stk_sequence_run *run)
{
    enum { WHOLE = 128 };
    const char *from = run->uniforms;
    size_t left = run->uniform_bytes, at = (size_t)s->uniforms.offset;
    while (left > 0) {
        size_t piece = WHOLE;
        while (piece > left) piece /= 2;
        while (at % piece) piece /= 2;
        cl_int code = d->cl->EnqueueFillBuffer(d->queue, stk_cl_mem_of(s->uniforms.block), from,
                                               piece, at, piece, 0, NULL, NULL);
        if (code != CL_SUCCESS) return code;
        from += piece;
        at += piece;
        left -= piece;
    }
    return CL_SUCCESS;
}

/* Every few runs a mark; the host waits for one that is some marks back, and sees there whether all went well. */
static cl_int keep_near(stk_opencl *d)
{
    cl_int code = __atomic_load_n(&d->lost, __ATOMIC_RELAXED), state = CL_COMPLETE;
    cl_event old = NULL;
    pthread_mutex_lock(&d->base.lock);
    if (code == CL_SUCCESS && ++d->runs % STK_CL_MARK_RUNS == 0) {
        cl_event *mark = &d->mark[d->runs / STK_CL_MARK_RUNS % STK_CL_AHEAD];
        old = *mark;
        *mark = NULL;
        code = STK_CL_QUEUED(d, d->cl->EnqueueMarkerWithWaitList(d->queue, 0, NULL, mark));
    }
    pthread_mutex_unlock(&d->base.lock);
    if (old) {
        cl_int waited = d->cl->WaitForEvents(1, &old);
        (void)d->cl->GetEventInfo(old, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state,
                                  NULL);
        (void)d->cl->ReleaseEvent(old);
        stk_opencl_harvest(d);
        if (state < 0) waited = state;
        if (waited != CL_SUCCESS) __atomic_store_n(&d->lost, waited, __ATOMIC_RELAXED);
        if (code == CL_SUCCESS) code = waited;
    }
    return code;
}

static stk_status queue_steps(stk_opencl *d, stk_cl_sequence *s, const stk_sequence_run *run,
                              stk_error *err)
{
    cl_int code = CL_SUCCESS;
    if (run->first == 0 && s->uniforms.block) code = write_uniforms(d, s, run);
    if (code != CL_SUCCESS) return stk_opencl_fail(d, "the numbers of a run", code, err);
    for (int64_t i = s->first[run->first]; i < s->first[run->first + run->count]; i++) {
        stk_cl_step *step = &s->steps[i];
        cl_event seen = NULL;
        if (step->nslots) STK_TRY(stk_cl_bind(&d->base, step, run->slots, err));
        code = d->cl->EnqueueNDRangeKernel(d->queue, (cl_kernel)step->kernel, 3, NULL, step->global,
                                           step->local, 0, NULL, stk_opencl_watched(d, &seen));
        if (code != CL_SUCCESS) return stk_opencl_fail(d, "a launch", code, err);
        stk_opencl_note(d, STK_CL_KERNELS, seen, step->label, step->span);
    }
    code = d->cl->Flush(d->queue);
    return code == CL_SUCCESS ? STK_OK : stk_opencl_fail(d, "a run", code, err);
}

stk_status stk_opencl_run(stk_sequence *loaded, const stk_sequence_run *run, stk_error *err)
{
    stk_cl_sequence *s = (stk_cl_sequence *)loaded;
    stk_opencl *d = stk_opencl_of(s->head.device);
    stk_opencl_watch_start(d);
    pthread_rwlock_rdlock(&d->queues);
    stk_status status = queue_steps(d, s, run, err);
    pthread_rwlock_unlock(&d->queues);
    if (status != STK_OK) return status;
    cl_int code = keep_near(d);
    return code == CL_SUCCESS ? STK_OK : stk_opencl_fail(d, "a run", code, err);
}
