/* The table of operations, made from ops.def and elementwise.def. */
#include "graph/ir/op.h"

#include <string.h>

static const stk_op_row rows[STK_OP_COUNT] = {
#define STK_OP(NAME, name, min_in, max_in, outputs, attributes, doc)                               \
    {#name, attributes, doc, min_in, max_in, outputs},
#include "stoker/ops.def"
#define STK_EW(NAME, name, arity, result, doc) {#name, "", doc, arity, arity, 1},
#include "stoker/elementwise.def"
};

static const stk_opdef *const defs[STK_OP_COUNT] = {
#define STK_OP(NAME, name, min_in, max_in, outputs, attributes, doc) &stk_opdef_##name,
#include "stoker/ops.def"
#define STK_EW(NAME, name, arity, result, doc) &stk_opdef_##name,
#include "stoker/elementwise.def"
};

static bool valid(stk_op op) { return (unsigned)op < STK_OP_COUNT; }

const stk_opdef *stk_opdef_of(stk_op op) { return valid(op) ? defs[op] : NULL; }
const stk_op_row *stk_op_row_of(stk_op op) { return valid(op) ? &rows[op] : NULL; }
const char *stk_op_name(stk_op op) { return valid(op) ? rows[op].name : "?"; }

bool stk_op_parse(const char *name, stk_op *out)
{
    for (int i = 0; name && out && i < STK_OP_COUNT; i++)
        if (!strcmp(name, rows[i].name)) {
            *out = (stk_op)i;
            return true;
        }
    return false;
}
