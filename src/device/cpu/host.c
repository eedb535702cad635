/* Calls a function of the caller from within a program. Its arrays are tensors that look at the program's memory; they are
 * made when the program is, so that a call allocates nothing. */
#include "base/memory.h"
#include "base/trace.h"
#include "device/cpu/cpu.h"
#include "device/cpu/launch.h"
#include "stoker/device.h"

#include <stdio.h>

typedef struct host_state {
    stk_tensor **list;
    stk_tensor tensor[];
} host_state;

static void look_at(const stk_host_array *a, stk_tensor *t)
{
    int64_t stride = 1;
    *t = (stk_tensor){.dtype = (stk_dtype)a->dtype, .rank = (int32_t)a->rank, .refs = 1};
    for (int32_t i = t->rank; i-- > 0;) {
        t->shape[i] = a->dim[i];
        t->stride[i] = stride;
        stride *= a->dim[i];
    }
}

static stk_status prepare_host(stk_launch *l, stk_error *err)
{
    const stk_host_params *p = l->params;
    size_t n = (size_t)(p->nin + p->nout);
    char label[96];
    snprintf(label, sizeof label, "host:%.80s", (const char *)(uintptr_t)p->name);
    const char *interned = stk_trace_intern(label);
    host_state *s =
        interned ? stk_calloc(1, sizeof *s + n * (sizeof *s->tensor + sizeof *s->list)) : NULL;
    if (!s) return stk_fail_memory(err, label, n * sizeof *s->tensor);
    s->list = (stk_tensor **)(void *)(s->tensor + n);
    for (size_t i = 0; i < n; i++) {
        look_at(&p->array[i], &s->tensor[i]);
        s->list[i] = &s->tensor[i];
    }
    l->state = s;
    l->label = interned; /* so that a profile shows whose time it was */
    return STK_OK;
}

static void discard_host(stk_launch *l)
{
    stk_free(l->state);
    l->state = NULL;
}

static void run_host(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    const stk_host_params *p = l->params;
    host_state *s = l->state;
    stk_host_run *run = (stk_host_run *)(uintptr_t)p->run;
    (void)lo, (void)hi, (void)part;
    for (int32_t i = 0; i < l->args; i++) s->tensor[i].data = l->arg[i];
    run((void *)(uintptr_t)p->context, (int32_t)p->nin, (const stk_tensor *const *)s->list,
        (int32_t)p->nout, s->list + p->nin);
}

const stk_impl stk_impl_host = {.name = "host",
                                .kernel = STK_K_HOST,
                                .rank = 100,
                                .prepare = prepare_host,
                                .discard = discard_host,
                                .run = run_host};
