/* batch - elements stacked along a new first axis. By number: neighbours of a memory source are a view, anything else
 * is written straight into the rows of a reused batch. In order: a parallel map below is taken over, so that workers
 * map a batch's elements into its rows; other inputs are read and stacked. */
#include "data/core/element_list.h"
#include "data/nodes/map.h"
#include "data/workers/marks.h"
#include "data/workers/ring.h"
#include "data/workers/tune.h"

#include <stdio.h>
#include <string.h>

typedef stk_batch_config batch;

enum { INDICES = 512 };

static void describe(const stk_dataset *ds, char *text, size_t size)
{
    const batch *c = ds->config;
    snprintf(text, size, "%lld%s", (long long)c->size, c->drop_remainder ? ", drop_remainder" : "");
}

/* ---- by number --------------------------------------------------------------------------------------- */
static stk_status fill_slots(stk_stage *in, uint64_t epoch, int64_t first, int64_t n,
                             stk_tensor **parts, stk_error *err)
{
    STK_TRY(stk_slots_new(in->run, in->ds->schema, n, parts, err));
    int64_t index[INDICES];
    for (int64_t row = 0; row < n; row += INDICES) {
        int64_t count = stk_min_i64(INDICES, n - row);
        for (int64_t i = 0; i < count; i++) index[i] = first + row + i;
        stk_status status = stk_stage_rows(in, epoch, count, index, parts, row, err);
        if (status != STK_OK) {
            stk_parts_release(in->ds->schema->n, parts);
            return status;
        }
    }
    return STK_OK;
}

/* Sizes are not known before: all elements first, then one batch of them. */
static stk_status fill_later(stk_stage *in, uint64_t epoch, int64_t first, int64_t n,
                             stk_tensor **parts, stk_error *err)
{
    stk_tensor **elements = NULL;
    int32_t width = in->ds->schema->n;
    STK_TRY(stk_stage_elements(in, "batch", epoch, first, 1, n, &elements, err));
    stk_status status = stk_stack(in->run, "batch", width, n, elements, parts, err);
    stk_elements_free(n * width, elements);
    return status;
}

static stk_status get(stk_stage *stage, uint64_t epoch, int64_t index, stk_tensor **parts,
                      stk_error *err)
{
    const batch *c = stage->ds->config;
    stk_stage *in = stage->in[0];
    int64_t first = index * c->size, n = c->size;
    if (in->ds->cardinality >= 0) n = stk_min_i64(n, in->ds->cardinality - first);
    STK_TRY(stk_stage_slice(in, epoch, first, n, parts, err));
    if (in->ds->schema->n && parts[0]) return STK_OK;
    bool fixed = stk_schema_fixed(in->ds->schema);
    return (fixed ? fill_slots : fill_later)(in, epoch, first, n, parts, err);
}

/* ---- in order ------------------------------------------------------------------------------------------ */
typedef struct batching {
    stk_stage *map; /* whose functions the items apply; NULL: none */
    stk_iter *in;
    stk_marks marks;
    stk_ring *ring;
    int64_t pulled; /* elements */
    bool ended;
} batching;

typedef struct load {
    stk_tensor **in, **out;
    int64_t count, first;
    bool failed;
} load;

static stk_stage *source_of(const batching *own) { return own->in->stage; }

static stk_status map_rows(stk_iter *it, load *l, stk_error *err)
{
    batching *own = it->own;
    int32_t width = source_of(own)->ds->schema->n, wide = it->stage->ds->schema->n;
    STK_TRY(stk_slots_new(it->stage->run, own->map->ds->schema, l->count, l->out, err));
    stk_status status = STK_OK;
    for (int64_t i = 0; i < l->count && status == STK_OK; i++)
        status =
            stk_map_apply_row(own->map, it->epoch, l->first + i, l->in + i * width, l->out, i, err);
    if (status != STK_OK) stk_parts_release(wide, l->out);
    return status;
}

