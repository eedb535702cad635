/* prefetch - elements made before they are asked for. By number it is a wish to the walk with workers; in order it is
 * a thread of its own that reads the input into a bounded line. AUTOTUNE: the line grows when it was full and empty in
 * turn, which is what more room helps against. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/float_env.h"
#include "base/thread.h"
#include "base/trace.h"
#include "data/workers/marks.h"
#include "data/core/patience.h"
#include "data/core/run.h"
#include "data/workers/tune.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 128, FIRST = 2, MARK_EVERY = 16 };

typedef struct prefetch {
    int64_t elements;
} prefetch;

static void describe(const stk_dataset *ds, char *text, size_t size)
{
    const prefetch *c = ds->config;
    if (c->elements == STK_AUTOTUNE)
        snprintf(text, size, "AUTOTUNE");
    else
        snprintf(text, size, "%lld", (long long)c->elements);
}

/* ---- in order ---------------------------------------------------------------------------------------- */
typedef struct item {
    stk_tensor **parts;
    stk_status status;
    bool end;
    stk_error error;
} item;

typedef struct line {
    stk_iter *in;
    pthread_t thread;
    bool running, stop, was_full;
    pthread_mutex_t lock;    /* of everything below */
    pthread_mutex_t reading; /* held while the input is read; taken before lock */
    pthread_cond_t changed;
    stk_marks marks; /* under reading */
    item items[MOST];
    int64_t head, tail, capacity; /* head = handed out, tail = read */
    bool ended;
} line;

static stk_status read_one(stk_iter *it, item *to)
{
    line *own = it->own;
    to->end = false;
    if (!to->parts) to->parts = stk_parts_new(it->stage->ds->schema->n);
    if (!to->parts) return to->status = stk_fail_memory(&to->error, "prefetch", 64);
    to->status = stk_marks_note(&own->marks, own->in, own->tail, MARK_EVERY, &to->error);
    if (to->status == STK_OK) to->status = stk_iter_next(own->in, to->parts, &to->end, &to->error);
    return to->status;
}

static bool wait_for_room(stk_iter *it)
{
    line *own = it->own;
    uint64_t start = stk_ticks();
    pthread_mutex_lock(&own->lock);
    while (!own->stop && own->tail - own->head >= own->capacity) {
        own->was_full = true;
        pthread_cond_wait(&own->changed, &own->lock);
    }
    bool go = !own->stop;
    pthread_mutex_unlock(&own->lock);
    __atomic_add_fetch(&it->stage->count.full, (int64_t)(stk_ticks() - start), __ATOMIC_RELAXED);
    return go;
}

static void *read_ahead(void *argument)
{
    stk_iter *it = argument;
    line *own = it->own;
    stk_trace_name_thread("prefetch");
    stk_float_env_enter();
    for (bool end = false; !end && wait_for_room(it);) {
        pthread_mutex_lock(&own->reading);
        item *to = &own->items[own->tail % MOST];
        (void)read_one(it, to);
        end = to->end;
        pthread_mutex_lock(&own->lock);
        own->tail++;
        __atomic_store_n(&it->stage->count.depth, own->tail - own->head, __ATOMIC_RELAXED);
        pthread_cond_broadcast(&own->changed);
        pthread_mutex_unlock(&own->lock);
        pthread_mutex_unlock(&own->reading);
    }
    return NULL;
}

static stk_status open(stk_iter *it, stk_error *err)
{
    line *own = it->own;
    const prefetch *c = it->stage->ds->config;
    pthread_mutex_init(&own->lock, NULL);
    pthread_mutex_init(&own->reading, NULL);
    pthread_cond_init(&own->changed, NULL);
    own->capacity = c->elements > 0 ? stk_min_i64(c->elements, MOST) : FIRST;
    __atomic_store_n(&it->stage->count.capacity, own->capacity, __ATOMIC_RELAXED);
    return stk_iter_open(it->stage->in[0], it->epoch, &own->in, err);
}

static stk_status start(stk_iter *it, stk_error *err)
{
    line *own = it->own;
    int failed = stk_thread_start(&own->thread, read_ahead, it);
    if (failed)
        return stk_fail(err, STK_ERR_MEMORY, "prefetch: the system refused a thread: %s",
                        strerror(failed));
    own->running = true;
    return STK_OK;
}

/* The line was empty although it had been full: it evens out too little. */
static void grow(stk_iter *it)
{
    line *own = it->own;
    const prefetch *c = it->stage->ds->config;
    int64_t bytes = stk_max_i64(1, __atomic_load_n(&it->stage->element_bytes, __ATOMIC_RELAXED));
    bool fits =
        own->capacity * 2 <= MOST && own->capacity * 2 * bytes <= stk_tuner_share(it->stage);
    if (c->elements == STK_AUTOTUNE && own->was_full && fits) own->capacity *= 2;
    own->was_full = false;
    __atomic_store_n(&it->stage->count.capacity, own->capacity, __ATOMIC_RELAXED);
}

