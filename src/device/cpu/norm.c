/* Norms on the CPU: how the work of vec/norm.c is cut into parts, and how the sums of the parts are put together in
 * finish(), always in the order of the parts. The references are in norm_ref.c. */
#include "device/cpu/cpu.h"
#include "device/cpu/vec/norm.h"

#include <math.h>
#include <string.h>

/* The doubles that part `part` of a launch keeps, `each` per part. */
static double *keep_of(const stk_launch *l, int64_t each, int part)
{
    return (double *)l->scratch + each * part;
}

/* Units of one part, 0 for a part that had nothing to do. */
static int64_t units_of_part(const stk_launch *l, int part)
{
    int64_t lo, hi;
    stk_launch_range(l, part, &lo, &hi);
    return hi - lo;
}

/* out = the sum over parts of n doubles that lie `at` into what each part keeps. */
static void add_parts(const stk_launch *l, int64_t each, int64_t at, int64_t n, float *out)
{
    double *total = NULL; /* what the first part kept becomes the sum */
    for (int part = 0; part < l->parts; part++) {
        if (!units_of_part(l, part)) continue;
        double *kept = keep_of(l, each, part) + at;
        for (int64_t c = 0; total && c < n; c++) total[c] += kept[c];
        if (!total) total = kept;
    }
    for (int64_t c = 0; c < n; c++) out[c] = total ? (float)total[c] : 0;
}

/* ---- moments and column sums: each part keeps two doubles per column --------------------------------- */

static bool moments_takes(const void *params)
{
    const int64_t dtype = ((const stk_moments_params *)params)->dtype;
    return dtype == STK_F32 || dtype == STK_BF16;
}
static int64_t moments_units(const void *params)
{
    return ((const stk_moments_params *)params)->rows;
}
/* What a part keeps is joined by one thread, and costs it as much as some four rows. */
static int64_t moments_grain(const void *params)
{
    (void)params;
    return 8;
}
static int64_t moments_scratch(const void *params, int32_t parts)
{
    return 2 * ((const stk_moments_params *)params)->n * parts * (int64_t)sizeof(double);
}
static uint32_t first_arg_cut(const void *params)
{
    (void)params;
    return 1;
}
static uint32_t two_args_cut(const void *params)
{
    (void)params;
    return 3;
}

static void run_moments(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    const stk_moments_params *p = l->params;
    double *mean = keep_of(l, 2 * p->n, part);
    const stk_vec_norm *vec = stk_vec_get()->norm;
    const int64_t at = lo * p->n;
    if (p->dtype == STK_BF16)
        vec->half_moments(hi - lo, p->n, (const uint16_t *)l->arg[0] + at, mean, mean + p->n);
    else
        vec->moments(hi - lo, p->n, (const float *)l->arg[0] + at, mean, mean + p->n);
}

static void finish_moments(const stk_launch *l)
{
    const stk_moments_params *p = l->params;
    float *mean = l->arg[1], *variance = l->arg[2];
    double *m = NULL, *m2 = NULL, count = 0;
    for (int part = 0; part < l->parts; part++) { /* the others join the first one that has rows */
        double rows = (double)units_of_part(l, part), share = rows / (count + rows);
        if (rows == 0) continue;
        double *kept = keep_of(l, 2 * p->n, part), *kept2 = kept + p->n;
        for (int64_t c = 0; m && c < p->n; c++) {
            double gap = kept[c] - m[c];
            m[c] += gap * share;
            m2[c] += kept2[c] + gap * gap * count * share;
        }
        if (!m) m = kept, m2 = kept2;
        count += rows;
    }
    double scale = 1 / count;
    for (int64_t c = 0; m && c < p->n; c++) {
        mean[c] = (float)m[c];
        variance[c] = (float)(m2[c] * scale);
    }
}

const stk_impl stk_impl_moments_vec = {.name = "vec",
                                       .kernel = STK_K_MOMENTS,
                                       .supports = moments_takes,
                                       .units = moments_units,
                                       .grain = moments_grain,
                                       .aligned = first_arg_cut,
                                       .scratch = moments_scratch,
                                       .run = run_moments,
                                       .finish = finish_moments};

