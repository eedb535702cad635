/* Leaves and effects: input, variable, const, step, iota, assign. */
#include "graph/ir/op.h"

#include <string.h>

/* ---- input and variable: the type is the attribute [dtype, dims...] ---------------------------- */

static stk_status infer_declared(stk_infer *c)
{
    const stk_node *n = c->node;
    int32_t rank = n->nints - 1;
    if (rank < 0 || rank > STK_MAX_RANK || !stk_dtype_valid((stk_dtype)n->ints[0]))
        return stk_infer_fail(c, STK_ERR_SHAPE, "'%s': rank %d or dtype out of range; rank 0 to %d",
                              n->name ? n->name : "", rank, STK_MAX_RANK);
    STK_TRY(stk_shape_check(n->name ? n->name : stk_op_name((stk_op)n->op), rank, n->ints + 1,
                            stk_dtype_size((stk_dtype)n->ints[0]), c->err));
    c->out->dtype = (stk_dtype)n->ints[0];
    c->out->shape.rank = rank;
    memcpy(c->out->shape.dim, n->ints + 1, (size_t)rank * sizeof(int64_t));
    return STK_OK;
}

static stk_val declare(stk_graph *g, stk_op op, const char *name, stk_dtype dtype, int32_t rank,
                       const int64_t *shape)
{
    if (!stk_graph_ok(g)) return 0;
    if (!name || !*name || rank < 0 || rank > STK_MAX_RANK || (rank && !shape))
        return stk_g_fail(g, STK_ERR_ARGUMENT,
                          "%s '%s': needs a name, a rank of 0 to %d (got %d) and a shape",
                          stk_op_name(op), name ? name : "", STK_MAX_RANK, rank);
    if (stk_g_named(g, op, name))
        return stk_g_fail(g, STK_ERR_ARGUMENT, "%s '%s' exists already; give each one its own name",
                          stk_op_name(op), name);
    int64_t ints[1 + STK_MAX_RANK] = {dtype};
    for (int32_t i = 0; i < rank; i++) ints[1 + i] = shape[i];
    stk_node like = {.op = (int16_t)op, .name = name, .ints = ints, .nints = rank + 1};
    return stk_g_add_node(g, &like, NULL);
}

stk_val stk_g_input(stk_graph *g, const char *name, stk_dtype dtype, int32_t rank,
                    const int64_t *shape)
{
    return declare(g, STK_OP_INPUT, name, dtype, rank, shape);
}
const stk_opdef stk_opdef_input = {.flags = STK_OPF_LEAF | STK_OPF_EFFECT, .infer = infer_declared};

stk_val stk_g_variable(stk_graph *g, const char *name, stk_dtype dtype, int32_t rank,
                       const int64_t *shape)
{
    return declare(g, STK_OP_VARIABLE, name, dtype, rank, shape);
}
/* The name of the variable behind what tells its forms apart. */
static char *name_of_form(stk_graph *g, char form, const char *whole)
{
    const size_t length = strlen(whole) + 1;
    char *name = stk_arena_alloc(&g->arena, length + 2);
    if (!name) return NULL;
    name[0] = form;
    name[1] = '#';
    memcpy(name + 2, whole, length);
    return name;
}

/* Its name is the owner, '#' and the name of the variable; its reals are axis and owner. */
bool stk_half_of(const stk_node *n, stk_half *half)
{
    if (n->op != STK_OP_VARIABLE || n->nreals != 2) return false;
    *half = (stk_half){n->name + 2, (int32_t)n->reals[0], (int32_t)n->reals[1]};
    return true;
}

stk_val stk_g_half(stk_graph *g, const stk_node *whole, int32_t axis, int32_t owner)
{
    int64_t ints[1 + STK_MAX_RANK];
    double reals[] = {axis, owner};
    char *name = name_of_form(g, (char)('0' + owner), whole->name);
    if (!name) return stk_g_fail(g, STK_ERR_MEMORY, "out of memory");
    memcpy(ints, whole->ints, (size_t)whole->nints * sizeof *ints);
    ints[1 + axis] /= 2;
    stk_node like = *whole;
    like.name = name;
    like.ints = ints;
    like.reals = reals;
    like.nreals = 2;
    return stk_g_add_node(g, &like, NULL);
}

