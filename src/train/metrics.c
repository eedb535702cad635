/* Metrics in a graph: what each batch adds to which sums. The numbers that come of the sums are made on the host, when they
 * are asked for (metric_results.c). */
#include "train/metrics.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *keras_class, *aliases, *defaults;
} kinds[STK_METRIC_COUNT] = {
#define STK_METRIC(NAME, name, keras_class, aliases, defaults, doc)                                \
    [STK_METRIC_##NAME] = {#name, keras_class, aliases, defaults},
#include "stoker/metrics.def"
};

/* ---- options ------------------------------------------------------------------------------------------------------ */

#define NONE -0x1p63 /* INT64_MIN */
#define ROW(member, kind, low, high, none)                                                         \
    STK_OPTION(stk_metric, member, NULL, kind, low, high, none)
static const stk_option rows[] = {
    ROW(threshold, REAL, 0, 1, -1),
    ROW(thresholds, REAL, 0, 1, -1),
    ROW(beta, REAL, 0, 1e15, NAN),
    ROW(k, INT, 1, 1e15, NAN),
    ROW(top_k, INT, 1, 1e15, NONE),
    ROW(class_id, INT, 0, 1e15, NONE),
    ROW(num_thresholds, INT, 2, 1e6, NAN),
    ROW(num_classes, INT, 0, 1e5, NAN),
    ROW(ignore_class, INT, -1e15, 1e15, NONE),
    ROW(from_logits, BOOL, 0, 1, NAN),
    ROW(multi_label, BOOL, 0, 0, NAN),
    ROW(sparse_y_true, BOOL, 0, 1, NAN),
    ROW(sparse_y_pred, BOOL, 0, 1, NAN),
    STK_OPTION_WORDS(stk_metric, average, "none|micro|macro|weighted", 0),
    STK_OPTION_WORDS(stk_metric, curve, "ROC|PR", NAN),
    STK_OPTION_WORDS(stk_metric, summation_method, "interpolation|minoring|majoring", NAN),
};

static const char *name_of(int32_t i, int32_t which)
{
    static _Thread_local char word[64];
    if (which == 0) return kinds[i].name;
    if (which == 1) return kinds[i].keras_class;
    size_t n = strlen(kinds[i].aliases);
    if (which > 2 || !n || n >= sizeof word) return NULL;
    memcpy(word, kinds[i].aliases, n + 1);
    return word;
}
static const char *defaults_of(int32_t kind) { return kinds[kind].defaults; }
static void start(int32_t kind, void *out)
{
    stk_metric *m = out;
    *m = (stk_metric){.kind = (stk_metric_kind)kind,
                      .class_id = INT64_MIN,
                      .top_k = INT64_MIN,
                      .ignore_class = INT64_MIN,
                      .threshold = -1,
                      .thresholds = -1,
                      .beta = 1};
    snprintf(m->name, sizeof m->name, "%s", kinds[kind].name);
}

static const stk_names names = {"metric", STK_METRIC_COUNT, name_of};
static const stk_class_reader reader = {.names = &names,
                                        .rows = rows,
                                        .count = (int32_t)(sizeof rows / sizeof *rows),
                                        .defaults = defaults_of,
                                        .always = "",
                                        .start = start,
                                        .name = offsetof(stk_metric, name),
                                        .name_size = sizeof((stk_metric *)0)->name};

stk_metric stk_metric_defaults(stk_metric_kind kind)
{
    stk_metric m = {.kind = kind};
    if (kind >= 0 && kind < STK_METRIC_COUNT) stk_class_defaults(&reader, (int32_t)kind, &m);
    return m;
}

/* Keras' JSON says how the metric is called. */
static void take_name(const char *text, stk_metric *out)
{
    stk_json_document *document = NULL;
    if (stk_json_parse(text, strlen(text), NULL, &document, NULL) != STK_OK) return;
    const stk_json *config = stk_json_get(stk_json_root(document), "config");
    const char *name = stk_json_text(stk_json_get(config, "name"), NULL);
    if (name) snprintf(out->name, sizeof out->name, "%.60s", name);
    stk_json_release(document);
}

stk_status stk_metric_parse(const char *text, stk_metric *out, stk_error *err)
{
    if (!text || !out)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_metric_parse: text and out must be given");
    stk_loss loss;
    stk_status status = stk_class_parse(&reader, text, out, err);
    size_t n = strcspn(text, ":");
    bool word = *text != '{' && n < sizeof out->name;
    if (status == STK_ERR_ARGUMENT && stk_loss_parse(text, &loss, NULL) == STK_OK) {
        start(STK_METRIC_MEAN_LOSS, out);
        out->loss = loss;
        snprintf(out->name, sizeof out->name, "%s", stk_loss_name(loss.kind));
        if (!word) take_name(text, out);
        status = STK_OK;
    } else if (status == STK_OK && out->kind == STK_METRIC_MEAN_LOSS) {
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "metric mean_loss is the mean of a loss: give the name of the loss");
    }
    if (status == STK_OK && word) { /* Keras shows what was written: "acc" stays "acc" */
        memcpy(out->name, text, n);
        out->name[n] = 0;
    }
    return status;
}