static void run_column_sums(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    const stk_moments_params *p = l->params;
    double *sum = keep_of(l, 2 * p->n, part);
    const stk_vec_norm *vec = stk_vec_get()->norm;
    const int64_t rows = hi - lo, at = lo * p->n;
    memset(sum, 0, (size_t)(2 * p->n) * sizeof *sum);
    if (p->dtype == STK_BF16)
        vec->half_sums(rows, p->n, (const uint16_t *)l->arg[0] + at,
                       (const uint16_t *)l->arg[1] + at, l->arg[2], sum, sum + p->n);
    else
        vec->sums(rows, p->n, (const float *)l->arg[0] + at, (const float *)l->arg[1] + at,
                  l->arg[2], sum, sum + p->n);
}

static void finish_column_sums(const stk_launch *l)
{
    const stk_moments_params *p = l->params;
    add_parts(l, 2 * p->n, 0, p->n, l->arg[3]);
    add_parts(l, 2 * p->n, p->n, p->n, l->arg[4]);
}

const stk_impl stk_impl_column_sums_vec = {.name = "vec",
                                           .kernel = STK_K_COLUMN_SUMS,
                                           .supports = moments_takes,
                                           .units = moments_units,
                                           .grain = moments_grain,
                                           .aligned = two_args_cut,
                                           .scratch = moments_scratch,
                                           .run = run_column_sums,
                                           .finish = finish_column_sums};

/* ---- norms by row: units are rows -------------------------------------------------------------------------- */

static bool rows_is_f32(const void *params)
{
    return ((const stk_row_norm_params *)params)->dtype == STK_F32;
}
static int64_t rows_units(const void *params)
{
    return ((const stk_row_norm_params *)params)->rows;
}

/* args: x, [gamma], [beta], y, [mean], rstd */
static uint32_t row_norm_cut(const void *params)
{
    const stk_row_norm_params *p = params;
    int32_t y = 1 + p->gamma + p->beta;
    return 1u | (p->center ? 7u : 3u) << y;
}

static void run_row_norm(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    const stk_row_norm_params *p = l->params;
    void **arg = l->arg;
    stk_row_norm a = {.x = (const float *)*arg++ + lo * p->n};
    (void)part;
    if (p->gamma) a.gamma = *arg++;
    if (p->beta) a.beta = *arg++;
    a.y = (float *)*arg++ + lo * p->n;
    if (p->center) a.mean = (float *)*arg++ + lo;
    a.rstd = (float *)*arg + lo;
    stk_vec_get()->norm->rows(hi - lo, p->n, (float)p->eps, &a);
}

const stk_impl stk_impl_row_norm_vec = {.name = "vec",
                                        .kernel = STK_K_ROW_NORM,
                                        .supports = rows_is_f32,
                                        .units = rows_units,
                                        .aligned = row_norm_cut,
                                        .run = run_row_norm};

/* args: dy, x, [gamma], [mean], rstd, dx, dgamma, [dbeta]; a part keeps dgamma, dbeta and room to work */
static uint32_t row_norm_grad_cut(const void *params)
{
    const stk_row_norm_params *p = params;
    int32_t statistics = 2 + p->gamma;
    return 3u | (p->center ? 7u : 3u) << statistics; /* mean, rstd and dx lie side by side */
}
static int64_t row_norm_grad_scratch(const void *params, int32_t parts)
{
    return 3 * ((const stk_row_norm_params *)params)->n * parts * (int64_t)sizeof(double);
}

