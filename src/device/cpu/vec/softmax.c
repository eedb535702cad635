/* Softmax and cross entropy over rows, for floats.
 *
 * Rows of a classifier are short (10 classes), so a row is held in a few vectors of the largest width that fits into
 * it and everything happens in registers; the same code with a loop serves long rows. Logarithms are taken for
 * many rows at once, since one row needs only one. */
#include "device/cpu/vec/softmax.h"

#include "device/cpu/vec/widths.h"

#define W 4
#include "device/cpu/vec/softmax_rows.inc"
#undef W
#define W 8
#include "device/cpu/vec/softmax_rows.inc"
#undef W
#define W 16
#include "device/cpu/vec/softmax_rows.inc"
#undef W

/* Rows shorter than the narrowest vector are copied into one, filled up with what counts for nothing. */
enum { NARROW = 4, BLOCK = 64 };

STK_INLINE void pad_row(float *to, const float *from, int64_t n, float fill)
{
    v4 v = {from[0], from[n > 1 ? 1 : 0], from[n > 2 ? 2 : 0], 0};
    m4 lane = {0, 1, 2, 3}, real = lane < (int32_t)n;
    v4_store(to, (v4)(((m4)v & real) | ((m4)v4_splat(fill) & ~real)));
}
STK_INLINE void unpad_row(float *to, const float *from, int64_t n)
{
    for (int64_t j = 0; j < n; j++) to[j] = from[j];
}

/* ---- softmax ------------------------------------------------------------------------------------ */

static void softmax(int64_t rows, int64_t n, const float *x, float *y)
{
#define SOFTMAX(W, WHOLE)                                                                          \
    {                                                                                              \
        const m##W late = v##W##_late(n % W);                                                      \
        for (int64_t r = 0; r < rows; r++) softmax_row_##W(x + r * n, y + r * n, n, WHOLE, late);  \
    }
    if (n >= NARROW) {
        STK_BY_WIDTH(n, SOFTMAX);
        return;
    }
    for (int64_t r = 0; r < rows; r++) {
        float in[NARROW], out[NARROW];
        pad_row(in, x + r * n, n, -INFINITY);
        softmax_row_4(in, out, NARROW, 1, v4_late(0));
        unpad_row(y + r * n, out, n);
    }
}

static void log_softmax_block(int64_t rows, int64_t n, const float *x, float *y)
{
    float top[BLOCK], sum[BLOCK], narrow[NARROW];
#define ROW_SUMS(W, WHOLE)                                                                         \
    {                                                                                              \
        const m##W late = v##W##_late(n % W);                                                      \
        for (int64_t r = 0; r < rows; r++)                                                         \
            sum[r] = row_sum_##W(x + r * n, n, WHOLE, late, &top[r]);                              \
    }
#define SHIFT_ROWS(W, WHOLE)                                                                       \
    for (int64_t r = 0; r < rows; r++)                                                             \
        row_shift_##W(x + r * n, y + r * n, n, WHOLE, top[r], sum[r]);
    if (n >= NARROW) STK_BY_WIDTH(n, ROW_SUMS);
    for (int64_t r = 0; n < NARROW && r < rows; r++) {
        pad_row(narrow, x + r * n, n, -INFINITY);
        sum[r] = row_sum_4(narrow, NARROW, 1, v4_late(0), &top[r]);
    }
    for (int64_t r = 0; r < rows; r++) sum[r] = stk_log_f32(sum[r]);
    if (n >= NARROW) STK_BY_WIDTH(n, SHIFT_ROWS);
    for (int64_t r = 0; n < NARROW && r < rows; r++)
        for (int64_t j = 0; j < n; j++) y[r * n + j] = x[r * n + j] - top[r] - sum[r];
}

/* As many rows as stay in L1 between the two sweeps. */
static int64_t block_rows(int64_t n)
{
    int64_t fit = 4096 / n;
    return fit < 1 ? 1 : fit > BLOCK ? BLOCK : fit;
}

static void log_softmax(int64_t rows, int64_t n, const float *x, float *y)
{
    int64_t step = block_rows(n);
    for (int64_t r = 0; r < rows; r += step)
        log_softmax_block(rows - r < step ? rows - r : step, n, x + r * n, y + r * n);
}

/* ---- gradients ------------------------------------------------------------------------------------- */

/* dx from y and dy, row by row; `row` is softmax_grad_row or log_softmax_grad_row. */
#define GRAD_ROWS(W, WHOLE, row)                                                                   \
    {                                                                                              \
        const m##W late = v##W##_late(n % W);                                                      \
        for (int64_t r = 0; r < rows; r++)                                                         \
            row##_##W(y + r * n, dy + r * n, dx + r * n, n, WHOLE, late);                          \
    }
