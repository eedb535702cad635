/* convs.c - the convolutions of a step, one by one: forward, gradient of the pictures and gradient of the weights, whichever
 * kernel computes them (1x1 convolutions are products), beside the multiply-adds that the threads could do in that time. */
#include "watch/record.h"

#include <stdlib.h>
#include <string.h>

static bool is_conv(const char *op)
{
    return !strcmp(op, "conv") || !strcmp(op, "conv_bwd_data") || !strcmp(op, "conv_bwd_weight");
}

static int slower_first(const void *a, const void *b)
{
    const stk_conv_cost *x = a, *y = b;
    return x->seconds < y->seconds ? 1 : x->seconds > y->seconds ? -1 : 0;
}

/* Threads that computed anything: what one of them leaves undone is not hidden by the others' idleness. */
static int threads_of(const stk_tally *t, int64_t n)
{
    uint64_t seen = 0;
    for (int64_t i = 0; i < n; i++) seen |= t[i].threads;
    return seen ? __builtin_popcountll(seen) : 1;
}

static double peak_of(const stk_roofline *roof, int threads)
{
    return 1e9 * (threads < roof->threads ? threads * roof->gflops[0] : roof->gflops[1]);
}

double stk_report_conv_share(const stk_report *r)
{
    double seconds = 0, reached = 0;
    for (int64_t i = 0; i < r->nconvs; i++) {
        seconds += r->convs[i].seconds;
        reached += r->convs[i].share * r->convs[i].seconds;
    }
    return seconds > 0 ? reached / seconds : 0;
}

stk_status stk_record_convs(const stk_known_launches *known, const stk_tally *t, int64_t n,
                            stk_report *r, stk_error *err)
{
    const int threads = threads_of(t, n);
    const double peak = peak_of(&r->roof, threads);
    r->convs = stk_arena_array(&r->arena, (size_t)n + 1, sizeof *r->convs);
    if (!r->convs) return stk_fail_memory(err, "convolutions", 0);
    for (int64_t i = 0; i < n; i++) {
        const stk_launch_facts *f = stk_known_launch(known, t[i].tag);
        if (!f || f->remote || !t[i].calls || !is_conv(f->label)) continue;
        const double even = t[i].thread_seconds / threads, own = t[i].step_seconds;
        stk_conv_cost *row = &r->convs[r->nconvs++];
        *row = (stk_conv_cost){.calls = t[i].calls,
                               .seconds = own > even ? own : even,
                               .flops = f->flops * (double)t[i].calls,
                               .kernel = f->kernel,
                               .impl = f->impl};
        row->share = peak > 0 && row->seconds > 0 ? row->flops / (row->seconds * peak) : 0;
        row->place = stk_arena_strdup(&r->arena, f->place);
        row->op = stk_arena_strdup(&r->arena, f->label);
        if (!row->place || !row->op) return stk_fail_memory(err, "convolutions", 0);
    }
    if (r->nconvs) qsort(r->convs, (size_t)r->nconvs, sizeof *r->convs, slower_first);
    return STK_OK;
}
