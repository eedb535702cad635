/* cache - elements are made once and kept, in RAM or in a file, for all streams of this dataset. What lies below is always
 * run as epoch 0, so that it does not matter which epoch filled the cache.
 *
 * In RAM and by number, places are filled as they are asked for. In order, the first stream that gets to the end has
 * filled it. A file is written by the first stream that gets to its end, and read from then on. A saved position is a
 * count; what comes before it is made again when the cache is not there yet. */
#include "data/nodes/cache.h"
#include "data/core/element_list.h"
#include "data/core/run.h"
#include "data/formats/snapshot.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct cache {
    char *path;             /* NULL: RAM */
    pthread_mutex_t lock;   /* of what follows */
    stk_tensor ***elements; /* by number: each NULL or an array of handles (atomic) */
    int64_t bytes;          /* atomic */
    stk_element_list held;  /* in order */
    bool filled, filling;
    stk_dataset *file; /* in order, on disk: open once it is there */
    int64_t limit;     /* bytes; 0: what the stream's budget has, and failure beyond it */
    int64_t stands;    /* so many elements stand for all; 0: each for itself (atomic) */
    bool stop;         /* filling in order (atomic) */
    bool too_large;    /* in order: does not fit, nobody tries again */
} cache;

static void drop(stk_dataset *ds)
{
    cache *c = ds->config;
    int32_t n = ds->schema ? ds->schema->n : 0;
    for (int64_t i = 0; c->elements && i < ds->cardinality; i++) {
        if (c->elements[i]) stk_parts_release(n, c->elements[i]);
        stk_free(c->elements[i]);
    }
    stk_free(c->elements);
    stk_element_list_release(&c->held);
    stk_dataset_release(c->file);
    stk_free(c->path);
    pthread_mutex_destroy(&c->lock);
}

static void describe(const stk_dataset *ds, char *text, size_t size)
{
    const cache *c = ds->config;
    if (c->path)
        snprintf(text, size, "in %s", c->path);
    else
        snprintf(text, size, "in RAM");
}

int64_t stk_cached_bytes(int32_t n, stk_tensor *const *parts)
{
    return stk_parts_bytes(n, parts) + 64;
}

/* The budget of each stream counts what the cache holds, from the beginning and as it grows. A cache with a limit of its own
 * does without what does not fit. */
static stk_status account(stk_stage *stage, stk_tensor *const *parts, bool *fits, stk_error *err)
{
    cache *c = stage->ds->config;
    int64_t bytes = stk_cached_bytes(stage->ds->schema->n, parts);
    int64_t now = __atomic_add_fetch(&c->bytes, bytes, __ATOMIC_RELAXED);
    bool room = !c->limit || now <= c->limit;
    stk_status status = room ? stk_run_take_ram(stage->run, "cache", bytes, err) : STK_OK;
    *fits = room && status == STK_OK;
    if (*fits)
        __atomic_add_fetch(&stage->ram, bytes, __ATOMIC_RELAXED);
    else
        __atomic_sub_fetch(&c->bytes, bytes, __ATOMIC_RELAXED);
    return c->limit ? STK_OK : status;
}

static void give_back(stk_stage *stage, int64_t bytes)
{
    cache *c = stage->ds->config;
    __atomic_sub_fetch(&c->bytes, bytes, __ATOMIC_RELAXED);
    __atomic_sub_fetch(&stage->ram, bytes, __ATOMIC_RELAXED);
    stk_run_give_ram(stage->run, bytes);
}

static stk_status begin(stk_stage *stage, stk_error *err)
{
    const cache *c = stage->ds->config;
    int64_t bytes = __atomic_load_n(&c->bytes, __ATOMIC_RELAXED);
    STK_TRY(stk_run_take_ram(stage->run, "cache", bytes, err));
    stage->ram = bytes;
    return STK_OK;
}

/* ---- by number ------------------------------------------------------------------------------------- */
static void share(int32_t n, stk_tensor *const *from, stk_tensor **to)
{
    for (int32_t i = 0; i < n; i++) to[i] = stk_tensor_retain(from[i]);
}

