/* rnn_lanes.h - the float cells whose time is that of their sigmoids and tanhs, in registers.
 *
 * One exponential is a chain of a dozen dependent steps, and a processor looks ahead over two or three of them: written gate by
 * gate it waits. So each step is done for all gates of a few registers of hidden units before the next one. */
#ifndef STK_DEVICE_CPU_VEC_RNN_LANES_H
#define STK_DEVICE_CPU_VEC_RNN_LANES_H

#include "device/cpu/vec/lanes.h"
#include "device/cpu/vec/rnn.h"
#include "device/cpu/vec/widths.h"

enum { SIDE_BY_SIDE = STK_VREGS == 32 && STK_VF == 16 ? 2 : 1, MOST_CHAINS = 4 * SIDE_BY_SIDE };

#define EACH_CHAIN STK_UNROLL for (int i = 0; i < count; i++)

/* e^x = s + s p, where s is a power of two and p small when x is. Beyond +-87 as there. The reduction takes one step, off by
 * 2^-29 of e^x per power of two: what is large is saturated. */
STK_INLINE void exps(const int count, const vf *x, vf *p, vf *s)
{
    vf c[MOST_CHAINS], r[MOST_CHAINS];
    EACH_CHAIN c[i] = vn_(min)(vn_(splat)(87.0f), vn_(max)(vn_(splat)(-87.0f), x[i]));
    EACH_CHAIN s[i] = c[i] * 0x1.715476p0f + STK_ROUND_F32;
    EACH_CHAIN p[i] = s[i] - STK_ROUND_F32;
    EACH_CHAIN r[i] = c[i] - p[i] * 0x1.62e430p-1f;
    EACH_CHAIN s[i] = (vf)(((mn)s[i] + 127) << 23);            /* as in vn_(exp_down) */
    EACH_CHAIN p[i] = 0x1.6d967ap-10f * r[i] + 0x1.122638p-7f; /* stk_exp_rest */
    EACH_CHAIN p[i] = p[i] * r[i] + 0x1.55548ap-5f;
    EACH_CHAIN p[i] = p[i] * r[i] + 0x1.5554b2p-3f;
    EACH_CHAIN p[i] = p[i] * r[i] + 0.5f;
    EACH_CHAIN p[i] = p[i] * r[i] + 1.0f;
    EACH_CHAIN p[i] = p[i] * r[i];
}

/* The first `sigmoids` of x become sigmoids, the others, which are twice the operand, tanhs. */
STK_INLINE void gates_of(const int sigmoids, const int count, vf *x)
{
    vf p[MOST_CHAINS], s[MOST_CHAINS];
    exps(count, x, p, s);
    EACH_CHAIN x[i] = s[i] * p[i] + (i < sigmoids ? s[i] : s[i] - 1.0f);
    EACH_CHAIN p[i] = x[i] + (i < sigmoids ? 1.0f : 2.0f);
    EACH_CHAIN x[i] = x[i] / p[i];
}

/* Register `at` of a row, the whole of it or the part that is there. */
typedef struct piece {
    int64_t n;
    vf_part part;
} piece;
STK_INLINE vf take(const bool cut, const piece *w, const float *from)
{
    return cut ? vf_load_part(from, w->part) : vf_load(from);
}
STK_INLINE void put(const bool cut, const piece *w, float *to, vf v)
{
    if (cut)
        vf_store_part(to, v, w->part);
    else
        vf_store(to, v);
}

#define EACH_REGISTER STK_UNROLL for (int v = 0; v < wide; v++)

STK_INLINE void lstm_piece(const int wide, const bool cut, const piece *w, const stk_rnn_row *r,
                           int64_t at)
{
    const float *x = r->x, *hu = r->hu, *b = r->b, *before = r->before;
    float *gates = r->gates, *c = r->c, *h = r->h;
    vf gate[MOST_CHAINS], now[SIDE_BY_SIDE], y[SIDE_BY_SIDE];
    STK_UNROLL for (int g = 0; g < 4; g++) EACH_REGISTER
    { /* i, f, o, then g */
        const int64_t j = (g == 2 ? 3 : g == 3 ? 2 : g) * w->n + at + v * STK_VF;
        vf sum = take(cut, w, x + j) + take(cut, w, b + j) + take(cut, w, hu + j);
        gate[g * wide + v] = g == 3 ? sum + sum : sum;
    }
    gates_of(3 * wide, 4 * wide, gate);
    EACH_REGISTER
    {
        vf old = take(cut, w, before + at + v * STK_VF);
        now[v] = gate[wide + v] * old + gate[v] * gate[3 * wide + v];
        y[v] = now[v] + now[v];
    }
    STK_UNROLL for (int g = 0; g < 4; g++) EACH_REGISTER put(cut, w,
                                                             gates +
                                                                 (g == 2   ? 3
                                                                  : g == 3 ? 2
                                                                           : g) *
                                                                     w->n +
                                                                 at + v * STK_VF,
                                                             gate[g * wide + v]);
    gates_of(0, wide, y);
    EACH_REGISTER
    {
        put(cut, w, c + at + v * STK_VF, now[v]);
        put(cut, w, h + at + v * STK_VF, gate[2 * wide + v] * y[v]);
    }
}

