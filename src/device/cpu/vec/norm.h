/* norm.h - what norms are made of, for floats: statistics by column, and whole norms by row. */
#ifndef STK_DEVICE_CPU_VEC_NORM_H
#define STK_DEVICE_CPU_VEC_NORM_H

#include "device/cpu/vec/vec.h"

/* One row-wise norm; NULL where there is no such operand. */
typedef struct stk_row_norm {
    const float *x, *gamma, *beta;
    float *y, *mean, *rstd;
} stk_row_norm;
typedef struct stk_row_norm_grad {
    const float *dy, *x, *gamma, *mean, *rstd;
    float *dx;
    double *dgamma, *dbeta; /* [n], added to */
    float *work;            /* [2 n] */
} stk_row_norm_grad;

typedef struct stk_vec_norm {
    /* Mean and sum of squared deviations of each column of x[rows, n]. */
    void (*moments)(int64_t rows, int64_t n, const float *x, double *mean, double *m2);
    /* Adds, by column, dy to sum and dy * (x - mean) to slope. */
    void (*sums)(int64_t rows, int64_t n, const float *dy, const float *x, const float *mean,
                 double *sum, double *slope);
    /* y = (x - mean) * scale + shift, by column */
    void (*affine)(int64_t rows, int64_t n, const float *x, const float *mean, const float *scale,
                   const float *shift, float *y);
    /* dx = dy * p + (x - mean) * q + r, by column */
    void (*affine_grad)(int64_t rows, int64_t n, const float *dy, const float *x, const float *mean,
                        const float *p, const float *q, const float *r, float *dx);
    void (*rows)(int64_t rows, int64_t n, float eps, const stk_row_norm *a);
    void (*rows_grad)(int64_t rows, int64_t n, const stk_row_norm_grad *a);
    /* The first two over bfloat16: the bits that its numbers as floats would give. */
    void (*half_moments)(int64_t rows, int64_t n, const uint16_t *x, double *mean, double *m2);
    void (*half_sums)(int64_t rows, int64_t n, const uint16_t *dy, const uint16_t *x,
                      const float *mean, double *sum, double *slope);
} stk_vec_norm;

extern const stk_vec_norm STK_VEC(stk_vec_norm);

#endif
