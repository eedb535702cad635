/* The transforms of winograd.h along one axis, and the kinds of tiles made of them.
 *
 * A sum of products over r taps is a product of polynomials: both factors are evaluated at n points, multiplied there, and
 * the result is found back. All that depends on the points p is said here:
 *
 *     spread    A    p^0 y0 + p^1 y1 + ... at every point, the last one alone at infinity
 *     collect   A'   the same numbers, added up the other way
 *     source    B'   coefficients of the polynomials that vanish at all points but one; in stages, some points each
 *     scale          what those are at their own point: G is spread, scaled
 *
 * 4 points: 0 1 -1 inf. 6 points: 0 a -a b -b inf with a = 5/8, b = 3/2: exact in binary, and nearer to 1 than 1 and 2,
 * so that powers neither grow nor vanish: half the rounding error of 1 and 2. */
#include "device/cpu/vec/winograd.h"

#include "base/memory.h"
#include "device/cpu/vec/lanes.h"

#include <string.h>

/* ---- one tap: as it is ------------------------------------------------------------------------------- */

enum { STAGES_1 = 1 };
STK_INLINE int stage_row_1(int stage, int i) { return stage + i; }
STK_INLINE void source_1(const vf *d, vf *out) { out[0] = d[0]; }
STK_INLINE void source_stage_1(const vf *d, int stage, vf *out) { out[stage] = d[0]; }
STK_INLINE void spread_1(const vf *y, int n, vf *out) { out[0] = y[n - 1]; }
STK_INLINE void collect_1(const vf *m, int n, vf *out) { out[n - 1] = m[0]; }
STK_INLINE void scale_1(vf *m) { (void)m; }

/* ---- 4 points ------------------------------------------------------------------------------------------ */

enum { STAGES_4 = 1 };
STK_INLINE int stage_row_4(int stage, int i) { return stage + i; }
STK_INLINE void source_4(const vf *d, vf *out)
{
    out[0] = d[0] - d[2];
    out[1] = d[1] + d[2];
    out[2] = d[2] - d[1];
    out[3] = d[3] - d[1];
}
STK_INLINE void source_stage_4(const vf *d, int stage, vf *out) { source_4(d, out + stage); }

STK_INLINE void spread_4(const vf *y, int n, vf *out)
{
    const vf even = n > 2 ? y[0] + y[2] : y[0];
    out[0] = y[0];
    out[1] = even + y[1];
    out[2] = even - y[1];
    out[3] = y[n - 1];
}

STK_INLINE void collect_4(const vf *m, int n, vf *out)
{
    const vf even = m[1] + m[2];
    out[0] = m[0] + even;
    out[1] = m[1] - m[2];
    if (n > 2) out[2] = even;
    out[n - 1] += m[3];
}

STK_INLINE void scale_4(vf *m)
{
    m[1] *= 0.5f;
    m[2] *= 0.5f;
}

/* ---- 6 points ------------------------------------------------------------------------------------------ */

#define PA 0.625f
#define PB 1.5f
#define A2 (PA * PA)
#define B2 (PB * PB)
static const float power_a[5] = {1, PA, A2, A2 *PA, A2 *A2};
static const float power_b[5] = {1, PB, B2, B2 *PB, B2 *B2};

enum { STAGES_6 = 3 };

/* Stages are both points of a pair, of the other pair, and the ends: what of a tile is half done then fits the registers. */
STK_INLINE int stage_row_6(int stage, int i) { return stage < 2 ? 2 * stage + 1 + i : 5 * i; }

STK_INLINE void source_pair(const vf *d, float own, float other2, vf *out)
{
    const vf even = d[4] - other2 * d[2], odd = d[3] - other2 * d[1];
    out[0] = even + odd * own;
    out[1] = even - odd * own;
}

STK_INLINE void source_stage_6(const vf *d, int stage, vf *out)
{
    if (stage < 2) {
        source_pair(d, stage ? PB : PA, stage ? A2 : B2, out);
        return;
    }
    out[0] = A2 * B2 * d[0] + (d[4] - (A2 + B2) * d[2]);
    out[1] = A2 * B2 * d[1] + (d[5] - (A2 + B2) * d[3]);
}

STK_INLINE void source_6(const vf *d, vf *out)
{
    STK_UNROLL for (int stage = 0; stage < STAGES_6; stage++)
    {
        vf two[2];
        source_stage_6(d, stage, two);
        out[stage_row_6(stage, 0)] = two[0];
        out[stage_row_6(stage, 1)] = two[1];
    }
}

/* Both points of a pair: even powers are equal, odd ones differ in sign. */
STK_INLINE void spread_pair(const vf *y, int n, const float *power, vf *out)
{
    vf even = y[0], odd = y[1] * power[1];
    STK_UNROLL for (int r = 2; r < n; r++)
    {
        if (r % 2)
            odd += y[r] * power[r];
        else
            even += y[r] * power[r];
    }
    out[0] = even + odd;
    out[1] = even - odd;
}

