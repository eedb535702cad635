/* Building: nodes are checked and typed the moment they are added, so a graph that exists is well formed. */
#include "graph/ir/op.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

stk_status stk_graph_new(stk_graph **out, stk_error *err)
{
    if (!out)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_graph_new: out is NULL; pass the address of a stk_graph *");
    stk_graph *g = stk_calloc(1, sizeof *g);
    if (!g || !STK_GROW(g->values, 0, g->cap_values)) {
        stk_free(g);
        return stk_fail_memory(err, "stk_graph_new", sizeof *g);
    }
    g->values[0] = (stk_value){0};
    g->nvalues = 1;
    *out = g;
    return STK_OK;
}

void stk_graph_release(stk_graph *g)
{
    if (!g) return;
    for (int64_t i = 0; i < g->nnodes; i++) {
        stk_tensor_release(g->nodes[i].tensor);
        for (int32_t k = 0; k < g->nodes[i].nsubs; k++) stk_graph_release(g->nodes[i].subs[k]);
    }
    stk_arena_release(&g->arena);
    stk_free(g->nodes);
    stk_free(g->values);
    stk_free(g->outputs);
    stk_name_index_release(&g->names);
    stk_free(g);
}

stk_status stk_graph_status(const stk_graph *g, stk_error *err)
{
    if (!g) return stk_fail(err, STK_ERR_ARGUMENT, "stk_graph_status: the graph is NULL");
    if (g->error.code != STK_OK && err) *err = g->error;
    return g->error.code;
}

