/* bucket_by_sequence_length - elements of similar length batched together and padded. A bucket is handed out when it
 * is full; what is left at the end comes by rising length. */
#include "data/core/element_list.h"
#include "data/nodes/pad.h"

#include <stdio.h>
#include <string.h>

typedef struct buckets {
    stk_fn *length;
    int32_t n;           /* buckets: boundaries + 1 */
    int64_t *boundaries; /* n - 1; bucket b holds boundaries[b - 1] <= length < boundaries[b] */
    int64_t *sizes;      /* n */
    bool drop_remainder, to_boundary;
    stk_pads pads;
} buckets;

static void drop(stk_dataset *ds)
{
    buckets *c = ds->config;
    stk_fn_release(c->length);
    stk_free(c->boundaries);
    stk_free(c->sizes);
    stk_pads_release(&c->pads);
}

static void describe(const stk_dataset *ds, char *text, size_t size)
{
    const buckets *c = ds->config;
    snprintf(text, size, "%d buckets by %s%s", (int)c->n, c->length->name,
             c->drop_remainder ? ", drop_remainder" : "");
}

typedef struct sorting {
    stk_iter *in;
    stk_element_list *held; /* n */
    int64_t seen;
    bool ended;
    stk_tensor **parts;
} sorting;

static stk_status open(stk_iter *it, stk_error *err)
{
    sorting *own = it->own;
    const buckets *c = it->stage->ds->config;
    int32_t width = it->stage->ds->schema->n;
    own->held = stk_calloc((size_t)c->n, sizeof *own->held);
    own->parts = stk_parts_new(width);
    if (!own->held || !own->parts) return stk_fail_memory(err, "bucket_by_sequence_length", 64);
    for (int32_t b = 0; b < c->n; b++)
        own->held[b] = (stk_element_list){.width = width, .stage = it->stage};
    return stk_iter_open(it->stage->in[0], it->epoch, &own->in, err);
}

static stk_status bucket_of(stk_iter *it, int32_t *bucket, int64_t *length, stk_error *err)
{
    sorting *own = it->own;
    const buckets *c = it->stage->ds->config;
    stk_tensor *answer = NULL;
    STK_TRY(stk_fn_call(c->length, it->epoch, own->seen - 1, own->parts, &answer, err));
    *length = (int64_t)stk_tensor_at(answer, 0);
    stk_tensor_release(answer);
    for (*bucket = 0; *bucket < c->n - 1 && *length >= c->boundaries[*bucket];) ++*bucket;
    return STK_OK;
}

/* pad_to_bucket_boundary: unknown sizes become the bucket's largest length, boundary - 1. */
static stk_status hand_out(stk_iter *it, int32_t b, stk_tensor **parts, stk_error *err)
{
    sorting *own = it->own;
    const buckets *c = it->stage->ds->config;
    stk_element_list *h = &own->held[b];
    stk_pads pads = c->pads;
    stk_field *fields = NULL;
    if (c->to_boundary) {
        if (b == c->n - 1)
            return stk_fail(
                err, STK_ERR_RANGE,
                "bucket_by_sequence_length: an element is longer than the last boundary %lld, so "
                "there is nothing to pad it to; add a boundary or filter it out",
                (long long)c->boundaries[c->n - 2]);
        fields = stk_calloc((size_t)pads.n + 1, sizeof *fields);
        if (!fields) return stk_fail_memory(err, "bucket_by_sequence_length", 64);
        memcpy(fields, pads.fields, (size_t)pads.n * sizeof *fields);
        for (int32_t i = 0; i < pads.n; i++)
            for (int32_t k = 0; k < fields[i].rank; k++)
                if (fields[i].shape[k] < 0) fields[i].shape[k] = c->boundaries[b] - 1;
        pads.fields = fields;
    }
    stk_status status = stk_pad_stack(it->stage->run, "bucket_by_sequence_length", &pads, h->count,
                                      h->parts, parts, err);
    stk_element_list_clear(h);
    stk_free(fields);
    return status;
}