static void run_row_norm_grad(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    const stk_row_norm_params *p = l->params;
    double *kept = keep_of(l, 3 * p->n, part);
    void **arg = l->arg;
    stk_row_norm_grad a = {.dy = (const float *)arg[0] + lo * p->n,
                           .x = (const float *)arg[1] + lo * p->n};
    arg += 2;
    if (p->gamma) a.gamma = *arg++;
    if (p->center) a.mean = (const float *)*arg++ + lo;
    a.rstd = (const float *)*arg++ + lo;
    a.dx = (float *)*arg + lo * p->n;
    memset(kept, 0, (size_t)(2 * p->n) * sizeof *kept);
    a.dgamma = kept;
    a.dbeta = p->center ? kept + p->n : NULL;
    a.work = (float *)(void *)(kept + 2 * p->n);
    stk_vec_get()->norm->rows_grad(hi - lo, p->n, &a);
}

static void finish_row_norm_grad(const stk_launch *l)
{
    const stk_row_norm_params *p = l->params;
    void **out = l->arg + 4 + p->gamma + p->center;
    add_parts(l, 3 * p->n, 0, p->n, out[0]);
    if (p->center) add_parts(l, 3 * p->n, p->n, p->n, out[1]);
}

const stk_impl stk_impl_row_norm_grad_vec = {.name = "vec",
                                             .kernel = STK_K_ROW_NORM_GRAD,
                                             .supports = rows_is_f32,
                                             .units = rows_units,
                                             .aligned = row_norm_grad_cut,
                                             .scratch = row_norm_grad_scratch,
                                             .run = run_row_norm_grad,
                                             .finish = finish_row_norm_grad};

/* ---- group norm: units are images ------------------------------------------------------------------------------
 * An image's statistics come from those of its columns; then it is one elementwise pass with one set of numbers per
 * channel. A part keeps, in doubles per channel: two for the columns, two for dgamma and dbeta, and as floats the
 * numbers of the pass (up to four, which is two doubles). */

enum { GROUP_KEEP = 6 };

static bool groups_is_f32(const void *params)
{
    return ((const stk_group_norm_params *)params)->dtype == STK_F32;
}
static int64_t groups_units(const void *params)
{
    return ((const stk_group_norm_params *)params)->images;
}
static int64_t groups_scratch(const void *params, int32_t parts)
{
    return GROUP_KEEP * ((const stk_group_norm_params *)params)->channels * parts *
           (int64_t)sizeof(double);
}
/* x, y, mean, rstd of x, gamma, beta, y, mean, rstd */
static uint32_t group_norm_cut(const void *params)
{
    (void)params;
    return 0x39;
}
/* dy, x, mean, rstd, dx of dy, x, gamma, mean, rstd, dx, dgamma, dbeta */
static uint32_t group_norm_grad_cut(const void *params)
{
    (void)params;
    return 0x3b;
}

/* Mean and variance of one group from its columns, which all have the same number of elements. */
static void join_columns(int64_t columns, int64_t rows, const double *mean, const double *m2,
                         double *group_mean, double *group_variance)
{
    double m = 0, square = 0;
    for (int64_t c = 0; c < columns; c++) m += mean[c];
    m /= (double)columns;
    for (int64_t c = 0; c < columns; c++)
        square += m2[c] + (mean[c] - m) * (mean[c] - m) * (double)rows;
    *group_mean = m;
    *group_variance = square / (double)(columns * rows);
}

static void run_group_norm(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    const stk_group_norm_params *p = l->params;
    const stk_vec_norm *v = stk_vec_get()->norm;
    int64_t n = p->channels, size = p->rows * n, columns = n / p->groups;
    const float *gamma = l->arg[1], *beta = l->arg[2];
    double *mean = keep_of(l, GROUP_KEEP * n, part), *m2 = mean + n;
    float *level = (float *)(void *)(mean + 4 * n), *scale = level + n;
    for (int64_t i = lo; i < hi; i++) {
        const float *x = (const float *)l->arg[0] + i * size;
        float *means = (float *)l->arg[4] + i * p->groups,
              *rstds = (float *)l->arg[5] + i * p->groups;
        v->moments(p->rows, n, x, mean, m2);
        for (int64_t g = 0; g < p->groups; g++) {
            double m, variance;
            join_columns(columns, p->rows, mean + g * columns, m2 + g * columns, &m, &variance);
            means[g] = (float)m;
            rstds[g] = (float)(1 / sqrt(variance + p->eps));
            for (int64_t c = g * columns; c < (g + 1) * columns; c++) {
                level[c] = means[g];
                scale[c] = gamma[c] * rstds[g];
            }
        }
        v->affine(p->rows, n, x, level, scale, beta, (float *)l->arg[3] + i * size);
    }
}

