/* Einsum: sums of products named by an equation, lowered to diagonals, transposes, reshapes, matrix products and
 * sums. Operands are taken pairwise from left to right.
 *
 * A label is a number: a letter is 0..51, axis k of an ellipsis (counted from its end) is 52 + k. A set of labels is
 * a bit mask. */
#include "graph/ir/op.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LETTERS = 52, LABELS = LETTERS + STK_MAX_RANK, MOST_OPERANDS = 32, MOST_TEXT = 200 };

typedef struct factor {
    stk_val v;
    int32_t rank;
    /* of each axis; two factors' worth while they are being joined */
    int8_t label[2 * STK_MAX_RANK];
} factor;

typedef struct einsum {
    stk_graph *g;
    const char *text;
    int32_t operands;
    factor in[MOST_OPERANDS], out;
    int64_t size[LABELS]; /* -1: not seen */
    int32_t times[LABELS];
    int32_t dots; /* axes that the widest ellipsis stands for */
} einsum;

/* Records a mistake and shows where in the equation: einsum "ij,jk->i[q]", character 9: ... */
static bool bad(einsum *e, int64_t at, const char *format, ...) STK_PRINTF(3, 4);
static bool bad(einsum *e, int64_t at, const char *format, ...)
{
    char text[512];
    int64_t length = (int64_t)strlen(e->text), first = at > 80 ? at - 80 : 0;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    stk_g_fail(e->g, STK_ERR_ARGUMENT, "einsum \"%s%.*s[%.*s]%.80s\", character %lld: %s",
               first ? "..." : "", (int)(at - first), e->text + first, at < length, e->text + at,
               at < length ? e->text + at + 1 : "", (long long)at + 1, text);
    return false;
}

static int32_t label_of(char c) { return c >= 'a' ? 26 + c - 'a' : c - 'A'; }
static char letter_of(int32_t label)
{
    return (char)(label >= 26 ? 'a' + label - 26 : 'A' + label);
}
static uint64_t bit(int32_t label) { return UINT64_C(1) << label; }

static uint64_t labels_of(const factor *f)
{
    uint64_t set = 0;
    for (int32_t i = 0; i < f->rank; i++) set |= bit(f->label[i]);
    return set;
}

static int32_t axis_of(const factor *f, int32_t label)
{
    for (int32_t i = 0; i < f->rank; i++)
        if (f->label[i] == label) return i;
    return -1;
}

/* ---- reading the equation ------------------------------------------------------------------------------ */

/* Reads one term from *at up to a comma, an arrow or the end: its letters, and where its ellipsis stands
 * (-1: none). */
static bool read_term(einsum *e, int64_t *at, factor *f, int32_t *dots_at)
{
    int64_t i = *at;
    f->rank = 0;
    *dots_at = -1;
    for (; e->text[i] && e->text[i] != ',' && e->text[i] != '-'; i++) {
        char c = e->text[i];
        if (c == ' ') continue;
        if (c == '.') {
            if (strncmp(e->text + i, "...", 3)) return bad(e, i, "an ellipsis is three dots");
            if (*dots_at >= 0) return bad(e, i, "one ellipsis is enough for a term");
            *dots_at = f->rank;
            i += 2;
            continue;
        }
        if (!isalpha((unsigned char)c))
            return bad(e, i,
                       "axes are named by letters a-z, A-Z; terms are parted by ',' and '->'");
        if (f->rank == STK_MAX_RANK)
            return bad(e, i, "more than %d axes in one term", STK_MAX_RANK);
        f->label[f->rank++] = (int8_t)label_of(c);
    }
    *at = i;
    return true;
}

/* Puts `count` axes in place of the ellipsis, numbered from its end. */
static void expand_dots(factor *f, int32_t at, int32_t count)
{
    memmove(f->label + at + count, f->label + at, (size_t)(f->rank - at));
    for (int32_t k = 0; k < count; k++) f->label[at + k] = (int8_t)(LETTERS + count - 1 - k);
    f->rank += count;
}

