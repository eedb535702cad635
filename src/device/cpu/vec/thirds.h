/* thirds.h - floats cut into three bfloat16 whose sum they are (lanes.h), and packed for products of tiles (gemm_tiles.c): a square of
 * 32 x 32 numbers becomes three, one behind the other.
 *
 *     left    [third][32 rows][16 pairs of terms]
 *     right   [third][16 pairs of terms][32 columns]
 *
 * A pair holds terms t and t + 16, not neighbours: so both come in whole registers. Numbers that are infinite or NaN are packed as
 * zeros, and reported. */
#ifndef STK_DEVICE_CPU_VEC_THIRDS_H
#define STK_DEVICE_CPU_VEC_THIRDS_H

#include "base/memory.h"
#include "device/cpu/vec/lanes.h"

#if STK_HAS_PAIRS

enum { STK_THIRDS_SIDE = 32, STK_THIRDS_SQUARE = STK_THIRDS_SIDE * STK_THIRDS_SIDE * 2 };

/* Lines of a square are rows of a, or terms of b; turned: they are stored across. */
typedef struct stk_thirds_source {
    const float *at; /* line 0, lane 0 */
    int64_t ld;
    int64_t lines, lanes; /* that are there */
    bool turned;
} stk_thirds_source;

/* Where the square is not whole, a copy with zeros around it. */
static inline void stk_thirds_pad(stk_thirds_source *s, float room[][STK_THIRDS_SIDE])
{
    const int64_t rows = s->turned ? s->lanes : s->lines, n = s->turned ? s->lines : s->lanes;
    for (int64_t i = 0; i < STK_THIRDS_SIDE; i++)
        for (int64_t j = 0; j < STK_THIRDS_SIDE; j += STK_VF) {
            const bool some = i < rows && j < n;
            const vf_part part = vf_part_of(some ? stk_min_i64(n - j, STK_VF) : 1);
            vf_store(&room[i][j], some ? vf_load_part(s->at + i * s->ld + j, part) : (vf){0});
        }
    s->at = room[0];
    s->ld = STK_THIRDS_SIDE;
}

/* 16 lanes of four lines. */
STK_INLINE void stk_thirds_lines(const stk_thirds_source *s, int64_t line, int64_t lane, vf out[4])
{
    if (s->turned)
        vf_turn(s->at + lane * s->ld + line, s->ld, out);
    else
        STK_UNROLL for (int r = 0; r < 4; r++) out[r] = vf_load(s->at + (line + r) * s->ld + lane);
}

/* Which lanes are endless; they become zeros. */
STK_INLINE uint32_t stk_thirds_tame(vf *v)
{
    const vf_part endless = vf_endless(*v);
    *v = vf_choose(endless, (vf){0}, *v);
    return endless;
}

typedef void stk_thirds_cut(vf x, vf out[3]);

/* Returns the pairs of the first thirds. */
STK_INLINE vf stk_thirds_put(stk_thirds_cut *cut, char *to, vf low, vf high)
{
    vf l[3], h[3], pairs[3];
    cut(low, l);
    cut(high, h);
    STK_UNROLL for (int t = 0; t < 3; t++)
    {
        pairs[t] = vp_join(l[t], h[t]);
        vf_store((float *)(void *)(to + t * STK_THIRDS_SQUARE), pairs[t]);
    }
    return pairs[0];
}

/* A whole square that may have endless numbers, or some that would round to them. */
STK_INLINE uint32_t stk_thirds_pack_any(const bool left, const stk_thirds_source *s, char *to)
{
    const int64_t row = left ? 64 : 128;
    uint32_t endless = 0;
    for (int64_t i = 0; i < STK_THIRDS_SIDE; i += 4) {
        const int64_t line = left ? i : i % 16, lane = left ? 0 : i / 16 * 16;
        char *at = to + line * row + lane * 4;
        vf low[4], high[4];
        stk_thirds_lines(s, line, lane, low);
        stk_thirds_lines(s, left ? line : line + 16, left ? 16 : lane, high);
        STK_UNROLL for (int r = 0; r < 4; r++)
        {
            const uint32_t lanes = stk_thirds_tame(&low[r]) | stk_thirds_tame(&high[r]);
            endless |= left ? (uint32_t)(lanes != 0) << (i + r) : lanes << lane;
            stk_thirds_put(vp_thirds, at + r * row, low[r], high[r]);
        }
    }
    return endless;
}

/* One that has none: false if it has some after all. `next`: what is packed behind it, on its way to the cache while we cut. */
STK_INLINE bool stk_thirds_pack_finite(const bool left, const stk_thirds_source *s,
                                       const float *next, char *to)
{
    const int64_t row = left ? 64 : 128;
    vf most = {0};
    for (int64_t i = 0; i < STK_THIRDS_SIDE; i += 4) {
        const int64_t line = left ? i : i % 16, lane = left ? 0 : i / 16 * 16;
        char *at = to + line * row + lane * 4;
        vf low[4], high[4];
        STK_UNROLL for (int r = 0; r < 4; r++)
        {
            __builtin_prefetch(next + (i + r) * s->ld);
            __builtin_prefetch(next + (i + r) * s->ld + STK_VF);
        }
        stk_thirds_lines(s, line, lane, low);
        stk_thirds_lines(s, left ? line : line + 16, left ? 16 : lane, high);
        STK_UNROLL for (int r = 0; r < 4; r++) most =
            vp_larger(most, stk_thirds_put(vp_thirds_below, at + r * row, low[r], high[r]));
    }
    return !vp_endless_in(most);
}

/* Bit i of what it returns: row i of a, or column i of b, has an endless number. next: the square behind, or any address. */
STK_INLINE uint32_t stk_thirds_pack(const bool left, stk_thirds_source s, const float *next,
                                    char *to)
{
    float room[STK_THIRDS_SIDE][STK_THIRDS_SIDE] __attribute__((aligned(64)));
    if (s.lines < STK_THIRDS_SIDE || s.lanes < STK_THIRDS_SIDE) stk_thirds_pad(&s, room);
    if (__builtin_expect(stk_thirds_pack_finite(left, &s, next, to), 1)) return 0;
    return stk_thirds_pack_any(left, &s, to);
}

#endif
#endif
