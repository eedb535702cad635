/* kernels_rnn.h - problems of the recurrent kernels; see kernels.h for the rules.
 *
 * The input's share of all steps (x W) is an ordinary product made before; these kernels walk over time. With n
 * hidden units, a row being one step of one sequence:
 *
 *     lstm       x4n h0 c0 b4n u[n,4n] [panels] [mask]               -> hs h c gates4n cs
 *     lstm_grad  gates4n cs c0 u panels [mask] [dhs] [dh] [dc]       -> dx4n dh0 dc0
 *     gru        x3n h0 b u[n,3n] [panels] [mask]                    -> hs h gates4n
 *     gru_grad   gates4n hs h0 u panels [mask] [dhs] [dh]            -> dx3n dhu dh0
 *
 *     lstm gates:  i | f | g | o       after their sigmoid or tanh; cs is the cell after each step
 *     gru gates:   z | r | candidate | q    q: reset_after h u_h + b_h, else r h, the left side of u_h
 *     dhu:         reset_after gradient of h u + b1 [3n], else of width 0 (dx serves)
 *
 * A step whose mask is false passes the states on; its gates are not defined and its gradient dx is 0. Gates (and cs)
 * are written only when `saved`. `panels` is u (grad: u transposed) cut into blocks of columns,
 * [columns / panel, rows, panel], each of which is read in one stretch of memory. */
#ifndef STK_DEVICE_KERNELS_RNN_H
#define STK_DEVICE_KERNELS_RNN_H

#include "base/shape.h"

/* Which optional inputs are there, in this order behind the fixed ones. */
enum {
    STK_RNN_PANELS = 1,
    STK_RNN_MASK = 2,
    STK_RNN_DHS = 4,
    STK_RNN_DH = 8,
    STK_RNN_DC = 16,
    STK_RNN_ALL = 31
};

typedef struct stk_rnn_params {
    int64_t batch, time, hidden;
    int64_t panel; /* columns of one panel; 0 when there are none */
    int32_t given; /* STK_RNN_PANELS | ... */
    int32_t time_major, reverse, reset_after;
    int32_t saved, dtype;
} stk_rnn_params;

/* Position of an optional input, and of what comes behind all of them, after `fixed` inputs. */
static inline int32_t stk_rnn_arg(int32_t given, int32_t fixed, int32_t which)
{
    return fixed + __builtin_popcount((unsigned)(given & (which - 1)));
}
static inline int32_t stk_rnn_outputs(int32_t given, int32_t fixed)
{
    return fixed + __builtin_popcount((unsigned)given);
}

#endif
