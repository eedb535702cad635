/* The order in which Keras lists the layers of a functional model: by how far they are from the outputs, and among equals
 * in the order in which a walk from the outputs meets them. Layers that no output needs are left out. The weights
 * follow their layers. */
#include "layers/model.h"

#include <stdlib.h>

typedef struct walk {
    int32_t *met;   /* per layer: when it was met, -1 not yet */
    int32_t *depth; /* per layer: distance to the outputs */
    int32_t *stack, *next;
    int32_t *call_depth;
    int32_t count;
} walk;

static void release(walk *w)
{
    stk_free(w->met);
    stk_free(w->depth);
    stk_free(w->stack);
    stk_free(w->next);
    stk_free(w->call_depth);
}

static void meet(const stk_model *m, walk *w, int32_t call)
{
    int32_t layer = m->calls[call].layer - 1;
    if (w->met[layer] < 0) w->met[layer] = w->count++;
    m->calls[call].used = true;
}

/* Depth first, without recursion: models may be deeper than the C stack. */
static void visit(const stk_model *m, walk *w, int32_t start)
{
    int32_t top = 0;
    if (m->calls[start].used) return;
    meet(m, w, start);
    w->stack[top] = start;
    w->next[top++] = 0;
    while (top) {
        const stk_mcall *call = &m->calls[w->stack[top - 1]];
        if (w->next[top - 1] == call->nin) {
            top--;
            continue;
        }
        int32_t from = stk_sym_at(m, call->in[w->next[top - 1]++])->call;
        if (m->calls[from].used) continue;
        meet(m, w, from);
        w->stack[top] = from;
        w->next[top++] = 0;
    }
}

static void measure(const stk_model *m, walk *w)
{
    for (int64_t k = m->ncalls - 1; k >= 0; k--) {
        const stk_mcall *call = &m->calls[k];
        if (!call->used) continue;
        int32_t *depth = &w->depth[call->layer - 1];
        if (w->call_depth[k] < *depth) w->call_depth[k] = *depth;
        *depth = w->call_depth[k];
        for (int32_t i = 0; i < call->nin; i++) {
            int32_t *before = &w->call_depth[stk_sym_at(m, call->in[i])->call];
            if (*before < w->call_depth[k] + 1) *before = w->call_depth[k] + 1;
        }
    }
}

typedef struct rank {
    int32_t layer, depth, met;
} rank;

static int deeper_first(const void *a, const void *b)
{
    const rank *x = a, *y = b;
    return x->depth != y->depth ? (x->depth > y->depth ? -1 : 1) : x->met < y->met ? -1 : 1;
}

/* The layers that were met, in m->order. */
static stk_status sort_layers(stk_model *m, const walk *w, stk_error *err)
{
    rank *ranks = stk_calloc((size_t)m->nlayers + 1, sizeof *ranks);
    int64_t n = 0;
    if (!ranks) return stk_fail_memory(err, "the order of layers", (size_t)m->nlayers);
    for (int32_t i = 0; i < m->nlayers; i++)
        if (w->met[i] >= 0) ranks[n++] = (rank){i + 1, w->depth[i], w->met[i]};
    if (m->kind != STK_MODEL_SEQUENTIAL) qsort(ranks, (size_t)n, sizeof *ranks, deeper_first);
    for (int64_t i = 0; i < n; i++) m->order[i] = ranks[i].layer;
    stk_free(ranks);
    return STK_OK;
}

static stk_status order_layers(stk_model *m, walk *w, stk_error *err)
{
    size_t layers = (size_t)m->nlayers, calls = (size_t)m->ncalls;
    w->met = stk_calloc(layers, sizeof *w->met);
    w->depth = stk_calloc(layers, sizeof *w->depth);
    w->stack = stk_calloc(calls + 1, sizeof *w->stack);
    w->next = stk_calloc(calls + 1, sizeof *w->next);
    w->call_depth = stk_calloc(calls + 1, sizeof *w->call_depth);
    if (!w->met || !w->depth || !w->stack || !w->next || !w->call_depth)
        return stk_fail_memory(err, "the order of layers", layers);
    for (size_t i = 0; i < layers; i++) w->met[i] = -1;
    for (int64_t i = 0; i < m->noutputs; i++) visit(m, w, stk_sym_at(m, m->outputs[i])->call);
    for (int64_t i = 0; i < m->ninputs; i++) visit(m, w, stk_sym_at(m, m->inputs[i])->call);
    measure(m, w);
    m->norder = w->count;
    return sort_layers(m, w, err);
}

/* Weights in the order of their layers, those of one layer as they were declared. */
static stk_status order_weights(stk_model *m, stk_error *err)
{
    int64_t *first = stk_calloc((size_t)m->nlayers + 2, sizeof *first), at = 0;
    if (!first) return stk_fail_memory(err, "the order of weights", (size_t)m->nlayers);
    for (int64_t k = 0; k < m->nweights; k++)
        if (!m->weights[k].state) first[m->weights[k].layer]++;
    for (int64_t i = 0; i < m->norder; i++) {
        int64_t n = first[m->order[i]];
        first[m->order[i]] = -1 - at; /* below 0: it is in the order */
        at += n;
    }
    for (int32_t k = 0; k < m->nweights; k++) {
        int64_t *place = &first[m->weights[k].layer];
        if (*place >= 0 || m->weights[k].state)
            continue; /* >= 0: of a layer that no output needs */
        m->weight_order[-1 - *place] = k;
        --*place;
    }
    m->nweight_order = at;
    stk_free(first);
    return STK_OK;
}

stk_status stk_model_order(stk_model *m, stk_error *err)
{
    walk w = {0};
    m->order = stk_calloc((size_t)m->nlayers, sizeof *m->order);
    m->weight_order = stk_calloc((size_t)m->nweights + 1, sizeof *m->weight_order);
    if (!m->order || !m->weight_order)
        return stk_fail_memory(err, "the order of layers", (size_t)m->nlayers);
    stk_status status = order_layers(m, &w, err);
    release(&w);
    return status == STK_OK ? order_weights(m, err) : status;
}
