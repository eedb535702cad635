/* ir.h - the graph inside: nodes and values in the order they were built, which is always a topological
 * order. Passes never edit a graph: they read one and build the next (rewrite.h). */
#ifndef STK_GRAPH_IR_H
#define STK_GRAPH_IR_H

#include "base/dtype.h"
#include "base/memory.h"
#include "base/name_index.h"
#include "base/shape.h"
#include "stoker/graph.h"

typedef struct stk_type {
    stk_dtype dtype;
    stk_shape shape;
} stk_type;

static inline bool stk_type_equal(const stk_type *a, const stk_type *b)
{
    return a->dtype == b->dtype && stk_shape_equal(&a->shape, &b->shape);
}
static inline int64_t stk_type_bytes(const stk_type *t)
{
    return stk_shape_count(&t->shape) * stk_dtype_size(t->dtype);
}
char *stk_type_text(const stk_type *t, char *text, size_t size); /* "float32[2,3]" */
#define STK_TYPE_TEXT(t) stk_type_text((t), (char[160]){0}, 160)

/* Integers below this are exact as double. */
static const double STK_EXACT = 9007199254740992.0;

/* Where a node comes from, for reports. */
typedef enum stk_part {
    STK_PART_FORWARD,
    STK_PART_BACKWARD, /* made by stk_g_gradients */
    STK_PART_UPDATE    /* made by an optimizer */
} stk_part;
typedef struct stk_origin {
    const char *place; /* path of the layer; in the graph's arena, or NULL */
    int8_t part;       /* stk_part */
} stk_origin;

/* Everything of a node lives in its graph's arena. */
typedef struct stk_node {
    int16_t op; /* stk_op */
    int16_t nout;
    int32_t nin;
    stk_val *in;
    stk_val out; /* first output; the others follow */
    int32_t nints, nreals, nsubs;
    int64_t *ints;
    double *reals;
    stk_graph **subs;   /* owned */
    stk_tensor *tensor; /* CONST: owned handle */
    const char *name;   /* INPUT, VARIABLE */
    stk_origin origin;
} stk_node;

typedef struct stk_value {
    stk_type type;
    int32_t node;  /* index of the producing node */
    int32_t index; /* which of its outputs */
    bool assigned; /* a variable: there is an assignment to it */
} stk_value;

typedef struct stk_output {
    const char *name;
    stk_val val;
} stk_output;

struct stk_graph {
    stk_arena arena;
    stk_node *nodes;
    int64_t nnodes, cap_nodes;
    stk_value *values; /* values[0] is "none" */
    int64_t nvalues, cap_values;
    stk_output *outputs;
    int64_t noutputs, cap_outputs;
    stk_name_index names; /* inputs and variables: (op, name) -> value */
    int64_t next_stream;  /* numbers random ops, so that two of them never share bits */
    stk_origin origin;    /* of the nodes that are made now */
    stk_error error;      /* first mistake of a builder; code OK while there is none */
};

static inline const stk_node *stk_node_of(const stk_graph *g, stk_val v)
{
    return &g->nodes[g->values[v].node];
}
static inline const stk_type *stk_type_of(const stk_graph *g, stk_val v)
{
    return &g->values[v].type;
}
static inline bool stk_graph_ok(const stk_graph *g) { return g && g->error.code == STK_OK; }
static inline bool stk_val_ok(const stk_graph *g, stk_val v) { return v > 0 && v < g->nvalues; }

/* A variable node that stands for one half of a variable, for one of two owners (passes/halves.c). */
typedef struct stk_half {
    const char *whole; /* name of the variable */
    int32_t axis, owner;
} stk_half;
bool stk_half_of(const stk_node *n, stk_half *half);
/* The node of that half in g; `whole` is the node of the variable in another graph. */
stk_val stk_g_half(stk_graph *g, const stk_node *whole, int32_t axis, int32_t owner);

/* A variable node that stands for the bfloat16 form of a variable (passes/shadows.c): the variable's name, or NULL. */
const char *stk_shadow_of(const stk_node *n);
/* The node of that form in g; `whole` is the node of the variable in another graph. */
stk_val stk_g_shadow(stk_graph *g, const stk_node *whole);

/* Records a builder's mistake (the first one counts) and returns 0 for the builder to return. */
stk_val stk_g_fail(stk_graph *g, stk_status code, const char *format, ...) STK_PRINTF(3, 4);

/* A leaf or any node with a name and tensor; `like` holds op, attributes, name, tensor, subs (copied). */
stk_val stk_g_add_node(stk_graph *g, const stk_node *like, const stk_val *in);

/* The input or variable of that name; 0: there is none. */
stk_val stk_g_named(const stk_graph *g, stk_op op, const char *name);

/* Value of a CONST whose elements are all equal (any rank): true and *value. */
bool stk_g_splat(const stk_graph *g, stk_val v, double *value);

/* axis in -rank..rank-1 -> 0..rank-1; on a bad one records the mistake and returns -1. */
int32_t stk_g_axis(stk_graph *g, const char *who, stk_val x, int32_t axis);

#endif
