/* map - functions over elements. By number when the input is; otherwise elements are read in order and mapped by
 * workers, ready results being handed out in order, or as they come when `unordered`. */
#include "data/nodes/map.h"

#include "base/tensor.h"
#include "data/core/element_list.h"
#include "data/workers/marks.h"
#include "data/workers/ring.h"
#include "data/workers/tune.h"

#include <stdio.h>
#include <string.h>

enum { FEW = 16, MARK_EVERY = 16 };

static void drop(stk_dataset *ds)
{
    stk_map_config *c = ds->config;
    for (int32_t i = 0; i < c->n; i++) stk_fn_release(c->fns[i]);
    stk_free(c->fns);
}

static void describe(const stk_dataset *ds, char *text, size_t size)
{
    const stk_map_config *c = ds->config;
    size_t at = 0;
    for (int32_t i = 0; i < c->n && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%s", i ? " then " : "", c->fns[i]->name);
    if (c->batch && at < size) at += (size_t)snprintf(text + at, size - at, ", whole batches");
    if (c->options.parallel == STK_AUTOTUNE && at < size)
        at += (size_t)snprintf(text + at, size - at, ", parallel AUTOTUNE");
    else if (c->options.parallel > 1 && at < size)
        at += (size_t)snprintf(text + at, size - at, ", parallel %d", (int)c->options.parallel);
    if (c->options.unordered && at < size) snprintf(text + at, size - at, ", unordered");
}

/* ---- applying ------------------------------------------------------------------------------------- */

/* Function k of the node on one element or batch. Results of known shape get reused memory to be written into. */
static stk_status call_one(stk_stage *stage, int32_t k, uint64_t epoch, int64_t index,
                           stk_tensor *const *in, stk_tensor **out, stk_error *err)
{
    const stk_map_config *c = stage->ds->config;
    stk_fn *fn = c->fns[k];
    int64_t rows = c->batch && in[0] && in[0]->rank ? in[0]->shape[0] : -1;
    int32_t n = fn->output->n;
    bool empty = n && !out[0];
    stk_tensor *made[FEW] = {0};
    if (empty && n <= FEW && stk_schema_fixed(fn->output)) {
        STK_TRY(stk_slots_new(stage->run, fn->output, c->batch ? rows : -1, out, err));
        memcpy(made, out, (size_t)n * sizeof *made);
    }
    stk_status status = c->batch
                            ? stk_fn_call_batch(fn, epoch, index * c->batch, rows, in, out, err)
                            : stk_fn_call(fn, epoch, index, in, out, err);
    for (int32_t i = 0; i < n && i < FEW && status == STK_OK; i++)
        if (out[i] != made[i]) stk_tensor_release(made[i]); /* it put another one in its place */
    if (status == STK_OK && !c->batch) status = stk_schema_check(fn->output, out, err);
    if (status != STK_OK && empty) stk_parts_release(n, out);
    return status;
}

stk_status stk_map_apply(stk_stage *stage, uint64_t epoch, int64_t index, stk_tensor *const *in,
                         stk_tensor **out, stk_error *err)
{
    const stk_map_config *c = stage->ds->config;
    if (c->n == 1) return call_one(stage, 0, epoch, index, in, out, err);
    int32_t most = 0;
    for (int32_t k = 0; k + 1 < c->n; k++)
        if (c->fns[k]->output->n > most) most = c->fns[k]->output->n;
    stk_tensor *few[2 * FEW] = {0}, **room = most <= FEW ? few : stk_parts_new(2 * (int64_t)most);
    if (!room) return stk_fail_memory(err, "map", (size_t)most * 2 * sizeof *room);
    stk_tensor **now = room, **next = room + (most <= FEW ? FEW : most);
    stk_status status = call_one(stage, 0, epoch, index, in, now, err);
    for (int32_t k = 1; k < c->n && status == STK_OK; k++) {
        bool last = k + 1 == c->n;
        status = call_one(stage, k, epoch, index, now, last ? out : next, err);
        stk_parts_release(c->fns[k - 1]->output->n, now);
        stk_tensor **swap = now;
        now = next;
        next = swap;
    }
    if (room != few) stk_free(room);
    return status;
}

stk_status stk_map_apply_row(stk_stage *stage, uint64_t epoch, int64_t index, stk_tensor *const *in,
                             stk_tensor *const *slots, int64_t row, stk_error *err)
{
    int32_t n = stage->ds->schema->n;
    stk_tensor views[FEW], *out[FEW];
    if (n > FEW) {
        stk_tensor **made = stk_parts_new(n);
        if (!made) return stk_fail_memory(err, "map", (size_t)n * sizeof *made);
        stk_status status = stk_map_apply(stage, epoch, index, in, made, err);
        for (int32_t i = 0; i < n && status == STK_OK; i++)
            status = stk_slot_put("batch", slots[i], row, made[i], err);
        stk_parts_release(n, made);
        stk_free(made);
        return status;
    }
    for (int32_t i = 0; i < n; i++) {
        stk_row_view(slots[i], row, &views[i]);
        out[i] = &views[i];
    }
    stk_status status = stk_map_apply(stage, epoch, index, in, out, err);
    for (int32_t i = 0; i < n; i++) {
        if (out[i] == &views[i]) continue; /* written in place */
        if (status == STK_OK) status = stk_slot_put("batch", slots[i], row, out[i], err);
        stk_tensor_release(out[i]);
    }
    return status;
}

/* ---- by number ------------------------------------------------------------------------------------- */
static stk_status get(stk_stage *stage, uint64_t epoch, int64_t index, stk_tensor **parts,
                      stk_error *err)
{
    int32_t n = stage->in[0]->ds->schema->n;
    stk_tensor *few[FEW], **in = n <= FEW ? few : stk_parts_new(n);
    if (!in) return stk_fail_memory(err, "map", (size_t)n * sizeof *in);
    stk_status status = stk_stage_get(stage->in[0], epoch, index, in, err);
    if (status == STK_OK) {
        status = stk_map_apply(stage, epoch, index, in, parts, err);
        stk_parts_release(n, in);
    }
    if (in != few) stk_free(in);
    return status;
}

static stk_status rows(stk_stage *stage, uint64_t epoch, int64_t count, const int64_t *index,
                       stk_tensor *const *slots, int64_t row, stk_error *err)
{
    int32_t n = stage->in[0]->ds->schema->n;
    stk_tensor *few[FEW], **in = n <= FEW ? few : stk_parts_new(n);
    if (!in) return stk_fail_memory(err, "map", (size_t)n * sizeof *in);
    stk_status status = STK_OK;
    for (int64_t i = 0; i < count && status == STK_OK; i++) {
        status = stk_stage_get(stage->in[0], epoch, index[i], in, err);
        if (status != STK_OK) break;
        status = stk_map_apply_row(stage, epoch, index[i], in, slots, row + i, err);
        stk_parts_release(n, in);
    }
    if (in != few) stk_free(in);
    return status;
}

/* ---- in order ----------------------------------------------------------------------------------------- */
typedef struct mapping {
    stk_iter *in;
    stk_marks marks;
    stk_ring *ring;
    int64_t pulled;
    bool ended;
    int64_t nskip; /* restored unordered: results already handed out */
    int64_t skip[STK_RING_MOST];
} mapping;

typedef struct call {
    stk_tensor **in, **out;
    bool failed; /* reading the input did; nothing to map */
} call;

static void work(void *context, stk_ring_item *item)
{
    stk_iter *it = context;
    call *c = (call *)item->data;
    if (c->failed) return;
    int32_t n = it->stage->in[0]->ds->schema->n;
    int64_t bytes = 0, held = stk_parts_bytes(n, c->in);
    item->status = stk_map_apply(it->stage, it->epoch, item->number, c->in, c->out, &item->error);
    stk_parts_release(n, c->in);
    for (int32_t i = 0; i < it->stage->ds->schema->n && item->status == STK_OK; i++)
        bytes += stk_tensor_bytes(c->out[i]);
    stk_stage_saw(it->stage, bytes + held);
    __atomic_add_fetch(&it->stage->count.bytes, bytes, __ATOMIC_RELAXED);
}

static void clean(stk_ring_item *item)
{
    call *c = (call *)item->data;
    stk_iter *it = stk_ring_context(item->ring);
    stk_parts_release(it->stage->in[0]->ds->schema->n, c->in);
    stk_parts_release(it->stage->ds->schema->n, c->out);
    stk_free(c->in);
    stk_free(c->out);
}

static stk_status open(stk_iter *it, stk_error *err)
{
    mapping *own = it->own;
    STK_TRY(stk_iter_open(it->stage->in[0], it->epoch, &own->in, err));
    return stk_ring_new(it->stage, it, sizeof(call), work, clean, &own->ring, err);
}

static stk_status start_call(stk_iter *it, stk_error *err)
{
    mapping *own = it->own;
    STK_TRY(stk_marks_note(&own->marks, own->in, own->pulled, MARK_EVERY, err));
    stk_ring_item *item = stk_ring_begin(own->ring, err);
    if (!item) return STK_ERR_MEMORY;
    call *c = (call *)item->data;
    if (!c->in) c->in = stk_parts_new(own->in->stage->ds->schema->n);
    if (!c->out) c->out = stk_parts_new(it->stage->ds->schema->n);
    if (!c->in || !c->out) return stk_fail_memory(err, "map", 64);
    item->status = stk_iter_next(own->in, c->in, &own->ended, &item->error);
    c->failed = item->status != STK_OK;
    if (own->ended) return STK_OK;
    own->pulled++;
    return stk_ring_start(own->ring, item, err);
}

static bool in_order(const stk_iter *it)
{
    const stk_map_config *c = it->stage->ds->config;
    return !c->options.unordered && it->stage->run->options.deterministic;
}

static bool skipped(mapping *own, int64_t number)
{
    for (int64_t i = 0; i < own->nskip; i++)
        if (own->skip[i] == number) return true;
    return false;
}

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    mapping *own = it->own;
    const stk_map_config *c = it->stage->ds->config;
    for (;;) {
        bool alone = c->serial || stk_ring_is_cheap(own->ring);
        int64_t room = alone ? 1 : stk_tuner_in_flight(it->stage, 1);
        while (!own->ended && stk_ring_has_room(own->ring, room)) STK_TRY(start_call(it, err));
        *end = stk_ring_depth(own->ring) == 0;
        if (*end) return STK_OK;
        stk_ring_item *item =
            in_order(it) ? stk_ring_oldest(own->ring, err) : stk_ring_any(own->ring, err);
        if (!item) return STK_ERR_CANCELLED;
        call *k = (call *)item->data;
        stk_status status = item->status;
        bool again = skipped(own, item->number);
        if (status != STK_OK && err) *err = item->error;
        if (again) stk_parts_release(it->stage->ds->schema->n, k->out);
        memcpy(parts, k->out, (size_t)it->stage->ds->schema->n * sizeof *parts);
        memset(k->out, 0, (size_t)it->stage->ds->schema->n * sizeof *parts);
        stk_ring_pop(own->ring, item);
        stk_marks_forget(&own->marks, own->pulled - stk_ring_depth(own->ring));
        stk_tuner_tick(it->stage->run);
        if (!again) return status;
    }
}

