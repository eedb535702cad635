/* The loops of updates.h. Fused operations are spelled as in elementwise.c. */
#include "device/cpu/vec/updates.h"

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

const stk_vec_updates STK_VEC(stk_vec_updates) = {.plain = plain, .with_mean = with_mean};
