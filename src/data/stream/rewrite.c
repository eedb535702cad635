/* Plans: each node is looked at once its inputs are rewritten.
 *
 *     what does nothing               left out                              take(-1), skip(0), repeat(1), options ...
 *     prefetch, prefetch              the outer one
 *     map, map                        one map of both; functions of one family (`fuse`) become one function
 *     map, batch                      batch, map over whole batches         elementwise functions on small elements
 *
 * The rest is in the nodes: a batch has its workers write a map's elements into its rows, and shuffle and repeat by
 * number are one computation of an index. Elements, order and random bits stay as they are. */
#include "data/stream/rewrite.h"
#include "data/nodes/kinds.h"

#include "data/nodes/map.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SMALL = 16 << 10, MOST_FNS = 64 };

void stk_notes_add(stk_notes *t, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length >= 0 && t->size + (size_t)length + 1 > t->capacity && !t->failed) {
        size_t larger = (t->size + (size_t)length + 1) * 2;
        char *grown = stk_realloc(t->data, t->capacity, larger);
        t->failed = !grown;
        if (grown) {
            t->data = grown;
            t->capacity = larger;
        }
    }
    if (length >= 0 && !t->failed) {
        vsnprintf(t->data + t->size, t->capacity - t->size, format, again);
        t->size += (size_t)length;
    }
    va_end(again);
}

#define NOTE(...)                                                                                  \
    do {                                                                                           \
        if (notes) stk_notes_add(notes, __VA_ARGS__);                                              \
    } while (0)

/* ---- functions of one family ---------------------------------------------------------------------- */
static stk_status fuse_pair(stk_fn *a, stk_fn *b, const stk_schema *in, stk_fn **out,
                            stk_error *err)
{
    *out = NULL;
    stk_map_fn fn = {0};
    if (!a->fn.fuse || a->fn.fuse != b->fn.fuse ||
        !a->fn.fuse(&a->fn, &b->fn, (uint64_t[2]){a->seed, b->seed}, &fn))
        return STK_OK;
    STK_TRY(stk_fn_new("map", &fn, in, a->seed, out, err));
    (*out)->fused = true;
    (*out)->first = stk_fn_retain(a);
    (*out)->second = stk_fn_retain(b);
    if (!stk_schema_equal((*out)->output, b->output)) { /* a family that cannot do this one */
        stk_fn_release(*out);
        *out = NULL;
    }
    return STK_OK;
}

/* ---- map, map ------------------------------------------------------------------------------------------ */
static stk_status join_maps(stk_dataset *outer, stk_dataset *in, stk_notes *notes,
                            stk_dataset **out, stk_error *err)
{
    const stk_map_config *a = in->config, *b = outer->config;
    stk_dataset *source = in->inputs[0];
    stk_fn *fns[MOST_FNS] = {0};
    int32_t n = 0;
    stk_status status = STK_OK;
    for (int32_t i = 0; i < a->n; i++) fns[n++] = stk_fn_retain(a->fns[i]);
    for (int32_t i = 0; i < b->n && status == STK_OK; i++) {
        stk_fn *both = NULL;
        const stk_schema *given = n > 1 ? fns[n - 2]->output : source->schema;
        status = fuse_pair(fns[n - 1], b->fns[i], given, &both, err);
        if (both) {
            NOTE("  %s + %s: one function, one pass over the element\n", fns[n - 1]->name,
                 b->fns[i]->name);
            stk_fn_release(fns[n - 1]);
            fns[n - 1] = both;
        } else {
            fns[n++] = stk_fn_retain(b->fns[i]);
        }
    }
    if (status == STK_OK) {
        stk_map_options o = b->options;
        *out = stk_map_node(stk_dataset_retain(source), n, fns, &o, 0, err);
        if (!*out)
            status = STK_ERR_MEMORY;
        else
            (*out)->salt = outer->salt;
        NOTE("  map + map: one map, intermediate results stay in the worker\n");
    }
    for (int32_t i = 0; i < n; i++) stk_fn_release(fns[i]);
    return status;
}

static bool maps_join(const stk_dataset *outer, const stk_dataset *in)
{
    if (outer->kind != &stk_node_map || in->kind != &stk_node_map) return false;
    const stk_map_config *a = in->config, *b = outer->config;
    bool plain = !a->serial && !b->serial && !a->batch && !b->batch && !a->options.unordered &&
                 !b->options.unordered;
    bool alike = a->options.parallel == b->options.parallel;
    return plain && alike && a->n + b->n <= MOST_FNS;
}

/* ---- map, batch: whole batches -------------------------------------------------------------------------- */
static int64_t element_bytes(const stk_schema *schema)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < schema->n; i++) {
        int64_t b = stk_field_bytes(&schema->fields[i]);
        if (b < 0) return INT64_MAX;
        bytes += b;
    }
    return bytes;
}

static bool vectorises(const stk_dataset *batch, const stk_dataset *map)
{
    if (batch->kind != &stk_node_batch || map->kind != &stk_node_map) return false;
    const stk_map_config *c = map->config;
    bool good = !c->serial && !c->batch && !c->options.unordered &&
                element_bytes(map->inputs[0]->schema) <= SMALL &&
                element_bytes(map->schema) <= SMALL;
    for (int32_t i = 0; i < c->n && good; i++)
        good = c->fns[i]->fn.batch || (c->fns[i]->fn.flags & STK_MAP_ELEMENTWISE);
    return good;
}

