/* Expressions on elements. First a walk over the nodes finds the shape of each for this element, and the numbers that
 * reductions give; then the result is made piece by piece, each node working on a few values at a time, so that nothing
 * but the result needs memory. */
#include "data/json/expression.h"

#include "base/dtype.h"
#include "base/tensor.h"

#include <math.h>
#include <string.h>

enum { PIECE = 64 };

typedef struct running {
    const stk_expression *e;
    stk_tensor *const *in;
    int64_t index;
    const stk_tensor *like[STK_X_MOST]; /* whose shape a node has; NULL: a scalar */
    union {
        int64_t whole;
        double real;
    } value[STK_X_MOST]; /* of reductions */
    const char *failure;
} running;

static int64_t floor_divide_by(running *r, int64_t a, int64_t b, int64_t *rest)
{
    *rest = 0;
    if (b == 0) {
        r->failure = "a whole number divided by zero";
        return 0;
    }
    if (b == -1) return (int64_t)(0 - (uint64_t)a);
    int64_t q = a / b;
    *rest = a % b;
    if (*rest && (*rest < 0) != (b < 0)) {
        q--;
        *rest += b;
    }
    return q;
}

/* ---- loading ----------------------------------------------------------------------------------------- */
#define COPY(type)                                                                                 \
    for (int64_t i = 0; i < n; i++) out[i] = ((const type *)t->data)[start + i]

static void load_whole(const stk_tensor *t, int64_t start, int64_t n, int64_t *out)
{
    bool dense = stk_tensor_is_dense(t);
    if (dense && t->dtype == STK_I64)
        COPY(int64_t);
    else if (dense && t->dtype == STK_I32)
        COPY(int32_t);
    else if (dense && t->dtype == STK_U8)
        COPY(uint8_t);
    else
        for (int64_t i = 0; i < n; i++)
            out[i] = stk_load_i64(t->dtype, stk_tensor_address(t, start + i));
}

static void load_real(const stk_tensor *t, int64_t start, int64_t n, double *out)
{
    if (t->dtype == STK_F32 && stk_tensor_is_dense(t))
        COPY(float);
    else
        for (int64_t i = 0; i < n; i++) out[i] = stk_tensor_at(t, start + i);
}

/* Casting and storing are the same question: which int64 is nearest to what a double says. */
static int64_t to_whole(double x)
{
    if (!(x > -0x1p63)) return x != x ? 0 : INT64_MIN;
    return x < 0x1p63 ? (int64_t)x : INT64_MAX;
}

/* ---- pieces -------------------------------------------------------------------------------------------- */
static void wholes(running *r, int32_t id, int64_t start, int64_t n, int64_t *out);
static void reals(running *r, int32_t id, int64_t start, int64_t n, double *out);

static const stk_string *text_of(running *r, int32_t id)
{
    const stk_x_node *x = &r->e->nodes[id];
    return x->op == STK_X_FIELD ? r->in[x->field]->data : &x->text;
}

static int64_t texts_equal(running *r, const stk_x_node *x)
{
    const stk_string *a = text_of(r, x->child[0]), *b = text_of(r, x->child[1]);
    bool same = a->size == b->size && memcmp(a->data, b->data, (size_t)a->size) == 0;
    return same == (x->op == STK_X_EQUAL);
}

#define floor_divide(a, b) floor_divide_by(r, a, b, &rest)
#define floor_modulo(a, b) (floor_divide_by(r, a, b, &rest), rest)

static void binary_wholes(running *r, const stk_x_node *x, int64_t start, int64_t n, int64_t *out)
{
    int64_t left[PIECE], right[PIECE], rest = 0;
    (void)rest;
    wholes(r, x->child[0], start, n, left);
    wholes(r, x->child[1], start, n, right);
    switch (x->op) {
#define STK_X_BINARY(id, token, level, result, whole, real)                                        \
    case STK_X_##id:                                                                               \
        for (int64_t i = 0; i < n; i++) {                                                          \
            int64_t a = left[i], b = right[i];                                                     \
            (void)a, (void)b;                                                                      \
            out[i] = whole;                                                                        \
        }                                                                                          \
        break;
#include "data/json/expression.def"
    default: break;
    }
}