static stk_status map_and_stack(stk_iter *it, load *l, stk_error *err)
{
    batching *own = it->own;
    int32_t width = source_of(own)->ds->schema->n, wide = it->stage->ds->schema->n;
    stk_tensor **made = stk_parts_new(l->count * wide);
    if (!made) return stk_fail_memory(err, "batch", (size_t)(l->count * wide) * sizeof *made);
    stk_status status = STK_OK;
    for (int64_t i = 0; i < l->count && status == STK_OK; i++)
        status = stk_map_apply(own->map, it->epoch, l->first + i, l->in + i * width,
                               made + i * wide, err);
    if (status == STK_OK)
        status = stk_stack(it->stage->run, "batch", wide, l->count, made, l->out, err);
    stk_parts_release(l->count * wide, made);
    stk_free(made);
    return status;
}

static void work(void *context, stk_ring_item *item)
{
    stk_iter *it = context;
    batching *own = it->own;
    load *l = (load *)item->data;
    int32_t width = source_of(own)->ds->schema->n, wide = it->stage->ds->schema->n;
    int64_t held = stk_parts_bytes(l->count * width, l->in);
    if (!l->failed && !own->map)
        item->status =
            stk_stack(it->stage->run, "batch", width, l->count, l->in, l->out, &item->error);
    else if (!l->failed && stk_schema_fixed(own->map->ds->schema))
        item->status = map_rows(it, l, &item->error);
    else if (!l->failed)
        item->status = map_and_stack(it, l, &item->error);
    stk_parts_release(l->count * width, l->in);
    int64_t bytes = 0;
    for (int32_t i = 0; i < wide && item->status == STK_OK; i++)
        bytes += stk_tensor_bytes(l->out[i]);
    stk_stage_saw(it->stage, bytes + held);
    __atomic_add_fetch(&it->stage->count.bytes, bytes, __ATOMIC_RELAXED);
}

static void clean(stk_ring_item *item)
{
    load *l = (load *)item->data;
    stk_iter *it = stk_ring_context(item->ring);
    const batch *c = it->stage->ds->config;
    stk_parts_release(c->size * source_of(it->own)->ds->schema->n, l->in);
    stk_parts_release(it->stage->ds->schema->n, l->out);
    stk_free(l->in);
    stk_free(l->out);
}

static stk_status open(stk_iter *it, stk_error *err)
{
    batching *own = it->own;
    stk_stage *in = it->stage->in[0];
    const stk_map_config *map = in->ds->kind == &stk_node_map ? in->ds->config : NULL;
    bool fuse = map && !map->serial && !map->options.unordered && it->stage->run->options.rewrite &&
                it->stage->run->options.deterministic;
    if (fuse) own->map = in;
    STK_TRY(stk_iter_open(fuse ? in->in[0] : in, it->epoch, &own->in, err));
    return stk_ring_new(it->stage, it, sizeof(load), work, clean, &own->ring, err);
}

