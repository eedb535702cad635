// What the host pays for a launch: queueing one empty-handed step of many small kernels, against the bare call of the interface.
//
//     bench_launch [opencl:0]
//
// A chain of 64 small products is queued again and again without waiting. The time until the call returns, per kernel, is what a run costs the
// host; the floor is clEnqueueNDRangeKernel alone, called as often with one of its kernels. The difference is ours.
#include "device/opencl/opencl.h"
#include "graph/run/program.h"
#include "stoker/stoker.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

enum { KERNELS = 64, RUNS = 16, ROUNDS = 40 };

static void fail(const stk_error *err)
{
    fprintf(stderr, "%s\n", err->message);
    exit(1);
}

static stk_program *chain(stk_device *d)
{
    stk_graph *g = NULL;
    stk_program *p = NULL;
    stk_error err;
    stk_program_options o = {.device = d};
    if (stk_graph_new(&g, &err)) fail(&err);
    stk_val x = stk_g_variable(g, "x", STK_F32, 2, (int64_t[]){4, 4});
    stk_val w = stk_g_variable(g, "w", STK_F32, 2, (int64_t[]){4, 4});
    for (int i = 0; i < KERNELS; i++) x = stk_g_matmul(g, x, w);
    stk_g_output(g, "y", x);
    if (stk_program_new(g, &o, &p, &err)) fail(&err);
    stk_graph_release(g);
    return p;
}

/* Both ways by turns, the least of each: nanoseconds per launch until the host has its hands free. */
int main(int argc, char **argv)
{
    stk_error err;
    stk_device *d = NULL;
    if (stk_device_open(argc > 1 ? argv[1] : "opencl:0", 0, &d, &err)) fail(&err);
    stk_program *p = chain(d);
    stk_opencl *device = stk_opencl_of(d);
    const stk_cl_sequence *s = (const stk_cl_sequence *)p->sequence;
    double ours = 1e30, bare = 1e30;
    if (stk_program_run(p, 4, &err) || d->vt->queue.wait(d, &err)) fail(&err);
    for (int r = 0; r < ROUNDS; r++) {
        int64_t start = stk_now_ns();
        if (stk_program_run(p, RUNS, &err)) fail(&err);
        double ns = (double)(stk_now_ns() - start) / (double)(RUNS * s->nsteps);
        if (ns < ours) ours = ns;
        if (d->vt->queue.wait(d, &err)) fail(&err);
        start = stk_now_ns();
        for (int k = 0; k < RUNS; k++) {
            for (int64_t i = 0; i < s->nsteps; i++)
                if (device->cl->EnqueueNDRangeKernel(device->queue, (cl_kernel)s->steps[i].kernel,
                                                     3, NULL, s->steps[i].global, s->steps[i].local,
                                                     0, NULL, NULL) != CL_SUCCESS)
                    return 1;
            if (device->cl->Flush(device->queue) != CL_SUCCESS) return 1;
        }
        ns = (double)(stk_now_ns() - start) / (double)(RUNS * s->nsteps);
        if (ns < bare) bare = ns;
        if (d->vt->queue.wait(d, &err)) fail(&err);
    }
    printf("%d launches a run: %.2f us of the host each, %.2f of them the interface: %.2f us are "
           "ours\n",
           (int)s->nsteps, ours * 1e-3, bare * 1e-3, (ours - bare) * 1e-3);
    stk_program_release(p);
    stk_device_release(d);
    return 0;
}
