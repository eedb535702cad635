/* Losses: one block per formula over the last axis; then weights, masks and the mean. All in float32, as in Keras. */
#include "train/losses.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name, *keras_class, *aliases, *defaults;
} kinds[STK_LOSS_COUNT] = {
#define STK_LOSS(NAME, name, keras_class, aliases, defaults, doc)                                  \
    [STK_LOSS_##NAME] = {#name, keras_class, aliases, defaults},
#include "stoker/losses.def"
};
static const double EPSILON = 1e-7; /* keras.config.epsilon() */

/* ---- options ---------------------------------------------------------------------------------------------------- */

#define ROW(member, kind, low, high, none) STK_OPTION(stk_loss, member, NULL, kind, low, high, none)
static const stk_option rows[] = {
    ROW(from_logits, BOOL, 0, 1, NAN),
    ROW(label_smoothing, REAL, 0, 1, 0),
    ROW(delta, REAL, 0, 1e30, NAN),
    ROW(alpha, REAL, 0, 1e30, NAN),
    ROW(gamma, REAL, 0, 1e30, NAN),
    ROW(apply_class_balancing, BOOL, 0, 1, NAN),
    ROW(ignore_class, INT, -1e15, 1e15, -0x1p63),
    STK_OPTION_WORDS(stk_loss, reduction, "sum_over_batch_size|sum|mean_with_sample_weight|mean",
                     NAN),
};

/* One alias after the other; they are split by spaces, so each is copied out for a moment. */
static const char *name_of(int32_t i, int32_t which)
{
    static _Thread_local char word[64];
    if (which == 0) return kinds[i].name;
    if (which == 1) return kinds[i].keras_class;
    const char *at = kinds[i].aliases;
    for (which -= 2; which > 0 && *at; which--) {
        at += strcspn(at, " ");
        at += *at == ' ';
    }
    size_t n = strcspn(at, " ");
    if (!n || n >= sizeof word) return NULL;
    memcpy(word, at, n);
    word[n] = 0;
    return word;
}

static const char *defaults_of(int32_t kind) { return kinds[kind].defaults; }
static void start(int32_t kind, void *out)
{
    *(stk_loss *)out = (stk_loss){.kind = (stk_loss_kind)kind, .ignore_class = INT64_MIN};
}

static const stk_names names = {"loss", STK_LOSS_COUNT, name_of};
static const stk_class_reader reader = {.names = &names,
                                        .rows = rows,
                                        .count = (int32_t)(sizeof rows / sizeof *rows),
                                        .defaults = defaults_of,
                                        .always = "reduction",
                                        .start = start};

const char *stk_loss_name(stk_loss_kind kind)
{
    return kind >= 0 && kind < STK_LOSS_COUNT ? kinds[kind].name : "?";
}

stk_loss stk_loss_defaults(stk_loss_kind kind)
{
    stk_loss loss = {.kind = kind, .ignore_class = INT64_MIN};
    if (kind >= 0 && kind < STK_LOSS_COUNT) stk_class_defaults(&reader, (int32_t)kind, &loss);
    return loss;
}

stk_status stk_loss_parse(const char *text, stk_loss *out, stk_error *err)
{
    if (!text || !out)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_loss_parse: text and out must be given");
    return stk_class_parse(&reader, text, out, err);
}

/* ---- shapes -------------------------------------------------------------------------------------------------------- */

void stk_same_rank(stk_graph *g, stk_val *a, stk_val *b)
{
    int32_t ra = stk_g_rank(g, *a), rb = stk_g_rank(g, *b);
    stk_val *low = ra < rb ? a : b, *high = ra < rb ? b : a;
    int32_t rank = ra < rb ? ra : rb;
    if (!stk_graph_ok(g) || (ra > rb ? ra - rb : rb - ra) != 1 || stk_g_dim(g, *high, -1) != 1)
        return;
    if (rank == 1)
        *low = stk_g_expand_dims(g, *low, -1);
    else
        *high = stk_g_squeeze(g, *high, -1);
}

stk_val stk_weights_like(stk_graph *g, stk_val weights, stk_val values)
{
    if (!stk_graph_ok(g) || !stk_val_ok(g, weights)) return 0;
    int32_t rank = stk_g_rank(g, values);
    if (stk_g_rank(g, weights) == rank + 1 && stk_g_dim(g, weights, -1) == 1)
        weights = stk_g_squeeze(g, weights, -1);
    while (stk_graph_ok(g) && stk_g_rank(g, weights) < rank)
        weights = stk_g_expand_dims(g, weights, -1);
    return weights;
}

stk_val stk_class_numbers(stk_graph *g, stk_val y_true, stk_val y_pred)
{
    if (!stk_graph_ok(g) || !stk_val_ok(g, y_true)) return 0;
    if (stk_g_rank(g, y_true) == stk_g_rank(g, y_pred) && stk_g_rank(g, y_true) > 0 &&
        stk_g_dim(g, y_true, -1) == 1)
        y_true = stk_g_squeeze(g, y_true, -1);
    stk_dtype t = stk_g_dtype(g, y_true);
    return t == STK_I32 ? y_true : stk_g_cast(g, y_true, STK_I64);
}

/* ---- formulas ------------------------------------------------------------------------------------------------------ */

typedef struct work {
    stk_graph *g;
    const stk_loss *o;
    stk_val t, p;   /* true and predicted; float32 */
    stk_val logits; /* what went into the softmax or sigmoid that made p; 0 = p is all there is */
} work;

#define ADD(a, b) stk_g_add(w->g, a, b)
#define SUB(a, b) stk_g_sub(w->g, a, b)
#define MUL(a, b) stk_g_mul(w->g, a, b)
#define DIV(a, b) stk_g_div(w->g, a, b)
#define MAX(a, b) stk_g_max(w->g, a, b)
#define LOG(a)    stk_g_log(w->g, a)
#define ABS(a)    stk_g_abs(w->g, a)
#define SQUARE(a) stk_g_square(w->g, a)
#define NUMBER(x) stk_g_scalar(w->g, STK_F32, x)
#define MEAN(a)   stk_g_mean(w->g, a, 1, &LAST, false)
#define SUM(a)    stk_g_sum(w->g, a, 1, &LAST, false)
static const int32_t LAST = -1;

static stk_val mean_squared_error(work *w) { return MEAN(SQUARE(SUB(w->t, w->p))); }
static stk_val mean_absolute_error(work *w) { return MEAN(ABS(SUB(w->t, w->p))); }

static stk_val mean_absolute_percentage_error(work *w)
{
    stk_val share = DIV(SUB(w->t, w->p), MAX(ABS(w->t), NUMBER(EPSILON)));
    return MUL(NUMBER(100), MEAN(ABS(share)));
}

static stk_val mean_squared_logarithmic_error(work *w)
{
    stk_val eps = NUMBER(EPSILON), one = NUMBER(1);
    return MEAN(SQUARE(SUB(LOG(ADD(MAX(w->p, eps), one)), LOG(ADD(MAX(w->t, eps), one)))));
}

static stk_val huber(work *w)
{
    stk_val e = SUB(w->p, w->t), size = ABS(e), delta = NUMBER(w->o->delta);
    stk_val far = SUB(MUL(delta, size), NUMBER(0.5 * w->o->delta * w->o->delta));
    return MEAN(stk_g_select(w->g, stk_g_le(w->g, size, delta), MUL(NUMBER(0.5), SQUARE(e)), far));
}

/* x + log(1 + e^-2x) - log(2) */
static stk_val log_cosh(work *w)
{
    stk_val x = SUB(w->p, w->t), plus = stk_g_softplus(w->g, MUL(x, NUMBER(-2)));
    return MEAN(SUB(ADD(x, plus), NUMBER(0.69314718055994530942)));
}

static stk_val kept_inside(work *w, stk_val p) { return stk_g_clip(w->g, p, EPSILON, 1 - EPSILON); }

static stk_val smoothed(work *w, double spread)
{
    double share = w->o->label_smoothing;
    if (share <= 0) return w->t;
    return ADD(MUL(w->t, NUMBER(1 - share)), NUMBER(share * spread));
}

/* By element. */
static stk_val binary_terms(work *w, stk_val t, stk_val p)
{
    if (w->logits) return stk_g_sigmoid_cross_entropy(w->g, w->logits, t);
    stk_val one = NUMBER(1);
    p = kept_inside(w, p);
    stk_val sum = ADD(MUL(t, LOG(p)), MUL(SUB(one, t), LOG(SUB(one, p))));
    return stk_g_neg(w->g, sum);
}

static stk_val binary_crossentropy(work *w)
{
    return MEAN(binary_terms(w, smoothed(w, 0.5), w->p));
}

static stk_val binary_focal_crossentropy(work *w)
{
    stk_val one = NUMBER(1), t = smoothed(w, 0.5);
    stk_val p = w->o->from_logits ? stk_g_sigmoid(w->g, w->logits) : w->p;
    stk_val right = ADD(MUL(t, p), MUL(SUB(one, t), SUB(one, p)));
    stk_val focus = stk_g_pow(w->g, SUB(one, right), NUMBER(w->o->gamma));
    stk_val terms = MUL(focus, binary_terms(w, t, p));
    if (w->o->apply_class_balancing)
        terms =
            MUL(terms, ADD(MUL(t, NUMBER(w->o->alpha)), MUL(SUB(one, t), NUMBER(1 - w->o->alpha))));
    return MEAN(terms);
}

static stk_val shares(work *w, stk_val p)
{
    return kept_inside(w, DIV(p, stk_g_sum(w->g, p, 1, &LAST, true)));
}

static double one_of_all(const work *w) { return 1.0 / (double)stk_g_dim(w->g, w->t, -1); }

static stk_val categorical_crossentropy(work *w)
{
    stk_val t = smoothed(w, one_of_all(w));
    if (w->logits) return stk_g_softmax_cross_entropy(w->g, w->logits, t, 0);
    return stk_g_neg(w->g, SUM(MUL(t, LOG(shares(w, w->p)))));
}

static stk_val categorical_focal_crossentropy(work *w)
{
    stk_val t = smoothed(w, one_of_all(w));
    stk_val p = shares(w, w->o->from_logits ? stk_g_softmax(w->g, w->p, -1) : w->p);
    stk_val focus = stk_g_pow(w->g, SUB(NUMBER(1), p), NUMBER(w->o->gamma));
    stk_val terms = MUL(MUL(focus, NUMBER(w->o->alpha)), MUL(t, LOG(p)));
    return stk_g_neg(w->g, SUM(terms));
}

static stk_val hinge_rest(work *w)
{
    /* Labels of 0 and 1 mean -1 and 1: known only when they are seen, so both are at hand. */
    stk_graph *g = w->g;
    stk_val zero = NUMBER(0), one = NUMBER(1);
    stk_val each = stk_g_or(g, stk_g_eq(g, w->t, zero), stk_g_eq(g, w->t, one));
    stk_val binary = stk_g_all(g, each, 0, NULL, false);
    stk_val t = stk_g_select(g, binary, SUB(MUL(NUMBER(2), w->t), one), w->t);
    return MAX(SUB(one, MUL(t, w->p)), zero);
}
static stk_val hinge(work *w) { return MEAN(hinge_rest(w)); }
static stk_val squared_hinge(work *w) { return MEAN(SQUARE(hinge_rest(w))); }

static stk_val categorical_hinge(work *w)
{
    stk_val right = SUM(MUL(w->t, w->p));
    stk_val wrong = stk_g_reduce_max(w->g, MUL(SUB(NUMBER(1), w->t), w->p), 1, &LAST, false);
    return MAX(ADD(SUB(wrong, right), NUMBER(1)), NUMBER(0));
}

static stk_val kl_divergence(work *w)
{
    stk_val t = stk_g_clip(w->g, w->t, EPSILON, 1), p = stk_g_clip(w->g, w->p, EPSILON, 1);
    return SUM(MUL(t, LOG(DIV(t, p))));
}

static stk_val poisson(work *w)
{
    return MEAN(SUB(w->p, MUL(w->t, LOG(ADD(w->p, NUMBER(EPSILON))))));
}

static stk_val cosine_similarity(work *w)
{
    stk_val p = stk_g_unit_norm(w->g, w->p, 1, &LAST, 1e-6),
            t = stk_g_unit_norm(w->g, w->t, 1, &LAST, 1e-6);
    return stk_g_neg(w->g, SUM(MUL(t, p)));
}

/* Here t holds the numbers of the classes. */
static stk_val sparse_categorical_crossentropy(work *w)
{
    stk_val logits = w->logits ? w->logits : LOG(kept_inside(w, w->p));
    return stk_g_sparse_softmax_cross_entropy(w->g, logits, w->t);
}

static stk_val (*const formulas[STK_LOSS_COUNT])(work *w) = {
#define STK_LOSS(NAME, name, keras_class, aliases, defaults, doc) [STK_LOSS_##NAME] = name,
#include "stoker/losses.def"
};

/* ---- what is compared with what ------------------------------------------------------------------------------------ */

static bool is_sparse(const stk_loss *o)
{
    return o->kind == STK_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY;
}

/* The op whose operand a crossentropy would rather have. */
static int maker_of(const stk_loss *o)
{
    switch (o->kind) {
    case STK_LOSS_CATEGORICAL_CROSSENTROPY:
    case STK_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY: return STK_OP_SOFTMAX;
    case STK_LOSS_BINARY_CROSSENTROPY:
    case STK_LOSS_BINARY_FOCAL_CROSSENTROPY: return STK_OP_SIGMOID;
    default: return -1;
    }
}

/* Looks for the softmax or sigmoid that made p, also behind a change of type (half precision models). Like Keras this is
 * done even when from_logits is set: probabilities are never taken for logits by mistake. */
static stk_val logits_of(const stk_graph *g, const stk_loss *o, stk_val p)
{
    const stk_node *n = stk_node_of(g, p);
    int maker = maker_of(o);
    if (maker < 0) return 0;
    while (n->op == STK_OP_CAST && stk_dtype_is_float(stk_type_of(g, n->in[0])->dtype))
        n = stk_node_of(g, n->in[0]);
    return n->op == maker ? n->in[0] : o->from_logits ? p : 0;
}

static bool fits(stk_graph *g, const stk_loss *o, stk_val t, stk_val p)
{
    const stk_type *a = stk_type_of(g, t), *b = stk_type_of(g, p);
    const char *name = kinds[o->kind].name;
    if (is_sparse(o)) {
        bool same = a->shape.rank + 1 == b->shape.rank;
        for (int32_t i = 0; same && i < a->shape.rank; i++)
            same = a->shape.dim[i] == b->shape.dim[i];
        if (!same)
            stk_g_fail(
                g, STK_ERR_SHAPE,
                "loss %s: labels are %s, predictions %s; one class number is needed for each "
                "row of predictions%s",
                name, STK_TYPE_TEXT(a), STK_TYPE_TEXT(b),
                stk_shape_equal(&a->shape, &b->shape)
                    ? ". For labels with one column per class use categorical_crossentropy"
                    : "");
        return same;
    }
    bool same = a->shape.rank == b->shape.rank && b->shape.rank > 0;
    for (int32_t i = 0; same && i < a->shape.rank; i++)
        same = a->shape.dim[i] == b->shape.dim[i] || a->shape.dim[i] == 1 || b->shape.dim[i] == 1;
    if (!same)
        stk_g_fail(g, STK_ERR_SHAPE,
                   "loss %s: true values are %s, predictions %s; their shapes must agree%s", name,
                   STK_TYPE_TEXT(a), STK_TYPE_TEXT(b),
                   maker_of(o) == STK_OP_SOFTMAX && a->shape.rank < b->shape.rank
                       ? ". For class numbers use sparse_categorical_crossentropy"
                       : "");
    return same;
}

/* Also gives which values count: 0 = all. */
static stk_val values_of(stk_graph *g, const stk_loss *o, stk_val y_true, stk_val y_pred,
                         stk_val *counts)
{
    work w = {.g = g, .o = o};
    *counts = 0;
    if (!stk_graph_ok(g)) return 0;
    if (!o || o->kind < 0 || o->kind >= STK_LOSS_COUNT || !stk_val_ok(g, y_true) ||
        !stk_val_ok(g, y_pred))
        return stk_g_fail(g, STK_ERR_ARGUMENT,
                          "loss: true values, predictions and the loss must be given");
    w.p = stk_g_cast(g, y_pred, STK_F32);
    if (is_sparse(o)) {
        w.t = stk_class_numbers(g, y_true, y_pred);
    } else {
        w.t = stk_g_cast(g, y_true, STK_F32);
        stk_same_rank(g, &w.t, &w.p);
    }
    if (!stk_graph_ok(g) || !fits(g, o, w.t, w.p)) return 0;
    stk_val logits = logits_of(g, o, w.p);
    if (logits) w.logits = stk_g_cast(g, logits, STK_F32);
    if (!is_sparse(o) || o->ignore_class == INT64_MIN) return formulas[o->kind](&w);
    stk_dtype type = stk_g_dtype(g, w.t);
    *counts = stk_g_ne(g, w.t, stk_g_scalar(g, type, (double)o->ignore_class));
    w.t = stk_g_select(g, *counts, w.t, stk_g_scalar(g, type, 0));
    return stk_g_select(g, *counts, formulas[o->kind](&w), stk_g_scalar(g, STK_F32, 0));
}

stk_val stk_g_loss_values(stk_graph *g, const stk_loss *loss, stk_val y_true, stk_val y_pred)
{
    stk_val counts;
    return values_of(g, loss, y_true, y_pred, &counts);
}

/* ---- weights and the mean --------------------------------------------------------------------------------------------- */

static bool is_mean(const stk_loss *o)
{
    return o->reduction == STK_REDUCTION_SUM_OVER_BATCH_SIZE || o->reduction == STK_REDUCTION_MEAN;
}

/* Each value that counts stands for those that do not as well: the mean is over the ones that count. */
static stk_val mask_weights(stk_graph *g, const stk_loss *o, stk_val mask)
{
    stk_val on = stk_g_cast(g, mask, STK_F32);
    if (!is_mean(o)) return on;
    double total = (double)stk_shape_count(&stk_type_of(g, mask)->shape);
    stk_val sum = stk_g_sum_all(g, on), zero = stk_g_scalar(g, STK_F32, 0);
    stk_val each = stk_g_select(g, stk_g_gt(g, sum, zero),
                                stk_g_div(g, stk_g_scalar(g, STK_F32, total), sum), zero);
    return stk_g_mul(g, on, each);
}

stk_val stk_g_loss(stk_graph *g, const stk_loss *loss, stk_val y_true, stk_val y_pred,
                   stk_val weights, stk_val mask)
{
    stk_val counts, factor = 0;
    stk_val values = values_of(g, loss, y_true, y_pred, &counts);
    if (!values) return 0;
    if (mask) mask = stk_weights_like(g, mask, values);
    if (counts) mask = mask ? stk_g_and(g, mask, counts) : counts;
    if (mask) {
        if (!stk_graph_ok(g)) return 0;
        factor = mask_weights(g, loss, mask);
    }
    if (weights) {
        weights = stk_g_cast(g, stk_weights_like(g, weights, values), STK_F32);
        factor = factor ? stk_g_mul(g, factor, weights) : weights;
    }
    if (factor) values = stk_g_mul(g, values, factor);
    if (loss->reduction == STK_REDUCTION_SUM) return stk_g_sum_all(g, values);
    if (is_mean(loss) || !factor) return stk_g_mean_all(g, values);
    stk_val sum = stk_g_sum_all(g, factor), zero = stk_g_scalar(g, STK_F32, 0);
    return stk_g_select(g, stk_g_ne(g, sum, zero), stk_g_div(g, stk_g_sum_all(g, values), sum),
                        zero);
}

/* ---- labels, on the host ------------------------------------------------------------------------------------------------- */

static bool is_class(const stk_loss *loss, int64_t classes, double label)
{
    bool ignored = loss->ignore_class != INT64_MIN && label == (double)loss->ignore_class;
    return (label >= 0 && label < (double)classes && label == floor(label)) || ignored;
}

/* The usual dtypes of labels, one behind the other: each batch of a dataset comes by here. */
#define ALL(type, is_good)                                                                         \
    do {                                                                                           \
        bool good = true;                                                                          \
        for (int64_t i = 0; i < count; i++) {                                                      \
            type label = ((const type *)labels->data)[i];                                          \
            good &= (is_good);                                                                     \
        }                                                                                          \
        return good;                                                                               \
    } while (0)
#define IS_INSIDE (label == ignored || (uint64_t)(int64_t)label < (uint64_t)classes)

static bool are_plain_classes(const stk_loss *loss, int64_t classes, const stk_tensor *labels)
{
    int64_t ignored = loss->ignore_class == INT64_MIN ? 0 : loss->ignore_class; /* 0 is a class */
    int64_t count = stk_tensor_count(labels);
    switch (classes > 0 && stk_tensor_is_dense(labels) ? labels->dtype : STK_STRING) {
    case STK_I32: ALL(int32_t, IS_INSIDE);
    case STK_I64: ALL(int64_t, IS_INSIDE);
    case STK_U8: ALL(uint8_t, IS_INSIDE);
    case STK_F32: ALL(float, is_class(loss, classes, (double)label));
    default: return false;
    }
}

stk_status stk_loss_check_labels(const stk_loss *loss, int64_t classes, const stk_tensor *labels,
                                 stk_error *err)
{
    if (!loss || !labels)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_loss_check_labels: loss and labels must be given");
    if (!is_sparse(loss) || are_plain_classes(loss, classes, labels)) return STK_OK;
    for (int64_t i = 0; i < stk_tensor_count(labels); i++) {
        double label = stk_tensor_at(labels, i);
        if (is_class(loss, classes, label)) continue;
        return stk_fail(
            err, STK_ERR_RANGE,
            "loss %s: label %lld is %.12g, but the model has %lld outputs, for classes 0 to "
            "%lld; give the last layer more units, or correct the labels",
            kinds[loss->kind].name, (long long)i, label, (long long)classes,
            (long long)classes - 1);
    }
    return STK_OK;
}
