/* A function of the caller as an operation: opaque to the compiler, and shown by its own name in a profile. */
#include "graph/eager/eager.h"
#include "graph/ir/op.h"

#include <string.h>

/* Attributes: addresses of the function, its gradient and its context, then each output's dtype, rank and 8 sizes. */
enum { RUN, GRADIENT, CONTEXT, HEAD, PER_OUTPUT = 2 + STK_MAX_RANK, MOST_ARRAYS = 32 };

static stk_status infer_host(stk_infer *c)
{
    const stk_node *n = c->node;
    if (n->nout < 1 || n->nints != HEAD + (int32_t)n->nout * PER_OUTPUT || !n->ints[RUN] ||
        !n->name)
        return stk_infer_fail(c, STK_ERR_ARGUMENT, "is built by stk_g_host only");
    for (int32_t k = 0; k < n->nout; k++) {
        const int64_t *at = n->ints + HEAD + k * PER_OUTPUT;
        if (at[0] < 0 || at[0] >= STK_DTYPE_COUNT || at[0] == STK_STRING || at[1] < 0 ||
            at[1] > STK_MAX_RANK)
            return stk_infer_fail(c, STK_ERR_ARGUMENT, "output %d of '%s' has no possible type", k,
                                  n->name);
        c->out[k] = (stk_type){.dtype = (stk_dtype)at[0], .shape = {.rank = (int32_t)at[1]}};
        memcpy(c->out[k].shape.dim, at + 2, (size_t)at[1] * sizeof *at);
    }
    return STK_OK;
}

static stk_val add_host(stk_graph *g, const stk_host *host, int32_t n, const stk_val *x,
                        int32_t nout, const stk_host_result *results)
{
    int64_t ints[HEAD + MOST_ARRAYS * PER_OUTPUT] = {(int64_t)(uintptr_t)host->run,
                                                     (int64_t)(uintptr_t)host->gradient,
                                                     (int64_t)(uintptr_t)host->context};
    for (int32_t k = 0; k < nout; k++) {
        int64_t *at = ints + HEAD + k * PER_OUTPUT;
        at[0] = (int64_t)results[k].dtype;
        at[1] = results[k].rank;
        for (int32_t i = 0; i < results[k].rank && i < STK_MAX_RANK; i++)
            at[2 + i] = results[k].shape[i];
    }
    return stk_g_add_node(g,
                          &(stk_node){.op = STK_OP_HOST,
                                      .nin = n,
                                      .nout = (int16_t)nout,
                                      .ints = ints,
                                      .nints = HEAD + nout * PER_OUTPUT,
                                      .name = host->name},
                          x);
}

stk_val stk_g_host(stk_graph *g, const stk_host *host, int32_t n, const stk_val *x, int32_t nout,
                   const stk_host_result *results)
{
    if (!stk_graph_ok(g)) return 0;
    if (!host || !host->run || !host->name || !results)
        return stk_g_fail(g, STK_ERR_ARGUMENT,
                          "host: a name, a function and the types of its results must be given");
    if (n < 0 || nout < 1 || n > MOST_ARRAYS || nout > MOST_ARRAYS)
        return stk_g_fail(g, STK_ERR_RANGE,
                          "host '%.64s': %d inputs and %d results; up to %d are possible",
                          host->name, n, nout, MOST_ARRAYS);
    return add_host(g, host, n, x, nout, results);
}

/* The gradient is a host function too: inputs, then what arrives at the results -> gradients of the float inputs. */
static void grad_host(stk_grad *c)
{
    const stk_node *n = &c->node;
    stk_graph *g = c->g;
    stk_val x[2 * MOST_ARRAYS];
    stk_host_result results[MOST_ARRAYS];
    int32_t nx = 0, nout = 0;
    if (!n->ints[GRADIENT]) {
        stk_g_fail(g, STK_ERR_UNSUPPORTED,
                   "host function '%.64s' has no gradient, and a loss depends on it; give it one, "
                   "or train "
                   "only what comes behind it",
                   n->name);
        return;
    }
    if (n->nin + n->nout > MOST_ARRAYS) {
        stk_g_fail(g, STK_ERR_RANGE,
                   "host function '%.64s': its gradient takes more than %d arrays", n->name,
                   MOST_ARRAYS);
        return;
    }
    for (int32_t i = 0; i < n->nin; i++) {
        const stk_type *t = stk_type_of(g, n->in[i]);
        x[nx++] = n->in[i];
        if (!stk_dtype_is_float(t->dtype)) continue;
        results[nout] = (stk_host_result){.dtype = t->dtype, .rank = t->shape.rank};
        memcpy(results[nout++].shape, t->shape.dim, sizeof t->shape.dim);
    }
    for (int32_t k = 0; k < n->nout; k++)
        x[nx++] = c->dout[k] ? c->dout[k] : stk_g_zeros_like(g, n->out + k);
    if (!nout) return;
    stk_host host = {.name = n->name,
                     .run = (stk_host_run *)(uintptr_t)n->ints[GRADIENT],
                     .context = (void *)(uintptr_t)n->ints[CONTEXT]};
    stk_val d = stk_g_host(g, &host, nx, x, nout, results);
    for (int32_t i = 0, k = 0; d && i < n->nin; i++)
        if (stk_dtype_is_float(stk_type_of(g, n->in[i])->dtype)) c->din[i] = d + k++;
}

