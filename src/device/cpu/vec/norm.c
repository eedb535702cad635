/* Statistics by column of a matrix of floats or of bfloat16, and the elementwise passes that use them.
 *
 * Columns lie side by side in vectors. Sums run in float over a block of rows and are then merged into doubles, so
 * that long columns lose nothing; variances are taken around the mean of the block, so that a large mean
 * takes nothing from them. Narrow matrices are read as wide ones: k rows of n are one of k n. */
#include "device/cpu/vec/norm.h"

#include "base/dtype.h"
#include "device/cpu/vec/widths.h"

enum {
    L = STK_LANES_MOST,
    WIDE = 4,        /* vectors in one sweep down the rows */
    TILE = WIDE * L, /* columns */
    BLOCK = 64,      /* rows whose sums are kept in float */
};

/* How many rows make one wide row. */
static int64_t rows_together(int64_t n) { return n >= TILE ? 1 : (TILE + n - 1) / n; }

/* ---- moments -------------------------------------------------------------------------------------- */

/* Statistics of nb numbers per column join those of na: two groups become one. */
STK_INLINE void merge(double na, double nb, int64_t columns, const float *mean_b, const float *m2_b,
                      double *restrict mean, double *restrict m2)
{
    double share = nb / (na + nb);
    for (int64_t i = 0; i < columns; i++) {
        double gap = (double)mean_b[i] - mean[i];
        mean[i] += gap * share;
        m2[i] += (m2_b ? (double)m2_b[i] : 0) + gap * gap * na * share;
    }
}

/* Columns first..first+count of a block of wide rows, whose statistics lie at mean and m2. A wide row holds several
 * rows of n; `done` rows went before the block. */
static void merge_columns(int64_t first, int64_t count, int64_t n, int64_t done, int64_t rows,
                          const float *mean, const float *m2, double *to_mean, double *to_m2)
{
    int64_t group = first / n, c = first - group * n;
    while (count > 0) {
        int64_t run = n - c < count ? n - c : count;
        merge((double)(done + group * rows), (double)rows, run, mean, m2, to_mean + c, to_m2 + c);
        mean += run;
        m2 += run;
        count -= run;
        c = 0;
        group++;
    }
}

static void add_columns(int64_t first, int64_t count, int64_t n, const float *sum,
                        const float *slope, double *restrict to_sum, double *restrict to_slope)
{
    int64_t c = first % n;
    while (count > 0) {
        int64_t run = n - c < count ? n - c : count;
        for (int64_t i = 0; i < run; i++) {
            to_sum[c + i] += (double)sum[i];
            to_slope[c + i] += (double)slope[i];
        }
        sum += run;
        slope += run;
        count -= run;
        c = 0;
    }
}

#define REAL     float
#define T(name)  name
#define LOAD(at) vn_(load)(at)
#define ONE(x)   (x)
#include "norm_columns.inc"

typedef uint16_t halves_unaligned __attribute__((vector_size(L * 2), aligned(2), may_alias));
STK_INLINE vn load_halves(const uint16_t *at)
{
    return (vn)(__builtin_convertvector(*(const halves_unaligned *)at, mn) << 16);
}
#define REAL     uint16_t
#define T(name)  half_##name
#define LOAD(at) load_halves(at)
#define ONE(x)   stk_bf16_to_f32(x)
#include "norm_columns.inc"

/* ---- elementwise by column ----------------------------------------------------------------------------- */

static void affine(int64_t rows, int64_t n, const float *restrict x, const float *restrict mean,
                   const float *restrict scale, const float *restrict shift, float *restrict y)
{
    for (int64_t r = 0; r < rows; r++, x += n, y += n)
        for (int64_t c = 0; c < n; c++) y[c] = (x[c] - mean[c]) * scale[c] + shift[c];
}

static void affine_grad(int64_t rows, int64_t n, const float *restrict dy, const float *restrict x,
                        const float *restrict mean, const float *restrict p,
                        const float *restrict q, const float *restrict s, float *restrict dx)
{
    for (int64_t r = 0; r < rows; r++, dy += n, x += n, dx += n)
        for (int64_t c = 0; c < n; c++) dx[c] = dy[c] * p[c] + (x[c] - mean[c]) * q[c] + s[c];
}

/* ---- norms by row -------------------------------------------------------------------------------------- */

