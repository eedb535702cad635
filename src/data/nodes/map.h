/* map.h - what others need of the map node: batches that take its elements straight into their rows, and rewrites. */
#ifndef STK_DATA_MAP_H
#define STK_DATA_MAP_H

#include "data/nodes/kinds.h"

typedef struct stk_map_config {
    int32_t n; /* functions, applied one after the other */
    stk_fn **fns;
    stk_map_options options;
    /* > 0: the input's elements are batches of this many, and the functions get them whole */
    int64_t batch;
    bool serial;
} stk_map_config;

typedef struct stk_batch_config {
    int64_t size;
    bool drop_remainder;
} stk_batch_config;

/* A map with these functions (retained) over ds (taken over). */
stk_dataset *stk_map_node(stk_dataset *ds, int32_t n, stk_fn *const *fns,
                          const stk_map_options *options, int64_t batch, stk_error *err);
/* Whether something may come between the two: applied one after the other they give the bits of what a plan would join
 * them to. Of families that are not known: no. */
bool stk_map_parts_exactly(const stk_map_fn *first, const stk_map_fn *second);
/* The functions of the map `stage` on one input element; out as in stk_map_fn.call. */
stk_status stk_map_apply(stk_stage *stage, uint64_t epoch, int64_t index, stk_tensor *const *in,
                         stk_tensor **out, stk_error *err);
/* The same with the result in row `row` of the slots. */
stk_status stk_map_apply_row(stk_stage *stage, uint64_t epoch, int64_t index, stk_tensor *const *in,
                             stk_tensor *const *slots, int64_t row, stk_error *err);

#endif