#define GRAD(name, row, of_width)                                                                  \
    static void name(int64_t rows, int64_t n, const float *y, const float *dy, float *dx)          \
    {                                                                                              \
        if (n >= NARROW) {                                                                         \
            STK_BY_WIDTH(n, of_width);                                                             \
            return;                                                                                \
        }                                                                                          \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            float a[NARROW], b[NARROW], out[NARROW];                                               \
            pad_row(a, y + r * n, n, 0.0f);                                                        \
            pad_row(b, dy + r * n, n, 0.0f);                                                       \
            row##_4(a, b, out, NARROW, 1, v4_late(0));                                             \
            unpad_row(dx + r * n, out, n);                                                         \
        }                                                                                          \
    }
#define SOFTMAX_ROWS(W, WHOLE)     GRAD_ROWS(W, WHOLE, softmax_grad_row)
#define LOG_SOFTMAX_ROWS(W, WHOLE) GRAD_ROWS(W, WHOLE, log_softmax_grad_row)
GRAD(softmax_grad, softmax_grad_row, SOFTMAX_ROWS)
GRAD(log_softmax_grad, log_softmax_grad_row, LOG_SOFTMAX_ROWS)

/* ---- cross entropy -------------------------------------------------------------------------------------
 * loss = weight * log(sum of e^(x - m)) - score. The logarithms come last, for a block of rows at once. */

static void losses(int64_t rows, const float *sum, const float *weight, const float *score,
                   float *loss)
{
    for (int64_t r = 0; r < rows; r++) loss[r] = weight[r] * stk_log_f32(sum[r]) - score[r];
}

static void xent_block(int64_t rows, int64_t n, const float *x, const float *t, float *loss,
                       float *grad)
{
    float sum[BLOCK], weight[BLOCK], score[BLOCK];
#define XENT(W, WHOLE)                                                                             \
    {                                                                                              \
        const m##W late = v##W##_late(n % W);                                                      \
        for (int64_t r = 0; r < rows; r++)                                                         \
            sum[r] = xent_row_##W(x + r * n, t + r * n, grad + r * n, n, WHOLE, late, &weight[r],  \
                                  &score[r]);                                                      \
    }
    if (n >= NARROW) STK_BY_WIDTH(n, XENT);
    for (int64_t r = 0; n < NARROW && r < rows; r++) {
        float a[NARROW], b[NARROW], out[NARROW];
        pad_row(a, x + r * n, n, -INFINITY);
        pad_row(b, t + r * n, n, 0.0f);
        sum[r] = xent_row_4(a, b, out, NARROW, 1, v4_late(0), &weight[r], &score[r]);
        unpad_row(grad + r * n, out, n);
    }
    losses(rows, sum, weight, score, loss);
}

static void xent(int64_t rows, int64_t n, const float *x, const float *t, float *loss, float *grad)
{
    for (int64_t r = 0; r < rows; r += BLOCK)
        xent_block(rows - r < BLOCK ? rows - r : BLOCK, n, x + r * n, t + r * n, loss + r,
                   grad + r * n);
}

static void sparse_block(int64_t rows, int64_t n, const float *x, const int64_t *t, float *loss,
                         float *grad)
{
    float sum[BLOCK], weight[BLOCK], score[BLOCK];
    for (int64_t r = 0; r < rows; r++) weight[r] = 1.0f;
#define SPARSE(W, WHOLE)                                                                           \
    {                                                                                              \
        const m##W late = v##W##_late(n % W);                                                      \
        for (int64_t r = 0; r < rows; r++)                                                         \
            sum[r] = sparse_row_##W(x + r * n, t[r], grad + r * n, n, WHOLE, late, &score[r]);     \
    }
    if (n >= NARROW) STK_BY_WIDTH(n, SPARSE);
    for (int64_t r = 0; n < NARROW && r < rows; r++) {
        float a[NARROW], out[NARROW];
        pad_row(a, x + r * n, n, -INFINITY);
        int64_t label = t[r] < n ? t[r] : -1; /* the padding is no class */
        sum[r] = sparse_row_4(a, label, out, NARROW, 1, v4_late(0), &score[r]);
        unpad_row(grad + r * n, out, n);
    }
    losses(rows, sum, weight, score, loss);
}

#define SPARSE_XENT(name, type)                                                                    \
    static void name(int64_t rows, int64_t n, const float *x, const type *t, float *loss,          \
                     float *grad)                                                                  \
    {                                                                                              \
        int64_t label[BLOCK];                                                                      \
        for (int64_t r = 0; r < rows; r += BLOCK) {                                                \
            int64_t count = rows - r < BLOCK ? rows - r : BLOCK;                                   \
            for (int64_t i = 0; i < count; i++) label[i] = t[r + i];                               \
            sparse_block(count, n, x + r * n, label, loss + r, grad + r * n);                      \
        }                                                                                          \
    }
SPARSE_XENT(xent_i32, int32_t)
SPARSE_XENT(xent_i64, int64_t)

const stk_vec_softmax STK_VEC(stk_vec_softmax) = {
    .softmax = softmax,
    .log_softmax = log_softmax,
    .softmax_grad = softmax_grad,
    .log_softmax_grad = log_softmax_grad,
    .xent = xent,
    .xent_i32 = xent_i32,
    .xent_i64 = xent_i64,
};