/* Reads the elements of one batch. A failing one spoils its batch, not the border of the next. */
static stk_status start_batch(stk_iter *it, stk_error *err)
{
    batching *own = it->own;
    const batch *c = it->stage->ds->config;
    int32_t width = source_of(own)->ds->schema->n;
    STK_TRY(stk_marks_note(&own->marks, own->in, own->pulled, c->size * 4, err));
    stk_ring_item *item = stk_ring_begin(own->ring, err);
    if (!item) return STK_ERR_MEMORY;
    load *l = (load *)item->data;
    if (!l->in) l->in = stk_parts_new(c->size * width);
    if (!l->out) l->out = stk_parts_new(it->stage->ds->schema->n);
    if (!l->in || !l->out) return stk_fail_memory(err, "batch", (size_t)(c->size * width) * 8);
    l->first = own->pulled;
    l->count = 0;
    l->failed = false;
    int64_t seen = 0;
    while (seen < c->size) {
        stk_error error;
        stk_status status = stk_iter_next(own->in, l->in + l->count * width, &own->ended, &error);
        if (own->ended) break;
        seen++;
        own->pulled++;
        if (status == STK_OK)
            l->count++;
        else if (!l->failed) {
            l->failed = true;
            item->status = status;
            item->error = error;
        }
    }
    if (seen == 0 || (seen < c->size && c->drop_remainder)) {
        stk_parts_release(l->count * width, l->in);
        return STK_OK;
    }
    return stk_ring_start(own->ring, item, err);
}

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    batching *own = it->own;
    bool many = own->map && !stk_ring_is_cheap(own->ring);
    int64_t room = many ? stk_tuner_in_flight(it->stage, 1) : 1;
    while (!own->ended && stk_ring_depth(own->ring) < room) STK_TRY(start_batch(it, err));
    *end = stk_ring_depth(own->ring) == 0;
    if (*end) return STK_OK;
    stk_ring_item *item = stk_ring_oldest(own->ring, err);
    if (!item) return STK_ERR_CANCELLED;
    load *l = (load *)item->data;
    if (item->status != STK_OK && err) *err = item->error;
    memcpy(parts, l->out, (size_t)it->stage->ds->schema->n * sizeof *parts);
    memset(l->out, 0, (size_t)it->stage->ds->schema->n * sizeof *parts);
    stk_status status = item->status;
    stk_ring_pop(own->ring, item);
    stk_ring_item *oldest = stk_ring_at(own->ring, 0);
    stk_marks_forget(&own->marks, oldest ? ((load *)oldest->data)->first : own->pulled);
    stk_tuner_tick(it->stage->run);
    return status;
}

static stk_status save(stk_iter *it, stk_state *out, stk_error *err)
{
    batching *own = it->own;
    stk_ring_item *oldest = stk_ring_at(own->ring, 0);
    STK_TRY(stk_marks_note(&own->marks, own->in, own->pulled, 1, err));
    return stk_marks_save(&own->marks, oldest ? ((load *)oldest->data)->first : own->pulled, out,
                          err);
}

static stk_status restore(stk_iter *it, stk_state *in, stk_error *err)
{
    batching *own = it->own;
    return stk_marks_restore(own->in, in, &own->pulled, err);
}

static void close(stk_iter *it)
{
    batching *own = it->own;
    stk_ring_close(own->ring);
    stk_iter_close(own->in);
    stk_marks_release(&own->marks);
}

static const stk_walk walk = {sizeof(batching), open, next, save, restore, close};

const stk_node_kind stk_node_batch = {.name = "batch",
                                      .describe = describe,
                                      .get = get,
                                      .walk = &walk,
                                      .steady = stk_always_steady,
                                      .passes = true};

stk_dataset *stk_data_batch(stk_dataset *in, int64_t size, bool drop_remainder, stk_error *err)
{
    if (in && (size < 1 || size > INT32_MAX)) {
        (void)stk_fail(err, STK_ERR_RANGE, "batch: a size of %lld; it takes 1 or more",
                       (long long)size);
        stk_dataset_release(in);
        return NULL;
    }
    stk_dataset *ds = stk_dataset_make(&stk_node_batch, 1, &in, sizeof(batch), err);
    if (!ds) return NULL;
    *(batch *)ds->config = (batch){size, drop_remainder};
    int64_t n = in->cardinality;
    if (n >= 0) ds->cardinality = drop_remainder ? n / size : stk_ceil_div(n, size);
    if (!in->random && in->parallel != 1) ds->parallel = in->parallel;
    bool whole = drop_remainder || n == STK_INFINITE || (n >= 0 && n % size == 0);
    stk_schema *schema = NULL;
    stk_status status = stk_schema_batched(in->schema, whole ? size : -1, &schema, err);
    if (status == STK_OK) stk_dataset_set_schema(ds, schema);
    return stk_dataset_done(ds, status);
}
