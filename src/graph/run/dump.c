/* Texts of graphs and programs for people: one node or launch a line. */
#include "graph/run/control.h"
#include "graph/run/program.h"
#include "stoker/calibrate.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct text {
    char *data;
    size_t used, size;
    bool failed;
} text;

static void put(text *t, const char *format, ...) STK_PRINTF(2, 3);
static void put(text *t, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    size_t length = n < 0 ? 0 : (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
    if (t->failed) return;
    if (t->used + length + 1 > t->size) {
        size_t size = t->size ? 2 * t->size + length : 4096;
        char *grown = stk_realloc(t->data, t->used, size);
        t->failed = !grown;
        if (!grown) return;
        t->data = grown;
        t->size = size;
    }
    memcpy(t->data + t->used, line, length + 1);
    t->used += length;
}

static stk_status finish(text *t, char **out, stk_error *err)
{
    put(t, "%s", "");
    if (t->failed) {
        stk_free(t->data);
        return stk_fail_memory(err, "dump", t->size);
    }
    *out = t->data;
    return STK_OK;
}

void stk_text_free(char *t) { stk_free(t); }

static void put_attributes(text *t, const stk_node *n)
{
    const char *names = stk_op_row_of((stk_op)n->op)->attributes;
    if (!n->nints && !n->nreals) return;
    put(t, " {%s%s", names, *names ? ":" : "");
    for (int32_t i = 0; i < n->nints; i++) put(t, " %lld", (long long)n->ints[i]);
    for (int32_t i = 0; i < n->nreals; i++) put(t, " %g", n->reals[i]);
    put(t, "}");
}

static void put_graph(text *t, const stk_graph *g, int depth)
{
    for (int64_t k = 0; k < g->nnodes; k++) {
        const stk_node *n = &g->nodes[k];
        put(t, "%*s%%%d", 2 * depth, "", n->out);
        for (int32_t o = 1; o < n->nout; o++) put(t, ", %%%d", n->out + o);
        put(t, " = %s", stk_op_name((stk_op)n->op));
        if (n->name) put(t, " '%s'", n->name);
        put(t, "(");
        for (int32_t i = 0; i < n->nin; i++) put(t, "%s%%%d", i ? ", " : "", n->in[i]);
        put(t, ")");
        put_attributes(t, n);
        if (n->tensor && stk_tensor_count(n->tensor) == 1)
            put(t, " = %g", stk_tensor_at(n->tensor, 0));
        for (int32_t o = 0; o < n->nout; o++)
            put(t, "%s%s", o ? ", " : "  : ", STK_TYPE_TEXT(stk_type_of(g, n->out + o)));
        put(t, "\n");
        for (int32_t s = 0; s < n->nsubs; s++) put_graph(t, n->subs[s], depth + 1);
    }
    for (int64_t i = 0; i < g->noutputs; i++)
        put(t, "%*soutput '%s' = %%%d\n", 2 * depth, "", g->outputs[i].name, g->outputs[i].val);
}

stk_status stk_graph_dump(const stk_graph *g, char **out, stk_error *err)
{
    if (!g || !out)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_graph_dump: graph and out must be given");
    text t = {0};
    put_graph(&t, g, 0);
    return finish(&t, out, err);
}

/* What a chain does, in short: "mul add relu". */
static void put_chain(text *t, const stk_chain *c)
{
    for (int32_t i = 0; i < c->ops && i < 8; i++) put(t, " %s", stk_ew_name((stk_ew)c->op[i].code));
    if (c->ops > 8) put(t, " ... %d ops", c->ops);
    if (c->segments > 1) put(t, " x %d arrays", c->segments);
}

stk_status stk_program_dump(const stk_program *p, char **out, stk_error *err)
{
    if (!p || !out)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_program_dump: program and out must be given");
    text t = {0};
    put(&t, "  # op             kernel         implementation  units  parts threads   kflop      "
            "KB  what\n");
    for (int64_t k = 0; k < p->plan.ntasks; k++) {
        const stk_task *l = &p->plan.tasks[k];
        stk_task_report about;
        p->device->vt->kernels.report(&p->plan, k, &about);
        put(&t, "%3lld %s%-14s %-14s %-12s %8lld %6d %7d %7.1f %7.1f ", (long long)k,
            about.follows ? "+" : " ", l->label,
            l->kernel < 0 ? "control" : stk_kernel_name((stk_kernel)l->kernel), about.impl,
            (long long)about.units, about.parts, about.threads, l->flops / 1e3, l->bytes / 1e3);
        if (l->kernel == STK_K_CHAIN)
            put_chain(&t, l->params);
        else
            for (int32_t i = 0; i < l->nargs && i < 4; i++)
                if (l->arg[i] < p->g->nvalues)
                    put(&t, " %s%s", STK_TYPE_TEXT(stk_type_of(p->g, l->arg[i])),
                        p->plan.home[stk_root(&p->plan, l->arg[i])].own ? "*" : "");
        put(&t, "\n");
    }
    put(&t, "arena %lld bytes, constants %lld, variables %lld\n", (long long)p->plan.arena_bytes,
        (long long)p->constants->bytes, (long long)p->stats.variable_bytes);
    return finish(&t, out, err);
}

/* ---- what runs where ------------------------------------------------------------------------------------- */

static void put_place(text *t, const stk_program *p, int depth)
{
    for (int64_t k = 0; k < p->plan.ntasks; k++) {
        const stk_task *l = &p->plan.tasks[k];
        const char *place = p->g->nodes[l->node].origin.place;
        stk_task_report about;
        p->device->vt->kernels.report(&p->plan, k, &about);
        bool control = l->kernel < 0;
        if (!control || p->g->nodes[l->node].op != STK_OP_ISLAND)
            put(t, "%*s%-10s %-18s %-14s %-12s %s\n", 2 * depth, "",
                control ? "host" : p->device->name, l->label,
                control ? "control flow" : stk_kernel_name((stk_kernel)l->kernel), about.impl,
                place ? place : "");
        for (int b = 0; control && p->control && p->control[k] && b < 2; b++)
            if (p->control[k]->body[b]) put_place(t, p->control[k]->body[b], depth + 1);
    }
    for (int64_t i = 0; i < p->islands.count; i++) {
        const stk_island *row = &p->islands.rows[i];
        put(t, "%*s%-10s %-18s %s: not on %s: %s; %lld bytes down, %lld up%s%s\n", 2 * depth, "",
            "cpu:0", row->op, row->shape, p->device->name, row->reason, (long long)row->bytes_down,
            (long long)row->bytes_up, row->name[0] ? "; " : "", row->name);
    }
}

stk_status stk_program_placement(const stk_program *p, char **out, stk_error *err)
{
    if (!p || !out)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_program_placement: program and text must be given");
    text t = {0};
    put_place(&t, p, 0);
    return finish(&t, out, err);
}
