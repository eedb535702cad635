/* interleave, flat_map - a function makes a dataset of each element; `cycle` of them are read in turn, `block` elements at
 * a time. With workers each open dataset (a lane) is read ahead by items of its own; the order is the same, unless any order
 * will do (options.deterministic): then the next element is that of a lane that has one.
 *
 * A lane's position is the state of its iterator when the piece being handed out was begun, and how much of the
 * piece is gone. The element that made the lane is saved with it. */
#include "data/core/element_list.h"
#include "data/workers/ring.h"

#include <stdio.h>
#include <string.h>

enum { PIECE = 16, LARGE = 64 << 10 };

typedef struct interleave {
    stk_flat_fn fn;
    char name[48];
    int64_t cycle, block;
    int32_t parallel;
} interleave;

static void drop(stk_dataset *ds)
{
    interleave *c = ds->config;
    if (c->fn.release) c->fn.release(c->fn.context);
}

static void describe(const stk_dataset *ds, char *text, size_t size)
{
    const interleave *c = ds->config;
    if (c->cycle == 1)
        snprintf(text, size, "%s", c->name);
    else
        snprintf(text, size, "%s, cycle %lld, block %lld%s", c->name, (long long)c->cycle,
                 (long long)c->block, c->parallel == 1 ? "" : ", parallel");
}

typedef struct piece {
    stk_tensor **parts; /* PIECE elements */
    int64_t count;      /* made */
    bool end, failed;   /* what came behind them */
    stk_status status;
    stk_error error;
    stk_state before; /* of the iterator, when it was begun */
} piece;

typedef struct lane {
    stk_iter *owner, *in;
    stk_stage *stage;
    stk_ring *ring;
    int64_t number; /* of the element it was made of */
    stk_tensor **made_of;
    piece pieces[2]; /* one being handed out, one being made */
    int now;
    int64_t at; /* in the one being handed out */
    bool ready; /* pieces[now] is being handed out */
} lane;

typedef struct weaving {
    stk_iter *in;
    lane *lanes;
    stk_bell *bell;   /* of all lanes when any order will do; else NULL */
    stk_ring **rings; /* of the open lanes, to wait for */
    int64_t current, in_block, pulled, open;
    bool input_ended, began;
} weaving;

/* ---- lanes ------------------------------------------------------------------------------------------ */
static void piece_clear(piece *p, int32_t width)
{
    if (p->parts) stk_parts_release(PIECE * width, p->parts);
    p->count = 0;
    p->end = p->failed = false;
}

static void work(void *context, stk_ring_item *item)
{
    lane *l = context;
    piece *p = *(piece **)item->data;
    int32_t width = l->owner->stage->ds->schema->n;
    int64_t size = __atomic_load_n(&l->owner->stage->element_bytes, __ATOMIC_RELAXED);
    int64_t most = size > LARGE ? 1 : PIECE;
    stk_state_release(&p->before);
    p->status = stk_iter_save(l->in, &p->before, &p->error);
    p->failed = p->status != STK_OK;
    while (p->count < most && !p->end && !p->failed) {
        p->status = stk_iter_next(l->in, p->parts + p->count * width, &p->end, &p->error);
        p->failed = p->status != STK_OK && !p->end;
        if (!p->failed && !p->end) p->count++;
    }
    if (p->count) stk_stage_saw(l->owner->stage, stk_parts_bytes(width, p->parts));
}

static stk_status lane_start(lane *l, stk_error *err)
{
    piece *p = &l->pieces[l->ready ? !l->now : l->now];
    stk_ring_item *item = stk_ring_begin(l->ring, err);
    if (!item) return STK_ERR_MEMORY;
    piece_clear(p, l->owner->stage->ds->schema->n);
    *(piece **)item->data = p;
    return stk_ring_start(l->ring, item, err);
}

static void lane_close(lane *l)
{
    if (!l->owner) return;
    int32_t width = l->owner->stage->ds->schema->n;
    stk_ring_close(l->ring);
    stk_iter_close(l->in);
    stk_stage_release(l->stage);
    for (int i = 0; i < 2; i++) {
        piece_clear(&l->pieces[i], width);
        stk_free(l->pieces[i].parts);
        stk_state_release(&l->pieces[i].before);
    }
    if (l->made_of) stk_parts_release(l->owner->stage->in[0]->ds->schema->n, l->made_of);
    stk_free(l->made_of);
    *l = (lane){0};
}

