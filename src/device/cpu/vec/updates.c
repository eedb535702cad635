/* The loops of updates.h. Fused operations are spelled as in elementwise.c. */
#include "device/cpu/vec/updates.h"

#include "device/cpu/vec/lanes.h"
#include "device/cpu/vec/math.h"

#if defined(__clang__)
#define FOR_EACH _Pragma("clang loop vectorize(assume_safety)") for (int64_t i = 0; i < n; i++)
#else
#define FOR_EACH _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)
#endif

STK_INLINE float moved(float x, float to, float weight) { return stk_madd_f32(to - x, weight, x); }
STK_INLINE float moved_square(float x, float to, float weight)
{
    return stk_madd_f32(stk_madd_f32(to, to, -x), weight, x);
}

/* All of an element is read before any of it is written. */
static void plain(int64_t n, float *const *at)
{
    const float square_weight = *at[STK_UPDATE_SQUARE_WEIGHT], offset = *at[STK_UPDATE_OFFSET];
    const float rate = *at[STK_UPDATE_RATE];
    const float *square = at[STK_UPDATE_SQUARE], *value = at[STK_UPDATE_VALUE];
    const float *gradient = at[STK_UPDATE_GRADIENT];
    float *new_square = at[STK_UPDATE_NEW_SQUARE], *new_value = at[STK_UPDATE_NEW_VALUE];
    FOR_EACH
    {
        const float w = value[i], g = gradient[i];
        const float v = moved_square(square[i], g, square_weight);
        new_square[i] = v;
        new_value[i] = stk_madd_f32(-rate, g / (sqrtf(v) + offset), w);
    }
}

static void with_mean(int64_t n, float *const *at)
{
    const float square_weight = *at[STK_UPDATE_SQUARE_WEIGHT], offset = *at[STK_UPDATE_OFFSET];
    const float rate = *at[STK_UPDATE_RATE], mean_weight = *at[STK_UPDATE_MEAN_WEIGHT];
    const float *square = at[STK_UPDATE_SQUARE], *value = at[STK_UPDATE_VALUE];
    const float *gradient = at[STK_UPDATE_GRADIENT], *mean = at[STK_UPDATE_MEAN];
    float *new_square = at[STK_UPDATE_NEW_SQUARE], *new_value = at[STK_UPDATE_NEW_VALUE];
    float *new_mean = at[STK_UPDATE_NEW_MEAN];
    FOR_EACH
    {
        const float w = value[i], g = gradient[i];
        const float v = moved_square(square[i], g, square_weight);
        const float m = moved(mean[i], g, mean_weight);
        new_square[i] = v;
        new_mean[i] = m;
        new_value[i] = stk_madd_f32(-rate, m / (sqrtf(v) + offset), w);
    }
}

/* ---- without the divider ------------------------------------------------------------------------- */

#if STK_HAS_STARTS

/* The root of middling numbers. The last step adds the exact rest v - s * s times half of the reciprocal root: what is rounded then
 * is off by 2^-46 at most. */
STK_INLINE vf root_of(vf v)
{
    const vf half = vf_splat(0.5f), start = vf_rsqrt_start(v);
    vf s = v * start, h = half * start;
    const vf rest = vf_fnma(s, h, half);
    s = vf_fma(s, rest, s);
    h = vf_fma(h, rest, h);
    return vf_fma(vf_fnma(s, s, v), h, s);
}

/* Right for v and m that are zero or middling. The quotient's last step adds its exact rest, as the root's does. The reciprocal
 * takes two steps, as it must itself be the nearest number (Markstein). */
STK_INLINE vf quotient_of_root(vf m, vf v, vf offset)
{
    const vf one = vf_splat(1.0f);
    const vf d = vf_choose(vf_is_zero(v), vf_splat(0), root_of(v)) + offset;
    vf r = vf_recip_start(d);
    r = vf_fma(r, vf_fnma(d, r, one), r);
    r = vf_fma(r, vf_fnma(d, r, one), r);
    const vf q = m * r;
    return vf_choose(vf_is_zero(m), q, vf_fma(vf_fnma(d, q, m), r, q));
}

STK_INLINE bool within_reach(vf m, vf v)
{
    const vf_part fine =
        (vf_part)((vf_is_zero(m) | vf_middling(m)) & (vf_is_zero(v) | vf_middling(v)));
    return fine == vf_part_of(STK_VF);
}

/* Elements from i on by the divider: the rest of an array, or numbers at the ends of the range. */
STK_INLINE void by_divider(stk_update_fn run, int64_t i, int64_t n, float *const *at)
{
    float *from[STK_UPDATE_ARGS];
    for (int a = 0; a < STK_UPDATE_ARGS; a++) {
        const bool number = a == STK_UPDATE_SQUARE_WEIGHT || a == STK_UPDATE_OFFSET ||
                            a == STK_UPDATE_RATE || a == STK_UPDATE_MEAN_WEIGHT;
        from[a] = number || !at[a] ? at[a] : at[a] + i;
    }
    run(n, from);
}

