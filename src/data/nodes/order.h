/* order.h - a shuffled order that is computed, many places at a time: a small cipher over the smallest power of two that
 * holds n, walked until it lands inside. As stk_perm of base/rng.h, but eight places at once where the machine can. */
#ifndef STK_DATA_ORDER_H
#define STK_DATA_ORDER_H

#include "base/rng.h"

enum { STK_ORDER_ROUNDS = 12 };
typedef struct stk_order {
    int64_t n;
    bool wide;     /* more than 2^32: by stk_perm */
    stk_perm perm; /* wide only */
    int32_t low_bits;
    uint32_t low_mask, high_mask, key[STK_ORDER_ROUNDS];
} stk_order;

stk_order stk_order_init(uint64_t seed, int64_t n);
/* out[k] = where place in[k] (0 <= in[k] < n) gets its element from; in and out may be the same. */
void stk_order_map(const stk_order *order, int64_t count, const int64_t *in, int64_t *out);

#endif