static stk_status get(stk_stage *stage, uint64_t epoch, int64_t index, stk_tensor **parts,
                      stk_error *err)
{
    (void)epoch;
    cache *c = stage->ds->config;
    int32_t n = stage->ds->schema->n;
    int64_t stands = __atomic_load_n(&c->stands, __ATOMIC_RELAXED);
    bool fits = false;
    if (stands) index %= stands;
    stk_tensor **kept = __atomic_load_n(&c->elements[index], __ATOMIC_ACQUIRE), **none = NULL;
    if (kept) {
        share(n, kept, parts);
        return STK_OK;
    }
    STK_TRY(stk_stage_get(stage->in[0], 0, index, parts, err));
    stk_status status = account(stage, parts, &fits, err);
    if (status == STK_OK && !fits) return STK_OK;
    kept = status == STK_OK ? stk_parts_new(n) : NULL;
    if (status == STK_OK && !kept) status = stk_fail_memory(err, "cache", (size_t)n * 8);
    if (status != STK_OK) {
        stk_parts_release(n, parts);
        return status;
    }
    share(n, parts, kept);
    if (!__atomic_compare_exchange_n(&c->elements[index], &none, kept, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED)) {
        give_back(stage, stk_cached_bytes(n, kept));
        stk_parts_release(n, kept); /* somebody else was faster, with the same element */
        stk_free(kept);
    }
    return STK_OK;
}

/* ---- in order ----------------------------------------------------------------------------------------- */
typedef struct walking {
    int64_t position;
    stk_iter *in; /* the input, or the file */
    stk_stage *file;
    stk_snapshot_writer writer;
    stk_element_list held;
    bool fills, reads, ended;
    stk_tensor **parts;
} walking;

/* True when the cache is there; opens its file the first time. */
static stk_status is_filled(stk_stage *stage, bool *filled, stk_error *err)
{
    cache *c = stage->ds->config;
    stk_status status = STK_OK;
    pthread_mutex_lock(&c->lock);
    if (c->path && !c->file && access(c->path, F_OK) == 0) {
        c->file = stk_data_load(c->path, err);
        if (!c->file)
            status = STK_ERR_FORMAT;
        else if (!stk_schema_equal(c->file->schema, stage->ds->schema))
            status =
                stk_fail(err, STK_ERR_FORMAT,
                         "cache: %s holds elements of another kind; remove it or give another path",
                         c->path);
    }
    *filled = c->path ? c->file != NULL : c->filled;
    pthread_mutex_unlock(&c->lock);
    return status;
}

static stk_status open(stk_iter *it, stk_error *err)
{
    walking *own = it->own;
    cache *c = it->stage->ds->config;
    own->held.width = it->stage->ds->schema->n;
    own->parts = stk_parts_new(own->held.width);
    if (!own->parts) return stk_fail_memory(err, "cache", 64);
    STK_TRY(is_filled(it->stage, &own->reads, err));
    if (own->reads && !c->path) return STK_OK;
    if (own->reads) {
        STK_TRY(stk_stage_new(it->stage->run, c->file, &own->file, err));
        return stk_iter_open(own->file, 0, &own->in, err);
    }
    pthread_mutex_lock(&c->lock);
    own->fills = !c->filling && !c->too_large; /* one at a time; others just pass through */
    c->filling |= own->fills;
    pthread_mutex_unlock(&c->lock);
    if (own->fills && c->path)
        STK_TRY(stk_snapshot_create(c->path, it->stage->ds->schema, &own->writer, err));
    return stk_iter_open(it->stage->in[0], 0, &own->in, err);
}

static void stop_filling(stk_iter *it);

static void give_up(stk_iter *it)
{
    cache *c = it->stage->ds->config;
    stop_filling(it);
    pthread_mutex_lock(&c->lock);
    c->too_large = true;
    pthread_mutex_unlock(&c->lock);
}

static stk_status keep(stk_iter *it, stk_tensor *const *parts, stk_error *err)
{
    walking *own = it->own;
    cache *c = it->stage->ds->config;
    bool fits = true;
    if (c->path) return stk_snapshot_add(&own->writer, parts, err);
    STK_TRY(account(it->stage, parts, &fits, err));
    if (!fits) {
        give_up(it);
        return STK_OK;
    }
    share(own->held.width, parts, own->parts);
    stk_status status = stk_element_list_add(&own->held, own->parts, err);
    if (status != STK_OK) give_back(it->stage, stk_cached_bytes(own->held.width, parts));
    stk_parts_release(own->held.width, own->parts);
    return status;
}

static stk_status finish(stk_iter *it, stk_error *err)
{
    walking *own = it->own;
    cache *c = it->stage->ds->config;
    stk_status status = c->path ? stk_snapshot_commit(&own->writer, err) : STK_OK;
    pthread_mutex_lock(&c->lock);
    if (status == STK_OK && !c->path) {
        c->held = own->held;
        own->held = (stk_element_list){.width = c->held.width};
        c->filled = true;
    }
    c->filling = false;
    pthread_mutex_unlock(&c->lock);
    own->fills = false;
    return status;
}

