/* Order statistics only: times on a shared machine have long tails, and means and variances follow the tail. */
#include "watch/stats.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void stk_sort_doubles(double *v, int64_t n) { qsort(v, (size_t)n, sizeof *v, by_value); }

double stk_quantile(const double *sorted, int64_t n, double q)
{
    if (n <= 0) return 0;
    double at = q * (double)(n - 1);
    int64_t below = (int64_t)at;
    if (below >= n - 1) return sorted[n - 1];
    return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

double stk_median(const double *v, int64_t n)
{
    if (n <= 0) return 0;
    double *copy = stk_malloc((size_t)n * sizeof *copy), sum = 0;
    if (!copy) {
        for (int64_t i = 0; i < n; i++) sum += v[i];
        return sum / (double)n;
    }
    memcpy(copy, v, (size_t)n * sizeof *copy);
    stk_sort_doubles(copy, n);
    double median = stk_quantile(copy, n, 0.5);
    stk_free(copy);
    return median;
}

/* ---- paired comparison ------------------------------------------------------------------------------------ */

int32_t stk_signed_rank_critical(int32_t n)
{
    /* share[s]: probability that the ranks with a plus sign sum to s; each rank has one with probability 1/2. */
    enum { SUMS = STK_PAIRS_MOST * (STK_PAIRS_MOST + 1) / 2 + 1 };
    static const double TAIL = 0.025;
    double share[SUMS] = {1};
    if (n < 1 || n > STK_PAIRS_MOST) return -1;
    int32_t top = 0;
    for (int32_t rank = 1; rank <= n; rank++) {
        top += rank;
        for (int32_t s = top; s >= 0; s--)
            share[s] = 0.5 * share[s] + (s >= rank ? 0.5 * share[s - rank] : 0);
    }
    double below = 0;
    for (int32_t k = 0; k <= top; k++) {
        below += share[k];
        if (below > TAIL) return k - 1;
    }
    return top;
}

stk_gain stk_gain_of(const double *log_ratio, int32_t n)
{
    enum { MEANS = STK_PAIRS_MOST * (STK_PAIRS_MOST + 1) / 2 };
    double mean[MEANS];
    int32_t m = 0;
    if (n < 1) return (stk_gain){1, 0, INFINITY};
    if (n > STK_PAIRS_MOST) n = STK_PAIRS_MOST;
    for (int32_t i = 0; i < n; i++)
        for (int32_t j = i; j < n; j++) mean[m++] = 0.5 * (log_ratio[i] + log_ratio[j]);
    stk_sort_doubles(mean, m);
    int32_t k = stk_signed_rank_critical(n);
    double low = mean[k > 0 ? k : 0], high = mean[k > 0 ? m - 1 - k : m - 1];
    double best = stk_quantile(mean, m, 0.5);
    if (k < 0) { /* too few for a statement at 95 % */
        low -= 0.5 * (high - low) + 0.05;
        high += 0.5 * (high - low) + 0.05;
    }
    return (stk_gain){exp(best), exp(low), exp(high)};
}

/* ---- change points ------------------------------------------------------------------------------------------ */

typedef struct ranked {
    double value;
    int64_t at;
} ranked;

static int by_ranked(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return (x->value > y->value) - (x->value < y->value);
}

/* Ranks 1 .. n, equal values share their mean. */
static bool rank_all(const double *v, int64_t n, double *rank)
{
    ranked *r = stk_malloc((size_t)n * sizeof *r);
    if (!r) return false;
    for (int64_t i = 0; i < n; i++) r[i] = (ranked){v[i], i};
    qsort(r, (size_t)n, sizeof *r, by_ranked);
    for (int64_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && r[j].value == r[i].value;) j++;
        for (int64_t k = i; k < j; k++) rank[r[k].at] = 0.5 * (double)(i + j + 1);
    }
    stk_free(r);
    return true;
}

/* Returns the number of elements before the change; the probability of a change that large by chance is 2 exp(-*weight). */
static int64_t largest_change(const double *v, int64_t n, double *weight)
{
    *weight = 0;
    double *rank = n >= 4 ? stk_malloc((size_t)n * sizeof *rank) : NULL;
    if (!rank || !rank_all(v, n, rank)) {
        stk_free(rank);
        return 0;
    }
    double u = 0, most = 0, count = (double)n;
    int64_t at = 0;
    for (int64_t t = 0; t < n - 1; t++) {
        u += 2 * rank[t] - (count + 1);
        if (fabs(u) > most) most = fabs(u), at = t + 1;
    }
    stk_free(rank);
    *weight = 6 * most * most / (count * count * count + count * count);
    return at;
}

int64_t stk_change_point(const double *v, int64_t n, double *probability)
{
    double weight;
    int64_t at = largest_change(v, n, &weight);
    *probability = fmin(1, 2 * exp(-weight));
    return at;
}

