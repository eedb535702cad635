/* state.h - positions as bytes: what iterators write when they are saved and read when restored.
 *
 * A state is a row of int64, of blobs (length, bytes, padded to 8) and of tensors (dtype, rank, sizes, bytes;
 * or -1 and the elements of a dataset, see nested.h).
 * Failures (no memory, bytes that end early, sizes beyond reason) are remembered and asked for once, at the end. */
#ifndef STK_DATA_STATE_H
#define STK_DATA_STATE_H

#include "base/status.h"
#include "stoker/tensor.h"

typedef struct stk_state {
    uint8_t *data;
    size_t size, capacity; /* capacity 0 with data = borrowed, for reading */
    size_t at;             /* reading position */
    bool no_memory, broken;
    bool inside; /* reading a dataset that is part of an element; they do not nest further */
} stk_state;

void stk_state_put(stk_state *s, int64_t value);
void stk_state_put_blob(stk_state *s, const void *data, size_t size);
void stk_state_put_parts(stk_state *s, int32_t n, stk_tensor *const *parts);
int64_t stk_state_get(stk_state *s); /* 0 after a failure */
/* Points into the state. NULL and size 0 after a failure. */
const void *stk_state_get_blob(stk_state *s, size_t *size);
/* A count or size that has to lie in low..high; low, and the state broken, when it does not. */
int64_t stk_state_get_in(stk_state *s, int64_t low, int64_t high);
/* New handles; on failure none. */
stk_status stk_state_get_parts(stk_state *s, int32_t n, stk_tensor **parts, stk_error *err);
stk_status stk_state_status(const stk_state *s, stk_error *err);
stk_state stk_state_reader(const void *data, size_t size);
void stk_state_release(stk_state *s); /* back to zero; may be used again */

#endif