/* The size of each label; equal for letters, broadcasting for the axes of an ellipsis. */
static bool note_sizes(einsum *e, int32_t operand, int64_t begin)
{
    const factor *f = &e->in[operand];
    const stk_type *t = stk_type_of(e->g, f->v);
    for (int32_t i = 0; i < f->rank; i++) {
        int32_t label = f->label[i];
        int64_t have = t->shape.dim[i], *size = &e->size[label];
        e->times[label]++;
        if (*size < 0 || (label >= LETTERS && *size == 1)) *size = have;
        if (*size == have || (label >= LETTERS && have == 1)) continue;
        if (label >= LETTERS)
            return bad(
                e, begin,
                "operand %d is %s: axis %d, under the ellipsis, does not broadcast with %lld",
                operand, STK_TYPE_TEXT(t), i, (long long)*size);
        return bad(e, begin,
                   "operand %d is %s: its axis %d, '%c', has size %lld, but '%c' was %lld before",
                   operand, STK_TYPE_TEXT(t), i, letter_of(label), (long long)have,
                   letter_of(label), (long long)*size);
    }
    return true;
}

static bool read_operand(einsum *e, int32_t k, int64_t *at)
{
    factor *f = &e->in[k];
    int64_t begin = *at;
    int32_t dots_at, rank = stk_g_rank(e->g, f->v);
    if (!read_term(e, at, f, &dots_at)) return false;
    if (dots_at < 0 ? f->rank != rank : f->rank > rank)
        return bad(e, begin, "operand %d is %s, but its term names %d axes", k,
                   STK_TYPE_TEXT(stk_type_of(e->g, f->v)), f->rank);
    if (dots_at >= 0) {
        int32_t count = rank - f->rank;
        if (count > e->dots) e->dots = count;
        expand_dots(f, dots_at, count);
    }
    return note_sizes(e, k, begin);
}

/* Without an arrow: the ellipsis, then the letters that occur once, in alphabetical order (capitals first). */
static void implied_output(einsum *e)
{
    for (int32_t l = 0; l < LETTERS; l++)
        if (e->times[l] == 1 && e->out.rank < STK_MAX_RANK) e->out.label[e->out.rank++] = (int8_t)l;
    expand_dots(&e->out, 0, e->dots);
}

static bool read_output(einsum *e, int64_t at)
{
    int64_t begin = at;
    int32_t dots_at;
    if (!read_term(e, &at, &e->out, &dots_at)) return false;
    if (e->text[at]) return bad(e, at, "the result is one term");
    for (int32_t i = 0; i < e->out.rank; i++) {
        int32_t label = e->out.label[i];
        int64_t where = (int64_t)(strchr(e->text + begin, letter_of(label)) - e->text);
        if (e->size[label] < 0) return bad(e, where, "'%c' is in no operand", letter_of(label));
        if (axis_of(&e->out, label) != i)
            return bad(e, where, "'%c' stands twice in the result", letter_of(label));
    }
    if (dots_at >= 0) expand_dots(&e->out, dots_at, e->dots);
    if (dots_at < 0 && e->dots)
        return bad(e, begin,
                   "the operands have an ellipsis of %d axes; write ... in the result too",
                   e->dots);
    return true;
}

static bool read_equation(einsum *e)
{
    int64_t at = 0;
    for (int32_t k = 0;; k++) {
        if (k == e->operands)
            return bad(e, at - 1, "a term more than there are operands (%d)", e->operands);
        if (!read_operand(e, k, &at)) return false;
        if (e->text[at] == ',') {
            at++;
            continue;
        }
        if (k + 1 < e->operands)
            return bad(e, at, "%d terms for %d operands; separate them by ','", k + 1, e->operands);
        break;
    }
    if (!e->text[at]) {
        implied_output(e);
    } else {
        if (e->text[at + 1] != '>') return bad(e, at, "the arrow is '->'");
        if (!read_output(e, at + 2)) return false;
    }
    if (e->out.rank > STK_MAX_RANK)
        return bad(e, at, "the result has %d axes; at most %d", e->out.rank, STK_MAX_RANK);
    return true;
}

