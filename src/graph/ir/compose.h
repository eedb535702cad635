/* compose.h - gradients of fused ops, taken from what the op stands for.
 *
 * A fused op (a norm, the gradient of a norm) is fast because one kernel does it all; its derivative is rarely
 * needed and is easiest to get right by writing the op once more with plain ops and differentiating those. */
#ifndef STK_GRAPH_COMPOSE_H
#define STK_GRAPH_COMPOSE_H

#include "graph/ir/op.h"

/* Builds the op's outputs from plain ops: out[k] for each output, 0 where it carries no gradient. */
typedef void (*stk_composition)(stk_graph *g, const stk_node *node, const stk_val *in,
                                stk_val *out);

/* Adds the gradients that arrive at the node's outputs, taken back through the composition, to c->din. Only
 * outputs with a bit in `which` take part. */
void stk_grad_compose(stk_grad *c, stk_composition compose, uint32_t which);

/* *slot + v; either may be 0 (none). */
stk_val stk_g_plus(stk_graph *g, stk_val sum, stk_val v);

/* x with its last `axes` axes as they are and all others as one: [rows, n...] -> [rows, n]. */
stk_val stk_g_as_rows(stk_graph *g, stk_val x, int32_t axes);

/* Product of the last `axes` sizes, and of the ones before them. */
int64_t stk_inner_count(const stk_shape *s, int32_t axes);
int64_t stk_outer_count(const stk_shape *s, int32_t axes);

#endif
