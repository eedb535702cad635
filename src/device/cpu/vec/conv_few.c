/* conv_few.c - finding the few numbers of an array that are not zero, and adding multiples of rows for each of them (conv.h). */
#include "device/cpu/vec/conv.h"
#include "device/cpu/vec/lanes.h"

static int64_t count(int64_t n, const float *x)
{
    int64_t found = 0, i = 0;
    for (; i + STK_VF <= n; i += STK_VF) found += __builtin_popcount(vf_nonzero(vf_load(x + i)));
    for (; i < n; i++) found += x[i] != 0;
    return found;
}

static int64_t pick(int64_t n, const float *x, int32_t *at)
{
    int64_t found = 0, i = 0;
    for (; i + STK_VF <= n; i += STK_VF)
        for (uint32_t left = vf_nonzero(vf_load(x + i)); left; left &= left - 1)
            at[found++] = (int32_t)i + __builtin_ctz(left);
    for (; i < n; i++)
        if (x[i] != 0) at[found++] = (int32_t)i;
    return found;
}

static int64_t count_halves(int64_t n, const uint16_t *x)
{
    int64_t found = 0;
    for (int64_t i = 0; i < n;) { /* lanes of 16 bits do not overflow in such a stretch */
        const int64_t end = n - i > 4096 ? i + 4096 : n;
        uint16_t some = 0;
        for (; i < end; i++) some = (uint16_t)(some + ((x[i] & 0x7fff) != 0));
        found += some;
    }
    return found;
}

static int64_t pick_halves(int64_t n, const uint16_t *x, int32_t *at)
{
    int64_t found = 0, i = 0;
#if STK_HAS_PAIRS
    for (; i + 32 <= n; i += 32)
        for (uint32_t left = vp_nonzero(x + i); left; left &= left - 1)
            at[found++] = (int32_t)i + __builtin_ctz(left);
#endif
    for (; i < n; i++)
        if (x[i] & 0x7fff) at[found++] = (int32_t)i;
    return found;
}

static void add(int64_t n, float *to, const float *x, float times)
{
    const vf all = (vf){0} + times;
    int64_t i = 0;
    for (; i + STK_VF <= n; i += STK_VF) vf_store(to + i, vf_load(to + i) + vf_load(x + i) * all);
    if (i == n) return;
    const vf_part part = vf_part_of(n - i);
    vf_store_part(to + i, vf_load_part(to + i, part) + vf_load_part(x + i, part) * all, part);
}

/* Four columns of as many rows as a register has numbers, at a time. */
static void turn(int64_t rows, int64_t cols, const float *x, float *to, int64_t ld)
{
    int64_t r = 0;
    for (; r + STK_VF <= rows; r += STK_VF) {
        int64_t c = 0;
        for (; c + 4 <= cols; c += 4) {
            vf out[4];
            vf_turn(x + r * cols + c, cols, out);
            for (int i = 0; i < 4; i++) vf_store(to + (c + i) * ld + r, out[i]);
        }
        for (; c < cols; c++)
            for (int64_t i = r; i < r + STK_VF; i++) to[c * ld + i] = x[i * cols + c];
    }
    for (; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) to[c * ld + r] = x[r * cols + c];
}

const stk_vec_conv_few STK_VEC(stk_vec_conv_few) = {count, pick,         add,
                                                    turn,  count_halves, pick_halves};
