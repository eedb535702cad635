/* rnn.h - between the recurrent operations and their builders. */
#ifndef STK_GRAPH_OPS_RNN_H
#define STK_GRAPH_OPS_RNN_H

#include "device/kernels_rnn.h"
#include "graph/ir/op.h"
#include "stoker/recurrent.h"

/* Recurrent weights [hidden, columns] in blocks of columns [columns / width, hidden, width]; 0 where that is not worth it. */
stk_val stk_rnn_panels(stk_graph *g, stk_val u);

#endif