/* Real numbers compared: whole results. */
static void compare_reals(running *r, const stk_x_node *x, int64_t start, int64_t n, int64_t *out)
{
    double left[PIECE], right[PIECE];
    reals(r, x->child[0], start, n, left);
    if (x->children > 1) reals(r, x->child[1], start, n, right);
    for (int64_t i = 0; i < n; i++) {
        double a = left[i], b = x->children > 1 ? right[i] : 0;
        switch (x->op) {
        case STK_X_OR: out[i] = a != 0 || b != 0; break;
        case STK_X_AND: out[i] = a != 0 && b != 0; break;
        case STK_X_EQUAL: out[i] = a == b; break;
        case STK_X_DIFFERENT: out[i] = a != b; break;
        case STK_X_AT_MOST: out[i] = a <= b; break;
        case STK_X_AT_LEAST: out[i] = a >= b; break;
        case STK_X_BELOW: out[i] = a < b; break;
        case STK_X_ABOVE: out[i] = a > b; break;
        default: out[i] = a == 0; break; /* not */
        }
    }
}

static void binary_reals(running *r, const stk_x_node *x, int64_t start, int64_t n, double *out)
{
    double left[PIECE], right[PIECE];
    reals(r, x->child[0], start, n, left);
    reals(r, x->child[1], start, n, right);
    switch (x->op) {
#define STK_X_BINARY(id, token, level, result, whole, real)                                        \
    case STK_X_##id:                                                                               \
        for (int64_t i = 0; i < n; i++) {                                                          \
            double a = left[i], b = right[i];                                                      \
            out[i] = real;                                                                         \
        }                                                                                          \
        break;
#include "data/json/expression.def"
    default: break;
    }
}

static void unary_wholes(running *r, const stk_x_node *x, int64_t start, int64_t n, int64_t *out)
{
    wholes(r, x->child[0], start, n, out);
    switch (x->op) {
#define STK_X_UNARY(id, name, result, whole, real)                                                 \
    case STK_X_##id:                                                                               \
        for (int64_t i = 0; i < n; i++) {                                                          \
            int64_t a = out[i];                                                                    \
            (void)a;                                                                               \
            out[i] = whole;                                                                        \
        }                                                                                          \
        break;
#include "data/json/expression.def"
    default: break;
    }
}

static void unary_reals(running *r, const stk_x_node *x, int64_t start, int64_t n, double *out)
{
    reals(r, x->child[0], start, n, out);
    switch (x->op) {
#define STK_X_UNARY(id, name, result, whole, real)                                                 \
    case STK_X_##id:                                                                               \
        for (int64_t i = 0; i < n; i++) {                                                          \
            double a = out[i];                                                                     \
            out[i] = real;                                                                         \
        }                                                                                          \
        break;
#include "data/json/expression.def"
    default: break;
    }
}

static bool is_real(const running *r, int32_t id)
{
    return r->e->nodes[id].kind == STK_X_REAL_KIND;
}

static void make_wholes(running *r, int32_t id, int64_t start, int64_t n, int64_t *out)
{
    const stk_x_node *x = &r->e->nodes[id];
    int64_t which[PIECE], other[PIECE];
    double real[PIECE];
    switch (x->op) {
    case STK_X_NUMBER: out[0] = x->whole; return;
    case STK_X_INDEX: out[0] = r->index; return;
    case STK_X_FIELD: load_whole(r->in[x->field], start, n, out); return;
    case STK_X_CAST:
        if (is_real(r, x->child[0])) {
            reals(r, x->child[0], start, n, real);
            for (int64_t i = 0; i < n; i++) out[i] = to_whole(real[i]);
        } else {
            wholes(r, x->child[0], start, n, out);
        }
        for (int64_t i = 0; i < n && x->is.dtype == STK_BOOL; i++) out[i] = out[i] != 0;
        return;
    case STK_X_WHERE:
        wholes(r, x->child[0], start, n, which);
        wholes(r, x->child[1], start, n, out);
        wholes(r, x->child[2], start, n, other);
        for (int64_t i = 0; i < n; i++) out[i] = which[i] ? out[i] : other[i];
        return;
    default: break;
    }
    if (stk_x_reduces(x->op) || x->op == STK_X_AT)
        out[0] = r->value[id].whole;
    else if (r->e->nodes[x->child[0]].kind == STK_X_TEXT_KIND)
        out[0] = texts_equal(r, x);
    else if (is_real(r, x->child[0]) || (x->children > 1 && is_real(r, x->child[1])))
        compare_reals(r, x, start, n, out);
    else if (x->children > 1)
        binary_wholes(r, x, start, n, out);
    else
        unary_wholes(r, x, start, n, out);
}

