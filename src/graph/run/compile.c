/* compile.c - from a graph to a program: passes, plan, memory, launches. */
#include "graph/run/program.h"
#include "graph/ir/rewrite.h"

#include "base/clock.h"
#include "base/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

stk_program_options stk_program_options_defaults(void) { return (stk_program_options){0}; }

/* STOKER_DUMP=simplify,widen,launches or all: the graph after a pass, and the program, go to the file descriptor that tools watch. */
static bool is_wanted(const char *what)
{
    const char *wish = getenv("STOKER_DUMP");
    return wish && *wish && (!strcmp(wish, "all") || strstr(wish, what));
}

static void dump(const char *what, const char *text)
{
    const char *file = getenv("STOKER_DUMP_FILE");
    FILE *f = fopen(file && *file ? file : "/dev/stderr", "ae");
    if (!f) return;
    fprintf(f, "---- %s\n%s", what, text);
    fclose(f);
}

static void dump_after(const stk_graph *g, const char *pass)
{
    char *text = NULL;
    if (!is_wanted(pass) || stk_graph_dump(g, &text, NULL) != STK_OK) return;
    dump(pass, text);
    stk_text_free(text);
}

static void dump_launches(const stk_program *p)
{
    char *text = NULL;
    if (!is_wanted("launches") || stk_program_dump(p, &text, NULL) != STK_OK) return;
    dump("launches", text);
    stk_text_free(text);
}

typedef struct pass {
    const char *name;
    stk_status (*run)(const stk_graph *g, stk_graph **out, stk_error *err);
    /* Or with a look at what is in the store. */
    stk_status (*with_store)(const stk_graph *g, const stk_store *store, stk_graph **out,
                             stk_error *err);
    bool for_caches; /* it pays where values stay with the cores that made them */
} pass;

static bool may_halve(const void *store, const char *variable, int32_t axis)
{
    return stk_store_may_halve(store, variable, axis);
}

static bool may_shadow(const void *store, const char *variable, bool assigned)
{
    return stk_store_may_shadow(store, variable, assigned);
}

static stk_status halves_of(const stk_graph *g, const stk_store *store, stk_graph **out,
                            stk_error *err)
{
    return stk_pass_halves(g, may_halve, store, out, err);
}

static stk_status shadows_of(const stk_graph *g, const stk_store *store, stk_graph **out,
                             stk_error *err)
{
    return stk_pass_shadows(g, may_shadow, store, out, err);
}

static stk_status run_passes(const stk_graph *g, stk_device *device, const stk_store *store,
                             bool no_fuse, stk_graph **out, stk_error *err)
{
    static const pass passes[] = {{"pools", stk_pass_pools, NULL, false},
                                  {"simplify", stk_pass_simplify, NULL, false},
                                  {"simplify-again", stk_pass_simplify, NULL, false},
                                  {"pads", stk_pass_pads, NULL, false},
                                  {"halves", NULL, halves_of, true},
                                  {"summands", stk_pass_summands, NULL, true},
                                  {"contract", stk_pass_contract, NULL, false},
                                  {"sweep", stk_pass_simplify, NULL, false},
                                  {"again", stk_pass_again, NULL, true},
                                  {"shadows", NULL, shadows_of, true},
                                  {"recast", stk_pass_recast, NULL, false}};
    size_t count = no_fuse ? 3 : sizeof passes / sizeof *passes;
    stk_graph *now = NULL, *plain = NULL;
    if (!device->caps.complete) STK_TRY(stk_pass_expand(g, device, &plain, err));
    stk_status widened = stk_pass_widen(plain ? plain : g, device, &now, err);
    stk_graph_release(plain);
    if (widened != STK_OK) return widened;
    dump_after(now, "widen");
    for (size_t i = 0; i < count; i++) {
        stk_graph *next = NULL;
        if (passes[i].for_caches && device->caps.owners <= 0) continue;
        stk_status status = passes[i].run ? passes[i].run(now, &next, err)
                                          : passes[i].with_store(now, store, &next, err);
        if (status == STK_OK) status = stk_graph_verify(next, passes[i].name, err);
        stk_graph_release(now);
        now = next;
        if (status != STK_OK) {
            stk_graph_release(now);
            return status;
        }
        dump_after(now, passes[i].name);
    }
    *out = now;
    return STK_OK;
}

static stk_status prepare_graph(stk_program *p, const stk_graph *g, const stk_program_options *o,
                                int flags, stk_error *err)
{
    const stk_device_caps *caps = &p->device->caps;
    if (flags & STK_COMPILE_AS_IT_IS) return stk_rewrite_graph(g, NULL, NULL, &p->g, err);
    STK_TRY(run_passes(g, p->device, p->store, o->no_fuse, &p->g, err));
    if (caps->complete) return STK_OK;
    stk_graph *placed = NULL;
    STK_TRY(stk_pass_place(p->g, p->device, &p->islands, &placed, err));
    stk_graph_release(p->g);
    p->g = placed;
    dump_after(p->g, "place");
    return stk_graph_verify(p->g, "place", err);
}

