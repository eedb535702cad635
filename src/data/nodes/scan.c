/* scan - a function with a memory: (state, element) -> (state, output), one after the other. reduce - only the state
 * after the last element. */
#include "data/core/element_list.h"

#include <stdio.h>
#include <string.h>

typedef struct scan {
    stk_fn *fn;
    stk_element_list initial; /* one element: the state to begin with */
    bool last;                /* reduce */
} scan;

static void drop(stk_dataset *ds)
{
    scan *c = ds->config;
    stk_fn_release(c->fn);
    stk_element_list_release(&c->initial);
}

static void describe(const stk_dataset *ds, char *text, size_t size)
{
    snprintf(text, size, "%s", ((const scan *)ds->config)->fn->name);
}

typedef struct scanning {
    stk_iter *in;
    int64_t count;
    bool given;                         /* reduce: its one element */
    stk_tensor **in_parts, **out_parts; /* state, then element or output */
} scanning;

static stk_status open(stk_iter *it, stk_error *err)
{
    scanning *own = it->own;
    const scan *c = it->stage->ds->config;
    int32_t nstate = c->initial.width;
    own->in_parts = stk_parts_new(nstate + it->stage->in[0]->ds->schema->n);
    own->out_parts = stk_parts_new(c->fn->output->n);
    if (!own->in_parts || !own->out_parts) return stk_fail_memory(err, "scan", 64);
    for (int32_t i = 0; i < nstate; i++) own->in_parts[i] = stk_tensor_retain(c->initial.parts[i]);
    return stk_iter_open(it->stage->in[0], it->epoch, &own->in, err);
}

/* One element further: the state is the new one, the output lies behind it in out_parts. */
static stk_status step(stk_iter *it, bool *end, stk_error *err)
{
    scanning *own = it->own;
    const scan *c = it->stage->ds->config;
    int32_t nstate = c->initial.width, n = own->in->stage->ds->schema->n;
    stk_status status = stk_iter_next(own->in, own->in_parts + nstate, end, err);
    if (*end) return STK_OK;
    own->count++;
    STK_TRY(status);
    status = stk_fn_call(c->fn, it->epoch, own->count - 1, own->in_parts, own->out_parts, err);
    stk_parts_release(n, own->in_parts + nstate);
    STK_TRY(status);
    stk_parts_release(nstate, own->in_parts);
    memcpy(own->in_parts, own->out_parts, (size_t)nstate * sizeof *own->in_parts);
    memset(own->out_parts, 0, (size_t)nstate * sizeof *own->in_parts);
    return STK_OK;
}

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    scanning *own = it->own;
    const scan *c = it->stage->ds->config;
    int32_t nstate = c->initial.width, n = it->stage->ds->schema->n;
    if (c->last) {
        *end = own->given;
        if (*end) return STK_OK;
        for (bool over = false; !over;) STK_TRY(step(it, &over, err));
        own->given = true;
        for (int32_t i = 0; i < n; i++) parts[i] = stk_tensor_retain(own->in_parts[i]);
        return STK_OK;
    }
    STK_TRY(step(it, end, err));
    if (*end) return STK_OK;
    memcpy(parts, own->out_parts + nstate, (size_t)n * sizeof *parts);
    memset(own->out_parts + nstate, 0, (size_t)n * sizeof *parts);
    return STK_OK;
}

static stk_status save(stk_iter *it, stk_state *out, stk_error *err)
{
    scanning *own = it->own;
    const scan *c = it->stage->ds->config;
    stk_state_put(out, own->count);
    stk_state_put(out, own->given);
    stk_state_put_parts(out, c->initial.width, own->in_parts);
    return stk_iter_save(own->in, out, err);
}

static stk_status restore(stk_iter *it, stk_state *in, stk_error *err)
{
    scanning *own = it->own;
    const scan *c = it->stage->ds->config;
    own->count = stk_state_get_in(in, 0, INT64_MAX);
    own->given = stk_state_get_in(in, 0, 1);
    stk_parts_release(c->initial.width, own->in_parts);
    STK_TRY(stk_state_get_parts(in, c->initial.width, own->in_parts, err));
    return stk_iter_restore(own->in, in, err);
}

static void close(stk_iter *it)
{
    scanning *own = it->own;
    const scan *c = it->stage->ds->config;
    if (own->in_parts) stk_parts_release(c->initial.width, own->in_parts);
    stk_free(own->in_parts);
    stk_free(own->out_parts);
    stk_iter_close(own->in);
}

static const stk_walk walk = {sizeof(scanning), open, next, save, restore, close};

static bool steady(const stk_dataset *ds) { return stk_fn_is_pure(((const scan *)ds->config)->fn); }

