/* The transforms of winograd.h: one pass over channels each, a register of them at a time.
 *
 *     B' = 1  0 -1  0      G = 1    0    0       A' = 1  1  1  0
 *          0  1  1  0          1/2  1/2  1/2          0  1 -1 -1
 *          0 -1  1  0          1/2 -1/2  1/2
 *          0  1  0 -1          0    0    1                              */
#include "device/cpu/vec/winograd.h"

#include "device/cpu/vec/lanes.h"

/* One channel block: `part` is all lanes, except at the end. */
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
        for (; c + STK_VF <= (channels); c += STK_VF) body(c, none, true);                         \
        if (c < (channels)) body(c, vf_part_of((channels)-c), false);                              \
    } while (0)

STK_INLINE void rows_of_source(const vf d[4], vf out[4])
{
    out[0] = d[0] - d[2];
    out[1] = d[1] + d[2];
    out[2] = d[2] - d[1];
    out[3] = d[1] - d[3];
}

STK_INLINE void source_block(const float *x, int64_t row, int64_t col, uint32_t inside, float *to,
                             int64_t step, vf_part part, bool whole)
{
    vf mid[4][4];
    STK_UNROLL for (int j = 0; j < 4; j++)
    {
        vf d[4], out[4];
        STK_UNROLL for (int i = 0; i < 4; i++) d[i] =
            inside >> (4 * i + j) & 1 ? load(x + i * row + j * col, part, whole) : (vf){0};
        rows_of_source(d, out);
        STK_UNROLL for (int i = 0; i < 4; i++) mid[i][j] = out[i];
    }
    STK_UNROLL for (int i = 0; i < 4; i++)
    {
        vf out[4];
        rows_of_source(mid[i], out);
        STK_UNROLL for (int j = 0; j < 4; j++) store(to + (4 * i + j) * step, out[j], part, whole);
    }
}

static void source(const float *x, int64_t row, int64_t col, uint32_t inside, int64_t channels,
                   float *to, int64_t step)
{
#define BLOCK(c, part, whole) source_block(x + c, row, col, 0xffff, to + c, step, part, whole)
#define EDGE(c, part, whole)  source_block(x + c, row, col, inside, to + c, step, part, whole)
    if (inside == 0xffff)
        EACH_BLOCK(channels, BLOCK);
    else
        EACH_BLOCK(channels, EDGE);
#undef BLOCK
#undef EDGE
}

STK_INLINE void result_block(const float *from, int64_t step, float *y, int64_t row, int64_t col,
                             uint32_t inside, vf_part part, bool whole)
{
    vf mid[2][4];
    STK_UNROLL for (int j = 0; j < 4; j++)
    {
        vf m[4];
        STK_UNROLL for (int i = 0; i < 4; i++) m[i] = load(from + (4 * i + j) * step, part, whole);
        mid[0][j] = m[0] + m[1] + m[2];
        mid[1][j] = m[1] - m[2] - m[3];
    }
    STK_UNROLL for (int i = 0; i < 2; i++)
    {
        const vf left = mid[i][0] + mid[i][1] + mid[i][2],
                 right = mid[i][1] - mid[i][2] - mid[i][3];
        if (inside >> (2 * i) & 1) store(y + i * row, left, part, whole);
        if (inside >> (2 * i + 1) & 1) store(y + i * row + col, right, part, whole);
    }
}

static void result(const float *from, int64_t step, int64_t channels, float *y, int64_t row,
                   int64_t col, uint32_t inside)
{
#define BLOCK(c, part, whole) result_block(from + c, step, y + c, row, col, inside, part, whole)
    EACH_BLOCK(channels, BLOCK);
#undef BLOCK
}

/* A: four numbers from two. */
STK_INLINE void spread(vf a, vf b, vf out[4])
{
    out[0] = a;
    out[1] = a + b;
    out[2] = a - b;
    out[3] = -b;
}

