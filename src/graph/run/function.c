/* Functions: programs by the types of their inputs, with the reason why each was made. */
#include "graph/run/program.h"

#include "base/tensor.h"
#include "base/trace.h"

#include <stdio.h>
#include <string.h>

enum { INPUTS_MAX = 64 };

typedef struct variant {
    stk_type *types; /* [nin] */
    stk_program *program;
    char reason[320];
} variant;

struct stk_function {
    int32_t nin;
    char **names;
    stk_function_build build;
    void *context;
    stk_program_options options;
    stk_store *store;
    variant *variants;
    int64_t count, capacity;
    int64_t last; /* variant of the last call: most calls repeat it */
};

stk_status stk_function_new(int32_t nin, const char *const *names, stk_function_build build,
                            void *context, const stk_program_options *options, stk_function **out,
                            stk_error *err)
{
    if (nin < 0 || nin > INPUTS_MAX || (nin && !names) || !build || !out)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_function_new: needs 0 to %d names (got %d), build and out", INPUTS_MAX,
                        nin);
    stk_function *f = stk_calloc(1, sizeof *f);
    if (!f) return stk_fail_memory(err, "stk_function_new", sizeof *f);
    *f = (stk_function){.build = build, .context = context};
    if (options) f->options = *options;
    if (f->options.device) stk_device_retain(f->options.device); /* first: release gives it back */
    stk_status status = STK_OK;
    f->names = stk_calloc((size_t)nin + 1, sizeof *f->names);
    for (; f->names && f->nin < nin; f->nin++)
        if (!(f->names[f->nin] = stk_strdup(names[f->nin] ? names[f->nin] : ""))) break;
    if (f->nin < nin)
        status = stk_fail_memory(err, "stk_function_new", (size_t)nin * sizeof *f->names);
    if (status == STK_OK && f->options.store) f->store = stk_store_retain(f->options.store);
    if (status == STK_OK && !f->options.device)
        status = stk_device_open("default", 0, &f->options.device, err);
    if (status == STK_OK && !f->store) status = stk_store_new(f->options.device, &f->store, err);
    f->options.store = f->store;
    if (status == STK_OK)
        *out = f;
    else
        stk_function_release(f);
    return status;
}

void stk_function_release(stk_function *f)
{
    if (!f) return;
    for (int64_t i = 0; i < f->count; i++) {
        stk_program_release(f->variants[i].program);
        stk_free(f->variants[i].types);
    }
    for (int32_t i = 0; f->names && i < f->nin; i++) stk_free(f->names[i]);
    stk_free(f->names);
    stk_free(f->variants);
    stk_store_release(f->store);
    stk_device_release(f->options.device);
    stk_free(f);
}

stk_store *stk_function_store(stk_function *f) { return f ? f->store : NULL; }
int32_t stk_function_count(const stk_function *f) { return f ? (int32_t)f->count : 0; }

const char *stk_function_reason(const stk_function *f, int32_t i)
{
    return f && i >= 0 && i < f->count ? f->variants[i].reason : "";
}

static stk_type type_of(const stk_tensor *t) { return (stk_type){t->dtype, stk_tensor_shape(t)}; }

static bool fits(const stk_function *f, const variant *v, stk_tensor *const *x)
{
    for (int32_t i = 0; i < f->nin; i++) {
        stk_type t = type_of(x[i]);
        if (!stk_type_equal(&t, &v->types[i])) return false;
    }
    return true;
}

/* Names the first input that differs from the last call's. */
static void explain(const stk_function *f, variant *v)
{
    snprintf(v->reason, sizeof v->reason, "first call");
    for (int32_t i = 0; f->count > 0 && i < f->nin; i++) {
        const stk_type *before = &f->variants[f->last].types[i];
        if (stk_type_equal(before, &v->types[i])) continue;
        snprintf(v->reason, sizeof v->reason, "input '%s' is %s, it was %s before", f->names[i],
                 STK_TYPE_TEXT(&v->types[i]), STK_TYPE_TEXT(before));
        return;
    }
}

static stk_status build_variant(const stk_function *f, variant *v, stk_error *err)
{
    stk_val x[INPUTS_MAX];
    stk_graph *g = NULL;
    uint64_t trace = stk_trace_start();
    STK_TRY(stk_graph_new(&g, err));
    for (int32_t i = 0; i < f->nin; i++)
        x[i] = stk_g_input(g, f->names[i], v->types[i].dtype, v->types[i].shape.rank,
                           v->types[i].shape.dim);
    if (stk_graph_ok(g)) f->build(g, x, f->context);
    stk_trace_span(trace, "graph trace", 0);
    stk_status status = stk_program_new(g, &f->options, &v->program, err);
    stk_graph_release(g);
    return status;
}

static stk_status add_variant(stk_function *f, stk_tensor *const *x, stk_error *err)
{
    variant v = {.types = stk_calloc((size_t)f->nin + 1, sizeof *v.types)};
    if (!v.types || !STK_GROW(f->variants, f->count, f->capacity)) {
        stk_free(v.types);
        return stk_fail_memory(err, "stk_function_call", 0);
    }
    for (int32_t i = 0; i < f->nin; i++) v.types[i] = type_of(x[i]);
    explain(f, &v);
    stk_status status = build_variant(f, &v, err);
    if (status != STK_OK) {
        stk_free(v.types);
        return status;
    }
    f->last = f->count;
    f->variants[f->count++] = v;
    return STK_OK;
}

const char *const *stk_function_names(const stk_function *f, int32_t *n)
{
    *n = f->nin;
    return (const char *const *)f->names;
}

stk_status stk_function_pick(stk_function *f, stk_tensor *const *x, stk_program **program,
                             stk_error *err)
{
    if (!f || !program || (f->nin && !x))
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_function_call: function, inputs and program must be given");
    for (int32_t i = 0; i < f->nin; i++)
        if (!x[i])
            return stk_fail(err, STK_ERR_ARGUMENT, "stk_function_call: input '%s' is NULL",
                            f->names[i]);
    if (f->count == 0 || !fits(f, &f->variants[f->last], x)) {
        int64_t i = 0;
        while (i < f->count && !fits(f, &f->variants[i], x)) i++;
        if (i < f->count)
            f->last = i;
        else
            STK_TRY(add_variant(f, x, err));
    }
    *program = f->variants[f->last].program;
    return STK_OK;
}

stk_status stk_function_call(stk_function *f, stk_tensor *const *x, stk_program **program,
                             stk_error *err)
{
    stk_program *p = NULL;
    STK_TRY(stk_function_pick(f, x, &p, err));
    for (int32_t i = 0; i < f->nin; i++) STK_TRY(stk_program_feed(p, f->names[i], x[i], err));
    *program = p;
    return STK_OK;
}
