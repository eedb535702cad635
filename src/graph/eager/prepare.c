/* Preparing an eager call: an operation with one set of shapes is compiled once and found again by its signature. */
#include "graph/eager/eager.h"

#include "graph/run/call.h"

#include <stdio.h>
#include <string.h>

enum { SIGNATURE_MAX = 512 };

/* ---- signatures -------------------------------------------------------------------------------------------- */

typedef struct signature {
    int64_t word[SIGNATURE_MAX];
    int32_t n, attributes_at;
    uint64_t hash;
} signature;

/* op, inputs (dtype, rank, sizes), attributes. False when it does not fit. */
static bool sign(signature *s, int64_t op, int32_t nin, stk_tensor *const *in,
                 const stk_attrs *attrs)
{
    int32_t n = 0;
    s->word[n++] = op;
    for (int32_t i = 0; i < nin; i++) {
        const stk_tensor *t = in[i];
        if (n + 1 + STK_MAX_RANK > SIGNATURE_MAX) return false;
        s->word[n++] = (int64_t)t->dtype << 8 | t->rank;
        for (int32_t d = 0; d < t->rank; d++) s->word[n++] = t->shape[d];
    }
    s->attributes_at = n;
    if (attrs) {
        if (n + 2 + attrs->nints + attrs->nreals > SIGNATURE_MAX || attrs->nsubs) return false;
        s->word[n++] = attrs->nints;
        for (int32_t i = 0; i < attrs->nints; i++) s->word[n++] = attrs->ints[i];
        for (int32_t i = 0; i < attrs->nreals; i++)
            memcpy(&s->word[n++], &attrs->reals[i], sizeof(double));
    }
    uint64_t h = 0x9e3779b97f4a7c15ull;
    for (int32_t i = 0; i < n; i++)
        h = (h ^ (uint64_t)s->word[i]) * 0xff51afd7ed558ccdull, h ^= h >> 32;
    s->n = n;
    s->hash = h;
    return true;
}

static bool matches(const stk_prepared *p, const signature *s)
{
    return p->hash == s->hash && p->nsignature == s->n &&
           !memcmp(p->signature, s->word, (size_t)s->n * sizeof(int64_t));
}

static stk_prepared *find(const stk_eager_place *at, const signature *s)
{
    for (int64_t i = (int64_t)(s->hash & (uint64_t)(at->size - 1)); at->table[i];
         i = (i + 1) & (at->size - 1))
        if (matches(at->table[i], s)) return at->table[i];
    return NULL;
}

static bool insert(stk_eager_place *at, stk_prepared *p)
{
    if (2 * (at->count + 1) > at->size) {
        stk_prepared **bigger = stk_calloc((size_t)at->size * 2, sizeof *bigger);
        if (!bigger) return false;
        for (int64_t k = 0; k < at->size; k++) {
            if (!at->table[k]) continue;
            int64_t i = (int64_t)(at->table[k]->hash & (uint64_t)(2 * at->size - 1));
            while (bigger[i]) i = (i + 1) & (2 * at->size - 1);
            bigger[i] = at->table[k];
        }
        stk_free(at->table);
        at->table = bigger;
        at->size *= 2;
    }
    int64_t i = (int64_t)(p->hash & (uint64_t)(at->size - 1));
    while (at->table[i]) i = (i + 1) & (at->size - 1);
    at->table[i] = p;
    at->count++;
    return true;
}

/* ---- preparing ------------------------------------------------------------------------------------------------ */

static int64_t recipe_number(const stk_recipe *r)
{
    return r->keyed   ? (int64_t)(intptr_t)r->keyed
           : r->build ? (int64_t)(intptr_t)r->build
                      : (int64_t)r->op;
}

const char *stk_recipe_name(const stk_recipe *r)
{
    return r->keyed || r->build ? "eager call" : stk_op_name(r->op);
}

static int32_t cook(const stk_recipe *r, stk_graph *g, int32_t nin, const stk_val *x, stk_val *y)
{
    if (r->keyed) return r->keyed(g, x, r->attrs, y);
    y[0] = r->build ? r->build(g, x, r->context) : stk_g_apply(g, r->op, nin, x, r->attrs);
    int32_t nout = y[0] && !r->build ? stk_node_of(g, y[0])->nout : 1;
    for (int32_t o = 1; o < nout && o < STK_EAGER_OUTPUTS; o++) y[o] = y[0] + o;
    return nout;
}

