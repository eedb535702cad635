/* iter.h - the walks that belong to no kind. */
#ifndef STK_DATA_ITER_H
#define STK_DATA_ITER_H

#include "data/node.h"

/* By number, with workers: jobs of some elements each, in flight ahead of the consumer. Saved positions are those of
 * the walk without workers. */
extern const stk_walk stk_ahead_walk;

/* Its elements are counted by stk_stage_get already. */
static inline bool stk_walk_counts_itself(const stk_walk *walk) { return walk == &stk_ahead_walk; }

#endif