static stk_status plan_program(stk_program *p, const stk_program_options *o, stk_error *err)
{
    stk_plan *plan = &p->plan;
    int64_t values = p->g->nvalues + 1;
    for (int64_t k = 0; k < p->g->nnodes; k++) values += 2 * (p->g->nodes[k].op == STK_OP_ASSIGN);
    plan->g = p->g;
    plan->no_fuse = o->no_fuse;
    plan->join_all = p->device->caps.joins_updates;
    plan->home = stk_arena_array(&plan->arena, (size_t)values, sizeof *plan->home);
    if (!plan->home) return stk_fail_memory(err, "plan", (size_t)values * sizeof *plan->home);
    for (int64_t v = 0; v < values; v++) plan->home[v].root = (stk_val)v;
    const int64_t block = p->device->caps.largest_block;
    stk_arrange_options how = {.threads = o->threads,
                               .largest = stk_max_i64(block - STK_ALIGN, 0),
                               .deterministic = o->deterministic,
                               .ref = o->ref,
                               .no_group = o->no_fuse,
                               .kernels = o->kernels};
    STK_TRY(stk_plan_tasks(plan, err));
    STK_TRY(stk_plan_homes(plan, err));
    for (int64_t k = 0; k < plan->ntasks; k++)
        plan->tasks[k].label = stk_op_name((stk_op)p->g->nodes[plan->tasks[k].node].op);
    STK_TRY(p->device->vt->kernels.arrange(p->device, plan, &how, err));
    p->stats.election_ms = plan->election_ms;
    return stk_plan_memory(plan, p->device, err);
}

static stk_status choose_device(stk_program *p, const stk_program_options *o, stk_error *err)
{
    if (o->device) {
        p->device = stk_device_retain(o->device);
    } else if (o->store) {
        p->device = stk_device_retain(stk_store_device(o->store));
    } else {
        STK_TRY(stk_device_open("default", 0, &p->device, err));
    }
    if (o->store && stk_store_device(o->store) != p->device)
        return stk_fail(
            err, STK_ERR_DEVICE,
            "program: the store lives on another device; make it with the program's device");
    if (!o->store) return stk_store_new(p->device, &p->store, err);
    p->store = stk_store_retain(o->store);
    return STK_OK;
}

static void count_stats(stk_program *p)
{
    p->stats.nodes = (int32_t)p->g->nnodes;
    p->stats.launches = (int32_t)p->plan.ntasks;
    p->stats.regions = p->plan.groups;
    p->stats.arena_bytes = p->plan.arena_bytes;
    p->stats.constant_bytes = (int64_t)p->constants->bytes;
    p->stats.variable_bytes = stk_store_bytes(p->store);
    for (int64_t i = 0; i < p->plan.ntasks; i++) {
        p->stats.flops += p->plan.tasks[i].flops;
        p->stats.bytes += p->plan.tasks[i].bytes;
    }
}

stk_status stk_program_compile(const stk_graph *g, const stk_program_options *options, int flags,
                               stk_program **out, stk_error *err)
{
    stk_program_options defaults = stk_program_options_defaults();
    const stk_program_options *o = options ? options : &defaults;
    if (!out)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_program_new: out is NULL; pass the address of a stk_program *");
    STK_TRY(stk_graph_status(g, err));
    int64_t start = stk_now_ns();
    uint64_t trace = stk_trace_start();
    stk_program *p = stk_calloc(1, sizeof *p);
    if (!p) return stk_fail_memory(err, "stk_program_new", sizeof *p);
    stk_status status = choose_device(p, o, err);
    if (status == STK_OK) status = stk_device_usable(p->device, err);
    if (status == STK_OK)
        p->plan.outside_results = flags & STK_COMPILE_OUTSIDE ||
                                  (flags & STK_COMPILE_CALLER && stk_device_shares(p->device));
    if (status == STK_OK) status = prepare_graph(p, g, o, flags, err);
    if (status == STK_OK) status = plan_program(p, o, err);
    stk_program_number(p);
    if (status == STK_OK) status = stk_program_emit(p, o, err);
    if (status != STK_OK) {
        stk_program_release(p);
        return status;
    }
    dump_launches(p);
    count_stats(p);
    p->stats.build_ms = (double)(stk_now_ns() - start) / 1e6;
    stk_trace_span(trace, "program build", p->serial);
    stk_program_enlist(p);
    *out = p;
    return STK_OK;
}

stk_status stk_program_new(const stk_graph *g, const stk_program_options *options,
                           stk_program **out, stk_error *err)
{
    return stk_program_compile(g, options, 0, out, err);
}