/* ---- one factor --------------------------------------------------------------------------------------------- */

/* Axes in the order of `label`. */
static void arrange(stk_graph *g, factor *f, const int8_t *label)
{
    int32_t perm[STK_MAX_RANK];
    bool same = true;
    for (int32_t i = 0; i < f->rank; i++) {
        perm[i] = axis_of(f, label[i]);
        same &= perm[i] == i;
    }
    if (same) return;
    f->v = stk_g_transpose(g, f->v, perm);
    memcpy(f->label, label, (size_t)f->rank);
}

/* A label twice in one factor means its diagonal: both axes go to the end as one, of which every (n+1)-th element
 * is taken. */
static void take_diagonals(stk_graph *g, factor *f)
{
    for (int32_t i = 0; i < f->rank; i++) {
        int32_t other = -1, perm[STK_MAX_RANK], n = 0;
        for (int32_t j = i + 1; j < f->rank && other < 0; j++)
            if (f->label[j] == f->label[i]) other = j;
        if (other < 0) continue;
        int8_t label = f->label[i], rest[STK_MAX_RANK] = {0};
        for (int32_t j = 0; j < f->rank; j++)
            if (j != i && j != other) {
                rest[n] = f->label[j];
                perm[n++] = j;
            }
        perm[n] = i;
        perm[n + 1] = other;
        f->v = stk_g_diag_part(g, stk_g_transpose(g, f->v, perm));
        memcpy(f->label, rest, (size_t)n);
        f->label[n] = label;
        f->rank = n + 1;
        i = -1; /* from the start again: the axes have moved */
    }
}

/* Sums over the labels outside `keep`. */
static void sum_out(stk_graph *g, factor *f, uint64_t keep)
{
    int32_t axes[STK_MAX_RANK], n = 0, left = 0;
    for (int32_t i = 0; i < f->rank; i++)
        if (!(keep & bit(f->label[i]))) axes[n++] = i;
    if (!n) return;
    f->v = stk_g_sum(g, f->v, n, axes, false);
    for (int32_t i = 0; i < f->rank; i++)
        if (keep & bit(f->label[i])) f->label[left++] = f->label[i];
    f->rank = left;
}

/* Ellipsis axes of size 1 that broadcast against the other factor are left out: that factor has them. */
static void drop_ones(stk_graph *g, factor *f, const factor *other)
{
    for (int32_t i = f->rank - 1; i >= 0; i--) {
        int32_t at = f->label[i] >= LETTERS ? axis_of(other, f->label[i]) : -1;
        if (at < 0 || stk_g_dim(g, f->v, i) != 1 || stk_g_dim(g, other->v, at) == 1) continue;
        f->v = stk_g_squeeze(g, f->v, i);
        memmove(f->label + i, f->label + i + 1, (size_t)(f->rank - i - 1));
        f->rank--;
    }
}

/* ---- two factors --------------------------------------------------------------------------------------------- */

typedef struct group {
    int8_t label[STK_MAX_RANK];
    int32_t n;
    int64_t count; /* elements */
} group;

static group pick(stk_graph *g, const factor *f, uint64_t set)
{
    group p = {.count = 1};
    for (int32_t i = 0; i < f->rank; i++)
        if (set & bit(f->label[i])) {
            p.label[p.n++] = f->label[i];
            p.count *= stk_g_dim(g, f->v, i);
        }
    return p;
}

static bool is_order(const factor *f, const group *a, const group *b, const group *c)
{
    return !memcmp(f->label, a->label, (size_t)a->n) &&
           !memcmp(f->label + a->n, b->label, (size_t)b->n) &&
           !memcmp(f->label + a->n + b->n, c->label, (size_t)c->n);
}

