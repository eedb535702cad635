/* control.h - running cond, while and scan: a program that runs programs.
 *
 * The bodies are compiled once, with the program around them, and have their own memory. At run time their inputs and
 * results are pointed at the values of the node; carried values go back and forth between two buffers. */
#ifndef STK_GRAPH_CONTROL_H
#define STK_GRAPH_CONTROL_H

#include "graph/run/program.h"

typedef struct stk_control {
    int32_t op; /* STK_OP_COND, WHILE, SCAN, ISLAND */
    int32_t nin, nout;
    stk_program *body[2];
    int64_t *in_bytes, *out_bytes; /* of one slice for scanned values */
    int64_t ncarry, nxs, trips;
    bool reverse, saved;
    stk_address *arg;              /* of this run: the node's inputs, then outputs */
    stk_address *carry[2];         /* two sets of buffers for carried values */
    stk_block *memory;             /* the condition's result, then the carried values */
    struct stk_crossing *crossing; /* STK_OP_ISLAND */
} stk_control;

stk_status stk_control_new(const stk_program *p, const stk_node *n,
                           const stk_program_options *options, stk_control **out, stk_error *err);
void stk_control_release(stk_device *device, stk_control *c);
/* links: the node's inputs, then outputs, in the program around it. */
stk_status stk_control_run(const stk_program *p, const stk_control *c, const stk_link *links,
                           stk_error *err);

#endif