const stk_node_kind stk_node_scan = {
    .name = "scan", .drop = drop, .describe = describe, .walk = &walk, .steady = steady};

const stk_node_kind stk_node_reduce = {
    .name = "reduce", .drop = drop, .describe = describe, .walk = &walk};

/* What the function is given: the state's parts and the element's, in one row. */
static stk_status input_schema(int32_t n, stk_tensor *const *state, const stk_schema *in,
                               stk_schema **out, stk_error *err)
{
    stk_field *fields = stk_calloc((size_t)(n + in->n) + 1, sizeof *fields);
    if (!fields) return stk_fail_memory(err, "scan", 64);
    for (int32_t i = 0; i < n; i++) {
        fields[i] = (stk_field){.dtype = state[i]->dtype, .rank = state[i]->rank};
        memcpy(fields[i].shape, state[i]->shape, sizeof fields[i].shape);
    }
    memcpy(fields + n, in->fields, (size_t)in->n * sizeof *fields);
    stk_status status = stk_schema_new(n + in->n, fields, NULL, out, err);
    stk_free(fields);
    return status;
}

static stk_status fill(stk_dataset *ds, int32_t n, stk_tensor *const *state, stk_error *err)
{
    scan *c = ds->config;
    const stk_schema *full = c->fn->output;
    c->initial.width = n;
    stk_tensor **handles = stk_parts_new(n);
    if (!handles) return stk_fail_memory(err, "scan", 64);
    for (int32_t i = 0; i < n; i++) handles[i] = stk_tensor_retain(state[i]);
    stk_status status = stk_element_list_add(&c->initial, handles, err);
    stk_parts_release(n, handles);
    stk_free(handles);
    if (status == STK_OK && (c->last ? full->n != n : full->n <= n))
        status =
            stk_fail(err, STK_ERR_ARGUMENT,
                     "%s: %s gives %d parts; it must give the %d of the state%s", ds->kind->name,
                     c->fn->name, (int)full->n, (int)n, c->last ? "" : " and then the output");
    stk_schema *out = NULL;
    if (status == STK_OK && c->last) out = stk_schema_retain(full);
    if (status == STK_OK && !c->last)
        status = stk_schema_new(full->n - n, full->fields + n, NULL, &out, err);
    if (status == STK_OK) stk_dataset_set_schema(ds, out);
    return status;
}

static stk_dataset *make(const stk_node_kind *kind, stk_dataset *in, int32_t n,
                         stk_tensor *const *state, const stk_map_fn *fn, stk_error *err)
{
    stk_fn *f = NULL;
    stk_schema *given = NULL;
    stk_status status = in ? input_schema(n, state, in->schema, &given, err) : STK_ERR_STATE;
    if (status != STK_OK) {
        if (fn && fn->release) fn->release(fn->context);
        stk_dataset_release(in);
        return NULL;
    }
    status = stk_fn_new(kind->name, fn, given, in->salt, &f, err);
    stk_schema_release(given);
    if (status != STK_OK) {
        stk_dataset_release(in);
        return NULL;
    }
    stk_dataset *ds = stk_dataset_make(kind, 1, &in, sizeof(scan), err);
    if (!ds) {
        stk_fn_release(f);
        return NULL;
    }
    scan *c = ds->config;
    c->fn = f;
    c->last = kind == &stk_node_reduce;
    ds->random = false;
    ds->ahead = 0;
    if (c->last && in->cardinality != STK_INFINITE) ds->cardinality = 1;
    return stk_dataset_done(ds, fill(ds, n, state, err));
}

stk_dataset *stk_data_scan(stk_dataset *in, int32_t n, stk_tensor *const *state,
                           const stk_map_fn *fn, stk_error *err)
{
    return make(&stk_node_scan, in, n, state, fn, err);
}

stk_dataset *stk_data_reduce(stk_dataset *in, int32_t n, stk_tensor *const *initial,
                             const stk_map_fn *fn, stk_error *err)
{
    return make(&stk_node_reduce, in, n, initial, fn, err);
}

/* Not a node: the whole walk, at once. */
stk_status stk_dataset_reduce(stk_dataset *ds, const stk_stream_options *options, int32_t n,
                              stk_tensor *const *initial, const stk_map_fn *fn, stk_tensor **state,
                              stk_error *err)
{
    stk_stream *s = NULL;
    bool end = false;
    stk_dataset *last = make(&stk_node_reduce, stk_dataset_retain(ds), n, initial, fn, err);
    if (!last) return err && err->code != STK_OK ? err->code : STK_ERR_ARGUMENT;
    stk_status status = stk_dataset_stream(last, options, &s, err);
    if (status == STK_OK) status = stk_stream_next(s, state, &end, err);
    stk_stream_release(s);
    stk_dataset_release(last);
    return status;
}