/* ---- sums --------------------------------------------------------------------------------------------------------- */

typedef struct work {
    stk_graph *g;
    const stk_metric *m;
    const char *prefix;
    stk_val t, p;    /* as they came */
    stk_val weights; /* float32, or 0 */
} work;

#define NUMBER(x) stk_g_scalar(w->g, STK_F32, x)

/* The variable grows by `value`. */
static void add_to(work *w, const char *name, stk_val value)
{
    char full[256];
    int64_t shape[STK_MAX_RANK];
    int32_t rank = stk_g_rank(w->g, value);
    int n = snprintf(full, sizeof full, "%s/%s", w->prefix, name);
    if (n < 0 || (size_t)n >= sizeof full) {
        stk_g_fail(w->g, STK_ERR_ARGUMENT, "metric '%.80s...': the name is too long", w->prefix);
        return;
    }
    for (int32_t i = 0; i < rank; i++) shape[i] = stk_g_dim(w->g, value, i);
    stk_val v = stk_g_variable(w->g, full, STK_F32, rank, shape);
    stk_g_assign(w->g, v, stk_g_add(w->g, v, value));
}

/* Numbers behind the first axis. */
static double inner(const stk_graph *g, stk_val v)
{
    double n = 1;
    for (int32_t i = 1; i < stk_g_rank(g, v); i++) n *= (double)stk_g_dim(g, v, i);
    return n;
}

static stk_val sum_of_means(work *w, stk_val v)
{
    stk_val sum = stk_g_sum_all(w->g, v);
    double n = inner(w->g, v);
    return n == 1 ? sum : stk_g_mul(w->g, sum, NUMBER(1 / n));
}

/* total and count of Keras' Mean: the mean of each sample counts once, or as much as its weight. */
static void add_mean(work *w, stk_val values)
{
    stk_graph *g = w->g;
    if (!stk_graph_ok(g) || !stk_val_ok(g, values)) return;
    stk_val count = NUMBER(stk_g_rank(g, values) ? (double)stk_g_dim(g, values, 0) : 1);
    if (w->weights) {
        stk_val weights = stk_weights_like(g, w->weights, values);
        if (!stk_graph_ok(g)) return;
        values = stk_g_mul(g, values, weights);
        count = sum_of_means(w, weights);
    }
    add_to(w, "total", sum_of_means(w, values));
    add_to(w, "count", count);
}

static stk_val as_number(stk_graph *g, stk_val condition)
{
    return stk_g_cast(g, condition, STK_F32);
}

/* ---- one block per metric ------------------------------------------------------------------------------------------ */

static void binary_accuracy(work *w)
{
    stk_val t = stk_g_cast(w->g, w->t, STK_F32), p = stk_g_cast(w->g, w->p, STK_F32);
    double threshold = w->m->kind == STK_METRIC_BINARY_ACCURACY ? w->m->threshold : 0.5;
    stk_same_rank(w->g, &t, &p);
    stk_val said = as_number(w->g, stk_g_gt(w->g, p, NUMBER(threshold)));
    add_mean(w, as_number(w->g, stk_g_eq(w->g, t, said)));
}

/* The largest probability belongs to the largest of what went into the softmax, which then need not run for a metric. */
static stk_val class_of(stk_graph *g, stk_val scores)
{
    if (!stk_graph_ok(g) || !stk_val_ok(g, scores)) return 0;
    const stk_node *maker = stk_node_of(g, scores);
    return stk_g_argmax(g, maker->op == STK_OP_SOFTMAX ? maker->in[0] : scores, -1);
}

static void categorical_accuracy(work *w)
{
    stk_val right = stk_g_eq(w->g, class_of(w->g, w->t), class_of(w->g, w->p));
    add_mean(w, as_number(w->g, right));
}