/* Its name is 'h', '#' and the name of the variable; it has one real. */
const char *stk_shadow_of(const stk_node *n)
{
    return n->op == STK_OP_VARIABLE && n->nreals == 1 ? n->name + 2 : NULL;
}

stk_val stk_g_shadow(stk_graph *g, const stk_node *whole)
{
    int64_t ints[1 + STK_MAX_RANK];
    double real = 0;
    memcpy(ints, whole->ints, (size_t)whole->nints * sizeof *ints);
    ints[0] = STK_BF16;
    char *name = name_of_form(g, 'h', whole->name);
    if (!name) return stk_g_fail(g, STK_ERR_MEMORY, "out of memory");
    stk_node like = *whole;
    like.name = name;
    like.ints = ints;
    like.reals = &real;
    like.nreals = 1;
    return stk_g_add_node(g, &like, NULL);
}

const stk_opdef stk_opdef_variable = {.flags = STK_OPF_LEAF, .infer = infer_declared};

/* ---- const ---------------------------------------------------------------------------------------- */

static stk_status infer_const(stk_infer *c)
{
    const stk_tensor *t = c->node->tensor;
    if (!t) return stk_infer_fail(c, STK_ERR_ARGUMENT, "the tensor is NULL");
    c->out->dtype = t->dtype;
    c->out->shape.rank = t->rank;
    memcpy(c->out->shape.dim, t->shape, sizeof t->shape);
    return STK_OK;
}

stk_val stk_g_const(stk_graph *g, stk_tensor *tensor)
{
    if (!stk_graph_ok(g)) return 0;
    if (!tensor) return stk_g_fail(g, STK_ERR_ARGUMENT, "const: the tensor is NULL");
    stk_node like = {.op = STK_OP_CONST, .tensor = tensor};
    return stk_g_add_node(g, &like, NULL);
}

stk_val stk_g_scalar(stk_graph *g, stk_dtype dtype, double value)
{
    if (!stk_graph_ok(g)) return 0;
    stk_tensor *t = NULL;
    stk_error err;
    stk_status status = stk_tensor_scalar(dtype, value, &t, &err);
    if (status != STK_OK) return stk_g_fail(g, status, "%s", err.message);
    stk_val v = stk_g_const(g, t);
    stk_tensor_release(t);
    return v;
}

stk_val stk_g_fill(stk_graph *g, stk_dtype dtype, int32_t rank, const int64_t *shape, double value)
{
    return stk_g_broadcast(g, stk_g_scalar(g, dtype, value), rank, shape);
}

stk_val stk_g_zeros_like(stk_graph *g, stk_val x)
{
    if (!stk_graph_ok(g) || !stk_val_ok(g, x)) return 0;
    stk_type t = *stk_type_of(g, x);
    return stk_g_fill(g, t.dtype, t.shape.rank, t.shape.dim, 0);
}

bool stk_g_splat(const stk_graph *g, stk_val v, double *value)
{
    const stk_node *n = stk_node_of(g, v);
    while (n->op == STK_OP_BROADCAST || n->op == STK_OP_RESHAPE) n = stk_node_of(g, n->in[0]);
    if (n->op != STK_OP_CONST || stk_tensor_count(n->tensor) != 1) return false;
    *value = stk_tensor_at(n->tensor, 0);
    return true;
}

const stk_opdef stk_opdef_const = {.flags = STK_OPF_LEAF, .infer = infer_const};

/* ---- step: the number of the run, a leaf that the program counts --------------------------------------- */

static stk_status infer_step(stk_infer *c)
{
    *c->out = (stk_type){.dtype = STK_I64};
    return STK_OK;
}