const stk_impl stk_impl_group_norm_vec = {.name = "vec",
                                          .kernel = STK_K_GROUP_NORM,
                                          .supports = groups_is_f32,
                                          .units = groups_units,
                                          .aligned = group_norm_cut,
                                          .scratch = groups_scratch,
                                          .run = run_group_norm};

/* The numbers of dx = dy p + (x - mean) q + r for one group, from the columns' sums of dy and dy (x - mean). */
static void group_slopes(int64_t columns, int64_t rows, const double *sum, const double *slope,
                         const float *gamma, float rstd, float *p, float *q, float *r)
{
    double level = 0, tilt = 0, count = (double)(columns * rows), s = (double)rstd;
    for (int64_t c = 0; c < columns; c++) {
        level += sum[c] * (double)gamma[c];
        tilt += slope[c] * (double)gamma[c];
    }
    for (int64_t c = 0; c < columns; c++) {
        p[c] = gamma[c] * rstd;
        q[c] = (float)(-s * s * s * tilt / count);
        r[c] = (float)(-s * level / count);
    }
}

static void run_group_norm_grad(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    const stk_group_norm_params *p = l->params;
    const stk_vec_norm *v = stk_vec_get()->norm;
    int64_t n = p->channels, size = p->rows * n, columns = n / p->groups;
    const float *gamma = l->arg[2];
    double *sum = keep_of(l, GROUP_KEEP * n, part), *slope = sum + n, *dgamma = sum + 2 * n,
           *dbeta = sum + 3 * n;
    float *level = (float *)(void *)(sum + 4 * n), *a = level + n, *b = a + n, *c0 = b + n;
    memset(dgamma, 0, (size_t)(2 * n) * sizeof *dgamma);
    for (int64_t i = lo; i < hi; i++) {
        const float *dy = (const float *)l->arg[0] + i * size,
                    *x = (const float *)l->arg[1] + i * size;
        const float *means = (const float *)l->arg[3] + i * p->groups;
        const float *rstds = (const float *)l->arg[4] + i * p->groups;
        for (int64_t c = 0; c < n; c++) level[c] = means[c / columns];
        memset(sum, 0, (size_t)(2 * n) * sizeof *sum);
        v->sums(p->rows, n, dy, x, level, sum, slope);
        for (int64_t g = 0; g < p->groups; g++) {
            int64_t at = g * columns;
            group_slopes(columns, p->rows, sum + at, slope + at, gamma + at, rstds[g], a + at,
                         b + at, c0 + at);
            for (int64_t c = at; c < at + columns; c++) {
                dgamma[c] += slope[c] * (double)rstds[g];
                dbeta[c] += sum[c];
            }
        }
        v->affine_grad(p->rows, n, dy, x, level, a, b, c0, (float *)l->arg[5] + i * size);
    }
}

static void finish_group_norm_grad(const stk_launch *l)
{
    const stk_group_norm_params *p = l->params;
    add_parts(l, GROUP_KEEP * p->channels, 2 * p->channels, p->channels, l->arg[6]);
    add_parts(l, GROUP_KEEP * p->channels, 3 * p->channels, p->channels, l->arg[7]);
}

const stk_impl stk_impl_group_norm_grad_vec = {.name = "vec",
                                               .kernel = STK_K_GROUP_NORM_GRAD,
                                               .supports = groups_is_f32,
                                               .units = groups_units,
                                               .aligned = group_norm_grad_cut,
                                               .scratch = groups_scratch,
                                               .run = run_group_norm_grad,
                                               .finish = finish_group_norm_grad};