static void make_reals(running *r, int32_t id, int64_t start, int64_t n, double *out)
{
    const stk_x_node *x = &r->e->nodes[id];
    int64_t which[PIECE];
    double other[PIECE];
    switch (x->op) {
    case STK_X_NUMBER: out[0] = x->real; return;
    case STK_X_FIELD: load_real(r->in[x->field], start, n, out); return;
    case STK_X_CAST:
        reals(r, x->child[0], start, n, out);
        for (int64_t i = 0; i < n && x->is.dtype == STK_F32; i++) out[i] = (float)out[i];
        return;
    case STK_X_WHERE:
        wholes(r, x->child[0], start, n, which);
        reals(r, x->child[1], start, n, out);
        reals(r, x->child[2], start, n, other);
        for (int64_t i = 0; i < n; i++) out[i] = which[i] ? out[i] : other[i];
        return;
    default: break;
    }
    if (stk_x_reduces(x->op) || x->op == STK_X_AT)
        out[0] = r->value[id].real;
    else if (x->children > 1)
        binary_reals(r, x, start, n, out);
    else
        unary_reals(r, x, start, n, out);
}

/* Scalars are made once and spread. */
static void wholes(running *r, int32_t id, int64_t start, int64_t n, int64_t *out)
{
    bool scalar = !r->like[id];
    if (is_real(r, id)) { /* asked for its truth */
        double real[PIECE];
        reals(r, id, start, n, real);
        for (int64_t i = 0; i < n; i++) out[i] = real[i] != 0;
        return;
    }
    make_wholes(r, id, scalar ? 0 : start, scalar ? 1 : n, out);
    for (int64_t i = 1; i < n && scalar; i++) out[i] = out[0];
}

static void reals(running *r, int32_t id, int64_t start, int64_t n, double *out)
{
    bool scalar = !r->like[id];
    if (is_real(r, id)) {
        make_reals(r, id, scalar ? 0 : start, scalar ? 1 : n, out);
        for (int64_t i = 1; i < n && scalar; i++) out[i] = out[0];
        return;
    }
    int64_t whole[PIECE];
    wholes(r, id, start, n, whole);
    for (int64_t i = 0; i < n; i++) out[i] = (double)whole[i];
}

/* ---- numbers of whole tensors ------------------------------------------------------------------------------ */
static void reduce_whole(running *r, int32_t id, int32_t child, int64_t count)
{
    int64_t piece[PIECE], sum = 0, all = 1, any = 0, least = INT64_MAX, most = INT64_MIN;
    for (int64_t at = 0; at < count; at += PIECE) {
        int64_t n = stk_min_i64(PIECE, count - at);
        wholes(r, child, at, n, piece);
        for (int64_t i = 0; i < n; i++) {
            sum = (int64_t)((uint64_t)sum + (uint64_t)piece[i]);
            any |= piece[i] != 0;
            all &= piece[i] != 0;
            least = stk_min_i64(least, piece[i]);
            most = stk_max_i64(most, piece[i]);
        }
    }
    switch (r->e->nodes[id].op) {
    case STK_X_SUM: r->value[id].whole = sum; break;
    case STK_X_LEAST: r->value[id].whole = least; break;
    case STK_X_GREATEST: r->value[id].whole = most; break;
    case STK_X_ANY: r->value[id].whole = any; break;
    case STK_X_ALL: r->value[id].whole = all; break;
    default: break;
    }
}

static void reduce_real(running *r, int32_t id, int32_t child, int64_t count)
{
    double piece[PIECE], sum = 0, least = INFINITY, most = -INFINITY;
    for (int64_t at = 0; at < count; at += PIECE) {
        int64_t n = stk_min_i64(PIECE, count - at);
        reals(r, child, at, n, piece);
        for (int64_t i = 0; i < n; i++) {
            sum += piece[i];
            least = fmin(least, piece[i]);
            most = fmax(most, piece[i]);
        }
    }
    switch (r->e->nodes[id].op) {
    case STK_X_SUM: r->value[id].real = sum; break;
    case STK_X_MEAN: r->value[id].real = sum / (double)count; break;
    case STK_X_LEAST: r->value[id].real = least; break;
    case STK_X_GREATEST: r->value[id].real = most; break;
    default: break;
    }
}

static void reduce(running *r, int32_t id)
{
    const stk_x_node *x = &r->e->nodes[id];
    int32_t child = x->child[0];
    const stk_tensor *like = r->like[child];
    int64_t count = like ? stk_tensor_count(like) : 1;
    bool text = r->e->nodes[child].kind == STK_X_TEXT_KIND;
    if (x->op == STK_X_LEN || x->op == STK_X_SIZE) {
        if (x->op == STK_X_LEN && text)
            r->value[id].whole = text_of(r, child)->size;
        else if (x->op == STK_X_LEN && !like)
            r->failure = "len() of a scalar";
        else
            r->value[id].whole = x->op == STK_X_LEN ? like->shape[0] : count;
        return;
    }
    if (count == 0 && (x->op == STK_X_LEAST || x->op == STK_X_GREATEST))
        r->failure = "the least or greatest of no values";
    else if (x->kind == STK_X_REAL_KIND)
        reduce_real(r, id, child, count);
    else
        reduce_whole(r, id, child, count);
}