/* Opens the dataset of l->made_of. */
static stk_status lane_open(stk_iter *it, lane *l, stk_error *err)
{
    const interleave *c = it->stage->ds->config;
    int32_t width = it->stage->ds->schema->n;
    l->owner = it;
    stk_map_info info = {l->number, 1, stk_seed_mix(it->stage->ds->salt, it->epoch),
                         it->stage->in[0]->ds->schema->n};
    stk_error error = {.code = STK_OK};
    stk_dataset *given = c->fn.call(c->fn.context, &info, l->made_of, &error);
    stk_status status = stk_stage_given(it->stage, c->name, given, &error, &l->stage, err);
    if (status == STK_OK)
        status =
            stk_iter_open(l->stage, stk_seed_mix(it->epoch, (uint64_t)l->number + 1), &l->in, err);
    for (int i = 0; i < 2 && status == STK_OK; i++)
        if (!(l->pieces[i].parts = stk_parts_new(PIECE * width)))
            status = stk_fail_memory(err, c->name, PIECE * 8);
    if (status == STK_OK)
        status = stk_ring_new(it->stage, l, sizeof(piece *), work, NULL, &l->ring, err);
    stk_bell *bell = ((weaving *)it->own)->bell;
    if (status == STK_OK && bell) stk_ring_share(l->ring, bell);
    return status;
}

static stk_status open_next(stk_iter *it, lane *l, stk_error *err)
{
    weaving *own = it->own;
    int32_t n = it->stage->in[0]->ds->schema->n;
    l->made_of = stk_parts_new(n);
    if (!l->made_of) return stk_fail_memory(err, "interleave", 64);
    stk_status status = stk_iter_next(own->in, l->made_of, &own->input_ended, err);
    if (own->input_ended || status != STK_OK) {
        stk_free(l->made_of);
        l->made_of = NULL;
        if (!own->input_ended) own->pulled++;
        return status;
    }
    l->number = own->pulled++;
    l->owner = it;
    status = lane_open(it, l, err);
    if (status == STK_OK) status = lane_start(l, err);
    if (status != STK_OK) {
        lane_close(l);
        return status;
    }
    own->open++;
    return STK_OK;
}

/* The next element of a lane, or the end of it. */
static stk_status lane_next(lane *l, stk_tensor **parts, bool *end, stk_error *err)
{
    int32_t width = l->owner->stage->ds->schema->n;
    for (;;) {
        if (!l->ready) {
            stk_ring_item *item = stk_ring_oldest(l->ring, err);
            if (!item) return STK_ERR_CANCELLED;
            stk_ring_pop(l->ring, item);
            l->ready = true;
            l->at = 0;
            if (!l->pieces[l->now].end) STK_TRY(lane_start(l, err));
        }
        piece *p = &l->pieces[l->now];
        if (l->at < p->count) {
            memcpy(parts, p->parts + l->at * width, (size_t)width * sizeof *parts);
            memset(p->parts + l->at * width, 0, (size_t)width * sizeof *parts);
            l->at++;
            return STK_OK;
        }
        if (p->failed) {
            p->failed = false;
            l->at++; /* the failed one counts as handed out */
            p->count++;
            if (err) *err = p->error;
            return p->status;
        }
        *end = p->end;
        if (*end) return STK_OK;
        l->ready = false;
        l->now = !l->now;
    }
}

/* ---- the walk ---------------------------------------------------------------------------------------- */
static stk_status open(stk_iter *it, stk_error *err)
{
    weaving *own = it->own;
    const interleave *c = it->stage->ds->config;
    own->lanes = stk_calloc((size_t)c->cycle, sizeof *own->lanes);
    if (!own->lanes) return stk_fail_memory(err, c->name, (size_t)c->cycle * sizeof *own->lanes);
    const stk_run *run = it->stage->run;
    if (!run->options.deterministic && stk_run_has_workers(run) && c->parallel != 1) {
        own->rings = stk_calloc((size_t)c->cycle, sizeof *own->rings);
        if (!own->rings) return stk_fail_memory(err, c->name, (size_t)c->cycle * 8);
        STK_TRY(stk_bell_new(&own->bell, err));
    }
    return stk_iter_open(it->stage->in[0], it->epoch, &own->in, err);
}

static void advance(stk_iter *it)
{
    weaving *own = it->own;
    const interleave *c = it->stage->ds->config;
    own->in_block = 0;
    own->current = (own->current + 1) % c->cycle;
}

