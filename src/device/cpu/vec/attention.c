/* Softmax over keys, query by query in the lanes of a register, and its gradient; see attention.h. */
#include "device/cpu/vec/attention.h"

#include "device/cpu/vec/widths.h"

enum { W = STK_LANES_MOST };

/* ---- softmax ---------------------------------------------------------------------------------------------- */

/* Columns c .. c + W of x, all keys. */
STK_INLINE void soften_columns(int64_t keys, int64_t ld, float *x, float *top, float *rsum)
{
    vn most = vn_(load)(x), sum = vn_(splat)(0.0f);
    for (int64_t j = 1; j < keys; j++) most = vn_(max)(most, vn_(load)(x + j * ld));
    for (int64_t j = 0; j < keys; j++) {
        vn e = vn_(exp_down)(vn_(load)(x + j * ld) - most);
        vn_(store)(x + j * ld, e);
        sum += e;
    }
    vn_(store)(top, most);
    vn_(store)(rsum, 1.0f / sum);
}

static void soften(int64_t keys, int64_t ld, float *x, float *top, float *rsum)
{
    for (int64_t c = 0; c < ld; c += W) soften_columns(keys, ld, x + c, top + c, rsum + c);
}

static void soften_again(int64_t keys, int64_t ld, float *x, const float *top)
{
    for (int64_t j = 0; j < keys; j++)
        for (int64_t c = 0; c < ld; c += W) {
            float *at = x + j * ld + c;
            vn_(store)(at, vn_(exp_down)(vn_(load)(at) - vn_(load)(top + c)));
        }
}

static void soften_grad(int64_t keys, int64_t ld, const float *x, float *d, const float *rsum)
{
    for (int64_t c = 0; c < ld; c += W) {
        vn dot = vn_(splat)(0.0f);
        for (int64_t j = 0; j < keys; j++)
            dot += vn_(load)(x + j * ld + c) * vn_(load)(d + j * ld + c);
        dot *= vn_(load)(rsum + c);
        for (int64_t j = 0; j < keys; j++) {
            float *at = d + j * ld + c;
            vn_(store)(at, vn_(load)(x + j * ld + c) * (vn_(load)(at) - dot));
        }
    }
}

/* ---- rows of queries ------------------------------------------------------------------------------------------- */

static void take_rows(int64_t n, int64_t width, const float *from, int64_t row, const float *by,
                      int64_t step, float *to)
{
    for (int64_t i = 0; i < n; i++, from += row, to += width) {
        const float factor = by[i * step];
        for (int64_t c = 0; c < width; c++) to[c] = from[c] * factor;
    }
}

static void scale_rows(int64_t n, int64_t width, float *at, int64_t row, const float *by,
                       int64_t step)
{
    for (int64_t i = 0; i < n; i++, at += row) {
        const float factor = by[i * step];
        for (int64_t c = 0; c < width; c++) at[c] *= factor;
    }
}

/* ---- masks ----------------------------------------------------------------------------------------------------- */

static void hide_later(int64_t first, int64_t keys, int64_t lo, int64_t ld, float *x, float value)
{
    for (int64_t j = 0; j < keys; j++) {
        int64_t end = first + j - lo; /* queries in front of the key */
        end = end < 0 ? 0 : end > ld ? ld : end;
        for (int64_t i = 0; i < end; i++) x[j * ld + i] = value;
    }
}

static void hide(int64_t keys, int64_t n, int64_t ld, const uint8_t *mask, int64_t step, bool alike,
                 float *x, float value)
{
    for (int64_t j = 0; j < keys; j++) {
        const uint8_t *seen = mask + j * step;
        float *row = x + j * ld;
        if (!alike)
            for (int64_t i = 0; i < n; i++) row[i] = seen[i] ? row[i] : value;
        else if (!*seen)
            for (int64_t i = 0; i < n; i++) row[i] = value;
    }
}

const stk_vec_attention STK_VEC(stk_vec_attention) = {.soften = soften,
                                                      .soften_again = soften_again,
                                                      .soften_grad = soften_grad,
                                                      .take_rows = take_rows,
                                                      .scale_rows = scale_rows,
                                                      .hide_later = hide_later,
                                                      .hide = hide};