static stk_status vectorise(stk_dataset *batch, stk_dataset *map, stk_notes *notes,
                            stk_dataset **out, stk_error *err)
{
    const stk_map_config *c = map->config;
    const stk_batch_config *b = batch->config;
    stk_dataset *rows =
        stk_data_batch(stk_dataset_retain(map->inputs[0]), b->size, b->drop_remainder, err);
    *out = rows ? stk_map_node(rows, c->n, c->fns, &c->options, b->size, err) : NULL;
    if (!*out) return STK_ERR_MEMORY;
    stk_dataset_set_schema(*out, stk_schema_retain(batch->schema));
    (*out)->salt = batch->salt;
    NOTE("  map + batch: batch first, %s on whole batches of %lld\n", c->fns[0]->name,
         (long long)b->size);
    return STK_OK;
}

/* ---- the walk over the tree ------------------------------------------------------------------------------- */
static void note_structure(const stk_dataset *ds, stk_notes *notes)
{
    if (!notes || !ds->ninputs) return;
    const stk_dataset *in = ds->inputs[0];
    if (ds->kind == &stk_node_batch && in->kind == &stk_node_map)
        NOTE("  map + batch: workers write elements straight into the rows of the batch\n");
    if (ds->kind == &stk_node_repeat && in->kind == &stk_node_shuffle && ds->random)
        NOTE("  shuffle + repeat: one computation of an index, no drain between epochs\n");
}

static stk_status rewrite(stk_dataset *ds, bool fuse, stk_notes *notes, stk_dataset **out,
                          stk_error *err);

static stk_status rewrite_inputs(stk_dataset *ds, bool fuse, stk_notes *notes, stk_dataset **out,
                                 stk_error *err)
{
    stk_dataset **in = stk_calloc((size_t)ds->ninputs + 1, sizeof *in);
    if (!in) return stk_fail_memory(err, "plan", 64);
    stk_status status = STK_OK;
    bool same = true;
    for (int32_t i = 0; i < ds->ninputs && status == STK_OK; i++) {
        status = rewrite(ds->inputs[i], fuse, notes, &in[i], err);
        same &= in[i] == ds->inputs[i];
    }
    if (status == STK_OK && !same) {
        *out = stk_dataset_over(ds, in, err); /* takes the inputs over */
        status = *out ? STK_OK : STK_ERR_MEMORY;
    } else {
        if (status == STK_OK) *out = stk_dataset_retain(ds);
        for (int32_t i = 0; i < ds->ninputs; i++) stk_dataset_release(in[i]);
    }
    stk_free(in);
    return status;
}

static stk_status rewrite(stk_dataset *ds, bool fuse, stk_notes *notes, stk_dataset **out,
                          stk_error *err)
{
    stk_dataset *node = NULL, *better = NULL;
    *out = NULL;
    if (ds->kind->idle && ds->kind->idle(ds)) {
        if (strcmp(ds->kind->name, "options") != 0)
            NOTE("  %s: does nothing, left out\n", ds->kind->name);
        return rewrite(ds->inputs[0], fuse, notes, out, err);
    }
    STK_TRY(rewrite_inputs(ds, fuse, notes, &node, err));
    stk_dataset *in = node->ninputs ? node->inputs[0] : NULL;
    stk_status status = STK_OK;
    if (in && fuse && maps_join(node, in))
        status = join_maps(node, in, notes, &better, err);
    else if (in && fuse && vectorises(node, in))
        status = vectorise(node, in, notes, &better, err);
    else if (in && node->kind == &stk_node_prefetch && in->kind == &stk_node_prefetch) {
        stk_dataset *below = stk_dataset_retain(in->inputs[0]);
        better = stk_dataset_over(node, &below, err);
        status = better ? STK_OK : STK_ERR_MEMORY;
        NOTE("  prefetch + prefetch: one\n");
    } else {
        note_structure(node, notes);
    }
    if (status == STK_OK && better) {
        stk_dataset_release(node);
        node = better;
    }
    if (status != STK_OK)
        stk_dataset_release(node);
    else
        *out = node;
    return status;
}

stk_status stk_plan_make(stk_dataset *ds, const stk_stream_options *options, stk_notes *notes,
                         stk_dataset **plan, stk_error *err)
{
    if (options->rewrite) return rewrite(ds, true, notes, plan, err);
    *plan = stk_dataset_retain(ds);
    return STK_OK;
}

static uint64_t mix_text(uint64_t h, const char *text)
{
    for (; *text; text++) h = stk_seed_mix(h, (uint64_t)(unsigned char)*text);
    return h;
}

uint64_t stk_plan_fingerprint(const stk_dataset *ds)
{
    char text[256] = "";
    uint64_t h = mix_text(ds->salt, ds->kind->name);
    if (ds->kind->describe) ds->kind->describe(ds, text, sizeof text);
    h = mix_text(h, text);
    h = mix_text(h, stk_schema_describe(ds->schema, text, sizeof text));
    for (int32_t i = 0; i < ds->ninputs; i++)
        h = stk_seed_mix(h, stk_plan_fingerprint(ds->inputs[i]));
    return h;
}
