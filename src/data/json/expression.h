/* expression.h - small calculations over the fields of an element, as pipeline files write them.
 *
 *     label < 5 and weight > 0.1        (image - 127.5) / 127.5        len(tokens)        $0 % 10        name == 'cat'
 *
 * A value is a scalar or a tensor; operations go element by element, scalars with anything, tensors with those of the
 * same shape. Whole numbers are int64, real ones float32 unless a float64 takes part, comparisons bool; whole numbers
 * divided by / are real. `name` or `$number` is a field and keeps its dtype when it stands alone; `index` is the number
 * of the element; float32(x), int64(x) ... cast; where(c, a, b) chooses; x[i] is one number of a vector; the rest is in
 * expression.def. There are no loops, no assignments and nothing that reaches outside of the element. */
#ifndef STK_DATA_EXPRESSION_H
#define STK_DATA_EXPRESSION_H

#include "data/core/node.h"

typedef struct stk_expression stk_expression;

/* `in` names the fields; $0 is field `first` of it. */
stk_status stk_expression_new(const char *text, const stk_schema *in, int32_t first,
                              stk_expression **out, stk_error *err);
void stk_expression_free(stk_expression *e); /* NULL is fine */
/* What it gives; the name is that of the field when it is nothing else. */
const stk_field *stk_expression_field(const stk_expression *e);
/* The result as this dtype from now on. */
stk_status stk_expression_cast(stk_expression *e, stk_dtype dtype, stk_error *err);
/* One number of each of its fields, which all have one rank: it may be given whole batches. */
bool stk_expression_elementwise(const stk_expression *e);
bool stk_expression_asks_index(const stk_expression *e);
/* *out: a tensor to write into, or NULL for a new one. */
stk_status stk_expression_run(const stk_expression *e, stk_tensor *const *in, int64_t index,
                              stk_tensor **out, stk_error *err);

/* ---- between the parser and the runner ---------------------------------------------------------- */
typedef enum stk_x_kind { STK_X_WHOLE_KIND, STK_X_REAL_KIND, STK_X_TEXT_KIND } stk_x_kind;
typedef enum stk_x_op {
    STK_X_NUMBER, /* a literal, by kind */
    STK_X_FIELD,
    STK_X_INDEX,
    STK_X_CAST,
    STK_X_WHERE,
    STK_X_AT,
#define STK_X_BINARY(id, token, level, result, whole, real) STK_X_##id,
#define STK_X_UNARY(id, name, result, whole, real)          STK_X_##id,
#define STK_X_REDUCE(id, name, result)                      STK_X_##id,
#include "data/json/expression.def"
} stk_x_op;

enum { STK_X_MOST = 128, STK_X_DEPTH = 24 };
typedef struct stk_x_node {
    stk_x_op op;
    stk_x_kind kind;
    int32_t child[3], children;
    int32_t field;
    stk_field is; /* what it gives */
    int64_t whole;
    double real;
    stk_string text;
} stk_x_node;

struct stk_expression {
    stk_arena arena; /* texts */
    int32_t count;
    stk_x_node nodes[STK_X_MOST]; /* children before parents; the last one is the result */
    char text[];
};

static inline bool stk_x_reduces(stk_x_op op) { return op >= STK_X_SUM && op <= STK_X_LEN; }

#endif
