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
stk_status stk_rnn_check(stk_layer_state *layer, stk_error *err);
stk_status stk_lstm_check(stk_layer_state *layer, stk_error *err);

/* ---- rows of option tables ---------------------------------------------------------------------------------------------- */
#define RNN(member, kind_, ...) STK_FIELD(stk_rnn_config, member, kind_, __VA_ARGS__)
#define RNN_WEIGHTS                                                                                \
    RNN(use_bias, BOOL, "True"), RNN(kernel_initializer, INITIALIZER, "glorot_uniform"),           \
        RNN(recurrent_initializer, INITIALIZER, "orthogonal"),                                     \
        RNN(bias_initializer, INITIALIZER, "zeros")
#define RNN_RULES                                                                                  \
    RNN(kernel_regularizer, REGULARIZER, "None"), RNN(recurrent_regularizer, REGULARIZER, "None"), \
        RNN(bias_regularizer, REGULARIZER, "None"),                                                \
        {.name = "activity_regularizer", .kind = STK_FIELD_NULL, .fallback = "None"},              \
        RNN(kernel_constraint, CONSTRAINT, "None"), RNN(recurrent_constraint, CONSTRAINT, "None"), \
        RNN(bias_constraint, CONSTRAINT, "None"), RNN(dropout, REAL, "0"),                         \
        RNN(recurrent_dropout, REAL, "0")
#define RNN_FLOW                                                                                   \
    RNN(return_sequences, BOOL, "False"), RNN(return_state, BOOL, "False"),                        \
        RNN(go_backwards, BOOL, "False"), RNN(stateful, BOOL, "False"),                            \
        RNN(unroll, BOOL, "False"), RNN(zero_output_for_mask, BOOL, "False")
#define RNN_SEED RNN(seed, INT, "None", .wide = true)

/* ---- one cell over a sequence (recurrent.c) ------------------------------------------------------------------------------ */
typedef struct stk_cell {
    stk_cell_kind kind;
    const char *scope;             /* in front of its weights: "lstm_cell" in an LSTM; NULL: none */
    const stk_rnn_config *options; /* of the cell */
    const stk_rnn_config *flow;    /* direction and results: of the layer around it */
    stk_val w, u, b;
} stk_cell;
enum { STK_RNN_STATES = 32 };
/* What a walk gives, batch first; steps in the order of time, whichever way it went. */
typedef struct stk_walked {
    stk_val sequence, state[STK_RNN_STATES];
    int32_t n; /* states */
} stk_walked;
/* Over c->x[0], [batch, time, features], under c->mask[0]. start: one or two states, 0 = zeros. */
stk_walked stk_c_walk_cell(stk_layer_call *c, stk_cell *cell, const stk_val *start);
/* States to start from: given as further inputs, kept from the batch before (stateful), or 0. False: a mistake. */
bool stk_c_initial_states(stk_layer_call *c, const stk_rnn_config *flow, int32_t n,
                          const int64_t *units, stk_val *start);
/* Results of a layer, and the states that a stateful one keeps. output: the state that is the output, or 0; given: the walk
 * started from states that may not be zero. */
void stk_c_rnn_outputs(stk_layer_call *c, const stk_rnn_config *flow, const stk_walked *r,
                       stk_val output, bool given);
/* State i of a stateful layer, and its value for the next batch. */
stk_val stk_c_state(stk_layer_call *c, int32_t i, int32_t rank, const int64_t *shape);
void stk_c_keep_state(stk_layer_call *c, int32_t i, stk_val value);

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