/* A failed element is not kept, and then nothing is: the next stream tries again. */
static void stop_filling(stk_iter *it)
{
    walking *own = it->own;
    cache *c = it->stage->ds->config;
    if (!own->fills) return;
    own->fills = false;
    stk_snapshot_abandon(&own->writer);
    int64_t bytes = stk_parts_bytes(own->held.count * own->held.width, own->held.parts);
    give_back(it->stage, bytes + own->held.count * 64);
    stk_element_list_clear(&own->held);
    pthread_mutex_lock(&c->lock);
    c->filling = false;
    pthread_mutex_unlock(&c->lock);
}

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    walking *own = it->own;
    cache *c = it->stage->ds->config;
    *end = own->ended;
    if (*end) return STK_OK;
    if (own->reads && !c->path) {
        int64_t all = c->stands && it->stage->ds->cardinality >= 0 ? it->stage->ds->cardinality
                                                                   : c->held.count;
        own->ended = *end = own->position >= all || c->held.count == 0;
        if (!*end)
            share(c->held.width, c->held.parts + own->position++ % c->held.count * c->held.width,
                  parts);
        return STK_OK;
    }
    bool stop = own->fills && !c->path && __atomic_load_n(&c->stop, __ATOMIC_RELAXED);
    *end = stop;
    stk_status status = stop ? STK_OK : stk_iter_next(own->in, parts, end, err);
    own->ended = *end;
    if (*end) return own->fills ? finish(it, err) : STK_OK;
    own->position++;
    if (status == STK_OK && own->fills) {
        status = keep(it, parts, err);
        if (status != STK_OK) stk_parts_release(own->held.width, parts);
    }
    if (status != STK_OK) stop_filling(it);
    return status;
}

static stk_status save(stk_iter *it, stk_state *out, stk_error *err)
{
    (void)err;
    stk_state_put(out, ((walking *)it->own)->position);
    return STK_OK;
}

static stk_status restore(stk_iter *it, stk_state *in, stk_error *err)
{
    walking *own = it->own;
    cache *c = it->stage->ds->config;
    int64_t position = stk_state_get_in(in, 0, INT64_MAX);
    STK_TRY(stk_state_status(in, err));
    if (own->reads && !c->path) {
        own->position = position;
        return STK_OK;
    }
    bool end;
    return stk_iter_skip(it, position, &end, err);
}

static void shut(stk_iter *it)
{
    walking *own = it->own;
    stop_filling(it);
    stk_snapshot_abandon(&own->writer);
    stk_element_list_release(&own->held);
    stk_free(own->parts);
    stk_iter_close(own->in);
    stk_stage_release(own->file);
}

static const stk_walk walk = {sizeof(walking), open, next, save, restore, shut};

const stk_node_kind stk_node_cache = {.name = "cache",
                                      .drop = drop,
                                      .describe = describe,
                                      .get = get,
                                      .walk = &walk,
                                      .begin = begin,
                                      .steady = stk_always_steady,
                                      .passes = true};

void stk_cache_stop(stk_dataset *ds)
{
    cache *c = ds->config;
    __atomic_store_n(&c->stop, true, __ATOMIC_RELAXED);
}

int64_t stk_cache_settle(stk_dataset *ds)
{
    cache *c = ds->config;
    int64_t n = c->filled ? c->held.count : 0;
    while (c->elements && n < ds->cardinality && c->elements[n]) n++;
    __atomic_store_n(&c->stands, n, __ATOMIC_RELAXED);
    return n;
}

stk_dataset *stk_data_cache_within(stk_dataset *in, int64_t bytes, stk_error *err)
{
    stk_dataset *ds = stk_data_cache(in, NULL, err);
    if (ds) ((cache *)ds->config)->limit = stk_max_i64(bytes, 1);
    return ds;
}

stk_dataset *stk_data_cache(stk_dataset *in, const char *path, stk_error *err)
{
    stk_dataset *ds = stk_dataset_make(&stk_node_cache, 1, &in, sizeof(cache), err);
    if (!ds) return NULL;
    cache *c = ds->config;
    pthread_mutex_init(&c->lock, NULL);
    c->held.width = in->schema->n;
    stk_status status = STK_OK;
    if (path && *path && !(c->path = stk_strdup(path)))
        status = stk_fail_memory(err, "cache", strlen(path));
    ds->random = in->random && !c->path && in->cardinality >= 0;
    if (!ds->random) ds->ahead = 0;
    if (status == STK_OK && ds->random) {
        c->elements = stk_calloc((size_t)ds->cardinality + 1, sizeof *c->elements);
        if (!c->elements) status = stk_fail_memory(err, "cache", (size_t)ds->cardinality * 8);
    }
    return stk_dataset_done(ds, status);
}
