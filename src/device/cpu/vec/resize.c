/* The passes of a resize: weighted sums of rows, then weighted sums of pixels in a row. */
#include "device/cpu/vec/resize.h"

#include <string.h>

/* ---- rows: four at a time, so that the sum is written once for each four --------------------------- */

#define ROWS(name, type)                                                                           \
    static void name(float *restrict out, const type *restrict x, int64_t stride, int64_t n,       \
                     const float *restrict weight, int64_t taps)                                   \
    {                                                                                              \
        const type *b = x + stride, *c = b + stride, *d = c + stride;                              \
        if (taps == 1) {                                                                           \
            float u = weight[0];                                                                   \
            for (int64_t i = 0; i < n; i++) out[i] = u * (float)x[i];                              \
        } else if (taps == 2) {                                                                    \
            float u = weight[0], v = weight[1];                                                    \
            for (int64_t i = 0; i < n; i++) out[i] = u * (float)x[i] + v * (float)b[i];            \
        } else if (taps == 3) {                                                                    \
            float u = weight[0], v = weight[1], w = weight[2];                                     \
            for (int64_t i = 0; i < n; i++)                                                        \
                out[i] = u * (float)x[i] + v * (float)b[i] + w * (float)c[i];                      \
        } else {                                                                                   \
            float u = weight[0], v = weight[1], w = weight[2], z = weight[3];                      \
            for (int64_t i = 0; i < n; i++)                                                        \
                out[i] = u * (float)x[i] + v * (float)b[i] + w * (float)c[i] + z * (float)d[i];    \
        }                                                                                          \
    }                                                                                              \
    static void name##_more(float *restrict out, const type *restrict x, int64_t stride,           \
                            int64_t n, const float *restrict weight, int64_t taps)                 \
    {                                                                                              \
        name(out, x, stride, n, weight, taps < 4 ? taps : 4);                                      \
        for (int64_t t = 4; t < taps; t++) {                                                       \
            const type *row = x + t * stride;                                                      \
            float u = weight[t];                                                                   \
            for (int64_t i = 0; i < n; i++) out[i] += u * (float)row[i];                           \
        }                                                                                          \
    }
ROWS(rows_f32, float)
ROWS(rows_u8, uint8_t)

/* ---- columns ------------------------------------------------------------------------------------------ */

typedef float four __attribute__((vector_size(16)));

static inline four load_four(const float *x)
{
    four v;
    memcpy(&v, x, sizeof v);
    return v;
}

/* Most windows have 2 or 4 pixels. */
static inline four sum_of_pixels(const float *x, int64_t step, const float *w, int32_t taps)
{
    if (taps == 2) return load_four(x) * w[0] + load_four(x + step) * w[1];
    if (taps == 4)
        return (load_four(x) * w[0] + load_four(x + step) * w[1]) +
               (load_four(x + 2 * step) * w[2] + load_four(x + 3 * step) * w[3]);
    four sum = {0, 0, 0, 0};
    for (int32_t t = 0; t < taps; t++) sum += load_four(x + t * step) * w[t];
    return sum;
}

/* Three channels are computed as four; the fourth is overwritten by the next pixel, so the last pixel is stored
 * by halves. */
static void columns_3(float *out, const float *row, int64_t n, const int32_t *first,
                      const int32_t *at, const float *weight)
{
    for (int64_t i = 0; i < n; i++) {
        four sum = sum_of_pixels(row + 3 * (int64_t)first[i], 3, weight + at[i], at[i + 1] - at[i]);
        memcpy(out + 3 * i, &sum, i + 1 < n ? 16 : 12);
    }
}

static void columns_4(float *out, const float *row, int64_t n, const int32_t *first,
                      const int32_t *at, const float *weight)
{
    for (int64_t i = 0; i < n; i++) {
        four sum = sum_of_pixels(row + 4 * (int64_t)first[i], 4, weight + at[i], at[i + 1] - at[i]);
        memcpy(out + 4 * i, &sum, 16);
    }
}

static void columns_1(float *out, const float *row, int64_t n, const int32_t *first,
                      const int32_t *at, const float *weight)
{
    for (int64_t i = 0; i < n; i++) {
        const float *x = row + first[i], *w = weight + at[i];
        int32_t taps = at[i + 1] - at[i];
        float sum = 0;
        if (taps == 2)
            sum = w[0] * x[0] + w[1] * x[1];
        else
            for (int32_t t = 0; t < taps; t++) sum += w[t] * x[t];
        out[i] = sum;
    }
}

static void columns(float *out, const float *row, int64_t n, int64_t channels, const int32_t *first,
                    const int32_t *at, const float *weight)
{
    if (channels == 1) columns_1(out, row, n, first, at, weight);
    if (channels == 3) columns_3(out, row, n, first, at, weight);
    if (channels == 4) columns_4(out, row, n, first, at, weight);
    if (channels == 1 || channels == 3 || channels == 4) return;
    for (int64_t i = 0; i < n; i++) {
        const float *x = row + first[i] * channels;
        int32_t taps = at[i + 1] - at[i];
        if (taps)
            rows_f32_more(out + i * channels, x, channels, channels, weight + at[i], taps);
        else
            memset(out + i * channels, 0, (size_t)channels * sizeof *out);
    }
}

const stk_vec_resize STK_VEC(stk_vec_resize) = {
    .rows_f32 = rows_f32_more, .rows_u8 = rows_u8_more, .columns = columns};