/* The first round gives lane i element i whatever happens, so all are opened at once and read in parallel. */
static stk_status begin(stk_iter *it, stk_error *err)
{
    weaving *own = it->own;
    const interleave *c = it->stage->ds->config;
    own->began = true;
    if (!stk_run_has_workers(it->stage->run) || c->parallel == 1) return STK_OK;
    for (int64_t i = 0; i < c->cycle && !own->input_ended; i++)
        STK_TRY(open_next(it, &own->lanes[i], err));
    return STK_OK;
}

static bool lane_has(const lane *l)
{
    const piece *p = &l->pieces[l->now];
    bool here = l->ready && (l->at < p->count || p->failed || p->end);
    return here || stk_ring_is_done(l->ring);
}

/* The next lane that has something, beginning with the current one. */
static lane *ready_lane(stk_iter *it, stk_error *err)
{
    weaving *own = it->own;
    const interleave *c = it->stage->ds->config;
    for (;;) {
        int64_t open = 0;
        for (int64_t i = 0; i < c->cycle; i++) {
            int64_t k = (own->current + i) % c->cycle;
            lane *l = &own->lanes[k];
            if (!l->owner) continue;
            if (lane_has(l)) {
                if (i) own->in_block = 0;
                own->current = k;
                return l;
            }
            own->rings[open++] = l->ring;
        }
        if (!open) return NULL;
        if (stk_rings_wait(open, own->rings, err) != STK_OK) return NULL;
    }
}

/* The lane's next element, and on to the next lane behind its block; *over: it had none, and is closed. */
static stk_status take_from(stk_iter *it, lane *l, stk_tensor **parts, bool *over, stk_error *err)
{
    weaving *own = it->own;
    const interleave *c = it->stage->ds->config;
    stk_status status = lane_next(l, parts, over, err);
    if (status == STK_ERR_CANCELLED) return status;
    if (*over) {
        lane_close(l);
        own->open--;
    }
    if (*over || ++own->in_block == c->block) advance(it);
    return status;
}

/* Any order: no lane waits for a slower one. */
static stk_status next_ready(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    weaving *own = it->own;
    const interleave *c = it->stage->ds->config;
    own->began = true;
    for (;;) {
        for (int64_t i = 0; i < c->cycle && !own->input_ended; i++)
            if (!own->lanes[i].owner) STK_TRY(open_next(it, &own->lanes[i], err));
        if (err) err->code = STK_OK;
        lane *l = ready_lane(it, err);
        if (!l && err && err->code == STK_ERR_CANCELLED) return STK_ERR_CANCELLED;
        *end = !l;
        if (*end) return STK_OK;
        bool over = false;
        stk_status status = take_from(it, l, parts, &over, err);
        if (!over) return status;
    }
}

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    weaving *own = it->own;
    if (own->bell) return next_ready(it, parts, end, err);
    if (!own->began) STK_TRY(begin(it, err));
    while (!own->input_ended || own->open > 0) {
        lane *l = &own->lanes[own->current];
        if (l->owner) {
            bool over = false;
            stk_status status = take_from(it, l, parts, &over, err);
            if (!over) return status;
        } else if (!own->input_ended) {
            STK_TRY(open_next(it, l, err));
        } else {
            advance(it);
        }
    }
    *end = true;
    return STK_OK;
}

static stk_status save_lane(lane *l, stk_state *out, stk_error *err)
{
    stk_state_put(out, l->owner != NULL);
    if (!l->owner) return STK_OK;
    if (!l->ready)
        (void)stk_ring_oldest(l->ring, err); /* done: nobody is using the iterator or the piece */
    piece *p = &l->pieces[l->now];
    stk_state_put(out, l->number);
    stk_state_put_parts(out, l->owner->stage->in[0]->ds->schema->n, l->made_of);
    stk_state_put(out, l->ready ? l->at : 0);
    stk_state_put_blob(out, p->before.data, p->before.size);
    (void)err;
    return STK_OK;
}

/* Layout: place in the cycle and the block, elements of the input, its end; then the lanes; then the input. */
static stk_status save(stk_iter *it, stk_state *out, stk_error *err)
{
    weaving *own = it->own;
    const interleave *c = it->stage->ds->config;
    stk_state_put(out, own->current);
    stk_state_put(out, own->in_block);
    stk_state_put(out, own->pulled);
    stk_state_put(out, own->input_ended);
    stk_state_put(out, own->began);
    for (int64_t i = 0; i < c->cycle; i++) STK_TRY(save_lane(&own->lanes[i], out, err));
    return stk_iter_save(own->in, out, err);
}