stk_val stk_g_step(stk_graph *g) { return stk_g_apply(g, STK_OP_STEP, 0, NULL, NULL); }
const stk_opdef stk_opdef_step = {.flags = STK_OPF_LEAF, .infer = infer_step};

/* ---- iota ------------------------------------------------------------------------------------------------ */

static stk_status infer_iota(stk_infer *c)
{
    const stk_node *n = c->node;
    int32_t rank = n->nints - 2;
    if (rank < 1 || rank > STK_MAX_RANK || n->ints[1] < 0 || n->ints[1] >= rank ||
        !stk_dtype_valid((stk_dtype)n->ints[0]))
        return stk_infer_fail(c, STK_ERR_RANGE, "needs rank 1 to %d and an axis inside it",
                              STK_MAX_RANK);
    c->out->dtype = (stk_dtype)n->ints[0];
    c->out->shape.rank = rank;
    memcpy(c->out->shape.dim, n->ints + 2, (size_t)rank * sizeof(int64_t));
    return STK_OK;
}

static stk_status lower_iota(stk_lower *l)
{
    const stk_node *n = l->node;
    stk_iota_params *p = stk_lower_params(l, STK_K_IOTA, sizeof *p);
    if (!p) return STK_ERR_MEMORY;
    int32_t rank = n->nints - 2, axis = (int32_t)n->ints[1];
    p->outer = p->inner = 1;
    p->n = n->ints[2 + axis];
    for (int32_t i = 0; i < axis; i++) p->outer *= n->ints[2 + i];
    for (int32_t i = axis + 1; i < rank; i++) p->inner *= n->ints[2 + i];
    p->dtype = n->ints[0];
    return STK_OK;
}

stk_val stk_g_iota(stk_graph *g, stk_dtype dtype, int32_t rank, const int64_t *shape, int32_t axis)
{
    if (!stk_graph_ok(g)) return 0;
    if (rank < 1 || rank > STK_MAX_RANK || !shape)
        return stk_g_fail(g, STK_ERR_RANGE, "iota: rank %d; 1 to %d is possible", rank,
                          STK_MAX_RANK);
    int64_t ints[2 + STK_MAX_RANK] = {dtype, axis < 0 ? axis + rank : axis};
    for (int32_t i = 0; i < rank; i++) ints[2 + i] = shape[i];
    return stk_g_apply(g, STK_OP_IOTA, 0, NULL, &(stk_attrs){.ints = ints, .nints = rank + 2});
}
const stk_opdef stk_opdef_iota = {
    .flags = STK_OPF_NO_GRAD, .infer = infer_iota, .lower = lower_iota};

/* ---- assign: in 0 the variable, in 1 its new value; the output is the new value ------------------------------ */

static stk_status infer_assign(stk_infer *c)
{
    if (stk_node_of(c->g, c->node->in[0])->op != STK_OP_VARIABLE)
        return stk_infer_fail(c, STK_ERR_ARGUMENT,
                              "the target is not a variable; make it with stk_g_variable");
    if (!stk_type_equal(c->in[0], c->in[1]))
        return stk_infer_fail(c, STK_ERR_SHAPE,
                              "variable '%s' keeps its type; cast or reshape the value",
                              stk_node_of(c->g, c->node->in[0])->name);
    *c->out = *c->in[0];
    return STK_OK;
}

stk_val stk_g_assign(stk_graph *g, stk_val variable, stk_val value)
{
    if (stk_graph_ok(g) && stk_val_ok(g, variable) && g->values[variable].assigned)
        return stk_g_fail(g, STK_ERR_STATE,
                          "assign: variable '%s' is assigned twice; combine the values first",
                          stk_node_of(g, variable)->name);
    return stk_g_apply(g, STK_OP_ASSIGN, 2, (stk_val[]){variable, value}, NULL);
}
static void grad_assign(stk_grad *c) { c->din[1] = c->dout[0]; }
const stk_opdef stk_opdef_assign = {
    .flags = STK_OPF_EFFECT, .infer = infer_assign, .grad = grad_assign};
