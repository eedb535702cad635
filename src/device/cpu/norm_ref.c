/* Reference kernels of the norms: float or double, plain loops in double, straight from the definitions. */
#include "device/cpu/cpu.h"

#include <math.h>

/* Element i of an argument. */
static double get(const stk_launch *l, int32_t arg, int64_t dtype, int64_t i)
{
    return stk_load_f64((stk_dtype)dtype,
                        (const char *)l->arg[arg] + i * stk_dtype_size((stk_dtype)dtype));
}
static void put(const stk_launch *l, int32_t arg, int64_t dtype, int64_t i, double v)
{
    stk_store_f64((stk_dtype)dtype, (char *)l->arg[arg] + i * stk_dtype_size((stk_dtype)dtype), v);
}
static bool is_real(int64_t dtype) { return dtype == STK_F32 || dtype == STK_F64; }

/* ---- moments and column sums ----------------------------------------------------------------------- */

static bool moments_is_real(const void *params)
{
    const int64_t dtype = ((const stk_moments_params *)params)->dtype;
    return is_real(dtype) || dtype == STK_BF16;
}

/* Numbers of columns: of half types they are floats. */
static int64_t column_dtype(const stk_moments_params *p)
{
    return p->dtype == STK_BF16 ? STK_F32 : p->dtype;
}

static void run_moments(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    const stk_moments_params *p = l->params;
    int64_t rows = p->rows;
    (void)lo, (void)hi, (void)part;
    for (int64_t c = 0; c < p->n; c++) {
        double sum = 0, square = 0;
        for (int64_t r = 0; r < rows; r++) sum += get(l, 0, p->dtype, r * p->n + c);
        double mean = sum / (double)rows;
        for (int64_t r = 0; r < rows; r++) {
            double d = get(l, 0, p->dtype, r * p->n + c) - mean;
            square += d * d;
        }
        put(l, 1, column_dtype(p), c, mean);
        put(l, 2, column_dtype(p), c, square / (double)rows);
    }
}

static void run_column_sums(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    const stk_moments_params *p = l->params;
    (void)lo, (void)hi, (void)part;
    for (int64_t c = 0; c < p->n; c++) {
        double sum = 0, slope = 0, mean = get(l, 2, column_dtype(p), c);
        for (int64_t r = 0; r < p->rows; r++) {
            double dy = get(l, 0, p->dtype, r * p->n + c);
            sum += dy;
            slope += dy * (get(l, 1, p->dtype, r * p->n + c) - mean);
        }
        put(l, 3, column_dtype(p), c, sum);
        put(l, 4, column_dtype(p), c, slope);
    }
}

const stk_impl stk_impl_moments_ref = {.name = "ref",
                                       .kernel = STK_K_MOMENTS,
                                       .rank = 100,
                                       .supports = moments_is_real,
                                       .run = run_moments};
const stk_impl stk_impl_column_sums_ref = {.name = "ref",
                                           .kernel = STK_K_COLUMN_SUMS,
                                           .rank = 100,
                                           .supports = moments_is_real,
                                           .run = run_column_sums};

/* ---- norms by row -------------------------------------------------------------------------------------- */

static bool rows_is_real(const void *params)
{
    return is_real(((const stk_row_norm_params *)params)->dtype);
}

static void run_row_norm(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    const stk_row_norm_params *p = l->params;
    int32_t gamma = 1, beta = gamma + p->gamma, y = beta + p->beta, mean_at = y + 1,
            rstd_at = mean_at + p->center;
    (void)lo, (void)hi, (void)part;
    for (int64_t r = 0; r < p->rows; r++) {
        double sum = 0, square = 0, n = (double)p->n;
        for (int64_t i = 0; i < p->n; i++) sum += get(l, 0, p->dtype, r * p->n + i);
        double mean = p->center ? sum / n : 0;
        for (int64_t i = 0; i < p->n; i++) {
            double d = get(l, 0, p->dtype, r * p->n + i) - mean;
            square += d * d;
        }
        double rstd = 1 / sqrt(square / n + p->eps);
        for (int64_t i = 0; i < p->n; i++) {
            double v = (get(l, 0, p->dtype, r * p->n + i) - mean) * rstd;
            if (p->gamma) v *= get(l, gamma, p->dtype, i);
            if (p->beta) v += get(l, beta, p->dtype, i);
            put(l, y, p->dtype, r * p->n + i, v);
        }
        if (p->center) put(l, mean_at, p->dtype, r, mean);
        put(l, rstd_at, p->dtype, r, rstd);
    }
}

/* Positions of the arguments of the gradient. */
typedef struct grad_args {
    int32_t gamma, mean, rstd, dx, dgamma, dbeta;
} grad_args;

static grad_args grad_args_of(const stk_row_norm_params *p)
{
    grad_args a = {.gamma = 2, .mean = 2 + p->gamma};
    a.rstd = a.mean + p->center;
    a.dx = a.rstd + 1;
    a.dgamma = a.dx + 1;
    a.dbeta = a.dgamma + 1;
    return a;
}

static void ref_row_grad(const stk_launch *l, const grad_args *a, int64_t r)
{
    const stk_row_norm_params *p = l->params;
    double mean = p->center ? get(l, a->mean, p->dtype, r) : 0, rstd = get(l, a->rstd, p->dtype, r);
    double sum = 0, slope = 0, n = (double)p->n;
    for (int sweep = 0; sweep < 2; sweep++)
        for (int64_t i = 0; i < p->n; i++) {
            double e = get(l, 0, p->dtype, r * p->n + i),
                   h = (get(l, 1, p->dtype, r * p->n + i) - mean) * rstd;
            if (p->gamma) e *= get(l, a->gamma, p->dtype, i);
            if (sweep == 0) {
                sum += e;
                slope += e * h;
            } else {
                put(l, a->dx, p->dtype, r * p->n + i,
                    rstd * (e - (p->center ? sum / n : 0) - h * slope / n));
            }
        }
}