stk_val stk_g_fail(stk_graph *g, stk_status code, const char *format, ...)
{
    if (!stk_graph_ok(g)) return 0;
    char text[STK_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    stk_fail(&g->error, code, "%s", text);
    return 0;
}

static stk_val out_of_memory(stk_graph *g)
{
    if (g->error.code == STK_OK) stk_fail_memory(&g->error, "building the graph", 0);
    return 0;
}

char *stk_type_text(const stk_type *t, char *text, size_t size)
{
    snprintf(text, size, "%s%s", stk_dtype_name(t->dtype), STK_SHAPE_TEXT(&t->shape));
    return text;
}

stk_status stk_infer_fail(const stk_infer *c, stk_status code, const char *format, ...)
{
    char text[STK_ERROR_TEXT], types[512];
    size_t used = 0;
    types[0] = 0;
    for (int32_t i = 0; i < c->node->nin && i < 6 && used < sizeof types; i++) {
        int n = snprintf(types + used, sizeof types - used, "%s%s", i ? ", " : "",
                         STK_TYPE_TEXT(c->in[i]));
        used += n > 0 ? (size_t)n : 0;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return stk_fail(c->err, code, "%s(%s): %.*s", stk_op_name((stk_op)c->node->op), types, 480,
                    text);
}

/* Copies `like` into g->arena; inputs are already checked. */
static bool copy_node(stk_graph *g, stk_node *n, const stk_node *like, const stk_val *in)
{
    *n = *like;
    n->subs = NULL;
    n->nsubs = 0;
    n->tensor = NULL;
    n->in = stk_arena_copy(&g->arena, in, (size_t)like->nin * sizeof *in);
    n->ints = stk_arena_copy(&g->arena, like->ints, (size_t)like->nints * sizeof *n->ints);
    n->reals = stk_arena_copy(&g->arena, like->reals, (size_t)like->nreals * sizeof *n->reals);
    n->name = like->name ? stk_arena_strdup(&g->arena, like->name) : NULL;
    n->subs = stk_arena_array(&g->arena, (size_t)like->nsubs, sizeof *n->subs);
    return n->in && n->ints && n->reals && n->subs && (!like->name || n->name);
}

static stk_status infer_node(const stk_graph *g, const stk_node *n, stk_type *out, stk_error *err)
{
    stk_infer c = {.g = g, .node = n, .out = out, .err = err};
    for (int32_t i = 0; i < n->nin && i < 64; i++) c.in[i] = stk_type_of(g, n->in[i]);
    STK_TRY(stk_opdef_of((stk_op)n->op)->infer(&c));
    for (int k = 0; k < n->nout; k++)
        if (out[k].shape.rank >= 0)
            STK_TRY(stk_shape_check(stk_op_name((stk_op)n->op), out[k].shape.rank, out[k].shape.dim,
                                    stk_dtype_size(out[k].dtype), err));
    return STK_OK;
}

/* How many outputs: fixed by the row, or, for control flow, as many as the body says. */
static int32_t count_outputs(const stk_node *like)
{
    int32_t fixed = stk_op_row_of((stk_op)like->op)->outputs;
    if (fixed > 0) return fixed;
    return like->nout;
}

static bool check_inputs(stk_graph *g, const stk_node *like, const stk_val *in)
{
    const stk_op_row *row = stk_op_row_of((stk_op)like->op);
    if (!row) {
        stk_g_fail(g, STK_ERR_ARGUMENT, "graph: op number %d does not exist; use a stk_op constant",
                   like->op);
        return false;
    }
    if (like->nin < row->min_in || (row->max_in >= 0 && like->nin > row->max_in)) {
        stk_g_fail(g, STK_ERR_ARGUMENT, "%s: takes %d to %d inputs, got %d", row->name, row->min_in,
                   row->max_in, like->nin);
        return false;
    }
    for (int32_t i = 0; i < like->nin; i++)
        if (!stk_val_ok(g, in[i])) {
            stk_g_fail(g, STK_ERR_ARGUMENT,
                       "%s: input %d is value %d, which is not in this graph; "
                       "use the ids that this graph's builders returned",
                       row->name, i, in[i]);
            return false;
        }
    return true;
}

stk_val stk_g_add_node(stk_graph *g, const stk_node *like, const stk_val *in)
{
    enum { MOST_OUTPUTS = 64 };
    if (!stk_graph_ok(g) || !check_inputs(g, like, in)) return 0;
    stk_node node;
    stk_type types[MOST_OUTPUTS];
    memset(types, 0, sizeof types);
    if (!copy_node(g, &node, like, in)) return out_of_memory(g);
    for (int32_t k = 0; k < like->nsubs; k++) node.subs[k] = like->subs[k];
    node.nsubs = like->nsubs;
    node.tensor = like->tensor;
    node.origin = g->origin;
    int32_t nout = count_outputs(like);
    if (nout < 1 || nout > MOST_OUTPUTS)
        return stk_g_fail(g, STK_ERR_RANGE, "%s: %d outputs; 1 to %d are possible",
                          stk_op_name((stk_op)like->op), nout, MOST_OUTPUTS);
    node.nout = (int16_t)nout;
    node.out = (stk_val)g->nvalues;
    stk_error err = {0};
    stk_status status = infer_node(g, &node, types, &err);
    if (status != STK_OK) return stk_g_fail(g, status, "%s", err.message);
    if (!STK_GROW(g->nodes, g->nnodes, g->cap_nodes)) return out_of_memory(g);
    for (int32_t k = 0; k < nout; k++) {
        if (!STK_GROW(g->values, g->nvalues, g->cap_values)) {
            g->nvalues = node.out;
            return out_of_memory(g);
        }
        g->values[g->nvalues++] =
            (stk_value){.type = types[k], .node = (int32_t)g->nnodes, .index = k};
    }
    if (node.name && !stk_name_index_put(&g->names, node.name, node.op, node.out)) {
        g->nvalues = node.out;
        return out_of_memory(g);
    }
    if (node.op == STK_OP_ASSIGN) g->values[node.in[0]].assigned = true;
    stk_tensor_retain(node.tensor); /* from here on the graph owns what the node holds */
    g->nodes[g->nnodes++] = node;
    return node.out;
}

stk_val stk_g_named(const stk_graph *g, stk_op op, const char *name)
{
    int64_t v = stk_name_index_find(&g->names, name, (int64_t)op);
    return v > 0 ? (stk_val)v : 0;
}

stk_val stk_g_apply(stk_graph *g, stk_op op, int32_t nin, const stk_val *in, const stk_attrs *attrs)
{
    stk_node like = {.op = (int16_t)op, .nin = nin};
    if (attrs) {
        like.ints = (int64_t *)(uintptr_t)attrs->ints;
        like.nints = attrs->nints;
        like.reals = (double *)(uintptr_t)attrs->reals;
        like.nreals = attrs->nreals;
    }
    for (int32_t i = 0; i < nin; i++)
        if (!in[i])
            return stk_g_fail(g, STK_ERR_ARGUMENT, "%s: input %d is 0 (none)", stk_op_name(op), i);
    return stk_g_add_node(g, &like, in);
}

const char *stk_g_place(stk_graph *g, const char *place)
{
    if (!g) return NULL;
    const char *before = g->origin.place;
    g->origin.place = place ? stk_arena_strdup(&g->arena, place) : NULL;
    if (place && !g->origin.place) out_of_memory(g);
    return before;
}

stk_dtype stk_g_dtype(const stk_graph *g, stk_val v)
{
    return stk_val_ok(g, v) ? stk_type_of(g, v)->dtype : STK_F32;
}
int32_t stk_g_rank(const stk_graph *g, stk_val v)
{
    return stk_val_ok(g, v) ? stk_type_of(g, v)->shape.rank : 0;
}

int64_t stk_g_dim(const stk_graph *g, stk_val v, int32_t axis)
{
    int32_t rank = stk_g_rank(g, v);
    if (axis < 0) axis += rank;
    return axis >= 0 && axis < rank ? stk_type_of(g, v)->shape.dim[axis] : 0;
}

int32_t stk_g_axis(stk_graph *g, const char *who, stk_val x, int32_t axis)
{
    int32_t rank = stk_g_rank(g, x);
    if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
    stk_g_fail(g, STK_ERR_RANGE, "%s: axis %d is outside %s; use %d to %d", who, axis,
               stk_val_ok(g, x) ? STK_TYPE_TEXT(stk_type_of(g, x)) : "nothing", -rank, rank - 1);
    return -1;
}

void stk_g_output(stk_graph *g, const char *name, stk_val v)
{
    if (!stk_graph_ok(g)) return;
    if (!stk_val_ok(g, v) || !name) {
        stk_g_fail(g, STK_ERR_ARGUMENT, "output '%s': value %d is not in this graph",
                   name ? name : "NULL", v);
        return;
    }
    char *copy = stk_arena_strdup(&g->arena, name);
    if (!copy || !STK_GROW(g->outputs, g->noutputs, g->cap_outputs)) {
        out_of_memory(g);
        return;
    }
    g->outputs[g->noutputs++] = (stk_output){copy, v};
}