static void pick(running *r, int32_t id)
{
    const stk_x_node *x = &r->e->nodes[id];
    const stk_tensor *like = r->like[x->child[0]];
    int64_t at = 0, size = like && like->rank == 1 ? like->shape[0] : -1;
    wholes(r, x->child[1], 0, 1, &at);
    if (at < 0) at += size;
    if (at < 0 || at >= size)
        r->failure = "[...] outside of the vector";
    else if (x->kind == STK_X_REAL_KIND)
        reals(r, x->child[0], at, 1, &r->value[id].real);
    else
        wholes(r, x->child[0], at, 1, &r->value[id].whole);
}

/* ---- shapes, then values -------------------------------------------------------------------------------------- */
static void find_shapes(running *r)
{
    for (int32_t id = 0; id < r->e->count && !r->failure; id++) {
        const stk_x_node *x = &r->e->nodes[id];
        r->like[id] = NULL;
        if (x->op == STK_X_FIELD) {
            const stk_tensor *t = r->in[x->field];
            if (t->dtype != x->is.dtype) r->failure = "a field of another dtype than announced";
            r->like[id] = t->rank ? t : NULL;
            continue;
        }
        if (stk_x_reduces(x->op)) {
            reduce(r, id);
            continue;
        }
        if (x->op == STK_X_AT) {
            pick(r, id);
            continue;
        }
        for (int i = 0; i < x->children; i++) {
            const stk_tensor *a = r->like[id], *b = r->like[x->child[i]];
            bool same = !a || !b || a->rank == b->rank;
            for (int k = 0; a && b && same && k < a->rank; k++) same = a->shape[k] == b->shape[k];
            if (!same) r->failure = "tensors of different shapes";
            if (b && r->e->nodes[x->child[i]].kind == STK_X_TEXT_KIND)
                r->failure = "a tensor of texts; only single texts are compared";
            if (!a) r->like[id] = b;
        }
    }
}

static void store(running *r, stk_tensor *to)
{
    int32_t id = r->e->count - 1;
    int64_t count = stk_tensor_count(to);
    for (int64_t at = 0; at < count && !r->failure; at += PIECE) {
        int64_t n = stk_min_i64(PIECE, count - at), whole[PIECE];
        double real[PIECE];
        bool dense = stk_tensor_is_dense(to);
        if (is_real(r, id)) {
            reals(r, id, at, n, real);
            if (dense && to->dtype == STK_F32) {
                for (int64_t i = 0; i < n; i++) ((float *)to->data)[at + i] = (float)real[i];
                continue;
            }
            for (int64_t i = 0; i < n; i++)
                stk_store_f64(to->dtype, stk_tensor_address(to, at + i), real[i]);
            continue;
        }
        wholes(r, id, at, n, whole);
        for (int64_t i = 0; i < n; i++)
            stk_store_i64(to->dtype, stk_tensor_address(to, at + i), whole[i]);
    }
}

stk_status stk_expression_run(const stk_expression *e, stk_tensor *const *in, int64_t index,
                              stk_tensor **out, stk_error *err)
{
    running r = {.e = e, .in = in, .index = index};
    const stk_x_node *last = &e->nodes[e->count - 1];
    if (last->op == STK_X_FIELD) { /* as it is */
        if (*out) return stk_tensor_copy(*out, in[last->field], err);
        *out = stk_tensor_retain(in[last->field]);
        return STK_OK;
    }
    find_shapes(&r);
    const stk_tensor *like = r.like[e->count - 1];
    stk_tensor *made = NULL;
    stk_status status = STK_OK;
    if (!r.failure && *out &&
        ((*out)->rank != (like ? like->rank : 0) ||
         stk_tensor_count(*out) != (like ? stk_tensor_count(like) : 1)))
        r.failure = "a result of another shape than announced";
    if (!r.failure && !*out)
        status = stk_tensor_new(last->is.dtype, like ? like->rank : 0, like ? like->shape : NULL,
                                &made, err);
    if (status == STK_OK && !r.failure) store(&r, *out ? *out : made);
    if (r.failure)
        status = stk_fail(err, STK_ERR_RANGE, "expression \"%.120s\", element %lld: %s", e->text,
                          (long long)index, r.failure);
    if (status != STK_OK)
        stk_tensor_release(made);
    else if (made)
        *out = made;
    return status;
}
