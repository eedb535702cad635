/* recurrent.h - LSTM and GRU over whole sequences.
 *
 *     stk_graph *g = NULL;
 *     if (stk_graph_new(&g, NULL) != STK_OK) return 1;
 *     stk_val x = stk_g_input(g, "x", STK_F32, 3, (int64_t[]){32, 20, 8}); // batch, time, features
 *     stk_val w = stk_g_variable(g, "w", STK_F32, 2, (int64_t[]){8, 4 * 64});
 *     stk_val u = stk_g_variable(g, "u", STK_F32, 2, (int64_t[]){64, 4 * 64});
 *     stk_val b = stk_g_variable(g, "b", STK_F32, 1, (int64_t[]){4 * 64});
 *     stk_rnn_result y = stk_g_lstm(g, x, w, u, b, NULL);
 *     stk_g_output(g, "last", y.h);
 *     stk_graph_release(g);
 *
 * Weights are laid out as in Keras: w [features, gates * units] for the input, u [units, gates * units] for the state,
 * gates side by side in the order input, forget, cell, output (LSTM) or update, reset, candidate (GRU).
 * Gates are sigmoids, the rest is tanh. */
#ifndef STOKER_RECURRENT_H
#define STOKER_RECURRENT_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_rnn_options {
    /* x, mask and the sequence are [time, batch, ..] instead of [batch, time, ..] */
    bool time_major;
    /* From the last step to the first. The sequence keeps its places: what was computed from x[:, t] stands at t. (The
     * sequence of Keras' go_backwards is this one passed through stk_g_reverse along time.) */
    bool reverse;
    /* GRU: the reset gate is applied to h u + b[1] (b is [2, 3 * units]); else to h (b is [3 * units]). */
    bool reset_after;
    /* bool [batch, time]; where false the step is left out and states pass on; 0: none */
    stk_val mask;
    stk_val h0, c0; /* [batch, units]; 0: zeros */
} stk_rnn_options;
STK_API stk_rnn_options stk_rnn_options_defaults(void); /* reset_after, as Keras has it */

typedef struct stk_rnn_result {
    stk_val sequence; /* h of every step, [batch, time, units] */
    stk_val h, c;     /* after the last step computed; GRU: c is 0 */
} stk_rnn_result;

/* b may be 0: none. One kernel walks over the sequence; its gradient is another, which has none itself. */
STK_API stk_rnn_result stk_g_lstm(stk_graph *g, stk_val x, stk_val w, stk_val u, stk_val b,
                                  const stk_rnn_options *options);
STK_API stk_rnn_result stk_g_gru(stk_graph *g, stk_val x, stk_val w, stk_val u, stk_val b,
                                 const stk_rnn_options *options);
/* The same results from a stk_g_scan over elementary operations: slower, but with gradients of any order. */
STK_API stk_rnn_result stk_g_lstm_composed(stk_graph *g, stk_val x, stk_val w, stk_val u, stk_val b,
                                           const stk_rnn_options *options);
STK_API stk_rnn_result stk_g_gru_composed(stk_graph *g, stk_val x, stk_val w, stk_val u, stk_val b,
                                          const stk_rnn_options *options);

#ifdef __cplusplus
}
#endif
#endif
