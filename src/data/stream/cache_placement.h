/* cache_placement.h - a cache put into a dataset where it saves the most: behind what is the same in every epoch, before what differs. */
#ifndef STK_DATA_CACHE_PLACEMENT_H
#define STK_DATA_CACHE_PLACEMENT_H

#include "stoker/data.h"

/* What such a cache would hold. False: there is no place for one (nothing below the first random node is work, functions do
 * not say that they are pure, there is no end), it is not known how much that is, or there is a cache already. Takes at
 * most about `seconds` to find out, and reads some elements where sizes are not announced. */
typedef struct stk_cache_need {
    int64_t elements, bytes;
    int64_t budget; /* of a stream over this dataset, for all of its buffers */
} stk_cache_need;
bool stk_dataset_cache_need(stk_dataset *ds, double seconds, stk_cache_need *out);

/* The same elements, with such a cache of at most so many bytes; the dataset itself (the handle goes on) where there is no
 * place for one. Each call makes a new and empty cache. */
stk_dataset *stk_data_place_cache(stk_dataset *ds, int64_t bytes, stk_error *err);

/* Fills the cache of stk_data_place_cache, once, for about so many seconds at most. When they do not do, what was kept by then stands
 * for all elements from now on: good for measuring, not for training. part: how many these are; 0: it is full. */
stk_status stk_dataset_fill_placed_cache(stk_dataset *ds, double seconds, int64_t *part,
                                         stk_error *err);

#endif