STK_INLINE void lstm_back_piece(const int wide, const bool cut, const piece *w,
                                const stk_rnn_back *r, int64_t at)
{
    const float *gates = (const float *)r->gates + at, *before = (const float *)r->before + at;
    const float *c = (const float *)r->c + at;
    float *dh = (float *)r->dh + at, *dc = (float *)r->dc + at, *dx = (float *)r->dx + at;
    const int64_t n = w->n;
    vf y[SIDE_BY_SIDE];
    EACH_REGISTER y[v] = 2.0f * take(cut, w, c + v * STK_VF);
    gates_of(0, wide, y);
    EACH_REGISTER
    {
        const int64_t j = v * STK_VF;
        vf i = take(cut, w, gates + j), f = take(cut, w, gates + n + j);
        vf g = take(cut, w, gates + 2 * n + j), o = take(cut, w, gates + 3 * n + j);
        vf d_h = take(cut, w, dh + j);
        vf d = take(cut, w, dc + j) + d_h * o * (1.0f - y[v] * y[v]);
        put(cut, w, dx + j, d * g * i * (1.0f - i));
        put(cut, w, dx + n + j, d * take(cut, w, before + j) * f * (1.0f - f));
        put(cut, w, dx + 2 * n + j, d * i * (1.0f - g * g));
        put(cut, w, dx + 3 * n + j, d_h * y[v] * o * (1.0f - o));
        put(cut, w, dc + j, d * f);
        put(cut, w, dh + j, vn_(splat)(0.0f));
    }
}

STK_INLINE void gru_after_piece(const int wide, const bool cut, const piece *w,
                                const stk_rnn_row *r, int64_t at)
{
    const float *x = (const float *)r->x + at, *hu = (const float *)r->hu + at;
    const float *b = (const float *)r->b + at, *b2 = (const float *)r->b2 + at;
    const float *before = (const float *)r->before + at;
    float *gates = (float *)r->gates + at, *h = (float *)r->h + at;
    vf gate[MOST_CHAINS], y[SIDE_BY_SIDE];
    STK_UNROLL for (int g = 0; g < 2; g++) EACH_REGISTER
    {
        const int64_t j = g * w->n + v * STK_VF;
        gate[g * wide + v] =
            take(cut, w, x + j) + take(cut, w, b + j) + take(cut, w, hu + j) + take(cut, w, b2 + j);
    }
    gates_of(2 * wide, 2 * wide, gate);
    EACH_REGISTER
    {
        const int64_t j = 2 * w->n + v * STK_VF;
        vf q = take(cut, w, hu + j) + take(cut, w, b2 + j);
        vf sum = take(cut, w, x + j) + take(cut, w, b + j) + gate[wide + v] * q;
        y[v] = sum + sum;
        put(cut, w, gates + 3 * w->n + v * STK_VF, q);
    }
    gates_of(0, wide, y);
    EACH_REGISTER
    {
        const int64_t j = v * STK_VF;
        vf z = gate[v];
        put(cut, w, gates + j, z);
        put(cut, w, gates + w->n + j, gate[wide + v]);
        put(cut, w, gates + 2 * w->n + j, y[v]);
        put(cut, w, h + j, z * take(cut, w, before + j) + (1.0f - z) * y[v]);
    }
}

/* Whole groups of registers, single ones, and the part at the end. */
#define CELL(name, row)                                                                            \
    static void name##_f32(int64_t n, const row *r)                                                \
    {                                                                                              \
        const piece w = {n, vf_part_of(n % STK_VF ? n % STK_VF : 1)};                              \
        int64_t j = 0;                                                                             \
        for (; j + SIDE_BY_SIDE * STK_VF <= n; j += SIDE_BY_SIDE * STK_VF)                         \
            name##_piece(SIDE_BY_SIDE, false, &w, r, j);                                           \
        for (; j + STK_VF <= n; j += STK_VF) name##_piece(1, false, &w, r, j);                     \
        if (j < n) name##_piece(1, true, &w, r, j);                                                \
    }
CELL(lstm, stk_rnn_row)
CELL(lstm_back, stk_rnn_back)
CELL(gru_after, stk_rnn_row)

#undef CELL
#undef EACH_CHAIN
#undef EACH_REGISTER

#endif