/* Layout: way back to the oldest element not handed out, then those behind it that were. */
static stk_status save(stk_iter *it, stk_state *out, stk_error *err)
{
    mapping *own = it->own;
    int64_t oldest = own->pulled - stk_ring_depth(own->ring), taken = 0;
    STK_TRY(stk_marks_note(&own->marks, own->in, own->pulled, 1, err));
    STK_TRY(stk_marks_save(&own->marks, oldest, out, err));
    stk_ring_item *item;
    for (int64_t i = 0; (item = stk_ring_at(own->ring, i)); i++) taken += item->taken;
    stk_state_put(out, taken);
    for (int64_t i = 0; (item = stk_ring_at(own->ring, i)); i++)
        if (item->taken) stk_state_put(out, item->number);
    return STK_OK;
}

static stk_status restore(stk_iter *it, stk_state *in, stk_error *err)
{
    mapping *own = it->own;
    STK_TRY(stk_marks_restore(own->in, in, &own->pulled, err));
    stk_ring_set_number(own->ring, own->pulled);
    own->nskip = stk_state_get_in(in, 0, STK_RING_MOST - 1);
    for (int64_t i = 0; i < own->nskip; i++) own->skip[i] = stk_state_get(in);
    return stk_state_status(in, err);
}

static void close(stk_iter *it)
{
    mapping *own = it->own;
    stk_ring_close(own->ring);
    stk_iter_close(own->in);
    stk_marks_release(&own->marks);
}