/* f as [batch, rows, columns], or as [batch, columns, rows] when that is how it lies (*turned). */
static stk_val as_matrix(stk_graph *g, factor *f, const group *batch, const group *rows,
                         const group *columns, bool *turned)
{
    *turned = !is_order(f, batch, rows, columns) && is_order(f, batch, columns, rows);
    if (!*turned) {
        int8_t order[3 * STK_MAX_RANK];
        memcpy(order, batch->label, (size_t)batch->n);
        memcpy(order + batch->n, rows->label, (size_t)rows->n);
        memcpy(order + batch->n + rows->n, columns->label, (size_t)columns->n);
        arrange(g, f, order);
    }
    int64_t dim[] = {batch->count, rows->count, columns->count};
    if (*turned) {
        dim[1] = columns->count;
        dim[2] = rows->count;
    }
    return batch->n ? stk_g_reshape(g, f->v, 3, dim) : stk_g_reshape(g, f->v, 2, dim + 1);
}

/* No matrix product for integers: [B, L, S, 1] * [B, 1, S, R] summed over S. */
static stk_val multiply_and_sum(stk_graph *g, stk_val a, stk_val b, const int64_t n[4])
{
    a = stk_g_reshape(g, a, 4, (int64_t[]){n[0], n[1], n[2], 1});
    b = stk_g_reshape(g, b, 4, (int64_t[]){n[0], 1, n[2], n[3]});
    return stk_g_sum(g, stk_g_mul(g, a, b), 1, (int32_t[]){2}, false);
}

static stk_val product(stk_graph *g, factor *a, factor *b, const group *batch, const group *left,
                       const group *sum, const group *right)
{
    bool ta, tb;
    if (sum->n == 0 && left->n == 0 && right->n == 0) {
        arrange(g, b, a->label);
        return stk_g_mul(g, a->v, b->v);
    }
    stk_val x = as_matrix(g, a, batch, left, sum, &ta), y = as_matrix(g, b, batch, sum, right, &tb);
    if (!stk_graph_ok(g)) return 0;
    if (sum->n && stk_dtype_is_float(stk_g_dtype(g, x))) return stk_g_matmul_t(g, x, y, ta, tb);
    const int32_t turn[] = {0, 2, 1};
    if (ta) x = stk_g_transpose(g, x, batch->n ? turn : NULL);
    if (tb) y = stk_g_transpose(g, y, batch->n ? turn : NULL);
    int64_t n[] = {batch->count, left->count, sum->count, right->count};
    if (sum->n) return multiply_and_sum(g, x, y, n);
    x = stk_g_reshape(g, x, 3, (int64_t[]){n[0], n[1], 1});
    return stk_g_mul(g, x, stk_g_reshape(g, y, 3, (int64_t[]){n[0], 1, n[3]}));
}

/* Does the result name an axis of the second group before all of the first? Then the factors change places. */
static bool comes_first(const einsum *e, const group *second, const group *first)
{
    if (!second->n || !first->n) return false;
    return axis_of(&e->out, second->label[0]) < axis_of(&e->out, first->label[0]);
}

