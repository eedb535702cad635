/* Numbers from the sums of metrics, on the host. */
#include "train/metrics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double EPSILON = 1e-7;

static double ratio(double a, double b) { return b != 0 ? a / b : 0; }

static stk_status get(stk_store *store, const char *prefix, const char *name, stk_tensor **out,
                      stk_error *err)
{
    char full[256];
    int n = snprintf(full, sizeof full, "%s/%s", prefix, name);
    if (n < 0 || (size_t)n >= sizeof full)
        return stk_fail(err, STK_ERR_ARGUMENT, "metric '%.80s...': the name is too long", prefix);
    return stk_store_get(store, full, out, err);
}

static stk_status number(double value, stk_tensor **out, stk_error *err)
{
    return stk_tensor_scalar(STK_F32, value, out, err);
}

/* ---- two sums ---------------------------------------------------------------------------------------------------- */

static stk_status two(stk_store *store, const char *prefix, const char *a, const char *b,
                      double *first, double *second, stk_error *err)
{
    stk_tensor *t = NULL;
    STK_TRY(get(store, prefix, a, &t, err));
    *first = stk_tensor_at(t, 0);
    stk_tensor_release(t);
    *second = 0;
    if (!b) return STK_OK;
    t = NULL;
    STK_TRY(get(store, prefix, b, &t, err));
    *second = stk_tensor_at(t, 0);
    stk_tensor_release(t);
    return STK_OK;
}

static stk_status mean_result(const stk_metric *m, const char *prefix, stk_store *store,
                              stk_tensor **out, stk_error *err)
{
    double total, count;
    STK_TRY(two(store, prefix, "total", "count", &total, &count, err));
    double mean = ratio(total, count);
    return number(m->kind == STK_METRIC_ROOT_MEAN_SQUARED_ERROR ? sqrt(mean) : mean, out, err);
}

static stk_status share_result(const stk_metric *m, const char *prefix, stk_store *store,
                               stk_tensor **out, stk_error *err)
{
    double right, wrong;
    const char *other = m->kind == STK_METRIC_PRECISION ? "false_positives" : "false_negatives";
    STK_TRY(two(store, prefix, "true_positives", other, &right, &wrong, err));
    return number(ratio(right, right + wrong), out, err);
}

static stk_status count_result(const char *name, const char *prefix, stk_store *store,
                               stk_tensor **out, stk_error *err)
{
    double count, none;
    STK_TRY(two(store, prefix, name, NULL, &count, &none, err));
    return number(count, out, err);
}

/* ---- F scores ---------------------------------------------------------------------------------------------------------- */

static double f_score(double beta, double tp, double fp, double fn)
{
    double precision = tp / (tp + fp + EPSILON), recall = tp / (tp + fn + EPSILON);
    double b2 = beta * beta;
    return (1 + b2) * precision * recall / (b2 * precision + recall + EPSILON);
}

static stk_status average_scores(const stk_metric *m, stk_tensor *const *s, stk_tensor **out,
                                 stk_error *err)
{
    int64_t n = stk_tensor_count(s[0]);
    double sum[4] = {0}, mean = 0;
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < 4; k++) sum[k] += stk_tensor_at(s[k], i);
    if (m->average == 0) STK_TRY(stk_tensor_new(STK_F32, 1, &n, out, err));
    for (int64_t i = 0; i < n; i++) {
        double f = f_score(m->beta, stk_tensor_at(s[0], i), stk_tensor_at(s[1], i),
                           stk_tensor_at(s[2], i));
        if (m->average == 0) STK_TRY(stk_tensor_set(*out, i, f, err));
        mean += m->average == 3 ? f * stk_tensor_at(s[3], i) / (sum[3] + EPSILON) : f / (double)n;
    }
    if (m->average == 0) return STK_OK;
    return number(m->average == 1 ? f_score(m->beta, sum[0], sum[1], sum[2]) : mean, out, err);
}

static stk_status f_result(const stk_metric *m, const char *prefix, stk_store *store,
                           stk_tensor **out, stk_error *err)
{
    static const char *const name[4] = {"true_positives", "false_positives", "false_negatives",
                                        "intermediate_weights"};
    stk_tensor *sums[4] = {0};
    stk_status status = STK_OK;
    for (int k = 0; k < 4 && status == STK_OK; k++)
        status = get(store, prefix, name[k], &sums[k], err);
    if (status == STK_OK) status = average_scores(m, sums, out, err);
    for (int k = 0; k < 4; k++) stk_tensor_release(sums[k]);
    return status;
}

/* ---- areas ------------------------------------------------------------------------------------------------------------- */

typedef struct point {
    double tp, fp, fn, tn;
} point;

