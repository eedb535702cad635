/* arrange.c - the CPU's way with a plan, in order: an implementation for every task, regions, and a report of both. */
#include "device/cpu/plan/arrange.h"

#include "base/trace.h"

stk_status stk_cpu_arrange(stk_device *d, stk_plan *p, const stk_arrange_options *o, stk_error *err)
{
    stk_device_report report;
    d->vt->describe(d, &report);
    stk_election e = {.cpu = (const stk_cpu *)d,
                      .fork_join_ns = report.fork_join_ns,
                      .deterministic = o->deterministic,
                      .ref = o->ref,
                      .no_group = o->no_group,
                      .largest = o->largest,
                      .kernels = o->kernels};
    e.threads = o->threads > 0 && o->threads < report.threads ? o->threads : report.threads;
    uint64_t trace = stk_trace_start();
    stk_status status = stk_elect(p, &e, report.detail, err);
    stk_trace_span(trace, "kernel election", 0);
    STK_TRY(status);
    stk_plan_groups(p, &e);
    p->election_ms = e.spent_ms;
    return STK_OK;
}

void stk_cpu_report(const stk_plan *p, int64_t task, stk_task_report *out)
{
    const stk_cut *c = stk_cut_of(&p->tasks[task]);
    *out = (stk_task_report){.impl = c->impl ? c->impl->name : "-",
                             .units = c->units,
                             .parts = c->parts,
                             .threads = c->threads,
                             .follows = c->follows};
}