static stk_val labels_of(work *w)
{
    return stk_g_cast(w->g, stk_class_numbers(w->g, w->t, w->p), STK_I64);
}

static void sparse_categorical_accuracy(work *w)
{
    add_mean(w, as_number(w->g, stk_g_eq(w->g, labels_of(w), class_of(w->g, w->p))));
}

/* By the rule of Keras: predictions of one column are binary; labels with fewer axes, or one column, are class numbers. */
static bool labels_are_numbers(const work *w)
{
    int32_t rt = stk_g_rank(w->g, w->t), rp = stk_g_rank(w->g, w->p);
    return rt < rp || (rt > 0 && stk_g_dim(w->g, w->t, -1) == 1 && stk_g_dim(w->g, w->p, -1) > 1);
}
static void accuracy(work *w)
{
    if (stk_g_rank(w->g, w->p) == 0 || stk_g_dim(w->g, w->p, -1) == 1)
        binary_accuracy(w);
    else if (labels_are_numbers(w))
        sparse_categorical_accuracy(w);
    else
        categorical_accuracy(w);
}

/* Right when fewer than k predictions are larger than that of the true class. */
static void top_k(work *w, stk_val labels)
{
    stk_graph *g = w->g;
    const int32_t last = -1;
    if (!stk_graph_ok(g)) return;
    stk_val p = stk_g_cast(g, w->p, STK_F32), zero = stk_g_scalar(g, STK_I64, 0);
    stk_val classes = stk_g_scalar(g, STK_I64, (double)stk_g_dim(g, p, -1));
    stk_val known = stk_g_and(g, stk_g_ge(g, labels, zero), stk_g_lt(g, labels, classes));
    stk_val own =
        stk_g_take_along(g, p, stk_g_expand_dims(g, stk_g_select(g, known, labels, zero), -1), -1);
    stk_val larger = stk_g_sum(g, as_number(g, stk_g_gt(g, p, own)), 1, &last, false);
    stk_val right = stk_g_and(g, known, stk_g_lt(g, larger, NUMBER((double)w->m->k)));
    add_mean(w, as_number(g, right));
}
static void top_k_categorical_accuracy(work *w) { top_k(w, class_of(w->g, w->t)); }
static void sparse_top_k_categorical_accuracy(work *w) { top_k(w, labels_of(w)); }

/* Labels (0 or 1), predictions and weights of the same shape. */
typedef struct binary {
    stk_val t, p, weights;
} binary;
static const double LOWEST = -1e10; /* below every prediction */

/* Predictions that are not among the k largest of their row become LOWEST. */
static stk_val only_top(work *w, stk_val p)
{
    stk_graph *g = w->g;
    stk_val at = 0;
    const int32_t list = -2;
    stk_g_top_k(g, p, w->m->top_k, -1, &at);
    if (!stk_graph_ok(g)) return 0;
    stk_val hot = stk_g_one_hot(g, at, stk_g_dim(g, p, -1), -1, STK_F32, 1, 0);
    stk_val in = stk_g_gt(g, stk_g_sum(g, hot, 1, &list, false), NUMBER(0));
    return stk_g_select(g, in, p, NUMBER(LOWEST));
}
static double threshold_of(const stk_metric *m)
{
    return m->thresholds >= 0 ? m->thresholds : m->top_k != INT64_MIN ? LOWEST : 0.5;
}
static binary binary_of(work *w)
{
    stk_graph *g = w->g;
    binary b = {stk_g_cast(g, w->t, STK_F32), stk_g_cast(g, w->p, STK_F32), 0};
    stk_same_rank(g, &b.t, &b.p);
    if (w->m->top_k != INT64_MIN) b.p = only_top(w, b.p);
    if (w->m->class_id != INT64_MIN) {
        b.t = stk_g_slice_axis(g, b.t, -1, w->m->class_id, 1);
        b.p = stk_g_slice_axis(g, b.p, -1, w->m->class_id, 1);
    }
    b.t = as_number(g, stk_g_ne(g, b.t, NUMBER(0)));
    if (w->weights) b.weights = stk_weights_like(g, w->weights, b.p);
    return b;
}
static void add_sum(work *w, const char *name, stk_val values, stk_val weights)
{
    if (weights) values = stk_g_mul(w->g, values, weights);
    add_to(w, name, stk_g_sum_all(w->g, values));
}
static void add_counts(work *w, bool tp, bool fp, bool fn, bool tn)
{
    stk_graph *g = w->g;
    binary b = binary_of(w);
    stk_val one = NUMBER(1), said = as_number(g, stk_g_gt(g, b.p, NUMBER(threshold_of(w->m))));
    stk_val not_said = stk_g_sub(g, one, said), not_true = stk_g_sub(g, one, b.t);
    if (tp) add_sum(w, "true_positives", stk_g_mul(g, said, b.t), b.weights);
    if (fp) add_sum(w, "false_positives", stk_g_mul(g, said, not_true), b.weights);
    if (fn) add_sum(w, "false_negatives", stk_g_mul(g, not_said, b.t), b.weights);
    if (tn) add_sum(w, "true_negatives", stk_g_mul(g, not_said, not_true), b.weights);
}
static void precision(work *w) { add_counts(w, true, true, false, false); }
static void recall(work *w) { add_counts(w, true, false, true, false); }
static void true_positives(work *w) { add_counts(w, true, false, false, false); }
static void false_positives(work *w) { add_counts(w, false, true, false, false); }
static void false_negatives(work *w) { add_counts(w, false, false, true, false); }
static void true_negatives(work *w) { add_counts(w, false, false, false, true); }

