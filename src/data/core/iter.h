/* iter.h - the walks that belong to no kind, and the parts that walks of several kinds share. */
#ifndef STK_DATA_ITER_H
#define STK_DATA_ITER_H

#include "data/core/node.h"

/* By number, with workers: items of some elements each, in flight ahead of the consumer. Saved positions are those of
 * the walk without workers. */
extern const stk_walk stk_parallel_index_walk;

/* Its elements are counted by stk_stage_get already. */
static inline bool stk_walk_counts_itself(const stk_walk *walk)
{
    return walk == &stk_parallel_index_walk;
}

/* Walks by number: what was handed out beyond the position, when any order will do. Empty otherwise, and then NULL. */
enum { STK_GAPS_MOST = 512 };
typedef struct stk_gaps {
    int64_t n, from[STK_GAPS_MOST], upto[STK_GAPS_MOST]; /* rising */
} stk_gaps;
/* Writes the position and the gaps behind it. */
void stk_gaps_save(const stk_gaps *gaps, int64_t position, stk_state *out);
stk_status stk_gaps_restore(stk_state *in, int64_t *position, stk_gaps **gaps, stk_error *err);
/* The first position from here on that is in no gap; *room: how many follow until the next one. */
int64_t stk_gaps_skip(const stk_gaps *gaps, int64_t position, int64_t *room);

/* Walks with one input whose position is that of the input and two numbers of their own. */
typedef struct stk_follow {
    stk_iter *in;
    int64_t number[2]; /* >= 0 */
} stk_follow;
stk_status stk_follow_open(stk_iter *it, stk_error *err);
stk_status stk_follow_save(stk_iter *it, stk_state *out, stk_error *err);
stk_status stk_follow_restore(stk_iter *it, stk_state *in, stk_error *err);
void stk_follow_close(stk_iter *it);

/* One iterator for each input of it's stage; what was opened is in *out also when it fails. */
stk_status stk_iters_open(stk_iter *it, stk_iter ***out, stk_error *err);
void stk_iters_close(stk_iter *it, stk_iter **in); /* NULL is fine */

#endif