static item *oldest(stk_iter *it, stk_error *err)
{
    line *own = it->own;
    uint64_t ticks = stk_ticks();
    pthread_mutex_lock(&own->lock);
    if (own->head == own->tail) grow(it);
    bool go_on = true;
    while (go_on && own->head == own->tail) go_on = stk_patience_wait(&own->changed, &own->lock);
    item *from = &own->items[own->head % MOST];
    pthread_mutex_unlock(&own->lock);
    __atomic_add_fetch(&it->stage->count.waiting, (int64_t)(stk_ticks() - ticks), __ATOMIC_RELAXED);
    if (!go_on) (void)stk_patience_over(err);
    return go_on ? from : NULL;
}

static void note_size(stk_iter *it, stk_tensor *const *parts)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < it->stage->ds->schema->n; i++) bytes += stk_tensor_bytes(parts[i]);
    stk_stage_saw(it->stage, bytes);
    __atomic_add_fetch(&it->stage->count.bytes, bytes, __ATOMIC_RELAXED);
}

static stk_status next(stk_iter *it, stk_tensor **parts, bool *end, stk_error *err)
{
    line *own = it->own;
    *end = own->ended;
    if (own->ended) return STK_OK;
    bool threads = stk_run_has_workers(it->stage->run);
    if (threads && !own->running) STK_TRY(start(it, err));
    item *from = &own->items[0];
    if (threads) {
        from = oldest(it, err);
        if (!from) return STK_ERR_CANCELLED;
    } else {
        (void)read_one(it, from);
        own->tail++;
    }
    stk_status status = from->status;
    if (status != STK_OK && err) *err = from->error;
    own->ended = *end = from->end;
    if (status == STK_OK && !*end) {
        memcpy(parts, from->parts, (size_t)it->stage->ds->schema->n * sizeof *parts);
        memset(from->parts, 0, (size_t)it->stage->ds->schema->n * sizeof *parts);
        note_size(it, parts);
    }
    pthread_mutex_lock(&own->lock);
    own->head++;
    pthread_cond_broadcast(&own->changed);
    pthread_mutex_unlock(&own->lock);
    return status;
}

static stk_status save(stk_iter *it, stk_state *out, stk_error *err)
{
    line *own = it->own;
    pthread_mutex_lock(&own->reading);
    stk_marks_forget(&own->marks, own->head);
    stk_status status = stk_marks_note(&own->marks, own->in, own->tail, 1, err);
    if (status == STK_OK) status = stk_marks_save(&own->marks, own->head, out, err);
    pthread_mutex_unlock(&own->reading);
    return status;
}

static stk_status restore(stk_iter *it, stk_state *in, stk_error *err)
{
    line *own = it->own;
    STK_TRY(stk_marks_restore(own->in, in, &own->head, err));
    own->tail = own->head;
    return STK_OK;
}

static void shut(stk_iter *it)
{
    line *own = it->own;
    if (own->running) {
        pthread_mutex_lock(&own->lock);
        own->stop = true;
        pthread_cond_broadcast(&own->changed);
        pthread_mutex_unlock(&own->lock);
        pthread_join(own->thread, NULL);
    }
    for (int i = 0; i < MOST; i++) {
        stk_parts_release(it->stage->ds->schema->n, own->items[i].parts);
        stk_free(own->items[i].parts);
    }
    stk_marks_release(&own->marks);
    stk_iter_close(own->in);
    pthread_cond_destroy(&own->changed);
    pthread_mutex_destroy(&own->reading);
    pthread_mutex_destroy(&own->lock);
}

static bool idle(const stk_dataset *ds) { return ((const prefetch *)ds->config)->elements == 0; }

static const stk_walk walk = {sizeof(line), open, next, save, restore, shut};

const stk_node_kind stk_node_prefetch = {.name = "prefetch",
                                         .idle = idle,
                                         .describe = describe,
                                         .get = stk_pass_get,
                                         .rows = stk_pass_rows,
                                         .slice = stk_pass_slice,
                                         .walk = &walk,
                                         .steady = stk_always_steady,
                                         .passes = true};

stk_dataset *stk_data_prefetch(stk_dataset *in, int64_t elements, stk_error *err)
{
    stk_dataset *ds = stk_dataset_make(&stk_node_prefetch, 1, &in, sizeof(prefetch), err);
    if (!ds) return NULL;
    if (elements < 0) elements = STK_AUTOTUNE;
    ((prefetch *)ds->config)->elements = elements;
    if (ds->random) ds->ahead = elements;
    return ds;
}