/* Sums per class; averages are made on the host. Without a threshold the largest prediction of a row is what was said. */
static void fbeta_score(work *w)
{
    stk_graph *g = w->g;
    const int32_t first = 0, last = -1;
    stk_val t = stk_g_cast(g, w->t, STK_F32), p = stk_g_cast(g, w->p, STK_F32), one = NUMBER(1);
    if (stk_g_rank(g, t) != 2 || stk_g_rank(g, p) != 2) {
        stk_g_fail(g, STK_ERR_SHAPE, "metric %s: needs labels and predictions [samples, classes]",
                   kinds[w->m->kind].name);
        return;
    }
    stk_val said = stk_g_gt(g, p, NUMBER(w->m->threshold));
    if (w->m->threshold < 0)
        said = stk_g_and(g, stk_g_ge(g, p, stk_g_reduce_max(g, p, 1, &last, true)),
                         stk_g_gt(g, stk_g_abs(g, p), NUMBER(1e-9)));
    said = as_number(g, said);
    stk_val part[4] = {stk_g_mul(g, said, t), stk_g_mul(g, said, stk_g_sub(g, one, t)),
                       stk_g_mul(g, stk_g_sub(g, one, said), t), t};
    static const char *const name[4] = {"true_positives", "false_positives", "false_negatives",
                                        "intermediate_weights"};
    for (int i = 0; i < 4; i++) {
        if (w->weights) part[i] = stk_g_mul(g, part[i], stk_weights_like(g, w->weights, part[i]));
        add_to(w, name[i], stk_g_sum(g, part[i], 1, &first, false));
    }
}
static void f1_score(work *w) { fbeta_score(w); }

/* Samples by threshold: bucket i holds predictions in (i, i + 1] / (thresholds - 1). What lies above each threshold is the
 * sum of later buckets, made on the host. */
static void auc(work *w)
{
    stk_graph *g = w->g;
    int64_t n = w->m->num_thresholds, all = -1;
    if (w->m->from_logits) w->p = stk_g_sigmoid(g, stk_g_cast(g, w->p, STK_F32));
    binary b = binary_of(w);
    stk_val one = NUMBER(1), yes = b.t, no = stk_g_sub(g, one, b.t);
    if (b.weights) {
        yes = stk_g_mul(g, yes, b.weights);
        no = stk_g_mul(g, no, b.weights);
    }
    stk_val at = stk_g_mul(g, stk_g_clip(g, b.p, 0, 1), NUMBER((double)(n - 1)));
    at = stk_g_relu(g, stk_g_sub(g, stk_g_ceil(g, at), one));
    at = stk_g_reshape(g, stk_g_cast(g, at, STK_I64), 1, &all);
    add_to(w, "positive_buckets", stk_g_segment_sum(g, stk_g_reshape(g, yes, 1, &all), at, n));
    add_to(w, "negative_buckets", stk_g_segment_sum(g, stk_g_reshape(g, no, 1, &all), at, n));
}