static const stk_walk walk = {sizeof(mapping), open, next, save, restore, close};

/* Out of order only what is asked for by number is certain. */
static bool steady(const stk_dataset *ds)
{
    const stk_map_config *c = ds->config;
    bool pure = ds->random || !c->options.unordered;
    for (int32_t i = 0; i < c->n && pure; i++) pure = stk_fn_is_pure(c->fns[i]);
    return pure;
}

const stk_node_kind stk_node_map = {.name = "map",
                                    .drop = drop,
                                    .describe = describe,
                                    .get = get,
                                    .rows = rows,
                                    .walk = &walk,
                                    .steady = steady};

/* ---- making ------------------------------------------------------------------------------------------- */
stk_map_options stk_map_options_defaults(void)
{
    return (stk_map_options){.parallel = STK_AUTOTUNE};
}

stk_dataset *stk_map_node(stk_dataset *in, int32_t n, stk_fn *const *fns,
                          const stk_map_options *options, int64_t batch, stk_error *err)
{
    stk_dataset *ds = stk_dataset_make(&stk_node_map, 1, &in, sizeof(stk_map_config), err);
    if (!ds) return NULL;
    stk_map_config *c = ds->config;
    c->fns = stk_calloc((size_t)n, sizeof *c->fns);
    if (!c->fns) return stk_dataset_done(ds, stk_fail_memory(err, "map", (size_t)n * 8));
    c->options = *options;
    c->batch = batch;
    for (; c->n < n; c->n++) {
        c->fns[c->n] = stk_fn_retain(fns[c->n]);
        c->serial |= (fns[c->n]->fn.flags & STK_MAP_SERIAL) != 0;
    }
    if (!batch) stk_dataset_set_schema(ds, stk_schema_retain(fns[n - 1]->output));
    if (c->serial) {
        ds->random = false; /* calls must come in order */
        ds->ahead = 0;
        ds->parallel = 1;
    } else {
        ds->parallel = options->parallel;
        ds->unordered |= options->unordered;
    }
    return ds;
}

stk_dataset *stk_data_map(stk_dataset *in, const stk_map_fn *fn, const stk_map_options *options,
                          stk_error *err)
{
    stk_map_options o = options ? *options : stk_map_options_defaults();
    stk_fn *f = NULL;
    if (!in) {
        if (fn && fn->release) fn->release(fn->context);
        return NULL;
    }
    uint64_t seed = stk_seed_mix(o.seed, in->salt);
    if (stk_fn_new("map", fn, in->schema, seed, &f, err) != STK_OK) {
        stk_dataset_release(in);
        return NULL;
    }
    if (o.parallel < 1 && o.parallel != STK_AUTOTUNE) o.parallel = 1;
    stk_dataset *ds = stk_map_node(in, 1, &f, &o, 0, err);
    stk_fn_release(f);
    return ds;
}