static stk_status restore_lane(stk_iter *it, lane *l, stk_state *in, stk_error *err)
{
    weaving *own = it->own;
    int32_t n = it->stage->in[0]->ds->schema->n;
    l->number = stk_state_get_in(in, 0, INT64_MAX);
    l->owner = it;
    l->made_of = stk_parts_new(n);
    if (!l->made_of) return stk_fail_memory(err, "interleave", 64);
    STK_TRY(stk_state_get_parts(in, n, l->made_of, err));
    int64_t at = stk_state_get_in(in, 0, INT64_MAX);
    size_t size;
    const void *data = stk_state_get_blob(in, &size);
    STK_TRY(stk_state_status(in, err));
    STK_TRY(lane_open(it, l, err));
    own->open++;
    stk_state state = stk_state_reader(data, size);
    STK_TRY(stk_iter_restore(l->in, &state, err));
    bool end;
    STK_TRY(stk_iter_skip(l->in, at, &end, err));
    return lane_start(l, err);
}

static stk_status restore(stk_iter *it, stk_state *in, stk_error *err)
{
    weaving *own = it->own;
    const interleave *c = it->stage->ds->config;
    own->current = stk_state_get_in(in, 0, c->cycle - 1);
    own->in_block = stk_state_get_in(in, 0, c->block - 1);
    own->pulled = stk_state_get_in(in, 0, INT64_MAX);
    own->input_ended = stk_state_get_in(in, 0, 1);
    own->began = stk_state_get_in(in, 0, 1);
    STK_TRY(stk_state_status(in, err));
    for (int64_t i = 0; i < c->cycle; i++)
        if (stk_state_get_in(in, 0, 1)) STK_TRY(restore_lane(it, &own->lanes[i], in, err));
    STK_TRY(stk_state_status(in, err));
    return stk_iter_restore(own->in, in, err);
}

static void close(stk_iter *it)
{
    weaving *own = it->own;
    const interleave *c = it->stage->ds->config;
    for (int64_t i = 0; own->lanes && i < c->cycle; i++) lane_close(&own->lanes[i]);
    stk_free(own->lanes);
    stk_free(own->rings);
    stk_bell_release(own->bell);
    stk_iter_close(own->in);
}

static const stk_walk walk = {sizeof(weaving), open, next, save, restore, close};

static bool steady(const stk_dataset *ds)
{
    return (((const interleave *)ds->config)->fn.flags & STK_MAP_PURE) != 0;
}

const stk_node_kind stk_node_interleave = {
    .name = "interleave", .drop = drop, .describe = describe, .walk = &walk, .steady = steady};
const stk_node_kind stk_node_flat_map = {
    .name = "flat_map", .drop = drop, .describe = describe, .walk = &walk, .steady = steady};

static stk_dataset *make(const stk_node_kind *kind, stk_dataset *in, const stk_flat_fn *fn,
                         int64_t cycle, int64_t block, int32_t parallel, stk_error *err)
{
    bool good = fn && fn->call && fn->output && cycle >= 1 && cycle <= 4096 && block >= 1;
    if (in && !good)
        (void)stk_fail(
            err, STK_ERR_ARGUMENT,
            "%s: it takes a function with the schema of its datasets' elements, a cycle of "
            "1..4096 and blocks of 1 or more",
            kind->name);
    if (!good) {
        stk_dataset_release(in);
        in = NULL;
    }
    stk_dataset *ds = stk_dataset_make(kind, 1, &in, sizeof(interleave), err);
    if (!ds) {
        if (fn && fn->release) fn->release(fn->context);
        return NULL;
    }
    interleave *c = ds->config;
    c->fn = *fn;
    snprintf(c->name, sizeof c->name, "%s", fn->name ? fn->name : "function");
    c->cycle = cycle;
    c->block = block;
    c->parallel = parallel;
    stk_dataset_in_order(ds);
    ds->parallel = parallel;
    return stk_dataset_done(ds, stk_dataset_announce(ds, &c->fn.output, err));
}

stk_interleave_options stk_interleave_options_defaults(void)
{
    return (stk_interleave_options){.cycle = 8, .block = 1, .parallel = STK_AUTOTUNE};
}

stk_dataset *stk_data_flat_map(stk_dataset *in, const stk_flat_fn *fn, stk_error *err)
{
    return make(&stk_node_flat_map, in, fn, 1, 1, 1, err);
}

stk_dataset *stk_data_interleave(stk_dataset *in, const stk_flat_fn *fn,
                                 const stk_interleave_options *options, stk_error *err)
{
    stk_interleave_options o = options ? *options : stk_interleave_options_defaults();
    return make(&stk_node_interleave, in, fn, o.cycle, o.block, o.parallel, err);
}