static void run_row_norm_grad(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    const stk_row_norm_params *p = l->params;
    grad_args a = grad_args_of(p);
    (void)lo, (void)hi, (void)part;
    for (int64_t r = 0; r < p->rows; r++) ref_row_grad(l, &a, r);
    for (int64_t i = 0; i < p->n; i++) {
        double dgamma = 0, dbeta = 0;
        for (int64_t r = 0; r < p->rows; r++) {
            double mean = p->center ? get(l, a.mean, p->dtype, r) : 0,
                   dy = get(l, 0, p->dtype, r * p->n + i);
            dgamma += dy * (get(l, 1, p->dtype, r * p->n + i) - mean) * get(l, a.rstd, p->dtype, r);
            dbeta += dy;
        }
        put(l, a.dgamma, p->dtype, i, dgamma);
        if (p->center) put(l, a.dbeta, p->dtype, i, dbeta);
    }
}

const stk_impl stk_impl_row_norm_ref = {.name = "ref",
                                        .kernel = STK_K_ROW_NORM,
                                        .rank = 100,
                                        .supports = rows_is_real,
                                        .run = run_row_norm};
const stk_impl stk_impl_row_norm_grad_ref = {.name = "ref",
                                             .kernel = STK_K_ROW_NORM_GRAD,
                                             .rank = 100,
                                             .supports = rows_is_real,
                                             .run = run_row_norm_grad};

/* ---- group norm -------------------------------------------------------------------------------------------- */

static bool groups_is_real(const void *params)
{
    return is_real(((const stk_group_norm_params *)params)->dtype);
}

/* The elements of one group of one image, one after another. */
typedef struct group {
    int64_t image, number, columns, count;
} group;

static group group_of(const stk_group_norm_params *p, int64_t index)
{
    int64_t columns = p->channels / p->groups;
    return (group){index / p->groups, index % p->groups, columns, p->rows * columns};
}
static int64_t channel(const group *g, int64_t i)
{
    return g->number * g->columns + i % g->columns;
}
static int64_t element(const stk_group_norm_params *p, const group *g, int64_t i)
{
    return (g->image * p->rows + i / g->columns) * p->channels + channel(g, i);
}

static void run_group_norm(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    const stk_group_norm_params *p = l->params;
    (void)lo, (void)hi, (void)part;
    for (int64_t k = 0; k < p->images * p->groups; k++) {
        group g = group_of(p, k);
        double sum = 0, square = 0, n = (double)g.count;
        for (int64_t i = 0; i < g.count; i++) sum += get(l, 0, p->dtype, element(p, &g, i));
        for (int64_t i = 0; i < g.count; i++) {
            double d = get(l, 0, p->dtype, element(p, &g, i)) - sum / n;
            square += d * d;
        }
        double mean = sum / n, rstd = 1 / sqrt(square / n + p->eps);
        for (int64_t i = 0; i < g.count; i++) {
            int64_t at = element(p, &g, i), c = channel(&g, i);
            double h = (get(l, 0, p->dtype, at) - mean) * rstd;
            put(l, 3, p->dtype, at, h * get(l, 1, p->dtype, c) + get(l, 2, p->dtype, c));
        }
        put(l, 4, p->dtype, k, mean);
        put(l, 5, p->dtype, k, rstd);
    }
}

static void ref_group_grad(const stk_launch *l, int64_t k)
{
    const stk_group_norm_params *p = l->params;
    group g = group_of(p, k);
    double sum = 0, slope = 0, n = (double)g.count, mean = get(l, 3, p->dtype, k),
           rstd = get(l, 4, p->dtype, k);
    for (int sweep = 0; sweep < 2; sweep++)
        for (int64_t i = 0; i < g.count; i++) {
            int64_t at = element(p, &g, i);
            double e = get(l, 0, p->dtype, at) * get(l, 2, p->dtype, channel(&g, i));
            double h = (get(l, 1, p->dtype, at) - mean) * rstd;
            if (sweep == 0) {
                sum += e;
                slope += e * h;
            } else {
                put(l, 5, p->dtype, at, rstd * (e - sum / n - h * slope / n));
            }
        }
}

static void run_group_norm_grad(const stk_launch *l, int64_t lo, int64_t hi, int part)
{
    const stk_group_norm_params *p = l->params;
    int64_t columns = p->channels / p->groups;
    (void)lo, (void)hi, (void)part;
    for (int64_t k = 0; k < p->images * p->groups; k++) ref_group_grad(l, k);
    for (int64_t c = 0; c < p->channels; c++) {
        double dgamma = 0, dbeta = 0;
        for (int64_t r = 0; r < p->images * p->rows; r++) {
            int64_t at = r * p->channels + c, k = r / p->rows * p->groups + c / columns;
            double dy = get(l, 0, p->dtype, at);
            dgamma +=
                dy * (get(l, 1, p->dtype, at) - get(l, 3, p->dtype, k)) * get(l, 4, p->dtype, k);
            dbeta += dy;
        }
        put(l, 6, p->dtype, c, dgamma);
        put(l, 7, p->dtype, c, dbeta);
    }
}

const stk_impl stk_impl_group_norm_ref = {.name = "ref",
                                          .kernel = STK_K_GROUP_NORM,
                                          .rank = 100,
                                          .supports = groups_is_real,
                                          .run = run_group_norm};
const stk_impl stk_impl_group_norm_grad_ref = {.name = "ref",
                                               .kernel = STK_K_GROUP_NORM_GRAD,
                                               .rank = 100,
                                               .supports = groups_is_real,
                                               .run = run_group_norm_grad};
