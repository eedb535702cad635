/* The edges of the roofline. Twelve independent chains hide the latency of every known core's multiply-add; each starts
 * at another value, since equal ones would be merged by the compiler. */
#include "device/cpu/vec/peak.h"

#include "device/cpu/vec/lanes.h"

enum { CHAINS = 12 };

static float fma_rounds(int64_t rounds)
{
    vf r[CHAINS], x = {0}, y = {0};
    STK_UNROLL for (int l = 0; l < STK_VF; l++)
    {
        x[l] = 0.999f;
        y[l] = 0.001f;
    }
    STK_UNROLL for (int i = 0; i < CHAINS; i++) r[i] = x * (0.1f * (float)(i + 1));
    for (int64_t k = 0; k < rounds; k++)
        STK_UNROLL for (int i = 0; i < CHAINS; i++) r[i] = r[i] * x + y;
    vf sum = r[0];
    STK_UNROLL for (int i = 1; i < CHAINS; i++) sum += r[i];
    return sum[0];
}

static void triad(float *a, const float *b, const float *c, int64_t n)
{
    int64_t i = 0;
    for (; i + STK_VF <= n; i += STK_VF) vf_store(a + i, vf_load(b + i) + vf_load(c + i) * 0.5f);
    for (; i < n; i++) a[i] = b[i] + 0.5f * c[i];
}

const stk_vec_peak STK_VEC(stk_vec_peak) = {(int64_t)2 * CHAINS * STK_VF, fma_rounds, triad};