/* Sum of (x - shift)^power over the row, n >= L. */
STK_INLINE float row_power(const float *x, int64_t n, float shift, bool square)
{
    vn sum[WIDE];
    int64_t i = 0;
    for (int v = 0; v < WIDE; v++) sum[v] = vn_(splat)(0.0f);
    for (; i + TILE <= n; i += TILE)
#pragma GCC unroll 4
        for (int v = 0; v < WIDE; v++) {
            vn d = vn_(load)(x + i + v * L) - shift;
            sum[v] += square ? d * d : d;
        }
    for (; i + L <= n; i += L) {
        vn d = vn_(load)(x + i) - shift;
        sum[0] += square ? d * d : d;
    }
    vn d = vn_(keep)(vn_(load)(x + n - L) - shift, vn_(late)(n - i));
    sum[1] += square ? d * d : d;
    return vn_(sum)((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

static float short_row_power(const float *x, int64_t n, float shift, bool square)
{
    float sum = 0;
    for (int64_t i = 0; i < n; i++) sum += square ? (x[i] - shift) * (x[i] - shift) : x[i] - shift;
    return sum;
}

static void rows_forward(int64_t rows, int64_t n, float eps, const stk_row_norm *a)
{
    float share = 1.0f / (float)n;
    for (int64_t r = 0; r < rows; r++) {
        const float *x = a->x + r * n;
        float *restrict y = a->y + r * n;
        float mean = 0;
        if (a->mean)
            a->mean[r] = mean =
                share * (n >= L ? row_power(x, n, 0, false) : short_row_power(x, n, 0, false));
        float var =
            share * (n >= L ? row_power(x, n, mean, true) : short_row_power(x, n, mean, true));
        float rstd = a->rstd[r] = 1.0f / sqrtf(var + eps);
        const float *restrict gamma = a->gamma, *restrict beta = a->beta;
        if (gamma && beta)
            for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * rstd * gamma[i] + beta[i];
        else if (gamma)
            for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * rstd * gamma[i];
        else if (beta)
            for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * rstd + beta[i];
        else
            for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * rstd;
    }
}

/* One vector of the first sweep: e = dy gamma; adds e to *sum, e h to *slope, and dy, dy h to the columns' work. Lanes
 * outside `counts` have been here before. */
STK_INLINE void grad_step(const stk_row_norm_grad *a, int64_t n, int64_t at, int64_t i, float mean,
                          float rstd, mn counts, vn *sum, vn *slope)
{
    vn dy = vn_(keep)(vn_(load)(a->dy + at + i), counts),
       h = (vn_(load)(a->x + at + i) - mean) * rstd;
    vn e = a->gamma ? dy * vn_(load)(a->gamma + i) : dy, dyh = vn_(keep)(dy * h, counts);
    *sum += e;
    *slope += vn_(keep)(e * h, counts);
    vn_(store)(a->work + i, vn_(load)(a->work + i) + dyh);
    vn_(store)(a->work + n + i, vn_(load)(a->work + n + i) + dy);
}

static void row_grad(const stk_row_norm_grad *a, int64_t n, int64_t r, float *restrict dx)
{
    int64_t at = r * n, i = 0;
    float mean = a->mean ? a->mean[r] : 0, rstd = a->rstd[r], total = 0, across = 0;
    const float *restrict dy = a->dy + at, *restrict x = a->x + at, *restrict gamma = a->gamma;
    if (n >= L) {
        vn s0 = vn_(splat)(0.0f), s1 = s0, t0 = s0, t1 = s0;
        mn all = vn_(late)(L);
        for (; i + 2 * L <= n; i += 2 * L) {
            grad_step(a, n, at, i, mean, rstd, all, &s0, &t0);
            grad_step(a, n, at, i + L, mean, rstd, all, &s1, &t1);
        }
        if (i + L <= n) {
            grad_step(a, n, at, i, mean, rstd, all, &s0, &t0);
            i += L;
        }
        if (i < n) grad_step(a, n, at, n - L, mean, rstd, vn_(late)(n - i), &s1, &t1);
        total = vn_(sum)(s0 + s1);
        across = vn_(sum)(t0 + t1);
    } else {
        for (; i < n; i++) {
            float h = (x[i] - mean) * rstd, e = gamma ? dy[i] * gamma[i] : dy[i];
            total += e;
            across += e * h;
            a->work[i] += dy[i] * h;
            a->work[n + i] += dy[i];
        }
    }
    /* dx = rstd (e - mean(e) - h mean(e h)); without a mean in the norm there is none to take away here. */
    float level = a->mean ? rstd * total / (float)n : 0, tilt = rstd * rstd * across / (float)n;
    if (gamma)
        for (i = 0; i < n; i++) dx[i] = dy[i] * gamma[i] * rstd - level - (x[i] - mean) * tilt;
    else
        for (i = 0; i < n; i++) dx[i] = dy[i] * rstd - level - (x[i] - mean) * tilt;
}

static void rows_grad(int64_t rows, int64_t n, const stk_row_norm_grad *a)
{
    for (int64_t first = 0; first < rows; first += BLOCK) {
        int64_t end = rows - first < BLOCK ? rows : first + BLOCK;
        memset(a->work, 0, (size_t)(2 * n) * sizeof *a->work);
        for (int64_t r = first; r < end; r++) row_grad(a, n, r, a->dx + r * n);
        for (int64_t i = 0; i < n; i++) {
            a->dgamma[i] += (double)a->work[i];
            if (a->dbeta) a->dbeta[i] += (double)a->work[n + i];
        }
    }
}

const stk_vec_norm STK_VEC(stk_vec_norm) = {.moments = moments,
                                            .sums = sums,
                                            .affine = affine,
                                            .affine_grad = affine_grad,
                                            .rows = rows_forward,
                                            .rows_grad = rows_grad,
                                            .half_moments = half_moments,
                                            .half_sums = half_sums};
