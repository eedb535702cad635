/* cache.h - caches that know when they are full, for whoever puts one into a dataset by himself. */
#ifndef STK_DATA_CACHE_H
#define STK_DATA_CACHE_H

#include "data/core/node.h"

/* In RAM, with at most so many bytes: by number, what does not fit is made anew each time; in order, nothing is kept when
 * not everything fits. It never fails for want of room. */
stk_dataset *stk_data_cache_within(stk_dataset *in, int64_t bytes, stk_error *err);
/* Bytes that an element of these parts takes in a cache. */
int64_t stk_cached_bytes(int32_t n, stk_tensor *const *parts);

/* For measuring: a stream that fills a cache in order shall stop at its next element. */
void stk_cache_stop(stk_dataset *ds);
/* For measuring, when no stream is open: from now on the elements that are there, from the first on without a gap, stand
 * for all. Returns how many; 0: it was left as it is. */
int64_t stk_cache_settle(stk_dataset *ds);

#endif
