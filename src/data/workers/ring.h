/* ring.h - items in flight, in order: what a stage has given to the workers and not yet handed on.
 *
 * One thread (the stage's consumer) begins, starts and takes items; workers run them. An item that nobody has started when
 * it is wanted is run by the consumer itself, so stages inside stages cannot wait for each other for ever, and without
 * workers everything still works, on one thread. */
#ifndef STK_DATA_RING_H
#define STK_DATA_RING_H

#include "data/core/run.h"

enum { STK_RING_MOST = 256 };

typedef struct stk_ring stk_ring;
typedef struct stk_ring_item {
    stk_ring *ring;
    int32_t state;
    bool taken; /* handed on before its turn */
    int64_t number;
    int64_t ticks; /* it took */
    stk_status status;
    stk_error error;
    _Alignas(16) char data[]; /* of the owner, zeroed once */
} stk_ring_item;

/* work: runs an item on any thread. clean: releases what an item's data holds; called for items that are not taken, and
 * at the end for each item that was ever begun. */
stk_status stk_ring_new(stk_stage *stage, void *context, size_t data_size,
                        void (*work)(void *context, stk_ring_item *item),
                        void (*clean)(stk_ring_item *item), stk_ring **out, stk_error *err);
void stk_ring_close(stk_ring *ring); /* NULL is fine; waits for running items */

/* What a consumer waits at. Rings have one of their own; several can share one, so that their consumer can wait for
 * whichever is ready first. */
typedef struct stk_bell stk_bell;
stk_status stk_bell_new(stk_bell **out, stk_error *err);
void stk_bell_release(stk_bell *bell);               /* NULL is fine */
void stk_ring_share(stk_ring *ring, stk_bell *bell); /* before its first item */
bool stk_ring_is_done(const stk_ring *ring);         /* its oldest item is */
/* Until the oldest item of one of these rings is done; all share a bell, and one or more have an item. */
stk_status stk_rings_wait(int64_t n, stk_ring *const *rings, stk_error *err);

/* Items so short that the consumer had better do them itself; then one in flight is enough. */
bool stk_ring_is_cheap(const stk_ring *ring);
bool stk_ring_on_worker(void); /* is the caller an item on a worker's thread? */
void *stk_ring_context(const stk_ring *ring);
/* Numbers go on from here; only while the ring is empty. */
void stk_ring_set_number(stk_ring *ring, int64_t number);
int64_t stk_ring_depth(const stk_ring *ring); /* begun and not popped */
/* Fewer than `most` are to be handed on. Those taken before their turn do not count, as far as the ring reaches. */
bool stk_ring_has_room(const stk_ring *ring, int64_t most);
/* The next item, to be filled and started; NULL without memory. */
stk_ring_item *stk_ring_begin(stk_ring *ring, stk_error *err);
stk_status stk_ring_start(stk_ring *ring, stk_ring_item *item, stk_error *err);
/* Done; depth must not be 0. These two give NULL when the consumer was interrupted while it waited. */
stk_ring_item *stk_ring_oldest(stk_ring *ring, stk_error *err);
stk_ring_item *stk_ring_any(
    stk_ring *ring, stk_error *err); /* the oldest that is done, waiting for one if none is */
void stk_ring_pop(stk_ring *ring,
                  stk_ring_item *item); /* the item's data is free for the next begin */
/* Visits the items from the oldest on; NULL at the end. */
stk_ring_item *stk_ring_at(stk_ring *ring, int64_t i);

#endif