stk_status stk_recipe_graph(stk_graph **out, const stk_recipe *r, int32_t nin,
                            stk_tensor *const *in, stk_error *err)
{
    stk_val y[STK_EAGER_OUTPUTS];
    stk_val x[STK_EAGER_INPUTS];
    char name[16];
    stk_graph *g = NULL;
    STK_TRY(stk_graph_new(&g, err));
    for (int32_t i = 0; i < nin; i++) {
        snprintf(name, sizeof name, "x%d", i);
        x[i] = stk_g_input(g, name, in[i]->dtype, in[i]->rank, in[i]->shape);
    }
    int32_t nout = cook(r, g, nin, x, y);
    if (nout > STK_EAGER_OUTPUTS)
        stk_g_fail(g, STK_ERR_RANGE, "%s: %d outputs; %d are possible", stk_recipe_name(r), nout,
                   STK_EAGER_OUTPUTS);
    for (int32_t o = 0; o < nout && stk_graph_ok(g); o++) {
        snprintf(name, sizeof name, "y%d", o);
        stk_g_output(g, name, y[o]);
    }
    stk_status status = stk_graph_status(g, err);
    if (status == STK_OK)
        *out = g;
    else
        stk_graph_release(g);
    return status;
}

static bool reads_step(const stk_graph *g)
{
    for (int64_t k = 0; k < g->nnodes; k++)
        if (g->nodes[k].op == STK_OP_STEP) return true;
    return false;
}

void stk_prepared_free(stk_prepared *p)
{
    stk_free(p->signature);
    stk_free(p->results);
    stk_free(p);
}

/* Where the device sees the tensors, results are written right into them; elsewhere they are read afterwards. */
static stk_status compile(stk_eager *e, const signature *s, const stk_graph *g, int32_t nin,
                          stk_prepared **out)
{
    stk_eager_place *at = e->at;
    stk_program_options options = {.device = at->device, .store = at->store, .deterministic = true};
    stk_prepared *p = stk_calloc(1, sizeof *p);
    if (!p) return stk_fail_memory(&e->error, "eager", sizeof *p);
    stk_status status =
        stk_program_compile(g, &options, STK_COMPILE_CALLER, &p->program, &e->error);
    p->hash = s->hash;
    p->living = 1;
    p->thread = pthread_self();
    p->nsignature = s->n;
    p->attributes_at = s->attributes_at;
    p->nin = nin;
    p->signature = stk_malloc((size_t)s->n * sizeof(int64_t));
    if (status == STK_OK) {
        p->nout = p->program->nfetches;
        p->results = stk_calloc((size_t)p->nout, sizeof *p->results);
    }
    if (status == STK_OK && (!p->signature || !p->results || !insert(at, p)))
        status = stk_fail_memory(&e->error, "eager", sizeof *p);
    if (status != STK_OK) {
        stk_program_release(p->program);
        stk_prepared_free(p);
        return status;
    }
    memcpy(p->signature, s->word, (size_t)s->n * sizeof(int64_t));
    for (int32_t o = 0; o < p->nout; o++) p->results[o].type = p->program->fetches[o].type;
    p->counts = reads_step(p->program->g);
    p->at_once = stk_device_shares(at->device) && !p->program->control;
    p->simple = p->at_once && p->nout == 1 && p->program->fetches[0].outside;
    p->run = (stk_sequence_run){.count = p->program->plan.ntasks,
                                .slots = p->program->slots,
                                .uniforms = &e->step,
                                .uniform_bytes = sizeof e->step};
    p->lacks = e->moved && p->program->islands.count;
    for (int32_t i = 0; i < nin && stk_device_shares(at->device); i++)
        p->program->feeds[i].fed = true; /* by its slot, before every run */
    *out = p;
    return STK_OK;
}

stk_status stk_eager_prepare(stk_eager *e, const stk_recipe *r, int32_t nin, stk_tensor *const *in,
                             stk_prepared **out)
{
    signature s;
    if (!sign(&s, recipe_number(r), nin, in, r->attrs))
        return stk_fail(&e->error, STK_ERR_RANGE,
                        "%s: too many inputs or attributes for an eager call", stk_recipe_name(r));
    *out = find(e->at, &s);
    if (*out) return STK_OK;
    stk_graph *g = NULL;
    STK_TRY(stk_recipe_graph(&g, r, nin, in, &e->error));
    stk_status status = compile(e, &s, g, nin, out);
    stk_graph_release(g);
    return status;
}