/* a becomes a times b, with the labels of `keep`. */
static bool join(einsum *e, factor *a, factor *b, uint64_t keep)
{
    stk_graph *g = e->g;
    drop_ones(g, a, b);
    drop_ones(g, b, a);
    sum_out(g, a, keep | labels_of(b));
    sum_out(g, b, keep | labels_of(a));
    if (!stk_graph_ok(g)) return false;
    uint64_t in_a = labels_of(a), in_b = labels_of(b);
    group batch = pick(g, a, in_a & in_b & keep), sum = pick(g, a, in_a & in_b & ~keep);
    group left = pick(g, a, in_a & ~in_b), right = pick(g, b, in_b & ~in_a);
    if (comes_first(e, &right, &left)) {
        factor swap = *a;
        *a = *b;
        *b = swap;
        group other = left;
        left = right;
        right = other;
    }
    factor y = {.rank = 0};
    stk_shape s = {0};
    const group *parts[] = {&batch, &left, &right};
    if (batch.n + left.n + right.n > STK_MAX_RANK)
        return bad(e, 0, "a product on the way has %d axes; at most %d", batch.n + left.n + right.n,
                   STK_MAX_RANK);
    for (int p = 0; p < 3; p++)
        for (int32_t i = 0; i < parts[p]->n; i++) {
            int8_t label = parts[p]->label[i];
            int32_t at = axis_of(a, label);
            s.dim[s.rank++] =
                at >= 0 ? stk_g_dim(g, a->v, at) : stk_g_dim(g, b->v, axis_of(b, label));
            y.label[y.rank++] = label;
        }
    y.v = product(g, a, b, &batch, &left, &sum, &right);
    y.v = stk_g_reshape(g, y.v, s.rank, s.dim);
    *a = y;
    return stk_graph_ok(g);
}

/* ---- the builder ---------------------------------------------------------------------------------------------- */

static bool check_operands(einsum *e, int32_t n, const stk_val *x)
{
    if (n < 1 || n > MOST_OPERANDS || !x) {
        stk_g_fail(e->g, STK_ERR_ARGUMENT, "einsum \"%.80s\": %d operands; 1 to %d", e->text, n,
                   MOST_OPERANDS);
        return false;
    }
    if (strlen(e->text) > MOST_TEXT) {
        stk_g_fail(e->g, STK_ERR_ARGUMENT, "einsum \"%.80s...\": the equation is longer than %d",
                   e->text, MOST_TEXT);
        return false;
    }
    for (int32_t i = 0; i < n; i++) {
        if (!stk_val_ok(e->g, x[i])) {
            stk_g_fail(e->g, STK_ERR_ARGUMENT, "einsum \"%s\": operand %d is 0 (none)", e->text, i);
            return false;
        }
        if (stk_g_dtype(e->g, x[i]) != stk_g_dtype(e->g, x[0])) {
            stk_g_fail(e->g, STK_ERR_DTYPE,
                       "einsum \"%s\": operand %d is %s, operand 0 is %s; cast one of them",
                       e->text, i, STK_TYPE_TEXT(stk_type_of(e->g, x[i])),
                       STK_TYPE_TEXT(stk_type_of(e->g, x[0])));
            return false;
        }
        e->in[i] = (factor){.v = x[i]};
    }
    return true;
}

/* An ellipsis axis that is 1 in every factor left has size 1 in the result too, so only its label may be missing. */
static stk_val finish(einsum *e, factor *y)
{
    stk_graph *g = e->g;
    sum_out(g, y, labels_of(&e->out));
    if (!stk_graph_ok(g)) return 0;
    arrange(g, y, e->out.label);
    return stk_graph_ok(g) ? y->v : 0;
}

stk_val stk_g_einsum(stk_graph *g, const char *equation, int32_t n, const stk_val *x)
{
    if (!stk_graph_ok(g)) return 0;
    if (!equation) return stk_g_fail(g, STK_ERR_ARGUMENT, "einsum: the equation is NULL");
    einsum e = {.g = g, .text = equation, .operands = n};
    for (int32_t l = 0; l < LABELS; l++) e.size[l] = -1;
    if (!check_operands(&e, n, x) || !read_equation(&e)) return 0;
    uint64_t later[MOST_OPERANDS + 1]; /* labels of the result and of the operands from k on */
    later[n] = labels_of(&e.out);
    for (int32_t k = n - 1; k >= 0; k--) {
        take_diagonals(g, &e.in[k]);
        if (!stk_graph_ok(g)) return 0;
        later[k] = later[k + 1] | labels_of(&e.in[k]);
    }
    factor y = e.in[0];
    for (int32_t k = 1; k < n; k++)
        if (!join(&e, &y, &e.in[k], later[k + 1])) return 0;
    return finish(&e, &y);
}