STK_INLINE void stepped(const bool mean, int64_t n, float *const *at)
{
    const stk_update_fn divider = mean ? with_mean : plain;
    const float offset = *at[STK_UPDATE_OFFSET];
    int64_t i = 0;
    const bool usual = offset >= 0x1p-50f && offset <= 0x1p50f;
    const vf square_weight = vf_splat(*at[STK_UPDATE_SQUARE_WEIGHT]);
    const vf mean_weight = vf_splat(mean ? *at[STK_UPDATE_MEAN_WEIGHT] : 0);
    const vf rate = vf_splat(*at[STK_UPDATE_RATE]), shift = vf_splat(offset);
    for (; usual && i + STK_VF <= n; i += STK_VF) {
        const vf g = vf_load(at[STK_UPDATE_GRADIENT] + i), w = vf_load(at[STK_UPDATE_VALUE] + i);
        const vf old = vf_load(at[STK_UPDATE_SQUARE] + i);
        const vf v = vf_fma(vf_fma(g, g, -old), square_weight, old);
        vf m = g;
        if (mean) {
            const vf before = vf_load(at[STK_UPDATE_MEAN] + i);
            m = vf_fma(g - before, mean_weight, before);
        }
        if (!within_reach(m, v)) {
            by_divider(divider, i, STK_VF, at);
            continue;
        }
        vf_store(at[STK_UPDATE_NEW_SQUARE] + i, v);
        if (mean) vf_store(at[STK_UPDATE_NEW_MEAN] + i, m);
        vf_store(at[STK_UPDATE_NEW_VALUE] + i, vf_fnma(rate, quotient_of_root(m, v, shift), w));
    }
    if (i < n) by_divider(divider, i, n - i, at);
}

static void plain_stepped(int64_t n, float *const *at) { stepped(false, n, at); }
static void with_mean_stepped(int64_t n, float *const *at) { stepped(true, n, at); }

static const stk_vec_updates by_steps = {.plain = plain_stepped, .with_mean = with_mean_stepped};

/* ---- by turns ------------------------------------------------------------------------------------- */

typedef struct numbers {
    vf square_weight, mean_weight, offset, rate;
} numbers;

/* The root by steps plus the offset. Squares of small gradients are often very small, and those of none at all zero: the former are
 * scaled by a power of two, which is exact; the latter have no reciprocal. */
STK_INLINE vf offset_root(vf v, vf offset)
{
    const vf up = vf_splat(0x1p32f), down = vf_splat(0x1p-16f);
    const vf scaled = v * up;
    if (__builtin_expect(!vf_all_middling(scaled), 0)) return vf_sqrt(v) + offset;
    return vf_fma(root_of(scaled), down, offset);
}

/* One register of elements. */
STK_INLINE void turn(const bool mean, const bool steps, int64_t i, float *const *at,
                     const numbers number)
{
    const vf g = vf_load(at[STK_UPDATE_GRADIENT] + i), w = vf_load(at[STK_UPDATE_VALUE] + i);
    const vf old = vf_load(at[STK_UPDATE_SQUARE] + i);
    const vf v = vf_fma(vf_fma(g, g, -old), number.square_weight, old);
    vf m = g;
    if (mean) {
        const vf before = vf_load(at[STK_UPDATE_MEAN] + i);
        m = vf_fma(g - before, number.mean_weight, before);
    }
    const vf d = steps ? offset_root(v, number.offset) : vf_sqrt(v) + number.offset;
    vf_store(at[STK_UPDATE_NEW_SQUARE] + i, v);
    if (mean) vf_store(at[STK_UPDATE_NEW_MEAN] + i, m);
    vf_store(at[STK_UPDATE_NEW_VALUE] + i, vf_fnma(number.rate, m / d, w));
}

STK_INLINE void turns(const bool mean, int64_t n, float *const *at)
{
    const numbers number = {.square_weight = vf_splat(*at[STK_UPDATE_SQUARE_WEIGHT]),
                            .mean_weight = vf_splat(mean ? *at[STK_UPDATE_MEAN_WEIGHT] : 0),
                            .offset = vf_splat(*at[STK_UPDATE_OFFSET]),
                            .rate = vf_splat(*at[STK_UPDATE_RATE])};
    float *array[STK_UPDATE_ARGS]; /* in registers: nobody else can point to it */
    int64_t i = 0;
    for (int a = 0; a < STK_UPDATE_ARGS; a++) array[a] = at[a];
    for (; i + 2 * STK_VF <= n; i += 2 * STK_VF) {
        turn(mean, true, i, array, number);
        turn(mean, false, i + STK_VF, array, number);
    }
    if (i < n) by_divider(mean ? with_mean : plain, i, n - i, at);
}

static void plain_by_turns(int64_t n, float *const *at) { turns(false, n, at); }
static void with_mean_by_turns(int64_t n, float *const *at) { turns(true, n, at); }

static const stk_vec_updates by_turns = {.plain = plain_by_turns, .with_mean = with_mean_by_turns};
#define BY_STEPS &by_steps
#define BY_TURNS &by_turns

#else
#define BY_STEPS NULL
#define BY_TURNS NULL
#endif

const stk_vec_updates STK_VEC(stk_vec_updates) = {
    .plain = plain, .with_mean = with_mean, .by_steps = BY_STEPS, .by_turns = BY_TURNS};