static stk_status rest(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    sorting *own = it->own;
    const buckets *c = it->stage->ds->config;
    for (int32_t b = 0; b < c->n && !c->drop_remainder; b++)
        if (own->held[b].count) return hand_out(it, b, parts, err);
    *end = true;
    return STK_OK;
}

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    sorting *own = it->own;
    const buckets *c = it->stage->ds->config;
    while (!own->ended) {
        stk_status status = stk_iter_next(own->in, own->parts, &own->ended, err);
        if (own->ended) break;
        own->seen++;
        STK_TRY(status);
        int32_t b = 0;
        int64_t length;
        status = bucket_of(it, &b, &length, err);
        if (status == STK_OK) status = stk_element_list_add(&own->held[b], own->parts, err);
        stk_parts_release(it->stage->ds->schema->n, own->parts);
        STK_TRY(status);
        if (own->held[b].count == c->sizes[b]) return hand_out(it, b, parts, err);
    }
    return rest(it, parts, end, err);
}

static stk_status save(stk_iter *it, stk_state *out, stk_error *err)
{
    sorting *own = it->own;
    const buckets *c = it->stage->ds->config;
    stk_state_put(out, own->seen);
    stk_state_put(out, own->ended);
    for (int32_t b = 0; b < c->n; b++) stk_element_list_save(&own->held[b], out);
    return stk_iter_save(own->in, out, err);
}

static stk_status restore(stk_iter *it, stk_state *in, stk_error *err)
{
    sorting *own = it->own;
    const buckets *c = it->stage->ds->config;
    own->seen = stk_state_get_in(in, 0, INT64_MAX);
    own->ended = stk_state_get_in(in, 0, 1);
    for (int32_t b = 0; b < c->n; b++) STK_TRY(stk_element_list_restore(&own->held[b], in, err));
    return stk_iter_restore(own->in, in, err);
}

static void close(stk_iter *it)
{
    sorting *own = it->own;
    const buckets *c = it->stage->ds->config;
    for (int32_t b = 0; own->held && b < c->n; b++) stk_element_list_release(&own->held[b]);
    stk_free(own->held);
    stk_free(own->parts);
    stk_iter_close(own->in);
}

static const stk_walk walk = {sizeof(sorting), open, next, save, restore, close};

static bool steady(const stk_dataset *ds)
{
    return stk_fn_is_pure(((const buckets *)ds->config)->length);
}

const stk_node_kind stk_node_bucket = {.name = "bucket_by_sequence_length",
                                       .drop = drop,
                                       .describe = describe,
                                       .walk = &walk,
                                       .steady = steady,
                                       .passes = true};

static stk_status fill(stk_dataset *ds, const stk_bucket_options *o, stk_error *err)
{
    buckets *c = ds->config;
    bool good = o->n >= 1 && o->boundaries && o->sizes;
    for (int32_t i = 0; good && i < o->n; i++)
        good = o->sizes[i] > 0 && (i == 0 || o->boundaries[i] > o->boundaries[i - 1]);
    if (!good || o->sizes[o->n] < 1)
        return stk_fail(
            err, STK_ERR_ARGUMENT,
            "bucket_by_sequence_length: it takes rising boundaries and one batch size more than "
            "boundaries, each 1 or more");
    c->n = o->n + 1;
    c->drop_remainder = o->drop_remainder;
    c->to_boundary = o->pad_to_bucket_boundary;
    c->boundaries = stk_calloc((size_t)c->n, sizeof *c->boundaries);
    c->sizes = stk_calloc((size_t)c->n, sizeof *c->sizes);
    if (!c->boundaries || !c->sizes) return stk_fail_memory(err, "bucket_by_sequence_length", 64);
    memcpy(c->boundaries, o->boundaries, (size_t)o->n * sizeof *c->boundaries);
    memcpy(c->sizes, o->sizes, (size_t)c->n * sizeof *c->sizes);
    const stk_schema *in = ds->inputs[0]->schema;
    STK_TRY(stk_pads_make("bucket_by_sequence_length", in, o->padded_shapes, o->padding_values,
                          &c->pads, err));
    stk_schema *schema = NULL, given = {c->pads.n, c->pads.fields, in->structure};
    STK_TRY(stk_schema_batched(&given, -1, &schema, err));
    stk_dataset_set_schema(ds, schema);
    return STK_OK;
}

stk_dataset *stk_data_bucket_by_sequence_length(stk_dataset *in, const stk_map_fn *length,
                                                const stk_bucket_options *options, stk_error *err)
{
    stk_fn *f = NULL;
    stk_dataset *ds =
        stk_dataset_asking(&stk_node_bucket, in, length, STK_I64, sizeof(buckets), &f, err);
    if (!ds) return NULL;
    ((buckets *)ds->config)->length = f;
    return stk_dataset_done(ds, fill(ds, options, err));
}
