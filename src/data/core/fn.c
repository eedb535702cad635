/* Functions over elements: counted, with their schema, called with care for what they leave behind. */
#include "data/core/node.h"

#include <stdio.h>
#include <string.h>

static stk_status output_of(const stk_map_fn *fn, const stk_schema *in, stk_schema **out,
                            stk_error *err)
{
    if (fn->schema) return fn->schema(fn->context, in, out, err);
    if (fn->output)
        return stk_schema_new(fn->output->n, fn->output->fields, fn->output->structure, out, err);
    *out = stk_schema_retain(in);
    return STK_OK;
}

stk_status stk_fn_new(const char *who, const stk_map_fn *fn, const stk_schema *in, uint64_t seed,
                      stk_fn **out, stk_error *err)
{
    *out = NULL;
    stk_schema *schema = NULL;
    stk_fn *f = NULL;
    stk_status status = fn && fn->call
                            ? STK_OK
                            : stk_fail(err, STK_ERR_ARGUMENT,
                                       "%s: the function has no call; fill stk_map_fn.call", who);
    if (status == STK_OK) {
        f = stk_calloc(1, sizeof *f);
        if (!f) status = stk_fail_memory(err, who, sizeof *f);
    }
    if (status == STK_OK) status = output_of(fn, in, &schema, err);
    if (status != STK_OK) {
        if (fn && fn->release) fn->release(fn->context);
        stk_free(f);
        return status;
    }
    *f = (stk_fn){.fn = *fn, .refs = 1, .inputs = in->n, .output = schema, .seed = seed};
    snprintf(f->name, sizeof f->name, "%s", fn->name ? fn->name : "function");
    f->fn.name = f->name;
    f->fn.output = schema;
    *out = f;
    return STK_OK;
}

stk_dataset *stk_dataset_asking(const stk_node_kind *kind, stk_dataset *in, const stk_map_fn *fn,
                                stk_dtype answer, size_t size, stk_fn **out, stk_error *err)
{
    *out = NULL;
    if (!in) {
        if (fn && fn->release) fn->release(fn->context);
        return NULL;
    }
    stk_map_fn asked = fn ? *fn : (stk_map_fn){0};
    stk_field field = {.dtype = answer};
    stk_schema one = {1, &field, "0"};
    if (!asked.schema && !asked.output) asked.output = &one;
    stk_status status = stk_fn_new(kind->name, &asked, in->schema, in->salt, out, err);
    if (status == STK_OK && ((*out)->output->n != 1 || (*out)->output->fields[0].rank > 0))
        status = stk_fail(err, STK_ERR_ARGUMENT, "%s: %s gives %d parts; it must give one scalar",
                          kind->name, (*out)->name, (int)(*out)->output->n);
    if (status != STK_OK) stk_dataset_release(in);
    stk_dataset *ds = status == STK_OK ? stk_dataset_make(kind, 1, &in, size, err) : NULL;
    if (ds) {
        stk_dataset_in_order(ds);
    } else {
        stk_fn_release(*out);
        *out = NULL;
    }
    return ds;
}

/* What one function was joined of says more than the joint. */
bool stk_fn_is_pure(const stk_fn *fn)
{
    if (fn->first) return stk_fn_is_pure(fn->first) && stk_fn_is_pure(fn->second);
    return (fn->fn.flags & STK_MAP_PURE) != 0;
}

stk_fn *stk_fn_retain(stk_fn *fn)
{
    if (fn) __atomic_add_fetch(&fn->refs, 1, __ATOMIC_RELAXED);
    return fn;
}

void stk_fn_release(stk_fn *fn)
{
    if (!fn || __atomic_sub_fetch(&fn->refs, 1, __ATOMIC_ACQ_REL) != 0) return;
    if (fn->fn.release) fn->fn.release(fn->fn.context);
    stk_fn_release(fn->first);
    stk_fn_release(fn->second);
    stk_schema_release(fn->output);
    stk_free(fn);
}

static stk_status call(stk_fn *fn,
                       stk_status (*function)(void *, const stk_map_info *, stk_tensor *const *,
                                              stk_tensor **, stk_error *),
                       const stk_map_info *info, stk_tensor *const *in, stk_tensor **out,
                       stk_error *err)
{
    enum { FEW = 16 };
    int32_t n = fn->output->n;
    stk_tensor *few[FEW], **given = n <= FEW ? few : stk_parts_new(n);
    if (!given) return stk_fail_memory(err, fn->name, (size_t)n * sizeof *given);
    memcpy(given, out, (size_t)n * sizeof *given);
    stk_status status = function(fn->fn.context, info, in, out, err);
    for (int32_t i = 0; i < n; i++) {
        if (status == STK_OK && !out[i])
            status = stk_fail(err, STK_ERR_STATE, "map: %s left part %d of its result empty",
                              fn->name, (int)i);
    }
    for (int32_t i = 0; status != STK_OK && i < n; i++) {
        if (out[i] == given[i]) continue;
        stk_tensor_release(out[i]);
        out[i] = given[i];
    }
    if (given != few) stk_free(given);
    return status;
}

stk_status stk_fn_call(stk_fn *fn, uint64_t epoch, int64_t index, stk_tensor *const *in,
                       stk_tensor **out, stk_error *err)
{
    stk_map_info info = {index, 1, fn->fused ? epoch : stk_seed_mix(fn->seed, epoch), fn->inputs};
    return call(fn, fn->fn.call, &info, in, out, err);
}

stk_status stk_fn_call_batch(stk_fn *fn, uint64_t epoch, int64_t index, int64_t count,
                             stk_tensor *const *in, stk_tensor **out, stk_error *err)
{
    stk_map_info info = {index, count, fn->fused ? epoch : stk_seed_mix(fn->seed, epoch),
                         fn->inputs};
    return call(fn, fn->fn.batch ? fn->fn.batch : fn->fn.call, &info, in, out, err);
}
