/* recurrent.h - the options that SimpleRNN, LSTM and GRU share, for the layers themselves and for Bidirectional. */
#ifndef STK_LAYERS_RECURRENT_H
#define STK_LAYERS_RECURRENT_H

#include "layers/layer.h"
#include "layers/objects.h"

typedef enum stk_cell_kind { STK_CELL_SIMPLE, STK_CELL_LSTM, STK_CELL_GRU } stk_cell_kind;

typedef struct stk_rnn_config {
    int64_t units;
    stk_activation activation, recurrent_activation;
    bool use_bias, unit_forget_bias, reset_after;
    const stk_object *kernel_initializer, *recurrent_initializer, *bias_initializer;
    const stk_object *kernel_regularizer, *recurrent_regularizer, *bias_regularizer;
    const stk_object *kernel_constraint, *recurrent_constraint, *bias_constraint;
    double dropout, recurrent_dropout;
    int64_t seed, implementation;
    bool return_sequences, return_state, go_backwards, stateful, unroll, zero_output_for_mask;
    /* Made by check: the LSTM's bias starts with ones for the forget gate. */
    stk_object forget_bias;
    stk_initializer forget_values;
} stk_rnn_config;

extern const stk_layer_def stk_layer_simple_rnn, stk_layer_lstm, stk_layer_gru;
bool stk_layer_is_rnn(const stk_layer_state *layer);

/* One walk over a sequence by elementary operations, for what the fused kernels do not do: any activation, dropout of the
 * state. All values are given time first. */
typedef struct stk_walk_wish {
    stk_cell_kind kind;
    const stk_rnn_config *options;
    stk_val x;        /* [time, batch, gates * units]: the input times the kernel, bias added */
    stk_val u, b;     /* recurrent kernel; GRU with reset_after: the bias of the state, or 0 */
    stk_val mask;     /* bool [time, batch, 1], or 0 */
    stk_val h0, c0;   /* [batch, units] */
    stk_val h_factor; /* what the state is multiplied with before each step (dropout), or 0 */
    bool reverse;
} stk_walk_wish;
typedef struct stk_walk_result {
    stk_val sequence, h, c; /* sequence: [time, batch, units]; c: LSTM only */
} stk_walk_result;
stk_walk_result stk_c_walk(stk_layer_call *c, const stk_walk_wish *wish);

#endif
