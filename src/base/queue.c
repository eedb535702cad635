/* A ring under one mutex with two conditions. Signals are sent only when somebody waits. */
#include "base/queue.h"

#include "base/clock.h"
#include "base/memory.h"

#include <pthread.h>
#include <string.h>

struct stk_queue {
    pthread_mutex_t lock;
    pthread_cond_t not_full, not_empty;
    size_t item_size;
    char *items;
    int64_t slots;    /* allocated, >= depth */
    int64_t capacity; /* wished, <= slots unless depth was larger when it shrank */
    int64_t head, depth;
    int32_t pushers, poppers; /* waiting */
    bool closed;
    stk_queue_stats stats;
    int64_t window_ns, changed_ns; /* start of the window, last change of depth */
    double depth_time;             /* integral of depth over time since window_ns */
};

static stk_status check_capacity(const char *who, size_t item_size, int64_t capacity,
                                 stk_error *err)
{
    size_t bytes;
    if (capacity < 1)
        return stk_fail(err, STK_ERR_RANGE, "%s: capacity %lld; a queue holds 1 item or more", who,
                        (long long)capacity);
    if (!stk_mul_size((size_t)capacity, item_size, &bytes) || bytes > PTRDIFF_MAX)
        return stk_fail(err, STK_ERR_RANGE, "%s: %lld items of %zu bytes do not fit in memory", who,
                        (long long)capacity, item_size);
    return STK_OK;
}

stk_status stk_queue_new(size_t item_size, int64_t capacity, stk_queue **out, stk_error *err)
{
    if (!out || item_size == 0)
        return stk_fail(err, STK_ERR_ARGUMENT, "queue_new: out is NULL or the items have no size");
    *out = NULL;
    STK_TRY(check_capacity("queue_new", item_size, capacity, err));
    stk_queue *q = stk_calloc(1, sizeof *q);
    if (!q) return stk_fail_memory(err, "queue_new", sizeof *q);
    q->items = stk_malloc((size_t)capacity * item_size);
    if (!q->items) {
        stk_free(q);
        return stk_fail_memory(err, "queue_new", (size_t)capacity * item_size);
    }
    q->item_size = item_size;
    q->slots = q->capacity = capacity;
    q->window_ns = q->changed_ns = stk_now_ns();
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->not_full, NULL);
    pthread_cond_init(&q->not_empty, NULL);
    *out = q;
    return STK_OK;
}

void stk_queue_release(stk_queue *q)
{
    if (!q) return;
    pthread_cond_destroy(&q->not_empty);
    pthread_cond_destroy(&q->not_full);
    pthread_mutex_destroy(&q->lock);
    stk_free(q->items);
    stk_free(q);
}

static void *slot(stk_queue *q, int64_t i)
{
    return q->items + (size_t)((q->head + i) % q->slots) * q->item_size;
}

static void change_depth(stk_queue *q, int64_t by)
{
    int64_t now = stk_now_ns();
    q->depth_time += (double)q->depth * (double)(now - q->changed_ns);
    q->changed_ns = now;
    q->depth += by;
    if (q->depth > q->stats.max_depth) q->stats.max_depth = q->depth;
}

/* Waits, with the clock running, until there is room (or items) or the queue closes. */
static void wait_room(stk_queue *q)
{
    if (q->closed || q->depth < q->capacity) return;
    int64_t start = stk_now_ns();
    q->pushers++;
    while (!q->closed && q->depth >= q->capacity) pthread_cond_wait(&q->not_full, &q->lock);
    q->pushers--;
    q->stats.push_waits++;
    q->stats.push_wait_ns += stk_now_ns() - start;
}

static void wait_items(stk_queue *q)
{
    if (q->closed || q->depth > 0) return;
    int64_t start = stk_now_ns();
    q->poppers++;
    while (!q->closed && q->depth == 0) pthread_cond_wait(&q->not_empty, &q->lock);
    q->poppers--;
    q->stats.pop_waits++;
    q->stats.pop_wait_ns += stk_now_ns() - start;
}

static stk_queue_result push(stk_queue *q, const void *item, bool wait)
{
    pthread_mutex_lock(&q->lock);
    if (wait) wait_room(q);
    stk_queue_result result = q->closed                 ? STK_QUEUE_CLOSED
                              : q->depth >= q->capacity ? STK_QUEUE_BUSY
                                                        : STK_QUEUE_DONE;
    if (result == STK_QUEUE_DONE) {
        memcpy(slot(q, q->depth), item, q->item_size);
        change_depth(q, 1);
        q->stats.pushes++;
        if (q->poppers) pthread_cond_signal(&q->not_empty);
    }
    pthread_mutex_unlock(&q->lock);
    return result;
}

static stk_queue_result pop(stk_queue *q, void *item, bool wait)
{
    pthread_mutex_lock(&q->lock);
    if (wait) wait_items(q);
    stk_queue_result result = q->depth > 0 ? STK_QUEUE_DONE
                              : q->closed  ? STK_QUEUE_CLOSED
                                           : STK_QUEUE_BUSY;
    if (result == STK_QUEUE_DONE) {
        memcpy(item, slot(q, 0), q->item_size);
        q->head = (q->head + 1) % q->slots;
        change_depth(q, -1);
        q->stats.pops++;
        if (q->pushers && q->depth < q->capacity) pthread_cond_signal(&q->not_full);
    }
    pthread_mutex_unlock(&q->lock);
    return result;
}

stk_queue_result stk_queue_push(stk_queue *q, const void *item) { return push(q, item, true); }
stk_queue_result stk_queue_try_push(stk_queue *q, const void *item) { return push(q, item, false); }
stk_queue_result stk_queue_pop(stk_queue *q, void *item) { return pop(q, item, true); }
stk_queue_result stk_queue_try_pop(stk_queue *q, void *item) { return pop(q, item, false); }

void stk_queue_close(stk_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_cond_broadcast(&q->not_full);
    pthread_cond_broadcast(&q->not_empty);
    pthread_mutex_unlock(&q->lock);
}

stk_status stk_queue_resize(stk_queue *q, int64_t capacity, stk_error *err)
{
    STK_TRY(check_capacity("queue_resize", q->item_size, capacity, err));
    pthread_mutex_lock(&q->lock);
    int64_t slots = capacity > q->depth ? capacity : q->depth;
    char *items = stk_malloc((size_t)slots * q->item_size);
    if (items) {
        for (int64_t i = 0; i < q->depth; i++)
            memcpy(items + (size_t)i * q->item_size, slot(q, i), q->item_size);
        stk_free(q->items);
        q->items = items;
        q->head = 0;
        q->slots = slots;
        q->capacity = capacity;
        pthread_cond_broadcast(&q->not_full);
    }
    pthread_mutex_unlock(&q->lock);
    return items ? STK_OK : stk_fail_memory(err, "queue_resize", (size_t)slots * q->item_size);
}

stk_queue_stats stk_queue_read_stats(stk_queue *q, bool reset)
{
    pthread_mutex_lock(&q->lock);
    change_depth(q, 0);
    stk_queue_stats stats = q->stats;
    stats.capacity = q->capacity;
    stats.depth = q->depth;
    stats.age_ns = q->changed_ns - q->window_ns;
    stats.mean_depth = stats.age_ns > 0 ? q->depth_time / (double)stats.age_ns : (double)q->depth;
    if (reset) {
        q->stats = (stk_queue_stats){.max_depth = q->depth};
        q->window_ns = q->changed_ns;
        q->depth_time = 0;
    }
    pthread_mutex_unlock(&q->lock);
    return stats;
}
