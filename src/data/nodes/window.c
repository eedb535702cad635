/* window - elements i * shift + k * stride, k = 0 .. size - 1, stacked as element i, or as datasets. Without
 * drop_remainder the last windows are shorter. */
#include "data/core/nested.h"

#include <stdio.h>
#include <string.h>

typedef struct window {
    int64_t size, shift, stride;
    bool drop_remainder;
    stk_schema **leaves; /* of the datasets; NULL: stacked */
} window;

static void drop(stk_dataset *ds)
{
    stk_leaves_release(ds->ninputs ? ds->inputs[0]->schema->n : 0, ((window *)ds->config)->leaves);
}

static void describe(const stk_dataset *ds, char *text, size_t size)
{
    const window *c = ds->config;
    snprintf(text, size, "size %lld, shift %lld, stride %lld%s%s", (long long)c->size,
             (long long)c->shift, (long long)c->stride, c->drop_remainder ? ", drop_remainder" : "",
             c->leaves ? ", datasets" : "");
}

/* n elements, parts[e * width + i], as one. */
static stk_status put_together(stk_stage *stage, int64_t n, stk_tensor *const *elements,
                               stk_tensor **parts, stk_error *err)
{
    const window *c = stage->ds->config;
    int32_t width = stage->ds->schema->n;
    if (c->leaves) return stk_nested_new(width, c->leaves, n, elements, parts, err);
    return stk_stack(stage->run, "window", width, n, elements, parts, err);
}

/* ---- by number ------------------------------------------------------------------------------------- */
static stk_status get_each(stk_stage *stage, uint64_t epoch, int64_t first, int64_t n,
                           stk_tensor **parts, stk_error *err)
{
    const window *c = stage->ds->config;
    stk_tensor **elements = NULL;
    STK_TRY(stk_stage_elements(stage->in[0], "window", epoch, first, c->stride, n, &elements, err));
    stk_status status = put_together(stage, n, elements, parts, err);
    stk_elements_free(n * stage->ds->schema->n, elements);
    return status;
}

static stk_status get_rows(stk_stage *stage, uint64_t epoch, int64_t first, int64_t n,
                           stk_tensor **parts, stk_error *err)
{
    const window *c = stage->ds->config;
    stk_stage *in = stage->in[0];
    int64_t *there = stk_calloc((size_t)n, sizeof *there);
    if (!there) return stk_fail_memory(err, "window", (size_t)n * sizeof *there);
    for (int64_t i = 0; i < n; i++) there[i] = first + i * c->stride;
    stk_status status = stk_slots_new(stage->run, in->ds->schema, n, parts, err);
    if (status == STK_OK) {
        status = stk_stage_rows(in, epoch, n, there, parts, 0, err);
        if (status != STK_OK) stk_parts_release(in->ds->schema->n, parts);
    }
    stk_free(there);
    return status;
}

static stk_status get(stk_stage *stage, uint64_t epoch, int64_t index, stk_tensor **parts,
                      stk_error *err)
{
    const window *c = stage->ds->config;
    stk_stage *in = stage->in[0];
    int64_t first = index * c->shift, total = in->ds->cardinality, n = c->size;
    if (total >= 0) n = stk_min_i64(n, (total - first - 1) / c->stride + 1);
    if (c->leaves) return get_each(stage, epoch, first, n, parts, err);
    if (c->stride == 1) STK_TRY(stk_stage_slice(in, epoch, first, n, parts, err));
    if (in->ds->schema->n && parts[0]) return STK_OK;
    bool fixed = stk_schema_fixed(in->ds->schema);
    return (fixed ? get_rows : get_each)(stage, epoch, first, n, parts, err);
}

/* ---- in order: what is held begins at the window's first element ------------------------------------------ */
typedef struct sliding {
    stk_iter *in;
    stk_element_list held;
    int64_t skip; /* elements between two windows, still to be dropped */
    bool ended;
    stk_tensor **parts;
} sliding;

static stk_status open(stk_iter *it, stk_error *err)
{
    sliding *own = it->own;
    own->held = (stk_element_list){.width = it->stage->ds->schema->n, .stage = it->stage};
    own->parts = stk_parts_new(own->held.width);
    if (!own->parts) return stk_fail_memory(err, "window", 64);
    return stk_iter_open(it->stage->in[0], it->epoch, &own->in, err);
}