/* Adds weights at [t, p] of a matrix; pairs that are not inside of it are left out. */
static void add_matrix(work *w, stk_val t, stk_val p, int64_t classes)
{
    stk_graph *g = w->g;
    int64_t all = -1, n = classes;
    stk_val zero = stk_g_scalar(g, STK_I64, 0), most = stk_g_scalar(g, STK_I64, (double)n);
    t = stk_g_reshape(g, stk_g_cast(g, t, STK_I64), 1, &all);
    p = stk_g_reshape(g, stk_g_cast(g, p, STK_I64), 1, &all);
    stk_val inside = stk_g_and(g, stk_g_and(g, stk_g_ge(g, t, zero), stk_g_lt(g, t, most)),
                               stk_g_and(g, stk_g_ge(g, p, zero), stk_g_lt(g, p, most)));
    if (w->m->ignore_class != INT64_MIN)
        inside = stk_g_and(g, inside,
                           stk_g_ne(g, t, stk_g_scalar(g, STK_I64, (double)w->m->ignore_class)));
    stk_val weight = as_number(g, inside);
    if (w->weights) weight = stk_g_mul(g, weight, stk_g_reshape(g, w->weights, 1, &all));
    stk_val place = stk_g_add(g, stk_g_mul(g, t, most), p);
    place = stk_g_select(g, inside, place, zero);
    stk_val sums = stk_g_segment_sum(g, weight, place, n * n);
    add_to(w, "matrix", stk_g_reshape(g, sums, 2, (int64_t[]){n, n}));
}

static void mean_io_u(work *w)
{
    if (w->m->num_classes < 1) {
        stk_g_fail(w->g, STK_ERR_ARGUMENT, "metric mean_io_u: num_classes must be given");
        return;
    }
    add_matrix(w, w->m->sparse_y_true ? w->t : class_of(w->g, w->t),
               w->m->sparse_y_pred ? w->p : class_of(w->g, w->p), w->m->num_classes);
}

static void confusion_matrix(work *w)
{
    stk_graph *g = w->g;
    int64_t columns = stk_g_rank(g, w->p) ? stk_g_dim(g, w->p, -1) : 1, n = w->m->num_classes;
    if (columns == 1) {
        stk_val said = stk_g_gt(g, stk_g_cast(g, w->p, STK_F32), NUMBER(w->m->threshold));
        add_matrix(w, w->t, said, n ? n : 2);
    } else {
        add_matrix(w, labels_are_numbers(w) ? labels_of(w) : class_of(g, w->t), class_of(g, w->p),
                   n ? n : columns);
    }
}

static void root_mean_squared_error(work *w)
{
    stk_val t = stk_g_cast(w->g, w->t, STK_F32), p = stk_g_cast(w->g, w->p, STK_F32);
    stk_same_rank(w->g, &t, &p);
    add_mean(w, stk_g_square(w->g, stk_g_sub(w->g, p, t)));
}

static void cosine_similarity(work *w)
{
    stk_loss loss = stk_loss_defaults(STK_LOSS_COSINE_SIMILARITY);
    add_mean(w, stk_g_neg(w->g, stk_g_loss_values(w->g, &loss, w->t, w->p)));
}

static void mean_loss(work *w) { add_mean(w, stk_g_loss_values(w->g, &w->m->loss, w->t, w->p)); }

static void (*const blocks[STK_METRIC_COUNT])(work *w) = {
#define STK_METRIC(NAME, name, keras_class, aliases, defaults, doc) [STK_METRIC_##NAME] = name,
#include "stoker/metrics.def"
};

void stk_g_metric(stk_graph *g, const stk_metric *metric, const char *prefix, stk_val y_true,
                  stk_val y_pred, stk_val weights, stk_val mask)
{
    if (!stk_graph_ok(g)) return;
    if (!metric || metric->kind < 0 || metric->kind >= STK_METRIC_COUNT || !prefix || !*prefix ||
        !stk_val_ok(g, y_true) || !stk_val_ok(g, y_pred)) {
        stk_g_fail(g, STK_ERR_ARGUMENT,
                   "stk_g_metric: metric, prefix, true values and predictions must be given");
        return;
    }
    work w = {.g = g, .m = metric, .prefix = prefix, .t = y_true, .p = y_pred};
    if (weights) w.weights = stk_g_cast(g, weights, STK_F32);
    if (mask) {
        stk_val on = as_number(g, mask);
        w.weights = w.weights ? stk_g_mul(g, on, stk_weights_like(g, w.weights, on)) : on;
    }
    blocks[metric->kind](&w);
}
