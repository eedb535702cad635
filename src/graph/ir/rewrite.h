/* rewrite.h - how passes work: read one graph, build the next.
 *
 * A pass walks the old nodes in order. For each it either returns the value in the new graph that takes the place
 * of the old outputs, or 0 to have the node copied as it is. Because the new graph is built through the same
 * checked door as the user's, types are inferred and verified again by every pass. */
#ifndef STK_GRAPH_REWRITE_H
#define STK_GRAPH_REWRITE_H

#include "graph/ir/op.h"

typedef struct stk_rewrite {
    const stk_graph *from;
    stk_graph *to;
    stk_val *map;      /* old value -> new value */
    const bool *alive; /* per old node: an output or effect depends on it */
    void *context;
    const char *place; /* of the old node before; for move_origin */
} stk_rewrite;

typedef stk_val (*stk_rewrite_rule)(stk_rewrite *rw, const stk_node *old, const stk_val *in);

/* Builds *out from g by the rule (NULL: copy). Dead nodes are left behind; inputs and variables stay. */
stk_status stk_rewrite_graph(const stk_graph *g, stk_rewrite_rule rule, void *context,
                             stk_graph **out, stk_error *err);
/* The same for a rule whose context is an int32_t per old value: how often it is read. */
stk_status stk_rewrite_counted(const stk_graph *g, stk_rewrite_rule rule, stk_graph **out,
                               stk_error *err);
/* Copies one node with new inputs; returns its first output in the new graph. */
stk_val stk_rewrite_copy(stk_graph *to, const stk_node *old, const stk_val *in);
/* Checks that the graph is well formed: order, arity, ids, types. A failure is a bug in a pass. */
stk_status stk_graph_verify(const stk_graph *g, const char *after, stk_error *err);

/* The passes. Each returns a new graph and leaves the old one alone. */
stk_status stk_pass_simplify(const stk_graph *g, stk_graph **out,
                             stk_error *err); /* fold, CSE, DCE */
stk_status stk_pass_contract(const stk_graph *g, stk_graph **out,
                             stk_error *err); /* fma, lerp, ... */
/* Elementwise readers of widened half values widen them themselves; the last one. */
stk_status stk_pass_recast(const stk_graph *g, stk_graph **out, stk_error *err);
/* Maxima of what was computed as float32, before it is rounded. */
stk_status stk_pass_pools(const stk_graph *g, stk_graph **out, stk_error *err);
/* Zeros around images, as padding of the convolutions that read them. */
stk_status stk_pass_pads(const stk_graph *g, stk_graph **out, stk_error *err);
/* Gradients compute again what is cheap, instead of keeping it. */
stk_status stk_pass_again(const stk_graph *g, stk_graph **out, stk_error *err);
/* Small dense layers in two halves, each for one owner. `may` says which variables can be cut along an axis. */
typedef bool stk_may_halve(const void *context, const char *variable, int32_t axis);
stk_status stk_pass_halves(const stk_graph *g, stk_may_halve *may, const void *context,
                           stk_graph **out, stk_error *err);
/* The bfloat16 form of variables, kept from run to run. `may` says for which. */
typedef bool stk_may_shadow(const void *context, const char *variable, bool assigned);
stk_status stk_pass_shadows(const stk_graph *g, stk_may_shadow *may, const void *context,
                            stk_graph **out, stk_error *err);
/* Products with trained weights as summands. */
stk_status stk_pass_summands(const stk_graph *g, stk_graph **out, stk_error *err);
/* What the device does not take, as islands that run on the CPU; one row each in the list. */
typedef struct stk_islands {
    stk_island *rows;
    int64_t count, capacity;
} stk_islands;
stk_status stk_pass_place(const stk_graph *g, stk_device *device, stk_islands *list,
                          stk_graph **out, stk_error *err);
/* Fused ops as plain ones, where the device lacks their kernel. */
stk_status stk_pass_expand(const stk_graph *g, stk_device *device, stk_graph **out, stk_error *err);
/* Half types, where the device computes only in float32. */
stk_status stk_pass_widen(const stk_graph *g, stk_device *device, stk_graph **out, stk_error *err);

#endif