stk_status stk_host_call(const stk_graph *g, const stk_node *n, stk_tensor *const *in,
                         stk_tensor **out, stk_error *err)
{
    stk_tensor *dense[MOST_ARRAYS] = {0};
    const stk_tensor *given[MOST_ARRAYS];
    stk_status status = STK_OK;
    int32_t made = 0;
    for (int32_t i = 0; i < n->nin && status == STK_OK; i++) {
        status = stk_tensor_dense(in[i], &dense[i], err);
        given[i] = dense[i];
    }
    for (; made < n->nout && status == STK_OK; made++) {
        const stk_type *t = stk_type_of(g, n->out + made);
        status = stk_tensor_new(t->dtype, t->shape.rank, t->shape.dim, &out[made], err);
    }
    stk_host_run *run = (stk_host_run *)(uintptr_t)n->ints[RUN];
    if (status == STK_OK) {
        run((void *)(uintptr_t)n->ints[CONTEXT], n->nin, given, n->nout, out);
        status = stk_host_failure(err);
    }
    for (int32_t i = 0; i < n->nin; i++) stk_tensor_release(dense[i]);
    for (int32_t o = 0; o < made && status != STK_OK; o++) {
        stk_tensor_release(out[o]);
        out[o] = NULL;
    }
    return status;
}

/* ---- failure: noted on the thread that runs, seen by the run --------------------------------------------------- */

static _Thread_local stk_error
    *failure; /* made when one is needed: a thread's own memory is small */
static stk_error no_memory = {.code = STK_ERR_MEMORY, .message = "a host function failed"};

void stk_host_fail(stk_status code, const char *message)
{
    if (failure) return;
    failure = stk_malloc(sizeof *failure);
    if (failure)
        (void)!stk_fail(failure, code == STK_OK ? STK_ERR_STATE : code, "%.900s",
                        message ? message : "a host function failed");
    else
        failure = &no_memory;
}

stk_status stk_host_failure(stk_error *err)
{
    if (!failure) return STK_OK;
    stk_status code = failure->code;
    if (err) *err = *failure;
    if (failure != &no_memory) stk_free(failure);
    failure = NULL;
    return code;
}

static void describe_array(const stk_type *t, stk_host_array *out)
{
    out->dtype = (int64_t)t->dtype;
    out->rank = t->shape.rank;
    memcpy(out->dim, t->shape.dim, (size_t)t->shape.rank * sizeof *out->dim);
}

static stk_status lower_host(stk_lower *l)
{
    const stk_node *n = l->node;
    size_t arrays = (size_t)(n->nin + n->nout);
    stk_host_params *p = stk_lower_params(l, STK_K_HOST, sizeof *p + arrays * sizeof *p->array);
    if (!p) return STK_ERR_MEMORY;
    p->run = n->ints[RUN];
    p->context = n->ints[CONTEXT];
    p->name = (int64_t)(uintptr_t)n->name;
    p->nin = n->nin;
    p->nout = n->nout;
    for (int32_t i = 0; i < n->nin; i++) describe_array(stk_type_of(l->g, n->in[i]), &p->array[i]);
    for (int32_t k = 0; k < n->nout; k++)
        describe_array(stk_type_of(l->g, n->out + k), &p->array[n->nin + k]);
    return STK_OK;
}

const stk_opdef stk_opdef_host = {
    .flags = STK_OPF_RANDOM, .infer = infer_host, .grad = grad_host, .lower = lower_host};
