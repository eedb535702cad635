/* Expressions: from text to nodes. Precedence climbing over the levels of expression.def; kinds and shapes are settled on
 * the way, so that what cannot work is refused before the first element. */
#include "data/json/expression.h"

#include "base/dtype.h"
#include "base/spelling.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum result { SAME, REAL, TRUTH, WHOLE } result;

static const struct binary_row {
    stk_x_op op;
    const char *token;
    int level;
    result gives;
} binary_rows[] = {
#define STK_X_BINARY(id, token, level, result, whole, real) {STK_X_##id, token, level, result},
#include "data/json/expression.def"
};

static const struct named_row {
    stk_x_op op;
    const char *name;
    result gives;
} named_rows[] = {
#define STK_X_UNARY(id, name, result, whole, real) {STK_X_##id, name, result},
#define STK_X_REDUCE(id, name, result)             {STK_X_##id, name, result},
#include "data/json/expression.def"
};
enum {
    BINARIES = sizeof binary_rows / sizeof *binary_rows,
    NAMED = sizeof named_rows / sizeof *named_rows
};

typedef struct parser {
    stk_expression *e;
    const stk_schema *in;
    int32_t first;
    const char *at;
    int depth;
    stk_error *err;
    stk_status status; /* of the first failure */
} parser;

/* ---- words ----------------------------------------------------------------------------------------- */
static int32_t wrong(parser *p, const char *format, ...) STK_PRINTF(2, 3);
static int32_t wrong(parser *p, const char *format, ...)
{
    if (p->status != STK_OK) return -1;
    char why[256];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    p->status = stk_fail(p->err, STK_ERR_FORMAT, "expression \"%.120s\", column %d: %s", p->e->text,
                         (int)(p->at - p->e->text) + 1, why);
    return -1;
}