STK_INLINE void back_block(const float *dy, int64_t row, int64_t col, uint32_t inside, float *to,
                           int64_t step, vf_part part, bool whole)
{
    vf mid[4][2];
    STK_UNROLL for (int j = 0; j < 2; j++)
    {
        vf d[2], out[4];
        STK_UNROLL for (int i = 0; i < 2; i++) d[i] =
            inside >> (2 * i + j) & 1 ? load(dy + i * row + j * col, part, whole) : (vf){0};
        spread(d[0], d[1], out);
        STK_UNROLL for (int i = 0; i < 4; i++) mid[i][j] = out[i];
    }
    STK_UNROLL for (int i = 0; i < 4; i++)
    {
        vf out[4];
        spread(mid[i][0], mid[i][1], out);
        STK_UNROLL for (int j = 0; j < 4; j++) store(to + (4 * i + j) * step, out[j], part, whole);
    }
}

static void result_back(const float *dy, int64_t row, int64_t col, uint32_t inside,
                        int64_t channels, float *to, int64_t step)
{
#define BLOCK(c, part, whole) back_block(dy + c, row, col, inside, to + c, step, part, whole)
    EACH_BLOCK(channels, BLOCK);
#undef BLOCK
}

/* G: four numbers from three, and G': three from four. */
STK_INLINE void widen(vf a, vf b, vf c, vf out[4])
{
    const vf even = (a + c) * 0.5f, odd = b * 0.5f;
    out[0] = a;
    out[1] = even + odd;
    out[2] = even - odd;
    out[3] = c;
}
STK_INLINE void narrow(const vf m[4], vf out[3])
{
    const vf sum = (m[1] + m[2]) * 0.5f;
    out[0] = m[0] + sum;
    out[1] = (m[1] - m[2]) * 0.5f;
    out[2] = sum + m[3];
}

STK_INLINE void weight_block(const float *w, int64_t tap, const int8_t taps[9], float *to,
                             int64_t step, vf_part part, bool whole)
{
    vf mid[4][3];
    STK_UNROLL for (int j = 0; j < 3; j++)
    {
        vf g[3], out[4];
        STK_UNROLL for (int i = 0; i < 3; i++) g[i] = load(w + taps[3 * i + j] * tap, part, whole);
        widen(g[0], g[1], g[2], out);
        STK_UNROLL for (int i = 0; i < 4; i++) mid[i][j] = out[i];
    }
    STK_UNROLL for (int i = 0; i < 4; i++)
    {
        vf out[4];
        widen(mid[i][0], mid[i][1], mid[i][2], out);
        STK_UNROLL for (int j = 0; j < 4; j++) store(to + (4 * i + j) * step, out[j], part, whole);
    }
}

static void weights(const float *w, int64_t tap, const int8_t taps[9], int64_t n, float *to,
                    int64_t step)
{
#define BLOCK(c, part, whole) weight_block(w + c, tap, taps, to + c, step, part, whole)
    EACH_BLOCK(n, BLOCK);
#undef BLOCK
}

STK_INLINE void weight_back_block(const float *from, int64_t step, float *dw, int64_t tap,
                                  vf_part part, bool whole)
{
    vf mid[3][4];
    STK_UNROLL for (int j = 0; j < 4; j++)
    {
        vf m[4], out[3];
        STK_UNROLL for (int i = 0; i < 4; i++) m[i] = load(from + (4 * i + j) * step, part, whole);
        narrow(m, out);
        STK_UNROLL for (int i = 0; i < 3; i++) mid[i][j] = out[i];
    }
    STK_UNROLL for (int i = 0; i < 3; i++)
    {
        vf out[3];
        narrow(mid[i], out);
        STK_UNROLL for (int j = 0; j < 3; j++) store(dw + (3 * i + j) * tap, out[j], part, whole);
    }
}

static void weights_back(const float *from, int64_t step, int64_t n, float *dw, int64_t tap)
{
#define BLOCK(c, part, whole) weight_back_block(from + c, step, dw + c, tap, part, whole)
    EACH_BLOCK(n, BLOCK);
#undef BLOCK
}

const stk_vec_winograd STK_VEC(stk_vec_winograd) = {.source = source,
                                                    .result = result,
                                                    .result_back = result_back,
                                                    .weights = weights,
                                                    .weights_back = weights_back};
