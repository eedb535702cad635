/* Programs over streams: the loop of an epoch. A step costs what the program costs, plus the next element. */
#include "graph/run/program.h"

#include "base/clock.h"
#include "base/tensor.h"
#include "base/trace.h"
#include "graph/run/call.h"
#include "stoker/tracing.h"

#include <string.h>

static void drop(stk_tensor **list, int32_t n)
{
    for (int32_t i = 0; list && i < n; i++) stk_tensor_release(list[i]);
    stk_free(list);
}

static void drop_part(stk_over *o)
{
    drop(o->part, o->nparts);
    o->part = NULL;
}

void stk_over_clear(stk_over *o)
{
    if (!o) return;
    drop_part(o);
    drop(o->last, o->nlast);
    o->last = NULL;
    o->nlast = 0;
}

stk_status stk_over_peek(stk_over *o, bool *end, stk_error *err)
{
    if (!o || !o->stream || !end)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_over_peek: a stream and end must be given");
    *end = false;
    if (o->part) return STK_OK;
    o->nparts = stk_stream_schema(o->stream)->n;
    o->part = stk_calloc((size_t)o->nparts + 1, sizeof *o->part);
    if (!o->part) return stk_fail_memory(err, "stk_over_peek", 0);
    stk_status status = stk_stream_next(o->stream, o->part, end, err);
    if (status != STK_OK || *end) drop_part(o);
    return status;
}

void stk_over_skip(stk_over *o)
{
    if (!o || !o->part) return;
    drop_part(o);
    o->done++;
}

static stk_tensor *input_of(const stk_over *o, int32_t i)
{
    return o->leaf && o->leaf[i] >= 0 ? o->part[o->leaf[i]] : o->given ? o->given[i] : NULL;
}

static stk_status check(const stk_program *p, const stk_over *o, stk_error *err)
{
    int32_t parts = stk_stream_schema(o->stream)->n;
    for (int32_t i = 0; i < p->nfeeds; i++)
        if (o->leaf && o->leaf[i] >= parts)
            return stk_fail(err, STK_ERR_RANGE,
                            "stk_program_over: input %d is part %d; elements have %d parts", i,
                            o->leaf[i], parts);
    for (int32_t i = 0; o->results && i < p->nfetches; i++) {
        const stk_type *t = &p->fetches[i].type;
        const stk_tensor *r = o->results[i];
        bool fits = !r || (r->dtype == t->dtype && r->rank == t->shape.rank && r->rank > 0 &&
                           stk_tensor_is_dense(r) && !stk_tensor_device(r));
        for (int32_t k = 1; fits && r && k < r->rank; k++) fits = r->shape[k] == t->shape.dim[k];
        if (!fits)
            return stk_fail(err, STK_ERR_SHAPE,
                            "stk_program_over: the tensor for output %d does not hold rows of %s",
                            i, STK_TYPE_TEXT(t));
    }
    return STK_OK;
}

static bool fits(const stk_program *p, const stk_over *o)
{
    for (int32_t i = 0; i < p->nfeeds; i++) {
        const stk_tensor *t = input_of(o, i);
        if (!t || !stk_call_fits(t, &p->feeds[i].type)) return false;
    }
    return true;
}

/* Rows of the caller's tensors, or memory of our own that every step uses again. */
static stk_status bind_results(stk_program *p, stk_over *o, stk_error *err)
{
    int64_t rows = 0;
    for (int32_t i = 0; i < p->nfetches; i++) {
        const stk_fetch *f = &p->fetches[i];
        stk_tensor *r = o->results ? o->results[i] : NULL;
        stk_address at = stk_address_host(o->last[i]->data);
        if (r) {
            int64_t each = stk_type_bytes(&f->type), first = f->type.shape.dim[0];
            rows = first;
            if (o->row + first > r->shape[0])
                return stk_fail(
                    err, STK_ERR_SHAPE,
                    "stk_program_over: results from row %lld on do not fit into %lld rows",
                    (long long)o->row, (long long)r->shape[0]);
            at = stk_address_host((char *)r->data + (first ? each / first * o->row : 0));
        }
        if (f->outside) p->slots[p->nfeeds + i] = at;
    }
    o->row += rows;
    return STK_OK;
}

static stk_status copy_results(stk_program *p, stk_over *o, int64_t row, stk_error *err)
{
    for (int32_t i = 0; i < p->nfetches; i++) {
        const stk_fetch *f = &p->fetches[i];
        stk_tensor *r = o->results ? o->results[i] : NULL;
        size_t bytes = (size_t)stk_type_bytes(&f->type);
        int64_t first = r ? f->type.shape.dim[0] : 0;
        char *to =
            r ? (char *)r->data + (first ? (int64_t)bytes / first * row : 0) : o->last[i]->data;
        stk_address from = stk_program_address(p, &f->link);
        if (bytes && !stk_address_equal(from, stk_address_host(to)))
            STK_TRY(p->device->vt->queue.get(p->device, to, from, bytes, err));
    }
    return STK_OK;
}

static stk_status step(stk_program *p, stk_over *o, stk_error *err)
{
    int64_t row = o->row;
    for (int32_t i = 0; i < p->nfeeds; i++) STK_TRY(stk_call_input(p, i, input_of(o, i), err));
    STK_TRY(bind_results(p, o, err));
    STK_TRY(stk_program_run(p, 1, err));
    return copy_results(p, o, row, err);
}

/* Results that nobody collects need a place, and the last of them are shown. */
static stk_status make_last(const stk_program *p, stk_over *o, stk_error *err)
{
    drop(o->last, o->nlast);
    o->nlast = p->nfetches;
    o->last = stk_calloc((size_t)o->nlast + 1, sizeof *o->last);
    if (!o->last) return stk_fail_memory(err, "stk_program_over", 0);
    for (int32_t i = 0; i < o->nlast; i++) {
        const stk_type *t = &p->fetches[i].type;
        STK_TRY(stk_tensor_raw(t->dtype, t->shape.rank, t->shape.dim, &o->last[i], err));
    }
    return STK_OK;
}

static stk_status loop(stk_program *p, stk_over *o, stk_error *err)
{
    int64_t until = o->seconds > 0 ? stk_now_ns() + (int64_t)(o->seconds * 1e9) : INT64_MAX;
    bool end = false;
    for (;;) {
        o->end = STK_OVER_STEPS;
        if (o->steps && o->done >= o->steps) return STK_OK;
        stk_trace_step(1); /* a round: the element, the program */
        uint64_t waited = stk_trace_start();
        STK_TRY(stk_over_peek(o, &end, err));
        stk_trace_span(waited, "over.input", 0);
        o->end = STK_OVER_DATA;
        if (end) return STK_OK;
        o->end = STK_OVER_SHAPE;
        if (!fits(p, o)) return STK_OK;
        stk_status status = step(p, o, err);
        stk_call_forget(p);
        drop_part(o);
        if (status != STK_OK) return status;
        o->done++;
        o->end = STK_OVER_TIME;
        if (until != INT64_MAX && stk_now_ns() >= until) return STK_OK;
    }
}

stk_status stk_program_over(stk_program *p, stk_over *o, stk_error *err)
{
    if (!p || !o || !o->stream)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_program_over: a program and a stream are needed");
    STK_TRY(check(p, o, err));
    STK_TRY(make_last(p, o, err));
    stk_status status = loop(p, o, err);
    stk_trace_step(1); /* the end of the last round */
    stk_trace_step_break();
    return status;
}