static void skip_space(parser *p)
{
    while (isspace((unsigned char)*p->at)) p->at++;
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* The token is here; words must end where they end. */
static bool take(parser *p, const char *token)
{
    skip_space(p);
    size_t size = strlen(token);
    if (!size || strncmp(p->at, token, size) != 0) return false;
    if (is_word(token[size - 1]) && is_word(p->at[size])) return false;
    p->at += size;
    return true;
}

static bool expect(parser *p, const char *token)
{
    if (take(p, token)) return true;
    wrong(p, "expected \"%s\"", token);
    return false;
}

/* ---- nodes ------------------------------------------------------------------------------------------- */
static stk_x_node *node(parser *p, int32_t i) { return &p->e->nodes[i]; }

static int32_t add(parser *p, stk_x_op op, stk_x_kind kind, int32_t a, int32_t b, int32_t c)
{
    if (p->status != STK_OK) return -1;
    if (p->e->count == STK_X_MOST) return wrong(p, "more than %d operations", STK_X_MOST);
    stk_x_node *n = node(p, p->e->count);
    *n = (stk_x_node){.op = op, .kind = kind, .children = (a >= 0) + (b >= 0) + (c >= 0)};
    for (int i = 0; i < n->children; i++) n->child[i] = (int32_t[]){a, b, c}[i];
    n->is.dtype = kind == STK_X_TEXT_KIND   ? STK_STRING
                  : kind == STK_X_REAL_KIND ? STK_F32
                                            : STK_I64;
    return p->e->count++;
}

/* The shape of two values together: a scalar takes the other's. */
static bool join_shapes(parser *p, stk_field *to, const stk_field *with)
{
    if (with->rank == 0) return true;
    if (to->rank == 0) {
        to->rank = with->rank;
        memcpy(to->shape, with->shape, sizeof to->shape);
        return true;
    }
    if (to->rank < 0 || with->rank < 0) {
        to->rank = -1;
        return true;
    }
    bool fit = to->rank == with->rank;
    for (int32_t i = 0; fit && i < to->rank; i++) {
        if (to->shape[i] < 0) to->shape[i] = with->shape[i];
        fit = with->shape[i] < 0 || to->shape[i] == with->shape[i];
    }
    if (!fit) wrong(p, "tensors of different shapes; only scalars go with all shapes");
    return fit;
}

static int32_t settle(parser *p, int32_t id, result gives)
{
    if (id < 0) return -1;
    stk_x_node *n = node(p, id);
    bool real = false, wide = false;
    n->is.rank = 0;
    int from = n->op == STK_X_WHERE ? 1 : 0;
    for (int i = 0; i < n->children; i++) {
        const stk_x_node *c = node(p, n->child[i]);
        if (c->kind == STK_X_TEXT_KIND)
            return wrong(
                p, "a text here; texts can be compared by == and !=, and len() gives their size");
        if (i >= from) real |= c->kind == STK_X_REAL_KIND;
        if (i >= from) wide |= c->is.dtype == STK_F64;
        if (!stk_x_reduces(n->op) && !join_shapes(p, &n->is, &c->is)) return -1;
    }
    if (gives == REAL || (gives == SAME && real)) n->kind = STK_X_REAL_KIND;
    n->is.dtype = gives == TRUTH                ? STK_BOOL
                  : n->kind == STK_X_WHOLE_KIND ? STK_I64
                  : wide                        ? STK_F64
                                                : STK_F32;
    return id;
}

/* ---- values ------------------------------------------------------------------------------------------- */
static int32_t expression(parser *p, int level);

static void list_names(parser *p, char *list, size_t size)
{
    list[0] = 0;
    for (int32_t i = 0; i < p->in->n; i++) {
        size_t at = strlen(list);
        if (p->in->fields[i].name && *p->in->fields[i].name)
            snprintf(list + at, size - at, " %s", p->in->fields[i].name);
        else if (i >= p->first)
            snprintf(list + at, size - at, " $%d", (int)(i - p->first));
    }
}

static int32_t field(parser *p, int32_t index)
{
    const stk_field *f = &p->in->fields[index];
    if (f->dataset) return wrong(p, "this field is a dataset; flat_map opens it");
    stk_x_kind is = f->dtype == STK_STRING         ? STK_X_TEXT_KIND
                    : stk_dtype_is_float(f->dtype) ? STK_X_REAL_KIND
                                                   : STK_X_WHOLE_KIND;
    int32_t id = add(p, STK_X_FIELD, is, -1, -1, -1);
    if (id < 0) return -1;
    node(p, id)->field = index;
    node(p, id)->is = *f;
    return id;
}

static int32_t named_field(parser *p, const char *name)
{
    for (int32_t i = 0; i < p->in->n; i++)
        if (p->in->fields[i].name && strcmp(p->in->fields[i].name, name) == 0) return field(p, i);
    if (strcmp(name, "index") == 0) return add(p, STK_X_INDEX, STK_X_WHOLE_KIND, -1, -1, -1);
    char list[160];
    list_names(p, list, sizeof list);
    return wrong(p, "there is no field \"%s\"; there are%s", name, list[0] ? list : " none");
}

/* size and len know texts; len wants an axis. */
static int32_t measure(parser *p, stk_x_op op, int32_t a)
{
    int32_t id = add(p, op, STK_X_WHOLE_KIND, a, -1, -1);
    if (id < 0) return -1;
    const stk_x_node *c = node(p, a);
    if (op == STK_X_LEN && c->kind != STK_X_TEXT_KIND && c->is.rank == 0)
        return wrong(p, "len() of a scalar; it takes tensors and texts");
    return id;
}

static int32_t call_min_max(parser *p, stk_x_op reduce, int32_t a)
{
    int32_t b = expression(p, 1);
    stk_x_op op = reduce == STK_X_LEAST ? STK_X_LESSER : STK_X_GREATER;
    return b < 0 ? -1 : settle(p, add(p, op, STK_X_WHOLE_KIND, a, b, -1), SAME);
}

static int32_t cast_to(parser *p, int32_t a, stk_dtype dtype)
{
    if (a >= 0 && node(p, a)->kind == STK_X_TEXT_KIND) return wrong(p, "a text is no number");
    bool real = stk_dtype_is_float(dtype);
    int32_t id = add(p, STK_X_CAST, real ? STK_X_REAL_KIND : STK_X_WHOLE_KIND, a, -1, -1);
    if (id < 0) return -1;
    node(p, id)->is = node(p, a)->is;
    node(p, id)->is.dtype = dtype;
    node(p, id)->is.name = NULL;
    return id;
}

static int32_t no_function(parser *p, const char *name)
{
    const char *names[NAMED + 1] = {"where"};
    char near[128];
    for (int k = 0; k < NAMED; k++) names[k + 1] = named_rows[k].name;
    stk_did_you_mean(name, names, NAMED + 1, near, sizeof near);
    return wrong(p, "there is no function %.40s()%s%s", name, *near ? "." : "", near);
}

/* name( ... ), behind the bracket. */
static int32_t call(parser *p, const char *name)
{
    int32_t a = expression(p, 1), id = -1;
    stk_dtype dtype;
    if (a < 0) return -1;
    if (strcmp(name, "where") == 0) {
        int32_t b = expect(p, ",") ? expression(p, 1) : -1;
        int32_t c = b >= 0 && expect(p, ",") ? expression(p, 1) : -1;
        id = c < 0 ? -1 : settle(p, add(p, STK_X_WHERE, STK_X_WHOLE_KIND, a, b, c), SAME);
    } else if (stk_dtype_parse(name, &dtype) && dtype != STK_STRING) {
        id = cast_to(p, a, dtype);
    } else {
        int k = 0;
        while (k < NAMED && strcmp(named_rows[k].name, name) != 0) k++;
        if (k == NAMED) return no_function(p, name);
        stk_x_op op = named_rows[k].op;
        if ((op == STK_X_LEAST || op == STK_X_GREATEST) && take(p, ","))
            id = call_min_max(p, op, a);
        else if (op == STK_X_LEN || op == STK_X_SIZE)
            id = measure(p, op, a);
        else
            id = settle(p, add(p, op, STK_X_WHOLE_KIND, a, -1, -1), named_rows[k].gives);
    }
    return id >= 0 && expect(p, ")") ? id : -1;
}

static int32_t number(parser *p)
{
    char *end, *fraction;
    double real = strtod(p->at, &fraction);
    errno = 0;
    long long whole = strtoll(p->at, &end, 10);
    bool is_whole = end == fraction && errno == 0;
    int32_t id = add(p, STK_X_NUMBER, is_whole ? STK_X_WHOLE_KIND : STK_X_REAL_KIND, -1, -1, -1);
    if (id < 0) return -1;
    p->at = fraction;
    node(p, id)->whole = whole;
    node(p, id)->real = real;
    return id;
}

static int32_t text(parser *p)
{
    char quote = *p->at++;
    const char *end = strchr(p->at, quote);
    if (!end) return wrong(p, "the text does not end");
    int32_t id = add(p, STK_X_NUMBER, STK_X_TEXT_KIND, -1, -1, -1);
    if (id < 0) return -1;
    node(p, id)->text = (stk_string){p->at, end - p->at};
    p->at = end + 1;
    return id;
}

static int32_t word(parser *p)
{
    char name[80];
    size_t n = 0;
    while (is_word(p->at[n])) n++;
    if (n >= sizeof name) return wrong(p, "a name of more than %zu letters", sizeof name - 1);
    memcpy(name, p->at, n);
    name[n] = 0;
    p->at += n;
    return take(p, "(") ? call(p, name) : named_field(p, name);
}

static int32_t value(parser *p)
{
    skip_space(p);
    if (*p->at == '$') {
        char *end;
        long k = strtol(p->at + 1, &end, 10);
        if (end == p->at + 1 || k < 0 || k >= p->in->n - p->first)
            return wrong(p, "there are fields $0 to $%d", (int)(p->in->n - p->first) - 1);
        p->at = end;
        return field(p, p->first + (int32_t)k);
    }
    if (*p->at == '(') {
        p->at++;
        int32_t id = expression(p, 1);
        return id >= 0 && expect(p, ")") ? id : -1;
    }
    if (isdigit((unsigned char)*p->at) || *p->at == '.') return number(p);
    if (*p->at == '\'') return text(p);
    if (is_word(*p->at)) return word(p);
    return wrong(p, "expected a value: a number, 'text', a field, or (...)");
}

static int32_t indexed(parser *p)
{
    int32_t id = value(p);
    while (id >= 0 && take(p, "[")) {
        int32_t at = expression(p, 1);
        if (at < 0 || !expect(p, "]")) return -1;
        const stk_x_node *n = node(p, id);
        if (n->kind == STK_X_TEXT_KIND || (n->is.rank != 1 && n->is.rank != -1) ||
            node(p, at)->kind != STK_X_WHOLE_KIND || node(p, at)->is.rank != 0)
            return wrong(p, "[...] takes one whole number, and stands behind vectors");
        int32_t made = add(p, STK_X_AT, n->kind, id, at, -1);
        if (made < 0) return -1;
        node(p, made)->is.dtype = node(p, id)->is.dtype;
        id = made;
    }
    return id;
}

/* ---- operators ---------------------------------------------------------------------------------------- */
static int32_t unary(parser *p)
{
    enum { COMPARISONS = 3, POWERS = 7 };
    bool negate = take(p, "-");
    if (!negate && !take(p, "not")) return indexed(p);
    int32_t a = expression(p, negate ? POWERS : COMPARISONS);
    if (a < 0) return -1;
    return settle(p, add(p, negate ? STK_X_NEGATE : STK_X_NOT, STK_X_WHOLE_KIND, a, -1, -1),
                  negate ? SAME : TRUTH);
}

static const struct binary_row *operator_here(parser *p, int level)
{
    const char *before = p->at;
    for (int i = 0; i < BINARIES; i++) {
        if (!take(p, binary_rows[i].token)) continue;
        if (binary_rows[i].level >= level) return &binary_rows[i];
        break;
    }
    p->at = before;
    return NULL;
}

static int32_t compare_texts(parser *p, stk_x_op op, int32_t a, int32_t b)
{
    bool both = node(p, a)->kind == node(p, b)->kind;
    if (!both || (op != STK_X_EQUAL && op != STK_X_DIFFERENT))
        return wrong(p, "a text is compared with texts, by == and !=");
    int32_t id = add(p, op, STK_X_WHOLE_KIND, a, b, -1);
    if (id >= 0) node(p, id)->is.dtype = STK_BOOL;
    return id;
}

static int32_t expression(parser *p, int level)
{
    if (++p->depth > STK_X_DEPTH) return wrong(p, "nested too deeply");
    int32_t a = unary(p);
    const struct binary_row *row;
    while (a >= 0 && (row = operator_here(p, level))) {
        int32_t b = expression(p, row->level + (row->op != STK_X_POWER));
        if (b < 0) return -1;
        bool texts = node(p, a)->kind == STK_X_TEXT_KIND || node(p, b)->kind == STK_X_TEXT_KIND;
        a = texts ? compare_texts(p, row->op, a, b)
                  : settle(p, add(p, row->op, STK_X_WHOLE_KIND, a, b, -1), row->gives);
    }
    p->depth--;
    return a;
}

/* ---- the whole ------------------------------------------------------------------------------------------ */
stk_status stk_expression_new(const char *source, const stk_schema *in, int32_t first,
                              stk_expression **out, stk_error *err)
{
    *out = NULL;
    size_t size = strlen(source) + 1;
    stk_expression *e = stk_calloc(1, sizeof *e + size);
    if (!e) return stk_fail_memory(err, "expression", sizeof *e + size);
    memcpy(e->text, source, size);
    parser p = {.e = e, .in = in, .first = first, .at = e->text, .err = err, .status = STK_OK};
    int32_t id = expression(&p, 1);
    skip_space(&p);
    if (id >= 0 && *p.at) wrong(&p, "expected an operator or the end");
    if (id >= 0 && node(&p, id)->kind == STK_X_TEXT_KIND && node(&p, id)->op != STK_X_FIELD)
        wrong(&p, "a text of its own; it gives numbers, or a field");
    /* The parser adds parents last, so the result is the last node. The schema it was made with may go. */
    for (int32_t i = 0; i < e->count && p.status == STK_OK; i++) {
        const char *name = e->nodes[i].is.name;
        e->nodes[i].is.name = i == id && name && *name ? stk_arena_strdup(&e->arena, name) : NULL;
        if (i == id && name && *name && !e->nodes[i].is.name)
            p.status = stk_fail_memory(err, "expression", strlen(name));
    }
    if (p.status != STK_OK) {
        stk_expression_free(e);
        return p.status;
    }
    *out = e;
    return STK_OK;
}

void stk_expression_free(stk_expression *e)
{
    if (!e) return;
    stk_arena_release(&e->arena);
    stk_free(e);
}

const stk_field *stk_expression_field(const stk_expression *e)
{
    return &e->nodes[e->count - 1].is;
}

stk_status stk_expression_cast(stk_expression *e, stk_dtype dtype, stk_error *err)
{
    if (stk_expression_field(e)->dtype == dtype) return STK_OK;
    parser p = {.e = e, .at = e->text + strlen(e->text), .err = err, .status = STK_OK};
    (void)cast_to(&p, e->count - 1, dtype);
    return p.status;
}

bool stk_expression_asks_index(const stk_expression *e)
{
    bool asks = false;
    for (int32_t i = 0; i < e->count; i++) asks |= e->nodes[i].op == STK_X_INDEX;
    return asks;
}

bool stk_expression_elementwise(const stk_expression *e)
{
    int32_t rank = -1;
    for (int32_t i = 0; i < e->count; i++) {
        const stk_x_node *n = &e->nodes[i];
        if (stk_x_reduces(n->op) || n->op == STK_X_INDEX || n->op == STK_X_AT ||
            n->kind == STK_X_TEXT_KIND)
            return false;
        if (n->op != STK_X_FIELD) continue;
        if (n->is.rank < 0 || (rank >= 0 && rank != n->is.rank)) return false;
        rank = n->is.rank;
    }
    return rank >= 0;
}
