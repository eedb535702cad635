/* queue.h - bounded queue between threads, with the counters that tell who waits for whom.
 *
 * Push waits while the queue is full, pop waits while it is empty. After close, pushes are refused
 * and pops go on until the queue is empty. Items are copied in and out; what an item points to
 * belongs to whoever holds the item. All calls may come from any thread. */
#ifndef STK_BASE_QUEUE_H
#define STK_BASE_QUEUE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct stk_queue stk_queue;

typedef enum stk_queue_result {
    STK_QUEUE_DONE,   /* the item went in or came out */
    STK_QUEUE_CLOSED, /* push: closed; pop: closed and empty */
    STK_QUEUE_BUSY    /* try_ only: full, or empty */
} stk_queue_result;

STK_MUST_USE stk_status stk_queue_new(size_t item_size, int64_t capacity, stk_queue **out,
                                      stk_error *err);
/* Items still inside are forgotten: pop them first when they own something. */
void stk_queue_release(stk_queue *queue);

stk_queue_result stk_queue_push(stk_queue *queue, const void *item);
stk_queue_result stk_queue_try_push(stk_queue *queue, const void *item);
stk_queue_result stk_queue_pop(stk_queue *queue, void *item);
stk_queue_result stk_queue_try_pop(stk_queue *queue, void *item);
void stk_queue_close(stk_queue *queue); /* wakes everybody who waits */

/* Takes effect at once; with more items inside than the new capacity nothing is lost, pushes just
 * wait longer. The old capacity stays on failure. */
STK_MUST_USE stk_status stk_queue_resize(stk_queue *queue, int64_t capacity, stk_error *err);

typedef struct stk_queue_stats {
    int64_t capacity, depth, max_depth;
    int64_t pushes, pops;
    int64_t push_waits, pop_waits;     /* calls that had to wait */
    int64_t push_wait_ns, pop_wait_ns; /* for how long: producers too fast, consumers too fast */
    double mean_depth;                 /* weighted by time since the last reset */
    int64_t age_ns;                    /* that time */
} stk_queue_stats;
/* reset starts a new window: counters and mean go to zero, depth stays. */
stk_queue_stats stk_queue_read_stats(stk_queue *queue, bool reset);

#endif