/* How many steps in a row say no more than one: the sum of the autocorrelations of the ranks, up to the first that could be
 * chance. On a machine with other tenants slow steps come in company, and a test that takes them for independent finds changes
 * everywhere. Long rows are added up in blocks first. */
static double correlation_time(const double *v, int64_t n)
{
    enum { LEAST = 8, BLOCKS = 512 };
    int64_t b = n / BLOCKS + 1, m = n / b;
    double *r = n >= LEAST ? stk_malloc((size_t)n * sizeof *r) : NULL;
    if (!r || !rank_all(v, n, r)) {
        stk_free(r);
        return 1;
    }
    double each = 0, sum = 0, middle = 0.5 * (double)(n + 1);
    for (int64_t i = 0; i < n; i++) r[i] -= middle, each += r[i] * r[i] / (double)n;
    for (int64_t i = 0; i < m; i++) { /* in place: block i is written after it was read */
        double block = 0;
        for (int64_t k = 0; k < b; k++) block += r[i * b + k];
        r[i] = block;
        sum += block * block;
    }
    double time = 1, limit = 1 / sqrt((double)m);
    for (int64_t lag = 1; lag <= m / 3 && sum > 0; lag++) {
        double c = 0;
        for (int64_t i = 0; i + lag < m; i++) c += r[i] * r[i + lag] / sum;
        if (c <= limit) break;
        time += 2 * c;
    }
    stk_free(r);
    double blocks = each > 0 ? sum / (double)m / ((double)b * each) : 1;
    return fmax(1, time * blocks);
}

/* Slow steps at the very start are too few for a test of ranks: they are told by their distance from the rest. */
static int64_t strip_slow_start(const double *v, int64_t n)
{
    double median = stk_median(v, n), *off = stk_malloc((size_t)n * sizeof *off);
    if (!off) return 0;
    for (int64_t i = 0; i < n; i++) off[i] = fabs(v[i] - median);
    double limit = median + 5 * 1.4826 * stk_median(off, n);
    stk_free(off);
    if (limit < 1.3 * median) limit = 1.3 * median;
    int64_t slow = 0;
    while (slow < n / 2 && v[slow] > limit) slow++;
    return slow;
}

static const double SAME_LEVEL = 1.05;

/* The first stretch before `at` that has the level from there on: what comes between was a disturbance, no warm-up. */
static int64_t first_at_level(const double *v, int64_t at, int64_t n, double level)
{
    int64_t length = stk_max_i64(8, (n - at) / 4);
    for (int64_t i = 0; i + length <= at; i += length / 4)
        if (stk_median(v + i, length) <= SAME_LEVEL * level) return i;
    return at;
}

int64_t stk_settled_from(const double *seconds, int64_t n)
{
    int64_t from = n >= 4 ? strip_slow_start(seconds, n) : n > 1;
    while (n - from >= 8) {
        double weight;
        const double *v = seconds + from;
        int64_t m = n - from, at = largest_change(v, m, &weight);
        if (at == 0 || m - at < 4) break;
        if (2 * exp(-weight / correlation_time(v + at, m - at)) >= 0.01) break;
        double after = stk_median(v + at, m - at);
        if (stk_median(v, at) < SAME_LEVEL * after) break; /* slower later is no warm-up */
        int64_t reached = first_at_level(v, at, m, after);
        from += reached;
        if (reached < at) break;
    }
    return from;
}

/* ---- periods ------------------------------------------------------------------------------------------------- */

static double correlation(const double *v, int64_t n, int64_t lag, double mean, double limit)
{
    double sum = 0, square = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = fmin(v[i], limit) - mean;
        square += x * x;
        if (i + lag < n) sum += x * (fmin(v[i + lag], limit) - mean);
    }
    return square > 0 ? sum / square * (double)n / (double)(n - lag) : 0;
}

static bool has_bursts(const double *v, int64_t n)
{
    static const double BURST = 3;
    double *copy = n >= 12 ? stk_malloc((size_t)n * sizeof *copy) : NULL;
    if (!copy) return false;
    memcpy(copy, v, (size_t)n * sizeof *copy);
    stk_sort_doubles(copy, n);
    bool bursts = stk_quantile(copy, n, 0.97) > BURST * stk_quantile(copy, n, 0.1);
    stk_free(copy);
    return bursts;
}

int64_t stk_period_of(const double *seconds, int64_t n)
{
    enum { LONGEST = 64, CYCLES = 6 };
    static const double STRONG = 0.5, STANDS_OUT = 0.35;
    if (!has_bursts(seconds, n)) return 1;
    double limit = 20 * stk_median(seconds, n), mean = 0;
    for (int64_t i = 0; i < n; i++) mean += fmin(seconds[i], limit) / (double)n;
    double before = correlation(seconds, n, 1, mean, limit);
    for (int64_t lag = 2; lag <= LONGEST && lag * CYCLES <= n; lag++) {
        double r = correlation(seconds, n, lag, mean, limit);
        if (r > STRONG && r > before + STANDS_OUT) return lag;
        before = fmax(before, r);
    }
    return 1;
}