static stk_status fill(stk_iter *it, int64_t span, stk_error *err)
{
    sliding *own = it->own;
    while (!own->ended && own->held.count < span) {
        stk_status status = stk_iter_next(own->in, own->parts, &own->ended, err);
        if (own->ended) break;
        STK_TRY(status);
        if (own->skip > 0) {
            own->skip--;
            stk_parts_release(own->held.width, own->parts);
            continue;
        }
        status = stk_element_list_add(&own->held, own->parts, err);
        if (status != STK_OK) {
            stk_parts_release(own->held.width, own->parts);
            return status;
        }
    }
    return STK_OK;
}

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    sliding *own = it->own;
    const window *c = it->stage->ds->config;
    int64_t span = (c->size - 1) * c->stride + 1;
    int32_t width = own->held.width;
    STK_TRY(fill(it, span, err));
    *end = own->held.count == 0 || (c->drop_remainder && own->held.count < span);
    if (*end) return STK_OK;
    int64_t n = stk_min_i64(c->size, (own->held.count - 1) / c->stride + 1);
    stk_tensor **chosen = stk_parts_new(n * width);
    if (!chosen) return stk_fail_memory(err, "window", (size_t)(n * width) * 8);
    for (int64_t i = 0; i < n; i++)
        memcpy(chosen + i * width, own->held.parts + i * c->stride * width,
               (size_t)width * sizeof *chosen);
    stk_status status = put_together(it->stage, n, chosen, parts, err);
    stk_free(chosen);
    int64_t gone = stk_min_i64(c->shift, own->held.count);
    stk_element_list_drop(&own->held, gone);
    own->skip = c->shift - gone;
    return status;
}

static stk_status save(stk_iter *it, stk_state *out, stk_error *err)
{
    sliding *own = it->own;
    stk_state_put(out, own->skip);
    stk_state_put(out, own->ended);
    stk_element_list_save(&own->held, out);
    return stk_iter_save(own->in, out, err);
}

static stk_status restore(stk_iter *it, stk_state *in, stk_error *err)
{
    sliding *own = it->own;
    own->skip = stk_state_get_in(in, 0, INT64_MAX);
    own->ended = stk_state_get_in(in, 0, 1);
    STK_TRY(stk_element_list_restore(&own->held, in, err));
    return stk_iter_restore(own->in, in, err);
}

static void close(stk_iter *it)
{
    sliding *own = it->own;
    stk_element_list_release(&own->held);
    stk_free(own->parts);
    stk_iter_close(own->in);
}

static const stk_walk walk = {sizeof(sliding), open, next, save, restore, close};

const stk_node_kind stk_node_window = {.name = "window",
                                       .drop = drop,
                                       .describe = describe,
                                       .get = get,
                                       .walk = &walk,
                                       .steady = stk_always_steady,
                                       .passes = true};

static stk_status announce(stk_dataset *ds, bool nested, stk_error *err)
{
    window *c = ds->config;
    const stk_dataset *in = ds->inputs[0];
    stk_schema *schema = NULL;
    bool whole = c->drop_remainder || in->cardinality == STK_INFINITE;
    STK_TRY(stk_schema_tensors("window", in->schema, err));
    if (nested) {
        STK_TRY(stk_leaves_new(in->schema, &c->leaves, err));
        STK_TRY(stk_schema_nested(in->schema, &schema, err));
    } else {
        STK_TRY(stk_schema_batched(in->schema, whole ? c->size : -1, &schema, err));
    }
    stk_dataset_set_schema(ds, schema);
    return STK_OK;
}

static stk_dataset *make(stk_dataset *in, int64_t size, int64_t shift, int64_t stride,
                         bool drop_remainder, bool nested, stk_error *err)
{
    enum { MOST = 1 << 28 };
    if (shift <= 0) shift = size;
    if (in && (size < 1 || stride < 1 || size > MOST || stride > MOST || shift > MOST)) {
        (void)stk_fail(err, STK_ERR_RANGE,
                       "window: size %lld, shift %lld, stride %lld; all must be 1 or more",
                       (long long)size, (long long)shift, (long long)stride);
        stk_dataset_release(in);
        return NULL;
    }
    stk_dataset *ds = stk_dataset_make(&stk_node_window, 1, &in, sizeof(window), err);
    if (!ds) return NULL;
    *(window *)ds->config = (window){size, shift, stride, drop_remainder, NULL};
    int64_t n = in->cardinality, span = (size - 1) * stride + 1;
    if (n >= 0)
        ds->cardinality =
            drop_remainder ? (n >= span ? (n - span) / shift + 1 : 0) : stk_ceil_div(n, shift);
    return stk_dataset_done(ds, announce(ds, nested, err));
}

stk_dataset *stk_data_window(stk_dataset *in, int64_t size, int64_t shift, int64_t stride,
                             bool drop_remainder, stk_error *err)
{
    return make(in, size, shift, stride, drop_remainder, false, err);
}

stk_dataset *stk_data_window_nested(stk_dataset *in, int64_t size, int64_t shift, int64_t stride,
                                    bool drop_remainder, stk_error *err)
{
    return make(in, size, shift, stride, drop_remainder, true, err);
}
