/* call.h - inputs of programs by number, for calls and loops. */
#ifndef STK_GRAPH_CALL_H
#define STK_GRAPH_CALL_H

#include "graph/run/program.h"

bool stk_call_fits(const stk_tensor *t, const stk_type *type); /* dtype and shape */
/* Binds an input for the next run. A dense tensor of the type is used where it is, without a handle. */
stk_status stk_call_input(stk_program *p, int32_t i, stk_tensor *t, stk_error *err);
/* A call keeps no handle of its inputs: nothing may point at them afterwards. */
void stk_call_forget(stk_program *p);

#endif