/* The area of one step of a curve, from threshold i (lower) to the next. */
static double step_area(const stk_metric *m, const point *a, const point *b)
{
    double x[2], y[2];
    const point *ends[2] = {a, b};
    for (int k = 0; k < 2; k++) {
        const point *e = ends[k];
        double recall = ratio(e->tp, e->tp + e->fn);
        x[k] = m->curve == 0 ? ratio(e->fp, e->fp + e->tn) : recall;
        y[k] = m->curve == 0 ? recall : ratio(e->tp, e->tp + e->fp);
    }
    double height = m->summation_method == 0   ? (y[0] + y[1]) / 2
                    : m->summation_method == 1 ? fmin(y[0], y[1])
                                               : fmax(y[0], y[1]);
    return (x[0] - x[1]) * height;
}

/* Between two points of a precision-recall curve true positives grow in line with all positives, the precision does not. */
static double pr_step_area(const point *a, const point *b)
{
    double dtp = a->tp - b->tp, pa = a->tp + a->fp, pb = b->tp + b->fp;
    double slope = ratio(dtp, fmax(pa - pb, 0)), intercept = b->tp - slope * pb;
    double rise = pa > 0 && pb > 0 ? pa / pb : 1;
    return ratio(slope * (dtp + intercept * log(rise)), fmax(b->tp + b->fn, 0));
}

static stk_status auc_result(const stk_metric *m, const char *prefix, stk_store *store,
                             stk_tensor **out, stk_error *err)
{
    stk_tensor *yes = NULL, *no = NULL;
    stk_status status = get(store, prefix, "positive_buckets", &yes, err);
    if (status == STK_OK) status = get(store, prefix, "negative_buckets", &no, err);
    if (status != STK_OK) {
        stk_tensor_release(yes);
        return status;
    }
    int64_t n = stk_tensor_count(yes);
    double positives = 0, negatives = 0, area = 0;
    for (int64_t i = 0; i < n; i++) {
        positives += stk_tensor_at(yes, i);
        negatives += stk_tensor_at(no, i);
    }
    point above = {.fn = positives, .tn = negatives}; /* above all thresholds there is nothing */
    for (int64_t i = n - 1; i >= 0; i--) {
        point here = above;
        here.tp += stk_tensor_at(yes, i), here.fn = positives - here.tp;
        here.fp += stk_tensor_at(no, i), here.tn = negatives - here.fp;
        bool curved = m->curve == 1 && m->summation_method == 0;
        if (i < n - 1) area += curved ? pr_step_area(&here, &above) : step_area(m, &here, &above);
        above = here;
    }
    stk_tensor_release(yes);
    stk_tensor_release(no);
    return number(area, out, err);
}

/* ---- matrices ---------------------------------------------------------------------------------------------------------------- */

static stk_status iou_result(const char *prefix, stk_store *store, stk_tensor **out, stk_error *err)
{
    stk_tensor *matrix = NULL;
    STK_TRY(get(store, prefix, "matrix", &matrix, err));
    int64_t n = matrix->shape[0];
    double sum = 0, classes = 0;
    for (int64_t c = 0; c < n; c++) {
        double row = 0, column = 0, both = stk_tensor_at(matrix, c * n + c);
        for (int64_t k = 0; k < n; k++) {
            row += stk_tensor_at(matrix, c * n + k);
            column += stk_tensor_at(matrix, k * n + c);
        }
        double either = row + column - both;
        if (either <= 1e-9) continue; /* a class that neither is nor was predicted does not count */
        sum += both / (either + EPSILON);
        classes++;
    }
    stk_tensor_release(matrix);
    return number(sum / (classes + EPSILON), out, err);
}

stk_status stk_metric_result(const stk_metric *m, const char *prefix, stk_store *store,
                             stk_tensor **out, stk_error *err)
{
    if (!m || !prefix || !store || !out)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_metric_result: metric, prefix, store and out must be given");
    switch (m->kind) {
    case STK_METRIC_PRECISION:
    case STK_METRIC_RECALL: return share_result(m, prefix, store, out, err);
    case STK_METRIC_TRUE_POSITIVES: return count_result("true_positives", prefix, store, out, err);
    case STK_METRIC_TRUE_NEGATIVES: return count_result("true_negatives", prefix, store, out, err);
    case STK_METRIC_FALSE_POSITIVES:
        return count_result("false_positives", prefix, store, out, err);
    case STK_METRIC_FALSE_NEGATIVES:
        return count_result("false_negatives", prefix, store, out, err);
    case STK_METRIC_F1_SCORE:
    case STK_METRIC_FBETA_SCORE: return f_result(m, prefix, store, out, err);
    case STK_METRIC_AUC: return auc_result(m, prefix, store, out, err);
    case STK_METRIC_MEAN_IO_U: return iou_result(prefix, store, out, err);
    case STK_METRIC_CONFUSION_MATRIX: return get(store, prefix, "matrix", out, err);
    default: return mean_result(m, prefix, store, out, err);
    }
}

stk_status stk_metric_reset(const char *prefix, stk_store *store, stk_error *err)
{
    if (!prefix || !store)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_metric_reset: prefix and store must be given");
    char folder[256];
    snprintf(folder, sizeof folder, "%s/", prefix);
    return stk_store_clear(store, folder, err);
}
