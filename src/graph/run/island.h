/* island.h - nodes that the device does not take, run on the CPU in the middle of a program (passes/place.c). */
#ifndef STK_GRAPH_RUN_ISLAND_H
#define STK_GRAPH_RUN_ISLAND_H

#include "graph/run/program.h"

typedef struct stk_crossing
    stk_crossing; /* a body on cpu:0, and host memory for what goes down and up */

stk_status stk_crossing_new(stk_device *device, const stk_graph *body,
                            const stk_program_options *options, stk_crossing **out, stk_error *err);
void stk_crossing_release(stk_crossing *c);
const stk_program *stk_crossing_body(const stk_crossing *c);
double stk_crossing_seconds(const stk_crossing *c); /* of its body, the least so far; 0: none yet */
/* arg: addresses on the device of the body's inputs, then outputs. */
stk_status stk_crossing_run(stk_crossing *c, const stk_address *arg, stk_error *err);

#endif