STK_INLINE void spread_6(const vf *y, int n, vf *out)
{
    out[0] = y[0];
    spread_pair(y, n, power_a, out + 1);
    spread_pair(y, n, power_b, out + 3);
    out[5] = y[n - 1];
}

STK_INLINE void collect_6(const vf *m, int n, vf *out)
{
    const vf even_a = m[1] + m[2], odd_a = m[1] - m[2];
    const vf even_b = m[3] + m[4], odd_b = m[3] - m[4];
    STK_UNROLL for (int r = 0; r < n; r++) out[r] =
        r % 2 ? odd_a * power_a[r] + odd_b * power_b[r] : even_a * power_a[r] + even_b * power_b[r];
    out[0] += m[0];
    out[n - 1] += m[5];
}

STK_INLINE void scale_6(vf *m)
{
    const float at_0 = 1 / (A2 * B2), at_a = 1 / (2 * A2 * (A2 - B2)),
                at_b = 1 / (2 * B2 * (B2 - A2));
    m[0] *= at_0;
    m[1] *= at_a;
    m[2] *= at_a;
    m[3] *= at_b;
    m[4] *= at_b;
}

/* ---- channels ------------------------------------------------------------------------------------------- */

/* One block of channels: `part` is all lanes, except at the end. */
STK_INLINE vf load(const float *from, vf_part part, bool whole)
{
    return whole ? vf_load(from) : vf_load_part(from, part);
}
STK_INLINE void store(float *to, vf v, vf_part part, bool whole)
{
    if (whole)
        vf_store(to, v);
    else
        vf_store_part(to, v, part);
}

#define EACH_BLOCK(channels, body)                                                                 \
    do {                                                                                           \
        int64_t c = 0;                                                                             \
        const vf_part none = vf_part_of(STK_VF);                                                   \
        for (; c + STK_VF <= (channels); c += STK_VF) {                                            \
            body(c, none, true);                                                                   \
        }                                                                                          \
        if (c < (channels)) {                                                                      \
            body(c, vf_part_of((channels)-c), false);                                              \
        }                                                                                          \
    } while (0)

/* At most a register of them; sizes are constants where they can be, or compilers take slow instructions for strings. */
STK_INLINE void copy_channels(void *to, const void *from, int64_t channels, int64_t size)
{
    if (channels >= STK_VF)
        memcpy(to, from, (size_t)(STK_VF * size));
    else
        for (int64_t i = 0; i < channels; i++)
            memcpy((char *)to + i * size, (const char *)from + i * size, (size_t)size);
}

/* The addresses of a tile's numbers are found anew for each block of channels: kept from block to block they need more registers
 * than there are. */
#define STK_HIDE(pointer) __asm__("" : "+r"(pointer))

STK_INLINE bool is_inside(stk_winograd_inside in, int64_t row, int64_t col)
{
    return row >= in.row_lo && row < in.row_hi && col >= in.col_lo && col < in.col_hi;
}
STK_INLINE bool is_whole(stk_winograd_inside in, int64_t rows, int64_t cols)
{
    return in.row_lo == 0 && in.row_hi == rows && in.col_lo == 0 && in.col_hi == cols;
}

#define ON_PASTE(word, points)  word##_##points
#define ON_POINTS(word, points) ON_PASTE(word, points)
#define ON_ROWS(word)           ON_POINTS(word, ROW_POINTS)
#define ON_COLS(word)           ON_POINTS(word, COL_POINTS)

/* ---- kinds of tiles --------------------------------------------------------------------------------------- */

#define PIXEL float
#define PIXEL_CODE
#define LOAD             load
#define STORE            store
#define KIND(name, kind) ON_POINTS(name, kind)
#define KINDS            floats
#include "device/cpu/vec/winograd_kinds.inc"

#if STK_HAS_PAIRS

STK_INLINE vf load_half(const uint16_t *from, vf_part part, bool whole)
{
    return vp_load_wide(from, whole ? vf_part_of(STK_VF) : part);
}
STK_INLINE STK_PAIRS void store_half(uint16_t *to, vf v, vf_part part, bool whole)
{
    vp_store_rounded(to, v, whole ? vf_part_of(STK_VF) : part);
}

#define PIXEL            uint16_t
#define PIXEL_CODE       STK_PAIRS
#define LOAD             load_half
#define STORE            store_half
#define KIND(name, kind) ON_POINTS(name, half_##kind)
#define KINDS            halves
#include "device/cpu/vec/winograd_kinds.inc"

const stk_vec_winograd STK_VEC(stk_vec_winograd) = {.floats = floats, .halves = halves};

#else

const stk_vec_winograd STK_VEC(stk_vec_winograd) = {.floats = floats};

#endif
