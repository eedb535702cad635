/* Computed orders. Each half of the bits in turn is changed by a hash of the other: a bijection whatever the hash is.
 * Places that land beyond n go through again; about half of them at worst, so two or three walks are the rule. */
#include "data/nodes/order.h"

#include <string.h>

enum { LANES = 8, CHUNK = 256 };
typedef uint32_t lanes __attribute__((vector_size(LANES * 4)));

stk_order stk_order_init(uint64_t seed, int64_t n)
{
    stk_order o = {.n = n, .wide = n > ((int64_t)1 << 32)};
    if (o.wide) {
        o.perm = stk_perm_init(seed, n);
        return o;
    }
    int32_t bits = 2;
    while (bits < 32 && ((int64_t)1 << bits) < n) bits++;
    o.low_bits = bits / 2;
    o.low_mask = ((uint32_t)1 << o.low_bits) - 1;
    o.high_mask = ((uint32_t)1 << (bits - bits / 2)) - 1;
    for (int i = 0; i < STK_ORDER_ROUNDS; i += 2) {
        uint64_t key = stk_mix64(seed + (uint64_t)(i + 1) * 0x9E3779B97F4A7C15u);
        o.key[i] = (uint32_t)key;
        o.key[i + 1] = (uint32_t)(key >> 32);
    }
    return o;
}

#define HASH(x, k)                                                                                 \
    mixed = ((x) + (k)) * 0x9E3779B1u, mixed ^= mixed >> 15, mixed *= 0x85EBCA77u,                 \
    mixed ^= mixed >> 13

/* x[0..8) once through the cipher. */
static inline __attribute__((always_inline)) void pass8(const stk_order *o, uint32_t *x)
{
    lanes v, mixed;
    memcpy(&v, x, sizeof v);
    lanes low = v & o->low_mask, high = v >> o->low_bits;
    for (int i = 0; i < STK_ORDER_ROUNDS; i += 2) {
        HASH(high, o->key[i]);
        low ^= mixed & o->low_mask;
        HASH(low, o->key[i + 1]);
        high ^= mixed & o->high_mask;
    }
    v = high << o->low_bits | low;
    memcpy(x, &v, sizeof v);
}

static void pass_plain(const stk_order *o, uint32_t *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES) pass8(o, x + i);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void pass_avx2(const stk_order *o, uint32_t *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES) pass8(o, x + i);
}
#endif

static void pass(const stk_order *o, uint32_t *x, int64_t n)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        pass_avx2(o, x, n);
        return;
    }
#endif
    pass_plain(o, x, n);
}

static void map_chunk(const stk_order *o, int64_t count, const int64_t *in, int64_t *out)
{
    uint32_t x[CHUNK + LANES];
    int32_t place[CHUNK];
    for (int64_t i = 0; i < count; i++) {
        x[i] = (uint32_t)in[i];
        place[i] = (int32_t)i;
    }
    for (int64_t left = count; left > 0;) {
        for (int64_t i = left; i % LANES; i++) x[i] = 0;
        pass(o, x, left);
        int64_t again = 0;
        for (int64_t i = 0; i < left; i++) {
            bool inside = (int64_t)x[i] < o->n;
            int32_t at = place[i];
            if (inside) out[at] = x[i];
            x[again] = x[i];
            place[again] = at;
            again += !inside;
        }
        left = again;
    }
}

void stk_order_map(const stk_order *o, int64_t count, const int64_t *in, int64_t *out)
{
    for (int64_t i = 0; o->wide && i < count; i++) out[i] = stk_perm_get(&o->perm, in[i]);
    for (int64_t at = 0; !o->wide && at < count; at += CHUNK)
        map_chunk(o, count - at < CHUNK ? count - at : CHUNK, in + at, out + at);
}
