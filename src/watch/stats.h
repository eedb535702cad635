/* stats.h - how large an effect is, how sure that is, and when a row of times has settled. */
#ifndef STK_WATCH_STATS_H
#define STK_WATCH_STATS_H

#include "stoker/watch.h"

double stk_quantile(const double *sorted, int64_t n, double q); /* 0 for n = 0; interpolates */
void stk_sort_doubles(double *v, int64_t n);
/* Median of a copy; 0 when n = 0. On failure of memory the mean. */
double stk_median(const double *v, int64_t n);

enum { STK_PAIRS_MOST = 64 };
/* From differences of logarithms log(a_i / b_i), one per pair of turns: exp of the Hodges-Lehmann estimate (median of all
 * pairwise means) and the 95 % interval of Wilcoxon's signed ranks, exact for any distribution that is symmetric. At
 * least 6 pairs are needed for 95 %; fewer give the whole range, widened by half. n <= STK_PAIRS_MOST. */
stk_gain stk_gain_of(const double *log_ratio, int32_t n);
/* Largest k with P(T <= k) <= 0.025 under the null hypothesis, T the signed-rank sum of n pairs; -1: none. */
int32_t stk_signed_rank_critical(int32_t n);

/* Pettitt's test (1979): where the row changes its level most, and the probability of a change that large without a
 * reason (the usual approximation 2 exp(-6 K^2 / (n^3 + n^2))). Returns the number of elements before the change;
 * 0 when n < 4 or without memory. */
int64_t stk_change_point(const double *v, int64_t n, double *probability);
/* From which step on the times have settled: slow first steps are stripped, then change points at which the level
 * falls by more than 5 % (probability below 1 %) one after the other. Steps that follow each other are not independent: the
 * test counts as many as the autocorrelation of the row behind the change leaves. A level that was there before, and was left and
 * found again, was reached the first time. */
int64_t stk_settled_from(const double *seconds, int64_t n);
/* After how many steps the times repeat themselves (a burst in every fourth: 4); 1 when they do not. Bursts are
 * three times as long as short steps; the autocorrelation of values cut off at 20 medians has to stand out from that of all shorter
 * lags, so that drift has no period, over six periods at least. */
int64_t stk_period_of(const double *seconds, int64_t n);

#endif
